/* SPDX-License-Identifier: Apache-2.0 */
/* Time that passes, for measuring and for limits: it only grows, and has nothing to do with the time of day. */
#ifndef DGC_BASE_CLOCK_H
#define DGC_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since some moment. */
static inline uint64_t clock_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The same in seconds. */
static inline double clock_seconds(void) { return 1e-9 * (double)clock_ns(); }

/* Who waits looks at the clock again and again. More than a second between two looks, in nanoseconds, is a time in
 * which it was stopped, by itself or with the machine, and knows nothing of others: limits move by it. Else 0. */
static inline uint64_t clock_stopped(uint64_t before, uint64_t now) {
  return now > before && now - before > 1000000000u ? now - before : 0;
}

#endif
