/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA C's words and intrinsics for a C compiler. The text in front of every simulated kernel; it includes
 * nothing, so that no name of the C library is in the kernels' way. sim_rewrite() has already seen to `extern
 * "C"`, `__global__` and `__shared__`. */
#define __device__      __attribute__((unused))
#define __host__        __attribute__((unused))
#define __constant__    __attribute__((unused))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__    __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define bool _Bool
#define true 1
#define false 0

/* Variables of kernel number k: static, because one block runs at a time; in a section of their own, to be
 * poisoned before each block. */
#define SIMULATED_SHARED(k) static __attribute__((unused, section("simulated_shared_" #k)))
#define SIMULATED_SHARED_RANGE(k)                                                         \
  extern char __start_simulated_shared_##k[] __attribute__((weak, visibility("hidden"))), \
      __stop_simulated_shared_##k[] __attribute__((weak, visibility("hidden")));

/* Not static: their addresses leave the module, so that a barrier may change them. */
__attribute__((visibility("hidden"))) struct simulated_dims simulated_thread, simulated_block,
    simulated_block_dim, simulated_grid_dim;
__attribute__((visibility("hidden"))) void (*simulated_barrier)(int);
#define threadIdx       simulated_thread
#define blockIdx        simulated_block
#define blockDim        simulated_block_dim
#define gridDim         simulated_grid_dim
#define __syncthreads() simulated_barrier(__LINE__)
#define warpSize        32

static inline __attribute__((unused)) void simulated_set_thread(unsigned t) {
  if (blockDim.y == 1 && blockDim.z == 1) {
    threadIdx.x = t;
    return;
  }
  threadIdx.x = t % blockDim.x;
  threadIdx.y = t / blockDim.x % blockDim.y;
  threadIdx.z = t / blockDim.x / blockDim.y;
}

float fmaf(float, float, float), sqrtf(float), floorf(float), ceilf(float), truncf(float), rintf(float),
    fabsf(float), fmodf(float, float), copysignf(float, float), fminf(float, float), fmaxf(float, float);
double fma(double, double, double), sqrt(double), floor(double), ceil(double), trunc(double), rint(double),
    fabs(double), fmod(double, double), copysign(double, double), fmin(double, double), fmax(double, double);

/* tcc calls these for structures and builtins: the program's own would be a sanitizer's, which looks at each, and the
 * simulation is not what it looks for faults in. What is copied does not overlap. */
#ifdef __TINYC__
static __attribute__((unused)) void *memmove(void *to, const void *from, unsigned long bytes) {
  long long *t = to;
  const long long *f = from;
  if (bytes == 16) {
    t[1] = f[1];
    t[0] = f[0];
    return to;
  }
  if (bytes == 4) {
    *(int *)to = *(const int *)from;
    return to;
  }
  for (; bytes >= 8; bytes -= 8) *t++ = *f++;
  for (unsigned long i = 0; i < bytes; i++) ((char *)t)[i] = ((const char *)f)[i];
  return to;
}
#define memcpy           memmove
#define __builtin_memcpy memmove
#endif

#define SIMULATED_INTRINSIC static inline __attribute__((unused, always_inline))
SIMULATED_INTRINSIC float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
SIMULATED_INTRINSIC double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
SIMULATED_INTRINSIC float __fsqrt_rn(float a) { return sqrtf(a); }
SIMULATED_INTRINSIC double __dsqrt_rn(double a) { return sqrt(a); }
SIMULATED_INTRINSIC float __fadd_rn(float a, float b) { return a + b; }
SIMULATED_INTRINSIC float __fsub_rn(float a, float b) { return a - b; }
SIMULATED_INTRINSIC float __fmul_rn(float a, float b) { return a * b; }
SIMULATED_INTRINSIC float __fdiv_rn(float a, float b) { return a / b; }
SIMULATED_INTRINSIC double __dadd_rn(double a, double b) { return a + b; }
SIMULATED_INTRINSIC double __dsub_rn(double a, double b) { return a - b; }
SIMULATED_INTRINSIC double __dmul_rn(double a, double b) { return a * b; }
SIMULATED_INTRINSIC double __ddiv_rn(double a, double b) { return a / b; }
SIMULATED_INTRINSIC int __popc(unsigned a) { return __builtin_popcount(a); }
SIMULATED_INTRINSIC unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)a * b >> 32);
}
SIMULATED_INTRINSIC unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
#define SIMULATED_BITS(name, to, from)  \
  SIMULATED_INTRINSIC to name(from a) { \
    to b;                               \
    __builtin_memcpy(&b, &a, sizeof b); \
    return b;                           \
  }
SIMULATED_BITS(__float_as_int, int, float)
SIMULATED_BITS(__int_as_float, float, int)
SIMULATED_BITS(__float_as_uint, unsigned, float)
SIMULATED_BITS(__uint_as_float, float, unsigned)
SIMULATED_BITS(__double_as_longlong, long long, double)
SIMULATED_BITS(__longlong_as_double, double, long long)

/* Tensor cores, see kernels/cuda/tensor.cuh: each lane shows its warp what it holds. What waits is the whole block. */
static unsigned simulated_fragments[1024][6];
SIMULATED_INTRINSIC float simulated_product(unsigned a, unsigned b, int bf16) {
  if (!bf16) return __uint_as_float(a & 0xffffe000u) * __uint_as_float(b & 0xffffe000u);
  return __uint_as_float(a << 16) * __uint_as_float(b << 16) +
         __uint_as_float(a & 0xffff0000u) * __uint_as_float(b & 0xffff0000u);
}
static inline __attribute__((unused)) void simulated_mma(float *c, const unsigned *a, const unsigned *b,
                                                         int bf16) {
  unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  unsigned(*warp)[6] = &simulated_fragments[threadIdx.x - lane];
  for (int i = 0; i < 6; i++) warp[lane][i] = i < 4 ? a[i] : b[i - 4];
  __syncthreads();
  for (unsigned i = 0; i < 4; i++) {
    unsigned row = g + i / 2 * 8, column = 2 * t + i % 2;
    for (unsigned k = 0; k < 8; k++)
      c[i] += simulated_product(warp[row % 8 * 4 + k % 4][row / 8 + k / 4 * 2],
                                warp[column * 4 + k % 4][4 + k / 4], bf16);
  }
  __syncthreads();
}
SIMULATED_INTRINSIC void mma_bf16(float *c, const unsigned *a, const unsigned *b) {
  simulated_mma(c, a, b, 1);
}
SIMULATED_INTRINSIC void mma_tf32(float *c, const unsigned *a, const unsigned *b) {
  simulated_mma(c, a, b, 0);
}
SIMULATED_INTRINSIC unsigned tf32_of(float x) {
  unsigned bits = __float_as_uint(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return bits & 0x7fffffu ? 0x7fffffffu : bits;
  return (bits + 0x1000u) & 0xffffe000u;
}
float exp2f(float), log2f(float);
SIMULATED_INTRINSIC float exp2_near(float x) { return x < -126 ? 0 : exp2f(x); }
SIMULATED_INTRINSIC float log2_near(float x) { return log2f(x); }
static inline __attribute__((unused)) float lane_xor(float x, int by) {
  simulated_fragments[threadIdx.x][0] = __float_as_uint(x);
  __syncthreads();
  x = __uint_as_float(simulated_fragments[threadIdx.x ^ (unsigned)by][0]);
  __syncthreads();
  return x;
}
/* See kernels/cuda/leaf.cuh. */
SIMULATED_INTRINSIC long long anew(long long x) { return x; }
/* Of threads that take turns the first to come begins anew. */
static struct { unsigned votes, came; } simulated_warps[32];
static int simulated_any;
static unsigned simulated_came;
static inline __attribute__((unused)) unsigned warp_vote(int x) {
  unsigned w = threadIdx.x / 32, lanes = blockDim.x - w * 32;
  if (simulated_warps[w].came++ == 0) simulated_warps[w].votes = 0;
  if (simulated_warps[w].came == (lanes < 32 ? lanes : 32)) simulated_warps[w].came = 0;
  simulated_warps[w].votes |= (unsigned)(x != 0) << threadIdx.x % 32;
  __syncthreads();
  unsigned votes = simulated_warps[w].votes;
  __syncthreads();
  return votes;
}
static inline __attribute__((unused)) int any_thread(int x) {
  if (simulated_came++ == 0) simulated_any = 0;
  if (simulated_came == blockDim.x) simulated_came = 0;
  simulated_any |= x != 0;
  __syncthreads();
  int any = simulated_any;
  __syncthreads();
  return any;
}
static inline __attribute__((unused)) void copy_four(float *to, const float *from, int there) {
  for (int i = 0; i < 4; i++) to[i] = there ? from[i] : 0;
}
static inline __attribute__((unused)) void copy_one(float *to, const float *from, int there) {
  *to = there ? *from : 0;
}
static inline __attribute__((unused)) void copies_end(void) {}
#define copies_wait(n) ((void)(n))
