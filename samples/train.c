/* SPDX-License-Identifier: Apache-2.0 */
/* Trains a line through points, in C: cc train.c $(pkg-config --cflags --libs dgc) && ./a.out
 * expect: y = 2.00 x + 1.00, error 0.00 */
#include <dgc.h>

#include <stdio.h>
#include <string.h>

static const char program[] = "model line() {\n"
                              "  input x : f32[B]\n"
                              "  input y : f32[B]\n"
                              "  var a : f32[] = zeros()\n"
                              "  var b : f32[] = zeros()\n"
                              "  train mean(square(a * x + b - y)) with sgd(rate = 0.1)\n"
                              "  metric error = mean(abs(a * x + b - y))\n"
                              "  predict guess = a * x + b\n"
                              "}\n";

enum { ROWS = 32, STEPS = 2000 };

static int fail(struct dgc_session *s) {
  fputs(dgc_message(s), stderr);
  dgc_destroy(s);
  return 1;
}

/* Inputs are handed over in the order in which dgc_input lists them. */
static void bind(struct dgc_session *s, const char *entry, const float *x, const float *y,
                 const void **inputs) {
  struct dgc_tensor t;
  for (int i = 0; dgc_input(s, entry, i, &t); i++) inputs[i] = strcmp(t.name, "x") == 0 ? x : y;
}

int main(void) {
  float x[ROWS], y[ROWS], a, b;
  for (int i = 0; i < ROWS; i++) {
    x[i] = (float)i / ROWS;
    y[i] = 2 * x[i] + 1;
  }
  struct dgc_session *s = dgc_create();
  if (!s) return 1;
  if (dgc_set(s, "devices", "cpu:0-1") || dgc_load_text(s, "line", program, strlen(program))) return fail(s);
  const void *inputs[2];
  bind(s, "train", x, y, inputs);
  for (int i = 0; i < STEPS; i++)
    if (dgc_run(s, "train", ROWS, inputs, NULL)) return fail(s);
  float loss, error;
  void *outputs[] = {&loss, &error}; /* as dgc_output lists them */
  bind(s, "eval", x, y, inputs);
  if (dgc_run(s, "eval", ROWS, inputs, outputs)) return fail(s);
  if (dgc_read(s, "a", &a, sizeof a) || dgc_read(s, "b", &b, sizeof b)) return fail(s);
  printf("y = %.2f x + %.2f, error %.2f\n", (double)a, (double)b, (double)error);
  dgc_destroy(s);
  return 0;
}
