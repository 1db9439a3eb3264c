/* SPDX-License-Identifier: Apache-2.0 */
/* The rules by which ops lie over the towers, the blocks of the batch, and what one tower has: see spread.h. */
#include "ir/ops/spread.h"

#include "ir/graph/build.h"
#include "ir/ops/op_id.h"
#include "ir/ops/scan.h"

static int axis_of(const struct node *n) { return type_batch_axis(&n->type); }

static bool reads_rows(const struct node *n) {
  for (int i = 0; i < n->ninputs; i++)
    if (axis_of(n->inputs[i]) >= 0) return true;
  return false;
}

/* ---- what a tower's value is ---- */

static enum spread not_spread(const char **why, const char *reason) {
  *why = reason;
  return SPREAD_NOT;
}

static enum spread spread_same(const struct node *n, const char **why) {
  if (axis_of(n) < 0 && !reads_rows(n)) return SPREAD_SAME;
  return not_spread(why, "it exists once, and has no rows of the batch");
}

static enum spread spread_per_tower(const struct node *n, const char **why) {
  (void)n, (void)why;
  return SPREAD_PER_TOWER;
}

static enum spread spread_input(const struct node *n, const char **why) {
  if (axis_of(n) < 0) return SPREAD_SAME;
  return axis_of(n) == 0 ? SPREAD_ROWS : not_spread(why, "the batch must be an input's first axis");
}

static enum spread spread_counted(const struct node *n, const char **why) {
  (void)why;
  return axis_of(n) >= 0 ? SPREAD_ROWS : SPREAD_SAME;
}

static enum spread spread_rows(const struct node *n, const char **why) {
  if (axis_of(n) >= 0) return SPREAD_ROWS;
  if (!reads_rows(n)) return SPREAD_SAME;
  return not_spread(why, "it joins the rows of the batch in a way that no sum over towers can");
}

/* What reads an axis in its order. */
static enum spread spread_line(const struct node *n, const char **why) {
  if (axis_of(n) < 0 || node_int(n, ATTR_axis) != axis_of(n)) return spread_rows(n, why);
  return not_spread(why, "it needs the rows of the other towers in their order");
}

static enum spread spread_sum(const struct node *n, const char **why) {
  return axis_of(n) < 0 && reads_rows(n) ? SPREAD_SUM : spread_rows(n, why);
}

static enum spread spread_max(const struct node *n, const char **why) {
  return axis_of(n) < 0 && reads_rows(n) ? SPREAD_MAX : spread_rows(n, why);
}

static enum spread spread_min(const struct node *n, const char **why) {
  return axis_of(n) < 0 && reads_rows(n) ? SPREAD_MIN : spread_rows(n, why);
}

static enum spread spread_table(const struct node *n, const char **why) {
  return axis_of(n->inputs[1]) >= 0 && axis_of(n) < 0 ? SPREAD_ALL : spread_rows(n, why);
}

static enum spread spread_made(const struct node *n, const char **why) {
  (void)n;
  return not_spread(why, "it is made for towers that are there already");
}

static bool gives_rows(const struct node *loop) {
  for (int i = 0; node_attr(loop, ATTR_body) && i < node_results(loop); i++) {
    struct type t = node_result_type(loop, i);
    if (type_is_symbolic(&t)) return true;
  }
  return false;
}

static enum spread spread_step(const struct node *x, const char **why);

/* Of a loop each tower has its rows: whether no step joins them. */
static bool steps_spread(const struct node *loop, const char **why) {
  const struct graph *body = node_attr(loop, ATTR_body)->body;
  for (uint32_t i = 0; i < body->count; i++) {
    enum spread s = spread_step(body->nodes[i], why);
    if (s == SPREAD_NOT) return false;
    if (s == SPREAD_SAME || s == SPREAD_ROWS) continue;
    *why = "each of its steps would have to wait for the rows of other towers: make what joins the batch "
           "outside of "
           "the loop, of all steps at once";
    return false;
  }
  return true;
}

/* A loop over the rows of each tower, no step of which joins them. */
static enum spread spread_loop(const struct node *n, const char **why) {
  if (!reads_rows(n) && !gives_rows(n)) return SPREAD_SAME;
  if (!steps_spread(n, why)) return SPREAD_NOT;
  if (axis_of(n) >= 0) return SPREAD_ROWS;
  return not_spread(why, reads_rows(n)
                             ? "the first of its results has no rows of the batch, which it is made of"
                             : "the first of its results has no rows of the batch, and others have: let the "
                               "loop carry rows, `broadcast(i, [B, 1])` in the place of a number `i`");
}

