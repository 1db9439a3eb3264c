/* SPDX-License-Identifier: Apache-2.0 */
/* From a parsed source to the graphs of its model: one run of the text per graph. */
#include "frontend/resolve.h"

#include <string.h>

/* The names of a file's models into the arena; how many. */
static int models_of(struct arena *a, const struct file *file, const char *const **out) {
  int n = 0;
  for (const struct def *d = file->defs; d; d = d->next) n += d->kind == DEF_MODEL;
  const char **names = arena_new_array(a, (size_t)n + 1, const char *);
  n = 0;
  for (const struct def *d = file->defs; d; d = d->next)
    if (d->kind == DEF_MODEL) names[n++] = d->name;
  *out = names;
  return n;
}

int frontend_models(struct arena *a, const struct source *source, struct diags *d,
                    const char *const **names) {
  int errors = d->nerrors;
  const struct file *file = ast_parse(a, source, d);
  return file && d->nerrors == errors ? models_of(a, file, names) : 0;
}

static const struct def *find_model(struct resolver *r, const struct source *source,
                                    const struct file *file) {
  const char *const *names, *asked = r->options->model;
  size_t n = (size_t)models_of(r->arena, file, &names);
  struct loc start = {source, 0, 0};
  const struct def *found = NULL;
  for (const struct def *d = file->defs; d; d = d->next) {
    if (d->kind != DEF_MODEL) continue;
    if (!asked && found) {
      report(r, d->loc, "there are several models: %s", str_join(r->arena, names, n));
      report_note(r, found->loc, "the first one is here");
      report_help(r, "`--model %s` takes this one", d->name);
      return NULL;
    }
    if (!asked || strcmp(d->name, asked) == 0) found = d;
  }
  if (found) return found;
  if (!asked) {
    report(r, start, "there is no model in `%s`", source->name);
    return NULL;
  }
  report(r, start, "there is no model `%s`", asked);
  if (n) report_help(r, "`%s` has %s", source->name, str_join(r->arena, names, n));
  return NULL;
}

static struct graph *run_model(struct resolver *r, const struct def *d, struct module *m,
                               enum run_kind kind) {
  static const char *const names[] = {[RUN_TRAIN] = "train", [RUN_EVAL] = "eval", [RUN_PREDICT] = "predict"};
  struct function f = {.def = d, .module = m, .makes = arena_new(r->arena, uint8_t)};
  struct frame frame = {
      .function = &f, .path = "", .owner = "", .suffix = "", .call = d->loc, .block = ++r->serial};
  r->g = graph_create(r->arena, arena_printf(r->arena, "%s.%s", d->name, names[kind]), &r->built);
  r->g->literal = r->modules.ask_gradients;
  r->run = (struct model_run){
      .kind = kind, .number = r->run.number + 1, .outputs = map_make(r->arena), .bound = map_make(r->arena)};
  r->formulas = (struct formulas){0};
  r->budget.steps = 0;
  r->frame = &frame;
  r->path = "";
  scope_push(r);
  if (model_parameters(r, d) && apply_settings(r, d)) {
    scope_push(r);
    run_block(r, &d->body);
    if (kind == RUN_TRAIN && r->run.train_statements && !r->budget.stopped) finish_updates(r);
  }
  r->frame = NULL;
  return r->g;
}

/* What a run of the model has built for other graphs stays behind. */
static struct graph *finish(struct arena *a, struct graph *g, struct diags *d) {
  struct graph *out = graph_prune(a, g);
  out->diags = d;
  return out;
}

/* The files that a source uses, and those that they use. */
static void list_files(struct resolver *r, const struct source *source) {
  struct model *model = r->model;
  model->files = arena_new_array(r->arena, r->modules.by_name.count, const char *);
  for (uint32_t i = 0; i < r->modules.by_name.count; i++) {
    const struct module *m = r->modules.by_name.entries[i].value;
    if (!m->library && m->source != source) model->files[model->nfiles++] = m->source->name;
  }
}

struct model *frontend_compile(struct arena *a, const struct source *source,
                               const struct frontend_options *options, struct diags *d) {
  static const struct frontend_options defaults = {0};
  int errors = d->nerrors;
  struct file *file = ast_parse(a, source, d);
  if (!file || d->nerrors > errors) return NULL;

  struct resolver *r = arena_new(a, struct resolver);
  *r = (struct resolver){.arena = a, .diags = d, .options = options ? options : &defaults, .path = ""};
  diags_init(&r->built, a);
  r->differentiation = (struct differentiation){.arena = a, .suffix = "gradient"};
  r->errors.told = map_make(a);
  r->modules.by_name = map_make(a);
  r->variables = (struct variables){.by_path = map_make(a), .last = &r->variables.first};
  r->declared = (struct declared){.inputs = map_make(a), .data = map_make(a)};
  r->reach.arena = a;
  load_library(r, "prelude");
  struct module *m = load_modules(r, source, file);
  const struct def *def = find_model(r, source, file);
  if (!def || d->nerrors > errors) return NULL;

  struct model *model = r->model = arena_new(a, struct model);
  model->name = def->name;
  r->variables.last_start = &model->starts;
  list_files(r, source);
  effects_begin(r);
  r->init = graph_create(a, arena_printf(a, "%s.init", def->name), &r->built);
  r->init->literal = r->modules.ask_gradients;
  struct graph *train = run_model(r, def, m, RUN_TRAIN);
  bool trains = r->run.train_statements > 0;
  struct graph *train_metrics = r->formulas.graph, *metrics = NULL;
  struct graph *eval_graph = NULL, *predict = NULL;
  if (!r->budget.stopped && (trains || r->effects.evaluates)) eval_graph = run_model(r, def, m, RUN_EVAL);
  metrics = r->formulas.graph;
  if (!r->budget.stopped && r->effects.predicts) predict = run_model(r, def, m, RUN_PREDICT);
  /* A metric that only prediction has met, where `training` is false. */
  if (!r->budget.stopped && r->effects.evaluates && !eval_graph) {
    eval_graph = run_model(r, def, m, RUN_EVAL);
    metrics = r->formulas.graph;
  }
  if (!r->budget.stopped && r->effects.predicts && !predict) predict = run_model(r, def, m, RUN_PREDICT);
  if (d->nerrors > errors) return NULL;
  if (!trains && !eval_graph && !predict) {
    report(r, def->loc, "model `%s` has nothing to do: it has no train, metric or predict statement",
           def->name);
    return NULL;
  }
  effects_report(r, trains);
  if (d->nerrors > errors) return NULL;
  warn_unused(r, file);
  model->init = r->init->noutputs ? finish(a, r->init, d) : NULL;
  model->train = trains ? finish(a, train, d) : NULL;
  model->eval = eval_graph && eval_graph->noutputs ? finish(a, eval_graph, d) : NULL;
  model->predict = predict ? finish(a, predict, d) : NULL;
  model->metrics = metrics ? finish(a, metrics, d) : NULL;
  model->train_metrics = trains && train_metrics ? finish(a, train_metrics, d) : NULL;
  model->rates = trains && r->rates && r->rates->noutputs ? finish(a, r->rates, d) : NULL;
  return model;
}
