/* SPDX-License-Identifier: Apache-2.0 */
/* Places along an axis: what take_along and add_along share. */
#ifndef TESTS_LEAVES_ALONG_H
#define TESTS_LEAVES_ALONG_H

#include "ir/ops/leaf.h"
#include "ir/ops/op_id.h"
#include "tests/leaves/leaf.h"

/* Places of each integer type; some are none, some the same one. */
static inline void along_cases(struct cases *c, enum dtype d) {
  static const struct {
    const char *shape;
    int axis, count;
  } rows[] = {{"5", 0, 7},   {"5,3", 0, 2},    {"5,3", 1, 4},  {"2,5,3", 1, 6}, {"0,3", 0, 2}, {"5,3", 0, 0},
              {"5,0", 0, 2}, {"70,33", 1, 20}, {"3,16", 1, 1}, {"4,3", 1, 3},   {"17", 0, 17}, {"2,6", 1, 4}};
  static const enum dtype numbers[] = {DT_I32, DT_I64, DT_U8};
  for (int i = 0; i < CASE_COUNT(rows); i++)
    for (int k = 0; k < CASE_COUNT(numbers); k++) {
      struct type x = case_shape(d, rows[i].shape), index = type_with_dtype(x, numbers[k]), values = x;
      if (c->small && type_count(&x) > 40) continue;
      struct attr axis = attr_int(ATTR_axis, rows[i].axis);
      index.dim[rows[i].axis] = values.dim[rows[i].axis] = rows[i].count;
      struct node *in[3] = {case_leaf(c, &x), NULL, NULL};
      in[1] = case_leaf(c, &index);
      if (c->op == OP_add_along) in[2] = case_leaf(c, &values);
      case_done(c, build(c->g, c->op, c->op == OP_add_along ? 3 : 2, in, 1, &axis, NULL));
    }
}

/* The first element of x in the line that holds element e of n's index; *step: to the next. */
static inline int64_t along_line(const struct node *n, int64_t e, int64_t *step) {
  struct lines l = lines_of(n);
  int64_t axis = node_int(n, ATTR_axis), length = n->inputs[0]->type.dim[axis];
  *step = l.inner;
  return e / l.inner / n->inputs[1]->type.dim[axis] * length * l.inner + e % l.inner;
}

#endif
