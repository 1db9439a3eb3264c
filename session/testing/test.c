/* SPDX-License-Identifier: Apache-2.0 */
/* A test as a file: what its lines ask for is carried out by the caller, and compared here. */
#include "session/testing/check_lines.h"
#include "session/testing/lines_diff.h"
#include "session/testing/run_line.h"
#include "session/testing/test_file.h"

#include "base/grow.h"
#include "runtime/data/atomic.h"
#include "runtime/data/json.h"
#include "session/session.h"

#include <math.h>
#include <string.h>

enum { MAX_TEST = 16 << 20, SHOWN_LINES = 40 };

struct tester {
  struct dgc_session *s;
  const struct dgc_test *test;
  const struct test_file *file;
  struct substitution *all;
  int count;
  struct str text; /* what is told beside diagnostics */
  bool updated;
};

/* ---- lines RUN ---- */

/* The end of what a command has said. */
static void show_tail(struct tester *t, const char *what, const char *text, size_t len) {
  size_t from = len;
  int lines = 0;
  while (from && text[from - 1] == '\n') from--;
  len = from;
  for (; from && lines < SHOWN_LINES; from--)
    if (text[from - 1] == '\n' && ++lines == SHOWN_LINES) break;
  if (!len) return;
  str_printf(&t->text, "%s%s:\n", what, from ? ", its end" : "");
  for (size_t i = from; i < len; i++) {
    if (i == from || text[i - 1] == '\n') str_put(&t->text, "  ");
    str_putc(&t->text, text[i]);
  }
  str_putc(&t->text, '\n');
}

static const char *join(struct arena *a, const char *const *words, int count) {
  struct str s = str_make(a);
  for (int i = 0; i < count; i++) str_printf(&s, "%s%s", i ? " " : "", words[i]);
  return s.data;
}

static bool run_verb(struct tester *t, struct loc loc, const struct run_command *c, struct text *io) {
  struct dgc_command what = {c->words, c->nwords, io->data, io->len, c->joined};
  struct dgc_outcome out = {.output = "", .errors = ""};
  const char *line = join(t->s->call, c->words, c->nwords);
  if (!t->test->run(t->test->user, &what, &out)) {
    diag_error(&t->s->diags, loc, "a test may not run this: %s", out.errors);
    return false;
  }
  *io = (struct text){arena_copy(t->s->call, out.output, out.output_size + 1), out.output_size};
  if (out.code < 0)
    diag_error(&t->s->diags, loc, "dgc %s: %s", line, out.errors);
  else if (!c->fails && out.code)
    diag_error(&t->s->diags, loc, "dgc %s: exit code %d", line, out.code);
  else if (c->fails && !out.code)
    diag_error(&t->s->diags, loc, "dgc %s: it does not fail, and it should", line);
  else
    return true;
  if (out.code >= 0) show_tail(t, "standard error", out.errors, strlen(out.errors));
  show_tail(t, "standard output", io->data, io->len);
  return false;
}

/* Words of FileCheck. */
static bool read_check_options(struct tester *t, struct loc loc, const struct run_command *c,
                               struct check_options *o) {
  static const char prefix[] = "--check-prefix", absent[] = "--implicit-check-not";
  o->absent = arena_new_array(t->s->call, (size_t)c->nwords + 1, const char *);
  for (int i = 0; i < c->nwords; i++) {
    const char *word = c->words[i], *value = strchr(word, '=');
    size_t len = value ? (size_t)(value - word) : strlen(word);
    bool prefixed =
        strncmp(word, prefix, sizeof prefix - 1) == 0 &&
        (len == sizeof prefix - 1 || (len == sizeof prefix + 1 && strncmp(word + len - 2, "es", 2) == 0));
    bool is_absent = len == sizeof absent - 1 && strncmp(word, absent, len) == 0;
    if (strcmp(word, t->file->source->name) == 0) continue;
    if (strcmp(word, "--allow-empty") == 0) {
      o->allow_empty = true;
      continue;
    }
    if ((prefixed || is_absent) && !value && i + 1 < c->nwords) value = c->words[++i] - 1;
    if ((!prefixed && !is_absent) || !value) {
      diag_error(&t->s->diags, loc,
                 "FileCheck has %%s, --check-prefix, --check-prefixes, --implicit-check-not and "
                 "--allow-empty here, not '%s'",
                 word);
      return false;
    }
    if (is_absent)
      o->absent[o->nabsent++] = value + 1;
    else
      o->prefixes = o->prefixes ? arena_printf(t->s->call, "%s,%s", o->prefixes, value + 1) : value + 1;
  }
  return true;
}

