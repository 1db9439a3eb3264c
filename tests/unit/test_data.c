/* SPDX-License-Identifier: Apache-2.0 */
/* Readers and datasets: right files, wrong files, damaged files. The files in data/ were written by numpy and by the
 * reference implementation of safetensors. */
#include "tests/support/npy_file.h"

#include <fcntl.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* A new file each time: what is cut to nothing and written again, some file systems write to the disk at once. */
static void write_file(struct world *w, const char *name, const void *bytes, size_t len) {
  const char *path = arena_printf(w->arena, "%s/%s", w->folder, name);
  unlink(path);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, len, f), len);
  fclose(f);
}

/* What was written, to be changed where it is: thousands of new files take longer than what they are for. */
static int open_file(struct world *w, const char *name) {
  int f = open(arena_printf(w->arena, "%s/%s", w->folder, name), O_WRONLY);
  assert_true(f >= 0);
  return f;
}

static struct dataset *open_in(struct world *w, const char *folder, const char *path, const char *rows) {
  struct data_spec spec = {.name = "x", .path = path};
  return dataset_open(w->arena, folder, &spec, 1, rows, &w->diags);
}

/* Type, rows and the first numbers as text; or the error. */
static const char *show_in(struct world *w, const char *folder, const char *path, const char *rows) {
  diags_init(&w->diags, w->arena);
  struct dataset *ds = open_in(w, folder, path, rows);
  if (!ds) return diags_text(&w->diags, false);
  const struct column *c = &ds->columns[0];
  struct str s = str_make(w->arena);
  str_printf(&s, "%lld x ", (long long)ds->rows);
  type_print(&s, &c->row);
  str_putc(&s, ':');
  struct loader_options o = {.batch = 8, .epochs = 1};
  struct type wide = type_with_dtype(c->row, dtype_is_float(c->row.dtype) ? DT_F64 : DT_I64);
  assert_true(dataset_expect(ds, "x", &wide, &w->diags));
  struct loader *l = loader_create(w->arena, ds, &o, &w->diags);
  const struct batch *b;
  assert_int_equal(loader_next(l, &b, &w->diags), LOADER_BATCH);
  int64_t count = type_count(&b->columns[0].type);
  for (int64_t i = 0; i < count && i < 6; i++) {
    str_putc(&s, ' ');
    if (dtype_is_float(wide.dtype))
      str_double(&s, ((double *)b->columns[0].data)[i]);
    else
      str_printf(&s, "%lld", (long long)((int64_t *)b->columns[0].data)[i]);
  }
  loader_destroy(l);
  dataset_close(ds);
  return s.data;
}

static const char *show(struct world *w, const char *path) { return show_in(w, TEST_DATA, path, NULL); }

static const char *show_text(struct world *w, const char *name, const char *spec, const char *text) {
  write_file(w, name, text, strlen(text));
  return show_in(w, w->folder, spec, NULL);
}

static void assert_mentions(const char *text, const char *words) {
  if (!strstr(text, words)) fail_msg("expected '%s' in: %s", words, text);
}

static void idx(void **state) {
  struct world *w = *state;
  assert_string_equal(show(w, "images.idx"), "5 x u8[3,2]: 0 1 2 3 4 5");
  assert_string_equal(show(w, "labels.gz"), "5 x u8[]: 7 2 1 0 4");
  assert_string_equal(show(w, "floats.idx"), "5 x f32[]: 0.0 0.75 1.5 2.25 3.0");
  assert_mentions(show(w, "images.idx:x"), "holds one array");
  write_file(*state, "i16", "\0\0\x0b\1\0\0\0\1\xff\xfe", 10);
  assert_string_equal(show_in(w, w->folder, "i16", NULL), "1 x i32[]: -2");
  write_file(*state, "none", "\0\0\x0a\1\0\0\0\1\0\0", 10);
  assert_mentions(show_in(w, w->folder, "none", NULL), "type 0x0a");
}

