/* replicate: fixes the batch and clones the model into towers.
 *
 * Every value gets a distribution. What depends on the batch exists once per tower, on a slice of its batch
 * axis (per_replica), or as one tower's share of a sum over the batch (partial); everything else is the same
 * everywhere (mirrored) and exists once per device that needs it. A partial value passes through additions and
 * movement and is summed over the towers, by one all_reduce, before anything else reads it: so a mean over the
 * batch is one sum divided once by the true count, a batch statistic in the forward pass is an all_reduce like
 * any other, and a gradient is reduced once, however often its variable was used.
 *
 * Tower 0 keeps the model's names; tower i > 0 has tower_i/<name>, a mirrored copy on device i > 0
 * <name>/replica_i. With one tower nothing is split, reduced or renamed.
 *
 * Requires: stage source without gradients; config.batch. Guarantees: stage replicated, all shapes concrete,
 * law 2. */
#include "passes/pass.h"
#include "passes/strategy.h"

#include <string.h>

/* Where a source node is needed, as bits. */
enum {
  NEED_TOWERS = 1,  /* on each tower: per_replica and partial values */
  NEED_WORKERS = 2, /* mirrored: on each device that carries towers */
  NEED_UPDATE = 4,  /* mirrored: where the variables' copies live */
  NEED_MAIN = 8,    /* mirrored: once, for the caller */
  NEED_SUM = 16     /* the all_reduce of a partial value */
};

struct replicate {
  struct pass_ctx *ctx;
  struct graph *from, *to;
  struct strategy s;
  int64_t batch;
  uint8_t *dist;          /* enum dist, by source id */
  const char **reduction; /* of partial values */
  uint8_t *need;
  struct node **towers; /* [id * towers + t]: clones of per_replica and partial values */
  struct node **copies; /* [id * devices + d]: clones of mirrored values; d is a device index */
  struct node **sums;   /* [id]: all_reduce of a partial value */
  int ndevices;
};

/* ---- distribution ---- */

static int batch_axis(const struct node *n) { return type_batch_axis(&n->type); }

/* Whether a partial(sum) may pass through n instead of being reduced before: additions and movement, which keep
 * sums. A product with a mirrored value would too, but then a mean would no longer divide once. */
static bool passes_partial(const struct replicate *r, const struct node *n) {
  const struct op_info *op = op_of(n);
  if (batch_axis(n) >= 0) return false;
  for (int i = 0; i < n->ninputs; i++)
    if (r->dist[n->inputs[i]->id] != DIST_PARTIAL || strcmp(r->reduction[n->inputs[i]->id], "sum") != 0)
      return false;
  if (op->linear_jointly) return true;
  return n->ninputs == 1 && (op->linear & 1);
}

static bool refuse(struct replicate *r, const struct node *n, const char *why) {
  diag_error(r->ctx->diags, n->loc, "%s (%s) cannot be spread over towers: %s", n->name, op_of(n)->name, why);
  return false;
}

/* The batch axis of a reshape must keep what stands before it: then a tower's rows stay one block. */
static bool reshape_keeps_batch(const struct node *n) {
  const struct type *x = &n->inputs[0]->type, *y = &n->type;
  int64_t before_x = 1, before_y = 1;
  for (int i = 0; i < type_batch_axis(x); i++) before_x *= x->dim[i];
  for (int i = 0; i < type_batch_axis(y); i++) before_y *= y->dim[i];
  return before_x == before_y;
}

/* The distribution of n, given those of its inputs. */
static bool distribute(struct replicate *r, const struct node *n) {
  uint8_t *dist = &r->dist[n->id];
  bool sliced = false, contracted = false;
  for (int i = 0; i < n->ninputs; i++) {
    sliced |= r->dist[n->inputs[i]->id] == DIST_PER_REPLICA;
  }
  int axis = batch_axis(n);
  *dist = axis >= 0 ? DIST_PER_REPLICA : DIST_MIRRORED;
  if (n->op == OP_input && axis > 0) return refuse(r, n, "the batch must be an input's first axis");
  if ((n->op == OP_random_uniform || n->op == OP_random_normal) && axis > 0)
    return refuse(r, n, "random values need the batch on their first axis");
  if (n->op == OP_reshape && axis >= 0 && !reshape_keeps_batch(n))
    return refuse(r, n, "it would mix the batch with other axes");
  if (n->op == OP_concat && axis >= 0 && node_int(n, ATTR_axis) == axis)
    return refuse(r, n, "joining along the batch would change the order of the rows");
  contracted = sliced && axis < 0;
  if (contracted) {
    *dist = DIST_PARTIAL;
    r->reduction[n->id] = "sum";
    if (n->op == OP_reduce_max)
      r->reduction[n->id] = "max";
    else if (n->op == OP_reduce_min)
      r->reduction[n->id] = "min";
    else if (n->op != OP_reduce_sum && n->op != OP_matmul)
      return refuse(r, n, "it joins the rows of the batch in a way that no sum over towers can");
  } else if (n->ninputs > 0 && passes_partial(r, n)) {
    *dist = DIST_PARTIAL;
    r->reduction[n->id] = "sum";
  }
  return true;
}

