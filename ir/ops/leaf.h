/* The sizes of leaves, as numbers, and what several of them compute with. Types are concrete. */
#ifndef DGC_IR_OPS_LEAF_H
#define DGC_IR_OPS_LEAF_H

#include "ir/ops/op.h"

/* matmul: c = op(a) op(b), dense and row-major, `batch` of them one behind the other; op(a) is m x k, op(b) k x n. */
struct product {
  enum dtype dtype; /* not bool */
  int64_t batch, m, n, k;
  bool transpose_a, transpose_b; /* a lies in memory as k x m, b as n x k */
  bool bf16; /* a and b, of f32, hold bfloat16 values only: may be multiplied as such, and added up in f32 */
};
struct product product_of(const struct node *n);

/* conv: which of the three tensors that meet in it the result is, and their sizes; see conv.c. There are always three
 * spatial axes, the first of them of size 1 where there are fewer. Its fields are a leaf's numbers: kernels/ reads them
 * as they stand. */
enum { CONV_AXES = 3 };
enum conv_result { CONV_INPUT, CONV_KERNEL, CONV_OUTPUT };
struct convolution {
  int64_t result;                           /* enum conv_result */
  int64_t batch, groups, channels, filters; /* channels and filters of one group */
  int64_t input[CONV_AXES], kernel[CONV_AXES], output[CONV_AXES];
  int64_t stride[CONV_AXES], low[CONV_AXES], input_dilation[CONV_AXES], kernel_dilation[CONV_AXES];
};
struct convolution convolution_of(const struct node *n);

/* What goes along an axis in its order: a dense tensor is [outer, length, inner], with that axis in the middle. */
struct lines {
  int64_t outer, length, inner;
};
struct lines lines_of(const struct node *n);

/* Number i of an array of integers. */
int64_t integer_at(const struct tensor *t, int64_t i);
/* to[i] += from[i]; integers wrap. Not of bool. */
void add_elements(enum dtype d, void *to, const void *from, int64_t count);

#endif
