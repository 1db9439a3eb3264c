/* SPDX-License-Identifier: Apache-2.0 */
/* The directives of FileCheck. Those that must be found stand in order; each has before it those that may be found in
 * any order (DAG) and those that must not be found (NOT). LABELs are found first, and cut the text into blocks. */
#include "session/testing/check_lines.h"

#include "base/grow.h"
#include "base/str.h"
#include "session/testing/pattern.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum kind { CHECK, NEXT, SAME, EMPTY, NOT, DAG, LABEL, COUNT, END };
static const char *const kind_names[] = {"",     "-NEXT",  "-SAME",  "-EMPTY", "-NOT",
                                         "-DAG", "-LABEL", "-COUNT", ""};

struct directive {
  enum kind kind;
  const char *name; /* "CHECK-NEXT" */
  struct loc loc;   /* of the directive */
  struct pattern pattern;
  long count;
};

/* What must be found, and what stands before it. */
struct requirement {
  struct directive must;
  struct directive *before;
  int nbefore;
};

struct checker {
  struct arena *scratch; /* GROW's */
  const struct check_options *options;
  struct source *text; /* its blanks made one */
  struct map variables;
  struct diags *diags;
  struct directive *checks;
  int nchecks, cap;
  struct requirement *steps;
  int nsteps;
};

/* ---- reading the directives ---- */

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '-' || c == '_'; }

/* The kind that stands behind a prefix, "-NEXT:"; its length, 0: none. */
static size_t read_kind(const char *text, size_t left, struct directive *out) {
  for (int k = CHECK; k <= LABEL; k++) {
    size_t len = strlen(kind_names[k]);
    if (len >= left || strncmp(text, kind_names[k], len) != 0 || text[len] != ':') continue;
    out->kind = k;
    return len + 1;
  }
  char *end;
  if (left < 8 || strncmp(text, "-COUNT-", 7) != 0 || !isdigit((unsigned char)text[7])) return 0;
  out->kind = COUNT;
  out->count = strtol(text + 7, &end, 10);
  return (size_t)(end - text) < left && *end == ':' ? (size_t)(end - text) + 1 : 0;
}

/* "CHECK-NXT:" checks nothing, and nobody would see it. */
static bool is_misspelt(struct checker *c, struct loc loc, const char *prefix, const char *text,
                        size_t left) {
  size_t len = 1;
  while (len < left && in_word(text[len])) len++;
  if (!left || *text != '-' || len >= left || text[len] != ':') return false;
  const char *word = arena_strndup(c->scratch, text, len);
  const char *closest = str_closest(word, kind_names + NEXT, LABEL);
  if (!closest) return false;
  diag_error(c->diags, loc, "%s%s is no directive; did you mean %s%s?", prefix, word, prefix, closest);
  return true;
}

/* The directive of one of the prefixes that comes first in a line; 0: there is none, -1: an error. */
static int find_directive(struct checker *c, const struct source *file, size_t begin, size_t end,
                          struct directive *out) {
  const char *prefixes = c->options->prefixes ? c->options->prefixes : "CHECK";
  size_t best = end;
  for (const char *p = prefixes; *p; p += *p == ',') {
    size_t len = strcspn(p, ",");
    const char *prefix = arena_strndup(c->scratch, p, len);
    p += len;
    for (size_t at = begin; len && at + len < end; at++) {
      struct directive found = {0};
      const char *text = file->text + at;
      if (strncmp(text, prefix, len) != 0 || (at > begin && in_word(text[-1]))) continue;
      struct loc loc = {file, (uint32_t)at, (uint32_t)(at + len)};
      size_t more = read_kind(text + len, end - at - len, &found);
      if (!more && is_misspelt(c, loc, prefix, text + len, end - at - len)) return -1;
      if (!more || at >= best) continue;
      best = at;
      *out = found;
      out->name = arena_strndup(c->scratch, text, len + more - 1);
      out->loc = (struct loc){file, (uint32_t)at, (uint32_t)(at + len + more - 1)};
      out->pattern.loc = (struct loc){file, (uint32_t)(at + len + more), (uint32_t)end};
      break;
    }
  }
  return best < end;
}

static bool refuse(struct checker *c, struct loc loc, const char *what, const char *name) {
  diag_error(c->diags, loc, what, name);
  return false;
}

static bool has_variable(const struct pattern *p) {
  for (int i = 0; i < p->nparts; i++)
    if (p->parts[i].kind == PART_DEFINES || p->parts[i].kind == PART_USES) return true;
  return false;
}

