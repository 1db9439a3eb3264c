/* SPDX-License-Identifier: Apache-2.0 */
/* Law 1: N towers compute what one tower computes, for N in 1..8 and every batch of 1..33 rows, towers without
 * rows included. Law 5: the bits depend on N alone. On a perceptron with cross entropy, a metric and predictions,
 * and on one with a batch statistic in its forward pass. What rounding allows is derived per element by bound.h
 * from the model itself. TEST_SHARE=3 tries a third of the cases: still all rows, towers, layouts and threads.
 * test_towers splits: law 1, with one thread; test_towers towers: law 5. */
#include "ir/ops/op_id.h"
#include "passes/pass.h"
#include "tests/support/engine.h"
#include "tests/support/expect.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define UPDATE(v, shape, rate)                                \
  " " v ".grad = gradient loss, " v "\n"                      \
  " " v ".rate = broadcast " rate " {axes=[]} : $" shape "\n" \
  " " v ".step = mul " v ".grad, " v ".rate\n"                \
  " " v ".next = sub " v ", " v ".step\n"                     \
  " " v ".update = assign " v ", " v ".next\n"
#define OUTPUT_UPDATES(a, b, c, d) \
  " update " a ".update\n update " b ".update\n update " c ".update\n update " d ".update\n"

/* $ is the element type. */
static const char perceptron[] =
    " x = input : $[B,6]\n label = input : i32[B]\n"
    " w1 = variable {trainable=1} : $[6,9]\n b1 = variable {trainable=1} : $[9]\n"
    " w2 = variable {trainable=1} : $[9,4]\n b2 = variable {trainable=1} : $[4]\n"
    " h.product = matmul x, w1\n b1.rows = broadcast b1 {axes=[1]} : $[B,9]\n h.sum = add h.product, "
    "b1.rows\n h = tanh h.sum\n"
    " y.product = matmul h, w2\n b2.rows = broadcast b2 {axes=[1]} : $[B,4]\n y = add y.product, b2.rows\n"
    " top.moves = reduce_max y {axes=[1]}\n top = stop_gradient top.moves\n top.rows = broadcast top "
    "{axes=[0]} : $[B,4]\n low = sub y, top.rows\n "
    "e = exp low\n"
    " e.sum = reduce_sum e {axes=[1]}\n e.sum.rows = broadcast e.sum {axes=[0]} : $[B,4]\n probability = div "
    "e, e.sum.rows\n"
    " e.log = log e.sum\n class = iota {axis=1} : i32[B,4]\n label.rows = broadcast label {axes=[0]} : "
    "i32[B,4]\n"
    " hit = eq class, label.rows\n hit.one = cast hit : $[B,4]\n low.hit = mul low, hit.one\n low.label = "
    "reduce_sum low.hit {axes=[1]}\n"
    " entropy = sub e.log, low.label\n entropy.sum = reduce_sum entropy {axes=[0]}\n rows = batch_size : "
    "$[]\n"
    " loss = div entropy.sum, rows\n guess = argmax y {axis=1}\n right = eq guess, label\n right.one = cast "
    "right : f32[B]\n"
    " right.sum = reduce_sum right.one {axes=[0]}\n rate = constant {value=0.5} : $[]\n" UPDATE(
        "w1", "[6,9]", "rate") UPDATE("b1", "[9]", "rate") UPDATE("w2", "[9,4]", "rate")
        UPDATE("b2", "[4]", "rate") " loss loss\n metric accuracy = right.sum / B\n predict "
                                    "probability\n" OUTPUT_UPDATES("w1", "b1", "w2", "b2");

