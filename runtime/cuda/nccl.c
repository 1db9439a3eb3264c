/* Sums that devices make together, by NCCL.
 *
 * The devices of a collective come to it one by one, as the host gives them their work; the last one to arrive gives
 * all of them their call, in one group, each on its device's own stream. Until then none goes on: what follows on its
 * stream must come behind the sum. Devices of one set share communicators, whose ranks are in the order of the
 * collective's devices; all plans of the session use them, in the one order that plans have. */
#include "runtime/cuda/engine.h"

#include <string.h>

/* The communicators of a set of devices. */
struct cuda_clique {
  const int *devices; /* by rank */
  int count;
  ncclComm_t *comms; /* NULL: not made */
  struct cuda_clique *next;
};

struct rendezvous;

/* A device's part. */
struct arrival {
  struct rendezvous *rendezvous;
  void *const *args; /* in the present run: from, to */
  unsigned runs;     /* that it has come in */
};

/* A collective of a plan, and who has come. */
struct rendezvous {
  struct cuda_engine *engine;
  const struct collective *of;
  const struct cuda_clique *clique;
  struct arrival *arrivals; /* by rank */
  int here;                 /* in this run */
  unsigned given;           /* so many runs have been given to the devices */
};

static bool nccl_check(struct cuda_engine *e, int device, const char *call, ncclResult_t r) {
  if (r == ncclSuccess) return true;
  const char *name = cuda.ncclGetErrorString(r), *text = cuda.ncclGetLastError(NULL);
  cuda_fail(e, device, call, name ? name : "unknown error", text && *text ? text : NULL);
  return false;
}
#define NCCL_CALL(e, device, name, ...) \
  (cuda_failed(e) ? false : nccl_check((e), (device), #name, cuda.name(__VA_ARGS__)))

/* --- communicators --- */

static struct cuda_clique *find_clique(struct cuda_engine *e, const struct collective *c) {
  for (struct cuda_clique *q = e->cliques; q; q = q->next)
    if (q->count == c->count && memcmp(q->devices, c->devices, (size_t)c->count * sizeof(int)) == 0) return q;
  struct cuda_clique *q = arena_new(e->arena, struct cuda_clique);
  *q = (struct cuda_clique){.count = c->count, .next = e->cliques};
  q->devices = arena_copy(e->arena, c->devices, (size_t)c->count * sizeof(int));
  return e->cliques = q;
}

/* NCCL makes other cards current as it likes. */
static bool open_clique(struct cuda_engine *e, struct cuda_clique *q) {
  if (q->comms) return true;
  int *cards = arena_new_array(e->arena, (size_t)q->count, int);
  ncclComm_t *comms = arena_new_array(e->arena, (size_t)q->count, ncclComm_t);
  for (int i = 0; i < q->count; i++) cards[i] = e->devices[q->devices[i]].card->ordinal;
  bool good = NCCL_CALL(e, q->devices[0], ncclCommInitAll, comms, q->count, cards);
  cuda_come_in();
  if (good) q->comms = comms;
  return good;
}

void cuda_close_nccl(struct cuda_engine *e) {
  for (struct cuda_clique *q = e->cliques; q; q = q->next) {
    for (int i = 0; q->comms && i < q->count; i++)
      (cuda_failed(e) ? cuda.ncclCommAbort : cuda.ncclCommDestroy)(q->comms[i]);
    q->comms = NULL;
  }
  cuda_come_in();
}

const char *cuda_no_rendezvous(void *self) {
  (void)self;
  return cuda_load_nccl();
}

/* --- runs --- */

static int type_of(enum dtype d) {
  return d == DT_F64 ? ncclFloat64 : d == DT_I64 ? ncclInt64 : d == DT_I32 ? ncclInt32 : ncclFloat32;
}

static bool reduce_on(const struct rendezvous *g, int rank) {
  struct cuda_engine *e = g->engine;
  int device = g->of->devices[rank];
  void *const *args = g->arrivals[rank].args;
  return cuda_use(e, device) &&
         NCCL_CALL(e, device, ncclAllReduce, args[0], args[1], (size_t)g->of->elements, type_of(g->of->dtype),
                   ncclSum, g->clique->comms[rank], e->devices[device].stream);
}

/* A group that has been started is ended also after a failure: else the next one would be a part of it. */
static void reduce(const struct rendezvous *g) {
  struct cuda_engine *e = g->engine;
  bool good = NCCL_CALL(e, g->of->devices[0], ncclGroupStart);
  if (!good) return;
  for (int i = 0; i < g->of->count; i++) good = good && reduce_on(g, i);
  ncclResult_t r = cuda.ncclGroupEnd();
  if (good) nccl_check(e, g->of->devices[0], "ncclGroupEnd", r);
  cuda_come_in();
}

static void arrive(void *const *args, const void *state) {
  struct arrival *a = (struct arrival *)(uintptr_t)state;
  struct rendezvous *g = a->rendezvous;
  a->args = args;
  a->runs++;
  if (++g->here < g->of->count) return;
  g->here = 0;
  if (!cuda_failed(g->engine)) reduce(g);
  g->given++;
}

bool cuda_rendezvous_complete(void *state) {
  const struct arrival *a = state;
  return a->rendezvous->given == a->runs || cuda_failed(a->rendezvous->engine);
}

/* --- steps --- */

void *cuda_rendezvous(void *self, struct arena *a, const struct collective *c, struct diags *d) {
  struct cuda_engine *e = self;
  const char *why_not = cuda_load_nccl();
  if (why_not) {
    diag_error(d, LOC_NONE, "%s", why_not);
    return NULL;
  }
  cuda_come_in();
  struct cuda_clique *q = find_clique(e, c);
  if (!open_clique(e, q)) {
    cuda_status(e, d);
    return NULL;
  }
  struct rendezvous *g = arena_new(a, struct rendezvous);
  *g = (struct rendezvous){.engine = e, .of = c, .clique = q};
  g->arrivals = arena_new_array(a, (size_t)c->count, struct arrival);
  for (int i = 0; i < c->count; i++) g->arrivals[i].rendezvous = g;
  return g;
}

bool cuda_arrive(void *self, struct arena *a, void *rendezvous, int rank, struct command *c,
                 struct diags *d) {
  struct rendezvous *g = rendezvous;
  (void)self, (void)a, (void)d;
  c->kind = COMMAND_CALL;
  c->call = arrive;
  c->state = &g->arrivals[rank];
  return true;
}
