/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions in the order of ir/ops/conv.c, bit for bit as plain loops here have it: of the interpreter, and of
 * compiled code with portable bits, for each processor that this machine can compute as. Places meet pixels by search,
 * and terms are laid out before they are added up. TEST_SHARE=8 tries one shape of eight, and TEST_PART=3 those whose
 * number leaves 3. */
#include "tests/ops/in_order.h"
#include "tests/support/elements.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include "ir/graph/build.h"
#include "ir/ops/op_id.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { AXES = 2, INPUT = 0, KERNEL = 1, OUTPUT = 2, RESULTS = 3 };

struct shape {
  int batch, groups, channels, filters; /* channels and filters of a group */
  int input[AXES], kernel[AXES], stride[AXES], low[AXES], high[AXES], input_dilation[AXES],
      kernel_dilation[AXES];
};

#define PLAIN \
  {1, 1}, {0, 0}, {0, 0}, {1, 1}, { 1, 1 }
#define SAME \
  {1, 1}, {1, 1}, {1, 1}, {1, 1}, { 1, 1 }
/* Around the ends of pieces, of vectors, of blocks and of images. */
static const struct shape given[] = {
    {2, 1, 1, 6, {28, 28}, {5, 5}, PLAIN},
    {3, 1, 6, 16, {12, 12}, {5, 5}, PLAIN},
    {2, 1, 3, 16, {17, 17}, {3, 3}, SAME},
    {3, 1, 16, 16, {9, 32}, {3, 3}, SAME},
    {2, 1, 64, 20, {6, 6}, {3, 3}, SAME},
    {2, 1, 130, 33, {3, 5}, {3, 3}, SAME},
    {1, 1, 250, 3, {4, 4}, {3, 3}, SAME},
    {2, 1, 16, 32, {8, 8}, {1, 1}, PLAIN},
    {2, 1, 16, 32, {8, 9}, {1, 1}, {2, 2}, {0, 0}, {0, 0}, {1, 1}, {1, 1}},
    {3, 1, 16, 32, {11, 8}, {3, 3}, {2, 2}, {0, 0}, {1, 1}, {1, 1}, {1, 1}},
    {2, 24, 1, 1, {7, 7}, {3, 3}, SAME},
    {2, 3, 5, 7, {7, 6}, {3, 2}, SAME},
    {5, 1, 4, 300, {5, 5}, {2, 2}, PLAIN},
    {9, 1, 2, 3, {16, 16}, {3, 3}, SAME},
    {20, 1, 3, 5, {15, 15}, {3, 3}, SAME},
    {1, 1, 1, 1, {1, 1}, {1, 1}, PLAIN},
    {0, 1, 3, 4, {5, 5}, {3, 3}, SAME},
    {2, 1, 3, 4, {2, 2}, {3, 3}, PLAIN},
    {2, 1, 8, 40, {6, 6}, {3, 3}, {1, 1}, {2, 0}, {0, 3}, {2, 3}, {2, 1}},
    {2, 1, 3, 4, {9, 9}, {3, 3}, {1, 2}, {-1, -2}, {-1, 1}, {1, 1}, {1, 3}},
    {1, 1, 3, 5, {2, 600}, {2, 3}, {1, 1}, {0, 1}, {1, 1}, {1, 1}, {1, 1}},
    {1, 1, 2, 3, {3, 530}, {1, 2}, {1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 5}},
    {2, 1, 3, 4, {40, 40}, {2, 2}, {7, 9}, {20, 20}, {20, 20}, {1, 1}, {30, 25}},
    {2, 2, 3, 4, {30, 12}, {2, 2}, {9, 1}, {12, 1}, {12, 1}, {1, 1}, {20, 1}},
    {2, 1, 2, 520, {6, 5}, {3, 2}, {2, 2}, {1, 0}, {0, 1}, {1, 1}, {1, 1}},
    {1, 1, 3, 5, {6, 4}, {64, 2}, {1, 1}, {32, 1}, {32, 0}, {1, 1}, {1, 1}},
    {1, 1, 3, 70, {7, 4}, {66, 2}, {1, 1}, {33, 1}, {33, 0}, {1, 1}, {1, 1}},
    {4, 48, 1, 1, {12, 13}, {3, 3}, SAME},
    {2, 112, 1, 1, {5, 6}, {2, 3}, {2, 1}, {0, 1}, {1, 1}, {1, 1}, {1, 2}},
    {8, 1, 1, 6, {28, 28}, {5, 5}, {1, 1}, {2, 2}, {2, 2}, {1, 1}, {1, 1}},
    {9, 1, 6, 16, {14, 14}, {5, 5}, PLAIN},
    {11, 1, 3, 7, {5, 70}, {3, 4}, {1, 1}, {2, 1}, {0, 4}, {1, 1}, {2, 3}},
    {3, 1, 2, 16, {14, 15}, {4, 3}, {1, 1}, {2, 0}, {1, 1}, {1, 1}, {2, 1}},
    {2, 1, 1, 15, {30, 9}, {7, 4}, PLAIN},
    {8, 1, 2, 1, {9, 3}, {3, 3}, SAME},
    {2, 20, 1, 1, {8, 9}, {2, 3}, {1, 2}, {0, 1}, {1, 1}, {1, 1}, {1, 2}},
    {9, 2, 12, 9, {14, 15}, {3, 3}, SAME},
    {2, 1, 24, 7, {2, 600}, {2, 3}, {1, 1}, {0, 1}, {1, 1}, {1, 1}, {1, 1}},
    {6, 1, 40, 3, {20, 9}, {1, 1}, PLAIN},
    {1, 3, 5, 6, {2, 600}, {2, 3}, {1, 1}, {0, 2}, {1, 1}, {1, 1}, {1, 2}},
    {2, 2, 12, 4, {9, 9}, {3, 3}, {1, 2}, {-1, -2}, {-1, 3}, {1, 1}, {1, 2}},
};
enum { NGIVEN = sizeof given / sizeof *given, NRANDOM = 60, NSHAPES = NGIVEN + NRANDOM };

