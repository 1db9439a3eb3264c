/* SPDX-License-Identifier: Apache-2.0 */
/* A reader of JSON that goes forward only and takes one token at a time. */
#include "runtime/data/json.h"

#include <string.h>

static void skip_space(struct json *j) {
  while (j->p < j->end && (*j->p == ' ' || *j->p == '\n' || *j->p == '\t' || *j->p == '\r')) j->p++;
}

bool json_take(struct json *j, char c) {
  skip_space(j);
  if (j->p == j->end || *j->p != c) return false;
  j->p++;
  return true;
}

bool json_done(struct json *j) {
  skip_space(j);
  return j->p == j->end;
}

bool json_size(struct json *j, int64_t *out) {
  skip_space(j);
  const char *begin = j->p;
  int64_t n = 0;
  for (; j->p < j->end && *j->p >= '0' && *j->p <= '9'; j->p++)
    if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *j->p - '0', &n)) return false;
  *out = n;
  return j->p > begin && (*begin != '0' || j->p == begin + 1);
}

bool utf8_valid(const char *text, size_t len) {
  const unsigned char *p = (const unsigned char *)text, *end = p + len;
  while (p < end) {
    int more = *p < 0x80                 ? 0
               : *p >= 0xc2 && *p < 0xe0 ? 1
               : *p >= 0xe0 && *p < 0xf0 ? 2
               : *p >= 0xf0 && *p < 0xf5 ? 3
                                         : -1;
    if (more < 0 || end - p <= more) return false;
    unsigned first = *p++, low = 0x80, high = 0xbf; /* bounds of the byte behind the first */
    if (first == 0xe0) low = 0xa0;                  /* overlong */
    if (first == 0xed) high = 0x9f;                 /* surrogates */
    if (first == 0xf0) low = 0x90;                  /* overlong */
    if (first == 0xf4) high = 0x8f;                 /* past U+10FFFF */
    for (; more > 0; more--, p++, low = 0x80, high = 0xbf)
      if (*p < low || *p > high) return false;
  }
  return true;
}

static bool hex4(struct json *j, uint32_t *out) {
  if (j->end - j->p < 4) return false;
  *out = 0;
  for (int i = 0; i < 4; i++) {
    char c = *j->p++;
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
    if (digit < 0) return false;
    *out = *out << 4 | (uint32_t)digit;
  }
  return true;
}

/* The four digits behind \u, and the second half of a surrogate pair. */
static bool unescape_code(struct json *j, struct str *s) {
  uint32_t code, low;
  if (!hex4(j, &code) || code == 0) return false;
  if (code >= 0xd800 && code < 0xe000) {
    if (code >= 0xdc00 || j->end - j->p < 2 || j->p[0] != '\\' || j->p[1] != 'u') return false;
    j->p += 2;
    if (!hex4(j, &low) || low < 0xdc00 || low >= 0xe000) return false;
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  if (code < 0x80) return str_putc(s, (char)code), true;
  int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
  str_putc(s, (char)(lead[more] | code >> 6 * more));
  while (more-- > 0) str_putc(s, (char)(0x80 | (code >> 6 * more & 0x3f)));
  return true;
}

const char *json_string(struct json *j) {
  if (!json_take(j, '"')) return NULL;
  struct str s = str_make(j->arena);
  for (;;) {
    const char *begin = j->p;
    while (j->p < j->end && *j->p != '"' && *j->p != '\\' && (unsigned char)*j->p >= ' ') j->p++;
    if (j->p == j->end || (unsigned char)*j->p < ' ' || !utf8_valid(begin, (size_t)(j->p - begin)))
      return NULL;
    str_putn(&s, begin, (size_t)(j->p - begin));
    if (*j->p++ == '"') return s.data;
    if (j->p == j->end) return NULL;
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *simple = *j->p ? strchr(from, *j->p) : NULL;
    char c = *j->p++;
    if (simple)
      str_putc(&s, to[simple - from]);
    else if (c != 'u' || !unescape_code(j, &s))
      return NULL;
  }
}

void json_quote(struct str *s, const char *text) {
  str_putc(s, '"');
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c < ' ') {
      str_printf(s, "\\u%04x", c);
    } else {
      if (c == '"' || c == '\\') str_putc(s, '\\');
      str_putc(s, (char)c);
    }
  }
  str_putc(s, '"');
}

static bool skip_value(struct json *j, int depth);

/* Behind the bracket that opens it. */
static bool skip_list(struct json *j, char close, int depth) {
  bool named = close == '}';
  if (json_take(j, close)) return true;
  do {
    if (named && (!json_string(j) || !json_take(j, ':'))) return false;
    if (!skip_value(j, depth + 1)) return false;
  } while (json_take(j, ','));
  return json_take(j, close);
}

static bool skip_value(struct json *j, int depth) {
  enum { DEEPEST = 32 };
  if (depth > DEEPEST) return false;
  if (json_take(j, '{')) return skip_list(j, '}', depth);
  if (json_take(j, '[')) return skip_list(j, ']', depth);
  struct json before = *j;
  if (json_string(j)) return true;
  *j = before;
  skip_space(j);
  const char *begin = j->p;
  while (j->p < j->end && !strchr(",]} \t\r\n", *j->p)) j->p++; /* a number or a word */
  return j->p > begin;
}

bool json_skip(struct json *j) { return skip_value(j, 0); }
