/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing a strategy: every one that the devices allow is compiled, and what it needs is compared. */
#include "session/auto.h"

#include "ir/ops/op_id.h"
#include "session/forecast.h"
#include "session/model.h"
#include "session/state/data.h"

#include "passes/pass.h"
#include "passes/strategy/strategy.h"
#include "planner/planner.h"

#include <string.h>

/* What a strategy needs on a device. */
struct need {
  int64_t variables, state, arena; /* bytes; state: of optimizers */
};

struct candidate {
  const char *name;
  const struct plan *plan;
  struct need *needs; /* by device */
  int64_t moved;      /* bytes a step that cross memories */
  int64_t fullest;    /* bytes of the device that needs most */
  double seconds;     /* a step, predicted */
  bool is_default;
};

static void measure(struct arena *a, struct candidate *c) {
  const struct plan *p = c->plan;
  c->needs = arena_new_array(a, (size_t)p->ndevices, struct need);
  for (uint32_t i = 0; i < p->graph->count; i++) {
    const struct node *n = p->graph->nodes[i];
    if (n->op == OP_copy && !node_int_or(n, ATTR_alias, 0)) c->moved += type_bytes(&n->type);
    if (n->op != OP_variable) continue;
    struct need *need = &c->needs[n->device];
    *(node_attr(n, ATTR_slot) ? &need->state : &need->variables) += type_bytes(&n->type);
  }
  for (int i = 0; i < p->ncollectives; i++)
    for (int k = 0; k < p->collectives[i].count; k++) c->moved += collective_bytes(&p->collectives[i], k);
  for (int d = 0; d < p->ndevices; d++) {
    struct need *need = &c->needs[d];
    need->arena = p->devices[d].bytes[REGION_ARENA];
    int64_t all = need->variables + need->state + need->arena;
    if (all > c->fullest) c->fullest = all;
  }
}

/* What is compared, and of what. */
struct contest {
  struct dgc_session *s;
  enum entry_kind kind;
  const struct config *config;
  const char *sums; /* how they travel, if the strategy makes any that all devices need */
  struct speeds speeds;
};

/* The plan of the entry under this strategy (NULL: the default); NULL if it does not go with the devices, the batch or
 * what else was asked for. How long a step takes is that of its tasks as processes. */
static const struct plan *plan_with(const struct contest *all_of, const char *strategy, double *seconds,
                                    struct diags *why) {
  struct dgc_session *s = all_of->s;
  struct graph *g = graph_copy(s->call, entry_source(s, all_of->kind));
  g->config = config_copy(s->call, all_of->config);
  g->config.strategy = strategy;
  struct config all = config_copy(s->call, &g->config);
  struct strategy unused;
  if (!strategy_resolve(s->call, session_all_variables(s), &all, &unused, why)) return NULL;
  for (int i = 0; i < DATA_USES; i++) { /* the last batch may be smaller */
    struct config last = config_copy(s->call, &g->config);
    last.batch = all.batch ? s->data->rows[i] % all.batch : 0;
    if (last.batch && !strategy_resolve(s->call, session_all_variables(s), &last, &unused, why)) return NULL;
  }
  g->config.homes = all.homes;
  g->config.nhomes = all.nhomes;
  g->config.strategy = all.strategy;
  if (all_of->sums && (strategy_find(all.strategy)->settings & TAKES_SUMS))
    g->config.cross_device = all_of->sums;
  g = pipeline_run(s->call, g, NULL, NULL, NULL, why);
  int *of = g ? arena_new_array(s->call, (size_t)g->config.target.ndevices, int) : NULL;
  bool several = g && target_processes(&g->config.target, of) > 1;
  const struct plan *p = g ? plan_build(s->call, g, why) : NULL;
  const struct plan *timed = p && several ? plan_build_processes(s->call, g, why) : p;
  if (timed) *seconds = plan_predict(s->call, timed, &all_of->speeds);
  return timed ? p : NULL;
}

/* What differs by less than this is no difference: the prediction is not that good. */
static const double same_time = 1.01;

static int find_best(const struct candidate *all, int n) {
  double least = n ? all[0].seconds : 0;
  int best = -1;
  for (int i = 1; i < n; i++) least = all[i].seconds < least ? all[i].seconds : least;
  for (int i = 0; i < n; i++)
    if (all[i].seconds <= same_time * least && (best < 0 || all[i].fullest < all[best].fullest)) best = i;
  return best;
}

