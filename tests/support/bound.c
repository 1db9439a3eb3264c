/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/bound.h"

#include "ir/ops/op_id.h"
#include "tests/leaves/leaf.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define ULPS_OF_TWO_BODIES 8
#define NO_QUANTUM         4096 /* of zeros: above all exponents */

bool interval_is_point(struct interval x) { return x.lo == x.hi || (isnan(x.lo) && isnan(x.hi)); }
bool interval_is_any(struct interval x) { return x.lo == -(double)INFINITY && x.hi == (double)INFINITY; }

struct interval bound_at(const struct bounds *b, int64_t i) {
  if (b->at) return b->at[i];
  double x = tensor_at(&b->value, i);
  return (struct interval){x, x};
}

const struct interval *bounds_of_all(struct arena *a, const struct bounds *b) {
  if (b->at) return b->at;
  int64_t count = type_count(&b->value.type);
  struct interval *all = arena_new_array(a, (size_t)count + 1, struct interval);
  for (int64_t i = 0; i < count; i++) all[i] = bound_at(b, i);
  return all;
}

/* The next number of `d` below (direction -1) or above x, `n` times. */
static double step(enum dtype d, double x, int direction, int n) {
  for (; n > 0; n--) {
    if (d == DT_F32)
      x = (double)nextafterf((float)x, direction < 0 ? -INFINITY : INFINITY);
    else
      x = nextafter(x, direction < 0 ? -(double)INFINITY : (double)INFINITY);
  }
  return x;
}

/* ---- elementwise ---- */

struct body {
  struct sprog program;
  sval result;
  uint64_t *values;
  const struct node *n;
};

static struct body body_of(struct arena *a, const struct node *n) {
  struct body b = {.program = sprog_make(a), .n = n};
  sval operands[3];
  for (int i = 0; i < n->ninputs; i++) operands[i] = s_arg(&b.program, i, n->inputs[i]->type.dtype);
  b.result = op_of(n)->scalar(&b.program, n, operands);
  b.values = arena_new_array(a, (size_t)b.program.count, uint64_t);
  return b;
}

static double body_at(struct body *b, const double *x) {
  uint64_t args[3];
  for (int i = 0; i < b->n->ninputs; i++) args[i] = number_bits(b->n->inputs[i]->type.dtype, x[i]);
  sprog_eval(&b->program, args, NULL, NULL, b->values);
  return bits_number(b->n->type.dtype, b->values[b->result]);
}

/* Ops that round once, and so keep order. */
static bool rounds_once(enum op_id op) {
  static const uint8_t once[OP_COUNT] = {
      [OP_identity] = 1,   [OP_cast] = 1,          [OP_neg] = 1,   [OP_abs] = 1,   [OP_sign] = 1,
      [OP_floor] = 1,      [OP_ceil] = 1,          [OP_round] = 1, [OP_trunc] = 1, [OP_square] = 1,
      [OP_sqrt] = 1,       [OP_stop_gradient] = 1, [OP_add] = 1,   [OP_sub] = 1,   [OP_mul] = 1,
      [OP_div] = 1,        [OP_max] = 1,           [OP_min] = 1,   [OP_fdim] = 1,  [OP_copysign] = 1,
      [OP_round_bf16] = 1, [OP_round_f16] = 1};
  return once[op];
}

/* Whether corners and zeros do not tell: the op turns around, or breaks, inside of the box. */
static bool turns_inside(enum op_id op, const struct interval *x) {
  switch (op) {
  case OP_mod: return true;
  case OP_tan: return x[0].lo < -1.5 || x[0].hi > 1.5;
  case OP_div: return x[1].lo <= 0 && x[1].hi >= 0;
  case OP_pow: return x[0].lo <= 0;
  case OP_atan2: return x[1].lo <= 0 && x[0].lo <= 0 && x[0].hi >= 0;
  default: return false;
  }
}

void interval_widen(struct interval *r, double x) {
  if (x < r->lo) r->lo = x;
  if (x > r->hi) r->hi = x;
}

