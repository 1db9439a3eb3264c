/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing over an array of entries in insertion order; at most three slots in four are taken. */
#include "base/map.h"

#include "base/str.h"

#include <string.h>

struct map map_make(struct arena *a) {
  return (struct map){.arena = a};
}

static uint32_t hash(const char *key, size_t len) {
  return (uint32_t)(hash_word(str_digest(STR_HASH_SEED, key, len), len) >> 32);
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

void *map_getn(const struct map *m, const char *key, size_t len) {
  if (!m->nslots || memchr(key, 0, len)) return NULL;
  uint32_t index = find(m, key, len, hash(key, len))->index;
  return index ? m->entries[index - 1].value : NULL;
}

void *map_get(const struct map *m, const char *key) { return map_getn(m, key, strlen(key)); }

static void grow(struct map *m) {
  struct map_slot *old = m->slots;
  uint32_t nold = m->nslots;
  m->nslots = nold ? 2 * nold : 16;
  m->slots = arena_new_array(m->arena, m->nslots, struct map_slot);
  m->cap = m->nslots / 4 * 3;
  struct map_entry *entries = arena_new_array(m->arena, m->cap, struct map_entry);
  if (m->count) memcpy(entries, m->entries, m->count * sizeof *entries);
  m->entries = entries;
  for (uint32_t i = 0; i < nold; i++) {
    if (!old[i].index) continue;
    uint32_t at = old[i].hash & (m->nslots - 1);
    while (m->slots[at].index) at = (at + 1) & (m->nslots - 1);
    m->slots[at] = old[i];
  }
}

static void *put(struct map *m, const char *key, void *value, bool owned) {
  if (m->count == m->cap) grow(m);
  size_t len = strlen(key);
  uint32_t h = hash(key, len);
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

void *map_put(struct map *m, const char *key, void *value) { return put(m, key, value, false); }

void *map_put_owned(struct map *m, const char *key, void *value) { return put(m, key, value, true); }
