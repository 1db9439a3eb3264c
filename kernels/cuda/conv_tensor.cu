/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of f32 as products of matrices (implicit GEMM: the matrices are read out of the image and never
 * stored), see conv.cu: by tensor cores, or where EXACT is 1 by fused multiply-adds. RESULT, as conv_numbers has it,
 * WIDE and BF16 are definitions in front.
 *
 * A block computes a tile of 128 by WIDE elements, of a kernel 64 by WIDE, its 8 warps a part each. Step after step of 16 cells it
 * loads, rounds and stores in shared memory what the next step multiplies, beside the products of this one. What is summed is, of
 * an output, places and channels of the kernel; of an input, places and filters; of a kernel, pixels of the output in all images,
 * which are cut into pieces: conv_join adds what these give, in their order.
 *
 * What a place outside of the input would be multiplied by is 0 here, which a factor that is NaN or infinite makes NaN: tiles
 * that meet one are added up element by element, without rounding. */
enum { HIGH = RESULT == 1 ? 64 : 128, CELLS = 16, DEPTH = CELLS * CELL, UNITS_A = HIGH * CELLS / 4 / 256, UNITS_B = 4 * WIDE };
/* Which lies closer together in memory, what is summed or rows (columns), decides how far apart cells of shared memory are: the
 * threads of a warp then meet different banks, when they store and when they load. */
enum {
  SEEN_DEEP = RESULT != 1,
  OTHER_DEEP = RESULT == 0,
  ROW = SEEN_DEEP ? CELLS + 4 : 1,
  CELL_A = SEEN_DEEP ? 1 : HIGH + 8,
  SIZE_A = SEEN_DEEP ? HIGH * (CELLS + 4) : CELLS * (HIGH + 8),
  COLUMN = OTHER_DEEP ? CELLS + 4 : 1,
  CELL_B = OTHER_DEEP ? 1 : WIDE + 8,
  SIZE_B = OTHER_DEEP ? WIDE * (CELLS + 4) : CELLS * (WIDE + 8)
};
enum { WARPS_ACROSS = WIDE == 64 || RESULT == 1 ? 2 : 1, DOWN = HIGH * WARPS_ACROSS / 8 / 16, ACROSS = WIDE / WARPS_ACROSS / 8 };
enum { PIXELS = SEEN_DEEP ? HIGH : DEPTH, TABLES = SEEN_DEEP ? 1 : 2 };

struct conv_tensor_numbers {
  struct conv_numbers s;
  long long pieces, piece; /* of a kernel, and how many pixels each has */
};

/* A pixel of rows, or of what is summed: where it begins on each axis under place 0 of the kernel, and the first pixel that its
 * image has of what it sees; -1: there is none. */
struct seen_from {
  int begin[3], image;
};

struct conv_shared {
  unsigned a[2][SIZE_A], b[2][SIZE_B];
  struct seen_from pixels[TABLES][PIXELS];
  int is_odd;
};

/* Of a block; counted in int, see conv_is_small. */
struct conv_block {
  const struct conv_numbers *s;
  const float *from, *by; /* what is looked up, and the other one */
  int wide_from, wide_by; /* whether they may be loaded by four */
  int inner, columns, step[3], count[3], length[2];
  unsigned long long per_inner, per_length[2];
  long long filters, stride, rows; /* filters of all groups; numbers between pixels of `from` */
};

/* Of a tile: its row, column and group, and what it adds up. */
struct conv_place {
  long long top, group, piece;
  int first, begin, end;
};

