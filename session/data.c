/* SPDX-License-Identifier: Apache-2.0 */
/* The files of an entry, and its batches. */
#include "session/data.h"

#include "session/batch_run.h"
#include "session/compile.h"
#include "session/model.h"
#include "session/options.h"
#include "session/own_files.h"
#include "session/ranges.h"
#include "session/rows.h"
#include "session/settle.h"
#include "session/state/calls.h"
#include "session/state/data.h"
#include "session/towers.h"
#include "session/vocabularies.h"

#include "base/file.h"
#include "ir/graph/graph.h"
#include "runtime/data/pipe.h"
#include "runtime/mpi/transport.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

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
  return data_alone(l) != NULL;
}

/* "x.csv" of "folder/x.csv:city:category". */
static size_t length_of_file(const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  return (size_t)(name - path) + strcspn(name, ":");
}

/* Whether a model reads all inputs that it names files for from one file. */
static bool reads_one_file(const struct model *m, const char *split) {
  const char *one = NULL;
  for (int i = 0; i < m->ndata; i++) {
    if (strcmp(m->data[i].split, split) != 0) continue;
    const char *path = m->data[i].paths[0];
    if (m->data[i].npaths != 1) return false;
    if (one && (length_of_file(one) != length_of_file(path) || strncmp(one, path, length_of_file(path)) != 0))
      return false;
    one = path;
  }
  return one != NULL;
}

/* "--data test.csv": what the model reads of its one file, of this one. */
static bool find_alone(struct dgc_session *s, const struct list *l, enum data_use use, const char *input,
                       struct data_spec *out) {
  const struct model *m = s->model;
  const char *file = data_alone(l), *const splits[] = {use == DATA_TRAIN ? "train" : "test", "train"};
  for (int k = 0; file && k < 2; k++)
    for (int i = 0; i < m->ndata && reads_one_file(m, splits[k]); i++) {
      if (strcmp(m->data[i].split, splits[k]) != 0 || strcmp(m->data[i].input, input) != 0) continue;
      const char *path = m->data[i].paths[0];
      *out = (struct data_spec){.name = input,
                                .path = arena_printf(s->call, "%s%s", file, path + length_of_file(path))};
      return true;
    }
  return false;
}

/* What the first of "a.npy,b.npy" takes. A column's name that has a comma stands in quotes: "a.csv:\"x,y\"". */
static size_t length_of_path(const char *paths) {
  const char *p = paths;
  bool quoted = false;
  for (; *p && (quoted || *p != ','); p++)
    if (*p == '"' && (quoted || (p > paths && (p[-1] == ':' || p[-1] == '"')))) quoted = !quoted;
  return (size_t)(p - paths);
}

/* "x.npz:a": x.npz; "x.csv:city:category": x.csv. */
static bool file_is_there(const struct dgc_session *s, const char *path) {
  char *file = arena_strdup(s->call, path), *colon = file;
  if (path[0] == '-' && (!path[1] || path[1] == ':')) return true; /* standard input */
  while (colon && access(file, F_OK) != 0) {
    colon = strrchr(file, ':');
    if (colon && colon[length_of_path(colon)]) return false;
    if (colon) *colon = 0;
  }
  return colon != NULL;
}

