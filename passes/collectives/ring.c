/* The ring: m devices cut a sum into m chunks. A chunk starts at the device behind its own, goes once around and gains
 * each device's part, until its own device has the sum; then it goes around once more. Each device sends and receives
 * 2 (m-1)/m of the array, whatever m is (Patarasuk and Yuan, 2009).
 *
 * Towers that share a device are summed by the tree first. Chunk c adds the devices in the order c+1, c+2, ..., c: so
 * the bits depend on the number of devices, and the dump says so at each addition. */
#include "passes/collectives/collectives.h"

#include <string.h>

struct ring {
  struct pass_ctx *ctx;
  const struct node *all;
  int count;           /* devices in the ring */
  int *devices;        /* in tower order */
  struct node **parts; /* each device's own sum, flat */
  struct node **have;  /* [chunk * count + position]: the sum of a chunk on the device at a position */
  struct node **whole; /* [position] */
};

static int64_t chunk_begin(const struct ring *r, int chunk) {
  return type_count(&r->all->type) * chunk / r->count;
}

/* A device's own part of a chunk. */
static struct node *own(struct graph *g, const struct ring *r, int chunk, int position) {
  struct node *x = r->parts[position];
  int64_t begin = chunk_begin(r, chunk), end = chunk_begin(r, chunk + 1);
  struct type t = type_make((enum dtype)x->type.dtype, 1, (int64_t[]){end - begin});
  build_at(g, x);
  struct attr first = attr_ints(ATTR_begin, 1, &begin);
  return build_named(g, arena_printf(g->arena, "%s.chunk_%d", x->name, chunk), OP_slice, 1, &x, 1, &first,
                     &t);
}

static void reduce_chunk(struct graph *g, struct ring *r, int chunk) {
  struct node *sum = own(g, r, chunk, (chunk + 1) % r->count);
  for (int s = 2; s <= r->count; s++) {
    int position = (chunk + s) % r->count;
    struct node *pair[2] = {sum, own(g, r, chunk, position)};
    bool last = s == r->count;
    build_at(g, last ? r->all : pair[1]);
    if (!last) g->at.dist = DIST_PARTIAL;
    g->at.pack = r->all->pack;
    g->at.device = r->devices[position];
    g->at.why = arena_printf(g->arena,
                             "ring -> position %d of %d, device %d; the bits depend on the number of devices",
                             position, r->count, g->at.device);
    const char *name = arena_printf(g->arena, "%s.chunk_%d", r->all->name, chunk);
    if (!last) name = arena_printf(g->arena, "%s.hop_%d", name, s - 1);
    sum = build_named(g, name, OP_add, 2, pair, 0, NULL, NULL);
  }
  r->have[chunk * r->count + chunk] = sum;
}

struct ring *ring_make(struct pass_ctx *ctx, const struct tree *t) {
  struct arena *a = ctx->scratch;
  size_t count = (size_t)tree_devices(t);
  if (count < 2 || type_count(&t->all->type) < (int64_t)count) return NULL;
  struct ring *r = arena_new(a, struct ring);
  *r = (struct ring){.ctx = ctx, .all = t->all, .count = (int)count};
  r->devices = arena_new_array(a, count, int);
  r->parts = arena_new_array(a, count, struct node *);
  r->have = arena_array(a, count * count, sizeof *r->have);
  r->whole = arena_new_array(a, count, struct node *);
  tree_blocks(t, r->devices, r->parts);
  for (int i = 0; i < r->count; i++) {
    build_at(t->out, r->parts[i]);
    r->parts[i] = build_flat(t->out, r->parts[i]);
  }
  for (int c = 0; c < r->count; c++) reduce_chunk(t->out, r, c);
  return r;
}

/* The sum of a chunk at a position, handed on from the one before. */
static struct node *chunk_at(struct graph *g, struct ring *r, int chunk, int position) {
  struct node **have = &r->have[chunk * r->count];
  int from = position;
  while (!have[from]) from = (from + r->count - 1) % r->count;
  for (; from != position; from = (from + 1) % r->count) {
    int next = (from + 1) % r->count;
    have[next] = relay(g, have[from], r->devices[next]);
  }
  return have[position];
}

struct node *ring_result(struct graph *g, struct ring *r, int device) {
  int position = 0; /* a reader outside of the ring reads from its first device */
  for (int i = 0; i < r->count; i++)
    if (r->devices[i] == device) position = i;
  if (r->whole[position]) return r->whole[position];
  struct node **chunks = arena_new_array(r->ctx->scratch, (size_t)r->count, struct node *);
  for (int c = 0; c < r->count; c++) chunks[c] = chunk_at(g, r, c, position);
  build_at(g, r->all);
  g->at.device = r->devices[position];
  g->at.replica = position == 0 ? r->all->replica : g->at.device;
  g->at.why =
      arena_printf(g->arena, "ring -> position %d of %d, device %d", position, r->count, g->at.device);
  const char *name = r->all->name;
  if (position > 0) name = arena_printf(g->arena, "%s/replica_%d", name, position);
  struct attr axis = attr_int(ATTR_axis, 0);
  struct node *x =
      build_named(g, arena_printf(g->arena, "%s.flat", name), OP_concat, r->count, chunks, 1, &axis, NULL);
  return r->whole[position] = build_named(g, name, OP_reshape, 1, &x, 0, NULL, &r->all->type);
}
