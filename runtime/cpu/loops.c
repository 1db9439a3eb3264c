/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel as one LLVM function: the loop nest and the memory around scalar programs.
 *
 * The vector loop runs in chunks of KERNEL_LANES lanes whatever the dtype. A chunk at the end runs the very same
 * instructions with a lane mask on memory, so that body and tail give the same bits. Every loop first checks that
 * it runs at all; between that check and its first round stands what does not change in it. A value is emitted
 * as soon as the loops it depends on are entered, so no pass has to hoist it.
 *
 * Order of the loops: those of a map and the kept ones of a reduction run in their own order but the vector loop
 * last; reduced loops follow in their own order, as ir/scalar/kernel.h promises. A short vector loop of a map is the
 * first instead: what stays where it is along the rows is loaded once.
 *
 * Arguments may be the same buffer: all values of a chunk are read before the first one is written. */
#include "runtime/cpu/loops.h"

#include <stddef.h>
#include <string.h>

/* A body with more instructions in the innermost loop is emitted once, always masked: the mask costs less there
 * than the time to compile the body twice. */
#define HEAVY_BODY 120
/* Maps with a short last axis and a body no heavier than this take MAX_UNROLL chunks a round, others two. Sums of
 * columns take MAX_UNROLL with bodies four times as heavy. */
#define LIGHT_BODY 10

/* ---- loops ---- */

static void emit_loops(struct cpu_loops *n, int depth);

/* What runs inside the first `depth` loops. */
static void emit_inside(struct cpu_loops *n, int depth) {
  if (depth == n->k->rank) {
    const struct kernel *k = n->k;
    int mapped = is_reduce(n) ? k->nmapped : k->noutputs;
    loops_values(n, &n->body, depth, depth);
    if (n->narrow)
      reduce_element(n);
    else if (is_reduce(n))
      reduce_step(n);
    loops_store(n, &n->body, k->result + k->nsums, k->nargs - mapped, mapped, true);
  } else {
    emit_loops(n, depth);
  }
}

/* Is argument `a` read or written inside a loop at `depth`? */
static bool used_inside(const struct cpu_loops *n, int a, int depth) {
  bool here = !is_reduce(n) || depth < n->kept || n->in_body[a];
  return here && !(n->k->still[a] >> n->order[depth] & 1);
}

/* The elements of a narrow reduction, one after the other, lanes running along the rows. */
static void emit_elements(struct cpu_loops *n, int depth) {
  LLVMValueRef outer[MAX_KERNEL_ARGS];
  int loop = n->order[depth];
  memcpy(outer, n->ptr, sizeof outer);
  loops_values(n, &n->body, depth, depth);
  for (int i = 0; i < n->narrow; i++) {
    n->index[loop] = int64(n, n->at = i);
    emit_inside(n, depth + 1);
    for (int a = 0; a < n->k->nargs; a++)
      if (used_inside(n, a, depth)) n->ptr[a] = loops_advance(n, n->ptr[a], n->stride[a][loop]);
  }
  memcpy(n->ptr, outer, sizeof outer);
  reduce_elements(n);
}

static void emit_depth(struct cpu_loops *n, int depth) {
  if (!is_reduce(n) || depth != n->kept) {
    emit_inside(n, depth);
    return;
  }
  reduce_start(n);
  if (n->narrow)
    emit_elements(n, depth);
  else
    emit_inside(n, depth);
  reduce_finish(n);
}

static LLVMBasicBlockRef new_block(struct cpu_loops *n, const char *name) {
  return llvm.AppendBasicBlockInContext(n->e->context, n->fn, name);
}

static LLVMBasicBlockRef here(struct cpu_loops *n) { return llvm.GetInsertBlock(n->e->builder); }
static void go_to(struct cpu_loops *n, LLVMBasicBlockRef b) { llvm.PositionBuilderAtEnd(n->e->builder, b); }

static LLVMValueRef phi(struct cpu_loops *n, LLVMValueRef from_value, LLVMBasicBlockRef from) {
  LLVMValueRef p = llvm.BuildPhi(n->e->builder, llvm.TypeOf(from_value), "");
  llvm.AddIncoming(p, &from_value, &from, 1);
  return p;
}

static void phi_add(LLVMValueRef p, LLVMValueRef value, LLVMBasicBlockRef from) {
  llvm.AddIncoming(p, &value, &from, 1);
}

