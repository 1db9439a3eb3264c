/* SPDX-License-Identifier: Apache-2.0 */
/* Every op's rule of how it lies over the towers, against numbers: the op on the whole batch and on each tower's rows.
 * The batch is each axis of each operand in turn, all of it or with other axes in it, in each order that its rows can
 * have; towers have uneven shares, one has none. The towers' values joined must be the whole, or the rule refuses; and
 * what it refuses is no row-by-row thing. One test per op, driven from the op table: cases are those of test_ops. */
#include "ir/ops/op_id.h"
#include "ir/ops/spread.h"
#include "tests/support/cases.h"
#include "tests/support/elements.h"
#include "tests/support/eval.h"
#include "tests/support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_OPERANDS = 6, TOWERS = 3, MOST_ELEMENTS = 120 };

/* Ops that have no rows, come into being with towers, or are tested by name: replication_variables has those that
 * towers differ in. */
static const struct {
  enum op_id op;
  enum spread spread;
} by_name[] = {{OP_constant, SPREAD_SAME},      {OP_variable, SPREAD_SAME},    {OP_batch_size, SPREAD_SAME},
               {OP_tower_id, SPREAD_PER_TOWER}, {OP_tower_count, SPREAD_SAME}, {OP_assign, SPREAD_SAME},
               {OP_gradient, SPREAD_SAME},      {OP_newest, SPREAD_SAME},      {OP_aggregate, SPREAD_SAME},
               {OP_local, SPREAD_PER_TOWER},    {OP_split, SPREAD_NOT},        {OP_all_reduce, SPREAD_NOT},
               {OP_all_gather, SPREAD_NOT},     {OP_copy, SPREAD_NOT},         {OP_fused, SPREAD_NOT},
               {OP_output, SPREAD_SAME},        {OP_send, SPREAD_NOT},         {OP_remote, SPREAD_NOT},
               {OP_input, SPREAD_ROWS},         {OP_scan, SPREAD_SAME}};

/* One op with the batch in it. */
struct subject {
  struct arena *arena;
  struct diags diags;
  struct graph *g;                       /* the source */
  const struct node *n;                  /* the op there */
  const struct node *plain;              /* the op on sizes */
  int64_t rows;                          /* of the batch */
  struct tensor whole[MAX_OPERANDS + 1]; /* operands, then the result */
  int64_t blocks[MAX_OPERANDS];          /* asked for of the operands */
};

static int accepted, refused;
/* Of what the rule refuses, with the batch on the axis that the op is told, and elsewhere: how many, and how many of
 * them each way of joining makes of the towers' values. */
enum { BY_SUM, BY_MAX, BY_MIN, BY_ROWS, WAYS };
static struct { int count, joined[WAYS]; } refusals[2];

static const char *text(struct subject *s, const char *what) {
  return arena_printf(s->arena, "%s, a batch of %lld:\n%s%s", what, (long long)s->rows,
                      graph_text(s->arena, s->g), diags_text(&s->diags, false));
}

/* ---- rows of tensors ---- */

/* Elements before the batch: the axes in front of it and its blocks. */
static int64_t before_of(const struct type *symbolic, int64_t blocks) {
  int64_t before = blocks;
  for (int i = 0; i < type_batch_axis(symbolic); i++) before *= symbolic->dim[i];
  return before;
}

/* Between a tensor of `rows` rows and one of `count` of them, from `first` on. */
static void move_rows(struct tensor *whole, struct tensor *part, int64_t before, int64_t rows, int64_t first,
                      int64_t count, bool into_whole) {
  size_t size = (size_t)dtype_size((enum dtype)whole->type.dtype);
  int64_t elements = type_count(&whole->type), pieces = before * rows;
  int64_t behind = pieces > 0 ? elements / pieces : 0, run = count * behind;
  for (int64_t i = 0; i < before; i++) {
    char *w = (char *)whole->data + (size_t)((i * rows + first) * behind) * size;
    char *p = (char *)part->data + (size_t)(i * run) * size;
    if (run > 0) memcpy(into_whole ? w : p, into_whole ? p : w, (size_t)run * size);
  }
}

static struct tensor tensor_new(struct arena *a, struct type t) {
  return (struct tensor){t, arena_alloc(a, (size_t)type_bytes(&t) + 1)};
}

/* ---- what one tower computes ---- */

