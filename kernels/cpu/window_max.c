/* y[n][o][c] = the greatest of the x[n][i][c] that window o sees: the first of equals, but the last NaN if there is
 * one. */
#include "kernels/cpu/window.h"

#include <math.h>

#define DEFINE(name, T, attribute, least)                                                                 \
  attribute static inline void name(const struct window_numbers *s, const struct window_pixel *p,         \
                                    void *const *args) {                                                  \
    typedef T lanes __attribute__((vector_size(WIDTH)));                                                  \
    const T *x = args[0], *end = x + s->batch * window_input(s);                                          \
    const T *first = x + p->image * window_input(s) + window_first(s, p);                                 \
    T *y = (T *)args[1] + p->at * s->channels, *y_end = (T *)args[1] + (p->image + 1) * window_output(s); \
    for (int64_t c = 0; c < s->channels; c += LANES(T)) {                                                 \
      lanes most, v;                                                                                      \
      for (int i = 0; i < LANES(T); i++) most[i] = least;                                                 \
      EACH_SEEN(T, v, from, s, p, first + c, end, most = CHOOSE(lanes, (v > most) | (v != v), v, most);)  \
      STORE(y + c, most, y_end);                                                                          \
    }                                                                                                     \
  }
#define DEFINE_FLOAT(name, T, attribute) DEFINE(name, T, attribute, -(T)INFINITY)
#define DEFINE_I32(name, T, attribute)   DEFINE(name, T, attribute, INT32_MIN)
#define DEFINE_I64(name, T, attribute)   DEFINE(name, T, attribute, INT64_MIN)
#define DEFINE_U8(name, T, attribute)    DEFINE(name, T, attribute, 0)

DEFINE_WINDOW(DEFINE_FLOAT, max_f32, float, 1)
DEFINE_WINDOW(DEFINE_FLOAT, max_f64, double, 1)
DEFINE_WINDOW(DEFINE_I32, max_i32, int32_t, 1)
DEFINE_WINDOW(DEFINE_I64, max_i64, int64_t, 1)
DEFINE_WINDOW(DEFINE_U8, max_u8, uint8_t, 1)

const struct leaf_functions cpu_window_max = {
    .f32 = max_f32, .f64 = max_f64, .i32 = max_i32, .i64 = max_i64, .u8 = max_u8, .scratch = window_scratch};
