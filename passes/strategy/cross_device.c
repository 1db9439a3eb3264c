/* The algorithms of the cross-device sums by name, and which devices can do them. */
#include "passes/strategy/strategy.h"

#include <string.h>

static const char *const names[] = {[REDUCE_TO_ONE] = "reduce_to_one",
                                    [HIERARCHICAL] = "hierarchical_copy",
                                    [SCATTER] = "scatter",
                                    [RING] = "ring",
                                    [NCCL] = "nccl"};
enum { COUNT = sizeof names / sizeof *names };

int cross_device_find(const struct config *c, struct diags *d) {
  int i = REDUCE_TO_ONE;
  if (!c->cross_device) return i;
  for (i = 0; i < COUNT && strcmp(names[i], c->cross_device) != 0;) i++;
  if (i < COUNT) return i;
  diag_error(d, c->asked.cross_device, "there is no cross-device algorithm '%s'", c->cross_device);
  diag_closest(d, LOC_NONE, c->cross_device, names, COUNT, "algorithms are");
  return -1;
}

/* All tasks run in one process: GPUs of one number are one card, whatever their task. */
const char *nccl_why_not(const struct target *t, const int *devices, int ndevices, struct arena *a) {
  for (int i = 0; i < ndevices; i++) {
    const struct device *one = &t->devices[devices[i]];
    if (strcmp(one->name.kind, "gpu") != 0) return arena_printf(a, "is for GPUs, and %s is none", one->text);
    for (int k = 0; k < i; k++)
      if (t->devices[devices[k]].name.index == one->name.index)
        return arena_printf(a, "takes each card once, and %s and %s are one", t->devices[devices[k]].text,
                            one->text);
  }
  return NULL;
}

void nccl_settle(struct config *c, const int *devices, int ndevices, struct diags *d) {
  if (!c->cross_device || strcmp(c->cross_device, "nccl") != 0 || ndevices < 2) return;
  const char *why = nccl_why_not(&c->target, devices, ndevices, d->arena);
  if (!why) return;
  c->cross_device = "hierarchical_copy";
  diag_warning(d, c->asked.cross_device, "NCCL %s: %s is used", why, c->cross_device);
}
