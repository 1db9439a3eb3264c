/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of a session and the arenas of its devices. */
#include "runtime/store.h"

#include "base/map.h"
#include "runtime/host_memory.h"
#include "runtime/mpi/transport.h"

#include <string.h>

struct device_arena {
  void *data;
  size_t bytes;
};

struct store {
  const struct engines *engines;
  struct arena *arena;
  struct map names;
  struct device_arena *arenas; /* by device */
  unsigned generation;
};

static bool is_here(const struct store *s, const struct stored_variable *v) {
  return engines_here(s->engines, v->device);
}

struct store *store_create(const struct engines *engines) {
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  struct store *s = arena_new(a, struct store);
  *s = (struct store){.engines = engines, .arena = a};
  s->names = map_make(a);
  s->arenas = arena_new_array(a, (size_t)engines->target.ndevices, struct device_arena);
  arena_unguard(&guard);
  return s;
}

void store_destroy(struct store *s) {
  if (!s) return;
  if (*s->engines->lost) {
    host_abandon(s);
    return;
  }
  for (int i = 0; i < store_count(s); i++) {
    struct stored_variable *v = store_at(s, i);
    if (is_here(s, v)) engines_free(s->engines, v->device, v->data, v->bytes);
  }
  for (int i = 0; i < s->engines->target.ndevices; i++)
    if (s->arenas[i].data) engines_free(s->engines, i, s->arenas[i].data, s->arenas[i].bytes);
  arena_destroy(s->arena);
}

struct stored_variable *store_find(const struct store *s, const char *name) {
  return map_get(&s->names, name);
}
int store_count(const struct store *s) { return (int)s->names.count; }
struct stored_variable *store_at(const struct store *s, int i) {
  return s->names.entries[i].value;
}

/* The variable's bytes to another process, or from one. What a device has in memory of its own goes through the
 * host's. */
static bool move_variable(const struct store *s, const struct stored_variable *v, int process, bool sends) {
  const struct transport *t = s->engines->transport;
  bool own = !engines_on_host(s->engines, v->device);
  void *data = own ? host_alloc(v->bytes) : v->data;
  bool good = data && (!sends || !own || engines_copy(s->engines, data, -1, v->data, v->device, v->bytes));
  good = good && (sends ? transport_send(t, data, v->bytes, process, TAG_VARIABLE)
                        : transport_receive(t, data, v->bytes, process, TAG_VARIABLE));
  good = good && (sends || !own || engines_copy(s->engines, v->data, v->device, data, -1, v->bytes));
  if (own) host_free(data);
  return good;
}

/* Of a variable that another process has, what its owner sends: every process comes here for the same variables in the
 * same order. */
static bool copy_variable(struct store *s, struct stored_variable *to, const struct stored_variable *from) {
  const int *of = s->engines->processes;
  to->filled = from->filled;
  if (is_here(s, to) && is_here(s, from))
    return engines_copy(s->engines, to->data, to->device, from->data, from->device, to->bytes);
  if (is_here(s, from)) return move_variable(s, from, of[to->device], true);
  return !is_here(s, to) || move_variable(s, to, of[from->device], false);
}

struct stored_variable *store_primary(const struct store *s, const struct stored_variable *v) {
  if (v->identity.role != VARIABLE_REPLICA) return NULL;
  struct stored_variable *primary = store_find(s, v->identity.of);
  for (int i = 0; !primary && i < store_count(s); i++) { /* another process has it */
    struct stored_variable *first = store_at(s, i);
    if (first->identity.role == VARIABLE_REPLICA && strcmp(first->identity.of, v->identity.of) == 0)
      primary = first;
  }
  return primary == v ? NULL : primary;
}

/* Another plan may say it anew. */
static void identify(struct store *s, struct stored_variable *v, const struct variable_identity *i) {
  struct variable_identity *now = &v->identity;
  now->role = i->role;
  now->number = i->number;
  now->everywhere = i->everywhere;
  now->storage = i->storage;
  if (!str_same(now->of, i->of)) now->of = i->of ? arena_strdup(s->arena, i->of) : NULL;
  if (!str_same(now->joins, i->joins)) now->joins = i->joins ? arena_strdup(s->arena, i->joins) : NULL;
}

