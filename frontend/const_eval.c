/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on compile-time values. Integers are exact: what does not fit or does not divide is an error.
 * Floats are f64; what is no basic operation runs the op's own scalar body, so it gives what the graph
 * would give. */
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"

#include <math.h>
#include <string.h>

static struct value overflow(struct resolver *r, struct loc loc) {
  report(r, loc, "this number does not fit into 64 bits");
  return value_error();
}

static struct value compare(enum operator op, int order, bool unordered) {
  switch (op) {
  case OPERATOR_EQ: return value_bool(!unordered && order == 0);
  case OPERATOR_NE: return value_bool(unordered || order != 0);
  case OPERATOR_LT: return value_bool(!unordered && order < 0);
  case OPERATOR_LE: return value_bool(!unordered && order <= 0);
  case OPERATOR_GT: return value_bool(!unordered && order > 0);
  case OPERATOR_GE: return value_bool(!unordered && order >= 0);
  case OPERATOR_OR:
  case OPERATOR_AND:
  case OPERATOR_NOT:
  case OPERATOR_ADD:
  case OPERATOR_SUB:
  case OPERATOR_MUL:
  case OPERATOR_DIV:
  case OPERATOR_MOD:
  case OPERATOR_MATMUL:
  case OPERATOR_NEG:
  case OPERATOR_POW:
  case OPERATOR_COUNT: break;
  }
  return value_error();
}

/* The cases of operators that make no number of two, for a switch that names every one. */
#define NOT_ARITHMETIC  \
  case OPERATOR_OR:     \
  case OPERATOR_AND:    \
  case OPERATOR_NOT:    \
  case OPERATOR_EQ:     \
  case OPERATOR_NE:     \
  case OPERATOR_LT:     \
  case OPERATOR_LE:     \
  case OPERATOR_GT:     \
  case OPERATOR_GE:     \
  case OPERATOR_MATMUL: \
  case OPERATOR_NEG:    \
  case OPERATOR_COUNT

static bool is_comparison(enum operator op) { return op >= OPERATOR_EQ && op <= OPERATOR_GE; }

static struct value int_power(struct resolver *r, int64_t x, int64_t n, struct loc loc) {
  if (n < 0) {
    report(r, loc, "an integer has no negative powers");
    report_help(r, "write one operand with a point: `%lld.0`", (long long)x);
    return value_error();
  }
  int64_t y = 1;
  for (; n; n >>= 1) {
    if ((n & 1) && __builtin_mul_overflow(y, x, &y)) return overflow(r, loc);
    if (n > 1 && __builtin_mul_overflow(x, x, &x)) return overflow(r, loc);
  }
  return value_int(y);
}

static struct value int_binary(struct resolver *r, enum operator op, int64_t a, int64_t b, struct loc loc) {
  int64_t y = 0;
  if (is_comparison(op)) return compare(op, (a > b) - (a < b), false);
  switch (op) {
  case OPERATOR_ADD:
    if (__builtin_add_overflow(a, b, &y)) return overflow(r, loc);
    return value_int(y);
  case OPERATOR_SUB:
    if (__builtin_sub_overflow(a, b, &y)) return overflow(r, loc);
    return value_int(y);
  case OPERATOR_MUL:
    if (__builtin_mul_overflow(a, b, &y)) return overflow(r, loc);
    return value_int(y);
  case OPERATOR_DIV:
  case OPERATOR_MOD:
    if (b == 0) {
      report(r, loc, "division by zero");
      return value_error();
    }
    if (a == INT64_MIN && b == -1) return op == OPERATOR_MOD ? value_int(0) : overflow(r, loc);
    if (op == OPERATOR_MOD) return value_int(a % b);
    if (a % b && is_library(r, loc) && loc.end - loc.begin < 60) {
      report(r, loc, "`%.*s` is no integer: %lld is not divisible by %lld", (int)(loc.end - loc.begin),
             loc.source->text + loc.begin, (long long)a, (long long)b);
      return value_error();
    }
    if (a % b) {
      report(r, loc, "%lld is not divisible by %lld", (long long)a, (long long)b);
      report_help(r, "integers divide exactly; for a fraction write `%lld.0 / %lld`", (long long)a,
                  (long long)b);
      return value_error();
    }
    return value_int(a / b);
  case OPERATOR_POW:
    return int_power(r, a, b, loc);
  NOT_ARITHMETIC:
    break;
  }
  report(r, loc, "`%s` does not work on numbers", operators[op].text);
  return value_error();
}

