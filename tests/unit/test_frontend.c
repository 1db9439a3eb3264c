/* SPDX-License-Identifier: Apache-2.0 */
/* The language: canonical text, what a model becomes, how metrics add up, and texts that nobody means well with. */
#include "frontend/ast.h"
#include "frontend/elsewhere.h"
#include "frontend/frontend.h"
#include "frontend/library.h"
#include "ir/graph/text.h"
#include "ir/ops/op_id.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

static struct model *compile(struct arena *a, const char *text, struct diags *d, const char *const *sets,
                             int nsets) {
  struct frontend_options options = {.sets = sets, .nsets = nsets};
  diags_init(d, a);
  return frontend_compile(a, source_make(a, "test.dsl", text, strlen(text)), &options, d);
}

static struct model *accept(struct arena *a, const char *text) {
  struct diags d;
  struct model *m = compile(a, text, &d, NULL, 0);
  if (!m) print_error("%s", diags_text(&d, false));
  assert_non_null(m);
  struct graph *graphs[] = {m->init, m->train, m->eval, m->predict};
  for (int i = 0; i < 4; i++)
    if (graphs[i]) assert_true(graph_verify(graphs[i], "frontend", &d));
  return m;
}

/* Compilation fails with a message that holds `expected`. */
static void reject(struct arena *a, const char *text, const char *expected) {
  struct diags d;
  assert_null(compile(a, text, &d, NULL, 0));
  const char *said = diags_text(&d, false);
  if (!strstr(said, expected)) print_error("wanted: %s\ngot: %s", expected, said);
  assert_non_null(strstr(said, expected));
}

#define MODEL(body) "model m() {\n input x : f32[B, 4]\n" body "\n}\n"

static const char *canonical(struct arena *a, const char *text) {
  struct diags d;
  diags_init(&d, a);
  struct file *file = ast_parse(a, source_make(a, "t", text, strlen(text)), &d);
  assert_int_equal(d.nerrors, 0);
  struct str s = str_make(a);
  ast_print(&s, file);
  return s.data;
}

static void printing_is_stable(void **state) {
  struct arena *a = *state;
  const char *once = canonical(
      a, "use nn; use \"a\\\"b.dsl\" as c\n"
         "model m(a = 1e-7, b = [1, [2], -3]) {\n"
         " y, z = (a + b) * (c - (d - e)) ^ (f ^ g) ^ -h; q = not (u and v) or w == (s == t)\n"
         " r = (a if b else c) + (-x) ^ 2 - -x ^ 2 + (-x)(1)[2:, ..., ...k].l on \"/cpu:1\"\n"
         " if a { } else if b { x <- 2 } else { for i in 0..n + 1 { }; for j in [1] { } }\n"
         " train s = a with b over [c]; data train { x = \"y\" }\n on \"/cpu:0\" { k = 1_000 }\n}\n");
  assert_string_equal(once, canonical(a, once));
  assert_non_null(strstr(once, "(a + b) * (c - (d - e)) ^ (f ^ g) ^ (-h)"));
}

static void graphs_of_a_model(void **state) {
  struct arena *a = *state;
  struct model *m = accept(
      a, "use nn\n" MODEL(" input t : f32[B]\n h = nn.dense(x, 3, relu)\n y = squeeze(nn.dense(h, 1), 1)\n"
                          " loss = squared_error(y, t)\n train mean(loss) with adam(rate = 0.1)\n"
                          " metric error = mean(abs(y - t))\n predict value = y"));
  assert_string_equal(m->name, "m");
  assert_int_equal(m->ninputs, 2);
  static const char *const variables[] = {"h.kernel", "h.bias", "y.kernel",
                                          "y.bias",   "step",   "h.kernel.adam.m"};
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    const struct node *n = graph_find(m->init, variables[i]);
    assert_non_null(n);
    assert_true(node_is(n, OP_variable));
    assert_true(node_is(graph_find(m->init, arena_printf(a, "%s.update", variables[i])), OP_assign));
  }
  assert_int_equal(node_int_or(graph_find(m->init, "h.kernel"), ATTR_trainable, 0), 1);
  assert_string_equal(node_string(graph_find(m->init, "h.kernel.adam.m"), ATTR_slot), "h.kernel");
  assert_int_equal(m->init->noutputs, 4 + 8 + 1);
  assert_int_equal(m->train->outputs[0].role, OUTPUT_LOSS);
  assert_string_equal(m->train->outputs[0].name, "loss");
  assert_true(node_is(graph_find(m->train, "h.kernel.grad"), OP_gradient));
  assert_int_equal(m->eval->noutputs, 2);
  assert_int_equal(m->eval->outputs[0].count, -1);
  assert_int_equal(m->predict->noutputs, 1);
  assert_null(graph_find(m->predict, "t")); /* what prediction does not need is not there */
}

