/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/expect.h"

#include "ir/ops/op_id.h"
#include "passes/pass.h"

#include <string.h>

static void count_elements(struct expectation *e, const struct bounds *b) {
  int64_t count = type_count(&b->value.type), unknown = bounds_unknown(b), exact = 0;
  for (int64_t i = 0; i < count; i++) exact += !b->at || b->at[i].lo == b->at[i].hi;
  e->exact += exact;
  e->unknown += unknown;
  e->inside += count - exact - unknown;
}

bool expect_step(struct arena *a, struct graph *source, int64_t rows, const struct values *inputs,
                 const struct values *variables, struct diags *d, struct expectation *out) {
  struct pipeline_options o = {.verify_each = true};
  struct graph *g = pipeline_run(a, source, "grad,rows", NULL, &o, d);
  if (!g) return false;
  *out = (struct expectation){.g = graph_concrete(a, g, rows), .exact_products = true};
  out->bounds = arena_new_array(a, out->g->count + 1, struct bounds);
  if (!graph_bounds(a, out->g, inputs, variables, TOWER_ADDITIONS, out->bounds)) return false;
  for (uint32_t i = 0; i < out->g->count; i++) {
    const struct node *n = out->g->nodes[i];
    bool product = n->op == OP_matmul || n->op == OP_conv;
    if (product && n->type.dtype == DT_F32 && out->bounds[i].at) out->exact_products = false;
  }
  for (int i = 0; i < out->g->noutputs; i++) count_elements(out, &out->bounds[out->g->outputs[i].node->id]);
  return true;
}

static const char *wrong_output(struct arena *a, const struct expectation *e, const struct output *o,
                                const struct values *outputs, const struct values *after) {
  bool update = o->role == OUTPUT_UPDATE;
  const char *name = update ? o->node->inputs[0]->name : o->name;
  const struct tensor *got = values_get(update ? after : outputs, name);
  if (!got) return arena_printf(a, "%s is missing", name);
  const char *wrong = bounds_breach(a, &e->bounds[o->node->id], got);
  return wrong ? arena_printf(a, "%s %s: %s", update ? "variable" : "output", name, wrong) : NULL;
}

/* The value after the step of a variable that nothing assigns. */
static const char *changed(struct arena *a, const struct expectation *e, const char *name,
                           const struct values *before, const struct tensor *now) {
  const struct tensor *was = values_get(before, name);
  for (int i = 0; i < e->g->noutputs; i++)
    if (e->g->outputs[i].role == OUTPUT_UPDATE && strcmp(e->g->outputs[i].node->inputs[0]->name, name) == 0)
      return NULL;
  const char *wrong = was ? tensor_difference(a, was, now) : NULL;
  return wrong ? arena_printf(a, "variable %s was not assigned: %s", name, wrong) : NULL;
}

const char *expect_breach(struct arena *a, const struct expectation *e, const struct values *before,
                          const struct values *outputs, const struct values *after) {
  for (int i = 0; i < e->g->noutputs; i++) {
    const char *wrong = wrong_output(a, e, &e->g->outputs[i], outputs, after);
    if (wrong) return wrong;
  }
  for (uint32_t i = 0; i < after->map.count; i++) {
    const char *name = after->map.entries[i].key, *slash = strstr(name, "/replica_");
    const struct tensor *t = after->map.entries[i].value;
    const char *wrong = NULL;
    if (!slash) {
      wrong = changed(a, e, name, before, t);
    } else {
      const struct tensor *primary = values_get(after, arena_strndup(a, name, (size_t)(slash - name)));
      wrong = primary ? tensor_difference(a, primary, t) : "it has no primary copy";
      if (wrong) wrong = arena_printf(a, "copy %s: %s", name, wrong);
    }
    if (wrong) return wrong;
  }
  return NULL;
}

const char *values_difference(struct arena *a, const struct values *want, const struct values *got) {
  for (uint32_t i = 0; i < want->map.count; i++) {
    const char *name = want->map.entries[i].key;
    if (strstr(name, "/replica_")) continue;
    const struct tensor *t = values_get(got, name);
    const char *wrong = t ? tensor_difference(a, want->map.entries[i].value, t) : "it is missing";
    if (wrong) return arena_printf(a, "%s: %s", name, wrong);
  }
  return NULL;
}
