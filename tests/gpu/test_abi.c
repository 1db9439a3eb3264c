/* SPDX-License-Identifier: Apache-2.0 */
/* Our own table of the CUDA interface against the real headers, where they are installed: every constant, type
 * and signature. The comparison is made by the compiler; what runs only says that it was made. */
#include <stdio.h>

#ifdef REAL_CUDA_HEADERS
#include <cudaTypedefs.h>

#include <cublas_v2.h>
#include <nvrtc.h>
#ifdef REAL_NCCL_HEADER
#include <nccl.h>
#endif

/* The types under their real names: syms.def is read with these in place of those of abi.h. */
#define SAME(a, b) __builtin_types_compatible_p(a, b)
#define DRIVER(result, name, version, arguments) \
  typedef result our_##name arguments;           \
  _Static_assert(SAME(our_##name *, PFN_##name##_v##version), #name);
#define NVRTC(result, name, arguments) \
  typedef result our_##name arguments; \
  _Static_assert(SAME(our_##name, __typeof__(name)), #name);
#define BLAS(result, name, arguments) NVRTC(result, name, arguments)
#ifdef REAL_NCCL_HEADER
#define NCCL(result, name, arguments) NVRTC(result, name, arguments)
#endif
#include "runtime/cuda/syms.def"

#define CONSTANT(name, value) _Static_assert((int)(name) == (value), #name);
#ifndef REAL_NCCL_HEADER
#define NCCL_CONSTANT(name, value)
#endif
#include "runtime/cuda/constants.def"
#undef CONSTANT

/* What abi.h says of these types: integers of four bytes, pointers, addresses of eight. */
#define INTEGER(type)     _Static_assert(sizeof(type) == sizeof(int), #type)
#define HANDLE(type, tag) _Static_assert(SAME(type, struct tag *), #type)
INTEGER(CUdevice);
INTEGER(CUresult);
INTEGER(CUdevice_attribute);
INTEGER(CUstreamCaptureMode);
INTEGER(nvrtcResult);
INTEGER(cublasStatus_t);
INTEGER(cublasOperation_t);
INTEGER(cublasMath_t);
INTEGER(cublasComputeType_t);
INTEGER(cublasGemmAlgo_t);
INTEGER(cudaDataType);
HANDLE(CUcontext, CUctx_st);
HANDLE(CUmodule, CUmod_st);
HANDLE(CUfunction, CUfunc_st);
HANDLE(CUstream, CUstream_st);
HANDLE(CUevent, CUevent_st);
HANDLE(CUgraph, CUgraph_st);
HANDLE(CUgraphExec, CUgraphExec_st);
HANDLE(nvrtcProgram, _nvrtcProgram);
HANDLE(cublasHandle_t, cublasContext);
#ifdef REAL_NCCL_HEADER
INTEGER(ncclResult_t);
INTEGER(ncclDataType_t);
INTEGER(ncclRedOp_t);
HANDLE(ncclComm_t, ncclComm);
_Static_assert(sizeof(ncclUniqueId) == 128 && _Alignof(ncclUniqueId) == 1, "ncclUniqueId");
#endif
_Static_assert(SAME(CUdeviceptr, unsigned long long), "CUdeviceptr");

int main(void) {
  enum {
#define DRIVER(result, name, version, arguments) DRIVER_##name,
#define NVRTC(result, name, arguments)           NVRTC_##name,
#define BLAS(result, name, arguments)            BLAS_##name,
#define CONSTANT(name, value)                    CONSTANT_##name,
#ifdef REAL_NCCL_HEADER
#define NCCL(result, name, arguments) NCCL_##name,
#else
#define NCCL_CONSTANT(name, value)
#endif
#include "runtime/cuda/constants.def"
#include "runtime/cuda/syms.def"
    CHECKED
  };
#ifdef REAL_NCCL_HEADER
  printf("compared with the header of NCCL %d.%d\n", NCCL_MAJOR, NCCL_MINOR);
#endif
  printf("compared with the headers of CUDA %d.%d\n%d passed, 0 failed\n", CUDA_VERSION / 1000,
         CUDA_VERSION % 1000 / 10, (int)CHECKED);
  return 0;
}
#else
int main(void) {
  puts("SKIP: the headers of CUDA are not installed");
  return 77;
}
#endif
