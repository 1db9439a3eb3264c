/* SPDX-License-Identifier: Apache-2.0 */
/* attention by tensor cores, see attention.cuh and ir/ops/attention.c; WIDTH, a definition in front, is at least what a head has,
 * numbers and values.
 *
 * A block does 128 rows of a head, 16 a warp, against 32 or 16 keys at a time. A lane has scores of rows g and g + 8 and of keys 2t and
 * 2t + 1 of each 8, see tensor.cuh; as factors of the values they would have to be of keys t and t + 4. What is summed may be
 * numbered in any way, so they stay, and it is the values whose rows are taken in that order.
 *
 * A value that is NaN or infinite, times the 0 of a row that does not see it, is NaN: rows that meet one are done as in
 * attention.cuh. */
enum { HIGH = 128, KEYS = WIDTH == 64 ? 16 : 32, STEPS = WIDTH / 8, STRIDE = WIDTH + 4, GROUPS = KEYS / 8 };

struct attention_shared {
  unsigned k[KEYS * STRIDE], v[KEYS * STRIDE];
  int is_odd;
  struct attention_tile tile;
};

/* What a lane holds of its two rows. */
struct attention_lane {
  unsigned q[STEPS][4];
  float held[STEPS][4], top[2], sum[2];
};

/* KEYS rows of keys or values, from j on, zeros behind their end. Returns NaN if one of them is NaN or infinite, else 0. */
__device__ static inline float load_rows(const float *from, long long row, int j, int rows, int width, unsigned *to) {
  int wide = width % 4 == 0 && (unsigned long long)from % 16 == 0;
  float odd = 0;
#pragma unroll
  for (int i = 0; i < KEYS * WIDTH / 4 / 256; i++) {
    int u = (int)threadIdx.x + 256 * i, key = u / (WIDTH / 4), column = u % (WIDTH / 4) * 4;
    float v[4];
    unsigned cells[4];
    load_some(from + (long long)(j + key) * row + column, wide, j + key < rows ? width - column : 0, v, 1);
#pragma unroll
    for (int e = 0; e < 4; e++) {
      odd += v[e] - v[e];
      cells[e] = tf32_of(v[e]);
    }
    store_cells(to + key * STRIDE + column, cells);
  }
  return odd;
}

__device__ static inline void load_queries(const struct attention_numbers *s, const struct attention_head *x, const float *q,
                                           int row, struct attention_lane *l) {
  int t = (int)threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < STEPS; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      int at = row + j % 2 * 8, column = i * 8 + t + j / 2 * 4;
      l->q[i][j] = tf32_of(at < s->queries && column < s->size ? q[(long long)at * x->row + column] : 0);
    }
}

/* The weights of these keys, from their scores; what is held is brought to the same scale. */
__device__ static inline void weigh(const struct attention_numbers *s, const struct attention_head *x, int row, int j,
                                    float (*score)[4], struct attention_lane *l) {
  const float lowest = -0x1.fffffep127f, nothing = lowest * 2;
  int t = (int)threadIdx.x % 4;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float most = l->top[r], total = 0;
#pragma unroll
    for (int i = 0; i < GROUPS * 2; i++) {
      float *p = &score[i / 2][r * 2 + i % 2];
      *p = sees(s, x, row + r * 8, j + i / 2 * 8 + 2 * t + i % 2) ? *p * x->scale : nothing;
      if (*p > most || *p != *p) most = *p;
    }
#pragma unroll
    for (int by = 1; by < 4; by *= 2) {
      float other = lane_xor(most, by);
      if (other > most || other != other) most = other;
    }
    float base = most == nothing ? 0 : most, by = exp_near(l->top[r] - base);
#pragma unroll
    for (int i = 0; i < GROUPS * 2; i++) {
      float *p = &score[i / 2][r * 2 + i % 2];
      *p = __uint_as_float(tf32_of(exp_near(*p - base)));
      total += *p;
    }
    l->sum[r] = l->sum[r] * by + total;
    l->top[r] = most;
#pragma unroll
    for (int i = 0; i < STEPS * 2; i++) l->held[i / 2][r * 2 + i % 2] *= by;
  }
}

