/* SPDX-License-Identifier: Apache-2.0 */
/* The certificate: graphs and plans that the passes make have one; with any fault planted in them they have
 * none, and the message names the place. */
#include "ir/certify/certify.h"
#include "mutations.h"
#include "passes/pass.h"
#include "planner/planner.h"
#include "tests/support/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Random numbers and counts over the rows, a batch statistic with its gradient, extremes over the batch, rows
 * of a table, momentum, a variable that is not trained, a counter; inputs, variables and results of equal
 * types, that may be taken for each other. */
static const char trained[] =
    " x = input : f32[B,3]\n z = input : f32[B,3]\n y = input : f32[B]\n step = variable : i64[]\n"
    " ids = input : i32[B,2]\n table = variable {trainable=1} : f32[5,3]\n"
    " w = variable {trainable=1} : f32[3,3]\n u = variable {trainable=1} : f32[3,3]\n m = variable : "
    "f32[3,3]\n"
    " v = variable {trainable=1} : f32[3]\n frozen = variable : f32[3]\n"
    " noise = random_uniform step {key=7, seed=3} : f32[B,3]\n place = iota {axis=0} : f32[B]\n"
    " place.rows = broadcast place {axes=[0]} : f32[B,3]\n frozen.rows = broadcast frozen {axes=[1]} : "
    "f32[B,3]\n"
    " x.noisy = add x, noise\n x.place = add x.noisy, place.rows\n x.in = mul x.place, frozen.rows\n"
    " h.w = matmul x.in, w\n h = tanh h.w\n g.z = add z, h\n g.u = matmul g.z, u\n g = sigmoid g.u\n hg = "
    "mul h, g\n"
    " rows = batch_size : f32[]\n rows.3 = broadcast rows {axes=[]} : f32[3]\n hg.sum = reduce_sum hg "
    "{axes=[0]}\n"
    " mean = div hg.sum, rows.3\n mean.rows = broadcast mean {axes=[1]} : f32[B,3]\n off = sub hg, "
    "mean.rows\n"
    " v.rows = broadcast v {axes=[1]} : f32[B,3]\n picked = gather table, ids\n bag = reduce_sum picked "
    "{axes=[1]}\n"
    " off.bag = add off, bag\n terms = mul off.bag, v.rows\n guess = reduce_sum terms "
    "{axes=[1]}\n"
    " miss = sub guess, y\n miss2 = square miss\n total = reduce_sum miss2 {axes=[0]}\n loss = div total, "
    "rows\n"
    " near.by = constant {value=0.5} : f32[]\n near.rows = broadcast near.by {axes=[]} : f32[B]\n"
    " near = lt miss2, near.rows\n near.one = cast near : f32[B]\n near.sum = reduce_sum near.one "
    "{axes=[0]}\n"
    " top = reduce_max x {axes=[0]}\n low = reduce_min x {axes=[0]}\n hg.square = square hg.sum\n"
    " w.grad = gradient loss, w\n u.grad = gradient loss, u\n v.grad = gradient loss, v\n"
    " table.grad = gradient loss, table\n"
    " rate = constant {value=0.125} : f32[]\n rate.53 = broadcast rate {axes=[]} : f32[5,3]\n rate.33 = "
    "broadcast rate {axes=[]} : f32[3,3]\n"
    " rate.3 = broadcast rate {axes=[]} : f32[3]\n keep = constant {value=0.75} : f32[]\n"
    " keep.33 = broadcast keep {axes=[]} : f32[3,3]\n m.keep = mul m, keep.33\n m.next = add m.keep, w.grad\n"
    " w.step = mul m.next, rate.33\n w.next = sub w, w.step\n u.step = mul u.grad, rate.33\n u.next = sub u, "
    "u.step\n"
    " table.step = mul table.grad, rate.53\n table.next = sub table, table.step\n"
    " table.update = assign table, table.next\n"
    " v.step = mul v.grad, rate.3\n v.next = sub v, v.step\n one = constant {value=1} : i64[]\n"
    " step.next = add step, one\n"
    " m.update = assign m, m.next\n w.update = assign w, w.next\n u.update = assign u, u.next\n"
    " v.update = assign v, v.next\n step.update = assign step, step.next\n w.shown = neg w\n"
    " loss loss\n metric accuracy = near.sum / B\n predict guess\n value top\n value low\n value hg.square\n"
    " value w.shown\n update table.update\n update m.update\n update w.update\n update u.update\n update "
    "v.update\n update "
    "step.update\n";

