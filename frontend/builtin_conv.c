/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and windows: conv, transposed_conv, window_sum and window_max, whose arguments become the attributes of
 * a node. */
#include "base/integer.h"
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"

#include <string.h>
#include <strings.h>

/* A number for each spatial axis: those of a list, or one for all; none: 1. */
static bool each_axis(struct resolver *r, const struct value *v, const char *name, enum attr_key key,
                      int rank, struct attr *out) {
  int64_t *ints = arena_new_array(r->arena, MAX_RANK, int64_t);
  for (int i = 0; i < rank; i++) ints[i] = v->kind == VALUE_INT ? v->i : 1;
  *out = attr_ints(key, rank, ints);
  if (v->kind == VALUE_INT || v->kind == VALUE_NONE) return true;
  if (v->kind == VALUE_LIST) return value_ints(r, v, arena_printf(r->arena, "`%s`", name), ints, &out->count);
  if (v->kind != VALUE_ERROR)
    report(r, v->at, "`%s` must be an integer, or a list of one for each spatial axis, not %s", name,
           value_describe(r->arena, v));
  return false;
}

/* TensorFlow's "same": as many places as strides fit into the input; what that needs more is put half before it, and of
 * an odd number one more behind. */
static void pad_same(const int64_t *input, const int64_t *kernel, const int64_t *strides,
                     const int64_t *dilation, int rank, int64_t *low, int64_t *high) {
  for (int i = 0; i < rank; i++) {
    int64_t reach;
    bool fits = input[i] >= 0 && kernel[i] >= 0 && strides[i] >= 1 && strides[i] <= MAX_ELEMENTS &&
                dilation[i] >= 1 &&
                !__builtin_mul_overflow(kernel[i] - (kernel[i] > 0), dilation[i], &reach) &&
                reach <= MAX_ELEMENTS;
    if (!fits) continue; /* refused with the node, or larger than any input */
    int64_t places = blocks_of(input[i], strides[i]);
    reach += kernel[i] > 0;
    int64_t need = (places - 1) * strides[i] + reach - input[i];
    low[i] = need > 0 ? need / 2 : 0;
    high[i] = need > 0 ? need - need / 2 : 0;
  }
}

/* [[low, high], ...] */
static bool pad_pairs(struct resolver *r, const struct value *v, int rank, int64_t *low, int64_t *high) {
  bool good = v->kind == VALUE_LIST && v->list.count == rank;
  for (int i = 0; good && i < rank; i++) {
    const struct value *pair = &v->list.items[i];
    good = pair->kind == VALUE_LIST && pair->list.count == 2 && pair->list.items[0].kind == VALUE_INT &&
           pair->list.items[1].kind == VALUE_INT;
    if (good) low[i] = pair->list.items[0].i, high[i] = pair->list.items[1].i;
  }
  if (good || v->kind == VALUE_ERROR) return good;
  report(r, v->at,
         "`padding` is \"same\", \"valid\", or a list of [before, behind] for each of the %d "
         "spatial axes, not %s",
         rank, value_describe(r->arena, v));
  static const char *const words[] = {"same", "valid"};
  for (int i = 0; i < 2 && v->kind == VALUE_STRING; i++)
    if (strcasecmp(v->string, words[i]) == 0) report_help(r, "write \"%s\"", words[i]);
  if (v->kind != VALUE_INT) return good;
  struct str pairs = str_make(r->arena);
  for (int i = 0; i < rank; i++)
    str_printf(&pairs, "%s[%lld, %lld]", i ? ", " : "", (long long)v->i, (long long)v->i);
  report_help(r,
              "write `padding = [%s]`; with \"same\" the result has the size of the input, divided by the "
              "stride",
              pairs.data);
  return good;
}

static bool is_word(const struct value *v, const char *word) {
  return v->kind == VALUE_STRING && strcmp(v->string, word) == 0;
}

/* What a call says besides its operands, and what it calls the dilation of the kernel. */
struct window_arguments {
  const char *dilation;
  const struct value *strides, *padding, *kernel_dilation, *input_dilation, *groups;
};

enum { MOST_ATTRS = 10 };

