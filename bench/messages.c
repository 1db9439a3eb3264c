/* SPDX-License-Identifier: Apache-2.0 */
/* What messages cost between processes of one host: the MPI library's own path against dgc's, which reads them where
 * the sender has them, and a sum in a fixed order by dgc's messages against MPI_Allreduce. mpirun -n 2 bench_messages:
 * the medians of rounds, in microseconds; with DGC_SHARED=off dgc's messages are the library's. */
#include "runtime/host_memory.h"
#include "runtime/mpi/transport.h"

#include <mpi.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALLEST = 1 << 10, LARGEST = 1 << 26, ROUNDS = 41, MOST = 64 };

static const struct transport *here;
static int rank, size;

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The slowest process's time of each round, and of those the median, in microseconds. */
static double median(double *times) {
  MPI_Allreduce(MPI_IN_PLACE, times, ROUNDS, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  qsort(times, ROUNDS, sizeof *times, compare);
  return 1e6 * times[ROUNDS / 2];
}

/* As an executor's worker waits. */
static void await(void *channel) {
  for (int spins = 0; !here->done(channel); spins++)
    if (spins > 2000) sched_yield();
}

/* Process 0 and process 1 give each other bytes. */
static void by_library(float *from, float *to, int bytes) {
  MPI_Request both[2];
  MPI_Irecv(to, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &both[0]);
  MPI_Isend(from, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &both[1]);
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

/* The channels of one size: what is exchanged, the parts of the sum that come and go, and the wholes. By process. */
struct channels {
  void *exchange[2];
  void *part_out[MOST], *part_in[MOST], *whole_out[MOST], *whole_in[MOST];
};

static void by_dgc(const struct channels *c) {
  here->start(c->exchange[0]);
  here->start(c->exchange[1]);
  await(c->exchange[0]);
  await(c->exchange[1]);
}

/* Of what all processes have of a share, the sum by a tree over them, to the first one's place. */
static void add_tree(float *const *part, int count) {
  for (int step = 1; step < size; step *= 2)
    for (int i = 0; i + step < size; i += 2 * step) {
      float *restrict x = part[i];
      const float *restrict y = part[i + step];
      for (int k = 0; k < count; k++) x[k] += y[k];
    }
}

/* Each sums its share of the elements in the order of processes, and gives the sum to all: as --cross-device scatter
 * plans it. The sum is made in the place of the share of process 0. */
static void sum_in_order(const struct channels *c, float *data, float *shares, int each) {
  float *part[MOST];
  for (int i = 0; i < size; i++) {
    part[i] = i == rank ? data + (ptrdiff_t)i * each : shares + (ptrdiff_t)i * each;
    if (i != rank) here->start(c->part_out[i]), here->start(c->part_in[i]);
  }
  for (int i = 0; i < size; i++)
    if (i != rank) await(c->part_in[i]);
  add_tree(part, each);
  for (int i = 0; i < size; i++)
    if (i != rank) here->start(c->whole_out[i]);
  for (int i = 0; i < size; i++) {
    if (i == rank) continue;
    await(c->part_out[i]); /* its place is written to next */
    here->start(c->whole_in[i]);
    await(c->whole_in[i]);
  }
  for (int i = 0; i < size; i++)
    if (i != rank) await(c->whole_out[i]);
}

static void *must(void *channel) {
  if (!channel) MPI_Abort(MPI_COMM_WORLD, 3);
  return channel;
}

static struct channels make_channels(float *from, float *to, int bytes) {
  struct channels c = {0};
  int each = bytes / (int)sizeof *from / size;
  size_t share = (size_t)each * sizeof *from;
  const float *whole = rank == 0 ? from : to; /* where process 0's part of the own share lies */
  if (rank < 2) {
    c.exchange[0] = must(here->sender(here, from, (size_t)bytes, 1 - rank, TAG_MESSAGES));
    c.exchange[1] = must(here->receiver(here, to, (size_t)bytes, 1 - rank, TAG_MESSAGES));
  }
  for (int i = 0; i < size; i++) {
    ptrdiff_t at = (ptrdiff_t)i * each;
    if (i == rank) continue;
    c.part_out[i] = must(here->sender(here, from + at, share, i, TAG_MESSAGES + 1));
    c.part_in[i] = must(here->receiver(here, to + at, share, i, TAG_MESSAGES + 1));
    c.whole_out[i] = must(here->sender(here, whole, share, i, TAG_MESSAGES + 2));
    c.whole_in[i] = must(here->receiver(here, from + at, share, i, TAG_MESSAGES + 2));
  }
  return c;
}

static void drop_channels(const struct channels *c) {
  for (int i = 0; i < 2 && rank < 2; i++) here->drop(c->exchange[i]);
  for (int i = 0; i < size; i++)
    if (i != rank)
      here->drop(c->part_out[i]), here->drop(c->part_in[i]), here->drop(c->whole_out[i]),
          here->drop(c->whole_in[i]);
}

/* In turns, round by round, so that what else the machine does meets all of them. */
static void measure(float *from, float *to, int bytes) {
  static double times[4][ROUNDS];
  int count = bytes / (int)sizeof *from;
  struct channels c = make_channels(from, to, bytes);
  for (int i = -1; i < ROUNDS; i++) /* the first one is not counted */
    for (int what = 0; what < 4; what++) {
      memset(from, 0, (size_t)bytes); /* sums stay finite */
      MPI_Barrier(MPI_COMM_WORLD);
      double begin = MPI_Wtime();
      if (what == 0 && rank < 2) by_library(from, to, bytes);
      if (what == 1 && rank < 2) by_dgc(&c);
      if (what == 2) sum_in_order(&c, from, to, count / size);
      if (what == 3) MPI_Allreduce(MPI_IN_PLACE, from, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      times[what][i < 0 ? 0 : i] = MPI_Wtime() - begin;
    }
  drop_channels(&c);
  double a = median(times[0]), b = median(times[1]), d = median(times[2]), e = median(times[3]);
  if (rank == 0)
    printf("| %d | %.1f | %.1f | %.2f | %.1f | %.1f | %.2f |\n", bytes, a, b, b / a, d, e, d / e);
}

int main(void) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  here = transport_open(-1, 0, &d);
  if (!here || here->size < 2 || here->size > MOST) {
    fprintf(stderr, "%smpirun -n 2 .. 64, on one host\n", diags_text(&d, false));
    return 2;
  }
  rank = here->rank;
  size = here->size;
  float *from = host_alloc(LARGEST), *to = host_alloc(LARGEST);
  if (!from || !to) MPI_Abort(MPI_COMM_WORLD, 3);
  memset(from, 0, LARGEST);
  memset(to, 0, LARGEST);
  if (rank == 0)
    puts("| bytes | exchange, library | exchange, dgc | ratio | sum in order | MPI_Allreduce | ratio |\n"
         "|---:|---:|---:|---:|---:|---:|---:|");
  for (int n = SMALLEST; n <= LARGEST; n *= 4) measure(from, to, n);
  host_free(from);
  host_free(to);
  arena_destroy(a);
  return 0;
}
