/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics: what evaluation measures, and training, where it is asked for.
 *
 * Batches are evaluated one after the other, and a metric is that of all rows: a mean or a sum over them, or any
 * function of such totals. The eval graph gives what a batch adds to each total; the graph `metrics` has the formulas,
 * which are computed once, at the end, in f64. What is one mean or sum needs no formula, but a count. */
#include "frontend/elsewhere.h"
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"
#include "ir/ops/spread.h"

#include <stdlib.h>
#include <string.h>

static void add_measure(struct resolver *r, const char *name) {
  struct model *m = r->model;
  bool train = r->run.kind == RUN_TRAIN;
  const char ***names = train ? &m->train_measures : &m->measures;
  int *count = train ? &m->ntrain_measures : &m->nmeasures;
  *names = arena_grown(r->arena, *names, *count, sizeof **names);
  (*names)[(*count)++] = name;
}

void give(struct resolver *r, enum output_role role, const char *name, struct node *n, int64_t count) {
  graph_add_output(r->g, role, name, n, count);
  map_put(&r->run.outputs, name, n);
  r->effects.count++;
  if (role == OUTPUT_METRIC) add_measure(r, name);
}

/* ---- what a value is made of ---- */

enum part {
  PART_FIXED,   /* made of constants */
  PART_SAME,    /* every batch gives the same */
  PART_TOTAL,   /* adds up over batches, or another such join */
  PART_FORMULA, /* made of parts like these */
  PART_NONE     /* not a function of totals */
};

/* Why a value is none, and where. */
struct obstacle {
  const struct node *at;
  const char *why;
};

static bool reads_rows(const struct node *n) {
  for (int i = 0; i < n->ninputs; i++)
    if (type_is_symbolic(&n->inputs[i]->type)) return true;
  return false;
}

/* How the totals n of batches become one; false: not at all. */
static bool join_of(const struct node *n, enum output_role *role) {
  switch (n->op == OP_batch_size ? SPREAD_SUM : node_spread(n, NULL)) {
  case SPREAD_SUM: *role = OUTPUT_TOTAL; return true;
  case SPREAD_MAX: *role = OUTPUT_MAXIMUM; return true;
  case SPREAD_MIN: *role = OUTPUT_MINIMUM; return true;
  case SPREAD_SAME:
  case SPREAD_ROWS:
  case SPREAD_PER_TOWER:
  case SPREAD_ALL:
  case SPREAD_NOT: break;
  }
  return false;
}

static enum part part_of_total(struct resolver *r, const struct node *n, struct obstacle *o) {
  enum output_role role;
  *o = (struct obstacle){n, "it is no sum, mean, maximum or minimum over the rows"};
  if (!join_of(n, &role)) return PART_NONE;
  o->why = "what it takes of a row depends on the other rows of the batch";
  /* Rows that a step has trained on are as that step saw them, batch normalization among what it did. */
  for (int i = 0; r->run.kind != RUN_TRAIN && i < n->ninputs; i++)
    if (reach_total(&r->reach, r->g, n->inputs[i])) return PART_NONE;
  return PART_TOTAL;
}

static enum part part_of(struct resolver *r, const struct node *n, struct obstacle *o) {
  if (n->op == OP_batch_size || reads_rows(n)) return part_of_total(r, n, o);
  if (reach_batch(&r->reach, r->g, n)) return PART_FORMULA;
  *o = (struct obstacle){n, "it is another one in each tower"};
  if (n->own) return PART_NONE;
  return reach_varying(&r->reach, r->g, n) ? PART_SAME : PART_FIXED;
}

/* ---- the formula ---- */

/* Nodes, each behind its operands. */
struct nodes {
  struct node **items;
  int count;
};

static int by_id(const void *a, const void *b) {
  const struct node *x = *(struct node *const *)a, *y = *(struct node *const *)b;
  return (x->id > y->id) - (x->id < y->id);
}

