/* place: gives every node a device, and says which rule chose it.
 *
 * Only variables, their initializers and their updates go to the parameter device; what a tower computes goes
 * to its worker. An `on` annotation wins field by field over the rule's device, for ops; a variable stays where
 * its strategy puts it.
 *
 * Requires: stage replicated. Guarantees: stage placed; device and why are set on every node; an update is with
 * its variable. */
#include "passes/rebuild.h"
#include "passes/strategy.h"

#include <string.h>

struct choice {
  int device;
  const char *why;
};

struct placing {
  struct strategy s;
  int64_t *reduced; /* bytes that each device reduces so far */
};

/* Below this size a reduction is not worth a second device. */
#define SMALL_SUM 16384

/* Mirrored: every device applies every update, and one of them sums the towers first. Large sums go to the
 * device that has the least to sum yet, so that no device waits for another to do all of it. */
static struct choice choose_reducer(struct arena *a, struct placing *p, const struct node *n) {
  int64_t bytes = type_bytes(&n->type);
  int best = 0;
  for (int i = 1; bytes >= SMALL_SUM && i < p->s.ndevices; i++)
    if (p->reduced[i] < p->reduced[best]) best = i;
  p->reduced[best] += bytes;
  return (struct choice){best, arena_printf(a, "sum -> device %d", best)};
}

/* The rule's device, before annotations. */
static struct choice choose(struct arena *a, struct placing *p, const struct node *n,
                            struct node *const *in) {
  const struct strategy *s = &p->s;
  switch (n->op) {
  case OP_variable:
    if (s->mirrored && n->replica > 0)
      return (struct choice){n->replica, arena_printf(a, "mirrored copy -> device %d", n->replica)};
    return (struct choice){s->mirrored ? n->replica : s->parameter,
                           s->mirrored ? "variable -> device 0" : "variable -> parameter device"};
  case OP_assign: return (struct choice){in[0]->device, "update -> with its variable"};
  case OP_input: return (struct choice){s->consolidation, "batch -> consolidation device"};
  case OP_split: return (struct choice){s->consolidation, "split -> consolidation device"};
  case OP_all_gather: return (struct choice){s->consolidation, "results -> consolidation device"};
  case OP_all_reduce:
    if (s->mirrored) return choose_reducer(a, p, n);
    return (struct choice){s->parameter, "sum -> parameter device"};
  default: break;
  }
  if (n->tower >= 0)
    return (struct choice){tower_device(n->tower, s->towers, s->ndevices),
                           arena_printf(a, "compute -> tower %d's worker", n->tower)};
  if (!s->mirrored && n->replica == s->parameter && s->towers > 1)
    return (struct choice){n->replica, "mirrored -> parameter device"};
  return (struct choice){n->replica < 0 ? 0 : n->replica,
                         s->towers == 1 ? "compute -> the worker"
                                        : arena_printf(a, "mirrored -> device %d", n->replica)};
}

static const char *device_list(struct arena *a, const struct target *t) {
  struct str s = str_make(a);
  for (int i = 0; i < t->ndevices; i++) str_printf(&s, "%s%s", i ? ", " : "", t->devices[i].text);
  return s.data;
}

/* The nearest device of the wanted kind (lowest index), or a CPU, or the rule's own. */
static int soft_device(const struct target *t, const struct device_name *want, int otherwise) {
  for (int i = 0; i < t->ndevices; i++)
    if (want->kind && strcmp(want->kind, t->devices[i].name.kind) == 0) return i;
  for (int i = 0; i < t->ndevices; i++)
    if (strcmp(t->devices[i].name.kind, "cpu") == 0) return i;
  return otherwise;
}

/* The annotation's fields over the rule's device. */
static bool annotate(struct pass_ctx *ctx, const struct config *c, const struct node *n,
                     struct choice *choice) {
  struct device_name want;
  if (!device_name_parse(ctx->arena, n->want, &want)) {
    diag_error(ctx->diags, n->loc, "'%s' is no device name", n->want);
    diag_help(ctx->diags, LOC_NONE, "names look like /cpu:0 or /job:worker/task:0/gpu:1");
    return false;
  }
  /* Another kind of device has its own numbers: the rule's index does not carry over. */
  struct device_name base = c->target.devices[choice->device].name;
  if (want.kind && strcmp(want.kind, base.kind) != 0) base.index = -1;
  struct device_name merged = device_name_merge(base, want);
  for (int i = 0; i < c->target.ndevices; i++)
    if (device_matches(&merged, &c->target.devices[i].name)) {
      *choice = (struct choice){i, arena_printf(ctx->arena, "on \"%s\"", n->want)};
      return true;
    }
  if (c->soft_placement) {
    int d = soft_device(&c->target, &want, choice->device);
    *choice = (struct choice){d, arena_printf(ctx->arena, "on \"%s\" is not there, soft placement -> %s",
                                              n->want, c->target.devices[d].text)};
    return true;
  }
  diag_error(ctx->diags, n->loc, "%s wants the device %s, which is not there", n->name, n->want);
  diag_help(ctx->diags, LOC_NONE, "devices are %s; --soft-placement takes the nearest one",
            device_list(ctx->arena, &c->target));
  return false;
}

static struct node *place_node(struct pass_ctx *ctx, struct graph *out, const struct node *n,
                               struct node **in, void *user) {
  struct choice choice = choose(ctx->arena, user, n, in);
  bool stays = n->op == OP_variable || n->op == OP_assign || n->op == OP_input;
  if (n->want && !stays && !annotate(ctx, &out->config, n, &choice)) return NULL;
  struct node placed = *n;
  placed.device = choice.device;
  placed.why = choice.why;
  placed.inputs = in;
  return graph_node(out, &placed);
}

struct graph *pass_place(struct pass_ctx *ctx, struct graph *g) {
  struct graph *out = graph_create_like(ctx->arena, g);
  struct placing p;
  if (!strategy_resolve(ctx->arena, &out->config, &p.s, ctx->diags)) return NULL;
  p.reduced = arena_new_array(ctx->scratch, (size_t)out->config.target.ndevices, int64_t);
  out->stage = STAGE_PLACED;
  return rebuild(ctx, g, out, place_node, &p);
}
