/* SPDX-License-Identifier: Apache-2.0 */
/* What a tower has for itself. The batch is met in reductions of rows and in its count: each of them becomes a `local`
 * node, which replication reads for the tower's rows, and what is made of them is ordinary arithmetic of the tower. */
#include "ir/graph/local.h"

#include "ir/ops/op_id.h"

#include <stdlib.h>

static bool has_rows(const struct node *n) { return type_batch_axis(&n->type) >= 0; }

static bool reads_rows(const struct node *n) {
  for (int i = 0; i < n->ninputs; i++)
    if (has_rows(n->inputs[i])) return true;
  return false;
}

bool node_is_own(const struct node *n) {
  if (n->op == OP_local || n->op == OP_tower_id) return true;
  if (n->op == OP_aggregate || n->op == OP_assign || has_rows(n) || reads_rows(n)) return false;
  for (int i = 0; i < n->ninputs; i++)
    if (n->inputs[i]->own) return true;
  return false;
}

/* It has no rows, and is another value for other rows of the batch, by itself. */
static bool meets_batch(const struct node *n) {
  return !has_rows(n) && (n->op == OP_batch_size || reads_rows(n));
}

struct local_reading {
  const struct local_ends *ends;
  uint32_t *ids; /* what is read, ascending once it is sorted */
  uint32_t count;
  uint8_t *met;
  uint32_t *statistic; /* by id: its place in that list, from 1; 0: it is none */
};

static const struct statistic *statistic_of(const struct local_reading *r, const struct node *n) {
  return r->statistic[n->id] ? &r->ends->statistics[r->statistic[n->id] - 1] : NULL;
}

static void find_statistics(struct local_reading *r, const struct graph *g, const struct node *x) {
  for (int i = 0; i < r->ends->nstatistics; i++) {
    const struct node *n = r->ends->statistics[i].node;
    if (n->id <= x->id && g->nodes[n->id] == n) r->statistic[n->id] = (uint32_t)i + 1;
  }
}

static bool is_end(const struct local_reading *r, const struct node *n) {
  if (n->op == OP_local || n->op == OP_tower_id || n->op == OP_aggregate ||
      (has_rows(n) && !r->ends->through_rows))
    return true;
  for (int i = 0; i < r->ends->count; i++)
    if (r->ends->nodes[i] == n) return true;
  return false;
}

static void meet(struct local_reading *r, const struct node *n) {
  if (r->met[n->id]) return;
  r->met[n->id] = 1;
  r->ids[r->count++] = n->id;
}

static int ascending(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

/* What x is made of, up to the ends. */
static struct local_reading collect(struct arena *a, const struct graph *g, const struct node *x,
                                    const struct local_ends *ends) {
  struct local_reading r = {.ends = ends};
  r.ids = arena_new_array(a, x->id + 1, uint32_t);
  r.met = arena_new_array(a, x->id + 1, uint8_t);
  r.statistic = arena_new_array(a, x->id + 1, uint32_t);
  find_statistics(&r, g, x);
  meet(&r, x);
  for (uint32_t i = 0; i < r.count; i++) {
    const struct node *n = g->nodes[r.ids[i]];
    bool on = !is_end(&r, n) && !statistic_of(&r, n);
    for (int k = 0; on && k < n->ninputs; k++) meet(&r, n->inputs[k]);
  }
  qsort(r.ids, r.count, sizeof *r.ids, ascending);
  return r;
}

/* Whether it is read for the tower's rows. */
static bool is_of_tower(const struct local_reading *r, const struct node *n) {
  return r->met[n->id] && !has_rows(n) && (reads_rows(n) || statistic_of(r, n));
}

/* Which of the values that are read for the tower's rows is in the rows that end the reading. These come later. */
static const struct node *mixed_in(struct arena *a, const struct graph *g, const struct local_reading *r) {
  struct local_reading rows = {.ends = r->ends};
  rows.ids = arena_new_array(a, r->ids[r->count - 1] + 1, uint32_t);
  rows.met = arena_new_array(a, r->ids[r->count - 1] + 1, uint8_t);
  uint32_t first = 0; /* the ids ascend */
  while (first < r->count && !is_of_tower(r, g->nodes[r->ids[first]])) first++;
  if (first == r->count) return NULL;
  for (uint32_t i = first; i < r->count; i++)
    if (has_rows(g->nodes[r->ids[i]])) meet(&rows, g->nodes[r->ids[i]]);
  for (uint32_t i = 0; i < rows.count; i++) {
    const struct node *n = g->nodes[rows.ids[i]];
    if (is_of_tower(r, n)) return n;
    for (int k = 0; k < n->ninputs; k++)
      if (n->inputs[k]->id >= r->ids[first]) meet(&rows, n->inputs[k]);
  }
  return NULL;
}

static struct node *build_statistic(struct arena *a, struct graph *g, const struct statistic *s) {
  return build_local(a, g, s->node, &(struct local_ends){.nodes = &s->of, .count = 1, .through_rows = true},
                     NULL);
}

struct node *build_local(struct arena *a, struct graph *g, struct node *x, const struct local_ends *ends,
                         const struct node **mixed) {
  struct local_reading r = collect(a, g, x, ends);
  if (mixed && (*mixed = mixed_in(a, g, &r))) return NULL;
  struct node **map = arena_new_array(a, x->id + 1, struct node *);
  for (uint32_t i = 0; i < r.count; i++) {
    struct node *n = g->nodes[r.ids[i]], *made = n;
    const struct statistic *statistic = is_end(&r, n) ? NULL : statistic_of(&r, n);
    if (statistic) {
      made = build_statistic(a, g, statistic);
    } else if (!is_end(&r, n)) {
      struct node **in = arena_new_array(a, (size_t)n->ninputs + 1, struct node *);
      bool same = true;
      for (int k = 0; k < n->ninputs; k++) same &= (in[k] = map[n->inputs[k]->id]) == n->inputs[k];
      for (int k = 0; k < n->ninputs; k++)
        if (!in[k]) return NULL;
      bool typed = op_of(n)->traits & OP_TYPED;
      if (!same) made = build(g, n->op, n->ninputs, in, n->nattrs, n->attrs, typed ? &n->type : NULL);
      if (made && !ends->joined && meets_batch(made)) made = build1(g, OP_local, made);
    }
    if (!(map[n->id] = made)) return NULL;
  }
  return map[x->id];
}
