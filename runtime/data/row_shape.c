/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a row of a file is a row of an input, and what to say where it is not. */
#include "runtime/data/reader.h"

#include "base/str.h"

/* Without axes of one element. */
static struct type squeezed(const struct type *t) {
  int64_t dims[MAX_RANK];
  int rank = 0;
  for (int i = 0; i < t->rank; i++)
    if (t->dim[i] != 1) dims[rank++] = t->dim[i];
  return type_make((enum dtype)t->dtype, rank, dims);
}

bool row_becomes(const struct type *have, const struct type *want) {
  struct type from = squeezed(have), to = type_with_dtype(squeezed(want), (enum dtype)have->dtype);
  return type_count(have) == type_count(want) && (from.rank <= 1 || to.rank <= 1 || type_equal(&from, &to));
}

/* from[order[i]] is to[i]; false if there is no such order. */
static bool find_order(const struct type *from, const struct type *to, int *order) {
  bool taken[MAX_RANK] = {false};
  if (from->rank != to->rank) return false;
  for (int i = 0; i < to->rank; i++) {
    int k = 0;
    while (k < from->rank && (taken[k] || from->dim[k] != to->dim[i])) k++;
    if (k == from->rank) return false;
    taken[k] = true;
    order[i] = k;
  }
  return true;
}

/* "B, 3, 8, 8" */
static const char *batch_axes(struct arena *a, const struct type *row) {
  struct str s = str_make(a);
  str_put(&s, "B");
  for (int i = 0; i < row->rank; i++) str_printf(&s, ", %lld", (long long)row->dim[i]);
  return s.data;
}

void row_explain(const char *input, const struct type *have, const struct type *want, struct diags *d) {
  struct type from = squeezed(have), to = squeezed(want);
  const char *axes = batch_axes(d->arena, &from), *dtype = dtype_name((enum dtype)want->dtype);
  int order[MAX_RANK];
  if (type_count(have) != type_count(want)) return;
  if (!find_order(&from, &to, order)) {
    diag_help(d, LOC_NONE, "declare `%s[%s]`, and write `reshape(%s, [%s])`", dtype, axes, input,
              batch_axes(d->arena, want));
    return;
  }
  bool first = from.rank > 2 && order[from.rank - 1] == 0;
  struct str list = str_make(d->arena);
  for (int i = 0; i < to.rank; i++) {
    first = first && (i == to.rank - 1 || order[i] == i + 1);
    str_printf(&list, ", %d", order[i] + 1);
  }
  diag_help(d, LOC_NONE, "%s? declare `%s[%s]`, and write `transpose(%s, [0%s])`",
            first ? "channels first" : "axes in another order", dtype, axes, input, list.data);
}