/* Sizes of the axes of a window or an image: "5 x 5". */
static const char *by_axis(struct resolver *r, const int64_t *sizes, int rank) {
  struct str s = str_make(r->arena);
  for (int i = 0; i < rank; i++) str_printf(&s, "%s%lld", i ? " x " : "", (long long)sizes[i]);
  return s.data;
}

/* Layers and pools want a window that fits; conv itself gives nothing of one that does not. False after an error. */
static bool window_fits(struct resolver *r, const int64_t *input, const int64_t *kernel,
                        const struct attr *attrs, const int64_t *low, const int64_t *high, bool same,
                        int rank, struct loc loc) {
  const int64_t *dilation = attrs[1].ints;
  int64_t wide[MAX_RANK], reach[MAX_RANK];
  bool fits = true, padded = false, wider = false;
  for (int i = 0; i < rank; i++) {
    bool small = input[i] >= 0 && kernel[i] > 0 && kernel[i] <= MAX_ELEMENTS && dilation[i] > 0 &&
                 !__builtin_mul_overflow(kernel[i] - 1, dilation[i], &reach[i]) && reach[i] < MAX_ELEMENTS &&
                 low[i] > -MAX_ELEMENTS && low[i] < MAX_ELEMENTS && high[i] > -MAX_ELEMENTS &&
                 high[i] < MAX_ELEMENTS;
    if (!small) return true; /* refused with the node */
    reach[i]++;
    wide[i] = input[i] + low[i] + high[i];
    padded = padded || low[i] || high[i];
    wider = wider || dilation[i] > 1;
    fits = fits && reach[i] <= wide[i];
  }
  if (fits || same || !is_library(r, loc)) return true;
  report(r, loc, "a window of %s does not fit into an input of %s%s", by_axis(r, reach, rank),
         by_axis(r, wide, rank), padded ? ", its padding counted" : "");
  report_help(r, "write a smaller `size`%s, or `padding = \"same\"`", wider ? " or `dilation`" : "");
  return false;
}

/* The attributes of a window over an input with these spatial axes. How many there are; 0 after an error. `back`: the
 * input is the result. */
static int window_attrs(struct resolver *r, const struct window_arguments *w, const int64_t *input,
                        const int64_t *kernel, int rank, bool back, struct loc loc, struct attr *out) {
  int64_t *low = arena_new_array(r->arena, MAX_RANK, int64_t), wide[MAX_RANK];
  int64_t *high = arena_new_array(r->arena, MAX_RANK, int64_t);
  const struct value *p = w->padding;
  const char *const names[3] = {"strides", w->dilation, "input_dilation"};
  const struct value *given[3] = {w->strides, w->kernel_dilation, w->input_dilation};
  static const enum attr_key keys[3] = {ATTR_strides, ATTR_kernel_dilation, ATTR_input_dilation};
  for (int i = 0; i < 3; i++) {
    if (!each_axis(r, given[i], names[i], keys[i], rank, &out[i])) return 0;
    if (out[i].count == rank) continue;
    report(r, given[i]->at, "`%s` needs %d number%s, one for each spatial axis, not %d", names[i], rank,
           rank == 1 ? "" : "s", out[i].count);
    return 0;
  }
  for (int i = 0; i < rank; i++)
    if (input[i] < 1)
      wide[i] = input[i];
    else if (__builtin_mul_overflow(input[i] - 1, out[2].ints[i], &wide[i]) || wide[i]++ > MAX_ELEMENTS)
      wide[i] = -1;
  if (is_word(p, "same"))
    pad_same(wide, kernel, out[0].ints, out[1].ints, rank, low, high);
  else if (!is_word(p, "valid") && p->kind != VALUE_NONE && !pad_pairs(r, p, rank, low, high))
    return 0;
  if (!back && !window_fits(r, wide, kernel, out, low, high, is_word(p, "same"), rank, loc)) return 0;
  if (w->groups->kind != VALUE_INT && w->groups->kind != VALUE_NONE) {
    if (w->groups->kind != VALUE_ERROR)
      report(r, w->groups->at, "`groups` must be an integer, not %s", value_describe(r->arena, w->groups));
    return 0;
  }
  out[3] = attr_ints(ATTR_padding_low, rank, low);
  out[4] = attr_ints(ATTR_padding_high, rank, high);
  out[5] = attr_int(ATTR_groups, w->groups->kind == VALUE_INT ? w->groups->i : 1);
  return 6;
}

