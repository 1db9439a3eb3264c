/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a session as they are set and asked for: see option_table.c. */
#include "session/options.h"

#include "base/file.h"
#include "session/option_table.h"
#include "session/state/checkpoints.h"
#include "session/state/settlement.h"
#include "session/state/values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool dgc_option(int index, struct dgc_option *out) {
  if (index < 0 || index >= option_count || !session_can_give(out)) return false;
  const struct option_row *r = &option_table[index];
  struct dgc_option whole = {.name = r->name,
                             .value = r->value,
                             .help = r->help,
                             .choices = r->words,
                             .file = r->use,
                             .group = r->group};
  session_give(out, &whole, sizeof whole);
  return true;
}

static const struct option_row *find(const char *name) {
  for (int i = 0; i < option_count; i++)
    if (strcmp(option_table[i].name, name) == 0) return &option_table[i];
  return NULL;
}

static enum dgc_status unknown(struct dgc_session *s, const char *name) {
  const char **names = arena_new_array(s->call, (size_t)option_count, const char *);
  for (int i = 0; i < option_count; i++) names[i] = option_table[i].name;
  session_fail(s, DGC_USAGE, "there is no option '%s'", name);
  const char *option, *here;
  for (int i = 0; dgc_option_elsewhere(name, i, &option, &here); i++) {
    if (option && !find(option)) continue;
    if (option)
      diag_help(&s->diags, LOC_NONE, "it is '%s' here: %s", option, here);
    else
      diag_help(&s->diags, LOC_NONE, "write %s", here);
    return DGC_USAGE;
  }
  diag_closest(&s->diags, LOC_NONE, name, names, option_count, NULL);
  return DGC_USAGE;
}

/* Whether a unit that the option has, or nothing, stands behind its number. */
static bool in_units(const struct option_units *units, const char *text, long long *number) {
  for (const struct option_unit *u = units ? units->all : NULL; *text && u && u->name; u++)
    if (strcmp(u->name, text) == 0) return !__builtin_mul_overflow(*number, u->times, number);
  return !*text;
}

static enum dgc_status read_integer(struct dgc_session *s, const struct option_row *r, const char *value,
                                    int64_t *out) {
  char *end;
  errno = 0;
  long long number = strtoll(value, &end, 10);
  if (end == value || errno || !in_units(r->units, end, &number) || number < r->min || number > r->max) {
    session_fail(s, DGC_USAGE, "%s: expected an integer from %lld to %lld, not '%s'", r->name,
                 (long long)r->min, (long long)r->max, value);
    if (r->fraction && strchr(value, '.')) diag_help(&s->diags, LOC_NONE, "%s", r->fraction);
    if (r->units) diag_help(&s->diags, LOC_NONE, "it may have a unit: %s", r->units->examples);
    return DGC_USAGE;
  }
  *out = number;
  return DGC_OK;
}

static enum dgc_status set_integer(struct dgc_session *s, const struct option_row *r, const char *value,
                                   void *out) {
  return read_integer(s, r, value, out);
}

/* Steps, or a time: the last one holds. */
static enum dgc_status set_steps_or_time(struct dgc_session *s, const struct option_row *r, const char *value,
                                         void *steps) {
  const struct option_unit *u = units_of_time.all;
  size_t len = strlen(value);
  int64_t count;
  while (u->name && (!len || value[len - 1] != *u->name)) u++;
  enum dgc_status status =
      read_integer(s, r, u->name ? arena_strndup(s->call, value, len - 1) : value, &count);
  if (status) {
    diag_help(&s->diags, LOC_NONE, "it is a number of steps, as 500, or a time, as %s",
              units_of_time.examples);
    return status;
  }
  *(int64_t *)steps = u->name ? 0 : count;
  s->options.checkpoint_seconds = u->name ? count * u->times : 0;
  return DGC_OK;
}

/* "500", "1e" */
static enum dgc_status set_every(struct dgc_session *s, const struct option_row *r, const char *value,
                                 void *field) {
  struct every *out = field;
  size_t len = strlen(value);
  char *end;
  errno = 0;
  long long count = strtoll(value, &end, 10);
  bool epochs = strcmp(end, "e") == 0;
  if (!len || end == value || (*end && !epochs) || errno || count < 1 || count > INT64_C(1) << 40)
    return session_fail(s, DGC_USAGE, "%s: write a number of steps, as 500, or of epochs, as 1e, not '%s'",
                        r->name, value);
  *out = (struct every){.steps = epochs ? 0 : count, .epochs = epochs ? count : 0};
  return DGC_OK;
}

