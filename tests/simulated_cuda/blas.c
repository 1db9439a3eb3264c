/* SPDX-License-Identifier: Apache-2.0 */
/* The side of libcublas in libcuda: the lock, streams and memory. */
#include "tests/simulated_cuda/simulated.h"

CUresult sim_blas_enter(const char *entry_point, unsigned traits) { return sim_enter(entry_point, traits); }
CUresult sim_blas_leave(CUresult r) { return sim_leave(r); }
int sim_blas_device(void) { return sim_current() ? sim_current()->device : -1; }

int sim_blas_stream_device(CUstream s) { return stream_check(s) == CUDA_SUCCESS ? s->object.device : -1; }

bool sim_blas_range(int device, const void *address, size_t bytes) {
  struct allocation *a = memory_find((uintptr_t)address, bytes);
  if (a && (a->space == HOST || a->space == device)) return true;
  sim_complain("cuBLAS, simulated GPU %d: %zu bytes at %p, which is %s", device, bytes,
               (void *)(uintptr_t)address, memory_describe((uintptr_t)address));
  return false;
}

bool sim_blas_touch(int device, const void *address, size_t bytes) {
  bool ok = sim_blas_range(device, address, bytes);
  if (ok) memory_touch((uintptr_t)address, bytes);
  return ok;
}

CUresult sim_blas_call(CUstream s, CUresult (*call)(void *), void *argument) {
  struct work *w = work_new(WORK_CALL, s->context);
  w->call = call;
  w->argument = argument;
  return stream_add(s, w);
}

void sim_blas_begin(struct object *o) { sim_begin(o, kind_handle, sim_current()->device); }
void sim_blas_end(struct object *o) {
  object_end(o);
  object_bury(o);
}
bool sim_blas_is(const struct object *o) { return sim_valid(o, kind_handle); }
void sim_blas_complain(const char *why) { sim_complain("cuBLAS: %s", why); }
