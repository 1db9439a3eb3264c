/* SPDX-License-Identifier: Apache-2.0 */
/* Capture and graphs: what may be captured, and that a graph keeps to its edges and to nothing else. */
#include "tests/simulated_cuda/harness.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

enum { N = 256, BYTES = N * sizeof(float), REPEATS = 60 };

static const char text[] = "extern \"C\" __global__ void fill(float *x, float v) { x[threadIdx.x] = v; }\n"
                           "extern \"C\" __global__ void add(const float *x, const float *y, float *z) {\n"
                           "  z[threadIdx.x] = x[threadIdx.x] + y[threadIdx.x];\n"
                           "}\n";

struct fixture {
  struct gpu gpu;
  CUstream other;
  CUevent fork, join;
  CUmodule module;
  CUfunction fill, add;
  CUdeviceptr x, y, z;
  float *host;
};

static struct fixture open(int device) {
  struct fixture f = {.gpu = gpu_open(device)};
  ok(cu.cuStreamCreate(&f.other, CU_STREAM_NON_BLOCKING));
  ok(cu.cuEventCreate(&f.fork, CU_EVENT_DISABLE_TIMING));
  ok(cu.cuEventCreate(&f.join, CU_EVENT_DISABLE_TIMING));
  f.module = gpu_module(text);
  f.fill = gpu_function(f.module, "fill");
  f.add = gpu_function(f.module, "add");
  f.x = gpu_alloc(BYTES);
  f.y = gpu_alloc(BYTES);
  f.z = gpu_alloc(BYTES);
  f.host = gpu_host(BYTES);
  return f;
}

static void close(struct fixture *f) {
  ok(cu.cuCtxSetCurrent(f->gpu.context));
  ok(cu.cuMemFree(f->x));
  ok(cu.cuMemFree(f->y));
  ok(cu.cuMemFree(f->z));
  ok(cu.cuMemFreeHost(f->host));
  ok(cu.cuModuleUnload(f->module));
  ok(cu.cuEventDestroy(f->fork));
  ok(cu.cuEventDestroy(f->join));
  ok(cu.cuStreamDestroy(f->other));
  gpu_close(&f->gpu);
}

static void fill(struct fixture *f, CUdeviceptr x, float value, CUstream s) {
  ok(cu.cuLaunchKernel(f->fill, 1, 1, 1, N, 1, 1, 0, s, (void *[]){&x, &value}, NULL));
}

static void add(struct fixture *f, CUdeviceptr x, CUdeviceptr y, CUdeviceptr z, CUstream s) {
  ok(cu.cuLaunchKernel(f->add, 1, 1, 1, N, 1, 1, 0, s, (void *[]){&x, &y, &z}, NULL));
}

