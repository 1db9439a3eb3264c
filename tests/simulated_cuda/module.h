/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulated module tells the simulation about itself. This text stands in front of every kernel, too, so
 * it includes nothing. */
#ifndef SIMULATED_MODULE_H
#define SIMULATED_MODULE_H

struct simulated_dims {
  unsigned x, y, z;
};

struct simulated_kernel {
  const char *name;
  void (*thread)(void **parameters); /* one thread: threadIdx is already set */
  /* All threads of a block one after the other: first, first + stride, ... modulo count. */
  void (*block)(void **parameters, unsigned count, unsigned first, unsigned stride);
  const char *kinds;               /* one letter per parameter: p pointer, v value */
  const unsigned *bytes;           /* of each parameter */
  int barriers;                    /* it may call __syncthreads, so its threads must run side by side */
  unsigned max_threads;            /* of __launch_bounds__; 0: none */
  char *shared_begin, *shared_end; /* its __shared__ variables */
};

struct simulated_module {
  struct simulated_dims *thread, *block, *block_dim, *grid_dim;
  void (**barrier)(int line);
  const struct simulated_kernel *kernels; /* ends with a NULL name */
  char *shared_begin, *shared_end;        /* __shared__ variables of __device__ functions */
};

#endif
