/* The files of an entry, and training over them. */
#include "session/session.h"

#include "passes/strategy/strategy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- which files --- */

/* "image=x.npy": the paths, if the name is `name`. */
static const char *given_path(const struct list *l, const char *name) {
  size_t len = strlen(name);
  for (int i = l->count - 1; i >= 0; i--)
    if (strncmp(l->items[i], name, len) == 0 && l->items[i][len] == '=') return l->items[i] + len + 1;
  return NULL;
}

static bool names_files(const struct list *l) {
  for (int i = 0; i < l->count; i++)
    if (strchr(l->items[i], '=')) return true;
  return false;
}

/* Every name that was given must be an input. */
static enum dgc_status check_names(struct dgc_session *s, const struct list *l) {
  const struct model *m = s->model;
  const char **names = arena_new_array(s->call, (size_t)m->ninputs, const char *);
  for (int i = 0; i < m->ninputs; i++) names[i] = m->inputs[i].name;
  for (int i = 0; i < l->count; i++) {
    const char *equals = strchr(l->items[i], '=');
    if (!equals) continue;
    const char *name = arena_strndup(s->call, l->items[i], (size_t)(equals - l->items[i]));
    bool known = false;
    for (int k = 0; k < m->ninputs; k++) known |= strcmp(name, names[k]) == 0;
    if (known) continue;
    session_fail(s, DGC_USAGE, "model %s has no input '%s'", m->name, name);
    diag_closest(&s->diags, LOC_NONE, name, names, (size_t)m->ninputs, "inputs are");
    return DGC_USAGE;
  }
  return DGC_OK;
}

static bool declared(struct dgc_session *s, const char *split, const char *input, struct data_spec *out) {
  const struct model *m = s->model;
  for (int i = 0; i < m->ndata; i++) {
    const struct model_data *d = &m->data[i];
    if (strcmp(d->split, split) != 0 || strcmp(d->input, input) != 0) continue;
    *out = (struct data_spec){.name = input,
                              .path = d->paths[0],
                              .more = d->paths + 1,
                              .nmore = d->npaths - 1,
                              .loc = d->loc,
                              .roots = session_roots(s)};
    return true;
  }
  return false;
}

/* "x.npz:a": x.npz. */
static bool file_is_there(const struct dgc_session *s, const char *path) {
  const char *colon = strrchr(path, ':');
  return access(path, F_OK) == 0 ||
         (colon && access(arena_strndup(s->call, path, (size_t)(colon - path)), F_OK) == 0);
}

/* "a.npy,b.npy": two files, unless it is the name of one that is there. */
static struct data_spec split_files(const struct dgc_session *s, const char *input, const char *paths) {
  struct data_spec spec = {.name = input, .path = paths};
  int commas = 0;
  for (const char *p = paths; *p; p++) commas += *p == ',';
  if (!commas || file_is_there(s, paths)) return spec;
  const char **all = arena_new_array(s->call, (size_t)commas + 1, const char *);
  for (int i = 0; i <= commas; i++) {
    size_t len = strcspn(paths, ",");
    all[i] = arena_strndup(s->call, paths, len);
    paths += len + 1;
  }
  return (struct data_spec){.name = input, .path = all[0], .more = all + 1, .nmore = commas};
}

/* Where an input comes from: what was given, then what the model declares. */
static bool find_file(struct dgc_session *s, enum data_use use, const char *input, struct data_spec *out) {
  const struct options *o = &s->options;
  const char *path = NULL;
  bool same_data = use == DATA_TRAIN || o->eval_rows || !s->trained;
  if (use != DATA_TRAIN) path = given_path(&o->eval_data, input);
  if (!path && same_data) path = given_path(&o->data, input);
  if (path) {
    *out = split_files(s, input, path);
    return true;
  }
  if (use == DATA_TRAIN) return declared(s, "train", input, out);
  /* Test data of the model must not be joined with other files that were given for training. */
  if (s->trained && !o->eval_rows && !o->eval_data.count && names_files(&o->data)) return false;
  return declared(s, "test", input, out) || (o->eval_rows && declared(s, "train", input, out));
}

