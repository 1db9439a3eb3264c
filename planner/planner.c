/* SPDX-License-Identifier: Apache-2.0 */
/* plan_build: the parts in order, and the plan written down. */
#include "planner/planner.h"
#include "ir/ops/op_id.h"
#include "planner/schedule.h"

#include "ir/ops/scan.h"
#include "ir/strategies.h"

#include <stdlib.h>
#include <string.h>

static struct operand operand_at(const struct schedule *s, struct ref r) {
  if (r.value == NONE) return (struct operand){NONE, 0};
  return (struct operand){s->values[r.value].buffer, s->values[r.value].base + r.offset};
}

/* Floating point operations of a node; of a fused one, of its body. */
static int64_t flops_of(const struct node *n) {
  if (n->op != OP_fused && n->op != OP_scan) return node_flops(n);
  const struct graph *body = node_attr(n, ATTR_body)->body;
  int64_t flops = 0;
  for (uint32_t i = 0; i < body->count; i++) flops += flops_of(body->nodes[i]);
  return n->op == OP_scan ? flops * node_int(n, ATTR_length) : flops;
}

static void emit_kernel(const struct schedule *s, const struct plan_unit *t, int launch, struct step *step) {
  const struct launch *l = &t->launches[launch];
  step->kernel = l->kernel;
  step->sizes = l->sizes;
  step->segments = l->segments;
  step->noperands = l->kernel->nargs;
  struct operand *operands = arena_new_array(s->arena, (size_t)step->noperands, struct operand);
  for (int i = 0; i < step->noperands; i++) {
    const struct launch_arg *a = &l->args[i];
    struct ref r = a->input >= 0 ? t->reads[a->input] : (struct ref){t->result + a->result, 0};
    operands[i] = operand_at(s, (struct ref){r.value, r.offset + a->offset});
  }
  step->operands = operands;
  step->traffic = l->traffic;
  if (launch == 0) step->flops = flops_of(t->node);
}

static void emit_leaf(const struct schedule *s, const struct plan_unit *t, struct step *step) {
  int n = t->nreads, in_place = unit_in_place(t);
  struct operand *operands = arena_new_array(s->arena, (size_t)n + 1, struct operand);
  for (int i = 0; i < n; i++) operands[i] = operand_at(s, t->reads[i]);
  operands[n] = operand_at(s, (struct ref){t->result, 0});
  step->operands = operands;
  step->noperands = n + 1;
  step->flops = node_flops(t->node);
  bool there = in_place != NONE && operands[in_place].buffer == operands[n].buffer &&
               operands[in_place].offset == operands[n].offset;
  step->traffic = node_traffic(t->node, there);
}

static void emit_loop(const struct schedule *s, const struct plan_unit *t, struct step *step) {
  int n = t->nreads;
  struct operand *operands = arena_new_array(s->arena, (size_t)(n + t->nresults), struct operand);
  for (int i = 0; i < n; i++) operands[i] = operand_at(s, t->reads[i]);
  for (int i = 0; i < t->nresults; i++) operands[n + i] = operand_at(s, (struct ref){t->result + i, 0});
  step->operands = operands;
  step->noperands = n + t->nresults;
  step->loop = t->loop;
  step->flops = flops_of(t->node);
  const struct device_plan *dp = &t->loop->body->devices[t->device];
  for (int i = 0; i < dp->nsteps; i++) step->traffic += dp->steps[i].traffic * t->loop->length;
  struct plan *body = t->loop->body;
  body->nkernels = lower_kernels(s->lower, &body->kernels); /* their numbers are those of all of the plan */
}

static void emit_copy(const struct schedule *s, const struct plan_unit *t, struct step *step) {
  struct operand *operands = arena_new_array(s->arena, 2, struct operand);
  int to = t->variable != NONE ? t->variable : t->result;
  operands[0] = operand_at(s, t->reads[0]);
  operands[1] = operand_at(s, (struct ref){to, 0});
  step->operands = operands;
  step->noperands = 2;
  step->bytes = s->values[to].bytes;
  step->traffic = 2 * step->bytes;
}

static void emit_receive(const struct schedule *s, const struct plan_unit *t, struct step *step) {
  const struct ref to = {t->variable != NONE ? t->variable : t->result, 0};
  struct operand *operand = arena_new(s->arena, struct operand);
  *operand = operand_at(s, to);
  step->operands = operand;
  step->noperands = 1;
  step->bytes = s->values[to.value].bytes;
  step->traffic = step->bytes;
  step->message = &s->plan->messages[t->message];
}

