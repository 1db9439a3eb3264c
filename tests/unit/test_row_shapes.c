/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of data are read as rows of which input: what is one axis on one side, and what has the same axes but for
 * those of one element. Of anything else of as many elements, what to write. */
#include "tests/support/npy_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 2, MOST = 784 };
static const uint8_t numbers[ROWS * MOST];

static const struct {
  const char *row, *input;
  const char *error, *help; /* NULL: they are read */
} cases[] = {
    {"3,8,4", "3,8,4", NULL, NULL},
    {"28,28", "784", NULL, NULL},
    {"784", "28,28", NULL, NULL},
    {"784", "28,28,1", NULL, NULL},
    {"1,28,28", "28,28,1", NULL, NULL},
    {"1,6,1", "2,3", NULL, NULL},
    {"", "1,1", NULL, NULL},
    {"1", "", NULL, NULL},
    {"1,5", "5,1", NULL, NULL},
    {"3,8,8", "8,8,3", "is u8[3,8,8], but a row of input 'x' is f32[8,8,3]",
     "channels first? declare `f32[B, 3, 8, 8]`, and write `transpose(x, [0, 2, 3, 1])`"},
    {"1,3,8,4", "8,4,3", "is u8[1,3,8,4]",
     "channels first? declare `f32[B, 3, 8, 4]`, and write `transpose(x, [0, 2, 3, 1])`"},
    {"8,4,3", "3,8,4", "is u8[8,4,3]",
     "axes in another order? declare `f32[B, 8, 4, 3]`, and write `transpose(x, [0, 3, 1, 2])`"},
    {"3,4", "4,3", "is u8[3,4]",
     "axes in another order? declare `f32[B, 3, 4]`, and write `transpose(x, [0, 2, 1])`"},
    {"3,4", "6,2", "is u8[3,4]", "declare `f32[B, 3, 4]`, and write `reshape(x, [B, 6, 2])`"},
    {"4,2,3", "8,3", "is u8[4,2,3]", "declare `f32[B, 4, 2, 3]`, and write `reshape(x, [B, 8, 3])`"},
    {"4", "5", "is u8[4], but a row of input 'x' is f32[5]",
     "help: such rows are `input x : f32[B,4]` in the model"},
    {"2,5", "4", "is u8[2,5], but a row of input 'x' is f32[4]", NULL},
};

static struct type type_of(enum dtype d, const char *dims) {
  struct type t = {.dtype = (uint8_t)d};
  for (char *end; *dims; dims = end + (*end == ',')) t.dim[t.rank++] = strtol(dims, &end, 10);
  return t;
}

static void check(struct world *w, size_t i, bool file) {
  diags_init(&w->diags, w->arena);
  struct type held = type_of(DT_U8, cases[i].row), row = type_of(DT_F32, cases[i].input);
  struct row_source source = {held, ROWS, numbers, NULL, NULL};
  struct data_spec spec = {.name = "x", .path = "rows.npy", .source = file ? NULL : &source};
  if (file) write_npy(w, spec.path, &source);
  struct dataset *ds = dataset_open(w->arena, w->folder, &spec, 1, NULL, &w->diags);
  assert_non_null(ds);
  bool good = dataset_expect(ds, "x", &row, &w->diags);
  const char *said = diags_text(&w->diags, false), *help = cases[i].help ? cases[i].help : "declare";
  if (good != !cases[i].error || (!good && !strstr(said, cases[i].error)) ||
      !strstr(said, help) != !cases[i].help)
    fail_msg("[%s] for [%s]: %s", cases[i].row, cases[i].input, said);
  dataset_close(ds);
}

static void shapes_of_rows(void **state) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int file = 0; file < 2; file++) check(*state, i, file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(shapes_of_rows, open_world, close_world)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
