/* SPDX-License-Identifier: Apache-2.0 */
/* Lines RUN. What a shell would do is refused and not done by half: no variables, globs, lists or programs. What a test
 * itself writes down as a path stays in the folder of the test; %NAMEs lead elsewhere, and they are not the test's. */
#include "session/testing/run_line.h"

#include "base/str.h"

#include <string.h>

struct run_reader {
  struct arena *arena;
  struct loc loc;
  const char *p;
  const struct substitution *all;
  int count;
  struct diags *diags;
};

static bool refuse(struct run_reader *r, const char *what, const char *which) {
  diag_error(r->diags, r->loc, what, which);
  return false;
}

/* One word, of which `raw` is what stands in the test. */
struct run_word {
  const char *text, *raw;
  bool quoted;
};

/* %s and the like; of several the longest. */
static bool put_substitution(struct run_reader *r, struct str *text) {
  const struct substitution *best = NULL;
  size_t longest = 0;
  for (int i = 0; i < r->count; i++) {
    size_t len = strlen(r->all[i].name);
    if (len <= longest || strncmp(r->p, r->all[i].name, len) != 0) continue;
    best = &r->all[i];
    longest = len;
  }
  if (!best)
    return refuse(r, "there is no %%%s: %%s, %%S, %%t, %%%% and what --define says",
                  arena_strndup(r->arena, r->p, strcspn(r->p, " ")));
  str_put(text, best->value);
  r->p += longest;
  return true;
}

/* True: there is a word, or the line's end, where `text` is NULL. */
static bool read_word(struct run_reader *r, struct run_word *out) {
  struct str text = str_make(r->arena), raw = str_make(r->arena);
  char quote = 0;
  bool any = false;
  *out = (struct run_word){0};
  r->p += strspn(r->p, " \t");
  for (; *r->p && (quote || !strchr(" \t", *r->p));) {
    char c = *r->p++;
    any = true;
    if (quote ? c == quote : c == '\'' || c == '"') {
      quote = quote ? 0 : c;
      out->quoted = true;
    } else if (c == '%') {
      str_putc(&raw, '%');
      if (!put_substitution(r, &text)) return false;
    } else if (!quote && strchr("$`;()<>|*?", c)) {
      /* Redirections and pipes are words of their own. */
      bool is_word = !text.len && strchr("<>|", c) && (!*r->p || strchr(" \t", *r->p));
      bool joins = c == '>' && strcmp(text.data, "2") == 0 && strncmp(r->p, "&1", 2) == 0;
      if (!is_word && !joins)
        return refuse(r, "there is no shell behind RUN: '%s' is not known here; quotes make it a character",
                      arena_strndup(r->arena, &c, 1));
      str_putc(&text, c);
      str_putc(&raw, c);
      if (joins) {
        str_put(&text, "&1");
        r->p += 2;
      }
    } else {
      str_putc(&text, c);
      str_putc(&raw, c);
    }
  }
  if (quote) return refuse(r, "a quote has no end%s", "");
  if (any) *out = (struct run_word){text.data, raw.data, out->quoted};
  return true;
}

/* Options whose values look like paths and are none. */
static bool names_devices(const char *option) {
  static const char *const options[] = {"--devices", "--parameter-device", "--consolidation-device",
                                        "--cluster", "--task"};
  for (size_t i = 0; i < sizeof options / sizeof *options; i++)
    if (strncmp(option, options[i], strlen(options[i])) == 0) return true;
  return false;
}

/* Whether a path in the word is from the root, or has a part `..`. */
static bool leads_out(const char *word, bool devices) {
  for (const char *p = word; *p; p++) {
    bool begins = p == word || strchr("=:,", p[-1]) || (p == word + 2 && *word == '-');
    if (begins && *p == '/' && !devices) return true;
    if ((begins || p[-1] == '/' || p[-1] == '%') && strncmp(p, "..", 2) == 0 &&
        (!p[2] || strchr("/=:,", p[2])))
      return true;
  }
  return false;
}

