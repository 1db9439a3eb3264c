/* SPDX-License-Identifier: Apache-2.0 */
/* What the library says of itself: the comments above its definitions, for the terminal and as a page.
 *
 * A comment that stands directly above a definition describes it. Its lines that are indented by three blanks or
 * more are an example, the body of a model; the others are text. "# ---- words ----" begins a section, and the first
 * comment of a file its chapter. A comment that begins with "For NAME:" is that of a helper: it is left out. */
#include "frontend/elsewhere.h"
#include "frontend/resolve.h"

#include "frontend/library.h"

#include <string.h>

struct span {
  const char *at;
  size_t len;
};

struct doc_entry {
  const char *kind, *module, *name; /* "layer", "nn." or "", "lstm" */
  const char *head;                 /* "lstm(x : T[N, L, K], units : int)" */
  struct span text, example;        /* lines with their "# " */
  struct doc_entry *next;
};

struct section {
  const char *title; /* NULL: behind the part's head */
  struct doc_entry *first, **tail;
  struct section *next;
};

struct chapter {
  const char *file, *module;
  struct span head;
  struct section *first, *last;
  size_t count; /* of entries */
  struct chapter *next;
};

/* The line at *at, without its end; *at moves behind it. */
static struct span next_line(const char **at) {
  struct span line = {*at, strcspn(*at, "\n")};
  *at += line.len + ((*at)[line.len] == '\n');
  return line;
}

static bool begins(struct span line, const char *with) {
  size_t n = strlen(with);
  return line.len >= n && memcmp(line.at, with, n) == 0;
}

/* From the name to the brace, without `with ...`, on one line. */
static const char *head_of(struct arena *a, const char *text) {
  struct str s = str_make(a);
  int depth = 0;
  for (text += strspn(text, " "); *text && *text != '{'; text++) {
    depth += (*text == '(') - (*text == ')');
    bool blank = *text == '\n' || *text == ' ';
    if (!blank || (s.len && s.data[s.len - 1] != ' ')) str_putc(&s, blank ? ' ' : *text);
    if (*text == ')' && !depth) break;
  }
  return s.data;
}

static void new_group(struct arena *a, struct chapter *p, const char *title) {
  struct section *g = arena_new(a, struct section);
  *g = (struct section){.title = title};
  g->tail = &g->first;
  *(p->last ? &p->last->next : &p->first) = g;
  p->last = g;
}

/* What stands between two lines, both of which are the comment's. */
static struct span lines(const char *from, const char *to) {
  return (struct span){from, (size_t)(to - from)};
}

static void add_entry(struct arena *a, struct chapter *p, struct span comment, struct span definition) {
  if (begins(comment, "# For ")) return;
  struct doc_entry *e = arena_new(a, struct doc_entry);
  *e = (struct doc_entry){.kind = library_word(definition.at), .module = p->module};
  e->head = head_of(a, definition.at + strlen(e->kind));
  e->name = arena_strndup(a, e->head, strcspn(e->head, "( "));
  const char *at = comment.at, *end = comment.at + comment.len;
  while (at < end && strncmp(at, "#   ", 4) != 0) next_line(&at);
  e->text = lines(comment.at, at);
  e->example = lines(at, end);
  struct section *g = p->last;
  *g->tail = e;
  g->tail = &e->next;
  p->count++;
}

static struct chapter *read_part(struct arena *a, const struct embedded *file) {
  struct chapter *p = arena_new(a, struct chapter);
  *p = (struct chapter){.file = file->name};
  bool nn = strncmp(file->name, "nn", 2) == 0;
  p->module = nn ? "nn." : "";
  new_group(a, p, NULL);
  const char *at = file->text, *comment = NULL;
  while (*at) {
    const char *line_at = at;
    struct span line = next_line(&at);
    if (begins(line, "# ---- ")) {
      const char *title = line.at + 7;
      new_group(a, p, arena_strndup(a, title, (size_t)(strstr(title, " ----") - title)));
      comment = NULL;
    } else if (begins(line, "#")) {
      comment = comment ? comment : line_at;
    } else {
      if (comment && library_word(line.at)) add_entry(a, p, lines(comment, line_at), line);
      if (comment == file->text && !library_word(line.at)) p->head = lines(comment, line_at);
      comment = NULL;
    }
  }
  return p;
}

