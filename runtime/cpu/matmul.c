/* SPDX-License-Identifier: Apache-2.0 */
/* The leaf matmul, in pieces: floats by generated code (gemm.c); bfloat16 values by AMX (matmul_amx.c), or by other
 * units of the processor that oneDNN knows (matmul_units.c); integers, and floats on a processor that does not multiply
 * and add in one instruction, by kernels/cpu/matmul.c. Of all but oneDNN's an element has the same bits however C is
 * cut. */
#include "runtime/cpu/matmul.h"

#include "base/arena.h"
#include "base/integer.h"
#include "base/line.h"
#include "kernels/cpu/bf16.h"
#include "kernels/cpu/matmul.h"
#include "runtime/cpu/foreign.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/leaf.h"
#include "runtime/cpu/matmul_amx.h"
#include "runtime/cpu/matmul_units.h"
#include "runtime/cpu/onednn.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BLOCKS = 16, NARROW = 64 };

/* Nanoseconds at 100 GFLOP/s, which narrow products do not reach. */
static int64_t cost_of(const struct product *p) {
  double m = (double)(p->m < NARROW ? NARROW : p->m), n = (double)(p->n < NARROW ? NARROW : p->n);
  return (int64_t)(0.02 * (double)p->batch * m * n * (double)p->k);
}

/* ---- an element is one sum, whoever computes it ---- */

struct own_pieces {
  struct product size;
  const struct gemm *gemm; /* NULL: by kernels/cpu/matmul.c */
  struct pieces pieces;
  int64_t batch, down, along; /* what all can be cut to, */
  int64_t rows, columns;      /* and cuts of each product */
  struct cpu_room *shared;    /* in which several threads pack B for all of them; NULL: each for itself */
  char *kept;     /* in which B is packed before a loop, where it is the same in all turns; or NULL */
  size_t packed;  /* bytes of one product's */
  float *wide[2]; /* operands that lie as bfloat16, widened before; NULL: none */
  int64_t counts[2];
};

static void widen(const struct own_pieces *p, void *const *args, int first, int end) {
  for (int i = 0; i < 2; i++) {
    int64_t from = piece_begin(p->counts[i], p->pieces.count[0], first),
            to = piece_begin(p->counts[i], p->pieces.count[0], end);
    bf16_unpack((const uint16_t *)args[i] + from, p->wide[i] + from, to - from);
  }
}

