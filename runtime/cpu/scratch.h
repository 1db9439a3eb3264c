/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a thread works in: its own, which grows with what is asked for and stays until the thread ends. */
#ifndef DGC_RUNTIME_CPU_SCRATCH_H
#define DGC_RUNTIME_CPU_SCRATCH_H

#include <stddef.h>

/* So many bytes from a line of the cache on, until the thread's next call; leaves as an arena does if there are not. */
void *cpu_scratch(size_t size);
/* As much as is usual, when a thread begins: it is there before the first step. */
void cpu_scratch_enter(void);

#endif
