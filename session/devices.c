/* SPDX-License-Identifier: Apache-2.0 */
/* The machine: its devices, and the backend that is to run them. */
#include "session/devices.h"

#include "session/settle.h"
#include "session/state/settlement.h"

#include "runtime/devices.h"
#include "runtime/mpi/transport.h"

#include <string.h>

static enum dgc_status no_backend(struct dgc_session *s) {
  struct str names = str_make(s->call);
  for (int i = 0; backends[i]; i++) str_printf(&names, "%s%s", i ? ", " : "", backends[i]->name);
  return session_fail(s, DGC_USAGE, "there is no backend '%s' in this build: it has %s", s->options.backend,
                      names.data);
}

enum dgc_status session_backend(struct dgc_session *s, const struct backend **out) {
  *out = backend_find(s->options.backend);
  if (!*out) return no_backend(s);
  if (!s->options.backend) return DGC_OK;
  for (int i = 0; i < s->settlement->target.ndevices; i++)
    if (strcmp(s->settlement->target.devices[i].name.kind, (*out)->kind) == 0) return DGC_OK;
  return session_fail(s, DGC_USAGE, "backend %s runs %s devices, and none is among the devices", (*out)->name,
                      (*out)->kind);
}

static enum dgc_status look(struct dgc_session *s, struct dgc_machine *out) {
  if (!session_can_give(out)) return session_wrong_size(s);
  struct machine m = machine_look(s->arena);
  struct dgc_machine whole = {.cpu = m.cpu, .vectors = m.vectors, .cores = m.cores, .memory = m.memory};
  session_give(out, &whole, sizeof whole);
  return DGC_OK;
}

enum dgc_status dgc_machine(struct dgc_session *s, struct dgc_machine *out) { CALL(s, look(s, out)); }

static enum dgc_status list_gpus(struct dgc_session *s, const struct dgc_gpu **gpus, int *count,
                                 const char **why_none) {
  const char *why = "this build has no backend for GPUs";
  struct device_info *info = NULL;
  int n = 0;
  arena_reset(s->text);
  for (int i = 0; backends[i] && !n; i++)
    if (strcmp(backends[i]->kind, "gpu") == 0 && backends[i]->list)
      n = backends[i]->list(s->text, NULL, &info, &why);
  struct dgc_gpu *out = arena_new_array(s->text, (size_t)n, struct dgc_gpu);
  for (int i = 0; i < n; i++)
    out[i] = (struct dgc_gpu){arena_printf(s->text, "/gpu:%d", info[i].index), info[i].name, info[i].arch,
                              info[i].memory, info[i].simulated};
  *gpus = out;
  *count = n;
  if (why_none) *why_none = n ? NULL : why;
  return DGC_OK;
}

enum dgc_status dgc_gpus(struct dgc_session *s, const struct dgc_gpu **gpus, int *count,
                         const char **why_none) {
  CALL(s, list_gpus(s, gpus, count, why_none));
}

/* Of the plugin that an option or the environment names, if one does. */
static enum dgc_status list_plugin(struct dgc_session *s, const struct dgc_plugin_device **devices,
                                   int *count, const char **why_none) {
  struct device_info *info = NULL;
  const char *why = NULL;
  const struct backend *b = backend_find("pjrt");
  arena_reset(s->text);
  int n = b->list(s->text, s->options.pjrt_plugin, &info, &why);
  struct dgc_plugin_device *out = arena_new_array(s->text, (size_t)n, struct dgc_plugin_device);
  for (int i = 0; i < n; i++)
    out[i] = (struct dgc_plugin_device){arena_printf(s->text, "/pjrt:%d", info[i].index), info[i].name,
                                        info[i].arch, info[i].memory};
  *devices = out;
  *count = n;
  *why_none = why;
  return DGC_OK;
}

enum dgc_status dgc_plugin_devices(struct dgc_session *s, const struct dgc_plugin_device **devices,
                                   int *count, const char **why_none) {
  CALL(s, list_plugin(s, devices, count, why_none));
}

static enum dgc_status target_call(struct dgc_session *s) { CALL(s, session_settle(s)); }

bool dgc_device(struct dgc_session *s, int index, const char **name) {
  if (target_call(s) || index < 0 || index >= s->settlement->target.ndevices) return false;
  *name = s->settlement->target.devices[index].text;
  return true;
}

bool dgc_backend(int index, const char **name, const char **help) {
  for (int i = 0; i <= index; i++)
    if (!backends[i]) return false;
  *name = backends[index]->name;
  *help = backends[index]->help;
  return index >= 0;
}

static enum dgc_status find_mpi(struct dgc_session *s, const char **module, const char **why_none) {
  const char *name, *why;
  arena_reset(s->text);
  bool there = transport_there(s->text, &name, &why);
  *module = there ? name : NULL;
  if (why_none) *why_none = there ? NULL : why;
  return DGC_OK;
}

enum dgc_status dgc_mpi(struct dgc_session *s, const char **module, const char **why_none) {
  CALL(s, find_mpi(s, module, why_none));
}
