/* SPDX-License-Identifier: Apache-2.0 */
/* place: gives every node a device, and says which rule chose it.
 *
 * Only variables, their initializers and their updates go to the parameter device; what a tower computes goes
 * to its worker, but for rows of a variable in another memory: they are picked there, so that they cross and the
 * table does not. An `on` annotation wins field by field over the rule's device, for ops; variables move before, in
 * strategy/variables.c, under the strategies that let them, and stay where their strategy puts them under all others.
 *
 * Requires: stage replicated. Guarantees: stage placed; device and why are set on every node; an update is with
 * its variable. */
#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "ir/ops/op_id.h"
#include "passes/rebuild.h"
#include "passes/strategy/strategy.h"
#include "passes/strategy/task_graph.h"

#include <string.h>

struct choice {
  int device;
  const char *why;
};

struct placing {
  struct strategy s;
  struct task_graph part;
  const struct target *target;
  int64_t *reduced; /* bytes that each worker reduces so far */
  uint8_t *result;  /* by id: what is given to the caller */
};

/* Mirrored: every device applies every update, and one of them sums the towers first. */
static struct choice choose_reducer(struct arena *a, struct placing *p, const struct node *n) {
  int device = p->s.workers[cross_device_root(p->reduced, p->s.nworkers, type_bytes(&n->type))];
  return (struct choice){device, arena_printf(a, "sum -> device %d", device)};
}

static bool is_shard(const struct strategy *s, int device) {
  for (int i = 0; i < s->nshards; i++)
    if (s->shards[i] == device) return true;
  return false;
}

static struct choice choose_variable(struct arena *a, const struct strategy *s, const struct node *n) {
  if (n->tower >= 0)
    return (struct choice){strategy_worker(s, n->tower),
                           arena_printf(a, "joined on read -> tower %d's worker", n->tower)};
  int home = strategy_home(s, n);
  if (s->parameter < 0 && !is_shard(s, home)) /* initialized as a whole */
    return (struct choice){home, arena_printf(a, "variable in parts -> device %d, which fills them", home)};
  if (s->parameter < 0) return (struct choice){home, "variable -> its home"};
  bool follows = home != s->parameter && node_attr(n, ATTR_slot);
  if (!s->mirrored)
    return (struct choice){home, follows ? "state -> with its variable" : "variable -> parameter device"};
  int device = n->replica >= 0 ? n->replica : s->main;
  return (struct choice){
      device,
      arena_printf(a, device == s->main ? "variable -> device %d" : "mirrored copy -> device %d", device)};
}

/* A value that exists once, or once per device. */
static struct choice choose_mirrored(struct arena *a, const struct strategy *s, const struct node *n) {
  int device = n->replica >= 0 ? n->replica : s->main;
  if (s->towers == 1 && device == s->workers[0]) return (struct choice){device, "compute -> the worker"};
  if (!s->mirrored && device == s->parameter) return (struct choice){device, "mirrored -> parameter device"};
  if (s->parameter < 0)
    return (struct choice){device, arena_printf(a, "mirrored -> where it is needed, device %d", device)};
  return (struct choice){device, arena_printf(a, "mirrored -> device %d", device)};
}

static struct choice choose_worker(struct arena *a, const struct strategy *s, const struct node *n) {
  if (n->tower < 0) return choose_mirrored(a, s, n);
  return (struct choice){strategy_worker(s, n->tower),
                         arena_printf(a, "compute -> tower %d's worker", n->tower)};
}

static struct choice choose_gather(struct arena *a, struct placing *p, const struct node *n,
                                   const struct node *table) {
  struct choice c = choose_worker(a, &p->s, n);
  const struct device *devices = p->target->devices;
  if (table->op == OP_variable && devices[table->device].memory != devices[c.device].memory)
    c = (struct choice){table->device, "rows -> with their table"};
  return c;
}

static struct choice choose_all_gather(struct arena *a, const struct placing *p, const struct node *n) {
  if (p->result[n->id]) return (struct choice){p->s.consolidation, "results -> consolidation device"};
  return (struct choice){n->replica, arena_printf(a, "rows of all towers -> device %d", n->replica)};
}

static struct choice choose_all_reduce(struct arena *a, struct placing *p, const struct node *n) {
  const struct strategy *s = &p->s;
  if (s->mirrored) return choose_reducer(a, p, n);
  if (s->parameter >= 0 && (n->replica < 0 || n->replica == s->parameter))
    return (struct choice){s->parameter, "sum -> parameter device"};
  int device = n->replica < 0 ? s->main : n->replica;
  return (struct choice){device, arena_printf(a, "sum -> where it is needed, device %d", device)};
}

