/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: floating point by cuBLAS, integers by a kernel of kernels/cuda.
 *
 * The bits of a product must depend on its sizes alone, not on where its operands lie: cuBLAS may choose
 * another way for addresses that vectors do not like, so operands that do not begin at a multiple of 16 go
 * through memory that does. Each device has a handle with a work space of its own: products then give equal
 * bits in every run, and can be recorded. */
#include "runtime/cuda/leaf.h"

#include <limits.h>

enum { ALIGNMENT = 16 };

struct blas_call {
  struct cuda_engine *engine;
  int device;
  struct product size;
  int64_t bytes[3]; /* of a, b and c, as cuBLAS reads and writes them */
  bool unaligned[3];
  const struct leaf_call
      *widen[2]; /* what makes f32 of the bfloat16 that lie in memory; NULL: nothing has to */
};

static bool blas_check(struct cuda_engine *e, int device, const char *call, cublasStatus_t s) {
  if (s == CUBLAS_STATUS_SUCCESS) return true;
  const char *name = cuda.cublasGetStatusString(s);
  cuda_fail(e, device, call, name ? name : "unknown error", NULL);
  return false;
}
#define BLAS(e, device, name, ...) \
  (cuda_failed(e) ? false : blas_check((e), (device), #name, cuda.name(__VA_ARGS__)))

/* --- handles --- */

static bool open_handle(struct cuda_engine *e, int device, struct diags *d) {
  struct cuda_device *dev = &e->devices[device];
  size_t bytes = (dev->card->arch >= 90 ? 32u : 4u) << 20;
  if (dev->blas && dev->workspace) return true;
  const char *why_not = cuda_load_blas();
  if (why_not) {
    diag_error(d, LOC_NONE, "%s", why_not);
    return false;
  }
  void *workspace = cuda_alloc(e, device, bytes);
  if (workspace) {
    dev->workspace = cuda_address(workspace);
    int mode = e->tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH;
    if (cuda_use(e, device) && BLAS(e, device, cublasCreate_v2, &dev->blas) &&
        BLAS(e, device, cublasSetStream_v2, dev->blas, dev->stream) &&
        BLAS(e, device, cublasSetWorkspace_v2, dev->blas, workspace, bytes) &&
        BLAS(e, device, cublasSetMathMode, dev->blas, mode))
      return true;
  }
  cuda_no_work_space(e, device, bytes, d);
  return false;
}

void cuda_close_blas(struct cuda_engine *e, int device) {
  struct cuda_device *dev = &e->devices[device];
  if (dev->blas) cuda.cublasDestroy_v2(dev->blas);
  if (dev->workspace) cuda.cuMemFree(dev->workspace);
}

/* --- floating point --- */

/* Whether cuBLAS reads bfloat16. */
static bool reads_bf16(const struct blas_call *p) { return p->size.stored && !p->widen[0]; }

/* Of f32 those that are promised to be of bfloat16 values take bfloat16 units, which add up in f32; they have
 * nothing to gain from TF32. */
static int compute_type(const struct blas_call *p) {
  const struct product *s = &p->size;
  const struct cuda_engine *e = p->engine;
  if (s->dtype == DT_F64) return CUBLAS_COMPUTE_64F;
  if (reads_bf16(p)) return CUBLAS_COMPUTE_32F;
  if (s->bf16) return CUBLAS_COMPUTE_32F_FAST_16BF;
  return e->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

/* cuBLAS counts by columns: it is asked for the transposed product, whose columns are our rows. */
static bool multiply(const struct blas_call *p, const void *a, const void *b, void *c) {
  static const float one = 1, zero = 0;
  static const double one_double = 1, zero_double = 0;
  const struct product *s = &p->size;
  struct cuda_engine *e = p->engine;
  bool f64 = s->dtype == DT_F64;
  int type = f64 ? CUDA_R_64F : CUDA_R_32F, from = reads_bf16(p) ? CUDA_R_16BF : type, m = (int)s->m,
      n = (int)s->n, k = (int)s->k;
  int of_a = s->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, of_b = s->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  int row_a = s->transpose_a ? m : k, row_b = s->transpose_b ? k : n, compute = compute_type(p);
  const void *alpha = f64 ? (const void *)&one_double : &one;
  const void *beta = f64 ? (const void *)&zero_double : &zero;
  cublasHandle_t handle = e->devices[p->device].blas;
  if (s->batch == 1) /* most are: cuBLAS has more ways for these, and less to do before */
    return BLAS(e, p->device, cublasGemmEx, handle, of_b, of_a, n, m, k, alpha, b, from, row_b, a, from,
                row_a, beta, c, type, n, compute, CUBLAS_GEMM_DEFAULT);
  return BLAS(e, p->device, cublasGemmStridedBatchedEx, handle, of_b, of_a, n, m, k, alpha, b, from, row_b,
              s->k * s->n, a, from, row_a, s->m * s->k, beta, c, type, n, s->m * s->n, (int)s->batch, compute,
              CUBLAS_GEMM_DEFAULT);
}

static void run_float(void *const *args, const void *state) {
  const struct blas_call *p = state;
  struct cuda_engine *e = p->engine;
  const struct cuda_device *dev = &e->devices[p->device];
  void *at[3] = {args[0], args[1], args[2]};
  bool good = cuda_use(e, p->device);
  for (int i = 0; i < 3; i++) {
    bool widens = i < 2 && p->widen[i];
    if (!p->unaligned[i] && !widens) continue;
    at[i] = (void *)(uintptr_t)dev->scratch[SCRATCH_A + i].data;
    if (widens)
      cuda_run_leaf((void *[]){args[i], at[i]}, p->widen[i]);
    else if (i < 2)
      good = good && CUDA(e, p->device, cuMemcpyAsync, cuda_address(at[i]), cuda_address(args[i]),
                          (size_t)p->bytes[i], dev->stream);
  }
  good = good && multiply(p, at[0], at[1], at[2]);
  if (good && p->unaligned[2])
    CUDA(e, p->device, cuMemcpyAsync, cuda_address(args[2]), cuda_address(at[2]), (size_t)p->bytes[2],
         dev->stream);
}

/* A sum of nothing. */
static void run_zero(void *const *args, const void *state) {
  const struct blas_call *p = state;
  struct cuda_engine *e = p->engine;
  if (cuda_use(e, p->device))
    CUDA(e, p->device, cuMemsetD8Async, cuda_address(args[2]), 0, (size_t)p->bytes[2],
         e->devices[p->device].stream);
}

static bool prepare_widen(struct cuda_engine *e, struct arena *a, struct blas_call *p, struct diags *d) {
  for (int i = 0; i < 2; i++) {
    int64_t count = p->bytes[i] / 2;
    struct leaf_launch how = {.name = "widen",
                              .types = "#define TYPE float\n#define SUM float\n",
                              .nargs = 2,
                              .threads = count,
                              .numbers = {count}};
    p->widen[i] = cuda_leaf_call(e, a, &how, p->device, d);
    if (!p->widen[i]) return false;
    p->bytes[i] = count * 4;
  }
  return true;
}

static bool prepare_float(struct cuda_engine *e, struct arena *a, const struct step *step,
                          struct blas_call *p, struct diags *d) {
  if (p->size.stored && !cuda_has_tensor_cores(e) && !prepare_widen(e, a, p, d)) return false;
  for (int i = 0; i < 3; i++) {
    p->unaligned[i] = step->operands[i].offset % ALIGNMENT != 0;
    if ((p->unaligned[i] || (i < 2 && p->widen[i])) &&
        !cuda_scratch(e, p->device, (enum cuda_scratch_use)(SCRATCH_A + i), (size_t)p->bytes[i], d))
      return false;
  }
  return open_handle(e, p->device, d);
}

/* --- steps --- */

bool cuda_leaf_matmul(struct cuda_engine *e, struct arena *a, const struct step *step, int device,
                      struct command *c, struct diags *d) {
  struct product product = product_of(step->node), *s = &product;
  struct blas_call *p = arena_new(a, struct blas_call);
  int64_t size = dtype_size(s->dtype), from = s->stored ? dtype_size(DT_BF16) : size;
  *p = (struct blas_call){.engine = e, .device = device, .size = *s};
  p->bytes[0] = s->batch * s->m * s->k * from;
  p->bytes[1] = s->batch * s->k * s->n * from;
  p->bytes[2] = s->batch * s->m * s->n * size;
  c->kind = COMMAND_CALL;
  c->state = p;
  c->call = p->bytes[2] == 0 ? cuda_run_nothing : run_zero;
  if (p->bytes[2] == 0 || s->k == 0) return true;
  if (s->dtype != DT_F32 && s->dtype != DT_F64) return cuda_integer_product(e, a, s, device, c, d);
  c->call = run_float;
  if (s->m <= INT_MAX && s->n <= INT_MAX && s->k <= INT_MAX && s->batch <= INT_MAX)
    return prepare_float(e, a, step, p, d);
  diag_error(d, LOC_NONE, "a matrix product is too large for cuBLAS: %lld times %lld by %lld by %lld",
             (long long)s->batch, (long long)s->m, (long long)s->n, (long long)s->k);
  return false;
}