__device__ static inline struct conv_block conv_block_of(const struct conv_numbers *s, const float *from, const float *by) {
  struct conv_block b;
  b.s = s, b.from = from, b.by = by;
  b.inner = (int)(RESULT == 0 ? s->filters : s->channels);
  b.columns = (int)(RESULT == 0 ? s->channels : s->filters);
  for (int i = 0; i < 3; i++) {
    b.step[i] = (int)(RESULT == 0 ? s->stride[i] : s->input_dilation[i]);
    b.count[i] = (int)(RESULT == 0 ? s->output[i] : s->input[i]);
  }
  for (int i = 0; i < 2; i++) {
    b.length[i] = (int)s->kernel[i + 1];
    b.per_length[i] = reciprocal_of((unsigned)b.length[i]);
  }
  b.per_inner = reciprocal_of((unsigned)b.inner);
  b.filters = s->groups * s->filters;
  b.stride = s->groups * b.inner;
  b.rows = RESULT == 1 ? conv_count(s->kernel) * b.inner : s->batch * conv_count(RESULT == 0 ? s->input : s->output);
  b.wide_from = b.inner % 4 == 0 && (unsigned long long)from % 16 == 0;
  b.wide_by = s->filters % 4 == 0 && (unsigned long long)by % 16 == 0;
  return b;
}

/* ---- what is looked up ---- */

__device__ static inline void note_pixel(const struct conv_block *b, struct seen_from *to, long long pixel, long long end) {
  const struct conv_numbers *s = b->s;
  long long pixels = conv_count(RESULT == 0 ? s->input : s->output);
  to->image = -1;
  if (pixel >= end) return;
  unsigned image = (unsigned)pixel / (unsigned)pixels, left = (unsigned)pixel % (unsigned)pixels;
#pragma unroll
  for (int axis = 2; axis >= 0; axis--) {
    unsigned size = (unsigned)(RESULT == 0 ? s->input[axis] : s->output[axis]);
    int place = (int)(left % size), low = (int)s->low[axis];
    to->begin[axis] = RESULT == 0 ? place * (int)s->input_dilation[axis] + low : place * (int)s->stride[axis] - low;
    left /= size;
  }
  to->image = (int)(image * (unsigned)conv_count(RESULT == 0 ? s->output : s->input));
}

/* A place of the kernel with a channel of what is looked up. */
struct conv_tap {
  int shift[3], channel;
};

__device__ static inline struct conv_tap conv_tap_of(const struct conv_block *b, int k) {
  struct conv_tap t;
  unsigned tap = divide((unsigned)k, b->per_inner), line = divide(tap, b->per_length[1]), sheet = divide(line, b->per_length[0]);
  t.channel = k - (int)tap * b->inner;
  t.shift[0] = (int)sheet * (int)b->s->kernel_dilation[0];
  t.shift[1] = (int)(line - sheet * (unsigned)b->length[0]) * (int)b->s->kernel_dilation[1];
  t.shift[2] = (int)(tap - line * (unsigned)b->length[1]) * (int)b->s->kernel_dilation[2];
  return t;
}

/* Where a pixel sees it in its image; -1: nowhere. */
__device__ static inline long long seen_at(const struct conv_block *b, const struct seen_from *p, const struct conv_tap *t) {
  int pixel = 0;
  bool good = p->image >= 0;
#pragma unroll
  for (int axis = 0; axis < 3; axis++) {
    int place = RESULT == 0 ? p->begin[axis] - t->shift[axis] : p->begin[axis] + t->shift[axis];
    if (b->step[axis] != 1) {
      good = good && place >= 0 && place % b->step[axis] == 0;
      place /= b->step[axis];
    }
    good = good && (unsigned)place < (unsigned)b->count[axis];
    pixel = pixel * b->count[axis] + place;
  }
  return good ? (long long)p->image + pixel : -1;
}

/* Four numbers `step` apart in v. */
__device__ static inline void load_seen(const struct conv_block *b, const struct conv_place *at, const struct seen_from *p, int k,
                                        int end, float *v, int step) {
#pragma unroll
  for (int i = 0; i < 4; i++) v[i * step] = 0;
  const float *from = b->from + at->group * b->inner;
  if (b->wide_from) {
    if (k >= end) return;
    struct conv_tap t = conv_tap_of(b, k);
    long long pixel = seen_at(b, p, &t);
    if (pixel >= 0) load_four(from + pixel * b->stride + t.channel, v, step);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if (k + i >= end) return;
    struct conv_tap t = conv_tap_of(b, k + i);
    long long pixel = seen_at(b, p, &t);
    if (pixel >= 0) v[i * step] = from[pixel * b->stride + t.channel];
  }
}

