/* SPDX-License-Identifier: Apache-2.0 */
/* Models in the language with known numbers: what towers write to variables, reductions of losses, several optimizers,
 * metric state. Each runs on every layout of its towers, by every backend: first values, training steps, evaluation
 * twice, prediction. Numbers are compared to 8 units in the last place of f64.
 *
 * Names begin with the vector that replication is specified by: r07 of the list of towers, s4 of the strategies. Not
 * among them, for a model of dgc cannot say it: R5's area under a curve, which is no sum over batches; R10's optimizer
 * that one tower leaves out, for towers have one text; that R18's replicas hold 0 afterwards, for reading changes
 * nothing. */
#include "frontend/frontend.h"
#include "ir/certify/certify.h"
#include "ir/ops/op_id.h"
#include "passes/pass.h"
#include "tests/support/bound.h"
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LINE                                                                                            \
  "input f : f64[B,1]\ninput l : f64[B,1]\nvar c : f64[] = 10\npred = f * c\nmiss = absolute_error(l, " \
  "pred)\n"
#define WORDS                                  \
  "input f : f64[B,1]\nvar c : f64[] = 0.25\n" \
  "off = abs(concat([0 * f, 0 * f, 0 * f, f - 0.6], axis = 1) + c)\n"
/* Something to train, for what is only about state. */
#define IDLE         "input x : f64[B]\nvar idle : f64[] = 0\ntrain idle_loss = sum(x) * idle with sgd(rate = 0)\n"
#define ON_READ(how) " aggregation(" how ") synchronization(on_read)\n"

