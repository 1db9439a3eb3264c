/* SPDX-License-Identifier: Apache-2.0 */
/* The characters of graph text. */
#include "ir/graph/lex.h"
#include "ir/graph/text.h"

#include <string.h>

struct loc lex_loc(const struct lex *l, const char *begin, const char *end) {
  return (struct loc){l->source, (uint32_t)(begin - l->source->text), (uint32_t)(end - l->source->text)};
}

void lex_blanks(struct lex *l) {
  while (l->p < l->end && (*l->p == ' ' || *l->p == '\t' || *l->p == '\r')) l->p++;
}

bool lex_line_end(struct lex *l) {
  lex_blanks(l);
  return l->p >= l->end || *l->p == '\n' || *l->p == '#';
}

void lex_skip_line(struct lex *l) {
  const char *newline = memchr(l->p, '\n', (size_t)(l->end - l->p));
  l->p = newline ? newline + 1 : l->end;
}

void lex_skip_lines(struct lex *l) {
  while (l->p < l->end && lex_line_end(l)) lex_skip_line(l);
}

const char *lex_comment(struct lex *l) {
  lex_blanks(l);
  const char *begin = l->p;
  lex_skip_line(l);
  if (begin == l->p || *begin != '#') return NULL;
  return text_comment(l->arena, begin + 1, (size_t)(l->p - begin - 1));
}

bool lex_expected(struct lex *l, const char *what) {
  lex_blanks(l);
  const char *end = l->p;
  while (end < l->end && text_is_word(*end)) end++;
  if (end == l->p && end < l->end && *end != '\n') end++;
  struct loc loc = lex_loc(l, l->p, end);
  if (end == l->p)
    diag_error(l->diags, loc, "expected %s before the end of the line", what);
  else
    diag_error(l->diags, loc, "expected %s, found '%.*s'", what, end - l->p > 60 ? 60 : (int)(end - l->p),
               l->p);
  return false;
}

bool lex_char(struct lex *l, char c) {
  lex_blanks(l);
  if (l->p >= l->end || *l->p != c) return false;
  l->p++;
  return true;
}

static struct lexeme take(struct lex *l, const char *end) {
  struct lexeme piece = {.len = (size_t)(end - l->p), .loc = lex_loc(l, l->p, end)};
  if (end > l->p) piece.text = arena_strndup(l->arena, l->p, piece.len);
  l->p = end;
  return piece;
}

struct lexeme lex_word(struct lex *l) {
  lex_blanks(l);
  const char *end = l->p;
  if (end < l->end && *end != '#')
    while (end < l->end && text_is_word(*end)) end++;
  return take(l, end);
}

bool lex_keyword(struct lex *l, const char *word) {
  lex_blanks(l);
  if (l->p >= l->end || *l->p != *word) return false;
  size_t len = strlen(word);
  if ((size_t)(l->end - l->p) < len || memcmp(l->p, word, len) != 0) return false;
  char next = l->p + len < l->end ? l->p[len] : 0;
  if (text_is_word(next) && next != ']') return false; /* a list may end behind it */
  l->p += len;
  return true;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* The character after a backslash at `p`; *p is set behind it. 0 if it is none. */
static char unescape(const char **p, const char *end) {
  const char *q = *p;
  if (q >= end) return 0;
  *p = q + 1;
  if (*q == 'n') return '\n';
  if (*q == '"' || *q == '\\') return *q;
  if (*q != 'x' || end - q < 3) return 0;
  int high = hex_digit(q[1]), low = hex_digit(q[2]);
  *p = q + 3;
  return high < 0 || low < 0 ? 0 : (char)(high * 16 + low);
}

struct lexeme lex_string(struct lex *l) {
  lex_blanks(l);
  struct lexeme none = {0};
  if (l->p >= l->end || *l->p != '"') return none;
  struct str s = str_make(l->arena);
  const char *p = l->p + 1;
  while (p < l->end && *p != '"' && *p != '\n') {
    const char *begin = p;
    char c = *p++;
    if (c == '\\') c = unescape(&p, l->end);
    if (!c) {
      diag_error(l->diags, lex_loc(l, begin, p), "a string cannot hold this: use \\\", \\\\, \\n or \\x1f");
      return none;
    }
    str_putc(&s, c);
  }
  if (p >= l->end || *p != '"') {
    diag_error(l->diags, lex_loc(l, l->p, p), "the string does not end on its line");
    return none;
  }
  struct lexeme piece = {.text = s.data, .len = s.len, .loc = lex_loc(l, l->p, p + 1)};
  l->p = p + 1;
  return piece;
}

struct lexeme lex_name(struct lex *l) {
  struct lexeme word = lex_word(l);
  return word.text ? word : lex_string(l);
}

struct lexeme lex_until(struct lex *l, const char *stop) {
  lex_blanks(l);
  const char *end = l->p;
  while (end < l->end && *end && !strchr(" \t\r\n", *end) && !strchr(stop, *end)) end++;
  return take(l, end);
}

bool lex_int(struct lex *l, int64_t *out) {
  lex_blanks(l);
  const char *p = l->p;
  bool negative = p < l->end && *p == '-';
  if (negative) p++;
  if (p >= l->end || *p < '0' || *p > '9') return false;
  int64_t value = 0;
  for (; p < l->end && *p >= '0' && *p <= '9'; p++)
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_sub_overflow(value, *p - '0', &value)) /* downwards: INT64_MIN has no positive twin */
      return false;
  if (!negative && __builtin_sub_overflow(0, value, &value)) return false;
  l->p = p;
  *out = value;
  return true;
}

