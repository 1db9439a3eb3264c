/* The variables of a session and the arenas of its devices. */
#include "runtime/buffer.h"

#include "base/map.h"

#include <string.h>

struct device_arena {
  void *data;
  size_t bytes;
};

struct store {
  const struct backend *backend;
  void *self;
  struct arena *arena;
  struct map names;
  struct device_arena *arenas;
  int ndevices;
  unsigned generation;
};

static const char copy_mark[] = "/replica_";

struct store *store_create(const struct backend *backend, void *self, int ndevices) {
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  struct store *s = arena_new(a, struct store);
  *s = (struct store){.backend = backend, .self = self, .arena = a, .ndevices = ndevices};
  s->names = map_make(a);
  s->arenas = arena_new_array(a, (size_t)ndevices, struct device_arena);
  arena_unguard(&guard);
  return s;
}

void store_destroy(struct store *s) {
  if (!s) return;
  for (int i = 0; i < store_count(s); i++) {
    struct variable *v = store_at(s, i);
    s->backend->free(s->self, v->device, v->data, v->bytes);
  }
  for (int i = 0; i < s->ndevices; i++)
    if (s->arenas[i].data) s->backend->free(s->self, i, s->arenas[i].data, s->arenas[i].bytes);
  arena_destroy(s->arena);
}

struct variable *store_find(const struct store *s, const char *name) {
  return map_get(&s->names, name);
}
int store_count(const struct store *s) { return (int)s->names.count; }
struct variable *store_at(const struct store *s, int i) {
  return s->names.entries[i].value;
}

const char *variable_primary(struct arena *a, const char *name) {
  const char *mark = strstr(name, copy_mark);
  return mark ? arena_strndup(a, name, (size_t)(mark - name)) : NULL;
}

static void copy_variable(struct store *s, struct variable *to, const struct variable *from) {
  s->backend->copy(s->self, to->data, to->device, from->data, from->device, to->bytes);
  to->filled = from->filled;
}

/* The variable that `v` is a copy of, or NULL. */
static struct variable *primary_of(const struct store *s, const struct variable *v) {
  const char *mark = strstr(v->name, copy_mark);
  return mark ? map_getn(&s->names, v->name, (size_t)(mark - v->name)) : NULL;
}

struct variable *store_variable(struct store *s, const char *name, const struct type *type, int device,
                                struct diags *d) {
  struct variable *v = store_find(s, name);
  if (v) {
    if (v->device == device && type_equal(&v->type, type)) return v;
    diag_error(d, LOC_NONE, "variable %s is %s on device %d, but a plan wants %s on device %d", name,
               type_text(s->arena, &v->type), v->device, type_text(s->arena, type), device);
    return NULL;
  }
  v = arena_new(s->arena, struct variable);
  *v = (struct variable){.name = arena_strdup(s->arena, name), .type = *type, .device = device};
  v->bytes = (size_t)type_bytes(type);
  v->data = s->backend->alloc(s->self, device, v->bytes);
  if (!v->data) {
    diag_error(d, LOC_NONE, "no memory for variable %s: %zu bytes", name, v->bytes);
    return NULL;
  }
  map_put(&s->names, name, v);
  struct variable *primary = primary_of(s, v);
  if (primary && primary->filled) copy_variable(s, v, primary);
  return v;
}

void store_spread(struct store *s) {
  for (int i = 0; i < store_count(s); i++) {
    struct variable *v = store_at(s, i), *primary = primary_of(s, v);
    if (primary) copy_variable(s, v, primary);
  }
}

void store_read(const struct store *s, const struct variable *v, void *out) {
  s->backend->copy(s->self, out, -1, v->data, v->device, v->bytes);
}

void store_write(struct store *s, struct variable *v, const void *data) {
  s->backend->copy(s->self, v->data, v->device, data, -1, v->bytes);
  v->filled = true;
}

void *store_arena(struct store *s, int device, size_t bytes) {
  struct device_arena *a = &s->arenas[device];
  if (a->data && a->bytes >= bytes) return a->data;
  void *data = s->backend->alloc(s->self, device, bytes);
  if (!data) return NULL;
  if (a->data) s->backend->free(s->self, device, a->data, a->bytes);
  *a = (struct device_arena){data, bytes};
  s->generation++;
  return data;
}

unsigned store_generation(const struct store *s) { return s->generation; }
