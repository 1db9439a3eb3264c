/* A kernel as one LLVM function: the loop nest and the memory around scalar programs.
 *
 * The vector loop runs in chunks of KERNEL_LANES lanes whatever the dtype. A chunk at the end runs the very same
 * instructions with a lane mask on memory, so that body and tail give the same bits. Every loop first checks that
 * it runs at all; between that check and its first round stands what does not change in it. A value is emitted
 * as soon as the loops it depends on are entered, so no pass has to hoist it.
 *
 * Order of the loops: those of a map and the kept ones of a reduction run in their own order but the vector loop
 * last; reduced loops follow in their own order, as ir/kernel.h promises.
 *
 * Arguments may be the same buffer: all values of a chunk are read before the first one is written. */
#include "runtime/cpu/emit.h"

#include <assert.h>
#include <stddef.h>

/* Chunks of one round when a kept vector loop encloses reduced ones: columns are summed 256 bytes at a time,
 * which memory likes better than 64. */
#define MAX_UNROLL 4
/* A body with more instructions in the innermost loop is emitted once, always masked: the mask costs less there
 * than the time to compile the body twice. */
#define HEAVY_BODY 40

/* A scalar program and what its values have become at the current place. */
struct program {
  const struct sprog *text;
  bool *live;
  bool *uniform;                     /* the same in all lanes */
  bool *needs_splat;                 /* uniform, but used as a vector */
  int *depth;                        /* loops to enter before the value is known */
  LLVMValueRef *scalar;              /* uniform values */
  LLVMValueRef *splat;               /* uniform values that need it */
  LLVMValueRef (*lanes)[MAX_UNROLL]; /* the others, per chunk of a round */
};

struct nest {
  struct emit *e;
  const struct kernel *k;
  LLVMValueRef fn;
  int order[MAX_RANK]; /* loops, as they nest */
  int vector_depth;    /* where the vector loop stands in `order` */
  int kept;            /* the first `kept` of `order` are not reduced over */
  int unroll;          /* chunks per round of the unmasked vector loop */
  bool heavy;
  bool body_reads[MAX_KERNEL_ARGS];
  struct program body, epilogue;
  LLVMValueRef sizes;
  LLVMValueRef extent[MAX_RANK];
  LLVMValueRef stride[MAX_KERNEL_ARGS][MAX_RANK]; /* bytes */
  LLVMValueRef lane_offset[MAX_KERNEL_ARGS];      /* STRIDE_ANY: lane number times stride, bytes */
  /* The current place: */
  LLVMValueRef index[MAX_RANK];      /* i64; the first lane's for the vector loop */
  LLVMValueRef ptr[MAX_KERNEL_ARGS]; /* the element at `index` */
  LLVMValueRef mask;                 /* active lanes, or NULL for all */
  LLVMValueRef active;               /* their number (i64), or NULL */
  int chunks;                        /* of this round */
  LLVMValueRef acc[MAX_UNROLL];
  LLVMValueRef extra[MAX_UNROLL]; /* argmax, argmin: the index; max, min of floats: the last NaN seen, or 0 */
};

static LLVMTypeRef i64(struct nest *n) { return LLVMInt64TypeInContext(n->e->context); }
static LLVMTypeRef i32(struct nest *n) { return LLVMInt32TypeInContext(n->e->context); }
static LLVMTypeRef i8(struct nest *n) { return LLVMInt8TypeInContext(n->e->context); }
static LLVMValueRef int64(struct nest *n, int64_t v) { return LLVMConstInt(i64(n), (uint64_t)v, 1); }

static bool is_reduce(const struct nest *n) { return n->k->kind == KERNEL_REDUCE; }
static bool is_arg_reduce(const struct nest *n) {
  return is_reduce(n) && (n->k->reduce == REDUCE_ARGMAX || n->k->reduce == REDUCE_ARGMIN);
}
static enum dtype acc_dtype(const struct nest *n) { return s_dtype(&n->k->body, n->k->result[0]); }
/* NaNs are kept apart, so that the loop waits for one instruction a round, not for three. */
static bool tracks_nan(const struct nest *n) {
  return is_reduce(n) && (n->k->reduce == REDUCE_MAX || n->k->reduce == REDUCE_MIN) &&
         dtype_is_float(acc_dtype(n));
}
static bool vector_is_kept(const struct nest *n) { return n->vector_depth < n->kept; }
static enum dtype arg_dtype(const struct nest *n, int a) { return (enum dtype)n->k->args[a].dtype; }

/* ---- programs: what is live, uniform and how deep ---- */

static int operands(const struct sinst *i, int out[3]) {
  switch ((enum sop)i->op) {
  case S_CONST:
  case S_ARG:
  case S_INDEX:
  case S_PARAM: return 0;
  case S_NEG:
  case S_ABS:
  case S_SQRT:
  case S_FLOOR:
  case S_CEIL:
  case S_TRUNC:
  case S_RINT:
  case S_NOT:
  case S_CONVERT:
  case S_BITCAST: out[0] = i->a; return 1;
  case S_FMA:
  case S_SELECT: out[0] = i->a, out[1] = i->b, out[2] = i->c; return 3;
  default: out[0] = i->a, out[1] = i->b; return 2;
  }
}

