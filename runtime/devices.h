/* SPDX-License-Identifier: Apache-2.0 */
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
/* The same of products of bfloat16 added up in f32; 0 where the processor has no instructions for them. */
double machine_bf16_peak(int threads);
/* Bytes a second that so many cores read and write together, of arrays that no cache holds: two are read, and one is
 * written (the triad of McCalpin's STREAM, 1995; what a write reads first is not counted). 0: there is no memory for
 * them. Takes about 0.1 s. */
double machine_bandwidth(int threads);

#endif
