/* SPDX-License-Identifier: Apache-2.0 */
/* Which backend runs which device. */
#include "runtime/engines.h"

#include "runtime/host_memory.h"
#include "runtime/mpi/transport.h"

#include <string.h>

static const struct backend *choose(const char *kind, const struct backend *const *wanted) {
  for (int i = 0; wanted && wanted[i]; i++)
    if (strcmp(wanted[i]->kind, kind) == 0) return wanted[i];
  for (int i = 0; backends[i]; i++)
    if (strcmp(backends[i]->kind, kind) == 0) return backends[i];
  return NULL;
}

/* The open backend for devices of this kind; opens it if there is none yet. */
static const struct opened *of_kind(struct engines *e, const struct device *device,
                                    const struct backend *const *wanted, struct diags *d) {
  const char *kind = device->name.kind;
  for (int i = 0; i < e->count; i++)
    if (strcmp(e->all[i].backend->kind, kind) == 0) return &e->all[i];
  struct opened *o = &e->all[e->count];
  o->backend = choose(kind, wanted);
  if (!o->backend) {
    diag_error(d, LOC_NONE, "there is no backend for %s in this build", device->text);
    return NULL;
  }
  o->self = o->backend->open(&e->target, d);
  if (!o->self) return NULL;
  e->count++;
  return o;
}

static void undo_open(void *e) { engines_close(e); }

struct engines *engines_open(const struct target *target, const struct backend *const *wanted,
                             struct diags *d) {
  return engines_open_task(target, wanted, NULL, d);
}

struct engines *engines_open_task(const struct target *target, const struct backend *const *wanted,
                                  const struct transport *transport, struct diags *d) {
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  struct engines *e = arena_new(a, struct engines);
  *e = (struct engines){.arena = a, .target = *target, .transport = transport};
  int *processes = arena_new_array(a, (size_t)target->ndevices, int);
  if (transport) target_processes(target, processes);
  e->processes = processes;
  e->lost = arena_new(a, _Atomic bool);
  arena_unguard(&guard);
  arena_guard(&guard, undo_open, e);
  e->all = arena_new_array(a, (size_t)target->ndevices, struct opened);
  e->devices = arena_new_array(a, (size_t)target->ndevices, const struct opened *);
  bool all = true;
  for (int i = 0; i < target->ndevices && all; i++) {
    if (transport && processes[i] != transport->rank) continue;
    e->devices[i] = of_kind(e, &target->devices[i], wanted, d);
    all = e->devices[i] != NULL;
  }
  arena_unguard(&guard);
  if (all) return e;
  engines_close(e);
  return NULL;
}

void engines_close(struct engines *e) {
  if (!e) return;
  if (*e->lost) {
    host_abandon(e);
    return;
  }
  while (e->count) {
    struct opened *last = &e->all[--e->count];
    last->backend->close(last->self);
  }
  arena_destroy(e->arena);
}

void *engines_alloc(const struct engines *e, int device, size_t bytes) {
  return e->devices[device]->backend->alloc(e->devices[device]->self, device, bytes);
}

void engines_free(const struct engines *e, int device, void *data, size_t bytes) {
  if (*e->lost) return;
  e->devices[device]->backend->free(e->devices[device]->self, device, data, bytes);
}

static const struct opened *who_pins(const struct engines *e) {
  for (int i = 0; i < e->count; i++)
    if (e->all[i].backend->pinned_alloc) return &e->all[i];
  return NULL;
}

void *engines_pinned_alloc(const struct engines *e, size_t bytes) {
  const struct opened *o = who_pins(e);
  return o && !*e->lost ? o->backend->pinned_alloc(o->self, bytes) : NULL;
}

void engines_pinned_free(const struct engines *e, void *data) {
  if (!data || *e->lost) return;
  const struct opened *o = who_pins(e);
  o->backend->pinned_free(o->self, data);
}

bool engines_on_host(const struct engines *e, int device) {
  return device < 0 || (e->devices[device] && e->devices[device]->backend->host);
}

bool engines_copy(const struct engines *e, void *to, int to_device, const void *from, int from_device,
                  size_t bytes) {
  if (*e->lost) return false;
  if (engines_on_host(e, to_device)) to_device = -1;
  if (engines_on_host(e, from_device)) from_device = -1;
  if (to_device < 0 && from_device < 0) {
    if (bytes) memcpy(to, from, bytes);
    return true;
  }
  const struct opened *o = e->devices[to_device >= 0 ? to_device : from_device];
  return o->backend->copy(o->self, to, to_device, from, from_device, bytes);
}

bool engines_status(const struct engines *e, struct diags *d) {
  for (int i = 0; i < e->count; i++) {
    const struct opened *o = &e->all[i];
    if (o->backend->status && !o->backend->status(o->self, d)) return false;
  }
  if (e->transport && transport_failed(e->transport)) {
    transport_report(e->transport, &e->target, d);
    return false;
  }
  if (!*e->lost) return true;
  diag_error(d, LOC_NONE, "a device did not answer in time in an earlier step");
  return false;
}

void engines_lose(const struct engines *e) { *e->lost = true; }

/* A device that has failed gives no memory either: then that is the cause. */
void engines_no_memory(const struct engines *e, int device, const char *what, size_t bytes, struct diags *d) {
  const struct opened *o = e->devices[device];
  const char *text = e->target.devices[device].text;
  size_t available, total;
  if (!engines_status(e, d)) return;
  if (o->backend->free_memory && o->backend->free_memory(o->self, device, &available, &total))
    diag_error(d, LOC_NONE, "no memory for %s: %zu bytes are wanted, and %zu of %zu are free on %s", what,
               bytes, available, total, text);
  else
    diag_error(d, LOC_NONE, "no memory for %s on %s: %zu bytes", what, text, bytes);
}

void engines_allow_tf32(const struct engines *e, bool allow) {
  for (int i = 0; i < e->count; i++)
    if (e->all[i].backend->allow_tf32) e->all[i].backend->allow_tf32(e->all[i].self, allow);
}

int engines_portable_bits(const struct engines *e, bool wanted) {
  for (int i = 0; i < e->target.ndevices; i++) {
    const struct opened *o = e->devices[i];
    if (wanted && o && !o->backend->portable_bits) return i;
    if (o && o->backend->portable_bits) o->backend->portable_bits(o->self, wanted);
  }
  return -1;
}

const char *engines_bf16_units(const struct engines *e) {
  const char *units = NULL;
  for (int i = 0; i < e->count && !units; i++)
    if (e->all[i].backend->bf16_units) units = e->all[i].backend->bf16_units(e->all[i].self);
  return units;
}

void engines_limit(const struct engines *e, int seconds) {
  for (int i = 0; i < e->count; i++)
    if (e->all[i].backend->limit) e->all[i].backend->limit(e->all[i].self, seconds, e->lost);
}

void engines_enter(const struct engines *e) {
  for (int i = 0; i < e->count; i++)
    if (e->all[i].backend->enter) e->all[i].backend->enter(e->all[i].self);
}
