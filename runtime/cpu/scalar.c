/* SPDX-License-Identifier: Apache-2.0 */
/* One instruction of a scalar program as LLVM IR, for one lane or many: the third reading of ir/scalar/scalar.h.
 *
 * Nothing here is allowed to be poison for any operand, and no fast-math flag is ever set: the bits are those of
 * scalar_eval, except that the payload of a NaN is nobody's promise. */
#include "runtime/cpu/emit.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

LLVMTypeRef emit_type(struct emit *e, enum dtype d, int lanes) {
  LLVMTypeRef t = NULL;
  switch (d) {
  case DT_F32: t = llvm.FloatTypeInContext(e->context); break;
  case DT_F64: t = llvm.DoubleTypeInContext(e->context); break;
  case DT_I32: t = llvm.Int32TypeInContext(e->context); break;
  case DT_I64: t = llvm.Int64TypeInContext(e->context); break;
  case DT_U8: t = llvm.Int8TypeInContext(e->context); break;
  case DT_BOOL: t = llvm.Int1TypeInContext(e->context); break;
  case DT_BF16:
  case DT_F16: t = llvm.Int16TypeInContext(e->context); break;
  case DT_COUNT: break;
  }
  return lanes == 1 ? t : llvm.VectorType(t, (unsigned)lanes);
}

LLVMTypeRef emit_memory_type(struct emit *e, enum dtype d, int lanes) {
  return emit_type(e, d == DT_BOOL ? DT_U8 : d, lanes);
}

int emit_lanes(LLVMValueRef v) {
  LLVMTypeRef t = llvm.TypeOf(v);
  return llvm.GetTypeKind(t) == LLVMVectorTypeKind ? (int)llvm.GetVectorSize(t) : 1;
}

static LLVMValueRef const_splat(LLVMValueRef v, int lanes) {
  if (lanes == 1) return v;
  LLVMValueRef all[KERNEL_LANES];
  for (int i = 0; i < lanes; i++) all[i] = v;
  return llvm.ConstVector(all, (unsigned)lanes);
}

LLVMValueRef emit_const(struct emit *e, enum dtype d, uint64_t bits, int lanes) {
  LLVMValueRef v;
  if (d == DT_F32)
    v = llvm.ConstBitCast(llvm.ConstInt(llvm.Int32TypeInContext(e->context), (uint32_t)bits, 0),
                          emit_type(e, d, 1));
  else if (d == DT_F64)
    v = llvm.ConstBitCast(llvm.ConstInt(llvm.Int64TypeInContext(e->context), bits, 0), emit_type(e, d, 1));
  else
    v = llvm.ConstInt(emit_type(e, d, 1), d == DT_BOOL ? bits != 0 : bits, 0);
  return const_splat(v, lanes);
}

LLVMValueRef emit_splat(struct emit *e, LLVMValueRef scalar) {
  if (llvm.IsConstant(scalar)) return const_splat(scalar, KERNEL_LANES);
  LLVMTypeRef index = llvm.Int32TypeInContext(e->context);
  LLVMTypeRef vector = llvm.VectorType(llvm.TypeOf(scalar), KERNEL_LANES);
  LLVMValueRef first =
      llvm.BuildInsertElement(e->builder, llvm.GetPoison(vector), scalar, llvm.ConstNull(index), "");
  return llvm.BuildShuffleVector(e->builder, first, llvm.GetPoison(vector),
                                 llvm.ConstNull(llvm.VectorType(index, KERNEL_LANES)), "");
}

LLVMValueRef emit_iota(struct emit *e, unsigned width) {
  LLVMTypeRef t = llvm.IntTypeInContext(e->context, width);
  LLVMValueRef lane[KERNEL_LANES];
  for (int i = 0; i < KERNEL_LANES; i++) lane[i] = llvm.ConstInt(t, (unsigned)i, 0);
  return llvm.ConstVector(lane, KERNEL_LANES);
}

LLVMValueRef emit_intrinsic(struct emit *e, const char *name, LLVMTypeRef *types, int ntypes,
                            LLVMValueRef *args, int nargs) {
  unsigned id = llvm.LookupIntrinsicID(name, strlen(name));
  assert(id != 0);
  LLVMValueRef fn = llvm.GetIntrinsicDeclaration(e->module, id, types, (size_t)ntypes);
  return llvm.BuildCall2(e->builder, llvm.GlobalGetValueType(fn), fn, args, (unsigned)nargs, "");
}