static const struct vector {
  const char *name;
  int towers;
  int64_t rows;
  int steps;
  const char *text;             /* of the model */
  const char *inputs;           /* "f 1 2 ; l 3 4" */
  const char *train;            /* what its outputs and variables are in the end, "loss 27 ; c 7" */
  const char *eval, *predict;   /* NULL: there is no such entry */
  const char *strategy, *scale; /* this one only; or NULL */
} vectors[] = {
    {"r01_sum", 2, 2, 1, LINE "train loss = sum(miss) with sgd(rate = 1)", "f 1 2 ; l 1 2", "loss 27 ; c 7",
     "loss 18", NULL, NULL, NULL},
    {"r02_mean_scaled_per_tower", 2, 2, 1,
     LINE "var unused : f64[] = 3\ntrain loss = mean(miss) with sgd(rate = 1)", "f 1 2 ; l 1 2",
     "loss 13.5 ; c 8.5 ; unused 3", "loss 11.25", NULL, "replicate", "per_tower"},
    {"r02_mean", 2, 2, 1, LINE "var unused : f64[] = 3\ntrain loss = mean(miss) with sgd(rate = 1)",
     "f 1 2 ; l 1 2", "loss 13.5 ; c 8.5 ; unused 3", "loss 11.25", NULL, NULL, NULL},
    {"r03_second_step", 2, 2, 1,
     "input f : f64[B,1]\ninput l : f64[B,1]\nvar c : f64[] = 7\n"
     "train loss = sum(absolute_error(l, f * c)) with sgd(rate = 1)",
     "f 1.5 2.5 ; l 1.5 2.5", "loss 24 ; c 3", "loss 8", NULL, NULL, NULL},
    {"r04_one_tower_scales_nothing", 1, 2, 1, LINE "train loss = sum(miss) with sgd(rate = 1)",
     "f 1 2 ; l 1 2", "loss 27 ; c 7", NULL, NULL, "replicate", "per_tower"},
    {"r05_evaluation", 2, 2, 1,
     LINE
     "train loss = sum(miss) with sgd(rate = 0)\nmetric mean = mean(miss)\nmetric accuracy = mean(pred == l)",
     "f 0.01 0.002 ; l 0.01 0.02", "loss 0.09", "loss 0.09 ; mean 0.045 ; accuracy 0.5", NULL, NULL, NULL},
    {"r06_prediction", 2, 2, 1, LINE "train loss = sum(miss) with sgd(rate = 0)\npredict p = pred",
     "f 0.01 0.002 ; l 0 0", "c 10", "loss 0.12", "p 0.1 0.02", NULL, NULL},
    {"r07_sgd_then_adam", 2, 2, 1,
     LINE
     "state bumped : f64[] = 0 aggregation(sum)\nbumped += 1\ntrain loss = sum(miss) with sgd(rate = 1)\n"
     "train again = sum(miss) with adam(rate = 1, epsilon = 1e-8)",
     "f 1 2 ; l 1 2", "loss 27 ; c 6.000000105409244 ; bumped 2", NULL, NULL, NULL, NULL},
    {"r08_two_optimizers", 2, 2, 1,
     LINE "var d : f64[] = 2\nother = absolute_error(l, f * d)\ntotal = sum(miss) + sum(other)\n"
          "train total with sgd(rate = 1) over c\ntrain second = total with sgd(rate = 1) over d",
     "f 1 2 ; l 1 2", "total 30 ; second 30 ; c 7 ; d -1", NULL, NULL, NULL, NULL},
    {"r08_two_losses", 2, 2, 1,
     LINE "var d : f64[] = 2\nother = absolute_error(l, f * d)\ntrain one = sum(miss) with sgd(rate = 1)\n"
          "train two = sum(other) with sgd(rate = 1)",
     "f 1 2 ; l 1 2", "one 27 ; two 3 ; c 7 ; d -1", NULL, NULL, NULL, NULL},
    {"r11_losses_of_towers", 2, 2, 1,
     WORDS "train loss = sum(off) with sgd(rate = 0)\npredict sums = sum(off, axis = 1)", "f 0.6 1.6",
     "loss 3", "loss 3", "sums 1 2", NULL, NULL},
    {"r11_means_of_towers", 2, 2, 1,
     WORDS "train loss = mean(sum(off, axis = 1)) with sgd(rate = 0)\n"
           "predict means = sum(off, axis = 1) / cast(tower_count(), f64)",
     "f 0.6 1.6", "loss 1.5", NULL, "means 0.5 1", "replicate", "per_tower"},
    {"r16_towers_lose_2_4_6", 3, 3, 1,
     "input lost : f64[B]\ninput hit : f64[B,4]\nvar c : f64[] = 1\ntrain loss = sum(lost * c) with sgd(rate "
     "= 0)\n"
     "metric accuracy = mean(hit)",
     "lost 2 4 6 ; hit 1 1 0 1 1 1 1 1 0 1 1 1", "loss 12", "loss 12 ; accuracy 0.83333333333333333", NULL,
     NULL, NULL},
    {"r16_one_tower_loses_5", 1, 1, 1,
     "input lost : f64[B]\ninput hit : f64[B,4]\nvar c : f64[] = 1\ntrain loss = sum(lost * c) with sgd(rate "
     "= 0)\n"
     "metric accuracy = mean(hit)",
     "lost 5 ; hit 1 0 1 1", "loss 5", "loss 5 ; accuracy 0.75", NULL, NULL, NULL},
    {"r17_predictions_in_tower_order", 2, 4, 1, IDLE "predict p = x + 0.25", "x 0.1 0.1 0.2 0.2", "idle 0",
     "idle_loss 0", "p 0.35 0.35 0.45 0.45", NULL, NULL},
    {"r18_metric_state", 3, 3, 1,
     IDLE
     "state a : f64[] = 0" ON_READ("sum") "state b : f64[] = 0" ON_READ("sum") "state c : f64[3] = 0" ON_READ(
         "sum") "n = cast(tower_id() + 1, f64)\na += 1.3 * n\nb += 2.3 * n\nc += stack([3.3 * n, 3.5 * n, "
                "3.7 * n], axis = 0)\n"
                "metric a_now = a\nmetric b_now = b\nmetric c0 = c[0]\nmetric c1 = c[1]\nmetric c2 = c[2]",
     "x 0 0 0", "a 7.8 ; b 13.8 ; c 19.8 21 22.2 ; tower_0/a 1.3 ; tower_1/a 2.6 ; tower_2/b 6.9",
     "a_now 7.8 ; b_now 13.8 ; c0 19.8 ; c1 21 ; c2 22.2 ; idle_loss 0", NULL, NULL, NULL},

    /* tower 0: rows 1, 2 with weights 2, 0; tower 1: row 4 with weight 3 */
    {"s2_weights", 2, 3, 1,
     "input x : f64[B]\ninput w : f64[B]\nvar c : f64[] = 1\nloss = x * c\n"
     "train by_count = sum_by_nonzero_weights(loss, w) with sgd(rate = 1)\n"
     "metric by_size = sum_over_batch_size(loss, w)\nmetric by_weight = weighted_mean(loss, w)\n"
     "metric plain = sum_over_batch_size(loss)",
     "x 1 2 4 ; w 2 0 3", "by_count 7 ; c -6", "by_count -42 ; by_size -28 ; by_weight -16.8 ; plain -14",
     NULL, NULL, NULL},
    {"s2_no_weight_at_all", 2, 3, 1,
     "input x : f64[B]\ninput w : f64[B]\nvar c : f64[] = 1\n"
     "train loss = sum_by_nonzero_weights(x * c, w) with sgd(rate = 1)",
     "x 1 2 4 ; w 0 0 0", "loss 0 ; c 1", "loss 0", NULL, NULL, NULL},
    /* the towers have 3 / 2 and 4 / 1, and their mean is 2.75; the batch has 7 / 3 */
    {"s2_weights_scaled_per_tower", 2, 4, 1,
     "input x : f64[B]\ninput w : f64[B]\nvar c : f64[] = 1\n"
     "train loss = sum_by_nonzero_weights(x * c, w) + square(c) with sgd(rate = 1)",
     "x 1 2 4 8 ; w 1 1 1 0", "loss 3.75 ; c -3.75", "loss 5.3125", NULL, "replicate", "per_tower"},
    {"s2_sum_scaled_per_tower", 2, 4, 1,
     "input x : f64[B]\nvar c : f64[] = 1\ntrain loss = sum(x * c) with sgd(rate = 1)", "x 1 2 4 8",
     "loss 15 ; c -14", "loss -210", NULL, "replicate", "per_tower"},
    {"s2_mean_of_means_over_three_towers", 3, 4, 1,
     "input x : f64[B]\nvar c : f64[] = 1\ntrain loss = mean(x * c) with sgd(rate = 1)", "x 1 2 4 8",
     "loss 4.5 ; c -3.5", NULL, NULL, "replicate", "per_tower"},

    {"s4_values_of_each_tower", 2, 2, 1,
     IDLE "n = cast(tower_id() + 1, f64)\na = 2 * n\nb = n * n\nzero = 0 * x\npredict p = n + zero\n"
          "predict pa = a + zero\npredict pb = b + zero\npredict pc = a + 2 * b + 2 + zero",
     "x 0 0", "idle 0", "idle_loss 0", "p 1 2 ; pa 2 4 ; pb 1 4 ; pc 6 14", NULL, NULL},
    {"s4_increments_by_aggregation", 2, 2, 1,
     IDLE "state s : f64[] = 1 aggregation(sum)\nstate m : f64[] = 1 aggregation(mean)\n"
          "state o : f64[] = 1 aggregation(only_first_replica)\nstate t : f64[] = 2 aggregation(sum)\n"
          "state k : f64[] = 2 aggregation(mean)\nstate p : f64[] = 2 aggregation(only_first_replica)\n"
          "n = cast(tower_id(), f64)\ns += 10 + n\nm += 10 + n\no += 10 + n\nt += 20 + n\nk += 20 + n\np += "
          "20 + n",
     "x 0 0", "s 22 ; m 11.5 ; o 11 ; t 43 ; k 22.5 ; p 22", NULL, NULL, NULL, NULL},
    {"s4_assignments_by_aggregation", 2, 2, 2,
     IDLE "state s : f64[] = 1 aggregation(sum)\nstate m : f64[] = 1 aggregation(mean)\n"
          "state o : f64[] = 1 aggregation(only_first_replica)\nn = cast(tower_id(), f64)\n"
          "s <- 10 + n\nm <- 10 + n\no <- 10 + n",
     "x 0 0", "s 21 ; m 10.5 ; o 10", NULL, NULL, NULL, NULL},
    {"s4_plain_values", 2, 2, 2,
     IDLE "state m : f64[] = 1 aggregation(mean)\nstate o : f64[] = 1 aggregation(only_first_replica)\n"
          "state s : i64[] = 0 aggregation(sum)\nm <- 5\no <- 6\ns += 3",
     "x 0 0", "m 5 ; o 6 ; s 12", NULL, NULL, NULL, NULL},
    /* tower 0 has 2 rows, tower 1 has 1 */
    {"s4_statistics_of_towers", 2, 3, 1,
     IDLE "state s : f64[] = 0 aggregation(sum)\nstate m : f64[] = 0 aggregation(mean)\n"
          "state o : f64[] = 0 aggregation(only_first_replica)\nstate all : f64[] = 0\n"
          "s += sum(x)\nm <- mean(x)\no <- max(x)\nall <- mean(x)",
     "x 1 3 8", "s 12 ; m 5 ; o 3 ; all 4", NULL, NULL, NULL, NULL},
    /* 1 and 4, of which 2 would be the mean of integers */
    {"s4_mean_of_integers", 2, 2, 1,
     IDLE "state m : f32[] = 0\nm <- all_reduce(local(cast(sum(x), i64)), \"mean\")", "x 1 4", "m 2.5", NULL,
     NULL, NULL, NULL},
    /* Nobody asks the second tower for its rows of y. */
    {"s4_rows_of_the_first_tower_alone", 2, 3, 2,
     IDLE "input y : f64[B]\nstate o : f64[] = 0 aggregation(only_first_replica)\no += sum(y * y) + sum(x)",
     "x 1 3 8 ; y 2 3 4", "o 34", "idle_loss 0", NULL, NULL, NULL},
    {"s4_on_read_sum_and_mean", 2, 2, 1,
     IDLE
     "state s : f64[] = 0" ON_READ("sum") "state m : f64[] = 0" ON_READ("mean") "state o : f64[] = 0" ON_READ(
         "only_first_replica") "n = cast(tower_id() + 3, f64)\ns <- n\nm <- n\no <- n\nmetric read = s + m + "
                               "o",
     "x 0 0", "s 7 ; m 3.5 ; o 3 ; tower_0/s 3 ; tower_1/s 4 ; tower_1/m 4 ; tower_1/o 4",
     "read 13.5 ; idle_loss 0", NULL, NULL, NULL},
    /* a sum of 7 begins as 3.5 each; copies see their own, everybody else all of them */
    {"s4_on_read_begins_in_shares", 2, 2, 2,
     IDLE
     "state s : f64[2] = 7" ON_READ("sum") "state i : i64[] = 7" ON_READ("sum") "state m : f64[] = 7" ON_READ(
         "mean") "state seen : f64[] = 0\ns <- 2 * s\ni += tower_id()\nm += sum(x)\nseen <- m + s[0]",
     "x 1 5", "s 28 28 ; i 9 ; m 13 ; seen 24 ; tower_0/s 14 14 ; tower_1/i 2 ; tower_0/m 9 ; tower_1/m 17",
     NULL, NULL, NULL, NULL},
};

