/* SPDX-License-Identifier: Apache-2.0 */
/* Which transport there is. */
#include "runtime/mpi/shared.h"
#include "runtime/mpi/watch.h"

#include "base/clock.h"

#include <dlfcn.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* mpi.c, built for the MPI library that was there, and for any that has the standard's binary interface. */
static const char own_module[] = "dgc-mpi.so", abi_module[] = "dgc-mpi-abi.so", abi[] = "libmpi_abi.so.1";

/* Launchers' variables: how many processes, and which this one is. Whose library they are for is tried first. */
static const struct launcher {
  const char *size, *rank;
  bool abi;
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", false}, /* Open MPI */
    {"PMI_SIZE", "PMI_RANK", true},                          /* MPICH and its kin */
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", false},         /* a step of srun; a batch script is none */
};

static int number(const char *name) {
  const char *text = getenv(name);
  char *end;
  long value = text ? strtol(text, &end, 10) : -1;
  return text && *text && !*end && value >= 0 && value <= INT_MAX ? (int)value : -1;
}

static const struct launcher *find_launcher(int *rank, int *size) {
  *rank = 0;
  *size = 1;
  for (const struct launcher *l = launchers; l < launchers + sizeof launchers / sizeof *launchers; l++) {
    int count = number(l->size), here = number(l->rank);
    if (count < 1 || here < 0 || here >= count) continue;
    *rank = here;
    *size = count;
    return l;
  }
  return NULL;
}

int transport_launched(int *rank) {
  int size;
  find_launcher(rank, &size);
  return size;
}

static struct transport open_transport;
static _Atomic bool failed, together; /* tests have processes that are threads */

void transport_fail(void) {
  failed = failed || !together;
  together = false;
}

bool transport_has_failed(void) { return failed || together; }

void transport_fail_together(void) { together = true; }

static void at_exit(void) {
  if (!failed) watch_end(&open_transport);
}

/* Beside the library that this function is in, as a build has it, or in its folder "dgc", as an installation does; of a
 * tool that has the library in itself, where the installation put it. */
static void *load_module(const char *name, struct arena *a) {
  Dl_info here;
  const char *slash = dladdr(&open_transport, &here) ? strrchr(here.dli_fname, '/') : NULL;
  const char *folder = slash ? arena_printf(a, "%.*s/", (int)(slash - here.dli_fname), here.dli_fname) : "";
  const char *paths[] = {arena_printf(a, "%s%s", folder, name), arena_printf(a, "%sdgc/%s", folder, name),
                         arena_printf(a, "%s/%s", DGC_MODULES, name)};
  void *library = NULL;
  for (int i = 0; !library && i < 3; i++)
    library = dlopen(paths[i], RTLD_NOW | RTLD_GLOBAL); /* Open MPI's own plugins look for its symbols */
  return library;
}

/* 0: none. */
static long parent_of(long process, struct arena *a) {
  long parent = 0;
  char line[256] = "";
  FILE *f = fopen(arena_printf(a, "/proc/%ld/stat", process), "re");
  size_t len = f ? fread(line, 1, sizeof line - 1, f) : 0;
  if (f) fclose(f);
  line[len] = 0;
  const char *behind = strrchr(line, ')'); /* "7 (name) S 1 ..." */
  return behind && sscanf(behind, ") %*c %ld", &parent) == 1 ? parent : 0;
}

/* PREFIX/lib/libmpi_abi.so.1 of a process that runs PREFIX/bin/anything. */
static const char *abi_of(long process, struct arena *a) {
  char path[PATH_MAX];
  ssize_t len = readlink(arena_printf(a, "/proc/%ld/exe", process), path, sizeof path - 1);
  path[len > 0 ? len : 0] = 0;
  for (int up = 0; up < 2; up++) {
    char *slash = strrchr(path, '/');
    if (!slash) return abi;
    *slash = 0;
  }
  return arena_printf(a, "%s/lib/%s", path, abi);
}

/* MPI itself, whose symbols the module looks for: wherever libraries are, else where the launcher that has started
 * this process was installed. A shell and the like may stand between them. */
