/* SPDX-License-Identifier: Apache-2.0 */
/* Of each model of loops.dsl and rows.dsl: each entry's source and what the last pass makes of it, for one tower and
 * for three. Of each sample the same of train, eval and predict for one tower. Of both: what another pass makes, init,
 * three towers, and predict in f32, where there is a kind of node that no case before has. All else is in f64.
 * TEST_CASES=1: what each pass makes of each entry, and init and eval in f32, too. */
#include "frontend/frontend.h"
#include "ir/ops/op_id.h"
#include "ir/strategies.h"
#include "passes/pass.h"
#include "tests/oracle/sample.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"
#include "tests/support/small.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 7, MAX_SAMPLES = 64 };

static const char *const pass_names[] = {
#define PASS(name, from, to, help) #name,
#include "passes/passes.def"
#undef PASS
};
enum { NPASSES = sizeof pass_names / sizeof *pass_names };

static _Noreturn void give_up(struct arena *a, const char *what, const struct diags *d) {
  (void)a;
  for (const struct diag *e = d->first; e; e = e->next) fprintf(stderr, "%s: %s\n", what, e->message);
  exit(1);
}

/* ---- values ---- */

/* Numbers over all that the model can read of an input. */
static void fill_input(struct rng *r, const struct model_input *in, struct tensor *t) {
  bool limited = in && in->low <= in->high, part = in && !limited && in->part_low <= in->part_high;
  double low = limited ? (double)in->low : part ? (double)in->part_low : t->type.dtype == DT_U8 ? 0 : -1;
  double high = limited ? (double)in->high : part ? (double)in->part_high : t->type.dtype == DT_U8 ? 255 : 1;
  for (int64_t i = 0; i < type_count(&t->type); i++) {
    double x = rng_uniform(r, low, dtype_is_float((enum dtype)t->type.dtype) ? high : high + 1);
    tensor_set(t, i, x);
  }
}

static const struct model_input *input_named(const struct model *m, const char *name) {
  for (int i = 0; i < m->ninputs; i++)
    if (strcmp(m->inputs[i].name, name) == 0) return &m->inputs[i];
  return NULL;
}

static struct values make_inputs(struct arena *a, const struct model *m, const struct graph *g) {
  struct rng r = {77};
  struct values v = values_make(a);
  for (uint32_t i = 0; i < g->count; i++) {
    if (g->nodes[i]->op != OP_input) continue;
    struct type type = type_specialize(&g->nodes[i]->type, ROWS);
    struct tensor t = {type, arena_alloc(a, (size_t)type_bytes(&type))};
    fill_input(&r, input_named(m, g->nodes[i]->name), &t);
    values_put(&v, g->nodes[i]->name, &t.type, t.data);
  }
  return v;
}

/* ---- graphs ---- */

/* A set of hashes, which is never full: what it has no room for is new each time. */
enum { MAX_HASHES = 8192 };
struct hashes {
  uint64_t of[MAX_HASHES];
  int count;
};

static bool hashes_has(const struct hashes *h, uint64_t hash) {
  for (int i = 0; i < h->count; i++)
    if (h->of[i] == hash) return true;
  return false;
}

static bool hashes_add(struct hashes *h, uint64_t hash) {
  if (hashes_has(h, hash)) return false;
  if (h->count < MAX_HASHES) h->of[h->count++] = hash;
  return true;
}

struct walk {
  const struct asked *asked;
  const struct model *model;
  struct values variables; /* as init leaves them, a step later */
  struct hashes seen;      /* what has been written: most passes leave most graphs as they are */
  struct hashes *kinds;    /* of the nodes that have been written, of all models */
  bool small;              /* a model of loops.dsl or rows.dsl */
  int graphs;
};

static bool is_new(struct walk *w, struct arena *a, const struct graph *g) {
  const char *text = case_text(a, g);
  w->graphs++;
  return hashes_add(&w->seen, str_hash(STR_HASH_SEED, text, strlen(text)));
}

enum { NO_HOLDER = -1 };

/* How a node is written: the op of what holds it, its op, the element types, which attributes it has, and how an
 * all_reduce joins. Shapes are for the suite `ops`. */