/* ---- running ---- */

static const struct model *compile(struct arena *a, const char *name, const char *text, struct diags *d) {
  const char *whole = arena_printf(a, "model m {\n%s\n}\n", text);
  return frontend_compile(a, source_make(a, name, whole, strlen(whole)), NULL, d);
}

static void set_inputs(struct arena *a, const struct model *m, int64_t rows, const char *text,
                       struct values *inputs) {
  char name[64];
  double numbers[64];
  int count;
  while (next_entry(&text, name, numbers, &count))
    for (int k = 0; k < m->ninputs; k++) {
      if (strcmp(m->inputs[k].name, name) != 0) continue;
      struct type t = type_specialize(&m->inputs[k].type, rows);
      struct tensor x = {t, arena_alloc(a, (size_t)type_bytes(&t))};
      assert_int_equal(type_count(&t), count);
      for (int i = 0; i < count; i++) tensor_set(&x, i, numbers[i]);
      values_put(inputs, name, &t, x.data);
    }
}

/* What the metrics are for these rows: sums over counts, and formulas. */
static void finish_metrics(struct arena *a, const struct plan *p, const struct graph *formulas,
                           struct values *outputs) {
  struct values totals = values_make(a), none = values_make(a);
  for (int i = 0; i < p->noutputs; i++) {
    const struct plan_value *v = &p->outputs[i];
    struct tensor *t = (struct tensor *)(uintptr_t)values_get(outputs, v->name);
    if (v->role == OUTPUT_METRIC && v->count) tensor_set(t, 0, tensor_at(t, 0) / (double)v->count);
    const struct tensor *total = values_get(outputs, arena_printf(a, "%s/total", v->name));
    if (!formulas || !total) continue;
    struct type wide = total->type;
    wide.dtype = dtype_is_float((enum dtype)wide.dtype) ? DT_F64 : DT_I64;
    struct tensor number = {wide, arena_alloc(a, (size_t)type_bytes(&wide))};
    for (int64_t k = 0; k < type_count(&wide); k++) tensor_set(&number, k, tensor_at(total, k));
    values_put(&totals, v->name, &wide, number.data);
  }
  if (!formulas) return;
  struct tensor *values = arena_new_array(a, formulas->count, struct tensor);
  if (!graph_eval(a, formulas, &totals, &none, values)) fail_msg("%s", formulas->name);
  for (int i = 0; i < formulas->noutputs; i++) {
    const struct tensor *t = &values[formulas->outputs[i].node->id];
    values_put(outputs, formulas->outputs[i].name, &t->type, t->data);
  }
}