/* Mean and variance over the batch, with gradients through both; running averages; the largest value of the batch. */
static const char batch_statistic[] =
    " x = input : $[B,5]\n target = input : $[B]\n scale = variable {trainable=1} : $[5]\n shift = variable "
    "{trainable=1} : $[5]\n"
    " w = variable {trainable=1} : $[5]\n running = variable : $[5]\n"
    " rows = batch_size : $[]\n rows.5 = broadcast rows {axes=[]} : $[5]\n x.sum = reduce_sum x {axes=[0]}\n "
    "mean = div x.sum, rows.5\n"
    " mean.rows = broadcast mean {axes=[1]} : $[B,5]\n off = sub x, mean.rows\n off2 = square off\n off2.sum "
    "= reduce_sum off2 {axes=[0]}\n"
    " variance = div off2.sum, rows.5\n small = constant {value=0.125} : $[]\n small.5 = broadcast small "
    "{axes=[]} : $[5]\n"
    " variance.safe = add variance, small.5\n deviation = sqrt variance.safe\n deviation.rows = broadcast "
    "deviation {axes=[1]} : $[B,5]\n"
    " normal = div off, deviation.rows\n scale.rows = broadcast scale {axes=[1]} : $[B,5]\n shift.rows = "
    "broadcast shift {axes=[1]} : $[B,5]\n"
    " scaled = mul normal, scale.rows\n h.sum = add scaled, shift.rows\n h = sigmoid h.sum\n w.rows = "
    "broadcast w {axes=[1]} : $[B,5]\n"
    " terms = mul h, w.rows\n y = reduce_sum terms {axes=[1]}\n miss = sub y, target\n miss2 = square miss\n"
    " miss2.sum = reduce_sum miss2 {axes=[0]}\n loss = div miss2.sum, rows\n largest = reduce_max x "
    "{axes=[0, 1]}\n"
    " rate = constant {value=0.5} : $[]\n keep = constant {value=0.75} : $[]\n keep.5 = broadcast keep "
    "{axes=[]} : $[5]\n"
    " running.off = sub running, mean\n running.keep = mul running.off, keep.5\n running.next = add mean, "
    "running.keep\n"
    " running.update = assign running, running.next\n" UPDATE("scale", "[5]", "rate")
        UPDATE("shift", "[5]", "rate")
            UPDATE("w", "[5]", "rate") " loss loss\n value largest\n predict y\n" OUTPUT_UPDATES(
                "scale", "shift", "w", "running");

/* A table of which the rows of a bag and one more row are read: two sparse gradients, which stay rows; and one
 * whose momentum takes rows too, and whose second moment needs all of the gradient. Some numbers name no row. */
static const char lookups[] =
    " bag = input : i32[B,3]\n one = input : i32[B]\n target = input : $[B]\n"
    " table = variable {trainable=1} : $[6,3]\n other = variable {trainable=1} : $[6,3]\n"
    " m = variable {slot=\"table\"} : $[6,3]\n v = variable {slot=\"table\"} : $[6,3]\n"
    " bag.rows = gather table, bag\n bag.sum = reduce_sum bag.rows {axes=[1]}\n one.row = gather table, one\n"
    " other.row = gather other, one\n pair = mul bag.sum, one.row\n terms = mul pair, other.row\n"
    " y = reduce_sum terms {axes=[1]}\n miss = sub y, target\n miss2 = square miss\n"
    " miss2.sum = reduce_sum miss2 {axes=[0]}\n rows = batch_size : $[]\n loss = div miss2.sum, rows\n"
    " rate = constant {value=0.125} : $[]\n keep = constant {value=0.75} : $[]\n"
    " keep.all = broadcast keep {axes=[]} : $[6,3]\n rate.all = broadcast rate {axes=[]} : $[6,3]\n"
    " other.grad = gradient loss, other\n m.old = mul m, keep.all\n m.in = mul other.grad, rate.all\n"
    " m.next = add m.old, m.in\n m.update = assign m, m.next\n grad2 = square other.grad\n v.old = mul v, "
    "keep.all\n v.next = add v.old, grad2\n v.update = assign v, v.next\n other.step = mul m.next, rate.all\n"
    " other.next = sub other, other.step\n other.update = assign other, other.next\n" UPDATE(
        "table", "[6,3]", "rate") " loss loss\n predict y\n" OUTPUT_UPDATES("table", "other", "m", "v");

/* ---- runners ---- */

static struct engine runners[4]; /* cpu with 1, 2, 3 threads; interp */
static int nrunners;

static int open_runners(void **state) {
  (void)state;
  for (int threads = 1; threads <= 3; threads++, nrunners++)
    if (!engine_open(&runners[nrunners], NULL, threads)) return 1;
  return !engine_open(&runners[nrunners++], "interp", 1);
}

static int close_runners(void **state) {
  (void)state;
  for (int i = 0; i < nrunners; i++) engine_close(&runners[i]);
  return 0;
}

/* ---- a model with a batch of values ---- */

