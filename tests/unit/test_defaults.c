/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults of what is built into the language stand where its parameters are, for messages, and in the code: a call
 * that gives one as it is written is the call without it, and one that gives another value is not. */
#include "frontend/frontend.h"
#include "frontend/resolve.h"
#include "ir/graph/graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* How to call what has parameters that may be left out, and another value for each of these. */
static const struct {
  const char *name, *args, *others[MAX_GIVEN];
} calls[] = {
    {"sum", "x", {"1", "true"}},
    {"mean", "x", {"1", "true"}},
    {"prod", "x", {"1", "true"}},
    {"any", "x > 0", {"1", "true"}},
    {"all", "x > 0", {"1", "true"}},
    {"max", "x", {"1", "true"}},
    {"min", "x", {"1", "true"}},
    {"moments", "x", {"1"}},
    {"transpose", "x", {"[1, 0, 2, 3]"}},
    {"pad", "x, [1, 1, 1, 1], [1, 1, 1, 1]", {"2"}},
    {"iota", "i32[2, 3]", {"1"}},
    {"matmul", "w, w", {"bf16"}},
    {"random_uniform", "f32[2]", {"-1", "2"}},
    {"random_normal", "f32[2]", {"1", "2"}},
    {"conv", "image, kernel", {"2", "\"same\"", "2", "2", "2", "bf16"}},
    {"transposed_conv", "image, kernel, [9, 9]", {"2", "\"same\"", "2", "2", "bf16"}},
    {"window_sum", "pixels, [2, 2]", {"2", "\"same\"", "2"}},
    {"window_max", "pixels, [2, 2]", {"2", "\"same\"", "2"}},
    {"dot_product_attention", "x, x, x", {"true", "allowed", "0.25", "bf16"}},
};
enum { NCALLS = sizeof calls / sizeof *calls };

/* What they are called with; and a call of "NAME" with "ARGUMENTS" and "MORE", whose "RESULT" is looked at as `y`. */
#define MODEL                                   \
  "model m {\n"                                 \
  " input rows : f32[B, 1]\n"                   \
  " var x : f32[2, 3, 4, 4] = zeros()\n"        \
  " state allowed : bool[1, 1, 3, 3] = false\n" \
  " var pixels : f32[2, 8, 8, 4] = zeros()\n"   \
  " var image : f32[2, 8, 8, 4] = zeros()\n"    \
  " var w : f32[4, 4] = zeros()\n"              \
  " var kernel : f32[2, 2, 4, 4] = zeros()\n"   \
  " %s = %s(%s%s)\n"                            \
  " predict p = rows * sum(cast(y, f32))\n"     \
  "}\n"

/* The graph of the call, as text; NULL: it is an error, which `why` says. */
static const char *graph_of(struct arena *a, const char *name, const char *args, const char *more,
                            const char **why) {
  const char *result = strcmp(name, "moments") == 0 ? "y, z" : "y";
  const char *text = arena_printf(a, MODEL, result, name, args, more);
  struct diags d;
  struct str s = str_make(a);
  diags_init(&d, a);
  struct model *m = frontend_compile(a, source_make(a, "test.dsl", text, strlen(text)), NULL, &d);
  *why = diags_text(&d, false);
  if (!m) return NULL;
  graph_print(&s, m->predict);
  return s.data;
}

static int find_call(const char *name) {
  for (int i = 0; i < NCALLS; i++)
    if (strcmp(calls[i].name, name) == 0) return i;
  return -1;
}

static void check(struct arena *a, const struct builtin *b, int *seen) {
  const char *why;
  int others = 0, row = find_call(b->name);
  for (int i = b->required; i < MAX_GIVEN && b->params[i]; i++) {
    const char *param = b->params[i], *equals = strstr(param, " = ");
    assert_non_null(equals); /* what may be left out says what it is then */
    if (strcmp(equals, " = ...") == 0) continue;
    if (row < 0) fail_msg("%s: `%s` has a default, and `calls` no row of it", b->name, param);
    const char *without = graph_of(a, b->name, calls[row].args, "", &why);
    if (!without) fail_msg("%s", why);
    const char *with = graph_of(a, b->name, calls[row].args, arena_printf(a, ", %s", param), &why);
    if (!with) fail_msg("%s", why);
    if (strcmp(with, without) != 0)
      fail_msg("%s with `%s` is not %s:\n%s\n%s", b->name, param, b->name, with, without);
    const char *other = calls[row].others[others++];
    if (!other) fail_msg("%s: no other value of `%s`", b->name, param);
    const char *given = arena_printf(a, ", %.*s = %s", (int)(equals - param), param, other);
    const char *changed = graph_of(a, b->name, calls[row].args, given, &why);
    if (!changed && !strstr(why, "conv of "))
      fail_msg("%s", why); /* or sizes no longer fit: it is looked at, too */
    if (changed && strcmp(changed, without) == 0) fail_msg("%s: `%s` changes nothing", b->name, given + 2);
  }
  *seen += others > 0;
}

static void are_what_is_computed(void **state) {
  (void)state;
  int seen = 0;
  for (int t = 0; builtin_tables[t]; t++)
    for (const struct builtin *b = builtin_tables[t]; b->name; b++) {
      struct arena *a = arena_create();
      check(a, b, &seen);
      arena_destroy(a);
    }
  assert_int_equal(seen, NCALLS);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(are_what_is_computed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
