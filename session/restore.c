/* SPDX-License-Identifier: Apache-2.0 */
/* Going on from a checkpoint: all of it, or nothing of it. */
#include "session/checkpoint.h"

#include "session/agree.h"
#include "session/claims.h"
#include "session/model.h"
#include "session/names.h"
#include "session/parameters.h"
#include "session/run.h"
#include "session/settle.h"
#include "session/starts.h"
#include "session/state/best.h"
#include "session/state/checkpoints.h"
#include "session/vocabularies.h"

#include "ir/graph/graph.h"
#include "runtime/model_variable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BATCH_BITS = 32, MOST_BITS = 62 }; /* so that a step more, and rows, are still numbers */

/* The number under `key`, if there is one; false if it is none or out of range. */
static bool number(const struct checkpoint *c, const char *key, int64_t max, int64_t *out) {
  const char *text = checkpoint_text(c, key);
  if (!text) return true;
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (end == text || *end || errno || value < 0 || value > max) return false;
  *out = value;
  return true;
}

struct saved {
  bool ours; /* made by dgc */
  int64_t seed, towers;
  struct position position;
  struct best_so_far best;
};

/* False: what there is of it makes no sense. */
static bool read_best(struct dgc_session *s, const struct checkpoint *c, int64_t most,
                      struct best_so_far *out) {
  const char *what = checkpoint_text(c, "watched"), *value = checkpoint_text(c, "best");
  size_t len = what ? strlen(what) : 0;
  const char *end = NULL;
  *out = (struct best_so_far){.step = -1, .evaluated = -1};
  if (!number(c, "evaluated", most, &out->evaluated) || !number(c, "best_step", most, &out->step) ||
      !number(c, "waited", most, &out->waited) || (out->evaluated >= 0) != (what != NULL) ||
      (out->step >= 0) != (value != NULL))
    return false;
  if (what && (len < 5 || (strcmp(what + len - 4, ":min") != 0 && strcmp(what + len - 4, ":max") != 0)))
    return false;
  out->what = what ? arena_strdup(s->arena, what) : NULL;
  if (value) out->value = str_to_double(value, &end);
  return !value || (end != value && !*end && out->value == out->value);
}

/* False where a number is none. Texts of another program mean what it likes: they are not read. */
static bool read_numbers(struct dgc_session *s, const struct checkpoint *c, struct saved *out) {
  const char *format = checkpoint_text(c, "format");
  *out = (struct saved){.seed = s->options.seed, .best = {.step = -1, .evaluated = -1}};
  out->ours = format && strcmp(format, CHECKPOINT_FORMAT) == 0;
  struct position *p = &out->position;
  int64_t most = INT64_C(1) << MOST_BITS, rows;
  return !out->ours ||
         (number(c, "seed", INT64_MAX, &out->seed) && number(c, "towers", 4096, &out->towers) &&
          number(c, "batch", INT64_C(1) << MOST_BATCH_BITS, &p->batch) && number(c, "step", most, &p->step) &&
          number(c, "epoch", most, &p->epoch) && number(c, "epoch_batch", most, &p->index) &&
          number(c, "rows", most, &p->rows) && number(c, "shuffle", 1, &p->shuffle) &&
          number(c, "sample", INT64_MAX, &p->sample) && !__builtin_mul_overflow(p->index, p->batch, &rows) &&
          read_best(s, c, most, &out->best));
}

static bool read_texts(struct dgc_session *s, const struct checkpoint *c, const char *path,
                       struct saved *out) {
  if (!read_numbers(s, c, out)) {
    session_fail(s, DGC_INPUT, "%s: its metadata holds a number that is none", path);
    return false;
  }
  if (out->ours && !words_restore(s, c, true)) {
    session_fail(s, DGC_INPUT, "%s: the words of an input are no list in order", path);
    return false;
  }
  if (out->ours && !parameters_are_good(c)) {
    session_fail(s, DGC_INPUT, "%s: its metadata sets a parameter to what is no value", path);
    return false;
  }
  return true;
}

bool session_is_own_best(struct dgc_session *s, const char *path) {
  struct diags unread;
  struct saved saved;
  struct arena_guard guard;
  if (s->best->so_far.step >= 0 || !s->restored->any) return s->best->so_far.step >= 0;
  struct arena *a = arena_create_guarded(&guard); /* the file is as large as the model */
  diags_init(&unread, a);
  struct checkpoint *c = checkpoint_load(a, path, &unread);
  const char *model = c ? checkpoint_text(c, "model") : NULL;
  bool own = model && strcmp(model, s->model->name) == 0 && read_numbers(s, c, &saved) && saved.ours &&
             saved.seed == s->options.seed && saved.best.step == saved.position.step &&
             saved.position.step >= s->position.step;
  arena_destroy_guarded(a, &guard);
  return own;
}

