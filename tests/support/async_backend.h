/* SPDX-License-Identifier: Apache-2.0 */
/* A backend for tests whose devices work behind the host: kind "gpu", a queue for each device, and a thread if asked
 * for. Devices without threads work while the host gives, asks or waits, as far as the seed says, in any order that
 * their queues and events allow.
 *
 * How fast a device gets on is random. Its addresses are not the host's: whoever touches them directly crashes.
 * What it computes is the interpreter's. It can also record, instead of computing, who reads and writes which
 * address, with vector clocks (Fidge and Mattern, 1988): two accesses that nothing orders are counted,
 * whichever came first. */
#ifndef TESTS_SUPPORT_ASYNC_BACKEND_H
#define TESTS_SUPPORT_ASYNC_BACKEND_H

#include "runtime/backend.h"

struct async_options {
  uint64_t seed;
  bool check; /* records accesses, computes nothing */
  bool recordable;
  bool threads; /* a thread for each device */
  int fail_at; /* this call of a run's commands fails: 1 is the first since the backend was opened; 0 = none */
  int no_memory_at; /* this request for memory likewise */
  int stuck;        /* device whose work is never done from its second mark on; -1 = none */
};

/* Of all backends opened since async_configure. */
struct async_counts {
  int allocations; /* that have not been freed */
  int asked;       /* requests for memory */
  int calls;       /* work given to devices, by commands */
  int unordered;   /* pairs of accesses */
  int recorded, replayed, forgotten;
};

extern const struct backend backend_async;

/* For the backends that are opened from now on; not while one is open. */
void async_configure(struct async_options o);
struct async_counts async_counts(void);
/* Lets a stuck device go on, and closes the backend that was opened last, which nobody has closed. */
void async_release(void);

#endif
