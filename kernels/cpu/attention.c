/* SPDX-License-Identifier: Apache-2.0 */
/* y[i] = sum over the keys j that row i sees of p[j] v[j], p the softmax of q[i] . k[j] / sqrt(size); and its
 * derivatives.
 *
 * QUERIES rows of a head at a time, each in a lane of vectors: scores lie in memory as [key][row], so that sums over
 * keys go on in every lane by itself, and every product is the same one (attention_lanes.def). The softmax of the
 * rows is made of KEYS keys after KEYS keys: what has been summed up is multiplied by 2^(top before - top now) when a
 * greater score is found. The derivatives need the whole row's sum first: they hold all scores of the QUERIES rows.
 *
 * Each product is a chain of fused multiply-adds, over the numbers of a head, over keys or over rows from the first
 * on: vectors of any width give the same bits, and so the interpreter runs this, too, with --bits portable. All is
 * fixed by the shape, and a head is a piece of work of its own.
 *
 * Keys that are not seen have a weight of 0, and what is 0 times NaN or Inf is not: where a result is not finite it
 * is computed again by the slow functions here, of the pairs alone that see each other. So is one of which all scores
 * are -Inf: rows of q are multiplied by 1.44 / sqrt(size) before, and they or their scores may leave the range of the
 * type where q and the scores do not. */
#include "kernels/cpu/attention.h"

#include "base/integer.h"
#include "base/line.h"

#include <float.h>
#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Rows of queries and of keys that are worked on together; rows of keys where some queries do not see them. Rows of
 * heads are filled up to a multiple of PAD numbers, of which the first begins a line of the cache. */
enum { QUERIES = 64, KEYS = 64, EDGE = 16, PAD = 16 };

static int64_t padded(int64_t size) { return round_up(size, PAD); }

/* A head of a row of the batch: how far apart its rows of q and k, and of v and y, lie. */
struct attention_head {
  const struct attention_numbers *s;
  const uint8_t *mask; /* NULL: none */
  int64_t row, row_values;
  double scale;
};

static struct attention_head head_of(const struct attention_numbers *s, const void *mask, int64_t b,
                                     int64_t h) {
  struct attention_head x = {s, mask, s->heads * s->size, s->heads * s->values, 1 / sqrt((double)s->size)};
  if (mask) x.mask += b * s->mask_step[0] + h * s->mask_step[1];
  return x;
}

/* Where head `at` of all rows begins: in q; in k; in v; in y. */
struct attention_at {
  int64_t q, k, v, y;
};

static struct attention_at find_head(const struct attention_head *x, int64_t at) {
  const struct attention_numbers *s = x->s;
  int64_t b = at / s->heads, h = at % s->heads;
  return (struct attention_at){b * s->queries * x->row + h * s->size, b * s->keys * x->row + h * s->size,
                               b * s->keys * x->row_values + h * s->values,
                               b * s->queries * x->row_values + h * s->values};
}

/* The first of the keys that no query before `end` sees. */
static int64_t keys_before(const struct attention_numbers *s, int64_t end) {
  return s->causal ? least(end, s->keys) : s->keys;
}

/* Rows that are wanted soon, of several tensors: each product asks for some of them, so that they come from memory
 * while it is computed. Heads lie side by side: a head has a few lines of each row. */
struct wanted_soon {
  struct {
    const char *at;
    int64_t step, rows, bytes;
    int written;
  } all[8];
  int count, now;
  int64_t row;
};

static void add_ahead(struct wanted_soon *x, const void *at, int64_t step, int64_t rows, int64_t bytes,
                      int written) {
  if (rows == 0) return;
  x->all[x->count].at = at;
  x->all[x->count].step = step;
  x->all[x->count].rows = rows;
  x->all[x->count].bytes = bytes;
  x->all[x->count++].written = written;
}

/* ---- the slow way: of any numbers ---- */

static int is_seen(const struct attention_head *x, int64_t i, int64_t j) {
  if (x->s->causal && j > i) return 0;
  return !x->mask || x->mask[i * x->s->mask_step[2] + j * x->s->mask_step[3]];
}

/* Whether row i sees a key. Where each number of a mask is as the one before, all are as the first. */
static int sees_any(const struct attention_head *x, int64_t i) {
  int64_t keys = keys_before(x->s, i + 1);
  if (!x->mask || keys == 0) return keys > 0;
  const uint8_t *m = x->mask + i * x->s->mask_step[2];
  return m[0] || (x->s->mask_step[3] && memcmp(m, m + 1, (size_t)(keys - 1)) != 0);
}

/* 2^x of x <= 0. */
static double exp2_of(double x) {
  static const double c[] = {0x1.62e42fefa39efp-1,  0x1.ebfbdff82c58fp-3,  0x1.c6b08d704a0c6p-5,
                             0x1.3b2ab6fba4e79p-7,  0x1.5d87fe78a3f9cp-10, 0x1.430912f86b7dbp-13,
                             0x1.ffcbfc6da6ed1p-17, 0x1.62c02242b879cp-20, 0x1.b524ebd13a55fp-24,
                             0x1.e4cf10dec0f59p-28, 0x1.e9ec1fcb69a7fp-32, 0x1.c4a29324a1038p-36};
  if (!(x > -1074)) return x != x ? x : 0;
  double n = rint(x), f = x - n, y = 0;
  for (int i = 11; i >= 0; i--) y = (y + c[i]) * f;
  return ldexp(1 + y, (int)n);
}

