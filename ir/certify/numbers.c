/* SPDX-License-Identifier: Apache-2.0 */
/* The numeric claim: both graphs computed on the same random numbers, step after step, and compared: every result, and
 * every copy of every variable, read or not. Floats are f64 in both, so that the order of additions shows far below
 * what a fault shows. The source is computed as towers see it (simulate.c), the placed graph a node at a time: a
 * mistake in the proof's reading of the graphs cannot hide here. It costs what the model costs. */
#include "ir/certify/certify.h"
#include "ir/certify/numeric.h"
#include "ir/graph/build.h"
#include "ir/graph/text.h"
#include "ir/ops/op_id.h"

#include <math.h>
#include <string.h>

enum { STEPS = 2 };

struct comparison {
  struct certify c; /* what the views need of it */
  struct numbers z;
  struct simulation *model;
  const uint8_t *live, *constant;
  struct tensor *state;                  /* of the placed graph's variables, by id */
  struct tensor *values;                 /* of its nodes, in the step at hand */
  uint8_t *wrong;                        /* by id: reported */
  struct map outputs[OUTPUT_UPDATE + 1]; /* of the source: their nodes, by role and name */
  double most;                           /* the largest difference */
  int results, copies;                   /* compared */
  struct str left;                       /* what could not be compared */
  int nleft;
  struct diags *d;
  struct claim *claim;
};

/* ---- the placed graph ---- */

/* What the copy v should be, as the source has its variable. */
static struct tensor should_be(struct comparison *x, const struct node *v, const struct node *s) {
  struct tensor all = certify_simulated_state(x->model, s, v->tower < x->c.towers ? v->tower : -1);
  struct type wide = certify_wide(v->type);
  if (type_equal(&wide, &all.type)) return all;
  int64_t first;
  certify_part_rows(&x->c, v, &first);
  bool rows = all.type.rank > 0 && v->type.rank == all.type.rank && v->type.dim[0] <= all.type.dim[0] - first;
  return rows ? certify_cut(&x->z, &all, 0, first, v->type.dim[0]) : all;
}

static void begin(struct comparison *x) {
  const struct graph *g = x->c.placed;
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *v = g->nodes[i];
    if (v->op != OP_variable) continue;
    const struct node *s = certify_variable(&x->c, v);
    x->state[i] = s ? should_be(x, v, s) : certify_draw(&x->z, v->name, &v->type, true);
  }
}

static void placed_step(struct comparison *x) {
  const struct graph *g = x->c.placed;
  int most = 1;
  for (uint32_t i = 0; i < g->count; i++)
    if (g->nodes[i]->ninputs > most) most = g->nodes[i]->ninputs;
  struct tensor *in = arena_new_array(x->z.step, (size_t)most, struct tensor);
  x->values = arena_new_array(x->z.step, (size_t)g->count + 1, struct tensor);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (!x->live[i]) continue;
    for (int k = 0; k < n->ninputs; k++) in[k] = x->values[n->inputs[k]->id];
    x->values[i] = n->op == OP_input      ? certify_draw(&x->z, n->name, &n->type, false)
                   : n->op == OP_variable ? x->state[i]
                                          : certify_compute(&x->z, n, &n->type, in, x->constant[i]);
  }
  for (uint32_t i = 0; i < g->count; i++)
    if (x->live[i] && g->nodes[i]->op == OP_assign) x->state[g->nodes[i]->inputs[0]->id] = x->values[i];
}

/* ---- comparing ---- */

/* The largest difference between two tensors against the size of their elements; 0 for equal ones. */
static double difference(const struct tensor *a, const struct tensor *b) {
  if (!type_equal(&a->type, &b->type)) return INFINITY;
  if (a->type.dtype != DT_F64)
    return memcmp(a->data, b->data, (size_t)type_bytes(&a->type)) == 0 ? 0 : INFINITY;
  const double *x = a->data, *y = b->data;
  double most = 0, size = 0;
  int64_t count = type_count(&a->type);
  for (int64_t i = 0; i < count; i++) {
    if (isnan(x[i]) != isnan(y[i])) return INFINITY;
    double off = x[i] == y[i] || isnan(x[i]) ? 0 : fabs(x[i] - y[i]);
    if (off > most) most = off;
    if (fabs(x[i]) > size) size = fabs(x[i]);
  }
  return most / (size > 1e-3 ? size : 1e-3);
}

