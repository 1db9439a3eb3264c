/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops of two operands, and select.
 *
 * In a body, `a` and `b` are the operands; in a gradient they are the operands' nodes, `y` is the result's and
 * `dy` its gradient. */
#include "ir/graph/build.h"
#include "ir/ops/op_id.h"
#include "ir/ops/parts.h"

#define BIN(op, l, r) s_binary(p, S_##op, (l), (r))
#define K(v)          s_const(p, s_dtype(p, a), (v))

#define FILL(v) build_fill(c->g, &y->type, (v))
/* In this order, whatever the compiler: see ir/graph/build.h. */
#define TWO(op, l, r) (grad_hold(c, (l)), grad_hold(c, (r)), grad_build(c, OP_##op, 2))
#define MUL(l, r)     TWO(mul, l, r)
#define DIV(l, r)     TWO(div, l, r)
#define ADD(l, r)     TWO(add, l, r)
#define SUB(l, r)     TWO(sub, l, r)
#define CMP(op, l, r) TWO(op, l, r)
#define SEL(k, l, r)  (grad_hold(c, (k)), grad_hold(c, (l)), grad_hold(c, (r)), grad_build(c, OP_select, 3))
#define F(op, l)      build1(c->g, OP_##op, (l))

#define BODY(name_, expr)                                                             \
  static sval name_##_scalar(struct sprog *p, const struct node *n, const sval *in) { \
    (void)n;                                                                          \
    sval a = in[0], b = in[1];                                                        \
    return expr;                                                                      \
  }
#define GRAD(name_, da, db)                                                             \
  static void name_##_grad(struct grad *c, const struct node *n, struct node *dy) {     \
    struct node *a = n->inputs[0], *b = n->inputs[1], *y = (struct node *)(uintptr_t)n; \
    (void)a, (void)b, (void)y;                                                          \
    grad_add(c, n, 0, da);                                                              \
    grad_add(c, n, 1, db);                                                              \
  }
#define BINARY(name_, dtypes_, domain_, traits_, ...)          \
  const struct op_info op_##name_ = {.name = #name_,           \
                                     .kind = KIND_ELEMENTWISE, \
                                     .dtypes = dtypes_,        \
                                     .traits = traits_,        \
                                     .min_inputs = 2,          \
                                     .max_inputs = 2,          \
                                     .roles = {"lhs", "rhs"},  \
                                     .domain = domain_,        \
                                     .scalar = name_##_scalar, \
                                     __VA_ARGS__};

/* ---- arithmetic ---- */

static struct node *add_fold(struct graph *g, const struct node *n) {
  if (node_is_constant(n->inputs[0], 0)) return n->inputs[1];
  if (node_is_constant(n->inputs[1], 0)) return n->inputs[0];
  return parts_add(g, n->inputs[0], n->inputs[1]);
}
BODY(add, BIN(ADD, a, b))
GRAD(add, dy, dy)
BINARY(add, DTYPE_NUMBER, DOMAIN_ANY, OP_COMMUTATIVE, .fold = add_fold, .grad = add_grad,
       .linear_jointly = true)

static struct node *sub_fold(struct graph *g, const struct node *n) {
  if (node_is_constant(n->inputs[1], 0)) return n->inputs[0];
  return node_is_constant(n->inputs[0], 0) ? build1(g, OP_neg, n->inputs[1]) : NULL;
}
BODY(sub, BIN(SUB, a, b))
GRAD(sub, dy, F(neg, dy))
BINARY(sub, DTYPE_NUMBER, DOMAIN_ANY, 0, .fold = sub_fold, .grad = sub_grad, .linear_jointly = true)

static struct node *mul_fold(struct graph *g, const struct node *n) {
  for (int i = 0; i < 2; i++) {
    if (node_is_constant(n->inputs[i], 1)) return n->inputs[1 - i];
    if (node_is_constant(n->inputs[i], -1)) return build1(g, OP_neg, n->inputs[1 - i]);
  }
  return NULL;
}
BODY(mul, BIN(MUL, a, b))
GRAD(mul, MUL(dy, b), MUL(dy, a))
BINARY(mul, DTYPE_NUMBER, DOMAIN_ANY, OP_COMMUTATIVE, .fold = mul_fold, .grad = mul_grad, .linear = 3)

static struct node *div_fold(struct graph *g, const struct node *n) {
  (void)g;
  return node_is_constant(n->inputs[1], 1) ? n->inputs[0] : NULL;
}
BODY(div, BIN(DIV, a, b))
GRAD(div, DIV(dy, b), F(neg, MUL(dy, DIV(y, b))))
BINARY(div, DTYPE_NUMBER, DOMAIN_NONZERO, 0, .fold = div_fold, .grad = div_grad, .linear = 1)