#define CLUSTER                                                                            \
  "/job:worker/task:0/cpu:0,/job:worker/task:1/cpu:0,/job:ps/task:0/cpu:0,/job:ps/task:1/" \
  "cpu:0"
static const struct setting {
  struct layout layout;
  const char *cross_device;
  int packs;
  bool asynchronous;
} settings[] = {
    {{4, "mirrored", "cpu:0-3", NULL}, NULL, 0, false},
    {{4, "mirrored", "cpu:0-1", NULL}, NULL, 0, false},
    {{3, "mirrored", "cpu:0-2", NULL}, "ring", 0, false},
    {{2, "mirrored", "cpu:0-1", NULL}, NULL, 2, false},
    {{5, "central_storage", "cpu:0-2", NULL}, NULL, 0, false},
    {{4, "central_storage", "cpu:0-1", "/cpu:1"}, NULL, 0, false},
    {{4, "one_device", "cpu:0", NULL}, NULL, 0, false},
    {{5, "mirrored", "cpu:0-2", NULL}, "hierarchical_copy", 0, false},
    {{8, "mirrored", "cpu:0-2", NULL}, NULL, 0, false},
    {{4, "mirrored", "cpu:0-3", NULL}, "ring", 3, false},
    {{1, "one_device", "cpu:0", NULL}, NULL, 0, false},
    {{5, "mirrored", "cpu:0-3", NULL}, "scatter", 0, false},
    {{3, "round_robin", "cpu:0-2", NULL}, NULL, 0, false},
    {{4, "parameter_server", CLUSTER, NULL}, NULL, 0, false},
    {{5, "parameter_server", CLUSTER, NULL}, NULL, 0, true},
    {{7, "parameter_server", CLUSTER, NULL},
     NULL,
     0,
     true}, /* a worker whose towers are a part of the tree */
    {{3, "parameter_server", CLUSTER, NULL}, NULL, 0, true}, /* and one with a single tower */
    {{3, "multi_worker_mirrored", "/job:worker/task:0/cpu:0-1,/job:worker/task:1/cpu:0", NULL},
     NULL,
     0,
     false},
    {{5, "mirrored", "gpu:0-2", NULL}, "nccl", 2, false},
    {{4, "mirrored", "gpu:0-3", NULL}, "nccl", 0, false},
};
enum { NSETTINGS = sizeof settings / sizeof *settings, NMUTATIONS = 128 };

struct subject {
  struct arena *arena;
  struct diags diags;
  struct graph *source, *placed;
  const struct setting *setting;
};

static const char *with(struct arena *a, const char *text, const char *old, const char *by) {
  const char *at = strstr(text, old);
  assert_non_null(at);
  return arena_printf(a, "%.*s%s%s", (int)(at - text), text, by, at + strlen(old));
}

/* The model with updates that apply to the newest version of what they change. */
static const char *with_versions(struct arena *a) {
  const char *text = with(a, trained, " w.next = sub w,", " w.new = newest w\n w.next = sub w.new,");
  text = with(a, text, " m.keep = mul m,", " m.new = newest m\n m.keep = mul m.new,");
  return with(a, text, " v.next = sub v,", " v.new = newest v\n v.next = sub v.new,");
}

