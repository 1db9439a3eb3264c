/* SPDX-License-Identifier: Apache-2.0 */
/* The derivatives of attention by tensor cores, see ir/ops/attention.c and tensor.cuh; in two calls, as
 * attention_gradient_tiles.cu has them. WIDTH, a definition in front, is 32, 64 or 128: at least what a head has,
 * numbers and values.
 *
 * A block has OWN rows, 16 a warp, queries or with OF_KEYS 1 keys, of two tensors, which its lanes keep as factors a:
 * q and dy, or k and v. They meet MET of the others at a time. What two rows are to each other, scores, weights and
 * their gradients, a lane has where it needs it, see tensor.cuh. Where heads have more than 64 numbers, two warps have
 * the same keys, and half of what is summed each. */
#ifndef SPLIT
#define SPLIT (OF_KEYS && WIDTH > 64 ? 2 : 1)
#endif
enum {
  OWN = 128 / SPLIT,
  MET = WIDTH > 64 ? 32 : 64,
  STEPS = WIDTH / 8,
  STRIDE = WIDTH + 8,
  SUMS = STEPS / SPLIT,       /* products of 8 columns, of the sums of a warp */
  GROUP = WIDTH == 64 || (WIDTH == 32 && !OF_KEYS) ? 2 : 1, /* eights of the others at a time */
  LOADS = WIDTH == 64 ? 4 : 2, /* of a thread under way at once */
  FIT = WIDTH > 32 ? 1 : 2 /* blocks in a multiprocessor */
};

/* Of a query: a weight is 2^(score - base), scores in units of ln 2; an infinite base: it sees nothing. And
 * dots = dy . y / sqrt(D). */
struct __align__(8) query_row {
  float base, dots;
};

/* Rows of two tensors, of q or k, and of v, y or dy. */
struct gradient_rows {
  const float *from[2];
  int row[2], width[2], count;
};

/* What a block has, and where it begins; in shared memory, which spares registers. */
struct gradient_block {
  struct attention_head x;
  struct gradient_rows own, met;
  const float *y;
  struct query_row *rows;
  float *out[2], score_scale;
  int begin;
  struct query_row met_rows[MET];
  __align__(16) unsigned tile[2][MET * STRIDE];
};

/* What a lane holds: of its rows g and g + 8, and of what is summed from ds, and from the weights. */
struct gradient_lane {
  unsigned own[2][STEPS][4];
  float sums[SUMS][4], weighed[SUMS][4];
  struct query_row mine[2];
};

__device__ static inline float infinity(void) { return __int_as_float(0x7f800000); }

/* What pairs that do not see each other have for a weight: no other one has a sign with its zero. */
__device__ static inline float unseen(void) { return __int_as_float((int)0x80000000u); }
__device__ static inline int is_unseen(float x) { return __float_as_uint(x) == 0x80000000u; }

__device__ static inline int lane_g(void) { return (int)threadIdx.x % 32 / 4; }
__device__ static inline int lane_t(void) { return (int)threadIdx.x % 4; }

/* The first row of the thread, from the block's first one on. */
__device__ static inline int lane_row(void) { return (int)threadIdx.x / 32 % (8 / SPLIT) * 16 + lane_g(); }

/* MET rows from `at` on, zeros behind their end. Returns NaN if one of them is NaN or infinite, else 0. */
__device__ static inline float load_rows(const struct gradient_rows *r, int which, int at, unsigned *to) {
  const float *from = r->from[which] + (long long)at * r->row[which];
  int width = r->width[which], wide = width % 4 == 0 && (unsigned long long)from % 16 == 0, left = r->count - at;
  float odd = 0;
#pragma unroll LOADS
  for (int i = 0; i < MET * WIDTH / 1024; i++) {
    int u = (int)anew(threadIdx.x) + 256 * i, row = u / (WIDTH / 4), column = u % (WIDTH / 4) * 4;
    float v[4];
    unsigned cells[4];
    load_some(from + (long long)row * r->row[which] + column, wide, row < left ? width - column : 0, v, 1);
#pragma unroll
    for (int e = 0; e < 4; e++) {
      odd += v[e] - v[e];
      cells[e] = tf32_of(v[e]);
    }
    store_cells(to + row * STRIDE + column, cells);
  }
  return odd;
}

