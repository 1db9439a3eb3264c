/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes run along rows: of eight rows four columns at a time are transposed in registers. */
#include "kernels/cpu/dots.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define TARGET __attribute__((target("avx2,fma")))
#else
#define TARGET
#endif

/* From column l on. */
TARGET static void by_rows(const float *a, int64_t step, int64_t rows, const float *x, int64_t l, int64_t k,
                           float *y) {
  for (; l < k; l++)
    for (int64_t i = 0; i < rows; i++) y[i] = __builtin_fmaf(a[i * step + l], x[l], y[i]);
}

#if defined(__x86_64__)
enum { COLUMNS = 4 };

/* Row i in the lower half of a vector, row i + 4 in the upper one. */
TARGET static inline __m256 two_rows(const float *a, int64_t step) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(a)), _mm_loadu_ps(a + 4 * step), 1);
}

TARGET static inline __m256 add_columns(const float *a, int64_t step, const float *x, __m256 sum) {
  __m256 r0 = two_rows(a, step), r1 = two_rows(a + step, step);
  __m256 r2 = two_rows(a + 2 * step, step), r3 = two_rows(a + 3 * step, step);
  __m256 low01 = _mm256_unpacklo_ps(r0, r1), high01 = _mm256_unpackhi_ps(r0, r1);
  __m256 low23 = _mm256_unpacklo_ps(r2, r3), high23 = _mm256_unpackhi_ps(r2, r3);
  sum = _mm256_fmadd_ps(_mm256_shuffle_ps(low01, low23, 0x44), _mm256_broadcast_ss(x), sum);
  sum = _mm256_fmadd_ps(_mm256_shuffle_ps(low01, low23, 0xee), _mm256_broadcast_ss(x + 1), sum);
  sum = _mm256_fmadd_ps(_mm256_shuffle_ps(high01, high23, 0x44), _mm256_broadcast_ss(x + 2), sum);
  return _mm256_fmadd_ps(_mm256_shuffle_ps(high01, high23, 0xee), _mm256_broadcast_ss(x + 3), sum);
}

TARGET static int64_t by_lanes(const float *a, int64_t step, const float *x, int64_t k, float *y) {
  __m256 low = _mm256_setzero_ps(), high = low;
  int64_t l = 0;
  for (; l + COLUMNS <= k; l += COLUMNS) {
    low = add_columns(a + l, step, x + l, low);
    high = add_columns(a + 8 * step + l, step, x + l, high);
  }
  _mm256_storeu_ps(y, low), _mm256_storeu_ps(y + 8, high);
  return l;
}
#endif

void dots_f32(const float *a, int64_t step, int64_t rows, const float *x, int64_t k, float *y) {
  int64_t l = 0;
  for (int64_t i = 0; i < rows; i++) y[i] = 0;
#if defined(__x86_64__)
  if (rows == DOTS_ROWS) l = by_lanes(a, step, x, k, y);
#endif
  by_rows(a, step, rows, x, l, k, y);
}
