/* Sums over towers by the fixed tree: a range of n towers is cut after the largest power of two below n. A subtree
 * whose towers share a device is summed there, one whose towers share a task that is not the sum's own within that
 * task. */
#include "passes/collectives/tree.h"

#include "ir/ops/op.h"
#include "passes/strategy/strategy.h"

struct node *tree_sum(const struct tree *t, int lo, int hi, int device, const char *why) {
  if (hi - lo == 1) return t->terms[lo];
  int half = lo + tree_cut(hi - lo);
  struct node *pair[2] = {tree_sum(t, lo, half, device, why), tree_sum(t, half, hi, device, why)};
  return tree_add(t, pair, lo, hi, device, why);
}

int tree_cut(int towers) {
  int half = 1;
  while (2 * half < towers) half *= 2;
  return half;
}

struct node *tree_add(const struct tree *t, struct node **pair, int lo, int hi, int device, const char *why) {
  if (!pair[0] || !pair[1]) return NULL;
  struct graph *g = t->out;
  build_at(g, t->all);
  g->at.device = device;
  if (why) g->at.why = why;
  const char *name = t->all->name;
  if (hi - lo < t->all->ninputs) {
    int first = t->terms[lo]->tower; /* of a worker's own sum, not 0 */
    name = arena_printf(g->arena, "%s.towers_%d-%d", name, first, first + hi - 1 - lo);
    g->at.dist = dist_partial(node_string(t->all, ATTR_reduction));
    g->at.tower = first;
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
  return build_named(g, name, t->op, 2, pair, 0, NULL, NULL);
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
