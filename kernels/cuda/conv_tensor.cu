/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of f32 as products of matrices (implicit GEMM: the matrices are read out of the image and never
 * stored), see conv.cu: by tensor cores, or where EXACT is 1 by fused multiply-adds. RESULT, as conv_numbers has it,
 * HIGH, WIDE, TAPS (the most places of a kernel) and BF16 are definitions in front.
 *
 * A block of 4 warps computes a tile of HIGH by WIDE elements. A warp has a part of the tile, 8 LANE_ROWS by 4
 * LANE_COLUMNS; where that leaves warps over, they take turns at what is summed: each has SLICE of DEEP numbers of a
 * step, and in the end the first ones add to theirs what the others have, in order. While a step is multiplied, those
 * behind it are on their way from global to shared memory. What is summed is, of an output, places and channels of the
 * kernel; of an input, places and filters; of a kernel, pixels of the output in all images, which are cut into pieces:
 * conv_join adds what these give, in their order.
 *
 * Where only each n-th pixel that is looked up exists (an input behind strides, an output of what has gaps), rows that
 * are n pixels apart meet the same places of the kernel. A tile has rows of such a phase alone, and only the places
 * that they meet.
 *
 * What a place outside of the input would be multiplied by is 0 here, which a factor that is NaN or infinite makes
 * NaN: tiles with a sum that is not finite are added up again, element by element, without rounding. */
enum { THREADS = 128, SLICE = 16, SEEN_DEEP = RESULT != 1, OTHER_DEEP = RESULT == 0 };
enum {
  LANE_COLUMNS = WIDE == 16 ? 4 : 8,
  LANE_ROWS = HIGH == 48 ? 6 : WIDE == 16 || HIGH * WIDE == 128 * 64 ? 8 : 4,
  WARPS_ACROSS = WIDE / (4 * LANE_COLUMNS),
  WARPS = HIGH / (8 * LANE_ROWS) * WARPS_ACROSS, /* of a slice */
  DEEPS = THREADS / 32 / WARPS,
  DEEP = SLICE * DEEPS,
  LEAST = LANE_ROWS * LANE_COLUMNS == 64 ? 3 : 4 /* blocks in a multiprocessor */
};
/* A slice in shared memory. What lies together in memory along what is summed: rows (columns) of 16 numbers, of which
 * the four from 4c on are where 4 (c ^ row / 2 % 4) would be. Else 16 rows of what HIGH (WIDE) has, with a gap of 8
 * behind every fourth. So the threads of a warp meet different banks, when they store and when they load. */
enum {
  SLICE_A = SLICE * HIGH + (SEEN_DEEP ? 0 : 32),
  SLICE_B = SLICE * WIDE + (OTHER_DEEP ? 0 : 32),
  STAGE = DEEPS * (SLICE_A + SLICE_B),
  STAGES = STAGE <= 2432 ? 4 : STAGE <= 3200 ? 3 : 2,
  TABLE = SEEN_DEEP ? HIGH : DEEP,
  TABLES = SEEN_DEEP ? 1 : 2,
  ROWS = SEEN_DEEP ? HIGH * 4 / THREADS : 1, /* of a thread that loads, */
  COLUMNS = (WIDE * 4 + THREADS - 1) / THREADS,
  CHUNKS = HIGH / 4, /* or threads side by side, and how many of these fit into a block */
  ABOVE_A = CHUNKS > 16 ? 4 : CHUNKS > 8 ? 8 : 16,
  ABOVE_B = 4 * THREADS / WIDE
};

struct conv_tensor_numbers {
  struct conv_numbers s;
  long long pieces, piece;       /* of a kernel, and how many pixels each has */
  long long across, down, tiles; /* columns and rows of tiles of a group, and of all what there is */
};

/* An axis of what a tile sees: pixel `size` - 1 of its rows, the last one, begins under place 0 of the kernel at
 * `first` + (`size` - 1) * `gap`, and place i, of `length`, is i * `shift` behind; of these each `step`th is one of
 * `count` pixels. Place i is `tap` + i * `taps` of the kernel, and row i pixel `phase` + i * `phases`, of `pixels`. */
struct conv_axis {
  int size, gap, first, shift, step, count, length, tap, taps, phase, phases, pixels;
  int ahead;          /* how far pixel i + DEEP is in front of pixel i on this axis, but for what the axes behind it carry */
  int places, leaves; /* of the kernel; whether some place is outside for some row: then masks have bits for it */
};

/* A place: how many pixels behind place 0 it sees, its bits in the masks of rows, and its number in the kernel; of a
 * row of the kernel the channel, too. */
