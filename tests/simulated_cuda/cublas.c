/* SPDX-License-Identifier: Apache-2.0 */
/* libcublas: one product of matrices. It runs in the stream of its handle, in plain order, so the same bits
 * come out each time. Stricter than the real one: the handle must have been given a workspace since its stream
 * was set. */
#include "tests/simulated_cuda/simulated.h"

#include "base/bits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CUBLAS_STATUS_NOT_INITIALIZED = 1, CUBLAS_STATUS_INVALID_VALUE = 7, CUBLAS_STATUS_NOT_SUPPORTED = 15 };

#define BLAS(result, name, arguments) EXPORT result name arguments;
#include "runtime/cuda/syms.def"

struct cublasContext {
  struct object object;
  CUstream stream;
  bool workspace;
  int math;
};

/* --- the product --- */

struct gemm {
  int device, transa, transb, m, n, k, lda, ldb, ldc, a_type, b_type, c_type, batch;
  long long stride_a, stride_b, stride_c;
  const char *a, *b;
  char *c;
  double alpha, beta;
  enum rounding { EXACT, TO_TF32, TO_BF16 } rounding; /* of factors of f32 */
};

static float from_bf16(uint16_t bits) { return f32_of_bits((uint32_t)bits << 16); }

static uint16_t to_bf16(float f) { /* to nearest, ties to even */
  uint32_t bits = f32_bits(f);
  if (f != f) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float to_tf32(float f) { /* 10 bits of mantissa, to nearest, ties away from 0 */
  uint32_t bits = f32_bits(f);
  if ((bits & 0x7f800000) != 0x7f800000) bits = (bits + 0x1000) & ~(uint32_t)0x1fff;
  return f32_of_bits(bits);
}

static inline double element(const void *from, int type, long long i, enum rounding rounding) {
  if (type == CUDA_R_64F) return ((const double *)from)[i];
  if (type == CUDA_R_16BF) return (double)from_bf16(((const uint16_t *)from)[i]);
  float f = ((const float *)from)[i];
  return (double)(rounding == TO_TF32 ? to_tf32(f) : rounding == TO_BF16 ? from_bf16(to_bf16(f)) : f);
}

static inline void store(void *to, int type, long long i, double value) {
  if (type == CUDA_R_64F)
    ((double *)to)[i] = value;
  else if (type == CUDA_R_16BF)
    ((uint16_t *)to)[i] = to_bf16((float)value);
  else
    ((float *)to)[i] = (float)value;
}

typedef float floats __attribute__((vector_size(32)));
typedef double doubles __attribute__((vector_size(32)));

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx2")))
#else
#define WIDE
#endif
#define COLUMNS 6

#define REAL       float
#define VECTOR     floats
#define LINES      16
#define NAME(name) name##_f32
#define TARGET
#include "tests/simulated_cuda/gemm.h"
#undef NAME
#undef TARGET
#define NAME(name) name##_f32_wide
#define TARGET     WIDE
#include "tests/simulated_cuda/gemm.h"
#undef NAME
#undef REAL
#undef VECTOR
#undef LINES
#undef TARGET
#define REAL       double
#define VECTOR     doubles
#define LINES      8
#define NAME(name) name##_f64
#define TARGET
#include "tests/simulated_cuda/gemm.h"

static size_t size_of(int type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_16BF ? 2 : 4; }

/* A matrix of `lines` columns, in each of which `length` elements are used. */
static bool range_ok(const struct gemm *g, const void *data, int type, int length, int lines, int ld,
                     long long stride) {
  if (length == 0 || lines == 0) return true;
  size_t elements = (size_t)(lines - 1) * (size_t)ld + (size_t)length;
  return sim_blas_touch(g->device, data,
                        ((size_t)(g->batch - 1) * (size_t)stride + elements) * size_of(type));
}

static bool wide_vectors(void) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2");
#else
  return true;
#endif
}

/* Where operands are packed: kept, for a product is seldom the last. Work of devices runs under one lock. */
static void *room_of(size_t bytes) {
  static void *room;
  static size_t size;
  if (bytes <= size) return room;
  free(room);
  room = malloc(bytes);
  size = room ? bytes : 0;
  return room;
}

static CUresult run(void *argument) {
  const struct gemm *g = argument;
  bool ta = g->transa == CUBLAS_OP_T, tb = g->transb == CUBLAS_OP_T;
  if (!range_ok(g, g->a, g->a_type, ta ? g->k : g->m, ta ? g->m : g->k, g->lda, g->stride_a) ||
      !range_ok(g, g->b, g->b_type, tb ? g->n : g->k, tb ? g->k : g->n, g->ldb, g->stride_b) ||
      !range_ok(g, g->c, g->c_type, g->m, g->n, g->ldc, g->stride_c))
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  size_t m = ((size_t)g->m + 15) / 16 * 16, n = ((size_t)g->n + 5) / 6 * 6;
  void *room =
      room_of((m + n) * (size_t)g->k * size_of(g->c_type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F) + 1);
  if (!room) return CUDA_ERROR_OUT_OF_MEMORY;
  for (int i = 0; i < g->batch; i++) {
    const char *a = g->a + i * g->stride_a * (long long)size_of(g->a_type);
    const char *b = g->b + i * g->stride_b * (long long)size_of(g->b_type);
    char *c = g->c + i * g->stride_c * (long long)size_of(g->c_type);
    if (g->c_type == CUDA_R_64F)
      gemm_f64(g, a, b, c, room);
    else if (wide_vectors())
      gemm_f32_wide(g, a, b, c, room);
    else
      gemm_f32(g, a, b, c, room);
  }
  return CUDA_SUCCESS;
}

