/* SPDX-License-Identifier: Apache-2.0 */
/* Windows and their gradients against those of JAX, PyTorch and TensorFlow: window.def, small integers, many of them
 * equal. Backends are compared with what computes here in test_ops. */
#include "ir/ops/op_id.h"
#include "passes/pass.h"
#include "tests/leaves/window.h"
#include "tests/ops/check.h"
#include "tests/support/elements.h"
#include "tests/support/eval.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Check sums by window_sum, window_max, and window_max with NaN: of the windows and the gradient. */
static const struct expected {
  const char *windows;
  int64_t sums[3][2];
} expected[] = {
#define WINDOW(x, size, strides, low, high, input, dilation, windows, a, b, c, d, e, f) \
  {windows, {{a, b}, {c, d}, {e, f}}},
#include "tests/ops/window.def"
#undef WINDOW
};

/* numbers() and check() of window.py. */
static void fill(struct tensor *t, int seed, bool nan) {
  for (int64_t i = 0; i < type_count(&t->type); i++)
    tensor_set(t, i, nan && i % 5 == 0 ? NAN : (double)((i * 37 + i * i % 13 * 5 + seed * 53 + 11) % 7 - 3));
}

/* window(x), and the gradient of its sum with weights, by the compiler's own rule. */
static void check_row(int row, int column, enum dtype d) {
  const struct window_shape *s = &window_shapes[row];
  struct arena *a = arena_create();
  struct diags diags;
  diags_init(&diags, a);
  struct graph *g = graph_create(a, "window", &diags);
  struct values none = values_make(a), variables = values_make(a);
  struct type tx = case_shape(d, s->x), ty = case_shape(d, expected[row].windows);
  struct attr attrs[6];
  struct node *x = check_leaf(g, fill, "x", &tx, 1, column == 2, &variables),
              *up = check_leaf(g, fill, "up", &ty, 3, false, &variables);
  struct node *y =
      build(g, column ? OP_window_max : OP_window_sum, 1, &x, window_attrs(a, s, attrs), attrs, NULL);
  if (!y || !type_equal(&y->type, &ty)) fail_msg("%s: %s", s->x, diags_text(&diags, false));
  struct node *loss = build_reduce(g, OP_reduce_sum, build2(g, OP_mul, y, up), (1u << ty.rank) - 1);
  graph_add_output(g, OUTPUT_VALUE, "y", y, 0);
  graph_add_output(g, OUTPUT_VALUE, "dx", build_gradient(g, loss, x), 0);
  struct graph *e = pipeline_run(a, g, "grad", NULL, &(struct pipeline_options){.verify_each = true}, &diags);
  if (!e) fail_msg("%s", diags_text(&diags, false));
  struct tensor *values = arena_new_array(a, e->count, struct tensor);
  assert_true(graph_eval(a, e, &none, &variables, values));
  for (int i = 0; i < 2; i++) {
    int64_t got = check_sum(&values[e->outputs[i].node->id]), want = expected[row].sums[column][i];
    if (got != want)
      fail_msg("row %d, %s by %s, column %d: the %s has the check sum %lld, not %lld", row, s->x, s->size,
               column, i ? "gradient" : "value", (long long)got, (long long)want);
  }
  arena_destroy(a);
}

static bool is_padded(const struct window_shape *s) {
  return strpbrk(s->low, "123") || strpbrk(s->high, "123");
}

static void as_others(void **state) {
  (void)state;
  for (int row = 0; row < CASE_COUNT(expected); row++)
    for (int column = 0; column < 3; column++) {
      const struct window_shape *s = &window_shapes[row];
      if ((column && *s->input) || (column == 2 && (*s->dilation || is_padded(s)))) continue;
      check_row(row, column, DT_F64);
      check_row(row, column, DT_F32);
    }
}

