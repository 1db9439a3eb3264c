/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels on the host: identity, text, and the interpreter.
 *
 * The interpreter walks the loops in lexicographic order. An element of a reduction goes to the lane its
 * index along a reduced vector loop belongs to; within a lane the order of elements is that of the loops. */
#include "ir/scalar/kernel.h"

#include "base/bits.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

void kernel_settle(struct kernel *k) {
  sprog_order(&k->body, k->result, kernel_results(k));
  if (k->kind == KERNEL_REDUCE) sprog_order(&k->epilogue, k->epilogue_result, kernel_reduced(k));
}

static bool sprog_equal(const struct sprog *a, const struct sprog *b) {
  if (a->count != b->count) return false;
  for (int v = 0; v < a->count; v++) {
    const struct sinst *x = &a->inst[v], *y = &b->inst[v];
    if (x->op != y->op || x->dtype != y->dtype || x->a != y->a || x->b != y->b || x->c != y->c ||
        x->bits != y->bits)
      return false;
  }
  return true;
}

bool kernel_equal(const struct kernel *a, const struct kernel *b) {
  if (a->kind != b->kind || a->rank != b->rank || a->nreduce != b->nreduce || a->vector != b->vector ||
      a->strip != b->strip || a->narrow != b->narrow || a->nsums != b->nsums || a->nmapped != b->nmapped ||
      a->nargs != b->nargs || a->noutputs != b->noutputs || a->nparams != b->nparams)
    return false;
  for (int i = 0; i < a->nargs; i++) {
    const struct kernel_arg *x = &a->args[i], *y = &b->args[i];
    if (x->dtype != y->dtype || x->vector != y->vector || a->rows[i] != b->rows[i] ||
        a->still[i] != b->still[i] || x->output != y->output)
      return false;
  }
  for (int i = 0; i < kernel_results(a); i++)
    if (a->result[i] != b->result[i]) return false;
  if (!sprog_equal(&a->body, &b->body)) return false;
  if (a->kind == KERNEL_MAP) return true;
  for (int i = 0; i < kernel_reduced(a); i++)
    if (a->epilogue_result[i] != b->epilogue_result[i]) return false;
  return a->reduce == b->reduce && sprog_equal(&a->epilogue, &b->epilogue);
}

static struct sprog copy_program(struct arena *a, const struct sprog *p) {
  struct sprog copy = {.arena = a, .count = p->count, .cap = p->count};
  copy.inst = arena_copy(a, p->inst, (size_t)p->count * sizeof *p->inst);
  return copy;
}

struct kernel kernel_copy(struct arena *a, const struct kernel *k) {
  struct kernel copy = *k;
  copy.body = copy_program(a, &k->body);
  if (k->kind == KERNEL_REDUCE) copy.epilogue = copy_program(a, &k->epilogue);
  return copy;
}

static void put_program(struct str *s, const struct sprog *p, const sval *result, int n) {
  _Static_assert(sizeof(struct sinst) == 16, "no padding: it would show in the bytes");
  str_putn(s, (const char *)&p->count, sizeof p->count);
  str_putn(s, (const char *)p->inst, (size_t)p->count * sizeof *p->inst);
  str_putn(s, (const char *)result, (size_t)n * sizeof *result);
}

void kernel_bytes(struct str *s, const struct kernel *k) {
  const int head[] = {(int)k->kind, k->kind == KERNEL_REDUCE ? (int)k->reduce : 0,
                      k->rank,      k->nreduce,
                      k->vector,    k->strip,
                      k->nsums,     k->nmapped,
                      k->nargs,     k->noutputs,
                      k->nparams,   k->narrow};
  str_putn(s, (const char *)head, sizeof head);
  for (int i = 0; i < k->nargs; i++) {
    const struct kernel_arg *x = &k->args[i];
    const char arg[] = {(char)x->dtype, (char)x->vector, (char)k->rows[i], (char)k->still[i],
                        (char)x->output};
    str_putn(s, arg, sizeof arg);
  }
  put_program(s, &k->body, k->result, kernel_results(k));
  if (k->kind == KERNEL_REDUCE) put_program(s, &k->epilogue, k->epilogue_result, kernel_reduced(k));
}

/* ---- text ---- */

