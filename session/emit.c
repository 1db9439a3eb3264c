/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown of a model on its way: the stages of --emit. */
#include "session/compile.h"
#include "session/devices.h"
#include "session/model.h"
#include "session/module.h"
#include "session/picture.h"
#include "session/scaling.h"
#include "session/settle.h"
#include "session/state/settlement.h"
#include "session/summary.h"

#include "frontend/ast.h"
#include "hlo/hlo.h"
#include "ir/graph/text.h"
#include "ir/plan/report.h"
#include "planner/planner.h"
#include "runtime/engines.h"

#include <string.h>

/* --- kernels --- */

/* Whether the device runs the kernel, in a loop maybe. */
static bool runs_kernel(const struct plan *p, int device, const struct kernel *kernel) {
  const struct device_plan *d = &p->devices[device];
  for (int i = 0; i < d->nsteps; i++) {
    const struct step *step = &d->steps[i];
    if (step->kernel == kernel || (step->loop && runs_kernel(step->loop->body, device, kernel))) return true;
  }
  return false;
}

/* The kernels that devices of this kind run. */
static int kernels_of_kind(struct dgc_session *s, const struct plan *p, const char *kind,
                           const struct kernel **out) {
  int n = 0;
  for (int i = 0; i < p->nkernels; i++) {
    bool used = false;
    for (int d = 0; d < p->ndevices && !used; d++)
      used =
          strcmp(s->settlement->target.devices[d].name.kind, kind) == 0 && runs_kernel(p, d, p->kernels[i]);
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
  for (int i = 0; i < s->settlement->target.ndevices; i++)
    if (strcmp(s->settlement->target.devices[i].name.kind, kind) == 0) return DGC_OK;
  session_fail(s, DGC_USAGE, "--emit %s shows the kernels of %s devices, and there is none", form, kind);
  diag_help(&s->diags, LOC_NONE, cpu ? "--emit cuda shows those of GPUs" : "add --devices gpu:0");
  return DGC_USAGE;
}

/* --- stages --- */

typedef void print_graph_fn(struct str *s, const struct graph *g);
typedef void print_plan_fn(struct str *s, const struct plan *p);

struct emitted {
  const char *name;
  enum { OF_SOURCE, OF_STRATEGIES, OF_SCALING, OF_GRAPH, OF_PICTURE, OF_MODULE, OF_PLAN, OF_KERNELS } of;
  const char *last; /* OF_GRAPH, OF_MODULE: the last pass; NULL: the source graph as it is */
  /* [1]: as JSON, NULL if there is none */
  print_graph_fn *graph[2];
  print_plan_fn *plan[2];
};

#define GRAPH(name, last, print)                                    \
  {                                                                 \
    (name), OF_GRAPH, (last), .graph = {(print), graph_print_json } \
  }
static const struct emitted stages[] = {
    {"ast", .of = OF_SOURCE},
    {"summary", OF_GRAPH, NULL, .graph = {summary_print}},
    GRAPH("graph", NULL, graph_print),
    GRAPH("grad", "grad", graph_print),
    GRAPH("replicated", "pack", graph_print),
    GRAPH("placed", "copies", graph_print),
    GRAPH("fused", "fuse", graph_print),
    {"plan", .of = OF_PLAN, .plan = {plan_print}},
    {"memory", .of = OF_PLAN, .plan = {plan_print_memory, plan_print_memory_json}},
    {"traffic", .of = OF_PLAN, .plan = {plan_print_traffic, plan_print_traffic_json}},
    {"llvm", .of = OF_KERNELS},
    {"cuda", .of = OF_KERNELS},
    {"ptx", .of = OF_KERNELS},
    {"dot", OF_GRAPH, "copies", .graph = {graph_print_dot}},
    GRAPH("json", "copies", graph_print_json),
    {"html", .of = OF_PICTURE},
    {"stablehlo", .of = OF_MODULE, .last = "copies"},
    {"module", .of = OF_MODULE, .last = module_pass},
    {"strategies", .of = OF_STRATEGIES},
    {"scaling", .of = OF_SCALING},
};
#undef GRAPH
enum { NSTAGES = sizeof stages / sizeof *stages };

static bool has_json(const struct emitted *stage) {
  return stage->graph[1] || stage->plan[1] || stage->of == OF_SCALING;
}

static enum dgc_status emit_graph(struct dgc_session *s, enum entry_kind kind, const struct emitted *stage,
                                  bool json, struct str *out) {
  const struct graph *g =
      stage->last ? session_part(s, s->call, kind, 0, stage->last) : entry_source(s, kind);
  if (!g) return session_blame(s);
  print_graph_fn *print = stage->graph[json];
  if (print == graph_print && s->options.no_origins) print = graph_print_without_origins;
  print(out, g);
  return DGC_OK;
}

/* A function for each entry, or for the one that was asked for. */
static enum dgc_status emit_module(struct dgc_session *s, const enum entry_kind *only,
                                   const struct emitted *stage, struct str *out) {
  struct hlo_function functions[ENTRY_COUNT];
  int count = 0;
  bool one_device = stage->last == module_pass; /* one device's part; initial values are the host's */
  for (enum entry_kind kind = one_device ? ENTRY_TRAIN : ENTRY_INIT; kind < ENTRY_COUNT; kind++) {
    if ((only && *only != kind) || !entry_there(s, kind)) continue;
    struct graph *g = session_part(s, s->call, kind, 0, stage->last);
    if (!g) return session_blame(s);
    functions[count++] = (struct hlo_function){.graph = g,
                                               .name = entry_names[kind],
                                               .batch = s->settlement->config.batch,
                                               .devices = one_device ? module_devices(g) : 0};
  }
  return hlo_print(out, s->model->name, functions, count, &s->diags) ? DGC_OK : DGC_INPUT;
}

static void print_memory(struct str *out, const struct plan *p, const struct module_memory *m, bool json) {
  const struct {
    const char *name;
    int64_t bytes;
  } rows[] = {{"arguments", m->arguments},
              {"results", m->results},
              {"shared", m->shared},
              {"temporary", m->temporary},
              {"code", m->code}};
  const struct plan_module *module = p->devices[0].steps[0].module;
  str_printf(
      out, json ? "{\"graph\":\"%s\",\"devices\":%d" : "memory of %s on each of %d devices, by the plugin\n",
      p->graph->name, module->ndevices);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    str_printf(out, json ? ",\"%s\":%lld" : "  %-10s %12lld bytes\n", rows[i].name, (long long)rows[i].bytes);
  str_put(out, json ? "}\n" : "  (of the results, those that are shared lie where arguments were)\n");
}

/* What a plugin says of the memory of a module, which it compiles for that. */
static enum dgc_status emit_module_memory(struct dgc_session *s, const struct plan *p, bool json,
                                          struct str *out) {
  struct module_memory m;
  struct engines *e = engines_open(&s->settlement->target, NULL, &s->diags);
  if (!e) return DGC_RUNTIME;
  const struct opened *o = e->devices[0];
  bool good = o->backend->module_memory(o->self, p->devices[0].steps[0].module, &m, &s->diags);
  engines_close(e);
  if (good) print_memory(out, p, &m, json);
  return good ? DGC_OK : DGC_RUNTIME;
}

static enum dgc_status emit_module_plan(struct dgc_session *s, enum entry_kind kind,
                                        const struct emitted *stage, bool json, struct str *out) {
  enum dgc_status status = session_check_modules(s);
  if (status) return status;
  struct graph *g = session_graph(s, s->call, kind, 0, module_pass);
  struct plan *p = g ? module_plan(s, s->call, g, 0) : NULL;
  if (!p) return session_blame(s);
  if (stage->plan[0] == plan_print_memory) return emit_module_memory(s, p, json, out);
  if (stage->plan[0] != plan_print)
    return session_fail(s, DGC_USAGE, "--emit %s: nothing is known of it where a PJRT plugin runs the graph",
                        stage->name);
  plan_print(out, p);
  return DGC_OK;
}

static enum dgc_status emit_plan(struct dgc_session *s, enum entry_kind kind, const struct emitted *stage,
                                 bool json, struct str *out) {
  enum dgc_status status = stage->of == OF_KERNELS ? check_form(s, stage->name) : DGC_OK;
  if (status) return status;
  if (session_runs_modules(s)) return emit_module_plan(s, kind, stage, json, out);
  bool one = s->options.task != NULL; /* its part of the plan for processes */
  bool alone = one && stage->plan[0] == plan_print;
  struct graph *g = (alone ? session_part : session_graph)(s, s->call, kind, 0, NULL);
  if (!g) return session_blame(s);
  struct plan *p = (one ? plan_build_processes : plan_build)(s->call, g, &s->diags);
  if (p && one) p->shown = s->settlement->task + 1;
  if (!p) return session_blame(s);
  if (stage->of == OF_KERNELS) return print_kernels(s, out, stage->name, p);
  stage->plan[json](out, p);
  return DGC_OK;
}

static enum dgc_status emit_ast(struct dgc_session *s, struct str *out) {
  struct file *f = ast_parse(s->call, s->source, &s->diags);
  if (!f) return DGC_INPUT;
  ast_print(out, f);
  return DGC_OK;
}

static const struct emitted *find_stage(const char *name) {
  for (int i = 0; i < NSTAGES; i++)
    if (strcmp(stages[i].name, name) == 0) return &stages[i];
  return NULL;
}

static enum dgc_status unknown_stage(struct dgc_session *s, const char *stage) {
  const char *names[NSTAGES];
  for (int i = 0; i < NSTAGES; i++) names[i] = stages[i].name;
  static const char *const others[] = {"onnx", "hlo", "xla", "mlir", "tflite", "savedmodel", "torchscript"};
  session_fail(s, DGC_USAGE, "cannot emit '%s': there are %s", stage, str_join(s->call, names, NSTAGES));
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcmp(stage, others[i]) == 0) {
      diag_help(&s->diags, LOC_NONE, "'stablehlo' is what other compilers read");
      return DGC_USAGE;
    }
  if (strcmp(stage, "ir") == 0 || strcmp(stage, "asm") == 0) {
    diag_help(&s->diags, LOC_NONE,
              "'graph' and 'placed' are dgc's own, 'llvm' and 'ptx' what kernels become");
    return DGC_USAGE;
  }
  diag_closest(&s->diags, LOC_NONE, stage, names, NSTAGES, NULL);
  return DGC_USAGE;
}

