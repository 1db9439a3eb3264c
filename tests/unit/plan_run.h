/* SPDX-License-Identifier: Apache-2.0 */
/* Runs plans the slow and obvious way, for tests: kernels by kernel_eval, devices in a random interleaving. Of each
 * message it is decided by chance whether its bytes are taken when it is sent or as late as can be, and whether it is
 * gone only when it has been received. */
#ifndef DGC_TESTS_PLAN_RUN_H
#define DGC_TESTS_PLAN_RUN_H

#include "ir/ops/op.h"
#include "ir/plan/plan.h"

#include <limits.h>
#include <string.h>

/* A message on its way. */
struct parcel {
  const char *from; /* the sender's memory; NULL: it has not been sent */
  char *posted;     /* its place; NULL: it is not posted */
  char *taken;      /* its bytes, once they are taken from there */
  bool received;
  bool late;   /* they are taken when it is received, or at the latest when it is gone */
  bool stands; /* it is not gone before it has been received */
};

struct machine {
  struct arena *arena;
  const struct plan *p;
  char **memory;          /* of each buffer */
  struct parcel *parcels; /* by message */
  int *const *posts; /* by device: as plan_posts; from then on a message may come. NULL: at their steps */
  int **at_post,
      **next_post; /* by device and step: the receive that is posted there, and the next one; -1: none */
  bool rendezvous; /* no message is gone before it has been received */
  uint64_t random;
};