/* An intrinsic overloaded on the type of its first operand alone. */
static LLVMValueRef simple_intrinsic(struct emit *e, const char *name, LLVMValueRef a, LLVMValueRef b,
                                     LLVMValueRef c) {
  LLVMTypeRef t = llvm.TypeOf(a);
  LLVMValueRef args[] = {a, b, c};
  return emit_intrinsic(e, name, &t, 1, args, b == NULL ? 1 : c == NULL ? 2 : 3);
}

static bool never_nan(struct emit *e, LLVMValueRef v) {
  return llvm.IsConstant(v) && llvm.IsNull(llvm.BuildFCmp(e->builder, LLVMRealUNO, v, v, ""));
}

/* Equal operands (zeros of either sign) give the second one; a NaN wins over everything. */
static LLVMValueRef float_min_max(struct emit *e, bool is_max, LLVMValueRef a, LLVMValueRef b) {
  LLVMBuilderRef ir = e->builder;
  if (never_nan(e, b))
    return llvm.BuildSelect(ir, llvm.BuildFCmp(ir, is_max ? LLVMRealUGT : LLVMRealULT, a, b, ""), a, b, "");
  LLVMValueRef best =
      llvm.BuildSelect(ir, llvm.BuildFCmp(ir, is_max ? LLVMRealOGT : LLVMRealOLT, a, b, ""), a, b, "");
  if (never_nan(e, a)) return best;
  return llvm.BuildSelect(ir, llvm.BuildFCmp(ir, LLVMRealUNO, a, a, ""), a, best, "");
}

static LLVMValueRef min_max(struct emit *e, bool is_max, enum dtype d, LLVMValueRef a, LLVMValueRef b) {
  if (dtype_is_float(d)) return float_min_max(e, is_max, a, b);
  bool is_signed = d == DT_I32 || d == DT_I64;
  LLVMIntPredicate less = is_signed ? LLVMIntSLT : LLVMIntULT;
  LLVMValueRef a_less = llvm.BuildICmp(e->builder, less, a, b, "");
  return is_max ? llvm.BuildSelect(e->builder, a_less, b, a, "")
                : llvm.BuildSelect(e->builder, a_less, a, b, "");
}

static LLVMValueRef compare(struct emit *e, enum sop op, enum dtype d, LLVMValueRef a, LLVMValueRef b) {
  if (dtype_is_float(d)) {
    LLVMRealPredicate p = op == S_EQ   ? LLVMRealOEQ
                          : op == S_NE ? LLVMRealUNE
                          : op == S_LT ? LLVMRealOLT
                                       : LLVMRealOLE;
    return llvm.BuildFCmp(e->builder, p, a, b, "");
  }
  bool is_signed = d == DT_I32 || d == DT_I64;
  LLVMIntPredicate p = op == S_EQ   ? LLVMIntEQ
                       : op == S_NE ? LLVMIntNE
                       : op == S_LT ? (is_signed ? LLVMIntSLT : LLVMIntULT)
                                    : (is_signed ? LLVMIntSLE : LLVMIntULE);
  return llvm.BuildICmp(e->builder, p, a, b, "");
}

/* Vectors of small integers divide as floats: the quotient of two n-bit integers, rounded to more than 2n bits,
 * never crosses the next integer. Machines have no vector division of integers. */
static LLVMValueRef divide_as_float(struct emit *e, enum dtype d, LLVMValueRef a, LLVMValueRef b) {
  LLVMBuilderRef ir = e->builder;
  int lanes = emit_lanes(a);
  if (d == DT_U8) {
    LLVMTypeRef f = emit_type(e, DT_F32, lanes);
    LLVMValueRef q = llvm.BuildFDiv(ir, llvm.BuildUIToFP(ir, a, f, ""), llvm.BuildUIToFP(ir, b, f, ""), "");
    return llvm.BuildTrunc(ir, llvm.BuildFPToSI(ir, q, emit_type(e, DT_I32, lanes), ""), llvm.TypeOf(a), "");
  }
  LLVMTypeRef f = emit_type(e, DT_F64, lanes);
  LLVMValueRef q = llvm.BuildFDiv(ir, llvm.BuildSIToFP(ir, a, f, ""), llvm.BuildSIToFP(ir, b, f, ""), "");
  return llvm.BuildFPToSI(ir, q, llvm.TypeOf(a), "");
}

