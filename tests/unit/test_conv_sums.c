/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of kernels of bfloat16 convolutions by AMX, against sums in double. */
#include "ir/graph/build.h"
#include "ir/ops/leaf.h"
#include "ir/ops/op_id.h"
#include "kernels/cpu/amx.h"
#include "runtime/cpu/conv_amx_sums.h"
#include "runtime/cpu/onednn.h"
#include "tests/support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct rng rng;

struct row {
  int axes;
  int64_t batch, channels, filters, input[3], kernel[3], stride[3], dilation[3], low[3], output[3];
};

/* What drawn sizes have rarely: many pieces of the batch and of the tree, wide rows, kernels that are as large as the
 * image or larger, few pixels in large strides, more channels than are kept. */
static const struct row rows[] = {
    {2, 7, 3, 5, {60, 61}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {60, 61}},
    {2, 16, 16, 16, {32, 32}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {32, 32}},
    {2, 5, 33, 17, {16, 16}, {1, 1}, {2, 2}, {1, 1}, {0, 0}, {8, 8}},
    {2, 33, 18, 40, {8, 8}, {3, 3}, {2, 2}, {1, 1}, {0, 0}, {4, 4}},
    {2, 40, 35, 20, {5, 5}, {5, 5}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {1, 3, 7, 50, {3000}, {5}, {1}, {200}, {400}, {3000}},
    {1, 2, 260, 4, {40}, {9}, {1}, {31}, {124}, {40}},
    {2, 9, 200, 33, {9, 9}, {3, 3}, {3, 3}, {1, 1}, {1, 1}, {3, 3}},
    {1, 1, 1, 1, {20000}, {2}, {1}, {1}, {0}, {19999}},
};

static int64_t count3(const int64_t *size, int axes) {
  return size[0] * (axes > 1 ? size[1] : 1) * (axes > 2 ? size[2] : 1);
}

/* False if it has no output. */
static bool draw(struct row *r) {
  static const int batches[] = {1, 7, 1, 7, 0};
  bool some = true;
  r->axes = 1 + rng_below(&rng, 3);
  r->batch = batches[rng_below(&rng, 5)];
  r->channels = 1 + rng_below(&rng, 70), r->filters = 1 + rng_below(&rng, 70);
  for (int i = 0; i < r->axes; i++) {
    r->input[i] = 1 + rng_below(&rng, r->axes == 1 ? 90 : r->axes == 2 ? 14 : 6);
    r->kernel[i] = 1 + rng_below(&rng, r->axes > 2 ? 3 : 5), r->stride[i] = 1 + rng_below(&rng, 3);
    r->dilation[i] = 1 + rng_below(&rng, 3), r->low[i] = rng_below(&rng, 6) - 1;
    int64_t left = r->input[i] + r->low[i] + rng_below(&rng, 6) - 1 - (r->kernel[i] - 1) * r->dilation[i];
    some = some && left > 0;
    r->output[i] = (left + r->stride[i] - 1) / r->stride[i];
  }
  return some;
}

static struct node *node_of(struct graph *g, const struct row *r, bool stored) {
  struct type x = {.dtype = DT_F32, .rank = (uint8_t)(r->axes + 2)}, y = x;
  int64_t high[3];
  x.dim[0] = y.dim[0] = r->batch, x.dim[r->axes + 1] = r->channels, y.dim[r->axes + 1] = r->filters;
  for (int i = 0; i < r->axes; i++) {
    x.dim[i + 1] = r->input[i], y.dim[i + 1] = r->output[i];
    high[i] =
        (r->output[i] - 1) * r->stride[i] + (r->kernel[i] - 1) * r->dilation[i] + 1 - r->input[i] - r->low[i];
  }
  struct attr attrs[] = {
      attr_ints(ATTR_strides, r->axes, r->stride), attr_ints(ATTR_padding_low, r->axes, r->low),
      attr_ints(ATTR_padding_high, r->axes, high), attr_ints(ATTR_kernel_dilation, r->axes, r->dilation),
      attr_string(ATTR_result, "kernel"),          attr_ints(ATTR_size, r->axes, r->kernel),
      attr_string(ATTR_precision, "bf16")};
  struct node *in[] = {build_variable(g, "x", &x, true, false), build_variable(g, "y", &y, true, false)};
  for (int i = 0; i < 2 && stored; i++) in[i] = build_cast(g, in[i], DT_BF16);
  return build(g, OP_conv, 2, in, stored ? 6 : 7, attrs, NULL);
}

/* The pixel of an image that output o meets under place k; -1: none. */
static int64_t met(const struct row *r, int64_t o, int64_t k) {
  int64_t at = 0, step = 1;
  for (int i = r->axes - 1; i >= 0; i--) {
    int64_t p = o % r->output[i] * r->stride[i] + k % r->kernel[i] * r->dilation[i] - r->low[i];
    if (p < 0 || p >= r->input[i]) return -1;
    at += p * step, step *= r->input[i], o /= r->output[i], k /= r->kernel[i];
  }
  return at;
}

/* The sums, and those of the terms' magnitudes. */
static void sums_in_double(const struct row *r, const float *x, const float *y, double *sums, double *sizes) {
  int64_t outputs = count3(r->output, r->axes), inputs = count3(r->input, r->axes);
  for (int64_t k = 0; k < count3(r->kernel, r->axes); k++)
    for (int64_t o = 0; o < r->batch * outputs; o++) {
      int64_t pixel = met(r, o % outputs, k);
      if (pixel < 0) continue;
      pixel += o / outputs * inputs;
      for (int64_t c = 0; c < r->channels; c++)
        for (int64_t f = 0; f < r->filters; f++) {
          double term = (double)x[pixel * r->channels + c] * (double)y[o * r->filters + f];
          int64_t at = (k * r->channels + c) * r->filters + f;
          sums[at] += term, sizes[at] += fabs(term);
        }
    }
}

static float drawn(void) { return (float)(rng_below(&rng, 255) - 127) / (float)(1 << rng_below(&rng, 8)); }

/* An operand as it is read, behind `*numbers`; no more memory than its elements, so that sanitizers see what
 * is beside. */
static void *fill(int64_t count, bool stored, bool wild, float *numbers) {
  char *memory = malloc((size_t)count * (stored ? 2 : 4) + 1);
  assert_non_null(memory);
  for (int64_t i = 0; i < count; i++) numbers[i] = drawn();
  for (int i = 0; i < 3 && wild && count; i++)
    numbers[rng_bits(&rng) % (uint64_t)count] = (float[]){INFINITY, -INFINITY, NAN}[i];
  for (int64_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, &numbers[i], sizeof bits);
    uint16_t half = (uint16_t)(bits >> 16);
    if (stored)
      memcpy(memory + 2 * i, &half, sizeof half);
    else
      memcpy(memory + 4 * i, &bits, sizeof bits);
  }
  return memory;
}

