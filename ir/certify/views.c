/* SPDX-License-Identifier: Apache-2.0 */
/* A view is a group of towers whose gradients are summed before they are applied: all of them, or, where workers go on
 * without waiting for each other, those of one worker. There the workers follow each other in one order;
 * worker i computes with what worker i - staleness has left, and applies to what worker i - 1 has. */
#include "ir/certify/context.h"
#include "ir/ops/op_id.h"

#include <string.h>

static bool same_task(const struct device_name *a, const struct device_name *b) {
  if (!a || !b || a->task != b->task) return !a || !b;
  return a->job == b->job || (a->job && b->job && strcmp(a->job, b->job) == 0);
}

/* The task of each tower: towers lie over the devices that neither belong to the job ps nor only store, in order. */
static const struct device_name **tasks_of(const struct certify *c) {
  const struct target *t = &c->placed->config.target;
  const struct device_name **tasks = arena_new_array(c->arena, (size_t)c->towers, const struct device_name *);
  int *carry = arena_new_array(c->arena, (size_t)t->ndevices + 1, int), count = 0;
  for (int i = 0; i < t->ndevices && count < c->towers; i++) {
    if (device_carries_towers(&t->devices[i])) carry[count++] = i;
  }
  for (int i = 0; count && i < c->towers; i++)
    tasks[i] = &t->devices[carry[tower_device(i, c->towers, count)]].name;
  return tasks;
}

static bool tells_versions(const struct graph *g) {
  for (uint32_t i = 0; i < g->count; i++)
    if (g->nodes[i]->op == OP_newest) return true;
  return false;
}

void certify_views(struct certify *c) {
  const struct config *config = &c->placed->config;
  c->views = arena_new_array(c->arena, (size_t)c->towers + 1, struct worker_view);
  int workers = 0;
  const struct device_name *last = NULL, **tasks = NULL;
  if (config->asynchronous && tells_versions(c->source)) tasks = tasks_of(c);
  for (int t = 0; tasks && t < c->towers; t++) {
    const struct device_name *task = tasks[t];
    if (t == 0 || !same_task(task, last)) {
      int reads = workers > config->staleness ? workers - config->staleness : 0;
      c->views[workers] = (struct worker_view){.first = t, .reads = reads, .newest = workers};
      workers++;
    }
    if (task) last = task;
    c->views[workers - 1].count++;
    c->views[workers - 1].rows += certify_rows(c, t);
  }
  if (workers == 1) workers = 0;
  c->views[workers] = (struct worker_view){.count = c->towers, .rows = c->batch};
  c->nviews = workers + 1;
}

struct node *certify_version(const struct certify *c, const struct node *variable, int version) {
  struct node **versions = &c->versions[(size_t)variable->id * (size_t)c->nviews];
  while (version > 0 && !versions[version]) version--;
  return versions[version];
}
