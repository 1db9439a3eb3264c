/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes along groups: what meets is listed for a pixel, or for a place and a piece of the pixels, and each group has
 * its chain of it. What is no term is not in the list. */
#include "kernels/cpu/conv_lanes.h"

#include "base/integer.h"
#include "kernels/cpu/piece_sums.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { THREE = 3 };

/* Where the numbers of the first group lie. */
struct meeting {
  int64_t a, b;
};

bool conv_has_lanes(const struct conv_numbers *s) {
  return s->groups > 1 && s->channels == 1 && s->filters == 1 &&
         s->kernel[0] * s->kernel[1] * s->kernel[2] <= LANES_PIECE;
}

static int64_t met_on(const struct patch_axis *a, int64_t pixel, int64_t place) {
  int64_t at = pixel * a->by_pixel + place * a->by_place + a->low;
  if (at < 0 || (a->gap != 1 && at % a->gap)) return -1;
  if (a->gap != 1) at /= a->gap;
  return at < a->image ? at : -1;
}

static void unravel(const struct patches *p, int64_t row, int64_t *at) {
  for (int i = 2; i >= 0; i--) at[i] = row % p->axis[i].pixels, row /= p->axis[i].pixels;
  at[3] = row;
}

/* All places that meet something of pixel `row`, in their order. */
static int64_t places_met(const struct patches *p, int64_t row, bool turned, struct meeting *out) {
  const struct patch_axis *axis = p->axis;
  int64_t at[4], count = 0, k = 0, places = patches_columns(p);
  unravel(p, row, at);
  for (int64_t k0 = 0; k0 < axis[0].places; k0++) {
    int64_t a0 = met_on(&axis[0], at[0], k0);
    for (int64_t k1 = 0; k1 < axis[1].places; k1++) {
      int64_t a1 = met_on(&axis[1], at[1], k1);
      for (int64_t k2 = 0; k2 < axis[2].places; k2++, k++) {
        int64_t a2 = met_on(&axis[2], at[2], k2);
        if (a0 < 0 || a1 < 0 || a2 < 0) continue;
        int64_t pixel = ((at[3] * axis[0].image + a0) * axis[1].image + a1) * axis[2].image + a2;
        out[count++] = (struct meeting){pixel * p->groups, (turned ? places - 1 - k : k) * p->groups};
      }
    }
  }
  return count;
}

/* Whether all places of the axis meet something. */
static bool is_inside(const struct patch_axis *a, int64_t pixel) {
  int64_t first = pixel * a->by_pixel + a->low;
  return a->gap == 1 && first >= 0 && first + (a->places - 1) * a->by_place < a->image;
}

/* Whether places meet of pixel `row` what they meet of the one before, as much further on as pixels are apart. */
static bool meets_alike(const struct patches *p, int64_t row) {
  const struct patch_axis *a = &p->axis[2];
  int64_t pixel = row % a->pixels;
  return pixel > 0 && is_inside(a, pixel - 1) && is_inside(a, pixel);
}

/* All pixels of `row` to `end` that meet something under place k, in their order. */
static int64_t pixels_met(const struct patches *p, int64_t k, int64_t row, int64_t end, struct meeting *out) {
  const struct patch_axis *axis = p->axis;
  int64_t k2 = k % axis[2].places, k1 = k / axis[2].places % axis[1].places, at[4], count = 0;
  int64_t k0 = k / axis[2].places / axis[1].places;
  while (row < end) {
    unravel(p, row, at);
    int64_t stop = row + axis[2].pixels - at[2] < end ? row + axis[2].pixels - at[2] : end;
    int64_t a0 = met_on(&axis[0], at[0], k0), a1 = met_on(&axis[1], at[1], k1);
    for (int64_t p2 = at[2]; row < stop; row++, p2++) {
      int64_t a2 = met_on(&axis[2], p2, k2);
      if (a0 < 0 || a1 < 0 || a2 < 0) continue;
      int64_t pixel = ((at[3] * axis[0].image + a0) * axis[1].image + a1) * axis[2].image + a2;
      out[count++] = (struct meeting){pixel * p->groups, row * p->groups};
    }
  }
  return count;
}

size_t conv_lanes_memory(const struct patches *p, int64_t pixels) {
  int64_t levels = piece_sums_levels(blocks_of(pixels, LANES_PIECE));
  return (size_t)(levels * patches_columns(p) * p->groups * p->size);
}

#define JOINED(a, b) a##_##b
#define JOIN(a, b)   JOINED(a, b)
#define NAME(name)   JOIN(name, SUFFIX)
/* Loops of constant counts are written out. */
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 8")
#endif