static void npy(void **state) {
  struct world *w = *state;
  assert_string_equal(show(w, "f4.npy"), "5 x f32[3]: 0.0 0.25 0.5 0.75 1.0 1.25");
  assert_string_equal(show(w, "i8_v2.npy"), "5 x i64[]: -1 2 3 1099511627776 5");
  assert_string_equal(show(w, "u1.npy"), "5 x u8[2,2]: 0 1 2 3 4 5");
  assert_string_equal(show(w, "b1.npy"), "5 x bool[]: 1 0 1 1 0");
  assert_string_equal(show(w, "big_endian.npy"), "5 x f32[3]: 0.0 0.25 0.5 0.75 1.0 1.25");
  assert_string_equal(show(w, "half.npy"), "5 x f32[3]: 0.0 0.25 0.5 0.75 1.0 1.25");
  assert_string_equal(show(w, "fortran.npy"), "5 x f32[3]: 0.0 0.25 0.5 0.75 1.0 1.25");
  assert_mentions(show(w, "records.npy"), "named fields");
  assert_mentions(show(w, "scalar.npy"), "single number");
  assert_mentions(show(w, "absent.npy"), "No such file");
}

static void npz(void **state) {
  struct world *w = *state;
  assert_string_equal(show(w, "stored.npz:x"), "5 x f32[3]: 0.0 0.25 0.5 0.75 1.0 1.25");
  assert_string_equal(show(w, "packed.npz:y"), "5 x i32[]: 0 1 2 3 4");
  assert_string_equal(show(w, "packed.npz:x"), "5 x f32[40]: 0.0 0.0 0.0 0.0 0.0 0.0");
  assert_mentions(show(w, "packed.npz"), "NAME with one of x, y");
  assert_mentions(show(w, "packed.npz:z"), "no member 'z', only x, y");
}

static size_t read_sample(const char *spec, char *name, unsigned char *bytes, size_t room) {
  char path[512];
  snprintf(name, 64, "%s", spec);
  name[strcspn(name, ":")] = 0;
  snprintf(path, sizeof path, "%s/%s", TEST_DATA, name);
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  size_t len = fread(bytes, 1, room, f);
  fclose(f);
  return len;
}

