/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves on the CPU: a function for each LEAF of ops.def, cpu_leaf_<op>, and one for all KERNELs, that fills in the
 * command of a step: call and state. */
#ifndef DGC_RUNTIME_CPU_LEAF_H
#define DGC_RUNTIME_CPU_LEAF_H

#include "ir/plan/plan.h"
#include "kernels/cpu/leaf.h"
#include "runtime/backend.h"

/* The open backend. */
struct cpu {
  struct cpu_jit *jit;
  bool portable;           /* all bits are the interpreter's */
  struct cpu_owned *owned; /* by leaves that are prepared: see cpu_own */
  int device;              /* for which a step is prepared */
  struct cpu_room **rooms; /* by device; NULL: none has been asked for */
  int nrooms;
};

/* Memory of a device in which the step that runs puts what its threads share. It may be elsewhere in a later run. */
struct cpu_room {
  char *data; /* at a line of the cache */
  size_t size;
};
/* That of the device for which a step is prepared, with so many bytes at least; NULL if there is no memory. */
struct cpu_room *cpu_room(struct cpu *cpu, size_t size);
void cpu_destroy_rooms(struct cpu *cpu);

/* The state lives in `a`, or is given to the backend: see cpu_own. False after an error in `d`. */
typedef bool cpu_leaf_fn(struct cpu *cpu, struct arena *a, const struct step *step, struct command *c,
                         struct diags *d);
#define OP(name, spread)
#define LEAF(name, spread) cpu_leaf_fn cpu_leaf_##name;
#define KERNEL(name, spread)
#include "ir/ops/ops.def"
#undef OP
cpu_leaf_fn cpu_leaf_kernel; /* for all that kernels/cpu computes */
/* The command of a step that one of these functions computes. */
void cpu_call(struct arena *a, const struct step *step, const struct leaf_functions *f, struct command *c);

/* `data` is destroyed when the backend is closed; at once, with an error, if there is no memory or data is NULL. */
bool cpu_own(struct cpu *cpu, void *data, void (*destroy)(void *data), struct diags *d);
void cpu_destroy_owned(struct cpu *cpu);

#endif
