/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated GPUs: a stand-in for libcuda (here), libnvrtc (nvrtc.c), libcublas (cublas.c) and libnccl (nccl.c) that
 * runs kernels on the host, for tests of code that uses GPUs on machines that have none. It is built against the
 * entry points that dgc uses, and is stricter than hardware; docs/gpu.md lists what it checks and the environment
 * that steers it.
 *
 * Nothing runs at its own time. Streams are queues, and each call that could let time pass, an enqueue, a
 * query, a synchronisation, lets a random generator decide which stream does how much: nothing at all until
 * somebody waits, one stream as far as it can go, everything at once, whatever the order of events allows
 * (stream.c). So missing waits show, and show again for the same seed, which threads would not give. Work of
 * the device runs in the thread whose call it is, under the one lock.
 *
 *   memory.c   address ranges, protection, poison
 *   stream.c   streams, events, copies
 *   capture.c  capture and graphs
 *   kernel.c   modules, launches
 *   fiber.c    the threads of a block, traps
 *   blas.c     what cublas.c uses of all this
 *   ranks.c    what nccl.c uses of it
 *   rewrite.c, shim.h, module.h, compile.c   CUDA C for the host's compiler */
#include "tests/simulated_cuda/simulated.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct CUctx_st sim_contexts[MAX_DEVICES];
int sim_ndevices = -1, sim_arch;
bool sim_delay;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local struct CUctx_st *current;
static bool initialised;
static uint64_t random_state;
static const char *entered;
static unsigned entered_traits;

/* Its presence tells that this is not a driver of real GPUs. */
EXPORT extern const int dgc_simulated_cuda;
const int dgc_simulated_cuda = 1;

