/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise expressions on tensors: numbers take the tensor's type, shapes broadcast, types never change
 * by themselves. */
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"

#include <math.h>

void build_here(struct resolver *r, struct loc loc) {
  r->g->at.loc = loc;
  r->g->at.scope = r->path;
}

struct value value_tensor(struct resolver *r, struct node *n, struct loc loc) {
  if (!n) {
    const struct diag *d = r->built.first;
    if (d) report(r, loc, "%s", d->message);
    for (d = d ? d->next : NULL; d; d = d->next) report_note(r, LOC_NONE, "%s", d->message);
    diags_init(&r->built, r->arena);
    return value_error();
  }
  struct value v = {.kind = VALUE_TENSOR, .at = loc};
  v.tensor.node = n;
  v.tensor.graph = r->g;
  return v;
}

struct node *tensor_node(struct resolver *r, const struct value *v, const char *what) {
  if (v->kind == VALUE_ERROR) return NULL;
  if (v->kind != VALUE_TENSOR) {
    report(r, v->at, "%s must be a tensor, not %s", what, value_describe(r->arena, v));
    if (v->kind == VALUE_LIST) help_list(r, v);
    return NULL;
  }
  if (v->tensor.graph != r->g) {
    report(r, v->at, "a tensor is not known yet when variables get their first values");
    return NULL;
  }
  return v->tensor.node;
}

static const double int_limits[DT_COUNT][2] = {[DT_I32] = {-2147483648.0, 2147483647.0},
                                               [DT_I64] = {-9223372036854775808.0, 9223372036854775807.0},
                                               [DT_U8] = {0, 255}};

/* What is infinite already may be so. */
bool float_fits(struct resolver *r, const struct value *v, enum dtype d) {
  if (v->kind != VALUE_FLOAT || d != DT_F32 || isinf(v->f) || !isinf((float)v->f)) return true;
  report(r, v->at, "%s does not fit into f32", value_text(r->arena, v));
  return false;
}

static struct node *number(struct resolver *r, const struct value *v, enum dtype d) {
  if (d == DT_BOOL || (v->kind == VALUE_FLOAT && !dtype_is_float(d))) {
    report(r, v->at, "%s cannot become %s", value_describe(r->arena, v), dtype_name(d));
    if (d != DT_BOOL) report_help(r, "convert the tensor instead: `cast(x, f32)`");
    return NULL;
  }
  if (!float_fits(r, v, d)) return NULL;
  if (dtype_is_float(d)) return build_scalar(r->g, d, v->kind == VALUE_INT ? (double)v->i : v->f);
  if ((double)v->i < int_limits[d][0] || (double)v->i > int_limits[d][1]) {
    report(r, v->at, "%lld does not fit into %s", (long long)v->i, dtype_name(d));
    return NULL;
  }
  struct type t = type_scalar(d);
  int32_t i32 = (int32_t)v->i;
  uint8_t u8 = (uint8_t)v->i;
  return build_constant(r->g, &t, d == DT_I64 ? (const void *)&v->i : d == DT_I32 ? (const void *)&i32 : &u8);
}

struct node *value_node(struct resolver *r, const struct value *v, enum dtype d) {
  switch (v->kind) {
  case VALUE_ERROR: return NULL;
  case VALUE_LIST: return list_constant(r, v, d);
  case VALUE_TENSOR: return tensor_node(r, v, "this");
  case VALUE_INT:
  case VALUE_FLOAT: return number(r, v, d);
  case VALUE_BOOL:
    if (d != DT_BOOL) {
      report(r, v->at, "%s cannot become %s", v->b ? "true" : "false", dtype_name(d));
      report_help(r, "write 1 or 0");
      return NULL;
    }
    {
      struct type t = type_scalar(DT_BOOL);
      uint8_t b = v->b;
      return build_constant(r->g, &t, &b);
    }
  case VALUE_BATCH:
    if (d == DT_BOOL) break;
    {
      struct node *n = build_batch_size(r->g, d);
      int64_t times = v->i < 0 ? -v->i : v->i;
      return times == 1 ? n : build2(r->g, OP_mul, n, build_scalar(r->g, d, (double)times));
    }
  case VALUE_NONE:
  case VALUE_STRING:
  case VALUE_DTYPE:
  case VALUE_TYPE:
  case VALUE_FUNCTION:
  case VALUE_BUILTIN:
  case VALUE_OP:
  case VALUE_MODULE:
  case VALUE_LAYER: break;
  }
  report(r, v->at, "this must be a tensor or a number, not %s", value_describe(r->arena, v));
  return NULL;
}

