/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over towers by the fixed tree: a range of n towers is cut after the largest power of two below n. A subtree
 * whose towers share a device is summed there, one whose towers share a task that is not the sum's own within that
 * task, and one whose towers share a host that is not the sum's own within that host. */
#include "passes/collectives/tree.h"

#include "ir/ops/op.h"
#include "ir/ops/op_id.h"
#include "passes/strategy/strategy.h"

int tree_home(const struct tree *t, int term) {
  return task_graph_is_whole(t->part) ? t->terms[term]->device : strategy_worker(t->s, term);
}

static bool same_host(const struct tree *t, int a, int b) { return t->hosts && t->hosts[a] == t->hosts[b]; }

/* Where a range is summed whose halves are made on a and b, in a sum on `device`. */
static int place_between(const struct tree *t, int lo, int hi, int a, int b, int device) {
  const struct target *target = &t->out->config.target;
  if (a == b || (same_task(target, a, b) && !same_task(target, a, device))) return a;
  if (!same_host(t, a, b) || same_host(t, a, device)) return device;
  return tree_home(t, lo + t->turn % (hi - lo));
}

/* Where the sum of a range is made. In the part of one task a range over several of them, or over several hosts, is not
 * looked into. */
static int place_of(const struct tree *t, int lo, int hi, int device) {
  if (hi - lo == 1) return tree_home(t, lo);
  if (hi - lo == t->count) return device;
  const int *near = t->hosts ? t->hosts : t->part->of;
  if (t->part->of && near[tree_home(t, lo)] != near[tree_home(t, hi - 1)]) return device;
  int half = lo + tower_cut(hi - lo);
  int a = place_of(t, lo, half, device), b = place_of(t, half, hi, device);
  return place_between(t, lo, hi, a, b, device);
}

/* Of the sum of a range. */
static const char *sum_name(const struct tree *t, int lo, int hi) {
  const char *name = t->all->name;
  if (hi - lo == t->count) return name;
  int first = t->terms[lo] ? t->terms[lo]->tower : lo; /* of a worker's own sum, not 0 */
  if (hi - lo == 1) return arena_printf(t->out->arena, "%s.tower_%d", name, first);
  return arena_printf(t->out->arena, "%s.towers_%d-%d", name, first, first + hi - 1 - lo);
}

/* Of the message that brings the sum of a range: small ones come before those that are made of them, and the whole to
 * another host before it is handed on there; of several chunks, the first before the others. How many numbers. */
enum { ALL_LEVELS = 64, ORDER = 4 };
static int order_of(const struct tree *t, int lo, int hi, bool on, int64_t *order) {
  int level = 0, count;
  while (1 << level < hi - lo) level++;
  order[0] = node_ints(t->all, ATTR_order, &count)[0];
  order[1] = hi - lo == t->count ? ALL_LEVELS + on : level;
  order[2] = lo;
  order[3] = t->turn;
  return t->turn ? ORDER : ORDER - 1;
}

struct node *tree_receive(const struct tree *t, int lo, int hi, int from, int device, bool comes, bool on) {
  int64_t order[ORDER];
  int numbers = order_of(t, lo, hi, on, order);
  build_at(t->out, t->all);
  if (hi - lo < t->count) {
    t->out->at.dist = dist_partial(node_string(t->all, ATTR_reduction));
    t->out->at.tower = lo;
    t->out->at.replica = -1;
  }
  return task_graph_remote(t->out, sum_name(t, lo, hi), &t->all->type, from, device, order,
                           comes ? numbers : 0);
}

bool tree_send(const struct tree *t, struct node *x, int lo, int hi, int to, bool on) {
  int64_t order[ORDER];
  int numbers = order_of(t, lo, hi, on, order);
  return task_graph_send(t->out, x, to, order, numbers) != NULL;
}

static bool has_own(const struct tree *t, int lo, int hi) {
  return lo < t->part->first_tower + t->part->ntowers && hi > t->part->first_tower;
}