/* The rule's device, before annotations. */
static struct choice choose(struct arena *a, struct placing *p, const struct node *n,
                            struct node *const *in) {
  if (n->op == OP_variable) return choose_variable(a, &p->s, n);
  if (n->op == OP_assign) return (struct choice){in[0]->device, "update -> with its variable"};
  if (n->op == OP_remote) return (struct choice){n->device, n->why.rule ? n->why.rule : "from another task"};
  if (n->op == OP_send)
    return (struct choice){in[0]->device, n->why.rule ? n->why.rule : "sent from where it is"};
  if (n->op == OP_input) return (struct choice){p->s.inputs, "batch -> consolidation device"};
  if (n->op == OP_split) return (struct choice){p->s.inputs, "split -> consolidation device"};
  if (n->op == OP_all_gather) return choose_all_gather(a, p, n);
  if (n->op == OP_all_reduce) return choose_all_reduce(a, p, n);
  if (n->op == OP_output) return (struct choice){in[0]->device, "result -> with its loop"};
  if (n->op == OP_gather) return choose_gather(a, p, n, in[0]);
  return choose_worker(a, &p->s, n);
}

/* What n's annotation says; `instead`: the device that soft placement has found for it, or NULL. */
static const char *wanted_rule(struct arena *a, const struct node *n, const struct device *instead) {
  if (!instead) return arena_printf(a, "on \"%s\"", n->want);
  return arena_printf(a, "on \"%s\" is not there, soft placement -> %s", n->want, instead->text);
}

/* The annotation's fields over the rule's device. */
static bool annotate(struct pass_ctx *ctx, const struct config *c, const struct node *n,
                     struct choice *choice, const char **over) {
  bool soft;
  int device = wanted_device(ctx->arena, c, n, choice->device, &soft, ctx->diags);
  if (device < 0) return false;
  const char *won = wanted_rule(ctx->scratch, n, soft ? &c->target.devices[device] : NULL);
  *over = choice->why;
  *choice = (struct choice){device, won};
  return true;
}

/* What stays where its rule puts it says what was wanted too, unless that is where it is. */
static void note_want(struct pass_ctx *ctx, const struct config *c, const struct node *n, bool moves,
                      struct choice *choice, const char **over) {
  struct device_name want;
  const struct device *d = &c->target.devices[choice->device];
  bool there = device_name_parse(ctx->scratch, n->want, &want) && device_matches(&want, &d->name);
  if (there && n->op == OP_assign) return;
  if (moves && (there || c->soft_placement))
    *over = choice->why, choice->why = wanted_rule(ctx->scratch, n, there ? NULL : d);
  else
    *over = wanted_rule(ctx->scratch, n, NULL);
}

static struct node *place_node(struct pass_ctx *ctx, struct graph *out, const struct node *n,
                               struct node **in, void *user) {
  struct choice choice = choose(ctx->scratch, user, n, in);
  const char *over = NULL; /* the rule that the annotation has won over, or the other way round */
  bool stays = n->op == OP_variable || n->op == OP_assign || n->op == OP_input || n->op == OP_output;
  if (n->want && !stays && !annotate(ctx, &out->config, n, &choice, &over)) return NULL;
  if (n->want && stays && n->op != OP_output)
    note_want(ctx, &out->config, n, variable_moves(out->config.strategy, n), &choice, &over);
  struct node placed = *n;
  placed.device = choice.device;
  placed.why = (struct reason){choice.why, over};
  placed.inputs = in;
  return graph_node(out, &placed);
}

struct graph *pass_place(struct pass_ctx *ctx, struct graph *g) {
  struct graph *out = graph_create_like(ctx->arena, g);
  struct placing p;
  if (!strategy_resolve(ctx->arena, g, &out->config, &p.s, ctx->diags)) return NULL;
  if (!task_graph_find(ctx->scratch, &out->config, &p.s, &p.part, ctx->diags)) return NULL;
  if (!task_graph_is_whole(&p.part)) p.s.inputs = p.part.first[p.part.process];
  p.target = &out->config.target;
  p.reduced = arena_new_array(ctx->scratch, (size_t)out->config.target.ndevices, int64_t);
  p.result = arena_new_array(ctx->scratch, g->count + 1, uint8_t);
  for (int i = 0; i < g->noutputs; i++) p.result[g->outputs[i].node->id] = 1;
  out->stage = STAGE_PLACED;
  return rebuild(ctx, g, out, place_node, &p);
}