static void begin(struct subject *s, const struct setting *setting, int64_t rows) {
  *s = (struct subject){.arena = arena_create(), .setting = setting};
  diags_init(&s->diags, s->arena);
  const char *text = setting->asynchronous ? with_versions(s->arena) : trained;
  text = arena_printf(s->arena, "graph model {\n%s}\n", text);
  struct graph *g = graph_parse(s->arena, source_make(s->arena, "model", text, strlen(text)), &s->diags);
  if (g) {
    layout_set(g, &setting->layout, rows, &s->diags);
    g->config.cross_device = setting->cross_device;
    g->config.packs = setting->packs;
    g->config.min_part_bytes = 0; /* variables stay whole */
    g->config.asynchronous = setting->asynchronous;
  }
  s->source = g ? pipeline_run(s->arena, g, NULL, "partition", NULL, &s->diags) : NULL;
  s->placed = s->source ? pipeline_run(s->arena, s->source, NULL, "copies", NULL, &s->diags) : NULL;
  if (!s->placed) fail_msg("%s", diags_text(&s->diags, false));
}

static bool names_one(const struct patient *p, const char *text) {
  for (int i = 0; i < p->nnames; i++)
    if (strstr(text, p->names[i])) return true;
  return false;
}

static const char *names_text(const struct patient *p) {
  struct str s = str_make(p->arena);
  for (int i = 0; i < p->nnames; i++) str_printf(&s, "%s ", p->names[i]);
  return s.data;
}

/* One fault at one place. False if there is no such place. */
static bool graph_is_refused(const struct subject *s, const struct mutation *m, int site, int *wrong) {
  struct arena *a = arena_create();
  struct patient p = {.arena = a, .source = s->source, .g = graph_copy(a, s->placed), .site = site};
  bool there = m->plant(&p);
  struct diags d;
  diags_init(&d, a);
  struct certificate c;
  bool certified = there && graph_certify(a, s->source, p.g, "mutation", &d, &c);
  const char *text = diags_text(&d, false);
  if (there && (certified || !names_one(&p, text))) {
    fprintf(stderr, "%s at place %d, %s: %s, suspects %s\n%s", m->name, site,
            layout_text(a, &s->setting->layout), certified ? "certified" : "not named", names_text(&p), text);
    ++*wrong;
  }
  arena_destroy(a);
  return there;
}

static void faults_of_graphs_are_found(void **state) {
  (void)state;
  int applied[NMUTATIONS] = {0}, wrong = 0, kinds = 0, planted = 0;
  for (int i = 0; i < NSETTINGS; i++) {
    struct subject s;
    begin(&s, &settings[i], i % 2 ? 13 : 12);
    for (int k = 0; graph_mutations[k].name; k++)
      for (int site = 0; graph_is_refused(&s, &graph_mutations[k], site, &wrong); site += 1 + site / 4)
        applied[k]++;
    arena_destroy(s.arena);
  }
  for (int k = 0; graph_mutations[k].name; k++, kinds++) {
    if (!applied[k]) fail_msg("%s can nowhere be planted", graph_mutations[k].name);
    planted += applied[k];
  }
  print_message("%d faults of %d kinds\n", planted, kinds);
  assert_true(kinds >= 40);
  assert_int_equal(wrong, 0);
}

static bool plan_is_refused(const struct subject *s, const struct mutation *m, int site, int *wrong) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct graph *g = graph_copy(a, s->placed);
  struct graph *fused = pipeline_run(a, g, "fuse", NULL, NULL, &d);
  struct plan *plan = fused ? plan_build(a, fused, &d) : NULL;
  assert_non_null(plan);
  struct patient p = {.arena = a, .source = s->source, .g = fused, .plan = plan, .site = site};
  bool there = m->plant(&p);
  bool ordered = there && plan_certify(a, plan, &d, NULL);
  bool certified = ordered && plan_verify(plan, &d);
  const char *text = diags_text(&d, false);
  if (there && (certified || !names_one(&p, text))) {
    fprintf(stderr, "%s at place %d, %s: %s, suspects %s\n%s", m->name, site,
            layout_text(a, &s->setting->layout), certified ? "certified" : "not named", names_text(&p), text);
    ++*wrong;
  }
  arena_destroy(a);
  return there;
}

