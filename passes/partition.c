/* SPDX-License-Identifier: Apache-2.0 */
/* partition: cuts large variables along their first axis into parts that lie on different parameter servers.
 *
 * A read of the variable becomes a concatenation of its parts, under the variable's name; an assignment becomes one
 * per part. What is assigned is cut where that costs least: elementwise ops, broadcasts and random numbers are computed
 * for each part alone, so that an optimizer's update of a part needs no more than that part, its state and its share
 * of the gradient. State of an optimizer that has its variable's shape is cut as it. Names: v/part_0, and
 * v/part_0.adam.m for the state.
 *
 * Rows are looked up in each part and added to each part: no row number leads outside, and what one part has not,
 * another has. So no table crosses devices.
 *
 * Requires: stage source, gradients expanded. Guarantees: the same; but for parameter_server, the same graph. */
#include "ir/ops/op_id.h"
#include "ir/ops/spread.h"
#include "passes/pass.h"
#include "passes/strategy/strategy.h"
#include "passes/strategy/task_graph.h"

#include <string.h>

/* How deep an update is followed: what is below is computed whole and cut. */
enum { MAX_DEPTH = 200 };

struct partition {
  struct pass_ctx *ctx;
  const struct graph *g;
  struct graph *out;
  const struct config *config;
  struct strategy s;
  struct node **map;    /* by id of g */
  struct node ***parts; /* by id of out: the parts of what has been cut, for... */
  int *cut_in;          /* ... this many of them */
  uint32_t count;       /* nodes of out before updates are cut */
  const char *variable; /* whose assignment is being cut */
};

static int parts_of(const struct partition *p, const struct node *variable) {
  return strategy_parts(p->ctx->scratch, &p->s, p->config, p->g, variable);
}

static struct type part_type(const struct type *whole, int part, int parts) {
  struct type t = *whole;
  t.dim[0] = tower_rows(part, parts, whole->dim[0]);
  return t;
}

static const char *owner_name(const struct partition *p, const struct node *variable) {
  return home_name(p->ctx->scratch, variable);
}

static void remember(struct partition *p, const struct node *whole, struct node **parts, int count) {
  p->parts[whole->id] = parts;
  p->cut_in[whole->id] = count;
}

static struct node *join_variable(struct partition *p, const struct node *v, int parts, enum op_id op) {
  struct arena *a = p->ctx->scratch;
  struct node **all = arena_new_array(a, (size_t)parts, struct node *);
  const struct node *variable = op == OP_newest ? v->inputs[0] : v;
  const char *owner = owner_name(p, variable);
  for (int i = 0; i < parts; i++) {
    struct type t = part_type(&v->type, i, parts);
    const char *name = part_name(p->out->arena, owner, v->name, i);
    struct node *part = graph_find(p->out, part_name(a, owner, variable->name, i));
    build_at(p->out, v);
    if (op == OP_newest) {
      all[i] = build_named(p->out, name, OP_newest, 1, &part, 0, NULL, NULL);
    } else {
      struct attr attrs[ATTR_COUNT];
      int nattrs = v->nattrs;
      memcpy(attrs, v->attrs, sizeof *attrs * (size_t)nattrs);
      attrs[nattrs++] = attr_string(ATTR_of, v->name);
      attrs[nattrs++] = attr_int(ATTR_part, i);
      all[i] = build_named(p->out, name, OP_variable, 0, NULL, nattrs, attrs, &t);
    }
    if (!all[i]) return NULL;
  }
  build_at(p->out, v);
  struct attr axis = attr_int(ATTR_axis, 0);
  return build_named(p->out, v->name, OP_concat, parts, all, 1, &axis, NULL);
}

/* What n is in one part, under its name there. */
static struct node *build_part(struct partition *p, const struct node *n, int part, enum op_id op,
                               int ninputs, struct node *const *in, int nattrs, const struct attr *attrs,
                               const struct type *t) {
  struct graph *g = p->out;
  uint32_t before = g->count;
  build_at(g, n);
  struct node *made =
      build_named(g, part_name(g->arena, p->variable, n->name, part), op, ninputs, in, nattrs, attrs, t);
  if (made && made->id >= before && n->gradient_of)
    made->gradient_of = part_name(g->arena, p->variable, n->gradient_of, part);
  return made;
}

static struct node *part_of(struct partition *p, struct node *n, int part, int parts, int depth);

