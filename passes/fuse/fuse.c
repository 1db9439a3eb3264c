/* SPDX-License-Identifier: Apache-2.0 */
/* Joins elementwise nodes, movements, constants, streams and reductions of one device into kernels.
 *
 * Requires: placed, with copies and collectives expanded. Guarantees: everything that a kernel computes is one
 * `fused` node or a plain node of its own; no float operation is reordered.
 *
 * Nodes are visited from the last to the first, so that all readers of a node have been seen. A group stands in
 * the order at its last node, the root. A node may join the first of the groups that read it if every other reader
 * stands later: so no edge ever leads backwards and the groups cannot form a cycle. What is read elsewhere too becomes
 * a further result. Values that cost nothing are not stored at all but computed by each reader: movements,
 * and cheap arithmetic of a single large operand.
 *
 * On the host sums over the same axes that read the same memory are one kernel, whoever reads them, and what is summed
 * and read elsewhere, too, is stored by the kernel that sums it: so a batch norm passes over its operand once for both
 * statistics, and over two of them for all sums of its gradient. So are elementwise values of one shape that load the
 * same memory, on any device: the gradients of an LSTM's gates are one kernel.
 *
 * Where towers run one behind the other on a device, no kernel is of several, but for what is small: it would keep
 * values of all of them. So large gradients are added two by two. */
#include "passes/fuse/fuse.h"

#include "ir/graph/tower_order.h"
#include "ir/ops/op_id.h"
#include "ir/ops/spread.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COPIES = 6, MAX_CLOSURE = 32, SUMS_TRIED = 8, GROUPS_TRIED = 8, LARGE_VALUE = 1 << 16 };
#define LAST UINT32_MAX

static bool is_source(const struct node *n) { return node_is_counted(n) || n->op == OP_batch_size; }

static bool is_index(const struct node *n) { return n->op == OP_iota || n->op == OP_batch_size; }

/* What is stored in 16 bits is so to be read so, and not computed again from what has 32. */
static bool is_cheap(struct fusion *f, const struct node *n) {
  return is_index(n) || (!dtype_is_narrow(n->type.dtype) && fuse_is_cheap(&f->cost, n));
}

static bool can_fuse(const struct node *n) {
  enum op_kind kind = op_of(n)->kind;
  if (kind == KIND_ELEMENTWISE || kind == KIND_REDUCE || is_source(n)) return true;
  return node_is_strided(n) && !fuse_floats(n);
}

/* Repeats values. An axis of one element that is added counts only if it is not the first, which may be the batch. */
static bool is_expanding(const struct node *n) {
  if (n->op != OP_broadcast) return false;
  int count, at = 0;
  const int64_t *axes = node_ints(n, ATTR_axes, &count);
  for (int i = 0; i < n->type.rank; i++) {
    if (at < count && axes[at] == i)
      at++;
    else if (i == 0 || n->type.dim[i] != 1)
      return true;
  }
  return false;
}

/* Operands that are as large as the result and have to be loaded. */
static int large_inputs(const struct node *n) {
  int large = 0;
  for (int i = 0; i < n->ninputs; i++) {
    const struct node *x = n->inputs[i];
    large += !(is_index(x) || x->op == OP_constant || is_expanding(x));
  }
  return large;
}

static int small_arity(const struct node *n) {
  int arity = 0;
  for (int i = 0; i < n->ninputs; i++) arity += !node_is_immediate(n->inputs[i]);
  return arity;
}

/* Groups. */

static void add_room(struct fusion *f, struct group *g) {
  g->uses_cap = g->uses_cap ? 2 * g->uses_cap : 4;
  struct group_use *more = arena_room(f->scratch, (size_t)g->uses_cap * sizeof *more);
  if (g->nuses) memcpy(more, g->uses, (size_t)g->nuses * sizeof *more);
  g->uses = more;
}

static bool add_use(struct fusion *f, struct group *g, struct group_use u) {
  if (node_is_immediate(u.node)) return true;
  for (int i = 0; i < g->nuses; i++) {
    const struct group_use *have = &g->uses[i];
    if (have->node == u.node && have->view == u.view && have->inside == u.inside) return true;
  }
  if (g->nuses == MAX_FUSED_ARGS) return false;
  if (g->nuses == g->uses_cap) add_room(f, g);
  g->uses[g->nuses++] = u;
  return true;
}

