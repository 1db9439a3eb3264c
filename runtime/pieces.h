/* SPDX-License-Identifier: Apache-2.0 */
/* One command done by several threads.
 *
 * A command whose step has much to do is cut into pieces when it is loaded. Each writes elements of its own, so any
 * thread may do any of them, in any order. How a step is cut follows from its shape alone: from its extents, and from
 * what an element costs by a fixed estimate, never from the number of threads or from a clock. So a piece that a
 * library computes is the same call for one thread and for many, and so are its bits. (A generated kernel has the bits
 * of each element whatever it is cut into.) The plan knows nothing of it: a step is one step in lists, profiles and
 * traces, and in the order of its device.
 *
 * A device has a board. The thread that carries the device puts a command there, takes pieces from the front and, when
 * none is left, waits for those that others do. Threads that have nothing to carry, or whose devices wait, look at all
 * boards and take pieces from the back: with two threads each has the same half of one command after the other in its
 * caches. Who comes takes several that lie side by side, fewer as fewer are left (guided self-scheduling:
 * Polychronopoulos and Kuck, 1987), and one thread alone takes all: what pieces have in common can be done once for
 * them. A command may have stages, each of which begins when the one before is done. Nobody else is told, and no lock
 * is taken.
 *
 * What costs less than PIECE_COST is one piece, and stays with the thread that carries the device. A run in which all
 * that can be shared costs less than SHARED_COST wakes no other thread. (DGC_PIECE_COST=N puts N in the place of the
 * first, and 0 in that of the second: for tests, which are small.) */
#ifndef DGC_RUNTIME_PIECES_H
#define DGC_RUNTIME_PIECES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Costs are in nanoseconds of some processor. */
enum { MAX_STAGES = 3, MOST_PIECES = 64, PIECE_COST = 2000, SHARED_COST = 100000 };

/* Does pieces [first, end) of a stage, perhaps as one; operands as in call_fn. */
typedef void piece_fn(void *const *args, const void *state, int stage, int first, int end);

struct pieces {
  piece_fn *run;
  const void *state;
  int nstages;
  int count[MAX_STAGES]; /* 1..MOST_PIECES each */
  int64_t cost;          /* of all */
  /* NULL, or what is done in a loop before its first turn, where those operands are known that are the same in all
   * turns (step.still); on one thread. */
  void (*enter)(void *const *args, const void *state);
  const char *library; /* that computes it, "oneDNN"; NULL: code of our own does */
};

/* A command that is shared, and its place in the list of those of its device. */
struct shared {
  const struct pieces *pieces;
  void *const *args;
  struct board *board;
  int number;
};

struct board {
  /* The number of a command and of its stage, above how many pieces have been taken from the front and from the back.
   * What it says there is to take can be taken: the command cannot end before that is done. */
  _Alignas(64) _Atomic uint64_t open;
  _Alignas(64) _Atomic int done;
  const struct shared *const *all; /* by number */
  _Atomic bool *failed;            /* set when a piece has found no memory */
  const struct workers *workers;
  bool alone;              /* nobody helps */
  bool timed;              /* the clock is looked at: what the next two say is added to */
  _Atomic uint64_t helped; /* nanoseconds that other threads have been at pieces */
  uint64_t waited;         /* nanoseconds that the carrier has waited for them */
};

/* Nanoseconds: by the clock, and of all threads that were at it, without waiting. */
struct step_time {
  uint64_t clock, threads;
};
/* On the thread that carries the device, of a board that is timed: what commands take is how this changes. */
struct step_time board_time(const struct board *b);
static inline void step_time_add(struct step_time *sum, struct step_time since, struct step_time until) {
  sum->clock += until.clock - since.clock, sum->threads += until.threads - since.threads;
}

/* Does the command on the thread that carries its device: a call_fn, the state being a struct shared. */
void shared_run(void *const *args, const void *state);
/* The same, without others. */
void shared_run_alone(void *const *args, const void *state);
/* Takes pieces, if there are any on the board, and does them. On any thread of the run. */
bool board_help(struct board *b);

/* Into how many pieces to cut what costs so much and has so many units that cannot be cut. */
int pieces_for(int64_t cost, int64_t units);
/* Whether to wake other threads for what costs so much in a run. */
bool pieces_pay(int64_t cost);
/* The first unit of a piece; that of piece `count` is the end. */
static inline int64_t piece_begin(int64_t units, int count, int piece) { return units * piece / count; }

#endif
