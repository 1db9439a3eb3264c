/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in f32, see tiles.cuh and ir/ops/attention.c: a block has 64 queries and meets all keys once, and what it holds is brought to
 * the scale of the greatest score so far (Dao, FlashAttention-2, 2023). */

/* What a block has, and where it begins. */
struct attention_block {
  const struct attention_numbers *s;
  const struct attention_head *x;
  struct tile_rows own, met;
  float *cells;
  int begin;
};

/* Of the four rows of a thread: the greatest score so far, and what the weights add up to. */
struct row_state {
  float top[4], sum[4];
};

/* Whether all queries of the block see all keys that it meets from `at` on. */
__device__ static inline int meets_all(const struct attention_block *b, int at) {
  return !b->x->mask && b->begin + OWN <= b->own.count && at + MET <= b->met.count && (!b->s->causal || at + MET <= b->begin + 1);
}

/* What sixteen threads have of each of their rows, into four parts of 64 numbers, which `part_of` reads. */
__device__ static inline void join_lanes(float *parts, float *of, int is_sum) {
#pragma unroll
  for (int j = 0; j < 4; j++) {
#pragma unroll
    for (int by = 8; by < 32; by *= 2) {
      float other = lane_xor(of[j], by);
      of[j] = is_sum ? of[j] + other : fmaxf(of[j], other);
    }
    if (threadIdx.x % 32 < 8) parts[threadIdx.x / 64 * OWN + tile_x() + 16 * j] = of[j];
  }
}

__device__ static inline float top_of(const float *parts, int row, float top) {
#pragma unroll
  for (int i = 0; i < 4; i++) top = fmaxf(top, parts[i * OWN + row]);
  return top;
}

/* The base of a row's weights. */
__device__ static inline float base_of(float top) {
  const float lowest = -0x1.fffffep127f, nothing = lowest * 2;
  return top == nothing ? 0 : top;
}

/* The weights of what is met, from the scores; `scored` has the rows of the thread's scores, `held` those of what it holds. A score
 * that is NaN makes the sum NaN. */
__device__ static inline void weigh(const struct attention_block *b, int at, float (*p)[4], struct row_state *scored,
                                    float *held_top, float (*held)[4][4]) {
  const float lowest = -0x1.fffffep127f, nothing = lowest * 2;
  float most[4], *parts = met_tile(b->cells, 0);
  unsigned hidden = 0;
#pragma unroll
  for (int i = 0; i < HIGH * 4; i++) p[i / 4][i % 4] *= b->x->scale;
  if (!meets_all(b, at)) {
#pragma unroll
    for (int i = 0; i < HIGH * 4; i++) {
      if (sees(b->s, b->x, b->begin + tile_x() + 16 * (i % 4), at + tile_y() + 16 * (i / 4))) continue;
      hidden |= 1u << i;
      p[i / 4][i % 4] = nothing;
    }
  }
#pragma unroll
  for (int j = 0; j < 4; j++) {
    most[j] = nothing;
#pragma unroll
    for (int i = 0; i < HIGH; i++) most[j] = fmaxf(most[j], p[i][j]);
  }
  __syncthreads();
  join_lanes(parts, most, 0);
  __syncthreads();
#pragma unroll
  for (int r = 0; r < 4; r++) {
    float top = top_of(parts, 4 * tile_a() + r, held_top[r]), by = exp_near(held_top[r] - base_of(top));
    held_top[r] = top;
#pragma unroll
    for (int i = 0; i < WIDE * 4; i++) held[i / 4][r][i % 4] *= by;
  }
#pragma unroll
  for (int j = 0; j < 4; j++) {
    float top = top_of(parts, tile_x() + 16 * j, scored->top[j]), base = base_of(top);
    scored->sum[j] *= exp_near(scored->top[j] - base);
    scored->top[j] = top;
#pragma unroll
    for (int i = 0; i < HIGH; i++) {
      p[i][j] = exp_near(p[i][j] - base);
      scored->sum[j] += p[i][j];
    }
  }
  if (hidden == 0) return;
#pragma unroll
  for (int i = 0; i < HIGH * 4; i++)
    if (hidden >> i & 1) p[i / 4][i % 4] = unseen();
}

/* Divides what is held by the sums of its weights. */
__device__ static inline void divide(const struct attention_block *b, struct row_state *scored, float (*held)[4][4]) {
  float *parts = met_tile(b->cells, 0);
  __syncthreads();
  join_lanes(parts, scored->sum, 1);
  __syncthreads();
#pragma unroll
  for (int r = 0; r < 4; r++) {
    const float *of = parts + 4 * tile_a() + r;
    float sum = of[0] + of[OWN] + of[2 * OWN] + of[3 * OWN];
#pragma unroll
    for (int i = 0; i < WIDE * 4; i++) held[i / 4][r][i % 4] = sum == 0 ? 0 : held[i / 4][r][i % 4] / sum;
  }
}

__device__ static inline void attend(const struct attention_block *b, float *y) {
  const float lowest = -0x1.fffffep127f, nothing = lowest * 2;
  int end = b->met.count;
  if (b->s->causal && b->begin + OWN < end) end = b->begin + OWN;
  struct row_state scored;
  float held_top[4], held[WIDE][4][4];
#pragma unroll
  for (int j = 0; j < 4; j++) scored.top[j] = held_top[j] = nothing, scored.sum[j] = 0;
  clear_sums(held);
  __syncthreads();
  keep_own(b->cells, &b->own, b->begin);
#pragma unroll 1
  for (int at = 0; at < end; at += MET) {
    float p[HIGH][4];
    __syncthreads();
    load_tile(&b->met, 0, at, 0, MET, WIDTH, met_tile(b->cells, 0));
    float odd = load_tile(&b->met, 1, at, 0, MET, WIDTH, met_tile(b->cells, 1));
    int is_odd = any_thread(odd != 0);
    multiply_rows(b->cells, &b->own, b->begin, 0, p);
    weigh(b, at, p, &scored, held_top, held);
    __syncthreads();
    store_scores(b->cells, p);
    __syncthreads();
    add_scores(b->cells, 1, is_odd, held);
  }
  join_turns(b->cells, held);
  divide(b, &scored, held);
  store_sums(held, b->begin, b->own.count, b->own.width[1], b->own.row[1], y);
}

extern "C" __global__ void __launch_bounds__(256, LEAST_BLOCKS)
    attention_tiles(const TYPE *q, const TYPE *k, const TYPE *v, const unsigned char *mask, TYPE *y, struct attention_numbers s) {
  __shared__ struct four cells[CELLS / 4];
  long long tiles = (s.queries + OWN - 1) / OWN;
  for (long long at = blockIdx.x; at < s.batch * s.heads * tiles; at += gridDim.x) {
    struct block_place place = block_place(&s, tiles, at, 1);
    struct attention_head x = attention_head(&s, mask, place.head);
    struct attention_block b;
    b.s = &s, b.x = &x, b.cells = &cells[0].x, b.begin = place.tile * OWN;
    b.own = tile_rows(&s, &x, q + x.q, q, s.queries), b.met = tile_rows(&s, &x, k + x.k, v + x.v, s.keys);
    attend(&b, y + x.y);
  }
}