void matmul_rows(const struct product *p, int64_t batch, int64_t top, int64_t bottom, const void *a,
                 const void *b, void *c) {
  int64_t size = dtype_size(p->dtype), a_row = p->transpose_a ? 1 : p->k, a_col = p->transpose_a ? p->m : 1,
          b_row = p->transpose_b ? 1 : p->n, b_col = p->transpose_b ? p->k : 1, m = bottom - top;
  const void *from = (const char *)a + (batch * p->m * p->k + top * a_row) * size,
             *with = (const char *)b + batch * p->k * p->n * size;
  void *to = (char *)c + (batch * p->m + top) * p->n * size;
  switch (p->dtype) {
  case DT_F32: matmul_f32(m, p->n, p->k, from, a_row, a_col, with, b_row, b_col, to, p->n); break;
  case DT_F64: matmul_f64(m, p->n, p->k, from, a_row, a_col, with, b_row, b_col, to, p->n); break;
  case DT_I64: matmul_u64(m, p->n, p->k, from, a_row, a_col, with, b_row, b_col, to, p->n); break;
  case DT_I32: matmul_u32(m, p->n, p->k, from, a_row, a_col, with, b_row, b_col, to, p->n); break;
  case DT_U8: matmul_u8(m, p->n, p->k, from, a_row, a_col, with, b_row, b_col, to, p->n); break;
  case DT_BOOL:
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
}

/* Of the blocks [u, end), which go along rows of blocks, those that are one larger one: whole rows, or a part of a row.
 * How many they are. */
static int64_t find_larger(const struct own_pieces *p, int64_t u, int64_t end, struct gemm_block *block) {
  int64_t each = p->rows * p->columns, row = u % each / p->columns, column = u % p->columns, left = end - u;
  int64_t rows = column == 0 ? left / p->columns : 0, columns = p->columns;
  if (rows > p->rows - row) rows = p->rows - row;
  if (rows == 0) rows = 1, columns = left < p->columns - column ? left : p->columns - column;
  *block = (struct gemm_block){.batch = u / each,
                               .top = piece_begin(p->down, (int)p->rows, (int)row),
                               .bottom = piece_begin(p->down, (int)p->rows, (int)(row + rows)),
                               .left = piece_begin(p->along, (int)p->columns, (int)column),
                               .right = piece_begin(p->along, (int)p->columns, (int)(column + columns))};
  return rows * columns;
}

static void pack_shared(const struct own_pieces *p, const void *b, int first, int end) {
  int64_t each = gemm_pack_units(p->gemm), all = p->batch * each, units;
  int count = p->pieces.count[0];
  for (int64_t u = piece_begin(all, count, first), stop = piece_begin(all, count, end); u < stop;
       u += units) {
    int64_t batch = u / each, from = u % each;
    units = least(stop - u, each - from);
    gemm_pack(p->gemm, batch, from, from + units, b, p->shared->data + (size_t)batch * p->packed);
  }
}

static void pack_kept(void *const *args, const void *state) {
  const struct own_pieces *p = state;
  for (int64_t i = 0; i < p->batch; i++)
    gemm_pack(p->gemm, i, 0, gemm_pack_units(p->gemm), args[1], p->kept + (size_t)i * p->packed);
}

static void run_own(void *const *args, const void *state, int stage, int first, int end) {
  const struct own_pieces *p = state;
  int64_t blocks = p->batch * p->rows * p->columns;
  int count = p->pieces.count[stage];
  bool alone = first == 0 && end == count; /* a thread that is alone packs what it needs next */
  if (p->wide[0] && stage == 0) {
    widen(p, args, first, end);
    return;
  }
  if (p->shared && stage == 0) {
    if (!alone) pack_shared(p, args[1], first, end);
    return;
  }
  const void *a = p->wide[0] ? (const void *)p->wide[0] : args[0];
  const void *b = p->wide[1] ? (const void *)p->wide[1] : args[1];
  const char *packed = p->shared && !alone ? p->shared->data : p->kept;
  struct gemm_block block;
  for (int64_t u = piece_begin(blocks, count, first), stop = piece_begin(blocks, count, end); u < stop;) {
    u += find_larger(p, u, stop, &block);
    if (packed) block.packed = packed + (size_t)block.batch * p->packed;
    if (p->gemm)
      gemm_run(p->gemm, &block, a, b, args[2]);
    else
      matmul_rows(&p->size, block.batch, block.top, block.bottom, a, b, args[2]); /* columns are not cut */
  }
}

/* Whether a product is better cut into so many parts along its columns: what all of them read, A, need not be packed
 * again for each, and each packs its own part of B. */
static bool cuts_columns(const struct own_pieces *p, int64_t count) {
  return !p->size.transpose_a && p->along >= count;
}

/* Where rows are cut, each thread would pack all of B: stage 0 packs it for all, if B is so large that a stage more
 * pays. In two pieces at least, as a thread that takes all of them is alone. */
static void share_packed(struct cpu *cpu, struct own_pieces *p, int64_t count) {
  /* Of B to a unit of cost: with fewer to pack a stage costs more than it spares. More bytes than a last cache
   * keeps until they are read would come from memory again. */
  enum { NUMBERS = 16, MOST_BYTES = 8 << 20 };
  const struct product *s = &p->size;
  int64_t numbers = s->batch * s->k * s->n, each = blocks_of(count, p->batch);
  if (!p->packed || p->kept || (size_t)p->batch * p->packed > MOST_BYTES || each < 2 ||
      cuts_columns(p, each) || p->down < each)
    return;
  int pieces = pieces_for(numbers / NUMBERS, p->batch * gemm_pack_units(p->gemm));
  if (pieces < 2) return;
  p->shared = cpu_room(cpu, (size_t)p->batch * p->packed);
  p->pieces.count[0] = pieces;
}

/* As many blocks as pieces, where a batch is not enough. Without a way to cut that needs nothing packed twice, the
 * longer side is halved. */
static void cut_own(struct own_pieces *p, int64_t count) {
  const struct product *s = &p->size;
  int64_t each = blocks_of(count, p->batch);
  p->rows = p->columns = 1;
  if (p->shared)
    p->rows = each;
  else if (cuts_columns(p, each))
    p->columns = each;
  while (p->batch * p->rows * p->columns < count) {
    bool down = s->m / p->rows >= s->n / p->columns;
    if (down ? 2 * p->rows > p->down : 2 * p->columns > p->along) down = !down;
    if (down ? 2 * p->rows > p->down : 2 * p->columns > p->along) return;
    if (down)
      p->rows *= 2;
    else
      p->columns *= 2;
  }
}

static void prepare_own(struct cpu *cpu, struct arena *a, const struct product *size, bool still,
                        struct command *c) {
  struct own_pieces *p = arena_new(a, struct own_pieces);
  *p = (struct own_pieces){.size = *size, .batch = size->batch, .down = size->m, .along = size->n > 0};
  if (dtype_is_float(size->dtype) && gemm_can()) {
    p->gemm = gemm_create(cpu->jit, a, size, NULL, still);
    p->packed = size->stored ? 0 : gemm_packed_size(p->gemm);
    gemm_units(p->gemm, &p->down, &p->along);
  }
  if (still && p->packed) p->kept = line_from(arena_alloc(a, (size_t)p->batch * p->packed + CACHE_LINE));
  int64_t cost = cost_of(size);
  int count = pieces_for(cost, size->batch * p->down * p->along);
  int64_t most = least(count, MOST_BLOCKS);
  if (count > 1) share_packed(cpu, p, most);
  if (count > 1) cut_own(p, most);
  if (count == 1) p->rows = p->columns = 1;
  int64_t blocks = size->batch * p->rows * p->columns;
  int pieces = blocks < count ? blocks < 1 ? 1 : (int)blocks : count;
  p->pieces = (struct pieces){.run = run_own,
                              .state = p,
                              .nstages = size->stored || p->shared ? 2 : 1,
                              .count = {p->shared ? p->pieces.count[0] : pieces, pieces},
                              .cost = cost,
                              .enter = p->kept ? pack_kept : NULL};
  p->counts[0] = size->batch * size->m * size->k, p->counts[1] = size->batch * size->k * size->n;
  for (int i = 0; i < 2 && size->stored; i++)
    p->wide[i] = arena_new_array(a, (size_t)p->counts[i] + 1, float);
  c->kind = COMMAND_PIECES;
  c->pieces = &p->pieces;
}

/* ---- by units for bfloat16 that a library knows ---- */

/* The order of an element's sum may be another one in a product of other sizes. So blocks, of rows of C, follow from
 * the sizes of the product alone, and are what is computed on one thread, too. Stage 0 makes operands bfloat16, and
 * puts the columns of A that are a block's rows side by side. */
enum { LEAST_ROWS = 256, EVEN_ROWS = 16, WORDS_AT_ONCE = 1 << 14 };

struct unit_pieces {
  struct product size;
  struct pieces pieces;
  int64_t high, rows;  /* rows of a block but the last; blocks of one product */
  uint16_t *packed[2]; /* NULL: as it lies */
  struct matmul_units *
      units[][2]; /* by piece: of a block, of a last one that is smaller; the first owns what others borrow */
};

static int64_t height_of(const struct unit_pieces *p, int64_t block) {
  return block < p->rows - 1 ? p->high : p->size.m - block * p->high;
}

static void to_bf16(const struct product *s, const void *from, int64_t at, uint16_t *to, int64_t count) {
  if (s->stored)
    memcpy(to, (const uint16_t *)from + at, (size_t)count * sizeof *to);
  else
    bf16_pack((const float *)from + at, to, count);
}

/* Rows of A as it lies, k of each product, which are columns of blocks. */
static void pack_blocks(const struct unit_pieces *p, const void *a, int64_t first, int64_t end) {
  const struct product *s = &p->size;
  for (int64_t r = first; r < end; r++)
    for (int64_t block = 0; block < p->rows; block++) {
      int64_t top = block * p->high, high = height_of(p, block);
      to_bf16(s, a, r * s->m + top, p->packed[0] + r / s->k * s->k * s->m + top * s->k + r % s->k * high,
              high);
    }
}

static void pack_operands(const struct unit_pieces *p, void *const *args, int first, int end) {
  const struct product *s = &p->size;
  int count = p->pieces.count[0];
  int64_t counts[] = {s->batch * s->m * s->k, s->batch * s->k * s->n};
  bool by_blocks = s->transpose_a && p->rows > 1;
  if (by_blocks)
    pack_blocks(p, args[0], piece_begin(s->batch * s->k, count, first),
                piece_begin(s->batch * s->k, count, end));
  for (int i = by_blocks; i < 2; i++) {
    int64_t from = piece_begin(counts[i], count, first), to = piece_begin(counts[i], count, end);
    if (p->packed[i]) to_bf16(s, args[i], from, p->packed[i] + from, to - from);
  }
}

static bool run_block(const struct unit_pieces *p, void *const *args, int piece, int64_t batch,
                      int64_t block) {
  const struct product *s = &p->size;
  const uint16_t *a = p->packed[0] ? p->packed[0] : args[0], *b = p->packed[1] ? p->packed[1] : args[1];
  int64_t top = block * p->high;
  bool smaller = height_of(p, block) < p->high;
  return matmul_units_run(p->units[piece][smaller], a + (batch * s->m + top) * s->k, b + batch * s->k * s->n,
                          (float *)args[2] + (batch * s->m + top) * s->n);
}

/* The library refuses for want of memory only. */
static void run_units(void *const *args, const void *state, int stage, int first, int end) {
  const struct unit_pieces *p = state;
  int64_t blocks = p->size.batch * p->rows;
  int count = p->pieces.count[1];
  bool done = true;
  if (stage == 0) {
    pack_operands(p, args, first, end);
    return;
  }
  foreign_enter();
  for (int i = first; i < end; i++)
    for (int64_t u = piece_begin(blocks, count, i); done && u < piece_begin(blocks, count, i + 1); u++)
      done = run_block(p, args, i, u / p->rows, u % p->rows);
  foreign_leave();
  if (!done) arena_exhausted();
}

static void unit_pieces_destroy(void *pieces) {
  struct unit_pieces *p = pieces;
  for (int i = p->pieces.count[1] - 1; i >= 0; i--)
    for (int smaller = 0; smaller < 2; smaller++) matmul_units_destroy(p->units[i][smaller]);
  for (int i = 0; i < 2; i++) free(p->packed[i]);
  free(p);
}

/* Blocks of about equal size. */
static void cut_units(struct unit_pieces *p) {
  const struct product *s = &p->size;
  int64_t count = s->m / LEAST_ROWS, most = blocks_of(MOST_BLOCKS, s->batch);
  if (count > most) count = most;
  if (count < 1) count = 1;
  p->high = round_up(blocks_of(s->m, count), EVEN_ROWS);
  if (p->high > s->m) p->high = s->m;
  p->rows = blocks_of(s->m, p->high);
}

static bool make_packed(struct unit_pieces *p) {
  const struct product *s = &p->size;
  bool wanted[] = {!s->stored || (s->transpose_a && p->rows > 1), !s->stored};
  int64_t counts[] = {s->batch * s->m * s->k, s->batch * s->k * s->n};
  for (int i = 0; i < 2; i++) {
    if (wanted[i]) p->packed[i] = malloc((size_t)counts[i] * sizeof *p->packed[i]);
    if (wanted[i] && !p->packed[i]) return false;
  }
  return true;
}

/* False if there is no memory. `*taken`: whether the units have a way for all blocks. */
static bool make_units(struct unit_pieces *p, bool *taken) {
  struct product one = p->size;
  for (int smaller = 0; smaller < 2; smaller++) {
    one.m = smaller ? height_of(p, p->rows - 1) : p->high;
    if (smaller && one.m == p->high) break;
    if (!matmul_units_create(&one, &p->units[0][smaller])) return false;
    *taken = p->units[0][smaller] != NULL;
    if (!*taken) return true;
    for (int i = 1; i < p->pieces.count[1]; i++) {
      p->units[i][smaller] = matmul_units_again(p->units[0][smaller]);
      if (!p->units[i][smaller]) return false;
    }
  }
  return true;
}

/* `*made`: NULL if the units have no way for it. False if there is no memory. */
static bool create_unit_pieces(const struct product *size, struct unit_pieces **made) {
  struct unit_pieces asked = {.size = *size}, *p;
  bool taken = false, good;
  *made = NULL;
  if (size->batch <= 0 || size->m <= 0 || size->n <= 0 || size->k <= 0 || !onednn_units()) return true;
  cut_units(&asked);
  int count = pieces_for(cost_of(size), size->batch * asked.rows);
  int64_t words = size->batch * size->k * (size->m > size->n ? size->m : size->n);
  p = calloc(1, sizeof *p + (size_t)count * sizeof *p->units);
  if (!p) return false;
  *p = asked;
  p->pieces = (struct pieces){.run = run_units,
                              .state = p,
                              .nstages = 2,
                              .count = {1, count},
                              .cost = cost_of(size),
                              .library = ONEDNN};
  p->pieces.count[0] = pieces_for(words, words / WORDS_AT_ONCE + 1);
  good = make_units(p, &taken) && (!taken || make_packed(p));
  if (good && taken)
    *made = p;
  else
    unit_pieces_destroy(p);
  return good;
}

bool cpu_leaf_matmul(struct cpu *cpu, struct arena *a, const struct step *step, struct command *c,
                     struct diags *d) {
  struct product size = product_of(step->node);
  struct unit_pieces *p = NULL;
  bool still = step_is_still(step, 1);
  if (size.bf16 && !cpu->portable && cpu_matmul_amx(a, &size, cost_of(&size), still, c)) return true;
  bool good = !size.bf16 || cpu->portable || create_unit_pieces(&size, &p);
  if (good && !p) {
    prepare_own(cpu, a, &size, still, c);
    return true;
  }
  c->kind = COMMAND_PIECES;
  if (p) c->pieces = &p->pieces;
  return cpu_own(cpu, p, unit_pieces_destroy, d);
}
