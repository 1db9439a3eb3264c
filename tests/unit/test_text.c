/* SPDX-License-Identifier: Apache-2.0 */
/* Graph text: printed and read back, byte for byte; what is wrong in it is said where it stands. */
#include "ir/graph/build.h"
#include "ir/graph/graph.h"
#include "ir/graph/text.h"
#include "ir/ops/op_id.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int setup(void **state) {
  *state = arena_create();
  return 0;
}

static int teardown(void **state) {
  arena_destroy(*state);
  return 0;
}

static const char *print(struct arena *a, const struct graph *g) {
  struct str s = str_make(a);
  graph_print(&s, g);
  return s.data;
}

/* The graph of `text`, which is right. */
static struct graph *read_graph(struct arena *a, const char *text) {
  struct diags d;
  diags_init(&d, a);
  struct graph *g = graph_parse(a, source_make(a, "t.dg", text, strlen(text)), &d);
  if (!g || d.nerrors) print_message("%s%s", text, diags_text(&d, false));
  assert_non_null(g);
  assert_int_equal(d.nerrors, 0);
  return g;
}

static void same_text(struct arena *a, const char *text) {
  assert_string_equal(print(a, read_graph(a, text)), text);
}

/* What is said about `text`, which is wrong. */
static const char *errors(struct arena *a, const char *text, size_t len) {
  struct diags d;
  diags_init(&d, a);
  struct graph *g = graph_parse(a, source_make(a, "t.dg", text, len), &d);
  if (g || !d.nerrors) print_message("no error: %s\n", text);
  assert_null(g);
  assert_true(d.nerrors > 0);
  return diags_text(&d, false);
}

/* The same for lines of one graph: only the messages, without the source lines. */
static void expect_error(struct arena *a, const char *lines, const char *expected) {
  const char *text = arena_printf(a, "graph g {\n  devices /cpu:0\n  x = input : f32[2]\n%s\n}\n", lines);
  const char *said = errors(a, text, strlen(text));
  if (!strstr(said, expected)) print_message("expected: %s\nsaid: %s\n", expected, said);
  assert_non_null(strstr(said, expected));
}

static const char source_text[] =
    "graph digits.train {\n"
    "  stage source\n"
    "  image = input : f32[B,784]  # digits.dsl:5\n"
    "  label = input : i32[B]  # digits.dsl:6\n"
    "  h.kernel = variable {trainable=1} : f32[784,10]  # nn.dsl:3\n"
    "  h.matmul = matmul image, h.kernel : f32[B,10] want \"/gpu:1\"  # nn.dsl:5\n"
    "  best = argmax h.matmul {axis=1} : i32[B]\n"
    "  hit = eq best, label : bool[B]\n"
    "  hit.cast = cast hit : f32[B]\n"
    "  hits = reduce_sum hit.cast {axes=[0]} : f32[]\n"
    "  empty = reshape h.matmul : f32[B,2,5]\n"
    "  \"a name, of its own\" = neg hits : f32[]\n"
    "  metric accuracy = hits / B\n"
    "  predict best\n"
    "  value \"odd = one\" = \"a name, of its own\" / 3*B\n"
    "}\n";

static void source_round_trip(void **state) {
  struct arena *a = *state;
  struct graph *g = read_graph(a, source_text);
  assert_string_equal(print(a, g), source_text);
  assert_string_equal(g->name, "digits.train");
  assert_int_equal(g->count, 10);
  struct node *matmul = graph_find(g, "h.matmul");
  assert_string_equal(matmul->want, "/gpu:1");
  assert_string_equal(matmul->origin, "nn.dsl:5");
  assert_null(matmul->why.rule);
  assert_int_equal(g->outputs[0].count, -1);
  assert_int_equal(g->outputs[2].count, -3);
  assert_string_equal(g->outputs[1].name, "best");
  struct diags d;
  diags_init(&d, a);
  assert_true(graph_verify(g, "parse", &d));
}

