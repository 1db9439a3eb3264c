/* SPDX-License-Identifier: Apache-2.0 */
/* The input of a convolution from its output, where few channels meet short rows of the kernel: x[n,i,c] = sum of
 * y[n,o,f] w[k,c,f]. Beside each other in x lie all channels of all places of a row of the kernel, at most 32 numbers:
 * a pixel of y adds to that many, for each row, its filters times two vectors of them. Sums of an image are made in
 * one that has all pixels that any place of the kernel meets, from which the image is cut.
 *
 * Each element is a sum over the pixels of y in their order, of which each is a chain of fused multiply-adds over the
 * filters from 0 on. */
#include "kernels/cpu/conv.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

enum { AXES = 3, RUN = 32, MOST_ROWS = 5, MOST_IMAGE = 1 << 16, VECTOR = 64 };

/* Pixels that the kernel meets, on each axis. */
static int64_t reach(const struct conv_numbers *s, int axis) {
  return (s->output[axis] - 1) * s->stride[axis] + (s->kernel[axis] - 1) * s->kernel_dilation[axis] + 1;
}
static int64_t image_size(const struct conv_numbers *s) {
  return reach(s, 0) * reach(s, 1) * reach(s, 2) * s->channels;
}
static int64_t rows_of(const struct conv_numbers *s) { return s->kernel[0] * s->kernel[1]; }

bool conv_is_narrow(const struct conv_numbers *s) {
  bool good = s->result == 0 && s->groups == 1 && s->kernel_dilation[2] == 1 && s->filters >= 4 &&
              s->channels <= 8 && s->channels * s->kernel[2] <= RUN && s->channels * s->kernel[2] > RUN / 4 &&
              __builtin_cpu_supports("avx512f");
  int64_t size = s->channels;
  for (int i = 0; i < AXES; i++) {
    good = good && s->input_dilation[i] == 1 && s->output[i] > 0 && s->kernel[i] > 0 &&
           s->stride[i] <= MOST_IMAGE && s->kernel_dilation[i] <= MOST_IMAGE && s->output[i] <= MOST_IMAGE &&
           s->kernel[i] <= RUN;
    if (good) size *= reach(s, i);
    good = good && size <= MOST_IMAGE;
  }
  return good;
}

static size_t scratch(const void *numbers) {
  const struct conv_numbers *s = numbers;
  if (!conv_is_narrow(s)) return 0;
  return (size_t)(image_size(s) + RUN + rows_of(s) * s->filters * RUN) * sizeof(float) + VECTOR;
}

/* One pixel of y under some rows of the kernel, of which `to` are those of the image. w: for each filter the rows. */
struct pixel {
  const float *y, *w;
  float *const *to;
  int64_t filters, at;
  __mmask16 masks[2]; /* lanes that are numbers of a row */
};

#define AVX512      __attribute__((target("avx512f")))
#define DECLARE1(r) __m512 a##r = _mm512_setzero_ps();
#define DECLARE2(r) DECLARE1(r) __m512 b##r = _mm512_setzero_ps();
#define STEP1(r)    a##r = _mm512_fmadd_ps(y, _mm512_loadu_ps(w + (r)*RUN), a##r);
#define STEP2(r)    STEP1(r) b##r = _mm512_fmadd_ps(y, _mm512_loadu_ps(w + (r)*RUN + 16), b##r);
/* What lies behind a row is left as it is by adding 0: no sum is -0. */
#define ADD(to, v, mask) \
  _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), _mm512_maskz_mov_ps(mask, v)));
#define ADD1(r)  ADD(p->to[r] + p->at, a##r, p->masks[0])
#define ADD2(r)  ADD1(r) ADD(p->to[r] + p->at + 16, b##r, p->masks[1])
#define ROWS1(X) X(0)
#define ROWS2(X) ROWS1(X) X(1)
#define ROWS3(X) ROWS2(X) X(2)
#define ROWS4(X) ROWS3(X) X(3)
#define ROWS5(X) ROWS4(X) X(4)
#define DEFINE(rows, vectors)                                                                \
  AVX512 static void add_##rows##_##vectors(const struct pixel *p) {                         \
    const float *w = p->w;                                                                   \
    ROWS##rows(DECLARE##vectors) for (int64_t f = 0; f < p->filters; f++, w += (rows)*RUN) { \
      __m512 y = _mm512_set1_ps(p->y[f]);                                                    \
      ROWS##rows(STEP##vectors)                                                              \
    }                                                                                        \
    ROWS##rows(ADD##vectors)                                                                 \
  }
DEFINE(1, 1)
DEFINE(2, 1)
DEFINE(3, 1)
DEFINE(4, 1)
DEFINE(5, 1)
DEFINE(1, 2)
DEFINE(2, 2)
DEFINE(3, 2)
DEFINE(4, 2)
DEFINE(5, 2)