struct run {
  struct arena *a;
  const struct vector *v;
  const struct layout *l;
  struct engine *e;
  struct diags d;
};

static void run_entry(struct run *r, const struct graph *entry, const struct graph *formulas,
                      const struct values *inputs, struct values *variables, int steps, const char *want) {
  struct graph *g = arena_copy(r->a, entry, sizeof *g);
  struct values outputs = values_make(r->a);
  layout_set(g, r->l, r->v->rows, &r->d);
  g->config.loss_scaling = r->v->scale;
  struct plan *p = engine_plan(r->a, g, &r->d);
  if (!p || !engine_run(r->e, p, inputs, variables, &outputs, steps, &r->d))
    fail_msg("%s, %s: %s", entry->name, layout_text(r->a, r->l), diags_text(&r->d, false));
  finish_metrics(r->a, p, formulas, &outputs);
  const char *wrong = want ? wrong_entries(r->a, want, &outputs, variables) : NULL;
  if (wrong)
    fail_msg("%s, %s, %s: %s\n%s", entry->name, layout_text(r->a, r->l), r->e->backend->name, wrong,
             graph_text(r->a, p->graph));
}

/* First values. */
static void begin(struct run *r, const struct model *m, struct values *variables) {
  struct values none = values_make(r->a);
  for (uint32_t i = 0; i < m->init->count; i++) {
    const struct node *n = m->init->nodes[i];
    if (n->op == OP_variable)
      values_put(variables, n->name, &n->type, arena_alloc(r->a, (size_t)type_bytes(&n->type)));
  }
  run_entry(r, m->init, NULL, &none, variables, 1, NULL);
}

