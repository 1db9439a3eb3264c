/* SPDX-License-Identifier: Apache-2.0 */
/* Settings, failures on demand, and what has to be destroyed. Callers hold their library's lock. */
#include "tests/simulated_cuda/common.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char kind_context[] = "context", kind_stream[] = "stream", kind_event[] = "event",
           kind_module[] = "module", kind_function[] = "function", kind_graph[] = "graph",
           kind_exec[] = "executable graph", kind_memory[] = "device memory",
           kind_host_memory[] = "host memory", kind_program[] = "program", kind_handle[] = "cuBLAS handle",
           kind_communicator[] = "NCCL communicator";

const char *sim_setting(const char *name, const char *fallback) {
  char full[64];
  snprintf(full, sizeof full, "DGC_SIMULATED_%s", name);
  const char *value = getenv(full);
  return value && *value ? value : fallback;
}

long long sim_number(const char *name, long long fallback) {
  const char *value = sim_setting(name, NULL);
  if (!value) return fallback;
  char *end;
  long long n = strtoll(value, &end, 0);
  if (*end || n < 0) {
    fprintf(stderr, "DGC_SIMULATED_%s=%s is not a number\n", name, value);
    exit(2);
  }
  return n;
}

int sim_version(const char *name, const char *fallback) {
  int major = 0, minor = 0;
  sscanf(sim_setting(name, fallback), "%d.%d", &major, &minor);
  return 1000 * major + 10 * minor;
}

bool sim_listed(const char *list, const char *name) {
  size_t n = strlen(name);
  for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
    if (strncmp(p, name, n) == 0 && (p[n] == 0 || p[n] == ',')) return true;
  return false;
}

static struct {
  const char *name; /* one of __func__ */
  long long calls;
} counts[128];

static void count_call(const char *entry_point) {
  size_t i = 0;
  while (counts[i].name && strcmp(counts[i].name, entry_point) != 0) i++;
  if (i < sizeof counts / sizeof *counts - 1) counts[i].name = entry_point, counts[i].calls++;
}

static void write_counts(void) {
  const char *path = sim_setting("COUNT", NULL);
  FILE *f = path && counts[0].name ? fopen(path, "a") : NULL;
  for (size_t i = 0; f && counts[i].name; i++) fprintf(f, "%s %lld\n", counts[i].name, counts[i].calls);
  if (f) fclose(f);
}

bool sim_fails(const char *entry_point) {
  count_call(entry_point);
  static struct {
    char name[48];
    long long left;
  } * failures;
  static int count = -1;
  if (count < 0) {
    count = 0;
    const char *p = sim_setting("FAIL", "");
    failures = calloc(strlen(p) + 1, sizeof *failures);
    for (; *p; p += strcspn(p, ","), p += *p == ',')
      if (sscanf(p, "%47[^:,]:%lld", failures[count].name, &failures[count].left) == 2) count++;
  }
  for (int i = 0; i < count; i++)
    if (strcmp(failures[i].name, entry_point) == 0 && --failures[i].left == 0) return true;
  return false;
}

void sim_complain(const char *format, ...) {
  char line[512];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  fprintf(stderr, "simulated GPU: %s\n", line);
}

enum { MAGIC = 0x51407ec7, BURIED = 1024 };

static struct object live = {.next = &live, .previous = &live};
static unsigned serial;

void object_begin(struct object *o, const char *kind, int device) {
  *o = (struct object){MAGIC, kind, device, 0, ++serial, &live, live.previous};
  o->previous->next = o;
  live.previous = o;
}

bool object_is(const struct object *o, const char *kind) { return o && o->magic == MAGIC && o->kind == kind; }

void object_end(struct object *o) {
  o->magic = 0;
  o->previous->next = o->next;
  o->next->previous = o->previous;
}

void object_bury(struct object *o) {
  static struct object *buried[BURIED];
  static unsigned place;
  free(buried[place % BURIED]);
  buried[place++ % BURIED] = o;
}

__attribute__((destructor)) static void report(void) {
  write_counts();
  if (!sim_number("LEAKS", 0) || live.next == &live) return;
  for (struct object *o = live.next; o != &live; o = o->next)
    if (o->device < 0)
      sim_complain("not destroyed: %s, object %u", o->kind, o->serial);
    else
      sim_complain("not destroyed: %s, object %u, of device %d", o->kind, o->serial, o->device);
  fflush(NULL);
  _exit(66);
}
