/* SPDX-License-Identifier: Apache-2.0 */
/* pack: sums gradients as few large arrays instead of many small ones.
 *
 * The gradients of one element type stand one behind the other as one flat array per tower. `packs = n` cuts it into n
 * pieces of total div n elements, the last of which takes the rest, wherever that falls; `bytes_per_pack = b` walks the
 * gradients backwards, in the order in which the backward pass makes them, and closes a pack once it is larger than b.
 * One all_reduce sums each pack, and every device takes the gradients out of it again. An element's tree of additions
 * stays what it was, so no bit changes. A gradient that needs another's sum is left alone.
 *
 * Requires: stage replicated. Guarantees: the same outputs; without packs or bytes_per_pack, the same graph. */
#include "ir/graph/build.h"
#include "ir/graph/text.h"
#include "ir/ops/op_id.h"
#include "passes/pass.h"

#include <string.h>

/* Where elements [begin, end) of a gradient, flattened, stand in a pack. */
struct pack_piece {
  int gradient, pack;
  int64_t begin, end, at;
};

struct gradient {
  const struct node *sum; /* its all_reduce */
  int64_t count;
};

struct packing {
  struct pass_ctx *ctx;
  struct graph *from, *to;
  struct node **map;     /* [source id] */
  uint8_t *after;        /* [source id]: needs the sum of a packed gradient */
  int *packed;           /* [source id of an all_reduce]: 1 + its gradient, or 0 */
  struct gradient *list; /* in graph order */
  int ngradients, ndevices;
  struct pack_piece *pieces; /* by pack, then as they stand in it */
  int npieces, npacks;
  int64_t *size;        /* of each pack, in elements */
  struct node **sums;   /* of each pack */
  struct node **opened; /* [gradient * (ndevices + 1) + replica + 1] */
};

static bool is_gradient_sum(const struct node *n) {
  return n->op == OP_all_reduce && n->backward && strcmp(node_string(n, ATTR_reduction), "sum") == 0 &&
         type_count(&n->type) > 0;
}

/* Finds the gradients to pack. In graph order, so a node's inputs are known before it. */
static void find(struct packing *p) {
  const struct graph *g = p->from;
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    for (int k = 0; k < n->ninputs; k++) {
      uint32_t id = n->inputs[k]->id;
      p->after[i] |= p->after[id] || p->packed[id];
    }
    if (p->after[i] || !is_gradient_sum(n)) continue;
    p->list[p->ngradients] = (struct gradient){n, type_count(&n->type)};
    p->packed[i] = ++p->ngradients;
  }
}

static void add_piece(struct packing *p, int gradient, int pack, int64_t begin, int64_t end) {
  p->pieces[p->npieces++] = (struct pack_piece){gradient, pack, begin, end, p->size[pack]};
  p->size[pack] += end - begin;
}

static bool is_of(const struct packing *p, int gradient, enum dtype d) {
  return p->list[gradient].sum->type.dtype == d;
}

static void cut_evenly(struct packing *p, enum dtype d, int packs) {
  int64_t total = 0, at = 0;
  for (int i = 0; i < p->ngradients; i++)
    if (is_of(p, i, d)) total += p->list[i].count;
  if (total == 0) return;
  if (packs > total) packs = (int)total;
  int64_t each = total / packs;
  int first = p->npacks;
  p->npacks += packs;
  for (int i = 0; i < p->ngradients; i++) {
    if (!is_of(p, i, d)) continue;
    int64_t count = p->list[i].count;
    for (int64_t begin = 0; begin < count;) {
      int64_t pack = (at + begin) / each < packs ? (at + begin) / each : packs - 1;
      int64_t end = pack == packs - 1 ? count : (pack + 1) * each - at;
      if (end > count) end = count;
      add_piece(p, i, first + (int)pack, begin, end);
      begin = end;
    }
    at += count;
  }
}

static void cut_by_size(struct packing *p, enum dtype d, int64_t bytes) {
  bool open = false;
  for (int i = p->ngradients; i-- > 0;) {
    if (!is_of(p, i, d)) continue;
    if (!open) p->npacks++;
    add_piece(p, i, p->npacks - 1, 0, p->list[i].count);
    open = p->size[p->npacks - 1] * dtype_size(d) <= bytes;
  }
}

/* Elements [begin, end) of a flat array. */
static struct node *cut(struct graph *g, const char *name, struct node *x, int64_t begin, int64_t end) {
  if (begin == 0 && end == x->type.dim[0]) return x;
  struct type t = type_make((enum dtype)x->type.dtype, 1, (int64_t[]){end - begin});
  struct attr first = attr_ints(ATTR_begin, 1, &begin);
  return build_named(g, name, OP_slice, 1, &x, 1, &first, &t);
}

static struct node *join(struct graph *g, const char *name, struct node **parts, int count) {
  if (count == 1) return parts[0];
  struct attr axis = attr_int(ATTR_axis, 0);
  return build_named(g, name, OP_concat, count, parts, 1, &axis, NULL);
}

