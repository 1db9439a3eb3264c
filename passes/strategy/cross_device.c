/* SPDX-License-Identifier: Apache-2.0 */
/* The algorithms of the cross-device sums by name, and which devices can do them. */
#include "passes/strategy/strategy.h"

#include <string.h>

int cross_device_find(const struct config *c, struct diags *d) {
  const char *names[CROSS_DEVICE_COUNT];
  int found = cross_device_number(c->cross_device);
  if (found >= 0) return found;
  for (int i = 0; i < CROSS_DEVICE_COUNT; i++) names[i] = cross_devices[i].name;
  diag_error(d, c->asked.cross_device, "there is no cross-device algorithm '%s'", c->cross_device);
  diag_closest(d, LOC_NONE, c->cross_device, names, CROSS_DEVICE_COUNT, "algorithms are");
  return -1;
}

/* Whether the configuration asks for NCCL. */
static bool asks_nccl(const struct config *c) {
  return cross_device_number(c->cross_device) == CROSS_DEVICE_nccl;
}

/* GPUs of one task are of one machine: those of one number are one card. */
const char *nccl_why_not(const struct target *t, const int *devices, int ndevices, struct arena *a) {
  for (int i = 0; i < ndevices; i++) {
    const struct device *one = &t->devices[devices[i]];
    if (strcmp(one->name.kind, "gpu") != 0) return arena_printf(a, "is for GPUs, and %s is none", one->text);
    for (int k = 0; k < i; k++)
      if (t->devices[devices[k]].name.index == one->name.index && same_task(t, devices[k], devices[i]))
        return arena_printf(a, "takes each card once, and %s and %s are one", t->devices[devices[k]].text,
                            one->text);
  }
  return NULL;
}

void nccl_settle(struct config *c, const int *devices, int ndevices, struct diags *d) {
  if (!asks_nccl(c) || ndevices < 2) return;
  const char *why = nccl_why_not(&c->target, devices, ndevices, d->arena);
  if (!why) return;
  c->cross_device = cross_devices[CROSS_DEVICE_hierarchical_copy].name;
  diag_warning(d, c->asked.cross_device, "NCCL %s: %s is used", why, c->cross_device);
}
