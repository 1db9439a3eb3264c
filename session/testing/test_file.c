/* SPDX-License-Identifier: Apache-2.0 */
/* The comments of a file that are meant for dgc test: RUN:, EXPECT, XFAIL, REQUIRES:, and messages in place. */
#include "session/testing/test_file.h"

#include "base/grow.h"
#include "base/str.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct test_reader {
  struct arena *scratch; /* GROW's */
  struct test_file *file;
  struct diags *diags;
  int caps[3];
};

struct test_line {
  const char *text; /* with a NUL behind it */
  size_t len;
  uint32_t begin; /* in the source */
  int number;
};

static struct loc loc_of(const struct test_reader *r, const struct test_line *l, const char *at) {
  return (struct loc){r->file->source, l->begin + (uint32_t)(at - l->text), l->begin + (uint32_t)l->len};
}

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '%'; }

/* Behind `word`, where it stands as a word of its own; `comment`: behind the mark of one. NULL: nowhere. */
static const char *behind(const struct test_line *l, const char *word, bool comment) {
  size_t len = strlen(word);
  for (const char *at = l->text; (at = strstr(at, word)); at += len) {
    if (at > l->text && in_word(at[-1])) continue;
    if (word[len - 1] != ':' && in_word(at[len])) continue;
    const char *p = at;
    while (p > l->text && strchr(" \t", p[-1])) p--;
    if (!comment || (p > l->text && (p[-1] == '#' || p[-1] == '/'))) return at + len;
  }
  return NULL;
}

static const char *trimmed(struct arena *a, const char *text) {
  text += strspn(text, " \t");
  size_t len = strlen(text);
  while (len && strchr(" \t\r", text[len - 1])) len--;
  return arena_strndup(a, text, len);
}

static bool refuse(struct test_reader *r, struct loc loc, const char *what) {
  diag_error(r->diags, loc, "%s", what);
  return false;
}

/* RUN: lines that end with \ go on with the next one. */
static void add_run(struct test_reader *r, const struct test_line *l, const char *text) {
  struct test_file *t = r->file;
  struct run_text *last = t->nruns ? &t->runs[t->nruns - 1] : NULL;
  size_t len = last ? strlen(last->text) : 0;
  if (len && last->text[len - 1] == '\\') {
    last->text = arena_printf(r->scratch, "%.*s%s", (int)len - 1, last->text, trimmed(r->scratch, text));
    return;
  }
  GROW(r, t->runs, t->nruns, r->caps[0]);
  t->runs[t->nruns++] =
      (struct run_text){loc_of(r, l, text + strspn(text, " \t")), trimmed(r->scratch, text)};
}

/* ---- numbers ---- */

static const char *next_word(struct test_reader *r, const char **p) {
  *p += strspn(*p, " \t\r");
  size_t len = strcspn(*p, " \t\r");
  const char *word = arena_strndup(r->scratch, *p, len);
  *p += len;
  return word;
}

static bool read_number(const char *word, double *out) {
  const char *end;
  *out = str_to_double(word, &end);
  return *word && !*end;
}

static bool read_count(struct test_reader *r, const char **p, struct expected_number *n) {
  const char *after = next_word(r, p);
  n->count = next_word(r, p);
  n->unit = next_word(r, p);
  bool steps = strcmp(n->unit, "steps") == 0 || strcmp(n->unit, "step") == 0;
  bool epochs = strcmp(n->unit, "epochs") == 0 || strcmp(n->unit, "epoch") == 0;
  n->unit = steps ? "steps" : "epochs";
  return strcmp(after, "after") == 0 && *n->count && !n->count[strspn(n->count, "0123456789")] &&
         (steps || epochs);
}

static bool read_expected(struct test_reader *r, const char **p, struct expected_number *n) {
  n->name = next_word(r, p);
  const char *word = next_word(r, p);
  if (strcmp(word, "at") == 0) {
    word = next_word(r, p);
    n->how = strcmp(word, "least") == 0 ? NUMBER_AT_LEAST : NUMBER_AT_MOST;
    return (n->how == NUMBER_AT_LEAST || strcmp(word, "most") == 0) &&
           read_number(next_word(r, p), &n->value);
  }
  n->how = NUMBER_WITHIN;
  return read_number(word, &n->value) && strcmp(next_word(r, p), "within") == 0 &&
         read_number(next_word(r, p), &n->tolerance) && n->tolerance >= 0;
}

