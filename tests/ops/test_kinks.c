/* SPDX-License-Identifier: Apache-2.0 */
/* Functions at their kinks and poles: values and gradients against kinks.def, written in the language, in f64 and f32,
 * by each backend or on the GPU of the arguments. And that none is missing there: an op whose domain has an edge, a
 * function of the prelude that is not smooth. */
#include "base/embed.h"
#include "frontend/frontend.h"
#include "ir/ops/op_id.h"
#include "passes/pass.h"
#include "tests/ops/kinks.h"
#include "tests/support/elements.h"
#include "tests/support/fixture.h"

#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

extern const struct embedded frontend_library[];

/* Functions of the prelude that have no kink: each is looked through. `x` and `z` are f64[3,4], `i` is i32[B]. */
static const struct smooth {
  const char *name, *text;
} smooths[] = {
    {"gelu", "gelu(x)"},
    {"silu", "silu(x)"},
    {"expand", "expand(x)"},
    {"squeeze", "squeeze(x[:, 0:1], 1)"},
    {"flatten", "flatten(x)"},
    {"one_hot", "one_hot(i, 3, f64) @ x"},
    {"lookup", "lookup(x, i)"},
    {"squared_error", "squared_error(x, z)"},
    {"sum_over_batch_size", "sum_over_batch_size(x, z)"},
    {"correct", "select(expand(correct(z, iota(i32[3]))), x, 0)"},
    {"in_top_k", "select(expand(in_top_k(z, iota(i32[3]), 2)), x, 0)"},
    {"dropout", "dropout(x, 0.25)"},
};
enum { NSMOOTHS = sizeof smooths / sizeof *smooths };

static const char *gpu; /* "gpu:0": on this one alone; NULL: by each backend of the CPU */

/* ---- numbers ---- */

/* Shapes: x as in the row, y by its count. */
static const char *x_shape(struct arena *a, const struct kink *k) {
  return k->columns ? arena_printf(a, "%d, %d", k->x.count / k->columns, k->columns)
                    : arena_printf(a, "%d", k->x.count);
}
static const char *y_shape(struct arena *a, const struct kink *k) {
  if (k->y.count == k->x.count) return x_shape(a, k);
  return k->y.count == 1 ? "" : arena_printf(a, "%d", k->y.count);
}

/* What is written of an operand: its gradient goes into <name>.probe.g. The second sum sees to it that it has one; it
 * adds 0, by a flag that the compiler cannot know. */
static void operand(struct str *s, const char *name, int i, const char *type, bool loss) {
  if (loss)
    str_printf(s, " + sum(select(off%s%d > 0, %s%d, 0))", name, i, name, i);
  else
    str_printf(s, "  var %s%d : %s = 0\n  state off%s%d : %s = 0\n", name, i, type, name, i, type);
}

/* All rows as one model; what flows back into y is read from a variable, so that nothing folds. */
static const char *model_of(struct arena *a, const char *dtype) {
  struct str s = str_make(a);
  str_printf(&s, "optimizer probe() {\n  var g : type(variable) = zeros()\n  g <- gradient\n  variable <- "
                 "variable\n}\n");
  for (int i = 0; i < NKINKS; i++)
    str_printf(&s, "function kink_%d(x%s) { return %s }\n", i, kinks[i].z.count ? ", z" : "", kinks[i].text);
  str_printf(&s, "model kinks() {\n");
  for (int i = 0; i < NKINKS; i++) {
    const struct kink *k = &kinks[i];
    const char *type = arena_printf(a, "%s[%s]", dtype, x_shape(a, k));
    const char *call = arena_printf(a, k->z.count ? "kink_%d(x%d, z%d)" : "kink_%d(x%d)", i, i, i);
    operand(&s, "x", i, type, false);
    if (k->z.count) operand(&s, "z", i, type, false);
    for (int w = 0; w < 2; w++)
      str_printf(&s, "  state %c%d : %s[%s] = 0\n", "yw"[w], i, dtype, y_shape(a, k));
    str_printf(&s, "  y%d <- %s\n  loss%d = sum(%s * w%d)", i, call, i, call, i);
    operand(&s, "x", i, type, true);
    if (k->z.count) operand(&s, "z", i, type, true);
    str_printf(&s, "\n  train loss%d with probe() over [x%d%s]\n", i, i,
               k->z.count ? arena_printf(a, ", z%d", i) : "");
  }
  str_printf(&s, "}\n");
  return s.data;
}

