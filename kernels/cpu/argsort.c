/* SPDX-License-Identifier: Apache-2.0 */
/* The places of the elements of each line in ascending order, equal ones in the order in which they stand. Keys become
 * unsigned integers of the same order, and are sorted with their places by one byte after the other, the lowest first;
 * of bytes that are the same in all keys nothing is moved. Short lines are sorted by insertion. */
#include "kernels/cpu/leaf.h"

#include <stdbool.h>
#include <string.h>

struct argsort {
  int64_t outer, length, inner, descending;
};

enum { SHORT = 32, BYTE = 256 };

/* A floating number of bits b as an unsigned one: -0 as 0, NaN behind infinity. */
#define DEFINE_FLOAT(name, F, U)                 \
  static inline U name(F x) {                    \
    U bits, sign = (U)1 << (8 * sizeof(U) - 1);  \
    if (x != x) return (U)-1;                    \
    if (x == 0) return sign;                     \
    memcpy(&bits, &x, sizeof bits);              \
    return bits & sign ? (U)~bits : bits | sign; \
  }
DEFINE_FLOAT(key_f32, float, uint32_t)
DEFINE_FLOAT(key_f64, double, uint64_t)
static inline uint32_t key_i32(int32_t x) { return (uint32_t)x ^ UINT32_C(1) << 31; }
static inline uint64_t key_i64(int64_t x) { return (uint64_t)x ^ UINT64_C(1) << 63; }
static inline uint32_t key_u8(uint8_t x) { return x; }

#define DEFINE_SORT(U)                                                                         \
  struct entry_##U {                                                                           \
    U key;                                                                                     \
    uint32_t place;                                                                            \
  };                                                                                           \
                                                                                               \
  static void insert_##U(struct entry_##U *e, int64_t n) {                                     \
    for (int64_t i = 1; i < n; i++) {                                                          \
      struct entry_##U next = e[i];                                                            \
      int64_t k = i;                                                                           \
      for (; k > 0 && e[k - 1].key > next.key; k--) e[k] = e[k - 1];                           \
      e[k] = next;                                                                             \
    }                                                                                          \
  }                                                                                            \
                                                                                               \
  /* Returns where the entries lie: in e, or in `other`. */                                    \
  static struct entry_##U *sort_##U(struct entry_##U *e, struct entry_##U *other, int64_t n) { \
    static const uint32_t none[sizeof(U)][BYTE];                                               \
    uint32_t count[sizeof(U)][BYTE];                                                           \
    if (n <= SHORT) {                                                                          \
      insert_##U(e, n);                                                                        \
      return e;                                                                                \
    }                                                                                          \
    memcpy(count, none, sizeof count);                                                         \
    for (int64_t i = 0; i < n; i++)                                                            \
      for (unsigned b = 0; b < sizeof(U); b++) count[b][e[i].key >> 8 * b & 255]++;            \
    for (unsigned b = 0; b < sizeof(U); b++) {                                                 \
      uint32_t *to = count[b], begin = 0;                                                      \
      if (to[e[0].key >> 8 * b & 255] == n) continue;                                          \
      for (int v = 0; v < BYTE; v++) {                                                         \
        uint32_t here = to[v];                                                                 \
        to[v] = begin;                                                                         \
        begin += here;                                                                         \
      }                                                                                        \
      for (int64_t i = 0; i < n; i++) other[to[e[i].key >> 8 * b & 255]++] = e[i];             \
      struct entry_##U *swap = e;                                                              \
      e = other;                                                                               \
      other = swap;                                                                            \
    }                                                                                          \
    return e;                                                                                  \
  }
DEFINE_SORT(uint32_t)
DEFINE_SORT(uint64_t)

#define DEFINE(name, T, U, KEY)                                                           \
  static void name(void *const *args, const void *numbers) {                              \
    const struct argsort *n = numbers;                                                    \
    U flip = n->descending ? (U)-1 : 0;                                                   \
    struct entry_##U *e = args[2];                                                        \
    for (int64_t line = 0; line < n->outer * n->inner; line++) {                          \
      int64_t at = line / n->inner * n->length * n->inner + line % n->inner;              \
      const T *x = (const T *)args[0] + at;                                               \
      int32_t *y = (int32_t *)args[1] + at;                                               \
      for (int64_t i = 0; i < n->length; i++)                                             \
        e[i] = (struct entry_##U){KEY(x[i * n->inner]) ^ flip, (uint32_t)i};              \
      const struct entry_##U *sorted = sort_##U(e, e + n->length, n->length);             \
      for (int64_t i = 0; i < n->length; i++) y[i * n->inner] = (int32_t)sorted[i].place; \
    }                                                                                     \
  }
DEFINE(argsort_f32, float, uint32_t, key_f32)
DEFINE(argsort_f64, double, uint64_t, key_f64)
DEFINE(argsort_i32, int32_t, uint32_t, key_i32)
DEFINE(argsort_i64, int64_t, uint64_t, key_i64)
DEFINE(argsort_u8, uint8_t, uint32_t, key_u8)

static size_t scratch(const void *numbers) {
  const struct argsort *n = numbers;
  return 2 * (size_t)n->length * sizeof(struct entry_uint64_t);
}

const struct leaf_functions cpu_argsort = {.f32 = argsort_f32,
                                           .f64 = argsort_f64,
                                           .i32 = argsort_i32,
                                           .i64 = argsort_i64,
                                           .u8 = argsort_u8,
                                           .boolean = argsort_u8,
                                           .scratch = scratch,
                                           .blocks = 1 << 0 | 1 << 1};
