/* SPDX-License-Identifier: Apache-2.0 */
/* First values out of checkpoints, of this model or another one: a teacher's, those that are trained further, or what
 * another program has written. A tensor goes to the variable of its name, once the option names and what stands behind
 * the file's have renamed it, if the shapes are equal; floats become those of the variable. */
#include "session/init_from.h"

#include "session/model.h"
#include "session/names.h"
#include "session/run.h"
#include "session/starts.h"
#include "session/state/checkpoints.h"
#include "session/state/values.h"

#include "ir/graph/graph.h"
#include "ir/ops/op_id.h"
#include "runtime/checkpoint.h"
#include "runtime/data/reader.h"
#include "runtime/data/xxh64.h"
#include "runtime/model_variable.h"

#include <string.h>
#include <unistd.h>

enum { SHOWN = 8 };

/* Names, of which the first are shown. */
struct named_so_far {
  struct str text;
  int count;
};

static void add_name(struct named_so_far *n, const char *text) {
  if (n->count < SHOWN) str_printf(&n->text, "%s%s", n->count ? ", " : "", text);
  n->count++;
}

static void say(struct dgc_session *s, const char *path, const char *what, const struct named_so_far *n) {
  if (n->count > SHOWN)
    diag_note(&s->diags, LOC_NONE, "%s: %s: %s and %d more", path, what, n->text.data, n->count - SHOWN);
  else if (n->count)
    diag_note(&s->diags, LOC_NONE, "%s: %s: %s", path, what, n->text.data);
}

/* --- "x.safetensors:encoder=backbone:head=" --- */

/* Cuts the renames off, which stand behind the last colons: the file, and *renames, "encoder=backbone:head=". */
static const char *split(struct dgc_session *s, const char *value, const char **renames) {
  size_t len = strlen(value);
  for (;;) {
    const char *colon = memrchr(value, ':', len);
    if (!colon || !memchr(colon, '=', (size_t)(value + len - colon)) || colon == value) break;
    len = (size_t)(colon - value);
  }
  *renames = value[len] ? value + len + 1 : "";
  return access(value, F_OK) == 0 ? (*renames = "", value) : arena_strndup(s->call, value, len);
}

/* The name with its first parts replaced, up to a dot; an empty new one drops them, an empty old one adds to all. */
static const char *renamed(struct dgc_session *s, const char *name, const char *renames, bool *used) {
  for (int i = 0; *renames; i++) {
    size_t len = strcspn(renames, ":"), old = strcspn(renames, "="), new = len - old - 1;
    const char *to = renames + old + 1, *rest = name + old;
    bool fits = !old || (strncmp(name, renames, old) == 0 && (!*rest || *rest == '.'));
    if (fits) used[i] = true;
    if (fits && !old) return new ? arena_printf(s->call, "%.*s.%s", (int)new, to, name) : name;
    if (fits && new) return arena_printf(s->call, "%.*s%s", (int)new, to, rest);
    if (fits && *rest) return rest + 1;
    renames += len + (renames[len] == ':');
  }
  return name;
}

static enum dgc_status rename_all(struct dgc_session *s, struct checkpoint *c, const char *path,
                                  const char *renames) {
  struct map taken = map_make(s->call);
  bool *used = arena_new_array(s->call, strlen(renames) + 1, bool);
  for (int i = 0; i < c->count; i++) {
    const char *old = c->entries[i].name, *new = renamed(s, old, renames, used);
    const char *other = map_put(&taken, new, (void *)(uintptr_t)old);
    if (other) return session_fail(s, DGC_MISMATCH, "%s: both %s and %s would be %s", path, other, old, new);
    c->entries[i].name = new;
  }
  for (int i = 0; *renames; i++) {
    size_t len = strcspn(renames, ":");
    if (!used[i])
      diag_warning(&s->diags, LOC_NONE, "%s: `%.*s` renames nothing: no name in it begins with that", path,
                   (int)len, renames);
    renames += len + (renames[len] == ':');
  }
  return DGC_OK;
}

/* --- values --- */

static bool same_shape(const struct type *a, const struct type *b) {
  struct type c = *a;
  c.dtype = b->dtype;
  return type_equal(&c, b);
}

static bool converts(const struct type *from, const struct type *to) {
  bool floats = dtype_is_float((enum dtype)from->dtype) && dtype_is_float((enum dtype)to->dtype);
  return same_shape(from, to) && (from->dtype == to->dtype || floats);
}

/* The tensor in the type of the variable, if that holds all of it. */
static enum dgc_status convert(struct dgc_session *s, struct checkpoint_entry *e, const struct type *to,
                               const char *path) {
  if (e->type.dtype == to->dtype) return DGC_OK;
  void *data = arena_alloc(s->call, (size_t)type_bytes(to) + 1);
  int64_t wrong =
      convert_numbers((enum dtype)to->dtype, data, (enum dtype)e->type.dtype, e->data, type_count(to));
  if (wrong >= 0)
    return session_fail(s, DGC_MISMATCH,
                        "%s: number %lld of %s is %.9g, which does not fit into the %s of model %s", path,
                        (long long)wrong, e->name, ((const double *)e->data)[wrong],
                        dtype_name((enum dtype)to->dtype), s->model->name);
  e->data = data;
  e->type = *to;
  return DGC_OK;
}