#if defined(__x86_64__)
#define TARGET         __attribute__((target("avx512f")))
#define REAL           float
#define SUFFIX         f32_avx512
#define VECTOR         __m512
#define LANES          16
#define LOAD(p)        _mm512_loadu_ps(p)
#define STORE(p, x)    _mm512_storeu_ps(p, _mm512_add_ps(x, _mm512_setzero_ps()))
#define FMADD(a, b, c) _mm512_fmadd_ps(a, b, c)
#define FMA            __builtin_fmaf
#include "kernels/cpu/conv_lanes.def"
#define REAL           double
#define SUFFIX         f64_avx512
#define VECTOR         __m512d
#define LANES          8
#define LOAD(p)        _mm512_loadu_pd(p)
#define STORE(p, x)    _mm512_storeu_pd(p, _mm512_add_pd(x, _mm512_setzero_pd()))
#define FMADD(a, b, c) _mm512_fmadd_pd(a, b, c)
#define FMA            __builtin_fma
#include "kernels/cpu/conv_lanes.def"
#undef TARGET
#define TARGET         __attribute__((target("avx2,fma")))
#define REAL           float
#define SUFFIX         f32_avx2
#define VECTOR         __m256
#define LANES          8
#define LOAD(p)        _mm256_loadu_ps(p)
#define STORE(p, x)    _mm256_storeu_ps(p, _mm256_add_ps(x, _mm256_setzero_ps()))
#define FMADD(a, b, c) _mm256_fmadd_ps(a, b, c)
#define FMA            __builtin_fmaf
#include "kernels/cpu/conv_lanes.def"
#define REAL           double
#define SUFFIX         f64_avx2
#define VECTOR         __m256d
#define LANES          4
#define LOAD(p)        _mm256_loadu_pd(p)
#define STORE(p, x)    _mm256_storeu_pd(p, _mm256_add_pd(x, _mm256_setzero_pd()))
#define FMADD(a, b, c) _mm256_fmadd_pd(a, b, c)
#define FMA            __builtin_fma
#include "kernels/cpu/conv_lanes.def"
#undef TARGET
#define CALL(function)                                        \
  bool f32 = c->patches->size == 4;                           \
  if (__builtin_cpu_supports("avx512f"))                      \
    (f32 ? function##_f32_avx512 : function##_f64_avx512)(c); \
  else                                                        \
    (f32 ? function##_f32_avx2 : function##_f64_avx2)(c);
#else
/* Compilers make vectors of it where the machine has them. */
#define TARGET
static inline float fma_of_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double fma_of_f64(double a, double b, double c) { return __builtin_fma(a, b, c); }
typedef struct {
  float x[4];
} four;
typedef struct {
  double x[2];
} two;
#define DEFINE_VECTOR(V, T, count, fma)                                   \
  static inline V load_##V(const T *p) {                                  \
    V v;                                                                  \
    memcpy(&v, p, sizeof v);                                              \
    return v;                                                             \
  }                                                                       \
  static inline void store_##V(T *p, V v) {                               \
    for (int i = 0; i < count; i++) p[i] = v.x[i] + 0;                    \
  }                                                                       \
  static inline V fmadd_##V(V a, V b, V c) {                              \
    for (int i = 0; i < count; i++) c.x[i] = fma(a.x[i], b.x[i], c.x[i]); \
    return c;                                                             \
  }
DEFINE_VECTOR(four, float, 4, fma_of_f32)
DEFINE_VECTOR(two, double, 2, fma_of_f64)
#define REAL           float
#define SUFFIX         f32_any
#define VECTOR         four
#define LANES          4
#define LOAD(p)        load_four(p)
#define STORE(p, x)    store_four(p, x)
#define FMADD(a, b, c) fmadd_four(a, b, c)
#define FMA            __builtin_fmaf
#include "kernels/cpu/conv_lanes.def"
#define REAL           double
#define SUFFIX         f64_any
#define VECTOR         two
#define LANES          2
#define LOAD(p)        load_two(p)
#define STORE(p, x)    store_two(p, x)
#define FMADD(a, b, c) fmadd_two(a, b, c)
#define FMA            __builtin_fma
#include "kernels/cpu/conv_lanes.def"
#undef TARGET
#define CALL(function) (c->patches->size == 4 ? function##_f32_any : function##_f64_any)(c);
#endif

void conv_lanes_pixels(const struct lanes_call *c) { CALL(pixels) }
void conv_lanes_kernel(const struct lanes_call *c) { CALL(kernel) }