/* The remainder of truncating division, as C's % and fmod. */
BODY(mod, BIN(REM, a, b))
GRAD(mod, dy, F(neg, MUL(dy, F(trunc, DIV(a, b)))))
BINARY(mod, DTYPE_NUMBER, DOMAIN_NONZERO, 0, .grad = mod_grad)

static struct node *pow_fold(struct graph *g, const struct node *n) {
  if (node_is_constant(n->inputs[1], 1)) return n->inputs[0];
  if (node_is_constant(n->inputs[1], 2)) return build1(g, OP_square, n->inputs[0]);
  return NULL;
}
BODY(pow, m_pow(p, a, b))
/* d/db is 0 where the base is not positive: the logarithm is not defined there */
GRAD(pow, MUL(dy, MUL(b, TWO(pow, a, SUB(b, FILL(1))))),
     MUL(dy, MUL(y, SEL(CMP(gt, a, FILL(0)), F(log, SEL(CMP(gt, a, FILL(0)), a, FILL(1))), FILL(0)))))
BINARY(pow, DTYPE_FLOAT, DOMAIN_POSITIVE, 0, .fold = pow_fold, .grad = pow_grad)

/* ---- extremes; between equals the gradient goes to the left operand, beside NaN to neither ---- */

/* Where a < b, a < max(a, b), NaN or not. So b need not be kept for the gradient; but where it is a
 * product or a function of something that gradients there read anyhow, it is the cheaper one to have. */
static struct node *kept_for_gradient(struct node *b, struct node *y) {
  const struct node *x = b;
  while (x->op == OP_add || x->op == OP_sub) {
    bool left = !node_is(x->inputs[0], OP_broadcast), right = !node_is(x->inputs[1], OP_broadcast);
    if (left == right) return y;
    x = x->inputs[!left];
  }
  return op_of(x)->kind == KIND_ELEMENTWISE ? b : y;
}

BODY(max, BIN(MAX, a, b))
GRAD(max, SEL(CMP(ge, a, b), dy, FILL(0)), SEL(CMP(lt, a, kept_for_gradient(b, y)), dy, FILL(0)))
BINARY(max, DTYPE_ANY, DOMAIN_DISTINCT, 0, .grad = max_grad)

BODY(min, BIN(MIN, a, b))
GRAD(min, SEL(CMP(le, a, b), dy, FILL(0)), SEL(CMP(gt, a, kept_for_gradient(b, y)), dy, FILL(0)))
BINARY(min, DTYPE_ANY, DOMAIN_DISTINCT, 0, .grad = min_grad)

/* max(a - b, 0) */
BODY(fdim, s_select(p, BIN(LE, a, b), K(0), BIN(SUB, a, b)))
GRAD(fdim, SEL(CMP(gt, a, b), dy, FILL(0)), SEL(CMP(gt, a, b), F(neg, dy), FILL(0)))
BINARY(fdim, DTYPE_FLOAT, DOMAIN_DISTINCT, 0, .grad = fdim_grad)

/* ---- geometry ---- */

BODY(atan2, m_atan2(p, a, b))
GRAD(atan2, DIV(MUL(dy, b), ADD(F(square, a), F(square, b))),
     F(neg, DIV(MUL(dy, a), ADD(F(square, a), F(square, b)))))
BINARY(atan2, DTYPE_FLOAT, DOMAIN_NONZERO, 0, .grad = atan2_grad)

BODY(hypot, m_hypot(p, a, b))
GRAD(hypot, MUL(dy, DIV(a, y)), MUL(dy, DIV(b, y)))
BINARY(hypot, DTYPE_FLOAT, DOMAIN_NONZERO, 0, .grad = hypot_grad)

BODY(copysign, m_copysign(p, a, b))
static void copysign_grad(struct grad *c, const struct node *n, struct node *dy) {
  struct node *y = (struct node *)(uintptr_t)n, *one = FILL(1);
  struct node *flip = MUL(TWO(copysign, one, n->inputs[0]), TWO(copysign, one, n->inputs[1]));
  grad_add(c, n, 0, MUL(dy, flip));
}
BINARY(copysign, DTYPE_FLOAT, DOMAIN_NONZERO, 0, .grad = copysign_grad)

/* ---- comparisons and logic ---- */

