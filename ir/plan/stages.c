/* SPDX-License-Identifier: Apache-2.0 */
/* Stages: from what is sent backwards to what it is computed from. */
#include "ir/plan/stages.h"

#include <string.h>

struct staging {
  struct arena *arena;
  const struct plan *p;
  int device, peer;
  bool *needed; /* buffers */
  bool *kept;   /* steps of the device */
  bool *first;  /* those of the first stage */
  struct plan_stages *out;
};

static bool is_sent_there(const struct staging *g, const struct step *s) {
  return (s->kind == STEP_SEND || s->kind == STEP_SENT) && plan_process(g->p, s->message->to) == g->peer;
}

/* Marks what the step reads and writes; false if that is another device's. */
static bool need(struct staging *g, const struct step *s) {
  for (int i = 0; i < s->noperands; i++) {
    g->needed[s->operands[i].buffer] = true;
    if (g->p->buffers[s->operands[i].buffer].device != g->device) return false;
  }
  return true;
}

/* *variable: it writes one, if only beside what is needed. */
static bool writes_needed(const struct staging *g, const struct step *s, bool *variable) {
  bool writes = false;
  for (int i = s->noperands - step_results(s); i < s->noperands; i++) {
    writes |= g->needed[s->operands[i].buffer];
    *variable |= g->p->buffers[s->operands[i].buffer].region == REGION_VARIABLE;
  }
  return writes;
}

/* Keeps the step, which sends, and all that it needs; *asked: it needs what the peer sends. */
static bool keep_for(struct staging *g, int sends, bool *asked) {
  const struct device_plan *dp = &g->p->devices[g->device];
  memset(g->needed, 0, (size_t)g->p->nbuffers * sizeof *g->needed);
  memset(g->kept, 0, (size_t)dp->nsteps * sizeof *g->kept);
  *asked = false;
  for (int i = sends; i >= 0; i--) {
    const struct step *s = &dp->steps[i];
    bool variable = false;
    g->kept[i] = i == sends || (s->kind != STEP_SEND && writes_needed(g, s, &variable));
    if (!g->kept[i]) continue;
    if (variable || s->kind == STEP_ALL_REDUCE || !need(g, s)) return false;
    if (s->kind != STEP_RECEIVE) continue;
    if (plan_process(g->p, s->message->from) != g->peer) return false;
    *asked = true;
  }
  return true;
}

static struct step *leave_out(const struct staging *g, const bool *kept) {
  const struct device_plan *dp = &g->p->devices[g->device];
  struct step *steps = arena_copy(g->arena, dp->steps, (size_t)dp->nsteps * sizeof *steps);
  for (int i = 0; i < dp->nsteps; i++)
    if (kept ? !kept[i] : is_sent_there(g, &steps[i]))
      steps[i] = (struct step){.kind = STEP_SIGNAL, .signal = g->p->nsignals, .node = steps[i].node};
  return steps;
}

static void begin_stage(const struct staging *g, struct plan *out) {
  *out = *g->p;
  out->nsignals++;
  out->devices = arena_copy(g->arena, g->p->devices, (size_t)g->p->ndevices * sizeof *g->p->devices);
  for (int d = 0; d < out->ndevices; d++) out->devices[d].nsteps = 0;
}

static void add_device(const struct staging *g, struct plan *stage, const bool *kept) {
  stage->devices[g->device].nsteps = g->p->devices[g->device].nsteps;
  stage->devices[g->device].steps = leave_out(g, kept);
}

static bool stage_device(struct staging *g) {
  const struct device_plan *dp = &g->p->devices[g->device];
  struct plan_stages *out = g->out;
  out->device = g->device;
  g->kept = arena_new_array(g->arena, (size_t)dp->nsteps, bool);
  g->first = arena_new_array(g->arena, (size_t)dp->nsteps, bool);
  for (int i = 0; i < dp->nsteps; i++) {
    bool asked;
    if (dp->steps[i].kind != STEP_SEND || !is_sent_there(g, &dp->steps[i])) continue;
    out->wrong = dp->steps[i].node;
    if (!keep_for(g, i, &asked)) return false;
    for (int k = 0; k <= i && !asked; k++) g->first[k] |= g->kept[k];
    if (!asked) continue;
    struct plan *stage = &out->asked[out->nasked++];
    begin_stage(g, stage);
    add_device(g, stage, g->kept);
  }
  out->wrong = NULL;
  add_device(g, &out->first, g->first);
  add_device(g, &out->last, NULL);
  return true;
}

bool plan_stages(struct arena *a, const struct plan *p, int process, int peer, struct plan_stages *out) {
  struct staging g = {.arena = a, .p = p, .peer = peer, .out = out};
  *out = (struct plan_stages){.asked = arena_new_array(a, (size_t)p->nmessages, struct plan)};
  g.needed = arena_new_array(a, (size_t)p->nbuffers, bool);
  begin_stage(&g, &out->first);
  begin_stage(&g, &out->last);
  for (g.device = 0; g.device < p->ndevices; g.device++)
    if (plan_process(p, g.device) == process && !stage_device(&g)) return false;
  return true;
}