/* The op once more on parts of its operands, or on what it repeats. */
static struct node *op_part(struct partition *p, const struct node *n, int part, int parts, int depth) {
  struct node **in = arena_new_array(p->ctx->scratch, (size_t)n->ninputs + 1, struct node *);
  bool cuts = node_along(n, 0) == 0;
  for (int k = 0; k < n->ninputs; k++)
    if (!(in[k] = cuts ? part_of(p, n->inputs[k], part, parts, depth + 1) : n->inputs[k])) return NULL;
  struct type t = part_type(&n->type, part, parts);
  return build_part(p, n, part, n->op, n->ninputs, in, n->nattrs, n->attrs,
                    op_of(n)->traits & OP_TYPED ? &t : NULL);
}

/* Random numbers and counters know where their slice begins. */
static struct node *counted_part(struct partition *p, const struct node *n, int part, int parts) {
  struct attr attrs[ATTR_COUNT];
  int nattrs = counted_from(n, tower_first_row(part, parts, n->type.dim[0]), attrs);
  struct type t = part_type(&n->type, part, parts);
  return build_part(p, n, part, n->op, n->ninputs, n->inputs, nattrs, attrs, &t);
}

static struct node *slice_part(struct partition *p, struct node *n, int part, int parts) {
  int64_t begin[MAX_RANK] = {tower_first_row(part, parts, n->type.dim[0])};
  struct attr attr = attr_ints(ATTR_begin, n->type.rank, begin);
  struct type t = part_type(&n->type, part, parts);
  return build_part(p, n, part, OP_slice, 1, &n, 1, &attr, &t);
}

/* Row numbers that may become negative, and be compared with any. */
static struct node *signed_index(struct partition *p, struct node *index) {
  return index->type.dtype == DT_U8 ? build_cast(p->out, index, DT_I32) : index;
}

/* The row numbers, counted from the first row of a part. */
static struct node *shifted(struct partition *p, struct node *index, int64_t first) {
  if (first == 0) return index;
  return build2(p->out, OP_sub, index, build_fill(p->out, &index->type, (double)first));
}

static struct node *scatter_part(struct partition *p, const struct node *n, int part, int parts, int depth) {
  struct node *in[3] = {part_of(p, n->inputs[0], part, parts, depth + 1), NULL, n->inputs[2]};
  build_at(p->out, n);
  p->out->at.scope = part_name(p->out->arena, p->variable, n->name, part);
  in[1] = shifted(p, signed_index(p, n->inputs[1]), tower_first_row(part, parts, n->type.dim[0]));
  return build_part(p, n, part, OP_scatter_add, 3, in, 0, NULL, NULL);
}

