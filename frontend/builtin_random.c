/* SPDX-License-Identifier: Apache-2.0 */
/* Random tensors. The stream of numbers belongs to the place in the model: no order of building can change
 * it.
 *
 * In evaluation and prediction, which do no steps, an element's number in the stream is that of its row times the
 * elements of a row, plus its place in the row. So a row has the same numbers in batches of any size, and no two rows
 * have the same. */
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"

#include <string.h>

/* The number of the batch's first row: an input of each graph that draws for rows, made once. */
static struct node *first_row(struct resolver *r) {
  struct node *n = graph_find(r->g, FIRST_ROW_INPUT);
  if (n) return n;
  struct build_context saved = r->g->at;
  struct type t = type_scalar(DT_I64);
  r->g->at.want = NULL;
  r->g->at.trail = NULL;
  n = build_input(r->g, FIRST_ROW_INPUT, &t);
  r->g->at = saved;
  return n;
}

/* The axis of the rows: that of the batch, or where there is none, of the rows of all towers; -1: it has no rows. */
static int axis_of_rows(const struct type *t) {
  int axis = type_batch_axis(t);
  for (int i = t->rank; i-- > 0 && type_batch_axis(t) < 0;)
    if (dim_is_whole(t->dim[i])) axis = i;
  return axis;
}

/* The type with this axis as the first, and the order of axes that puts it back. */
static struct type rows_in_front(const struct type *t, int axis, int64_t *back) {
  struct type out = *t;
  for (int i = 0; i < t->rank; i++) {
    back[i] = i == axis ? 0 : i < axis ? i + 1 : i;
    out.dim[back[i]] = t->dim[i];
  }
  return out;
}

/* Elements of a row, which is an element of the first axis. One that is as long as the batch has 2^32 numbers of its
 * own, so that no batch of another size meets them. */
static int64_t row_width(const struct type *t) {
  struct type row = *t;
  row.dim[0] = dim_is_whole(t->dim[0]) ? t->dim[0] / DIM_WHOLE : -t->dim[0];
  return type_has_whole(&row) ? INT64_C(1) << 32 : type_count(&row);
}

/* Each row's own numbers. */
static struct node *draw_rows(struct resolver *r, enum op_id op, const struct type *t, int axis,
                              struct node *step, int64_t stream) {
  int64_t back[MAX_RANK];
  struct type front = rows_in_front(t, axis, back);
  struct node *x =
      build_random_rows(r->g, op, &front, step, first_row(r), row_width(&front), r->options->seed, stream);
  return axis > 0 ? build_transpose(r->g, x, back) : x;
}

static struct value draw(struct resolver *r, enum op_id op, struct value *args, struct loc loc,
                         const struct role *role) {
  struct type t;
  if (!value_as_type(r, &args[0], &t)) return value_error();
  if (!dtype_is_float((enum dtype)t.dtype)) {
    report(r, args[0].at, "random numbers are f32 or f64, not %s", type_text(r->arena, &t));
    report_help(r, "what they are joined with is converted before: `cast(x, f32)`");
    return value_error();
  }
  const char *path = role_path(r, role);
  int64_t stream = (int64_t)(str_hash(STR_HASH_SEED, path, strlen(path)) >> 1);
  struct value step = step_value(r);
  if (step.kind != VALUE_TENSOR) return value_error();
  build_here(r, loc);
  int axis = r->run.kind == RUN_TRAIN || r->g == r->init ? -1 : axis_of_rows(&t);
  struct node *x = axis < 0 ? build_random(r->g, op, &t, step.tensor.node, r->options->seed, stream)
                            : draw_rows(r, op, &t, axis, step.tensor.node, stream);
  return value_tensor(r, x, loc);
}

/* x * scale + shift, leaving out what changes nothing */
static struct value affine(struct resolver *r, struct value x, struct value scale, struct value shift,
                           struct loc loc) {
  struct value one = value_float(1), zero = value_float(0);
  if (x.kind == VALUE_ERROR) return x;
  if (!value_equal(&scale, &one)) {
    struct value v[] = {x, scale};
    x = binary_values(r, OPERATOR_MUL, v, loc);
  }
  if (!value_equal(&shift, &zero)) {
    struct value v[] = {x, shift};
    x = binary_values(r, OPERATOR_ADD, v, loc);
  }
  return x;
}

static struct value or_else(struct value v, double otherwise) {
  return v.kind == VALUE_NONE ? value_float(otherwise) : v;
}

/* random_uniform(f32[10], low = 0, high = 1) */
static struct value run_uniform(struct resolver *r, struct value *args, struct loc loc,
                                const struct role *role) {
  struct value v[] = {or_else(args[2], 1), or_else(args[1], 0)};
  struct value width = binary_values(r, OPERATOR_SUB, v, loc);
  return affine(r, draw(r, OP_random_uniform, args, loc, role), width, v[1], loc);
}

/* random_normal(f32[10], mean = 0, stddev = 1) */
static struct value run_normal(struct resolver *r, struct value *args, struct loc loc,
                               const struct role *role) {
  return affine(r, draw(r, OP_random_normal, args, loc, role), or_else(args[2], 1), or_else(args[1], 0), loc);
}

const struct builtin builtins_random[] = {
    {"random_uniform", {"type", "low = 0", "high = 1"}, 1, run_uniform},
    {"random_normal", {"type", "mean = 0", "stddev = 1"}, 1, run_normal},
    {NULL, {NULL}, 0, NULL},
};
