/* SPDX-License-Identifier: Apache-2.0 */
/* How the processes of a cluster reach each other: an MPI library behind a struct of functions. dgc needs none to be
 * built or to run: mpi.c, the only file that sees MPI, is a library of its own, which is loaded where a launcher has
 * started several processes. */
#ifndef DGC_RUNTIME_MPI_TRANSPORT_H
#define DGC_RUNTIME_MPI_TRANSPORT_H

#include "base/diag.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct target;
struct watch; /* runtime/mpi/watch.h */

/* What a process has done with its time, in nanoseconds, since it was set to 0. */
struct tally {
  uint64_t computing; /* in runs, but for what it waited */
  uint64_t *waiting;  /* by process that it waited for; itself: one of its devices for another */
  int64_t sent;       /* bytes, in messages of plans */
};

/* Whether so many bytes may be one message: MPI's counts are int, of bytes, or of numbers of eight. */
static inline bool transport_carries(size_t bytes) {
  return bytes <= INT_MAX || (bytes % sizeof(uint64_t) == 0 && bytes / sizeof(uint64_t) <= INT_MAX);
}

/* Calls come from one thread at a time. A process that cannot reach another ends, and MPI's launcher ends all. */
struct transport {
  int rank, size;
  int evaluators;      /* processes that the launcher has started beside these, which take no part */
  const char *library; /* "Open MPI 4.1.4" */
  /* Bytes that go from the same place to the same place again and again. Those that are sent between two processes
   * under one tag arrive in their order. NULL: there is no memory, or so many bytes are not
   * carried. It is dropped when it is not under way, or, if it sends, right before `stop`. */
  void *(*sender)(const struct transport *t, const void *data, size_t bytes, int to, int tag);
  void *(*receiver)(const struct transport *t, void *data, size_t bytes, int from, int tag);
  void (*drop)(void *channel);
  /* Begins to move the bytes, and whether that is done: asked until it is true. A receiver has them then; what a
   * sender has sent may be overwritten. */
  void (*start)(void *channel);
  bool (*done)(void *channel);
  /* Takes bytes that any process has sent under this tag, which all have sent so many; false: there are none. */
  bool (*take)(const struct transport *t, void *data, size_t bytes, int tag);
  /* Where a process runs: "node7". */
  const char *(*host)(const struct transport *t, int process);
  /* A process that has ended, and whose launcher knows it, so that what follows is not taken for the cause; -1:
   * none, as far as can be known. NULL: that is never known. */
  int (*ended)(const struct transport *t);
  /* Nanoseconds that have passed; NULL: those of base/clock.h. */
  uint64_t (*now)(const struct transport *t);
  /* Tells the evaluators a number; for one of them: whether it was told one. */
  void (*tell_evaluator)(int64_t number);
  bool (*told_evaluator)(int64_t *number);
  struct watch *watch;
  struct tally *tally;
  /* Says good-bye to all others, which have to say it too. */
  void (*stop)(void);
};

/* What mpi.c exports as "dgc_transport": fills in `out`; NULL, or why it cannot. Processes are numbered by their
 * `task`, where that is not -1; TASK_EVALUATOR: this one takes no part, and reaches the others by tell_evaluator. */
enum { TASK_EVALUATOR = INT32_MAX };
typedef const char *transport_start(struct transport *out, size_t bytes, int task);

/* How many processes a launcher (mpirun, mpiexec, srun) has started, by what it says in the environment; 1:
 * none. Which of them this one is goes to *rank. */
int transport_launched(int *rank);
/* Whether there is a library for transport_open to load: its name, or in *why, in `a`, what could not be loaded. MPI
 * itself is not started. */
bool transport_there(struct arena *a, const char **name, const char **why);
/* The transport of this process, started by the first call. NULL after an error in `d`: there is no MPI library, or
 * another one than the launcher's, or two processes are the same task. It ends with the process.
 * `task` is as in transport_start, `limit` as in transport_limit. */
const struct transport *transport_open(int task, int limit, struct diags *d);
/* This process fails, so others need not be waited for when it ends. */
void transport_fail(void);
bool transport_has_failed(void);
/* All fail, and have agreed on it: the next failure is that one, and who ends first waits for the others' last words,
 * which a launcher would cut short. */
void transport_fail_together(void);

uint64_t transport_now(const struct transport *t);
/* After so many seconds without an answer, another process is given up; 0: never. */
void transport_limit(const struct transport *t, int seconds);
/* The step that comes next, for what is said of this process. */
void transport_step(const struct transport *t, int64_t step);
/* Whether another process was given up. All of the calls below are false from then on; transport_report says who
 * it was, with the names that tasks have in `target` (NULL: their numbers). */
bool transport_failed(const struct transport *t);
void transport_report(const struct transport *t, const struct target *target, struct diags *d);

/* Tags below this one are for what is sent at once, those from it on for the messages of plans. */
enum { TAG_VARIABLE, TAG_TEXT, TAG_STOP, TAG_ASK, TAG_ANSWER, TAG_EVALUATOR, TAG_UNORDERED, TAG_MESSAGES };

/* They return when it is done. */
bool transport_send(const struct transport *t, const void *data, size_t bytes, int to, int tag);
bool transport_receive(const struct transport *t, void *data, size_t bytes, int from, int tag);
/* Waits until a channel that has been started is done; `peer`: the process at its other end, `what` it has not done
 * until then, for messages: "taken a variable". */
bool transport_wait(const struct transport *t, void *channel, int peer, const char *what);
/* One pause of who asks several channels in turn, and found none done since `p` was all 0: it is as if it waited for
 * `peer`. */
struct pause {
  uint64_t begin, looked, answered;
  int asked;
  bool naps; /* soon */
};
bool transport_pause(const struct transport *t, struct pause *p, int peer, const char *what);
/* Flags that any of the processes has set go to *flags, which are this one's: all of them ask, and are told the
 * same. */
bool transport_any(const struct transport *t, unsigned char *flags);
/* All come here before any of them ends, as one that a signal has stopped does at once: when it returns, all have come,
 * and those that have ended by then are missed by none. False after a failure. */
bool transport_part(const struct transport *t);
/* Each process's text in its place, in `a`; on the first one only, NULL elsewhere. */
bool transport_collect(const struct transport *t, struct arena *a, const char *text, const char ***all);
/* *text becomes the first process's, in `a`. */
bool transport_tell(const struct transport *t, struct arena *a, const char **text);

#endif
