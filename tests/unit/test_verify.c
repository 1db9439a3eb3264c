/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier: what must hold of a graph at each stage, as graph text that is right but for one thing; and of what a
 * pass makes of a graph. */
#include "ir/graph/build.h"
#include "ir/ops/op_id.h"
#include "ir/strategies.h"

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

/* What the verifier says about a graph with these lines; NULL if nothing. */
static const char *breaches(struct arena *a, const char *header, const char *lines) {
  const char *text = arena_printf(a, "graph g {\n%s\n%s\n}\n", header, lines);
  struct diags d;
  diags_init(&d, a);
  struct graph *g = graph_parse(a, source_make(a, "t.dg", text, strlen(text)), &d);
  if (!g) print_message("%s", diags_text(&d, false));
  assert_non_null(g);
  bool ok = graph_verify(g, "test", &d);
  assert_true(ok == (d.nerrors == 0));
  return ok ? NULL : diags_text(&d, false);
}

static void expect(struct arena *a, const char *header, const char *lines, const char *expected) {
  const char *said = breaches(a, header, lines);
  if (!said || !strstr(said, expected))
    print_message("%s\nexpected: %s\nsaid: %s\n", lines, expected, said ? said : "");
  assert_non_null(said);
  assert_non_null(strstr(said, expected));
}

static void expect_right(struct arena *a, const char *header, const char *lines) {
  const char *said = breaches(a, header, lines);
  if (said) print_message("%s\n", said);
  assert_null(said);
}

static void source_stage(void **state) {
  struct arena *a = *state;
  expect_right(a, "stage source",
               "x = input : f32[B,2]\nv = variable : f32[2]\nl = reduce_sum x {axes=[0, 1]}\n"
               "d = gradient l, v\nu = assign v, d\nloss l\nupdate u");
  expect(a, "stage source", "x = input : f32[B] mirrored",
         "after test: a source graph says nothing of towers");
  expect(a, "stage source", "x = input : f32[B] tower 1", "a source graph says nothing of towers");
  expect(a, "stage source", "x = input : f32[2]\ny = all_reduce x {reduction=\"sum\"}",
         "there is no all_reduce before");
  expect(a, "stage source", "x = input : f32[2]\ny = copy x", "there is no copy before the stage placed");
  expect(a, "stage source", "x = input : f32[B]\nloss x", "the loss x is not a scalar");
  expect(a, "stage source", "x = input : f32[]\nupdate x", "the update x assigns nothing");
  expect(a, "stage source", "x = input : f32[]\nvalue x\nvalue x", "there are two outputs value x");
  expect(a, "stage source", "v = variable : f32[]\na = assign v, v\nx = neg v\nb = assign v, x",
         "a writes v too");
}

/* Graphs that text cannot say. */
static void structure(void **state) {
  struct arena *a = *state;
  struct diags d;
  diags_init(&d, a);
  struct graph *g = graph_create(a, "g", &d);
  struct node x = {
      .op = OP_input, .type = type_scalar(DT_F32), .name = "x", .tower = -1, .replica = -1, .device = -1};
  struct node *n = graph_node(g, &x);
  struct node y = {.op = OP_neg,
                   .type = type_scalar(DT_F32),
                   .name = "y",
                   .ninputs = 1,
                   .inputs = &n,
                   .tower = -1,
                   .replica = -1,
                   .device = -1};
  struct node *m = graph_node(g, &y);
  assert_true(graph_verify(g, "t", &d));
  m->inputs[0] = m;
  assert_false(graph_verify(g, "t", &d));
  m->inputs[0] = NULL;
  assert_false(graph_verify(g, "t", &d));
  m->inputs[0] = &x;
  assert_false(graph_verify(g, "t", &d));
  m->inputs[0] = n;
  m->name = "x";
  assert_false(graph_verify(g, "t", &d));
  m->name = "y";
  m->type.dtype = DT_I32;
  assert_false(graph_verify(g, "t", &d));
  m->type.dtype = DT_F32;
  m->id = 7;
  assert_false(graph_verify(g, "t", &d));
  m->id = 1;
  m->ninputs = 0;
  assert_false(graph_verify(g, "t", &d));
  m->ninputs = 1;
  assert_true(graph_verify(g, "t", &d));
  assert_string_equal(
      diags_text(&d, false),
      "error: after t: y is read before it is made\nnote: y = neg y : f32[]\n"
      "error: after t: operand 0 of y is no node of the graph\n"
      "error: after t: operand 0 of y is no node of the graph\n"
      "error: after t: the name x is taken twice\nnote: x = neg x : f32[]\n"
      "error: after t: the type is i32[], and its operands give f32[]\nnote: y = neg x : i32[]\n"
      "error: after t: the node has number 7 and stands at 1\nnote: y = neg x : f32[]\n"
      "error: after t: neg takes 1 operand, not 0\nnote: y = neg : f32[]\n");
}

