/* SPDX-License-Identifier: Apache-2.0 */
/* attention by tensor cores, see attention.cuh and ir/ops/attention.c; WIDTH, a definition in front, is at least what
 * a head has, numbers and values.
 *
 * A block does 128 rows of a head, 16 a warp, against 32 or 16 keys at a time. A lane has scores of rows g and g + 8,
 * and has them where it needs the weights, as factors of the values: see tensor.cuh.
 *
 * A value that is NaN or infinite, times the 0 of a row that does not see it, is NaN: rows that meet one are done as
 * in attention.cuh. */
enum { HIGH = 128, KEYS = WIDTH == 64 ? 16 : 32, STEPS = WIDTH / 8, STRIDE = WIDTH + 8, GROUPS = KEYS / 8 };

/* k and v begin where accesses of 16 bytes may. */
struct __align__(16) attention_shared {
  unsigned k[KEYS * STRIDE], v[KEYS * STRIDE];
  int is_odd, begin; /* the block's first row */
  struct attention_tile tile;
  struct attention_head x;
  const float *q, *keys, *values;
  float *y;
};

/* What a lane holds of its two rows. */
struct attention_lane {
  unsigned q[STEPS][4];
  float held[STEPS][4], top[2], sum[2];
};

/* KEYS rows of keys or values, from j on, zeros behind their end. Returns NaN if one of them is NaN or
 * infinite, else 0. */
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

/* The first of a lane's two rows, computed where it is asked for: registers are few. */
__device__ static inline int row_of(const struct attention_shared *tile) {
  return tile->begin + (int)anew(threadIdx.x) / 32 * 16 + (int)anew(threadIdx.x) % 32 / 4;
}

__device__ static inline void load_queries(const struct attention_numbers *s, const struct attention_head *x, const float *q,
                                           int row, struct attention_lane *l) {
  int t = (int)anew(threadIdx.x) % 4;
  int wide = s->size % 4 == 0 && (unsigned long long)q % 16 == 0;
#pragma unroll
  for (int i = 0; i < STEPS; i++) {
    int at = row + i % 2 * 8, column = i / 2 * 16 + 4 * t;
    float v[4];
    load_some(q + (long long)at * x->row + column, wide, at < s->queries ? (int)s->size - column : 0, v, 1);
#pragma unroll
    for (int e = 0; e < 4; e++) l->q[i / 2 * 2 + e / 2][e % 2 * 2 + i % 2] = tf32_of(v[e]);
  }
}

/* Whether all rows of the block see all of these keys. */
__device__ static inline int meets_all(const struct attention_numbers *s, const struct attention_head *x, int begin, int j) {
  return !x->mask && begin + HIGH <= (int)s->queries && j + KEYS <= (int)s->keys && (!s->causal || j + KEYS <= begin + 1);
}

/* The weights of these keys, from their scores; what is held is brought to the same scale. Scores are in
 * units of ln 2. A score that is NaN makes the sum NaN. */
__device__ static inline void weigh(const struct attention_numbers *s, const struct attention_head *x, int begin, int row, int j,
                                    float (*score)[4], struct attention_lane *l) {
  const float lowest = -0x1.fffffep127f, nothing = lowest * 2, scale = x->scale * 0x1.715476p+0f;
  int t = (int)threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < GROUPS * 4; i++) score[i / 4][i % 4] *= scale;
  if (!meets_all(s, x, begin, j)) {
#pragma unroll
    for (int i = 0; i < GROUPS * 4; i++)
      if (!sees(s, x, row + i % 4 / 2 * 8, j + i / 4 * 8 + place_of(2 * t + i % 2))) score[i / 4][i % 4] = nothing;
  }
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float most = l->top[r], total = 0;
#pragma unroll
    for (int i = 0; i < GROUPS * 2; i++) most = fmaxf(most, score[i / 2][r * 2 + i % 2]);
#pragma unroll
    for (int by = 1; by < 4; by *= 2) most = fmaxf(most, lane_xor(most, by));
    float base = most == nothing ? 0 : most, by = exp2_near(l->top[r] - base);
#pragma unroll
    for (int i = 0; i < GROUPS * 2; i++) {
      float *p = &score[i / 2][r * 2 + i % 2];
      *p = __uint_as_float(tf32_of(exp2_near(*p - base)));
      total += *p;
    }
    l->sum[r] = l->sum[r] * by + total;
    l->top[r] = most;
#pragma unroll
    for (int i = 0; i < STEPS * 2; i++) l->held[i / 2][r * 2 + i % 2] *= by;
  }
}

