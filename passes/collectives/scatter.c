/* SPDX-License-Identifier: Apache-2.0 */
/* Scatter: m devices cut a sum into m chunks; each sums one of them by the fixed tree over the towers, and all fetch
 * the chunks from the devices that have them: a reduce-scatter, then an all-gather. What a device sends and receives is
 * 2 (m-1)/m of the array, as in the ring; and each element is added up as by reduce_to_one, so that the bits depend on
 * the number of towers alone. Towers that share a device are summed there first, those of a task that is not the
 * chunk's own within that task, as far as they are a subtree.
 *
 * In the part of one task the chunks of its devices are summed, and sent to all others, which send theirs. */
#include "ir/ops/op_id.h"
#include "passes/collectives/collectives.h"

#include <string.h>

struct scatter {
  const struct node *all;
  int count;            /* devices with towers, and chunks */
  int *devices;         /* in tower order */
  struct node **chunks; /* the sum of each, on its device */
  struct node **whole;  /* by position */
  struct node **read;   /* the chunks for the whole at hand */
  struct fetchers fetchers;
};

static struct node *slice_of(struct graph *g, struct node *flat, int64_t begin, int64_t end, int chunk) {
  struct type t = type_make((enum dtype)flat->type.dtype, 1, (int64_t[]){end - begin});
  struct attr first = attr_ints(ATTR_begin, 1, &begin);
  build_at(g, flat);
  return build_named(g, arena_printf(g->arena, "%s.chunk_%d", flat->name, chunk), OP_slice, 1, &flat, 1,
                     &first, &t);
}

static struct node *keep(struct graph *g, const struct node *all, struct node *total) {
  (void)g, (void)all;
  return total;
}

/* One chunk by the tree, on its device. */
static struct node *sum_chunk(const struct tree *t, const struct scatter *s, struct node **flat,
                              struct node **slices, int chunk) {
  struct graph *g = t->out;
  int64_t elements = type_count(&t->all->type);
  int64_t begin = elements * chunk / s->count, end = elements * (chunk + 1) / s->count;
  int first = 0, last = t->count;
  if (!task_graph_is_whole(t->part)) first = t->part->first_tower, last = first + t->part->ntowers;
  for (int i = first; i < last; i++) slices[i] = slice_of(g, flat[i], begin, end, chunk);
  struct node all = *t->all;
  int64_t length = end - begin;
  all.type = type_make((enum dtype)all.type.dtype, 1, &length);
  all.name = arena_printf(g->arena, "%s.chunk_%d", t->all->name, chunk);
  struct tree part = *t;
  part.all = &all;
  part.terms = slices;
  part.turn = chunk;
  const char *why =
      arena_printf(g->arena, "scatter -> chunk %d of %d, device %d", chunk, s->count, s->devices[chunk]);
  return task_graph_is_whole(t->part) ? tree_sum(&part, 0, t->count, s->devices[chunk], why)
                                      : tree_part(&part, s->devices[chunk], keep, why);
}

/* The devices with towers, in their order; in the part of one task all of them have some that follow each other. */
static void find_devices(const struct tree *t, int *devices) {
  int count = 0;
  for (int i = 0; task_graph_is_whole(t->part) && i < t->count; i++)
    if (i == 0 || t->terms[i]->device != t->terms[i - 1]->device) devices[count++] = t->terms[i]->device;
  for (int i = 0; !task_graph_is_whole(t->part) && i < t->s->nworkers; i++) devices[i] = t->s->workers[i];
}

struct scatter *scatter_make(struct pass_ctx *ctx, const struct tree *t) {
  struct arena *a = ctx->scratch;
  int count = task_graph_is_whole(t->part) ? tree_devices(t) : t->s->nworkers;
  if (count < 2 || type_count(&t->all->type) < count) return NULL;
  struct scatter *s = arena_new(a, struct scatter);
  *s = (struct scatter){.all = t->all, .count = count};
  s->devices = arena_new_array(a, (size_t)count, int);
  s->chunks = arena_new_array(a, (size_t)count, struct node *);
  s->whole = arena_new_array(a, (size_t)count, struct node *);
  s->read = arena_new_array(a, (size_t)count, struct node *);
  s->fetchers = tree_fetchers(a, t);
  struct node **flat = arena_new_array(a, (size_t)t->count, struct node *);
  struct node **slices = arena_new_array(a, (size_t)t->count, struct node *);
  find_devices(t, s->devices);
  for (int i = 0; i < t->count; i++) {
    if (!t->terms[i]) continue;
    build_at(t->out, t->terms[i]);
    flat[i] = build_flat(t->out, t->terms[i]);
  }
  for (int c = 0; c < count; c++) s->chunks[c] = sum_chunk(t, s, flat, slices, c);
  return s;
}

struct node *scatter_result(struct graph *g, struct scatter *s, int device) {
  int position = 0; /* a reader without towers reads from the first device */
  for (int i = 0; i < s->count; i++)
    if (s->devices[i] == device) position = i;
  if (s->whole[position]) return s->whole[position];
  build_at(g, s->all);
  g->at.device = s->devices[position];
  g->at.replica = position == 0 ? s->all->replica : g->at.device;
  g->at.why = (struct reason){
      .rule = arena_printf(g->arena, "scatter -> all %d chunks, device %d", s->count, g->at.device)};
  const char *name = s->all->name;
  if (position > 0) name = arena_printf(g->arena, "%s/replica_%d", name, position);
  struct attr axis = attr_int(ATTR_axis, 0);
  for (int c = 0; c < s->count; c++)
    s->read[c] = fetch(g, &s->fetchers, s->chunks[c], s->devices[position], c);
  struct node *x =
      build_named(g, arena_printf(g->arena, "%s.flat", name), OP_concat, s->count, s->read, 1, &axis, NULL);
  if (!x) return NULL;
  return s->whole[position] = build_named(g, name, OP_reshape, 1, &x, 0, NULL, &s->all->type);
}