static void check_layout(const struct vector *v, const struct layout *l) {
  if (v->strategy && strcmp(v->strategy, l->strategy) != 0) return;
  for (int e = 0; e < nengines; e++) {
    struct run r = {arena_create(), v, l, &engines[e], {0}};
    diags_init(&r.d, r.a);
    const struct model *m = compile(r.a, v->name, v->text, &r.d);
    if (!m) fail_msg("%s", diags_text(&r.d, false));
    struct values inputs = values_make(r.a), variables = values_make(r.a);
    set_inputs(r.a, m, v->rows, v->inputs, &inputs);
    begin(&r, m, &variables);
    run_entry(&r, m->train, NULL, &inputs, &variables, v->steps, v->train);
    if (v->eval) run_entry(&r, m->eval, m->metrics, &inputs, &variables, 1, v->eval);
    if (v->eval) run_entry(&r, m->eval, m->metrics, &inputs, &variables, 20, v->eval);
    if (v->predict) run_entry(&r, m->predict, NULL, &inputs, &variables, 1, v->predict);
    arena_destroy(r.a);
  }
}

static void check_vector(void **state) {
  const struct vector *v = *state;
  struct layout all[MAX_LAYOUTS];
  int n = layouts_of(v->towers, all), ran = 0;
  for (int i = 0; i < n; i++) {
    ran += !v->strategy || strcmp(v->strategy, all[i].strategy) == 0;
    check_layout(v, &all[i]);
  }
  assert_true(ran > 0);
}

/* ---- towers without rows ---- */

/* Their values do not count, and their copies stay as they are, but for what depends on nothing. */
static void s4_a_tower_without_rows_has_weight_zero(void **state) {
  (void)state;
  static const struct vector v = {
      "no rows",
      4,
      3,
      1,
      IDLE "state n : i64[] = 0 aggregation(sum)\nstate m : f64[] = 0 aggregation(mean)\nstate r : f64[] = "
           "3" ON_READ("sum") "state s : f64[] = 8" ON_READ(
               "sum") "n += 1\nm <- mean(x)\nr <- 1\ns += 1 + sum(x)\nstate all : f64[] = 0\nall <- s",
      "x 1 2 6",
      "n 3 ; m 3 ; r 4 ; s 20 ; all 8 ; tower_0/s 4 ; tower_3/s 2 ; tower_3/r 1",
      NULL,
      NULL,
      NULL,
      NULL};
  struct layout all[MAX_LAYOUTS];
  int n = layouts_of(4, all);
  for (int i = 0; i < n; i++) check_layout(&v, &all[i]);
}

