/* SPDX-License-Identifier: Apache-2.0 */
/* Every rewrite rule, numerically: a graph as it is written against the same graph simplified, on values from the
 * whole type. The rules hold up to the sign of zero (x + 0 is x for -0 too). */
#include "ir/ops/op_id.h"
#include "passes/pass.h"
#include "tests/support/bound.h"
#include "tests/support/cases.h"
#include "tests/support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NUMBERS (1u << DT_F32 | 1u << DT_F64 | 1u << DT_I32 | 1u << DT_I64 | 1u << DT_U8)
#define FLOATS  (1u << DT_F32 | 1u << DT_F64)
#define SIGNED  (NUMBERS & ~(1u << DT_U8))
#define ALL     (NUMBERS | 1u << DT_BOOL)
#define BOOLS   (1u << DT_BOOL)
#define ONE(d)  (1u << DT_##d)

/* Rows on zeros, by numbers of which some name no row and some the same one; more of them on top; a scale. */
#define ROWS                                                                                 \
  "z = constant {value=0} : $[]\n o = broadcast z {axes=[]} : $[9,2]\n i = input : i32[7]\n" \
  " v = input : $[7,2]\n"
#define TWICE \
  ROWS " j = input : i64[3]\n w = input : $[3,2]\n r = scatter_add o, i, v\n s = scatter_add r, j, w\n"
#define FOUR " c = constant {value=4} : $[]\n four = broadcast c {axes=[]} : $[9,2]\n"