static struct tensor compute(struct subject *s, struct graph *g, struct node *n, const struct tensor *in) {
  struct values inputs = values_make(s->arena), none = values_make(s->arena);
  struct tensor *out = arena_new_array(s->arena, g->count, struct tensor);
  for (int i = 0; i < s->n->ninputs; i++)
    values_put(&inputs, arena_printf(s->arena, "x%d", i), &in[i].type, in[i].data);
  graph_add_output(g, OUTPUT_VALUE, "y", n, 0);
  if (!graph_eval(s->arena, g, &inputs, &none, out)) fail_msg("%s", text(s, "no value"));
  return out[n->id];
}

/* n on these operands, which are the rows [first, first + count). */
static struct tensor on_rows(struct subject *s, const struct tensor *in, int64_t blocks, int64_t first,
                             int64_t count) {
  struct graph *g = graph_create(s->arena, "part", &s->diags);
  struct node *leaves[MAX_OPERANDS];
  for (int i = 0; i < s->n->ninputs; i++)
    leaves[i] = build_input(g, arena_printf(s->arena, "x%d", i), &in[i].type);
  struct node *n = build_rows(g, "y", s->n, leaves, blocks, (struct rows){first, count, s->rows});
  if (!n) fail_msg("%s", text(s, "a tower cannot compute it"));
  return compute(s, g, n, in);
}

struct tower {
  int64_t first, count;
  struct tensor in[MAX_OPERANDS], out;
};

static void share_rows(struct subject *s, const struct row_blocks *blocks, struct tower *towers) {
  int64_t first = 0;
  for (int t = 0; t < TOWERS; t++) {
    struct tower *w = &towers[t];
    w->first = first;
    w->count = t + 1 < TOWERS ? s->rows / 2 + (s->rows % 2 && t == 0) : 0; /* the last has none */
    first += w->count;
    for (int i = 0; i < s->n->ninputs; i++) {
      const struct node *x = s->n->inputs[i];
      w->in[i] = s->whole[i];
      if (!type_is_symbolic(&x->type)) continue;
      w->in[i] = tensor_new(s->arena, type_specialize(&x->type, w->count));
      move_rows(&s->whole[i], &w->in[i], before_of(&x->type, blocks->of[x->id]), s->rows, w->first, w->count,
                false);
    }
  }
}

/* ---- joining ---- */

static const char *join_rows(struct subject *s, struct tower *towers, int64_t blocks) {
  struct tensor joined = tensor_new(s->arena, s->whole[s->n->ninputs].type);
  for (int t = 0; t < TOWERS; t++) {
    struct tower *w = &towers[t];
    w->out = on_rows(s, w->in, blocks, w->first, w->count);
    struct type want = type_specialize(&s->n->type, w->count);
    if (!type_equal(&w->out.type, &want)) return "a tower's value has another type";
    move_rows(&joined, &w->out, before_of(&s->n->type, blocks), s->rows, w->first, w->count, true);
  }
  return tensor_difference(s->arena, &s->whole[s->n->ninputs], &joined);
}

static const char *join_shares(struct subject *s, struct tower *towers, enum spread spread) {
  enum op_id op = spread == SPREAD_SUM ? OP_add : spread == SPREAD_MAX ? OP_max : OP_min;
  struct tensor sum = on_rows(s, towers[0].in, 0, towers[0].first, towers[0].count);
  for (int t = 1; t < TOWERS; t++) {
    struct tensor next = on_rows(s, towers[t].in, 0, towers[t].first, towers[t].count);
    struct node n = {.op = op, .type = sum.type, .ninputs = 2};
    struct tensor out = tensor_new(s->arena, sum.type);
    if (!node_eval(&n, (struct tensor[]){sum, next}, &out, 0)) return "shares that cannot be joined";
    sum = out;
  }
  return tensor_difference(s->arena, &s->whole[s->n->ninputs], &sum);
}

/* All rows, those of one tower behind those of the other, as one table has them added. */
static const char *add_all(struct subject *s, struct tower *towers) {
  struct tensor in[MAX_OPERANDS];
  int axes = s->n->inputs[1]->type.rank;
  in[0] = s->whole[0];
  for (int i = 1; i < s->n->ninputs; i++) {
    struct type t = {.dtype = s->whole[i].type.dtype, .rank = 1, .dim = {1}};
    for (int k = 0; k < s->whole[i].type.rank; k++)
      if (k < axes)
        t.dim[0] *= s->whole[i].type.dim[k];
      else
        t.dim[t.rank++] = s->whole[i].type.dim[k];
    in[i] = tensor_new(s->arena, t);
    size_t at = 0;
    for (int w = 0; w < TOWERS; w++) {
      size_t bytes = (size_t)type_bytes(&towers[w].in[i].type);
      if (bytes) memcpy((char *)in[i].data + at, towers[w].in[i].data, bytes);
      at += bytes;
    }
  }
  struct tensor out = tensor_new(s->arena, s->whole[0].type);
  struct node n = *s->plain;
  if (!node_eval(&n, in, &out, 0)) return "rows that cannot be added";
  return tensor_difference(s->arena, &s->whole[s->n->ninputs], &out);
}

