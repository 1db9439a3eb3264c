/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a scalar program and the memory they come from and go to, at the current place of a nest. */
#include "runtime/cpu/loops.h"

/* ---- memory ---- */

enum { ROWS_AHEAD = 8, HEAVY_ROWS_AHEAD = 2 };

LLVMValueRef loops_advance(struct cpu_loops *n, LLVMValueRef p, LLVMValueRef bytes) {
  return llvm.BuildGEP2(n->e->builder, i8(n), p, &bytes, 1, "");
}

static LLVMValueRef from_memory(struct cpu_loops *n, enum dtype d, LLVMValueRef v) {
  if (d != DT_BOOL) return v;
  return llvm.BuildICmp(n->e->builder, LLVMIntNE, v, llvm.ConstNull(llvm.TypeOf(v)), "");
}

static LLVMValueRef to_memory(struct cpu_loops *n, enum dtype d, LLVMValueRef v) {
  if (d != DT_BOOL) return v;
  return llvm.BuildZExt(n->e->builder, v, emit_memory_type(n->e, d, emit_lanes(v)), "");
}

/* The lanes of argument `a` in chunk `chunk` of a round: a pointer, or a vector of them for STRIDE_ANY. */
static LLVMValueRef lane_address(struct cpu_loops *n, int a, int chunk) {
  LLVMValueRef p = n->ptr[a];
  if (n->k->args[a].vector == STRIDE_ONE) {
    if (chunk > 0) p = loops_advance(n, p, int64(n, chunk * KERNEL_LANES * dtype_size(arg_dtype(n, a))));
    return p;
  }
  if (chunk > 0) {
    LLVMValueRef stride = n->stride[a][n->k->vector];
    p = loops_advance(n, p, llvm.BuildMul(n->e->builder, stride, int64(n, chunk * KERNEL_LANES), ""));
  }
  return loops_advance(n, p, n->lane_offset[a]);
}

/* Asks for what lies `rows` rounds of `loop` behind p. */
static void prefetch(struct cpu_loops *n, int a, LLVMValueRef p, int loop, int rows) {
  if (n->k->still[a] >> loop & 1) return;
  LLVMValueRef ahead = llvm.BuildMul(n->e->builder, n->stride[a][loop], int64(n, rows), "");
  LLVMTypeRef t = llvm.TypeOf(p);
  LLVMValueRef args[] = {loops_advance(n, p, ahead), llvm.ConstInt(i32(n), 0, 0), llvm.ConstInt(i32(n), 3, 0),
                         llvm.ConstInt(i32(n), 1, 0)};
  emit_intrinsic(n->e, "llvm.prefetch", &t, 1, args, 4);
}

/* What a processor does not guess. Sums of many columns take 256 bytes of each row, and rows are longer. Parts of rows,
 * slices say, are short, and a heavy body would wait for the first lines of each; so it would at each round where it
 * goes along the rows, a chunk of each. */
static void prefetch_rows(struct cpu_loops *n, int a, LLVMValueRef p) {
  int innermost = n->order[n->k->rank - 1];
  if (is_reduce(n) && vector_is_kept(n) && n->k->strip >= MAX_UNROLL && !n->mask)
    prefetch(n, a, p, innermost, ROWS_AHEAD);
  else if (!is_reduce(n) && n->heavy && n->k->rank > 1)
    prefetch(n, a, p, n->vector_depth > 0 ? n->order[n->vector_depth - 1] : innermost, HEAVY_ROWS_AHEAD);
}

static LLVMValueRef load_lanes(struct cpu_loops *n, int a, int chunk) {
  struct emit *e = n->e;
  enum dtype d = arg_dtype(n, a);
  LLVMTypeRef t = emit_memory_type(e, d, KERNEL_LANES);
  LLVMValueRef p = lane_address(n, a, chunk), v;
  unsigned align = (unsigned)dtype_size(d);
  if (n->k->args[a].vector == STRIDE_ONE) prefetch_rows(n, a, p);
  if (n->k->args[a].vector == STRIDE_ONE && n->mask == NULL) {
    v = llvm.BuildLoad2(e->builder, t, p, "");
    llvm.SetAlignment(v, align);
  } else {
    LLVMValueRef mask = n->mask ? n->mask : llvm.ConstAllOnes(emit_type(e, DT_BOOL, KERNEL_LANES));
    LLVMTypeRef types[] = {t, llvm.TypeOf(p)};
    LLVMValueRef args[] = {p, llvm.ConstInt(i32(n), align, 0), mask, llvm.ConstNull(t)};
    bool one = n->k->args[a].vector == STRIDE_ONE;
    v = emit_intrinsic(e, one ? "llvm.masked.load" : "llvm.masked.gather", types, 2, args, 4);
  }
  return from_memory(n, d, v);
}

static LLVMValueRef load_scalar(struct cpu_loops *n, int a) {
  enum dtype d = arg_dtype(n, a);
  LLVMValueRef v = llvm.BuildLoad2(n->e->builder, emit_memory_type(n->e, d, 1), n->ptr[a], "");
  llvm.SetAlignment(v, (unsigned)dtype_size(d));
  return from_memory(n, d, v);
}

