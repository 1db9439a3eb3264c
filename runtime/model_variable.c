/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of the model, from what the store has of them. */
#include "runtime/model_variable.h"

#include "ir/ops/op.h"
#include "ir/ops/op_id.h"

#include <stdlib.h>
#include <string.h>

/* One variable, as far as it can be ordered: by the model's name, then by the number of the part or tower. */
struct named_variable {
  const char *name;
  struct stored_variable *variable;
};

static int by_name(const void *a, const void *b) {
  const struct named_variable *x = a, *y = b;
  int order = strcmp(x->name, y->name);
  return order ? order : x->variable->identity.number - y->variable->identity.number;
}

/* ---- what is stored in 16 bits ---- */

static bool is_narrow(const struct stored_variable *p) { return dtype_is_narrow(p->type.dtype); }

static struct type wide_type(const struct stored_variable *p) {
  return is_narrow(p) ? type_with_dtype(p->type, DT_F32) : p->type;
}

static size_t wide_bytes(const struct stored_variable *p) {
  struct type t = wide_type(p);
  return (size_t)type_bytes(&t);
}

/* As the op that rounds to `d` does: what is subnormal in bfloat16 is zero. */
static uint16_t near(enum dtype d, float x) { return d == DT_F16 ? f16_of_f32(x) : bf16_of_f32(x); }

static bool read_part(const struct store *s, const struct stored_variable *p, void *out) {
  if (!is_narrow(p)) return store_read(s, p, out);
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  int64_t count = type_count(&p->type);
  uint16_t *halves = arena_new_array(a, (size_t)count, uint16_t);
  bool good = store_read(s, p, halves);
  for (int64_t i = 0; good && i < count; i++) ((float *)out)[i] = half_to_float(p->type.dtype, halves[i]);
  arena_destroy_guarded(a, &guard);
  return good;
}

static bool write_part(struct store *s, struct stored_variable *p, const void *data) {
  enum dtype d = p->identity.storage;
  if (d == DT_F32) return store_write(s, p, data);
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  int64_t count = type_count(&p->type);
  void *rounded = arena_alloc(a, wide_bytes(p));
  for (int64_t i = 0; i < count; i++) {
    uint16_t half = near(d, ((const float *)data)[i]);
    if (is_narrow(p))
      ((uint16_t *)rounded)[i] = half;
    else
      ((float *)rounded)[i] = half_to_float(d, half);
  }
  bool good = store_write(s, p, rounded);
  arena_destroy_guarded(a, &guard);
  return good;
}

int store_model_variables(const struct store *s, struct arena *a, struct model_variable **out) {
  int count = store_count(s), n = 0, all = 0;
  struct named_variable *entries = arena_new_array(a, (size_t)count, struct named_variable);
  for (int i = 0; i < count; i++) {
    struct stored_variable *v = store_at(s, i);
    if (store_primary(s, v)) continue;
    entries[n++] = (struct named_variable){v->identity.of ? arena_strdup(a, v->identity.of) : v->name, v};
  }
  if (n) qsort(entries, (size_t)n, sizeof *entries, by_name);
  struct stored_variable **parts = arena_new_array(a, (size_t)n, struct stored_variable *);
  *out = arena_new_array(a, (size_t)n, struct model_variable);
  for (int i = 0; i < n; i++) {
    struct stored_variable *v = parts[i] = entries[i].variable;
    struct model_variable *last = all ? &(*out)[all - 1] : NULL;
    if (v->identity.number > 0 && last && strcmp(last->name, entries[i].name) == 0) {
      if (v->identity.role == VARIABLE_PART) {
        last->type.dim[0] += v->type.dim[0];
        last->bytes += wide_bytes(v);
      }
      last->nparts++;
    } else
      (*out)[all++] = (struct model_variable){.name = entries[i].name,
                                              .type = wide_type(v),
                                              .bytes = wide_bytes(v),
                                              .storage = v->identity.storage,
                                              .parts = &parts[i],
                                              .nparts = 1,
                                              .joins = v->identity.joins};
  }
  return all;
}

/* All copies as one: the tree over the towers that a graph would compute. */
static bool read_joined(const struct store *s, const struct model_variable *v, void *out) {
  bool good = true;
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  struct tensor *in = arena_new_array(a, (size_t)v->nparts, struct tensor), result = {v->type, out};
  for (int i = 0; good && i < v->nparts; i++) {
    in[i] = (struct tensor){v->type, arena_alloc(a, v->bytes)};
    good = store_read(s, v->parts[i], in[i].data);
  }
  struct attr how = {.key = ATTR_reduction, .string = v->joins};
  struct node n = {.op = OP_all_reduce, .type = v->type, .ninputs = v->nparts, .nattrs = 1, .attrs = &how};
  good = good && node_eval(&n, in, &result, 0);
  arena_destroy_guarded(a, &guard);
  return good;
}