struct subject {
  struct arena *arena;
  struct diags diags;
  struct graph *g;
  int64_t rows;
  struct values inputs, before;
};

static struct graph *parse(struct arena *a, const char *nodes, enum dtype d, struct diags *diags) {
  struct str s = str_make(a);
  str_put(&s, "graph model {\n");
  for (const char *p = nodes; *p; p++)
    if (*p == '$')
      str_put(&s, dtype_name(d));
    else
      str_putc(&s, *p);
  str_put(&s, "}\n");
  struct graph *g = graph_parse(a, source_make(a, "model", s.data, s.len), diags);
  if (!g || !graph_verify(g, "parse", diags)) fail_msg("%s\n%s", s.data, diags_text(diags, false));
  return g;
}

static void begin(struct subject *s, const char *nodes, enum dtype d, int64_t rows) {
  *s = (struct subject){.arena = arena_create(), .rows = rows};
  diags_init(&s->diags, s->arena);
  s->g = parse(s->arena, nodes, d, &s->diags);
  s->inputs = values_make(s->arena);
  s->before = values_make(s->arena);
  struct rng r = {(uint64_t)rows};
  for (uint32_t i = 0; i < s->g->count; i++) {
    const struct node *n = s->g->nodes[i];
    if (n->op != OP_input && n->op != OP_variable) continue;
    struct type t = type_specialize(&n->type, rows);
    struct tensor x = {t, arena_alloc(s->arena, (size_t)type_bytes(&t))};
    sample_fill(&r, DOMAIN_ANY, 0, &x);
    if (t.dtype == DT_I32)
      for (int64_t k = 0; k < rows; k++) ((int32_t *)x.data)[k] = rng_below(&r, 4);
    values_put(n->op == OP_input ? &s->inputs : &s->before, n->name, &t, x.data);
  }
}

static void run_on(struct subject *s, struct engine *e, const struct layout *l, int steps,
                   struct values *outputs, struct values *after) {
  struct arena *a = s->arena;
  layout_set(s->g, l, s->rows, &s->diags);
  struct plan *p = engine_plan(a, s->g, &s->diags);
  *outputs = values_make(a);
  *after = values_copy(a, &s->before);
  if (!p || !engine_run(e, p, &s->inputs, after, outputs, steps, &s->diags))
    fail_msg("%s\n%s", layout_text(a, l), diags_text(&s->diags, false));
}

/* ---- law 1 ---- */

/* The graph after a pass, node by node: what the passes say, whatever the backend does. */
static void eval_after(struct subject *s, const char *pass, struct values *outputs, struct values *after) {
  struct arena *a = s->arena;
  struct graph *g =
      pipeline_run(a, s->g, NULL, pass, &(struct pipeline_options){.verify_each = true}, &s->diags);
  if (!g) fail_msg("%s", diags_text(&s->diags, false));
  struct tensor *values = arena_new_array(a, g->count, struct tensor);
  *outputs = values_make(a);
  *after = values_copy(a, &s->before);
  assert_true(graph_eval(a, g, &s->inputs, after, values));
  for (int i = 0; i < g->noutputs; i++) {
    const struct tensor *t = &values[g->outputs[i].node->id];
    values_put(outputs, g->outputs[i].name, &t->type, t->data);
  }
}

/* What stands after place means the same after collectives, whose tree gives the bits of all_reduce as node_eval has
 * it, after copies and after fuse. */
static void check_placed(struct subject *s, const struct expectation *want, const struct layout *l) {
  static const char *const passes[] = {"place", "copies", "fuse"};
  struct values outputs[3], after[3];
  layout_set(s->g, l, s->rows, &s->diags);
  for (int i = 0; i < 3; i++) {
    eval_after(s, passes[i], &outputs[i], &after[i]);
    const char *wrong = expect_breach(s->arena, want, &s->before, &outputs[i], &after[i]);
    if (!wrong) wrong = values_difference(s->arena, &outputs[0], &outputs[i]);
    if (!wrong) wrong = values_difference(s->arena, &after[0], &after[i]);
    if (wrong) fail_msg("%s, after %s: %s", layout_text(s->arena, l), passes[i], wrong);
  }
}

