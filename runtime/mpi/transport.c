/* Which transport there is, and what all processes do together. */
#include "runtime/mpi/transport.h"

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
static bool failed, together;

void transport_fail(void) {
  failed = failed || !together;
  together = false;
}

void transport_fail_together(void) { together = true; }

static void at_exit(void) {
  if (!failed) open_transport.stop();
}

/* Beside the library that this function is in, else wherever libraries are. */
static void *load_module(const char *name, struct arena *a) {
  Dl_info here;
  const char *slash, *beside = name;
  if (dladdr(&open_transport, &here) && (slash = strrchr(here.dli_fname, '/')))
    beside = arena_printf(a, "%.*s/%s", (int)(slash - here.dli_fname), here.dli_fname, name);
  void *library = dlopen(beside, RTLD_NOW | RTLD_GLOBAL); /* Open MPI's own plugins look for its symbols */
  return library ? library : dlopen(name, RTLD_NOW | RTLD_GLOBAL);
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

const struct transport *transport_open(int task, struct diags *d) {
  if (open_transport.size) return &open_transport;
  int rank, size;
  const struct launcher *l = find_launcher(&rank, &size);
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
  if (task >= 0 && t.size == size && t.rank != task) {
    diag_error(d, LOC_NONE, "this process is to be task number %d, and another one is that too", task);
    diag_help(d, LOC_NONE, "each process has a task of its own: see --task and TF_CONFIG");
    return NULL;
  }
  if (t.size != size || (task < 0 && t.rank != rank)) {
    diag_error(d, LOC_NONE, "the launcher says that this is process %d of %d, and %s says %d of %d", rank,
               size, t.library, t.rank, t.size);
    diag_help(d, LOC_NONE, "start dgc with the mpirun of %s%s%s", t.library, *none ? "; " : "", none);
    return NULL;
  }
  open_transport = t;
  atexit(at_exit);
  return &open_transport;
}

/* --- with a limit --- */

static int limit;
static char failure[160];

void transport_limit(int seconds) { limit = seconds; }

const char *transport_failure(void) { return *failure ? failure : NULL; }

/* Asks often at first, then leaves the processor to others. */
static bool wait_for(const struct transport *t, void *channel, int peer, const char *what) {
  enum { OFTEN = 2000, YIELDING = 20000 };
  static const struct timespec nap = {.tv_nsec = 50000};
  double begin = 0;
  for (int asked = 0; !t->done(channel); asked++) {
    if (asked < OFTEN) continue;
    if (asked == OFTEN) begin = clock_seconds();
    if (limit && clock_seconds() - begin > limit) {
      snprintf(failure, sizeof failure, "process %d has not %s for %d s", peer, what, limit);
      return false;
    }
    if (asked < YIELDING)
      sched_yield();
    else
      nanosleep(&nap, NULL);
  }
  return true;
}

static bool move(const struct transport *t, void *channel, int peer, const char *what) {
  if (*failure) return false;
  if (!channel) {
    snprintf(failure, sizeof failure, "%s has no memory for a message to or from process %d", t->library,
             peer);
    return false;
  }
  t->start(channel);
  bool good = wait_for(t, channel, peer, what);
  if (good) t->drop(channel);
  return good;
}

bool transport_send(const struct transport *t, const void *data, size_t bytes, int to, int tag) {
  return move(t, *failure ? NULL : t->sender(data, bytes, to, tag), to, "taken what it was sent");
}

bool transport_receive(const struct transport *t, void *data, size_t bytes, int from, int tag) {
  return move(t, *failure ? NULL : t->receiver(data, bytes, from, tag), from, "sent anything");
}

/* --- all together --- */

/* Up a binary tree, and down again. */
bool transport_any(const struct transport *t, unsigned char *flags) {
  unsigned char below = 0;
  int parent = (t->rank - 1) / 2, first = 2 * t->rank + 1;
  bool good = true;
  for (int child = first; good && child < first + 2 && child < t->size; child++) {
    good = transport_receive(t, &below, 1, child, TAG_STOP);
    *flags |= below;
  }
  if (t->rank > 0)
    good = good && transport_send(t, flags, 1, parent, TAG_STOP) &&
           transport_receive(t, flags, 1, parent, TAG_STOP);
  for (int child = first; good && child < first + 2 && child < t->size; child++)
    good = transport_send(t, flags, 1, child, TAG_STOP);
  return good;
}

static bool send_text(const struct transport *t, const char *text, int to) {
  size_t len = strlen(text);
  return transport_send(t, &len, sizeof len, to, TAG_TEXT) && transport_send(t, text, len, to, TAG_TEXT);
}

static bool receive_text(const struct transport *t, struct arena *a, int from, const char **text) {
  size_t len;
  if (!transport_receive(t, &len, sizeof len, from, TAG_TEXT)) return false;
  char *bytes = arena_alloc(a, len + 1);
  bytes[len] = 0;
  *text = bytes;
  return transport_receive(t, bytes, len, from, TAG_TEXT);
}

bool transport_collect(const struct transport *t, struct arena *a, const char *text, const char ***all) {
  *all = NULL;
  if (t->rank > 0) return send_text(t, text, 0);
  *all = arena_new_array(a, (size_t)t->size, const char *);
  (*all)[0] = text;
  for (int i = 1; i < t->size; i++)
    if (!receive_text(t, a, i, &(*all)[i])) return false;
  return true;
}

bool transport_tell(const struct transport *t, struct arena *a, const char **text) {
  if (t->rank > 0) return receive_text(t, a, 0, text);
  for (int i = 1; i < t->size; i++)
    if (!send_text(t, *text, i)) return false;
  return true;
}
