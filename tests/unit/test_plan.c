/* SPDX-License-Identifier: Apache-2.0 */
/* Fusing, scheduling and memory: random graphs, run as planned, against the plain evaluation of the graph. */
#include "plan_case.h"

#include "ir/ops/op_id.h"

static struct plan *plan(struct fixture *f, struct graph *fused) {
  return verified(f, plan_build(f->arena, fused, &f->diags));
}

static void one_random(uint64_t seed, int nodes, int ndevices) {
  struct fixture f;
  begin(&f);
  struct graph *g = random_graph(f.arena, seed, nodes, ndevices, &f.diags);
  struct tensor *want = oracle(f.arena, g);
  struct graph *fused = fuse(&f, g, seed % 2 == 0);
  struct plan *p = plan(&f, fused);
  for (int i = 0; i < 3; i++) {
    const char *wrong = run_and_compare(&f, g, want, p, seed * 3 + (uint64_t)i);
    if (!wrong) continue;
    show(&f, g, NULL);
    show(&f, fused, p);
    print_message("seed %llu, %d nodes, %d devices: %s differs\n", (unsigned long long)seed, nodes, ndevices,
                  wrong);
    fail();
  }
  drop_meetings(&f, p);
  end(&f);
}

static void random_graphs(void **state) {
  (void)state;
  int first = number("PLAN_FIRST", 0), rounds = number("PLAN_ROUNDS", 300);
  for (int i = first; i < first + rounds; i++) one_random((uint64_t)i, 4 + i % 9 * 12, 1 + i % 4);
}

/* A classifier's loss for each row: products, broadcasts, reductions along both axes, one-hot by iota. */
static struct graph *classifier(struct fixture *f, int64_t batch) {
  struct graph *g = graph_create(f->arena, "classifier", &f->diags);
  g->stage = STAGE_PLACED;
  g->at.device = 0;
  g->at.dist = DIST_MIRRORED;
  g->at.why = (struct reason){.rule = "given"};
  target_parse(f->arena, "cpu:0", &g->config.target, &f->diags, LOC_NONE);
  struct type x = {DT_F32, 2, {batch, 20}}, w = {DT_F32, 2, {20, 10}}, b = {DT_F32, 1, {10}},
              l = {DT_I32, 1, {batch}};
  struct type rows = {DT_F32, 2, {batch, 10}}, ids = type_with_dtype(rows, DT_I32);
  int64_t first = 0, second = 1;
  struct node *bias = build_variable(g, "b", &b, true, NULL), *label = build_input(g, "label", &l);
  struct node *logits =
      build_matmul(g, build_input(g, "x", &x), build_variable(g, "w", &w, true, NULL), false, false);
  logits = build2(g, OP_add, logits, build_broadcast(g, bias, &rows, &second));
  struct node *most = build_broadcast(g, build_reduce(g, OP_reduce_max, logits, 2), &rows, &first);
  struct node *shifted = build2(g, OP_sub, logits, most);
  struct node *total = build1(g, OP_log, build_reduce(g, OP_reduce_sum, build1(g, OP_exp, shifted), 2));
  struct node *hit = build2(g, OP_eq, build_broadcast(g, label, &ids, &first), build_iota(g, &ids, 1));
  struct node *own =
      build_reduce(g, OP_reduce_sum, build3(g, OP_select, hit, shifted, build_fill(g, &rows, 0)), 2);
  graph_add_output(g, OUTPUT_VALUE, "loss", build2(g, OP_sub, total, own), 0);
  graph_add_output(g, OUTPUT_VALUE, "guess", build_arg(g, OP_argmax, logits, 1), 0);
  struct node *columns = build_reduce(g, OP_reduce_sum, shifted, 1);
  graph_add_output(g, OUTPUT_UPDATE, "b", build_assign(g, bias, build2(g, OP_sub, bias, columns)), 0);
  return g;
}

static void one_kernel_for_all_batches(void **state) {
  (void)state;
  struct fixture f;
  begin(&f);
  struct plan *p = plan(&f, fuse(&f, classifier(&f, 64), true));
  static const int64_t batches[] = {0, 1, 2, 15, 16, 17, 65};
  for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
    struct plan *q = plan(&f, fuse(&f, classifier(&f, batches[i]), true));
    assert_int_equal(p->nkernels, q->nkernels);
    for (int k = 0; k < p->nkernels; k++) assert_true(kernel_equal(p->kernels[k], q->kernels[k]));
  }
  end(&f);
}

/* a <- b, b <- a: one of them is saved first, and nothing else is copied. */
static void variables_change_places(void **state) {
  (void)state;
  struct fixture f;
  begin(&f);
  struct graph *g = graph_create(f.arena, "swap", &f.diags);
  g->stage = STAGE_PLACED;
  g->at.device = 0;
  g->at.dist = DIST_MIRRORED;
  g->at.why = (struct reason){.rule = "given"};
  target_parse(f.arena, "cpu:0", &g->config.target, &f.diags, LOC_NONE);
  struct type t = {DT_I32, 1, {5}};
  struct node *a = build_variable(g, "a", &t, true, NULL), *b = build_variable(g, "b", &t, true, NULL);
  graph_add_output(g, OUTPUT_UPDATE, "a", build_assign(g, a, b), 0);
  graph_add_output(g, OUTPUT_UPDATE, "b", build_assign(g, b, a), 0);
  struct tensor *want = oracle(f.arena, g);
  struct plan *p = plan(&f, fuse(&f, g, true));
  assert_int_equal(p->devices[0].nsteps, 3);
  assert_null(run_and_compare(&f, g, want, p, 1));
  end(&f);
}

