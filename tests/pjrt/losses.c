/* SPDX-License-Identifier: Apache-2.0 */
/* Trains a model on two lists of devices, step by step, and compares the losses of each step, and at the end what
 * evaluation says: losses STEPS MODEL DEVICES OTHERS [OPTION VALUE]... */
#include "include/dgc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* f32: what sums in another order may change, over so many steps. */
#define CLOSE 1e-5
/* A row of a thousand may fall on the other side. */
#define CLOSE_METRIC 2e-3

static void check(struct dgc_session *s, enum dgc_status status, const char *what) {
  if (status == DGC_OK) return;
  fprintf(stderr, "%s: %s\n", what, dgc_message(s));
  exit(3);
}

static struct dgc_session *open_session(const char *model, const char *devices, char **options) {
  struct dgc_session *s = dgc_create();
  bool plugin = strncmp(devices, "cpu", 3) != 0;
  check(s, dgc_set(s, "devices", devices), "devices");
  if (plugin && strpbrk(devices, "-,")) check(s, dgc_set(s, "strategy", "tpu"), "strategy");
  for (; options[0]; options += 2) check(s, dgc_set(s, options[0], options[1]), options[0]);
  check(s, dgc_load(s, model), model);
  return s;
}

static bool note(void *loss, const struct dgc_progress *p) {
  *(double *)loss = p->loss;
  return true;
}

/* The loss of one more step: the only one of the call, so that it is reported. */
static double step(struct dgc_session *s, int number) {
  char steps[16];
  double loss = NAN;
  snprintf(steps, sizeof steps, "%d", number);
  dgc_on_progress(s, note, &loss);
  check(s, dgc_set(s, "steps", steps), "steps");
  check(s, dgc_train(s), "train");
  return loss;
}

static double compare_metrics(struct dgc_session *one, struct dgc_session *other) {
  const struct dgc_metric *a, *b;
  int count, others;
  int64_t rows;
  double largest = 0;
  if (!dgc_can_evaluate(one)) return 0;
  check(one, dgc_evaluate(one, &a, &count, &rows), "evaluate");
  check(other, dgc_evaluate(other, &b, &others, &rows), "evaluate");
  for (int i = 0; i < count; i++) {
    printf("  %s %.6g %.6g\n", a[i].name, a[i].value, b[i].value);
    double difference = fabs(a[i].value - b[i].value);
    largest = difference <= largest ? largest : difference;
  }
  return largest;
}

int main(int argc, char **argv) {
  if (argc < 5) return 2;
  struct dgc_session *one = open_session(argv[2], argv[3], argv + 5),
                     *other = open_session(argv[2], argv[4], argv + 5);
  double largest = 0, a = NAN, b = NAN;
  int steps = atoi(argv[1]), begin = 1;
  for (int i = begin; i <= steps; i++) {
    a = step(one, i);
    b = step(other, i);
    double difference = fabs(a - b) / fmax(1, fabs(a));
    if (!(difference <= largest)) largest = difference;
    if (!(difference <= CLOSE)) printf("  step %d: %.9g and %.9g\n", i, a, b);
  }
  printf("%s on %s and %s: %d steps to %.6g, losses differ by %.2g at most\n", strrchr(argv[2], '/') + 1,
         argv[3], argv[4], steps, a, largest);
  double metrics = compare_metrics(one, other);
  dgc_destroy(one);
  dgc_destroy(other);
  return largest <= CLOSE && metrics <= CLOSE_METRIC ? 0 : 1;
}
