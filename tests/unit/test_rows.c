/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that the caller has: an array and a function train as a file with the same numbers does, to the bit. */
#include "tests/unit/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { KERNEL = 3 * 5 };

static struct dgc_tensor tensor(const char *name, const char *dtype, int64_t rows, int64_t columns) {
  return (struct dgc_tensor){.name = name, .dtype = dtype, .rank = 2, .shape = {rows, columns}};
}

static void set_arrays(struct dgc_session *s, const char *option) {
  struct dgc_tensor xs = tensor("x", "f32", ROWS, 3), ys = tensor("y", "f32", ROWS, 1);
  assert_int_equal(dgc_set_rows(s, option, &xs, x), DGC_OK);
  assert_int_equal(dgc_set_rows(s, option, &ys, y), DGC_OK);
}

struct reader {
  const float *data;
  int columns;
  int64_t fails_at; /* a row */
  int inside, most; /* calls at once; plain numbers, so that the thread sanitizer sees two, too */
};

static bool read_rows(void *user, int64_t first, int64_t count, void *out) {
  struct reader *r = user;
  if (++r->inside > r->most) r->most = r->inside;
  bool good = r->fails_at < first || r->fails_at >= first + count;
  if (good) memcpy(out, r->data + first * r->columns, (size_t)(count * r->columns) * sizeof(float));
  r->inside--;
  return good;
}

static void set_functions(struct dgc_session *s, struct reader readers[2]) {
  struct dgc_tensor xs = tensor("x", "f32", ROWS, 3), ys = tensor("y", "f32", ROWS, 1);
  readers[0] = (struct reader){x, 3, -1, 0, 0}, readers[1] = (struct reader){y, 1, -1, 0, 0};
  assert_int_equal(dgc_set_source(s, "data", &xs, read_rows, &readers[0]), DGC_OK);
  assert_int_equal(dgc_set_source(s, "data", &ys, read_rows, &readers[1]), DGC_OK);
}

static void set_files(struct dgc_session *s, char *const paths[2]) {
  for (int i = 0; i < 2; i++) {
    char value[64];
    snprintf(value, sizeof value, "%s=%s", i ? "y" : "x", paths[i]);
    assert_int_equal(dgc_set(s, "data", value), DGC_OK);
  }
}

static struct dgc_session *open_small(void) {
  struct dgc_session *s = open_with("cpu:0-1", "2");
  assert_int_equal(dgc_set(s, "batch", "3"), DGC_OK);
  assert_int_equal(dgc_set(s, "epochs", "2"), DGC_OK);
  return s;
}

/* What training leaves; the session is destroyed. */
static void trained(struct dgc_session *s, float kernel[KERNEL]) {
  assert_int_equal(dgc_train(s), DGC_OK);
  assert_int_equal(dgc_read(s, "h.kernel", kernel, KERNEL * sizeof(float)), DGC_OK);
  dgc_destroy(s);
}

static void test_equals_files(void **state) {
  (void)state;
  static const char *const ranges[] = {":", "2:", "1:6"};
  for (int i = 0; i < 3; i++) {
    float want[KERNEL], array[KERNEL], function[KERNEL];
    struct reader readers[2];
    char paths[2][32] = {"x.npy", "y.npy"};
    write_npy(paths[0], x, 3);
    write_npy(paths[1], y, 1);
    struct dgc_session *s[3] = {open_small(), open_small(), open_small()};
    for (int k = 0; k < 3; k++) assert_int_equal(dgc_set(s[k], "rows", ranges[i]), DGC_OK);
    set_files(s[0], (char *[]){paths[0], paths[1]});
    set_arrays(s[1], "data");
    set_functions(s[2], readers);
    trained(s[0], want);
    trained(s[1], array);
    trained(s[2], function);
    assert_memory_equal(want, array, sizeof want);
    assert_memory_equal(want, function, sizeof want);
  }
}

/* What is given for evaluation is not trained on, and the other way round; what is taken away is not there. */
static void test_options(void **state) {
  (void)state;
  struct dgc_session *s = open_small();
  const struct dgc_metric *metrics;
  int count;
  int64_t rows;
  struct dgc_tensor xs = tensor("x", "f32", ROWS - 2, 3), ys = tensor("y", "f32", ROWS - 2, 1);
  set_arrays(s, "data");
  assert_int_equal(dgc_train(s), DGC_OK);
  assert_int_equal(dgc_evaluate(s, &metrics, &count, &rows), DGC_USAGE);
  assert_int_equal(dgc_set_rows(s, "eval-data", &xs, x), DGC_OK);
  assert_int_equal(dgc_set_rows(s, "eval-data", &ys, y), DGC_OK);
  assert_int_equal(dgc_evaluate(s, &metrics, &count, &rows), DGC_OK);
  assert_int_equal(rows, ROWS - 2);
  assert_int_equal(dgc_set_rows(s, "data", &xs, NULL), DGC_OK);
  assert_int_equal(dgc_train(s), DGC_USAGE);
  assert_non_null(strstr(dgc_message(s), "no data for input x"));
  dgc_destroy(s);
}

