/* SPDX-License-Identifier: Apache-2.0 */
/* What variables are called: nothing that has no variables changes it, wherever it stands around a layer's call. */
#include "frontend/frontend.h"
#include "ir/graph/graph.h"
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

#define MODEL                                                                   \
  "use nn\n"                                                                    \
  "layer block(x, n) {\n a = nn.dense(x, n)\n return relu(nn.dense(a, n))\n}\n" \
  "function twice(x) {\n t = nn.dense(x, 3)\n return nn.dense(t, 3)\n}\n"       \
  "model m() {\n input x : f32[B, 3]\n"

/* "NAME NAME ...", in the order of their first values; they are the same in all graphs that have them. */
static const char *variables(struct arena *a, const char *body) {
  const char *text = arena_printf(a, MODEL "%s\n train mean(y) with sgd()\n predict p = y\n}\n", body);
  struct diags d;
  diags_init(&d, a);
  struct model *m = frontend_compile(a, source_make(a, "test.dsl", text, strlen(text)), NULL, &d);
  if (!m) print_error("%s%s", text, diags_text(&d, false));
  assert_non_null(m);
  struct str names = str_make(a);
  struct graph *graphs[] = {m->init, m->train, m->predict};
  for (int i = 0; i < 3; i++)
    for (uint32_t k = 0; k < graphs[i]->count; k++) {
      const struct node *n = graphs[i]->nodes[k];
      if (!node_is(n, OP_variable) || strcmp(n->name, "step") == 0) continue;
      if (i == 0) str_printf(&names, "%s ", n->name);
      assert_non_null(graph_find(m->init, n->name));
    }
  return names.data;
}

static void expect(struct arena *a, const char *body, const char *names) {
  const char *are = variables(a, body);
  if (strcmp(are, names) != 0) print_error("%s\n", body);
  assert_string_equal(are, names);
}

#define DENSE(at) at ".kernel " at ".bias "

static void bindings_and_layers(void **state) {
  struct arena *a = *state;
  expect(a, " y = nn.dense(x, 3)", DENSE("y"));
  expect(a, " y = nn.dense(nn.dense(nn.dense(x, 3), 3), 3)", DENSE("y.dense") DENSE("y.dense#2") DENSE("y"));
  expect(a, " y = nn.layer_norm(nn.dense(x, 3))", DENSE("y.dense") "y.scale y.shift ");
  expect(a, " y = nn.dense(x, 3) + nn.dense(x, 3)", DENSE("y") DENSE("y#2"));
  expect(a, " y = block(x, 3)", DENSE("y.a") DENSE("y"));
  expect(a, " y = block(x, 3) * block(block(x, 3), 3)",
         DENSE("y.a") DENSE("y") DENSE("y.block.a") DENSE("y.block") DENSE("y#2.a") DENSE("y#2"));
  expect(a, " y = twice(x)", DENSE("y.t") DENSE("y"));
  expect(a, " y = twice(twice(x))", DENSE("y.twice.t") DENSE("y.twice") DENSE("y.t") DENSE("y"));
  expect(a, " h = x\n for i in 0..2 { h = relu(nn.dense(h, 3)) }\n y = h", DENSE("h.0") DENSE("h.1"));
  expect(a, " y = x\n y = relu(nn.dense(y, 3))\n y = nn.dense(y, 3)", DENSE("y#2") DENSE("y#3"));
}

/* Neither has variables of its own; what they are is told by the text, whichever branch is taken. */
static void branches(void **state) {
  struct arena *a = *state;
  expect(a, " y = dropout(nn.dense(x, 3)) if training else nn.dense(x, 3)", DENSE("y"));
  expect(a, " y = (nn.dense(x, 3) if not training else nn.dense(x, 3)) + nn.dense(x, 3)",
         DENSE("y") DENSE("y#2"));
  expect(a, " y = (x if training else nn.dense(x, 3) * 0) + nn.dense(x, 3)", DENSE("y#2") DENSE("y"));
  expect(a, " f = nn.dense\n y = f(x, 3) + f(x, 3)", DENSE("y") DENSE("y#2"));
  expect(a, " f = [nn.dense, relu]\n y = f[1](f[0](x, 3))", DENSE("y.dense"));
}

static const char *const calls[] = {
    "nn.dense(%s, 3)",
    "nn.layer_norm(nn.dense(%s, 3))",
    "nn.dense(nn.dense(%s, 3), 3)",
    "block(%s, 3)",
    "nn.attention(stack([%s, x], axis = 1), 1)[:, 0]",
    "twice(nn.dense(%s, 3))",
};
static const char *const wraps[] = {
    "relu(%s)",
    "identity(%s)",
    "dropout(%s, 0.5)",
    "-(%s)",
    "(1 + %s) * x",
    "concat([%s], 1)",
    "(%s if 1 < 2 else x)",
    "gelu(tanh(relu(%s)))",
    "stack([%s], 1)[:, 0]",
    "reshape(%s, [B, 3])",
    "select(x > 0, %s, x)",
    "(x - %s)",
};

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* printf with one %s, which the compiler does not know. */
static const char *fill(struct arena *a, const char *form, const char *text) {
  const char *at = strstr(form, "%s");
  return arena_printf(a, "%.*s%s%s", (int)(at - form), form, text, at + 2);
}

static void wrapping(void **state) {
  struct arena *a = *state;
  for (size_t c = 0; c < COUNT(calls); c++) {
    const char *names = variables(a, fill(a, " y = %s", fill(a, calls[c], "x")));
    for (size_t w = 0; w < COUNT(wraps); w++) {
      expect(a, fill(a, " y = %s", fill(a, wraps[w], fill(a, calls[c], "x"))), names);
      expect(a, fill(a, " y = %s", fill(a, calls[c], fill(a, wraps[w], "x"))), names);
    }
  }
  for (size_t w = 0; w < COUNT(wraps); w++)
    expect(a, fill(a, " y = nn.layer_norm(%s)", fill(a, wraps[w], "nn.dense(x, 3)")),
           DENSE("y.dense") "y.scale y.shift ");
}

/* A value of its own takes its own name, and leaves the others theirs; numbers close up behind it. */
static void extracting(void **state) {
  struct arena *a = *state;
  expect(a, " c = nn.dense(x, 3)\n y = relu(nn.layer_norm(c))", DENSE("c") "y.scale y.shift ");
  expect(a, " y = nn.layer_norm(nn.dense(relu(block(x, 3)), 3))",
         DENSE("y.block.a") DENSE("y.block") DENSE("y.dense") "y.scale y.shift ");
  expect(a, " b = relu(block(x, 3))\n y = nn.layer_norm(nn.dense(b, 3))",
         DENSE("b.a") DENSE("b") DENSE("y.dense") "y.scale y.shift ");
  expect(a, " b = nn.dense(x, 3)\n y = b + nn.dense(x, 3)", DENSE("b") DENSE("y"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(bindings_and_layers, setup, teardown),
      cmocka_unit_test_setup_teardown(branches, setup, teardown),
      cmocka_unit_test_setup_teardown(wrapping, setup, teardown),
      cmocka_unit_test_setup_teardown(extracting, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
