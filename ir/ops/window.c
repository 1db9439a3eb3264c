/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over the spatial axes of [B, ..., C], of which there are one to three. Window o sees of its axis the elements
 * i with o * stride + k * kernel_dilation = i * input_dilation + padding_low for some place k of it; what lies outside
 * is not seen. window_sum adds what a window sees, and its derivative is another one. window_max takes the greatest;
 * its derivative adds to each element the values of the windows that chose it, window_put, whose own is window_pick.
 *
 * A window chooses as XLA's select_and_scatter does: an element takes the place of those before it unless they are
 * greater or equal. Of equals that is the first; what follows NaN is chosen before it. */
#include "base/integer.h"
#include "ir/graph/build.h"
#include "ir/ops/leaf.h"
#include "ir/ops/op_id.h"
#include "ir/ops/spatial.h"

#include <math.h>
#include <string.h>

/* ---- shapes ---- */

/* The numbers of the axes of `x`, and how many windows there are. */
static bool read_windows(const struct node *n, const struct type *x, struct windows *w, struct arena *a,
                         const char **why) {
  int rank = x->rank - 2, from = WINDOW_AXES - rank;
  int64_t high[WINDOW_AXES];
  for (int i = 0; i < WINDOW_AXES; i++) {
    w->input[i] = w->size[i] = w->output[i] = w->stride[i] = w->input_dilation[i] = w->dilation[i] = 1;
    w->low[i] = 0;
  }
  if (!spatial_numbers(n, ATTR_size, rank, 1, 1, w->size + from, a, why) ||
      !spatial_numbers(n, ATTR_strides, rank, 1, 1, w->stride + from, a, why) ||
      !spatial_numbers(n, ATTR_padding_low, rank, -MAX_ELEMENTS, 0, w->low + from, a, why) ||
      !spatial_numbers(n, ATTR_padding_high, rank, -MAX_ELEMENTS, 0, high, a, why) ||
      !spatial_numbers(n, ATTR_input_dilation, rank, 1, 1, w->input_dilation + from, a, why) ||
      !spatial_numbers(n, ATTR_kernel_dilation, rank, 1, 1, w->dilation + from, a, why))
    return false;
  w->batch = x->dim[0];
  w->channels = x->dim[rank + 1];
  for (int i = from; i < WINDOW_AXES; i++) {
    w->input[i] = x->dim[i - from + 1];
    if (spatial_reach(w->size[i], w->dilation[i]) > MAX_ELEMENTS) {
      *why = "its window is longer than any axis";
      return false;
    }
    if (spatial_reach(w->input[i], w->input_dilation[i]) == SPATIAL_MOST) {
      *why = "its gaps are so wide that places cannot be numbered";
      return false;
    }
    w->output[i] = spatial_places(w->input[i], w->input_dilation[i], w->low[i] + high[i - from], w->size[i],
                                  w->dilation[i], w->stride[i]);
  }
  return true;
}

static bool windows_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const struct type *x = &n->inputs[0]->type;
  const char *name = op_of(n)->name;
  struct windows w;
  if (x->rank < 3 || x->rank > WINDOW_AXES + 2) {
    *why = arena_printf(a, "%s needs a tensor [B, ..., C] of rank 3 to %d, not %s", name, WINDOW_AXES + 2,
                        type_text(a, x));
    return false;
  }
  if (type_batch_axis(x) > 0) {
    *why = arena_printf(a, "%s has the batch in the first axis alone, not %s", name, type_text(a, x));
    return false;
  }
  if (!read_windows(n, x, &w, a, why)) return false;
  *out = *x;
  for (int i = 1; i < x->rank - 1; i++) out->dim[i] = w.output[WINDOW_AXES + 1 - x->rank + i];
  return true;
}

/* Of put and pick: `of` has the shape of x, or that of its windows. */
static bool check_second(const struct node *n, const struct type *of, struct arena *a, const char **why) {
  if (type_equal(of, &n->inputs[1]->type)) return true;
  *why = arena_printf(a, "%s of %s needs values of %s, not %s", op_of(n)->name,
                      type_text(a, &n->inputs[0]->type), type_text(a, of), type_text(a, &n->inputs[1]->type));
  return false;
}

