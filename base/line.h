/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the cache: what a processor reads of memory at once, and what two threads should not write to together. */
#ifndef DGC_BASE_LINE_H
#define DGC_BASE_LINE_H

#include <stdint.h>

enum { CACHE_LINE = 64 }; /* bytes, of x86-64 and of most of AArch64 */

/* Where the first line begins that is not before `memory`: less than CACHE_LINE bytes behind it. */
static inline void *line_from(const void *memory) {
  return (void *)(((uintptr_t)memory + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
}

#endif
