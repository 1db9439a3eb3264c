/* SPDX-License-Identifier: Apache-2.0 */
/* What rows of the option table must say together. */
#include "session/option_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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

/* Sets the option to the index-th of some values that it may have; false: there are no more. */
static bool set_good(struct dgc_session *s, const struct option_row *r, int index) {
  static const char *const values[] = {"true", "0:3",       "a=1",    "cpu:0", "worker=2",       "worker:0",
                                       "a",    "1GB/s,1us", "free:2", "2s",    "1GFLOP/s,1GB/s", "1..4",
                                       "1",    "100",       "1e",     NULL};
  char word[64];
  if (r->words) {
    snprintf(word, sizeof word, "%.*s", (int)strcspn(r->words, " "), r->words);
    return index == 0 && dgc_set(s, r->name, word) == DGC_OK;
  }
  for (const char *const *v = values; *v; v++)
    if (dgc_set(s, r->name, *v) == DGC_OK && index-- == 0) return true;
  return false;
}

static void refuse_all(struct dgc_session *s, const struct option_row *r) {
  static const char *const values[] = {"", "?", "-1", "free:x", "xs", "99999999999999999999", "1.5"};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    struct options before = s->options;
    if (dgc_set(s, r->name, values[i]) == DGC_OK) continue;
    if (memcmp(&before, &s->options, sizeof before) != 0)
      fail_msg("%s: '%s' was refused, and has changed something", r->name, values[i]);
  }
}

/* What is refused leaves what there was, and what is taken back is as if it had never been given. */
static void values_go_again(void **state) {
  (void)state;
  int seen = 0;
  for (int i = 0; i < option_count; i++) {
    const struct option_row *r = &option_table[i];
    struct dgc_session *s = dgc_create();
    const struct options fresh = s->options;
    refuse_all(s, r);
    s->options = fresh;
    for (int k = 0; k < 3 && set_good(s, r, k); k++) {
      seen++;
      if (memcmp(&fresh, &s->options, sizeof fresh) == 0 && r->max != 1 && strcmp(r->name, "columns") != 0 &&
          r->min)
        fail_msg("%s: nothing is set", r->name);
      refuse_all(s, r);
      assert_int_equal(dgc_unset(s, r->name), DGC_OK);
      if (memcmp(&fresh, &s->options, sizeof fresh) != 0) fail_msg("%s: something stays", r->name);
    }
    dgc_destroy(s);
  }
  assert_true(seen > option_count);
  static const char model[] = "model m {\n input x : f32[B]\n predict y = x\n}\n";
  struct dgc_session *s = dgc_create();
  assert_int_equal(dgc_unset(s, "batch-size"), DGC_USAGE);
  assert_non_null(strstr(dgc_message(s), "it is 'batch' here"));
  assert_int_equal(dgc_load_text(s, "m", model, strlen(model)), DGC_OK);
  assert_int_equal(dgc_unset(s, "seed"), DGC_USAGE);
  assert_non_null(strstr(dgc_message(s), "seed must be set before the model is loaded"));
  dgc_destroy(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(graphs_are_made_anew), cmocka_unit_test(rows_are_whole),
                                     cmocka_unit_test(values_go_again)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