static void faults_of_plans_are_found(void **state) {
  (void)state;
  int applied[NMUTATIONS] = {0}, wrong = 0;
  for (int i = 0; i < NSETTINGS; i += 3) {
    struct subject s;
    begin(&s, &settings[i], 12);
    for (int k = 0; plan_mutations[k].name; k++)
      for (int site = 0; site < 8 && plan_is_refused(&s, &plan_mutations[k], site, &wrong); site++)
        applied[k]++;
    arena_destroy(s.arena);
  }
  for (int k = 0; plan_mutations[k].name; k++)
    if (!applied[k]) fail_msg("%s can nowhere be planted", plan_mutations[k].name);
  assert_int_equal(wrong, 0);
}

/* With and without the source, and before the collectives are expanded. */
static void what_passes_make_is_certified(void **state) {
  (void)state;
  for (int i = 0; i < NSETTINGS; i++)
    for (int64_t rows = 1; rows < 14; rows += 3) {
      struct subject s;
      struct certificate c;
      if (settings[i].asynchronous && rows < settings[i].layout.towers) continue; /* no worker is idle */
      begin(&s, &settings[i], rows);
      bool ok = graph_certify(s.arena, s.source, s.placed, "test", &s.diags, &c);
      for (int k = 0; k < CLAIM_NUMBERS; k++) assert_true(c.claims[k].checked);
      ok = ok && graph_certify_numbers(s.arena, s.source, s.placed, 3, &s.diags, &c);
      assert_true(!ok || c.claims[CLAIM_NUMBERS].checked);
      ok = ok && graph_certify(s.arena, NULL, s.placed, "test", &s.diags, &c);
      static const char *const stages[] = {"replicate", "pack", "place"};
      for (int k = settings[i].asynchronous ? 2 : 0; ok && k < 3; k++) { /* workers show in the devices */
        struct graph *g = pipeline_run(s.arena, s.source, NULL, stages[k], NULL, &s.diags);
        ok = g && graph_certify(s.arena, s.source, g, stages[k], &s.diags, &c);
      }
      if (!ok) fail_msg("%s: %s", layout_text(s.arena, &settings[i].layout), diags_text(&s.diags, false));
      arena_destroy(s.arena);
    }
}

/* ---- variables in parts ---- */

static const char whole_table[] =
    "graph parts {\n x = input : f32[B]\n step = variable : i64[]\n v = variable : f32[5,2]\n"
    " e = random_uniform step {key=7, seed=3} : f32[5,2]\n g = reduce_sum x {axes=[0]}\n"
    " g.rows = broadcast g {axes=[]} : f32[5,2]\n g.sum = mul g.rows, e\n next = sub v, g.sum\n"
    " v.update = assign v, next\n shown = neg v\n value shown\n update v.update\n}\n";

/* @0: mirrored on device 0; $10: rows of tower 1 on device 0; %11: a share of tower 1 on device 1. */
static const char table_in_parts[] =
    "graph parts {\n stage placed\n batch 4\n towers 2\n strategy parameter_server\n devices /cpu:0 /cpu:1\n"
    " x = input : f32[4] @0 x0 = split x {offset=0} : f32[2] $00 x1 = split x {offset=2} : f32[2] $10"
    " x1.1 = copy x1 {alias=1} : f32[2] $11 step = variable : i64[] @0 step.1 = copy step {alias=1} : i64[] "
    "@1"
    " v/part_0 = variable {of=\"v\", part=0} : f32[3,2] @0 v/part_1 = variable {of=\"v\", part=1} : f32[2,2] "
    "@1"
    " e0 = random_uniform step {key=7, seed=3} : f32[3,2] @0"
    " e1 = random_uniform step.1 {key=7, seed=3, offset=6} : f32[2,2] @1"
    " g0 = reduce_sum x0 {axes=[0]} : f32[] %00 g1 = reduce_sum x1.1 {axes=[0]} : f32[] %11"
    " g1.0 = copy g1 {alias=1} : f32[] %10 g = add g0, g1.0 : f32[] @0 g.1 = copy g {alias=1} : f32[] @1"
    " b0 = broadcast g {axes=[]} : f32[3,2] @0 b1 = broadcast g.1 {axes=[]} : f32[2,2] @1"
    " s0 = mul b0, e0 : f32[3,2] @0 s1 = mul b1, e1 : f32[2,2] @1"
    " n0 = sub v/part_0, s0 : f32[3,2] @0 n1 = sub v/part_1, s1 : f32[2,2] @1"
    " u0 = assign v/part_0, n0 : f32[3,2] @0 u1 = assign v/part_1, n1 : f32[2,2] @1"
    " v1.0 = copy v/part_1 {alias=1} : f32[2,2] @0 v = concat v/part_0, v1.0 {axis=0} : f32[5,2] @0"
    " shown = neg v : f32[5,2] @0 value shown\n update u0\n update u1\n}\n";

