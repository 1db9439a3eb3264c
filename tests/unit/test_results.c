/* SPDX-License-Identifier: Apache-2.0 */
/* What dgc_run gives: values that are divided, sums and counts on request, whose numbers are numpy's; what is drawn. */
#include "include/dgc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Eighths throughout, so that sums are exact in any order. */
static const float x[] = {1, -2, 3, 0.5F, 4, -1, 2}, y[] = {1, 0, 2, 1, 3, 0, 1};
enum { MOST = 32, VALUES = 10 /* those that are no sum and no count */ };

#define MODEL(type)                                                             \
  "model m() {\n"                                                               \
  "  input x : f32[B]\n"                                                        \
  "  input y : f32[B]\n"                                                        \
  "  var w : " type "[] = 0.5\n"                                                \
  "  p = cast(x, " type ") * w\n"                                               \
  "  t = cast(y, " type ")\n"                                                   \
  "  train fit = mean(square(p - t)) with sgd(rate = 0.0)\n"                    \
  "  train whole = sum(square(p - t)) with sgd(rate = 0.0)\n"                   \
  "  metric far = mean(cast(abs(p - t) > 0.5, " type "))\n"                     \
  "  metric total = sum(p)\n"                                                   \
  "  metric share = ratio(sum(p), sum(t))\n"                                    \
  "  metric nothing = ratio(sum(p), sum(0 * t))\n"                              \
  "  metric scaled = 2 * mean(square(p - t)) + 1\n"                             \
  "  metric root = sqrt(mean(square(p - t)))\n"                                 \
  "  metric least = min(p)\n"                                                   \
  "  h = sum(one_hot(cast(clip(floor(p + 1), 0, 2), i32), 3, f32), axis = 0)\n" \
  "  metric bins = sum(square(h)) / square(sum(h))\n"                           \
  "  predict p = p\n"                                                           \
  "}\n"

struct expected {
  const char *name;
  double value[2]; /* of 7 rows and of 3 */
  bool f64;        /* of a model of f32, too */
};
/* e = p - y; p = x[:n] * 0.5:  (e * e).mean(), (e * e).sum(), (abs(e) > 0.5).mean(), p.sum(), p.sum() / y[:n].sum(),
 * sqrt((e * e).mean()), p.min(); h = bincount(clip(floor(p + 1), 0, 2)): (h * h).sum() / h.sum() ** 2 */
static const struct expected eval_values[] = {
    {"fit", {0.4732142857142857, 0.5}, false},
    {"whole", {3.3125, 1.5}, false},
    {"far", {0.42857142857142855, 1.0 / 3}, false},
    {"total", {3.75, 1}, false},
    {"share", {0.46875, 1.0 / 3}, true},
    {"nothing", {0, 0}, true},
    {"scaled", {2 * 0.4732142857142857 + 1, 2}, true},
    {"root", {0.6879057244377936, 0.7071067811865476}, true},
    {"least", {-1, -1}, true},
    {"bins", {17.0 / 49, 1.0 / 3}, true},
    {"fit.sum", {3.3125, 1.5}, false},
    {"fit.count", {7, 3}, true},
    {"far.sum", {3, 1}, false},
    {"far.count", {7, 3}, true},
};
static const struct expected train_values[] = {{"fit", {0.4732142857142857, 0.5}, false},
                                               {"whole", {3.3125, 1.5}, false}};

static struct dgc_session *open_with(const char *text, const char *devices, const char *towers,
                                     const char *sums) {
  struct dgc_session *s = dgc_create();
  assert_non_null(s);
  assert_int_equal(dgc_set(s, "devices", devices), DGC_OK);
  assert_int_equal(dgc_set(s, "towers", towers), DGC_OK);
  assert_int_equal(dgc_set(s, "sums", sums), DGC_OK);
  enum dgc_status status = dgc_load_text(s, "m", text, strlen(text));
  assert_string_equal(dgc_message(s), "");
  assert_int_equal(status, DGC_OK);
  return s;
}

static void run(struct dgc_session *s, const char *entry, int rows, void *const *outputs) {
  const void *inputs[2];
  struct dgc_tensor t;
  for (int i = 0; dgc_input(s, entry, i, &t); i++) inputs[i] = strcmp(t.name, "x") == 0 ? x : y;
  if (dgc_run(s, entry, rows, inputs, outputs)) fail_msg("%s", dgc_message(s));
}

/* Every output that there is, by its name and in its order, f64 or rounded to f32. */
static void check(struct dgc_session *s, const char *entry, const struct expected *want, int count,
                  bool is_double) {
  static const int rows[] = {7, 3};
  struct dgc_tensor t;
  for (int k = 0; k < 2; k++) {
    double got[MOST];
    void *outputs[MOST] = {0};
    memset(got, 0x55, sizeof got);
    for (int i = 0; i < count; i++) outputs[i] = &got[i];
    run(s, entry, rows[k], outputs);
    for (int i = 0; i < count; i++) {
      assert_true(dgc_output(s, entry, i, &t));
      assert_string_equal(t.name, want[i].name);
      assert_int_equal(t.rank, 0);
      bool wide = is_double || want[i].f64;
      assert_string_equal(t.dtype, wide ? "f64" : "f32");
      float narrow;
      memcpy(&narrow, &got[i], sizeof narrow);
      double value = want[i].value[k];
      if (wide ? got[i] != value : narrow != (float)value)
        fail_msg("%s of %d rows: %.17g, not %.17g", t.name, rows[k], wide ? got[i] : (double)narrow, value);
    }
    /* Behind them are the totals of formulas, if they are asked for. */
    for (int i = count; dgc_output(s, entry, i, &t); i++) assert_string_equal(t.dtype, "f64");
  }
}