static bool run_check(struct tester *t, struct loc loc, const struct run_command *c, const struct text *io) {
  struct check_options o = {0};
  if (!read_check_options(t, loc, c, &o)) return false;
  struct diags *d = &t->s->diags;
  if (check_lines(t->s->call, t->file->source, &o, "the text", io->data, io->len, d))
    return c->fails ? (diag_error(d, loc, "FileCheck does not fail, and it should"), false) : true;
  if (c->fails) {
    d->first = NULL;
    d->tail = &d->first;
    d->nerrors = 0;
    return true;
  }
  diag_note(d, loc, "the text is of this line");
  return false;
}

static bool replace(struct tester *t, const char *path, const struct text *with) {
  struct atomic_file f;
  if (!atomic_open(&f, t->s->call, path, &t->s->diags)) return false;
  if (atomic_write(&f, with->data, with->len, &t->s->diags)) return atomic_commit(&f, &t->s->diags);
  atomic_discard(&f);
  return false;
}

/* Whole-file goldens. */
static bool run_golden(struct tester *t, struct loc loc, const struct run_command *c, const struct text *io) {
  struct diags *d = &t->s->diags, unread;
  if (c->nwords != 1) {
    diag_error(d, loc, "golden FILE: one file");
    return false;
  }
  diags_init(&unread, t->s->call);
  const struct source *golden = source_read(t->s->call, c->words[0], MAX_TEST, &unread);
  struct text was = {golden ? golden->text : "", golden ? golden->len : 0};
  if (golden && was.len == io->len && memcmp(was.data, io->data, io->len) == 0) return true;
  if (golden || t->test->update)
    lines_diff(&t->text, was, *io, golden ? c->words[0] : "/dev/null",
               t->test->update ? c->words[0] : "the text");
  if (t->test->update) return t->updated = true, replace(t, c->words[0], io);
  diag_error(d, loc, golden ? "the text differs from %s" : "there is no %s", c->words[0]);
  diag_help(d, LOC_NONE, "dgc test --update makes it what is printed now");
  return false;
}

static bool read_input(struct tester *t, const char *path, struct text *io) {
  const struct source *s = source_read(t->s->call, path, MAX_TEST, &t->s->diags);
  if (s) *io = (struct text){s->text, s->len};
  return s != NULL;
}

/* > FILE */
static bool write_output(struct tester *t, struct loc loc, const char *path, const struct text *io) {
  size_t len = strlen(t->test->scratch);
  if (strncmp(path, t->test->scratch, len) == 0 && path[len] == '/') return replace(t, path, io);
  diag_error(&t->s->diags, loc, "a test writes to %%t and nowhere else, not to %s", path);
  return false;
}

static bool run_line(struct tester *t, const struct run_text *r) {
  struct run_line line;
  struct text io = {"", 0};
  if (!run_line_parse(t->s->call, r->loc, r->text, t->all, t->count, &line, &t->s->diags)) return false;
  for (int i = 0; i < line.ncommands; i++) {
    const struct run_command *c = &line.commands[i];
    if (c->input && !read_input(t, c->input, &io)) return false;
    bool good = false;
    switch (c->kind) {
    case RUN_VERB: good = run_verb(t, r->loc, c, &io); break;
    case RUN_CHECK: good = run_check(t, r->loc, c, &io); break;
    case RUN_GOLDEN: good = run_golden(t, r->loc, c, &io); break;
    }
    if (!good || (c->output && !write_output(t, r->loc, c->output, &io))) return false;
  }
  return true;
}

/* ---- expected numbers ---- */

/* The member `name` of an object; `at` is set behind its colon. */
static bool find_member(struct json at, const char *name, struct json *out) {
  if (!json_take(&at, '{')) return false;
  do {
    const char *key = json_string(&at);
    if (!key || !json_take(&at, ':')) return false;
    *out = at;
    if (strcmp(key, name) == 0) return true;
    if (!json_skip(&at)) return false;
  } while (json_take(&at, ','));
  return false;
}

