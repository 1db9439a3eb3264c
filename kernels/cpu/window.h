/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over images, in the form of ir/ops/window.c: what the kernels of that name share.
 *
 * Channels are done `WIDTH` bytes at a time. Where fewer are left, lanes behind them are those of the next pixel: they
 * are read, and of windows written before the next pixel is, but none behind the image's end. */
#ifndef DGC_KERNELS_CPU_WINDOW_H
#define DGC_KERNELS_CPU_WINDOW_H

#include "base/integer.h"
#include "kernels/cpu/leaf.h"

#include <string.h>

/* The numbers of window_*, in their order: see struct windows of ir/ops/leaf.h. */
struct window_numbers {
  int64_t batch, channels;
  int64_t input[3], size[3], output[3], stride[3], low[3], input_dilation[3], dilation[3];
};

/* What a window sees of an axis. */
struct taps {
  int64_t first, count, step;
};

static inline struct taps window_taps(const struct window_numbers *s, int axis, int64_t o) {
  int64_t low = o * s->stride[axis] - s->low[axis], gap = s->input_dilation[axis], by = s->dilation[axis];
  int64_t high = low + (s->size[axis] - 1) * by;
  int64_t first = low <= 0 ? 0 : blocks_of(low, gap), end = high < 0 ? 0 : high / gap + 1;
  if (end > s->input[axis]) end = s->input[axis];
  while (first < end && (first * gap - low) % by) first++;
  int64_t step = by / common_divisor(by, gap);
  return (struct taps){first, first < end ? (end - first - 1) / step + 1 : 0, step};
}

/* Memory for the taps of all windows of the last axis. */
static inline size_t window_scratch(const void *numbers) {
  return (size_t)((const struct window_numbers *)numbers)->output[2] * sizeof(struct taps);
}

static inline int64_t window_input(const struct window_numbers *s) {
  return s->input[0] * s->input[1] * s->input[2] * s->channels;
}
static inline int64_t window_output(const struct window_numbers *s) {
  return s->output[0] * s->output[1] * s->output[2] * s->channels;
}

/* One pixel of the windows: what it sees of each axis, the image, and the pixel's number among those of all images. */
struct window_pixel {
  struct taps taps[3];
  int64_t image, at;
};

/* Of the elements of an image, the first that p sees. */
static inline int64_t window_first(const struct window_numbers *s, const struct window_pixel *p) {
  const struct taps *t = p->taps;
  return ((t[0].first * s->input[1] + t[1].first) * s->input[2] + t[2].first) * s->channels;
}

#define WIDTH    32
#define LANES(T) (WIDTH / (int64_t)sizeof(T))
/* LANES from `from` on, as many as there are before `end`. */
#define LOAD(v, from, end)                                                            \
  do {                                                                                \
    int64_t left_ = (end) - (from);                                                   \
    if (left_ >= (int64_t)(sizeof(v) / sizeof *(from)))                               \
      memcpy(&(v), from, sizeof(v));                                                  \
    else                                                                              \
      memset(&(v), 0, sizeof(v)), memcpy(&(v), from, (size_t)left_ * sizeof *(from)); \
  } while (0)
#define STORE(to, v, end)                                                     \
  do {                                                                        \
    int64_t left_ = (end) - (to), all_ = (int64_t)(sizeof(v) / sizeof *(to)); \
    if (left_ >= all_)                                                        \
      memcpy(to, &(v), sizeof(v));                                            \
    else                                                                      \
      memcpy(to, &(v), (size_t)left_ * sizeof *(to));                         \
  } while (0)
/* Lanes of a where the mask has all bits, else of b. */
#define CHOOSE(T, mask, a, b) ((T)(((mask) & (__typeof__(mask))(a)) | (~(mask) & (__typeof__(mask))(b))))

/* Elements from the first that pixel p sees of an image to the last. */
static inline int64_t window_reach(const struct window_numbers *s, const struct window_pixel *p) {
  const struct taps *t = p->taps;
  int64_t i = (t[0].count - 1) * t[0].step, j = (t[1].count - 1) * t[1].step,
          k = (t[2].count - 1) * t[2].step;
  return ((i * s->input[1] + j) * s->input[2] + k) * s->channels;
}