static const struct rule {
  const char *name;
  enum op_id of;             /* the op whose rule it is */
  enum op_id gone;           /* fewer of these are left */
  unsigned dtypes;           /* that $ stands for */
  int ulps;                  /* by which two bodies for the same function may differ */
  enum sample_domain domain; /* NONE: the whole type, special values included */
  const char *text;
} rules[] = {
    {"x + 0", OP_add, OP_add, NUMBERS, 0, DOMAIN_NONE,
     "x = input : $[2,3]\n z = constant {value=0} : $[]\n b = broadcast z {axes=[]} : $[2,3]\n y = add x, b"},
    {"0 + x", OP_add, OP_add, NUMBERS, 0, DOMAIN_NONE,
     "x = input : $[]\n z = constant {value=0} : $[]\n y = add z, x"},
    {"x - 0", OP_sub, OP_sub, NUMBERS, 0, DOMAIN_NONE,
     "x = input : $[4]\n z = constant {value=0} : $[4]\n y = sub x, z"},
    {"0 - x", OP_sub, OP_sub, NUMBERS, 0, DOMAIN_NONE,
     "x = input : $[4]\n z = constant {value=0} : $[4]\n y = sub z, x"},
    {"x * 1", OP_mul, OP_mul, NUMBERS, 0, DOMAIN_NONE,
     "x = input : $[4]\n z = constant {value=1} : $[4]\n y = mul x, z"},
    {"1 * x", OP_mul, OP_mul, NUMBERS, 0, DOMAIN_NONE,
     "x = input : $[4]\n z = constant {value=1} : $[4]\n y = mul z, x"},
    {"x * -1", OP_mul, OP_mul, SIGNED, 0, DOMAIN_NONE,
     "x = input : $[4]\n z = constant {value=-1} : $[4]\n y = mul x, z"},
    {"x / 1", OP_div, OP_div, NUMBERS, 0, DOMAIN_NONE,
     "x = input : $[4]\n z = constant {value=1} : $[4]\n y = div x, z"},
    {"pow(x, 1)", OP_pow, OP_pow, FLOATS, 0, DOMAIN_NONE,
     "x = input : $[9]\n z = constant {value=1} : $[9]\n y = pow x, z"},
    {"pow(x, 2)", OP_pow, OP_pow, FLOATS, 5, DOMAIN_NONE,
     "x = input : $[9]\n z = constant {value=2} : $[9]\n y = pow x, z"},
    {"select(c, x, x)", OP_select, OP_select, ALL, 0, DOMAIN_NONE,
     "c = input : bool[4]\n x = input : $[4]\n y = select c, x, x"},
    {"select(true, x, z)", OP_select, OP_select, ALL, 0, DOMAIN_NONE,
     "c = constant {value=true} : bool[4]\n x = input : $[4]\n z = input : $[4]\n y = select c, x, z"},
    {"select(false, x, z)", OP_select, OP_select, ALL, 0, DOMAIN_NONE,
     "c = constant {value=false} : bool[4]\n x = input : $[4]\n z = input : $[4]\n y = select c, x, z"},
    {"identity", OP_identity, OP_identity, ALL, 0, DOMAIN_NONE, "x = input : $[4]\n y = identity x"},
    {"cast to the same", OP_cast, OP_cast, ALL, 0, DOMAIN_NONE, "x = input : $[4]\n y = cast x : $[4]"},
    {"-(-x)", OP_neg, OP_neg, NUMBERS, 0, DOMAIN_NONE, "x = input : $[4]\n n = neg x\n y = neg n"},
    {"reshape to the same", OP_reshape, OP_reshape, ALL, 0, DOMAIN_NONE,
     "x = input : $[2,3]\n y = reshape x : $[2,3]"},
    {"reshape of reshape", OP_reshape, OP_reshape, ALL, 0, DOMAIN_NONE,
     "x = input : $[2,6]\n m = reshape x : $[3,4]\n y = reshape m : $[12]"},
    {"reshape of a constant", OP_reshape, OP_reshape, NUMBERS, 0, DOMAIN_NONE,
     "x = constant {value=[1, 2, 3, 4]} : $[4]\n y = reshape x : $[2,2]"},
    {"transpose to the same", OP_transpose, OP_transpose, ALL, 0, DOMAIN_NONE,
     "x = input : $[2,3]\n y = transpose x {perm=[0, 1]}"},
    {"transpose of transpose", OP_transpose, OP_transpose, ALL, 0, DOMAIN_NONE,
     "x = input : $[2,3,4]\n m = transpose x {perm=[2, 0, 1]}\n y = transpose m {perm=[1, 0, 2]}"},
    {"transpose back", OP_transpose, OP_transpose, ALL, 0, DOMAIN_NONE,
     "x = input : $[2,3,4]\n m = transpose x {perm=[1, 2, 0]}\n y = transpose m {perm=[2, 0, 1]}"},
    {"broadcast to the same", OP_broadcast, OP_broadcast, ALL, 0, DOMAIN_NONE,
     "x = input : $[2,3]\n y = broadcast x {axes=[0, 1]} : $[2,3]"},
    {"broadcast of broadcast", OP_broadcast, OP_broadcast, ALL, 0, DOMAIN_NONE,
     "x = input : $[3]\n m = broadcast x {axes=[1]} : $[2,3]\n y = broadcast m {axes=[0, 2]} : $[2,4,3]"},
    {"slice of everything", OP_slice, OP_slice, ALL, 0, DOMAIN_NONE,
     "x = input : $[2,3]\n y = slice x {begin=[0, 0]} : $[2,3]"},
    {"pad by nothing", OP_pad, OP_pad, ALL, 0, DOMAIN_NONE,
     "x = input : $[2,3]\n v = input : $[]\n y = pad x, v {low=[0, 0], high=[0, 0]}"},
    {"pads that do not overlap", OP_add, OP_add, NUMBERS, 0, DOMAIN_NONE,
     "a = input : $[2,1]\n b = input : $[2,2]\n z = constant {value=0} : $[]\n"
     " p = pad a, z {low=[0, 3], high=[0, 1]}\n q = pad b, z {low=[0, 0], high=[0, 3]}\n y = add p, q"},
    {"pads beside something else", OP_add, OP_pad, NUMBERS, 0, DOMAIN_NONE,
     "d = input : $[5,2]\n a = input : $[1,2]\n b = input : $[2,2]\n c = input : $[2,2]\n"
     " z = constant {value=0} : $[]\n p = pad a, z {low=[4, 0], high=[0, 0]}\n"
     " q = pad b, z {low=[0, 0], high=[3, 0]}\n r = pad c, z {low=[2, 0], high=[1, 0]}\n"
     " s = add d, p\n t = add q, s\n y = add t, r"},
    {"concat of one", OP_concat, OP_concat, ALL, 0, DOMAIN_NONE,
     "x = input : $[2,3]\n y = concat x {axis=1}"},
    {"sum over no axis", OP_reduce_sum, OP_reduce_sum, NUMBERS, 0, DOMAIN_NONE,
     "x = input : $[3]\n y = reduce_sum x {axes=[]}"},
    {"product over no axis", OP_reduce_prod, OP_reduce_prod, NUMBERS, 0, DOMAIN_NONE,
     "x = input : $[3]\n y = reduce_prod x {axes=[]}"},
    {"maximum over no axis", OP_reduce_max, OP_reduce_max, ALL, 0, DOMAIN_NONE,
     "x = input : $[3]\n y = reduce_max x {axes=[]}"},
    {"minimum over no axis", OP_reduce_min, OP_reduce_min, ALL, 0, DOMAIN_NONE,
     "x = input : $[3]\n y = reduce_min x {axes=[]}"},
    {"sum of what was repeated", OP_reduce_sum, OP_reduce_sum, NUMBERS, 0, DOMAIN_ANY,
     "x = input : $[3]\n m = broadcast x {axes=[1]} : $[300,3,5]\n y = reduce_sum m {axes=[0, 2]}"},
    {"sum of one repeated", OP_reduce_sum, OP_reduce_sum, NUMBERS, 0, DOMAIN_ANY,
     "x = input : $[]\n m = broadcast x {axes=[]} : $[17,3]\n y = reduce_sum m {axes=[0, 1]}"},
    {"part of the sum of what was repeated", OP_reduce_sum, OP_reduce_sum, NUMBERS, 0, DOMAIN_ANY,
     "x = input : $[3]\n m = broadcast x {axes=[1]} : $[4,3,5]\n y = reduce_sum m {axes=[0]}"},
    {"sum of nothing repeated", OP_reduce_sum, OP_reduce_sum, NUMBERS, 0, DOMAIN_NONE,
     "x = input : $[9]\n m = broadcast x {axes=[1]} : $[0,9]\n y = reduce_sum m {axes=[0]}"},
    {"sum of a sum", OP_reduce_sum, OP_reduce_sum, NUMBERS, 0, DOMAIN_ANY,
     "x = input : $[3,4,5,2]\n m = reduce_sum x {axes=[1, 3]}\n y = reduce_sum m {axes=[1]}"},
    {"x + rows", OP_add, OP_add, NUMBERS, 0, DOMAIN_SMALL_INT,
     ROWS " x = input : $[9,2]\n s = scatter_add o, i, v\n y = add x, s"},
    {"rows + rows", OP_add, OP_add, NUMBERS, 0, DOMAIN_SMALL_INT,
     TWICE " k = input : u8[4]\n u = input : $[4,2]\n t = scatter_add o, k, u\n y = add s, t"},
    {"twice rows + x", OP_add, OP_add, NUMBERS, 0, DOMAIN_SMALL_INT,
     TWICE " x = input : $[9,2]\n y = add s, x"},
    {"x - rows", OP_sub, OP_sub, NUMBERS, 0, DOMAIN_SMALL_INT, TWICE " x = input : $[9,2]\n y = sub x, s"},
    {"rows - x", OP_sub, OP_sub, NUMBERS, 0, DOMAIN_SMALL_INT, TWICE " x = input : $[9,2]\n y = sub s, x"},
    {"x + -rows", OP_neg, OP_add, NUMBERS, 0, DOMAIN_SMALL_INT,
     TWICE " x = input : $[9,2]\n n = neg s\n y = add x, n"},
    {"x + rows * 4", OP_mul, OP_add, NUMBERS, 0, DOMAIN_SMALL_INT,
     TWICE FOUR " x = input : $[9,2]\n n = mul four, s\n y = add x, n"},
    {"x + rows / 4", OP_div, OP_add, FLOATS, 0, DOMAIN_SMALL_INT,
     TWICE FOUR " x = input : $[9,2]\n n = div s, four\n y = add x, n"},
    {"product of a transpose", OP_matmul, OP_transpose, NUMBERS, 0, DOMAIN_ANY,
     "a = input : $[4,3]\n b = input : $[4,5]\n t = transpose a {perm=[1, 0]}\n y = matmul t, b"},
    {"product with a transpose", OP_matmul, OP_transpose, NUMBERS, 0, DOMAIN_ANY,
     "a = input : $[2,3,4]\n b = input : $[2,5,4]\n t = transpose b {perm=[0, 2, 1]}\n y = matmul a, t"},
    {"transposed product of transposes", OP_matmul, OP_transpose, NUMBERS, 0, DOMAIN_ANY,
     "a = input : $[3,4]\n b = input : $[4,5]\n s = transpose a {perm=[1, 0]}\n t = transpose b {perm=[1, "
     "0]}\n"
     " y = matmul s, t {transpose_a=1, transpose_b=1}"},
    {"rounded twice", OP_round_bf16, OP_round_bf16, ONE(F32), 0, DOMAIN_NONE,
     "x = input : $[9]\n m = round_bf16 x\n y = round_bf16 m"},
    {"rounded twice to f16", OP_round_f16, OP_round_f16, ONE(F32), 0, DOMAIN_NONE,
     "x = input : $[9]\n m = round_f16 x\n y = round_f16 m"},
    {"round what is repeated", OP_round_bf16, OP_mul, ONE(F32), 0, DOMAIN_NONE,
     "x = input : $[3]\n m = broadcast x {axes=[1]} : $[2,3]\n r = round_bf16 m\n s = round_bf16 x\n"
     " t = broadcast s {axes=[1]} : $[2,3]\n p = mul r, r\n q = mul t, t\n y = max p, q"},
    {"round what is turned", OP_round_bf16, OP_transpose, ONE(F32), 0, DOMAIN_NONE,
     "x = input : $[3,4]\n m = transpose x {perm=[1, 0]}\n r = round_bf16 m\n y = transpose r {perm=[1, 0]}"},
    {"round what is reshaped", OP_round_bf16, OP_reshape, ONE(F32), 0, DOMAIN_NONE,
     "x = input : $[3,4]\n m = reshape x : $[12]\n r = round_bf16 m\n y = reshape r : $[4,3]"},
    {"a sum twice", OP_add, OP_add, NUMBERS, 0, DOMAIN_NONE,
     "a = input : $[5]\n b = input : $[5]\n p = add a, b\n q = add b, a\n y = max p, q"},
};

