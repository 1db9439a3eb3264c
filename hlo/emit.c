/* SPDX-License-Identifier: Apache-2.0 */
/* One operation of a line each, as text. */
#include "hlo/emit.h"

#include "base/bits.h"
#include "base/integer.h"

#include <math.h>

/* ---- types and lists ---- */

struct type hlo_type(const struct hlo *h, const struct node *n) {
  return h->batch ? type_specialize(&n->type, h->batch) : n->type;
}

static const char *const elements[DT_COUNT] = {
    [DT_F32] = "f32", [DT_F64] = "f64", [DT_I32] = "i32",   [DT_I64] = "i64",
    [DT_U8] = "ui8",  [DT_BOOL] = "i1", [DT_BF16] = "bf16", [DT_F16] = "f16"};

const char *hlo_type_text(struct arena *a, const struct type *t) {
  struct str s = str_make(a);
  str_put(&s, "tensor<");
  for (int i = 0; i < t->rank; i++) str_printf(&s, "%lldx", (long long)t->dim[i]);
  str_printf(&s, "%s>", elements[t->dtype]);
  return s.data;
}

static const char *list(struct arena *a, const char *before, int count, const int64_t *ints,
                        const char *after) {
  struct str s = str_make(a);
  str_put(&s, before);
  for (int i = 0; i < count; i++) str_printf(&s, i ? ", %lld" : "%lld", (long long)ints[i]);
  str_put(&s, after);
  return s.data;
}

const char *hlo_list(struct arena *a, int count, const int64_t *ints) {
  return list(a, "[", count, ints, "]");
}

const char *hlo_array(struct arena *a, int count, const int64_t *ints) {
  return list(a, count ? "array<i64: " : "array<i64", count, ints, ">");
}

static const char argument[] = "%arg";

void hlo_spatial(const struct node *n, enum attr_key key, int64_t otherwise, int64_t *out) {
  const struct attr *a = node_attr(n, key);
  for (int i = 0; i < n->type.rank - 2; i++) out[i] = a ? a->ints[i] : otherwise;
}

void hlo_print_value(struct str *s, struct hlo_value v) {
  if (v.id < 0)
    str_printf(s, "%s%d", argument, -1 - v.id);
  else
    str_printf(s, "%%%d", v.id);
}

void hlo_print_string(struct str *s, const char *text) {
  str_putc(s, '"');
  for (const char *p = text; *p; p++) {
    unsigned char c = (unsigned char)*p;
    if (c < ' ' || c >= 0x7f || c == '"' || c == '\\')
      str_printf(s, "\\%02X", c);
    else
      str_putc(s, *p);
  }
  str_putc(s, '"');
}

/* ---- operations ---- */

static void print_operands(struct hlo *h, int n, const struct hlo_value *in) {
  for (int i = 0; i < n; i++) {
    if (i) str_put(h->out, ", ");
    hlo_print_value(h->out, in[i]);
  }
}

static struct hlo_value begin(struct hlo *h, const struct type *t) {
  struct hlo_value v = {h->next++, *t};
  str_put(h->out, "    ");
  hlo_print_value(h->out, v);
  str_put(h->out, " = ");
  return v;
}

static void end(struct hlo *h) { str_printf(h->out, " loc(#loc%d)\n", h->place); }

static void print_signature(struct hlo *h, int n, const struct hlo_value *in, const struct type *t) {
  str_put(h->out, " : (");
  for (int i = 0; i < n; i++) str_printf(h->out, "%s%s", i ? ", " : "", hlo_type_text(h->arena, &in[i].type));
  str_printf(h->out, ") -> %s", hlo_type_text(h->arena, t));
}

struct hlo_value hlo_op(struct hlo *h, const char *name, const struct type *t, int n,
                        const struct hlo_value *in, const char *attrs, const char *region) {
  struct hlo_value v = begin(h, t);
  str_printf(h->out, "\"stablehlo.%s\"(", name);
  print_operands(h, n, in);
  str_put(h->out, ")");
  if (attrs) str_printf(h->out, " <{%s}>", attrs);
  if (region) str_printf(h->out, " ({\n%s    })", region);
  print_signature(h, n, in, t);
  end(h);
  return v;
}

const char *hlo_joining(struct hlo *h, const char *name, enum dtype d) {
  struct type t = type_scalar(d);
  const char *text = hlo_type_text(h->arena, &t);
  return arena_printf(h->arena,
                      "    ^bb0(%%a: %s, %%b: %s):\n      %%c = stablehlo.%s %%a, %%b : %s\n"
                      "      stablehlo.return %%c : %s\n",
                      text, text, name, text, text);
}

/* ---- elementwise ---- */