static bool put_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  struct type windows;
  struct windows w;
  *out = n->inputs[0]->type;
  if (!windows_infer(n, &windows, a, why) || !check_second(n, &windows, a, why)) return false;
  read_windows(n, out, &w, a, why);
  if (spatial_product(w.channels, WINDOW_AXES, w.input) <= INT32_MAX) return true;
  *why = "window_put takes images of at most 2147483647 elements";
  return false;
}

static bool pick_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  return check_second(n, &n->inputs[0]->type, a, why) && windows_infer(n, out, a, why);
}

struct windows windows_of(const struct node *n) {
  struct windows w;
  read_windows(n, &n->inputs[0]->type, &w, NULL, NULL);
  return w;
}

/* ---- derivatives ---- */

/* Unless they say what holds anyway. */
static void add_axes(struct attr *attrs, int *count, enum attr_key key, int rank, const int64_t *numbers,
                     int64_t usual) {
  bool needed = false;
  for (int i = 0; i < rank; i++) needed = needed || numbers[i] != usual;
  if (needed) attrs[(*count)++] = attr_ints(key, rank, numbers);
}

/* Windows of the same size over dy, whose elements lie `stride` apart: those of element i are all that saw it. */
static void sum_grad(struct grad *c, const struct node *n, struct node *dy) {
  const struct type *x = &n->inputs[0]->type;
  int rank = x->rank - 2, from = WINDOW_AXES - rank;
  struct windows w = windows_of(n);
  int64_t low[WINDOW_AXES], high[WINDOW_AXES];
  for (int i = 0; i < WINDOW_AXES; i++) {
    int64_t reach = spatial_reach(w.size[i], w.dilation[i]);
    low[i] = reach - 1 - w.low[i];
    high[i] =
        (w.input[i] - 1) * w.input_dilation[i] + reach - spatial_reach(w.output[i], w.stride[i]) - low[i];
  }
  struct attr attrs[6] = {attr_ints(ATTR_size, rank, w.size + from)};
  int count = 1;
  add_axes(attrs, &count, ATTR_strides, rank, w.input_dilation + from, 1);
  add_axes(attrs, &count, ATTR_padding_low, rank, low + from, 0);
  add_axes(attrs, &count, ATTR_padding_high, rank, high + from, 0);
  add_axes(attrs, &count, ATTR_input_dilation, rank, w.stride + from, 1);
  add_axes(attrs, &count, ATTR_kernel_dilation, rank, w.dilation + from, 1);
  grad_add(c, n, 0, build(c->g, OP_window_sum, 1, &dy, count, attrs, NULL));
}

/* n's windows on x and values. */
static struct node *choose_like(struct graph *g, enum op_id op, const struct node *n, struct node *values) {
  return build(g, op, 2, (struct node *[]){n->inputs[0], values}, n->nattrs, n->attrs, NULL);
}

static void max_grad(struct grad *c, const struct node *n, struct node *dy) {
  grad_add(c, n, 0, choose_like(c->g, OP_window_put, n, dy));
}
static void put_grad(struct grad *c, const struct node *n, struct node *dy) {
  grad_add(c, n, 1, choose_like(c->g, OP_window_pick, n, dy));
}
static void pick_grad(struct grad *c, const struct node *n, struct node *dy) {
  grad_add(c, n, 1, choose_like(c->g, OP_window_put, n, dy));
}

/* ---- figures ---- */

/* At most SPATIAL_MOST; all places of a window count. */
static int64_t windows_flops(const struct node *n) {
  struct windows w = windows_of(n);
  const int64_t factors[] = {w.channels, w.output[0], w.output[1], w.output[2],
                             w.size[0],  w.size[1],   w.size[2]};
  return spatial_product(w.batch, sizeof factors / sizeof *factors, factors);
}

static int64_t windows_numbers(const struct node *n, int64_t *out) {
  struct windows w = windows_of(n);
  _Static_assert(sizeof w <= MAX_LEAF_NUMBERS * sizeof *out, "its numbers are a leaf's");
  memcpy(out, &w, sizeof w);
  return type_count(&n->type);
}

bool has_windows(const struct node *n) { return op_of(n)->numbers == windows_numbers; }