static bool find_number(struct json at, const char *name, double *out) {
  struct json found;
  if (!find_member(at, name, &found)) return false;
  const char *end;
  *out = str_to_double(found.p, &end);
  if (strncmp(found.p, "null", 4) == 0) *out = (double)NAN;
  return end > found.p || isnan(*out);
}

/* What a training has printed: of the evaluation, or else, and for train.NAME, of the last epoch. */
static bool find_figure(struct arena *a, const struct text *json, const char *name, double *out) {
  struct json whole = {a, json->data, json->data + json->len}, training, part;
  bool of_training = strncmp(name, "train.", 6) == 0;
  if (!of_training && find_number(whole, name, out)) return true;
  if (of_training) name += 6;
  if (!find_member(whole, "training", &training)) return false;
  if (find_member(training, "losses", &part) && find_number(part, name, out)) return true;
  if (find_member(training, "metrics", &part) && find_number(part, name, out)) return true;
  return strcmp(name, "loss") == 0 && find_number(training, name, out);
}

/* A training, as of a line RUN; false after an error. */
static bool train_for(struct tester *t, const struct expected_number *n, struct text *out) {
  struct run_line line;
  const char *text =
      arena_printf(t->s->call, "dgc train %%s --%s %s --quiet --json %s", n->unit, n->count, n->options);
  if (!run_line_parse(t->s->call, n->loc, text, t->all, t->count, &line, &t->s->diags)) return false;
  *out = (struct text){"", 0};
  if (line.ncommands != 1 || line.commands->input || line.commands->output) {
    diag_error(&t->s->diags, n->loc, "behind `with` there are options of dgc train only");
    return false;
  }
  return run_verb(t, n->loc, line.commands, out);
}

static bool check_number(struct tester *t, const struct expected_number *n, const struct text *json) {
  double value;
  struct diags *d = &t->s->diags;
  if (!find_figure(t->s->call, json, n->name, &value)) {
    diag_error(d, n->loc, "the training tells of no '%s'", n->name);
    show_tail(t, "it tells", json->data, json->len);
    return false;
  }
  bool good = n->how == NUMBER_AT_LEAST  ? value >= n->value
              : n->how == NUMBER_AT_MOST ? value <= n->value
                                         : fabs(value - n->value) <= n->tolerance;
  if (good) return true;
  struct str s = str_make(t->s->call);
  str_printf(&s, "%s is ", n->name);
  str_double(&s, value);
  str_put(&s, n->how == NUMBER_AT_LEAST  ? ", which is less than "
              : n->how == NUMBER_AT_MOST ? ", which is more than "
                                         : ", which differs from ");
  str_double(&s, n->value);
  if (n->how == NUMBER_WITHIN) {
    str_put(&s, " by ");
    str_double(&s, fabs(value - n->value));
  }
  diag_error(d, n->loc, "%s", s.data);
  return false;
}

/* Numbers of one training are checked after one training. */
static bool check_numbers(struct tester *t) {
  const struct expected_number *all = t->file->numbers;
  bool good = true;
  for (int i = 0; i < t->file->nnumbers; i++) {
    struct text json = {"", 0};
    bool done = false;
    for (int k = 0; k < i && !done; k++)
      done = strcmp(all[i].count, all[k].count) == 0 && strcmp(all[i].unit, all[k].unit) == 0 &&
             strcmp(all[i].options, all[k].options) == 0;
    if (done) continue;
    if (!train_for(t, &all[i], &json)) return false;
    for (int k = i; k < t->file->nnumbers; k++)
      if (strcmp(all[i].count, all[k].count) == 0 && strcmp(all[i].unit, all[k].unit) == 0 &&
          strcmp(all[i].options, all[k].options) == 0)
        good &= check_number(t, &all[k], &json);
  }
  return good;
}

/* ---- messages in place ---- */

struct told_message {
  const char *severity, *file, *text;
  int64_t line;
  bool met;
};

struct messages {
  struct told_message *items;
  int count, cap;
  struct arena *scratch; /* GROW's */
};

static bool read_messages(struct json *j, struct messages *out);