static bool read_pattern(struct checker *c, struct directive *k, bool first) {
  struct loc *l = &k->pattern.loc;
  const char *text = l->source->text;
  while (l->begin < l->end && strchr(" \t", text[l->begin])) l->begin++;
  while (l->begin < l->end && strchr(" \t\r", text[l->end - 1])) l->end--;
  bool empty = l->begin == l->end;
  if (k->kind == EMPTY && !empty)
    return refuse(c, k->loc, "%s stands alone: it says that a line is empty", k->name);
  if (k->kind != EMPTY && empty) return refuse(c, k->loc, "there is nothing behind %s:", k->name);
  if (first && (k->kind == NEXT || k->kind == SAME || k->kind == EMPTY))
    return refuse(c, k->loc, "%s has nothing before it that is found", k->name);
  if (k->kind == COUNT && k->count < 1) return refuse(c, k->loc, "%s: at least one", k->name);
  if (k->kind == EMPTY) return true;
  if (!pattern_parse(c->scratch, *l, &k->pattern, c->diags)) return false;
  if (k->kind == LABEL && has_variable(&k->pattern))
    return refuse(c, k->loc, "%s has no variables: labels are found before all else", k->name);
  return true;
}

/* What comments of the runner say is no directive, be it in their words. */
static bool is_comment(const char *line, size_t len) {
  static const char *const words[] = {"RUN:", "COM:"};
  for (int i = 0; i < 2; i++) {
    const char *at = memmem(line, len, words[i], 4);
    if (at && (at == line || !in_word(at[-1]))) return true;
  }
  return false;
}

static bool read_checks(struct checker *c, const struct source *file) {
  bool first = true;
  for (size_t begin = 0, end; begin < file->len; begin = end + 1) {
    const char *newline = memchr(file->text + begin, '\n', file->len - begin);
    end = newline ? (size_t)(newline - file->text) : file->len;
    if (is_comment(file->text + begin, end - begin)) continue;
    struct directive found = {0};
    int there = find_directive(c, file, begin, end, &found);
    if (there < 0 || (there && !read_pattern(c, &found, first))) return false;
    if (!there) continue;
    first &= found.kind == NOT || found.kind == DAG;
    GROW(c, c->checks, c->nchecks, c->cap);
    c->checks[c->nchecks++] = found;
  }
  if (c->nchecks) return true;
  diag_error(c->diags, (struct loc){file, 0, 0},
             "no line has %s:", c->options->prefixes ? c->options->prefixes : "CHECK");
  return false;
}

static bool make_steps(struct checker *c) {
  const struct check_options *o = c->options;
  struct directive *absent = arena_new_array(c->scratch, (size_t)o->nabsent + 1, struct directive);
  for (int i = 0; i < o->nabsent; i++) {
    struct source *s = source_make(c->scratch, "--implicit-check-not", o->absent[i], strlen(o->absent[i]));
    struct loc loc = {s, 0, (uint32_t)s->len};
    absent[i] = (struct directive){.kind = NOT, .name = "--implicit-check-not", .loc = loc};
    if (!pattern_parse(c->scratch, loc, &absent[i].pattern, c->diags)) return false;
  }
  c->steps = arena_new_array(c->scratch, (size_t)c->nchecks + 1, struct requirement);
  int from = 0;
  for (int i = 0; i <= c->nchecks; i++) {
    struct directive *k = i < c->nchecks ? &c->checks[i] : NULL;
    if (k && (k->kind == NOT || k->kind == DAG)) continue;
    struct requirement *s = &c->steps[c->nsteps++];
    s->must = k ? *k : (struct directive){.kind = END, .name = "the end", .loc = LOC_NONE};
    s->before = arena_new_array(c->scratch, (size_t)(o->nabsent + i - from) + 1, struct directive);
    memcpy(s->before, absent, (size_t)o->nabsent * sizeof *absent);
    memcpy(s->before + o->nabsent, c->checks + from, (size_t)(i - from) * sizeof *absent);
    s->nbefore = o->nabsent + i - from;
    from = i + 1;
  }
  return true;
}

/* ---- checking ---- */

/* The part of the text that a step may look at. */
struct text_range {
  size_t begin, end;
};

static struct loc in_text(const struct checker *c, size_t at, size_t end) {
  if (at < c->text->len && c->text->text[at] == '\n' && at + 1 < c->text->len) at++;
  return (struct loc){c->text, (uint32_t)at, (uint32_t)(end > at ? end : at + 1)};
}

