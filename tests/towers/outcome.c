/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/towers/outcome.h"

#include "ir/ops/op_id.h"
#include "tests/support/elements.h"
#include "tests/support/random.h"

#include <math.h>
#include <string.h>

struct bank_slot {
  uint64_t hash;
  uint32_t number; /* 0: empty */
};

struct bank bank_make(struct arena *a, bool wide) {
  return (struct bank){.arena = a, .wide = wide};
}

/* The slot of this hash, or the free one where it belongs; `used` slots of `*room` are taken. */
static struct bank_slot *find_slot(struct arena *a, struct bank_slot **slots, uint32_t *room, uint32_t used,
                                   uint64_t hash) {
  if (2 * used >= *room) {
    uint32_t more = *room ? 2 * *room : 1024;
    struct bank_slot *wider = arena_new_array(a, more, struct bank_slot);
    for (uint32_t i = 0; i < *room; i++) {
      if (!(*slots)[i].number) continue;
      uint32_t k = (uint32_t)((*slots)[i].hash % more);
      while (wider[k].number) k = (k + 1) % more;
      wider[k] = (*slots)[i];
    }
    *slots = wider;
    *room = more;
  }
  uint32_t k = (uint32_t)(hash % *room);
  while ((*slots)[k].number && (*slots)[k].hash != hash) k = (k + 1) % *room;
  return &(*slots)[k];
}

static uint64_t hash_type(uint64_t h, const struct type *t) {
  h = str_hash(h, (uint8_t[2]){t->dtype, t->rank}, 2);
  return str_hash(h, t->dim, sizeof *t->dim * t->rank);
}

/* Eight bytes at a time: tensors are large. */
static uint64_t hash_bytes(uint64_t h, const char *data, size_t len) {
  for (; len >= 8; data += 8, len -= 8) {
    uint64_t word;
    memcpy(&word, data, 8);
    h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 29;
  }
  return str_hash(h, data, len);
}

static uint32_t number_of(struct bank *b, const struct tensor *t) {
  uint64_t h = hash_bytes(hash_type(STR_HASH_SEED, &t->type), t->data, (size_t)type_bytes(&t->type));
  struct bank_slot *slot = find_slot(b->arena, &b->values, &b->value_slots, b->nvalues, h);
  if (slot->number) return slot->number;
  if ((b->nvalues & (b->nvalues + 1)) == 0) { /* full: 1, 3, 7 ... */
    struct tensor *more = arena_new_array(b->arena, 2 * (size_t)b->nvalues + 1, struct tensor);
    if (b->nvalues) memcpy(more, b->tensors, sizeof *more * b->nvalues);
    b->tensors = more;
  }
  b->tensors[b->nvalues++] = *t;
  *slot = (struct bank_slot){h, b->nvalues};
  return b->nvalues;
}

/* ---- nodes ---- */

static struct type type_in(const struct bank *b, struct type t) {
  if (b->wide && t.dtype == DT_F32) t.dtype = DT_F64;
  return t;
}

static uint64_t hash_body(uint64_t h, const struct graph *body) {
  struct arena *scratch = arena_create();
  struct str s = str_make(scratch);
  graph_print(&s, body);
  h = str_hash(h, s.data, s.len);
  arena_destroy(scratch);
  return h;
}

static uint64_t hash_node(const struct node *n, const uint32_t *in) {
  uint64_t h = hash_type(str_hash(STR_HASH_SEED, &n->op, sizeof n->op), &n->type);
  for (int i = 0; i < n->nattrs; i++) {
    const struct attr *a = &n->attrs[i];
    h = str_hash(h, &a->key, sizeof a->key);
    switch (attr_kind_of(a->key)) {
    case ATTR_INT: h = str_hash(h, &a->i, sizeof a->i); break;
    case ATTR_FLOAT: h = str_hash(h, &a->f, sizeof a->f); break;
    case ATTR_STRING: h = str_hash(h, a->string, strlen(a->string) + 1); break;
    case ATTR_INTS: h = str_hash(h, a->ints, sizeof *a->ints * (size_t)a->count); break;
    case ATTR_DATA: h = hash_bytes(h, a->data, (size_t)a->count); break;
    case ATTR_BODY: h = hash_body(h, a->body); break;
    }
  }
  for (int k = 0; k < n->ninputs; k++) h = str_hash(h, &in[k], sizeof *in);
  return h;
}