struct __align__(16) conv_tap {
  int pixels, bits, place, channel;
};

/* What all tiles share, in shared memory: there are no registers left for it. Counted in int, see is_small of
 * runtime/cuda/conv.c. */
struct conv_block {
  const float *from, *by; /* what is looked up, and the other one */
  int wide_from, wide_by; /* whether they may be loaded by four */
  int inner, columns, rows, groups, places, images_ahead;
  int filters, of_group, stride; /* filters of all groups, and of one; numbers between pixels of `from` */
  unsigned long long per_inner;
};

/* Of a tile: its row, column and group, and what it adds up. */
struct conv_place {
  int top, first, group, piece, begin, end, is_plain; /* is_plain: it meets all places of the kernel */
};

/* A row, or a pixel that is summed: where place 0 is, and which places are there (PRESENT: the row itself). */
struct __align__(8) conv_row {
  int base, mask;
};

struct __align__(16) conv_shared {
  float cells[STAGES][STAGE];
  struct conv_tap taps[SEEN_DEEP ? TAPS : HIGH]; /* of the kernel, or of rows of it */
  struct conv_axis axes[3];
  struct conv_block block;
  struct conv_place place;
  struct conv_row rows[TABLES][TABLE];
  int pixel[SEEN_DEEP ? HIGH : 1]; /* of the result, of rows */
};
enum { PRESENT = 1 << 30 };

__device__ static inline unsigned long long reciprocal(int d) { return 0xffffffffu / (unsigned)d + 1ull; }
__device__ static inline int greatest_divisor(int a, int b) {
  while (b) {
    int rest = a % b;
    a = b, b = rest;
  }
  return a;
}

__device__ static inline int pixels_of(const long long *size) { return (int)size[0] * (int)size[1] * (int)size[2]; }

/* Rows that are so many pixels apart meet the same places. */
__device__ static inline int phases_of(const struct conv_numbers *s, int axis) {
  int step = (int)(RESULT == 0 ? s->stride[axis] : s->input_dilation[axis]);
  int gap = (int)(RESULT == 0 ? s->input_dilation[axis] : s->stride[axis]);
  return RESULT == 1 || step == 1 ? 1 : step / greatest_divisor(step, gap);
}

__device__ static inline void note_axis(const struct conv_numbers *s, int axis, int phase, struct conv_axis *x) {
  int shift = (int)s->kernel_dilation[axis], low = (int)s->low[axis], length = (int)s->kernel[axis];
  x->step = (int)(RESULT == 0 ? s->stride[axis] : s->input_dilation[axis]);
  x->gap = (int)(RESULT == 0 ? s->input_dilation[axis] : s->stride[axis]);
  x->pixels = (int)(RESULT == 0 ? s->input[axis] : s->output[axis]);
  x->count = (int)(RESULT == 0 ? s->output[axis] : s->input[axis]);
  x->phases = phases_of(s, axis), x->phase = phase;
  x->size = x->phases == 1 ? x->pixels : (x->pixels + x->phases - 1) / x->phases;
  x->first = RESULT == 0 ? phase * x->gap + low : phase * x->gap - low;
  if (RESULT == 0) shift = -shift;
  x->tap = 0, x->taps = 1, x->length = length;
  if (RESULT != 1 && x->step > 1) {
    x->taps = x->step / greatest_divisor(x->step, shift < 0 ? -shift : shift);
    while (x->tap < x->taps && x->tap < length && (x->first + x->tap * shift) % x->step) x->tap++;
    x->length = x->tap < x->taps && x->tap < length ? (length - x->tap + x->taps - 1) / x->taps : 0;
    x->first = (x->first + x->tap * shift) / x->step;
    x->gap = x->gap * x->phases / x->step;
    shift = shift * x->taps / x->step;
    x->step = 1;
  }
  x->ahead = RESULT != 1 ? 0 : DEEP / (axis < 1 ? (int)s->output[1] : 1) / (axis < 2 ? (int)s->output[2] : 1) % x->size;
  x->shift = shift, x->places = (int)s->kernel[axis];
  int last = x->first + (x->size - 1) * x->gap, reach = (x->length - 1) * x->shift;
  int low_end = x->first + (reach < 0 ? reach : 0), high_end = last + (reach > 0 ? reach : 0);
  x->leaves = x->step != 1 || low_end < 0 || high_end >= x->count;
}

