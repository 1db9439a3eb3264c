/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of a cluster as threads of a test: what joins them is a transport of mailboxes, which may do to messages
 * whatever MPI allows. */
#ifndef TESTS_SUPPORT_PROCESSES_H
#define TESTS_SUPPORT_PROCESSES_H

#include "runtime/mpi/transport.h"

#include <stdint.h>

/* What becomes of the bytes that are sent. Those from one process to another under one tag arrive in their order. */
enum delivery {
  DELIVER_AT_ONCE, /* they are taken when they are sent, and are there: in the place that is posted for them */
  DELIVER_RENDEZVOUS, /* a sender is done when they have been received */
  DELIVER_LAZY, /* they are taken from the sender's memory when it asks whether that is done, or is received */
  DELIVER_ANY,  /* one of these by chance for each, and they are late, in any order, and processes pause */
  DELIVERIES
};

/* What is wrong with a process. With it the transport has a clock of its own, by which nobody is late because a
 * machine is busy: it goes on, by 50 ms, only when all processes that are well have found that they have nothing
 * to do, and by `pace` when a process sends a message of a plan, which it has computed that long; who receives
 * one is as late as who sent it. */
struct trouble {
  int stuck; /* the process; -1: none is. When it has sent so many messages of plans, it does nothing any more */
  int after;
  bool dead;            /* others can see that it has ended */
  const uint64_t *pace; /* by process, nanoseconds; NULL: 0 */
};

/* One process, on a thread of its own. */
typedef void process_fn(void *arg, const struct transport *t);

/* Runs all of them and returns when all have ended. What they did that a transport forbids, in `a`: messages of other
 * sizes than are received, channels used while they are under way, bytes that nobody has received; NULL: nothing. If
 * for some minutes nothing is sent or received though somebody waits, the program ends: they wait for each other. */
const char *processes_run(struct arena *a, int count, enum delivery delivery, uint64_t seed, process_fn *fn,
                          void *arg);
/* The same with trouble, and messages that are there at once. */
void processes_run_in_trouble(struct arena *a, int count, const struct trouble *trouble, process_fn *fn,
                              void *arg);

#endif