static void loops_and_conditions(void **state) {
  struct arena *a = *state;
  struct model *m =
      accept(a, "use nn\n" MODEL(" h = x\n for i in 0..3 { h = nn.dense(h, 4)\n if i == 1 { h = h * 2 } }\n"
                                 " for n in [5, 6] { g = n }\n predict y = h"));
  assert_non_null(graph_find(m->predict, "h.0.kernel"));
  assert_non_null(graph_find(m->predict, "h.2.kernel"));
  assert_null(graph_find(m->predict, "h.3.kernel"));
  reject(a, MODEL(" y = x\n y = x\n predict p = y"), "`y` is bound already");
  reject(a, "use nn\n" MODEL(" y = nn.dense(x, 2)\n if true { y = nn.dense(x, 2) }\n predict p = y"),
         "two variables would be called `y.kernel`");
}

static void parameters_are_set(void **state) {
  struct arena *a = *state;
  const char *text = "model m(n = 4, rate = 1e-3, deep = false, sizes = [1], act = relu, name = \"a\") {\n"
                     " input x : f32[B, n]\n predict y = act(x)\n}\n";
  const char *const sets[] = {"n=7", "rate=2", "deep=true", "sizes=[2, 3]", "act=tanh", "name=b c"};
  static const char *const values[] = {"7", "2.0", "true", "[2, 3]", "tanh", "\"b c\""};
  struct diags d;
  struct model *m = compile(a, text, &d, sets, 6);
  assert_non_null(m);
  for (int i = 0; i < 6; i++) assert_string_equal(m->parameters[i].value, values[i]);
  assert_int_equal(m->inputs[0].type.dim[1], 7);
  static const struct {
    const char *set, *message;
  } bad[] = {{"nn=3", "did you mean"}, {"n=2.5", "must be an integer"},    {"n=", "must be an integer"},
             {"=1", "NAME=VALUE"},     {"deep=1", "true or false"},        {"sizes=3", "a list"},
             {"act=exq", "same kind"}, {"n=1) + (2", "must be an integer"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_null(compile(a, text, &d, &bad[i].set, 1));
    assert_non_null(strstr(diags_text(&d, false), bad[i].message));
  }
}

/* Of a value that is set, of a default, and of one that is made of a parameter before it. */
static void parameters_have_types(void **state) {
  struct arena *a = *state;
  struct diags d;
  const char *text =
      "model m(rate : fraction = 0.5, n : int = 3, other : fraction = rate, scale : f32 = 2.0) {\n"
      " input x : f32[B]\n predict y = x * other * n * scale\n}\n";
  const char *const good[] = {"rate=0", "n=-1", "scale=1"};
  struct model *m = compile(a, text, &d, good, 3);
  assert_non_null(m);
  assert_string_equal(m->parameters[2].value, "0.0");
  const char *const bad[] = {"rate=1", "rate=-0.1", "other=2", "rate=inf"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_null(compile(a, text, &d, &bad[i], 1));
    assert_non_null(strstr(diags_text(&d, false), "must be fraction"));
  }
  reject(a, "model m(n : int = 2.5) {\n input x : f32[B]\n predict y = x * n\n}\n",
         "must be int, not the number 2.5");
  reject(a, "model m(n : f32[2] = 2.5) {\n input x : f32[B]\n predict y = x * n\n}\n", "must be f32[2]");
}

static struct model *model_of(struct arena *a, const char *metric) {
  return accept(
      a, arena_printf(a, "model m() {\n input x : f32[B, 4]\n var w : f32[4] = ones()\n metric k = %s\n}\n",
                      metric));
}

static int64_t count_of(struct arena *a, const char *metric) {
  const struct output *o = &model_of(a, metric)->eval->outputs[0];
  assert_int_equal(o->role, OUTPUT_METRIC);
  return o->count;
}

/* What a formula is made of. */
static const char *made_of(struct arena *a, const char *metric) {
  const struct model *m = model_of(a, metric);
  struct str s = str_make(a);
  for (int i = 0; i < m->eval->noutputs; i++)
    str_printf(&s, "%s%s", i ? " " : "", text_roles[m->eval->outputs[i].role]);
  assert_int_equal(m->metrics->noutputs, 1);
  assert_int_equal(m->metrics->outputs[0].role, OUTPUT_METRIC);
  return s.data;
}

static void metrics_add_up(void **state) {
  struct arena *a = *state;
  assert_int_equal(count_of(a, "mean(x * w)"), -4);
  assert_int_equal(count_of(a, "mean(mean(x * w, axis = 1))"), -1);
  assert_int_equal(count_of(a, "sum(x * w)"), 0);
  assert_string_equal(made_of(a, "1 - 2 * mean(x) / 3 + sum(square(w))"), "total total same");
  assert_string_equal(made_of(a, "mean(x) + mean(x[:, 0])"), "total total total");
  assert_string_equal(made_of(a, "sum(w)"), "same");
  assert_string_equal(made_of(a, "0.5"), "same");
  assert_string_equal(made_of(a, "sqrt(mean(x))"), "total total");
  assert_string_equal(made_of(a, "sum(x) + 1"), "total");
  assert_string_equal(made_of(a, "mean(x) * mean(x)"), "total total");
  assert_string_equal(made_of(a, "max(x) - min(x)"), "maximum minimum");
  reject(a, MODEL(" metric k = mean(x * mean(x))"), "a metric is a function of sums over the rows");
  reject(a, MODEL(" metric k = x"), "a metric is a scalar");
}

static void state_and_optimizers(void **state) {
  struct arena *a = *state;
  struct model *m =
      accept(a, MODEL(" var c : f32 = 10\n state seen : i32 = 0\n seen <- seen + 1\n loss = sum(x * c)\n"
                      " train loss with sgd(rate = 1)\n train again = sum(x * c) with adam(rate = 1)"));
  assert_int_equal(node_int_or(graph_find(m->train, "seen"), ATTR_trainable, 0), 0);
  int updates = 0;
  for (int i = 0; i < m->train->noutputs; i++) updates += m->train->outputs[i].role == OUTPUT_UPDATE;
  assert_int_equal(updates, 5); /* c once, though two optimizers change it; seen; adam's m and v; step */
  reject(a, MODEL(" var c : f32 = 1\n c <- 2.0\n train mean(x * c) with sgd()"),
         "only its optimizer may assign it");
  reject(a, MODEL(" state c : f32 = 1\n c <- 2.0\n c <- 3.0\n predict y = x"), "assigned twice");
  reject(a, MODEL(" train mean(x) with sgd()"), "depends on no variable");
  reject(a, MODEL(" y = sgd(1)\n predict p = x"), "stands behind `with`");
  reject(a, MODEL(" y = zeros()\n predict p = x"), "first value");
}

/* The library, definition by definition, as the parser finds it in whole files. */
static void library_by_definition(void **state) {
  struct arena *a = *state;
  struct diags d;
  diags_init(&d, a);
  size_t parsed = 0;
  for (const struct embedded *e = frontend_library; e->name; e++) {
    const struct source *source = source_make(a, e->name, e->text, e->len);
    const struct file *whole = ast_parse(a, source, &d);
    struct definition *found = arena_new_array(a, library_definitions(e, NULL, 0), struct definition);
    size_t count = library_definitions(e, found, library_definitions(e, NULL, 0)), i = 0;
    struct str parts = str_make(a), all = str_make(a);
    ast_print(&all, whole);
    for (const struct def *def = whole->defs; def; def = def->next, i++) {
      assert_true(i < count);
      const struct file *part = ast_parse_part(a, source, found[i].begin, found[i].end, &d);
      struct loc name = {source, found[i].name_begin, found[i].name_end};
      assert_memory_equal(&def->loc, &name, sizeof name);
      assert_memory_equal(&part->defs->loc, &name, sizeof name);
      if (i) str_putc(&parts, '\n');
      ast_print(&parts, part);
    }
    assert_int_equal(i, count);
    assert_string_equal(parts.data, all.data);
    parsed += count;
  }
  if (d.nerrors) print_error("%s", diags_text(&d, false));
  assert_int_equal(d.nerrors, 0);
  assert_true(parsed > 100);
}

static const char *instead(const char *word) { return elsewhere_instead(word, strlen(word)); }

/* What `dgc doc` says of the word, which there is not. */
static void check_doc(struct arena *a, const char *word, const char *expected) {
  struct diags d;
  diags_init(&d, a);
  assert_null(frontend_doc(a, word, false, &d));
  if (!strstr(diags_text(&d, false), expected)) fail_msg("dgc doc %s: %s", word, diags_text(&d, false));
}

/* What is said of the word as the name of an argument, as a function and as a name, where it has no meaning of ours. */
static void check_error(struct arena *a, const char *word, const char *expected) {
  static const char *const uses[] = {"predict y = relu(x, %s = 1)", "predict y = %s(x)",
                                     "predict y = x + %s"};
  for (int i = 0; i < 3; i++) {
    const char *use = arena_printf(a, uses[i], word);
    bool ours = strcmp(word, "input") == 0 ||
                (i == 2 && (strcmp(word, "step") == 0 || strcmp(word, "training") == 0));
    if (!ours) reject(a, arena_printf(a, "model m() {\n input x : f32[B, 4]\n%s\n}\n", use), expected);
  }
}

/* A call of elsewhere.def calls what there is, nothing of ours is called by a word of theirs, and where a word is the
 * parameter of a call there is that. */
static void check_words(struct arena *a, const char *here, const char *theirs,
                        const char *(*find)(const char *word)) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_.";
  struct diags d;
  diags_init(&d, a);
  for (const char *at = here; *at;) {
    size_t n = strspn(at, letters);
    if (n && at[n] == '(' && !frontend_doc(a, arena_strndup(a, at, n), false, &d))
      fail_msg("`%s` calls %.*s, which there is not", here, (int)n, at);
    at += n ? n : 1;
  }
  for (const char *at = theirs; *at;) {
    size_t n = strcspn(at, " ");
    const char *word = arena_strndup(a, at, n);
    const char *dot = find == elsewhere_parameter ? strchr(word, '.') : NULL;
    assert_string_equal(find(word), here); /* once in the table */
    if (find != elsewhere_call) assert_null(elsewhere_call(word));
    if (find != elsewhere_parameter && frontend_doc(a, word, false, &d))
      fail_msg("`%s` is a word of ours", word);
    if (dot && !frontend_doc(a, arena_strndup(a, word, (size_t)(dot - word)), false, &d))
      fail_msg("there is nothing that `%s` is a parameter of", word);
    check_doc(a, word, here);
    if (!strchr(word, '.')) check_error(a, word, here);
    at += n + (at[n] == ' ');
  }
}