/* Where the formula of n is kept. */
static struct node **formula_at(struct resolver *r, const struct node *n) {
  if (n->id < r->formulas.count) return &r->formulas.of[n->id];
  struct node **more = arena_new_array(r->arena, 2 * (size_t)r->g->count, struct node *);
  if (r->formulas.count) memcpy(more, r->formulas.of, r->formulas.count * sizeof *more);
  r->formulas.of = more;
  r->formulas.count = 2 * r->g->count;
  return &r->formulas.of[n->id];
}

static bool is_inside(enum part part) { return part == PART_FIXED || part == PART_FORMULA; }

/* What the formula of n needs that no other formula has needed. False: n has none. */
static bool parts_of(struct resolver *r, const struct node *n, struct nodes *out, struct obstacle *o) {
  uint32_t depth = 0;
  walk_begin(&r->walk, r->arena, r->g);
  walk_to(&r->walk, n, &depth);
  while (depth) {
    const struct node *q = r->walk.stack[--depth];
    if (*formula_at(r, q)) continue;
    enum part part = part_of(r, q, o);
    if (part == PART_NONE) return false;
    out->items = arena_grown(r->arena, out->items, out->count, sizeof(struct node *));
    out->items[out->count++] = r->g->nodes[q->id];
    for (int i = 0; is_inside(part) && i < q->ninputs; i++) walk_to(&r->walk, q->inputs[i], &depth);
  }
  if (out->count) qsort(out->items, (size_t)out->count, sizeof(struct node *), by_id);
  return true;
}

/* Formulas compute with f64, and with i64 for u8 and i32; in f32 is what there is in f32 alone. */
static struct type wide(struct type t) {
  if (dtype_is_float((enum dtype)t.dtype)) t.dtype = DT_F64;
  if (dtype_is_int((enum dtype)t.dtype)) t.dtype = DT_I64;
  return t;
}

/* A sum of integers over the rows of a batch, which must not depend on how many these are: in i64. One of integers that
 * are converted to f32, as those of a mean are, has them in f64; and more rows may there be than f32 counts. */
static struct node *wide_total(struct resolver *r, struct node *n) {
  if (n->op == OP_batch_size) return build_batch_size(r->g, DT_F64);
  if (n->op != OP_reduce_sum) return n;
  struct node *x = n->inputs[0];
  bool converted = x->op == OP_cast && dtype_is_int((enum dtype)x->inputs[0]->type.dtype);
  if (dtype_is_int((enum dtype)n->type.dtype))
    x = build_cast(r->g, x, DT_I64);
  else if (n->type.dtype == DT_F32 && converted)
    x = build_cast(r->g, x->inputs[0], DT_F64);
  else
    return n;
  return build(r->g, OP_reduce_sum, 1, &x, n->nattrs, n->attrs, NULL);
}

/* Counts are integers, and what is to be a share of them is 0. */
static void warn_whole(struct resolver *r, const struct node *n) {
  if (n->op != OP_div || !dtype_is_int((enum dtype)n->type.dtype) || is_library(r, n->loc)) return;
  if (told_before(r, n->loc, "whole")) return;
  diag_warning(r->diags, n->loc, "a metric divides integers here, and what is left over is lost");
  diag_help(r->diags, LOC_NONE, "of a share write `sum(cast(x, f32)) / ...`, or `mean(x)`");
}

/* What a batch gives to the formulas, as an output here and an input there. */
static struct node *formula_input(struct resolver *r, struct node *n, enum part part) {
  enum output_role role = OUTPUT_SAME;
  if (part == PART_TOTAL) join_of(n, &role);
  struct node *given = part == PART_TOTAL ? wide_total(r, n) : n;
  struct type t = wide(n->type);
  struct node *input = build_input(r->formulas.graph, n->name, &t);
  if (input && given) graph_add_output(r->g, role, input->name, given, 0);
  return input;
}

/* What has f32 alone: bfloat16 values are rounded from it, and products of them give it. */
static bool is_single(const struct node *n) {
  return op_of(n)->dtypes == DTYPE_SINGLE || node_attr(n, ATTR_precision);
}

