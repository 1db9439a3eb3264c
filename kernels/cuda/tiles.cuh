/* SPDX-License-Identifier: Apache-2.0 */
/* Products of rows of heads in f32, by tiles. WIDTH, a definition in front, is 32, 64 or 128: at least what a head has, numbers and
 * values. Every sum is a chain of FMAs in the order of its terms.
 *
 * A block of 256 threads has OWN rows, which meet MET others at a time. A thread has scores of the own rows x + 16 j and of the
 * others y + 16 i; of sums over the others those of own rows 4a to 4a + 3 and of columns 4b to 4b + 3. Where there are only half as
 * many of these as threads, the second half of the threads has the second half of the others (TURNS).
 *
 * The own rows are of one tensor (OWN_TENSORS, a definition in front, is 1), which stays in shared memory if it finds room, or of two.
 *
 * In shared memory rows are pieces of four numbers, of which piece c of row r is where c ^ r % 8 would be, and scores a row for
 * each of the others, of which number o of row r is where o ^ r % 4 * 8 would be: so the threads of a warp meet no bank twice. */
enum {
  OWN = 64,
  MET = WIDTH > 64 ? 32 : 64,
  PART = WIDTH > 64 ? 64 : WIDTH, /* columns of the own rows at a time */
  IS_KEPT = WIDTH == 32 || (WIDTH == 64 && OWN_TENSORS == 1), /* the own rows stay in shared memory */
  HIGH = MET / 16,
  TURNS = WIDTH == 32 ? 2 : 1,
  WIDE = WIDTH > 64 ? 2 : 1, /* pieces of columns of a thread, 64 apart */
  OWN_PLACE = 2 * MET * WIDTH,
  IN_PLACE_OF_MET = IS_KEPT && WIDTH == 64, /* the scores, of those that they were made of: there is no other room */
  BEHIND_OWN = OWN_PLACE + (IS_KEPT ? OWN_TENSORS * OWN * PART : 0), /* else they take the place of the own rows */
  SCORES = IN_PLACE_OF_MET ? 0 : BEHIND_OWN,
  CELLS = BEHIND_OWN + (IN_PLACE_OF_MET ? 0 : 64 * 64)
};


/* Rows of tensors of two widths: of q or k, and of v, y or dy. */
struct tile_rows {
  const float *from[2];
  int row[2], count, width[2], wide[2];
};

__device__ static inline struct tile_rows tile_rows(const struct attention_numbers *s, const struct attention_head *x,
                                                    const float *a, const float *b, long long count) {
  struct tile_rows r;
  r.from[0] = a, r.from[1] = b, r.row[0] = (int)x->row, r.row[1] = (int)x->row_values, r.count = (int)count;
  r.width[0] = (int)s->size, r.width[1] = (int)s->values;
#pragma unroll
  for (int i = 0; i < 2; i++) r.wide[i] = r.width[i] % 4 == 0 && (unsigned long long)r.from[i] % 16 == 0;
  return r;
}

/* The thread's place among the scores, and among the sums. */
__device__ static inline int tile_x(void) { return (int)threadIdx.x % 8 + (int)threadIdx.x / 32 % 2 * 8; }
__device__ static inline int tile_y(void) { return (int)threadIdx.x % 32 / 8 + (int)threadIdx.x / 64 * 4; }
__device__ static inline int tile_a(void) { return TURNS == 2 ? (int)threadIdx.x % 128 / 8 : tile_y(); }
__device__ static inline int tile_b(void) { return TURNS == 2 ? (int)threadIdx.x % 8 : tile_x(); }

__device__ static inline void store_four(float *to, const float *v) {
  struct four f;
  f.x = v[0], f.y = v[1], f.z = v[2], f.w = v[3];
  *(struct four *)to = f;
}

/* Loads under way at once: cards before 9.0 have no registers left for two. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 900
enum { LOADS = 1 };
#else
enum { LOADS = 2 };
#endif

/* `high` rows from `begin` on, `across` columns of them from `first` on, zeros behind their ends. Returns NaN if one of them is
 * NaN or infinite, else 0. */
__device__ static inline float load_tile(const struct tile_rows *r, int which, int begin, int first, int high, int across,
                                         float *to) {
  float odd = 0;
#pragma unroll LOADS
  for (int i = 0; i < high * across / 1024; i++) {
    int u = (int)threadIdx.x + 256 * i, row = u / (across / 4), c = u % (across / 4), column = first + 4 * c;
    int there = begin + row < r->count ? r->width[which] - column : 0;
    float v[4];
    load_some(r->from[which] + (long long)(begin + row) * r->row[which] + column, r->wide[which], there, v, 1);
#pragma unroll
    for (int e = 0; e < 4; e++) odd += v[e] - v[e];
    store_four(to + row * across + (c ^ row % 8) * 4, v);
  }
  return odd;
}

__device__ static inline float *own_tile(float *cells, int which) { return cells + OWN_PLACE + (IS_KEPT ? which * OWN * PART : 0); }
__device__ static inline float *met_tile(float *cells, int which) { return cells + which * MET * WIDTH; }

