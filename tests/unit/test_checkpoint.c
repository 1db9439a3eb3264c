/* SPDX-License-Identifier: Apache-2.0 */
/* Files that appear whole or not at all: checkpoints and predictions. */
#include "runtime/checkpoint.h"
#include "runtime/data/atomic.h"
#include "runtime/data/data.h"
#include "runtime/data/xxh64.h"
#include "tests/support/fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int files_in(const char *folder) {
  DIR *dir = opendir(folder);
  int n = 0;
  for (struct dirent *e; (e = readdir(dir));) n += e->d_name[0] != '.';
  closedir(dir);
  return n;
}

static size_t read_file(const char *path, void *bytes, size_t room) {
  FILE *f = fopen(path, "rb");
  if (!f) return 0;
  size_t n = fread(bytes, 1, room, f);
  fclose(f);
  return n;
}

static void write_file(const char *path, const void *bytes, size_t len) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, len, f), len);
  fclose(f);
}

static void assert_mentions(const char *text, const char *words) {
  if (!strstr(text, words)) fail_msg("expected '%s' in: %s", words, text);
}

static const float kernel[2][3] = {{1, 2.5f, -0.0f}, {INFINITY, 1e-40f, 6}};
static const uint8_t flags[3] = {1, 0, 1};
static const int64_t steps = 1234567890123;
static const struct checkpoint_entry entries[] = {
    {"dense/flags", {DT_BOOL, 1, {3}}, flags, DT_F32},
    {"dense/kernel", {DT_F32, 2, {2, 3}}, kernel, DT_F32},
    {"w\xc3\xa4hl \"x\"\\\n", {DT_I64, 0, {0}}, &steps, DT_F32},
    {"empty", {DT_F64, 2, {0, 7}}, NULL, DT_F32},
};
static const struct checkpoint_text texts[] = {
    {"step", "17"}, {"note", "tab\t, quote \", \xe2\x82\xac"}, {"", ""}};

static bool save(struct world *w, const char *path) {
  return checkpoint_save(path, entries, 4, texts, 3, &w->diags);
}

static void round_trip(void **state) {
  struct world *w = *state;
  const char *path = in_folder(w, "a.safetensors"), *other = in_folder(w, "b.safetensors");
  assert_true(save(w, path));
  assert_true(save(w, path));
  assert_true(save(w, other));
  assert_int_equal(files_in(w->folder), 2);
  struct checkpoint *c = checkpoint_load(w->arena, path, &w->diags);
  assert_non_null(c);
  assert_int_equal(c->count, 4);
  for (int i = 0; i < 4; i++) {
    assert_string_equal(c->entries[i].name, entries[i].name);
    assert_true(type_equal(&c->entries[i].type, &entries[i].type));
    if (type_bytes(&entries[i].type))
      assert_memory_equal(c->entries[i].data, entries[i].data, (size_t)type_bytes(&entries[i].type));
  }
  assert_int_equal(c->ntexts, 3);
  for (int i = 0; i < 3; i++) assert_string_equal(checkpoint_text(c, texts[i].key), texts[i].value);
  assert_null(checkpoint_text(c, "dgc.checksum"));
  assert_null(checkpoint_find(c, "dense"));
  assert_ptr_equal(checkpoint_find(c, "dense/kernel"), &c->entries[1]);

  char first[4096], second[4096];
  size_t len = read_file(path, first, sizeof first);
  assert_int_equal(read_file(other, second, sizeof second), len);
  assert_memory_equal(first, second, len);
  uint64_t header;
  memcpy(&header, first, 8);
  assert_int_equal(header % 8, 0);

  assert_true(checkpoint_save(path, NULL, 0, NULL, 0, &w->diags));
  c = checkpoint_load(w->arena, path, &w->diags);
  assert_int_equal(c->count + c->ntexts, 0);
}

