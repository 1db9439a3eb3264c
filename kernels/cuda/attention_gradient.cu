/* SPDX-License-Identifier: Apache-2.0 */
/* The derivatives of attention, see ir/ops/attention.c. A block does a head: 16 rows after 16 rows against 16 keys at
 * a time, a thread for each pair. What is added to an element is added by one thread, in the order of the rows or of
 * the keys. */
enum { ROWS = 16 };

struct attention_tile {
  TYPE score[ROWS * ROWS], ds[ROWS * ROWS];
  bool seen[ROWS * ROWS];
};

/* Of a head. */
struct attention_operands {
  const TYPE *q, *k, *v, *y, *dy;
  TYPE *dq, *dk, *dv;
};

__device__ static void clear_rows(TYPE *x, long long row, long long rows, long long size) {
  for (long long e = threadIdx.x; e < rows * size; e += blockDim.x) x[e / size * row + e % size] = 0;
}

/* What the block's rows and these keys are to each other: p and ds. */
__device__ static void meet(const struct attention_numbers *s, const struct attention_head *x,
                            struct attention_tile *tile, const struct attention_operands *o, long long i, long long j,
                            TYPE top, TYPE sum, TYPE dots) {
  bool seen = attention_sees(s, x, i, j) && sum != 0;
  TYPE p = 0, ds = 0;
  if (seen) {
    p = attention_exp(attention_dot(o->q + i * x->row, o->k + j * x->row, s->size) * x->scale - top) / sum;
    ds = p * (attention_dot(o->dy + i * x->row_values, o->v + j * x->row_values, s->values) - dots) * x->scale;
  }
  __syncthreads();
  tile->score[threadIdx.x] = p;
  tile->ds[threadIdx.x] = ds;
  tile->seen[threadIdx.x] = seen;
  __syncthreads();
}

/* Thread (r, t) adds to every sixteenth number, from t on, of row r of dq, and of key r of dk and dv. */
__device__ static void add_all(const struct attention_numbers *s, const struct attention_head *x,
                               const struct attention_tile *tile, const struct attention_operands *o, long long begin,
                               long long first) {
  int r = threadIdx.x / ROWS, t = threadIdx.x % ROWS;
  for (int a = 0; a < ROWS; a++) {
    if (tile->seen[r * ROWS + a])
      for (long long d = t; d < s->size; d += ROWS)
        o->dq[(begin + r) * x->row + d] += tile->ds[r * ROWS + a] * o->k[(first + a) * x->row + d];
    if (!tile->seen[a * ROWS + r]) continue;
    for (long long d = t; d < s->size; d += ROWS)
      o->dk[(first + r) * x->row + d] += tile->ds[a * ROWS + r] * o->q[(begin + a) * x->row + d];
    for (long long d = t; d < s->values; d += ROWS)
      o->dv[(first + r) * x->row_values + d] += tile->score[a * ROWS + r] * o->dy[(begin + a) * x->row_values + d];
  }
}

__device__ static void head_gradient(const struct attention_numbers *s, const struct attention_head *x,
                                     struct attention_tile *tile, const struct attention_operands *o) {
  const TYPE lowest = -(TYPE)(sizeof(TYPE) == 4 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023), nothing = lowest * 2;
  int r = threadIdx.x / ROWS, t = threadIdx.x % ROWS;
  clear_rows(o->dq, x->row, s->queries, s->size);
  clear_rows(o->dk, x->row, s->keys, s->size);
  clear_rows(o->dv, x->row_values, s->keys, s->values);
  for (long long begin = 0; begin < s->queries; begin += ROWS) {
    long long i = begin + r, keys = s->causal && begin + ROWS < s->keys ? begin + ROWS : s->keys;
    TYPE top = nothing, sum = 0, dots = 0;
    for (long long j = 0; j < keys; j += ROWS) {
      TYPE score = nothing;
      if (attention_sees(s, x, i, j + t))
        score = attention_dot(o->q + i * x->row, o->k + (j + t) * x->row, s->size) * x->scale;
      __syncthreads();
      tile->score[threadIdx.x] = score;
      __syncthreads();
      TYPE most = top;
      for (int a = 0; a < ROWS; a++) {
        TYPE other = tile->score[r * ROWS + a];
        if (other > most || other != other) most = other;
      }
      TYPE base = most == nothing ? 0 : most;
      sum *= attention_exp(top - base);
      for (int a = 0; a < ROWS; a++) sum += attention_exp(tile->score[r * ROWS + a] - base);
      top = most;
    }
    if (i < s->queries) dots = attention_dot(o->dy + i * x->row_values, o->y + i * x->row_values, s->values);
    for (long long j = 0; j < keys; j += ROWS) {
      meet(s, x, tile, o, i, j + t, top, sum, dots);
      add_all(s, x, tile, o, begin, j);
    }
  }
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(256, LEAST_BLOCKS)
    attention_gradient(const TYPE *q, const TYPE *k, const TYPE *v, const TYPE *y,
                                              const TYPE *dy, const unsigned char *mask, TYPE *out,
                                              struct attention_numbers s) {
  __shared__ struct attention_tile tile;
  for (long long head = blockIdx.x; head < s.batch * s.heads; head += gridDim.x) {
    struct attention_head x = attention_head(&s, mask, head);
    long long rows_q = s.queries * x.row, rows_k = s.keys * x.row, rows_v = s.keys * x.row_values, h = head % s.heads;
    TYPE *row = out + head / s.heads * (rows_q + rows_k + rows_v);
    struct attention_operands o;
    o.q = q + x.q, o.k = k + x.k, o.v = v + x.v, o.y = y + x.y, o.dy = dy + x.y;
    o.dq = row + h * s.size, o.dk = row + rows_q + h * s.size, o.dv = row + rows_q + rows_k + h * s.values;
    head_gradient(&s, &x, &tile, &o);
  }
}
