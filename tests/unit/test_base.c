/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas, strings and numbers, maps. */
#include "base/arena.h"
#include "base/format.h"
#include "base/map.h"
#include "base/str.h"

#include <float.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int setup(void **state) {
  *state = arena_create();
  return 0;
}

static int teardown(void **state) {
  arena_destroy(*state);
  return 0;
}

static void arena_alignment(void **state) {
  struct arena *a = *state;
  size_t total = 0;
  for (size_t i = 0; i < 3000; i++) {
    size_t size = i * 37 % 5000;
    unsigned char *p = arena_alloc(a, size);
    assert_int_equal((uintptr_t)p % 16, 0);
    for (size_t k = 0; k < size; k++) assert_int_equal(p[k], 0);
    memset(p, 0xff, size);
    total += size;
  }
  assert_int_equal(arena_used(a), total);
  arena_reset(a);
  assert_int_equal(arena_used(a), 0);
  unsigned char *again = arena_alloc(a, 100000);
  for (size_t k = 0; k < 100000; k++) assert_int_equal(again[k], 0);
}

static void arena_large(void **state) {
  struct arena *a = *state;
  char *before = arena_strdup(a, "before");
  char *large = arena_alloc(a, 9 << 20);
  char *after = arena_strdup(a, "after");
  memset(large, 'x', 9 << 20);
  assert_string_equal(before, "before");
  assert_string_equal(after, "after");
}

static void arena_text(void **state) {
  struct arena *a = *state;
  assert_string_equal(arena_strndup(a, "abcdef", 3), "abc");
  assert_string_equal(arena_printf(a, "%s-%d", "x", 7), "x-7");
  char *wide = arena_printf(a, "%0*d", 5000, 1);
  assert_int_equal(strlen(wide), 5000);
  assert_int_equal(wide[4999], '1');
  arena_destroy(NULL);
}

/* Every request may fail; each failure arrives at the recovery point and nothing leaks. */
static void arena_out_of_memory(void **state) {
  (void)state;
  volatile int failures = 0;
  volatile bool done = false;
  while (!done) {
    struct arena *volatile a = NULL;
    jmp_buf here, *previous = arena_on_failure(&here);
    arena_fail_after(failures);
    if (setjmp(here) == 0) {
      a = arena_create();
      for (int i = 0; i < 20; i++) arena_alloc(a, 20000);
      done = true;
    } else {
      failures++;
    }
    arena_fail_after(-1);
    assert_ptr_equal(arena_on_failure(previous), &here);
    arena_destroy(a);
  }
  assert_true(failures > 3);

  struct arena *a = arena_create();
  jmp_buf here, *previous = arena_on_failure(&here);
  volatile int caught = 0;
  if (setjmp(here) == 0)
    arena_array(a, SIZE_MAX / 2, 3);
  else
    caught++;
  if (setjmp(here) == 0)
    arena_alloc(a, SIZE_MAX - 3);
  else
    caught++;
  arena_on_failure(previous);
  assert_int_equal(caught, 2);
  arena_destroy(a);
}

static void str_building(void **state) {
  struct str s = str_make(*state);
  assert_string_equal(s.data, "");
  str_put(&s, "");
  for (int i = 0; i < 1000; i++) str_printf(&s, "%d,", i % 10);
  assert_int_equal(s.len, 2000);
  str_printf(&s, "%0*d", 3000, 0);
  str_putc(&s, '!');
  assert_int_equal(strlen(s.data), 5001);
  str_putn(&s, "a\0b", 3);
  assert_int_equal(s.len, 5004);
}

static const char *double_text(struct arena *a, double value) {
  struct str s = str_make(a);
  str_double(&s, value);
  return s.data;
}

static const char *float_text(struct arena *a, float value) {
  struct str s = str_make(a);
  str_float(&s, value);
  return s.data;
}