/* The bits of a row of an axis: of the places that it sees. */
__device__ static inline int places_seen(const struct conv_axis *x, int begin) {
  int seen = 0;
  if (x->step == 1 && (x->shift == 1 || x->shift == -1)) {
    int low = x->shift == 1 ? -begin : begin - x->count + 1, high = x->shift == 1 ? x->count - begin : begin + 1;
    low = low < 0 ? 0 : low, high = high < x->length ? high : x->length;
    return high > low ? (int)((1u << high) - (1u << low)) : 0;
  }
#pragma unroll 1
  for (int i = 0; i < x->length; i++) {
    int place = begin + i * x->shift;
    if (place >= 0 && place % x->step == 0 && place / x->step < x->count) seen |= 1 << i;
  }
  return seen;
}

/* ---- what is looked up ---- */

/* Where a row (a pixel that is summed) is on each axis, and its image. */
struct conv_spot {
  int at[3], image;
};

__device__ static inline struct conv_spot spot_of(const struct conv_axis *axes, int row) {
  struct conv_spot p;
  unsigned left = (unsigned)row;
#pragma unroll
  for (int axis = 2; axis >= 0; axis--) {
    unsigned size = (unsigned)axes[axis].size, rest = left / size;
    p.at[axis] = (int)(left - rest * size), left = rest;
  }
  p.image = (int)left;
  return p;
}

/* DEEP pixels on. */
__device__ static inline void advance(const struct conv_axis *axes, int images, struct conv_spot *p) {
  int carry = 0;
#pragma unroll
  for (int axis = 2; axis >= 0; axis--) {
    int size = axes[axis].size, at = p->at[axis] + axes[axis].ahead + carry;
    carry = at >= size;
    p->at[axis] = carry ? at - size : at;
  }
  p->image += images + carry;
}

/* Notes it; `there`: there is such a row. */
__device__ static inline void note_row(struct conv_shared *x, int table, int i, const struct conv_spot *p, int there) {
  int base = 0, mask = PRESENT, pixel = 0, scale = 1, wide = 1, bit = 0;
#pragma unroll
  for (int axis = 2; axis >= 0; axis--) {
    const struct conv_axis *a = &x->axes[axis];
    int at = p->at[axis], begin = a->first + at * a->gap;
    if (a->leaves) mask |= places_seen(a, begin) << bit, bit += a->length;
    if (a->step != 1) begin = begin >= 0 ? begin / a->step : -((a->step - 1 - begin) / a->step);
    base += begin * scale, scale *= a->count;
    at = at * a->phases + a->phase;
    there = there && at < a->pixels;
    pixel += at * wide, wide *= a->pixels;
  }
  x->rows[table][i].base = base + p->image * scale;
  x->rows[table][i].mask = there ? mask : 0;
  if (SEEN_DEEP) x->pixel[i] = there ? pixel + p->image * wide : -1;
}

__device__ static inline struct conv_tap tap_of(const struct conv_axis *axes, int i) {
  struct conv_tap t;
  int scale = 1, size = 1, bit = 0;
  t.pixels = 0, t.bits = PRESENT, t.place = 0, t.channel = 0;
#pragma unroll
  for (int axis = 2; axis >= 0; axis--) {
    const struct conv_axis *a = &axes[axis];
    int rest = i / a->length, at = i - rest * a->length, shift = at * a->shift;
    i = rest;
    if (a->leaves) t.bits |= 1 << (bit + at), bit += a->length;
    if (a->step != 1) shift = (shift + a->step - 1) / a->step;
    t.pixels += shift * scale, scale *= a->count;
    t.place += (a->tap + at * a->taps) * size, size *= a->places;
  }
  return t;
}

/* What a thread keeps of the rows that it loads. */
struct conv_thread {
  int base[ROWS], mask[ROWS];
};

__device__ static inline float *cells_a(struct conv_shared *x, int stage, int slice) { return x->cells[stage] + slice * SLICE_A; }
__device__ static inline float *cells_b(struct conv_shared *x, int stage, int slice) {
  return x->cells[stage] + DEEPS * SLICE_A + slice * SLICE_B;
}

/* Number `n` of what is `bytes` long. */
__device__ static inline const float *behind(const float *from, int n, unsigned bytes) {
  return (const float *)((const char *)from + (unsigned long long)(unsigned)n * bytes);
}

/* Four numbers behind each other along what is summed, from k on, of all rows and columns of the thread: by four,
 * which then are of one place of the kernel, or (j) one by one. */
