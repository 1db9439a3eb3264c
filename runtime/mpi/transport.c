/* Which transport there is, and what all processes do together. */
#include "runtime/mpi/transport.h"

#include <dlfcn.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MODULE "dgc-mpi.so"

/* Launchers' variables: how many processes, and which this one is. */
static const struct {
  const char *size, *rank;
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}, /* Open MPI */
    {"PMI_SIZE", "PMI_RANK"},                         /* MPICH and its kin */
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},         /* a step of srun; a batch script is none */
};

static int number(const char *name) {
  const char *text = getenv(name);
  char *end;
  long value = text ? strtol(text, &end, 10) : -1;
  return text && *text && !*end && value >= 0 && value <= INT_MAX ? (int)value : -1;
}

int transport_launched(int *rank) {
  *rank = 0;
  for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
    int size = number(launchers[i].size), here = number(launchers[i].rank);
    if (size < 1 || here < 0 || here >= size) continue;
    *rank = here;
    return size;
  }
  return 1;
}

static struct transport open_transport;
static bool failed;

void transport_fail(void) { failed = true; }

static void at_exit(void) {
  if (!failed) open_transport.stop();
}

/* Beside the library that this function is in, else wherever libraries are. */
static void *load_module(struct diags *d) {
  Dl_info here;
  const char *slash, *beside = MODULE;
  if (dladdr(&open_transport, &here) && (slash = strrchr(here.dli_fname, '/')))
    beside = arena_printf(d->arena, "%.*s/%s", (int)(slash - here.dli_fname), here.dli_fname, MODULE);
  void *library = dlopen(beside, RTLD_NOW | RTLD_GLOBAL); /* Open MPI's own plugins look for its symbols */
  return library ? library : dlopen(MODULE, RTLD_NOW | RTLD_GLOBAL);
}

const struct transport *transport_open(int task, struct diags *d) {
  if (open_transport.size) return &open_transport;
  int rank, size = transport_launched(&rank);
  void *library = load_module(d);
  if (!library) {
    diag_error(d, LOC_NONE,
               "%d processes were started, and there is nothing by which they could reach each other: %s",
               size, dlerror());
    diag_help(d, LOC_NONE, "install MPI (Debian: openmpi-bin, and libopenmpi-dev to build dgc with it)");
    return NULL;
  }
  transport_start *start = NULL;
  *(void **)&start = dlsym(library, "dgc_transport");
  struct transport t = {0};
  const char *why = start ? start(&t, sizeof t, task) : "it is of another version of dgc";
  if (why) {
    diag_error(d, LOC_NONE, "%s: %s", MODULE, why);
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
    diag_help(d, LOC_NONE, "start dgc with the mpirun of %s", t.library);
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

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Asks often at first, then leaves the processor to others. */
static bool wait_for(const struct transport *t, void *channel, int peer, const char *what) {
  enum { OFTEN = 2000, YIELDING = 20000 };
  static const struct timespec nap = {.tv_nsec = 50000};
  double begin = 0;
  for (int asked = 0; !t->done(channel); asked++) {
    if (asked < OFTEN) continue;
    if (asked == OFTEN) begin = now();
    if (limit && now() - begin > limit) {
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
