/* MPI as a transport: persistent requests of point-to-point messages, and nothing else of it. Failures of MPI end the
 * process, and by its launcher all: that is MPI's own way without further agreement. It is built twice: with the mpi.h
 * of the library that is there, and with abi/mpi.h, which declares all that is used here. */
#include "runtime/mpi/transport.h"

#include <limits.h>
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) transport_start dgc_transport;

static MPI_Comm all;
static char library[MPI_MAX_LIBRARY_VERSION_STRING];

/* Counts are int: large arrays go as larger elements. */
static bool elements(size_t bytes, MPI_Datatype *type, int *count) {
  bool wide = bytes > INT_MAX;
  *type = wide ? MPI_UINT64_T : MPI_BYTE;
  if (wide && (bytes % sizeof(uint64_t) || bytes / sizeof(uint64_t) > INT_MAX)) return false;
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

static void *sender(const void *data, size_t bytes, int to, int tag) {
  return channel((void *)(uintptr_t)data, bytes, to, tag, true);
}

static void *receiver(void *data, size_t bytes, int from, int tag) {
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
  MPI_Comm_split(MPI_COMM_WORLD, 0, task < 0 ? rank : task, &all);
  int len;
  MPI_Get_library_version(library, &len);
  short_name(library);
  *out = (struct transport){.library = library,
                            .sender = sender,
                            .receiver = receiver,
                            .drop = drop,
                            .start = start,
                            .done = done,
                            .stop = stop};
  MPI_Comm_rank(all, &out->rank);
  MPI_Comm_size(all, &out->size);
  return NULL;
}