/* A checkpoint of ours tells of every single damaged bit. */
static void damage(void **state) {
  struct world *w = *state;
  const char *path = in_folder(w, "a.safetensors"), *bad = in_folder(w, "bad.safetensors");
  assert_true(save(w, path));
  unsigned char bytes[4096];
  size_t len = read_file(path, bytes, sizeof bytes);
  char where[128];
  strcpy(where, bad);
  struct arena *a = arena_create();
  write_file(where, bytes, len);
  int f = open(where, O_WRONLY);
  assert_true(f >= 0);
  for (size_t n = 0; n < len * 9; n++) {
    arena_reset(a);
    struct diags d;
    diags_init(&d, a);
    if (n < len * 8) {
      bytes[n / 8] ^= 1u << n % 8;
      assert_int_equal(pwrite(f, bytes, len, 0), len);
      bytes[n / 8] ^= 1u << n % 8;
    } else {
      if (n == len * 8) assert_int_equal(pwrite(f, bytes, len, 0), len);
      assert_int_equal(ftruncate(f, (off_t)(len * 9 - 1 - n)), 0);
    }
    if (checkpoint_load(a, where, &d)) fail_msg("damage %zu of %zu bytes was accepted", n, len);
    assert_int_equal(d.nerrors, 1);
  }
  close(f);
  arena_destroy(a);
}

/* Headers as another program, or an enemy, writes them. */
static void headers(void **state) {
  struct world *w = *state;
  const struct {
    const char *json;
    int bytes;
    const char *error; /* NULL: fine */
  } cases[] = {
      {"{}", 0, NULL},
      {"{ \"a\" : {\"shape\":[ 2 , 1 ],\"dtype\":\"F32\",\"data_offsets\":[0,8]} , \"b\":{\"dtype\":\"U8\","
       "\"shape\":[],\"data_offsets\":[8,9]}}   ",
       9, NULL},
      {"{\"__metadata__\":{\"a\":\"\\u00e9\\ud83d\\ude00\\/\"}}", 0, NULL},
      {"{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},\"a\":{\"dtype\":\"U8\",\"shape\":[1],"
       "\"data_offsets\":[0,1]}}",
       2, NULL},
      {"", 0, "too short"},
      {"[]", 0, "malformed"},
      {"{}x", 0, "malformed"},
      {"{\"a\":{}}", 0, "malformed"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "malformed"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],}}", 4, "malformed"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[01],\"data_offsets\":[0,4]}}", 4, "malformed"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "malformed"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "malformed"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, "malformed"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "malformed"},
      {"{\"a\\u0000b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "malformed"},
      {"{\"\\ud800\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "malformed"},
      {"{\"\xc0\xaf\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "malformed"},
      {"{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, "malformed"},
      {"{\"__metadata__\":{\"a\":1}}", 0, "malformed"},
      {"{\"__metadata__\":{\"dgc.checksum\":\"xxh64:\"}}", 0, "malformed"},
      {"{\"__metadata__\":{\"dgc.checksum\":\"xxh64:0123456789abcdef\"}}", 0, "does not match its checksum"},
      {"{\"__metadata__\":{\"dgc.format\":\"1\"}}", 0, "checksum is missing"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5, "follow the last"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 3, "end behind"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]}}", 5, "gap"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "shape says"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0,9223372036854775807,3],\"data_offsets\":[0,0]}}", 0,
       "shape says"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0,9000000000000],\"data_offsets\":[0,0]}}", 0, "too large"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[9223372036854775807,2],\"data_offsets\":[0,4]}}", 4,
       "shape says"},
      {"{\"a\":{\"dtype\":\"F8_E5M2\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, "tensor 'a' is F8_E5M2"},
      {"{\"a\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[0,4]}}", 4,
       "tensor 'a' has not as many bytes"},
      {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},\"b\":{\"dtype\":\"U8\",\"shape\":[2],"
       "\"data_offsets\":[1,3]}}",
       3, "overlap"},
      {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"a\":{\"dtype\":\"U8\",\"shape\":[1],"
       "\"data_offsets\":[1,2]}}",
       2, "malformed"},
  };
  const char *path = in_folder(w, "a.safetensors");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char file[512] = {0};
    uint64_t len = strlen(cases[i].json);
    memcpy(file, &len, 8);
    memcpy(file + 8, cases[i].json, len);
    write_file(path, file, 8 + len + (size_t)cases[i].bytes);
    diags_init(&w->diags, w->arena);
    struct checkpoint *c = checkpoint_load(w->arena, path, &w->diags);
    if (!c != !!cases[i].error) fail_msg("%s: %s", cases[i].json, diags_text(&w->diags, false));
    if (!c) assert_mentions(diags_text(&w->diags, false), cases[i].error);
  }
  write_file(path, "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
  assert_null(checkpoint_load(w->arena, path, &w->diags));
  assert_null(checkpoint_load(w->arena, in_folder(w, "absent"), &w->diags));
}

