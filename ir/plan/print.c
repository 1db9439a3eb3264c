/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as text: one step a line, the memory of each device. docs/plan.md explains it. */
#include "ir/ops/op.h"
#include "ir/plan/plan.h"
#include "ir/plan/queues.h"

#include <string.h>

int plan_all_steps(const struct plan *p, int device) {
  const struct device_plan *dp = &p->devices[device];
  int count = dp->nsteps;
  for (int i = 0; i < dp->nsteps; i++)
    if (dp->steps[i].kind == STEP_SCAN) count += plan_all_steps(dp->steps[i].loop->body, device);
  return count;
}

const char *plan_device_text(const struct plan *p, int device) {
  const struct target *t = &p->graph->config.target;
  return device < t->ndevices ? t->devices[device].text : "/cpu:0";
}

const char *step_word(const struct step *s) {
  static const char *const words[] = {[STEP_KERNEL] = "kernel",   [STEP_SCAN] = "scan",
                                      [STEP_COPY] = "copy",       [STEP_ALL_REDUCE] = "all_reduce",
                                      [STEP_SIGNAL] = "signal",   [STEP_WAIT] = "wait",
                                      [STEP_SEND] = "send",       [STEP_SENT] = "sent",
                                      [STEP_RECEIVE] = "receive", [STEP_MODULE] = "module"};
  return s->kind == STEP_LEAF ? op_of(s->node)->name : words[s->kind];
}

/* "h.matmul@4096", "h.kernel@variable:0", "x@/cpu:1:64", and "+256" for a piece that begins later. */
static void print_operand(struct str *s, const struct plan *p, int device, const struct operand *o) {
  static const char *const regions[REGION_COUNT] = {"", "constant:", "variable:"};
  const struct plan_buffer *b = &p->buffers[o->buffer];
  str_put(s, b->name);
  str_putc(s, '@');
  if (b->device != device) {
    str_put(s, plan_device_text(p, b->device));
    str_putc(s, ':');
  }
  str_put(s, regions[b->region]);
  str_int(s, b->offset);
  if (o->offset) {
    str_putc(s, '+');
    str_int(s, o->offset);
  }
}

static int kernel_number(const struct plan *p, const struct kernel *k) {
  for (int i = 0; i < p->nkernels; i++)
    if (p->kernels[i] == k) return i;
  return -1;
}

/* Extents of the loops, those that are reduced over behind a slash: "512/128". */
static void print_kernel(struct str *s, const struct plan *p, const struct step *step) {
  const struct kernel *k = step->kernel;
  str_printf(s, "k%d ", kernel_number(p, k));
  for (int i = 0; i < k->rank; i++) {
    if (i == k->rank - k->nreduce)
      str_putc(s, '/');
    else if (i)
      str_putc(s, 'x');
    str_printf(s, "%lld", (long long)step->sizes[i]);
  }
  if (step->segments.count > 1) str_printf(s, " in %d", step->segments.count);
}

/* What of the device's other work a copy may overlap: "; beside steps 12 to 29". */
static void print_overlap(struct str *s, const struct plan *p, const struct device_queues *q, int device,
                          int copy) {
  int first = -1, last = -1;
  for (int i = q->after[copy] + 1; i < q->until[copy]; i++) {
    enum step_kind kind = p->devices[device].steps[i].kind;
    if (kind == STEP_SIGNAL || kind == STEP_WAIT || q->queue[i] != QUEUE_WORK) continue;
    if (first < 0) first = i;
    last = i;
  }
  if (first < 0) return;
  str_printf(s, "; beside step%s %d", first == last ? "" : "s", first);
  if (first < last) str_printf(s, " to %d", last);
}

/* "c3 1/4 4096 bytes": the collective, which device of how many, its bytes. */
static void print_all_reduce(struct str *s, const struct step *step, int device) {
  const struct collective *c = step->collective;
  str_printf(s, "c%d %d/%d %lld bytes", c->number, collective_rank_of(c, device), c->count,
             (long long)step->bytes);
}

/* "m3 4096 bytes to /job:worker/task:1/cpu:0" */
static void print_message(struct str *s, const struct plan *p, const struct step *step) {
  const struct message *m = step->message;
  bool sends = step->kind == STEP_SEND;
  str_printf(s, "m%d %lld bytes %s %s", m->number, (long long)m->bytes, sends ? "to" : "from",
             plan_device_text(p, sends ? m->to : m->from));
}

static void print_step(struct str *s, const struct plan *p, const struct queues *q, int device, int index,
                       int indent);

/* The steps that are run again and again, and what comes of them. */
static void print_loop(struct str *s, const struct step *step, int device, int indent) {
  const struct plan *p = step->loop->body;
  for (int i = 0; i < p->devices[device].nsteps; i++) print_step(s, p, NULL, device, i, indent);
  for (int i = 0; i < p->noutputs; i++) {
    str_printf(s, "%*s%s = ", indent + 7, "", p->outputs[i].name);
    print_operand(s, p, device, &p->outputs[i].operand);
    str_putc(s, '\n');
  }
}