static void store_scalar(struct cpu_loops *n, int a, LLVMValueRef v) {
  LLVMValueRef s = llvm.BuildStore(n->e->builder, to_memory(n, arg_dtype(n, a), v), n->ptr[a]);
  llvm.SetAlignment(s, (unsigned)dtype_size(arg_dtype(n, a)));
}

LLVMValueRef loops_part(struct cpu_loops *n, LLVMValueRef v, int lanes, int first) {
  LLVMValueRef lane[KERNEL_LANES];
  for (int i = 0; i < lanes; i++) lane[i] = llvm.ConstInt(i32(n), (unsigned)(first + i), 0);
  if (lanes == 1) return llvm.BuildExtractElement(n->e->builder, v, lane[0], "");
  return llvm.BuildShuffleVector(n->e->builder, v, llvm.GetPoison(llvm.TypeOf(v)),
                                 llvm.ConstVector(lane, (unsigned)lanes), "");
}

static void store_lanes(struct cpu_loops *n, int a, int chunk, LLVMValueRef v) {
  struct emit *e = n->e;
  enum dtype d = arg_dtype(n, a);
  if (n->k->args[a].vector == STRIDE_ZERO) { /* all lanes write one element: the last one wins */
    LLVMValueRef active = n->active ? n->active : int64(n, n->stored);
    LLVMValueRef last = llvm.BuildSub(e->builder, active, int64(n, 1), "");
    store_scalar(n, a, llvm.BuildExtractElement(e->builder, v, last, ""));
    return;
  }
  v = to_memory(n, d, v);
  LLVMValueRef p = lane_address(n, a, chunk);
  unsigned align = (unsigned)dtype_size(d);
  if (n->k->args[a].vector == STRIDE_ONE && n->mask == NULL) {
    if (n->stored < KERNEL_LANES) v = loops_part(n, v, n->stored, 0);
    llvm.SetAlignment(llvm.BuildStore(e->builder, v, p), align);
    return;
  }
  LLVMValueRef mask = n->mask ? n->mask
                              : llvm.BuildICmp(e->builder, LLVMIntULT, emit_iota(e, 32),
                                               emit_const(e, DT_I32, (uint64_t)n->stored, KERNEL_LANES), "");
  LLVMTypeRef types[] = {llvm.TypeOf(v), llvm.TypeOf(p)};
  LLVMValueRef args[] = {v, p, llvm.ConstInt(i32(n), align, 0), mask};
  bool one = n->k->args[a].vector == STRIDE_ONE;
  emit_intrinsic(e, one ? "llvm.masked.store" : "llvm.masked.scatter", types, 2, args, 4);
}

/* ---- values ---- */

static LLVMValueRef scalar_value(struct cpu_loops *n, const struct cpu_program *g, int v) {
  const struct sinst *i = &g->text->inst[v];
  if (i->op == S_CONST) return emit_const(n->e, (enum dtype)i->dtype, i->bits, 1);
  return g->scalar[v];
}

LLVMValueRef loops_lanes(struct cpu_loops *n, const struct cpu_program *g, int v, int chunk) {
  const struct sinst *i = &g->text->inst[v];
  if (i->op == S_CONST) return emit_const(n->e, (enum dtype)i->dtype, i->bits, KERNEL_LANES);
  return g->uniform[v] ? g->splat[v] : g->lanes[v][chunk];
}

/* The index of the current round, or of its first lane. */
static LLVMValueRef loops_index(struct cpu_loops *n, int loop) {
  LLVMValueRef i = n->index[loop];
  return n->start[loop] ? llvm.BuildAdd(n->e->builder, i, n->start[loop], "") : i;
}

static LLVMValueRef index_lanes(struct cpu_loops *n, int chunk) {
  LLVMBuilderRef ir = n->e->builder;
  LLVMValueRef lane = llvm.ConstAdd(emit_iota(n->e, 64),
                                    emit_const(n->e, DT_I64, (uint64_t)chunk * KERNEL_LANES, KERNEL_LANES));
  return llvm.BuildAdd(ir, emit_splat(n->e, loops_index(n, n->k->vector)), lane, "");
}

LLVMValueRef loops_size(struct cpu_loops *n, int number) {
  LLVMValueRef at = int64(n, number), p = llvm.BuildGEP2(n->e->builder, i64(n), n->sizes, &at, 1, "");
  LLVMValueRef size = llvm.BuildLoad2(n->e->builder, i64(n), p, "");
  llvm.SetAlignment(size, 8);
  return size;
}

/* As the epilogue reads it. */
static LLVMValueRef accumulator(const struct cpu_loops *n, int sum, int chunk) {
  return kernel_is_arg(n->k) ? n->extra[sum][chunk] : n->acc[sum][chunk];
}

/* A float that kernels of one shape are given: an argument of the function, as bits. */
static LLVMValueRef given(struct cpu_loops *n, enum dtype d, int number) {
  LLVMValueRef bits = llvm.GetParam(n->fn, 2 + (unsigned)number);
  if (d == DT_F32) bits = llvm.BuildTrunc(n->e->builder, bits, i32(n), "");
  return llvm.BuildBitCast(n->e->builder, bits, emit_type(n->e, d, 1), "");
}