/* To each copy the value; of a sum its share: an equal one, or of integers all to the first. */
static bool write_joined(struct store *s, const struct model_variable *v, const void *data) {
  bool good = true, sum = strcmp(v->joins, "sum") == 0, whole = !dtype_is_float((enum dtype)v->type.dtype);
  int64_t count = type_count(&v->type);
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  void *share = arena_alloc(a, v->bytes);
  if (!sum || v->nparts == 1) memcpy(share, data, v->bytes);
  for (int64_t i = 0; sum && !whole && i < count; i++)
    if (v->type.dtype == DT_F32)
      ((float *)share)[i] = ((const float *)data)[i] / (float)v->nparts;
    else
      ((double *)share)[i] = ((const double *)data)[i] / v->nparts;
  for (int i = 0; good && i < v->nparts; i++)
    good = store_write(s, v->parts[i], sum && whole && i == 0 ? data : share);
  arena_destroy_guarded(a, &guard);
  return good;
}

bool model_variable_read(const struct store *s, const struct model_variable *v, void *out) {
  if (v->joins) return read_joined(s, v, out);
  char *to = out;
  for (int i = 0; i < v->nparts; i++) {
    if (!read_part(s, v->parts[i], to)) return false;
    to += wide_bytes(v->parts[i]);
  }
  return true;
}

bool model_variable_write(struct store *s, const struct model_variable *v, const void *data) {
  if (v->joins) return write_joined(s, v, data);
  const char *from = data;
  for (int i = 0; i < v->nparts; i++) {
    if (!write_part(s, v->parts[i], from)) return false;
    from += wide_bytes(v->parts[i]);
  }
  return true;
}

static const char *copy_name(struct arena *a, const struct model_variable *v, int tower) {
  return arena_printf(a, "tower_%d/%s", tower, v->name);
}

struct checkpoint *model_variables_save(const struct store *s, struct arena *a,
                                        const struct model_variable *all, int count) {
  int n = count;
  for (int i = 0; i < count; i++) n += all[i].joins && all[i].nparts > 1 ? all[i].nparts : 0;
  struct checkpoint *c = arena_new(a, struct checkpoint);
  c->entries = arena_new_array(a, (size_t)n, struct checkpoint_entry);
  for (int i = 0; i < count; i++) {
    void *data = arena_alloc(a, all[i].bytes);
    if (!model_variable_read(s, &all[i], data)) return NULL;
    c->entries[c->count++] = (struct checkpoint_entry){
        .name = arena_strdup(a, all[i].name), .type = all[i].type, .data = data, .storage = all[i].storage};
  }
  for (int i = 0; i < count; i++)
    for (int k = 0; all[i].joins && all[i].nparts > 1 && k < all[i].nparts; k++) {
      const struct stored_variable *copy = all[i].parts[k];
      void *data = arena_alloc(a, copy->bytes);
      if (!store_read(s, copy, data)) return NULL;
      c->entries[c->count++] = (struct checkpoint_entry){
          .name = copy_name(a, &all[i], copy->identity.number), .type = copy->type, .data = data};
    }
  return c;
}

/* Writes the copies of `c`. False if they are not as many, or if what they are read as is not `data`. */
static bool write_copies(struct store *s, struct arena *a, const struct model_variable *v,
                         const struct checkpoint *c, const void *data, bool *good) {
  if (!v->joins || v->nparts < 2) return false;
  int last = v->parts[v->nparts - 1]->identity.number;
  if (checkpoint_find(c, copy_name(a, v, last + 1))) return false;
  for (int i = 0; i < v->nparts; i++) {
    const struct checkpoint_entry *e = checkpoint_find(c, copy_name(a, v, v->parts[i]->identity.number));
    if (!e || !type_equal(&e->type, &v->type)) return false;
    *good = store_write(s, v->parts[i], e->data);
    if (!*good) return false;
  }
  void *joined = arena_alloc(a, v->bytes);
  *good = read_joined(s, v, joined);
  return *good && memcmp(joined, data, v->bytes) == 0;
}

bool model_variable_restore(struct store *s, const struct model_variable *v, const struct checkpoint *c) {
  const void *data = checkpoint_find(c, v->name)->data;
  bool good = true;
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  bool done = write_copies(s, a, v, c, data, &good);
  arena_destroy_guarded(a, &guard);
  return done || (good && model_variable_write(s, v, data));
}
