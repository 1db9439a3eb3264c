/* SPDX-License-Identifier: Apache-2.0 */
/* What dgc_benchmark makes up: numbers that cover the range that the model uses, and the same in each run. The model
 * writes down what it is given, and an embedding shows which rows were touched. */
#include "include/dgc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 4096, UNITS = 2, INPUTS = 6 };

static const char program[] =
    "model m() {\n"
    "  input id : i32[B, 44]\n"
    "  input label : i64[B]\n"
    "  input byte : u8[B, 8]\n"
    "  input more : i32[B, 8]\n"
    "  input column : i64[B, 2]\n"
    "  input far : i64[B, 8]\n"
    "  input flag : bool[B]\n"
    "  var table : f32[4096, 2] = 0\n"
    "  var small : f32[20, 10] = 0\n"
    "  ranged = expect_range(far, -9_000_000_000_000_000_000, 9_000_000_000_000_000_000)\n"
    "  state lows : i64[6] = 0\n"
    "  state highs : i64[6] = 0\n"
    "  least = []\n"
    "  most = []\n"
    "  for x in [id, expand(label), byte, more, column, ranged] {\n"
    "    least = least + [min(cast(x, i64), axis = [0, 1])]\n"
    "    most = most + [max(cast(x, i64), axis = [0, 1])]\n"
    "  }\n"
    "  lows <- stack(least, axis = 0)\n"
    "  highs <- stack(most, axis = 0)\n"
    "  state flags : f32[] = 0\n"
    "  flags <- mean(flag)\n"
    "  loss = softmax_cross_entropy(gather(small, column[:, 1]), label)\n"
    "  train mean(loss + sum(gather(table, id), axis = [1, 2])) with sgd()\n"
    "}\n";

/* `slack`: how far the extremes may stay away from the ends. */
static const struct {
  const char *name;
  int64_t low, high, slack;
  const char *why;
} wanted[INPUTS] = {
    {"id", 0, ROWS - 1, 8, "the model's range"},
    {"label", 0, 9, 0, "the model's range"},
    {"byte", 0, 255, 2, "all bytes"},
    {"more", 0, 255, 2, "bytes, for the model says no range"},
    {"column", 0, 19, 0, "the model's range of a part"},
    {"far", -9000000000000000000, 9000000000000000000, 200000000000000000, "the model's range"},
};

/* A benchmark takes a third of a second: it measures the machine, too. */
struct measured {
  struct dgc_session *session;
  struct dgc_bench bench;
};

static struct dgc_session *bench(struct dgc_bench *out) {
  struct dgc_session *s = dgc_create();
  *out = (struct dgc_bench){.size = sizeof *out};
  assert_int_equal(dgc_set(s, "devices", "cpu:0"), DGC_OK);
  assert_int_equal(dgc_set(s, "steps", "1"), DGC_OK);
  if (dgc_load_text(s, "m", program, strlen(program))) fail_msg("%s", dgc_message(s));
  if (dgc_benchmark(s, out)) fail_msg("%s", dgc_message(s));
  return s;
}

static int measure(void **state) {
  static struct measured m;
  m.session = bench(&m.bench);
  *state = &m;
  return 0;
}

static int forget(void **state) {
  dgc_destroy(((struct measured *)*state)->session);
  return 0;
}

static void ranges_are_said(void **state) {
  const struct dgc_bench *b = &((const struct measured *)*state)->bench;
  int found = 0;
  for (int i = 0; i < b->ninputs; i++)
    for (int k = 0; k < INPUTS; k++) {
      const struct dgc_bench_input *input = &b->inputs[i];
      if (strcmp(input->name, wanted[k].name) != 0) continue;
      found++;
      assert_false(input->given);
      assert_true(input->low == wanted[k].low && input->high == wanted[k].high);
      assert_string_equal(input->why, wanted[k].why);
    }
  assert_int_equal(found, INPUTS);
  assert_int_equal(b->ninputs, INPUTS + 1);
}

