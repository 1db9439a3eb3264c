/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of f32 with few channels and few filters in a group, along one or two axes; see conv.cu. There most of
 * a tile of a product of matrices would be padding. Here a thread has RUN pixels that follow each other by TAKE
 * columns in registers, and of a kernel all places of one of its rows by TAKE filters; what it multiplies lies in
 * shared memory. All factors are f32, by fused multiply-adds.
 *
 * Sizes are definitions in front (runtime/cuda/conv_few.c), so that the compiler knows how long loops are; only the
 * batch is a number. An input is computed as an output is: of the other image and of the kernel turned round. So each
 * of the two axes _H and _W has a result of OUT pixels that lie STEP apart, a KERNEL whose places lie SPREAD apart,
 * LOW places in front, and SEEN pixels of what is looked up, which lie GAP apart: pixel o meets under place k what
 * lies at o * STEP + k * SPREAD - LOW, if GAP divides it. Each of the GROUPS has COLUMNS channels or filters of the
 * result, and sums INNER terms at a place, PART of them at a time. Where the result (RESULT, as conv_numbers has it)
 * is a kernel, OUT is the output, whose filters are the COLUMNS.
 *
 * Rows of all images are numbered through, and so are those of what is looked up, TALL for each image, with those that
 * lie in the padding. A block has ROWS of the result at a time, which see SEEN_ROWS at most; in shared memory what
 * lies outside is 0. A factor that is NaN or infinite and may meet it makes a block add up element by element. */
#define FLOOR(a, b) ((a) >= 0 ? (a) / (b) : -((-(a) + (b) - 1) / (b)))
/* Under place 0 of the kernel, pixel 0 of the result meets what lies MORE, less than GAP, behind pixel FIRST of what is
 * looked up. */
enum {
  FIRST_H = FLOOR(-LOW_H, GAP_H),
  FIRST_W = FLOOR(-LOW_W, GAP_W),
  MORE_H = -LOW_H - FIRST_H * GAP_H,
  MORE_W = -LOW_W - FIRST_W * GAP_W,
  TALL = ((OUT_H - 1) * STEP_H + (KERNEL_H - 1) * SPREAD_H + MORE_H) / GAP_H + 1,
  REACH = ((KERNEL_H - 1) * SPREAD_H + GAP_H - 1) / GAP_H + 1, /* rows that one of the result may see */
  RUNS = (OUT_W + RUN - 1) / RUN,                   /* of a row of the result */
  SPAN = ((RUN - 1) * STEP_W + (KERNEL_W - 1) * SPREAD_W + MORE_W) / GAP_W + 1, /* pixels that a run sees */
  BETWEEN = RUN * STEP_W / GAP_W,     /* from the first pixel that a run sees to that of the next one */
  WIDE = (RUNS - 1) * BETWEEN + SPAN, /* pixels of a row in shared memory */
  PADS = FIRST_H < 0 || FIRST_H + TALL > SEEN_H || FIRST_W < 0 ||
         FIRST_W + ((OUT_W - 1) * STEP_W + (KERNEL_W - 1) * SPREAD_W + MORE_W) / GAP_W >= SEEN_W
};
enum {
  PARTS = (COLUMNS + TAKE - 1) / TAKE, /* threads that share the columns */
  FILTERS = GROUPS * (RESULT == 0 ? INNER : COLUMNS),
  STRIDE = GROUPS * INNER, /* between pixels of what is looked up */
  SLOT = (TAKE + 3) / 4 * 4, /* TAKE numbers in shared memory */
  PITCH = (WIDE * PART) | 1, /* between rows of a tile there */
  TILE = SEEN_ROWS * PITCH,
  BLOCKS = RESULT != 1 && RUN * TAKE <= 36 ? 3 : 2, /* that registers are to be enough for */
  LOADS = BLOCKS == 3 ? 4 : 8               /* of a thread that are under way at once */
};

struct conv_few_numbers {
  struct conv_numbers s;
  long long pieces, piece; /* of a kernel, and how many rows of the output each has */
};

/* The row of what is looked up that row r of the result sees first, see TALL. */
__device__ static inline int first_seen(int r) { return r / OUT_H * TALL + (r % OUT_H * STEP_H + MORE_H) / GAP_H; }

/* Whether row r sees one under place k of the kernel. */
__device__ static inline int row_is_there(int r, int k) {
  return GAP_H == 1 || (r % OUT_H * STEP_H + k * SPREAD_H + MORE_H) % GAP_H == 0;
}
__device__ static inline int row_seen(int r, int k) {
  return r / OUT_H * TALL + (r % OUT_H * STEP_H + k * SPREAD_H + MORE_H) / GAP_H;
}

