/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/kernels.h"

#include <math.h>
#include <string.h>

/* ---- random values and programs ---- */

static uint64_t random_value(struct rng *r, enum dtype d) {
  static const uint32_t f32[] = {0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000,
                                 1, 0x807fffff, 0x7f7fffff, 0x4f000000, 0xcf000000, 0x3f000000, 0x40200000};
  static const int64_t ints[] = {0, 1, -1, 2, INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX, 255, 128, 7};
  double x = (rng_below(r, 2001) - 1000) / 16.0;
  float narrow = (float)x;
  uint64_t bits = 0;
  switch (d) {
  case DT_F32:
    if (rng_chance(r, 15)) return f32[rng_below(r, (int)(sizeof f32 / sizeof f32[0]))];
    if (rng_chance(r, 10)) return (uint32_t)rng_bits(r) & 0xff7fffff; /* any finite */
    memcpy(&bits, &narrow, 4);
    return bits;
  case DT_F64:
    if (rng_chance(r, 15)) {
      memcpy(&narrow, &f32[rng_below(r, (int)(sizeof f32 / sizeof f32[0]))], 4);
      x = narrow;
    } else if (rng_chance(r, 10)) {
      bits = rng_bits(r) & UINT64_C(0xffefffffffffffff);
      return bits;
    }
    memcpy(&bits, &x, 8);
    return bits;
  case DT_BOOL: return rng_bits(r) & 1;
  case DT_U8: return (uint8_t)rng_bits(r);
  default: break;
  }
  int64_t v = rng_chance(r, 20)   ? ints[rng_below(r, (int)(sizeof ints / sizeof ints[0]))]
              : rng_chance(r, 50) ? rng_below(r, 41) - 20
                                  : (int64_t)rng_bits(r);
  return d == DT_I32 ? (uint32_t)v : (uint64_t)v;
}

static sval pick(struct rng *r, struct sprog *p, enum dtype d) {
  sval found[64];
  int n = 0;
  for (sval v = p->count - 1; v >= 0 && n < 64; v--)
    if (s_dtype(p, v) == d) found[n++] = v;
  if (n == 0 || rng_chance(r, 10)) return s_bits(p, d, random_value(r, d));
  return found[rng_below(r, n)];
}

static sval guard_nan(struct sprog *p, sval v) { /* the payload of a NaN must not become a number */
  enum dtype d = s_dtype(p, v);
  if (!dtype_is_float(d)) return v;
  return s_select(p, s_binary(p, S_EQ, v, v), v, s_const(p, d, 1));
}

static void random_instruction(struct rng *r, struct sprog *p) {
  static const enum dtype twin[] = {
      [DT_F32] = DT_I32, [DT_F64] = DT_I64, [DT_I32] = DT_F32, [DT_I64] = DT_F64, [DT_U8] = DT_U8};
  enum dtype d = (enum dtype)rng_below(r, DT_BF16);
  enum sop op = (enum sop)(S_ADD + rng_below(r, S_BITCAST - S_ADD + 1));
  if (d == DT_BOOL && (op == S_SHL || op == S_SHR || op == S_SAR || op == S_BITCAST)) op = S_XOR;
  switch (op) {
  case S_FMA:
  case S_SQRT:
  case S_FLOOR:
  case S_CEIL:
  case S_TRUNC:
  case S_RINT: d = rng_chance(r, 50) ? DT_F32 : DT_F64; break;
  case S_AND:
  case S_OR:
  case S_XOR:
  case S_SHL:
  case S_SHR:
  case S_SAR:
    if (dtype_is_float(d)) d = twin[d];
    break;
  case S_MULHI: d = DT_I32; break;
  case S_NOT: d = DT_BOOL; break;
  case S_REM:
    if (dtype_is_float(d) && rng_chance(r, 70)) op = S_DIV; /* slow to compile */
    break;
  default: break;
  }
  sval a = pick(r, p, d);
  switch (op) {
  case S_FMA: s_fma(p, a, pick(r, p, d), pick(r, p, d)); break;
  case S_SELECT: s_select(p, pick(r, p, DT_BOOL), a, pick(r, p, d)); break;
  case S_CONVERT: s_convert(p, (enum dtype)rng_below(r, DT_BF16), a); break;
  case S_BITCAST: s_bitcast(p, twin[d], guard_nan(p, a)); break;
  default:
    if (sop_operands(op) == 1)
      s_unary(p, op, a);
    else
      s_binary(p, op, a, pick(r, p, d));
    break;
  }
}

