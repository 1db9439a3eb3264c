/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of CHECK lines. A pattern without regular expressions is looked for as it is; else it becomes one extended
 * regular expression of POSIX, in which `.` is no line's end: what LLVM's FileCheck does, so that both find the same.
 * Expressions are limited, as libc's compiler of them copies what is repeated. */
#include "session/testing/pattern.h"

#include "base/str.h"

#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

enum {
  MAX_PATTERN = 4000,   /* bytes */
  MAX_REPEATED = 10000, /* the product of all bounds {m,n} */
  MAX_NESTED = 50,      /* parentheses */
  MAX_GROUPS = 99
};

/* ---- reading ---- */

static bool is_name(const char *text, size_t len) {
  if (!len || isdigit((unsigned char)*text)) return false;
  for (size_t i = 0; i < len; i++)
    if (!isalnum((unsigned char)text[i]) && text[i] != '_') return false;
  return true;
}

static bool refuse(struct diags *d, struct loc loc, const char *what) {
  diag_error(d, loc, "%s", what);
  return false;
}

/* Whether libc may be asked to compile it, which says whether it is an expression at all. */
static bool check_regex(struct diags *d, struct loc loc, const char *regex) {
  long repeated = 1;
  int depth = 0;
  for (const char *p = regex; *p; p++) {
    if (*p == '\\' && p[1]) {
      p++;
      continue;
    }
    depth += *p == '(';
    depth -= *p == ')';
    if (depth > MAX_NESTED) return refuse(d, loc, "this regular expression is nested too deep");
    if (*p != '{') continue;
    for (const char *q = p + 1; isdigit((unsigned char)*q) || *q == ','; q++) {
      if (!isdigit((unsigned char)*q)) continue;
      char *end;
      long bound = strtol(q, &end, 10);
      if (bound > MAX_REPEATED) bound = MAX_REPEATED;
      if (bound > 1) repeated *= bound;
      if (repeated > MAX_REPEATED) return refuse(d, loc, "this regular expression repeats too often");
      q = end - 1;
    }
  }
  regex_t compiled;
  char why[160];
  int code = regcomp(&compiled, regex, REG_EXTENDED | REG_NEWLINE);
  if (!code) {
    regfree(&compiled);
    return true;
  }
  regerror(code, NULL, why, sizeof why);
  diag_error(d, loc, "'%s' is no regular expression: %s", regex, why);
  return false;
}

/* The length up to the `]]` that ends a variable's expression, over its own brackets; SIZE_MAX: there is none. */
static size_t length_of_definition(const char *text, size_t len) {
  int depth = 0;
  for (size_t i = 0; i + 1 < len; i++) {
    if (text[i] == '\\')
      i++;
    else if (!depth && text[i] == ']' && text[i + 1] == ']')
      return i;
    else if (text[i] == '[')
      depth++;
    else if (text[i] == ']' && depth)
      depth--;
  }
  return SIZE_MAX;
}

static void add(struct arena *a, struct pattern *p, struct pattern_part part) {
  struct pattern_part *more = arena_new_array(a, (size_t)p->nparts + 1, struct pattern_part);
  if (p->nparts) memcpy(more, p->parts, (size_t)p->nparts * sizeof *more);
  more[p->nparts++] = part;
  p->parts = more;
}

/* @LINE, @LINE+2, @LINE-1 */
static bool add_line(struct arena *a, struct pattern *p, const char *text, size_t len) {
  static const char word[] = "@LINE";
  size_t n = sizeof word - 1;
  char *end;
  int line, column;
  if (len < n || strncmp(text, word, n) != 0) return false;
  source_position(p->loc.source, p->loc.begin, &line, &column);
  long more = len > n && (text[n] == '+' || text[n] == '-') ? strtol(text + n, &end, 10) : 0;
  if (len > n && (!(text[n] == '+' || text[n] == '-') || end != text + len)) return false;
  add(a, p, (struct pattern_part){PART_TEXT, arena_printf(a, "%ld", line + more), NULL});
  return true;
}

