/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of 16 bits by their parts: a sign, an exponent of `exponent` bits, and a fraction. */
#include "runtime/data/half.h"

#include <string.h>

enum { F32_FRACTION = 23, F32_BIAS = 127 };

static int fraction_bits(enum dtype narrow) { return narrow == DT_F16 ? 10 : 7; }
static int bias_of(enum dtype narrow) { return narrow == DT_F16 ? 15 : 127; }

static float from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

float half_to_float(enum dtype narrow, uint16_t bits) {
  int fraction = fraction_bits(narrow), shift = F32_FRACTION - fraction;
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16, rest = bits & 0x7fff, part = rest & ((1u << fraction) - 1);
  int exponent = (int)(rest >> fraction), most = (1 << (15 - fraction)) - 1;
  if (exponent == most) return from_bits(sign | 0x7f800000u | part << shift);
  if (narrow == DT_BF16) return from_bits(sign | rest << shift);
  if (exponent)
    return from_bits(sign | (uint32_t)(exponent + F32_BIAS - bias_of(narrow)) << F32_FRACTION |
                     part << shift);
  float small = (float)part * 0x1p-24f; /* a multiple of the least number */
  return sign ? -small : small;
}

/* `value` without its lowest bits, rounded to even. */
static uint32_t rounded(uint32_t value, int bits) {
  uint32_t half = 1u << (bits - 1), rest = value & ((1u << bits) - 1), kept = value >> bits;
  return kept + (rest > half || (rest == half && (kept & 1)));
}

uint16_t half_from_float(enum dtype narrow, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  int fraction = fraction_bits(narrow), shift = F32_FRACTION - fraction;
  uint16_t sign = (uint16_t)(bits >> 16 & 0x8000), infinite = (uint16_t)(0x7fff & ~((1 << fraction) - 1));
  bits &= 0x7fffffff;
  if (bits > 0x7f800000)
    return (uint16_t)(sign | infinite | 1u << (fraction - 1) | (bits >> shift & ((1u << fraction) - 1)));
  if (narrow == DT_BF16) return (uint16_t)(sign | rounded(bits, shift));
  int exponent = (int)(bits >> F32_FRACTION) - F32_BIAS + bias_of(narrow);
  uint32_t part = (bits & 0x7fffff) | 0x800000;
  if (exponent >= 31) return (uint16_t)(sign | infinite);
  if (exponent <= 0) /* a multiple of the least number, or nothing */
    return (uint16_t)(sign | (exponent < -10 ? 0 : rounded(part, shift + 1 - exponent)));
  return (uint16_t)(sign | (rounded(part, shift) + ((uint32_t)(exponent - 1) << fraction)));
}
