/* SPDX-License-Identifier: Apache-2.0 */
/* dgc trace: what a file of --trace says in ten lines. */
#include "session/session.h"

#include "base/grow.h"
#include "base/map.h"
#include "runtime/data/json.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 1 << 30, SHOWN = 5 };

/* What is known of all spans of one name and category. */
struct traced_name {
  const char *name, *category, *where;
  double time; /* microseconds, all together */
};

struct traced_event {
  const char *name, *category, *where;
  double begin, time, bytes;
  int64_t row;
};

struct summary {
  struct arena *scratch; /* GROW's */
  const char *model;
  double work, copies, waits, bytes; /* of devices; microseconds, bytes */
  double steps_time, input, checkpoint, evaluation;
  double *steps; /* how long each took */
  int nsteps, cap;
  const char *kind; /* of the steps */
  struct map names; /* "category name": struct traced_name */
  int64_t *rows;    /* devices, in any order: of several processes each has its own */
  int nrows, rows_cap;
};

static double number(struct json *j) {
  const char *begin = j->p, *end;
  double value = str_to_double(begin, &end);
  return json_skip(j) && end > begin ? value : 0;
}

/* The members of "args" that are of interest. */
static bool read_args(struct json *j, struct traced_event *e) {
  if (!json_take(j, '{')) return json_skip(j);
  if (json_take(j, '}')) return true;
  do {
    const char *key = json_string(j);
    if (!key || !json_take(j, ':')) return false;
    bool read = true;
    if (strcmp(key, "bytes") == 0)
      e->bytes = number(j);
    else if (strcmp(key, "where") == 0 || strcmp(key, "on") == 0)
      read = (e->where = json_string(j)) != NULL;
    else
      read = json_skip(j);
    if (!read) return false;
  } while (json_take(j, ','));
  return json_take(j, '}');
}

static bool read_event(struct json *j, struct traced_event *e, bool *span) {
  *e = (struct traced_event){.name = "", .category = ""};
  *span = false;
  if (!json_take(j, '{')) return false;
  do {
    const char *key = json_string(j), *text;
    if (!key || !json_take(j, ':')) return false;
    bool read = true;
    if (strcmp(key, "ph") == 0) {
      read = (text = json_string(j)) != NULL;
      *span = read && strcmp(text, "X") == 0;
    } else if (strcmp(key, "name") == 0)
      read = (e->name = json_string(j)) != NULL;
    else if (strcmp(key, "cat") == 0)
      read = (e->category = json_string(j)) != NULL;
    else if (strcmp(key, "ts") == 0)
      e->begin = number(j);
    else if (strcmp(key, "dur") == 0)
      e->time = number(j);
    else if (strcmp(key, "tid") == 0)
      read = json_size(j, &e->row);
    else
      read = strcmp(key, "args") == 0 ? read_args(j, e) : json_skip(j);
    if (!read) return false;
  } while (json_take(j, ','));
  return json_take(j, '}');
}

static void add_name(struct summary *s, const struct traced_event *e) {
  const char *key = arena_printf(s->scratch, "%s %s", e->category, e->name);
  struct traced_name *n = map_get(&s->names, key);
  if (!n) {
    n = arena_new(s->scratch, struct traced_name);
    *n = (struct traced_name){arena_strdup(s->scratch, e->name), arena_strdup(s->scratch, e->category),
                              e->where ? arena_strdup(s->scratch, e->where) : NULL, 0};
    map_put(&s->names, key, n);
  }
  n->time += e->time;
}

static void add_row(struct summary *s, int64_t row) {
  for (int i = 0; i < s->nrows; i++)
    if (s->rows[i] == row) return;
  GROW(s, s->rows, s->nrows, s->rows_cap);
  s->rows[s->nrows++] = row;
}

static bool is(const struct traced_event *e, const char *category) {
  return strcmp(e->category, category) == 0;
}

