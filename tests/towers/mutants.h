/* SPDX-License-Identifier: Apache-2.0 */
/* A placed graph's text with one thing changed: every line deleted, written twice and swapped, every operand replaced
 * by another of its type, every attribute, type, label, role and header line changed. Nothing here knows what a
 * change means. Only the changed node has its whole comment. The same graph and seed give the same mutants, whatever
 * share of them is asked for. */
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

/* One of `of` mutants: those whose number leaves `part` behind. Mutants of all graphs are numbered in one row. */
struct mutant_share {
  uint64_t of, part, next;
};

/* Calls `check` with the mutants of g in this share; numbers go on from graph to graph. The text dies with the call. */
void each_mutant(const struct graph *g, uint64_t seed, struct mutant_share *share, mutant_check *check,
                 void *user);

#endif
