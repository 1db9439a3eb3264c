/* The CPU backend against the interpreter: random kernels, bit for bit; products against a naive loop. */
#include "runtime/cpu/jit.h"
#include "runtime/cpu/matmul.h"
#include "runtime/cpu/object.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t random_state;

static uint64_t random_bits(void) {
  uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static int random_below(int n) { return (int)(random_bits() % (uint64_t)n); }
static bool chance(int percent) { return random_below(100) < percent; }

struct fixture {
  struct arena *arena;
  struct diags diags;
  struct cpu_jit *jit;
};

static int setup(void **state) {
  struct arena *a = arena_create();
  struct fixture *f = arena_new(a, struct fixture);
  f->arena = a;
  diags_init(&f->diags, a);
  f->jit = cpu_jit_create(&f->diags);
  if (f->jit == NULL) fputs(diags_text(&f->diags, false), stderr);
  *state = f;
  return f->jit == NULL;
}

static int teardown(void **state) {
  struct fixture *f = *state;
  cpu_jit_destroy(f->jit);
  arena_destroy(f->arena);
  return 0;
}

/* ---- random values and programs ---- */

static uint64_t random_value(enum dtype d) {
  static const uint32_t f32[] = {0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000,
                                 1, 0x807fffff, 0x7f7fffff, 0x4f000000, 0xcf000000, 0x3f000000, 0x40200000};
  static const int64_t ints[] = {0, 1, -1, 2, INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX, 255, 128, 7};
  double x = (random_below(2001) - 1000) / 16.0;
  float narrow = (float)x;
  uint64_t bits = 0;
  switch (d) {
  case DT_F32:
    if (chance(15)) return f32[random_below((int)(sizeof f32 / sizeof f32[0]))];
    if (chance(10)) return (uint32_t)random_bits() & 0xff7fffff; /* any finite */
    memcpy(&bits, &narrow, 4);
    return bits;
  case DT_F64:
    if (chance(15)) {
      memcpy(&narrow, &f32[random_below((int)(sizeof f32 / sizeof f32[0]))], 4);
      x = narrow;
    } else if (chance(10)) {
      bits = random_bits() & UINT64_C(0xffefffffffffffff);
      return bits;
    }
    memcpy(&bits, &x, 8);
    return bits;
  case DT_BOOL: return random_bits() & 1;
  case DT_U8: return (uint8_t)random_bits();
  default: break;
  }
  int64_t v = chance(20)   ? ints[random_below((int)(sizeof ints / sizeof ints[0]))]
              : chance(50) ? random_below(41) - 20
                           : (int64_t)random_bits();
  return d == DT_I32 ? (uint32_t)v : (uint64_t)v;
}

static sval pick(struct sprog *p, enum dtype d) {
  sval found[64];
  int n = 0;
  for (sval v = p->count - 1; v >= 0 && n < 64; v--)
    if (s_dtype(p, v) == d) found[n++] = v;
  if (n == 0 || chance(10)) return s_bits(p, d, random_value(d));
  return found[random_below(n)];
}

static sval guard_nan(struct sprog *p, sval v) { /* the payload of a NaN must not become a number */
  enum dtype d = s_dtype(p, v);
  if (!dtype_is_float(d)) return v;
  return s_select(p, s_binary(p, S_EQ, v, v), v, s_const(p, d, 1));
}

static void random_instruction(struct sprog *p) {
  static const enum dtype twin[] = {
      [DT_F32] = DT_I32, [DT_F64] = DT_I64, [DT_I32] = DT_F32, [DT_I64] = DT_F64, [DT_U8] = DT_U8};
  enum dtype d = (enum dtype)random_below(DT_COUNT);
  enum sop op = (enum sop)(S_ADD + random_below(S_BITCAST - S_ADD + 1));
  if (d == DT_BOOL && (op == S_SHL || op == S_SHR || op == S_SAR || op == S_BITCAST)) op = S_XOR;
  switch (op) {
  case S_FMA:
  case S_SQRT:
  case S_FLOOR:
  case S_CEIL:
  case S_TRUNC:
  case S_RINT: d = chance(50) ? DT_F32 : DT_F64; break;
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
    if (dtype_is_float(d) && chance(70)) op = S_DIV; /* slow to compile */
    break;
  default: break;
  }
  sval a = pick(p, d);
  switch (op) {
  case S_FMA: s_fma(p, a, pick(p, d), pick(p, d)); break;
  case S_SELECT: s_select(p, pick(p, DT_BOOL), a, pick(p, d)); break;
  case S_CONVERT: s_convert(p, (enum dtype)random_below(DT_COUNT), a); break;
  case S_BITCAST: s_bitcast(p, twin[d], guard_nan(p, a)); break;
  default:
    if (sop_operands(op) == 1)
      s_unary(p, op, a);
    else
      s_binary(p, op, a, pick(p, d));
    break;
  }
}

static sval value_of(struct sprog *p, enum dtype d) {
  sval any =
      p->count > 0 && chance(90) ? p->count - 1 - random_below(p->count < 4 ? p->count : 4) : pick(p, d);
  return s_convert(p, d, any);
}

/* ---- random kernels ---- */

#define MAX_ELEMENTS_TESTED 6000

struct buffer {
  unsigned char *data, *expected;
  int64_t elements;
};

struct sample {
  struct kernel kernel;
  int64_t sizes[MAX_RANK + MAX_KERNEL_ARGS * MAX_RANK + 8];
  struct buffer buffer[MAX_KERNEL_ARGS];
  int64_t origin[MAX_KERNEL_ARGS]; /* elements from the start of the buffer */
  int alias[MAX_KERNEL_ARGS];      /* the argument whose buffer this is */
};

static void random_extents(struct kernel *k, int64_t *extent) {
  static const int64_t odd[] = {0, 1, 2, 3, 5, 15, 16, 17, 31, 32, 33, 65, 130};
  int64_t total = 1;
  for (int l = 0; l < k->rank; l++) {
    int64_t e = odd[chance(4) ? 0 : 1 + random_below((int)(sizeof odd / sizeof odd[0]) - 1)];
    if (e * total > MAX_ELEMENTS_TESTED) e = 2;
    extent[l] = e;
    total *= e > 0 ? e : 1;
  }
}

/* Strides of a dense layout in random order, some reversed; `broadcast` percent of the loops get stride 0, and all
 * loops from `first_zero` on. */
static void random_strides(struct sample *s, int a, int broadcast, int first_zero) {
  struct kernel *k = &s->kernel;
  int64_t *stride = s->sizes + k->rank + a * k->rank, running = 1;
  int order[MAX_RANK];
  enum stride_class class = (enum stride_class)random_below(3);
  if (broadcast == 0 && class == STRIDE_ZERO) class = STRIDE_ONE;
  if (k->vector >= first_zero) class = STRIDE_ZERO;
  for (int l = 0; l < k->rank; l++) {
    int at = random_below(l + 1);
    order[l] = order[at];
    order[at] = l;
  }
  for (int i = 0; i < k->rank; i++) /* a unit stride comes first */
    if (order[i] == k->vector && class == STRIDE_ONE) order[i] = order[0], order[0] = k->vector;
  s->origin[a] = 0;
  for (int i = 0; i < k->rank; i++) {
    int l = order[i];
    bool zero = l == k->vector ? class == STRIDE_ZERO : chance(broadcast);
    if (zero || l >= first_zero) {
      stride[l] = 0;
      continue;
    }
    if (chance(20) && !(l == k->vector && class == STRIDE_ONE)) running += 1 + random_below(3);
    stride[l] = running;
    running *= s->sizes[l] > 0 ? s->sizes[l] : 1;
    if (chance(15) && s->sizes[l] > 0 && !(l == k->vector && class == STRIDE_ONE)) {
      s->origin[a] += stride[l] * (s->sizes[l] - 1);
      stride[l] = -stride[l];
    }
  }
  k->args[a].vector = (uint8_t) class;
  s->buffer[a].elements = running;
}

static void random_data(struct arena *arena, struct buffer *b, enum dtype d) {
  size_t size = (size_t)dtype_size(d);
  b->data = arena_array(arena, (size_t)b->elements + 4, size);
  for (int64_t i = 0; i < b->elements; i++) {
    uint64_t v = random_value(d);
    memcpy(b->data + (size_t)i * size, &v, size);
  }
  b->expected = arena_copy(arena, b->data, ((size_t)b->elements + 4) * size);
}

static void random_arguments(struct arena *arena, struct sample *s) {
  struct kernel *k = &s->kernel;
  int kept = k->rank - k->nreduce, ninputs = k->nargs - k->noutputs;
  for (int a = 0; a < k->nargs; a++) {
    bool output = a >= ninputs;
    k->args[a].dtype = (uint8_t)random_below(DT_COUNT);
    k->args[a].output = output;
    s->alias[a] = a;
    random_strides(s, a, output ? 0 : 25, output ? kept : k->rank);
    if (output && a - ninputs < ninputs && chance(25)) { /* in place */
      int in = a - ninputs;
      k->args[in].dtype = k->args[a].dtype;
      k->args[in].vector = k->args[a].vector;
      memcpy(s->sizes + k->rank + in * k->rank, s->sizes + k->rank + a * k->rank, (size_t)k->rank * 8);
      s->buffer[in].elements = s->buffer[a].elements;
      s->origin[in] = s->origin[a];
      s->alias[a] = in;
    }
  }
  for (int a = 0; a < k->nargs; a++) {
    if (s->alias[a] == a)
      random_data(arena, &s->buffer[a], (enum dtype)k->args[a].dtype);
    else
      s->buffer[a] = s->buffer[s->alias[a]];
  }
}

static void random_body(struct kernel *k, struct sprog *p, int loops, bool has_acc, enum dtype acc,
                        int length) {
  int ninputs = k->nargs - k->noutputs;
  for (int a = 0; a < ninputs; a++)
    if (chance(85)) s_arg(p, a, (enum dtype)k->args[a].dtype);
  for (int l = 0; l < loops; l++)
    if (chance(30)) s_index(p, l);
  for (int i = 0; i < k->nparams; i++) s_param(p, i);
  for (int i = 0; i < length; i++) random_instruction(p);
  if (has_acc) s_arg(p, k->nargs, acc);
  for (int i = 0; i < length / 3; i++) random_instruction(p);
}

/* The dtypes of one kernel are few: inputs, outputs and constants must meet. */
static void random_sample(struct arena *arena, struct sample *s, enum kernel_kind kind) {
  struct kernel *k = &s->kernel;
  k->kind = kind;
  k->rank = 1 + random_below(4);
  if (kind == KERNEL_REDUCE) {
    k->reduce = (enum reduce_op)random_below(REDUCE_ARGMIN + 1);
    bool is_arg = k->reduce == REDUCE_ARGMAX || k->reduce == REDUCE_ARGMIN;
    k->nreduce = is_arg ? 1 : 1 + random_below(k->rank);
  }
  k->vector = random_below(k->rank);
  k->noutputs = 1 + random_below(3);
  k->nargs = k->noutputs + random_below(5);
  k->nparams = random_below(3);
  k->name = "sample";
  random_extents(k, s->sizes);
  random_arguments(arena, s);
  for (int i = 0; i < k->nparams; i++)
    s->sizes[k->rank + k->nargs * k->rank + i] = (int64_t)random_value(DT_I64);
  int ninputs = k->nargs - k->noutputs, length = chance(15) ? 60 : random_below(12);
  k->body = sprog_make(arena);
  k->epilogue = sprog_make(arena);
  random_body(k, &k->body, k->rank, false, DT_F32, length);
  if (kind == KERNEL_MAP) {
    for (int r = 0; r < k->noutputs; r++)
      k->result[r] = value_of(&k->body, (enum dtype)k->args[ninputs + r].dtype);
  } else {
    enum dtype d = (enum dtype)random_below(DT_COUNT);
    k->result[0] = value_of(&k->body, d);
    bool is_arg = k->reduce == REDUCE_ARGMAX || k->reduce == REDUCE_ARGMIN;
    random_body(k, &k->epilogue, k->rank - k->nreduce, true, is_arg ? DT_I32 : d, random_below(5));
    for (int r = 0; r < k->noutputs; r++)
      k->epilogue_result[r] = value_of(&k->epilogue, (enum dtype)k->args[ninputs + r].dtype);
  }
  k->hash = sprog_hash(&k->body, sprog_hash(&k->epilogue, random_bits()));
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

KERNEL_CALLER static void run(struct sample *s, kernel_fn *fn) {
  void *args[MAX_KERNEL_ARGS];
  struct kernel *k = &s->kernel;
  for (int a = 0; a < k->nargs; a++) {
    struct buffer *b = &s->buffer[a];
    args[a] = (fn ? b->data : b->expected) + s->origin[a] * dtype_size((enum dtype)k->args[a].dtype);
  }
  if (fn)
    fn(args, s->sizes);
  else
    kernel_eval(k, args, s->sizes);
}

static void check_sample(struct arena *a, struct sample *s, kernel_fn *fn, int number) {
  struct kernel *k = &s->kernel;
  run(s, NULL);
  run(s, fn);
  for (int i = k->nargs - k->noutputs; i < k->nargs; i++) {
    enum dtype d = (enum dtype)k->args[i].dtype;
    for (int64_t at = 0; at < s->buffer[i].elements + 4; at++) {
      unsigned char *x = s->buffer[i].data + at * dtype_size(d),
                    *y = s->buffer[i].expected + at * dtype_size(d);
      if (same_bits(d, x, y)) continue;
      struct str text = str_make(a);
      kernel_print(&text, k);
      for (int l = 0; l < k->rank; l++) str_printf(&text, "extent %lld\n", (long long)s->sizes[l]);
      fail_msg("kernel %d, argument %d, element %lld differs\n%s", number, i, (long long)at, text.data);
    }
  }
}

#define BATCH 50

static void random_kernels(struct fixture *f, enum kernel_kind kind, int batches, uint64_t seed) {
  random_state = seed;
  for (int b = 0; b < batches; b++) {
    struct arena *a = arena_create();
    struct sample *s = arena_new_array(a, BATCH, struct sample);
    const struct kernel *kernels[BATCH];
    kernel_fn *fn[BATCH];
    for (int i = 0; i < BATCH; i++) {
      random_sample(a, &s[i], kind);
      kernels[i] = &s[i].kernel;
    }
    if (!cpu_jit_compile(f->jit, kernels, BATCH, fn, &f->diags)) fail_msg("%s", diags_text(&f->diags, false));
    for (int i = 0; i < BATCH; i++) check_sample(a, &s[i], fn[i], b * BATCH + i);
    arena_destroy(a);
  }
}

static void random_maps(void **state) { random_kernels(*state, KERNEL_MAP, 8, 1); }
static void random_reductions(void **state) { random_kernels(*state, KERNEL_REDUCE, 8, 2); }

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

static void special_sample(struct arena *arena, struct sample *s, enum sop op, enum dtype d, enum dtype to,
                           int form) {
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
  s->buffer[0] = (struct buffer){.data = arena_array(arena, (size_t)(n * n) + 4, size), .elements = n * n};
  s->buffer[1] = (struct buffer){.data = arena_array(arena, (size_t)n + 4, size), .elements = n};
  for (int i = 0; i < n * n; i++)
    memcpy(s->buffer[0].data + (size_t)i * size, &value[a_col ? i / n : i % n], size);
  for (int i = 0; i < n; i++) memcpy(s->buffer[1].data + (size_t)i * size, &value[i], size);
  s->buffer[0].expected = s->buffer[0].data;
  s->buffer[1].expected = s->buffer[1].data;
  size_t out_size = (size_t)dtype_size(result);
  s->buffer[2] = (struct buffer){.data = arena_array(arena, (size_t)(n * n) + 4, out_size),
                                 .expected = arena_array(arena, (size_t)(n * n) + 4, out_size),
                                 .elements = n * n};
}

static void check_op(struct fixture *f, enum sop op) {
  struct arena *a = arena_create();
  int max = DT_COUNT * DT_COUNT * FORMS, n = 0;
  struct sample *s = arena_new_array(a, (size_t)max, struct sample);
  const struct kernel **kernels = arena_new_array(a, (size_t)max, const struct kernel *);
  kernel_fn **fn = arena_new_array(a, (size_t)max, kernel_fn *);
  for (enum dtype d = 0; d < DT_COUNT; d++)
    for (enum dtype to = 0; to < (op == S_CONVERT ? DT_COUNT : 1); to++)
      for (int form = 0; form < FORMS && op_takes(op, d); form++) {
        if (op == S_CONVERT && (to == d || form >= CONSTANT)) continue;
        special_sample(a, &s[n], op, d, to, form);
        kernels[n] = &s[n].kernel;
        n++;
      }
  if (!cpu_jit_compile(f->jit, kernels, n, fn, &f->diags)) fail_msg("%s", diags_text(&f->diags, false));
  for (int i = 0; i < n; i++) check_sample(a, &s[i], fn[i], i);
  arena_destroy(a);
}

static void every_instruction(void **state) {
  for (enum sop op = S_ADD; op <= S_BITCAST; op++) check_op(*state, op);
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

static void function_sample(struct arena *arena, struct sample *s, int which, enum dtype d) {
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
    s->buffer[a].elements = n;
    random_data(arena, &s->buffer[a], d);
  }
}

static void functions_agree(void **state) {
  struct fixture *f = *state;
  struct arena *a = arena_create();
  int n = 2 * (FUNCTIONS + 5);
  struct sample *s = arena_new_array(a, (size_t)n, struct sample);
  const struct kernel **kernels = arena_new_array(a, (size_t)n, const struct kernel *);
  kernel_fn **fn = arena_new_array(a, (size_t)n, kernel_fn *);
  random_state = 4;
  for (int i = 0; i < n; i++) {
    function_sample(a, &s[i], i / 2, i % 2 ? DT_F64 : DT_F32);
    kernels[i] = &s[i].kernel;
  }
  if (!cpu_jit_compile(f->jit, kernels, n, fn, &f->diags)) fail_msg("%s", diags_text(&f->diags, false));
  for (int i = 0; i < n; i++) check_sample(a, &s[i], fn[i], i);
  arena_destroy(a);
}

/* ---- compiled once ---- */

static void relu_kernel(struct arena *a, struct kernel *k, double floor_value) {
  *k = (struct kernel){.kind = KERNEL_MAP, .rank = 1, .nargs = 2, .noutputs = 1, .name = "h.relu"};
  k->args[0] = (struct kernel_arg){.dtype = DT_F32, .vector = STRIDE_ONE};
  k->args[1] = (struct kernel_arg){.dtype = DT_F32, .vector = STRIDE_ONE, .output = true};
  k->body = sprog_make(a);
  k->epilogue = sprog_make(a);
  k->result[0] =
      s_binary(&k->body, S_MAX, s_arg(&k->body, 0, DT_F32), s_const(&k->body, DT_F32, floor_value));
  k->hash = sprog_hash(&k->body, STR_HASH_SEED);
}

static void compiled_once(void **state) {
  struct fixture *f = *state;
  struct kernel k[3];
  relu_kernel(f->arena, &k[0], 0);
  relu_kernel(f->arena, &k[1], 0.25);
  relu_kernel(f->arena, &k[2], 0);
  k[1].hash = k[0].hash; /* a collision is no equality */
  const struct kernel *list[] = {&k[0], &k[1], &k[2]};
  kernel_fn *fn[3], *again[3];
  struct cpu_jit_stats stats;
  assert_true(cpu_jit_compile(f->jit, list, 3, fn, &f->diags));
  cpu_jit_stats(f->jit, &stats);
  assert_int_equal(stats.compiled + stats.cached, 2);
  assert_int_equal(stats.reused, 1);
  assert_ptr_equal(fn[0], fn[2]);
  assert_ptr_not_equal(fn[0], fn[1]);
  assert_true(cpu_jit_compile(f->jit, list, 3, again, &f->diags));
  cpu_jit_stats(f->jit, &stats);
  assert_int_equal(stats.compiled + stats.cached, 2);
  assert_int_equal(stats.reused, 4);
  assert_ptr_equal(fn[1], again[1]);

  float in[40], out[41];
  for (int i = 0; i < 40; i++) in[i] = (float)(i - 20);
  out[40] = 7;
  int64_t sizes[] = {40, 1, 1};
  fn[1]((void *[]){in, out}, sizes);
  for (int i = 0; i < 40; i++) assert_true(out[i] == (i > 20 ? in[i] : 0.25f));
  assert_true(out[40] == 7);
}

/* ---- the cache ---- */

static struct cpu_jit_stats compile_in_new_jit(struct fixture *f, kernel_fn **fn) {
  struct kernel k;
  struct cpu_jit_stats stats;
  relu_kernel(f->arena, &k, 0.5);
  const struct kernel *list[] = {&k};
  struct cpu_jit *jit = cpu_jit_create(&f->diags);
  assert_non_null(jit);
  assert_true(cpu_jit_compile(jit, list, 1, fn, &f->diags));
  float in[] = {1, 0.25f}, out[2];
  (*fn)((void *[]){in, out}, (int64_t[]){2, 1, 1});
  assert_true(out[0] == 1 && out[1] == 0.5f);
  cpu_jit_stats(jit, &stats);
  cpu_jit_destroy(jit);
  return stats;
}

/* The one file in the cache below `folder`. */
static void cached_file(const char *folder, char *path, size_t size) {
  char command[600];
  snprintf(command, sizeof command, "ls -d %s/dgc/*", folder);
  FILE *list = popen(command, "r");
  assert_non_null(list);
  assert_non_null(fgets(path, (int)size, list));
  path[strcspn(path, "\n")] = 0;
  pclose(list);
}

static void damage(const char *path, long at) {
  FILE *file = fopen(path, "r+b");
  assert_non_null(file);
  fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
  int c = getc(file);
  fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
  putc(c ^ 0x40, file);
  fclose(file);
}

static void cache_on_disk(void **state) {
  struct fixture *f = *state;
  char folder[] = "/tmp/dgc-cache-XXXXXX", path[500], command[600];
  const char *before = getenv("XDG_CACHE_HOME");
  kernel_fn *fn;
  assert_non_null(mkdtemp(folder));
  before = before ? arena_strdup(f->arena, before) : NULL;
  setenv("XDG_CACHE_HOME", folder, 1);
  unsetenv("DGC_CACHE");
  assert_int_equal(compile_in_new_jit(f, &fn).compiled, 1);
  assert_int_equal(compile_in_new_jit(f, &fn).cached, 1);
  cached_file(folder, path, sizeof path);
  static const long places[] = {0, 9, 17, 25, 40, -1};
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) { /* found out, replaced, good again */
    damage(path, places[i]);
    assert_int_equal(compile_in_new_jit(f, &fn).compiled, 1);
    assert_int_equal(compile_in_new_jit(f, &fn).cached, 1);
  }
  assert_int_equal(truncate(path, 100), 0);
  assert_int_equal(compile_in_new_jit(f, &fn).compiled, 1);
  assert_int_equal(chmod(path, 0666), 0); /* anybody could have written it */
  assert_int_equal(compile_in_new_jit(f, &fn).compiled, 1);
  assert_int_equal(compile_in_new_jit(f, &fn).cached, 1);
  snprintf(command, sizeof command, "%s/dgc", folder);
  assert_int_equal(chmod(command, 0777), 0);
  assert_int_equal(compile_in_new_jit(f, &fn).compiled, 1);
  assert_int_equal(chmod(command, 0700), 0);
  setenv("DGC_CACHE", "off", 1);
  assert_int_equal(compile_in_new_jit(f, &fn).compiled, 1);
  unsetenv("DGC_CACHE");
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
  if (before)
    setenv("XDG_CACHE_HOME", before, 1);
  else
    unsetenv("XDG_CACHE_HOME");
}

/* ---- objects ---- */

/* The code in a file of the cache: behind a header of four words and the key, whose length is the second one. */
static char *code_of(struct arena *a, const char *path, size_t *size) {
  uint64_t header[4];
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fread(header, 1, sizeof header, file), sizeof header);
  char *code = arena_alloc(a, header[2]);
  fseek(file, (long)header[1], SEEK_CUR);
  assert_int_equal(fread(code, 1, header[2], file), header[2]);
  fclose(file);
  *size = header[2];
  return code;
}