static void emit_uniform(struct cpu_loops *n, struct cpu_program *g, int v) {
  const struct sinst *i = &g->text->inst[v];
  if (i->op == S_CONST) return;
  if (i->op == S_ARG) {
    g->scalar[v] = i->a >= n->k->nargs ? accumulator(n, i->a - n->k->nargs, 0) : load_scalar(n, i->a);
  } else if (i->op == S_INDEX) {
    g->scalar[v] = loops_index(n, i->a);
  } else if (i->op == S_PARAM && i->a >= n->k->nparams) {
    g->scalar[v] = given(n, (enum dtype)i->dtype, i->a - n->k->nparams);
  } else if (i->op == S_PARAM) {
    g->scalar[v] = loops_size(n, n->k->rank + n->k->nargs * n->k->rank + i->a);
  } else {
    int use[3];
    LLVMValueRef x[3] = {NULL, NULL, NULL};
    int nuse = sinst_operands(i, use);
    for (int u = 0; u < nuse; u++) x[u] = scalar_value(n, g, use[u]);
    enum dtype operand = s_dtype(g->text, i->op == S_SELECT ? i->b : i->a);
    g->scalar[v] = emit_instruction(n->e, i, operand, x[0], x[1], x[2]);
  }
  if (g->needs_splat[v]) g->splat[v] = emit_splat(n->e, g->scalar[v]);
}

static void emit_lane_value(struct cpu_loops *n, struct cpu_program *g, int v, int chunk) {
  const struct sinst *i = &g->text->inst[v];
  LLVMValueRef *out = &g->lanes[v][chunk];
  if (i->op == S_ARG) {
    *out = i->a >= n->k->nargs ? accumulator(n, i->a - n->k->nargs, chunk) : load_lanes(n, i->a, chunk);
  } else if (i->op == S_INDEX) {
    *out = index_lanes(n, chunk);
  } else {
    int use[3];
    LLVMValueRef x[3] = {NULL, NULL, NULL};
    int nuse = sinst_operands(i, use);
    for (int u = 0; u < nuse; u++) x[u] = loops_lanes(n, g, use[u], chunk);
    enum dtype operand = s_dtype(g->text, i->op == S_SELECT ? i->b : i->a);
    *out = emit_instruction(n->e, i, operand, x[0], x[1], x[2]);
  }
}

void loops_values(struct cpu_loops *n, struct cpu_program *g, int first, int last) {
  for (int v = 0; v < g->text->count; v++) {
    if (!g->live[v] || g->depth[v] < first || g->depth[v] > last) continue;
    if (g->uniform[v])
      emit_uniform(n, g, v);
    else
      for (int c = 0; c < n->chunks; c++) emit_lane_value(n, g, v, c);
  }
}

static void store_all(struct cpu_loops *n, struct cpu_program *g, const sval *results, int first, int count) {
  for (int r = 0; r < count; r++)
    for (int c = 0; c < n->chunks; c++) store_lanes(n, first + r, c, loops_lanes(n, g, results[r], c));
}

/* With a mask, but where so many lanes are active as there are most often. */
static void store_some(struct cpu_loops *n, struct cpu_program *g, const sval *results, int first, int count,
                       int often) {
  LLVMBuilderRef ir = n->e->builder;
  LLVMValueRef mask = n->mask, active = n->active;
  LLVMBasicBlockRef whole = llvm.AppendBasicBlockInContext(n->e->context, n->fn, "whole"),
                    part = llvm.AppendBasicBlockInContext(n->e->context, n->fn, "part"),
                    stored = llvm.AppendBasicBlockInContext(n->e->context, n->fn, "stored");
  llvm.BuildCondBr(ir, llvm.BuildICmp(ir, LLVMIntEQ, active, int64(n, often), ""), whole, part);
  llvm.PositionBuilderAtEnd(ir, whole);
  n->mask = n->active = NULL;
  n->stored = often;
  store_all(n, g, results, first, count);
  llvm.BuildBr(ir, stored);
  llvm.PositionBuilderAtEnd(ir, part);
  n->mask = mask, n->active = active;
  n->stored = KERNEL_LANES;
  store_all(n, g, results, first, count);
  llvm.BuildBr(ir, stored);
  llvm.PositionBuilderAtEnd(ir, stored);
}

/* Where there are no registers for masks, a store with a mask takes AMD's processors eight times as long. Chunks of a
 * heavy body are whole but for the last; of short rows, as halves of attention heads, the only one often is half. */
void loops_store(struct cpu_loops *n, struct cpu_program *g, const sval *results, int first, int count,
                 bool in_lanes) {
  if (!in_lanes)
    for (int r = 0; r < count; r++) store_scalar(n, first + r, scalar_value(n, g, results[r]));
  else if (n->mask && count > 0 && (n->heavy || n->k->rank > 1))
    store_some(n, g, results, first, count, n->heavy ? KERNEL_LANES : KERNEL_LANES / 2);
  else
    store_all(n, g, results, first, count);
}