static void emit_all_reduce(const struct schedule *s, const struct plan_unit *t, struct step *step) {
  struct operand *operands = arena_new_array(s->arena, 2, struct operand);
  operands[0] = operand_at(s, t->reads[collective_rank(t->node)]);
  operands[1] = operand_at(s, (struct ref){t->result, 0});
  step->operands = operands;
  step->noperands = 2;
  step->collective = &s->plan->collectives[s->groups[t->group].number];
  step->bytes = type_bytes(&t->node->type);
  step->flops = type_count(&t->node->type) * (t->node->ninputs - 1) / t->node->ninputs;
  step->traffic = 2 * step->bytes;
}

static void emit_collective(const struct schedule *s, struct unit_group *m) {
  struct plan *p = s->plan;
  const struct node *n = m->node;
  int *devices = arena_new_array(s->arena, (size_t)n->ninputs, int);
  for (int k = 0; k < n->ninputs; k++) devices[k] = n->inputs[k]->device;
  m->number = p->ncollectives++;
  p->collectives[m->number] = (struct collective){.number = m->number,
                                                  .devices = devices,
                                                  .count = n->ninputs,
                                                  .dtype = (enum dtype)n->type.dtype,
                                                  .elements = type_count(&n->type)};
}

/* Numbered in their order. */
static void emit_collectives(const struct schedule *s) {
  s->plan->collectives = arena_new_array(s->arena, (size_t)s->ngroups, struct collective);
  for (int i = 0; i < s->norder; i++) {
    int unit = s->order[i], which = s->units[unit].group;
    if (which != NONE && s->groups[which].units[0] == unit) emit_collective(s, &s->groups[which]);
  }
}

static void emit_unit(const struct schedule *s, const struct plan_unit *t) {
  struct step *steps = s->plan->devices[t->device].steps;
  const struct timeline *line = &s->lines[t->device];
  for (int i = 0; i < t->nlaunches; i++) {
    struct step *step = &steps[line->at[t->begin + i]];
    step->kind = unit_receives(s, t) ? STEP_RECEIVE : t->kind;
    step->node = t->node;
    if (step->kind == STEP_RECEIVE)
      emit_receive(s, t, step);
    else if (t->kind == STEP_KERNEL)
      emit_kernel(s, t, i, step);
    else if (t->kind == STEP_LEAF)
      emit_leaf(s, t, step);
    else if (t->kind == STEP_SCAN)
      emit_loop(s, t, step);
    else if (t->kind == STEP_ALL_REDUCE)
      emit_all_reduce(s, t, step);
    else
      emit_copy(s, t, step);
  }
}

static int by_sending(const void *a, const void *b) {
  const struct sending *x = a, *y = b;
  return x->after != y->after ? (x->after < y->after ? -1 : 1) : x->message - y->message;
}

static int by_end(const void *a, const void *b) {
  const struct sending *x = a, *y = b;
  return x->before != y->before ? (x->before < y->before ? -1 : 1) : x->message - y->message;
}

/* Behind a step and its signal what it sends, in the order of the messages; before a step and its waits what has to be
 * gone. */
static void emit_sendings(const struct schedule *s, const struct timeline *line, struct step *steps) {
  int n = line->nsendings, place = 0;
  struct sending *sendings = arena_copy(s->scratch, line->sendings, (size_t)n * sizeof *sendings);
  if (n) qsort(sendings, (size_t)n, sizeof *sendings, by_sending);
  for (int i = 0; i < n; i++, place++) {
    const struct sending *m = &sendings[i];
    const struct plan_unit *t = &s->units[m->unit];
    if (i == 0 || m->after != m[-1].after)
      place = m->after < 0 ? 0 : line->at[m->after] + 1 + (line->signal_after[m->after] != NONE);
    struct operand *operand = arena_new(s->arena, struct operand);
    *operand = operand_at(s, t->reads[0]);
    int64_t bytes = s->plan->messages[m->message].bytes;
    steps[place] = (struct step){.kind = STEP_SEND,
                                 .node = t->node,
                                 .operands = operand,
                                 .noperands = 1,
                                 .bytes = bytes,
                                 .traffic = bytes,
                                 .message = &s->plan->messages[m->message]};
  }
  if (n) qsort(sendings, (size_t)n, sizeof *sendings, by_end);
  for (int i = n - 1, w = line->nwaits; i >= 0; i--, place--) {
    const struct sending *m = &sendings[i];
    if (i == n - 1 || m->before != m[1].before) {
      place = line->at[m->before] - 1;
      while (w > 0 && line->waits[w - 1].step > m->before) w--;
      for (; w > 0 && line->waits[w - 1].step == m->before; w--) place--;
    }
    steps[place] = (struct step){
        .kind = STEP_SENT, .node = s->units[m->unit].node, .message = &s->plan->messages[m->message]};
  }
}

