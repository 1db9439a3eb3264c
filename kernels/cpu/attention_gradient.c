/* SPDX-License-Identifier: Apache-2.0 */
/* The derivatives of attention, of q, k and v one behind the other: see attention.c. */
#include "kernels/cpu/attention.h"

const struct leaf_functions cpu_attention_gradient = {.f32 = attention_gradient_f32,
                                                      .f64 = attention_gradient_f64,
                                                      .scratch = attention_gradient_scratch,
                                                      .units = attention_units,
                                                      .narrow = attention_narrow};