static uint64_t kind_of(const struct node *n, uint64_t holder) {
  uint64_t hash = str_hash(STR_HASH_SEED, (const uint64_t[]){holder, n->op}, 2 * sizeof(uint64_t));
  bool whole = !node_attr(n, ATTR_body) && n->op != OP_output;
  for (int i = -1; whole && i < n->ninputs; i++)
    hash = str_hash(hash, i < 0 ? &n->type.dtype : &n->inputs[i]->type.dtype, sizeof n->type.dtype);
  for (int i = 0; i < n->nattrs; i++) hash = str_hash(hash, &n->attrs[i].key, sizeof n->attrs[i].key);
  const char *joins = node_string_or(n, ATTR_reduction, "");
  return str_hash(hash, joins, strlen(joins));
}

/* Whether g, or a body in it, has a kind of node that has not been written; from here on it has. */
static bool adds_kinds(struct hashes *kinds, struct arena *a, const struct graph *g, uint64_t holder) {
  bool found = false;
  const uint8_t *live = graph_live(a, g);
  for (uint32_t i = 0; i < g->count; i++) {
    if (!live[i]) continue;
    const struct attr *body = node_attr(g->nodes[i], ATTR_body);
    if (hashes_add(kinds, kind_of(g->nodes[i], holder))) found = true;
    if (body && adds_kinds(kinds, a, body->body, g->nodes[i]->op)) found = true;
  }
  return found;
}

enum need { NEW_KINDS, ALWAYS };

static bool takes(struct walk *w, struct arena *a, const struct graph *g, enum need need) {
  if (number_from("TEST_CASES", 0) != 0) need = ALWAYS;
  bool kinds = adds_kinds(w->kinds, a, g, NO_HOLDER);
  return (kinds || need == ALWAYS) && is_new(w, a, g);
}

/* In f64, where rounding hides little; as it is where there are ops of f32 alone, and where f32 is asked. Of training
 * steps not: the first one of Adam is the sign of the gradient, and that of a gradient of nearly 0 is rounding. */
static void write_stage(struct walk *w, struct arena *a, const char *name, struct graph *g,
                        const struct values *inputs, enum need need, bool single) {
  struct graph *concrete = graph_concrete(a, g, ROWS), *wide = graph_wide(a, concrete);
  if ((!wide || single) && takes(w, a, concrete, wide ? NEW_KINDS : need))
    case_write(w->asked, name, "f32", concrete, inputs, &w->variables, NULL);
  if (!wide || !takes(w, a, wide, need)) return;
  struct values wide_inputs = values_wide(a, inputs), wide_variables = values_wide(a, &w->variables);
  case_write(w->asked, arena_printf(a, "%s, f64", name), "f64", wide, &wide_inputs, &wide_variables, NULL);
}

/* The source as it is, if nothing in it waits for a pass; then after each pass, up to there from the source. Each is
 * held against what node_eval makes of the same graph, so what is found is how a node is written: any graph that has
 * its kind shows it. */
static void write_entry(struct walk *w, const struct graph *source, int towers, const char *strategy) {
  struct arena *a = arena_create();
  bool train = graph_has_op(source, OP_gradient);
  bool single = source == w->model->predict || (!train && number_from("TEST_CASES", 0) != 0);
  enum need whole = w->small || (towers == 1 && source != w->model->init) ? ALWAYS : NEW_KINDS;
  struct diags d;
  diags_init(&d, a);
  struct values inputs = make_inputs(a, w->model, source);
  struct graph *g = arena_copy(a, source, sizeof *source);
  const char *devices = towers > 1 ? "cpu:0-2" : "cpu:0";
  g->diags = &d;
  g->config = (struct config){.batch = ROWS,
                              .towers = towers,
                              .strategy = strategy,
                              .uneven = (strategy_find(strategy)->settings & TAKES_UNEVEN) != 0};
  if (!target_parse(a, devices, &g->config.target, &d, LOC_NONE)) give_up(a, source->name, &d);
  if (!graph_has_op(g, OP_gradient) && towers == 1)
    write_stage(w, a, arena_printf(a, "%s source", source->name), g, &inputs, whole, false);
  for (int p = 0; p < NPASSES; p++) {
    g = pipeline_run(a, g, pass_names[p], NULL, NULL, &d);
    if (!g) give_up(a, source->name, &d);
    const char *name = arena_printf(a, "%s %s, %s of %d", source->name, pass_names[p], strategy, towers);
    bool last = p + 1 == NPASSES;
    if (!graph_has_op(g, OP_gradient))
      write_stage(w, a, name, g, &inputs, last ? whole : NEW_KINDS, last && single);
  }
  arena_destroy(a);
}

