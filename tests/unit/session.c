/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/session.h"

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

const char small_model[] = "use nn\n"
                           "model small(hidden = 5) {\n"
                           "  input x : f32[B, 3]\n"
                           "  input y : f32[B, 1]\n"
                           "  h = nn.dense(x, units = hidden, activation = tanh)\n"
                           "  p = nn.dense(h, units = 1)\n"
                           "  train mean(square(p - y)) with adam(rate = 0.01)\n"
                           "  metric error = mean(abs(p - y))\n"
                           "  predict guess = p\n"
                           "}\n";

float x[ROWS * 3], y[ROWS];

int fill(void **state) {
  (void)state;
  static bool there;
  if (!there && !scratch_enter()) return -1;
  there = true;
  for (int i = 0; i < ROWS * 3; i++) x[i] = (float)(i % 5) / 5;
  for (int i = 0; i < ROWS; i++) y[i] = x[3 * i] - x[3 * i + 1];
  return 0;
}

struct dgc_session *open_with(const char *devices, const char *towers) {
  struct dgc_session *s = dgc_create();
  assert_non_null(s);
  assert_int_equal(dgc_set(s, "devices", devices), DGC_OK);
  assert_int_equal(dgc_set(s, "towers", towers), DGC_OK);
  enum dgc_status status = dgc_load_text(s, "small", small_model, strlen(small_model));
  assert_string_equal(dgc_message(s), "");
  assert_int_equal(status, DGC_OK);
  return s;
}

enum dgc_status run(struct dgc_session *s, const char *entry, int rows, void *const *outputs) {
  const void *inputs[2];
  struct dgc_tensor t;
  for (int i = 0; dgc_input(s, entry, i, &t); i++) inputs[i] = strcmp(t.name, "x") == 0 ? x : y;
  return dgc_run(s, entry, rows, inputs, outputs);
}

float loss_after(struct dgc_session *s, int steps) {
  float loss = -1;
  void *outputs[] = {&loss};
  for (int i = 0; i < steps; i++) assert_int_equal(run(s, "train", ROWS, outputs), DGC_OK);
  return loss;
}

void write_npy(const char *path, const float *data, int columns) {
  char header[128];
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  int len = snprintf(header, sizeof header,
                     "\x93NUMPY%c%c%c%c{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d)}", 1, 0,
                     118, 0, ROWS, columns);
  memset(header + len, ' ', sizeof header - (size_t)len);
  header[sizeof header - 1] = '\n';
  assert_int_equal(fwrite(header, 1, sizeof header, f), sizeof header);
  assert_int_equal(fwrite(data, sizeof *data, (size_t)(ROWS * columns), f), ROWS * columns);
  assert_int_equal(fclose(f), 0);
}
