/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, streams, events, failures and leaks: is the simulation as strict as it says? */
#include "tests/simulated_cuda/harness.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1000, BYTES = N * sizeof(float), REPEATS = 60 };

static const char text[] =
    "struct sizes { long long n; };\n"
    "static __device__ long long place(void) { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }\n"
    "extern \"C\" __global__ void fill(float *x, float v, struct sizes s) {\n"
    "  long long i = place();\n"
    "  if (i < s.n) x[i] = v;\n"
    "}\n"
    "extern \"C\" __global__ void add(const float *__restrict__ x, const float *y, float *z, struct sizes s) "
    "{\n"
    "  long long i = place();\n"
    "  if (i < s.n) z[i] = x[i] + y[i];\n"
    "}\n"
    "extern \"C\" __global__ void at(const unsigned long long *where, float *to) {\n"
    "  if (place() == 0) to[0] = *(const float *)where[0];\n"
    "}\n"
    "extern \"C\" __global__ void divide(int *x, int by) { x[0] = 7 / by; }\n";

struct fixture {
  struct gpu gpu;
  CUmodule module;
  CUfunction fill, add;
  CUdeviceptr x, y;
  float *host;
};

static struct fixture open(int device) {
  struct fixture f = {.gpu = gpu_open(device)};
  f.module = gpu_module(text);
  f.fill = gpu_function(f.module, "fill");
  f.add = gpu_function(f.module, "add");
  f.x = gpu_alloc(BYTES);
  f.y = gpu_alloc(BYTES);
  f.host = gpu_host(BYTES);
  return f;
}

static void close(struct fixture *f) {
  ok(cu.cuCtxSetCurrent(f->gpu.context));
  ok(cu.cuMemFree(f->x));
  ok(cu.cuMemFree(f->y));
  ok(cu.cuMemFreeHost(f->host));
  ok(cu.cuModuleUnload(f->module));
  gpu_close(&f->gpu);
}

static int fill(struct fixture *f, CUdeviceptr x, float value, long long n, CUstream s) {
  return cu.cuLaunchKernel(f->fill, (unsigned)(n + 255) / 256, 1, 1, 256, 1, 1, 0, s,
                           (void *[]){&x, &value, &n}, NULL);
}

static int add(struct fixture *f, CUdeviceptr x, CUdeviceptr y, CUdeviceptr z, CUstream s) {
  long long n = N;
  return cu.cuLaunchKernel(f->add, 4, 1, 1, 256, 1, 1, 0, s, (void *[]){&x, &y, &z, &n}, NULL);
}

static CUdeviceptr device_of(const void *host) { return (CUdeviceptr)(uintptr_t)host; }

static bool all(const float *x, float value) {
  for (int i = 0; i < N; i++)
    if (x[i] != value) return false;
  return true;
}

/* --- memory --- */

static void test_trivial(void) {
  struct fixture f = open(0);
  ok(fill(&f, f.x, 2, N, f.gpu.stream));
  ok(fill(&f, f.y, 3, N, f.gpu.stream));
  ok(add(&f, f.x, f.y, f.y, f.gpu.stream));
  ok(cu.cuMemcpyAsync(device_of(f.host), f.y, BYTES, f.gpu.stream));
  ok(cu.cuStreamSynchronize(f.gpu.stream));
  check(all(f.host, 5));
  ok(cu.cuMemsetD8Async(f.y + 4, 0, BYTES - 4, f.gpu.stream));
  ok(cu.cuMemcpyAsync(device_of(f.host), f.y, BYTES, f.gpu.stream));
  ok(cu.cuStreamSynchronize(f.gpu.stream));
  check(f.host[0] == 5 && f.host[1] == 0 && f.host[N - 1] == 0);
  close(&f);
}

static void test_poison(void) {
  struct fixture f = open(0);
  check(isnan(f.host[0]) && isnan(f.host[N - 1]));
  memset(f.host, 0, BYTES);
  ok(cu.cuMemcpyAsync(device_of(f.host), f.x, BYTES, f.gpu.stream));
  ok(cu.cuStreamSynchronize(f.gpu.stream));
  for (int i = 0; i < N; i++) check(isnan(f.host[i]));
  close(&f);
}

