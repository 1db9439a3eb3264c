/* Graph text: read, put through passes, printed. */
#include "session/opt.h"

#include "session/compile.h"
#include "session/strategy.h"

#include "base/file.h"
#include "ir/graph/text.h"

#include <string.h>

static bool has_target_options(const struct options *o) {
#define NUMBER(type, name, most) || o->name
#define WORD(name)               || o->name
#define TEXT(name)               || o->name
#define FLAG(name)               || o->name
  return o->devices
#include "ir/graph/config.def"
      ;
}

/* Options that were given win over what the graph's header says, as long as they can still matter. */
enum dgc_status session_override(struct dgc_session *s, struct config *c) {
  const struct options *o = &s->options;
  if (o->devices || o->cluster) {
    enum dgc_status status = session_target(s);
    if (status) return status;
    c->target = s->target;
  }
  if (o->strategy && strcmp(o->strategy, "auto") == 0) {
    session_fail(s, DGC_USAGE, "strategy auto compares strategies for a model, not for graph text");
    diag_help(&s->diags, LOC_NONE, "dgc compile MODEL --emit strategies prints the comparison");
    return DGC_USAGE;
  }
  options_over(o, c);
  if (has_target_options(o)) c->nhomes = 0;
  return DGC_OK;
}

static enum dgc_status opt_graph(struct dgc_session *s, struct graph *g, const char *passes,
                                 struct str *out) {
  if (!graph_verify(g, "read", &s->diags)) return DGC_INPUT;
  if (g->stage == STAGE_SOURCE) {
    enum dgc_status status = session_override(s, &g->config);
    if (status) return status;
  } else if (has_target_options(&s->options))
    diag_warning(
        &s->diags, LOC_NONE,
        "graph %s is replicated already: options do not change its devices, towers, strategy or batch",
        g->name);
  if (passes && *passes) {
    struct pipeline_options options = session_passes(s);
    g = pipeline_run(s->call, g, passes, NULL, &options, &s->diags);
    if (!g) return session_blame(s);
    if (!graph_verify(g, "the last pass", &s->diags)) return DGC_INPUT;
  }
  graph_print(out, g);
  return DGC_OK;
}

enum dgc_status session_no_graph(struct dgc_session *s, const char *path, const char **names, int count) {
  session_fail(s, DGC_USAGE, "%s holds no graph '%s'", path, s->options.graph);
  diag_closest(&s->diags, LOC_NONE, s->options.graph, names, (size_t)count, "it holds");
  return DGC_USAGE;
}

static enum dgc_status opt(struct dgc_session *s, const char *path, const char *passes, const char **text) {
  struct str out = session_text(s);
  *text = out.data;
  struct source *source = source_read(s->call, path, TEXT_MAX_BYTES, &s->diags);
  struct graph **graphs;
  int count = source ? graph_parse_all(s->call, source, &s->diags, &graphs) : -1;
  if (count < 0) return session_unread(s);
  const char *wanted = s->options.graph;
  int chosen = 0;
  for (int i = 0; i < count; i++) {
    if (wanted && strcmp(graphs[i]->name, wanted) != 0) continue;
    if (chosen++) str_putc(&out, '\n');
    enum dgc_status status = opt_graph(s, graphs[i], passes, &out);
    if (status) return status;
  }
  if (wanted && !chosen) {
    const char **names = arena_new_array(s->call, (size_t)count, const char *);
    for (int i = 0; i < count; i++) names[i] = graphs[i]->name;
    return session_no_graph(s, path, names, count);
  }
  *text = out.data;
  return s->diags.nerrors ? DGC_INPUT : DGC_OK;
}

enum dgc_status dgc_opt(struct dgc_session *s, const char *path, const char *passes, const char **text) {
  CALL(s, opt(s, path, passes, text));
}

static enum dgc_status passes(struct dgc_session *s, const char **text) {
  struct str out = session_text(s);
  pipeline_help(&out);
  *text = out.data;
  return DGC_OK;
}

enum dgc_status dgc_passes(struct dgc_session *s, const char **text) { CALL(s, passes(s, text)); }