uint64_t sim_random(void) { /* splitmix64 */
  uint64_t z = random_state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

uint64_t sim_below(uint64_t n) { return n < 2 ? 0 : sim_random() % n; }

uint64_t sim_stride(uint64_t n) {
  for (;;) {
    uint64_t stride = 1 + sim_below(n), a = n, b = stride;
    while (b) {
      uint64_t rest = a % b;
      a = b;
      b = rest;
    }
    if (a == 1) return stride;
  }
}

uint64_t sim_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

struct CUctx_st *sim_current(void) {
  return current;
}

void sim_make_current(int device) { current = &sim_contexts[device]; }

void sim_fail(int device, CUresult r) {
  if (!sim_contexts[device].failed) sim_contexts[device].failed = r;
}

void sim_begin(struct object *o, const char *kind, int device) {
  object_begin(o, kind, device);
  if (device >= 0) o->generation = sim_contexts[device].generation;
}

bool sim_valid(const struct object *o, const char *kind) {
  return object_is(o, kind) && (o->device < 0 || o->generation == sim_contexts[o->device].generation);
}

/* What an entry point returns when it is made to fail. */
static CUresult injected(const char *name) {
  static const struct {
    const char *name;
    CUresult error;
  } errors[] = {
      {"cuInit", CUDA_ERROR_UNKNOWN},
      {"cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY},
      {"cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY},
      {"cuStreamCreate", CUDA_ERROR_OUT_OF_MEMORY},
      {"cuEventCreate", CUDA_ERROR_OUT_OF_MEMORY},
      {"cuDevicePrimaryCtxRetain", CUDA_ERROR_OUT_OF_MEMORY},
      {"cuModuleLoadData", CUDA_ERROR_OUT_OF_MEMORY},
      {"cuGraphInstantiateWithFlags", CUDA_ERROR_OUT_OF_MEMORY},
      {"cuModuleGetFunction", CUDA_ERROR_NOT_FOUND},
      {"cuLaunchKernel", CUDA_ERROR_LAUNCH_FAILED},
      {"cuGraphLaunch", CUDA_ERROR_LAUNCH_FAILED},
      {"cuStreamSynchronize", CUDA_ERROR_LAUNCH_FAILED},
      {"cuEventSynchronize", CUDA_ERROR_LAUNCH_FAILED},
      {"cuEventQuery", CUDA_ERROR_LAUNCH_FAILED},
      {"cuMemcpyAsync", CUDA_ERROR_LAUNCH_FAILED},
      {"cuMemcpyPeerAsync", CUDA_ERROR_LAUNCH_FAILED},
      {"cuMemsetD8Async", CUDA_ERROR_LAUNCH_FAILED},
      {"cuStreamBeginCapture", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
      {"cuStreamEndCapture", CUDA_ERROR_STREAM_CAPTURE_INVALIDATED},
      {"cuCtxEnablePeerAccess", CUDA_ERROR_PEER_ACCESS_UNSUPPORTED},
  };
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (strcmp(errors[i].name, name) == 0) return errors[i].error;
  return CUDA_ERROR_UNKNOWN;
}

CUresult sim_enter(const char *entry_point, unsigned traits) {
  pthread_mutex_lock(&lock);
  entered = entry_point;
  entered_traits = traits;
  if (!(traits & ANY_TIME) && !initialised) return sim_leave(CUDA_ERROR_NOT_INITIALIZED);
  if (sim_fails(entry_point)) {
    CUresult r = traits & DESTROYS ? CUDA_ERROR_LAUNCH_FAILED : injected(entry_point);
    if (r == CUDA_ERROR_LAUNCH_FAILED && current) sim_fail(current->device, r);
    if (!(traits & DESTROYS)) return sim_leave(r);
  }
  if (traits & (ANY_TIME | NO_CONTEXT)) return CUDA_SUCCESS;
  if (!current || !current->users) {
    sim_complain("%s: the thread has no current context", entry_point);
    return sim_leave(CUDA_ERROR_INVALID_CONTEXT);
  }
  if (traits & UNSAFE && capture_here()) {
    sim_complain("%s: called while this thread captures a stream", entry_point);
    capture_invalidate_here();
    return sim_leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return current->failed && !(traits & DESTROYS) ? sim_leave(current->failed) : CUDA_SUCCESS;
}

CUresult sim_leave(CUresult r) {
  if (initialised) memory_allow(0);
  if (!r && entered_traits & DESTROYS && current) r = current->failed;
  pthread_mutex_unlock(&lock);
  return r;
}

void sim_go_on(bool (*some)(void)) {
  bool more = true;
  while (more) {
    pthread_mutex_lock(&lock);
    entered = "a device at its own time";
    entered_traits = ANY_TIME;
    more = some();
    sim_leave(CUDA_SUCCESS);
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
  }
}

void sim_hang(void) {
  memory_allow(0);
  pthread_mutex_unlock(&lock);
  for (;;) pause();
}

/* --- entry points --- */

CUresult cuInit(unsigned flags) {
  CUresult r = sim_enter(__func__, ANY_TIME);
  if (r) return r;
  if (flags) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  if (initialised) return sim_leave(CUDA_SUCCESS);
  long long n = sim_number("DEVICES", 1);
  if (n == 0) return sim_leave(CUDA_ERROR_NO_DEVICE);
  sim_ndevices = n < MAX_DEVICES ? (int)n : MAX_DEVICES;
  sim_arch = (int)sim_number("ARCH", 90);
  sim_delay = sim_number("DELAY", 1);
  random_state = (uint64_t)sim_number("SEED", 1) * 0x632be59bd9b4e019;
  for (int i = 0; i < sim_ndevices; i++) sim_contexts[i].device = i;
  memory_open(sim_ndevices);
  fibers_open();
  initialised = true;
  return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuDriverGetVersion(int *version) {
  CUresult r = sim_enter(__func__, ANY_TIME);
  if (r) return r;
  *version = sim_version("DRIVER", "12.4");
  return sim_leave(CUDA_SUCCESS);
}

static const struct {
  CUresult code;
  const char *name, *text;
} errors[] = {
#define ERROR(name, text) \
  { name, #name, text }
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
    ERROR(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these two devices"),
    ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    ERROR(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
    ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_MERGE, "operation would result in a merge of separate capture sequences"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not ended in the same stream as it began"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream"),
    ERROR(CUDA_ERROR_CAPTURED_EVENT,
          "operation not permitted on an event last recorded in a capturing stream"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
          "attempt to terminate a thread-local capture sequence from another thread"),
    ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};

static CUresult error_text(CUresult code, const char **out, bool name) {
  *out = NULL;
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].code == code) *out = name ? errors[i].name : errors[i].text;
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **name) { return error_text(error, name, true); }
CUresult cuGetErrorString(CUresult error, const char **text) { return error_text(error, text, false); }

CUresult cuDeviceGetCount(int *count) {
  CUresult r = sim_enter(__func__, NO_CONTEXT);
  if (r) return r;
  *count = sim_ndevices;
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  CUresult r = sim_enter(__func__, NO_CONTEXT);
  if (r) return r;
  if (ordinal < 0 || ordinal >= sim_ndevices) return sim_leave(CUDA_ERROR_INVALID_DEVICE);
  *device = ordinal;
  return sim_leave(CUDA_SUCCESS);
}

static bool is_device(CUdevice device) { return device >= 0 && device < sim_ndevices; }

CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
  CUresult r = sim_enter(__func__, NO_CONTEXT);
  if (r) return r;
  if (!is_device(device)) return sim_leave(CUDA_ERROR_INVALID_DEVICE);
  snprintf(name, (size_t)size, "simulated GPU %d", device);
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  CUresult r = sim_enter(__func__, NO_CONTEXT);
  if (r) return r;
  if (!is_device(device)) return sim_leave(CUDA_ERROR_INVALID_DEVICE);
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
  case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1000000; break; /* kHz */
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 4; break;
  case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *value = 1000000; break;
  case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *value = 128; break;
  case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: *value = 1; break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = sim_arch / 10; break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = sim_arch % 10; break;
  default: return sim_leave(CUDA_ERROR_INVALID_VALUE);
  }
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
  CUresult r = sim_enter(__func__, NO_CONTEXT);
  if (r) return r;
  if (!is_device(device) || !is_device(peer)) return sim_leave(CUDA_ERROR_INVALID_DEVICE);
  *can = device != peer && sim_number("PEER", 1);
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  CUresult r = sim_enter(__func__, NO_CONTEXT);
  if (r) return r;
  if (!is_device(device)) return sim_leave(CUDA_ERROR_INVALID_DEVICE);
  struct CUctx_st *c = &sim_contexts[device];
  if (c->users++ == 0) sim_begin(&c->object, kind_context, device);
  *context = c;
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  CUresult r = sim_enter(__func__, NO_CONTEXT);
  if (r) return r;
  if (!is_device(device)) return sim_leave(CUDA_ERROR_INVALID_DEVICE);
  struct CUctx_st *c = &sim_contexts[device];
  if (c->users == 0) return sim_leave(CUDA_ERROR_INVALID_CONTEXT);
  if (--c->users == 0) {
    streams_finish(device);
    /* What still belongs to it is gone with it; it stays in the list of leaks. */
    object_end(&c->object);
    c->generation++;
    c->peers = 0;
    r = c->failed;
    c->failed = CUDA_SUCCESS;
  }
  return sim_leave(r);
}

static bool is_context(CUcontext c) {
  for (int i = 0; i < sim_ndevices; i++)
    if (c == &sim_contexts[i]) return c->users > 0;
  return false;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  CUresult r = sim_enter(__func__, NO_CONTEXT);
  if (r) return r;
  if (context && !is_context(context)) return sim_leave(CUDA_ERROR_INVALID_CONTEXT);
  current = context;
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  CUresult r = sim_enter(__func__, 0);
  if (r) return r;
  if (flags) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  if (!is_context(peer)) return sim_leave(CUDA_ERROR_INVALID_CONTEXT);
  if (peer == current) return sim_leave(CUDA_ERROR_INVALID_DEVICE);
  if (!sim_number("PEER", 1)) return sim_leave(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  if (current->peers >> peer->device & 1) return sim_leave(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  current->peers |= (uint64_t)1 << peer->device;
  return sim_leave(CUDA_SUCCESS);
}

/* --- finding entry points --- */

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **address, int version, uint64_t flags,
                                    int *status);
EXPORT CUresult cuGetProcAddress(const char *symbol, void **address, int version, uint64_t flags);

static const struct {
  const char *name;
  int version;
  void *address;
} entry_points[] = {
#define DRIVER(result, name, version, arguments) {#name, version, (void *)name},
#include "runtime/cuda/syms.def"
};

/* Like the real one: success with no address if there is no such entry point, or not in that version. Earlier
 * versions than that of syms.def had another signature; the simulation has none of these. */
CUresult cuGetProcAddress_v2(const char *symbol, void **address, int version, uint64_t flags, int *status) {
  enum { FOUND, NO_SYMBOL, TOO_OLD };
  int found = NO_SYMBOL;
  if (!symbol || !address || flags > 2) return CUDA_ERROR_INVALID_VALUE;
  *address = NULL;
  for (size_t i = 0; i < sizeof entry_points / sizeof *entry_points; i++) {
    if (strcmp(entry_points[i].name, symbol) != 0 || sim_listed(sim_setting("MISSING", ""), symbol)) continue;
    if (entry_points[i].version > sim_version("DRIVER", "12.4")) continue;
    found = version >= entry_points[i].version ? FOUND : TOO_OLD;
    if (found == FOUND) *address = entry_points[i].address;
  }
  if (status) *status = found;
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *symbol, void **address, int version, uint64_t flags) {
  CUresult r = cuGetProcAddress_v2(symbol, address, version, flags, NULL);
  return r || *address ? r : CUDA_ERROR_NOT_FOUND;
}
