/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over several devices: are they right in every order of events, and is what is wrong refused? */
#include "tests/simulated_cuda/harness.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { N = 100, BYTES = N * 8, MAX = 4, REPEATS = 40 };

/* Devices, the communicators of all of them, and arrays of each. */
struct sums {
  int count;
  struct gpu gpus[MAX];
  ncclComm_t comms[MAX];
  CUdeviceptr from[MAX], to[MAX];
  void *host;
};

static void on(struct sums *s, int rank) { ok(cu.cuCtxSetCurrent(s->gpus[rank].context)); }

static struct sums open(int count) {
  struct sums s = {.count = count};
  int devices[MAX];
  for (int i = 0; i < count; i++) {
    devices[i] = count - 1 - i; /* ranks are not the devices' numbers */
    s.gpus[i] = gpu_open(devices[i]);
    s.from[i] = gpu_alloc(BYTES);
    s.to[i] = gpu_alloc(BYTES);
  }
  s.host = gpu_host(BYTES);
  ok(cu.ncclCommInitAll(s.comms, count, devices));
  return s;
}

static void close(struct sums *s) {
  for (int i = 0; i < s->count; i++) {
    on(s, i);
    ok(cu.cuStreamSynchronize(s->gpus[i].stream));
  }
  for (int i = 0; i < s->count; i++) {
    ok(cu.ncclCommDestroy(s->comms[i]));
    on(s, i);
    ok(cu.cuMemFree(s->from[i]));
    ok(cu.cuMemFree(s->to[i]));
    if (i == s->count - 1) ok(cu.cuMemFreeHost(s->host));
    gpu_close(&s->gpus[i]);
  }
}

static CUdeviceptr device_of(const void *host) { return (CUdeviceptr)(uintptr_t)host; }
static void *pointer(CUdeviceptr p) { return (void *)(uintptr_t)p; }

static void write_array(struct sums *s, int rank, CUdeviceptr to, const void *data, size_t bytes) {
  on(s, rank);
  ok(cu.cuStreamSynchronize(s->gpus[rank].stream));
  memcpy(s->host, data, bytes);
  ok(cu.cuMemcpyAsync(to, device_of(s->host), bytes, s->gpus[rank].stream));
  ok(cu.cuStreamSynchronize(s->gpus[rank].stream));
}

static const void *read_array(struct sums *s, int rank, CUdeviceptr from, size_t bytes) {
  on(s, rank);
  ok(cu.cuMemcpyAsync(device_of(s->host), from, bytes, s->gpus[rank].stream));
  ok(cu.cuStreamSynchronize(s->gpus[rank].stream));
  return s->host;
}

static int part(struct sums *s, int rank, CUdeviceptr from, CUdeviceptr to, size_t count, int type) {
  on(s, rank);
  return cu.ncclAllReduce(pointer(from), pointer(to), count, type, ncclSum, s->comms[rank],
                          s->gpus[rank].stream);
}

static void sum(struct sums *s, CUdeviceptr *to, size_t count, int type) {
  ok(cu.ncclGroupStart());
  for (int i = s->count; i-- > 0;) ok(part(s, i, s->from[i], to[i], count, type));
  ok(cu.ncclGroupEnd());
}

/* --- what is right --- */

/* 1e8 + 1 - 1e8 is 0 in this order of ranks, and 1 in another. */
static void test_order(void) {
  static const float shares[] = {1e8f, 1, -1e8f};
  struct sums s = open(3);
  for (int k = 0; k < REPEATS; k++) {
    for (int i = 0; i < 3; i++) write_array(&s, i, s.from[i], &shares[i], sizeof *shares);
    sum(&s, k % 2 ? s.to : s.from, 1, ncclFloat32);
    for (int i = 0; i < 3; i++) check(*(const float *)read_array(&s, i, k % 2 ? s.to[i] : s.from[i], 4) == 0);
  }
  close(&s);
}

