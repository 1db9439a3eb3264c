/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors for the numeric claim: drawing, computing, cutting. Floats are f64, so that the order of additions shows far
 * below what a fault shows. */
#include "ir/certify/numeric.h"
#include "ir/graph/build.h"
#include "ir/ops/op_id.h"

#include <string.h>

struct type certify_wide(struct type t) {
  if (t.dtype == DT_F32) t.dtype = DT_F64;
  return t;
}

static struct tensor tensor_new(struct numbers *z, const struct type *t) {
  return (struct tensor){*t, arena_alloc(z->step, (size_t)type_bytes(t))};
}

static uint64_t mix(uint64_t x) {
  x = (x ^ x >> 31) * UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
  return x ^ x >> 32;
}

/* Floats in (0, 1), which no logarithm refuses; whole numbers from 0 to 3, which may be classes, or, that a variable is
 * not by chance what is assigned to it, from 100 on. */
struct tensor certify_draw(struct numbers *z, const char *name, const struct type *type, bool variable) {
  struct type wide = certify_wide(*type);
  struct tensor t = tensor_new(z, &wide);
  uint64_t h = str_hash(z->seed ^ STR_HASH_SEED, name, strlen(name));
  for (int64_t i = 0; i < type_count(&wide); i++) {
    h = mix(h + (uint64_t)i + 1);
    int small = variable ? 100 + (int)(h >> 20 & 127) : (int)(h >> 20 & 3);
    switch ((enum dtype)wide.dtype) {
    case DT_F64: ((double *)t.data)[i] = ((double)(h >> 12) + 0.5) * 0x1p-52; break;
    case DT_I32: ((int32_t *)t.data)[i] = small; break;
    case DT_I64: ((int64_t *)t.data)[i] = small; break;
    case DT_BOOL: ((uint8_t *)t.data)[i] = small & 1; break;
    case DT_U8: ((uint8_t *)t.data)[i] = (uint8_t)small; break;
    case DT_F32: /* none is this narrow */
    case DT_BF16:
    case DT_F16:
    case DT_COUNT: break;
    }
  }
  return t;
}

struct tensor certify_gap(struct numbers *z, const struct node *n, const char *why) {
  struct uncomputed **at = &z->gaps;
  while (*at && (*at)->node != n) at = &(*at)->next;
  if (!*at) {
    *at = arena_new(z->arena, struct uncomputed);
    **at = (struct uncomputed){n, why, NULL};
  }
  return (struct tensor){certify_wide(n->type), NULL};
}

uint8_t *certify_constants(struct arena *a, const struct graph *g) {
  uint8_t *constant = arena_new_array(a, (size_t)g->count + 1, uint8_t);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    bool folds = op_of(n)->kind == KIND_ELEMENTWISE || n->op == OP_broadcast || n->op == OP_reshape;
    constant[i] = n->op == OP_constant || n->op == OP_tower_count || (folds && n->ninputs > 0);
    for (int k = 0; k < n->ninputs; k++) constant[i] &= constant[n->inputs[k]->id];
  }
  return constant;
}

/* f32 as f64, or back. */
static struct tensor converted(struct numbers *z, const struct tensor *x, enum dtype d) {
  struct type t = type_with_dtype(x->type, d);
  if (!x->data || x->type.dtype == d || !dtype_is_float((enum dtype)x->type.dtype)) return *x;
  struct tensor out = tensor_new(z, &t);
  for (int64_t i = 0; i < type_count(&t); i++)
    if (d == DT_F64)
      ((double *)out.data)[i] = ((const float *)x->data)[i];
    else
      ((float *)out.data)[i] = (float)((const double *)x->data)[i];
  return out;
}

static struct tensor compute(struct numbers *z, const struct node *n, const struct type *type,
                             const struct tensor *in) {
  struct node w = *n, *operands = arena_new_array(z->step, (size_t)n->ninputs + 1, struct node);
  w.inputs = arena_new_array(z->step, (size_t)n->ninputs + 1, struct node *);
  w.type = *type;
  for (int k = 0; k < n->ninputs; k++) {
    operands[k] = *n->inputs[k];
    operands[k].type = in[k].type;
    w.inputs[k] = &operands[k];
  }
  struct tensor out = tensor_new(z, type);
  return node_eval(&w, in, &out, 0) ? out : certify_gap(z, n, "the op has no value of its own");
}

struct tensor certify_compute(struct numbers *z, const struct node *n, const struct type *type,
                              const struct tensor *in, bool constant) {
  struct type wide = certify_wide(*type);
  bool narrow = constant && type->dtype == DT_F32;
  struct tensor *of = arena_new_array(z->step, (size_t)n->ninputs + 1, struct tensor);
  for (int k = 0; k < n->ninputs; k++) {
    if (!in[k].data) return (struct tensor){wide, NULL};
    bool single = constant && n->inputs[k]->type.dtype == DT_F32;
    of[k] = single ? converted(z, &in[k], DT_F32) : in[k];
  }
  if (type_is_symbolic(type)) return certify_gap(z, n, "its type depends on the batch");
  if (n->op == OP_scan) return certify_gap(z, n, "its body is not computed in f64");
  struct tensor out = compute(z, n, narrow ? type : &wide, of);
  return narrow ? converted(z, &out, DT_F64) : out;
}

/* ---- rows ---- */

/* Bytes of one element of the axis, and how often the axis is there. */
static size_t span(const struct type *t, int axis, int64_t *times) {
  size_t bytes = (size_t)dtype_size((enum dtype)t->dtype);
  *times = 1;
  for (int i = 0; i < axis; i++) *times *= t->dim[i];
  for (int i = axis + 1; i < t->rank; i++) bytes *= (size_t)t->dim[i];
  return bytes;
}

/* Copies `count` elements of the axis, from x's `begin` to out's `at`. */
static void move(const struct tensor *x, int64_t begin, struct tensor *out, int64_t at, int64_t count,
                 int axis) {
  int64_t times;
  size_t bytes = span(&x->type, axis, &times);
  for (int64_t i = 0; i < times; i++)
    memcpy((char *)out->data + (size_t)(i * out->type.dim[axis] + at) * bytes,
           (const char *)x->data + (size_t)(i * x->type.dim[axis] + begin) * bytes, (size_t)count * bytes);
}

struct tensor certify_cut(struct numbers *z, const struct tensor *x, int axis, int64_t begin, int64_t count) {
  struct type t = x->type;
  t.dim[axis] = count;
  if (!x->data) return (struct tensor){t, NULL};
  struct tensor out = tensor_new(z, &t);
  move(x, begin, &out, 0, count, axis);
  return out;
}

struct tensor certify_append(struct numbers *z, const struct tensor *x, int count, int axis) {
  struct type t = x[0].type;
  int64_t at = 0;
  t.dim[axis] = 0;
  for (int k = 0; k < count; k++) {
    if (!x[k].data) return (struct tensor){t, NULL};
    t.dim[axis] += x[k].type.dim[axis];
  }
  struct tensor out = tensor_new(z, &t);
  for (int k = 0; k < count; at += x[k].type.dim[axis], k++)
    move(&x[k], 0, &out, at, x[k].type.dim[axis], axis);
  return out;
}