/* The accumulators that a loop at `depth` carries. */
enum { MAX_CARRIED = 2 * MAX_UNROLL * MAX_KERNEL_SUMS };
struct carried {
  LLVMValueRef *slot[MAX_CARRIED];
  int count;
};

static struct carried carried_by(struct cpu_loops *n, int depth) {
  struct carried c = {.count = 0};
  if (!is_reduce(n) || depth < n->kept) return c;
  for (int s = 0; s < n->k->nsums; s++)
    for (int i = 0; i < n->chunks; i++) {
      c.slot[c.count++] = &n->acc[s][i];
      if (kernel_is_arg(n->k) || tracks_nan(n)) c.slot[c.count++] = &n->extra[s][i];
    }
  return c;
}

/* Replaces what is carried by phis with one edge; `phis` remembers them. */
static void carried_enter(struct cpu_loops *n, struct carried *c, LLVMBasicBlockRef from,
                          LLVMValueRef *phis) {
  for (int s = 0; s < c->count; s++) *c->slot[s] = phis[s] = phi(n, *c->slot[s], from);
}

static void carried_edge(struct carried *c, LLVMValueRef *phis, LLVMBasicBlockRef from) {
  for (int s = 0; s < c->count; s++) phi_add(phis[s], *c->slot[s], from);
}

static void carried_save(const struct carried *c, LLVMValueRef *out) {
  for (int s = 0; s < c->count; s++) out[s] = *c->slot[s];
}

static void carried_restore(struct carried *c, LLVMValueRef *phis) {
  for (int s = 0; s < c->count; s++) *c->slot[s] = phis[s];
}

/* A loop one element at a time. */
static void emit_scalar_loop(struct cpu_loops *n, int depth) {
  LLVMBuilderRef ir = n->e->builder;
  int loop = n->order[depth];
  LLVMBasicBlockRef before = here(n), enter = new_block(n, "enter"), round = new_block(n, "loop"),
                    done = new_block(n, "done");
  struct carried c = carried_by(n, depth);
  LLVMValueRef start[MAX_CARRIED], phis[MAX_CARRIED], at_end[MAX_CARRIED];
  LLVMValueRef outer[MAX_KERNEL_ARGS], ptr_phi[MAX_KERNEL_ARGS] = {NULL};
  carried_save(&c, start);
  llvm.BuildCondBr(ir, llvm.BuildICmp(ir, LLVMIntSGT, n->extent[loop], int64(n, 0), ""), enter, done);

  go_to(n, enter);
  loops_values(n, &n->body, depth, depth);
  llvm.BuildBr(ir, round);

  go_to(n, round);
  LLVMValueRef i = phi(n, int64(n, 0), enter);
  carried_enter(n, &c, enter, phis);
  for (int a = 0; a < n->k->nargs; a++) {
    outer[a] = n->ptr[a];
    if (used_inside(n, a, depth)) n->ptr[a] = ptr_phi[a] = phi(n, outer[a], enter);
  }
  n->index[loop] = i;
  emit_depth(n, depth + 1);

  LLVMBasicBlockRef end = here(n);
  for (int a = 0; a < n->k->nargs; a++) {
    if (ptr_phi[a]) phi_add(ptr_phi[a], loops_advance(n, ptr_phi[a], n->stride[a][loop]), end);
    n->ptr[a] = outer[a];
  }
  LLVMValueRef next = llvm.BuildAdd(ir, i, int64(n, 1), "");
  phi_add(i, next, end);
  carried_edge(&c, phis, end);
  carried_save(&c, at_end);
  llvm.BuildCondBr(ir, llvm.BuildICmp(ir, LLVMIntSLT, next, n->extent[loop], ""), round, done);

  go_to(n, done);
  carried_restore(&c, start);
  carried_enter(n, &c, before, phis);
  carried_restore(&c, at_end);
  carried_edge(&c, phis, end);
  carried_restore(&c, phis);
}

