/* SPDX-License-Identifier: Apache-2.0 */
/* Words of others, found in the rows of elsewhere.def. */
#include "frontend/elsewhere.h"

#include "base/str.h"

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

/* The next row from `from` on that has the word; `count`: none has. */
static size_t find(const struct row *rows, size_t from, size_t count, const char *word, size_t len) {
  size_t i = from;
  while (i < count && !str_has_word(rows[i].theirs, word, len)) i++;
  return i;
}

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

const char *elsewhere_name(const char *word, const char *const *names, size_t count) {
  size_t len = strlen(word);
  for (size_t i = 0; (i = find(rows_of_names, i, COUNT(rows_of_names), word, len)) < COUNT(rows_of_names);
       i++)
    for (size_t k = 0; k < count; k++)
      if (strcmp(names[k], rows_of_names[i].here) == 0) return names[k];
  /* Two words of others for one thing: `lr`, where a model has `learning_rate`. */
  for (size_t i = 0; (i = find(rows_of_names, i, COUNT(rows_of_names), word, len)) < COUNT(rows_of_names);
       i++)
    for (size_t k = 0; k < count; k++)
      if (str_has_word(rows_of_names[i].theirs, names[k], strlen(names[k]))) return names[k];
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

const char *elsewhere_help(struct arena *a, const char *word) {
  const char *here = elsewhere_call(word), *instead = elsewhere_instead(word, strlen(word));
  if (here) return arena_printf(a, "it is written `%s`", here);
  return instead ? instead : elsewhere_parameter(word);
}

const char *elsewhere_names(struct arena *a, const char *word) {
  struct str s = str_make(a);
  size_t len = strlen(word);
  for (size_t i = 0; (i = find(rows_of_names, i, COUNT(rows_of_names), word, len)) < COUNT(rows_of_names);
       i++)
    str_printf(&s, "%s`%s`", s.len ? " or " : "", rows_of_names[i].here);
  return s.len ? s.data : NULL;
}

const char *elsewhere_statement(const char *word, size_t len) {
  size_t i = find(statements, 0, COUNT(statements), word, len);
  return i < COUNT(statements) ? statements[i].here : NULL;
}