/* A copy with nothing behind it. */
static void load_copy(const char *code, size_t size) {
  char *copy = malloc(size ? size : 1);
  assert_non_null(copy);
  memcpy(copy, code, size);
  object_unload(object_load(copy, size));
  free(copy);
}

static void damaged_objects(void **state) {
  struct fixture *f = *state;
  char folder[] = "/tmp/dgc-object-XXXXXX", path[500], command[600];
  char *before = getenv("XDG_CACHE_HOME");
  kernel_fn *fn;
  size_t size;
  before = before ? arena_strdup(f->arena, before) : NULL;
  assert_non_null(mkdtemp(folder));
  setenv("XDG_CACHE_HOME", folder, 1);
  unsetenv("DGC_CACHE");
  compile_in_new_jit(f, &fn);
  cached_file(folder, path, sizeof path);
  char *code = code_of(f->arena, path, &size);
  for (size_t cut = 0; cut <= size; cut += 7) load_copy(code, cut);
  for (int i = 0; i < 5000; i++) {
    char *copy = arena_copy(f->arena, code, size);
    for (int n = random_below(4); n >= 0; n--) copy[random_below((int)size)] ^= (char)(1 << random_below(8));
    if (chance(20)) memset(copy + random_below((int)size - 8), -1, 8);
    load_copy(copy, size);
  }
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
  if (before)
    setenv("XDG_CACHE_HOME", before, 1);
  else
    unsetenv("XDG_CACHE_HOME");
}