/* The own rows, by way of shared memory. */
__device__ static inline void keep_own(struct gradient_block *b, struct gradient_lane *l) {
  int mine = lane_row();
#pragma unroll 1
  for (int first = 0; first < OWN; first += MET) {
    __syncthreads();
    load_rows(&b->own, 0, b->begin + first, b->tile[0]);
    load_rows(&b->own, 1, b->begin + first, b->tile[1]);
    __syncthreads();
    if (mine >= first && mine < first + MET)
#pragma unroll
      for (int i = 0; i < STEPS * 2; i++) {
        int which = i / STEPS, pair = i % STEPS / 2, half = i % 2;
        struct four_cells c =
            *(const struct four_cells *)(b->tile[which] + (mine - first + half * 8) * STRIDE + 16 * pair + 4 * lane_t());
        unsigned *low = l->own[which][pair * 2], *high = l->own[which][pair * 2 + 1];
        low[half] = c.x, low[half + 2] = c.y, high[half] = c.z, high[half + 2] = c.w;
      }
  }
}

/* dy . y of the thread's two rows. */
__device__ static inline void find_dots(const struct gradient_block *b, float *dots) {
#pragma unroll
  for (int half = 0; half < 2; half++) {
    float sum = 0;
    int row = b->begin + lane_row() + half * 8, width = row < b->own.count ? b->own.width[1] : 0;
    long long at = (long long)row * b->own.row[1];
#pragma unroll 4
    for (int d = lane_t(); d < width; d += 4) sum = __fmaf_rn(b->own.from[1][at + d], b->y[at + d], sum);
    sum += lane_xor(sum, 1);
    sum += lane_xor(sum, 2);
    dots[half] = sum;
  }
}

/* scores[i]: the own rows times eight of the others, from row `first + 8 i` of the tile on. */
__device__ static inline void multiply_rows(struct gradient_block *b, const struct gradient_lane *l, int which, int first,
                                            float (*scores)[4]) {
  const unsigned *met = b->tile[which] + (first + place_of(lane_g())) * STRIDE + 4 * lane_t();
#pragma unroll
  for (int i = 0; i < GROUP * 4; i++) scores[i / 4][i % 4] = 0;
#pragma unroll
  for (int pair = 0; pair < STEPS / 2; pair++)
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
      struct four_cells c = *(const struct four_cells *)(met + 8 * i * STRIDE + 16 * pair);
      unsigned low[2], high[2];
      low[0] = c.x, low[1] = c.y, high[0] = c.z, high[1] = c.w;
      mma(scores[i], l->own[which][pair * 2], low);
      mma(scores[i], l->own[which][pair * 2 + 1], high);
    }
}

/* The first column of the sums of a thread's warp. */
__device__ static inline int first_column(void) { return (int)threadIdx.x / (256 / SPLIT) * (WIDTH / SPLIT); }

/* sums += the weights p times eight of the others for each i, from row `first` of the tile on. */
__device__ static inline void add_met(struct gradient_block *b, int which, int first, float (*p)[4], float (*sums)[4]) {
  int t = lane_t();
  const unsigned *met = b->tile[which] + first * STRIDE + first_column() + 4 * lane_g();
#pragma unroll
  for (int i = 0; i < GROUP; i++) {
    unsigned a[4];
#pragma unroll
    for (int e = 0; e < 4; e++) a[e] = tf32_of(p[i][e % 2 * 2 + e / 2]);
#pragma unroll
    for (int c = 0; c < SUMS / 4; c++) {
      struct four_cells v = *(const struct four_cells *)(met + (8 * i + place_of(2 * t)) * STRIDE + 32 * c);
      struct four_cells w = *(const struct four_cells *)(met + (8 * i + place_of(2 * t + 1)) * STRIDE + 32 * c);
      unsigned x[2], y[2], z[2], u[2];
      x[0] = v.x, x[1] = w.x, y[0] = v.y, y[1] = w.y, z[0] = v.z, z[1] = w.z, u[0] = v.w, u[1] = w.w;
      mma(sums[c * 4], a, x);
      mma(sums[c * 4 + 1], a, y);
      mma(sums[c * 4 + 2], a, z);
      mma(sums[c * 4 + 3], a, u);
    }
  }
}

