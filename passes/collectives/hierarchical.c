/* SPDX-License-Identifier: Apache-2.0 */
/* hierarchical_copy: each half of the tree is summed on a device of its own towers, its root, which moves on by one
 * from sum to sum. The two roots take turns at adding both halves; the other one is sent the sum, and each hands it on
 * to the devices of its half. */
#include "passes/collectives/collectives.h"

struct tree_halves {
  int begin[3]; /* half h: towers begin[h]..begin[h+1]-1 */
  int roots[2];
  int last; /* the half whose root adds both */
};

static struct tree_halves find_halves(const struct tree *t, int n) {
  int cut = tower_cut(t->count);
  return (struct tree_halves){.begin = {0, cut, t->count},
                              .roots = {tree_home(t, n % cut), tree_home(t, cut + n % (t->count - cut))},
                              .last = n & 1};
}

static const char *why_half(const struct tree *t, int root) {
  return arena_printf(t->out->arena, "sum -> root of its half, device %d", root);
}

static struct node *add_halves(const struct tree *t, const struct tree_halves *h, struct node **pair) {
  int root = h->roots[h->last];
  const char *why = arena_printf(t->out->arena, "sum -> roots in turn, device %d", root);
  return tree_add(t, pair, 0, t->count, root, why);
}

struct node *hierarchical_whole(struct pass_ctx *ctx, const struct tree *t, int n, struct tower_sum *s) {
  struct tree_halves h = find_halves(t, n);
  struct node *pair[2];
  s->half = arena_new_array(ctx->scratch, (size_t)t->out->config.target.ndevices, uint8_t);
  for (int i = 0; i < 2; i++) {
    for (int k = h.begin[i]; k < h.begin[i + 1]; k++) s->half[t->terms[k]->device] |= 1 << i;
    pair[i] = tree_sum(t, h.begin[i], h.begin[i + 1], h.roots[i], why_half(t, h.roots[i]));
  }
  s->other_half = !h.last;
  s->other_root = h.roots[!h.last];
  return add_halves(t, &h, pair);
}

/* --- in the part of one task, which has towers of one half --- */

static int half_of(const struct tree *t, const struct tree_halves *h, int process) {
  return process >= t->part->of[tree_home(t, h->begin[1])];
}

/* From the root of a half to the processes of that half that read it, and from the one that adds to the other. */
static bool hand_on(const struct tree *t, const struct tree_halves *h, struct node *x, int half,
                    int readers) {
  const struct task_graph *p = t->part;
  bool on = half != h->last, other = !on && (readers > 1 || h->last == 1);
  if (other && !tree_send(t, x, 0, t->count, h->roots[!half], false)) return false;
  for (int i = 0; i < readers; i++) {
    bool root = i == p->of[h->roots[0]] || i == p->of[h->roots[1]];
    if (root || half_of(t, h, i) != half) continue;
    if (!tree_send(t, x, 0, t->count, p->first[i], on)) return false;
  }
  return true;
}

/* What this task has of a half goes to its root; if that is its own, the sum of the half. False after an error. */
static bool sum_half(const struct tree *t, const struct tree_halves *h, int half, struct node **sum) {
  int lo = h->begin[half], hi = h->begin[half + 1], root = h->roots[half];
  *sum = NULL;
  if (!task_graph_has(t->part, root)) return tree_give(t, lo, hi, root);
  return (*sum = tree_sum(t, lo, hi, root, why_half(t, root))) != NULL;
}

struct node *hierarchical_part(const struct tree *t, int n) {
  const struct task_graph *p = t->part;
  struct tree_halves h = find_halves(t, n);
  int readers = tree_reads(t, p->count - 1) ? p->count : 1;
  int half = half_of(t, &h, p->process), root = h.roots[half], adder = h.roots[h.last];
  struct node *pair[2] = {NULL}, *total;
  if (!sum_half(t, &h, half, &pair[half])) return NULL;
  if (task_graph_has(p, adder)) {
    int far = !half;
    pair[far] = tree_receive(t, h.begin[far], h.begin[far + 1], h.roots[far], adder, true, false);
    total = tree_divide(t->out, t->all, add_halves(t, &h, pair));
    return total && hand_on(t, &h, total, half, readers) ? total : NULL;
  }
  if (task_graph_has(p, root)) {
    bool comes = readers > 1 || h.last == 1;
    if (!tree_send(t, pair[half], h.begin[half], h.begin[half + 1], adder, false)) return NULL;
    total = tree_receive(t, 0, t->count, adder, root, comes, false);
    return total && (!comes || hand_on(t, &h, total, half, readers)) ? total : NULL;
  }
  return tree_receive(t, 0, t->count, root, p->first[p->process], p->process < readers, half != h.last);
}
