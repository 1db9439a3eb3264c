/* A placed graph's text with one thing changed: every line deleted, written twice and swapped, every operand replaced
 * by another of its type, every attribute, type, label, role and header line changed. Nothing here knows what a
 * change means. The same graph and seed give the same mutants, whatever share of them is asked for. */
#ifndef TESTS_TOWERS_MUTANTS_H
#define TESTS_TOWERS_MUTANTS_H

#include "ir/graph/graph.h"

enum mutant_kind {
#define KIND(id, text) MUTANT_##id,
#include "tests/towers/mutants.def"
#undef KIND
  MUTANT_KINDS
};
extern const char *const mutant_kinds[MUTANT_KINDS]; /* "line deleted" */

struct mutant {
  enum mutant_kind kind;
  const char *text; /* of the whole graph */
  size_t len;
  const char *before, *after; /* the lines that changed */
};

typedef void mutant_check(void *user, const struct mutant *m);

/* Calls `check` with every `share`th mutant of g, beginning with number *place; *place goes on counting from graph to
 * graph. The text dies with the call. */
void each_mutant(const struct graph *g, uint64_t seed, uint64_t share, uint64_t *place, mutant_check *check,
                 void *user);

#endif
