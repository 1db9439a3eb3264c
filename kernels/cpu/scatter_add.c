/* SPDX-License-Identifier: Apache-2.0 */
/* out[index[i]] += values[i] in the order of i, so the sum of rows with one number has one order; nothing for a number
 * that names no row. Integers wrap. To numbers of 16 bits values of f32 are added, and the sum of a row is rounded
 * once. */
#include "base/half.h"
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

/* ---- numbers of 16 bits ---- */

enum { NONE = -1, BLOCK = 256 };

/* In the scratch: the numbers that name one row are a list. */
struct lists {
  int64_t slots;  /* a power of two, at least twice as many as there are numbers */
  int64_t *named; /* by slot: the first number of a row, or NONE; a row is at its hash or behind it */
  int64_t *next;  /* by number: the next one of its list, or NONE */
  int64_t *last;  /* of the first of a list: its last one; NONE of all others */
};

static int64_t slots_of(int64_t count) {
  int64_t slots = 2;
  while (slots < 2 * count) slots *= 2;
  return slots;
}

static size_t scratch(const void *numbers) {
  const struct rows_numbers *n = numbers;
  return n->element_bytes == 2 ? (size_t)(slots_of(n->count) + 2 * n->count) * sizeof(int64_t) : 0;
}

static void list_rows(const struct scatter_numbers *s, const void *index, void *room, struct lists *l) {
  const struct rows_numbers *n = &s->rows;
  l->slots = slots_of(n->count);
  l->named = room;
  l->next = l->named + l->slots;
  l->last = l->next + n->count;
  for (int64_t i = 0; i < l->slots; i++) l->named[i] = NONE;
  for (int64_t i = 0; i < n->count; i++) {
    int64_t row = row_from(n, s->first, index, i);
    l->next[i] = l->last[i] = NONE;
    if (row < 0) continue;
    int64_t at = (int64_t)((uint64_t)row * 0x9e3779b97f4a7c15 >> 32) & (l->slots - 1);
    while (l->named[at] >= 0 && row_from(n, s->first, index, l->named[at]) != row)
      at = (at + 1) & (l->slots - 1);
    int64_t first = l->named[at];
    if (first < 0) {
      l->named[at] = l->last[i] = i;
      continue;
    }
    l->next[l->last[first]] = i;
    l->last[first] = i;
  }
}

#define DEFINE_HALF(name, narrowed, widened)                                               \
  static void name(void *const *args, const void *numbers) {                               \
    const struct scatter_numbers s = *(const struct scatter_numbers *)numbers;             \
    const float *values = args[2];                                                         \
    int64_t width = s.rows.width;                                                          \
    struct lists l;                                                                        \
    list_rows(&s, args[1], args[4], &l);                                                   \
    for (int64_t i = 0; i < s.rows.count; i++) {                                           \
      if (l.last[i] < 0) continue;                                                         \
      uint16_t *to = (uint16_t *)args[3] + row_from(&s.rows, s.first, args[1], i) * width; \
      for (int64_t k = 0; k < width; k += BLOCK) {                                         \
        float sum[BLOCK];                                                                  \
        int64_t most = width - k < BLOCK ? width - k : BLOCK;                              \
        for (int64_t j = 0; j < most; j++) sum[j] = widened(to[k + j]);                    \
        for (int64_t e = i; e >= 0; e = l.next[e])                                         \
          for (int64_t j = 0; j < most; j++) sum[j] += values[e * width + k + j];          \
        for (int64_t j = 0; j < most; j++) to[k + j] = narrowed(sum[j]);                   \
      }                                                                                    \
    }                                                                                      \
  }
DEFINE_HALF(scatter_add_bf16, bf16_of_f32, f32_of_bf16)
DEFINE_HALF(scatter_add_f16, f16_of_f32, f32_of_f16)

LEAF_OF_NUMBERS(scatter_add, .bf16 = scatter_add_bf16, .f16 = scatter_add_f16, .scratch = scratch,
                .units = units, .narrow = narrow);
