/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs over the tasks of a cluster, planned for processes. */
#ifndef DGC_TESTS_MESSAGE_CASE_H
#define DGC_TESTS_MESSAGE_CASE_H

#include "ir/certify/certify.h"
#include "plan_case.h"

/* 2 to 5 devices of 2 to 4 tasks, in a random order. */
static inline const char *random_cluster(struct arena *a, uint64_t seed) {
  struct str s = str_make(a);
  int tasks = 2 + random_below(&seed, 3), devices = tasks + random_below(&seed, 6 - tasks);
  int of[5], index[5] = {0};
  for (int i = 0; i < devices; i++) of[i] = i < tasks ? i : random_below(&seed, tasks);
  for (int i = devices - 1; i > 0; i--) {
    int k = random_below(&seed, i + 1), saved = of[i];
    of[i] = of[k];
    of[k] = saved;
  }
  for (int i = 0; i < devices; i++)
    str_printf(&s, "%s/job:worker/task:%d/cpu:%d", i ? "," : "", of[i], index[of[i]]++);
  return s.data;
}

struct subject {
  struct fixture f;
  uint64_t seed;
  struct graph *g, *fused;
  struct tensor *want;
};

static inline struct plan *begin_random(struct subject *s, uint64_t seed, const char *devices) {
  begin(&s->f);
  s->seed = seed;
  s->g = random_graph_on(s->f.arena, seed, 4 + (int)(seed % 9) * 12,
                         devices ? devices : random_cluster(s->f.arena, seed), &s->f.diags);
  s->want = oracle(s->f.arena, s->g);
  s->fused = fuse(&s->f, s->g, seed % 2 == 0);
  struct plan *p = verified(&s->f, plan_build_processes(s->f.arena, s->fused, &s->f.diags));
  if (!plan_certify(s->f.arena, p, &s->f.diags, NULL)) fail_msg("%s", diags_text(&s->f.diags, false));
  return p;
}

static inline void must_be_right(struct subject *s, const struct plan *p, const char *what) {
  for (uint64_t i = 0; i < 4; i++) {
    const char *wrong = run_and_compare(&s->f, s->g, s->want, p, s->seed * 5 + i);
    if (!wrong) continue;
    show(&s->f, s->g, NULL);
    show(&s->f, s->fused, p);
    fail_msg("seed %llu, %s: %s differs", (unsigned long long)s->seed, what, wrong);
  }
}

#endif
