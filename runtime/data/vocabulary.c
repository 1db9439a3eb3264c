/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a column of categories and their numbers: see vocabulary.h. */
#include "runtime/data/vocabulary.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct vocabulary *vocabulary_make(struct arena *a) {
  struct vocabulary *v = arena_new(a, struct vocabulary);
  v->numbers = map_make(a);
  return v;
}

static void add(struct vocabulary *v, const char *word) {
  map_put(&v->numbers, word, (void *)(intptr_t)++v->count);
}

bool vocabulary_set(struct vocabulary *v, const char *const *words, int count) {
  v->words = arena_new_array(v->numbers.arena, (size_t)count, const char *);
  for (int i = 0; i < count; i++) {
    if (!*words[i] || (i && strcmp(words[i - 1], words[i]) >= 0)) return false;
    add(v, words[i]);
    v->words[i] = v->numbers.entries[i].key;
  }
  v->closed = true;
  return true;
}

int vocabulary_number(struct vocabulary *v, const char *word, int len) {
  int known = len ? (int)(intptr_t)map_getn(&v->numbers, word, (size_t)len) : 0;
  if (known || !len) return known;
  if (v->closed) return v->unknown++, 0;
  add(v, arena_strndup(v->numbers.arena, word, (size_t)len));
  return v->count;
}

static int by_bytes(const void *a, const void *b) {
  const struct map_entry *x = *(const struct map_entry *const *)a, *y = *(const struct map_entry *const *)b;
  return strcmp(x->key, y->key);
}

void vocabulary_close(struct vocabulary *v, int **places) {
  struct arena *a = v->numbers.arena;
  struct map_entry **sorted = arena_new_array(a, (size_t)v->count, struct map_entry *);
  *places = arena_new_array(a, (size_t)v->count + 1, int);
  v->words = arena_new_array(a, (size_t)v->count, const char *);
  for (int i = 0; i < v->count; i++) sorted[i] = &v->numbers.entries[i];
  qsort(sorted, (size_t)v->count, sizeof *sorted, by_bytes);
  for (int i = 0; i < v->count; i++) {
    (*places)[(intptr_t)sorted[i]->value] = i + 1;
    v->words[i] = sorted[i]->key;
    sorted[i]->value = (void *)(intptr_t)(i + 1);
  }
  v->closed = true;
}