/* What calls fmod is linked by LLVM, also when it comes from the cache. */
KERNEL_CALLER static void calls_of_the_library(void **state) {
  struct fixture *f = *state;
  struct kernel k = {.kind = KERNEL_MAP, .rank = 1, .nargs = 3, .noutputs = 1, .name = "rem"};
  for (int i = 0; i < 3; i++) k.args[i] = (struct kernel_arg){DT_F64, STRIDE_ONE, i == 2};
  k.body = sprog_make(f->arena);
  k.result[0] = s_binary(&k.body, S_REM, s_arg(&k.body, 0, DT_F64), s_arg(&k.body, 1, DT_F64));
  kernel_settle(&k);
  const struct kernel *list[] = {&k};
  for (int i = 0; i < 2; i++) {
    double x[] = {5.5, -7}, y[] = {2, 4}, out[2];
    kernel_fn *fn;
    struct cpu_jit *jit = cpu_jit_create(&f->diags);
    assert_true(cpu_jit_compile(jit, list, 1, &fn, &f->diags));
    fn((void *[]){x, y, out}, (int64_t[]){2, 1, 1, 1});
    assert_true(out[0] == 1.5 && out[1] == -3);
    cpu_jit_destroy(jit);
  }
}

static void text_is_stable(void **state) {
  struct fixture *f = *state;
  struct kernel k;
  relu_kernel(f->arena, &k, 0);
  const char *one = cpu_kernel_llvm(f->arena, &k, NULL, &f->diags),
             *two = cpu_kernel_llvm(f->arena, &k, NULL, &f->diags);
  assert_string_equal(one, two);
  assert_non_null(strstr(one, "define void @h.relu(ptr %args, ptr %sizes)"));
  assert_null(strstr(one, "target triple"));
  assert_non_null(
      strstr(cpu_kernel_llvm(f->arena, &k, "x86_64-pc-linux-gnu", &f->diags), "x86_64-pc-linux-gnu"));
}