bool every_due(const struct every *e, const struct position *p) {
  if (e->epochs) return p->index == 0 && p->epoch % e->epochs == 0;
  return e->steps && p->step % e->steps == 0;
}

bool options_portable(const struct options *o) { return o->bits && strcmp(o->bits, "portable") == 0; }

const char *unordered_bound_of(const char *staleness) {
  static const char word[] = "free";
  size_t len = sizeof word - 1;
  if (strncmp(staleness, word, len) != 0) return NULL;
  return !staleness[len] ? "16" : staleness[len] == ':' ? staleness + len + 1 : NULL;
}

/* "2", "free", "free:4" */
static enum dgc_status set_staleness(struct dgc_session *s, const struct option_row *r, const char *value,
                                     void *staleness) {
  struct options *o = &s->options;
  const char *bound = unordered_bound_of(value);
  int64_t number;
  enum dgc_status status = read_integer(s, r, bound ? bound : value, &number);
  if (status) return status;
  o->free = bound != NULL;
  o->asynchronous = !o->free;
  *(int64_t *)staleness = bound ? 0 : number;
  if (bound) o->unordered_bound = number;
  return DGC_OK;
}

static enum dgc_status set_flag(struct dgc_session *s, const struct option_row *r, const char *value,
                                void *out) {
  bool yes = strcmp(value, "true") == 0 || strcmp(value, "1") == 0;
  if (!yes && strcmp(value, "false") != 0 && strcmp(value, "0") != 0)
    return session_fail(s, DGC_USAGE, "%s: expected true or false, not '%s'", r->name, value);
  *(bool *)out = yes;
  return DGC_OK;
}

/* A name that is empty is one of an input that has no file, which the data say. */
static enum dgc_status check(struct dgc_session *s, const struct option_row *r, const char *value) {
  if (r->use != DGC_NO_FILE && r->path != PATH_OF_INPUT && !*value)
    return session_fail(s, DGC_USAGE, "%s: the name is empty", r->name);
  return r->check ? r->check(s, r, value) : DGC_OK;
}

static enum dgc_status set_text(struct dgc_session *s, const struct option_row *r, const char *value,
                                void *out) {
  enum dgc_status status = check(s, r, value);
  if (!status) *(const char **)out = arena_strdup(s->arena, value);
  return status;
}

static enum dgc_status set_list(struct dgc_session *s, const struct option_row *r, const char *value,
                                void *out) {
  enum dgc_status status = check(s, r, value);
  if (!status) list_append(s->arena, out, value);
  return status;
}

/* What has been made of the old value goes, or the change is refused. */
static enum dgc_status prepare_change(struct dgc_session *s, const struct option_row *r) {
  if (s->source && r->until == UNTIL_LOADED)
    return session_fail(s, DGC_USAGE, "%s must be set before the model is loaded", r->name);
  if (s->values->store && r->until == UNTIL_RUN)
    return session_fail(s, DGC_USAGE, "%s must be set before anything runs", r->name);
  if (r->remakes == DEVICES) s->settlement->listed = (struct target){0};
  if (r->remakes != NOTHING) session_unsettle(s);
  return DGC_OK;
}

enum dgc_status options_set(struct dgc_session *s, const char *name, const char *value) {
  static enum dgc_status (*const set[])(struct dgc_session *, const struct option_row *, const char *,
                                        void *) = {
      [FLAG] = set_flag,           [TEXT] = set_text,   [INTEGER] = set_integer,
      [LIST] = set_list,           [EVERY] = set_every, [STEPS_OR_TIME] = set_steps_or_time,
      [STALENESS] = set_staleness,
  };
  const struct option_row *r = find(name);
  if (!r) return unknown(s, name);
  enum dgc_status status = prepare_change(s, r);
  if (status) return status;
  char *options = (char *)&s->options;
  status = set[r->kind](s, r, value ? value : "true", options + r->offset);
  if (!status && r->given) *(bool *)(options + r->given) = true;
  return status;
}

enum dgc_status options_unset(struct dgc_session *s, const char *name) {
  struct options *o = &s->options;
  const struct option_row *r = find(name);
  if (!r) return unknown(s, name);
  enum dgc_status status = prepare_change(s, r);
  if (status) return status;
  void *field = (char *)o + r->offset;
  switch (r->kind) {
  case FLAG: *(bool *)field = false; break;
  case TEXT: *(const char **)field = NULL; break;
  case LIST: *(struct list *)field = (struct list){0}; break;
  case EVERY: *(struct every *)field = (struct every){0}; break;
  case INTEGER: *(int64_t *)field = 0; break;
  case STEPS_OR_TIME: *(int64_t *)field = o->checkpoint_seconds = 0; break;
  case STALENESS:
    *(int64_t *)field = o->unordered_bound = 0;
    o->free = o->asynchronous = false;
    break;
  }
  if (r->given) *(bool *)((char *)o + r->given) = false;
  if (!o->towers) o->towers = s->restored->towers;
  return DGC_OK;
}

