/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/graphs.h"

#include "ir/ops/op_id.h"
#include "tests/support/bound.h"

#include <string.h>

#define MAX_POOL      400
#define MOST_ELEMENTS 4000 /* of a value, the batch counted as 8 */

struct maker {
  struct rng rng;
  const struct model_options *o;
  struct graph *g;
  struct arena *arena;
  struct node *pool[MAX_POOL];
  int count;
  struct model *model;
  struct node *step, *first_row;
};

static int below(struct maker *m, int n) { return rng_below(&m->rng, n); }
static bool chance(struct maker *m, int percent) { return rng_chance(&m->rng, percent); }

static int64_t random_size(struct maker *m) {
  static const int64_t sizes[] = {0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 16, 17};
  return sizes[chance(m, 2) && !m->o->smooth ? 0 : 1 + below(m, m->o->smooth ? 6 : 11)];
}

static enum dtype random_dtype(struct maker *m) {
  static const enum dtype common[] = {DT_F32, DT_F32, DT_F32, DT_F64, DT_I32, DT_I64, DT_U8, DT_BOOL};
  return m->o->smooth ? DT_F64 : common[below(m, 8)];
}

static bool is_float(const struct node *x) { return dtype_is_float(x->type.dtype); }

static int64_t elements(const struct type *t) {
  int64_t count = type_count(t);
  return count < 0 ? -count * 8 : count;
}

static struct node *keep(struct maker *m, struct node *x) {
  if (x && m->count < MAX_POOL && elements(&x->type) <= MOST_ELEMENTS) m->pool[m->count++] = x;
  return x;
}

/* Numbers of a step; some are those of rows that have numbers. */
static struct node *draw(struct maker *m, enum op_id op, const struct type *t) {
  int seed = below(m, 5), stream = below(m, 1000);
  if (chance(m, 60)) return build_random(m->g, op, t, m->step, seed, stream);
  return build_random_rows(m->g, op, t, m->step, m->first_row, 1 + below(m, 100), seed, stream);
}

/* ---- picking operands ---- */

/* Newer values twice as often, so that chains grow. */
static struct node *pick(struct maker *m) {
  int from = chance(m, 50) && m->count > 8 ? m->count - 8 : 0;
  return m->pool[from + below(m, m->count - from)];
}

static struct node *pick_float(struct maker *m) {
  struct node *x = pick(m);
  for (int i = 0; i < 20 && !is_float(x); i++) x = pick(m);
  return is_float(x) ? x : build_cast(m->g, x, DT_F32);
}

/* x in the shape and dtype of t, if broadcasting can do it; NULL else. */
static struct node *fit(struct maker *m, struct node *x, const struct type *t) {
  struct type common;
  if (x->type.rank > t->rank || !broadcast_shape(&x->type, t, &common) || !shape_equal(&common, t))
    return NULL;
  if (x->type.dtype != t->dtype) {
    if (m->o->smooth) return NULL;
    x = build_cast(m->g, x, t->dtype);
  }
  return build_broadcast_to(m->g, x, t);
}

/* A value of this type, from the pool if possible. */
static struct node *like(struct maker *m, const struct type *t) {
  for (int i = 0; i < 12; i++) {
    struct node *x = pick(m), *y = fit(m, x, t);
    if (y) return y;
  }
  return build_fill(m->g, t, t->dtype == DT_U8 ? 3 : rng_uniform(&m->rng, -2, 2));
}

static int batch_axis(const struct node *x) { return type_batch_axis(&x->type); }

/* ---- steps ---- */

struct node *build_grid(struct graph *g, struct node *x) {
  if (!x || !dtype_is_float(x->type.dtype)) return x;
  struct node *finite = build1(g, OP_is_finite, x), *zero = build_fill(g, &x->type, 0);
  struct node *low = build2(g, OP_max, build3(g, OP_select, finite, x, zero), build_fill(g, &x->type, -8));
  struct node *near = build2(g, OP_min, low, build_fill(g, &x->type, 8));
  struct node *whole = build1(g, OP_round, build2(g, OP_mul, near, build_fill(g, &x->type, 16)));
  return build2(g, OP_mul, whole, build_fill(g, &x->type, 0.0625));
}