/* A chain of products of tiles of 32 pixels has 256 of them, and pieces are a tree. */
static void compare(const struct row *r, const float *got, const double *sums, const double *sizes,
                    int64_t count) {
  const double unit = ldexp(1, -24), longest = 256 + 16 + 40;
  for (int64_t i = 0; i < count; i++) {
    bool good = isnan(sums[i])   ? isnan(got[i])
                : isinf(sums[i]) ? (double)got[i] == sums[i]
                                 : fabs((double)got[i] - sums[i]) <= longest * unit * sizes[i];
    if (!good)
      fail_msg("batch %lld, %lld channels, %lld filters, %d axes of %lld %lld %lld, kernel %lld %lld %lld, "
               "element %lld: %a instead of %a",
               (long long)r->batch, (long long)r->channels, (long long)r->filters, r->axes,
               (long long)r->input[0], (long long)r->input[1], (long long)r->input[2],
               (long long)r->kernel[0], (long long)r->kernel[1], (long long)r->kernel[2], (long long)i,
               (double)got[i], sums[i]);
  }
}

/* All pieces at once, and one by one from the last to the first: as several threads do. */
static void run(const struct pieces *p, void *const *args, bool backwards) {
  for (int stage = 0; stage < p->nstages; stage++)
    if (!backwards)
      p->run(args, p->state, stage, 0, p->count[stage]);
    else
      for (int i = p->count[stage] - 1; i >= 0; i--) p->run(args, p->state, stage, i, i + 1);
}

static void check(const struct row *r, bool stored, bool wild) {
  struct arena *a = arena_create();
  struct diags diags;
  diags_init(&diags, a);
  struct node *n = node_of(graph_create(a, "conv", &diags), r, stored);
  if (!n) fail_msg("%s", diags_text(&diags, false));
  struct step step = {.node = n};
  struct command c = {0};
  bool done = cpu_conv_amx_sums(a, &step, &c);
  assert_int_equal(done, r->batch > 0);
  int64_t count = type_count(&n->type), xs = type_count(&n->inputs[0]->type),
          ys = type_count(&n->inputs[1]->type);
  if (done) {
    float *x = arena_new_array(a, (size_t)xs, float), *y = arena_new_array(a, (size_t)ys, float);
    double *sums = arena_new_array(a, (size_t)count, double),
           *sizes = arena_new_array(a, (size_t)count, double);
    void *args[] = {fill(xs, stored, wild, x), fill(ys, stored, wild, y),
                    malloc((size_t)count * sizeof(float)), NULL};
    float *again = malloc((size_t)count * sizeof *again);
    assert_true(args[2] && again);
    sums_in_double(r, x, y, sums, sizes);
    run(c.pieces, args, false);
    compare(r, args[2], sums, sizes, count);
    memcpy(again, args[2], (size_t)count * sizeof *again);
    memset(args[2], 0x55, (size_t)count * sizeof *again);
    run(c.pieces, args, true);
    for (int64_t i = 0; i < count; i++)
      if (!isnan(again[i])) assert_memory_equal(&again[i], (float *)args[2] + i, sizeof *again);
    free(again);
    for (int i = 0; i < 3; i++) free(args[i]);
  }
  arena_destroy(a);
}

static bool is_here(void) {
  const char *units = onednn_units();
  return units && strcmp(units, "AMX") == 0 && amx_can();
}

/* What is no term has no part in a sum, whatever it meets. */
static void chosen(void **state) {
  (void)state;
  if (!is_here()) skip();
  rng.state = 3;
  for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++)
    for (int how = 0; how < 4; how++) check(&rows[i], how & 1, how & 2);
}

static void drawn_sizes(void **state) {
  (void)state;
  if (!is_here()) skip();
  rng.state = 5;
  for (int i = 0; i < 150; i++) {
    struct row r = {0};
    if (draw(&r)) check(&r, i % 2, i % 3 == 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(chosen), cmocka_unit_test(drawn_sizes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
