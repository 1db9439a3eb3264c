/* SPDX-License-Identifier: Apache-2.0 */
/* A thread begins with all signals blocked, but for faults. */
#include "base/thread.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What a thread does to itself is never blocked: the system would end the process without asking a handler. */
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg) {
  sigset_t all, before;
  sigfillset(&all);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&all, faults[i]);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(thread, NULL, run, arg);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

bool thread_may_spin(void) {
  const char *spin = getenv("DGC_SPIN");
  return !spin || strcmp(spin, "off") != 0;
}

void thread_nap(void) { nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL); }

int thread_cores(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}