static void ranges_are_covered(void **state) {
  struct dgc_session *s = ((const struct measured *)*state)->session;
  int64_t lows[INPUTS], highs[INPUTS];
  float table[ROWS][UNITS], flags;
  assert_int_equal(dgc_read(s, "lows", lows, sizeof lows), DGC_OK);
  assert_int_equal(dgc_read(s, "highs", highs, sizeof highs), DGC_OK);
  assert_int_equal(dgc_read(s, "flags", &flags, sizeof flags), DGC_OK);
  assert_int_equal(dgc_read(s, "table", table, sizeof table), DGC_OK);
  for (int i = 0; i < INPUTS; i++)
    if (lows[i] < wanted[i].low || lows[i] > wanted[i].low + wanted[i].slack || highs[i] > wanted[i].high ||
        highs[i] < wanted[i].high - wanted[i].slack)
      fail_msg("%s: %lld to %lld", wanted[i].name, (long long)lows[i], (long long)highs[i]);
  assert_true(flags > 0.3F && flags < 0.7F);
  /* 128 rows of 44 numbers: 4096 (1 - exp(-128 * 44 / 4096)) = 3060 are expected, 20 more or less */
  int touched = 0;
  for (int i = 0; i < ROWS; i++) touched += table[i][0] != 0;
  assert_in_range(touched, 2950, 3170);
}

static bool longer;

static void each_run_is_the_same(void **state) {
  if (!longer) skip();
  struct dgc_bench b;
  static float table[2][ROWS][UNITS];
  struct dgc_session *again = bench(&b), *const both[] = {((const struct measured *)*state)->session, again};
  for (int i = 0; i < 2; i++) assert_int_equal(dgc_read(both[i], "table", table[i], sizeof table[i]), DGC_OK);
  dgc_destroy(again);
  assert_memory_equal(table[0], table[1], sizeof table[0]);
}

static const char layers[] = "use nn\n"
                             "model m() {\n"
                             "  input x : f32[B, 40]\n"
                             "  input label : i32[B]\n"
                             "  h = nn.dense(x, units = 30, activation = relu)\n"
                             "  y = nn.dense(h, units = 10)\n"
                             "  loss = mean(softmax_cross_entropy(y, label))\n"
                             "  train loss with adam(rate = 0.01)\n"
                             "}\n";

/* A loop of 5 steps, and in it one of 3. */
static const char loops[] = "model m {\n"
                            "  input x : f32[B, 8]\n"
                            "  var w : f32[8, 8] = normal(stddev = 0.1)\n"
                            "  h = x\n"
                            "  scan(length = 5) h {\n"
                            "    scan(length = 3) h { h = tanh(h @ w) }\n"
                            "    h = h @ w\n"
                            "  }\n"
                            "  train mean(square(h)) with sgd(rate = 0.1)\n"
                            "}\n";

static struct dgc_session *profile(const char *text, const char *devices, const char *threads,
                                   struct dgc_bench *out) {
  const char *const options[][2] = {
      {"devices", devices}, {"threads", threads}, {"steps", "20"}, {"batch", "64"}, {"profile", "true"}};
  struct dgc_session *s = dgc_create();
  for (size_t i = 0; i < sizeof options / sizeof *options; i++)
    assert_int_equal(dgc_set(s, options[i][0], options[i][1]), DGC_OK);
  if (dgc_load_text(s, "m.dsl", text, strlen(text))) fail_msg("%s", dgc_message(s));
  if (dgc_benchmark(s, out)) fail_msg("%s", dgc_message(s));
  return s;
}