struct fixture {
  struct arena *arena;
  struct diags diags;
};

static int count_ops(struct arena *a, const struct graph *g, enum op_id op) {
  uint8_t *live = graph_live(a, g);
  int count = 0;
  for (uint32_t i = 0; i < g->count; i++) count += live[i] && g->nodes[i]->op == op;
  return count;
}

static struct graph *simplify(struct fixture *f, struct graph *g) {
  struct graph *simple = pipeline_run(f->arena, g, "simplify,rows", NULL,
                                      &(struct pipeline_options){.verify_each = true}, &f->diags);
  if (!simple) fail_msg("%s", diags_text(&f->diags, false));
  return simple;
}

/* The rule's text with its dtype put in and its last node as the result. */
static struct graph *parse_rule(struct fixture *f, const struct rule *r, enum dtype d) {
  struct str s = str_make(f->arena);
  str_put(&s, "graph rule {\n batch 3\n ");
  for (const char *p = r->text; *p; p++) {
    bool number = strncmp(p, "value=", 6) == 0 && dtype_is_float(d) && !strstr(r->text, "value=true") &&
                  !strstr(r->text, "value=false");
    if (*p == '$') {
      str_put(&s, dtype_name(d));
    } else if (number) { /* of floats: 0.0, 1.0 */
      str_put(&s, "value=");
      for (p += 6; *p != '}'; p++) {
        str_putc(&s, *p);
        if (*p >= '0' && *p <= '9') str_put(&s, ".0");
      }
      str_putc(&s, '}');
    } else
      str_putc(&s, *p);
  }
  str_put(&s, "\n value y\n}\n");
  struct graph *g = graph_parse(f->arena, source_make(f->arena, r->name, s.data, s.len), &f->diags);
  if (!g || !graph_verify(g, "parse", &f->diags)) fail_msg("%s\n%s", s.data, diags_text(&f->diags, false));
  return g;
}

