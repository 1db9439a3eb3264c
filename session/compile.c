/* From source to graphs and plans, and what of it is shown. */
#include "session/session.h"

#include "base/file.h"
#include "frontend/ast.h"
#include "ir/graph/text.h"
#include "ir/plan/report.h"

#include <string.h>

const char *const entry_names[ENTRY_COUNT] = {"init", "train", "eval", "predict"};

/* --- models --- */

/* Whose fault an error of the passes is: one without a place in a source is about an option. */
enum dgc_status session_blame(const struct dgc_session *s) {
  for (const struct diag *d = s->diags.first; d; d = d->next)
    if (d->severity == DIAG_ERROR && d->loc.source) return DGC_INPUT;
  return DGC_USAGE;
}

enum dgc_status session_unread(const struct dgc_session *s) {
  return s->diags.failure ? DGC_RUNTIME : DGC_INPUT;
}

/* "--data FOLDER": where the model's own data files are. NULL if there is none. */
static const char *data_folder(const struct dgc_session *s) {
  for (int i = 0; i < s->options.data.count; i++)
    if (!strchr(s->options.data.items[i], '=')) return s->options.data.items[i];
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
    if (!strchr(o->data.items[i], '=')) folders[roots->count++] = o->data.items[i];
  for (int i = 0; i < o->allow_path.count; i++) folders[roots->count++] = o->allow_path.items[i];
  roots->folders = folders;
  return roots;
}

enum dgc_status session_compile(struct dgc_session *s) {
  const struct options *o = &s->options;
  struct frontend_options options = {.sets = o->set.items,
                                     .nsets = o->set.count,
                                     .seed = o->seed,
                                     .model = o->model,
                                     .folder = data_folder(s),
                                     .roots = session_roots(s)};
  s->model = frontend_compile(s->arena, s->source, &options, &s->diags);
  s->settled = false;
  return s->model ? DGC_OK : session_unread(s);
}

