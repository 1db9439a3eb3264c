/* SPDX-License-Identifier: Apache-2.0 */
/* The cache on disk keeps below its size, and keeps what is used. */
#include "runtime/cache.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

enum { HOUR = 3600, DAY = 24 * HOUR };

struct fixture {
  struct arena *arena;
  const char *folder;
};

static const char *path_of(const struct fixture *f, const char *name) {
  return arena_printf(f->arena, "%s/%s", f->folder, name);
}

/* Sets a file's time to so many seconds ago. */
static void age(const struct fixture *f, const char *name, long seconds) {
  struct timespec t[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};
  assert_int_equal(utimensat(AT_FDCWD, path_of(f, name), t, AT_SYMLINK_NOFOLLOW), 0);
}

/* A file of which nothing is on the disk. */
static void put(const struct fixture *f, const char *name, int64_t bytes, long seconds) {
  int fd = open(path_of(f, name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_true(fd >= 0);
  assert_int_equal(ftruncate(fd, bytes), 0);
  close(fd);
  age(f, name, seconds);
}

static bool there(const struct fixture *f, const char *name) {
  struct stat s;
  return lstat(path_of(f, name), &s) == 0;
}

static int setup(void **state) {
  static int number;
  struct arena *a = arena_create();
  struct fixture *f = arena_new(a, struct fixture);
  assert_true(scratch_make());
  *f = (struct fixture){a, arena_printf(a, "%s/%d", scratch_path, ++number)};
  *state = f;
  return mkdir(f->folder, 0700);
}

static int teardown(void **state) {
  struct fixture *f = *state;
  arena_destroy(f->arena);
  return 0;
}

/* Of five files of a quarter each the two used longest ago go, and with them what was being written two days ago. */
static void trimmed(void **state) {
  struct fixture *f = *state;
  const int64_t quarter = CACHE_BYTES / 4 - 1;
  put(f, "0000000000000001.o", quarter, 4 * DAY);
  put(f, "0000000000000002.o", quarter, 9 * DAY);
  put(f, "0000000000000003.o", quarter, 2 * DAY);
  put(f, "0000000000000004.o", quarter, 7 * DAY);
  put(f, "0000000000000005.o", quarter, HOUR);
  put(f, "0000000000000006.o.17.0", 1, 2 * DAY);
  put(f, "0000000000000007.o.18.0", 1, HOUR);
  put(f, "notes.txt", 4 * quarter, 90 * DAY);
  assert_int_equal(symlink("notes.txt", path_of(f, "0000000000000008.o")), 0);
  cache_trim(f->folder);
  assert_true(there(f, "0000000000000001.o") && there(f, "0000000000000003.o") &&
              there(f, "0000000000000005.o"));
  assert_false(there(f, "0000000000000002.o") || there(f, "0000000000000004.o"));
  assert_false(there(f, "0000000000000006.o.17.0"));
  assert_true(there(f, "0000000000000007.o.18.0"));
  assert_true(there(f, "notes.txt") && there(f, "0000000000000008.o"));
}

/* Files are counted once an hour, also by a clock that was wrong; what fits stays. */
static void once_an_hour(void **state) {
  struct fixture *f = *state;
  put(f, "0000000000000001.o", CACHE_BYTES - 1, 9 * DAY);
  cache_trim(f->folder);
  assert_true(there(f, "0000000000000001.o"));
  put(f, "0000000000000002.o", 2, DAY);
  cache_trim(f->folder);
  assert_true(there(f, "0000000000000001.o"));
  age(f, ".trimmed", 2 * HOUR);
  cache_trim(f->folder);
  assert_false(there(f, "0000000000000001.o"));
  assert_true(there(f, "0000000000000002.o"));
  put(f, "0000000000000003.o", CACHE_BYTES, 9 * DAY);
  age(f, ".trimmed", -DAY);
  cache_trim(f->folder);
  assert_false(there(f, "0000000000000003.o"));
}

/* As many bytes as the environment says, if it is a number. */
static void asked(void **state) {
  struct fixture *f = *state;
  static const char *const wrong[] = {"", "-1", "many", "1k"};
  put(f, "0000000000000001.o", 1000, DAY);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(setenv("DGC_CACHE_BYTES", wrong[i], 1), 0);
    cache_trim(f->folder);
    assert_true(there(f, "0000000000000001.o"));
    age(f, ".trimmed", 2 * HOUR);
  }
  assert_int_equal(setenv("DGC_CACHE_BYTES", "999", 1), 0);
  cache_trim(f->folder);
  assert_false(there(f, "0000000000000001.o"));
  assert_int_equal(unsetenv("DGC_CACHE_BYTES"), 0);
}

/* What is read counts as used on that day. */
static void used(void **state) {
  struct fixture *f = *state;
  struct str key = str_make(f->arena);
  struct stat s;
  char name[64];
  size_t size;
  str_put(&key, "a key");
  cache_write(f->folder, &key, "code", 4);
  snprintf(name, sizeof name, "%016" PRIx64 ".o", str_digest(STR_HASH_SEED, key.data, key.len));
  static const long ages[][2] = {{HOUR, HOUR}, {2 * DAY, 0}, {-DAY, 0}};
  for (size_t i = 0; i < sizeof ages / sizeof *ages; i++) {
    age(f, name, ages[i][0]);
    assert_non_null(cache_read(f->arena, f->folder, &key, &size));
    assert_int_equal(size, 4);
    assert_int_equal(lstat(path_of(f, name), &s), 0);
    assert_true(labs((long)(time(NULL) - s.st_mtime) - ages[i][1]) < 60);
  }
}

int main(void) {
  unsetenv("DGC_CACHE_BYTES");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(asked, setup, teardown),
      cmocka_unit_test_setup_teardown(trimmed, setup, teardown),
      cmocka_unit_test_setup_teardown(once_an_hour, setup, teardown),
      cmocka_unit_test_setup_teardown(used, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
