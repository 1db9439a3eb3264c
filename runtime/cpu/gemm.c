/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products in a defined order.
 *
 * What an element is, ir/ops/matmul.c says: pieces of k, each a chain of fused multiply-adds, joined as a tree. Here C
 * is gone through in tiles that fit the registers (tile.h), whose code is written for their size: 14 x 2 vectors
 * with 32 registers, 6 x 2 with 16, 16, 24 or 12 x 1 where C is no wider than a vector. With 16 a column is computed
 * as a row: lanes run along it; and a row, if B lies transposed, without tiles: kernels/cpu/dots.c. A tile takes a
 * part of a piece of k, for which a panel of B stays in the first cache, or where registers are few all of it; the
 * next one goes on with the sums that it has left in C. B goes into panels as wide as a tile, so that it is read in
 * order, unless it is used too seldom to pay, or tiles take so long that the one before can ask for its rows; A as
 * well, by columns, where C is wide and A lies transposed, or a tile's rows of it would crowd into the same few
 * places of the first cache. Where A has few rows and B lies transposed, the transpose of C is computed, which
 * needs no large B packed. Patches of a convolution are
 * read where they lie (patch_tiles.h); what is copied of an image next is asked for by the tiles before, as it may be
 * far; so is C of the tile below, and where A lies transposed its columns. Sums of pieces that wait for their other
 * half lie in blocks of their own, one for each level of the tree; the lowest is C. Which block of C a thread computes,
 * what is packed and how large tiles are changes where a number waits, and not what it is added to. */
#include "runtime/cpu/gemm.h"

#include "base/arena.h"
#include "base/integer.h"
#include "base/line.h"
#include "kernels/cpu/dots.h"
#include "kernels/cpu/pack.h"
#include "kernels/cpu/piece_sums.h"
#include "runtime/cpu/host.h"
#include "runtime/cpu/patch_tiles.h"
#include "runtime/cpu/scratch.h"
#include "runtime/cpu/tile.h"

#include <string.h>

/* Bytes of a row of C for which B is packed at a time, and tiles of A; tiles of a block in which sums wait, and where
 * registers are few and blocks need many of these, bytes of all of them: for each block B is packed again. */
enum { WIDE = 4096, TILES = 18, FEW_TILES = 9, WAITING_TILES = 36, WAITING_BYTES = 8 << 20 };
/* Rows of B that are asked for ahead, and how many of them stay in the first cache. Where registers are few, a tile has
 * few sums for what it reads and writes of C: a whole piece at a time was measured to be faster, from the second. */
enum { AHEAD = 8, PART = 256, SHORT_PART = 64 };
/* Bytes of B of a piece that is not cut into parts where A is patches, as each part copies the image for itself. */
enum { SMALL = 16 << 10 };
/* By measurements B is packed where more tiles than this read it downwards, and A where more do along; a panel of B at
 * a time for no more tiles than FEW_ROWS. Where a row of B is a page or more, each row of a panel is one of its own. */
enum { SEVERAL_ROWS = 20, SEVERAL_COLUMNS = 8, FEW_ROWS = 10, PAGE = 4096 };
/* As SEVERAL_ROWS where registers are few and the rows of B are SAME_PLACE apart, so that no panel stays in the first
 * cache as it lies, or half of that. */
enum { CROWDED_ROWS = 2, HALF_CROWDED_ROWS = 6 };
/* Rows of C at a time, where they are pixels. */
enum { MOST_PIXELS = 1024 };
/* Panels lie a line more apart than they are long, as caches put what is a power of two apart in one place. Of what is
 * SAME_PLACE apart the first cache holds 8 to 12 lines. */
enum { SAME_PLACE = 4096 };

struct gemm {
  struct product size;
  struct gemm_layout at;
  bool swapped;           /* a and b, as op(b)' op(a)' is computed */
  bool turned;            /* and what comes out is transposed */
  bool dots;              /* one row, and B lies transposed */
  int64_t bytes;          /* of a number */
  int64_t rows, columns;  /* of a whole tile */
  int64_t pieces, levels; /* of k; sums that wait beside C */
  int64_t part;           /* of a piece, if nothing is added to */
  bool packs_a, packs_b;
  bool asks;                  /* tiles ask for C of the one below */
  struct patch_tiles patches; /* where A is made of them */
  int64_t a_apart, b_apart;   /* bytes from a tile's rows of A to the next ones', and from columns of B */
  int64_t a_row;              /* bytes between rows of a panel of A */
  int64_t wide, high, deep;   /* columns and units down C at a time, rows of A packed at a time */
  const struct tile_code *tile[2][2]; /* 1: of the last rows; 1: of the last columns */
};

