/* SPDX-License-Identifier: Apache-2.0 */
/* Random placed graphs, and what they compute by node_eval. Arithmetic is done in i32, which wraps: so results do
 * not depend on the order of sums, and must agree to the bit. */
#ifndef DGC_TESTS_PLAN_RANDOM_H
#define DGC_TESTS_PLAN_RANDOM_H

#include "ir/graph/build.h"
#include "ir/ops/op_id.h"
#include "plan_run.h"

struct random_graph {
  struct graph *g;
  uint64_t random;
  struct node *pool[600];
  int count, ndevices, nvariables;
  bool splits;   /* which no mirrored value is, for the verifier */
  bool together; /* sums of several devices, whose shares the verifier would want to be shares */
  struct node *variables[8];
};

static inline int below(struct random_graph *r, int n) { return random_below(&r->random, n); }

static inline int64_t random_dim(struct random_graph *r) {
  static const int64_t dims[] = {0, 1, 1, 2, 3, 4, 5, 7, 17, 20};
  return dims[below(r, 60) == 0 ? 0 : 1 + below(r, 9)];
}

static inline struct type random_type(struct random_graph *r, enum dtype d, int max_rank) {
  struct type t = {.dtype = (uint8_t)d, .rank = (uint8_t)below(r, max_rank + 1)};
  for (int i = 0; i < t.rank; i++) t.dim[i] = random_dim(r);
  return t;
}

static inline bool one_memory(const struct random_graph *r, int a, int b) {
  const struct device *devices = r->g->config.target.devices;
  return devices[a].memory == devices[b].memory;
}

/* x on the device that is being built for. */
static inline struct node *bring(struct random_graph *r, struct node *x) {
  int device = r->g->at.device;
  if (x->device == device) return x;
  struct attr alias = attr_int(ATTR_alias, 1);
  bool moves = (x->id + (uint32_t)device) % 3 == 0 || !one_memory(r, x->device, device);
  return build(r->g, OP_copy, 1, &x, !moves, &alias, NULL);
}

static inline struct node *pick(struct random_graph *r) {
  int recent = r->count > 12 && below(r, 3) ? r->count - 12 : 0;
  return bring(r, r->pool[recent + below(r, r->count - recent)]);
}

static inline struct node *pick_like(struct random_graph *r, const struct type *t) {
  for (int tries = 0; tries < 40; tries++) {
    struct node *x = r->pool[below(r, r->count)];
    if (type_equal(&x->type, t)) return bring(r, x);
  }
  if (t->dtype == DT_BOOL)
    return build2(r->g, OP_lt, build_fill(r->g, &(struct type){.dtype = DT_I32}, 1),
                  build_fill(r->g, &(struct type){.dtype = DT_I32}, 2));
  return build_fill(r->g, t, below(r, 7) - 3);
}

static inline struct node *random_elementwise(struct random_graph *r) {
  static const enum op_id unary[] = {OP_neg, OP_abs, OP_sign, OP_square, OP_identity};
  static const enum op_id binary[] = {OP_add, OP_sub, OP_mul, OP_max, OP_min, OP_add};
  struct graph *g = r->g;
  struct node *x = pick(r);
  if (x->type.dtype == DT_BOOL) {
    if (below(r, 2)) return build_cast(g, x, DT_I32);
    struct type t = type_with_dtype(x->type, DT_I32);
    return build3(g, OP_select, x, pick_like(r, &t), pick_like(r, &t));
  }
  if (x->type.dtype == DT_F32 && below(r, 4) == 0)
    return build1(g, OP_exp, build1(g, OP_neg, build1(g, OP_abs, x)));
  switch (below(r, 8)) {
  case 0:
  case 1: return build1(g, unary[below(r, 5)], x);
  case 2: return build_cast(g, x, x->type.dtype == DT_I32 ? DT_F32 : DT_I32);
  case 3: return build2(g, OP_lt, x, pick_like(r, &x->type));
  case 4: return build2(g, OP_mul, x, build_fill(g, &x->type, below(r, 9) - 4));
  default: {
    struct node *y = pick_like(r, &x->type);
    return y->type.rank == x->type.rank ? build2(g, binary[below(r, 6)], x, y) : x;
  }
  }
}