static struct shape shape_at(int i) {
  struct rng r = {4000 + (uint64_t)i};
  struct shape s = {0};
  if (i < NGIVEN) return given[i];
  s.batch = 1 + rng_below(&r, 3), s.groups = rng_chance(&r, 25) ? 1 + rng_below(&r, 4) : 1;
  s.channels = 1 + rng_below(&r, 20), s.filters = 1 + rng_below(&r, 20);
  for (int k = 0; k < AXES; k++) {
    s.input[k] = 1 + rng_below(&r, 12), s.kernel[k] = 1 + rng_below(&r, 4);
    s.stride[k] = rng_chance(&r, 30) ? 1 + rng_below(&r, 3) : 1;
    s.low[k] = rng_chance(&r, 50) ? rng_below(&r, 4) : 0,
    s.high[k] = rng_chance(&r, 50) ? rng_below(&r, 4) : 0;
    s.input_dilation[k] = rng_chance(&r, 20) ? 1 + rng_below(&r, 3) : 1;
    s.kernel_dilation[k] = rng_chance(&r, 20) ? 1 + rng_below(&r, 3) : 1;
  }
  return s;
}

static int output_size(const struct shape *s, int k) {
  int input = s->input[k] ? (s->input[k] - 1) * s->input_dilation[k] + 1 : 0;
  int room = input + s->low[k] + s->high[k] - ((s->kernel[k] - 1) * s->kernel_dilation[k] + 1);
  return room < 0 ? 0 : room / s->stride[k] + 1;
}

/* The types of the three tensors. */
static void types_of(const struct shape *s, enum dtype d, struct type *t) {
  int64_t out[] = {s->batch, output_size(s, 0), output_size(s, 1), s->groups * s->filters};
  int64_t in[] = {s->batch, s->input[0], s->input[1], s->groups * s->channels};
  int64_t kernel[] = {s->kernel[0], s->kernel[1], s->channels, s->groups * s->filters};
  t[INPUT] = type_make(d, 4, in), t[KERNEL] = type_make(d, 4, kernel), t[OUTPUT] = type_make(d, 4, out);
}

/* ---- the oracle ---- */

struct terms {
  double *a, *b;
  bool *there;
  int count;
};

static void put_term(struct terms *t, bool there, double a, double b) {
  t->there[t->count] = there, t->a[t->count] = a, t->b[t->count] = b;
  t->count++;
}

#define DEFINE_SUM(name, T, FMA)                                                    \
  static T name(const struct terms *t) {                                            \
    enum { PIECE = 512 };                                                           \
    T sums[64] = {0};                                                               \
    int sizes[64] = {0}, count = 0;                                                 \
    for (int begin = 0; begin < t->count; begin += PIECE) {                         \
      T sum = 0;                                                                    \
      for (int l = begin; l < t->count && l < begin + PIECE; l++)                   \
        if (t->there[l]) sum = FMA((T)t->a[l], (T)t->b[l], sum);                    \
      sums[count] = sum, sizes[count++] = 1;                                        \
      for (; count > 1 && sizes[count - 1] == sizes[count - 2]; count--)            \
        sums[count - 2] = sums[count - 2] + sums[count - 1], sizes[count - 2] *= 2; \
    }                                                                               \
    for (; count > 1; count--) sums[count - 2] = sums[count - 2] + sums[count - 1]; \
    return sums[0] == 0 ? 0 : sums[0];                                              \
  }
