/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA backend: kernels compiled by NVRTC, matrix products by cuBLAS, sums over devices by NCCL, work given to
 * streams. */
#include "ir/graph/graph.h"
#include "ir/ops/op_id.h"
#include "runtime/cuda/engine.h"
#include "runtime/cuda/leaf.h"
#include "runtime/host_memory.h"

#include <string.h>

/* Everything of a half-opened engine too. */
static void cuda_close(void *self) {
  struct cuda_engine *e = self;
  if (!e) return;
  if (cuda_failed(e) && !cuda_lost(e))
    cuda_close_nccl(e); /* what waits for devices that never come would wait for ever */
  if (e->ncards) cuda_wait(e, NULL);
  if (cuda_lost(e)) {
    host_abandon(e);
    return;
  }
  cuda_close_nccl(e);
  for (int i = 0; e->ncards && i < e->ndevices; i++) {
    if (!e->devices[i].card) continue;
    cuda.cuCtxSetCurrent(e->devices[i].card->context);
    cuda_close_blas(e, i);
    cuda_close_memory(e, i);
    cuda_close_streams(e, i);
    pthread_mutex_destroy(&e->devices[i].reading);
  }
  cuda_close_pinned(e);
  for (const struct cuda_event *m = e->events; m; m = m->next) cuda.cuEventDestroy(m->event);
  cuda_close_fill(e);
  cuda_close_code(e);
  cuda_close_cards(e);
  pthread_mutex_destroy(&e->moving);
  pthread_mutex_destroy(&e->lock);
  arena_destroy(e->arena);
}

static void undo_open(void *e) { cuda_close(e); }

static bool open_devices(struct cuda_engine *e, struct diags *d) {
  for (int i = 0; i < e->ndevices; i++)
    if (e->devices[i].card && !(cuda_open_streams(e, i) && cuda_open_memory(e, i))) {
      cuda_status(e, d);
      return false;
    }
  return true;
}

static void *cuda_open(const struct target *target, struct diags *d) {
  struct arena_guard guard;
  const char *why_not = cuda_load_driver();
  if (why_not) {
    diag_error(d, LOC_NONE, "%s", why_not);
    return NULL;
  }
  struct arena *a = arena_create_guarded(&guard);
  struct cuda_engine *e = arena_new(a, struct cuda_engine);
  e->arena = a;
  pthread_mutex_init(&e->lock, NULL);
  pthread_mutex_init(&e->moving, NULL);
  arena_unguard(&guard);
  arena_guard(&guard, undo_open, e);
  cuda_come_in();
  bool good = cuda_open_cards(e, target, d) && open_devices(e, d);
  arena_unguard(&guard);
  if (good) return e;
  cuda_close(e);
  return NULL;
}

static void cuda_allow_tf32(void *self, bool allow) {
  struct cuda_engine *e = self;
  e->tf32 = allow;
}

static void cuda_limit(void *self, int seconds, _Atomic bool *lost) {
  struct cuda_engine *e = self;
  e->limit = seconds;
  e->lost = lost;
}

static cuda_leaf_fn *const leaves[OP_COUNT] = {
#define OP(name, spread)
#define LEAF(name, spread)   [OP_##name] = cuda_leaf_##name,
#define KERNEL(name, spread) [OP_##name] = cuda_leaf_kernel,
#include "ir/ops/ops.def"
#undef OP
};

static bool cuda_prepare(void *self, struct arena *a, const struct step *step, int device, struct command *c,
                         struct diags *d) {
  struct cuda_engine *e = self;
  cuda_come_in();
  if (step->kind == STEP_KERNEL) return cuda_prepare_kernel(e, a, step, device, c, d);
  return leaves[step->node->op](e, a, step, device, c, d);
}

const struct backend backend_cuda = {
    .name = "cuda",
    .help = "CUDA GPUs: kernels by NVRTC, matrix products by cuBLAS",
    .kind = "gpu",
    .copy_queue = true,
    .open = cuda_open,
    .close = cuda_close,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .free_memory = cuda_free_memory,
    .allow_tf32 = cuda_allow_tf32,
    .limit = cuda_limit,
    .copy = cuda_copy,
    .pinned_alloc = cuda_pinned_alloc,
    .pinned_free = cuda_pinned_free,
    .read_begin = cuda_read_begin,
    .read_end = cuda_read_end,
    .compile = cuda_compile,
    .prepare = cuda_prepare,
    .prepare_copy = cuda_prepare_copy,
    .mark = cuda_mark,
    .follow = cuda_follow,
    .reached = cuda_reached,
    .begin = cuda_begin,
    .end = cuda_end,
    .status = cuda_status,
    .rendezvous = cuda_rendezvous,
    .arrive = cuda_arrive,
    .complete = cuda_rendezvous_complete,
    .no_rendezvous = cuda_no_rendezvous,
    .record = cuda_record,
    .replay = cuda_replay,
    .forget = cuda_forget,
    .busy = cuda_busy,
    .list = cuda_list,
    .emit = cuda_emit,
};
