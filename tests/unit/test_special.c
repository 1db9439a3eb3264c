/* SPDX-License-Identifier: Apache-2.0 */
/* Inf and NaN, and what is next to them, at each place of arrays around the numbers that are looked at at once. */
#include "base/bits.h"
#include "kernels/cpu/special.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 600 };

#define DEFINE_CHECK(name, T)                                                                 \
  static void name(bool (*found)(const void *, int64_t, int64_t), const T *usual, int nusual, \
                   const T *special, int nspecial) {                                          \
    T x[MOST];                                                                                \
    for (int i = 0; i < MOST; i++) x[i] = usual[i % nusual];                                  \
    for (int begin = 0; begin < 3; begin++)                                                   \
      for (int end = begin; end < MOST; end += 1 + (end % 256 > 3) * 83) {                    \
        assert_false(found(x, begin, end));                                                   \
        for (int at = begin; at < end; at += 1 + (at % 5) * 7) {                              \
          T before = x[at];                                                                   \
          x[at] = special[at % nspecial];                                                     \
          assert_true(found(x, begin, end));                                                  \
          assert_false(found(x, begin, at));                                                  \
          assert_false(found(x, at + 1, end));                                                \
          x[at] = before;                                                                     \
        }                                                                                     \
      }                                                                                       \
  }
DEFINE_CHECK(check_f32, float)
DEFINE_CHECK(check_f64, double)
DEFINE_CHECK(check_bf16, uint16_t)

static void all_types(void **state) {
  (void)state;
  const float usual[] = {0, -0.0F, 1, -FLT_MAX, FLT_MAX, FLT_MIN / 4, -1};
  const float special[] = {INFINITY, -INFINITY, NAN, f32_of_bits(0xff800001U)};
  double wide[7], wide_special[] = {INFINITY, -INFINITY, NAN, f64_of_bits(UINT64_C(0xfff0000000000001))};
  uint16_t half[7], half_special[4];
  for (int i = 0; i < 7; i++) wide[i] = usual[i], half[i] = (uint16_t)(f32_bits(usual[i]) >> 16);
  wide[3] = -DBL_MAX, wide[4] = DBL_MAX;
  for (int i = 0; i < 4; i++) half_special[i] = (uint16_t)(f32_bits(special[i]) >> 16);
  check_f32(special_f32, usual, 7, special, 4);
  check_f64(special_f64, wide, 7, wide_special, 4);
  check_bf16(special_bf16, half, 7, half_special, 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_types)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