/* n, read as u says, is computed inside: now its inputs are read. */
static bool add_inputs(struct fusion *f, struct group *g, const struct node *n, struct group_use u) {
  bool strided = node_is_strided(n);
  if (strided) {
    u.view = u.view * 31 + n->id + 1;
    u.view += u.view == 0;
    u.expanding |= is_expanding(n);
  }
  if (op_of(n)->kind == KIND_REDUCE) u = (struct group_use){.inside = true};
  if (is_source(n) && n->ninputs) u.view = LAST, u.expanding = true;
  for (int i = 0; i < n->ninputs; i++) {
    u.node = n->inputs[i];
    if (!add_use(f, g, u)) return false;
  }
  return true;
}

/* In the part of one task: whether n may wait for all that the group waits for. A message is sent before those are
 * received that come behind it. */
static bool in_time(const struct fusion *f, const struct group *g, const struct node *n) {
  if (!f->latest) return true;
  int latest = g->latest > f->latest[n->id] ? g->latest : f->latest[n->id];
  int due = g->due < f->due[n->id] ? g->due : f->due[n->id];
  return latest < due;
}

static void note_messages(const struct fusion *f, struct group *g, const struct node *n) {
  if (!f->latest) return;
  if (g->nmembers == 0 || f->latest[n->id] > g->latest) g->latest = f->latest[n->id];
  if (g->nmembers == 0 || f->due[n->id] < g->due) g->due = f->due[n->id];
}

static void add_member(struct fusion *f, int group, const struct node *n, bool result) {
  GROW(f, f->members, f->nmembers, f->members_cap);
  struct group *g = &f->groups[group];
  f->members[f->nmembers] = (struct group_member){n, group, g->members, f->member_of[n->id], result};
  g->members = f->member_of[n->id] = f->nmembers++;
  note_messages(f, g, n);
  g->nmembers++;
  g->nresults += result;
  if (op_of(n)->kind != KIND_REDUCE) return;
  g->reduce[g->nreduce++] = n;
  if (n->op != OP_reduce_sum || g->nreduce > 1) return;
  GROW(f, f->sums, f->nsums, f->sums_cap);
  f->sums[f->nsums++] = group;
}

static void new_group(struct fusion *f, const struct node *n) {
  GROW(f, f->groups, f->ngroups, f->groups_cap);
  struct group *g = &f->groups[f->ngroups];
  *g = (struct group){.root = n, .members = NOWHERE};
  add_member(f, f->ngroups++, n, true);
  add_inputs(f, &f->groups[f->ngroups - 1], n, (struct group_use){0});
}

static bool on_host(const struct fusion *f, const struct node *n) {
  const struct target *t = &f->g->config.target;
  return n->device < 0 || n->device >= t->ndevices || strcmp(t->devices[n->device].name.kind, "gpu") != 0;
}

/* Whether the group has to wait for another device: what other devices wait for is no result of it, nor is what is
 * summed. */
static bool has_to_wait(const struct group *g) {
  for (int i = 0; i < g->nuses; i++)
    if (g->uses[i].node->op == OP_copy || g->uses[i].node->op == OP_remote || is_collective(g->uses[i].node))
      return true;
  return false;
}

/* Whether the group may reduce n, too: beside other sums if it is one over the same axes of the same shape. */
static bool may_reduce(const struct fusion *f, const struct group *g, const struct node *n) {
  if (g->nreduce == 0) return true;
  const struct node *other = g->reduce[0];
  if (g->nreduce == MAX_KERNEL_SUMS || n->op != OP_reduce_sum || other->op != OP_reduce_sum || !on_host(f, n))
    return false;
  int count, others;
  const int64_t *axes = node_ints(n, ATTR_axes, &count), *other_axes = node_ints(other, ATTR_axes, &others);
  return type_equal(&n->inputs[0]->type, &other->inputs[0]->type) && count == others &&
         memcmp(axes, other_axes, (size_t)count * sizeof *axes) == 0;
}