bool gemm_can(void) { return host_vectors().fma; }

/* ---- making ---- */

/* Rows along which A goes on without a break. */
static int64_t strip_of(const struct gemm *g) {
  return g->at.patches ? patch_strip(g->at.patches, g->size.transpose_a) : g->size.m;
}

/* NULL: there is none such. */
static const struct tile_code *make_tile(const struct gemm *g, struct cpu_jit *jit, int lanes, bool last_rows,
                                         bool last_columns) {
  const struct product *p = &g->size;
  int64_t strip = strip_of(g), rows = last_rows ? strip % g->rows : g->rows,
          columns = last_columns ? p->n % g->columns : g->columns;
  if (rows == 0 || columns == 0 || (!last_rows && strip < g->rows) || (!last_columns && p->n < g->columns))
    return NULL;
  struct tile t = {.dtype = p->dtype,
                   .rows = (int)rows,
                   .vectors = (int)blocks_of(columns, lanes),
                   .lanes = lanes,
                   .columns = p->transpose_a || g->packs_a,
                   .asks = g->asks,
                   .positive = g->at.positive,
                   .last = (int)(columns % lanes)};
  return cpu_jit_tile(jit, &t);
}

/* As many tiles as there must be, of about equal size. */
static int64_t even(int64_t size, int64_t most) {
  return size ? blocks_of(size, blocks_of(size, most)) : most;
}

/* Sums are so many that none is waited for, and that they fit the registers beside B and a number of A. */
static void choose_tiles(struct gemm *g, const struct vector_registers *v) {
  enum { FEW = 4 };
  const struct product *p = &g->size;
  int64_t lanes = v->bytes / g->bytes, vectors = 2, strip = strip_of(g);
  bool many = v->count >= 32;
  if (p->n <= lanes)
    vectors = 1;
  else if (p->m <= 2 && p->n > 2 * lanes)
    vectors = MAX_TILE_VECTORS;
  g->columns = vectors * lanes;
  g->rows = vectors > 2 ? 2 : many ? 14 : 6;
  if (vectors == 1) g->rows = !many ? 12 : p->transpose_a ? 24 : 16;
  if (g->at.patches || strip <= FEW * g->rows) g->rows = even(strip, g->rows);
}

/* Whether tiles read columns of A in memory: a line of it has those that the tiles below read. */
static bool columns_lie(const struct gemm *g) { return g->size.transpose_a && !g->packs_a && !g->at.patches; }

/* Bytes between rows of a block that waits. */
static int64_t waiting_step(const struct gemm *g) { return g->wide * g->bytes + CACHE_LINE; }

/* How many tiles may read B downwards where it lies. */
static int64_t rows_unpacked(const struct gemm *g, bool few) {
  int64_t row = g->at.b_row * g->bytes;
  if (!few || row % (SAME_PLACE / 2) != 0) return SEVERAL_ROWS;
  return row % SAME_PLACE == 0 ? CROWDED_ROWS : HALF_CROWDED_ROWS;
}

/* B must be packed where it lies transposed. Elsewhere, where registers are many, a tile takes long and the rows of B
 * are short, the one before has time to ask for it. */
