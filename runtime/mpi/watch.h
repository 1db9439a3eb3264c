/* SPDX-License-Identifier: Apache-2.0 */
/* Who is stuck: what a process asks when it has waited for another one as long as --timeout says.
 *
 * It asks whom it waits for, then whom that one waits for, and so on: who does not answer is stuck, and so is
 * who answers that it waits for nobody. Processes answer while they wait themselves; nothing is sent as long as
 * all goes well. */
#ifndef DGC_RUNTIME_MPI_WATCH_H
#define DGC_RUNTIME_MPI_WATCH_H

#include "runtime/mpi/transport.h"

struct target;

/* Where a process stands, by its own word. */
struct whereabouts {
  int process;    /* whose this is */
  int waits_for;  /* a process; -1: it waits for none */
  int device;     /* of that one, whose message it waits for; -1: for something else */
  int64_t step;   /* of the training, or how many batches; 0: it is at none */
  char what[160]; /* what the other has not done: "sent h.kernel.grad"; where it is, if it waits for none */
};

/* A question or an answer on its way. */
struct told {
  void *channel;
  void (*drop)(void *channel); /* of the transport that made it */
  struct told *next;
};

/* What a process remembers of that. */
struct watch {
  struct arena *arena; /* of what it has sent; NULL: nothing yet */
  struct told *told;   /* what that was */
  bool no_memory;      /* for a message */
  int limit;           /* seconds; 0: it waits for ever */
  int64_t step;
  struct whereabouts chain[8]; /* of an inquiry: itself, whom it waits for, and so on */
  int length;                  /* 0: there was no inquiry */
  int gone;                    /* 1 + a process that has ended; 0: none */
  bool parting;                /* others may end, see transport_part */
  bool silent;                 /* whom the last of them waits for has not answered */
};

/* Fills in where this process stands, for one that waits for a message of its device `device` (-1: for something else):
 * waits_for, device and what. */
typedef void whereabouts_fn(void *of, int device, struct whereabouts *out);

/* Answers those who have asked. To be called every WATCH_EVERY nanoseconds by whoever waits for another process. */
enum { WATCH_EVERY = 10000000 };
void watch_answer(const struct transport *t, whereabouts_fn *fn, void *of);
/* Asks whom `mine` waits for, and so on, and returns when it is known who is stuck. All that is done with the
 * transport from then on fails. Meanwhile others are answered. */
void watch_inquire(const struct transport *t, const struct whereabouts *mine);
/* Whether another process has ended, so that there is nothing to wait for: then all that is done with the transport
 * from then on fails, for `mine`. */
bool watch_bereft(const struct transport *t, const struct whereabouts *mine);
/* Says good-bye to all others, and forgets what was sent, which nobody may ask for any more. */
void watch_end(const struct transport *t);
/* Reports what the inquiry has found: who is stuck, with what, and who waits for it. Tasks are named as in
 * `target`; NULL: by the numbers of their processes. */
void watch_report(const struct transport *t, const struct target *target, struct diags *d);

#endif
