/* SPDX-License-Identifier: Apache-2.0 */
/* Models with the batch on other axes than the first: time-major sequences, channels before the batch, products from
 * both sides, tables, statistics. What JAX computes for the whole batch, N towers compute: losses and what a step
 * leaves of the variables; with fewer rows than towers what one tower does. For a fixed N the bits are one. Numbers are
 * in batch_axis.def, by batch_axis.py, whose models these are. */
#include "frontend/frontend.h"
#include "ir/certify/certify.h"
#include "ir/ops/op_id.h"
#include "passes/pass.h"
#include "tests/support/elements.h"
#include "tests/support/expect.h"
#include "tests/support/fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 7 };

#define X      "input x : f64[B,4,3]\n"
#define TURNED X "xt = transpose(x, [1, 0, 2])\n"
#define TRAIN  "train loss = result with sgd(rate = 1)\n"

static const struct sample {
  const char *name, *text;
} samples[] = {
    {"rnn", TURNED
     "var w : f64[3,2] = 0\nvar u : f64[2,2] = 0\nvar b : f64[2] = 0\nz = xt @ w + b\nh = tanh(z[0])\nfor t "
     "in 1..4 { h = tanh(z[t] + h @ u) }\nresult = mean(square(h))\npredict all = transpose(z, [1, 0, 2])\n"},
    {"lstm",
     TURNED "var w : f64[3,8] = 0\nvar u : f64[2,8] = 0\nz = xt @ w\nh = 0 * z[0][:, 0:2]\nc = h\nfor t in "
            "0..4 {\n g = z[t] + h @ u\n s = sigmoid(g)\n c = s[:, 0:2] * c + s[:, 2:4] * tanh(g[:, 4:6])\n "
            "h = s[:, 6:8] * tanh(c)\n}\nresult = mean(square(h))\npredict last = h\n"},
    {"both_sides",
     TURNED "var w : f64[2,3] = 0\nvar u : f64[3,2] = 0\nleft = w @ transpose(x, [1, 2, 0])\nright = xt @ "
            "u\nresult = sum(tanh(transpose(left, [0, 2, 1]) + right))\n"},
    {"softmax_last",
     X "var v : f64[3,1] = 0\nresult = mean(square(softmax(transpose(x, [1, 2, 0]) * v, axis = 1)))\n"},
    {"middle", TURNED "var w : f64[3,2] = 0\nm = mean(xt, axis = 1, keep = true)\nup = transpose(x, [2, 0, "
                      "1])\ntop = max(up, axis = 1, keep = true)\nresult = sum(square((xt - m) @ w)) + "
                      "sum(tanh(up - top * reshape(w[:, 0], [3, 1, 1])))\n"},
    {"pieces", TURNED "var w : f64[8,2] = 0\np = pad(xt, [1, 0, 0], [0, 0, 1])\nq = concat([p[0:4], "
                      "tanh(p[1:5])], axis = 2)\npicked = gather(q, [3, 1, 1])\nback = stack([q[3], q[2], "
                      "q[1], q[0]], axis = 0)\nresult = sum(square(picked @ w)) + sum(tanh(back @ w))\n"},
    {"channels",
     X "var w : f64[2,9] = 0\nc = pad(transpose(x, [2, 0, 1]), [0, 0, 1], [0, 0, 1])\nparts = concat([c[:, "
       ":, 0:4], c[:, :, 1:5], c[:, :, 2:6]], axis = 0)\ny = reshape(w @ reshape(parts, [9, 4 * B]), [2, B, "
       "4])\nresult = sum(square(tanh(y - mean(y, axis = 1, keep = true))))\n"},
    {"broadcasts", TURNED "var e : f64[4,1,3] = 0\nvar f : f64[3] = 0\nresult = mean(tanh(xt + e) * f)\n"},
    {"rows", TURNED "input i : i32[B,4]\nvar e : f64[5,3] = 0\nvar w : f64[3,2] = 0\nids = transpose(i, [1, "
                    "0])\nseen = scatter_add(0 * e, ids, xt)\nresult = sum(tanh(gather(seen, ids) @ w)) + "
                    "sum(tanh(gather(e, ids) @ w))\n"},
    {"norm", TURNED
     "var s : f64[3] = 0\nvar w : f64[3,2] = 0\ncenter = mean(xt, axis = [0, 1])\nspread = mean(square(xt - "
     "center), axis = [0, 1])\nresult = mean(tanh(((xt - center) / sqrt(spread + 1e-3) * s) @ w))\n"},
    {"flat", TURNED "var w : f64[3,2] = 0\ny = reshape(xt, [4 * B, 3])\nfirst = cast(iota(i32[4 * B], axis = "
                    "0) < 9, f64)\nz = tanh((y * reshape(first, [4 * B, 1])) @ w)\n"
                    "result = sum(square(reshape(z, [4, B, 2])[1])) + sum(z)\n"},
    /* sums and maxima of the rows themselves, and towers that hold rows and compute nothing */
    {"moment", X "var w : f64[] = 0\nresult = square(w * mean(x) - 1) + w * max(x)\n"},
    {"held", TURNED "input i : i32[B,4]\nvar w : f64[3] = 0\nids = transpose(i, [1, 0])\n"
                    "result = sum(square(scatter_add(broadcast(cast(0, f64), [5, 3]), ids, xt) * w))\n"},
    /* ids and rows that are an input's but for their shape */
    {"turned_ids", X "input i : i32[B,4]\ninput n : i32[B]\nvar e : f64[5,3] = 0\nvar w : f64[3] = 0\n"
                     "one = gather(e, expand(n))\nsome = gather(e, reshape(i, [B, 2, 2]))\n"
                     "back = scatter_add(broadcast(cast(0, f64), [5, 3]), expand(n), x[:, 0:1, :])\n"
                     "result = sum(square(one[:, 0] - w)) + sum(tanh(some)) + sum(back * w)\n"},
    /* of which JAX has other numbers */
    {"noise", TURNED
     "var w : f64[3,2] = 0\nz = dropout(xt, 0.25) @ w + random_normal(f64[4,B,2])\ny = dropout(reshape(z, [4 "
     "* B, 2]), 0.5)\nresult = sum(square(y)) + sum(random_uniform(f64[2,3,B]))\npredict drawn = "
     "transpose(random_uniform(f64[2,3,B]), [2, 0, 1])\n"},
};
enum { SAMPLES = sizeof samples / sizeof *samples };