/* All operands and the result are of one type. */
static struct hlo_value alike(struct hlo *h, const char *name, int n, const struct hlo_value *in) {
  struct hlo_value v = begin(h, &in[0].type);
  str_printf(h->out, "stablehlo.%s ", name);
  print_operands(h, n, in);
  str_printf(h->out, " : %s", hlo_type_text(h->arena, &v.type));
  end(h);
  return v;
}

struct hlo_value hlo_unary(struct hlo *h, const char *name, struct hlo_value x) {
  return alike(h, name, 1, &x);
}

struct hlo_value hlo_binary(struct hlo *h, const char *name, struct hlo_value a, struct hlo_value b) {
  return alike(h, name, 2, (struct hlo_value[]){a, b});
}

struct hlo_value hlo_compare(struct hlo *h, const char *direction, struct hlo_value a, struct hlo_value b) {
  struct hlo_value in[] = {a, b};
  struct type t = type_with_dtype(a.type, DT_BOOL);
  struct hlo_value v = begin(h, &t);
  str_printf(h->out, "stablehlo.compare %s, ", direction);
  print_operands(h, 2, in);
  print_signature(h, 2, in, &t);
  end(h);
  return v;
}

struct hlo_value hlo_select(struct hlo *h, struct hlo_value condition, struct hlo_value a,
                            struct hlo_value b) {
  return hlo_op(h, "select", &a.type, 3, (struct hlo_value[]){condition, a, b}, NULL, NULL);
}

struct hlo_value hlo_convert(struct hlo *h, enum dtype d, struct hlo_value x) {
  struct type t = type_with_dtype(x.type, d);
  if (x.type.dtype == d) return x;
  return hlo_op(h, "convert", &t, 1, &x, NULL, NULL);
}

/* From the least that lies outside on. */
static double bound_above(enum dtype d) { return d == DT_U8 ? 256 : d == DT_I32 ? 0x1p31 : 0x1p63; }
static int64_t largest(enum dtype d) { return d == DT_U8 ? 255 : d == DT_I32 ? INT32_MAX : INT64_MAX; }
static int64_t least_number(enum dtype d) { return d == DT_U8 ? 0 : d == DT_I32 ? INT32_MIN : INT64_MIN; }

/* A float truncates and saturates, and NaN gives 0. */
static struct hlo_value saturate(struct hlo *h, enum dtype d, struct hlo_value x) {
  struct type t = type_with_dtype(x.type, d);
  struct hlo_value above = hlo_compare(h, "GE", x, hlo_number(h, &x.type, bound_above(d)));
  struct hlo_value below =
      hlo_compare(h, d == DT_U8 ? "LE" : "LT", x, hlo_number(h, &x.type, (double)least_number(d)));
  struct hlo_value odd = hlo_compare(h, "NE", x, x), zero = hlo_number(h, &x.type, 0);
  struct hlo_value outside = hlo_binary(h, "or", hlo_binary(h, "or", above, below), odd);
  struct hlo_value y =
      hlo_op(h, "convert", &t, 1, (struct hlo_value[]){hlo_select(h, outside, zero, x)}, NULL, NULL);
  y = hlo_select(h, above, hlo_integer(h, &t, largest(d)), y);
  return hlo_select(h, below, hlo_integer(h, &t, least_number(d)), y);
}

/* bf16 has no subnormal numbers. */
static struct hlo_value normal_or_zero(struct hlo *h, struct hlo_value x) {
  struct hlo_value size = hlo_op(h, "abs", &x.type, 1, &x, NULL, NULL);
  struct hlo_value small = hlo_compare(h, "LT", size, hlo_number(h, &x.type, 0x1p-126));
  return hlo_select(h, small, hlo_binary(h, "multiply", x, hlo_number(h, &x.type, 0)), x);
}

struct hlo_value hlo_convert_all(struct hlo *h, enum dtype d, struct hlo_value x) {
  enum dtype from = (enum dtype)x.type.dtype;
  if (d == DT_BF16) return hlo_convert(h, d, normal_or_zero(h, x));
  if (dtype_is_narrow(d) || dtype_is_narrow(from)) return hlo_convert(h, d, x);
  if (d == DT_BOOL && from != DT_BOOL) return hlo_compare(h, "NE", x, hlo_number(h, &x.type, 0));
  if (dtype_is_float(from) && !dtype_is_float(d)) return saturate(h, d, x);
  return hlo_convert(h, d, x);
}