static const enum entry_kind entries_of[] = {ENTRY_TRAIN, ENTRY_EVAL, ENTRY_PREDICT};

static enum dgc_status find_files(struct dgc_session *s, enum data_use use, bool optional,
                                  struct data_spec *specs, int *count) {
  const struct graph *g = entry_source(s, entries_of[use]);
  *count = 0;
  for (int i = 0; i < s->model->ninputs; i++) {
    const char *name = s->model->inputs[i].name;
    if (!graph_find(g, name)) continue;
    if (find_file(s, use, name, &specs[*count]))
      (*count)++;
    else if (optional) {
      *count = 0;
      return DGC_OK;
    } else
      return session_fail(s, DGC_USAGE, "no data for input %s of model %s: give --data %s=FILE", name,
                          s->model->name, name);
  }
  return DGC_OK;
}

enum dgc_status session_data(struct dgc_session *s, enum data_use use, bool optional, struct dataset **out) {
  const struct options *o = &s->options;
  struct data_spec *specs = arena_new_array(s->call, (size_t)s->model->ninputs, struct data_spec);
  int count;
  *out = NULL;
  enum dgc_status status = check_names(s, &o->data);
  if (!status) status = check_names(s, &o->eval_data);
  if (!status) status = find_files(s, use, optional, specs, &count);
  if (status || (optional && !count)) return status;
  if (!count)
    return session_fail(s, DGC_USAGE, "model %s has no inputs: nothing to run over", s->model->name);
  const char *rows = use == DATA_TRAIN || (!o->eval_rows && !s->trained) ? o->rows : o->eval_rows;
  struct dataset *ds = dataset_open(s->call, NULL, specs, count, rows, &s->diags);
  for (int i = 0; ds && i < s->model->ninputs; i++) {
    const struct model_input *input = &s->model->inputs[i];
    if (!dataset_find(ds, input->name)) continue;
    struct type row = type_make((enum dtype)input->type.dtype, input->type.rank - 1, input->type.dim + 1);
    bool fits = dataset_expect(ds, input->name, &row, &s->diags);
    if (fits && input->low <= input->high) {
      fits = dataset_check_range(ds, input->name, input->low, input->high, &s->diags);
      if (!fits) diag_note(&s->diags, input->limited, "the model can use no other values");
    }
    if (fits) continue;
    dataset_close(ds);
    ds = NULL;
  }
  *out = ds;
  return ds ? DGC_OK : session_unread(s);
}

enum dgc_status session_batch_run(struct dgc_session *s, enum entry_kind kind, const struct dataset *ds,
                                  const struct batch *b, struct loaded **out) {
  enum dgc_status status = session_plan(s, kind, b->rows, out);
  if (status) return status;
  struct loaded *l = *out;
  for (int i = 0; i < ds->ncolumns; i++) {
    int input = plan_input(l->plan, ds->columns[i].name);
    if (input >= 0 && !exec_write(l->exec, input, b->columns[i].data)) return session_device_failed(s);
  }
  return session_run(s, l);
}

enum dgc_status session_takes(struct dgc_session *s, enum entry_kind kind, int64_t rows) {
  struct graph *g = session_source(s, s->call, kind, rows);
  struct strategy strategy;
  return strategy_resolve(s->call, g, &g->config, &strategy, &s->diags) ? DGC_OK : session_blame(s);
}

enum dgc_status session_takes_all(struct dgc_session *s, enum entry_kind kind, int64_t all) {
  int64_t batch = session_batch(s), last = all % batch;
  enum dgc_status status = last ? session_takes(s, kind, last) : DGC_OK;
  if (status)
    diag_note(&s->diags, LOC_NONE, "%s: %lld rows in batches of %lld end with one of %lld", entry_names[kind],
              (long long)all, (long long)batch, (long long)last);
  return status;
}

/* --- training --- */

/* A batch whose losses are on their way from the devices. */
struct unread {
  const struct loaded *l; /* NULL: none */
  int64_t rows, step;
  struct late_read *losses; /* by output */
  int room;                 /* for so many */
};