__device__ static inline void add_keys(const struct attention_numbers *s, const struct attention_head *x,
                                       const struct attention_shared *tile, int begin, int row, int j,
                                       struct attention_lane *l) {
  int g = (int)anew(threadIdx.x) % 32 / 4, t = (int)anew(threadIdx.x) % 4;
  float score[GROUPS][4];
#pragma unroll
  for (int i = 0; i < GROUPS * 4; i++) score[i / 4][i % 4] = 0;
#pragma unroll
  for (int d = 0; d < STEPS; d += 2)
#pragma unroll
    for (int i = 0; i < GROUPS; i++) {
      struct four_cells k = *(const struct four_cells *)(tile->k + (i * 8 + place_of(g)) * STRIDE + d * 8 + 4 * t);
      unsigned low[2], high[2];
      low[0] = k.x, low[1] = k.y, high[0] = k.z, high[1] = k.w;
      mma(score[i], l->q[d], low);
      mma(score[i], l->q[d + 1], high);
    }
  weigh(s, x, begin, row, j, score, l);
#pragma unroll
  for (int i = 0; i < GROUPS; i++) {
    unsigned p[4];
#pragma unroll
    for (int c = 0; c < 4; c++) p[c] = __float_as_uint(score[i][c % 2 * 2 + c / 2]);
#pragma unroll
    for (int d = 0; d < STEPS; d += 4) {
      struct four_cells v = *(const struct four_cells *)(tile->v + (i * 8 + place_of(2 * t)) * STRIDE + d * 8 + 4 * g);
      struct four_cells w = *(const struct four_cells *)(tile->v + (i * 8 + place_of(2 * t + 1)) * STRIDE + d * 8 + 4 * g);
      unsigned b[4][2];
      b[0][0] = v.x, b[0][1] = w.x, b[1][0] = v.y, b[1][1] = w.y, b[2][0] = v.z, b[2][1] = w.z, b[3][0] = v.w, b[3][1] = w.w;
#pragma unroll
      for (int e = 0; e < 4; e++) mma(l->held[d + e], p, b[e]);
    }
  }
}

__device__ static inline void store_rows(const struct attention_numbers *s, const struct attention_head *x, float *y, int row,
                                         struct attention_lane *l) {
  int t = (int)anew(threadIdx.x) % 4, left = (int)s->values - 8 * t;
  int wide = s->values % 4 == 0 && (unsigned long long)y % 16 == 0;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float sum = l->sum[r];
    sum += lane_xor(sum, 1);
    sum += lane_xor(sum, 2);
    if (row + r * 8 >= s->queries) continue;
    float by = sum == 0 ? 0 : 1 / sum;
    float *to = y + (long long)(row + r * 8) * x->row_values + 8 * t;
#pragma unroll
    for (int i = 0; i < STEPS / 2; i++) {
      float v[4];
#pragma unroll
      for (int e = 0; e < 4; e++) v[e] = l->held[i / 2 * 4 + e][r * 2 + i % 2] * by;
      store_some(v, wide, left - (i / 2 * 32 + i % 2 * 4), to + i / 2 * 32 + i % 2 * 4);
    }
  }
}

__device__ static inline void attention_block(const struct attention_numbers *s, struct attention_shared *tile) {
  const float lowest = -0x1.fffffep127f, nothing = lowest * 2;
  const struct attention_head *x = &tile->x;
  int begin = tile->begin, keys = (int)s->keys;
  if (s->causal && begin + HIGH < keys) keys = begin + HIGH;
  struct attention_lane l;
  load_queries(s, x, tile->q, row_of(tile), &l);
#pragma unroll
  for (int i = 0; i < STEPS * 4; i++) l.held[i / 4][i % 4] = 0;
  l.top[0] = l.top[1] = nothing;
  l.sum[0] = l.sum[1] = 0;
#pragma unroll 1
  for (int j = 0; j < keys; j += KEYS) {
    __syncthreads();
    load_rows(tile->keys, x->row, j, (int)s->keys, (int)s->size, tile->k);
    float odd = load_rows(tile->values, x->row_values, j, (int)s->keys, (int)s->values, tile->v);
    if (odd != 0) tile->is_odd = 1;
    __syncthreads();
    add_keys(s, x, tile, begin, row_of(tile), j, &l);
  }
  __syncthreads();
  if (!tile->is_odd) store_rows(s, x, tile->y, row_of(tile), &l);
#pragma unroll 1
  for (int i = 0; i < HIGH && tile->is_odd; i += ROWS)
    attention_rows(s, x, &tile->tile, tile->q, tile->keys, tile->values, tile->y, begin + i, 0);
}

extern "C" __global__ void __launch_bounds__(256, WIDTH > 64 ? 1 : LEAST_BLOCKS)
    attention_tensor(const TYPE *q, const TYPE *k, const TYPE *v, const unsigned char *mask, TYPE *y, struct attention_numbers s) {
  __shared__ struct attention_shared tile;
  long long tiles = (s.queries + HIGH - 1) / HIGH;
  for (long long at = blockIdx.x; at < s.batch * s.heads * tiles; at += gridDim.x) {
    __syncthreads();
    if (threadIdx.x == 0) {
      struct block_place place = block_place(&s, tiles, at, 1);
      struct attention_head x = attention_head(&s, mask, place.head);
      tile.x = x, tile.begin = place.tile * HIGH, tile.is_odd = 0;
      tile.q = q + x.q, tile.keys = k + x.k, tile.values = v + x.v, tile.y = y + x.y;
    }
    __syncthreads();
    attention_block(&s, &tile);
  }
}
