/* SPDX-License-Identifier: Apache-2.0 */
/* Words to devices. */
#include "session/device_words.h"

#include "runtime/backend.h"

#include <string.h>

/* Appends every GPU; how many there are, and if none, why. */
static int put_gpus(struct dgc_session *s, struct str *out, const char **why) {
  struct device_info *info = NULL;
  int count = 0;
  *why = "this build has no backend for GPUs";
  for (int i = 0; backends[i] && !count; i++)
    if (strcmp(backends[i]->kind, "gpu") == 0 && backends[i]->list)
      count = backends[i]->list(s->call, NULL, &info, why);
  for (int i = 0; i < count; i++) str_printf(out, "%sgpu:%d", out->len ? "," : "", info[i].index);
  return count;
}

static bool is_word(const char *entry, size_t length, const char *word) {
  return length == strlen(word) && strncmp(entry, word, length) == 0;
}

enum dgc_status session_name_devices(struct dgc_session *s) {
  struct str out = str_make(s->arena);
  bool changed = false;
  const char *why;
  for (const char *p = s->options.devices; p && *p; p += *p == ',') {
    const char *entry = p + strspn(p, " ");
    p += strcspn(p, ",");
    size_t length = (size_t)(p - entry);
    while (length && entry[length - 1] == ' ') length--;
    bool gpu = is_word(entry, length, "gpu"), all = is_word(entry, length, "all");
    changed |= gpu || all || is_word(entry, length, "cpu");
    if (all || is_word(entry, length, "cpu")) str_printf(&out, "%scpu:0", out.len ? "," : "");
    if (!all && !gpu && !is_word(entry, length, "cpu"))
      str_printf(&out, "%s%.*s", out.len ? "," : "", (int)length, entry);
    if ((gpu || all) && !put_gpus(s, &out, &why) && gpu)
      return session_fail(s, DGC_RUNTIME, "there is no GPU on this machine%s%s", why ? ": " : "",
                          why ? why : "");
  }
  if (changed) s->options.devices = out.data;
  return DGC_OK;
}