bool common_dtype(struct resolver *r, unsigned op, const struct value *v, int n, struct loc loc,
                  enum dtype *d) {
  const struct value *first = NULL;
  bool any_float = op_table[op]->dtypes == DTYPE_FLOAT, any_bool = false;
  for (int i = 0; i < n; i++) {
    any_float |= v[i].kind == VALUE_FLOAT;
    any_bool |= v[i].kind == VALUE_BOOL;
    if (v[i].kind != VALUE_TENSOR) continue;
    if (!first) {
      first = &v[i];
    } else if (first->tensor.node->type.dtype != v[i].tensor.node->type.dtype) {
      enum dtype a = first->tensor.node->type.dtype, b = v[i].tensor.node->type.dtype;
      bool keep = dtype_is_float(a) || (!dtype_is_float(b) && dtype_size(a) >= dtype_size(b) && a != DT_BOOL);
      report(r, loc, "%s needs operands of one type, not %s and %s", op_table[op]->name,
             type_text(r->arena, &first->tensor.node->type), type_text(r->arena, &v[i].tensor.node->type));
      report_value(r, first);
      report_value(r, &v[i]);
      report_cast(r, first, &v[i], keep ? a : b);
      return false;
    }
  }
  *d = first ? first->tensor.node->type.dtype : any_bool ? DT_BOOL : any_float ? DT_F32 : DT_I32;
  return true;
}

static bool wants_number(enum dtype_rule rule) {
  return rule == DTYPE_NUMBER || rule == DTYPE_FLOAT || rule == DTYPE_SINGLE || rule == DTYPE_TEST;
}

/* Says what the builder would, but where the operand comes from and what to do about it. */
bool dtype_fits(struct resolver *r, unsigned op, const struct value *v, enum dtype d, struct loc loc) {
  enum dtype_rule rule = op_table[op]->dtypes;
  const char *name = op_table[op]->name;
  bool needs_float = (rule == DTYPE_FLOAT || rule == DTYPE_TEST) && !dtype_is_float(d);
  bool needs_bool = rule == DTYPE_BOOL && d != DT_BOOL;
  bool needs_number = wants_number(rule) && d == DT_BOOL, needs_single = rule == DTYPE_SINGLE && d != DT_F32;
  if (!needs_float && !needs_bool && !needs_number && !needs_single) return true;
  report(r, loc, "%s needs %s, not %s", name,
         needs_single  ? "f32"
         : needs_float ? "f32 or f64"
         : needs_bool  ? "bool"
                       : "a number",
         value_describe(r->arena, v));
  report_value(r, v);
  if (!needs_bool) report_help(r, "write `cast(x, f32)`");
  return false;
}

static bool any_is(const struct value *v, int n, enum value_kind kind) {
  for (int i = 0; i < n; i++)
    if (v[i].kind == kind) return true;
  return false;
}

/* Beside a tensor a list of numbers is one, too. */
static bool is_operand(struct resolver *r, unsigned op, const struct value *v, bool beside_tensor) {
  if (v->kind == VALUE_TENSOR) return tensor_node(r, v, "this");
  if (v->kind == VALUE_BATCH || value_is_scalar(v) || (v->kind == VALUE_LIST && beside_tensor)) return true;
  report(r, v->at, "%s does not work on %s", op_table[op]->name, value_describe(r->arena, v));
  if (v->kind == VALUE_LIST) help_list(r, v);
  return false;
}

const struct node *node_behind_moves(const struct node *n) {
  while (n->op == OP_reshape || n->op == OP_cast || n->op == OP_slice || n->op == OP_transpose ||
         n->op == OP_broadcast)
    n = n->inputs[0];
  return n;
}

/* Bytes that are divided by what is no less than the greatest: nearly all are 0. */
static void warn_bytes(struct resolver *r, unsigned op, const struct value *v, const struct node *const *in,
                       struct loc loc) {
  const struct value *by = &v[1];
  if (op != OP_div || in[0]->type.dtype != DT_U8 || by->kind != VALUE_INT || by->i < UINT8_MAX) return;
  if (is_library(r, loc) || told_before(r, loc, "whole")) return;
  diag_warning(r->diags, loc, "bytes are divided by %lld as integers: what is less becomes 0",
               (long long)by->i);
  diag_help(r->diags, LOC_NONE, "convert first: `cast(%s, f32) / %lld`",
            v[0].name && v[0].decl.source ? v[0].name : "x", (long long)by->i);
}