/* The range over corners and zeros of the box, zeros of both signs; `anything` where one of them is NaN. */
static struct interval corners(struct body *b, const struct interval *x) {
  int n = b->n->ninputs, total = 1;
  for (int i = 0; i < n; i++) total *= 4;
  struct interval r = {(double)INFINITY, -(double)INFINITY};
  for (int c = 0; c < total; c++) {
    double at[3];
    for (int i = 0, code = c; i < n; i++, code /= 4) {
      bool zero = x[i].lo <= 0 && x[i].hi >= 0;
      double choice[4] = {x[i].lo, x[i].hi, zero ? 0.0 : x[i].lo, zero ? -0.0 : x[i].lo};
      at[i] = choice[code % 4];
    }
    double y = body_at(b, at);
    if (isnan(y)) return interval_any;
    interval_widen(&r, y);
  }
  return r;
}

static struct interval elementwise(struct body *b, const struct interval *x) {
  const struct node *n = b->n;
  enum dtype d = n->type.dtype;
  bool points = true, unknown = false;
  for (int i = 0; i < n->ninputs; i++) {
    points &= interval_is_point(x[i]);
    unknown |= interval_is_any(x[i]) || isnan(x[i].lo);
  }
  bool zero = x[0].lo == 0 || (n->ninputs > 1 && x[1].lo == 0); /* of either sign */
  if (points && zero && dtype_is_float(n->inputs[0]->type.dtype)) {
    struct interval r = corners(b, x);
    if (interval_is_point(r)) return r;
    return interval_any;
  }
  if (points) {
    double y = body_at(b, (double[3]){x[0].lo, n->ninputs > 1 ? x[1].lo : 0, n->ninputs > 2 ? x[2].lo : 0});
    return (struct interval){y, y};
  }
  if (n->op == OP_select) {
    if (x[0].lo == x[0].hi) return x[0].lo != 0 ? x[1] : x[2];
    if (unknown) return interval_any;
    struct interval r = x[1];
    interval_widen(&r, x[2].lo);
    interval_widen(&r, x[2].hi);
    return r;
  }
  if (d == DT_BOOL && (unknown || n->op == OP_eq || n->op == OP_ne)) {
    bool apart = !unknown && n->ninputs == 2 && (x[0].hi < x[1].lo || x[1].hi < x[0].lo);
    double y = n->op == OP_ne;
    return apart ? (struct interval){y, y} : (struct interval){0, 1};
  }
  bool wraps =
      dtype_is_int(d) && dtype_is_int(n->inputs[0]->type.dtype) && n->op != OP_max && n->op != OP_min;
  if (unknown || wraps || turns_inside(n->op, x)) return interval_any;
  struct interval r;
  if (n->op == OP_sin || n->op == OP_cos) { /* no steeper than 1 */
    double y = body_at(b, &x[0].lo), w = x[0].hi - x[0].lo;
    r = (struct interval){fmax(-1, y - w), fmin(1, y + w)};
  } else
    r = corners(b, x);
  if (interval_is_any(r) || d == DT_BOOL || !dtype_is_float(d) || rounds_once(n->op)) return r;
  return (struct interval){step(d, r.lo, -1, ULPS_OF_TWO_BODIES), step(d, r.hi, 1, ULPS_OF_TWO_BODIES)};
}

/* ---- sums ---- */

struct sum sum_make(enum dtype d) {
  return (struct sum){.dtype = d, .quantum = NO_QUANTUM, .points = true};
}

/* The exponent of the lowest bit of x. */
static int lowest_bit(long double x) {
  int exponent;
#if defined(__x86_64__)
  struct {
    uint64_t bits;
    uint16_t exponent; /* and the sign */
  } parts = {0, 0};
  memcpy(&parts, &x, 10);
  if ((exponent = parts.exponent & 0x7fff) != 0) return exponent - 16446 + __builtin_ctzll(parts.bits);
#endif
  long double m = frexpl(fabsl(x), &exponent);
  uint64_t bits = (uint64_t)(m * 0x1p64L);
  return exponent - 64 + __builtin_ctzll(bits);
}

