/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions in the form of ir/ops/conv.c, where no library has one. */
#ifndef DGC_KERNELS_CPU_CONV_H
#define DGC_KERNELS_CPU_CONV_H

#include "kernels/cpu/leaf.h"

#include <stdbool.h>

/* The numbers of conv, in their order: see struct convolution of ir/ops/leaf.h. */
struct conv_numbers {
  int64_t result; /* 0: the input, 1: the kernel, 2: the output */
  int64_t batch, groups, channels, filters;
  int64_t input[3], kernel[3], output[3];
  int64_t stride[3], low[3], input_dilation[3], kernel_dilation[3];
};

extern const struct leaf_functions cpu_conv;

#endif
