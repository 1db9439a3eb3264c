/* SPDX-License-Identifier: Apache-2.0 */
/* out[n][o][c] = values[n][i][c] for the x[n][i][c] that window o chooses: one takes the place of those before it
 * unless they are greater or equal; 0 where it sees none. */
#include "kernels/cpu/window.h"

#define DEFINE(name, T, attribute)                                                                        \
  attribute static inline void name(const struct window_numbers *s, const struct window_pixel *p,         \
                                    void *const *args) {                                                  \
    typedef T lanes __attribute__((vector_size(WIDTH)));                                                  \
    const T *x = args[0], *end = x + s->batch * window_input(s);                                          \
    const T *values = args[1], *values_end = values + s->batch * window_input(s);                         \
    const T *first = x + p->image * window_input(s) + window_first(s, p);                                 \
    T *y = (T *)args[2] + p->at * s->channels, *y_end = (T *)args[2] + (p->image + 1) * window_output(s); \
    for (int64_t c = 0; c < s->channels; c += LANES(T)) {                                                 \
      lanes best, picked, v, value;                                                                       \
      memset(&best, 255, sizeof best); /* NaN */                                                          \
      memset(&picked, 0, sizeof picked);                                                                  \
      EACH_SEEN(T, v, from, s, p, first + c, end, {                                                       \
        __typeof__(best >= v) taken = ~(best >= v);                                                       \
        LOAD(value, values + (from - x), values_end);                                                     \
        best = CHOOSE(lanes, taken, v, best);                                                             \
        picked = CHOOSE(lanes, taken, value, picked);                                                     \
      })                                                                                                  \
      STORE(y + c, picked, y_end);                                                                        \
    }                                                                                                     \
  }

DEFINE_WINDOW(DEFINE, pick_f32, float, 2)
DEFINE_WINDOW(DEFINE, pick_f64, double, 2)

const struct leaf_functions cpu_window_pick = {
    .f32 = pick_f32, .f64 = pick_f64, .scratch = window_scratch, .blocks = 1 << 0 | 1 << 1 | 1 << 2};