static sval value_of(struct rng *r, struct sprog *p, enum dtype d) {
  sval any = p->count > 0 && rng_chance(r, 90) ? p->count - 1 - rng_below(r, p->count < 4 ? p->count : 4)
                                               : pick(r, p, d);
  return s_convert(p, d, any);
}

/* ---- random kernels ---- */

#define MAX_ELEMENTS_TESTED 6000

static void random_extents(struct rng *r, struct kernel *k, int64_t *extent) {
  static const int64_t odd[] = {0, 1, 2, 3, 5, 8, 15, 16, 17, 24, 31, 32, 33, 65, 130};
  int64_t total = 1;
  for (int l = 0; l < k->rank; l++) {
    int64_t e = odd[rng_chance(r, 4) ? 0 : 1 + rng_below(r, (int)(sizeof odd / sizeof odd[0]) - 1)];
    if (e * total > MAX_ELEMENTS_TESTED) e = 2;
    extent[l] = e;
    total *= e > 0 ? e : 1;
  }
}

/* Strides of a dense layout in random order, some reversed; `broadcast` percent of the loops get stride 0,
 * and all loops from `first_zero` on. */
static void random_strides(struct rng *r, struct kernel_sample *s, int a, int broadcast, int first_zero) {
  struct kernel *k = &s->kernel;
  int64_t *stride = s->sizes + k->rank + a * k->rank, running = 1;
  int order[MAX_RANK];
  enum stride_class class = (enum stride_class)rng_below(r, 3);
  if (broadcast == 0 && class == STRIDE_ZERO) class = STRIDE_ONE;
  if (k->vector >= first_zero) class = STRIDE_ZERO;
  for (int l = 0; l < k->rank; l++) {
    int at = rng_below(r, l + 1);
    order[l] = order[at];
    order[at] = l;
  }
  for (int i = 0; i < k->rank; i++) /* a unit stride comes first */
    if (order[i] == k->vector && class == STRIDE_ONE) order[i] = order[0], order[0] = k->vector;
  s->origin[a] = 0;
  for (int i = 0; i < k->rank; i++) {
    int l = order[i];
    bool zero = l == k->vector ? class == STRIDE_ZERO : rng_chance(r, broadcast);
    if (zero || l >= first_zero) {
      stride[l] = 0;
      continue;
    }
    if (rng_chance(r, 20) && !(l == k->vector && class == STRIDE_ONE)) running += 1 + rng_below(r, 3);
    stride[l] = running;
    running *= s->sizes[l] > 0 ? s->sizes[l] : 1;
    if (rng_chance(r, 15) && s->sizes[l] > 0 && !(l == k->vector && class == STRIDE_ONE)) {
      s->origin[a] += stride[l] * (s->sizes[l] - 1);
      stride[l] = -stride[l];
    }
  }
  k->args[a].vector = (uint8_t) class;
  for (int l = 0; l < k->rank; l++)
    if (stride[l] == 0 && rng_chance(r, 70)) k->still[a] |= (uint8_t)(1 << l);
  s->buffer[a].elements = running;
}

static void random_data(struct rng *r, struct arena *arena, struct sample_buffer *b, enum dtype d) {
  size_t size = (size_t)dtype_size(d);
  b->data = arena_array(arena, (size_t)b->elements + 4, size);
  for (int64_t i = 0; i < b->elements; i++) {
    uint64_t v = random_value(r, d);
    memcpy(b->data + (size_t)i * size, &v, size);
  }
  b->expected = arena_copy(arena, b->data, ((size_t)b->elements + 4) * size);
}