static void choose_panels(struct gemm *g, bool few, bool once) {
  const struct product *p = &g->size;
  bool asked = !few && !g->at.patches && p->k >= PART && g->at.b_row * g->bytes < PAGE;
  bool many = once ? p->m > g->rows : !asked && p->m > rows_unpacked(g, few) * g->rows;
  g->packs_b = p->transpose_b || (many && p->n > g->columns);
  bool crowded = p->k * g->bytes % SAME_PLACE == 0 && p->m >= g->rows;
  g->packs_a = !g->at.patches && (p->transpose_a || crowded) && p->n > SEVERAL_COLUMNS * g->columns;
  g->a_row = few ? g->rows * g->bytes : round_up(g->rows * g->bytes, CACHE_LINE / 2);
  g->a_apart =
      g->packs_a ? PRODUCT_PIECE * g->a_row + CACHE_LINE : g->rows * g->bytes * (p->transpose_a ? 1 : p->k);
  g->b_apart = g->packs_b ? PRODUCT_PIECE * g->columns * g->bytes + CACHE_LINE : g->columns * g->bytes;
  g->wide = least(WIDE / g->bytes / g->columns * g->columns, round_up(p->n, g->columns));
  g->high = blocks_of(p->m, g->rows);
  if (g->levels) {
    int64_t most = few ? WAITING_BYTES / (g->levels * g->rows * waiting_step(g)) : 0;
    g->high = even(g->high, greatest(most, WAITING_TILES));
  }
  g->deep = (few ? FEW_TILES : TILES) * g->rows;
  g->asks = !g->at.patches && p->k >= PART / 2;
  g->part = few && !g->at.patches && !columns_lie(g) ? PRODUCT_PIECE : PART;
  if (p->transpose_b && p->m <= FEW_ROWS * g->rows && !g->packs_a) g->wide = g->columns;
  if (p->transpose_b && p->m <= g->rows) g->part = SHORT_PART;
  if (g->turned) g->wide = round_up(p->n, g->columns), g->high = even(g->high, WAITING_TILES);
}

static void choose_patches(struct gemm *g) {
  bool turned = g->size.transpose_a;
  int64_t most = turned || g->levels ? WAITING_TILES * g->rows : MOST_PIXELS;
  g->patches = patch_tiles_of(g->at.patches, turned, g->rows, most, PRODUCT_PIECE);
  g->a_row = g->patches.block.pixel;
  if (turned && PRODUCT_PIECE * g->at.b_row * g->bytes <= SMALL) g->part = PRODUCT_PIECE;
  g->a_apart = g->rows * (turned ? g->bytes : g->a_row);
  g->high = g->patches.high;
}

/* The product's transpose is computed. */
static void swap(struct gemm *g) {
  struct product *p = &g->size;
  bool transposed = p->transpose_a;
  int64_t rows = p->n;
  g->swapped = true;
  p->n = p->m, p->m = rows;
  p->transpose_a = !p->transpose_b && rows > 1;
  p->transpose_b = !transposed;
}

/* Whether a large B that lies transposed is better read by rows, as A is elsewhere, and the few rows of A as columns,
 * which fill vectors: then A and C are transposed instead of it. */
static bool pays_to_turn(const struct product *p, int64_t lanes) {
  enum { MOST_ROWS = 140 };
  bool crowded = p->k * dtype_size(p->dtype) % SAME_PLACE == 0,
       filled = 4 * round_up(p->m, lanes) <= 5 * p->m;
  return p->transpose_b && p->k > 0 && !crowded && filled && p->m <= MOST_ROWS &&
         3 * p->m * (p->k + p->n) < 2 * p->n * p->k;
}

const struct gemm *gemm_create(struct cpu_jit *jit, struct arena *a, const struct product *size,
                               const struct gemm_layout *layout, bool once) {
  struct vector_registers v = host_vectors();
  struct gemm *g = arena_new(a, struct gemm);
  *g = (struct gemm){.size = *size, .bytes = dtype_size(size->dtype)};
  bool few = v.count < 32; /* where there are more, tiles of a column were measured to be fast */
  if (few && !layout && size->n == 1 && size->m > 1 && (size->transpose_a || size->dtype == DT_F32))
    swap(g);
  else if (!layout && !once && pays_to_turn(size, v.bytes / g->bytes))
    swap(g), g->turned = true;
  g->at = layout ? *layout
                 : (struct gemm_layout){.b_row = g->size.n,
                                        .b_batch = g->size.k * g->size.n,
                                        .c_row = g->size.n,
                                        .c_batch = g->size.m * g->size.n};
  g->pieces = blocks_of(size->k, PRODUCT_PIECE);
  for (int64_t n = g->pieces; n >= 4; n /= 2) g->levels++;
  if (few && !g->at.patches && g->size.dtype == DT_F32 && g->size.m == 1 && g->size.transpose_b) {
    g->dots = true, g->rows = 1, g->columns = DOTS_ROWS;
    return g;
  }
  choose_tiles(g, &v);
  choose_panels(g, few, once);
  if (g->at.patches) choose_patches(g);
  for (int i = 0; i < 4 && size->k > 0; i++)
    g->tile[i & 1][i >> 1] = make_tile(g, jit, v.bytes / (int)g->bytes, i & 1, i & 2);
  return g;
}