__device__ static inline void load_deep(const struct conv_block *b, const struct conv_place *at, struct conv_shared *x,
                                        const struct conv_thread *me, int k, int stage, int slice, int wide, int j) {
  int row = (int)threadIdx.x / 4, place = row * SLICE + ((int)threadIdx.x % 4 ^ row / 2 % 4) * 4 + j;
  float *to = cells_a(x, stage, slice) + place, *other = cells_b(x, stage, slice) + place;
  int tap = (int)divide((unsigned)k, b->per_inner), inner = k - tap * b->inner, good = k < at->end, columns = b->columns;
  struct conv_tap t = x->taps[good ? tap : 0];
  const float *from = b->from + (long long)at->group * b->inner + inner;
  const float *by = b->by + (long long)at->group * b->of_group + inner;
  unsigned stride = (unsigned)b->stride * 4, filters = (unsigned)b->filters * 4;
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    int there = good && (me->mask[i] & t.bits) == t.bits;
    const float *seen = behind(from, there ? me->base[i] + t.pixels : 0, stride);
    if (wide)
      copy_four(to + i * (THREADS / 4) * SLICE, seen, there);
    else
      copy_one(to + i * (THREADS / 4) * SLICE, seen, there);
  }
#pragma unroll
  for (int i = 0; i < COLUMNS && OTHER_DEEP; i++) {
    int column = at->first + row + i * (THREADS / 4), there = good && column < columns;
    if (WIDE * 4 < THREADS && row >= WIDE) continue;
    const float *f = behind(by, there ? t.place * columns + column : 0, filters);
    if (wide)
      copy_four(other + i * (THREADS / 4) * SLICE, f, there);
    else
      copy_one(other + i * (THREADS / 4) * SLICE, f, there);
  }
}

__device__ static inline void load_slice(const struct conv_block *b, const struct conv_place *at, struct conv_shared *x,
                                         const struct conv_thread *me, int k, int stage, int slice) {
  k += (int)threadIdx.x % 4 * 4;
  if (b->wide_from && (b->wide_by || !OTHER_DEEP)) {
    load_deep(b, at, x, me, k, stage, slice, 1, 0);
    return;
  }
#pragma unroll 1
  for (int j = 0; j < 4; j++) load_deep(b, at, x, me, k + j, stage, slice, 0, j);
}

/* The pixels of a table, under four rows of a kernel: by four, which then are of one place, or one by one. */
__device__ static inline void load_rows(const struct conv_block *b, const struct conv_place *at, struct conv_shared *x,
                                        int table, int stage, int wide) {
  int above = (int)threadIdx.x / CHUNKS, c = (int)threadIdx.x % CHUNKS * 4;
  const float *from = b->from + (long long)at->group * b->inner;
  unsigned stride = (unsigned)b->stride * 4;
  if (above >= ABOVE_A) return;
#pragma unroll
  for (int i = 0; i < DEEP; i += ABOVE_A) {
    int deep = above + i % SLICE;
    struct conv_row row = x->rows[table][above + i];
    float *to = cells_a(x, stage, i / SLICE) + deep * HIGH + deep / 4 * 8 + c;
#pragma unroll
    for (int j = 0; j < (wide ? 1 : 4); j++) {
      struct conv_tap t = x->taps[c + j];
      int there = (row.mask & t.bits) == t.bits;
      const float *seen = behind(from + t.channel, there ? row.base + t.pixels : 0, stride);
      if (wide)
        copy_four(to, seen, there);
      else
        copy_one(to + j, seen, there);
    }
  }
}

/* ---- the other one ---- */

/* Rows k to k + DEEP of it. */
__device__ static inline void load_columns(const struct conv_block *b, const struct conv_place *at, struct conv_shared *x, int k,
                                           int stage, int wide) {
  int above = (int)threadIdx.x / (WIDE / 4), c = (int)threadIdx.x % (WIDE / 4) * 4, columns = b->columns - at->first - c;
  int inner = b->inner, end = at->end, is_plain = at->is_plain;
  const float *by = b->by + (long long)at->group * b->of_group + (columns > 0 ? at->first + c : 0);
  unsigned filters = (unsigned)b->filters * 4;
  if (ABOVE_B > DEEP && above >= DEEP) return;
#pragma unroll
  for (int i = 0; i < DEEP; i += ABOVE_B) {
    int slice = (ABOVE_B > SLICE ? i + above : i) / SLICE, deep = ABOVE_B > SLICE ? above % SLICE : above + i % SLICE;
    int row = k + i + above, there = row < end ? columns : 0;
    if (RESULT == 2 && !is_plain && there > 0) {
      int tap = (int)divide((unsigned)row, b->per_inner);
      row += (x->taps[tap].place - tap) * inner;
    }
    const float *from = behind(by, there > 0 ? row : 0, filters);
    float *to = cells_b(x, stage, slice) + deep * WIDE + deep / 4 * 8 + c;
#pragma unroll
    for (int j = 0; j < (wide ? 1 : 4); j++)
      if (wide)
        copy_four(to, from, there > 0);
      else
        copy_one(to + j, there > j ? from + j : from, there > j);
  }
}

