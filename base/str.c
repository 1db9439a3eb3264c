/* SPDX-License-Identifier: Apache-2.0 */
/* Growing strings, numbers as text, edit distance.
 *
 * A decimal of 15 digits (f32: 6) always survives the way to binary and back, so the shortest one is that with its
 * trailing zeros cut, or else the first longer one that reads back. Subnormals carry fewer digits and start at 1. */
#include "base/str.h"

#include "base/format.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct str str_make(struct arena *a) {
  return (struct str){.arena = a, .data = (char *)""};
}

static void grow(struct str *s, size_t more) {
  size_t cap = s->cap ? s->cap : 32;
  while (cap - s->len <= more) cap *= 2;
  char *data = arena_room(s->arena, cap);
  memcpy(data, s->data, s->len + 1);
  s->data = data;
  s->cap = cap;
}

/* Makes room for `more` bytes and the NUL. */
static inline void reserve(struct str *s, size_t more) {
  if (more >= s->cap - s->len) grow(s, more);
}

void str_putn(struct str *s, const char *text, size_t len) {
  reserve(s, len);
  if (len) memcpy(s->data + s->len, text, len);
  s->len += len;
  s->data[s->len] = 0;
}

void str_putc(struct str *s, char c) {
  reserve(s, 1);
  s->data[s->len++] = c;
  s->data[s->len] = 0;
}

void str_int(struct str *s, int64_t value) {
  reserve(s, FORMAT_DIGITS);
  s->len += format_int(s->data + s->len, value);
  s->data[s->len] = 0;
}

void str_printf(struct str *s, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char buf[256];
  size_t len = format_text(buf, sizeof buf, fmt, ap);
  va_end(ap);
  if (len < sizeof buf) {
    str_putn(s, buf, len);
    return;
  }
  reserve(s, len);
  va_start(ap, fmt);
  format_text(s->data + s->len, len + 1, fmt, ap);
  va_end(ap);
  s->len += len;
}

