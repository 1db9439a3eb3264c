/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's memory goes with the thread: it is the value of a key. */
#include "runtime/cpu/scratch.h"

#include "base/arena.h"
#include "base/integer.h"
#include "base/line.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct scratch {
  size_t size;
  _Alignas(CACHE_LINE) char data[];
};

static pthread_key_t key;
static pthread_once_t made = PTHREAD_ONCE_INIT;
static bool has_key;

static void make_key(void) { has_key = pthread_key_create(&key, free) == 0; }

/* NULL if there is not enough. */
static char *find(size_t size) {
  pthread_once(&made, make_key);
  struct scratch *s = has_key ? pthread_getspecific(key) : NULL;
  if (s && s->size >= size) return s->data;
  free(s);
  size_t all = size_round_up(sizeof *s + size, CACHE_LINE);
  s = has_key ? aligned_alloc(CACHE_LINE, all) : NULL;
  if (s) s->size = size;
  if (has_key && pthread_setspecific(key, s) != 0) {
    free(s);
    s = NULL;
  }
  return s ? s->data : NULL;
}

void *cpu_scratch(size_t size) {
  char *data = find(size);
  if (!data) arena_exhausted();
  return data;
}

void cpu_scratch_enter(void) {
  enum { USUAL = 3 << 20 };
  find(USUAL);
}
