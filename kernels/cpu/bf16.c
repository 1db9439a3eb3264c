/* SPDX-License-Identifier: Apache-2.0 */
/* f32 to bfloat16, where nothing is to be rounded. */
#include "kernels/cpu/bf16.h"

#include <string.h>

enum { LANES = 32 };

#define DEFINE_PACK(name, attribute)                                       \
  attribute static void name(const float *x, uint16_t *y, int64_t count) { \
    typedef uint32_t wide __attribute__((vector_size(LANES * 4)));         \
    typedef uint16_t half __attribute__((vector_size(LANES * 2)));         \
    int64_t i = 0;                                                         \
    for (; i + LANES <= count; i += LANES) {                               \
      wide w;                                                              \
      memcpy(&w, x + i, sizeof w);                                         \
      half h = __builtin_convertvector(w >> 16, half);                     \
      memcpy(y + i, &h, sizeof h);                                         \
    }                                                                      \
    for (; i < count; i++) {                                               \
      uint32_t bits;                                                       \
      memcpy(&bits, x + i, sizeof bits);                                   \
      y[i] = (uint16_t)(bits >> 16);                                       \
    }                                                                      \
  }

#if defined(__x86_64__)
DEFINE_PACK(pack_any, )
DEFINE_PACK(pack_avx512, __attribute__((target("avx512f,avx512bw"))))

void bf16_pack(const float *x, uint16_t *y, int64_t count) {
  if (__builtin_cpu_supports("avx512bw"))
    pack_avx512(x, y, count);
  else
    pack_any(x, y, count);
}
#else
DEFINE_PACK(pack_any, )

void bf16_pack(const float *x, uint16_t *y, int64_t count) { pack_any(x, y, count); }
#endif

void bf16_unpack(const uint16_t *x, float *y, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    uint32_t bits = (uint32_t)x[i] << 16;
    memcpy(y + i, &bits, sizeof bits);
  }
}
