/* y[n][o][c] = the sum of the x[n][i][c] that window o sees, from 0 on in the order of i. Integers wrap. */
#include "kernels/cpu/window.h"

#define DEFINE(name, T, attribute)                                                                        \
  attribute static inline void name(const struct window_numbers *s, const struct window_pixel *p,         \
                                    void *const *args) {                                                  \
    typedef T lanes __attribute__((vector_size(WIDTH)));                                                  \
    const T *x = args[0], *end = x + s->batch * window_input(s);                                          \
    const T *first = x + p->image * window_input(s) + window_first(s, p);                                 \
    T *y = (T *)args[1] + p->at * s->channels, *y_end = (T *)args[1] + (p->image + 1) * window_output(s); \
    for (int64_t c = 0; c < s->channels; c += LANES(T)) {                                                 \
      lanes sum, v;                                                                                       \
      memset(&sum, 0, sizeof sum);                                                                        \
      EACH_SEEN(T, v, from, s, p, first + c, end, sum += v;)                                              \
      STORE(y + c, sum, y_end);                                                                           \
    }                                                                                                     \
  }

DEFINE_WINDOW(DEFINE, sum_f32, float, 1)
DEFINE_WINDOW(DEFINE, sum_f64, double, 1)
DEFINE_WINDOW(DEFINE, sum_u32, uint32_t, 1)
DEFINE_WINDOW(DEFINE, sum_u64, uint64_t, 1)
DEFINE_WINDOW(DEFINE, sum_u8, uint8_t, 1)

const struct leaf_functions cpu_window_sum = {
    .f32 = sum_f32, .f64 = sum_f64, .i32 = sum_u32, .i64 = sum_u64, .u8 = sum_u8, .scratch = window_scratch};