static void random_arguments(struct rng *r, struct arena *arena, struct kernel_sample *s) {
  struct kernel *k = &s->kernel;
  int kept = k->rank - k->nreduce, ninputs = k->nargs - k->noutputs;
  for (int a = 0; a < k->nargs; a++) {
    bool output = a >= ninputs;
    k->args[a].dtype = (uint8_t)rng_below(r, DT_BF16);
    k->args[a].output = output;
    s->alias[a] = a;
    bool reduced = output && a < k->nargs - k->nmapped;
    random_strides(r, s, a, output ? 0 : 25, reduced ? kept : k->rank);
    if (output && a - ninputs < ninputs && rng_chance(r, 25)) { /* in place */
      int in = a - ninputs;
      k->args[in].dtype = k->args[a].dtype;
      k->args[in].vector = k->args[a].vector;
      k->still[in] = k->still[a];
      memcpy(s->sizes + k->rank + in * k->rank, s->sizes + k->rank + a * k->rank, (size_t)k->rank * 8);
      s->buffer[in].elements = s->buffer[a].elements;
      s->origin[in] = s->origin[a];
      s->alias[a] = in;
    }
  }
  for (int a = 0; a < k->nargs; a++) {
    if (s->alias[a] == a)
      random_data(r, arena, &s->buffer[a], (enum dtype)k->args[a].dtype);
    else
      s->buffer[a] = s->buffer[s->alias[a]];
  }
}

static void random_body(struct rng *r, struct kernel *k, struct sprog *p, int loops, bool has_acc,
                        enum dtype acc, int length) {
  int ninputs = k->nargs - k->noutputs;
  for (int a = 0; a < ninputs; a++)
    if (rng_chance(r, 85)) s_arg(p, a, (enum dtype)k->args[a].dtype);
  for (int l = 0; l < loops; l++)
    if (rng_chance(r, 30)) s_index(p, l);
  for (int i = 0; i < k->nparams; i++) s_param(p, i);
  for (int i = 0; i < length; i++) random_instruction(r, p);
  for (int j = 0; has_acc && j < k->nsums; j++) s_arg(p, k->nargs + j, acc);
  for (int i = 0; i < length / 3; i++) random_instruction(r, p);
}

/* Few elements in each row, which are reduced over. */
static bool may_be_narrow(const struct kernel *k) {
  return k->kind == KERNEL_REDUCE && k->nreduce == 1 && k->rank >= 2 && !kernel_is_arg(k);
}

static void make_narrow(struct kernel_sample *s) {
  struct kernel *k = &s->kernel;
  for (int a = 0; a < k->nargs && k->narrow; a++) {
    int64_t stride = s->sizes[k->rank + a * k->rank + k->rank - 2];
    k->rows[a] = stride == 0 ? STRIDE_ZERO : stride == 1 ? STRIDE_ONE : STRIDE_ANY;
  }
}

/* The dtypes of one kernel are few: inputs, outputs and constants must meet. */
void random_sample(struct rng *r, struct arena *arena, struct kernel_sample *s, enum kernel_kind kind,
                   int sums) {
  struct kernel *k = &s->kernel;
  k->kind = kind;
  k->rank = 1 + rng_below(r, 4);
  if (kind == KERNEL_REDUCE) {
    k->reduce = (enum reduce_op)rng_below(r, REDUCE_ARGMIN + 1);
    bool is_arg = k->reduce == REDUCE_ARGMAX || k->reduce == REDUCE_ARGMIN;
    k->nreduce = is_arg ? 1 : 1 + rng_below(r, k->rank);
    k->nsums = is_arg ? 1 : 1 + rng_below(r, sums);
  }
  k->vector = rng_below(r, k->rank);
  if (k->vector < k->rank - k->nreduce && rng_chance(r, 50)) k->strip = 1 << rng_below(r, 3);
  k->noutputs = 1 + rng_below(r, 3);
  if (kind == KERNEL_REDUCE && sums > 1) k->nmapped = rng_below(r, k->noutputs + 1);
  k->nargs = rng_chance(r, 4) ? MAX_FUSED_ARGS : k->noutputs + rng_below(r, 5);
  k->nparams = rng_below(r, 3);
  k->name = "sample";
  random_extents(r, k, s->sizes);
  if (may_be_narrow(k) && rng_chance(r, 50)) {
    k->vector = k->rank - 1;
    k->strip = 0;
    k->narrow = 2 + rng_below(r, 7);
    s->sizes[k->vector] = k->narrow;
  }
  random_arguments(r, arena, s);
  make_narrow(s);
  for (int i = 0; i < k->nparams; i++)
    s->sizes[k->rank + k->nargs * k->rank + i] = (int64_t)random_value(r, DT_I64);
  int ninputs = k->nargs - k->noutputs, length = rng_chance(r, 15) ? 60 : rng_below(r, 12);
  k->body = sprog_make(arena);
  k->epilogue = sprog_make(arena);
  random_body(r, k, &k->body, k->rank, false, DT_F32, length);
  if (kind == KERNEL_MAP) {
    for (int o = 0; o < k->noutputs; o++)
      k->result[o] = value_of(r, &k->body, (enum dtype)k->args[ninputs + o].dtype);
  } else {
    enum dtype d = (enum dtype)rng_below(r, DT_BF16);
    for (int j = 0; j < k->nsums; j++) k->result[j] = value_of(r, &k->body, d);
    for (int o = kernel_reduced(k); o < k->noutputs; o++)
      k->result[k->nsums + o - kernel_reduced(k)] =
          value_of(r, &k->body, (enum dtype)k->args[ninputs + o].dtype);
    bool is_arg = k->reduce == REDUCE_ARGMAX || k->reduce == REDUCE_ARGMIN;
    random_body(r, k, &k->epilogue, k->rank - k->nreduce, true, is_arg ? DT_I32 : d, rng_below(r, 5));
    for (int o = 0; o < kernel_reduced(k); o++)
      k->epilogue_result[o] = value_of(r, &k->epilogue, (enum dtype)k->args[ninputs + o].dtype);
    for (int a = ninputs; a < k->nargs; a++)
      if (s->alias[a] != a && !kernel_may_overwrite(k, s->alias[a], a)) {
        s->alias[a] = a;
        random_data(r, arena, &s->buffer[a], (enum dtype)k->args[a].dtype);
      }
  }
  k->hash = sprog_hash(&k->body, sprog_hash(&k->epilogue, rng_bits(r)));
}

