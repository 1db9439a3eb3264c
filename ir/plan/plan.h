/* SPDX-License-Identifier: Apache-2.0 */
/* The plan: what the runtime executes, and the only thing it runs; what a leaf's or a scan's sizes are stands in the
 * step's node.
 *
 * A flat list of steps per device, run in order, once per training step. Every value lies at a fixed offset of
 * its device's arena. Devices meet at signal/wait pairs only: a signal says that everything before it on its
 * device has been done; at the end of a plan all devices have finished before any begins the next run. Nothing
 * is decided at run time.
 *
 * A plan for processes is one text for all of them, of which each runs the steps of its own devices. Devices of two
 * processes meet in messages only: a SEND gives the bytes away and goes on, the RECEIVE of the other device goes on
 * when they are there, and what was sent may be overwritten behind SENT. */
#ifndef DGC_IR_PLAN_PLAN_H
#define DGC_IR_PLAN_PLAN_H

#include "base/diag.h"
#include "base/integer.h"
#include "base/line.h"
#include "ir/role.h"
#include "ir/scalar/split.h"

struct graph;
struct node;

/* Where a buffer lives. Variables outlive plans and are shared by all plans of a session, by name. */
enum region { REGION_ARENA, REGION_CONSTANT, REGION_VARIABLE, REGION_COUNT };

struct plan_buffer {
  const char *name; /* the value it holds first; REGION_VARIABLE: the variable, "h.kernel/replica_1" */
  int device;
  enum region region;
  int64_t offset; /* bytes from the start of the region on that device, a multiple of 64 */
  int64_t bytes;
  int first, last; /* steps of its device between which it is in use, both included; whole plan: 0, INT_MAX */
  const void *data;                  /* REGION_CONSTANT: its bytes */
  struct type type;                  /* REGION_VARIABLE: what a checkpoint stores */
  struct variable_identity identity; /* REGION_VARIABLE */
};

struct operand {
  int buffer;
  int64_t offset; /* bytes into the buffer: slices and splits are views */
};

enum step_kind {
  STEP_KERNEL,
  STEP_LEAF,
  STEP_SCAN,
  STEP_COPY,
  STEP_ALL_REDUCE,
  STEP_SIGNAL,
  STEP_WAIT,
  STEP_SEND,
  STEP_SENT,
  STEP_RECEIVE,
  STEP_MODULE
};

/* A sum that devices make together: each has one ALL_REDUCE step, which reads its own share and writes the sum of all,
 * perhaps to the same place. All devices meet their collectives in one order. */
struct collective {
  int number;         /* in the plan */
  const int *devices; /* in the order of their ranks */
  int count;          /* of devices */
  enum dtype dtype;
  int64_t elements;
};

/* Bytes that go from a device of one process to one of another: one SEND, one RECEIVE, one SENT in each run. In the
 * plan of one process they are numbered in the one order that all messages of the cluster have: see plan_verify. */
struct message {
  int number;   /* in the plan */
  int tag;      /* the same for both processes, and another for each message from one to the other */
  int from, to; /* devices */
  const struct node *node; /* the copy that it is, which its steps name, too */
  int64_t bytes;
};

enum { MAX_MODULE_DEVICES = 4096 };

/* An argument or a result of a module, as one of its devices has it. Its operands are those of the step from
 * `operand` on: one, or of a variable one for each device. `split`: the devices' values are the rows of the
 * operand, one behind the other; else all of them have the same. */
struct module_value {
  struct type type;
  int operand, count;
  bool split;
};

/* All that a graph does, for another compiler: StableHLO text with one function, @main, that each of the devices
 * runs with arguments of its own. A plan has one at most, as its only step, on the first of these devices. */
struct plan_module {
  const char *text;
  size_t length;
  const int *devices; /* in the order of their replica numbers */
  int ndevices;
  const struct module_value *arguments,
      *results; /* a result that is a variable's has the operands of its argument */
  int narguments, nresults;
  int noutputs; /* of the operands, the last ones: the results that are no variable's */
};

/* A plan that its device runs again and again, without anybody else: `body` has steps of this device only. Operands
 * of the step: those of the scan, which its node is; its results; and memory for the body's arena. The body's inputs
 * are what it finds before a step: the carried values, an element of each sequence, the constants; they lie outside of
 * its arena, as variables do, and are not written. Behind a step its outputs are where they belong: runtime/scan.c. */
struct plan_loop {
  struct plan *body;
  const int *
      inputs; /* by operand of the scan: the buffer that holds it in the body, or -1 where no step reads it */
  int64_t length;
};