static bool add_event(struct summary *s, const struct traced_event *e) {
  double *host = is(e, "input")        ? &s->input
                 : is(e, "checkpoint") ? &s->checkpoint
                 : is(e, "evaluation") ? &s->evaluation
                                       : NULL;
  if (host) {
    *host += e->time;
  } else if (is(e, "step")) {
    bool first = !s->kind || (strcmp(e->name, "train") == 0 && strcmp(s->kind, "train") != 0);
    if (first) {
      s->kind = arena_strdup(s->scratch, e->name);
      s->nsteps = 0;
    }
    s->steps_time += e->time;
    if (strcmp(e->name, s->kind) != 0) return true;
    GROW(s, s->steps, s->nsteps, s->cap);
    s->steps[s->nsteps++] = e->time;
  } else {
    bool copies = is(e, "copy") || is(e, "all_reduce") || is(e, "send") || is(e, "receive");
    add_row(s, e->row);
    *(is(e, "wait") ? &s->waits : copies ? &s->copies : &s->work) += e->time;
    s->bytes += copies ? e->bytes : 0;
    add_name(s, e);
  }
  return true;
}

static bool read_events(struct json *j, struct summary *s, struct dgc_session *session) {
  if (!json_take(j, '[')) return false;
  if (json_take(j, ']')) return true;
  do {
    struct inner_arena inner; /* of one event */
    struct traced_event e;
    bool span;
    session_inner_begin(session, &inner);
    j->arena = session->call;
    bool read = read_event(j, &e, &span);
    if (read && span) add_event(s, &e);
    session_inner_end(&inner);
    if (!read) return false;
  } while (json_take(j, ','));
  return json_take(j, ']');
}

static bool read_trace(struct json *j, struct summary *s, struct dgc_session *session) {
  bool any = false;
  if (!json_take(j, '{')) return false;
  do {
    j->arena = s->scratch;
    const char *key = json_string(j);
    if (!key || !json_take(j, ':')) return false;
    bool events = strcmp(key, "traceEvents") == 0;
    if (!(events ? read_events(j, s, session) : json_skip(j))) return false;
    any |= events;
  } while (json_take(j, ','));
  return any && json_take(j, '}') && json_done(j);
}

/* ---- what is told ---- */