static inline struct node *random_movement(struct random_graph *r) {
  struct graph *g = r->g;
  struct node *x = pick(r);
  struct type t = x->type;
  int64_t ints[MAX_RANK] = {0}, more[MAX_RANK] = {0};
  switch (below(r, 6)) {
  case 0: /* transpose */
    for (int i = 0; i < t.rank; i++) {
      int k = below(r, i + 1);
      ints[i] = ints[k];
      ints[k] = i;
    }
    return build_transpose(g, x, ints);
  case 1: /* broadcast */
    if (t.rank >= 3) return x;
    t.rank = 0;
    for (int i = 0; i <= x->type.rank; i++) {
      if (below(r, 2)) t.dim[t.rank++] = random_dim(r);
      if (i == x->type.rank) break;
      ints[i] = t.rank;
      t.dim[t.rank++] = x->type.dim[i];
    }
    return type_count(&t) > 4000 ? x : build_broadcast(g, x, &t, ints);
  case 2: /* slice */
    for (int i = 0; i < t.rank; i++) {
      if (t.dim[i] < 2 || below(r, 3) == 0) continue;
      ints[i] = below(r, (int)t.dim[i]);
      t.dim[i] = 1 + below(r, (int)(t.dim[i] - ints[i]));
    }
    return build_slice(g, x, ints, &t);
  case 3: /* pad */
    if (t.dtype == DT_BOOL || type_count(&t) > 1000) return x;
    for (int i = 0; i < t.rank; i++) ints[i] = below(r, 3), more[i] = below(r, 2);
    struct type scalar = type_scalar((enum dtype)t.dtype);
    return build_pad(g, x, ints, more,
                     below(r, 2) ? pick_like(r, &scalar) : build_scalar(g, (enum dtype)t.dtype, 3));
  case 4: { /* concat */
    if (t.rank == 0 || type_count(&t) > 1000) return x;
    struct node *xs[3] = {x, pick_like(r, &t), x};
    return build_concat(g, 2 + below(r, 2), xs, below(r, t.rank));
  }
  default: /* reshape to one axis, or split rows off */
    if (t.rank && t.dim[0] > 1 && below(r, 2)) {
      int first = below(r, (int)t.dim[0]);
      struct attr offset = attr_int(ATTR_offset, first);
      t.dim[0] -= first;
      ints[0] = first;
      return r->splits ? build(g, OP_split, 1, &x, 1, &offset, &t) : build_slice(g, x, ints, &t);
    }
    t.dim[0] = type_count(&t);
    t.rank = 1;
    return build_reshape(g, x, &t);
  }
}

static inline struct node *random_reduction(struct random_graph *r) {
  static const enum op_id ops[] = {OP_reduce_sum, OP_reduce_max, OP_reduce_min, OP_reduce_prod,
                                   OP_reduce_sum};
  struct graph *g = r->g;
  struct node *x = pick(r);
  if (x->type.rank == 0 || x->type.dtype == DT_BOOL) return x;
  if (below(r, 4) == 0) {
    int axis = below(r, x->type.rank);
    if (x->type.dim[axis] > 0) return build_arg(g, below(r, 2) ? OP_argmax : OP_argmin, x, axis);
  }
  uint32_t axes = 1u + (uint32_t)below(r, (1 << x->type.rank) - 1);
  enum op_id op = ops[below(r, 5)];
  if (x->type.dtype == DT_F32 && (op == OP_reduce_sum || op == OP_reduce_prod)) op = OP_reduce_max;
  return build_reduce(g, op, x, axes);
}

static inline struct node *random_source(struct random_graph *r) {
  struct type t = random_type(r, below(r, 2) ? DT_I32 : DT_F32, 3);
  if (below(r, 2) && t.rank) return build_iota(r->g, &t, below(r, t.rank));
  t.dtype = DT_F32;
  return build_random(r->g, OP_random_uniform, &t, bring(r, r->variables[0]), 7, below(r, 1000));
}

static inline struct node *random_matmul(struct random_graph *r) {
  struct node *x = pick(r);
  if (x->type.rank < 2 || x->type.dtype != DT_I32) return x;
  int rank = x->type.rank;
  struct type t = x->type;
  t.dim[rank - 2] = x->type.dim[rank - 1];
  t.dim[rank - 1] = random_dim(r);
  return build_matmul(r->g, x, pick_like(r, &t), false, false);
}