/* Most sums are of values on the grid: then nothing is uncertain. */
static struct node *summand(struct maker *m, struct node *x) {
  return m->o->smooth || chance(m, 10) ? x : build_grid(m->g, x);
}

static struct node *elementwise(struct maker *m) {
  struct node *x = pick(m);
  for (int tries = 0; tries < 40; tries++) {
    enum op_id op = (enum op_id)below(m, OP_COUNT);
    const struct op_info *info = op_table[op];
    enum dtype d = x->type.dtype;
    if (info->kind != KIND_ELEMENTWISE || op == OP_stop_gradient) continue;
    if (op == OP_cast) return build_cast(m->g, x, random_dtype(m));
    if (op == OP_select) {
      struct type flags = type_with_dtype(x->type, DT_BOOL);
      return build3(m->g, OP_select, like(m, &flags), x, like(m, &x->type));
    }
    bool takes = info->dtypes == DTYPE_NUMBER                                ? d != DT_BOOL
                 : info->dtypes == DTYPE_FLOAT || info->dtypes == DTYPE_TEST ? dtype_is_float(d)
                 : info->dtypes == DTYPE_SINGLE                              ? d == DT_F32
                 : info->dtypes == DTYPE_BOOL                                ? d == DT_BOOL
                 : info->dtypes == DTYPE_INTEGER ? !dtype_is_float(d) && d != DT_BOOL
                 : info->dtypes == DTYPE_INTBOOL ? !dtype_is_float(d)
                                                 : true;
    if (!takes) continue;
    if (info->min_inputs == 1) return build1(m->g, op, x);
    struct node *y = like(m, &x->type);
    if (op == OP_copysign) return build2(m->g, op, x, build_grid(m->g, y)); /* a NaN has no sign */
    return chance(m, 50) ? build2(m->g, op, x, y) : build2(m->g, op, y, x);
  }
  return x;
}

/* A smooth function of one or two values near 1. */
static struct node *smooth_elementwise(struct maker *m) {
  static const enum op_id unary[] = {OP_tanh,  OP_sigmoid, OP_sin,  OP_cos,    OP_softplus, OP_erf,   OP_atan,
                                     OP_asinh, OP_neg,     OP_erfc, OP_square, OP_identity, OP_expm1, OP_exp};
  struct graph *g = m->g;
  struct node *x = pick(m), *y = like(m, &x->type), *one = build_fill(g, &x->type, 1);
  struct node *above = build2(g, OP_add, one, build1(g, OP_square, x)); /* > 1 */
  switch (below(m, 10)) {
  case 0: return build2(g, OP_mul, build1(g, OP_tanh, x), y);
  case 1: return build2(g, OP_add, x, y);
  case 2: return build2(g, OP_sub, x, y);
  case 3: return build2(g, OP_div, y, above);
  case 4: return build1(g, chance(m, 50) ? OP_log : OP_sqrt, above);
  case 5: return build2(g, OP_hypot, above, y);
  case 6: return build2(g, OP_pow, above, build1(g, OP_tanh, y));
  case 7: {
    struct type flags = type_with_dtype(x->type, DT_I32);
    if (flags.rank == 0) return x;
    struct node *odd = build_iota(g, &flags, below(m, flags.rank));
    return build3(g, OP_select, build2(g, OP_gt, odd, build_fill(g, &flags, 1)), x, y);
  }
  default: {
    enum op_id op = unary[below(m, 14)];
    bool grows = op == OP_exp || op == OP_expm1 || op == OP_square;
    return build1(g, op, grows ? build1(g, OP_tanh, x) : x);
  }
  }
}

static struct node *reduction(struct maker *m) {
  static const enum op_id ops[] = {OP_reduce_sum, OP_reduce_sum, OP_reduce_max, OP_reduce_min,
                                   OP_reduce_prod};
  struct node *x = pick(m);
  if (x->type.rank == 0) return x;
  enum op_id op = ops[below(m, m->o->smooth ? 2 : 5)];
  uint32_t axes = 1u + (uint32_t)below(m, (1 << x->type.rank) - 1);
  int batch = batch_axis(x);
  bool joins = batch >= 0 && (axes >> batch & 1);
  bool add = op == OP_reduce_sum || op == OP_reduce_prod;
  if ((add && x->type.dtype == DT_BOOL) || (op == OP_reduce_prod && joins)) op = OP_reduce_max;
  if (op == OP_reduce_sum) x = summand(m, x);
  return build_reduce(m->g, op, x, axes);
}

