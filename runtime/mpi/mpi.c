/* SPDX-License-Identifier: Apache-2.0 */
/* MPI as a transport: persistent requests of point-to-point messages, and nothing else of it. Failures of MPI end the
 * process, and by its launcher all: that is MPI's own way without further agreement. It is built twice: with the mpi.h
 * of the library that is there, and with abi/mpi.h, which declares all that is used here. */
#include "runtime/mpi/transport.h"

#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) transport_start dgc_transport;

/* What processes tell each other of themselves. */
struct peer {
  char host[64];           /* longer names are cut off */
  unsigned long long pids; /* that the number is among: processes may have namespaces of their own */
  int pid;
};

static MPI_Comm all;
static struct peer *peers;
static struct pollfd *alive; /* those that run on this host: readable when they have ended */
static int *alive_rank, nalive;
static unsigned char *evaluators; /* by their numbers among all that were started: those that take no part */
static char library[MPI_MAX_LIBRARY_VERSION_STRING];

/* Counts are int: large arrays go as larger elements. */
static bool elements(size_t bytes, MPI_Datatype *type, int *count) {
  bool wide = bytes > INT_MAX;
  *type = wide ? MPI_UINT64_T : MPI_BYTE;
  if (!transport_carries(bytes)) return false;
  *count = (int)(wide ? bytes / sizeof(uint64_t) : bytes);
  return true;
}

static void *channel(void *data, size_t bytes, int peer, int tag, bool sends) {
  MPI_Datatype type;
  int count;
  MPI_Request *r = malloc(sizeof *r);
  if (r && elements(bytes, &type, &count) &&
      (sends ? MPI_Send_init(data, count, type, peer, tag, all, r)
             : MPI_Recv_init(data, count, type, peer, tag, all, r)) == MPI_SUCCESS)
    return r;
  free(r);
  return NULL;
}

static void *sender(const struct transport *t, const void *data, size_t bytes, int to, int tag) {
  (void)t;
  return channel((void *)(uintptr_t)data, bytes, to, tag, true);
}

static void *receiver(const struct transport *t, void *data, size_t bytes, int from, int tag) {
  (void)t;
  return channel(data, bytes, from, tag, false);
}

static void drop(void *request) {
  MPI_Request_free(request);
  free(request);
}

static void start(void *request) { MPI_Start(request); }

static bool done(void *request) {
  int flag;
  MPI_Test(request, &flag, MPI_STATUS_IGNORE);
  return flag;
}

static bool take(const struct transport *t, void *data, size_t bytes, int tag) {
  (void)t;
  int there;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, tag, all, &there, &status);
  if (there) MPI_Recv(data, (int)bytes, MPI_BYTE, status.MPI_SOURCE, tag, all, MPI_STATUS_IGNORE);
  return there;
}

static const char *host(const struct transport *t, int process) {
  (void)t;
  return peers[process].host;
}

/* Without these calls of Linux 5.3, nobody is seen to end. */
#if defined SYS_pidfd_open && defined SYS_pidfd_send_signal
static int watch_process(int pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

/* What its parent has not waited for can still be sent a signal. */
static bool is_gone(int fd) { return syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) != 0 && errno == ESRCH; }
#else
static int watch_process(int pid) { return -(pid > 0); }
static bool is_gone(int fd) { return fd < -1; }
#endif

static int ended(const struct transport *t) {
  (void)t;
  if (nalive == 0 || poll(alive, (nfds_t)nalive, 0) <= 0) return -1;
  for (int i = 0; i < nalive; i++)
    if (alive[i].revents & POLLIN && is_gone(alive[i].fd)) return alive_rank[i];
  return -1;
}

static bool meet(int rank, int size) {
  struct peer mine = {.pid = getpid()};
  struct stat pids;
  gethostname(mine.host, sizeof mine.host - 1);
  if (stat("/proc/self/ns/pid", &pids) == 0) mine.pids = pids.st_ino;
  peers = calloc((size_t)size, sizeof *peers);
  alive = calloc((size_t)size, sizeof *alive);
  alive_rank = calloc((size_t)size, sizeof *alive_rank);
  if (!peers || !alive || !alive_rank ||
      MPI_Allgather(&mine, sizeof mine, MPI_BYTE, peers, sizeof mine, MPI_BYTE, all) != MPI_SUCCESS)
    return false;
  for (int i = 0; i < size; i++) {
    if (i == rank || peers[i].pids != mine.pids || strcmp(peers[i].host, mine.host) != 0) continue;
    alive[nalive] = (struct pollfd){.fd = watch_process(peers[i].pid), .events = POLLIN};
    alive_rank[nalive++] = i;
  }
  return true;
}

/* They are among all that were started, and nothing else is sent there. */
static void tell_evaluator(int64_t number) {
  static int64_t told; /* it outlives the call, if need be */
  told = number;
  int size, flag;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < size; i++) {
    MPI_Request r;
    if (!evaluators[i] ||
        MPI_Send_init(&told, sizeof told, MPI_BYTE, i, TAG_EVALUATOR, MPI_COMM_WORLD, &r) != MPI_SUCCESS)
      continue;
    MPI_Start(&r);
    do MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
    while (!flag);
    MPI_Request_free(&r);
  }
}

static bool told_evaluator(int64_t *number) {
  int there;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, TAG_EVALUATOR, MPI_COMM_WORLD, &there, &status);
  if (there)
    MPI_Recv(number, sizeof *number, MPI_BYTE, status.MPI_SOURCE, TAG_EVALUATOR, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
  return there;
}

/* How many are evaluators; -1: it has no memory. */
static int count_evaluators(unsigned char mine) {
  int size, count = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  evaluators = calloc((size_t)size, 1);
  if (!evaluators ||
      MPI_Allgather(&mine, 1, MPI_BYTE, evaluators, 1, MPI_BYTE, MPI_COMM_WORLD) != MPI_SUCCESS)
    return -1;
  for (int i = 0; i < size; i++) count += evaluators[i];
  return count;
}

static void stop(void) {
  MPI_Comm_free(&all);
  MPI_Finalize();
}

/* "Open MPI v4.1.4, package: ..." and "MPICH Version:      5.0.2\n...": as far as it tells which. */
static void short_name(char *name) {
  char *end = name;
  for (const char *p = name; *p && *p != ',' && *p != '\n'; p++)
    if (*p != ' ' || (end > name && end[-1] != ' ')) *end++ = *p;
  *end = 0;
}

const char *dgc_transport(struct transport *out, size_t bytes, int task) {
  if (bytes != sizeof *out) return "it is of another version of dgc";
  int provided, done_already;
  MPI_Initialized(&done_already);
  if (done_already) return "this program uses MPI itself";
  if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
    return "MPI does not start";
  if (provided < MPI_THREAD_SERIALIZED) return "this MPI library serves one thread only";
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, task == TASK_EVALUATOR, task < 0 || task == TASK_EVALUATOR ? rank : task,
                 &all);
  int len;
  MPI_Get_library_version(library, &len);
  short_name(library);
  *out = (struct transport){.library = library,
                            .sender = sender,
                            .receiver = receiver,
                            .drop = drop,
                            .start = start,
                            .done = done,
                            .take = take,
                            .host = host,
                            .ended = ended,
                            .evaluators = count_evaluators(task == TASK_EVALUATOR),
                            .tell_evaluator = tell_evaluator,
                            .told_evaluator = told_evaluator,
                            .stop = stop};
  MPI_Comm_rank(all, &out->rank);
  MPI_Comm_size(all, &out->size);
  return out->evaluators >= 0 && meet(out->rank, out->size) ? NULL : "it has no memory";
}
