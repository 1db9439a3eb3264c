/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of devices and of the configuration, before there is a strategy. */
#include "passes/strategy/fit.h"

#include <string.h>

bool same_task(const struct target *t, int a, int b) {
  const struct device_name *x = &t->devices[a].name, *y = &t->devices[b].name;
  bool same_job = x->job == y->job || (x->job && y->job && strcmp(x->job, y->job) == 0);
  return same_job && x->task == y->task;
}

const char *device_list(struct arena *a, const struct target *t) {
  struct str s = str_make(a);
  for (int i = 0; i < t->ndevices; i++) str_printf(&s, "%s%s", i ? ", " : "", t->devices[i].text);
  return s.data;
}
