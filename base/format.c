/* SPDX-License-Identifier: Apache-2.0 */
/* printf for %s %.*s %c %d %u, with a width or none, with or without l, ll or z, and %%; what has anything else is the
 * C library's work. */
#include "base/format.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct format_output {
  char *data;
  size_t size, len;
};

static void put(struct format_output *t, const char *from, size_t len) {
  if (t->len < t->size) memcpy(t->data + t->len, from, len < t->size - t->len ? len : t->size - t->len);
  t->len += len;
}

static size_t format_unsigned(char *out, uint64_t value) {
  size_t len = 1;
  for (uint64_t left = value; left >= 10; left /= 10) len++;
  for (size_t i = len; i-- > 0; value /= 10) out[i] = (char)('0' + value % 10);
  return len;
}

size_t format_int(char out[FORMAT_DIGITS], int64_t value) {
  if (value >= 0) return format_unsigned(out, (uint64_t)value);
  *out = '-';
  return 1 + format_unsigned(out + 1, -(uint64_t)value);
}

/* Arguments as a pointer: functions that are called take from the same list. */
struct format_arguments {
  va_list list;
};

static void put_blanks(struct format_output *t, size_t count) {
  if (t->len < t->size) memset(t->data + t->len, ' ', count < t->size - t->len ? count : t->size - t->len);
  t->len += count;
}

/* On the right of `width` characters, on the left of -width. */
static void put_wide(struct format_output *t, const char *from, size_t len, int width) {
  size_t wide = width < 0 ? -(size_t)width : (size_t)width, blanks = wide > len ? wide - len : 0;
  if (width > 0) put_blanks(t, blanks);
  put(t, from, len);
  if (width < 0) put_blanks(t, blanks);
}

static int64_t signed_argument(struct format_arguments *a, int longs) {
  return longs == 0 ? va_arg(a->list, int) : longs == 1 ? va_arg(a->list, long) : va_arg(a->list, long long);
}

static uint64_t unsigned_argument(struct format_arguments *a, int longs) {
  return longs == 0   ? va_arg(a->list, unsigned)
         : longs == 1 ? va_arg(a->list, unsigned long)
                      : va_arg(a->list, unsigned long long);
}

/* What stands between % and the letter: "-12", "*", ".*", "ll". */
struct format_directive {
  int width, precision, longs;
};

static const char *read_directive(const char *p, struct format_directive *d, struct format_arguments *a) {
  *d = (struct format_directive){.precision = -1};
  bool left = *p == '-';
  p += left;
  if (*p == '*') {
    d->width = va_arg(a->list, int);
    p++;
  } else if (*p != '0') {
    for (; *p >= '0' && *p <= '9' && d->width < 1000; p++) d->width = 10 * d->width + (*p - '0');
  }
  if (left && d->width > 0) d->width = -d->width;
  if (p[0] == '.' && p[1] == '*') {
    d->precision = va_arg(a->list, int);
    p += 2;
  }
  for (; *p == 'l'; p++) d->longs++;
  if (*p == 'z') p++, d->longs = sizeof(size_t) == sizeof(long) ? 1 : 2;
  return p;
}

/* What `*at` behind a % says, and past it; false if it is none of these. */
static bool put_directive(struct format_output *t, const char **at, struct format_arguments *a) {
  struct format_directive d;
  char digits[FORMAT_DIGITS];
  const char *p = read_directive(*at, &d, a), *word;
  *at = p + 1;
  if (d.precision >= 0 ? *p != 's' || d.longs : *p == 's' && d.longs) return false;
  switch (*p) {
  case 's':
    if (!(word = va_arg(a->list, const char *))) return false;
    put_wide(t, word, d.precision < 0 ? strlen(word) : strnlen(word, (size_t)d.precision), d.width);
    return true;
  case 'd': put_wide(t, digits, format_int(digits, signed_argument(a, d.longs)), d.width); return true;
  case 'u': put_wide(t, digits, format_unsigned(digits, unsigned_argument(a, d.longs)), d.width); return true;
  case 'c':
    if (d.longs) return false;
    put_wide(t, &(char){(char)va_arg(a->list, int)}, 1, d.width);
    return true;
  case '%': put(t, "%", 1); return true;
  default: return false;
  }
}

/* False: there is a directive that the C library has to print. */
static bool put_all(struct format_output *t, const char *fmt, struct format_arguments *a) {
  for (const char *p = fmt;;) {
    size_t len = 0;
    while (p[len] && p[len] != '%') len++;
    put(t, p, len);
    if (!p[len]) return true;
    p += len + 1;
    if (!put_directive(t, &p, a)) return false;
  }
}

size_t format_text(char *out, size_t size, const char *fmt, va_list ap) {
  struct format_output t = {out, size ? size - 1 : 0, 0};
  struct format_arguments a;
  va_copy(a.list, ap);
  bool done = put_all(&t, fmt, &a);
  va_end(a.list);
  if (done) {
    if (size) out[t.len < size ? t.len : size - 1] = 0;
    return t.len;
  }
  int len = vsnprintf(out, size, fmt, ap);
  if (len < 0 && size) *out = 0;
  return len < 0 ? 0 : (size_t)len;
}
