/* SPDX-License-Identifier: Apache-2.0 */
/* y[n][o][c] = the sum of the x[n][i][c] that window o sees, from 0 on in the order of i. Integers wrap. */
#include "kernels/cpu/window.h"

#define DEFINE(name, T, attribute) DEFINE_FOLD(name, T, attribute, 0, all += v;)

DEFINE_WINDOW(DEFINE, sum_f32, float, 1)
DEFINE_WINDOW(DEFINE, sum_f64, double, 1)
DEFINE_WINDOW(DEFINE, sum_u32, uint32_t, 1)
DEFINE_WINDOW(DEFINE, sum_u64, uint64_t, 1)
DEFINE_WINDOW(DEFINE, sum_u8, uint8_t, 1)

const struct leaf_functions cpu_window_sum = {.f32 = sum_f32,
                                              .f64 = sum_f64,
                                              .i32 = sum_u32,
                                              .i64 = sum_u64,
                                              .u8 = sum_u8,
                                              .scratch = window_scratch,
                                              .blocks = 1 << 0 | 1 << 1};
