/* SPDX-License-Identifier: Apache-2.0 */
/* The derivatives of attention in f32, see tiles.cuh and ir/ops/attention.c, in two calls (Dao, FlashAttention-2, 2023). In the
 * first, with OF_KEYS 0, a block has 64 queries and meets the keys twice: for what the rows' weights are made of, which it puts
 * into `rows`, and for dq. In the second, with OF_KEYS 1, it has 64 keys, which meet the queries: for dk and dv. */

/* Of a query: p = e^(score - top) by; 0: it sees nothing. dots = dy . y. */
struct __align__(16) query_row {
  float top, by, dots, none;
};

/* What a block has, where it begins, and of which head. */
struct gradient_block {
  const struct attention_numbers *s;
  const struct attention_head *x;
  struct tile_rows own, met;
  float *cells;
  int begin;
};

/* Whether all rows of the block see all that it meets. */
__device__ static inline int meets_all(const struct gradient_block *b, int at) {
  int first = OF_KEYS ? at : b->begin, last = OF_KEYS ? b->begin + OWN : at + MET; /* of queries; behind the last key */
  return !b->x->mask && b->begin + OWN <= b->own.count && at + MET <= b->met.count && (!b->s->causal || last <= first + 1);
}

__device__ static inline int pair_sees(const struct gradient_block *b, int own, int met) {
  return OF_KEYS ? sees(b->s, b->x, met, own) : sees(b->s, b->x, own, met);
}

/* Brings together what 16 threads have of each own row, and what four have of its dots; puts it into `rows`. */
__device__ static inline void join_rows(const struct gradient_block *b, const float *top, const float *sum, float dots,
                                        struct query_row *rows, struct query_row *mine) {
  const float lowest = -0x1.fffffep127f, nothing = lowest * 2;
  float *tops = b->cells + SCORES, *sums = tops + 16 * OWN, *parts = sums + 16 * OWN;
  int x = tile_x(), y = tile_y(), row = (int)threadIdx.x;
  __syncthreads();
#pragma unroll
  for (int j = 0; j < 4; j++) {
    tops[y * OWN + x + 16 * j] = top[j];
    sums[y * OWN + x + 16 * j] = sum[j];
  }
  parts[threadIdx.x] = dots;
  __syncthreads();
  if (row < OWN) {
    float most = nothing, total = 0;
    for (int i = 0; i < 16; i++) most = fmaxf(most, tops[i * OWN + row]);
    float base = most == nothing ? 0 : most;
    for (int i = 0; i < 16; i++) total = __fmaf_rn(sums[i * OWN + row], exp_near(tops[i * OWN + row] - base), total);
    float all = parts[4 * row] + parts[4 * row + 1] + parts[4 * row + 2] + parts[4 * row + 3];
    float by = total == 0 ? 0 : 1 / total;
    tops[row] = base, sums[row] = by, parts[row * 4] = all;
    if (b->begin + row < b->own.count) rows[row].top = base, rows[row].by = by, rows[row].dots = all;
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < 4; j++) {
    int at = x + 16 * j;
    mine[j].top = tops[at], mine[j].by = sums[at], mine[j].dots = parts[at * 4];
  }
}

/* A quarter of dy . y of own row threadIdx.x / 4. */
__device__ static inline float quarter_dots(const struct gradient_block *b, const float *y) {
  int row = b->begin + (int)threadIdx.x / 4;
  long long at = (long long)row * b->own.row[1];
  float sum = 0;
  for (int d = (int)threadIdx.x % 4; d < b->own.width[1] && row < b->own.count; d += 4)
    sum = __fmaf_rn(b->own.from[1][at + d], y[at + d], sum);
  return sum;
}

/* Of the own rows, which are queries. A score that is NaN makes the sum NaN. */
__device__ static inline void find_rows(const struct gradient_block *b, int end, const float *y, const float *dy,
                                        struct query_row *rows, long long head, struct query_row *mine) {
  const float lowest = -0x1.fffffep127f, nothing = lowest * 2, scale = b->x->scale;
  float top[4], sum[4], scores[HIGH][4];
#pragma unroll
  for (int j = 0; j < 4; j++) top[j] = nothing, sum[j] = 0;
#pragma unroll 1
  for (int at = 0; at < end; at += MET) {
    __syncthreads();
    load_tile(&b->met, 0, at, 0, MET, WIDTH, met_tile(b->cells, 0));
    __syncthreads();
    multiply_rows(b->cells, &b->own, b->begin, 0, scores);
#pragma unroll
    for (int i = 0; i < HIGH * 4; i++) scores[i / 4][i % 4] *= scale;
    if (!meets_all(b, at)) {
#pragma unroll
      for (int i = 0; i < HIGH * 4; i++)
        if (!pair_sees(b, b->begin + tile_x() + 16 * (i % 4), at + tile_y() + 16 * (i / 4))) scores[i / 4][i % 4] = nothing;
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float most = top[j];
#pragma unroll
      for (int i = 0; i < HIGH; i++) most = fmaxf(most, scores[i][j]);
      float base = most == nothing ? 0 : most;
      sum[j] *= exp_near(top[j] - base);
#pragma unroll
      for (int i = 0; i < HIGH; i++) sum[j] += exp_near(scores[i][j] - base);
      top[j] = most;
    }
  }
  join_rows(b, top, sum, quarter_dots(b, y + (b->own.from[1] - dy)), rows + anew(head) * b->s->queries + b->begin, mine);
}

