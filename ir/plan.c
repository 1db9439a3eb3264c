/* Plans as text: one step a line, the memory of each device. */
#include "ir/plan.h"

#include "ir/op.h"

#include <limits.h>

static const char *device_text(const struct plan *p, int device) {
  const struct target *t = &p->graph->config.target;
  return device < t->ndevices ? t->devices[device].text : "/cpu:0";
}

/* "h.matmul@4096", "h.kernel@variable:0", "x@/cpu:1:64", and "+256" for a piece that begins later. */
static void print_operand(struct str *s, const struct plan *p, int device, const struct operand *o) {
  static const char *const regions[REGION_COUNT] = {"", "constant:", "variable:"};
  const struct plan_buffer *b = &p->buffers[o->buffer];
  str_printf(s, "%s@", b->name);
  if (b->device != device) str_printf(s, "%s:", device_text(p, b->device));
  str_printf(s, "%s%lld", regions[b->region], (long long)b->offset);
  if (o->offset) str_printf(s, "+%lld", (long long)o->offset);
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
}

static void print_matmul(struct str *s, const struct matmul_size *m) {
  if (m->batch != 1) str_printf(s, "%lldx", (long long)m->batch);
  str_printf(s, "%lldx%lldx%lld%s%s", (long long)m->m, (long long)m->n, (long long)m->k,
             m->transpose_a ? " ta" : "", m->transpose_b ? " tb" : "");
}

static void print_step(struct str *s, const struct plan *p, int device, int index) {
  static const char *const kinds[] = {"kernel", "matmul", "copy", "signal", "wait"};
  const struct step *step = &p->devices[device].steps[index];
  str_printf(s, "    %4d %-6s ", index, kinds[step->kind]);
  if (step->kind == STEP_SIGNAL || step->kind == STEP_WAIT) {
    str_printf(s, "%d%s%s\n", step->signal, step->kind == STEP_SIGNAL ? " after " : " before ",
               step->node->name);
    return;
  }
  str_printf(s, "%s ", step->node->name);
  if (step->kind == STEP_KERNEL) print_kernel(s, p, step);
  if (step->kind == STEP_MATMUL) print_matmul(s, &step->matmul);
  if (step->kind == STEP_COPY) str_printf(s, "%lld bytes", (long long)step->bytes);
  int writes = step->kind == STEP_KERNEL ? step->kernel->noutputs : 1;
  for (int i = 0; i < step->noperands; i++) {
    str_put(s, i == step->noperands - writes ? " -> " : i ? ", " : " : ");
    print_operand(s, p, device, &step->operands[i]);
  }
  str_putc(s, '\n');
}

static void print_value(struct str *s, const struct plan *p, const char *what, const struct plan_value *v) {
  str_printf(s, "  %s %s : ", what, v->name);
  type_print(s, &v->type);
  str_put(s, " at ");
  print_operand(s, p, -1, &v->operand);
  str_putc(s, '\n');
}

void plan_print(struct str *s, const struct plan *p) {
  str_printf(s, "plan %s {\n", p->graph->name);
  for (int i = 0; i < p->ninputs; i++) print_value(s, p, "input", &p->inputs[i]);
  for (int d = 0; d < p->ndevices; d++) {
    const struct device_plan *dp = &p->devices[d];
    str_printf(s, "  %s: %d step%s, %lld bytes of arena, %lld of constants, %lld of variables {\n",
               device_text(p, d), dp->nsteps, dp->nsteps == 1 ? "" : "s", (long long)dp->bytes[REGION_ARENA],
               (long long)dp->bytes[REGION_CONSTANT], (long long)dp->bytes[REGION_VARIABLE]);
    for (int i = 0; i < dp->nsteps; i++) print_step(s, p, d, i);
    str_put(s, "  }\n");
  }
  for (int i = 0; i < p->noutputs; i++) print_value(s, p, "output", &p->outputs[i]);
  str_put(s, "}\n");
}

/* The first step at which the most bytes are alive. */
static int peak_of(const struct plan *p, int device, int64_t *bytes) {
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  int nsteps = p->devices[device].nsteps, at = 0;
  int64_t *change = arena_new_array(a, (size_t)nsteps + 2, int64_t), live = 0;
  for (int i = 0; i < p->nbuffers; i++) {
    const struct plan_buffer *b = &p->buffers[i];
    if (b->device != device || b->region != REGION_ARENA) continue;
    change[b->first] += b->bytes;
    if (b->last < nsteps) change[b->last + 1] -= b->bytes;
  }
  *bytes = 0;
  for (int i = 0; i <= nsteps; i++) {
    live += change[i];
    if (live > *bytes) *bytes = live, at = i;
  }
  arena_destroy_guarded(a, &guard);
  return at;
}

static void print_live(struct str *s, const struct plan *p, int device, int at) {
  for (int i = 0; i < p->nbuffers; i++) {
    const struct plan_buffer *b = &p->buffers[i];
    if (b->device != device || b->region != REGION_ARENA || b->first > at || b->last < at) continue;
    str_printf(s, "      %10lld at %-10lld %s (steps %d to ", (long long)b->bytes, (long long)b->offset,
               b->name, b->first);
    if (b->last == INT_MAX)
      str_put(s, "the end)\n");
    else
      str_printf(s, "%d)\n", b->last);
  }
}

static void print_copies(struct str *s, const struct plan *p) {
  for (uint32_t i = 0; i < p->graph->count; i++) {
    const struct node *n = p->graph->nodes[i];
    if (n->op != OP_copy) continue;
    bool alias = node_int_or(n, ATTR_alias, 0) != 0;
    str_printf(s, "  copy %s : %s -> %s, %lld bytes%s\n", n->inputs[0]->name,
               device_text(p, n->inputs[0]->device), device_text(p, n->device),
               alias ? 0LL : (long long)type_bytes(&n->type), alias ? " (alias)" : "");
  }
}

void plan_print_memory(struct str *s, const struct plan *p) {
  str_printf(s, "memory %s {\n", p->graph->name);
  for (int d = 0; d < p->ndevices; d++) {
    const struct device_plan *dp = &p->devices[d];
    int64_t live;
    int at = peak_of(p, d, &live);
    str_printf(s, "  %s: %lld bytes of arena, %lld of constants, %lld of variables\n", device_text(p, d),
               (long long)dp->bytes[REGION_ARENA], (long long)dp->bytes[REGION_CONSTANT],
               (long long)dp->bytes[REGION_VARIABLE]);
    if (live == 0) continue;
    str_printf(s, "    most at step %d: %lld bytes alive\n", at, (long long)live);
    print_live(s, p, d, at);
  }
  print_copies(s, p);
  str_put(s, "}\n");
}
