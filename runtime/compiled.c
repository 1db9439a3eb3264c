/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of a plan, compiled by the backends of its devices; on the host those that run in segments as two each: a
 * segment, and what joins them. */
#include "runtime/compiled.h"

#include "runtime/cut.h"

/* A kernel that a backend of the host runs in segments. */
struct compiled_split {
  const struct opened *on;
  const struct kernel *kernel;
  struct split split;
  kernel_fn *fn[2];
  struct compiled_split *next;
};

struct compiled {
  struct arena *arena;
  const struct engines *engines;
  const struct plan *plan;
  kernel_fn ***code;             /* by open backend, then by kernel of the plan; NULL: it compiles none */
  struct compiled_split *splits; /* the newest first */
};

static int find_kernel(const struct plan *p, const struct kernel *k) {
  for (int i = 0; i < p->nkernels; i++)
    if (p->kernels[i] == k) return i;
  for (int i = 0; i < p->nkernels; i++)
    if (kernel_equal(p->kernels[i], k)) return i;
  return -1;
}

static struct compiled_split *find_split(const struct compiled *c, const struct opened *o,
                                         const struct kernel *k) {
  struct compiled_split *s = c->splits;
  while (s && (s->on != o || s->kernel != k)) s = s->next;
  return s;
}

/* Whether the step is one in segments, which is then noted. */
static bool note_split(struct compiled *c, const struct opened *o, const struct step *s) {
  if (!o->backend->host || s->segments.count < 2) return false;
  if (find_split(c, o, s->kernel)) return true;
  struct compiled_split *split = arena_new(c->arena, struct compiled_split);
  *split = (struct compiled_split){.on = o, .kernel = s->kernel, .next = c->splits};
  if (!kernel_split(c->arena, s->kernel, &split->split)) return false;
  c->splits = split;
  return true;
}

/* Marks the kernels that a device runs, those of its loops, too. */
static void note_used(struct compiled *c, const struct opened *o, const struct plan *p, int device,
                      bool *used) {
  const struct device_plan *dp = &p->devices[device];
  for (int i = 0; i < dp->nsteps; i++) {
    const struct step *s = &dp->steps[i];
    if (s->kind == STEP_SCAN) note_used(c, o, s->loop->body, device, used);
    if (s->kind != STEP_KERNEL || note_split(c, o, s)) continue;
    int k = find_kernel(c->plan, s->kernel);
    if (k >= 0) used[k] = true;
  }
}

/* What devices of one backend run. */
struct compiled_used {
  bool *used; /* by kernel of the plan */
  const struct kernel **kernels;
  int count; /* of `kernels`: those used, then two of each split */
};

static struct compiled_used find_used(struct compiled *c, const struct opened *o) {
  const struct plan *p = c->plan;
  struct compiled_used u = {.used = arena_new_array(c->arena, (size_t)p->nkernels, bool)};
  for (int d = 0; d < p->ndevices; d++)
    if (c->engines->devices[d] == o) note_used(c, o, p, d, u.used);
  int most = p->nkernels;
  for (struct compiled_split *s = c->splits; s; s = s->next) most += 2 * (s->on == o);
  u.kernels = arena_new_array(c->arena, (size_t)most, const struct kernel *);
  for (int i = 0; i < p->nkernels; i++)
    if (u.used[i]) u.kernels[u.count++] = p->kernels[i];
  for (struct compiled_split *s = c->splits; s; s = s->next)
    if (s->on == o) u.kernels[u.count++] = &s->split.segment, u.kernels[u.count++] = &s->split.join;
  return u;
}

/* All together, as they are compiled by several threads. */
static bool compile_on(struct compiled *c, const struct opened *o, kernel_fn **out, struct diags *d) {
  struct compiled_used u = find_used(c, o);
  kernel_fn **code = arena_new_array(c->arena, (size_t)u.count, kernel_fn *);
  if (u.count && !o->backend->compile(o->self, u.kernels, u.count, code, d)) return false;
  for (int i = 0; i < c->plan->nkernels; i++)
    if (u.used[i]) out[i] = *code++;
  for (struct compiled_split *s = c->splits; s; s = s->next)
    if (s->on == o) s->fn[0] = *code++, s->fn[1] = *code++;
  return true;
}

struct compiled *compile_kernels(struct arena *a, const struct engines *engines, const struct plan *p,
                                 struct diags *d) {
  struct compiled *c = arena_new(a, struct compiled);
  *c = (struct compiled){.arena = a, .engines = engines, .plan = p};
  c->code = arena_new_array(a, (size_t)engines->count, kernel_fn **);
  for (int i = 0; i < engines->count; i++) {
    const struct opened *o = &engines->all[i];
    if (!o->backend->compile) continue;
    c->code[i] = arena_new_array(a, (size_t)p->nkernels, kernel_fn *);
    if (!compile_on(c, o, c->code[i], d)) return NULL;
  }
  return c;
}

void foresee_kernels(const struct engines *engines, const struct plan *p) {
  struct arena_guard guard;
  struct arena *scratch = arena_create_guarded(&guard);
  struct compiled c = {.arena = scratch, .engines = engines, .plan = p};
  for (int i = 0; i < engines->count; i++) {
    const struct opened *o = &engines->all[i];
    struct compiled_used u = o->backend->foresee ? find_used(&c, o) : (struct compiled_used){0};
    if (u.count) o->backend->foresee(o->self, u.kernels, u.count);
  }
  arena_destroy_guarded(scratch, &guard);
}

kernel_fn *compiled_kernel(const struct compiled *c, const struct opened *o, const struct kernel *kernel) {
  kernel_fn **code = c->code[o - c->engines->all];
  int k = code ? find_kernel(c->plan, kernel) : -1;
  return k >= 0 ? code[k] : NULL;
}

const struct pieces *compiled_segments(const struct compiled *c, const struct opened *o,
                                       const struct step *s) {
  const struct compiled_split *split = s->segments.count > 1 ? find_split(c, o, s->kernel) : NULL;
  return split ? cut_segments(c->arena, s, &split->split, split->fn) : NULL;
}