static const char placed_text[] =
    "graph digits.train {\n"
    "  stage fused\n"
    "  batch 4\n"
    "  towers 2\n"
    "  strategy central_storage\n"
    "  parameter_device \"/cpu:0\"\n"
    "  consolidation_device \"CPU:0\"\n"
    "  soft_placement\n"
    "  devices /cpu:0 /cpu:1 /gpu:0(simulated) /gpu:1@/gpu:0(simulated)(storage) /cpu:2@/cpu:2 /gpu:3/0 "
    "/gpu:3/1\n"
    "  image = input : f32[4,2] mirrored replica 0 on /cpu:0  # batch -> consolidation device, digits.dsl:5\n"
    "  split_inputs/image = split image {offset=0} : f32[2,2] per_replica tower 0 on /cpu:0  # split\n"
    "  tower_1/split_inputs/image = split image {offset=2} : f32[2,2] per_replica tower 1 on /cpu:0  # a, b, "
    "x:y\n"
    "  k = fused split_inputs/image, split_inputs/image : f32[2,2] per_replica tower 0 on /cpu:0 {  # "
    "joined, d.dsl:7\n"
    "    a = input : f32[2,2]\n"
    "    b = input : f32[2,2]\n"
    "    s = add a, b : f32[2,2]  # d.dsl:7\n"
    "    m = mul s, s : f32[2,2]\n"
    "    value s\n"
    "    value m\n"
    "  }\n"
    "  k'1 = output k {index=1} : f32[2,2] per_replica tower 0 on /cpu:0  # joined\n"
    "  w[0]'s-copy#1 = copy k {alias=1} : f32[2,2] per_replica tower 0 pack 3 on /cpu:1\n"
    "  k.grad = neg k : f32[2,2] per_replica tower 0 on /cpu:0\n"
    "  k.grad.neg = neg k.grad : f32[2,2] per_replica tower 0 forward on /cpu:0\n"
    "  d = neg k.grad.neg : f32[2,2] per_replica tower 0 pack 0 backward on /cpu:0\n"
    "  value r = w[0]'s-copy#1 / 4\n"
    "}\n";

/* Whose gradient a value is: what its name says, or the line. */
static void gradients_round_trip(void **state) {
  struct arena *a = *state;
  static const char text[] = "graph g {\n"
                             "  stage source\n"
                             "  x = input : f32[B]\n"
                             "  x.grad = neg x : f32[B]\n"
                             "  x.grad.mul = square x.grad : f32[B]\n"
                             "  x.grad.mul.grad = square x.grad.mul : f32[B]\n"
                             "  gradient_aggregating/x = exp x.grad : f32[B]\n"
                             "  d = neg x.grad.mul.grad : f32[B] backward gradient \"x\"\n"
                             "  y.grad = neg d : f32[B] gradient \"\"\n"
                             "  z.grad = neg y.grad : f32[B] forward\n"
                             "  value z.grad\n"
                             "  value gradient_aggregating/x\n"
                             "}\n";
  struct graph *g = read_graph(a, text);
  assert_string_equal(print(a, g), text);
  assert_string_equal(graph_find(g, "x.grad")->gradient_of, "x");
  assert_string_equal(graph_find(g, "gradient_aggregating/x")->gradient_of, "x");
  assert_string_equal(graph_find(g, "d")->gradient_of, "x");
  static const char *const none[] = {"x", "x.grad.mul", "x.grad.mul.grad", "y.grad", "z.grad"};
  for (int i = 0; i < 5; i++) assert_null(graph_find(g, none[i])->gradient_of);
}

static void placed_round_trip(void **state) {
  struct arena *a = *state;
  struct graph *g = read_graph(a, placed_text);
  assert_string_equal(print(a, g), placed_text);
  assert_int_equal(g->stage, STAGE_FUSED);
  assert_int_equal(g->config.batch, 4);
  assert_true(g->config.soft_placement);
  assert_true(g->config.target.devices[2].simulated);
  assert_int_equal(g->config.target.devices[3].memory, g->config.target.devices[2].memory);
  assert_int_not_equal(g->config.target.devices[4].memory, g->config.target.devices[0].memory);
  assert_string_equal(graph_find(g, "split_inputs/image")->why.rule, "split");
  assert_string_equal(graph_find(g, "tower_1/split_inputs/image")->why.rule, "a, b, x:y");
  assert_true(graph_find(g, "k.grad")->backward && graph_find(g, "d")->backward);
  assert_false(graph_find(g, "k.grad.neg")->backward || graph_find(g, "k")->backward);
  struct node *k = graph_find(g, "k");
  assert_string_equal(k->why.rule, "joined");
  assert_string_equal(k->origin, "d.dsl:7");
  assert_int_equal(node_attr(k, ATTR_body)->body->count, 4);
}

