/* SPDX-License-Identifier: Apache-2.0 */
/* From the fused graph to the plan, in eight parts that share one state:
 *   concat.c    what is written where it will be concatenated
 *   units.c     what is computed and what it reads and writes
 *   messages.c  what one task of a cluster sends and receives
 *   schedule.c  the order
 *   sync.c      where devices meet
 *   memory.c    buffers: how long each lives, and what shares its place
 *   arena.c     offsets in the arenas
 *   planner.c   the parts in order, and the plan itself
 * units.c calls concat.c before it makes units and messages.c behind that, memory.c calls arena.c. */
#ifndef DGC_PLANNER_SCHEDULE_H
#define DGC_PLANNER_SCHEDULE_H

#include "base/grow.h"
#include "planner/lower.h"

enum { NONE = -1 };

/* Storage that one unit writes, or that holds something from the start. Views share the value they look into. */
struct planned_value {
  const struct node *node; /* whose value it is; an output node's for further results */
  enum region region;
  bool is_input, is_output;
  int device;
  int64_t bytes;
  int producer; /* unit, or NONE */
  int readers;  /* index into links, or NONE */
  int bound;    /* the variable in whose storage it is written, or NONE */
  int writer;   /* of a variable: the unit that overwrites it, or NONE */
  int unread;   /* of a variable with a writer: readers that have not run */
  int whole;    /* the concatenation in whose storage it is written, or NONE */
  int64_t base; /* and where its bytes begin there, if they lie next to each other */
  bool joined;  /* some of it is written by who makes its parts */
  int buffer;
};

/* Of which concat a node's value is a part and nothing else. */
struct concat_part {
  const struct node *concat; /* NULL: of none */
  int input;
  int64_t begin; /* elements along the axis before it */
  bool dense;    /* its bytes lie next to each other there */
  int whole;     /* of a concat: its value + 1 once there is one */
};

/* A piece of a value. */
struct ref {
  int value;
  int64_t offset;
};

struct link {
  int unit, next;
};

struct plan_unit {
  const struct node *node;
  enum step_kind kind; /* of its steps */
  int device;
  const struct launch *launches;
  int nlaunches;     /* also of a copy or leaf: 1; of an update made in place: 0 */
  struct ref *reads; /* by input of the node; value NONE: not read. A copy: its source */
  int nreads;
  const struct plan_loop *loop; /* LOOP */
  int result, nresults;         /* values result .. result + nresults */
  int variable;                 /* an update: what it writes, else NONE */
  int unmet;                    /* values read that are not there yet */
  int blocked;                  /* readers of the variables it overwrites that have not run */
  int group;                    /* ALL_REDUCE: its index in `groups`, else NONE */
  int message;                  /* of a unit that sends or receives: its number in the plan, else NONE */
  int sending;                  /* and its place among the sendings of the device that it is from */
  bool sink;                    /* nothing but variables comes of it */
  bool done;
  int begin; /* its first step among those of its device that work */
};

/* An all_reduce that devices do together: the unit of each of them. */
struct unit_group {
  const struct node *node; /* of the first */
  int *units, count;       /* room for one per operand */
  bool offered;            /* all of its units are ready */
  int number;              /* in the plan, where they are numbered as they come */
};

/* What a device knew of the others when it reached a step. */
struct snapshot {
  int step;
  const int *clock; /* by ticks of devices: how many of their steps are done */
  bool within;      /* the step itself tells, as it receives; else the waits before it */
};

struct wait {
  int step, signal;
};

/* A message that is given away behind step `after` of its device (-1: at the beginning), and is gone before step
 * `before` (the number of steps: at the end). */
struct sending {
  int unit; /* the copy that it is for */
  int message, after, before;
};

struct timeline {
  int nsteps;         /* that work */
  int *signal_after;  /* by step: signal or NONE */
  struct wait *waits; /* ascending by step */
  int nwaits, waits_cap;
  struct snapshot *snapshots;
  int nsnapshots, snapshots_cap;
  struct sending *sendings; /* in the order of their copies */
  int nsendings, sendings_cap;
  int *at; /* by step: its place in the plan, all that is not work counted */
};

struct schedule {
  const struct graph *g;
  struct arena *arena, *scratch;
  struct lowerer *lower;
  struct ref *refs; /* by node */
  struct users users;
  struct concat_part *parts; /* by node: see concat.c */
  struct planned_value *values;
  int nvalues, values_cap;
  struct plan_unit *units;
  int nunits, units_cap;
  struct link *links;
  int nlinks, links_cap;
  struct unit_group *groups;
  int ngroups, groups_cap;
  int *order; /* of units */
  int norder;
  struct timeline *lines; /* by device */
  int *ticks;             /* by device: its place in clocks; NONE: no other device ever waits for it */
  int nticks;
  int nsignals;
  struct ref *outputs; /* by output of the graph */
  struct ref **copies; /* by output, then by process: as plan_value; value NONE: none. In one process NULL */
  int process;         /* whose part alone is planned, or NONE */
  bool everywhere;     /* of such a part: every other one has copies of all variables, too */
  bool spreads;        /* outputs have copies */
  int *by_message;     /* its units that send and receive, in the order of their messages */
  struct plan *plan;
  bool inside; /* the plan is that of a loop's body */
};

/* The body of a scan as a plan of its own, whose kernels are among those of this one. */
const struct plan_loop *plan_loop(struct schedule *s, const struct node *n);

/* Whether the unit is a copy from another process: it receives a message. */
bool unit_receives(const struct schedule *s, const struct plan_unit *t);

/* Whose memory an input of a concat is. */
const struct node *concat_source(const struct node *concat, int input);
/* Finds s->parts, and s->users. */
void schedule_parts(struct schedule *s, const uint8_t *live);
/* Bytes from where the concatenation begins to where this part of it does. */
int64_t concat_part_begin(const struct concat_part *part);
void schedule_units(struct schedule *s);
/* The messages of one part, in their order. */
void schedule_messages(struct schedule *s);
/* The operand whose place the result of a leaf may take, or NONE. */
int unit_in_place(const struct plan_unit *t);
/* A copy of `from` into a fresh value of `node`'s name; the new unit's index. It reads, but is not in the order yet. */
int schedule_copy(struct schedule *s, const struct node *node, struct ref from, int device, int64_t bytes);
void schedule_read(struct schedule *s, int unit, int value);
void schedule_order(struct schedule *s);
void schedule_sync(struct schedule *s);
/* The last place of `device` at which it may not know yet that `done` steps of `other` are done, INT_MAX if it comes to
 * know it in no step. */
int sync_last_unknowing(const struct schedule *s, int device, int other, int done);
void schedule_memory(struct schedule *s);
/* Offsets of buffers in arenas (arena.c): the bytes each device needs go to plan->devices. */
void memory_offsets(struct schedule *s);

#endif