/* What a checkpoint changes before it is known to fit. */
struct before {
  struct dgc_session *s;
  int64_t seed, towers;
  struct list set;
  struct model *model;
  bool initialised;
  bool aside; /* the values of the variables, where they become those of another model: */
  struct kept kept;
};

static enum dgc_status set_parameters(struct dgc_session *s, const struct checkpoint *c, const char *path,
                                      struct before *before) {
  if (!parameters_restore(s, c, path)) return DGC_OK;
  enum dgc_status status = session_set_aside(s, &before->kept);
  before->aside = !status;
  return status;
}

/* What it is warned of, it was when it was loaded. */
static enum dgc_status compile_again(struct dgc_session *s) {
  struct diag **tail = s->diags.tail;
  enum dgc_status status = session_compile(s);
  if (status) return status;
  *tail = NULL;
  s->diags.tail = tail;
  return DGC_OK;
}

static enum dgc_status fit_options(struct dgc_session *s, const struct checkpoint *c,
                                   const struct saved *saved, const char *path, struct before *before) {
  struct options *o = &s->options;
  enum dgc_status status = saved->ours ? set_parameters(s, c, path, before) : DGC_OK;
  bool changed = before->aside;
  if (status) return status;
  if (!o->seed_given && o->seed != saved->seed) {
    o->seed = saved->seed;
    changed = true;
  } else if (o->seed != saved->seed)
    diag_warning(&s->diags, LOC_NONE, "%s was made with seed %lld, and now it is %lld", path,
                 (long long)saved->seed, (long long)o->seed);
  if (saved->towers && !o->towers) {
    if (saved->towers != s->settlement->config.towers && s->settlement->config.towers > 1)
      diag_note(&s->diags, LOC_NONE, "%lld tower%s, as in %s", (long long)saved->towers,
                saved->towers == 1 ? "" : "s", path);
    o->towers = saved->towers;
    changed = true;
  } else if (saved->towers && saved->towers != o->towers)
    diag_warning(&s->diags, LOC_NONE,
                 "%s was made with %lld towers, and now there are %lld: bits will differ", path,
                 (long long)saved->towers, (long long)o->towers);
  if (!changed) return DGC_OK;
  session_unsettle(s);
  return compile_again(s);
}

/* What only training needs, so that the weights of other programs do without: an optimizer's state, and `step`. */
static bool may_start_anew(const struct dgc_session *s, const char *name) {
  const struct node *n = entry_variable(s, name);
  return n && (node_attr(n, ATTR_slot) || strcmp(name, STEP_VARIABLE) == 0);
}

static enum dgc_status check_step(struct dgc_session *s, const struct checkpoint_entry *e, const char *path) {
  int64_t step;
  memcpy(&step, e->data, sizeof step);
  if (step >= 0 && step <= INT64_C(1) << MOST_BITS) return DGC_OK;
  return session_fail(s, DGC_INPUT, "%s: step is %lld, which is no number of steps that were done", path,
                      (long long)step);
}

/* What the file has, and the model has not. Towers' copies are told by their variable. */
static void note_left_out(struct dgc_session *s, const struct checkpoint *c, const struct model_variable *all,
                          int count) {
  struct map known = map_make(s->call);
  struct list left_out = {0};
  for (int i = 0; i < count; i++) map_put(&known, all[i].name, s);
  for (int i = 0; i < c->count; i++) {
    const char *name = c->entries[i].name;
    if (!map_get(&known, name) && !strchr(name, '/'))
      list_append(s->arena, &left_out, arena_strndup(s->arena, name, strlen(name)));
  }
  s->restored->left_out = left_out;
}

void session_say_left_out(struct dgc_session *s) {
  enum { SHOWN = 8 };
  struct str text = str_make(s->call);
  int count = s->restored->left_out.count;
  session_say_anew(s);
  if (!s->restored->any || !count || !s->options.checkpoint) return;
  for (int i = 0; i < count && i < SHOWN; i++)
    str_printf(&text, "%s%s", i ? ", " : "", (const char *)s->restored->left_out.items[i]);
  if (count > SHOWN) str_printf(&text, " and %d more", count - SHOWN);
  diag_note(&s->diags, LOC_NONE, "resume: the file has what the model has not, and does not save: %s",
            text.data);
  s->restored->left_out = (struct list){0};
}

