/* SPDX-License-Identifier: Apache-2.0 */
/* Whether some of the floats [begin, end) at `data` are Inf or NaN. */
#ifndef DGC_KERNELS_CPU_SPECIAL_H
#define DGC_KERNELS_CPU_SPECIAL_H

#include <stdbool.h>
#include <stdint.h>

bool special_f32(const void *data, int64_t begin, int64_t end);
bool special_f64(const void *data, int64_t begin, int64_t end);
bool special_bf16(const void *data, int64_t begin, int64_t end);

#endif
