/* SPDX-License-Identifier: Apache-2.0 */
/* libnccl: sums over several devices, each process's by one thread. A sum is that of the ranks in ascending
 * order, so the same bits come out each time. Stricter than the real one: all ranks of a communicator's clique
 * that are of one process take part in one group, with equal counts and types, each on a stream of its own
 * device, which is current; nothing is captured; and no communicator is destroyed that a group still counts on.
 * Which device is current afterwards is not to be relied on. */
#include "tests/simulated_cuda/simulated.h"

#include <stdlib.h>
#include <string.h>

#define NCCL(result, name, arguments) EXPORT result name arguments;
#include "runtime/cuda/syms.def"

struct clique {
  int count, users;
  int *devices;        /* by rank; -1: another process's */
  struct board *board; /* with other processes; else NULL */
  uint64_t sums;
  char id[SIM_ID_BYTES];
  struct clique *next; /* of those with a board */
};

static struct clique *shared;

struct ncclComm {
  struct object object;
  struct clique *clique;
  int rank;
};

/* One call of a group. */
struct call {
  ncclComm_t comm;
  struct sim_rank part;
  size_t count;
  int type;
};

static _Thread_local struct {
  int depth; /* groups may be nested */
  bool wrong;
  struct call *calls;
  int count, room;
  struct board *joined[64]; /* to be complete at the end */
  int njoined;
} group;

static ncclResult_t status_of(CUresult r) {
  switch (r) {
  case CUDA_SUCCESS: return ncclSuccess;
  case CUDA_ERROR_INVALID_VALUE: return ncclInvalidArgument;
  case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
  case CUDA_ERROR_INVALID_HANDLE: return ncclInvalidUsage;
  default: return ncclUnhandledCudaError;
  }
}

static ncclResult_t leave(CUresult r) {
  sim_blas_leave(r);
  return status_of(r);
}

static CUresult refuse(CUresult r, const char *why) {
  sim_nccl_complain(why);
  if (group.depth) group.wrong = true;
  return r;
}

const char *ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclSuccess: return "no error";
  case ncclUnhandledCudaError: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
  case ncclSystemError: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
  case ncclInvalidArgument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
  case ncclInvalidUsage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
  default: return "unknown result code";
  }
}

const char *ncclGetLastError(ncclComm_t comm) {
  (void)comm;
  return "";
}

ncclResult_t ncclGetVersion(int *version) {
  CUresult r = sim_nccl_enter(__func__, ANY_TIME);
  if (r) return status_of(r);
  *version = sim_nccl_version();
  return leave(CUDA_SUCCESS);
}

/* --- communicators --- */

