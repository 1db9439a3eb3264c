/* SPDX-License-Identifier: Apache-2.0 */
/* Products by tensor cores, of compute capability 8.0 and later. Their factors are cells of 32 bits, each of CELL
 * numbers that follow each other along what is summed: two bfloat16, the first in the lower half, or one TF32. BF16
 * says which.
 *
 * A warp multiplies 16 rows by 8 columns of 8 cells each: mma.m16n8k16 of bfloat16 and mma.m16n8k8 of TF32 (PTX ISA,
 * "Warp-level matrix fragments") have the same layout when they are counted in cells. Lane l, with g = l / 4 and
 * t = l % 4, holds
 *   of a: cell t of rows g and g + 8, then cell t + 4 of both;
 *   of b: cells t and t + 4 of column g;
 *   of c: columns 2t and 2t + 1 of row g, then of row g + 8.
 * The simulation has an mma_bf16, an mma_tf32, a tf32_of, an exp2_near, a log2_near and copies of its own. */
enum { CELL = BF16 ? 2 : 1 };

/* Where it is 1 a cell is a number as it is, which nobody rounds and no tensor core sees. */
#ifndef EXACT
#define EXACT 0
#endif

#ifdef __CUDACC__
__device__ static inline void mma_bf16(float *c, const unsigned *a, const unsigned *b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ static inline void mma_tf32(float *c, const unsigned *a, const unsigned *b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* The nearest number of 11 bits, of two the one that is farther from zero. */
__device__ static inline unsigned tf32_of(float x) {
  unsigned y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
}

/* Four numbers (one) on their way to shared memory; zeros unless they are `there`. copies_end ends a group of copies,
 * and copies_wait(n) waits for all groups of the thread but the last n. Behind a __syncthreads that follows, threads
 * see each other's. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
__device__ static inline void copy_four(float *to, const float *from, int there) {
  asm volatile("{ .reg .pred p; setp.eq.s32 p, %2, 0; cp.async.ca.shared.global [%0], [%1], 16, p; }" ::"r"(
                   (unsigned)__cvta_generic_to_shared(to)),
               "l"(from), "r"(there));
}

__device__ static inline void copy_one(float *to, const float *from, int there) {
  asm volatile("{ .reg .pred p; setp.eq.s32 p, %2, 0; cp.async.ca.shared.global [%0], [%1], 4, p; }" ::"r"(
                   (unsigned)__cvta_generic_to_shared(to)),
               "l"(from), "r"(there));
}

__device__ static inline void copies_end(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }
#define copies_wait(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
#else
__device__ static inline void copy_four(float *to, const float *from, int there) {
  struct four zero = {0, 0, 0, 0};
  *(struct four *)to = there ? *(const struct four *)from : zero;
}

__device__ static inline void copy_one(float *to, const float *from, int there) { *to = there ? *from : 0; }
__device__ static inline void copies_end(void) {}
#define copies_wait(n) ((void)(n))
#endif

/* 2^x, 0 where that is below the normal numbers; and the logarithm of a normal number: within 2^-21. */
__device__ static inline float exp2_near(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ static inline float log2_near(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#endif

/* c += a b. All threads of a block come here together. */
__device__ static inline void mma(float *c, const unsigned *a, const unsigned *b) {
  if (BF16)
    mma_bf16(c, a, b);
  else
    mma_tf32(c, a, b);
}

/* Of CELL numbers x[0] and x[step], which are bfloat16 already where cells are of these. */
__device__ static inline unsigned cell_of(const float *x, int step) {
  if (EXACT) return __float_as_uint(x[0]);
  if (BF16) return (__float_as_uint(x[0]) >> 16) | (__float_as_uint(x[step]) & 0xffff0000u);
  return tf32_of(x[0]);
}

/* n / d, where n * d < 2^32 and `by` is 2^32 / d, rounded up. */
__device__ static inline unsigned divide(unsigned n, unsigned long long by) { return (unsigned)(n * by >> 32); }

struct __align__(16) four_cells {
  unsigned x, y, z, w;
};

__device__ static inline void store_cells(unsigned *to, const unsigned *v) {
  struct four_cells c;
  c.x = v[0], c.y = v[1], c.z = v[2], c.w = v[3];
  *(struct four_cells *)to = c;
}

/* Of attention, what is summed, and what is not, may be numbered in any way. This way cells come from shared memory by
 * fours, and where rows are 8 modulo 32 cells apart, the lanes of a warp meet no bank twice:
 *   of 16 numbers of a row, lane t takes 4t and 4t + 1 in the first product, the other two in the second;
 *   of 8 rows that are met, column n is place_of(n), so that a lane has as c what it needs as a;
 *   of 32 numbers of a sum, column n of the product e is 4n + e: a lane has eight neighbours. */

/* 0, 2, 1, 3, 6, 4, 7, 5. */
__device__ static inline int place_of(int n) { return n % 2 ? n / 2 + 2 : n / 2 + n / 4 * 4; }