static struct chapter *read_parts(struct arena *a) {
  struct chapter *first = NULL, **tail = &first;
  for (const struct embedded *e = frontend_library; e->name; e++) {
    *tail = read_part(a, e);
    tail = &(*tail)->next;
  }
  return first;
}

/* Without the "# "; `indent` stands before each line. */
static void put_lines(struct str *s, struct span t, size_t drop, const char *indent) {
  for (const char *at = t.at, *end = t.at + t.len; at < end;) {
    struct span line = next_line(&at);
    size_t n = line.len < drop ? line.len : drop;
    str_printf(s, "%s%.*s\n", n < line.len ? indent : "", (int)(line.len - n), line.at + n);
  }
}

enum { TEXT = 2, EXAMPLE = 4, COLUMNS = 80 };

/* Broken at blanks; lines behind the first begin at column `from`. */
static void put_wrapped(struct str *s, const char *text, size_t at, size_t from) {
  while (*text) {
    size_t word = strcspn(text, " ");
    if (at + word > COLUMNS && at > from) {
      if (s->data[s->len - 1] == ' ') s->data[--s->len] = 0;
      str_printf(s, "\n%*s", (int)from, "");
      at = from;
    }
    str_putn(s, text, word);
    at += word;
    text += word;
    if (*text == ' ') str_putc(s, ' '), at++, text++;
  }
  str_putc(s, '\n');
}

/* The text as one line. */
static const char *flowing(struct arena *a, struct span t) {
  struct str s = str_make(a);
  for (const char *at = t.at, *end = t.at + t.len; at < end;) {
    struct span line = next_line(&at);
    if (line.len > TEXT) str_printf(&s, "%s%.*s", s.len ? " " : "", (int)(line.len - TEXT), line.at + TEXT);
  }
  return s.data;
}

static void put_entry(struct str *s, struct arena *a, const struct doc_entry *e) {
  str_printf(s, "%s ", e->kind);
  put_wrapped(s, arena_printf(a, "%s%s", e->module, e->head), strlen(e->kind) + 1, 4);
  str_putc(s, '\n');
  put_wrapped(s, flowing(a, e->text), 0, 0);
  if (!e->example.len) return;
  str_put(s, "\n");
  put_lines(s, e->example, EXAMPLE, "    ");
}

/* The end of the first sentence: ". " in no brackets, and before no small letter or dot, as in "0 .. n". */
static const char *sentence_end(const char *text) {
  for (int depth = 0; *text; text++) {
    depth += (*text == '(') - (*text == ')');
    if (depth <= 0 && text[0] == '.' && text[1] == ' ' && !(text[2] >= 'a' && text[2] <= 'z')) break;
  }
  return text;
}

static const char *summary(struct arena *a, const struct doc_entry *e) {
  const char *text = flowing(a, e->text);
  size_t n = (size_t)(sentence_end(text) - text);
  if (n && text[n - 1] == '.') n--;
  return arena_strndup(a, text, n);
}

enum { LEFT = 30 };

static void put_list(struct str *s, struct arena *a, const struct chapter *parts) {
  for (const struct chapter *p = parts; p; p = p->next)
    for (const struct section *g = p->first; g; g = g->next) {
      if (!g->first) continue;
      if (s->len) str_putc(s, '\n');
      const char *sep = g->title ? ", " : "", *title = g->title ? g->title : "";
      put_wrapped(s, arena_printf(a, "%.*s%s%s:", (int)strcspn(p->file, "."), p->file, sep, title), 0, 0);
      for (const struct doc_entry *e = g->first; e; e = e->next) {
        str_printf(s, "  %-*s", LEFT - 2, arena_printf(a, "%s%s", e->module, e->name));
        put_wrapped(s, summary(a, e), LEFT, LEFT);
      }
    }
}

/* What others call things: the rows of elsewhere.def. */
static void put_elsewhere(struct str *s) {
  str_put(s,
          "\n## What others call it\n\nIn NumPy, TensorFlow, Keras, PyTorch and JAX, and here. An error says "
          "so, too, and `dgc doc WORD`.\n\n| there | here |\n|---|---|\n");
#define NAME(here, theirs)    CALL(here, theirs)
#define CALL(here, theirs)    str_printf(s, "| %s | `%s` |\n", theirs, here);
#define INSTEAD(help, theirs) str_printf(s, "| %s | %s |\n", theirs, help);
#define STATEMENT(here, theirs)
#define PARAMETER(help, theirs) INSTEAD(help, theirs)
#include "frontend/elsewhere.def"
#undef PARAMETER
#undef NAME
#undef CALL
#undef INSTEAD
#undef STATEMENT
}