void gemm_units(const struct gemm *g, int64_t *down, int64_t *along) {
  *down = g->at.patches ? patch_units(&g->patches) : blocks_of(g->size.m, g->rows);
  *along = blocks_of(g->size.n, g->columns);
}

/* ---- running ---- */

/* What of the image is copied next, and how many bytes of it each tile asks for. */
struct ahead {
  const char *at, *end;
  int64_t each;
};

/* Rows [top, bottom) and columns [left, right) of C, and what a thread works with. */
struct area {
  const struct gemm *g;
  const char *a, *b;
  char *c;
  int64_t top, bottom, left, right;
  int64_t first, count, group; /* pieces; the patches' group */
  const char *packed;          /* all of B; NULL: it is packed into panels_b */
  char *panels_a, *panels_b, *waiting;
  struct strip strips[MOST_STRIPS]; /* where A is made of patches */
  int nstrips;
  struct ahead *ahead;
};

/* Where a sum lies: C or a block that waits. */
struct sums {
  char *at;
  int64_t step; /* bytes between rows */
};

static int64_t waiting_rows(const struct gemm *g) {
  return g->high * (g->at.patches ? g->patches.unit : g->rows);
}

static struct sums level(const struct area *s, int64_t number) {
  const struct gemm *g = s->g;
  int64_t blocks = number - !g->turned; /* before this one */
  if (blocks < 0)
    return (struct sums){s->c + (s->top * g->at.c_row + s->left) * g->bytes, g->at.c_row * g->bytes};
  int64_t step = waiting_step(g);
  return (struct sums){s->waiting + blocks * waiting_rows(g) * step, step};
}

#define ADD(T)                                                           \
  for (int64_t i = 0; i < s->bottom - s->top; i++) {                     \
    T *x = (T *)(void *)(to.at + i * to.step);                           \
    const T *y = (const T *)(const void *)(from.at + i * from.step);     \
    for (int64_t j = 0; j < s->right - s->left; j++) x[j] = x[j] + y[j]; \
  }

/* Level `number` takes in the one above it. */
static void join(const struct area *s, int64_t number) {
  struct sums to = level(s, number), from = level(s, number + 1);
  if (s->g->size.dtype == DT_F32)
    ADD(float)
  else
    ADD(double)
}

static const char *a_at(const struct gemm *g, const char *a, int64_t row, int64_t k) {
  return a + (g->size.transpose_a ? k * g->size.m + row : row * g->size.k + k) * g->bytes;
}

static const char *b_at(const struct gemm *g, const char *b, int64_t k, int64_t column) {
  return b + (g->size.transpose_b ? column * g->size.k + k : k * g->at.b_row + column) * g->bytes;
}

/* Rows of B that the next tiles read where it lies: the memory may be far, and the first of them would wait for each
 * row. Each tile of those before asks for a part. */
static void ask_for(const struct gemm *g, const char *b, int64_t depth, int64_t tile, int64_t tiles,
                    int64_t bytes) {
  for (int64_t k = depth * tile / tiles, end = depth * (tile + 1) / tiles; k < end; k++)
    for (int64_t line = 0; line < bytes; line += CACHE_LINE)
      __builtin_prefetch(b + k * g->at.b_row * g->bytes + line, 0, 2);
}

/* The tiles until then, `times` times those of the strips, ask for what lines [first, end) of pixels meet. */
static void look_ahead(const struct area *s, int64_t first, int64_t end, int64_t times) {
  const struct patches *p = s->g->at.patches;
  int64_t tiles = 0, begin = patches_reached(p, first), stop = patches_reached(p, end);
  for (int i = 0; i < s->nstrips; i++)
    tiles += times * blocks_of(s->strips[i].bottom - s->strips[i].top, s->g->rows);
  tiles *= blocks_of(s->right - s->left, s->g->columns);
  *s->ahead = (struct ahead){s->a + begin, s->a + stop, round_up(blocks_of(stop - begin, tiles), CACHE_LINE)};
}

static void ask_ahead(struct ahead *a) {
  const char *stop = a->end - a->at > a->each ? a->at + a->each : a->end;
  for (; a->at < stop; a->at += CACHE_LINE) __builtin_prefetch(a->at, 0, 2);
}