static void values(void **state) {
  (void)state;
  static const char *const texts[] = {MODEL("f32"), MODEL("f64")};
  static const char *const layouts[][2] = {
      {"cpu:0", "1"}, {"cpu:0-1", "2"}, {"cpu:0", "3"}, {"cpu:0-2", "4"}};
  for (int wide = 0; wide < 2; wide++)
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
      struct dgc_session *s = open_with(texts[wide], layouts[i][0], layouts[i][1], "true");
      check(s, "eval", eval_values, sizeof eval_values / sizeof *eval_values, wide);
      check(s, "train", train_values, sizeof train_values / sizeof *train_values, wide);
      assert_int_equal(dgc_set(s, "sums", "false"), DGC_OK);
      check(s, "eval", eval_values, VALUES, wide);
      dgc_destroy(s);
    }
}

/* Two batches are joined by their sums and counts: 3 rows and the other 4 make 7. */
static void batches_add_up(void **state) {
  (void)state;
  struct dgc_session *s = open_with(MODEL("f64"), "cpu:0-1", "2", "true");
  double fit = 0, count = 0, sums[2] = {0}; /* what `share` is made of */
  for (int k = 0; k < 2; k++) {
    const void *inputs[2];
    struct dgc_tensor t;
    double got[MOST];
    void *outputs[MOST] = {0}; /* what nobody asks for is not written */
    for (int i = 0; dgc_input(s, "eval", i, &t); i++) {
      const float *all = strcmp(t.name, "x") == 0 ? x : y;
      inputs[i] = k ? all + 3 : all;
    }
    for (int i = 0; dgc_output(s, "eval", i, &t); i++)
      if (strchr(t.name, '.') && t.rank == 0) outputs[i] = &got[i];
    assert_int_equal(dgc_run(s, "eval", k ? 4 : 3, inputs, outputs), DGC_OK);
    for (int i = 0; dgc_output(s, "eval", i, &t); i++) {
      if (strcmp(t.name, "fit.sum") == 0) fit += got[i];
      if (strcmp(t.name, "fit.count") == 0) count += got[i];
      if (strcmp(t.name, "total.reduce_sum") == 0) sums[0] += got[i];
      if (strcmp(t.name, "share.reduce_sum") == 0) sums[1] += got[i];
    }
  }
  assert_true(fit / count == 0.4732142857142857);
  assert_true(sums[0] / sums[1] == 0.46875);
  dgc_destroy(s);
}

#define DRAWS                                                                                  \
  "model m {\n  input x : f32[B]\n  predict drawn = random_normal(f64[B, 3])\n"                \
  "  predict turned = transpose(random_uniform(f32[2, B]), [1, 0]) + 0 * reshape(x, [B, 1])\n" \
  "  metric m = mean(random_uniform(f64[B]))\n}\n"

struct draws {
  double drawn[7][3];
  float turned[7][2];
};

static void draw(struct dgc_session *s, int64_t first, int64_t rows, struct draws *d) {
  void *const outputs[] = {d->drawn[first], d->turned[first]};
  assert_int_equal(dgc_run_from(s, "predict", first, rows, (const void *const[]){x}, outputs), DGC_OK);
}

/* The rows of a batch have the numbers that they have among all rows: the caller says where it begins. */
static void rows_have_numbers(void **state) {
  (void)state;
  struct dgc_session *s = dgc_create();
  struct draws whole, parts, again;
  struct dgc_tensor t;
  double mean, sum = 0;
  assert_int_equal(dgc_load_text(s, "m.dsl", DRAWS, sizeof DRAWS - 1), DGC_OK);
  assert_true(dgc_input(s, "predict", 0, &t));
  assert_string_equal(t.name, "x");
  assert_false(dgc_input(s, "predict", 1, &t));
  assert_false(dgc_input(s, "eval", 0, &t));
  draw(s, 0, 7, &whole);
  draw(s, 0, 1, &parts), draw(s, 1, 4, &parts), draw(s, 5, 2, &parts);
  assert_memory_equal(&parts, &whole, sizeof whole);
  void *const outputs[] = {again.drawn, again.turned};
  assert_int_equal(dgc_run(s, "predict", 1, (const void *const[]){x}, outputs), DGC_OK);
  assert_memory_equal(again.drawn[0], whole.drawn[0], sizeof whole.drawn[0]);
  for (int i = 1; i < 7; i++)
    assert_memory_not_equal(whole.drawn[i], whole.drawn[i - 1], sizeof *whole.drawn);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(dgc_run_from(s, "eval", i, 1, NULL, (void *const[]){&mean}), DGC_OK);
    sum += mean;
  }
  assert_int_equal(dgc_run(s, "eval", 4, NULL, (void *const[]){&mean}), DGC_OK);
  assert_true(sum / 4 - mean < 1e-15 && mean - sum / 4 < 1e-15);
  assert_int_equal(dgc_run_from(s, "predict", -1, 1, (const void *const[]){x}, outputs), DGC_USAGE);
  assert_non_null(strstr(dgc_message(s), "rows are numbered from 0 on, not from -1"));
  dgc_destroy(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(values), cmocka_unit_test(batches_add_up),
                                     cmocka_unit_test(rows_have_numbers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
