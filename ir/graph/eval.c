/* SPDX-License-Identifier: Apache-2.0 */
/* The slow and obvious evaluator: the oracle of the tests and the constant folder of the builder.
 *
 * Elementwise ops run their own scalar bodies, so that they agree with every backend to the bit; leaves bring their
 * own functions. Sums, products and matrix products of floats are accumulated in f64 and rounded once: they are what
 * a backend is measured by, not what it must equal. */
#include "base/bits.h"
#include "ir/ops/op_id.h"
#include "ir/ops/scan.h"
#include "ir/ops/spread.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- elements ---- */

static enum dtype dtype_of(const struct tensor *t) { return (enum dtype)t->type.dtype; }

/* Elements travel as bits, zero-extended to 64. Sizes are constants for memcpy: it is called once per element. */
static uint64_t load(const struct tensor *t, int64_t i) {
  const char *data = t->data;
  uint64_t wide;
  uint32_t half;
  uint16_t quarter;
  switch (dtype_of(t)) {
  case DT_F64:
  case DT_I64: return memcpy(&wide, data + 8 * i, 8), wide;
  case DT_F32:
  case DT_I32: return memcpy(&half, data + 4 * i, 4), half;
  case DT_U8:
  case DT_BOOL: return (uint8_t)data[i];
  case DT_BF16:
  case DT_F16: return memcpy(&quarter, data + 2 * i, 2), quarter;
  case DT_COUNT: break;
  }
  return 0;
}

static void store(struct tensor *t, int64_t i, uint64_t bits) {
  char *data = t->data;
  uint32_t half = (uint32_t)bits;
  uint16_t quarter = (uint16_t)bits;
  switch (dtype_of(t)) {
  case DT_F64:
  case DT_I64: memcpy(data + 8 * i, &bits, 8); break;
  case DT_F32:
  case DT_I32: memcpy(data + 4 * i, &half, 4); break;
  case DT_U8:
  case DT_BOOL: data[i] = (char)bits; break;
  case DT_BF16:
  case DT_F16: memcpy(data + 2 * i, &quarter, 2); break;
  case DT_COUNT: break;
  }
}

/* One scalar instruction on bits of `d`. */
static uint64_t apply(enum sop op, enum dtype d, uint64_t a, uint64_t b) {
  return scalar_eval(&(struct sinst){.op = (uint8_t)op, .dtype = (uint8_t)d}, d, a, b, 0);
}

static uint64_t from_int(enum dtype d, int64_t value) { return scalar_convert(d, DT_I64, (uint64_t)value); }

/* The type in which elements of `d` are accumulated. */
static enum dtype wide(enum dtype d) { return dtype_is_float(d) ? DT_F64 : d == DT_BOOL ? DT_BOOL : DT_I64; }

static uint64_t load_wide(const struct tensor *t, int64_t i) {
  return scalar_convert(wide(dtype_of(t)), dtype_of(t), load(t, i));
}

static void store_wide(struct tensor *t, int64_t i, uint64_t bits) {
  store(t, i, scalar_convert(dtype_of(t), wide(dtype_of(t)), bits));
}

/* ---- sources and elementwise ops ---- */

enum { ROW = 64 }; /* elements that are computed at once */

static int row_length(int64_t first, int64_t count) {
  return count - first < ROW ? (int)(count - first) : ROW;
}

static bool eval_elementwise(struct arena *a, const struct node *n, const struct tensor *in,
                             struct tensor *out) {
  struct sprog p = sprog_make(a);
  sval operands[3];
  uint64_t args[3 * ROW];
  if (n->ninputs > 3 || !op_of(n)->scalar) return false;
  for (int i = 0; i < n->ninputs; i++) operands[i] = s_arg(&p, i, dtype_of(&in[i]));
  sval result = op_of(n)->scalar(&p, n, operands);
  uint64_t *values = arena_new_array(a, (size_t)p.count * ROW, uint64_t);
  int64_t count = type_count(&out->type);
  for (int64_t first = 0; first < count; first += ROW) {
    int row = row_length(first, count);
    for (int i = 0; i < n->ninputs; i++)
      for (int e = 0; e < row; e++) args[i * row + e] = load(&in[i], first + e);
    sprog_eval_row(&p, row, args, values);
    for (int e = 0; e < row; e++) store(out, first + e, values[result * row + e]);
  }
  return true;
}