/* Truncating; x/0 = 0, x%0 = 0, MIN/-1 = MIN, MIN%-1 = 0. A divisor that would trap becomes 1. */
static LLVMValueRef int_divide(struct emit *e, bool want_rem, enum dtype d, LLVMValueRef a, LLVMValueRef b) {
  LLVMBuilderRef ir = e->builder;
  LLVMTypeRef t = llvm.TypeOf(a);
  int lanes = emit_lanes(a);
  bool is_signed = d == DT_I32 || d == DT_I64;
  LLVMValueRef zero = llvm.ConstNull(t);
  LLVMValueRef is_zero = llvm.BuildICmp(ir, LLVMIntEQ, b, zero, ""), bad = is_zero;
  if (is_signed) {
    uint64_t min = d == DT_I32 ? UINT64_C(1) << 31 : UINT64_C(1) << 63;
    LLVMValueRef is_min = llvm.BuildICmp(ir, LLVMIntEQ, a, emit_const(e, d, min, lanes), "");
    LLVMValueRef is_minus = llvm.BuildICmp(ir, LLVMIntEQ, b, llvm.ConstAllOnes(t), "");
    bad = llvm.BuildOr(ir, is_zero, llvm.BuildAnd(ir, is_min, is_minus, ""), "");
  }
  LLVMValueRef divisor = llvm.BuildSelect(ir, bad, emit_const(e, d, 1, lanes), b, "");
  if (lanes > 1 && d != DT_I64 && !llvm.IsConstant(b)) {
    LLVMValueRef q = divide_as_float(e, d, a, divisor);
    if (want_rem) return llvm.BuildSub(ir, a, llvm.BuildMul(ir, q, divisor, ""), "");
    return llvm.BuildSelect(ir, is_zero, zero, q, "");
  }
  if (want_rem) return is_signed ? llvm.BuildSRem(ir, a, divisor, "") : llvm.BuildURem(ir, a, divisor, "");
  LLVMValueRef q = is_signed ? llvm.BuildSDiv(ir, a, divisor, "") : llvm.BuildUDiv(ir, a, divisor, "");
  return llvm.BuildSelect(ir, is_zero, zero, q, "");
}

/* Integers cut to 0 and 1: any other number is true. */
static LLVMValueRef bool_arithmetic(struct emit *e, enum sop op, LLVMValueRef a, LLVMValueRef b) {
  if (op == S_ADD) return llvm.BuildOr(e->builder, a, b, "");
  if (op == S_SUB) return llvm.BuildXor(e->builder, a, b, "");
  if (op == S_REM) return llvm.ConstNull(llvm.TypeOf(a));
  assert(op == S_MUL || op == S_DIV);
  return llvm.BuildAnd(e->builder, a, b, "");
}

static LLVMValueRef arithmetic(struct emit *e, enum sop op, enum dtype d, LLVMValueRef a, LLVMValueRef b) {
  LLVMBuilderRef ir = e->builder;
  bool is_float = dtype_is_float(d);
  if (d == DT_BOOL) return bool_arithmetic(e, op, a, b);
  if (op == S_ADD) return is_float ? llvm.BuildFAdd(ir, a, b, "") : llvm.BuildAdd(ir, a, b, "");
  if (op == S_SUB) return is_float ? llvm.BuildFSub(ir, a, b, "") : llvm.BuildSub(ir, a, b, "");
  if (op == S_MUL) return is_float ? llvm.BuildFMul(ir, a, b, "") : llvm.BuildMul(ir, a, b, "");
  if (op == S_DIV) return is_float ? llvm.BuildFDiv(ir, a, b, "") : int_divide(e, false, d, a, b);
  assert(op == S_REM);
  return is_float ? llvm.BuildFRem(ir, a, b, "") : int_divide(e, true, d, a, b);
}

/* The count is taken modulo the width, so that no count is poison. u8 has no sign to copy. */
static LLVMValueRef shift(struct emit *e, enum sop op, enum dtype d, LLVMValueRef a, LLVMValueRef b) {
  LLVMValueRef last = emit_const(e, d, (uint64_t)dtype_size(d) * 8 - 1, emit_lanes(a));
  LLVMValueRef count = llvm.BuildAnd(e->builder, b, last, "");
  if (op == S_SHL) return llvm.BuildShl(e->builder, a, count, "");
  if (op == S_SHR || d == DT_U8) return llvm.BuildLShr(e->builder, a, count, "");
  return llvm.BuildAShr(e->builder, a, count, "");
}

/* Of two lanes each the second: those of `first` at even places, of `second` at odd ones. Shifts and masks would be the
 * same instructions, but LLVM asks for each where their bits come from, through all that they are computed from. */