/* The same where a NaN or an infinity is among the others: what does not see it has no part in it. */
__device__ static inline void add_careful(struct gradient_block *b, int which, int first, float (*p)[4], float (*sums)[4]) {
  const unsigned *met = b->tile[which] + first * STRIDE + first_column() + 8 * lane_t();
#pragma unroll 1
  for (int other = 0; other < 4; other++)
#pragma unroll
    for (int i = 0; i < GROUP * 2; i++) {
      const unsigned *from = met + (i / 2 * 8 + place_of(2 * (lane_t() ^ other) + i % 2)) * STRIDE;
      float weights[2];
      weights[0] = lane_xor(p[i / 2][i % 2], other);
      weights[1] = lane_xor(p[i / 2][i % 2 + 2], other);
#pragma unroll
      for (int c = 0; c < SUMS * 4; c++) {
        float weight = weights[c % 4 / 2];
        int column = c / 16 * 32 + c % 2 * 4 + c / 4 % 4;
        if (!is_unseen(weight)) sums[c / 4][c % 4] = __fmaf_rn(weight, __uint_as_float(from[column]), sums[c / 4][c % 4]);
      }
    }
}

__device__ static inline void add_scores(struct gradient_block *b, int which, int first, int is_odd, float (*p)[4],
                                         float (*sums)[4]) {
  if (is_odd)
    add_careful(b, which, first, p, sums);
  else
    add_met(b, which, first, p, sums);
}

/* Whether all rows of the block see all of the others that it meets from `at` on. */
__device__ static inline int meets_all(const struct attention_numbers *s, const struct gradient_block *b, int at) {
  int first = OF_KEYS ? at : b->begin, last = OF_KEYS ? b->begin + OWN : at + MET; /* of queries; behind the last key */
  return !b->x.mask && b->begin + OWN <= b->own.count && at + MET <= b->met.count && (!s->causal || last <= first + 1);
}

/* Whether row e / 2 of the thread and the other of column e % 2, of the eight from `at` on, do. */
__device__ static inline int pair_sees(const struct attention_numbers *s, const struct gradient_block *b, int at, int e) {
  int own = b->begin + lane_row() + e / 2 * 8, met = at + place_of(2 * lane_t() + e % 2);
  return OF_KEYS ? sees(s, &b->x, met, own) : sees(s, &b->x, own, met);
}

