/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/random.h"

#include "tests/support/bound.h"

#include <math.h>
#include <string.h>

/* splitmix64 (Steele, Lea, Flood, OOPSLA 2014) */
uint64_t rng_bits(struct rng *r) {
  uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

int rng_below(struct rng *r, int n) { return (int)(rng_bits(r) % (uint64_t)n); }
bool rng_chance(struct rng *r, int percent) { return rng_below(r, 100) < percent; }
double rng_uniform(struct rng *r, double lo, double hi) {
  return lo + (hi - lo) * (double)(rng_bits(r) >> 11) * 0x1p-53;
}

static double draw(struct rng *r, enum sample_domain domain) {
  double sign = rng_chance(r, 50) ? -1 : 1;
  switch (domain) {
  case DOMAIN_POSITIVE: return rng_uniform(r, 0.5, 2.5);
  case DOMAIN_NONZERO: return sign * rng_uniform(r, 0.5, 2.5);
  case DOMAIN_UNIT: return rng_uniform(r, -0.75, 0.75);
  case DOMAIN_ABOVE_ONE: return rng_uniform(r, 1.5, 3.5);
  case DOMAIN_SMALL_INT: return rng_below(r, 9) - 4;
  default: return rng_uniform(r, -2, 2);
  }
}

/* Integers and bools have no use for fractions. */
static double whole(enum dtype d, double x, struct rng *r) {
  if (dtype_is_float(d)) return x;
  if (d == DT_BOOL) return rng_chance(r, 50);
  x = x < 0 ? floor(4 * x) : ceil(4 * x);
  return d == DT_U8 ? fabs(x) : x;
}

void sample_fill(struct rng *r, enum sample_domain domain, int operand, struct tensor *t) {
  int64_t count = type_count(&t->type);
  enum dtype d = t->type.dtype;
  for (int64_t i = 0; i < count; i++) {
    double x = domain == DOMAIN_DISTINCT ? (double)i / 4 + operand / 8.0 - 1 : draw(r, domain);
    tensor_set(t, i, domain == DOMAIN_DISTINCT && dtype_is_float(d) ? x : whole(d, x, r));
  }
  for (int64_t i = count; domain == DOMAIN_DISTINCT && i > 1; i--) {
    int64_t j = rng_below(r, (int)i);
    double x = tensor_at(t, i - 1), y = tensor_at(t, j);
    tensor_set(t, i - 1, y);
    tensor_set(t, j, x);
  }
}

static uint64_t special_bits(struct rng *r, enum dtype d) {
  static const uint32_t f32[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                 0xff800000, 0x7fc00000, 1,          0x807fffff, 0x7f7fffff,
                                 0x4f000000, 0xcf000000, 0x3f000000, 0x40200000, 0x42c80000};
  static const int64_t ints[] = {0, 1, -1, 2, INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX, 255, 128, 7};
  uint64_t bits = 0;
  float narrow;
  memcpy(&narrow, &f32[rng_below(r, sizeof f32 / sizeof *f32)], sizeof narrow);
  double wide = narrow;
  switch (d) {
  case DT_F32: memcpy(&bits, &narrow, sizeof narrow); return bits;
  case DT_F64: memcpy(&bits, &wide, sizeof wide); return bits;
  case DT_BOOL: return rng_bits(r) & 1;
  default: return (uint64_t)ints[rng_below(r, sizeof ints / sizeof *ints)];
  }
}

void special_fill(struct rng *r, struct tensor *t) {
  int64_t count = type_count(&t->type);
  enum dtype d = t->type.dtype;
  size_t size = (size_t)dtype_size(d);
  for (int64_t i = 0; i < count; i++) {
    uint64_t bits = special_bits(r, d);
    if (rng_chance(r, 60))
      tensor_set(t, i, dtype_is_float(d) ? rng_uniform(r, -60, 60) : rng_below(r, 201) - 100);
    else
      memcpy((char *)t->data + (size_t)i * size, &bits, size);
  }
}