void sum_add(struct sum *s, long double lo, long double hi) {
  s->terms++;
  s->unknown = s->unknown || !isfinite(lo) || !isfinite(hi);
  if (s->unknown) return; /* whatever else is added */
  s->lo += lo;
  s->hi += hi;
  s->size += fabsl(lo) > fabsl(hi) ? fabsl(lo) : fabsl(hi);
  s->points &= lo == hi;
  int lowest = lo != 0 ? lowest_bit(lo) : s->quantum;
  if (lowest < s->quantum) s->quantum = lowest;
}

void sum_add_share(struct sum *s, struct interval v, double size, double quantum) {
  sum_add(s, v.lo, v.hi);
  s->size += size;
  if (quantum < s->quantum) s->quantum = (int)quantum;
}

struct interval sum_total(const struct sum *s, int additions) {
  if (!dtype_is_float(s->dtype)) return interval_any; /* an uncertain sum may wrap */
  bool f32 = s->dtype == DT_F32;
  int digits = f32 ? 24 : 53, smallest = f32 ? -149 : -1074; /* exponent of the least subnormal */
  if (s->unknown || s->size > (f32 ? FLT_MAX : DBL_MAX) / 2) return interval_any;
  bool exact = s->size == 0 || (s->quantum >= smallest && s->size <= ldexpl(1, s->quantum + digits));
  if (s->points && exact) return (struct interval){(double)s->lo, (double)s->lo};
  long double nu = (long double)(s->terms + additions) * ldexpl(1, -digits);
  /* One term rounds once: a step. A product below the normal numbers loses up to half of the least subnormal. */
  long double slack = s->terms == 1 ? 0 : nu / (1 - nu) * s->size;
  if (s->quantum < smallest) slack += (long double)s->terms * ldexpl(1, smallest - 1);
  return (struct interval){step(s->dtype, (double)(s->lo - slack), -1, 1),
                           step(s->dtype, (double)(s->hi + slack), 1, 1)};
}

/* Where element e of reduce's operand goes. */
static int64_t kept_index(const struct node *n, int64_t e) {
  int count;
  const int64_t *axes = node_ints(n, ATTR_axes, &count);
  const struct type *x = &n->inputs[0]->type;
  int64_t index[MAX_RANK], to = 0;
  for (int i = x->rank; i-- > 0; e /= x->dim[i]) index[i] = e % x->dim[i];
  for (int i = 0; i < x->rank; i++) {
    bool gone = false;
    for (int k = 0; k < count; k++) gone |= axes[k] == i;
    if (!gone) to = to * x->dim[i] + index[i];
  }
  return to;
}

/* A product of floats, each factor rounded once: relative gamma(terms). Where a part of the factors may leave the
 * normal numbers, the order decides what comes out. `large` and `small` are the products of the factors above and
 * below 1. */
struct factors {
  int64_t terms;
  long double lo, hi, large, small;
  bool unknown, zero;
};

static void factors_add(struct factors *f, struct interval v) {
  double size = fmax(fabs(v.lo), fabs(v.hi)),
         least = v.lo <= 0 && v.hi >= 0 ? 0 : fmin(fabs(v.lo), fabs(v.hi));
  f->terms++;
  f->unknown |= !isfinite(v.lo) || !isfinite(v.hi);
  f->zero |= least == 0;
  if (f->unknown) return;
  long double p[4] = {f->lo * v.lo, f->lo * v.hi, f->hi * v.lo, f->hi * v.hi};
  f->lo = fminl(fminl(p[0], p[1]), fminl(p[2], p[3]));
  f->hi = fmaxl(fmaxl(p[0], p[1]), fmaxl(p[2], p[3]));
  if (size > 1) f->large *= size;
  if (least < 1 && least > 0) f->small *= least;
}

