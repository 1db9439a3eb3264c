/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the host, for values that devices work on. */
#ifndef DGC_RUNTIME_HOST_MEMORY_H
#define DGC_RUNTIME_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

void *host_alloc(size_t bytes);
void host_free(void *data);
/* The hooks of backends that run on it. */
void *host_device_alloc(void *self, int device, size_t bytes);
void host_device_free(void *self, int device, void *data, size_t bytes);
bool host_device_copy(void *self, void *to, int to_device, const void *from, int from_device, size_t bytes);

/* Keeps what would have been freed until the process ends: see engines_lose. */
void host_abandon(void *what);

#endif
