/* SPDX-License-Identifier: Apache-2.0 */
/* What an `on` annotation makes of the device that a rule has chosen: its fields win, one by one, over the rule's. */
#include "passes/strategy/fit.h"

#include "ir/graph/graph.h"

#include <string.h>

/* The nearest device of the wanted kind (lowest index), or a CPU, or the rule's own. */
static int soft_device(const struct target *t, const struct device_name *want, int otherwise) {
  for (int i = 0; i < t->ndevices; i++)
    if (want->kind && strcmp(want->kind, t->devices[i].name.kind) == 0) return i;
  for (int i = 0; i < t->ndevices; i++)
    if (strcmp(t->devices[i].name.kind, "cpu") == 0) return i;
  return otherwise;
}

int wanted_device(struct arena *a, const struct config *c, const struct node *n, int rule, bool *soft,
                  struct diags *d) {
  struct device_name want;
  *soft = false;
  if (!device_name_parse(a, n->want, &want)) {
    diag_error(d, n->loc, "'%s' is no device name", n->want);
    diag_help(d, LOC_NONE, "names look like /cpu:0 or /job:worker/task:0/gpu:1");
    return -1;
  }
  /* Another kind of device has its own numbers, and another card its own parts: the rule's do not carry over. */
  struct device_name base = c->target.devices[rule].name;
  if (want.kind && strcmp(want.kind, base.kind) != 0) base.index = base.part = -1;
  if (want.index >= 0 && want.index != base.index) base.part = -1;
  struct device_name merged = device_name_merge(base, want);
  for (int i = 0; i < c->target.ndevices; i++)
    if (device_matches(&merged, &c->target.devices[i].name)) return i;
  if (c->soft_placement) {
    *soft = true;
    return soft_device(&c->target, &want, rule);
  }
  diag_error(d, n->loc, "%s wants the device %s, which is not there", n->name, n->want);
  diag_help(d, LOC_NONE, "devices are %s; --soft-placement takes the nearest one",
            device_list(a, &c->target));
  return -1;
}