static void emit_waits(const struct timeline *line, struct step *steps) {
  for (int i = 0; i < line->nsteps; i++)
    if (line->signal_after[i] != NONE) {
      struct step *step = &steps[line->at[i] + 1];
      step->kind = STEP_SIGNAL;
      step->signal = line->signal_after[i];
      step->node = steps[line->at[i]].node;
    }
  for (int i = line->nwaits - 1, back = 1; i >= 0; i--) { /* several before one step: in their order */
    struct step *step = &steps[line->at[line->waits[i].step] - back];
    step->kind = STEP_WAIT;
    step->signal = line->waits[i].signal;
    step->node = steps[line->at[line->waits[i].step]].node;
    back = i > 0 && line->waits[i - 1].step == line->waits[i].step ? back + 1 : 1;
  }
}

/* Where each process has its own copy of an output. */
static const struct operand *emit_copies(const struct schedule *s, int output) {
  int n = s->plan->nprocesses;
  if (!s->copies) return NULL;
  struct operand *copies = arena_new_array(s->arena, (size_t)n, struct operand);
  for (int i = 0; i < n; i++) {
    copies[i] = operand_at(s, s->copies[output][i]);
  }
  return copies;
}

static void emit_values(struct schedule *s) {
  struct plan *p = s->plan;
  p->inputs = arena_new_array(s->arena, (size_t)s->nvalues, struct plan_value);
  for (int i = 0; i < s->nvalues; i++) {
    if (!s->values[i].is_input) continue;
    const struct node *n = s->values[i].node;
    p->inputs[p->ninputs++] = (struct plan_value){
        .role = OUTPUT_VALUE, .name = n->name, .type = n->type, .operand = {s->values[i].buffer, 0}};
  }
  p->outputs = arena_new_array(s->arena, (size_t)s->g->noutputs, struct plan_value);
  for (int i = 0; i < s->g->noutputs; i++) {
    const struct output *o = &s->g->outputs[i];
    if (o->role >= OUTPUT_UPDATE) continue;
    p->outputs[p->noutputs++] = (struct plan_value){.role = o->role,
                                                    .name = o->name,
                                                    .type = o->node->type,
                                                    .operand = operand_at(s, s->outputs[i]),
                                                    .count = o->count,
                                                    .copies = emit_copies(s, i)};
  }
}

static void emit(struct schedule *s) {
  struct plan *p = s->plan;
  for (int d = 0; d < p->ndevices; d++) {
    const struct timeline *line = &s->lines[d];
    p->devices[d].nsteps = line->at[line->nsteps];
    p->devices[d].steps = arena_new_array(s->arena, (size_t)p->devices[d].nsteps, struct step);
  }
  emit_collectives(s);
  for (int i = 0; i < s->norder; i++) emit_unit(s, &s->units[s->order[i]]);
  for (int d = 0; d < p->ndevices; d++) {
    emit_waits(&s->lines[d], p->devices[d].steps);
    emit_sendings(s, &s->lines[d], p->devices[d].steps);
  }
  emit_values(s);
  p->nsignals = s->nsignals;
  p->nkernels = lower_kernels(s->lower, &p->kernels);
}

/* Pass collectives may have been switched off. */
static bool is_expanded(const struct graph *g, struct diags *d) {
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (is_collective(n) || (n->op != OP_all_reduce && n->op != OP_all_gather)) continue;
    diag_error(d, LOC_NONE, "node '%s' is of op %s, which a plan cannot hold: pass collectives must run",
               n->name, op_of(n)->name);
    return false;
  }
  return true;
}

/* What is sent and received is planned for the task that does so. */
static bool is_whole(const struct graph *g, bool part, struct diags *d) {
  for (uint32_t i = 0; i < g->count && !part; i++) {
    const struct node *n = g->nodes[i];
    if (n->op != OP_send && n->op != OP_remote) continue;
    diag_error(d, n->loc, "node '%s' is of op %s: %s is the part of one task, and is planned for that alone",
               n->name, op_of(n)->name, g->name);
    return false;
  }
  return true;
}

enum outputs { ONE_PROCESS, FOR_ALL, WHERE_THEY_ARE };