/* x, and its windows: "128x28x28x6 2x2 strides 2,2". */
static void windows_sizes(struct str *s, const struct node *n) {
  struct windows w = windows_of(n);
  int rank = n->type.rank - 2, from = WINDOW_AXES - rank;
  for (int i = 0; i < rank + 2; i++)
    str_printf(s, "%s%lld", i ? "x" : "", (long long)n->inputs[0]->type.dim[i]);
  for (int i = from; i < WINDOW_AXES; i++)
    str_printf(s, "%s%lld", i > from ? "x" : " ", (long long)w.size[i]);
  spatial_print(s, n, ATTR_strides, "strides");
  spatial_print(s, n, ATTR_padding_low, "low");
  spatial_print(s, n, ATTR_padding_high, "high");
  spatial_print(s, n, ATTR_input_dilation, "input");
  spatial_print(s, n, ATTR_kernel_dilation, "dilation");
}

/* ---- values ---- */

/* The elements of an axis between which window o lies; it sees one of them or not. */
struct window_run {
  int64_t begin, end;
};

static struct window_run window_run(const struct windows *w, int axis, int64_t o) {
  int64_t first = o * w->stride[axis] - w->low[axis], gap = w->input_dilation[axis];
  int64_t last = first + (w->size[axis] - 1) * w->dilation[axis];
  struct window_run r = {.begin = first <= 0 ? 0 : blocks_of(first, gap),
                         .end = last < 0 ? 0 : last / gap + 1};
  if (r.end > w->input[axis]) r.end = w->input[axis];
  return r;
}

static bool window_sees(const struct windows *w, int axis, int64_t o, int64_t i) {
  return (i * w->input_dilation[axis] + w->low[axis] - o * w->stride[axis]) % w->dilation[axis] == 0;
}

/* Number `step`, from 0, of the elements of x that are seen by the window of element e of the windows; -1 after the
 * last. */
struct window_walk {
  const struct windows *w;
  int64_t o[WINDOW_AXES], at[WINDOW_AXES], base, channel;
  struct window_run run[WINDOW_AXES];
  bool done;
};

static struct window_walk seen_from(const struct windows *w, int64_t e) {
  struct window_walk s = {.w = w, .channel = e % w->channels};
  e /= w->channels;
  for (int i = WINDOW_AXES - 1; i >= 0; i--) {
    s.o[i] = e % w->output[i];
    e /= w->output[i];
    s.run[i] = window_run(w, i, s.o[i]);
    s.at[i] = s.run[i].begin;
    if (s.run[i].begin >= s.run[i].end) s.done = true;
  }
  s.base = e;
  return s;
}

/* The next element, -1: there is none. */
static int64_t seen_next(struct window_walk *s) {
  while (!s->done) {
    const struct windows *w = s->w;
    int64_t at = s->base;
    bool seen = true;
    for (int i = 0; i < WINDOW_AXES; i++) {
      at = at * w->input[i] + s->at[i];
      seen = seen && window_sees(w, i, s->o[i], s->at[i]);
    }
    int axis = WINDOW_AXES - 1;
    while (axis >= 0 && ++s->at[axis] >= s->run[axis].end) s->at[axis] = s->run[axis].begin, axis--;
    s->done = axis < 0;
    if (seen) return at * w->channels + s->channel;
  }
  return -1;
}

/* From 0 on, in the order of x, as all kernels do; integers wrap. */
#define ADD(T, SUM)                                                                       \
  for (int64_t e = 0; e < count; e++) {                                                   \
    struct window_walk s = seen_from(&w, e);                                              \
    SUM sum = 0;                                                                          \
    for (int64_t at; (at = seen_next(&s)) >= 0;) sum += (SUM)((const T *)in[0].data)[at]; \
    ((T *)out->data)[e] = (T)sum;                                                         \
  }

static void sum_eval(const struct node *n, const struct tensor *in, struct tensor *out) {
  struct windows w = windows_of(n);
  int64_t count = type_count(&n->type);
  FOR_NUMBERS((enum dtype)n->type.dtype, ADD)
}

/* The last NaN if there is one, else the first of the greatest. */
#define GREATEST(T, least)                         \
  for (int64_t e = 0; e < count; e++) {            \
    struct window_walk s = seen_from(&w, e);       \
    T most = least;                                \
    for (int64_t at; (at = seen_next(&s)) >= 0;) { \
      T v = ((const T *)in[0].data)[at];           \
      if (v > most || v != v) most = v;            \
    }                                              \
    ((T *)out->data)[e] = most;                    \
  }