/* Far behind the end is a trap, and all that follows on this device fails. */
static void test_behind(void) {
  struct fixture f = open(0);
  CUdeviceptr p;
  CUresult r = fill(&f, f.x, 1, N + 100, f.gpu.stream);
  check(r == CUDA_SUCCESS || r == CUDA_ERROR_ILLEGAL_ADDRESS);
  fails_with(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(f.gpu.stream));
  fails_with(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemAlloc(&p, 4));
  fails_with(CUDA_ERROR_ILLEGAL_ADDRESS, fill(&f, f.x, 1, N, f.gpu.stream));
  fails_with(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemFree(f.x));
  fails_with(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemFree(f.y));
  fails_with(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemFreeHost(f.host));
  fails_with(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuModuleUnload(f.module));
  fails_with(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamDestroy(f.gpu.stream));
  fails_with(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuDevicePrimaryCtxRelease(0));
}

/* Just behind the end is seen when the memory is freed. */
static void test_slack(void) {
  struct fixture f = open(0);
  CUdeviceptr p = gpu_alloc(100);
  ok(fill(&f, p, 1, 26, f.gpu.stream));
  ok(cu.cuStreamSynchronize(f.gpu.stream));
  fails_with(CUDA_ERROR_INVALID_VALUE, cu.cuMemFree(p));
}

static void test_freed(void) {
  struct fixture f = open(0);
  CUdeviceptr p = gpu_alloc(BYTES);
  ok(cu.cuMemFree(p));
  CUresult r = fill(&f, p, 1, N, f.gpu.stream);
  check(r == CUDA_SUCCESS || r == CUDA_ERROR_ILLEGAL_ADDRESS);
  fails_with(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(f.gpu.stream));
}

static void test_double_free(void) {
  struct fixture f = open(0);
  CUdeviceptr p = gpu_alloc(BYTES);
  ok(cu.cuMemFree(p));
  fails_with(CUDA_ERROR_INVALID_VALUE, cu.cuMemFree(p));
  fails_with(CUDA_ERROR_INVALID_VALUE, cu.cuMemFree(f.x + 256));
  fails_with(CUDA_ERROR_INVALID_VALUE, cu.cuMemFree(device_of(f.host)));
  fails_with(CUDA_ERROR_INVALID_VALUE, cu.cuMemFreeHost((void *)(uintptr_t)f.x));
}

static void test_limit(void) {
  struct gpu g = gpu_open(0);
  size_t available, total;
  CUdeviceptr p, q;
  ok(cu.cuMemGetInfo(&available, &total));
  check(total == 1 << 20 && available == total);
  ok(cu.cuMemAlloc(&p, 1 << 19));
  ok(cu.cuMemGetInfo(&available, &total));
  check(available == 1 << 19);
  fails_with(CUDA_ERROR_OUT_OF_MEMORY, cu.cuMemAlloc(&q, (1 << 19) + 1));
  ok(cu.cuMemAlloc(&q, 1 << 19));
  ok(cu.cuMemFree(p));
  ok(cu.cuMemFree(q));
  ok(cu.cuMemGetInfo(&available, &total));
  check(available == total);
  for (int i = 0; i < 20000; i++) { /* more addresses than there are: used again, but late */
    ok(cu.cuMemAlloc(&q, 1 << 19));
    check(p != q && q % 256 == 0);
    p = q;
    ok(cu.cuMemFree(q));
  }
  gpu_close(&g);
}

static void test_host_reads(void) {
  struct fixture f = open(0);
  ok(fill(&f, f.x, 1, N, f.gpu.stream));
  ok(cu.cuStreamSynchronize(f.gpu.stream));
  exit(*(volatile float *)(uintptr_t)f.x == 1 ? 0 : 3);
}

static void test_pageable(void) {
  struct fixture f = open(0);
  float *heap = malloc(BYTES);
  fails_with(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpyAsync(device_of(heap), f.x, BYTES, f.gpu.stream));
  fails_with(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpyAsync(f.x, device_of(heap), BYTES, f.gpu.stream));
  fails_with(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpyAsync(f.x, device_of(f.host) + 4, BYTES, f.gpu.stream));
  free(heap);
  close(&f);
}

#if defined(__x86_64__) /* the only host that traps */
static void test_division(void) {
  struct fixture f = open(0);
  int zero = 0;
  cu.cuLaunchKernel(gpu_function(f.module, "divide"), 1, 1, 1, 1, 1, 1, 0, f.gpu.stream,
                    (void *[]){&f.x, &zero}, NULL);
  fails_with(CUDA_ERROR_LAUNCH_FAILED, cu.cuStreamSynchronize(f.gpu.stream));
}

#endif

/* --- several devices --- */

struct pair {
  struct fixture a, b;
};