static void test_types(void) {
  static const double doubles[] = {0.5, 3};
  static const int32_t ints[] = {INT32_MAX, 1};
  static const int64_t longs[] = {INT64_C(1) << 40, 5};
  struct sums s = open(2);
  for (int i = 0; i < 2; i++) write_array(&s, i, s.from[i], &doubles[i], 8);
  sum(&s, s.to, 1, ncclFloat64);
  check(*(const double *)read_array(&s, 1, s.to[1], 8) == 3.5);
  for (int i = 0; i < 2; i++) write_array(&s, i, s.from[i], &ints[i], 4);
  sum(&s, s.to, 1, ncclInt32);
  check(*(const int32_t *)read_array(&s, 0, s.to[0], 4) == INT32_MIN);
  for (int i = 0; i < 2; i++) write_array(&s, i, s.from[i], &longs[i], 8);
  sum(&s, s.to, 1, ncclInt64);
  check(*(const int64_t *)read_array(&s, 1, s.to[1], 8) == (INT64_C(1) << 40) + 5);
  close(&s);
}

/* A rank has the sum when all others have come to it, and its share may change once it has. */
static void test_waits(void) {
  struct sums s = open(4);
  for (int k = 0; k < REPEATS; k++) {
    for (int i = 0; i < 4; i++) {
      on(&s, i);
      ok(cu.cuMemsetD8Async(s.from[i], (unsigned char)(k + i), BYTES, s.gpus[i].stream));
    }
    sum(&s, s.to, BYTES / 4, ncclInt32);
    for (int i = 0; i < 4; i++) {
      on(&s, i);
      ok(cu.cuMemsetD8Async(s.from[i], 99, BYTES, s.gpus[i].stream));
    }
    const uint32_t *have = read_array(&s, k % 4, s.to[k % 4], BYTES);
    for (int i = 0; i < BYTES / 4; i++) check(have[i] == 0x01010101u * (unsigned)(4 * k + 6));
  }
  close(&s);
}

/* Several sums of one group. */
static void test_group(void) {
  struct sums s = open(2);
  for (int i = 0; i < 2; i++) {
    on(&s, i);
    ok(cu.cuMemsetD8Async(s.from[i], 1, BYTES, s.gpus[i].stream));
  }
  ok(cu.ncclGroupStart());
  ok(cu.ncclGroupStart());
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < 2; i++) ok(part(&s, i, s.from[i], k ? s.from[i] : s.to[i], 2, ncclInt32));
  ok(cu.ncclGroupEnd());
  ok(cu.ncclGroupEnd());
  check(*(const int *)read_array(&s, 1, s.to[1], 4) == 0x02020202);
  check(*(const int *)read_array(&s, 0, s.from[0], 4) == 0x02020202);
  close(&s);
}

/* --- what is refused --- */

/* A group in which the second call is as said. */
static void refused(struct sums *s, int call, int end) {
  fails_with(end, call);
  fails_with(ncclInvalidUsage, cu.ncclGroupEnd());
  close(s);
}

static struct sums first(void) {
  struct sums s = open(2);
  ok(cu.ncclGroupStart());
  ok(part(&s, 0, s.from[0], s.to[0], N, ncclFloat32));
  return s;
}

