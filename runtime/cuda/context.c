/* SPDX-License-Identifier: Apache-2.0 */
/* Cards: their primary contexts, which reaches whose memory, which is current on a thread, and what failed
 * first. */
#include "runtime/cuda/engine.h"

#include <stdio.h>
#include <string.h>

/* A context that is given up may come back at the same address: a number tells them apart. */
static _Atomic unsigned generation;
static _Thread_local struct {
  CUcontext context;
  unsigned generation;
} current;

void cuda_come_in(void) { current.context = NULL; }

bool cuda_use(struct cuda_engine *e, int device) {
  CUcontext wanted = e->devices[device].card->context;
  unsigned now = atomic_load_explicit(&generation, memory_order_relaxed);
  if (current.context == wanted && current.generation == now) return true;
  if (!CUDA(e, device, cuCtxSetCurrent, wanted)) return false;
  current.context = wanted;
  current.generation = now;
  return true;
}

/* --- failures --- */

static const char *error_name(CUresult r) {
  const char *name = NULL;
  return cuda.cuGetErrorName(r, &name) == CUDA_SUCCESS && name ? name : "unknown error";
}

static const char *error_text(CUresult r) {
  const char *text = NULL;
  return cuda.cuGetErrorString(r, &text) == CUDA_SUCCESS && text ? text : "?";
}

void cuda_fail(struct cuda_engine *e, int device, const char *call, const char *name, const char *text) {
  char message[sizeof e->message];
  snprintf(message, sizeof message, "%s on %s: %s%s%s", call, e->devices[device].text, name, text ? ": " : "",
           text ? text : "");
  pthread_mutex_lock(&e->lock);
  if (e->recording) {
    if (!*e->cause_name) {
      memcpy(e->cause, message, sizeof message);
      snprintf(e->cause_name, sizeof e->cause_name, "%s", name);
    }
    e->unrecorded = true;
  } else if (!e->failed) {
    bool same = strncmp(e->cause_name, name, sizeof e->cause_name - 1) == 0;
    memcpy(e->message, same ? e->cause : message, sizeof message);
    atomic_store(&e->failed, true);
  }
  pthread_mutex_unlock(&e->lock);
}

bool cuda_check(struct cuda_engine *e, int device, const char *call, CUresult r) {
  if (r == CUDA_SUCCESS) return true;
  cuda_fail(e, device, call, error_name(r), error_text(r));
  return false;
}

bool cuda_status(void *self, struct diags *d) {
  struct cuda_engine *e = self;
  if (!cuda_failed(e)) return true;
  pthread_mutex_lock(&e->lock);
  const char *message = arena_strdup(d->arena, e->message);
  pthread_mutex_unlock(&e->lock);
  diag_error(d, LOC_NONE, "%s", message);
  return false;
}

/* --- the cards of this machine --- */

/* 10 * major + minor. */
static CUresult card_arch(CUdevice device, int *arch) {
  int major = 0, minor = 0;
  CUresult r = cuda.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  if (r == CUDA_SUCCESS)
    r = cuda.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  *arch = 10 * major + minor;
  return r;
}

int cuda_list(struct arena *a, const char *plugin, struct device_info **out, const char **why_none) {
  (void)plugin;
  int count = 0;
  *why_none = cuda_load_driver();
  if (*why_none) return 0;
  CUresult r = cuda.cuDeviceGetCount(&count);
  if (r != CUDA_SUCCESS) {
    *why_none = arena_printf(a, "cuDeviceGetCount: %s: %s", error_name(r), error_text(r));
    return 0;
  }
  *out = arena_new_array(a, (size_t)count, struct device_info);
  for (int i = 0; i < count; i++) {
    CUdevice device = 0;
    char name[128] = "?";
    size_t bytes = 0;
    int arch = 0;
    if (cuda.cuDeviceGet(&device, i) == CUDA_SUCCESS) {
      card_arch(device, &arch);
      cuda.cuDeviceGetName(name, sizeof name, device);
      cuda.cuDeviceTotalMem(&bytes, device);
    }
    (*out)[i] = (struct device_info){.index = i,
                                     .name = arena_strdup(a, name),
                                     .arch = arena_printf(a, "sm_%d", arch),
                                     .memory = (int64_t)bytes,
                                     .simulated = cuda.simulated};
  }
  return count;
}

/* --- those of a target --- */

