/* SPDX-License-Identifier: Apache-2.0 */
/* The executor: a plan with every pointer computed, run step by step.
 *
 * Each device has one flat list of commands. A worker runs the list of one of its devices until a wait is not
 * satisfied, then goes on with its next device, and spins only when none can go on; so more devices than
 * threads neither starve nor deadlock. A run allocates nothing, takes no lock and makes no system call. What
 * is computed does not depend on the number of workers: commands of a device run in order, and devices meet at
 * signals only. */
#ifndef DGC_RUNTIME_EXEC_H
#define DGC_RUNTIME_EXEC_H

#include "runtime/backend.h"
#include "runtime/store.h"
#include "runtime/workers.h"

struct exec;

/* Compiles the plan's kernels and binds its buffers: arenas and variables of `store`, constants of its own.
 * Devices of the plan are those of the engines' target with the same numbers. All four must outlive it. NULL
 * after an error in `d`. */
struct exec *exec_load(const struct plan *p, const struct engines *engines, struct store *store,
                       struct workers *workers, struct diags *d);
/* NULL is allowed. */
void exec_unload(struct exec *e);

/* Where tasks are processes, each is given all inputs and keeps what it reads, and has its own copy of losses and
 * metrics. Of other outputs the first one has the values, and the one that computes them; the rest read zeros.
 * Inputs are written before each run, outputs read after it and before any other run of the session. False when
 * a device has failed, see exec_status. */
bool exec_write(struct exec *e, int input, const void *data);
/* Only these rows of the input, which lie in `data` where they lie in the input. */
bool exec_write_rows(struct exec *e, int input, const void *data, int64_t first, int64_t end);
bool exec_read(const struct exec *e, int output, void *data);
/* The same in two parts, for an output of DEFERRED_BYTES at most: it will be as it is now, but other runs may begin
 * before it is asked for. If many are on their way already, it is read at once. */
struct deferred_read {
  const struct opened *on; /* NULL: it is here */
  int device;
  unsigned number;
  size_t bytes;
  char value[DEFERRED_BYTES];
};
bool exec_read_begin(struct exec *e, int output, struct deferred_read *r);
bool exec_read_end(struct exec *e, const struct deferred_read *r, void *data);
/* One step of training, evaluation or prediction. It may go on behind the host when this returns; whatever asks
 * for its results waits for them. False when a device failed, in this run or an earlier one, or the interpreter
 * ran out of host memory: variables may then hold anything. */
bool exec_run(struct exec *e);
/* Reports in `d` why one of the above was false. */
void exec_status(const struct exec *e, struct diags *d);

/* What a timed run measured, in nanoseconds. */
struct exec_times {
  uint64_t wall;
  uint64_t *busy;  /* per device: inside of kernels, library calls and copies, or as its backend says */
  uint64_t worked; /* by all threads inside of these, those that help a device included, and no waiting */
  /* By device and step of its plan, those in loops too (plan_all_steps): what such a step took is added. NULL: it is
   * not asked for. Nothing is known of the steps of devices that work behind the host, nor of those of other
   * processes. */
  struct step_time **steps;
};
bool exec_run_timed(struct exec *e, struct exec_times *t);
/* The library that computes a step, numbered as there, of a device of this process; NULL: code of our own does, or what
 * the step's op says. */
const char *exec_library(const struct exec *e, int device, int step);

/* What a device did, or waited for where `waits` holds, between two times of clock_ns: a step of its plan. */
struct exec_event {
  uint64_t begin, end;
  int device, step;
  bool waits;
};
/* Of a run, by device of this process, in the order of its steps. */
struct exec_trace {
  struct exec_event **events;
  int *counts;
  int rows;
};
/* Room in `a` for what a run of `e` does. Of devices that work behind the host, it is the calls that ask them to. */
struct exec_trace *exec_trace_make(struct arena *a, const struct exec *e);
/* From here on runs fill it in; NULL: no longer. */
void exec_trace(struct exec *e, struct exec_trace *t);

/* A run that does not end within `seconds` is given up: it is false, and exec_status says which device has not
 * answered. 0 = none, as before the first call. False after an error in `d`. */
bool exec_set_limit(struct exec *e, double seconds, struct diags *d);

/* Bytes of the arena of a device up to the last one that a command, an input or an output touches, from the
 * addresses and sizes of the commands: the check on what the memory plan printed. A multiple of 64. */
int64_t exec_high_water(const struct exec *e, int device);
/* Commands over all devices, and how many of them are signals. */
int exec_commands(const struct exec *e, int *signals);

#endif
