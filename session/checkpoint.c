/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of a session: its variables, where training stands, and what the numbers depend on. */
#include "session/checkpoint.h"

#include "ir/ops/op_id.h"
#include "session/agree.h"
#include "session/files.h"
#include "session/model.h"
#include "session/names.h"
#include "session/parameters.h"
#include "session/run.h"
#include "session/settle.h"
#include "session/starts.h"
#include "session/state/best.h"
#include "session/state/checkpoints.h"
#include "session/state/settlement.h"
#include "session/state/values.h"
#include "session/vocabularies.h"

#include "ir/graph/graph.h"
#include "runtime/checkpoint.h"
#include "runtime/checkpoint_writer.h"
#include "runtime/data/atomic.h"
#include "runtime/data/json.h"
#include "runtime/model_variable.h"
#include "runtime/mpi/transport.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMAT "dgc-1"

/* --- whose file it is --- */

static bool is_own(const struct dgc_session *s, const char *path) {
  char real[PATH_MAX];
  if (!realpath(path, real)) return false;
  for (int i = 0; i < s->saving->files.count; i++)
    if (strcmp(s->saving->files.items[i], real) == 0) return true;
  return false;
}

static void make_own(struct dgc_session *s, const char *path, uint64_t stamp) {
  char real[PATH_MAX];
  if (!realpath(path, real)) return;
  if (!is_own(s, path)) list_append(s->arena, &s->saving->files, real);
  if (!s->saving->last || strcmp(s->saving->last, real) != 0) s->saving->last = arena_strdup(s->arena, real);
  s->saving->stamp = stamp;
}

/* What another training has written behind the back of this one is not replaced by what was read before. */
static enum dgc_status is_as_read(struct dgc_session *s, const char *path) {
  char real[PATH_MAX];
  const struct saving *own = s->saving;
  if (!path || !own->last || s->options.overwrite || !realpath(path, real) || strcmp(real, own->last) != 0 ||
      claim_stamp(real) == own->stamp)
    return DGC_OK;
  session_fail(s, DGC_USAGE, "%s has been written by another program since this training read it", path);
  diag_help(&s->diags, LOC_NONE, "begin again, to go on from what it is now");
  return DGC_USAGE;
}

/* `own` (NULL is allowed) knows of files that are the training's all the same. */
static enum dgc_status may_replace(struct dgc_session *s, const char *path,
                                   bool (*own)(struct dgc_session *s, const char *path)) {
  struct stat st;
  if (!path || !session_is_first(s)) return DGC_OK;
  bool holds = stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
  if (holds && !s->options.overwrite && !is_own(s, path) && !(own && own(s, path))) {
    session_fail(s, DGC_USAGE, "%s is there already, and this training would replace it", path);
    diag_help(&s->diags, LOC_NONE, "--resume goes on from it, --overwrite begins anew");
    return DGC_USAGE;
  }
  return atomic_try(s->call, path, &s->diags) ? DGC_OK : DGC_RUNTIME;
}

/* --- saving --- */

static void add_number(struct arena *a, struct checkpoint_text *texts, int *n, const char *key,
                       int64_t value) {
  texts[(*n)++] = (struct checkpoint_text){key, arena_printf(a, "%lld", (long long)value)};
}

/* Of a training that evaluates as it goes. */
static void add_best(struct arena *a, struct checkpoint_text *texts, int *n, const struct best_so_far *b) {
  if (b->evaluated < 0) return;
  add_number(a, texts, n, "evaluated", b->evaluated);
  texts[(*n)++] = (struct checkpoint_text){"watched", arena_strdup(a, b->what)};
  add_number(a, texts, n, "waited", b->waited);
  if (b->step < 0) return;
  add_number(a, texts, n, "best_step", b->step);
  struct str value = str_make(a);
  str_double(&value, b->value);
  texts[(*n)++] = (struct checkpoint_text){"best", value.data};
}

/* The largest of all elements' bits without their signs: at least those of infinity if one is not finite. */
static bool is_finite(const struct model_variable *w, const void *data) {
  const uint32_t *f32 = data;
  const uint64_t *f64 = data;
  int32_t most32 = 0;
  int64_t most64 = 0;
  size_t count = w->bytes / (size_t)dtype_size(w->type.dtype);
  if (w->type.dtype == DT_F32)
    for (size_t i = 0; i < count; i++) {
      int32_t bits = (int32_t)(f32[i] & INT32_MAX);
      most32 = bits > most32 ? bits : most32;
    }
  if (w->type.dtype == DT_F64)
    for (size_t i = 0; i < count; i++) {
      int64_t bits = (int64_t)(f64[i] & INT64_MAX);
      most64 = bits > most64 ? bits : most64;
    }
  return most32 < 0x7f800000 && most64 < 0x7ff0000000000000;
}