static int find(struct checker *c, const struct directive *k, struct text_range r, struct match *out) {
  const char *text = c->text->text;
  if (k->kind == END) {
    *out = (struct match){r.end, 0};
    return 1;
  }
  if (k->kind != EMPTY)
    return pattern_find(c->scratch, &k->pattern, text, r.begin, r.end, &c->variables, out, c->diags);
  for (size_t i = r.begin; i < r.end; i++) {
    if (text[i] != '\n' || (i + 1 < r.end && text[i + 1] != '\n')) continue;
    *out = (struct match){i + 1, 0};
    return 1;
  }
  return 0;
}

/* The line of `r` that has most of what is looked for, where it is no other text: false, there is none. */
static bool nearest(const struct checker *c, const struct directive *k, struct text_range r,
                    struct text_range *out) {
  enum { MOST = 64, LEAST = 4, TRIES = 20000 };
  char want[MOST + 1] = "", have[MOST + 1];
  size_t len = 0;
  for (int i = 0; k->kind != EMPTY && k->kind != END && i < k->pattern.nparts; i++) {
    const struct pattern_part *part = &k->pattern.parts[i];
    const char *text = part->kind == PART_USES ? map_get(&c->variables, part->text) : part->text;
    if (part->kind != PART_TEXT && part->kind != PART_USES) continue;
    for (; text && *text && len < MOST; text++) want[len++] = *text;
  }
  want[len] = '\0';
  int best = (int)len / 2 + 1, tries = 0;
  const char *text = c->text->text;
  for (size_t at = r.begin, end; len >= LEAST && at < r.end && tries < TRIES; at = end + 1) {
    for (end = at; end < r.end && text[end] != '\n';) end++;
    for (size_t from = at; from < end && tries < TRIES; from++) {
      if (from > at && text[from] != *want) continue;
      tries++;
      size_t n = end - from < len ? end - from : len;
      memcpy(have, text + from, n), have[n] = '\0';
      int distance = str_distance(want, have);
      if (distance >= best) continue;
      best = distance;
      *out = (struct text_range){at, end};
    }
  }
  return best <= (int)len / 2;
}

static bool not_found(struct checker *c, const struct directive *k, struct text_range r) {
  struct text_range near = r;
  size_t from = r.begin;

  diag_error(c->diags, k->kind == EMPTY ? k->loc : k->pattern.loc, "%s is not found", k->name);
  bool found = nearest(c, k, r, &near);
  if (!found || near.begin > from) diag_note(c->diags, in_text(c, from, from), "looked for from here on");
  if (found)
    diag_note(c->diags, in_text(c, near.begin, near.end),
              near.begin > from ? "this line is nearest" : "looked for from here on; this line is nearest");
  const char *values = pattern_shown(c->scratch, &k->pattern, &c->variables);
  if (*values) diag_note(c->diags, LOC_NONE, "where %s", values);
  return false;
}

static bool check_absent(struct checker *c, struct directive *const *nots, int n, struct text_range r) {
  for (int i = 0; i < n; i++) {
    struct match m;
    int found = find(c, nots[i], r, &m);
    if (found < 0) return false;
    if (!found) continue;
    diag_error(c->diags, nots[i]->pattern.loc, "%s is found", nots[i]->name);
    diag_note(c->diags, in_text(c, m.at, m.at + m.len), "here");
    return false;
  }
  return true;
}

/* A place for a DAG that overlaps none of `taken`, which are in order; keeps them so. */
static bool find_dag(struct checker *c, const struct directive *k, struct text_range r, struct match *taken,
                     int *n) {
  struct text_range left = r;
  for (int i = 0;;) {
    struct match m;
    int found = find(c, k, left, &m);
    if (found < 0) return false;
    if (!found) return not_found(c, k, left);
    while (i < *n && m.at >= taken[i].at + taken[i].len) i++;
    if (i == *n || taken[i].at >= m.at + m.len) {
      memmove(&taken[i + 1], &taken[i], (size_t)(*n - i) * sizeof *taken);
      taken[i] = m;
      ++*n;
      return true;
    }
    left.begin = taken[i].at + taken[i].len;
  }
}

/* What stands before a step: the DAGs are found, the NOTs between them are not. Gives where the last one ends, and
 * leaves in `nots` those behind it. */