static struct values fill_inputs(struct fixture *f, const struct graph *g, enum sample_domain domain,
                                 struct rng *r) {
  struct values inputs = values_make(f->arena);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (n->op != OP_input) continue;
    struct tensor t = {n->type, arena_alloc(f->arena, (size_t)type_bytes(&n->type))};
    if (domain == DOMAIN_NONE)
      special_fill(r, &t);
    else
      sample_fill(r, domain, 0, &t);
    values_put(&inputs, n->name, &t.type, t.data);
  }
  return inputs;
}

/* Within `ulps` units in the last place of each other. */
static const char *ulps_apart(struct arena *a, const struct tensor *want, const struct tensor *got,
                              int ulps) {
  int64_t count = type_count(&want->type);
  for (int64_t i = 0; i < count; i++) {
    double x = tensor_at(want, i), y = tensor_at(got, i);
    if (x == y || (isnan(x) && isnan(y))) continue;
    double ulp = want->type.dtype == DT_F32
                     ? (double)(nextafterf(fabsf((float)x), INFINITY) - fabsf((float)x))
                     : nextafter(fabs(x), (double)INFINITY) - fabs(x);
    if (!(fabs(x - y) <= ulps * ulp)) return arena_printf(a, "element %lld differs", (long long)i);
  }
  return NULL;
}

