/* SPDX-License-Identifier: Apache-2.0 */
/* What a model has, as a table: what is trained, states, and what optimizers keep. */
#include "session/summary.h"

#include "ir/graph/text.h"
#include "ir/ops/op_id.h"

#include <string.h>

enum changed_by { TRAINED, STATES, OPTIMIZERS, PARTS };

static enum changed_by part_of(const struct node *n) {
  return node_attr(n, ATTR_slot) ? OPTIMIZERS : node_int_or(n, ATTR_trainable, 0) ? TRAINED : STATES;
}

static void print_variable(struct str *out, struct arena *a, const struct node *n, int width) {
  const char *origin = node_origin(a, n), *storage = node_string_or(n, ATTR_storage, NULL);
  const char *type =
      arena_printf(a, "%s%s%s", type_text(a, &n->type), storage ? " in " : "", storage ? storage : "");
  int line = origin ? (int)strcspn(origin, " ") : 0; /* that of the model; what it calls stands behind it */
  str_printf(out, "  %-*s  %-16s %12lld%s%.*s\n", width, n->name, type, (long long)type_count(&n->type),
             line ? "  " : "", line, line ? origin : "");
}

void summary_print(struct str *out, const struct graph *g) {
  static const char *const titles[PARTS] = {"trained", "states", "of optimizers"};
  struct arena *a = out->arena;
  int width = 0;
  for (uint32_t i = 0; i < g->count; i++) {
    bool shown = g->nodes[i]->op == OP_variable && part_of(g->nodes[i]) != OPTIMIZERS;
    int len = shown ? (int)strlen(g->nodes[i]->name) : 0;
    if (len > width && len <= 40) width = len;
  }
  str_printf(out, "%s\n", g->name);
  for (enum changed_by part = TRAINED; part < PARTS; part++) {
    long long numbers = 0;
    int variables = 0;
    for (uint32_t i = 0; i < g->count; i++) {
      const struct node *n = g->nodes[i];
      if (n->op != OP_variable || part_of(n) != part) continue;
      if (part != OPTIMIZERS) print_variable(out, a, n, width);
      numbers += type_count(&n->type);
      variables++;
    }
    if (variables)
      str_printf(out, "%s: %d variable%s, %lld number%s\n", titles[part], variables, variables > 1 ? "s" : "",
                 numbers, numbers != 1 ? "s" : "");
  }
}
