/* SPDX-License-Identifier: Apache-2.0 */
/* A whole run as one CUDA graph: its calls are captured from the streams once, and launched as one from then
 * on.
 *
 * The capture starts on the first device's stream; the others' join it by waiting for an event there, and the
 * first waits for them at its end. */
#include "runtime/cuda/engine.h"

static bool fork_streams(struct cuda_engine *e) {
  struct cuda_device *first = &e->devices[e->first];
  if (!CUDA(e, e->first, cuEventRecord, first->met, first->stream)) return false;
  for (int i = e->first + 1; i < e->ndevices; i++) {
    if (!e->devices[i].card) continue;
    if (!cuda_use(e, i) || !CUDA(e, i, cuStreamWaitEvent, e->devices[i].stream, first->met, 0)) return false;
  }
  return true;
}

/* Also after a failure: a capture with loose ends cannot be ended properly. */
static bool join_streams(struct cuda_engine *e) {
  const struct cuda_device *first = &e->devices[e->first];
  bool good = true;
  for (int i = e->first + 1; i < e->ndevices; i++) {
    const struct cuda_device *dev = &e->devices[i];
    if (!dev->card) continue;
    /* What was not recorded here is no event of the capture, and must not be waited for. */
    good &= cuda.cuCtxSetCurrent(dev->card->context) == CUDA_SUCCESS &&
            cuda.cuEventRecord(dev->met, dev->stream) == CUDA_SUCCESS &&
            cuda.cuCtxSetCurrent(first->card->context) == CUDA_SUCCESS &&
            cuda.cuStreamWaitEvent(first->stream, dev->met, 0) == CUDA_SUCCESS;
  }
  return good;
}

/* Earlier work may have failed meanwhile: that is the device's failure, not the recording's. */
static bool is_well(struct cuda_engine *e, const char *call, CUresult r) {
  if (r == CUDA_ERROR_LAUNCH_FAILED || r == CUDA_ERROR_ILLEGAL_ADDRESS) e->recording = false;
  return cuda_check(e, e->first, call, r);
}

/* What was captured, ready to be launched; NULL if anything went wrong. */
static CUgraphExec capture(struct cuda_engine *e, void (*issue)(void *arg), void *arg) {
  CUstream stream = e->devices[e->first].stream;
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  if (!CUDA(e, e->first, cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)) return NULL;
  if (fork_streams(e)) issue(arg);
  bool whole = join_streams(e) && !cuda_failed(e);
  /* One that has gone wrong is ended too: that is what makes the streams fit for use again. */
  cuda.cuCtxSetCurrent(e->devices[e->first].card->context);
  if (!is_well(e, "cuStreamEndCapture", cuda.cuStreamEndCapture(stream, &graph))) graph = NULL;
  cuda_come_in();
  if (!graph) return NULL;
  if (whole && !is_well(e, "cuGraphInstantiateWithFlags", cuda.cuGraphInstantiateWithFlags(&exec, graph, 0)))
    exec = NULL;
  is_well(e, "cuGraphDestroy", cuda.cuGraphDestroy(graph));
  return exec;
}

void *cuda_record(void *self, void (*issue)(void *arg), void *arg) {
  struct cuda_engine *e = self;
  cuda_come_in();
  if (!cuda_meet(e) || !cuda_use(e, e->first)) return NULL;
  e->recording = true;
  CUgraphExec exec = capture(e, issue, arg);
  e->recording = e->unrecorded = false;
  if (!exec) /* then this run's calls follow */
    for (int i = e->first; i < e->ndevices; i++) e->devices[i].loose = e->devices[i].card != NULL;
  return exec;
}

/* On the first device's stream; the others have nothing to do but wait for it when the devices meet. */
bool cuda_replay(void *self, void *recording) {
  struct cuda_engine *e = self;
  e->replayed = true;
  for (int i = e->first; i < e->ndevices; i++) e->devices[i].loose = i == e->first;
  return cuda_use(e, e->first) && CUDA(e, e->first, cuGraphLaunch, recording, e->devices[e->first].stream);
}

void cuda_forget(void *self, void *recording) {
  struct cuda_engine *e = self;
  cuda_come_in();
  cuda_wait(e, NULL);
  if (cuda_lost(e)) return;
  cuda.cuCtxSetCurrent(e->devices[e->first].card->context);
  cuda.cuGraphExecDestroy(recording);
  cuda_come_in();
}