/* All tiles of some strips, whose B begins at `b`. */
static void run_tiles(const struct area *s, struct sums to, const struct strip *strips, int nstrips,
                      const char *b, const struct tile_call *call) {
  const struct gemm *g = s->g;
  struct tile_run runs[PRODUCT_PIECE];
  struct tile_call some = *call;
  int64_t depth = 0, tiles = 0;
  bool asks = !g->packs_b && s->left + g->columns < s->right;
  for (int64_t i = 0; asks && i < call->nruns; i++) depth += call->runs[i].count;
  for (int i = 0; asks && i < nstrips; i++) tiles += blocks_of(strips[i].bottom - strips[i].top, g->rows);
  for (int64_t j = s->left; j < s->right; j += g->columns, b += g->b_apart) {
    bool last_columns = j + g->columns > g->size.n, ask = asks && j + g->columns < s->right;
    int64_t tile = 0;
    for (const struct strip *strip = strips; strip < strips + nstrips; strip++) {
      const char *a = strip->a;
      bool all = strip->meets == ALL_LINES;
      some.runs = all ? call->runs : runs;
      some.nruns = all ? call->nruns : patch_runs_met(strip, call->runs, call->nruns, runs);
      for (int64_t i = strip->top; i < strip->bottom; i += g->rows, a += g->a_apart) {
        if (ask) ask_for(g, b + g->b_apart, depth, tile++, tiles, g->columns * g->bytes);
        ask_ahead(s->ahead);
        some.a = a, some.b = b;
        some.c = to.at + (i - s->top) * to.step + (j - s->left) * g->bytes;
        some.c_ahead = (char *)some.c + g->rows * to.step;
        g->tile[i + g->rows > strip->bottom][last_columns]->fn(&some);
      }
    }
  }
}

/* Rows [top, bottom) of A, of k from `k` on, as tiles read them. */
static const char *find_a(const struct area *s, int64_t k, int64_t depth, int64_t top, int64_t bottom) {
  const struct gemm *g = s->g;
  const char *a = a_at(g, s->a, top, k);
  if (!g->packs_a) return a;
  struct panels panels = {depth, bottom - top, g->rows, g->a_apart, g->a_row};
  bool turned = !g->size.transpose_a;
  pack_panels(&panels, (int)g->bytes, turned, a, turned ? g->size.k : g->size.m, s->panels_a);
  return s->panels_a;
}

/* A part of k where operands are dense. Each run asks for a row of C, or several runs for the same: of all at once so
 * many would be on their way that what is to be multiplied had to wait. */
static int64_t dense_runs(const struct gemm *g, const struct tile_call *call, int64_t depth, int64_t c_step,
                          struct tile_run *runs) {
  int64_t most = depth;
  if (g->asks) most = greatest(depth / g->rows / TILE_ROUNDS, 1) * TILE_ROUNDS;
  int64_t n = blocks_of(depth, most);
  int64_t a = g->packs_a || g->size.transpose_a ? call->a_step : g->bytes;
  for (int64_t i = 0; i < n; i++)
    runs[i] = (struct tile_run){.a = i * most * a,
                                .b = i * most * call->b_step,
                                .count = least(most, depth - i * most),
                                .c = i * g->rows / n * c_step};
  return n;
}

/* ---- B packed at once: pieces one behind the other ---- */

static int64_t panels_across(const struct gemm *g) { return blocks_of(g->size.n, g->columns); }

static char *packed_at(const struct gemm *g, const char *packed, int64_t k, int64_t column) {
  int64_t panel = k / PRODUCT_PIECE * panels_across(g) + column / g->columns;
  return (char *)packed + panel * g->b_apart + k % PRODUCT_PIECE * g->columns * g->bytes;
}

static void pack_b(const struct gemm *g, const char *b, int64_t k, int64_t depth, int64_t left, int64_t right,
                   char *to) {
  struct panels panels = {depth, right - left, g->columns, g->b_apart, g->columns * g->bytes};
  bool transposed = g->size.transpose_b;
  pack_panels(&panels, (int)g->bytes, transposed, b_at(g, b, k, left), transposed ? g->size.k : g->at.b_row,
              to);
}

size_t gemm_packed_size(const struct gemm *g) {
  if (!g->packs_b || g->swapped || g->at.patches || g->dots) return 0;
  return (size_t)(g->pieces * panels_across(g) * g->b_apart);
}

int64_t gemm_pack_units(const struct gemm *g) { return g->pieces * panels_across(g); }

