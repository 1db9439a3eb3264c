/* SPDX-License-Identifier: Apache-2.0 */
/* What an op's paragraph says of it, against numbers: along which axis of its operands an axis of the result runs, that
 * elements only move, in which operands it is linear, and how the elements of counters and random numbers are counted.
 * Driven from the op table: cases are those of test_ops. */
#include "ir/ops/op_id.h"
#include "ir/ops/spread.h"
#include "tests/support/cases.h"
#include "tests/support/elements.h"
#include "tests/support/eval.h"
#include "tests/support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_OPERANDS = 6, MOST_ELEMENTS = 200 };

static struct tensor tensor_new(struct arena *a, struct type t) {
  return (struct tensor){t, arena_alloc(a, (size_t)type_bytes(&t) + 1)};
}

struct bench {
  struct arena *arena;
  struct diags diags;
  struct cases cases;
};

static void bench_begin(struct bench *b, enum op_id op, enum dtype d) {
  memset(b, 0, sizeof *b);
  b->arena = arena_create();
  diags_init(&b->diags, b->arena);
  b->cases = (struct cases){.g = graph_create(b->arena, "cases", &b->diags), .op = op};
  cases_add(&b->cases, d);
}

/* Its operands are inputs, and all of it is small. */
static bool is_plain(const struct node *n) {
  if (n->ninputs == 0 || n->ninputs > MAX_OPERANDS || type_count(&n->type) > MOST_ELEMENTS) return false;
  for (int i = 0; i < n->ninputs; i++)
    if (n->inputs[i]->op != OP_input || type_count(&n->inputs[i]->type) > MOST_ELEMENTS) return false;
  return true;
}

/* n of these operands, as `type`. */
static struct tensor value(struct arena *a, const struct node *n, const struct tensor *in, struct type type) {
  struct node m = *n, operands[MAX_OPERANDS], *inputs[MAX_OPERANDS];
  for (int i = 0; i < n->ninputs; i++) {
    operands[i] = *n->inputs[i];
    operands[i].type = in[i].type;
    inputs[i] = &operands[i];
  }
  m.inputs = inputs;
  m.type = type;
  struct tensor out = tensor_new(a, type);
  if (!node_eval(&m, in, &out, 3)) fail_msg("%s has no value", op_of(n)->name);
  return out;
}

static struct tensor *operands_of(struct arena *a, const struct node *n, enum sample_domain domain,
                                  uint64_t seed) {
  struct tensor *in = arena_new_array(a, MAX_OPERANDS, struct tensor);
  struct rng r = {seed};
  for (int i = 0; i < n->ninputs; i++) {
    in[i] = tensor_new(a, n->inputs[i]->type);
    sample_fill(&r, domain, i, &in[i]);
  }
  return in;
}

/* Elements [begin, end) of an axis. */
static struct tensor cut(struct arena *a, const struct tensor *x, int axis, int64_t begin, int64_t end) {
  struct type t = x->type;
  int64_t before = 1, behind = dtype_size((enum dtype)t.dtype), size = t.dim[axis];
  for (int i = 0; i < axis; i++) before *= t.dim[i];
  for (int i = axis + 1; i < t.rank; i++) behind *= t.dim[i];
  t.dim[axis] = end - begin;
  struct tensor out = tensor_new(a, t);
  for (int64_t i = 0; i < before; i++)
    memcpy((char *)out.data + i * (end - begin) * behind, (const char *)x->data + (i * size + begin) * behind,
           (size_t)((end - begin) * behind));
  return out;
}

/* ---- along ---- */

static void check_along(struct arena *a, const struct node *n, int axis, int along) {
  struct tensor *in = operands_of(a, n, DOMAIN_SMALL_INT, 5), all = value(a, n, in, n->type),
                part[MAX_OPERANDS];
  for (int64_t begin = 0; begin < n->type.dim[axis]; begin++) {
    int64_t end = begin + 2 < n->type.dim[axis] ? begin + 2 : n->type.dim[axis];
    struct type t = n->type;
    t.dim[axis] = end - begin;
    for (int k = 0; k < n->ninputs; k++)
      part[k] = along == ALONG_NONE ? in[k] : cut(a, &in[k], along, begin, end);
    struct tensor have = value(a, n, part, t), want = cut(a, &all, axis, begin, end);
    const char *wrong = tensor_difference(a, &want, &have);
    if (wrong) fail_msg("%s does not run along axis %d: %s", n->name, along, wrong);
  }
}

