/* SPDX-License-Identifier: Apache-2.0 */
/* Types: arithmetic of dimensions, validity, text. */
#include "ir/type.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct arena *arena;

static int setup(void **state) {
  (void)state;
  arena = arena_create();
  return 0;
}

static int teardown(void **state) {
  (void)state;
  arena_destroy(arena);
  return 0;
}

#define TYPE(d, ...) \
  type_make(d, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static void dtypes(void **state) {
  (void)state;
  for (int d = 0; d < DT_COUNT; d++) {
    enum dtype back = DT_COUNT;
    const char *name = dtype_name((enum dtype)d);
    size_t len = 0;
    while (name[len]) len++;
    assert_true(dtype_parse(name, len, &back));
    assert_int_equal(back, d);
    assert_false(dtype_parse(name, len - 1, &back));
    assert_true(dtype_size((enum dtype)d) > 0);
    assert_false(dtype_is_float((enum dtype)d) && dtype_is_int((enum dtype)d));
  }
  assert_false(dtype_is_int(DT_BOOL));
  assert_string_equal(dist_name(DIST_NONE), "");
  assert_string_equal(dist_name(DIST_PARTIAL), "partial(sum)");
  assert_string_equal(dist_name(dist_partial("mean")), "partial(sum)");
  assert_string_equal(dist_name(dist_partial("max")), "partial(max)");
  assert_string_equal(dist_name(dist_partial("min")), "partial(min)");
}

static void text(void **state) {
  (void)state;
  struct type scalar = type_scalar(DT_F32), t = TYPE(DT_U8, -1, 28, -3, 0);
  assert_string_equal(type_text(arena, &scalar), "f32[]");
  assert_string_equal(type_text(arena, &t), "u8[B,28,3*B,0]");
}

static void counts(void **state) {
  (void)state;
  struct type t = TYPE(DT_F64, -2, 3, 4), fixed = type_specialize(&t, 5), none = type_specialize(&t, 0);
  assert_int_equal(type_count(&t), -24);
  assert_int_equal(type_batch_axis(&t), 0);
  assert_true(type_is_symbolic(&t));
  assert_int_equal(type_count(&fixed), 120);
  assert_int_equal(type_bytes(&fixed), 960);
  assert_false(type_is_symbolic(&fixed));
  assert_int_equal(type_count(&none), 0);
  assert_int_equal(type_batch_axis(&fixed), -1);
}

static void validity(void **state) {
  (void)state;
  struct type large = TYPE(DT_U8, 1 << 20, 1 << 20), larger = TYPE(DT_U8, 1 << 20, 1 << 20, 2);
  struct type twice = TYPE(DT_U8, -1, -1), empty = TYPE(DT_U8, 0, INT64_MAX), least = TYPE(DT_U8, INT64_MIN);
  struct type symbolic = TYPE(DT_U8, -(INT64_C(1) << 40)), special = type_specialize(&symbolic, 2);
  assert_true(type_valid(&large));
  assert_false(type_valid(&larger));
  assert_false(type_valid(&twice));
  assert_false(type_valid(&empty));
  assert_false(type_valid(&least));
  assert_true(type_valid(&symbolic));
  assert_false(type_valid(&special));
}

/* N is a size that no other one is, and a number where the batch is one. */
static void whole(void **state) {
  (void)state;
  struct type t = TYPE(DT_F32, -1, DIM_WHOLE, 3), two = TYPE(DT_F32, 2 * DIM_WHOLE),
              fixed = type_specialize(&t, 5);
  struct type square = TYPE(DT_F32, DIM_WHOLE, DIM_WHOLE), odd = TYPE(DT_F32, DIM_WHOLE - 1),
              wide = TYPE(DT_F32, DIM_WHOLE, 1 << 21);
  int64_t p = 7;
  assert_string_equal(type_text(arena, &t), "f32[B,N,3]");
  assert_string_equal(type_text(arena, &two), "f32[2*N]");
  assert_true(type_valid(&t) && type_valid(&two) && type_has_whole(&t) && !type_has_whole(&fixed));
  assert_false(type_valid(&square) || type_valid(&odd) || type_valid(&wide));
  assert_int_equal(type_batch_axis(&t), 0);
  assert_false(type_is_symbolic(&two));
  assert_int_equal(type_count(&fixed), 75);
  assert_true(dim_add(DIM_WHOLE, DIM_WHOLE, &p) && p == 2 * DIM_WHOLE);
  assert_false(dim_add(DIM_WHOLE, 1, &p) || dim_add(DIM_WHOLE, -1, &p) || dim_mul(DIM_WHOLE, 2, &p));
}

static void products(void **state) {
  (void)state;
  int64_t p = 7;
  assert_true(dim_mul(-3, 4, &p) && p == -12);
  assert_true(dim_mul(0, -4, &p) && p == 0);
  assert_true(dim_mul(INT64_C(1) << 20, INT64_C(1) << 20, &p) && p == MAX_ELEMENTS);
  assert_false(dim_mul(-1, -1, &p));
  assert_false(dim_mul(MAX_ELEMENTS, 2, &p));
  assert_false(dim_mul(INT64_MAX, INT64_MAX, &p));
  assert_false(dim_mul(INT64_MIN, 1, &p));
  assert_int_equal(p, MAX_ELEMENTS);
}

static void equality(void **state) {
  (void)state;
  struct type a = TYPE(DT_F32, 2, 3), b = TYPE(DT_F32, 2, 3), c = TYPE(DT_F32, 2),
              d = type_with_dtype(a, DT_I32);
  b.dim[5] = 99; /* what lies behind the rank says nothing */
  assert_true(type_equal(&a, &b));
  assert_false(type_equal(&a, &c));
  assert_false(type_equal(&a, &d));
  assert_true(shape_equal(&a, &d));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dtypes),   cmocka_unit_test(text),     cmocka_unit_test(counts),
      cmocka_unit_test(validity), cmocka_unit_test(products), cmocka_unit_test(whole),
      cmocka_unit_test(equality),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