/* The weights of all pairs from their scores, and from what their gradients are those of the scores. */
__device__ static inline void weigh(const struct gradient_block *b, int at, const struct query_row *rows, float (*p)[4],
                                    float (*ds)[4]) {
  int plain = meets_all(b, at);
  float scale = b->x->scale;
#pragma unroll
  for (int i = 0; i < (OF_KEYS ? HIGH : 4); i++) plain = plain && rows[i].by != 0;
#pragma unroll
  for (int i = 0; i < HIGH; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const struct query_row *r = &rows[OF_KEYS ? i : j];
      p[i][j] = exp_near(p[i][j] * scale - r->top) * r->by;
      ds[i][j] = p[i][j] * (ds[i][j] - r->dots) * scale + 0.0f;
    }
  if (plain) return;
#pragma unroll
  for (int i = 0; i < HIGH; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (rows[OF_KEYS ? i : j].by == 0 || !pair_sees(b, b->begin + tile_x() + 16 * j, at + tile_y() + 16 * i))
        p[i][j] = ds[i][j] = unseen();
}

/* Adds what is met from `at` on; `sums` of ds, and of p. */
__device__ static inline void meet(const struct gradient_block *b, int at, struct query_row *rows, const struct query_row *all_rows,
                                   float (*sums)[4][4], float (*weighed)[4][4]) {
  float p[HIGH][4], ds[HIGH][4];
  __syncthreads();
  float odd = load_tile(&b->met, 0, at, 0, MET, WIDTH, met_tile(b->cells, 0));
  float other = load_tile(&b->met, 1, at, 0, MET, WIDTH, met_tile(b->cells, 1));
  int is_odd = any_thread(odd != 0 || (OF_KEYS && other != 0));
  multiply_rows(b->cells, &b->own, b->begin, 0, p);
  multiply_rows(b->cells, &b->own, b->begin, 1, ds);
#pragma unroll
  for (int i = 0; i < HIGH && OF_KEYS; i++) {
    int row = at + tile_y() + 16 * i;
    rows[i] = all_rows[row < b->met.count ? row : 0];
  }
  weigh(b, at, rows, p, ds);
  if (OF_KEYS) {
    if (!IS_KEPT) __syncthreads();
    store_scores(b->cells, p);
    __syncthreads();
    add_scores(b->cells, 1, is_odd, weighed);
  }
  if (OF_KEYS || !IS_KEPT) __syncthreads();
  store_scores(b->cells, ds);
  __syncthreads();
  add_scores(b->cells, 0, is_odd, sums);
}

__device__ static inline void gradient_block(const struct gradient_block *b, const float *y, const float *dy,
                                             struct query_row *rows, float *out, long long head) {
  int first = OF_KEYS && b->s->causal ? b->begin / MET * MET : 0, end = b->met.count;
  if (!OF_KEYS && b->s->causal && b->begin + OWN < end) end = b->begin + OWN;
  struct query_row mine[4];
  float sums[WIDE][4][4], weighed[WIDE][4][4];
  __syncthreads();
  keep_own(b->cells, &b->own, b->begin);
  if (!OF_KEYS) find_rows(b, end, y, dy, rows, head, mine);
  if (OF_KEYS) rows += head * b->s->queries;
  clear_sums(sums);
  clear_sums(weighed);
#pragma unroll 1
  for (int at = first; at < end; at += MET) meet(b, at, mine, rows, sums, weighed);
  join_turns(b->cells, sums);
  if (OF_KEYS || WIDTH > 32) head = anew(head);
  long long queries = b->s->queries * b->own.row[0], keys = b->s->keys * b->own.row[0], h = head % b->s->heads;
  out += head / b->s->heads * (queries + keys + b->s->keys * b->own.row[1]);
  store_sums(sums, b->begin, b->own.count, b->own.width[0], b->own.row[0], out + (OF_KEYS ? queries : 0) + h * b->own.width[0]);
  if (!OF_KEYS) return;
  join_turns(b->cells, weighed);
  store_sums(weighed, b->begin, b->own.count, b->own.width[1], b->own.row[1], out + queries + keys + h * b->own.width[1]);
}

extern "C" __global__ void __launch_bounds__(256, LOADS == 1 && WIDTH == 128 ? 1 : LEAST_BLOCKS)
    attention_gradient_tiles(const TYPE *q, const TYPE *k, const TYPE *v, const TYPE *y, const TYPE *dy, void *rows,
                             const unsigned char *mask, TYPE *out, struct attention_numbers s) {
  __shared__ struct four cells[CELLS / 4];
  long long tiles = ((OF_KEYS ? s.keys : s.queries) + OWN - 1) / OWN;
  for (long long at = blockIdx.x; at < s.batch * s.heads * tiles; at += gridDim.x) {
    struct block_place place = block_place(&s, tiles, at, !OF_KEYS);
    long long head = place.head;
    struct attention_head x = attention_head(&s, mask, head);
    struct tile_rows queries = tile_rows(&s, &x, q + x.q, dy + x.y, s.queries), keys = tile_rows(&s, &x, k + x.k, v + x.v, s.keys);
    struct gradient_block b;
    b.s = &s, b.x = &x, b.cells = &cells[0].x, b.begin = place.tile * OWN;
    b.own = OF_KEYS ? keys : queries, b.met = OF_KEYS ? queries : keys;
    gradient_block(&b, y, dy, (struct query_row *)rows, out, head);
  }
}
