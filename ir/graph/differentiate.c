/* SPDX-License-Identifier: Apache-2.0 */
/* Reverse-mode differentiation: one walk from a scalar towards what it is made of. */
#include "ir/graph/differentiate.h"

#include "ir/graph/local.h"
#include "ir/ops/op_id.h"
#include "ir/ops/scan.h"

#include <stdlib.h>
#include <string.h>

/* In this walk. */
static bool is_named(const struct differentiation *d, const struct node *dy) {
  return d->backward ? dy->gradient_of != NULL : dy->id < d->named_cap && d->named[dy->id] == d->number;
}

static void note_named(struct differentiation *d, const struct graph *g, struct node *dy,
                       const struct node *n) {
  if (d->backward) dy->gradient_of = n->name;
  if (dy->id >= d->named_cap) {
    uint32_t *old = d->named, cap = 2 * g->count;
    d->named = arena_new_array(d->arena, cap, uint32_t);
    if (old) memcpy(d->named, old, d->named_cap * sizeof *old);
    d->named_cap = cap;
  }
  d->named[dy->id] = d->number;
}

static const char *gradient_name(const struct differentiation *d, struct graph *g, const struct node *n) {
  return arena_printf(g->arena, "%s.%s", n->name, d->suffix);
}

/* What goes straight through bears the name of what it comes to. */
static void name_gradient(struct differentiation *d, struct graph *g, const struct node *n, struct node *dy) {
  if (is_named(d, dy) || op_of(n)->narrow || dy->op == OP_constant) return;
  if (graph_rename(g, dy, gradient_name(d, g, n))) note_named(d, g, dy, n);
}

/* ---- what a tower has for itself ----
 *
 * The gradient of what is another value in each tower is another one, too: what rows of the batch give it are the
 * tower's rows alone. What is the same in all towers has the gradients of all of them, summed. */

static bool has_rows(const struct node *n) { return type_batch_axis(&n->type) >= 0; }

static bool meets_rows(const struct node *n) {
  bool yes = has_rows(n);
  for (int k = 0; k < n->ninputs; k++) yes |= has_rows(n->inputs[k]);
  return yes;
}

/* Whether a rule must be taken literally: what it builds is told from what it is given. */
static bool has_own(const struct node *n) {
  bool yes = n->own || n->op == OP_aggregate;
  for (int k = 0; k < n->ninputs; k++) yes |= n->inputs[k]->own;
  return yes;
}

/* What n's rule makes of its operands and of dy, for each tower. */
static struct node *of_each_tower(struct grad *c, const struct node *n, struct node *dx, bool through_rows) {
  struct differentiation *d = c->state;
  const struct node **ends = arena_new_array(d->arena, (size_t)n->ninputs + 2, const struct node *);
  int count = 0;
  ends[count++] = d->dy;
  if (!through_rows) ends[count++] = n;
  for (int k = 0; k < n->ninputs; k++) ends[count++] = n->inputs[k];
  return build_local(d->arena, c->g, dx,
                     &(struct local_ends){.nodes = ends, .count = count, .through_rows = through_rows}, NULL);
}

static struct node *for_operand(struct grad *c, const struct node *n, const struct node *x, struct node *dx) {
  if (has_rows(x) || n->op == OP_aggregate) return dx;
  if (x->own) return meets_rows(n) ? of_each_tower(c, n, dx, false) : dx;
  return n->own ? build_sum_of_towers(c->g, dx) : dx;
}

static void accumulate(struct grad *c, const struct node *n, int input, struct node *dx) {
  struct differentiation *d = c->state;
  struct node *x = n->inputs[input];
  if (!d->needed[x->id] || !dx) return;
  if (has_own(n) && !(dx = for_operand(c, n, x, dx))) return;
  struct node *sum = d->grads[x->id];
  if (sum) {
    const char *scope = c->g->at.scope;
    c->g->at.scope = gradient_name(d, c->g, x);
    dx = build2(c->g, OP_add, sum, dx);
    c->g->at.scope = scope;
  }
  d->grads[x->id] = dx;
}

/* One of several results: they are kept until all are known. */
static void accumulate_result(struct grad *c, const struct node *n, int index, struct node *dx) {
  struct differentiation *d = c->state;
  if (!d->needed[n->id] || !dx || n->op != OP_scan) return;
  if (!d->of_results[n->id])
    d->of_results[n->id] = arena_new_array(c->g->arena, (size_t)node_results(n), struct node *);
  struct node **sum = &d->of_results[n->id][index];
  *sum = *sum ? build2(c->g, OP_add, *sum, dx) : dx;
}

static void through_scan(struct grad *c, const struct node *n) {
  struct differentiation *d = c->state;
  accumulate_result(c, n, 0, d->grads[n->id]);
  if (d->of_results[n->id]) scan_gradient(c, n, d->of_results[n->id], d->needed);
}