/* One round of the vector loop, lanes i.. on. */
static void emit_round(struct cpu_loops *n, int depth, LLVMValueRef i) {
  LLVMBuilderRef ir = n->e->builder;
  LLVMValueRef outer[MAX_KERNEL_ARGS];
  for (int a = 0; a < n->k->nargs; a++) {
    outer[a] = n->ptr[a];
    if (!used_inside(n, a, depth) || n->k->args[a].vector == STRIDE_ZERO) continue;
    if (n->k->args[a].vector == STRIDE_ONE)
      n->ptr[a] = llvm.BuildGEP2(ir, emit_memory_type(n->e, arg_dtype(n, a), 1), n->ptr[a], &i, 1, "");
    else
      n->ptr[a] = loops_advance(n, n->ptr[a], llvm.BuildMul(ir, i, n->stride[a][n->k->vector], ""));
  }
  n->index[n->k->vector] = i;
  emit_depth(n, depth + 1);
  for (int a = 0; a < n->k->nargs; a++) n->ptr[a] = outer[a];
}

/* Active lanes of the chunk that starts at `i`; `last` if no whole chunk is left. */
static void set_mask(struct cpu_loops *n, LLVMValueRef i, bool last) {
  LLVMBuilderRef ir = n->e->builder;
  LLVMValueRef rest = llvm.BuildSub(ir, n->extent[n->k->vector], i, ""), lanes = int64(n, KERNEL_LANES);
  n->active =
      last ? rest : llvm.BuildSelect(ir, llvm.BuildICmp(ir, LLVMIntSLT, rest, lanes, ""), rest, lanes, "");
  LLVMValueRef count = emit_splat(n->e, llvm.BuildTrunc(ir, n->active, i32(n), ""));
  n->mask = llvm.BuildICmp(ir, LLVMIntULT, emit_iota(n->e, 32), count, "");
}

/* Rounds of `chunks` chunks from `first` up to `limit`, at least one; returns the last block. `limit` is NULL if there
 * is one round alone. */
static LLVMBasicBlockRef emit_rounds(struct cpu_loops *n, int depth, LLVMBasicBlockRef round,
                                     LLVMValueRef first, LLVMBasicBlockRef from, LLVMValueRef limit,
                                     bool masked, LLVMBasicBlockRef done) {
  LLVMBuilderRef ir = n->e->builder;
  struct carried c = carried_by(n, depth);
  LLVMValueRef phis[MAX_CARRIED];
  go_to(n, round);
  LLVMValueRef i = limit ? phi(n, first, from) : first;
  if (limit) carried_enter(n, &c, from, phis);
  if (masked) set_mask(n, i, limit == NULL);
  emit_round(n, depth, i);
  n->mask = n->active = NULL;
  LLVMBasicBlockRef end = here(n);
  if (limit == NULL) {
    llvm.BuildBr(ir, done);
    return end;
  }
  LLVMValueRef next = llvm.BuildAdd(ir, i, int64(n, n->chunks * KERNEL_LANES), "");
  phi_add(i, next, end);
  carried_edge(&c, phis, end);
  llvm.BuildCondBr(ir, llvm.BuildICmp(ir, LLVMIntSLT, next, limit, ""), round, done);
  return end;
}