/* Of what is written as 0 where it divides a tensor. */
static void warn_zero(struct resolver *r, unsigned op, const struct value *v, const struct node *const *in) {
  const struct value *by = &v[1];
  if ((op != OP_div && op != OP_mod) || !value_is_scalar(by) || by->name || is_library(r, by->at)) return;
  if (!node_is_constant(in[1], 0)) return;
  if (told_before(r, by->at, "zero")) return;
  diag_warning(r->diags, by->at, "division by zero");
}

struct value elementwise(struct resolver *r, unsigned op, struct value *v, int n, struct loc loc) {
  bool tensors = any_is(v, n, VALUE_TENSOR);
  if (any_is(v, n, VALUE_ERROR)) return value_error();
  for (int i = 0; i < n; i++)
    if (!is_operand(r, op, &v[i], tensors)) return value_error();
  tensors |= any_is(v, n, VALUE_BATCH);
  if (!tensors) return const_op(r, op, v, n, loc);

  build_here(r, loc);
  enum dtype d = DT_BOOL;
  int rest = op == OP_select; /* the condition has a type of its own */
  if (rest && v[0].kind == VALUE_TENSOR && v[0].tensor.node->type.dtype != DT_BOOL) {
    report(r, loc, "select needs a condition of bool, not %s", type_text(r->arena, &v[0].tensor.node->type));
    report_value(r, &v[0]);
    return value_error();
  }
  if (!common_dtype(r, op, v + rest, n - rest, loc, &d)) return value_error();
  if (!dtype_fits(r, op, &v[rest], d, loc)) return value_error();

  struct node *in[4];
  struct type shape = {0};
  for (int i = 0; i < n; i++) {
    in[i] = value_node(r, &v[i], i < rest ? DT_BOOL : d);
    if (!in[i]) return value_tensor(r, NULL, loc);
    struct type both;
    if (i == 0) {
      shape = in[i]->type;
    } else if (broadcast_shape(&shape, &in[i]->type, &both)) {
      shape = both;
    } else {
      report(r, loc, "%s needs shapes that broadcast, not %s and %s", op_table[op]->name,
             type_text(r->arena, &in[i - 1]->type), type_text(r->arena, &in[i]->type));
      for (int k = 0; k < n; k++) report_value(r, &v[k]);
      help_pairs(r, in, i + 1);
      return value_error();
    }
  }
  warn_zero(r, op, v, (const struct node *const *)in);
  warn_bytes(r, op, v, (const struct node *const *)in, loc);
  if (!type_check(r, &shape, loc)) {
    for (int k = 0; k < n; k++) report_value(r, &v[k]);
    help_pairs(r, in, n);
    return value_error();
  }
  for (int i = 0; i < n; i++) {
    struct type t = type_with_dtype(shape, (enum dtype)in[i]->type.dtype);
    in[i] = build_broadcast_to(r->g, in[i], &t);
  }
  return value_tensor(r, build(r->g, op, n, in, 0, NULL, NULL), loc);
}

struct node *added_up(struct resolver *r, struct node *x) {
  return x->type.dtype == DT_U8 ? build_cast(r->g, x, DT_I64) : x;
}

/* The last two axes of a product's operands fit, and those before them broadcast to *batch; else an error. */
static bool product_fits(struct resolver *r, const struct type *ta, const struct type *tb,
                         const struct value *v, struct loc loc, struct type *batch) {
  bool axes = ta->rank >= 2 && tb->rank >= 2;
  bool fits = axes && ta->dim[ta->rank - 1] == tb->dim[tb->rank - 2];
  struct type ba = *ta, bb = *tb;
  ba.rank = (uint8_t)(ta->rank >= 2 ? ta->rank - 2 : 0);
  bb.rank = (uint8_t)(tb->rank >= 2 ? tb->rank - 2 : 0);
  if (fits && broadcast_shape(&ba, &bb, batch)) return true;
  report(r, loc,
         !axes   ? "`@` needs at least two axes on both sides: %s @ %s"
         : !fits ? "`@` needs equal inner dimensions: %s @ %s"
                 : "`@` needs leading axes that broadcast: %s @ %s",
         type_text(r->arena, ta), type_text(r->arena, tb));
  report_value(r, &v[0]);
  report_value(r, &v[1]);
  if (axes && !fits && !r->errors.inside && ta->dim[ta->rank - 1] == tb->dim[tb->rank - 1])
    report_help(r, "with the last two axes turned round it fits: `x @ transpose(y)`");
  return false;
}

