/* SPDX-License-Identifier: Apache-2.0 */
/* The ring: m devices cut a sum into m chunks. A chunk starts at the device behind its own, goes once around and gains
 * each device's part, until its own device has the sum; then it goes around once more. Each device sends and receives
 * 2 (m-1)/m of the array, whatever m is (Patarasuk and Yuan, 2009).
 *
 * Towers that share a device are summed by the tree first. Chunk c adds the devices in the order c+1, c+2, ..., c: so
 * the bits depend on the number of devices, and the dump says so at each addition.
 *
 * In the part of one task chunks come from the device before its first one, and go on behind its last one. */
#include "ir/ops/op_id.h"
#include "passes/collectives/collectives.h"

#include <string.h>

struct ring {
  struct pass_ctx *ctx;
  const struct tree *t;
  const struct node *all;
  int count;           /* devices in the ring */
  int *devices;        /* by position: in tower order */
  int first, nown;     /* positions that are looked into: all, or those of the task */
  struct node **parts; /* by position: each device's own sum, flat */
  struct node **have;  /* [chunk * nown + position - first]: the sum of a chunk there */
  struct node **whole; /* by position */
};

static bool is_own(const struct ring *r, int position) {
  return position >= r->first && position < r->first + r->nown;
}

static struct node **have(const struct ring *r, int chunk, int position) {
  return &r->have[(size_t)chunk * (size_t)r->nown + (size_t)(position - r->first)];
}

static int before(const struct ring *r, int position) { return (position + r->count - 1) % r->count; }

/* How many devices a chunk has come to behind its start, when it comes to this position: 0 to count - 1. */
static int hop_at(const struct ring *r, int chunk, int position) {
  return (position - chunk - 1 + 2 * r->count) % r->count;
}

static int64_t chunk_begin(const struct ring *r, int chunk) {
  return type_count(&r->all->type) * chunk / r->count;
}

static struct type chunk_type(const struct ring *r, int chunk) {
  int64_t elements = chunk_begin(r, chunk + 1) - chunk_begin(r, chunk);
  return type_make((enum dtype)r->all->type.dtype, 1, &elements);
}

static const char *chunk_name(const struct ring *r, int chunk) {
  return arena_printf(r->t->out->arena, "%s.chunk_%d", r->all->name, chunk);
}

/* How many hops the sum of a chunk has behind it at this position, those in which it was made among them. */
static int sum_hop(const struct ring *r, int chunk, int position) {
  return position == chunk ? r->count - 1 : r->count + hop_at(r, chunk, position);
}

/* --- between tasks --- */

/* Of the message that a chunk is after its n-th hop, of 2 (m-1) in all. */
enum { ORDER = 3 };
static void order_of(const struct ring *r, int chunk, int hop, int64_t *order) {
  int count;
  order[0] = node_ints(r->all, ATTR_order, &count)[0];
  order[1] = hop;
  order[2] = chunk;
}

/* Devices of a task share a memory: which of them has the sum that is known at this position. */
static int holder(const struct ring *r, int chunk, int position) {
  const int *of = r->t->part->of;
  int process = of[r->devices[position]], first = position;
  while (first != chunk && first > 0 && of[r->devices[first - 1]] == process) first--;
  return first;
}

static struct node *receive(const struct ring *r, int chunk, int hop, int position) {
  struct graph *g = r->t->out;
  int64_t order[ORDER];
  order_of(r, chunk, hop, order);
  build_at(g, r->all);
  const char *name = chunk_name(r, chunk);
  if (hop < r->count - 1) {
    g->at.dist = DIST_PARTIAL;
    g->at.tower = 0;
    g->at.replica = -1;
    name = arena_printf(g->arena, "%s.hop_%d", name, hop);
  }
  struct type t = chunk_type(r, chunk);
  int from = before(r, position);
  if (hop >= r->count - 1) from = holder(r, chunk, from);
  return task_graph_remote(g, name, &t, r->devices[from], r->devices[position], order, ORDER);
}

/* To the device behind this one, if it is another task's. */
static void hand_over(const struct ring *r, struct node *x, int chunk, int hop, int position) {
  int next = (position + 1) % r->count;
  int64_t order[ORDER];
  if (is_own(r, next)) return;
  order_of(r, chunk, hop, order);
  task_graph_send(r->t->out, x, r->devices[next], order, ORDER);
}

/* --- once around to be summed --- */

/* A device's own part of a chunk. */
static struct node *own(const struct ring *r, int chunk, int position) {
  struct graph *g = r->t->out;
  struct node *x = r->parts[position];
  struct type t = chunk_type(r, chunk);
  int64_t begin = chunk_begin(r, chunk);
  build_at(g, x);
  struct attr first = attr_ints(ATTR_begin, 1, &begin);
  return build_named(g, arena_printf(g->arena, "%s.chunk_%d", x->name, chunk), OP_slice, 1, &x, 1, &first,
                     &t);
}

/* Another device's part is added to what has come. */
static struct node *add(const struct ring *r, struct node *sum, int chunk, int hop, int position) {
  struct graph *g = r->t->out;
  if (!sum) return NULL;
  struct node *pair[2] = {sum, own(r, chunk, position)};
  bool last = hop == r->count - 1;
  build_at(g, last ? r->all : pair[1]);
  if (!last) g->at.dist = DIST_PARTIAL;
  g->at.pack = r->all->pack;
  g->at.device = r->devices[position];
  g->at.why = (struct reason){
      .rule = arena_printf(g->arena,
                           "ring -> position %d of %d, device %d; the bits depend on the number of devices",
                           position, r->count, g->at.device)};
  const char *name = chunk_name(r, chunk);
  if (!last) name = arena_printf(g->arena, "%s.hop_%d", name, hop);
  return build_named(g, name, OP_add, 2, pair, 0, NULL, NULL);
}

