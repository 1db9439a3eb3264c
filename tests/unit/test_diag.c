/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnostics: their text, what they show of a source, and sources themselves. */
#include "base/arena.h"
#include "base/diag.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static int setup(void **state) {
  *state = arena_create();
  return 0;
}

static int teardown(void **state) {
  arena_destroy(*state);
  return 0;
}

static struct loc at(const struct source *s, const char *word) {
  const char *p = memmem(s->text, s->len, word, strlen(word));
  assert_non_null(p);
  uint32_t begin = (uint32_t)(p - s->text);
  return (struct loc){s, begin, begin + (uint32_t)strlen(word)};
}

static void diag_shape(void **state) {
  struct diags d;
  diags_init(&d, *state);
  struct source *s = source_make(*state, "m.dsl", "use nn\n\n  y = h @ kernel\r\n", 26);
  diag_error(&d, at(s, "h @ kernel"), "no %s", "match");
  diag_note(&d, at(s, "use"), "from here");
  diag_help(&d, LOC_NONE, "try again");
  assert_string_equal(diags_text(&d, false), "m.dsl:3:7: error: no match\n"
                                             "  3 |   y = h @ kernel\n"
                                             "    |       ^~~~~~~~~~\n"
                                             "m.dsl:1:1: note: from here\n"
                                             "  1 | use nn\n"
                                             "    | ^~~\n"
                                             "help: try again\n");
  assert_non_null(strstr(diags_text(&d, true), "\033[1;31merror:\033[0m"));
}

static void diag_odd_text(void **state) {
  struct diags d;
  diags_init(&d, *state);
  struct source *s = source_make(*state, "t", "\tx\0y\xff é漢z w\nnext", 19);
  diag_error(&d, at(s, "y"), "tab and NUL");
  diag_error(&d, at(s, "z"), "wide \x1b[31m");
  diag_error(&d, (struct loc){s, 13, 19}, "two lines");
  diag_error(&d, (struct loc){s, 19, 19}, "end");
  diag_error(&d, (struct loc){s, 99, 120}, "past");
  assert_string_equal(diags_text(&d, false), "t:1:4: error: tab and NUL\n"
                                             "  1 |     x.y. é漢z w\n"
                                             "    |       ^\n"
                                             "t:1:12: error: wide .[31m\n"
                                             "  1 |     x.y. é漢z w\n"
                                             "    |             ^\n"
                                             "t:1:14: error: two lines\n"
                                             "  1 |     x.y. é漢z w\n"
                                             "    |               ^\n"
                                             "t:2:5: error: end\n"
                                             "  2 | next\n"
                                             "    |     ^\n"
                                             "t:2:5: error: past\n"
                                             "  2 | next\n"
                                             "    |     ^\n");
}

/* The processor time of as many copies, in clock()'s units: what a limit is a multiple of, as machines, and emulators
 * even more, are not equally fast. */
static double time_of_copies(const char *text, int n) {
  struct arena *a = arena_create();
  clock_t start = clock();
  for (int i = 0; i < n; i++) arena_printf(a, "a copy of '%s'", text);
  clock_t end = clock();
  arena_destroy(a);
  return (double)(end - start);
}

/* A line's length is not paid for each error in it: in some of five tries, as other work is done here, too. */
static void diag_long_line(void **state) {
  struct arena *a = *state;
  size_t len = 8 << 20;
  char *text = malloc(len + 1);
  memset(text, 'a', len);
  text[len] = 0;
  text[len / 2] = ' ';
  struct source *s = source_make(a, "long", text, len);
  bool fast = false;
  for (int try = 0; try < 5 && !fast; try++) {
    struct diags d;
    diags_init(&d, a);
    double copies = time_of_copies(text + len / 2, 20);
    clock_t start = clock();
    for (int i = 0; i < 20; i++)
      diag_error(&d, (struct loc){s, 4194305, 8388608}, "unknown name '%s'", text + len / 2 + 1);
    const char *shown = diags_text(&d, false);
    fast = (double)(clock() - start) < 3 * copies;
    assert_true(strlen(shown) < 20 * 1200);
    assert_non_null(strstr(shown, "  1 | ...aaaa"));
    assert_non_null(strstr(shown, "aaa...\n"));
  }
  assert_true(fast);
  free(text);
}

