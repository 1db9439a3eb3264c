/* SPDX-License-Identifier: Apache-2.0 */
/* conv: convolutions in XLA's general form, over one to three spatial axes.
 *
 * An output y [N, O..., F], an input x [N, I..., C] and a kernel w [K..., C / groups, F] meet in one sum of products,
 *   sum of y[n, o, f] x[n, i, c] w[k, c, f]  over all n, o, i, k, f and the c of f's group, where in each spatial axis
 *   o * stride + k * kernel_dilation = i * input_dilation + padding_low.
 * What stands beside one of the three is a convolution: y of x and w, x ("input") of y and w, w ("kernel") of x and y.
 * It is linear in both operands and its derivatives are the other two, so the op is closed under differentiation.
 * What lies outside of the input, and between its dilated elements, is no term.
 *
 * The order of floats, which `eval` and so the interpreter has, and whoever computes with --bits portable. Terms of
 * an element are numbered over the places of the kernel and in each over the channels that are summed up: of y those
 * of x, of x the filters, with the places from the last to the first. Of w they are numbered over the pixels of y,
 * batch and all. They are added up as those of a product of matrices (matmul.c): PRODUCT_PIECE successive numbers are
 * a chain of fused multiply-adds from +0, in which what is no term is left out, and pieces are joined as a tree. A
 * result of zero is +0. So a backend may take 0 for what is no term: where the other factor is Inf or NaN the element
 * is NaN then, and those alone are computed again. */
#include "base/integer.h"
#include "ir/graph/build.h"
#include "ir/ops/leaf.h"
#include "ir/ops/op_id.h"
#include "ir/ops/spatial.h"

#include <math.h>
#include <string.h>

static enum conv_result result_of(const struct node *n) {
  const struct attr *a = node_attr(n, ATTR_result);
  return a == NULL ? CONV_OUTPUT : strcmp(a->string, "input") == 0 ? CONV_INPUT : CONV_KERNEL;
}

/* Which of the three the operands are. */
static const enum conv_result operands[3][2] = {[CONV_INPUT] = {CONV_OUTPUT, CONV_KERNEL},
                                                [CONV_KERNEL] = {CONV_INPUT, CONV_OUTPUT},
                                                [CONV_OUTPUT] = {CONV_INPUT, CONV_KERNEL}};

/* ---- shapes ---- */

/* The five numbers of each spatial axis. */
struct window {
  int rank;
  int64_t stride[CONV_AXES], low[CONV_AXES], high[CONV_AXES], input_dilation[CONV_AXES],
      kernel_dilation[CONV_AXES];
};

static bool read_window(const struct node *n, int rank, struct window *w, struct arena *a, const char **why) {
  *w = (struct window){.rank = rank};
  return spatial_numbers(n, ATTR_strides, rank, 1, 1, w->stride, a, why) &&
         spatial_numbers(n, ATTR_padding_low, rank, -MAX_ELEMENTS, 0, w->low, a, why) &&
         spatial_numbers(n, ATTR_padding_high, rank, -MAX_ELEMENTS, 0, w->high, a, why) &&
         spatial_numbers(n, ATTR_input_dilation, rank, 1, 1, w->input_dilation, a, why) &&
         spatial_numbers(n, ATTR_kernel_dilation, rank, 1, 1, w->kernel_dilation, a, why);
}

/* How many places the kernel has over the input; none where it is longer. */
static int64_t places(const struct window *w, int i, int64_t input, int64_t kernel) {
  return spatial_places(input, w->input_dilation[i], w->low[i] + w->high[i], kernel, w->kernel_dilation[i],
                        w->stride[i]);
}