static void names(void **state) {
  struct world *w = *state;
  const char *path = in_folder(w, "a.safetensors");
  struct checkpoint_entry twice[] = {entries[0], entries[0]}, odd = entries[0];
  assert_false(checkpoint_save(path, twice, 2, NULL, 0, &w->diags));
  odd.name = "\xff";
  assert_false(checkpoint_save(path, &odd, 1, NULL, 0, &w->diags));
  odd.name = "__metadata__";
  assert_false(checkpoint_save(path, &odd, 1, NULL, 0, &w->diags));
  assert_int_equal(files_in(w->folder), 0);
}

/* Writes fail past `bytes`: what a full disk looks like. */
static void limit_files(rlim_t bytes) {
  struct rlimit r;
  getrlimit(RLIMIT_FSIZE, &r);
  r.rlim_cur = bytes;
  setrlimit(RLIMIT_FSIZE, &r);
}

static void full_disk(void **state) {
  struct world *w = *state;
  signal(SIGXFSZ, SIG_IGN);
  const char *path = in_folder(w, "a.safetensors");
  assert_true(save(w, path));
  float *large = arena_new_array(w->arena, 100000, float);
  struct checkpoint_entry big = {"big", {DT_F32, 1, {100000}}, large, DT_F32};
  for (rlim_t room = 0; room < 400000; room += 70000) {
    limit_files(room);
    bool ok = checkpoint_save(path, &big, 1, NULL, 0, &w->diags);
    limit_files(RLIM_INFINITY);
    assert_false(ok);
    assert_int_equal(files_in(w->folder), 1);
    struct checkpoint *c = checkpoint_load(w->arena, path, &w->diags);
    assert_non_null(c);
    assert_int_equal(c->count, 4);
  }
  assert_mentions(diags_text(&w->diags, false), "cannot write ");
  assert_mentions(diags_text(&w->diags, false), "File too large");

  diags_init(&w->diags, w->arena);
  struct type row = type_make(DT_F32, 1, (int64_t[]){100});
  const char *name = "p";
  const char *const places[] = {"/dev/full", in_folder(w, "p.csv"), in_folder(w, "p.npy")};
  for (int i = 0; i < 3; i++) {
    struct row_writer *out = row_writer_create(w->arena, places[i], &name, &row, 1, &w->diags);
    assert_non_null(out);
    limit_files(100000);
    row_writer_put(out, (const void *[]){large}, 1000, &w->diags);
    bool ok = row_writer_finish(out, &w->diags);
    limit_files(RLIM_INFINITY);
    assert_false(ok);
    assert_int_equal(w->diags.nerrors, i + 1);
    assert_int_equal(files_in(w->folder), 1);
  }
  assert_mentions(diags_text(&w->diags, false), "No space left on device; make room");
}

static void places(void **state) {
  struct world *w = *state;
  assert_false(save(w, in_folder(w, "no/such/folder")));
  assert_mentions(diags_text(&w->diags, false), "No such file or directory");
  assert_false(save(w, w->folder));
  assert_mentions(diags_text(&w->diags, false), "Is a directory");
  /* A link stays a link, permissions stay what they were. */
  const char *path = in_folder(w, "a"), *link = in_folder(w, "link");
  assert_true(save(w, path));
  assert_int_equal(chmod(path, 0600), 0);
  assert_int_equal(symlink("a", link), 0);
  assert_true(save(w, link));
  struct stat st;
  assert_int_equal(lstat(link, &st), 0);
  assert_true(S_ISLNK(st.st_mode));
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_mode & 07777, 0600);
  assert_int_equal(files_in(w->folder), 2);
}

