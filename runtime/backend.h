/* A backend: one struct of hooks that turns the steps of a plan into commands and owns the memory they touch.
 *
 * `self` is what open returned. Hooks other than the calls inside of commands run on one thread of a session,
 * never inside of a step. Hooks marked (optional) may be NULL. */
#ifndef DGC_RUNTIME_BACKEND_H
#define DGC_RUNTIME_BACKEND_H

#include "ir/plan.h"

#include <stdatomic.h>

/* A library call or an interpreted kernel: the operands in the plan's order, and what prepare stored. */
typedef void call_fn(void *const *args, const void *state);

enum command_kind { COMMAND_KERNEL, COMMAND_CALL, COMMAND_COPY, COMMAND_SIGNAL, COMMAND_WAIT, COMMAND_END };

/* A step with everything resolved: the executor does no more than call it. */
struct command {
  enum command_kind kind;
  uint32_t step; /* its number in the device's plan */
  union {
    kernel_fn *kernel;        /* KERNEL */
    call_fn *call;            /* CALL */
    _Atomic uint64_t *signal; /* SIGNAL, WAIT: the number of the last run that gave it */
  };
  void *const *args; /* COPY: from, to */
  union {
    const int64_t *sizes; /* KERNEL */
    const void *state;    /* CALL */
    size_t bytes;         /* COPY */
  };
};

struct backend {
  const char *name;
  const char *help;
  /* Starts it for these devices. NULL after an error in `d`. */
  void *(*open)(const struct target *target, struct diags *d);
  void (*close)(void *self);
  /* Memory of one device, aligned to 64 bytes, undefined. NULL if there is not enough. Size 0 is allowed. */
  void *(*alloc)(void *self, int device, size_t bytes);
  void (*free)(void *self, int device, void *data, size_t bytes);
  /* Between devices of this backend and the host (-1). */
  void (*copy)(void *self, void *to, int to_device, const void *from, int from_device, size_t bytes);
  /* (optional) Machine code for `count` distinct kernels. Those of earlier calls are compiled once only. Without it,
   * prepare is given the kernels too. */
  bool (*compile)(void *self, const struct kernel *const *kernels, int count, kernel_fn **out,
                  struct diags *d);
  /* Fills in a KERNEL (without compile) or MATMUL step: kind, call and state, which lives in `a`. `args` are
   * set already. */
  bool (*prepare)(void *self, struct arena *a, const struct step *step, struct command *c, struct diags *d);
  /* (optional) The kernel as the text that is compiled. NULL after an error in `d`. */
  const char *(*emit)(struct arena *a, const struct kernel *k, struct diags *d);
  /* (optional) On each worker's thread before its first run: rounding, thread-local library settings. May be
   * called again. */
  void (*enter)(void *self);
};

extern const struct backend backend_interp;
#ifdef DGC_WITH_LLVM
extern const struct backend backend_cpu;
#endif

/* All of this build, the default first; ends with NULL. */
extern const struct backend *const backends[];
/* NULL stands for the default. NULL returned if there is none of this name. */
const struct backend *backend_find(const char *name);

/* Host memory for backends that run on it. */
void *host_alloc(size_t bytes);
void host_free(void *data);

#endif