/* {"severity":...,"file":...,"line":...,"message":...,"notes":[...]} */
static bool read_message(struct json *j, struct messages *out) {
  struct told_message m = {0};
  GROW(out, out->items, out->count, out->cap);
  int at = out->count++;
  memset(&out->items[at], 0, sizeof out->items[at]);
  if (!json_take(j, '{')) return false;
  do {
    const char *key = json_string(j);
    if (!key || !json_take(j, ':')) return false;
    bool read = strcmp(key, "severity") == 0  ? (m.severity = json_string(j)) != NULL
                : strcmp(key, "file") == 0    ? (m.file = json_string(j)) != NULL
                : strcmp(key, "message") == 0 ? (m.text = json_string(j)) != NULL
                : strcmp(key, "line") == 0    ? json_size(j, &m.line)
                : strcmp(key, "notes") == 0   ? read_messages(j, out)
                                              : json_skip(j);
    if (!read) return false;
  } while (json_take(j, ','));
  out->items[at] = m;
  return json_take(j, '}') && m.severity && m.text;
}

static bool read_messages(struct json *j, struct messages *out) {
  if (!json_take(j, '[')) return false;
  if (json_take(j, ']')) return true;
  do
    if (!read_message(j, out)) return false;
  while (json_take(j, ','));
  return json_take(j, ']');
}

static bool is_expected(struct tester *t, struct told_message *m, const struct expected_message *e) {
  struct map none = map_make(t->s->call);
  struct match where;
  bool here = m->file && strcmp(m->file, t->file->source->name) == 0;
  return !m->met && strcmp(m->severity, e->severity) == 0 && (!e->line || (here && m->line == e->line)) &&
         pattern_find(t->s->call, &e->pattern, m->text, 0, strlen(m->text), &none, &where, &t->s->diags) > 0;
}

/* Of a graph text that is good nothing is told. */
static bool messages_of(struct dgc_outcome *out, struct json whole, struct messages *all) {
  struct json list;
  if (!find_member(whole, "diagnostics", &list)) return out->code == 0;
  return out->code >= 0 && read_messages(&list, all);
}

static bool check_messages(struct tester *t) {
  struct diags *d = &t->s->diags;
  struct messages all = {.scratch = t->s->call};
  struct dgc_outcome out = {.output = "", .errors = ""};
  const char *const words[] = {t->file->graph ? "opt" : "check", t->file->source->name, "--json"};
  const struct dgc_command what = {words, 3, "", 0, false};
  t->test->run(t->test->user, &what, &out);
  const char *json = arena_strndup(t->s->call, out.output, out.output_size);
  if (!messages_of(&out, (struct json){t->s->call, json, json + out.output_size}, &all)) {
    diag_error(d, LOC_NONE, "dgc %s %s: %s", words[0], words[1], out.errors);
    return false;
  }
  for (int i = 0; i < t->file->nmessages; i++) {
    const struct expected_message *e = &t->file->messages[i];
    int k = 0;
    while (k < all.count && !is_expected(t, &all.items[k], e)) k++;
    if (k < all.count)
      all.items[k].met = true;
    else
      diag_error(d, e->pattern.loc, "this %s does not come", e->severity);
  }
  for (int i = 0; i < all.count; i++) {
    const struct told_message *m = &all.items[i];
    if (m->met || (strcmp(m->severity, "error") != 0 && strcmp(m->severity, "warning") != 0)) continue;
    diag_error(d, LOC_NONE, "%s comes, and is not expected: %s:%lld: %s", m->severity,
               m->file ? m->file : "no place", (long long)m->line, m->text);
  }
  return d->nerrors == 0;
}

/* ---- the test ---- */

/* Whether this build has a feature: its backends are. */
static bool has(const char *feature, size_t len) {
  const char *name, *help;
  for (int i = 0; dgc_backend(i, &name, &help); i++)
    if (strlen(name) == len && strncmp(name, feature, len) == 0) return true;
  return false;
}

/* A feature of the list that there is not. */
static const char *missing(struct arena *a, const char *features) {
  for (const char *p = features; p && *p; p += strspn(p, ", \t")) {
    size_t len = strcspn(p, ", \t");
    if (len && !has(p, len)) return arena_strndup(a, p, len);
    p += len;
  }
  return NULL;
}