/* One tower's part of a pack. */
static struct node *fill(struct packing *p, int pack, int tower) {
  struct graph *g = p->to;
  struct node **parts = arena_new_array(p->ctx->scratch, (size_t)p->npieces, struct node *);
  int count = 0;
  for (int i = 0; i < p->npieces; i++) {
    const struct pack_piece *e = &p->pieces[i];
    if (e->pack != pack) continue;
    struct node *x = p->map[p->list[e->gradient].sum->inputs[tower]->id];
    build_at(g, x);
    const char *name = arena_printf(g->arena, "%s.for_pack_%d", x->name, pack);
    parts[count++] = cut(g, name, build_flat(g, x), e->begin, e->end);
  }
  const char *name = arena_printf(g->arena, TEXT_GRADIENT_SUM "pack_%d.part", pack);
  if (tower > 0) name = arena_printf(g->arena, "tower_%d/%s", tower, name);
  g->at.pack = pack + 1;
  return join(g, name, parts, count);
}

static bool sum_packs(struct packing *p) {
  for (int pack = 0; pack < p->npacks; pack++) {
    const struct node *any = NULL;
    for (int i = 0; i < p->npieces && !any; i++)
      if (p->pieces[i].pack == pack) any = p->list[p->pieces[i].gradient].sum;
    struct node **parts = arena_new_array(p->ctx->scratch, (size_t)any->ninputs, struct node *);
    for (int t = 0; t < any->ninputs; t++) parts[t] = fill(p, pack, t);
    build_at(p->to, any);
    p->to->at.pack = pack + 1;
    p->sums[pack] = build_named(p->to, arena_printf(p->to->arena, TEXT_GRADIENT_SUM "pack_%d", pack),
                                OP_all_reduce, any->ninputs, parts, any->nattrs, any->attrs, NULL);
    if (!p->sums[pack]) return false;
  }
  return true;
}

/* The gradient, out of its packs, for readers on this replica (-1: any). */
static struct node *open(struct packing *p, int gradient, int replica) {
  struct node **known = &p->opened[gradient * (p->ndevices + 1) + replica + 1];
  if (*known) return *known;
  struct graph *g = p->to;
  const struct node *sum = p->list[gradient].sum;
  struct node **parts = arena_new_array(p->ctx->scratch, (size_t)p->npacks, struct node *);
  int count = 0;
  build_at(g, sum);
  g->at.replica = replica;
  const char *name = replica > 0 ? arena_printf(g->arena, "%s/replica_%d", sum->name, replica) : sum->name;
  for (int i = 0; i < p->npieces; i++) {
    const struct pack_piece *e = &p->pieces[i];
    if (e->gradient != gradient) continue;
    const char *from = arena_printf(g->arena, "%s.from_pack_%d", name, e->pack);
    parts[count++] = cut(g, from, p->sums[e->pack], e->at, e->at + e->end - e->begin);
  }
  struct node *whole = join(g, arena_printf(g->arena, "%s.flat", name), parts, count);
  return *known = build_named(g, name, OP_reshape, 1, &whole, 0, NULL, &sum->type);
}

/* As it is: what only says how a value lies over the towers must stay. */
static bool copy_node(struct packing *p, const struct node *n) {
  struct node **in = arena_new_array(p->ctx->scratch, (size_t)n->ninputs + 1, struct node *);
  for (int k = 0; k < n->ninputs; k++) {
    const struct node *x = n->inputs[k];
    in[k] = p->packed[x->id] ? open(p, p->packed[x->id] - 1, n->replica) : p->map[x->id];
  }
  return (p->map[n->id] = graph_node_like(p->to, n, in)) != NULL;
}

/* What needs no packed sum, the packs, then the rest. */
static struct graph *rebuild_packed(struct packing *p) {
  const uint8_t *live = graph_live(p->ctx->scratch, p->from);
  for (int after = 0; after < 2; after++) {
    for (uint32_t i = 0; i < p->from->count; i++)
      if (live[i] && p->after[i] == after && !p->packed[i] && !copy_node(p, p->from->nodes[i])) return NULL;
    if (!after && !sum_packs(p)) return NULL;
  }
  for (int i = 0; i < p->from->noutputs; i++) {
    const struct output *o = &p->from->outputs[i];
    int gradient = p->packed[o->node->id] - 1;
    graph_add_output(p->to, o->role, o->name, gradient >= 0 ? open(p, gradient, -1) : p->map[o->node->id],
                     o->count);
  }
  return p->to;
}

struct graph *pass_pack(struct pass_ctx *ctx, struct graph *g) {
  const struct config *c = &g->config;
  if ((!c->packs && !c->bytes_per_pack) || c->task) return g; /* of one task there are only shares */
  struct arena *s = ctx->scratch;
  struct packing p = {
      .ctx = ctx, .from = g, .to = graph_create_like(ctx->arena, g), .ndevices = c->target.ndevices};
  p.map = arena_new_array(s, g->count + 1, struct node *);
  p.after = arena_new_array(s, g->count + 1, uint8_t);
  p.packed = arena_new_array(s, g->count + 1, int);
  p.list = arena_new_array(s, g->count + 1, struct gradient);
  find(&p);
  if (p.ngradients == 0) return g;
  size_t most = (size_t)p.ngradients + (size_t)DT_COUNT * (size_t)c->packs;
  p.pieces = arena_new_array(s, most, struct pack_piece);
  p.size = arena_new_array(s, most, int64_t);
  p.sums = arena_new_array(s, most, struct node *);
  p.opened = arena_new_array(s, (size_t)p.ngradients * (size_t)(p.ndevices + 1), struct node *);
  for (int d = 0; d < DT_COUNT; d++)
    if (c->packs)
      cut_evenly(&p, (enum dtype)d, c->packs);
    else
      cut_by_size(&p, (enum dtype)d, c->bytes_per_pack);
  return rebuild_packed(&p);
}
