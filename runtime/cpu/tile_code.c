/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles as machine code: a loop over the runs of k, and in each over its k.
 *
 * One round of the loop: `vectors` of a row of B are loaded, and of A one number for each row goes to all lanes; or,
 * where there are fewer rows than vectors, the numbers stay and the vectors go by. Some rounds are one iteration, as
 * what counts and moves pointers takes room from multiply-adds; what is left goes round by round. Rows of A are reached
 * from pointers to every fourth one, as an address may be a register and another one. */
#include "runtime/cpu/tile.h"

#if defined(__x86_64__) || defined(__aarch64__)

#include "runtime/cpu/assembler.h"

#include <stddef.h>

struct tiling {
  struct assembler a;
  const struct tile *t;
  int size, pointers; /* bytes of a number; of A */
  int behind;         /* rounds that have gone by since the pointers were moved */
  int sums, spare;    /* vectors: sums come first, then those that rounds load */
};

static int sum_of(const struct tiling *g, int row, int vector) { return row * g->t->vectors + vector; }
static bool is_whole(const struct tiling *g, int vector) { return !g->t->last || vector < g->t->vectors - 1; }

static void load(struct tiling *g, int to, enum reg base, int vector) {
  asm_load(&g->a, to, base, vector * g->a.bytes, is_whole(g, vector));
}

static void get(struct tiling *g, enum reg to, size_t at) { asm_get(&g->a, to, R_CALL, (int64_t)at); }

/* ---- a round ---- */

struct number {
  enum reg base, index;
  int at;
};

static struct number number_of(const struct tiling *g, int row) {
  static const enum reg index[ROWS_OF_POINTER] = {R_NONE, R_STEP, R_TWICE, R_THRICE};
  if (g->t->columns) return (struct number){R_A, R_NONE, row * g->size};
  return (struct number){R_A + row / ROWS_OF_POINTER, index[row % ROWS_OF_POINTER], g->behind * g->size};
}

/* Asks for what is loaded some rounds later. */
static void prefetch(struct tiling *g) {
  for (int v = 0; v < g->t->vectors; v++) asm_prefetch(&g->a, R_B, R_B_AHEAD, v * g->a.bytes);
  if (g->t->columns) asm_prefetch(&g->a, R_A, R_A_AHEAD, 0);
}

static void multiply_by_rows(struct tiling *g) {
  int vectors = g->t->vectors, b = g->spare, number = b + vectors;
  for (int v = 0; v < vectors; v++) load(g, b + v, R_B, v);
  for (int r = 0; r < g->t->rows; r++) {
    struct number n = number_of(g, r);
    if (vectors == 1) {
      asm_multiply_number(&g->a, sum_of(g, r, 0), b, number, n.base, n.index, n.at);
      continue;
    }
    asm_number(&g->a, number, n.base, n.index, n.at);
    for (int v = 0; v < vectors; v++) asm_multiply(&g->a, sum_of(g, r, v), b + v, number);
  }
}

static void multiply_by_vectors(struct tiling *g) {
  int rows = g->t->rows, numbers = g->spare, b = numbers + rows;
  for (int r = 0; r < rows; r++) {
    struct number n = number_of(g, r);
    asm_number(&g->a, numbers + r, n.base, n.index, n.at);
  }
  for (int v = 0; v < g->t->vectors; v++) {
    load(g, b, R_B, v);
    for (int r = 0; r < rows; r++) asm_multiply(&g->a, sum_of(g, r, v), b, numbers + r);
  }
}

/* `last`: of its iteration. */
static void put_round(struct tiling *g, bool last) {
  prefetch(g);
  if (g->t->rows < g->t->vectors)
    multiply_by_vectors(g);
  else
    multiply_by_rows(g);
  asm_add(&g->a, R_B, R_B_STEP);
  if (g->t->columns) {
    asm_add(&g->a, R_A, R_STEP);
    return;
  }
  g->behind++;
  if (ASM_FAR && !last) return;
  for (int i = 0; i < g->pointers; i++) asm_increase(&g->a, R_A + i, g->behind * g->size);
  g->behind = 0;
}

/* ---- loops ---- */

/* R_COUNT rounds, at least one. */
static void put_rounds(struct tiling *g) {
  struct assembler *a = &g->a;
  struct label several = {0}, rest = {0}, single = {0}, end = {0};
  asm_subtract(a, R_COUNT, TILE_ROUNDS);
  asm_jump_if(a, IF_NEGATIVE, &rest);
  asm_place_loop(a, &several);
  for (int i = 0; i < TILE_ROUNDS; i++) put_round(g, i == TILE_ROUNDS - 1);
  asm_subtract(a, R_COUNT, TILE_ROUNDS);
  asm_jump_if(a, IF_NOT_NEGATIVE, &several);
  asm_place(a, &rest);
  asm_increase(a, R_COUNT, TILE_ROUNDS);
  asm_jump_if_zero(a, R_COUNT, &end);
  asm_place_loop(a, &single);
  put_round(g, true);
  asm_subtract(a, R_COUNT, 1);
  asm_jump_if(a, IF_NOT_ZERO, &single);
  asm_place(a, &end);
}

