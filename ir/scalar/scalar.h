/* SPDX-License-Identifier: Apache-2.0 */
/* Scalar programs: the body of an elementwise op, written once and read three times.
 *
 * An op records its body for one element as a short straight-line program of primitive instructions. The
 * interpreter runs it on numbers (eval.c), the CPU backend turns each instruction into one 16-wide
 * LLVM value, the CUDA backend into one line of CUDA C. All three follow the semantics below to the bit:
 * only IEEE basic operations, no contraction, no library function. exp, tanh, erf ... are written in these
 * primitives (math.c), so vector body, vector tail, interpreter and GPU agree exactly. */
#ifndef DGC_IR_SCALAR_SCALAR_H
#define DGC_IR_SCALAR_SCALAR_H

#include "ir/type.h"

/* Integers wrap. Semantics where C has none:
 *   div, rem (integers): truncating; x/0 = 0, x%0 = 0, MIN/-1 = MIN, MIN%-1 = 0
 *   rem (floats): fmod, exact
 *   min, max: NaN if one operand is NaN; max(+0,-0) is the second operand, as is min
 *   convert: float to integer truncates and saturates, NaN gives 0; integers wrap; to bool: x != 0 */
#define SOP(constant, name, operands, on) S_##constant,
enum sop {
#include "ir/scalar/scalar.def"
};
#undef SOP

/* For a switch over the primitives of one kind of operands: the cases that are none, out of the table.
 *   #define SOP SOP_NOT_ON_FLOATS
 *   #include "ir/scalar/scalar.def"
 *   #undef SOP
 *     break; */
#define SOP_NOT_ON_FLOATS(constant, name, operands, on)   SOP_NOT_ON_FLOATS_##on(constant)
#define SOP_NOT_ON_INTEGERS(constant, name, operands, on) SOP_NOT_ON_INTEGERS_##on(constant)
#define SOP_NOT_ON_FLOATS_ANY(constant)                   case S_##constant:
#define SOP_NOT_ON_FLOATS_NUMBERS(constant)
#define SOP_NOT_ON_FLOATS_FLOATS(constant)
#define SOP_NOT_ON_FLOATS_INTEGERS(constant) case S_##constant:
#define SOP_NOT_ON_INTEGERS_ANY(constant)    case S_##constant:
#define SOP_NOT_ON_INTEGERS_NUMBERS(constant)
#define SOP_NOT_ON_INTEGERS_FLOATS(constant) case S_##constant:
#define SOP_NOT_ON_INTEGERS_INTEGERS(constant)

struct sinst {
  uint8_t op;    /* enum sop */
  uint8_t dtype; /* enum dtype of the result */
  uint16_t a, b, c;
  uint64_t bits; /* S_CONST: the value's own bits, zero-extended */
};

/* Value numbers are indices into `inst`; operands precede their users; equal instructions are the same. */
struct sprog {
  struct arena *arena;
  struct sinst *inst;
  int count, cap;
  uint32_t *slots; /* hash table over `inst`, 2*cap entries: value number + 1, or 0 */
};

typedef int sval;

struct sprog sprog_make(struct arena *a);
enum dtype s_dtype(const struct sprog *p, sval v);
sval s_const(struct sprog *p, enum dtype d,
             double value); /* value converted to d; exact for |integers| < 2^53 */
sval s_int(struct sprog *p, enum dtype d, int64_t value);
sval s_bits(struct sprog *p, enum dtype d, uint64_t bits);
sval s_arg(struct sprog *p, int arg, enum dtype d);
sval s_index(struct sprog *p, int loop);
sval s_param(struct sprog *p, int param);
sval s_unary(struct sprog *p, enum sop op, sval a);
sval s_binary(struct sprog *p, enum sop op, sval a, sval b); /* both operands of one dtype */
sval s_fma(struct sprog *p, sval a, sval b, sval c);
sval s_select(struct sprog *p, sval cond, sval a, sval b);
sval s_convert(struct sprog *p, enum dtype d, sval a);
sval s_bitcast(struct sprog *p, enum dtype d, sval a);

