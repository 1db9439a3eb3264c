/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of plans share: graphs fused, plans run and compared with the plain evaluation of the graph. */
#ifndef DGC_TESTS_PLAN_CASE_H
#define DGC_TESTS_PLAN_CASE_H

#include "ir/ops/op_id.h"
#include "passes/pass.h"
#include "plan_random.h"
#include "planner/planner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

struct fixture {
  struct arena *arena, *scratch;
  struct diags diags;
};

static inline void begin(struct fixture *f) {
  *f = (struct fixture){.arena = arena_create(), .scratch = arena_create()};
  diags_init(&f->diags, f->arena);
}

static inline void end(struct fixture *f) {
  arena_destroy(f->arena);
  arena_destroy(f->scratch);
}

static inline void show(struct fixture *f, const struct graph *g, const struct plan *p) {
  struct str s = str_make(f->arena);
  if (g) graph_print(&s, g);
  if (p) plan_print(&s, p);
  fprintf(stderr, "%s%s", s.data, diags_text(&f->diags, false));
}

static inline struct graph *fuse(struct fixture *f, struct graph *g, bool verify) {
  struct pass_ctx ctx = {f->arena, f->scratch, &f->diags};
  struct graph *fused = pass_fuse(&ctx, g);
  arena_reset(f->scratch);
  if (verify && !graph_verify(fused, "fuse", &f->diags)) {
    show(f, fused, NULL);
    fail();
  }
  return fused;
}

static inline struct plan *verified(struct fixture *f, struct plan *p) {
  if (!p || !plan_verify(p, &f->diags)) {
    show(f, p ? p->graph : NULL, p);
    fail();
  }
  return p;
}

static inline bool same(const struct tensor *want, const void *have) {
  if (want->type.dtype != DT_F32) return memcmp(want->data, have, (size_t)type_bytes(&want->type)) == 0;
  for (int64_t i = 0; i < type_count(&want->type); i++) {
    float a = ((const float *)want->data)[i], b = ((const float *)have)[i];
    if (!(a == b || (a != a && b != b))) return false;
  }
  return true;
}

static inline void start(struct machine *m, const struct graph *g) {
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (n->op != OP_variable || !machine_variable(m, n->name)) continue;
    memcpy(machine_variable(m, n->name), initial(m->arena, n).data, (size_t)type_bytes(&n->type));
  }
  for (int i = 0; i < m->p->ninputs; i++) {
    const struct node *n = graph_find(g, m->p->inputs[i].name);
    memcpy(machine_at(m, &m->p->inputs[i].operand), initial(m->arena, n).data, (size_t)type_bytes(&n->type));
  }
}

/* An output, and each process's own copy of it. */
static inline bool same_output(const struct machine *m, const struct tensor *want,
                               const struct plan_value *v) {
  if (!same(want, machine_at(m, &v->operand))) return false;
  for (int i = 0; v->copies && i < m->p->nprocesses; i++)
    if (v->copies[i].buffer >= 0 && !same(want, machine_at(m, &v->copies[i]))) return false;
  return true;
}

/* Runs the plan, where its receives are posted at `posts`, and compares each output and each variable. What differs, or
 * NULL. */
static inline const char *run_posted(struct fixture *f, const struct graph *g, const struct tensor *want,
                                     const struct plan *p, int *const *posts, uint64_t seed) {
  struct machine m = machine_make(f->arena, p);
  m.random = seed;
  m.posts = posts;
  start(&m, g);
  if (!machine_run(&m)) return "the devices wait for each other";
  int k = 0;
  for (int i = 0; i < g->noutputs; i++) {
    const struct node *n = g->outputs[i].node;
    bool update = g->outputs[i].role == OUTPUT_UPDATE;
    const void *variable = update ? machine_variable(&m, n->inputs[0]->name) : NULL;
    if (update ? variable && !same(&want[n->id], variable) : !same_output(&m, &want[n->id], &p->outputs[k++]))
      return arena_printf(f->arena, "%s (%s)", g->outputs[i].name, n->name);
  }
  return NULL;
}

static inline const char *run_and_compare(struct fixture *f, const struct graph *g, const struct tensor *want,
                                          const struct plan *p, uint64_t seed) {
  return run_posted(f, g, want, p, NULL, seed);
}

/* Without any one of its waits, or of what a device does together with others, a plan is wrong; nor without any
 * part of a message. */
static inline void drop_meetings(struct fixture *f, const struct plan *p) {
  for (int d = 0; d < p->ndevices; d++)
    for (int i = 0; i < p->devices[d].nsteps; i++) {
      struct step *s = &p->devices[d].steps[i], saved = *s;
      if (s->kind != STEP_WAIT && s->kind != STEP_ALL_REDUCE && !s->message) continue;
      *s = (struct step){.kind = STEP_COPY, .node = saved.node};
      struct diags diags;
      diags_init(&diags, f->scratch);
      if (plan_verify(p, &diags)) {
        *s = saved;
        show(f, p->graph, p);
        print_message("the meeting at step %d of device %d is not needed\n", i, d);
        fail();
      }
      *s = saved;
      arena_reset(f->scratch);
    }
}

static inline int number(const char *variable, int otherwise) {
  const char *text = getenv(variable);
  return text ? atoi(text) : otherwise;
}

#endif