/* Pixel p of a run under place k: whether there is one, and which of its SPAN. */
#define IS_THERE(p, k) (((p) * STEP_W + (k) * SPREAD_W + MORE_W) % GAP_W == 0)
#define PIXEL(p, k) (((p) * STEP_W + (k) * SPREAD_W + MORE_W) / GAP_W)

/* Brings rows `first` to before `end` of what is looked up into the tile, PART channels from `channel` on. */
__device__ static inline void load_rows(const float *from, int batch, int group, int channel, int first, int end, float *tile) {
  enum { UNITS = (WIDE * PART + 31) / 32 };
  int lane = (int)threadIdx.x % 32, count = (end - first) * UNITS;
#pragma unroll 1
  for (int begin = (int)threadIdx.x / 32; begin < count; begin += 8 * LOADS) {
    float v[LOADS];
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
      int unit = begin + 8 * i, row = first + unit / UNITS, at = unit % UNITS * 32 + lane;
      int image = row / TALL, h = row % TALL + FIRST_H, w = at / PART + FIRST_W;
      v[i] = 0;
      if (unit < count && at < WIDE * PART && image < batch && h >= 0 && h < SEEN_H && w >= 0 && w < SEEN_W)
        v[i] = from[((long long)(image * SEEN_H + h) * SEEN_W + w) * STRIDE + group * INNER + channel + at % PART];
    }
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
      int unit = begin + 8 * i, at = unit % UNITS * 32 + lane;
      if (unit < count && at < WIDE * PART) tile[unit / UNITS * PITCH + at] = v[i];
    }
  }
}

/* `count` neighbours, a multiple of four. */
__device__ static inline void load_slot(const float *from, float *to, int count) {
#pragma unroll
  for (int i = 0; i < count; i += 4) load_four(from + i, to + i, 1);
}

#if RESULT != 1

/* ---- an output, or an input ---- */

enum {
  WEIGHTS = KERNEL_H * PART * KERNEL_W * PARTS * SLOT,
  LINE = OUT_W * COLUMNS,
  STAGED = LINE | 1, /* a row of the result in shared memory, from where it goes to memory in order */
  LEAST = 4096 < ROWS * STAGED ? 4096 : ROWS * STAGED,
  MOST = WEIGHTS + TILE > LEAST ? WEIGHTS + TILE : LEAST,
  SHARED = MOST > STAGED ? MOST : STAGED,
  AT_ONCE = SHARED / STAGED,
  IN_TURN = GAP_H > 1 && ROWS % GAP_H == 0 ? GAP_H : 1 /* rows that see the same places of the kernel stand together */
};

__device__ static inline void load_weights(const float *by, int group, int channel, float *weights, float *odd) {
#pragma unroll 1
  for (int e = (int)threadIdx.x; e < KERNEL_H * PART * KERNEL_W * COLUMNS; e += 256) {
    int column = e % COLUMNS, at = e / COLUMNS, w = at % KERNEL_W, c = at / KERNEL_W % PART, h = at / KERNEL_W / PART;
    int place = RESULT == 2 ? h * KERNEL_W + w : (KERNEL_H - 1 - h) * KERNEL_W + KERNEL_W - 1 - w;
    float v = RESULT == 2 ? by[(place * INNER + channel + c) * FILTERS + group * COLUMNS + column]
                          : by[(place * COLUMNS + column) * FILTERS + group * INNER + channel + c];
    if (PADS) *odd += v - v;
    weights[at * PARTS * SLOT + column / TAKE * SLOT + column % TAKE] = v;
  }
}

__device__ static inline void add_row(const float *from, const float *weights, float (*sums)[TAKE]) {
#pragma unroll 1
  for (int c = 0; c < PART; c++) {
    float seen[SPAN];
#pragma unroll
    for (int i = 0; i < SPAN; i++) seen[i] = from[i * PART + c];
#pragma unroll
    for (int k = 0; k < KERNEL_W; k++) {
      float w[SLOT];
      load_slot(weights + (c * KERNEL_W + k) * PARTS * SLOT, w, SLOT);
#pragma unroll
      for (int p = 0; p < RUN; p++)
#pragma unroll
        for (int j = 0; j < TAKE; j++)
          if (IS_THERE(p, k)) sums[p][j] = __fmaf_rn(seen[PIXEL(p, k)], w[j], sums[p][j]);
    }
  }
}

