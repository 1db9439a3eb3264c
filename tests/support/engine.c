/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/engine.h"

#include "ir/strategies.h"
#include "passes/pass.h"
#include "planner/planner.h"
#include "runtime/model_variable.h"
#include "runtime/mpi/transport.h"
#include "tests/support/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool engine_open(struct engine *e, const char *backend, int threads) {
  return engine_open_on(e, backend, "cpu:0-7", threads);
}

static void make(struct engine *e, const char *backend) {
  *e = (struct engine){.backend = backend_find(backend), .arena = arena_create()};
  diags_init(&e->diags, e->arena);
}

static bool start(struct engine *e, const char *backend, const struct target *target,
                  const struct transport *transport, int threads) {
  if (e->backend && target) {
    const struct backend *wanted[] = {e->backend, NULL};
    e->engines = engines_open_task(target, wanted, transport, &e->diags);
    e->workers = workers_create(threads, &e->diags);
  }
  if (e->engines && e->workers) return true;
  fprintf(stderr, "no backend %s\n%s", backend, diags_text(&e->diags, false));
  engine_close(e);
  return false;
}

bool engine_open_on(struct engine *e, const char *backend, const char *devices, int threads) {
  struct target target;
  make(e, backend);
  bool parsed = target_parse(e->arena, devices, &target, &e->diags, LOC_NONE);
  return start(e, backend, parsed ? &target : NULL, NULL, threads);
}

bool engine_open_task(struct engine *e, const char *backend, const struct target *target,
                      const struct transport *transport, int threads) {
  make(e, backend);
  return start(e, backend, target, transport, threads);
}

void engine_close(struct engine *e) {
  workers_destroy(e->workers);
  engines_close(e->engines);
  arena_destroy(e->arena);
}

void layout_set(struct graph *g, const struct layout *l, int64_t rows, struct diags *d) {
  g->config = (struct config){.batch = rows,
                              .towers = l->towers,
                              .strategy = l->strategy,
                              .uneven = (strategy_find(l->strategy)->settings & TAKES_UNEVEN) != 0,
                              .min_part_bytes = strategy_find(l->strategy)->settings & TAKES_PARTS ? 8 : 0,
                              .parameter_device = l->parameter_device};
  target_parse(g->arena, l->devices, &g->config.target, d, LOC_NONE);
}

const char *layout_text(struct arena *a, const struct layout *l) {
  return arena_printf(a, "%d towers, %s on %s", l->towers, l->strategy, l->devices);
}

int layouts_of(int towers, struct layout *out) {
  static const char *const devices[] = {"cpu:0", "cpu:0-1", "cpu:0-2", "cpu:0-3"};
  static const char *const clusters[] = {
      "/job:worker/task:0/cpu:0,/job:worker/task:1/cpu:0,/job:ps/task:0/cpu:0",
      "/job:ps/task:0/cpu:0,/job:ps/task:1/cpu:0,/job:worker/task:0/cpu:0-1,/job:worker/task:1/cpu:0-1",
      ("/job:worker/task:0/cpu:0-1,/job:worker/task:1/cpu:0,/job:worker/task:2/cpu:0-1,/job:ps/task:0/cpu:0,"
       "/job:ps/task:1/cpu:0,/job:ps/task:2/cpu:0")};
  int n = 0;
  out[n++] = (struct layout){towers, "one_device", "cpu:0", NULL};
  for (int i = 0; i < 4; i++) {
    out[n++] = (struct layout){towers, "mirrored", devices[i], NULL};
    out[n++] = (struct layout){towers, "central_storage", devices[i], NULL};
  }
  out[n++] = (struct layout){towers, "round_robin", devices[1], NULL};
  out[n++] = (struct layout){towers, "round_robin", devices[3], NULL};
  /* a parameter device that computes nothing, and one that is not the first */
  out[n++] = (struct layout){towers, "replicate", "cpu:1-2", NULL};
  out[n++] = (struct layout){towers, "central_storage", "cpu:1-3", NULL};
  out[n++] = (struct layout){towers, "central_storage", "cpu:0-2", "/cpu:2"};
  for (int i = 0; i < 3; i++) {
    out[n++] = (struct layout){towers, "multi_worker_mirrored", clusters[i], NULL};
    out[n++] = (struct layout){towers, "parameter_server", clusters[i], NULL};
  }
  return n;
}

struct plan *engine_plan(struct arena *a, struct graph *g, struct diags *d) {
  struct pipeline_options o = {.verify_each = number_from("TEST_VERIFY", 1) != 0};
  struct graph *fused = g->stage == STAGE_FUSED ? g : pipeline_run(a, g, NULL, NULL, &o, d);
  struct plan *p = fused ? plan_build(a, fused, d) : NULL;
  return p && plan_verify(p, d) ? p : NULL;
}