/* Types, values and parameters, of which a word may be several, and also a call. */
static void check_names(struct arena *a, const char *here, const char *theirs) {
  for (const char *at = theirs; *at;) {
    size_t n = strcspn(at, " ");
    const char *word = arena_strndup(a, at, n), *help = elsewhere_help(a, word);
    struct diags d;
    diags_init(&d, a);
    bool ours =
        frontend_doc(a, word, false, &d) != NULL; /* as `momentum`, an optimizer here and a number there */
    if (!ours) check_doc(a, word, help ? help : arena_printf(a, "`%s`", here));
    at += n + (at[n] == ' ');
  }
}

static void words_of_others(void **state) {
#define NAME(here, theirs)      check_names(*state, here, theirs);
#define CALL(here, theirs)      check_words(*state, here, theirs, elsewhere_call);
#define INSTEAD(help, theirs)   check_words(*state, help, theirs, instead);
#define PARAMETER(help, theirs) check_words(*state, help, theirs, elsewhere_parameter);
#define STATEMENT(here, theirs)
#include "frontend/elsewhere.def"
#undef NAME
#undef CALL
#undef INSTEAD
#undef PARAMETER
#undef STATEMENT
  assert_null(elsewhere_call("relu"));
  assert_string_equal(elsewhere_call("GlobalAveragePooling2D"), elsewhere_call("global_average_pooling2d"));
}