static void check_numbers(struct arena *a) {
  assert_string_equal(double_text(a, 0.1), "0.1");
  assert_string_equal(double_text(a, 1e-7), "1e-07");
  assert_string_equal(double_text(a, 3), "3.0");
  assert_string_equal(double_text(a, -0.0), "-0.0");
  assert_string_equal(double_text(a, 0), "0.0");
  assert_string_equal(double_text(a, INFINITY), "inf");
  assert_string_equal(double_text(a, -INFINITY), "-inf");
  assert_string_equal(double_text(a, NAN), "nan");
  assert_string_equal(double_text(a, 1e15), "1000000000000000.0");
  assert_string_equal(double_text(a, 1e16), "1e+16");
  assert_string_equal(double_text(a, 1e-4), "0.0001");
  assert_string_equal(double_text(a, 1.25e-5), "1.25e-05");
  assert_string_equal(double_text(a, 123.456), "123.456");
  assert_string_equal(double_text(a, -1.5e300), "-1.5e+300");
  assert_string_equal(double_text(a, 5e-324), "5e-324");
  assert_string_equal(double_text(a, DBL_MAX), "1.7976931348623157e+308");
  assert_string_equal(double_text(a, DBL_MIN), "2.2250738585072014e-308");
  assert_string_equal(double_text(a, 9007199254740993.0), "9007199254740992.0");
  assert_string_equal(double_text(a, 0.3), "0.3");
  assert_string_equal(double_text(a, 0.1 + 0.2), "0.30000000000000004");
  assert_string_equal(double_text(a, 5e-323), "5e-323");
  assert_string_equal(double_text(a, ldexp(1, -44)), "5.684341886080802e-14");
  assert_string_equal(float_text(a, 0.1f), "0.1");
  assert_string_equal(float_text(a, 1e-3f), "0.001");
  assert_string_equal(float_text(a, 16777216.0f), "16777216.0");
  assert_string_equal(float_text(a, FLT_MAX), "3.4028235e+38");
  assert_string_equal(float_text(a, 1e-45f), "1e-45");
  const char *text = "1.5e3,x", *end;
  assert_float_equal(str_to_double(text, &end), 1500, 0);
  assert_ptr_equal(end, text + 5);
}

static void numbers(void **state) { check_numbers(*state); }

static void numbers_in_comma_locale(void **state) {
  const char *names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8"};
  const char *have = NULL;
  for (size_t i = 0; i < 4 && !have; i++) have = setlocale(LC_ALL, names[i]);
  if (!have) skip();
  check_numbers(*state);
  setlocale(LC_ALL, "C");
}

static void numbers_round_trip(void **state) {
  struct arena *a = *state;
  uint64_t bits = 1;
  for (int i = 0; i < 20000; i++) {
    bits = bits * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    double d;
    memcpy(&d, &bits, sizeof d);
    if (i % 3 == 0) d = ldexp(1, i / 3 % 2098 - 1074); /* powers of two have uneven neighbours */
    float f;
    memcpy(&f, (char *)&bits + 4, sizeof f);
    const char *end;
    if (!isnan(d)) {
      const char *text = double_text(a, d);
      assert_true(str_to_double(text, &end) == d && *end == 0);
    }
    if (!isnan(f)) assert_true(strtof(float_text(a, f), NULL) == f);
    arena_reset(a);
  }
}

static void number_reading(void **state) {
  (void)state;
  const char *end, *text = "0x1.8p1]";
  assert_true(str_to_double(text, &end) == 3 && *end == ']');
  text = "-inf";
  assert_true(str_to_double(text, &end) == -INFINITY && !*end);
  text = "nan";
  assert_true(isnan(str_to_double(text, &end)) && !*end);
  text = " 1";
  str_to_double(text, &end);
  assert_ptr_equal(end, text);
  text = "x";
  str_to_double(text, &end);
  assert_ptr_equal(end, text);
}

static void distance(void **state) {
  (void)state;
  assert_int_equal(str_distance("", "abc"), 3);
  assert_int_equal(str_distance("kitten", "sitting"), 3);
  assert_int_equal(str_distance("relu", "rleu"), 1);
  assert_int_equal(str_distance("same", "same"), 0);
  const char *ops[] = {"relu", "selu", "softmax", "matmul", "tanh"};
  assert_string_equal(str_closest("rleu", ops, 5), "relu");
  assert_string_equal(str_closest("sofmax", ops, 5), "softmax");
  assert_string_equal(str_closest("MATMUL", ops, 5), "matmul");
  assert_string_equal(str_closest("nelu", ops, 5), "relu");
  assert_null(str_closest("x", ops, 5));
  assert_null(str_closest("convolution", ops, 5));
  assert_null(str_closest("", ops, 5));
  const char *longer[] = {"random_truncated_normal", "h.dense.kernel", "triplet_losses", "triplet_loss",
                          "lossy"};
  assert_string_equal(str_closest("triplet", longer, 5), "triplet_loss");
  assert_string_equal(str_closest("truncated_normal", longer, 5), "random_truncated_normal");
  assert_string_equal(str_closest("dense", longer, 5), "h.dense.kernel");
  assert_null(str_closest("norm", longer, 5)); /* no part between underscores */
  assert_null(str_closest("h", longer, 5));
}

