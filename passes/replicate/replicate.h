/* What the files of replicate share.
 *
 *   distribute.c  how each value lies over the towers
 *   needs.c       which device or tower needs which value
 *   clone.c       the copies of a node, and their names
 *   gather_rows.c the rows that towers add to one table
 *   per_tower.c   what each tower has of its own
 *   replicate.c   the pass: inputs, groups, results */
#ifndef DGC_PASSES_REPLICATE_REPLICATE_H
#define DGC_PASSES_REPLICATE_REPLICATE_H

#include "ir/ops/spread.h"
#include "passes/pass.h"
#include "passes/strategy/strategy.h"

/* Towers whose gradients are summed before they are applied: all of them; or, in asynchronous training, those of one
 * worker. There the last group has all towers and gives the step's results, and no updates. */
struct group {
  const char *prefix; /* of names, "worker_1/" or "" */
  int first_tower, ntowers;
  int64_t rows;         /* of its towers together: what batch_size is */
  bool computes;        /* its towers' own values are made with it */
  bool updates;         /* and variables are assigned */
  bool outputs;         /* and the caller's values are made */
  int reads, newest;    /* versions: what the model reads, what an update reads; 0 = before the step */
  uint64_t *workers;    /* the devices of its towers, as bits */
  uint8_t *wants_own;   /* by source id: each tower's own value of it is needed, see per_tower.c */
  uint8_t *wanted;      /* a value that towers have is needed */
  uint64_t *need;       /* [id * words]: devices that need a mirrored value, or the sum of a partial one */
  struct node **copies; /* [id * devices + d]: clones of mirrored values */
  struct node **sums;   /* [id]: all_reduce of a partial value */
  struct node *
      *rows_of_all; /* [id * devices + d]: the rows of its towers, as a scatter_add on a device reads them */
};

struct replicate {
  struct pass_ctx *ctx;
  struct graph *from, *to;
  struct strategy s;
  int64_t batch;
  bool single;              /* one tower: nothing is split, reduced or renamed */
  struct row_blocks blocks; /* of several towers */
  uint8_t *dist;            /* enum dist, by source id */
  const char **reduction;   /* of partial values */
  uint8_t *fixed;           /* depends on no variable and no input */
  uint8_t *varies;          /* a tower that sees its own rows only would compute another value */
  struct node **towers;     /* [id * towers + t]: clones of per_replica and partial values */
  struct node **own;        /* [id * towers + t]: as tower t has it of its own */
  bool apart; /* towers' own values are made of their own rows alone, without statistics of the batch */
  struct group *groups;
  int ngroups;
  struct node **versions; /* [id * (workers + 1) + k]: a variable after k updates; NULL: as before */
  int nversions;
  int ndevices, words; /* words of a set of devices */
};

/* distribute.c: the distribution of n, given those of its inputs. False if it cannot be spread over towers. */
bool distribute(struct replicate *r, const struct node *n);
/* Whether a partial(sum) may pass through n instead of being reduced before: additions and movement, which keep sums.
 * A product with a mirrored value would too, but then a mean would no longer divide once. */
bool passes_partial(const struct replicate *r, const struct node *n);
/* Reports why n cannot be spread; false. */
bool refuse(struct replicate *r, const struct node *n, const char *why);
bool on_towers(const struct replicate *r, const struct node *n); /* per_replica or partial */

/* needs.c */
void mark_needs(struct replicate *r, struct group *g);
void require(struct replicate *r, struct group *g, const struct node *x, const uint64_t *devices);
bool needed_on(const struct replicate *r, const struct group *g, const struct node *n, int device);
/* The device of what exists once though several may need it: the copy that keeps the name. -1: nobody needs it. */
int primary_device(const struct replicate *r, const struct group *g, const struct node *n);
/* The value of an assignment that depends on nothing is computed once, and the copies start from that. */
bool starts_from_primary(const struct replicate *r, const struct node *assign);

/* clone.c */
/* Of what a clone is made: a tower's rows or the whole batch. */
struct slice {
  int tower; /* or -1 */
  int64_t rows, first;
  int64_t counted; /* what batch_size is */
};
/* n once more under this name. */
struct node *clone(struct replicate *r, const struct node *n, const char *name, struct node **in,
                   struct slice s);
bool clone_mirrored(struct replicate *r, struct group *g, const struct node *n, struct node **in);
bool clone_towers(struct replicate *r, struct group *g, const struct node *n, struct node **in);
bool reduce_towers(struct replicate *r, struct group *g, const struct node *n);
/* The copy of a mirrored value, or the sum of a partial one, that a node on the device reads. */
struct node *mirrored_value(struct replicate *r, const struct group *g, const struct node *x, int device);
/* A variable that has one copy, as it is after this many of the step's updates. */
struct node *version_of(const struct replicate *r, const struct node *variable, int version);
void place_context(struct replicate *r, const struct node *n, enum dist dist, int tower, int device);
const char *tower_name(struct replicate *r, const char *name, int tower);
/* Of the towers' shares joined. */
const char *sum_name(struct replicate *r, const struct group *g, const char *name);
const char *copy_name(struct replicate *r, const struct group *g, const struct node *n, const char *name,
                      int device);

/* gather_rows.c */
/* A scatter_add of the towers' rows to a table that they share. */
bool joins_rows(const struct node *n);
/* What the scatter_add n on the device reads of all towers as its input. */
struct node *gathered_rows(struct replicate *r, struct group *g, const struct node *n, int input, int device);

/* per_tower.c */
/* What its readers see joined of what each tower has: aggregates, and variables that are joined on read. */
bool joins_own(const struct node *n);
/* Notes whether n varies; false after an error. */
bool distribute_own(struct replicate *r, const struct node *n);
void want_own(struct replicate *r, struct group *g, const struct node *x);
void mark_own(struct replicate *r, struct group *g, const struct node *n);
bool clone_own(struct replicate *r, struct group *g, const struct node *n, struct node **in);
/* Each tower's part of an aggregate; the copies of a variable; the assignments to them. */
bool clone_shares(struct replicate *r, struct group *g, const struct node *n);
bool clone_copies(struct replicate *r, const struct node *n);
bool clone_assigns(struct replicate *r, struct group *g, const struct node *n);
/* The towers' shares joined, where n is needed. */
bool join_own(struct replicate *r, struct group *g, const struct node *n, int device);
/* A value that turned out to be the same in all towers, as the tower's own. */
struct node *lift(struct replicate *r, const struct node *n, struct node *x, int tower);
/* An aggregate of what is the same in all towers. */
struct node *aggregate_same(struct replicate *r, const struct group *g, const struct node *n, struct node *x);

static inline void set_add(uint64_t *set, int device) { set[device / 64] |= UINT64_C(1) << device % 64; }
static inline bool set_has(const uint64_t *set, int device) { return set[device / 64] >> device % 64 & 1; }

#endif