bool lex_float(struct lex *l, double *out) {
  lex_blanks(l);
  if (l->p >= l->end) return false;
  const char *end;
  *out = str_to_double(l->p, &end);
  if (end == l->p || end > l->end || end[-1] == ')') return false; /* nan(...): see lex_nan_bits */
  l->p = end;
  return true;
}

bool lex_nan_bits(struct lex *l, uint64_t *out) {
  lex_blanks(l);
  if (l->end - l->p < 7 || memcmp(l->p, "nan(0x", 6) != 0) return false;
  const char *p = l->p + 6;
  uint64_t bits = 0;
  int digits = 0;
  for (; p < l->end && hex_digit(*p) >= 0; p++, digits++) bits = bits << 4 | (uint64_t)hex_digit(*p);
  if (digits == 0 || digits > 16 || p >= l->end || *p != ')') return false;
  l->p = p + 1;
  *out = bits;
  return true;
}

bool lex_dim(struct lex *l, int64_t *out) {
  lex_blanks(l);
  const char *start = l->p;
  int64_t k = 1;
  bool number = lex_int(l, &k);
  if (!number || lex_char(l, '*')) {
    bool whole = lex_char(l, 'N');
    if ((!whole && !lex_char(l, 'B')) || k < 1 || k > MAX_ELEMENTS) {
      l->p = start;
      return false;
    }
    if (__builtin_mul_overflow(k, whole ? DIM_WHOLE : -1, &k)) k = MAX_ELEMENTS + 1;
  } else if (k > MAX_ELEMENTS)
    k = MAX_ELEMENTS + 1; /* no multiple of N */
  if (number && *start == '-') {
    l->p = start;
    return false;
  }
  *out = k;
  return true;
}

bool lex_type(struct lex *l, struct type *out) {
  lex_blanks(l);
  const char *start = l->p, *p = start;
  while (p < l->end && ((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9'))) p++;
  enum dtype d;
  if (!dtype_parse(start, (size_t)(p - start), &d)) return lex_expected(l, "a type, like f32[B,784]");
  *out = type_scalar(d);
  l->p = p;
  if (p >= l->end || *p != '[') return true;
  l->p++;
  if (lex_char(l, ']')) return true;
  do {
    int64_t dim;
    if (!lex_dim(l, &dim)) return lex_expected(l, "a dimension: a size, B or N, or a multiple of one");
    if (out->rank == MAX_RANK) {
      diag_error(l->diags, lex_loc(l, start, l->p), "a type has at most %d dimensions", MAX_RANK);
      return false;
    }
    out->dim[out->rank++] = dim;
  } while (lex_char(l, ','));
  if (!lex_char(l, ']')) return lex_expected(l, "',' or ']'");
  if (type_valid(out)) return true;
  diag_error(l->diags, lex_loc(l, start, l->p), "the shape is too large, or depends on B twice");
  return false;
}