/* The types of all three, from those of the operands and what the attributes say. */
static bool conv_types(const struct node *n, struct type *t, struct arena *a, const char **why) {
  enum conv_result result = result_of(n), first = operands[result][0], second = operands[result][1];
  int64_t groups = node_int_or(n, ATTR_groups, 1);
  const struct attr *size = node_attr(n, ATTR_size);
  t[first] = n->inputs[0]->type;
  t[second] = n->inputs[1]->type;
  int rank = t[first].rank, spatial = rank - 2, last = rank - 1;
  struct window w;
  if (spatial < 1 || spatial > CONV_AXES || t[second].rank != rank) {
    *why = arena_printf(a, "conv needs two operands of equal rank, from 3 to %d: %s and %s", CONV_AXES + 2,
                        type_text(a, &t[first]), type_text(a, &t[second]));
    return false;
  }
  if (!read_window(n, spatial, &w, a, why)) return false;
  if ((result != CONV_OUTPUT) != (size != NULL) || (size && size->count != spatial)) {
    *why = result == CONV_OUTPUT
               ? "conv has a size where its result is the input or the kernel"
               : arena_printf(a, "conv of an %s needs its size, a number for each of %d axes",
                              result == CONV_INPUT ? "input" : "kernel", spatial);
    return false;
  }
  int64_t sizes[CONV_AXES];
  if (!spatial_numbers(n, ATTR_size, spatial, 0, 0, sizes, a, why)) return false;
  t[result] = t[first];
  if (result == CONV_KERNEL) {
    t[CONV_KERNEL].dim[rank - 2] = groups > 0 ? t[CONV_INPUT].dim[last] / groups : 0;
    t[CONV_KERNEL].dim[last] = t[CONV_OUTPUT].dim[last];
  } else if (result == CONV_INPUT) {
    if (!dim_mul(t[CONV_KERNEL].dim[rank - 2], groups, &t[CONV_INPUT].dim[last])) t[CONV_INPUT].dim[last] = 0;
  } else {
    t[CONV_OUTPUT].dim[last] = t[CONV_KERNEL].dim[last];
  }
  for (int i = 0; i < spatial && size; i++) t[result].dim[result == CONV_KERNEL ? i : i + 1] = sizes[i];
  for (int role = CONV_INPUT; role <= CONV_OUTPUT; role++)
    for (int i = role == CONV_KERNEL ? 0 : 1; i < rank; i++)
      if (t[role].dim[i] < 0) {
        *why =
            arena_printf(a, "conv has the batch in the first axis of its input and output alone: %s and %s",
                         type_text(a, &t[first]), type_text(a, &t[second]));
        return false;
      }
  bool fits = groups > 0 && t[CONV_INPUT].dim[last] % groups == 0 && t[CONV_KERNEL].dim[last] % groups == 0 &&
              t[CONV_KERNEL].dim[rank - 2] == t[CONV_INPUT].dim[last] / groups &&
              t[CONV_OUTPUT].dim[last] == t[CONV_KERNEL].dim[last] &&
              t[CONV_INPUT].dim[0] == t[CONV_OUTPUT].dim[0];
  for (int i = 0; i < spatial; i++) {
    if (spatial_reach(t[CONV_INPUT].dim[i + 1], w.input_dilation[i]) == SPATIAL_MOST ||
        spatial_reach(t[CONV_KERNEL].dim[i], w.kernel_dilation[i]) == SPATIAL_MOST) {
      *why = "conv has gaps so wide that its places cannot be numbered: take a smaller dilation";
      return false;
    }
    int64_t out = places(&w, i, t[CONV_INPUT].dim[i + 1], t[CONV_KERNEL].dim[i]);
    if (result == CONV_OUTPUT) t[CONV_OUTPUT].dim[i + 1] = out;
    fits = fits && t[CONV_OUTPUT].dim[i + 1] == out;
  }
  if (fits) return true;
  *why = arena_printf(
      a,
      result == CONV_OUTPUT  ? "conv of %lld group%s needs an input [N, ..., C] and a kernel [..., C / "
                               "groups, F] of as many groups of filters: %s and %s"
      : result == CONV_INPUT ? "conv of %lld group%s has no input of this size: %s is not the output of "
                               "one under the kernel %s"
                             : "conv of %lld group%s has no kernel of this size: one over %s does not "
                               "give %s",
      (long long)groups, groups == 1 ? "" : "s", type_text(a, &t[first]), type_text(a, &t[second]));
  return false;
}

static bool conv_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  struct type t[3];
  const struct attr *precision = node_attr(n, ATTR_precision);
  if (!conv_types(n, t, a, why)) return false;
  *out = t[result_of(n)];
  if (out->dtype == DT_BF16) out->dtype = DT_F32;
  if (!precision || n->inputs[0]->type.dtype == DT_F32) return true;
  *why = arena_printf(a, "a conv of precision %s has operands of f32, not %s", precision->string,
                      type_text(a, &n->inputs[0]->type));
  return false;
}