static struct interval factors_total(const struct factors *f, enum dtype d, int additions) {
  bool f32 = d == DT_F32;
  if (f->unknown || f->large > (f32 ? FLT_MAX : DBL_MAX) / 2) return interval_any;
  if (f->zero && f->lo == 0 && f->hi == 0) return (struct interval){0, 0};
  if (f->small < (f32 ? FLT_MIN : DBL_MIN) * 2.0L) return interval_any;
  long double nu = (long double)(f->terms + additions) * (f32 ? 0x1p-24L : 0x1p-53L);
  long double slack = f->terms <= 1 ? 0 : nu / (1 - nu) * fmaxl(fabsl(f->lo), fabsl(f->hi));
  if (slack == 0 && f->lo == f->hi) return (struct interval){(double)f->lo, (double)f->lo};
  return (struct interval){step(d, (double)(f->lo - slack), -1, 1), step(d, (double)(f->hi + slack), 1, 1)};
}

void sum_result(const struct sum *s, int additions, struct bounds *out, int64_t e) {
  out->at[e] = sum_total(s, additions);
  if (!out->size) return;
  out->size[e] = (double)s->size;
  out->quantum[e] = s->quantum;
}

static void reduce_bounds(struct arena *a, const struct node *n, const struct bounds *x, int additions,
                          struct bounds *result) {
  struct interval *out = result->at;
  enum dtype d = n->type.dtype;
  int64_t count = type_count(&n->inputs[0]->type), results = type_count(&n->type);
  struct sum *sums = arena_new_array(a, (size_t)results, struct sum);
  struct factors *products = arena_new_array(a, (size_t)results, struct factors);
  bool max = n->op == OP_reduce_max, extreme = max || n->op == OP_reduce_min;
  for (int64_t r = 0; r < results; r++) {
    double worst = max ? -(double)INFINITY : (double)INFINITY;
    sums[r] = sum_make(d);
    products[r] = (struct factors){.lo = 1, .hi = 1, .large = 1, .small = 1};
    out[r] = (struct interval){worst, worst};
  }
  for (int64_t e = 0; e < count; e++) {
    int64_t r = kept_index(n, e);
    struct interval v = bound_at(x, e), *o = &out[r];
    if (!extreme) {
      if (x->size)
        sum_add_share(&sums[r], v, x->size[e], x->quantum[e]);
      else
        sum_add(&sums[r], v.lo, v.hi);
      factors_add(&products[r], v);
    } else if (isnan(v.lo) || interval_is_any(v)) {
      sums[r].unknown = true;
    } else {
      o->lo = max ? fmax(o->lo, v.lo) : fmin(o->lo, v.lo);
      o->hi = max ? fmax(o->hi, v.hi) : fmin(o->hi, v.hi);
    }
  }
  for (int64_t r = 0; r < results; r++) {
    if (extreme && sums[r].unknown) out[r] = interval_any;
    if (n->op == OP_reduce_sum) sum_result(&sums[r], additions, result, r);
    if (n->op == OP_reduce_prod) out[r] = factors_total(&products[r], d, additions);
  }
}

/* ---- other ops ---- */

static void arg_bounds(const struct node *n, const struct bounds *x, struct interval *out) {
  const struct type *t = &n->inputs[0]->type;
  int64_t axis = node_int(n, ATTR_axis), size = t->dim[axis], below = 1, results = type_count(&n->type);
  for (int i = (int)axis + 1; i < t->rank; i++) below *= t->dim[i];
  double sign = n->op == OP_argmax ? 1 : -1;
  for (int64_t r = 0; r < results; r++) {
    int64_t base = r / below * below * size + r % below;
    double best = -(double)INFINITY; /* the winner is at least this */
    bool unknown = false;
    for (int64_t k = 0; k < size; k++) {
      struct interval v = bound_at(x, base + k * below);
      unknown |= interval_is_any(v) || isnan(v.lo);
      best = fmax(best, sign > 0 ? v.lo : -v.hi);
    }
    out[r] = (struct interval){(double)size - 1, 0};
    for (int64_t k = 0; k < size; k++) {
      struct interval v = bound_at(x, base + k * below);
      if (unknown || (sign > 0 ? v.hi : -v.lo) >= best) interval_widen(&out[r], (double)k);
      /* the first of certain equals wins */
      if (!unknown && interval_is_point(v) && sign * v.lo == best && out[r].lo == (double)k) break;
    }
  }
}

