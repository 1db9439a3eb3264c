/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions in the form of ir/ops/conv.c, in an order that sizes fix. TYPE is that of the elements, SUM that of the sums.
 *
 * An output is a product of matrices that nobody writes down: a row for each of its pixels, a column for each filter, and in
 * between all places of the kernel with all channels; what a row sees of the input is looked up as it is loaded. So is an
 * input, the other way. A block of 256 threads computes a tile, 4 by 4 elements each. Few columns are not worth one: there
 * a thread adds up an element. Of a kernel a block adds up an element. */

/* All threads of a block. */
__device__ static void kernels_of(const struct conv_numbers *s, const TYPE *x, const TYPE *y, TYPE *w) {
  __shared__ SUM shares[256];
  long long count = conv_count(s->kernel) * s->channels * s->groups * s->filters, pixels = s->batch * conv_count(s->output);
  for (long long e = blockIdx.x; e < count; e += gridDim.x) {
    shares[threadIdx.x] = kernel_share(s, x, y, e, threadIdx.x, pixels, 256);
    for (int half = 128; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) shares[threadIdx.x] += shares[threadIdx.x + half];
    }
    if (threadIdx.x == 0) w[e] = (TYPE)shares[0];
    __syncthreads();
  }
}

enum { DEPTH = 16, MOST_ROWS = 256, MOST_COLUMNS = 64 };

/* The tile of the product that makes an output (forward) or an input: `across` threads of 4 columns, 256 / across of 4 rows. */
struct conv_tile {
  int forward, across, columns, inner, depth;
  long long rows; /* pixels of the result in all images */
};

__device__ static inline struct conv_tile conv_tile_of(const struct conv_numbers *s) {
  struct conv_tile t;
  t.forward = s->result == 2;
  t.columns = (int)(t.forward ? s->filters : s->channels);
  t.inner = (int)(t.forward ? s->channels : s->filters);
  t.depth = (int)conv_count(s->kernel) * t.inner;
  t.rows = s->batch * conv_count(t.forward ? s->output : s->input);
  t.across = t.columns > 16 ? 16 : 4;
  return t;
}

/* The place in the result of sum i of a thread, in a tile that begins at row `top` and column `first`; -1: none. */
__device__ static inline long long conv_element(const struct conv_numbers *s, struct conv_tile t, long long top, long long group,
                                                int first, int thread, int i) {
  long long row = top + thread / t.across * 4 + i / 4;
  int column = first + thread % t.across * 4 + i % 4;
  return row < t.rows && column < t.columns ? (row * s->groups + group) * t.columns + column : -1;
}

/* Tile number `at` of all groups. What a place outside of the input would be multiplied by is 0 here, which a weight that
 * is NaN or infinite makes NaN: tiles that meet one are added up element by element. */
__device__ static void conv_tile(const struct conv_numbers *s, struct conv_tile t, const TYPE *from, const TYPE *w, TYPE *out,
                                 long long at) {
  __shared__ SUM a[DEPTH * MOST_ROWS];
  __shared__ SUM b[DEPTH * MOST_COLUMNS];
  __shared__ int is_odd;
  int thread = (int)threadIdx.x, wide = 4 * t.across, high = 4 * (256 / t.across), share = DEPTH * high / 256;
  long long filters = s->groups * s->filters, across = (t.columns + wide - 1) / wide, down = (t.rows + high - 1) / high;
  int first = (int)(at % across) * wide;
  long long top = at / across % down * high, group = at / across / down;
  long long pixels = conv_count(t.forward ? s->output : s->input), other = conv_count(t.forward ? s->input : s->output);
  int loaded = thread / (DEPTH / share), part = thread % (DEPTH / share) * share, begin[3];
  long long row = top + loaded, image = row / pixels * other;
  row_begin(s, t.forward, row % pixels, begin);
  SUM sums[16];
#pragma unroll
  for (int i = 0; i < 16; i++) sums[i] = 0;
  if (thread == 0) is_odd = 0;
  for (int d = 0; d < t.depth; d += DEPTH) {
    __syncthreads();
    int pixel = -1, last = -1;
    for (int i = 0; i < share; i++) {
      int k = d + part + i, tap = k / t.inner;
      if (tap != last) pixel = row < t.rows && k < t.depth ? seen_pixel(s, t.forward, begin, tap) : -1;
      last = tap;
      SUM v = 0;
      if (pixel >= 0) v = (SUM)from[((image + pixel) * s->groups + group) * t.inner + k % t.inner];
      a[(part + i) * high + loaded] = v;
    }
    for (int e = thread; e < DEPTH * wide; e += 256) {
      int k = d + e / wide, column = first + e % wide;
      SUM v = 0;
      if (k < t.depth && column < t.columns)
        v = (SUM)(t.forward ? w[k * filters + group * s->filters + column]
                            : w[(k / t.inner * s->channels + column) * filters + group * s->filters + k % t.inner]);
      b[e] = v;
      if (v - v != 0) is_odd = 1;
    }
    __syncthreads();
    const SUM *x = a + thread / t.across * 4, *y = b + thread % t.across * 4;
#pragma unroll 4
    for (int k = 0; k < DEPTH; k++)
#pragma unroll
      for (int i = 0; i < 16; i++) sums[i] += x[k * high + i / 4] * y[k * wide + i % 4];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 16; i++) {
    long long e = conv_element(s, t, top, group, first, thread, i);
    if (e >= 0 && !is_odd) out[e] = (TYPE)sums[i];
  }
#pragma unroll 1
  for (int i = 0; i < 16 && is_odd; i++) {
    long long e = conv_element(s, t, top, group, first, thread, i);
    if (e >= 0) out[e] = (TYPE)(t.forward ? output_at(s, from, w, e) : input_at(s, from, w, e));
  }
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(256, LEAST_BLOCKS)
    conv(const TYPE *a, const TYPE *b, TYPE *out, struct conv_numbers s) {
  long long step = (long long)gridDim.x * blockDim.x;
  long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (s.result == 1) {
    kernels_of(&s, a, b, out);
    return;
  }
  struct conv_tile t = conv_tile_of(&s);
  if (t.columns >= 4 && conv_is_small(&s)) {
    long long wide = 4 * t.across, high = 1024 / t.across;
    long long tiles = (t.columns + wide - 1) / wide * ((t.rows + high - 1) / high) * s.groups;
    for (long long i = blockIdx.x; i < tiles; i += gridDim.x) conv_tile(&s, t, a, b, out, i);
    return;
  }
  long long inputs = conv_count(s.input) * s.channels, outputs = conv_count(s.output) * s.filters;
  long long count = s.batch * s.groups * (s.result == 0 ? inputs : outputs);
  for (; at < count; at += step) out[at] = (TYPE)(s.result == 0 ? input_at(&s, a, b, at) : output_at(&s, a, b, at));
}
