/* What each tower has of its own: the value that a node has for a tower which sees its own rows and no others.
 *
 * An aggregate joins such values: their sum, their mean, or the first tower's. Reductions that it is made of are those
 * of the tower's rows; rows are the model's own, whatever statistics of the batch are in them, unless towers are to be
 * `apart`. A variable that is joined on read has a copy on each tower, which its updates see and write; everybody else
 * reads all copies as one value. A tower without rows has no part in an aggregate and updates nothing, except for
 * what does not depend on anything. */
#include "passes/replicate/replicate.h"

#include <string.h>

bool joins_own(const struct node *n) { return n->op == OP_aggregate || is_on_read(n); }

static struct node **copies_of(const struct replicate *r, const struct node *n) {
  return &r->towers[(size_t)n->id * (size_t)r->s.towers];
}

/* Towers whose values count in an aggregate. */
static bool takes_part(const struct replicate *r, const struct group *g, int tower) {
  return tower_rows(tower, r->s.towers, r->batch) > 0 || (g->rows == 0 && tower == g->first_tower);
}

static int takers(const struct replicate *r, const struct group *g) {
  int n = 0;
  for (int t = g->first_tower; t < g->first_tower + g->ntowers; t++) n += takes_part(r, g, t);
  return n;
}

bool distribute_own(struct replicate *r, const struct node *n) {
  bool varies = n->op == OP_batch_size || n->op == OP_tower_id || is_on_read(n) || type_is_symbolic(&n->type);
  for (int k = 0; k < n->ninputs; k++)
    varies |= r->varies[n->inputs[k]->id] && n->inputs[k]->op != OP_aggregate;
  r->varies[n->id] = varies;
  if (n->op != OP_aggregate || varies || r->single) return true;
  bool sum = strcmp(node_string(n, ATTR_reduction), "sum") == 0;
  if (!sum || node_int_or(n, ATTR_each, 0)) return true;
  diag_error(r->ctx->diags, n->loc,
             "%s cannot be summed over %d towers: its value is the same in all of them", n->name,
             r->s.towers);
  diag_help(
      r->ctx->diags, LOC_NONE,
      "aggregation(mean) keeps the value; `+=` adds it once for each tower; a sum is of what towers have of "
      "their own rows");
  return false;
}

/* ---- needs ---- */

/* Whether a tower's own value of n is what it has of the model's rows. */
static bool is_rows(const struct replicate *r, const struct node *n) {
  return n->op == OP_input || (!r->apart && type_batch_axis(&n->type) >= 0);
}

void want_own(struct replicate *r, struct group *g, const struct node *x) {
  if (r->varies[x->id] && x->op != OP_aggregate)
    g->wants_own[x->id] = 1;
  else
    require(r, g, x, g->workers);
}

void mark_own(struct replicate *r, struct group *g, const struct node *n) {
  if (is_rows(r, n))
    g->wanted[n->id] = 1;
  else
    for (int k = 0; k < n->ninputs; k++) want_own(r, g, n->inputs[k]);
}

/* ---- clones ---- */

static struct node *own_value(struct replicate *r, const struct group *g, const struct node *x, int tower) {
  if (!r->varies[x->id] || x->op == OP_aggregate)
    return mirrored_value(r, g, x, strategy_worker(&r->s, tower));
  struct node **of = is_on_read(x) || is_rows(r, x) ? r->towers : r->own;
  return of[(size_t)x->id * (size_t)r->s.towers + (size_t)tower];
}

/* The model's own name where the model has no such value for all towers. */
static const char *own_name(struct replicate *r, const struct node *n, int tower) {
  const char *name = tower_name(r, n->name, tower);
  if (!graph_find(r->to, n->name) && !graph_find(r->to, name)) return name;
  return tower_name(r, arena_printf(r->to->arena, "own/%s", n->name), tower);
}

bool clone_own(struct replicate *r, struct group *g, const struct node *n, struct node **in) {
  if (is_rows(r, n) || is_on_read(n)) return true;
  const char **names = arena_new_array(r->ctx->scratch, (size_t)r->s.towers, const char *);
  for (int t = g->first_tower; t < g->first_tower + g->ntowers; t++) names[t] = own_name(r, n, t);
  for (int t = g->first_tower; t < g->first_tower + g->ntowers; t++) {
    int64_t rows = tower_rows(t, r->s.towers, r->batch);
    struct slice s = {t, rows, tower_first_row(t, r->s.towers, r->batch), rows};
    for (int k = 0; k < n->ninputs; k++) in[k] = own_value(r, g, n->inputs[k], t);
    place_context(r, n, DIST_PER_REPLICA, t, -1);
    struct node *c = clone(r, n, names[t], in, s);
    if (!(c = lift(r, n, c, t))) return false;
    r->own[(size_t)n->id * (size_t)r->s.towers + (size_t)t] = c;
  }
  return true;
}