static const char *expand(struct arena *a, const char *text) {
  struct str s = str_make(a);
  for (const char *p = text; *p; p++)
    if (*p == '@') {
      str_printf(&s, "mirrored on /cpu:%c # r\n", p[1]);
      p++;
    } else if (*p == '$' || *p == '%') {
      str_printf(&s, "%s tower %c on /cpu:%c # r\n", *p == '$' ? "per_replica" : "partial(sum)", p[1], p[2]);
      p += 2;
    } else
      str_putc(&s, *p);
  return s.data;
}

static struct graph *read_graph(struct arena *a, const char *text, struct diags *d) {
  struct graph *g = graph_parse(a, source_make(a, "parts", expand(a, text), strlen(expand(a, text))), d);
  if (!g || !graph_verify(g, "parse", d)) fail_msg("%s", diags_text(d, false));
  return g;
}

static void variables_in_parts(void **state) {
  (void)state;
  static const struct {
    const char *old, *by, *says;
  } faults[] = {
      {"offset=6", "offset=4", "e1"},
      {"sub v/part_1, s1", "add v/part_1, s1", "n1"},
      {" update u1\n", "", "v/part_1"},
      {"of=\"v\", part=1", "of=\"v\", part=0", "v/part_0: v/part_1 is part 0 of v, too"},
      {"{of=\"v\", part=1}", "{of=\"v\"}", "the 1 parts from the first on hold 3 rows of 5"},
      {"{of=\"v\", part=1} ", "", "the 1 parts from the first on hold 3 rows of 5"},
      {"of=\"v\", part=1", "of=\"x\", part=1", "the 1 parts from the first on hold 3 rows of 5"},
      {"concat v/part_0, v1.0 {axis=0} : f32[5,2]", "concat v1.0, v/part_0 {axis=0} : f32[5,2]", "shown"},
  };
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct graph *source = read_graph(a, whole_table, &d);
  if (!graph_certify(a, source, read_graph(a, table_in_parts, &d), "test", &d, NULL))
    fail_msg("%s", diags_text(&d, false));
  const char *renamed = table_in_parts;
  while (strstr(renamed, "v/part_1")) renamed = with(a, renamed, "v/part_1", "v/part1");
  assert_false(graph_certify(a, source, read_graph(a, renamed, &d), "test", &d, NULL));
  assert_non_null(strstr(diags_text(&d, false), "v/part1: no copy or part of v is called so"));
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    struct graph *g = read_graph(a, with(a, table_in_parts, faults[i].old, faults[i].by), &d);
    diags_init(&d, a);
    assert_false(graph_certify(a, source, g, "test", &d, NULL));
    if (!strstr(diags_text(&d, false), faults[i].says)) fail_msg("%s", diags_text(&d, false));
  }
  arena_destroy(a);
}

/* ---- work ---- */

/* n of everything that has been quadratic: results, variables with updates (in parts, in packs), state of towers. */
static const char *wide_text(struct arena *a, int n) {
  struct str s = str_make(a);
  str_put(&s, "graph wide {\n x = input : f32[B,4]\n sum = reduce_sum x {axes=[0]} : f32[4]\n");
  for (int i = 0; i < n; i++)
    str_printf(
        &s,
        " v%d = variable : f32[4]\n s%d = variable {aggregation=\"sum\", synchronization=\"on_read\"} : "
        "f32[4]\n by%d = mul x, x%d\n g%d = reduce_sum by%d {axes=[0]} : f32[4]\n n%d = sub v%d, g%d\n"
        " u%d = assign v%d, n%d\n t%d = add s%d, sum\n w%d = assign s%d, t%d\n value g%d\n"
        " update u%d\n update w%d\n x%d = neg by%d\n",
        i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i + 1, i);
  str_put(&s, "}\n");
  return s.data;
}