struct training {
  struct dgc_session *s;
  struct dataset *data;
  struct loader *loader;
  int64_t epochs, steps; /* where to end; -1 = does not matter */
  double begin, epoch_begin, reported;
  double loss_sum, loss_count; /* of the epoch so far */
  struct unread unread, spare;
  int64_t rows, first_step, saved_step;
  bool stop;    /* on_progress wants it */
  bool stopped; /* dgc_stop was called */
};

/* Listens to dgc_stop. */
static struct training *listen(struct training *t) {
  t->stopped = t->stopped || session_stopped(t->s);
  return t;
}

static bool done(const struct training *t) {
  const struct position *p = &t->s->position;
  return t->stop || t->stopped || (t->epochs >= 0 && p->epoch >= t->epochs) ||
         (t->steps >= 0 && p->step >= t->steps);
}

/* What ends the training: a loss that is no number, by its name if there are several. */
static enum dgc_status no_number(const struct training *t, const struct loaded *l, int output, double value) {
  struct dgc_session *s = t->s;
  int losses = 0;
  for (int i = 0; i < l->plan->noutputs; i++) losses += l->plan->outputs[i].role == OUTPUT_LOSS;
  session_fail(s, DGC_MISMATCH, "the loss%s%s is %s at step %lld: the training ends", losses > 1 ? " " : "",
               losses > 1 ? l->plan->outputs[output].name : "", isnan(value) ? "not a number" : "infinite",
               (long long)t->unread.step);
  if (t->saved_step > t->first_step)
    diag_help(&s->diags, LOC_NONE, "%s holds step %lld; --allow-nan goes on all the same",
              s->options.checkpoint, (long long)t->saved_step);
  else
    diag_help(&s->diags, LOC_NONE, "nothing has been saved; --allow-nan goes on all the same");
  return DGC_MISMATCH;
}

/* Adds the losses that are on their way, and weighs their batch by its rows. */
static enum dgc_status add_loss(struct training *t) {
  const struct loaded *l = t->unread.l;
  int64_t rows = t->unread.rows;
  t->unread.l = NULL;
  for (int i = 0; l && i < l->plan->noutputs; i++) {
    const struct plan_value *v = &l->plan->outputs[i];
    if (v->role != OUTPUT_LOSS) continue;
    double value;
    enum dgc_status status = output_collect(t->s, l, i, &t->unread.losses[i], &value);
    if (status) return status;
    if (!isfinite(value) && !t->s->options.allow_nan) return no_number(t, l, i, value);
    t->loss_sum += value * (double)rows;
  }
  t->loss_count += l ? (double)rows : 0;
  return DGC_OK;
}

/* Asks for the losses of this batch before it waits for those of the last one, so that the devices have work
 * meanwhile. */
static enum dgc_status next_loss(struct training *t, const struct loaded *l, int64_t rows) {
  struct unread next = t->spare;
  int noutputs = l->plan->noutputs;
  next.l = l;
  next.rows = rows;
  next.step = t->s->position.step + 1;
  if (next.room < noutputs) {
    next.room = noutputs;
    next.losses = arena_new_array(t->s->call, (size_t)noutputs, struct late_read);
  }
  for (int i = 0; i < noutputs; i++)
    if (l->plan->outputs[i].role == OUTPUT_LOSS && !exec_post(l->exec, i, &next.losses[i]))
      return session_device_failed(t->s);
  enum dgc_status status = add_loss(t);
  t->spare = t->unread;
  t->unread = next;
  return status;
}

static enum dgc_status report(struct training *t, const struct batch *b) {
  struct dgc_session *s = t->s;
  bool due = b->last || (s->on_progress && now() - t->reported >= 0.1);
  enum dgc_status status = due ? add_loss(t) : DGC_OK;
  if (status || !due || !s->on_progress) return status;
  double time = t->reported = now();
  struct dgc_progress p = {
      .epoch = b->epoch,
      .epochs = t->epochs > 0 ? t->epochs : 0,
      .step = b->index + 1,
      .steps = loader_batches_per_epoch(t->loader),
      .total_steps = s->position.step,
      .loss = t->loss_count > 0 ? t->loss_sum / t->loss_count : NAN,
      .seconds = time - t->begin,
      .examples_per_second = time > t->epoch_begin ? (double)t->rows / (time - t->epoch_begin) : 0,
      .epoch_end = b->last,
  };
  s->listening = true;
  if (!s->on_progress(s->on_progress_user, &p)) t->stop = true;
  s->listening = false;
  return DGC_OK;
}

