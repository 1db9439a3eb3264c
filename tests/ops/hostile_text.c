/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ops/hostile_text.h"

#include "ir/ops/op_id.h"
#include "passes/pass.h"
#include "planner/planner.h"
#include "tests/support/eval.h"
#include "tests/support/fixture.h"
#include "tests/support/graphs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void located(const struct diags *d, const char *text) {
  if (!d->nerrors) fail_msg("refused without a word:\n%s", text);
  for (const struct diag *q = d->first; q; q = q->next)
    if (q->severity == DIAG_ERROR && !q->loc.source) fail_msg("%s\nstands nowhere:\n%s", q->message, text);
}

static int64_t bytes_of(const struct graph *g) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < g->count; i++) {
    int64_t more = type_is_symbolic(&g->nodes[i]->type) ? 0 : type_bytes(&g->nodes[i]->type);
    bytes = more > INT64_C(1) << 40 ? INT64_C(1) << 50 : bytes + more;
  }
  return bytes;
}

/* Small graphs are computed, if passes need not expand them first and nothing comes from elsewhere. */
static void compute(struct arena *a, struct graph *g) {
  for (uint32_t i = 0; i < g->count; i++)
    if (op_of(g->nodes[i])->traits & OP_SOURCE_ONLY || g->nodes[i]->op == OP_remote) return;
  g = graph_concrete(a, g, 3);
  if (!g || bytes_of(g) > 1 << 20) return;
  struct values inputs, variables;
  model_values(a, g, 3, 1, false, &inputs, &variables);
  struct tensor *out = arena_new_array(a, g->count + 1, struct tensor);
  assert_true(graph_eval(a, g, &inputs, &variables, out));
}

/* Every pass, on one tower and on two; what a pass refuses it says. */
static void compile(struct arena *a, struct graph *g, const char *text) {
  for (int towers = 1; towers <= (g->stage == STAGE_SOURCE ? 2 : 1); towers++) {
    struct diags d;
    diags_init(&d, a);
    struct graph *copy = graph_copy(a, g);
    if (g->stage == STAGE_SOURCE) copy->config.towers = towers;
    struct pipeline_options o = {.verify_each = true};
    copy = pipeline_run(a, copy, NULL, NULL, &o, &d);
    if (!copy && !d.nerrors) fail_msg("no pass says why:\n%s", text);
    if (copy && !plan_build(a, copy, &d) && !d.nerrors) fail_msg("the plan does not say why:\n%s", text);
    for (const struct diag *q = d.first; q; q = q->next)
      if (q->severity == DIAG_ERROR && strncmp(q->message, "after ", 6) == 0)
        fail_msg("%s\na pass has broken:\n%s", q->message, text);
  }
}

void survives(struct attack *t, const char *text) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  t->texts++;
  struct graph *g = graph_parse(a, source_make(a, "hostile.dg", text, strlen(text)), &d);
  if (!g || !graph_verify(g, "parse", &d)) {
    located(&d, text);
    t->refused++;
  } else {
    const char *once = graph_text(a, g);
    struct graph *again = graph_parse(a, source_make(a, "again.dg", once, strlen(once)), &d);
    if (!again || strcmp(once, graph_text(a, again)) != 0) fail_msg("does not read back:\n%s", text);
    compute(a, g);
    compile(a, g, text);
    t->taken++;
  }
  arena_destroy(a);
}