/* A row is in the last part that begins before it. */
static struct node *gather_parts(struct partition *p, const struct node *n, struct node *index,
                                 struct node *const *parts, int count) {
  struct node *rows = NULL;
  int64_t first = 0, axes[MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
  build_at(p->out, n);
  index = signed_index(p, index);
  for (int i = 0; i < count; i++) {
    build_at(p->out, n);
    const char *name = i + 1 < count ? arena_printf(p->out->arena, "%s%s%d", n->name, "/rows_", i) : n->name;
    p->out->at.scope = arena_printf(p->out->arena, "%s/rows_%d", n->name, i);
    struct node *here = build2(p->out, OP_gather, parts[i], shifted(p, index, first));
    if (!here) return NULL;
    if (i > 0) {
      struct node *before = build2(p->out, OP_lt, index, build_fill(p->out, &index->type, (double)first));
      before = build_broadcast(p->out, before, &here->type, axes);
      here = build_named(p->out, name, OP_select, 3, (struct node *[]){before, rows, here}, 0, NULL, NULL);
    }
    rows = here;
    first += parts[i]->type.dim[0];
  }
  return rows;
}

/* Whether a part is made of the same part of each operand, or of all of it. What a reduction joins is not less work in
 * parts. */
static bool is_cut_with_operands(const struct node *n) {
  int along = node_along(n, 0);
  return (along == 0 || along == ALONG_NONE) && op_of(n)->kind != KIND_REDUCE;
}

static struct node *cut(struct partition *p, struct node *n, int part, int parts, int depth) {
  if (node_is_counted(n)) return counted_part(p, n, part, parts);
  if (depth < MAX_DEPTH && n->op == OP_scatter_add) return scatter_part(p, n, part, parts, depth);
  if (depth < MAX_DEPTH && is_cut_with_operands(n)) return op_part(p, n, part, parts, depth);
  return slice_part(p, n, part, parts);
}

/* Rows of n, whose first axis is cut into `parts`. */
static struct node *part_of(struct partition *p, struct node *n, int part, int parts, int depth) {
  if (n->id < p->count && p->cut_in[n->id] != parts)
    remember(p, n, arena_new_array(p->ctx->scratch, (size_t)parts, struct node *), parts);
  struct node **known = n->id < p->count ? &p->parts[n->id][part] : NULL;
  if (known && *known) return *known;
  struct node *result = cut(p, n, part, parts, depth);
  if (known) *known = result;
  return result;
}

/* One assignment, or one per part. */
static bool assign(struct partition *p, const struct output *o) {
  const struct node *n = o->node, *v = n->inputs[0];
  int parts = parts_of(p, v);
  struct node *value = p->map[n->inputs[1]->id];
  for (int i = 0; i < parts; i++) {
    p->variable = owner_name(p, v);
    const char *name = parts > 1 ? part_name(p->out->arena, p->variable, n->name, i) : n->name;
    const char *holder = parts > 1 ? part_name(p->ctx->scratch, p->variable, v->name, i) : v->name;
    struct node *in[2] = {graph_find(p->out, holder), parts > 1 ? part_of(p, value, i, parts, 0) : value};
    if (!in[0] || !in[1]) return false;
    build_at(p->out, n);
    struct node *a = build_named(p->out, name, OP_assign, 2, in, 0, NULL, NULL);
    if (!a) return false;
    graph_add_output(p->out, o->role, parts > 1 ? name : o->name, a, 0);
  }
  return true;
}

static bool rebuild_nodes(struct partition *p) {
  const uint8_t *live = graph_live(p->ctx->scratch, p->g);
  for (uint32_t i = 0; i < p->g->count; i++) {
    struct node *n = p->g->nodes[i];
    if (!live[i] || n->op == OP_assign) continue;
    const struct node *variable = n->op == OP_newest ? n->inputs[0] : n;
    int parts = variable->op == OP_variable ? parts_of(p, variable) : 1;
    struct node **in = arena_new_array(p->ctx->scratch, (size_t)n->ninputs + 1, struct node *);
    for (int k = 0; k < n->ninputs; k++) in[k] = p->map[n->inputs[k]->id];
    const struct node *table = n->op == OP_gather && n->inputs[0]->op == OP_variable ? n->inputs[0] : NULL;
    int cuts = table ? parts_of(p, table) : 1;
    if (cuts > 1)
      p->map[i] = gather_parts(p, n, in[1], in[0]->inputs, cuts); /* of the concatenation */
    else
      p->map[i] = parts > 1 ? join_variable(p, n, parts, n->op) : build_like(p->out, n, in, NULL);
    if (!p->map[i]) return false;
  }
  return true;
}

static bool any_parts(const struct partition *p) {
  for (uint32_t i = 0; i < p->g->count; i++)
    if (p->g->nodes[i]->op == OP_variable && parts_of(p, p->g->nodes[i]) > 1) return true;
  return false;
}

struct graph *pass_partition(struct pass_ctx *ctx, struct graph *g) {
  struct partition p = {.ctx = ctx, .g = g};
  struct config config = config_copy(ctx->scratch, &g->config);
  /* Errors of the configuration are for replicate to tell. */
  struct diags silent;
  diags_init(&silent, ctx->scratch);
  if (!strategy_resolve(ctx->scratch, g, &config, &p.s, &silent)) return g;
  p.config = &config;
  if (!any_parts(&p)) return g;
  p.out = graph_create_like(ctx->arena, g);
  p.map = arena_new_array(ctx->scratch, (size_t)g->count + 1, struct node *);
  if (!rebuild_nodes(&p)) return NULL;
  p.count = p.out->count;
  p.parts = arena_new_array(ctx->scratch, (size_t)p.count + 1, struct node **);
  p.cut_in = arena_new_array(ctx->scratch, (size_t)p.count + 1, int);
  for (uint32_t i = 0; i < p.count; i++) {
    struct node *n = p.out->nodes[i];
    const struct node *first = n->op == OP_concat ? n->inputs[0] : NULL;
    if (node_is(first, OP_newest)) first = first->inputs[0];
    if (node_is(first, OP_variable) && node_attr(first, ATTR_part) && node_int(n, ATTR_axis) == 0)
      remember(&p, n, n->inputs, n->ninputs);
  }
  for (int i = 0; i < g->noutputs; i++) {
    const struct output *o = &g->outputs[i];
    if (o->role != OUTPUT_UPDATE)
      graph_add_output(p.out, o->role, o->name, p.map[o->node->id], o->count);
    else if (!assign(&p, o))
      return NULL;
  }
  return p.out;
}
