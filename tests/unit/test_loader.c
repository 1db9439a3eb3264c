/* The loader: order, parts, partial batches, going on in the middle, errors from its thread. */
#include "runtime/data/data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct world {
  struct arena *arena;
  struct diags diags;
  char path[64];
};

static int setup(void **state) {
  struct world *w = calloc(1, sizeof *w);
  w->arena = arena_create();
  diags_init(&w->diags, w->arena);
  strcpy(w->path, "/tmp/dgc_test_loader_XXXXXX.csv");
  int fd = mkstemps(w->path, 4);
  if (fd < 0) return -1;
  close(fd);
  *state = w;
  return 0;
}

static int teardown(void **state) {
  struct world *w = *state;
  unlink(w->path);
  arena_destroy(w->arena);
  free(w);
  return 0;
}

/* A dataset of `rows` lines "i,1000+i", as two columns: i as i32[], both as i64[2]. */
static struct dataset *numbers(struct world *w, int rows) {
  FILE *f = fopen(w->path, "w");
  assert_non_null(f);
  for (int i = 0; i < rows; i++) fprintf(f, "%d,%d\n", i, 1000 + i);
  fclose(f);
  struct data_spec specs[] = {{.name = "one", .path = arena_printf(w->arena, "%s:1", w->path)},
                              {.name = "both", .path = w->path}};
  struct dataset *ds = dataset_open(w->arena, NULL, specs, 2, NULL, &w->diags);
  assert_non_null(ds);
  int64_t two = 2;
  struct type both = type_make(DT_I64, 1, &two);
  assert_true(dataset_expect(ds, "both", &both, &w->diags));
  return ds;
}

/* The batches as text: "0:0[0 1 2] 0:1[3]". */
static const char *run(struct world *w, const struct dataset *ds, struct loader_options o, int limit) {
  struct str s = str_make(w->arena);
  struct loader *l = loader_create(w->arena, ds, &o, &w->diags);
  if (!l) return "none";
  const struct batch *b;
  enum loader_status status = LOADER_BATCH;
  for (int n = 0; n < limit && (status = loader_next(l, &b, &w->diags)) == LOADER_BATCH; n++) {
    str_printf(&s, "%s%lld:%lld[", n ? " " : "", (long long)b->epoch, (long long)b->index);
    const int32_t *one = b->columns[0].data;
    const int64_t *both = b->columns[1].data;
    assert_int_equal(b->columns[0].type.dim[0], b->rows);
    assert_int_equal((uintptr_t)one % 64, 0);
    assert_int_equal((uintptr_t)both % 64, 0);
    for (int64_t i = 0; i < b->rows; i++) {
      str_printf(&s, "%s%d", i ? " " : "", one[i]);
      assert_int_equal(both[2 * i], one[i]);
      assert_int_equal(both[2 * i + 1], 1000 + one[i]);
    }
    str_put(&s, b->last ? "]." : "]");
    loader_release(l, b);
  }
  if (status == LOADER_END) {
    assert_int_equal(loader_next(l, &b, &w->diags), LOADER_END);
    assert_null(b);
  }
  loader_destroy(l);
  return s.data;
}

static void batches(void **state) {
  struct world *w = *state;
  struct dataset *ds = numbers(w, 7);
  assert_string_equal(run(w, ds, (struct loader_options){.batch = 3, .epochs = 2}, 100),
                      "0:0[0 1 2] 0:1[3 4 5] 0:2[6]. 1:0[0 1 2] 1:1[3 4 5] 1:2[6].");
  assert_string_equal(run(w, ds, (struct loader_options){.batch = 100, .epochs = 1}, 100),
                      "0:0[0 1 2 3 4 5 6].");
  assert_string_equal(run(w, ds, (struct loader_options){.batch = 7, .ring = 1}, 3),
                      "0:0[0 1 2 3 4 5 6]. 1:0[0 1 2 3 4 5 6]. 2:0[0 1 2 3 4 5 6].");
  assert_string_equal(run(w, ds, (struct loader_options){.batch = 3, .epochs = 1, .epoch = 1}, 100), "");
  assert_string_equal(run(w, ds, (struct loader_options){.batch = 0}, 100), "none");
  assert_string_equal(run(w, ds, (struct loader_options){.batch = 3, .index = 4}, 100), "none");
  assert_int_equal(w->diags.nerrors, 2);
  dataset_close(ds);
}