/* How many elements lie between neighbours along each axis. */
static void strides_of(const struct type *t, int64_t *stride) {
  int64_t size = 1;
  for (int i = t->rank; i-- > 0; size *= t->dim[i]) stride[i] = size;
}

static bool eval_iota(const struct node *n, struct tensor *out) {
  int64_t stride[MAX_RANK], axis = node_int(n, ATTR_axis), count = type_count(&out->type);
  uint64_t offset = (uint64_t)node_int_or(n, ATTR_offset, 0);
  strides_of(&out->type, stride);
  for (int64_t e = 0; e < count; e++) {
    uint64_t i = (uint64_t)(e / stride[axis] % out->type.dim[axis]);
    store(out, e, from_int(dtype_of(out), (int64_t)(offset + i)));
  }
  return true;
}

static bool eval_same(const struct tensor *in, struct tensor *out) {
  if (type_bytes(&out->type)) memcpy(out->data, in->data, (size_t)type_bytes(&out->type));
  return true;
}

/* ---- movement ---- */

/* Where element (i0, i1, ...) of a shape lies in an array: base + i0*step[0] + i1*step[1] + ... */
struct layout {
  int64_t base, step[MAX_RANK];
};

/* to[tv(i)] = from[fv(i)] for every index i of the shape: along the last axis, for every index of the others. */
static void move(const struct type *shape, struct tensor *to, const struct layout *tv,
                 const struct tensor *from, const struct layout *fv) {
  int last = shape->rank - 1;
  int64_t count = type_count(shape), stride[MAX_RANK];
  int64_t row = last < 0 ? 1 : shape->dim[last], t_step = last < 0 ? 0 : tv->step[last];
  int64_t f_step = last < 0 ? 0 : fv->step[last];
  strides_of(shape, stride);
  for (int64_t e = 0; e < count; e += row) {
    int64_t t = tv->base, f = fv->base;
    for (int i = 0; i < last; i++) {
      int64_t index = e / stride[i] % shape->dim[i];
      t += index * tv->step[i];
      f += index * fv->step[i];
    }
    for (int64_t k = 0; k < row; k++) store(to, t + k * t_step, load(from, f + k * f_step));
  }
}

static struct layout dense(const struct type *t) {
  struct layout v = {0};
  strides_of(t, v.step);
  return v;
}

static int64_t view_at(const struct layout *v, const struct type *shape, const int64_t *stride, int64_t e) {
  int64_t at = v->base;
  for (int i = 0; i < shape->rank; i++) at += e / stride[i] % shape->dim[i] * v->step[i];
  return at;
}

/* Element e is number row * width + offset + e of its stream, counted in the whole. */
static bool eval_random(struct arena *a, const struct node *n, const struct tensor *in, struct tensor *out) {
  struct sprog p = sprog_make(a);
  sval seed = s_int(&p, DT_I64, node_int(n, ATTR_seed)), stream = s_int(&p, DT_I64, node_int(n, ATTR_key));
  sval step = s_arg(&p, 0, DT_I64), element = s_arg(&p, 1, DT_I64);
  sval result = node_is(n, OP_random_uniform)
                    ? m_random_uniform(&p, dtype_of(out), seed, stream, step, element)
                    : m_random_normal(&p, dtype_of(out), seed, stream, step, element);
  uint64_t *values = arena_new_array(a, (size_t)p.count * ROW, uint64_t), args[2 * ROW];
  int64_t count = type_count(&out->type), stride[MAX_RANK];
  uint64_t offset = (uint64_t)node_int_or(n, ATTR_offset, 0);
  if (n->ninputs > 1) offset += load(&in[1], 0) * (uint64_t)node_int(n, ATTR_width);
  struct type counted = random_whole(n);
  struct layout whole = dense(&counted);
  strides_of(&out->type, stride);
  for (int64_t first = 0; first < count; first += ROW) {
    int row = row_length(first, count);
    for (int e = 0; e < row; e++) {
      args[e] = load(&in[0], 0);
      args[row + e] = offset + (uint64_t)view_at(&whole, &out->type, stride, first + e);
    }
    sprog_eval_row(&p, row, args, values);
    for (int e = 0; e < row; e++) store(out, first + e, values[result * row + e]);
  }
  return true;
}

