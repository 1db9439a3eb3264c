/* SPDX-License-Identifier: Apache-2.0 */
/* What a loaded plan is made of. */
#include "runtime/exec.h"
#include "runtime/exec_internal.h"

static void raise_mark(const struct exec *e, const struct operand *o, int64_t bytes, int device,
                       int64_t *mark) {
  const struct plan_buffer *b = &e->plan->buffers[o->buffer];
  if (b->region == REGION_ARENA && b->device == device && bytes > 0 && b->offset + o->offset + bytes > *mark)
    *mark = b->offset + o->offset + bytes;
}

int64_t exec_high_water(const struct exec *e, int device) {
  const struct plan *p = e->plan;
  int64_t mark = 0;
  for (int d = 0; d < p->ndevices; d++)
    for (int i = 0; i < p->devices[d].nsteps; i++) {
      const struct step *s = &p->devices[d].steps[i];
      for (int k = 0; k < s->noperands; k++) raise_mark(e, &s->operands[k], step_extent(s, k), device, &mark);
    }
  for (int i = 0; i < p->ninputs; i++)
    raise_mark(e, &p->inputs[i].operand, type_bytes(&p->inputs[i].type), device, &mark);
  for (int i = 0; i < p->noutputs; i++)
    if (p->outputs[i].role != OUTPUT_UPDATE)
      raise_mark(e, &p->outputs[i].operand, type_bytes(&p->outputs[i].type), device, &mark);
  return plan_room(mark);
}

int exec_commands(const struct exec *e, int *signals) {
  int count = 0;
  *signals = 0;
  for (int d = 0; d < e->nlanes; d++)
    for (const struct command *c = e->lanes[d].commands; c->kind != COMMAND_END; c++) {
      count++;
      *signals += c->kind == COMMAND_SIGNAL;
    }
  return count;
}

const char *exec_library(const struct exec *e, int device, int step) {
  for (int i = 0; i < e->nlanes; i++)
    if (e->lanes[i].device == device) return e->lanes[i].libraries[step];
  return NULL;
}
