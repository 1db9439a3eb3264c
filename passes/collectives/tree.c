/* Sums over towers by the fixed tree: a range of n towers is cut after the largest power of two below n. A subtree
 * whose towers share a device is summed there, one whose towers share a task that is not the sum's own within that
 * task. */
#include "passes/collectives/tree.h"

#include "ir/ops/op.h"
#include "passes/strategy/strategy.h"

int tree_cut(int towers) {
  int half = 1;
  while (2 * half < towers) half *= 2;
  return half;
}

static int tower_home(const struct tree *t, int term) {
  return part_is_whole(t->part) ? t->terms[term]->device : strategy_worker(t->s, term);
}

/* Where the sum of a range is made. In the part of one task a range over several is not looked into. */
static int place_of(const struct tree *t, int lo, int hi, int device) {
  if (hi - lo == 1) return tower_home(t, lo);
  if (hi - lo == t->count) return device;
  const int *of = t->part->of;
  if (of && of[tower_home(t, lo)] != of[tower_home(t, hi - 1)]) return device;
  int half = lo + tree_cut(hi - lo);
  int a = place_of(t, lo, half, device), b = place_of(t, half, hi, device);
  const struct target *target = &t->out->config.target;
  return a == b || (same_task(target, a, b) && !same_task(target, a, device)) ? a : device;
}

/* Of the sum of a range. */
static const char *sum_name(const struct tree *t, int lo, int hi) {
  const char *name = t->all->name;
  if (hi - lo == t->count) return name;
  int first = t->terms[lo] ? t->terms[lo]->tower : lo; /* of a worker's own sum, not 0 */
  if (hi - lo == 1) return arena_printf(t->out->arena, "%s.tower_%d", name, first);
  return arena_printf(t->out->arena, "%s.towers_%d-%d", name, first, first + hi - 1 - lo);
}

/* Of the message that brings the sum of a range: small ones come before those that are made of them. */
enum { ALL_LEVELS = 64 };
static void order_of(const struct tree *t, int lo, int hi, int64_t *order) {
  int level = 0, count;
  while (1 << level < hi - lo) level++;
  order[0] = node_ints(t->all, ATTR_order, &count)[0];
  order[1] = hi - lo == t->count ? ALL_LEVELS : level;
  order[2] = lo;
}

/* The sum of a range, which another device has, on this one; `comes`: it is sent. */
static struct node *remote_sum(const struct tree *t, int lo, int hi, int from, int device, bool comes) {
  int64_t order[3];
  order_of(t, lo, hi, order);
  build_at(t->out, t->all);
  if (hi - lo < t->count) {
    t->out->at.dist = dist_partial(node_string(t->all, ATTR_reduction));
    t->out->at.tower = lo;
    t->out->at.replica = -1;
  }
  return part_remote(t->out, sum_name(t, lo, hi), &t->all->type, from, device, order, comes ? 3 : 0);
}

static bool send_sum(const struct tree *t, struct node *x, int lo, int hi, int to) {
  int64_t order[3];
  order_of(t, lo, hi, order);
  return part_send(t->out, x, to, order, 3) != NULL;
}

static bool has_own(const struct tree *t, int lo, int hi) {
  return lo < t->part->first_tower + t->part->ntowers && hi > t->part->first_tower;
}

/* A range whose sum another task makes: what this one has of it goes there. */
static bool give_sums(const struct tree *t, int lo, int hi, int device) {
  if (hi - lo == 1 || !has_own(t, lo, hi)) return true;
  int half = lo + tree_cut(hi - lo), to = place_of(t, lo, hi, device);
  for (int i = 0; i < 2; i++) {
    int begin = i ? half : lo, end = i ? hi : half;
    if (!part_has(t->part, place_of(t, begin, end, device))) {
      if (!give_sums(t, begin, end, device)) return false;
      continue;
    }
    if (!send_sum(t, tree_sum(t, begin, end, device, NULL), begin, end, to)) return false;
  }
  return true;
}

