/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions over files. */
#include "session/batch_run.h"
#include "session/data.h"
#include "session/files.h"
#include "session/model.h"
#include "session/settle.h"
#include "session/state/data.h"
#include "session/state/parts.h"

#include "base/place.h"
#include "ir/graph/graph.h"
#include "runtime/mpi/transport.h"

#include <string.h>

/* One file, and the outputs of the plan that go into it. */
struct sink {
  const char *path;
  const char **names;
  struct type *rows;
  int *outputs; /* into the source graph's outputs */
  const void **data;
  int count;
  struct row_writer *writer;
};

static const struct output *find_output(const struct graph *g, const char *name, int *index) {
  for (int i = 0; i < g->noutputs; i++)
    if (g->outputs[i].role == OUTPUT_PREDICT && strcmp(g->outputs[i].name, name) == 0) {
      *index = i;
      return &g->outputs[i];
    }
  return NULL;
}

static enum dgc_status no_output(struct dgc_session *s, const char *name) {
  const struct graph *g = s->model->predict; /* all of it */
  const char **names = arena_new_array(s->call, (size_t)g->noutputs, const char *);
  size_t count = 0;
  for (int i = 0; i < g->noutputs; i++)
    if (g->outputs[i].role == OUTPUT_PREDICT) names[count++] = g->outputs[i].name;
  session_fail(s, DGC_USAGE, "model %s predicts no '%s'", s->model->name, name);
  diag_closest(&s->diags, LOC_NONE, name, names, count, "it predicts");
  return DGC_USAGE;
}

/* Whether the option output names it. */
static bool is_asked_for(const struct list *l, const char *name) {
  size_t len = strlen(name);
  for (int i = 0; i < l->count; i++)
    if (strncmp(l->items[i], name, len) == 0 && l->items[i][len] == '=') return true;
  return false;
}

/* The part of the entry that gives what the option output names: the rest is not computed, and its inputs are not
 * read. The same as before, where that was asked for before. NULL: it names none, or all. */
static const struct graph *named_part(struct dgc_session *s, const struct graph *all) {
  const struct list *l = &s->options.output;
  bool names = l->count > 0;
  for (int i = 0; i < l->count; i++) names = names && strchr(l->items[i], '=');
  if (!names) return NULL;
  struct graph some = *all;
  some.noutputs = 0;
  some.outputs = arena_new_array(s->call, (size_t)all->noutputs, struct output);
  for (int i = 0; i < all->noutputs; i++)
    if (all->outputs[i].role != OUTPUT_PREDICT || is_asked_for(l, all->outputs[i].name))
      some.outputs[some.noutputs++] = all->outputs[i];
  if (!some.noutputs || some.noutputs == all->noutputs) return NULL;
  struct str key = str_make(s->call);
  str_printf(&key, "%p", (const void *)all);
  for (int i = 0; i < some.noutputs; i++) str_printf(&key, " %s", some.outputs[i].name);
  if (!s->parts->made.arena) s->parts->made = map_make(s->arena);
  const struct graph *known = map_get(&s->parts->made, key.data);
  if (known) return known;
  struct graph *part = graph_prune(s->arena, &some);
  if (part == &some) { /* all of it is needed all the same */
    part = arena_new(s->arena, struct graph);
    *part = some;
    part->outputs = arena_new_array(s->arena, (size_t)some.noutputs, struct output);
    memcpy(part->outputs, some.outputs, (size_t)some.noutputs * sizeof *some.outputs);
  }
  map_put(&s->parts->made, arena_strdup(s->arena, key.data), part);
  return part;
}

static void add_to_sink(struct dgc_session *s, const struct graph *g, struct sink *sinks, int *nsinks,
                        const char *path, int output) {
  int i = 0;
  while (i < *nsinks && !place_one(s->call, sinks[i].path, path)) i++;
  struct sink *k = &sinks[i];
  if (i == *nsinks) {
    *k = (struct sink){.path = path,
                       .names = arena_new_array(s->call, (size_t)g->noutputs, const char *),
                       .rows = arena_new_array(s->call, (size_t)g->noutputs, struct type),
                       .outputs = arena_new_array(s->call, (size_t)g->noutputs, int),
                       .data = arena_new_array(s->call, (size_t)g->noutputs, const void *)};
    (*nsinks)++;
  }
  const struct output *o = &g->outputs[output];
  k->names[k->count] = o->name;
  k->rows[k->count] = type_row(&o->node->type);
  k->outputs[k->count++] = output;
}

/* "probability=p.npy"; "p.csv": all of them, side by side; nothing: these on standard output. */
static enum dgc_status make_sinks(struct dgc_session *s, const struct graph *g, struct sink *sinks,
                                  int *nsinks) {
  const struct list *l = &s->options.output;
  for (int i = 0; i < l->count; i++) {
    const char *equals = strchr(l->items[i], '=');
    int output = 0;
    for (int k = 0; !equals && k < g->noutputs; k++)
      if (g->outputs[k].role == OUTPUT_PREDICT) add_to_sink(s, g, sinks, nsinks, l->items[i], k);
    if (!equals) continue;
    const char *name = arena_strndup(s->call, l->items[i], (size_t)(equals - l->items[i]));
    if (!find_output(g, name, &output)) return no_output(s, name);
    add_to_sink(s, g, sinks, nsinks, equals + 1, output);
  }
  for (int i = 0; !l->count && i < g->noutputs; i++)
    if (g->outputs[i].role == OUTPUT_PREDICT) add_to_sink(s, g, sinks, nsinks, "-", i);
  for (int i = 0; i < *nsinks; i++)
    if (!row_writer_takes(sinks[i].path, sinks[i].names, sinks[i].rows, sinks[i].count, &s->diags))
      return DGC_USAGE;
  return DGC_OK;
}