/* --- entry points --- */

static cublasStatus_t status_of(CUresult r) {
  switch (r) {
  case CUDA_SUCCESS: return CUBLAS_STATUS_SUCCESS;
  case CUDA_ERROR_OUT_OF_MEMORY: return CUBLAS_STATUS_ALLOC_FAILED;
  case CUDA_ERROR_INVALID_CONTEXT:
  case CUDA_ERROR_NOT_INITIALIZED: return CUBLAS_STATUS_NOT_INITIALIZED;
  case CUDA_ERROR_INVALID_VALUE:
  case CUDA_ERROR_INVALID_HANDLE: return CUBLAS_STATUS_INVALID_VALUE;
  case CUDA_ERROR_NOT_SUPPORTED: return CUBLAS_STATUS_NOT_SUPPORTED;
  default: return CUBLAS_STATUS_EXECUTION_FAILED;
  }
}

static CUresult refuse(const char *why) {
  sim_blas_complain(why);
  return CUDA_ERROR_INVALID_VALUE;
}

static cublasStatus_t leave(CUresult r) { return status_of(sim_blas_leave(r)); }

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
  CUresult r = sim_blas_enter(__func__, UNSAFE);
  if (r) return r == CUDA_ERROR_UNKNOWN ? CUBLAS_STATUS_ALLOC_FAILED : status_of(r);
  struct cublasContext *h = calloc(1, sizeof *h);
  sim_blas_begin(&h->object);
  *handle = h;
  return leave(CUDA_SUCCESS);
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t h) {
  CUresult r = sim_blas_enter(__func__, UNSAFE | DESTROYS);
  if (r) return status_of(r);
  if (!sim_blas_is(&h->object)) return leave(refuse("a handle is used after its end"));
  sim_blas_end(&h->object);
  return leave(CUDA_SUCCESS);
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t h, int *version) {
  CUresult r = sim_blas_enter(__func__, 0);
  if (r) return status_of(r);
  if (!sim_blas_is(&h->object)) return leave(CUDA_ERROR_NOT_INITIALIZED);
  *version = 120400;
  return leave(CUDA_SUCCESS);
}

const char *cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
  case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
  case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
  case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
  case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
  case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
  default: return "CUBLAS_STATUS unknown";
  }
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t h, CUstream stream) {
  CUresult r = sim_blas_enter(__func__, 0);
  if (r) return status_of(r);
  if (!sim_blas_is(&h->object)) return leave(CUDA_ERROR_NOT_INITIALIZED);
  if (sim_blas_stream_device(stream) != h->object.device)
    return leave(refuse("the stream is not of the handle's device"));
  h->stream = stream;
  h->workspace = false;
  return leave(CUDA_SUCCESS);
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t h, void *workspace, size_t bytes) {
  CUresult r = sim_blas_enter(__func__, 0);
  if (r) return status_of(r);
  if (!sim_blas_is(&h->object)) return leave(CUDA_ERROR_NOT_INITIALIZED);
  if ((uintptr_t)workspace % 256) return leave(refuse("the workspace is not aligned to 256 bytes"));
  if (bytes == 0 || !sim_blas_range(h->object.device, workspace, bytes))
    return leave(refuse("the workspace is no memory of the device"));
  h->workspace = true;
  return leave(CUDA_SUCCESS);
}

cublasStatus_t cublasSetMathMode(cublasHandle_t h, int mode) {
  CUresult r = sim_blas_enter(__func__, 0);
  if (r) return status_of(r);
  if (!sim_blas_is(&h->object)) return leave(CUDA_ERROR_NOT_INITIALIZED);
  if (mode != CUBLAS_DEFAULT_MATH && mode != CUBLAS_PEDANTIC_MATH && mode != CUBLAS_TF32_TENSOR_OP_MATH)
    return leave(CUDA_ERROR_INVALID_VALUE);
  h->math = mode;
  return leave(CUDA_SUCCESS);
}

static bool types_ok(const struct gemm *g, int compute) {
  if (compute == CUBLAS_COMPUTE_64F)
    return g->a_type == CUDA_R_64F && g->b_type == CUDA_R_64F && g->c_type == CUDA_R_64F;
  if (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32 &&
      compute != CUBLAS_COMPUTE_32F_FAST_16BF)
    return false;
  if (g->a_type != g->b_type) return false;
  if (g->a_type == CUDA_R_32F) return g->c_type == CUDA_R_32F;
  return compute == CUBLAS_COMPUTE_32F && g->a_type == CUDA_R_16BF &&
         (g->c_type == CUDA_R_16BF || g->c_type == CUDA_R_32F);
}