struct convolution convolution_of(const struct node *n) {
  enum conv_result result = result_of(n);
  struct convolution c = {.result = result, .groups = node_int_or(n, ATTR_groups, 1)};
  struct type t[3];
  struct window w;
  t[operands[result][0]] = n->inputs[0]->type;
  t[operands[result][1]] = n->inputs[1]->type;
  t[result] = n->type;
  int rank = n->type.rank - 2, pad = CONV_AXES - rank;
  read_window(n, rank, &w, NULL, NULL);
  c.batch = t[CONV_INPUT].dim[0];
  c.channels = t[CONV_KERNEL].dim[rank];
  c.filters = t[CONV_KERNEL].dim[rank + 1] / c.groups;
  for (int i = 0; i < CONV_AXES; i++) {
    bool there = i >= pad;
    int from = there ? i - pad : 0;
    c.input[i] = there ? t[CONV_INPUT].dim[from + 1] : 1;
    c.kernel[i] = there ? t[CONV_KERNEL].dim[from] : 1;
    c.output[i] = there ? t[CONV_OUTPUT].dim[from + 1] : 1;
    c.stride[i] = there ? w.stride[from] : 1;
    c.low[i] = there ? w.low[from] : 0;
    c.input_dilation[i] = there ? w.input_dilation[from] : 1;
    c.kernel_dilation[i] = there ? w.kernel_dilation[from] : 1;
  }
  return c;
}

/* ---- derivatives ---- */

/* n's window on other operands. */
static struct node *conv_like(struct graph *g, const struct node *n, struct node *a, struct node *b,
                              enum conv_result result, const struct type *of) {
  struct attr attrs[ATTR_COUNT];
  int count = 0, rank = n->type.rank - 2;
  for (int i = 0; i < n->nattrs; i++)
    if (n->attrs[i].key != ATTR_result && n->attrs[i].key != ATTR_size) attrs[count++] = n->attrs[i];
  if (result != CONV_OUTPUT) {
    attrs[count++] = attr_string(ATTR_result, result == CONV_INPUT ? "input" : "kernel");
    attrs[count++] = attr_ints(ATTR_size, rank, result == CONV_INPUT ? of->dim + 1 : of->dim);
  }
  return build(g, OP_conv, 2, (struct node *[]){a, b}, count, attrs, NULL);
}

/* The operands of each stand in the order of `operands`. In bf16 what comes back is rounded too: see matmul_grad. */
static void conv_grad(struct grad *c, const struct node *n, struct node *dy) {
  enum conv_result result = result_of(n);
  if (node_attr(n, ATTR_precision)) dy = build1(c->g, OP_round_bf16, dy);
  for (int i = 0; i < 2; i++) {
    enum conv_result of = operands[result][i];
    struct node *role[3] = {NULL};
    role[result] = dy;
    role[operands[result][1 - i]] = n->inputs[1 - i];
    grad_add(c, n, i,
             conv_like(c->g, n, role[operands[of][0]], role[operands[of][1]], of, &n->inputs[i]->type));
  }
}

/* ---- figures ---- */

/* At most SPATIAL_MOST: padding may make an output of any size out of next to nothing. */
static int64_t conv_flops(const struct node *n) {
  struct convolution c = convolution_of(n);
  int64_t flops = 2 * c.channels;
  const int64_t factors[] = {c.batch,     c.groups,    c.filters,   c.output[0], c.output[1],
                             c.output[2], c.kernel[0], c.kernel[1], c.kernel[2]};
  return spatial_product(flops, sizeof factors / sizeof *factors, factors);
}

/* Threads of a GPU, see kernels/cuda/conv.cu: a block for each element of a kernel, and for each tile of 256 by 16 or
 * 64 by 64 elements of the others, a thread for each element where there are few columns. */
static int64_t conv_threads(const struct convolution *c, int64_t elements) {
  int64_t columns = c->result == CONV_OUTPUT ? c->filters : c->channels;
  if (c->result == CONV_KERNEL) return elements * BLOCK_THREADS;
  if (columns < 4) return elements;
  int64_t wide = columns > 16 ? 64 : 16, high = columns > 16 ? 64 : 256;
  int64_t rows = elements / (c->groups * columns);
  return blocks_of(columns, wide) * blocks_of(rows, high) * c->groups * BLOCK_THREADS;
}

static int64_t conv_numbers(const struct node *n, int64_t *out) {
  struct convolution c = convolution_of(n);
  _Static_assert(sizeof c <= MAX_LEAF_NUMBERS * sizeof *out, "its numbers are a leaf's");
  memcpy(out, &c, sizeof c);
  int64_t elements = type_count(&n->type);
  return elements ? conv_threads(&c, elements) : 0;
}