static locale_t c_locale(void) {
  static locale_t c;
  locale_t have = __atomic_load_n(&c, __ATOMIC_ACQUIRE);
  if (have) return have;
  locale_t made = newlocale(LC_ALL_MASK, "C", NULL), none = NULL;
  if (__atomic_compare_exchange_n(&c, &none, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return made;
  freelocale(made);
  return none;
}

double str_to_double(const char *text, const char **end) {
  *end = text;
  if (*text == ' ' || (*text >= '\t' && *text <= '\r')) return 0;
  char *stop;
  double value = strtod_l(text, &stop, c_locale());
  *end = stop;
  return value;
}

struct decimal {
  char digits[20]; /* NUL-terminated; the point stands behind the first */
  int count, exponent;
};

/* `value` (positive, finite) rounded to `count` digits. The locale decides what the point looks like: skip it. */
static struct decimal round_to(double value, int count) {
  char buf[64];
  struct decimal d = {.count = 0};
  snprintf(buf, sizeof buf, "%.*e", count - 1, value);
  const char *p = buf;
  for (; *p != 'e'; p++)
    if (*p >= '0' && *p <= '9') d.digits[d.count++] = *p;
  d.exponent = atoi(p + 1);
  return d;
}

/* Adds one to the last digit; false if that carries into a new one. */
static bool next_decimal(struct decimal *d) {
  for (int i = d->count - 1; i >= 0; i--) {
    if (d->digits[i] != '9') return d->digits[i]++, true;
    d->digits[i] = '0';
  }
  return false;
}

static bool reads_back(const struct decimal *d, double value, bool single) {
  char buf[64];
  snprintf(buf, sizeof buf, "%se%d", d->digits, d->exponent - d->count + 1);
  return single ? strtof_l(buf, NULL, c_locale()) == (float)value : strtod_l(buf, NULL, c_locale()) == value;
}

static struct decimal shortest(double value, bool single) {
  bool normal = value >= (single ? (double)FLT_MIN : DBL_MIN);
  int last = single ? FLT_DECIMAL_DIG : DBL_DECIMAL_DIG;
  for (int n = !normal ? 1 : single ? FLT_DIG : DBL_DIG; n < last; n++) {
    struct decimal d = round_to(value, n);
    if (reads_back(&d, value, single)) return d;
    /* At a power of two the gap above is twice the gap below: a decimal that is not the nearest may do. */
    if (next_decimal(&d) && reads_back(&d, value, single)) return d;
  }
  return round_to(value, last);
}

static void put_number(struct str *s, double value, bool single) {
  if (isnan(value)) {
    str_put(s, "nan");
    return;
  }
  if (signbit(value)) str_putc(s, '-'), value = -value;
  if (isinf(value) || value == 0) {
    str_put(s, value == 0 ? "0.0" : "inf");
    return;
  }
  struct decimal d = shortest(value, single);
  while (d.count > 1 && d.digits[d.count - 1] == '0') d.count--;
  size_t count = (size_t)d.count;
  if (d.exponent < -4 || d.exponent >= 16) {
    str_putn(s, d.digits, 1);
    if (count > 1) str_putc(s, '.'), str_putn(s, d.digits + 1, count - 1);
    str_printf(s, "e%c%02d", d.exponent < 0 ? '-' : '+', abs(d.exponent));
  } else if (d.exponent < 0) {
    str_put(s, "0.");
    for (int i = -1; i > d.exponent; i--) str_putc(s, '0');
    str_putn(s, d.digits, count);
  } else {
    size_t whole = (size_t)d.exponent + 1;
    str_putn(s, d.digits, whole < count ? whole : count);
    for (size_t i = count; i < whole; i++) str_putc(s, '0');
    str_putc(s, '.');
    if (whole < count)
      str_putn(s, d.digits + whole, count - whole);
    else
      str_putc(s, '0');
  }
}

void str_double(struct str *s, double value) { put_number(s, value, false); }

void str_float(struct str *s, float value) { put_number(s, (double)value, true); }

enum { MAX_WORD = 64 };

int str_distance(const char *a, const char *b) {
  size_t na = strlen(a), nb = strlen(b);
  if (na > MAX_WORD || nb > MAX_WORD) return strcmp(a, b) == 0 ? 0 : (int)(na > nb ? na : nb);
  int rows[3][MAX_WORD + 1];
  int *before = rows[0], *last = rows[1], *row = rows[2];
  for (size_t j = 0; j <= nb; j++) row[j] = (int)j;
  for (size_t i = 1; i <= na; i++) {
    int *free_row = before;
    before = last, last = row, row = free_row;
    row[0] = (int)i;
    for (size_t j = 1; j <= nb; j++) {
      int best = last[j - 1] + (a[i - 1] != b[j - 1]);
      if (last[j] + 1 < best) best = last[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped && before[j - 2] + 1 < best) best = before[j - 2] + 1;
      row[j] = best;
    }
  }
  return row[nb];
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static bool same_but_case(const char *a, const char *b) {
  while (*a && lower(*a) == lower(*b)) a++, b++;
  return lower(*a) == lower(*b);
}

bool str_same(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

static bool is_same_word(const char *a, size_t a_len, const char *b, size_t b_len) {
  const char *a_end = a + a_len, *b_end = b + b_len;
  for (;; a++, b++) {
    while (a < a_end && *a == '_') a++;
    while (b < b_end && *b == '_') b++;
    if (a == a_end || b == b_end) return a == a_end && b == b_end;
    if (lower(*a) != lower(*b)) return false;
  }
}

bool str_has_word(const char *words, const char *word, size_t len) {
  for (const char *at = words; *at;) {
    size_t n = strcspn(at, " ");
    if (is_same_word(word, len, at, n)) return true;
    at += n + (at[n] == ' ');
  }
  return false;
}

const char *str_join(struct arena *a, const char *const *words, size_t count) {
  struct str s = str_make(a);
  for (size_t i = 0; i < count; i++) str_printf(&s, "%s%s", i ? ", " : "", words[i]);
  return s.data;
}

static bool is_joint(char c) { return c == '_' || c == '.' || c == '\0'; }

/* Whether `word` is a part of `name` between underscores, dots or ends. */
static bool is_part(const char *word, size_t len, const char *name) {
  for (const char *at = name; (at = strstr(at, word)) != NULL; at++)
    if ((at == name || is_joint(at[-1])) && is_joint(at[len])) return true;
  return false;
}

/* The shortest of which `word` is a part. */
static const char *whole_of(const char *word, size_t len, const char *const *candidates, size_t count) {
  enum { LEAST = 3 };
  const char *best = NULL;
  for (size_t i = 0; i < count && len >= LEAST; i++)
    if (is_part(word, len, candidates[i]) && (!best || strlen(candidates[i]) < strlen(best)))
      best = candidates[i];
  return best;
}

const char *str_closest(const char *word, const char *const *candidates, size_t count) {
  size_t len = strnlen(word, MAX_WORD + 1);
  if (len > MAX_WORD) return NULL;
  const char *best = NULL;
  int limit = len < 3 ? 1 : (int)len / 3; /* one slip in three letters is meant */
  for (size_t i = 0; i < count; i++)
    if (same_but_case(word, candidates[i]) || is_same_word(word, len, candidates[i], strlen(candidates[i])))
      return candidates[i];
  for (size_t i = 0; i < count; i++) {
    int distance = str_distance(word, candidates[i]);
    if (distance > limit || (size_t)distance >= len) continue;
    best = candidates[i];
    limit = distance - 1;
  }
  return best ? best : whole_of(word, len, candidates, count);
}

uint64_t str_hash(uint64_t seed, const void *data, size_t len) {
  const unsigned char *p = data;
  for (size_t i = 0; i < len; i++) seed = (seed ^ p[i]) * UINT64_C(0x100000001b3);
  return seed;
}

uint64_t str_digest(uint64_t seed, const void *data, size_t len) {
  const unsigned char *p = data;
  for (; len >= 8; p += 8, len -= 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    seed = hash_word(seed, word);
  }
  return str_hash(seed, p, len);
}