static void hash(void **state) {
  (void)state;
  assert_int_equal(str_hash(STR_HASH_SEED, "", 0), STR_HASH_SEED);
  assert_int_equal(str_hash(STR_HASH_SEED, "a", 1), UINT64_C(0xaf63dc4c8601ec8c));
  assert_int_equal(str_hash(str_hash(STR_HASH_SEED, "foo", 3), "bar", 3), UINT64_C(0x85944171f73967e8));
  assert_int_equal(str_digest(STR_HASH_SEED, "foobar", 6), str_hash(STR_HASH_SEED, "foobar", 6));
  /* Every byte and the length count, wherever it stands. */
  char text[20] = "", other[20] = "";
  for (size_t len = 0; len < sizeof text; len++) {
    uint64_t whole = str_digest(STR_HASH_SEED, text, len);
    assert_true(whole != str_digest(STR_HASH_SEED, text, len + 1));
    for (size_t i = 0; i < len; i++) {
      other[i] = 1;
      assert_true(str_digest(STR_HASH_SEED, other, len) != whole);
      other[i] = 0;
    }
  }
}

static void map_order(void **state) {
  struct arena *a = *state;
  struct map m = map_make(a);
  assert_null(map_get(&m, "x"));
  int values[1000];
  for (int i = 0; i < 1000; i++) assert_null(map_put(&m, arena_printf(a, "key%d", i), &values[i]));
  assert_int_equal(m.count, 1000);
  for (int i = 0; i < 1000; i++) {
    assert_ptr_equal(map_get(&m, arena_printf(a, "key%d", i)), &values[i]);
    assert_string_equal(m.entries[i].key, arena_printf(a, "key%d", i));
  }
  assert_ptr_equal(map_put(&m, "key7", &values[0]), &values[7]);
  assert_ptr_equal(map_getn(&m, "key77", 4), &values[0]);
  assert_null(map_getn(&m, "key7\0", 5));
  assert_null(map_getn(&m, "key", 3));
  assert_int_equal(m.count, 1000);
  map_put(&m, "", &values[3]);
  assert_ptr_equal(map_get(&m, ""), &values[3]);
}

/* What is taken uncleared leaves what is cleared behind it clear, before a reset and after. */
static void arena_uncleared(void **state) {
  struct arena *a = *state;
  for (int round = 0; round < 3; round++) {
    for (size_t i = 0; i < 5000; i++) {
      size_t size = i * 61 % 3000;
      unsigned char *room = arena_room(a, size);
      assert_int_equal((uintptr_t)room % 16, 0);
      memset(room, 0xff, size);
      unsigned char *zero = arena_alloc(a, size / 3);
      for (size_t k = 0; k < size / 3; k++) assert_int_equal(zero[k], 0);
      memset(zero, 0xff, size / 3);
    }
    arena_reset(a);
  }
}

/* Kept arenas live as long as their keeper's allocations, and one that keeps others too. */
static void arena_kept(void **state) {
  struct arena *a = *state;
  for (int round = 0; round < 3; round++) {
    struct arena *first = arena_create(), *second = arena_create(), *inner = arena_create();
    const char *text = arena_strdup(inner, "kept");
    arena_keep(first, inner);
    arena_keep(a, first);
    arena_keep(a, second);
    arena_alloc(a, 1000);
    assert_string_equal(text, "kept");
    if (round < 2) arena_reset(a); /* the last ones die with it; leaks are the sanitizers' to find */
  }
}

/* format_text beside vsnprintf, in buffers of all sizes up to more than the text has. */
__attribute__((format(printf, 1, 2))) static void check_format(const char *fmt, ...) {
  char want[400], got[400];
  for (size_t size = 0; size <= 60; size++) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    memset(want, 'x', sizeof want);
    memset(got, 'x', sizeof got);
    int len = vsnprintf(want, size, fmt, ap);
    assert_int_equal(format_text(got, size, fmt, again), len);
    va_end(again);
    va_end(ap);
    if (size) assert_string_equal(got, want);
    for (size_t i = size; i < sizeof got; i++) assert_int_equal(got[i], 'x');
  }
}

static volatile int int_min = INT_MIN; /* compilers refuse it as a width */