/* A matrix on the right serves all rows of the left, as one matrix. False: they are no such matrix. */
static bool rows_of_matrix(const struct type *ta, struct type *flat) {
  int64_t dims[2] = {1, ta->dim[ta->rank - 1]};
  for (int i = 0; i < ta->rank - 1; i++)
    if (!dim_mul(dims[0], ta->dim[i], &dims[0])) return false;
  *flat = type_make((enum dtype)ta->dtype, 2, dims);
  return true;
}

static struct type with_last_axes(const struct type *batch, const struct type *t) {
  struct type out = *batch;
  out.dtype = t->dtype;
  for (int i = 0; i < 2; i++) out.dim[out.rank++] = t->dim[t->rank - 2 + i];
  return out;
}

/* Batched matmul: leading axes broadcast. The precision that holds here is that of products of f32; others have their
 * own. */
static struct value matmul(struct resolver *r, struct value *v, struct loc loc) {
  struct node *a = tensor_node(r, &v[0], "the left side of `@`"),
              *b = tensor_node(r, &v[1], "the right side of `@`");
  enum dtype d;
  struct type batch = {0}, flat;
  if (!a || !b || !common_dtype(r, OP_matmul, v, 2, loc, &d)) return value_error();
  build_here(r, loc);
  if (!gather_for_product(r, &a, &b, loc)) return value_error();
  if (!product_fits(r, &a->type, &b->type, v, loc, &batch)) return value_error();
  a = added_up(r, a), b = added_up(r, b);
  const char *precision = a->type.dtype == DT_F32 && r->frame->bf16 ? "bf16" : NULL;
  if (precision) {
    a = build1(r->g, OP_round_bf16, a);
    b = build1(r->g, OP_round_bf16, b);
  }
  struct type ta = a->type, tb = b->type;
  if (ta.rank > 2 && tb.rank == 2) {
    struct type out = ta;
    out.dim[out.rank - 1] = tb.dim[1];
    if (!rows_of_matrix(&ta, &flat)) return value_error();
    if (type_is_symbolic(&flat) == type_is_symbolic(&ta)) { /* no rows at all would lose the batch */
      struct node *y = build_matmul_in(r->g, build_reshape(r->g, a, &flat), b, false, false, precision);
      return value_tensor(r, build_reshape(r->g, y, &out), loc);
    }
  }
  struct type wa = with_last_axes(&batch, &ta), wb = with_last_axes(&batch, &tb);
  a = build_broadcast_to(r->g, a, &wa);
  b = build_broadcast_to(r->g, b, &wb);
  return value_tensor(r, build_matmul_in(r->g, a, b, false, false, precision), loc);
}

static enum op_id op_of_operator(enum operator op) {
#define OPERATOR(name, text, precedence, op_) [OPERATOR_##name] = OP_##op_,
  static const enum op_id ops[] = {
#include "frontend/operators.def"
  };
#undef OPERATOR
  return ops[op];
}

struct value binary_values(struct resolver *r, enum operator op, struct value *v, struct loc loc) {
  if (v[0].kind == VALUE_ERROR || v[1].kind == VALUE_ERROR) return value_error();
  bool none = v[0].kind == VALUE_NONE || v[1].kind == VALUE_NONE;
  if (none && (op == OPERATOR_EQ || op == OPERATOR_NE)) /* a tensor is something */
    return value_bool((v[0].kind == v[1].kind) == (op == OPERATOR_EQ));
  bool fraction = (v[0].kind == VALUE_BATCH && v[1].kind == VALUE_FLOAT) ||
                  (v[0].kind == VALUE_FLOAT && v[1].kind == VALUE_BATCH);
  if (v[0].kind != VALUE_TENSOR && v[1].kind != VALUE_TENSOR && !fraction)
    return const_binary(r, op, &v[0], &v[1], loc);
  if (op == OPERATOR_MATMUL) return matmul(r, v, loc);
  if (op == OPERATOR_POW && v[1].kind == VALUE_INT && v[1].i == 2 && v[0].kind == VALUE_TENSOR)
    return elementwise(r, OP_square, v, 1, loc);
  return elementwise(r, op_of_operator(op), v, 2, loc);
}