/* All that is computed is on some line, the slowest first; and no thread works longer than a step takes. */
static void lines_are_the_step(void **state) {
  (void)state;
  static const struct {
    const char *devices, *threads;
    int count;
    bool longer;
  } spreads[] = {{"cpu:0", "1", 1, true},
                 {"cpu:0-2", "1", 3, true},
                 {"cpu:0", "3", 1, true},
                 {"cpu:0-1", "2", 2, false}};
  for (size_t k = 0; k < sizeof spreads / sizeof *spreads; k++) {
    if (spreads[k].longer && !longer) continue;
    struct dgc_bench b = {.size = sizeof b};
    struct dgc_session *s = profile(layers, spreads[k].devices, spreads[k].threads, &b);
    double flops = 0, seconds = 0, threads = 0, roof = 0, gradient = 0;
    int places = 0;
    assert_true(b.nlines > 5);
    for (int i = 0; i < b.nlines; i++) {
      const struct dgc_bench_line *l = &b.lines[i];
      flops += l->flops;
      seconds += l->seconds;
      threads += b.line_threads[i];
      assert_true(b.line_threads[i] > 0 && b.line_threads[i] <= l->seconds * b.threads);
      roof += l->roof;
      places += l->where != NULL;
      assert_true(l->count > 0 && l->seconds > 0 && l->what && l->how);
      assert_true(i == 0 || l->seconds <= l[-1].seconds);
      if (l->flops > 0 || l->traffic > 0) assert_true(l->roof > 0);
      if (strcmp(l->what, "h.kernel.grad") != 0) continue;
      assert_string_equal(l->how, "matmul");
      static const char place[] = "m.dsl:5 (nn.dense, nn.dsl:"; /* the line there is the library's affair */
      assert_memory_equal(l->where, place, sizeof place - 1);
      assert_int_equal(l->count, spreads[k].count);
      gradient = l->flops;
    }
    assert_true(flops == b.flops);
    assert_true(gradient == 2.0 * 64 * 40 * 30);
    assert_true(places > 5);
    assert_true(b.bandwidth > 0 && seconds > 0);
    assert_true(fabs(roof / b.threads - b.roof) <= 1e-9 * b.roof);
    assert_true(b.bf16_peak == 0 || b.bf16_peak > b.peak / 2);
    assert_int_equal(b.ndevices, spreads[k].count);
    bool many = spreads[k].count > 1 || b.threads > 1;
    assert_true((b.alone_seconds > 0) == many);
    assert_true(b.outside >= 0 && b.outside <= 1);
    double here = 0, alone = 0, excess = 0;
    bool outside = false;
    for (int i = 0; i < b.nplaces; i++) {
      const struct dgc_bench_place *p = &b.places[i];
      here += p->seconds;
      alone += p->alone;
      outside |= p->where && strncmp(p->where, "outside kernels", 15) == 0;
      double more = p->seconds - p->alone / b.threads;
      assert_true(p->seconds >= 0 && p->alone >= 0 && (i == 0 || more <= excess));
      excess = more;
    }
    assert_true(outside == many);
    if (outside) assert_true(here * b.threads >= threads && here * b.threads >= seconds && alone > 0);
    dgc_destroy(s);
  }
}

/* What is in a loop stands behind it, as often as it runs, and takes no longer. */
static void lines_of_loops(void **state) {
  (void)state;
  struct dgc_bench b = {.size = sizeof b};
  struct dgc_session *s = profile(loops, "cpu:0", "1", &b);
  double flops = 0, roof = 0, inside[3] = {0};
  int deepest = 0, products = 0;
  for (int i = 0; i < b.nlines; i++) {
    const struct dgc_bench_line *l = &b.lines[i];
    assert_in_range(l->depth, 0, 2);
    assert_true(i > 0 || l->depth == 0);
    assert_true(l->depth == 0 || l->depth <= l[-1].depth + 1);
    assert_true(l->count > 0 && l->seconds > 0);
    if (l->depth == 0) flops += l->flops;
    if (i + 1 == b.nlines || l[1].depth <= l->depth) roof += l->roof; /* no loop, but what is in loops */
    if (l->depth > deepest) deepest = l->depth;
    products += l->depth == 2 && strcmp(l->how, "matmul") == 0 && l->count % 15 == 0;
    inside[l->depth] = 0;
    for (int k = i + 1; k < b.nlines && b.lines[k].depth > l->depth; k++)
      if (b.lines[k].depth == l->depth + 1) inside[l->depth] += b.lines[k].seconds;
    assert_true(inside[l->depth] <= l->seconds);
  }
  assert_true(flops == b.flops);
  assert_true(fabs(roof - b.roof) <= 1e-9 * b.roof);
  assert_int_equal(deepest, 2);
  assert_int_equal(products, 1);
  dgc_destroy(s);
}

/* test_bench [longer] */
int main(int argc, char **argv) {
  longer = argc > 1 && strcmp(argv[1], "longer") == 0;
  const struct CMUnitTest tests[] = {cmocka_unit_test(ranges_are_said), cmocka_unit_test(ranges_are_covered),
                                     cmocka_unit_test(each_run_is_the_same),
                                     cmocka_unit_test(lines_are_the_step), cmocka_unit_test(lines_of_loops)};
  return cmocka_run_group_tests(tests, measure, forget);
}