/* ---- who needs what ---- */

static void require(struct replicate *r, const struct node *n, uint8_t need) {
  switch (r->dist[n->id]) {
  case DIST_PER_REPLICA: r->need[n->id] |= NEED_TOWERS; break;
  case DIST_PARTIAL: r->need[n->id] |= NEED_TOWERS | (need & NEED_TOWERS ? 0 : NEED_SUM); break;
  default: r->need[n->id] |= need & NEED_TOWERS ? NEED_WORKERS : need; break;
  }
}

static void mark(struct replicate *r) {
  for (int i = 0; i < r->from->noutputs; i++) {
    const struct output *o = &r->from->outputs[i];
    require(r, o->node, o->role == OUTPUT_UPDATE ? NEED_UPDATE : NEED_MAIN);
  }
  for (uint32_t i = r->from->count; i-- > 0;) {
    const struct node *n = r->from->nodes[i];
    uint8_t need = r->need[i];
    for (int k = 0; need && k < n->ninputs; k++) {
      const struct node *x = n->inputs[k];
      bool here = r->dist[i] == DIST_MIRRORED;
      if (here) {
        require(r, x, need);
      } else if (r->dist[x->id] == DIST_PARTIAL && r->dist[i] != DIST_PARTIAL) {
        r->need[x->id] |= NEED_TOWERS | NEED_SUM;
      } else if (r->dist[x->id] == DIST_PARTIAL && !passes_partial(r, n)) {
        r->need[x->id] |= NEED_TOWERS | NEED_SUM;
      } else {
        require(r, x, NEED_TOWERS);
      }
    }
  }
}

/* ---- cloning ---- */

/* The device whose copy of a mirrored value tower t reads. */
static int device_of(const struct replicate *r, int t) { return tower_device(t, r->s.towers, r->s.ndevices); }

static bool needed_on(const struct replicate *r, const struct node *n, int d) {
  uint8_t need = r->need[n->id];
  /* One copy of a variable: whoever reads it reads that one. */
  if (n->op == OP_variable && !r->s.mirrored) return need && d == r->s.parameter;
  if ((need & NEED_WORKERS) && d < r->s.ndevices) return true;
  int main_device = r->s.mirrored ? 0 : r->s.parameter;
  if ((need & NEED_UPDATE) && (r->s.mirrored ? d < r->s.ndevices : d == main_device)) return true;
  return (need & NEED_MAIN) && d == main_device;
}

/* The copy of a mirrored value (or the sum of a partial one) that a node on device d reads. */
static struct node *mirrored_value(struct replicate *r, const struct node *x, int d) {
  if (r->dist[x->id] == DIST_PARTIAL) return r->sums[x->id];
  if (x->op == OP_variable && !r->s.mirrored) d = r->s.parameter;
  if (x->op == OP_input) d = r->s.consolidation;
  return r->copies[(size_t)x->id * (size_t)r->ndevices + (size_t)d];
}

static void place_context(struct replicate *r, const struct node *n, enum dist dist, int tower, int device) {
  build_at(r->to, n);
  r->to->dist = dist;
  r->to->tower = tower;
  r->to->replica = device;
}

/* n once more under this name, for `rows` rows of which the first is row `first` of the batch. */
static struct node *clone(struct replicate *r, const struct node *n, const char *name, struct node **in,
                          int64_t rows, int64_t first) {
  struct type t = type_specialize(&n->type, rows);
  struct attr attrs[ATTR_COUNT];
  int nattrs = n->nattrs, axis = batch_axis(n);
  memcpy(attrs, n->attrs, sizeof *attrs * (size_t)nattrs);
  bool counts = n->op == OP_random_uniform || n->op == OP_random_normal ||
                (n->op == OP_iota && node_int(n, ATTR_axis) == axis);
  if (counts && axis >= 0 && first > 0) {
    int64_t each = n->op == OP_iota ? -n->type.dim[axis] : -type_count(&n->type);
    attrs[nattrs++] = attr_int(ATTR_offset, first * each);
  }
  if (n->op == OP_batch_size) attrs[nattrs++] = attr_int(ATTR_batch, r->batch);
  bool typed = op_of(n)->traits & OP_TYPED;
  return build_named(r->to, name, n->op, n->ninputs, in, nattrs, attrs, typed ? &t : NULL);
}