static struct plan *build(struct arena *a, const struct graph *g, enum outputs outputs, struct diags *d) {
  if (g->stage != STAGE_FUSED) {
    diag_error(d, LOC_NONE, "only a fused graph can be planned, and %s is not", g->name);
    return NULL;
  }
  if (!is_expanded(g, d)) return NULL;
  const struct node *excess = graph_excess(g);
  if (excess) {
    diag_error(d, excess->loc, "the values of %s need more than 2^60 bytes", g->name);
    return NULL;
  }
  struct arena_guard guard;
  struct arena *scratch = arena_create_guarded(&guard);
  struct schedule s = {
      .process = NONE, .g = g, .arena = a, .scratch = scratch, .lower = lower_create(a, scratch, g)};
  s.spreads = outputs == FOR_ALL;
  s.plan = arena_new(a, struct plan);
  s.plan->arena = a;
  s.plan->graph = g;
  s.plan->ndevices = g->config.target.ndevices > 0 ? g->config.target.ndevices : 1;
  s.plan->devices = arena_new_array(a, (size_t)s.plan->ndevices, struct device_plan);
  s.plan->nprocesses = 1;
  if (outputs != ONE_PROCESS) {
    int *of = arena_new_array(a, (size_t)s.plan->ndevices, int);
    s.plan->nprocesses = target_processes(&g->config.target, of);
    s.plan->processes = of;
    if (g->config.task) s.process = target_process(&g->config.target, of, g->config.task);
    s.plan->part = s.plan->shown = s.process + 1;
    const struct strategy_info *strategy = strategy_find(g->config.strategy);
    s.everywhere = s.process != NONE && strategy && strategy->storage == STORAGE_EACH;
  }
  if (!is_whole(g, s.process != NONE, d)) {
    lower_destroy(s.lower);
    arena_destroy_guarded(scratch, &guard);
    return NULL;
  }
  schedule_units(&s);
  schedule_order(&s);
  schedule_sync(&s);
  schedule_memory(&s);
  emit(&s);
  lower_destroy(s.lower);
  arena_destroy_guarded(scratch, &guard);
  return s.plan;
}

/* Which steps of a loop's body read this buffer, which holds a constant of the loop. */
static void note_still(struct plan *body, int buffer) {
  enum { BITS = 32 };
  for (int d = 0; buffer != NONE && d < body->ndevices; d++)
    for (int i = 0; i < body->devices[d].nsteps; i++) {
      struct step *s = &body->devices[d].steps[i];
      for (int k = 0; k < s->noperands && k < BITS; k++)
        if (s->operands[k].buffer == buffer) s->still |= UINT32_C(1) << k;
    }
}

const struct plan_loop *plan_loop(struct schedule *s, const struct node *n) {
  struct scan scan = scan_of(n);
  struct schedule inner = {.process = NONE,
                           .g = scan.body,
                           .arena = s->arena,
                           .scratch = s->scratch,
                           .lower = s->lower,
                           .inside = true};
  struct plan *p = inner.plan = arena_new(s->arena, struct plan);
  *p = (struct plan){.arena = s->arena, .graph = scan.body, .ndevices = s->plan->ndevices, .nprocesses = 1};
  p->devices = arena_new_array(s->arena, (size_t)p->ndevices, struct device_plan);
  schedule_units(&inner);
  schedule_order(&inner);
  schedule_sync(&inner);
  schedule_memory(&inner);
  emit(&inner);
  for (int i = 0; i < p->ndevices; i++)
    for (int k = 0; k < p->devices[i].nsteps; k++) p->devices[i].steps[k].in_loop = true;
  struct plan_loop *loop = arena_new(s->arena, struct plan_loop);
  struct node **inputs = scan_inputs(s->scratch, scan.body);
  int *buffers = arena_new_array(s->arena, (size_t)n->ninputs + 1, int);
  for (int i = 0; i < n->ninputs; i++) {
    buffers[i] = NONE;
    for (int k = 0; k < p->ninputs; k++)
      if (strcmp(p->inputs[k].name, inputs[i]->name) == 0) buffers[i] = p->inputs[k].operand.buffer;
  }
  for (int i = scan.carries + scan.sequences; i < n->ninputs; i++) note_still(p, buffers[i]);
  *loop = (struct plan_loop){.body = p, .inputs = buffers, .length = scan.length};
  return loop;
}

struct plan *plan_build(struct arena *a, const struct graph *g, struct diags *d) {
  return build(a, g, ONE_PROCESS, d);
}

struct plan *plan_build_processes(struct arena *a, const struct graph *g, struct diags *d) {
  return build(a, g, FOR_ALL, d);
}

struct plan *plan_build_local_results(struct arena *a, const struct graph *g, struct diags *d) {
  return build(a, g, WHERE_THEY_ARE, d);
}
