/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of leaves, as numbers, and what several of them compute with. Types are concrete. */
#ifndef DGC_IR_OPS_LEAF_H
#define DGC_IR_OPS_LEAF_H

#include "base/half.h"
#include "ir/ops/op.h"

/* matmul: c = op(a) op(b), dense and row-major, `batch` of them one behind the other; op(a) is m x k, op(b) k x n. */
struct product {
  enum dtype dtype; /* not bool */
  int64_t batch, m, n, k;
  bool transpose_a, transpose_b; /* a lies in memory as k x m, b as n x k */
  bool bf16;   /* a and b hold bfloat16 values only: may be multiplied as such, and added up in f32 */
  bool stored; /* they lie in memory as bfloat16, not as f32 */
};
struct product product_of(const struct node *n);
/* How many successive products are one chain in the order of matmul.c. */
enum { PRODUCT_PIECE = 512 };

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
/* Elements `first` to `end` of a result of floats that has been computed with 0 for what is no term: those that Inf or
 * NaN beside such a 0 have made NaN are computed again, without it. Operands and result lie at `args`. */
void conv_mend_gaps(const struct node *n, void *const *args, int64_t first, int64_t end);

/* Windows over an image: see window.c. As of conv there are always three spatial axes, and its fields are the numbers
 * of the kernels. */
enum { WINDOW_AXES = 3 };
struct windows {
  int64_t batch, channels;
  int64_t input[WINDOW_AXES], size[WINDOW_AXES], output[WINDOW_AXES];
  int64_t stride[WINDOW_AXES], low[WINDOW_AXES], input_dilation[WINDOW_AXES], dilation[WINDOW_AXES];
};
bool has_windows(const struct node *n);
struct windows windows_of(const struct node *n); /* of one that has */
/* The element of x that the window of element e chooses; -1: it sees none. */
int64_t window_choice(const struct windows *w, const struct tensor *x, int64_t e);

/* attention: heads of `size` numbers, whose values are of `values`; mask_step is how far apart the elements of the
 * mask lie along the batch, the heads, the queries and the keys, 0 where all have the same. Its fields are the numbers
 * of the kernels. */
struct attention {
  int64_t batch, heads, queries, keys, size, values, causal, masked, mask_step[4];
  int64_t first, end; /* the heads, of all rows of the batch, that a call is for: all of them */
};
struct attention attention_of(const struct node *n);

/* What goes along an axis in its order: a dense tensor is [outer, length, inner], with that axis in the middle. */
struct lines {
  int64_t outer, length, inner;
};
struct lines lines_of(const struct node *n);

/* Number i of an array of bf16. */
static inline float bf16_at(const struct tensor *t, int64_t i) {
  return f32_of_bf16(((const uint16_t *)t->data)[i]);
}
/* F(T, SUM) for numbers of type d: T has its bits, and adds up in SUM, in which integers wrap. Of bool: nothing. */
#define FOR_NUMBERS(d, F)                    \
  switch (d) {                               \
  case DT_F32: F(float, float); break;       \
  case DT_F64: F(double, double); break;     \
  case DT_I32: F(uint32_t, uint32_t); break; \
  case DT_I64: F(uint64_t, uint64_t); break; \
  case DT_U8: F(uint8_t, uint32_t); break;   \
  case DT_BOOL:                              \
  case DT_BF16:                              \
  case DT_F16:                               \
  case DT_COUNT: break;                      \
  }

/* Number i of an array of integers. */
int64_t integer_at(const struct tensor *t, int64_t i);
/* to[i] += from[i]; integers wrap. Not of bool. */
void add_elements(enum dtype d, void *to, const void *from, int64_t count);

#endif