static void rules(void **state) {
  struct arena *a = *state;
  struct reason why = {"on \"/cpu:1\"", "tower 0 -> its worker"};
  assert_string_equal(reason_text(a, why), "on \"/cpu:1\" over tower 0 -> its worker");
  why = reason_read(a, reason_text(a, why));
  assert_string_equal(why.rule, "on \"/cpu:1\"");
  assert_string_equal(why.over, "tower 0 -> its worker");
  why = reason_read(a, "batch -> consolidation device");
  assert_string_equal(reason_text(a, why), "batch -> consolidation device");
  assert_null(why.over);
  assert_null(reason_text(a, (struct reason){0}));
}

static void constants(void **state) {
  struct arena *a = *state;
  same_text(a, "graph c {\n"
               "  stage source\n"
               "  a = constant {value=2.5} : f32[2,3]\n"
               "  b = constant {value=[1.0, -0.0, 0.1, inf, -inf, nan]} : f64[6]\n"
               "  c = constant {value=[0.0, -0.0]} : f32[2]\n"
               "  d = constant {value=nan(0xffc00001)} : f32[]\n"
               "  e = constant {value=nan(0xfff8000000000000)} : f64[2]\n"
               "  f = constant {value=[-2147483648, 2147483647]} : i32[2]\n"
               "  g = constant {value=[-9223372036854775808, 9223372036854775807]} : i64[2]\n"
               "  h = constant {value=[0, 255]} : u8[2]\n"
               "  i = constant {value=[true, false, true]} : bool[3]\n"
               "  j = constant {value=true} : bool[1,2]\n"
               "  k = constant {value=[]} : f32[0,3]\n"
               "  l = constant {value=[1e-45, 3.4028235e+38, 16777216.0]} : f32[3]\n"
               "  m = constant {value=[5e-324, 1.7976931348623157e+308]} : f64[2]\n"
               "}\n");
  struct graph *g = read_graph(a, "graph c {\n c = constant { value = [ 1, 2.0,3e0 ] } : f32[3]\n}\n");
  const float *data = node_attr(g->nodes[0], ATTR_value)->data;
  assert_true(data[0] == 1 && data[1] == 2 && data[2] == 3);
}

/* What people write is read too, and printed in the one way there is. */
static void written_by_hand(void **state) {
  struct arena *a = *state;
  struct graph *g = read_graph(a, "# a test\n\ngraph  t  {   # here\r\n\tdevices  cpu:0-1\n"
                                  "  # RUN: not data\n x=input:f32[ B , 3 ]\n"
                                  "  y = add x,x   # twice\n\n"
                                  "  z = matmul y , x {transpose_b=0, transpose_a = 1}\n"
                                  "  value y\n}\n# the end");
  assert_string_equal(print(a, g), "graph t {\n"
                                   "  stage source\n"
                                   "  devices /cpu:0 /cpu:1\n"
                                   "  x = input : f32[B,3]\n"
                                   "  y = add x, x : f32[B,3]  # twice\n"
                                   "  z = matmul y, x {transpose_a=1, transpose_b=0} : f32[3,3]\n"
                                   "  value y\n"
                                   "}\n");
}

/* Locations become text relative to nothing: the file's name and the line. */
static void origins(void **state) {
  struct arena *a = *state;
  struct diags d;
  diags_init(&d, a);
  struct graph *g = graph_create(a, "o", &d);
  struct source *s = source_make(a, "models/deep/net.dsl", "a\nb\nc", 5);
  struct node n = {.op = OP_input,
                   .type = type_scalar(DT_F32),
                   .name = "x",
                   .loc = {s, 2, 3},
                   .tower = -1,
                   .replica = -1,
                   .device = -1,
                   .why = {.rule = "two\nlines"}};
  assert_non_null(graph_node(g, &n));
  const char *text = "graph o {\n  stage source\n  x = input : f32[]  # two lines, net.dsl:2\n}\n";
  assert_string_equal(print(a, g), text);
  same_text(a, text);
}

