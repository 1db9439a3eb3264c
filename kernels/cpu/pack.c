/* SPDX-License-Identifier: Apache-2.0 */
/* Panels: vectors are copied where they can be; what is transposed goes by small blocks. */
#include "kernels/cpu/pack.h"

#include "base/integer.h"
#include "base/line.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { AHEAD = 8 };

INLINE void copy_row(char *to, const char *from, int64_t bytes) {
  for (; bytes >= 64; bytes -= 64, to += 64, from += 64) memcpy(to, from, 64);
  if (bytes & 32) memcpy(to, from, 32), to += 32, from += 32;
  if (bytes & 16) memcpy(to, from, 16), to += 16, from += 16;
  if (bytes & 8) memcpy(to, from, 8), to += 8, from += 8;
  if (bytes & 4) memcpy(to, from, 4);
}

/* What a row is copied from and to, some rows ahead: both may be far. */
INLINE void ask_for_row(const struct panels *p, const char *from, int64_t bytes, char *to) {
  for (int64_t at = 0; at < bytes; at += CACHE_LINE) __builtin_prefetch(from + at);
  for (int64_t at = 0; at < p->columns; at += p->width, to += p->panel_step) __builtin_prefetch(to, 1);
}

INLINE void copy_rows(const struct panels *p, int64_t size, const char *from, int64_t step, char *to) {
  int64_t whole = p->columns / p->width, width = p->width * size, rest = p->columns % p->width * size;
  for (int64_t l = 0; l < p->rows; l++, from += step * size, to += p->row_step) {
    ask_for_row(p, from + AHEAD * step * size, p->columns * size, to + AHEAD * p->row_step);
    int64_t panel = 0;
    /* A vector instead of one and a half: the next row's numbers come over what is too much. */
    for (; width == 24 && panel < whole - 1; panel++)
      memcpy(to + panel * p->panel_step, from + panel * width, 32);
    for (; panel < whole; panel++) copy_row(to + panel * p->panel_step, from + panel * width, width);
    if (rest) copy_row(to + whole * p->panel_step, from + whole * width, rest);
  }
}

typedef uint32_t four __attribute__((vector_size(16)));
typedef uint32_t eight __attribute__((vector_size(32)));
typedef uint32_t sixteen __attribute__((vector_size(64)));
typedef uint64_t two __attribute__((vector_size(16)));

