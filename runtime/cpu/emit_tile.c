/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles as LLVM IR: a loop over the runs of k, and in each over its k.
 *
 * One round of the loop: `vectors` of a row of B are loaded, and of A one number for each row is put into all lanes.
 * So many rounds are one iteration that small tiles loop seldom; what is left goes round by round. Rows of A are
 * reached from pointers to every third one, as an address may be a register, another one, and a constant. How far apart
 * they are is loaded, multiples as well: of what it knows to be multiples LLVM makes a chain of additions, which the
 * loop then waits for. */
#include "runtime/cpu/emit.h"

#include <stddef.h>

enum { GROUP = 3, GROUPS = MAX_TILE_ROWS / GROUP, MOST_ROUNDS = 4 };
/* Multiply-adds of an iteration, at most, where it is more than a round. */
enum { ITERATION = 32 };
/* Bytes of the vectors of which parts are stored by masks as fast as by pieces. */
enum { MASKED = 64 };

/* What the loop carries. */
struct loop_values {
  LLVMValueRef sum[MAX_TILE_ROWS][MAX_TILE_VECTORS], a[GROUPS], b;
};

struct tiling {
  struct emit *e;
  const struct tile *t;
  LLVMValueRef fn, a_step, b_step, c_step, add, mask; /* mask: NULL where the last vector is whole */
  LLVMValueRef a_twice, a_ahead, b_ahead;
  LLVMTypeRef number, vector, i64, i8;
  int size, pointers; /* bytes of a number; how many a[] are in use */
};

static LLVMValueRef int64(struct tiling *g, int64_t n) { return llvm.ConstInt(g->i64, (uint64_t)n, 1); }

static LLVMValueRef advance(struct tiling *g, LLVMValueRef p, LLVMValueRef bytes) {
  return llvm.BuildGEP2(g->e->builder, g->i8, p, &bytes, 1, "");
}

static LLVMBasicBlockRef new_block(struct tiling *g, const char *name) {
  return llvm.AppendBasicBlockInContext(g->e->context, g->fn, name);
}

static LLVMValueRef splat(struct tiling *g, LLVMValueRef scalar) {
  LLVMTypeRef index = llvm.Int32TypeInContext(g->e->context);
  LLVMValueRef none = llvm.GetPoison(g->vector);
  LLVMValueRef first = llvm.BuildInsertElement(g->e->builder, none, scalar, llvm.ConstNull(index), "");
  return llvm.BuildShuffleVector(g->e->builder, first, none,
                                 llvm.ConstNull(llvm.VectorType(index, (unsigned)g->t->lanes)), "");
}

static bool is_masked(const struct tiling *g, int vector) { return g->mask && vector == g->t->vectors - 1; }

static LLVMValueRef load_vector(struct tiling *g, LLVMValueRef p, int vector) {
  struct emit *e = g->e;
  p = advance(g, p, int64(g, (int64_t)vector * g->t->lanes * g->size));
  if (is_masked(g, vector)) {
    LLVMTypeRef types[] = {g->vector, llvm.TypeOf(p)};
    LLVMValueRef align = llvm.ConstInt(llvm.Int32TypeInContext(e->context), (unsigned)g->size, 0);
    LLVMValueRef args[] = {p, align, g->mask, llvm.ConstNull(g->vector)};
    return emit_intrinsic(e, "llvm.masked.load", types, 2, args, 4);
  }
  LLVMValueRef v = llvm.BuildLoad2(e->builder, g->vector, p, "");
  llvm.SetAlignment(v, (unsigned)g->size);
  return v;
}

/* The first columns of a vector: half of its lanes, a quarter and so on, as far as they are there. */
static void store_parts(struct tiling *g, LLVMValueRef v, LLVMValueRef p) {
  LLVMTypeRef i32 = llvm.Int32TypeInContext(g->e->context);
  for (int part = g->t->lanes / 2, at = 0; part > 0; part /= 2) {
    if (!(g->t->last & part)) continue;
    LLVMValueRef lane[MAX_TILE_LANES], to = advance(g, p, int64(g, (int64_t)at * g->size)), some;
    for (int i = 0; i < part; i++) lane[i] = llvm.ConstInt(i32, (unsigned)(at + i), 0);
    if (part == 1)
      some = llvm.BuildExtractElement(g->e->builder, v, lane[0], "");
    else
      some = llvm.BuildShuffleVector(g->e->builder, v, llvm.GetPoison(g->vector),
                                     llvm.ConstVector(lane, (unsigned)part), "");
    llvm.SetAlignment(llvm.BuildStore(g->e->builder, some, to), (unsigned)g->size);
    at += part;
  }
}

