/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluator: graphs of text, evaluated node by node, against results worked out by hand. */
#include "ir/graph/build.h"
#include "ir/ops/op_id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static int setup(void **state) {
  *state = arena_create();
  return 0;
}

static int teardown(void **state) {
  arena_destroy(*state);
  return 0;
}

/* Evaluates all nodes; the value of the last as text, as a constant's elements print. */
static const char *evaluate(struct arena *a, const char *lines) {
  struct diags d;
  diags_init(&d, a);
  const char *text = arena_printf(a, "graph g {\n%s\n}\n", lines);
  struct graph *g = graph_parse(a, source_make(a, "t.dg", text, strlen(text)), &d);
  if (!g) print_message("%s", diags_text(&d, false));
  assert_non_null(g);
  struct tensor *values = arena_new_array(a, g->count, struct tensor);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    struct tensor in[8];
    for (int k = 0; k < n->ninputs; k++) in[k] = values[n->inputs[k]->id];
    values[i] = (struct tensor){n->type, arena_alloc(a, (size_t)type_bytes(&n->type))};
    if (!node_eval(n, in, &values[i], 0)) return "none";
  }
  /* As a constant, to print it. */
  struct tensor *last = &values[g->count - 1];
  struct graph *shown = graph_create(a, "shown", &d);
  struct attr value = {.key = ATTR_value, .count = (int)type_bytes(&last->type), .data = last->data};
  struct node n = {.op = OP_constant,
                   .type = last->type,
                   .name = "v",
                   .nattrs = 1,
                   .attrs = &value,
                   .tower = -1,
                   .replica = -1,
                   .device = -1};
  graph_node(shown, &n);
  struct str s = str_make(a);
  graph_print(&s, shown);
  char *begin = strstr(s.data, "value=") + 6;
  *strchr(begin, '}') = 0;
  return begin;
}

struct example {
  const char *lines, *expected;
};

static void check(struct arena *a, const struct example *examples, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const char *got = evaluate(a, examples[i].lines);
    if (strcmp(got, examples[i].expected) != 0) print_message("%s\n", examples[i].lines);
    assert_string_equal(got, examples[i].expected);
  }
}
#define CHECK(a, e) check(a, e, sizeof(e) / sizeof *(e))

#define X "x = constant {value=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]} : f32[2,3]\n"
#define I "x = constant {value=[7, -2, 7]} : i32[3]\n"

static void elementwise(void **state) {
  static const struct example examples[] = {
      {X "y = add x, x", "[2.0, 4.0, 6.0, 8.0, 10.0, 12.0]"},
      {X "y = neg x", "[-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]"},
      {I "y = mul x, x", "[49, 4, 49]"},
      {I "y = lt x, x", "false"},
      {I "k = constant {value=[true, false, true]} : bool[3]\nz = neg x\ny = select k, x, z", "[7, 2, 7]"},
      {X "y = cast x : i32[2,3]", "[1, 2, 3, 4, 5, 6]"},
      {"x = constant {value=[2.9, -2.9, nan]} : f64[3]\ny = cast x : u8[3]", "[2, 0, 0]"},
      {"x = constant {value=[]} : f32[0,2]\ny = neg x", "[]"},
  };
  CHECK(*state, examples);
}

static void sources(void **state) {
  static const struct example examples[] = {
      {"y = iota {axis=1} : i32[2,3]", "[0, 1, 2, 0, 1, 2]"},
      {"y = iota {axis=0, offset=5} : f32[2,2]", "[5.0, 5.0, 6.0, 6.0]"},
      {"y = iota {axis=0} : i64[0]", "[]"},
      {"y = input : f32[]", "none"},
      {"y = variable : f32[]", "none"},
  };
  CHECK(*state, examples);
}

static void movement(void **state) {
  static const struct example examples[] = {
      {X "y = transpose x {perm=[1, 0]}", "[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]"},
      {X "y = reshape x : f32[3,2]", "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]"},
      {X "y = slice x {begin=[0, 1]} : f32[2,2]", "[2.0, 3.0, 5.0, 6.0]"},
      {X "y = slice x {begin=[2, 1]} : f32[0,2]", "[]"},
      {X "y = split x {offset=1} : f32[1,3]", "[4.0, 5.0, 6.0]"},
      {X "y = split x {offset=2} : f32[0,3]", "[]"},
      {X "y = concat x, x {axis=1}", "[1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 4.0, 5.0, 6.0]"},
      {X "e = slice x {begin=[2, 0]} : f32[0,3]\ns = slice x {begin=[1, 0]} : f32[1,3]\ny = concat e, s, e "
         "{axis=0}",
       "[4.0, 5.0, 6.0]"},
      {I "y = broadcast x {axes=[1]} : i32[2,3]", "[7, -2, 7, 7, -2, 7]"},
      {I "y = broadcast x {axes=[0]} : i32[3,2]", "[7, 7, -2, -2, 7, 7]"},
      {I "z = constant {value=0} : i32[]\ny = pad x, z {low=[1], high=[2]}", "[0, 7, -2, 7, 0, 0]"},
      {I "y = all_gather x, x", "[7, -2, 7, 7, -2, 7]"},
      {I "y = copy x", "[7, -2, 7]"},
      {"v = constant {value=[1, 2]} : i32[2]\ny = transpose v {perm=[0]}", "[1, 2]"},
  };
  CHECK(*state, examples);
}