/* Whether n may be computed where u reads it. */
static bool use_allows(struct fusion *f, const struct node *n, const struct group *g,
                       const struct group_use *u, bool result) {
  if (op_of(n)->kind == KIND_REDUCE) return u->view == 0 && !u->inside && may_reduce(f, g, n);
  if (result && (u->view != 0 || (u->inside && (!on_host(f, n) || has_to_wait(g))))) return false;
  if (u->view == 0 || node_is_strided(n) || is_index(n)) return true;
  if (!is_cheap(f, n)) return false;
  /* Under a broadcast it would be computed again and again: only if that is cheaper than to load it. */
  return !u->expanding || (n->type.rank > 0 && small_arity(n) <= 1);
}

/* Whether n is a large sum of some towers of one device, in the tree over more. */
static bool is_share(const struct node *n) {
  if (n->op != OP_add || n->dist != DIST_PARTIAL || type_bytes(&n->type) < LARGE_VALUE) return false;
  const struct node *a = n->inputs[0], *b = n->inputs[1];
  return a->dist == DIST_PARTIAL && b->dist == DIST_PARTIAL && a->tower != b->tower &&
         a->device == b->device && a->device == n->device;
}

/* Whether n would wait in the group for another tower, and keep what it is made of. */
static bool is_of_other_tower(const struct fusion *f, const struct group *g, const struct node *n) {
  if (!f->by_tower || n->tower < 0) return false;
  bool light = op_of(n)->kind != KIND_REDUCE && type_bytes(&n->type) < LARGE_VALUE;
  return !light && (n->tower != g->root->tower || is_share(g->root));
}

/* Whether one more member, or one more result, may be in the group at all. */
static bool has_room(const struct fusion *f, const struct group *g, const struct node *n, bool result) {
  return g->root->device == n->device && g->nmembers < MAX_GROUP_MEMBERS &&
         !(result && g->nresults == MAX_KERNEL_RESULTS) && in_time(f, g, n);
}

/* Makes n part of the group if that is allowed. */
static bool join(struct fusion *f, const struct node *n, int group, bool result) {
  struct group *g = &f->groups[group];
  if (!has_room(f, g, n, result) || is_of_other_tower(f, g, n)) return false;
  if (result && node_is_strided(n)) return false;
  int count = 0;
  for (int i = 0; i < g->nuses; i++) {
    if (g->uses[i].node != n) continue;
    count++;
    if (!use_allows(f, n, g, &g->uses[i], result)) return false;
  }
  if (count == 0 || (count > 1 && !node_is_strided(n) && !is_cheap(f, n))) return false;

  struct group_use before[MAX_FUSED_ARGS];
  int nuses = g->nuses;
  memcpy(before, g->uses, (size_t)nuses * sizeof *before);
  g->nuses = 0;
  for (int i = 0; i < nuses; i++)
    if (before[i].node != n) g->uses[g->nuses++] = before[i];
  bool fits = true;
  for (int i = 0; i < nuses && fits; i++)
    if (before[i].node == n) fits = add_inputs(f, g, n, before[i]);
  if (!fits || g->nuses + g->nresults + result > MAX_FUSED_ARGS) {
    memcpy(g->uses, before, (size_t)nuses * sizeof *before);
    g->nuses = nuses;
    return false;
  }
  add_member(f, group, n, result);
  return true;
}

/* The readers of a node: the groups among them, and where the first of the others stands. */
struct readers {
  int ngroups;          /* how many groups; which: fusion.found */
  int first;            /* the group that stands first, or NOWHERE */
  uint32_t place, next; /* where it stands; where the first reader that is not it stands */
  bool outside;         /* some reader is in no group */
  bool elsewhere;       /* some reader is on another device */
};

static void see(struct readers *r, uint32_t place, int group) {
  if (place < r->place) {
    r->next = r->place;
    r->place = place;
    r->first = group;
  } else if (place < r->next && !(place == r->place && group == r->first)) {
    r->next = place;
  }
}