static struct pair open_pair(void) {
  struct pair p = {open(0), open(1)};
  ok(fill(&p.b, p.b.x, 7, N, p.b.gpu.stream));
  ok(cu.cuStreamSynchronize(p.b.gpu.stream));
  ok(cu.cuCtxSetCurrent(p.a.gpu.context));
  return p;
}

/* The address lies in memory, so that only the access itself can tell. */
static int read_other(struct pair *p) {
  memcpy(p->a.host, &p->b.x, sizeof p->b.x);
  ok(cu.cuMemcpyAsync(p->a.y, device_of(p->a.host), 8, p->a.gpu.stream));
  int r = cu.cuLaunchKernel(gpu_function(p->a.module, "at"), 1, 1, 1, 1, 1, 1, 0, p->a.gpu.stream,
                            (void *[]){&p->a.y, &p->a.x}, NULL);
  return r ? r : cu.cuStreamSynchronize(p->a.gpu.stream);
}

static void test_no_peer(void) {
  struct pair p = open_pair();
  fails_with(CUDA_ERROR_ILLEGAL_ADDRESS, read_other(&p));
  ok(cu.cuCtxSetCurrent(p.b.gpu.context)); /* the other device is fine */
  ok(fill(&p.b, p.b.x, 8, N, p.b.gpu.stream));
  ok(cu.cuStreamSynchronize(p.b.gpu.stream));
}

static void test_no_peer_argument(void) {
  struct pair p = open_pair();
  int r = fill(&p.a, p.b.x, 1, N, p.a.gpu.stream);
  fails_with(CUDA_ERROR_ILLEGAL_ADDRESS, r ? r : cu.cuStreamSynchronize(p.a.gpu.stream));
}

static void test_peer(void) {
  struct pair p = open_pair();
  int can;
  ok(cu.cuDeviceCanAccessPeer(&can, 0, 1));
  check(can);
  ok(cu.cuCtxEnablePeerAccess(p.b.gpu.context, 0));
  fails_with(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cu.cuCtxEnablePeerAccess(p.b.gpu.context, 0));
  ok(read_other(&p));
  ok(cu.cuMemcpyAsync(device_of(p.a.host), p.a.x, 4, p.a.gpu.stream));
  ok(cu.cuStreamSynchronize(p.a.gpu.stream));
  check(p.a.host[0] == 7);
  close(&p.a);
  close(&p.b);
}

static void test_peer_impossible(void) {
  struct pair p = open_pair();
  int can;
  ok(cu.cuDeviceCanAccessPeer(&can, 0, 1));
  check(!can);
  fails_with(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, cu.cuCtxEnablePeerAccess(p.b.gpu.context, 0));
  ok(cu.cuMemcpyPeerAsync(p.a.x, p.a.gpu.context, p.b.x, p.b.gpu.context, BYTES, p.a.gpu.stream));
  ok(cu.cuMemcpyAsync(device_of(p.a.host), p.a.x, BYTES, p.a.gpu.stream));
  ok(cu.cuStreamSynchronize(p.a.gpu.stream));
  check(all(p.a.host, 7));
  fails_with(CUDA_ERROR_INVALID_VALUE,
             cu.cuMemcpyPeerAsync(p.a.x, p.b.gpu.context, p.b.x, p.a.gpu.context, BYTES, p.a.gpu.stream));
  fails_with(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpyAsync(p.a.x, p.b.x, BYTES, p.a.gpu.stream));
  close(&p.a);
  close(&p.b);
}

static void test_wrong_context(void) {
  struct pair p = open_pair();
  CUevent e;
  fails_with(CUDA_ERROR_INVALID_HANDLE, fill(&p.a, p.a.x, 1, N, p.b.gpu.stream));
  fails_with(CUDA_ERROR_INVALID_HANDLE, fill(&p.b, p.b.x, 1, N, p.b.gpu.stream)); /* it is not current */
  ok(cu.cuEventCreate(&e, 0));
  fails_with(CUDA_ERROR_INVALID_HANDLE, cu.cuEventRecord(e, p.b.gpu.stream));
  fails_with(CUDA_ERROR_INVALID_HANDLE, cu.cuStreamSynchronize(NULL));
  ok(cu.cuCtxSetCurrent(NULL));
  fails_with(CUDA_ERROR_INVALID_CONTEXT, cu.cuEventDestroy(e));
}

/* --- streams and events --- */