const char *data_alone(const struct list *l) {
  for (int i = 0; i < l->count; i++) {
    const char *path = l->items[i];
    if (strchr(path, '=')) continue;
    if (strcmp(path, "-") == 0 || (access(path, F_OK) == 0 && !file_is_folder(path))) return path;
  }
  return NULL;
}

/* Of "NAME=PATH" what stands behind NAME=; NULL: it is a folder, or another one is given for the name. */
static const char *path_of(const struct option_row *r, const struct list *l, int i) {
  const char *equals = strchr(l->items[i], '=');
  if (r->path != PATH_OF_INPUT && r->path != PATH_OF_OUTPUT) return l->items[i];
  if (!equals) return r->use == DGC_READS && l->items[i] != data_alone(l) ? NULL : l->items[i];
  for (int k = i + 1; r->use == DGC_READS && k < l->count; k++)
    if (strncmp(l->items[i], l->items[k], (size_t)(equals - l->items[i]) + 1) == 0) return NULL;
  return equals + 1;
}

void options_files(struct dgc_session *s, void (*tell)(void *user, const struct option_file *f), void *user) {
  struct options *o = &s->options;
  for (int i = 0; i < option_count; i++) {
    const struct option_row *r = &option_table[i];
    void *field = (char *)o + r->offset;
    struct option_file f = {.name = r->name,
                            .use = r->use,
                            .data = r->path == PATH_OF_INPUT,
                            .renames = r->path == PATH_BEFORE_NAMES,
                            .of_each_process = r->path == PATH_OF_EACH_PROCESS};
    if (r->use == DGC_NO_FILE) continue;
    for (int k = 0; r->kind == LIST && k < ((struct list *)field)->count; k++)
      if ((f.path = path_of(r, field, k))) tell(user, &f);
    if (r->kind == TEXT && (f.path = *(const char **)field)) tell(user, &f);
    int64_t step = r->path == PATH_OF_STEP ? *(int64_t *)field : 0;
    if (step) f.path = batch_file(s->call, step), tell(user, &f);
  }
}

static bool is_set(const struct options *o, const struct option_row *r) {
  const void *field = (const char *)o + r->offset;
  switch (r->kind) {
  case FLAG: return *(const bool *)field;
  case TEXT: return *(const char *const *)field != NULL;
  case INTEGER: return *(const int64_t *)field != 0;
  case LIST: return ((const struct list *)field)->count > 0;
  case EVERY: return ((const struct every *)field)->steps || ((const struct every *)field)->epochs;
  case STEPS_OR_TIME: return o->checkpoint_every || o->checkpoint_seconds;
  case STALENESS: return o->asynchronous || o->free;
  }
  return false;
}

enum dgc_status options_fit_training(struct dgc_session *s) {
  const struct options *o = &s->options;
  for (const struct option_row *r = option_table; r < option_table + option_count; r++) {
    const char *why = s->settlement->free ? r->not_free : NULL;
    if (r->needs && !*(const char *const *)((const char *)o + r->needs)) why = r->needs_why;
    if (why && is_set(o, r)) return session_fail(s, DGC_USAGE, "%s: %s", r->name, why);
  }
  return DGC_OK;
}

const char *batch_file(struct arena *a, int64_t step) {
  return arena_printf(a, "batch-%lld.npz", (long long)step);
}

void options_drop_strategy(struct options *o) {
#define NUMBER(type, name, most) o->name = 0;
#define WORD(name)               o->name = NULL;
#define TEXT(name)               o->name = NULL;
#define FLAG(name)               o->name = false;
#include "ir/graph/config.def"
}

struct goal options_goal(const struct options *o) {
  struct goal g = {.epochs = o->epochs_given ? o->epochs : -1, .steps = o->steps_given ? o->steps : -1};
  if (g.epochs < 0 && g.steps < 0) g.epochs = 1;
  return g;
}

bool goal_is_reached(const struct goal *g, const struct position *p) {
  return (g->epochs >= 0 && p->epoch >= g->epochs) || (g->steps >= 0 && p->step >= g->steps);
}