static struct node *formula_node(struct resolver *r, const struct node *n) {
  struct graph *g = r->formulas.graph;
  struct type t = wide(n->type);
  bool single = is_single(n);
  warn_whole(r, n);
  if (n->op == OP_constant)
    return build_cast(g, build_constant(g, &n->type, node_attr(n, ATTR_value)->data), (enum dtype)t.dtype);
  struct node **in = arena_new_array(r->arena, (size_t)n->ninputs + 1, struct node *);
  for (int i = 0; i < n->ninputs; i++) in[i] = *formula_at(r, n->inputs[i]);
  for (int i = 0; single && i < n->ninputs; i++) in[i] = build_cast(g, in[i], DT_F32);
  if (n->op == OP_cast) return build_cast(g, in[0], (enum dtype)t.dtype);
  struct node *y =
      build_named(g, n->name, n->op, n->ninputs, in, n->nattrs, n->attrs, single ? &n->type : &t);
  return y && single ? build_cast(g, y, (enum dtype)t.dtype) : y;
}

/* n in the graph of formulas; NULL: it is no function of totals (*o says why), or after an error. */
static struct node *formula_of(struct resolver *r, const struct node *n, struct obstacle *o) {
  struct nodes parts = {0};
  if (!parts_of(r, n, &parts, o)) return NULL;
  if (!r->formulas.graph)
    r->formulas.graph = graph_create(
        r->arena,
        arena_printf(r->arena, "%s.%smetrics", r->model->name, r->run.kind == RUN_TRAIN ? "train_" : ""),
        &r->built);
  for (int i = 0; i < parts.count; i++) {
    struct node *q = parts.items[i];
    struct obstacle none;
    enum part part = part_of(r, q, &none);
    if (q == n && part == PART_FIXED) part = PART_SAME; /* evaluation gives something */
    r->formulas.graph->at.scope = q->name;
    r->formulas.graph->at.loc = q->loc;
    r->formulas.graph->at.trail = q->trail;
    struct node *y = is_inside(part) ? formula_node(r, q) : formula_input(r, q, part);
    *o = (struct obstacle){q, "formulas compute with f64, which it does not take"};
    if (!y) return NULL;
    *formula_at(r, q) = y;
  }
  return *formula_at(r, n);
}

/* ---- statements ---- */

/* Whether v is one mean or sum over the rows, but of integers: it is given as a sum and a count. */
static bool give_average(struct resolver *r, const char *name, const struct value *v) {
  struct node *n = v->kind == VALUE_TENSOR ? v->tensor.sum : NULL;
  struct obstacle none;
  if (!n || part_of(r, n, &none) != PART_TOTAL) return false;
  bool counts = n->inputs[0]->op == OP_cast && n->inputs[0]->inputs[0]->type.dtype == DT_BOOL;
  if (dtype_is_int((enum dtype)n->type.dtype) && !counts) return false; /* its total is exact */
  n = dtype_is_float((enum dtype)n->type.dtype) ? wide_total(r, n) : build_cast(r->g, n, DT_F64);
  if (n) give(r, OUTPUT_METRIC, name, n, v->tensor.elements);
  return true;
}

/* A loss of which there is no total: the mean over the batches, each of which counts as many times as it has rows. */
static void give_mean_of_batches(struct resolver *r, const char *name, struct node *n, struct loc loc,
                                 const struct obstacle *o) {
  n = build2(r->g, OP_mul, n, build_batch_size(r->g, (enum dtype)n->type.dtype));
  if (!n) return;
  give(r, OUTPUT_METRIC, name, n, -1);
  diag_note(r->diags, loc, "evaluation gives the mean of `%s` over the batches, which depends on their size",
            name);
  diag_note(r->diags, is_library(r, o->at->loc) ? loc : o->at->loc, "%s", o->why);
}