/* Without those that say what holds anyway: windows that are the same are one. */
static int drop_defaults(struct attr *attrs, int count) {
  int kept = 0;
  for (int i = 0; i < count; i++) {
    const struct attr *a = &attrs[i];
    int64_t usual = a->key != ATTR_padding_low && a->key != ATTR_padding_high;
    bool needed = a->key == ATTR_groups && a->i != 1;
    for (int k = 0; a->key != ATTR_groups && k < a->count; k++) needed = needed || a->ints[k] != usual;
    if (needed) attrs[kept++] = *a;
  }
  return kept;
}

/* A convolution of two operands; `size`, of rank numbers, where its result is the input. */
static struct value convolve(struct resolver *r, struct value *ab, const struct window_arguments *w,
                             const struct value *size, const struct value *precision, struct loc loc) {
  struct node *in[2] = {tensor_node(r, &ab[0], size ? "`y`" : "`x`"), NULL};
  struct attr attrs[MOST_ATTRS];
  enum dtype d;
  bool bf16;
  if (!in[0] || !(in[1] = tensor_node(r, &ab[1], "`w`")) || !common_dtype(r, OP_conv, ab, 2, loc, &d) ||
      !dtype_fits(r, OP_conv, &ab[0], d, loc) || !rounds_operands(r, ab, precision, loc, &bf16))
    return value_error();
  int rank = in[0]->type.rank - 2;
  int64_t *sizes = arena_new_array(r->arena, MAX_RANK, int64_t);
  int given = rank;
  if (rank < 1 || in[1]->type.rank != rank + 2) {
    report(r, loc,
           "a convolution needs tensors [B, ..., C] and [..., C, F] with equally many spatial axes, not %s "
           "and %s",
           type_text(r->arena, &in[0]->type), type_text(r->arena, &in[1]->type));
    report_value(r, &ab[0]);
    report_value(r, &ab[1]);
    return value_error();
  }
  if (size && !value_ints(r, size, "`size`", sizes, &given)) return value_error();
  if (given != rank) {
    report(r, size->at, "`size` needs %d number%s, one for each spatial axis, not %d", rank,
           rank == 1 ? "" : "s", given);
    return value_error();
  }
  int n = window_attrs(r, w, size ? sizes : in[0]->type.dim + 1, in[1]->type.dim, rank, size, loc, attrs);
  if (n == 0) return value_error();
  n = drop_defaults(attrs, n);
  for (int i = 0; i < 2; i++) in[i] = added_up(r, in[i]);
  if (size) attrs[n++] = attr_string(ATTR_result, "input");
  if (size) attrs[n++] = attr_ints(ATTR_size, rank, sizes);
  if (bf16 && d == DT_F32) {
    in[0] = build1(r->g, OP_round_bf16, in[0]);
    in[1] = build1(r->g, OP_round_bf16, in[1]);
    attrs[n++] = attr_string(ATTR_precision, "bf16");
  }
  return value_tensor(r, build(r->g, OP_conv, 2, in, n, attrs, NULL), loc);
}

static struct value run_conv(struct resolver *r, struct value *args, struct loc loc,
                             const struct role *role) {
  const struct window_arguments w = {"kernel_dilation", &args[2], &args[3], &args[4], &args[5], &args[6]};
  (void)role;
  return convolve(r, args, &w, NULL, &args[7], loc);
}

static struct value run_transposed(struct resolver *r, struct value *args, struct loc loc,
                                   const struct role *role) {
  const struct value one = {.kind = VALUE_NONE};
  const struct window_arguments w = {"kernel_dilation", &args[3], &args[4], &args[5], &one, &args[6]};
  (void)role;
  return convolve(r, args, &w, &args[2], &args[7], loc);
}

/* ---- windows ---- */

