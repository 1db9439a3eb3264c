/* SPDX-License-Identifier: Apache-2.0 */
/* The loader: order, partial batches, what workers get, going on in the middle, errors from its thread. */
#include "runtime/data/data.h"
#include "tests/support/scratch.h"

#include <float.h>
#include <math.h>
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
  char path[220];
};

static int setup(void **state) {
  struct world *w = calloc(1, sizeof *w);
  w->arena = arena_create();
  diags_init(&w->diags, w->arena);
  *state = w;
  if (!scratch_make()) return -1;
  snprintf(w->path, sizeof w->path, "%s/rows.csv", scratch_path);
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

/* What has been asked of it; `data` is NULL where there is none to be had. */
struct room {
  char *data;
  size_t bytes;
  int asked, freed;
};

static void *room_alloc(void *arg, size_t bytes) {
  struct room *r = arg;
  assert_true(bytes <= r->bytes);
  r->asked++;
  return r->data;
}

static void room_free(void *arg, void *data) {
  struct room *r = arg;
  assert_ptr_equal(data, r->data);
  r->freed++;
}

/* Batches lie in memory that is given for them, where there is any, and they are large. */
static void given_memory(void **state) {
  enum { ROWS = 6000, RING = 2, ROW = sizeof(int32_t) + 2 * sizeof(int64_t) };
  struct world *w = *state;
  struct dataset *ds = numbers(w, ROWS);
  struct room r = {.bytes = RING * (ROWS * ROW + 128)};
  struct loader_options o = {.batch = ROWS, .epochs = 2, .ring = RING, .memory = {room_alloc, room_free, &r}};
  char *data = aligned_alloc(64, r.bytes);
  assert_non_null(data);
  const char *own = run(w, ds, o, 100);
  assert_int_equal(r.asked, 1);
  assert_int_equal(r.freed, 0);
  r.data = data;
  assert_string_equal(run(w, ds, o, 100), own);
  assert_int_equal(r.asked, 2);
  assert_int_equal(r.freed, 1);
  struct loader *l = loader_create(w->arena, ds, &o, &w->diags);
  const struct batch *b;
  assert_int_equal(loader_next(l, &b, &w->diags), LOADER_BATCH);
  for (int i = 0; i < 2; i++) {
    const char *column = b->columns[i].data;
    assert_true(column >= data && column + type_bytes(&b->columns[i].type) <= data + r.bytes);
  }
  loader_release(l, b);
  loader_destroy(l);
  assert_int_equal(r.freed, 2);
  o.batch = 100;
  run(w, ds, o, 100);
  assert_int_equal(r.asked, 3);
  free(data);
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

/* A column of `files` files, of `rows[i]` rows each, numbered through. */
static struct dataset *numbered_files(struct world *w, int files, const int *rows) {
  const char **paths = arena_new_array(w->arena, (size_t)files, const char *);
  for (int i = 0, next = 0; i < files; i++) {
    paths[i] = arena_printf(w->arena, "%s.%d.csv", w->path, i);
    FILE *f = fopen(paths[i], "w");
    assert_non_null(f);
    for (int k = 0; k < rows[i]; k++, next++) fprintf(f, "%d,%d\n", next, 1000 + next);
    fclose(f);
  }
  struct data_spec specs[2] = {{.name = "one"}, {.name = "both"}};
  for (int c = 0; c < 2; c++) {
    const char **own = arena_new_array(w->arena, (size_t)files, const char *);
    for (int i = 0; i < files; i++) own[i] = c ? paths[i] : arena_printf(w->arena, "%s:1", paths[i]);
    specs[c].path = own[0], specs[c].more = own + 1, specs[c].nmore = files - 1;
  }
  struct dataset *ds = dataset_open(w->arena, NULL, specs, 2, NULL, &w->diags);
  assert_non_null(ds);
  int64_t two = 2;
  struct type both = type_make(DT_I64, 1, &two);
  assert_true(dataset_expect(ds, "both", &both, &w->diags));
  for (int i = 0; i < files; i++) unlink(paths[i]); /* they stay mapped */
  return ds;
}

static const char *deal(struct world *w, const struct dataset *ds, enum shard how, int workers,
                        const int64_t *shares) {
  struct loader_options o = {.epochs = 1, .shard = how, .workers = workers, .shares = shares};
  for (int i = 0; i < workers; i++) o.batch += shares[i];
  diags_init(&w->diags, w->arena);
  const char *dealt = run(w, ds, o, 100);
  return strcmp(dealt, "none") == 0 ? diags_text(&w->diags, false) : dealt;
}

#define EACH(...) ((const int64_t[]){__VA_ARGS__})
#define FILES(...) \
  (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]) { __VA_ARGS__ }

/* Four rows over two workers that take one row each: the workers' rows are side by side in a batch. */
static void s4_auto_shard(void **state) {
  struct world *w = *state;
  struct dataset *ds = numbers(w, 4);
  assert_string_equal(deal(w, ds, SHARD_DATA, 2, EACH(1, 1)), "0:0[0 1] 0:1[2 3].");
  assert_string_equal(deal(w, ds, SHARD_AUTO, 2, EACH(1, 1)), "0:0[0 1] 0:1[2 3].");
  assert_string_equal(deal(w, ds, SHARD_OFF, 2, EACH(1, 1)), "0:0[0 0] 0:1[1 1] 0:2[2 2] 0:3[3 3].");
  assert_string_equal(deal(w, ds, SHARD_OFF, 2, EACH(3, 3)), "0:0[0 1 2 0 1 2] 0:1[3 3].");
  const char *error = deal(w, ds, SHARD_FILE, 2, EACH(1, 1));
  assert_non_null(
      strstr(error, "each of 2 workers needs a file of its own, and one has its rows in 1 file\n"));
  assert_non_null(strstr(error, "--auto-shard data"));
  assert_non_null(strstr(deal(w, ds, SHARD_OFF, 3, EACH(2, 1, 1)), "worker 0 has 2 and worker 1 1"));
  for (int how = SHARD_DATA; how <= SHARD_AUTO; how++) { /* one worker: nothing happens, silently */
    assert_string_equal(deal(w, ds, (enum shard)how, 1, EACH(2)), "0:0[0 1] 0:1[2 3].");
    assert_null(w->diags.first);
  }
  dataset_close(ds);
}

/* Files 0 and 2 are the first worker's, file 1 the second's. */
static void s4_auto_shard_of_files(void **state) {
  struct world *w = *state;
  struct dataset *ds = numbered_files(w, FILES(2, 3, 2));
  const char *dealt = "0:0[0 1 2] 0:1[5 6 3] 0:2[4].";
  assert_string_equal(deal(w, ds, SHARD_FILE, 2, EACH(2, 1)), dealt);
  assert_string_equal(deal(w, ds, SHARD_AUTO, 2, EACH(2, 1)), dealt);
  assert_string_equal(deal(w, ds, SHARD_FILE, 3, EACH(1, 1, 1)), "0:0[0 2 5] 0:1[1 3 6] 0:2[4].");
  assert_string_equal(deal(w, ds, SHARD_DATA, 2, EACH(2, 2)), "0:0[0 1 2 3] 0:1[4 5 6].");
  assert_string_equal(deal(w, ds, SHARD_AUTO, 4, EACH(1, 1, 1, 1)), "0:0[0 1 2 3] 0:1[4 5 6].");
  assert_non_null(strstr(deal(w, ds, SHARD_FILE, 4, EACH(1, 1, 1, 1)), "4 workers needs a file of its own, "
                                                                       "and one has its rows in 3 files"));
  assert_string_equal(deal(w, ds, SHARD_AUTO, 3, EACH(1, 1, 0)), "0:0[0 1] 0:1[2 3] 0:2[4 5] 0:3[6].");
  assert_non_null(strstr(deal(w, ds, SHARD_FILE, 3, EACH(1, 1, 0)), "none for worker 2"));
  dataset_close(ds);
}

/* Shuffled, every worker goes through its own rows, and any batch can be the first. */
static void s4_auto_shard_shuffled(void **state) {
  struct world *w = *state;
  struct dataset *ds = numbered_files(w, FILES(5, 20, 7, 1));
  for (int how = SHARD_DATA; how <= SHARD_AUTO; how++) {
    struct loader_options o = {
        .batch = 6, .shuffle = true, .seed = 5, .shard = (enum shard)how, .workers = 2, .shares = EACH(3, 3)};
    struct loader *l = loader_create(w->arena, ds, &o, &w->diags);
    int64_t batches = loader_batches_per_epoch(l);
    int seen[33] = {0};
    for (int64_t n = 0; n < batches; n++) {
      const struct batch *b;
      assert_int_equal(loader_next(l, &b, &w->diags), LOADER_BATCH);
      assert_int_equal(b->last, n + 1 == batches);
      const int32_t *one = b->columns[0].data;
      for (int64_t i = 0; i < b->rows; i++) seen[one[i]]++;
      for (int64_t i = 0; how == SHARD_OFF && i < b->rows / 2; i++)
        assert_int_equal(one[i], one[b->rows / 2 + i]);
      for (int64_t i = 0; how == SHARD_FILE && b->rows == 6 && i < 6; i++)
        assert_int_equal(one[i] < 5 || (one[i] >= 25 && one[i] < 32), i < 3);
      loader_release(l, b);
    }
    loader_destroy(l);
    for (int i = 0; i < 33; i++) assert_int_equal(seen[i], how == SHARD_OFF ? 2 : 1);
    o.epochs = 2;
    const char *whole = run(w, ds, o, 1000);
    for (o.index = 0; o.index <= batches; o.index++) {
      const char *rest = run(w, ds, o, 1000);
      assert_string_equal(whole + strlen(whole) - strlen(rest), rest);
    }
  }
  dataset_close(ds);
}

/* Of each batch only the rows of some towers are read, the same ones that are there of a whole batch; the others are
 * left alone until they are asked for. */
static void own_rows(void **state) {
  struct world *w = *state;
  struct dataset *ds = numbered_files(w, FILES(5, 20, 7, 1));
  enum { TOWERS = 5, LEFT = -7 };
  for (int how = SHARD_DATA; how <= SHARD_AUTO; how++)
    for (int first = 0; first < TOWERS; first++) {
      struct loader_options all = {.batch = 6,
                                   .shuffle = first & 1,
                                   .seed = 5,
                                   .ring = 1,
                                   .shard = (enum shard)how,
                                   .workers = 2,
                                   .shares = EACH(3, 3)},
                            own = all;
      own.towers = TOWERS, own.first_tower = first, own.end_tower = first < 3 ? first + 2 : first;
      struct loader *whole = loader_create(w->arena, ds, &all, &w->diags);
      struct loader *part = loader_create(w->arena, ds, &own, &w->diags);
      for (int64_t n = loader_batches_per_epoch(whole); n-- > 0;) {
        const struct batch *a, *b;
        assert_int_equal(loader_next(whole, &a, &w->diags), LOADER_BATCH);
        assert_int_equal(loader_next(part, &b, &w->diags), LOADER_BATCH);
        const int32_t *x = a->columns[0].data;
        int32_t *y = b->columns[0].data;
        assert_int_equal(a->rows, b->rows);
        for (int64_t i = 0, more = b->rows % TOWERS, each = b->rows / TOWERS; i < b->rows; i++) {
          int64_t tower = i < more * (each + 1) ? i / (each + 1) : more + (i - more * (each + 1)) / each;
          bool is_own = tower >= first && tower < own.end_tower;
          assert_int_equal(i >= b->first && i < b->end, is_own);
          if (is_own) assert_int_equal(x[i], y[i]);
          if (!is_own && n + 1 < loader_batches_per_epoch(whole)) assert_int_equal(y[i], LEFT);
        }
        assert_true(loader_complete(part, b, 0, &w->diags));
        for (int64_t i = 0; i < b->rows; i++) assert_int_equal(x[i], y[i]);
        for (int64_t i = 0; i < all.batch; i++) y[i] = LEFT;
        loader_release(whole, a);
        loader_release(part, b);
      }
      loader_destroy(whole);
      loader_destroy(part);
    }
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
        assert_int_equal(one[k], data_order(4, have->epoch, 1000, 3 * have->index + k));
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
  for (int to = 0; to < DT_BF16; to++) {
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

/* Rows of two f64 from a file, in memory or read as they are wanted, as f32: what is said, or NULL. The column has Inf,
 * and whatever is `odd` in row 5. */
static const char *as_single(struct world *w, const char *odd) {
  FILE *f = fopen(w->path, "w");
  assert_non_null(f);
  for (int i = 0; i < 8; i++) fprintf(f, "%d.5,%s\n", i, i == 5 ? odd : i == 2 ? "-inf" : "3.4028235e38");
  fclose(f);
  diags_init(&w->diags, w->arena);
  struct data_spec spec = {.name = "x", .path = w->path};
  struct dataset *ds = dataset_open(w->arena, NULL, &spec, 1, NULL, &w->diags);
  assert_non_null(ds);
  int64_t two = 2;
  struct type t = type_make(DT_F32, 1, &two);
  assert_true(dataset_expect(ds, "x", &t, &w->diags));
  struct loader_options o = {.batch = 3, .epochs = 1};
  struct loader *l = loader_create(w->arena, ds, &o, &w->diags);
  const struct batch *b;
  assert_int_equal(loader_next(l, &b, &w->diags), LOADER_BATCH);
  const float *x = b->columns[0].data;
  assert_true(x[1] == FLT_MAX && x[5] == -INFINITY && x[2] == 1.5f);
  loader_release(l, b);
  enum loader_status status = loader_next(l, &b, &w->diags);
  loader_destroy(l);
  dataset_close(ds);
  assert_int_equal(status, w->diags.nerrors ? LOADER_ERROR : LOADER_BATCH);
  return w->diags.nerrors ? diags_text(&w->diags, false) : NULL;
}

/* What is finite does not become infinite without a word; what is infinite, or nearest to the largest f32, is taken. */
static void too_large(void **state) {
  struct world *w = *state;
  static const char *const wrong[][2] = {
      {"1e39", "1e+39 in row 5"}, {"-1e300", "-1e+300 in row 5"}, {"3.4028235677973366e38", "in row 5"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const char *said = as_single(w, wrong[i][0]);
    if (!said || !strstr(said, wrong[i][1]) || !strstr(said, "does not fit into the f32 of input 'x'"))
      fail_msg("%s: %s", wrong[i][0], said ? said : "nothing is said");
  }
  assert_null(as_single(w, "inf"));
  assert_null(as_single(w, "nan"));
  assert_null(as_single(w, "-3.4028235677973362e38"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(batches),
      TEST(given_memory),
      TEST(resumes),
      TEST(orders),
      TEST(s4_auto_shard),
      TEST(s4_auto_shard_of_files),
      TEST(s4_auto_shard_shuffled),
      TEST(own_rows),
      TEST(held),
      TEST(stopped),
      TEST(errors),
      TEST(conversions),
      TEST(too_large),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
