/* SPDX-License-Identifier: Apache-2.0 */
/* window_max, and window_put of windows that lie side by side, of f32 without dilation. Sizes are definitions in front
 * (runtime/cuda/window.c), so that divisions are by numbers that the compiler knows; only the batch is a number. PUT:
 * which it is. What a thread moves are VEC channels.
 *
 * Of window_max a thread has one window. Of window_put it has, of one window, or of where one would be beside the
 * last, the elements that have one place on the last axis, so that neighbours write what follows each other; it looks
 * at the whole window. */
enum {
  VEC = CHANNELS % 4 == 0 ? 4 : CHANNELS % 2 == 0 ? 2 : 1,
  OF_PIXEL = CHANNELS / VEC,
  FITS_0 = LOW_0 == 0 && (OUT_0 - 1) * STRIDE_0 + SIZE_0 <= IN_0,
  FITS_1 = LOW_1 == 0 && (OUT_1 - 1) * STRIDE_1 + SIZE_1 <= IN_1,
  FITS_2 = LOW_2 == 0 && (OUT_2 - 1) * STRIDE_2 + SIZE_2 <= IN_2,
  COVER_0 = (IN_0 + LOW_0 + STRIDE_0 - 1) / STRIDE_0,
  COVER_1 = (IN_1 + LOW_1 + STRIDE_1 - 1) / STRIDE_1
};

struct __align__(8) pair {
  float x, y;
};

/* `wide`: they begin at a multiple of their bytes. */
__device__ static inline void load_vec(const float *from, int wide, float *v) {
  if (VEC == 4 && wide) {
    load_four(from, v, 1);
  } else if (VEC == 2 && wide) {
    struct pair p = *(const struct pair *)from;
    v[0] = p.x, v[VEC - 1] = p.y;
  } else {
#pragma unroll
    for (int i = 0; i < VEC; i++) v[i] = from[i];
  }
}

__device__ static inline void store_vec(float *to, int wide, const float *v) {
  if (VEC == 4 && wide) {
    struct four p;
    p.x = v[0], p.y = v[VEC / 4], p.z = v[VEC / 2], p.w = v[VEC - 1];
    *(struct four *)to = p;
  } else if (VEC == 2 && wide) {
    struct pair p;
    p.x = v[0], p.y = v[VEC - 1];
    *(struct pair *)to = p;
  } else {
#pragma unroll
    for (int i = 0; i < VEC; i++) to[i] = v[i];
  }
}

/* A window: its first element on each axis, and the image's first row. */
struct window_at {
  int first[3], row;
};

/* The element of x that is element number i of it; -1: that lies outside. */
__device__ static inline int seen_by(const struct window_at *w, int i) {
  int a = w->first[0] + i / (SIZE_1 * SIZE_2), b = w->first[1] + i / SIZE_2 % SIZE_1, c = w->first[2] + i % SIZE_2;
  if (!FITS_0 && (a < 0 || a >= IN_0)) return -1;
  if (!FITS_1 && (b < 0 || b >= IN_1)) return -1;
  if (!FITS_2 && (c < 0 || c >= IN_2)) return -1;
  return (((w->row + a) * IN_1 + b) * IN_2 + c) * CHANNELS;
}

__device__ static inline void greatest(const float *x, float *y, int e, int wide) {
  int channel = e % OF_PIXEL * VEC, o = e / OF_PIXEL, line = o / OUT_2, sheet = line / OUT_1;
  struct window_at w = {{sheet % OUT_0 * STRIDE_0 - LOW_0, line % OUT_1 * STRIDE_1 - LOW_1, o % OUT_2 * STRIDE_2 - LOW_2},
                        sheet / OUT_0 * IN_0};
  float all[VEC], v[VEC];
#pragma unroll
  for (int i = 0; i < VEC; i++) all[i] = __int_as_float((int)0xff800000);
#pragma unroll
  for (int i = 0; i < SIZE_0 * SIZE_1 * SIZE_2; i++) {
    int at = seen_by(&w, i);
    if (at < 0) continue;
    load_vec(x + at + channel, wide, v);
#pragma unroll
    for (int j = 0; j < VEC; j++)
      if (v[j] > all[j] || v[j] != v[j]) all[j] = v[j];
  }
  store_vec(y + o * CHANNELS + channel, wide, all);
}

__device__ static inline void put(const float *x, const float *values, float *out, int e, int wide) {
  int channel = e % OF_PIXEL * VEC, left = e / OF_PIXEL, column = left % IN_2;
  left /= IN_2;
  int o[3] = {left / COVER_1 % COVER_0, left % COVER_1, (column + LOW_2) / STRIDE_2}, image = left / COVER_1 / COVER_0;
  struct window_at w = {{o[0] * STRIDE_0 - LOW_0, o[1] * STRIDE_1 - LOW_1, o[2] * STRIDE_2 - LOW_2}, image * IN_0};
  int chosen[VEC], mine = column - w.first[2];
  float value[VEC], best[VEC], v[VEC];
#pragma unroll
  for (int i = 0; i < VEC; i++) chosen[i] = -1, value[i] = 0, best[i] = 0;
  if (o[0] < OUT_0 && o[1] < OUT_1 && o[2] < OUT_2) {
    load_vec(values + (((image * OUT_0 + o[0]) * OUT_1 + o[1]) * OUT_2 + o[2]) * CHANNELS + channel, wide, value);
#pragma unroll
    for (int i = 0; i < SIZE_0 * SIZE_1 * SIZE_2; i++) {
      int at = seen_by(&w, i);
      if (at < 0) continue;
      load_vec(x + at + channel, wide, v);
#pragma unroll
      for (int j = 0; j < VEC; j++)
        if (chosen[j] < 0 || !(best[j] >= v[j])) chosen[j] = i, best[j] = v[j];
    }
  }
#pragma unroll
  for (int i = 0; i < SIZE_0 * SIZE_1; i++) {
    int a = w.first[0] + i / SIZE_1, b = w.first[1] + i % SIZE_1;
    if (a < 0 || a >= IN_0 || b < 0 || b >= IN_1) continue;
#pragma unroll
    for (int j = 0; j < VEC; j++) v[j] = chosen[j] == i * SIZE_2 + mine ? 0 + value[j] : 0;
    store_vec(out + (((w.row + a) * IN_1 + b) * IN_2 + column) * CHANNELS + channel, wide, v);
  }
}

/* What is not there is 0: `values` of window_max. */
extern "C" __global__ void __launch_bounds__(256, 4)
    window_fixed(const TYPE *x, const TYPE *values, TYPE *out, struct window_numbers s) {
  int count = (int)s.batch * (PUT ? COVER_0 * COVER_1 * IN_2 : OUT_0 * OUT_1 * OUT_2) * OF_PIXEL;
  int wide = ((unsigned long long)x | (unsigned long long)values | (unsigned long long)out) % (4 * VEC) == 0;
  for (int e = (int)(blockIdx.x * blockDim.x + threadIdx.x); e < count; e += (int)(gridDim.x * blockDim.x)) {
    if (PUT)
      put(x, values, out, e, wide);
    else
      greatest(x, out, e, wide);
  }
}