static void hostile_texts(void **state) {
  struct arena *a = *state;
  reject(a, "", "there is no model");
  reject(a, MODEL(" y = x\n for i in 0..1000000 { for j in 0..1000000 { k = 1 } }\n predict p = y"), "steps");
  reject(a, MODEL(" for i in 0..9000000000000000000 { }"), "at most 1000000 times");
  reject(a, "layer f(x) { return f(x) + f(x) }\n" MODEL(" predict p = f(x)"), "calls itself without end");
  reject(a, MODEL(" var v : f32[4611686018427387904] = 0\n predict p = x"), "too large");
  reject(a, MODEL(" predict p = pad(x, [0, 9223372036854775807], [0, 5])"), "cannot be padded");
  struct str s = str_make(a);
  for (int i = 0; i < 20000; i++) str_putc(&s, '(');
  reject(a, arena_printf(a, "model m() { y = %s", s.data), "more than 1000 deep");
  s = str_make(a);
  for (int i = 0; i < 100000; i++) str_put(&s, "1 + ");
  accept(a, arena_printf(a, MODEL(" predict p = x + (%s 1)"), s.data));
  struct diags d;
  diags_init(&d, a);
  char bytes[] = "model m() {\n y = \0 3 \xff\n}";
  assert_null(frontend_compile(a, source_make(a, "t", bytes, sizeof bytes - 1), NULL, &d));
  assert_non_null(strstr(diags_text(&d, false), "unexpected byte 0x00"));
}