/* Every name that was given must be an input. */
static enum dgc_status check_names(struct dgc_session *s, const struct list *l) {
  enum dgc_status status = DGC_OK;
  const char *alone =
      reads_one_file(s->model, "train") || reads_one_file(s->model, "test") ? data_alone(l) : NULL;
  for (int i = 0; i < l->count && !status; i++) {
    const char *equals = strchr(l->items[i], '=');
    if (!equals && l == &s->options.eval_data && file_is_folder(l->items[i]))
      status = session_fail(s, DGC_USAGE,
                            "eval-data: %s is a folder: write --eval-data NAME=FILE, or --eval-rows A:B",
                            l->items[i]);
    else if (!equals && l->items[i] != alone && file_is_there(s, l->items[i]) && !file_is_folder(l->items[i]))
      status = session_fail(s, DGC_USAGE, "data: which input is read from %s? write --data %s=%s",
                            l->items[i], s->model->ninputs ? s->model->inputs[0].name : "NAME", l->items[i]);
    else if (!equals && *l->items[i] && !file_is_there(s, l->items[i]))
      status = session_fail(s, DGC_INPUT, "cannot read %s: %s", l->items[i], strerror(errno));
    if (!*l->items[i])
      status = session_fail(s, DGC_USAGE, "%s: it names no file: write --%s NAME=FILE",
                            l == &s->options.eval_data ? "eval-data" : "data",
                            l == &s->options.eval_data ? "eval-data" : "data");
    if (equals)
      status = session_check_input(s, arena_strndup(s->call, l->items[i], (size_t)(equals - l->items[i])));
  }
  return status;
}

static enum dgc_status check_rows(struct dgc_session *s) {
  enum dgc_status status = DGC_OK;
  const char *name;
  for (int i = 0; !status && (name = rows_input(s, i)); i++) status = session_check_input(s, name);
  return status;
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

/* "a.npy,b.npy": two files, unless it is the name of one that is there. */
static struct data_spec split_files(const struct dgc_session *s, const char *input, const char *paths) {
  struct data_spec spec = {.name = input, .path = paths};
  int commas = 0;
  for (const char *p = paths; *p; p++) commas += *p == ',';
  if (!commas || file_is_there(s, paths)) return spec;
  const char **all = arena_new_array(s->call, (size_t)commas + 1, const char *);
  int count = 0;
  for (size_t len; count == 0 || paths[-1]; paths += len + 1) {
    len = length_of_path(paths);
    all[count++] = arena_strndup(s->call, paths, len);
  }
  return (struct data_spec){.name = input, .path = all[0], .more = all + 1, .nmore = count - 1};
}

/* What was given by one of the options, or the caller has in its place. */
static bool given(struct dgc_session *s, bool eval, enum data_use use, const char *input,
                  struct data_spec *out) {
  const struct list *l = eval ? &s->options.eval_data : &s->options.data;
  const struct data_spec *rows = rows_given(s, eval, input);
  const char *path = rows ? NULL : given_path(l, input);
  if (rows)
    *out = *rows;
  else if (path)
    *out = split_files(s, input, path);
  return rows || path || find_alone(s, l, use, input, out);
}

/* Where an input comes from: what was given, then what the model declares. */
static bool find_file(struct dgc_session *s, enum data_use use, const char *input, struct data_spec *out) {
  const struct options *o = &s->options;
  bool same_data = use == DATA_TRAIN || o->eval_rows || !s->data->trained;
  if (use != DATA_TRAIN && given(s, true, use, input, out)) return true;
  if (same_data && given(s, false, use, input, out)) return true;
  if (use == DATA_TRAIN) return declared(s, "train", input, out);
  /* Test data of the model must not be joined with other files that were given for training. */
  bool others = names_files(&o->data) || rows_any(s, false);
  if (s->data->trained && !o->eval_rows && !o->eval_data.count && !rows_any(s, true) && others) return false;
  return declared(s, "test", input, out) || (o->eval_rows && declared(s, "train", input, out));
}

static struct pipes *session_pipes(struct dgc_session *s) {
  if (!s->pipes) s->pipes = pipes_make(s->arena, &s->calls->stop);
  return s->pipes;
}

/* Where the rows of an input come from, if anything says so. */
static bool find_rows(struct dgc_session *s, enum data_use use, const struct model_input *input,
                      struct data_spec *out) {
  if (!find_file(s, use, input->name, out)) return false;
  struct type *row = arena_new(s->call, struct type);
  *row = type_row(&input->type);
  out->row = row;
  out->pipes = s->transport ? NULL : session_pipes(s);
  out->vocabulary = words_of(s, input->name, use == DATA_TRAIN);
  return true;
}

static bool *nodes_of(struct dgc_session *s, const struct graph *g, const struct node *from) {
  bool *reached = arena_new_array(s->call, g->count, bool);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    reached[n->id] = n == from;
    for (int k = 0; k < n->ninputs; k++) reached[n->id] |= reached[n->inputs[k]->id];
  }
  return reached;
}

