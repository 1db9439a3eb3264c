/* Panels: whole vectors are copied where they can be; what is transposed goes by squares of one vector a side. */
#include "kernels/cpu/pack.h"

#include <string.h>

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void copy_row(char *to, const char *from, int64_t bytes) {
  for (; bytes >= 64; bytes -= 64, to += 64, from += 64) memcpy(to, from, 64);
  if (bytes & 32) memcpy(to, from, 32), to += 32, from += 32;
  if (bytes & 16) memcpy(to, from, 16), to += 16, from += 16;
  if (bytes & 8) memcpy(to, from, 8), to += 8, from += 8;
  if (bytes & 4) memcpy(to, from, 4);
}

static void copy_rows(const struct panels *p, int size, const char *from, int64_t step, char *to) {
  for (int64_t l = 0; l < p->rows; l++)
    for (int64_t j = 0, panel = 0; j < p->columns; j += p->width, panel++)
      copy_row(to + panel * p->panel_step + l * p->row_step, from + (l * step + j) * size,
               least(p->width, p->columns - j) * size);
}

typedef uint32_t four __attribute__((vector_size(16)));
typedef uint64_t two __attribute__((vector_size(16)));

static void square_4(const char *from, int64_t step, char *to, int64_t row_step) {
  four x[4], low[2], high[2];
  for (int i = 0; i < 4; i++) memcpy(&x[i], from + i * step, sizeof x[i]);
  for (int i = 0; i < 2; i++) {
    low[i] = __builtin_shufflevector(x[2 * i], x[2 * i + 1], 0, 4, 1, 5);
    high[i] = __builtin_shufflevector(x[2 * i], x[2 * i + 1], 2, 6, 3, 7);
  }
  x[0] = __builtin_shufflevector(low[0], low[1], 0, 1, 4, 5);
  x[1] = __builtin_shufflevector(low[0], low[1], 2, 3, 6, 7);
  x[2] = __builtin_shufflevector(high[0], high[1], 0, 1, 4, 5);
  x[3] = __builtin_shufflevector(high[0], high[1], 2, 3, 6, 7);
  for (int i = 0; i < 4; i++) memcpy(to + i * row_step, &x[i], sizeof x[i]);
}

static void square_8(const char *from, int64_t step, char *to, int64_t row_step) {
  two x[2], y[2];
  for (int i = 0; i < 2; i++) memcpy(&x[i], from + i * step, sizeof x[i]);
  y[0] = __builtin_shufflevector(x[0], x[1], 0, 2);
  y[1] = __builtin_shufflevector(x[0], x[1], 1, 3);
  for (int i = 0; i < 2; i++) memcpy(to + i * row_step, &y[i], sizeof y[i]);
}

/* Rows `l` to `end` of one panel, of `columns` columns. */
#define DEFINE_TRANSPOSED(name, SIZE, SIDE, square)                                                   \
  static void name(const char *from, int64_t step, int64_t l, int64_t end, int64_t columns, char *to, \
                   int64_t row_step) {                                                                \
    int64_t wide = columns / SIDE * SIDE, high = l + (end - l) / SIDE * SIDE;                         \
    for (int64_t j = 0; j < wide; j += SIDE)                                                          \
      for (int64_t i = l; i < high; i += SIDE)                                                        \
        square(from + j * step + i * SIZE, step, to + i * row_step + j * SIZE, row_step);             \
    for (int64_t j = 0; j < columns; j++)                                                             \
      for (int64_t i = j < wide ? high : l; i < end; i++)                                             \
        memcpy(to + i * row_step + j * SIZE, from + j * step + i * SIZE, SIZE);                       \
  }

DEFINE_TRANSPOSED(transposed_4, 4, 4, square_4)
DEFINE_TRANSPOSED(transposed_8, 8, 2, square_8)

/* Rows of a panel that stay in the first cache while its columns come. */
static void copy_transposed(const struct panels *p, int size, const char *from, int64_t step, char *to) {
  enum { ROWS = 128 };
  for (int64_t j = 0, panel = 0; j < p->columns; j += p->width, panel++)
    for (int64_t l = 0; l < p->rows; l += ROWS)
      (size == 4 ? transposed_4 : transposed_8)(from + j * step * size, step * size, l,
                                                least(l + ROWS, p->rows), least(p->width, p->columns - j),
                                                to + panel * p->panel_step, p->row_step);
}

void pack_panels(const struct panels *p, int size, bool transposed, const void *from, int64_t step,
                 void *to) {
  if (transposed)
    copy_transposed(p, size, from, step, to);
  else
    copy_rows(p, size, from, step, to);
}