static void every_split(const char *nodes, enum dtype d, bool placed) {
  uint64_t share = number_from("TEST_SHARE", 1);
  for (int64_t rows = 1; rows <= 33; rows++)
    for (int towers = 1; towers <= 8; towers++) {
      if ((uint64_t)(rows + 2 * towers) % share) continue;
      struct subject s;
      begin(&s, nodes, d, rows);
      struct expectation want;
      if (!expect_step(s.arena, s.g, rows, &s.inputs, &s.before, &s.diags, &want))
        fail_msg("%s", diags_text(&s.diags, false));
      assert_int_equal(want.unknown, 0);
      struct layout all[MAX_LAYOUTS];
      int n = layouts_of(towers, all);
      const struct layout *l = &all[(rows + towers) % n];
      struct values outputs, after;
      run_on(&s, &runners[0], l, 1, &outputs, &after);
      const char *wrong = expect_breach(s.arena, &want, &s.before, &outputs, &after);
      if (wrong) fail_msg("%lld rows, %s: %s", (long long)rows, layout_text(s.arena, l), wrong);
      if (placed && rows % 4 == 1) check_placed(&s, &want, l);
      arena_destroy(s.arena);
    }
}

static void perceptron_f32(void **state) {
  (void)state;
  every_split(perceptron, DT_F32, false);
}

static void perceptron_f64(void **state) {
  (void)state;
  every_split(perceptron, DT_F64, true);
}

static void batch_statistic_f64(void **state) {
  (void)state;
  every_split(batch_statistic, DT_F64, true);
}

static void batch_statistic_f32(void **state) {
  (void)state;
  every_split(batch_statistic, DT_F32, false);
}

static void lookups_f64(void **state) {
  (void)state;
  every_split(lookups, DT_F64, true);
}

static void lookups_f32(void **state) {
  (void)state;
  every_split(lookups, DT_F32, false);
}

/* ---- law 5 ---- */

static void same_bits(const char *nodes, enum dtype d, bool interp) {
  uint64_t share = number_from("TEST_SHARE", 1);
  static const int64_t rows[] = {1, 6, 16, 33};
  for (int i = 0; i < 4; i++)
    for (int towers = 1; towers <= 8; towers++) {
      struct subject s;
      begin(&s, nodes, d, rows[i]);
      struct layout all[MAX_LAYOUTS];
      int n = layouts_of(towers, all);
      struct values outputs[2], after[2];
      run_on(&s, &runners[0], &all[0], 3, &outputs[0], &after[0]);
      for (int k = 1; k < n; k++) {
        if ((uint64_t)(k + towers / 3) % share) continue;
        struct engine *e = &runners[k == 2 && interp ? 3 : (k + towers) % 3];
        run_on(&s, e, &all[k], 3, &outputs[1], &after[1]);
        const char *wrong = values_difference(s.arena, &outputs[0], &outputs[1]);
        if (!wrong) wrong = values_difference(s.arena, &after[0], &after[1]);
        if (wrong)
          fail_msg("%lld rows, %s, %d threads, %s: %s", (long long)rows[i], layout_text(s.arena, &all[k]),
                   workers_count(e->workers), e->backend->name, wrong);
      }
      arena_destroy(s.arena);
    }
}

static void bits_of_perceptron(void **state) {
  (void)state;
  same_bits(perceptron, DT_F32, false); /* f32 products of the interpreter are others than the library's */
  same_bits(perceptron, DT_F64, true);
}

static void bits_of_batch_statistic(void **state) {
  (void)state;
  same_bits(batch_statistic, DT_F32, true);
}

static void bits_of_lookups(void **state) {
  (void)state;
  same_bits(lookups, DT_F32, true);
}

static int laws_of_splits(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(perceptron_f32),      cmocka_unit_test(perceptron_f64),
      cmocka_unit_test(batch_statistic_f32), cmocka_unit_test(batch_statistic_f64),
      cmocka_unit_test(lookups_f32),         cmocka_unit_test(lookups_f64),
  };
  return cmocka_run_group_tests(tests, open_runners, close_runners);
}

static int laws_of_bits(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bits_of_lookups),
      cmocka_unit_test(bits_of_perceptron),
      cmocka_unit_test(bits_of_batch_statistic),
  };
  return cmocka_run_group_tests(tests, open_runners, close_runners);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  return strcmp(argv[1], "splits") == 0 ? laws_of_splits() : laws_of_bits();
}