static struct values first_variables(struct arena *a, const struct model *m) {
  struct values v = values_make(a), none = values_make(a);
  if (!m->init) return v;
  for (uint32_t i = 0; i < m->init->count; i++) {
    const struct node *n = m->init->nodes[i];
    if (n->op == OP_variable) values_put(&v, n->name, &n->type, arena_alloc(a, (size_t)type_bytes(&n->type)));
  }
  struct tensor *values = arena_new_array(a, m->init->count + 1, struct tensor);
  if (!graph_eval(a, m->init, &none, &v, values)) exit(1);
  return v;
}

/* A little off from where they begin: at 0 JAX has slopes of its own for what has a kink, as the abs in softplus. */
static void disturb(struct values *v) {
  struct rng r = {78};
  for (uint32_t i = 0; i < v->map.count; i++) {
    struct tensor *t = v->map.entries[i].value;
    bool real = dtype_is_float((enum dtype)t->type.dtype);
    for (int64_t e = 0; real && e < type_count(&t->type); e++)
      tensor_set(t, e, tensor_at(t, e) + rng_uniform(&r, -0.05, 0.05));
  }
}

static void write_model(const struct asked *q, const char *path, const char *name, bool gradients, bool small,
                        struct hashes *kinds) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  const struct source *source = source_read(a, path, 1 << 20, &d);
  struct frontend_options options = {.model = name};
  options.sets = small_sets(path, &options.nsets);
  const struct model *m = source ? frontend_compile(a, source, &options, &d) : NULL;
  if (!m) give_up(a, path, &d);
  struct walk *w = arena_new(a, struct walk);
  w->asked = q;
  w->model = m;
  w->kinds = kinds;
  w->small = small;
  w->variables = first_variables(a, m);
  if (gradients && m->train) {
    struct values inputs = make_inputs(a, m, m->train);
    disturb(&w->variables);
    write_gradients_of(q, arena_printf(a, "%s gradients", m->train->name), m->train, &inputs, &w->variables,
                       ROWS);
  }
  const struct graph *graphs[] = {m->init, m->train, m->eval, m->predict};
  for (int i = 0; i < (int)(sizeof graphs / sizeof *graphs); i++) {
    if (!graphs[i] || gradients) continue;
    write_entry(w, graphs[i], 1, "mirrored");
    write_entry(w, graphs[i], 3, "replicate");
  }
  if (!gradients) fprintf(stderr, "%s: %d graphs, %d modules\n", m->name, w->graphs, w->seen.count);
  arena_destroy(a);
}

/* All models of a file. */
static void write_file(const struct asked *q, const char *path, bool gradients, bool small,
                       struct hashes *kinds) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  const char *const *names;
  const struct source *source = source_read(a, path, 1 << 20, &d);
  int count = source ? frontend_models(a, source, &d, &names) : 0;
  if (count == 0) give_up(a, path, &d);
  for (int i = 0; i < count; i++) write_model(q, path, names[i], gradients, small, kinds);
  arena_destroy(a);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void each_sample(const struct asked *q, bool gradients) {
  char *names[MAX_SAMPLES];
  int n = 0;
  DIR *dir = opendir(TEST_SAMPLES);
  if (!dir) exit(1);
  for (const struct dirent *e; (e = readdir(dir));) {
    size_t len = strlen(e->d_name);
    if (len > 4 && strcmp(e->d_name + len - 4, ".dsl") == 0 && n < MAX_SAMPLES) {
      names[n] = malloc(sizeof TEST_SAMPLES + len + 2);
      sprintf(names[n++], "%s/%s", TEST_SAMPLES, e->d_name);
    }
  }
  closedir(dir);
  qsort(names, (size_t)n, sizeof *names, by_name);
  struct hashes *kinds = calloc(1, sizeof *kinds);
  if (!kinds) exit(1);
  /* The small models first: what they have, the others need not show. */
  write_file(q, TEST_SMALL "/loops.dsl", gradients, true, kinds);
  if (!gradients) write_file(q, TEST_SMALL "/rows.dsl", gradients, true, kinds);
  for (int i = 0; i < n; i++) write_file(q, names[i], gradients, false, kinds), free(names[i]);
  free(kinds);
}

void write_samples(const struct asked *q) { each_sample(q, false); }
void write_gradients(const struct asked *q) { each_sample(q, true); }