DEFINE_SUM(sum_f32, float, fmaf)
DEFINE_SUM(sum_f64, double, fma)

/* Whether, on an axis, place o of the output meets place i of the input under place k. */
static bool meets(const struct shape *s, int axis, int o, int k, int i) {
  return o * s->stride[axis] + k * s->kernel_dilation[axis] == i * s->input_dilation[axis] + s->low[axis];
}

/* What is read again and again: the elements of a tensor as numbers. */
struct numbers {
  const int64_t *dim;
  const double *at;
};

static struct numbers numbers_of(struct arena *a, const struct tensor *t) {
  int64_t count = type_count(&t->type);
  double *at = arena_new_array(a, (size_t)count + 1, double);
  for (int64_t e = 0; e < count; e++) at[e] = tensor_at(t, e);
  return (struct numbers){t->type.dim, at};
}

/* Number `channel` of pixel (n, y, x) of an image. */
static double pixel_at(const struct numbers *x, int n, const int *at, int channel) {
  return x->at[((n * x->dim[1] + at[0]) * x->dim[2] + at[1]) * x->dim[3] + channel];
}

/* On each axis the place of an image that place `from` of the other one meets under place k of the kernel, or -1:
 * [from][k]. `forward`: of the input, else of the output. What is met on one axis does not depend on the other. */
struct meetings {
  int *at[AXES];
};

static struct meetings meetings_of(struct arena *a, const struct shape *s, const int64_t *from_dim,
                                   const int64_t *dim, bool forward) {
  struct meetings m;
  for (int axis = 0; axis < AXES; axis++) {
    int sizes[] = {(int)from_dim[1 + axis], s->kernel[axis]};
    m.at[axis] = arena_new_array(a, (size_t)sizes[0] * (size_t)sizes[1] + 1, int);
    for (int e = 0; e < sizes[0] * sizes[1]; e++) {
      int from = e / sizes[1], k = e % sizes[1], i = (int)dim[1 + axis] - 1;
      while (i >= 0 && !(forward ? meets(s, axis, from, k, i) : meets(s, axis, i, k, from))) i--;
      m.at[axis][e] = i;
    }
  }
  return m;
}

static bool find_pixel(const struct meetings *m, const struct shape *s, const int *from, const int *k,
                       int *at) {
  for (int axis = 0; axis < AXES; axis++) at[axis] = m->at[axis][from[axis] * s->kernel[axis] + k[axis]];
  return at[0] >= 0 && at[1] >= 0;
}

static void convolve(struct arena *a, const struct shape *s, const struct tensor *t, int result,
                     struct tensor *out) {
  struct terms sum = {.count = 0};
  size_t most = 1 + (size_t)s->kernel[0] * (size_t)s->kernel[1] * (size_t)(s->channels + s->filters) +
                (size_t)s->batch * (size_t)(output_size(s, 0) * output_size(s, 1));
  sum.a = malloc(most * sizeof *sum.a), sum.b = malloc(most * sizeof *sum.b), sum.there = malloc(most);
  assert_true(sum.a && sum.b && sum.there);
  int filters = s->groups * s->filters, places = s->kernel[0] * s->kernel[1], at[AXES];
  const int64_t *dim = out->type.dim;
  struct numbers x[RESULTS];
  for (int i = 0; i < RESULTS; i++) x[i] = numbers_of(a, &t[i]);
  bool forward = result != INPUT;
  struct meetings met =
      meetings_of(a, s, x[forward ? OUTPUT : INPUT].dim, x[forward ? INPUT : OUTPUT].dim, forward);
  for (int64_t e = 0; e < type_count(&out->type); e++) {
    int last = (int)(e % dim[3]), two = (int)(e / dim[3] % dim[2]), one = (int)(e / dim[3] / dim[2] % dim[1]);
    int first = (int)(e / dim[3] / dim[2] / dim[1]), pixel[AXES] = {one, two};
    sum.count = 0;
    if (result == KERNEL) {
      int place[AXES] = {first, one}, group = last / s->filters, o[AXES];
      for (int n = 0; n < s->batch; n++)
        for (o[0] = 0; o[0] < output_size(s, 0); o[0]++)
          for (o[1] = 0; o[1] < output_size(s, 1); o[1]++) {
            bool there = find_pixel(&met, s, o, place, at);
            put_term(&sum, there, there ? pixel_at(&x[INPUT], n, at, group * s->channels + two) : 0,
                     pixel_at(&x[OUTPUT], n, o, last));
          }
    } else {
      const struct numbers *image = &x[forward ? INPUT : OUTPUT];
      int group = last / (forward ? s->filters : s->channels), terms = forward ? s->channels : s->filters;
      for (int i = 0; i < places; i++) {
        int k = forward ? i : places - 1 - i, place[AXES] = {k / s->kernel[1], k % s->kernel[1]};
        bool there = find_pixel(&met, s, pixel, place, at);
        for (int c = 0; c < terms; c++) {
          int in_w = forward ? (k * s->channels + c) * filters + last
                             : (k * s->channels + last % s->channels) * filters + group * s->filters + c;
          put_term(&sum, there, there ? pixel_at(image, first, at, group * terms + c) : 0,
                   x[KERNEL].at[in_w]);
        }
      }
    }
    tensor_set(out, e, out->type.dtype == DT_F32 ? (double)sum_f32(&sum) : sum_f64(&sum));
  }
  free(sum.a), free(sum.b), free(sum.there);
}