#define TWO "stage replicated\nbatch 4\ntowers 2"
#define ROWS                                                      \
  "x = input : f32[4,3] mirrored\n"                               \
  "x0 = split x {offset=0} : f32[2,3] per_replica tower 0\n"      \
  "x1 = split x {offset=2} : f32[2,3] per_replica tower 1\n"      \
  "w = variable : f32[3] mirrored\n"                              \
  "s0 = reduce_sum x0 {axes=[0]} : f32[3] partial(sum) tower 0\n" \
  "s1 = reduce_sum x1 {axes=[0]} : f32[3] partial(sum) tower 1\n"

static void towers(void **state) {
  struct arena *a = *state;
  expect_right(a, TWO,
               ROWS
               "n0 = mul s0, w : f32[3] partial(sum) tower 0\nm0 = add s0, n0 : f32[3] partial(sum) tower 0\n"
               "r = all_reduce m0, s1 {reduction=\"sum\"} : f32[3] mirrored\nq = exp r : f32[3] mirrored\n"
               "u = assign w, q : f32[3] mirrored\np = all_gather x0, x1 : f32[4,3] mirrored\nupdate u");
  expect_right(a, TWO,
               ROWS "m0 = reduce_min x0 {axes=[0]} : f32[3] partial(min) tower 0\n"
                    "m1 = reduce_min x1 {axes=[0]} : f32[3] partial(min) tower 1\n"
                    "y = all_reduce m0, m1 {reduction=\"min\"} : f32[3] mirrored");
  static const char *const cases[][2] = {
      {"y = neg w : f32[3]", "the value has no distribution"},
      {"y = neg w : f32[3] mirrored tower 0", "a mirrored value belongs to no tower"},
      {"y = neg x0 : f32[2,3] per_replica", "the value belongs to no tower"},
      {"y = neg x0 : f32[2,3] per_replica tower 2", "the value belongs to no tower"},
      {"y = neg x0 : f32[2,3] per_replica tower 0 replica 1", "only mirrored values have copies"},
      {"y = neg x0 : f32[2,3] mirrored", "a mirrored value reads x0, which is per_replica"},
      {"y = neg s0 : f32[3] mirrored", "a mirrored value reads s0, which is partial(sum)"},
      {"y = add x0, x1 : f32[2,3] per_replica tower 0", "tower 0 reads x1 of tower 1"},
      {"y = exp s0 : f32[3] partial(sum) tower 0", "s0 is a partial sum, and exp is not linear in it"},
      {"y = neg s0 : f32[3] per_replica tower 0", "s0 is a partial sum and is read before it is reduced"},
      {"m = reduce_max x0 {axes=[0]} : f32[3] partial(max) tower 0\ny = neg m : f32[3] partial(max) tower 0",
       "m is partial(max) and is read before it is reduced"},
      {"m = reduce_max x0 {axes=[0]} : f32[3] partial(max) tower 0\n"
       "n = reduce_max x1 {axes=[0]} : f32[3] partial(max) tower 1\n"
       "y = all_reduce m, n {reduction=\"min\"} : f32[3] mirrored",
       "all_reduce reads what is no tower's own"},
      {"y = add s0, w : f32[3] partial(sum) tower 0", "add is not linear in it"},
      {"y = mul s0, s0 : f32[3] partial(sum) tower 0", "mul is not linear in it"},
      {"y = div w, s0 : f32[3] partial(sum) tower 0", "div is not linear in it"},
      {"y = split x0 {offset=0} : f32[1,3] per_replica tower 0", "only a mirrored value is split"},
      {"y = split x {offset=0} : f32[1,3] mirrored", "the result of split is per_replica"},
      {"y = all_reduce s0 {reduction=\"sum\"} : f32[3] mirrored", "there are 1 operands for 2 towers"},
      {"y = all_reduce s1, s0 {reduction=\"sum\"} : f32[3] mirrored", "operand s1 is out of tower order"},
      {"y = all_reduce x0, x1 {reduction=\"sum\"} : f32[2,3] mirrored",
       "all_reduce reads what is not a partial sum"},
      {"y = all_reduce w, w {reduction=\"max\"} : f32[3] mirrored",
       "all_reduce reads what is no tower's own"},
      {"y = all_reduce s0, s1 {reduction=\"sum\"} : f32[3] per_replica tower 0",
       "the result of all_reduce is mirrored"},
      {"y = all_gather x1, x0 : f32[4,3] mirrored", "operand x1 is out of tower order"},
      {"y = concat x0, x1 {axis=0} : f32[4,3] mirrored", "a mirrored value reads x0"},
      {"y = assign w, s0 : f32[3] mirrored", "w is mirrored and cannot hold s0, which is partial(sum)"},
      {"y = assign w, w : f32[3] mirrored replica 1", "an update lies over the towers as its variable"},
      {"z = input : f32[B] mirrored", "the type still depends on B"},
      {"l = reduce_sum w {axes=[0]} : f32[] mirrored\ny = gradient l, w : f32[3] mirrored",
       "there is no gradient after"},
      {"l = reduce_sum w {axes=[0]} : f32[] mirrored\nmetric l / B", "the count of l still depends on B"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect(a, TWO, arena_printf(a, ROWS "%s", cases[i][0]), cases[i][1]);
}

#define PLACED "stage placed\nbatch 2\ntowers 1\ndevices cpu:0 gpu:0\n"

static void placement(void **state) {
  struct arena *a = *state;
  const char *x =
      "x = input : f32[2] mirrored on /cpu:0 # batch\nv = variable : f32[2] mirrored on /gpu:0 # v\n";
  static const char *const cases[][2] = {
      {"y = neg x : f32[2] mirrored # rule", "the node has no device"},
      {"y = neg x : f32[2] mirrored on /cpu:0 # a.dsl:1", "no rule says why the node is where it is"},
      {"y = neg x : f32[2] mirrored want \"/gpu:0\" on /cpu:0 # r",
       "/cpu:0 is not what the model wants: /gpu:0"},
      {"y = neg x : f32[2] mirrored want \"disk\" on /cpu:0 # r", "'disk' is no device"},
      {"y = assign v, x : f32[2] mirrored on /cpu:0 # r", "the update is not where its variable is"},
      {"y = copy x : f32[2] mirrored on /gpu:0 # r\nz = neg x : f32[2] mirrored on /gpu:0 # r",
       "x lies on another device, and there is no copy"},
      {"y = copy x : f32[2] mirrored on /cpu:0 # r", "the copy stays on its device"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect(a, PLACED, arena_printf(a, "%s%s", x, cases[i][0]), cases[i][1]);
  expect_right(a, PLACED, arena_printf(a, "%sy = assign v, x : f32[2] mirrored on /gpu:0 # r", x));
  expect_right(a, PLACED "soft_placement",
               arena_printf(a, "%sy = neg x : f32[2] mirrored want \"/gpu:7\" on /cpu:0 # soft", x));
  expect_right(
      a, PLACED,
      arena_printf(
          a, "%sc = copy x : f32[2] mirrored on /gpu:0 # r\nz = neg c : f32[2] mirrored on /gpu:0 # r", x));
}

/* The tree over towers, once the collectives are expanded. */
static void tree(void **state) {
  struct arena *a = *state;
  const char *header = "stage placed\nbatch 2\ntowers 2\ndevices cpu:0";
  const char *lines = "x = input : f32[2] mirrored on /cpu:0 # r\n"
                      "x0 = split x {offset=0} : f32[1] per_replica tower 0 on /cpu:0 # r\n"
                      "x1 = split x {offset=1} : f32[1] per_replica tower 1 on /cpu:0 # r\n"
                      "s0 = reduce_sum x0 {axes=[0]} : f32[] partial(sum) tower 0 on /cpu:0 # r\n"
                      "s1 = reduce_sum x1 {axes=[0]} : f32[] partial(sum) tower 1 on /cpu:0 # r\n";
  expect_right(a, header,
               arena_printf(a,
                            "%ss = add s0, s1 : f32[] mirrored on /cpu:0 # r\n"
                            "c = concat x0, x1 {axis=0} : f32[2] mirrored on /cpu:0 # r",
                            lines));
  expect(a, header, arena_printf(a, "%ss = mul s0, s1 : f32[] mirrored on /cpu:0 # r", lines),
         "a mirrored value reads s0");
  expect(a, header, arena_printf(a, "%sc = concat x1, x0 {axis=0} : f32[2] mirrored on /cpu:0 # r", lines),
         "operand x1 is out of tower order");
  expect(a, header, arena_printf(a, "%sc = add x0, x1 : f32[1] per_replica tower 0 on /cpu:0 # r", lines),
         "tower 0 reads x1 of tower 1");
}

static void bodies(void **state) {
  struct arena *a = *state;
  const char *header = "stage fused\ndevices cpu:0";
  static const char *const cases[][2] = {
      {"a = input : f32[2]\nvalue a", NULL},
      {"a = input : f32[3]\nb = slice a {begin=[0]} : f32[2]\nvalue b", "k reads x here"},
      {"a = input : f32[2]\nb = input : f32[2]\nvalue a", "the body has 2 inputs for 1 operands"},
      {"a = input : f32[2]", "the body has no output"},
      {"a = input : f32[2]\npredict a", "a body has outputs of the role value only"},
      {"a = input : f32[2]\nb = reduce_sum a {axes=[0]}\nvalue b", "the first result of the body is f32[]"},
      {"a = input : f32[2]\nb = variable : f32[2]\nvalue b", "there is no variable inside a fused node"},
      {"a = input : f32[2]\nb = copy a : f32[2]\nvalue b", "there is no copy inside a fused node"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *lines = arena_printf(a,
                                     "x = input : f32[2] mirrored on /cpu:0 # r\n"
                                     "k = fused x : f32[2] mirrored on /cpu:0 { # r\n%s\n}",
                                     cases[i][0]);
    if (cases[i][1])
      expect(a, header, lines, cases[i][1]);
    else
      expect_right(a, header, lines);
  }
}

/* Where a model wants a variable matters under the strategies whose rows say so, and to no optimizer's state. */
static void wanted_variables(void **state) {
  struct arena *a = *state;
  int move = 0;
  for (const struct strategy_info *s = strategies; s->name; s++) {
    const char *header =
        arena_printf(a, "stage placed\nbatch 1\ntowers 1\nstrategy %s\ndevices /cpu:0 /cpu:1", s->name);
    const char *wrong = "v = variable%s : f32[2] mirrored replica 0 want \"/cpu:1\" on /cpu:0 # r\nvalue v";
    if (s->settings & TAKES_ON)
      expect(a, header, arena_printf(a, wrong, ""), "/cpu:0 is not what the model wants: /cpu:1"), move++;
    else
      expect_right(a, header, arena_printf(a, wrong, ""));
    expect_right(a, header, arena_printf(a, wrong, " {slot=\"w\"}"));
  }
  assert_int_equal(move, 2); /* replicate, round_robin */
}

/* What a variable is to the model's stands in its attributes, and a part says of what. */
static void identities(void **state) {
  struct arena *a = *state;
  static const char text[] =
      "graph g {\n"
      "  stage replicated\n  batch 4\n  towers 2\n  devices /cpu:0 /cpu:1\n"
      "  a/part_7 = variable : f32[2] mirrored replica 0\n"
      "  b = variable {of=\"a\"} : f32[2] mirrored replica 1\n"
      "  c = variable {of=\"a\", part=3} : f32[2] mirrored replica 0\n"
      "  d = variable {aggregation=\"sum\", synchronization=\"on_read\", of=\"a\"} : f32[2] "
      "per_replica tower 1\n"
      "  value b\n}\n";
  struct diags d;
  diags_init(&d, a);
  struct graph *g = graph_parse(a, source_make(a, "t.dg", text, strlen(text)), &d);
  assert_non_null(g);
  struct variable_identity i = variable_identity(graph_find(g, "a/part_7"));
  assert_true(i.role == VARIABLE_ITSELF && !i.of);
  i = variable_identity(graph_find(g, "b"));
  assert_true(i.role == VARIABLE_REPLICA && strcmp(i.of, "a") == 0);
  i = variable_identity(graph_find(g, "c"));
  assert_true(i.role == VARIABLE_PART && i.number == 3 && strcmp(i.of, "a") == 0);
  i = variable_identity(graph_find(g, "d"));
  assert_true(i.role == VARIABLE_OF_TOWER && i.number == 1 && strcmp(i.joins, "sum") == 0);
  const char *wrong = "graph g {\n  v = variable {part=1} : f32[2]\n  value v\n}\n";
  assert_null(graph_parse(a, source_make(a, "t.dg", wrong, strlen(wrong)), &d));
  assert_non_null(strstr(diags_text(&d, false), "v is a part and needs of, the name of the variable"));
}

/* What the verifier says of a pass that makes the lines `after` of the lines `before`; NULL if nothing. */
static const char *lost(struct arena *a, const char *before, const char *after) {
  const char *texts[2] = {before, after};
  struct graph *g[2];
  struct diags d;
  diags_init(&d, a);
  for (int i = 0; i < 2; i++) {
    const char *text = arena_printf(a, "graph g {\nstage source\n%s\n}\n", texts[i]);
    g[i] = graph_parse(a, source_make(a, "t.dg", text, strlen(text)), &d);
    if (!g[i]) print_message("%s", diags_text(&d, false));
    assert_non_null(g[i]);
  }
  bool ok = graph_verify_origins(g[0], g[1], "test", &d);
  assert_true(ok == (d.nerrors == 0));
  return ok ? NULL : diags_text(&d, false);
}

static void expect_lost(struct arena *a, const char *before, const char *after, const char *name) {
  const char *said = lost(a, before, after);
  assert_non_null(said);
  assert_non_null(
      strstr(said, arena_printf(a, "after test: %s says nothing of the line it comes from", name)));
}

static void origins(void **state) {
  struct arena *a = *state;
  const char *all = "x = input : f32[B]  # m.dsl:2\ny = neg x  # m.dsl:3\nvalue y";
  const char *some = "x = input : f32[B]  # m.dsl:2\ny = neg x\nvalue y";
  assert_null(lost(a, all, all));
  assert_null(lost(a, some, some));
  assert_null(lost(a, some, all));
  expect_lost(a, all, some, "y");
  /* In a body, too. */
  const char *head = "x = input : f32[2]  # m.dsl:2\ns = input : f32[3]  # m.dsl:3\n"
                     "y = scan x, s {carries=1, sequences=1, length=3} : f32[2] {  # m.dsl:4\n"
                     "  c = input : f32[2]  # m.dsl:4\n  e = input : f32[]  # m.dsl:4\n";
  const char *whole = arena_printf(a, "%s  z = neg c  # m.dsl:5\n  value c = z\n}\nvalue y", head);
  const char *broken = arena_printf(a, "%s  z = neg c\n  value c = z\n}\nvalue y", head);
  assert_null(lost(a, whole, whole));
  expect_lost(a, whole, broken, "z");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(source_stage),     TEST(structure),  TEST(towers),
                                     TEST(placement),        TEST(tree),       TEST(bodies),
                                     TEST(wanted_variables), TEST(identities), TEST(origins)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