/* The user's place is read where calls follow it, and where names have blanks and colons. */
static void places(void **state) {
  const char *file;
  int line;
  assert_true(origin_place(*state, "a b: c.dsl:17 (nn.f, nn.dsl:3)", &file, &line));
  assert_string_equal(file, "a b: c.dsl");
  assert_int_equal(line, 17);
  assert_true(origin_place(*state, "n.dsl:2", &file, &line));
  static const char *const none[] = {"", ":", "7", ":7", "a.dsl", "a.dsl:", "a.dsl:1 (here)"};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    assert_false(origin_place(*state, none[i], &file, &line));
  assert_false(origin_place(*state, NULL, &file, &line));
}

/* The user's line stands first, then each function with the line inside of it; a long chain has no middle. */
static void trails(void **state) {
  struct arena *a = *state;
  struct diags d;
  diags_init(&d, a);
  struct source *s = source_make(a, "net.dsl", "a\nb\nc\nd\ne\nf\ng\n", 14);
  struct trail calls[6];
  for (uint32_t i = 0; i < 6; i++)
    calls[i] = (struct trail){i ? &calls[i - 1] : NULL, {s, 2 * i, 2 * i + 1}, arena_printf(a, "nn.f%u", i)};
  static const struct {
    int calls;
    const char *origin;
  } rows[] = {
      {1, "net.dsl:1 (nn.f0, net.dsl:7)"},
      {2, "net.dsl:1 (nn.f0, net.dsl:2; nn.f1, net.dsl:7)"},
      {4, "net.dsl:1 (nn.f0, net.dsl:2; nn.f1, net.dsl:3; nn.f2, net.dsl:4; nn.f3, net.dsl:7)"},
      {6, "net.dsl:1 (nn.f0, net.dsl:2; nn.f1, net.dsl:3; ...; nn.f4, net.dsl:6; nn.f5, net.dsl:7)"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct node n = {.loc = {s, 12, 13}, .trail = &calls[rows[i].calls - 1]};
    assert_string_equal(node_origin(a, &n), rows[i].origin);
    const char *file;
    int line;
    assert_true(origin_place(a, rows[i].origin, &file, &line));
    assert_string_equal(file, "net.dsl");
    assert_int_equal(line, 1);
    assert_ptr_equal(text_origin(rows[i].origin), rows[i].origin);
    const char *comment = arena_printf(a, "on \"/cpu:0\", (as it is), %s", rows[i].origin);
    assert_string_equal(text_origin(comment), rows[i].origin);
    same_text(a, arena_printf(a, "graph o {\n  stage source\n  x = input : f32[]  # %s\n}\n", comment));
  }
  static const char *const none[] = {"",
                                     "rule",
                                     "rule (a.dsl:1)",
                                     "x a.dsl:1",
                                     "r, a.dsl:",
                                     ", a.dsl:1",
                                     "r, a.dsl:1 (f)",
                                     "r, a.dsl:1 (f, b.dsl)",
                                     "r, :1",
                                     "r, (f, b.dsl:1)",
                                     "r, a.dsl:1 (f, b.dsl:1;)",
                                     "(f, b.dsl:1)"};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) assert_null(text_origin(none[i]));
}

static void several(void **state) {
  struct arena *a = *state;
  const char *text = "graph a {\n}\n\ngraph b {\n x = input : f32[]\n}\n";
  struct diags d;
  struct graph **graphs;
  diags_init(&d, a);
  assert_int_equal(graph_parse_all(a, source_make(a, "t.dg", text, strlen(text)), &d, &graphs), 2);
  assert_string_equal(graphs[1]->name, "b");
  assert_int_equal(graphs[1]->count, 1);
  assert_non_null(strstr(errors(a, text, strlen(text)), "expected one graph, found 2"));
  assert_non_null(strstr(errors(a, "", 0), "expected 'graph NAME {'"));
}