static CUresult check(cublasHandle_t h, const struct gemm *g, int compute) {
  if (!sim_blas_is(&h->object)) return CUDA_ERROR_NOT_INITIALIZED;
  if (!h->stream) return refuse("the handle has no stream");
  if (sim_blas_stream_device(h->stream) < 0)
    return refuse("the handle's stream is destroyed, or its device has failed");
  if (!h->workspace) return refuse("no workspace was set since the stream was set");
  if (sim_blas_device() != h->object.device) return refuse("the handle is not of the current context");
  if (!types_ok(g, compute)) return CUDA_ERROR_NOT_SUPPORTED;
  bool ta = g->transa == CUBLAS_OP_T, tb = g->transb == CUBLAS_OP_T;
  if ((!ta && g->transa != CUBLAS_OP_N) || (!tb && g->transb != CUBLAS_OP_N))
    return refuse("neither OP_N nor OP_T");
  if (g->m < 0 || g->n < 0 || g->k < 0 || g->batch < 0) return refuse("a size is negative");
  if (g->lda < (ta ? g->k : g->m) || g->ldb < (tb ? g->n : g->k) || g->ldc < g->m || g->lda < 1 ||
      g->ldb < 1 || g->ldc < 1)
    return refuse("a leading dimension is too small");
  if (g->stride_a < 0 || g->stride_b < 0 ||
      (g->batch > 1 && g->stride_c < (long long)g->ldc * (g->n - 1) + g->m))
    return refuse("a stride is negative, or the results overlap");
  size_t size = size_of(g->a_type);
  if ((uintptr_t)g->a % size || (uintptr_t)g->b % size || (uintptr_t)g->c % size_of(g->c_type))
    return refuse("a matrix is not aligned");
  return CUDA_SUCCESS;
}

static cublasStatus_t multiply(const char *name, cublasHandle_t h, int transa, int transb, int m, int n,
                               int k, const void *alpha, const void *a, int a_type, int lda,
                               long long stride_a, const void *b, int b_type, int ldb, long long stride_b,
                               const void *beta, void *c, int c_type, int ldc, long long stride_c, int batch,
                               int compute_type, int algorithm) {
  CUresult r = sim_blas_enter(name, 0);
  if (r) return status_of(r);
  bool wide = compute_type == CUBLAS_COMPUTE_64F;
  struct gemm g = {.transa = transa,
                   .transb = transb,
                   .m = m,
                   .n = n,
                   .k = k,
                   .lda = lda,
                   .ldb = ldb,
                   .ldc = ldc,
                   .a_type = a_type,
                   .b_type = b_type,
                   .c_type = c_type,
                   .batch = batch,
                   .stride_a = stride_a,
                   .stride_b = stride_b,
                   .stride_c = stride_c,
                   .a = a,
                   .b = b,
                   .c = c,
                   .alpha = wide ? *(const double *)alpha : (double)*(const float *)alpha,
                   .beta = wide ? *(const double *)beta : (double)*(const float *)beta};
  r = check(h, &g, compute_type);
  if (!r && algorithm != CUBLAS_GEMM_DEFAULT) r = refuse("an algorithm that is not simulated");
  if (r || m == 0 || n == 0 || batch == 0) return leave(r);
  g.device = h->object.device;
  g.rounding = a_type != CUDA_R_32F                           ? EXACT
               : compute_type == CUBLAS_COMPUTE_32F_FAST_16BF ? TO_BF16
               : compute_type == CUBLAS_COMPUTE_32F_FAST_TF32 || h->math == CUBLAS_TF32_TENSOR_OP_MATH
                   ? TO_TF32
                   : EXACT;
  struct gemm *copy = malloc(sizeof *copy);
  *copy = g;
  return leave(sim_blas_call(h->stream, run, copy));
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t h, int transa, int transb, int m, int n, int k,
                                          const void *alpha, const void *a, int a_type, int lda,
                                          long long stride_a, const void *b, int b_type, int ldb,
                                          long long stride_b, const void *beta, void *c, int c_type, int ldc,
                                          long long stride_c, int batch, int compute_type, int algorithm) {
  return multiply(__func__, h, transa, transb, m, n, k, alpha, a, a_type, lda, stride_a, b, b_type, ldb,
                  stride_b, beta, c, c_type, ldc, stride_c, batch, compute_type, algorithm);
}

cublasStatus_t cublasGemmEx(cublasHandle_t h, int transa, int transb, int m, int n, int k, const void *alpha,
                            const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                            const void *beta, void *c, int c_type, int ldc, int compute_type, int algorithm) {
  return multiply(__func__, h, transa, transb, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta, c,
                  c_type, ldc, 0, 1, compute_type, algorithm);
}