static void test_missing_rank(void) {
  struct sums s = first();
  refused(&s, ncclSuccess, ncclSuccess);
}
static void test_other_count(void) {
  struct sums s = first();
  refused(&s, part(&s, 1, s.from[1], s.to[1], N - 1, ncclFloat32), ncclSuccess);
}
static void test_other_type(void) {
  struct sums s = first();
  refused(&s, part(&s, 1, s.from[1], s.to[1], N, ncclInt32), ncclSuccess);
}
static void test_rank_twice(void) {
  struct sums s = first();
  refused(&s, part(&s, 0, s.from[0], s.to[0], N, ncclFloat32), ncclSuccess);
}
static void test_wrong_stream(void) {
  struct sums s = first();
  on(&s, 1);
  int r = cu.ncclAllReduce(pointer(s.from[1]), pointer(s.to[1]), N, ncclFloat32, ncclSum, s.comms[1],
                           s.gpus[0].stream);
  refused(&s, r, ncclInvalidArgument);
}
static void test_wrong_context(void) {
  struct sums s = first();
  on(&s, 0);
  int r = cu.ncclAllReduce(pointer(s.from[1]), pointer(s.to[1]), N, ncclFloat32, ncclSum, s.comms[1],
                           s.gpus[1].stream);
  refused(&s, r, ncclInvalidArgument);
}
static void test_wrong_memory(void) {
  struct sums s = first();
  refused(&s, part(&s, 1, s.from[0], s.to[1], N, ncclFloat32), ncclInvalidArgument);
}
static void test_host_memory(void) {
  struct sums s = first();
  refused(&s, part(&s, 1, device_of(s.host), s.to[1], N, ncclFloat32), ncclInvalidArgument);
}
static void test_behind(void) {
  struct sums s = first();
  refused(&s, part(&s, 1, s.from[1], s.to[1], 2 * N + 1, ncclFloat32), ncclInvalidArgument);
}
static void test_overlap(void) {
  struct sums s = first();
  refused(&s, part(&s, 1, s.from[1], s.from[1] + 4, N, ncclFloat32), ncclInvalidArgument);
}
static void test_unknown_type(void) {
  struct sums s = first();
  refused(&s, part(&s, 1, s.from[1], s.to[1], N, 6), ncclInvalidArgument);
}
static void test_destroyed_in_group(void) {
  struct sums s = first();
  refused(&s, cu.ncclCommDestroy(s.comms[0]), ncclInvalidUsage);
}

static void test_no_group(void) {
  struct sums s = open(2);
  fails_with(ncclInvalidArgument, part(&s, 0, s.from[0], s.to[0], N, ncclFloat32));
  fails_with(ncclInvalidUsage, cu.ncclGroupEnd());
  close(&s);
}

static void test_one_rank(void) {
  struct sums s = open(1);
  ok(cu.cuMemsetD8Async(s.from[0], 3, BYTES, s.gpus[0].stream));
  ok(part(&s, 0, s.from[0], s.to[0], N, ncclInt32));
  check(*(const int *)read_array(&s, 0, s.to[0], 4) == 0x03030303);
  close(&s);
}

static void test_same_device(void) {
  struct gpu g = gpu_open(0);
  ncclComm_t comms[2];
  fails_with(ncclInvalidUsage, cu.ncclCommInitAll(comms, 2, (int[]){0, 0}));
  gpu_close(&g);
}

static void test_no_such_device(void) {
  struct gpu g = gpu_open(0);
  ncclComm_t comms[2];
  fails_with(ncclInvalidUsage, cu.ncclCommInitAll(comms, 2, (int[]){0, 2}));
  gpu_close(&g);
}

static void test_destroyed_twice(void) {
  struct sums s = open(1);
  ncclComm_t comm = s.comms[0];
  close(&s);
  fails_with(ncclInvalidArgument, cu.ncclCommDestroy(comm));
}