static const struct {
  const char *name, *want;
} numbers[] = {
#define NUMBERS(name, want) {#name, want},
#define WORKERS(name, staleness, want)
#include "tests/towers/batch_axis.def"
#undef WORKERS
#undef NUMBERS
};

static const struct {
  const char *name;
  int staleness;
  const char *want;
} after_workers[] = {
#define NUMBERS(name, want)
#define WORKERS(name, staleness, want) {#name, staleness, want},
#include "tests/towers/batch_axis.def"
#undef WORKERS
#undef NUMBERS
};

/* ---- running ---- */

static struct tensor filled(struct arena *a, const struct type *t, int64_t seed) {
  struct tensor x = {*t, arena_alloc(a, (size_t)type_bytes(t) + 1)};
  for (int64_t i = 0; i < type_count(t); i++)
    tensor_set(&x, i,
               t->dtype == DT_I32 ? (double)((7 * i + 3) % 5)
                                  : (double)((i * 37 + seed * 53 + 11) % 101 - 50) / 64);
  return x;
}

struct run {
  struct arena *a;
  struct diags d;
  const struct model *m;
  struct values outputs, variables;
};

static void begin(struct run *r, const struct sample *s) {
  r->a = arena_create();
  diags_init(&r->d, r->a);
  const char *text = arena_printf(r->a, "model m {\n%s" TRAIN "}\n", s->text);
  r->m = frontend_compile(r->a, source_make(r->a, s->name, text, strlen(text)), NULL, &r->d);
  if (!r->m) fail_msg("%s: %s", s->name, diags_text(&r->d, false));
}

/* Entries `train` and, if there is one, `predict` on the layout: all results, and the variables after the step.
 * `staleness` -1: all towers together. */
