/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by plain loops: y[n,o,f] = sum of x[n,i,c] w[k,c,f] where o * stride + k * kernel_dilation =
 * i * input_dilation + low, and the same for x and w. Each element is a sum from 0 in a fixed order, each product
 * rounded (integers wrap): of y by k, then c; of x by k, then f; of w by n, then o. */
#include "kernels/cpu/conv.h"

#include <string.h>

enum { AXES = 3 };

static int64_t count(const int64_t *size) { return size[0] * size[1] * size[2]; }

static void unravel(int64_t at, const int64_t *size, int64_t *out) {
  for (int axis = AXES - 1; axis >= 0; axis--) out[axis] = at % size[axis], at /= size[axis];
}

/* The pixel, of those of all inputs, that pixel o of output n meets under the kernel's place `tap`; -1: none. */
static int64_t input_under(const struct conv_numbers *s, int64_t n, const int64_t *o, int64_t tap) {
  int64_t k[AXES], pixel = n;
  unravel(tap, s->kernel, k);
  for (int axis = 0; axis < AXES; axis++) {
    int64_t place = o[axis] * s->stride[axis] + k[axis] * s->kernel_dilation[axis] - s->low[axis];
    int64_t i = place / s->input_dilation[axis];
    if (place < 0 || place % s->input_dilation[axis] || i >= s->input[axis]) return -1;
    pixel = pixel * s->input[axis] + i;
  }
  return pixel;
}

/* The pixel, of those of all outputs, that has pixel i of input n under the kernel's place `tap`; -1: none. */
static int64_t output_over(const struct conv_numbers *s, int64_t n, const int64_t *i, int64_t tap) {
  int64_t k[AXES], pixel = n;
  unravel(tap, s->kernel, k);
  for (int axis = 0; axis < AXES; axis++) {
    int64_t place = i[axis] * s->input_dilation[axis] + s->low[axis] - k[axis] * s->kernel_dilation[axis];
    int64_t o = place / s->stride[axis];
    if (place < 0 || place % s->stride[axis] || o >= s->output[axis]) return -1;
    pixel = pixel * s->output[axis] + o;
  }
  return pixel;
}

/* For each pixel of the output, each place of the kernel and each channel of the input that meet: v times a row of
 * filters is added to another one. Of the rows one is the pixel's in y, one the channel's in w. */
#define DEFINE_MEETING(name, T, SUM, COUNT, TO, FROM)                                                 \
  static void name##_##T(const struct conv_numbers *s, const T *x, const T *other, T *result) {       \
    int64_t filters = s->groups * s->filters, outputs = count(s->output), kernels = count(s->kernel); \
    int64_t o[AXES];                                                                                  \
    memset(result, 0, (size_t)(COUNT) * sizeof *result);                                              \
    for (int64_t at = 0; at < s->batch * outputs; at++) {                                             \
      unravel(at % outputs, s->output, o);                                                            \
      for (int64_t tap = 0; tap < kernels; tap++) {                                                   \
        int64_t pixel = input_under(s, at / outputs, o, tap);                                         \
        if (pixel < 0) continue;                                                                      \
        for (int64_t g = 0; g < s->groups; g++)                                                       \
          for (int64_t c = 0; c < s->channels; c++) {                                                 \
            int64_t in_y = at * filters + g * s->filters,                                             \
                    in_w = (tap * s->channels + c) * filters + g * s->filters;                        \
            T v = x[(pixel * s->groups + g) * s->channels + c];                                       \
            const T *from = other + FROM;                                                             \
            T *to = result + TO;                                                                      \
            for (int64_t f = 0; f < s->filters; f++) to[f] = (T)((SUM)to[f] + (SUM)v * (SUM)from[f]); \
          }                                                                                           \
      }                                                                                               \
    }                                                                                                 \
  }

#define DEFINE_INPUT(T, SUM)                                                                   \
  static void input_##T(const struct conv_numbers *s, const T *y, const T *w, T *x) {          \
    int64_t filters = s->groups * s->filters, channels = s->groups * s->channels;              \
    int64_t inputs = count(s->input), kernels = count(s->kernel), i[AXES];                     \
    memset(x, 0, (size_t)(s->batch * inputs * channels) * sizeof *x);                          \
    for (int64_t at = 0; at < s->batch * inputs; at++) {                                       \
      unravel(at % inputs, s->input, i);                                                       \
      for (int64_t tap = 0; tap < kernels; tap++) {                                            \
        int64_t pixel = output_over(s, at / inputs, i, tap);                                   \
        if (pixel < 0) continue;                                                               \
        for (int64_t c = 0; c < channels; c++) {                                               \
          int64_t g = c / s->channels;                                                         \
          const T *row = w + (tap * s->channels + c % s->channels) * filters + g * s->filters; \
          const T *from = y + pixel * filters + g * s->filters;                                \
          SUM sum = (SUM)x[at * channels + c];                                                 \
          for (int64_t f = 0; f < s->filters; f++) sum += (SUM)from[f] * (SUM)row[f];          \
          x[at * channels + c] = (T)sum;                                                       \
        }                                                                                      \
      }                                                                                        \
    }                                                                                          \
  }

#define DEFINE(T, SUM)                                                        \
  DEFINE_MEETING(output, T, SUM, s->batch *outputs *filters, in_y, in_w)      \
  DEFINE_MEETING(kernel, T, SUM, kernels * s->channels * filters, in_w, in_y) \
  DEFINE_INPUT(T, SUM)                                                        \
  static void conv_##T(void *const *args, const void *numbers) {              \
    const struct conv_numbers *s = numbers;                                   \
    switch (s->result) {                                                      \
    case 0: input_##T(s, args[0], args[1], args[2]); break;                   \
    case 1: kernel_##T(s, args[0], args[1], args[2]); break;                  \
    case 2: output_##T(s, args[0], args[1], args[2]); break;                  \
    }                                                                         \
  }

DEFINE(float, float)
DEFINE(double, double)
DEFINE(uint64_t, uint64_t)
DEFINE(uint32_t, uint32_t)
DEFINE(uint8_t, uint32_t)

/* Whole images, where the result is no kernel: see struct leaf_functions. */
static int64_t units(const void *numbers) {
  const struct conv_numbers *s = numbers;
  return s->result == 1 ? 1 : s->batch;
}

static void narrow(void *numbers, char **args, int64_t size, int64_t first, int64_t end) {
  struct conv_numbers *s = numbers;
  int64_t input = count(s->input) * s->channels, output = count(s->output) * s->filters;
  if (s->result == 1) return;
  args[0] += first * s->groups * (s->result == 0 ? output : input) * size;
  args[2] += first * s->groups * (s->result == 0 ? input : output) * size;
  s->batch = end - first;
}

const struct leaf_functions cpu_conv = {.f32 = conv_float,
                                        .f64 = conv_double,
                                        .i32 = conv_uint32_t,
                                        .i64 = conv_uint64_t,
                                        .u8 = conv_uint8_t,
                                        .units = units,
                                        .narrow = narrow};