static void put_page(struct str *s, const struct chapter *parts) {
  str_put(
      s,
      "# The library\n\nWritten in the language itself, in [frontend/lib](../frontend/lib), out of whose "
      "comments\n"
      "`dgc doc --markdown` makes this page; `dgc doc NAME` prints one entry, `dgc doc` lists them. Each "
      "example is\n"
      "the body of a model, and is run by a test. What is built in stands in [language.md](language.md).\n");
  for (const struct chapter *p = parts; p; p = p->next) {
    str_printf(s, "\n## %.*s\n\n", (int)strcspn(p->file, "."), p->file);
    put_lines(s, p->head, TEXT, "");
    for (const struct section *g = p->first; g; g = g->next) {
      if (g->title) str_printf(s, "\n### %s\n", g->title);
      for (const struct doc_entry *e = g->first; e; e = e->next) {
        str_printf(s, "\n**%s** `%s%s`\n\n", e->kind, e->module, e->head);
        put_lines(s, e->text, TEXT, "");
        if (!e->example.len) continue;
        str_put(s, "\n```\n");
        put_lines(s, e->example, EXAMPLE, "");
        str_put(s, "```\n");
      }
    }
  }
  put_elsewhere(s);
}

/* Whether the word is the entry's name, of nn with or without its library. */
static bool is_called(const struct doc_entry *e, const char *word) {
  size_t n = strlen(e->module);
  return strcmp(e->name, word) == 0 ||
         (n && strncmp(word, e->module, n) == 0 && strcmp(e->name, word + n) == 0);
}

/* What is built in: how it is called. */
static bool put_builtin(struct str *s, const char *name) {
  const struct builtin *b = builtin_find(name);
  if (!b && !is_built_in(name)) return false;
  str_printf(s, "built in: %s(", name);
  for (int i = 0; b && i < MAX_GIVEN && b->params[i]; i++) str_printf(s, "%s%s", i ? ", " : "", b->params[i]);
  if (!b) str_put(s, "...");
  str_put(s, ")\n\nSee section 6 of docs/language.md, functions.\n");
  return true;
}

static const char **names_of(struct arena *a, const struct chapter *parts, size_t *count) {
  size_t all = 0;
  for (const struct chapter *p = parts; p; p = p->next) all += p->count;
  const char **names = arena_new_array(a, all, const char *);
  *count = 0;
  for (const struct chapter *p = parts; p; p = p->next)
    for (const struct section *g = p->first; g; g = g->next)
      for (const struct doc_entry *e = g->first; e; e = e->next) names[(*count)++] = e->name;
  return names;
}

/* What there is here for what others call so; NULL: it is not known. */
static const char *of_others(struct arena *a, const char *word) {
  const char *help = elsewhere_help(a, word), *names = elsewhere_names(a, word);
  if (help) return help;
  return names ? arena_printf(a, "what others call so is here %s", names)
               : elsewhere_statement(word, strlen(word));
}

const char *frontend_doc(struct arena *a, const char *name, bool page, struct diags *d) {
  struct str s = str_make(a);
  const struct chapter *parts = read_parts(a);
  if (!name || !*name) {
    if (page)
      put_page(&s, parts);
    else
      put_list(&s, a, parts);
    return s.data;
  }
  for (const struct chapter *p = parts; p; p = p->next)
    for (const struct section *g = p->first; g; g = g->next)
      for (const struct doc_entry *e = g->first; e; e = e->next) {
        if (!is_called(e, name)) continue;
        if (s.len) str_putc(&s, '\n');
        put_entry(&s, a, e);
      }
  if (s.len || put_builtin(&s, name)) return s.data;
  size_t count;
  const char *dot = strrchr(name, '.'), **names = names_of(a, parts, &count);
  const char *word = dot ? dot + 1 : name, *help = of_others(a, name);
  if (!help) help = of_others(a, word);
  diag_error(d, LOC_NONE, "there is no function `%s` in the library", name);
  if (help)
    diag_help(d, LOC_NONE, "%s", help);
  else
    diag_closest(d, LOC_NONE, word, names, count, NULL);
  return NULL;
}