/* A node of a step, in which every value is made of the tower's rows: a loop inside, too, whatever it is given. */
static enum spread spread_step(const struct node *x, const char **why) {
  if (x->op == OP_input) return SPREAD_SAME;
  if (x->op != OP_scan || reads_rows(x) || axis_of(x) >= 0) return node_spread(x, why);
  return steps_spread(x, why) ? SPREAD_SAME : SPREAD_NOT;
}

/* One result of a node that has several. */
static enum spread spread_result(const struct node *n, const char **why) {
  if (axis_of(n) >= 0) return SPREAD_ROWS;
  if (!reads_rows(n->inputs[0]) && axis_of(n->inputs[0]) < 0) return SPREAD_SAME;
  return not_spread(
      why, "it has no rows of the batch, and the loop that makes it goes over such rows: let the loop "
           "carry rows, `broadcast(i, [B, 1])` in the place of a number `i`");
}

/* ---- blocks ----
 *
 * In row-major order a value is [before, B, behind] elements: `before` counts the axes in front of the batch and the
 * blocks in its axis. A reshape keeps `before`; a concatenation along the batch keeps what one row has in its axis;
 * everything else keeps the blocks. Where the axis is the batch alone there is one block. What is known of one node
 * tells of those that it reads and that read it; what nothing tells of has one. */

struct blocks {
  struct row_blocks r;
  uint32_t *told; /* nodes whose blocks have become known */
  uint32_t ntold;
  uint8_t *met; /* its members have been told of each other, or nobody needs it */
};

/* Elements along the batch axis for one row. */
static int64_t width_of(const struct node *n) { return -n->type.dim[axis_of(n)]; }

static int64_t axes_before(const struct node *n) {
  int64_t before = 1;
  for (int i = 0; i < axis_of(n); i++) before *= n->type.dim[i];
  return before;
}

static int64_t axes_behind(const struct node *n) {
  int64_t behind = 1;
  for (int i = axis_of(n) + 1; i < n->type.rank; i++) behind *= n->type.dim[i];
  return behind;
}

/* Of what has no elements any order is right. */
static bool has_blocks(const struct node *n) { return axis_of(n) >= 0 && type_count(&n->type) != 0; }

/* By n, x has so many blocks; 0: it can have none. */
static void set(struct blocks *b, const struct node *n, const struct node *x, int64_t blocks,
                const char *why) {
  int64_t *of = &b->r.of[x->id];
  if (*of == blocks && blocks > 0) return;
  if (*of == 0 && blocks > 0 && width_of(x) % blocks == 0) {
    *of = blocks;
    b->told[b->ntold++] = x->id;
  } else
    b->r.why[n->id] = why;
}

/* n itself is behind its operands. */
static const struct node *member(const struct node *n, int i) { return i < n->ninputs ? n->inputs[i] : n; }

static void relate_nothing(struct blocks *b, const struct node *n, const struct node *known) {
  (void)b, (void)n, (void)known;
}

static void relate_rows(struct blocks *b, const struct node *n, const struct node *known) {
  for (int i = 0; i <= n->ninputs; i++)
    if (has_blocks(member(n, i)))
      set(b, n, member(n, i), b->r.of[known->id], "the rows of its operands stand in different orders");
}

static void relate_flat(struct blocks *b, const struct node *n, const struct node *known) {
  const struct node *other = known == n ? n->inputs[0] : n;
  int64_t before = axes_before(known) * b->r.of[known->id], axes = axes_before(other);
  set(b, n, other, before % axes == 0 ? before / axes : 0,
      "it would mix the batch with other axes: what is one row of it is no row of its operand");
}

static void relate_joined(struct blocks *b, const struct node *n, const struct node *known) {
  if (node_int(n, ATTR_axis) != axis_of(n)) {
    relate_rows(b, n, known);
    return;
  }
  int64_t each = width_of(known) / b->r.of[known->id];
  for (int i = 0; i <= n->ninputs; i++) {
    const struct node *x = member(n, i);
    if (has_blocks(x))
      set(b, n, x, width_of(x) % each == 0 ? width_of(x) / each : 0,
          "the rows of what it joins stand in different orders");
  }
}