/* Numbers of rows: most name one, some the same one, some none. */
static inline struct node *random_index(struct random_graph *r, int64_t rows) {
  struct type t = random_type(r, DT_I32, 2);
  struct node *x = pick(r);
  if (x->type.dtype != DT_I32 || x->type.rank > 2) x = pick_like(r, &t);
  if (x->type.rank && below(r, 2)) x = build2(r->g, OP_add, x, build_iota(r->g, &x->type, 0));
  return build2(r->g, OP_mod, x, build_fill(r->g, &x->type, rows > 0 ? (double)rows : 1));
}

static inline struct node *random_scatter(struct random_graph *r, struct node *x) {
  if (!x || x->type.rank == 0 || x->type.dtype != DT_I32) return x;
  struct node *index = random_index(r, x->type.dim[0]);
  struct type t = index->type;
  if (t.rank + x->type.rank - 1 > MAX_RANK) return x;
  for (int i = 1; i < x->type.rank; i++) t.dim[t.rank++] = x->type.dim[i];
  if (!type_valid(&t) || type_count(&t) > 8000) return x;
  return build3(r->g, OP_scatter_add, x, index, pick_like(r, &t));
}

static inline struct node *random_rows(struct random_graph *r) {
  struct node *x = pick(r);
  if (x->type.rank == 0) return x;
  if (below(r, 2)) return random_scatter(r, random_scatter(r, x));
  struct node *index = random_index(r, x->type.dim[0]);
  return index->type.rank + x->type.rank > MAX_RANK ? x : build2(r->g, OP_gather, x, index);
}

/* A sum that all devices make together, or those of a task, of shares of one type. All of them are read: none is
 * missing. */
static inline struct node *random_collective(struct random_graph *r) {
  struct graph *g = r->g;
  struct node *shares[8], *x = pick(r), *all = NULL;
  int devices[8], count = 0;
  bool all_tasks = below(r, 2);
  for (int d = 0; d < r->ndevices; d++)
    if (all_tasks || one_memory(r, d, g->at.device)) devices[count++] = d;
  if (count < 2 || x->type.dtype != DT_I32) return x;
  for (int i = 0; i < count; i++) {
    g->at.device = devices[i];
    shares[i] = pick_like(r, &x->type);
  }
  struct attr attrs[2] = {attr_string(ATTR_reduction, "sum"), attr_string(ATTR_by, "nccl")};
  for (int i = 0; i < count; i++) {
    g->at.device = devices[i];
    struct node *part = build(g, OP_all_reduce, count, shares, 2, attrs, NULL);
    r->pool[r->count++] = part;
    all = all ? build2(g, OP_add, part, bring(r, all)) : part;
  }
  graph_add_output(g, OUTPUT_VALUE, all->name, all, 0);
  return all;
}

static inline void random_node(struct random_graph *r) {
  r->g->at.device = below(r, r->ndevices);
  struct node *n;
  if (r->together && below(r, 8) == 0) {
    struct node *all = random_collective(r);
    r->pool[r->count++] = all;
    return;
  }
  int which = below(r, 22);
  if (which >= 20)
    n = random_rows(r);
  else if (which < 10)
    n = random_elementwise(r);
  else if (which < 15)
    n = random_movement(r);
  else if (which < 18)
    n = random_reduction(r);
  else if (which < 19)
    n = random_source(r);
  else
    n = random_matmul(r);
  if (n && type_count(&n->type) <= 8000) r->pool[r->count++] = n;
}

/* The value of variable i from the next step on: something of its type, perhaps another variable. */
static inline void random_update(struct random_graph *r, int i) {
  struct graph *g = r->g;
  struct node *v = r->variables[i];
  g->at.device = v->device;
  struct node *x;
  if (below(r, 3) == 0)
    x = bring(r, r->variables[1 + below(r, r->nvariables - 1)]);
  else
    x = pick_like(r, &v->type);
  if (!type_equal(&x->type, &v->type)) x = pick_like(r, &v->type);
  if (below(r, 2)) x = build2(g, OP_sub, x, v);
  for (int k = below(r, 5); k > 1; k--) x = random_scatter(r, k > 2 && x != v ? v : x); /* in place, or not */
  graph_add_output(g, OUTPUT_UPDATE, v->name, build_assign(g, v, x), 0);
}

