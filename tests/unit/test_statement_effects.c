/* SPDX-License-Identifier: Apache-2.0 */
/* No statement vanishes: each kind, in each place where it may stand, leaves a mark in a graph or is told of. */
#include "frontend/frontend.h"
#include "ir/graph/graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A statement and a word of the graphs that tells that it has been heard: a node, an output or a place. Its number, 77,
 * makes it one of its kind. */
static const struct statement {
  const char *name, *text, *mark;
} statements[] = {
    {"input", "input extra : f32[B, 77]; predict heard = extra", "predict heard"},
    {"var", "var extra : f32[77] = zeros()", "extra = variable"},
    {"state", "state extra : f32[77] = zeros()", "extra = variable"},
    {"bind", "extra = x * 77\n predict heard = extra", "predict heard"},
    {"assign", "s <- 77.0", "s.update = assign"},
    {"add", "s += 77.0", "s.update = assign"},
    {"add a mean", "s += mean(x) * 77", "s.update = assign"},
    {"add rows", "s += x * 77", "s.update = assign"},
    {"add to a sum", "sums += 77.0", "sums.update = assign"},
    {"add rows to a sum", "sums += x * 77", "sums.update = assign"},
    {"assign rows to a sum", "sums <- x * 77", "sums.update = assign"},
    {"add rows to a local", "local += x * 77", "local.update = assign"},
    {"add a mean to a local", "local += mean(x) * 77", "local.update = assign"},
    {"assign another type", "s <- cast(mean(x), f64)", "s.update = assign"},
    {"assign a list", "s <- [77.0, 77.0]", "s.update = assign"},
    {"assign a flag", "s <- true", "s.update = assign"},
    {"assign nothing", "s <- none", "s.update = assign"},
    {"assign an input", "x <- x * 77", "x.update = assign"},
    {"assign the step", "step <- 77", "step.update = assign step, constant"},
    {"return", "return x * 77", "{value=77.0}"},
    {"for", "for i in 0..2 { s <- 77.0 + i }", "s.update = assign"},
    {"for of nothing", "for i in 77 { s <- 77.0 }", "s.update = assign"},
    {"if", "if 77 > 1 { s <- 77.0 }", "s.update = assign"},
    {"else", "if 77 < 1 { y77 = x } else { s <- 77.0 }", "s.update = assign"},
    {"train", "train other = mean(x * w * 77) with sgd(rate = 0.1)", "loss other"},
    {"train with nothing", "train other = mean(x * w * 77) with idle()",
     "with an optimizer that does nothing"},
    {"metric", "metric heard = mean(x * 77)", "metric heard"},
    {"metric of a number", "metric heard = 77", "metric heard"},
    {"predict", "predict heard = x * 77", "predict heard"},
    {"data", "data train { x = \"a.npy\" }", NULL},
    {"data of nothing", "data train { }", NULL},
    {"strategy", "strategy mirrored(towers = 2)", NULL},
    {"on", "on \"/cpu:77\" { s <- mean(x) }", "/cpu:77"},
    {"on an input", "input extra : f32[B, 3] on \"/cpu:77\"; predict heard = extra", "/cpu:77"},
    {"on no device", "input extra : f32[B, 3] on \"77\"; predict heard = extra", "\"77\""},
};

#define BEGIN                                                                                                \
  "optimizer idle() { }\nmodel m() {\n input x : f32[B, 4]\n var w : f32[4] = zeros()\n state s : f32 = 0\n" \
  " state sums : f32 = 0 aggregation(sum)\n state local : f32 = 0 aggregation(sum) "                         \
  "synchronization(on_read)\n"
#define END    " train mean(x * w) with sgd(rate = 0.1)\n predict p = x * s * sums * local\n}\n"
#define PASSED "x, w, s, sums, local"

/* Where a statement stands: what is before and behind it. */
static const struct place {
  const char *name, *before, *after;
} places[] = {
    {"a model", BEGIN, "\n" END},
    {"a model without training", BEGIN, "\n predict p = x * s\n}\n"},
    {"a loop", BEGIN " for k in 0..1 {\n", "\n }\n" END},
    {"a condition", BEGIN " if true {\n", "\n }\n" END},
    {"training", BEGIN " if training {\n", "\n }\n" END},
    {"anything else than training", BEGIN " if not training {\n", "\n }\n" END},
    {"a model of predictions, not in training", BEGIN " if not training {\n",
     "\n }\n predict p = x * s\n}\n"},
    {"a device", BEGIN " on \"/cpu:1\" {\n", "\n }\n" END},
    {"a layer", "layer l(" PASSED ") {\n",
     "\n return x\n}\n" BEGIN " y = l(" PASSED ")\n predict q = y\n" END},
    {"a layer of a metric", "layer l(" PASSED ") {\n",
     "\n return mean(x)\n}\n" BEGIN " metric q = l(" PASSED ")\n" END},
    {"a layer of a prediction", "layer l(" PASSED ") {\n",
     "\n return x\n}\n" BEGIN " predict q = l(" PASSED ")\n" END},
    {"a loop of a layer", "layer l(" PASSED ") {\n for k in 0..1 {\n",
     "\n }\n return x\n}\n" BEGIN " predict q = l(" PASSED ")\n" END},
    {"a layer, behind its end", "layer l(" PASSED ") {\n return x\n",
     "\n}\n" BEGIN " y = l(" PASSED ")\n predict q = y\n" END},
    {"a function", "function f(" PASSED ") {\n",
     "\n return x\n}\n" BEGIN " y = f(" PASSED ")\n predict q = y\n" END},
    {"an initializer", "initializer i(" PASSED ") {\n",
     "\n return zeros()\n}\n" BEGIN " var v : f32[4] = i(" PASSED ")\n predict q = x * v\n" END},
    {"a function of a first value", "function f(" PASSED ") {\n",
     "\n return 0.0\n}\n" BEGIN " var v : f32[4] = f(" PASSED ")\n predict q = x * v\n" END},
    {"an optimizer", "optimizer o(" PASSED ") {\n variable <- variable - gradient\n",
     "\n}\n" BEGIN " train mean(x * w) with o(" PASSED ")\n predict p = x * s * sums * local\n}\n"},
};