static void put(struct arena *a, struct values *v, const struct node *n) {
  struct tensor t = {n->type, arena_alloc(a, (size_t)type_bytes(&n->type))};
  int64_t count = type_count(&t.type);
  int i = atoi(n->name + 1);
  const struct list *from = NULL;
  if (isdigit((unsigned char)n->name[1]) && !strchr(n->name, '.'))
    from = n->name[0] == 'x' ? &kinks[i].x : n->name[0] == 'z' ? &kinks[i].z : NULL;
  bool one = n->name[0] == 'w';
  for (int64_t e = 0; e < count; e++) tensor_set(&t, e, from ? from->at[e] : one);
  values_put(v, n->name, &t.type, t.data);
}

/* A product or two of roundings, or an exponential's: f32 has 24 bits. Infinities, NaN and zeros are exact. */
static bool near(double have, double want, enum dtype d) {
  if (isnan(want)) return isnan(have);
  if (isinf(want) || want == 0) return have == want;
  return fabs(have - want) <= fabs(want) * (d == DT_F32 ? 4e-6 : 1e-13);
}

static int compare(const char *what, const struct kink *k, const struct values *v, const char *name,
                   const struct list *want, const char *by) {
  const struct tensor *t = values_get(v, name);
  if (!t) fail_msg("%s is missing", name);
  assert_int_equal(type_count(&t->type), want->count);
  int wrong = 0;
  for (int e = 0; e < want->count; e++) {
    if (near(tensor_at(t, e), want->at[e], t->type.dtype)) continue;
    print_error("%s, %s of %s: at x = %g%s the %s is %.9g, not %.9g\n", by, dtype_name(t->type.dtype),
                k->text, e < k->x.count ? k->x.at[e] : 0,
                k->z.count ? arena_printf(v->arena, ", z = %g", e < k->z.count ? k->z.at[e] : 0) : "", what,
                tensor_at(t, e), want->at[e]);
    wrong++;
  }
  return wrong;
}

static int compare_all(const struct values *v, const char *by) {
  int wrong = 0;
  for (int i = 0; i < NKINKS; i++) {
    const struct kink *k = &kinks[i];
    struct arena *a = v->arena;
    wrong += compare("value", k, v, arena_printf(a, "y%d", i), &k->y, by);
    wrong += compare("gradient by x", k, v, arena_printf(a, "x%d.probe.g", i), &k->dx, by);
    if (k->z.count) wrong += compare("gradient by z", k, v, arena_printf(a, "z%d.probe.g", i), &k->dz, by);
  }
  return wrong;
}

static const struct model *compile(struct arena *a, const char *text, struct diags *d) {
  const struct model *m = frontend_compile(a, source_make(a, "kinks.dsl", text, strlen(text)), NULL, d);
  if (!m || !m->train) fail_msg("%s", diags_text(d, false));
  return m;
}

