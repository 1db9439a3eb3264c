/* SPDX-License-Identifier: Apache-2.0 */
/* From an entry of the model to its graphs. */
#include "session/compile.h"

#include "session/memory_limit.h"
#include "session/model.h"
#include "session/settle.h"
#include "session/state/handlers.h"
#include "session/state/settlement.h"

#include "passes/pass.h"

#include <string.h>

struct pipeline_options session_passes(const struct dgc_session *s) {
  const struct options *o = &s->options;
  bool quiet = !s->handlers->pass;
  return (struct pipeline_options){
      .verify_each = o->verify_each,
      .print_after = quiet ? NULL : o->print_after,
      .disable = o->disable_pass,
      .time_passes = !quiet && o->time_passes,
      .no_origins = o->no_origins,
      .dump_all = !quiet && o->dump_passes,
      .roundtrip = o->stress && strcmp(o->stress, "roundtrip") == 0,
      .print = s->handlers->pass,
      .user = s->handlers->pass_user,
  };
}

struct graph *session_source(struct dgc_session *s, struct arena *a, enum entry_kind kind, int64_t batch) {
  struct graph *g = arena_new(a, struct graph);
  *g = *entry_source(s, kind);
  g->diags = &s->diags;
  session_configure(s, &g->config, batch);
  if (kind == ENTRY_TRAIN && s->settlement->free) session_one_worker(s, a, &g->config);
  return g;
}

static struct graph *compile(struct dgc_session *s, struct arena *a, enum entry_kind kind, int64_t batch,
                             const char *last, const char *task) {
  struct graph *g = session_source(s, a, kind, batch);
  struct pipeline_options options = session_passes(s);
  g->config.task = task;
  if (kind != ENTRY_TRAIN || last || !s->options.memory_limit)
    return pipeline_run(a, g, NULL, last, &options, &s->diags);
  struct graph *placed = pipeline_run(s->call, g, NULL, "copies", &options, &s->diags);
  return placed ? session_within_limit(s, a, placed, &options) : NULL;
}

struct graph *session_graph(struct dgc_session *s, struct arena *a, enum entry_kind kind, int64_t batch,
                            const char *last) {
  return compile(s, a, kind, batch, last, NULL);
}

struct graph *session_part(struct dgc_session *s, struct arena *a, enum entry_kind kind, int64_t batch,
                           const char *last) {
  return compile(s, a, kind, batch, last, s->settlement->config.task);
}
