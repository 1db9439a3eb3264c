/* SPDX-License-Identifier: Apache-2.0 */
/* Bump arenas: a list of chunks, the newest first. Large requests get a chunk of their own. A chunk is cleared ahead of
 * the requests, as few of them are as large as it is worth to clear at once, and no further than they go. */
#include "base/arena.h"

#include "base/format.h"
#include "base/integer.h"
#include "base/work.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define POISONING 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISONING 1
#endif
#endif
#ifdef POISONING
#include <sanitizer/asan_interface.h>
#define REDZONE 16
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define REDZONE                           0
#endif

enum { ALIGN = 16, FIRST_CHUNK = 1 << 14, LAST_CHUNK = 1 << 20, AHEAD = 1 << 10 };

struct chunk {
  struct chunk *next;
  size_t size;  /* bytes behind this header */
  size_t fill;  /* of them taken */
  size_t clear; /* where those end that are taken or zero */
  _Alignas(ALIGN) char data[];
};

struct arena {
  struct chunk *chunks; /* the first one is being filled */
  struct chunk *spare;  /* emptied by arena_reset, used before the system is asked */
  struct arena *kept;   /* arenas that die with this one; `next_kept` is the next of a list */
  struct arena *next_kept;
  size_t next_size;
  size_t used;
};

static _Thread_local jmp_buf *recovery;
static _Thread_local struct arena_guard *guards; /* the newest first */
static _Thread_local long requests_left = -1;
static _Thread_local size_t handed_out;

size_t work_bytes(void) { return handed_out; }

jmp_buf *arena_on_failure(jmp_buf *point) {
  jmp_buf *previous = recovery;
  recovery = point;
  return previous;
}

void arena_fail_after(long count) { requests_left = count; }

void arena_guard(struct arena_guard *g, void (*undo)(void *arg), void *arg) {
  *g = (struct arena_guard){undo, arg, guards, recovery};
  guards = g;
}

void arena_unguard(struct arena_guard *g) { guards = g->older; }

_Noreturn void arena_exhausted(void) {
  while (recovery && guards && guards->point == recovery) {
    struct arena_guard *g = guards;
    guards = g->older; /* first: g may lie in what is undone */
    g->undo(g->arg);
  }
  if (recovery) longjmp(*recovery, 1);
  fputs("dgc: out of memory\n", stderr);
  abort();
}

static void *system_alloc(size_t size) {
  if (requests_left == 0) arena_exhausted();
  void *p = malloc(size);
  if (!p) arena_exhausted();
  if (requests_left > 0) requests_left--;
  return p;
}

struct arena *arena_create(void) {
  struct arena *a = system_alloc(sizeof *a);
  *a = (struct arena){.next_size = FIRST_CHUNK};
  return a;
}

static void free_chunks(struct chunk *c) {
  while (c) {
    struct chunk *next = c->next;
    ASAN_UNPOISON_MEMORY_REGION(c->data, c->size);
    free(c);
    c = next;
  }
}

static void destroy_kept(struct arena *a) {
  while (a->kept) {
    struct arena *other = a->kept;
    a->kept = other->next_kept;
    arena_destroy(other);
  }
}

void arena_keep(struct arena *a, struct arena *other) {
  other->next_kept = a->kept;
  a->kept = other;
}

void arena_destroy(struct arena *a) {
  if (!a) return;
  destroy_kept(a);
  free_chunks(a->chunks);
  free_chunks(a->spare);
  free(a);
}

static void undo_arena(void *a) { arena_destroy(a); }

struct arena *arena_create_guarded(struct arena_guard *g) {
  struct arena *a = arena_create();
  arena_guard(g, undo_arena, a);
  return a;
}

void arena_destroy_guarded(struct arena *a, struct arena_guard *g) {
  arena_unguard(g);
  arena_destroy(a);
}

