/* From source to graphs and plans, and what of it is shown. */
#include "dgc_internal.h"

#include "frontend/ast.h"
#include "ir/text.h"

#include <string.h>

enum { DEFAULT_BATCH = 128 };

const char *const entry_names[ENTRY_COUNT] = {"init", "train", "eval", "predict"};

/* --- models --- */

/* Whose fault an error of the passes is: one without a place in a source is about an option. */
enum dgc_status session_blame(const struct dgc_session *s) {
  for (const struct diag *d = s->diags.first; d; d = d->next)
    if (d->severity == DIAG_ERROR && d->loc.source) return DGC_INPUT;
  return DGC_USAGE;
}

enum dgc_status session_target(struct dgc_session *s) {
  if (s->target.ndevices) return DGC_OK;
  const char *list = s->options.devices ? s->options.devices : "cpu:0";
  struct target t;
  if (!target_parse(s->arena, list, &t, &s->diags, LOC_NONE)) return DGC_USAGE;
  s->target = t;
  return DGC_OK;
}

/* "--data FOLDER": where the model's own data files are. NULL if there is none. */
static const char *data_folder(const struct dgc_session *s) {
  for (int i = 0; i < s->options.data.count; i++)
    if (!strchr(s->options.data.items[i], '=')) return s->options.data.items[i];
  return NULL;
}

enum dgc_status session_compile(struct dgc_session *s) {
  const struct options *o = &s->options;
  struct frontend_options options = {.sets = o->set.items,
                                     .nsets = o->set.count,
                                     .seed = o->seed,
                                     .model = o->model,
                                     .folder = data_folder(s)};
  s->model = frontend_compile(s->arena, s->source, &options, &s->diags);
  return s->model ? DGC_OK : DGC_INPUT;
}

enum dgc_status session_load(struct dgc_session *s, const struct source *source) {
  if (!source) return DGC_INPUT;
  if (s->source) return session_fail(s, DGC_USAGE, "the session has a model already");
  s->source = source;
  enum dgc_status status = session_compile(s);
  if (status) s->source = NULL;
  return status;
}

static enum dgc_status load_file(struct dgc_session *s, const char *path) {
  return session_load(s, source_read(s->arena, path, MAX_SOURCE, &s->diags));
}

enum dgc_status dgc_load(struct dgc_session *s, const char *path) { CALL(s, load_file(s, path)); }

enum dgc_status dgc_load_text(struct dgc_session *s, const char *name, const char *text, size_t len) {
  CALL(s, session_load(s, source_make(s->arena, name, text, len)));
}

/* --- graphs --- */

const struct graph *entry_source(const struct dgc_session *s, enum entry_kind kind) {
  if (!s->model) return NULL;
  const struct model *m = s->model;
  const struct graph *const graphs[ENTRY_COUNT] = {m->init, m->train, m->eval, m->predict};
  return graphs[kind];
}

bool entry_there(const struct dgc_session *s, enum entry_kind kind) { return entry_source(s, kind) != NULL; }

enum dgc_status session_need(struct dgc_session *s, enum entry_kind kind) {
  if (!s->model) return session_fail(s, DGC_USAGE, "no model has been loaded");
  if (entry_there(s, kind)) return DGC_OK;
  static const char *const statements[ENTRY_COUNT] = {"variable", "train", "train or metric", "predict"};
  return session_fail(s, DGC_INPUT, "model %s has no %s statement", s->model->name, statements[kind]);
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
  return session_fail(s, DGC_USAGE, "there is no entry '%s': init, train, eval and predict are known", name);
}

int64_t session_batch(const struct dgc_session *s) {
  if (s->options.batch) return s->options.batch;
  return s->position.batch ? s->position.batch : DEFAULT_BATCH;
}

static struct pipeline_options pipeline_options(const struct dgc_session *s) {
  const struct options *o = &s->options;
  bool quiet = !s->on_pass;
  return (struct pipeline_options){
      .verify_each = o->verify_each,
      .print_after = quiet ? NULL : o->print_after,
      .disable = o->disable_pass,
      .time_passes = !quiet && o->time_passes,
      .dump_all = !quiet && o->dump_passes,
      .roundtrip = o->stress && strcmp(o->stress, "roundtrip") == 0,
      .print = s->on_pass,
      .user = s->on_pass_user,
  };
}

static void configure(const struct dgc_session *s, struct config *c, int64_t batch) {
  const struct options *o = &s->options;
  *c = (struct config){
      .batch = batch ? batch : session_batch(s),
      .towers = (int)o->towers,
      .strategy = o->strategy,
      .parameter_device = o->parameter_device,
      .consolidation_device = o->consolidation_device,
      .soft_placement = o->soft_placement,
      .target = s->target,
  };
}

struct graph *session_graph(struct dgc_session *s, struct arena *a, enum entry_kind kind, int64_t batch,
                            const char *last) {
  struct graph *g = arena_new(a, struct graph);
  *g = *entry_source(s, kind);
  g->diags = &s->diags;
  configure(s, &g->config, batch);
  struct pipeline_options options = pipeline_options(s);
  return pipeline_run(a, g, NULL, last, &options, &s->diags);
}

