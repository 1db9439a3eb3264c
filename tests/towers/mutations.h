/* SPDX-License-Identifier: Apache-2.0 */
/* Faults to plant in placed graphs and plans: what passes could do wrong, each by name. */
#ifndef TESTS_TOWERS_MUTATIONS_H
#define TESTS_TOWERS_MUTATIONS_H

#include "ir/graph/build.h"
#include "ir/plan/plan.h"

/* A placed graph of its own, to be changed in place; its tables of names and equal nodes go stale. */
struct patient {
  struct arena *arena;
  const struct graph *source;
  struct graph *g;
  struct plan *plan;     /* for faults of plans */
  int site;              /* which of the places where the fault can be planted */
  const char *names[16]; /* one of them must be in the message */
  int nnames;
};

struct mutation {
  const char *name;
  bool (*plant)(struct patient *p); /* false: there is no such place */
};

/* Whether it is the place at hand. */
static inline bool here(struct patient *p) { return p->site-- == 0; }

static inline void suspect(struct patient *p, const char *name) {
  if (p->nnames < 16) p->names[p->nnames++] = name;
}

/* Both end with a name of NULL. */
extern const struct mutation graph_mutations[], plan_mutations[];

#endif