static const void *wide_data(struct arena *a, const struct attr *attr) {
  double *wide = arena_array(a, (size_t)attr->count / 4, sizeof *wide);
  for (int i = 0; i < attr->count / 4; i++) wide[i] = ((const float *)attr->data)[i];
  return wide;
}

/* Whose results n is one of, of which the first is a node's value, and which of them. */
static const struct node *maker_of(const struct node *n, int *which) {
  *which = n->op == OP_output ? (int)node_int(n, ATTR_index) : 0;
  return *which ? n->inputs[0] : n;
}

/* All results of n up to this one, which is put into `out`. */
static bool results_up_to(struct bank *b, const struct node *n, const struct tensor *in, int which,
                          struct tensor *out) {
  struct arena *scratch = arena_create();
  struct tensor *all = arena_array(scratch, (size_t)which + 1, sizeof *all);
  for (int i = 0; i <= which; i++) {
    struct type t = node_result_type(n, i);
    all[i] = (struct tensor){t, arena_alloc(b->arena, (size_t)type_bytes(&t))};
  }
  bool ok = results_eval(n, in, all, which + 1, 0);
  *out = all[which];
  arena_destroy(scratch);
  return ok;
}

/* The number of result `which` of n, 0 if it cannot be computed. */
static uint32_t compute(struct bank *b, const struct node *n, int which, const uint32_t *in) {
  if (b->wide && n->op == OP_scan) return 0; /* bodies are as they are */
  uint64_t hash = str_hash(hash_node(n, in), &which, sizeof which);
  struct bank_slot *slot = find_slot(b->arena, &b->nodes, &b->node_slots, b->nnodes, hash);
  if (slot->number) return slot->number;
  struct node w = *n;
  struct arena *scratch = arena_create();
  struct tensor *operands = arena_array(scratch, (size_t)n->ninputs + 1, sizeof *operands);
  struct node *inputs = arena_array(scratch, (size_t)n->ninputs + 1, sizeof *inputs);
  w.inputs = arena_array(scratch, (size_t)n->ninputs + 1, sizeof *w.inputs);
  for (int k = 0; k < n->ninputs; k++) {
    operands[k] = b->tensors[in[k] - 1];
    inputs[k] = *n->inputs[k];
    inputs[k].type = operands[k].type;
    w.inputs[k] = &inputs[k];
  }
  w.type = type_in(b, n->type);
  struct attr *attrs = arena_copy(scratch, n->attrs, sizeof *attrs * (size_t)n->nattrs);
  w.attrs = attrs;
  if (n->op == OP_constant && w.type.dtype != n->type.dtype) {
    attrs[0].data = wide_data(scratch, &n->attrs[0]);
    attrs[0].count *= 2;
  }
  struct tensor out = {w.type, NULL};
  if (!which) out.data = arena_alloc(b->arena, (size_t)type_bytes(&w.type));
  bool ok = which ? results_up_to(b, &w, operands, which, &out) : node_eval(&w, operands, &out, 0);
  uint32_t number = ok ? number_of(b, &out) : 0;
  arena_destroy(scratch);
  if (!number) return 0;
  *slot = (struct bank_slot){hash, number};
  b->nnodes++;
  return number;
}

/* ---- what a step begins with ---- */

static double draw(struct rng *r, const struct node *n, int64_t column) {
  enum dtype d = (enum dtype)n->type.dtype;
  if (n->op == OP_variable) return dtype_is_float(d) ? rng_uniform(r, 0.01, 1) : rng_below(r, 5);
  if (strcmp(n->name, "line") == 0) return column == 0 ? '1' + rng_below(r, 3) : 'a' + rng_below(r, 6);
  if (strcmp(n->name, "label") == 0) return rng_below(r, dtype_is_float(d) ? 2 : 10);
  if (d == DT_U8) return rng_chance(r, 60) ? 0 : rng_below(r, 256);
  return dtype_is_float(d) ? rng_uniform(r, -1, 1) : rng_below(r, 4);
}

