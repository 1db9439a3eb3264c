/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of kinks.def: functions at their kinks and poles, with what their gradients are there. */
#ifndef TESTS_OPS_KINKS_H
#define TESTS_OPS_KINKS_H

#include <math.h>
#include <stddef.h>

struct list {
  const double *at;
  int count;
};
#define LIST(...) \
  { (const double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double) }
#define NONE \
  { NULL, 0 }

static const struct kink {
  const char *name, *text, *whose;
  int columns;
  struct list x, z, y, dx, dz;
} kinks[] = {
#define KINK(...) {__VA_ARGS__},
#include "tests/ops/kinks.def"
};
enum { NKINKS = sizeof kinks / sizeof *kinks };

#endif