static void compare(struct fixture *f, const struct graph *raw, const struct graph *simple,
                    const struct values *inputs, int ulps, const char *what) {
  struct arena *a = f->arena;
  struct bounds *want = arena_new_array(a, raw->count, struct bounds);
  struct tensor *got = arena_new_array(a, simple->count, struct tensor);
  struct values none = values_make(a);
  assert_true(graph_bounds(a, raw, inputs, &none, 0, want));
  assert_true(graph_eval(a, simple, inputs, &none, got));
  for (int i = 0; i < raw->noutputs; i++) {
    const struct bounds *w = &want[raw->outputs[i].node->id];
    const struct tensor *h = &got[simple->outputs[i].node->id];
    const char *wrong = ulps ? ulps_apart(a, &w->value, h, ulps) : bounds_breach(a, w, h);
    if (wrong) fail_msg("%s: %s\n%s%s", what, wrong, graph_text(a, raw), graph_text(a, simple));
  }
}

static void rule_holds(void **state) {
  const struct rule *r = *state;
  for (enum dtype d = DT_F32; d < DT_BF16; d++) {
    if (!(r->dtypes >> d & 1)) continue;
    struct fixture f = {.arena = arena_create()};
    diags_init(&f.diags, f.arena);
    struct graph *g = parse_rule(&f, r, d), *simple = simplify(&f, g);
    if (count_ops(f.arena, simple, r->gone) >= count_ops(f.arena, g, r->gone))
      fail_msg("%s of %s: nothing has happened\n%s%s", r->name, dtype_name(d), graph_text(f.arena, g),
               graph_text(f.arena, simple));
    struct graph *raw = graph_concrete(f.arena, g, 3);
    struct rng random = {d};
    for (int round = 0; round < 20; round++) {
      struct values inputs = fill_inputs(&f, raw, r->domain, &random);
      compare(&f, raw, simple, &inputs, r->ulps, r->name);
    }
    arena_destroy(f.arena);
  }
}

/* ---- rules for all elementwise ops ---- */