static void mark_live(struct program *g, const sval *results, int nresults) {
  int use[3];
  for (int r = 0; r < nresults; r++) g->live[results[r]] = true;
  for (int v = g->text->count - 1; v >= 0; v--) {
    int nuse = g->live[v] ? operands(&g->text->inst[v], use) : 0;
    for (int u = 0; u < nuse; u++) g->live[use[u]] = true;
  }
}

/* `in_lanes`: the program runs in vector lanes, not once for all of them. */
static void mark_places(struct nest *n, struct program *g, bool in_lanes) {
  const struct kernel *k = n->k;
  bool vector_innermost = n->vector_depth == k->rank - 1;
  int use[3];
  for (int v = 0; v < g->text->count; v++) {
    const struct sinst *i = &g->text->inst[v];
    g->uniform[v] = true;
    if (i->op == S_INDEX) {
      g->uniform[v] = !in_lanes || i->a != k->vector;
      for (int d = 0; d < k->rank; d++)
        if (n->order[d] == i->a) g->depth[v] = d + 1;
    } else if (i->op == S_ARG) {
      g->uniform[v] = !in_lanes || (i->a < k->nargs && k->args[i->a].vector == STRIDE_ZERO);
      g->depth[v] = g->uniform[v] && vector_innermost ? k->rank - 1 : k->rank;
    }
    int nuse = operands(i, use);
    for (int u = 0; u < nuse; u++) {
      g->uniform[v] &= g->uniform[use[u]];
      if (g->depth[use[u]] > g->depth[v]) g->depth[v] = g->depth[use[u]];
    }
  }
}

static void mark_splats(struct program *g, const sval *results, int nresults) {
  int use[3];
  for (int v = 0; v < g->text->count; v++) {
    int nuse = g->live[v] && !g->uniform[v] ? operands(&g->text->inst[v], use) : 0;
    for (int u = 0; u < nuse; u++) g->needs_splat[use[u]] = g->uniform[use[u]];
  }
  for (int r = 0; r < nresults; r++) g->needs_splat[results[r]] = g->uniform[results[r]];
}

static void program_init(struct nest *n, struct program *g, const struct sprog *p, const sval *results,
                         int nresults, bool in_lanes, struct arena *scratch) {
  size_t count = (size_t)p->count;
  g->text = p;
  g->live = arena_new_array(scratch, count, bool);
  g->uniform = arena_new_array(scratch, count, bool);
  g->needs_splat = arena_new_array(scratch, count, bool);
  g->depth = arena_new_array(scratch, count, int);
  g->scalar = arena_new_array(scratch, count, LLVMValueRef);
  g->splat = arena_new_array(scratch, count, LLVMValueRef);
  g->lanes = arena_array(scratch, count, sizeof *g->lanes);
  mark_live(g, results, nresults);
  mark_places(n, g, in_lanes);
  if (in_lanes) mark_splats(g, results, nresults);
}

/* Instructions that the innermost loop runs for each chunk. */
static int program_weight(const struct program *g, int depth) {
  int weight = 0;
  for (int v = 0; v < g->text->count; v++)
    if (g->live[v] && g->depth[v] >= depth) weight += dtype_size(s_dtype(g->text, v)) == 8 ? 2 : 1;
  return weight;
}

/* ---- memory ---- */

static LLVMValueRef advance(struct nest *n, LLVMValueRef p, LLVMValueRef bytes) {
  return LLVMBuildGEP2(n->e->builder, i8(n), p, &bytes, 1, "");
}