static uint64_t work_for(const struct layout *l, int packs, int n) {
  struct arena *a = arena_create();
  struct diags d;
  struct certificate c;
  diags_init(&d, a);
  const char *text = wide_text(a, n);
  text = with(a, text, " sum = ", " x0 = neg x\n sum = ");
  struct graph *g = graph_parse(a, source_make(a, "wide", text, strlen(text)), &d);
  if (g) layout_set(g, l, 5, &d);
  if (g) g->config.packs = packs;
  struct graph *source = g ? pipeline_run(a, g, NULL, "rows", NULL, &d) : NULL;
  struct graph *placed = source ? pipeline_run(a, source, NULL, "copies", NULL, &d) : NULL;
  if (!placed || !graph_certify(a, source, placed, "test", &d, &c)) fail_msg("%s", diags_text(&d, false));
  arena_destroy(a);
  return c.work;
}

/* Twice the graph, twice the work. */
static void work_is_linear(void **state) {
  (void)state;
  static const struct {
    struct layout layout;
    int packs;
  } wide[] = {{{1, "one_device", "cpu:0", NULL}, 0},
              {{3, "mirrored", "cpu:0-1", NULL}, 1},
              {{2, "central_storage", "cpu:0-1", NULL}, 0},
              {{4, "parameter_server", CLUSTER, NULL}, 0}};
  for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
    uint64_t work[4];
    for (int k = 0; k < 4; k++) work[k] = work_for(&wide[i].layout, wide[i].packs, 50 << k);
    print_message("%s: %llu %llu %llu %llu\n", wide[i].layout.strategy, (unsigned long long)work[0],
                  (unsigned long long)work[1], (unsigned long long)work[2], (unsigned long long)work[3]);
    for (int k = 1; k < 4; k++) assert_true(work[k] < 2 * work[k - 1] + work[k - 1] / 10);
  }
}

/* What cannot be computed is named, with the reason; the rest is compared. */
static void numbers_that_are_not_there(void **state) {
  (void)state;
  static const char source[] =
      "graph gaps {\n x = input : f32[B]\n v = variable : f32[]\n w = variable : f32[]\n"
      " l = reduce_sum x {axes=[0]}\n lv = mul l, v\n v.grad = gradient lv, v\n next = sub v, v.grad\n"
      " v.update = assign v, next\n more = add w, l\n w.update = assign w, more\n value l\n value next\n"
      " update v.update\n update w.update\n}\n";
  struct arena *a = arena_create();
  struct diags d;
  struct certificate c = {0};
  diags_init(&d, a);
  struct graph *g = graph_parse(a, source_make(a, "gaps", source, strlen(source)), &d);
  struct graph *placed = g ? graph_copy(a, g) : NULL;
  assert_non_null(placed);
  placed->config.batch = 3;
  for (uint32_t i = 0; i < placed->count; i++)
    placed->nodes[i]->type = type_specialize(&placed->nodes[i]->type, 3);
  graph_certify_numbers(a, g, placed, 3, &d, &c);
  const char *text = diags_text(&d, false);
  if (!strstr(text, "v.grad (gradient) cannot be computed: it is not expanded")) fail_msg("%s", text);
  assert_true(c.claims[CLAIM_NUMBERS].checked);
  assert_non_null(strstr(c.claims[CLAIM_NUMBERS].text, "not compared: next, v"));
  arena_destroy(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_passes_make_is_certified), cmocka_unit_test(faults_of_graphs_are_found),
      cmocka_unit_test(faults_of_plans_are_found),     cmocka_unit_test(variables_in_parts),
      cmocka_unit_test(numbers_that_are_not_there),    cmocka_unit_test(work_is_linear)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
