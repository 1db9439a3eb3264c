/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by AMX against a naive loop in the order that conv_amx.h says, to the last bit. */
#include "base/arena.h"
#include "kernels/cpu/amx.h"
#include "kernels/cpu/conv_amx.h"
#include "tests/support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct rng rng;

static float flushed(float x) { return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x; }

static float widened(uint16_t x) {
  uint32_t bits = (uint32_t)x << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

/* What a sum has got so far, and of the 32 numbers that it is getting. */
struct sum {
  float all, chain[2];
  int64_t count;
};

static void end_tile(struct sum *s) {
  if (s->count) s->all = flushed(s->all + flushed(s->chain[0] + s->chain[1]));
  s->chain[0] = s->chain[1] = 0;
  s->count = 0;
}

static void add_product(struct sum *s, uint16_t x, uint16_t w) {
  float *to = &s->chain[s->count % 2];
  *to = flushed(fmaf(flushed(widened(x)), flushed(widened(w)), *to));
  if (++s->count == 32) end_tile(s);
}

/* How pixel x of the result meets place k of the kernel on an axis: *at of the image; false: never. */
static bool meets(const struct conv_numbers *s, int axis, int64_t x, int64_t k, int64_t *at) {
  int64_t by = s->stride[axis], behind = k * s->kernel_dilation[axis];
  *at = s->result == 2 ? x * by + behind - s->low[axis] : (x + s->low[axis] - behind) / by;
  return s->result == 2 || (x + s->low[axis] - behind) % by == 0;
}

/* Element `filter` of a pixel. */
static float element(const struct conv_numbers *s, const uint16_t *image, const uint16_t *kernel,
                     int64_t batch, const int64_t *pixel, int64_t filter) {
  bool output = s->result == 2;
  const int64_t *size = output ? s->input : s->output;
  int64_t terms = output ? s->channels : s->filters;
  struct sum sum = {0};
  for (int64_t i = 0; i < s->kernel[0]; i++)
    for (int64_t j = 0; j < s->kernel[1]; j++) {
      int64_t last = INT64_MIN;
      for (int64_t l = 0; l < s->kernel[2]; l++) {
        int64_t at[3], k[3] = {i, j, l};
        bool is = true, inside = true;
        for (int n = 0; n < 3; n++) {
          if (!output) k[n] = s->kernel[n] - 1 - k[n];
          is = meets(s, n, pixel[n], k[n], &at[n]) && is;
          inside = inside && at[n] >= 0 && at[n] < size[n];
        }
        if (!is) continue;
        if (at[2] != last + 1) end_tile(&sum);
        last = at[2];
        int64_t from = (((batch * size[0] + at[0]) * size[1] + at[1]) * size[2] + at[2]) * terms;
        int64_t place = (k[0] * s->kernel[1] + k[1]) * s->kernel[2] + k[2];
        for (int64_t t = 0; t < terms; t++) {
          int64_t channel = output ? t : filter, to = output ? filter : t;
          uint16_t w = kernel[(place * s->channels + channel) * s->filters + to];
          add_product(&sum, inside ? image[from + t] : 0, w);
        }
        if (terms % 2) add_product(&sum, 0, 0);
      }
      end_tile(&sum);
    }
  return sum.all;
}

/* Of all magnitudes, with zeros of both signs, subnormal numbers, Inf and NaN now and then where `wild` holds. */
static uint16_t bf16_number(bool wild) {
  static const uint16_t odd[] = {0, 0x8000, 1, 0x807f, 0x7f80, 0xff80, 0x7fc0, 0x7f7f, 0x0080};
  if (wild && rng_chance(&rng, 2)) return odd[rng_below(&rng, sizeof odd / sizeof *odd)];
  return (uint16_t)((rng_chance(&rng, 50) ? 0x8000 : 0) | (118 + rng_below(&rng, 20)) << 7 |
                    rng_below(&rng, 128));
}

/* Of 1 to 3 axes; false: it has no pixel. */
static bool draw(struct conv_numbers *s) {
  static const int64_t widths[] = {1, 2, 3, 5, 8, 15, 16, 17, 24, 31, 32, 33, 40, 48, 64, 70};
  int axes = 1 + rng_below(&rng, 3);
  bool plain = rng_chance(&rng, 30), good = true;
  *s = (struct conv_numbers){.result = rng_chance(&rng, 50) ? 2 : 0,
                             .batch = 1 + rng_below(&rng, 3),
                             .groups = 1,
                             .channels = widths[rng_below(&rng, 16)],
                             .filters = widths[rng_below(&rng, 16)]};
  for (int i = 0; i < 3; i++) {
    bool is = i >= 3 - axes;
    int most = axes == 1 ? 60 : axes == 2 ? 20 : 6;
    s->input[i] = is ? 1 + rng_below(&rng, most) : 1;
    s->kernel[i] = is && !plain ? 1 + rng_below(&rng, axes == 3 ? 3 : 5) : 1;
    s->stride[i] = is && rng_chance(&rng, 50) ? 1 + rng_below(&rng, axes == 3 ? 2 : 3) : 1;
    s->kernel_dilation[i] = is && rng_chance(&rng, 30) ? 1 + rng_below(&rng, 4) : 1;
    s->low[i] = is && !plain && rng_chance(&rng, 60) ? rng_below(&rng, 7) - 1 : 0;
    int64_t high = is && !plain && rng_chance(&rng, 60) ? rng_below(&rng, 7) - 1 : 0;
    int64_t room = s->input[i] + s->low[i] + high - (s->kernel[i] - 1) * s->kernel_dilation[i] - 1;
    s->input_dilation[i] = 1;
    s->output[i] = room / s->stride[i] + 1;
    good = good && room >= 0;
  }
  return good;
}

static int64_t pixels_of(const int64_t *size) { return size[0] * size[1] * size[2]; }

static void check(const struct conv_numbers *s, const struct amx_conv *conv, const uint16_t *image,
                  const uint16_t *kernel, const float *out) {
  const int64_t *size = conv->size;
  for (int64_t e = 0; e < s->batch * pixels_of(size) * conv->filters; e++) {
    int64_t at = e / conv->filters % pixels_of(size);
    int64_t pixel[3] = {at / size[2] / size[1], at / size[2] % size[1], at % size[2]};
    float wanted = element(s, image, kernel, e / conv->filters / pixels_of(size), pixel, e % conv->filters);
    if (isnan(wanted) ? !isnan(out[e]) : memcmp(&wanted, &out[e], sizeof wanted) != 0)
      fail_msg("result %d, %lld images of %lldx%lldx%lld by %lldx%lldx%lld, %lld channels, %lld filters, "
               "element %lld: %a instead of %a",
               (int)s->result, (long long)s->batch, (long long)s->input[0], (long long)s->input[1],
               (long long)s->input[2], (long long)s->kernel[0], (long long)s->kernel[1],
               (long long)s->kernel[2], (long long)s->channels, (long long)s->filters, (long long)e,
               (double)out[e], (double)wanted);
  }
}

/* Memory of its own that ends where its numbers do: what is read or written beside them sanitizers see. What it holds
 * before would show in sums. */
static void *memory(size_t bytes) {
  char *all = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
  assert_non_null(all);
  memset(all, 0xff, bytes);
  return all;
}

static void one(const struct conv_numbers *s, bool stored, bool wild) {
  bool output = s->result == 2;
  int64_t places = pixels_of(s->kernel) * s->channels * s->filters;
  int64_t image = s->batch * (output ? pixels_of(s->input) * s->channels : pixels_of(s->output) * s->filters);
  int64_t count = s->batch * (output ? pixels_of(s->output) * s->filters : pixels_of(s->input) * s->channels);
  struct amx_conv conv;
  assert_true(amx_conv_plan(s, stored, &conv));
  uint16_t *kernel = malloc((size_t)places * sizeof *kernel),
           *halves = malloc((size_t)image * sizeof *halves);
  float *floats = malloc((size_t)image * sizeof *floats), *out = malloc((size_t)(count + 1) * sizeof *out);
  uint16_t *packed = memory((size_t)conv.packed * sizeof *packed);
  void *room = memory(conv.room);
  assert_true(kernel && halves && floats && out);
  for (int64_t i = 0; i < places; i++) kernel[i] = bf16_number(wild);
  for (int64_t i = 0; i < image; i++) {
    halves[i] = bf16_number(wild);
    floats[i] = widened(halves[i]);
  }
  for (int64_t i = 0; i <= count; i++) out[i] = 77;
  int64_t panels = amx_conv_panels(&conv), units = conv.units, half = units / 2;
  amx_conv_pack(&conv, kernel, packed, panels / 2, panels);
  amx_conv_pack(&conv, kernel, packed, 0, panels / 2);
  const void *from = stored ? (const void *)halves : floats;
  amx_conv_run(&conv, from, packed, out, half, units, room);
  amx_conv_run(&conv, from, packed, out, 0, half, room);
  check(s, &conv, halves, kernel, out);
  assert_true(out[count] == 77);
  free(kernel), free(halves), free(floats), free(out), free(packed), free(room);
}

static void drawn(void **state) {
  enum { CASES = 400 };
  (void)state;
  if (!amx_can()) skip();
  rng.state = 5;
  for (int i = 0; i < CASES; i++) {
    struct conv_numbers s;
    if (draw(&s)) one(&s, i % 3 != 0, i % 4 == 0);
  }
}

/* What is cut into units, of lines and of tiles, and few places of it. */
static void large(void **state) {
  static const struct conv_numbers all[] = {
      {2, 1, 1, 64, 32, {1, 70, 61}, {1, 3, 3}, {1, 70, 61}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, {1, 1, 1}},
      {2, 3, 1, 34, 16, {1, 50, 47}, {1, 1, 1}, {1, 50, 47}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, {1, 1, 1}},
      {0, 1, 1, 20, 33, {1, 90, 99}, {1, 3, 3}, {1, 45, 50}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}, {1, 1, 1}}};
  (void)state;
  if (!amx_can()) skip();
  rng.state = 7;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) one(&all[i], true, false);
}

/* Sizes that are not its. */
static void refused(void **state) {
  (void)state;
  if (!amx_can()) skip();
  struct conv_numbers s = {2,         1,         1,         8,         8,         {1, 9, 9},
                           {1, 3, 3}, {1, 9, 9}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, {1, 1, 1}},
                      t;
  struct amx_conv conv;
  assert_true(amx_conv_plan(&s, true, &conv));
#define REFUSED(change) t = s, t.change, assert_false(amx_conv_plan(&t, true, &conv))
  REFUSED(result = 1);
  REFUSED(groups = 2);
  REFUSED(batch = 0);
  REFUSED(channels = 0);
  REFUSED(input_dilation[2] = 2);
  REFUSED(kernel_dilation[1] = INT64_C(1) << 40);
  REFUSED(output[2] = INT64_C(1) << 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(drawn), cmocka_unit_test(large),
                                     cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