/* False if one of them is not known. */
static bool compare(struct comparison *x, const struct node *n, const char *what, const char *name,
                    const struct tensor *want, const struct tensor *have, int step) {
  const double allowed = 1e-9;
  if (!want->data || !have->data) {
    if (step == 0) str_printf(&x->left, x->nleft++ ? ", %s" : "%s", name);
    return false;
  }
  double off = difference(want, have);
  if (off > x->most) x->most = off;
  if (off <= allowed || x->wrong[n->id]) return true;
  x->wrong[n->id] = 1;
  x->claim->breaches++;
  struct str s = str_make(x->z.arena);
  str_double(&s, off);
  diag_error(x->d, n->loc, "numbers: %s%s differs from the source by %s of its size after step %d", what,
             name, s.data, step + 1);
  return true;
}

static void stray(struct comparison *x, const struct node *n, const char *name) {
  if (x->wrong[n->id]) return;
  x->wrong[n->id] = 1;
  x->claim->breaches++;
  diag_error(x->d, n->loc, "numbers: the source has no %s", name);
}

static void compare_step(struct comparison *x, int step) {
  const struct graph *g = x->c.placed;
  for (int i = 0; i < g->noutputs; i++) {
    const struct output *o = &g->outputs[i];
    if (o->role == OUTPUT_UPDATE) continue;
    const struct node *n = map_get(&x->outputs[o->role], o->name);
    if (!n) {
      stray(x, o->node, o->name);
      continue;
    }
    struct tensor want = certify_simulated_value(x->model, n);
    x->results += compare(x, o->node, "", o->name, &want, &x->values[o->node->id], step) && step == 0;
  }
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *v = g->nodes[i];
    const struct node *s = v->op == OP_variable ? certify_variable(&x->c, v) : NULL;
    if (v->op != OP_variable) continue;
    if (!s) {
      if (x->live[i]) stray(x, v, v->name);
      continue;
    }
    struct tensor want = should_be(x, v, s);
    x->copies += compare(x, v, "the variable ", v->name, &want, &x->state[i], step) && step == 0;
  }
}

/* ---- what is said ---- */

static void say(struct comparison *x, struct arena *a) {
  struct str s = str_make(a);
  for (const struct uncomputed *gap = x->z.gaps; gap; gap = gap->next)
    diag_warning(x->d, gap->node->loc,
                 "numbers: %s (%s) cannot be computed: %s; what depends on it is not compared",
                 gap->node->name, op_of(gap->node)->name, gap->why);
  if (x->results + x->copies == 0 && x->nleft) {
    str_printf(&s, "not checked: %s cannot be computed", x->z.gaps ? x->z.gaps->node->name : "a node");
    x->claim->text = s.data;
    return;
  }
  str_printf(&s, "%d results and %d copies of variables on random numbers, %d steps, ", x->results, x->copies,
             STEPS);
  int digits = 0;
  for (double size = 1; digits < 17 && x->most <= size / 10; size /= 10) digits++;
  if (x->most == 0)
    str_put(&s, "equal to the bit");
  else
    str_printf(&s, "equal to %d digits", digits);
  if (x->nleft) str_printf(&s, "; not compared: %s", x->left.data);
  x->claim->checked = true;
  x->claim->text = s.data;
}

bool graph_certify_numbers(struct arena *a, const struct graph *source, const struct graph *placed,
                           uint64_t seed, struct diags *d, struct certificate *out) {
  struct arena_guard guard;
  struct arena *scratch = arena_create_guarded(&guard);
  const struct config *config = &placed->config;
  source = graph_fix_whole(scratch, (struct graph *)(uintptr_t)source, config->batch);
  struct comparison x = {.z = {scratch, scratch, seed, NULL}, .d = d, .claim = &out->claims[CLAIM_NUMBERS]};
  x.c = (struct certify){.arena = scratch,
                         .source = source,
                         .placed = placed,
                         .towers = config->towers > 0 ? config->towers : 1,
                         .batch = config->batch};
  certify_identities(&x.c);
  x.live = graph_live(scratch, placed);
  x.constant = certify_constants(scratch, placed);
  x.state = arena_new_array(scratch, (size_t)placed->count + 1, struct tensor);
  x.wrong = arena_new_array(scratch, (size_t)placed->count + 1, uint8_t);
  x.left = str_make(scratch);
  x.model = certify_simulation(&x.c, &x.z);
  for (int role = 0; role <= OUTPUT_UPDATE; role++) x.outputs[role] = map_make(scratch);
  for (int i = source->noutputs; i-- > 0;) {
    const struct output *o = &source->outputs[i];
    map_put_owned(&x.outputs[o->role], o->name, o->node);
  }
  begin(&x);
  for (int step = 0; step < STEPS; step++) {
    certify_simulate_step(x.model);
    placed_step(&x);
    compare_step(&x, step);
  }
  say(&x, a);
  out->breaches += x.claim->breaches;
  bool same = x.claim->breaches == 0;
  arena_destroy_guarded(scratch, &guard);
  return same;
}
