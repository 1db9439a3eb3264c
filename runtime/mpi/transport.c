/* Which transport there is, and what all processes do together. */
#include "runtime/mpi/transport.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

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

const struct transport *transport_open(struct diags *d) {
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
  const char *why = start ? start(&t, sizeof t) : "it is of another version of dgc";
  if (why) {
    diag_error(d, LOC_NONE, "%s: %s", MODULE, why);
    return NULL;
  }
  if (t.size != size || t.rank != rank) {
    diag_error(d, LOC_NONE, "the launcher says that this is process %d of %d, and %s says %d of %d", rank,
               size, t.library, t.rank, t.size);
    diag_help(d, LOC_NONE, "start dgc with the mpirun of %s", t.library);
    return NULL;
  }
  open_transport = t;
  atexit(at_exit);
  return &open_transport;
}

/* Up a binary tree, and down again. */
bool transport_any(const struct transport *t, bool here) {
  char any = here;
  for (int child = 2 * t->rank + 1; child <= 2 * t->rank + 2 && child < t->size; child++) {
    char below;
    t->receive(&below, 1, child, TAG_STOP);
    any |= below;
  }
  if (t->rank > 0) {
    t->send(&any, 1, (t->rank - 1) / 2, TAG_STOP);
    t->receive(&any, 1, (t->rank - 1) / 2, TAG_STOP);
  }
  for (int child = 2 * t->rank + 1; child <= 2 * t->rank + 2 && child < t->size; child++)
    t->send(&any, 1, child, TAG_STOP);
  return any;
}

static void send_text(const struct transport *t, const char *text, int to) {
  size_t len = strlen(text);
  t->send(&len, sizeof len, to, TAG_TEXT);
  t->send(text, len, to, TAG_TEXT);
}

static const char *receive_text(const struct transport *t, struct arena *a, int from) {
  size_t len;
  t->receive(&len, sizeof len, from, TAG_TEXT);
  char *text = arena_alloc(a, len + 1);
  t->receive(text, len, from, TAG_TEXT);
  text[len] = 0;
  return text;
}

const char **transport_collect(const struct transport *t, struct arena *a, const char *text) {
  if (t->rank > 0) {
    send_text(t, text, 0);
    return NULL;
  }
  const char **all = arena_new_array(a, (size_t)t->size, const char *);
  all[0] = text;
  for (int i = 1; i < t->size; i++) all[i] = receive_text(t, a, i);
  return all;
}

const char *transport_tell(const struct transport *t, struct arena *a, const char *text) {
  if (t->rank > 0) return receive_text(t, a, 0);
  for (int i = 1; i < t->size; i++) send_text(t, text, i);
  return text;
}
