/* SPDX-License-Identifier: Apache-2.0 */
/* From the configuration to devices: which device computes, which stores, which splits the batch. */
#include "passes/strategy/fit.h"

#include "ir/graph/graph.h"

#include <string.h>

static bool is_cpu(const struct device *d) { return strcmp(d->name.kind, "cpu") == 0; }

/* /cpu:0 of the worker's task. Every machine has it, and it need not be in the list. */
static int cpu_zero(struct arena *a, struct target *t, int worker) {
  for (int i = 0; i < t->ndevices; i++)
    if (is_cpu(&t->devices[i]) && t->devices[i].name.index == 0 && same_task(t, i, worker)) return i;
  return target_add_cpu(a, t, worker);
}

/* The device the user named, or -1 after an error. */
static int find_device(struct arena *a, struct target *t, int worker, const char *text, struct loc asked,
                       const char *what, struct diags *d) {
  struct device_name want;
  if (!device_name_parse(a, text, &want)) {
    diag_error(d, asked, "'%s' is no device name", text);
    diag_help(d, LOC_NONE, "names look like /cpu:0 or /job:worker/task:0/gpu:1");
    return -1;
  }
  for (int i = 0; i < t->ndevices; i++)
    if (device_matches(&want, &t->devices[i].name)) return i;
  struct target more = *t;
  int cpu = cpu_zero(a, &more, worker);
  if (device_matches(&want, &more.devices[cpu].name)) {
    *t = more;
    return cpu;
  }
  diag_error(d, asked, "the %s device %s is not among the devices: %s", what, text, device_list(a, t));
  return -1;
}

static struct device_roles find_roles(struct arena *a, const struct target *t) {
  struct device_roles c = {.compute = arena_new_array(a, (size_t)t->ndevices, int),
                           .servers = arena_new_array(a, (size_t)t->ndevices, int)};
  int *of = arena_new_array(a, (size_t)t->ndevices, int);
  uint8_t *seen = arena_new_array(a, (size_t)target_processes(t, of), uint8_t); /* tasks */
  for (int i = 0; i < t->ndevices; i++) {
    if (!device_is_server(&t->devices[i])) {
      if (!device_carries_towers(&t->devices[i])) continue;
      c.ntasks += !seen[of[i]];
      seen[of[i]] = 1;
      c.compute[c.ncompute++] = i;
      continue;
    }
    if (!seen[of[i]]) c.servers[c.nservers++] = i; /* one device of each task is enough */
    seen[of[i]] = 1;
  }
  return c;
}

static enum default_for devices_of(const struct device_roles *c) {
  if (c->nservers) return DEFAULT_FOR_SERVERS;
  if (c->ncompute == 1) return DEFAULT_FOR_ONE_DEVICE;
  return c->ntasks > 1 ? DEFAULT_FOR_SEVERAL_TASKS : DEFAULT_FOR_DEVICES;
}

/* The batch, and whether the towers may have it. */
static bool check_batch(struct config *c, const struct strategy *s, struct diags *d) {
  if (c->batch_per_replica && !c->batch) {
    if (c->batch_per_replica > MAX_ELEMENTS / s->towers) {
      diag_error(d, LOC_NONE, "%d towers of %lld rows are too many rows", s->towers,
                 (long long)c->batch_per_replica);
      return false;
    }
    c->batch = c->batch_per_replica * s->towers;
  }
  int64_t more = c->batch % s->towers;
  if (!(s->info->settings & TAKES_UNEVEN) || c->uneven || more == 0) return true;
  diag_error(d, LOC_NONE,
             "strategy %s gives each tower the same number of rows, and %lld %s not divide by %d towers",
             s->info->name, (long long)c->batch, c->batch == 1 ? "row does" : "rows do", s->towers);
  if (more == 1)
    diag_help(d, LOC_NONE, "--uneven gives the first tower one row more");
  else
    diag_help(d, LOC_NONE, "--uneven gives the first %lld towers one row more", (long long)more);
  return false;
}

