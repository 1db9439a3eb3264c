/* The certificate's reading of the source: what each node is for the whole batch, and for the rows of each
 * tower.
 *
 * A value with a batch axis is cut into rows. An op is cut with its operands if each of its rows depends on
 * the same row of them alone; where the axis disappears, the value is a reduction over the towers, and each
 * tower's value is a share of it. Rows that are added to a table are added once, those of all towers one behind
 * the other. Everything else exists once. With one tower nothing is cut. */
#include "ir/build.h"
#include "ir/certify_walk.h"

#include <string.h>

int64_t certify_rows(const struct certify *c, int tower) {
  return c->batch / c->towers + (tower < c->batch % c->towers);
}

int64_t certify_first(const struct certify *c, int tower) {
  int64_t longer = c->batch % c->towers;
  return tower * (c->batch / c->towers) + (tower < longer ? tower : longer);
}

struct node *certify_make(struct certify *c, const struct node *like, struct node *const *in, int nattrs,
                          const struct attr *attrs, const struct type *type, int tower) {
  c->ref->tower = tower;
  if (like->op == OP_slice || like->op == OP_concat) {
    struct node n = *like;
    const char *why;
    n.inputs = (struct node **)(uintptr_t)in;
    n.nattrs = nattrs;
    n.attrs = attrs;
    if (type) n.type = *type;
    struct node *runs = node_infer(c->ref, &n, &why) ? certify_runs(c, &n) : NULL;
    if (runs) return runs;
  }
  return build_named(c->ref, like->name, like->op, like->ninputs, in, nattrs, attrs, type);
}

static const char *name_of(struct certify *c, const struct node *n, int tower) {
  return tower < 1 ? n->name : arena_printf(c->arena, "tower_%d/%s", tower, n->name);
}

/* What becomes of the batch in an op. */
enum spread { SPREAD_NOT, SPREAD_ROWS, SPREAD_SUM, SPREAD_MAX, SPREAD_MIN, SPREAD_MIXED };

/* The rows of a reshape stay one block each if as much stands before the batch as stood there. */
static bool keeps_blocks(const struct type *x, const struct type *y) {
  int64_t before[2] = {1, 1};
  const struct type *t[2] = {x, y};
  for (int k = 0; k < 2; k++)
    for (int i = 0; t[k]->dim[i] >= 0; i++) before[k] *= t[k]->dim[i];
  return before[0] == before[1];
}

static bool row_by_row(const struct node *n, int axis) {
  switch (n->op) {
  case OP_input:
  case OP_random_uniform:
  case OP_random_normal: return axis == 0;
  case OP_reshape: return keeps_blocks(&n->inputs[0]->type, &n->type);
  case OP_concat: return node_int(n, ATTR_axis) != axis;
  case OP_iota:
  case OP_matmul: return true;
  case OP_variable:
  case OP_newest:
  case OP_assign: return false;
  default: break;
  }
  enum op_kind kind = op_of(n)->kind;
  return kind == KIND_ELEMENTWISE || kind == KIND_MOVEMENT || kind == KIND_REDUCE || kind == KIND_LEAF;
}

static bool adds_rows(const struct node *n) {
  return n->op == OP_scatter_add && type_batch_axis(&n->inputs[1]->type) >= 0;
}

static enum spread spread_of(const struct certify *c, const struct node *n) {
  int axis = type_batch_axis(&n->type);
  if (axis >= 0) return row_by_row(n, axis) ? SPREAD_ROWS : SPREAD_MIXED;
  bool cut = false, apart = n->op == OP_tower_id;
  for (int i = 0; i < n->ninputs; i++) {
    cut = cut || type_batch_axis(&n->inputs[i]->type) >= 0;
    apart = apart || c->apart[n->inputs[i]->id];
  }
  if (!cut && apart && n->op != OP_assign) return SPREAD_ROWS;
  if (!cut || adds_rows(n)) return SPREAD_NOT;
  switch (n->op) {
  case OP_reduce_sum:
  case OP_matmul: return SPREAD_SUM;
  case OP_reduce_max: return SPREAD_MAX;
  case OP_reduce_min: return SPREAD_MIN;
  default: return SPREAD_MIXED;
  }
}