/* The rows of what a step reads stand in one order. */
static void relate_loop(struct blocks *b, const struct node *n, const struct node *known) {
  (void)known;
  for (int i = 0; i <= n->ninputs; i++)
    if (has_blocks(member(n, i)))
      set(b, n, member(n, i), 1, "a loop goes over rows that stand in the order of the batch");
}

/* ---- the rules ---- */

struct rule {
  enum spread (*spread)(const struct node *n, const char **why);
  /* Tells the members of n, which are n and its operands, what is known of one of them. */
  void (*relate)(struct blocks *b, const struct node *n, const struct node *known);
};

/* It has no rows and reads none. */
static const struct rule rule_same = {spread_same, relate_nothing};
/* Another number in each tower. */
static const struct rule rule_per_tower = {spread_per_tower, relate_nothing};
/* A batch from outside. */
static const struct rule rule_input = {spread_input, relate_nothing};
/* Made from where each element stands in the whole. */
static const struct rule rule_counted = {spread_counted, relate_nothing};
/* Row i is made of row i of the operands, and of what has no rows. */
static const struct rule rule_rows = {spread_rows, relate_rows};
/* The same elements in the same order. */
static const struct rule rule_flat = {spread_rows, relate_flat};
/* Operands one behind the other along an axis, which may be the batch. */
static const struct rule rule_joined = {spread_rows, relate_joined};
/* Row by row; or over the rows, as a reduction of the towers' values. */
static const struct rule rule_sum = {spread_sum, relate_rows};
static const struct rule rule_max = {spread_max, relate_rows};
static const struct rule rule_min = {spread_min, relate_rows};
/* Row by row; or of all rows at once, which nothing joins. */
static const struct rule rule_unjoined = {spread_rows, relate_rows};
static const struct rule rule_line = {spread_line, relate_rows};
/* Rows added to a table: the table is cut along another axis, or all rows that there are are added to it. */
static const struct rule rule_table = {spread_table, relate_rows};
/* A scan, and one of its results. */
static const struct rule rule_loop = {spread_loop, relate_loop};
static const struct rule rule_result = {spread_result, relate_rows};
/* Made when there are towers. */
static const struct rule rule_made = {spread_made, relate_nothing};

static const struct rule *const rules[OP_COUNT] = {
#define OP(name, spread) &rule_##spread,
#include "ir/ops/ops.def"
#undef OP
};

enum spread node_spread(const struct node *n, const char **why) {
  const char *reason;
  return rules[n->op]->spread(n, why ? why : &reason);
}

bool node_varies(const struct node *n) {
  return (op_of(n)->traits & OP_PER_TOWER) || is_on_read(n) || axis_of(n) >= 0;
}

bool node_is_counted(const struct node *n) { return rules[n->op] == &rule_counted; }

bool node_adds_up(const struct node *n) { return rules[n->op] == &rule_sum; }

const char *spread_joined_by(enum spread s) {
  static const char *const names[] = {[SPREAD_SUM] = "sum", [SPREAD_MAX] = "max", [SPREAD_MIN] = "min"};
  return s >= SPREAD_SUM && s <= SPREAD_MIN ? names[s] : NULL;
}

/* ---- blocks of a graph ---- */

static void tell(struct blocks *b, const struct node *n, const struct node *known) {
  if (b->met[n->id] || node_spread(n, NULL) == SPREAD_NOT) return;
  b->met[n->id] = 1;
  rules[n->op]->relate(b, n, known);
}

/* From operands to results: of two that differ where they meet, that place is blamed. */
static void tell_forward(struct blocks *b, const struct graph *g) {
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    for (int k = 0; k < n->ninputs; k++)
      if (b->r.of[n->inputs[k]->id]) tell(b, n, n->inputs[k]); /* the first tells */
  }
}

static void tell_all(struct blocks *b, const struct graph *g, const struct users *users) {
  while (b->ntold > 0) {
    const struct node *x = g->nodes[b->told[--b->ntold]];
    tell(b, x, x);
    for (uint32_t i = users->first[x->id]; i < users->first[x->id + 1]; i++) tell(b, users->users[i], x);
  }
}

