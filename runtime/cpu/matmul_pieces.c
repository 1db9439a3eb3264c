/* SPDX-License-Identifier: Apache-2.0 */
/* The leaf matmul: products cut into blocks of rows and columns of C, and these put into pieces.
 *
 * The library's sums may be in another order where a product has other sizes: of oneDNN 2.6, 64 of 1024 rows had other
 * bits than all of them. So blocks follow from the sizes of the product alone, and are what is computed on one thread,
 * too. They are large: a block packs the columns of B that it needs for itself. Training perceptrons takes 2 to 5 %
 * longer on one thread than with whole products, and a third less time on two. */
#include "runtime/cpu/leaf.h"

#include "base/arena.h"
#include "kernels/cpu/bf16.h"
#include "runtime/cpu/foreign.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/matmul.h"

#include <stdlib.h>

/* A block has at least so many rows and columns where it is cut there, and takes 160 us or more at 100 GFLOP/s, which
 * narrow products do not reach; the first FEW take 40. Ends of blocks are those of the vectors that libraries compute
 * with. */
enum { LEAST_SIDE = 64, MOST_BLOCKS = 16, NARROW = 64, EVEN = 16, SHAPES = 4 };
enum { FEW = 4, FEW_FLOPS = 4000000, BLOCK_FLOPS = 16000000 };

struct piece_plans {
  struct cpu_matmul_plan *shape[SHAPES]; /* for a block with the last rows: + 1, columns: + 2 */
};

struct matmul_pieces {
  struct product size;
  struct pieces pieces;
  int64_t m, n;               /* of a block but the last */
  int64_t rows, columns;      /* of blocks */
  struct piece_plans plans[]; /* by piece */
};

static double work(const struct product *p, int64_t m, int64_t n) {
  return 2.0 * (double)(m < NARROW ? NARROW : m) * (double)(n < NARROW ? NARROW : n) * (double)p->k;
}

static int64_t blocks_of(int64_t size, int64_t block) { return (size + block - 1) / block; }

/* Half of a side, so that what is behind it is no more. */
static int64_t half(int64_t side) { return (side / 2 + EVEN - 1) / EVEN * EVEN; }

static void choose_blocks(struct matmul_pieces *p) {
  const struct product *s = &p->size;
  p->m = s->m, p->n = s->n;
  for (int64_t count = 1; !s->bf16 && s->m > 0 && s->n > 0;) {
    bool down = p->m >= p->n;
    int64_t side = half(down ? p->m : p->n), m = down ? side : p->m, n = down ? p->n : side;
    if (side < LEAST_SIDE || work(s, m, n) < (count < FEW ? FEW_FLOPS : BLOCK_FLOPS)) break;
    count = blocks_of(s->m, m) * blocks_of(s->n, n);
    if (count > MOST_BLOCKS) break;
    p->m = m, p->n = n;
  }
  p->rows = p->m ? blocks_of(s->m, p->m) : 0;
  p->columns = p->n ? blocks_of(s->n, p->n) : 0;
}

static int64_t count_units(const struct matmul_pieces *p) { return p->size.batch * p->rows * p->columns; }

/* Block `unit`: where it begins, and which of the shapes it has. */
static int find_block(const struct matmul_pieces *p, int64_t unit, int64_t *batch, int64_t *row,
                      int64_t *column) {
  int64_t i = unit / p->columns % p->rows, j = unit % p->columns;
  *batch = unit / p->columns / p->rows;
  *row = i * p->m, *column = j * p->n;
  return (i == p->rows - 1) + 2 * (j == p->columns - 1);
}

static bool run_units(const struct matmul_pieces *p, void *const *args, int piece) {
  const struct product *s = &p->size;
  int64_t size = dtype_size(s->dtype), from = s->stored ? dtype_size(DT_BF16) : size, units = count_units(p),
          b, i, j;
  int count = p->pieces.count[0];
  for (int64_t u = piece_begin(units, count, piece); u < piece_begin(units, count, piece + 1); u++) {
    int shape = find_block(p, u, &b, &i, &j);
    int64_t a_at = b * s->m * s->k + (s->transpose_a ? i : i * s->k);
    int64_t b_at = b * s->k * s->n + (s->transpose_b ? j * s->k : j);
    int64_t c_at = b * s->m * s->n + i * s->n + j;
    if (!cpu_matmul_plan_run(p->plans[piece].shape[shape], (const char *)args[0] + a_at * from,
                             (const char *)args[1] + b_at * from, (char *)args[2] + c_at * size))
      return false;
  }
  return true;
}

/* The library refuses for want of memory only. */
static void run_piece(void *const *args, const void *state, int stage, int piece) {
  (void)stage;
  foreign_enter();
  bool done = run_units(state, args, piece);
  foreign_leave();
  if (!done) arena_exhausted();
}

static void pieces_destroy(void *pieces) {
  struct matmul_pieces *p = pieces;
  for (int i = p->pieces.count[0] - 1; i >= 0; i--) /* the first owns what others borrow */
    for (int shape = 0; shape < SHAPES; shape++) cpu_matmul_plan_destroy(p->plans[i].shape[shape]);
  free(p);
}

static struct cpu_matmul_plan *make_plan(const struct matmul_pieces *p, int64_t row, int64_t column) {
  struct product one = p->size;
  struct matmul_rows apart = matmul_dense(&p->size);
  one.batch = 1;
  one.m = p->size.m - row < p->m ? p->size.m - row : p->m;
  one.n = p->size.n - column < p->n ? p->size.n - column : p->n;
  return cpu_matmul_plan_create(&one, &apart);
}