static void run_with(struct run *r, struct engine *e, const struct layout *l, int staleness, int64_t rows) {
  const struct graph *entries[] = {r->m->predict, r->m->train};
  struct values inputs = values_make(r->a);
  r->outputs = values_make(r->a);
  r->variables = values_make(r->a);
  for (int i = 0; i < r->m->ninputs; i++) {
    struct type t = type_specialize(&r->m->inputs[i].type, rows);
    values_put(&inputs, r->m->inputs[i].name, &t, filled(r->a, &t, 1).data);
  }
  values_put_first_row(&inputs, 1000);
  for (uint32_t i = 0; i < r->m->init->count; i++) {
    const struct node *v = r->m->init->nodes[i];
    if (v->op == OP_variable)
      values_put(&r->variables, v->name, &v->type, filled(r->a, &v->type, v->name[0]).data);
  }
  for (int i = 0; i < 2; i++) {
    if (!entries[i]) continue;
    struct graph *g = arena_copy(r->a, entries[i], sizeof *g);
    layout_set(g, l, rows, &r->d);
    g->config.asynchronous = staleness >= 0;
    g->config.staleness = staleness > 0 ? staleness : 0;
    struct plan *p = engine_plan(r->a, g, &r->d);
    if (!p || !engine_run(e, p, &inputs, &r->variables, &r->outputs, 1, &r->d))
      fail_msg("%s: %s", layout_text(r->a, l), diags_text(&r->d, false));
  }
}

static void run_on(struct run *r, struct engine *e, const struct layout *l, int64_t rows) {
  run_with(r, e, l, -1, rows);
}

static const struct layout layouts[] = {{1, "one_device", "cpu:0", NULL},
                                        {2, "mirrored", "cpu:0-1", NULL},
                                        {3, "central_storage", "cpu:0-1", NULL},
                                        {5, "mirrored", "cpu:0-4", NULL}};

/* ---- against JAX ---- */

static bool near(double x, double want) { return fabs(x - want) <= 1e-12 * (1 + fabs(want)); }

/* The sum of (i + 1) v[i]. */
static double weighed(const struct tensor *t) {
  double sum = 0;
  for (int64_t i = 0; i < type_count(&t->type); i++) sum += (double)(i + 1) * tensor_at(t, i);
  return sum;
}

static const struct sample *sample_of(const char *name) {
  for (int i = 0; i < SAMPLES; i++)
    if (strcmp(samples[i].name, name) == 0) return &samples[i];
  fail_msg("there is no sample %s", name);
  return NULL;
}

/* `want` has names and numbers of results or variables. */
static void expect_numbers(const struct run *r, const char *model, const struct layout *l, const char *want) {
  char name[64];
  double number[64];
  int count;
  while (next_entry(&want, name, number, &count)) {
    const struct tensor *t = values_get(&r->outputs, name);
    if (!t) t = values_get(&r->variables, name);
    double have = t ? weighed(t) : NAN;
    if (!near(have, *number))
      fail_msg("%s, %s: %s is %.17g, not %.17g", model, layout_text(r->a, l), name, have, *number);
  }
}

static void towers_compute_what_jax_does(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++)
      for (int e = 0; e < nengines; e++) {
        struct run r;
        begin(&r, sample_of(numbers[i].name));
        run_on(&r, &engines[e], &layouts[l], ROWS);
        expect_numbers(&r, numbers[i].name, &layouts[l], numbers[i].want);
        arena_destroy(r.a);
      }
}

static void workers_compute_what_jax_does(void **state) {
  (void)state;
#define WORKER(i) "/job:worker/task:" #i "/cpu:0"
  static const struct layout l = {2, "parameter_server", WORKER(0) "," WORKER(1) ",/job:ps/task:0/cpu:0",
                                  NULL};
  for (size_t i = 0; i < sizeof after_workers / sizeof *after_workers; i++)
    for (int e = 0; e < nengines; e++) {
      struct run r;
      begin(&r, sample_of(after_workers[i].name));
      run_with(&r, &engines[e], &l, after_workers[i].staleness, ROWS);
      expect_numbers(&r, after_workers[i].name, &l, after_workers[i].want);
      arena_destroy(r.a);
    }
}

/* ---- against one tower ---- */