/* ---- products ---- */

static double number_at(enum dtype d, const void *p, int64_t i) {
  switch (d) {
  case DT_F32: return ((const float *)p)[i];
  case DT_F64: return ((const double *)p)[i];
  case DT_I32: return ((const int32_t *)p)[i];
  case DT_I64: return (double)((const int64_t *)p)[i];
  default: return ((const uint8_t *)p)[i];
  }
}

static void set_number(enum dtype d, void *p, int64_t i, int v) {
  switch (d) {
  case DT_F32: ((float *)p)[i] = (float)v; break;
  case DT_F64: ((double *)p)[i] = v; break;
  case DT_I32: ((int32_t *)p)[i] = v; break;
  case DT_I64: ((int64_t *)p)[i] = v; break;
  default: ((uint8_t *)p)[i] = (uint8_t)v; break;
  }
}

/* Small integers: every sum is exact in every dtype, whatever the order. */
static void check_product(struct arena *arena, const struct matmul *mm, bool planned) {
  enum dtype d = mm->dtype;
  int64_t na = mm->batch * mm->m * mm->k, nb = mm->batch * mm->k * mm->n, nc = mm->batch * mm->m * mm->n;
  int limit = d == DT_U8 ? 3 : 9;
  char *a = arena_array(arena, (size_t)na, 8), *b = arena_array(arena, (size_t)nb, 8);
  char *c = arena_array(arena, (size_t)nc + 1, 8);
  for (int64_t i = 0; i < na; i++) set_number(d, a, i, random_below(limit) - (d == DT_U8 ? 0 : limit / 2));
  for (int64_t i = 0; i < nb; i++) set_number(d, b, i, random_below(limit) - (d == DT_U8 ? 0 : limit / 2));
  for (int64_t i = 0; i <= nc; i++) set_number(d, c, i, 77);
  struct cpu_matmul_plan *plan = planned ? cpu_matmul_plan_create(mm) : NULL;
  assert_true(planned ? cpu_matmul_plan_run(plan, a, b, c) : cpu_matmul(mm, a, b, c));
  cpu_matmul_plan_destroy(plan);
  assert_true(number_at(d, c, nc) == 77);
  for (int64_t at = 0; at < nc; at++) {
    int64_t batch = at / (mm->m * mm->n), i = at / mm->n % mm->m, j = at % mm->n;
    double sum = 0;
    for (int64_t p = 0; p < mm->k; p++) {
      double x = number_at(d, a, batch * mm->m * mm->k + (mm->transpose_a ? p * mm->m + i : i * mm->k + p));
      double y = number_at(d, b, batch * mm->k * mm->n + (mm->transpose_b ? j * mm->k + p : p * mm->n + j));
      sum += x * y;
    }
    if (d == DT_U8) sum = (uint8_t)(int64_t)sum;
    assert_true(number_at(d, c, at) == sum);
  }
}