/* ---- all shapes as one graph ---- */

static int attributes(struct arena *a, const struct shape *s, int result, const struct type *of,
                      struct attr *out) {
  static const enum attr_key keys[] = {ATTR_strides, ATTR_padding_low, ATTR_padding_high, ATTR_input_dilation,
                                       ATTR_kernel_dilation};
  const int *const numbers[] = {s->stride, s->low, s->high, s->input_dilation, s->kernel_dilation};
  int count = 0;
  for (int i = 0; i < 5; i++) {
    int64_t *ints = arena_new_array(a, AXES, int64_t);
    for (int k = 0; k < AXES; k++) ints[k] = numbers[i][k];
    out[count++] = attr_ints(keys[i], AXES, ints);
  }
  if (s->groups != 1) out[count++] = attr_int(ATTR_groups, s->groups);
  if (result == OUTPUT) return count;
  out[count++] = attr_string(ATTR_result, result == INPUT ? "input" : "kernel");
  out[count++] = attr_ints(ATTR_size, AXES, result == INPUT ? of->dim + 1 : of->dim);
  return count;
}

/* Numbers, of which some are what rounds to 0; with `special` a few of `which` are Inf and NaN. */
static void fill(struct rng *r, struct tensor *t, bool special) {
  int64_t count = type_count(&t->type);
  bool f32 = t->type.dtype != DT_F64;
  for (int64_t e = 0; e < count; e++)
    tensor_set(t, e,
               rng_chance(r, 3) ? (f32 ? 0x1p-80 : 0x1p-550) * (rng_chance(r, 50) ? -1 : 1)
                                : rng_uniform(r, -1, 1));
  static const double odd[] = {(double)INFINITY, -(double)INFINITY, (double)NAN, -0.0};
  for (int i = 0; special && count && i < 4; i++) tensor_set(t, rng_below(r, (int)count), odd[i]);
}

/* Operands stand in this order. */
static const int order[RESULTS][2] = {{OUTPUT, KERNEL}, {INPUT, OUTPUT}, {INPUT, KERNEL}};

static void in_order(void **state) {
  static const char *const results[] = {"input", "kernel", "output"};
  const struct operand_kind *kind = *state;
  struct in_order *o = in_order_create(NSHAPES * RESULTS);
  struct arena *a = o->arena;
  int share = (int)number_from("TEST_SHARE", 1), part = (int)number_from("TEST_PART", 0);
  for (int i = part; i < NSHAPES; i += share) {
    struct shape s = shape_at(i);
    struct rng r = {78 + (uint64_t)i};
    struct type types[RESULTS];
    struct tensor t[RESULTS];
    struct node *x[RESULTS];
    types_of(&s, kind->dtype, types);
    for (int k = 0; k < RESULTS; k++) {
      t[k] = (struct tensor){types[k], arena_alloc(a, (size_t)type_bytes(&types[k]) + 1)};
      fill(&r, &t[k], kind->special && (k != KERNEL || i % 2));
      x[k] = in_order_operand(o, arena_printf(a, "x%d_%d", i, k), &t[k], kind->stored);
    }
    for (int result = 0; result < RESULTS; result++) {
      struct attr attrs[8];
      int count = attributes(a, &s, result, &types[result], attrs);
      struct node *in[] = {x[order[result][0]], x[order[result][1]]};
      struct node *z = build(o->g, OP_conv, 2, in, count, attrs, NULL);
      const char *what = arena_printf(a, "%s of shape %d", results[result], i);
      convolve(a, &s, t, result, in_order_result(o, z, what));
    }
  }
  in_order_check(o);
  in_order_destroy(o);
}

int main(void) {
  struct CMUnitTest tests[OPERAND_KINDS];
  for (int i = 0; i < OPERAND_KINDS; i++)
    tests[i] = (struct CMUnitTest){
        .name = operand_kinds[i].name, .test_func = in_order, .initial_state = &operand_kinds[i]};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