static bool same_bits(enum dtype d, const unsigned char *x, const unsigned char *y) {
  if (memcmp(x, y, (size_t)dtype_size(d)) == 0) return true;
  if (d == DT_F32) {
    float a, b;
    memcpy(&a, x, 4), memcpy(&b, y, 4);
    return isnan(a) && isnan(b);
  }
  if (d == DT_F64) {
    double a, b;
    memcpy(&a, x, 8), memcpy(&b, y, 8);
    return isnan(a) && isnan(b);
  }
  return false;
}

void sample_args(const struct kernel_sample *s, bool expected, void *args[MAX_KERNEL_ARGS]) {
  for (int a = 0; a < s->kernel.nargs; a++) {
    const struct sample_buffer *b = &s->buffer[a];
    args[a] =
        (expected ? b->expected : b->data) + s->origin[a] * dtype_size((enum dtype)s->kernel.args[a].dtype);
  }
}

const char *sample_difference(struct arena *a, const struct kernel_sample *s) {
  const struct kernel *k = &s->kernel;
  for (int i = k->nargs - k->noutputs; i < k->nargs; i++) {
    enum dtype d = (enum dtype)k->args[i].dtype;
    for (int64_t at = 0; at < s->buffer[i].elements + 4; at++) {
      unsigned char *x = s->buffer[i].data + at * dtype_size(d),
                    *y = s->buffer[i].expected + at * dtype_size(d);
      if (same_bits(d, x, y)) continue;
      struct str text = str_make(a);
      str_printf(&text, "argument %d, element %lld differs\n", i, (long long)at);
      kernel_print(&text, k);
      for (int l = 0; l < k->rank; l++) str_printf(&text, "extent %lld\n", (long long)s->sizes[l]);
      return text.data;
    }
  }
  return NULL;
}

/* ---- every instruction on every pair of special values ---- */

static int special_values(enum dtype d, uint64_t *out) {
  static const uint32_t f32[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                 0xff800000, 0x7fc00000, 1,          0x7f7fffff, 0x4f000000,
                                 0xcf000001, 0x3f000000, 0x40200000, 0xc0600000, 0x437f8000};
  static const int64_t ints[] = {0,         1,   -1,  2,  INT32_MIN, INT32_MAX, INT64_MIN,
                                 INT64_MAX, 255, 128, -7, 31,        77};
  int n = 0;
  if (dtype_is_float(d)) {
    for (size_t i = 0; i < sizeof f32 / sizeof f32[0]; i++) {
      float narrow;
      memcpy(&narrow, &f32[i], 4);
      double wide = narrow;
      if (d == DT_F32)
        out[n++] = f32[i];
      else
        memcpy(&out[n++], &wide, 8);
    }
    return n;
  }
  for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++)
    out[n++] = d == DT_I64   ? (uint64_t)ints[i]
               : d == DT_I32 ? (uint32_t)ints[i]
               : d == DT_U8  ? (uint8_t)ints[i]
                             : (uint64_t)(ints[i] & 1);
  return n;
}