/* Integers: x / 0 = 0, x % 0 = 0, least / -1 = least, least % -1 = 0. By 1 instead of these, then what they give. */
struct hlo_value hlo_divide(struct hlo *h, bool remainder, struct hlo_value a, struct hlo_value b) {
  const char *name = remainder ? "remainder" : "divide";
  if (dtype_is_float((enum dtype)a.type.dtype)) return hlo_binary(h, name, a, b);
  struct hlo_value zero = hlo_integer(h, &b.type, 0), one = hlo_integer(h, &b.type, 1);
  struct hlo_value none = hlo_compare(h, "EQ", b, zero);
  if (a.type.dtype == DT_U8) {
    struct hlo_value y = hlo_binary(h, name, a, hlo_select(h, none, one, b));
    return hlo_select(h, none, zero, y);
  }
  struct hlo_value minus = hlo_compare(h, "EQ", b, hlo_integer(h, &b.type, -1));
  struct hlo_value safe = hlo_select(h, hlo_binary(h, "or", none, minus), one, b);
  struct hlo_value y = hlo_binary(h, name, a, safe);
  struct hlo_value opposite = remainder ? zero : hlo_unary(h, "negate", a);
  return hlo_select(h, none, zero, hlo_select(h, minus, opposite, y));
}

/* ---- constants ---- */

