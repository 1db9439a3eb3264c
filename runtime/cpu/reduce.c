/* Accumulators, in the order that ir/scalar/kernel.h promises. */
#include "runtime/cpu/loops.h"

static LLVMValueRef combine(struct cpu_loops *n, LLVMValueRef a, LLVMValueRef b) {
  enum dtype d = kernel_acc_dtype(n->k);
  struct sinst i = {.op = (uint8_t)reduce_primitive(n->k->reduce), .dtype = (uint8_t)d};
  return emit_instruction(n->e, &i, d, a, b, NULL);
}

static LLVMValueRef compare(struct cpu_loops *n, enum sop op, LLVMValueRef a, LLVMValueRef b) {
  struct sinst i = {.op = (uint8_t)op, .dtype = DT_BOOL};
  return emit_instruction(n->e, &i, kernel_acc_dtype(n->k), a, b, NULL);
}

/* Where `b` beats `a`: larger (smaller), or the first NaN. */
static LLVMValueRef beats(struct cpu_loops *n, LLVMValueRef a, LLVMValueRef b) {
  LLVMBuilderRef ir = n->e->builder;
  LLVMValueRef better = n->k->reduce == REDUCE_ARGMAX ? compare(n, S_LT, a, b) : compare(n, S_LT, b, a);
  if (!dtype_is_float(kernel_acc_dtype(n->k))) return better;
  LLVMValueRef first_nan = llvm.BuildAnd(ir, compare(n, S_NE, b, b), compare(n, S_EQ, a, a), "");
  return llvm.BuildOr(ir, better, first_nan, "");
}

/* Lanes lo and hi hold winners of their own; of equals the smaller index wins. */
static LLVMValueRef hi_wins(struct cpu_loops *n, LLVMValueRef lo, LLVMValueRef hi, LLVMValueRef lo_index,
                            LLVMValueRef hi_index) {
  LLVMBuilderRef ir = n->e->builder;
  LLVMValueRef same = compare(n, S_EQ, lo, hi);
  if (dtype_is_float(kernel_acc_dtype(n->k)))
    same =
        llvm.BuildOr(ir, same, llvm.BuildAnd(ir, compare(n, S_NE, lo, lo), compare(n, S_NE, hi, hi), ""), "");
  LLVMValueRef earlier = llvm.BuildICmp(ir, LLVMIntSLT, hi_index, lo_index, "");
  return llvm.BuildOr(ir, beats(n, lo, hi), llvm.BuildAnd(ir, same, earlier, ""), "");
}

void reduce_start(struct cpu_loops *n) {
  enum dtype d = kernel_acc_dtype(n->k);
  for (int c = 0; c < n->chunks; c++) {
    n->acc[c] = emit_const(n->e, d, reduce_identity(n->k->reduce, d), KERNEL_LANES);
    n->extra[c] = emit_const(n->e, tracks_nan(n) ? d : DT_I32, 0, KERNEL_LANES);
  }
}

/* The index along the one reduced loop of argmax and argmin, per lane. */
static LLVMValueRef reduced_index(struct cpu_loops *n) {
  LLVMBuilderRef ir = n->e->builder;
  int loop = n->order[n->kept];
  LLVMValueRef at = emit_splat(n->e, llvm.BuildTrunc(ir, n->index[loop], i32(n), ""));
  return loop == n->k->vector ? llvm.BuildAdd(ir, at, emit_iota(n->e, 32), "") : at;
}

