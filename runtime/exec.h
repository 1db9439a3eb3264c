/* The executor: a plan with every pointer computed, run step by step.
 *
 * Each device has one flat list of commands. A worker runs the list of one of its devices until a wait is not
 * satisfied, then goes on with its next device, and spins only when none can go on; so more devices than
 * threads neither starve nor deadlock. A run allocates nothing, takes no lock and makes no system call. What
 * is computed does not depend on the number of workers: commands of a device run in order, and devices meet at
 * signals only. */
#ifndef DGC_RUNTIME_EXEC_H
#define DGC_RUNTIME_EXEC_H

#include "runtime/buffer.h"
#include "runtime/workers.h"

struct exec;

/* Compiles the plan's kernels and binds its buffers: arenas and variables of `store`, constants of its own.
 * All four must outlive it. NULL after an error in `d`. */
struct exec *exec_load(const struct plan *p, const struct backend *backend, void *self, struct store *store,
                       struct workers *workers, struct diags *d);
/* NULL is allowed. */
void exec_unload(struct exec *e);

/* Inputs are written before each run, outputs read after it and before any other run of the session. */
void exec_write(struct exec *e, int input, const void *data);
void exec_read(const struct exec *e, int output, void *data);
/* One step of training, evaluation or prediction. False when the interpreter ran out of host memory: variables
 * may then hold anything. */
bool exec_run(struct exec *e);

/* What a timed run measured, in nanoseconds. */
struct exec_times {
  uint64_t wall;
  uint64_t *busy; /* per device: inside of kernels, library calls and copies */
};
bool exec_run_timed(struct exec *e, struct exec_times *t);

/* Bytes of the arena of a device up to the last one that a command, an input or an output touches, from the addresses
 * and sizes of the commands: the check on what the memory plan printed. A multiple of 64. */
int64_t exec_high_water(const struct exec *e, int device);
/* Commands over all devices, and how many of them are signals. */
int exec_commands(const struct exec *e, int *signals);

#endif
