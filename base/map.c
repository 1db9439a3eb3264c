/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing over an array of entries in insertion order; at most three slots in four are taken. */
#include "base/map.h"

#include "base/str.h"

#include <string.h>

struct map map_make(struct arena *a) {
  return (struct map){.arena = a};
}

/* Eight bytes at a time; the last eight of a key may overlap those before. */
uint32_t map_hash(const char *key, size_t len) {
  uint64_t h = STR_HASH_SEED, word = 0;
  if (len < 8) {
    for (size_t i = 0; i < len; i++) word = word << 8 | (unsigned char)key[i];
  } else {
    for (size_t i = 0; i + 8 < len; i += 8) {
      memcpy(&word, key + i, 8);
      h = hash_word(h, word);
    }
    memcpy(&word, key + len - 8, 8);
  }
  return (uint32_t)(hash_word(hash_word(h, word), len) >> 32);
}

/* The slot that holds `key`, or the empty slot where it belongs. The map has slots. */
static struct map_slot *find(const struct map *m, const char *key, size_t len, uint32_t h) {
  for (uint32_t i = h;; i++) {
    struct map_slot *slot = &m->slots[i & (m->nslots - 1)];
    if (!slot->index) return slot;
    if (slot->hash != h) continue;
    const char *have = m->entries[slot->index - 1].key;
    if (strncmp(have, key, len) == 0 && have[len] == 0) return slot;
  }
}

void *map_get_hashed(const struct map *m, const char *key, size_t len, uint32_t h) {
  if (!m->nslots) return NULL;
  uint32_t index = find(m, key, len, h)->index;
  return index ? m->entries[index - 1].value : NULL;
}

void *map_getn(const struct map *m, const char *key, size_t len) {
  if (!m->nslots || memchr(key, 0, len)) return NULL;
  return map_get_hashed(m, key, len, map_hash(key, len));
}

void *map_get(const struct map *m, const char *key) {
  size_t len = strlen(key);
  return m->nslots ? map_get_hashed(m, key, len, map_hash(key, len)) : NULL;
}

static void grow(struct map *m, uint32_t nslots) {
  struct map_slot *old = m->slots;
  uint32_t nold = m->nslots;
  m->nslots = nslots;
  m->slots = arena_new_array(m->arena, m->nslots, struct map_slot);
  m->cap = m->nslots / 4 * 3;
  struct map_entry *entries = arena_room(m->arena, m->cap * sizeof *entries);
  if (m->count) memcpy(entries, m->entries, m->count * sizeof *entries);
  m->entries = entries;
  for (uint32_t i = 0; i < nold; i++) {
    if (!old[i].index) continue;
    uint32_t at = old[i].hash & (m->nslots - 1);
    while (m->slots[at].index) at = (at + 1) & (m->nslots - 1);
    m->slots[at] = old[i];
  }
}

void map_reserve(struct map *m, uint32_t count) {
  uint32_t nslots = m->nslots ? m->nslots : 16;
  while (nslots / 4 * 3 < count) nslots *= 2;
  if (nslots > m->nslots) grow(m, nslots);
}

static void *put(struct map *m, const char *key, size_t len, uint32_t h, void *value, bool owned) {
  if (m->count == m->cap) grow(m, m->nslots ? 2 * m->nslots : 16);
  struct map_slot *slot = find(m, key, len, h);
  if (slot->index) {
    struct map_entry *e = &m->entries[slot->index - 1];
    void *old = e->value;
    e->value = value;
    return old;
  }
  m->entries[m->count] = (struct map_entry){owned ? key : arena_strndup(m->arena, key, len), value};
  *slot = (struct map_slot){h, ++m->count};
  return NULL;
}

void map_put_hashed(struct map *m, const char *key, size_t len, uint32_t h, void *value) {
  put(m, key, len, h, value, true);
}

void *map_put(struct map *m, const char *key, void *value) {
  size_t len = strlen(key);
  return put(m, key, len, map_hash(key, len), value, false);
}

void *map_put_owned(struct map *m, const char *key, void *value) {
  size_t len = strlen(key);
  return put(m, key, len, map_hash(key, len), value, true);
}