static const char *wrong_devices(const int *devices, int count) {
  if (count < 1) return "a clique of no devices";
  for (int i = 0; i < count; i++) {
    if (!sim_nccl_device(devices[i])) return "there is no such device, or nobody has retained its context";
    for (int k = 0; k < i; k++)
      if (devices[k] == devices[i]) return "a device is in a clique twice";
  }
  return NULL;
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices) {
  CUresult r = sim_nccl_enter(__func__, 0);
  if (r) return status_of(r);
  const char *wrong = wrong_devices(devices, count);
  if (wrong) return leave(refuse(CUDA_ERROR_INVALID_HANDLE, wrong));
  struct clique *q = malloc(sizeof *q);
  *q = (struct clique){.count = count, .users = count, .devices = malloc((size_t)count * sizeof(int))};
  memcpy(q->devices, devices, (size_t)count * sizeof(int));
  for (int i = 0; i < count; i++) {
    comms[i] = calloc(1, sizeof *comms[i]);
    sim_nccl_begin(&comms[i]->object, devices[i]);
    comms[i]->clique = q;
    comms[i]->rank = i;
  }
  sim_nccl_wander(devices, count);
  return leave(CUDA_SUCCESS);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  CUresult r = sim_nccl_enter(__func__, ANY_TIME);
  if (r) return status_of(r);
  memset(id, 0, sizeof *id);
  return leave(board_new(id->internal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

/* The clique of this id, made by the first rank of this process. */
static struct clique *find_shared(const ncclUniqueId *id, int count) {
  for (struct clique *q = shared; q; q = q->next)
    if (memcmp(q->id, id->internal, sizeof q->id) == 0) return q->count == count ? q : NULL;
  struct board *b = board_open(id->internal, count);
  if (!b) return NULL;
  struct clique *q = malloc(sizeof *q);
  *q = (struct clique){
      .count = count, .devices = malloc((size_t)count * sizeof(int)), .board = b, .next = shared};
  memcpy(q->id, id->internal, sizeof q->id);
  for (int i = 0; i < count; i++) q->devices[i] = -1;
  return shared = q;
}

static const char *wrong_rank(const struct clique *q, int rank, int device) {
  if (!q) return "there is no such id, or not for as many ranks";
  if (rank < 0 || rank >= q->count || q->devices[rank] >= 0)
    return "there is no such rank, or it is there already";
  if (!sim_nccl_device(device)) return "there is no such device, or nobody has retained its context";
  for (int i = 0; i < q->count; i++)
    if (q->devices[i] == device) return "a device is in a clique twice";
  return group.njoined == 64 ? "too many communicators in a group" : NULL;
}

/* They come as they will: as long as it takes. */
static void await_others(void) {
  for (int i = 0; i < group.njoined; i++) board_await(group.joined[i]);
  group.njoined = 0;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int count, ncclUniqueId id, int rank) {
  CUresult r = sim_nccl_enter(__func__, 0);
  if (r) return status_of(r);
  int device = sim_blas_device();
  struct clique *q = find_shared(&id, count);
  const char *wrong = wrong_rank(q, rank, device);
  if (wrong) return leave(refuse(CUDA_ERROR_INVALID_HANDLE, wrong));
  q->devices[rank] = device;
  q->users++;
  *comm = calloc(1, sizeof **comm);
  sim_nccl_begin(&(*comm)->object, device);
  (*comm)->clique = q;
  (*comm)->rank = rank;
  board_join(q->board);
  group.joined[group.njoined++] = q->board;
  if (!group.depth) await_others();
  sim_nccl_wander(&device, 1);
  return leave(CUDA_SUCCESS);
}

static void end_clique(struct clique *q) {
  struct clique **at = &shared;
  while (*at && *at != q) at = &(*at)->next;
  if (*at) *at = q->next;
  board_drop(q->board);
  free(q->devices);
  free(q);
}

static ncclResult_t destroy(const char *name, ncclComm_t comm) {
  CUresult r = sim_nccl_enter(name, DESTROYS);
  if (r) return status_of(r);
  if (!sim_nccl_is(&comm->object))
    return leave(refuse(CUDA_ERROR_INVALID_VALUE, "a communicator is used after its end"));
  for (int i = 0; i < group.count; i++)
    if (group.calls[i].comm == comm)
      return leave(refuse(CUDA_ERROR_INVALID_HANDLE, "a communicator is destroyed in a group that uses it"));
  if (--comm->clique->users == 0) end_clique(comm->clique);
  sim_nccl_end(&comm->object);
  return leave(CUDA_SUCCESS);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) { return destroy(__func__, comm); }
ncclResult_t ncclCommAbort(ncclComm_t comm) { return destroy(__func__, comm); }

/* --- sums --- */

#define ADD(type)                                                                 \
  static void add_##type(void *to, const void *from, size_t bytes) {              \
    type *a = to;                                                                 \
    const type *b = from;                                                         \
    for (size_t i = 0; i < bytes / sizeof(type); i++) a[i] = (type)(a[i] + b[i]); \
  }
ADD(float)
ADD(double)
ADD(uint32_t)
ADD(uint64_t)

static const struct {
  int type;
  size_t bytes;
  void (*add)(void *a, const void *b, size_t bytes);
} types[] = {{ncclFloat32, 4, add_float},
             {ncclFloat64, 8, add_double},
             {ncclInt32, 4, add_uint32_t},
             {ncclInt64, 8, add_uint64_t}};

static int find_type(int type) {
  for (int i = 0; i < (int)(sizeof types / sizeof *types); i++)
    if (types[i].type == type) return i;
  return -1;
}

static const char *wrong_call(const struct call *c, int op) {
  int type = find_type(c->type), device;
  if (!sim_nccl_is(&c->comm->object)) return "a communicator is used after its end";
  device = c->comm->object.device;
  if (type < 0 || op != ncclSum) return "a type or an operation that is not simulated";
  if (sim_blas_stream_device(c->part.stream) != device)
    return "the stream is not of the communicator's device";
  if (sim_blas_device() != device) return "the communicator is not of the current context";
  if (!group.depth && c->comm->clique->count > 1)
    return "outside of a group one thread would wait for its own other devices";
  size_t bytes = c->count * types[type].bytes;
  if ((uintptr_t)c->part.from % types[type].bytes || (uintptr_t)c->part.to % types[type].bytes)
    return "an array is not aligned";
  const char *from = c->part.from, *to = c->part.to;
  if (from != to && from < to + bytes && to < from + bytes) return "the arrays overlap and are not the same";
  if (!sim_nccl_range(device, from, bytes) || !sim_nccl_range(device, to, bytes))
    return "an array is no memory of the device";
  return NULL;
}

/* The n-th call of the group for this rank of the clique. */
static struct call *nth_call(const struct clique *q, int rank, int n) {
  for (int i = 0; i < group.count; i++)
    if (group.calls[i].comm->clique == q && group.calls[i].comm->rank == rank && n-- == 0)
      return &group.calls[i];
  return NULL;
}

/* Starts the n-th sum of the clique, and says what is wrong with it; *done when there is none. */
static const char *start_sum(struct clique *q, int n, bool start, bool *done) {
  struct sim_rank *ranks = malloc((size_t)q->count * sizeof *ranks);
  int *numbers = malloc((size_t)q->count * sizeof *numbers), own = 0, missing = 0;
  const char *wrong = NULL;
  const struct call *first = NULL;
  for (int i = 0; i < q->count; i++) {
    if (q->devices[i] < 0) continue;
    const struct call *c = nth_call(q, i, n);
    numbers[own++] = i;
    missing += c == NULL;
    if (!c) continue;
    if (!first) first = c;
    if (c->count != first->count || c->type != first->type) wrong = "the ranks have other counts or types";
    ranks[own - 1] = c->part;
  }
  *done = missing == own;
  if (missing && !*done) wrong = "a rank is missing in the group: the others would wait for ever";
  if (!wrong && !*done && start && first->count) {
    int type = find_type(first->type);
    size_t bytes = first->count * types[type].bytes;
    if (q->board)
      sim_nccl_sum_among(ranks, numbers, own, q->board, q->sums++, bytes, types[type].add);
    else
      sim_nccl_sum(ranks, own, bytes, types[type].add);
  }
  free(ranks);
  free(numbers);
  return wrong;
}

/* All sums of the group; nothing is started if one of them is wrong. */
static CUresult run_group(void) {
  const char *wrong = NULL;
  for (int start = 0; start < 2 && !wrong; start++)
    for (int i = 0; i < group.count && !wrong; i++) {
      struct clique *q = group.calls[i].comm->clique;
      bool done = false, seen = false;
      for (int k = 0; k < i; k++) seen |= group.calls[k].comm->clique == q;
      for (int n = 0; !seen && !done && !wrong; n++) wrong = start_sum(q, n, start, &done);
    }
  if (wrong) return refuse(CUDA_ERROR_INVALID_HANDLE, wrong);
  int *devices = malloc(((size_t)group.count + 1) * sizeof *devices);
  for (int i = 0; i < group.count; i++) devices[i] = group.calls[i].comm->object.device;
  if (group.count) sim_nccl_wander(devices, group.count);
  free(devices);
  return CUDA_SUCCESS;
}

static void forget_group(void) {
  free(group.calls);
  group.calls = NULL;
  group.count = group.room = 0;
  group.wrong = false;
  group.njoined = 0;
}

ncclResult_t ncclGroupStart(void) {
  CUresult r = sim_nccl_enter(__func__, 0);
  if (r) return status_of(r);
  group.depth++;
  return leave(CUDA_SUCCESS);
}

ncclResult_t ncclGroupEnd(void) {
  CUresult r = sim_nccl_enter(__func__, 0);
  if (!r && !group.depth) return leave(refuse(CUDA_ERROR_INVALID_HANDLE, "a group ends that did not begin"));
  bool last = group.depth && --group.depth == 0;
  if (r) {
    if (last) forget_group();
    return status_of(r);
  }
  if (last && !group.wrong) await_others();
  if (last) {
    r = group.wrong ? CUDA_ERROR_INVALID_HANDLE : run_group();
    forget_group();
  }
  return leave(r);
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, CUstream stream) {
  CUresult r = sim_nccl_enter(__func__, 0);
  if (r) {
    group.wrong = group.depth > 0;
    return status_of(r);
  }
  struct call c = {comm, {stream, from, to}, count, type};
  const char *wrong = wrong_call(&c, op);
  if (wrong) return leave(refuse(CUDA_ERROR_INVALID_VALUE, wrong));
  if (group.count == group.room)
    group.calls = realloc(group.calls, (size_t)(group.room = 2 * group.room + 8) * sizeof *group.calls);
  group.calls[group.count++] = c;
  if (!group.depth) {
    r = run_group();
    forget_group();
  }
  return leave(r);
}
