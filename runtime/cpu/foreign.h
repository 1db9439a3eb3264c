/* SPDX-License-Identifier: Apache-2.0 */
/* Calls into libraries in C++, LLVM and oneDNN, where there is little memory: these end the process when they find
 * none. So room is looked for before they are called, and where operator new fails all the same, the call is left as if
 * an arena had found no memory. A library that was left so may hold locks: it is not called again. */
#ifndef DGC_RUNTIME_CPU_FOREIGN_H
#define DGC_RUNTIME_CPU_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

/* Whether so much can be had now: of address space, and of memory that is written to. */
bool foreign_memory(size_t space, size_t memory);
/* Around calls on this thread, which has a recovery point of arenas. enter leaves at once where a call was left. */
void foreign_enter(void);
void foreign_leave(void);
/* Around the loading of a library on this thread: where it finds no memory, the process ends with a line and exit
 * code 3, as nothing can leave the loader. */
void foreign_load(bool begins);
/* For libraries that call a function when they find no memory: leaves the call. */
_Noreturn void foreign_no_memory(void);
/* Once before the first enter, and before rare calls: others may have changed what operator new does. */
void foreign_prepare(void);

#endif
