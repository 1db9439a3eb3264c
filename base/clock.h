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

#endif