static LLVMValueRef high_lanes(struct emit *e, LLVMValueRef first, LLVMValueRef second, int lanes) {
  LLVMTypeRef index = llvm.Int32TypeInContext(e->context);
  LLVMValueRef lane[KERNEL_LANES];
  for (int i = 0; i < lanes; i++) lane[i] = llvm.ConstInt(index, (unsigned)(i % 2 ? lanes + i : i + 1), 0);
  return llvm.BuildShuffleVector(e->builder, first, second, llvm.ConstVector(lane, (unsigned)lanes), "");
}

/* Two lanes at a time are one of 64 bits: what vectors multiply, and what LLVM has nothing to find out about. */
static LLVMValueRef mulhi_of_pairs(struct emit *e, LLVMValueRef a, LLVMValueRef b) {
  LLVMBuilderRef ir = e->builder;
  int pairs = emit_lanes(a) / 2;
  LLVMTypeRef wide = emit_type(e, DT_I64, pairs);
  LLVMValueRef x = llvm.BuildBitCast(ir, a, wide, ""), y = llvm.BuildBitCast(ir, b, wide, "");
  LLVMValueRef low = emit_const(e, DT_I64, UINT32_MAX, pairs), half = emit_const(e, DT_I64, 32, pairs);
  LLVMValueRef first = llvm.BuildMul(ir, llvm.BuildAnd(ir, x, low, ""), llvm.BuildAnd(ir, y, low, ""), "");
  LLVMValueRef second =
      llvm.BuildMul(ir, llvm.BuildLShr(ir, x, half, ""), llvm.BuildLShr(ir, y, half, ""), "");
  return high_lanes(e, llvm.BuildBitCast(ir, first, llvm.TypeOf(a), ""),
                    llvm.BuildBitCast(ir, second, llvm.TypeOf(a), ""), 2 * pairs);
}

static LLVMValueRef mulhi(struct emit *e, LLVMValueRef a, LLVMValueRef b) {
  LLVMBuilderRef ir = e->builder;
  int lanes = emit_lanes(a);
  if (lanes > 1) return mulhi_of_pairs(e, a, b);
  LLVMTypeRef wide = emit_type(e, DT_I64, lanes);
  LLVMValueRef product =
      llvm.BuildMul(ir, llvm.BuildZExt(ir, a, wide, ""), llvm.BuildZExt(ir, b, wide, ""), "");
  LLVMValueRef high = llvm.BuildLShr(ir, product, emit_const(e, DT_I64, 32, lanes), "");
  return llvm.BuildTrunc(ir, high, llvm.TypeOf(a), "");
}

/* To the nearest bfloat16, as ir/scalar/eval.c: its bits. */
static LLVMValueRef to_bf16(struct emit *e, LLVMValueRef x) {
  LLVMBuilderRef ir = e->builder;
  int lanes = emit_lanes(x);
#define I32(bits) emit_const(e, DT_I32, bits, lanes)
  LLVMValueRef bits = llvm.BuildBitCast(ir, x, emit_type(e, DT_I32, lanes), "");
  LLVMValueRef odd = llvm.BuildAnd(ir, llvm.BuildLShr(ir, bits, I32(16), ""), I32(1), "");
  LLVMValueRef up = llvm.BuildAdd(ir, bits, llvm.BuildAdd(ir, odd, I32(0x7fff), ""), "");
  LLVMValueRef near = llvm.BuildSelect(ir, llvm.BuildFCmp(ir, LLVMRealUNO, x, x, ""),
                                       llvm.BuildOr(ir, bits, I32(0x400000), ""), up, "");
  LLVMValueRef exponent = llvm.BuildAnd(ir, bits, I32(0x7f800000), "");
  LLVMValueRef kept = llvm.BuildSelect(ir, llvm.BuildICmp(ir, LLVMIntNE, exponent, I32(0), ""), near,
                                       llvm.BuildAnd(ir, bits, I32(0x80000000), ""), "");
  return llvm.BuildTrunc(ir, llvm.BuildLShr(ir, kept, I32(16), ""), emit_type(e, DT_BF16, lanes), "");
}

