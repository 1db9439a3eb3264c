/* SPDX-License-Identifier: Apache-2.0 */
/* Floating point numbers of the narrow types, IEEE's binary16 and bfloat16, as files hold them. */
#ifndef DGC_RUNTIME_DATA_HALF_H
#define DGC_RUNTIME_DATA_HALF_H

#include "base/half.h"
#include "ir/type.h"

/* Exact. */
static inline float half_to_float(enum dtype narrow, uint16_t bits) {
  return narrow == DT_F16 ? f32_of_f16(bits) : f32_of_bf16(bits);
}

/* Rounded to the nearest, of two equally near to the even one; what is too large becomes infinite, a NaN stays one.
 * Other than by the op round_bf16, subnormal numbers stay, too. */
static inline uint16_t half_from_float(enum dtype narrow, float value) {
  if (narrow == DT_F16) return f16_of_f32(value);
  uint32_t bits = f32_bits(value);
  return value != value ? bf16_of_f32(value) : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
