/* SPDX-License-Identifier: Apache-2.0 */
/* What a tower has of its own rows: in `local`, and where a variable is declared with an aggregation.
 *
 * A value is read for a tower by reading the reductions of the batch that it is made of for the tower's rows; rows are
 * the model's. So what is made both of a reduction and of rows that have it in them would be half of the one meaning
 * and half of the other, and is refused. Statistics are computed by such rows, and are by themselves what they are:
 * they are made again for the tower, rows and all. */
#include "frontend/resolve.h"
#include "ir/graph/local.h"

void note_statistic(struct resolver *r, struct node *n, const struct node *of) {
  if (!n) return;
  r->statistics.items =
      arena_grown(r->arena, r->statistics.items, r->statistics.count, sizeof *r->statistics.items);
  r->statistics.items[r->statistics.count++] = (struct statistic){n, of};
}

/* Whether x is made of rows that have a value of all rows in them; nothing else can be mixed. */
static bool may_mix(struct resolver *r, const struct node *x) {
  struct node_walk *w = &r->walk;
  uint32_t depth = 0;
  reach_total(&r->reach, r->g, x);
  walk_begin(&r->walk, r->arena, r->g);
  walk_to(w, x, &depth);
  while (depth > 0) {
    const struct node *n = w->stack[--depth];
    bool rows = type_is_symbolic(&n->type);
    if (rows && reach_total(&r->reach, r->g, n)) return true;
    for (int i = 0; !rows && i < n->ninputs; i++) walk_to(w, n->inputs[i], &depth);
  }
  return false;
}

struct node *read_for_tower(struct resolver *r, struct node *x, bool joined, struct loc loc) {
  if (joined && !may_mix(r, x)) return x;
  const struct local_ends ends = {
      .statistics = r->statistics.items, .nstatistics = r->statistics.count, .joined = joined};
  const struct node *mixed = NULL;
  struct arena *scratch = arena_create();
  struct node *y = build_local(scratch, r->g, x, &ends, &mixed);
  arena_destroy(scratch);
  if (!mixed) return y;
  report(r, loc,
         "`%s` would be of a tower's rows in this value, and of the whole batch in the rows that it is "
         "made of",
         mixed->name);
  report_help(r, "make it local first, and the rows of that: `center = local(mean(x, axis = 0))`, then "
                 "`local(mean(square(x - center), axis = 0))`");
  return NULL;
}