static int by_number(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static int by_time(const void *a, const void *b) {
  const struct traced_name *x = *(struct traced_name *const *)a, *y = *(struct traced_name *const *)b;
  return x->time != y->time ? (x->time < y->time) - (x->time > y->time) : strcmp(x->name, y->name);
}

/* Rounded to what a reader wants to know, in any locale. */
static void put_fixed(struct str *out, double value, int digits) {
  long long scale = 1, rounded;
  for (int i = 0; i < digits; i++) scale *= 10;
  rounded = (long long)(value * (double)scale + 0.5);
  str_printf(out, "%lld", rounded / scale);
  if (digits) str_printf(out, ".%0*lld", digits, rounded % scale);
}

static void put_time(struct str *out, double us) {
  put_fixed(out, us >= 1e6 ? us * 1e-6 : us >= 1e3 ? us * 1e-3 : us, 2);
  str_put(out, us >= 1e6 ? " s" : us >= 1e3 ? " ms" : " us");
}

static void put_share(struct str *out, const char *what, double part, double whole) {
  struct str share = str_make(out->arena);
  put_fixed(&share, whole > 0 ? 100 * part / whole : 0, 1);
  str_printf(out, "%-16s%5s %%   ", what, share.data);
}

static void put_names(struct str *out, struct summary *s, bool waits, double whole) {
  struct traced_name **all = arena_new_array(s->scratch, s->names.count + 1, struct traced_name *);
  int n = 0;
  for (uint32_t i = 0; i < s->names.count; i++) {
    struct traced_name *name = s->names.entries[i].value;
    if ((strcmp(name->category, "wait") == 0) == waits) all[n++] = name;
  }
  qsort(all, (size_t)n, sizeof *all, by_time);
  for (int i = 0; i < n && i < (waits ? 2 : SHOWN); i++) {
    const char *name = all[i]->name;
    if (waits && strncmp(name, "wait: ", 6) == 0) name += 6;
    str_printf(out, "%s%s ", i ? ", " : waits ? "longest for " : "", name);
    put_fixed(out, 100 * all[i]->time / whole, 1);
    str_put(out, " %");
    if (!waits && i == 0 && all[i]->where) str_printf(out, " (%s)", all[i]->where);
  }
  str_putc(out, '\n');
}

static void tell(struct summary *s, const char *path, struct str *out) {
  double whole = s->steps_time * (s->nrows ? s->nrows : 1);
  double n = s->nsteps, rest = whole - s->work - s->copies - s->waits;
  qsort(s->steps, (size_t)s->nsteps, sizeof *s->steps, by_number);
  str_printf(out, "%s: %d steps of %s on %d device%s\n", path, s->nsteps, s->kind, s->nrows,
             s->nrows == 1 ? "" : "s");
  str_put(out, "a step          ");
  put_time(out, s->steps[s->nsteps / 2]);
  str_put(out, ", the median; ");
  put_time(out, s->steps[0]);
  str_put(out, " to ");
  put_time(out, s->steps[s->nsteps - 1]);
  str_put(out, "\nof the devices' time in steps:\n");
  put_share(out, "  computing", s->work, whole);
  put_names(out, s, false, whole);
  put_share(out, "  copies", s->copies, whole);
  put_fixed(out, s->bytes / n * 1e-6, 3);
  str_put(out, " MB a step\n");
  put_share(out, "  waiting", s->waits, whole);
  put_names(out, s, true, whole);
  put_share(out, "  the rest", rest > 0 ? rest : 0, whole);
  str_put(out, "begun late, ended early, or its thread was elsewhere\nbeside the steps:\n  input         ");
  put_time(out, s->input / n);
  str_put(out, " a step; checkpoints ");
  put_time(out, s->checkpoint);
  str_put(out, ", evaluation ");
  put_time(out, s->evaluation);
  str_put(out, " in all\n");
}

static void tell_json(const struct summary *s, struct str *out) {
  const struct {
    const char *name;
    double value;
  } numbers[] = {{"computing", s->work},        {"copies", s->copies}, {"waiting", s->waits},
                 {"steps_time", s->steps_time}, {"input", s->input},   {"checkpoints", s->checkpoint},
                 {"evaluation", s->evaluation}, {"bytes", s->bytes}};
  str_put(out, "{\"kind\":");
  json_quote(out, s->kind);
  str_printf(out, ",\"steps\":%d,\"devices\":%d", s->nsteps, s->nrows);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    str_printf(out, ",\"%s\":", numbers[i].name);
    str_double(out, numbers[i].value);
  }
  str_put(out, "}\n");
}

static enum dgc_status trace(struct dgc_session *s, const char *path, bool json, const char **text) {
  struct str out = session_text(s);
  const struct source *file = source_read(s->call, path, MAX_FILE, &s->diags);
  if (!file) return session_unread(s);
  struct summary sum = {.scratch = s->call, .names = map_make(s->call)};
  struct json j = {s->call, file->text, file->text + file->len};
  if (!read_trace(&j, &sum, s))
    return session_fail(s, DGC_INPUT, "%s is no trace: dgc train --trace writes one", path);
  if (!sum.nsteps) return session_fail(s, DGC_INPUT, "%s: no step is in it", path);
  if (json)
    tell_json(&sum, &out);
  else
    tell(&sum, path, &out);
  *text = out.data;
  return DGC_OK;
}

enum dgc_status dgc_trace(struct dgc_session *s, const char *path, bool json, const char **text) {
  *text = "";
  CALL(s, trace(s, path, json, text));
}