/* The same as numpy and JAX, x = np.array([1, nan, -0., 0, inf, -inf, 1, nan, -0., 0], 'f'):
 * np.argsort(x, kind='stable'); jnp.argsort(x, descending=True). */
static void orders(void **state) {
#define V "x = constant {value=[1.0, nan, -0.0, 0.0, inf, -inf, 1.0, nan, -0.0, 0.0]} : f32[10]\n"
#define P "p = constant {value=[2, 0, 5, -1, 0, 1]} : i32[2,3]\n"
  static const struct example examples[] = {
      {V "y = argsort x {axis=0}", "[5, 2, 3, 8, 9, 0, 6, 4, 1, 7]"},
      {V "y = argsort x {axis=0, descending=1}", "[1, 7, 4, 0, 6, 2, 3, 8, 9, 5]"},
      {I "y = argsort x {axis=0}", "[1, 0, 2]"},
      {I "y = argsort x {axis=0, descending=1}", "[0, 2, 1]"},
      {"x = constant {value=[true, false, true, false]} : bool[2,2]\ny = argsort x {axis=1}", "[1, 0, 1, 0]"},
      {"x = constant {value=[9007199254740993, 9007199254740992]} : i64[2]\ny = argsort x {axis=0}",
       "[1, 0]"},
      {"x = constant {value=[]} : f64[0,3]\ny = argsort x {axis=0}", "[]"},
      {X P "y = take_along x, p {axis=1}", "[3.0, 1.0, 0.0, 0.0, 4.0, 5.0]"},
      {X P "y = take_along x, p {axis=0}", "[0.0, 2.0, 0.0, 0.0, 2.0, 6.0]"},
      {X P "y = add_along x, p, x {axis=1}", "[3.0, 2.0, 4.0, 9.0, 11.0, 6.0]"},
      {I "k = constant {value=[2, 2, 0]} : u8[3]\ny = add_along x, k, x {axis=0}", "[14, -2, 12]"},
  };
  CHECK(*state, examples);
}

static void reductions(void **state) {
  static const struct example examples[] = {
      {X "y = reduce_sum x {axes=[0]}", "[5.0, 7.0, 9.0]"},
      {X "y = reduce_sum x {axes=[1]}", "[6.0, 15.0]"},
      {X "y = reduce_sum x {axes=[0, 1]}", "21.0"},
      {X "y = reduce_sum x {axes=[]}", "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]"},
      {X "y = reduce_prod x {axes=[1]}", "[6.0, 120.0]"},
      {X "y = reduce_max x {axes=[0, 1]}", "6.0"},
      {X "y = reduce_min x {axes=[0]}", "[1.0, 2.0, 3.0]"},
      /* One rounding: the small terms are not lost. */
      {"x = constant {value=[16777216.0, 1.0, 1.0]} : f32[3]\ny = reduce_sum x {axes=[0]}", "16777218.0"},
      {"x = constant {value=[1.0, nan]} : f32[2]\ny = reduce_max x {axes=[0]}", "nan"},
      {"x = constant {value=2147483647} : i32[2]\ny = reduce_sum x {axes=[0]}", "-2"},
      {"x = constant {value=200} : u8[2]\ny = reduce_sum x {axes=[0]}", "144"},
      {"x = constant {value=[]} : f32[2,0]\ny = reduce_sum x {axes=[1]}", "0.0"},
      {"x = constant {value=[]} : f32[2,0]\ny = reduce_max x {axes=[1]}", "-inf"},
      {"x = constant {value=[]} : i32[0]\ny = reduce_min x {axes=[0]}", "2147483647"},
      {"x = constant {value=[]} : f64[0]\ny = reduce_prod x {axes=[0]}", "1.0"},
      {I "y = argmax x {axis=0}", "0"},
      {I "y = argmin x {axis=0}", "1"},
      {X "y = argmax x {axis=0}", "1"},
      {"x = constant {value=[1.0, nan, 3.0, nan]} : f32[4]\ny = argmax x {axis=0}", "1"},
      {"x = constant {value=[1.0, nan, -inf]} : f32[3]\ny = argmin x {axis=0}", "1"},
      {"x = constant {value=[]} : f32[2,0]\ny = argmax x {axis=1}", "0"},
  };
  CHECK(*state, examples);
}