/* The view's towers' values in one: their reduction, or without `how` their rows one behind the other. */
static struct node *join(struct certify *c, const struct node *n, const char *how) {
  struct node like = {.op = how ? OP_all_reduce : OP_all_gather,
                      .name = arena_printf(c->arena, "%s of all towers", n->name),
                      .ninputs = c->view->count};
  struct attr a = attr_string(ATTR_reduction, how);
  struct node **rows = &c->rows[(size_t)n->id * (size_t)c->towers + (size_t)c->view->first];
  return certify_make(c, &like, rows, how != NULL, &a, NULL, -1);
}

/* n for a tower's rows, or for the whole batch. */
struct node *certify_instance(struct certify *c, const struct node *n, struct node *const *in, int tower,
                              int64_t counted) {
  struct type t = type_specialize(&n->type, tower < 0 ? c->batch : certify_rows(c, tower));
  int64_t first = tower < 0 ? 0 : certify_first(c, tower);
  int axis = type_batch_axis(&n->type), nattrs = 0;
  struct attr attrs[ATTR_COUNT];
  for (int i = 0; i < n->nattrs; i++) /* an offset of 0 is none, as in what the placed graph computes */
    if (n->attrs[i].key != ATTR_offset || n->attrs[i].i != 0) attrs[nattrs++] = n->attrs[i];
  int64_t offset = 0;
  if (n->op == OP_tower_id || n->op == OP_tower_count) return certify_number(c, n, tower);
  if (n->op == OP_iota && axis == node_int(n, ATTR_axis)) offset = -first * n->type.dim[axis];
  if ((n->op == OP_random_uniform || n->op == OP_random_normal) && axis >= 0) {
    offset = first;
    for (int i = 0; i < n->type.rank; i++) offset *= i == axis ? -n->type.dim[i] : n->type.dim[i];
  }
  if (offset) attrs[nattrs++] = attr_int(ATTR_offset, offset);
  if (n->op == OP_batch_size && !node_attr(n, ATTR_batch)) attrs[nattrs++] = attr_int(ATTR_batch, counted);
  struct node like = *n;
  like.name = name_of(c, n, tower);
  return certify_make(c, &like, in, nattrs, attrs, op_of(n)->traits & OP_TYPED ? &t : NULL, tower);
}

/* A tower's rows of an input. */
static struct node *rows_of_input(struct certify *c, const struct node *n, struct node *whole, int tower) {
  struct node like = {
      .op = OP_split, .name = arena_printf(c->arena, "rows_%d/%s", tower, n->name), .ninputs = 1};
  struct attr first = attr_int(ATTR_offset, -n->type.dim[0] * certify_first(c, tower));
  struct type t = type_specialize(&n->type, certify_rows(c, tower));
  return certify_make(c, &like, &whole, 1, &first, &t, tower);
}

void certify_note_share(struct certify *c, struct node *x, struct node *whole, struct node *alone,
                        enum op_id how) {
  struct share *s = arena_new(c->arena, struct share), **at = &c->share[x->id];
  while (*at && (*at)->whole != whole) at = &(*at)->next;
  *s = (struct share){whole, alone, how, NULL};
  if (!*at) *at = s;
}

