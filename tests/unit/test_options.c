/* SPDX-License-Identifier: Apache-2.0 */
/* What rows of the option table must say together. */
#include "session/option_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Fields of ir/graph/config.def, by their place in struct options. */
static bool is_of_graphs(size_t offset) {
  static const size_t fields[] = {
#define NUMBER(type, name, most) offsetof(struct options, name),
#define WORD(name)               offsetof(struct options, name),
#define TEXT(name)               offsetof(struct options, name),
#define FLAG(name)               offsetof(struct options, name),
#include "ir/graph/config.def"
  };
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    if (fields[i] == offset) return true;
  return false;
}

/* Graphs are made anew for what they are compiled for; but each call has a batch of its own. */
static void graphs_are_made_anew(void **state) {
  (void)state;
  int count = 0;
  for (int i = 0; i < option_count; i++) {
    const struct option_row *r = &option_table[i];
    if (!is_of_graphs(r->offset)) continue;
    count++;
    if (r->offset == offsetof(struct options, batch))
      assert_int_equal(r->remakes, NOTHING);
    else if (r->remakes == NOTHING)
      fail_msg("%s: graphs of its old value would stay", r->name);
  }
  assert_true(count > 10);
}

/* Words have blanks behind them, for completion and messages; a number has a range, and only a flag takes no value. */
static void rows_are_whole(void **state) {
  (void)state;
  for (int i = 0; i < option_count; i++) {
    const struct option_row *r = &option_table[i];
    if (r->words && (!*r->words || r->words[strlen(r->words) - 1] != ' ')) fail_msg("%s: words", r->name);
    if ((r->value == NULL) != (r->kind == FLAG)) fail_msg("%s: value", r->name);
    bool number = r->kind == INTEGER || r->kind == STEPS_OR_TIME || r->kind == STALENESS;
    if (number != (r->max > 0) || r->min > r->max) fail_msg("%s: range", r->name);
    if (r->check && r->kind != TEXT && r->kind != LIST) fail_msg("%s: it is not checked", r->name);
    if (r->path != PATH_ALONE && r->use == DGC_NO_FILE) fail_msg("%s: path of no file", r->name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(graphs_are_made_anew),
                                     cmocka_unit_test(rows_are_whole)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