static struct node *extreme_index(struct maker *m) {
  struct node *x = pick(m);
  if (x->type.rank == 0) return x;
  int axis = below(m, x->type.rank);
  if (axis == batch_axis(x)) return x;
  return build_arg(m->g, chance(m, 50) ? OP_argmax : OP_argmin, x, axis);
}

static struct node *transposed(struct maker *m) {
  struct node *x = pick(m);
  int64_t perm[MAX_RANK];
  for (int i = 0; i < x->type.rank; i++) {
    int k = below(m, i + 1);
    perm[i] = perm[k];
    perm[k] = i;
  }
  return build_transpose(m->g, x, perm);
}

static struct node *repeated(struct maker *m) {
  struct node *x = pick(m);
  struct type t = {.dtype = x->type.dtype};
  int64_t axes[MAX_RANK];
  if (x->type.rank > 2) return x;
  for (int i = 0; i <= x->type.rank; i++) {
    if (chance(m, 50))
      t.dim[t.rank++] =
          m->o->batch && type_batch_axis(&t) < 0 && batch_axis(x) < 0 && chance(m, 30) ? -1 : random_size(m);
    if (i == x->type.rank) break;
    axes[i] = t.rank;
    t.dim[t.rank++] = x->type.dim[i];
  }
  return type_valid(&t) && elements(&t) <= MOST_ELEMENTS ? build_broadcast(m->g, x, &t, axes) : x;
}

static struct node *sliced(struct maker *m) {
  struct node *x = pick(m);
  struct type t = x->type;
  int64_t begin[MAX_RANK] = {0};
  for (int i = 0; i < t.rank; i++) {
    if (t.dim[i] < 2 || chance(m, 40)) continue;
    begin[i] = below(m, (int)t.dim[i]);
    t.dim[i] = 1 + below(m, (int)(t.dim[i] - begin[i]));
  }
  return build_slice(m->g, x, begin, &t);
}

static struct node *padded(struct maker *m) {
  struct node *x = pick(m);
  int64_t low[MAX_RANK] = {0}, high[MAX_RANK] = {0};
  for (int i = 0; i < x->type.rank; i++)
    if (x->type.dim[i] >= 0) low[i] = below(m, 3), high[i] = below(m, 3);
  struct type scalar = type_scalar(x->type.dtype);
  return build_pad(m->g, x, low, high,
                   chance(m, 50) ? like(m, &scalar) : build_scalar(m->g, scalar.dtype, 1));
}

static struct node *joined(struct maker *m) {
  struct node *x = pick(m), *parts[4] = {x};
  if (x->type.rank == 0) return x;
  int axis = below(m, x->type.rank), n = 2 + below(m, 3);
  if (axis == batch_axis(x)) return x;
  for (int i = 1; i < n; i++) {
    struct type t = x->type;
    t.dim[axis] = random_size(m);
    parts[i] = chance(m, 20) ? x : like(m, &t);
  }
  return build_concat(m->g, n, parts, axis);
}

/* Adds axes of this many elements together to t. */
static void add_axes(struct maker *m, struct type *t, int64_t left, int most) {
  static const int64_t factors[] = {2, 3, 5, 7, 17};
  for (int i = 0; left > 1 && t->rank < most && i < 5; i++)
    if (left % factors[i] == 0 && chance(m, 60)) {
      t->dim[t->rank++] = factors[i];
      left /= factors[i];
    }
  t->dim[t->rank++] = left;
}

/* Other axes before the batch, and others behind it. */
static struct node *reshaped(struct maker *m) {
  struct node *x = pick(m);
  int batch = batch_axis(x);
  if (x->type.rank == 0) return x;
  struct type t = {.dtype = x->type.dtype};
  int64_t before = 1, behind = batch < 0 ? 1 : -x->type.dim[batch];
  for (int i = 0; i < batch; i++) before *= x->type.dim[i];
  for (int i = batch + 1; i < x->type.rank; i++) behind *= x->type.dim[i];
  if (batch > 0) add_axes(m, &t, before, 2);
  if (batch >= 0) t.dim[t.rank++] = -1;
  if (batch >= 0 && behind > 0 && behind % 3 == 0 && chance(m, 30)) {
    t.dim[t.rank - 1] = -3;
    behind /= 3;
  }
  if (batch != 0 || behind != 1 || chance(m, 50)) add_axes(m, &t, behind, batch < 0 ? 4 : t.rank + 2);
  return build_reshape(m->g, x, &t);
}

