/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over towers, which the cross-device algorithms are made of. All return NULL after an error. */
#ifndef DGC_PASSES_COLLECTIVES_TREE_H
#define DGC_PASSES_COLLECTIVES_TREE_H

#include "ir/graph/build.h"
#include "passes/strategy/strategy.h"
#include "passes/strategy/task_graph.h"

/* The processes of each host that have towers, host h's from begin[h] on, in their order. */
struct members {
  int *begin, *processes;
};

/* An all_reduce in the making. */
struct tree {
  struct graph *out;
  const struct strategy *s;
  const struct task_graph *part;
  const struct node *all; /* the all_reduce */
  struct node *
      *terms;       /* of `out`, one per tower or per block of towers, in tower order; NULL: another task's */
  int count;        /* of terms */
  const int *hosts; /* by device (cluster_hosts); NULL: there is one */
  const struct members *members; /* with hosts, in the part of one task */
  int turn; /* who sums and fetches for a host: for the chunks of a sum its devices take turns; else 0 */
  unsigned op;
};

/* The sum of towers lo..hi-1 by the fixed tree, on `device` as far as the towers do not share one. `why` may be NULL:
 * the all_reduce's own rule. */
struct node *tree_sum(const struct tree *t, int lo, int hi, int device, const char *why);
/* In the part of one task: all of the sum, made on `device`, and `finish`ed there, on the first device of the task. The
 * task that makes it sends it to all others. */
struct node *tree_part(const struct tree *t, int device,
                       struct node *(*finish)(struct graph *g, const struct node *all, struct node *total),
                       const char *why);
/* One addition of it. */
struct node *tree_add(const struct tree *t, struct node **pair, int lo, int hi, int device, const char *why);

/* --- in the part of one task --- */

/* Whether a process reads the whole. */
bool tree_reads(const struct tree *t, int process);
/* The device of a tower. */
int tree_home(const struct tree *t, int term);
/* A range whose sum another task makes, on `device` as far as the towers do not share one: what this task has of it
 * goes there. */
bool tree_give(const struct tree *t, int lo, int hi, int device);
/* The sum of a range, to another task's device; `on`: by who was sent it. */
bool tree_send(const struct tree *t, struct node *x, int lo, int hi, int to, bool on);
/* The same, which another device has, on this one; `comes`: it is sent. */
struct node *tree_receive(const struct tree *t, int lo, int hi, int from, int device, bool comes, bool on);

/* How many devices have towers. 1 also if those of one device do not follow each other. */
int tree_devices(const struct tree *t);
/* Those devices in tower order, and the sum that each has of its towers by the fixed tree. */
void tree_blocks(const struct tree *t, int *devices, struct node **sums);

/* x, which is the value `of`, by way of a device: an identity there, which pass copies makes a copy. Equal relays are
 * one node. */
struct node *relay(struct graph *out, struct node *x, const char *of, int device);

/* With hosts by device, whose numbers are below nhosts. */
struct members tree_members(struct arena *a, const struct task_graph *p, const int *hosts, int nhosts);

/* Who fetches for a host what is on another one, where all tasks are planned: the devices with towers, in the order of
 * these. */
struct fetchers {
  const int *hosts; /* NULL: there is one */
  int *devices, count;
};
struct fetchers tree_fetchers(struct arena *a, const struct tree *t);
/* x for a reader on this device: if that has towers and is on another host, by way of one of its host's, in turn. */
struct node *fetch(struct graph *out, const struct fetchers *f, struct node *x, int device, int turn);

/* What is a mean divides the sum; NULL of NULL. */
struct node *tree_divide(struct graph *g, const struct node *all, struct node *total);

#endif
