/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes of a communicator share: memory that all of them map, in which each rank has two places for
 * its shares, those of even sums and of odd ones. While there is any, the devices also go on when nobody asks them
 * to: others wait for what they give. */
#include "tests/simulated_cuda/simulated.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RANKS = 64, HEAD = 8192, PLACE = 16 << 20 };

struct rank {
  _Atomic uint64_t given, taken; /* sums that its share is there for; that it has read the shares of */
  uint64_t bytes[2];
};

struct head {
  _Atomic int members;
  struct rank ranks[MAX_RANKS];
};

_Static_assert(sizeof(struct head) <= HEAD, "the head of a board");

struct board {
  int count, users;
  size_t bytes;
  struct head *head;
  int fd; /* of the process that made it; else -1 */
};

static int boards;

static bool go_on(void) {
  if (boards) stream_one();
  return boards > 0;
}

static void *devices_go_on(void *unused) {
  sim_go_on(go_on);
  return unused;
}

static void begin_to_go_on(void) {
  pthread_t thread;
  sigset_t all, before;
  sigfillset(&all); /* but for the traps of kernels */
  sigdelset(&all, SIGSEGV), sigdelset(&all, SIGBUS), sigdelset(&all, SIGFPE), sigdelset(&all, SIGILL);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  if (boards++ == 0 && pthread_create(&thread, NULL, devices_go_on, NULL) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Memory that has no name of its own: whatever becomes of the ranks, nothing of it is left. */
bool board_new(char path[SIM_ID_BYTES]) {
  int fd = memfd_create("simulated_nccl", MFD_CLOEXEC);
  snprintf(path, SIM_ID_BYTES, "/proc/%d/fd/%d", (int)getpid(), fd);
  return fd >= 0;
}

struct board *board_open(const char *path, int count) {
  size_t bytes = HEAD + 2 * (size_t)count * PLACE;
  int fd = count > 0 && count <= MAX_RANKS ? open(path, O_RDWR | O_CLOEXEC) : -1, maker, made;
  void *data = MAP_FAILED;
  if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
    data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd >= 0) close(fd);
  if (data == MAP_FAILED) return NULL;
  struct board *b = malloc(sizeof *b);
  bool own = sscanf(path, "/proc/%d/fd/%d", &maker, &made) == 2 && maker == getpid();
  *b = (struct board){.count = count, .users = 1, .bytes = bytes, .head = data, .fd = own ? made : -1};
  begin_to_go_on();
  return b;
}

struct board *board_use(struct board *b) {
  b->users++;
  return b;
}

void board_drop(struct board *b) {
  if (!b || --b->users) return;
  boards--;
  munmap(b->head, b->bytes);
  if (b->fd >= 0) close(b->fd);
  free(b);
}

void board_join(struct board *b) { atomic_fetch_add(&b->head->members, 1); }

void board_await(const struct board *b) {
  while (atomic_load(&b->head->members) < b->count) {
    stream_one();
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
  }
}

static char *place(const struct board *b, int rank, uint64_t sum) {
  return (char *)b->head + HEAD + (2 * (size_t)rank + sum % 2) * PLACE;
}

bool board_is_free(const struct board *b, uint64_t sum) {
  bool free = true;
  for (int i = 0; i < b->count; i++) free &= atomic_load(&b->head->ranks[i].taken) + 1 >= sum;
  return free;
}

bool board_is_full(const struct board *b, uint64_t sum) {
  bool full = true;
  for (int i = 0; i < b->count; i++) full &= atomic_load(&b->head->ranks[i].given) > sum;
  return full;
}

bool board_give(struct board *b, int rank, uint64_t sum, const void *data, size_t bytes) {
  if (bytes > PLACE) return false;
  memcpy(place(b, rank, sum), data, bytes);
  b->head->ranks[rank].bytes[sum % 2] = bytes;
  atomic_store(&b->head->ranks[rank].given, sum + 1);
  return true;
}

bool board_take(struct board *b, int rank, uint64_t sum, void *to, size_t bytes,
                void (*add)(void *a, const void *b, size_t bytes)) {
  for (int i = 0; i < b->count; i++)
    if (b->head->ranks[i].bytes[sum % 2] != bytes) return false;
  memcpy(to, place(b, 0, sum), bytes);
  for (int i = 1; i < b->count; i++) add(to, place(b, i, sum), bytes);
  atomic_store(&b->head->ranks[rank].taken, sum + 1);
  return true;
}
