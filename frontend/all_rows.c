/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of all towers: all_gather(x), and products whose sides have the batch along different axes, as
 * `u @ transpose(v)`.
 *
 * A value with these rows has the axis N, the rows of the whole batch, in place of B. It is made as a table of N rows,
 * to which each row is added where it stands in the batch: so towers gather the rows, and what flows back is summed
 * over the towers before each takes its own, as all_gather and reduce_scatter do. */
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"

/* x with axis `from` as its axis `to`. */
static struct node *moved(struct graph *g, struct node *x, int from, int to) {
  int64_t perm[MAX_RANK];
  int k = 0;
  for (int i = 0; i < x->type.rank; i++) {
    if (i == to) perm[i] = from;
    if (i == to) continue;
    if (k == from) k++;
    perm[i] = k++;
  }
  return from == to ? x : build_transpose(g, x, perm);
}

/* The batch is the first axis of x. */
static struct node *table_of_rows(struct resolver *r, struct node *x) {
  struct graph *g = r->g;
  bool flags = x->type.dtype == DT_BOOL;
  if (flags) x = build_cast(g, x, DT_U8);
  struct type t = x ? x->type : type_scalar(DT_U8), places = type_scalar(DT_I64);
  places.rank = 1;
  places.dim[0] = -1;
  t.dim[0] = DIM_WHOLE;
  if (!x || !type_valid(&t)) return NULL;
  struct node *zeros = build_fill(g, &t, 0), *place = build_iota(g, &places, 0);
  struct node *y = zeros && place ? build3(g, OP_scatter_add, zeros, place, x) : NULL;
  return y && flags ? build_cast(g, y, DT_BOOL) : y;
}

struct node *all_rows(struct resolver *r, struct node *x, struct loc loc) {
  int axis = type_batch_axis(&x->type);
  if (axis >= 0 && x->type.dim[axis] != -1) {
    report(r, loc, "rows are gathered along an axis that is the batch alone, not of %s",
           type_text(r->arena, &x->type));
    return NULL;
  }
  if (axis < 0) return x;
  struct node *y = table_of_rows(r, moved(r->g, x, axis, 0));
  y = y ? moved(r->g, y, 0, axis) : NULL;
  if (!y) value_tensor(r, NULL, loc);
  return y;
}

bool gather_for_product(struct resolver *r, struct node **a, struct node **b, struct loc loc) {
  const struct type *ta = &(*a)->type, *tb = &(*b)->type;
  int of_a = type_batch_axis(ta), of_b = type_batch_axis(tb);
  if (ta->rank < 2 || tb->rank < 2) return true;
  bool left = of_a >= 0 && of_a != ta->rank - 1; /* rows of the product */
  bool inner = dim_is_whole(ta->dim[ta->rank - 1]) && of_b == tb->rank - 2;
  bool columns = left && of_b == tb->rank - 1;
  if ((inner || columns) && !(*b = all_rows(r, *b, loc))) return false;
  ta = &(*a)->type, tb = &(*b)->type;
  inner = of_a == ta->rank - 1 && dim_is_whole(tb->dim[tb->rank - 2]);
  return !inner || (*a = all_rows(r, *a, loc));
}

/* Rows with a different number of axes behind the batch. */
static void help_axes(struct resolver *r, struct node *const *x, int n) {
  const struct type *few = NULL, *many = NULL;
  for (int i = 0; i < n; i++) {
    const struct type *t = &x[i]->type;
    if (type_batch_axis(t) != 0) continue;
    if (!few || t->rank < few->rank) few = t;
    if (!many || t->rank > many->rank) many = t;
  }
  if (!few || few->rank == many->rank || many->rank < 3 || type_has_whole(many)) return;
  if (few->rank == 1 && r->errors.inside)
    report_help(
        r,
        "one has a number of each row, one has several: `flatten(x)` before the last layer makes [B, n] of "
        "images, and `[:, -1]` takes the last step of a sequence");
  else if (!r->errors.inside)
    report_help(r, "`expand(x, 1)` gives %s an axis behind the batch", type_text(r->arena, few));
}

/* What is a number of each row, [B], beside what has it as [B, 1], or has several of each row. */
static void help_column(struct resolver *r, struct node *const *x, int n) {
  const struct type *row = NULL, *table = NULL;
  for (int i = 0; i < n; i++) {
    const struct type *t = &x[i]->type;
    if (type_batch_axis(t) != 0) continue;
    if (t->rank == 1) row = t;
    if (t->rank == 2) table = t;
  }
  if (!row || !table) return;
  const char *one = type_text(r->arena, row), *several = type_text(r->arena, table);
  if (table->dim[1] == 1)
    report_help(r, "`squeeze(x, 1)` makes %s of %s", one, several);
  else if (!r->errors.inside && !type_has_whole(table))
    report_help(r, "`expand(x, 1)` puts the one number of a row in %s beside those in %s", one, several);
}

void help_pairs(struct resolver *r, struct node *const *x, int n) {
  help_column(r, x, n);
  help_axes(r, x, n);
  if (r->errors.inside) return;
  int first = 0;
  bool apart = false;
  for (int i = 0; i < n; i++) {
    int axis = type_batch_axis(&x[i]->type), behind = axis < 0 ? 0 : x[i]->type.rank - axis;
    apart |= type_has_whole(&x[i]->type) || (first && behind && behind != first);
    if (behind) first = behind;
  }
  if (apart)
    report_help(
        r, "each row meets all rows of the batch where one side has these: `expand(u, 1) - all_gather(v)`");
}

/* all_gather(x) */
struct value run_all_gather(struct resolver *r, struct value *args, struct loc loc, const struct role *role) {
  (void)role;
  struct node *x = tensor_node(r, &args[0], "`x`");
  if (!x) return value_error();
  if (type_batch_axis(&x->type) < 0) {
    report(r, loc, "`all_gather` takes what has rows of the batch, not %s", type_text(r->arena, &x->type));
    return value_error();
  }
  build_here(r, loc);
  struct node *y = all_rows(r, x, loc);
  return y ? value_tensor(r, y, loc) : value_error();
}
