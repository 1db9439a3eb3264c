/* What goes along an axis in its order: running sums. */
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
  case DT_COUNT: break;
  }
}

const struct op_info op_cumsum = {.name = "cumsum",
                                  .kind = KIND_LEAF,
                                  .dtypes = DTYPE_NUMBER,
                                  .min_inputs = 1,
                                  .max_inputs = 1,
                                  .attrs = 1u << ATTR_axis,
                                  .optional_attrs = 1u << ATTR_reverse | 1u << ATTR_exclusive,
                                  .traits = OP_FUNCTION,
                                  .linear = 1,
                                  .roles = {"x"},
                                  .domain = DOMAIN_ANY,
                                  .infer = cumsum_infer,
                                  .grad = cumsum_grad,
                                  .eval = cumsum_eval,
                                  .sizes = lines_sizes,
                                  .numbers = lines_numbers};
