/* SPDX-License-Identifier: Apache-2.0 */
/* The bits of floating point numbers, and the numbers that bits are. */
#ifndef DGC_BASE_BITS_H
#define DGC_BASE_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint32_t f32_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float f32_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline uint64_t f64_bits(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline double f64_of_bits(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

#endif