static void reduce_chunk(const struct ring *r, int chunk) {
  struct node *sum = NULL;
  int start = is_own(r, (chunk + 1) % r->count) ? (chunk + 1) % r->count : r->first;
  for (int i = 0; i < r->nown; i++) {
    int position = r->first + (start - r->first + i) % r->nown, hop = hop_at(r, chunk, position);
    if (hop > 0 && !is_own(r, before(r, position))) sum = receive(r, chunk, hop - 1, position);
    sum = hop > 0 ? add(r, sum, chunk, hop, position) : own(r, chunk, position);
    if (hop == r->count - 1)
      *have(r, chunk, position) = sum;
    else if (sum)
      hand_over(r, sum, chunk, hop, position);
  }
}

/* --- once more to be known --- */

/* The sum of a chunk at a position, handed on from the one before. */
static struct node *chunk_at(const struct ring *r, int chunk, int position) {
  struct node **x = have(r, chunk, position);
  if (*x) return *x;
  int last = before(r, position);
  if (!is_own(r, last)) return *x = receive(r, chunk, sum_hop(r, chunk, last), position);
  return *x = relay(r->t->out, chunk_at(r, chunk, last), chunk_name(r, chunk), r->devices[position]);
}

/* A task hands on what the others read: all of them, or the first device alone. */
static void hand_on(const struct ring *r, int chunk) {
  bool all_read = tree_reads(r->t, r->t->part->count - 1);
  for (int position = r->first; position < r->first + r->nown; position++) {
    bool reads = all_read || position == 0 || position >= chunk;
    bool next_reads = all_read ? (position + 1) % r->count != chunk : position > 0;
    if (!reads) continue;
    chunk_at(r, chunk, position);
    struct node *x = *have(r, chunk, holder(r, chunk, position));
    if (x && next_reads) hand_over(r, x, chunk, sum_hop(r, chunk, position), position);
  }
}

/* --- the ring --- */

/* The own sums of the task's devices, which are positions of the ring. */
static void find_own(struct ring *r) {
  const struct tree *t = r->t;
  int position = -1;
  for (int lo = 0, hi; lo < t->count; lo = hi) {
    int device = strategy_worker(t->s, lo);
    for (hi = lo + 1; hi < t->count && strategy_worker(t->s, hi) == device;) hi++;
    r->devices[++position] = device;
    if (!task_graph_has(t->part, device)) continue;
    if (r->nown++ == 0) r->first = position;
    r->parts[position] = tree_sum(t, lo, hi, device, NULL);
  }
}

struct ring *ring_make(struct pass_ctx *ctx, const struct tree *t) {
  struct arena *a = ctx->scratch;
  bool is_part = !task_graph_is_whole(t->part);
  size_t count = (size_t)(is_part ? t->s->nworkers : tree_devices(t));
  if (count < 2 || type_count(&t->all->type) < (int64_t)count) return NULL;
  struct ring *r = arena_new(a, struct ring);
  *r = (struct ring){.ctx = ctx, .t = arena_copy(a, t, sizeof *t), .all = t->all, .count = (int)count};
  r->devices = arena_new_array(a, count, int);
  r->parts = arena_new_array(a, count, struct node *);
  r->whole = arena_new_array(a, count, struct node *);
  if (is_part) {
    find_own(r);
  } else {
    tree_blocks(t, r->devices, r->parts);
    r->nown = r->count;
  }
  r->have = arena_array(a, count * (size_t)r->nown, sizeof *r->have);
  for (int i = r->first; i < r->first + r->nown; i++) {
    build_at(t->out, r->parts[i]);
    r->parts[i] = build_flat(t->out, r->parts[i]);
  }
  for (int c = 0; c < r->count; c++) reduce_chunk(r, c);
  for (int c = 0; is_part && c < r->count; c++) hand_on(r, c);
  return r;
}

struct node *ring_result(struct ring *r, int device) {
  struct graph *g = r->t->out;
  int position = 0; /* a reader outside of the ring reads from its first device */
  for (int i = 0; i < r->count; i++)
    if (r->devices[i] == device) position = i;
  if (r->whole[position]) return r->whole[position];
  struct node **chunks = arena_new_array(r->ctx->scratch, (size_t)r->count, struct node *);
  for (int c = 0; c < r->count; c++) chunks[c] = chunk_at(r, c, position);
  build_at(g, r->all);
  g->at.device = r->devices[position];
  g->at.replica = position == 0 ? r->all->replica : g->at.device;
  g->at.why = (struct reason){.rule = arena_printf(g->arena, "ring -> position %d of %d, device %d", position,
                                                   r->count, g->at.device)};
  const char *name = r->all->name;
  if (position > 0) name = arena_printf(g->arena, "%s/replica_%d", name, position);
  struct attr axis = attr_int(ATTR_axis, 0);
  struct node *x =
      build_named(g, arena_printf(g->arena, "%s.flat", name), OP_concat, r->count, chunks, 1, &axis, NULL);
  return r->whole[position] = build_named(g, name, OP_reshape, 1, &x, 0, NULL, &r->all->type);
}
