/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA driver, NVRTC, cuBLAS and NCCL, loaded on first need: one binary runs with and without them.
 *
 * They are looked for in the folder $DGC_CUDA_PATH and nowhere else if it is set, or else where the system
 * looks and in /usr/local/cuda/lib64. Of several versions the newest is taken that the driver, if it has been
 * loaded, can work with. Each of them loads without the others, so that kernels can be compiled where
 * there is no GPU. */
#ifndef DGC_RUNTIME_CUDA_LIBRARY_H
#define DGC_RUNTIME_CUDA_LIBRARY_H

#include "runtime/cuda/abi.h"

#include <stdbool.h>

/* Entry points under their own names, as in cuda.cuMemAlloc(...). NULL before their library is loaded. */
extern struct cuda_library {
#define DRIVER(result, name, version, arguments) result(*name) arguments;
#define NVRTC(result, name, arguments)           result(*name) arguments;
#define BLAS(result, name, arguments)            result(*name) arguments;
#define NCCL(result, name, arguments)            result(*name) arguments;
#include "runtime/cuda/syms.def"
  int driver_version; /* of the newest CUDA that the driver knows: 12040 is 12.4 */
  int nvrtc_version;  /* likewise */
  bool simulated;     /* the driver is a stand-in that runs on the host; whoever prints a device says so */
} cuda;

/* Load a library once for the process, never to be unloaded; the driver is also initialised and has at least
 * one device. NULL, or else why not, in one line, then and ever after. May be called by several threads. */
const char *cuda_load_driver(void);
const char *cuda_load_nvrtc(void);
const char *cuda_load_blas(void);
const char *cuda_load_nccl(void);

#endif