/* The sum of a range for the device that adds it to another. */
static struct node *sum_for(const struct tree *t, int lo, int hi, int device, int reader, const char *why) {
  int at = place_of(t, lo, hi, device);
  if (part_has(t->part, at)) return tree_sum(t, lo, hi, device, why);
  return give_sums(t, lo, hi, device) ? remote_sum(t, lo, hi, at, reader, true) : NULL;
}

struct node *tree_sum(const struct tree *t, int lo, int hi, int device, const char *why) {
  if (hi - lo == 1) return t->terms[lo];
  int half = lo + tree_cut(hi - lo);
  struct node *pair[2];
  if (part_is_whole(t->part)) {
    pair[0] = tree_sum(t, lo, half, device, why);
    pair[1] = tree_sum(t, half, hi, device, why);
  } else {
    int reader = place_of(t, lo, hi, device);
    pair[0] = sum_for(t, lo, half, device, reader, why);
    pair[1] = sum_for(t, half, hi, device, reader, why);
  }
  return tree_add(t, pair, lo, hi, device, why);
}

struct node *tree_part(const struct tree *t, int device,
                       struct node *(*finish)(struct graph *g, const struct node *all, struct node *total)) {
  const struct task_part *p = t->part;
  int numbers, readers = node_ints(t->all, ATTR_order, &numbers)[1] ? p->count : 1;
  if (!part_has(p, device)) {
    if (!give_sums(t, 0, t->count, device)) return NULL;
    return remote_sum(t, 0, t->count, device, p->first[p->process], p->process < readers);
  }
  struct node *total = finish(t->out, t->all, tree_sum(t, 0, t->count, device, NULL));
  for (int i = 0; total && i < readers; i++)
    if (i != p->process && !send_sum(t, total, 0, t->count, p->first[i])) return NULL;
  return total;
}

struct node *tree_add(const struct tree *t, struct node **pair, int lo, int hi, int device, const char *why) {
  if (!pair[0] || !pair[1]) return NULL;
  struct graph *g = t->out;
  build_at(g, t->all);
  g->at.device = device;
  if (why) g->at.why = why;
  if (hi - lo < t->count) {
    g->at.dist = dist_partial(node_string(t->all, ATTR_reduction));
    g->at.tower = t->terms[lo] ? t->terms[lo]->tower : lo;
    g->at.replica = -1;
    if (pair[0]->device == pair[1]->device) {
      g->at.device = pair[0]->device;
      g->at.why = "partial sum -> where its towers are";
    } else if (same_task(&g->config.target, pair[0]->device, pair[1]->device) &&
               !same_task(&g->config.target, pair[0]->device, device)) {
      g->at.device = pair[0]->device;
      g->at.why = "partial sum -> in the task of its towers";
    }
  }
  return build_named(g, sum_name(t, lo, hi), t->op, 2, pair, 0, NULL, NULL);
}

int tree_devices(const struct tree *t) {
  int count = 1;
  for (int i = 1; i < t->all->ninputs; i++) count += t->terms[i]->device != t->terms[i - 1]->device;
  for (int i = 0; i < t->all->ninputs; i++)
    for (int k = i + 2; k < t->all->ninputs; k++)
      if (t->terms[k]->device == t->terms[i]->device && t->terms[k - 1]->device != t->terms[i]->device)
        return 1;
  return count;
}

void tree_blocks(const struct tree *t, int *devices, struct node **sums) {
  int count = 0;
  for (int lo = 0, hi; lo < t->all->ninputs; lo = hi) {
    int device = t->terms[lo]->device;
    for (hi = lo + 1; hi < t->all->ninputs && t->terms[hi]->device == device;) hi++;
    devices[count] = device;
    sums[count++] = tree_sum(t, lo, hi, device, NULL);
  }
}

struct node *relay(struct graph *out, struct node *x, int device) {
  struct node copy = *x;
  copy.op = OP_identity;
  copy.name = arena_printf(out->arena, "%s.relay_%d", x->name, device);
  copy.inputs = &x;
  copy.ninputs = 1;
  copy.nattrs = 0;
  copy.device = device;
  copy.why = arena_printf(out->arena, "relay -> %s", out->config.target.devices[device].text);
  return graph_node(out, &copy);
}
