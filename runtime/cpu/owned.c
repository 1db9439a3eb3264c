/* SPDX-License-Identifier: Apache-2.0 */
/* What leaves have made for their commands, and the backend destroys when it is closed. */
#include "runtime/cpu/leaf.h"

#include <stdlib.h>

struct cpu_owned {
  void *data;
  void (*destroy)(void *data);
  struct cpu_owned *next;
};

bool cpu_own(struct cpu *cpu, void *data, void (*destroy)(void *data), struct diags *d) {
  struct cpu_owned *o = data ? malloc(sizeof *o) : NULL;
  if (o == NULL) {
    if (data) destroy(data);
    diag_error(d, LOC_NONE, "cpu: out of memory");
    return false;
  }
  *o = (struct cpu_owned){data, destroy, cpu->owned};
  cpu->owned = o;
  return true;
}

void cpu_destroy_owned(struct cpu *cpu) {
  while (cpu->owned) {
    struct cpu_owned *o = cpu->owned;
    cpu->owned = o->next;
    o->destroy(o->data);
    free(o);
  }
}
