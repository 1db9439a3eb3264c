/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous training without an order that is fixed: who may begin a step, in which order steps are applied, and
 * when all come together.
 *
 * One of the parameter servers, the coordinator, decides all of it. There are four kinds of messages, each on a channel
 * of its own between two processes, which keeps their order; each carries the number of the stretch that it belongs to:
 *
 *   ask    worker -> coordinator   it has ended its step (or is in none) and would begin another one
 *   order  coordinator -> worker   BEGIN a step, or MEET: the stretch has ended
 *   order  coordinator -> server   BEGIN: a worker begins a step, send it the variables; APPLY what it has sent; MEET
 *   ack    server -> coordinator   it has done that
 *
 * A worker asks, waits for its order, does the step, and asks again. The coordinator gives each server the same
 * orders in the same sequence, and does them itself in that sequence: APPLY when a worker has asked after a step,
 * BEGIN when it lets a worker begin one. When enough steps have begun, or somebody wants to stop, it lets none begin
 * any more, and when all workers have asked it gives MEET to everybody. At MEET no step is under way and each has
 * been applied once; then all do together what they like, by other messages, and begin the next stretch.
 *
 * Nobody waits for ever. (1) The coordinator waits for a worker only where that one is in a step or on its way to ask.
 * (2) A worker in a step waits for variables, which every server sends without waiting for anybody (mailbox.h) as soon
 * as it comes to the BEGIN, for what it sends to be taken, and for what it asks to be answered, both of which
 * servers do wherever they wait. (3) A server waits for its next order, or, at APPLY, for what the worker has sent
 * wholly before it asked, or for messages of other servers in the same APPLY: all servers do the orders in one
 * sequence, so of those that wait the one at the earliest order waits for nobody who is not there. (4) The
 * coordinator gives a server an order when it has acknowledged the last one, which by (3) it does. And a server
 * cannot hear of a step before it has heard of the meeting that came first: it hears of both from the coordinator
 * alone, on one channel. */
#ifndef DGC_RUNTIME_MPI_UNORDERED_H
#define DGC_RUNTIME_MPI_UNORDERED_H

#include "runtime/mpi/transport.h"

/* What a stretch has come to. */
struct unordered_sum {
  int64_t begun, applied; /* steps of all workers */
  double loss, weight;    /* sums over those that were applied */
  unsigned
      wants; /* what anybody has wanted that ended it, in bits of the caller's; 0: it was done to its end */
  /* Of the first report that was odd: its step, and the `odd` and `odd_value` that it gave; odd is 0 where none was. */
  int64_t odd_step;
  int odd;
  double odd_value;
};

/* What a worker says of a step. */
struct unordered_report {
  double loss, weight;
  unsigned wants;
  int odd; /* not 0: something is wrong with the step, by a number of the caller's, and it has this value */
  double odd_value;
};

/* What processes do. Steps of a stretch are numbered from 0 on, and begin in that order. Where one is false, the
 * process fails. */
struct unordered_acts {
  /* The worker's step; `sum`: what the coordinator knew when it began. */
  bool (*step)(void *user, int64_t step, const struct unordered_sum *sum, struct unordered_report *out);
  /* A server: the worker of this number begins the step; it may not wait for anybody. */
  bool (*begin)(void *user, int worker, int64_t step);
  /* A server: the worker has ended the step. */
  bool (*apply)(void *user, int worker, int64_t step);
  /* A server: takes what has come of workers' steps, and answers it; it may not wait for anybody. */
  bool (*poll)(void *user);
  /* What this process wants now; not 0 ends the stretch as soon as the coordinator hears of it. */
  unsigned (*wants)(void *user);
};

/* The processes that work and those that serve, by their numbers: servers[0] is the coordinator. */
struct unordered_roles {
  const int *workers, *servers;
  int nworkers, nservers;
};

struct unordered;

/* `bound`: while a worker is in a step, each other one begins that many steps at most; 0: workers take turns. In
 * `a`. NULL after a failure of the transport. All processes come here, and to what follows. */
struct unordered *unordered_create(struct arena *a, const struct transport *t,
                                   const struct unordered_roles *roles, int64_t bound,
                                   const struct unordered_acts *acts, void *user);
/* Between two stretches, or after a failure of the transport. NULL is allowed. */
void unordered_destroy(struct unordered *f);
/* So many steps, or less if somebody wants something else. *sum is the same in all processes. False where an act
 * was, or after a failure of the transport. */
bool unordered_stretch(struct unordered *f, int64_t steps, struct unordered_sum *sum);

#endif