/* What a thread has in registers goes by way of `staged`. */
__device__ static inline void store_rows(float *out, float *staged, int top, int rows, int group, int row, int run, int part,
                                         float (*sums)[TAKE]) {
#pragma unroll 1
  for (int begin = 0; begin < rows; begin += AT_ONCE) {
    __syncthreads();
    if (row >= begin && row < begin + AT_ONCE) {
      float *to = staged + (row - begin) * STAGED + run * RUN * COLUMNS + part * TAKE;
#pragma unroll
      for (int p = 0; p < RUN; p++)
#pragma unroll
        for (int j = 0; j < TAKE; j++)
          if (run * RUN + p < OUT_W && part * TAKE + j < COLUMNS) to[p * COLUMNS + j] = sums[p][j];
    }
    __syncthreads();
    int count = rows - begin < AT_ONCE ? rows - begin : AT_ONCE;
#pragma unroll 1
    for (int r = (int)threadIdx.x / 32; r < count; r += 8) {
      float *to = out + (long long)(top + begin + r) * (LINE * GROUPS) + group * COLUMNS;
#pragma unroll 1
      for (int e = (int)threadIdx.x % 32; e < LINE; e += 32)
        to[GROUPS == 1 ? e : e / COLUMNS * (GROUPS * COLUMNS) + e % COLUMNS] = staged[r * STAGED + e];
    }
  }
}

/* Rows `top` to before `end`. */
__device__ static inline void few_tile(const struct conv_numbers *s, const float *from, const float *by, float *out, float *shared,
                                       int top, int end, int group) {
  int thread = (int)threadIdx.x, turn = thread % ROWS, run = thread / ROWS % RUNS, part = thread / ROWS / RUNS;
  int row = turn % (ROWS / IN_TURN) * IN_TURN + turn / (ROWS / IN_TURN), r = top + row;
  int first = first_seen(top), there = part < PARTS && r < end;
  float *weights = shared, *tile = shared + WEIGHTS, odd = 0, sums[RUN][TAKE];
#pragma unroll
  for (int i = 0; i < RUN * TAKE; i++) sums[i / TAKE][i % TAKE] = 0;
#pragma unroll 1
  for (int channel = 0; channel < INNER; channel += PART) {
    __syncthreads();
    load_weights(by, group, channel, weights, &odd);
    load_rows(from, (int)s->batch, group, channel, first, first_seen(end - 1) + REACH, tile);
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < KERNEL_H && there; k++)
      if (row_is_there(r, k))
        add_row(tile + (row_seen(r, k) - first) * PITCH + run * BETWEEN * PART,
                weights + k * PART * KERNEL_W * PARTS * SLOT + part * SLOT, sums);
  }
  if (!PADS || !any_thread(odd != odd)) {
    store_rows(out, shared, top, end - top, group, there ? row : -1, run, part, sums);
    return;
  }
#pragma unroll 1
  for (int e = thread; e < (end - top) * LINE; e += 256) {
    long long at = (((long long)top * OUT_W + e / COLUMNS) * GROUPS + group) * COLUMNS + e % COLUMNS;
    out[at] = RESULT == 2 ? output_at(s, from, by, at) : input_at(s, from, by, at);
  }
}

__device__ static inline void few_all(const struct conv_few_numbers *n, const float *a, const float *b, float *out, float *shared) {
  int rows = (int)n->s.batch * OUT_H;
  long long tiles = (long long)((rows + ROWS - 1) / ROWS) * GROUPS;
  for (long long at = blockIdx.x; at < tiles; at += gridDim.x) {
    int top = (int)(at / GROUPS) * ROWS;
    few_tile(&n->s, a, b, out, shared, top, rows - top < ROWS ? rows : top + ROWS, (int)(at % GROUPS));
  }
}

#else

/* ---- a kernel ---- */

/* A thread is one of LANES that add up for its role: a row of the kernel, a channel and TAKE filters. */
enum {
  ROLES = KERNEL_H * INNER * PARTS,
  LANES = 256 / ROLES,
  OTHER = ROWS * OUT_W * PARTS * SLOT,
  SUMS = KERNEL_W * TAKE,
  SHARED = OTHER + TILE > 512 ? OTHER + TILE : 512,
  AT_ONCE = SHARED / 256 < SUMS ? SHARED / 256 : SUMS /* sums of each thread that are added up together */
};

/* Rows `top` to before `end` of the output. */
__device__ static inline void load_other(const float *by, int group, int top, int end, float *other, float *odd) {
  int count = (end - top) * OUT_W * COLUMNS;
  by += (long long)top * (OUT_W * FILTERS) + group * COLUMNS;
#pragma unroll 1
  for (int begin = (int)threadIdx.x; begin < count; begin += 256 * LOADS) {
    float v[LOADS];
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
      int e = begin + 256 * i;
      v[i] = 0;
      if (e < count) v[i] = by[GROUPS == 1 ? e : e / COLUMNS * FILTERS + e % COLUMNS];
    }
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
      int e = begin + 256 * i, column = e % COLUMNS;
      if (e < count) other[e / COLUMNS * (PARTS * SLOT) + column / TAKE * SLOT + column % TAKE] = v[i];
      if (PADS) *odd += v[i] - v[i];
    }
  }
}

