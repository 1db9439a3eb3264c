/* What messages cost between processes of one host: the MPI library's own path against a window of shared memory, and a
 * sum in a fixed order against MPI_Allreduce. mpirun -n 2 bench_messages: the least of rounds, in
 * microseconds. */
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALLEST = 1 << 10, LARGEST = 1 << 26, ROUNDS = 41, MOST = 64, ALONE = 64 };

static int rank, size;

/* What processes share: flags on lines of their own, then each process's bytes. */
struct shared {
  _Alignas(ALONE) _Atomic long sent, taken;
};
static struct shared *flags;
static char *window; /* of process 0 */

/* The slowest process's time of each round, and of those the least, in microseconds: other work only adds. */
static double least(double *times) {
  double best = 1e9;
  MPI_Allreduce(MPI_IN_PLACE, times, ROUNDS, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  for (int i = 0; i < ROUNDS; i++) best = times[i] < best ? times[i] : best;
  return 1e6 * best;
}

static void wait_until(_Atomic long *flag, long value) {
  for (int spins = 0; atomic_load_explicit(flag, memory_order_acquire) < value; spins++)
    if (spins > 1000) sched_yield();
}

/* Process 0 and process 1 give each other bytes. */
static void by_library(char *from, char *to, int bytes) {
  static MPI_Request send, receive;
  int other = 1 - rank;
  MPI_Isend(from, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &send);
  MPI_Irecv(to, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &receive);
  MPI_Wait(&receive, MPI_STATUS_IGNORE);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
}

/* What is sent lies in the window already: the other one copies it from there. */
static void by_window(char *to, int bytes) {
  static long round;
  round++;
  atomic_store_explicit(&flags[rank].sent, round, memory_order_release);
  wait_until(&flags[1 - rank].sent, round);
  memcpy(to, window + (size_t)(1 - rank) * LARGEST, (size_t)bytes);
  atomic_store_explicit(&flags[1 - rank].taken, round, memory_order_release);
  wait_until(&flags[rank].taken, round);
}

/* Of what all ranks have of a share, the sum by a tree over them, to the first one's place; a block at a time,
 * which the caches hold. */
static void add_tree(float *const *part, int count) {
  enum { BLOCK = 4096 };
  for (int at = 0; at < count; at += BLOCK) {
    int n = count - at < BLOCK ? count - at : BLOCK;
    for (int step = 1; step < size; step *= 2)
      for (int i = 0; i + step < size; i += 2 * step) {
        float *restrict x = part[i] + at;
        const float *restrict y = part[i + step] + at;
        for (int k = 0; k < n; k++) x[k] += y[k];
      }
  }
}

static int post(float *mine, int each, float *theirs, int other, int tag, MPI_Request *requests) {
  MPI_Irecv(theirs, each, MPI_FLOAT, other, tag, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(mine, each, MPI_FLOAT, other, tag, MPI_COMM_WORLD, &requests[1]);
  return 2;
}

/* Each sums its share of the elements in the order of ranks, and gives the sum to all. */
static void sum_in_order(float *data, float *shares, int count) {
  MPI_Request requests[2 * MOST];
  float *part[MOST], *own;
  int each = count / size, n = 0;
  for (int i = 0; i < size; i++) {
    part[i] = i == rank ? data + (ptrdiff_t)i * each : shares + (ptrdiff_t)i * each;
    if (i != rank) n += post(data + (ptrdiff_t)i * each, each, part[i], i, 1, requests + n);
  }
  MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
  add_tree(part, each);
  own = part[0];
  n = 0;
  for (int i = 0; i < size; i++)
    if (i != rank) n += post(own, each, data + (ptrdiff_t)i * each, i, 2, requests + n);
  if (own != data + (ptrdiff_t)rank * each)
    memcpy(data + (ptrdiff_t)rank * each, own, (size_t)each * sizeof *own);
  MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

/* In turns, round by round, so that what else the machine does meets all of them. */
static void measure(char *from, char *to, int bytes) {
  static double library[ROUNDS], shared[ROUNDS], order[ROUNDS], any[ROUNDS];
  int count = bytes / (int)sizeof(float);
  for (int i = -1; i < ROUNDS; i++) { /* the first one is not counted */
    int k = i < 0 ? 0 : i;
    double *const into[] = {&library[k], &shared[k], &order[k], &any[k]};
    for (int what = 0; what < 4; what++) {
      MPI_Barrier(MPI_COMM_WORLD);
      double begin = MPI_Wtime();
      if (what == 0 && rank < 2) by_library(from, to, bytes);
      if (what == 1 && rank < 2) by_window(to, bytes);
      if (what == 2) sum_in_order((float *)(void *)from, (float *)(void *)to, count);
      if (what == 3) MPI_Allreduce(MPI_IN_PLACE, from, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      *into[what] = MPI_Wtime() - begin;
      memset(from, 0, (size_t)bytes); /* sums stay finite */
    }
  }
  double a = least(library), b = least(shared), c = least(order), d = least(any);
  if (rank == 0)
    printf("| %d | %.1f | %.1f | %.2f | %.1f | %.1f | %.2f |\n", bytes, a, b, a / b, c, d, c / d);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm host;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  int here;
  MPI_Comm_size(host, &here);
  if (size < 2 || size > MOST || here != size) {
    if (rank == 0) fputs("mpirun -n 2 .. 64, on one host\n", stderr);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Win win;
  char *base;
  int unit;
  MPI_Aint bytes = rank == 0 ? (MPI_Aint)((size_t)size * (LARGEST + sizeof *flags)) : 0;
  MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, host, &base, &win);
  MPI_Win_shared_query(win, 0, &bytes, &unit, &base);
  flags = (struct shared *)(void *)base;
  window = base + (size_t)size * sizeof *flags;
  if (rank == 0) memset(base, 0, (size_t)size * sizeof *flags);
  char *from = malloc(LARGEST), *to = malloc(LARGEST);
  if (!from || !to) MPI_Abort(MPI_COMM_WORLD, 3);
  memset(from, 0, LARGEST);
  memset(to, 0, LARGEST);
  if (rank < 2) memset(window + (size_t)rank * LARGEST, 0, LARGEST);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0)
    puts("| bytes | exchange, library | exchange, window | ratio | sum in order | MPI_Allreduce | ratio |\n"
         "|---:|---:|---:|---:|---:|---:|---:|");
  for (int n = SMALLEST; n <= LARGEST; n *= 4) measure(from, to, n);
  MPI_Win_free(&win);
  free(from);
  free(to);
  MPI_Finalize();
  return 0;
}
