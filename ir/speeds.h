/* SPDX-License-Identifier: Apache-2.0 */
/* What a task and its link can do, for predictions: numbers that are given, never measured, so that all who predict
 * from them predict the same. Their texts are read and printed here, and those of times and sizes. */
#ifndef DGC_IR_SPEEDS_H
#define DGC_IR_SPEEDS_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct speeds {
  double flops;  /* operations a second that a device computes */
  double memory; /* bytes a second that it reads and writes meanwhile */
  double link;   /* bytes a second that go over a task's link, each way */
  double delay;  /* seconds that a message takes beside those of its bytes */
};

/* A core of a server with AVX-512, and a network of ten gigabits a second. */
extern const struct speeds speeds_default;

/* "25GB/s,5us": the link and its delay. What is wrong with the text, in `a`, or NULL. */
const char *speeds_read_link(struct arena *a, const char *text, struct speeds *out);
/* "100GFLOP/s,20GB/s": operations and bytes of memory. What is wrong with the text, in `a`, or NULL. */
const char *speeds_read_speed(struct arena *a, const char *text, struct speeds *out);
/* As they are read. */
void speeds_print_link(struct str *s, const struct speeds *m);
void speeds_print_speed(struct str *s, const struct speeds *m);

/* Three digits and a unit: "1.63 MB", "840 B". */
void print_bytes(struct str *s, double bytes);
/* "4.31 ms", "12.0 us" */
void print_seconds(struct str *s, double seconds);

/* How long a message of so many bytes takes. */
static inline double speeds_message(const struct speeds *m, double bytes) {
  return m->delay + bytes / m->link;
}
/* How long a device takes for so much work. */
static inline double speeds_work(const struct speeds *m, double flops, double traffic) {
  double computing = flops / m->flops, moving = traffic / m->memory;
  return computing > moving ? computing : moving;
}

#endif