typedef void add_fn(const struct pixel *p);
static add_fn *const adds[2][MOST_ROWS + 1] = {{NULL, add_1_1, add_2_1, add_3_1, add_4_1, add_5_1},
                                               {NULL, add_1_2, add_2_2, add_3_2, add_4_2, add_5_2}};

/* How many rows the group has that begins with `row`. */
static int64_t group_rows(const struct conv_numbers *s, int64_t row) {
  return rows_of(s) - row < MOST_ROWS ? rows_of(s) - row : MOST_ROWS;
}

/* Group after group of rows, of each filter all of a group's, as RUN numbers with zeros behind. */
static void pack(const struct conv_numbers *s, const float *w, float *to) {
  int64_t run = s->kernel[2] * s->channels;
  memset(to, 0, (size_t)(rows_of(s) * s->filters * RUN) * sizeof *to);
  for (int64_t row = 0, n; row < rows_of(s); row += n, to += n * s->filters * RUN) {
    n = group_rows(s, row);
    for (int64_t r = 0; r < n; r++)
      for (int64_t e = 0; e < run; e++)
        for (int64_t f = 0; f < s->filters; f++)
          to[(f * n + r) * RUN + e] = w[((row + r) * run + e) * s->filters + f];
  }
}

/* All that the pixels of one image of y add to `image`. */
static void add_pixels(const struct conv_numbers *s, const float *y, const float *packed, float *image) {
  int64_t run = s->kernel[2] * s->channels, line = reach(s, 2) * s->channels;
  struct pixel p = {.filters = s->filters};
  p.masks[0] = (__mmask16)(run >= 16 ? 0xffff : (1 << run) - 1);
  p.masks[1] = (__mmask16)(run > 16 ? (1 << (run - 16)) - 1 : 0);
  for (int64_t row = 0, n; row < rows_of(s); row += n, packed += n * s->filters * RUN) {
    n = group_rows(s, row);
    for (int64_t o = 0; o < s->output[0] * s->output[1]; o++) {
      float *to[MOST_ROWS];
      for (int64_t r = 0; r < n; r++) {
        int64_t i = o / s->output[1] * s->stride[0] + (row + r) / s->kernel[1] * s->kernel_dilation[0];
        int64_t j = o % s->output[1] * s->stride[1] + (row + r) % s->kernel[1] * s->kernel_dilation[1];
        to[r] = image + (i * reach(s, 1) + j) * line;
      }
      p.w = packed, p.to = to;
      for (int64_t k = 0; k < s->output[2]; k++) {
        p.y = y + (o * s->output[2] + k) * s->filters;
        p.at = k * s->stride[2] * s->channels;
        adds[run > 16][n](&p);
      }
    }
  }
}

/* The pixels of x, of the image: those that no place meets are 0. */
static void cut(const struct conv_numbers *s, const float *image, float *x) {
  int64_t first = s->low[2] < 0 ? -s->low[2] : 0, size = reach(s, 2);
  int64_t end = size - s->low[2] < s->input[2] ? size - s->low[2] : s->input[2];
  for (int64_t o = 0; o < s->input[0] * s->input[1]; o++, x += s->input[2] * s->channels) {
    int64_t i = o / s->input[1] + s->low[0], j = o % s->input[1] + s->low[1];
    memset(x, 0, (size_t)(s->input[2] * s->channels) * sizeof *x);
    if (i < 0 || i >= reach(s, 0) || j < 0 || j >= reach(s, 1) || end <= first) continue;
    memcpy(x + first * s->channels, image + ((i * reach(s, 1) + j) * size + first + s->low[2]) * s->channels,
           (size_t)((end - first) * s->channels) * sizeof *x);
  }
}

static void narrow(void *const *args, const void *numbers) {
  const struct conv_numbers *s = numbers;
  int64_t outputs = s->output[0] * s->output[1] * s->output[2] * s->filters;
  int64_t inputs = s->input[0] * s->input[1] * s->input[2] * s->channels;
  float *packed = (float *)(((uintptr_t)args[3] + VECTOR - 1) / VECTOR * VECTOR); /* read twice as fast */
  float *image = packed + rows_of(s) * s->filters * RUN;
  pack(s, args[1], packed);
  for (int64_t n = 0; n < s->batch; n++) {
    memset(image, 0, (size_t)(image_size(s) + RUN) * sizeof *image);
    add_pixels(s, (const float *)args[0] + n * outputs, packed, image);
    cut(s, image, (float *)args[2] + n * inputs);
  }
}

#else

bool conv_is_narrow(const struct conv_numbers *s) {
  (void)s;
  return false;
}
static size_t scratch(const void *numbers) {
  (void)numbers;
  return 0;
}
static void narrow(void *const *args, const void *numbers) { (void)args, (void)numbers; }

#endif

const struct leaf_functions cpu_conv_narrow = {
    .f32 = narrow, .scratch = scratch, .units = conv_units, .narrow = conv_narrow_to};