static bool choose_parameter(struct arena *a, struct config *c, const struct device_roles *roles,
                             struct strategy *s, struct diags *d) {
  if (c->parameter_device) {
    s->parameter = find_device(a, &c->target, s->workers[0], c->parameter_device, c->asked.parameter_device,
                               "parameter", d);
  } else if (roles->ncompute > 1) {
    s->parameter = cpu_zero(a, &c->target, s->workers[0]);
    c->parameter_device = c->target.devices[s->parameter].text;
  } else {
    s->parameter = s->workers[0];
  }
  return s->parameter >= 0;
}

/* Where variables are stored. False after an error. */
static bool choose_storage(struct arena *a, struct config *c, const struct device_roles *roles,
                           struct strategy *s, struct diags *d) {
  s->parameter = -1;
  switch (s->info->storage) {
  case STORAGE_WORKERS:
    s->shards = s->workers;
    s->nshards = s->nworkers;
    break;
  case STORAGE_SERVERS:
    s->shards = roles->servers;
    s->nshards = roles->nservers;
    break;
  case STORAGE_SHARED: {
    bool gpu = roles->ncompute == 1 && !is_cpu(&c->target.devices[s->workers[0]]);
    s->parameter = gpu ? s->workers[0] : cpu_zero(a, &c->target, s->workers[0]);
    break;
  }
  case STORAGE_PARAMETER:
    if (!choose_parameter(a, c, roles, s, d)) return false;
    break;
  case STORAGE_EACH: s->parameter = s->workers[0]; break;
  }
  s->main = s->towers > 1 && s->parameter >= 0 ? s->parameter : s->workers[0];
  return true;
}

/* The first CPU of the workers, which need not compute. */
static bool choose_consolidation(struct arena *a, struct config *c, struct strategy *s, struct diags *d) {
  if (c->consolidation_device) {
    s->consolidation = find_device(a, &c->target, s->workers[0], c->consolidation_device,
                                   c->asked.consolidation_device, "consolidation", d);
    return s->consolidation >= 0;
  }
  s->consolidation = s->workers[0];
  for (int i = c->target.ndevices; i-- > 0;)
    if (is_cpu(&c->target.devices[i]) && same_task(&c->target, i, s->workers[0])) s->consolidation = i;
  return true;
}

bool strategy_resolve(struct arena *a, const struct graph *g, struct config *c, struct strategy *out,
                      struct diags *d) {
  if (c->target.ndevices == 0 && !target_parse(a, "cpu:0", &c->target, d, LOC_NONE)) return false;
  struct device_roles roles = find_roles(a, &c->target);
  if (roles.ncompute == 0) {
    diag_error(d, LOC_NONE, "there is no device that carries towers: %s", device_list(a, &c->target));
    diag_help(d, LOC_NONE, "a job ps only stores variables: add a worker, as in worker=2;ps=1");
    return false;
  }
  const struct strategy_info *info =
      c->strategy ? strategy_find(c->strategy) : strategy_default(devices_of(&roles));
  if (c->towers == 0) c->towers = info && info->reach == REACH_DEVICE ? 1 : roles.ncompute;
  if (c->towers < 0 || c->towers > MAX_TARGET_DEVICES) {
    diag_error(d, c->asked.towers, "%d towers: there may be 1 to %d", c->towers, MAX_TARGET_DEVICES);
    return false;
  }
  if (!info) {
    strategy_unknown(c->strategy, NULL, c->asked.strategy, d);
    return false;
  }
  c->strategy = info->name;
  *out = (struct strategy){.info = info,
                           .mirrored = info->storage == STORAGE_EACH,
                           .towers = c->towers,
                           .workers = roles.compute,
                           .nworkers = c->towers < roles.ncompute ? c->towers : roles.ncompute};
  if (!strategy_fits(a, c, &roles, out, d) || !choose_storage(a, c, &roles, out, d) ||
      !choose_consolidation(a, c, out, d) || !check_batch(c, out, d))
    return false;
  out->inputs = out->consolidation;
  if (out->mirrored) nccl_settle(c, out->workers, out->nworkers, d);
  return out->nshards ? strategy_homes(a, g, c, out, d) : strategy_moves(a, g, c, out, d);
}