/* What only training needs begins anew, whatever the file has of it. */
static bool is_model(const struct dgc_session *s, const char *name) {
  const struct graph *g = entry_source(s, ENTRY_INIT);
  const struct node *n = g ? graph_find(g, name) : NULL;
  return n && n->op == OP_variable && !node_attr(n, ATTR_slot) && strcmp(name, STEP_VARIABLE) != 0;
}

static enum dgc_status load(struct dgc_session *s, struct checkpoint *c, const char *path,
                            struct map *loaded) {
  struct model_variable *all;
  int count = store_model_variables(s->values->store, s->call, &all);
  struct named_so_far unfit = {str_make(s->call), 0}, unused = {str_make(s->call), 0};
  struct map used = map_make(s->call);
  int good = 0;
  for (int i = 0; i < count; i++) {
    const struct model_variable *v = &all[i];
    struct checkpoint_entry *e = (struct checkpoint_entry *)(uintptr_t)checkpoint_find(c, v->name);
    if (!e) continue;
    map_put(&used, v->name, c);
    if (!is_model(s, v->name)) continue;
    if (!converts(&e->type, &v->type)) {
      add_name(&unfit, arena_printf(s->call, "%s (%s there, %s here)", v->name,
                                    checkpoint_type_text(s->call, e), type_text(s->call, &v->type)));
      continue;
    }
    enum dgc_status status = convert(s, e, &v->type, path);
    if (status) return status;
    if (!model_variable_restore(s->values->store, v, c)) return session_device_failed(s);
    map_put(loaded, v->name, c);
    good++;
  }
  for (int i = 0; i < c->count; i++)
    if (!map_get(&used, c->entries[i].name)) add_name(&unused, c->entries[i].name);
  if (!store_broadcast(s->values->store)) return session_device_failed(s);
  diag_note(&s->diags, LOC_NONE, "%s: %d variable%s loaded", path, good, good == 1 ? " is" : "s are");
  say(s, path, "of another shape or type, and not loaded", &unfit);
  say(s, path, "the model has no variable of this name", &unused);
  if (good && !c->checksum && unused.count) names_help(s, c, all, count);
  if (good) return DGC_OK;
  session_fail(s, DGC_MISMATCH, "%s: nothing in it fits a variable of model %s", path, s->model->name);
  names_help(s, c, all, count);
  return DGC_MISMATCH;
}

static enum dgc_status load_file(struct dgc_session *s, const char *value, struct map *loaded) {
  const char *renames, *path = split(s, value, &renames);
  struct checkpoint *c = checkpoint_load(s->call, path, &s->diags);
  if (!c) return session_unread(s);
  enum dgc_status status = names_apply(s, c, path);
  if (!status) status = rename_all(s, c, path, renames);
  return status ? status : load(s, c, path, loaded);
}

/* Those that begin as the model says. */
static void say_rest(struct dgc_session *s, const struct map *loaded) {
  struct model_variable *all;
  int count = store_model_variables(s->values->store, s->call, &all);
  struct named_so_far rest = {str_make(s->call), 0};
  for (int i = 0; i < count; i++)
    if (is_model(s, all[i].name) && !map_get(loaded, all[i].name)) add_name(&rest, all[i].name);
  say(s, "init-from", "these begin as the model says", &rest);
}

/* Of all values that were loaded, so that processes can tell that theirs are the same. */
static uint64_t digest(const struct map *loaded) {
  struct xxh64 h;
  xxh64_init(&h);
  for (uint32_t i = 0; i < loaded->count; i++) {
    const struct checkpoint_entry *e = checkpoint_find(loaded->entries[i].value, loaded->entries[i].key);
    xxh64_add(&h, e->name, strlen(e->name));
    xxh64_add(&h, e->data, (size_t)type_bytes(&e->type));
  }
  return xxh64_end(&h);
}

enum dgc_status session_init_from(struct dgc_session *s) {
  const struct list *files = &s->options.init_from;
  struct map loaded = map_make(s->call);
  enum dgc_status status = DGC_OK;
  if (!files->count || s->values->seeds) return DGC_OK;
  if (s->restored->any || s->position.step) {
    diag_note(&s->diags, LOC_NONE, "init-from is for first values: this training goes on from step %lld",
              (long long)s->position.step);
    return DGC_OK;
  }
  for (int i = 0; i < files->count && !status; i++) status = load_file(s, files->items[i], &loaded);
  if (!status) status = session_starts(s, &loaded, "init-from");
  if (status) return status;
  if (!store_broadcast(s->values->store)) return session_device_failed(s);
  say_rest(s, &loaded);
  s->values->seeds = arena_printf(s->arena, "%016llx", (unsigned long long)digest(&loaded));
  return DGC_OK;
}

static enum dgc_status begin(struct dgc_session *s) {
  enum dgc_status status = session_alone(s);
  if (!status) session_say_anew(s);
  if (status || !s->options.init_from.count) return status;
  status = session_ready(s, ENTRY_TRAIN);
  return status ? status : session_init_from(s);
}

enum dgc_status dgc_begin(struct dgc_session *s) { CALL(s, begin(s)); }