/* Where the own rows are kept: once, in front of all. */
__device__ static inline void keep_own(float *cells, const struct tile_rows *own, int begin) {
  if (!IS_KEPT) return;
  load_tile(own, 0, begin, 0, OWN, PART, own_tile(cells, 0));
  if (OWN_TENSORS == 2) load_tile(own, 1, begin, 0, OWN, PART, own_tile(cells, 1));
}

/* scores[i][j]: the other row y + 16 i times the own row x + 16 j. */
__device__ static inline void multiply_rows(float *cells, const struct tile_rows *own, int begin, int which, float (*scores)[4]) {
  const int x = tile_x(), y = tile_y();
  const float *met = met_tile(cells, which) + y * WIDTH, *mine = own_tile(cells, which) + x * PART;
#pragma unroll
  for (int i = 0; i < HIGH * 4; i++) scores[i / 4][i % 4] = 0;
#pragma unroll 1
  for (int first = 0; first < WIDTH; first += PART) {
    if (!IS_KEPT) {
      __syncthreads();
      load_tile(own, which, begin, first, OWN, PART, own_tile(cells, which));
      __syncthreads();
    }
#pragma unroll 1
    for (int c = 0; c < PART / 4; c++) {
      float a[4][4], b[4];
#pragma unroll
      for (int j = 0; j < 4; j++) load_four(mine + 16 * j * PART + (c ^ x % 8) * 4, a[j], 1);
#pragma unroll
      for (int i = 0; i < HIGH; i++) {
        load_four(met + 16 * i * WIDTH + ((first / 4 + c) ^ y % 8) * 4, b, 1);
#pragma unroll
        for (int e = 0; e < 4; e++)
#pragma unroll
          for (int j = 0; j < 4; j++) scores[i][j] = __fmaf_rn(b[e], a[j][e], scores[i][j]);
      }
    }
  }
}

/* What pairs that do not see each other have for a score: no other one has a sign with its zero. */
__device__ static inline float unseen(void) { return __int_as_float((int)0x80000000u); }
__device__ static inline int is_unseen(float x) { return __float_as_uint(x) == 0x80000000u; }

__device__ static inline void store_scores(float *cells, float (*scores)[4]) {
  const int x = tile_x(), y = tile_y();
#pragma unroll
  for (int i = 0; i < HIGH; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) cells[SCORES + (y + 16 * i) * OWN + ((x + 16 * j) ^ y % 4 * 8)] = scores[i][j];
}

/* sums[w][r][c] += the scores of own row 4a + r times column 64 w + 4b + c of the others. */
__device__ static inline void add_met(const float *cells, int which, int careful, float (*sums)[4][4]) {
  const int a = tile_a(), b = tile_b(), turn = TURNS == 2 ? (int)threadIdx.x / 128 : 0;
  const float *scores = cells + SCORES, *met = cells + which * MET * WIDTH;
#pragma unroll 4
  for (int k = turn * (MET / TURNS); k < (turn + 1) * (MET / TURNS); k++) {
    float p[4], v[4];
    load_four(scores + k * OWN + ((4 * a) ^ k % 4 * 8), p, 1);
#pragma unroll
    for (int w = 0; w < WIDE; w++) {
      load_four(met + k * WIDTH + ((16 * w + b) ^ k % 8) * 4, v, 1);
#pragma unroll
      for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < 4; c++)
          if (!careful || !is_unseen(p[r])) sums[w][r][c] = __fmaf_rn(p[r], v[c], sums[w][r][c]);
    }
  }
}

/* The same where a NaN or an infinity is among the others: what does not see it has no part in it. */
__device__ static inline void add_scores(const float *cells, int which, int is_odd, float (*sums)[4][4]) {
  if (is_odd)
    add_met(cells, which, 1, sums);
  else
    add_met(cells, which, 0, sums);
}

/* Both halves of the sums, in the threads of the first one. */
__device__ static inline void join_turns(float *cells, float (*sums)[4][4]) {
  if (TURNS == 1) return;
  int lane = (int)threadIdx.x % 128;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 16; i++)
    if (threadIdx.x >= 128) cells[SCORES + i * 128 + lane] = sums[0][i / 4][i % 4];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 16; i++)
    if (threadIdx.x < 128) sums[0][i / 4][i % 4] += cells[SCORES + i * 128 + lane];
}

/* Of `count` rows of `width` numbers. */
__device__ static inline void store_sums(float (*sums)[4][4], int begin, int count, int width, int row, float *to) {
  int wide = row % 4 == 0 && (unsigned long long)to % 16 == 0;
  if (threadIdx.x >= 256 / TURNS) return;
#pragma unroll
  for (int r = 0; r < 4; r++) {
    int at = begin + 4 * tile_a() + r;
    if (at >= count) continue;
    float *mine = to + (long long)at * row + 4 * tile_b();
#pragma unroll
    for (int w = 0; w < WIDE; w++) store_some(sums[w][r], wide, width - 4 * tile_b() - 64 * w, mine + 64 * w);
  }
}

__device__ static inline void clear_sums(float (*sums)[4][4]) {
#pragma unroll
  for (int i = 0; i < WIDE * 16; i++) sums[i / 16][i % 16 / 4][i % 4] = 0;
}
