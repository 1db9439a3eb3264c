/* SPDX-License-Identifier: Apache-2.0 */
/* The library's threads, its start, and how what it makes is made: see onednn.h. */
#include "runtime/cpu/onednn.h"

#include "base/arena.h"
#include "kernels/cpu/amx.h"
#include "runtime/cpu/foreign.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The library counts on the threads of OpenMP, if it was built so: looked up, as nothing here is. */
static void set_threads(int n) {
  void (*set)(int);
  void *symbol = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
  if (symbol == NULL) return;
  memcpy(&set, &symbol, sizeof symbol);
  set(n);
}

static int get_threads(void) {
  int (*get)(void);
  void *symbol = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
  if (symbol == NULL) return 1;
  memcpy(&get, &symbol, sizeof symbol);
  return get();
}

void onednn_use_one_thread(void) { set_threads(1); }

/* For VTune the library looks through all folders of the system for a file that hardly anybody has: a hundred calls of
 * the system. Who wants it says so in the environment. */
static void leave_profiling(void) {
  if (!getenv("ONEDNN_JIT_PROFILE") && !getenv("DNNL_JIT_PROFILE"))
    (void)dnnl_set_jit_profiling_flags(DNNL_JIT_PROFILE_NONE);
}

/* What is done once, by whoever needs it first. */
static bool start(void) {
  enum { ROOM = 24 << 20 };
  static atomic_bool done;
  if (done) return true;
  if (!foreign_memory(0, ROOM)) return false;
  foreign_prepare();
  leave_profiling();
  done = true;
  return true;
}

/* ---- making ---- */

struct making {
  void *plan;
  int threads;
};

static void undo_making(void *making) {
  struct making *m = making;
  set_threads(m->threads);
  free(m->plan);
}

/* The library does not look at each piece of memory that it asks for, so there is to be more than it takes. */
bool onednn_make(void *plan, bool (*make)(void *plan)) {
  enum { ROOM = 8 << 20 };
  struct making m = {plan, get_threads()};
  struct arena_guard guard;
  arena_guard(&guard, undo_making, &m);
  set_threads(1); /* a primitive remembers how many threads it was made for */
  bool good = start() && foreign_memory(0, ROOM);
  if (good) {
    foreign_enter();
    good = make(plan);
    foreign_leave();
  }
  set_threads(m.threads);
  arena_unguard(&guard);
  return good;
}

const char *onednn_way(dnnl_primitive_desc_t desc) {
  const char *name = NULL;
  dnnl_status_t status = dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &name);
  return status == dnnl_success && name ? name : "ref";
}

#if DNNL_VERSION_MAJOR == 2 && defined(__x86_64__)
static bool has_isa(unsigned wanted) { return ((unsigned)dnnl_get_effective_cpu_isa() & wanted) == wanted; }

const char *onednn_units(void) {
  const char *units = getenv("DGC_BF16_UNITS");
  if (units && strcmp(units, "off") == 0) return NULL;
  if (has_isa(dnnl_cpu_isa_avx512_core_amx)) return "AMX";
  return has_isa(dnnl_cpu_isa_avx512_core_bf16) && __builtin_cpu_is("amd") ? "AVX512_BF16" : NULL;
}
#else
const char *onednn_units(void) { return NULL; }
#endif

bool onednn_units_are_amx(void) {
  const char *units = onednn_units();
  return units && strcmp(units, "AMX") == 0 && amx_can();
}

bool onednn_takes_units(const char *way) {
  const char *units = onednn_units();
  return units && strstr(way, strcmp(units, "AMX") == 0 ? "amx" : "avx512_core_bf16");
}

bool onednn_data(dnnl_memory_t memory, const void *data) {
  void *pointer;
  memcpy(&pointer, &data, sizeof pointer);
  return dnnl_memory_set_data_handle(memory, pointer) == dnnl_success;
}
