/* SPDX-License-Identifier: Apache-2.0 */
/* Blocked matrix product: panels of B of KC x NR elements are packed, tiles of MR x NR elements of C stay in
 * registers. Blocks follow k in order, so blocking changes no bit. */
#include "kernels/cpu/matmul.h"

#include <stddef.h>
#include <string.h>

#define MR 4
#define NR 16
#define KC 256

/* C[mr,nr] += A[mr,kc] panel. A tile at the edge computes all MR rows, the last ones twice, and stores mr. */
#define DEFINE_TILE(tile, T, attribute)                                                                      \
  attribute static void tile(int64_t mr, int64_t nr, int64_t kc, const T *a, int64_t a_row, int64_t a_col,   \
                             const T *panel, T *c, int64_t c_row) {                                          \
    typedef T row __attribute__((vector_size(NR * sizeof(T))));                                              \
    row acc[MR];                                                                                             \
    memset(acc, 0, sizeof acc);                                                                              \
    for (int64_t i = 0; i < mr; i++) memcpy(&acc[i], c + i * c_row, (size_t)nr * sizeof(T));                 \
    const T *last = a + (mr - 1) * a_row, *a1 = mr > 1 ? a + a_row : last, *a2 = mr > 2 ? a1 + a_row : last; \
    for (int64_t p = 0; p < kc; p++) {                                                                       \
      row b;                                                                                                 \
      memcpy(&b, panel + p * NR, sizeof b);                                                                  \
      acc[0] += a[p * a_col] * b;                                                                            \
      acc[1] += a1[p * a_col] * b;                                                                           \
      acc[2] += a2[p * a_col] * b;                                                                           \
      acc[3] += last[p * a_col] * b;                                                                         \
    }                                                                                                        \
    for (int64_t i = 0; i < mr; i++) memcpy(c + i * c_row, &acc[i], (size_t)nr * sizeof(T));                 \
  }

#define DEFINE_MATMUL(name, tile, T, attribute)                                                      \
  attribute static MATMUL_FUNCTION(name, T) {                                                        \
    T panel[KC * NR];                                                                                \
    for (int64_t i = 0; i < m; i++) memset(c + i * c_row, 0, (size_t)n * sizeof(T));                 \
    for (int64_t j = 0; j < n; j += NR) {                                                            \
      int64_t nr = n - j < NR ? n - j : NR;                                                          \
      for (int64_t p = 0; p < k; p += KC) {                                                          \
        int64_t kc = k - p < KC ? k - p : KC;                                                        \
        memset(panel, 0, sizeof panel);                                                              \
        for (int64_t q = 0; q < kc; q++)                                                             \
          for (int64_t r = 0; r < nr; r++) panel[q * NR + r] = b[(p + q) * b_row + (j + r) * b_col]; \
        for (int64_t i = 0; i < m; i += MR)                                                          \
          tile(m - i < MR ? m - i : MR, nr, kc, a + i * a_row + p * a_col, a_row, a_col, panel,      \
               c + i * c_row + j, c_row);                                                            \
      }                                                                                              \
    }                                                                                                \
  }

#if defined(__x86_64__)
#define AVX2   __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,avx512dq")))
#define DEFINE_FUNCTION(name, T)                                          \
  DEFINE_TILE(name##_tile, T, )                                           \
  DEFINE_TILE(name##_tile_avx2, T, AVX2)                                  \
  DEFINE_TILE(name##_tile_avx512, T, AVX512)                              \
  DEFINE_MATMUL(name##_any, name##_tile, T, )                             \
  DEFINE_MATMUL(name##_avx2, name##_tile_avx2, T, AVX2)                   \
  DEFINE_MATMUL(name##_avx512, name##_tile_avx512, T, AVX512)             \
  MATMUL_FUNCTION(name, T) {                                              \
    if (__builtin_cpu_supports("avx512dq"))                               \
      name##_avx512(m, n, k, a, a_row, a_col, b, b_row, b_col, c, c_row); \
    else if (__builtin_cpu_supports("avx2"))                              \
      name##_avx2(m, n, k, a, a_row, a_col, b, b_row, b_col, c, c_row);   \
    else                                                                  \
      name##_any(m, n, k, a, a_row, a_col, b, b_row, b_col, c, c_row);    \
  }
#else
#define DEFINE_FUNCTION(name, T)              \
  DEFINE_TILE(name##_tile, T, )               \
  DEFINE_MATMUL(name##_any, name##_tile, T, ) \
  MATMUL_FUNCTION(name, T) { name##_any(m, n, k, a, a_row, a_col, b, b_row, b_col, c, c_row); }
#endif

DEFINE_FUNCTION(matmul_f32, float)
DEFINE_FUNCTION(matmul_f64, double)
DEFINE_FUNCTION(matmul_u64, uint64_t)
DEFINE_FUNCTION(matmul_u32, uint32_t)
DEFINE_FUNCTION(matmul_u8, uint8_t)