bool tree_give(const struct tree *t, int lo, int hi, int device) {
  if (hi - lo == 1 || !has_own(t, lo, hi)) return true;
  int half = lo + tower_cut(hi - lo), to = place_of(t, lo, hi, device);
  for (int i = 0; i < 2; i++) {
    int begin = i ? half : lo, end = i ? hi : half;
    if (!task_graph_has(t->part, place_of(t, begin, end, device))) {
      if (!tree_give(t, begin, end, device)) return false;
      continue;
    }
    if (!tree_send(t, tree_sum(t, begin, end, device, NULL), begin, end, to, false)) return false;
  }
  return true;
}

/* The sum of a range for the device that adds it to another. */
static struct node *sum_for(const struct tree *t, int lo, int hi, int device, int reader, const char *why) {
  int at = place_of(t, lo, hi, device);
  if (task_graph_has(t->part, at)) return tree_sum(t, lo, hi, device, why);
  return tree_give(t, lo, hi, device) ? tree_receive(t, lo, hi, at, reader, true, false) : NULL;
}

struct node *tree_sum(const struct tree *t, int lo, int hi, int device, const char *why) {
  if (hi - lo == 1) return t->terms[lo];
  int half = lo + tower_cut(hi - lo);
  struct node *pair[2];
  if (task_graph_is_whole(t->part)) {
    pair[0] = tree_sum(t, lo, half, device, why);
    pair[1] = tree_sum(t, half, hi, device, why);
  } else {
    int reader = place_of(t, lo, hi, device);
    pair[0] = sum_for(t, lo, half, device, reader, why);
    pair[1] = sum_for(t, half, hi, device, reader, why);
  }
  return tree_add(t, pair, lo, hi, device, why);
}

bool tree_reads(const struct tree *t, int process) {
  int count;
  const int64_t *order = node_ints(t->all, ATTR_order, &count);
  for (int i = 1; i + 1 < count; i += 2)
    if (order[i] <= process && process < order[i + 1]) return true;
  return false;
}

/* The process that fetches the whole for the host that this one is on: in turn. */
static int leader_of(const struct tree *t, int process) {
  const struct members *m = t->members;
  int host = t->hosts[t->part->first[process]], first = m->begin[host];
  return m->processes[first + t->turn % (m->begin[host + 1] - first)];
}

/* Whether a process has the whole from the device that makes it, not from another process of its host. */
static bool is_direct(const struct tree *t, int process, int device) {
  return !t->hosts || process >= t->part->nworkers || same_host(t, t->part->first[process], device) ||
         leader_of(t, process) == process;
}

/* Whether the whole comes to a process: it reads it, or another one of its host does. */
static bool has_whole(const struct tree *t, int process, int device) {
  if (tree_reads(t, process)) return true;
  if (!t->hosts || process >= t->part->nworkers || same_host(t, t->part->first[process], device) ||
      leader_of(t, process) != process)
    return false;
  const struct members *m = t->members;
  int host = t->hosts[t->part->first[process]];
  for (int i = m->begin[host]; i < m->begin[host + 1]; i++)
    if (tree_reads(t, m->processes[i])) return true;
  return false;
}

/* The whole to all that have it from this process. */
static bool send_whole(const struct tree *t, struct node *x, int device) {
  const struct task_graph *p = t->part;
  bool on = x->op == OP_remote;
  if (on && (!t->hosts || p->process >= p->nworkers || leader_of(t, p->process) != p->process)) return true;
  for (int i = 0; i < p->count; i++) {
    bool mine = on ? tree_reads(t, i) && !is_direct(t, i, device) && leader_of(t, i) == p->process
                   : has_whole(t, i, device) && is_direct(t, i, device);
    if (mine && i != p->process && !tree_send(t, x, 0, t->count, p->first[i], on)) return false;
  }
  return true;
}

struct node *tree_part(const struct tree *t, int device,
                       struct node *(*finish)(struct graph *g, const struct node *all, struct node *total),
                       const char *why) {
  const struct task_graph *p = t->part;
  bool comes = has_whole(t, p->process, device), direct = !comes || is_direct(t, p->process, device);
  struct node *total;
  if (task_graph_has(p, device)) {
    total = finish(t->out, t->all, tree_sum(t, 0, t->count, device, why));
  } else {
    if (!tree_give(t, 0, t->count, device)) return NULL;
    int from = direct ? device : p->first[leader_of(t, p->process)];
    total = tree_receive(t, 0, t->count, from, p->first[p->process], comes, !direct);
  }
  return !total || !send_whole(t, total, device) ? NULL : total;
}

