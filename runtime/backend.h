/* SPDX-License-Identifier: Apache-2.0 */
/* A backend: one struct of hooks that turns the steps of a plan into commands and owns the memory they touch.
 *
 * `self` is what open returned; devices are numbered as in the whole target. Hooks are called by one thread at
 * a time, never inside of a run, unless they say otherwise. Commands run on worker 0 for devices of a backend
 * whose memory is not the host's, and on any worker for those of the host: a copy to a host device is one.
 * Hooks marked (optional) may be NULL.
 *
 * Work may run behind the host (`host` false): a call gives it to the device, in the device's order, and
 * returns. A call that fails keeps the failure for `status` (the first one wins), and all later calls do
 * nothing: a run is never left in the middle, and no device waits for ever. */
#ifndef DGC_RUNTIME_BACKEND_H
#define DGC_RUNTIME_BACKEND_H

#include "ir/plan/plan.h"
#include "ir/plan/queues.h"
#include "ir/target.h"
#include "runtime/pieces.h"

#include <stdatomic.h>

/* What is read later: bytes of each, at most, and how many of a device may be on their way, whoever reads them; the
 * number of one that cannot be. */
enum { DEFERRED_BYTES = 8, DEFERRED_READS = 64, DEFERRED_NONE = DEFERRED_READS };

/* A library call, an interpreted kernel, or work given to a device: the operands in the plan's order, and what
 * the backend stored. Operands may be elsewhere in a later run: their addresses are to be read in each call. */
typedef void call_fn(void *const *args, const void *state);

enum command_kind {
  COMMAND_KERNEL,
  COMMAND_CALL,
  COMMAND_PIECES, /* by prepare alone: the executor makes a CALL of it */
  COMMAND_COPY,
  COMMAND_SIGNAL,
  COMMAND_WAIT,
  COMMAND_POLL,
  COMMAND_END
};

/* A step with everything resolved: the executor does no more than call it. */
struct command {
  enum command_kind kind;
  uint32_t step; /* its number in the device's plan */
  union {
    kernel_fn *kernel;            /* KERNEL */
    call_fn *call;                /* CALL */
    _Atomic uint64_t *signal;     /* SIGNAL, WAIT: the number of the last run that gave it */
    bool (*reached)(void *event); /* POLL: goes on when it says true */
  };
  void *const *args; /* COPY: from, to; NULL: it does not work on the step's operands */
  union {
    const int64_t *sizes;        /* KERNEL */
    const void *state;           /* CALL */
    const struct pieces *pieces; /* PIECES */
    size_t bytes;                /* COPY */
    void *event;                 /* POLL */
  };
};

/* Which ranks of a collective are devices of this process, and how the processes that have any tell each other
 * what the one of rank 0 knows: on that `data` is read, on the others it is filled in; false after a failure. All
 * of them call it in the same order. */
struct company {
  const bool *here; /* by rank */
  bool (*tell)(void *user, void *data, size_t bytes);
  void *user;
};

/* A device that there is, for lists. */
struct device_info {
  int index;
  const char *name; /* "NVIDIA H100 80GB HBM3" */
  const char *arch; /* "sm_90" */
  int64_t memory;   /* bytes */
  bool simulated;
};

/* What the compiler of a module says that it needs. */
struct module_memory {
  int64_t arguments, results, shared; /* results that lie where arguments were */
  int64_t temporary, code;
};

