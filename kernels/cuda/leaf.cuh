/* SPDX-License-Identifier: Apache-2.0 */
/* In front of every kernel of this folder. */

/* Blocks of 256 threads that are to fit in a multiprocessor, so that one computes while another one waits: 128
 * registers for each thread. Doubles take two each. */
enum { LEAST_BLOCKS = sizeof(TYPE) == 8 ? 1 : 2 };

/* The numbers of gather and scatter_add: `count` row numbers of index_bytes each, and rows of `width` elements, of
 * which the table has `rows`. */
struct rows_numbers {
  long long count, rows, width, index_bytes, element_bytes;
};

/* Those of take_along and add_along: `outer` tables one behind the other, and row numbers for each element. */
struct along_numbers {
  long long outer;
  struct rows_numbers r;
};

/* Row number i: 1 byte is u8, 4 are i32, 8 i64. */
__device__ static inline long long row_at(const void *index, long long bytes, long long i) {
  if (bytes == 1) return ((const unsigned char *)index)[i];
  if (bytes == 4) return ((const int *)index)[i];
  return ((const long long *)index)[i];
}

/* Those of window_sum, window_max, window_put and window_pick, which count in INDEX: int where it is enough, as a
 * division of 64 bits takes a GPU many times as long. */
struct window_numbers {
  long long batch, channels;
  long long input[3], size[3], output[3], stride[3], low[3], input_dilation[3], dilation[3];
};
#ifndef INDEX
#define INDEX long long
#endif

/* Of an axis, the elements that window o sees: from `first` to before `end` each `step`. */
struct window_taps {
  INDEX first, end, step;
};

__device__ static inline struct window_taps taps_of(const struct window_numbers *s, int axis, INDEX o) {
  struct window_taps t;
  INDEX low = o * (INDEX)s->stride[axis] - (INDEX)s->low[axis], gap = (INDEX)s->input_dilation[axis];
  INDEX by = (INDEX)s->dilation[axis], high = low + ((INDEX)s->size[axis] - 1) * by, a = by, b = gap;
  t.first = low <= 0 ? 0 : (low + gap - 1) / gap;
  t.end = high < 0 ? 0 : high / gap + 1;
  if (t.end > (INDEX)s->input[axis]) t.end = (INDEX)s->input[axis];
  if (by > 1)
    while (t.first < t.end && (t.first * gap - low) % by) t.first++;
  while (b > 1) {
    INDEX rest = a % b;
    a = b;
    b = rest;
  }
  t.step = b == 1 ? by : by / a;
  return t;
}

/* The element of x that the window of pixel o of an image chooses in a channel: one takes the place of those before it
 * unless they are greater or equal. -1: it sees none. x is the image's. */
__device__ static inline INDEX window_choice(const struct window_numbers *s, const TYPE *x, const INDEX *o, INDEX channel) {
  struct window_taps t[3];
  INDEX chosen = -1, channels = (INDEX)s->channels;
  for (int axis = 0; axis < 3; axis++) t[axis] = taps_of(s, axis, o[axis]);
  for (INDEX i = t[0].first; i < t[0].end; i += t[0].step)
    for (INDEX j = t[1].first; j < t[1].end; j += t[1].step)
      for (INDEX k = t[2].first; k < t[2].end; k += t[2].step) {
        INDEX at = ((i * (INDEX)s->input[1] + j) * (INDEX)s->input[2] + k) * channels + channel;
        if (chosen < 0 || !(x[chosen] >= x[at])) chosen = at;
      }
  return chosen;
}

/* Element e of an image's pixels of these sizes: its place on each axis; returns the image. */
__device__ static inline INDEX window_place(const struct window_numbers *s, const long long *size, INDEX e, INDEX *at) {
  e /= (INDEX)s->channels;
  for (int axis = 2; axis >= 0; axis--) {
    at[axis] = e % (INDEX)size[axis];
    e /= (INDEX)size[axis];
  }
  return e;
}

/* The body of a kernel of x, y and s: y[n][o][c] = what FOLD makes, from FIRST on, of each v of the x[n][i][c] that
 * window o sees, in the order of i. */