static bool op_takes(enum sop op, enum dtype d) {
  switch (op) {
  case S_FMA:
  case S_SQRT:
  case S_FLOOR:
  case S_CEIL:
  case S_TRUNC:
  case S_RINT: return dtype_is_float(d);
  case S_AND:
  case S_OR:
  case S_XOR: return !dtype_is_float(d);
  case S_SHL:
  case S_SHR:
  case S_SAR: return dtype_is_int(d);
  case S_MULHI: return d == DT_I32;
  case S_NOT: return d == DT_BOOL;
  case S_BITCAST: return d != DT_U8 && d != DT_BOOL;
  default: return true;
  }
}

static sval apply_op(struct sprog *p, enum sop op, enum dtype to, sval a, sval b) {
  static const enum dtype twin[] = {
      [DT_F32] = DT_I32, [DT_F64] = DT_I64, [DT_I32] = DT_F32, [DT_I64] = DT_F64};
  switch (op) {
  case S_FMA: return s_fma(p, a, b, s_unary(p, S_NEG, b));
  case S_SELECT: return s_select(p, s_binary(p, S_LT, a, b), a, b);
  case S_CONVERT: return s_convert(p, to, a);
  case S_BITCAST: return s_bitcast(p, twin[s_dtype(p, a)], guard_nan(p, a));
  default: return sop_operands(op) == 1 ? s_unary(p, op, a) : s_binary(p, op, a, b);
  }
}

/* How the operands come: both in lanes; one the same for all lanes; both; the second a constant. */
enum form { IN_LANES, FIRST_UNIFORM, UNIFORM, CONSTANT, FORMS = CONSTANT + 4 };

static void special_sample(struct arena *arena, struct kernel_sample *s, enum sop op, enum dtype d,
                           enum dtype to, int form) {
  struct kernel *k = &s->kernel;
  uint64_t value[32];
  int n = special_values(d, value);
  *k = (struct kernel){
      .kind = KERNEL_MAP, .rank = 2, .vector = 1, .nargs = 3, .noutputs = 1, .name = "special"};
  k->body = sprog_make(arena);
  k->epilogue = sprog_make(arena);
  sval a = s_arg(&k->body, 0, d), b = s_arg(&k->body, 1, d);
  if (form >= CONSTANT) b = s_bits(&k->body, d, value[form - CONSTANT + (dtype_is_float(d) ? 0 : form & 1)]);
  k->result[0] = apply_op(&k->body, op, to, a, b);
  enum dtype result = s_dtype(&k->body, k->result[0]);
  /* Pairs lie in memory as a[i], b[j] or, for lanes alone, as a[i*n+j], b[j]; a third loop of one element
   * makes both uniform. */
  int64_t a_row = 1, a_col = 0;
  if (form == IN_LANES || form >= CONSTANT) a_row = n, a_col = 1;
  if (form == UNIFORM) {
    k->rank = 3, k->vector = 2;
    int64_t sizes[] = {n, n, 1, 1, 0, 0, 0, 1, 0, n, 1, 1};
    memcpy(s->sizes, sizes, sizeof sizes);
  } else {
    int64_t sizes[] = {n, n, a_row, a_col, 0, 1, n, 1};
    memcpy(s->sizes, sizes, sizeof sizes);
  }
  enum stride_class lanes = form == UNIFORM ? STRIDE_ZERO : STRIDE_ONE;
  k->args[0] =
      (struct kernel_arg){.dtype = (uint8_t)d, .vector = (uint8_t)(a_col ? STRIDE_ONE : STRIDE_ZERO)};
  k->args[1] = (struct kernel_arg){.dtype = (uint8_t)d, .vector = (uint8_t)lanes};
  k->args[2] = (struct kernel_arg){.dtype = (uint8_t)result, .vector = STRIDE_ONE, .output = true};
  k->hash = sprog_hash(&k->body, (uint64_t)form << 8 | d);
  size_t size = (size_t)dtype_size(d);
  s->buffer[0] =
      (struct sample_buffer){.data = arena_array(arena, (size_t)(n * n) + 4, size), .elements = n * n};
  s->buffer[1] = (struct sample_buffer){.data = arena_array(arena, (size_t)n + 4, size), .elements = n};
  for (int i = 0; i < n * n; i++)
    memcpy(s->buffer[0].data + (size_t)i * size, &value[a_col ? i / n : i % n], size);
  for (int i = 0; i < n; i++) memcpy(s->buffer[1].data + (size_t)i * size, &value[i], size);
  for (int i = 0; i < 3; i++) s->alias[i] = i;
  s->buffer[0].expected = s->buffer[0].data;
  s->buffer[1].expected = s->buffer[1].data;
  size_t out_size = (size_t)dtype_size(result);
  s->buffer[2] = (struct sample_buffer){.data = arena_array(arena, (size_t)(n * n) + 4, out_size),
                                        .expected = arena_array(arena, (size_t)(n * n) + 4, out_size),
                                        .elements = n * n};
}