/* acc = S_MAX or S_MIN of acc and x, but for the NaNs that reduce_settle puts back. */
static void track_nan(struct cpu_loops *n, int c, LLVMValueRef x, LLVMValueRef mask) {
  LLVMBuilderRef ir = n->e->builder;
  LLVMValueRef keep =
      n->k->reduce == REDUCE_MAX ? compare(n, S_LT, x, n->acc[c]) : compare(n, S_LT, n->acc[c], x);
  LLVMValueRef next = llvm.BuildSelect(ir, keep, n->acc[c], x, ""), is_nan = compare(n, S_NE, x, x);
  if (mask) is_nan = llvm.BuildAnd(ir, is_nan, mask, "");
  n->acc[c] = mask ? llvm.BuildSelect(ir, mask, next, n->acc[c], "") : next;
  n->extra[c] = llvm.BuildSelect(ir, is_nan, x, n->extra[c], "");
}

static void reduce_settle(struct cpu_loops *n) {
  for (int c = 0; tracks_nan(n) && c < n->chunks; c++) {
    LLVMValueRef is_nan = compare(n, S_NE, n->extra[c], n->extra[c]);
    n->acc[c] = llvm.BuildSelect(n->e->builder, is_nan, n->extra[c], n->acc[c], "");
  }
}

void reduce_step(struct cpu_loops *n) {
  LLVMBuilderRef ir = n->e->builder;
  LLVMValueRef mask = vector_is_kept(n) ? NULL : n->mask; /* lanes of kept loops are masked when stored */
  for (int c = 0; c < n->chunks; c++) {
    LLVMValueRef x = loops_lanes(n, &n->body, n->k->result[0], c);
    if (kernel_is_arg(n->k)) {
      LLVMValueRef wins = beats(n, n->acc[c], x);
      if (mask) wins = llvm.BuildAnd(ir, wins, mask, "");
      n->extra[c] = llvm.BuildSelect(ir, wins, reduced_index(n), n->extra[c], "");
      n->acc[c] = llvm.BuildSelect(ir, wins, x, n->acc[c], "");
      continue;
    }
    if (tracks_nan(n)) {
      track_nan(n, c, x, mask);
      continue;
    }
    LLVMValueRef next = combine(n, n->acc[c], x);
    n->acc[c] = mask ? llvm.BuildSelect(ir, mask, next, n->acc[c], "") : next;
  }
}

static LLVMValueRef half(struct cpu_loops *n, LLVMValueRef v, int lanes, int first) {
  LLVMValueRef lane[KERNEL_LANES];
  for (int i = 0; i < lanes; i++) lane[i] = llvm.ConstInt(i32(n), (unsigned)(first + i), 0);
  if (lanes == 1) return llvm.BuildExtractElement(n->e->builder, v, lane[0], "");
  return llvm.BuildShuffleVector(n->e->builder, v, llvm.GetPoison(llvm.TypeOf(v)),
                                 llvm.ConstVector(lane, (unsigned)lanes), "");
}

/* The lanes of the accumulator as one value: 0+8, 1+9, ...; then 0+4, ... */
static void reduce_lanes(struct cpu_loops *n) {
  LLVMBuilderRef ir = n->e->builder;
  for (int lanes = KERNEL_LANES / 2; lanes > 0; lanes /= 2) {
    LLVMValueRef lo = half(n, n->acc[0], lanes, 0), hi = half(n, n->acc[0], lanes, lanes);
    if (kernel_is_arg(n->k)) {
      LLVMValueRef lo_index = half(n, n->extra[0], lanes, 0), hi_index = half(n, n->extra[0], lanes, lanes);
      LLVMValueRef wins = hi_wins(n, lo, hi, lo_index, hi_index);
      n->acc[0] = llvm.BuildSelect(ir, wins, hi, lo, "");
      n->extra[0] = llvm.BuildSelect(ir, wins, hi_index, lo_index, "");
    } else {
      n->acc[0] = combine(n, lo, hi);
    }
  }
}

void reduce_finish(struct cpu_loops *n) {
  bool in_lanes = vector_is_kept(n);
  reduce_settle(n);
  if (!in_lanes) reduce_lanes(n);
  loops_values(n, &n->epilogue, 0, n->k->rank);
  loops_store(n, &n->epilogue, n->k->epilogue_result, in_lanes);
}