static void substitute(struct tester *t) {
  static const char *const words[] = {"dgc", "not", "FileCheck", "golden"};
  const struct dgc_test *test = t->test;
  t->all = arena_new_array(t->s->call, (size_t)test->ndefines + 8, struct substitution);
  for (int i = 0; i < test->ndefines; i++) {
    const char *value = strchr(test->defines[i], '=');
    const char *name =
        arena_strndup(t->s->call, test->defines[i], value ? (size_t)(value - test->defines[i]) : 0);
    if (value) t->all[t->count++] = (struct substitution){name, value + 1};
  }
  for (int i = 0; i < 4; i++) t->all[t->count++] = (struct substitution){words[i], words[i]};
  t->all[t->count++] = (struct substitution){"s", t->file->source->name};
  t->all[t->count++] = (struct substitution){"S", "."};
  t->all[t->count++] = (struct substitution){"t", arena_printf(t->s->call, "%s/t", test->scratch)};
  t->all[t->count++] = (struct substitution){"%", "%"};
}

static bool carry_out(struct tester *t) {
  bool good = true;
  for (int i = 0; i < t->file->nruns && good; i++) good = run_line(t, &t->file->runs[i]);
  if (t->file->nmessages) good &= check_messages(t);
  return check_numbers(t) && good;
}

static enum dgc_status test(struct dgc_session *s, const char *path, const struct dgc_test *test,
                            struct dgc_test_result *out) {
  struct test_file file;
  struct tester t = {.s = s, .test = test, .file = &file, .text = str_make(s->call)};
  const struct source *source = source_read(s->call, path, MAX_TEST, &s->diags);
  if (!source) return session_unread(s);
  struct str text = session_text(s);
  bool good = test_file_read(s->call, source, &file, &s->diags);
  const char *absent = missing(s->call, file.requires);
  if (good && !test_file_tests(&file)) {
    out->end = DGC_TEST_NOTHING_TO_TEST;
    return DGC_OK;
  }
  if (good && absent) {
    str_printf(&text, "requires %s", absent);
    *out = (struct dgc_test_result){.end = DGC_TEST_SKIPPED, .text = text.data};
    return DGC_OK;
  }
  substitute(&t);
  good = good && carry_out(&t);
  str_put(&text, diags_text(&s->diags, s->options.color));
  str_put(&text, t.text.data);
  out->end = file.fails ? (good ? DGC_TEST_XPASSED : DGC_TEST_XFAILED)
             : good     ? DGC_TEST_PASSED
                        : DGC_TEST_FAILED;
  if (out->end == DGC_TEST_PASSED && t.updated) out->end = DGC_TEST_UPDATED;
  if (out->end == DGC_TEST_XPASSED) str_printf(&text, "%s: it passes, and says XFAIL %s\n", path, file.fails);
  out->text = text.data;
  diags_init(&s->diags, s->call);
  return DGC_OK;
}

static enum dgc_status test_call(struct dgc_session *s, const char *path, const struct dgc_test *how,
                                 struct dgc_test_result *out) {
  if (!session_can_give(out)) return session_wrong_size(s);
  struct dgc_test_result whole = {.end = DGC_TEST_FAILED, .text = ""};
  enum dgc_status status = test(s, path, how, &whole);
  session_give(out, &whole, sizeof whole);
  return status;
}

enum dgc_status dgc_test(struct dgc_session *s, const char *path, const struct dgc_test *how,
                         struct dgc_test_result *out) {
  CALL(s, test_call(s, path, how, out));
}

static enum dgc_status check_text(struct dgc_session *s, const char *path, const char *prefixes,
                                  const char *text, size_t len) {
  const struct source *file = source_read(s->call, path, MAX_TEST, &s->diags);
  const struct check_options o = {.prefixes = prefixes};
  if (!file) return session_unread(s);
  return check_lines(s->call, file, &o, "the text", text, len, &s->diags) ? DGC_OK : DGC_MISMATCH;
}

enum dgc_status dgc_check_lines(struct dgc_session *s, const char *path, const char *prefixes,
                                const char *text, size_t len) {
  CALL(s, check_text(s, path, prefixes, text, len));
}