static uint32_t draw_value(struct bank *b, const struct node *n, uint64_t seed) {
  struct rng r = {seed};
  struct type t = type_in(b, n->type);
  struct tensor x = {t, arena_alloc(b->arena, (size_t)type_bytes(&t))};
  int64_t count = type_count(&t), width = 1;
  for (int i = 1; i < t.rank; i++) width *= t.dim[i];
  for (int64_t k = 0; k < count; k++) {
    double value = draw(&r, n, k % width);
    tensor_set(&x, k, b->wide ? (double)(float)value : value);
  }
  return number_of(b, &x);
}

static uint32_t first_value(struct bank *b, const struct node *n, int which) {
  const char *copy = n->op == OP_variable ? strstr(n->name, "/replica_") : NULL;
  uint64_t seed =
      str_hash(STR_HASH_SEED + (uint64_t)which, n->name, copy ? (size_t)(copy - n->name) : strlen(n->name));
  uint64_t hash = hash_type(str_hash(seed, &n->op, sizeof n->op), &n->type);
  struct bank_slot *slot = find_slot(b->arena, &b->nodes, &b->node_slots, b->nnodes, hash);
  if (!slot->number) {
    *slot = (struct bank_slot){hash, draw_value(b, n, seed)};
    b->nnodes++;
  }
  return slot->number;
}

static void put(struct arena *a, struct outcome *o, const char *key, uint32_t number) {
  map_put(&o->numbers, key, arena_copy(a, &number, sizeof number));
}

/* What a variable is besides its elements. */
static const char *variable_text(struct arena *a, const struct node *n) {
  struct str s = str_make(a);
  str_printf(&s, "variable %s", n->name);
  for (int i = 0; i < n->nattrs; i++) {
    str_printf(&s, " %s=", attr_name(n->attrs[i].key));
    if (attr_kind_of(n->attrs[i].key) == ATTR_STRING)
      str_put(&s, n->attrs[i].string);
    else
      str_printf(&s, "%lld", (long long)n->attrs[i].i);
  }
  return s.data;
}

/* ---- steps ---- */

static bool one_step(struct arena *a, struct bank *b, const struct graph *g, const uint8_t *live, int which,
                     uint32_t *state, uint32_t *values, struct outcome *o) {
  int most = 1;
  for (uint32_t i = 0; i < g->count; i++)
    if (g->nodes[i]->ninputs > most) most = g->nodes[i]->ninputs;
  uint32_t *in = arena_array(a, (size_t)most, sizeof *in);
  for (uint32_t i = 0; i < g->count; i++) {
    int result;
    const struct node *n = maker_of(g->nodes[i], &result);
    if (!live[i]) continue;
    for (int k = 0; k < n->ninputs; k++) in[k] = values[n->inputs[k]->id];
    values[i] = n->op == OP_input      ? first_value(b, n, which)
                : n->op == OP_variable ? state[i]
                                       : compute(b, n, result, in);
    if (values[i]) continue;
    o->uncomputed = n->name;
    return false;
  }
  for (uint32_t i = 0; i < g->count; i++)
    if (live[i] && g->nodes[i]->op == OP_assign) state[g->nodes[i]->inputs[0]->id] = values[i];
  return true;
}

