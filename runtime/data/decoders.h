/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that share the rows of a batch: what takes long to read, as images do, is read on all cores. Who reads which
 * row is by chance, and seen in nothing. */
#ifndef DGC_RUNTIME_DATA_DECODERS_H
#define DGC_RUNTIME_DATA_DECODERS_H

#include "base/diag.h"

struct decoders;
/* Does one of the pieces of work; false: no more of them are begun. */
typedef bool decode_fn(void *arg, int64_t index);

/* `count` threads, the one that runs them included; 0: one for each core that the process may use. At most 16. In
 * memory of the arena; NULL after an error. */
struct decoders *decoders_create(struct arena *a, int count, struct diags *d);
/* Calls fn(arg, 0) to fn(arg, n - 1) on all threads. The lowest index whose call was false, -1: none; all before it
 * have been done. */
int64_t decoders_run(struct decoders *t, int64_t n, decode_fn *fn, void *arg);
/* NULL is allowed. */
void decoders_destroy(struct decoders *t);

#endif