static bool marked(struct arena *a, const struct model *m, const char *mark) {
  const struct graph *graphs[] = {m->init, m->train, m->eval, m->predict, m->metrics};
  if (!mark) return m->ndata > 0 || m->strategy.name;
  for (int i = 0; i < 5; i++) {
    struct str s = str_make(a);
    if (i == 0 && !strstr(mark, "= variable")) continue; /* first values are assigned, too */
    if (graphs[i]) graph_print(&s, graphs[i]);
    if (graphs[i] && strstr(s.data, mark)) return true;
  }
  return false;
}

/* Warnings about the statements around it do not count. */
static bool told(const struct diags *d, const struct source *source, size_t from, size_t to) {
  for (const struct diag *q = d->first; q; q = q->next)
    if (q->severity <= DIAG_WARNING && q->loc.source == source && q->loc.begin >= from && q->loc.begin < to)
      return true;
  return d->nerrors > 0;
}

static void none_vanishes(void **state) {
  int heard = 0, told_of = 0, lost = 0;
  (void)state;
  for (size_t p = 0; p < sizeof places / sizeof *places; p++)
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
      struct arena *a = arena_create();
      struct diags d;
      diags_init(&d, a);
      const char *text = arena_printf(a, "%s %s%s", places[p].before, statements[i].text, places[p].after);
      size_t from = strlen(places[p].before), to = from + 1 + strlen(statements[i].text);
      struct source *source = source_make(a, "t.dsl", text, strlen(text));
      struct model *m = frontend_compile(a, source, NULL, &d);
      for (const struct diag *q = d.first; q; q = q->next)
        if (strstr(q->message, "a mistake of dgc's")) fail_msg("%s\n%s", text, diags_text(&d, false));
      struct graph *graphs[] = {m ? m->init : NULL, m ? m->train : NULL, m ? m->eval : NULL,
                                m ? m->predict : NULL, m ? m->metrics : NULL};
      for (int k = 0; k < 5; k++)
        if (graphs[k] && !graph_verify(graphs[k], "frontend", &d))
          fail_msg("%s\n%s", text, diags_text(&d, false));
      bool found = m && marked(a, m, statements[i].mark), said = told(&d, source, from, to);
      heard += found;
      told_of += said;
      if (!found && !said) print_error("%s in %s has vanished\n", statements[i].name, places[p].name), lost++;
      arena_destroy(a);
    }
  print_message("%d heard, %d told of\n", heard, told_of);
  assert_int_equal(lost, 0);
  assert_true(heard > 100 && told_of > 100);
}

static void refuse(const char *text, const char *expected) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  assert_null(frontend_compile(a, source_make(a, "t.dsl", text, strlen(text)), NULL, &d));
  if (!strstr(diags_text(&d, false), expected))
    fail_msg("wanted: %s\ngot: %s", expected, diags_text(&d, false));
  arena_destroy(a);
}

/* What a variable cannot hold is said, and what can be written instead. */
static void rows_are_no_variable(void **state) {
  (void)state;
  refuse("model m() {\n input x : f64[B]\n var w : f64 = 0\n state s : f64 = 0 aggregation(sum)\n s += x\n"
         " train mean(x * w) with sgd(rate = 0.1)\n}\n",
         "`s` is f64[], and f64[B] cannot be added to it");
  refuse("model m() {\n input x : f64[B]\n var w : f64 = 0\n state s : f64 = 0 aggregation(mean)\n s <- x\n"
         " train mean(x * w) with sgd(rate = 0.1)\n}\n",
         "write `s <- sum(...)` or `mean(...)`");
}

/* A trip of a loop takes as long as many steps of an expression. */
#define TEN       " + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1"
#define LONG_TRIP "h = h" TEN TEN TEN

/* Past the limit of steps there is one error. */
static void one_error_at_the_limit(void **state) {
  static const char *const uses[] = {
      "a, b = k()",     "for i in 0..k() { }", "if k() { }",        "y = x[:, k()]",
      "y = k() + x",    "y = g(k())",          "y = x @ k()",       "train k() with sgd(rate = 0.1)",
      "metric m = k()", "predict p = k()",     "var v : f32 = k()", "s <- k()",
      "y = x on k()"};
  (void)state;
  for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
    struct arena *a = arena_create();
    struct diags d;
    diags_init(&d, a);
    const char *text =
        arena_printf(a,
                     "model m() {\n input x : f32[B, 4]\n state s : f32 = 0\n %s\n predict q = x\n}\n"
                     "function g(x : f32[..., K]) { return x }\n"
                     "function k() {\n h = 0\n for i in 0..1000000 { " LONG_TRIP " }\n return h\n}\n",
                     uses[i]);
    assert_null(frontend_compile(a, source_make(a, "t.dsl", text, strlen(text)), NULL, &d));
    if (d.nerrors != 1) fail_msg("%s", diags_text(&d, false));
    assert_non_null(strstr(diags_text(&d, false), "takes more than 400000 steps"));
    arena_destroy(a);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(none_vanishes),
      cmocka_unit_test(rows_are_no_variable),
      cmocka_unit_test(one_error_at_the_limit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
