/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs through the whole compiler and a backend, with named tensors in and out as graph_eval has them. */
#ifndef TESTS_SUPPORT_ENGINE_H
#define TESTS_SUPPORT_ENGINE_H

#include "ir/plan/plan.h"
#include "runtime/exec.h"
#include "tests/support/eval.h"

/* A backend that stays open: kernels are compiled once for all graphs. */
struct engine {
  const struct backend *backend;
  struct engines *engines;
  struct workers *workers;
  struct arena *arena;
  struct diags diags;
  int limit; /* seconds that a run may take, set when it is open; 0: any */
};

/* False (and a line on stderr) if this build has no backend of the name, or it does not start. */
bool engine_open(struct engine *e, const char *backend, int threads);
/* The same on these devices, in place of eight CPUs. */
bool engine_open_on(struct engine *e, const char *backend, const char *devices, int threads);
/* The same in one of the processes of a cluster, for the devices of its task. */
bool engine_open_task(struct engine *e, const char *backend, const struct target *target,
                      const struct transport *transport, int threads);
void engine_close(struct engine *e);

/* What a model is compiled for. */
struct layout {
  int towers;
  const char *strategy, *devices; /* "mirrored", "cpu:0-1" */
  const char *parameter_device;   /* or NULL */
};

/* Asks for the layout and a batch of `rows` in g's header, where the passes read it; that variables of more than 8
 * bytes are cut into parts where that is done; and that no batch is refused. */
void layout_set(struct graph *g, const struct layout *l, int64_t rows, struct diags *d);
/* "3 towers, mirrored on cpu:0-1" */
const char *layout_text(struct arena *a, const struct layout *l);
/* All strategies on 1 to 4 devices, and on clusters of up to 3 workers; how many. */
enum { MAX_LAYOUTS = 32 };
int layouts_of(int towers, struct layout *out);

/* Verified passes from g's stage to the end, and the verified plan. NULL after errors in `d`. */
struct plan *engine_plan(struct arena *a, struct graph *g, struct diags *d);
/* `steps` runs. Variables are set before and read back after, each copy under its own name; `outputs`, which may
 * be NULL, gets the outputs of the last run that have a value. False after errors in `d`. */
bool engine_run(struct engine *e, const struct plan *p, const struct values *inputs, struct values *variables,
                struct values *outputs, int steps, struct diags *d);

/* A plan with its inputs; `outputs`, which may be NULL, gets those of its last run. */
struct engine_job {
  const struct plan *plan;
  const struct values *inputs;
  struct values *outputs;
  int steps;
};
enum { ENGINE_JOBS = 8 };
/* As engine_run, of several plans in one session, one job behind the other. A plan is loaded when its first job comes,
 * and stays. The first one has all variables that are set; what later ones add starts as its primary. */
bool engine_run_jobs(struct engine *e, const struct engine_job *jobs, int count, struct values *variables,
                     struct diags *d);

#endif
