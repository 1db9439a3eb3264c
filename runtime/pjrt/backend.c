/* SPDX-License-Identifier: Apache-2.0 */
/* The backends of PJRT plugins: a plan is one module, which the plugin compiles and runs as a whole. */
#include "runtime/backend.h"

#include "base/clock.h"
#include "runtime/host_memory.h"
#include "runtime/pjrt/engine.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct pjrt_cell) <= 64, "a cell fits between two addresses");

static bool status(void *self, struct diags *d) {
  struct pjrt_engine *e = self;
  if (!e->failed) return true;
  pthread_mutex_lock(&e->lock);
  diag_error(d, LOC_NONE, "%s", e->message);
  pthread_mutex_unlock(&e->lock);
  return false;
}

/* --- opening --- */

/* Everything of a half-opened engine too. */
static void close_engine(void *self) {
  struct pjrt_engine *e = self;
  if (e->lost && *e->lost) {
    host_abandon(e);
    return;
  }
  pjrt_await_all(e);
  for (int i = 0; i < DEFERRED_READS; i++)
    if (e->reads[i].taken) pjrt_await(e, e->first, e->reads[i].event);
  while (e->cells) pjrt_cell_clear(e, e->cells);
  pjrt_close_modules(e);
  pjrt_client_destroy(e->plugin, e->client);
  pthread_mutex_destroy(&e->lock);
  arena_destroy(e->arena);
}

static void undo_open(void *e) { close_engine(e); }

/* The file of the plugin for devices of this kind. NULL: none is named. */
static const char *file_of(const char *kind, const char *given) {
  const char *named = getenv("DGC_PJRT_PLUGIN");
  if (given) return given;
  if (named && *named) return named;
  return strcmp(kind, "tpu") == 0 ? "libtpu.so" : NULL;
}

static bool find_devices(struct pjrt_engine *e, const struct target *t, const char *kind, struct diags *d) {
  int most = -1;
  e->first = -1;
  for (int i = 0; i < t->ndevices; i++) {
    if (strcmp(t->devices[i].name.kind, kind) != 0) continue;
    if (e->first < 0) e->first = i;
    if (t->devices[i].name.index > most) most = t->devices[i].name.index;
  }
  struct pjrt_listed all;
  e->client = pjrt_client_create(d->arena, e->plugin, most + 1, &all, d);
  if (!e->client) return false;
  e->is_cpu = strcmp(all.platform, "cpu") == 0;
  for (int i = 0; i < t->ndevices; i++) {
    struct pjrt_device *dev = &e->devices[i];
    int index = t->devices[i].name.index;
    dev->text = arena_strdup(e->arena, t->devices[i].text);
    if (strcmp(t->devices[i].name.kind, kind) != 0) continue;
    if (index >= all.count) {
      diag_error(d, LOC_NONE, "%s is not there: PJRT plugin %s has %d device%s", dev->text, e->plugin->file,
                 all.count, all.count == 1 ? "" : "s");
      return false;
    }
    dev->device = all.devices[index];
    dev->id = all.ids[index];
    dev->kind = arena_strdup(e->arena, all.kinds[index]);
  }
  return true;
}

static void *open_kind(const struct target *target, const char *kind, struct diags *d) {
  const char *file = file_of(kind, target->plugin);
  if (!file) {
    diag_error(d, LOC_NONE, "%s devices are those of a PJRT plugin, and none is named", kind);
    diag_help(d, LOC_NONE, "give --pjrt-plugin FILE, or DGC_PJRT_PLUGIN=FILE");
    return NULL;
  }
  const struct pjrt_plugin *plugin = pjrt_load(file, d);
  if (!plugin) return NULL;
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  struct pjrt_engine *e = arena_new(a, struct pjrt_engine);
  e->arena = a;
  e->plugin = plugin;
  e->ndevices = target->ndevices;
  e->devices = arena_new_array(a, (size_t)target->ndevices, struct pjrt_device);
  pthread_mutex_init(&e->lock, NULL);
  arena_unguard(&guard);
  arena_guard(&guard, undo_open, e);
  bool good = find_devices(e, target, kind, d);
  arena_unguard(&guard);
  if (good) return e;
  close_engine(e);
  return NULL;
}

static void *open_pjrt(const struct target *target, struct diags *d) { return open_kind(target, "pjrt", d); }

/* libtpu asks the network where it is, unless it is told not to: on a machine that is no TPU's, for minutes. */
static void *open_tpu(const struct target *target, struct diags *d) {
  setenv("TPU_SKIP_MDS_QUERY", "1", 0);
  return open_kind(target, "tpu", d);
}

