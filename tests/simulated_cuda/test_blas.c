/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS of the simulation: products against loops, their rounding, and what is refused. */
#include "base/bits.h"
#include "tests/simulated_cuda/harness.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_ELEMENTS = 40 * 40 * 3, ROOM = MAX_ELEMENTS * sizeof(double) };

struct product {
  int ta, tb, m, n, k, lda, ldb, ldc, batch, in, out, compute;
  double alpha, beta;
};

struct blas_fixture {
  struct gpu gpu;
  cublasHandle_t handle;
  CUdeviceptr data[3], workspace;
  void *host[3];
};

static struct blas_fixture open_blas(void) {
  struct blas_fixture f = {.gpu = gpu_open(0)};
  for (int i = 0; i < 3; i++) {
    f.data[i] = gpu_alloc(ROOM);
    f.host[i] = gpu_host(ROOM);
  }
  f.workspace = gpu_alloc(4096);
  ok(cu.cublasCreate_v2(&f.handle));
  ok(cu.cublasSetStream_v2(f.handle, f.gpu.stream));
  ok(cu.cublasSetWorkspace_v2(f.handle, (void *)(uintptr_t)f.workspace, 4096));
  return f;
}

static void close_blas(struct blas_fixture *f) {
  for (int i = 0; i < 3; i++) {
    ok(cu.cuMemFree(f->data[i]));
    ok(cu.cuMemFreeHost(f->host[i]));
  }
  ok(cu.cublasDestroy_v2(f->handle));
  ok(cu.cuMemFree(f->workspace));
  gpu_close(&f->gpu);
}

static double get(const void *data, int type, int i) {
  if (type == CUDA_R_64F) return ((const double *)data)[i];
  if (type == CUDA_R_32F) return (double)((const float *)data)[i];
  return (double)f32_of_bits((uint32_t)((const uint16_t *)data)[i] << 16);
}

static void put(void *data, int type, int i, double value) { /* values that fit */
  if (type == CUDA_R_64F)
    ((double *)data)[i] = value;
  else if (type == CUDA_R_32F)
    ((float *)data)[i] = (float)value;
  else
    ((uint16_t *)data)[i] = (uint16_t)(f32_bits((float)value) >> 16);
}

static int multiply(struct blas_fixture *f, const struct product *p) {
  float alpha = (float)p->alpha, beta = (float)p->beta;
  bool wide = p->compute == CUBLAS_COMPUTE_64F;
  return cu.cublasGemmStridedBatchedEx(f->handle, p->ta, p->tb, p->m, p->n, p->k,
                                       wide ? (void *)&p->alpha : &alpha, (void *)(uintptr_t)f->data[0],
                                       p->in, p->lda, 1600, (void *)(uintptr_t)f->data[1], p->in, p->ldb,
                                       1600, wide ? (void *)&p->beta : &beta, (void *)(uintptr_t)f->data[2],
                                       p->out, p->ldc, 1600, p->batch, p->compute, CUBLAS_GEMM_DEFAULT);
}

static int below(int n) { /* xorshift: the same numbers each time */
  static uint32_t x = 2463534242;
  x ^= x << 13, x ^= x >> 17, x ^= x << 5;
  return (int)(x % (uint32_t)n);
}

/* Small whole numbers, so that the order of sums does not matter. */
static void compare(struct blas_fixture *f, const struct product *p) {
  for (int i = 0; i < 3; i++) {
    for (int k = 0; k < MAX_ELEMENTS; k++) put(f->host[i], i == 2 ? p->out : p->in, k, below(5) - 2);
    ok(cu.cuMemcpyAsync(f->data[i], (CUdeviceptr)(uintptr_t)f->host[i], ROOM, f->gpu.stream));
  }
  ok(cu.cuStreamSynchronize(f->gpu.stream));
  static double expected[MAX_ELEMENTS];
  for (int i = 0; i < MAX_ELEMENTS; i++) expected[i] = get(f->host[2], p->out, i);
  for (int b = 0; b < p->batch; b++)
    for (int i = 0; i < p->m; i++)
      for (int j = 0; j < p->n; j++) {
        double sum = 0;
        for (int k = 0; k < p->k; k++)
          sum += get(f->host[0], p->in, 1600 * b + (p->ta ? k + i * p->lda : i + k * p->lda)) *
                 get(f->host[1], p->in, 1600 * b + (p->tb ? j + k * p->ldb : k + j * p->ldb));
        double *c = &expected[1600 * b + i + j * p->ldc];
        *c = p->alpha * sum + p->beta * *c;
      }
  ok(multiply(f, p));
  ok(cu.cuMemcpyAsync((CUdeviceptr)(uintptr_t)f->host[2], f->data[2], ROOM, f->gpu.stream));
  ok(cu.cuStreamSynchronize(f->gpu.stream));
  for (int i = 0; i < MAX_ELEMENTS; i++) check(get(f->host[2], p->out, i) == expected[i]);
}