static int numbers(enum dtype dtype) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct graph *g = compile(a, model_of(a, dtype_name(dtype)), &d)->train;
  layout_set(g, &(struct layout){1, "one_device", gpu ? gpu : "cpu:0", NULL}, 1, &d);
  struct plan *p = engine_plan(a, g, &d);
  if (!p) fail_msg("%s", diags_text(&d, false));
  struct values inputs = values_make(a);
  int wrong = 0;
  for (int e = 0; e < nengines; e++) {
    struct values variables = values_make(a);
    for (uint32_t i = 0; i < g->count; i++)
      if (g->nodes[i]->op == OP_variable) put(a, &variables, g->nodes[i]);
    if (!engine_run(&engines[e], p, &inputs, &variables, NULL, 1, &d)) fail_msg("%s", diags_text(&d, false));
    wrong += compare_all(&variables, engines[e].backend->name);
  }
  arena_destroy(a);
  return wrong;
}

static void numbers_of_others(void **state) {
  (void)state;
  assert_int_equal(numbers(DT_F64) + numbers(DT_F32), 0);
}

/* ---- completeness ---- */

static bool has_row(const char *name) {
  for (int i = 0; i < NKINKS; i++)
    if (strcmp(kinks[i].name, name) == 0) return true;
  return false;
}

/* An op that is not smooth everywhere says so by its domain, or has no gradient though its result is a number. */
static void every_op_has_its_row(void **state) {
  (void)state;
  int missing = 0;
  for (int i = 0; i < OP_COUNT; i++) {
    const struct op_info *op = op_table[i];
    if (op->kind != KIND_ELEMENTWISE && op->kind != KIND_REDUCE) continue;
    bool step = (op->traits & OP_NO_GRADIENT) && (op->dtypes == DTYPE_FLOAT || op->dtypes == DTYPE_NUMBER);
    bool edge = op->grad && op->domain != DOMAIN_ANY;
    if ((!step && !edge) || has_row(op->name)) continue;
    print_error("%s has a kink or a pole and no row in kinks.py\n", op->name);
    missing++;
  }
  assert_int_equal(missing, 0);
}

/* An op whose domain is everything has no kink: its slopes from the left and from the right are the same. */
static void ops_without_rows_are_smooth(void **state) {
  (void)state;
  const double h = 0x1p-20;
  int count = 0;
  for (int i = 0; i < OP_COUNT; i++) {
    const struct op_info *op = op_table[i];
    if (op->kind != KIND_ELEMENTWISE || op->max_inputs != 1 || !op->grad || i == OP_cast || has_row(op->name))
      continue;
    struct arena *a = arena_create();
    struct sprog p = sprog_make(a);
    struct node n = {.op = (enum op_id)i, .type = {.dtype = DT_F64}};
    sval x = s_arg(&p, 0, DT_F64), y = op->scalar(&p, &n, &x);
    uint64_t *values = arena_new_array(a, (size_t)p.count, uint64_t);
    for (int at = -8; at <= 8; at++) {
      double f[3];
      for (int k = 0; k < 3; k++) {
        uint64_t bits = number_bits(DT_F64, at / 2.0 + (k - 1) * h);
        sprog_eval(&p, &bits, NULL, NULL, values);
        f[k] = bits_number(DT_F64, values[y]);
      }
      double left = (f[1] - f[0]) / h, right = (f[2] - f[1]) / h;
      if (fabs(left - right) > 1e-4 * (1 + fabs(left))) fail_msg("%s has a kink at %g", op->name, at / 2.0);
    }
    count++;
    arena_destroy(a);
  }
  assert_true(count > 10);
}

/* docs/language.md says what each does there. */
static void the_manual_has_all(void **state) {
  struct world *w = *state;
  const struct source *source = source_read(w->arena, LANGUAGE, 1 << 20, &w->diags);
  if (!source) fail_msg("%s", diags_text(&w->diags, false));
  const char *begin = strstr(source->text, "\n**Kinks and poles.**"),
             *end = begin ? strstr(begin, "\n## ") : NULL;
  assert_true(begin && end);
  const char *table = arena_printf(w->arena, "%.*s", (int)(end - begin), begin);
  for (int i = 0; i < NKINKS; i++)
    if (!strstr(table, arena_printf(w->arena, "`%s`", kinks[i].name)) &&
        !strstr(table, arena_printf(w->arena, "`%s(", kinks[i].name)))
      fail_msg("%s is not in the table of docs/language.md", kinks[i].name);
}