/* Unit u of a step: four cells, of one row or of one place in the sum. */
__device__ static inline void load_a(const struct conv_block *b, const struct conv_place *at, const struct seen_from *pixels,
                                     int d, int u, float *v) {
#pragma unroll
  for (int i = 0; i < CELL; i++) {
    if (SEEN_DEEP)
      load_seen(b, at, &pixels[u / (CELLS / 4)], d + u % (CELLS / 4) * 4 * CELL + 4 * i, at->end, v + 4 * i, 1);
    else
      load_seen(b, at, &pixels[u / (HIGH / 4) * CELL + i], (int)at->top + u % (HIGH / 4) * 4, (int)b->rows, v + i, CELL);
  }
}

__device__ static inline void store_a(unsigned *a, int u, const float *v) {
  unsigned cells[4];
#pragma unroll
  for (int i = 0; i < 4; i++) cells[i] = cell_of(v + i * CELL, 1);
  store_cells(a + (SEEN_DEEP ? u / (CELLS / 4) * ROW + u % (CELLS / 4) * 4 : u / (HIGH / 4) * CELL_A + u % (HIGH / 4) * 4), cells);
}

/* ---- the other one ---- */

__device__ static inline void load_b(const struct conv_block *b, const struct conv_place *at, int d, int u, float *v) {
  const float *by = b->by + at->group * b->s->filters;
#pragma unroll
  for (int i = 0; i < CELL; i++) {
    if (OTHER_DEEP && b->wide_from) { /* four of one place: it is as the filters are */
      int column = at->first + u / (CELLS / 4);
      int k = d + u % (CELLS / 4) * 4 * CELL + 4 * i, tap = (int)divide((unsigned)k, b->per_inner);
      load_some(by + ((long long)tap * b->columns + column) * b->filters + (k - tap * b->inner), b->wide_by,
                column < b->columns ? at->end - k : 0, v + 4 * i, 1);
    } else if (OTHER_DEEP) {
      int column = at->first + u / (CELLS / 4);
#pragma unroll
      for (int j = 0; j < 4; j++) {
        int k = d + u % (CELLS / 4) * 4 * CELL + 4 * i + j, tap = (int)divide((unsigned)k, b->per_inner);
        v[4 * i + j] = 0;
        if (k < at->end && column < b->columns)
          v[4 * i + j] = by[((long long)tap * b->columns + column) * b->filters + (k - tap * b->inner)];
      }
    } else {
      int k = d + u / (WIDE / 4) * CELL + i, column = at->first + u % (WIDE / 4) * 4;
      load_some(by + (long long)k * b->filters + column, b->wide_by, k < at->end ? b->columns - column : 0, v + i, CELL);
    }
  }
}

__device__ static inline void store_b(unsigned *to, int u, const float *v, float *odd) {
  unsigned cells[4];
#pragma unroll
  for (int i = 0; i < 4 * CELL; i++) *odd += v[i] - v[i];
#pragma unroll
  for (int i = 0; i < 4; i++) cells[i] = cell_of(v + i * CELL, 1);
  store_cells(to + (OTHER_DEEP ? u / (CELLS / 4) * COLUMN + u % (CELLS / 4) * 4 : u / (WIDE / 4) * CELL_B + u % (WIDE / 4) * 4),
              cells);
}

/* ---- a tile ---- */

struct __align__(8) two {
  float x, y;
};

__device__ static inline void load_two(const float *from, float *to, int step) {
  struct two v = *(const struct two *)from;
  to[0] = v.x, to[step] = v.y;
}

