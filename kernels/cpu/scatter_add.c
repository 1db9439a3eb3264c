/* SPDX-License-Identifier: Apache-2.0 */
/* out[index[i]] += values[i] in the order of i, so the sum of rows with one number has one order; nothing for a number
 * that names no row. Integers wrap. */
#include "kernels/cpu/leaf.h"
#include "kernels/cpu/rows.h"

/* The rows of the table from `first` on; in all of a leaf's numbers it is 0. */
struct scatter_numbers {
  struct rows_numbers rows;
  int64_t first;
};

/* Sixteen bytes of a row at a time, which may begin anywhere: each element is added as it is alone. */
#define DEFINE(name, T)                                                                   \
  typedef T name##_lanes __attribute__((vector_size(16), aligned(sizeof(T)), may_alias)); \
  static void name(void *const *args, const void *numbers) {                              \
    enum { LANES = 16 / sizeof(T) };                                                      \
    const struct scatter_numbers s =                                                      \
        *(const struct scatter_numbers *)numbers; /* what is written cannot change it */  \
    const struct rows_numbers n = s.rows;                                                 \
    const void *index = args[1];                                                          \
    const T *values = args[2];                                                            \
    T *out = args[3];                                                                     \
    for (int64_t i = 0; i < n.count; i++) {                                               \
      int64_t row = row_from(&n, s.first, index, i), k = 0;                               \
      if (row < 0) continue;                                                              \
      T *to = out + row * n.width;                                                        \
      const T *from = values + i * n.width;                                               \
      for (; k + LANES <= n.width; k += LANES)                                            \
        *(name##_lanes *)(to + k) += *(const name##_lanes *)(from + k);                   \
      for (; k < n.width; k++) to[k] += from[k];                                          \
    }                                                                                     \
  }

/* Ranges of rows, of which each call looks at all numbers: for narrow rows it does little else. */
static int64_t units(const void *numbers) {
  const struct rows_numbers *n = numbers;
  int64_t most = n->width / 32;
  return n->rows < most ? n->rows : most;
}

static void narrow(void *numbers, char **args, int64_t size, int64_t first, int64_t end) {
  struct scatter_numbers *s = numbers;
  int64_t count = units(numbers), begin = s->rows.rows * first / count;
  s->rows.rows = s->rows.rows * end / count - begin;
  s->first = begin;
  args[3] += begin * s->rows.width * size;
}

LEAF_OF_NUMBERS(scatter_add, .units = units, .narrow = narrow);