/* Where not all that is predicted needs the input, which there is no data for: what does, and how to do without. */
static void say_needed(struct dgc_session *s, enum data_use use, const char *input) {
  const struct graph *g = use == DATA_PREDICT ? s->model->predict : NULL; /* all of it */
  const struct node *n = g ? graph_find(g, input) : NULL;
  const bool *reached = n ? nodes_of(s, g, n) : NULL;
  struct loc loc = LOC_NONE;
  struct str needing = str_make(s->call), others = str_make(s->call);
  for (int i = 0; n && i < g->noutputs; i++) {
    const struct output *o = &g->outputs[i];
    if (o->role != OUTPUT_PREDICT) continue;
    if (!reached[o->node->id]) str_printf(&others, " --output %s=FILE", o->name);
    if (!reached[o->node->id]) continue;
    if (!needing.len) loc = o->node->loc;
    str_printf(&needing, "%s`predict %s`", needing.len ? ", " : "", o->name);
  }
  if (!n || !others.len || !needing.len) return;
  diag_note(&s->diags, loc, "input %s is read for %s alone", input, needing.data);
  diag_help(&s->diags, LOC_NONE, "what does without it is predicted with%s", others.data);
}

/* The input that cannot be read, if it is one by itself. */
static void say_unread(struct dgc_session *s, enum data_use use, const struct data_spec *specs, int count) {
  for (int i = 0; i < count && use == DATA_PREDICT; i++) {
    struct diags silent;
    diags_init(&silent, s->call);
    if (specs[i].path[0] == '-' || specs[i].vocabulary) continue;
    struct dataset *alone = dataset_open(s->call, NULL, &specs[i], 1, NULL, &silent);
    dataset_close(alone);
    if (!alone) say_needed(s, use, specs[i].name);
  }
}

static enum dgc_status no_rows(struct dgc_session *s, enum data_use use, const struct model_input *input) {
  struct data_spec of_training;
  session_fail(s, DGC_USAGE, "no data for input %s of model %s: give --data %s=FILE", input->name,
               s->model->name, input->name);
  if (use != DATA_TRAIN && declared(s, "train", input->name, &of_training))
    diag_help(&s->diags, LOC_NONE,
              "the model has a block `data train` alone: --eval-rows A:B takes rows of that, `data test` "
              "says others");
  say_needed(s, use, input->name);
  return DGC_USAGE;
}

static enum dgc_status find_files(struct dgc_session *s, enum data_use use, bool optional,
                                  struct data_spec *specs, int *count) {
  const struct graph *g = entry_source(s, entries_of[use]);
  bool reads = false;
  *count = 0;
  for (int i = 0; i < s->model->ninputs; i++) {
    const struct model_input *input = &s->model->inputs[i];
    if (!graph_find(g, input->name)) continue;
    reads = true;
    if (find_rows(s, use, input, &specs[*count])) {
      ++*count;
    } else if (optional) {
      *count = 0;
      return DGC_OK;
    } else
      return no_rows(s, use, input);
  }
  /* What is drawn for each row and reads nothing, as pictures of a generator, has as many rows as the data. */
  for (int i = 0; i < s->model->ninputs && use == DATA_PREDICT && !reads; i++)
    *count += find_rows(s, use, &s->model->inputs[i], &specs[*count]);
  return DGC_OK;
}