static void print_const(struct str *s, enum dtype d, uint64_t bits) {
  uint32_t low = (uint32_t)bits;
  if (d == DT_F32)
    str_float(s, f32_of_bits(low));
  else if (d == DT_F64)
    str_double(s, f64_of_bits(bits));
  else if (d == DT_I32)
    str_printf(s, "%" PRId64, (int64_t)(low & 0x7fffffff) - (int64_t)(low & 0x80000000));
  else if (d == DT_I64)
    str_printf(s, "%s%" PRIu64, bits >> 63 ? "-" : "", bits >> 63 ? 0 - bits : bits);
  else
    str_printf(s, "%" PRIu64, bits);
}

static void print_inst(struct str *s, const struct sinst *i) {
  str_put(s, sop_name(i->op));
  if (i->op == S_CONST) {
    str_putc(s, ' ');
    print_const(s, i->dtype, i->bits);
    return;
  }
  const int v[3] = {i->a, i->b, i->c};
  int n = sop_operands(i->op);
  if (n == 0) str_printf(s, " %d", i->a); /* arg, index, param: a number of their own */
  for (int k = 0; k < n; k++) str_printf(s, "%s v%d", k ? "," : "", v[k]);
}

static void print_program(struct str *s, const char *what, const struct sprog *p, const sval *result, int n) {
  str_printf(s, "  %s\n", what);
  for (int v = 0; v < p->count; v++) {
    str_printf(s, "    v%d = ", v);
    print_inst(s, &p->inst[v]);
    str_printf(s, " : %s\n", dtype_name(p->inst[v].dtype));
  }
  str_put(s, "    give");
  for (int i = 0; i < n; i++) str_printf(s, "%s v%d", i ? "," : "", result[i]);
  str_putc(s, '\n');
}

void kernel_print(struct str *s, const struct kernel *k) {
  static const char *const reduce[] = {"sum", "prod", "max", "min", "argmax", "argmin"};
  static const char *const stride[] = {"zero", "one", "any"};
  str_printf(s, "kernel %s: ", k->name ? k->name : "");
  if (k->kind == KERNEL_MAP)
    str_printf(s, "map, %d loops", k->rank);
  else
    str_printf(s, "%s over the last %d of %d loops", reduce[k->reduce], k->nreduce, k->rank);
  if (k->nsums > 1) str_printf(s, ", %d at once", k->nsums);
  if (k->nmapped) str_printf(s, ", %d mapped", k->nmapped);
  str_printf(s, ", vector loop %d", k->vector);
  if (k->nparams) str_printf(s, ", %d params", k->nparams);
  str_putc(s, '\n');
  for (int i = 0; i < k->nargs; i++)
    str_printf(s, "  arg %d %s %s stride %s\n", i, k->args[i].output ? "out" : "in",
               dtype_name(k->args[i].dtype), stride[k->args[i].vector]);
  print_program(s, "body", &k->body, k->result, kernel_results(k));
  if (k->kind == KERNEL_REDUCE)
    print_program(s, "epilogue", &k->epilogue, k->epilogue_result, kernel_reduced(k));
}

/* ---- the interpreter ---- */

struct kernel_run {
  const struct kernel *k;
  void *const *args;
  const int64_t *extents, *strides, *params;
  const int64_t *starts; /* what indices are greater by; NULL: by nothing */
  uint64_t *values;
  uint32_t body_reads, epilogue_reads; /* bit i: S_ARG i */
  /* one lane, or KERNEL_LANES along a reduced vector loop */
  uint64_t acc[MAX_KERNEL_SUMS][KERNEL_LANES];
  int64_t where[KERNEL_LANES]; /* argmax, argmin */
  int64_t told[MAX_RANK];
};

static uint32_t reads(const struct sprog *p) {
  uint32_t mask = 0;
  for (int v = 0; v < p->count; v++)
    if (p->inst[v].op == S_ARG) mask |= UINT32_C(1) << p->inst[v].a;
  return mask;
}

static char *element(const struct kernel_run *r, int arg, const int64_t *index) {
  int64_t at = 0;
  for (int l = 0; l < r->k->rank; l++) at += index[l] * r->strides[arg * r->k->rank + l];
  return (char *)r->args[arg] + at * dtype_size(r->k->args[arg].dtype);
}

static void load(const struct kernel_run *r, uint32_t mask, const int64_t *index, uint64_t *into) {
  for (int a = 0; a < r->k->nargs; a++)
    if (mask >> a & 1) {
      const void *from = element(r, a, index);
      uint32_t word;
      uint16_t half;
      switch ((enum dtype)r->k->args[a].dtype) {
      case DT_F64:
      case DT_I64: memcpy(&into[a], from, 8); break;
      case DT_F32:
      case DT_I32:
        memcpy(&word, from, 4);
        into[a] = word;
        break;
      case DT_U8:
      case DT_BOOL: into[a] = *(const uint8_t *)from; break;
      case DT_BF16:
      case DT_F16:
        memcpy(&half, from, 2);
        into[a] = half;
        break;
      case DT_COUNT: break;
      }
    }
}

