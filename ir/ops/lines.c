/* SPDX-License-Identifier: Apache-2.0 */
/* What goes along an axis in its order: running sums, and sorting. */
#include "ir/graph/build.h"
#include "ir/ops/leaf.h"
#include "ir/ops/op_id.h"

/* Of the operand's type, as most are. */
static bool same_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  (void)a, (void)why;
  *out = n->inputs[0]->type;
  return true;
}

struct lines lines_of(const struct node *n) {
  const struct type *t = &n->type;
  int axis = (int)node_int(n, ATTR_axis);
  struct lines l = {1, t->dim[axis], 1};
  for (int i = 0; i < axis; i++) l.outer *= t->dim[i];
  for (int i = axis + 1; i < t->rank; i++) l.inner *= t->dim[i];
  return l;
}

static bool is_on(const struct node *n, enum attr_key flag) { return node_int_or(n, flag, 0) != 0; }

/* The lines, then the flags that there may be, in their order. Returns how many lines there are to go along. */
static int64_t lines_numbers(const struct node *n, int64_t *out) {
  struct lines l = lines_of(n);
  *out++ = l.outer;
  *out++ = l.length;
  *out++ = l.inner;
  for (int k = 0; k < ATTR_COUNT; k++)
    if (op_of(n)->optional_attrs >> k & 1) *out++ = is_on(n, (enum attr_key)k);
  return l.length ? l.outer * l.inner : 0;
}

/* Lines, their length, and the flags: "64x128 of 1000 reverse". */
static void lines_sizes(struct str *s, const struct node *n) {
  struct lines l = lines_of(n);
  str_printf(s, "%lldx%lld of %lld", (long long)l.outer, (long long)l.inner, (long long)l.length);
  for (int k = 0; k < ATTR_COUNT; k++)
    if (op_of(n)->optional_attrs >> k & 1 && is_on(n, (enum attr_key)k))
      str_printf(s, " %s", attr_name((enum attr_key)k));
}

#define LINES(name_, dtypes_, domain_, ...)                   \
  const struct op_info op_##name_ = {.name = #name_,          \
                                     .kind = KIND_LEAF,       \
                                     .dtypes = dtypes_,       \
                                     .min_inputs = 1,         \
                                     .max_inputs = 1,         \
                                     .attrs = ATTR_BIT(axis), \
                                     .roles = {"x"},          \
                                     .domain = domain_,       \
                                     .sizes = lines_sizes,    \
                                     __VA_ARGS__}

/* ---- cumsum: y[i] = x[0] + ... + x[i] along `axis`, added in that order; exclusive: without x[i]; reverse: x[i] + ...
 * + x[last], added from the last one. Integers wrap. ---- */

static void cumsum_grad(struct grad *c, const struct node *n, struct node *dy) {
  struct attr attrs[] = {attr_int(ATTR_axis, node_int(n, ATTR_axis)),
                         attr_int(ATTR_reverse, !is_on(n, ATTR_reverse)),
                         attr_int(ATTR_exclusive, is_on(n, ATTR_exclusive))};
  grad_add(c, n, 0, build(c->g, OP_cumsum, 1, &dy, 3, attrs, NULL));
}

/* Each sum is rounded, as in every backend. */
#define CUMULATE(T, SUM)                                               \
  for (int64_t line = 0; line < l.outer * l.inner; line++) {           \
    int64_t at = line / l.inner * l.length * l.inner + line % l.inner; \
    const T *x = (const T *)in[0].data + at;                           \
    T *y = (T *)out->data + at;                                        \
    SUM sum = 0;                                                       \
    for (int64_t i = 0; i < l.length; i++) {                           \
      int64_t k = (reverse ? l.length - 1 - i : i) * l.inner;          \
      SUM next = i > 0 || exclusive ? sum + (SUM)x[k] : (SUM)x[k];     \
      y[k] = (T)(exclusive ? sum : next);                              \
      sum = next;                                                      \
    }                                                                  \
  }

static void cumsum_eval(const struct node *n, const struct tensor *in, struct tensor *out) {
  struct lines l = lines_of(n);
  if (l.length == 0) return;
  bool reverse = is_on(n, ATTR_reverse), exclusive = is_on(n, ATTR_exclusive);
  FOR_NUMBERS((enum dtype)n->type.dtype, CUMULATE)
}

LINES(cumsum, DTYPE_NUMBER, DOMAIN_ANY, .optional_attrs = ATTR_BIT(reverse) | ATTR_BIT(exclusive),
      .traits = OP_FUNCTION | OP_ADDS_UP, .linear = 1, .infer = same_infer, .grad = cumsum_grad,
      .eval = cumsum_eval, .numbers = lines_numbers);

/* ---- argsort: the places of a line's elements in ascending order, equal ones as they stand, NaN behind all others;
 * descending: from the greatest, NaN first ---- */

static bool argsort_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  *out = type_with_dtype(n->inputs[0]->type, DT_I32);
  if (out->dim[node_int(n, ATTR_axis)] <= INT32_MAX) return true;
  *why =
      arena_printf(a, "argsort counts to %d, and %s has more along its axis", INT32_MAX, type_text(a, out));
  return false;
}

/* A block sorts a line. */
static int64_t argsort_numbers(const struct node *n, int64_t *out) {
  return lines_numbers(n, out) * BLOCK_THREADS;
}

/* By insertion. NaN is the only one that does not equal itself. */
#define BEHIND(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))
#define INSERT(T)                                                      \
  for (int64_t line = 0; line < l.outer * l.inner; line++) {           \
    int64_t at = line / l.inner * l.length * l.inner + line % l.inner; \
    const T *x = (const T *)in[0].data + at;                           \
    int32_t *y = (int32_t *)out->data + at;                            \
    for (int64_t i = 0; i < l.length; i++) {                           \
      int64_t k = i;                                                   \
      for (T v = x[i * l.inner]; k > 0; k--) {                         \
        T u = x[y[(k - 1) * l.inner] * l.inner];                       \
        if (descending ? !BEHIND(v, u) : !BEHIND(u, v)) break;         \
        y[k * l.inner] = y[(k - 1) * l.inner];                         \
      }                                                                \
      y[k * l.inner] = (int32_t)i;                                     \
    }                                                                  \
  }

static void argsort_eval(const struct node *n, const struct tensor *in, struct tensor *out) {
  struct lines l = lines_of(n);
  bool descending = is_on(n, ATTR_descending);
  switch ((enum dtype)in[0].type.dtype) {
  case DT_F32: INSERT(float) break;
  case DT_F64: INSERT(double) break;
  case DT_I32: INSERT(int32_t) break;
  case DT_I64: INSERT(int64_t) break;
  case DT_U8:
  case DT_BOOL: INSERT(uint8_t) break;
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
}

LINES(argsort, DTYPE_ANY, DOMAIN_SMALL_INT, .optional_attrs = ATTR_BIT(descending),
      .traits = OP_FUNCTION | OP_NO_GRADIENT, .infer = argsort_infer, .eval = argsort_eval,
      .numbers = argsort_numbers);