/* Short decimals of floats that are exactly what they look like, else their bits. */
static void print_element(struct str *s, enum dtype d, uint64_t bits) {
  uint32_t half = (uint32_t)bits;
  double value = d == DT_F32 ? (double)f32_of_bits(half) : f64_of_bits(bits);
  switch (d) {
  case DT_F32:
  case DT_F64:
    if (fabs(value) < 0x1p20 && trunc(value * 16) == value * 16 && !(value == 0 && signbit(value)))
      str_double(s, value);
    else
      str_printf(s, d == DT_F32 ? "0x%08llX" : "0x%016llX", (unsigned long long)bits);
    break;
  case DT_I32: str_printf(s, "%d", (int)(int32_t)half); break;
  case DT_I64: str_printf(s, "%lld", (long long)bits); break;
  case DT_U8: str_printf(s, "%u", (unsigned)half); break;
  case DT_BOOL: str_put(s, bits ? "true" : "false"); break;
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
}

struct hlo_value hlo_bits(struct hlo *h, const struct type *t, uint64_t bits) {
  struct hlo_value v = begin(h, t);
  str_put(h->out, "stablehlo.constant dense<");
  if (type_count(t)) print_element(h->out, (enum dtype)t->dtype, bits);
  str_printf(h->out, "> : %s", hlo_type_text(h->arena, t));
  end(h);
  return v;
}

struct hlo_value hlo_number(struct hlo *h, const struct type *t, double value) {
  return hlo_bits(h, t, scalar_convert((enum dtype)t->dtype, DT_F64, f64_bits(value)));
}

struct hlo_value hlo_integer(struct hlo *h, const struct type *t, int64_t value) {
  return hlo_bits(h, t, scalar_convert((enum dtype)t->dtype, DT_I64, (uint64_t)value));
}

/* ---- movement ---- */

struct hlo_value hlo_count(struct hlo *h, const struct type *t, int64_t axis) {
  const char *attrs = arena_printf(h->arena, "iota_dimension = %lld : i64", (long long)axis);
  return hlo_op(h, "iota", t, 0, NULL, attrs, NULL);
}

struct hlo_value hlo_shaped(struct hlo *h, struct hlo_value x, const struct type *t) {
  return shape_equal(&x.type, t) ? x : hlo_op(h, "reshape", t, 1, &x, NULL, NULL);
}

struct hlo_value hlo_permuted(struct hlo *h, struct hlo_value x, const int64_t *perm) {
  struct type t = x.type;
  for (int i = 0; i < t.rank; i++) t.dim[i] = x.type.dim[perm[i]];
  const char *attrs = arena_printf(h->arena, "permutation = %s", hlo_array(h->arena, t.rank, perm));
  return hlo_op(h, "transpose", &t, 1, &x, attrs, NULL);
}

struct hlo_value hlo_repeated(struct hlo *h, struct hlo_value x, const struct type *t, int count,
                              const int64_t *axes) {
  const char *attrs = arena_printf(h->arena, "broadcast_dimensions = %s", hlo_array(h->arena, count, axes));
  return hlo_op(h, "broadcast_in_dim", t, 1, &x, attrs, NULL);
}

struct hlo_value hlo_cut(struct hlo *h, struct hlo_value x, const struct type *t, const int64_t *begins) {
  int64_t limit[MAX_RANK], stride[MAX_RANK];
  if (type_equal(&x.type, t)) return x;
  for (int i = 0; i < t->rank; i++) limit[i] = begins[i] + t->dim[i], stride[i] = 1;
  const char *attrs = arena_printf(h->arena, "start_indices = %s, limit_indices = %s, strides = %s",
                                   hlo_array(h->arena, t->rank, begins), hlo_array(h->arena, t->rank, limit),
                                   hlo_array(h->arena, t->rank, stride));
  return hlo_op(h, "slice", t, 1, &x, attrs, NULL);
}

struct hlo_value hlo_padded(struct hlo *h, struct hlo_value x, struct hlo_value value, const struct type *t,
                            const int64_t *low, const int64_t *high) {
  static const int64_t none[MAX_RANK];
  const char *attrs =
      arena_printf(h->arena, "edge_padding_low = %s, edge_padding_high = %s, interior_padding = %s",
                   hlo_array(h->arena, t->rank, low), hlo_array(h->arena, t->rank, high),
                   hlo_array(h->arena, t->rank, none));
  return hlo_op(h, "pad", t, 2, (struct hlo_value[]){x, value}, attrs, NULL);
}

struct hlo_value hlo_joined(struct hlo *h, const struct type *t, int n, const struct hlo_value *in,
                            int64_t axis) {
  const char *attrs = arena_printf(h->arena, "dimension = %lld : i64", (long long)axis);
  return n == 1 ? in[0] : hlo_op(h, "concatenate", t, n, in, attrs, NULL);
}

struct hlo_value hlo_reduce(struct hlo *h, const char *name, struct hlo_value x, struct hlo_value first,
                            const struct type *t, int count, const int64_t *axes) {
  const char *attrs = arena_printf(h->arena, "dimensions = %s", hlo_array(h->arena, count, axes));
  return hlo_op(h, "reduce", t, 2, (struct hlo_value[]){x, first}, attrs,
                hlo_joining(h, name, (enum dtype)x.type.dtype));
}

struct hlo_value hlo_sorted(struct hlo *h, struct hlo_value keys, struct hlo_value beside, int64_t axis,
                            const char *region) {
  struct hlo_value in[] = {keys, beside}, v = {h->next, beside.type};
  const char *a = hlo_type_text(h->arena, &keys.type), *b = hlo_type_text(h->arena, &beside.type);
  h->next += 2;
  str_printf(h->out, "    %%%d, %%%d = \"stablehlo.sort\"(", v.id, v.id + 1);
  print_operands(h, 2, in);
  str_printf(h->out, ") <{dimension = %lld : i64, is_stable = true}> ({\n%s    }) : (%s, %s) -> (%s, %s)",
             (long long)axis, region, a, b, a, b);
  end(h);
  v.id++;
  return v;
}

struct hlo_windows hlo_windows(int rank) {
  struct hlo_windows w = {.rank = rank};
  for (int i = 0; i < rank; i++) w.size[i] = w.stride[i] = w.dilation[i] = w.gap[i] = 1;
  return w;
}

/* How many elements a negative padding takes, dilation - 1 places between each two; what it leaves before the next one
 * is padding, which is not negative. */
static int64_t taken(int64_t *padding, int64_t dilation) {
  int64_t count = *padding < 0 ? blocks_of(-*padding, dilation) : 0;
  *padding += count * dilation;
  return count;
}

bool hlo_crop(struct hlo *h, struct hlo_value *x, int first, int count, const int64_t *dilation, int64_t *low,
              int64_t *high) {
  struct type t = x->type;
  int64_t begin[MAX_RANK] = {0};
  for (int i = 0; i < count; i++) {
    begin[first + i] = taken(&low[i], dilation[i]);
    t.dim[first + i] -= begin[first + i] + taken(&high[i], dilation[i]);
    if (t.dim[first + i] <= 0) return false;
  }
  *x = hlo_cut(h, *x, &t, begin);
  return true;
}

struct hlo_value hlo_reduce_windows(struct hlo *h, const char *name, struct hlo_value x, double first,
                                    const struct type *t, const struct hlo_windows *windows) {
  struct hlo_windows copy = *windows, *w = &copy;
  struct type scalar = type_scalar((enum dtype)t->dtype);
  struct str padding = str_make(h->arena);
  if (type_count(t) == 0 || type_count(&x.type) == 0) return hlo_number(h, t, first);
  if (!hlo_crop(h, &x, 0, w->rank, w->gap, w->low, w->high)) return hlo_number(h, t, first);
  for (int i = 0; i < w->rank; i++)
    str_printf(&padding, "%s[%lld, %lld]", i ? ", " : "", (long long)w->low[i], (long long)w->high[i]);
  const char *attrs = arena_printf(
      h->arena,
      "window_dimensions = %s, window_strides = %s, base_dilations = %s, window_dilations = %s, "
      "padding = dense<[%s]> : tensor<%dx2xi64>",
      hlo_array(h->arena, w->rank, w->size), hlo_array(h->arena, w->rank, w->stride),
      hlo_array(h->arena, w->rank, w->gap), hlo_array(h->arena, w->rank, w->dilation), padding.data, w->rank);
  return hlo_op(h, "reduce_window", t, 2, (struct hlo_value[]){x, hlo_number(h, &scalar, first)}, attrs,
                hlo_joining(h, name, (enum dtype)t->dtype));
}