/* All rows as those of one matrix, in the order in which they lie: there something is done to them. */
static struct node *flattened(struct maker *m) {
  struct node *x = pick_float(m);
  int last = x->type.rank - 1, batch = batch_axis(x);
  if (last < 1 || batch == last || elements(&x->type) == 0) return x;
  struct type t = {.dtype = x->type.dtype, .rank = 2, .dim = {1, x->type.dim[last]}}, out = x->type;
  for (int i = 0; i < last; i++) t.dim[0] *= x->type.dim[i];
  struct node *y = build_reshape(m->g, x, &t);
  if (chance(m, 30) && !m->o->smooth) y = build2(m->g, OP_add, y, draw(m, OP_random_uniform, &t));
  if (chance(m, 30)) {
    struct type flags = type_with_dtype(t, DT_I32);
    struct node *number = build_iota(m->g, &flags, 0);
    struct node *low = build2(m->g, OP_lt, number, build_fill(m->g, &flags, 7));
    y = build3(m->g, OP_select, low, y, build_fill(m->g, &t, 1));
  }
  if (chance(m, 70)) {
    struct type w = {.dtype = t.dtype, .rank = 2, .dim = {t.dim[1], random_size(m)}};
    if (w.dim[1] * elements(&t) / w.dim[0] > MOST_ELEMENTS) return x;
    struct node *a = summand(m, y);
    y = build_matmul(m->g, a, summand(m, like(m, &w)), false, false);
    out.dim[last] = w.dim[1];
  }
  return build_reshape(m->g, y, &out);
}

static struct node *product(struct maker *m) {
  struct node *x = pick(m);
  if (x->type.rank < 2) return x;
  if (x->type.dtype == DT_BOOL) x = build_cast(m->g, x, DT_F32);
  int last = x->type.rank - 1;
  bool ta = chance(m, 40), tb = chance(m, 40);
  struct type t = x->type;
  int64_t inner = x->type.dim[ta ? last - 1 : last], columns = random_size(m);
  t.dim[tb ? last : last - 1] = inner;
  t.dim[tb ? last - 1 : last] = columns;
  if (!type_valid(&t) || elements(&t) > MOST_ELEMENTS) return x;
  struct node *a = summand(m, x), *b = summand(m, like(m, &t));
  if (x->type.dtype != DT_F32 || !chance(m, 30)) return build_matmul(m->g, a, b, ta, tb);
  a = build1(m->g, OP_round_bf16, a), b = build1(m->g, OP_round_bf16, b);
  return build_matmul_in(m->g, a, b, ta, tb, "bf16");
}

/* exp(x - max) / sum, along the last axis */
static struct node *softmax(struct maker *m) {
  struct node *x = pick_float(m);
  struct graph *g = m->g;
  int last = x->type.rank - 1;
  if (last < 0 || last == batch_axis(x)) return x;
  int64_t axes[MAX_RANK];
  for (int i = 0; i < last; i++) axes[i] = i;
  struct node *top = build_broadcast(g, build_reduce(g, OP_reduce_max, x, 1u << last), &x->type, axes);
  struct node *e = build1(g, OP_exp, build2(g, OP_sub, x, top));
  struct node *sum = build_reduce(g, OP_reduce_sum, summand(m, e), 1u << last);
  return build2(g, OP_div, e, build_broadcast(g, sum, &x->type, axes));
}

/* x minus its mean over some axes, the batch perhaps among them */
static struct node *centred(struct maker *m) {
  struct node *x = pick_float(m);
  struct graph *g = m->g;
  if (x->type.rank == 0) return x;
  uint32_t gone = 1u + (uint32_t)below(m, (1 << x->type.rank) - 1);
  int64_t axes[MAX_RANK];
  int kept = 0;
  for (int i = 0; i < x->type.rank; i++)
    if (!(gone >> i & 1)) axes[kept++] = i;
  struct node *sum = build_reduce(g, OP_reduce_sum, summand(m, x), gone);
  struct node *count = build_broadcast_to(g, build_count(g, &x->type, gone, x->type.dtype), &sum->type);
  return build2(g, OP_sub, x, build_broadcast(g, build2(g, OP_div, sum, count), &x->type, axes));
}