/* ---- copies and what is saved of them ---- */

static void check_saved(const char *how, const char *copies, double whole, const char *restored) {
  for (int e = 0; e < nengines; e++) {
    struct layout l = {2, "mirrored", "cpu:0-1", NULL};
    struct vector v = {"saved", 2, 2, 1, NULL, "x 0 0", NULL, NULL, NULL, NULL, NULL};
    struct run r = {arena_create(), &v, &l, &engines[e], {0}};
    diags_init(&r.d, r.a);
    const char *text = arena_printf(
        r.a, "%sstate v : f64[] = 0 aggregation(%s) synchronization(on_read)\nv <- %s", IDLE, how, copies);
    const struct model *m = compile(r.a, how, text, &r.d);
    if (!m) fail_msg("%s", diags_text(&r.d, false));
    struct values inputs = values_make(r.a), variables = values_make(r.a);
    set_inputs(r.a, m, 2, v.inputs, &inputs);
    begin(&r, m, &variables);
    run_entry(&r, m->train, NULL, &inputs, &variables, 1, NULL);
    assert_true(tensor_at(values_get(&variables, "v"), 0) == whole);
    /* what is read is what the next run is given */
    run_entry(&r, m->train, NULL, &inputs, &variables, 0, restored);
    arena_destroy(r.a);
  }
}

static void s4_saves_and_restores_joined_copies(void **state) {
  (void)state;
  check_saved("sum", "cast(tower_id(), f64) + 3", 7, "v 7 ; tower_0/v 3.5 ; tower_1/v 3.5");
  check_saved("sum", "cast(tower_id(), f64) * 0.5 + 1.5", 3.5, "v 3.5 ; tower_0/v 1.75 ; tower_1/v 1.75");
  check_saved("mean", "cast(tower_id(), f64) + 3", 3.5, "v 3.5 ; tower_0/v 3.5 ; tower_1/v 3.5");
  check_saved("only_first_replica", "cast(tower_id(), f64) + 3", 3, "v 3 ; tower_0/v 3 ; tower_1/v 3");
}

/* ---- refusals ---- */

static void refuses(const char *text, const struct layout *l, int64_t rows, const char *scale,
                    const char *what) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  const struct model *m = compile(a, "refused", text, &d);
  if (m && l) {
    struct graph *g = arena_copy(a, m->train, sizeof *g);
    layout_set(g, l, rows, &d);
    g->config.uneven = false;
    g->config.loss_scaling = scale;
    if (pipeline_run(a, g, NULL, NULL, NULL, &d)) fail_msg("this is an error:\n%s", text);
  } else if (m) {
    fail_msg("this is an error:\n%s", text);
  }
  if (!strstr(diags_text(&d, false), what)) fail_msg("not '%s', but\n%s", what, diags_text(&d, false));
  arena_destroy(a);
}

static const struct layout two = {2, "replicate", "cpu:0-1", NULL},
                           mirrored = {2, "mirrored", "cpu:0-1", NULL};

static void r10_three_errors(void **state) {
  (void)state;
  refuses(LINE "train loss = sum(miss) with sgd(rate = 1)", &two, 3, NULL,
          "3 rows do not divide by 2 towers");
  refuses(LINE "train miss with sgd(rate = 1)", NULL, 0, NULL,
          "the loss `miss` is not reduced: it is f64[B,1]");
  refuses(LINE "if tower_id() == 0 { train loss = sum(miss) with sgd(rate = 1) }", NULL, 0, NULL,
          "a condition");
}

