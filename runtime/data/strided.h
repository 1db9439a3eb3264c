/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays whose axes lie in another order. */
#ifndef DGC_RUNTIME_DATA_STRIDED_H
#define DGC_RUNTIME_DATA_STRIDED_H

#include <stddef.h>
#include <stdint.h>

/* Writes the elements, of `size` bytes, of an array of rank 0 to MAX_RANK with these dimensions one behind the other,
 * the last axis fastest; in `in` those along axis i lie stride[i] elements apart. */
void copy_strided(void *out, const void *in, size_t size, int rank, const int64_t *dims,
                  const int64_t *stride);

#endif
