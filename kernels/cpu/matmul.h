/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products on the host of integers, and of floats where no instruction multiplies and adds. */
#ifndef DGC_KERNELS_CPU_MATMUL_H
#define DGC_KERNELS_CPU_MATMUL_H

#include <stdint.h>

/* C[m,n] = A[m,k] B[k,n]. A and B have any strides, in elements: element (i,p) of A is a[i*a_row + p*a_col]; rows of C
 * are c_row apart. Each element of C is the sum over p in order, from 0, each product rounded (integers
 * wrap): its bits depend on nothing else. C overlaps neither A nor B. */
#define MATMUL_FUNCTION(name, T)                                                                   \
  void name(int64_t m, int64_t n, int64_t k, const T *a, int64_t a_row, int64_t a_col, const T *b, \
            int64_t b_row, int64_t b_col, T *c, int64_t c_row)

MATMUL_FUNCTION(matmul_f32, float);
MATMUL_FUNCTION(matmul_f64, double);
MATMUL_FUNCTION(matmul_u64, uint64_t); /* also i64 */
MATMUL_FUNCTION(matmul_u32, uint32_t); /* also i32 */
MATMUL_FUNCTION(matmul_u8, uint8_t);

#endif