static void predictions(void **state) {
  struct world *w = *state;
  const char *names_[] = {"p", "class", "a,\"b"};
  struct type types[] = {type_make(DT_F32, 1, (int64_t[]){2}), type_scalar(DT_I32), type_scalar(DT_BOOL)};
  const float p[] = {0.1f, 1, -2.5f, INFINITY};
  const int32_t class[] = {-7, 2};
  const char *csv = in_folder(w, "p.csv"), *npy = in_folder(w, "p.npy");
  struct row_writer *out = row_writer_create(w->arena, csv, names_, types, 3, &w->diags);
  assert_true(row_writer_put(out, (const void *[]){p, class, flags}, 2, &w->diags));
  assert_true(row_writer_put(out, (const void *[]){p, class, flags}, 0, &w->diags));
  assert_true(row_writer_put(out, (const void *[]){p, class, flags}, 1, &w->diags));
  assert_int_not_equal(access(csv, F_OK), 0);
  assert_true(row_writer_finish(out, &w->diags));
  char text[512] = {0};
  read_file(csv, text, sizeof text - 1);
  assert_string_equal(text, "p_0,p_1,class,\"a,\"\"b\"\n0.1,1.0,-7,1\n-2.5,inf,2,0\n0.1,1.0,-7,1\n");

  const char *txt = in_folder(w, "p.txt");
  struct type letters = type_make(DT_U8, 1, (int64_t[]){3});
  out = row_writer_create(w->arena, txt, names_, &letters, 1, &w->diags);
  assert_true(row_writer_put(out, (const void *[]){"ab\"\0,\377"}, 2, &w->diags));
  assert_true(row_writer_finish(out, &w->diags));
  memset(text, 0, sizeof text);
  read_file(txt, text, sizeof text - 1);
  assert_memory_equal(text, "ab\"\n\0,\377\n", 9);
  assert_null(row_writer_create(w->arena, txt, names_, types, 1, &w->diags));
  assert_null(row_writer_create(w->arena, txt, names_, types, 2, &w->diags));

  assert_null(row_writer_create(w->arena, npy, names_, types, 3, &w->diags));
  assert_null(row_writer_create(w->arena, in_folder(w, "p.dat"), names_, types, 1, &w->diags));
  out = row_writer_create(w->arena, npy, names_, types, 1, &w->diags);
  for (int i = 0; i < 50; i++) assert_true(row_writer_put(out, (const void *[]){p}, 2, &w->diags));
  assert_true(row_writer_finish(out, &w->diags));
  struct data_spec spec = {.name = "p", .path = npy};
  struct dataset *ds = dataset_open(w->arena, NULL, &spec, 1, NULL, &w->diags);
  assert_int_equal(ds->rows, 100);
  assert_true(type_equal(&ds->columns[0].row, &types[0]));
  assert_memory_equal(ds->columns[0].pieces[0].data + 99 * ds->columns[0].pieces[0].stride, p + 2, 8);
  dataset_close(ds);

  row_writer_abandon(NULL);
  row_writer_abandon(row_writer_create(w->arena, in_folder(w, "q.csv"), names_, types, 1, &w->diags));
  assert_int_equal(files_in(w->folder), 3);
}

static void checksum(void **state) {
  (void)state;
  const struct {
    size_t len;
    uint64_t hash;
  } known[] = {{0, UINT64_C(0xef46db3751d8e999)},  {1, UINT64_C(0xe934a84adb052768)},
               {3, UINT64_C(0xe5c7bb4533bc65dd)},  {31, UINT64_C(0xc346d2b59b4d8ee1)},
               {32, UINT64_C(0xcbf59c5116ff32b4)}, {100, UINT64_C(0x6ac1e58032166597)},
               {257, UINT64_C(0x80381162756d40e6)}};
  uint8_t bytes[300];
  for (int i = 0; i < 300; i++) bytes[i] = (uint8_t)i;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    for (size_t step = 1; step < 80; step += 6) {
      struct xxh64 h;
      xxh64_init(&h);
      for (size_t at = 0; at < known[i].len; at += step)
        xxh64_add(&h, bytes + at, known[i].len - at < step ? known[i].len - at : step);
      assert_true(xxh64_end(&h) == known[i].hash);
    }
  }
}

/* A process that is killed in the middle of a save leaves the old file, and nothing beside it. */
static void killed(void **state) {
  struct world *w = *state;
  char *path = in_folder(w, "kept");
  struct atomic_file f;
  assert_true(atomic_open(&f, w->arena, path, &w->diags) && atomic_write(&f, "old", 3, &w->diags));
  assert_true(atomic_commit(&f, &w->diags));
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    static char bytes[100000];
    if (atomic_open(&f, w->arena, path, &w->diags)) atomic_write(&f, bytes, sizeof bytes, &w->diags);
    raise(SIGKILL);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status));
  int fd = open(w->folder, O_WRONLY | O_TMPFILE, 0600); /* not every file system has files without names */
  if (fd >= 0) assert_int_equal(files_in(w->folder), 1);
  if (fd >= 0) close(fd);
  char bytes[8];
  assert_int_equal(read_file(path, bytes, sizeof bytes), 3);
  assert_memory_equal(bytes, "old", 3);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_world, close_world)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(round_trip), TEST(damage),      TEST(headers),  TEST(names),  TEST(full_disk),
      TEST(places),     TEST(predictions), TEST(checksum), TEST(killed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