static void s4_what_differs_needs_an_aggregation(void **state) {
  (void)state;
  refuses(IDLE "state v : i64[] = 0\nv <- tower_id()", NULL, 0, NULL,
          "`v` cannot hold what differs from tower to tower");
  refuses(IDLE "state v : i64[] = 0\nv += 1 + 2 * tower_id()", NULL, 0, NULL, "`aggregation(sum)`");
  refuses(IDLE "state v : f64[] = 0 synchronization(on_read)\nv += 1", NULL, 0, NULL, "nothing says how");
  refuses(IDLE "state v : f64[] = 0 aggregation(median)", NULL, 0, NULL, "there is no aggregation `median`");
  refuses(IDLE "state v : f64[] = 0 agregation(sum)", NULL, 0, NULL, "did you mean `aggregation`?");
  refuses(IDLE "state v : f64[] = 0 aggregation(sum) aggregation(mean)", NULL, 0, NULL, "given twice");
  refuses(IDLE "var v : f64[] = 0 aggregation(sum)", NULL, 0, NULL, "only an optimizer writes `v`");
}

static void s4_a_plain_value_has_no_sum(void **state) {
  (void)state;
  refuses(IDLE "state v : f64[] = 0 aggregation(sum)\nv <- 3", &mirrored, 2, NULL,
          "v.aggregate cannot be summed over 2 towers");
  refuses(IDLE "state v : f64[] = 0 aggregation(sum)\nv <- 2 * v", &mirrored, 2, NULL,
          "the same in all of them");
  static const struct vector one = {
      "one", 1,    2,    1,   IDLE "state v : f64[] = 0 aggregation(sum)\nv <- 3", "x 0 0", "v 3",
      NULL,  NULL, NULL, NULL};
  check_layout(&one, &(struct layout){1, "mirrored", "cpu:0", NULL});
}

static void s2_scaling_per_tower_is_for_replicate(void **state) {
  (void)state;
  refuses(LINE "train loss = sum(miss) with sgd(rate = 1)", &mirrored, 2, "per_tower",
          "only strategy replicate scales losses per tower");
  refuses(LINE "train loss = sum(miss) with sgd(rate = 1)", &two, 2, "twice",
          "there is no loss scaling 'twice'");
}

/* ---- what the placed graph says ---- */

static const char *placed(struct arena *a, const char *text, const struct layout *l) {
  struct diags d;
  diags_init(&d, a);
  const struct model *m = compile(a, "placed", text, &d);
  if (!m) fail_msg("%s", diags_text(&d, false));
  struct graph *g = arena_copy(a, m->train, sizeof *g);
  layout_set(g, l, 4, &d);
  g = pipeline_run(a, g, NULL, "place", &(struct pipeline_options){.verify_each = true}, &d);
  if (!g) fail_msg("%s", diags_text(&d, false));
  return graph_text(a, g);
}

static void says(const char *text, const char *what, int times) {
  int count = 0;
  for (const char *p = text; (p = strstr(p, what)); p += strlen(what)) count++;
  if (count != times) fail_msg("'%s' should stand %d times in\n%s", what, times, text);
}

/* A copy on each tower's worker, also where variables are on a parameter device; on_write: one. */
static void s4_copies_are_with_their_towers(void **state) {
  (void)state;
  struct arena *a = arena_create();
  const char *text = placed(a,
                            IDLE "state s : f64[] = 0" ON_READ(
                                "sum") "state w : f64[] = 0 aggregation(sum)\ns += sum(x)\nw += sum(x)",
                            &(struct layout){4, "central_storage", "cpu:0-1", NULL});
  says(text,
       "\n  s = variable {aggregation=\"sum\", synchronization=\"on_read\"} : f64[] per_replica tower 0 on "
       "/cpu:0",
       1);
  says(text, "\n  tower_3/s = variable ", 1);
  says(text, "# joined on read -> tower 3's worker", 1);
  says(text, "\n  w = variable {aggregation=\"sum\"} : f64[] mirrored", 1);
  says(text, " = assign tower_", 3);
  says(text, "\n  w.aggregate.all_reduce = all_reduce w.aggregate.share, tower_1/w.aggregate.share, ", 1);
  arena_destroy(a);
}

static void r12_round_robin(void **state) {
  (void)state;
  struct arena *a = arena_create();
  const char *text =
      placed(a,
             "input x : f64[B]\nvar a : f64[] = 1\nvar b : f64[] = 1\nvar c : f64[] = 1\nvar d : f64[] = 1\n"
             "train sum(x * (a * b * c * d)) with sgd(rate = 1)",
             &(struct layout){3, "round_robin", "cpu:0,cpu:1,cpu:3", NULL});
  says(text, "\n  home a /cpu:0\n  home b /cpu:1\n  home c /cpu:3\n  home d /cpu:0\n", 1);
  arena_destroy(a);
}