/* Without tensor cores, each thread for the sums that it would have of them; two terms at a time. */
__device__ static inline void multiply_exactly(const float *x, const float *y, float (*sums)[ACROSS][4]) {
#pragma unroll 4
  for (int k = 0; k < CELLS; k += 2) {
    float rows[DOWN * 2][2], columns[ACROSS * 2][2];
#pragma unroll
    for (int i = 0; i < DOWN * 2; i++) {
      const float *from = x + i * 8 * ROW + k * CELL_A;
      if (SEEN_DEEP)
        load_two(from, rows[i], 1);
      else
        rows[i][0] = from[0], rows[i][1] = from[CELL_A];
    }
#pragma unroll
    for (int j = 0; j < ACROSS; j++) {
      const float *from = y + j * 8 * COLUMN + k * CELL_B;
      load_two(from, columns[2 * j], OTHER_DEEP ? 1 : 2);
      load_two(from + (OTHER_DEEP ? COLUMN : CELL_B), columns[2 * j] + (OTHER_DEEP ? 2 : 1), OTHER_DEEP ? 1 : 2);
    }
#pragma unroll
    for (int c = 0; c < 2; c++)
#pragma unroll
      for (int i = 0; i < DOWN * ACROSS * 4; i++) {
        int down = i / 4 / ACROSS, across = i / 4 % ACROSS;
        float row = rows[2 * down + i % 4 / 2][c], column = columns[2 * across + i % 2][c];
        sums[down][across][i % 4] = __fmaf_rn(row, column, sums[down][across][i % 4]);
      }
  }
}

__device__ static inline void multiply(const unsigned *a, const unsigned *b, float (*sums)[ACROSS][4]) {
  int warp = (int)threadIdx.x / 32, g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
  const unsigned *x = a + (warp / WARPS_ACROSS * DOWN * 16 + g) * ROW + t * CELL_A;
  const unsigned *y = b + (warp % WARPS_ACROSS * ACROSS * 8 + g) * COLUMN + t * CELL_B;
  if (EXACT) {
    multiply_exactly((const float *)x - t * CELL_A, (const float *)y + (2 * t - g) * COLUMN - t * CELL_B, sums);
    return;
  }
#pragma unroll
  for (int k = 0; k < CELLS; k += 8) {
    unsigned rows[DOWN][4], columns[ACROSS][2];
#pragma unroll
    for (int i = 0; i < DOWN; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) rows[i][j] = x[(i * 16 + j % 2 * 8) * ROW + (k + j / 2 * 4) * CELL_A];
#pragma unroll
    for (int i = 0; i < ACROSS; i++)
#pragma unroll
      for (int j = 0; j < 2; j++) columns[i][j] = y[i * 8 * COLUMN + (k + j * 4) * CELL_B];
#pragma unroll
    for (int i = 0; i < DOWN; i++)
#pragma unroll
      for (int j = 0; j < ACROSS; j++) mma(sums[i][j], rows[i], columns[j]);
  }
}

/* The place in the result of number i of sums[down][across]; -1: none. */
__device__ static inline long long element_at(const struct conv_block *b, const struct conv_place *at, int down, int across, int i) {
  int warp = (int)threadIdx.x / 32, g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
  long long row = at->top + (warp / WARPS_ACROSS * DOWN + down) * 16 + g + i / 2 * 8;
  int column = at->first + (warp % WARPS_ACROSS * ACROSS + across) * 8 + 2 * t + i % 2;
  if (row >= b->rows || column >= b->columns) return -1;
  if (RESULT == 1) return row * b->filters + at->group * b->columns + column;
  return (row * b->s->groups + at->group) * b->columns + column;
}

__device__ static float element_alone(const struct conv_block *b, const struct conv_place *at, long long e) {
  if (RESULT == 0) return input_at(b->s, b->from, b->by, e);
  if (RESULT == 2) return output_at(b->s, b->from, b->by, e);
  return kernel_share(b->s, b->from, b->by, e, at->begin, at->end, 1);
}

