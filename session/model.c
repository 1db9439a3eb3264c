/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a session: its source, and the entries that it has. */
#include "session/model.h"

#include "session/files.h"
#include "session/options.h"
#include "session/state/parts.h"
#include "session/state/settlement.h"

#include "base/file.h"
#include "ir/graph/graph.h"
#include "ir/ops/op_id.h"

#include <string.h>

const char *const entry_names[ENTRY_COUNT] = {"init", "train", "eval", "predict", "metrics"};

/* --- the source --- */

/* "--data FOLDER": where the model's own data files are. NULL if there is none. */
static const char *data_folder(const struct dgc_session *s) {
  for (int i = 0; i < s->options.data.count; i++)
    if (!strchr(s->options.data.items[i], '=') && s->options.data.items[i] != data_alone(&s->options.data))
      return s->options.data.items[i];
  return NULL;
}

const struct file_roots *session_roots(struct dgc_session *s) {
  const struct options *o = &s->options;
  struct file_roots *roots = arena_new(s->call, struct file_roots);
  const char **folders =
      arena_new_array(s->call, (size_t)(o->data.count + o->allow_path.count) + 1, const char *);
  if (s->source && s->source->is_file) {
    const char *slash = strrchr(s->source->name, '/');
    size_t len = slash ? (size_t)(slash - s->source->name) + 1 : 0;
    folders[roots->count++] = slash ? arena_strndup(s->call, s->source->name, len) : ".";
  }
  for (int i = 0; i < o->data.count; i++)
    if (!strchr(o->data.items[i], '=') && o->data.items[i] != data_alone(&o->data))
      folders[roots->count++] = o->data.items[i];
  for (int i = 0; i < o->allow_path.count; i++) folders[roots->count++] = o->allow_path.items[i];
  roots->folders = folders;
  return roots;
}

enum dgc_status session_compile(struct dgc_session *s) {
  const struct options *o = &s->options;
  struct frontend_options options = {.sets = o->set.items,
                                     .nsets = o->set.count,
                                     .seed = o->seed,
                                     .train_metrics = o->train_metrics,
                                     .model = o->model,
                                     .folder = data_folder(s),
                                     .roots = session_roots(s)};
  s->model = frontend_compile(s->arena, s->source, &options, &s->diags);
  s->settlement->done = false;
  return s->model ? DGC_OK : session_unread(s);
}

enum dgc_status session_load(struct dgc_session *s, const struct source *source) {
  if (!source) return session_unread(s);
  if (s->source) return session_fail(s, DGC_USAGE, "the session has a model already");
  s->source = source;
  enum dgc_status status = session_compile(s);
  if (!status) status = session_files_apart(s, false);
  if (status) s->source = NULL, s->model = NULL;
  return status;
}

static enum dgc_status load_file(struct dgc_session *s, const char *path) {
  return session_load(s, source_read(s->arena, path, MAX_SOURCE, &s->diags));
}

enum dgc_status dgc_load(struct dgc_session *s, const char *path) { CALL(s, load_file(s, path)); }

enum dgc_status dgc_load_text(struct dgc_session *s, const char *name, const char *text, size_t len) {
  CALL(s, session_load(s, source_make(s->arena, name, text, len)));
}

static enum dgc_status list_models(struct dgc_session *s, const char *path, const char *const **names,
                                   int *count) {
  const struct source *source = source_read(s->arena, path, MAX_SOURCE, &s->diags);
  *count = 0;
  if (!source) return session_unread(s);
  *count = frontend_models(s->arena, source, &s->diags, names);
  return s->diags.nerrors ? session_unread(s) : DGC_OK;
}

enum dgc_status dgc_models(struct dgc_session *s, const char *path, const char *const **names, int *count) {
  CALL(s, list_models(s, path, names, count));
}

/* --- entries --- */

const struct graph *entry_source(const struct dgc_session *s, enum entry_kind kind) {
  if (!s->model) return NULL;
  const struct model *m = s->model;
  const struct graph *predict = s->parts->predicted ? s->parts->predicted : m->predict;
  const struct graph *const graphs[ENTRY_COUNT] = {m->init, m->train, m->eval, predict, m->metrics};
  return graphs[kind];
}

bool entry_there(const struct dgc_session *s, enum entry_kind kind) { return entry_source(s, kind) != NULL; }

const struct node *entry_variable(const struct dgc_session *s, const char *name) {
  const struct graph *g = entry_source(s, ENTRY_INIT);
  const struct node *n = g ? graph_find(g, name) : NULL;
  return n && n->op == OP_variable ? n : NULL;
}

enum dgc_status session_need(struct dgc_session *s, enum entry_kind kind) {
  if (!s->model) return session_fail(s, DGC_USAGE, "no model has been loaded");
  if (entry_there(s, kind)) return DGC_OK;
  static const char *const lacks[ENTRY_COUNT] = {"variable", "train statement", "train or metric statement",
                                                 "predict statement",
                                                 "metric that is a formula of several sums"};
  return session_fail(s, DGC_INPUT, "model %s has no %s", s->model->name, lacks[kind]);
}

/* The first entry worth a look when none was asked for. */
static enum entry_kind default_entry(const struct dgc_session *s) {
  static const enum entry_kind order[] = {ENTRY_TRAIN, ENTRY_PREDICT, ENTRY_EVAL};
  for (int i = 0; i < 3; i++)
    if (entry_there(s, order[i])) return order[i];
  return ENTRY_INIT;
}

enum dgc_status entry_find(struct dgc_session *s, const char *name, enum entry_kind *out) {
  if (!name && s->model) {
    *out = default_entry(s);
    return session_need(s, *out);
  }
  for (int i = 0; name && i < ENTRY_COUNT; i++)
    if (strcmp(name, entry_names[i]) == 0) {
      *out = (enum entry_kind)i;
      return session_need(s, *out);
    }
  if (!name) return session_need(s, ENTRY_TRAIN);
  session_fail(s, DGC_USAGE, "there is no entry '%s': init, train, eval, predict and metrics are known",
               name);
  const char *meant = strcmp(name, "test") == 0 ? entry_names[ENTRY_EVAL] : NULL;
  for (int i = 0; i < ENTRY_COUNT && !meant; i++)
    if (strncmp(name, entry_names[i], strlen(entry_names[i])) == 0) meant = entry_names[i];
  if (meant) diag_help(&s->diags, LOC_NONE, "did you mean '%s'?", meant);
  return DGC_USAGE;
}

const struct graph *session_all_variables(const struct dgc_session *s) {
  for (int i = 0; i < ENTRY_COUNT; i++)
    if (entry_there(s, (enum entry_kind)i)) return entry_source(s, (enum entry_kind)i);
  return NULL;
}

enum dgc_status session_check_input(struct dgc_session *s, const char *name) {
  const struct model *m = s->model;
  const char **names = arena_new_array(s->call, (size_t)m->ninputs, const char *);
  for (int i = 0; i < m->ninputs; i++) {
    names[i] = m->inputs[i].name;
    if (strcmp(name, names[i]) == 0) return DGC_OK;
  }
  session_fail(s, DGC_USAGE, "model %s has no input '%s'", m->name, name);
  diag_closest(&s->diags, LOC_NONE, name, names, (size_t)m->ninputs, "inputs are");
  return DGC_USAGE;
}