/* Four rows of eight columns: columns 0 to 3 in the lower half of a vector, 4 to 7 in the upper one. */
INLINE void block_4(const char *from, int64_t step, char *to, int64_t row_step) {
  eight x[4], low[2], high[2];
  for (int i = 0; i < 4; i++) {
    four lower, upper;
    memcpy(&lower, from + i * step, sizeof lower);
    memcpy(&upper, from + (i + 4) * step, sizeof upper);
    x[i] = __builtin_shufflevector(lower, upper, 0, 1, 2, 3, 4, 5, 6, 7);
  }
  for (int i = 0; i < 2; i++) {
    low[i] = __builtin_shufflevector(x[2 * i], x[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    high[i] = __builtin_shufflevector(x[2 * i], x[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  x[0] = __builtin_shufflevector(low[0], low[1], 0, 1, 8, 9, 4, 5, 12, 13);
  x[1] = __builtin_shufflevector(low[0], low[1], 2, 3, 10, 11, 6, 7, 14, 15);
  x[2] = __builtin_shufflevector(high[0], high[1], 0, 1, 8, 9, 4, 5, 12, 13);
  x[3] = __builtin_shufflevector(high[0], high[1], 2, 3, 10, 11, 6, 7, 14, 15);
  for (int i = 0; i < 4; i++) memcpy(to + i * row_step, &x[i], sizeof x[i]);
}

/* The same with sixteen columns, four in each quarter of a vector. */
INLINE void block_4_wide(const char *from, int64_t step, char *to, int64_t row_step) {
  sixteen x[4], low[2], high[2];
  for (int i = 0; i < 4; i++) {
    eight half[2];
    for (int h = 0; h < 2; h++) {
      four lower, upper;
      memcpy(&lower, from + (i + 8 * h) * step, sizeof lower);
      memcpy(&upper, from + (i + 8 * h + 4) * step, sizeof upper);
      half[h] = __builtin_shufflevector(lower, upper, 0, 1, 2, 3, 4, 5, 6, 7);
    }
    x[i] = __builtin_shufflevector(half[0], half[1], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  }
  for (int i = 0; i < 2; i++) {
    low[i] = __builtin_shufflevector(x[2 * i], x[2 * i + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28,
                                     13, 29);
    high[i] = __builtin_shufflevector(x[2 * i], x[2 * i + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14,
                                      30, 15, 31);
  }
#define FIRST_PAIRS  0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define SECOND_PAIRS 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
  x[0] = __builtin_shufflevector(low[0], low[1], FIRST_PAIRS);
  x[1] = __builtin_shufflevector(low[0], low[1], SECOND_PAIRS);
  x[2] = __builtin_shufflevector(high[0], high[1], FIRST_PAIRS);
  x[3] = __builtin_shufflevector(high[0], high[1], SECOND_PAIRS);
  for (int i = 0; i < 4; i++) memcpy(to + i * row_step, &x[i], sizeof x[i]);
}

INLINE void block_8(const char *from, int64_t step, char *to, int64_t row_step) {
  two x[2], y[2];
  for (int i = 0; i < 2; i++) memcpy(&x[i], from + i * step, sizeof x[i]);
  y[0] = __builtin_shufflevector(x[0], x[1], 0, 2);
  y[1] = __builtin_shufflevector(x[0], x[1], 1, 3);
  for (int i = 0; i < 2; i++) memcpy(to + i * row_step, &y[i], sizeof y[i]);
}

/* Rows `l` to `end` of one panel, of `columns` columns. The last blocks begin where they end with the panel; what is
 * smaller than a block goes element by element. */
#define DEFINE_TRANSPOSED(name, SIZE, HIGH, SIDE, block)                                              \
  INLINE void name(const char *from, int64_t step, int64_t l, int64_t end, int64_t columns, char *to, \
                   int64_t row_step) {                                                                \
    if (end - l < HIGH || columns < SIDE) {                                                           \
      for (int64_t j = 0; j < columns; j++)                                                           \
        for (int64_t i = l; i < end; i++)                                                             \
          memcpy(to + i * row_step + j * SIZE, from + j * step + i * SIZE, SIZE);                     \
      return;                                                                                         \
    }                                                                                                 \
    for (int64_t at = 0; at < columns; at += SIDE) {                                                  \
      int64_t j = least(at, columns - SIDE);                                                          \
      for (int64_t i = l; i < end; i += HIGH)                                                         \
        block(from + j * step + least(i, end - HIGH) * SIZE, step,                                    \
              to + least(i, end - HIGH) * row_step + j * SIZE, row_step);                             \
    }                                                                                                 \
  }

DEFINE_TRANSPOSED(transposed_4, 4, 4, 8, block_4)
DEFINE_TRANSPOSED(transposed_4_wide, 4, 4, 16, block_4_wide)
DEFINE_TRANSPOSED(transposed_8, 8, 2, 2, block_8)

/* So many rows of a panel stay in the first cache while its columns come. */
INLINE void copy_transposed(const struct panels *p, int64_t size, bool wide, const char *from, int64_t step,
                            char *to) {
  enum { ROWS = 128 };
  for (int64_t j = 0, panel = 0; j < p->columns; j += p->width, panel++)
    for (int64_t l = 0; l < p->rows; l += ROWS) {
      const char *column = from + j * step * size;
      char *at = to + panel * p->panel_step;
      int64_t end = least(l + ROWS, p->rows), columns = least(p->width, p->columns - j);
      if (size == 4 && wide && columns >= 16)
        transposed_4_wide(column, step * size, l, end, columns, at, p->row_step);
      else if (size == 4)
        transposed_4(column, step * size, l, end, columns, at, p->row_step);
      else
        transposed_8(column, step * size, l, end, columns, at, p->row_step);
    }
}

INLINE void turn(int64_t rows, int64_t count, const float *from, int64_t step, float *to, const float *end) {
  enum { HIGH = 4, SIDE = 8, SIZE = sizeof(float) };
  for (int64_t at = 0; at < count; at += HIGH) {
    int64_t i = count < HIGH ? at : least(at, count - HIGH), stop = least(i + HIGH, count);
    if (stop == i + HIGH && end - to >= (stop - 1) * rows + SIDE)
      block_4((const char *)(from + i), step * SIZE, (char *)(to + i * rows), rows * SIZE);
    else
      for (; i < stop; i++)
        for (int64_t r = 0; r < rows; r++) to[i * rows + r] = from[r * step + i];
  }
}

#define DEFINE_PACK(name, wide, attribute)                                                                   \
  attribute static void name(const struct panels *p, int64_t size, bool transposed, const char *from,        \
                             int64_t step, char *to) {                                                       \
    if (transposed)                                                                                          \
      copy_transposed(p, size, wide, from, step, to);                                                        \
    else                                                                                                     \
      copy_rows(p, size, from, step, to);                                                                    \
  }                                                                                                          \
  attribute static void turn_##name(int64_t rows, int64_t count, const float *from, int64_t step, float *to, \
                                    const float *end) {                                                      \
    turn(rows, count, from, step, to, end);                                                                  \
  }

DEFINE_PACK(pack_any, false, )
#if defined(__x86_64__)
DEFINE_PACK(pack_avx2, false, __attribute__((target("avx2"))))
DEFINE_PACK(pack_avx512, true, __attribute__((target("avx512f,avx512vl"))))
#endif

void pack_panels(const struct panels *p, int size, bool transposed, const void *from, int64_t step,
                 void *to) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vl")) {
    pack_avx512(p, size, transposed, from, step, to);
    return;
  }
  if (__builtin_cpu_supports("avx2")) {
    pack_avx2(p, size, transposed, from, step, to);
    return;
  }
#endif
  pack_any(p, size, transposed, from, step, to);
}

void turn_rows(int64_t rows, int64_t count, const float *from, int64_t step, float *to, const float *end) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vl")) {
    turn_pack_avx512(rows, count, from, step, to, end);
    return;
  }
  if (__builtin_cpu_supports("avx2")) {
    turn_pack_avx2(rows, count, from, step, to, end);
    return;
  }
#endif
  turn_pack_any(rows, count, from, step, to, end);
}
