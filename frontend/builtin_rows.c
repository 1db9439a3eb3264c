/* SPDX-License-Identifier: Apache-2.0 */
/* Rows by number: gather picks them, scatter_add adds to them. */
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"

/* Numbers that are known now are checked now. */
static bool rows_exist(struct resolver *r, const struct node *index, const struct node *table,
                       struct loc loc) {
  if (index->op != OP_constant || index->type.dtype != DT_I32) return true;
  const int32_t *numbers = node_attr(index, ATTR_value)->data;
  int64_t count = type_count(&index->type), rows = table->type.dim[0];
  for (int64_t i = 0; i < count; i++) {
    if (numbers[i] >= 0 && numbers[i] < rows) continue;
    report(r, loc, "there is no row %d in %s", (int)numbers[i], type_text(r->arena, &table->type));
    return false;
  }
  return true;
}

/* The row numbers: a tensor of integers, or a list. Where they are an input, its data is checked before it is
 * used. */
static struct node *row_numbers(struct resolver *r, const struct value *v, const struct node *table,
                                struct loc loc) {
  struct node *index = v->kind == VALUE_TENSOR ? tensor_node(r, v, "`index`") : value_node(r, v, DT_I32);
  if (!index) return NULL;
  if (!dtype_is_int((enum dtype)index->type.dtype)) {
    report(r, loc, "`index` holds the numbers of rows, which are integers, not %s",
           type_text(r->arena, &index->type));
    report_value(r, v);
    report_help(r, "write `cast(x, i32)`");
    return NULL;
  }
  if (!rows_exist(r, index, table, loc)) return NULL;
  if (table->type.dim[0] > 0 && !dim_is_whole(table->type.dim[0]))
    limit_input(r, index, 0, table->type.dim[0] - 1, loc);
  return index;
}

/* The rows of `x` that `index` names, as a type. */
static bool rows_type(struct resolver *r, const struct node *x, const struct node *index, struct loc loc,
                      struct type *t) {
  *t = type_with_dtype(index->type, (enum dtype)x->type.dtype);
  if (index->type.rank + x->type.rank - 1 > MAX_RANK) {
    report(r, loc, "a tensor has at most %d axes", MAX_RANK);
    return false;
  }
  for (int i = 1; i < x->type.rank; i++) t->dim[t->rank++] = x->type.dim[i];
  return type_check(r, t, loc);
}

static struct node *table_of(struct resolver *r, const struct value *v, const char *what) {
  struct node *x = tensor_node(r, v, what);
  if (x && x->type.rank > 0 && x->type.dim[0] >= 0) return x;
  if (!x) return NULL;
  if (x->type.rank == 0)
    report(r, v->at, "%s must have rows, which %s has not", what, type_text(r->arena, &x->type));
  else
    report(r, v->at, "%s must have rows with numbers, which those of a batch have not: %s", what,
           type_text(r->arena, &x->type));
  report_value(r, v);
  return NULL;
}

static struct value run_gather(struct resolver *r, struct value *args, struct loc loc,
                               const struct role *role) {
  (void)role;
  struct type t;
  struct node *table = table_of(r, &args[0], "`table`");
  struct node *index = table ? row_numbers(r, &args[1], table, loc) : NULL;
  if (!index || !rows_type(r, table, index, loc, &t)) return value_error();
  return value_tensor(r, build2(r->g, OP_gather, table, index), loc);
}

static struct value run_scatter_add(struct resolver *r, struct value *args, struct loc loc,
                                    const struct role *role) {
  (void)role;
  struct type t;
  struct node *x = table_of(r, &args[0], "`x`");
  if (x && x->type.dtype == DT_BOOL) {
    report(r, loc, "scatter_add needs a number, not %s", type_text(r->arena, &x->type));
    report_value(r, &args[0]);
    return value_error();
  }
  struct node *index = x ? row_numbers(r, &args[1], x, loc) : NULL;
  if (!index || !rows_type(r, x, index, loc, &t)) return value_error();
  struct node *values = value_node(r, &args[2], (enum dtype)x->type.dtype);
  if (!values) return value_error();
  if (values->type.rank == 0 && values->type.dtype == t.dtype)
    values = build_broadcast(r->g, values, &t, NULL);
  if (!type_equal(&values->type, &t)) {
    report(r, loc, "scatter_add to %s by %s needs values of %s, not %s", type_text(r->arena, &x->type),
           type_text(r->arena, &index->type), type_text(r->arena, &t), type_text(r->arena, &values->type));
    for (int i = 0; i < 3; i++) report_value(r, &args[i]);
    return value_error();
  }
  return value_tensor(r, build3(r->g, OP_scatter_add, x, index, values), loc);
}

const struct builtin builtins_rows[] = {
    {"all_gather", {"x"}, 1, run_all_gather},
    {"gather", {"table", "index"}, 2, run_gather},
    {"scatter_add", {"x", "index", "values"}, 3, run_scatter_add},
    {NULL, {NULL}, 0, NULL},
};