static void runs_along(void **state) {
  static const enum dtype kinds[] = {DT_F32, DT_I32, DT_BOOL};
  int kinds_tried[KIND_META + 1] = {0};
  (void)state;
  for (int op = 0; op < OP_COUNT; op++) {
    int tried = 0;
    for (int k = 0; k < 3 && !tried; k++) {
      struct bench b;
      bench_begin(&b, (enum op_id)op, kinds[k]);
      for (int i = 0; i < b.cases.count; i++) {
        const struct node *n = b.cases.list[i].node;
        for (int axis = 0; is_plain(n) && axis < n->type.rank; axis++) {
          if (node_along(n, axis) == ALONG_UNKNOWN) continue;
          check_along(b.arena, n, axis, node_along(n, axis));
          tried++;
        }
      }
      arena_destroy(b.arena);
    }
    bool rule = op_table[op]->along || op_table[op]->kind == KIND_ELEMENTWISE;
    if (rule && !tried) fail_msg("%s says along which axes it runs, and has no case", op_table[op]->name);
    kinds_tried[op_table[op]->kind] += tried;
  }
  assert_true(kinds_tried[KIND_ELEMENTWISE] && kinds_tried[KIND_REDUCE] && kinds_tried[KIND_MOVEMENT]);
}

/* ---- moves ---- */

static bool is_there(double x, const struct tensor *in, int count) {
  for (int k = 0; k < count; k++)
    for (int64_t e = 0; e < type_count(&in[k].type); e++)
      if (tensor_at(&in[k], e) == x) return true;
  return false;
}

static void check_moves(struct arena *a, const struct node *n) {
  struct tensor *in = operands_of(a, n, DOMAIN_SMALL_INT, 5);
  for (int k = 0; k < n->ninputs; k++)
    for (int64_t e = 0; e < type_count(&in[k].type); e++) tensor_set(&in[k], e, 3.25 + 1000 * k + (double)e);
  struct tensor out = value(a, n, in, n->type);
  for (int64_t e = 0; e < type_count(&out.type); e++)
    if (!is_there(tensor_at(&out, e), in, n->ninputs)) fail_msg("%s does more than move elements", n->name);
}

static void elements_move(void **state) {
  (void)state;
  for (int op = 0; op < OP_COUNT; op++) {
    struct bench b;
    int tried = 0;
    if (!(op_table[op]->traits & OP_MOVES)) continue;
    bench_begin(&b, (enum op_id)op, DT_F64);
    for (int i = 0; i < b.cases.count; i++)
      if (is_plain(b.cases.list[i].node)) check_moves(b.arena, b.cases.list[i].node), tried++;
    if (!tried && op_table[op]->domain != DOMAIN_NONE) fail_msg("%s has no case", op_table[op]->name);
    arena_destroy(b.arena);
  }
}

/* ---- linear ---- */

static struct tensor sum(struct arena *a, const struct tensor *x, const struct tensor *y) {
  struct tensor out = tensor_new(a, x->type);
  for (int64_t e = 0; e < type_count(&out.type); e++) tensor_set(&out, e, tensor_at(x, e) + tensor_at(y, e));
  return out;
}

/* f(a + b) = f(a) + f(b) in these operands together. */
static void check_linear(struct arena *a, const struct node *n, uint32_t operands) {
  struct tensor *x = operands_of(a, n, DOMAIN_POSITIVE, 5), *y = operands_of(a, n, DOMAIN_POSITIVE, 6);
  struct tensor both[MAX_OPERANDS];
  for (int k = 0; k < n->ninputs; k++) {
    bool summed = operands >> k & 1;
    if (!summed) y[k] = x[k];
    both[k] = summed ? sum(a, &x[k], &y[k]) : x[k];
  }
  struct tensor fx = value(a, n, x, n->type), fy = value(a, n, y, n->type);
  struct tensor want = sum(a, &fx, &fy), have = value(a, n, both, n->type);
  for (int64_t e = 0; e < type_count(&want.type); e++) {
    double w = tensor_at(&want, e), h = tensor_at(&have, e);
    if (fabs(w - h) > 1e-12 * (fabs(w) + 100))
      fail_msg("%s is not linear in operands %x: %.17g, not %.17g", n->name, operands, h, w);
  }
}

