/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that processes of one host share: messages of plans between them are read where their sender has them.
 *
 * Each process has a heap in a file without a name, which ends with the last process that has it open. Those of the
 * same host map each other's, and only read there. A message's slot in the sender's heap says how many were sent under
 * its tag and where the last one lies, one in the receiver's how many of them it has. */
#ifndef DGC_RUNTIME_MPI_SHARED_H
#define DGC_RUNTIME_MPI_SHARED_H

#include "runtime/mpi/transport.h"

/* All processes of `t` come here, before anything else: from then on its functions carry messages of plans (the tags
 * from TAG_MESSAGES on) between processes that could open each other's heaps, and leave all others to those that it
 * had. DGC_SHARED=off in the environment of any of two: not between them. False after a failure of the transport. */
bool shared_open(struct transport *t);
/* What is sent from here is not copied before it is received; NULL: there is no heap, or no room in it. It is aligned
 * as host_alloc (runtime/host_memory.h) does. By any thread. */
void *shared_alloc(size_t bytes);
/* False: it is none of the heap's. */
bool shared_free(void *data);

#endif
