/* SPDX-License-Identifier: Apache-2.0 */
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
  for (int s = 0; s < n->k->nsums; s++)
    for (int c = 0; c < n->chunks; c++) {
      n->acc[s][c] = emit_const(n->e, d, reduce_identity(n->k->reduce, d), KERNEL_LANES);
      n->extra[s][c] = emit_const(n->e, tracks_nan(n) ? d : DT_I32, 0, KERNEL_LANES);
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
static void track_nan(struct cpu_loops *n, LLVMValueRef *acc, LLVMValueRef *nan, LLVMValueRef x,
                      LLVMValueRef mask) {
  LLVMBuilderRef ir = n->e->builder;
  LLVMValueRef keep = n->k->reduce == REDUCE_MAX ? compare(n, S_LT, x, *acc) : compare(n, S_LT, *acc, x);
  LLVMValueRef next = llvm.BuildSelect(ir, keep, *acc, x, ""), is_nan = compare(n, S_NE, x, x);
  if (mask) is_nan = llvm.BuildAnd(ir, is_nan, mask, "");
  *acc = mask ? llvm.BuildSelect(ir, mask, next, *acc, "") : next;
  *nan = llvm.BuildSelect(ir, is_nan, x, *nan, "");
}

static void reduce_settle(struct cpu_loops *n) {
  for (int s = 0; tracks_nan(n) && s < n->k->nsums; s++)
    for (int c = 0; c < n->chunks; c++) {
      LLVMValueRef is_nan = compare(n, S_NE, n->extra[s][c], n->extra[s][c]);
      n->acc[s][c] = llvm.BuildSelect(n->e->builder, is_nan, n->extra[s][c], n->acc[s][c], "");
    }
}

static void take(struct cpu_loops *n, int s, int c, LLVMValueRef mask) {
  LLVMBuilderRef ir = n->e->builder;
  LLVMValueRef *acc = &n->acc[s][c], *extra = &n->extra[s][c];
  LLVMValueRef x = loops_lanes(n, &n->body, n->k->result[s], c);
  if (kernel_is_arg(n->k)) {
    LLVMValueRef wins = beats(n, *acc, x);
    if (mask) wins = llvm.BuildAnd(ir, wins, mask, "");
    *extra = llvm.BuildSelect(ir, wins, reduced_index(n), *extra, "");
    *acc = llvm.BuildSelect(ir, wins, x, *acc, "");
  } else if (tracks_nan(n)) {
    track_nan(n, acc, extra, x, mask);
  } else {
    LLVMValueRef next = combine(n, *acc, x);
    *acc = mask ? llvm.BuildSelect(ir, mask, next, *acc, "") : next;
  }
}

void reduce_step(struct cpu_loops *n) {
  LLVMValueRef mask = vector_is_kept(n) ? NULL : n->mask; /* lanes of kept loops are masked when stored */
  for (int s = 0; s < n->k->nsums; s++)
    for (int c = 0; c < n->chunks; c++) take(n, s, c, mask);
}

void reduce_element(struct cpu_loops *n) {
  enum dtype d = kernel_acc_dtype(n->k);
  LLVMValueRef identity = emit_const(n->e, d, reduce_identity(n->k->reduce, d), KERNEL_LANES);
  for (int s = 0; s < n->k->nsums; s++)
    n->element[s][n->at] = combine(n, identity, loops_lanes(n, &n->body, n->k->result[s], 0));
}

/* Lanes that a row does not fill hold the identity, which changes nothing behind another operand. */
void reduce_elements(struct cpu_loops *n) {
  for (int s = 0; s < n->k->nsums; s++) {
    LLVMValueRef *at = n->element[s];
    for (int half = KERNEL_LANES / 2, count = n->narrow; half > 0; half /= 2) {
      for (int i = 0; i + half < count; i++) at[i] = combine(n, at[i], at[i + half]);
      if (count > half) count = half;
    }
    n->acc[s][0] = at[0];
  }
}

/* The lanes of an accumulator as one value: 0+8, 1+9, ...; then 0+4, ... */
static void reduce_lanes(struct cpu_loops *n, LLVMValueRef *acc, LLVMValueRef *index) {
  LLVMBuilderRef ir = n->e->builder;
  for (int lanes = KERNEL_LANES / 2; lanes > 0; lanes /= 2) {
    LLVMValueRef lo = loops_part(n, *acc, lanes, 0), hi = loops_part(n, *acc, lanes, lanes);
    if (kernel_is_arg(n->k)) {
      LLVMValueRef lo_index = loops_part(n, *index, lanes, 0), hi_index = loops_part(n, *index, lanes, lanes);
      LLVMValueRef wins = hi_wins(n, lo, hi, lo_index, hi_index);
      *acc = llvm.BuildSelect(ir, wins, hi, lo, "");
      *index = llvm.BuildSelect(ir, wins, hi_index, lo_index, "");
    } else {
      *acc = combine(n, lo, hi);
    }
  }
}

void reduce_finish(struct cpu_loops *n) {
  const struct kernel *k = n->k;
  bool in_lanes = vector_is_kept(n);
  reduce_settle(n);
  for (int s = 0; !in_lanes && s < k->nsums; s++) reduce_lanes(n, &n->acc[s][0], &n->extra[s][0]);
  loops_values(n, &n->epilogue, 0, k->rank);
  loops_store(n, &n->epilogue, k->epilogue_result, k->nargs - k->noutputs, kernel_reduced(k), in_lanes);
}