/* The gradient of a gradient, in its direction: that of window_put is window_pick. */
static void gradients_of_gradients(void **state) {
  (void)state;
  for (int row = 0; row < CASE_COUNT(expected); row++) {
    const struct window_shape *s = &window_shapes[row];
    if (*s->input) continue;
    struct arena *a = arena_create();
    struct diags diags;
    diags_init(&diags, a);
    struct graph *g = graph_create(a, "window", &diags);
    struct values none = values_make(a), variables = values_make(a);
    struct type tx = case_shape(DT_F64, s->x), ty = case_shape(DT_F64, expected[row].windows);
    struct attr attrs[6];
    int count = window_attrs(a, s, attrs);
    struct node *x = check_leaf(g, fill, "x", &tx, 1, false, &variables),
                *v = check_leaf(g, fill, "v", &ty, 3, false, &variables);
    struct node *w = check_leaf(g, fill, "w", &tx, 5, false, &variables);
    struct node *put = build(g, OP_window_put, 2, (struct node *[]){x, v}, count, attrs, NULL);
    struct node *pick = build(g, OP_window_pick, 2, (struct node *[]){x, w}, count, attrs, NULL);
    struct node *loss = build_reduce(g, OP_reduce_sum, build2(g, OP_mul, put, w), (1u << tx.rank) - 1);
    struct node *other = build_reduce(g, OP_reduce_sum, build2(g, OP_mul, pick, v), (1u << ty.rank) - 1);
    struct node *pairs[][2] = {
        {loss, other}, {build_gradient(g, loss, v), pick}, {build_gradient(g, other, w), put}};
    for (int i = 0; i < 6; i++)
      graph_add_output(g, OUTPUT_VALUE, arena_printf(a, "%d", i), pairs[i / 2][i % 2], 0);
    struct graph *e =
        pipeline_run(a, g, "grad", NULL, &(struct pipeline_options){.verify_each = true}, &diags);
    if (!e) fail_msg("%s", diags_text(&diags, false));
    struct tensor *values = arena_new_array(a, e->count, struct tensor);
    assert_true(graph_eval(a, e, &none, &variables, values));
    for (int i = 0; i < 6; i += 2) {
      const char *wrong =
          tensor_difference(a, &values[e->outputs[i].node->id], &values[e->outputs[i + 1].node->id]);
      if (wrong) fail_msg("row %d, %s: %d: %s", row, s->x, i, wrong);
    }
    arena_destroy(a);
  }
}

/* What is refused, and why. */
static void refusals(void **state) {
  (void)state;
  static const struct {
    int rank;
    int64_t x[5];
    const char *size, *strides, *input, *dilation, *says;
  } rows[] = {
      {2, {3, 4}, "2", "", "", "", "of rank 3 to 5"},
      {3, {3, 4, -1}, "2", "", "", "", "the batch in the first axis alone"},
      {4, {-1, 4, 4, 2}, "2", "", "", "", "size needs 2 numbers"},
      {3, {-1, 4, 2}, "0", "", "", "", "size takes numbers from 1"},
      {3, {-1, 4, 2}, "2", "0", "", "", "strides takes numbers from 1"},
      {3, {-1, 4, 2}, "2", "", "", "0", "kernel_dilation takes numbers from 1"},
      {3, {-1, 4, 2}, "1099511627776", "", "", "2", "longer than any axis"},
      {3, {-1, 33554432, 2}, "2", "1099511627776", "1099511627776", "", "so wide"},
  };
  for (int i = 0; i < CASE_COUNT(rows); i++) {
    struct arena *a = arena_create();
    struct diags diags;
    diags_init(&diags, a);
    struct graph *g = graph_create(a, "window", &diags);
    struct type t = type_make(DT_F32, rows[i].rank, rows[i].x);
    struct node *x = build_input(g, "x", &t);
    struct window_shape s = {"", rows[i].size, rows[i].strides, "", "", rows[i].input, rows[i].dilation};
    struct attr attrs[6];
    struct node *y = build(g, *rows[i].input ? OP_window_sum : OP_window_max, 1, &x,
                           window_attrs(a, &s, attrs), attrs, NULL);
    if (y || !strstr(diags_text(&diags, false), rows[i].says))
      fail_msg("row %d: %s", i, diags_text(&diags, false));
    arena_destroy(a);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_others), cmocka_unit_test(gradients_of_gradients),
                                     cmocka_unit_test(refusals)};
  return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
