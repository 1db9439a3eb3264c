/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the host, for values that devices work on. */
#include "runtime/host_memory.h"

#include "base/integer.h"
#include "runtime/mpi/shared.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* From 2 MB on large pages, which the system is asked for: a step finds what it touches with fewer looks into tables,
 * and a page is given at the first touch of 2 MB, not of 4 KB. */
void *host_alloc(size_t bytes) {
  size_t large = (size_t)2 << 20, align = bytes >= large ? large : 64;
  if (bytes > SIZE_MAX / 4) return NULL;
  void *shared = shared_alloc(bytes);
  if (shared) return shared;
  size_t whole = bytes ? size_round_up(bytes, align) : align;
  void *data = aligned_alloc(align, whole);
  if (data && align == large) (void)madvise(data, whole, MADV_HUGEPAGE);
  return data;
}

void host_free(void *data) {
  if (!shared_free(data)) free(data);
}

void *host_device_alloc(void *self, int device, size_t bytes) {
  (void)self, (void)device;
  return host_alloc(bytes);
}

void host_device_free(void *self, int device, void *data, size_t bytes) {
  (void)self, (void)device, (void)bytes;
  host_free(data);
}

bool host_device_copy(void *self, void *to, int to_device, const void *from, int from_device, size_t bytes) {
  (void)self, (void)to_device, (void)from_device;
  if (bytes) memcpy(to, from, bytes);
  return true;
}

/* Kept where leak checkers look. */
void host_abandon(void *what) {
  static struct abandoned {
    void *what;
    struct abandoned *next;
  } * _Atomic all;
  struct abandoned *a = malloc(sizeof *a);
  if (!a) return;
  *a = (struct abandoned){what, all};
  while (!atomic_compare_exchange_weak(&all, &a->next, a)) {}
}