bool clone_copies(struct replicate *r, const struct node *n) {
  for (int t = 0; t < r->s.towers; t++) {
    if (copies_of(r, n)[t]) continue;
    place_context(r, n, DIST_PER_REPLICA, t, -1);
    copies_of(r, n)[t] =
        build_named(r->to, tower_name(r, n->name, t), OP_variable, 0, NULL, n->nattrs, n->attrs, &n->type);
    if (!copies_of(r, n)[t]) return false;
  }
  return true;
}

/* x with another distribution, which the builder would fold away. */
static struct node *relabel(struct replicate *r, const struct node *n, struct node *x, enum dist dist,
                            int tower, const char *suffix) {
  struct node proto = {.op = OP_identity,
                       .type = x->type,
                       .dist = dist,
                       .ninputs = 1,
                       .inputs = &x,
                       .name = tower_name(r, arena_printf(r->to->arena, "%s%s", n->name, suffix), tower),
                       .loc = n->loc,
                       .trail = n->trail,
                       .origin = n->origin,
                       .want = n->want,
                       .tower = tower,
                       .replica = -1,
                       .device = -1};
  return graph_node(r->to, &proto);
}

/* A tower's value as its share of a sum. */
static struct node *share(struct replicate *r, const struct node *n, struct node *x, int tower) {
  return relabel(r, n, x, DIST_PARTIAL, tower, ".share");
}

struct node *lift(struct replicate *r, const struct node *n, struct node *x, int tower) {
  if (!x || r->single || x->dist != DIST_MIRRORED) return x;
  return relabel(r, n, x, DIST_PER_REPLICA, tower, ".own");
}

static bool is_first(const char *how) { return strcmp(how, "only_first_replica") == 0; }

bool clone_shares(struct replicate *r, struct group *g, const struct node *n) {
  for (int t = g->first_tower; t < g->first_tower + g->ntowers; t++) {
    struct node *x = own_value(r, g, n->inputs[0], t);
    if (x && !takes_part(r, g, t) && !is_first(r->reduction[n->id])) {
      place_context(r, n, DIST_PER_REPLICA, t, -1);
      r->to->scope = tower_name(r, n->name, t);
      x = build_fill(r->to, &n->type, 0);
    }
    if (x && !is_first(r->reduction[n->id])) x = share(r, n, x, t);
    if (!x) return false;
    copies_of(r, n)[t] = x;
  }
  return true;
}

bool clone_assigns(struct replicate *r, struct group *g, const struct node *n) {
  const struct node *v = n->inputs[0], *value = n->inputs[1];
  for (int t = g->first_tower; t < g->first_tower + g->ntowers; t++) {
    struct node *in[2] = {copies_of(r, v)[t], own_value(r, g, value, t)};
    if (!takes_part(r, g, t) && !r->fixed[value->id]) continue;
    place_context(r, n, DIST_PER_REPLICA, t, -1);
    copies_of(r, n)[t] = build_named(r->to, tower_name(r, n->name, t), OP_assign, 2, in, 0, NULL, NULL);
    if (!copies_of(r, n)[t]) return false;
  }
  return true;
}

/* ---- joining ---- */

bool join_own(struct replicate *r, struct group *g, const struct node *n, int device) {
  const char *how = r->reduction[n->id], *name = sum_name(r, g, n->name);
  bool copies = is_on_read(n);
  int first = copies ? 0 : g->first_tower, towers = copies ? r->s.towers : g->ntowers;
  struct node **of = &copies_of(r, n)[first], *sum;
  if (copies && !is_first(how)) {
    of = arena_new_array(r->ctx->scratch, (size_t)towers, struct node *);
    for (int t = 0; t < towers; t++)
      if (!(of[t] = share(r, n, copies_of(r, n)[t], t))) return false;
  }
  struct attr by = attr_string(ATTR_reduction, is_first(how) ? how : "sum");
  place_context(r, n, DIST_MIRRORED, -1, device);
  sum = build_named(r->to, name, OP_all_reduce, is_first(how) ? 1 : towers, of, 1, &by, NULL);
  if (sum && strcmp(how, "mean") == 0) {
    r->to->scope = arena_printf(r->to->arena, "%s.count", name);
    struct node *in[2] = {sum, build_fill(r->to, &n->type, copies ? towers : takers(r, g))};
    sum = build_named(r->to, arena_printf(r->to->arena, "%s.mean", name), OP_div, 2, in, 0, NULL, NULL);
  }
  return (g->sums[n->id] = sum) != NULL;
}

struct node *aggregate_same(struct replicate *r, const struct group *g, const struct node *n,
                            struct node *x) {
  if (r->single || strcmp(node_string(n, ATTR_reduction), "sum") != 0 || !x) return x;
  r->to->scope = copy_name(r, g, n, n->name, r->to->replica);
  return build2(r->to, OP_mul, x, build_fill(r->to, &n->type, takers(r, g)));
}