__device__ static inline void store_tile(const struct conv_block *b, const struct conv_place *at, float (*sums)[ACROSS][4], float *out,
                                         int is_odd) {
#pragma unroll
  for (int i = 0; i < DOWN; i++)
#pragma unroll
    for (int j = 0; j < ACROSS; j++)
#pragma unroll
      for (int n = 0; n < 4; n++) {
        long long e = element_at(b, at, i, j, n);
        if (e >= 0 && !is_odd) out[e] = sums[i][j][n];
      }
#pragma unroll 1
  for (int i = 0; i < DOWN * ACROSS * 4 && is_odd; i++) {
    long long e = element_at(b, at, i / 4 / ACROSS, i / 4 % ACROSS, i % 4);
    if (e >= 0) out[e] = element_alone(b, at, e);
  }
}

__device__ static inline void note_pixels(const struct conv_block *b, const struct conv_place *at, struct seen_from *table,
                                          long long first) {
  for (int i = (int)threadIdx.x; i < PIXELS; i += 256)
    note_pixel(b, &table[i], first + i, SEEN_DEEP ? b->rows : at->end);
}

__device__ static void conv_tile(const struct conv_block *b, const struct conv_place *at, struct conv_shared *x, float *out) {
  int thread = (int)threadIdx.x;
  float sums[DOWN][ACROSS][4], seen[UNITS_A][4 * CELL], other[4 * CELL], odd = 0;
#pragma unroll
  for (int i = 0; i < DOWN * ACROSS * 4; i++) sums[i / 4 / ACROSS][i / 4 % ACROSS][i % 4] = 0;
  if (thread == 0) x->is_odd = 0;
  note_pixels(b, at, x->pixels[0], SEEN_DEEP ? at->top : at->begin);
  if (!SEEN_DEEP) note_pixels(b, at, x->pixels[TABLES - 1], at->begin + DEPTH);
  __syncthreads();
  int now = 0;
#pragma unroll 1
  for (int d = at->begin - DEPTH; d < at->end; d += DEPTH) { /* the first time there is nothing to multiply yet */
    bool more = d + DEPTH < at->end;
    if (more) {
#pragma unroll
      for (int i = 0; i < UNITS_A; i++)
        load_a(b, at, x->pixels[SEEN_DEEP || d < at->begin ? 0 : now ^ 1], d + DEPTH, thread + 256 * i, seen[i]);
      if (thread < UNITS_B) load_b(b, at, d + DEPTH, thread, other);
    }
    if (d >= at->begin) {
      if (!SEEN_DEEP) note_pixels(b, at, x->pixels[now & (TABLES - 1)], d + 2 * DEPTH);
      multiply(x->a[now], x->b[now], sums);
      now ^= 1;
    }
    if (more) {
#pragma unroll
      for (int i = 0; i < UNITS_A; i++) store_a(x->a[now], thread + 256 * i, seen[i]);
      if (thread < UNITS_B) store_b(x->b[now], thread, other, &odd);
    }
    if (odd != 0) x->is_odd = 1;
    __syncthreads();
  }
  store_tile(b, at, sums, out, x->is_odd);
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(256, LEAST_BLOCKS)
    conv_tensor(const TYPE *from, const TYPE *by, TYPE *out, struct conv_tensor_numbers n) {
  __shared__ struct conv_shared x;
  struct conv_block b = conv_block_of(&n.s, from, by);
  long long across = (b.columns + WIDE - 1) / WIDE, down = (b.rows + HIGH - 1) / HIGH;
  long long depth = RESULT == 1 ? n.s.batch * conv_count(n.s.output) : conv_count(n.s.kernel) * b.inner;
  long long size = b.rows * b.filters; /* of a kernel */
  for (long long i = blockIdx.x; i < across * down * n.s.groups * n.pieces; i += gridDim.x) {
    struct conv_place at;
    at.first = (int)(i % across) * WIDE;
    at.top = i / across % down * HIGH;
    at.group = i / across / down % n.s.groups;
    at.piece = i / across / down / n.s.groups;
    at.begin = (int)(at.piece * n.piece);
    at.end = (int)(at.begin + n.piece > depth ? depth : at.begin + n.piece);
    conv_tile(&b, &at, &x, out + at.piece * size);
  }
}