/* In each body, too, the rows have to stand in one order. */
static void look_into(struct arena *a, struct blocks *b, const struct node *n) {
  const struct graph *body = node_attr(n, ATTR_body)->body;
  struct row_blocks inner = row_blocks(a, body);
  for (uint32_t i = 0; i < body->count; i++)
    if (inner.why[i]) b->r.why[n->id] = inner.why[i];
  for (int i = 0; i < body->noutputs; i++)
    if (inner.of[body->outputs[i].node->id] > 1)
      b->r.why[n->id] = "a step of it gives rows in another order than it reads them";
}

struct row_blocks row_blocks(struct arena *a, const struct graph *g) {
  struct blocks b = {.told = arena_new_array(a, g->count + 1, uint32_t),
                     .met = arena_new_array(a, g->count + 1, uint8_t)};
  const uint8_t *live = graph_live(a, g);
  struct users users = graph_users(a, g);
  b.r.of = arena_new_array(a, g->count + 1, int64_t);
  b.r.why = arena_new_array(a, g->count + 1, const char *);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    b.met[i] = !live[i];
    if (live[i] && has_blocks(n) && (width_of(n) == 1 || n->op == OP_input)) set(&b, n, n, 1, NULL);
  }
  tell_forward(&b, g);
  tell_all(&b, g, &users);
  for (uint32_t i = 0; i < g->count; i++) {
    if (!live[i] || !has_blocks(g->nodes[i]) || b.r.of[i]) continue;
    set(&b, g->nodes[i], g->nodes[i], 1, NULL);
    tell_all(&b, g, &users);
  }
  for (uint32_t i = 0; i < g->count; i++)
    if (live[i] && g->nodes[i]->op == OP_scan) look_into(a, &b, g->nodes[i]);
  return b.r;
}

/* ---- the rows of one tower ---- */

struct type random_whole(const struct node *n) {
  struct type t = n->type;
  int64_t whole = node_int_or(n, ATTR_whole, -1);
  if (whole >= 0) t.dim[node_int(n, ATTR_axis)] = whole;
  return t;
}

/* n's attributes for a part that begins `offset` later, in a whole of so many elements along an axis (0: n itself). */
static int counted_attrs(const struct node *n, int64_t offset, int64_t whole, int axis, struct attr *out) {
  int count = 0;
  offset = (int64_t)((uint64_t)offset + (uint64_t)node_int_or(n, ATTR_offset, 0));
  for (int i = 0; i < n->nattrs; i++)
    if (n->attrs[i].key != ATTR_offset && n->attrs[i].key != ATTR_axis) out[count++] = n->attrs[i];
  if (n->op == OP_iota || whole) out[count++] = attr_int(ATTR_axis, axis);
  if (offset) out[count++] = attr_int(ATTR_offset, offset);
  if (whole) out[count++] = attr_int(ATTR_whole, whole);
  return count;
}

int counted_from(const struct node *n, int64_t row, struct attr *out) {
  int count = 0;
  if (n->op == OP_iota && node_int(n, ATTR_axis) != 0) row = 0;
  for (int i = 1; n->op != OP_iota && i < n->type.rank; i++) row *= n->type.dim[i];
  for (int i = 0; i < n->nattrs; i++)
    if (n->attrs[i].key != ATTR_offset) out[count++] = n->attrs[i];
  row = (int64_t)((uint64_t)row + (uint64_t)node_int_or(n, ATTR_offset, 0));
  if (row) out[count++] = attr_int(ATTR_offset, row);
  return count;
}

/* Numbers along the batch axis. They go on from block to block: block * (batch * each) + row * each + i. */
static struct node *counted_rows(struct graph *g, const char *name, const struct node *n, int64_t blocks,
                                 struct rows r) {
  int64_t each = width_of(n) / blocks;
  struct attr attrs[ATTR_COUNT];
  struct type out = type_specialize(&n->type, r.count);
  int nattrs = counted_attrs(n, r.first * each, 0, blocks == 1 ? axis_of(n) : 2, attrs);
  if (blocks == 1) return build_named(g, name, OP_iota, 0, NULL, nattrs, attrs, &out);
  struct type t = {DT_I64, 4, {axes_before(n), blocks, r.count * each, axes_behind(n)}};
  struct node *row = build(g, OP_iota, 0, NULL, nattrs, attrs, &t), *block = build_iota(g, &t, 1);
  struct node *size = build_fill(g, &t, (double)(r.batch * each)), *begin = build2(g, OP_mul, block, size);
  struct node *x = build_cast(g, build2(g, OP_add, begin, row), (enum dtype)out.dtype);
  return build_named(g, name, OP_reshape, 1, &x, 0, NULL, &out);
}

