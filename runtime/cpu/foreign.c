/* SPDX-License-Identifier: Apache-2.0 */
/* Memory is tried out before a call into C++; in the call, a handler of operator new gives up where there is none. */
#include "runtime/cpu/foreign.h"

#include "base/arena.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void new_handler(void);

static _Thread_local bool inside, loading;
static atomic_bool spoiled;
static new_handler *(*_Atomic set_handler)(new_handler *);

static bool can_map(size_t size, int protection) {
  void *p = size ? mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : NULL;
  if (p == MAP_FAILED) return false;
  if (size) munmap(p, size);
  return true;
}

bool foreign_memory(size_t space, size_t memory) {
  return can_map(space, PROT_NONE) && can_map(memory, PROT_READ | PROT_WRITE);
}

void foreign_no_memory(void) {
  if (!inside) abort();
  inside = false;
  atomic_store(&spoiled, true);
  arena_exhausted();
}

/* What a library does as it is loaded cannot be left: the loader holds its locks, and nobody catches what is thrown. */
static _Noreturn void end_loading(void) {
  static const char said[] = "error: no memory to load LLVM\n";
  enum { FAILED = 3 };
  (void)!write(STDERR_FILENO, said, sizeof said - 1);
  _exit(FAILED);
}

static struct sigaction abort_before;

/* LLVM aborts where malloc gives it nothing, and takes no handler before it is loaded. */
static void aborted(int signal) {
  if (loading) end_loading();
  sigaction(signal, &abort_before, NULL);
  raise(signal);
}

/* For calls of others it is as if there were no handler: operator new looks again, and throws. */
static void no_memory(void) {
  if (loading) end_loading();
  if (!inside) {
    set_handler(NULL);
    return;
  }
  foreign_no_memory();
}

/* std::set_new_handler; a handler that somebody else has set stays. */
void foreign_prepare(void) {
  void *symbol = dlsym(RTLD_DEFAULT, "_ZSt15set_new_handlerPFvvE");
  new_handler *(*set)(new_handler *), *before;
  if (symbol == NULL) return;
  memcpy(&set, &symbol, sizeof symbol);
  set_handler = set;
  before = set(no_memory);
  if (before != NULL && before != no_memory) set(before);
}

void foreign_enter(void) {
  if (atomic_load_explicit(&spoiled, memory_order_relaxed)) arena_exhausted();
  inside = true;
}

void foreign_leave(void) { inside = false; }

void foreign_load(bool begins) {
  struct sigaction ends = {.sa_handler = aborted};
  if (begins) foreign_prepare();
  loading = begins;
  if (begins)
    sigaction(SIGABRT, &ends, &abort_before);
  else
    sigaction(SIGABRT, &abort_before, NULL);
}
