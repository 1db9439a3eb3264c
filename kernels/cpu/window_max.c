/* SPDX-License-Identifier: Apache-2.0 */
/* y[n][o][c] = the greatest of the x[n][i][c] that window o sees: the first of equals, but the last NaN if there is
 * one. */
#include "kernels/cpu/window.h"

#include <math.h>

#define DEFINE(name, T, attribute, least) \
  DEFINE_FOLD(name, T, attribute, least, all = CHOOSE(lanes, (v > all) | (v != v), v, all);)
#define DEFINE_FLOAT(name, T, attribute) DEFINE(name, T, attribute, -(T)INFINITY)
#define DEFINE_I32(name, T, attribute)   DEFINE(name, T, attribute, INT32_MIN)
#define DEFINE_I64(name, T, attribute)   DEFINE(name, T, attribute, INT64_MIN)
#define DEFINE_U8(name, T, attribute)    DEFINE(name, T, attribute, 0)

DEFINE_WINDOW(DEFINE_FLOAT, max_f32, float, 1)
DEFINE_WINDOW(DEFINE_FLOAT, max_f64, double, 1)
DEFINE_WINDOW(DEFINE_I32, max_i32, int32_t, 1)
DEFINE_WINDOW(DEFINE_I64, max_i64, int64_t, 1)
DEFINE_WINDOW(DEFINE_U8, max_u8, uint8_t, 1)

const struct leaf_functions cpu_window_max = {.f32 = max_f32,
                                              .f64 = max_f64,
                                              .i32 = max_i32,
                                              .i64 = max_i64,
                                              .u8 = max_u8,
                                              .scratch = window_scratch,
                                              .blocks = 1 << 0 | 1 << 1};