static bool no_such_card(const char *text, int count, struct diags *d) {
  if (count == 1)
    diag_error(d, LOC_NONE, "there is no %s: this machine has one %sGPU, /gpu:0", text,
               cuda.simulated ? "simulated " : "");
  else
    diag_error(d, LOC_NONE, "there is no %s: this machine has %d %sGPUs, /gpu:0 to /gpu:%d", text, count,
               cuda.simulated ? "simulated " : "", count - 1);
  return false;
}

static bool open_failed(struct diags *d, const char *call, const char *text, CUresult r) {
  diag_error(d, LOC_NONE, "%s on %s: %s: %s", call, text, error_name(r), error_text(r));
  return false;
}

/* The card with this number, its context retained; NULL after an error. */
static struct cuda_card *open_card(struct cuda_engine *e, int ordinal, const char *text, struct diags *d) {
  for (int i = 0; i < e->ncards; i++)
    if (e->cards[i].ordinal == ordinal) return &e->cards[i];
  struct cuda_card *card = &e->cards[e->ncards];
  *card = (struct cuda_card){.ordinal = ordinal};
  CUresult r = cuda.cuDeviceGet(&card->handle, ordinal);
  if (r != CUDA_SUCCESS) return open_failed(d, "cuDeviceGet", text, r), NULL;
  r = card_arch(card->handle, &card->arch);
  if (r != CUDA_SUCCESS) return open_failed(d, "cuDeviceGetAttribute", text, r), NULL;
  r = cuda.cuDevicePrimaryCtxRetain(&card->context, card->handle);
  if (r != CUDA_SUCCESS) return open_failed(d, "cuDevicePrimaryCtxRetain", text, r), NULL;
  e->ncards++;
  return card;
}

static bool enable_peer(const struct cuda_card *from, const struct cuda_card *to) {
  int can = 0;
  if (cuda.cuDeviceCanAccessPeer(&can, from->handle, to->handle) != CUDA_SUCCESS || !can) return false;
  if (cuda.cuCtxSetCurrent(from->context) != CUDA_SUCCESS) return false;
  CUresult r = cuda.cuCtxEnablePeerAccess(to->context, 0);
  return r == CUDA_SUCCESS || r == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

static void open_peers(struct cuda_engine *e) {
  int n = e->ncards;
  e->peers = arena_new_array(e->arena, (size_t)n * (size_t)n, bool);
  for (int a = 0; a < n; a++)
    for (int b = 0; b < a; b++) {
      bool both = enable_peer(&e->cards[a], &e->cards[b]) && enable_peer(&e->cards[b], &e->cards[a]);
      e->peers[a * n + b] = e->peers[b * n + a] = both;
    }
  cuda_come_in();
}

int cuda_device_on(const struct cuda_engine *e, const struct cuda_card *card) {
  int i = e->first;
  while (e->devices[i].card != card) i++;
  return i;
}

bool cuda_peers(const struct cuda_engine *e, int a, int b) {
  ptrdiff_t i = e->devices[a].card - e->cards, j = e->devices[b].card - e->cards;
  return i == j || e->peers[i * e->ncards + j];
}

bool cuda_open_cards(struct cuda_engine *e, const struct target *target, struct diags *d) {
  int count = 0;
  CUresult r = cuda.cuDeviceGetCount(&count);
  if (r != CUDA_SUCCESS) return open_failed(d, "cuDeviceGetCount", "this machine", r);
  e->ndevices = target->ndevices;
  e->first = -1;
  e->devices = arena_new_array(e->arena, (size_t)e->ndevices, struct cuda_device);
  e->cards = arena_new_array(e->arena, (size_t)e->ndevices, struct cuda_card);
  for (int i = 0; i < target->ndevices; i++) {
    const struct device *device = &target->devices[i];
    if (strcmp(device->name.kind, "gpu") != 0) continue;
    if (device->name.index < 0 || device->name.index >= count) return no_such_card(device->text, count, d);
    struct cuda_card *card = open_card(e, device->name.index, device->text, d);
    if (!card) return false;
    e->devices[i] = (struct cuda_device){.text = arena_strdup(e->arena, device->text), .card = card};
    pthread_mutex_init(&e->devices[i].reading, NULL);
    if (e->first < 0) e->first = i;
  }
  open_peers(e);
  return true;
}

void cuda_close_cards(struct cuda_engine *e) {
  if (e->ncards == 0) return;
  cuda.cuCtxSetCurrent(NULL);
  for (int i = 0; i < e->ncards; i++) cuda.cuDevicePrimaryCtxRelease(e->cards[i].handle);
  e->ncards = 0;
  atomic_fetch_add(&generation, 1);
  cuda_come_in();
}