struct node *tree_add(const struct tree *t, struct node **pair, int lo, int hi, int device, const char *why) {
  if (!pair[0] || !pair[1]) return NULL;
  struct graph *g = t->out;
  build_at(g, t->all);
  g->at.device = device;
  if (why) g->at.why = (struct reason){.rule = why};
  if (hi - lo < t->count) {
    g->at.dist = dist_partial(node_string(t->all, ATTR_reduction));
    g->at.tower = t->terms[lo] ? t->terms[lo]->tower : lo;
    g->at.replica = -1;
    /* In the part of one task what another one sends is where it is read. */
    int half = lo + tower_cut(hi - lo), a = pair[0]->device, b = pair[1]->device;
    if (!task_graph_is_whole(t->part)) a = place_of(t, lo, half, device), b = place_of(t, half, hi, device);
    int at = place_between(t, lo, hi, a, b, device);
    if (at != device || a == b) {
      g->at.device = at;
      g->at.why = (struct reason){.rule = a == b ? "partial sum -> where its towers are"
                                          : same_task(&g->config.target, a, b)
                                              ? "partial sum -> in the task of its towers"
                                              : "partial sum -> on the host of its towers"};
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

struct node *relay(struct graph *out, struct node *x, const char *of, int device) {
  if (!x) return NULL;
  struct node copy = *x;
  copy.op = OP_identity;
  copy.name = arena_printf(out->arena, "%s.relay_%d", of, device);
  copy.inputs = &x;
  copy.ninputs = 1;
  copy.nattrs = 0;
  copy.device = device;
  copy.why = (struct reason){
      .rule = arena_printf(out->arena, "relay -> %s", out->config.target.devices[device].text)};
  return graph_node(out, &copy);
}

struct members tree_members(struct arena *a, const struct task_graph *p, const int *hosts, int nhosts) {
  struct members m = {.begin = arena_new_array(a, (size_t)nhosts + 1, int)};
  int *filled = arena_new_array(a, (size_t)nhosts, int);
  m.processes = arena_new_array(a, (size_t)p->count, int);
  for (int i = 0; i < p->nworkers; i++) m.begin[hosts[p->first[i]] + 1]++;
  for (int h = 0; h < nhosts; h++) m.begin[h + 1] += m.begin[h];
  for (int i = 0; i < p->nworkers; i++) {
    int host = hosts[p->first[i]];
    m.processes[m.begin[host] + filled[host]++] = i;
  }
  return m;
}

struct fetchers tree_fetchers(struct arena *a, const struct tree *t) {
  struct fetchers f = {.hosts = t->hosts};
  if (!t->hosts || !task_graph_is_whole(t->part)) return (struct fetchers){.hosts = NULL};
  uint8_t *seen = arena_new_array(a, (size_t)t->out->config.target.ndevices, uint8_t);
  f.devices = arena_new_array(a, (size_t)t->count, int);
  for (int i = 0; i < t->count; i++) {
    int device = t->terms[i]->device;
    if (!seen[device]) f.devices[f.count++] = device;
    seen[device] = 1;
  }
  return f;
}

struct node *fetch(struct graph *out, const struct fetchers *f, struct node *x, int device, int turn) {
  int near = 0;
  bool among = false;
  if (!x || !f->hosts || f->hosts[x->device] == f->hosts[device]) return x;
  for (int i = 0; i < f->count; i++) {
    near += f->hosts[f->devices[i]] == f->hosts[device];
    among |= f->devices[i] == device;
  }
  if (!among) return x;
  int left = turn % near, at = 0; /* near > 0: the reader itself */
  while (f->hosts[f->devices[at]] != f->hosts[device] || left-- > 0) at++;
  return relay(out, x, x->name, f->devices[at]);
}

struct node *tree_divide(struct graph *g, const struct node *all, struct node *total) {
  if (!total || strcmp(node_string(all, ATTR_reduction), "mean") != 0) return total;
  build_at(g, all);
  g->at.device = total->device;
  return build2(g, OP_div, total,
                build_fill(g, &all->type, g->config.task ? g->config.towers : all->ninputs));
}