static struct readers readers_of(struct fusion *f, const struct node *n) {
  struct readers r = {.first = NOWHERE, .place = LAST, .next = LAST, .outside = f->is_output[n->id]};
  for (uint32_t i = f->users.first[n->id]; i < f->users.first[n->id + 1]; i++) {
    const struct node *u = f->users.users[i];
    if (!f->live[u->id]) continue;
    r.elsewhere |= u->op == OP_copy || u->op == OP_send || is_collective(u);
    if (f->member_of[u->id] == NOWHERE) {
      r.outside = true;
      see(&r, f->place[u->id], NOWHERE);
    }
    for (int m = f->member_of[u->id]; m != NOWHERE; m = f->members[m].next_of_node) {
      int group = f->members[m].group;
      see(&r, f->groups[group].root->id, group);
      if (f->groups[group].seen == n->id + 1) continue;
      f->groups[group].seen = n->id + 1;
      GROW(f, f->found, r.ngroups, f->found_cap);
      f->found[r.ngroups++] = group;
    }
  }
  return r;
}

/* Computes n in each group that reads it. False if it has to be stored after all. */
static bool join_all(struct fusion *f, const struct node *n, const struct readers *r) {
  bool all = !r->outside, always = node_is_strided(n) || is_index(n);
  if (!always && (!all || r->ngroups > MAX_COPIES)) return false;
  for (int i = 0; i < r->ngroups; i++) all &= join(f, n, f->found[i], false);
  return all;
}

static bool is_free(struct fusion *f, const struct node *n, const struct readers *r) {
  if (node_is_strided(n) || is_index(n)) return true;
  return r->ngroups > 1 && is_cheap(f, n) && large_inputs(n) <= 1;
}

/* ---- sums ---- */

/* A value and what it is made of by elementwise ops, as far as that is loaded for each of its elements. */
struct closure {
  const struct node *node[MAX_CLOSURE];
  int count;
};

static bool in_closure(const struct closure *c, const struct node *n) {
  for (int i = 0; i < c->count; i++)
    if (c->node[i] == n) return true;
  return false;
}

static void add_to_closure(struct closure *c, const struct node *n) {
  if (node_is_immediate(n) || is_index(n) || is_expanding(n) || in_closure(c, n)) return;
  if (c->count < MAX_CLOSURE) c->node[c->count++] = n;
}

/* Whether n is read by what is no kernel: it is stored, whatever it costs. */
static bool is_stored(const struct fusion *f, const struct node *n) {
  bool stored = f->is_output[n->id];
  for (uint32_t i = f->users.first[n->id]; i < f->users.first[n->id + 1] && !stored; i++)
    stored = f->live[f->users.users[i]->id] && !can_fuse(f->users.users[i]);
  return stored;
}

static void close_over(const struct fusion *f, struct closure *c, const struct node *x) {
  int from = c->count;
  add_to_closure(c, x);
  for (int i = from; i < c->count; i++)
    for (int k = 0; k < c->node[i]->ninputs; k++)
      if (op_of(c->node[i])->kind == KIND_ELEMENTWISE && !is_stored(f, c->node[i]))
        add_to_closure(c, c->node[i]->inputs[k]);
}

/* Whether the group, its sums where `inside` holds, loads something of the closure. */
static bool loads_same(const struct fusion *f, const struct group *g, bool inside, const struct closure *c) {
  struct closure other = {.count = 0};
  for (int i = 0; i < g->nuses; i++)
    if (g->uses[i].inside == inside && g->uses[i].view == 0) close_over(f, &other, g->uses[i].node);
  for (int i = 0; i < other.count; i++)
    if (in_closure(c, other.node[i])) return true;
  return false;
}

/* Makes the sum n a further result of a group that sums over the same memory, if all that reads n stands behind. */
static bool join_sums(struct fusion *f, const struct node *n, const struct closure *c,
                      const struct readers *r) {
  for (int i = f->nsums - 1; i >= 0 && i >= f->nsums - SUMS_TRIED; i--) {
    struct group *g = &f->groups[f->sums[i]];
    struct group_use u = {.node = n->inputs[0], .inside = true};
    if (r->place <= g->root->id || !has_room(f, g, n, true) || !may_reduce(f, g, n)) continue;
    if (is_of_other_tower(f, g, n)) continue;
    if (has_to_wait(g) || !loads_same(f, g, true, c)) continue;
    if (g->nuses + g->nresults + 2 > MAX_FUSED_ARGS || !add_use(f, g, u)) continue;
    add_member(f, f->sums[i], n, true);
    return true;
  }
  return false;
}