/* A row of flags, as one_hot makes them. */
static struct node *one_hot(struct maker *m) {
  struct node *x = pick(m);
  if (x->type.rank > 2) return x;
  struct type t = type_with_dtype(x->type, DT_I32);
  int64_t axes[MAX_RANK];
  for (int i = 0; i < t.rank; i++) axes[i] = i;
  struct node *label = build_cast(m->g, x, DT_I32);
  t.dim[t.rank++] = 1 + below(m, 5);
  struct node *flags =
      build2(m->g, OP_eq, build_broadcast(m->g, label, &t, axes), build_iota(m->g, &t, t.rank - 1));
  return build_cast(m->g, flags, DT_F32);
}

/* Numbers for the rows of a table, some of which name none. */
static struct node *row_numbers(struct maker *m, int64_t rows) {
  struct node *x = pick(m);
  if (x->type.rank > 2) return NULL;
  x = build_cast(m->g, x, DT_I32);
  return build2(m->g, OP_mod, x, build_fill(m->g, &x->type, (double)rows));
}

static struct node *picked_rows(struct maker *m) {
  struct node *x = pick(m), *index = NULL;
  if (x->type.rank > 0 && x->type.dim[0] > 0) index = row_numbers(m, x->type.dim[0]);
  if (!index || (batch_axis(x) >= 0 && batch_axis(index) >= 0)) return x;
  return build2(m->g, OP_gather, x, index);
}

/* Rows added to a table, or to zeros as gradients are. */
static struct node *added_rows(struct maker *m) {
  struct node *x = pick_float(m), *index = NULL;
  if (x->type.rank > 0 && x->type.dim[0] > 0) index = row_numbers(m, x->type.dim[0]);
  if (!index || (batch_axis(x) >= 0 && batch_axis(index) >= 0)) return x;
  struct type t = type_with_dtype(index->type, (enum dtype)x->type.dtype);
  for (int i = 1; i < x->type.rank; i++) t.dim[t.rank++] = x->type.dim[i];
  if (!type_valid(&t) || elements(&t) > MOST_ELEMENTS) return x;
  struct node *values = build_grid(m->g, like(m, &t)), *zeros = build_fill(m->g, &x->type, 0);
  struct node *rows = build3(m->g, OP_scatter_add, chance(m, 50) ? zeros : x, index, values);
  return chance(m, 50) ? rows : build2(m->g, OP_sub, x, rows);
}

static struct node *source(struct maker *m) {
  struct type t = {.dtype = (uint8_t)random_dtype(m), .rank = (uint8_t)(1 + below(m, 3))};
  for (int i = 0; i < t.rank; i++) t.dim[i] = random_size(m);
  if (m->o->batch && chance(m, 50)) t.dim[below(m, t.rank)] = -1;
  if (chance(m, 50) && t.dtype != DT_BOOL) return build_iota(m->g, &t, below(m, t.rank));
  t.dtype = chance(m, 70) ? DT_F32 : DT_F64;
  return draw(m, chance(m, 50) ? OP_random_uniform : OP_random_normal, &t);
}

typedef struct node *step_fn(struct maker *m);

static void grow(struct maker *m) {
  static const char *const devices[] = {"/cpu:0", "/cpu:1", "/cpu:2", "/cpu:3"};
  m->g->at.want = m->o->annotated && chance(m, 25) ? devices[below(m, 4)] : NULL;
  static step_fn *const any[] = {
      elementwise,   elementwise, elementwise, elementwise, elementwise, elementwise, reduction,
      reduction,     transposed,  repeated,    sliced,      padded,      joined,      reshaped,
      product,       product,     softmax,     centred,     one_hot,     source,      source,
      extreme_index, picked_rows, added_rows,  flattened,   flattened};
  static step_fn *const smooth[] = {smooth_elementwise,
                                    smooth_elementwise,
                                    smooth_elementwise,
                                    smooth_elementwise,
                                    reduction,
                                    transposed,
                                    repeated,
                                    sliced,
                                    padded,
                                    joined,
                                    reshaped,
                                    flattened,
                                    product,
                                    softmax,
                                    centred};
  keep(m, m->o->smooth ? smooth[below(m, 15)](m) : any[below(m, 26)](m));
}

