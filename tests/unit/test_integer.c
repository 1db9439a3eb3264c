/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of counts and sizes, and lines of the cache. */
#include "base/integer.h"
#include "base/line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* By counting. */
static void integers(void **state) {
  (void)state;
  for (int64_t b = 1; b < 20; b++)
    for (int64_t a = -40; a < 40; a++) {
      int64_t quotient = -100, blocks = 0, divisor = b;
      while ((quotient + 1) * b <= a) quotient++;
      assert_int_equal(floor_quotient(a, b), quotient);
      assert_int_equal(least(a, b) + greatest(a, b), a + b);
      assert_true(least(a, b) <= greatest(a, b));
      if (a < 0) continue;
      while (blocks * b < a) blocks++;
      while (a % divisor || b % divisor) divisor--;
      assert_int_equal(blocks_of(a, b), blocks);
      assert_int_equal(round_up(a, b), blocks * b);
      assert_int_equal(size_round_up((size_t)a, (size_t)b), blocks * b);
      assert_int_equal(common_divisor(a, b), divisor);
      assert_int_equal(common_divisor(b, a), divisor);
    }
}

static void lines(void **state) {
  (void)state;
  _Alignas(CACHE_LINE) char memory[3 * CACHE_LINE];
  for (int i = 0; i <= 2 * CACHE_LINE; i++)
    assert_ptr_equal(line_from(memory + i), memory + round_up(i, CACHE_LINE));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(integers),
      cmocka_unit_test(lines),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