/* What n, which only moves elements, makes of arrays of numbers. */
static bool move_numbers(struct arena *a, const struct node *n, double *const *in, double *out) {
  struct node same = *n;
  same.type = type_with_dtype(n->type, DT_F64);
  struct tensor *operands = arena_new_array(a, (size_t)n->ninputs, struct tensor);
  for (int k = 0; k < n->ninputs; k++)
    operands[k] = (struct tensor){type_with_dtype(n->inputs[k]->type, DT_F64), in[k]};
  return node_eval(&same, operands, &(struct tensor){same.type, out}, 0);
}

static bool move_bounds(struct arena *a, const struct node *n, const struct bounds *in, struct bounds *out) {
  int64_t results = type_count(&n->type);
  double **side = arena_new_array(a, (size_t)n->ninputs, double *);
  double *moved = arena_new_array(a, (size_t)results, double);
  for (int high = 0; high < 2; high++) {
    for (int k = 0; k < n->ninputs; k++) {
      int64_t count = type_count(&n->inputs[k]->type);
      side[k] = arena_new_array(a, (size_t)count, double);
      for (int64_t e = 0; e < count; e++) side[k][e] = high ? bound_at(&in[k], e).hi : bound_at(&in[k], e).lo;
    }
    if (!move_numbers(a, n, side, moved)) return false;
    for (int64_t e = 0; e < results; e++) *(high ? &out->at[e].hi : &out->at[e].lo) = moved[e];
  }
  if (!out->size) return true;
  for (int k = 0; k < n->ninputs; k++) side[k] = in[k].size;
  if (!move_numbers(a, n, side, out->size)) return false;
  for (int k = 0; k < n->ninputs; k++) side[k] = in[k].quantum;
  return move_numbers(a, n, side, out->quantum);
}

/* add, sub, neg ... of sums. */
static void elementwise_bounds(struct arena *a, const struct node *n, const struct bounds *in, int additions,
                               struct bounds *out) {
  struct body b = body_of(a, n);
  int64_t count = type_count(&n->type);
  for (int64_t e = 0; e < count; e++) {
    struct interval x[3] = {{0, 0}};
    for (int k = 0; k < n->ninputs; k++) x[k] = bound_at(&in[k], e);
    out->at[e] = elementwise(&b, x);
    if (!out->size) continue;
    struct sum s = sum_make(n->type.dtype);
    for (int k = 0; k < n->ninputs; k++) {
      bool minus = n->op == OP_neg || (n->op == OP_sub && k == 1);
      struct interval v = minus ? (struct interval){-x[k].hi, -x[k].lo} : x[k];
      sum_add_share(&s, v, in[k].size[e], in[k].quantum[e]);
    }
    if (n->ninputs > 1)
      sum_result(&s, additions, out, e);
    else
      out->size[e] = in[0].size[e], out->quantum[e] = in[0].quantum[e];
  }
}

/* A share of a sum passes through n: replicate.c, passes_partial. */
static bool passes_shares(const struct node *n, const struct bounds *in) {
  for (int k = 0; k < n->ninputs; k++)
    if (!in[k].size) return false;
  return n->ninputs > 0 && (op_of(n)->linear_jointly || (n->ninputs == 1 && (op_of(n)->linear & 1)));
}

static leaf_bounds_fn *const leaves[OP_COUNT] = {
#define OP(name, spread)
#define LEAF(name, spread) [OP_##name] = name##_bounds,
#include "ir/ops/ops.def"
#undef OP
};

/* Bounds of a node of which an operand is inexact, or which sums floats. */
static bool node_bounds(struct arena *a, const struct node *n, const struct bounds *in, int additions,
                        struct bounds *out) {
  int64_t count = type_count(&n->type);
  out->at = arena_new_array(a, (size_t)count, struct interval);
  switch (op_of(n)->kind) {
  case KIND_ELEMENTWISE: elementwise_bounds(a, n, in, additions, out); break;
  case KIND_REDUCE:
    if (n->op == OP_argmax || n->op == OP_argmin)
      arg_bounds(n, in, out->at);
    else
      reduce_bounds(a, n, in, additions, out);
    break;
  case KIND_MOVEMENT: return move_bounds(a, n, in, out);
  case KIND_LEAF: leaves[n->op](a, n, in, additions, out); break;
  default: out->at = in[n->ninputs - 1].at; return n->op == OP_assign;
  }
  return true;
}

