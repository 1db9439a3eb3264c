/* The certificate's reading of the source: what each node is for the whole batch, and for the rows of each
 * tower.
 *
 * A value with a batch axis is cut into rows. An op is cut with its operands if each of its rows depends on
 * the same row of them alone; where the axis disappears, the value is a reduction over the towers, and each
 * tower's value is a share of it. Rows that are added to a table are added once, those of all towers one behind
 * the other. Everything else exists once. With one tower nothing is cut. */
#include "ir/certify/walk.h"
#include "ir/graph/build.h"

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

/* What becomes of the batch in an op. What differs from tower to tower without having rows passes that on. */
static enum spread spread_of(const struct certify *c, const struct node *n) {
  enum spread spread = c->blocks.why[n->id] ? SPREAD_NOT : node_spread(n, NULL);
  bool apart = spread == SPREAD_OWN;
  for (int i = 0; i < n->ninputs && spread == SPREAD_SAME && n->op != OP_assign; i++)
    apart = apart || c->apart[n->inputs[i]->id];
  return apart ? SPREAD_ROWS : spread;
}

static bool is_share(enum spread spread) { return spread_joined_by(spread) != NULL; }

/* The reduction of the view's towers' values. */
static struct node *join(struct certify *c, const struct node *n, const char *how) {
  struct node like = {.op = OP_all_reduce,
                      .name = arena_printf(c->arena, "%s of all towers", n->name),
                      .ninputs = c->view->count};
  struct attr a = attr_string(ATTR_reduction, how);
  struct node **rows = &c->rows[(size_t)n->id * (size_t)c->towers + (size_t)c->view->first];
  return certify_make(c, &like, rows, 1, &a, NULL, -1);
}

int certify_attrs(const struct node *n, struct attr *out) {
  int count = 0;
  for (int i = 0; i < n->nattrs; i++)
    if (n->attrs[i].key != ATTR_offset || n->attrs[i].i != 0 || n->op == OP_split) out[count++] = n->attrs[i];
  return count;
}

/* n for a tower's rows, or for the whole batch. */
struct node *certify_instance(struct certify *c, const struct node *n, struct node *const *in, int tower,
                              int64_t counted) {
  struct type t = type_specialize(&n->type, tower < 0 ? c->batch : certify_rows(c, tower));
  struct attr attrs[ATTR_COUNT];
  int nattrs;
  if (n->op == OP_tower_id || n->op == OP_tower_count) return certify_number(c, n, tower);
  if (tower >= 0 && type_is_symbolic(&n->type) && op_of(n)->kind == KIND_SOURCE) {
    struct rows rows = {certify_first(c, tower), certify_rows(c, tower), c->batch};
    c->ref->tower = tower;
    return build_rows(c->ref, name_of(c, n, tower), n, in, c->blocks.of[n->id], rows);
  }
  nattrs = certify_attrs(n, attrs);
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
  c->whole[n->id] = join(c, n, spread_joined_by(spread));
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
  enum spread spread = c->towers == 1 ? SPREAD_SAME : spread_of(c, n);
  if (spread == SPREAD_NOT) {
    certify_breach(c, CLAIM_TOWERS, NULL, "no rule says how %s (%s) of the source lies over towers", n->name,
                   op_of(n)->name);
    return false;
  }
  bool input = n->op == OP_input;
  for (int k = 0; k < n->ninputs; k++)
    in[k] = k > 0 && spread == SPREAD_ALL ? added_rows(c, n->inputs[k], n->inputs[1]->type.rank)
                                          : c->whole[n->inputs[k]->id];
  bool once = spread == SPREAD_SAME || spread == SPREAD_ALL;
  bool read = is_variable(n)  ? (c->whole[n->id] = read_variable(c, n, in)) != NULL
              : once || input ? (c->whole[n->id] = certify_instance(c, n, in, -1, c->view->rows)) != NULL
                              : true;
  if (read && !once) read = read_rows(c, n, spread, in);
  read = read && certify_own(c, n, in);
  if (!read)
    certify_breach(c, CLAIM_TOWERS, NULL, "%s (%s) of the source means nothing for %lld rows in %d towers",
                   n->name, op_of(n)->name, (long long)c->batch, c->towers);
  return read;
}

struct node *certify_whole_input(struct node *const *rows, int count) {
  struct node *input = rows[0]->ninputs ? rows[0]->inputs[0] : NULL;
  int64_t at = 0;
  for (int k = 0; k < count; k++) {
    const struct node *x = rows[k];
    if (x->op != OP_split || x->inputs[0] != input || node_int(x, ATTR_offset) != at) return NULL;
    at += x->type.dim[0];
  }
  return at == input->type.dim[0] ? input : NULL;
}

/* The towers' rows of a result, put together where the model has them. */
static struct node *join_rows(struct certify *c, const struct node *n) {
  const struct view *all = c->view;
  int64_t blocks = c->blocks.of[n->id];
  struct node **rows = &c->rows[(size_t)n->id * (size_t)c->towers];
  struct node **first = arena_new_array(c->arena, (size_t)all->count, struct node *);
  for (int t = all->first; t < all->first + all->count; t++) {
    c->ref->tower = t;
    if (!(first[t - all->first] =
              rows_first(c->ref, name_of(c, n, t), n, blocks, rows[t], certify_rows(c, t))))
      return NULL;
  }
  struct node like = {.op = OP_all_gather,
                      .name = arena_printf(c->arena, "%s of all towers", n->name),
                      .ninputs = all->count};
  struct node *x = certify_whole_input(first, all->count);
  if (!x) x = certify_make(c, &like, first, 0, NULL, NULL, -1);
  c->ref->tower = -1;
  return x ? rows_back(c->ref, n->name, n, blocks, x, c->batch) : NULL;
}

/* Results with rows of the batch. */
static bool read_results(struct certify *c) {
  for (int i = 0; c->towers > 1 && i < c->source->noutputs; i++) {
    const struct node *n = c->source->outputs[i].node;
    if (c->whole[n->id]) continue;
    if (type_is_symbolic(&n->type) && (c->whole[n->id] = join_rows(c, n))) continue;
    certify_breach(c, CLAIM_RESULTS, NULL, "the rows of %s of the source cannot be joined", n->name);
    return false;
  }
  return true;
}

bool certify_source(struct certify *c) {
  const struct graph *g = c->source;
  struct arena *a = c->arena;
  uint8_t *live = graph_live(a, g);
  c->blocks = row_blocks(a, g);
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
    certify_work(c, g->count);
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
    if (!is_share(spread)) continue;
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