static void test_refused(void **state) {
  (void)state;
  struct dgc_session *s = open_small();
  struct reader readers[2];
  struct {
    struct dgc_tensor rows;
    const char *option, *says;
  } cases[] = {
      {tensor("z", "f32", ROWS, 3), "data", "no input 'z'"},
      {tensor("x", "f16", ROWS, 3), "data", "'f16' is no type of rows"},
      {tensor("x", NULL, ROWS, 3), "data", "'' is no type of rows"},
      {tensor("x", "f32", 0, 3), "data", "axis 0 cannot be 0 long"},
      {tensor("x", "f32", ROWS, INT64_MAX), "data", "axis 1 cannot be"},
      {tensor("x", "f32", ROWS, 3), "rows", "not for 'rows'"},
      {tensor("x", "f32", ROWS, 3), NULL, "not for ''"},
      {{.name = "x", .dtype = "f32"}, "data", "1 to 8 axes"},
      {{.name = "x", .dtype = "f32", .rank = 9}, "data", "1 to 8 axes"},
      {{.dtype = "f32", .rank = 1, .shape = {1}}, "data", "the name of an input"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(dgc_set_rows(s, cases[i].option, &cases[i].rows, x), DGC_USAGE);
    if (!strstr(dgc_message(s), cases[i].says)) fail_msg("case %zu: %s", i, dgc_message(s));
  }
  struct dgc_tensor wide = tensor("x", "f64", ROWS, 3), narrow = tensor("x", "f32", ROWS, 2);
  set_arrays(s, "data");
  assert_int_equal(dgc_set_rows(s, "data", &narrow, x), DGC_OK);
  assert_int_equal(dgc_train(s), DGC_INPUT);
  assert_non_null(strstr(dgc_message(s), "a row of the array of x is f32[2]"));
  set_functions(s, readers);
  assert_int_equal(dgc_set_source(s, "data", &wide, read_rows, &readers[0]), DGC_OK);
  assert_int_equal(dgc_train(s), DGC_INPUT);
  assert_non_null(strstr(dgc_message(s), "a function gives rows of the input's own type"));
  set_functions(s, readers);
  readers[1].fails_at = 4;
  assert_int_equal(dgc_train(s), DGC_INPUT);
  assert_non_null(strstr(dgc_message(s), "the function of y has failed"));
  dgc_destroy(s);
}

/* Class numbers that the model cannot use are found in an array before anything runs, and in what a function gives. */
static void test_ranges(void **state) {
  (void)state;
  static const char model[] = "model m() {\n"
                              "  input x : f32[B, 3]\n"
                              "  input c : i32[B]\n"
                              "  var w : f32[3, 3] = 0.5\n"
                              "  train mean(softmax_cross_entropy(x @ w, c)) with sgd(rate = 0.1)\n"
                              "}\n";
  static const int32_t classes[ROWS] = {0, 2, 1, 1, 3, 0, 2};
  struct dgc_session *s = dgc_create();
  struct dgc_tensor xs = tensor("x", "f32", ROWS, 3),
                    cs = {.name = "c", .dtype = "i32", .rank = 1, .shape = {ROWS}};
  struct reader reader = {(const float *)classes, 1, -1, 0, 0};
  assert_int_equal(dgc_load_text(s, "m", model, strlen(model)), DGC_OK);
  assert_int_equal(dgc_set_rows(s, "data", &xs, x), DGC_OK);
  assert_int_equal(dgc_set_rows(s, "data", &cs, classes), DGC_OK);
  assert_int_equal(dgc_train(s), DGC_INPUT);
  assert_non_null(strstr(dgc_message(s), "row 4 of the array of c is 3, and input 'c' must be from 0 to 2"));
  assert_int_equal(dgc_set_source(s, "data", &cs, read_rows, &reader), DGC_OK);
  assert_int_equal(dgc_train(s), DGC_INPUT);
  assert_non_null(
      strstr(dgc_message(s), "the function of c gives other numbers: input 'c' must be from 0 to 2"));
  dgc_destroy(s);
}

/* Evaluates, while batches are read ahead; and asks for what would take the rows from under the training. */
static bool on_progress(void *user, const struct dgc_progress *p) {
  struct dgc_session *s = user;
  const struct dgc_metric *metrics;
  struct dgc_tensor xs = tensor("x", "f32", ROWS, 3);
  int count;
  int64_t rows;
  (void)p;
  assert_int_equal(dgc_evaluate(s, &metrics, &count, &rows), DGC_OK);
  assert_int_equal(rows, 5);
  assert_int_equal(dgc_set_rows(s, "data", &xs, x), DGC_USAGE);
  assert_int_equal(dgc_set_rows(s, "data", &xs, NULL), DGC_USAGE);
  assert_int_equal(dgc_set_source(s, "eval-data", &xs, read_rows, NULL), DGC_USAGE);
  return true;
}

static void test_one_call_at_a_time(void **state) {
  (void)state;
  struct dgc_session *s = open_small();
  struct reader readers[2];
  set_functions(s, readers);
  assert_int_equal(dgc_set(s, "epochs", "40"), DGC_OK);
  assert_int_equal(dgc_set(s, "eval-rows", "1:6"), DGC_OK);
  dgc_on_progress(s, on_progress, s);
  assert_int_equal(dgc_train(s), DGC_OK);
  for (int i = 0; i < 2; i++) assert_int_equal(readers[i].most, 1);
  dgc_destroy(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_equals_files),
      cmocka_unit_test(test_options),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_ranges),
      cmocka_unit_test(test_one_call_at_a_time),
  };
  return cmocka_run_group_tests(tests, fill, NULL);
}