/* Renumbers `p` in the order in which the results reach their operands, and drops what no result needs;
 * the results are renumbered too. Bodies are written as nested calls, whose arguments C evaluates, and so
 * records, in an order of the compiler's own: after this nothing shows of it. */
void sprog_order(struct sprog *p, sval *results, int nresults);

/* One instruction on numbers; operands and result are bits, zero-extended. */
uint64_t scalar_eval(const struct sinst *inst, enum dtype operand, uint64_t a, uint64_t b, uint64_t c);
/* As S_CONVERT, and so the op cast, converts. */
uint64_t scalar_convert(enum dtype to, enum dtype from, uint64_t bits);
/* The whole program for one element: args, indices and params as bits; `values` has room for p->count. */
void sprog_eval(const struct sprog *p, const uint64_t *args, const int64_t *index, const int64_t *params,
                uint64_t *values);
/* The same for `n` elements at once, of a program without indices and parameters: element e of argument k is
 * args[k * n + e], of value v values[v * n + e]. */
void sprog_eval_row(const struct sprog *p, int n, const uint64_t *args, uint64_t *values);

const char *sop_name(enum sop op); /* "add" */
int sop_operands(enum sop op);     /* how many of a, b, c are value numbers */
/* The values that an instruction reads; returns how many. */
int sinst_operands(const struct sinst *i, sval out[3]);
/* Liveness: by value number, whether the results need it. In `a`. */
const bool *sprog_live(struct arena *a, const struct sprog *p, const sval *results, int nresults);
uint64_t sprog_hash(const struct sprog *p, uint64_t seed);

/* Functions of one or two floats in the primitives above (math.c); each keeps within 4 ulp of the exact
 * result (f32: 2) over the whole range, and treats infinities, NaN and subnormals as C99 Annex F says. */
sval m_exp(struct sprog *p, sval x);
sval m_exp2(struct sprog *p, sval x);
sval m_expm1(struct sprog *p, sval x);
sval m_log(struct sprog *p, sval x);
sval m_log2(struct sprog *p, sval x);
sval m_log10(struct sprog *p, sval x);
sval m_log1p(struct sprog *p, sval x);
sval m_sin(struct sprog *p, sval x);
sval m_cos(struct sprog *p, sval x);
sval m_tan(struct sprog *p, sval x);
sval m_asin(struct sprog *p, sval x);
sval m_acos(struct sprog *p, sval x);
sval m_atan(struct sprog *p, sval x);
sval m_atan2(struct sprog *p, sval y, sval x);
sval m_sinh(struct sprog *p, sval x);
sval m_cosh(struct sprog *p, sval x);
sval m_tanh(struct sprog *p, sval x);
sval m_asinh(struct sprog *p, sval x);
sval m_acosh(struct sprog *p, sval x);
sval m_atanh(struct sprog *p, sval x);
sval m_erf(struct sprog *p, sval x);
sval m_erfc(struct sprog *p, sval x);
sval m_pow(struct sprog *p, sval x, sval y);
sval m_cbrt(struct sprog *p, sval x);
sval m_hypot(struct sprog *p, sval x, sval y);
sval m_copysign(struct sprog *p, sval x, sval y);
/* One uniform in [0,1) (24 bits for f32, 53 for f64) or one standard normal, by Philox4x32-10 (Salmon et al.,
 * "Parallel random numbers: as easy as 1, 2, 3", SC'11): key = (seed, stream) folded to 64 bits,
 * counter = (element, step). All four are i64. */
sval m_random_uniform(struct sprog *p, enum dtype d, sval seed, sval stream, sval step, sval element);
sval m_random_normal(struct sprog *p, enum dtype d, sval seed, sval stream, sval step, sval element);

#endif