static inline struct graph *random_graph_on(struct arena *a, uint64_t seed, int nodes, const char *devices,
                                            struct diags *d) {
  struct random_graph r = {.g = graph_create(a, "random", d),
                           .random = seed,
                           .splits = seed % 2,
                           .together = seed % 6 == 1 || seed % 6 == 5};
  struct graph *g = r.g;
  g->stage = STAGE_PLACED;
  g->config.batch = 4;
  g->config.towers = 1;
  target_parse(a, devices, &g->config.target, d, LOC_NONE);
  int ndevices = r.ndevices = g->config.target.ndevices;
  g->at.device = 0;
  g->at.dist = DIST_MIRRORED;
  g->at.why = (struct reason){.rule = "by chance"};
  struct type step = type_scalar(DT_I64);
  r.variables[r.nvariables++] = build_variable(g, "step", &step, false, false);
  struct type shared = random_type(&r, DT_I32, 2);
  for (int i = 1; i < 6; i++) {
    g->at.device = below(&r, ndevices);
    struct type t = below(&r, 2) ? shared : random_type(&r, DT_I32, 2);
    r.pool[r.count++] = r.variables[r.nvariables++] =
        build_variable(g, arena_printf(a, "v%d", i), &t, true, false);
  }
  for (int i = 0; i < 3; i++) {
    g->at.device = below(&r, ndevices);
    struct type t = random_type(&r, i ? DT_I32 : DT_F32, 3);
    r.pool[r.count++] = build_input(g, arena_printf(a, "x%d", i), &t);
  }
  for (int i = 0; i < nodes; i++) random_node(&r);
  for (int i = 1; i < r.nvariables; i++)
    if (below(&r, 4)) random_update(&r, i);
  for (int i = 0; i < 6; i++)
    graph_add_output(g, OUTPUT_VALUE, arena_printf(a, "o%d", i), r.pool[below(&r, r.count)], 0);
  for (int i = 0; i < 2 && !one_memory(&r, 0, ndevices - 1); i++) { /* every process wants them */
    g->at.device = below(&r, ndevices);
    struct node *x = pick(&r);
    if (x->type.dtype != DT_F32) x = build_cast(g, x, DT_F32);
    if (x->type.rank) x = build_reduce(g, OP_reduce_max, x, (1u << x->type.rank) - 1);
    graph_add_output(g, OUTPUT_METRIC, arena_printf(a, "m%d", i), x, 0);
  }
  return g;
}

static inline struct graph *random_graph(struct arena *a, uint64_t seed, int nodes, int ndevices,
                                         struct diags *d) {
  return random_graph_on(a, seed, nodes, arena_printf(a, "cpu:0-%d", ndevices - 1), d);
}

/* Something to begin with: small numbers that depend on the name. */
static inline struct tensor initial(struct arena *a, const struct node *n) {
  struct tensor t = {n->type, arena_alloc(a, (size_t)type_bytes(&n->type) + 1)};
  uint64_t state = str_hash(STR_HASH_SEED, n->name, strlen(n->name));
  for (int64_t i = 0; i < type_count(&n->type); i++) {
    int x = random_below(&state, 13) - 6;
    if (n->type.dtype == DT_F32)
      ((float *)t.data)[i] = (float)x / 2;
    else if (n->type.dtype == DT_I64)
      ((int64_t *)t.data)[i] = x + 8;
    else
      ((int32_t *)t.data)[i] = x;
  }
  return t;
}

/* The values of all nodes. */
static inline struct tensor *oracle(struct arena *a, const struct graph *g) {
  struct tensor *values = arena_new_array(a, g->count + 1, struct tensor);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (n->op == OP_input || n->op == OP_variable) {
      values[i] = initial(a, n);
      continue;
    }
    struct tensor *in = arena_new_array(a, (size_t)n->ninputs, struct tensor);
    for (int k = 0; k < n->ninputs; k++) in[k] = values[n->inputs[k]->id];
    values[i] = (struct tensor){n->type, arena_alloc(a, (size_t)type_bytes(&n->type) + 1)};
    if (!node_eval(n, in, &values[i], 0)) values[i].data = NULL;
  }
  return values;
}

#endif