/* Plans of all shapes for each piece that has such blocks. */
static bool make_plans(struct matmul_pieces *p) {
  struct cpu_matmul_plan *first[SHAPES] = {NULL};
  int64_t units = count_units(p), b, i, j;
  int count = p->pieces.count[0];
  for (int piece = 0; piece < count; piece++)
    for (int64_t u = piece_begin(units, count, piece); u < piece_begin(units, count, piece + 1); u++) {
      int shape = find_block(p, u, &b, &i, &j);
      struct cpu_matmul_plan **plan = &p->plans[piece].shape[shape];
      if (*plan) continue;
      *plan = first[shape] ? cpu_matmul_plan_again(first[shape]) : make_plan(p, i, j);
      if (!first[shape]) first[shape] = *plan;
      if (!*plan) return false;
    }
  return true;
}

/* ---- by code of our own, which any cut leaves as it is ---- */

struct own_pieces {
  const struct gemm *gemm;
  struct pieces pieces;
  int64_t batch, down, along; /* units of all, */
  int64_t rows, columns;      /* and cuts of each product */
  float *wide[2];             /* operands that lie as bfloat16, widened before; NULL: none */
  int64_t counts[2];
};

static void widen(const struct own_pieces *p, void *const *args, int piece) {
  for (int i = 0; i < 2; i++) {
    int64_t begin = piece_begin(p->counts[i], p->pieces.count[0], piece),
            end = piece_begin(p->counts[i], p->pieces.count[0], piece + 1);
    bf16_unpack((const uint16_t *)args[i] + begin, p->wide[i] + begin, end - begin);
  }
}

static void run_own(void *const *args, const void *state, int stage, int piece) {
  const struct own_pieces *p = state;
  int64_t each = p->rows * p->columns, blocks = p->batch * each;
  int count = p->pieces.count[stage];
  if (p->wide[0] && stage == 0) {
    widen(p, args, piece);
    return;
  }
  const void *a = p->wide[0] ? (const void *)p->wide[0] : args[0];
  const void *b = p->wide[1] ? (const void *)p->wide[1] : args[1];
  for (int64_t u = piece_begin(blocks, count, piece); u < piece_begin(blocks, count, piece + 1); u++) {
    int row = (int)(u % each / p->columns), column = (int)(u % p->columns);
    struct gemm_block one = {.batch = u / each,
                             .top = piece_begin(p->down, (int)p->rows, row),
                             .bottom = piece_begin(p->down, (int)p->rows, row + 1),
                             .left = piece_begin(p->along, (int)p->columns, column),
                             .right = piece_begin(p->along, (int)p->columns, column + 1)};
    gemm_run(p->gemm, &one, a, b, args[2]);
  }
}

/* As many blocks as pieces, where a batch is not enough: the longer side is halved. */
static void cut_own(struct own_pieces *p, const struct product *s, int64_t count) {
  p->rows = p->columns = 1;
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

static bool prepare_own(struct cpu *cpu, struct arena *a, const struct product *size, struct command *c) {
  struct own_pieces *p = arena_new(a, struct own_pieces);
  *p = (struct own_pieces){.gemm = gemm_create(cpu->jit, a, size, NULL), .batch = size->batch};
  gemm_units(p->gemm, &p->down, &p->along);
  int64_t cost = (int64_t)(0.01 * (double)size->batch * work(size, size->m, size->n));
  int count = pieces_for(cost, size->batch * p->down * p->along);
  if (count > 1) cut_own(p, size, count < MOST_BLOCKS ? count : MOST_BLOCKS);
  if (count == 1) p->rows = p->columns = 1;
  int64_t blocks = size->batch * p->rows * p->columns;
  p->pieces = (struct pieces){.run = run_own, .state = p, .nstages = size->stored ? 2 : 1, .cost = cost};
  p->pieces.count[0] = p->pieces.count[1] = blocks < count ? blocks < 1 ? 1 : (int)blocks : count;
  p->counts[0] = size->batch * size->m * size->k, p->counts[1] = size->batch * size->k * size->n;
  for (int i = 0; i < 2 && size->stored; i++)
    p->wide[i] = arena_new_array(a, (size_t)p->counts[i] + 1, float);
  c->kind = COMMAND_PIECES;
  c->pieces = &p->pieces;
  return true;
}

static bool is_own(const struct cpu *cpu, const struct product *size) {
  if (!gemm_can()) return false;
  return product_in_order(size) || (size->dtype == DT_F32 && cpu->portable);
}

bool cpu_leaf_matmul(struct cpu *cpu, struct arena *a, const struct step *step, struct command *c,
                     struct diags *d) {
  struct matmul_pieces asked = {.size = product_of(step->node)}, *p;
  if (is_own(cpu, &asked.size)) return prepare_own(cpu, a, &asked.size, c);
  choose_blocks(&asked);
  int64_t cost = (int64_t)(0.01 * (double)asked.size.batch * work(&asked.size, asked.size.m, asked.size.n));
  int count = pieces_for(cost, count_units(&asked));
  p = calloc(1, sizeof *p + (size_t)count * sizeof *p->plans);
  if (p) {
    *p = asked;
    p->pieces = (struct pieces){.run = run_piece, .state = p, .nstages = 1, .count = {count}, .cost = cost};
  }
  if (p && !make_plans(p)) {
    pieces_destroy(p);
    p = NULL;
  }
  c->kind = COMMAND_PIECES;
  if (p) c->pieces = &p->pieces;
  return cpu_own(cpu, p, pieces_destroy, d);
}