static void sums_pass(void **state) {
  (void)state;
  for (int op = 0; op < OP_COUNT; op++) {
    struct bench b;
    int tried = 0;
    if (!op_table[op]->linear && !op_table[op]->linear_jointly) continue;
    bench_begin(&b, (enum op_id)op, DT_F64);
    for (int i = 0; i < b.cases.count; i++) {
      const struct node *n = b.cases.list[i].node;
      if (!is_plain(n)) continue;
      for (int k = 0; k < n->ninputs; k++)
        if (node_linear(n) >> k & 1) check_linear(b.arena, n, 1u << k), tried++;
      if (op_of(n)->linear_jointly) check_linear(b.arena, n, (1u << n->ninputs) - 1), tried++;
    }
    if (!tried) fail_msg("%s has no case", op_table[op]->name);
    arena_destroy(b.arena);
  }
}

/* ---- counted ---- */

static void check_counted(struct arena *a, enum op_id op, int64_t axis, int64_t offset) {
  struct tensor step = tensor_new(a, type_scalar(DT_I64));
  struct node s = {.op = OP_input, .type = step.type}, *in[] = {&s};
  struct attr attrs[ATTR_COUNT] = {attr_int(ATTR_offset, offset)}, some[ATTR_COUNT];
  struct node n = {
      .op = op, .name = op_table[op]->name, .type = {DT_F64, 2, {5, 3}}, .inputs = in, .attrs = attrs};
  tensor_set(&step, 0, 9);
  n.ninputs = op_table[op]->min_inputs;
  n.nattrs = 1;
  if (op == OP_iota)
    attrs[n.nattrs++] = attr_int(ATTR_axis, axis);
  else {
    attrs[n.nattrs++] = attr_int(ATTR_key, 1);
    attrs[n.nattrs++] = attr_int(ATTR_seed, 2);
  }
  struct tensor all = value(a, &n, &step, n.type), want = cut(a, &all, 0, 2, 4);
  struct node rows = n;
  rows.nattrs = counted_from(&n, 2, some);
  rows.attrs = some;
  struct tensor have = value(a, &rows, &step, want.type);
  const char *wrong = tensor_difference(a, &want, &have);
  if (wrong) fail_msg("%s counts its rows otherwise: %s", n.name, wrong);
}

static void rows_are_counted(void **state) {
  struct arena *a = arena_create();
  int counted = 0;
  (void)state;
  for (int op = 0; op < OP_COUNT; op++) {
    struct node n = {.op = (enum op_id)op};
    if (!node_is_counted(&n)) continue;
    counted++;
    for (int64_t axis = 0; axis < 2; axis++)
      for (int64_t offset = 0; offset < 8; offset += 7) check_counted(a, (enum op_id)op, axis, offset);
  }
  assert_int_equal(counted, 3);
  arena_destroy(a);
}

/* ---- shares ---- */

static void shares_are_joined(void **state) {
  static const char *const how[] = {"sum", "max", "min"};
  struct arena *a = arena_create();
  (void)state;
  for (int i = 0; i < 3; i++) {
    struct node x = {.op = OP_input, .type = {DT_F64, 1, {7}}}, *in[] = {&x, &x};
    struct attr by = attr_string(ATTR_reduction, how[i]);
    struct node all = {.op = OP_all_reduce, .name = how[i], .type = x.type, .ninputs = 2, .inputs = in};
    all.nattrs = 1;
    all.attrs = &by;
    struct node two = {.op = share_op(dist_partial(how[i])), .name = how[i], .type = x.type, .ninputs = 2};
    two.inputs = in;
    struct tensor *operands = operands_of(a, &all, DOMAIN_ANY, 5);
    struct tensor want = value(a, &all, operands, x.type), have = value(a, &two, operands, x.type);
    assert_null(tensor_difference(a, &want, &have));
  }
  arena_destroy(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(runs_along), cmocka_unit_test(elements_move),
                                     cmocka_unit_test(sums_pass), cmocka_unit_test(rows_are_counted),
                                     cmocka_unit_test(shares_are_joined)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
