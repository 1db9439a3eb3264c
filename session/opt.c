/* SPDX-License-Identifier: Apache-2.0 */
/* Graph text: read, put through passes, printed. */
#include "session/opt.h"

#include "session/compile.h"
#include "session/picture.h"
#include "session/settle.h"
#include "session/state/settlement.h"

#include "base/file.h"
#include "hlo/hlo.h"
#include "ir/graph/text.h"
#include "passes/pass.h"

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
    enum dgc_status status = session_settle(s);
    if (status) return status;
    c->target = s->settlement->target;
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

static enum dgc_status opt_graph(struct dgc_session *s, struct graph **graph, const char *passes) {
  struct graph *g = *graph;
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
  *graph = g;
  return DGC_OK;
}

/* "train" of digits.train, as long as only one of the graphs is called so. */
static const char *entry_of(struct graph *const *graphs, int count, int which) {
  const char *entry = text_entry(graphs[which]->name);
  for (int i = 0; i < count; i++)
    if (i != which && strcmp(text_entry(graphs[i]->name), entry) == 0) return graphs[which]->name;
  return entry;
}

static bool print_module(struct dgc_session *s, struct str *out, struct graph *const *graphs, int count) {
  struct hlo_function *functions = arena_new_array(s->call, (size_t)count + 1, struct hlo_function);
  const char *name = count ? text_model(s->call, graphs[0]->name) : "empty";
  for (int i = 0; i < count; i++)
    functions[i] = (struct hlo_function){
        .graph = graphs[i], .name = entry_of(graphs, count, i), .batch = s->options.batch};
  return hlo_print(out, name, functions, count, &s->diags);
}

/* As graph text, or in the form that --emit names. */
static enum dgc_status print_graphs(struct dgc_session *s, struct str *out, struct graph *const *graphs,
                                    int count) {
  const struct {
    const char *name;
    void (*print)(struct str *s, const struct graph *g);
  } forms[] = {{"graph", s->options.no_origins ? graph_print_without_origins : graph_print},
               {"dot", graph_print_dot},
               {"json", graph_print_json},
               {"html", NULL},
               {"stablehlo", NULL}};
  enum { NFORMS = sizeof forms / sizeof *forms };
  const char *names[NFORMS], *form = s->options.emit ? s->options.emit : "graph";
  int k = 0;
  for (int i = 0; i < NFORMS; i++) names[i] = forms[i].name;
  while (k < NFORMS && strcmp(forms[k].name, form) != 0) k++;
  if (k == NFORMS) {
    session_fail(s, DGC_USAGE, "cannot emit graph text as '%s': there are %s", form,
                 str_join(s->call, names, NFORMS));
    diag_closest(&s->diags, LOC_NONE, form, names, NFORMS, NULL);
    return DGC_USAGE;
  }
  if (!forms[k].print) return print_module(s, out, graphs, count) ? DGC_OK : DGC_INPUT;
  for (int i = 0; i < count; i++) {
    if (i) str_putc(out, '\n');
    forms[k].print(out, graphs[i]);
  }
  return DGC_OK;
}

enum dgc_status session_no_graph(struct dgc_session *s, const char *path, const char **names, int count) {
  session_fail(s, DGC_USAGE, "%s holds no graph '%s'", path, s->options.graph);
  diag_closest(&s->diags, LOC_NONE, s->options.graph, names, (size_t)count, "it holds");
  return DGC_USAGE;
}

/* The one graph that a page shows, read and checked; the passes are run as it is drawn. */
static enum dgc_status draw(struct dgc_session *s, struct graph *const *graphs, int count, const char *passes,
                            struct str *out) {
  if (count == 1) return session_picture_of(s, graphs[0], passes, out);
  session_fail(s, DGC_USAGE, "a page shows one graph, and there are %d", count);
  diag_help(&s->diags, LOC_NONE, "--graph NAME says which: %s", count ? graphs[0]->name : "there is none");
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
  bool draws = s->options.emit && strcmp(s->options.emit, "html") == 0;
  int chosen = 0;
  for (int i = 0; i < count; i++) {
    if (wanted && strcmp(graphs[i]->name, wanted) != 0) continue;
    graphs[chosen] = graphs[i];
    enum dgc_status status = opt_graph(s, &graphs[chosen++], draws ? NULL : passes);
    if (status) return status;
  }
  if (wanted && !chosen) {
    const char **names = arena_new_array(s->call, (size_t)count, const char *);
    for (int i = 0; i < count; i++) names[i] = graphs[i]->name;
    return session_no_graph(s, path, names, count);
  }
  enum dgc_status status =
      draws ? draw(s, graphs, chosen, passes, &out) : print_graphs(s, &out, graphs, chosen);
  if (status) return status;
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

static enum dgc_status doc(struct dgc_session *s, const char *name, bool page, const char **text) {
  struct str out = session_text(s);
  const char *found = frontend_doc(s->call, name, page, &s->diags);
  if (found) str_put(&out, found);
  *text = out.data;
  return found ? DGC_OK : DGC_USAGE;
}

enum dgc_status dgc_doc(struct dgc_session *s, const char *name, bool page, const char **text) {
  CALL(s, doc(s, name, page, text));
}
