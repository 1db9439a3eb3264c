/* SPDX-License-Identifier: Apache-2.0 */
/* What a step touches, and what devices send for a sum that they make together. */
#include "ir/plan/plan.h"

#include "ir/ops/op.h"

#include <string.h>

int step_results(const struct step *s) {
  if (s->kind == STEP_KERNEL) return s->kernel->noutputs;
  if (s->kind == STEP_MODULE) return s->module->noutputs;
  if (s->kind == STEP_SCAN) return node_results(s->node) + 1;
  return s->kind != STEP_SEND && s->noperands > 0;
}

/* Of an operand of a module; a result that a variable takes is as large as the argument. */
static int64_t module_extent(const struct plan_module *m, int operand) {
  for (int i = 0; i < m->narguments + m->nresults; i++) {
    const struct module_value *v = i < m->narguments ? &m->arguments[i] : &m->results[i - m->narguments];
    if (operand >= v->operand && operand < v->operand + v->count)
      return type_bytes(&v->type) * (v->split ? m->ndevices : 1);
  }
  return 0;
}

static int64_t loop_extent(const struct step *s, int operand) {
  const struct node *n = s->node;
  int result = operand - n->ninputs;
  if (result < 0) return type_bytes(&n->inputs[operand]->type);
  if (result == node_results(n))
    return s->loop->body->devices[n->device > 0 ? n->device : 0].bytes[REGION_ARENA];
  struct type t = node_result_type(n, result);
  return type_bytes(&t);
}

int64_t step_extent(const struct step *s, int operand) {
  switch (s->kind) {
  case STEP_COPY:
  case STEP_SEND:
  case STEP_RECEIVE:
  case STEP_ALL_REDUCE: return s->bytes;
  case STEP_LEAF:
    return type_bytes(operand < s->node->ninputs ? &s->node->inputs[operand]->type : &s->node->type);
  case STEP_SCAN: return loop_extent(s, operand);
  case STEP_MODULE: return module_extent(s->module, operand);
  case STEP_SIGNAL:
  case STEP_SENT:
  case STEP_WAIT: return 0;
  case STEP_KERNEL: break;
  }
  const struct kernel *k = s->kernel;
  int64_t last = 0;
  for (int d = 0; d < k->rank; d++) {
    if (s->sizes[d] == 0) return 0;
    last += (s->sizes[d] - 1) * s->sizes[k->rank + operand * k->rank + d];
  }
  return (last + 1) * dtype_size((enum dtype)k->args[operand].dtype);
}

static bool may_overwrite(const struct step *s, int a, int b) {
  const struct kernel *k = s->kernel;
  if (!kernel_may_overwrite(k, a, b)) return false;
  for (int d = 0; d < k->rank; d++)
    if (s->sizes[d] > 1 && s->sizes[k->rank + a * k->rank + d] != s->sizes[k->rank + b * k->rank + d])
      return false;
  return dtype_size((enum dtype)k->args[a].dtype) == dtype_size((enum dtype)k->args[b].dtype);
}

bool step_in_place(const struct step *s, int input, int output) {
  switch (s->kind) {
  case STEP_KERNEL: return may_overwrite(s, input, output);
  case STEP_LEAF: return op_of(s->node)->in_place == input + 1;
  case STEP_ALL_REDUCE: return true;
  case STEP_COPY:
  case STEP_SEND:
  case STEP_SENT:
  case STEP_RECEIVE:
  case STEP_SIGNAL:
  case STEP_WAIT:
  case STEP_SCAN:
  case STEP_MODULE: break;
  }
  return false;
}

/* Chunk c of the array begins at this element. */
static int64_t chunk_begin(const struct collective *c, int chunk) { return c->elements * chunk / c->count; }

static int64_t chunk_size(const struct collective *c, int chunk) {
  return chunk_begin(c, chunk + 1) - chunk_begin(c, chunk);
}

/* Twice around, but for the chunk whose sum ends there, and for that which is back where it was. */
int64_t collective_bytes(const struct collective *c, int rank) {
  int64_t kept = chunk_size(c, rank) + chunk_size(c, (rank + 1) % c->count);
  return (2 * c->elements - kept) * dtype_size(c->dtype);
}

int collective_rank_of(const struct collective *c, int device) {
  for (int i = 0; i < c->count; i++)
    if (c->devices[i] == device) return i;
  return -1;
}

int plan_output(const struct plan *p, enum output_role role, const char *name) {
  for (int i = 0; i < p->noutputs; i++)
    if (p->outputs[i].role == role && strcmp(p->outputs[i].name, name) == 0) return i;
  return -1;
}
