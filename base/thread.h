/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the library: no handler of a signal runs on them, but for faults of their own. Signals are for the
 * program's own threads, and code that oneDNN generates keeps numbers below its stack pointer, where the frame of a
 * handler goes. */
#ifndef DGC_BASE_THREAD_H
#define DGC_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* As pthread_create: 0, or the error's number. */
int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

/* Whether threads that wait keep their processor for a while: DGC_SPIN=off says that others want it. */
bool thread_may_spin(void);
/* Processors that this process may use. */
int thread_cores(void);
/* Sleeps for some tens of microseconds. */
void thread_nap(void);

#endif
