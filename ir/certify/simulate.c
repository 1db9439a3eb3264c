/* SPDX-License-Identifier: Apache-2.0 */
/* The source in numbers, as towers compute it: each worker in turn where training is asynchronous, its rows alone,
 * the variables as old as they may be for it; local values; variables that are joined on read.
 *
 * Nothing here is shared with the proof but the views (who reads which version) and the rows of a tower: so the
 * numbers catch a mistake of the proof. A node has a value for the rows of the view at hand, or, where the model asks
 * which tower it is, one for each tower. */
#include "ir/certify/numeric.h"
#include "ir/graph/build.h"
#include "ir/ops/op_id.h"

#include <string.h>

struct simulation {
  struct certify *c;
  struct numbers *z;
  const struct graph *g;
  const uint8_t *live;
  uint8_t *varies; /* by id: the local value may be another */
  uint8_t *fixed;  /* depends on no variable and no input */
  uint8_t *constant;
  uint8_t *per_tower; /* in the model itself each tower has another value, and there is none for all */
  uint8_t *wanted;    /* local values are needed */
  bool local_rows;    /* rows too are local */
  /* State: of variables, and [id * towers + tower] of copies that are joined on read. */
  struct tensor *state, *copies;
  /* One step. */
  struct tensor *global;   /* by id, in the view at hand; of it all rows */
  struct tensor **of_view; /* the same of the views before */
  struct tensor *towers;   /* [id * towers + tower]: per tower */
  struct tensor *local;    /* the same: local values */
  struct tensor *next;     /* the same: the copies after the step */
  struct tensor *versions; /* [id * (nviews + 1) + version] */
};

static const struct tensor unknown;

static size_t at_tower(const struct simulation *m, const struct node *n, int tower) {
  return (size_t)n->id * (size_t)m->c->towers + (size_t)tower;
}

static bool is_rows(const struct simulation *m, const struct node *n) {
  return n->op == OP_input || n->op == OP_local || (!m->local_rows && type_batch_axis(&n->type) >= 0);
}

static bool varies(const struct simulation *m, const struct node *n) {
  return m->varies[n->id] && n->op != OP_aggregate;
}

static void look(struct simulation *m) {
  const struct graph *g = m->g;
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    m->fixed[i] = !node_is_external(n);
    m->varies[i] = node_varies(n) || n->op == OP_input;
    m->per_tower[i] = (n->op == OP_tower_id || n->op == OP_local) && m->c->towers > 1;
    bool rows = false, per_tower = false;
    for (int k = 0; k < n->ninputs; k++) {
      const struct node *x = n->inputs[k];
      m->fixed[i] &= m->fixed[x->id];
      m->varies[i] |= varies(m, x);
      per_tower |= m->per_tower[x->id];
      rows |= type_batch_axis(&x->type) >= 0;
    }
    bool ends = n->op == OP_assign || n->op == OP_aggregate;
    m->per_tower[i] |= per_tower && !ends && !rows && type_batch_axis(&n->type) < 0;
  }
  for (uint32_t i = g->count; i-- > 0 && m->c->towers > 1;) {
    const struct node *n = g->nodes[i];
    bool joins = n->op == OP_local || (n->op == OP_aggregate && !joins_given(n)) ||
                 (n->op == OP_assign && is_on_read(n->inputs[0]));
    if (!m->live[i] || (!joins && (!m->wanted[i] || is_rows(m, n)))) continue;
    for (int k = 0; k < n->ninputs; k++) m->wanted[n->inputs[k]->id] |= varies(m, n->inputs[k]);
  }
}

/* ---- a node for some rows ---- */

static struct tensor of_rows(struct simulation *m, const struct node *n, const struct tensor *x,
                             int64_t begin, int64_t rows) {
  int axis = type_batch_axis(&n->type);
  return axis < 0 ? *x : certify_cut(m->z, x, axis, -n->type.dim[axis] * begin, -n->type.dim[axis] * rows);
}

/* What has its elements by their place in the batch, for these rows. */
static struct tensor source_rows(struct simulation *m, const struct node *n, const struct tensor *in,
                                 int64_t begin, int64_t rows) {
  struct type t = type_specialize(&n->type, m->c->batch);
  struct tensor all = n->op == OP_input ? certify_draw(m->z, n->name, &t, false)
                                        : certify_compute(m->z, n, &t, in, m->constant[n->id]);
  return of_rows(m, n, &all, begin, rows);
}