/* One for each input that data is there for, and how many. */
static enum dgc_status find_specs(struct dgc_session *s, enum data_use use, bool optional,
                                  struct data_spec **specs, int *count) {
  const struct options *o = &s->options;
  *specs = arena_new_array(s->call, (size_t)s->model->ninputs, struct data_spec);
  enum dgc_status status = check_names(s, &o->data);
  if (!status) status = check_names(s, &o->eval_data);
  if (!status) status = check_rows(s);
  return status ? status : find_files(s, use, optional, *specs, count);
}

enum dgc_status session_has_test_data(struct dgc_session *s, bool *there) {
  struct data_spec *specs;
  int count = 0;
  enum dgc_status status = find_specs(s, DATA_EVAL, true, &specs, &count);
  *there = count > 0;
  return status;
}

static enum dgc_status open_data(struct dgc_session *s, enum data_use use, bool optional, bool in_files,
                                 struct dataset **out) {
  const struct options *o = &s->options;
  struct data_spec *specs;
  int count = 0;
  *out = NULL;
  enum dgc_status status = find_specs(s, use, optional, &specs, &count);
  if (status || (optional && !count)) return status;
  for (int i = 0; i < count; i++) specs[i].in_files = in_files;
  if (!count)
    return session_fail(s, DGC_USAGE,
                        s->model->ninputs
                            ? "model %s reads no input here: it has as many rows as the data of one: "
                              "give --data %s=FILE"
                            : "model %s has no inputs: nothing to run over",
                        s->model->name, s->model->ninputs ? s->model->inputs[0].name : "");
  if (use == DATA_TRAIN) status = session_own_files(s, specs, count);
  if (status) return status;
  const char *rows = use == DATA_TRAIN || (!o->eval_rows && !s->data->trained) ? o->rows : o->eval_rows;
  struct dataset *ds = dataset_open(s->call, NULL, specs, count, rows, &s->diags);
  if (!ds) say_unread(s, use, specs, count);
  for (int i = 0; ds && i < s->model->ninputs; i++) {
    const struct model_input *input = &s->model->inputs[i];
    if (!dataset_find(ds, input->name)) continue;
    struct type row = type_row(&input->type);
    bool fits = dataset_expect(ds, input->name, &row, &s->diags);
    if (fits && input->low <= input->high) {
      double wrong;
      fits = dataset_check_range(ds, input->name, input->low, input->high, input->ends, &wrong, &s->diags);
      if (!fits) session_say_limited(s, ds, input, wrong);
    }
    if (fits) continue;
    dataset_close(ds);
    ds = NULL;
  }
  if (ds) words_say_unknown(s);
  *out = ds;
  return ds ? DGC_OK : session_unread(s);
}

enum dgc_status session_data(struct dgc_session *s, enum data_use use, bool optional, struct dataset **out) {
  return open_data(s, use, optional, false, out);
}

enum dgc_status session_data_in_files(struct dgc_session *s, enum data_use use, bool optional,
                                      struct dataset **out) {
  return open_data(s, use, optional, true, out);
}

static void say_untested(struct dgc_session *s) {
  const struct graph *g = entry_there(s, ENTRY_EVAL) ? entry_source(s, ENTRY_EVAL) : NULL;
  struct data_spec spec = {.loc = LOC_NONE};
  bool all = g && (names_files(&s->options.data) || rows_any(s, false)), some = false;
  for (int i = 0; all && i < s->model->ninputs; i++) {
    const char *input = s->model->inputs[i].name;
    if (!graph_find(g, input)) continue;
    some = true;
    all = declared(s, "test", input, &spec);
  }
  if (!all || !some) return;
  diag_note(&s->diags, spec.loc,
            "the model's `data test` is not evaluated on, as it trains on other files than the model's: "
            "give --eval-data NAME=FILE, or cut what it trains on: --rows 0:A --eval-rows A:B");
}

static bool same_files(const struct data_spec *a, const struct data_spec *b) {
  bool same = strcmp(a->path, b->path) == 0 && a->source == b->source && a->nmore == b->nmore;
  for (int i = 0; same && i < a->nmore; i++) same = strcmp(a->more[i], b->more[i]) == 0;
  return same;
}

