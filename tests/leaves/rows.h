/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of tables: what gather and scatter_add share. */
#ifndef TESTS_LEAVES_ROWS_H
#define TESTS_LEAVES_ROWS_H

#include "ir/ops/op_id.h"
#include "tests/leaves/leaf.h"

/* Row numbers of each integer type; some name no row, some the same one. */
static inline void rows_cases(struct cases *c, enum dtype d) {
  static const char *const pairs[][2] = {{"5", "7"},     {"5,3", "7"},    {"5,3", ""},      {"8,17", "3,2"},
                                         {"4,2,3", "6"}, {"1,1", "1"},    {"5,0", "3"},     {"0,3", "4"},
                                         {"5,3", "0"},   {"3,16", "2,0"}, {"300,33", "70"}, {"7,2", "2,3,2"}};
  static const enum dtype numbers[] = {DT_I32, DT_I64, DT_U8};
  for (int i = 0; i < CASE_COUNT(pairs); i++)
    for (int k = 0; k < CASE_COUNT(numbers); k++) {
      struct type table = case_shape(d, pairs[i][0]), index = case_shape(numbers[k], pairs[i][1]),
                  rows = index;
      if (c->small && type_count(&table) > 30) continue;
      rows.dtype = (uint8_t)d;
      for (int axis = 1; axis < table.rank; axis++) rows.dim[rows.rank++] = table.dim[axis];
      struct node *x = case_leaf(c, &table), *at = case_leaf(c, &index);
      if (c->op == OP_gather)
        case_done(c, build2(c->g, OP_gather, x, at));
      else
        case_done(c, build3(c->g, OP_scatter_add, x, at, case_leaf(c, &rows)));
    }
}

/* Elements of a row of the table. */
static inline int64_t row_width(const struct type *table) {
  int64_t width = 1;
  for (int i = 1; i < table->rank; i++) width *= table->dim[i];
  return width;
}

/* The row that number i names, or -1: none. */
static inline int64_t row_at(const struct node *n, const struct bounds *index, int64_t i) {
  double row = tensor_at(&index->value, i);
  return row >= 0 && row < (double)n->inputs[0]->type.dim[0] ? (int64_t)row : -1;
}

#endif