/* ---- one subject ---- */

/* Whether the towers' rows are the whole in an order that there is. */
static bool rows_join(struct subject *s, struct tower *towers) {
  int axis = type_batch_axis(&s->n->type);
  for (int64_t p = 1, width = axis < 0 ? 0 : -s->n->type.dim[axis]; p <= width; p++)
    if (width % p == 0 && !join_rows(s, towers, p)) return true;
  return false;
}

/* Whether the op is told the axis of its first operand that holds the batch. */
static bool is_along(const struct node *n) {
  int count = 0, axis = type_batch_axis(&n->inputs[0]->type);
  const struct attr *axes = node_attr(n, ATTR_axes);
  bool along = node_int_or(n, ATTR_axis, -1) == axis;
  for (; axes && count < axes->count; count++) along = along || axes->ints[count] == axis;
  return axis >= 0 && along;
}

/* One case can be joined by chance: refusal_holds asks for all. */
static void note_refusal(struct subject *s, struct tower *towers) {
  int at = is_along(s->n);
  bool rows = type_batch_axis(&s->n->type) >= 0;
  refusals[at].count++;
  if (rows) refusals[at].joined[BY_ROWS] += rows_join(s, towers);
  for (int way = BY_SUM; way <= BY_MIN && !rows; way++)
    refusals[at].joined[way] += !join_shares(s, towers, SPREAD_SUM + (way - BY_SUM));
}

/* No way of joining the towers' values gives all that is refused. */
static bool refusal_holds(void) {
  for (int at = 0; at < 2; at++)
    for (int way = 0; way < WAYS; way++)
      if (refusals[at].count > 0 && refusals[at].joined[way] == refusals[at].count) return false;
  return true;
}

/* What is refused would be wrong, or needs operands in one order that are in two. */
static const char *check_refusal(struct subject *s, struct tower *towers, enum spread spread) {
  bool same = true, movement = op_of(s->n)->kind == KIND_MOVEMENT;
  int64_t first = 0;
  for (int i = 0; i < s->n->ninputs; i++) {
    if (!type_is_symbolic(&s->n->inputs[i]->type)) continue;
    same = same && (first == 0 || first == s->blocks[i]);
    first = s->blocks[i];
  }
  refused++;
  if (s->rows == 1) return NULL; /* which has but one order */
  if (spread == SPREAD_NOT && type_count(&s->n->type)) note_refusal(s, towers);
  if (spread == SPREAD_NOT) return NULL;
  if (!movement) return same ? "it is refused, and the rows stand in one order" : NULL;
  return rows_join(s, towers) ? "it is refused, and the towers compute it" : NULL;
}

static const char *check(struct subject *s) {
  const char *why = NULL;
  struct row_blocks blocks = row_blocks(s->arena, s->g);
  enum spread spread = node_spread(s->n, &why);
  struct tower towers[TOWERS];
  bool in_order = true;
  for (uint32_t i = 0; i < s->g->count; i++) in_order = in_order && !blocks.why[i];
  for (int i = 0; i < s->n->ninputs; i++) {
    const struct node *x = s->n->inputs[i];
    if (in_order && s->blocks[i] && type_count(&x->type) && blocks.of[x->id] != s->blocks[i])
      return "an operand has not the blocks that its reshape says";
    if (!in_order) blocks.of[x->id] = s->blocks[i];
  }
  share_rows(s, &blocks, towers);
  if (spread == SPREAD_NOT || !in_order) return check_refusal(s, towers, spread);
  accepted++;
  switch (spread) {
  case SPREAD_ROWS: return join_rows(s, towers, blocks.of[s->n->id]);
  case SPREAD_SUM:
  case SPREAD_MAX:
  case SPREAD_MIN: return join_shares(s, towers, spread);
  case SPREAD_ALL: return add_all(s, towers);
  case SPREAD_SAME:
  case SPREAD_PER_TOWER:
  case SPREAD_NOT: break;
  }
  return "it reads rows, and is said to be the same in all towers";
}

