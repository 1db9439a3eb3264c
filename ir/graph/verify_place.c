/* SPDX-License-Identifier: Apache-2.0 */
/* What holds of towers and devices: the distribution is a type, each edge obeys it, and every node has its place. */
#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "ir/ops/op.h"
#include "ir/ops/op_id.h"
#include "ir/strategies.h"

#include <string.h>

/* ---- towers ---- */

static void check_tower(struct verify *v, const struct node *n) {
  int towers = v->g->config.towers, devices = v->g->config.target.ndevices;
  if (devices > 0 && n->replica >= devices)
    verify_breach(v, n, "copy %d is that of none of %d devices", n->replica, devices);
  switch (n->dist) {
  case DIST_NONE: verify_breach(v, n, "the value has no distribution"); return;
  case DIST_MIRRORED:
    if (n->tower >= 0) verify_breach(v, n, "a mirrored value belongs to no tower");
    return;
  case DIST_PER_REPLICA:
  case DIST_PARTIAL:
  case DIST_PARTIAL_MAX:
  case DIST_PARTIAL_MIN:
    if (n->replica >= 0) verify_breach(v, n, "only mirrored values have copies");
    if (n->tower < 0 || (towers > 0 && n->tower >= towers))
      verify_breach(v, n, "the value belongs to no tower");
    return;
  case DIST_COUNT: return;
  }
}

/* Operands in tower order; each tower once where the operands are still those of all towers. In asynchronous training
 * a worker's towers are all there are to its updates. */
static void check_tower_order(struct verify *v, const struct node *n, bool all) {
  int towers = v->g->config.towers, first = 0;
  if ((v->g->config.asynchronous || v->g->config.task) && n->ninputs > 0) { /* those of one task */
    first = n->inputs[0]->tower;
    towers = 0;
  }
  for (int i = 0; i < n->ninputs; i++) {
    int tower = n->inputs[i]->tower;
    bool good = all ? tower == first + i : i == 0 || tower > n->inputs[i - 1]->tower;
    if (!good) {
      verify_breach(v, n, "operand %s is out of tower order", n->inputs[i]->name);
      return;
    }
  }
  if (all && towers > 0 && n->ninputs != towers)
    verify_breach(v, n, "there are %d operands for %d towers", n->ninputs, towers);
}

static bool all_inputs(const struct node *n, enum dist d) {
  for (int i = 0; i < n->ninputs; i++)
    if (n->inputs[i]->dist != d) return false;
  return n->ninputs > 0;
}

/* all_reduce: over the towers' partial sums, or over their own extremes. Once placed, its operands may be the sums of
 * several towers each. */
static void check_all_reduce(struct verify *v, const struct node *n) {
  const char *how = node_string(n, ATTR_reduction);
  bool first = strcmp(how, "only_first_replica") == 0, sums = is_aggregation(how) && !first;
  if (n->dist != DIST_MIRRORED) verify_breach(v, n, "the result of all_reduce is mirrored");
  if ((first || !all_inputs(n, dist_partial(how))) && (sums || !all_inputs(n, DIST_PER_REPLICA))) {
    verify_breach(v, n, "all_reduce reads what is %s", sums ? "not a partial sum" : "no tower's own");
    return;
  }
  if (v->g->config.task && !is_collective(n) && !node_attr(n, ATTR_order))
    verify_breach(v, n, "the sum has no order among those of all tasks");
  if (first && n->ninputs != 1) verify_breach(v, n, "only the first tower's value counts");
  check_tower_order(v, n, v->g->stage == STAGE_REPLICATED && !first);
}

/* The towers' rows one behind the other. */
static void check_all_gather(struct verify *v, const struct node *n) {
  if (n->dist != DIST_MIRRORED) verify_breach(v, n, "the result of all_gather is mirrored");
  if (all_inputs(n, DIST_PER_REPLICA))
    check_tower_order(v, n, true);
  else
    verify_breach(v, n, "all_gather reads the rows of towers");
}

/* What an all_gather becomes once it is placed. */
static bool is_gather(const struct verify *v, const struct node *n) {
  return v->g->stage >= STAGE_PLACED && n->op == OP_concat && node_int(n, ATTR_axis) == 0 &&
         all_inputs(n, DIST_PER_REPLICA);
}

