/* SPDX-License-Identifier: Apache-2.0 */
/* Every op on every dtype it takes and on odd shapes, one test per op, driven from the op table: compiled by
 * each backend, or on a GPU, and against node_eval. Backends agree bit for bit, except in products and convolutions of
 * f32, which a library computes, and in attention. With node_eval they agree bit for bit where nothing is summed up,
 * else within bound.h. TEST_ROUNDS=1: with special numbers alone, as code for a GPU is
 * the same for all, and no sanitizer is in it. */
#include "ir/ops/op_id.h"
#include "tests/support/bound.h"
#include "tests/support/cases.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *gpu;     /* "gpu:0": on this one alone; NULL: by each backend of the CPU */
static int part, parts = 1; /* of a GPU's tests, op by op in turn */

static bool is_random(enum op_id op) { return op == OP_random_uniform || op == OP_random_normal; }

static bool is_attention(enum op_id op) { return op == OP_attention || op == OP_attention_gradient; }
static bool is_product(enum op_id op) { return op == OP_matmul || op == OP_conv || is_attention(op); }

/* All cases of one op and dtype as one graph. */
struct batch {
  struct arena *arena;
  struct diags diags;
  struct cases cases;
  struct graph *g;
  struct values inputs, variables;
};

static void build_batch(struct batch *b, enum op_id op, enum dtype d) {
  struct arena *a = b->arena = arena_create();
  diags_init(&b->diags, a);
  b->g = graph_create(a, op_table[op]->name, &b->diags);
  b->g->config.batch = 1;
  if (gpu) target_parse(a, gpu, &b->g->config.target, &b->diags, LOC_NONE);
  b->cases = (struct cases){.g = b->g, .op = op};
  cases_add(&b->cases, d);
  for (int i = 0; i < b->cases.count; i++)
    graph_add_output(b->g, OUTPUT_VALUE, arena_printf(a, "case_%d", i), b->cases.list[i].node, 0);
  if (b->diags.nerrors) fail_msg("%s", diags_text(&b->diags, false));
}

/* From the whole type (`special`), or from the op's own domain. */
static void fill_batch(struct batch *b, uint64_t seed, bool special) {
  struct rng r = {seed};
  b->inputs = values_make(b->arena);
  b->variables = values_make(b->arena);
  for (int i = 0; i < b->cases.count; i++) {
    const struct op_case *c = &b->cases.list[i];
    for (int k = 0; k < c->nleaves; k++) {
      struct tensor t = {c->leaves[k]->type, arena_alloc(b->arena, (size_t)type_bytes(&c->leaves[k]->type))};
      enum sample_domain domain = op_of(c->node)->domain;
      if (special && !is_random(c->node->op))
        special_fill(&r, &t);
      else
        sample_fill(&r, domain, k, &t);
      values_put(&b->inputs, c->leaves[k]->name, &t.type, t.data);
    }
  }
}

static void check_case(struct batch *b, int i, const struct bounds *want, const struct values *got,
                       bool exact) {
  const char *name = b->g->outputs[i].name;
  struct arena *a = b->arena;
  const struct node *n = b->cases.list[i].node;
  const struct bounds *w = &want[n->id];
  for (int e = 0; e < nengines; e++) {
    const struct tensor *have = values_get(&got[e], name);
    assert_non_null(have);
    const char *wrong = exact ? tensor_difference(a, &w->value, have) : bounds_breach(a, w, have);
    bool library = is_product(n->op) && (n->type.dtype == DT_F32 || is_attention(n->op));
    if (!wrong && e > 0 && !library) wrong = tensor_difference(a, values_get(&got[0], name), have);
    if (wrong)
      fail_msg("%s %s of %s, backend %s: %s", op_of(n)->name, name,
               n->ninputs ? type_text(a, &n->inputs[0]->type) : type_text(a, &n->type),
               engines[e].backend->name, wrong);
  }
}

static void run_batch(struct batch *b, const struct plan *p) {
  struct arena *a = b->arena;
  struct bounds *want = arena_new_array(a, b->g->count, struct bounds);
  if (!graph_bounds(a, b->g, &b->inputs, &b->variables, 0, want)) fail_msg("%s", graph_text(a, b->g));
  struct values got[2];
  for (int e = 0; e < nengines; e++) {
    got[e] = values_make(a);
    if (!engine_run(&engines[e], p, &b->inputs, &b->variables, &got[e], 1, &b->diags))
      fail_msg("%s", diags_text(&b->diags, false));
  }
  enum op_kind kind = op_table[b->cases.op]->kind;
  bool exact = kind != KIND_REDUCE && !is_product(b->cases.op);
  for (int i = 0; i < b->cases.count; i++) check_case(b, i, want, got, exact);
}

static void check_op(enum op_id op) {
  int count = 0, rounds = (int)number_from("TEST_ROUNDS", 2);
  for (enum dtype d = DT_F32; d < DT_BF16; d++) {
    struct batch b;
    build_batch(&b, op, d);
    if (b.cases.count) {
      struct plan *p = engine_plan(b.arena, b.g, &b.diags);
      if (!p) fail_msg("%s", diags_text(&b.diags, false));
      for (int round = 2 - rounds; round < 2; round++) {
        fill_batch(&b, 100 * op + 10 * d + (unsigned)round, round);
        run_batch(&b, p);
      }
    } else if (op_takes(op, d) && op_table[op]->kind != KIND_SOURCE)
      fail_msg("%s has no cases on %s", op_table[op]->name, dtype_name(d));
    count += b.cases.count;
    arena_destroy(b.arena);
  }
  if (count == 0) fail_msg("%s has no cases", op_table[op]->name);
}

static void backends_agree(void **state) { check_op((enum op_id)(uintptr_t)*state); }

static bool is_tested(int op) {
  return op_table[op]->domain != DOMAIN_NONE || op == OP_iota || is_random((enum op_id)op);
}

static void gpu_agrees(void **state) {
  (void)state;
  bool simulated;
  if (!gpus_found(&simulated)) skip();
  assert_true(engine_open_on(&engines[0], "cuda", gpu, 1));
  nengines = 1;
  for (int i = part; i < OP_COUNT; i += parts)
    if (is_tested(i)) check_op((enum op_id)i);
  engine_close(&engines[0]);
}

int main(int argc, char **argv) {
  struct CMUnitTest tests[OP_COUNT];
  if (argc > 1) gpu = argv[1];
  if (argc > 3) part = atoi(argv[2]), parts = atoi(argv[3]);
  const struct CMUnitTest one[] = {cmocka_unit_test(gpu_agrees)};
  if (gpu) return gpu_status(cmocka_run_group_tests(one, NULL, NULL));
  int n = 0;
  for (int i = 0; i < OP_COUNT; i++)
    if (is_tested(i))
      tests[n++] = (struct CMUnitTest){
          .name = op_table[i]->name, .test_func = backends_agree, .initial_state = (void *)(uintptr_t)i};
  return _cmocka_run_group_tests("ops", tests, (size_t)n, open_engines, close_engines);
}
