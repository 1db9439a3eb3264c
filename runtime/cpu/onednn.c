/* SPDX-License-Identifier: Apache-2.0 */
/* The library's threads, its start, and how what it makes is made: see onednn.h. */
#include "runtime/cpu/onednn.h"

#include "base/arena.h"
#include "base/thread.h"
#include "runtime/cpu/foreign.h"
#include "runtime/cpu/host.h"

#include <dlfcn.h>
#include <pthread.h>
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

void cpu_thread_init(void) { set_threads(1); }

/* The library generates its code for products in the first of them: here, where there is one thread, and room. Products
 * that are narrow have code of their own where there is AVX-512. It takes 20 milliseconds, which convolutions alone do
 * not need. */
static bool start_products(void) {
  enum { N = 32, WAYS = 8 };
  static float zeros[N * N], c[N * N];
  bool good = true;
  for (int i = 0; i < WAYS && good; i++) {
    char ta = i & 1 ? 'T' : 'N', tb = i & 2 ? 'T' : 'N';
    int rows = i & 4 ? 2 : N, columns = i & 4 ? 1 : N;
    good = dnnl_sgemm(ta, tb, rows, columns, columns, 1.0f, zeros, N, zeros, N, 0.0f, c, N) == dnnl_success;
  }
  return good;
}

/* For VTune the library looks through all folders of the system for a file that hardly anybody has: a hundred calls of
 * the system. Who wants it says so in the environment. */
static void leave_profiling(void) {
  if (!getenv("ONEDNN_JIT_PROFILE") && !getenv("DNNL_JIT_PROFILE"))
    (void)dnnl_set_jit_profiling_flags(DNNL_JIT_PROFILE_NONE);
}

/* Two threads may start the library at a time, each for something else. */
static pthread_once_t profiling = PTHREAD_ONCE_INIT;

static bool start_nothing(void) { return true; }

/* What is done once, by whoever needs it first. */
struct start {
  bool (*run)(void);
  pthread_mutex_t lock;
  bool done;
};
static struct start whole = {start_nothing, PTHREAD_MUTEX_INITIALIZER, false},
                    for_products = {start_products, PTHREAD_MUTEX_INITIALIZER, false};

static void undo_start(void *mutex) { pthread_mutex_unlock(mutex); }

static bool start(struct start *s) {
  enum { ROOM = 24 << 20 };
  struct arena_guard guard;
  pthread_mutex_lock(&s->lock);
  arena_guard(&guard, undo_start, &s->lock);
  if (!s->done && foreign_memory(0, ROOM)) {
    foreign_prepare();
    foreign_enter();
    pthread_once(&profiling, leave_profiling);
    s->done = s->run();
    foreign_leave();
  }
  bool good = s->done;
  arena_unguard(&guard);
  pthread_mutex_unlock(&s->lock);
  return good;
}

/* ---- beside the caller ---- */

static pthread_t starter;
static bool starter_runs, starter_had; /* under `beside` */
static pthread_mutex_t beside = PTHREAD_MUTEX_INITIALIZER;

/* Where there is no memory, or the start is left for want of it, whoever needs the library says so. */
static void *start_beside(void *unused) {
  (void)unused;
  jmp_buf point, *outer = arena_on_failure(&point);
  if (!setjmp(point)) {
    set_threads(1);
    start(&for_products);
  }
  foreign_leave();
  arena_on_failure(outer);
  return NULL;
}

void onednn_expect_products(void) {
  enum { SPACE = 256 << 20, ROOM = 64 << 20 }; /* for others, too */
  pthread_mutex_lock(&beside);
  if (!starter_had && host_cores() > 1 && foreign_memory(SPACE, ROOM))
    starter_had = starter_runs = thread_start(&starter, start_beside, NULL) == 0;
  pthread_mutex_unlock(&beside);
}

void onednn_wait(void) {
  pthread_mutex_lock(&beside);
  if (starter_runs) pthread_join(starter, NULL);
  starter_runs = false;
  pthread_mutex_unlock(&beside);
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
static bool make_after(struct start *s, void *plan, bool (*make)(void *plan)) {
  enum { ROOM = 8 << 20 };
  struct making m = {plan, get_threads()};
  struct arena_guard guard;
  arena_guard(&guard, undo_making, &m);
  set_threads(1); /* a primitive remembers how many threads it was made for */
  bool good = start(s) && foreign_memory(0, ROOM);
  if (good) {
    foreign_enter();
    good = make(plan);
    foreign_leave();
  }
  set_threads(m.threads);
  arena_unguard(&guard);
  return good;
}

static atomic_bool has_products;

bool onednn_make(void *plan, bool products, bool (*make)(void *plan)) {
  if (products) atomic_store_explicit(&has_products, true, memory_order_relaxed);
  return make_after(&whole, plan, make);
}

static bool make_nothing(void *plan) { return plan == NULL; }

bool onednn_finish(void) {
  if (!atomic_load_explicit(&has_products, memory_order_relaxed)) return true;
  bool good = make_after(&for_products, NULL, make_nothing);
  onednn_wait(); /* no thread is left where a process ends without closing */
  return good;
}

const char *onednn_way(dnnl_primitive_desc_t desc) {
  const char *name = NULL;
  dnnl_status_t status = dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &name);
  return status == dnnl_success && name ? name : "ref";
}

#if DNNL_VERSION_MAJOR == 2
bool onednn_has_units(void) {
  const char *units = getenv("DGC_BF16_UNITS");
  if (units && strcmp(units, "off") == 0) return false;
  return ((unsigned)dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_amx) ==
         dnnl_cpu_isa_avx512_core_amx;
}
#else
bool onednn_has_units(void) { return false; }
#endif

bool onednn_takes_units(const char *way) { return strstr(way, "amx") != NULL; }

bool onednn_data(dnnl_memory_t memory, const void *data) {
  void *pointer;
  memcpy(&pointer, &data, sizeof pointer);
  return dnnl_memory_set_data_handle(memory, pointer) == dnnl_success;
}