static bool add_number(struct test_reader *r, const struct test_line *l, const char *text) {
  struct test_file *t = r->file;
  struct expected_number n = {.loc = loc_of(r, l, text + strspn(text, " "))};
  const char *p = text;
  bool read = read_expected(r, &p, &n) && read_count(r, &p, &n);
  const char *with = next_word(r, &p);
  if (!read || (*with && strcmp(with, "with") != 0)) {
    diag_error(r->diags, n.loc, "this is no expected number");
    diag_help(r->diags, LOC_NONE,
              "EXPECT NAME VALUE within TOLERANCE after N steps|epochs [with OPTIONS]; or NAME at "
              "least VALUE, or at most VALUE");
    return false;
  }
  n.options = trimmed(r->scratch, p);
  GROW(r, t->numbers, t->nnumbers, r->caps[1]);
  t->numbers[t->nnumbers++] = n;
  return true;
}

/* ---- messages ---- */

/* `error@-1:` at `p`; where the text begins, or NULL. */
static const char *read_head(const struct test_line *l, const char *p, struct expected_message *out) {
  static const char *const severities[] = {"error", "warning", "note", "help"};
  for (int i = 0; i < 4; i++) {
    size_t len = strlen(severities[i]);
    if (strncmp(p, severities[i], len) != 0) continue;
    out->severity = severities[i];
    out->line = l->number;
    p += len;
    if (*p == '@' && p[1] == '*') {
      out->line = 0;
      p += 2;
    } else if (*p == '@') {
      char *end;
      if (p[1] != '+' && p[1] != '-') return NULL;
      out->line += (int)strtol(p + 1, &end, 10);
      p = end;
    }
    return *p == ':' ? p + 1 : NULL;
  }
  return NULL;
}

/* The next of a line, and where its text begins; NULL: there is none. */
static const char *next_message(const struct test_line *l, const char *p, const char **mark,
                                struct expected_message *out) {
  while ((p = strchr(p, '#'))) {
    *mark = p++;
    const char *text = read_head(l, p + strspn(p, " \t"), out);
    if (text) return text;
  }
  return NULL;
}

static bool add_messages(struct test_reader *r, const struct test_line *l) {
  struct test_file *t = r->file;
  struct expected_message m, next;
  const char *mark, *text = next_message(l, l->text, &mark, &m);
  while (text) {
    const char *behind_it = next_message(l, text, &mark, &next);
    const char *end = behind_it ? mark : l->text + l->len;
    while (text < end && strchr(" \t", *text)) text++;
    while (end > text && strchr(" \t\r", end[-1])) end--;
    struct loc loc = loc_of(r, l, text);
    loc.end = l->begin + (uint32_t)(end - l->text);
    if (text == end) return refuse(r, loc_of(r, l, l->text), "the text of an expected message is missing");
    if (!pattern_parse(r->scratch, loc, &m.pattern, r->diags)) return false;
    GROW(r, t->messages, t->nmessages, r->caps[2]);
    t->messages[t->nmessages++] = m;
    text = behind_it;
    m = next;
  }
  return true;
}

/* ---- the file ---- */

static bool read_line(struct test_reader *r, const struct test_line *l, bool messages) {
  struct test_file *t = r->file;
  const char *text = behind(l, "RUN:", false);
  if (text) {
    add_run(r, l, text);
    return true;
  }
  if ((text = behind(l, "REQUIRES:", true)))
  t->requires = arena_printf(r->scratch, "%s%s%s", t->requires ? t->requires : "", t->requires ? "," : "",
                             trimmed(r->scratch, text));
  if ((text = behind(l, "XFAIL", true))) t->fails = trimmed(r->scratch, *text == ':' ? text + 1 : text);
  if ((text = behind(l, "EXPECT", true))) return add_number(r, l, text);
  return !messages || add_messages(r, l);
}

bool test_file_read(struct arena *a, const struct source *source, struct test_file *out, struct diags *d) {
  struct test_reader r = {.scratch = a, .file = out, .diags = d};
  *out = (struct test_file){.source = source};
  size_t len = strlen(source->name);
  out->graph = len > 3 && strcmp(source->name + len - 3, ".dg") == 0;
  bool messages = out->graph || (len > 4 && strcmp(source->name + len - 4, ".dsl") == 0);
  int number = 0;
  for (size_t begin = 0, end; begin < source->len; begin = end + 1) {
    const char *newline = memchr(source->text + begin, '\n', source->len - begin);
    end = newline ? (size_t)(newline - source->text) : source->len;
    struct test_line l = {arena_strndup(a, source->text + begin, end - begin), end - begin, (uint32_t)begin,
                          ++number};
    if (!read_line(&r, &l, messages)) return false;
  }
  return true;
}

bool test_file_tests(const struct test_file *t) { return t->nruns || t->nnumbers || t->nmessages; }