/* What the weights of the thread's rows, which are queries, are made of. */
__device__ static inline void find_rows(const struct attention_numbers *s, struct gradient_block *b, int end, struct gradient_lane *l) {
  float top[2], sum[2], dots[2];
#pragma unroll
  for (int r = 0; r < 2; r++) top[r] = -infinity(), sum[r] = 0;
#pragma unroll 1
  for (int at = 0; at < end; at += MET) {
    __syncthreads();
    load_rows(&b->met, 0, at, b->tile[0]);
    __syncthreads();
    int all = meets_all(s, b, at);
#pragma unroll 1
    for (int first = 0; first < MET; first += GROUP * 8) {
      float scores[GROUP][4];
      multiply_rows(b, l, 0, first, scores);
#pragma unroll
      for (int i = 0; i < GROUP * 4; i++) scores[i / 4][i % 4] *= b->score_scale;
      if (!all)
#pragma unroll
        for (int i = 0; i < GROUP * 4; i++)
          if (!pair_sees(s, b, at + first + i / 4 * 8, i % 4)) scores[i / 4][i % 4] = -infinity();
#pragma unroll
      for (int r = 0; r < 2; r++) {
        float most = top[r];
#pragma unroll
        for (int i = 0; i < GROUP * 2; i++) most = fmaxf(most, scores[i / 2][r * 2 + i % 2]);
        float base = most == -infinity() ? 0 : most;
        sum[r] *= exp2_near(top[r] - base);
#pragma unroll
        for (int i = 0; i < GROUP * 2; i++) sum[r] += exp2_near(scores[i / 2][r * 2 + i % 2] - base);
        top[r] = most;
      }
    }
  }
  find_dots(b, dots);
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float most = fmaxf(top[r], lane_xor(top[r], 1));
    most = fmaxf(most, lane_xor(most, 2));
    float base = most == -infinity() ? 0 : most, total = sum[r] * exp2_near(top[r] - base);
    total += lane_xor(total, 1);
    total += lane_xor(total, 2);
    l->mine[r].base = total == 0 ? infinity() : base + log2_near(total);
    l->mine[r].dots = dots[r] * b->x.scale;
    int row = b->begin + lane_row() + r * 8;
    if (row < b->own.count && lane_t() == 0) b->rows[row] = l->mine[r];
  }
}

/* The query of score number i of the lane, of those from row `first` of the tile on. */
__device__ static inline struct query_row row_of(const struct gradient_block *b, const struct gradient_lane *l, int first, int i) {
  return OF_KEYS ? b->met_rows[first + i / 4 * 8 + place_of(2 * lane_t() + i % 2)] : l->mine[i % 4 / 2];
}

/* Adds what the MET others from `at` on give. `dull`: some own row, a query, sees nothing. */
__device__ static inline void meet(const struct attention_numbers *s, struct gradient_block *b, int at, int dull,
                                   struct gradient_lane *l) {
  __syncthreads();
  float odd = load_rows(&b->met, 0, at, b->tile[0]), scale = b->x.scale;
  float other = load_rows(&b->met, 1, at, b->tile[1]);
  int is_odd = odd != 0 || (OF_KEYS && other != 0);
  if (OF_KEYS && threadIdx.x < MET) {
    struct query_row row;
    row.base = row.dots = 0;
    if (at + (int)threadIdx.x < b->met.count) row = b->rows[at + threadIdx.x];
    b->met_rows[threadIdx.x] = row;
    is_odd = is_odd || row.base == infinity();
  }
  is_odd = any_thread(is_odd);
  int all = !is_odd && !dull && meets_all(s, b, at);
#pragma unroll 1
  for (int first = 0; first < MET; first += GROUP * 8) {
    float p[GROUP][4], ds[GROUP][4];
    multiply_rows(b, l, 0, first, p);
    multiply_rows(b, l, 1, first, ds);
#pragma unroll
    for (int i = 0; i < GROUP * 4; i++) {
      float *weight = &p[i / 4][i % 4], *gradient = &ds[i / 4][i % 4];
      struct query_row r = row_of(b, l, first, i);
      *weight = exp2_near(*weight * b->score_scale - r.base);
      *gradient = *weight * __fmaf_rn(*gradient, scale, -r.dots) + 0.0f;
    }
    if (!all) {
#pragma unroll
      for (int i = 0; i < GROUP * 4; i++)
        if (row_of(b, l, first, i).base == infinity() || !pair_sees(s, b, at + first + i / 4 * 8, i % 4))
          p[i / 4][i % 4] = ds[i / 4][i % 4] = unseen();
    }
    if (OF_KEYS) add_scores(b, 1, first, is_odd, p, l->weighed);
    add_scores(b, 0, first, is_odd, ds, l->sums);
  }
}