/* Whether all inputs of both are read from the same files. */
static bool are_same_data(struct dgc_session *s, const struct dataset *a, const struct dataset *b) {
  int both = 0;
  for (int i = 0; i < s->model->ninputs; i++) {
    struct data_spec trained, test;
    const char *input = s->model->inputs[i].name;
    if (!dataset_find(a, input) || !dataset_find(b, input)) continue;
    both++;
    if (!find_file(s, DATA_TRAIN, input, &trained) || !find_file(s, DATA_EVAL, input, &test) ||
        !same_files(&trained, &test))
      return false;
  }
  return both > 0;
}

/* The first number of an input that rows to evaluate on have and none to train on has; false: there is none. */
static bool find_new_class(struct dgc_session *s, const struct dataset *trained, const struct dataset *test,
                           const char *input, int64_t *number) {
  enum { MOST = 1 << 16 };
  const struct column *c = dataset_find(trained, input), *other = dataset_find(test, input);
  if (!c || !other || c->low != other->low || c->high != other->high || c->high - c->low >= MOST)
    return false;
  if (c->low > c->high) return false;
  bool *known = arena_new_array(s->call, (size_t)(c->high - c->low + 1), bool),
       *asked = arena_new_array(s->call, (size_t)(c->high - c->low + 1), bool);
  if (!dataset_classes(trained, input, known) || !dataset_classes(test, input, asked)) return false;
  for (int64_t i = 0; i <= c->high - c->low; i++) {
    *number = c->low + i;
    if (asked[i] && !known[i]) return true;
  }
  return false;
}

/* Rows that are cut out of files in which classes lie one behind the other. */
static void say_new_classes(struct dgc_session *s, const struct dataset *trained,
                            const struct dataset *test) {
  int64_t number;
  for (int i = 0; i < s->model->ninputs; i++) {
    const char *input = s->model->inputs[i].name;
    if (!find_new_class(s, trained, test, input, &number)) continue;
    diag_warning(
        &s->diags, LOC_NONE,
        "rows with %s %lld are evaluated on, and none is trained on: rows are cut as they lie in the "
        "files, those of a folder class by class",
        input, (long long)number);
    diag_help(&s->diags, LOC_NONE,
              "mix the rows of the files, or keep those to evaluate on in files of their own: --eval-data");
  }
}

void session_say_tested(struct dgc_session *s, const struct dataset *trained, const struct dataset *test) {
  if (!test) {
    say_untested(s);
    return;
  }
  int64_t first = trained->begin, behind = first + trained->rows;
  int64_t begin = test->begin > first ? test->begin : first, end = test->begin + test->rows;
  if (end > behind) end = behind;
  if (!are_same_data(s, trained, test)) return;
  if (begin >= end) {
    say_new_classes(s, trained, test);
    return;
  }
  diag_warning(&s->diags, LOC_NONE, "rows %lld:%lld, which are evaluated on, are trained on, too",
               (long long)begin, (long long)end);
  bool before = begin > first;
  if (before || end < behind)
    diag_help(&s->diags, LOC_NONE, "--rows %lld:%lld leaves them out", (long long)(before ? first : end),
              (long long)(before ? begin : behind));
}

/* Whether they are the same rows of the same files, read as the same type. */
static bool same_column(const struct column *a, const struct column *b) {
  bool same = type_equal(&a->row, &b->row) && a->npieces == b->npieces && a->rows == b->rows;
  for (int i = 0; same && i < a->npieces; i++) {
    const struct column_piece *p = &a->pieces[i], *q = &b->pieces[i];
    same = strcmp(p->path, q->path) == 0 && p->source == q->source && p->rows == q->rows && p->at == q->at;
  }
  return same;
}