void arena_reset(struct arena *a) {
  destroy_kept(a);
  while (a->chunks) {
    struct chunk *c = a->chunks;
    a->chunks = c->next;
    c->next = a->spare;
    a->spare = c;
    c->fill = c->clear = 0;
    ASAN_POISON_MEMORY_REGION(c->data, c->size);
  }
  a->used = 0;
}

/* A chunk with room for `size` bytes, in no list. */
static struct chunk *take_chunk(struct arena *a, size_t size) {
  for (struct chunk **p = &a->spare; *p; p = &(*p)->next) {
    struct chunk *c = *p;
    if (c->size < size) continue;
    *p = c->next;
    return c;
  }
  size_t room = size > a->next_size ? size : a->next_size;
  struct chunk *c = system_alloc(sizeof *c + room);
  *c = (struct chunk){.size = room};
  ASAN_POISON_MEMORY_REGION(c->data, c->size);
  if (a->next_size < LAST_CHUNK) a->next_size *= 2;
  return c;
}

/* A chunk with room for `need` bytes, which is filled next if it has more room left than the first one. */
static struct chunk *add_chunk(struct arena *a, size_t need) {
  struct chunk *first = a->chunks, *c = take_chunk(a, need);
  if (first && first->size - first->fill > c->size - need) {
    c->next = first->next;
    first->next = c;
  } else {
    c->next = first;
    a->chunks = c;
  }
  return c;
}

/* Clears what is taken of the first chunk, and what comes next. */
static void clear_ahead(struct chunk *c) {
  size_t end = c->size - c->fill < AHEAD ? c->size : c->fill + AHEAD;
  ASAN_UNPOISON_MEMORY_REGION(c->data + c->clear, end - c->clear);
  memset(c->data + c->clear, 0, end - c->clear);
  ASAN_POISON_MEMORY_REGION(c->data + c->clear, end - c->clear);
  c->clear = end;
}

static inline void *take(struct arena *a, size_t size, bool cleared) {
  if (size > SIZE_MAX / 4) arena_exhausted();
  size_t need = size_round_up(size, ALIGN) + REDZONE;
  struct chunk *c = a->chunks;
  if (!c || c->size - c->fill < need) c = add_chunk(a, need);
  char *p = c->data + c->fill;
  c->fill += need;
  if (c->fill > c->clear) {
    if (cleared)
      clear_ahead(c);
    else
      c->clear = c->fill;
  }
  a->used += size;
  handed_out += size;
  ASAN_UNPOISON_MEMORY_REGION(p, size);
  return p;
}

void *arena_alloc(struct arena *a, size_t size) { return take(a, size, true); }

void *arena_room(struct arena *a, size_t size) { return take(a, size, false); }

void *arena_array(struct arena *a, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) arena_exhausted();
  return arena_alloc(a, bytes);
}

void *arena_grown(struct arena *a, void *items, int count, size_t size) {
  if (count & (count - 1)) return items;
  void *more = arena_array(a, count ? 2 * (size_t)count : 1, size);
  if (count) memcpy(more, items, (size_t)count * size);
  return more;
}

void *arena_copy(struct arena *a, const void *data, size_t size) {
  void *p = take(a, size, false);
  return size ? memcpy(p, data, size) : p;
}

char *arena_strndup(struct arena *a, const char *s, size_t len) {
  char *p = take(a, len + 1, false);
  if (len) memcpy(p, s, len);
  p[len] = 0;
  return p;
}

char *arena_strdup(struct arena *a, const char *s) { return arena_strndup(a, s, strlen(s)); }

char *arena_vprintf(struct arena *a, const char *fmt, va_list ap) {
  char buf[256];
  va_list again;
  va_copy(again, ap);
  size_t len = format_text(buf, sizeof buf, fmt, ap);
  char *p = take(a, len + 1, false);
  if (len < sizeof buf)
    memcpy(p, buf, len + 1);
  else
    format_text(p, len + 1, fmt, again);
  va_end(again);
  return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char *p = arena_vprintf(a, fmt, ap);
  va_end(ap);
  return p;
}

size_t arena_used(const struct arena *a) { return a->used; }