/* What stands in [[...]]. */
static bool add_variable(struct arena *a, struct pattern *p, const char *text, size_t len, struct diags *d) {
  const char *colon = memchr(text, ':', len);
  size_t name_len = colon ? (size_t)(colon - text) : len;
  if (len && *text == '#' && len == 1) {
    add(a, p, (struct pattern_part){PART_REGEX, "[0-9]+", NULL});
    return true;
  }
  if (add_line(a, p, *text == '#' ? text + 1 : text, *text == '#' ? len - 1 : len)) return true;
  if (len && *text == '#')
    return refuse(d, p->loc, "of FileCheck's numeric expressions there are [[#]] and [[@LINE+1]] only");
  if (!is_name(text, name_len)) return refuse(d, p->loc, "[[...]] begins with the name of a variable");
  const char *name = arena_strndup(a, text, name_len);
  if (!colon) {
    add(a, p, (struct pattern_part){PART_USES, name, NULL});
    return true;
  }
  const char *regex = arena_strndup(a, colon + 1, len - name_len - 1);
  add(a, p, (struct pattern_part){PART_DEFINES, regex, name});
  return check_regex(d, p->loc, regex);
}

static bool add_part(struct arena *a, struct pattern *p, const char **text, const char *end,
                     struct diags *d) {
  const char *at = *text;
  size_t left = (size_t)(end - at);
  if (left >= 2 && strncmp(at, "{{", 2) == 0) {
    const char *close = memmem(at + 2, left - 2, "}}", 2);
    if (!close) return refuse(d, p->loc, "{{ has no }} behind it");
    const char *regex = arena_strndup(a, at + 2, (size_t)(close - at) - 2);
    *text = close + 2;
    add(a, p, (struct pattern_part){PART_REGEX, regex, NULL});
    return check_regex(d, p->loc, regex);
  }
  if (left >= 2 && strncmp(at, "[[", 2) == 0 && (left == 2 || at[2] != '[')) { /* [[[V]] is [ and then V */
    size_t len = length_of_definition(at + 2, left - 2);
    if (len == SIZE_MAX) return refuse(d, p->loc, "[[ has no ]] behind it");
    *text = at + 4 + len;
    return add_variable(a, p, at + 2, len, d);
  }
  const char *next = at + 1;
  while (next < end && strncmp(next, "{{", 2) != 0 && strncmp(next, "[[", 2) != 0) next++;
  add(a, p, (struct pattern_part){PART_TEXT, arena_strndup(a, at, (size_t)(next - at)), NULL});
  *text = next;
  return true;
}

/* Blanks and tabs in a row are one blank, as they are in the text that is looked at. */
static char *canonical(struct arena *a, const char *text, size_t len) {
  char *out = arena_alloc(a, len + 1), *p = out;
  for (size_t i = 0; i < len; i++) {
    bool blank = text[i] == ' ' || text[i] == '\t';
    if (!blank || p == out || p[-1] != ' ') *p++ = blank ? ' ' : text[i];
  }
  *p = 0;
  return out;
}

bool pattern_parse(struct arena *a, struct loc loc, struct pattern *out, struct diags *d) {
  *out = (struct pattern){.loc = loc};
  if (loc.end - loc.begin > MAX_PATTERN) return refuse(d, loc, "this pattern is too long");
  const char *text = canonical(a, loc.source->text + loc.begin, loc.end - loc.begin);
  for (const char *end = text + strlen(text); text < end;)
    if (!add_part(a, out, &text, end, d)) return false;
  return true;
}

/* ---- finding ---- */

static void put_literal(struct str *s, const char *text) {
  for (; *text; text++) {
    if (strchr("()^$|*+?.[\\{", *text)) str_putc(s, '\\');
    str_putc(s, *text);
  }
}

/* Parentheses that open a group. */
static int groups_in(const char *regex) {
  int n = 0;
  bool inside = false;
  for (const char *p = regex; *p; p++) {
    if (*p == '\\' && p[1] && !inside)
      p++;
    else if (inside)
      inside = *p != ']';
    else if (*p == '[') {
      inside = true;
      if (p[1] == '^') p++;
      if (p[1] == ']') p++;
    } else
      n += *p == '(';
  }
  return n;
}

/* A pattern as one regular expression, and which of its groups are variables. */
struct expression {
  struct str regex;
  int group_of[MAX_GROUPS + 1]; /* of the parts of the pattern; 0: none */
  int groups;
};

/* A variable of this very pattern, in front of part `before`: its group; 0: there is none. */
static int group_named(const struct pattern *p, const struct expression *e, int before, const char *name) {
  for (int i = before - 1; i >= 0 && i <= MAX_GROUPS; i--)
    if (p->parts[i].kind == PART_DEFINES && strcmp(p->parts[i].name, name) == 0) return e->group_of[i];
  return 0;
}