/* Input and kernel without its channels, then what is unusual: "64x32x32x3 3x3x16 strides 2,2 of kernel". */
static void conv_sizes(struct str *s, const struct node *n) {
  static const char *const names[] = {
      [CONV_INPUT] = " of input", [CONV_KERNEL] = " of kernel", [CONV_OUTPUT] = ""};
  struct convolution c = convolution_of(n);
  int first = CONV_AXES - (n->type.rank - 2);
  str_printf(s, "%lldx", (long long)c.batch);
  for (int i = first; i < CONV_AXES; i++) str_printf(s, "%lldx", (long long)c.input[i]);
  str_printf(s, "%lld ", (long long)(c.groups * c.channels));
  for (int i = first; i < CONV_AXES; i++) str_printf(s, "%lldx", (long long)c.kernel[i]);
  str_printf(s, "%lld", (long long)(c.groups * c.filters));
  spatial_print(s, n, ATTR_strides, "strides");
  spatial_print(s, n, ATTR_padding_low, "low");
  spatial_print(s, n, ATTR_padding_high, "high");
  spatial_print(s, n, ATTR_input_dilation, "input");
  spatial_print(s, n, ATTR_kernel_dilation, "kernel");
  if (c.groups != 1) str_printf(s, " groups %lld", (long long)c.groups);
  str_put(s, node_attr(n, ATTR_precision) || n->inputs[0]->type.dtype == DT_BF16 ? " bf16" : "");
  str_put(s, names[c.result]);
}

/* ---- values ---- */

static void unravel(int64_t at, const int64_t *size, int64_t *out) {
  for (int axis = CONV_AXES - 1; axis >= 0; axis--) out[axis] = at % size[axis], at /= size[axis];
}

static int64_t ravel(const int64_t *at, const int64_t *size) {
  return (at[0] * size[1] + at[1]) * size[2] + at[2];
}

static int64_t count_of(const int64_t *size) { return size[0] * size[1] * size[2]; }

/* The pixel of the input that pixel o of the output meets under place k of the kernel; -1: none. */
static int64_t input_under(const struct convolution *c, int64_t o, int64_t k) {
  int64_t at_o[CONV_AXES], at_k[CONV_AXES], at[CONV_AXES];
  unravel(o, c->output, at_o);
  unravel(k, c->kernel, at_k);
  for (int i = 0; i < CONV_AXES; i++) {
    int64_t place = at_o[i] * c->stride[i] + at_k[i] * c->kernel_dilation[i] - c->low[i];
    at[i] = place / c->input_dilation[i];
    if (place < 0 || place % c->input_dilation[i] || at[i] >= c->input[i]) return -1;
  }
  return ravel(at, c->input);
}

/* The other way. */
static int64_t output_over(const struct convolution *c, int64_t i, int64_t k) {
  int64_t at_i[CONV_AXES], at_k[CONV_AXES], at[CONV_AXES];
  unravel(i, c->input, at_i);
  unravel(k, c->kernel, at_k);
  for (int axis = 0; axis < CONV_AXES; axis++) {
    int64_t place =
        at_i[axis] * c->input_dilation[axis] + c->low[axis] - at_k[axis] * c->kernel_dilation[axis];
    at[axis] = place / c->stride[axis];
    if (place < 0 || place % c->stride[axis] || at[axis] >= c->output[axis]) return -1;
  }
  return ravel(at, c->output);
}

/* The pixel that each pixel meets under each place of the kernel, computed once; NULL where there are too many. */
static int32_t *meetings_of(struct arena *a, const struct convolution *c) {
  enum { MOST = 1 << 16 };
  int64_t pixels = count_of(c->result == CONV_INPUT ? c->input : c->output), kernels = count_of(c->kernel);
  if (pixels > MOST || kernels > MOST || pixels * kernels > MOST) return NULL;
  if (count_of(c->result == CONV_INPUT ? c->output : c->input) > INT32_MAX) return NULL;
  int32_t *met = arena_array(a, (size_t)(pixels * kernels) + 1, sizeof *met);
  for (int64_t i = 0; i < pixels * kernels; i++)
    met[i] = (int32_t)(c->result == CONV_INPUT ? output_over(c, i / kernels, i % kernels)
                                               : input_under(c, i / kernels, i % kernels));
  return met;
}

static int64_t met_by(const struct convolution *c, const int32_t *met, int64_t pixel, int64_t k) {
  if (met) return met[pixel * count_of(c->kernel) + k];
  return c->result == CONV_INPUT ? output_over(c, pixel, k) : input_under(c, pixel, k);
}

