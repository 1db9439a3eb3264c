/* SPDX-License-Identifier: Apache-2.0 */
/* Where things go, decided once from the configuration and read by replicate, place and collectives. */
#ifndef DGC_PASSES_STRATEGY_STRATEGY_H
#define DGC_PASSES_STRATEGY_STRATEGY_H

#include "base/map.h"
#include "ir/cross_device.h"
#include "ir/graph/config.h"
#include "ir/strategies.h"

struct graph;
struct node;

struct strategy {
  const struct strategy_info *info;
  int towers;
  int *workers; /* the devices that carry towers, in the order of the towers */
  int nworkers;
  bool mirrored;     /* STORAGE_EACH: a copy of each variable on every worker device; else one, at home */
  int parameter;     /* the device that holds all variables, or -1: each has its own home */
  int main;          /* the device of mirrored values that are needed once: losses, metrics */
  int consolidation; /* the device that splits the batch and gathers results */
  int inputs;        /* the one that splits it here: in the part of one task its own */
  int *shards;       /* the devices whose turn it is for variables, when parameter is -1 */
  int nshards;
  /* By variable, slots too: int *, its device, where variables have homes of their own or `on` moves some. */
  struct map homes;
};

/* Fills in what config leaves open and writes it back, so that the graph's header says it: devices (/cpu:0), towers
 * (one per device), strategy (the default for such devices), the parameter device (the only compute device, else
 * /cpu:0, which is added where it is missing), the batch, and the home of each variable: config's own where it has
 * them, else by the order of the variables in g, which must then hold all of the model. False after an error. */
bool strategy_resolve(struct arena *a, const struct graph *g, struct config *config, struct strategy *out,
                      struct diags *d);

/* The towers of each worker: those that follow each other on one task. first[i]: the first of worker i; room for
 * all towers. How many there are. */
int strategy_tasks(const struct strategy *s, const struct target *t, int *first);
/* The device that a tower runs on. */
int strategy_worker(const struct strategy *s, int tower);
/* The device that holds the variable, or its primary copy. */
int strategy_home(const struct strategy *s, const struct node *variable);
/* Whether two devices belong to one task. */
bool same_task(const struct target *t, int a, int b);

/* annotation.c */
/* The device that an annotated node gets when a rule has chosen `rule`: the fields of its `on` win over that device's.
 * *soft: it is not there, and soft placement took another one. -1 after an error. */
int wanted_device(struct arena *a, const struct config *c, const struct node *n, int rule, bool *soft,
                  struct diags *d);

/* cross_device.c: how the devices sum what each of them has a share of; see passes/collectives. */
/* The one that the configuration names; -1 after an error. */
int cross_device_find(const struct config *c, struct diags *d);
/* Why NCCL cannot sum over these devices, in `a`; NULL: it can. */
const char *nccl_why_not(const struct target *t, const int *devices, int ndevices, struct arena *a);
/* Settles for hierarchical_copy, with a warning that says why, where the configuration asks for NCCL and these devices
 * cannot do it. */
void nccl_settle(struct config *c, const int *devices, int ndevices, struct diags *d);

/* variables.c */
/* Fills in s->homes, and config's if it has none. False after an error. */
bool strategy_homes(struct arena *a, const struct graph *g, struct config *config, struct strategy *s,
                    struct diags *d);
/* Where one device stores all variables: fills in s->homes if one of them moves. False after an error. */
bool strategy_moves(struct arena *a, const struct graph *g, const struct config *config, struct strategy *s,
                    struct diags *d);
/* Into how many parts a variable of g is cut along its first axis; 1: it stays whole. */
int strategy_parts(struct arena *a, const struct strategy *s, const struct config *config,
                   const struct graph *g, const struct node *variable);
/* "v/part_2" of "v"; also for a name that only begins with the variable's: "v/part_2.grad" of "v.grad". */
const char *part_name(struct arena *a, const char *variable, const char *name, int part);
/* Under which name a variable's home is known: its own, or, of an optimizer's state, that of the variable or part for
 * which it is kept: "h.kernel" for "h.kernel.adam.m". */
const char *home_name(struct arena *a, const struct node *variable);

#endif
