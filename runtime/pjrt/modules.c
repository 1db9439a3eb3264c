/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: executed with what lies in the cells of their operands. */
#include "base/clock.h"
#include "runtime/pjrt/engine.h"

#include <stdlib.h>
#include <string.h>

struct pjrt_loaded {
  struct pjrt_loaded *next;
  struct pjrt_engine *engine;
  const struct plan_module *module; /* until its plan goes; what is behind it here stays */
  const int *devices;
  int ndevices;
  void *executable;
  /* By device, then by argument or result. */
  void **arguments, **results;
  bool *own; /* arguments that are destroyed behind the execution */
  void ***argument_lists, ***result_lists;
  void **events; /* by device */
};

/* --- execution --- */

static bool take_arguments(struct pjrt_loaded *l, void *const *args) {
  const struct plan_module *m = l->module;
  for (int d = 0; d < m->ndevices; d++)
    for (int i = 0; i < m->narguments; i++) {
      const struct module_value *v = &m->arguments[i];
      struct pjrt_cell *c = args[v->operand + (v->count > 1 ? d : 0)];
      int parts = v->split ? m->ndevices : 1, at = d * m->narguments + i;
      l->arguments[at] =
          pjrt_cell_buffer(l->engine, c, m->devices[d], &v->type, v->split ? d : 0, parts, &l->own[at]);
      if (!l->arguments[at]) return false;
    }
  return true;
}

static void give_back(struct pjrt_loaded *l) {
  for (int i = 0; i < l->module->ndevices * l->module->narguments; i++) {
    if (l->arguments[i] && l->own[i]) pjrt_buffer_destroy(l->engine, l->arguments[i]);
    l->arguments[i] = NULL;
  }
}

/* What the devices have for a result: all shares, or the one of the first; of a variable, to each its own. */
static void keep_result(struct pjrt_loaded *l, int result, void *const *args) {
  const struct plan_module *m = l->module;
  const struct module_value *v = &m->results[result];
  size_t bytes = (size_t)type_bytes(&v->type);
  void *parts[MAX_MODULE_DEVICES];
  for (int d = 0; d < m->ndevices; d++) parts[d] = l->results[d * m->nresults + result];
  int kept = v->split ? m->ndevices : v->count;
  for (int d = kept; d < m->ndevices; d++) pjrt_buffer_destroy(l->engine, parts[d]);
  if (v->split) pjrt_cell_hold(l->engine, args[v->operand], m->devices[0], m->ndevices, parts, bytes);
  for (int d = 0; d < kept && !v->split; d++)
    pjrt_cell_hold(l->engine, args[v->operand + d], m->devices[d], 1, &parts[d], bytes);
}

void pjrt_await_all(struct pjrt_engine *e) {
  struct pjrt_loaded *l = e->running;
  for (int i = 0; l && i < l->ndevices; i++) {
    if (l->events[i]) pjrt_await(e, l->devices[i], l->events[i]);
    l->events[i] = NULL;
  }
  e->running = NULL;
}

bool pjrt_all_ready(struct pjrt_engine *e) {
  const struct pjrt_loaded *l = e->running;
  for (int i = 0; l && i < l->ndevices && !e->failed; i++) {
    struct pjrt_Event_IsReady args = PJRT_ARGS(Event_IsReady, .event = l->events[i]);
    if (l->events[i] && PJRT(e, l->devices[i], Event_IsReady, &args) && !args.is_ready) return false;
  }
  return true;
}

/* The run before ends while the host prepares this one. */
static void execute(void *const *args, const void *state) {
  struct pjrt_loaded *l = (struct pjrt_loaded *)(uintptr_t)state;
  struct pjrt_engine *e = l->engine;
  const struct plan_module *m = l->module;
  if (e->failed) return;
  struct pjrt_execution options = {.struct_size = sizeof options, .launch_id = ++e->launches};
  struct pjrt_LoadedExecutable_Execute call =
      PJRT_ARGS(LoadedExecutable_Execute, .executable = l->executable, .options = &options,
                .argument_lists = (void *const *const *)l->argument_lists, .num_devices = (size_t)m->ndevices,
                .num_args = (size_t)m->narguments, .output_lists = (void **const *)l->result_lists,
                .device_complete_events = l->events);
  bool good = take_arguments(l, args);
  pjrt_await_all(e);
  if (good && PJRT(e, m->devices[0], LoadedExecutable_Execute, &call)) {
    e->running = l;
    for (int i = 0; i < m->nresults; i++) keep_result(l, i, args);
  }
  give_back(l);
}

