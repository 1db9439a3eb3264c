/* SPDX-License-Identifier: Apache-2.0 */
/* The metric that a training watches. Its best value, the step of that and how many evaluations have passed since are
 * part of a checkpoint: a training that goes on ends where one that was never stopped does. */
#include "session/best.h"

#include "ir/graph/graph.h"
#include "session/model.h"
#include "session/state/best.h"

#include <math.h>
#include <string.h>

bool session_evaluates_often(const struct dgc_session *s) {
  const struct options *o = &s->options;
  return o->eval_every.steps || o->eval_every.epochs || o->keep_best || o->patience || o->metric_to_watch;
}

static enum dgc_status no_metric(struct dgc_session *s, const char *name) {
  const struct model *m = s->model;
  const char **names = arena_new_array(s->call, (size_t)m->nmeasures + 1, const char *);
  for (int i = 0; i < m->nmeasures; i++) names[i] = arena_printf(s->call, "val.%s", m->measures[i]);
  session_fail(s, DGC_USAGE, "metric-to-watch: evaluation gives no '%s'", name);
  diag_closest(&s->diags, LOC_NONE, name, names, (size_t)m->nmeasures, "it gives");
  return DGC_USAGE;
}

static bool is_loss(const struct model *m, const char *name) {
  for (int i = 0; m->train && i < m->train->noutputs; i++)
    if (m->train->outputs[i].role == OUTPUT_LOSS && strcmp(m->train->outputs[i].name, name) == 0) return true;
  return false;
}

/* Of a loss the least is best; of another metric nobody can know. */
static enum dgc_status no_direction(struct dgc_session *s, const char *name) {
  session_fail(s, DGC_USAGE, "metric-to-watch: which '%s' is best, the least or the greatest?", name);
  diag_help(&s->diags, LOC_NONE, "write %s:min or %s:max", name, name);
  return DGC_USAGE;
}

enum dgc_status session_watch(struct dgc_session *s) {
  s->best->last = (struct best_so_far){0};
  const char *asked = s->options.metric_to_watch;
  const struct model *m = s->model;
  struct best_so_far *b = &s->best->so_far;
  const char *colon = asked ? strrchr(asked, ':') : NULL;
  const char *name = colon ? arena_strndup(s->call, asked, (size_t)(colon - asked)) : asked;
  bool most = colon && strcmp(colon, ":max") == 0, least = colon && strcmp(colon, ":min") == 0;
  int metric = asked ? -1 : 0;
  for (int i = 0; asked && i < m->nmeasures; i++)
    if (strncmp(name, "val.", 4) == 0 && strcmp(name + 4, m->measures[i]) == 0) metric = i;
  if (metric < 0) return no_metric(s, name);
  if (asked && !most && !least && (colon || !is_loss(m, m->measures[metric]))) return no_direction(s, name);
  const char *what = arena_printf(s->arena, "val.%s:%s", m->measures[metric], most ? "max" : "min");
  if (!b->what || strcmp(b->what, what) != 0) {
    if (b->what)
      diag_note(&s->diags, LOC_NONE, "the checkpoint watched %s: what was best there does not count for %s",
                b->what, what);
    *b = (struct best_so_far){.what = what, .step = -1, .evaluated = b->evaluated};
  }
  b->metric = metric;
  b->most = most;
  return DGC_OK;
}

bool session_watched(struct dgc_session *s, const struct dgc_metric *metrics) {
  struct best_so_far *b = &s->best->so_far;
  double value = metrics[b->metric].value;
  b->evaluated = s->position.step;
  b->waited++;
  if (isnan(value) || (b->step >= 0 && !(b->most ? value > b->value : value < b->value))) return false;
  b->value = value;
  b->step = s->position.step;
  b->waited = 0;
  return true;
}

bool session_evaluation_due(const struct dgc_session *s) {
  static const struct every each_epoch = {.epochs = 1};
  const struct every *e = &s->options.eval_every;
  if (s->best->so_far.evaluated == s->position.step) return false;
  return every_due(e->steps || e->epochs ? e : &each_epoch, &s->position);
}

bool session_keeps_last(const struct dgc_session *s, const struct goal *goal) {
  return s->options.keep_best && s->best->so_far.evaluated != s->position.step &&
         goal_is_reached(goal, &s->position);
}

void session_leave_last(struct dgc_session *s, const struct best_so_far *before) {
  s->best->last = s->best->so_far;
  s->best->so_far = *before;
}

bool session_impatient(const struct dgc_session *s) {
  return s->options.patience && s->best->so_far.waited >= s->options.patience;
}

void session_say_impatient(struct dgc_session *s) {
  const struct best_so_far *b = &s->best->so_far;
  int len = (int)(strrchr(b->what, ':') - b->what);
  long long waited = (long long)b->waited;
  struct str best = str_make(s->call);
  str_float(&best, (float)b->value);
  if (b->step < 0)
    diag_note(&s->diags, LOC_NONE, "stopped early after step %lld: %.*s was no number in %lld evaluation%s",
              (long long)s->position.step, len, b->what, waited, waited == 1 ? "" : "s");
  else
    diag_note(
        &s->diags, LOC_NONE,
        "stopped early after step %lld: %.*s has not become better in %lld evaluation%s; it was best, %s, "
        "after step %lld%s%s",
        (long long)s->position.step, len, b->what, waited, waited == 1 ? "" : "s", best.data,
        (long long)b->step, s->options.keep_best ? ", which is in " : "",
        s->options.keep_best ? s->options.keep_best : "");
}

void session_say_unmeasured(struct dgc_session *s) {
  const struct best_so_far *b = &s->best->so_far;
  if (!b->what || b->step >= 0 || b->waited < 1) return;
  int len = (int)(strrchr(b->what, ':') - b->what);
  const char *kept = s->options.keep_best;
  diag_warning(&s->diags, LOC_NONE, "%.*s was no number in %lld evaluation%s%s%s%s", len, b->what,
               (long long)b->waited, b->waited == 1 ? "" : "s", kept ? ": nothing was kept in " : "",
               kept ? kept : "", kept ? "" : ", so that none is the best");
}

bool dgc_best(struct dgc_session *s, struct dgc_metric *metric, int64_t *step) {
  const struct best_so_far *b = s->best->last.what ? &s->best->last : &s->best->so_far;
  if (!b->what || b->step < 0) return false;
  *metric = (struct dgc_metric){s->best->names[b->metric], b->value};
  *step = b->step;
  return true;
}