static void test_capture(void) {
  struct sums s = open(1);
  CUgraph graph;
  ok(cu.cuStreamBeginCapture(s.gpus[0].stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  fails_with(ncclInvalidUsage, part(&s, 0, s.from[0], s.to[0], N, ncclFloat32));
  fails_with(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(s.gpus[0].stream, &graph));
  close(&s);
}

static void test_leak(void) {
  struct gpu g = gpu_open(0);
  ncclComm_t comm;
  ok(cu.ncclCommInitAll(&comm, 1, (int[]){0}));
  ok(cu.cuStreamDestroy(g.stream));
  ok(cu.cuDevicePrimaryCtxRelease(0));
}

static void test_abort(void) {
  struct sums s = open(1);
  ok(cu.ncclCommAbort(s.comms[0]));
  ok(cu.ncclCommInitAll(s.comms, 1, (int[]){0}));
  on(&s, 0);
  close(&s);
}

/* After a group that failed the next one begins anew. */
static void test_fail(void) {
  struct sums s = open(2);
  ok(cu.ncclGroupStart());
  fails_with(ncclUnhandledCudaError, part(&s, 0, s.from[0], s.to[0], N, ncclFloat32));
  fails_with(ncclInvalidUsage, cu.ncclGroupEnd());
  ok(cu.ncclGroupStart());
  for (int i = 0; i < 2; i++) ok(part(&s, i, s.from[i], s.to[i], N, ncclFloat32));
  fails_with(ncclUnhandledCudaError, cu.ncclGroupEnd());
  sum(&s, s.to, N, ncclFloat32);
  close(&s);
}

static void test_version(void) {
  int version;
  ok(cu.ncclGetVersion(&version));
  check(version == 21900);
}

static const struct test_case cases[] = {
    {"order", test_order, "DEVICES=3 LEAKS=1", 0, NULL},
    {"order, seed 2", test_order, "DEVICES=3 SEED=2 PEER=0", 0, NULL},
    {"order, eager", test_order, "DEVICES=3 DELAY=0", 0, NULL},
    {"types", test_types, "DEVICES=2 LEAKS=1", 0, NULL},
    {"waits", test_waits, "DEVICES=4 LEAKS=1", 0, NULL},
    {"waits, seed 2", test_waits, "DEVICES=4 SEED=2", 0, NULL},
    {"waits, seed 3", test_waits, "DEVICES=4 SEED=3", 0, NULL},
    {"group", test_group, "DEVICES=2 LEAKS=1", 0, NULL},
    {"one rank", test_one_rank, "LEAKS=1", 0, NULL},
    {"missing rank", test_missing_rank, "DEVICES=2 LEAKS=1", 0, "a rank is missing in the group"},
    {"other count", test_other_count, "DEVICES=2 LEAKS=1", 0, "other counts or types"},
    {"other type", test_other_type, "DEVICES=2 LEAKS=1", 0, "other counts or types"},
    {"rank twice", test_rank_twice, "DEVICES=2 LEAKS=1", 0, "a rank is missing in the group"},
    {"wrong stream", test_wrong_stream, "DEVICES=2 LEAKS=1", 0, "is not of the communicator's device"},
    {"wrong context", test_wrong_context, "DEVICES=2 LEAKS=1", 0, "is not of the current context"},
    {"wrong memory", test_wrong_memory, "DEVICES=2 LEAKS=1", 0, "an array is no memory of the device"},
    {"host memory", test_host_memory, "DEVICES=2 LEAKS=1", 0, "an array is no memory of the device"},
    {"behind", test_behind, "DEVICES=2 LEAKS=1", 0, "an array is no memory of the device"},
    {"overlap", test_overlap, "DEVICES=2 LEAKS=1", 0, "the arrays overlap"},
    {"unknown type", test_unknown_type, "DEVICES=2 LEAKS=1", 0, "that is not simulated"},
    {"destroyed in a group", test_destroyed_in_group, "DEVICES=2 LEAKS=1", 0, "in a group that uses it"},
    {"no group", test_no_group, "DEVICES=2 LEAKS=1", 0, "outside of a group"},
    {"same device", test_same_device, "LEAKS=1", 0, "a device is in a clique twice"},
    {"no such device", test_no_such_device, "DEVICES=2 LEAKS=1", 0, "there is no such device"},
    {"destroyed twice", test_destroyed_twice, NULL, 0, "a communicator is used after its end"},
    {"capture", test_capture, "LEAKS=1", 0, "called while this thread captures a stream"},
    {"leak", test_leak, "LEAKS=1", 66, "not destroyed: NCCL communicator"},
    {"abort", test_abort, "LEAKS=1", 0, NULL},
    {"fail", test_fail, "DEVICES=2 LEAKS=1 FAIL=ncclAllReduce:1,ncclGroupEnd:2", 0, NULL},
    {"version", test_version, "NCCL=2.19", 0, NULL},
};

int main(int argc, char **argv) { return run_cases(argc, argv, cases, sizeof cases / sizeof *cases); }