/* All points: the oracle's value says it all. */
static void forget_points(struct bounds *b) {
  int64_t count = type_count(&b->value.type);
  for (int64_t e = 0; b->at && e < count; e++)
    if (!interval_is_point(b->at[e])) return;
  b->at = NULL;
}

static bool sums_floats(const struct node *n) {
  bool sum = n->op == OP_reduce_sum || n->op == OP_reduce_prod || n->op == OP_matmul || n->op == OP_conv ||
             n->op == OP_scatter_add || n->op == OP_attention || n->op == OP_attention_gradient;
  return sum && dtype_is_float(n->type.dtype);
}

bool graph_bounds(struct arena *a, const struct graph *g, const struct values *inputs,
                  const struct values *variables, int additions, struct bounds *out) {
  struct tensor *values = arena_new_array(a, g->count + 1, struct tensor);
  struct values scratch = values_copy(a, variables);
  if (!graph_eval(a, g, inputs, &scratch, values)) return false;
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    out[i] = (struct bounds){.value = values[i]};
    if (!values[i].data) continue;
    struct bounds *in = arena_new_array(a, (size_t)n->ninputs + 1, struct bounds);
    bool inexact = sums_floats(n), share = inexact && n->op != OP_reduce_prod && n->op != OP_scatter_add;
    for (int k = 0; k < n->ninputs; k++) {
      in[k] = out[n->inputs[k]->id];
      inexact |= in[k].at != NULL;
    }
    share |= passes_shares(n, in);
    if (!inexact && !share) continue;
    if (share && additions > 0) {
      out[i].size = arena_new_array(a, (size_t)type_count(&n->type), double);
      out[i].quantum = arena_new_array(a, (size_t)type_count(&n->type), double);
    }
    if (!node_bounds(a, n, in, additions, &out[i])) {
      fprintf(stderr, "no bounds for %s (%s)\n", n->name, op_of(n)->name);
      return false;
    }
    forget_points(&out[i]);
    const char *breach = bounds_breach(a, &out[i], &values[i]);
    if (breach) {
      fprintf(stderr, "the bounds of %s (%s) do not hold its own value: %s\n", n->name, op_of(n)->name,
              breach);
      return false;
    }
  }
  return true;
}

const struct bounds *output_bounds(const struct graph *g, const struct bounds *bounds, const char *name) {
  for (int i = 0; i < g->noutputs; i++)
    if (strcmp(g->outputs[i].name, name) == 0) return &bounds[g->outputs[i].node->id];
  return NULL;
}

/* ---- comparison ---- */

const char *bounds_breach(struct arena *a, const struct bounds *b, const struct tensor *got) {
  if (!b->at || !type_equal(&b->value.type, &got->type))
    return tensor_difference_but_zeros(a, &b->value, got);
  int64_t count = type_count(&got->type);
  for (int64_t e = 0; e < count; e++) {
    struct interval v = b->at[e];
    double x = tensor_at(got, e);
    bool ok = interval_is_any(v) || (isnan(v.lo) ? isnan(x) : v.lo <= x && x <= v.hi);
    if (ok) continue;
    struct str s = str_make(a);
    str_printf(&s, "element %lld of %s is %s, not within ", (long long)e, type_text(a, &got->type),
               tensor_element(a, got, e));
    str_double(&s, v.lo);
    str_put(&s, " .. ");
    str_double(&s, v.hi);
    return s.data;
  }
  return NULL;
}

int64_t bounds_unknown(const struct bounds *b) {
  int64_t count = type_count(&b->value.type), unknown = 0;
  for (int64_t e = 0; b->at && e < count; e++) unknown += interval_is_any(b->at[e]);
  return unknown;
}
