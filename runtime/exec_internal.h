/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the executor share. */
#ifndef DGC_RUNTIME_EXEC_INTERNAL_H
#define DGC_RUNTIME_EXEC_INTERNAL_H

#include "runtime/backend.h"
#include "runtime/store.h"
#include "runtime/workers.h"

#include <stdalign.h>

/* On a line of its own, so that devices that meet do not disturb others. */
struct signal {
  alignas(64) _Atomic uint64_t run;
};

/* A device on its worker. */
struct lane {
  const struct command *commands; /* the last one is COMMAND_END */
  const struct command *next;     /* in the present run */
  int device;
  struct step_time worked; /* in a timed run: inside of kernels, library calls and copies */
  struct step_time *took;  /* in a timed run that asks for it: by step, struct exec_times */
  const char **libraries;  /* by step likewise: struct pieces */
  const struct command
      *traced_wait; /* of a run that is looked at: where it waits, or waited last; NULL: nowhere */
  uint64_t traced_since;
  struct board *board; /* where it puts what it shares */
  _Atomic(const struct command *)
      long_wait; /* where it has waited for long; NULL: it goes on, as far as is known */
};

/* A point of a queue, or the end of a device whose work runs behind the host. */
struct point {
  const struct opened *on;
  int device, after; /* step; -1: the beginning */
  struct command mark;
  void *event;
};

/* What the body of a loop has of constants on a device whose memory is not the host's. */
struct loop_constants {
  struct loop_constants *next;
  int device;
  void *data;
  size_t bytes;
};

struct exec {
  struct arena *arena;
  const struct plan *plan;
  const struct engines *engines;
  struct store *store;
  struct workers *workers;
  uint64_t caller;     /* the thread that was worker 0 when the backends were told of their threads */
  unsigned generation; /* of the store's arenas when pointers were computed */
  void **constants;    /* per device */
  struct loop_constants *loop_constants;
  void **buffers;     /* where each buffer of the plan begins */
  struct lane *lanes; /* one per device of this process, grouped by worker */
  int *first_lane;    /* of each worker; one more entry for the end */
  struct signal *signals;
  const struct transport *transport; /* to other processes; NULL: there are none */
  struct outlet *outlets;            /* by message of the plan */
  _Atomic bool talking;              /* a worker is calling it */
  uint64_t *waited;          /* by worker, then by process: in this run; without other processes NULL */
  int64_t sent;              /* bytes that a run sends to other processes */
  _Atomic uint64_t answered; /* when other processes were last answered */
  int nlanes;                /* devices of this process */
  int64_t cost;              /* of what devices share */
  bool shares;               /* threads that have nothing to carry take pieces of others' commands */
  int carriers,
      helpers; /* workers up to the last that carries devices; of the others, those that find work */
  _Atomic int unfinished; /* devices that have not come to their end in this run */
  struct point *arrivals; /* [collective * devices + device]: where all is done that comes before its part */
  uint64_t run;
  _Atomic bool failed;
  int observers;            /* which of the next two are asked for: runs are looked at if any is */
  struct exec_trace *trace; /* in a traced run */
  struct exec_times *times; /* in a timed run */

  /* The watch over runs. */
  double limit;               /* seconds; 0 = none */
  uint64_t deadline;          /* of the present run; 0 = none */
  uint64_t clock_read;        /* when the clock was looked at last */
  _Atomic bool reading_clock; /* a worker is doing so */
  _Atomic bool overdue;       /* the deadline has passed */
  bool asked;                 /* all devices have been given all of the work of the run, and its end */
  struct point *ends;         /* of devices whose work runs behind the host */
  int nends;

  /* Where devices work behind the host. */
  const struct queues *queues;
  struct point *points; /* as in queues */
  /* Backends whose work runs behind the host. */
  const struct opened **async;
  int nasync;
  bool mixed;        /* devices of another backend have work as well */
  bool host_values;  /* values lie in memory of the host as well: a run ends when all devices are done */
  unsigned runs;     /* since pointers were computed */
  bool unrecordable; /* the backend cannot keep a recording of this plan, or is not to: it has collectives */
  void *recording;   /* of a whole run */
};

/* Computes where every buffer is, then what every command works on. False after an error in `d`. */
bool exec_bind(struct exec *e, struct diags *d);
/* Where the devices of each collective meet: what their backend has for it, by collective, NULL where none of them is
 * here. Fills in e->arrivals, too. False after an error in `d`. */
bool exec_load_rendezvous(struct exec *e, void ***out, struct diags *d);
void exec_make_outlets(struct exec *e);
/* The command that posts what this RECEIVE waits for. */
void exec_load_post(struct exec *e, const struct step *s, struct command *c);
/* SEND, SENT and RECEIVE as commands, of which one has operands. False after an error in `d`. */
enum { MESSAGE_COMMANDS = 4 }; /* at most */
bool exec_load_message(struct exec *e, int device, int step, struct command **next, struct diags *d);
/* Where the bytes of a SEND or RECEIVE lie now; `args` are those of its command. False after an error in `d`. */
bool exec_bind_message(struct exec *e, const struct step *s, void **args, struct diags *d);
void exec_drop_messages(struct exec *e);
/* Sets the run's deadline. */
void exec_watch(struct exec *e);
/* Where a wait takes long: true when the run is to be given up. */
bool exec_give_up(struct exec *e);
/* Waits until the devices behind the host are done, or the deadline has passed. */
bool exec_await_ends(struct exec *e);
/* Of a traced run: adds what the device has done at this command, and what it has waited for before. */
void exec_trace_command(struct exec *e, struct lane *lane, const struct command *c, uint64_t begin,
                        bool works);
/* It stands there. */
void exec_trace_stand(struct lane *lane, const struct command *c);
/* Who the device waits for at this command: a process, perhaps this one. */
int exec_awaited(const struct exec *e, int device, const struct command *c);
/* Adds a run that took so long to what the process has done with its time. */
void exec_tally(struct exec *e, uint64_t time);
/* Answers other processes, false if one of them has ended; and asks them, when the deadline has passed. */
bool exec_answer(struct exec *e);
void exec_inquire(struct exec *e);
/* The device that gives a signal, -1 if none does, and the step at which it does. */
int exec_giver(const struct exec *e, int signal, int *step);
/* Reports who waits for whom. */
void exec_explain_overdue(const struct exec *e, struct diags *d);
/* A number that no other thread has or had: the system's own may come back when a thread has ended. */
uint64_t exec_thread(void);

static inline void *operand_address(const struct exec *e, const struct operand *o) {
  return (char *)e->buffers[o->buffer] + o->offset;
}

#endif