/* Into arguments from `first` on. All values of one element were computed before the first is written: outputs may be
 * inputs. */
static void store(const struct kernel_run *r, const sval *result, int first, int count,
                  const int64_t *index) {
  const struct kernel *k = r->k;
  for (int i = 0; i < count; i++) {
    int a = first + i;
    uint64_t bits = r->values[result[i]];
    uint32_t word = (uint32_t)bits;
    uint16_t half = (uint16_t)bits;
    void *to = element(r, a, index);
    switch ((enum dtype)k->args[a].dtype) {
    case DT_F64:
    case DT_I64: memcpy(to, &bits, 8); break;
    case DT_F32:
    case DT_I32: memcpy(to, &word, 4); break;
    case DT_U8:
    case DT_BOOL: *(uint8_t *)to = (uint8_t)bits; break;
    case DT_BF16:
    case DT_F16: memcpy(to, &half, 2); break;
    case DT_COUNT: break;
    }
  }
}

/* The next index of loops from..to in lexicographic order; false after the last. */
static bool advance(const struct kernel_run *r, int64_t *index, int from, int to) {
  for (int l = to - 1; l >= from; l--) {
    if (++index[l] < r->extents[l]) return true;
    index[l] = 0;
  }
  return false;
}

static bool empty(const struct kernel_run *r, int from, int to) {
  for (int l = from; l < to; l++)
    if (r->extents[l] <= 0) return true;
  return false;
}

enum dtype kernel_acc_dtype(const struct kernel *k) { return s_dtype(&k->body, k->result[0]); }

static uint64_t primitive(enum sop op, enum dtype d, uint64_t a, uint64_t b) {
  struct sinst i = {.op = (uint8_t)op, .dtype = (uint8_t)d};
  return scalar_eval(&i, d, a, b, 0);
}

uint64_t reduce_identity(enum reduce_op op, enum dtype d) {
  bool lowest = op == REDUCE_MAX || op == REDUCE_ARGMAX;
  switch (op) {
  case REDUCE_SUM: return 0;
  case REDUCE_PROD: return d == DT_F32 ? 0x3f800000 : d == DT_F64 ? UINT64_C(0x3ff) << 52 : 1;
  case REDUCE_MAX:
  case REDUCE_MIN:
  case REDUCE_ARGMAX:
  case REDUCE_ARGMIN: break;
  }
  switch (d) {
  case DT_F32: return lowest ? 0xff800000 : 0x7f800000;
  case DT_F64: return lowest ? UINT64_C(0xfff) << 52 : UINT64_C(0x7ff) << 52;
  case DT_I32: return lowest ? 0x80000000 : 0x7fffffff;
  case DT_I64: return lowest ? UINT64_C(1) << 63 : INT64_MAX;
  case DT_U8: return lowest ? 0 : 255;
  case DT_BOOL:
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
  return lowest ? 0 : 1;
}

enum sop reduce_primitive(enum reduce_op op) {
  switch (op) {
  case REDUCE_SUM: return S_ADD;
  case REDUCE_PROD: return S_MUL;
  case REDUCE_MAX: return S_MAX;
  case REDUCE_MIN: return S_MIN;
  case REDUCE_ARGMAX:
  case REDUCE_ARGMIN: break;
  }
  assert(!"a reduction to a place has none");
  return S_MAX;
}

bool kernel_may_overwrite(const struct kernel *k, int input, int output) {
  if (k->kind == KERNEL_MAP || output < k->nargs - k->nmapped) return true;
  for (int v = 0; v < k->epilogue.count; v++)
    if (k->epilogue.inst[v].op == S_ARG && k->epilogue.inst[v].a == input) return false;
  return true;
}

bool kernel_is_arg(const struct kernel *k) {
  return k->kind == KERNEL_REDUCE && (k->reduce == REDUCE_ARGMAX || k->reduce == REDUCE_ARGMIN);
}

/* Whether x comes before y in the order of argmax or argmin: NaN first, then by value. */
static bool beats(const struct kernel *k, uint64_t x, uint64_t y) {
  enum dtype d = kernel_acc_dtype(k);
  bool x_nan = primitive(S_NE, d, x, x), y_nan = primitive(S_NE, d, y, y);
  if (x_nan || y_nan) return x_nan && !y_nan;
  return k->reduce == REDUCE_ARGMAX ? primitive(S_LT, d, y, x) : primitive(S_LT, d, x, y);
}

/* Lane `into` of accumulator `sum` takes in one more value, or another lane. */
static void combine(struct kernel_run *r, int sum, int into, uint64_t x, int64_t where) {
  const struct kernel *k = r->k;
  uint64_t *acc = &r->acc[sum][into];
  if (!kernel_is_arg(k)) {
    *acc = primitive(reduce_primitive(k->reduce), kernel_acc_dtype(k), *acc, x);
  } else if (beats(k, x, *acc) || (!beats(k, *acc, x) && where < r->where[into])) {
    *acc = x;
    r->where[into] = where;
  }
}

/* Those that the program is told. */
static const int64_t *indices(struct kernel_run *r, const int64_t *index) {
  if (!r->starts) return index;
  for (int l = 0; l < r->k->rank; l++) r->told[l] = index[l] + r->starts[l];
  return r->told;
}

/* The reduction at one outer index; the results are in lane 0. */
static void reduce(struct kernel_run *r, int64_t *index, uint64_t *args) {
  const struct kernel *k = r->k;
  int kept = k->rank - k->nreduce, lanes = k->vector >= kept ? KERNEL_LANES : 1;
  for (int l = 0; l < lanes; l++) {
    for (int j = 0; j < k->nsums; j++) r->acc[j][l] = reduce_identity(k->reduce, kernel_acc_dtype(k));
    r->where[l] = 0;
  }
  if (!empty(r, kept, k->rank)) do {
      load(r, r->body_reads, index, args);
      sprog_eval(&k->body, args, indices(r, index), r->params, r->values);
      int lane = lanes > 1 ? (int)(index[k->vector] % KERNEL_LANES) : 0;
      for (int j = 0; j < k->nsums; j++) combine(r, j, lane, r->values[k->result[j]], index[kept]);
      store(r, k->result + k->nsums, k->nargs - k->nmapped, k->nmapped, index);
    } while (advance(r, index, kept, k->rank));
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int j = 0; j < k->nsums; j++)
      for (int l = 0; l < half; l++) combine(r, j, l, r->acc[j][l + half], r->where[l + half]);
}