static void test_products(void) {
  struct blas_fixture f = open_blas();
  static const int types[][3] = {{CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
                                 {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
                                 {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_16BF},
                                 {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F},
                                 {CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F},
                                 {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F}};
  for (int i = 0; i < 100; i++) {
    const int *t = types[i % 6];
    struct product p = {.ta = below(2),
                        .tb = below(2),
                        .m = 1 + below(40),
                        .n = 1 + below(40),
                        .k = below(32),
                        .batch = 1 + below(3),
                        .in = t[0],
                        .out = t[1],
                        .compute = t[2],
                        .alpha = 1 + below(2),
                        .beta = below(2)};
    p.lda = 40, p.ldb = 40, p.ldc = p.m + below(40 - p.m + 1);
    compare(&f, &p);
  }
  close_blas(&f);
}

/* What a product rounds its factors to: its own type of computation comes before the handle's mode. */
static void test_rounding(void) {
  struct blas_fixture f = open_blas();
  struct product p = {.m = 1,
                      .n = 1,
                      .k = 1,
                      .lda = 1,
                      .ldb = 1,
                      .ldc = 1,
                      .batch = 1,
                      .in = CUDA_R_32F,
                      .out = CUDA_R_32F,
                      .alpha = 1,
                      .beta = 0};
  static const float full = 1 + 0x1p-12f + 0x1p-9f + 0x1p-7f, tf32 = 1 + 0x1p-9f + 0x1p-7f,
                     bf16 = 1 + 0x1p-7f;
  static const struct {
    int compute, math;
    float expected;
  } rows[] = {{CUBLAS_COMPUTE_32F, CUBLAS_DEFAULT_MATH, full},
              {CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_DEFAULT_MATH, tf32},
              {CUBLAS_COMPUTE_32F, CUBLAS_TF32_TENSOR_OP_MATH, tf32},
              {CUBLAS_COMPUTE_32F_FAST_16BF, CUBLAS_DEFAULT_MATH, bf16},
              {CUBLAS_COMPUTE_32F_FAST_16BF, CUBLAS_TF32_TENSOR_OP_MATH, bf16}};
  float *a = f.host[0], *b = f.host[1], *c = f.host[2];
  a[0] = full;
  b[0] = 1;
  for (int i = 0; i < 5; i++) {
    p.compute = rows[i].compute;
    ok(cu.cublasSetMathMode(f.handle, rows[i].math));
    ok(cu.cuMemcpyAsync(f.data[0], (CUdeviceptr)(uintptr_t)a, 4, f.gpu.stream));
    ok(cu.cuMemcpyAsync(f.data[1], (CUdeviceptr)(uintptr_t)b, 4, f.gpu.stream));
    ok(multiply(&f, &p)); /* beta is 0: what c holds, poison, does not count */
    ok(cu.cuMemcpyAsync((CUdeviceptr)(uintptr_t)c, f.data[2], 4, f.gpu.stream));
    ok(cu.cuStreamSynchronize(f.gpu.stream));
    check(c[0] == rows[i].expected);
  }
  close_blas(&f);
}

static void test_refused(void) {
  enum { INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
  struct blas_fixture f = open_blas();
  const struct product good = {.m = 4,
                               .n = 4,
                               .k = 4,
                               .lda = 4,
                               .ldb = 4,
                               .ldc = 4,
                               .batch = 1,
                               .in = CUDA_R_32F,
                               .out = CUDA_R_32F,
                               .compute = CUBLAS_COMPUTE_32F,
                               .alpha = 1,
                               .beta = 0};
  ok(multiply(&f, &good));
  struct product p = good;
  p.lda = 3;
  fails_with(INVALID_VALUE, multiply(&f, &p));
  p = good;
  p.out = CUDA_R_64F;
  fails_with(NOT_SUPPORTED, multiply(&f, &p));
  p = good;
  p.batch = 2, p.n = 500;
  fails_with(INVALID_VALUE, multiply(&f, &p)); /* results overlap */
  ok(cu.cublasSetStream_v2(f.handle, f.gpu.stream));
  fails_with(INVALID_VALUE, multiply(&f, &good)); /* the workspace is gone */
  ok(cu.cublasSetWorkspace_v2(f.handle, (void *)(uintptr_t)f.workspace, 4096));
  fails_with(INVALID_VALUE, cu.cublasSetWorkspace_v2(f.handle, (void *)(uintptr_t)f.workspace, 8192));
  p = good;
  p.ldb = 100000; /* out of the allocation */
  int r = multiply(&f, &p);
  check(r == CUBLAS_STATUS_SUCCESS || r == CUBLAS_STATUS_EXECUTION_FAILED);
  fails_with(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(f.gpu.stream));
}

static void test_fail_product(void) {
  cublasHandle_t h;
  struct blas_fixture f = open_blas();
  fails_with(CUBLAS_STATUS_ALLOC_FAILED, cu.cublasCreate_v2(&h));
  const struct product p = {.m = 4,
                            .n = 4,
                            .k = 4,
                            .lda = 4,
                            .ldb = 4,
                            .ldc = 4,
                            .batch = 1,
                            .in = CUDA_R_32F,
                            .out = CUDA_R_32F,
                            .compute = CUBLAS_COMPUTE_32F,
                            .alpha = 1,
                            .beta = 0};
  fails_with(CUBLAS_STATUS_EXECUTION_FAILED, multiply(&f, &p));
  ok(multiply(&f, &p));
  ok(cu.cuStreamSynchronize(f.gpu.stream));
  close_blas(&f);
}

static void leak_handle(void) {
  struct gpu g = gpu_open(0);
  cublasHandle_t h;
  ok(cu.cublasCreate_v2(&h));
  gpu_close(&g);
}

static const struct test_case cases[] = {
    {"products", test_products, "LEAKS=1", 0, NULL},
    {"rounding", test_rounding, "LEAKS=1", 0, NULL},
    {"refused", test_refused, NULL, 0, "no workspace was set"},
    {"fail product", test_fail_product, "LEAKS=1 FAIL=cublasGemmStridedBatchedEx:1,cublasCreate_v2:2", 0,
     NULL},
    {"leak: handle", leak_handle, "LEAKS=1", 66, "not destroyed: cuBLAS handle"},
};

int main(int argc, char **argv) { return run_cases(argc, argv, cases, sizeof cases / sizeof *cases); }