BODY(eq, BIN(EQ, a, b))
BODY(ne, BIN(NE, a, b))
BODY(lt, BIN(LT, a, b))
BODY(le, BIN(LE, a, b))
BODY(gt, BIN(LT, b, a))
BODY(ge, BIN(LE, b, a))
BODY(and, BIN(AND, a, b))
BODY(or, BIN(OR, a, b))
BODY(xor, BIN(XOR, a, b))
BINARY(eq, DTYPE_COMPARE, DOMAIN_SMALL_INT, OP_COMMUTATIVE | OP_NO_GRADIENT)
BINARY(ne, DTYPE_COMPARE, DOMAIN_SMALL_INT, OP_COMMUTATIVE | OP_NO_GRADIENT)
BINARY(lt, DTYPE_COMPARE, DOMAIN_SMALL_INT, OP_NO_GRADIENT)
BINARY(le, DTYPE_COMPARE, DOMAIN_SMALL_INT, OP_NO_GRADIENT)
BINARY(gt, DTYPE_COMPARE, DOMAIN_SMALL_INT, OP_NO_GRADIENT)
BINARY(ge, DTYPE_COMPARE, DOMAIN_SMALL_INT, OP_NO_GRADIENT)
BINARY(and, DTYPE_INTBOOL, DOMAIN_ANY, OP_COMMUTATIVE | OP_NO_GRADIENT)
BINARY(or, DTYPE_INTBOOL, DOMAIN_ANY, OP_COMMUTATIVE | OP_NO_GRADIENT)
BINARY(xor, DTYPE_INTBOOL, DOMAIN_ANY, OP_COMMUTATIVE | OP_NO_GRADIENT)

/* ---- shifts of integers; a count below 0 or not below the width moves all bits out, as numpy's and XLA's ---- */

static sval is_shift(struct sprog *p, sval count) {
  enum dtype d = s_dtype(p, count);
  return BIN(AND, BIN(LE, s_int(p, d, 0), count), BIN(LT, count, s_int(p, d, 8 * dtype_size(d))));
}

static sval shift_right_of(struct sprog *p, sval a, sval count) {
  enum dtype d = s_dtype(p, a);
  if (d == DT_U8) return s_select(p, is_shift(p, count), BIN(SHR, a, count), K(0));
  return BIN(SAR, a, s_select(p, is_shift(p, count), count, s_int(p, d, 8 * dtype_size(d) - 1)));
}

BODY(shift_left, s_select(p, is_shift(p, b), BIN(SHL, a, b), K(0)))
BODY(shift_right, shift_right_of(p, a, b))
BINARY(shift_left, DTYPE_INTEGER, DOMAIN_ANY, OP_NO_GRADIENT)
BINARY(shift_right, DTYPE_INTEGER, DOMAIN_ANY, OP_NO_GRADIENT)

/* ---- select: condition ? a : b ---- */

static bool select_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const struct type *k = &n->inputs[0]->type, *l = &n->inputs[1]->type, *r = &n->inputs[2]->type;
  if (k->dtype != DT_BOOL) {
    *why = arena_printf(a, "select needs a bool condition, not %s", type_text(a, k));
    return false;
  }
  if (!type_equal(l, r)) {
    *why = arena_printf(a, "select needs two values of one type, not %s and %s", type_text(a, l),
                        type_text(a, r));
    return false;
  }
  *out = *l;
  return true;
}
static struct node *select_fold(struct graph *g, const struct node *n) {
  (void)g;
  if (n->inputs[1] == n->inputs[2] || node_is_constant(n->inputs[0], 1)) return n->inputs[1];
  return node_is_constant(n->inputs[0], 0) ? n->inputs[2] : NULL;
}
static sval select_scalar(struct sprog *p, const struct node *n, const sval *in) {
  (void)n;
  return s_select(p, in[0], in[1], in[2]);
}
static void select_grad(struct grad *c, const struct node *n, struct node *dy) {
  struct node *zero = build_fill(c->g, &n->type, 0);
  grad_add(c, n, 1, SEL(n->inputs[0], dy, zero));
  grad_add(c, n, 2, SEL(n->inputs[0], zero, dy));
}
const struct op_info op_select = {.name = "select",
                                  .kind = KIND_ELEMENTWISE,
                                  .dtypes = DTYPE_CUSTOM,
                                  .min_inputs = 3,
                                  .max_inputs = 3,
                                  .roles = {"condition", "a", "b"},
                                  .domain = DOMAIN_ANY,
                                  .infer = select_infer,
                                  .fold = select_fold,
                                  .scalar = select_scalar,
                                  .grad = select_grad};