static void eval(const struct kernel *k, void *const *args, const int64_t *sizes, const int64_t *starts) {
  struct arena_guard guard;
  struct arena *scratch = arena_create_guarded(&guard);
  int most = k->body.count > k->epilogue.count ? k->body.count : k->epilogue.count;
  struct kernel_run r = {.k = k,
                         .args = args,
                         .extents = sizes,
                         .strides = sizes + k->rank,
                         .params = sizes + k->rank + k->nargs * k->rank,
                         .starts = starts,
                         .values = arena_new_array(scratch, (size_t)most + 1, uint64_t),
                         .body_reads = reads(&k->body)};
  if (k->kind == KERNEL_REDUCE) r.epilogue_reads = reads(&k->epilogue);
  uint64_t in[MAX_KERNEL_ARGS + MAX_KERNEL_SUMS] = {0};
  int64_t index[MAX_RANK] = {0};
  int kept = k->kind == KERNEL_MAP ? k->rank : k->rank - k->nreduce;
  if (!empty(&r, 0, kept)) do {
      if (k->kind == KERNEL_MAP) {
        load(&r, r.body_reads, index, in);
        sprog_eval(&k->body, in, indices(&r, index), r.params, r.values);
        store(&r, k->result, k->nargs - k->noutputs, k->noutputs, index);
      } else {
        reduce(&r, index, in);
        load(&r, r.epilogue_reads, index, in);
        for (int j = 0; j < k->nsums; j++)
          in[k->nargs + j] = kernel_is_arg(k) ? (uint64_t)(uint32_t)r.where[0] : r.acc[j][0];
        sprog_eval(&k->epilogue, in, indices(&r, index), r.params, r.values);
        store(&r, k->epilogue_result, k->nargs - k->noutputs, kernel_reduced(k), index);
      }
    } while (advance(&r, index, 0, kept));
  arena_destroy_guarded(scratch, &guard);
}

void kernel_eval(const struct kernel *k, void *const *args, const int64_t *sizes) {
  eval(k, args, sizes, NULL);
}

void kernel_eval_piece(const struct kernel *k, void *const *args, const int64_t *sizes) {
  eval(k, args, sizes, sizes + kernel_nsizes(k));
}
