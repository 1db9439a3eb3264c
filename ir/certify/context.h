/* SPDX-License-Identifier: Apache-2.0 */
/* What all parts of the certificate share, from the lowest up:
 *
 *   context.h    this: the state; towers.c, views.c, identity.c
 *   breach.h     what is said: breach.c
 *   reference.h  nodes of the reference: reference.c, instance.c
 *   source.h     the source read into the reference: local.c, source.c
 *   placed.h     the placed graph read into it: parts.c, placed.c; variables.c
 *   certify.c    the claims
 *
 * Beside them stand plan.c, which needs a plan only, and the numeric claim: numeric.h with eval.c, simulate.c and
 * numbers.c. */
#ifndef DGC_IR_CERTIFY_CONTEXT_H
#define DGC_IR_CERTIFY_CONTEXT_H

#include "ir/certify/certificate.h"
#include "ir/cross_device.h"
#include "ir/ops/spread.h"

/* What a node of the placed graph stands for. */
struct meaning {
  struct node *of;            /* in the reference; NULL: nothing, and the reason has been reported */
  struct node *in_worker;     /* of a share: what it is in the reduction over its worker's towers, or NULL */
  const uint64_t *towers;     /* these towers' share of `of`, one bit each; NULL: all of it */
  enum dist how;              /* of a share: partial(sum), (max) or (min) */
  const struct share *others; /* of a share: all sums of which it is one, or NULL: of this one alone */
  struct node *term;          /* the value of one tower that is this share; NULL after arithmetic on shares */
};

/* That a tower's value is its share of a reduction. */
struct share {
  struct node *total, *in_worker; /* the reduction over all towers, and over those of the worker */
  enum dist how;
  struct share *next; /* of the same value */
};

/* How the source is read: for these towers, with the variables after so many of the step's updates. There is
 * one view of all towers; in asynchronous training there is one of each worker before it, whose update makes
 * the next version. A tower's values are those of the first view that has it. */
struct worker_view {
  int first, count; /* towers */
  int64_t rows;
  int reads, newest; /* versions: what the model reads, what an update reads */
};

struct certify {
  struct arena *arena;     /* dies with the call */
  struct arena *out_arena; /* of the texts */
  const struct graph *source, *placed;
  const char *after;
  struct diags *diags;
  struct certificate *out;
  int towers, words; /* words of 64 bits in a set of towers */
  int64_t batch;
  /* The reference. Its nodes carry the tower whose rows they are about, or -1. */
  struct graph *ref;
  uint32_t known;                   /* its first nodes, which the source gave */
  struct worker_view *views, *view; /* the one at hand; the last has all towers */
  int nviews;
  struct row_blocks blocks; /* of the source */
  struct node **versions;   /* [source id * nviews + version] of a variable; NULL: as the one before */
  struct node **global;     /* by source id: for the whole batch. NULL: dead */
  struct node **rows;       /* [source id * towers + tower]: for a tower's rows */
  struct share **share;     /* by reference id, for the first `known` */
  /* local.c, by source id: the local value may be another than the global one; local values are wanted; in the model
   * itself each tower has another value, though it has no rows; it depends on no variable and no input. */
  uint8_t *varies, *wants_local, *per_tower, *fixed;
  bool local_rows;     /* rows too are local: losses are scaled per tower */
  struct node **local; /* [source id * towers + tower]: local values; NULL: nobody asks */
  struct node **terms; /* the same of an aggregate: what it joins */
  struct node **sums;  /* [source id * nviews + view] of an aggregate: the sum of its terms */
  uint64_t *single;    /* [tower * words]: the sets of one tower */
  uint64_t *all;       /* the set of all */
  struct meaning *meanings;
  uint8_t *live, *blamed;
  struct node **inward; /* by reference id of a slice: the same computed from rows */
  uint32_t ninward;
  int64_t **starts; /* by reference id of a concatenation: where each operand begins */
  uint32_t nstarts;
  struct map source_parts, placed_parts; /* variables that are parts, see identity.c */
  int off_tree;                          /* joins that are not of the fixed tree */
};

/* Counts what a loop looks at. */
static inline void certify_work(struct certify *c, uint64_t looks) { c->out->work += looks; }

/* towers.c */
/* Rows of a tower, and the first of them: the first batch mod towers have one more. */
int64_t certify_rows(const struct certify *c, int tower);
int64_t certify_first(const struct certify *c, int tower);
static inline bool certify_has(const uint64_t *set, int tower) { return set[tower / 64] >> (tower % 64) & 1; }
/* "towers 0, 2-3": those in the set, or those that are not. */
const char *certify_towers_text(const struct certify *c, const uint64_t *set, bool inside);
/* Whether sums go over the devices by this algorithm, "ring" or "nccl", in an order that depends on the devices. */
bool certify_sums_by(const struct certify *c, enum cross_device algorithm);
/* Whether each tower has a copy of the variable, joined when it is read. */
bool certify_has_tower_copies(const struct certify *c, const struct node *variable);

/* views.c */
/* Decides the views. */
void certify_views(struct certify *c);
/* A variable of the source after this many updates; NULL if it is not read. */
struct node *certify_version(const struct certify *c, const struct node *variable, int version);

/* identity.c */
/* Finds the parts of variables in both graphs: before all that follows. */
void certify_identities(struct certify *c);
/* The variable of the source that a placed one is, or is a copy or a part of. NULL if there is none. */
const struct node *certify_variable(const struct certify *c, const struct node *v);
/* Whether it is a part of a variable that the source has as a whole. */
bool certify_is_part(const struct certify *c, const struct node *v);
/* The placed variable that is this part of `of`, or NULL. */
const struct node *certify_part(const struct certify *c, const char *of, int64_t part);
/* The rows of its variable that a placed one holds, from *first on; -1 if it is no part and has all. */
int64_t certify_part_rows(const struct certify *c, const struct node *v, int64_t *first);

#endif