static struct tensor number(struct simulation *m, const struct node *n, int64_t value) {
  struct tensor wide = {type_scalar(DT_I64), &value}, out;
  struct node cast = {.op = OP_cast, .type = certify_wide(n->type), .ninputs = 1, .name = n->name};
  struct node *x = &(struct node){.op = OP_constant, .type = wide.type};
  cast.inputs = &x;
  out = (struct tensor){cast.type, arena_alloc(m->z->step, 8)};
  return node_eval(&cast, &wide, &out, 0) ? out : certify_gap(m->z, n, "its type holds no count");
}

static struct tensor instance(struct simulation *m, const struct node *n, const struct tensor *in, int tower,
                              int64_t begin, int64_t rows, int64_t counted) {
  struct type t = type_specialize(&n->type, rows);
  bool batch = type_batch_axis(&n->type) >= 0;
  if (n->op == OP_tower_id) return number(m, n, tower > 0 ? tower : 0);
  if (n->op == OP_tower_count) return number(m, n, m->c->towers);
  if (n->op == OP_batch_size) return number(m, n, node_int_or(n, ATTR_batch, counted));
  if (n->op == OP_gradient) return certify_gap(m->z, n, "it is not expanded");
  if (n->op == OP_input || (batch && node_is_counted(n))) return source_rows(m, n, in, begin, rows);
  return certify_compute(m->z, n, &t, in, m->constant[n->id]);
}

/* ---- towers ---- */

/* x as the model has it for a tower of the view. */
static struct tensor in_model(struct simulation *m, const struct node *x, int tower) {
  const struct worker_view *v = m->c->view;
  if (m->per_tower[x->id]) return m->towers[at_tower(m, x, tower)];
  return of_rows(m, x, &m->global[x->id], certify_first(m->c, tower) - certify_first(m->c, v->first),
                 certify_rows(m->c, tower));
}

/* The local value of x. */
static struct tensor in_tower(struct simulation *m, const struct node *x, int tower) {
  if (!varies(m, x)) return m->global[x->id];
  if (certify_has_tower_copies(m->c, x)) return m->copies[at_tower(m, x, tower)];
  return is_rows(m, x) ? in_model(m, x, tower) : m->local[at_tower(m, x, tower)];
}

static bool takes_part(const struct simulation *m, int tower) {
  const struct worker_view *v = m->c->view;
  return certify_rows(m->c, tower) > 0 || (v->rows == 0 && tower == v->first);
}

static struct tensor join(struct simulation *m, const struct node *n, const struct tensor *x, int count,
                          const char *how) {
  if (count == 0) return certify_gap(m->z, n, "no tower has a part in it");
  struct node **in = arena_new_array(m->z->step, (size_t)count, struct node *);
  for (int k = 0; k < count; k++) {
    in[k] = arena_new(m->z->step, struct node);
    in[k]->type = x[k].type;
  }
  struct attr by = attr_string(ATTR_reduction, how);
  struct node sum = {.op = OP_all_reduce, .name = n->name, .type = n->type, .ninputs = count, .nattrs = 1};
  sum.inputs = in;
  sum.attrs = &by;
  return certify_compute(m->z, &sum, &n->type, x, false);
}

static struct tensor aggregate(struct simulation *m, const struct node *n) {
  const struct node *x = n->inputs[0];
  const struct worker_view *v = m->c->view;
  const char *how = node_string(n, ATTR_reduction);
  bool first = strcmp(how, "only_first_replica") == 0;
  bool alike = joins_given(n) ? !m->per_tower[x->id] : !varies(m, x);
  if (m->c->towers == 1 || (alike && strcmp(how, "sum") != 0)) return m->global[x->id];
  struct tensor *of = arena_new_array(m->z->step, (size_t)v->count, struct tensor);
  int count = 0;
  for (int t = v->first; t < v->first + v->count; t++)
    if (takes_part(m, t) || (first && count == 0))
      of[count++] = joins_given(n) ? in_model(m, x, t) : in_tower(m, x, t);
  return join(m, n, of, count, how);
}