/* No path out of the folder: what %NAMEs stand for may be from the root. */
static bool check_path(struct run_reader *r, const struct run_word *w, const char *before) {
  bool devices = names_devices(w->raw) || (before && names_devices(before) && !strchr(before, '='));
  if (!leads_out(w->raw, devices) && !leads_out(*w->text == '/' ? w->text + 1 : w->text, true)) return true;
  return refuse(
      r,
      "'%s' leads out of the folder of the test, which names files there, or by %%t and what --define says",
      w->text);
}

static bool is(const struct run_word *w, const char *text) {
  return w->text && !w->quoted && strcmp(w->text, text) == 0;
}

static void add_word(struct run_reader *r, struct run_command *c, const char *word) {
  const char **more = arena_new_array(r->arena, (size_t)c->nwords + 2, const char *);
  if (c->nwords) memcpy(more, c->words, (size_t)c->nwords * sizeof *more);
  more[c->nwords++] = word;
  c->words = more;
}

/* The first word says what is run. */
static bool read_kind(struct run_reader *r, struct run_command *c, struct run_word *w) {
  while (is(w, "not")) {
    c->fails = !c->fails;
    if (!read_word(r, w)) return false;
  }
  if (is(w, "dgc"))
    c->kind = RUN_VERB;
  else if (is(w, "FileCheck"))
    c->kind = RUN_CHECK;
  else if (is(w, "golden"))
    c->kind = RUN_GOLDEN;
  else
    return refuse(r, "RUN starts no programs but dgc, FileCheck and golden, not '%s'",
                  w->text ? w->text : "");
  return true;
}

static bool read_file(struct run_reader *r, const char **out) {
  struct run_word w;
  if (!read_word(r, &w)) return false;
  if (!w.text) return refuse(r, "a redirection has no file%s", "");
  *out = w.text;
  return check_path(r, &w, NULL);
}

/* Up to a pipe or the end; whether there is a pipe. */
static bool read_command(struct run_reader *r, struct run_command *c, bool *piped) {
  struct run_word w;
  const char *before = NULL;
  *piped = false;
  if (!read_word(r, &w) || !read_kind(r, c, &w)) return false;
  for (;;) {
    if (!read_word(r, &w)) return false;
    if (!w.text) break;
    if (is(&w, "|")) {
      *piped = true;
      break;
    }
    if (is(&w, "2>&1"))
      c->joined = true;
    else if (is(&w, "<") || is(&w, ">")) {
      if (!read_file(r, *w.text == '<' ? &c->input : &c->output)) return false;
    } else if (is(&w, "&&") || is(&w, "||") || is(&w, "&") || is(&w, "cd"))
      return refuse(
          r, "there is no shell behind RUN: '%s' is not known here; each command has a line of its own",
          w.text);
    else {
      if (!check_path(r, &w, before)) return false;
      before = w.raw;
      add_word(r, c, w.text);
    }
  }
  if (c->kind == RUN_VERB && !c->nwords) return refuse(r, "dgc needs a verb%s", "");
  if (c->kind != RUN_VERB && (*piped || c->output || c->joined))
    return refuse(r, "FileCheck and golden print nothing that goes anywhere%s", "");
  return true;
}

bool run_line_parse(struct arena *a, struct loc loc, const char *text, const struct substitution *all,
                    int count, struct run_line *out, struct diags *d) {
  enum { MOST = 8 };
  struct run_reader r = {a, loc, text, all, count, d};
  *out = (struct run_line){loc, arena_new_array(a, MOST, struct run_command), 0};
  for (bool piped = true; piped;) {
    if (out->ncommands == MOST) return refuse(&r, "a line RUN has too many commands%s", "");
    if (!read_command(&r, &out->commands[out->ncommands++], &piped)) return false;
  }
  return true;
}
