/* SPDX-License-Identifier: Apache-2.0 */
/* The side of libnccl in libcuda: the lock, streams and memory of several devices. */
#include "tests/simulated_cuda/simulated.h"

#include <stdlib.h>
#include <string.h>

CUresult sim_nccl_enter(const char *entry_point, unsigned traits) {
  CUresult r = sim_enter(entry_point, traits | NO_CONTEXT);
  if (r || !capture_here()) return r;
  sim_complain("%s: called while this thread captures a stream", entry_point);
  capture_invalidate_here();
  return sim_leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

int sim_nccl_version(void) {
  int version = sim_version("NCCL", "2.28");
  return version / 1000 * 10000 + version % 1000 * 10;
}

bool sim_nccl_device(int device) {
  return device >= 0 && device < sim_ndevices && sim_contexts[device].users;
}

void sim_nccl_begin(struct object *o, int device) { sim_begin(o, kind_communicator, device); }
void sim_nccl_end(struct object *o) {
  object_end(o);
  object_bury(o);
}
bool sim_nccl_is(const struct object *o) { return o && sim_valid(o, kind_communicator); }
void sim_nccl_complain(const char *why) { sim_complain("NCCL: %s", why); }
void sim_nccl_wander(const int *devices, int count) { sim_make_current(devices[sim_below((uint64_t)count)]); }

bool sim_nccl_range(int device, const void *address, size_t bytes) {
  struct allocation *a = memory_find((uintptr_t)address, bytes);
  if (a && a->space == device) return true;
  sim_complain("NCCL, simulated GPU %d: %zu bytes at %p, which is %s", device, bytes,
               (void *)(uintptr_t)address, memory_describe((uintptr_t)address));
  return false;
}

/* --- a sum --- */

struct sum {
  int parts, count; /* parts that have not run yet; ranks */
  size_t bytes;
  char **shares;
  void (*add)(void *a, const void *b, size_t bytes);
};

struct part {
  struct sum *sum;
  int rank, device;
  uintptr_t address;
};

static void drop(struct sum *s) {
  if (--s->parts) return;
  for (int i = 0; i < s->count; i++) free(s->shares[i]);
  free(s->shares);
  free(s);
}

static CUresult take(void *argument) {
  const struct part *p = argument;
  struct sum *s = p->sum;
  bool good = sim_nccl_range(p->device, (void *)p->address, s->bytes);
  if (good) {
    memory_touch(p->address, s->bytes);
    memcpy(s->shares[p->rank], (void *)p->address, s->bytes);
  }
  drop(s);
  return good ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

static CUresult give(void *argument) {
  const struct part *p = argument;
  struct sum *s = p->sum;
  bool good = sim_nccl_range(p->device, (void *)p->address, s->bytes);
  if (good) {
    memory_touch(p->address, s->bytes);
    memcpy((void *)p->address, s->shares[0], s->bytes);
    for (int i = 1; i < s->count; i++) s->add((void *)p->address, s->shares[i], s->bytes);
  }
  drop(s);
  return good ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

static void add_part(struct sum *s, int rank, CUstream stream, const void *address,
                     CUresult (*call)(void *)) {
  struct work *w = work_new(WORK_CALL, stream->context);
  struct part *p = malloc(sizeof *p);
  *p = (struct part){s, rank, stream->context->device, (uintptr_t)address};
  w->call = call;
  w->argument = p;
  stream_add(stream, w);
}

void sim_nccl_sum(const struct sim_rank *ranks, int count, size_t bytes,
                  void (*add)(void *a, const void *b, size_t bytes)) {
  struct sum *s = malloc(sizeof *s);
  struct moment **taken = malloc((size_t)count * sizeof(struct moment *));
  *s = (struct sum){2 * count, count, bytes, malloc((size_t)count * sizeof(char *)), add};
  for (int i = 0; i < count; i++) s->shares[i] = calloc(1, bytes);
  for (int i = 0; i < count; i++) {
    add_part(s, i, ranks[i].stream, ranks[i].from, take);
    taken[i] = stream_push(ranks[i].stream, OP_RECORD)->moment = moment_new(ranks[i].stream);
    taken[i]->users++;
  }
  for (int i = 0; i < count; i++) {
    for (int k = 0; k < count; k++) {
      if (k == i || taken[k]->done) continue;
      stream_push(ranks[i].stream, OP_WAIT)->moment = taken[k];
      taken[k]->users++;
    }
    add_part(s, i, ranks[i].stream, ranks[i].to, give);
  }
  for (int i = 0; i < count; i++) moment_drop(taken[i]);
  free(taken);
}

/* --- a sum with other processes --- */

struct shared_part {
  struct board *board;
  uint64_t sum;
  int rank, device;
  uintptr_t address;
  size_t bytes;
  void (*add)(void *a, const void *b, size_t bytes);
};

static CUresult give_board(void *argument) {
  const struct shared_part *p = argument;
  bool good = sim_nccl_range(p->device, (void *)p->address, p->bytes);
  if (good) {
    memory_touch(p->address, p->bytes);
    good = board_give(p->board, p->rank, p->sum, (void *)p->address, p->bytes);
    if (!good) sim_complain("NCCL: sums of processes of %zu bytes are not simulated", p->bytes);
  }
  board_drop(p->board);
  return good ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

static CUresult take_board(void *argument) {
  const struct shared_part *p = argument;
  bool good = sim_nccl_range(p->device, (void *)p->address, p->bytes);
  if (good) {
    memory_touch(p->address, p->bytes);
    good = board_take(p->board, p->rank, p->sum, (void *)p->address, p->bytes, p->add);
    if (!good) sim_complain("NCCL: the processes sum up other numbers of bytes");
  }
  board_drop(p->board);
  return good ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

static bool is_free(void *argument) {
  const struct shared_part *p = argument;
  return board_is_free(p->board, p->sum);
}

static bool is_full(void *argument) {
  const struct shared_part *p = argument;
  return board_is_full(p->board, p->sum);
}

static void *part_copy(const struct shared_part *p) {
  struct shared_part *copy = malloc(sizeof *copy);
  *copy = *p;
  return copy;
}

/* When the moment of other processes has come, the stream makes this call. */
static void add_shared(CUstream stream, const struct shared_part *p, bool (*come)(void *),
                       CUresult (*call)(void *)) {
  struct moment *m = stream_push(stream, OP_WAIT)->moment = moment_new(NULL);
  m->come = come;
  m->argument = part_copy(p);
  struct work *w = work_new(WORK_CALL, stream->context);
  w->call = call;
  w->argument = part_copy(p);
  board_use(p->board);
  stream_add(stream, w);
}

void sim_nccl_sum_among(const struct sim_rank *ranks, const int *numbers, int count, struct board *board,
                        uint64_t sum, size_t bytes, void (*add)(void *a, const void *b, size_t bytes)) {
  for (int i = 0; i < count; i++) {
    struct shared_part p = {.board = board,
                            .sum = sum,
                            .rank = numbers[i],
                            .device = ranks[i].stream->context->device,
                            .address = (uintptr_t)ranks[i].from,
                            .bytes = bytes,
                            .add = add};
    add_shared(ranks[i].stream, &p, is_free, give_board);
    p.address = (uintptr_t)ranks[i].to;
    add_shared(ranks[i].stream, &p, is_full, take_board);
  }
}