static const struct node *variable_of(const struct dgc_session *s, const char *name) {
  const struct graph *g = entry_source(s, ENTRY_INIT);
  const struct node *n = g ? graph_find(g, name) : NULL;
  return n && n->op == OP_variable ? n : NULL;
}

static bool is_trained(const struct dgc_session *s, const char *name) {
  const struct node *n = variable_of(s, name);
  return n && node_int_or(n, ATTR_trainable, 0);
}

/* Takes all of it over in s->building, and hands that to the writer. */
static enum dgc_status copy_all(struct dgc_session *s, const char *path, bool finite) {
  struct arena *a = s->building;
  struct model_variable *all;
  int count = store_model_variables(s->values->store, a, &all);
  struct checkpoint *c = model_variables_save(s->values->store, a, all, count);
  if (!c) return session_device_failed(s);
  for (int i = 0; i < count; i++)
    if (finite && is_trained(s, all[i].name) && !is_finite(&all[i], c->entries[i].data)) {
      session_fail(s, DGC_MISMATCH,
                   "variable %s holds what is no finite number after step %lld: it is not saved", all[i].name,
                   (long long)s->position.step);
      diag_help(&s->diags, LOC_NONE, "%s is as it was before; --allow-nan saves all the same", path);
      return DGC_MISMATCH;
    }
  if (!session_is_first(s)) return DGC_OK; /* the first process writes it */
  struct checkpoint_text *texts = c->texts =
      arena_new_array(a, 20 + (size_t)words_count(s) + (size_t)s->options.set.count, struct checkpoint_text);
  int *n = &c->ntexts;
  texts[(*n)++] = (struct checkpoint_text){"format", FORMAT};
  texts[(*n)++] = (struct checkpoint_text){"model", arena_strdup(a, s->model->name)};
  add_number(a, texts, n, "seed", s->options.seed);
  add_number(a, texts, n, "towers", s->settlement->config.towers);
  add_number(a, texts, n, "batch", s->position.batch ? s->position.batch : session_batch(s));
  add_number(a, texts, n, "step", s->position.step);
  add_number(a, texts, n, "epoch", s->position.epoch);
  add_number(a, texts, n, "epoch_batch", s->position.index);
  if (s->position.rows) add_number(a, texts, n, "rows", s->position.rows);
  if (s->position.rows) add_number(a, texts, n, "shuffle", s->position.shuffle);
  if (s->position.sample) add_number(a, texts, n, "sample", s->position.sample);
  add_best(a, texts, n, &s->best->so_far);
  parameters_save(s, a, texts, n);
  words_save(s, a, texts, n);
  s->building = NULL;
  if (path == s->options.checkpoint) s->saving->step = s->position.step;
  checkpoint_writer_put(s->saving->writer, a, arena_strdup(a, path), c);
  return DGC_OK;
}

/* One status for all: what failed in one process has failed in all. */
static enum dgc_status agreed(struct dgc_session *s, const char *path, enum dgc_status status,
                              enum dgc_status others) {
  unsigned char failed = status != DGC_OK;
  if (!s->transport) return status;
  if (!transport_any(s->transport, &failed)) return session_device_failed(s);
  if (!failed) return DGC_OK;
  transport_fail_together();
  return status ? status : session_fail(s, others, "the first process could not save %s", path);
}

enum dgc_status session_save_begin(struct dgc_session *s, const char *path, bool finite) {
  if (!s->saving->writer) s->saving->writer = checkpoint_writer_create();
  if (!s->saving->writer) arena_exhausted();
  s->building = checkpoint_writer_arena(s->saving->writer);
  enum dgc_status status = copy_all(s, path, finite);
  checkpoint_writer_give(s->saving->writer, s->building);
  s->building = NULL;
  return agreed(s, path, status, DGC_RUNTIME);
}

bool session_save_failed(const struct dgc_session *s) {
  return s->saving->writer && checkpoint_writer_failed(s->saving->writer);
}

