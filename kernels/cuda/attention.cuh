/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of attention by one thread for each pair of a row and a key. */
enum { ROWS = 16, HELD = 8 };

struct attention_tile {
  TYPE score[ROWS * ROWS]; /* and then the weight */
  bool seen[ROWS * ROWS];
};

/* Values from `first` on of the block's rows. */
__device__ static void attention_rows(const struct attention_numbers *s, const struct attention_head *x,
                                      struct attention_tile *tile, const TYPE *q, const TYPE *k, const TYPE *v, TYPE *y,
                                      long long begin, long long first) {
  const TYPE lowest = -(TYPE)(sizeof(TYPE) == 4 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023), nothing = lowest * 2;
  int r = threadIdx.x / ROWS, t = threadIdx.x % ROWS;
  long long i = begin + r;
  TYPE top = nothing, sum = 0, held[HELD];
  for (int d = 0; d < HELD; d++) held[d] = 0;
  for (long long j = 0; j < s->keys && (!s->causal || j < begin + ROWS); j += ROWS) {
    bool seen = attention_sees(s, x, i, j + t);
    TYPE score = nothing;
    if (seen) score = attention_dot(q + i * x->row, k + (j + t) * x->row, s->size) * x->scale;
    tile->score[threadIdx.x] = score;
    tile->seen[threadIdx.x] = seen;
    __syncthreads();
    TYPE most = top;
    for (int a = 0; a < ROWS; a++) {
      TYPE other = tile->score[r * ROWS + a];
      if (other > most || other != other) most = other;
    }
    TYPE base = most == nothing ? 0 : most, by = attention_exp(top - base);
    __syncthreads();
    tile->score[threadIdx.x] = attention_exp(score - base);
    __syncthreads();
    sum *= by;
    for (int d = 0; d < HELD; d++) held[d] *= by;
    for (int a = 0; a < ROWS; a++) {
      if (!tile->seen[r * ROWS + a]) continue;
      TYPE p = tile->score[r * ROWS + a];
      const TYPE *from = v + (j + a) * x->row_values;
      sum += p;
      for (int d = 0; d < HELD; d++) {
        long long at = first + d * ROWS + t;
        if (at < s->values) held[d] += p * from[at];
      }
    }
    top = most;
    __syncthreads();
  }
  for (int d = 0; d < HELD; d++) {
    long long at = first + d * ROWS + t;
    if (i < s->queries && at < s->values) y[i * x->row_values + at] = top == nothing ? 0 : held[d] / sum;
  }
}