static void store_vector(struct tiling *g, LLVMValueRef v, LLVMValueRef p, int vector) {
  struct emit *e = g->e;
  p = advance(g, p, int64(g, (int64_t)vector * g->t->lanes * g->size));
  if (is_masked(g, vector) && g->t->lanes * g->size < MASKED) {
    store_parts(g, v, p);
    return;
  }
  if (is_masked(g, vector)) {
    LLVMTypeRef types[] = {g->vector, llvm.TypeOf(p)};
    LLVMValueRef align = llvm.ConstInt(llvm.Int32TypeInContext(e->context), (unsigned)g->size, 0);
    LLVMValueRef args[] = {v, p, align, g->mask};
    emit_intrinsic(e, "llvm.masked.store", types, 2, args, 4);
    return;
  }
  llvm.SetAlignment(llvm.BuildStore(e->builder, v, p), (unsigned)g->size);
}

/* The number of A for a row, `round` rounds on. */
static LLVMValueRef load_number(struct tiling *g, const struct loop_values *c, int row, int round) {
  LLVMValueRef p;
  if (g->t->columns) {
    p = c->a[0];
    for (int i = 0; i < round; i++) p = advance(g, p, g->a_step);
    p = advance(g, p, int64(g, (int64_t)row * g->size));
  } else {
    p = c->a[row / GROUP];
    if (row % GROUP) p = advance(g, p, row % GROUP == 1 ? g->a_step : g->a_twice);
    p = advance(g, p, int64(g, (int64_t)round * g->size));
  }
  LLVMValueRef v = llvm.BuildLoad2(g->e->builder, g->number, p, "");
  llvm.SetAlignment(v, (unsigned)g->size);
  return v;
}

/* Asks for what is loaded some rounds later. */
static void emit_prefetch(struct tiling *g, LLVMValueRef p) {
  LLVMTypeRef i32 = llvm.Int32TypeInContext(g->e->context), type = llvm.TypeOf(p);
  LLVMValueRef args[] = {p, llvm.ConstInt(i32, 0, 0), llvm.ConstInt(i32, 3, 0), llvm.ConstInt(i32, 1, 0)};
  emit_intrinsic(g->e, "llvm.prefetch", &type, 1, args, 4);
}

static void emit_round(struct tiling *g, struct loop_values *c, int round) {
  LLVMValueRef b[MAX_TILE_VECTORS], row = c->b;
  for (int i = 0; i < round; i++) row = advance(g, row, g->b_step);
  for (int v = 0; v < g->t->vectors; v++) b[v] = load_vector(g, row, v);
  for (int v = 0; v < g->t->vectors; v++)
    emit_prefetch(g, advance(g, advance(g, row, g->b_ahead), int64(g, (int64_t)v * g->t->lanes * g->size)));
  if (g->t->columns) {
    LLVMValueRef column = c->a[0];
    for (int i = 0; i < round; i++) column = advance(g, column, g->a_step);
    emit_prefetch(g, advance(g, column, g->a_ahead));
  }
  for (int r = 0; r < g->t->rows; r++) {
    LLVMValueRef a = splat(g, load_number(g, c, r, round));
    for (int v = 0; v < g->t->vectors; v++) {
      LLVMValueRef args[] = {a, b[v], c->sum[r][v]};
      c->sum[r][v] = emit_intrinsic(g->e, "llvm.fma", &g->vector, 1, args, 3);
    }
  }
}