bool session_save_wait(struct dgc_session *s, const char *path, struct diags *d) {
  if (s->saving->writer && !checkpoint_writer_finish(s->saving->writer, d)) return false;
  make_own(s, path, claim_stamp(path));
  return true;
}

enum dgc_status session_save_end(struct dgc_session *s, const char *path) {
  return agreed(s, path, session_save_wait(s, path, &s->diags) ? DGC_OK : DGC_RUNTIME, DGC_RUNTIME);
}

enum dgc_status session_claim_file(struct dgc_session *s, const char *path, struct file_claim *out) {
  long holder = 0;
  if (!path || claim_file(s->call, path, out, &holder)) return DGC_OK;
  session_fail(s, DGC_USAGE, "%s is being written by another training: %s %ld", path,
               holder == (long)getpid() ? "of a session of this process," : "process", holder);
  diag_help(&s->diags, LOC_NONE, "name another file for this one, or wait until that one has ended");
  return DGC_USAGE;
}

void session_claim_end(void *claim) { claim_end(claim); }

/* A training that writes the file keeps it. */
static enum dgc_status save_alone(struct dgc_session *s, const char *path) {
  struct file_claim held = {.fd = -1};
  struct arena_guard guard;
  arena_guard(&guard, session_claim_end, &held);
  enum dgc_status status = session_is_first(s) ? session_claim_file(s, path, &held) : DGC_OK;
  status = agreed(s, path, status, DGC_USAGE);
  if (!status) status = session_save_begin(s, path, !s->options.allow_nan);
  if (!status) status = session_save_end(s, path);
  arena_unguard(&guard);
  claim_end(&held);
  return status;
}

static enum dgc_status save(struct dgc_session *s, const char *path) {
  if (!s->model) return session_fail(s, DGC_USAGE, "no model has been loaded");
  enum dgc_status status = session_may_write(s, "the file to save to", path);
  if (!status) status = session_open(s);
  if (!status) status = session_init(s);
  return status ? status : save_alone(s, path);
}

enum dgc_status dgc_save(struct dgc_session *s, const char *path) { CALL(s, save(s, path)); }

/* --- restoring --- */

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
  out->ours = format && strcmp(format, FORMAT) == 0;
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

/* Whether this file has the best of the training that goes on: of what it did before it, or behind the checkpoint that
 * it goes on from, and will do again. */
static bool is_own_best(struct dgc_session *s, const char *path) {
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

enum dgc_status session_may_save(struct dgc_session *s) {
  const struct options *o = &s->options;
  enum dgc_status status = session_files_apart(s, true);
  if (!status) status = may_replace(s, o->checkpoint, NULL);
  if (!status) status = may_replace(s, o->keep_best, is_own_best);
  if (!status) parameters_say_left_out(s, o->checkpoint ? o->checkpoint : o->keep_best);
  return status;
}

enum dgc_status session_claim(struct dgc_session *s) {
  const struct options *o = &s->options;
  enum dgc_status status = DGC_OK;
  if (!o->checkpoint && !o->keep_best) return DGC_OK;
  if (session_is_first(s)) {
    status = session_claim_file(s, o->checkpoint, &s->saving->claims[0]);
    if (!status) status = session_claim_file(s, o->keep_best, &s->saving->claims[1]);
    if (!status) status = is_as_read(s, o->checkpoint);
    if (!status) status = may_replace(s, o->checkpoint, NULL);
    if (!status) status = may_replace(s, o->keep_best, is_own_best);
  }
  return agreed(s, o->checkpoint ? o->checkpoint : o->keep_best, status, DGC_USAGE);
}

void session_release(struct dgc_session *s) {
  for (int i = 0; i < 2; i++) claim_end(&s->saving->claims[i]);
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
  const struct node *n = variable_of(s, name);
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
    make_own(s, path, stamp);
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

void checkpoint_print_texts(struct str *out, bool json, const struct checkpoint *c) {
  if (json) str_put(out, "{\"texts\":{");
  for (int i = 0; i < c->ntexts; i++) {
    if (json) {
      if (i) str_putc(out, ',');
      json_quote(out, c->texts[i].key);
      str_putc(out, ':');
      json_quote(out, c->texts[i].value);
    } else
      str_printf(out, "# %s: %s\n", c->texts[i].key, c->texts[i].value);
  }
  if (json) str_put(out, "},\"tensors\":[");
}