/* Products of elements of the first and the second operand that lie so far apart. */
struct products {
  int64_t count, a, b, step_a, step_b;
};

/* Element e of the result is the sum of these runs, one after the other, each of so many terms or of none. */
static int64_t terms_of(const struct convolution *c) {
  return c->result == CONV_KERNEL ? 1 : c->result == CONV_INPUT ? c->filters : c->channels;
}
static int64_t runs_of(const struct convolution *c) {
  return c->result == CONV_KERNEL ? c->batch * count_of(c->output) : count_of(c->kernel);
}

static struct products output_products(const struct convolution *c, const int32_t *met, int64_t e,
                                       int64_t k) {
  int64_t filters = c->groups * c->filters, f = e % filters, outputs = count_of(c->output), y = e / filters;
  int64_t pixel = met_by(c, met, y % outputs, k);
  if (pixel < 0) return (struct products){0};
  pixel += y / outputs * count_of(c->input);
  return (struct products){c->channels, (pixel * c->groups + f / c->filters) * c->channels,
                           k * c->channels * filters + f, 1, filters};
}

static struct products input_products(const struct convolution *c, const int32_t *met, int64_t e,
                                      int64_t run) {
  int64_t k = count_of(c->kernel) - 1 - run;
  int64_t channels = c->groups * c->channels, channel = e % channels, inputs = count_of(c->input);
  int64_t x = e / channels, group = channel / c->channels, filters = c->groups * c->filters;
  int64_t pixel = met_by(c, met, x % inputs, k);
  if (pixel < 0) return (struct products){0};
  pixel += x / inputs * count_of(c->output);
  return (struct products){c->filters, pixel * filters + group * c->filters,
                           (k * c->channels + channel % c->channels) * filters + group * c->filters, 1, 1};
}

static struct products kernel_products(const struct convolution *c, const int32_t *met, int64_t e,
                                       int64_t y) {
  int64_t filters = c->groups * c->filters, f = e % filters, outputs = count_of(c->output);
  int64_t pixel = met_by(c, met, y % outputs, e / filters / c->channels);
  if (pixel < 0) return (struct products){0};
  pixel += y / outputs * count_of(c->input);
  int64_t channel = f / c->filters * c->channels + e / filters % c->channels;
  return (struct products){1, pixel * c->groups * c->channels + channel, y * filters + f, 0, 0};
}

static struct products products_of(const struct convolution *c, const int32_t *met, int64_t e, int64_t run) {
  switch ((enum conv_result)c->result) {
  case CONV_INPUT: return input_products(c, met, e, run);
  case CONV_KERNEL: return kernel_products(c, met, e, run);
  case CONV_OUTPUT: break;
  }
  return output_products(c, met, e, run);
}

static float f32_at(const struct tensor *t, int64_t i) {
  return t->type.dtype == DT_BF16 ? bf16_at(t, i) : ((const float *)t->data)[i];
}
static double f64_at(const struct tensor *t, int64_t i) { return ((const double *)t->data)[i]; }

/* Sums of pieces wait as a binary counter has them: each is of twice as many pieces as the next one, or more. What is 0
 * becomes +0 at the end. */
#define DEFINE_ELEMENT(name, T, FMA, AT)                                                                 \
  static T name(const struct convolution *c, const int32_t *met, const struct tensor *in, int64_t e) {   \
    T waiting[64], sum = 0;                                                                              \
    int64_t runs = runs_of(c), terms = terms_of(c), left = PRODUCT_PIECE, done = 0, count = 0;           \
    for (int64_t i = 0; i < runs; i++) {                                                                 \
      struct products r = products_of(c, met, e, i);                                                     \
      for (int64_t k = 0; k < terms; k++, left--) {                                                      \
        if (left == 0) {                                                                                 \
          waiting[count++] = sum, sum = 0, left = PRODUCT_PIECE;                                         \
          for (int64_t ones = done++; ones & 1; ones >>= 1, count--)                                     \
            waiting[count - 2] = waiting[count - 2] + waiting[count - 1];                                \
        }                                                                                                \
        if (k < r.count) sum = FMA(AT(&in[0], r.a + k * r.step_a), AT(&in[1], r.b + k * r.step_b), sum); \
      }                                                                                                  \
      if (sum != sum) return sum; /* and stays so */                                                     \
    }                                                                                                    \
    for (; count > 0; count--) sum = waiting[count - 1] + sum;                                           \
    return sum + 0;                                                                                      \
  }
