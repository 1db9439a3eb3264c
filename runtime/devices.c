/* The machine, the backends of this build, and memory of the host. */
#include "runtime/devices.h"

#include "runtime/backend.h"
#include "runtime/workers.h"

#include <stdio.h>
#include <stdlib.h>
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

/* Whole pages from 2 MB on, so that the system may use large ones. */
void *host_alloc(size_t bytes) {
  size_t align = bytes >= (size_t)2 << 20 ? (size_t)2 << 20 : 64;
  if (bytes > SIZE_MAX / 4) return NULL;
  return aligned_alloc(align, bytes ? (bytes + align - 1) / align * align : align);
}

void host_free(void *data) { free(data); }

void *host_device_alloc(void *self, int device, size_t bytes) {
  (void)self, (void)device;
  return host_alloc(bytes);
}

void host_device_free(void *self, int device, void *data, size_t bytes) {
  (void)self, (void)device, (void)bytes;
  host_free(data);
}

bool host_device_copy(void *self, void *to, int to_device, const void *from, int from_device, size_t bytes) {
  (void)self, (void)to_device, (void)from_device;
  if (bytes) memcpy(to, from, bytes);
  return true;
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