__device__ static inline void load_step(const struct conv_block *b, const struct conv_place *at, struct conv_shared *x,
                                        const struct conv_thread *me, int step, int stage) {
  int k = at->begin + step * DEEP;
  if (k < at->end) {
    if (SEEN_DEEP) {
#pragma unroll
      for (int slice = 0; slice < DEEPS; slice++) load_slice(b, at, x, me, k + slice * SLICE, stage, slice);
    } else {
      if (b->wide_from)
        load_rows(b, at, x, step % 2, stage, 1);
      else
        load_rows(b, at, x, step % 2, stage, 0);
    }
    if (!OTHER_DEEP && b->wide_by)
      load_columns(b, at, x, k, stage, 1);
    else if (!OTHER_DEEP)
      load_columns(b, at, x, k, stage, 0);
  }
  copies_end();
}

/* ---- a tile ---- */

/* Rows and columns of a warp's part that its lane 4g + t has. */
enum { TOGETHER = LANE_ROWS % 4 ? 2 : 4 };
__device__ static inline int lane_row(int i) {
  int g = (int)threadIdx.x % 32 / 4;
  return SEEN_DEEP ? g + 8 * i : TOGETHER * g + 8 * TOGETHER * (i / TOGETHER) + i % TOGETHER;
}
__device__ static inline int lane_column(int i) {
  int t = (int)threadIdx.x % 4;
  return OTHER_DEEP ? i / 2 * 8 + 2 * t + i % 2 : LANE_COLUMNS * t + i;
}

struct __align__(8) two {
  float x, y;
};

/* `count` neighbours, `step` apart in `to`. */
__device__ static inline void load_lane(const float *from, float *to, int step, int count) {
  if (count == 4) {
    load_four(from, to, step);
  } else {
    struct two v = *(const struct two *)from;
    to[0] = v.x, to[step] = v.y;
  }
}

__device__ static inline void store_lane(float *to, const float *v, int count) {
  if (count == 4) {
    struct four f;
    f.x = v[0], f.y = v[1], f.z = v[2], f.w = v[3];
    *(struct four *)to = f;
  } else {
    struct two f;
    f.x = v[0], f.y = v[1];
    *(struct two *)to = f;
  }
}

/* Without tensor cores: each thread four numbers of its rows and columns at a time. */
__device__ static inline void multiply_exactly(const float *a, const float *b, float (*sums)[LANE_COLUMNS]) {
  int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
#pragma unroll 1
  for (int k = 0; k < SLICE; k += 4) {
    float x[LANE_ROWS][4], y[LANE_COLUMNS][4];
    if (OTHER_DEEP) {
#pragma unroll
      for (int c = 0; c < LANE_COLUMNS; c++) load_four(b + lane_column(c) * SLICE + (k ^ 4 * t), y[c], 1);
    } else {
#pragma unroll
      for (int i = 0; i < LANE_COLUMNS; i++)
        load_four(b + (k + i % 4) * WIDE + k * 2 + lane_column(i / 4 * 4), &y[i / 4 * 4][i % 4], 4);
    }
    if (!SEEN_DEEP) {
#pragma unroll
      for (int i = 0; i < LANE_ROWS / TOGETHER * 4; i++)
        load_lane(a + (k + i % 4) * HIGH + k * 2 + lane_row(i / 4 * TOGETHER), &x[i / 4 * TOGETHER][i % 4], 4, TOGETHER);
    }
#pragma unroll
    for (int r = 0; r < LANE_ROWS; r++) {
      if (SEEN_DEEP) load_four(a + lane_row(r) * SLICE + (k ^ g / 2 * 4), x[r], 1);
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int c = 0; c < LANE_COLUMNS; c++) sums[r][c] = __fmaf_rn(x[r][i], y[c][i], sums[r][c]);
    }
  }
}

/* As cell_of, of what an mma reads: it leaves off the bits behind a TF32's, so adding half of the last one of these
 * rounds. That may carry a NaN over into a number of the other sign, which the sign of `odd` notes. */
__device__ static inline unsigned factor_of(const float *x, int *odd) {
  unsigned bits = __float_as_uint(x[0]), up = bits + 0x1000u;
  if (BF16) return cell_of(x, 1);
  *odd |= (int)(bits ^ up);
  return up;
}

/* By tensor cores. Their cells t and t + 4 along what is summed are neighbours here: thread t has four from
 * 4t on. */
