/* SPDX-License-Identifier: Apache-2.0 */
/* Bump arenas: one per lifetime (a compilation, a graph, a pass, an executable).
 *
 * Nothing allocated here is freed alone; the whole arena dies at once. Running out of host memory is
 * handled at one place: the public entry points set a recovery point, see arena_on_failure. */
#ifndef DGC_BASE_ARENA_H
#define DGC_BASE_ARENA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

struct arena;

/* A new, empty arena. Owned by the caller; end it with arena_destroy. */
struct arena *arena_create(void);
/* Releases everything allocated from `a`. NULL is allowed. */
void arena_destroy(struct arena *a);
/* Forgets every allocation but keeps the memory for the next use (pass scratch). */
void arena_reset(struct arena *a);
/* `other` dies with `a`, or with what it is reset to forget. */
void arena_keep(struct arena *a, struct arena *other);

/* `size` bytes, zeroed, aligned to 16. Size 0 gives a valid pointer. Never returns NULL. */
void *arena_alloc(struct arena *a, size_t size);
/* The same, but for the zeros: whoever asks writes all that is read. */
void *arena_room(struct arena *a, size_t size);
/* `count` elements of `size` bytes; a product that overflows counts as out of memory. */
void *arena_array(struct arena *a, size_t count, size_t size);
/* The array of `count` items, with room for one more: at every power of two it moves. */
void *arena_grown(struct arena *a, void *items, int count, size_t size);
/* A copy of `size` bytes at `data`. */
void *arena_copy(struct arena *a, const void *data, size_t size);
/* A NUL-terminated copy of the first `len` bytes of `s`. */
char *arena_strndup(struct arena *a, const char *s, size_t len);
char *arena_strdup(struct arena *a, const char *s);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *a, const char *fmt, va_list ap);
/* Bytes handed out so far. */
size_t arena_used(const struct arena *a);

#define arena_new(a, T)          ((T *)arena_alloc((a), sizeof(T)))
#define arena_new_array(a, n, T) ((T *)arena_array((a), (n), sizeof(T)))

/* Where to go when the host is out of memory: the innermost public entry point of this thread. With no
 * recovery point set, the process prints one line and aborts. Returns the previous point, which the
 * caller restores before it returns. */
jmp_buf *arena_on_failure(jmp_buf *point);
/* Goes there, as an arena does that finds no memory. */
_Noreturn void arena_exhausted(void);

/* What has to be undone when memory runs out before arena_unguard: a lock, a thread, an arena that nobody else knows
 * of. A guard lies in the frame of the function that sets it; guards are taken away in the opposite order. */
struct arena_guard {
  void (*undo)(void *arg);
  void *arg;
  struct arena_guard *older;
  jmp_buf *point; /* whose failure it is about */
};
void arena_guard(struct arena_guard *g, void (*undo)(void *arg), void *arg);
void arena_unguard(struct arena_guard *g);
/* An arena of one function, guarded between the two. */
struct arena *arena_create_guarded(struct arena_guard *g);
void arena_destroy_guarded(struct arena *a, struct arena_guard *g);

/* For tests: after `count` more successful requests to the system, those of this thread fail until the next call.
 * A negative count means never, which is the default. */
void arena_fail_after(long count);

#endif
