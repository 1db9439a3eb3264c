/* SPDX-License-Identifier: Apache-2.0 */
/* LLVM finds out a processor's name and features from these CPUID leaves, and asks the system which registers
 * it saves; on AArch64 from what /proc/cpuinfo says. What differs between the cores of an x86 is left out. */
#include "runtime/cpu/host.h"

#include "runtime/cpu/llvm.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A processor that DGC_CPU may name: LLVM's name and what it has; `here`: whether this machine has all that, too. */
struct processor {
  const char *name;
  struct vector_registers vectors;
  bool here;
};

static const char *asked_processor(void) {
  const char *name = getenv("DGC_CPU");
  return name && *name ? name : NULL;
}

static const struct processor *find_processor(const struct processor *all, int count, const char *name) {
  for (int i = 0; i < count; i++)
    if (strcmp(all[i].name, name) == 0) return &all[i];
  return NULL;
}

static bool choose_processor(const struct processor *all, int count, const char **name, struct diags *d) {
  *name = asked_processor();
  if (!*name) return true;
  const struct processor *p = find_processor(all, count, *name);
  if (p && p->here) return true;
  struct str known = str_make(d->arena);
  for (int i = 0; i < count; i++)
    if (all[i].here) str_printf(&known, "%s%s", known.len ? ", " : "", all[i].name);
  diag_error(d, LOC_NONE, "cpu: this machine cannot compute as DGC_CPU=%s", *name);
  diag_help(d, LOC_NONE, known.len ? "it can as %s; without DGC_CPU as itself" : "unset DGC_CPU", known.data);
  return false;
}

#if defined(__x86_64__)

#include <cpuid.h>

#define MACHINE "x86-64"

enum { PROCESSORS = 5 };

static void list_processors(struct processor *out) {
  const struct vector_registers sse = {16, 16, false}, avx2 = {32, 16, true}, avx512 = {64, 32, true};
  bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
            __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl");
  const struct processor all[PROCESSORS] = {{"x86-64", sse, true},
                                            {"nehalem", sse, v2},
                                            {"x86-64-v3", avx2, v3},
                                            {"haswell", avx2, v3},
                                            {"skylake-avx512", avx512, v4}};
  memcpy(out, all, sizeof all);
}

enum { EAX = 1, EBX = 2, ECX = 4, EDX = 8, ALL = 15 };

static const struct {
  uint32_t leaf, subleaf;
  int registers;
} leaves[] = {
    {0, 0, EBX | ECX | EDX}, /* vendor */
    {1, 0, EAX | ECX | EDX}, {7, 0, ALL},    {7, 1, ALL},    {7, 2, EDX},    {0xd, 0, EAX},
    {0xd, 1, EAX},           {0x14, 0, EBX}, {0x19, 0, EBX}, {0x24, 0, EBX}, {0x80000001, 0, ECX | EDX},
    {0x80000008, 0, EBX},
};

/* What the processor has answered, once: a virtual machine may take tens of microseconds for each leaf. */
enum { LEAVES = sizeof leaves / sizeof *leaves };
static struct {
  bool known;
  uint32_t r[4];
} answers[LEAVES];
static uint32_t saved_registers[2];
static pthread_once_t asked = PTHREAD_ONCE_INIT;

static bool saves_registers(size_t i) { return leaves[i].leaf == 1 && (answers[i].r[2] & UINT32_C(1) << 27); }

static void ask_processor(void) {
  for (size_t i = 0; i < LEAVES; i++) {
    uint32_t *r = answers[i].r;
    answers[i].known = __get_cpuid_count(leaves[i].leaf, leaves[i].subleaf, &r[0], &r[1], &r[2], &r[3]);
    if (answers[i].known && saves_registers(i))
      __asm__("xgetbv" : "=a"(saved_registers[0]), "=d"(saved_registers[1]) : "c"(0));
  }
}

static void put_processor(struct str *s) {
  pthread_once(&asked, ask_processor);
  for (size_t i = 0; i < LEAVES; i++) {
    if (!answers[i].known) continue;
    str_printf(s, " %" PRIx32 ".%" PRIx32, leaves[i].leaf, leaves[i].subleaf);
    for (int k = 0; k < 4; k++)
      if (leaves[i].registers >> k & 1) str_printf(s, ":%" PRIx32, answers[i].r[k]);
    if (saves_registers(i))
      str_printf(s, " xcr0:%" PRIx32 ":%" PRIx32, saved_registers[1], saved_registers[0]);
  }
}

#elif defined(__aarch64__)

#include <stdio.h>
#include <sys/auxv.h>

#define MACHINE "aarch64"

enum { PROCESSORS = 1 };

/* Vectors have 128 bits in all that is compiled: SVE's are not used. */
static void list_processors(struct processor *out) {
  *out = (struct processor){"generic", {16, 32, true}, true};
}

/* The lines of /proc/cpuinfo that LLVM reads, of each core that differs from the one before; read once. */
static char lines[4096];
static pthread_once_t asked = PTHREAD_ONCE_INIT;

static void keep_line(const char *line) {
  static const char *const starts[] = {"CPU implementer", "CPU variant", "CPU part", "Features", "Hardware"};
  enum { STARTS = sizeof starts / sizeof *starts };
  static char last[STARTS][1024];
  for (size_t i = 0; i < STARTS; i++) {
    if (strncmp(line, starts[i], strlen(starts[i])) != 0 || strcmp(line, last[i]) == 0) continue;
    snprintf(last[i], sizeof last[i], "%s", line);
    strncat(lines, line, sizeof lines - strlen(lines) - 1);
  }
}

static void ask_processor(void) {
  char line[1024];
  FILE *f = fopen("/proc/cpuinfo", "r");
  while (f && fgets(line, sizeof line, f)) keep_line(line);
  if (f) fclose(f);
}

static void put_processor(struct str *s) {
  pthread_once(&asked, ask_processor);
  str_printf(s, " %lx:%lx\n%s", getauxval(AT_HWCAP), getauxval(AT_HWCAP2), lines);
}

#endif

#ifdef MACHINE

bool host_processor(const char **name, struct diags *d) {
  struct processor all[PROCESSORS];
  list_processors(all);
  return choose_processor(all, PROCESSORS, name, d);
}

/* The last of the list that it has. */
struct vector_registers host_vectors(void) {
  struct processor all[PROCESSORS];
  list_processors(all);
  const char *name = asked_processor();
  const struct processor *p = name ? find_processor(all, PROCESSORS, name) : NULL;
  for (int i = 0; i < PROCESSORS && !name; i++)
    if (all[i].here) p = &all[i];
  return p ? p->vectors : all[0].vectors;
}

const char *host_identity(struct arena *a) {
  const char *library = getenv("DGC_LLVM");
  struct stat file = {0};
  struct str s = str_make(a);
  if (library == NULL || library[0] == 0) library = DGC_LLVM_LIBRARY;
  str_printf(&s, "LLVM %s", LLVM_VERSION_STRING);
  if (stat(library, &file) == 0)
    str_printf(&s, " %" PRId64 " bytes of %" PRId64, (int64_t)file.st_size, (int64_t)file.st_mtime);
  str_put(&s, "\n" MACHINE);
  put_processor(&s);
  if (asked_processor()) str_printf(&s, " as %s", asked_processor());
  str_putc(&s, '\n');
  return s.data;
}

#else

bool host_processor(const char **name, struct diags *d) { return choose_processor(NULL, 0, name, d); }

struct vector_registers host_vectors(void) {
  return (struct vector_registers){16, 16, false};
}

const char *host_identity(struct arena *a) {
  (void)a;
  return NULL;
}

#endif