/* Numbers that show where they have come from, where the op only moves them; else small ones, whose sums are exact. */
static void fill(struct subject *s, int i) {
  struct tensor *t = &s->whole[i];
  struct rng r = {(uint64_t)i + 1};
  sample_fill(&r, DOMAIN_SMALL_INT, i, t);
  for (int64_t e = 0; op_of(s->n)->kind == KIND_MOVEMENT && e < type_count(&t->type); e++)
    tensor_set(t, e, (double)(e + 1000 * i));
}

/* ---- all ways in which the batch may be in an op ---- */

/* t with `axis` as so many rows of the batch; -1: as it is. False if it has no such rows. */
static bool with_batch(const struct type *t, int axis, int64_t rows, struct type *out) {
  *out = *t;
  if (axis < 0) return true;
  if (axis >= t->rank || t->dim[axis] == 0 || t->dim[axis] % rows) return false;
  out->dim[axis] = -(t->dim[axis] / rows);
  return true;
}

/* An operand of type t whose batch axis has so many blocks. */
static struct node *operand(struct subject *s, int i, const struct type *t, int64_t blocks) {
  const char *name = arena_printf(s->arena, "in%d", i);
  int axis = type_batch_axis(t);
  if (axis < 0 || blocks == 1) return build_input(s->g, name, t);
  struct type from = {.dtype = t->dtype, .rank = 3, .dim = {before_of(t, blocks), t->dim[axis] / blocks, 1}};
  for (int k = axis + 1; k < t->rank; k++) from.dim[2] *= t->dim[k];
  return build_reshape(s->g, build_input(s->g, name, &from), t);
}

/* The op on such operands, where there is one whose result is `plain`'s. */
static void try_subject(const struct node *plain, int64_t rows, const struct type *in, const struct type *out,
                        const int64_t *blocks, int64_t out_blocks) {
  struct subject s = {.arena = arena_create(), .plain = plain, .rows = rows};
  struct diags silent;
  diags_init(&s.diags, s.arena);
  diags_init(&silent, s.arena);
  s.g = graph_create(s.arena, "source", &silent);
  struct node *leaves[MAX_OPERANDS];
  bool good = true;
  for (int i = 0; i < plain->ninputs; i++) {
    good = good && (leaves[i] = operand(&s, i, &in[i], blocks[i])) != NULL;
    s.blocks[i] = type_is_symbolic(&in[i]) ? blocks[i] : 0;
  }
  struct node proto = *plain;
  const char *why = NULL;
  proto.inputs = leaves;
  proto.type = *out;
  proto.name = "op";
  good = good && node_infer(s.g, &proto, &why) && shape_equal(&proto.type, out);
  if (good) {
    struct node *n = graph_node(s.g, &proto);
    if (out_blocks > 1) { /* a reader that asks for them */
      struct type t = {.dtype = out->dtype, .rank = 3, .dim = {before_of(out, out_blocks), -1, 1}};
      t.dim[2] = -out->dim[type_batch_axis(out)] / out_blocks;
      for (int k = type_batch_axis(out) + 1; k < out->rank; k++) t.dim[2] *= out->dim[k];
      graph_add_output(s.g, OUTPUT_VALUE, "reader", build_reshape(s.g, n, &t), 0);
    }
    graph_add_output(s.g, OUTPUT_VALUE, "op", n, 0);
    s.n = n;
    for (int i = 0; i < plain->ninputs; i++) {
      s.whole[i] = tensor_new(s.arena, plain->inputs[i]->type);
      fill(&s, i);
    }
    s.whole[plain->ninputs] = tensor_new(s.arena, plain->type);
    if (!node_eval(plain, s.whole, &s.whole[plain->ninputs], 3)) fail_msg("%s", text(&s, "no value"));
    const char *wrong = check(&s);
    if (wrong) fail_msg("%s: %s", op_of(plain)->name, text(&s, wrong));
  }
  arena_destroy(s.arena);
}