/* Towers' values of what differs from tower to tower, and what comes of that row by row. */
static struct tensor by_tower(struct simulation *m, const struct node *n, struct tensor *in) {
  const struct worker_view *v = m->c->view;
  struct tensor *of = &m->towers[at_tower(m, n, v->first)];
  for (int t = v->first; t < v->first + v->count; t++) {
    for (int k = 0; k < n->ninputs; k++) in[k] = in_model(m, n->inputs[k], t);
    of[t - v->first] = n->op == OP_local
                           ? in_tower(m, n->inputs[0], t)
                           : instance(m, n, in, t, certify_first(m->c, t), certify_rows(m->c, t), v->rows);
  }
  int axis = type_batch_axis(&n->type);
  return axis < 0 ? unknown : certify_append(m->z, of, v->count, axis);
}

static void write_copies(struct simulation *m, const struct node *n) {
  const struct worker_view *v = m->c->view;
  for (int t = v->first; t < v->first + v->count; t++)
    if (takes_part(m, t) || m->fixed[n->inputs[1]->id])
      m->next[at_tower(m, n->inputs[0], t)] = in_tower(m, n->inputs[1], t);
}

static void compute_local(struct simulation *m, const struct node *n, struct tensor *in) {
  const struct worker_view *v = m->c->view;
  if (!m->wanted[n->id] || is_rows(m, n) || certify_has_tower_copies(m->c, n)) return;
  for (int t = v->first; t < v->first + v->count; t++) {
    for (int k = 0; k < n->ninputs; k++) in[k] = in_tower(m, n->inputs[k], t);
    int64_t rows = certify_rows(m->c, t);
    m->local[at_tower(m, n, t)] = instance(m, n, in, t, certify_first(m->c, t), rows, rows);
  }
}

/* ---- views ---- */

/* Known or not, there is one: no wide type is f32. */
static bool is_set(const struct tensor *x) { return x->type.dtype != DT_F32; }

static struct tensor version(const struct simulation *m, const struct node *v, int number) {
  const struct tensor *of = &m->versions[(size_t)v->id * ((size_t)m->c->nviews + 1)];
  while (number > 0 && !is_set(&of[number])) number--;
  return of[number];
}

static void write_version(struct simulation *m, const struct node *v, int number, struct tensor x) {
  m->versions[(size_t)v->id * ((size_t)m->c->nviews + 1) + (size_t)number] = x;
}

static bool reads_per_tower(const struct simulation *m, const struct node *n) {
  for (int k = 0; k < n->ninputs; k++)
    if (m->per_tower[n->inputs[k]->id]) return true;
  return false;
}

static struct tensor assign(struct simulation *m, const struct node *n, struct tensor value, bool computes) {
  const struct worker_view *v = m->c->view;
  if (computes && certify_has_tower_copies(m->c, n->inputs[0]))
    write_copies(m, n);
  else if (computes && (v->rows > 0 || m->c->nviews == 1))
    write_version(m, n->inputs[0], v->newest + 1, value);
  return value;
}

static struct tensor compute(struct simulation *m, const struct node *n, struct tensor *in, bool computes) {
  const struct worker_view *v = m->c->view;
  bool batch = type_batch_axis(&n->type) >= 0;
  if (!computes && batch) { /* the workers' rows, as they computed them */
    int views = m->c->nviews - 1;
    struct tensor *of = arena_new_array(m->z->step, (size_t)views, struct tensor);
    for (int k = 0; k < views; k++) of[k] = m->of_view[k][n->id];
    return certify_append(m->z, of, views, type_batch_axis(&n->type));
  }
  for (int k = 0; k < n->ninputs; k++) in[k] = m->global[n->inputs[k]->id];
  if (n->op == OP_variable && certify_has_tower_copies(m->c, n))
    return join(m, n, &m->copies[at_tower(m, n, 0)], m->c->towers, node_string(n, ATTR_aggregation));
  if (n->op == OP_variable) return version(m, n, v->reads);
  if (n->op == OP_newest) return version(m, n->inputs[0], v->newest);
  if (n->op == OP_aggregate) return aggregate(m, n);
  if (n->op == OP_assign) return assign(m, n, in[1], computes);
  if (n->op == OP_local && m->c->towers == 1) return in[0];
  if (m->per_tower[n->id] || reads_per_tower(m, n)) return by_tower(m, n, in);
  return instance(m, n, in, -1, certify_first(m->c, v->first), v->rows, v->rows);
}

