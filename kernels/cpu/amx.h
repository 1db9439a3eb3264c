/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of bfloat16 values by AMX: tiles of 16 rows of 32 of them, added up in f32. */
#ifndef DGC_KERNELS_CPU_AMX_H
#define DGC_KERNELS_CPU_AMX_H

#include <stdbool.h>
#include <stdint.h>

/* A is m x k, B k x n. Numbers are from a row in memory to the next one. */
struct amx_product {
  int64_t m, n, k;
  int64_t a_row, b_row, c_row;
  bool transpose_a, transpose_b; /* a lies as k x m, b as n x k */
  const uint16_t
      *packed; /* NULL; else B, or what it is columns of, as amx_pack left it: b is not looked at */
  int64_t packed_n, packed_left; /* how many columns that has, and the first of B, a multiple of 32 */
};
/* Bytes of memory to work in, which begins at a multiple of 64. */
enum { AMX_ROOM = 1348 << 10 };

/* Whether this processor has AMX for bfloat16, and the system lets this process use it. */
bool amx_can(void);
/* B for many products, made of its k x n values in so many numbers of memory, from a multiple of 64 bytes on. */
int64_t amx_packed_count(int64_t n, int64_t k);
void amx_pack(const struct amx_product *p, const uint16_t *b, uint16_t *packed);
/* Overwrites C, which overlaps neither A nor B; only where amx_can. Of each 32 successive k, the last of which may be
 * fewer, the even ones are one chain of fused multiply-adds from +0, the odd ones another; the sum of both is added to
 * that of the k before: so a part of C has the bits that it has in the whole. Subnormal numbers count as 0, also where
 * they come out. Any thread. */
void amx_multiply(const struct amx_product *p, const uint16_t *a, const uint16_t *b, float *c, void *room);

#endif
