/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of replicate share, from the lowest up:
 *
 *   state.h        this
 *   distribute.h   how each value lies over the towers: distribute.c
 *   needs.h        which device or tower needs which value: needs.c
 *   clone.h        one clone of a node, and its name: clone.c
 *   towers.h       clones for all towers and devices: gather_rows.c, local.c, towers.c
 *   replicate.c    the pass: inputs, groups, results */
#ifndef DGC_PASSES_REPLICATE_STATE_H
#define DGC_PASSES_REPLICATE_STATE_H

#include "ir/ops/spread.h"
#include "passes/pass.h"
#include "passes/strategy/strategy.h"
#include "passes/strategy/task_graph.h"

/* Towers whose gradients are summed before they are applied: all of them; or, in asynchronous training, those of one
 * worker. There the last group has all towers and gives the step's results, and no updates. */
struct tower_group {
  const char *prefix; /* of names, "worker_1/" or "" */
  int first_tower, ntowers;
  int64_t rows;         /* of its towers together: what batch_size is */
  bool computes;        /* the values of its towers are made with it */
  bool updates;         /* and variables are assigned */
  bool outputs;         /* and the caller's values are made */
  int reads, newest;    /* versions: what the model reads, what an update reads; 0 = before the step */
  uint64_t *workers;    /* the devices of its towers, as bits */
  uint8_t *wants_local; /* by source id: local values of it are needed, see local.c */
  uint8_t *wanted;      /* a value that towers have is needed */
  uint64_t *need;       /* [id * words]: devices that need a mirrored value, or the sum of a partial one */
  struct node **copies; /* [id * devices + d]: clones of mirrored values */
  struct node **sums;   /* [id]: all_reduce of a partial value */
  struct node *
      *all_rows; /* [id * devices + d]: the rows of its towers, as a scatter_add on a device reads them */
};

struct replicate {
  struct pass_ctx *ctx;
  struct graph *from, *to;
  struct strategy s;
  struct task_graph part;
  int64_t batch;
  bool single;              /* one tower: nothing is split, reduced or renamed */
  struct row_blocks blocks; /* of several towers */
  uint8_t *dist;            /* enum dist, by source id */
  const char **reduction;   /* of partial values */
  uint8_t *fixed;           /* depends on no variable and no input */
  uint8_t *varies;          /* the local value may be another than the global one */
  struct node **towers;     /* [id * towers + t]: clones of per_replica and partial values */
  struct node **local;      /* [id * towers + t]: local values */
  bool local_rows;          /* rows too are local, without statistics of the batch */
  struct tower_group *groups;
  int ngroups;
  struct node **versions; /* [id * (workers + 1) + k]: a variable after k updates; NULL: as before */
  int nversions;
  int ndevices, words; /* words of a set of devices */
};

/* Whether the graph computes the tower. */
static inline bool has_tower(const struct replicate *r, int tower) {
  return task_graph_has(&r->part, r->part.process < 0 ? 0 : strategy_worker(&r->s, tower));
}

/* Where the value of a source node for a tower, or on a device, is in `towers`, `local`, `copies` and `all_rows`. */
static inline size_t by_tower(const struct replicate *r, const struct node *n, int tower) {
  return (size_t)n->id * (size_t)r->s.towers + (size_t)tower;
}
static inline size_t by_device(const struct replicate *r, const struct node *n, int device) {
  return (size_t)n->id * (size_t)r->ndevices + (size_t)device;
}

static inline void set_add(uint64_t *set, int device) { set[device / 64] |= UINT64_C(1) << device % 64; }
static inline bool set_has(const uint64_t *set, int device) { return set[device / 64] >> device % 64 & 1; }

#endif