static struct node *raw_constant(struct graph *g, const struct type *t, struct rng *r) {
  struct tensor data = {*t, arena_alloc(g->arena, (size_t)type_bytes(t))};
  special_fill(r, &data);
  struct attr value = {.key = ATTR_value, .count = (int)type_bytes(t), .data = data.data};
  return raw_node(g, OP_constant, 0, NULL, 1, &value, t);
}

/* Operands of an elementwise op: constants, or scalars that are repeated. */
static void add_elementwise(struct graph *g, enum op_id op, enum dtype d, bool repeated, struct rng *r) {
  struct type t = {.dtype = (uint8_t)d, .rank = 1, .dim = {5}};
  struct node *in[3];
  for (int i = 0; i < op_table[op]->min_inputs; i++) {
    struct type of = op == OP_select && i == 0 ? type_with_dtype(t, DT_BOOL) : t,
                scalar = type_scalar(of.dtype);
    struct attr axes = attr_ints(ATTR_axes, 0, (int64_t[]){0});
    if (!repeated)
      in[i] = raw_constant(g, &of, r);
    else {
      in[i] = build_input(g, arena_printf(g->arena, "x%u", g->count), &scalar);
      in[i] = raw_node(g, OP_broadcast, 1, &in[i], 1, &axes, &of);
    }
  }
  struct type to = type_with_dtype(t, rng_below(r, DT_BF16));
  struct node *y = raw_node(g, op, op_table[op]->min_inputs, in, 0, NULL, op == OP_cast ? &to : NULL);
  graph_add_output(g, OUTPUT_VALUE, arena_printf(g->arena, "y%d", g->noutputs), y, 0);
}

static void elementwise_folds(bool repeated) {
  for (int op = 0; op < OP_COUNT; op++)
    for (enum dtype d = DT_F32; d < DT_BF16; d++) {
      if (op_table[op]->kind != KIND_ELEMENTWISE || !op_takes(op, d)) continue;
      struct fixture f = {.arena = arena_create()};
      diags_init(&f.diags, f.arena);
      struct graph *g = graph_create(f.arena, op_table[op]->name, &f.diags);
      struct rng r = {1000 + op};
      for (int i = 0; i < 6; i++) add_elementwise(g, op, d, repeated, &r);
      struct graph *simple = simplify(&f, g);
      uint8_t *live = graph_live(f.arena, simple);
      for (uint32_t i = 0; i < simple->count; i++) {
        const struct node *n = simple->nodes[i];
        bool done =
            !live[i] || (repeated ? n->op != (enum op_id)op || n->type.rank == 0 : n->op == OP_constant);
        if (!done) fail_msg("%s is not folded\n%s", op_table[op]->name, graph_text(f.arena, simple));
      }
      struct values inputs = fill_inputs(&f, g, DOMAIN_NONE, &r);
      compare(&f, g, simple, &inputs, 0, op_table[op]->name);
      arena_destroy(f.arena);
    }
}

static void constants(void **state) {
  (void)state;
  elementwise_folds(false);
}

static void repeated_scalars(void **state) {
  (void)state;
  elementwise_folds(true);
}

static void every_rule_is_here(void **state) {
  (void)state;
  int missing = 0;
  for (int op = 0; op < OP_COUNT; op++) {
    if (!op_table[op]->fold) continue;
    bool found = false;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) found |= rules[i].of == (enum op_id)op;
    if (!found) print_error("%s folds, and no rule of it is tested\n", op_table[op]->name), missing++;
  }
  assert_int_equal(missing, 0);
}

int main(void) {
  enum { NRULES = sizeof rules / sizeof *rules };
  struct CMUnitTest tests[NRULES + 3] = {cmocka_unit_test(every_rule_is_here), cmocka_unit_test(constants),
                                         cmocka_unit_test(repeated_scalars)};
  for (int i = 0; i < NRULES; i++)
    tests[3 + i] = (struct CMUnitTest){
        .name = rules[i].name, .test_func = rule_holds, .initial_state = (void *)(uintptr_t)&rules[i]};
  return _cmocka_run_group_tests("rules", tests, NRULES + 3, NULL, NULL);
}
