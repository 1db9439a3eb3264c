/* Threads of the library: no handler of a signal runs on them, but for faults of their own. Signals are for the
 * program's own threads, and code that oneDNN generates keeps numbers below its stack pointer, where the frame of a
 * handler goes. */
#ifndef DGC_BASE_THREAD_H
#define DGC_BASE_THREAD_H

#include <pthread.h>

/* As pthread_create: 0, or the error's number. */
int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

#endif