static void located_errors(void **state) {
  struct arena *a = *state;
  const char *text = "graph g {\n"
                     "  image = input : f32[B,784]\n"
                     "  h = matmull image, image\n"
                     "  i = neg h : f32[B]\n"
                     "  j = neg imagee : f32[B]\n"
                     "  k = neg image : f32[B,10]\n"
                     "}\n";
  assert_string_equal(errors(a, text, strlen(text)),
                      "t.dg:3:7: error: there is no op 'matmull'\n"
                      "  3 |   h = matmull image, image\n"
                      "    |       ^~~~~~~\n"
                      "help: did you mean 'matmul'?\n"
                      "t.dg:5:11: error: no node above is called 'imagee'\n"
                      "  5 |   j = neg imagee : f32[B]\n"
                      "    |           ^~~~~~\n"
                      "help: did you mean 'image'?\n"
                      "t.dg:6:19: error: the type is f32[B,784], not f32[B,10]\n"
                      "  6 |   k = neg image : f32[B,10]\n"
                      "    |                   ^~~~~~~~~\n");
}

static void every_error(void **state) {
  struct arena *a = *state;
  static const char *const cases[][2] = {
      {"y", "expected 'name = op ...', an output or a header line, found 'y'"},
      {"vallue x", "did you mean 'value'?"},
      {"y =", "expected an op before the end of the line"},
      {"y = neg z : f32[2]", "no node above is called 'z'"},
      {"y = neg x, : f32[2]", "expected the name of a node, found ':'"},
      {"y = neg x x : f32[2]", "expected a place or the end of the line, found 'x'"},
      {"y = add x : f32[2]", "add takes 2 operands, not 1"},
      {"y = neg y : f32[2]", "t.dg:4"},
      {"x = neg x : f32[2]", "this name is taken by a node above"},
      {"\"\" = neg x : f32[2]", "a name cannot be empty"},
      {"y = reduce_sum x : f32[]", "reduce_sum needs the attribute axes"},
      {"y = neg x {axis=0} : f32[2]", "neg has no attribute axis"},
      {"y = neg x {axes=0} : f32[2]", "expected a list, like [0, 1], found '0'"},
      {"y = neg x {axxis=0} : f32[2]", "did you mean 'axis'?"},
      {"y = neg x {axis=0, axis=1} : f32[2]", "this attribute is given twice"},
      {"y = neg x {axis=99999999999999999999} : f32[2]", "expected an integer"},
      {"y = neg x {axis=0 : f32[2]", "expected ',' or '}'"},
      {"y = input", "input needs a type"},
      {"y = input : f8[2]", "expected a type, like f32[B,784], found 'f8[2]'"},
      {"y = input : f32[1,1,1,1,1,1,1,1,1]", "a type has at most 8 dimensions"},
      {"y = input : f32[B,B]", "the shape is too large, or depends on B twice"},
      {"y = input : f32[1099511627776,2]", "the shape is too large"},
      {"y = input : f32[-3]", "expected a dimension"},
      {"y = input : f32[-9223372036854775808*B]", "expected a dimension"},
      {"y = input : f32[2", "expected ',' or ']'"},
      {"y = neg x : f32[2] on /gpu:0", "'/gpu:0' is not among the devices of the header"},
      {"y = neg x : f32[2] tower -1", "expected a small number, found '-1'"},
      {"y = neg x : f32[2] want /cpu:0", "expected a device in quotes"},
      {"y = neg x : f32[2] want \"/cpu:0", "the string does not end on its line"},
      {"y = neg x : f32[2] want \"\\x00\"", "a string cannot hold this"},
      {"y = constant : f32[]", "constant needs the attribute value"},
      {"y = constant {value=[1.0]} : f32[2]", "the type has more elements"},
      {"y = constant {value=[1.0, 2.0, 3.0]} : f32[2]", "the type has no more elements"},
      {"y = constant {value=1.0} : f32[0]", "the type has no elements"},
      {"y = constant {value=1.0} : f32[B]", "a constant needs a shape without B"},
      {"y = constant {value=1.0} : f32[1099511627776]",
       "constants of more than 64 MiB in one text are refused"},
      {"y = constant {value=1e39} : f32[]", "expected a number within f32"},
      {"y = constant {value=256} : u8[]", "expected an integer from 0 to 255"},
      {"y = constant {value=2147483648} : i32[]", "expected an integer that fits its type"},
      {"y = constant {value=1} : bool[]", "expected true or false"},
      {"y = constant {value=nan(0x)} : f32[]", "error: expected"},
      {"y = neg x : f32[2] {\n  a = input : f32[2]\n  value a\n}", "this op has no body"},
      {"k = fused x : f32[2] {\n a = input : f32[2]\n b = fused a : f32[2] {\n }\n value a\n}",
       "a body cannot hold another one"},
      {"k = fused x : f32[2] {\n stage source\n a = input : f32[2]\n value a\n}", "a body has no header"},
      {"k = fused x : f32[2]", "fused needs the attribute body"},
      {"k = fused x : f32[2] {\n a = input : f32[2]\n value b\n}", "no node above is called 'b'"},
      {"batch 3", "header lines stand before the nodes"},
      {"loss l = y", "no node above is called 'y'"},
      {"metric x / 0", "expected a count"},
      {"value x y", "expected the end of the line, found 'y'"},
      {"} x", "expected the end of the line, found 'x'"},
      {"}\ngraph", "expected the name of the graph"},
      {"}\nx", "expected 'graph NAME {', found 'x'"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_error(a, cases[i][0], cases[i][1]);
  static const char *const headers[][2] = {
      {"stage done", "expected source, replicated, placed or fused, found 'done'"},
      {"batch 0", "expected a positive number, found '0'"},
      {"towers 2000000", "expected a positive number"},
      {"batch 1\nbatch 1", "this is given twice"},
      {"devices cpu:0 cpu:0", "device /cpu:0 is listed twice"},
      {"devices /cpu:0@/cpu:1 /cpu:1", "expected the device itself or one listed before it"},
      {"devices /cpu:0(real)", "expected 'simulated)' or 'storage)'"},
      {"devices", "is not a device"},
      {"strategy", "expected a name"},
  };
  for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
    const char *text = arena_printf(a, "graph g {\n%s\n}\n", headers[i][0]);
    const char *said = errors(a, text, strlen(text));
    if (!strstr(said, headers[i][1])) print_message("expected: %s\nsaid: %s\n", headers[i][1], said);
    assert_non_null(strstr(said, headers[i][1]));
  }
}

static void cut_anywhere(void **state) {
  struct arena *a = *state;
  struct diags d;
  for (size_t len = 0; len < sizeof source_text; len++) {
    diags_init(&d, a);
    struct graph *g = graph_parse(a, source_make(a, "t.dg", source_text, len), &d);
    assert_true((g != NULL) == (d.nerrors == 0));
    assert_true(g || len < sizeof source_text - 2);
  }
  errors(a, "graph g {\n x\0 = input : f32[]\n}\n", 31);
}

static void too_large(void **state) {
  struct arena *a = *state;
  size_t len = (16u << 20) + 1;
  char *text = arena_alloc(a, len);
  memset(text, ' ', len);
  for (size_t i = 0; i < len; i += 64) text[i] = '\n';
  assert_non_null(strstr(errors(a, text, len), "graph text of more than 16 MiB is refused"));
  /* Long lines, names and lists are merely slow. */
  memset(text, 'a', len);
  memcpy(text, "graph ", 6);
  errors(a, text, len - 1);
}

static void many_nodes(void **state) {
  struct arena *a = *state;
  struct str s = str_make(a);
  str_put(&s, "graph many {\n  stage source\n  n0 = input : f32[B,3]\n");
  for (int i = 1; i < 20000; i++)
    str_printf(&s, "  n%d = add n%d, n%d : f32[B,3]  # m.dsl:%d\n", i, i - 1, i / 2, i);
  str_put(&s, "  value n19999\n}\n");
  same_text(a, s.data);
}

static void json(void **state) {
  struct arena *a = *state;
  assert_true(scratch_make());
  const char *path = arena_printf(a, "%s/graph.json", scratch_path);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  struct graph *g =
      read_graph(a, "graph \"q\\\"\\x01\" {\n  devices /cpu:0\n  x = input : f32[B]  # why \"so\"\n"
                    "  c = constant {value=[inf, nan, 1.5]} : f32[3]\n"
                    "  k = fused x : f32[B] {\n    i = input : f32[B]\n    value i\n  }\n"
                    "  metric x / B\n}\n");
  struct str s = str_make(a), again = str_make(a);
  graph_print_json(&s, g);
  graph_print_json(&again, g);
  assert_string_equal(s.data, again.data);
  assert_int_equal(fwrite(s.data, 1, s.len, file), s.len);
  fclose(file);
  if (system("python3 --version >/dev/null 2>&1") == 0)
    assert_int_equal(system(arena_printf(a, "python3 -m json.tool %s >/dev/null", path)), 0);
}

static void dot(void **state) {
  struct arena *a = *state;
  struct str s = str_make(a);
  graph_print_dot(&s, read_graph(a, "graph d {\n  x = input : f32[B]\n  y = neg x\n  value y\n}\n"));
  assert_string_equal(s.data, "digraph \"d\" {\n"
                              "  node [fontname=\"monospace\"];\n"
                              "  n0 [shape=ellipse, label=\"x\\ninput : f32[B]\"];\n"
                              "  n1 [shape=box, label=\"y\\nneg : f32[B]\"];\n"
                              "  n0 -> n1;\n"
                              "  out0 [shape=plaintext, label=\"value y\"];\n"
                              "  n1 -> out0;\n"
                              "}\n");
}

/* Two constants in one scope: the second one's name tells its content, and nothing that lies behind its shape. */
static void names_by_content(void **state) {
  struct arena *a = *state;
  const char *names[2];
  for (int i = 0; i < 2; i++) {
    struct diags d;
    diags_init(&d, a);
    struct graph *g = graph_create(a, "g", &d);
    struct type t;
    memset(&t, i ? 0xab : 0, sizeof t);
    t.dtype = DT_F32;
    t.rank = 1;
    t.dim[0] = 2;
    assert_string_equal(build_constant(g, &t, (float[]){1, 2})->name, "constant");
    names[i] = build_constant(g, &t, (float[]){3, 4})->name;
  }
  assert_string_equal(names[0], names[1]);
}

/* What no output reads goes; what stays keeps its name, though a name were free now, and nothing is folded. */
static void pruned(void **state) {
  struct arena *a = *state;
  struct graph *g = read_graph(a, "graph g {\n"
                                  "  x = input : f32[2]\n"
                                  "  unread = exp x : f32[2]\n"
                                  "  one = constant {value=1} : f32[]\n"
                                  "  one.x = mul one, one : f32[]\n"
                                  "  y = neg x : f32[2]\n"
                                  "  value y\n"
                                  "  value one.x\n"
                                  "}\n");
  struct graph *kept = graph_prune(a, g);
  assert_int_equal(kept->count, g->count - 1);
  assert_null(graph_find(kept, "unread"));
  assert_string_equal(graph_find(kept, "y")->inputs[0]->name, "x");
  assert_int_equal(graph_find(kept, "one.x")->op, OP_mul);
  assert_int_equal(kept->noutputs, 2);
  assert_ptr_equal(kept->outputs[0].node, graph_find(kept, "y"));
  assert_ptr_equal(graph_prune(a, kept), kept);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(source_round_trip),
      TEST(gradients_round_trip),
      TEST(placed_round_trip),
      TEST(rules),
      TEST(constants),
      TEST(written_by_hand),
      TEST(origins),
      TEST(trails),
      TEST(places),
      TEST(several),
      TEST(located_errors),
      TEST(every_error),
      TEST(cut_anywhere),
      TEST(too_large),
      TEST(many_nodes),
      TEST(json),
      TEST(dot),
      TEST(names_by_content),
      TEST(pruned),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