static enum dgc_status fit_variables(struct dgc_session *s, const struct checkpoint *c, const char *path) {
  struct model_variable *all;
  int count = store_model_variables(s->values->store, s->call, &all);
  enum dgc_status status = DGC_OK;
  bool fits = true;
  struct list anew = {0};
  for (int i = 0; i < count && !status; i++) {
    const struct model_variable *v = &all[i];
    const struct checkpoint_entry *e = checkpoint_find(c, v->name);
    if (e && type_equal(&e->type, &v->type)) {
      if (strcmp(v->name, STEP_VARIABLE) == 0) status = check_step(s, e, path);
      continue;
    }
    if (!e && may_start_anew(s, v->name)) {
      list_append(s->arena, &anew, v->name);
      continue;
    }
    fits = false;
    if (e)
      session_fail(s, DGC_MISMATCH, "%s: %s is %s there, and %s in model %s", path, v->name,
                   checkpoint_type_text(s->call, e), type_text(s->call, &v->type), s->model->name);
    else
      session_fail(s, DGC_MISMATCH, "%s: variable %s of model %s is missing", path, v->name, s->model->name);
  }
  if (!status && !fits) names_help(s, c, all, count);
  if (status || !fits) return status ? status : DGC_MISMATCH;
  s->restored->anew = anew;
  s->restored->anew_told = false;
  note_left_out(s, c, all, count);
  if (anew.count) { /* whatever they are by now */
    s->values->initialised = false;
    status = session_init(s);
    if (status) return status;
    count = store_model_variables(s->values->store, s->call, &all);
  }
  struct map loaded = map_make(s->call);
  for (int i = 0; i < count; i++) {
    if (!checkpoint_find(c, all[i].name)) continue; /* it starts anew */
    if (!model_variable_restore(s->values->store, &all[i], c)) return session_device_failed(s);
    map_put(&loaded, all[i].name, (void *)(uintptr_t)c);
  }
  status = anew.count ? session_starts(s, &loaded, path) : DGC_OK;
  if (status) return status;
  return store_broadcast(s->values->store) ? DGC_OK : session_device_failed(s);
}

static void undo_restore(void *arg) {
  const struct before *b = arg;
  struct dgc_session *s = b->s;
  if (s->model != b->model) session_unsettle(s);
  s->options.seed = b->seed;
  s->options.towers = b->towers;
  s->options.set = b->set;
  s->model = b->model;
  s->values->initialised = b->initialised && !s->values->kept.values;
  if (b->aside) session_put_back(s, &b->kept);
}

static enum dgc_status take_over(struct dgc_session *s, const struct checkpoint *c, const struct saved *saved,
                                 const char *path, struct before *before) {
  enum dgc_status status = session_settle(s);
  if (!status) status = fit_options(s, c, saved, path, before);
  if (!status) status = session_open(s);
  if (!status) status = agree_on_checkpoint(s, &saved->position);
  if (!status) status = session_init(s);
  return status ? status : fit_variables(s, c, path);
}

/* All of the checkpoint, or nothing of it. */
static enum dgc_status restore_from(struct dgc_session *s, const struct checkpoint *c, const char *path,
                                    uint64_t stamp) {
  struct saved saved;
  if (!read_texts(s, c, path, &saved)) return session_unread(s);
  struct before before = {.s = s,
                          .seed = s->options.seed,
                          .towers = s->options.towers,
                          .set = s->options.set,
                          .model = s->model,
                          .initialised = s->values->initialised};
  struct arena_guard guard;
  arena_guard(&guard, undo_restore, &before);
  enum dgc_status status = take_over(s, c, &saved, path, &before);
  arena_unguard(&guard);
  if (status)
    undo_restore(&before);
  else {
    arena_destroy(before.kept.arena);
    if (saved.ours) words_restore(s, c, false);
    s->position = saved.position;
    s->restored->step = saved.position.step;
    s->restored->towers = saved.towers;
    s->restored->file = arena_strdup(s->arena, path);
    s->best->so_far = saved.best;
    s->best->last = (struct best_so_far){0};
    s->restored->any = true;
    session_saved(s, path, stamp);
  }
  return status;
}

enum dgc_status session_restore_other(struct dgc_session *s, const char *path, const char **checksum,
                                      bool *other) {
  enum dgc_status status = session_alone(s);
  *other = false;
  if (status) return status;
  if (!s->model) return session_fail(s, DGC_USAGE, "no model has been loaded");
  uint64_t stamp = claim_stamp(path);
  struct checkpoint *c = checkpoint_load(s->call, path, &s->diags);
  if (!c) return session_unread(s);
  if ((status = names_apply(s, c, path))) return status;
  *other = !*checksum || !c->checksum || strcmp(*checksum, c->checksum) != 0;
  if (*other) status = restore_from(s, c, path, stamp);
  *checksum = c->checksum;
  return status;
}

static enum dgc_status restore(struct dgc_session *s, const char *path) {
  const char *none = NULL;
  bool other;
  return session_restore_other(s, path, &none, &other);
}

bool dgc_starts_anew(struct dgc_session *s, int index, const char **name) {
  if (index < 0 || index >= s->restored->anew.count) return false;
  *name = s->restored->anew.items[index];
  return true;
}

enum dgc_status dgc_restore(struct dgc_session *s, const char *path) { CALL(s, restore(s, path)); }