/* Whole variables by their names, copies from their primaries. */
static bool fill_variables(struct arena *a, struct store *s, const struct values *variables) {
  struct model_variable *all;
  int count = store_model_variables(s, a, &all);
  for (int i = 0; i < count; i++) {
    const struct tensor *t = values_get(variables, all[i].name);
    if (!t || !type_equal(&t->type, &all[i].type)) {
      fprintf(stderr, "no variable %s : %s\n", all[i].name, type_text(a, &all[i].type));
      return false;
    }
    if (!model_variable_write(s, &all[i], t->data)) return false;
  }
  return store_broadcast(s);
}

static bool fill_inputs(struct arena *a, struct exec *e, const struct plan *p, const struct values *inputs) {
  for (int i = 0; i < p->ninputs; i++) {
    const struct tensor *t = values_get(inputs, p->inputs[i].name);
    if (!t || !type_equal(&t->type, &p->inputs[i].type)) {
      fprintf(stderr, "no input %s : %s\n", p->inputs[i].name, type_text(a, &p->inputs[i].type));
      return false;
    }
    exec_write(e, i, t->data);
  }
  return true;
}

static void read_outputs(struct arena *a, struct exec *e, const struct plan *p, struct values *outputs) {
  for (int i = 0; outputs && i < p->noutputs; i++) {
    if (p->outputs[i].role == OUTPUT_UPDATE) continue;
    void *data = arena_alloc(a, (size_t)type_bytes(&p->outputs[i].type));
    exec_read(e, i, data);
    const char *name = p->outputs[i].name;
    bool total = p->outputs[i].role >= OUTPUT_TOTAL && p->outputs[i].role <= OUTPUT_SAME;
    if (total) name = arena_printf(a, "%s/total", name); /* a metric may have its name */
    values_put(outputs, name, &p->outputs[i].type, data);
  }
}

static void read_variables(struct arena *a, struct store *s, struct values *variables) {
  struct model_variable *all;
  int count = store_model_variables(s, a, &all);
  for (int i = 0; i < count; i++) {
    void *data = arena_alloc(a, all[i].bytes);
    model_variable_read(s, &all[i], data);
    values_put(variables, all[i].name, &all[i].type, data);
    for (int k = 0; all[i].joins && k < all[i].nparts; k++) {
      void *copy = arena_alloc(a, all[i].bytes);
      store_read(s, all[i].parts[k], copy);
      values_put(variables, arena_printf(a, "tower_%d/%s", k, all[i].name), &all[i].type, copy);
    }
  }
  for (int i = 0; i < store_count(s); i++) {
    const struct stored_variable *v = store_at(s, i);
    if (v->identity.role != VARIABLE_REPLICA) continue;
    void *data = arena_alloc(a, v->bytes);
    store_read(s, v, data);
    values_put(variables, v->name, &v->type, data);
  }
}

/* The plan's job, or an earlier one's. */
static struct exec *load(struct engine *e, const struct engine_job *jobs, int job, struct store *s,
                         struct exec **loaded, struct diags *d) {
  for (int i = 0; i < job; i++)
    if (jobs[i].plan == jobs[job].plan) return loaded[i];
  struct exec *x = exec_load(jobs[job].plan, e->engines, s, e->workers, d);
  if (x && !exec_set_limit(x, e->limit, d)) abort();
  return x;
}

static bool run_job(struct engine *e, struct arena *a, struct exec *x, const struct engine_job *job,
                    struct diags *d) {
  for (int i = 0; i < job->steps; i++) {
    if (e->engines->transport) transport_step(e->engines->transport, i + 1);
    if (!fill_inputs(a, x, job->plan, job->inputs)) return false;
    if (exec_run(x)) continue;
    exec_status(x, d);
    return false;
  }
  read_outputs(a, x, job->plan, job->outputs);
  return true;
}

bool engine_run_jobs(struct engine *e, const struct engine_job *jobs, int count, struct values *variables,
                     struct diags *d) {
  struct arena *a = arena_create();
  struct store *s = store_create(e->engines);
  struct exec *loaded[ENGINE_JOBS] = {NULL};
  bool ok = count <= ENGINE_JOBS;
  for (int i = 0; ok && i < count; i++) {
    loaded[i] = load(e, jobs, i, s, loaded, d);
    ok = loaded[i] && (i > 0 || fill_variables(a, s, variables)) && run_job(e, a, loaded[i], &jobs[i], d);
  }
  if (ok) read_variables(a, s, variables);
  for (int i = 0; i < count && loaded[i]; i++) {
    bool again = false;
    for (int k = 0; k < i; k++) again |= jobs[k].plan == jobs[i].plan;
    if (!again) exec_unload(loaded[i]);
  }
  store_destroy(s);
  arena_destroy(a);
  return ok;
}

bool engine_run(struct engine *e, const struct plan *p, const struct values *inputs, struct values *variables,
                struct values *outputs, int steps, struct diags *d) {
  const struct engine_job job = {p, inputs, outputs, steps};
  return engine_run_jobs(e, &job, 1, variables, d);
}
