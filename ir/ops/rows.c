/* Rows that are picked out of a table, and rows that are added to one, where the row numbers are data: a leaf
 * of its own each. No row number leads outside: gather gives zeros for one that is not there, scatter_add adds
 * nothing. */
#include "ir/build.h"

/* The shape of the rows of `table` that `index` names. */
static bool row_shape(const struct type *table, const struct type *index, struct type *out) {
  *out = *index;
  out->dtype = table->dtype;
  if (index->rank + table->rank - 1 > MAX_RANK) return false;
  for (int i = 1; i < table->rank; i++) out->dim[out->rank++] = table->dim[i];
  return true;
}

static bool check_rows(const struct node *n, struct type *rows, struct arena *a, const char **why) {
  const struct type *table = &n->inputs[0]->type, *index = &n->inputs[1]->type;
  const char *name = op_of(n)->name;
  if (!dtype_is_int(index->dtype))
    *why = arena_printf(a, "%s needs row numbers of an integer type, not %s", name, type_text(a, index));
  else if (table->rank == 0)
    *why = arena_printf(a, "%s needs a table of rows, not %s", name, type_text(a, table));
  else if (table->dim[0] < 0)
    *why = arena_printf(a, "%s cannot name rows of the batch: %s", name, type_text(a, table));
  else if (!row_shape(table, index, rows))
    *why = arena_printf(a, "%s of rows of %s by %s has more than %d axes", name, type_text(a, table),
                        type_text(a, index), MAX_RANK);
  else
    return true;
  return false;
}

static bool gather_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  return check_rows(n, out, a, why);
}

static void gather_grad(struct grad *c, const struct node *n, struct node *dy) {
  struct node *table = n->inputs[0];
  grad_add(c, n, 0, build3(c->g, OP_scatter_add, build_fill(c->g, &table->type, 0), n->inputs[1], dy));
}

static int64_t gather_flops(const struct node *n) {
  (void)n;
  return 0;
}

const struct op_info op_gather = {.name = "gather",
                                  .kind = KIND_ROWS,
                                  .dtypes = DTYPE_CUSTOM,
                                  .min_inputs = 2,
                                  .max_inputs = 2,
                                  .linear = 1,
                                  .roles = {"table", "index"},
                                  .domain = DOMAIN_ANY,
                                  .infer = gather_infer,
                                  .grad = gather_grad,
                                  .flops = gather_flops};

/* ---- scatter_add: x, with values[i] added to row index[i], in the order of i ---- */

static bool scatter_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const struct type *x = &n->inputs[0]->type, *values = &n->inputs[2]->type;
  struct type rows;
  if (!check_rows(n, &rows, a, why)) return false;
  if (x->dtype == DT_BOOL) {
    *why = arena_printf(a, "scatter_add needs numbers, not %s", type_text(a, x));
    return false;
  }
  if (!type_equal(&rows, values)) {
    *why = arena_printf(a, "scatter_add to %s by %s needs values of %s, not %s", type_text(a, x),
                        type_text(a, &n->inputs[1]->type), type_text(a, &rows), type_text(a, values));
    return false;
  }
  *out = *x;
  return true;
}

static void scatter_grad(struct grad *c, const struct node *n, struct node *dy) {
  grad_add(c, n, 0, dy);
  grad_add(c, n, 2, build2(c->g, OP_gather, dy, n->inputs[1]));
}

static int64_t scatter_flops(const struct node *n) { return type_count(&n->inputs[2]->type); }

const struct op_info op_scatter_add = {.name = "scatter_add",
                                       .kind = KIND_ROWS,
                                       .dtypes = DTYPE_CUSTOM,
                                       .min_inputs = 3,
                                       .max_inputs = 3,
                                       .roles = {"x", "index", "values"},
                                       .domain = DOMAIN_ANY,
                                       .infer = scatter_infer,
                                       .grad = scatter_grad,
                                       .flops = scatter_flops};