struct backend {
  const char *name;
  const char *help;
  const char *kind;  /* of the devices it runs: "cpu", "gpu", "pjrt" or "tpu" */
  bool runs_modules; /* it runs plans whose only step is a module, and no others */
  /* Its memory is the host's, and a call has done its work when it returns: the executor itself copies (COPY)
   * and fills there. None of the hooks about meeting points and runs is needed then. */
  bool host;
  /* What its devices copy from each other is done beside their other work, in QUEUE_COPIES; without it, a device has
   * QUEUE_WORK only. */
  bool copy_queue;
  /* Starts it for the devices of its kind in the target; others are in it for their numbers only. NULL after an
   * error in `d`: also when one of them is not there. */
  void *(*open)(const struct target *target, struct diags *d);
  void (*close)(void *self);
  /* Memory of one device, aligned to 64 bytes, undefined. NULL if there is not enough. Size 0 is allowed. It is
   * freed when the work that was given to the device is done. */
  void *(*alloc)(void *self, int device, size_t bytes);
  void (*free)(void *self, int device, void *data, size_t bytes);
  /* (optional) Bytes of the device's memory that are free, and all of them: for messages. */
  bool (*free_memory)(void *self, int device, size_t *available, size_t *total);
  /* (optional) Whether f32 products may round their factors to TF32, which is not so at first. Before any plan
   * is loaded. */
  void (*allow_tf32)(void *self, bool allow);
  /* (optional) Whether all it computes is to have the interpreter's bits from now on, which is not so at first. Before
   * any plan is loaded. Without it, it cannot. */
  void (*portable_bits)(void *self, bool wanted);
  /* (optional) The name of the units for it in which products of bfloat16 values are computed, in an order of their
   * own; NULL: as those of f32. */
  const char *(*bf16_units)(void *self);
  /* (optional) Whoever waits outside of runs for a device that does not answer for so many seconds (0: never) gives it
   * up: that is a failure, and *lost is set; see engines_lose. */
  void (*limit)(void *self, int seconds, _Atomic bool *lost);
  /* Between devices of this backend, or one of them and the host: -1, which other backends' devices count as.
   * Runs and copies are done in their order, see begin. What goes to the host is there on return; memory of
   * the host that is read may be used again on return, although its bytes may reach the device later. False:
   * see status. */
  bool (*copy)(void *self, void *to, int to_device, const void *from, int from_device, size_t bytes);
  /* (optional, both or none) Memory of the host, aligned to 64 bytes, undefined, from which copies to the devices are
   * faster: it is read where it lies, so what copy was given of it must stay as it is until the next run has ended.
   * pinned_free waits until it has been read; what was not given back close frees. NULL if there is none to be had. */
  void *(*pinned_alloc)(void *self, size_t bytes);
  void (*pinned_free)(void *self, void *data);
  /* (optional) A copy to the host in two parts, so that the host need not wait for it: read_begin is its place among
   * the runs and copies, and read_end gives the bytes, once they have come, for the number that read_begin gave. That
   * is DEFERRED_NONE, and nothing is on its way, while DEFERRED_READS have not ended. */
  bool (*read_begin)(void *self, int device, const void *from, size_t bytes, unsigned *number);
  bool (*read_end)(void *self, int device, unsigned number, void *to, size_t bytes);
  /* (optional) Code for `count` distinct kernels, those of this backend's devices. Kernels of earlier calls are
   * compiled once only. Where it leaves out[i] NULL, or without it, prepare is given the kernel's steps. */
  bool (*compile)(void *self, const struct kernel *const *kernels, int count, kernel_fn **out,
                  struct diags *d);
  /* (optional) Begins to compile what compile will be asked for, while the caller does something else. What is wrong
   * with it compile reports. */
  void (*foresee)(void *self, const struct kernel *const *kernels, int count);
  /* Fills in a KERNEL (see compile), LEAF or MODULE step of `device`: kind, call and state, which lives in `a` or
   * with the backend; with `host`, pieces instead where several threads may do the step together. `args` are set
   * already; addresses stand in them by the first run, and may change between runs. */
  bool (*prepare)(void *self, struct arena *a, const struct step *step, int device, struct command *c,
                  struct diags *d);
  /* (optional) Behind the last prepare of a plan, and before it is run: what is better made for all steps together. */
  bool (*finish)(void *self, struct diags *d);
  /* A COPY step likewise, unless `host`: between devices of this backend or one of them and the host (-1), in
   * the order of a queue of device `to`: QUEUE_COPIES with copy_queue and another device of this backend as the
   * source, else QUEUE_WORK. To the host: on any worker's thread, when the source has been reached or has been there
   * since before the run; the bytes are there on return. From the host: the source stays as it is until the next
   * mark of `to` is reached. */
  bool (*prepare_copy)(void *self, struct arena *a, int to, int from, size_t bytes, struct command *c,
                       struct diags *d);
  /* (optional) On each worker's thread before its first run: rounding, thread-local library settings. May be
   * called again. */
  void (*enter)(void *self);