/* Whole rounds first, then masked chunks; a heavy body has masked chunks alone. */
static void emit_vector_loop(struct cpu_loops *n, int depth) {
  LLVMBuilderRef ir = n->e->builder;
  LLVMValueRef extent = n->extent[n->k->vector], zero = int64(n, 0);
  LLVMBasicBlockRef before = here(n), enter = new_block(n, "enter");
  LLVMBasicBlockRef whole = n->heavy ? NULL : new_block(n, "vectors");
  LLVMBasicBlockRef rest = n->heavy ? NULL : new_block(n, "rest");
  LLVMBasicBlockRef masked = new_block(n, "masked"), done = new_block(n, "done");
  struct carried c = carried_by(n, depth);
  LLVMValueRef start[MAX_CARRIED], phis[MAX_CARRIED], last[MAX_CARRIED];
  LLVMValueRef first = zero;
  LLVMBasicBlockRef from = enter;
  carried_save(&c, start);
  llvm.BuildCondBr(ir, llvm.BuildICmp(ir, LLVMIntSGT, extent, zero, ""), enter, done);

  go_to(n, enter);
  loops_values(n, &n->body, depth, depth);
  if (n->heavy) {
    llvm.BuildBr(ir, masked);
  } else {
    n->chunks = n->unroll;
    LLVMValueRef limit = llvm.BuildAnd(ir, extent, int64(n, -(int64_t)(n->chunks * KERNEL_LANES)), "");
    llvm.BuildCondBr(ir, llvm.BuildICmp(ir, LLVMIntNE, limit, zero, ""), whole, rest);
    LLVMBasicBlockRef end = emit_rounds(n, depth, whole, zero, enter, limit, false, rest);
    go_to(n, rest);
    first = phi(n, zero, enter);
    phi_add(first, limit, end);
    carried_save(&c, last);
    carried_restore(&c, start);
    carried_enter(n, &c, enter, phis);
    carried_restore(&c, last);
    carried_edge(&c, phis, end);
    carried_restore(&c, phis);
    n->chunks = 1;
    llvm.BuildCondBr(ir, llvm.BuildICmp(ir, LLVMIntSLT, first, extent, ""), masked, done);
    from = rest;
  }
  LLVMValueRef at_rest[MAX_CARRIED];
  carried_save(&c, at_rest);
  bool once = !n->heavy && n->unroll == 1;
  LLVMBasicBlockRef end = emit_rounds(n, depth, masked, first, from, once ? NULL : extent, true, done);

  go_to(n, done);
  carried_save(&c, last);
  carried_restore(&c, start);
  carried_enter(n, &c, before, phis);
  if (!n->heavy) {
    carried_restore(&c, at_rest);
    carried_edge(&c, phis, rest);
  }
  carried_restore(&c, last);
  carried_edge(&c, phis, end);
  carried_restore(&c, phis);
}

static void emit_loops(struct cpu_loops *n, int depth) {
  if (depth == n->vector_depth)
    emit_vector_loop(n, depth);
  else
    emit_scalar_loop(n, depth);
}

/* ---- the function ---- */

static void order_loops(struct cpu_loops *n) {
  const struct kernel *k = n->k;
  int count = 0;
  n->kept = k->rank - (is_reduce(n) ? k->nreduce : 0);
  bool first = !is_reduce(n) && k->strip, last = !first && k->vector < n->kept; /* of the kept loops */
  if (first) n->order[count++] = k->vector;
  for (int l = 0; l < k->rank; l++) {
    if (first && l == k->vector) continue;
    if (last && l == n->kept) n->order[count++] = k->vector;
    if (!last || l != k->vector) n->order[count++] = l;
  }
  if (count < k->rank) n->order[count++] = k->vector;
  for (int d = 0; d < k->rank; d++)
    if (n->order[d] == k->vector) n->vector_depth = d;
}

static bool asks_index(const struct cpu_program *g, int loop) {
  for (int v = 0; g->text && v < g->text->count; v++)
    if (g->live[v] && g->text->inst[v].op == S_INDEX && g->text->inst[v].a == loop) return true;
  return false;
}

static void load_sizes(struct cpu_loops *n, LLVMValueRef args) {
  LLVMBuilderRef ir = n->e->builder;
  const struct kernel *k = n->k;
  LLVMTypeRef pointer = llvm.PointerTypeInContext(n->e->context, 0);
  for (int l = 0; l < k->rank; l++) n->extent[l] = loops_size(n, l);
  for (int l = 0; l < k->rank; l++)
    if (asks_index(&n->body, l) || asks_index(&n->epilogue, l))
      n->start[l] = loops_size(n, kernel_nsizes(k) + l);
  for (int a = 0; a < k->nargs; a++) {
    LLVMValueRef at = int64(n, a);
    n->ptr[a] = llvm.BuildLoad2(ir, pointer, llvm.BuildGEP2(ir, pointer, args, &at, 1, ""), "");
    for (int l = 0; l < k->rank; l++) {
      if (l == k->vector && k->args[a].vector != STRIDE_ANY) continue; /* known */
      LLVMValueRef stride = loops_size(n, k->rank + a * k->rank + l);
      n->stride[a][l] = llvm.BuildMul(ir, stride, int64(n, dtype_size(arg_dtype(n, a))), "");
    }
    if (k->args[a].vector == STRIDE_ANY)
      n->lane_offset[a] =
          llvm.BuildMul(ir, emit_splat(n->e, n->stride[a][k->vector]), emit_iota(n->e, 64), "");
  }
}