/* What is saved is good by all that can be known: the losses up to this step, and the variables that it leaves. */
static enum dgc_status save(struct training *t) {
  struct dgc_session *s = t->s;
  enum dgc_status status = add_loss(t);
  if (!status) status = session_save(s, s->options.checkpoint, !s->options.allow_nan);
  if (!status) t->saved_step = s->position.step;
  return status;
}

static enum dgc_status train_batch(struct training *t, const struct batch *b) {
  struct dgc_session *s = t->s;
  struct loaded *l;
  enum dgc_status status = session_batch_run(s, ENTRY_TRAIN, t->data, b, &l);
  if (!status) status = next_loss(t, l, b->rows);
  if (status) return status;
  t->rows += b->rows;
  s->position.step++;
  s->position.epoch = b->last ? b->epoch + 1 : b->epoch;
  s->position.index = b->last ? 0 : b->index + 1;
  status = report(t, b);
  if (status) return status;
  if (b->last) {
    t->loss_sum = t->loss_count = 0;
    t->rows = 0;
    t->epoch_begin = now();
  }
  const struct options *o = &s->options;
  bool due = b->last || (o->checkpoint_every && s->position.step % o->checkpoint_every == 0);
  return o->checkpoint && due && !done(listen(t)) ? save(t) : DGC_OK;
}

/* A training that would go on from where another one ended, and ends there as well. */
static void say_done(const struct training *t) {
  const struct position *p = &t->s->position;
  const struct options *o = &t->s->options;
  if (!p->step || !done(t)) return;
  bool epochs = t->epochs >= 0 && p->epoch >= t->epochs;
  long long is = (long long)(epochs ? p->epoch : p->step),
            wanted = (long long)(epochs ? t->epochs : t->steps);
  diag_note(&t->s->diags, LOC_NONE,
            "nothing is left to do: %lld %s%s done, and --%ss %lld%s asks for no more", is,
            epochs ? "epoch" : "step", is == 1 ? " is" : "s are", epochs ? "epoch" : "step", wanted,
            epochs && !o->epochs_given ? " (the default)" : "");
}

/* How the rows are dealt to workers, which the strategy knows. */
static enum dgc_status shard(struct dgc_session *s, struct loader_options *o) {
  if (!s->options.auto_shard || !shard_find(s->options.auto_shard, &o->shard) || o->shard == SHARD_DATA)
    return DGC_OK;
  struct graph *g = session_source(s, s->call, ENTRY_TRAIN, o->batch);
  struct strategy strategy;
  if (!strategy_resolve(s->call, g, &g->config, &strategy, &s->diags)) return session_blame(s);
  int *first = arena_new_array(s->call, (size_t)strategy.towers + 1, int);
  int64_t *shares = arena_new_array(s->call, (size_t)strategy.towers, int64_t);
  o->workers = strategy_tasks(&strategy, &g->config.target, first);
  first[o->workers] = strategy.towers;
  for (int i = 0; i < o->workers; i++)
    shares[i] = tower_first_row(first[i + 1], strategy.towers, o->batch) -
                tower_first_row(first[i], strategy.towers, o->batch);
  o->shares = shares;
  return DGC_OK;
}

/* Whether the strategy takes each batch that comes, the last of an epoch too, before the first one is run. */
static enum dgc_status check_batches(struct training *t) {
  struct dgc_session *s = t->s;
  int64_t each = loader_batches_per_epoch(t->loader), first = s->position.index, count = each;
  if (t->steps >= 0 && t->steps - s->position.step < each) count = t->steps - s->position.step;
  enum dgc_status status = DGC_OK;
  for (int64_t i = 0, before = 0; !status && i < count; i++) {
    int64_t rows = loader_batch_rows(t->loader, (first + i) % each);
    if (rows != before) status = session_takes(s, ENTRY_TRAIN, rows);
    if (status)
      diag_note(&s->diags, LOC_NONE, "batch %lld of the %lld of an epoch of %lld rows has %lld",
                (long long)((first + i) % each + 1), (long long)each, (long long)t->data->rows,
                (long long)rows);
    before = rows;
  }
  return status;
}