static void begin(struct fixture *f) {
  ok(cu.cuStreamBeginCapture(f->gpu.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}

static CUgraphExec end(struct fixture *f) {
  CUgraph graph;
  CUgraphExec exec;
  ok(cu.cuStreamEndCapture(f->gpu.stream, &graph));
  ok(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
  ok(cu.cuGraphDestroy(graph));
  return exec;
}

static void end_fails(struct fixture *f, int error) {
  CUgraph graph = (CUgraph)f;
  fails_with(error, cu.cuStreamEndCapture(f->gpu.stream, &graph));
  check(graph == NULL);
}

/* x = x + x on one stream beside y = 1 on the other, then z = x + y. How many of the launches give something
 * else? */
static int wrong_results(bool fork, bool join) {
  struct fixture f = open(0);
  int wrong = 0;
  fill(&f, f.x, 1, f.gpu.stream);
  ok(cu.cuStreamSynchronize(f.gpu.stream));
  begin(&f);
  if (fork) {
    ok(cu.cuMemsetD8Async(f.y, 0, BYTES, f.gpu.stream));
    ok(cu.cuEventRecord(f.fork, f.gpu.stream));
  } else {
    ok(cu.cuEventRecord(f.fork, f.gpu.stream));
    ok(cu.cuMemsetD8Async(f.y, 0, BYTES, f.gpu.stream));
  }
  ok(cu.cuStreamWaitEvent(f.other, f.fork, 0));
  fill(&f, f.y, 1, f.other);
  if (join) ok(cu.cuEventRecord(f.join, f.other));
  add(&f, f.x, f.x, f.x, f.gpu.stream);
  if (join) ok(cu.cuStreamWaitEvent(f.gpu.stream, f.join, 0));
  add(&f, f.x, f.y, f.z, f.gpu.stream);
  ok(cu.cuMemcpyAsync((CUdeviceptr)(uintptr_t)f.host, f.z, BYTES, f.gpu.stream));
  if (!join) { /* too late for the sum, but it ends well */
    ok(cu.cuEventRecord(f.join, f.other));
    ok(cu.cuStreamWaitEvent(f.gpu.stream, f.join, 0));
  }
  CUgraphExec exec = end(&f);
  ok(cu.cuStreamSynchronize(f.gpu.stream));
  float expected = 1;
  for (int i = 0; i < REPEATS; i++) {
    fill(&f, f.x, expected = (float)i, f.gpu.stream);
    ok(cu.cuGraphLaunch(exec, f.gpu.stream));
    ok(cu.cuStreamSynchronize(f.gpu.stream));
    wrong += f.host[0] != 2 * expected + 1 || f.host[N - 1] != 2 * expected + 1;
  }
  ok(cu.cuGraphExecDestroy(exec));
  close(&f);
  return wrong;
}

static void test_edges(void) { check(wrong_results(true, true) == 0); }
static void test_missing_fork(void) { check(wrong_results(false, true) > 0); }
static void test_missing_join(void) { check(wrong_results(true, false) > 0); }

/* Nothing runs while it is captured, and parameters are those of the call. */
static void test_not_run(void) {
  struct fixture f = open(0);
  fill(&f, f.x, 1, f.gpu.stream);
  ok(cu.cuStreamSynchronize(f.gpu.stream));
  begin(&f);
  fill(&f, f.x, 2, f.gpu.stream);
  CUgraphExec exec = end(&f);
  for (int i = 1; i <= 2; i++) {
    ok(cu.cuMemcpyAsync((CUdeviceptr)(uintptr_t)f.host, f.x, BYTES, f.gpu.stream));
    ok(cu.cuStreamSynchronize(f.gpu.stream));
    check(f.host[0] == (float)i);
    ok(cu.cuGraphLaunch(exec, f.gpu.stream));
  }
  ok(cu.cuGraphExecDestroy(exec)); /* while it may still run */
  ok(cu.cuStreamSynchronize(f.gpu.stream));
  close(&f);
}

static void test_two_devices(void) {
  struct fixture a = open(0), b = open(1);
  ok(cu.cuCtxSetCurrent(a.gpu.context));
  begin(&a);
  fill(&a, a.x, 3, a.gpu.stream);
  ok(cu.cuEventRecord(a.fork, a.gpu.stream));
  ok(cu.cuCtxSetCurrent(b.gpu.context));
  ok(cu.cuStreamWaitEvent(b.gpu.stream, a.fork, 0));
  ok(cu.cuMemcpyPeerAsync(b.x, b.gpu.context, a.x, a.gpu.context, BYTES, b.gpu.stream));
  add(&b, b.x, b.x, b.y, b.gpu.stream);
  ok(cu.cuMemcpyAsync((CUdeviceptr)(uintptr_t)b.host, b.y, BYTES, b.gpu.stream));
  ok(cu.cuEventRecord(b.join, b.gpu.stream));
  ok(cu.cuCtxSetCurrent(a.gpu.context));
  ok(cu.cuStreamWaitEvent(a.gpu.stream, b.join, 0));
  CUgraphExec exec = end(&a);
  for (int i = 0; i < REPEATS; i++) {
    memset(b.host, 0, BYTES);
    ok(cu.cuGraphLaunch(exec, a.gpu.stream));
    ok(cu.cuStreamSynchronize(a.gpu.stream));
    check(b.host[0] == 6 && b.host[N - 1] == 6);
  }
  ok(cu.cuGraphExecDestroy(exec));
  close(&a);
  close(&b);
}

/* --- what ends a capture badly --- */

static void test_unjoined(void) {
  struct fixture f = open(0);
  begin(&f);
  ok(cu.cuEventRecord(f.fork, f.gpu.stream));
  ok(cu.cuStreamWaitEvent(f.other, f.fork, 0));
  fill(&f, f.x, 1, f.other);
  end_fails(&f, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED + 4);
  fill(&f, f.x, 1, f.other); /* both streams are as before */
  fill(&f, f.y, 1, f.gpu.stream);
  ok(cu.cuStreamSynchronize(f.other));
  ok(cu.cuStreamSynchronize(f.gpu.stream));
  close(&f);
}

static void test_unsafe_calls(void) {
  struct fixture f = open(0);
  CUdeviceptr p;
  fill(&f, f.x, 1, f.gpu.stream);
  ok(cu.cuEventRecord(f.join, f.gpu.stream));
  for (int i = 0; i < 6; i++) {
    begin(&f);
    fill(&f, f.x, 1, f.gpu.stream);
    ok(cu.cuEventRecord(f.fork, f.gpu.stream));
    int r = i == 0   ? cu.cuMemAlloc(&p, 4)
            : i == 1 ? cu.cuMemFree(f.y)
            : i == 2 ? cu.cuStreamSynchronize(f.gpu.stream)
            : i == 3 ? cu.cuStreamSynchronize(f.other)
            : i == 4 ? cu.cuEventSynchronize(f.fork)
                     : cu.cuEventQuery(f.join);
    fails_with(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, r);
    float one = 1;
    fails_with(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
               cu.cuLaunchKernel(f.fill, 1, 1, 1, N, 1, 1, 0, f.gpu.stream, (void *[]){&f.x, &one}, NULL));
    end_fails(&f, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  ok(cu.cuEventSynchronize(f.join));
  close(&f);
}

static void *allocate_elsewhere(void *argument) {
  struct fixture *f = argument;
  CUdeviceptr p;
  CUgraph graph;
  ok(cu.cuCtxSetCurrent(f->gpu.context));
  ok(cu.cuMemAlloc(&p, 4));
  ok(cu.cuMemFree(p));
  fails_with(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED + 8, cu.cuStreamEndCapture(f->gpu.stream, &graph));
  return NULL;
}

/* Other threads may do what they like, but not end it. */
static void test_thread_local(void) {
  struct fixture f = open(0);
  pthread_t thread;
  begin(&f);
  fill(&f, f.x, 1, f.gpu.stream);
  check(pthread_create(&thread, NULL, allocate_elsewhere, &f) == 0);
  pthread_join(thread, NULL);
  end_fails(&f, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  close(&f);
}

static void test_isolation(void) {
  struct fixture f = open(0);
  fill(&f, f.x, 1, f.other);
  ok(cu.cuEventRecord(f.fork, f.other));
  begin(&f);
  fails_with(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED + 5, cu.cuStreamWaitEvent(f.gpu.stream, f.fork, 0));
  end_fails(&f, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  fails_with(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED + 3,
             cu.cuStreamEndCapture(f.gpu.stream, &(CUgraph){NULL}));
  ok(cu.cuStreamSynchronize(f.other));
  close(&f);
}

/* An event of a capture says nothing about the graph's launches. */
static void test_captured_event(void) {
  struct fixture f = open(0);
  begin(&f);
  fill(&f, f.x, 1, f.gpu.stream);
  ok(cu.cuEventRecord(f.fork, f.gpu.stream));
  CUgraphExec exec = end(&f);
  ok(cu.cuGraphLaunch(exec, f.gpu.stream));
  fails_with(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED + 7, cu.cuEventQuery(f.fork));
  fails_with(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED + 7, cu.cuStreamWaitEvent(f.other, f.fork, 0));
  ok(cu.cuEventRecord(f.fork, f.gpu.stream)); /* now it does */
  ok(cu.cuEventSynchronize(f.fork));
  ok(cu.cuGraphExecDestroy(exec));
  close(&f);
}

static void test_unloaded(void) {
  struct fixture f = open(0);
  begin(&f);
  fill(&f, f.x, 1, f.gpu.stream);
  CUgraphExec exec = end(&f);
  ok(cu.cuModuleUnload(f.module));
  fails_with(CUDA_ERROR_INVALID_HANDLE, cu.cuGraphLaunch(exec, f.gpu.stream));
}

static void test_fail_launch(void) {
  struct fixture f = open(0);
  begin(&f);
  fill(&f, f.x, 1, f.gpu.stream);
  CUgraphExec exec = end(&f);
  ok(cu.cuGraphLaunch(exec, f.gpu.stream));
  fails_with(CUDA_ERROR_LAUNCH_FAILED, cu.cuGraphLaunch(exec, f.gpu.stream));
}

static void leak_graph(void) {
  struct fixture f = open(0);
  begin(&f);
  end(&f);
  close(&f);
}

static const struct test_case cases[] = {
    {"edges", test_edges, "LEAKS=1", 0, NULL},
    {"edges, seed 2", test_edges, "SEED=2", 0, NULL},
    {"missing fork", test_missing_fork, NULL, 0, NULL},
    {"missing fork, eager", test_missing_fork, "DELAY=0", 0, NULL},
    {"missing join", test_missing_join, NULL, 0, NULL},
    {"not run", test_not_run, "LEAKS=1", 0, NULL},
    {"two devices", test_two_devices, "DEVICES=2 LEAKS=1", 0, NULL},
    {"unjoined", test_unjoined, "LEAKS=1", 0, "not joined"},
    {"unsafe calls", test_unsafe_calls, "LEAKS=1", 0, "while this thread captures"},
    {"thread local", test_thread_local, "LEAKS=1", 0, "another thread"},
    {"isolation", test_isolation, "LEAKS=1", 0, "was not captured"},
    {"captured event", test_captured_event, "LEAKS=1", 0, "no event of the host"},
    {"unloaded", test_unloaded, NULL, 0, "module of kernel fill is unloaded"},
    {"fail launch", test_fail_launch, "FAIL=cuGraphLaunch:2", 0, NULL},
    {"leak: graph", leak_graph, "LEAKS=1", 66, "not destroyed: executable graph"},
};

int main(int argc, char **argv) { return run_cases(argc, argv, cases, sizeof cases / sizeof *cases); }