static bool read_rows(struct certify *c, const struct node *n, enum spread spread, struct node **in) {
  struct node **rows = &c->rows[(size_t)n->id * (size_t)c->towers];
  for (int t = c->view->first; t < c->view->first + c->view->count; t++) {
    if (rows[t]) continue;
    for (int k = 0; k < n->ninputs; k++) {
      uint32_t x = n->inputs[k]->id;
      bool cut = type_batch_axis(&n->inputs[k]->type) >= 0 || c->apart[x];
      in[k] = cut ? c->rows[(size_t)x * (size_t)c->towers + (size_t)t] : c->whole[x];
    }
    rows[t] = n->op == OP_input ? rows_of_input(c, n, c->whole[n->id], t)
                                : certify_instance(c, n, in, t, c->view->rows);
    if (type_batch_axis(&n->type) < 0 && spread == SPREAD_ROWS) rows[t] = certify_lift(c, rows[t], t);
    if (!rows[t]) return false;
  }
  c->apart[n->id] = spread == SPREAD_ROWS && type_batch_axis(&n->type) < 0;
  if (spread == SPREAD_ROWS) return true;
  static const char *const names[] = {[SPREAD_SUM] = "sum", [SPREAD_MAX] = "max", [SPREAD_MIN] = "min"};
  c->whole[n->id] = join(c, n, names[spread]);
  return c->whole[n->id] != NULL;
}

/* The first `axes` axes of x as one. */
static struct node *flat(struct certify *c, struct node *x, int axes, int tower) {
  struct node like = {.op = OP_reshape, .name = arena_printf(c->arena, "%s as rows", x->name), .ninputs = 1};
  struct type t = {.dtype = x->type.dtype, .rank = 1, .dim = {1}};
  for (int i = 0; i < axes; i++) t.dim[0] *= x->type.dim[i];
  for (int i = axes; i < x->type.rank; i++) t.dim[t.rank++] = x->type.dim[i];
  return certify_make(c, &like, &x, 0, NULL, &t, tower);
}

/* What all towers add, or to which rows: those of an input are there as a whole. */
static struct node *added_rows(struct certify *c, const struct node *n, int axes) {
  int first = c->view->first, count = c->view->count;
  if (n->op == OP_input && count == c->towers) return flat(c, c->whole[n->id], axes, -1);
  struct node *const *rows = &c->rows[(size_t)n->id * (size_t)c->towers + (size_t)first];
  struct node **of = arena_new_array(c->arena, (size_t)count, struct node *);
  for (int t = 0; t < count; t++)
    if (!(of[t] = flat(c, rows[t], axes, first + t))) return NULL;
  struct node like = {
      .op = OP_all_gather, .name = arena_printf(c->arena, "%s of all towers", n->name), .ninputs = count};
  return certify_make(c, &like, of, 0, NULL, NULL, -1);
}

/* Variables and their updates, as the view has them. */
static struct node *read_variable(struct certify *c, const struct node *n, struct node *const *in) {
  bool last = c->view == &c->views[c->nviews - 1];
  struct node **versions =
      &c->versions[(size_t)(n->op == OP_variable ? n : n->inputs[0])->id * (size_t)c->nviews];
  if (n->op == OP_variable) {
    if (!versions[0]) versions[0] = certify_instance(c, n, NULL, -1, c->view->rows);
    return certify_version(c, n, c->view->reads);
  }
  if (n->op == OP_newest) return certify_version(c, n->inputs[0], c->view->newest);
  if (last) return c->nviews > 1 ? certify_version(c, n->inputs[0], c->nviews - 1) : in[1];
  if (c->view->rows > 0) versions[c->view->newest + 1] = in[1];
  return in[1];
}

static bool is_variable(const struct node *n) {
  return n->op == OP_variable || n->op == OP_newest || n->op == OP_assign;
}