static void step_on(struct tiling *g, struct loop_values *c, int rounds) {
  for (int i = 0; i < rounds; i++) {
    c->b = advance(g, c->b, g->b_step);
    if (g->t->columns) c->a[0] = advance(g, c->a[0], g->a_step);
  }
  if (!g->t->columns)
    for (int i = 0; i < g->pointers; i++) c->a[i] = advance(g, c->a[i], int64(g, (int64_t)rounds * g->size));
}

/* All that is carried, one by one. */
static int list_carried(struct tiling *g, struct loop_values *c, LLVMValueRef **out) {
  int n = 0;
  for (int r = 0; r < g->t->rows; r++)
    for (int v = 0; v < g->t->vectors; v++) out[n++] = &c->sum[r][v];
  for (int i = 0; i < g->pointers; i++) out[n++] = &c->a[i];
  out[n++] = &c->b;
  return n;
}

/* `count` iterations of `rounds` rounds each, perhaps none. */
static void emit_loop(struct tiling *g, struct loop_values *c, LLVMValueRef count, int rounds) {
  enum { MOST = MAX_TILE_ROWS * MAX_TILE_VECTORS + GROUPS + 1 };
  LLVMBuilderRef ir = g->e->builder;
  LLVMBasicBlockRef before = llvm.GetInsertBlock(ir), body = new_block(g, "body"),
                    behind = new_block(g, "behind");
  LLVMValueRef *all[MOST], first[MOST], phi[MOST], out[MOST];
  int n = list_carried(g, c, all);
  llvm.BuildCondBr(ir, llvm.BuildICmp(ir, LLVMIntEQ, count, int64(g, 0), ""), behind, body);
  llvm.PositionBuilderAtEnd(ir, body);
  LLVMValueRef left = llvm.BuildPhi(ir, g->i64, "");
  for (int i = 0; i < n; i++) {
    first[i] = *all[i];
    *all[i] = phi[i] = llvm.BuildPhi(ir, llvm.TypeOf(first[i]), "");
  }
  for (int i = 0; i < rounds; i++) emit_round(g, c, i);
  step_on(g, c, rounds);
  LLVMValueRef next = llvm.BuildSub(ir, left, int64(g, 1), "");
  llvm.BuildCondBr(ir, llvm.BuildICmp(ir, LLVMIntEQ, next, int64(g, 0), ""), behind, body);
  llvm.AddIncoming(left, (LLVMValueRef[]){count, next}, (LLVMBasicBlockRef[]){before, body}, 2);
  for (int i = 0; i < n; i++)
    llvm.AddIncoming(phi[i], (LLVMValueRef[]){first[i], *all[i]}, (LLVMBasicBlockRef[]){before, body}, 2);
  llvm.PositionBuilderAtEnd(ir, behind);
  for (int i = 0; i < n; i++) {
    out[i] = llvm.BuildPhi(ir, llvm.TypeOf(first[i]), "");
    llvm.AddIncoming(out[i], (LLVMValueRef[]){first[i], *all[i]}, (LLVMBasicBlockRef[]){before, body}, 2);
    *all[i] = out[i];
  }
}

static LLVMValueRef load_int(struct tiling *g, LLVMValueRef from, size_t at) {
  LLVMValueRef p = advance(g, from, int64(g, (int64_t)at));
  LLVMValueRef v = llvm.BuildLoad2(g->e->builder, g->i64, p, "");
  llvm.SetAlignment(v, sizeof(int64_t));
  return v;
}

static LLVMValueRef load_field(struct tiling *g, size_t at) {
  return load_int(g, llvm.GetParam(g->fn, 3), at);
}

static LLVMValueRef load_pointer(struct tiling *g, size_t at) {
  LLVMValueRef p = advance(g, llvm.GetParam(g->fn, 3), int64(g, (int64_t)at));
  return llvm.BuildLoad2(g->e->builder, llvm.PointerTypeInContext(g->e->context, 0), p, "");
}

/* From the first row of A to another one. */
static LLVMValueRef load_row(struct tiling *g, int row) {
  return load_field(g, offsetof(struct tile_call, row) + (size_t)row * sizeof(int64_t));
}