/* Two streams, one writes what the other reads. Returns how often the result is not right. */
static int wrong_results(bool wait) {
  struct fixture f = open(0);
  CUstream other;
  CUevent e;
  int wrong = 0;
  ok(cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  ok(cu.cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
  for (int i = 1; i <= REPEATS; i++) {
    ok(fill(&f, f.x, (float)i, N, f.gpu.stream));
    ok(cu.cuEventRecord(e, f.gpu.stream));
    if (wait) ok(cu.cuStreamWaitEvent(other, e, 0));
    ok(add(&f, f.x, f.x, f.y, other));
    ok(cu.cuMemcpyAsync(device_of(f.host), f.y, BYTES, other));
    ok(cu.cuStreamSynchronize(other));
    wrong += !all(f.host, 2 * (float)i);
    ok(cu.cuStreamSynchronize(f.gpu.stream));
  }
  ok(cu.cuEventDestroy(e));
  ok(cu.cuStreamDestroy(other));
  close(&f);
  return wrong;
}

static void test_wait(void) { check(wrong_results(true) == 0); }
static void test_missing_wait(void) { check(wrong_results(false) > 0); }
static void test_eager(void) { check(wrong_results(false) == 0); } /* no delays: all at once */

static void test_early_reuse(void) {
  struct fixture f = open(0);
  int wrong = 0;
  for (int i = 0; i < REPEATS; i++) {
    for (int k = 0; k < N; k++) f.host[k] = (float)i;
    ok(cu.cuMemcpyAsync(f.x, device_of(f.host), BYTES, f.gpu.stream));
    for (int k = 0; k < N; k++) f.host[k] = -1; /* the copy may not have happened yet */
    ok(cu.cuMemcpyAsync(device_of(f.host), f.x, BYTES, f.gpu.stream));
    ok(cu.cuStreamSynchronize(f.gpu.stream));
    wrong += !all(f.host, (float)i);
  }
  check(wrong > 0 && wrong < REPEATS);
  close(&f);
}

static void test_events(void) {
  struct fixture f = open(0);
  CUstream other;
  CUevent e, timed, untimed;
  float ms;
  ok(cu.cuStreamCreate(&other, 0));
  ok(cu.cuEventCreate(&e, 0));
  ok(cu.cuEventCreate(&timed, 0));
  ok(cu.cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
  ok(cu.cuEventQuery(e)); /* never recorded: nothing to wait for */
  ok(cu.cuEventSynchronize(e));
  ok(cu.cuStreamWaitEvent(other, e, 0));
  fails_with(CUDA_ERROR_INVALID_HANDLE, cu.cuEventElapsedTime(&ms, e, e));
  for (int i = 0; i < REPEATS; i++) {
    /* A wait is for the record before it: a later one does not make `other` wait for the fill behind it. */
    ok(cu.cuEventRecord(e, f.gpu.stream));
    ok(cu.cuStreamWaitEvent(other, e, 0));
    ok(fill(&f, f.x, 1, N, f.gpu.stream));
    ok(cu.cuEventRecord(timed, f.gpu.stream));
    ok(cu.cuEventRecord(untimed, f.gpu.stream));
    int queries = 0, r;
    while ((r = cu.cuEventQuery(timed)) == CUDA_ERROR_NOT_READY) check(++queries < 1000);
    ok(r);
    ok(cu.cuEventElapsedTime(&ms, e, timed));
    check(ms >= 0);
    fails_with(CUDA_ERROR_INVALID_HANDLE, cu.cuEventElapsedTime(&ms, e, untimed));
    ok(cu.cuEventSynchronize(untimed));
  }
  ok(cu.cuEventDestroy(e));
  fails_with(CUDA_ERROR_INVALID_HANDLE, cu.cuEventRecord(e, other));
  ok(cu.cuEventDestroy(timed));
  ok(cu.cuEventDestroy(untimed));
  ok(cu.cuStreamDestroy(other));
  fails_with(CUDA_ERROR_INVALID_HANDLE, cu.cuStreamSynchronize(other));
  close(&f);
}

/* A destroyed stream does what it was asked to. */
static void test_destroyed_stream(void) {
  struct fixture f = open(0);
  CUevent e;
  ok(cu.cuEventCreate(&e, 0));
  for (int i = 0; i < REPEATS; i++) {
    CUstream s;
    ok(cu.cuStreamCreate(&s, 0));
    ok(fill(&f, f.x, (float)i, N, s));
    ok(cu.cuEventRecord(e, s));
    ok(cu.cuStreamDestroy(s));
    ok(cu.cuEventSynchronize(e));
    ok(cu.cuMemcpyAsync(device_of(f.host), f.x, BYTES, f.gpu.stream));
    ok(cu.cuStreamSynchronize(f.gpu.stream));
    check(all(f.host, (float)i));
  }
  ok(cu.cuEventDestroy(e));
  close(&f);
}

static void *use_device(void *argument) {
  int device = *(int *)argument;
  struct fixture f = open(device % 2);
  for (int i = 0; i < REPEATS; i++) {
    ok(fill(&f, f.x, (float)(i + device), N, f.gpu.stream));
    ok(cu.cuMemcpyAsync(device_of(f.host), f.x, BYTES, f.gpu.stream));
    ok(cu.cuStreamSynchronize(f.gpu.stream));
    check(all(f.host, (float)(i + device)));
  }
  close(&f);
  return NULL;
}

/* Threads of the host have a current context each. */
static void test_threads(void) {
  pthread_t threads[4];
  int devices[4] = {0, 1, 2, 3};
  for (int i = 0; i < 4; i++) check(pthread_create(&threads[i], NULL, use_device, &devices[i]) == 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

/* --- failures and leaks --- */

static void test_fail_alloc(void) {
  struct gpu g = gpu_open(0);
  CUdeviceptr p;
  ok(cu.cuMemAlloc(&p, 4));
  ok(cu.cuMemFree(p));
  fails_with(CUDA_ERROR_OUT_OF_MEMORY, cu.cuMemAlloc(&p, 4));
  ok(cu.cuMemAlloc(&p, 4));
  fails_with(CUDA_ERROR_OUT_OF_MEMORY, cu.cuStreamCreate(&g.stream, 0));
}

/* What destroys does so even if it says that something has failed. */
static void test_fail_free(void) {
  struct gpu g = gpu_open(0);
  CUdeviceptr p = gpu_alloc(4), q = gpu_alloc(4);
  fails_with(CUDA_ERROR_LAUNCH_FAILED, cu.cuMemFree(p));
  fails_with(CUDA_ERROR_LAUNCH_FAILED, cu.cuMemFree(q));
  fails_with(CUDA_ERROR_LAUNCH_FAILED, cu.cuStreamDestroy(g.stream));
  fails_with(CUDA_ERROR_LAUNCH_FAILED, cu.cuDevicePrimaryCtxRelease(0));
}

static void test_fail_launch(void) {
  struct fixture f = open(0);
  ok(fill(&f, f.x, 1, N, f.gpu.stream));
  fails_with(CUDA_ERROR_LAUNCH_FAILED, fill(&f, f.x, 1, N, f.gpu.stream));
  fails_with(CUDA_ERROR_LAUNCH_FAILED, cu.cuStreamSynchronize(f.gpu.stream));
}

static void test_missing_symbol(void) { check(!cu.cuGraphLaunch && !cu.cuEventQuery && cu.cuInit); }

static void test_old_driver(void) {
  int version;
  ok(cu.cuDriverGetVersion(&version));
  check(version == 11000 && !cu.cuGraphInstantiateWithFlags && cu.cuMemAlloc);
}

/* Nothing of syms.def is forgotten. */
static void test_complete(void) {
#define DRIVER(result, name, version, arguments) check(cu.name != NULL);
#define NVRTC(result, name, arguments)           check(cu.name != NULL);
#define BLAS(result, name, arguments)            check(cu.name != NULL);
#define NCCL(result, name, arguments)            check(cu.name != NULL);
#include "runtime/cuda/syms.def"
}

static void test_no_device(void) { fails_with(CUDA_ERROR_NO_DEVICE, cu.cuInit(0)); }
static void test_no_init(void) {
  int n;
  fails_with(CUDA_ERROR_NOT_INITIALIZED, cu.cuDeviceGetCount(&n));
}

static void test_devices(void) {
  int n, major, minor;
  char name[64];
  ok(cu.cuInit(0));
  ok(cu.cuDeviceGetCount(&n));
  check(n == 3);
  ok(cu.cuDeviceGetName(name, sizeof name, 2));
  check(strcmp(name, "simulated GPU 2") == 0);
  ok(cu.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 2));
  ok(cu.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 2));
  check(major == 12 && minor == 0);
  fails_with(CUDA_ERROR_INVALID_DEVICE, cu.cuDeviceGetName(name, sizeof name, 3));
}

static void leak_event(void) {
  struct gpu g = gpu_open(0);
  CUevent e;
  ok(cu.cuEventCreate(&e, 0));
  gpu_close(&g);
}

static void leak_memory(void) {
  struct gpu g = gpu_open(0);
  gpu_alloc(100);
  gpu_close(&g);
}

static void leak_stream(void) {
  gpu_open(0);
  ok(cu.cuDevicePrimaryCtxRelease(0));
}

static void leak_context(void) {
  struct gpu g = gpu_open(0);
  ok(cu.cuStreamDestroy(g.stream));
}

static void leak_program(void) {
  nvrtcProgram p;
  ok(cu.nvrtcCreateProgram(&p, text, NULL, 0, NULL, NULL));
}

static const struct test_case cases[] = {
    {"trivial", test_trivial, "LEAKS=1", 0, NULL},
    {"poison", test_poison, "LEAKS=1", 0, NULL},
    {"behind", test_behind, "LEAKS=1", 0, "kernel fill, block (4,0,0): access to 0x"},
    {"behind, what", test_behind, NULL, 0, "bytes behind the end of 4000 bytes of simulated GPU 0"},
    {"slack", test_slack, NULL, 0, "written 0 bytes behind the end of 100 bytes"},
    {"freed", test_freed, NULL, 0, "byte 0 of 4000 bytes of simulated GPU 0 that are freed"},
    {"double free", test_double_free, NULL, 0, "cannot free"},
    {"limit", test_limit, "LEAKS=1 MEMORY=1048576", 0, NULL},
    {"host reads", test_host_reads, NULL, DIES, "the host accesses"},
    {"pageable", test_pageable, NULL, 0, "memory of the host that is not pinned"},
#if defined(__x86_64__)
    {"division", test_division, NULL, 0, "divided by zero"},
#endif
    {"no peer", test_no_peer, "DEVICES=2", 0, "of simulated GPU 1, to which it has no access"},
    {"no peer, argument", test_no_peer_argument, "DEVICES=2", 0, "parameter 1 is"},
    {"peer", test_peer, "DEVICES=2 LEAKS=1", 0, NULL},
    {"peer impossible", test_peer_impossible, "DEVICES=2 PEER=0 LEAKS=1", 0, NULL},
    {"wrong context", test_wrong_context, "DEVICES=2", 0, "current context are not of the same device"},
    {"wait", test_wait, "LEAKS=1", 0, NULL},
    {"wait, seed 2", test_wait, "SEED=2", 0, NULL},
    {"missing wait", test_missing_wait, "LEAKS=1", 0, NULL},
    {"missing wait, seed 2", test_missing_wait, "SEED=2", 0, NULL},
    {"eager", test_eager, "DELAY=0 LEAKS=1", 0, NULL},
    {"early reuse", test_early_reuse, NULL, 0, NULL},
    {"events", test_events, "LEAKS=1", 0, NULL},
    {"events, eager", test_events, "LEAKS=1 DELAY=0", 0, NULL},
    {"destroyed stream", test_destroyed_stream, "LEAKS=1", 0, NULL},
    {"threads", test_threads, "DEVICES=2 LEAKS=1", 0, NULL},
    {"fail alloc", test_fail_alloc, "FAIL=cuMemAlloc:2,cuStreamCreate:2", 0, NULL},
    {"fail free", test_fail_free, "FAIL=cuMemFree:1 LEAKS=1", 0, NULL},
    {"fail launch", test_fail_launch, "FAIL=cuLaunchKernel:2", 0, NULL},
    {"missing symbol", test_missing_symbol, "MISSING=cuGraphLaunch,cuEventQuery", 0, NULL},
    {"old driver", test_old_driver, "DRIVER=11.0", 0, NULL},
    {"complete", test_complete, NULL, 0, NULL},
    {"no device", test_no_device, "DEVICES=0", 0, NULL},
    {"no init", test_no_init, NULL, 0, NULL},
    {"devices", test_devices, "DEVICES=3 ARCH=120", 0, NULL},
    {"leak: event", leak_event, "LEAKS=1", 66, "not destroyed: event"},
    {"leak: memory", leak_memory, "LEAKS=1", 66, "not destroyed: device memory"},
    {"leak: stream", leak_stream, "LEAKS=1", 66, "not destroyed: stream"},
    {"leak: context", leak_context, "LEAKS=1", 66, "not destroyed: context"},
    {"leak: program", leak_program, "LEAKS=1", 66, "not destroyed: program"},
    {"leak, not asked", leak_event, NULL, 0, NULL},
};

int main(int argc, char **argv) { return run_cases(argc, argv, cases, sizeof cases / sizeof *cases); }