static bool read_node(struct certify *c, const struct node *n, struct node **in) {
  if (certify_is_apart(c, n)) {
    if ((c->whole[n->id] = certify_apart(c, n)) && certify_own(c, n, in)) return true;
    certify_breach(c, CLAIM_GRADIENTS, NULL, "%s (%s) of the source joins nothing", n->name, op_of(n)->name);
    return false;
  }
  enum spread spread = c->towers == 1 ? SPREAD_NOT : spread_of(c, n);
  if (spread == SPREAD_MIXED) {
    certify_breach(c, CLAIM_TOWERS, NULL, "no rule says how %s (%s) of the source lies over towers", n->name,
                   op_of(n)->name);
    return false;
  }
  bool input = n->op == OP_input;
  for (int k = 0; k < n->ninputs; k++)
    in[k] = k > 0 && c->towers > 1 && adds_rows(n) ? added_rows(c, n->inputs[k], n->inputs[1]->type.rank)
                                                   : c->whole[n->inputs[k]->id];
  bool read = is_variable(n) ? (c->whole[n->id] = read_variable(c, n, in)) != NULL
              : spread == SPREAD_NOT || input
                  ? (c->whole[n->id] = certify_instance(c, n, in, -1, c->view->rows)) != NULL
                  : true;
  if (read && spread != SPREAD_NOT) read = read_rows(c, n, spread, in);
  read = read && certify_own(c, n, in);
  if (!read)
    certify_breach(c, CLAIM_TOWERS, NULL, "%s (%s) of the source means nothing for %lld rows in %d towers",
                   n->name, op_of(n)->name, (long long)c->batch, c->towers);
  return read;
}

/* Results with a row per example. */
static bool read_results(struct certify *c) {
  for (int i = 0; c->towers > 1 && i < c->source->noutputs; i++) {
    const struct node *n = c->source->outputs[i].node;
    if (c->whole[n->id]) continue;
    if (n->type.rank && n->type.dim[0] < 0 && (c->whole[n->id] = join(c, n, NULL))) continue;
    certify_breach(c, CLAIM_RESULTS, NULL, "the rows of %s of the source cannot be joined", n->name);
    return false;
  }
  return true;
}

bool certify_source(struct certify *c) {
  const struct graph *g = c->source;
  struct arena *a = c->arena;
  uint8_t *live = graph_live(a, g);
  c->versions = arena_array(a, (size_t)(g->count + 1) * (size_t)c->nviews, sizeof *c->versions);
  c->rows = arena_array(a, (size_t)(g->count + 1) * (size_t)c->towers, sizeof *c->rows);
  certify_own_begin(c, live);
  int most = 1;
  for (uint32_t i = 0; i < g->count; i++)
    if (g->nodes[i]->ninputs > most) most = g->nodes[i]->ninputs;
  struct node **in = arena_new_array(a, (size_t)most, struct node *);
  struct node ***whole = arena_new_array(a, (size_t)c->nviews, struct node **);
  for (int v = 0; v < c->nviews; v++) {
    c->view = &c->views[v];
    c->whole = whole[v] = arena_new_array(a, g->count + 1, struct node *);
    for (uint32_t i = 0; i < g->count; i++)
      if (live[i] && !read_node(c, g->nodes[i], in)) return false;
  }
  if (!read_results(c)) return false;
  c->known = c->ref->count;
  c->share = arena_new_array(a, c->known + 1, struct share *);
  for (uint32_t i = 0; c->towers > 1 && i < g->count; i++) {
    if (!live[i] || !node_is(c->whole[i], OP_all_reduce)) continue;
    if (certify_is_apart(c, g->nodes[i])) continue;
    enum spread spread = spread_of(c, g->nodes[i]);
    if (spread < SPREAD_SUM) continue;
    enum op_id how = spread == SPREAD_SUM ? OP_add : spread == SPREAD_MAX ? OP_max : OP_min;
    for (int t = 0; t < c->towers; t++) {
      struct node *x = c->rows[(size_t)i * (size_t)c->towers + (size_t)t], *alone = NULL;
      for (int v = 0; v + 1 < c->nviews; v++)
        if (t >= c->views[v].first && t < c->views[v].first + c->views[v].count) alone = whole[v][i];
      if (x->tower == t) certify_note_share(c, x, c->whole[i], alone, how);
    }
  }
  certify_own_shares(c);
  return true;
}
