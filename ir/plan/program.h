/* SPDX-License-Identifier: Apache-2.0 */
/* A step on any number of tasks that all do the same, each with rows of its own: what one task computes, and what it
 * has to exchange with the others. How exchanges travel is the cross-device algorithm's. Messages and bytes are those
 * that the plan of so many tasks has; time is by the rules of ir/plan/predict.h. */
#ifndef DGC_IR_PLAN_PROGRAM_H
#define DGC_IR_PLAN_PROGRAM_H

#include "ir/cross_device.h"
#include "ir/plan/predict.h"

enum exchange_kind {
  EXCHANGE_SUM,      /* of a share of each task */
  EXCHANGE_ROWS,     /* every task's rows go to those who need them */
  EXCHANGE_TO_MAIN,  /* every task's value goes to the first one */
  EXCHANGE_FROM_MAIN /* the first task's value goes to all others */
};

struct exchange {
  enum exchange_kind kind;
  const char *name;
  int64_t bytes;    /* ROWS: of one row */
  int64_t elements; /* SUM */
  bool adds;        /* SUM: it is a sum, which may be made in parts; else another reduction */
  bool all;         /* SUM, ROWS: all tasks need it, not the first alone */
  bool result;      /* SUM: as a result, which comes from where the sum is made */
};

enum task_event_kind { EVENT_COMPUTE, EVENT_GIVE, EVENT_TAKE };

struct task_event {
  enum task_event_kind kind;
  double seconds; /* COMPUTE */
  int exchange;   /* GIVE: the task's share is there; TAKE: the result is needed */
};

struct program {
  const struct exchange *exchanges; /* sums in the order in which pass collectives comes to them */
  int nexchanges;
  const struct task_event *events;
  int nevents;
};

/* So many tasks of one device each, with towers in blocks. */
struct crew {
  int tasks, towers;
  int64_t batch;   /* rows of all */
  const int *host; /* by task: the number of its host; NULL: each has one of its own */
};

/* The program of a task that is alone, from its plan: it computes. */
struct program program_alone(struct arena *a, const struct plan *p, const struct speeds *m);
/* The program of a task, from the plan of two that are processes with so many rows each, which sum by reduce_to_one,
 * and from the graph that it was made of, before pass collectives. What the second task does is what all do. */
struct program program_of_two(struct arena *a, const struct graph *placed, const struct plan *p, int64_t rows,
                              const struct speeds *m);

/* What goes through a task's link in a step. */
struct link_load {
  int64_t messages_sent, messages_received, bytes_sent, bytes_received;
};

struct forecast {
  double step, computing; /* seconds; computing: of a task, without what sums add */
  struct link_load most;  /* of any task, each number by itself */
};

/* A step of the crew. */
struct forecast program_predict(struct arena *a, const struct program *p, const struct crew *crew,
                                enum cross_device algorithm, const struct speeds *m);

/* Whether what the algorithm does for the crew can be predicted: of hosts hierarchical_copy makes something else. */
bool forecast_knows(const struct crew *crew, enum cross_device algorithm);
/* Whether auto may take the algorithm for the crew: it keeps the bits, and where there are more than a few tasks, each
 * can plan for itself. */
bool forecast_counts(const struct crew *crew, enum cross_device algorithm);
/* The fastest of those; `all`: by algorithm. */
enum cross_device forecast_best(const struct crew *crew, const struct forecast *all);

#endif