/* Iterations over a run, then what is left of it. */
static void emit_run(struct tiling *g, struct loop_values *c, LLVMValueRef count) {
  int rounds = ITERATION / (g->t->rows * g->t->vectors);
  rounds = rounds < 2 ? 1 : rounds < 4 ? 2 : MOST_ROUNDS;
  if (rounds > 1) {
    int shift = rounds == 2 ? 1 : 2;
    emit_loop(g, c, llvm.BuildLShr(g->e->builder, count, int64(g, shift), ""), rounds);
    count = llvm.BuildAnd(g->e->builder, count, int64(g, rounds - 1), "");
  }
  emit_loop(g, c, count, 1);
}

/* Where A and B begin in a run. */
static void begin_run(struct tiling *g, struct loop_values *c, LLVMValueRef run) {
  c->a[0] = advance(g, llvm.GetParam(g->fn, 0), load_int(g, run, offsetof(struct tile_run, a)));
  c->b = advance(g, llvm.GetParam(g->fn, 1), load_int(g, run, offsetof(struct tile_run, b)));
  for (int i = 1; i < g->pointers; i++) c->a[i] = advance(g, c->a[0], load_row(g, i * GROUP));
}

static void emit_one_run(struct tiling *g, struct loop_values *c) {
  LLVMValueRef run = load_pointer(g, offsetof(struct tile_call, runs));
  begin_run(g, c, run);
  emit_run(g, c, load_int(g, run, offsetof(struct tile_run, count)));
}

/* All runs; there is one at least. */
static void emit_runs(struct tiling *g, struct loop_values *c) {
  enum { MOST = MAX_TILE_ROWS * MAX_TILE_VECTORS + 2 };
  LLVMBuilderRef ir = g->e->builder;
  LLVMValueRef run = load_pointer(g, offsetof(struct tile_call, runs)),
               left = load_field(g, offsetof(struct tile_call, nruns));
  LLVMBasicBlockRef before = llvm.GetInsertBlock(ir), body = new_block(g, "run"),
                    behind = new_block(g, "all");
  LLVMValueRef *all[MOST] = {&run, &left}, first[MOST], phi[MOST];
  int n = 2;
  for (int r = 0; r < g->t->rows; r++)
    for (int v = 0; v < g->t->vectors; v++) all[n++] = &c->sum[r][v];
  llvm.BuildBr(ir, body);
  llvm.PositionBuilderAtEnd(ir, body);
  for (int i = 0; i < n; i++) {
    first[i] = *all[i];
    *all[i] = phi[i] = llvm.BuildPhi(ir, llvm.TypeOf(first[i]), "");
  }
  begin_run(g, c, run);
  emit_run(g, c, load_int(g, run, offsetof(struct tile_run, count)));
  run = advance(g, run, int64(g, sizeof(struct tile_run)));
  left = llvm.BuildSub(ir, left, int64(g, 1), "");
  LLVMBasicBlockRef end = llvm.GetInsertBlock(ir);
  llvm.BuildCondBr(ir, llvm.BuildICmp(ir, LLVMIntEQ, left, int64(g, 0), ""), behind, body);
  for (int i = 0; i < n; i++)
    llvm.AddIncoming(phi[i], (LLVMValueRef[]){first[i], *all[i]}, (LLVMBasicBlockRef[]){before, end}, 2);
  llvm.PositionBuilderAtEnd(ir, behind);
}

static void emit_stores(struct tiling *g, const struct loop_values *c, LLVMValueRef row, bool add) {
  for (int r = 0; r < g->t->rows; r++) {
    for (int v = 0; v < g->t->vectors; v++) {
      LLVMValueRef sum = c->sum[r][v];
      if (add)
        sum = llvm.BuildFAdd(g->e->builder, load_vector(g, row, v), sum, "");
      else if (g->t->positive)
        sum = llvm.BuildFAdd(g->e->builder, sum, llvm.ConstNull(g->vector), "");
      store_vector(g, sum, row, v);
    }
    row = advance(g, row, g->c_step);
  }
  llvm.BuildRetVoid(g->e->builder);
}