static struct value float_binary(struct resolver *r, enum operator op, double a, double b, struct loc loc) {
  if (is_comparison(op)) return compare(op, (a > b) - (a < b), isnan(a) || isnan(b));
  switch (op) {
  case OPERATOR_ADD: return value_float(a + b);
  case OPERATOR_SUB: return value_float(a - b);
  case OPERATOR_MUL: return value_float(a * b);
  case OPERATOR_DIV: return value_float(a / b);
  case OPERATOR_MOD:
  case OPERATOR_POW: {
    struct value v[] = {value_float(a), value_float(b)};
    return const_op(r, op == OPERATOR_POW ? OP_pow : OP_mod, v, 2, loc);
  }
  NOT_ARITHMETIC:
    break;
  }
  report(r, loc, "`%s` does not work on numbers", operators[op].text);
  return value_error();
}

static struct value multiple(int64_t times) { return (struct value){.kind = VALUE_BATCH, .i = times}; }

/* a and b are multiples of B or N, or one is an integer. */
static struct value batch_binary(struct resolver *r, enum operator op, const struct value *a,
                                 const struct value *b, struct loc loc) {
  bool both = a->kind == b->kind, alike = both && (a->i > 0) == (b->i > 0);
  int64_t y = 0, number = a->kind == VALUE_BATCH ? b->i : a->i;
  if (both && (op == OPERATOR_EQ || op == OPERATOR_NE))
    return value_bool((a->i == b->i) == (op == OPERATOR_EQ));
  if (alike && op == OPERATOR_ADD && !__builtin_add_overflow(a->i, b->i, &y)) return multiple(y);
  if (alike && op == OPERATOR_DIV && a->i % b->i == 0) return value_int(a->i / b->i);
  if (!both && op == OPERATOR_MUL && number > 0 && !__builtin_mul_overflow(a->i, b->i, &y))
    return multiple(y);
  if (!both && op == OPERATOR_DIV && a->kind == VALUE_BATCH && b->i > 0 && a->i % b->i == 0)
    return multiple(a->i / b->i);
  if (!both && (op == OPERATOR_EQ || op == OPERATOR_NE)) return value_bool(op == OPERATOR_NE);
  report(r, loc, "`%s %s %s` is not known when the model is compiled: %s", value_text(r->arena, a),
         operators[op].text, value_text(r->arena, b),
         (a->kind == VALUE_BATCH ? a->i : b->i) > 0 ? "B is the batch" : "N is how many rows the batch has");
  return value_error();
}

bool list_seal(struct resolver *r, struct value *list, struct loc loc) {
  int64_t total = 0;
  int depth = 0;
  for (int i = 0; i < list->list.count; i++) {
    const struct value *v = &list->list.items[i];
    total += v->kind == VALUE_LIST ? 1 + v->list.total : 1;
    if (v->kind == VALUE_LIST && v->list.depth > depth) depth = v->list.depth;
  }
  list->list.total = (int)(total <= MAX_TRIPS ? total : MAX_TRIPS);
  list->list.depth = depth + 1;
  r->budget.steps += list->list.count / 4;
  if (total > MAX_TRIPS)
    report(r, loc, "a list may have at most %d items", MAX_TRIPS);
  else if (depth >= MAX_LIST_DEPTH)
    report(r, loc, "lists may be nested at most %d deep", MAX_LIST_DEPTH);
  else
    return true;
  return false;
}

