/* SPDX-License-Identifier: Apache-2.0 */
/* Words of others, found in the rows of elsewhere.def. */
#include "frontend/elsewhere.h"

#include <stdbool.h>
#include <string.h>

struct row {
  const char *here, *theirs;
};

#define NAME(here, theirs) {here, theirs},
#define CALL(here, theirs)
#define INSTEAD(help, theirs)
#define PARAMETER(help, theirs)
#define STATEMENT(here, theirs)
static const struct row rows_of_names[] = {
#include "frontend/elsewhere.def"
};
#undef NAME
#undef CALL
#define NAME(here, theirs)
#define CALL(here, theirs) {here, theirs},
static const struct row calls[] = {
#include "frontend/elsewhere.def"
};
#undef CALL
#undef INSTEAD
#define CALL(here, theirs)
#define INSTEAD(help, theirs) {help, theirs},
static const struct row others[] = {
#include "frontend/elsewhere.def"
};
#undef INSTEAD
#undef PARAMETER
#define INSTEAD(help, theirs)
#define PARAMETER(help, theirs) {help, theirs},
static const struct row parameters[] = {
#include "frontend/elsewhere.def"
};
#undef PARAMETER
#undef STATEMENT
#define PARAMETER(help, theirs)
#define STATEMENT(here, theirs) {here, theirs},
static const struct row statements[] = {
#include "frontend/elsewhere.def"
};
#undef NAME
#undef CALL
#undef INSTEAD
#undef PARAMETER
#undef STATEMENT

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

/* Whether the two are the same but for case and underscores: GlobalAveragePooling2D, global_average_pooling2d. */
static bool is_same(const char *a, size_t a_len, const char *b, size_t b_len) {
  const char *a_end = a + a_len, *b_end = b + b_len;
  for (;; a++, b++) {
    while (a < a_end && *a == '_') a++;
    while (b < b_end && *b == '_') b++;
    if (a == a_end || b == b_end) return a == a_end && b == b_end;
    if (lower(*a) != lower(*b)) return false;
  }
}

/* The next row from `from` on that has the word; `count`: none has. */
static size_t find(const struct row *rows, size_t from, size_t count, const char *word, size_t len) {
  for (size_t i = from; i < count; i++)
    for (const char *at = rows[i].theirs; *at;) {
      size_t n = strcspn(at, " ");
      if (is_same(word, len, at, n)) return i;
      at += n + (at[n] == ' ');
    }
  return count;
}

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

const char *elsewhere_name(const char *word, const char *const *names, size_t count) {
  size_t len = strlen(word);
  for (size_t i = 0; (i = find(rows_of_names, i, COUNT(rows_of_names), word, len)) < COUNT(rows_of_names);
       i++)
    for (size_t k = 0; k < count; k++)
      if (strcmp(names[k], rows_of_names[i].here) == 0) return names[k];
  return NULL;
}

const char *elsewhere_call(const char *word) {
  size_t i = find(calls, 0, COUNT(calls), word, strlen(word));
  return i < COUNT(calls) ? calls[i].here : NULL;
}

const char *elsewhere_instead(const char *word, size_t len) {
  size_t i = find(others, 0, COUNT(others), word, len);
  return i < COUNT(others) ? others[i].here : NULL;
}

const char *elsewhere_parameter(const char *word) {
  size_t i = find(parameters, 0, COUNT(parameters), word, strlen(word));
  return i < COUNT(parameters) ? parameters[i].here : NULL;
}

const char *elsewhere_statement(const char *word, size_t len) {
  size_t i = find(statements, 0, COUNT(statements), word, len);
  return i < COUNT(statements) ? statements[i].here : NULL;
}
