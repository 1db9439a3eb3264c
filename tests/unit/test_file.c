/* SPDX-License-Identifier: Apache-2.0 */
/* Which files a model may name, while another process swaps them: what is opened was looked at. */
#include "base/file.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { TRIES = 3000 };

static void at(char *out, const char *name) {
  assert_true(snprintf(out, 256, "%s/%s", scratch_path, name) < 256);
}

static void put(const char *name, const char *text) {
  char path[256];
  at(path, name);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  assert_int_equal(fclose(f), 0);
}

/* own and other, each with a file x and a folder d with a file x. */
static int make(void **state) {
  static const char *const folders[] = {"own", "other", "own/d", "own/e", "other/d"};
  (void)state;
  assert_true(scratch_make());
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    char path[256];
    at(path, folders[i]);
    assert_int_equal(mkdir(path, 0700), 0);
  }
  put("own/x", "ours"), put("own/d/x", "ours"), put("own/e/x", "ours");
  put("other/x", "secret"), put("other/d/x", "secret");
  return 0;
}

static struct file_roots own(void) {
  static char path[256];
  static const char *folders[] = {path};
  at(path, "own");
  return (struct file_roots){folders, 1};
}

/* What is read: "ours", "secret", or "" if it is refused. */
static const char *read_at(const char *name) {
  static char text[16];
  char path[256];
  struct file_roots roots = own();
  const char *cause;
  int64_t size;
  at(path, name);
  memset(text, 0, sizeof text);
  int fd = file_open_within(&roots, path, &size, &cause);
  if (fd < 0) {
    assert_non_null(cause);
    return "";
  }
  assert_int_equal(file_read(fd, text, sizeof text - 1, 0), size);
  close(fd);
  return text;
}

struct swap {
  const char *name, *one, *two; /* the link `name` leads to these in turn */
  atomic_bool stop;
  atomic_int rounds;
};

static void *swapper(void *argument) {
  struct swap *w = argument;
  char link[256], fresh[256];
  at(link, w->name);
  at(fresh, "fresh");
  for (int i = 0; !w->stop; i++) {
    if (symlink(i & 1 ? w->one : w->two, fresh) != 0 || rename(fresh, link) != 0) abort();
    w->rounds++;
  }
  return NULL;
}

/* Reads `path` while a link on its way is swapped: never the other file. */
static void race(const char *name, const char *one, const char *two, const char *path) {
  struct swap w = {.name = name, .one = one, .two = two};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, swapper, &w), 0);
  while (w.rounds < 2) usleep(100);
  for (int i = 0; i < TRIES || w.rounds < 100; i++) assert_string_not_equal(read_at(path), "secret");
  w.stop = true;
  pthread_join(thread, NULL);
}

static void file_race(void **state) {
  (void)state;
  race("own/link", "x", "../other/x", "own/link");
}

static void folder_race(void **state) {
  (void)state;
  race("own/way", "d", "../other/d", "own/way/x");
}

/* The folder itself is replaced by a link, after it was found to be one. */
static void *replacer(void *argument) {
  struct swap *w = argument;
  char folder[256], aside[256];
  at(folder, "own/e");
  at(aside, "own/aside");
  while (!w->stop) {
    if (rename(folder, aside) != 0 || symlink("../other/d", folder) != 0) abort();
    if (unlink(folder) != 0 || rename(aside, folder) != 0) abort();
    w->rounds++;
  }
  return NULL;
}

static void replaced(void **state) {
  struct swap w = {0};
  pthread_t thread;
  (void)state;
  assert_int_equal(pthread_create(&thread, NULL, replacer, &w), 0);
  for (int i = 0; i < TRIES || w.rounds < 100; i++) assert_string_not_equal(read_at("own/e/x"), "secret");
  w.stop = true;
  pthread_join(thread, NULL);
  assert_string_equal(read_at("own/e/x"), "ours");
}

/* qemu-user with -L opens another folder as "/", in which `path` is not. */
static bool root_is_root(const char *path) {
  int fd = open("/", O_RDONLY | O_DIRECTORY);
  bool is = fd >= 0 && faccessat(fd, path + 1, F_OK, 0) == 0;
  if (fd >= 0) close(fd);
  if (!is) puts("SKIP: what is below /, which an emulator has elsewhere");
  return is;
}

static void names(void **state) {
  char path[256];
  (void)state;
  assert_string_equal(read_at("own/x"), "ours");
  assert_string_equal(read_at("own/d/../x"), "ours");
  assert_string_equal(read_at("other/../own/d/x"), "ours");
  assert_string_equal(read_at("own/../other/x"), "");
  assert_string_equal(read_at("own/."), "");
  assert_string_equal(read_at("own"), "");
  assert_string_equal(read_at("own/none"), "");
  assert_string_equal(read_at("owner"), "");
  put("owner", "secret"); /* begins as the folder does */
  assert_string_equal(read_at("owner"), "");

  const char *cause, *root[] = {"/"}, *none[] = {"/nowhere", ""};
  struct file_roots everything = {root, 1}, nothing = {none, 2};
  int64_t size;
  at(path, "other/x");
  if (root_is_root(path)) {
    int fd = file_open_within(&everything, path, &size, &cause);
    assert_true(fd >= 0 && size == 6);
    close(fd);
  }
  assert_int_equal(file_open_within(&nothing, path, &size, &cause), -1);
  assert_non_null(strstr(cause, "--allow-path"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names),
      cmocka_unit_test(file_race),
      cmocka_unit_test(folder_race),
      cmocka_unit_test(replaced),
  };
  return cmocka_run_group_tests(tests, make, NULL);
}
