/* From the configuration to devices: which device computes, which stores, which splits the batch. */
#include "passes/fit.h"

#include <string.h>

const struct strategy_info strategies[] = {
    {"one_device", "variables and towers on one device"},
    {"replicate", "variables on the only GPU, else on /cpu:0; refuses uneven batches"},
    {"round_robin", "one copy of each variable, on the worker devices in turn"},
    {"central_storage", "all variables on the parameter device"},
    {"mirrored", "a copy of each variable on each device of one task"},
    {"multi_worker_mirrored", "a copy of each variable on each device of all workers"},
    {"parameter_server", "variables and their parts on the tasks of the job ps in turn"},
    {NULL, NULL},
};

static bool is_cpu(const struct device *d) { return strcmp(d->name.kind, "cpu") == 0; }
static bool is_server(const struct device *d) { return d->name.job && strcmp(d->name.job, "ps") == 0; }

bool scales_per_tower(const struct config *c) {
  return c->loss_scaling && strcmp(c->loss_scaling, "per_tower") == 0;
}

bool same_task(const struct target *t, int a, int b) {
  const struct device_name *x = &t->devices[a].name, *y = &t->devices[b].name;
  bool same_job = x->job == y->job || (x->job && y->job && strcmp(x->job, y->job) == 0);
  return same_job && x->task == y->task;
}

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

static bool is(const struct strategy *s, const char *name) { return strcmp(s->name, name) == 0; }

static struct cast cast_devices(struct arena *a, const struct target *t) {
  struct cast c = {.compute = arena_new_array(a, (size_t)t->ndevices, int),
                   .servers = arena_new_array(a, (size_t)t->ndevices, int)};
  for (int i = 0; i < t->ndevices; i++) {
    if (!is_server(&t->devices[i])) {
      if (t->devices[i].storage) continue;
      bool seen = false;
      for (int k = 0; k < c.ncompute; k++) seen |= same_task(t, i, c.compute[k]);
      c.ntasks += !seen;
      c.compute[c.ncompute++] = i;
      continue;
    }
    bool seen = false; /* one device of each task is enough */
    for (int k = 0; k < c.nservers; k++) seen |= same_task(t, i, c.servers[k]);
    if (!seen) c.servers[c.nservers++] = i;
  }
  return c;
}

static const char *default_name(const struct cast *c) {
  if (c->nservers) return "parameter_server";
  if (c->ncompute == 1) return "one_device";
  return c->ntasks > 1 ? "multi_worker_mirrored" : "mirrored";
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
  if (!is(s, "replicate") || c->uneven || more == 0) return true;
  diag_error(
      d, LOC_NONE,
      "strategy replicate gives each tower the same number of rows, and %lld %s not divide by %d towers",
      (long long)c->batch, c->batch == 1 ? "row does" : "rows do", s->towers);
  if (more == 1)
    diag_help(d, LOC_NONE, "--uneven gives the first tower one row more");
  else
    diag_help(d, LOC_NONE, "--uneven gives the first %lld towers one row more", (long long)more);
  return false;
}

/* Where variables are stored. False after an error. */
static bool choose_storage(struct arena *a, struct config *c, const struct cast *cast, struct strategy *s,
                           struct diags *d) {
  s->parameter = -1;
  if (is(s, "round_robin")) {
    s->shards = s->workers;
    s->nshards = s->nworkers;
  } else if (is(s, "parameter_server")) {
    s->shards = cast->servers;
    s->nshards = cast->nservers;
  } else if (is(s, "replicate")) {
    bool gpu = cast->ncompute == 1 && !is_cpu(&c->target.devices[s->workers[0]]);
    s->parameter = gpu ? s->workers[0] : cpu_zero(a, &c->target, s->workers[0]);
  } else if (c->parameter_device) {
    s->parameter = find_device(a, &c->target, s->workers[0], c->parameter_device, c->asked.parameter_device,
                               "parameter", d);
    if (s->parameter < 0) return false;
  } else if (is(s, "central_storage") && cast->ncompute > 1) {
    s->parameter = cpu_zero(a, &c->target, s->workers[0]);
    c->parameter_device = c->target.devices[s->parameter].text;
  } else {
    s->parameter = s->workers[0];
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
  struct cast cast = cast_devices(a, &c->target);
  if (cast.ncompute == 0) {
    diag_error(d, LOC_NONE, "there is no device that carries towers: %s", device_list(a, &c->target));
    diag_help(d, LOC_NONE, "a job ps only stores variables: add a worker, as in worker=2;ps=1");
    return false;
  }
  if (c->towers == 0) c->towers = c->strategy && strcmp(c->strategy, "one_device") == 0 ? 1 : cast.ncompute;
  if (c->towers < 0 || c->towers > 1024) {
    diag_error(d, c->asked.towers, "%d towers: there may be 1 to 1024", c->towers);
    return false;
  }
  if (!c->strategy) c->strategy = default_name(&cast);
  if (!strategy_known(a, c, d)) return false;
  *out = (struct strategy){.name = c->strategy,
                           .towers = c->towers,
                           .workers = cast.compute,
                           .nworkers = c->towers < cast.ncompute ? c->towers : cast.ncompute};
  out->mirrored = is(out, "mirrored") || is(out, "multi_worker_mirrored");
  if (!strategy_fits(a, c, &cast, out, d) || !choose_storage(a, c, &cast, out, d) ||
      !choose_consolidation(a, c, out, d) || !check_batch(c, out, d))
    return false;
  if (out->mirrored) nccl_settle(c, out->workers, out->nworkers, d);
  return !out->nshards || strategy_homes(a, g, c, out, d);
}

int strategy_worker(const struct strategy *s, int tower) {
  return s->workers[tower_device(tower, s->towers, s->nworkers)];
}

int strategy_tasks(const struct strategy *s, const struct target *t, int *first) {
  int n = 0;
  for (int i = 0; i < s->towers; i++)
    if (i == 0 || !same_task(t, strategy_worker(s, i), strategy_worker(s, i - 1))) first[n++] = i;
  return n;
}