static LLVMValueRef from_memory(struct nest *n, enum dtype d, LLVMValueRef v) {
  if (d != DT_BOOL) return v;
  return LLVMBuildICmp(n->e->builder, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
}

static LLVMValueRef to_memory(struct nest *n, enum dtype d, LLVMValueRef v) {
  if (d != DT_BOOL) return v;
  return LLVMBuildZExt(n->e->builder, v, emit_memory_type(n->e, d, emit_lanes(v)), "");
}

/* The lanes of argument `a` in chunk `chunk` of a round: a pointer, or a vector of them for STRIDE_ANY. */
static LLVMValueRef lane_address(struct nest *n, int a, int chunk) {
  LLVMValueRef p = n->ptr[a];
  if (n->k->args[a].vector == STRIDE_ONE) {
    if (chunk > 0) p = advance(n, p, int64(n, chunk * KERNEL_LANES * dtype_size(arg_dtype(n, a))));
    return p;
  }
  if (chunk > 0) {
    LLVMValueRef stride = n->stride[a][n->k->vector];
    p = advance(n, p, LLVMBuildMul(n->e->builder, stride, int64(n, chunk * KERNEL_LANES), ""));
  }
  return advance(n, p, n->lane_offset[a]);
}

static LLVMValueRef load_lanes(struct nest *n, int a, int chunk) {
  struct emit *e = n->e;
  enum dtype d = arg_dtype(n, a);
  LLVMTypeRef t = emit_memory_type(e, d, KERNEL_LANES);
  LLVMValueRef p = lane_address(n, a, chunk), v;
  unsigned align = (unsigned)dtype_size(d);
  if (n->k->args[a].vector == STRIDE_ONE && n->mask == NULL) {
    v = LLVMBuildLoad2(e->builder, t, p, "");
    LLVMSetAlignment(v, align);
  } else {
    LLVMValueRef mask = n->mask ? n->mask : LLVMConstAllOnes(emit_type(e, DT_BOOL, KERNEL_LANES));
    LLVMTypeRef types[] = {t, LLVMTypeOf(p)};
    LLVMValueRef args[] = {p, LLVMConstInt(i32(n), align, 0), mask, LLVMConstNull(t)};
    bool one = n->k->args[a].vector == STRIDE_ONE;
    v = emit_intrinsic(e, one ? "llvm.masked.load" : "llvm.masked.gather", types, 2, args, 4);
  }
  return from_memory(n, d, v);
}

static LLVMValueRef load_scalar(struct nest *n, int a) {
  enum dtype d = arg_dtype(n, a);
  LLVMValueRef v = LLVMBuildLoad2(n->e->builder, emit_memory_type(n->e, d, 1), n->ptr[a], "");
  LLVMSetAlignment(v, (unsigned)dtype_size(d));
  return from_memory(n, d, v);
}

static void store_scalar(struct nest *n, int a, LLVMValueRef v) {
  LLVMValueRef s = LLVMBuildStore(n->e->builder, to_memory(n, arg_dtype(n, a), v), n->ptr[a]);
  LLVMSetAlignment(s, (unsigned)dtype_size(arg_dtype(n, a)));
}

static void store_lanes(struct nest *n, int a, int chunk, LLVMValueRef v) {
  struct emit *e = n->e;
  enum dtype d = arg_dtype(n, a);
  if (n->k->args[a].vector == STRIDE_ZERO) { /* all lanes write one element: the last one wins */
    LLVMValueRef active = n->active ? n->active : int64(n, KERNEL_LANES);
    LLVMValueRef last = LLVMBuildSub(e->builder, active, int64(n, 1), "");
    store_scalar(n, a, LLVMBuildExtractElement(e->builder, v, last, ""));
    return;
  }
  v = to_memory(n, d, v);
  LLVMValueRef p = lane_address(n, a, chunk);
  unsigned align = (unsigned)dtype_size(d);
  if (n->k->args[a].vector == STRIDE_ONE && n->mask == NULL) {
    LLVMSetAlignment(LLVMBuildStore(e->builder, v, p), align);
    return;
  }
  LLVMValueRef mask = n->mask ? n->mask : LLVMConstAllOnes(emit_type(e, DT_BOOL, KERNEL_LANES));
  LLVMTypeRef types[] = {LLVMTypeOf(v), LLVMTypeOf(p)};
  LLVMValueRef args[] = {v, p, LLVMConstInt(i32(n), align, 0), mask};
  bool one = n->k->args[a].vector == STRIDE_ONE;
  emit_intrinsic(e, one ? "llvm.masked.store" : "llvm.masked.scatter", types, 2, args, 4);
}

/* ---- values ---- */

static LLVMValueRef scalar_value(struct nest *n, const struct program *g, int v) {
  const struct sinst *i = &g->text->inst[v];
  if (i->op == S_CONST) return emit_const(n->e, (enum dtype)i->dtype, i->bits, 1);
  return g->scalar[v];
}

static LLVMValueRef lanes_value(struct nest *n, const struct program *g, int v, int chunk) {
  const struct sinst *i = &g->text->inst[v];
  if (i->op == S_CONST) return emit_const(n->e, (enum dtype)i->dtype, i->bits, KERNEL_LANES);
  return g->uniform[v] ? g->splat[v] : g->lanes[v][chunk];
}

static LLVMValueRef index_lanes(struct nest *n, int chunk) {
  LLVMBuilderRef ir = n->e->builder;
  LLVMValueRef lane = LLVMConstAdd(emit_iota(n->e, 64),
                                   emit_const(n->e, DT_I64, (uint64_t)chunk * KERNEL_LANES, KERNEL_LANES));
  return LLVMBuildAdd(ir, emit_splat(n->e, n->index[n->k->vector]), lane, "");
}

static LLVMValueRef load_size(struct nest *n, int number) {
  LLVMValueRef at = int64(n, number), p = LLVMBuildGEP2(n->e->builder, i64(n), n->sizes, &at, 1, "");
  LLVMValueRef size = LLVMBuildLoad2(n->e->builder, i64(n), p, "");
  LLVMSetAlignment(size, 8);
  return size;
}

static void emit_uniform(struct nest *n, struct program *g, int v) {
  const struct sinst *i = &g->text->inst[v];
  if (i->op == S_CONST) return;
  if (i->op == S_ARG) {
    g->scalar[v] = i->a == n->k->nargs ? (is_arg_reduce(n) ? n->extra[0] : n->acc[0]) : load_scalar(n, i->a);
  } else if (i->op == S_INDEX) {
    g->scalar[v] = n->index[i->a];
  } else if (i->op == S_PARAM) {
    g->scalar[v] = load_size(n, n->k->rank + n->k->nargs * n->k->rank + i->a);
  } else {
    int use[3];
    LLVMValueRef x[3] = {NULL, NULL, NULL};
    int nuse = operands(i, use);
    for (int u = 0; u < nuse; u++) x[u] = scalar_value(n, g, use[u]);
    enum dtype operand = s_dtype(g->text, i->op == S_SELECT ? i->b : i->a);
    g->scalar[v] = emit_instruction(n->e, i, operand, x[0], x[1], x[2]);
  }
  if (g->needs_splat[v]) g->splat[v] = emit_splat(n->e, g->scalar[v]);
}

static void emit_lane_value(struct nest *n, struct program *g, int v, int chunk) {
  const struct sinst *i = &g->text->inst[v];
  LLVMValueRef *out = &g->lanes[v][chunk];
  if (i->op == S_ARG) {
    if (i->a == n->k->nargs)
      *out = is_arg_reduce(n) ? n->extra[chunk] : n->acc[chunk];
    else
      *out = load_lanes(n, i->a, chunk);
  } else if (i->op == S_INDEX) {
    *out = index_lanes(n, chunk);
  } else {
    int use[3];
    LLVMValueRef x[3] = {NULL, NULL, NULL};
    int nuse = operands(i, use);
    for (int u = 0; u < nuse; u++) x[u] = lanes_value(n, g, use[u], chunk);
    enum dtype operand = s_dtype(g->text, i->op == S_SELECT ? i->b : i->a);
    *out = emit_instruction(n->e, i, operand, x[0], x[1], x[2]);
  }
}

/* Emits the live values that become known at depths first..last. */
static void emit_values(struct nest *n, struct program *g, int first, int last) {
  for (int v = 0; v < g->text->count; v++) {
    if (!g->live[v] || g->depth[v] < first || g->depth[v] > last) continue;
    if (g->uniform[v])
      emit_uniform(n, g, v);
    else
      for (int c = 0; c < n->chunks; c++) emit_lane_value(n, g, v, c);
  }
}

static void store_results(struct nest *n, struct program *g, const sval *results, bool in_lanes) {
  int first = n->k->nargs - n->k->noutputs;
  for (int r = 0; r < n->k->noutputs; r++) {
    if (!in_lanes)
      store_scalar(n, first + r, scalar_value(n, g, results[r]));
    else
      for (int c = 0; c < n->chunks; c++) store_lanes(n, first + r, c, lanes_value(n, g, results[r], c));
  }
}

/* ---- reductions ---- */

static uint64_t identity_bits(enum reduce_op op, enum dtype d) {
  bool largest = op == REDUCE_MIN || op == REDUCE_ARGMIN;
  if (op == REDUCE_SUM) return 0;
  if (op == REDUCE_PROD)
    return d == DT_F32 ? UINT64_C(0x3f800000) : d == DT_F64 ? UINT64_C(0x3ff0000000000000) : 1;
  switch (d) {
  case DT_F32: return largest ? UINT64_C(0x7f800000) : UINT64_C(0xff800000);
  case DT_F64: return largest ? UINT64_C(0x7ff0000000000000) : UINT64_C(0xfff0000000000000);
  case DT_I32: return largest ? INT32_MAX : UINT64_C(0x80000000);
  case DT_I64: return largest ? INT64_MAX : UINT64_C(0x8000000000000000);
  case DT_U8: return largest ? UINT8_MAX : 0;
  case DT_BOOL: return largest ? 1 : 0;
  case DT_COUNT: break;
  }
  return 0;
}

static LLVMValueRef combine(struct nest *n, LLVMValueRef a, LLVMValueRef b) {
  static const enum sop op[] = {
      [REDUCE_SUM] = S_ADD, [REDUCE_PROD] = S_MUL, [REDUCE_MAX] = S_MAX, [REDUCE_MIN] = S_MIN};
  enum dtype d = acc_dtype(n);
  struct sinst i = {.op = (uint8_t)op[n->k->reduce], .dtype = (uint8_t)d};
  return emit_instruction(n->e, &i, d, a, b, NULL);
}

static LLVMValueRef compare(struct nest *n, enum sop op, LLVMValueRef a, LLVMValueRef b) {
  struct sinst i = {.op = (uint8_t)op, .dtype = DT_BOOL};
  return emit_instruction(n->e, &i, acc_dtype(n), a, b, NULL);
}

/* Where `b` beats `a`: larger (smaller), or the first NaN. */
static LLVMValueRef beats(struct nest *n, LLVMValueRef a, LLVMValueRef b) {
  LLVMBuilderRef ir = n->e->builder;
  LLVMValueRef better = n->k->reduce == REDUCE_ARGMAX ? compare(n, S_LT, a, b) : compare(n, S_LT, b, a);
  if (!dtype_is_float(acc_dtype(n))) return better;
  LLVMValueRef first_nan = LLVMBuildAnd(ir, compare(n, S_NE, b, b), compare(n, S_EQ, a, a), "");
  return LLVMBuildOr(ir, better, first_nan, "");
}

/* Lanes lo and hi hold winners of their own; of equals the smaller index wins. */
static LLVMValueRef hi_wins(struct nest *n, LLVMValueRef lo, LLVMValueRef hi, LLVMValueRef lo_index,
                            LLVMValueRef hi_index) {
  LLVMBuilderRef ir = n->e->builder;
  LLVMValueRef same = compare(n, S_EQ, lo, hi);
  if (dtype_is_float(acc_dtype(n)))
    same =
        LLVMBuildOr(ir, same, LLVMBuildAnd(ir, compare(n, S_NE, lo, lo), compare(n, S_NE, hi, hi), ""), "");
  LLVMValueRef earlier = LLVMBuildICmp(ir, LLVMIntSLT, hi_index, lo_index, "");
  return LLVMBuildOr(ir, beats(n, lo, hi), LLVMBuildAnd(ir, same, earlier, ""), "");
}

static void reduce_start(struct nest *n) {
  enum dtype d = acc_dtype(n);
  for (int c = 0; c < n->chunks; c++) {
    n->acc[c] = emit_const(n->e, d, identity_bits(n->k->reduce, d), KERNEL_LANES);
    n->extra[c] = emit_const(n->e, tracks_nan(n) ? d : DT_I32, 0, KERNEL_LANES);
  }
}

/* The index along the one reduced loop of argmax and argmin, per lane. */
static LLVMValueRef reduced_index(struct nest *n) {
  LLVMBuilderRef ir = n->e->builder;
  int loop = n->order[n->kept];
  LLVMValueRef at = emit_splat(n->e, LLVMBuildTrunc(ir, n->index[loop], i32(n), ""));
  return loop == n->k->vector ? LLVMBuildAdd(ir, at, emit_iota(n->e, 32), "") : at;
}

/* acc = S_MAX or S_MIN of acc and x, but for the NaNs that reduce_settle puts back. */
static void track_nan(struct nest *n, int c, LLVMValueRef x, LLVMValueRef mask) {
  LLVMBuilderRef ir = n->e->builder;
  LLVMValueRef keep =
      n->k->reduce == REDUCE_MAX ? compare(n, S_LT, x, n->acc[c]) : compare(n, S_LT, n->acc[c], x);
  LLVMValueRef next = LLVMBuildSelect(ir, keep, n->acc[c], x, ""), is_nan = compare(n, S_NE, x, x);
  if (mask) is_nan = LLVMBuildAnd(ir, is_nan, mask, "");
  n->acc[c] = mask ? LLVMBuildSelect(ir, mask, next, n->acc[c], "") : next;
  n->extra[c] = LLVMBuildSelect(ir, is_nan, x, n->extra[c], "");
}

static void reduce_settle(struct nest *n) {
  for (int c = 0; tracks_nan(n) && c < n->chunks; c++) {
    LLVMValueRef is_nan = compare(n, S_NE, n->extra[c], n->extra[c]);
    n->acc[c] = LLVMBuildSelect(n->e->builder, is_nan, n->extra[c], n->acc[c], "");
  }
}

/* One more element in each active lane. */
static void reduce_step(struct nest *n) {
  LLVMBuilderRef ir = n->e->builder;
  LLVMValueRef mask = vector_is_kept(n) ? NULL : n->mask; /* lanes of kept loops are masked when stored */
  for (int c = 0; c < n->chunks; c++) {
    LLVMValueRef x = lanes_value(n, &n->body, n->k->result[0], c);
    if (is_arg_reduce(n)) {
      LLVMValueRef wins = beats(n, n->acc[c], x);
      if (mask) wins = LLVMBuildAnd(ir, wins, mask, "");
      n->extra[c] = LLVMBuildSelect(ir, wins, reduced_index(n), n->extra[c], "");
      n->acc[c] = LLVMBuildSelect(ir, wins, x, n->acc[c], "");
      continue;
    }
    if (tracks_nan(n)) {
      track_nan(n, c, x, mask);
      continue;
    }
    LLVMValueRef next = combine(n, n->acc[c], x);
    n->acc[c] = mask ? LLVMBuildSelect(ir, mask, next, n->acc[c], "") : next;
  }
}

static LLVMValueRef half(struct nest *n, LLVMValueRef v, int lanes, int first) {
  LLVMValueRef lane[KERNEL_LANES];
  for (int i = 0; i < lanes; i++) lane[i] = LLVMConstInt(i32(n), (unsigned)(first + i), 0);
  if (lanes == 1) return LLVMBuildExtractElement(n->e->builder, v, lane[0], "");
  return LLVMBuildShuffleVector(n->e->builder, v, LLVMGetPoison(LLVMTypeOf(v)),
                                LLVMConstVector(lane, (unsigned)lanes), "");
}

/* The lanes of the accumulator as one value: 0+8, 1+9, ...; then 0+4, ... */
static void reduce_lanes(struct nest *n) {
  LLVMBuilderRef ir = n->e->builder;
  for (int lanes = KERNEL_LANES / 2; lanes > 0; lanes /= 2) {
    LLVMValueRef lo = half(n, n->acc[0], lanes, 0), hi = half(n, n->acc[0], lanes, lanes);
    if (is_arg_reduce(n)) {
      LLVMValueRef lo_index = half(n, n->extra[0], lanes, 0), hi_index = half(n, n->extra[0], lanes, lanes);
      LLVMValueRef wins = hi_wins(n, lo, hi, lo_index, hi_index);
      n->acc[0] = LLVMBuildSelect(ir, wins, hi, lo, "");
      n->extra[0] = LLVMBuildSelect(ir, wins, hi_index, lo_index, "");
    } else {
      n->acc[0] = combine(n, lo, hi);
    }
  }
}

static void reduce_finish(struct nest *n) {
  bool in_lanes = vector_is_kept(n);
  reduce_settle(n);
  if (!in_lanes) reduce_lanes(n);
  emit_values(n, &n->epilogue, 0, n->k->rank);
  store_results(n, &n->epilogue, n->k->epilogue_result, in_lanes);
}

/* ---- loops ---- */

static void emit_loops(struct nest *n, int depth);

/* What runs inside the first `depth` loops. */
static void emit_inside(struct nest *n, int depth) {
  if (depth == n->k->rank) {
    emit_values(n, &n->body, depth, depth);
    if (is_reduce(n))
      reduce_step(n);
    else
      store_results(n, &n->body, n->k->result, true);
  } else {
    emit_loops(n, depth);
  }
}

static void emit_depth(struct nest *n, int depth) {
  if (!is_reduce(n) || depth != n->kept) {
    emit_inside(n, depth);
    return;
  }
  reduce_start(n);
  emit_inside(n, depth);
  reduce_finish(n);
}

static LLVMBasicBlockRef new_block(struct nest *n, const char *name) {
  return LLVMAppendBasicBlockInContext(n->e->context, n->fn, name);
}

static LLVMBasicBlockRef here(struct nest *n) { return LLVMGetInsertBlock(n->e->builder); }
static void go_to(struct nest *n, LLVMBasicBlockRef b) { LLVMPositionBuilderAtEnd(n->e->builder, b); }

static LLVMValueRef phi(struct nest *n, LLVMValueRef from_value, LLVMBasicBlockRef from) {
  LLVMValueRef p = LLVMBuildPhi(n->e->builder, LLVMTypeOf(from_value), "");
  LLVMAddIncoming(p, &from_value, &from, 1);
  return p;
}

static void phi_add(LLVMValueRef p, LLVMValueRef value, LLVMBasicBlockRef from) {
  LLVMAddIncoming(p, &value, &from, 1);
}

/* The accumulators that a loop at `depth` carries. */
struct carried {
  LLVMValueRef *slot[2 * MAX_UNROLL];
  int count;
};

static struct carried carried_by(struct nest *n, int depth) {
  struct carried c = {.count = 0};
  if (!is_reduce(n) || depth < n->kept) return c;
  for (int i = 0; i < n->chunks; i++) {
    c.slot[c.count++] = &n->acc[i];
    if (is_arg_reduce(n) || tracks_nan(n)) c.slot[c.count++] = &n->extra[i];
  }
  return c;
}

/* Replaces what is carried by phis with one edge; `phis` remembers them. */
static void carried_enter(struct nest *n, struct carried *c, LLVMBasicBlockRef from, LLVMValueRef *phis) {
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

/* Is argument `a` read or written inside a loop at `depth`? */
static bool used_inside(const struct nest *n, int a, int depth) {
  return !is_reduce(n) || depth < n->kept || n->body_reads[a];
}

/* A loop one element at a time. */
static void emit_scalar_loop(struct nest *n, int depth) {
  LLVMBuilderRef ir = n->e->builder;
  int loop = n->order[depth];
  LLVMBasicBlockRef before = here(n), enter = new_block(n, "enter"), round = new_block(n, "loop"),
                    done = new_block(n, "done");
  struct carried c = carried_by(n, depth);
  LLVMValueRef start[2 * MAX_UNROLL], phis[2 * MAX_UNROLL], at_end[2 * MAX_UNROLL];
  LLVMValueRef outer[MAX_KERNEL_ARGS], ptr_phi[MAX_KERNEL_ARGS] = {NULL};
  carried_save(&c, start);
  LLVMBuildCondBr(ir, LLVMBuildICmp(ir, LLVMIntSGT, n->extent[loop], int64(n, 0), ""), enter, done);

  go_to(n, enter);
  emit_values(n, &n->body, depth, depth);
  LLVMBuildBr(ir, round);

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
    if (ptr_phi[a]) phi_add(ptr_phi[a], advance(n, ptr_phi[a], n->stride[a][loop]), end);
    n->ptr[a] = outer[a];
  }
  LLVMValueRef next = LLVMBuildAdd(ir, i, int64(n, 1), "");
  phi_add(i, next, end);
  carried_edge(&c, phis, end);
  carried_save(&c, at_end);
  LLVMBuildCondBr(ir, LLVMBuildICmp(ir, LLVMIntSLT, next, n->extent[loop], ""), round, done);

  go_to(n, done);
  carried_restore(&c, start);
  carried_enter(n, &c, before, phis);
  carried_restore(&c, at_end);
  carried_edge(&c, phis, end);
  carried_restore(&c, phis);
}

/* One round of the vector loop, lanes i.. on. */
static void emit_round(struct nest *n, int depth, LLVMValueRef i) {
  LLVMBuilderRef ir = n->e->builder;
  LLVMValueRef outer[MAX_KERNEL_ARGS];
  for (int a = 0; a < n->k->nargs; a++) {
    outer[a] = n->ptr[a];
    if (!used_inside(n, a, depth) || n->k->args[a].vector == STRIDE_ZERO) continue;
    if (n->k->args[a].vector == STRIDE_ONE)
      n->ptr[a] = LLVMBuildGEP2(ir, emit_memory_type(n->e, arg_dtype(n, a), 1), n->ptr[a], &i, 1, "");
    else
      n->ptr[a] = advance(n, n->ptr[a], LLVMBuildMul(ir, i, n->stride[a][n->k->vector], ""));
  }
  n->index[n->k->vector] = i;
  emit_depth(n, depth + 1);
  for (int a = 0; a < n->k->nargs; a++) n->ptr[a] = outer[a];
}

/* Active lanes of the chunk that starts at `i`; `last` if no whole chunk is left. */
static void set_mask(struct nest *n, LLVMValueRef i, bool last) {
  LLVMBuilderRef ir = n->e->builder;
  LLVMValueRef rest = LLVMBuildSub(ir, n->extent[n->k->vector], i, ""), lanes = int64(n, KERNEL_LANES);
  n->active =
      last ? rest : LLVMBuildSelect(ir, LLVMBuildICmp(ir, LLVMIntSLT, rest, lanes, ""), rest, lanes, "");
  LLVMValueRef count = emit_splat(n->e, LLVMBuildTrunc(ir, n->active, i32(n), ""));
  n->mask = LLVMBuildICmp(ir, LLVMIntULT, emit_iota(n->e, 32), count, "");
}

/* Rounds of `chunks` chunks from `first` up to `limit`, at least one; returns the last block. `limit` is NULL if there
 * is one round alone. */
static LLVMBasicBlockRef emit_rounds(struct nest *n, int depth, LLVMBasicBlockRef round, LLVMValueRef first,
                                     LLVMBasicBlockRef from, LLVMValueRef limit, bool masked,
                                     LLVMBasicBlockRef done) {
  LLVMBuilderRef ir = n->e->builder;
  struct carried c = carried_by(n, depth);
  LLVMValueRef phis[2 * MAX_UNROLL];
  go_to(n, round);
  LLVMValueRef i = limit ? phi(n, first, from) : first;
  if (limit) carried_enter(n, &c, from, phis);
  if (masked) set_mask(n, i, limit == NULL);
  emit_round(n, depth, i);
  n->mask = n->active = NULL;
  LLVMBasicBlockRef end = here(n);
  if (limit == NULL) {
    LLVMBuildBr(ir, done);
    return end;
  }
  LLVMValueRef next = LLVMBuildAdd(ir, i, int64(n, n->chunks * KERNEL_LANES), "");
  phi_add(i, next, end);
  carried_edge(&c, phis, end);
  LLVMBuildCondBr(ir, LLVMBuildICmp(ir, LLVMIntSLT, next, limit, ""), round, done);
  return end;
}

/* Whole rounds first, then masked chunks; a heavy body has masked chunks alone. */
static void emit_vector_loop(struct nest *n, int depth) {
  LLVMBuilderRef ir = n->e->builder;
  LLVMValueRef extent = n->extent[n->k->vector], zero = int64(n, 0);
  LLVMBasicBlockRef before = here(n), enter = new_block(n, "enter");
  LLVMBasicBlockRef whole = n->heavy ? NULL : new_block(n, "vectors");
  LLVMBasicBlockRef rest = n->heavy ? NULL : new_block(n, "rest");
  LLVMBasicBlockRef masked = new_block(n, "masked"), done = new_block(n, "done");
  struct carried c = carried_by(n, depth);
  LLVMValueRef start[2 * MAX_UNROLL], phis[2 * MAX_UNROLL], last[2 * MAX_UNROLL];
  LLVMValueRef first = zero;
  LLVMBasicBlockRef from = enter;
  carried_save(&c, start);
  LLVMBuildCondBr(ir, LLVMBuildICmp(ir, LLVMIntSGT, extent, zero, ""), enter, done);

  go_to(n, enter);
  emit_values(n, &n->body, depth, depth);
  if (n->heavy) {
    LLVMBuildBr(ir, masked);
  } else {
    n->chunks = n->unroll;
    LLVMValueRef limit = LLVMBuildAnd(ir, extent, int64(n, -(int64_t)(n->chunks * KERNEL_LANES)), "");
    LLVMBuildCondBr(ir, LLVMBuildICmp(ir, LLVMIntNE, limit, zero, ""), whole, rest);
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
    LLVMBuildCondBr(ir, LLVMBuildICmp(ir, LLVMIntSLT, first, extent, ""), masked, done);
    from = rest;
  }
  LLVMValueRef at_rest[2 * MAX_UNROLL];
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

static void emit_loops(struct nest *n, int depth) {
  if (depth == n->vector_depth)
    emit_vector_loop(n, depth);
  else
    emit_scalar_loop(n, depth);
}

/* ---- the function ---- */

static void order_loops(struct nest *n) {
  const struct kernel *k = n->k;
  int count = 0;
  n->kept = k->rank - (is_reduce(n) ? k->nreduce : 0);
  bool last = k->vector < n->kept; /* of the kept loops */
  for (int l = 0; l < k->rank; l++) {
    if (last && l == n->kept) n->order[count++] = k->vector;
    if (!last || l != k->vector) n->order[count++] = l;
  }
  if (count < k->rank) n->order[count++] = k->vector;
  for (int d = 0; d < k->rank; d++)
    if (n->order[d] == k->vector) n->vector_depth = d;
}

static void load_sizes(struct nest *n, LLVMValueRef args) {
  LLVMBuilderRef ir = n->e->builder;
  const struct kernel *k = n->k;
  LLVMTypeRef pointer = LLVMPointerTypeInContext(n->e->context, 0);
  for (int l = 0; l < k->rank; l++) n->extent[l] = load_size(n, l);
  for (int a = 0; a < k->nargs; a++) {
    LLVMValueRef at = int64(n, a);
    n->ptr[a] = LLVMBuildLoad2(ir, pointer, LLVMBuildGEP2(ir, pointer, args, &at, 1, ""), "");
    for (int l = 0; l < k->rank; l++) {
      if (l == k->vector && k->args[a].vector != STRIDE_ANY) continue; /* known */
      LLVMValueRef stride = load_size(n, k->rank + a * k->rank + l);
      n->stride[a][l] = LLVMBuildMul(ir, stride, int64(n, dtype_size(arg_dtype(n, a))), "");
    }
    if (k->args[a].vector == STRIDE_ANY)
      n->lane_offset[a] =
          LLVMBuildMul(ir, emit_splat(n->e, n->stride[a][k->vector]), emit_iota(n->e, 64), "");
  }
}

/* How the vector loop runs: heavy bodies once, light column sums several chunks a round. */
static void choose_shape(struct nest *n) {
  int weight = program_weight(&n->body, n->k->rank);
  n->heavy = weight > HEAVY_BODY;
  n->unroll = 1;
  if (is_reduce(n) && vector_is_kept(n) && !n->heavy) n->unroll = weight <= HEAVY_BODY / 4 ? MAX_UNROLL : 2;
  n->chunks = 1;
}

LLVMValueRef emit_kernel(struct emit *e, const struct kernel *k, const char *symbol, struct arena *scratch) {
  struct nest *n = arena_new(scratch, struct nest);
  n->e = e;
  n->k = k;
  order_loops(n);
  program_init(n, &n->body, &k->body, k->result, is_reduce(n) ? 1 : k->noutputs, true, scratch);
  if (is_reduce(n))
    program_init(n, &n->epilogue, &k->epilogue, k->epilogue_result, k->noutputs, vector_is_kept(n), scratch);
  for (int v = 0; v < k->body.count; v++)
    if (n->body.live[v] && k->body.inst[v].op == S_ARG) n->body_reads[k->body.inst[v].a] = true;
  choose_shape(n);

  LLVMTypeRef pointer = LLVMPointerTypeInContext(e->context, 0), params[] = {pointer, pointer};
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(e->context), params, 2, 0);
  n->fn = LLVMAddFunction(e->module, symbol, type);
  unsigned nounwind = LLVMGetEnumAttributeKindForName("nounwind", 8);
  LLVMAddAttributeAtIndex(n->fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                          LLVMCreateEnumAttribute(e->context, nounwind, 0));
  n->sizes = LLVMGetParam(n->fn, 1);
  LLVMSetValueName2(LLVMGetParam(n->fn, 0), "args", 4);
  LLVMSetValueName2(n->sizes, "sizes", 5);
  go_to(n, new_block(n, "entry"));
  load_sizes(n, LLVMGetParam(n->fn, 0));
  emit_depth(n, 0);
  LLVMBuildRetVoid(e->builder);
  return n->fn;
}