static void report_metric(struct resolver *r, struct loc loc, const struct obstacle *o) {
  report(r, loc, "a metric is a function of sums over the rows, and this one is not");
  report_note(r, is_library(r, o->at->loc) ? loc : o->at->loc, "%s", o->why);
  report_help(
      r, "batches are evaluated one by one: write it with sums, means, maxima and minima of what each row "
         "gives by itself");
}

void run_metric(struct resolver *r, const char *name, struct loc loc, const struct value *v, bool is_loss) {
  if (v->kind == VALUE_ERROR) return;
  build_here(r, loc);
  bool number = v->kind == VALUE_INT || v->kind == VALUE_FLOAT;
  struct node *n = number ? value_node(r, v, DT_F32) : tensor_node(r, v, "a metric");
  if (!n && v->kind == VALUE_STRING && elsewhere_call(v->string))
    report_help(r, "it is written `%s`", elsewhere_call(v->string));
  if (!n) return;
  if (n->type.rank != 0) {
    report(r, loc, "a metric is a scalar, not %s", type_text(r->arena, &n->type));
    report_value(r, v);
    bool whole = n->type.dim[0] >= 0;
    report_help(r, whole ? "it is one figure, as `x[0]`; a table of them is made of what `dgc predict` writes"
                         : "end it in `mean(...)` or `sum(...)`");
    return;
  }
  if (map_get(&r->run.outputs, name)) {
    report(r, loc, "two metrics are called `%s`", name);
    report_help(r, "a train statement gives the metric `loss`, or what it is named");
    return;
  }
  if (give_average(r, name, v)) return;
  int errors = r->diags->nerrors;
  struct obstacle o;
  struct node *f = formula_of(r, n, &o);
  if (f && !dtype_is_float((enum dtype)f->type.dtype)) f = build_cast(r->formulas.graph, f, DT_F64);
  if (f) {
    graph_add_output(r->formulas.graph, OUTPUT_METRIC, name, f, 0);
    map_put(&r->run.outputs, name, f);
    add_measure(r, name);
    r->effects.count++;
  } else if (is_loss && !r->built.first) {
    give_mean_of_batches(r, name, n, loc, &o);
  } else if (r->diags->nerrors == errors) {
    report_metric(r, loc, &o);
  }
}

/* How a value that has the rows of the batch on another axis gets them on the first. */
static void help_rows(struct resolver *r, const struct type *t) {
  int batch = type_batch_axis(t);
  if (batch < 0) return;
  if (t->dim[batch] != -1) {
    report_help(r, "reshape it so that the batch has an axis of its own");
    return;
  }
  struct str s = str_make(r->arena);
  str_printf(&s, "%d", batch);
  for (int i = 0; i < t->rank; i++)
    if (i != batch) str_printf(&s, ", %d", i);
  report_help(r, "`transpose(x, [%s])` puts the batch first", s.data);
}

void run_predict(struct resolver *r, const struct stmt *s) {
  const char *saved = r->path;
  const struct name *name = s->names.first;
  r->path = name->text;
  uint32_t mark = r->g->count;
  struct value v = eval(r, s->value, NULL);
  struct node *n = v.kind == VALUE_ERROR ? NULL : tensor_node(r, &v, "a prediction");
  r->path = saved;
  if (!n) return;
  if (type_has_whole(&n->type)) {
    report(r, s->value->loc,
           "a row of a prediction has the same size in each batch, and N is how many rows that has: %s",
           type_text(r->arena, &n->type));
    report_value(r, &v);
    return;
  }
  if (n->type.rank == 0 || n->type.dim[0] != -1) {
    report(r, s->value->loc, "a prediction has one row per example: f32[B, ...], not %s",
           type_text(r->arena, &n->type));
    report_value(r, &v);
    help_rows(r, &n->type);
    return;
  }
  if (map_get(&r->run.outputs, name->text)) {
    report(r, name->loc, "two predictions are called `%s`", name->text);
    return;
  }
  if (n->id >= mark && !(op_of(n)->traits & OP_NO_CSE)) graph_rename(r->g, n, name->text);
  give(r, OUTPUT_PREDICT, name->text, n, 0);
}