struct step {
  enum step_kind kind;
  const struct node *node;     /* what it computes: LEAF: op and sizes; else for names in dumps and traces */
  const struct kernel *kernel; /* KERNEL */
  const int64_t *sizes;        /* KERNEL: kernel_nlaunch() of them */
  struct segments segments;    /* KERNEL: of a long sum, in which CPUs add it up */
  /* KERNEL: args in the kernel's order; LEAF: the node's inputs and its result, dense; LOOP: see there; COPY,
   * ALL_REDUCE: from, to; SEND: from; RECEIVE: to; MODULE: as it says */
  const struct operand *operands;
  int noperands;
  int64_t bytes;                       /* COPY, ALL_REDUCE, SEND, RECEIVE */
  const struct collective *collective; /* ALL_REDUCE */
  const struct message *message;       /* SEND, SENT, RECEIVE */
  const struct plan_module *module;    /* MODULE */
  const struct plan_loop *loop;        /* LOOP */
  int signal;                          /* SIGNAL, WAIT: 0..nsignals */
  int64_t flops, traffic;              /* floating point operations; bytes read and written */
  bool in_loop;                        /* its operands lie elsewhere in each turn of a loop, */
  uint32_t still;                      /* but for these, by bit: they are the same in all turns */
};

struct device_plan {
  struct step *steps;
  int nsteps;
  int64_t bytes[REGION_COUNT]; /* size of each region on this device; ARENA: the high-water mark */
};

struct plan_value {
  enum output_role role; /* outputs */
  const char *name;
  struct type type;
  struct operand operand;
  int64_t count; /* as struct output */
  /* Outputs of a plan for processes: by process, where its own copy is; buffer -1: it has none. Else NULL: it is
   * where it was computed. */
  const struct operand *copies;
};

struct plan {
  struct arena *arena;
  const struct graph *graph;   /* fused and scheduled; steps point into it */
  struct device_plan *devices; /* as graph->config.target */
  int ndevices;
  struct plan_buffer *buffers;
  int nbuffers;
  int nsignals;
  struct collective *collectives;
  int ncollectives;
  const int *processes; /* by device; NULL: one process runs all of them */
  int nprocesses;
  int part;  /* 0: all of it is there; else 1 + the process of which alone there are steps and buffers */
  int shown; /* 0: all of it is printed; else 1 + the process whose part alone is */
  struct message *messages;
  int nmessages;
  const struct kernel **kernels; /* distinct ones */
  int nkernels;
  /* Inputs are written before the first step of each run, whole batch; several of one name in several processes. */
  struct plan_value *inputs, *outputs;
  int ninputs, noutputs;
};

/* How many of its operands, the last ones, a step writes. */
int step_results(const struct step *s);
/* Bytes from where an operand begins to the end of what the step touches of it. */
int64_t step_extent(const struct step *s, int operand);
/* Whether an operand that a step writes may lie where `input` lies, an operand that it reads, and begins there. */
bool step_in_place(const struct step *s, int input, int output);

/* Bytes that the device of this rank sends to the next one, if the sum goes around a ring in as many chunks as there
 * are devices, once to be added and once to be known: what all send is 2 (count - 1) times the array. */
int64_t collective_bytes(const struct collective *c, int rank);
/* The rank of a device, -1 if it takes no part. */
int collective_rank_of(const struct collective *c, int device);

/* The number of an output of the graph in `outputs`, -1 if there is none. */
int plan_output(const struct plan *p, enum output_role role, const char *name);
/* Whether an operand of a step in a loop is the same in all turns. */
static inline bool step_is_still(const struct step *s, int operand) { return s->still >> operand & 1; }
/* What so many bytes take of their region: the next buffer begins behind a line of the cache. */
static inline int64_t plan_room(int64_t bytes) { return round_up(bytes, CACHE_LINE); }
/* The process that runs the device. */
static inline int plan_process(const struct plan *p, int device) {
  return p->processes ? p->processes[device] : 0;
}

/* How many steps a device has with those of the bodies of its loops, and of the loops in them. Where they are numbered,
 * those of a body stand behind all that was numbered before its loop. */
int plan_all_steps(const struct plan *p, int device);
/* "/cpu:0"; of no device: the host's. */
const char *plan_device_text(const struct plan *p, int device);
void plan_print(struct str *s, const struct plan *p);
/* What the text calls a step: "copy"; of a leaf, its op. */
const char *step_word(const struct step *s);
/* Every read has been written before it on the same device or behind a wait; no two live buffers overlap; each
 * wait has its one signal; the devices' meetings cannot deadlock; operands lie inside their buffers. A collective
 * tells a device nothing of what others have done. A message has its one SEND, RECEIVE and SENT, all of one copy; what
 * is being sent is not written; processes share nothing else, and each has its own copies of outputs.
 *
 * The part of one process is checked alone. Messages of the cluster have one order, and each process comes to its
 * receives in that order, having sent all that is smaller, and waits for a message to be gone when it has done all up
 * to it: then, whatever the others do by the same rule, the process that waits for the smallest message is not kept
 * waiting by anybody, and so none waits for ever. */
bool plan_verify(const struct plan *p, struct diags *d);

#endif