/* "memory-json": a stage as JSON. */
static const char *take_json(struct arena *a, const char *stage, bool *json) {
  size_t len = strlen(stage);
  *json = len > 5 && strcmp(stage + len - 5, "-json") == 0;
  return *json ? arena_strndup(a, stage, len - 5) : stage;
}

static enum dgc_status emit(struct dgc_session *s, const char *entry, const char *name, struct str *out) {
  bool json;
  name = take_json(s->call, name, &json);
  const struct emitted *stage = find_stage(name);
  if (stage && json && !has_json(stage))
    return session_fail(s, DGC_USAGE,
                        "there is no JSON of '%s': graphs, memory, traffic and scaling have one", name);
  if (stage && stage->of == OF_SOURCE && s->source) return emit_ast(s, out);
  if (stage && stage->of == OF_STRATEGIES && s->model) return session_compare(s, out);
  enum entry_kind kind;
  const struct backend *backend;
  enum dgc_status status = entry_find(s, entry, &kind);
  if (!status) status = session_settle(s);
  if (!status && stage && stage->of == OF_SCALING) return session_scaling(s, kind, json, out);
  if (!status) status = session_backend(s, &backend);
  if (status) return status;
  if (!stage) return unknown_stage(s, name);
  if (stage->of == OF_PICTURE) return session_picture(s, kind, out);
  if (stage->of == OF_GRAPH) return emit_graph(s, kind, stage, json, out);
  if (stage->of == OF_MODULE) return emit_module(s, entry ? &kind : NULL, stage, out);
  return emit_plan(s, kind, stage, json, out);
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
