/* SPDX-License-Identifier: Apache-2.0 */
/* out, which holds x: out[index[i]] += values[i], in the order of i, nothing where there is no such row; integers
 * wrap.
 *
 * A block has 32 columns of a row of out, or 128 where that would make more than MANY blocks: of row b of out, or,
 * where out has more rows than there are row numbers, of the row that number b names, if no number before names it. It
 * looks through the numbers, SEGMENT at a time, for those that name its row, has all its warps bring what belongs to
 * them into shared memory, STAGE rows at a time, and adds that up in order, a thread for each column. So sums do not
 * depend on what runs when. */
enum { SEGMENT = 4096, STAGE = 128, WARPS = 8, LANES = 32, GROUPS = 4, MANY = 4096 };

struct scatter_shared {
  SUM stage[STAGE * LANES];
  int counts[WARPS];
  unsigned short list[SEGMENT]; /* of the segment those that name the row, in order */
};

/* Puts into the list which numbers of the segment from `begin` on are `row`; how many there are. */
__device__ static inline int find_in_segment(const struct rows_numbers *s, const void *index, long long row, long long begin,
                                             struct scatter_shared *shared) {
  int warp = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES, count = 0, at = 0, total = 0;
  long long left = s->count - begin;
  int steps = left < SEGMENT ? (int)(left + WARPS * LANES - 1) / (WARPS * LANES) : SEGMENT / (WARPS * LANES);
  int first = warp * steps * LANES + lane;
  unsigned hits = 0;
#pragma unroll 8
  for (int i = 0; i < steps; i++) {
    int e = first + i * LANES, hit = e < left && row_at(index, s->index_bytes, begin + e) == row;
    hits |= (unsigned)hit << i;
    count += __popc(warp_vote(hit));
  }
  if (lane == 0) shared->counts[warp] = count;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < WARPS; i++) {
    if (i < warp) at += shared->counts[i];
    total += shared->counts[i];
  }
  if (total == 0) return 0;
#pragma unroll 1
  for (int i = 0; i < steps; i++) {
    unsigned votes = warp_vote(hits >> i & 1);
    if (hits >> i & 1) shared->list[at + __popc(votes & ((1u << lane) - 1))] = (unsigned short)(first + i * LANES);
    at += __popc(votes);
  }
  return total;
}

/* Whether a number before i is `row`, which number i is. */
__device__ static inline int is_named_before(const struct rows_numbers *s, const void *index, long long i, long long row) {
  int found = 0;
  for (long long begin = 0; begin < i && !found; begin += SEGMENT / 4) {
#pragma unroll
    for (int e = 0; e < SEGMENT / 4; e += WARPS * LANES) {
      long long at = begin + e + threadIdx.x;
      found = found || (at < i && row_at(index, s->index_bytes, at) == row);
    }
    found = any_thread(found);
  }
  return found;
}

/* Adds to `width` columns of a row, from `column` on. */
__device__ static inline void add_to_row(const struct rows_numbers *s, const void *index, const TYPE *values, TYPE *out,
                                         long long row, long long first, long long column, int width,
                                         struct scatter_shared *shared) {
  int warp = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES, groups = (width + LANES - 1) / LANES, any = 0;
  int mine = (int)threadIdx.x < width;
  TYPE *to = out + row * s->width + column + threadIdx.x;
  SUM sum = mine ? (SUM)*to : 0;
#pragma unroll 1
  for (long long begin = first; begin < s->count; begin += SEGMENT) {
    __syncthreads();
    int found = find_in_segment(s, index, row, begin, shared);
    any = any || found;
    __syncthreads();
#pragma unroll 1
    for (int at = 0; at < found; at += STAGE)
#pragma unroll 1
      for (int group = 0; group < groups; group++) {
        int there = group * LANES + lane < width;
        SUM held[STAGE / WARPS];
#pragma unroll
        for (int j = 0; j < STAGE / WARPS; j++) {
          int l = at + j * WARPS + warp;
          const TYPE *from = values + column + group * LANES + lane;
          held[j] = l < found && there ? (SUM)from[(begin + shared->list[l]) * s->width] : 0;
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < STAGE / WARPS; j++) shared->stage[(j * WARPS + warp) * LANES + lane] = held[j];
        __syncthreads();
        int rows = found - at < STAGE ? found - at : STAGE;
        if (warp == group) {
#pragma unroll 8
          for (int l = 0; l < rows; l++) sum += shared->stage[l * LANES + lane];
        }
      }
  }
  if (mine && any) *to = (TYPE)sum;
}

extern "C" __global__ void scatter_add(const TYPE *x, const void *index, const TYPE *values, TYPE *out,
                                       struct rows_numbers s) {
  __shared__ struct scatter_shared shared;
  long long targets = s.rows <= s.count ? s.rows : s.count, narrow = (s.width + LANES - 1) / LANES;
  int across = targets * narrow <= MANY ? LANES : GROUPS * LANES;
  long long parts = (s.width + across - 1) / across;
  for (long long b = blockIdx.x; b < targets * parts; b += gridDim.x) {
    long long row = b / parts, column = b % parts * across, first = 0;
    if (s.rows > s.count) {
      long long i = row;
      row = row_at(index, s.index_bytes, i);
      if (row < 0 || row >= s.rows || is_named_before(&s, index, i, row)) continue;
      first = i / SEGMENT * SEGMENT;
    }
    int width = s.width - column < across ? (int)(s.width - column) : across;
    add_to_row(&s, index, values, out, row, first, column, width, &shared);
  }
}