/* On a screen each line is a row, wherever the caret is, which stands below its letter. */
static void diag_on_screens(void **state) {
  struct arena *a = *state;
  enum { LONG = 300 };
  char text[LONG + 1];
  for (int i = 0; i < LONG; i++) text[i] = (char)('a' + i % 26);
  text[LONG] = 0;
  struct source *s = source_make(a, "s", text, LONG);
  for (int screen = 0; screen <= 400; screen += screen == 0 ? 29 : screen == 29 ? 11 : 40)
    for (uint32_t at = 0; at < LONG; at++) {
      struct diags d;
      diags_init(&d, a);
      diag_error(&d, (struct loc){s, at, at + 5}, "here");
      const char *line = strchr(diags_text_on(&d, false, screen), '\n') + 1, *end = strchr(line, '\n');
      const char *caret = strchr(end, '^');
      size_t widest = screen ? (size_t)screen : 6 + 3 + 100 + 3;
      assert_true((size_t)(end - line) <= widest && strlen(end + 1) - 1 <= widest);
      assert_int_equal(line[caret - end - 1], text[at]);
      if (screen) continue;
      assert_string_equal(diags_text(&d, false), diags_text_on(&d, false, 0));
    }
}

static void diag_limit(void **state) {
  struct diags d;
  diags_init(&d, *state);
  d.max_errors = 2;
  for (int i = 0; i < 5; i++) {
    diag_error(&d, LOC_NONE, "e%d", i);
    diag_note(&d, LOC_NONE, "n%d", i);
  }
  diag_warning(&d, LOC_NONE, "w");
  assert_int_equal(d.nerrors, 5);
  assert_string_equal(diags_text(&d, false), "error: e0\nnote: n0\nerror: e1\nnote: n1\nwarning: w\n"
                                             "3 more errors are not shown\n");
}

static void positions(void **state) {
  struct source *s = source_make(*state, "p", "ab\n\ncd", 6);
  struct source unindexed = {.name = "p", .text = s->text, .len = s->len};
  static const int expected[][2] = {{1, 1}, {1, 2}, {1, 3}, {2, 1}, {3, 1}, {3, 2}, {3, 3}, {3, 3}};
  for (uint32_t i = 0; i < 8; i++) {
    int line, column;
    source_position(s, i, &line, &column);
    assert_int_equal(line, expected[i][0]);
    assert_int_equal(column, expected[i][1]);
    source_position(&unindexed, i, &line, &column);
    assert_int_equal(line, expected[i][0]);
    assert_int_equal(column, expected[i][1]);
  }
  struct loc joined = loc_join((struct loc){s, 1, 2}, (struct loc){s, 4, 6});
  assert_int_equal(joined.begin, 1);
  assert_int_equal(joined.end, 6);
}

static void reading(void **state) {
  struct arena *a = *state;
  struct diags d;
  diags_init(&d, a);
  assert_null(source_read(a, "/nonexistent/file", 100, &d));
  assert_null(source_read(a, "/", 100, &d));
  assert_true(scratch_make());
  const char *path = arena_printf(a, "%s/text", scratch_path);
  FILE *file = fopen(path, "w");
  assert_true(file && fwrite("line\nx\0y", 1, 8, file) == 8 && fclose(file) == 0);
  struct source *s = source_read(a, path, 8, &d);
  assert_non_null(s);
  assert_int_equal(s->len, 8);
  assert_memory_equal(s->text, "line\nx\0y", 9);
  assert_null(source_read(a, path, 7, &d));
  unlink(path);
  assert_int_equal(d.nerrors, 3);
  s = source_read(a, "/proc/self/status", 1 << 20, &d); /* its size is not known beforehand */
  assert_non_null(s);
  assert_true(s->len > 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(diag_shape), TEST(diag_odd_text), TEST(diag_long_line), TEST(diag_on_screens),
      TEST(diag_limit), TEST(positions),     TEST(reading),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
