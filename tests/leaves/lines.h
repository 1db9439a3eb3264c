/* SPDX-License-Identifier: Apache-2.0 */
/* What goes along an axis: the axis and flags are all its attributes. */
#ifndef TESTS_LEAVES_LINES_H
#define TESTS_LEAVES_LINES_H

#include "ir/ops/leaf.h"
#include "tests/leaves/leaf.h"

/* Cases of c->op on each axis of some shapes, by each choice of its flags. Also longer than what the CPU sorts by
 * insertion. */
static inline void line_cases(struct cases *c, enum dtype d) {
  static const char *const shapes[] = {"1", "17", "0", "5,3", "3,0", "2,5,3", "2,3,4,5", "70,33", "2,300"};
  uint64_t flags = op_table[c->op]->optional_attrs;
  for (int i = 0; i < CASE_COUNT(shapes); i++) {
    struct type t = case_shape(d, shapes[i]);
    if (c->small && type_count(&t) > 40) continue;
    for (int axis = 0; axis < t.rank; axis++) {
      uint64_t set = 0;
      do {
        struct attr attrs[ATTR_COUNT] = {attr_int(ATTR_axis, axis)};
        int n = 1;
        for (int k = 0; k < ATTR_COUNT; k++)
          if (set >> k & 1) attrs[n++] = attr_int((enum attr_key)k, 1);
        struct node *x = case_leaf(c, &t);
        case_done(c, build(c->g, c->op, 1, &x, n, attrs, NULL));
        set = (set - flags) & flags; /* the next subset */
      } while (set);
    }
  }
}

#endif