static void load_call(struct tiling *g) {
  g->a_step = load_row(g, 1);
  g->a_twice = load_row(g, 2);
  g->b_step = load_field(g, offsetof(struct tile_call, b_step));
  g->c_step = load_field(g, offsetof(struct tile_call, c_step));
  g->a_ahead = load_field(g, offsetof(struct tile_call, a_ahead));
  g->b_ahead = load_field(g, offsetof(struct tile_call, b_ahead));
  g->add = load_field(g, offsetof(struct tile_call, add));
  if (!g->t->last) return;
  LLVMTypeRef i1 = llvm.Int1TypeInContext(g->e->context);
  LLVMValueRef lane[MAX_TILE_LANES];
  for (int i = 0; i < g->t->lanes; i++) lane[i] = llvm.ConstInt(i1, i < g->t->last, 0);
  g->mask = llvm.ConstVector(lane, (unsigned)g->t->lanes);
}

static void begin(struct tiling *g, struct loop_values *c) {
  LLVMBuilderRef ir = g->e->builder;
  LLVMBasicBlockRef entry = llvm.GetInsertBlock(ir), loads = new_block(g, "loads"),
                    zeros = new_block(g, "zeros");
  LLVMValueRef goes_on = load_field(g, offsetof(struct tile_call, goes_on)), row = llvm.GetParam(g->fn, 2);
  llvm.BuildCondBr(ir, llvm.BuildICmp(ir, LLVMIntEQ, goes_on, int64(g, 0), ""), zeros, loads);
  llvm.PositionBuilderAtEnd(ir, loads);
  for (int r = 0; r < g->t->rows; r++, row = advance(g, row, g->c_step))
    for (int v = 0; v < g->t->vectors; v++) c->sum[r][v] = load_vector(g, row, v);
  llvm.BuildBr(ir, zeros);
  llvm.PositionBuilderAtEnd(ir, zeros);
  for (int r = 0; r < g->t->rows; r++)
    for (int v = 0; v < g->t->vectors; v++) {
      LLVMValueRef sum = llvm.BuildPhi(ir, g->vector, ""), both[] = {llvm.ConstNull(g->vector), c->sum[r][v]};
      llvm.AddIncoming(sum, both, (LLVMBasicBlockRef[]){entry, loads}, 2);
      c->sum[r][v] = sum;
    }
}

static void declare(struct tiling *g, const char *symbol) {
  struct emit *e = g->e;
  LLVMTypeRef pointer = llvm.PointerTypeInContext(e->context, 0),
              params[] = {pointer, pointer, pointer, pointer};
  LLVMTypeRef type = llvm.FunctionType(llvm.VoidTypeInContext(e->context), params, 4, 0);
  g->fn = llvm.AddFunction(e->module, symbol, type);
  llvm.AddAttributeAtIndex(
      g->fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
      llvm.CreateEnumAttribute(e->context, llvm.GetEnumAttributeKindForName("nounwind", 8), 0));
  llvm.PositionBuilderAtEnd(e->builder, new_block(g, "entry"));
}

void emit_tile(struct emit *e, const struct tile *t, const char *symbol) {
  struct tiling g = {.e = e,
                     .t = t,
                     .number = emit_type(e, t->dtype, 1),
                     .vector = llvm.VectorType(emit_type(e, t->dtype, 1), (unsigned)t->lanes),
                     .i64 = llvm.Int64TypeInContext(e->context),
                     .i8 = llvm.Int8TypeInContext(e->context),
                     .size = (int)dtype_size(t->dtype),
                     .pointers = t->columns ? 1 : (t->rows + GROUP - 1) / GROUP};
  struct loop_values c;
  declare(&g, symbol);
  load_call(&g);
  begin(&g, &c);
  if (t->one_run)
    emit_one_run(&g, &c);
  else
    emit_runs(&g, &c);
  LLVMBasicBlockRef adds = new_block(&g, "add"), sets = new_block(&g, "set");
  llvm.BuildCondBr(e->builder, llvm.BuildICmp(e->builder, LLVMIntEQ, g.add, int64(&g, 0), ""), sets, adds);
  llvm.PositionBuilderAtEnd(e->builder, adds);
  emit_stores(&g, &c, llvm.GetParam(g.fn, 2), true);
  llvm.PositionBuilderAtEnd(e->builder, sets);
  emit_stores(&g, &c, llvm.GetParam(g.fn, 2), false);
}