/* Starting at any batch gives what a whole run gives from there. */
static void resumes(void **state) {
  struct world *w = *state;
  struct dataset *ds = numbers(w, 50);
  struct loader_options o = {.batch = 8, .shuffle = true, .seed = 9, .epochs = 3};
  const char *whole = run(w, ds, o, 1000);
  for (o.epoch = 0; o.epoch < 3; o.epoch++) {
    for (o.index = 0; o.index <= 7; o.index++) {
      const char *rest = run(w, ds, o, 1000);
      assert_true(strlen(rest) <= strlen(whole));
      assert_string_equal(whole + strlen(whole) - strlen(rest), rest);
    }
  }
  dataset_close(ds);
}

static void orders(void **state) {
  (void)state;
  for (int64_t rows = 1; rows < 200; rows += rows < 20 ? 1 : 37) {
    for (int epoch = 0; epoch < 5; epoch++) {
      bool seen[200] = {false};
      for (int64_t i = 0; i < rows; i++) {
        int64_t row = data_order(3, epoch, rows, i);
        assert_in_range(row, 0, rows - 1);
        assert_false(seen[row]);
        seen[row] = true;
      }
    }
  }
  /* The order is part of what a seed means: it must never change. */
  const int64_t expected[] = {4, 1, 3, 9, 7, 2, 0, 5, 8, 6};
  for (int64_t i = 0; i < 10; i++) assert_int_equal(data_order(1, 0, 10, i), expected[i]);
  /* All places are equally likely, within five standard deviations; also of pairs. */
  int count[6][6] = {{0}}, pairs[6][6] = {{0}};
  for (uint64_t seed = 0; seed < 3000; seed++) {
    for (int epoch = 0; epoch < 2; epoch++) {
      for (int i = 0; i < 6; i++) count[i][data_order(seed, epoch, 6, i)]++;
      pairs[data_order(seed, epoch, 6, 0)][data_order(seed, epoch, 6, 1)]++;
    }
  }
  for (int i = 0; i < 6; i++) {
    for (int k = 0; k < 6; k++) {
      assert_in_range(count[i][k], 1000 - 145, 1000 + 145);
      if (i != k) assert_in_range(pairs[i][k], 200 - 70, 200 + 70);
    }
  }
}

static void parts(void **state) {
  struct world *w = *state;
  const struct {
    int64_t batch, total;
    int parts;
    const char *sizes;
  } cases[] = {{4, 4, 2, "2 2 "}, {4, 1, 2, "1 0 "},   {4, 4, 5, "1 1 1 1 0 "}, {4, 4, 3, "2 1 1 "},
               {8, 6, 2, "4 2 "}, {4, 3, 3, "2 1 0 "}, {7, 7, 1, "7 "},         {9, 2, 4, "2 0 0 0 "}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct str s = str_make(w->arena);
    int64_t next = 0;
    for (int k = 0; k < cases[i].parts; k++) {
      int64_t begin, rows;
      batch_part(cases[i].batch, cases[i].total, cases[i].parts, k, &begin, &rows);
      assert_int_equal(begin, next);
      next += rows;
      str_printf(&s, "%d ", (int)rows);
    }
    assert_int_equal(next, cases[i].total);
    assert_string_equal(s.data, cases[i].sizes);
  }
  struct dataset *ds = numbers(w, 5);
  struct loader_options o = {.batch = 4, .epochs = 1, .parts = 2};
  assert_string_equal(run(w, ds, o, 9), "0:0[0 1] 0:1[4].");
  o.part = 1;
  assert_string_equal(run(w, ds, o, 9), "0:0[2 3] 0:1[].");
  o.parts = 5, o.part = 4;
  assert_string_equal(run(w, ds, o, 9), "0:0[] 0:1[].");
  dataset_close(ds);
}

