/* SPDX-License-Identifier: Apache-2.0 */
/* Towers and the devices and tasks that they run on. */
#include "passes/strategy/strategy.h"

int strategy_worker(const struct strategy *s, int tower) {
  return s->workers[tower_device(tower, s->towers, s->nworkers)];
}

int strategy_tasks(const struct strategy *s, const struct target *t, int *first) {
  int n = 0;
  for (int i = 0; i < s->towers; i++)
    if (i == 0 || !same_task(t, strategy_worker(s, i), strategy_worker(s, i - 1))) first[n++] = i;
  return n;
}
