/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: compiled by the plugin, and executed with what lies in the cells of their operands. */
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

/* --- options of the compiler, a CompileOptionsProto as bytes --- */

enum { WIRE_NUMBER = 0, WIRE_BYTES = 2 };

static void put_number(struct str *s, uint64_t v) {
  for (; v > 127; v >>= 7) str_putc(s, (char)(v | 128));
  str_putc(s, (char)v);
}

static void put_field(struct str *s, int field, uint64_t v) {
  put_number(s, (uint64_t)field << 3 | WIRE_NUMBER);
  put_number(s, v);
}

static void put_message(struct str *s, int field, const struct str *message) {
  put_number(s, (uint64_t)field << 3 | WIRE_BYTES);
  put_number(s, message->len);
  str_putn(s, message->data, message->len);
}

/* XLA's CPU backend leaves NaN out of the extremes of a reduction, unless it is told not to. */
static const char fast_extremes[] = "xla_cpu_enable_fast_min_max";

/* An option of the compiler by its name: a bool that is false. */
static void put_off(struct arena *a, struct str *out, const char *name) {
  struct str text = str_make(a), value = str_make(a), option = str_make(a);
  str_put(&text, name);
  put_field(&value, 2, 0);
  put_message(&option, 1, &text);
  put_message(&option, 2, &value);
  put_message(out, 7, &option);
}

/* One replica on each of these devices, of one partition. */
static struct str compile_options(struct arena *a, const struct pjrt_engine *e, const struct plan_module *m,
                                  bool exact_extremes) {
  struct str ids = str_make(a), computation = str_make(a), assignment = str_make(a), build = str_make(a),
             all = str_make(a);
  for (int i = 0; i < m->ndevices; i++) put_number(&ids, (uint64_t)e->devices[m->devices[i]].id);
  put_message(&computation, 1, &ids);
  put_field(&assignment, 1, (uint64_t)m->ndevices);
  put_field(&assignment, 2, 1);
  put_message(&assignment, 3, &computation);
  put_field(&build, 1, UINT64_MAX); /* device_ordinal: -1 */
  put_field(&build, 4, (uint64_t)m->ndevices);
  put_field(&build, 5, 1);
  put_message(&build, 9, &assignment);
  put_message(&all, 3, &build);
  if (exact_extremes) put_off(a, &all, fast_extremes);
  return all;
}

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

/* The plugin's error, or NULL and an executable. */
static void *compile_with(struct pjrt_engine *e, const struct plan_module *m, const struct str *options,
                          void **executable) {
  struct pjrt_code code = {.struct_size = sizeof code,
                           .code = m->text,
                           .code_size = m->length,
                           .format = "mlir",
                           .format_size = 4};
  struct pjrt_Client_Compile call =
      PJRT_ARGS(Client_Compile, .client = e->client, .program = &code, .compile_options = options->data,
                .compile_options_size = options->len);
  void *error = pjrt_invoke(e->plugin, CALL_Client_Compile, &call);
  *executable = call.executable;
  return error;
}

/* A plugin of another version may not know an option of XLA's, and says so by its name: it goes without. */
static void *compile_module(struct pjrt_engine *e, const struct plan_module *m, struct diags *d) {
  void *executable;
  const char *why = NULL;
  for (int exact = e->is_cpu; exact >= 0; exact--) {
    struct str options = compile_options(d->arena, e, m, exact);
    void *error = compile_with(e, m, &options, &executable);
    if (!error) return executable;
    why = pjrt_error_text(d->arena, e->plugin, error);
    if (!exact || !strstr(why, fast_extremes)) break;
  }
  diag_error(d, LOC_NONE, "PJRT plugin %s cannot compile the graph for %s: %s", e->plugin->file,
             e->devices[m->devices[0]].text, why);
  return NULL;
}

static void destroy_executable(const struct pjrt_engine *e, void *executable) {
  struct pjrt_LoadedExecutable_Destroy args = PJRT_ARGS(LoadedExecutable_Destroy, .executable = executable);
  void *error = pjrt_invoke(e->plugin, CALL_LoadedExecutable_Destroy, &args);
  if (error) pjrt_error_drop(e->plugin, error);
}

static void *ask_memory(const struct pjrt_engine *e, void *loaded, struct module_memory *out) {
  struct pjrt_LoadedExecutable_GetExecutable get =
      PJRT_ARGS(LoadedExecutable_GetExecutable, .loaded_executable = loaded);
  void *error = pjrt_invoke(e->plugin, CALL_LoadedExecutable_GetExecutable, &get);
  if (error) return error;
  struct pjrt_Executable_GetCompiledMemoryStats stats =
      PJRT_ARGS(Executable_GetCompiledMemoryStats, .executable = get.executable);
  struct pjrt_Executable_Destroy destroy = PJRT_ARGS(Executable_Destroy, .executable = get.executable);
  error = pjrt_invoke(e->plugin, CALL_Executable_GetCompiledMemoryStats, &stats);
  void *other = pjrt_invoke(e->plugin, CALL_Executable_Destroy, &destroy);
  if (other) pjrt_error_drop(e->plugin, other);
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
  void *loaded = compile_module(e, m, d);
  if (!loaded) return false;
  void *error = ask_memory(e, loaded, out);
  if (error)
    diag_error(d, LOC_NONE, "PJRT plugin %s does not say what memory the program needs: %s", e->plugin->file,
               pjrt_error_text(d->arena, e->plugin, error));
  destroy_executable(e, loaded);
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
  l->executable = compile_module(e, step->module, d);
  if (!l->executable) return false;
  l->next = e->loaded;
  e->loaded = l;
  c->kind = COMMAND_CALL;
  c->call = execute;
  c->state = l;
  return true;
}

void pjrt_close_modules(struct pjrt_engine *e) {
  for (struct pjrt_loaded *l = e->loaded; l; l = l->next) destroy_executable(e, l->executable);
  e->loaded = NULL;
}