static struct value list_add(struct resolver *r, const struct value *a, const struct value *b,
                             struct loc loc) {
  if ((int64_t)a->list.count + b->list.count > MAX_TRIPS) {
    report(r, loc, "a list may have at most %d items", MAX_TRIPS);
    return value_error();
  }
  struct value v = {.kind = VALUE_LIST};
  v.list.count = a->list.count + b->list.count;
  v.list.items = arena_new_array(r->arena, (size_t)v.list.count, struct value);
  if (a->list.count) memcpy(v.list.items, a->list.items, sizeof v * (size_t)a->list.count);
  if (b->list.count) memcpy(v.list.items + a->list.count, b->list.items, sizeof v * (size_t)b->list.count);
  return list_seal(r, &v, loc) ? v : value_error();
}

struct value const_binary(struct resolver *r, enum operator op, const struct value *a, const struct value *b,
                          struct loc loc) {
  if (a->kind == VALUE_ERROR || b->kind == VALUE_ERROR) return value_error();
  bool numbers =
      (a->kind == VALUE_INT || a->kind == VALUE_FLOAT) && (b->kind == VALUE_INT || b->kind == VALUE_FLOAT);
  if (a->kind == VALUE_INT && b->kind == VALUE_INT) return int_binary(r, op, a->i, b->i, loc);
  if (numbers)
    return float_binary(r, op, a->kind == VALUE_INT ? (double)a->i : a->f,
                        b->kind == VALUE_INT ? (double)b->i : b->f, loc);
  bool dims =
      (a->kind == VALUE_INT || a->kind == VALUE_BATCH) && (b->kind == VALUE_INT || b->kind == VALUE_BATCH);
  if (dims) return batch_binary(r, op, a, b, loc);
  if (op == OPERATOR_EQ) return value_bool(value_equal(a, b));
  if (op == OPERATOR_NE) return value_bool(!value_equal(a, b));
  if (op == OPERATOR_ADD && a->kind == VALUE_LIST && b->kind == VALUE_LIST) return list_add(r, a, b, loc);
  if (op == OPERATOR_ADD && a->kind == VALUE_STRING && b->kind == VALUE_STRING) {
    r->budget.steps += (int64_t)strlen(a->string) / 64;
    if (strlen(a->string) + strlen(b->string) <= MAX_STRING)
      return (struct value){.kind = VALUE_STRING,
                            .string = arena_printf(r->arena, "%s%s", a->string, b->string)};
    report(r, loc, "a string may have at most %d bytes", MAX_STRING);
    return value_error();
  }
  report(r, loc, "`%s` does not work on %s and %s", operators[op].text, value_describe(r->arena, a),
         value_describe(r->arena, b));
  if (a->kind == VALUE_LIST || b->kind == VALUE_LIST) help_list(r, a->kind == VALUE_LIST ? a : b);
  return value_error();
}

/* Ops of integers that may not fit, by their operators: *y is what they give. */
static bool exact(struct resolver *r, unsigned op, const struct value *v, int n, struct loc loc,
                  struct value *y) {
  for (int i = 0; i < n; i++)
    if (v[i].kind != VALUE_INT) return false;
  switch (op) {
  case OP_add: return *y = int_binary(r, OPERATOR_ADD, v[0].i, v[1].i, loc), true;
  case OP_sub: return *y = int_binary(r, OPERATOR_SUB, v[0].i, v[1].i, loc), true;
  case OP_mul: return *y = int_binary(r, OPERATOR_MUL, v[0].i, v[1].i, loc), true;
  case OP_div: return *y = int_binary(r, OPERATOR_DIV, v[0].i, v[1].i, loc), true;
  case OP_mod: return *y = int_binary(r, OPERATOR_MOD, v[0].i, v[1].i, loc), true;
  case OP_square: return *y = int_binary(r, OPERATOR_MUL, v[0].i, v[0].i, loc), true;
  case OP_neg: return *y = int_binary(r, OPERATOR_SUB, 0, v[0].i, loc), true;
  case OP_abs: *y = v[0].i < 0 ? int_binary(r, OPERATOR_SUB, 0, v[0].i, loc) : v[0]; return true;
  default: return false;
  }
}