static uint32_t crc_of(const unsigned char *p, size_t len) {
  uint32_t crc = ~0u;
  for (size_t i = 0; i < len; i++) {
    crc ^= p[i];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

/* Sets the byte that is `from_end` before the end of a stored member, and the checksum to what it then is. */
static void change_member(unsigned char *zip, size_t len, const char *member, int from_end, uint8_t value) {
  size_t name = strlen(member), size = 0;
  for (size_t at = 0; at + 46 + name < len; at++) {
    bool local = memcmp(zip + at, "PK\3\4", 4) == 0, central = memcmp(zip + at, "PK\1\2", 4) == 0;
    if ((!local && !central) || memcmp(zip + at + (local ? 30 : 46), member, name) != 0) continue;
    static uint32_t crc;
    if (local) {
      unsigned char *body =
          zip + at + 30 + (zip[at + 26] | zip[at + 27] << 8) + (zip[at + 28] | zip[at + 29] << 8);
      for (size = 0; memcmp(body + size, "PK", 2) != 0;) size++;
      body[size - (size_t)from_end] = value;
      crc = crc_of(body, size);
    }
    memcpy(zip + at + (local ? 14 : 16), &crc, 4);
  }
  assert_true(size > 0);
}

/* What scipy wrote is read; what it would not write is refused. */
static void sparse(void **state) {
  struct world *w = *state;
  assert_string_equal(show(w, "sparse.npz"), "3 x f32[4]: 1.5 0.0 0.0 0.0 0.0 0.0");
  assert_string_equal(show(w, "sparse_top.npz"), "3 x f32[4]: 1.0 0.0 0.0 0.0 2.0 3.0");
  assert_string_equal(show_in(w, TEST_DATA, "sparse.npz", "1:"), "2 x f32[4]: 0.0 0.0 2.0 0.0 0.0 0.0");
  assert_string_equal(show(w, "sparse.npz:indptr"), "4 x i32[]: 0 1 2 3");
  assert_mentions(show(w, "sparse_coo.npz"), "save .tocsr() of it");
  assert_mentions(show(w, "sparse_unsorted.npz"), "row 0 are not in order: call sum_duplicates()");
  const struct {
    const char *member;
    int at; /* from the end of its bytes */
    uint8_t value;
    const char *words;
  } wrong[] = {{"indptr", 16, 1, "do not fit together"},
               {"indptr", 8, 0, "row 1 of this sparse matrix ends"},
               {"indptr", 9, 0x80, "row 0 of this"},
               {"indptr", 4, 4, "do not fit together"},
               {"indices", 4, 4, "in column 4 of 4"},
               {"indices", 1, 0xff, "in column -"},
               {"indices", 8, 1, "row 1 are not in order"},
               {"shape", 16, 2, "do not fit together"},
               {"shape", 8, 0, "no columns"},
               {"shape", 9, 0x80, "no rows"},
               {"shape", 1, 0x7f, "at most 1048576 are"},
               {"format", 1, 'c', "save .tocsr() of it"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    unsigned char bytes[2048];
    char name[64];
    size_t len = read_sample("sparse_top.npz", name, bytes, sizeof bytes);
    change_member(bytes, len, wrong[i].member, wrong[i].at, wrong[i].value);
    write_file(w, name, bytes, len);
    assert_mentions(show_in(w, w->folder, name, NULL), wrong[i].words);
  }
}

static void safetensors(void **state) {
  struct world *w = *state;
  assert_string_equal(show(w, "tensors.safetensors:x"), "5 x f32[3]: 0.0 0.25 0.5 0.75 1.0 1.25");
  assert_string_equal(show(w, "tensors.safetensors:y"), "5 x i64[]: 0 1 2 3 4");
  assert_string_equal(show(w, "tensors.safetensors:half"), "5 x f32[3]: 0.0 0.25 0.5 0.75 1.0 1.25");
  assert_mentions(show(w, "tensors.safetensors:z"), "no tensor 'z'");
}

static void csv(void **state) {
  struct world *w = *state;
  const char *table = "\xef\xbb\xbf"
                      "age,size,\"the label\"\r\n31, 1.5 ,0\r\n\r\n-4,2e-1,\"2\"\r\n";
  assert_string_equal(show_text(w, "a.csv", "a.csv", table), "2 x f64[3]: 31.0 1.5 0.0 -4.0 0.2 2.0");
  assert_string_equal(show_in(w, w->folder, "a.csv:age", NULL), "2 x i32[]: 31 -4");
  assert_string_equal(show_in(w, w->folder, "a.csv:the label", NULL), "2 x i32[]: 0 2");
  assert_string_equal(show_in(w, w->folder, "a.csv:2", NULL), "2 x f64[]: 1.5 0.2");
  assert_string_equal(show_in(w, w->folder, "a.csv:2-3", NULL), "2 x f64[2]: 1.5 0.0 0.2 2.0");
  assert_string_equal(show_in(w, w->folder, "a.csv:3-3", NULL), "2 x i32[1]: 0 2");
  assert_mentions(show_in(w, w->folder, "a.csv:4", NULL), "3 columns");
  assert_mentions(show_in(w, w->folder, "a.csv:agee", NULL), "only: age, size, the label");
  assert_string_equal(show_text(w, "b.csv", "b.csv", "1;2\n3;9223372036854775807"),
                      "2 x i64[2]: 1 2 3 9223372036854775807");
  assert_string_equal(show_text(w, "b.csv", "b.csv", "-9223372036854775808\n"),
                      "1 x i64[1]: -9223372036854775808");
  assert_string_equal(show_text(w, "b.csv", "b.csv", "9223372036854775808\n"),
                      "1 x f64[1]: 9.223372036854776e+18");
  assert_string_equal(show_text(w, "b.tsv", "b.tsv", "1\t2\nnan\t-inf\n"), "2 x f64[2]: 1.0 2.0 nan -inf");
  assert_string_equal(show_text(w, "b.csv", "b.csv", "1,2\nInfinity,1e308\n"),
                      "2 x f64[2]: 1.0 2.0 inf 1e+308");
  assert_mentions(show_text(w, "b.csv", "b.csv", "1,2\n3,-1e309\n"),
                  "line 2, column 2: -1e309 is larger than any f64");
  assert_mentions(show_text(w, "b.csv", "b.csv:1:optional", "1e400,2\n3,4\n"),
                  "line 1, column 1: 1e400 is larger than any f64");
  assert_mentions(show_text(w, "b.csv", "b.csv", "1,2\r3,4\r"), "its lines end with carriage returns alone");
  assert_string_equal(show_text(w, "b.csv", "b.csv:2", "x,1\ny,2\n"), "2 x i32[]: 1 2");
  assert_mentions(show_text(w, "b.csv", "b.csv", "a,b\n1,2\n3\n"),
                  "line 3 has fewer cells than the first line's 2");
  assert_mentions(show_text(w, "b.csv", "b.csv", "a,b\n1,2\n3,4,5\n"), "line 3 has more cells");
  assert_mentions(show_text(w, "b.csv", "b.csv", "a,b\n1,2\n3,x\n"), "line 3, column 2: 'x' is not a number");
  assert_mentions(show_text(w, "b.csv", "b.csv", "a,b\n1,\n"), "the cell is empty");
  assert_mentions(show_text(w, "b.csv", "b.csv", "a,b\n"), "no lines of numbers");
  assert_mentions(show_text(w, "b.csv", "b.csv", "\n\n"), "no lines");
  assert_mentions(show_text(w, "b.csv", "b.csv:a", "a,a\n1,2\n"), "two columns named 'a'");
  /* Decimal commas, and what separates cells then. */
  static const char *const commas[][2] = {
      {"a;b\n1;1,5\n", "line 2, column 2: '1,5' has a decimal comma"},
      {"a\tb\n1\t-1.234,50\n", "line 2, column 2: '-1.234,50' has a decimal comma"},
      {"1,5;2,5\n3;4\n", "line 1, column 1: '1,5' has a decimal comma"},
      {"1;2,5\n3;4\n", "line 1, column 2: '2,5' has a decimal comma"},
      {"3\t2,5e3\n3\t4\n", "line 1, column 2: '2,5e3' has a decimal comma"},
      {"a,b\n1,\"1,5\"\n", "pandas.read_csv(FILE, decimal=',') reads it"},
      {"y\n1,5\n", "line 2 has more cells than the first line's 1; is it a decimal comma?"},
      {"price, EUR;b\n1;2\n", "line 2, column 1: '1;2' is not a number; is the line separated by ';'?"},
      {"price, EUR;b\n1;2,3,4;5\n", "line 2 has more cells than the first line's 2; is it separated by ';'?"},
  };
  for (size_t i = 0; i < sizeof commas / sizeof *commas; i++)
    assert_mentions(show_text(w, "b.csv", i == 8 ? "b.csv:2" : "b.csv", commas[i][0]), commas[i][1]);
  assert_mentions(show_text(w, "b.csv", "b.csv:b:optional", "a;b\n1;1,5\n"),
                  "b.csv >POINTS.csv writes points");
  assert_string_equal(show_text(w, "b.csv", "b.csv", "1,5\n2,5\n"), "2 x i32[2]: 1 5 2 5");
  if (!setlocale(LC_ALL, "de_DE.UTF-8")) return;
  assert_string_equal(show_text(w, "b.csv", "b.csv", "1.5\n"), "1 x f64[1]: 1.5");
  setlocale(LC_ALL, "C");
}

static void text(void **state) {
  struct world *w = *state;
  assert_string_equal(show_text(w, "a.txt", "a.txt", "abcdefg"), "7 x u8[]: 97 98 99 100 101 102");
  assert_string_equal(show_in(w, w->folder, "a.txt:3", NULL), "2 x u8[3]: 97 98 99 100 101 102");
  assert_string_equal(show_in(w, w->folder, "a.txt:3+1", NULL), "2 x u8[3]: 98 99 100 101 102 103");
  assert_mentions(show_in(w, w->folder, "a.txt:7", NULL), "too few");
  assert_mentions(show_in(w, w->folder, "a.txt:3+2", NULL), "not a window");
  assert_mentions(show_text(w, "c", "c", "hello"), "first bytes");
  assert_mentions(show_text(w, "c", "c", ""), "empty");
  write_file(w, "odd:1.txt", "ab", 2); /* a colon in the name of a file that is there */
  assert_string_equal(show_in(w, w->folder, "odd:1.txt", NULL), "2 x u8[]: 97 98");
  assert_int_equal(mkdir(arena_printf(w->arena, "%s/none", w->folder), 0700), 0);
  assert_mentions(show_in(w, w->folder, "none", NULL), "folder");
}

/* Behind a gzip file zeros may stand, and other gzip files, but nothing else. */
static void padded(void **state) {
  struct world *w = *state;
  static unsigned char bytes[1 << 17];
  char name[64];
  size_t len = read_sample("labels.gz", name, bytes, sizeof bytes), all = sizeof bytes;
  const size_t lens[] = {len + 1, 512, 16384, 16385, all};
  for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
    write_file(w, "padded.gz", bytes, lens[i]);
    assert_string_equal(show_in(w, w->folder, "padded.gz", NULL), "5 x u8[]: 7 2 1 0 4");
  }
  bytes[all - 1] = 1;
  write_file(w, "padded.gz", bytes, all);
  assert_mentions(show_in(w, w->folder, "padded.gz", NULL), "cannot decompress");
  /* two texts, as `cat a.gz b.gz` joins them */
  static const unsigned char joined[] = {0x1f, 0x8b, 8,    0,   0,    0,    0,    0,    0, 3, 1, 1,
                                         0,    0xfe, 0xff, 'a', 0x43, 0xbe, 0xb7, 0xe8, 1, 0, 0, 0};
  memset(bytes, 0, all);
  memcpy(bytes, joined, sizeof joined);
  memcpy(bytes + sizeof joined, joined, sizeof joined);
  write_file(w, "ab.txt.gz", bytes, all);
  assert_string_equal(show_in(w, w->folder, "ab.txt.gz", NULL), "2 x u8[]: 97 97");
}

static void ranges(void **state) {
  struct world *w = *state;
  const struct {
    const char *rows, *shown;
  } good[] = {{":", "5 x u8[]: 7 2 1 0 4"}, {"1:3", "2 x u8[]: 2 1"}, {"-2:", "2 x u8[]: 0 4"},
              {":-3", "2 x u8[]: 7 2"},     {"4:5", "1 x u8[]: 4"},   {"-5:-4", "1 x u8[]: 7"}};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    assert_string_equal(show_in(w, TEST_DATA, "labels.gz", good[i].rows), good[i].shown);
  const struct {
    const char *rows, *words;
  } bad[] = {{"3:2", "empty range"}, {"2:2", "empty range"},
             {"0:6", "outside"},     {"-6:", "outside"},
             {"5:", "outside"},      {"1", "not a range"},
             {"a:b", "not a range"}, {"1:2:3", "not a range"},
             {"-:3", "not a range"}, {"1:99999999999999999999", "not a range"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_mentions(show_in(w, TEST_DATA, "labels.gz", bad[i].rows), bad[i].words);
}

static void datasets(void **state) {
  struct world *w = *state;
  write_file(w, "short.txt", "abc", 3);
  char *path = arena_printf(w->arena, "%s/short.txt", w->folder);
  struct data_spec specs[] = {{.name = "image", .path = "images.idx"}, {.name = "label", .path = path}};
  assert_null(dataset_open(w->arena, TEST_DATA, specs, 2, NULL, &w->diags));
  assert_mentions(diags_text(&w->diags, false), "images.idx has 5, ");
  assert_mentions(diags_text(&w->diags, false), "short.txt has 3");

  specs[1].path = "labels.gz";
  struct dataset *ds = dataset_open(w->arena, TEST_DATA, specs, 2, "1:4", &w->diags);
  assert_non_null(ds);
  assert_int_equal(ds->rows, 3);
  int64_t six = 6, seven = 7;
  struct type image = type_make(DT_F32, 1, &six), wrong = type_make(DT_F32, 1, &seven);
  struct type label = type_scalar(DT_I32);
  assert_false(dataset_expect(ds, "image", &wrong, &w->diags));
  assert_mentions(diags_text(&w->diags, false), "u8[3,2]");
  assert_true(dataset_expect(ds, "image", &image, &w->diags));
  assert_true(dataset_expect(ds, "label", &label, &w->diags));
  assert_false(dataset_expect(ds, "other", &label, &w->diags));
  dataset_close(ds);
  dataset_close(NULL);

  specs[1].name = "image";
  assert_null(dataset_open(w->arena, TEST_DATA, specs, 2, NULL, &w->diags));
  assert_mentions(diags_text(&w->diags, false), "given twice");
  ds = open_in(w, TEST_DATA, "f4.npy", NULL);
  struct type whole = type_with_dtype(ds->columns[0].row, DT_I32);
  assert_false(dataset_expect(ds, "x", &whole, &w->diags));
  assert_mentions(diags_text(&w->diags, false), "without loss");
  dataset_close(ds);
}

/* What is said of a file is of use with that file: columns are chosen of tables alone, and fractions are no bytes. */
static void helps_that_fit(void **state) {
  struct world *w = *state;
  static const float fractions[8] = {0.25f, 0.5f};
  struct row_source source = {type_make(DT_F32, 2, (int64_t[]){2, 2}), 2, (const uint8_t *)fractions, NULL,
                              NULL};
  write_npy(w, "fractions.npy", &source);
  write_file(w, "wide.csv", "1,2,3\n4,5,6\n", 12);
  write_file(w, "points.csv", "a\n0.0\n1.0\n", 10);
  struct {
    const char *path;
    struct type row;
    const char *help;
  } cases[] = {
      {"fractions.npy", type_make(DT_U8, 2, (int64_t[]){2, 2}),
       "as fractions they are `input x : f32[B,2,2]`"},
      {"fractions.npy", type_make(DT_I32, 2, (int64_t[]){2, 2}),
       "numpy's `.astype(\"i4\")` does, or declare `input x : f32[B,2,2]`, and write `cast(x, i32)`"},
      {"fractions.npy", type_make(DT_I32, 1, (int64_t[]){2}),
       "a number for each class? declare `input x : f32[B,2,2]`, as softmax_cross_entropy takes it: "
       "`argmax(x, axis = 2)`"},
      {"points.csv:a", type_make(DT_I32, 0, NULL),
       "declare `input x : f32[B]`, and write `cast(x, i32)`, or write whole numbers without a point to the "
       "file"},
      {"points.csv:a", type_make(DT_U8, 0, NULL), "as fractions they are `input x : f32[B]` in the model\n"},
      {"wide.csv", type_make(DT_F32, 1, (int64_t[]){2}), "FILE.csv:1-2"},
      {"wide.csv", type_make(DT_F32, 1, (int64_t[]){4}), "such rows are `input x : f32[B,3]`"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    diags_init(&w->diags, w->arena);
    struct data_spec spec = {.name = "x", .path = cases[i].path};
    struct dataset *ds = dataset_open(w->arena, w->folder, &spec, 1, NULL, &w->diags);
    assert_non_null(ds);
    assert_false(dataset_expect(ds, "x", &cases[i].row, &w->diags));
    assert_mentions(diags_text(&w->diags, false), cases[i].help);
    dataset_close(ds);
  }
}

/* Several files of one column are one behind the other, whatever types they hold. */
static void several_files(void **state) {
  struct world *w = *state;
  write_file(w, "a.csv", "1,2\n3,4\n", 8);
  write_file(w, "b.csv", "5.5,6\n", 6);
  write_file(w, "c.csv", "7,8\n9,10\n11,12\n", 15);
  write_file(w, "wide.csv", "1,2,3\n", 6);
  const char *more[] = {"b.csv", "c.csv"};
  struct data_spec spec = {.name = "x", .path = "a.csv", .more = more, .nmore = 2};
  int64_t two = 2;
  struct type pair = type_make(DT_F64, 1, &two);
  const struct {
    const char *rows;
    int count, first;
  } cases[] = {{NULL, 6, 0}, {"1:4", 3, 1}, {"2:3", 1, 2}, {"3:", 3, 3}, {":2", 2, 0}, {"-1:", 1, 5}};
  const double numbers[] = {1, 2, 3, 4, 5.5, 6, 7, 8, 9, 10, 11, 12};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int batch = 1; batch <= 6; batch++) {
      struct dataset *ds = dataset_open(w->arena, w->folder, &spec, 1, cases[i].rows, &w->diags);
      assert_non_null(ds);
      assert_int_equal(ds->rows, cases[i].count);
      assert_true(dataset_expect(ds, "x", &pair, &w->diags));
      struct loader *l =
          loader_create(w->arena, ds, &(struct loader_options){.batch = batch, .epochs = 1}, &w->diags);
      const struct batch *b;
      int row = 0;
      for (; loader_next(l, &b, &w->diags) == LOADER_BATCH; row += (int)b->rows, loader_release(l, b))
        assert_memory_equal(b->columns[0].data, numbers + 2 * (cases[i].first + row),
                            (size_t)b->rows * 2 * sizeof(double));
      assert_int_equal(row, cases[i].count);
      loader_destroy(l);
      dataset_close(ds);
    }

  struct dataset *ds = dataset_open(w->arena, w->folder, &spec, 1, NULL, &w->diags);
  struct type whole = type_with_dtype(pair, DT_I32);
  assert_false(dataset_expect(ds, "x", &whole, &w->diags));
  assert_mentions(diags_text(&w->diags, false), "b.csv holds f64");
  dataset_close(ds);
  more[0] = "a.csv";
  ds = dataset_open(w->arena, w->folder, &spec, 1, NULL, &w->diags);
  double wrong;
  assert_false(dataset_check_range(ds, "x", 0, 10, false, &wrong, &w->diags));
  assert_true(wrong == 11);
  assert_mentions(diags_text(&w->diags, false), "row 2 of c.csv is 11");
  dataset_close(ds);
  more[1] = "wide.csv";
  assert_null(dataset_open(w->arena, w->folder, &spec, 1, NULL, &w->diags));
  assert_mentions(diags_text(&w->diags, false),
                  "a row of wide.csv is i32[3], but one of a.csv, which it continues, is i32[2]");
  more[1] = "gone.csv";
  assert_null(dataset_open(w->arena, w->folder, &spec, 1, NULL, &w->diags));
  assert_mentions(diags_text(&w->diags, false), "gone.csv: No such file");
}

/* --- damage --- */

static const char *const samples[] = {"f4.npy",
                                      "i8_v2.npy",
                                      "u1.npy",
                                      "b1.npy",
                                      "stored.npz:x",
                                      "packed.npz:x",
                                      "tensors.safetensors:x",
                                      "sparse.npz",
                                      "sparse_top.npz",
                                      "images.idx",
                                      "floats.idx",
                                      "labels.gz"};

/* Opens what was written, and touches every byte it claims to have. */
static bool survives(struct world *w, const char *spec) {
  arena_reset(w->arena);
  diags_init(&w->diags, w->arena);
  struct dataset *ds = open_in(w, w->folder, spec, NULL);
  if (!ds) {
    assert_true(w->diags.nerrors > 0);
    return false;
  }
  const struct column *c = &ds->columns[0];
  size_t bytes = (size_t)(ds->rows * type_bytes(&c->row));
  uint8_t *all = malloc(bytes);
  assert_non_null(all);
  struct misfit bad;
  assert_true(column_read(c, 0, 0, ds->rows, all, &bad));
  volatile unsigned sum = 0;
  for (size_t i = 0; i < bytes; i++) sum += all[i];
  free(all);
  dataset_close(ds);
  return sum != UINT32_MAX;
}

static void truncated(void **state) {
  struct world *w = *state;
  for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
    unsigned char bytes[2048];
    char name[64];
    size_t len = read_sample(samples[i], name, bytes, sizeof bytes - 1);
    bytes[len] = 1;
    write_file(w, name, bytes, len + 1); /* one byte too many */
    assert_false(survives(w, samples[i]));
    int f = open_file(w, name);
    assert_int_equal(ftruncate(f, (off_t)len), 0);
    assert_true(survives(w, samples[i]));
    for (size_t n = len; n-- > 0;) {
      assert_int_equal(ftruncate(f, (off_t)n), 0);
      if (survives(w, samples[i])) fail_msg("%s cut to %zu bytes was accepted", samples[i], n);
    }
    close(f);
  }
}

static void flipped(void **state) {
  struct world *w = *state;
  unsigned random = 1;
  for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
    unsigned char bytes[2048];
    char name[64];
    size_t len = read_sample(samples[i], name, bytes, sizeof bytes);
    size_t step = len > 512 ? 7 : 1; /* 7: low bits and high ones */
    write_file(w, name, bytes, len);
    int f = open_file(w, name);
    for (size_t n = 0; n < len * 8; n += step) {
      unsigned char damaged[2048];
      memcpy(damaged, bytes, len);
      damaged[n / 8] ^= 1u << n % 8;
      for (int more = n % 3; more > 0; more--) {
        random = random * 1664525 + 1013904223;
        damaged[(random >> 8) % len] ^= 1u << (random >> 5) % 8;
      }
      assert_int_equal(pwrite(f, damaged, len, 0), len);
      survives(w, samples[i]);
    }
    close(f);
  }
}

/* Headers that claim far more than there is. */
static void lying(void **state) {
  struct world *w = *state;
  write_file(w, "a", "\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16);
  assert_mentions(show_in(w, w->folder, "a", NULL), "damaged or truncated");
  write_file(w, "a", "\0\0\x08\xff", 4);
  assert_mentions(show_in(w, w->folder, "a", NULL), "truncated");
  write_file(w, "a", "\0\0\x08\x02\0\0\0\0\0\0\0\5", 12);
  assert_mentions(show_in(w, w->folder, "a", NULL), "no numbers");
  static const char npy_header[] = "\x93NUMPY\1\0\x76\0{'descr': '<f8', 'fortran_order': False, "
                                   "'shape': (9223372036854775807, 9223372036854775807), }";
  char file[128];
  memset(file, ' ', sizeof file);
  memcpy(file, npy_header, sizeof npy_header - 1);
  write_file(w, "a", file, sizeof file);
  assert_mentions(show_in(w, w->folder, "a", NULL), "0 bytes of data follow");
  /* A first line that is much longer than all others. */
  char *wide = arena_alloc(w->arena, 1 << 18);
  for (int i = 0; i < 1 << 17; i++) wide[i] = i % 2 ? ',' : '1';
  for (int i = 1 << 17; i < (1 << 18) - 1; i++) wide[i] = i % 2 ? '\n' : '1';
  assert_mentions(show_text(w, "a.csv", "a.csv", wide), "fewer cells");
  static const char deep[] =
      "\x40\0\0\0\0\0\0\0{\"a\":{\"dtype\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[";
  write_file(w, "a", deep, sizeof deep - 1);
  assert_mentions(show_in(w, w->folder, "a", NULL), "damaged");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_world, close_world)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(idx),
      TEST(npy),
      TEST(npz),
      TEST(sparse),
      TEST(safetensors),
      TEST(csv),
      TEST(text),
      TEST(lying),
      TEST(padded),
      TEST(ranges),
      TEST(datasets),
      TEST(several_files),
      TEST(helps_that_fit),
      TEST(truncated),
      TEST(flipped),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