/* Without a plugin that is named there are none, and nothing is wrong. */
static int list(struct arena *a, const char *given, struct device_info **out, const char **why_none) {
  const char *file = file_of("pjrt", given);
  struct diags d;
  struct pjrt_listed all;
  diags_init(&d, a);
  *why_none = NULL;
  const struct pjrt_plugin *p = file ? pjrt_load(file, &d) : NULL;
  void *client = p ? pjrt_client_create(a, p, 0, &all, &d) : NULL;
  if (file && !client) *why_none = d.first ? d.first->message : "?";
  if (!client) return 0;
  *out = arena_new_array(a, (size_t)all.count, struct device_info);
  for (int i = 0; i < all.count; i++) {
    struct pjrt_Device_MemoryStats args = PJRT_ARGS(Device_MemoryStats, .device = all.devices[i]);
    void *error =
        pjrt_has(p, CALL_Device_MemoryStats) ? pjrt_invoke(p, CALL_Device_MemoryStats, &args) : NULL;
    if (error) pjrt_error_drop(p, error);
    (*out)[i] = (struct device_info){.index = i,
                                     .name = all.kinds[i],
                                     .arch = all.platform,
                                     .memory = !error && args.bytes_limit_is_set ? args.bytes_limit : 0};
  }
  pjrt_client_destroy(p, client);
  return all.count;
}

static void limit(void *self, int seconds, _Atomic bool *lost) {
  struct pjrt_engine *e = self;
  e->limit = seconds;
  e->lost = lost;
}

static bool free_memory(void *self, int device, size_t *available, size_t *total) {
  struct pjrt_engine *e = self;
  struct pjrt_Device_MemoryStats args = PJRT_ARGS(Device_MemoryStats, .device = e->devices[device].device);
  if (!pjrt_has(e->plugin, CALL_Device_MemoryStats)) return false;
  void *error = pjrt_invoke(e->plugin, CALL_Device_MemoryStats, &args);
  if (error) pjrt_error_drop(e->plugin, error);
  if (error || !args.bytes_limit_is_set) return false;
  *total = (size_t)args.bytes_limit;
  *available = (size_t)(args.bytes_limit - args.bytes_in_use);
  return true;
}

/* --- runs --- */

static void nothing(void *const *args, const void *state) { (void)args, (void)state; }

static bool mark(void *self, struct arena *a, int device, enum queue queue, struct command *c, void **event,
                 struct diags *d) {
  (void)a, (void)device, (void)queue, (void)d;
  c->kind = COMMAND_CALL;
  c->call = nothing;
  *event = self;
  return true;
}

static bool follow(void *self, struct arena *a, int device, enum queue queue, void *event, struct command *c,
                   struct diags *d) {
  (void)event;
  void *same;
  return mark(self, a, device, queue, c, &same, d);
}

static bool reached(void *event) { return pjrt_all_ready(event); }

static bool begin(void *self, bool timed) {
  struct pjrt_engine *e = self;
  (void)timed;
  e->begun = clock_ns();
  return !e->failed;
}

static bool end(void *self, bool wait) {
  struct pjrt_engine *e = self;
  if (wait) pjrt_await_all(e);
  e->busy = clock_ns() - e->begun;
  return !e->failed;
}

static uint64_t busy(void *self, int device) {
  struct pjrt_engine *e = self;
  return e->devices[device].device ? e->busy : 0;
}

/* The host's and others' devices share no plan with these. */
static bool prepare_copy(void *self, struct arena *a, int to, int from, size_t bytes, struct command *c,
                         struct diags *d) {
  (void)self, (void)a, (void)to, (void)from, (void)bytes, (void)c;
  diag_error(d, LOC_NONE, "a plan of a PJRT plugin copies nothing between its steps");
  return false;
}

#define HOOKS                                                                                                \
  .close = close_engine, .alloc = pjrt_alloc, .free = pjrt_free, .free_memory = free_memory, .limit = limit, \
  .copy = pjrt_copy, .read_begin = pjrt_read_begin, .read_end = pjrt_read_end, .prepare = pjrt_prepare,      \
  .prepare_copy = prepare_copy, .mark = mark, .follow = follow, .reached = reached, .begin = begin,          \
  .end = end, .status = status, .busy = busy, .module_memory = pjrt_module_memory

const struct backend backend_pjrt = {.name = "pjrt",
                                     .help = "devices of a PJRT plugin, which compiles whole graphs",
                                     .kind = "pjrt",
                                     .runs_modules = true,
                                     .open = open_pjrt,
                                     .list = list,
                                     HOOKS};
const struct backend backend_tpu = {.name = "tpu",
                                    .help = "TPUs, by the PJRT plugin libtpu.so",
                                    .kind = "tpu",
                                    .runs_modules = true,
                                    .open = open_tpu,
                                    HOOKS};