int special_samples(struct arena *arena, enum sop op, struct kernel_sample **out) {
  struct kernel_sample *s = arena_new_array(arena, DT_BF16 * DT_COUNT * FORMS, struct kernel_sample);
  int n = 0;
  for (enum dtype d = 0; d < DT_BF16; d++)
    for (enum dtype to = 0; to < (op == S_CONVERT ? DT_BF16 : 1); to++)
      for (int form = 0; form < FORMS && op_takes(op, d); form++)
        if (op != S_CONVERT || (to != d && form < CONSTANT)) special_sample(arena, &s[n++], op, d, to, form);
  *out = s;
  return n;
}

/* ---- functions ---- */

typedef sval function(struct sprog *p, sval x);
static function *const functions[] = {m_exp,   m_exp2,  m_expm1, m_log,  m_log2, m_log10, m_log1p, m_sin,
                                      m_cos,   m_tan,   m_asin,  m_acos, m_atan, m_sinh,  m_cosh,  m_tanh,
                                      m_asinh, m_acosh, m_atanh, m_erf,  m_erfc, m_cbrt};
#define FUNCTIONS (int)(sizeof functions / sizeof functions[0])

static sval function_of_two(struct sprog *p, int which, sval x, sval y) {
  enum dtype d = s_dtype(p, x);
  sval seed = s_int(p, DT_I64, 7), stream = s_int(p, DT_I64, 3), step = s_param(p, 0), at = s_index(p, 0);
  switch (which) {
  case 0: return m_pow(p, x, y);
  case 1: return m_atan2(p, x, y);
  case 2: return m_hypot(p, x, y);
  case 3: return m_random_uniform(p, d, seed, stream, step, at);
  default: return m_random_normal(p, d, seed, stream, step, at);
  }
}

static void function_sample(struct rng *r, struct arena *arena, struct kernel_sample *s, int which,
                            enum dtype d) {
  struct kernel *k = &s->kernel;
  int64_t n = 1500;
  *k = (struct kernel){
      .kind = KERNEL_MAP, .rank = 1, .nargs = 3, .noutputs = 1, .nparams = 1, .name = "function"};
  k->body = sprog_make(arena);
  k->epilogue = sprog_make(arena);
  sval x = s_arg(&k->body, 0, d), y = s_arg(&k->body, 1, d);
  k->result[0] =
      which < FUNCTIONS ? functions[which](&k->body, x) : function_of_two(&k->body, which - FUNCTIONS, x, y);
  k->hash = sprog_hash(&k->body, (uint64_t)which);
  memcpy(s->sizes, (int64_t[]){n, 1, 1, 1, 12}, 5 * sizeof(int64_t));
  for (int a = 0; a < 3; a++) {
    k->args[a] = (struct kernel_arg){.dtype = (uint8_t)d, .vector = STRIDE_ONE, .output = a == 2};
    s->alias[a] = a;
    s->buffer[a].elements = n;
    random_data(r, arena, &s->buffer[a], d);
  }
}

int function_samples(struct arena *arena, struct rng *r, struct kernel_sample **out) {
  int n = 2 * (FUNCTIONS + 5);
  *out = arena_new_array(arena, (size_t)n, struct kernel_sample);
  for (int i = 0; i < n; i++) function_sample(r, arena, &(*out)[i], i / 2, i % 2 ? DT_F64 : DT_F32);
  return n;
}