/* One of two values by a condition: a float if either is one. */
static bool selected(unsigned op, const struct value *v, struct value *y) {
  if (op != OP_select || v[0].kind != VALUE_BOOL) return false;
  bool bools = v[1].kind == VALUE_BOOL || v[2].kind == VALUE_BOOL, alike = v[1].kind == v[2].kind;
  if (bools && !alike) return false;
  const struct value *one = v[0].b ? &v[1] : &v[2];
  *y = one->kind == VALUE_INT && !alike ? value_float((double)one->i) : *one;
  return true;
}

enum { MAX_OPERANDS = 3 };

/* The element type in which an op of numbers and conditions is computed. DT_COUNT: it is of none. */
static enum dtype dtype_of_op(unsigned op, const struct value *v, int n) {
  enum dtype_rule takes = op_table[op]->dtypes;
  bool any_float = takes == DTYPE_FLOAT || takes == DTYPE_TEST, any_bool = false, all_bool = true;
  for (int i = 0; i < n; i++) {
    any_float |= v[i].kind == VALUE_FLOAT;
    any_bool |= v[i].kind == VALUE_BOOL;
    all_bool &= v[i].kind == VALUE_BOOL;
  }
  if (n > MAX_OPERANDS || (any_bool && (!all_bool || op == OP_select))) return DT_COUNT;
  return any_bool ? DT_BOOL : takes == DTYPE_SINGLE ? DT_F32 : any_float ? DT_F64 : DT_I64;
}

static struct value report_operands(struct resolver *r, unsigned op, const struct value *v, int n,
                                    struct loc loc) {
  struct str list = str_make(r->arena);
  for (int i = 0; i < n; i++)
    str_printf(&list, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " and ", value_describe(r->arena, &v[i]));
  report(r, loc, "%s does not work on %s", op_table[op]->name, list.data);
  return value_error();
}

/* A scalar as tensors have it. */
union scalar_bytes {
  double f64;
  float f32;
  int64_t i64;
  uint8_t truth;
};

static union scalar_bytes bytes_of(const struct value *v, enum dtype d) {
  double f = v->kind == VALUE_INT ? (double)v->i : v->kind == VALUE_FLOAT ? v->f : 0;
  if (d == DT_F64) return (union scalar_bytes){.f64 = f};
  if (d == DT_F32) return (union scalar_bytes){.f32 = (float)f};
  if (d == DT_I64) return (union scalar_bytes){.i64 = v->kind == VALUE_INT ? v->i : 0};
  return (union scalar_bytes){.truth = v->kind == VALUE_BOOL && v->b};
}

static struct value value_of_bytes(const union scalar_bytes *y, enum dtype d) {
  if (d == DT_BOOL) return value_bool(y->truth);
  if (d == DT_I64) return value_int(y->i64);
  return value_float(d == DT_F32 ? (double)y->f32 : y->f64);
}

struct value const_op(struct resolver *r, unsigned op, const struct value *v, int n, struct loc loc) {
  struct value known;
  if (exact(r, op, v, n, loc, &known) || selected(op, v, &known)) return known;
  enum dtype d = dtype_of_op(op, v, n);
  if (d == DT_COUNT) return report_operands(r, op, v, n, loc);
  struct node operands[MAX_OPERANDS] = {0}, *inputs[MAX_OPERANDS];
  struct node node = {.op = op, .ninputs = n, .inputs = inputs};
  union scalar_bytes x[MAX_OPERANDS], y = {0};
  struct tensor in[MAX_OPERANDS];
  for (int i = 0; i < n; i++) {
    operands[i] = (struct node){.op = OP_constant, .type = type_scalar(d)};
    inputs[i] = &operands[i];
    x[i] = bytes_of(&v[i], d);
    in[i] = (struct tensor){type_scalar(d), &x[i]};
  }
  const char *why = NULL;
  if (!node_infer(r->g, &node, &why)) {
    report(r, loc, "%s", why);
    return value_error();
  }
  struct tensor out = {node.type, &y};
  if (!node_eval(&node, in, &out, 0)) {
    report(r, loc, "%s cannot be computed here", op_table[op]->name);
    return value_error();
  }
  return value_of_bytes(&y, (enum dtype)node.type.dtype);
}
