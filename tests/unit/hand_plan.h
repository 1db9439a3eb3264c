/* SPDX-License-Identifier: Apache-2.0 */
/* Plans made by hand, for tests: steps on vectors of N floats, one behind the other on each device. */
#ifndef DGC_TESTS_HAND_PLAN_H
#define DGC_TESTS_HAND_PLAN_H

#include "ir/plan/plan.h"

enum { N = 16, BYTES = 64, MAX_STEPS = 4096 };

static const int64_t vector_sizes[] = {N, 1, 1, 1};

static inline struct plan hand_plan(struct arena *a, struct graph *g, int nkernels,
                                    const struct kernel *const *kernels) {
  int ndevices = g->config.target.ndevices;
  struct plan p = {.arena = a, .graph = g, .ndevices = ndevices, .nkernels = nkernels};
  p.devices = arena_new_array(a, (size_t)ndevices, struct device_plan);
  for (int i = 0; i < ndevices; i++) p.devices[i].steps = arena_new_array(a, MAX_STEPS, struct step);
  p.buffers = arena_new_array(a, 1024, struct plan_buffer);
  p.inputs = arena_new_array(a, 16, struct plan_value);
  p.outputs = arena_new_array(a, 16, struct plan_value);
  p.kernels = arena_new_array(a, (size_t)nkernels, const struct kernel *);
  for (int i = 0; i < nkernels; i++) p.kernels[i] = kernels[i];
  return p;
}

static inline struct type vector_type(void) { return type_make(DT_F32, 1, (int64_t[]){N}); }

static inline int hand_buffer(struct plan *p, int device, enum region region) {
  int64_t *end = &p->devices[device].bytes[region];
  p->buffers[p->nbuffers] = (struct plan_buffer){
      .name = "", .device = device, .region = region, .bytes = BYTES, .offset = *end, .type = vector_type()};
  *end += BYTES;
  return p->nbuffers++;
}

static inline struct step *hand_step(struct plan *p, int device, enum step_kind kind) {
  struct step *s = &p->devices[device].steps[p->devices[device].nsteps++];
  assert_true(p->devices[device].nsteps <= MAX_STEPS);
  s->kind = kind;
  return s;
}

static inline void hand_operands(struct plan *p, struct step *s, int n, const int *buffers) {
  struct operand *o = arena_new_array(p->arena, (size_t)n, struct operand);
  for (int i = 0; i < n; i++) o[i].buffer = buffers[i];
  s->operands = o;
  s->noperands = n;
}

static inline void hand_kernel(struct plan *p, int device, const struct kernel *k, int x, int y, int z) {
  struct step *s = hand_step(p, device, STEP_KERNEL);
  hand_operands(p, s, 3, (int[]){x, y, z});
  s->kernel = k;
  s->sizes = vector_sizes;
}

/* What `to` does from here on comes after what `from` has done so far. */
static inline void hand_meet(struct plan *p, int from, int to) {
  hand_step(p, from, STEP_SIGNAL)->signal = p->nsignals;
  hand_step(p, to, STEP_WAIT)->signal = p->nsignals++;
}

static inline void hand_input(struct plan *p, int b) {
  p->inputs[p->ninputs++] = (struct plan_value){.name = "x", .type = vector_type(), .operand = {b, 0}};
}

static inline void hand_output(struct plan *p, int b) {
  p->outputs[p->noutputs++] =
      (struct plan_value){.role = OUTPUT_VALUE, .name = "y", .type = vector_type(), .operand = {b, 0}};
}

#endif