#define WINDOW_FOLD(ACCUMULATOR, FIRST, FOLD)                                                               \
  INDEX step = (INDEX)(gridDim.x * blockDim.x), channels = (INDEX)s.channels;                               \
  INDEX e = (INDEX)blockIdx.x * (INDEX)blockDim.x + (INDEX)threadIdx.x;                                     \
  INDEX count = (INDEX)(s.batch * s.output[0] * s.output[1] * s.output[2] * s.channels);                    \
  for (; e < count; e += step) {                                                                            \
    struct window_taps t[3];                                                                                \
    INDEX o[3], image = window_place(&s, s.output, e, o) * (INDEX)s.input[0];                               \
    ACCUMULATOR all = FIRST;                                                                                \
    for (int axis = 0; axis < 3; axis++) t[axis] = taps_of(&s, axis, o[axis]);                              \
    for (INDEX i = t[0].first; i < t[0].end; i += t[0].step)                                                \
      for (INDEX j = t[1].first; j < t[1].end; j += t[1].step)                                              \
        for (INDEX k = t[2].first; k < t[2].end; k += t[2].step) {                                          \
          INDEX row = (image + i) * (INDEX)s.input[1] + j;                                                  \
          TYPE v = x[(row * (INDEX)s.input[2] + k) * channels + e % channels];                              \
          FOLD;                                                                                             \
        }                                                                                                   \
    y[e] = (TYPE)all;                                                                                       \
  }

/* Those of attention and attention_gradient. */
struct attention_numbers {
  long long batch, heads, queries, keys, size, values, causal, masked, mask_step[4], first, end;
};

/* A head of a row of the batch: where its first rows lie, and how far apart rows of q and k, and of v and y, are. */
struct attention_head {
  long long q, k, v, y, row, row_values;
  const unsigned char *mask; /* 0: none */
  TYPE scale;
};

__device__ static inline struct attention_head attention_head(const struct attention_numbers *s,
                                                              const unsigned char *mask, long long head) {
  struct attention_head x;
  long long b = head / s->heads, h = head % s->heads;
  x.row = s->heads * s->size;
  x.row_values = s->heads * s->values;
  x.q = b * s->queries * x.row + h * s->size;
  x.k = b * s->keys * x.row + h * s->size;
  x.v = b * s->keys * x.row_values + h * s->values;
  x.y = b * s->queries * x.row_values + h * s->values;
  x.mask = mask ? mask + b * s->mask_step[0] + h * s->mask_step[1] : 0;
  x.scale = (TYPE)(1 / sqrt((double)s->size));
  return x;
}

/* Of block number `at` its head, and which of the `tiles` of the rows of a head it has. Where `causal` lets rows see
 * only those before them, blocks that meet most of the others begin first: of queries (last_first) the last ones, of
 * keys the first. */
struct block_place {
  long long head;
  int tile;
};

__device__ static inline struct block_place block_place(const struct attention_numbers *s, long long tiles, long long at,
                                                        int last_first) {
  struct block_place p;
  long long heads = s->batch * s->heads;
  p.head = s->causal ? at % heads : at / tiles;
  p.tile = (int)(s->causal ? at / heads : at % tiles);
  if (s->causal && last_first) p.tile = (int)tiles - 1 - p.tile;
  return p;
}

/* Whether query i sees key j. */
__device__ static inline bool attention_sees(const struct attention_numbers *s, const struct attention_head *x,
                                             long long i, long long j) {
  if (i >= s->queries || j >= s->keys || (s->causal && j > i)) return false;
  return !x->mask || x->mask[i * s->mask_step[2] + j * s->mask_step[3]];
}

__device__ static inline TYPE attention_dot(const TYPE *a, const TYPE *b, long long count) {
  TYPE sum = 0;
  for (long long i = 0; i < count; i++) sum += a[i] * b[i];
  return sum;
}

/* 2^n, 0 below the normal numbers. */
__device__ static inline TYPE attention_power(long long n) {
  if (sizeof(TYPE) == 4) return n < -126 ? 0 : (TYPE)__int_as_float((int)(n + 127) << 23);
  return n < -1022 ? 0 : (TYPE)__longlong_as_double((n + 1023) << 52);
}