/* Where in its operand the elements of a transpose, broadcast, slice or split are. */
static struct layout view_into(const struct node *n, const struct type *operand) {
  struct layout whole = dense(operand), from = {0};
  int count;
  const int64_t *ints;
  if (n->op == OP_transpose) {
    ints = node_ints(n, ATTR_perm, &count);
    for (int i = 0; i < count; i++) from.step[i] = whole.step[ints[i]];
  } else if (n->op == OP_broadcast) {
    ints = node_ints(n, ATTR_axes, &count);
    for (int i = 0; i < count; i++) from.step[ints[i]] = whole.step[i];
  } else if (n->op == OP_slice) {
    from = whole;
    ints = node_ints(n, ATTR_begin, &count);
    for (int i = 0; i < count; i++) from.base += ints[i] * whole.step[i];
  } else {
    assert(n->op == OP_split);
    from = whole;
    from.base = node_int(n, ATTR_offset) * whole.step[0];
  }
  return from;
}

/* Each element of the result comes from one place of the operand. */
static bool eval_strided(const struct node *n, const struct tensor *in, struct tensor *out) {
  struct layout to = dense(&out->type), from = view_into(n, &in->type);
  move(&out->type, out, &to, in, &from);
  return true;
}

static bool eval_pad(const struct node *n, const struct tensor *in, struct tensor *out) {
  int64_t total = type_count(&out->type);
  for (int64_t e = 0; e < total; e++) store(out, e, load(&in[1], 0));
  struct layout to = dense(&out->type), from = dense(&in->type);
  int count;
  const int64_t *low = node_ints(n, ATTR_low, &count);
  for (int i = 0; i < count; i++) to.base += low[i] * to.step[i];
  move(&in->type, out, &to, in, &from);
  return true;
}

static bool eval_concat(const struct node *n, const struct tensor *in, struct tensor *out) {
  int64_t axis = node_int_or(n, ATTR_axis, 0); /* all_gather: rows */
  struct layout to = dense(&out->type);
  for (int i = 0; i < n->ninputs; i++) {
    struct layout from = dense(&in[i].type);
    move(&in[i].type, out, &to, &in[i], &from);
    to.base += in[i].type.dim[axis] * to.step[axis];
  }
  return true;
}

/* ---- reductions ---- */

/* Where in the result each element of the operand goes. */
static struct layout kept_axes(const struct type *x, uint32_t reduced, const struct type *result) {
  struct layout v = {0};
  int64_t stride[MAX_RANK];
  strides_of(result, stride);
  for (int i = 0, k = 0; i < x->rank; i++)
    if (!(reduced >> i & 1)) v.step[i] = stride[k++];
  return v;
}