static bool put_use(struct expression *e, const struct pattern *p, int part, const struct map *variables,
                    struct diags *d) {
  const char *name = p->parts[part].text;
  int group = group_named(p, e, part, name);
  const char *value = group ? NULL : map_get(variables, name);
  if (group > 9) return refuse(d, p->loc, "too many groups in one line");
  if (group)
    str_printf(&e->regex, "\\%d", group);
  else if (value)
    put_literal(&e->regex, value);
  else {
    diag_error(d, p->loc, "the variable %s has no value here", name);
    return false;
  }
  return true;
}

static bool make_expression(struct expression *e, const struct pattern *p, const struct map *variables,
                            struct diags *d) {
  for (int i = 0; i < p->nparts; i++) {
    const struct pattern_part *part = &p->parts[i];
    bool grouped = part->kind == PART_DEFINES || (part->kind == PART_REGEX && strchr(part->text, '|'));
    if (i > MAX_GROUPS || e->groups > MAX_GROUPS) return refuse(d, p->loc, "too many groups in one line");
    if (grouped) {
      e->groups++;
      str_putc(&e->regex, '(');
    }
    switch (part->kind) {
    case PART_TEXT: put_literal(&e->regex, part->text); break;
    case PART_DEFINES: e->group_of[i] = e->groups; /* fall through */
    case PART_REGEX:
      str_put(&e->regex, part->text);
      e->groups += groups_in(part->text);
      break;
    case PART_USES:
      if (!put_use(e, p, i, variables, d)) return false;
      break;
    }
    if (grouped) str_putc(&e->regex, ')');
  }
  return true;
}

static int find_text(const char *needle, const char *text, size_t from, size_t end, struct match *out) {
  size_t len = strlen(needle);
  const char *at = memmem(text + from, end - from, needle, len);
  if (at) *out = (struct match){(size_t)(at - text), len};
  return at != NULL;
}

static void undo_compile(void *compiled) { regfree(compiled); }

int pattern_find(struct arena *a, const struct pattern *p, const char *text, size_t from, size_t end,
                 struct map *variables, struct match *out, struct diags *d) {
  if (p->nparts == 1 && p->parts->kind == PART_TEXT) return find_text(p->parts->text, text, from, end, out);
  struct expression e = {.regex = str_make(a)};
  if (!make_expression(&e, p, variables, d)) return -1;
  regmatch_t groups[MAX_GROUPS + 1] = {{.rm_so = 0, .rm_eo = (regoff_t)(end - from)}};
  regex_t compiled;
  int code = regcomp(&compiled, e.regex.data, REG_EXTENDED | REG_NEWLINE);
  if (code) {
    diag_error(d, p->loc, "'%s' is no regular expression", e.regex.data);
    return -1;
  }
  struct arena_guard guard;
  arena_guard(&guard, undo_compile, &compiled);
  /* What was looked at before is no part of it, so that ^ holds at its begin. */
  bool found = regexec(&compiled, text + from, MAX_GROUPS + 1, groups, REG_STARTEND) == 0;
  for (int i = 0; found && i < p->nparts && i <= MAX_GROUPS; i++) {
    if (p->parts[i].kind != PART_DEFINES) continue;
    const regmatch_t *g = &groups[e.group_of[i]];
    map_put(variables, p->parts[i].name,
            arena_strndup(a, text + from + g->rm_so, (size_t)(g->rm_eo - g->rm_so)));
  }
  arena_unguard(&guard);
  regfree(&compiled);
  if (found)
    *out = (struct match){from + (size_t)groups[0].rm_so, (size_t)(groups[0].rm_eo - groups[0].rm_so)};
  return found;
}

const char *pattern_shown(struct arena *a, const struct pattern *p, const struct map *variables) {
  struct str s = str_make(a);
  for (int i = 0; i < p->nparts; i++) {
    const struct pattern_part *part = &p->parts[i];
    const char *value = part->kind == PART_USES ? map_get(variables, part->text) : NULL;
    if (part->kind == PART_USES && value) str_printf(&s, "%s%s = '%s'", s.len ? ", " : "", part->text, value);
  }
  return s.data;
}
