/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of 16 bits, bfloat16 and IEEE's binary16, made of f32 and f32 of them: to the nearest, ties to even, as the
 * ops round_bf16 and round_f16 say (ir/ops/unary.c). */
#ifndef DGC_BASE_HALF_H
#define DGC_BASE_HALF_H

#include "base/bits.h"

/* A subnormal number is zero; a NaN stays one. */
static inline uint16_t bf16_of_f32(float x) {
  uint32_t bits = f32_bits(x);
  if ((bits & 0x7f800000) == 0) return (uint16_t)(bits >> 16 & 0x8000);
  if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float f32_of_bf16(uint16_t half) { return f32_of_bits((uint32_t)half << 16); }

/* 2^-24, the least binary16, is the last place of 0.5 in f32. */
static inline uint16_t f16_of_f32(float x) {
  uint32_t bits = f32_bits(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  if (size > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (size >> 13 & 0x3ff));
  if (size < 0x38800000) return (uint16_t)(sign | (f32_bits(f32_of_bits(size) + 0.5f) - 0x3f000000));
  uint32_t near = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
  return (uint16_t)(sign | (near < 0x7c00 ? near : 0x7c00));
}

static inline float f32_of_f16(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, size = half & 0x7fff;
  if (size < 0x400) return f32_of_bits(sign | f32_bits(f32_of_bits(0x3f000000 + size) - 0.5f));
  return f32_of_bits(sign | (size < 0x7c00 ? (size << 13) + 0x38000000 : size << 13 | 0x7f800000));
}

#endif