static inline uint64_t random_next(uint64_t *state) { /* splitmix64 */
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static inline int random_below(uint64_t *state, int n) { return (int)(random_next(state) % (uint64_t)n); }

/* Memory for every region, filled with a pattern; constants are there. */
static inline struct machine machine_make(struct arena *a, const struct plan *p) {
  struct machine m = {.arena = a, .p = p};
  m.memory = arena_new_array(a, (size_t)p->nbuffers, char *);
  for (int d = 0; d < p->ndevices; d++)
    for (int r = 0; r < REGION_COUNT; r++) {
      size_t bytes = (size_t)p->devices[d].bytes[r];
      char *base = arena_alloc(a, bytes + 64);
      memset(base, 0xa5, bytes);
      for (int i = 0; i < p->nbuffers; i++)
        if (p->buffers[i].device == d && (int)p->buffers[i].region == r)
          m.memory[i] = base + p->buffers[i].offset;
    }
  for (int i = 0; i < p->nbuffers; i++)
    if (p->buffers[i].data && p->buffers[i].bytes)
      memcpy(m.memory[i], p->buffers[i].data, (size_t)p->buffers[i].bytes);
  return m;
}

static inline char *machine_at(const struct machine *m, const struct operand *o) {
  return m->memory[o->buffer] + o->offset;
}

static inline char *machine_variable(const struct machine *m, const char *name) {
  for (int i = 0; i < m->p->nbuffers; i++)
    if (m->p->buffers[i].region == REGION_VARIABLE && strcmp(m->p->buffers[i].name, name) == 0)
      return m->memory[i];
  return NULL;
}

/* By the graph: its steps are not those of a machine. */
static inline void machine_loop(const struct step *s, void **args) {
  struct tensor in[MAX_KERNEL_ARGS], outs[MAX_KERNEL_ARGS];
  const struct node *n = s->node;
  for (int i = 0; i < n->ninputs; i++) in[i] = (struct tensor){n->inputs[i]->type, args[i]};
  for (int i = 0; i < node_results(n); i++)
    outs[i] = (struct tensor){node_result_type(n, i), args[n->ninputs + i]};
  results_eval(n, in, outs, node_results(n), 0);
}

static inline void machine_step(struct machine *m, const struct step *s) {
  void *args[MAX_KERNEL_ARGS];
  for (int i = 0; i < s->noperands; i++) args[i] = machine_at(m, &s->operands[i]);
  switch (s->kind) {
  case STEP_KERNEL: kernel_eval(s->kernel, args, s->sizes); break;
  case STEP_LEAF: leaf_eval(s->node, args); break;
  case STEP_SCAN: machine_loop(s, args); break;
  case STEP_COPY:
    if (s->bytes) memmove(args[1], args[0], (size_t)s->bytes);
    break;
  default: break;
  }
}

/* The sum of what all devices have, once all stand at their parts: false before. */
static inline bool machine_sum(struct machine *m, const int *pc, const struct collective *c) {
  const struct step *parts[64];
  size_t bytes = (size_t)(c->elements * dtype_size(c->dtype));
  uint32_t *sum = arena_alloc(m->arena, bytes + 1); /* of i32, which wraps */
  for (int i = 0; i < c->count; i++) {
    int d = c->devices[i];
    parts[i] = pc[d] < m->p->devices[d].nsteps ? &m->p->devices[d].steps[pc[d]] : NULL;
    if (!parts[i] || parts[i]->kind != STEP_ALL_REDUCE || parts[i]->collective != c) return false;
  }
  memset(sum, 0, bytes);
  for (int i = 0; i < c->count; i++) {
    const uint32_t *share = (const void *)machine_at(m, &parts[i]->operands[0]);
    for (int64_t k = 0; k < c->elements; k++) sum[k] += share[k];
  }
  for (int i = 0; i < c->count; i++)
    if (bytes) memcpy(machine_at(m, &parts[i]->operands[1]), sum, bytes);
  return true;
}

static inline void machine_take(struct machine *m, struct parcel *r, int64_t bytes) {
  if (!r->taken) r->taken = arena_copy(m->arena, r->from, (size_t)bytes);
}

/* A message that has been sent may lie in its place from when it is posted there, and nobody may see how it comes. */
static inline void machine_arrive(const struct parcel *r, int64_t bytes) {
  if (r->posted && r->from && bytes) memset(r->posted, 0x5a, (size_t)bytes);
}

/* False if it cannot be done yet. */
static inline bool machine_message(struct machine *m, const struct step *s) {
  const struct message *what = s->message;
  struct parcel *r = &m->parcels[what->number];
  if (s->kind == STEP_SEND) {
    r->from = machine_at(m, &s->operands[0]);
    if (!r->late) machine_take(m, r, what->bytes);
    machine_arrive(r, what->bytes);
    return true;
  }
  if (!r->from || random_below(&m->random, 3) == 0) return false;
  if (s->kind == STEP_SENT && r->stands && !r->received) return false;
  machine_take(m, r, what->bytes);
  if (s->kind == STEP_SENT) return true;
  r->received = true;
  if (what->bytes) memcpy(machine_at(m, &s->operands[0]), r->taken, (size_t)what->bytes);
  return true;
}

/* What the device posts before its step `pc`. */
static inline void machine_post(const struct machine *m, int device, int pc) {
  const struct device_plan *dp = &m->p->devices[device];
  for (int i = m->posts ? m->at_post[device][pc] : -1; i >= 0; i = m->next_post[device][i]) {
    struct parcel *r = &m->parcels[dp->steps[i].message->number];
    r->posted = machine_at(m, &dp->steps[i].operands[0]);
    machine_arrive(r, dp->steps[i].bytes);
  }
}

static inline void machine_order_posts(struct machine *m) {
  m->at_post = arena_new_array(m->arena, (size_t)m->p->ndevices, int *);
  m->next_post = arena_new_array(m->arena, (size_t)m->p->ndevices, int *);
  for (int d = 0; d < m->p->ndevices; d++) {
    const struct device_plan *dp = &m->p->devices[d];
    int *at = m->at_post[d] = arena_new_array(m->arena, (size_t)dp->nsteps, int);
    int *next = m->next_post[d] = arena_new_array(m->arena, (size_t)dp->nsteps, int);
    for (int i = 0; i < dp->nsteps; i++) at[i] = -1;
    for (int i = dp->nsteps; i-- > 0;) {
      if (dp->steps[i].kind != STEP_RECEIVE) continue;
      next[i] = at[m->posts[d][i]];
      at[m->posts[d][i]] = i;
    }
  }
}

static inline void machine_begin(struct machine *m) {
  if (m->posts) machine_order_posts(m);
  m->parcels = arena_new_array(m->arena, (size_t)m->p->nmessages, struct parcel);
  for (int i = 0; i < m->p->nmessages; i++) {
    m->parcels[i].late = random_below(&m->random, 2);
    m->parcels[i].stands = m->rendezvous || random_below(&m->random, 2);
  }
}

/* One run; false when the devices wait for each other for ever. */
static inline bool machine_run(struct machine *m) {
  const struct plan *p = m->p;
  int *pc = arena_new_array(m->arena, (size_t)p->ndevices, int), left = p->ndevices, idle = 0;
  bool *given = arena_new_array(m->arena, (size_t)p->nsignals, bool);
  bool *met = arena_new_array(m->arena, (size_t)p->ncollectives, bool);
  bool *ended = arena_new_array(m->arena, (size_t)p->ndevices, bool);
  machine_begin(m);
  while (left > 0 && idle < 1000 * p->ndevices) {
    int d = random_below(&m->random, p->ndevices);
    int burst = 1 + random_below(&m->random, 4);
    idle++;
    for (int i = 0; i < burst && pc[d] < p->devices[d].nsteps; i++) {
      const struct step *s = &p->devices[d].steps[pc[d]];
      machine_post(m, d, pc[d]);
      if (s->kind == STEP_WAIT && !given[s->signal]) break;
      if (s->kind == STEP_ALL_REDUCE && !met[s->collective->number] &&
          !(met[s->collective->number] = machine_sum(m, pc, s->collective)))
        break;
      if (s->message && !machine_message(m, s)) break;
      if (s->kind == STEP_SIGNAL) given[s->signal] = true;
      machine_step(m, s);
      pc[d]++;
      idle = 0;
    }
    if (pc[d] == p->devices[d].nsteps && !ended[d]) {
      ended[d] = true;
      left--;
      idle = 0;
    }
  }
  return left == 0;
}

#endif