struct stored_variable *store_variable(struct store *s, const char *name, const struct type *type,
                                       const struct variable_identity *identity, int device,
                                       struct diags *d) {
  struct stored_variable *v = store_find(s, name);
  if (v) {
    identify(s, v, identity);
    if (v->device == device && type_equal(&v->type, type)) return v;
    diag_error(d, LOC_NONE, "variable %s is %s on device %d, but a plan wants %s on device %d", name,
               type_text(s->arena, &v->type), v->device, type_text(s->arena, type), device);
    return NULL;
  }
  v = arena_new(s->arena, struct stored_variable);
  *v = (struct stored_variable){.name = arena_strdup(s->arena, name), .type = *type, .device = device};
  v->bytes = (size_t)type_bytes(type);
  identify(s, v, identity);
  if (is_here(s, v)) v->data = engines_alloc(s->engines, device, v->bytes);
  if (is_here(s, v) && !v->data) {
    engines_no_memory(s->engines, device, arena_printf(s->arena, "variable %s", name), v->bytes, d);
    return NULL;
  }
  map_put(&s->names, name, v);
  struct stored_variable *primary = store_primary(s, v);
  if (primary && primary->filled && !copy_variable(s, v, primary)) {
    engines_status(s->engines, d);
    return NULL;
  }
  return v;
}

bool store_broadcast(struct store *s) {
  bool good = true;
  for (int i = 0; i < store_count(s); i++) {
    struct stored_variable *v = store_at(s, i), *primary = store_primary(s, v);
    if (primary) good &= copy_variable(s, v, primary);
  }
  return good;
}

/* The process's own copy of a variable: itself or a replica; NULL if it has none. */
static const struct stored_variable *own_copy(const struct store *s, const struct stored_variable *v,
                                              int process) {
  const int *of = s->engines->processes;
  if (of[v->device] == process) return v;
  for (int i = 0; i < store_count(s); i++) {
    const struct stored_variable *r = store_at(s, i);
    if (r->filled && r->identity.role == VARIABLE_REPLICA && of[r->device] == process &&
        strcmp(r->identity.of, v->name) == 0)
      return r;
  }
  return NULL;
}

/* Processes that have no copy of the variable are sent it. */
static bool read_together(const struct store *s, const struct stored_variable *v, void *out) {
  const struct transport *t = s->engines->transport;
  const struct stored_variable *own = own_copy(s, v, t->rank);
  int owner = s->engines->processes[v->device];
  if (own && !engines_copy(s->engines, out, -1, own->data, own->device, own->bytes)) return false;
  for (int i = 0; owner == t->rank && i < t->size; i++)
    if (!own_copy(s, v, i) && !move_variable(s, v, i, true)) return false;
  return own || transport_receive(t, out, v->bytes, owner, TAG_VARIABLE);
}

bool store_read(const struct store *s, const struct stored_variable *v, void *out) {
  if (s->engines->transport && !v->identity.everywhere) return read_together(s, v, out);
  return engines_copy(s->engines, out, -1, v->data, v->device, v->bytes);
}

bool store_write(struct store *s, struct stored_variable *v, const void *data) {
  v->filled = true;
  if (!is_here(s, v)) return true;
  return engines_copy(s->engines, v->data, v->device, data, -1, v->bytes);
}

void *store_arena(struct store *s, int device, size_t bytes) {
  struct device_arena *a = &s->arenas[device];
  if (a->data && a->bytes >= bytes) return a->data;
  void *data = engines_alloc(s->engines, device, bytes);
  if (!data) return NULL;
  if (a->data) engines_free(s->engines, device, a->data, a->bytes);
  *a = (struct device_arena){data, bytes};
  s->generation++;
  return data;
}

unsigned store_generation(const struct store *s) { return s->generation; }
