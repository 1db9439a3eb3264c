/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for the simulation, each in its own process, and short names for what they all do. */
#ifndef SIMULATED_HARNESS_H
#define SIMULATED_HARNESS_H

#include "runtime/cuda/abi.h"

#include <stdbool.h>
#include <stddef.h>

/* The simulated libraries' entry points. */
extern struct entry_points {
#define DRIVER(result, name, version, arguments) result(*name) arguments;
#define NVRTC(result, name, arguments)           result(*name) arguments;
#define BLAS(result, name, arguments)            result(*name) arguments;
#define NCCL(result, name, arguments)            result(*name) arguments;
#include "runtime/cuda/syms.def"
} cu;

enum { DIES = -1 }; /* killed by a signal, or by the sanitizer that catches it */

struct test_case {
  const char *name;
  void (*run)(void);
  const char *settings; /* "SEED=3 DEVICES=2": values of DGC_SIMULATED_*, or NULL */
  int status;           /* the exit status that the case ends with, or DIES */
  const char *says;     /* part of stderr, or NULL */
};

int run_cases(int argc, char **argv, const struct test_case *cases, size_t count);

void check_at(const char *file, int line, bool ok, const char *what);
void ok_at(const char *file, int line, int result, int expected, const char *what);
#define check(condition)        check_at(__FILE__, __LINE__, condition, #condition)
#define ok(call)                ok_at(__FILE__, __LINE__, call, 0, #call)
#define fails_with(error, call) ok_at(__FILE__, __LINE__, call, error, #call)

struct gpu { /* a device, current in this thread, and a stream */
  int device;
  CUcontext context;
  CUstream stream;
};
struct gpu gpu_open(int device);
void gpu_close(struct gpu *g);

CUmodule gpu_module(const char *text);
/* NVRTC's result; the module too if it is not NULL and the text compiles. `log`: 4096 bytes, or NULL. */
int gpu_compile(const char *text, const char *arch, const char *option, CUmodule *module, char *log);
CUfunction gpu_function(CUmodule module, const char *name);
CUdeviceptr gpu_alloc(size_t bytes);
void *gpu_host(size_t bytes); /* pinned */

#endif