/* A node of the tree that an all_reduce becomes once it is placed: it joins what several towers have. */
static bool is_tree(const struct verify *v, const struct node *n) {
  if (n->op == OP_identity && n->dist == DIST_MIRRORED && v->g->stage >= STAGE_PLACED)
    return n->inputs[0]->tower >= 0; /* of a worker with one tower, or only the first tower's */
  if (v->g->stage < STAGE_PLACED || op_of(n)->kind != KIND_ELEMENTWISE || n->ninputs != 2 ||
      n->dist == DIST_PER_REPLICA)
    return false;
  enum dist share = n->op == OP_max ? DIST_PARTIAL_MAX : n->op == OP_min ? DIST_PARTIAL_MIN : DIST_PARTIAL;
  return (share != DIST_PARTIAL || op_of(n)->linear_jointly) &&
         (all_inputs(n, share) || all_inputs(n, DIST_PER_REPLICA));
}

static void check_mirrored(struct verify *v, const struct node *n) {
  if (is_tree(v, n)) return;
  if (is_gather(v, n)) {
    check_tower_order(v, n, true);
    return;
  }
  for (int i = 0; i < n->ninputs; i++)
    if (n->inputs[i]->dist != DIST_MIRRORED)
      verify_breach(v, n, "a mirrored value reads %s, which is %s", n->inputs[i]->name,
                    dist_name(n->inputs[i]->dist));
}

/* Values of one tower read mirrored values and their own tower's. */
static void check_own_tower(struct verify *v, const struct node *n) {
  if (is_tree(v, n)) return;
  for (int i = 0; i < n->ninputs; i++) {
    const struct node *x = n->inputs[i];
    if (x->dist != DIST_MIRRORED && x->tower != n->tower)
      verify_breach(v, n, "tower %d reads %s of tower %d", n->tower, x->name, x->tower);
  }
}

/* A partial sum passes through what is linear in it, and through nothing else. */
static void check_partial(struct verify *v, const struct node *n) {
  const struct op_info *op = op_of(n);
  const struct node *extreme = NULL;
  int partial = 0, mirrored = 0, which = 0;
  for (int i = 0; i < n->ninputs; i++) {
    if (n->inputs[i]->dist == DIST_PARTIAL_MAX || n->inputs[i]->dist == DIST_PARTIAL_MIN)
      extreme = n->inputs[i];
    if (n->inputs[i]->dist == DIST_PARTIAL) partial++, which = i;
    if (n->inputs[i]->dist == DIST_MIRRORED) mirrored++;
  }
  if (is_tree(v, n)) return;
  if (extreme)
    verify_breach(v, n, "%s is %s and is read before it is reduced", extreme->name, dist_name(extreme->dist));
  if (partial == 0) return;
  const struct node *x = n->inputs[which];
  bool jointly = op->linear_jointly && partial == n->ninputs;
  bool alone = partial == 1 && mirrored == n->ninputs - 1 && which < 32 && (node_linear(n) >> which & 1);
  if (n->dist != DIST_PARTIAL)
    verify_breach(v, n, "%s is a partial sum and is read before it is reduced", x->name);
  else if (!jointly && !alone)
    verify_breach(v, n, "%s is a partial sum, and %s is not linear in it", x->name, op->name);
}

static void check_copy(struct verify *v, const struct node *n) {
  const struct node *x = n->inputs[0];
  if (n->dist != x->dist || n->tower != x->tower)
    verify_breach(v, n, "a copy lies over the towers as its operand");
}

static void check_assign(struct verify *v, const struct node *n) {
  const struct node *variable = n->inputs[0], *value = n->inputs[1];
  if (n->dist != variable->dist || n->replica != variable->replica || n->tower != variable->tower)
    verify_breach(v, n, "an update lies over the towers as its variable");
  bool own = variable->dist == DIST_PER_REPLICA && value->dist == DIST_MIRRORED;
  if (value->dist != variable->dist && !own)
    verify_breach(v, n, "%s is %s and cannot hold %s, which is %s", variable->name, dist_name(variable->dist),
                  value->name, dist_name(value->dist));
}

static void check_split(struct verify *v, const struct node *n) {
  if (n->inputs[0]->dist != DIST_MIRRORED) verify_breach(v, n, "only a mirrored value is split");
  if (n->dist != DIST_PER_REPLICA) verify_breach(v, n, "the result of split is per_replica");
}

/* Inside a fused node partial sums may be reduced and read on: its edges were checked before it was made. */
static void check_fused(struct verify *v, const struct node *n) {
  if (n->dist != DIST_PER_REPLICA) return;
  for (int i = 0; i < n->ninputs; i++)
    if (n->inputs[i]->dist == DIST_PER_REPLICA && n->inputs[i]->tower != n->tower)
      verify_breach(v, n, "tower %d reads %s of tower %d", n->tower, n->inputs[i]->name, n->inputs[i]->tower);
}