#define PER_TWO 0x1.71547652b82fep+0 /* 1 / log(2) */

#define DEFINE_SLOW(T, suffix)                                                                            \
  static double dot_##suffix(const T *a, const T *b, int64_t count) {                                     \
    double sum = 0;                                                                                       \
    for (int64_t i = 0; i < count; i++) sum += (double)a[i] * (double)b[i];                               \
    return sum;                                                                                           \
  }                                                                                                       \
  /* A number of its type, as an exponent of two. */                                                      \
  static double score_##suffix(const struct attention_head *x, const T *q, const T *k, int64_t i,         \
                               int64_t j) {                                                               \
    double s = dot_##suffix(q + i * x->row, k + j * x->row, x->s->size) * x->scale;                       \
    return isinf((T)s) ? (double)(T)s : s * PER_TWO;                                                      \
  }                                                                                                       \
  /* The greatest score of row i, and the sum of the weights. */                                          \
  static double top_##suffix(const struct attention_head *x, const T *q, const T *k, int64_t i,           \
                             double *sum) {                                                               \
    double top = -(double)INFINITY;                                                                       \
    *sum = 0;                                                                                             \
    for (int64_t j = 0; j < x->s->keys; j++) {                                                            \
      if (!is_seen(x, i, j)) continue;                                                                    \
      double v = score_##suffix(x, q, k, i, j);                                                           \
      if (v > top || v != v) top = v;                                                                     \
    }                                                                                                     \
    if (top == -(double)INFINITY) return top;                                                             \
    for (int64_t j = 0; j < x->s->keys; j++)                                                              \
      if (is_seen(x, i, j)) *sum += exp2_of(score_##suffix(x, q, k, i, j) - top);                         \
    return top;                                                                                           \
  }                                                                                                       \
  static void row_##suffix(const struct attention_head *x, const T *q, const T *k, const T *v, T *y,      \
                           int64_t i) {                                                                   \
    double sum, top = top_##suffix(x, q, k, i, &sum);                                                     \
    y += i * x->row_values;                                                                               \
    memset(y, 0, (size_t)x->s->values * sizeof *y);                                                       \
    for (int64_t j = 0; j < x->s->keys && top != -(double)INFINITY; j++) {                                \
      if (!is_seen(x, i, j)) continue;                                                                    \
      double p = exp2_of(score_##suffix(x, q, k, i, j) - top) / sum;                                      \
      for (int64_t d = 0; d < x->s->values; d++) y[d] += (T)(p * (double)v[j * x->row_values + d]);       \
    }                                                                                                     \
  }                                                                                                       \
  /* What row i adds to the derivatives. */                                                               \
  static void add_row_##suffix(const struct attention_head *x, const T *const *in, T *const *out,         \
                               int64_t i) {                                                               \
    const T *q = in[0], *k = in[1], *v = in[2], *y = in[3] + i * x->row_values;                           \
    const T *dy = in[4] + i * x->row_values;                                                              \
    double sum, top = top_##suffix(x, q, k, i, &sum), dots = dot_##suffix(dy, y, x->s->values);           \
    for (int64_t j = 0; j < x->s->keys && top != -(double)INFINITY; j++) {                                \
      if (!is_seen(x, i, j)) continue;                                                                    \
      double p = exp2_of(score_##suffix(x, q, k, i, j) - top) / sum;                                      \
      double ds = p * (dot_##suffix(dy, v + j * x->row_values, x->s->values) - dots) * x->scale;          \
      for (int64_t d = 0; d < x->s->size; d++) {                                                          \
        out[0][i * x->row + d] += (T)(ds * (double)k[j * x->row + d]);                                    \
        out[1][j * x->row + d] += (T)(ds * (double)q[i * x->row + d]);                                    \
      }                                                                                                   \
      for (int64_t d = 0; d < x->s->values; d++) out[2][j * x->row_values + d] += (T)(p * (double)dy[d]); \
    }                                                                                                     \
  }                                                                                                       \
  static void slow_head_##suffix(const struct attention_head *x, const T *const *in, T *const *out) {     \
    const struct attention_numbers *s = x->s;                                                             \
    for (int64_t i = 0; i < s->queries; i++) memset(out[0] + i * x->row, 0, (size_t)s->size * sizeof(T)); \
    for (int64_t j = 0; j < s->keys; j++) {                                                               \
      memset(out[1] + j * x->row, 0, (size_t)s->size * sizeof(T));                                        \
      memset(out[2] + j * x->row_values, 0, (size_t)s->values * sizeof(T));                               \
    }                                                                                                     \
    for (int64_t i = 0; i < s->queries; i++) add_row_##suffix(x, in, out, i);                             \
  }

DEFINE_SLOW(float, f32)
DEFINE_SLOW(double, f64)

/* ---- the fast way, for each element type and kind of vectors ---- */

#define JOINED(a, b) a##_##b
#define JOIN(a, b)   JOINED(a, b)
#define NAME(name)   JOIN(name, SUFFIX)
#define SLOW(name)   JOIN(name, TYPE)

/* Loops of constant counts are written out, and so are the functions that they stand in; not where sanitizers check
 * each access, which compilers would take half a minute for. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHECKED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CHECKED
#endif
#endif
#if defined(CHECKED)
#define UNROLLED
#define WRITTEN_OUT
#elif defined(__clang__)
#define UNROLLED    _Pragma("clang loop unroll(full)")
#define WRITTEN_OUT __attribute__((always_inline))
#else
#define UNROLLED    _Pragma("GCC unroll 8")
#define WRITTEN_OUT __attribute__((always_inline))
#endif

#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)

#if defined(__x86_64__)
#define TARGET         __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,prfchw")))
#define BYTES          64
#define VECTORS        4
#define TYPE           f32
#define SUFFIX         f32_avx512
#define ALL(x)         _mm512_set1_ps(x)
#define FMADD(a, b, c) _mm512_fmadd_ps(a, b, c)
#define GREATEST(a, b) _mm512_max_ps(a, b)
#include "kernels/cpu/attention_lanes.def"
#define TYPE           f64
#define SUFFIX         f64_avx512
#define ALL(x)         _mm512_set1_pd(x)
#define FMADD(a, b, c) _mm512_fmadd_pd(a, b, c)
#define GREATEST(a, b) _mm512_max_pd(a, b)
#include "kernels/cpu/attention_lanes.def"
#undef TARGET
#undef BYTES
#undef VECTORS
#define TARGET         __attribute__((target("avx2,fma,prfchw")))
#define BYTES          32
#define VECTORS        2
#define TYPE           f32
#define SUFFIX         f32_avx2
#define ALL(x)         _mm256_set1_ps(x)
#define FMADD(a, b, c) _mm256_fmadd_ps(a, b, c)
#define GREATEST(a, b) _mm256_max_ps(a, b)
#include "kernels/cpu/attention_lanes.def"
#define TYPE           f64
#define SUFFIX         f64_avx2
#define ALL(x)         _mm256_set1_pd(x)
#define FMADD(a, b, c) _mm256_fmadd_pd(a, b, c)
#define GREATEST(a, b) _mm256_max_pd(a, b)
#include "kernels/cpu/attention_lanes.def"
#undef TARGET
#undef BYTES
#undef VECTORS
#endif

#define TARGET
#define BYTES   16
#define VECTORS 2
#define TYPE    f32
#define SUFFIX  f32_any
#include "kernels/cpu/attention_lanes.def"
#define TYPE   f64
#define SUFFIX f64_any
#include "kernels/cpu/attention_lanes.def"

#define WIDTH(suffix) \
  { forward_f32_##suffix, forward_f64_##suffix, backward_f32_##suffix, backward_f64_##suffix }
const struct attention_width attention_widths[] = {
    WIDTH(any),
#if defined(__x86_64__)
    WIDTH(avx2),
    WIDTH(avx512),
#endif
};

int attention_widths_here(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq"))
    return 3;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 2;
#endif
  return 1;
}

#define DEFINE(name, function)                                             \
  void name(void *const *args, const void *numbers) {                      \
    attention_widths[attention_widths_here() - 1].function(args, numbers); \
  }
static leaf_fn attention_f32, attention_f64;
DEFINE(attention_f32, f32)
DEFINE(attention_f64, f64)
DEFINE(attention_gradient_f32, gradient_f32)
DEFINE(attention_gradient_f64, gradient_f64)

int64_t attention_units(const void *numbers) {
  const struct attention_numbers *s = numbers;
  return s->end;
}

void attention_narrow(void *numbers, char **args, int64_t size, int64_t first, int64_t end) {
  struct attention_numbers *s = numbers;
  (void)args, (void)size;
  s->first = first;
  s->end = end;
}

/* As many elements as the functions take, of eight bytes. */
size_t attention_scratch(const void *numbers) {
  const struct attention_numbers *s = numbers;
  if (s->batch == 0 || s->heads == 0) return CACHE_LINE;
  int64_t packed = s->keys * (padded(s->size) + padded(s->values));
  return (size_t)(QUERIES * (s->size + s->values + KEYS + 3) + packed) * sizeof(double) + CACHE_LINE;
}

size_t attention_gradient_scratch(const void *numbers) {
  const struct attention_numbers *s = numbers;
  if (s->batch == 0 || s->heads == 0) return CACHE_LINE;
  int64_t rows = QUERIES * (2 * s->size + 2 * s->values + s->keys + KEYS + 4);
  return (size_t)(rows + (QUERIES + 2 * s->keys) * (padded(s->size) + padded(s->values))) * sizeof(double) +
         CACHE_LINE;
}

const struct leaf_functions cpu_attention = {.f32 = attention_f32,
                                             .f64 = attention_f64,
                                             .scratch = attention_scratch,
                                             .units = attention_units,
                                             .narrow = attention_narrow};