static struct value run_window(struct resolver *r, enum op_id op, struct value *args, struct loc loc) {
  const struct value none = {.kind = VALUE_NONE};
  const struct window_arguments w = {"dilation", &args[2], &args[3], &args[4], &none, &none};
  struct node *x = tensor_node(r, &args[0], "`x`");
  struct attr attrs[MOST_ATTRS], size;
  if (!x || !dtype_fits(r, op, &args[0], (enum dtype)x->type.dtype, loc)) return value_error();
  int rank = x->type.rank - 2;
  if (rank < 1) {
    report(r, args[0].at, "%s needs a tensor [B, ..., C] with one to three spatial axes, not %s",
           op_table[op]->name, type_text(r->arena, &x->type));
    return value_error();
  }
  if (!each_axis(r, &args[1], "size", ATTR_size, rank, &size)) return value_error();
  if (size.count != rank) {
    report(r, args[1].at, "`size` needs %d number%s, one for each spatial axis, not %d", rank,
           rank == 1 ? "" : "s", size.count);
    return value_error();
  }
  int n = window_attrs(r, &w, x->type.dim + 1, size.ints, rank, false, loc, attrs);
  if (n == 0) return value_error();
  n = drop_defaults(attrs, n);
  attrs[n++] = size;
  if (op == OP_window_sum) x = added_up(r, x);
  return value_tensor(r, build(r->g, op, 1, &x, n, attrs, NULL), loc);
}

static struct value run_window_sum(struct resolver *r, struct value *args, struct loc loc,
                                   const struct role *role) {
  (void)role;
  return run_window(r, OP_window_sum, args, loc);
}

static struct value run_window_max(struct resolver *r, struct value *args, struct loc loc,
                                   const struct role *role) {
  (void)role;
  return run_window(r, OP_window_max, args, loc);
}

/* per_axis(x, count): a list of so many integers, from one for all axes or from a list of one for each. */
static struct value run_per_axis(struct resolver *r, struct value *args, struct loc loc,
                                 const struct role *role) {
  const struct value *v = &args[0], *count = &args[1];
  const char *name = v->name ? v->name : "x";
  int given = v->kind == VALUE_LIST ? v->list.count : 0;
  struct attr numbers;
  (void)role;
  if (count->kind != VALUE_INT || count->i < 0 || count->i > MAX_RANK) {
    report(r, loc, "`count` of per_axis is how many axes there are, %d at most", MAX_RANK);
    return value_error();
  }
  int n = (int)count->i;
  if (v->kind == VALUE_LIST && given != n) {
    report(r, v->at, "`%s` needs %d number%s, one for each axis, not %d", name, n, n == 1 ? "" : "s", given);
    return value_error();
  }
  if (v->kind == VALUE_NONE) {
    report(r, v->at, "`%s` must be an integer, or a list of one for each axis, not none", name);
    return value_error();
  }
  if (!each_axis(r, v, name, ATTR_size, n, &numbers)) return value_error();
  struct value list = {.kind = VALUE_LIST};
  list.list.count = n;
  list.list.items = arena_new_array(r->arena, (size_t)n, struct value);
  for (int i = 0; i < n; i++) list.list.items[i] = value_int(numbers.ints[i]);
  return list_seal(r, &list, loc) ? list : value_error();
}

const struct builtin builtins_conv[] = {
    {"conv",
     {"x", "w", "strides = 1", "padding = \"valid\"", "kernel_dilation = 1", "input_dilation = 1",
      "groups = 1", "precision = none"},
     2,
     run_conv},
    {"transposed_conv",
     {"y", "w", "size", "strides = 1", "padding = \"valid\"", "kernel_dilation = 1", "groups = 1",
      "precision = none"},
     3,
     run_transposed},
    {"window_sum", {"x", "size", "strides = 1", "padding = \"valid\"", "dilation = 1"}, 2, run_window_sum},
    {"window_max", {"x", "size", "strides = 1", "padding = \"valid\"", "dilation = 1"}, 2, run_window_max},
    {"per_axis", {"x", "count"}, 2, run_per_axis},
    {NULL, {NULL}, 0, NULL},
};