static void parse(struct arena *a, const char *text, size_t len) {
  struct diags d;
  diags_init(&d, a);
  ast_parse(a, source_make(a, "t", text, len), &d);
  for (const struct diag *q = d.first; q; q = q->next)
    if (q->loc.source && (q->loc.begin > q->loc.end || q->loc.end > len))
      fail_msg("%s: not in `%.*s`", q->message, (int)len, text);
}

static const char *folder; /* of sources, most of which have errors */

/* A source may end anywhere: what is said of its last line is within it. Sanitizers see what lies outside. */
static void sources_end_anywhere(void **state) {
  static const char head[] = "model m() {\n";
  enum { MOST = 300 };
  char text[sizeof head + MOST];
  int lines = 0;
  DIR *d = opendir(folder);
  assert_non_null(d);
  memcpy(text, head, sizeof head);
  for (struct dirent *e; (e = readdir(d));) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    FILE *f = strncmp(e->d_name, "error_", 6) == 0 ? fopen(path, "r") : NULL;
    while (f && fgets(text + sizeof head - 1, MOST, f)) {
      size_t all = strcspn(text + sizeof head - 1, "\n"), first = strspn(text + sizeof head - 1, " \t");
      if (text[sizeof head - 1 + first] == '#') continue;
      lines++;
      for (size_t n = first; n <= all; n++) {
        struct arena *a = *state;
        parse(a, text, sizeof head - 1 + n);
        parse(a, text + sizeof head - 1, n);
        arena_reset(a);
      }
    }
    if (f) fclose(f);
  }
  closedir(d);
  assert_true(lines > 500);
}

/* test_frontend [folder]: of sources. */
int main(int argc, char **argv) {
  const struct CMUnitTest ends[] = {cmocka_unit_test_setup_teardown(sources_end_anywhere, setup, teardown)};
  folder = argc > 1 ? argv[1] : NULL;
  if (folder) return cmocka_run_group_tests(ends, NULL, NULL);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(printing_is_stable, setup, teardown),
      cmocka_unit_test_setup_teardown(graphs_of_a_model, setup, teardown),
      cmocka_unit_test_setup_teardown(loops_and_conditions, setup, teardown),
      cmocka_unit_test_setup_teardown(parameters_are_set, setup, teardown),
      cmocka_unit_test_setup_teardown(parameters_have_types, setup, teardown),
      cmocka_unit_test_setup_teardown(metrics_add_up, setup, teardown),
      cmocka_unit_test_setup_teardown(state_and_optimizers, setup, teardown),
      cmocka_unit_test_setup_teardown(library_by_definition, setup, teardown),
      cmocka_unit_test_setup_teardown(words_of_others, setup, teardown),
      cmocka_unit_test_setup_teardown(hostile_texts, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