/* --- texts --- */

static enum dgc_status print_kernels(struct dgc_session *s, struct str *out, const struct plan *p) {
  const struct backend *b = backend_find(s->options.backend);
  for (int i = 0; i < p->nkernels; i++) {
    if (b->emit) {
      const char *text = b->emit(s->call, p->kernels[i], &s->diags);
      if (!text) return DGC_RUNTIME;
      str_put(out, text);
    } else
      kernel_print(out, p->kernels[i]);
    str_putc(out, '\n');
  }
  return DGC_OK;
}

static const struct {
  const char *stage, *last; /* NULL: the source graph */
} graph_stages[] = {
    {"graph", NULL},   {"grad", "grad"},  {"replicated", "replicate"}, {"placed", "copies"},
    {"fused", "fuse"}, {"dot", "copies"}, {"json", "copies"},
};

static enum dgc_status emit_graph(struct dgc_session *s, enum entry_kind kind, const char *stage,
                                  const char *last, struct str *out) {
  const struct graph *g = last ? session_graph(s, s->call, kind, 0, last) : entry_source(s, kind);
  if (!g) return session_blame(s);
  if (strcmp(stage, "dot") == 0)
    graph_print_dot(out, g);
  else if (strcmp(stage, "json") == 0)
    graph_print_json(out, g);
  else
    graph_print(out, g);
  return DGC_OK;
}

static enum dgc_status emit_plan(struct dgc_session *s, enum entry_kind kind, const char *stage,
                                 struct str *out) {
  struct graph *g = session_graph(s, s->call, kind, 0, NULL);
  if (!g) return session_blame(s);
  struct plan *p = plan_build(s->call, g, &s->diags);
  if (!p) return session_blame(s);
  if (strcmp(stage, "plan") == 0)
    plan_print(out, p);
  else if (strcmp(stage, "memory") == 0)
    plan_print_memory(out, p);
  else
    return print_kernels(s, out, p);
  return DGC_OK;
}

static enum dgc_status emit_ast(struct dgc_session *s, struct str *out) {
  struct file *f = ast_parse(s->call, s->source, &s->diags);
  if (!f) return DGC_INPUT;
  ast_print(out, f);
  return DGC_OK;
}

static enum dgc_status unknown_stage(struct dgc_session *s, const char *stage) {
  static const char *const stages[] = {"ast",  "graph",  "grad", "replicated", "placed", "fused",
                                       "plan", "memory", "llvm", "dot",        "json"};
  enum { COUNT = sizeof stages / sizeof *stages };
  struct str all = str_make(s->call);
  for (int i = 0; i < COUNT; i++) str_printf(&all, "%s%s", i ? ", " : "", stages[i]);
  session_fail(s, DGC_USAGE, "cannot emit '%s': there are %s", stage, all.data);
  const char *closest = str_closest(stage, stages, COUNT);
  if (closest) diag_help(&s->diags, LOC_NONE, "did you mean '%s'?", closest);
  return DGC_USAGE;
}

static enum dgc_status emit(struct dgc_session *s, const char *entry, const char *stage, struct str *out) {
  if (strcmp(stage, "ast") == 0 && s->source) return emit_ast(s, out);
  enum entry_kind kind;
  enum dgc_status status = entry_find(s, entry, &kind);
  if (!status) status = session_target(s);
  if (!status && !backend_find(s->options.backend)) status = session_no_backend(s);
  if (status) return status;
  for (size_t i = 0; i < sizeof graph_stages / sizeof *graph_stages; i++)
    if (strcmp(stage, graph_stages[i].stage) == 0)
      return emit_graph(s, kind, stage, graph_stages[i].last, out);
  if (strcmp(stage, "plan") == 0 || strcmp(stage, "memory") == 0 || strcmp(stage, "llvm") == 0)
    return emit_plan(s, kind, stage, out);
  return unknown_stage(s, stage);
}

static enum dgc_status emit_text(struct dgc_session *s, const char *entry, const char *stage,
                                 const char **text) {
  struct str out = session_text(s);
  enum dgc_status status = emit(s, entry, stage, &out);
  *text = out.data;
  return status;
}

enum dgc_status dgc_emit(struct dgc_session *s, const char *entry, const char *stage, const char **text) {
  CALL(s, emit_text(s, entry, stage, text));
}

/* --- graph text --- */

/* Options that were given win over what the graph's header says, as long as they can still matter. */
static enum dgc_status override(struct dgc_session *s, struct config *c) {
  const struct options *o = &s->options;
  if (o->devices) {
    enum dgc_status status = session_target(s);
    if (status) return status;
    c->target = s->target;
  }
  if (o->batch) c->batch = o->batch;
  if (o->towers) c->towers = (int)o->towers;
  if (o->strategy) c->strategy = o->strategy;
  if (o->parameter_device) c->parameter_device = o->parameter_device;
  if (o->consolidation_device) c->consolidation_device = o->consolidation_device;
  if (o->soft_placement) c->soft_placement = true;
  return DGC_OK;
}

