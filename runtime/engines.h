/* SPDX-License-Identifier: Apache-2.0 */
/* The open backends of a target: one per kind of device. */
#ifndef DGC_RUNTIME_ENGINES_H
#define DGC_RUNTIME_ENGINES_H

#include "runtime/backend.h"

struct transport;

struct opened {
  const struct backend *backend;
  void *self;
};

struct engines {
  struct arena *arena;
  struct target target;
  struct opened *all; /* in the order in which they were opened */
  int count;
  const struct opened **devices; /* by device of the target */
  _Atomic bool *lost;            /* a device has not answered in time: see engines_lose */
  const struct transport
      *transport;       /* to other processes, whose devices are not open here; NULL: there are none */
  const int *processes; /* by device */
};

/* Opens a backend for each kind of device: the first of `wanted` (NULL-terminated; NULL is allowed) that runs
 * it, else the build's default. NULL after an error in `d`. */
struct engines *engines_open(const struct target *target, const struct backend *const *wanted,
                             struct diags *d);
/* The same in one of the processes of a cluster, for the devices of its task; those of others are only known of: they
 * have no memory here. */
struct engines *engines_open_task(const struct target *target, const struct backend *const *wanted,
                                  const struct transport *transport, struct diags *d);
/* Whether the device is one of this process. */
static inline bool engines_here(const struct engines *e, int device) { return e->devices[device] != NULL; }
/* NULL is allowed. Last opened, first closed. */
void engines_close(struct engines *e);

void *engines_alloc(const struct engines *e, int device, size_t bytes);
void engines_free(const struct engines *e, int device, void *data, size_t bytes);
/* Memory of the host from which copies to devices are faster; what is copied from it stays as it is until the next
 * run has ended. NULL: there is none, and any other memory does. */
void *engines_pinned_alloc(const struct engines *e, size_t bytes);
/* Waits until it has been read. NULL is allowed. */
void engines_pinned_free(const struct engines *e, void *data);
/* Between any two devices, or one and the host (-1), by the backend whose memory is not the host's. False: see
 * engines_status. */
bool engines_copy(const struct engines *e, void *to, int to_device, const void *from, int from_device,
                  size_t bytes);
/* False, with reports in `d`, if a backend has failed. */
bool engines_status(const struct engines *e, struct diags *d);
/* Gives up devices that may never be done. Nothing that they may still work with is freed from now on, by
 * whomever: it is theirs until the process ends. engines_copy and engines_status are false. */
void engines_lose(const struct engines *e);
/* Tells all backends of the calling thread. */
void engines_enter(const struct engines *e);
/* Reports that there are not `bytes` on the device for `what`. */
void engines_no_memory(const struct engines *e, int device, const char *what, size_t bytes, struct diags *d);
/* How long to wait for a device outside of runs, 0: for ever. Then it is lost. */
void engines_limit(const struct engines *e, int seconds);
/* Before any plan is loaded. */
void engines_allow_tf32(const struct engines *e, bool allow);
/* Before any plan is loaded: whether all is to have the interpreter's bits. The first device here whose backend cannot
 * is returned; -1: all can. */
int engines_portable_bits(const struct engines *e, bool wanted);
/* The units in which a host's backend multiplies bfloat16; NULL: none does so. */
const char *engines_bf16_units(const struct engines *e);
/* Whether the device's memory is the host's; the host itself is -1. Not so of devices of other processes. */
bool engines_on_host(const struct engines *e, int device);

#endif