/* Elementwise chains run in the storage of what they read, updates in that of their variable. */
static void storage_is_used_again(void **state) {
  (void)state;
  struct fixture f;
  begin(&f);
  struct plan *p = plan(&f, fuse(&f, classifier(&f, 64), true));
  for (int d = 0; d < p->ndevices; d++)
    for (int i = 0; i < p->devices[d].nsteps; i++)
      assert_int_not_equal(p->devices[d].steps[i].kind, STEP_COPY);
  int64_t sum = 0;
  for (int i = 0; i < p->nbuffers; i++)
    if (p->buffers[i].region == REGION_ARENA) sum += (p->buffers[i].bytes + 63) / 64 * 64;
  assert_true(p->devices[0].bytes[REGION_ARENA] < sum);
  end(&f);
}

static struct graph *parse(struct fixture *f, const char *nodes) {
  const char *text = arena_printf(f->arena,
                                  "graph rows {\n stage placed\n devices /cpu:0\n"
                                  " t = variable : i32[1000,4] mirrored on /cpu:0  # given\n"
                                  " s = variable : i32[] mirrored on /cpu:0  # given\n"
                                  " i = input : i32[7] mirrored on /cpu:0  # given\n"
                                  " v = input : i32[7,4] mirrored on /cpu:0  # given\n"
                                  "%s update t = u\n}\n",
                                  nodes);
  struct graph *g = graph_parse(f->arena, source_make(f->arena, "rows", text, strlen(text)), &f->diags);
  if (!g || !graph_verify(g, "parse", &f->diags)) fail_msg("%s", diags_text(&f->diags, false));
  return g;
}

static int count_steps(const struct plan *p, enum step_kind kind) {
  int count = 0;
  for (int i = 0; i < p->devices[0].nsteps; i++) count += p->devices[0].steps[i].kind == kind;
  return count;
}

static bool is_leaf(const struct step *s, enum op_id op) { return s->kind == STEP_LEAF && s->node->op == op; }

static int count_leaves(const struct plan *p, enum op_id op) {
  int count = 0;
  for (int i = 0; i < p->devices[0].nsteps; i++) count += is_leaf(&p->devices[0].steps[i], op);
  return count;
}

/* A table to which rows are added is not copied: not for several scatter_adds, nor when something is computed of
 * it first, nor when its rows are read; unless what is added needs to know what comes of it. */
static void rows_are_added_in_place(void **state) {
  (void)state;
#define ON " mirrored on /cpu:0  # given\n"
  static const struct {
    const char *nodes;
    int kernels, gathers, scatters, copies;
    bool in_place;
  } rows[] = {
      {" a = scatter_add t, i, v" ON " u = assign t, a" ON, 0, 0, 1, 0, true},
      {" q = gather t, i" ON " a = scatter_add t, i, v" ON " b = scatter_add a, i, q" ON
       " c = scatter_add b, i, v" ON " u = assign t, c" ON,
       0, 1, 3, 0, true},
      {" d = add t, t" ON " a = scatter_add d, i, v" ON " b = scatter_add a, i, v" ON " u = assign t, b" ON,
       1, 0, 2, 0, true},
      /* the variable is given as it was, too: that is the one copy */
      {" a = scatter_add t, i, v" ON " u = assign t, a" ON " value t\n", 0, 0, 1, 1, true},
      /* t is read once more after the sum of what has been added is known */
      {" a = scatter_add t, i, v" ON " b = scatter_add a, i, v" ON " m = reduce_max b {axes=[0, 1]}" ON
       " w = assign s, m" ON " n = broadcast m {axes=[]} : i32[1000,4]" ON " o = mul n, t" ON
       " p = reduce_max o {axes=[0, 1]}" ON " u = assign t, b" ON " update s = w\n value p\n",
       2, 0, 2, 1, false},
      /* the sum that is added to is read again */
      {" a = scatter_add t, i, v" ON " b = scatter_add a, i, v" ON " u = assign t, b" ON " value a\n", 0, 0,
       2, 0, false},
  };
#undef ON
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    struct fixture f;
    begin(&f);
    struct graph *g = parse(&f, rows[k].nodes);
    struct tensor *want = oracle(f.arena, g);
    struct plan *p = plan(&f, fuse(&f, g, true));
    bool in_place = true;
    for (int i = 0; i < p->devices[0].nsteps; i++) {
      const struct step *s = &p->devices[0].steps[i];
      if (is_leaf(s, OP_scatter_add)) in_place &= s->operands[0].buffer == s->operands[3].buffer;
    }
    bool right = count_steps(p, STEP_KERNEL) == rows[k].kernels && in_place == rows[k].in_place &&
                 count_leaves(p, OP_gather) == rows[k].gathers &&
                 count_steps(p, STEP_COPY) == rows[k].copies &&
                 count_leaves(p, OP_scatter_add) == rows[k].scatters;
    if (!right) show(&f, NULL, p);
    assert_true(right);
    assert_null(run_and_compare(&f, g, want, p, k));
    end(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_graphs),           cmocka_unit_test(one_kernel_for_all_batches),
      cmocka_unit_test(variables_change_places), cmocka_unit_test(storage_is_used_again),
      cmocka_unit_test(rows_are_added_in_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
