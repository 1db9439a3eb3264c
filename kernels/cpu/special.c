/* SPDX-License-Identifier: Apache-2.0 */
/* Exponents that are all ones: then 1 more goes over into the sign. Of so many numbers at a time compilers make
 * vectors. */
#include "kernels/cpu/special.h"

#define DEFINE_SPECIAL(name, BITS, EXPONENT)                                           \
  bool name(const void *data, int64_t begin, int64_t end) {                            \
    typedef BITS bits __attribute__((may_alias));                                      \
    enum { MANY = 256 };                                                               \
    const bits *x = data, exponent = EXPONENT, one = exponent & (bits)(0 - exponent);  \
    bits found = 0;                                                                    \
    for (; begin + MANY <= end; begin += MANY)                                         \
      for (int i = 0; i < MANY; i++) found |= (bits)((x[begin + i] & exponent) + one); \
    for (; begin < end; begin++) found |= (bits)((x[begin] & exponent) + one);         \
    return (found & (bits) ~(exponent | (exponent - 1))) != 0;                         \
  }
DEFINE_SPECIAL(special_f32, uint32_t, UINT32_C(0x7f800000))
DEFINE_SPECIAL(special_f64, uint64_t, UINT64_C(0x7ff0000000000000))
DEFINE_SPECIAL(special_bf16, uint16_t, 0x7f80)
