/* SPDX-License-Identifier: Apache-2.0 */
/* out[n][i][c] = the sum of the values[n][o][c] of the windows o that choose x[n][i][c], from 0 on in the order of o:
 * an element takes the place of those before it unless they are greater or equal. */
#include "kernels/cpu/window.h"

/* I is an integer of T's size: an image has fewer elements than it counts. */
#define DEFINE_PUT(name, T, I, attribute)                                                         \
  attribute static inline void name(const struct window_numbers *s, const struct window_pixel *p, \
                                    void *const *args) {                                          \
    typedef T lanes __attribute__((vector_size(WIDTH)));                                          \
    typedef I places __attribute__((vector_size(WIDTH)));                                         \
    int64_t at = p->image * window_input(s) + window_first(s, p);                                 \
    const T *x = (const T *)args[0] + at, *end = (const T *)args[0] + s->batch * window_input(s); \
    const T *values = (const T *)args[1] + p->at * s->channels;                                   \
    T *out = (T *)args[2] + at;                                                                   \
    if (p->taps[0].count * p->taps[1].count * p->taps[2].count == 0) return;                      \
    for (int64_t c = 0; c < s->channels; c += LANES(T)) {                                         \
      int64_t left = s->channels - c < LANES(T) ? s->channels - c : LANES(T);                     \
      lanes best, v;                                                                              \
      places chosen = {0};                                                                        \
      memset(&best, 255, sizeof best); /* NaN */                                                  \
      EACH_SEEN(T, v, from, s, p, x + c, end, {                                                   \
        places taken = (places) ~(best >= v);                                                     \
        best = CHOOSE(lanes, taken, v, best);                                                     \
        chosen = CHOOSE(places, taken, (places){0} + (I)(from - x), chosen);                      \
      })                                                                                          \
      I to[LANES(T)];                                                                             \
      memcpy(to, &chosen, sizeof to);                                                             \
      for (int64_t l = 0; l < left; l++) out[to[l] + l] += values[c + l];                         \
    }                                                                                             \
  }
#define DEFINE_F32(name, T, attribute) DEFINE_PUT(name, T, int32_t, attribute)
#define DEFINE_F64(name, T, attribute) DEFINE_PUT(name, T, int64_t, attribute)

DEFINE_WINDOW(DEFINE_F32, put_pixels_f32, float, 2)
DEFINE_WINDOW(DEFINE_F64, put_pixels_f64, double, 2)

static void put_f32(void *const *args, const void *numbers) {
  const struct window_numbers *s = numbers;
  memset(args[2], 0, (size_t)(s->batch * window_input(s)) * sizeof(float));
  put_pixels_f32(args, numbers);
}

static void put_f64(void *const *args, const void *numbers) {
  const struct window_numbers *s = numbers;
  memset(args[2], 0, (size_t)(s->batch * window_input(s)) * sizeof(double));
  put_pixels_f64(args, numbers);
}

const struct leaf_functions cpu_window_put = {
    .f32 = put_f32, .f64 = put_f64, .scratch = window_scratch, .blocks = 1 << 0 | 1 << 1 | 1 << 2};