/* Whether one of the datasets, which are closed, has had all columns of ds. */
static bool is_read(const struct dataset *ds, const struct dataset *done, int count) {
  for (int k = 0; k < count; k++) {
    bool all = true;
    for (int i = 0; all && i < ds->ncolumns; i++) {
      const struct column *had = dataset_find(&done[k], ds->columns[i].name);
      all = had && same_column(&ds->columns[i], had);
    }
    if (all) return true;
  }
  return false;
}

void data_reading_end(void *reading) {
  struct data_reading *r = reading;
  loader_destroy(r->loader);
  dataset_close(r->data);
}

enum dgc_status data_reading_begin(struct dgc_session *s, enum entry_kind kind, struct data_reading *r) {
  struct loader_options lo = {.batch = session_batch(s), .epochs = 1, .memory = session_batch_memory(s)};
  enum dgc_status status = session_own_towers(s, kind, &lo);
  if (status) return status;
  r->loader = loader_create(s->call, r->data, &lo, &s->diags);
  return r->loader ? DGC_OK : session_unread(s);
}

/* Reads all rows, as an epoch does: whether each number fits, and each image can be decoded. */
static enum dgc_status read_rows(struct dgc_session *s, struct data_reading *reading) {
  const struct dataset *ds = reading->data;
  enum { BYTES = 1 << 20 };
  int64_t row = 1;
  for (int i = 0; i < ds->ncolumns; i++) {
    int64_t bytes = type_bytes(&ds->columns[i].row);
    row = bytes < BYTES - row ? row + bytes : BYTES;
  }
  struct loader_options lo = {.batch = BYTES / row, .epochs = 1};
  if (lo.batch > ds->rows) lo.batch = ds->rows;
  struct loader *loader = reading->loader = loader_create(s->call, ds, &lo, &s->diags);
  const struct batch *b;
  enum loader_status got = LOADER_ERROR;
  bool stopped = false;
  while (loader && !stopped && (got = loader_next(loader, &b, &s->diags)) == LOADER_BATCH) {
    loader_release(loader, b);
    stopped = session_stopped(s);
  }
  return stopped ? DGC_STOPPED : got == LOADER_END ? DGC_OK : session_unread(s);
}

static enum dgc_status check_data(struct dgc_session *s) {
  bool any = false;
  int first = DATA_USES, ndone = 0;
  struct dataset *ds, done[DATA_USES];
  enum dgc_status status = s->model ? DGC_OK : session_fail(s, DGC_USAGE, "no model has been loaded");
  for (int use = 0; !status && use < DATA_USES; use++) {
    if (!entry_there(s, entries_of[use])) continue;
    if (first == DATA_USES) first = use;
    status = session_data(s, (enum data_use)use, true, &ds);
    if (status || !ds) continue;
    struct data_reading reading = {.data = ds};
    struct arena_guard guard;
    arena_guard(&guard, data_reading_end, &reading);
    done[ndone] = *ds;
    if (!is_read(ds, done, ndone)) status = read_rows(s, &reading);
    arena_unguard(&guard);
    data_reading_end(&reading);
    if (status) break;
    int64_t rows = done[ndone++].rows;
    diag_note(&s->diags, LOC_NONE, "%s: %lld row%s", entry_names[entries_of[use]], (long long)rows,
              rows == 1 ? "" : "s");
    any = true;
    if (use == DATA_TRAIN && !s->options.eval_rows && !s->options.eval_data.count && !rows_any(s, true))
      say_untested(s);
  }
  if (status || any || first == DATA_USES) return status;
  status = session_data(s, (enum data_use)first, false, &ds); /* which says what there is not */
  if (!status) dataset_close(ds);
  return status;
}

static enum dgc_status check_data_alone(struct dgc_session *s) {
  enum dgc_status status = session_alone(s);
  return status ? status : check_data(s);
}

enum dgc_status dgc_check_data(struct dgc_session *s) { CALL(s, check_data_alone(s)); }