/* --- loading --- */

static void *ask_memory(const struct pjrt_engine *e, void *loaded, struct module_memory *out) {
  void *executable, *error = pjrt_program_open(e, loaded, &executable);
  if (error) return error;
  struct pjrt_Executable_GetCompiledMemoryStats stats =
      PJRT_ARGS(Executable_GetCompiledMemoryStats, .executable = executable);
  error = pjrt_invoke(e->plugin, CALL_Executable_GetCompiledMemoryStats, &stats);
  pjrt_program_close(e, executable);
  *out = (struct module_memory){.arguments = stats.argument_size_in_bytes,
                                .results = stats.output_size_in_bytes,
                                .shared = stats.alias_size_in_bytes,
                                .temporary = stats.temp_size_in_bytes,
                                .code = stats.generated_code_size_in_bytes};
  return error;
}

bool pjrt_module_memory(void *self, const struct plan_module *m, struct module_memory *out, struct diags *d) {
  struct pjrt_engine *e = self;
  if (!pjrt_has(e->plugin, CALL_Executable_GetCompiledMemoryStats)) {
    diag_error(d, LOC_NONE, "PJRT plugin %s does not say what memory a program needs", e->plugin->file);
    return false;
  }
  void *loaded = pjrt_program_make(e, m, d);
  if (!loaded) return false;
  void *error = ask_memory(e, loaded, out);
  if (error)
    diag_error(d, LOC_NONE, "PJRT plugin %s does not say what memory the program needs: %s", e->plugin->file,
               pjrt_error_text(d->arena, e->plugin, error));
  pjrt_program_destroy(e, loaded);
  return !error;
}

static void make_lists(struct pjrt_loaded *l, struct arena *a) {
  const struct plan_module *m = l->module;
  size_t devices = (size_t)m->ndevices, narguments = (size_t)m->narguments, nresults = (size_t)m->nresults;
  l->arguments = arena_new_array(a, devices * narguments + 1, void *);
  l->own = arena_new_array(a, devices * narguments + 1, bool);
  l->results = arena_new_array(a, devices * nresults + 1, void *);
  l->argument_lists = arena_new_array(a, devices, void **);
  l->result_lists = arena_new_array(a, devices, void **);
  l->events = arena_new_array(a, devices, void *);
  for (size_t i = 0; i < devices; i++) {
    l->argument_lists[i] = l->arguments + i * narguments;
    l->result_lists[i] = l->results + i * nresults;
  }
}

bool pjrt_prepare(void *self, struct arena *a, const struct step *step, int device, struct command *c,
                  struct diags *d) {
  struct pjrt_engine *e = self;
  (void)a;
  if (step->kind != STEP_MODULE) {
    diag_error(d, LOC_NONE, "%s runs whole graphs, and not their steps", e->devices[device].text);
    return false;
  }
  struct pjrt_loaded *l = arena_new(e->arena, struct pjrt_loaded);
  const struct plan_module *m = step->module;
  *l = (struct pjrt_loaded){.engine = e, .module = m, .ndevices = m->ndevices};
  l->devices = arena_copy(e->arena, m->devices, (size_t)m->ndevices * sizeof *m->devices);
  make_lists(l, e->arena);
  l->executable = pjrt_program_make(e, step->module, d);
  if (!l->executable) return false;
  l->next = e->loaded;
  e->loaded = l;
  c->kind = COMMAND_CALL;
  c->call = execute;
  c->state = l;
  return true;
}

void pjrt_close_modules(struct pjrt_engine *e) {
  for (struct pjrt_loaded *l = e->loaded; l; l = l->next) pjrt_program_destroy(e, l->executable);
  e->loaded = NULL;
}