DEFINE_ELEMENT(f32_element, float, fmaf, f32_at)
DEFINE_ELEMENT(f64_element, double, fma, f64_at)

/* Integers wrap. */
#define CONVOLVE(T, SUM)                                          \
  for (int64_t e = 0; e < count; e++) {                           \
    SUM sum = 0;                                                  \
    for (int64_t i = 0; i < runs_of(&c); i++) {                   \
      struct products r = products_of(&c, met, e, i);             \
      for (int64_t k = 0; k < r.count; k++)                       \
        sum += (SUM)((const T *)in[0].data)[r.a + k * r.step_a] * \
               (SUM)((const T *)in[1].data)[r.b + k * r.step_b];  \
    }                                                             \
    ((T *)out->data)[e] = (T)sum;                                 \
  }

static void conv_eval(const struct node *n, const struct tensor *in, struct tensor *out) {
  struct convolution c = convolution_of(n);
  int64_t count = type_count(&n->type);
  struct arena *a = arena_create();
  const int32_t *met = meetings_of(a, &c);
  switch ((enum dtype)n->type.dtype) {
  case DT_F32:
    for (int64_t e = 0; e < count; e++) ((float *)out->data)[e] = f32_element(&c, met, in, e);
    break;
  case DT_F64:
    for (int64_t e = 0; e < count; e++) ((double *)out->data)[e] = f64_element(&c, met, in, e);
    break;
  case DT_I32: CONVOLVE(uint32_t, uint32_t) break;
  case DT_I64: CONVOLVE(uint64_t, uint64_t) break;
  case DT_U8: CONVOLVE(uint8_t, uint32_t) break;
  case DT_BOOL:
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
  arena_destroy(a);
}

static bool has_gap(const struct convolution *c, const int32_t *met, int64_t pixel) {
  int64_t places = count_of(c->kernel), k = 0;
  while (k < places && met_by(c, met, pixel, k) >= 0) k++;
  return k < places;
}

/* Of a pixel without a gap all elements are what they should be; those of a kernel are sums over all pixels. */
#define DEFINE_MEND(name, T, ELEMENT)                                                                \
  static void name(const struct convolution *c, const int32_t *met, const struct tensor *in, T *out, \
                   int64_t first, int64_t end) {                                                     \
    int64_t columns = c->groups * (c->result == CONV_INPUT ? c->channels : c->filters), pixel = -1;  \
    int64_t pixels = count_of(c->result == CONV_INPUT ? c->input : c->output);                       \
    bool gap = c->result == CONV_KERNEL;                                                             \
    for (int64_t e = first; e < end; e++) {                                                          \
      if (out[e] == out[e]) continue;                                                                \
      if (c->result != CONV_KERNEL && e / columns != pixel)                                          \
        pixel = e / columns, gap = has_gap(c, met, pixel % pixels);                                  \
      if (gap) out[e] = ELEMENT(c, met, in, e);                                                      \
    }                                                                                                \
  }
DEFINE_MEND(mend_f32, float, f32_element)
DEFINE_MEND(mend_f64, double, f64_element)

void conv_mend_gaps(const struct node *n, void *const *args, int64_t first, int64_t end) {
  const struct leaf_tensors t = leaf_tensors(n, args);
  struct convolution c = convolution_of(n);
  struct arena *a = arena_create();
  const int32_t *met = meetings_of(a, &c);
  if (n->type.dtype == DT_F32)
    mend_f32(&c, met, t.in, t.out.data, first, end);
  else
    mend_f64(&c, met, t.in, t.out.data, first, end);
  arena_destroy(a);
}

const struct op_info op_conv = {.name = "conv",
                                .kind = KIND_LEAF,
                                .dtypes = DTYPE_NUMBER,
                                .traits = OP_TAKES_BF16,
                                .min_inputs = 2,
                                .max_inputs = 2,
                                .optional_attrs = ATTR_BIT(strides) | ATTR_BIT(padding_low) |
                                                  ATTR_BIT(padding_high) | ATTR_BIT(input_dilation) |
                                                  ATTR_BIT(kernel_dilation) | ATTR_BIT(groups) |
                                                  ATTR_BIT(result) | ATTR_BIT(size) | ATTR_BIT(precision),
                                .linear = 3,
                                .roles = {"x", "w"},
                                .domain = DOMAIN_ANY,
                                .infer = conv_infer,
                                .grad = conv_grad,
                                .flops = conv_flops,
                                .eval = conv_eval,
                                .sizes = conv_sizes,
                                .numbers = conv_numbers};