static const char *copy_name(struct replicate *r, const char *name, int device) {
  int main_device = r->s.mirrored ? 0 : r->s.parameter;
  /* Central storage: the workers' own copies of mirrored values carry the suffix, the parameter device's do not. */
  return device == main_device ? name : arena_printf(r->to->arena, "%s/replica_%d", name, device);
}

static const char *tower_name(struct replicate *r, const char *name, int tower) {
  return tower == 0 ? name : arena_printf(r->to->arena, "tower_%d/%s", tower, name);
}

static bool clone_mirrored(struct replicate *r, const struct node *n, struct node **in) {
  for (int d = 0; d < r->ndevices; d++) {
    if (!needed_on(r, n, d)) continue;
    for (int k = 0; k < n->ninputs; k++) in[k] = mirrored_value(r, n->inputs[k], d);
    place_context(r, n, DIST_MIRRORED, -1, d);
    struct node *c = clone(r, n, copy_name(r, n->name, d), in, r->batch, 0);
    if (!c) return false;
    r->copies[(size_t)n->id * (size_t)r->ndevices + (size_t)d] = c;
  }
  return true;
}

static bool clone_towers(struct replicate *r, const struct node *n, struct node **in) {
  int towers = r->s.towers;
  for (int t = 0; t < towers; t++) {
    int64_t rows = tower_rows(t, towers, r->batch), first = tower_first_row(t, towers, r->batch);
    for (int k = 0; k < n->ninputs; k++) {
      const struct node *x = n->inputs[k];
      bool own =
          r->dist[x->id] == DIST_PER_REPLICA || (r->dist[x->id] == DIST_PARTIAL && passes_partial(r, n));
      in[k] =
          own ? r->towers[(size_t)x->id * (size_t)towers + (size_t)t] : mirrored_value(r, x, device_of(r, t));
    }
    place_context(r, n, (enum dist)r->dist[n->id], t, -1);
    struct node *c = clone(r, n, tower_name(r, n->name, t), in, rows, first);
    if (!c) return false;
    r->towers[(size_t)n->id * (size_t)towers + (size_t)t] = c;
  }
  return true;
}

/* The whole batch arrives on the consolidation device; each tower reads its rows. */
static bool clone_input(struct replicate *r, const struct node *n) {
  struct type whole = type_specialize(&n->type, r->batch);
  place_context(r, n, DIST_MIRRORED, -1, r->s.consolidation);
  struct node *x = build_input(r->to, n->name, &whole);
  r->copies[(size_t)n->id * (size_t)r->ndevices + (size_t)r->s.consolidation] = x;
  if (r->dist[n->id] != DIST_PER_REPLICA) return x != NULL;
  int64_t each = -n->type.dim[0];
  const char *name = arena_printf(r->to->arena, "split_inputs/%s", n->name);
  for (int t = 0; t < r->s.towers; t++) {
    struct attr first = attr_int(ATTR_offset, each * tower_first_row(t, r->s.towers, r->batch));
    struct type slice = type_specialize(&n->type, tower_rows(t, r->s.towers, r->batch));
    place_context(r, n, DIST_PER_REPLICA, t, -1);
    struct node *s = build_named(r->to, tower_name(r, name, t), OP_split, 1, &x, 1, &first, &slice);
    if (!s) return false;
    r->towers[(size_t)n->id * (size_t)r->s.towers + (size_t)t] = s;
  }
  return true;
}

/* Gradients are known by their variable: gradient_aggregating/h.kernel. */
static const char *sum_name(struct replicate *r, const char *name) {
  size_t len = strlen(name);
  bool gradient = len > 5 && strcmp(name + len - 5, ".grad") == 0;
  return gradient ? arena_printf(r->to->arena, "gradient_aggregating/%.*s", (int)len - 5, name)
                  : arena_printf(r->to->arena, "%s.all_reduce", name);
}

static bool reduce_towers(struct replicate *r, const struct node *n) {
  if (!(r->need[n->id] & NEED_SUM)) return true;
  struct attr how = attr_string(ATTR_reduction, r->reduction[n->id]);
  place_context(r, n, DIST_MIRRORED, -1, r->s.parameter);
  struct node **all = &r->towers[(size_t)n->id * (size_t)r->s.towers];
  r->sums[n->id] = build_named(r->to, sum_name(r, n->name), OP_all_reduce, r->s.towers, all, 1, &how, NULL);
  return r->sums[n->id] != NULL;
}

/* ---- one tower ---- */

