/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of floats in the order of ir/ops/conv.c, by code of our own. */
#ifndef DGC_RUNTIME_CPU_CONV_ORDER_H
#define DGC_RUNTIME_CPU_CONV_ORDER_H

#include "runtime/cpu/leaf.h"

/* As a cpu_leaf_fn. Where gemm_can. */
cpu_leaf_fn cpu_conv_in_order;

#endif