struct outcome outcome_of(struct arena *a, struct bank *b, const struct graph *g) {
  struct outcome o = {.numbers = map_make(a)};
  const uint8_t *live = graph_live(a, g);
  uint32_t *state = arena_array(a, (size_t)g->count + 1, sizeof *state);
  uint32_t *values = arena_array(a, (size_t)g->count + 1, sizeof *values);
  for (int which = 0; which < OUTCOME_INPUTS; which++) {
    for (uint32_t i = 0; i < g->count; i++)
      if (g->nodes[i]->op == OP_variable) state[i] = first_value(b, g->nodes[i], which);
    for (uint32_t i = 0; i < g->count; i++)
      if (g->nodes[i]->op == OP_variable)
        put(a, &o, arena_printf(a, "first %d, %s", which, variable_text(a, g->nodes[i])), state[i]);
    for (int step = 0; step < OUTCOME_STEPS; step++) {
      if (!one_step(a, b, g, live, which, state, values, &o)) return o;
      for (int i = 0; i < g->noutputs; i++) {
        const struct output *out = &g->outputs[i];
        if (out->role == OUTPUT_UPDATE) continue;
        put(a, &o,
            arena_printf(a, "input %d, step %d, %d %s / %lld", which, step, (int)out->role, out->name,
                         (long long)out->count),
            values[out->node->id]);
      }
      for (uint32_t i = 0; i < g->count; i++)
        if (g->nodes[i]->op == OP_variable)
          put(a, &o, arena_printf(a, "input %d, step %d, %s", which, step, variable_text(a, g->nodes[i])),
              state[i]);
    }
  }
  return o;
}

/* ---- comparing ---- */

/* Of two wide tensors, by the size of the larger elements. */
static bool nearly_equal(const struct tensor *x, const struct tensor *y) {
  if (!type_equal(&x->type, &y->type) || x->type.dtype != DT_F64) return false;
  const double *p = x->data, *q = y->data;
  double off = 0, size = 1e-3;
  for (int64_t i = 0; i < type_count(&x->type); i++) {
    if (isnan(p[i]) != isnan(q[i])) return false;
    if (isnan(p[i]) || p[i] == q[i]) continue;
    if (!(fabs(p[i] - q[i]) <= off)) off = fabs(p[i] - q[i]);
    if (fabs(p[i]) > size) size = fabs(p[i]);
  }
  return off <= 1e-9 * size;
}

static bool same_number(const struct bank *b, uint32_t x, uint32_t y) {
  return x == y || (b->wide && nearly_equal(&b->tensors[x - 1], &b->tensors[y - 1]));
}

/* The key's value; of a variable that is not there, what it begins with in `other`. */
static uint32_t value_of(struct arena *a, const struct outcome *o, const struct outcome *other,
                         const char *key) {
  const uint32_t *number = map_get(&o->numbers, key);
  const char *variable = strstr(key, ", variable ");
  const char *bare = variable ? variable + strlen(", variable ") : NULL;
  if (number || !bare) return number ? *number : 0;
  size_t len = strcspn(bare, " ");
  for (uint32_t i = 0; i < o->numbers.count; i++) { /* there, but it is another kind of variable */
    const char *at = strstr(o->numbers.entries[i].key, ", variable ");
    if (at && strncmp(at + strlen(", variable "), bare, len) == 0 &&
        strcspn(at + strlen(", variable "), " ") == len)
      return 0;
  }
  const char *which = key + strcspn(key, "0123456789");
  number = map_get(&other->numbers,
                   arena_printf(a, "first %.*s%s", (int)strspn(which, "0123456789"), which, variable));
  return number ? *number : 0;
}

static const char *missing(struct arena *a, const struct bank *b, const struct outcome *want,
                           const struct outcome *have) {
  for (uint32_t i = 0; i < want->numbers.count; i++) {
    const char *key = want->numbers.entries[i].key;
    uint32_t have_it = value_of(a, have, want, key);
    if (have_it && same_number(b, *(const uint32_t *)want->numbers.entries[i].value, have_it)) continue;
    return arena_printf(a, "%s %s", key, have_it ? "differs" : "is not there");
  }
  return NULL;
}

const char *outcome_difference(struct arena *a, const struct bank *b, const struct outcome *want,
                               const struct outcome *have) {
  if (have->uncomputed) return arena_printf(a, "%s cannot be computed", have->uncomputed);
  const char *what = missing(a, b, want, have);
  return what ? what : missing(a, b, have, want);
}
