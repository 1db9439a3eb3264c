/* SPDX-License-Identifier: Apache-2.0 */
/* What goes along an axis in its order: running sums, and sorting. */
#include "ir/graph/build.h"
#include "ir/ops/leaf.h"

/* cumsum: y[i] = x[0] + ... + x[i] along `axis`, added in that order; exclusive: without x[i]; reverse: x[i] + ... +
 * x[last], added from the last one. Integers wrap. */
static bool cumsum_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
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

static void cumsum_grad(struct grad *c, const struct node *n, struct node *dy) {
  grad_add(
      c, n, 0,
      build_cumsum(c->g, dy, (int)node_int(n, ATTR_axis), !is_on(n, ATTR_reverse), is_on(n, ATTR_exclusive)));
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
  switch ((enum dtype)n->type.dtype) {
  case DT_F32: CUMULATE(float, float) break;
  case DT_F64: CUMULATE(double, double) break;
  case DT_I32: CUMULATE(uint32_t, uint32_t) break;
  case DT_I64: CUMULATE(uint64_t, uint64_t) break;
  case DT_U8: CUMULATE(uint8_t, uint32_t) break;
  case DT_BOOL:
  case DT_BF16:
  case DT_COUNT: break;
  }
}

const struct op_info op_cumsum = {.name = "cumsum",
                                  .kind = KIND_LEAF,
                                  .dtypes = DTYPE_NUMBER,
                                  .min_inputs = 1,
                                  .max_inputs = 1,
                                  .attrs = ATTR_BIT(axis),
                                  .optional_attrs = ATTR_BIT(reverse) | ATTR_BIT(exclusive),
                                  .traits = OP_FUNCTION,
                                  .linear = 1,
                                  .roles = {"x"},
                                  .domain = DOMAIN_ANY,
                                  .infer = cumsum_infer,
                                  .grad = cumsum_grad,
                                  .eval = cumsum_eval,
                                  .sizes = lines_sizes,
                                  .numbers = lines_numbers};

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
  case DT_COUNT: break;
  }
}

const struct op_info op_argsort = {.name = "argsort",
                                   .kind = KIND_LEAF,
                                   .dtypes = DTYPE_ANY,
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .traits = OP_FUNCTION | OP_NO_GRADIENT,
                                   .attrs = ATTR_BIT(axis),
                                   .optional_attrs = ATTR_BIT(descending),
                                   .roles = {"x"},
                                   .domain = DOMAIN_SMALL_INT,
                                   .infer = argsort_infer,
                                   .eval = argsort_eval,
                                   .sizes = lines_sizes,
                                   .numbers = argsort_numbers};