/* The results of a fused node: it has been checked. Those of a scan lie over the towers as it does. */
static void check_result(struct verify *v, const struct node *n) {
  const struct node *x = n->inputs[0];
  if (x->op == OP_scan && (n->dist != x->dist || n->tower != x->tower))
    verify_breach(v, n, "a result of %s, which is %s, is %s", x->name, dist_name(x->dist),
                  dist_name(n->dist));
}

static void check_peer(struct verify *v, const struct node *n) {
  int64_t peer = node_int(n, ATTR_peer), devices = v->g->config.target.ndevices;
  if (peer >= (devices > 0 ? devices : 1))
    verify_breach(v, n, "there is no device %lld at the other end", (long long)peer);
}

/* What is sent stays what it is. */
static void check_sent(struct verify *v, const struct node *n) {
  const struct node *x = n->inputs[0];
  if (n->dist != x->dist || n->tower != x->tower)
    verify_breach(v, n, "what is sent, %s, is %s", x->name, dist_name(x->dist));
  check_peer(v, n);
}

static void check_remote(struct verify *v, const struct node *n) {
  check_peer(v, n);
  if (n->device < 0) verify_breach(v, n, "nothing says to which device it comes");
}

/* What computes: its operands lie over the towers as it does. */
static void check_computation(struct verify *v, const struct node *n) {
  if (n->dist == DIST_MIRRORED)
    check_mirrored(v, n);
  else
    check_own_tower(v, n);
  if (n->dist != DIST_MIRRORED) check_partial(v, n);
}

void verify_towers(struct verify *v) {
  static void (*const checks[OP_COUNT])(struct verify *, const struct node *) = {
      [OP_split] = check_split,           [OP_all_reduce] = check_all_reduce,
      [OP_all_gather] = check_all_gather, [OP_copy] = check_copy,
      [OP_assign] = check_assign,         [OP_fused] = check_fused,
      [OP_output] = check_result,         [OP_send] = check_sent,
      [OP_remote] = check_remote};
  for (uint32_t i = 0; i < v->g->count; i++) {
    const struct node *n = v->g->nodes[i];
    check_tower(v, n);
    (checks[n->op] ? checks[n->op] : check_computation)(v, n);
  }
}

/* ---- devices ---- */

bool variable_moves(const char *strategy, const struct node *n) {
  const struct strategy_info *s = strategy_find(strategy);
  return s && s->settings & TAKES_ON && n->op == OP_variable && n->want && !is_on_read(n) &&
         !node_attr(n, ATTR_slot);
}

static void check_wanted(struct verify *v, const struct node *n) {
  struct device_name want;
  enum op_kind kind = op_of(n)->kind;
  /* What strategies place by rules of their own: inputs, most variables, their updates, what passes insert. */
  bool own = n->op == OP_input || kind == KIND_EFFECT || kind == KIND_META ||
             (n->op == OP_variable && !variable_moves(v->g->config.strategy, n));
  if (!n->want || v->g->config.soft_placement || own) return;
  const struct device *d = &v->g->config.target.devices[n->device];
  if (device_name_parse(v->arena, n->want, &want) && !device_matches(&want, &d->name))
    verify_breach(v, n, "%s is not what the model wants: %s", d->text, n->want);
}

/* Edges may cross devices until the first copy is made; from then on only copies read from elsewhere, and collectives
 * but for one operand. */
static void check_crossing(struct verify *v, const struct node *n) {
  if (is_collective(n)) {
    if (collective_rank(n) < 0) verify_breach(v, n, "no operand lies on its device");
    return;
  }
  for (int i = 0; i < n->ninputs; i++) {
    bool crosses = n->inputs[i]->device != n->device;
    if (n->op == OP_copy && !crosses)
      verify_breach(v, n, "the copy stays on its device");
    else if (n->op != OP_copy && crosses)
      verify_breach(v, n, "%s lies on another device, and there is no copy", n->inputs[i]->name);
  }
}

void verify_placement(struct verify *v) {
  bool copied = v->g->stage == STAGE_FUSED;
  for (uint32_t i = 0; i < v->g->count; i++) copied = copied || v->g->nodes[i]->op == OP_copy;
  for (uint32_t i = 0; i < v->g->count; i++) {
    const struct node *n = v->g->nodes[i];
    if (n->device < 0 || n->device >= v->g->config.target.ndevices) {
      verify_breach(v, n, "the node has no device");
      continue;
    }
    if (!n->why.rule || !*n->why.rule) verify_breach(v, n, "no rule says why the node is where it is");
    if (n->op == OP_assign && n->inputs[0]->device != n->device)
      verify_breach(v, n, "the update is not where its variable is");
    check_wanted(v, n);
    if (copied) check_crossing(v, n);
  }
}
