/* What this machine has. */
#ifndef DGC_RUNTIME_DEVICES_H
#define DGC_RUNTIME_DEVICES_H

#include "base/arena.h"

#include <stdint.h>

struct machine {
  const char *cpu;     /* "AMD EPYC 9B45" */
  const char *vectors; /* "avx512f", "avx2", "neon" */
  int cores;           /* that this process may use */
  int64_t memory;      /* bytes of the host */
};

struct machine machine_look(struct arena *a);
/* Floating point operations a second in f32 that `threads` cores reach together in a loop of independent
 * multiply-adds of the widest vectors: what other figures are shares of. Takes about 0.1 s. */
double machine_peak(int threads);

#endif