static void max_eval(const struct node *n, const struct tensor *in, struct tensor *out) {
  struct windows w = windows_of(n);
  int64_t count = type_count(&n->type);
  switch ((enum dtype)n->type.dtype) {
  case DT_F32: GREATEST(float, -INFINITY) break;
  case DT_F64: GREATEST(double, -(double)INFINITY) break;
  case DT_I32: GREATEST(int32_t, INT32_MIN) break;
  case DT_I64: GREATEST(int64_t, INT64_MIN) break;
  case DT_U8: GREATEST(uint8_t, 0) break;
  case DT_BOOL:
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
}

static double number_at(const struct tensor *t, int64_t i) {
  return t->type.dtype == DT_F32 ? (double)((const float *)t->data)[i] : ((const double *)t->data)[i];
}

int64_t window_choice(const struct windows *w, const struct tensor *x, int64_t e) {
  struct window_walk s = seen_from(w, e);
  int64_t chosen = -1;
  for (int64_t at; (at = seen_next(&s)) >= 0;) {
    if (chosen < 0 || !(number_at(x, chosen) >= number_at(x, at))) chosen = at;
  }
  return chosen;
}

static void put_eval(const struct node *n, const struct tensor *in, struct tensor *out) {
  struct windows w = windows_of(n);
  int64_t size = dtype_size((enum dtype)n->type.dtype), count = type_count(&in[1].type);
  if (type_bytes(&n->type)) memset(out->data, 0, (size_t)type_bytes(&n->type));
  for (int64_t e = 0; e < count; e++) {
    int64_t at = window_choice(&w, &in[0], e);
    if (at >= 0)
      add_elements((enum dtype)n->type.dtype, (char *)out->data + at * size,
                   (const char *)in[1].data + e * size, 1);
  }
}

static void pick_eval(const struct node *n, const struct tensor *in, struct tensor *out) {
  struct windows w = windows_of(n);
  int64_t size = dtype_size((enum dtype)n->type.dtype), count = type_count(&n->type);
  if (type_bytes(&n->type)) memset(out->data, 0, (size_t)type_bytes(&n->type));
  for (int64_t e = 0; e < count; e++) {
    int64_t at = window_choice(&w, &in[0], e);
    if (at >= 0) memcpy((char *)out->data + e * size, (const char *)in[1].data + at * size, (size_t)size);
  }
}

#define WINDOW_ATTRS \
  (ATTR_BIT(strides) | ATTR_BIT(padding_low) | ATTR_BIT(padding_high) | ATTR_BIT(kernel_dilation))

#define WINDOW(name_, inputs, dtypes_, domain_, ...)                    \
  const struct op_info op_window_##name_ = {.name = "window_" #name_,   \
                                            .kind = KIND_LEAF,          \
                                            .dtypes = dtypes_,          \
                                            .min_inputs = inputs,       \
                                            .max_inputs = inputs,       \
                                            .attrs = ATTR_BIT(size),    \
                                            .roles = {"x", "values"},   \
                                            .domain = domain_,          \
                                            .flops = windows_flops,     \
                                            .sizes = windows_sizes,     \
                                            .numbers = windows_numbers, \
                                            __VA_ARGS__};

WINDOW(sum, 1, DTYPE_NUMBER, DOMAIN_ANY, .optional_attrs = WINDOW_ATTRS | ATTR_BIT(input_dilation),
       .linear = 1, .infer = windows_infer, .grad = sum_grad, .eval = sum_eval)
WINDOW(max, 1, DTYPE_NUMBER, DOMAIN_DISTINCT, .optional_attrs = WINDOW_ATTRS, .infer = windows_infer,
       .grad = max_grad, .eval = max_eval)
WINDOW(put, 2, DTYPE_FLOAT, DOMAIN_DISTINCT, .optional_attrs = WINDOW_ATTRS, .linear = 2, .infer = put_infer,
       .grad = put_grad, .eval = put_eval)
WINDOW(pick, 2, DTYPE_FLOAT, DOMAIN_DISTINCT, .optional_attrs = WINDOW_ATTRS, .linear = 2,
       .infer = pick_infer, .grad = pick_grad, .eval = pick_eval)
