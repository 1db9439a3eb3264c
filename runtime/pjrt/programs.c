/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: what the plugin's compiler makes of modules. They are kept in the cache on disk, where the plugin can say
 * what they are as bytes, and found there by all that they were made of. */
#include "runtime/cache.h"
#include "runtime/pjrt/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* --- the cache --- */

/* A compiler for CPUs makes code for the one that it runs on. */
static void put_processor(struct str *key) {
  static const char *const lines[] = {"model name", "flags", "CPU implementer", "CPU part", "Features"};
  char text[8192], *rest = text;
  FILE *f = fopen("/proc/cpuinfo", "r");
  size_t size = f ? fread(text, 1, sizeof text - 1, f) : 0;
  if (f) fclose(f);
  text[size] = 0;
  for (char *line = strsep(&rest, "\n"); line && *line; line = strsep(&rest, "\n"))
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
      if (strncmp(line, lines[i], strlen(lines[i])) == 0) str_printf(key, "%s\n", line);
}

/* All that the plugin's compiler depends on: its library, which says of its version what it likes, the devices, and
 * what the environment tells XLA. */
static void put_plugin(struct str *key, const struct pjrt_engine *e, const struct plan_module *m) {
  static const char *const variables[] = {"XLA_FLAGS", "LIBTPU_INIT_ARGS"};
  struct pjrt_Client_PlatformVersion args = PJRT_ARGS(Client_PlatformVersion, .client = e->client);
  void *error = pjrt_invoke(e->plugin, CALL_Client_PlatformVersion, &args);
  if (error) pjrt_error_drop(e->plugin, error);
  str_put(key, "PJRT ");
  if (!error) str_putn(key, args.platform_version, args.platform_version_size);
  cache_put_library(key, e->plugin->table);
  for (int i = 0; i < m->ndevices; i++) str_printf(key, "\n%s", e->devices[m->devices[i]].kind);
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    const char *value = getenv(variables[i]);
    str_printf(key, "\n%s=%s", variables[i], value ? value : "");
  }
  str_putc(key, '\n');
  if (e->is_cpu) put_processor(key);
}

/* NULL: it is not there, or the plugin does not take it. */
static void *load(struct arena *a, const struct pjrt_engine *e, const char *folder, const struct str *key) {
  size_t size;
  const char *bytes = cache_read(a, folder, key, &size);
  struct pjrt_Executable_DeserializeAndLoad args =
      PJRT_ARGS(Executable_DeserializeAndLoad, .client = e->client, .serialized_executable = bytes,
                .serialized_executable_size = size);
  void *error = bytes ? pjrt_invoke(e->plugin, CALL_Executable_DeserializeAndLoad, &args) : NULL;
  if (error) pjrt_error_drop(e->plugin, error);
  return bytes && !error ? args.loaded_executable : NULL;
}

/* A plugin that can't say what the program is keeps none. */
static void store(const struct pjrt_engine *e, const char *folder, const struct str *key, void *loaded) {
  void *executable, *error = pjrt_program_open(e, loaded, &executable);
  struct pjrt_Executable_Serialize args = PJRT_ARGS(Executable_Serialize, .executable = executable);
  if (!error) {
    error = pjrt_invoke(e->plugin, CALL_Executable_Serialize, &args);
    if (!error) cache_write(folder, key, args.serialized_bytes, args.serialized_bytes_size);
    if (!error) args.serialized_executable_deleter(args.serialized_executable);
    pjrt_program_close(e, executable);
  }
  if (error) pjrt_error_drop(e->plugin, error);
  cache_trim(folder);
}

/* --- compiling --- */

/* The plugin's error, or NULL and a program. */
static void *compile(const struct pjrt_engine *e, const struct plan_module *m, const struct str *options,
                     void **loaded) {
  struct pjrt_code code = {.struct_size = sizeof code,
                           .code = m->text,
                           .code_size = m->length,
                           .format = "mlir",
                           .format_size = 4};
  struct pjrt_Client_Compile call =
      PJRT_ARGS(Client_Compile, .client = e->client, .program = &code, .compile_options = options->data,
                .compile_options_size = options->len);
  void *error = pjrt_invoke(e->plugin, CALL_Client_Compile, &call);
  *loaded = call.executable;
  return error;
}

/* Likewise, from the cache if it is there. */
static void *find_or_compile(struct arena *a, const struct pjrt_engine *e, const struct plan_module *m,
                             const struct str *options, void **loaded) {
  bool kept = pjrt_has(e->plugin, CALL_Executable_Serialize) &&
              pjrt_has(e->plugin, CALL_Executable_DeserializeAndLoad);
  const char *folder = kept ? cache_folder(a) : NULL;
  if (!folder) return compile(e, m, options, loaded);
  struct str key = str_make(a);
  put_plugin(&key, e, m);
  str_putn(&key, options->data, options->len);
  str_putn(&key, m->text, m->length);
  *loaded = load(a, e, folder, &key);
  if (*loaded) return NULL;
  void *error = compile(e, m, options, loaded);
  if (!error) store(e, folder, &key, *loaded);
  return error;
}

/* A plugin of another version may not know an option of XLA's, and says so by its name: it goes without. */
void *pjrt_program_make(const struct pjrt_engine *e, const struct plan_module *m, struct diags *d) {
  void *loaded;
  const char *why = NULL;
  for (int exact = e->is_cpu; exact >= 0; exact--) {
    struct str options = compile_options(d->arena, e, m, exact);
    void *error = find_or_compile(d->arena, e, m, &options, &loaded);
    if (!error) return loaded;
    why = pjrt_error_text(d->arena, e->plugin, error);
    if (!exact || !strstr(why, fast_extremes)) break;
  }
  diag_error(d, LOC_NONE, "PJRT plugin %s cannot compile the graph for %s: %s", e->plugin->file,
             e->devices[m->devices[0]].text, why);
  return NULL;
}

void *pjrt_program_open(const struct pjrt_engine *e, void *loaded, void **executable) {
  struct pjrt_LoadedExecutable_GetExecutable args =
      PJRT_ARGS(LoadedExecutable_GetExecutable, .loaded_executable = loaded);
  void *error = pjrt_invoke(e->plugin, CALL_LoadedExecutable_GetExecutable, &args);
  *executable = args.executable;
  return error;
}

void pjrt_program_close(const struct pjrt_engine *e, void *executable) {
  struct pjrt_Executable_Destroy args = PJRT_ARGS(Executable_Destroy, .executable = executable);
  void *error = pjrt_invoke(e->plugin, CALL_Executable_Destroy, &args);
  if (error) pjrt_error_drop(e->plugin, error);
}

void pjrt_program_destroy(const struct pjrt_engine *e, void *loaded) {
  struct pjrt_LoadedExecutable_Destroy args = PJRT_ARGS(LoadedExecutable_Destroy, .executable = loaded);
  void *error = pjrt_invoke(e->plugin, CALL_LoadedExecutable_Destroy, &args);
  if (error) pjrt_error_drop(e->plugin, error);
}