/* e^x of x <= 0, or NaN: 2^n e^r, e^r the first terms of its series. */
__device__ static inline TYPE attention_exp(TYPE x) {
  const TYPE high = (TYPE)0x1.62e4p-1, low = (TYPE)(0x1.62e42fefa39efp-1 - 0x1.62e4p-1);
  if (x < -750) return 0;
  if (x != x) return x;
  long long n = (long long)(x * (TYPE)0x1.71547652b82fep+0 - (TYPE)0.5);
  TYPE r = x - (TYPE)n * high - (TYPE)n * low, y = 1;
  for (int i = sizeof(TYPE) == 4 ? 7 : 14; i > 0; i--) y = 1 + y * r / (TYPE)i;
  return y * attention_power(n);
}

/* e^x of x <= 0, or NaN, in f32: 2^n e^r, e^r the first terms of its series; within one unit of the last place. 0
 * below the normal numbers. n is what `shifted` has in its lowest bits: a GPU converts numbers slower than it adds
 * them. */
__device__ static inline float exp_near(float x) {
  float shifted = x * 0x1.715476p+0f + 0x1.8p+23f, n = shifted - 0x1.8p+23f;
  float r = __fmaf_rn(n, -0x1.7f7d1cp-20f, __fmaf_rn(n, -0x1.62e4p-1f, x));
  float y = __fmaf_rn(r, 0x1.a01a02p-13f, 0x1.6c16c2p-10f);
  y = __fmaf_rn(r, y, 0x1.111112p-7f);
  y = __fmaf_rn(r, y, 0x1.555556p-5f);
  y = __fmaf_rn(r, y, 0x1.555556p-3f);
  y = __fmaf_rn(r, y, 0.5f);
  y = __fmaf_rn(r, y, 1.0f);
  y = __fmaf_rn(r, y, 1.0f);
  y *= __int_as_float((int)((__float_as_uint(shifted) << 23) + 0x3f800000u));
  return x < -87.0f ? 0 : y;
}

/* As attention_sees, but for the mask counted in int. */
__device__ static inline bool sees(const struct attention_numbers *s, const struct attention_head *x, int i, int j) {
  if (i >= (int)s->queries || j >= (int)s->keys || (s->causal && j > i)) return false;
  return !x->mask || x->mask[i * s->mask_step[2] + j * s->mask_step[3]];
}

#ifdef __CUDACC__
/* lane_xor: what lane l ^ `by` has. warp_vote: the lanes whose x is not 0, bit l for lane l. any_thread: whether a
 * thread of the block has one. All threads of a block come here together. The simulation has all of these, and anew,
 * of its own. */
__device__ static inline float lane_xor(float x, int by) { return __shfl_xor_sync(0xffffffffu, x, by); }
__device__ static inline unsigned warp_vote(int x) { return __ballot_sync(0xffffffffu, x); }
__device__ static inline int any_thread(int x) { return __syncthreads_or(x); }

/* x, which the compiler does not recognize: what is computed of it is computed there, and takes no registers before. */
__device__ static inline long long anew(long long x) {
  asm volatile("" : "+l"(x));
  return x;
}
#endif

/* Four neighbours in memory, which begin at a multiple of 16 bytes. */
struct __align__(16) four {
  float x, y, z, w;
};

__device__ static inline void load_four(const float *from, float *to, int step) {
  struct four v = *(const struct four *)from;
  to[0] = v.x, to[step] = v.y, to[2 * step] = v.z, to[3 * step] = v.w;
}

/* Four neighbours, of which so many are there (0 for the others); `wide`: they begin at a multiple of 16 bytes. */
__device__ static inline void load_some(const float *from, int wide, int there, float *v, int step) {
  if (wide && there >= 4) {
    load_four(from, v, step);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; i++) v[i * step] = i < there ? from[i] : 0;
}

/* Likewise, of v. */
__device__ static inline void store_some(const float *v, int wide, int there, float *to) {
  if (wide && there >= 4) {
    struct four f;
    f.x = v[0], f.y = v[1], f.z = v[2], f.w = v[3];
    *(struct four *)to = f;
    return;
  }
#pragma unroll
  for (int e = 0; e < 4; e++)
    if (e < there) to[e] = v[e];
}