void certify_simulate_step(struct simulation *m) {
  struct certify *c = m->c;
  size_t nodes = (size_t)m->g->count + 1, cells = nodes * (size_t)c->towers;
  struct arena *a = m->z->step;
  int most = 1;
  for (uint32_t i = 0; i < m->g->count; i++)
    if (m->g->nodes[i]->ninputs > most) most = m->g->nodes[i]->ninputs;
  struct tensor *in = arena_new_array(a, (size_t)most, struct tensor);
  m->towers = arena_new_array(a, cells, struct tensor);
  m->local = arena_new_array(a, cells, struct tensor);
  m->versions = arena_new_array(a, nodes * ((size_t)c->nviews + 1), struct tensor);
  m->of_view = arena_new_array(a, (size_t)c->nviews, struct tensor *);
  m->next = arena_copy(a, m->copies, sizeof *m->next * cells);
  for (uint32_t i = 0; i < m->g->count; i++)
    if (m->g->nodes[i]->op == OP_variable) write_version(m, m->g->nodes[i], 0, m->state[i]);
  for (int v = 0; v < c->nviews; v++) {
    bool computes = v < c->nviews - 1 || c->nviews == 1;
    c->view = &c->views[v];
    m->global = m->of_view[v] = arena_new_array(a, nodes, struct tensor);
    for (uint32_t i = 0; i < m->g->count; i++) {
      const struct node *n = m->g->nodes[i];
      if (!m->live[i]) continue;
      m->global[i] = compute(m, n, in, computes);
      if (computes) compute_local(m, n, in);
    }
  }
  for (uint32_t i = 0; i < m->g->count; i++)
    if (m->g->nodes[i]->op == OP_variable) m->state[i] = version(m, m->g->nodes[i], c->nviews);
  memcpy(m->copies, m->next, sizeof *m->next * cells);
}

/* ---- state ---- */

/* Copies of one variable differ, as those of towers that have computed do. */
static void begin(struct simulation *m) {
  for (uint32_t i = 0; i < m->g->count; i++) {
    const struct node *n = m->g->nodes[i];
    if (n->op != OP_variable) continue;
    m->state[i] = certify_draw(m->z, n->name, &n->type, true);
    for (int t = 0; certify_has_tower_copies(m->c, n) && t < m->c->towers; t++)
      m->copies[at_tower(m, n, t)] =
          certify_draw(m->z, arena_printf(m->z->arena, "tower_%d/%s", t, n->name), &n->type, true);
  }
}

struct simulation *certify_simulation(struct certify *c, struct numbers *z) {
  struct simulation *m = arena_new(z->arena, struct simulation);
  size_t nodes = (size_t)c->source->count + 1;
  *m = (struct simulation){.c = c, .z = z, .g = c->source, .live = graph_live(z->arena, c->source)};
  m->local_rows = scales_per_tower(&c->placed->config);
  m->constant = certify_constants(z->arena, c->source);
  m->varies = arena_new_array(z->arena, nodes, uint8_t);
  m->fixed = arena_new_array(z->arena, nodes, uint8_t);
  m->per_tower = arena_new_array(z->arena, nodes, uint8_t);
  m->wanted = arena_new_array(z->arena, nodes, uint8_t);
  m->state = arena_new_array(z->arena, nodes, struct tensor);
  m->copies = arena_array(z->arena, nodes * (size_t)c->towers, sizeof *m->copies);
  certify_views(c);
  look(m);
  begin(m);
  return m;
}

struct tensor certify_simulated_state(const struct simulation *m, const struct node *v, int tower) {
  return certify_has_tower_copies(m->c, v) && tower >= 0 ? m->copies[at_tower(m, v, tower)] : m->state[v->id];
}

struct tensor certify_simulated_value(const struct simulation *m, const struct node *n) {
  return m->global[n->id];
}