/* The end of a training that is not complete, because it was stopped or because data cannot be read: the steps that
 * were done are kept. */
static enum dgc_status end_early(struct training *t, enum dgc_status why) {
  struct dgc_session *s = t->s;
  const char *path = s->options.checkpoint, *end = why == DGC_STOPPED ? "stopped" : "ended";
  long long step = (long long)s->position.step;
  if (s->position.step == t->first_step)
    diag_note(&s->diags, LOC_NONE, "%s before step %lld: nothing is lost", end, step + 1);
  else if (!path)
    diag_note(&s->diags, LOC_NONE, "%s after step %lld: nothing was saved, as there is no --checkpoint FILE",
              end, step);
  else {
    enum dgc_status status = t->saved_step == s->position.step ? DGC_OK : save(t);
    if (status) return status;
    diag_note(&s->diags, LOC_NONE, "%s after step %lld, saved: --resume %s goes on from there", end, step,
              path);
  }
  return why;
}

static enum dgc_status train_over(struct training *t) {
  struct dgc_session *s = t->s;
  struct loader_options lo = {.batch = session_batch(s),
                              .shuffle = !s->options.no_shuffle,
                              .seed = (uint64_t)s->options.seed,
                              .epoch = s->position.epoch,
                              .index = s->position.index};
  s->position.batch = lo.batch;
  t->first_step = t->saved_step = s->position.step;
  if (t->data->rows == 0) return session_fail(s, DGC_INPUT, "no rows to train on");
  enum dgc_status status = shard(s, &lo);
  if (status) return status;
  t->loader = loader_create(s->call, t->data, &lo, &s->diags);
  if (!t->loader) return session_unread(s);
  status = check_batches(t);
  if (!status) say_done(t);
  t->begin = t->epoch_begin = now();
  while (!status && !done(listen(t))) {
    const struct batch *b;
    if (loader_next(t->loader, &b, &s->diags) != LOADER_BATCH) {
      enum dgc_status why = session_unread(s);
      return end_early(t, why);
    }
    status = train_batch(t, b);
    loader_release(t->loader, b);
  }
  if (!status) status = add_loss(t);
  if (status) return status;
  if (t->stopped) return end_early(t, DGC_STOPPED);
  return s->options.checkpoint ? save(t) : DGC_OK;
}

static void end_training(void *training) {
  struct training *t = training;
  loader_destroy(t->loader);
  dataset_close(t->data);
}

static enum dgc_status train(struct dgc_session *s) {
  const struct options *o = &s->options;
  struct training t = {
      .s = s, .epochs = o->epochs_given ? o->epochs : -1, .steps = o->steps_given ? o->steps : -1};
  if (t.epochs < 0 && t.steps < 0) t.epochs = 1;
  struct arena_guard guard;
  arena_guard(&guard, end_training, &t);
  s->trained = true;
  int64_t rows;
  enum dgc_status status = session_need(s, ENTRY_TRAIN);
  if (!status && o->checkpoint_every && !o->checkpoint)
    status = session_fail(s, DGC_USAGE, "checkpoint-every: there is no --checkpoint FILE to save to");
  if (!status) status = session_may_save(s);
  if (!status) status = session_ready(s, ENTRY_TRAIN);
  if (!status)
    status =
        session_evaluation_rows(s, &rows); /* what is wrong with test data is said before hours of training */
  if (!status && rows > 0) status = session_takes_all(s, ENTRY_EVAL, rows);
  if (!status) status = session_data(s, DATA_TRAIN, false, &t.data);
  if (!status) status = train_over(&t);
  arena_unguard(&guard);
  end_training(&t);
  return status;
}

static enum dgc_status train_alone(struct dgc_session *s) {
  enum dgc_status status = session_alone(s);
  return status ? status : train(s);
}

enum dgc_status dgc_train(struct dgc_session *s) { CALL(s, train_alone(s)); }