__device__ static inline void add_run(const float *from, const float *by, int there, float (*sums)[TAKE]) {
  float seen[SPAN];
#pragma unroll
  for (int i = 0; i < SPAN; i++) seen[i] = from[i * INNER];
#pragma unroll
  for (int p = 0; p < RUN; p++) {
    if (OUT_W % RUN != 0 && p >= there) break;
    float v[SLOT];
    load_slot(by + p * PARTS * SLOT, v, SLOT);
#pragma unroll
    for (int k = 0; k < KERNEL_W; k++)
#pragma unroll
      for (int j = 0; j < TAKE; j++)
        if (IS_THERE(p, k)) sums[k][j] = __fmaf_rn(seen[PIXEL(p, k)], v[j], sums[k][j]);
  }
}

/* Element of the kernel number i of the SUMS of a role; -1: none. */
__device__ static inline long long element_of(int role, int i, int group) {
  int channel = role % INNER, part = role / INNER % PARTS, h = role / INNER / PARTS, column = part * TAKE + i % TAKE;
  if (column >= COLUMNS) return -1;
  return (long long)((h * KERNEL_W + i / TAKE) * INNER + channel) * FILTERS + group * COLUMNS + column;
}

/* What the lanes have, in their order. */
__device__ static inline void join_lanes(float *shared, int group, float (*sums)[TAKE], float *out) {
#pragma unroll
  for (int begin = 0; begin < SUMS; begin += AT_ONCE) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < SUMS; i++)
      if (i >= begin && i < begin + AT_ONCE) shared[(i - begin) * 256 + threadIdx.x] = sums[i / TAKE][i % TAKE];
    __syncthreads();
#pragma unroll 1
    for (int e = (int)threadIdx.x; e < AT_ONCE * ROLES; e += 256) {
      int i = e / ROLES, role = e % ROLES;
      long long to = begin + i < SUMS ? element_of(role, begin + i, group) : -1;
      float sum = 0;
#pragma unroll 8
      for (int lane = 0; lane < LANES; lane++) sum += shared[i * 256 + lane * ROLES + role];
      if (to >= 0) out[to] = sum;
    }
  }
}

/* Of rows `top` to before `end` of the output. */
__device__ static inline void few_piece(const struct conv_numbers *s, const float *from, const float *by, float *out, float *shared,
                                        int top, int end, int group) {
  int role = (int)threadIdx.x % ROLES, lane = (int)threadIdx.x / ROLES;
  int channel = role % INNER, part = role / INNER % PARTS, k = role / INNER / PARTS;
  float *other = shared, *tile = shared + OTHER, odd = 0, sums[KERNEL_W][TAKE];
#pragma unroll
  for (int i = 0; i < SUMS; i++) sums[i / TAKE][i % TAKE] = 0;
#pragma unroll 1
  for (int r = top; r < end; r += ROWS) {
    int until = end - r < ROWS ? end : r + ROWS, first = first_seen(r);
    __syncthreads();
    load_other(by, group, r, until, other, &odd);
    load_rows(from, (int)s->batch, group, 0, first, first_seen(until - 1) + REACH, tile);
    __syncthreads();
#pragma unroll 1
    for (int e = lane; e < (until - r) * RUNS && lane < LANES; e += LANES) {
      int row = e / RUNS, run = e % RUNS;
      if (row_is_there(r + row, k))
        add_run(tile + (row_seen(r + row, k) - first) * PITCH + run * BETWEEN * INNER + channel,
                other + (row * OUT_W + run * RUN) * PARTS * SLOT + part * SLOT, OUT_W - run * RUN, sums);
    }
  }
  if (!PADS || !any_thread(odd != odd)) {
    join_lanes(shared, group, sums, out);
    return;
  }
#pragma unroll 1
  for (int e = (int)threadIdx.x; e < ROLES * SUMS; e += 256) {
    long long to = element_of(e % ROLES, e / ROLES, group);
    if (to >= 0) out[to] = kernel_share(s, from, by, to, (long long)top * OUT_W, (long long)end * OUT_W, 1);
  }
}

__device__ static inline void few_all(const struct conv_few_numbers *n, const float *a, const float *b, float *out, float *shared) {
  int rows = (int)n->s.batch * OUT_H;
  for (long long at = blockIdx.x; at < n->pieces * GROUPS; at += gridDim.x) {
    long long piece = at / GROUPS, top = piece * n->piece, end = top + n->piece;
    few_piece(&n->s, a, b, out + piece * (KERNEL_H * KERNEL_W * INNER * FILTERS), shared, (int)top, (int)(end < rows ? end : rows),
              (int)(at % GROUPS));
  }
}

#endif

extern "C" __global__ void __launch_bounds__(256, BLOCKS)
    conv_few(const TYPE *a, const TYPE *b, TYPE *out, struct conv_few_numbers n) {
  __shared__ __align__(16) float shared[SHARED];
  few_all(&n, a, b, out, shared);
}