static const struct diag *first_error(const struct diags *d) {
  const struct diag *e = d->first;
  while (e && e->severity != DIAG_ERROR) e = e->next;
  return e;
}

/* What each strategy lacks, `lacks[i]`, or what all of them lack, which the default then says. */
static void explain_none(const struct contest *c, const struct diag *const *lacks, struct diags *why) {
  double seconds;
  bool same = true;
  for (int i = 0; strategies[i].name; i++)
    same &= lacks[i] && strcmp(lacks[i]->message, lacks[0]->message) == 0;
  if (same) {
    plan_with(c, NULL, &seconds, why);
    return;
  }
  diag_error(why, c->config->asked.strategy,
             "no strategy goes with the devices and with all that is asked for");
  for (int i = 0; strategies[i].name; i++) {
    if (!lacks[i]) continue;
    bool named = strstr(lacks[i]->message, strategies[i].name);
    diag_note(why, lacks[i]->loc, "%s%s%s", named ? "" : strategies[i].name, named ? "" : ": ",
              lacks[i]->message);
  }
}

/* None: `why` says what each strategy lacks. */
static int find_candidates(const struct contest *all_of, struct candidate *out, struct diags *why) {
  struct dgc_session *s = all_of->s;
  const struct diag *lacks[16] = {NULL};
  int n = 0;
  struct diags silent;
  diags_init(&silent, s->call);
  struct candidate first = {.is_default = true};
  first.plan = plan_with(all_of, NULL, &first.seconds, &silent);
  if (first.plan) {
    first.name = first.plan->graph->config.strategy;
    out[n++] = first;
  }
  for (int i = 0; strategies[i].name; i++) {
    diags_init(&silent, s->call);
    if (n && strcmp(strategies[i].name, out[0].name) == 0) continue;
    struct candidate c = {.name = strategies[i].name};
    c.plan = plan_with(all_of, c.name, &c.seconds, &silent);
    if (c.plan) out[n++] = c;
    lacks[i] = first_error(&silent);
  }
  if (!n) explain_none(all_of, lacks, why);
  for (int i = 0; i < n; i++) measure(s->call, &out[i]);
  return n;
}

static void print_device(struct str *s, const struct candidate *c, int d, bool best) {
  struct str seconds = str_make(s->arena);
  if (d == 0) print_seconds(&seconds, c->seconds);
  const struct need *need = &c->needs[d];
  str_printf(s, "%c %-23s %14lld %14lld %14lld ", d == 0 && best ? '*' : ' ', d ? "" : c->name,
             (long long)need->variables, (long long)need->state, (long long)need->arena);
  if (d == 0)
    str_printf(s, "%14lld %9s", (long long)c->moved, seconds.data);
  else
    str_printf(s, "%14s %9s", "", "");
  str_printf(s, "  %s%s\n", c->plan->graph->config.target.devices[d].text,
             d == 0 && c->is_default ? " (the default)" : "");
}

static void print_table(struct str *s, const struct contest *c, const struct candidate *all, int n,
                        int best) {
  const struct graph *g = all[0].plan->graph;
  str_printf(s, "strategies of %s, batch %lld, %d towers: bytes per device, and the time of a step by ",
             g->name, (long long)g->config.batch, g->config.towers);
  speeds_print_speed(s, &c->speeds);
  str_put(s, " and ");
  speeds_print_link(s, &c->speeds);
  str_printf(s, "\n  %-23s %14s %14s %14s %14s %9s  %s\n", "strategy", "variables", "state", "arena",
             "moved a step", "step", "device");
  for (int i = 0; i < n; i++)
    for (int d = 0; d < all[i].plan->ndevices; d++) print_device(s, &all[i], d, i == best);
}

const char *session_choose(struct dgc_session *s, const struct config *config, const char *sums,
                           struct str *table) {
  struct candidate all[16];
  enum entry_kind kind = entry_there(s, ENTRY_TRAIN)     ? ENTRY_TRAIN
                         : entry_there(s, ENTRY_PREDICT) ? ENTRY_PREDICT
                                                         : ENTRY_EVAL;
  struct contest c = {s, kind, config, sums, session_speeds(s)};
  int n = find_candidates(&c, all, &s->diags), best = find_best(all, n);
  if (n) print_table(table, &c, all, n, best);
  return n ? all[best].name : NULL;
}
