/* SPDX-License-Identifier: Apache-2.0 */
/* Where nodes come from, as graph text says it: the user's line, then the functions that were called, each with
 * the line inside of it.
 *
 *   origin = place [ " (" call { "; " call } ")" ]     call = name ", " place | "..."     place = file ":" line
 */
#include "ir/graph/text.h"

#include <stdlib.h>
#include <string.h>

/* Calls that are shown at both ends of a long chain. */
enum { SHOWN = 2 };

static void put_place(struct str *s, struct loc loc) {
  const char *name = loc.source->name, *slash = strrchr(name, '/');
  int line, column;
  source_position(loc.source, loc.begin, &line, &column);
  str_printf(s, "%s:%d", slash ? slash + 1 : name, line);
}

/* Call `level` of those on the trail, counted from the outermost. */
static const struct trail *call_at(const struct trail *t, int calls, int level) {
  for (int up = calls - 1 - level; up > 0; up--) t = t->outer;
  return t;
}

const char *node_origin(struct arena *a, const struct node *n) {
  if (n->origin) return *n->origin ? n->origin : NULL;
  if (!n->loc.source) return NULL;
  int calls = 0;
  for (const struct trail *t = n->trail; t; t = t->outer) calls++;
  struct str s = str_make(a);
  put_place(&s, calls ? call_at(n->trail, calls, 0)->call : n->loc);
  for (int i = 0; i < calls; i++) {
    str_put(&s, i ? "; " : " (");
    if (calls > 2 * SHOWN && i == SHOWN) {
      str_put(&s, "...");
      i = calls - SHOWN - 1;
      continue;
    }
    str_printf(&s, "%s, ", call_at(n->trail, calls, i)->callee);
    put_place(&s, i + 1 < calls ? call_at(n->trail, calls, i + 1)->call : n->loc);
  }
  if (calls) str_putc(&s, ')');
  return s.data;
}

static bool is_place(const char *text, size_t len) {
  size_t digits = 0;
  while (digits < len && text[len - 1 - digits] >= '0' && text[len - 1 - digits] <= '9') digits++;
  return digits && len > digits + 1 && text[len - 1 - digits] == ':' && !memchr(text, ' ', len);
}

static bool is_call(const char *text, size_t len) {
  if (len == 3 && memcmp(text, "...", 3) == 0) return true;
  const char *comma = memchr(text, ',', len);
  if (!comma || comma == text || comma + 2 >= text + len || comma[1] != ' ') return false;
  return !memchr(text, ' ', (size_t)(comma - text)) && is_place(comma + 2, len - (size_t)(comma + 2 - text));
}

/* The end of the text in front of the parenthesis with the calls; NULL if what is there are none. */
static const char *before_calls(const char *text, const char *end) {
  if (end == text || end[-1] != ')') return end;
  const char *open = end - 1;
  while (open > text && *open != '(') open--;
  if (open < text + 2 || open[-1] != ' ') return NULL;
  for (const char *p = open + 1; p < end; p++) {
    const char *stop = p;
    while (stop < end - 1 && *stop != ';') stop++;
    if (!is_call(p, (size_t)(stop - p))) return NULL;
    if (stop == end - 1) return open - 1;
    p = stop + 1;
    if (*p != ' ') return NULL;
  }
  return NULL;
}

const char *text_origin(const char *comment) {
  const char *end = before_calls(comment, comment + strlen(comment)), *begin = end;
  if (!end) return NULL;
  while (begin > comment && begin[-1] != ' ') begin--;
  if (!is_place(begin, (size_t)(end - begin))) return NULL;
  if (begin == comment) return begin;
  return begin - comment > 2 && begin[-2] == ',' ? begin : NULL;
}

bool origin_place(struct arena *a, const char *origin, const char **file, int *line) {
  const char *end = origin ? before_calls(origin, origin + strlen(origin)) : NULL, *digits = end;
  while (end && digits > origin && digits[-1] >= '0' && digits[-1] <= '9') digits--;
  if (!end || digits == end || digits - origin < 2 || digits[-1] != ':') return false;
  *file = arena_strndup(a, origin, (size_t)(digits - 1 - origin));
  *line = (int)strtol(digits, NULL, 10);
  return true;
}