/* `from`: LANES channels of each element that pixel p sees, in their order; `first` are those of the first one. They
 * are loaded into v, behind `end` lies nothing. */
#define FOR_SEEN(T, from, s, p, first)                                                                   \
  for (int64_t i_ = 0; i_ < (p)->taps[0].count; i_++)                                                    \
    for (int64_t j_ = 0; j_ < (p)->taps[1].count; j_++)                                                  \
      for (const T *from = (first) + (i_ * (p)->taps[0].step * (s)->input[1] + j_ * (p)->taps[1].step) * \
                                         (s)->input[2] * (s)->channels,                                  \
                   *end_ = from + (p)->taps[2].count * (p)->taps[2].step * (s)->channels;                \
           from < end_; from += (p)->taps[2].step * (s)->channels)
#define EACH_SEEN(T, v, from, s, p, first, end, ...)                                     \
  if ((end) - (first) >= window_reach(s, p) + LANES(T)) FOR_SEEN(T, from, s, p, first) { \
      memcpy(&(v), from, sizeof(v));                                                     \
      __VA_ARGS__                                                                        \
    }                                                                                    \
  else                                                                                   \
    FOR_SEEN(T, from, s, p, first) {                                                     \
      LOAD(v, from, end);                                                                \
      __VA_ARGS__                                                                        \
    }

/* y[n][o][c]: begins as `first`, and `step` is done to `all` of a pixel's channels with each v that its window sees. */
#define DEFINE_FOLD(name, T, attribute, first, step)                                                      \
  attribute static inline void name(const struct window_numbers *s, const struct window_pixel *p,         \
                                    void *const *args) {                                                  \
    typedef T lanes __attribute__((vector_size(WIDTH)));                                                  \
    const T *x = args[0], *end = x + s->batch * window_input(s);                                          \
    const T *seen = x + p->image * window_input(s) + window_first(s, p);                                  \
    T *y = (T *)args[1] + p->at * s->channels, *y_end = (T *)args[1] + (p->image + 1) * window_output(s); \
    for (int64_t c = 0; c < s->channels; c += LANES(T)) {                                                 \
      lanes all, v;                                                                                       \
      for (int i = 0; i < LANES(T); i++) all[i] = first;                                                  \
      EACH_SEEN(T, v, from, s, p, seen + c, end, step)                                                    \
      STORE(y + c, all, y_end);                                                                           \
    }                                                                                                     \
  }

/* `name` does `pixel` for each pixel. */
#define DEFINE_PIXELS(name, pixel, result, attribute)                                                     \
  attribute static void name(void *const *args, const void *numbers) {                                    \
    const struct window_numbers *s = numbers;                                                             \
    struct taps *taps = args[(result) + 1];                                                               \
    struct window_pixel p = {.at = 0};                                                                    \
    for (int64_t o = 0; o < s->output[2]; o++) taps[o] = window_taps(s, 2, o);                            \
    for (p.image = 0; p.image < s->batch; p.image++)                                                      \
      for (int64_t o = 0; o < s->output[0] * s->output[1]; o++) {                                         \
        p.taps[0] = window_taps(s, 0, o / s->output[1]), p.taps[1] = window_taps(s, 1, o % s->output[1]); \
        for (int64_t k = 0; k < s->output[2]; k++, p.at++) p.taps[2] = taps[k], pixel(s, &p, args);       \
      }                                                                                                   \
  }

/* DEFINE(name, T, attribute) defines name_pixel, and this the function `name`: with AVX2 where there is one. */
#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2")))
#define DEFINE_WINDOW(DEFINE, name, T, result)                \
  DEFINE(name##_any_pixel, T, )                               \
  DEFINE(name##_avx2_pixel, T, AVX2)                          \
  DEFINE_PIXELS(name##_any, name##_any_pixel, result, )       \
  DEFINE_PIXELS(name##_avx2, name##_avx2_pixel, result, AVX2) \
  static void name(void *const *args, const void *numbers) {  \
    if (__builtin_cpu_supports("avx2"))                       \
      name##_avx2(args, numbers);                             \
    else                                                      \
      name##_any(args, numbers);                              \
  }
#else
#define DEFINE_WINDOW(DEFINE, name, T, result) \
  DEFINE(name##_pixel, T, )                    \
  DEFINE_PIXELS(name, name##_pixel, result, )
#endif

#endif