static bool load_abi(struct arena *a) {
  enum { GENERATIONS = 4 };
  if (dlopen(abi, RTLD_NOW | RTLD_GLOBAL)) return true;
  long process = getppid();
  for (int i = 0; i < GENERATIONS && process > 1; i++, process = parent_of(process, a))
    if (dlopen(abi_of(process, a), RTLD_NOW | RTLD_GLOBAL)) return true;
  return false;
}

/* The one for the launcher's library, else the other one; *name: which one. *why: what could not be loaded, or "". */
static void *load_any(const struct launcher *l, struct arena *a, const char **name, const char **why) {
  *why = "";
  for (int i = 0; i < 2; i++) {
    bool standard = l->abi == (i == 0);
    *name = standard ? abi_module : own_module;
    void *library = standard && !load_abi(a) ? NULL : load_module(*name, a);
    if (library) return library;
    *why = arena_printf(a, "%s%s%s", *why, i ? "; " : "", dlerror());
  }
  return NULL;
}

bool transport_there(struct arena *a, const char **name, const char **why) {
  int rank, size;
  const struct launcher *l = find_launcher(&rank, &size);
  return load_any(l ? l : launchers, a, name, why) != NULL;
}

/* srun starts processes for MPI only if it is told to, or is set up so; an MPI library ends those it was not. */
static bool are_strangers(const struct launcher *l) {
  return l && strcmp(l->rank, "SLURM_PROCID") == 0 && !getenv("PMIX_RANK") && !getenv("PMI_RANK");
}

const struct transport *transport_open(int task, int limit, struct diags *d) {
  if (open_transport.size) return &open_transport;
  int rank, size;
  const struct launcher *l = find_launcher(&rank, &size);
  if (are_strangers(l)) {
    diag_error(d, LOC_NONE, "srun has started %d processes, and has not told them of each other", size);
    diag_help(d, LOC_NONE,
              "srun --mpi=pmix, or as `srun --mpi=list` names what the MPI library was built for");
    return NULL;
  }
  const char *name, *none;
  void *library = load_any(l ? l : launchers, d->arena, &name, &none);
  if (!library) {
    diag_error(d, LOC_NONE,
               "%d processes were started, and there is nothing by which they could reach each other: %s",
               size, none);
    diag_help(d, LOC_NONE,
              "install MPI (Debian: openmpi-bin, and libopenmpi-dev to build dgc with it), or one that has "
              "the standard's binary interface (MPICH 5: %s)",
              abi);
    return NULL;
  }
  transport_start *start = NULL;
  *(void **)&start = dlsym(library, "dgc_transport");
  struct transport t = {0};
  const char *why = start ? start(&t, sizeof t, task) : "it is of another version of dgc";
  if (why) {
    diag_error(d, LOC_NONE, "%s: %s", name, why);
    return NULL;
  }
  bool member = task != TASK_EVALUATOR;
  if (member && task >= 0 && t.size + t.evaluators == size && t.rank != task) {
    diag_error(d, LOC_NONE, "this process is to be task number %d, and another one is that too", task);
    diag_help(d, LOC_NONE, "each process has a task of its own: see --task and TF_CONFIG");
    return NULL;
  }
  if (member && (t.size + t.evaluators != size || (task < 0 && t.rank != rank))) {
    diag_error(d, LOC_NONE, "the launcher says that this is process %d of %d, and %s says %d of %d", rank,
               size, t.library, t.rank, t.size);
    diag_help(d, LOC_NONE, "start dgc with the mpirun of %s%s%s", t.library, *none ? "; " : "", none);
    return NULL;
  }
  static struct watch watch;
  static struct tally tally;
  open_transport = t;
  open_transport.watch = &watch;
  open_transport.tally = &tally;
  tally.waiting = calloc((size_t)t.size, sizeof *tally.waiting);
  if (!tally.waiting) {
    diag_failure(d, LOC_NONE, "out of memory");
    return NULL;
  }
  atexit(at_exit);
  transport_limit(&open_transport, limit);
  if (!shared_open(&open_transport)) {
    transport_report(&open_transport, NULL, d);
    return NULL;
  }
  return &open_transport;
}