/* ---- the whole model ---- */

/* Of an annotated model every second trained variable asks for a device. slot: what it is kept for, else NULL. */
static struct node *add_variable(struct maker *m, const char *name, struct type t, const char *slot) {
  static const char *const devices[] = {"/cpu:1", "cpu:2", "/cpu:0", "/device:cpu:3"};
  const char *kept = m->g->at.want;
  uint64_t turn = m->o->seed / 2 + (uint64_t)m->model->nvariables;
  if (m->o->annotated && !slot && turn % 2) m->g->at.want = devices[turn / 2 % 4];
  struct node *v = build_variable(m->g, name, &t, !slot, slot);
  m->g->at.want = kept;
  return v;
}

static void begin(struct maker *m) {
  struct graph *g = m->g;
  struct type number = type_scalar(DT_I64);
  if (!m->o->smooth) m->step = add_variable(m, "step", number, "");
  if (!m->o->smooth) m->first_row = build_input(g, FIRST_ROW_INPUT, &number);
  for (int i = 0; i < 3; i++) {
    struct type t = {.dtype = m->o->smooth || i == 2 ? DT_F64 : DT_F32, .rank = (uint8_t)below(m, 3)};
    for (int k = 0; k < t.rank; k++) t.dim[k] = 1 + below(m, 4);
    struct node *v = keep(m, add_variable(m, arena_printf(g->arena, "w%d", i), t, NULL));
    m->model->variables[m->model->nvariables++] = v;
  }
  static const enum dtype inputs[] = {DT_F32, DT_F32, DT_I32, DT_U8, DT_BOOL};
  for (int i = 0; i < 5; i++) {
    struct type t = {.dtype = m->o->smooth ? DT_F64 : (uint8_t)inputs[i], .rank = (uint8_t)(1 + below(m, 3))};
    for (int k = 0; k < t.rank; k++) t.dim[k] = random_size(m);
    if (m->o->batch) t.dim[0] = -1;
    keep(m, build_input(g, arena_printf(g->arena, "x%d", i), &t));
  }
}

/* Something that depends on much, as a mean. */
static struct node *mean_of_all(struct maker *m) {
  struct node *sum = NULL;
  struct graph *g = m->g;
  for (int i = 0; i < 4; i++) {
    struct node *x = build_cast(g, summand(m, m->pool[m->count - 1 - below(m, m->count)]), DT_F64);
    uint32_t all = (1u << x->type.rank) - 1;
    struct node *total = build_reduce(g, OP_reduce_sum, x, all);
    struct node *mean = build2(g, OP_div, total, build_count(g, &x->type, all, DT_F64));
    sum = sum ? build2(g, OP_add, sum, mean) : mean;
  }
  return sum;
}

/* A loss that is linear in every variable, row by row: its gradients are sums of numbers on the grid over the
 * batch. */
static struct node *linear_loss(struct maker *m) {
  struct graph *g = m->g;
  struct node *sum = NULL;
  for (int i = 0; i < m->model->nvariables; i++) {
    struct node *v = m->model->variables[i];
    struct type rows = {
        .dtype = v->type.dtype, .rank = (uint8_t)(v->type.rank + 1), .dim = {m->o->batch ? -1 : 3}};
    memcpy(rows.dim + 1, v->type.dim, sizeof *rows.dim * v->type.rank);
    struct node *factor = build_grid(g, like(m, &rows));
    struct node *terms = build2(g, OP_mul, build_broadcast_to(g, v, &rows), factor);
    struct node *total = build_reduce(g, OP_reduce_sum, build_cast(g, terms, DT_F64), (1u << rows.rank) - 1);
    sum = sum ? build2(g, OP_add, sum, total) : total;
  }
  return chance(m, 50)
             ? sum
             : build2(g, OP_div, sum,
                      build_count(g, &(struct type){.rank = 1, .dim = {m->o->batch ? -1 : 3}}, 1, DT_F64));
}

static struct node *scaled(struct graph *g, struct node *x, double factor) {
  return build2(g, OP_mul, x, build_fill(g, &x->type, factor));
}

