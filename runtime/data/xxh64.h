/* SPDX-License-Identifier: Apache-2.0 */
/* XXH64, a fast 64-bit checksum (xxhash.com), over data that comes in pieces. */
#ifndef DGC_RUNTIME_DATA_XXH64_H
#define DGC_RUNTIME_DATA_XXH64_H

#include <stddef.h>
#include <stdint.h>

struct xxh64 {
  uint64_t lane[4];
  uint64_t len;
  uint8_t pending[32]; /* the last len mod 32 bytes */
};

void xxh64_init(struct xxh64 *h); /* seed 0 */
void xxh64_add(struct xxh64 *h, const void *data, size_t len);
uint64_t xxh64_end(const struct xxh64 *h);

#endif