static void put_run(struct tiling *g) {
  struct assembler *a = &g->a;
  if (g->t->asks) {
    get(g, R_COUNT, offsetof(struct tile_call, c_ahead));
    asm_get(a, R_T, R_RUN, offsetof(struct tile_run, c));
    asm_add(a, R_COUNT, R_T);
    for (int v = 0; v < g->t->vectors; v++) asm_prefetch(a, R_COUNT, R_NONE, v * a->bytes);
  }
  get(g, R_A, offsetof(struct tile_call, a));
  asm_get(a, R_T, R_RUN, offsetof(struct tile_run, a));
  asm_add(a, R_A, R_T);
  for (int i = 1; i < g->pointers; i++) asm_sum(a, R_A + i, R_A + i - 1, R_STEP, 2);
  get(g, R_B, offsetof(struct tile_call, b));
  asm_get(a, R_T, R_RUN, offsetof(struct tile_run, b));
  asm_add(a, R_B, R_T);
  asm_get(a, R_COUNT, R_RUN, offsetof(struct tile_run, count));
  put_rounds(g);
}

/* All runs; there is one at least. */
static void put_runs(struct tiling *g) {
  struct assembler *a = &g->a;
  struct label next = {0};
  get(g, R_RUN, offsetof(struct tile_call, runs));
  get(g, R_LEFT, offsetof(struct tile_call, nruns));
  asm_place(a, &next);
  put_run(g);
  asm_increase(a, R_RUN, sizeof(struct tile_run));
  asm_subtract(a, R_LEFT, 1);
  asm_jump_if(a, IF_NOT_ZERO, &next);
}

/* ---- begin and end ---- */

/* C is gone through row by row: R_B is there, and R_COUNT leads to the next one. */
static void begin_rows(struct tiling *g) {
  get(g, R_B, offsetof(struct tile_call, c));
  get(g, R_COUNT, offsetof(struct tile_call, c_step));
}

static void put_begin(struct tiling *g) {
  struct assembler *a = &g->a;
  struct label zeros = {0}, begun = {0};
  if (g->t->last) asm_mask(a);
  get(g, R_T, offsetof(struct tile_call, goes_on));
  asm_jump_if_zero(a, R_T, &zeros);
  begin_rows(g);
  for (int r = 0; r < g->t->rows; r++) {
    for (int v = 0; v < g->t->vectors; v++) load(g, sum_of(g, r, v), R_B, v);
    asm_add(a, R_B, R_COUNT);
  }
  asm_jump(a, &begun);
  asm_place(a, &zeros);
  for (int i = 0; i < g->sums; i++) asm_zero(a, i);
  asm_place(a, &begun);
  get(g, R_STEP, offsetof(struct tile_call, a_step));
  asm_sum(a, R_TWICE, R_STEP, R_STEP, 0);
  asm_sum(a, R_THRICE, R_STEP, R_STEP, 1);
  get(g, R_B_STEP, offsetof(struct tile_call, b_step));
  get(g, R_B_AHEAD, offsetof(struct tile_call, b_ahead));
  if (g->t->columns) get(g, R_A_AHEAD, offsetof(struct tile_call, a_ahead));
}

static void put_stores(struct tiling *g, bool add) {
  struct assembler *a = &g->a;
  int other = g->spare, free = other + 1;
  if (!add && g->t->positive) asm_zero(a, other);
  for (int r = 0; r < g->t->rows; r++) {
    for (int v = 0; v < g->t->vectors; v++) {
      int sum = sum_of(g, r, v);
      if (add) load(g, other, R_B, v);
      if (add || g->t->positive) asm_add_vector(a, sum, other, sum);
      asm_store(a, sum, R_B, v * a->bytes, is_whole(g, v), free);
    }
    asm_add(a, R_B, R_COUNT);
  }
  asm_leave(a);
}

struct str tile_assemble(struct arena *arena, const struct tile *t) {
  struct tiling g = {.t = t, .size = (int)dtype_size(t->dtype), .sums = t->rows * t->vectors};
  struct label sets = {0};
  g.a = (struct assembler){
      .code = str_make(arena), .wide = t->dtype == DT_F64, .bytes = t->lanes * g.size, .last = t->last};
  g.pointers = t->columns ? 1 : (t->rows + ROWS_OF_POINTER - 1) / ROWS_OF_POINTER;
  g.spare = g.sums;
  asm_enter(&g.a, g.spare + 3);
  put_begin(&g);
  put_runs(&g);
  get(&g, R_T, offsetof(struct tile_call, add));
  begin_rows(&g);
  asm_jump_if_zero(&g.a, R_T, &sets);
  put_stores(&g, true);
  asm_place(&g.a, &sets);
  put_stores(&g, false);
  return g.a.code;
}

#else

struct str tile_assemble(struct arena *arena, const struct tile *t) {
  (void)t;
  return str_make(arena); /* nobody asks: see gemm_can */
}

#endif
