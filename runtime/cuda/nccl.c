/* SPDX-License-Identifier: Apache-2.0 */
/* Sums that devices make together, by NCCL.
 *
 * The devices of a collective come to it one by one, as the host gives them their work; the last one of this process to
 * arrive gives all of its devices their call, in one group, each on its device's own stream. Until then none goes on:
 * what follows on its stream must come behind the sum. Devices of one set share communicators, whose ranks are in the
 * order of the collective's devices; all plans of the session use them, in the one order that plans have.
 *
 * Where the devices are several processes', the one that has rank 0 makes NCCL's id and tells it to the others. */
#include "runtime/cuda/engine.h"

#include <string.h>

/* The communicators of a set of devices, by rank. */
struct cuda_clique {
  const int *devices;
  bool *here; /* those of this process */
  int count, nhere;
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
  int here;                 /* of this process, in this run */
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

static struct cuda_clique *find_clique(struct cuda_engine *e, const struct collective *c, const bool *here) {
  for (struct cuda_clique *q = e->cliques; q; q = q->next)
    if (q->count == c->count && memcmp(q->devices, c->devices, (size_t)c->count * sizeof(int)) == 0) return q;
  struct cuda_clique *q = arena_new(e->arena, struct cuda_clique);
  *q = (struct cuda_clique){.count = c->count, .next = e->cliques};
  q->devices = arena_copy(e->arena, c->devices, (size_t)c->count * sizeof(int));
  q->here = arena_copy(e->arena, here, (size_t)c->count * sizeof(bool));
  for (int i = 0; i < c->count; i++) q->nhere += here[i];
  return e->cliques = q;
}

static bool open_here(struct cuda_engine *e, const struct cuda_clique *q, ncclComm_t *comms) {
  int *cards = arena_new_array(e->arena, (size_t)q->count, int);
  for (int i = 0; i < q->count; i++) cards[i] = e->devices[q->devices[i]].card->ordinal;
  return NCCL_CALL(e, q->devices[0], ncclCommInitAll, comms, q->count, cards);
}

/* The first device of the clique in this process. */
static int own_device(const struct cuda_clique *q) {
  int i = 0;
  while (!q->here[i]) i++;
  return q->devices[i];
}

static bool join(struct cuda_engine *e, const struct cuda_clique *q, ncclComm_t *comms,
                 const ncclUniqueId *id) {
  int first = own_device(q);
  bool good = NCCL_CALL(e, first, ncclGroupStart);
  if (!good) return false;
  for (int i = 0; i < q->count; i++)
    if (q->here[i])
      good = good && cuda_use(e, q->devices[i]) &&
             NCCL_CALL(e, q->devices[i], ncclCommInitRank, &comms[i], q->count, *id, i);
  ncclResult_t r = cuda.ncclGroupEnd();
  return good && nccl_check(e, first, "ncclGroupEnd", r);
}

/* With devices of other processes, all of which open the clique now. */
static bool open_among(struct cuda_engine *e, const struct cuda_clique *q, ncclComm_t *comms,
                       const struct company *company) {
  struct {
    ncclUniqueId id;
    bool good;
  } news = {.good = true};
  if (q->here[0]) news.good = NCCL_CALL(e, q->devices[0], ncclGetUniqueId, &news.id);
  if (!company->tell(company->user, &news, sizeof news)) return false;
  if (!news.good && !cuda_failed(e))
    cuda_fail(e, own_device(q), "ncclCommInitRank", "no id", "NCCL failed in the process that makes it");
  return news.good && join(e, q, comms, &news.id);
}

/* NCCL makes other cards current as it likes. */
static bool open_clique(struct cuda_engine *e, struct cuda_clique *q, const struct company *company) {
  if (q->comms) return true;
  ncclComm_t *comms = arena_new_array(e->arena, (size_t)q->count, ncclComm_t);
  bool good = q->nhere == q->count ? open_here(e, q, comms) : open_among(e, q, comms, company);
  cuda_come_in();
  if (good) q->comms = comms;
  return good;
}

void cuda_close_nccl(struct cuda_engine *e) {
  for (struct cuda_clique *q = e->cliques; q; q = q->next) {
    for (int i = 0; q->comms && i < q->count; i++)
      if (q->here[i]) (cuda_failed(e) ? cuda.ncclCommAbort : cuda.ncclCommDestroy)(q->comms[i]);
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
  int first = own_device(g->clique);
  bool good = NCCL_CALL(e, first, ncclGroupStart);
  if (!good) return;
  for (int i = 0; i < g->of->count; i++)
    if (g->clique->here[i]) good = good && reduce_on(g, i);
  ncclResult_t r = cuda.ncclGroupEnd();
  if (good) nccl_check(e, first, "ncclGroupEnd", r);
  cuda_come_in();
}

static void arrive(void *const *args, const void *state) {
  struct arrival *a = (struct arrival *)(uintptr_t)state;
  struct rendezvous *g = a->rendezvous;
  a->args = args;
  a->runs++;
  if (++g->here < g->clique->nhere) return;
  g->here = 0;
  if (!cuda_failed(g->engine)) reduce(g);
  g->given++;
}

bool cuda_rendezvous_complete(void *state) {
  const struct arrival *a = state;
  return a->rendezvous->given == a->runs || cuda_failed(a->rendezvous->engine);
}

/* --- steps --- */

void *cuda_rendezvous(void *self, struct arena *a, const struct collective *c, const struct company *company,
                      struct diags *d) {
  struct cuda_engine *e = self;
  const char *why_not = cuda_load_nccl();
  if (why_not) {
    diag_error(d, LOC_NONE, "%s", why_not);
    return NULL;
  }
  cuda_come_in();
  struct cuda_clique *q = find_clique(e, c, company->here);
  if (!open_clique(e, q, company)) {
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