static bool has_target_options(const struct options *o) {
  return o->devices || o->batch || o->towers || o->strategy || o->parameter_device ||
         o->consolidation_device || o->soft_placement;
}

static enum dgc_status opt_graph(struct dgc_session *s, struct graph *g, const char *passes,
                                 struct str *out) {
  if (!graph_verify(g, "read", &s->diags)) return DGC_INPUT;
  if (g->stage == STAGE_SOURCE) {
    enum dgc_status status = override(s, &g->config);
    if (status) return status;
  } else if (has_target_options(&s->options))
    diag_warning(
        &s->diags, LOC_NONE,
        "graph %s is replicated already: options do not change its devices, towers, strategy or batch",
        g->name);
  if (passes && *passes) {
    struct pipeline_options options = pipeline_options(s);
    g = pipeline_run(s->call, g, passes, NULL, &options, &s->diags);
    if (!g) return session_blame(s);
    if (!graph_verify(g, "the last pass", &s->diags)) return DGC_INPUT;
  }
  graph_print(out, g);
  return DGC_OK;
}

static enum dgc_status no_such_graph(struct dgc_session *s, const char *path, struct graph **graphs,
                                     int count) {
  const char **names = arena_new_array(s->call, (size_t)count, const char *);
  for (int i = 0; i < count; i++) names[i] = graphs[i]->name;
  session_fail(s, DGC_USAGE, "%s holds no graph '%s'", path, s->options.graph);
  const char *closest = str_closest(s->options.graph, names, (size_t)count);
  if (closest) diag_help(&s->diags, LOC_NONE, "did you mean '%s'?", closest);
  return DGC_USAGE;
}

static enum dgc_status opt(struct dgc_session *s, const char *path, const char *passes, const char **text) {
  struct str out = session_text(s);
  *text = out.data;
  struct source *source = source_read(s->call, path, TEXT_MAX_BYTES, &s->diags);
  struct graph **graphs;
  int count = source ? graph_parse_all(s->call, source, &s->diags, &graphs) : -1;
  if (count < 0) return DGC_INPUT;
  const char *wanted = s->options.graph;
  int chosen = 0;
  for (int i = 0; i < count; i++) {
    if (wanted && strcmp(graphs[i]->name, wanted) != 0) continue;
    if (chosen++) str_putc(&out, '\n');
    enum dgc_status status = opt_graph(s, graphs[i], passes, &out);
    if (status) return status;
  }
  if (wanted && !chosen) return no_such_graph(s, path, graphs, count);
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

/* --- why --- */

static void explain_node(struct str *out, const struct graph *g, const struct node *n, const char *lead) {
  str_put(out, lead);
  node_print(out, g, n);
  str_putc(out, '\n');
}

/* The line of the model that a node comes from. */
static void explain_source(struct str *out, const struct node *n) {
  const struct source *source = n->loc.source;
  if (!source) return;
  int line, column;
  source_position(source, n->loc.begin, &line, &column);
  const char *begin = source->text + n->loc.begin, *end = source->text + n->loc.begin;
  while (begin > source->text && begin[-1] != '\n') begin--;
  while (end < source->text + source->len && *end != '\n') end++;
  str_printf(out, "  %s:%d: ", source->name, line);
  str_putn(out, begin, (size_t)(end - begin));
  str_putc(out, '\n');
}

static enum dgc_status no_such_node(struct dgc_session *s, const struct graph *g, const char *name) {
  const char **names = arena_new_array(s->call, g->count, const char *);
  for (uint32_t i = 0; i < g->count; i++) names[i] = g->nodes[i]->name;
  const char *closest = str_closest(name, names, g->count);
  session_fail(s, DGC_USAGE, "graph %s has no node '%s'", g->name, name);
  if (closest) diag_help(&s->diags, LOC_NONE, "did you mean '%s'?", closest);
  return DGC_USAGE;
}

static enum dgc_status explain(struct dgc_session *s, const char *entry, const char *name,
                               const char **text) {
  struct str out = session_text(s);
  *text = out.data;
  enum entry_kind kind;
  enum dgc_status status = entry_find(s, entry, &kind);
  if (!status) status = session_target(s);
  if (status) return status;
  struct graph *g = session_graph(s, s->call, kind, 0, "copies");
  if (!g) return session_blame(s);
  struct node *n = graph_find(g, name);
  if (!n) return no_such_node(s, g, name);
  explain_node(&out, g, n, "");
  explain_source(&out, n);
  for (int i = 0; i < n->ninputs; i++) explain_node(&out, g, n->inputs[i], "  <- ");
  struct users u = graph_users(s->call, g);
  for (uint32_t i = u.first[n->id]; i < u.first[n->id + 1]; i++) explain_node(&out, g, u.users[i], "  -> ");
  *text = out.data;
  return DGC_OK;
}

enum dgc_status dgc_explain(struct dgc_session *s, const char *entry, const char *node, const char **text) {
  CALL(s, explain(s, entry, node, text));
}
