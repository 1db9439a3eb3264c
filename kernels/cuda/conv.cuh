/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of convolutions share: sizes, which pixels meet, and one element alone. */
struct conv_numbers {
  long long result; /* 0: the input, 1: the kernel, 2: the output */
  long long batch, groups, channels, filters;
  long long input[3], kernel[3], output[3];
  long long stride[3], low[3], input_dilation[3], kernel_dilation[3];
};

__device__ static inline long long conv_count(const long long *size) { return size[0] * size[1] * size[2]; }

/* Pixel i of the input that pixel o of the output meets under place k; -1: none. */
__device__ static inline long long input_under(const struct conv_numbers *s, long long o, long long k) {
  long long pixel = 0, size = 1;
  for (int axis = 2; axis >= 0; axis--) {
    long long place = o % s->output[axis] * s->stride[axis] + k % s->kernel[axis] * s->kernel_dilation[axis] - s->low[axis];
    long long i = place / s->input_dilation[axis];
    if (place < 0 || place % s->input_dilation[axis] || i >= s->input[axis]) return -1;
    o /= s->output[axis];
    k /= s->kernel[axis];
    pixel += i * size;
    size *= s->input[axis];
  }
  return pixel;
}

/* Pixel o of the output that has pixel i of the input under place k; -1: none. */
__device__ static inline long long output_over(const struct conv_numbers *s, long long i, long long k) {
  long long pixel = 0, size = 1;
  for (int axis = 2; axis >= 0; axis--) {
    long long place = i % s->input[axis] * s->input_dilation[axis] + s->low[axis] - k % s->kernel[axis] * s->kernel_dilation[axis];
    long long o = place / s->stride[axis];
    if (place < 0 || place % s->stride[axis] || o >= s->output[axis]) return -1;
    i /= s->input[axis];
    k /= s->kernel[axis];
    pixel += o * size;
    size *= s->output[axis];
  }
  return pixel;
}

__device__ static SUM output_at(const struct conv_numbers *s, const TYPE *x, const TYPE *w, long long e) {
  long long filters = s->groups * s->filters, f = e % filters, outputs = conv_count(s->output), y = e / filters;
  long long kernels = conv_count(s->kernel), image = y / outputs * conv_count(s->input);
  SUM sum = 0;
  for (long long k = 0; k < kernels; k++) {
    long long pixel = input_under(s, y % outputs, k);
    if (pixel < 0) continue;
    const TYPE *from = x + ((image + pixel) * s->groups + f / s->filters) * s->channels;
    const TYPE *by = w + k * s->channels * filters + f;
    for (long long c = 0; c < s->channels; c++) sum += (SUM)from[c] * (SUM)by[c * filters];
  }
  return sum;
}

__device__ static SUM input_at(const struct conv_numbers *s, const TYPE *y, const TYPE *w, long long e) {
  long long channels = s->groups * s->channels, channel = e % channels, inputs = conv_count(s->input), x = e / channels;
  long long filters = s->groups * s->filters, group = channel / s->channels, kernels = conv_count(s->kernel);
  long long image = x / inputs * conv_count(s->output);
  SUM sum = 0;
  for (long long k = 0; k < kernels; k++) {
    long long pixel = output_over(s, x % inputs, k);
    if (pixel < 0) continue;
    const TYPE *from = y + (image + pixel) * filters + group * s->filters;
    const TYPE *by = w + (k * s->channels + channel % s->channels) * filters + group * s->filters;
    for (long long f = 0; f < s->filters; f++) sum += (SUM)from[f] * (SUM)by[f];
  }
  return sum;
}

/* An element of the kernel, of each `step`th pixel of the output from `first` to before `end`. */
__device__ static SUM kernel_share(const struct conv_numbers *s, const TYPE *x, const TYPE *y, long long e, long long first,
                                   long long end, int step) {
  long long filters = s->groups * s->filters, f = e % filters, outputs = conv_count(s->output), inputs = conv_count(s->input);
  long long channel = f / s->filters * s->channels + e / filters % s->channels, k = e / filters / s->channels;
  SUM sum = 0;
  for (long long at = first; at < end; at += step) {
    long long pixel = input_under(s, at % outputs, k);
    if (pixel >= 0)
      sum += (SUM)x[(at / outputs * inputs + pixel) * s->groups * s->channels + channel] * (SUM)y[at * filters + f];
  }
  return sum;
}

/* Sizes that are counted in int. */
__device__ static inline int conv_is_small(const struct conv_numbers *s) {
  for (int i = 0; i < 3; i++)
    if (s->output[i] * s->stride[i] + s->input[i] * s->input_dilation[i] + s->kernel[i] * s->kernel_dilation[i] > 1 << 29 ||
        s->low[i] > 1 << 29 || s->low[i] < -(1 << 29))
      return 0;
  if (conv_count(s->input) > 1 << 30 || conv_count(s->output) > 1 << 30) return 0; /* a pixel is an int */
  return conv_count(s->kernel) * (s->channels + s->filters) < 1 << 30;
}

/* Where a row begins on each axis under place 0 of the kernel. */
__device__ static inline void row_begin(const struct conv_numbers *s, int forward, long long pixel, int *begin) {
  for (int axis = 2; axis >= 0; axis--) {
    long long size = forward ? s->output[axis] : s->input[axis], at = pixel % size;
    begin[axis] = (int)(forward ? at * s->stride[axis] - s->low[axis] : at * s->input_dilation[axis] + s->low[axis]);
    pixel /= size;
  }
}

/* The pixel that a row sees under a place of the kernel; -1: none. */
__device__ static inline int seen_pixel(const struct conv_numbers *s, int forward, const int *begin, int tap) {
  int pixel = 0, size = 1;
  for (int axis = 2; axis >= 0; axis--) {
    int length = (int)s->kernel[axis], step = (int)(forward ? s->input_dilation[axis] : s->stride[axis]);
    int count = (int)(forward ? s->input[axis] : s->output[axis]);
    int shift = tap % length * (int)s->kernel_dilation[axis], place = begin[axis] + (forward ? shift : -shift);
    if (place < 0 || place % step || place / step >= count) return -1;
    tap /= length;
    pixel += place / step * size;
    size *= count;
  }
  return pixel;
}