/* Does x come to `n` through something that is not smooth? What an op is linear in has no kink: a dividend. */
static bool is_kinked(const struct node *n, const char *x, bool *reaches) {
  bool kinked = false;
  *reaches = n->op == OP_variable && strcmp(n->name, x) == 0;
  if (op_of(n)->traits & OP_NO_GRADIENT) return false;
  for (int i = 0; i < n->ninputs; i++) {
    bool through;
    kinked |= is_kinked(n->inputs[i], x, &through);
    *reaches |= through;
    kinked |= through && has_row(op_of(n)->name) && !(op_of(n)->linear >> i & 1);
  }
  return kinked;
}

/* Does x decide anything: stand in a comparison that a select reads? */
static bool decides(const struct node *n, const char *x, bool inside) {
  if (inside && n->op == OP_variable && strcmp(n->name, x) == 0) return true;
  for (int i = 0; i < n->ninputs; i++)
    if (decides(n->inputs[i], x, inside || (n->op == OP_select && i == 0))) return true;
  return false;
}

static bool is_smooth(const char *expression) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  const char *text =
      arena_printf(a,
                   "model m() {\n  input i : i32[B]\n  var x : f64[3, 4] = 0\n  state z : f64[3, 4] = 0\n"
                   "  train sum(%s) with sgd()\n}\n",
                   expression);
  const struct graph *g = compile(a, text, &d)->train;
  bool smooth = true, reaches = false;
  for (int i = 0; i < g->noutputs; i++) {
    if (g->outputs[i].role != OUTPUT_LOSS) continue;
    smooth &= !is_kinked(g->outputs[i].node, "x", &reaches) && !decides(g->outputs[i].node, "x", false);
  }
  if (!reaches) fail_msg("%s does not depend on x", expression);
  arena_destroy(a);
  return smooth;
}

static void every_function_has_its_row(void **state) {
  (void)state;
  int wrong = 0, functions = 0;
  const struct embedded *e = frontend_library;
  while (strcmp(e->name, "prelude.dsl") != 0) e++;
  for (const char *at = e->text; (at = strstr(at, "\nfunction ")); functions++) {
    char name[64];
    int is = -1;
    at += strlen("\nfunction ");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "("), at);
    for (int i = 0; i < NSMOOTHS; i++)
      if (strcmp(smooths[i].name, name) == 0) is = i;
    if (is < 0 && !has_row(name))
      print_error("%s has no row in kinks.py, nor is it here as smooth\n", name), wrong++;
    if (is >= 0 && !is_smooth(smooths[is].text)) print_error("%s is not smooth\n", smooths[is].text), wrong++;
  }
  assert_true(functions > 30);
  assert_false(is_smooth("abs(x)") || is_smooth("select(x > 0, x, 0)") || is_smooth("1 / x"));
  assert_int_equal(wrong, 0);
}

static void on_gpu(void **state) {
  bool simulated;
  (void)state;
  if (!gpus_found(&simulated)) skip();
  assert_true(engine_open_on(&engines[0], "cuda", gpu, 1));
  nengines = 1;
  numbers_of_others(NULL);
  engine_close(&engines[0]);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_op_has_its_row), cmocka_unit_test(every_function_has_its_row),
      cmocka_unit_test(ops_without_rows_are_smooth),
      cmocka_unit_test_setup_teardown(the_manual_has_all, open_world, close_world),
      cmocka_unit_test(numbers_of_others)};
  const struct CMUnitTest one[] = {cmocka_unit_test(on_gpu)};
  if (argc > 1) gpu = argv[1];
  return gpu ? gpu_status(cmocka_run_group_tests(one, NULL, NULL))
             : cmocka_run_group_tests(tests, open_engines, close_engines);
}