static void products(void **state) {
#define W "w = constant {value=[1.0, 0.0, -1.0, 2.0, 0.0, 1.0]} : f32[2,3]\n"
  static const struct example examples[] = {
      {X W "y = matmul x, w {transpose_b=1}", "[-2.0, 5.0, -2.0, 14.0]"},
      {X W "y = matmul x, w {transpose_a=1}", "[9.0, 0.0, 3.0, 12.0, 0.0, 3.0, 15.0, 0.0, 3.0]"},
      {X W "t = transpose w {perm=[1, 0]}\ny = matmul x, t", "[-2.0, 5.0, -2.0, 14.0]"},
      {X W "t = transpose x {perm=[1, 0]}\ny = matmul t, w {transpose_a=1, transpose_b=1}",
       "[-2.0, 5.0, -2.0, 14.0]"},
      {"a = iota {axis=2} : i32[2,1,2]\nb = iota {axis=0} : i32[2,2,1]\ny = matmul a, b", "[0, 1]"},
      {"a = constant {value=[]} : f32[2,0]\nb = constant {value=[]} : f32[0,2]\ny = matmul a, b", "0.0"},
      {"a = constant {value=[]} : f32[0,2]\nb = constant {value=1.0} : f32[2,2]\ny = matmul a, b", "[]"},
  };
  CHECK(*state, examples);
}

/* Five operands: ((0 + 1) + (2 + 3)) + 4, each sum rounded to f32. */
static void over_towers(void **state) {
#define TOWERS                                                                                           \
  "a = constant {value=1e+08} : f32[1]\nb = constant {value=4.0} : f32[1]\n"                             \
  "c = constant {value=3.0} : f32[1]\nd = constant {value=2.0} : f32[1]\ne = constant {value=-1e+08} : " \
  "f32[1]\n"
  float expected = ((1e8f + 4.0f) + (3.0f + 2.0f)) + -1e8f;
  struct str s = str_make(*state);
  str_float(&s, expected);
  assert_string_equal(evaluate(*state, TOWERS "y = all_reduce a, b, c, d, e {reduction=\"sum\"}"), s.data);
  static const struct example examples[] = {
      {TOWERS "y = all_reduce b, c, d {reduction=\"mean\"}", "3.0"},
      {TOWERS "y = all_reduce b, c, d {reduction=\"max\"}", "4.0"},
      {TOWERS "y = all_reduce b, c, e {reduction=\"min\"}", "-100000000.0"},
      {TOWERS "y = all_reduce b {reduction=\"sum\"}", "4.0"},
  };
  CHECK(*state, examples);
}

static void fused(void **state) {
  struct arena *a = *state;
  static const struct example examples[] = {
      {X "k = fused x, x : f32[2,3] {\n  a = input : f32[2,3]\n  b = input : f32[2,3]\n  s = add a, b\n"
         "  m = reduce_sum s {axes=[1]}\n  value s\n  value m\n}",
       "[2.0, 4.0, 6.0, 8.0, 10.0, 12.0]"},
  };
  CHECK(a, examples);
  const char *text =
      "graph g {\n  x = input : f32[2]\n  k = fused x : f32[2] {\n    a = input : f32[2]\n"
      "    s = neg a\n    m = reduce_sum a {axes=[0]}\n    value s\n    value m\n    value a\n  }\n}\n";
  struct diags d;
  diags_init(&d, a);
  struct graph *g = graph_parse(a, source_make(a, "t.dg", text, strlen(text)), &d);
  assert_non_null(g);
  float x[2] = {1, 2}, s[2], m[1], copy[2];
  struct type t = g->nodes[0]->type;
  struct tensor in = {t, x}, outs[4] = {{t, s}, {type_scalar(DT_F32), m}, {t, copy}, {t, copy}};
  assert_true(results_eval(g->nodes[1], &in, outs, 3, 0));
  assert_true(s[0] == -1 && s[1] == -2 && m[0] == 3 && copy[0] == 1 && copy[1] == 2);
  assert_false(results_eval(g->nodes[1], &in, outs, 4, 0));
}

/* The numbers of a tower's rows are those of the same rows of the whole batch. */
static void random_rows(void **state) {
  struct arena *a = *state;
#define STEP "s = constant {value=3} : i64[]\n"
  const char *whole = evaluate(a, STEP "y = random_uniform s {key=5, seed=7} : f32[4]");
  const char *rows = evaluate(a, STEP "y = random_uniform s {key=5, seed=7, offset=2} : f32[2]");
  rows += 1; /* "[c, d]" is how "[a, b, c, d]" ends */
  assert_non_null(strstr(whole, rows));
  const char *other = evaluate(a, STEP "y = random_uniform s {key=6, seed=7, offset=2} : f32[2]");
  assert_string_not_equal(rows, other + 1);
  const char *second = evaluate(a, STEP "r = constant {value=1} : i64[]\n"
                                        "y = random_uniform s, r {key=5, seed=7, width=2} : f32[2]");
  assert_string_equal(rows, second + 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(elementwise), TEST(sources),     TEST(movement), TEST(orders),      TEST(reductions),
      TEST(products),    TEST(over_towers), TEST(fused),    TEST(random_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
