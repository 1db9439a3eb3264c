/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options that are wrong whatever the model is: what rows of the table name. */
#include "session/option_table.h"

#include "base/str.h"
#include "ir/speeds.h"
#include "passes/strategy/strategy.h"

#include <string.h>

/* One of the words of the row. */
enum dgc_status check_word(struct dgc_session *s, const struct option_row *r, const char *value) {
  struct str expected = str_make(s->call);
  for (const char *p = r->words, *next; *p; p = next) {
    size_t len = strcspn(p, " ");
    if (strlen(value) == len && strncmp(p, value, len) == 0) return DGC_OK;
    next = p + len + 1;
    str_put(&expected, p == r->words ? "" : *next ? ", " : " or ");
    str_putn(&expected, p, len);
  }
  return session_fail(s, DGC_USAGE, "%s: expected %s, not '%s'", r->name, expected.data, value);
}

enum dgc_status check_assignment(struct dgc_session *s, const struct option_row *r, const char *value) {
  (void)r;
  if (strchr(value, '=')) return DGC_OK;
  return session_fail(s, DGC_USAGE, "a parameter is set by NAME=VALUE, in one word, not by '%s'", value);
}

/* "0:8000", ":-100", "8000:" */
enum dgc_status check_range(struct dgc_session *s, const struct option_row *r, const char *value) {
  static const char digits[] = "0123456789";
  const char *p = value + (*value == '-');
  p += strspn(p, digits);
  if (*p == ':') {
    p += 1 + (p[1] == '-');
    if (!p[strspn(p, digits)]) return DGC_OK;
  }
  return session_fail(s, DGC_USAGE, "%s: write begin:end as in 0:8000, :-100 or 8000:, not '%s'", r->name,
                      value);
}

/* A strategy, or auto, which is none of a graph. */
enum dgc_status check_strategy(struct dgc_session *s, const struct option_row *r, const char *value) {
  (void)r;
  if (strcmp(value, "auto") == 0 || strategy_find(value)) return DGC_OK;
  strategy_unknown(value, "auto", LOC_NONE, &s->diags);
  return DGC_USAGE;
}

static enum dgc_status unless(struct dgc_session *s, const struct option_row *r, const char *wrong) {
  return wrong ? session_fail(s, DGC_USAGE, "%s: %s", r->name, wrong) : DGC_OK;
}

enum dgc_status check_link(struct dgc_session *s, const struct option_row *r, const char *value) {
  struct speeds unused;
  return unless(s, r, speeds_read_link(s->call, value, &unused));
}

enum dgc_status check_speed(struct dgc_session *s, const struct option_row *r, const char *value) {
  struct speeds unused;
  return unless(s, r, speeds_read_speed(s->call, value, &unused));
}

enum dgc_status check_tasks(struct dgc_session *s, const struct option_row *r, const char *value) {
  const int *tasks;
  int count;
  return unless(s, r, tasks_read(s->call, value, &tasks, &count));
}

/* "simplify,fuse": all of them must be passes. */
enum dgc_status check_passes(struct dgc_session *s, const struct option_row *r, const char *value) {
#define PASS(name, from, to, help) #name,
  static const char *const names[] = {
#include "passes/passes.def"
  };
#undef PASS
  enum { COUNT = sizeof names / sizeof *names };
  (void)r;
  for (const char *p = value; *p; p += *p == ',') {
    size_t len = strcspn(p, ",");
    const char *word = arena_strndup(s->call, p, len);
    bool known = false;
    for (int i = 0; i < COUNT; i++) known |= strcmp(word, names[i]) == 0;
    p += len;
    if (known) continue;
    session_fail(s, DGC_USAGE, "there is no pass '%s'", word);
    diag_closest(&s->diags, LOC_NONE, word, names, COUNT, NULL);
    return DGC_USAGE;
  }
  return DGC_OK;
}

enum dgc_status check_pass_or_all(struct dgc_session *s, const struct option_row *r, const char *value) {
  return strcmp(value, "all") == 0 ? DGC_OK : check_passes(s, r, value);
}