/* sgd, momentum or adam on a value of the variable's type. */
static void add_update(struct maker *m, int i, struct node *dv) {
  struct graph *g = m->g;
  struct node *v = m->model->variables[i];
  if (!dv) return;
  dv = build_grid(g, dv); /* no run-away */
  struct node *move = dv;
  if (i > 0) {
    struct node *slot = add_variable(m, arena_printf(g->arena, "w%d.m", i), v->type, v->name);
    move = build2(g, OP_add, scaled(g, slot, 0.75), scaled(g, dv, 0.25));
    graph_add_output(g, OUTPUT_UPDATE, arena_printf(g->arena, "w%d.m.update", i), build_assign(g, slot, move),
                     0);
  }
  if (i > 1) {
    struct node *slot = add_variable(m, arena_printf(g->arena, "w%d.v", i), v->type, v->name);
    struct node *square = build2(g, OP_add, scaled(g, slot, 0.9), scaled(g, build1(g, OP_square, dv), 0.1));
    graph_add_output(g, OUTPUT_UPDATE, arena_printf(g->arena, "w%d.v.update", i),
                     build_assign(g, slot, square), 0);
    move =
        build2(g, OP_div, move, build2(g, OP_add, build1(g, OP_sqrt, square), build_fill(g, &v->type, 1e-3)));
  }
  struct node *next = build2(g, OP_sub, v, scaled(g, move, 0.125));
  graph_add_output(g, OUTPUT_UPDATE, arena_printf(g->arena, "w%d.update", i), build_assign(g, v, next), 0);
}

static void finish(struct maker *m) {
  struct graph *g = m->g;
  m->model->scalar = mean_of_all(m);
  graph_add_output(g, OUTPUT_LOSS, "loss", m->model->scalar, 0);
  for (int i = 0; i < 12; i++) {
    struct node *x = m->pool[m->count - 1 - below(m, m->count)];
    graph_add_output(g, OUTPUT_VALUE, arena_printf(g->arena, "y%d", i), x, 0);
  }
  if (!m->o->updates) return;
  struct node *loss = linear_loss(m);
  graph_add_output(g, OUTPUT_LOSS, "linear", loss, 0);
  if (chance(m, 50)) loss = build2(g, OP_add, loss, m->model->scalar);
  for (int i = 0; i < m->model->nvariables; i++)
    add_update(m, i,
               chance(m, 70) ? build_gradient(g, loss, m->model->variables[i])
                             : like(m, &m->model->variables[i]->type));
  struct node *one = build_scalar(g, DT_I64, 1);
  graph_add_output(g, OUTPUT_UPDATE, "step.update", build_assign(g, m->step, build2(g, OP_add, m->step, one)),
                   0);
}

struct model random_model(struct arena *a, const struct model_options *o, struct diags *d) {
  struct model model = {0};
  struct maker m = {.rng = {o->seed}, .o = o, .arena = a, .model = &model};
  m.g = model.g = graph_create(a, arena_printf(a, "random_%llu", (unsigned long long)o->seed), d);
  begin(&m);
  for (int i = 0; i < o->size; i++) {
    /* each step has numbers of its own: a shorter model is a beginning of a longer one */
    m.rng.state = o->seed * 1000003 + (uint64_t)i;
    grow(&m);
  }
  m.rng.state = o->seed * 1000003 - 1;
  m.g->at.want = NULL;
  finish(&m);
  return model;
}

void model_values(struct arena *a, const struct graph *g, int64_t rows, uint64_t seed, bool smooth,
                  struct values *inputs, struct values *variables) {
  *inputs = values_make(a);
  *variables = values_make(a);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (n->op != OP_input && n->op != OP_variable) continue;
    struct rng r = {str_hash(STR_HASH_SEED + seed, n->name, strlen(n->name))};
    struct type t = type_specialize(&n->type, rows);
    struct tensor x = {t, arena_alloc(a, (size_t)type_bytes(&t))};
    bool state = node_attr(n, ATTR_slot) != NULL;
    sample_fill(&r,
                state                ? DOMAIN_POSITIVE
                : smooth             ? DOMAIN_ANY
                : rng_chance(&r, 50) ? DOMAIN_SMALL_INT
                                     : DOMAIN_ANY,
                0, &x);
    values_put(n->op == OP_input ? inputs : variables, n->name, &t, x.data);
  }
}