/* The C library takes three seconds for blanks that there is no room for, and then has no int for their number. */
__attribute__((format(printf, 1, 2))) static void check_wide(const char *fmt, ...) {
  char got[] = "before";
  va_list ap;
  va_start(ap, fmt);
  assert_int_equal(format_text(got, sizeof got, fmt, ap), (size_t)1 << 31);
  assert_string_equal(got, "3     ");
  va_end(ap);
}

static void formats_of_words(void **state) {
  (void)state;
  static const int widths[] = {0, 1, 5, 16, 17, 40, -1, -5, -16, -40};
  check_format("nothing");
  check_format("100%% of %s%%", "it");
  check_format("%s.%s", "", "a longer word than there is room for in most of these");
  check_format("%c%5c%-5c|", 'a', 'b', '\'');
  check_format("%5s|%-5s|%2s|%-2s|", "abc", "abc", "abc", "abc");
  check_format("%.2s|%5.1s|%.0s|%.9s", "abc", "abc", "abc", "abc");
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    check_format("%*s|%-*s|", widths[i], "abc", widths[i], "abc");
    check_format("%.*s|%*.*s|", widths[i], "abcdef", widths[i], widths[i], "abcdef");
    check_format("%*d|%-*d|%*zu", widths[i], -12, widths[i], 12, widths[i], (size_t)7);
  }
  check_format("%.*s", 3, (char[]){'a', 'b', 'c'}); /* no NUL is looked for behind them */
}

static void formats_of_numbers(void **state) {
  (void)state;
  static const long long values[] = {0,   1,       -1,      9,        10,        -10,      99,
                                     100, INT_MAX, INT_MIN, UINT_MAX, LLONG_MAX, LLONG_MIN};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    long long v = values[i];
    check_format("%d %u|%5d|%-5d|%5u", (int)v, (unsigned)v, (int)v, (int)v, (unsigned)v);
    check_format("%ld %lu %lld %llu", (long)v, (unsigned long)v, v, (unsigned long long)v);
    check_format("%zd %zu|%25lld|%-25lld|", (ssize_t)v, (size_t)v, v, v);
    check_format("%s %05d|%+d|% d|%.3d|%x|%08x", "handed on", (int)v, (int)v, (int)v, (int)v, (unsigned)v,
                 (unsigned)v);
    check_format("%hd %hhu %lx %i %.*d", (short)v, (unsigned char)v, (unsigned long)v, (int)v, 4, (int)v);
    char digits[FORMAT_DIGITS], want[32];
    size_t len = format_int(digits, v);
    assert_int_equal(len, snprintf(want, sizeof want, "%lld", v));
    assert_memory_equal(digits, want, len);
  }
  check_format("%d %.3f %g", 7, 0.5, 1e100);
  check_format("%1200d", 3);
  check_wide("%*d", int_min, 3);
}

static void map_room(void **state) {
  struct arena *a = *state;
  struct map m = map_make(a);
  static int values[5000];
  map_put(&m, "before", values);
  map_reserve(&m, 3000);
  uint32_t nslots = m.nslots;
  assert_true(m.cap >= 3000);
  map_reserve(&m, 10);
  assert_int_equal(m.nslots, nslots);
  assert_ptr_equal(map_get(&m, "before"), values);
  for (int i = 1; i < 5000; i++) {
    if (i == 2999) assert_int_equal(m.nslots, nslots);
    const char *key = arena_printf(a, i % 2 ? "%d" : "a longer key, %d", i);
    size_t len = strlen(key);
    assert_null(map_get_hashed(&m, key, len, map_hash(key, len)));
    map_put_hashed(&m, key, len, map_hash(key, len), values + i);
  }
  assert_int_equal(m.count, 5000);
  for (int i = 1; i < 5000; i++) {
    const char *key = arena_printf(a, i % 2 ? "%d" : "a longer key, %d", i);
    assert_ptr_equal(map_get(&m, key), values + i);
    assert_ptr_equal(map_getn(&m, key, strlen(key)), values + i);
  }
  struct map empty = map_make(a);
  assert_null(map_get_hashed(&empty, "x", 1, map_hash("x", 1)));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(arena_alignment),
      TEST(arena_large),
      TEST(arena_text),
      TEST(arena_uncleared),
      TEST(arena_kept),
      TEST(formats_of_words),
      TEST(formats_of_numbers),
      TEST(map_room),
      TEST(arena_out_of_memory),
      TEST(str_building),
      TEST(numbers),
      TEST(numbers_in_comma_locale),
      TEST(numbers_round_trip),
      TEST(number_reading),
      TEST(distance),
      TEST(hash),
      TEST(map_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