static bool check_before(struct checker *c, const struct requirement *s, struct text_range r, size_t *end,
                         struct directive **nots, int *nnots) {
  struct match *taken = arena_new_array(c->scratch, (size_t)s->nbefore + 1, struct match);
  int n = 0;
  *nnots = 0;
  for (int i = 0; i < s->nbefore; i++) {
    if (s->before[i].kind == NOT) {
      nots[(*nnots)++] = &s->before[i];
      continue;
    }
    if (!find_dag(c, &s->before[i], r, taken, &n)) return false;
    if (i + 1 < s->nbefore && s->before[i + 1].kind == DAG) continue;
    if (!check_absent(c, nots, *nnots, (struct text_range){r.begin, taken[0].at})) return false;
    *nnots = 0;
    r.begin = taken[n - 1].at + taken[n - 1].len;
    n = 0;
  }
  *end = r.begin;
  return true;
}

/* How many lines further NEXT, EMPTY and SAME are, and how many they should be. */
static bool check_line(struct checker *c, const struct directive *k, size_t from, size_t at) {
  long lines = 0, wanted = k->kind == SAME ? 0 : 1;
  if (k->kind != NEXT && k->kind != EMPTY && k->kind != SAME) return true;
  for (size_t i = from; i < at; i++) lines += c->text->text[i] == '\n';
  if (lines == wanted) return true;
  struct loc loc = k->kind == EMPTY ? k->loc : k->pattern.loc;
  if (k->kind == SAME)
    diag_error(c->diags, loc, "%s is found, but not on the same line as what is found before", k->name);
  else if (!lines)
    diag_error(c->diags, loc, "%s is found on the same line as what is found before", k->name);
  else
    diag_error(c->diags, loc, "%s is found, but not on the line behind what is found before", k->name);
  diag_note(c->diags, in_text(c, at, at), "here");
  diag_note(c->diags, in_text(c, from, from), "what is found before ends here");
  return false;
}

/* Finds a step as often as it says: from the first place to the end of the last. */
static bool find_all(struct checker *c, const struct directive *k, struct text_range r, struct match *out) {
  size_t first = 0, end = r.begin;
  for (long i = 0, n = k->kind == COUNT ? k->count : 1; i < n; i++) {
    struct match m;
    int found = find(c, k, (struct text_range){end, r.end}, &m);
    if (found < 0) return false;
    if (!found) return not_found(c, k, (struct text_range){end, r.end});
    if (!i) first = m.at;
    end = m.at + m.len;
  }
  *out = (struct match){first, end - first};
  return true;
}

static bool check_step(struct checker *c, const struct requirement *s, struct text_range *r) {
  struct directive **nots = arena_new_array(c->scratch, (size_t)s->nbefore + 1, struct directive *);
  int nnots;
  size_t from;
  struct match m;
  if (!check_before(c, s, *r, &from, nots, &nnots)) return false;
  if (!find_all(c, &s->must, (struct text_range){from, r->end}, &m)) return false;
  if (!check_line(c, &s->must, from, m.at)) return false;
  if (!check_absent(c, nots, nnots, (struct text_range){from, m.at})) return false;
  r->begin = m.at + m.len;
  return true;
}

/* Blocks that end with their label, and the last one, which ends with the text. */
static bool check_all(struct checker *c) {
  struct text_range rest = {0, c->text->len};
  bool right = true;
  for (int from = 0, to = 0; from < c->nsteps;) {
    while (to < c->nsteps && c->steps[to].must.kind != LABEL) to++;
    struct text_range block = rest;
    if (to < c->nsteps) {
      struct match m;
      if (!find_all(c, &c->steps[to++].must, rest, &m)) return false;
      block.end = rest.begin = m.at + m.len;
    }
    for (bool good = true; from < to; from++)
      if (good) right &= good = check_step(c, &c->steps[from], &block);
  }
  return right;
}

static struct source *canonical(struct arena *a, const char *name, const char *text, size_t len) {
  char *out = arena_alloc(a, len + 1), *p = out;
  for (size_t i = 0; i < len; i++) {
    bool blank = text[i] == ' ' || text[i] == '\t';
    if (text[i] == '\r' && i + 1 < len && text[i + 1] == '\n') continue;
    if (!blank || p == out || p[-1] != ' ') *p++ = blank ? ' ' : text[i];
  }
  return source_make(a, name, out, (size_t)(p - out));
}

bool check_lines(struct arena *a, const struct source *file, const struct check_options *o, const char *name,
                 const char *text, size_t len, struct diags *d) {
  struct checker c = {.scratch = a, .options = o, .variables = map_make(a), .diags = d};
  if (!read_checks(&c, file) || !make_steps(&c)) return false;
  if (!len && !o->allow_empty) {
    diag_error(d, c.checks[0].loc, "there is nothing to look at: %s is empty", name);
    return false;
  }
  c.text = canonical(a, name, text, len);
  return check_all(&c);
}
