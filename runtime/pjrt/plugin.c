/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins: the library, its table of calls, and errors in its own words. */
#include "runtime/pjrt/engine.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

enum { MAX_PLUGINS = 8 };

static struct loaded_plugin {
  char file[1024];
  struct pjrt_plugin plugin;
} loaded_plugins[MAX_PLUGINS];
static int nloaded;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

typedef const struct pjrt_table *get_table_fn(void);
typedef void *call_plugin_fn(void *args);

/* Calls that dgc can do without; it asks for them with pjrt_has. */
static bool is_optional(enum pjrt_call call) {
  return call == CALL_Device_MemoryStats || call == CALL_Executable_Serialize ||
         call == CALL_Executable_DeserializeAndLoad || call == CALL_Executable_GetCompiledMemoryStats;
}

bool pjrt_has(const struct pjrt_plugin *p, enum pjrt_call call) {
  size_t end = sizeof(struct pjrt_table) + ((size_t)call + 1) * sizeof(void *);
  return p->table->struct_size >= end && p->table->calls[call];
}

void *pjrt_invoke(const struct pjrt_plugin *p, enum pjrt_call call, void *args) {
  call_plugin_fn *fn;
  memcpy(&fn, &p->table->calls[call], sizeof fn);
  return fn(args);
}

static void destroy_error(const struct pjrt_plugin *p, void *error) {
  struct pjrt_Error_Destroy args = PJRT_ARGS(Error_Destroy, .error = error);
  void (*destroy)(void *);
  memcpy(&destroy, &p->table->calls[CALL_Error_Destroy], sizeof destroy);
  destroy(&args);
}

const char *pjrt_error_text(struct arena *a, const struct pjrt_plugin *p, void *error) {
  struct pjrt_Error_Message args = PJRT_ARGS(Error_Message, .error = error);
  void (*message)(void *);
  memcpy(&message, &p->table->calls[CALL_Error_Message], sizeof message);
  message(&args);
  char *text = arena_strndup(a, args.message ? args.message : "", args.message ? args.message_size : 0);
  for (char *c = text; *c; c++)
    if (*c == '\n') *c = *(c + 1) ? ' ' : '\0';
  destroy_error(p, error);
  return text;
}

static const struct {
  enum pjrt_call place;
  const char *name;
} calls[] = {
#define CALL(place, name, fields) {CALL_##name, #name},
#include "runtime/pjrt/calls.def"
#undef CALL
};

/* What is wrong with the table, in a line; NULL: nothing. */
static const char *check_table(struct arena *a, const struct pjrt_plugin *p) {
  const struct pjrt_table *t = p->table;
  if (!t) return "GetPjrtApi gives nothing";
  if (t->struct_size < sizeof(struct pjrt_table)) return "its table of calls is too short to hold a version";
  if (t->version.major_version != PJRT_MAJOR)
    return arena_printf(a, "its interface has version %d.%d, and dgc knows version %d",
                        t->version.major_version, t->version.minor_version, PJRT_MAJOR);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    if (!is_optional(calls[i].place) && !pjrt_has(p, calls[i].place))
      return arena_printf(a, "its table of calls has no PJRT_%s", calls[i].name);
  return NULL;
}

static bool start(struct pjrt_plugin *p, struct diags *d) {
  struct pjrt_Plugin_Initialize args = PJRT_ARGS(Plugin_Initialize, .extensions = NULL);
  void *error = pjrt_invoke(p, CALL_Plugin_Initialize, &args);
  p->initialised = !error;
  if (error) diag_error(d, LOC_NONE, "PJRT plugin %s: %s", p->file, pjrt_error_text(d->arena, p, error));
  return !error;
}

static bool open_plugin(struct pjrt_plugin *p, struct diags *d) {
  void *library = dlopen(p->file, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    diag_error(d, LOC_NONE, "PJRT plugin %s cannot be loaded (%s)", p->file, why ? why : "unknown error");
    return false;
  }
  void *address = dlsym(library, "GetPjrtApi");
  get_table_fn *get;
  memcpy(&get, &address, sizeof get);
  if (!address) {
    diag_error(d, LOC_NONE, "%s is no PJRT plugin: it has no GetPjrtApi", p->file);
    return false;
  }
  p->table = get();
  const char *wrong = check_table(d->arena, p);
  if (wrong) diag_error(d, LOC_NONE, "PJRT plugin %s cannot be used: %s", p->file, wrong);
  return !wrong && start(p, d);
}

const struct pjrt_plugin *pjrt_load(const char *file, struct diags *d) {
  const struct pjrt_plugin *found = NULL;
  pthread_mutex_lock(&loading);
  for (int i = 0; i < nloaded && !found; i++)
    if (strcmp(loaded_plugins[i].file, file) == 0) found = &loaded_plugins[i].plugin;
  struct loaded_plugin *next = &loaded_plugins[nloaded];
  bool fits = nloaded < MAX_PLUGINS && strlen(file) < sizeof next->file;
  if (!found && !fits)
    diag_error(d, LOC_NONE, "PJRT plugin %s: there are too many, or the name is too long", file);
  if (!found && fits) {
    memcpy(next->file, file, strlen(file) + 1);
    next->plugin = (struct pjrt_plugin){.file = next->file};
    if (open_plugin(&next->plugin, d)) found = &loaded_plugins[nloaded++].plugin;
  }
  pthread_mutex_unlock(&loading);
  return found;
}