/* Where the first of those stands that read n beside members of the closure and the sum itself. */
static uint32_t other_reader(const struct fusion *f, const struct closure *c, const struct node *n,
                             const struct node *sum) {
  uint32_t first = LAST;
  for (uint32_t i = f->users.first[n->id]; i < f->users.first[n->id + 1]; i++) {
    const struct node *u = f->users.users[i];
    if (!f->live[u->id] || u == sum || in_closure(c, u)) continue;
    uint32_t place = u->id < sum->id ? u->id : f->place[u->id];
    for (int m = f->member_of[u->id]; m != NOWHERE; m = f->members[m].next_of_node)
      if (f->groups[f->members[m].group].root->id < place) place = f->groups[f->members[m].group].root->id;
    if (place < first) first = place;
  }
  return first;
}

/* Whether the sum is better computed at once than where it is read: something that is computed for it is stored, too,
 * for what stands between. */
static bool sums_at_once(struct fusion *f, const struct node *n, const struct closure *c,
                         const struct readers *r) {
  for (int i = 0; i < c->count; i++) {
    const struct node *x = c->node[i];
    if (op_of(x)->kind != KIND_ELEMENTWISE) continue;
    if (!is_stored(f, x) && is_cheap(f, x) && large_inputs(x) <= 1) continue;
    uint32_t place = other_reader(f, c, x, n);
    if (n->id < place && place < r->place) return true;
  }
  return false;
}

/* ---- side by side ---- */

static bool same_shape(const struct node *a, const struct node *b) {
  return a->type.rank == b->type.rank &&
         memcmp(a->type.dim, b->type.dim, (size_t)a->type.rank * sizeof *a->type.dim) == 0;
}

static bool is_assigned(const struct fusion *f, const struct node *n) {
  for (uint32_t i = f->users.first[n->id]; i < f->users.first[n->id + 1]; i++)
    if (f->live[f->users.users[i]->id] && f->users.users[i]->op == OP_assign) return true;
  return false;
}

/* In the part of a task a kernel that writes a variable runs in its turn, others when somebody waits for them. */
static bool in_turn(const struct fusion *f, const struct group *g, const struct node *n) {
  bool assigned = is_assigned(f, n);
  for (int m = g->members; m != NOWHERE; m = f->members[m].next_in_group)
    assigned |= f->members[m].result && is_assigned(f, f->members[m].node);
  return assigned;
}

/* Makes n, which no member of it reads, a further result of a group that loads the same memory, if all that reads n
 * stands behind. */
static bool join_beside(struct fusion *f, const struct node *n, const struct readers *r) {
  if (op_of(n)->kind != KIND_ELEMENTWISE || r->elsewhere || n->type.rank == 0) return false;
  struct closure c = {.count = 0};
  for (int k = 0; k < n->ninputs; k++) close_over(f, &c, n->inputs[k]);
  for (int i = f->ngroups - 1; i >= 0 && i >= f->ngroups - GROUPS_TRIED; i--) {
    struct group *g = &f->groups[i];
    if (g->nreduce || op_of(g->root)->kind != KIND_ELEMENTWISE || !same_shape(n, g->root)) continue;
    if (r->place <= g->root->id || !has_room(f, g, n, true)) continue;
    if (g->root->tower != n->tower || g->root->replica != n->replica)
      continue; /* none reads what is another's */
    if ((f->latest && in_turn(f, g, n)) || !loads_same(f, g, false, &c)) continue;
    int nuses = g->nuses;
    if (add_inputs(f, g, n, (struct group_use){0}) && g->nuses + g->nresults + 1 <= MAX_FUSED_ARGS) {
      add_member(f, i, n, true);
      return true;
    }
    g->nuses = nuses;
  }
  return false;
}