static enum dgc_status open_sinks(struct dgc_session *s, struct sink *sinks, int nsinks) {
  if (!session_is_first(s)) return DGC_OK; /* the first process writes */
  for (int i = 0; i < nsinks; i++) {
    sinks[i].writer =
        row_writer_create(s->call, sinks[i].path, sinks[i].names, sinks[i].rows, sinks[i].count, &s->diags);
    if (!sinks[i].writer) return DGC_RUNTIME;
  }
  return DGC_OK;
}

static enum dgc_status write_batch(struct dgc_session *s, const struct loaded *l, int64_t rows,
                                   struct sink *sinks, int nsinks, void **buffers) {
  for (int i = 0; i < nsinks; i++) {
    for (int k = 0; k < sinks[i].count; k++) {
      if (!exec_read(l->exec, plan_output(l->plan, OUTPUT_PREDICT, sinks[i].names[k]),
                     buffers[sinks[i].outputs[k]]))
        return session_device_failed(s);
      sinks[i].data[k] = buffers[sinks[i].outputs[k]];
    }
    if (sinks[i].writer && !row_writer_put(sinks[i].writer, sinks[i].data, rows, &s->diags))
      return DGC_RUNTIME;
  }
  return DGC_OK;
}

static enum dgc_status predict_over(struct dgc_session *s, const struct dataset *ds, struct loader *loader,
                                    struct sink *sinks, int nsinks) {
  const struct graph *g = entry_source(s, ENTRY_PREDICT);
  void **buffers = arena_new_array(s->call, (size_t)g->noutputs, void *);
  for (int i = 0; i < g->noutputs; i++) {
    struct type t = type_specialize(&g->outputs[i].node->type, session_batch(s));
    if (g->outputs[i].role == OUTPUT_PREDICT) buffers[i] = arena_alloc(s->call, (size_t)type_bytes(&t));
  }
  const struct batch *b;
  for (;;) {
    enum loader_status next = loader_next(loader, &b, &s->diags);
    if (next != LOADER_BATCH) return next == LOADER_END ? DGC_OK : session_unread(s);
    if (session_stopped(s)) return session_fail(s, DGC_STOPPED, "the prediction was stopped");
    struct loaded *l;
    enum dgc_status status = session_batch_run(s, ENTRY_PREDICT, ds, loader, b, &l);
    if (!status) status = write_batch(s, l, b->rows, sinks, nsinks, buffers);
    loader_release(loader, b);
    if (status) return status;
  }
}

static enum dgc_status close_sinks(struct dgc_session *s, enum dgc_status status, struct sink *sinks,
                                   int nsinks) {
  for (int i = 0; i < nsinks; i++) {
    if (status || !sinks[i].writer)
      row_writer_abandon(sinks[i].writer);
    else if (!row_writer_finish(sinks[i].writer, &s->diags))
      status = DGC_RUNTIME;
  }
  return status;
}

struct prediction {
  struct dgc_session *s;
  struct data_reading reading;
  struct sink *sinks;
  int nsinks;
};

static void end_prediction(void *prediction) {
  struct prediction *p = prediction;
  p->s->parts->predicted = NULL;
  data_reading_end(&p->reading);
}

static void abandon_prediction(void *prediction) {
  struct prediction *p = prediction;
  for (int i = 0; i < p->nsinks; i++) row_writer_abandon(p->sinks[i].writer);
  end_prediction(p);
}

static enum dgc_status predict(struct dgc_session *s, int64_t *rows) {
  struct prediction p = {.s = s};
  struct arena_guard guard;
  arena_guard(&guard, abandon_prediction, &p);
  enum dgc_status status = session_need(s, ENTRY_PREDICT);
  if (!status) status = session_files_apart(s, false);
  if (!status) {
    s->parts->predicted = named_part(s, entry_source(s, ENTRY_PREDICT));
    const struct graph *g = entry_source(s, ENTRY_PREDICT);
    p.sinks = arena_new_array(s->call, (size_t)(g->noutputs + s->options.output.count), struct sink);
    status = make_sinks(s, g, p.sinks, &p.nsinks);
  }
  if (!status) status = session_data(s, DATA_PREDICT, false, &p.reading.data);
  if (!status) session_note_rows(s, DATA_PREDICT, p.reading.data);
  if (!status) status = session_ready(s, ENTRY_PREDICT);
  if (!status) status = session_takes_all(s, ENTRY_PREDICT, p.reading.data->rows);
  if (!status) status = data_reading_begin(s, ENTRY_PREDICT, &p.reading);
  if (!status) status = open_sinks(s, p.sinks, p.nsinks);
  if (!status) status = predict_over(s, p.reading.data, p.reading.loader, p.sinks, p.nsinks);
  arena_unguard(&guard);
  status = close_sinks(s, status, p.sinks, p.nsinks);
  if (!status && rows) *rows = p.reading.data->rows;
  end_prediction(&p);
  return status;
}

enum dgc_status dgc_predict(struct dgc_session *s, int64_t *rows) { CALL(s, predict(s, rows)); }
