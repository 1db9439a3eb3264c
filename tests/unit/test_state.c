/* SPDX-License-Identifier: Apache-2.0 */
/* State that towers have of their own, through a session: what is read, saved, written and taken to other towers. */
#include "include/dgc.h"
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

static const char program[] = "model counted {\n"
                              "  input x : f64[B]\n"
                              "  var c : f64[] = 1\n"
                              "  state steps : i64[] = 0 aggregation(sum)\n"
                              "  state hits : f64[] = 0 aggregation(sum) synchronization(on_read)\n"
                              "  state level : f64[] = 0 aggregation(mean) synchronization(on_read)\n"
                              "  steps += 1\n"
                              "  hits += sum(x)\n"
                              "  level <- mean(x) + cast(tower_id(), f64)\n"
                              "  train loss = sum(x * c) with sgd(rate = 0)\n"
                              "  metric seen = hits\n"
                              "}\n";

static const double x[] = {1, 2, 3, 6};

static struct dgc_session *open_with(const char *devices, const char *towers, const char *strategy) {
  struct dgc_session *s = dgc_create();
  assert_non_null(s);
  assert_int_equal(dgc_set(s, "devices", devices), DGC_OK);
  assert_int_equal(dgc_set(s, "towers", towers), DGC_OK);
  assert_int_equal(dgc_set(s, "strategy", strategy), DGC_OK);
  if (dgc_load_text(s, "counted", program, strlen(program))) fail_msg("%s", dgc_message(s));
  return s;
}

static void step(struct dgc_session *s) {
  const void *inputs[] = {x};
  if (dgc_run(s, "train", 4, inputs, NULL)) fail_msg("%s", dgc_message(s));
}

static double number(struct dgc_session *s, const char *variable) {
  double value;
  if (dgc_read(s, variable, &value, sizeof value)) fail_msg("%s", dgc_message(s));
  return value;
}

static int64_t count(struct dgc_session *s) {
  int64_t value;
  if (dgc_read(s, "steps", &value, sizeof value)) fail_msg("%s", dgc_message(s));
  return value;
}

static void expect(struct dgc_session *s, int64_t steps, double hits, double level) {
  assert_int_equal(count(s), steps);
  assert_true(number(s, "hits") == hits);
  assert_true(number(s, "level") == level);
}

/* One name each, whatever the copies. */
static void copies_have_no_names(void **state) {
  (void)state;
  struct dgc_session *s = open_with("cpu:0-1", "2", "mirrored");
  struct dgc_tensor t;
  int n = 0;
  for (; dgc_variable(s, n, &t); n++) assert_null(strchr(t.name, '/'));
  assert_int_equal(n, 5); /* with step */
  dgc_destroy(s);
}

static void reading_and_writing(void **state) {
  (void)state;
  struct dgc_session *s = open_with("cpu:0-1", "2", "mirrored");
  step(s);
  expect(s, 2, 12, 3.5); /* 1.5 and 4.5 + 1 */
  double value = 5;
  assert_int_equal(dgc_write(s, "hits", &value, sizeof value), DGC_OK);
  assert_int_equal(dgc_write(s, "level", &value, sizeof value), DGC_OK);
  expect(s, 2, 5, 5);
  step(s);
  expect(s, 4, 17, 3.5);
  dgc_destroy(s);
}

/* Saved as one number, and given to as many towers as there are. */
static void checkpoints(void **state) {
  (void)state;
  static const struct {
    const char *devices, *towers, *strategy;
    int64_t steps; /* of one step of these */
  } others[] = {{"cpu:0", "1", "one_device", 1},
                {"cpu:0-1", "2", "central_storage", 2},
                {"cpu:0-2", "3", "mirrored", 3},
                {"cpu:0-3", "8", "round_robin", 4}}; /* four towers have no row */
  char path[] = "file-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  struct dgc_session *s = open_with("cpu:0-1", "2", "mirrored");
  step(s);
  assert_int_equal(dgc_save(s, path), DGC_OK);
  dgc_destroy(s);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    s = open_with(others[i].devices, others[i].towers, others[i].strategy);
    if (dgc_restore(s, path)) fail_msg("%s", dgc_message(s));
    expect(s, 2, 12, 3.5);
    step(s);
    assert_int_equal(count(s), 2 + others[i].steps);
    assert_true(number(s, "hits") == 24);
    dgc_destroy(s);
  }
  unlink(path);
}

/* Towers that come and go in one session take along what the others had. */
static void other_towers(void **state) {
  (void)state;
  struct dgc_session *s = open_with("cpu:0-3", "4", "mirrored");
  step(s);
  expect(s, 4, 12, 4.5); /* 1, 2 + 1, 3 + 2, 6 + 3 */
  assert_int_equal(dgc_set(s, "towers", "1"), DGC_OK);
  expect(s, 4, 12, 4.5);
  step(s);
  expect(s, 5, 24, 3);
  assert_int_equal(dgc_set(s, "towers", "3"), DGC_OK);
  expect(s, 5, 24, 3);
  step(s);
  assert_true(number(s, "hits") == 36);
  dgc_destroy(s);
}

static int begin(void **state) {
  (void)state;
  return scratch_enter() ? 0 : -1;
}

int main(void) {
  static const struct CMUnitTest tests[] = {cmocka_unit_test(copies_have_no_names),
                                            cmocka_unit_test(reading_and_writing),
                                            cmocka_unit_test(checkpoints), cmocka_unit_test(other_towers)};
  return cmocka_run_group_tests_name("state", tests, begin, NULL);
}