__device__ static inline void multiply(const float *a, const float *b, float (*sums)[LANE_COLUMNS], int *odd) {
  enum { ACROSS = LANE_COLUMNS / 2, CELLS = 4 / CELL };
  int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
  float x[LANE_ROWS][4], y[ACROSS][4];
  unsigned rows[LANE_ROWS][CELLS], columns[ACROSS][CELLS];
#pragma unroll
  for (int i = 0; i < (SEEN_DEEP ? LANE_ROWS : LANE_ROWS / TOGETHER * 4); i++)
    if (SEEN_DEEP)
      load_four(a + lane_row(i) * SLICE + (t ^ g / 2) * 4, x[i], 1);
    else
      load_lane(a + (4 * t + i % 4) * HIGH + 8 * t + lane_row(i / 4 * TOGETHER), &x[i / 4 * TOGETHER][i % 4], 4, TOGETHER);
#pragma unroll
  for (int i = 0; i < (OTHER_DEEP ? ACROSS : 4); i++)
    if (OTHER_DEEP)
      load_four(b + (8 * i + g) * SLICE + (t ^ g / 2) * 4, y[i], 1);
    else
      load_lane(b + (4 * t + i) * WIDE + 8 * t + ACROSS * g, &y[0][i], 4, ACROSS);
#pragma unroll
  for (int i = 0; i < LANE_ROWS * CELLS; i++) rows[i / CELLS][i % CELLS] = factor_of(&x[i / CELLS][i % CELLS * CELL], odd);
#pragma unroll
  for (int i = 0; i < ACROSS * CELLS; i++) columns[i / CELLS][i % CELLS] = factor_of(&y[i / CELLS][i % CELLS * CELL], odd);
#pragma unroll
  for (int k = 0; k < CELLS; k += 2)
#pragma unroll
    for (int i = 0; i < LANE_ROWS; i += 2)
#pragma unroll
      for (int j = 0; j < ACROSS; j++) {
        int c = OTHER_DEEP ? 2 * j : j, d = OTHER_DEEP ? 2 * j + 1 : ACROSS + j;
        unsigned p[4] = {rows[i][k], rows[i + 1][k], rows[i][k + 1], rows[i + 1][k + 1]};
        unsigned q[2] = {columns[j][k], columns[j][k + 1]};
        float z[4] = {sums[i][c], sums[i][d], sums[i + 1][c], sums[i + 1][d]};
        mma(z, p, q);
        sums[i][c] = z[0], sums[i][d] = z[1], sums[i + 1][c] = z[2], sums[i + 1][d] = z[3];
      }
}

__device__ static inline int warp_top(void) { return (int)anew(threadIdx.x) / 32 % WARPS / WARPS_ACROSS * 8 * LANE_ROWS; }
__device__ static inline int warp_first(void) { return (int)threadIdx.x / 32 % WARPS_ACROSS * 4 * LANE_COLUMNS; }

__device__ static inline void multiply_stage(struct conv_shared *x, int stage, float (*sums)[LANE_COLUMNS], int *odd) {
  int slice = (int)anew(threadIdx.x) / 32 / WARPS, top = warp_top(), first = warp_first();
  const float *a = cells_a(x, stage, slice) + (SEEN_DEEP ? top * SLICE : top);
  const float *b = cells_b(x, stage, slice) + (OTHER_DEEP ? first * SLICE : first);
  if (EXACT)
    multiply_exactly(a, b, sums);
  else
    multiply(a, b, sums, odd);
}

/* Those of all slices, in the threads of the first one. */
__device__ static inline void join_slices(float *cells, float (*sums)[LANE_COLUMNS]) {
  enum { OF = WARPS * 32, COUNT = LANE_ROWS * LANE_COLUMNS };
  int slice = (int)threadIdx.x / OF, lane = (int)threadIdx.x % OF;
  if (DEEPS == 1) return;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < COUNT; i++)
    if (slice > 0) cells[((slice - 1) * COUNT + i) * OF + lane] = sums[i / LANE_COLUMNS][i % LANE_COLUMNS];
  __syncthreads();
#pragma unroll
  for (int j = 0; j < DEEPS - 1; j++)
#pragma unroll
    for (int i = 0; i < COUNT; i++)
      if (slice == 0) sums[i / LANE_COLUMNS][i % LANE_COLUMNS] += cells[(j * COUNT + i) * OF + lane];
}

