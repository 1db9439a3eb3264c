/* SPDX-License-Identifier: Apache-2.0 */
/* Ten steps of every optimizer and schedule of the library against numpy in f64: optimizers.def, which optimizers.py
 * writes. In f32 within 5e-6 of each element: a rate that is computed in f32 from beta2 ^ step is off by 1e-4 in the
 * first steps. On the CPU by each backend, or on the devices of the arguments. */
#include "include/dgc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 10, SIZE = 4 };

static const struct row {
  const char *optimizer;
  int64_t done;
  double want[SIZE];
} rows[] = {
#define ROW(optimizer, done, ...) {optimizer, done, {__VA_ARGS__}},
#include "optimizers.def"
#undef ROW
};

static const char *devices = "cpu:0";
static bool no_gpu;

static void run(struct dgc_session *s, bool wide) {
  for (int t = 0; t < STEPS; t++) {
    double g[SIZE];
    float narrow[SIZE];
    for (int i = 0; i < SIZE; i++) narrow[i] = (float)(g[i] = ((7 * t + 3 * i) % 11 - 3) / 8.0);
    const void *inputs[] = {wide ? (void *)g : (void *)narrow};
    if (dgc_run(s, "train", 1, inputs, NULL)) fail_msg("%s", dgc_message(s));
  }
}

static void read_x(struct dgc_session *s, bool wide, double *x) {
  float narrow[SIZE];
  if (wide) {
    assert_int_equal(dgc_read(s, "x", x, SIZE * sizeof *x), DGC_OK);
    return;
  }
  assert_int_equal(dgc_read(s, "x", narrow, sizeof narrow), DGC_OK);
  for (int i = 0; i < SIZE; i++) x[i] = narrow[i];
}

static int check_row(const struct row *row, const char *backend, bool wide) {
  char text[512];
  double x[SIZE], most = wide ? 1e-12 : 5e-6;
  int wrong = 0;
  const char *dtype = wide ? "f64" : "f32";
  snprintf(text, sizeof text,
           "model m() {\n input g : %s[B, 4]\n var x : %s[4] = 0\n train sum(g * x) with %s\n"
           "}\n",
           dtype, dtype, row->optimizer);
  struct dgc_session *s = dgc_create();
  assert_int_equal(dgc_set(s, "devices", devices), DGC_OK);
  if (backend) assert_int_equal(dgc_set(s, "backend", backend), DGC_OK);
  if (dgc_load_text(s, "m", text, strlen(text))) fail_msg("%s", dgc_message(s));
  if (row->done) assert_int_equal(dgc_write(s, "step", &row->done, sizeof row->done), DGC_OK);
  run(s, wide);
  read_x(s, wide, x);
  for (int i = 0; i < SIZE; i++) {
    double off = fabs(x[i] / row->want[i] - 1);
    if (off <= most) continue;
    print_error("%s, %s, %s: x[%d] is %.17g, not %.17g: off by %.1e\n", row->optimizer, dtype,
                backend ? backend : devices, i, x[i], row->want[i], off);
    wrong++;
  }
  dgc_destroy(s);
  return wrong;
}

static bool gpus_found(void) {
  struct dgc_session *s = dgc_create();
  const struct dgc_gpu *gpus;
  int count = 0;
  const char *why_none = NULL;
  assert_int_equal(dgc_gpus(s, &gpus, &count, &why_none), DGC_OK);
  no_gpu = count == 0;
  if (no_gpu) printf("SKIP: %s\n", why_none);
  dgc_destroy(s);
  return !no_gpu;
}

static void numbers_of_numpy(void **state) {
  static const char *const backends[] = {"interp", "cpu"};
  const char *backend = *state;
  int wrong = 0;
  if (devices[0] == 'g' && !gpus_found()) skip();
  if (backend && strcmp(backend, backends[1]) == 0 && !strstr(dgc_build(), " cpu")) skip();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int wide = 0; wide < 2; wide++) wrong += check_row(&rows[i], backend, wide);
  assert_int_equal(wrong, 0);
}

int main(int argc, char **argv) {
  const struct CMUnitTest one[] = {cmocka_unit_test(numbers_of_numpy)};
  const struct CMUnitTest both[] = {
      {.name = "interp", .test_func = numbers_of_numpy, .initial_state = (void *)(uintptr_t) "interp"},
      {.name = "cpu", .test_func = numbers_of_numpy, .initial_state = (void *)(uintptr_t) "cpu"}};
  if (argc > 1) devices = argv[1];
  int failures =
      argc > 1 ? cmocka_run_group_tests(one, NULL, NULL) : cmocka_run_group_tests(both, NULL, NULL);
  return no_gpu ? 77 : failures;
}
