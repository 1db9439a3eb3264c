/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map from strings to pointers, in an arena. Iteration follows insertion order, so that nothing
 * printed from a map depends on addresses. */
#ifndef DGC_BASE_MAP_H
#define DGC_BASE_MAP_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

struct map_entry {
  const char *key; /* owned by the map's arena */
  void *value;
};

/* Beside the index stands the hash, so that a search rarely looks at an entry that is not its own. */
struct map_slot {
  uint32_t hash, index; /* index + 1 into entries; 0 = empty */
};

struct map {
  struct arena *arena;
  struct map_entry *entries; /* in insertion order */
  uint32_t count, cap;
  struct map_slot *slots;
  uint32_t nslots;
};

struct map map_make(struct arena *a);
/* The value of `key`, or NULL. */
void *map_get(const struct map *m, const char *key);
void *map_getn(const struct map *m, const char *key, size_t len);
/* What the map knows a key by, for several calls about one key. */
uint32_t map_hash(const char *key, size_t len);
void *map_get_hashed(const struct map *m, const char *key, size_t len, uint32_t hash);
void map_put_hashed(struct map *m, const char *key, size_t len, uint32_t hash, void *value);
/* Room for so many keys without growing. */
void map_reserve(struct map *m, uint32_t count);
/* Sets `key` to `value`, copying the key; returns the old value or NULL. */
void *map_put(struct map *m, const char *key, void *value);
/* As map_put, for a key that lives as long as the map: it is not copied. */
void *map_put_owned(struct map *m, const char *key, void *value);

#endif
