/* SPDX-License-Identifier: Apache-2.0 */
/* As much JSON as the header of a safetensors file has: objects, arrays, strings and sizes. Strict. */
#ifndef DGC_RUNTIME_DATA_JSON_H
#define DGC_RUNTIME_DATA_JSON_H

#include "base/str.h"

struct json {
  struct arena *arena;
  const char *p, *end;
};

/* Skips white space, then `c` if it comes next. */
bool json_take(struct json *j, char c);
/* A string, unescaped; NULL if there is none, or one that is not UTF-8 or has a NUL. */
const char *json_string(struct json *j);
/* A whole number from 0 to INT64_MAX. */
bool json_size(struct json *j, int64_t *out);
/* A value of any kind, nested 32 deep at most, that nobody reads; what numbers and words look like is not asked. */
bool json_skip(struct json *j);
/* Nothing but white space is left. */
bool json_done(struct json *j);

bool utf8_valid(const char *text, size_t len);
/* Appends `text` (which must be UTF-8) in quotes. */
void json_quote(struct str *s, const char *text);

#endif