/* What a reduction of nothing gives, in the wide type. */
static uint64_t reduce_identity(enum op_id op, enum dtype d) {
  bool largest = op == OP_reduce_min;
  if (op == OP_reduce_sum) return 0;
  if (op == OP_reduce_prod) return dtype_is_float(d) ? f64_bits(1) : 1;
  switch (d) {
  case DT_I32: return (uint64_t)(int64_t)(largest ? INT32_MAX : INT32_MIN);
  case DT_I64: return (uint64_t)(largest ? INT64_MAX : INT64_MIN);
  case DT_U8: return largest ? UINT8_MAX : 0;
  case DT_BOOL: return largest;
  case DT_F32:
  case DT_F64:
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
  return f64_bits(largest ? (double)INFINITY : -(double)INFINITY);
}

static bool eval_reduce(struct arena *a, const struct node *n, const struct tensor *in, struct tensor *out) {
  static const enum sop ops[OP_COUNT] = {
      [OP_reduce_sum] = S_ADD, [OP_reduce_prod] = S_MUL, [OP_reduce_max] = S_MAX, [OP_reduce_min] = S_MIN};
  int naxes;
  const int64_t *axes = node_ints(n, ATTR_axes, &naxes);
  uint32_t reduced = 0;
  for (int i = 0; i < naxes; i++) reduced |= 1u << axes[i];
  enum dtype acc_type = wide(dtype_of(in));
  int64_t count = type_count(&in->type), results = type_count(&out->type), stride[MAX_RANK];
  strides_of(&in->type, stride);
  struct layout to = kept_axes(&in->type, reduced, &out->type);
  uint64_t *acc = arena_new_array(a, (size_t)results, uint64_t);
  for (int64_t r = 0; r < results; r++) acc[r] = reduce_identity(n->op, dtype_of(in));
  for (int64_t e = 0; e < count; e++) {
    uint64_t *slot = &acc[view_at(&to, &in->type, stride, e)];
    *slot = apply(ops[n->op], acc_type, *slot, load_wide(in, e));
  }
  for (int64_t r = 0; r < results; r++) store_wide(out, r, acc[r]);
  return true;
}

/* Whether x beats the best so far: the first of equals wins, NaN wins over all numbers. */
static bool beats(enum op_id op, enum dtype d, uint64_t x, uint64_t best) {
  if (apply(S_NE, d, best, best)) return false;
  if (apply(S_NE, d, x, x)) return true;
  return op == OP_argmax ? apply(S_LT, d, best, x) : apply(S_LT, d, x, best);
}

/* Along an axis of size 0 the result is 0. */
static bool eval_arg(const struct node *n, const struct tensor *in, struct tensor *out) {
  int64_t axis = node_int(n, ATTR_axis), stride[MAX_RANK], outer[MAX_RANK];
  strides_of(&in->type, stride);
  strides_of(&out->type, outer);
  int64_t results = type_count(&out->type), size = in->type.dim[axis];
  for (int64_t r = 0; r < results; r++) {
    int64_t base = 0, best = 0;
    for (int i = 0, k = 0; i < in->type.rank; i++)
      if (i != axis) base += r / outer[k] % out->type.dim[k] * stride[i], k++;
    for (int64_t i = 1; i < size; i++)
      if (beats(n->op, dtype_of(in), load(in, base + i * stride[axis]), load(in, base + best * stride[axis])))
        best = i;
    store(out, r, from_int(dtype_of(out), best));
  }
  return true;
}

/* ---- over towers, and fused ---- */

/* Element e of operands [lo, hi), joined by the fixed tree: the left part is the largest power of two that is
 * smaller than the whole. */
static uint64_t tree(enum sop op, const struct tensor *in, int lo, int hi, int64_t e) {
  if (hi - lo == 1) return load(&in[lo], e);
  int left = 1;
  while (2 * left < hi - lo) left *= 2;
  return apply(op, dtype_of(in), tree(op, in, lo, lo + left, e), tree(op, in, lo + left, hi, e));
}

static bool eval_all_reduce(const struct node *n, const struct tensor *in, struct tensor *out) {
  const char *r = node_string(n, ATTR_reduction);
  enum sop op = strcmp(r, "max") == 0 ? S_MAX : strcmp(r, "min") == 0 ? S_MIN : S_ADD;
  bool first = strcmp(r, "only_first_replica") == 0;
  enum dtype d = dtype_of(out);
  int64_t count = type_count(&out->type);
  for (int64_t e = 0; e < count; e++) {
    uint64_t x = first ? load(&in[0], e) : tree(op, in, 0, n->ninputs, e);
    if (strcmp(r, "mean") == 0) x = apply(S_DIV, d, x, from_int(d, n->ninputs));
    store(out, e, x);
  }
  return true;
}

/* Room for all results of a node. */
static struct tensor *results_of(struct arena *a, const struct node *n) {
  struct tensor *outs = arena_new_array(a, (size_t)node_results(n), struct tensor);
  for (int i = 0; i < node_results(n); i++) {
    struct type t = node_result_type(n, i);
    outs[i] = (struct tensor){t, arena_alloc(a, (size_t)type_bytes(&t))};
  }
  return outs;
}

/* `values` are all results of each node. */
static bool eval_inner(struct arena *a, const struct node *n, struct tensor **values, int64_t step) {
  if (n->op == OP_output) {
    values[n->id] = &values[n->inputs[0]->id][node_int(n, ATTR_index)];
    return true;
  }
  struct tensor *args = arena_new_array(a, (size_t)n->ninputs, struct tensor);
  for (int k = 0; k < n->ninputs; k++) args[k] = values[n->inputs[k]->id][0];
  values[n->id] = results_of(a, n);
  return node_results(n) > 1 ? results_eval(n, args, values[n->id], node_results(n), step)
                             : node_eval(n, args, values[n->id], step);
}

static bool eval_body(struct arena *a, const struct graph *body, const struct tensor *in, int ninputs,
                      struct tensor *outs, int nouts, int64_t step) {
  struct tensor **values = arena_new_array(a, body->count + 1, struct tensor *);
  int next = 0;
  for (uint32_t i = 0; i < body->count; i++) {
    const struct node *n = body->nodes[i];
    if (node_is(n, OP_input)) {
      if (next == ninputs) return false;
      values[i] = arena_copy(a, &in[next++], sizeof *in);
    } else if (!eval_inner(a, n, values, step))
      return false;
  }
  for (int k = 0; k < nouts; k++) {
    if (k >= body->noutputs) return false;
    eval_same(values[body->outputs[k].node->id], &outs[k]);
  }
  return true;
}

/* Element i along the first axis. */
static struct tensor element_of(const struct tensor *x, const struct type *t, int64_t i) {
  return (struct tensor){*t, (char *)x->data + i * type_bytes(t)};
}

/* One step: `in` and `outs` are those of the body. */
static bool eval_step(const struct graph *body, const struct tensor *in, int ninputs, struct tensor *outs,
                      int64_t step) {
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  bool ok = eval_body(a, body, in, ninputs, outs, body->noutputs, step);
  arena_destroy_guarded(a, &guard);
  return ok;
}

static bool eval_scan(struct arena *a, const struct node *n, const struct tensor *in, struct tensor *outs,
                      int nouts, int64_t step) {
  struct scan s = scan_of(n);
  struct node **inputs = scan_inputs(a, s.body);
  struct tensor *args = arena_new_array(a, (size_t)n->ninputs + 1, struct tensor);
  struct tensor *results = arena_new_array(a, (size_t)s.body->noutputs, struct tensor);
  if (nouts > s.body->noutputs) return false;
  for (uint32_t i = 0; i < s.body->count; i++)
    if (type_is_symbolic(&s.body->nodes[i]->type)) return false;
  for (int i = 0; i < n->ninputs; i++) args[i] = in[i];
  for (int i = 0; i < s.carries; i++) {
    args[i].data = arena_alloc(a, (size_t)type_bytes(&in[i].type));
    eval_same(&in[i], &args[i]);
  }
  for (int i = 0; i < s.body->noutputs; i++) {
    const struct type *t = &s.body->outputs[i].node->type;
    results[i] = (struct tensor){*t, arena_alloc(a, (size_t)type_bytes(t))};
  }
  for (int64_t k = 0; k < s.length; k++) {
    int64_t at = s.reverse ? s.length - 1 - k : k;
    for (int i = s.carries; i < s.carries + s.sequences; i++)
      args[i] = element_of(&in[i], &inputs[i]->type, at);
    if (!eval_step(s.body, args, n->ninputs, results, step)) return false;
    for (int i = 0; i < s.carries; i++) eval_same(&results[i], &args[i]);
    for (int i = s.carries; i < nouts; i++) {
      struct tensor element = element_of(&outs[i], &results[i].type, at);
      eval_same(&results[i], &element);
    }
  }
  for (int i = 0; i < s.carries && i < nouts; i++) eval_same(&args[i], &outs[i]);
  return true;
}

bool results_eval(const struct node *n, const struct tensor *in, struct tensor *outs, int nouts,
                  int64_t step) {
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  bool ok = n->op == OP_scan ? eval_scan(a, n, in, outs, nouts, step)
                             : eval_body(a, node_attr(n, ATTR_body)->body, in, n->ninputs, outs, nouts, step);
  arena_destroy_guarded(a, &guard);
  return ok;
}

/* ---- by kind: what has no rule has no value ---- */

static bool eval_source(struct arena *a, const struct node *n, const struct tensor *in, struct tensor *out) {
  if (n->op == OP_iota) return eval_iota(n, out);
  if (node_is_counted(n)) return eval_random(a, n, in, out);
  if (n->op == OP_constant)
    return eval_same(&(struct tensor){n->type, (void *)(uintptr_t)node_attr(n, ATTR_value)->data}, out);
  if (n->op != OP_batch_size || !node_attr(n, ATTR_batch)) return false; /* not known before replication */
  store(out, 0, from_int(dtype_of(out), node_int(n, ATTR_batch)));
  return true;
}

static bool eval_movement(const struct node *n, const struct tensor *in, struct tensor *out) {
  if (node_is_strided(n)) return eval_strided(n, in, out);
  if (n->op == OP_pad) return eval_pad(n, in, out);
  if (n->op == OP_concat) return eval_concat(n, in, out);
  return n->op == OP_reshape && eval_same(in, out);
}

static bool eval_meta(const struct node *n, const struct tensor *in, struct tensor *out, int64_t step) {
  if (n->op == OP_copy || n->op == OP_send) return eval_same(in, out);
  if (n->op == OP_split) return eval_strided(n, in, out);
  if (n->op == OP_all_gather) return eval_concat(n, in, out);
  if (n->op == OP_all_reduce) return eval_all_reduce(n, in, out);
  if (n->op == OP_fused || n->op == OP_scan) return results_eval(n, in, out, 1, step);
  return n->op == OP_output && node_int(n, ATTR_index) == 0 && eval_same(in, out); /* others: results_eval */
}

static bool eval_in(struct arena *a, const struct node *n, const struct tensor *in, struct tensor *out,
                    int64_t step) {
  switch (op_of(n)->kind) {
  case KIND_SOURCE: return eval_source(a, n, in, out);
  case KIND_ELEMENTWISE: return eval_elementwise(a, n, in, out);
  case KIND_REDUCE: return node_attr(n, ATTR_axes) ? eval_reduce(a, n, in, out) : eval_arg(n, in, out);
  case KIND_MOVEMENT: return eval_movement(n, in, out);
  case KIND_LEAF: op_of(n)->eval(n, in, out); return true;
  case KIND_EFFECT: return eval_same(&in[1], out);
  case KIND_META: return eval_meta(n, in, out, step);
  }
  return false;
}

bool node_eval(const struct node *n, const struct tensor *in, struct tensor *out, int64_t step) {
  if (type_is_symbolic(&n->type) || type_has_whole(&n->type)) return false;
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  bool ok = eval_in(a, n, in, out, step);
  arena_destroy_guarded(a, &guard);
  return ok;
}
