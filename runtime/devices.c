/* SPDX-License-Identifier: Apache-2.0 */
/* The machine, and the backends of this build. */
#include "runtime/devices.h"

#include "runtime/backend.h"
#include "runtime/workers.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct backend *const backends[] = {
#define BACKEND(name) &backend_##name,
#include "runtime/backends.def"
#undef BACKEND
    NULL,
};

const struct backend *backend_find(const char *name) {
  if (!name) return backends[0];
  for (int i = 0; backends[i]; i++)
    if (strcmp(backends[i]->name, name) == 0) return backends[i];
  return NULL;
}

bool backend_runs_modules(const char *kind) {
  for (int i = 0; backends[i]; i++)
    if (backends[i]->runs_modules && strcmp(backends[i]->kind, kind) == 0) return true;
  return false;
}

/* The value of the first "key : value" line of /proc/cpuinfo with one of these keys. */
static const char *cpu_model(struct arena *a) {
  char line[256];
  const char *model = NULL;
  FILE *f = fopen("/proc/cpuinfo", "r");
  while (f && !model && fgets(line, sizeof line, f)) {
    char *colon = strchr(line, ':');
    if (!colon || (strncmp(line, "model name", 10) != 0 && strncmp(line, "Processor", 9) != 0)) continue;
    colon += 1 + strspn(colon + 1, " \t");
    model = arena_strndup(a, colon, strcspn(colon, "\n"));
  }
  if (f) fclose(f);
  return model ? model : "unknown processor";
}

static const char *vector_kind(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return "avx512f";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "avx2";
  return "sse2";
#elif defined(__aarch64__)
  return "neon";
#else
  return "scalar";
#endif
}

struct machine machine_look(struct arena *a) {
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return (struct machine){
      .cpu = cpu_model(a),
      .vectors = vector_kind(),
      .cores = cpu_cores(),
      .memory = pages > 0 && size > 0 ? (int64_t)pages * size : 0,
  };
}