enum dgc_status session_load(struct dgc_session *s, const struct source *source) {
  if (!source) return session_unread(s);
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

struct pipeline_options session_passes(const struct dgc_session *s) {
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

struct graph *session_source(struct dgc_session *s, struct arena *a, enum entry_kind kind, int64_t batch) {
  struct graph *g = arena_new(a, struct graph);
  *g = *entry_source(s, kind);
  g->diags = &s->diags;
  session_configure(s, &g->config, batch);
  return g;
}

struct graph *session_graph(struct dgc_session *s, struct arena *a, enum entry_kind kind, int64_t batch,
                            const char *last) {
  struct graph *g = session_source(s, a, kind, batch);
  struct pipeline_options options = session_passes(s);
  return pipeline_run(a, g, NULL, last, &options, &s->diags);
}

/* --- texts --- */

/* The kernels that devices of this kind run. */
static int kernels_of_kind(struct dgc_session *s, const struct plan *p, const char *kind,
                           const struct kernel **out) {
  int n = 0;
  for (int i = 0; i < p->nkernels; i++) {
    bool used = false;
    for (int d = 0; d < p->ndevices && !used; d++) {
      if (strcmp(s->target.devices[d].name.kind, kind) != 0) continue;
      for (int k = 0; k < p->devices[d].nsteps && !used; k++)
        used = p->devices[d].steps[k].kernel == p->kernels[i];
    }
    if (used) out[n++] = p->kernels[i];
  }
  return n;
}

/* The backend that shows kernels as `form`: the one asked for, or the default for devices of the kind. */
static const struct backend *emitter(const struct dgc_session *s, const char *kind) {
  const struct backend *chosen = s->options.backend ? backend_find(s->options.backend) : NULL;
  if (chosen && strcmp(chosen->kind, kind) == 0) return chosen;
  for (int i = 0; backends[i]; i++)
    if (strcmp(backends[i]->kind, kind) == 0) return backends[i];
  return NULL;
}

static enum dgc_status print_kernels(struct dgc_session *s, struct str *out, const char *form,
                                     const struct plan *p) {
  const char *kind = strcmp(form, "llvm") == 0 ? "cpu" : "gpu";
  const struct kernel **kernels = arena_new_array(s->call, (size_t)p->nkernels, const struct kernel *);
  int count = kernels_of_kind(s, p, kind, kernels);
  const struct backend *b = emitter(s, kind);
  if (b->emit) {
    const char *text = b->emit(s->call, kernels, count, form, s->options.arch, &s->diags);
    if (!text) return DGC_RUNTIME;
    str_put(out, text);
    return DGC_OK;
  }
  for (int i = 0; i < count; i++) {
    kernel_print(out, kernels[i]);
    str_putc(out, '\n');
  }
  return DGC_OK;
}

/* Whether there is a device whose kernels have this form. */
static enum dgc_status check_form(struct dgc_session *s, const char *form) {
  bool cpu = strcmp(form, "llvm") == 0;
  const char *kind = cpu ? "cpu" : "gpu";
  for (int i = 0; i < s->target.ndevices; i++)
    if (strcmp(s->target.devices[i].name.kind, kind) == 0) return DGC_OK;
  session_fail(s, DGC_USAGE, "--emit %s shows the kernels of %s devices, and there is none", form, kind);
  diag_help(&s->diags, LOC_NONE, cpu ? "--emit cuda shows those of GPUs" : "add --devices gpu:0");
  return DGC_USAGE;
}

static const struct {
  const char *stage, *last; /* NULL: the source graph */
} graph_stages[] = {
    {"graph", NULL},   {"grad", "grad"},  {"replicated", "pack"}, {"placed", "copies"},
    {"fused", "fuse"}, {"dot", "copies"}, {"json", "copies"},
};

static enum dgc_status emit_graph(struct dgc_session *s, enum entry_kind kind, const char *stage,
                                  const char *last, bool json, struct str *out) {
  const struct graph *g = last ? session_graph(s, s->call, kind, 0, last) : entry_source(s, kind);
  if (!g) return session_blame(s);
  if (strcmp(stage, "dot") == 0)
    graph_print_dot(out, g);
  else if (json || strcmp(stage, "json") == 0)
    graph_print_json(out, g);
  else
    graph_print(out, g);
  return DGC_OK;
}

static enum dgc_status emit_plan(struct dgc_session *s, enum entry_kind kind, const char *stage, bool json,
                                 struct str *out) {
  bool kernels = strcmp(stage, "llvm") == 0 || strcmp(stage, "cuda") == 0 || strcmp(stage, "ptx") == 0;
  enum dgc_status status = kernels ? check_form(s, stage) : DGC_OK;
  if (status) return status;
  struct graph *g = session_graph(s, s->call, kind, 0, NULL);
  if (!g) return session_blame(s);
  struct plan *p = plan_build(s->call, g, &s->diags);
  if (!p) return session_blame(s);
  if (strcmp(stage, "plan") == 0)
    plan_print(out, p);
  else if (strcmp(stage, "memory") == 0)
    (json ? plan_print_memory_json : plan_print_memory)(out, p);
  else if (strcmp(stage, "traffic") == 0)
    (json ? plan_print_traffic_json : plan_print_traffic)(out, p);
  else
    return print_kernels(s, out, stage, p);
  return DGC_OK;
}

static enum dgc_status emit_ast(struct dgc_session *s, struct str *out) {
  struct file *f = ast_parse(s->call, s->source, &s->diags);
  if (!f) return DGC_INPUT;
  ast_print(out, f);
  return DGC_OK;
}

static enum dgc_status unknown_stage(struct dgc_session *s, const char *stage) {
  static const char *const stages[] = {"ast",   "graph", "grad",   "replicated", "placed",
                                       "fused", "plan",  "memory", "traffic",    "llvm",
                                       "cuda",  "ptx",   "dot",    "json",       "strategies"};
  enum { COUNT = sizeof stages / sizeof *stages };
  session_fail(s, DGC_USAGE, "cannot emit '%s': there are %s", stage, str_join(s->call, stages, COUNT));
  diag_closest(&s->diags, LOC_NONE, stage, stages, COUNT, NULL);
  return DGC_USAGE;
}

/* "memory-json": a stage as JSON. */
static const char *take_json(struct arena *a, const char *stage, bool *json) {
  size_t len = strlen(stage);
  *json = len > 5 && strcmp(stage + len - 5, "-json") == 0;
  return *json ? arena_strndup(a, stage, len - 5) : stage;
}

static enum dgc_status emit(struct dgc_session *s, const char *entry, const char *stage, struct str *out) {
  bool json;
  stage = take_json(s->call, stage, &json);
  static const char *const texts[] = {"ast", "plan", "llvm", "cuda", "ptx", "dot", "strategies"};
  for (size_t i = 0; json && i < sizeof texts / sizeof *texts; i++)
    if (strcmp(stage, texts[i]) == 0)
      return session_fail(s, DGC_USAGE, "there is no JSON of '%s': graphs, memory and traffic have one",
                          stage);
  if (strcmp(stage, "ast") == 0 && s->source) return emit_ast(s, out);
  if (strcmp(stage, "strategies") == 0 && s->model) return session_compare(s, out);
  enum entry_kind kind;
  const struct backend *backend;
  enum dgc_status status = entry_find(s, entry, &kind);
  if (!status) status = session_target(s);
  if (!status) status = session_backend(s, &backend);
  if (status) return status;
  for (size_t i = 0; i < sizeof graph_stages / sizeof *graph_stages; i++)
    if (strcmp(stage, graph_stages[i].stage) == 0)
      return emit_graph(s, kind, stage, graph_stages[i].last, json, out);
  static const char *const of_plan[] = {"plan", "memory", "traffic", "llvm", "cuda", "ptx"};
  for (int i = 0; i < 6; i++)
    if (strcmp(stage, of_plan[i]) == 0) return emit_plan(s, kind, stage, json, out);
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