static struct graph *one_tower(struct replicate *r) {
  struct graph *to = r->to;
  struct node **map = arena_new_array(r->ctx->scratch, r->from->count + 1, struct node *);
  for (uint32_t i = 0; i < r->from->count; i++) {
    struct node *n = r->from->nodes[i];
    struct node **in = arena_new_array(r->ctx->scratch, (size_t)n->ninputs + 1, struct node *);
    for (int k = 0; k < n->ninputs; k++) in[k] = map[n->inputs[k]->id];
    bool stored = n->op == OP_variable || n->op == OP_assign;
    place_context(r, n, DIST_MIRRORED, -1, stored ? r->s.parameter : 0);
    if (!(map[i] = clone(r, n, n->name, in, r->batch, 0))) return NULL;
  }
  for (int i = 0; i < r->from->noutputs; i++) {
    const struct output *o = &r->from->outputs[i];
    graph_add_output(to, o->role, o->name, map[o->node->id], o->count < 0 ? -o->count * r->batch : o->count);
  }
  return to;
}

static bool add_outputs(struct replicate *r) {
  for (int i = 0; i < r->from->noutputs; i++) {
    const struct output *o = &r->from->outputs[i];
    int64_t count = o->count < 0 ? -o->count * r->batch : o->count;
    struct node *n = NULL;
    if (o->role == OUTPUT_UPDATE) {
      for (int d = 0; d < r->ndevices; d++) {
        n = r->copies[(size_t)o->node->id * (size_t)r->ndevices + (size_t)d];
        if (n) graph_add_output(r->to, o->role, copy_name(r, o->name, d), n, 0);
      }
      continue;
    }
    if (r->dist[o->node->id] == DIST_PER_REPLICA) {
      if (batch_axis(o->node) != 0)
        return refuse(r, o->node, "a result must have the batch on its first axis");
      place_context(r, o->node, DIST_MIRRORED, -1, r->s.consolidation);
      n = build_named(r->to, arena_printf(r->to->arena, "gather_outputs/%s", o->name), OP_all_gather,
                      r->s.towers, &r->towers[(size_t)o->node->id * (size_t)r->s.towers], 0, NULL, NULL);
    } else {
      n = mirrored_value(r, o->node, r->s.mirrored ? 0 : r->s.parameter);
    }
    if (!n) return false;
    graph_add_output(r->to, o->role, o->name, n, count);
  }
  return true;
}

static bool has_gradients(const struct graph *g, struct diags *d) {
  for (uint32_t i = 0; i < g->count; i++) {
    if (g->nodes[i]->op != OP_gradient) continue;
    diag_error(d, LOC_NONE, "replicate needs gradients expanded, and %s is not: pass grad must run before",
               g->nodes[i]->name);
    return true;
  }
  return false;
}

struct graph *pass_replicate(struct pass_ctx *ctx, struct graph *g) {
  struct replicate r = {.ctx = ctx, .from = g, .batch = g->config.batch};
  if (r.batch <= 0) {
    diag_error(ctx->diags, LOC_NONE, "replicate needs the number of rows of the batch");
    diag_help(ctx->diags, LOC_NONE, "give --batch, or a line `batch 128` in the graph's header");
    return NULL;
  }
  if (has_gradients(g, ctx->diags)) return NULL;
  r.to = graph_create_like(ctx->arena, g);
  r.to->stage = STAGE_REPLICATED;
  if (!strategy_resolve(ctx->arena, &r.to->config, &r.s, ctx->diags)) return NULL;
  r.ndevices = r.to->config.target.ndevices;
  if (r.s.towers == 1) return one_tower(&r);
  r.dist = arena_new_array(ctx->scratch, g->count + 1, uint8_t);
  r.need = arena_new_array(ctx->scratch, g->count + 1, uint8_t);
  r.reduction = arena_new_array(ctx->scratch, g->count + 1, const char *);
  r.towers = arena_array(ctx->scratch, (size_t)(g->count + 1) * (size_t)r.s.towers, sizeof *r.towers);
  r.copies = arena_array(ctx->scratch, (size_t)(g->count + 1) * (size_t)r.ndevices, sizeof *r.copies);
  r.sums = arena_new_array(ctx->scratch, g->count + 1, struct node *);
  bool ok = true;
  for (uint32_t i = 0; i < g->count; i++) ok &= distribute(&r, g->nodes[i]);
  if (!ok) return NULL;
  mark(&r);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (!r.need[i]) continue;
    struct node **in = arena_new_array(ctx->scratch, (size_t)n->ninputs + 1, struct node *);
    bool built = n->op == OP_input            ? clone_input(&r, n)
                 : r.dist[i] == DIST_MIRRORED ? clone_mirrored(&r, n, in)
                                              : clone_towers(&r, n, in) && reduce_towers(&r, n);
    if (!built) return NULL;
  }
  return add_outputs(&r) ? r.to : NULL;
}