void gemm_pack(const struct gemm *g, int64_t batch, int64_t first, int64_t end, const void *b, void *packed) {
  const struct product *p = &g->size;
  const char *from = (const char *)b + batch * g->at.b_batch * g->bytes;
  int64_t across = panels_across(g);
  for (int64_t u = first, panels; u < end; u += panels) {
    int64_t k = u / across * PRODUCT_PIECE, left = u % across * g->columns;
    panels = least(end - u, across - u % across);
    pack_b(g, from, k, least(PRODUCT_PIECE, p->k - k), left, least(left + panels * g->columns, p->n),
           packed_at(g, packed, k, left));
  }
}

/* Columns [left, right) of B as tiles read them. */
static const char *find_b(const struct area *s, int64_t k, int64_t depth) {
  const struct gemm *g = s->g;
  if (!g->packs_b) return b_at(g, s->b, k, s->left);
  if (s->packed) return packed_at(g, s->packed, k, s->left);
  pack_b(g, s->b, k, depth, s->left, s->right, s->panels_b);
  return s->panels_b;
}

/* A part of a piece, which takes up the sums where the part before has left them in `to`. */
static void run_part(const struct area *s, int64_t k, int64_t depth, struct sums to, bool goes_on, bool add) {
  const struct gemm *g = s->g;
  const struct product *p = &g->size;
  int64_t a_step = g->packs_a || g->at.patches ? g->a_row : (p->transpose_a ? p->m : p->k) * g->bytes;
  struct tile_run runs[PRODUCT_PIECE];
  struct tile_call call = {.runs = runs,
                           .a_step = a_step,
                           .b_step = (g->packs_b ? g->columns : g->at.b_row) * g->bytes,
                           .c_step = to.step,
                           .goes_on = goes_on,
                           .add = add};
  /* Of columns a round asks for the line that the tile below needs at the same k. */
  call.a_ahead = columns_lie(g) ? 2 * g->rows * g->bytes - 1 : AHEAD * a_step,
  call.b_ahead = AHEAD * call.b_step;
  const char *b = find_b(s, k, depth);
  if (g->at.patches) {
    call.nruns = patch_runs(&g->patches, s->group, k, depth, s->a, s->panels_a, runs);
    for (int64_t i = 0, at = 0; i < call.nruns; at += runs[i++].count) runs[i].b = at * call.b_step;
    if (p->transpose_a) {
      int64_t line = g->at.patches->axis[2].pixels, end = k + depth;
      look_ahead(s, end / line, least(end + depth, p->k) / line, 1);
    }
    run_tiles(s, to, s->strips, s->nstrips, b, &call);
    return;
  }
  call.nruns = dense_runs(g, &call, depth, to.step, runs);
  for (int64_t i = s->top; i < s->bottom; i += g->deep) {
    int64_t end = least(i + g->deep, s->bottom);
    struct strip strip = {find_a(s, k, depth, i, end), i, end, ALL_LINES};
    run_tiles(s, to, &strip, 1, b, &call);
  }
}

/* A piece that is added to what is there is one part: its sum must be whole before. */
static void run_piece(const struct area *s, int64_t piece, struct sums to, bool add) {
  int64_t begin = (s->first + piece) * PRODUCT_PIECE, end = least(begin + PRODUCT_PIECE, s->g->size.k);
  int64_t depth = add ? end - begin : s->g->part;
  for (int64_t k = begin; k < end; k += depth) run_part(s, k, least(depth, end - k), to, k > begin, add);
}

/* Pieces in their order, as piece_sums.h has it, but that tiles add the second of two pieces to the first, and the last
 * one to whatever waits above, in registers; and the first sum lies in C, if C is not turned. */
static void run_area(const struct area *s) {
  int64_t count = s->count, waiting = 0;
  for (int64_t i = 0; i < count; i++) {
    bool add = (i & 1) || (i == count - 1 && waiting > 0);
    if (!add) waiting++;
    run_piece(s, i, level(s, waiting - 1), add);
    if (i & 1)
      for (int64_t ones = i >> 1; ones & 1; ones >>= 1) join(s, --waiting - 1);
  }
  while (waiting > 1) join(s, --waiting - 1);
}

/* Bytes of the panels of B and of A, and of the sums that wait. */
struct room {
  size_t b, a, waiting;
};

static struct room room_of(const struct gemm *g) {
  struct room r = {0};
  int64_t across = blocks_of(least(g->wide, g->size.n), g->columns);
  if (g->packs_b) r.b = (size_t)(across * g->b_apart);
  if (g->packs_a) r.a = (size_t)(g->deep / g->rows * g->a_apart);
  if (g->at.patches) r.a = g->patches.room;
  r.waiting = (size_t)((g->levels + g->turned) * waiting_rows(g) * waiting_step(g));
  return r;
}