/* ---- the certificate ---- */

static struct graph *after(struct arena *a, const struct model *m, const char *passes, const char *last,
                           struct diags *d) {
  struct graph *g = arena_copy(a, m->train, sizeof *g);
  layout_set(g, &(struct layout){2, "one_device", "cpu:0", NULL}, 4, d);
  if (!(g = pipeline_run(a, g, passes, last, NULL, d))) fail_msg("%s", diags_text(d, false));
  return g;
}

/* What towers write and have of their own is proved like everything else. */
static void s4_the_certificate_finds_faults(void **state) {
  (void)state;
  static const struct {
    const char *right, *wrong, *says;
  } faults[] = {
      {"assign tower_1/s, tower_1/s.add ", "assign tower_1/s, tower_1/s ", "the new value of tower_1/s is"},
      {"update tower_1/s.update\n", "", "nothing writes this copy"},
      {"add s.share, tower_1/s.share ", "add s.share, s.share ", "twice"},
      {"tower_1/m.batch_size = batch_size {batch=2}", "tower_1/m.batch_size = batch_size {batch=4}",
       "nothing that the source"},
      {"count.constant = constant {value=2.0}", "count.constant = constant {value=1.0}",
       "the new value of m is m.aggregate of all towers"},
      {"assign o, o.aggregate.all_reduce ", "assign o, m.aggregate.all_reduce.mean ",
       "the new value of o is"},
      {"identity o.reduce_max ", "identity m.div ", "operand 0, m.div, is not the rows"}};
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  const struct model *m =
      compile(a, "faults",
              IDLE "state s : f64[] = 0" ON_READ(
                  "sum") "state m : f64[] = 0 aggregation(mean)\n"
                         "state o : f64[] = 0 aggregation(only_first_replica)\nstate seen : f64[] = 0\n"
                         "s += sum(x)\nm <- mean(x)\no <- max(x)\nseen <- s",
              &d);
  if (!m) fail_msg("%s", diags_text(&d, false));
  struct graph *source = after(a, m, "simplify,versions,grad,rows,partition", NULL, &d);
  const char *text = graph_text(a, after(a, m, NULL, "copies", &d));
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    const char *at = strstr(text, faults[i].right);
    if (!at) fail_msg("no '%s' in\n%s", faults[i].right, text);
    const char *changed =
        arena_printf(a, "%.*s%s%s", (int)(at - text), text, faults[i].wrong, at + strlen(faults[i].right));
    for (int wrong = 0; wrong < 2; wrong++) {
      const char *whole = wrong ? changed : text;
      diags_init(&d, a);
      struct graph *g = graph_parse(a, source_make(a, "faults", whole, strlen(whole)), &d);
      if (!g) fail_msg("%s", diags_text(&d, false));
      bool proved = graph_certify(a, source, g, "test", &d, NULL);
      if (proved == (wrong == 1) || (wrong && !strstr(diags_text(&d, false), faults[i].says)))
        fail_msg("%s: %s", faults[i].wrong, diags_text(&d, false));
    }
  }
  arena_destroy(a);
}

int main(void) {
  enum { N = sizeof vectors / sizeof *vectors };
  static const struct CMUnitTest others[] = {cmocka_unit_test(s4_a_tower_without_rows_has_weight_zero),
                                             cmocka_unit_test(s4_saves_and_restores_joined_copies),
                                             cmocka_unit_test(r10_three_errors),
                                             cmocka_unit_test(s4_what_differs_needs_an_aggregation),
                                             cmocka_unit_test(s4_a_plain_value_has_no_sum),
                                             cmocka_unit_test(s2_scaling_per_tower_is_for_replicate),
                                             cmocka_unit_test(s4_copies_are_with_their_towers),
                                             cmocka_unit_test(r12_round_robin),
                                             cmocka_unit_test(s4_the_certificate_finds_faults)};
  enum { M = sizeof others / sizeof *others };
  struct CMUnitTest tests[N + M];
  for (int i = 0; i < N; i++)
    tests[i] = (struct CMUnitTest){
        .name = vectors[i].name, .test_func = check_vector, .initial_state = (void *)(uintptr_t)&vectors[i]};
  memcpy(tests + N, others, sizeof others);
  return _cmocka_run_group_tests("variables", tests, N + M, open_engines, close_engines);
}