static void compare(const struct sample *s, struct arena *a, const struct layout *l,
                    const struct values *want, const struct values *have) {
  for (uint32_t i = 0; i < want->map.count; i++) {
    const struct tensor *x = want->map.entries[i].value, *y = values_get(have, want->map.entries[i].key);
    bool same = y && type_equal(&x->type, &y->type);
    for (int64_t k = 0; same && k < type_count(&x->type); k++) same = near(tensor_at(y, k), tensor_at(x, k));
    if (!same)
      fail_msg("%s, %s: %s is not that of one tower", s->name, layout_text(a, l), want->map.entries[i].key);
  }
}

/* With rows for all towers, and without. */
static void towers_compute_what_one_does(void **state) {
  (void)state;
  static const int64_t rows[] = {ROWS, 2};
  for (int i = 0; i < SAMPLES; i++)
    for (int k = 0; k < 2; k++) {
      struct run one;
      begin(&one, &samples[i]);
      run_on(&one, &engines[nengines - 1], &layouts[0], rows[k]);
      for (size_t l = 1; l < sizeof layouts / sizeof *layouts; l++) {
        struct run r;
        begin(&r, &samples[i]);
        run_on(&r, &engines[nengines - 1], &layouts[l], rows[k]);
        compare(&samples[i], r.a, &layouts[l], &one.outputs, &r.outputs);
        compare(&samples[i], r.a, &layouts[l], &one.variables, &r.variables);
        arena_destroy(r.a);
      }
      arena_destroy(one.a);
    }
}

static void layouts_do_not_show(void **state) {
  (void)state;
  struct layout all[MAX_LAYOUTS];
  int n = layouts_of(3, all);
  for (int i = 0; i < SAMPLES; i++) {
    struct run first, r;
    begin(&first, &samples[i]);
    run_on(&first, &engines[nengines - 1], &all[0], ROWS);
    for (int l = 1 + i % 3; l < n; l += 3) {
      begin(&r, &samples[i]);
      run_on(&r, &engines[nengines - 1], &all[l], ROWS);
      const char *wrong = values_difference(r.a, &first.outputs, &r.outputs);
      if (!wrong) wrong = values_difference(r.a, &first.variables, &r.variables);
      if (wrong) fail_msg("%s, %s: %s", samples[i].name, layout_text(r.a, &all[l]), wrong);
      arena_destroy(r.a);
    }
    arena_destroy(first.a);
  }
}

/* ---- refusals ---- */

static void what_needs_all_rows_is_refused(void **state) {
  (void)state;
  static const char *const models[][2] = {
      {"result = sum((xt - reshape(cast(argmax(xt, axis = 1), f64), [4, 1, 3])) * w)\n",
       "it joins the rows of the batch in a way that no sum"},
      {"result = mean(reshape(xt, [B, 4, 3]) * w)\n", "it would mix the batch with other axes"},
      {"result = mean((reshape(xt, [4 * B, 3]) + reshape(x, [4 * B, 3])) * w)\n",
       "stand in different orders"}};
  for (int i = 0; i < 3; i++)
    for (int towers = 1; towers < 3; towers++) {
      struct sample s = {"refused", NULL};
      struct run r;
      struct arena *a = arena_create();
      s.text = arena_printf(a, TURNED "var w : f64[3] = 0\n%s", models[i][0]);
      begin(&r, &s);
      struct graph *g = arena_copy(r.a, r.m->train, sizeof *g);
      layout_set(g, &layouts[towers - 1], ROWS, &r.d);
      bool made = pipeline_run(r.a, g, NULL, "place", &(struct pipeline_options){.verify_each = true}, &r.d);
      if (made != (towers == 1) || (!made && !strstr(diags_text(&r.d, false), models[i][1])))
        fail_msg("%s on %d towers: %s", models[i][0], towers, diags_text(&r.d, false));
      arena_destroy(r.a);
      arena_destroy(a);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(towers_compute_what_jax_does), cmocka_unit_test(workers_compute_what_jax_does),
      cmocka_unit_test(towers_compute_what_one_does), cmocka_unit_test(layouts_do_not_show),
      cmocka_unit_test(what_needs_all_rows_is_refused)};
  return cmocka_run_group_tests(tests, open_engines, close_engines);
}