/* To the nearest binary16, without the instructions that not all CPUs have. */
static LLVMValueRef to_f16(struct emit *e, LLVMValueRef x) {
  LLVMBuilderRef ir = e->builder;
  int lanes = emit_lanes(x);
  LLVMTypeRef words = emit_type(e, DT_I32, lanes);
  LLVMValueRef bits = llvm.BuildBitCast(ir, x, words, "");
  LLVMValueRef size = llvm.BuildAnd(ir, bits, I32(0x7fffffff), "");
  LLVMValueRef odd = llvm.BuildAnd(ir, llvm.BuildLShr(ir, size, I32(13), ""), I32(1), "");
  LLVMValueRef up = llvm.BuildAdd(ir, size, llvm.BuildAdd(ir, odd, I32(0xc8000fff), ""), "");
  LLVMValueRef near = llvm.BuildLShr(ir, up, I32(13), "");
  near = llvm.BuildSelect(ir, llvm.BuildICmp(ir, LLVMIntULT, near, I32(0x7c00), ""), near, I32(0x7c00), "");
  LLVMValueRef part = llvm.BuildAnd(ir, llvm.BuildLShr(ir, size, I32(13), ""), I32(0x3ff), "");
  near = llvm.BuildSelect(ir, llvm.BuildFCmp(ir, LLVMRealUNO, x, x, ""),
                          llvm.BuildOr(ir, part, I32(0x7e00), ""), near, "");
  LLVMValueRef sum = llvm.BuildFAdd(ir, llvm.BuildBitCast(ir, size, llvm.TypeOf(x), ""),
                                    emit_const(e, DT_F32, 0x3f000000, lanes), "");
  LLVMValueRef small = llvm.BuildSub(ir, llvm.BuildBitCast(ir, sum, words, ""), I32(0x3f000000), "");
  near = llvm.BuildSelect(ir, llvm.BuildICmp(ir, LLVMIntULT, size, I32(0x38800000), ""), small, near, "");
  LLVMValueRef sign = llvm.BuildAnd(ir, llvm.BuildLShr(ir, bits, I32(16), ""), I32(0x8000), "");
  return llvm.BuildTrunc(ir, llvm.BuildOr(ir, near, sign, ""), emit_type(e, DT_F16, lanes), "");
}

static LLVMValueRef of_f16(struct emit *e, LLVMValueRef half) {
  LLVMBuilderRef ir = e->builder;
  int lanes = emit_lanes(half);
  LLVMTypeRef words = emit_type(e, DT_I32, lanes), floats = emit_type(e, DT_F32, lanes);
  LLVMValueRef wide = llvm.BuildZExt(ir, half, words, ""), size = llvm.BuildAnd(ir, wide, I32(0x7fff), "");
  LLVMValueRef rest = llvm.BuildShl(ir, size, I32(13), "");
  LLVMValueRef large = llvm.BuildSelect(ir, llvm.BuildICmp(ir, LLVMIntULT, size, I32(0x7c00), ""),
                                        llvm.BuildAdd(ir, rest, I32(0x38000000), ""),
                                        llvm.BuildOr(ir, rest, I32(0x7f800000), ""), "");
  LLVMValueRef sum = llvm.BuildBitCast(ir, llvm.BuildAdd(ir, size, I32(0x3f000000), ""), floats, "");
  LLVMValueRef small = llvm.BuildFSub(ir, sum, emit_const(e, DT_F32, 0x3f000000, lanes), "");
  LLVMValueRef value = llvm.BuildSelect(ir, llvm.BuildICmp(ir, LLVMIntULT, size, I32(0x400), ""),
                                        llvm.BuildBitCast(ir, small, words, ""), large, "");
  LLVMValueRef sign = llvm.BuildShl(ir, llvm.BuildAnd(ir, wide, I32(0x8000), ""), I32(16), "");
  return llvm.BuildBitCast(ir, llvm.BuildOr(ir, value, sign, ""), floats, "");
}
#undef I32

static LLVMValueRef of_bf16(struct emit *e, LLVMValueRef half) {
  LLVMBuilderRef ir = e->builder;
  int lanes = emit_lanes(half);
  LLVMValueRef wide = llvm.BuildZExt(ir, half, emit_type(e, DT_I32, lanes), "");
  LLVMValueRef bits = llvm.BuildShl(ir, wide, emit_const(e, DT_I32, 16, lanes), "");
  return llvm.BuildBitCast(ir, bits, emit_type(e, DT_F32, lanes), "");
}