/* The place in the result of a row's first element of the tile's group; -1: there is none. */
__device__ static inline long long row_place(const struct conv_block *b, const struct conv_place *at, const struct conv_shared *x,
                                             int i) {
  int row = warp_top() + lane_row(i);
  if (RESULT == 1) return at->top + row < b->rows ? (long long)(at->top + row) * b->filters + at->group * b->columns : -1;
  int pixel = x->pixel[row];
  return pixel < 0 ? -1 : ((long long)pixel * b->groups + at->group) * b->columns;
}

__device__ static float element_alone(const struct conv_numbers *s, const struct conv_block *b, const struct conv_place *at,
                                      long long e) {
  if (RESULT == 0) return input_at(s, b->from, b->by, e);
  if (RESULT == 2) return output_at(s, b->from, b->by, e);
  return kernel_share(s, b->from, b->by, e, at->begin, at->end, 1);
}

__device__ static inline void store_tile(const struct conv_numbers *s, const struct conv_block *b, const struct conv_place *at,
                                         const struct conv_shared *x, float (*sums)[LANE_COLUMNS], int odd, float *out) {
  enum { ABREAST = OTHER_DEEP ? 2 : 4 };
  int mine = (int)threadIdx.x < WARPS * 32, first = at->first + warp_first(), other = 0;
  int wide = b->columns % ABREAST == 0 && (unsigned long long)out % (4 * ABREAST) == 0;
#pragma unroll
  for (int i = 0; i < LANE_ROWS; i++)
#pragma unroll
    for (int j = 0; j < LANE_COLUMNS; j++) other |= !(fabsf(sums[i][j]) <= 0x1.fffffep127f);
  odd = any_thread((other && mine) || odd < 0);
  if (!mine) return;
#pragma unroll
  for (int i = 0; i < LANE_ROWS; i++) {
    long long place = row_place(b, at, x, i);
#pragma unroll
    for (int j = 0; j < LANE_COLUMNS; j += ABREAST) {
      int column = first + lane_column(j);
      if (place < 0 || odd) continue;
      if (wide && column < b->columns) {
        store_lane(out + place + column, &sums[i][j], ABREAST);
        continue;
      }
#pragma unroll
      for (int n = 0; n < ABREAST; n++)
        if (column + n < b->columns) out[place + column + n] = sums[i][j + n];
    }
  }
#pragma unroll 1
  for (int i = 0; i < LANE_ROWS * LANE_COLUMNS && odd; i++) {
    long long place = row_place(b, at, x, i / LANE_COLUMNS);
    int column = first + lane_column(i % LANE_COLUMNS);
    if (place >= 0 && column < b->columns) out[place + column] = element_alone(s, b, at, place + column);
  }
}

/* What the thread keeps of the tile. */
__device__ static inline void note_thread(const struct conv_shared *x, struct conv_thread *me) {
#pragma unroll
  for (int i = 0; i < ROWS && SEEN_DEEP; i++) {
    struct conv_row row = x->rows[0][(int)threadIdx.x / 4 + i * (THREADS / 4)];
    me->base[i] = row.base, me->mask[i] = row.mask;
  }
}

/* A row of a kernel. One that is not there has bits that no pixel has. */
__device__ static inline struct conv_tap row_of_kernel(const struct conv_block *b, const struct conv_axis *axes, int row) {
  int tap = (int)divide((unsigned)row, b->per_inner);
  struct conv_tap t = tap_of(axes, tap);
  t.channel = row - tap * b->inner;
  if (row >= b->rows) t.bits = -1;
  return t;
}

/* Of a kernel's gradient: the pixels of a step, one after the other. */
__device__ static inline void note_pixels(const struct conv_block *b, const struct conv_place *at, struct conv_shared *x,
                                          struct conv_spot *p, int step) {
  int i = (int)threadIdx.x;
  if (SEEN_DEEP || i >= DEEP) return;
  note_row(x, step % TABLES, i, p, at->begin + step * DEEP + i < at->end);
  advance(x->axes, b->images_ahead, p);
}

__device__ static inline void note_tile(const struct conv_tensor_numbers *n, struct conv_shared *x, int i) {
  int thread = (int)threadIdx.x, depth = (int)n->s.batch * pixels_of(n->s.output), piece = (int)n->piece;
  struct conv_place at;
  if (thread > 2) return;
  int across = (int)n->across, down = (int)n->down, groups = (int)n->s.groups, rest = i / across;
  at.first = (i - rest * across) * WIDE, i = rest, rest = i / down;
  at.top = (i - rest * down) * HIGH, i = rest, rest = groups == 1 ? i : i / groups;
  at.group = i - rest * groups, i = rest;
  at.piece = i;
  at.begin = RESULT == 1 ? i * piece : 0;
  at.end = at.begin + piece > depth ? depth : at.begin + piece;
  at.is_plain = 1;
  if (thread == 0) x->place = at;
  int phase = 0;
  for (int axis = 2; axis >= thread && RESULT != 1; axis--) {
    int phases = phases_of(&n->s, axis);
    rest = i, i = phases == 1 ? i : i / phases;
    phase = rest - i * phases;
  }
  note_axis(&n->s, thread, phase, &x->axes[thread]);
}