/* Random numbers, each with the number that it has in the whole. */
static struct node *random_rows(struct graph *g, const char *name, const struct node *n,
                                struct node *const *in, int64_t blocks, struct rows r) {
  int64_t each = width_of(n) / blocks, behind = axes_behind(n);
  struct type out = type_specialize(&n->type, r.count);
  struct type t = {out.dtype, 3, {axes_before(n) * blocks, r.count * each, behind}};
  int axis = blocks == 1 ? axis_of(n) : 1;
  struct attr attrs[ATTR_COUNT];
  int nattrs = counted_attrs(n, r.first * each * behind, axis > 0 ? r.batch * each : 0, axis, attrs);
  if (blocks == 1) return build_named(g, name, n->op, n->ninputs, in, nattrs, attrs, &out);
  struct node *x = build(g, n->op, n->ninputs, in, nattrs, attrs, &t);
  return build_named(g, name, OP_reshape, 1, &x, 0, NULL, &out);
}

struct body_rows {
  struct row_blocks blocks;
  struct rows rows;
};

static struct node *rows_in_body(struct graph *g, const struct node *n, struct node **in, void *user) {
  const struct body_rows *b = user;
  build_at(g, n);
  return build_rows(g, n->name, n, in, b->blocks.of[n->id], b->rows);
}

/* The same loop with a body for these rows. */
static struct node *scan_rows(struct graph *g, const char *name, const struct node *n, struct node *const *in,
                              struct rows r) {
  struct scan s = scan_of(n);
  const struct graph *body = s.body;
  struct body_rows rows = {row_blocks(g->arena, body), r};
  struct node **made = arena_new_array(g->arena, body->count + 1, struct node *);
  s.body = graph_create(g->arena, body->name, g->diags);
  if (!graph_copy_nodes(g->arena, s.body, body, NULL, made, rows_in_body, &rows)) return NULL;
  graph_copy_outputs(s.body, body, made);
  s.body->stage = STAGE_REPLICATED;
  return build_scan(g, name, &s, n->ninputs, in);
}

struct node *build_rows(struct graph *g, const char *name, const struct node *n, struct node *const *in,
                        int64_t blocks, struct rows r) {
  if (n->op == OP_scan) return scan_rows(g, name, n, in, r);
  if (axis_of(n) >= 0 && r.count < r.batch && type_count(&n->type) != 0) {
    if (n->op == OP_iota && node_int(n, ATTR_axis) == axis_of(n)) return counted_rows(g, name, n, blocks, r);
    if (node_is_counted(n) && n->op != OP_iota) return random_rows(g, name, n, in, blocks, r);
  }
  struct type t = type_specialize(&n->type, r.count);
  bool typed = op_of(n)->traits & OP_TYPED;
  return build_named(g, name, n->op, n->ninputs, in, n->nattrs, n->attrs, typed ? &t : NULL);
}

/* ---- rows as the first axis ---- */

/* n for `rows` rows as [before, rows, behind]. */
static struct type in_three(const struct node *n, int64_t blocks, int64_t rows) {
  return (struct type){
      n->type.dtype, 3, {axes_before(n) * blocks, rows, width_of(n) / blocks * axes_behind(n)}};
}

static bool has_rows_first(const struct node *n, int64_t blocks) { return axis_of(n) == 0 && blocks <= 1; }

struct node *rows_first(struct graph *g, const char *name, const struct node *n, int64_t blocks,
                        struct node *x, int64_t rows) {
  static const int64_t perm[] = {1, 0, 2};
  struct attr turned = attr_ints(ATTR_perm, 3, perm);
  if (has_rows_first(n, blocks)) return x;
  struct type t = in_three(n, blocks > 0 ? blocks : 1, rows);
  x = build_reshape(g, x, &t);
  return x ? build_named(g, name, OP_transpose, 1, &x, 1, &turned, NULL) : NULL;
}

struct node *rows_back(struct graph *g, const char *name, const struct node *n, int64_t blocks,
                       struct node *x, int64_t rows) {
  static const int64_t perm[] = {1, 0, 2};
  if (has_rows_first(n, blocks)) return x;
  struct type t = type_specialize(&n->type, rows);
  x = build_transpose(g, x, perm);
  return x ? build_named(g, name, OP_reshape, 1, &x, 0, NULL, &t) : NULL;
}