  /* --- devices that work behind the host --- */

  /* A CALL that marks a point of a queue, once in each run; `*event` stands for it below. */
  bool (*mark)(void *self, struct arena *a, int device, enum queue queue, struct command *c, void **event,
               struct diags *d);
  /* A CALL on the thread of `device`: later work of its queue waits for the mark, which has been called in this
   * run. */
  bool (*follow)(void *self, struct arena *a, int device, enum queue queue, void *event, struct command *c,
                 struct diags *d);
  /* Whether the work before the mark, which has been called in this run, is done, and its results can be read
   * by any device. True after a failure. On any thread, inside of runs. */
  bool (*reached)(void *event);
  /* Around each run, on the thread of worker 0. Runs and calls of `copy` are done in their order: whatever the
   * QUEUE_WORK of any device is given in one comes behind all that those of all devices were given in the ones
   * before. In a run, QUEUE_COPIES is made to wait, and is waited for, by marks. `timed`: busy will be asked. With
   * `wait`, end returns when everything is done. False: see status. */
  bool (*begin)(void *self, bool timed);
  bool (*end)(void *self, bool wait);
  /* True: no failure so far. Else reports the first one: the call's name, the driver's name for the error and
   * its text, and the device. On the thread of worker 0, also between calls of a run. */
  bool (*status)(void *self, struct diags *d);
  /* (optional, all four or none) Sums that devices of this backend make together. rendezvous: what stands for a
   * collective of the plan below; NULL after an error. arrive: a CALL on the thread of the devices, by which the one
   * of this rank comes to it; `c->args` are where its share is and where the sum is to be. The call that is the last
   * one of this process in a run gives the work to all its devices. complete: whether that is so for the arrival whose
   * command has this state, or a call has failed: its device goes on then only. no_rendezvous: why none of this can be
   * done here, in a line without its end; NULL if it can. Runs with collectives are not recorded. */
  void *(*rendezvous)(void *self, struct arena *a, const struct collective *collective,
                      const struct company *company, struct diags *d);
  bool (*arrive)(void *self, struct arena *a, void *rendezvous, int rank, struct command *c, struct diags *d);
  bool (*complete)(void *state);
  const char *(*no_rendezvous)(void *self);
  /* (optional) What a module needs on each of its devices, in bytes, by what its compiler says. */
  bool (*module_memory)(void *self, const struct plan_module *m, struct module_memory *out, struct diags *d);
  /* (optional) Whole runs as one recording. record calls issue(arg), which makes all calls of a run once; they
   * are kept, but not done. NULL when it cannot: runs are issued call by call from then on. replay does the
   * recorded run, in the place of its calls between begin and end. A recording holds addresses: it is forgotten
   * when they change. */
  void *(*record)(void *self, void (*issue)(void *arg), void *arg);
  bool (*replay)(void *self, void *recording);
  void (*forget)(void *self, void *recording);
  /* (optional) Nanoseconds that the device worked in the last run, which was a timed one and has ended with
   * wait. */
  uint64_t (*busy)(void *self, int device);

  /* --- without being open --- */

  /* (optional) The devices of this machine, or of the plugin (NULL: none is named), into `a`. If there are none,
   * why: a line without its end, or NULL. */
  int (*list)(struct arena *a, const char *plugin, struct device_info **out, const char **why_none);
  /* (optional) Kernels as the text that is compiled: `form` is "llvm", "cuda" or "ptx"; `arch` may be NULL.
   * NULL after an error in `d`: also for a form that it does not have. */
  const char *(*emit)(struct arena *a, const struct kernel *const *kernels, int count, const char *form,
                      const char *arch, struct diags *d);
};

#define BACKEND(name) extern const struct backend backend_##name;
#include "runtime/backends.def"
#undef BACKEND

/* The rows of backends.def; ends with NULL. */
extern const struct backend *const backends[];
/* NULL stands for the default. NULL returned if there is none of this name. */
const struct backend *backend_find(const char *name);
/* Whether devices of this kind run modules. */
bool backend_runs_modules(const char *kind);

#endif
