/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/ops/op_id.h"
#include "tests/leaves/leaf.h"

void matmul_cases(struct cases *c, enum dtype d) {
  static const int sizes[][4] = {{0, 1, 1, 1},  {0, 3, 4, 5}, {0, 16, 17, 15}, {0, 33, 2, 16},
                                 {0, 1, 33, 1}, {0, 0, 3, 4}, {0, 3, 0, 4},    {0, 3, 4, 0},
                                 {1, 3, 4, 2},  {3, 2, 5, 3}, {6, 4, 1, 17},   {0, 5, 300, 3}};
  for (int i = 0; i < CASE_COUNT(sizes); i++)
    for (int transposed = 0; transposed < 4; transposed++) {
      int b = sizes[i][0], m = sizes[i][1], k = sizes[i][2], n = sizes[i][3];
      if (c->small && (b > 1 ? b : 1) * (m * k + k * n) > 60) continue;
      bool ta = transposed & 1, tb = transposed & 2;
      struct type l = {.dtype = (uint8_t)d}, r;
      if (b == 6)
        l.dim[l.rank++] = 2, l.dim[l.rank++] = 3; /* two leading axes */
      else if (b)
        l.dim[l.rank++] = b;
      r = l;
      l.dim[l.rank++] = ta ? k : m, l.dim[l.rank++] = ta ? m : k;
      r.dim[r.rank++] = tb ? n : k, r.dim[r.rank++] = tb ? k : n;
      struct node *x = case_leaf(c, &l);
      case_done(c, build_matmul(c->g, x, case_leaf(c, &r), ta, tb));
      if (d != DT_F32) continue;
      x = build1(c->g, OP_round_bf16, case_leaf(c, &l));
      case_done(c, build_matmul_in(c->g, x, build1(c->g, OP_round_bf16, case_leaf(c, &r)), ta, tb, "bf16"));
    }
}

void matmul_bounds(struct arena *arena, const struct node *n, const struct bounds *in, int additions,
                   struct bounds *out) {
  const struct interval *x = bounds_of_all(arena, &in[0]), *y = bounds_of_all(arena, &in[1]);
  const struct type *l = &n->inputs[0]->type;
  int last = n->type.rank - 1;
  bool ta = node_int_or(n, ATTR_transpose_a, 0), tb = node_int_or(n, ATTR_transpose_b, 0);
  int64_t rows = n->type.dim[last - 1], columns = n->type.dim[last], inner = l->dim[last - ta];
  int64_t count = type_count(&n->type);
  for (int64_t e = 0; e < count; e++) {
    int64_t batch = e / (rows * columns), i = e / columns % rows, j = e % columns;
    struct sum s = sum_make(n->type.dtype);
    for (int64_t k = 0; k < inner; k++) {
      int64_t at_x = batch * rows * inner + (ta ? k * rows + i : i * inner + k);
      int64_t at_y = batch * inner * columns + (tb ? j * inner + k : k * columns + j);
      sum_add_product(&s, x[at_x], y[at_y]);
    }
    /* the product of a term may round too: one more per term */
    sum_result(&s, additions + (int)inner, out, e);
  }
}