/* Every order of the rows of the operands, and of a result that nothing but its readers tells of. */
static void try_blocks(const struct node *plain, int64_t rows, const struct type *in,
                       const struct type *out) {
  int64_t blocks[MAX_OPERANDS], most[MAX_OPERANDS];
  bool free = type_is_symbolic(out);
  for (int i = 0; i < plain->ninputs; i++) {
    blocks[i] = 1;
    most[i] = type_is_symbolic(&in[i]) ? -in[i].dim[type_batch_axis(&in[i])] : 1;
    free = free && !type_is_symbolic(&in[i]);
  }
  int64_t width = free ? -out->dim[type_batch_axis(out)] : 1;
  for (int64_t p = 1; p <= width; p++)
    if (width % p == 0) try_subject(plain, rows, in, out, blocks, p);
  for (;;) { /* count through the orders; the first has been tried */
    int i = 0;
    while (i < plain->ninputs && blocks[i] == most[i]) blocks[i++] = 1;
    if (i == plain->ninputs) return;
    do blocks[i]++;
    while (most[i] % blocks[i]);
    try_subject(plain, rows, in, out, blocks, 1);
  }
}

static void try_results(const struct node *plain, int64_t rows, const struct type *in, bool any) {
  struct type out;
  for (int axis = -1; axis < plain->type.rank; axis++)
    if ((any || axis >= 0) && with_batch(&plain->type, axis, rows, &out)) try_blocks(plain, rows, in, &out);
}

/* Every axis of every operand, or none of it. */
static void try_axes(const struct node *plain, int64_t rows) {
  int axes[MAX_OPERANDS] = {0};
  for (;;) {
    struct type in[MAX_OPERANDS];
    bool good = true, any = false;
    for (int i = 0; i < plain->ninputs; i++) {
      good = good && with_batch(&plain->inputs[i]->type, axes[i] - 1, rows, &in[i]);
      any = any || axes[i] > 0;
    }
    if (good) try_results(plain, rows, in, any);
    int i = 0;
    while (i < plain->ninputs && axes[i] == plain->inputs[i]->type.rank) axes[i++] = 0;
    if (i == plain->ninputs) return;
    axes[i]++;
  }
}

static bool is_plain(const struct node *n) {
  if (n->ninputs > MAX_OPERANDS || type_count(&n->type) > MOST_ELEMENTS) return false;
  for (int i = 0; i < n->ninputs; i++)
    if (n->inputs[i]->op != OP_input || type_count(&n->inputs[i]->type) > MOST_ELEMENTS) return false;
  return true;
}

static void try_case(const struct node *plain) {
  static const int64_t rows[] = {1, 2, 3, 4, 5, 17};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) try_axes(plain, rows[i]);
}

/* ---- ops ---- */

static void named(enum op_id op) {
  for (size_t i = 0; i < sizeof by_name / sizeof *by_name; i++) {
    if (by_name[i].op != op) continue;
    struct node x = {.op = OP_constant}, *in[] = {&x, &x};
    struct node n = {.op = op, .ninputs = op_table[op]->min_inputs, .inputs = in};
    if (op == OP_input) n.type = (struct type){DT_F32, 2, {-1, 3}};
    if (node_spread(&n, NULL) != by_name[i].spread) fail_msg("%s has another rule", op_table[op]->name);
    return;
  }
  fail_msg("%s has no case in which the batch is in it, and no place by name", op_table[op]->name);
}

static void rule_holds(void **state) {
  enum op_id op = (enum op_id)(uintptr_t)*state;
  static const enum dtype kinds[] = {DT_F32, DT_I32, DT_BOOL};
  accepted = refused = 0;
  memset(refusals, 0, sizeof refusals);
  for (int k = 0; k < 3 && !accepted; k++) {
    struct arena *a = arena_create();
    struct diags d;
    diags_init(&d, a);
    struct cases c = {.g = graph_create(a, "cases", &d), .op = op};
    cases_add(&c, kinds[k]);
    for (int i = 0; i < c.count; i++)
      if (is_plain(c.list[i].node)) try_case(c.list[i].node);
    arena_destroy(a);
  }
  if (accepted + refused == 0) named(op);
  if (!refusal_holds())
    fail_msg("%s is refused, and what the towers compute can be joined", op_table[op]->name);
  print_message("%d of %d ways with the batch in it, %d refused\n", accepted, accepted + refused, refused);
}

/* test_spread [OP...]: these alone. */
int main(int argc, char **argv) {
  struct CMUnitTest tests[OP_COUNT];
  int n = 0;
  for (int i = 0; i < OP_COUNT; i++)
    if (op_is_named(argc, argv, (enum op_id)i))
      tests[n++] = (struct CMUnitTest){op_table[i]->name, rule_holds, NULL, NULL, (void *)(uintptr_t)i};
  if (n < argc - 1) return 2; /* there is no such op */
  return _cmocka_run_group_tests("spread", tests, (size_t)n, NULL, NULL);
}