static void clear(const struct gemm *g, char *c, int64_t top, int64_t bottom, int64_t left, int64_t right) {
  for (int64_t i = top; i < bottom; i++)
    memset(c + (i * g->at.c_row + left) * g->bytes, 0, (size_t)((right - left) * g->bytes));
}

/* The first row of a unit, or the end. */
static int64_t row_of(const struct gemm *g, int64_t unit) {
  return g->at.patches ? patch_row(&g->patches, unit) : least(unit * g->rows, g->size.m);
}

/* Some columns at a time. */
static void run_dots(const struct area *s, int64_t left, int64_t right) {
  enum { LEVELS = 64 };
  const float *a = (const float *)(const void *)s->a, *b = (const float *)(const void *)s->b;
  float at[LEVELS * DOTS_ROWS];
  int64_t k = s->g->size.k;
  for (int64_t j = left; j < right; j += DOTS_ROWS) {
    int64_t columns = least(DOTS_ROWS, right - j);
    struct piece_sums sums = {.at = at, .count = columns, .size = sizeof *at};
    for (int64_t i = s->first; i < s->first + s->count; i++) {
      int64_t begin = i * PRODUCT_PIECE, depth = least(PRODUCT_PIECE, k - begin);
      dots_f32(b + j * k + begin, k, columns, a + begin, depth, piece_sums_next(&sums));
    }
    piece_sums_end(&sums);
    memcpy(s->c + j * s->g->bytes, at, (size_t)columns * sizeof *at);
  }
}

/* C, of its transpose. */
static void turn(const struct area *s) {
  const struct gemm *g = s->g;
  struct sums from = level(s, 0);
  int64_t rows = s->right - s->left, columns = s->bottom - s->top, row = g->size.m * g->bytes;
  struct panels panels = {.rows = rows, .columns = columns, .width = columns, .row_step = row};
  pack_panels(&panels, (int)g->bytes, true, from.at, from.step / g->bytes,
              s->c + s->left * row + s->top * g->bytes);
}

/* Units [first, end), behind which others come until `last`. */
static void run_units(struct area *s, int64_t first, int64_t end, int64_t last) {
  const struct gemm *g = s->g;
  s->top = row_of(g, first), s->bottom = row_of(g, end);
  if (g->at.patches)
    s->nstrips = patch_strips(&g->patches, s->group, first, end, s->a, s->panels_a, s->strips);
  if (g->at.patches && !g->size.transpose_a)
    look_ahead(s, end / g->patches.cuts, least(end + (end - first), last) / g->patches.cuts,
               blocks_of(least(s->count * PRODUCT_PIECE, g->size.k), g->part));
  run_area(s);
  if (g->turned) turn(s);
}

void gemm_run(const struct gemm *g, const struct gemm_block *block, const void *a, const void *b, void *c) {
  const struct product *p = &g->size;
  int64_t left = block->left * g->columns, right = least(block->right * g->columns, p->n);
  const char *first = g->swapped ? b : a, *second = g->swapped ? a : b;
  struct ahead ahead = {0};
  struct area s = {.g = g,
                   .ahead = &ahead,
                   .a = first + (g->at.patches ? 0 : block->batch * p->m * p->k * g->bytes),
                   .b = second + block->batch * g->at.b_batch * g->bytes,
                   .c = (char *)c + block->batch * g->at.c_batch * g->bytes,
                   .first = block->first,
                   .count = block->count ? block->count : g->pieces,
                   .group = block->batch,
                   .packed = block->packed};
  if (p->k == 0) {
    clear(g, s.c, row_of(g, block->top), row_of(g, block->bottom), left, right);
    return;
  }
  if (g->dots) {
    if (block->top < block->bottom) run_dots(&s, left, right);
    return;
  }
  struct room room = room_of(g);
  s.panels_b = cpu_scratch(room.b + room.a + room.waiting);
  s.panels_a = s.panels_b + room.b, s.waiting = s.panels_a + room.a;
  for (; left < right; left += g->wide)
    for (int64_t unit = block->top; unit < block->bottom; unit += g->high) {
      s.left = left, s.right = least(left + g->wide, right);
      run_units(&s, unit, least(unit + g->high, block->bottom), block->bottom);
    }
}