static LLVMValueRef convert(struct emit *e, enum dtype from, enum dtype to, LLVMValueRef a) {
  LLVMBuilderRef ir = e->builder;
  LLVMTypeRef t = emit_type(e, to, emit_lanes(a));
  if (from == to) return a;
  if (to == DT_BF16) return to_bf16(e, a);
  if (from == DT_BF16) return of_bf16(e, a);
  if (to == DT_F16) return to_f16(e, a);
  if (from == DT_F16) return of_f16(e, a);
  if (to == DT_BOOL) {
    LLVMValueRef zero = llvm.ConstNull(llvm.TypeOf(a));
    return dtype_is_float(from) ? llvm.BuildFCmp(ir, LLVMRealUNE, a, zero, "")
                                : llvm.BuildICmp(ir, LLVMIntNE, a, zero, "");
  }
  bool is_signed = from == DT_I32 || from == DT_I64;
  if (dtype_is_float(from)) {
    if (to == DT_F64) return llvm.BuildFPExt(ir, a, t, "");
    if (to == DT_F32) return llvm.BuildFPTrunc(ir, a, t, "");
    LLVMTypeRef types[] = {t, llvm.TypeOf(a)};
    return emit_intrinsic(e, to == DT_U8 ? "llvm.fptoui.sat" : "llvm.fptosi.sat", types, 2, &a, 1);
  }
  if (dtype_is_float(to)) return is_signed ? llvm.BuildSIToFP(ir, a, t, "") : llvm.BuildUIToFP(ir, a, t, "");
  if (from != DT_BOOL && dtype_size(to) < dtype_size(from)) return llvm.BuildTrunc(ir, a, t, "");
  return is_signed ? llvm.BuildSExt(ir, a, t, "") : llvm.BuildZExt(ir, a, t, "");
}

static LLVMValueRef negate(struct emit *e, enum dtype d, LLVMValueRef a) {
  if (d == DT_BOOL) return a;
  return dtype_is_float(d) ? llvm.BuildFNeg(e->builder, a, "") : llvm.BuildNeg(e->builder, a, "");
}

static LLVMValueRef absolute(struct emit *e, enum dtype d, LLVMValueRef a) {
  if (dtype_is_float(d)) return simple_intrinsic(e, "llvm.fabs", a, NULL, NULL);
  if (d == DT_U8 || d == DT_BOOL) return a;
  return simple_intrinsic(e, "llvm.abs", a, llvm.ConstNull(llvm.Int1TypeInContext(e->context)), NULL);
}

LLVMValueRef emit_instruction(struct emit *e, const struct sinst *inst, enum dtype operand, LLVMValueRef a,
                              LLVMValueRef b, LLVMValueRef c) {
  LLVMBuilderRef ir = e->builder;
  enum sop op = (enum sop)inst->op;
  switch (op) {
  case S_ADD:
  case S_SUB:
  case S_MUL:
  case S_DIV:
  case S_REM: return arithmetic(e, op, operand, a, b);
  case S_FMA: return simple_intrinsic(e, "llvm.fma", a, b, c);
  case S_NEG: return negate(e, operand, a);
  case S_ABS: return absolute(e, operand, a);
  case S_SQRT: return simple_intrinsic(e, "llvm.sqrt", a, NULL, NULL);
  case S_FLOOR: return simple_intrinsic(e, "llvm.floor", a, NULL, NULL);
  case S_CEIL: return simple_intrinsic(e, "llvm.ceil", a, NULL, NULL);
  case S_TRUNC: return simple_intrinsic(e, "llvm.trunc", a, NULL, NULL);
  case S_RINT: return simple_intrinsic(e, "llvm.roundeven", a, NULL, NULL);
  case S_MIN: return min_max(e, false, operand, a, b);
  case S_MAX: return min_max(e, true, operand, a, b);
  case S_EQ:
  case S_NE:
  case S_LT:
  case S_LE: return compare(e, op, operand, a, b);
  case S_AND: return llvm.BuildAnd(ir, a, b, "");
  case S_OR: return llvm.BuildOr(ir, a, b, "");
  case S_XOR: return llvm.BuildXor(ir, a, b, "");
  case S_NOT: return llvm.BuildNot(ir, a, "");
  case S_SHL:
  case S_SHR:
  case S_SAR: return shift(e, op, operand, a, b);
  case S_MULHI: return mulhi(e, a, b);
  case S_SELECT: return llvm.BuildSelect(ir, a, b, c, "");
  case S_CONVERT: return convert(e, operand, (enum dtype)inst->dtype, a);
  case S_BITCAST: return llvm.BuildBitCast(ir, a, emit_type(e, (enum dtype)inst->dtype, emit_lanes(a)), "");
  case S_CONST:
  case S_ARG:
  case S_INDEX:
  case S_PARAM: break;
  }
  assert(!"not an instruction with operands");
  return NULL;
}