static void print_step(struct str *s, const struct plan *p, const struct queues *q, int device, int index,
                       int indent) {
  const struct step *step = &p->devices[device].steps[index];
  str_printf(s, "%*s%4d %-6s ", indent, "", index, step_word(step));
  if (step->kind == STEP_SIGNAL || step->kind == STEP_WAIT) {
    str_printf(s, "%d%s%s\n", step->signal, step->kind == STEP_SIGNAL ? " after " : " before ",
               step->node->name);
    return;
  }
  if (step->kind == STEP_SENT) {
    str_printf(s, "m%d %s\n", step->message->number, step->node->name);
    return;
  }
  if (step->kind == STEP_MODULE)
    str_printf(s, "%s on %d device%s ", p->graph->name, step->module->ndevices,
               step->module->ndevices > 1 ? "s" : "");
  else
    str_printf(s, "%s ", step->node->name);
  if (step->message) print_message(s, p, step);
  if (step->kind == STEP_KERNEL) print_kernel(s, p, step);
  if (step->kind == STEP_LEAF) op_of(step->node)->sizes(s, step->node);
  if (step->kind == STEP_SCAN) str_printf(s, "%lld steps", (long long)step->loop->length);
  if (step->kind == STEP_COPY) str_printf(s, "%lld bytes", (long long)step->bytes);
  if (step->kind == STEP_ALL_REDUCE) print_all_reduce(s, step, device);
  for (int i = 0; i < step->noperands; i++) {
    str_put(s, i == step->noperands - step_results(step) ? " -> " : i ? ", " : " : ");
    print_operand(s, p, device, &step->operands[i]);
  }
  if (q && q->devices[device].queue[index] == QUEUE_COPIES)
    print_overlap(s, p, &q->devices[device], device, index);
  str_putc(s, '\n');
  if (step->kind == STEP_SCAN) print_loop(s, step, device, indent + 5);
}

static void print_value(struct str *s, const struct plan *p, const char *what, const struct plan_value *v) {
  str_printf(s, "  %s %s : ", what, v->name);
  type_print(s, &v->type);
  str_put(s, " at ");
  print_operand(s, p, -1, &v->operand);
  str_putc(s, '\n');
}

/* The number of the pack that a step belongs to, or -1. */
static int pack_of(const struct step *step) { return step->node ? step->node->pack - 1 : -1; }

/* When the sum of each pack starts and ends on each device that takes part. */
static void print_packs(struct str *s, const struct plan *p) {
  bool found = true;
  for (int pack = 0; found; pack++) {
    found = false;
    for (int d = 0; d < p->ndevices; d++) {
      const struct device_plan *dp = &p->devices[d];
      int first = -1, last = -1;
      for (int i = 0; i < dp->nsteps; i++) {
        if (pack_of(&dp->steps[i]) != pack) continue;
        if (first < 0) first = i;
        last = i;
      }
      if (first < 0) continue;
      if (!found) str_printf(s, "  pack %d:", pack);
      str_printf(s, "%s steps %d to %d of %d on %s", found ? "," : "", first, last, dp->nsteps,
                 plan_device_text(p, d));
      found = true;
    }
    if (found) str_putc(s, '\n');
  }
}

/* How GPUs take the plan; NULL where there are none. */
static const struct queues *queues_of(struct arena *a, const struct plan *p) {
  const struct target *t = &p->graph->config.target;
  enum manner *manners = arena_new_array(a, (size_t)p->ndevices, enum manner);
  bool gpus = false;
  for (int d = 0; d < p->ndevices && d < t->ndevices; d++) {
    if (strcmp(t->devices[d].name.kind, "gpu") != 0) continue;
    manners[d] = MANNER_COPY_QUEUE;
    gpus = true;
  }
  return gpus ? queues_make(a, p, manners) : NULL;
}

static bool is_shown(const struct plan *p, int buffer) {
  return !p->shown || plan_process(p, p->buffers[buffer].device) == p->shown - 1;
}

void plan_print(struct str *s, const struct plan *p) {
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  const struct queues *q = queues_of(a, p);
  str_printf(s, "plan %s {\n", p->graph->name);
  for (int i = 0; i < p->ninputs; i++)
    if (is_shown(p, p->inputs[i].operand.buffer)) print_value(s, p, "input", &p->inputs[i]);
  for (int d = 0; d < p->ndevices; d++) {
    if (p->shown && plan_process(p, d) != p->shown - 1) continue;
    const struct device_plan *dp = &p->devices[d];
    str_printf(s, "  %s: %d step%s, %lld bytes of arena, %lld of constants, %lld of variables {\n",
               plan_device_text(p, d), dp->nsteps, dp->nsteps == 1 ? "" : "s",
               (long long)dp->bytes[REGION_ARENA], (long long)dp->bytes[REGION_CONSTANT],
               (long long)dp->bytes[REGION_VARIABLE]);
    for (int i = 0; i < dp->nsteps; i++) print_step(s, p, q, d, i, 4);
    str_put(s, "  }\n");
  }
  for (int i = 0; i < p->noutputs; i++) {
    struct plan_value v = p->outputs[i];
    if (p->shown) v.operand = v.copies[p->shown - 1];
    if (v.operand.buffer >= 0) print_value(s, p, "output", &v);
  }
  if (!p->shown) print_packs(s, p);
  str_put(s, "}\n");
  arena_destroy_guarded(a, &guard);
}