/* Several batches are held and given back in another order, while the thread goes on. */
static void held(void **state) {
  struct world *w = *state;
  struct dataset *ds = numbers(w, 1000);
  struct loader_options o = {.batch = 3, .shuffle = true, .seed = 4, .ring = 5};
  struct loader *l = loader_create(w->arena, ds, &o, &w->diags);
  size_t used = arena_used(w->arena);
  for (int64_t n = 0; n < 2000; n += 4) {
    const struct batch *b[4];
    for (int i = 0; i < 4; i++) {
      assert_int_equal(loader_next(l, &b[i], &w->diags), LOADER_BATCH);
      assert_int_equal(b[i]->epoch * loader_batches_per_epoch(l) + b[i]->index, n + i);
    }
    for (int i = 0; i < 4; i++) {
      const struct batch *have = b[(i * 3 + n) % 4];
      const int32_t *one = have->columns[0].data;
      for (int64_t k = 0; k < have->rows; k++)
        assert_int_equal(one[k], data_order(4, have->epoch, 1000, have->position + k));
    }
    for (int i = 0; i < 4; i++) loader_release(l, b[(i * 3 + n) % 4]);
  }
  assert_int_equal(arena_used(w->arena), used);
  loader_destroy(l);
  dataset_close(ds);
}

/* Loaders that end before, while and after their thread waits. */
static void stopped(void **state) {
  struct world *w = *state;
  struct dataset *ds = numbers(w, 20);
  for (int i = 0; i < 200; i++) {
    struct loader_options o = {.batch = 1 + i % 7, .shuffle = i % 2, .ring = 1 + i % 3};
    struct loader *l = loader_create(w->arena, ds, &o, &w->diags);
    const struct batch *b;
    for (int n = 0; n < i % 4; n++) {
      assert_int_equal(loader_next(l, &b, &w->diags), LOADER_BATCH);
      loader_release(l, b);
    }
    if (i % 5 == 0) usleep(200);
    loader_destroy(l);
  }
  loader_destroy(NULL);
  dataset_close(ds);
}

static void errors(void **state) {
  struct world *w = *state;
  struct dataset *ds = numbers(w, 300);
  struct type narrow = type_scalar(DT_U8);
  assert_true(dataset_expect(ds, "one", &narrow, &w->diags));
  struct loader_options o = {.batch = 100, .epochs = 1};
  struct loader *l = loader_create(w->arena, ds, &o, &w->diags);
  const struct batch *b;
  for (int i = 0; i < 2; i++) {
    assert_int_equal(loader_next(l, &b, &w->diags), LOADER_BATCH);
    assert_int_equal(((uint8_t *)b->columns[0].data)[3], 100 * i + 3);
    loader_release(l, b);
  }
  assert_int_equal(loader_next(l, &b, &w->diags), LOADER_ERROR);
  assert_int_equal(loader_next(l, &b, &w->diags), LOADER_ERROR);
  assert_int_equal(w->diags.nerrors, 2);
  assert_non_null(strstr(diags_text(&w->diags, false), "256 in row 256"));
  assert_non_null(strstr(diags_text(&w->diags, false), "does not fit into the u8 of input 'one'"));
  loader_destroy(l);
  dataset_close(ds);
}

/* Every pair of types that may be converted. */
static void conversions(void **state) {
  struct world *w = *state;
  struct dataset *ds = numbers(w, 2);
  for (int to = 0; to < DT_COUNT; to++) {
    struct type t = type_scalar((enum dtype)to);
    assert_true(dataset_expect(ds, "one", &t, &w->diags));
    struct loader_options o = {.batch = 2, .epochs = 1};
    struct loader *l = loader_create(w->arena, ds, &o, &w->diags);
    const struct batch *b;
    assert_int_equal(loader_next(l, &b, &w->diags), LOADER_BATCH);
    const void *p = b->columns[0].data;
    double second = to == DT_F32   ? (double)((const float *)p)[1]
                    : to == DT_F64 ? ((const double *)p)[1]
                    : to == DT_I32 ? ((const int32_t *)p)[1]
                    : to == DT_I64 ? (double)((const int64_t *)p)[1]
                                   : ((const uint8_t *)p)[1];
    assert_true(second == 1);
    loader_destroy(l);
  }
  dataset_close(ds);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(batches), TEST(resumes), TEST(orders), TEST(parts),
      TEST(held),    TEST(stopped), TEST(errors), TEST(conversions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