static void products(void **state) {
  static const int64_t size[] = {0, 1, 3, 4, 16, 17, 70, 300};
  static const enum dtype dtypes[] = {DT_F32, DT_F64, DT_I32, DT_I64, DT_U8};
  (void)state;
  random_state = 3;
  cpu_thread_init();
  for (int i = 0; i < 400; i++) {
    struct arena *a = arena_create();
    struct matmul mm = {.dtype = dtypes[i % 5],
                        .batch = random_below(4),
                        .m = size[random_below(7)],
                        .n = size[random_below(7)],
                        .k = size[random_below(8)],
                        .transpose_a = chance(50),
                        .transpose_b = chance(50)};
    check_product(a, &mm, i % 10 < 5);
    arena_destroy(a);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(random_maps, setup, teardown),
      cmocka_unit_test_setup_teardown(random_reductions, setup, teardown),
      cmocka_unit_test_setup_teardown(every_instruction, setup, teardown),
      cmocka_unit_test_setup_teardown(functions_agree, setup, teardown),
      cmocka_unit_test_setup_teardown(compiled_once, setup, teardown),
      cmocka_unit_test_setup_teardown(cache_on_disk, setup, teardown),
      cmocka_unit_test_setup_teardown(damaged_objects, setup, teardown),
      cmocka_unit_test_setup_teardown(calls_of_the_library, setup, teardown),
      cmocka_unit_test_setup_teardown(text_is_stable, setup, teardown),
      cmocka_unit_test(products),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