__device__ static inline void store_sums(const struct gradient_block *b, int which, float (*sums)[4]) {
  int first = first_column() + 8 * lane_t(), left = b->own.width[which] - first, stride = b->own.row[which];
#pragma unroll
  for (int half = 0; half < 2; half++) {
    int row = b->begin + lane_row() + half * 8;
    if (row >= b->own.count) continue;
    float *to = b->out[which] + (long long)row * stride + first;
    int wide = stride % 4 == 0 && (unsigned long long)to % 16 == 0;
#pragma unroll
    for (int i = 0; i < SUMS / 2; i++) {
      float v[4];
#pragma unroll
      for (int e = 0; e < 4; e++) v[e] = sums[i / 2 * 4 + e][half * 2 + i % 2];
      store_some(v, wide, left - (i / 2 * 32 + i % 2 * 4), to + i / 2 * 32 + i % 2 * 4);
    }
  }
}

__device__ static inline void gradient_block(const struct attention_numbers *s, struct gradient_block *b) {
  int first = OF_KEYS && s->causal ? b->begin / MET * MET : 0, end = b->met.count, dull = 0;
  if (!OF_KEYS && s->causal && b->begin + OWN < end) end = b->begin + OWN;
  struct gradient_lane l;
  keep_own(b, &l);
  if (!OF_KEYS) {
    find_rows(s, b, end, &l);
    dull = any_thread(l.mine[0].base == infinity() || l.mine[1].base == infinity());
  }
#pragma unroll
  for (int i = 0; i < SUMS * 4; i++) l.sums[i / 4][i % 4] = l.weighed[i / 4][i % 4] = 0;
#pragma unroll 1
  for (int at = first; at < end; at += MET) meet(s, b, at, dull, &l);
  store_sums(b, 0, l.sums);
  if (OF_KEYS) store_sums(b, 1, l.weighed);
}

__device__ static inline void place_rows(const struct attention_numbers *s, const struct attention_head *x, const float *a,
                                         const float *b, long long count, struct gradient_rows *r) {
  r->from[0] = a, r->from[1] = b, r->row[0] = (int)x->row, r->row[1] = (int)x->row_values, r->count = (int)count;
  r->width[0] = (int)s->size, r->width[1] = (int)s->values;
}

extern "C" __global__ void __launch_bounds__(256, FIT)
    attention_gradient_tensor(const TYPE *q, const TYPE *k, const TYPE *v, const TYPE *y, const TYPE *dy, void *rows,
                              const unsigned char *mask, TYPE *out, struct attention_numbers s) {
  __shared__ struct gradient_block b;
  long long tiles = ((OF_KEYS ? s.keys : s.queries) + OWN - 1) / OWN;
  for (long long at = blockIdx.x; at < s.batch * s.heads * tiles; at += gridDim.x) {
    __syncthreads();
    if (threadIdx.x == 0) {
      struct block_place place = block_place(&s, tiles, at, !OF_KEYS);
      long long head = place.head;
      struct attention_head x = attention_head(&s, mask, head);
      long long rows_q = s.queries * x.row, rows_k = s.keys * x.row, rows_v = s.keys * x.row_values, h = head % s.heads;
      TYPE *row = out + head / s.heads * (rows_q + rows_k + rows_v), *dk = row + rows_q + h * s.size;
      place_rows(&s, &x, q + x.q, dy + x.y, s.queries, OF_KEYS ? &b.met : &b.own);
      place_rows(&s, &x, k + x.k, v + x.v, s.keys, OF_KEYS ? &b.own : &b.met);
      b.x = x, b.y = y + x.y, b.rows = (struct query_row *)rows + head * s.queries, b.begin = place.tile * OWN;
      b.out[0] = OF_KEYS ? dk : row + h * s.size, b.out[1] = row + rows_q + rows_k + h * s.values;
      b.score_scale = x.scale * 0x1.715476p+0f;
    }
    __syncthreads();
    gradient_block(&s, &b);
  }
}