static void visit(struct fusion *f, const struct node *n) {
  struct readers r = readers_of(f, n);
  f->place[n->id] = fuse_floats(n) || n->op == OP_assign ? r.place : n->id;
  if (!can_fuse(n)) return;
  if (is_free(f, n, &r) && join_all(f, n, &r)) return;
  bool result = r.outside || r.ngroups > 1;
  bool alone = node_is_strided(n) || is_index(n) || (f->by_tower && is_share(n));
  if (n->op == OP_reduce_sum && on_host(f, n)) {
    struct closure c = {.count = 0};
    close_over(f, &c, n->inputs[0]);
    if (join_sums(f, n, &c, &r)) return;
    alone = sums_at_once(f, n, &c, &r);
  }
  if (r.first != NOWHERE && r.elsewhere && has_to_wait(&f->groups[r.first])) alone = true;
  if (!alone && r.first != NOWHERE && r.place < r.next && join(f, n, r.first, result)) return;
  if (!alone && join_beside(f, n, &r)) return;
  new_group(f, n);
}

static bool is_message(const struct node *n) {
  return n->op == OP_send || (n->op == OP_remote && node_attr(n, ATTR_order));
}

static int by_order(const void *a, const void *b) { return message_key_compare(a, b); }

static void find_messages(struct fusion *f) {
  const struct graph *g = f->g;
  struct message_key *messages = arena_room(f->scratch, g->count * sizeof *messages);
  int count = 0;
  f->latest = arena_new_array(f->scratch, g->count, int);
  f->due = arena_new_array(f->scratch, g->count, int);
  for (uint32_t i = 0; i < g->count; i++) {
    f->latest[i] = -1;
    f->due[i] = INT_MAX;
    if (f->live[i] && is_message(g->nodes[i])) messages[count++] = message_key(g->nodes[i]);
  }
  if (count) qsort(messages, (size_t)count, sizeof *messages, by_order);
  for (int i = 0; i < count; i++)
    (messages[i].node->op == OP_send ? f->due : f->latest)[messages[i].node->id] = i;
  for (uint32_t i = 0; i < g->count; i++)
    for (int k = 0; k < g->nodes[i]->ninputs; k++) {
      int latest = f->latest[g->nodes[i]->inputs[k]->id];
      if (latest > f->latest[i]) f->latest[i] = latest;
    }
  for (uint32_t i = g->count; i-- > 0;)
    for (int k = 0; f->live[i] && k < g->nodes[i]->ninputs; k++) {
      int *due = &f->due[g->nodes[i]->inputs[k]->id];
      if (f->due[i] < *due) *due = f->due[i];
    }
}

static struct graph *fuse(struct pass_ctx *ctx, struct graph *g) {
  struct fusion f = {.g = g, .scratch = ctx->scratch, .cost = {.scratch = ctx->scratch}};
  f.users = graph_users(ctx->scratch, g);
  f.live = graph_live(ctx->scratch, g);
  f.by_tower = graph_tower_by_tower(g);
  if (g->config.task) find_messages(&f);
  f.is_output = arena_new_array(ctx->scratch, g->count + 1, uint8_t);
  f.member_of = arena_new_array(ctx->scratch, g->count + 1, int);
  f.place = arena_new_array(ctx->scratch, g->count + 1, uint32_t);
  for (int i = 0; i < g->noutputs; i++) f.is_output[g->outputs[i].node->id] = 1;
  for (uint32_t i = 0; i < g->count; i++) f.member_of[i] = NOWHERE;
  for (uint32_t i = g->count; i-- > 0;)
    if (f.live[i]) visit(&f, g->nodes[i]);
  return fuse_build(ctx, &f);
}

struct graph *pass_fuse(struct pass_ctx *ctx, struct graph *g) {
  struct arena_guard guard;
  struct pass_ctx inner = *ctx;
  inner.arena = arena_create_guarded(&guard);
  struct graph *out = fuse_pull(&inner, g);
  if (out) out = fuse_stacks(&inner, out);
  if (out) out = fuse_narrow(&inner, out);
  if (out) out = fuse_hoist(&inner, out);
  if (out) out = fuse(ctx, out);
  arena_destroy_guarded(inner.arena, &guard);
  return out;
}
