/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the CUDA driver's, NVRTC's, cuBLAS's and NCCL's binary interface that dgc calls.
 *
 * CUDA is no build requirement: these are the facts of the interface in our own words. Where the real headers
 * are installed, a test checks every value (constants.def), size and signature (syms.def) against them.
 * Enumerations are plain integers here. */
#ifndef DGC_RUNTIME_CUDA_ABI_H
#define DGC_RUNTIME_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Driver API. Handles are opaque. */
typedef int CUdevice;
typedef int CUresult;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef int CUdevice_attribute;
typedef int CUstreamCaptureMode;

/* NVRTC */
typedef struct _nvrtcProgram *nvrtcProgram;
typedef int nvrtcResult;

/* cuBLAS */
typedef struct cublasContext *cublasHandle_t;
typedef int cublasStatus_t;
typedef int cublasOperation_t;
typedef int cublasMath_t;
typedef int cublasComputeType_t;
typedef int cublasGemmAlgo_t;
typedef int cudaDataType;

/* NCCL */
typedef struct ncclComm *ncclComm_t;
typedef struct {
  char internal[128];
} ncclUniqueId;
typedef int ncclResult_t;
typedef int ncclDataType_t;
typedef int ncclRedOp_t;

enum cuda_constant {
#define CONSTANT(name, value) name = value,
#include "runtime/cuda/constants.def"
#undef CONSTANT
};

#endif
