/* SPDX-License-Identifier: Apache-2.0 */
/* A growing string in an arena, and the one place where numbers become text.
 *
 * Numbers print the same in every locale and with every compiler. */
#ifndef DGC_BASE_STR_H
#define DGC_BASE_STR_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct str {
  struct arena *arena;
  char *data; /* NUL-terminated once anything was added, never NULL */
  size_t len, cap;
};

struct str str_make(struct arena *a);
void str_putn(struct str *s, const char *text, size_t len);
/* Here, so that the length of a literal is known. */
static inline void str_put(struct str *s, const char *text) { str_putn(s, text, strlen(text)); }
void str_putc(struct str *s, char c);
void str_int(struct str *s, int64_t value);
/* Must not be used for floating point numbers: they depend on the locale. Use str_double. */
void str_printf(struct str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The shortest decimal that reads back to the same f64 (or f32): `0.1`, `1e-07`, `3.0`, `inf`, `-inf`, `nan`.
 * Always holds a '.', an 'e', or is inf/nan, so it is never mistaken for an integer. */
void str_double(struct str *s, double value);
void str_float(struct str *s, float value);

/* Reads a decimal or hexadecimal floating point number at `text` in the C locale, whatever the
 * locale of the process; accepts inf and nan. `*end` is set past the number, or to `text` if there is none. */
double str_to_double(const char *text, const char **end);

/* Whether both are the same text, or both NULL. */
bool str_same(const char *a, const char *b);

/* Whether one of `words`, which spaces part, is that of `len` letters at `word`, whatever the case and with any
 * underscores: "global_average_pooling2d" and "GlobalAveragePooling2D" are the same. */
bool str_has_word(const char *words, const char *word, size_t len);

/* Edit distance (Damerau-Levenshtein) for did-you-mean. */
int str_distance(const char *a, const char *b);
/* The candidate closest to `word`; where none is close enough to be meant, the shortest that has it as a part, as
 * triplet_loss has triplet; or NULL. Ties: the first. */
const char *str_closest(const char *word, const char *const *candidates, size_t count);

/* "a, b, c" */
const char *str_join(struct arena *a, const char *const *words, size_t count);

/* FNV-1a, 64 bits. Seed the first call with STR_HASH_SEED; chain calls by passing the result. */
#define STR_HASH_SEED UINT64_C(0xcbf29ce484222325)
uint64_t str_hash(uint64_t seed, const void *data, size_t len);
/* For tables and against damage, where nobody sees which: eight bytes at a time, in the machine's byte order. */
uint64_t str_digest(uint64_t seed, const void *data, size_t len);
/* One word more. */
static inline uint64_t hash_word(uint64_t h, uint64_t word) {
  h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
  return h ^ h >> 32;
}

#endif
