/* The parts of the certificate. */
#ifndef DGC_IR_CERTIFY_WALK_H
#define DGC_IR_CERTIFY_WALK_H

#include "ir/certify/certify.h"
#include "ir/ops/spread.h"

/* What a node of the placed graph stands for. */
struct meaning {
  struct node *of;    /* in the reference; NULL: nothing, and the reason has been reported */
  struct node *alone; /* of a share: what it is in the reduction over its worker's towers alone, or NULL */
  const uint64_t *towers; /* these towers' share of `of`, one bit each; NULL: all of it */
  enum op_id how;         /* of a share: OP_add, OP_max or OP_min */
  struct node *leaf;      /* the value of one tower that is this share; NULL after arithmetic on shares */
};

/* That a tower's value is its share of a reduction. */
struct share {
  struct node *whole, *alone; /* alone: over the towers of the worker */
  enum op_id how;
  struct share *next; /* of the same value */
};

/* How the source is read: for these towers, with the variables after so many of the step's updates. There is
 * one view of all towers; in asynchronous training there is one of each worker before it, whose update makes
 * the next version. A tower's values are those of the first view that has it. */
struct view {
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
  uint32_t known;            /* its first nodes, which the source gave */
  struct view *views, *view; /* the one at hand; the last has all towers */
  int nviews;
  struct row_blocks blocks; /* of the source */
  struct node **versions;   /* [source id * nviews + version] of a variable; NULL: as the one before */
  struct node **whole;      /* by source id: for the whole batch. NULL: dead */
  struct node **rows;       /* [source id * towers + tower]: for a tower's rows */
  struct share **share;     /* by reference id, for the first `known` */
  /* per_tower.c, by source id: another value for a tower's rows alone; towers' own values are wanted; in the
   * model itself each tower has another value. */
  uint8_t *varies, *wants_own, *apart, *fixed; /* fixed: depends on no variable and no input */
  bool own_rows;                               /* rows too are towers' own: losses are scaled per tower */
  struct node **own; /* [source id * towers + tower]: for a tower that sees its own rows; NULL: nobody asks */
  struct node **leaves; /* the same of an aggregate: what it joins */
  struct node **sums;   /* [source id * nviews + view] of an aggregate: the sum of its leaves */
  uint64_t *single;     /* [tower * words]: the sets of one tower */
  uint64_t *all;        /* the set of all */
  struct meaning *meanings;
  uint8_t *live, *blamed;
  struct node **inward; /* by reference id of a slice: the same computed from rows */
  uint32_t ninward;
  int64_t **starts; /* by reference id of a concatenation: where each operand begins */
  uint32_t nstarts;
  struct map parts; /* by name, "v/part_1": the placed variable */
  int crooked;      /* joins that are not of the fixed tree */
};

/* What a claim's line says where nothing is wrong. */
void certify_say(struct certify *c, enum claim_id claim, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void certify_breach(struct certify *c, enum claim_id claim, const struct node *n, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Counts what a loop looks at. */
static inline void certify_work(struct certify *c, uint64_t looks) { c->out->work += looks; }

/* Rows of a tower, and the first of them: the first batch mod towers have one more. */
int64_t certify_rows(const struct certify *c, int tower);
int64_t certify_first(const struct certify *c, int tower);

/* `like` with these operands and attributes in the reference, after the builder's rules. `type` for typed ops.
 * NULL if there is no such node. */
struct node *certify_make(struct certify *c, const struct node *like, struct node *const *in, int nattrs,
                          const struct attr *attrs, const struct type *type, int tower);

/* views.c: decides the views. */
void certify_views(struct certify *c);
/* A variable of the source after this many updates; NULL if it is not read. */
struct node *certify_version(const struct certify *c, const struct node *variable, int version);
/* flat.c: a slice of rows or a concatenation of them, whose operands are in the reference, as the runs
 * of rows that it holds. NULL if n is neither. */
struct node *certify_runs(struct certify *c, const struct node *n);
/* Rows of x, which is the same everywhere. */
struct node *certify_rows_of(struct certify *c, const struct node *like, struct node *x, int64_t begin,
                             int64_t rows);
/* per_tower.c: what each tower has of its own. Begins once the views are known. */
void certify_own_begin(struct certify *c, const uint8_t *live);
/* Towers' own values of n, if they are wanted. False if there is none. */
bool certify_own(struct certify *c, const struct node *n, struct node **in);
/* Aggregates, variables that are joined on read and their updates, and what they are to everybody else. */
bool certify_is_apart(const struct certify *c, const struct node *n);
struct node *certify_apart(struct certify *c, const struct node *n);
/* Whether n is another value for a tower's rows alone. */
bool certify_varies(const struct certify *c, const struct node *n);
/* tower_id and tower_count as numbers. */
struct node *certify_number(struct certify *c, const struct node *n, int tower);
/* source.c: n's attributes, without an offset of 0, which is none; how many. */
int certify_attrs(const struct node *n, struct attr *out);
/* source.c: n for a tower's rows, or for the whole batch; `counted` is what batch_size is. */
struct node *certify_instance(struct certify *c, const struct node *n, struct node *const *in, int tower,
                              int64_t counted);
/* A value that is the same everywhere as a tower's own. */
struct node *certify_lift(struct certify *c, struct node *x, int tower);
void certify_own_shares(struct certify *c);
/* source.c: the input that these values are all rows of, in order; NULL if there is none. */
struct node *certify_whole_input(struct node *const *rows, int count);
/* source.c: that x is a tower's share of the whole. */
void certify_note_share(struct certify *c, struct node *x, struct node *whole, struct node *alone,
                        enum op_id how);
/* Fills the reference. False after a breach. */
bool certify_source(struct certify *c);
/* placed.c: what each node of the placed graph stands for. */
void certify_placed(struct certify *c);
/* blame.c: reports why `n` is not `want`, which `what` ("the loss x") should be. */
void certify_blame(struct certify *c, enum claim_id claim, const struct node *n, const struct node *want,
                   const char *what);
/* The first node before n that stands for nothing the source has; NULL if there is none. */
const struct node *certify_origin(struct certify *c, const struct node *n);
/* Why `n`, which has such a meaning, is not the source's. */
void certify_explain(struct certify *c, enum claim_id claim, const struct node *n);
/* variables.c: all copies of all variables, and who writes them. */
void certify_variables(struct certify *c);
/* The variable of the source that a placed one is a copy or a part of: "v" of "v/replica_1" and "v/part_0".
 * NULL if there is none. */
const struct node *certify_variable(const struct graph *source, const char *name);
/* parts.c: notes the parts of variables. False after a breach. */
bool certify_parts(struct certify *c);
/* The rows of its variable that a placed variable holds, from *first on; all of them if it is no part. */
int64_t certify_part_rows(const struct certify *c, const struct node *v, int64_t *first);
/* Whether sums go around the ring, in an order that depends on the devices. */
bool certify_is_ring(const struct certify *c);
/* "towers 0, 2-3": those in the set, or those that are not. */
const char *certify_towers_text(const struct certify *c, const uint64_t *set, bool inside);
static inline bool certify_has(const uint64_t *set, int tower) { return set[tower / 64] >> (tower % 64) & 1; }

#endif