/* How the vector loop runs: heavy bodies once, light ones around other loops several chunks a round. */
static void choose_shape(struct cpu_loops *n) {
  int weight = program_weight(&n->body, n->k->rank) * (n->narrow ? n->narrow : 1);
  n->heavy = weight > HEAVY_BODY;
  n->unroll = 1;
  if ((is_reduce(n) ? vector_is_kept(n) && !n->narrow : n->k->strip > 0) && weight <= 4 * LIGHT_BODY)
    n->unroll = is_reduce(n) || weight <= LIGHT_BODY ? MAX_UNROLL : 2;
  if (n->k->strip && n->unroll > n->k->strip) n->unroll = n->k->strip;
  n->chunks = 1;
}

/* A narrow reduction as it is emitted: the vector loop is that of its rows. */
static const struct kernel *along_rows(const struct kernel *k, struct arena *scratch) {
  if (!k->narrow) return k;
  struct kernel *turned = arena_new(scratch, struct kernel);
  *turned = *k;
  turned->vector = k->rank - 2;
  for (int a = 0; a < k->nargs; a++) turned->args[a].vector = k->rows[a];
  return turned;
}

static LLVMValueRef add_function(struct emit *e, const char *symbol, int given) {
  LLVMTypeRef params[2 + MAX_GIVEN] = {llvm.PointerTypeInContext(e->context, 0),
                                       llvm.PointerTypeInContext(e->context, 0)};
  for (int i = 0; i < given; i++) params[2 + i] = llvm.Int64TypeInContext(e->context);
  LLVMTypeRef type = llvm.FunctionType(llvm.VoidTypeInContext(e->context), params, 2 + (unsigned)given, 0);
  LLVMValueRef fn = llvm.AddFunction(e->module, symbol, type);
  unsigned nounwind = llvm.GetEnumAttributeKindForName("nounwind", 8);
  llvm.AddAttributeAtIndex(fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                           llvm.CreateEnumAttribute(e->context, nounwind, 0));
  llvm.SetValueName2(llvm.GetParam(fn, 0), "args", 4);
  llvm.SetValueName2(llvm.GetParam(fn, 1), "sizes", 5);
  return fn;
}

LLVMValueRef emit_shape(struct emit *e, const struct kernel *k, int given, const char *symbol,
                        struct arena *scratch) {
  struct cpu_loops *n = arena_new(scratch, struct cpu_loops);
  n->e = e;
  n->k = k = along_rows(k, scratch);
  n->narrow = k->narrow;
  n->stored = KERNEL_LANES;
  order_loops(n);
  program_init(n, &n->body, &k->body, k->result, kernel_results(k), true, scratch);
  if (is_reduce(n))
    program_init(n, &n->epilogue, &k->epilogue, k->epilogue_result, kernel_reduced(k), vector_is_kept(n),
                 scratch);
  for (int v = 0; v < k->body.count; v++)
    if (n->body.live[v] && k->body.inst[v].op == S_ARG) n->in_body[k->body.inst[v].a] = true;
  for (int a = k->nargs - k->nmapped; a < k->nargs; a++) n->in_body[a] = true;
  choose_shape(n);
  n->fn = add_function(e, symbol, given);
  n->sizes = llvm.GetParam(n->fn, 1);
  go_to(n, new_block(n, "entry"));
  load_sizes(n, llvm.GetParam(n->fn, 0));
  emit_depth(n, 0);
  llvm.BuildRetVoid(e->builder);
  return n->fn;
}

LLVMValueRef emit_kernel(struct emit *e, const struct kernel *k, const char *symbol, struct arena *scratch) {
  return emit_shape(e, k, 0, symbol, scratch);
}

void emit_of_shape(struct emit *e, LLVMValueRef shape, const uint64_t *given, int count, const char *symbol) {
  LLVMValueRef fn = add_function(e, symbol, 0), args[2 + MAX_GIVEN];
  llvm.PositionBuilderAtEnd(e->builder, llvm.AppendBasicBlockInContext(e->context, fn, "entry"));
  for (unsigned i = 0; i < 2; i++) args[i] = llvm.GetParam(fn, i);
  for (int i = 0; i < count; i++)
    args[2 + i] = llvm.ConstInt(llvm.Int64TypeInContext(e->context), given[i], 0);
  llvm.BuildCall2(e->builder, llvm.GlobalGetValueType(shape), shape, args, 2 + (unsigned)count, "");
  llvm.BuildRetVoid(e->builder);
}
