/* SPDX-License-Identifier: Apache-2.0 */
/* What comes of each statement. None vanishes: where it has a meaning it binds, declares, assigns or gives something,
 * or an error has been reported; one that is only met where it has none, as a metric under `if training`, is told of.
 */
#include "frontend/resolve.h"

void effects_begin(struct resolver *r) {
  r->errors.before_statements = r->diags->nerrors;
  r->effects.last = &r->effects.first;
}

/* Kinds that have a meaning in one reading of the text only. */
static bool has_meaning(const struct stmt *s, enum run_kind run) {
  switch (s->kind) {
  case STMT_ASSIGN:
  case STMT_ADD:
  case STMT_DATA:
  case STMT_STRATEGY: return run == RUN_TRAIN;
  case STMT_TRAIN: return run != RUN_PREDICT;
  case STMT_METRIC: return run == RUN_EVAL;
  case STMT_PREDICT: return run == RUN_PREDICT;
  case STMT_INPUT:
  case STMT_VAR:
  case STMT_STATE:
  case STMT_BIND:
  case STMT_RETURN:
  case STMT_FOR:
  case STMT_SCAN:
  case STMT_IF:
  case STMT_ON: break;
  }
  return true;
}

void effects_settle(struct resolver *r, const struct stmt *s, uint64_t effects) {
  if (!*s->effect) {
    struct met *m = arena_new(r->arena, struct met);
    *m = (struct met){NULL, s, r->frame->function->def->kind, s->loc};
    for (const struct frame *f = r->frame; f && is_library(r, m->shown); f = f->caller) m->shown = f->call;
    *r->effects.last = m;
    r->effects.last = &m->next;
  }
  *s->effect |= STATEMENT_MET;
  /* What the builder has refused is told, even where nobody has asked. */
  if (r->built.first) value_tensor(r, NULL, s->loc);
  bool trained = s->kind != STMT_TRAIN || r->run.kind == RUN_TRAIN; /* in evaluation a loss is a metric */
  if (r->effects.count != effects && trained) *s->effect |= STATEMENT_EFFECTIVE;
  if (r->effects.count != effects || r->budget.stopped || !has_meaning(s, r->run.kind)) return;
  if (!any_errors(r)) report(r, s->loc, "this statement has come to nothing, which is a mistake of dgc's");
}

static const char *missed(const struct stmt *s) {
  switch (s->kind) {
  case STMT_TRAIN: return "a loss is trained where `training` is true, and this statement is never met there";
  case STMT_METRIC: return "a metric is computed in evaluation, and this statement is never met there";
  case STMT_PREDICT: return "a prediction is made in prediction, and this statement is never met there";
  case STMT_INPUT:
  case STMT_VAR:
  case STMT_STATE:
  case STMT_BIND:
  case STMT_ASSIGN:
  case STMT_ADD:
  case STMT_RETURN:
  case STMT_FOR:
  case STMT_SCAN:
  case STMT_IF:
  case STMT_DATA:
  case STMT_STRATEGY:
  case STMT_ON: break;
  }
  return "this has a meaning where `training` is true, and the statement is never met there";
}

void effects_report(struct resolver *r, bool trains) {
  for (const struct met *m = r->effects.first; m; m = m->next) {
    const struct stmt *s = m->stmt;
    bool assigns = s->kind == STMT_ASSIGN || s->kind == STMT_ADD;
    bool done = *s->effect & STATEMENT_EFFECTIVE;
    if (assigns && !done) {
      diag_warning(r->diags, m->shown, "`%s` is never assigned: this is met where `training` is false only",
                   s->names.first->text);
    } else if (!done) {
      report(r, s->loc, "%s", missed(s));
      report_help(r, "`training` is false in evaluation and in prediction: see the `if` around it");
    } else if (assigns && !trains && m->in == DEF_MODEL) {
      diag_warning(r->diags, s->loc, "`%s` is never assigned: the model has no train statement",
                   s->names.first->text);
    }
  }
}