__device__ static inline void conv_tile(const struct conv_tensor_numbers *n, struct conv_shared *x, int i, float *out) {
  const struct conv_block *b = &x->block;
  struct conv_place *at = &x->place;
  int thread = (int)threadIdx.x;
  float sums[LANE_ROWS][LANE_COLUMNS];
  struct conv_thread me;
  note_tile(n, x, i);
  __syncthreads();
  if (SEEN_DEEP) {
    int places = x->axes[0].length * x->axes[1].length * x->axes[2].length;
    if (thread == 0) at->end = places * b->inner, at->is_plain = places == b->places;
#pragma unroll 1
    for (int j = thread; j < places; j += THREADS) x->taps[j] = tap_of(x->axes, j);
#pragma unroll 1
    for (int j = thread; j < HIGH; j += THREADS) {
      struct conv_spot p = spot_of(x->axes, at->top + j);
      note_row(x, 0, j, &p, at->top + j < b->rows);
    }
    __syncthreads();
  } else if (thread < HIGH) {
    x->taps[thread] = row_of_kernel(b, x->axes, at->top + thread);
  }
  note_thread(x, &me);
  struct conv_spot p = spot_of(x->axes, SEEN_DEEP ? 0 : at->begin + thread);
#pragma unroll 1
  for (int j = 0; j < STAGES - 1; j++) {
    note_pixels(b, at, x, &p, j);
    if (!SEEN_DEEP) __syncthreads();
    load_step(b, at, x, &me, j, j);
  }
  note_pixels(b, at, x, &p, STAGES - 1);
#pragma unroll
  for (int j = 0; j < LANE_ROWS * LANE_COLUMNS; j++) sums[j / LANE_COLUMNS][j % LANE_COLUMNS] = 0;
  int stage = 0, last = STAGES - 1, odd = 0, steps = (at->end - at->begin + DEEP - 1) / DEEP;
#pragma unroll 1
  for (int step = 0; step < steps; step++) {
    copies_wait(STAGES - 2);
    __syncthreads();
    load_step(b, at, x, &me, step + STAGES - 1, last);
    note_pixels(b, at, x, &p, step + STAGES);
    multiply_stage(x, stage, sums, &odd);
    last = stage;
    stage = stage + 1 == STAGES ? 0 : stage + 1;
  }
  join_slices(x->cells[0], sums);
  store_tile(&n->s, b, at, x, sums, odd, RESULT == 1 ? out + (long long)at->piece * b->rows * b->filters : out);
  __syncthreads();
}

__device__ static inline void note_block(const struct conv_numbers *s, struct conv_block *b, const float *from, const float *by) {
  b->from = from, b->by = by;
  b->inner = (int)(RESULT == 0 ? s->filters : s->channels), b->columns = (int)(RESULT == 0 ? s->channels : s->filters);
  b->places = pixels_of(s->kernel), b->rows = RESULT == 1 ? b->places * b->inner : (int)s->batch;
#pragma unroll
  for (int axis = 0; axis < 3 && RESULT != 1; axis++) {
    int phases = phases_of(s, axis), pixels = (int)(RESULT == 0 ? s->input[axis] : s->output[axis]);
    b->rows *= phases == 1 ? pixels : (pixels + phases - 1) / phases;
  }
  b->groups = (int)s->groups, b->of_group = (int)s->filters;
  b->filters = b->groups * b->of_group, b->stride = b->groups * b->inner;
  b->per_inner = reciprocal(b->inner);
  b->wide_from = b->inner % 4 == 0 && (unsigned long long)from % 16 == 0;
  b->wide_by = s->filters % 4 == 0 && (unsigned long long)by % 16 == 0;
  b->images_ahead = RESULT == 1 ? DEEP / pixels_of(s->output) : 0;
}

extern "C" __global__ void __launch_bounds__(128, LEAST)
    conv_tensor(const TYPE *from, const TYPE *by, TYPE *out, struct conv_tensor_numbers n) {
  __shared__ struct conv_shared x;
  if (threadIdx.x == 32) note_block(&n.s, &x.block, from, by);
  for (int i = (int)blockIdx.x; i < (int)n.tiles; i += (int)gridDim.x) conv_tile(&n, &x, i, out);
}
