/* Open addressing over an array of entries in insertion order; at most three slots in four are taken. */
#include "base/map.h"

#include "base/str.h"

#include <string.h>

struct map map_make(struct arena *a) {
  return (struct map){.arena = a};
}

static uint32_t hash(const char *key, size_t len) {
  uint64_t h = str_hash(STR_HASH_SEED, key, len);
  return (uint32_t)(h ^ h >> 32);
}

/* The slot that holds `key`, or the empty slot where it belongs. The map has slots. */
static uint32_t *find(const struct map *m, const char *key, size_t len) {
  for (uint32_t i = hash(key, len);; i++) {
    uint32_t *slot = &m->slots[i & (m->nslots - 1)];
    if (!*slot) return slot;
    const char *have = m->entries[*slot - 1].key;
    if (strncmp(have, key, len) == 0 && have[len] == 0) return slot;
  }
}

void *map_getn(const struct map *m, const char *key, size_t len) {
  if (!m->nslots || memchr(key, 0, len)) return NULL;
  uint32_t slot = *find(m, key, len);
  return slot ? m->entries[slot - 1].value : NULL;
}

void *map_get(const struct map *m, const char *key) { return map_getn(m, key, strlen(key)); }

static void grow(struct map *m) {
  m->nslots = m->nslots ? 2 * m->nslots : 16;
  m->slots = arena_new_array(m->arena, m->nslots, uint32_t);
  m->cap = m->nslots / 4 * 3;
  struct map_entry *entries = arena_new_array(m->arena, m->cap, struct map_entry);
  if (m->count) memcpy(entries, m->entries, m->count * sizeof *entries);
  m->entries = entries;
  for (uint32_t i = 0; i < m->count; i++) *find(m, entries[i].key, strlen(entries[i].key)) = i + 1;
}

void *map_put(struct map *m, const char *key, void *value) {
  if (m->count == m->cap) grow(m);
  size_t len = strlen(key);
  uint32_t *slot = find(m, key, len);
  if (*slot) {
    struct map_entry *e = &m->entries[*slot - 1];
    void *old = e->value;
    e->value = value;
    return old;
  }
  m->entries[m->count] = (struct map_entry){arena_strndup(m->arena, key, len), value};
  *slot = ++m->count;
  return NULL;
}