__device__ static inline void add_keys(const struct attention_numbers *s, const struct attention_head *x,
                                       const struct attention_shared *tile, int row, int j, struct attention_lane *l) {
  int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
  float score[GROUPS][4];
#pragma unroll
  for (int i = 0; i < GROUPS; i++) {
#pragma unroll
    for (int c = 0; c < 4; c++) score[i][c] = 0;
#pragma unroll
    for (int d = 0; d < STEPS; d++) {
      const unsigned *k = tile->k + (i * 8 + g) * STRIDE + d * 8 + t;
      unsigned b[2];
      b[0] = k[0], b[1] = k[4];
      mma(score[i], l->q[d], b);
    }
  }
  weigh(s, x, row, j, score, l);
#pragma unroll
  for (int i = 0; i < GROUPS; i++) {
    unsigned p[4];
#pragma unroll
    for (int c = 0; c < 4; c++) p[c] = __float_as_uint(score[i][c % 2 * 2 + c / 2]);
#pragma unroll
    for (int d = 0; d < STEPS; d++) {
      const unsigned *v = tile->v + (i * 8 + 2 * t) * STRIDE + d * 8 + g;
      unsigned b[2];
      b[0] = v[0], b[1] = v[STRIDE];
      mma(l->held[d], p, b);
    }
  }
}

__device__ static inline void store_rows(const struct attention_numbers *s, const struct attention_head *x, float *y, int row,
                                         struct attention_lane *l) {
  const float lowest = -0x1.fffffep127f, nothing = lowest * 2;
  int t = (int)threadIdx.x % 4;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float sum = l->sum[r];
    sum += lane_xor(sum, 1);
    sum += lane_xor(sum, 2);
    int i = row + r * 8;
#pragma unroll
    for (int d = 0; d < STEPS * 2; d++) {
      int at = d / 2 * 8 + 2 * t + d % 2;
      if (i < s->queries && at < s->values)
        y[(long long)i * x->row_values + at] = l->top[r] == nothing ? 0 : l->held[d / 2][r * 2 + d % 2] / sum;
    }
  }
}

/* Rows from `begin` on. */
__device__ static void attention_block(const struct attention_numbers *s, const struct attention_head *x,
                                       struct attention_shared *tile, const float *q, const float *k, const float *v, float *y,
                                       int begin) {
  const float lowest = -0x1.fffffep127f, nothing = lowest * 2;
  int row = begin + (int)threadIdx.x / 32 * 16 + (int)threadIdx.x % 32 / 4, keys = (int)s->keys;
  if (s->causal && begin + HIGH < keys) keys = begin + HIGH;
  struct attention_lane l;
  load_queries(s, x, q, row, &l);
#pragma unroll
  for (int i = 0; i < STEPS * 4; i++) l.held[i / 4][i % 4] = 0;
  l.top[0] = l.top[1] = nothing;
  l.sum[0] = l.sum[1] = 0;
  if (threadIdx.x == 0) tile->is_odd = 0;
#pragma unroll 1
  for (int j = 0; j < keys; j += KEYS) {
    __syncthreads();
    load_rows(k, x->row, j, (int)s->keys, (int)s->size, tile->k);
    float odd = load_rows(v, x->row_values, j, (int)s->keys, (int)s->values, tile->v);
    if (odd != 0) tile->is_odd = 1;
    __syncthreads();
    add_keys(s, x, tile, row, j, &l);
  }
  __syncthreads();
  if (!tile->is_odd) store_rows(s, x, y, row, &l);
#pragma unroll 1
  for (int i = 0; i < HIGH && tile->is_odd; i += ROWS) attention_rows(s, x, &tile->tile, q, k, v, y, begin + i, 0);
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(256, WIDTH > 64 ? 1 : LEAST_BLOCKS)
    attention_tensor(const TYPE *q, const TYPE *k, const TYPE *v, const unsigned char *mask, TYPE *y, struct attention_numbers s) {
  __shared__ struct attention_shared tile;
  long long tiles = (s.queries + HIGH - 1) / HIGH;
  for (long long at = blockIdx.x; at < s.batch * s.heads * tiles; at += gridDim.x) {
    struct attention_head x = attention_head(&s, mask, at / tiles);
    attention_block(&s, &x, &tile, q + x.q, k + x.k, v + x.v, y + x.y, (int)(at % tiles) * HIGH);
  }
}