/* n is a reduction that each tower makes for itself: of its operands only this tower's rows have a part in it. */
static void accumulate_local(struct grad *c, const struct node *n, int input, struct node *dx) {
  struct differentiation *d = c->state;
  struct node *x = n->inputs[input];
  if (!d->needed[x->id] || !dx || !(dx = of_each_tower(c, n, dx, true))) return;
  if (!has_rows(x) && !x->own) dx = build_sum_of_towers(c->g, dx);
  struct node *sum = d->grads[x->id];
  d->grads[x->id] = sum ? build2(c->g, OP_add, sum, dx) : dx;
}

static void through_local(struct grad *c, const struct node *n, struct node *dy) {
  const struct node *x = n->inputs[0];
  struct grad inner = {.g = c->g, .state = c->state, .add = accumulate_local};
  if (op_of(x)->grad && x->op != OP_scan && x->op != OP_output) op_of(x)->grad(&inner, x, dy);
}

static int ascending(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static bool has_slope(const struct node *n) { return !(op_of(n)->traits & OP_NO_GRADIENT) && op_of(n)->grad; }

static void reach(struct differentiation *d, const struct node *n) {
  if (d->reached[n->id] == d->number) return;
  d->reached[n->id] = d->number;
  d->ids[d->count++] = n->id;
}

/* What y is made of, as far as something flows back. */
static void collect(struct differentiation *d, const struct graph *g, const struct node *y) {
  d->number++;
  d->count = 0;
  reach(d, y);
  for (uint32_t i = 0; i < d->count; i++) {
    const struct node *n = g->nodes[d->ids[i]];
    for (int k = 0; has_slope(n) && k < n->ninputs; k++) reach(d, n->inputs[k]);
  }
  qsort(d->ids, d->count, sizeof *d->ids, ascending);
}

/* Which of them depend on what is marked already. */
static void mark_needed(struct differentiation *d, const struct graph *g) {
  for (uint32_t i = 0; i < d->count; i++) {
    const struct node *n = g->nodes[d->ids[i]];
    for (int k = 0; has_slope(n) && k < n->ninputs; k++)
      if (d->needed[n->inputs[k]->id] && (dtype_is_float(n->type.dtype) || n->op == OP_scan))
        d->needed[n->id] = 1;
  }
}

static void build_for(struct differentiation *d, struct graph *g, const struct node *n) {
  build_at(g, n);
  g->at.backward = d->backward;
  g->at.scope = gradient_name(d, g, n);
}

static void walk(struct differentiation *d, struct graph *g, struct node *y) {
  uint32_t first = g->count;
  struct grad c = {.g = g,
                   .state = d,
                   .add = accumulate,
                   .result = accumulate_result,
                   .scan = through_scan,
                   .local = through_local};
  if (d->needed[y->id]) {
    build_for(d, g, y);
    d->grads[y->id] = build_scalar(g, y->type.dtype, 1);
  }
  for (uint32_t i = d->count; i-- > 0;) {
    struct node *n = g->nodes[d->ids[i]], *dy = d->grads[n->id];
    if (!dy && !d->of_results[n->id]) continue;
    if (dy && dy->id >= first) name_gradient(d, g, n, dy);
    if (!op_of(n)->grad) continue;
    build_for(d, g, n);
    bool literal = g->literal;
    g->literal |= has_own(n);
    d->dy = dy;
    op_of(n)->grad(&c, n, dy);
    g->literal = literal;
  }
}

/* Nodes up to y: those that a walk looks at. */
static void reserve(struct differentiation *d, uint32_t count) {
  if (count <= d->cap) return;
  d->cap = 2 * count;
  d->number = 0;
  d->ids = arena_new_array(d->arena, d->cap, uint32_t);
  d->reached = arena_new_array(d->arena, d->cap, uint32_t);
  d->grads = arena_new_array(d->arena, d->cap, struct node *);
  d->needed = arena_new_array(d->arena, d->cap, uint8_t);
  d->of_results = arena_new_array(d->arena, d->cap, struct node **);
}

void differentiate(struct differentiation *d, struct graph *g, struct node *y, int n, struct node *const *x,
                   struct node **out) {
  struct build_context saved = g->at;
  reserve(d, y->id + 1);
  collect(d, g, y);
  /* What y does not depend on may have been built behind it. */
  for (int i = 0; i < n; i++)
    if (x[i]->id <= y->id) d->needed[x[i]->id] = 1;
  mark_needed(d, g);
  walk(d, g, y);
  for (int i = 0; i < n; i++) out[i] = x[i]->id <= y->id ? d->grads[x[i]->id] : NULL;
  for (int i = 0; i < n; i++)
    if (x[i]->id <= y->id) d->needed[x[i]->id] = 0;
  for (uint32_t i = 0; i < d->count; i++) {
    d->needed[d->ids[i]] = 0;
    d->grads[d->ids[i]] = NULL;
    d->of_results[d->ids[i]] = NULL;
  }
  g->at = saved;
}
