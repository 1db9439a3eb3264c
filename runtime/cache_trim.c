/* SPDX-License-Identifier: Apache-2.0 */
/* The cache stays below a size: what was not used for longest goes, as in LLVM's pruneCache. Whoever reads a file notes
 * it in the file's time (cache_read), and ".trimmed" has the time at which files were last counted. */
#include "runtime/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HOUR = 3600, NAME_SIZE = 48 };

struct entry {
  time_t used;
  int64_t bytes;
  char name[NAME_SIZE];
};

struct entries {
  struct entry *list;
  size_t count, room;
  int64_t bytes;
};

/* Whether nobody has counted for an hour; notes that this process does. A time that is still to come is of a clock that
 * was wrong. */
static bool is_due(int folder) {
  struct stat s;
  time_t now = time(NULL);
  int fd = openat(folder, ".trimmed", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bool due = fd >= 0;
  if (!due) {
    fd = openat(folder, ".trimmed", O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    due = fd >= 0 && fstat(fd, &s) == 0 && (s.st_mtime > now || now - s.st_mtime >= HOUR) &&
          futimens(fd, NULL) == 0;
  }
  if (fd >= 0) close(fd);
  return due;
}

/* "0123456789abcdef.o", or with more behind it while it is written without O_TMPFILE. */
static bool is_entry_name(const char *name) {
  return strspn(name, "0123456789abcdef") == 16 && strncmp(name + 16, ".o", 2) == 0 &&
         strlen(name) < NAME_SIZE;
}

static bool is_leftover(const char *name, time_t used) { return name[18] && time(NULL) - used > 24 * HOUR; }

static bool add(struct entries *all, const char *name, const struct stat *s) {
  if (all->count == all->room) {
    size_t room = all->room ? 2 * all->room : 256;
    struct entry *list = realloc(all->list, room * sizeof *list);
    if (!list) return false;
    all->list = list;
    all->room = room;
  }
  struct entry *e = &all->list[all->count++];
  *e = (struct entry){.used = s->st_mtime, .bytes = s->st_size};
  memcpy(e->name, name, strlen(name) + 1);
  all->bytes += s->st_size;
  return true;
}

/* What is in the folder; what a process that was killed has left in it goes after a day. */
static bool list(DIR *dir, struct entries *all) {
  struct stat s;
  for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
    if (!is_entry_name(d->d_name) || fstatat(dirfd(dir), d->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(s.st_mode))
      continue;
    if (is_leftover(d->d_name, s.st_mtime))
      unlinkat(dirfd(dir), d->d_name, 0);
    else if (!add(all, d->d_name, &s))
      return false;
  }
  return true;
}

static int by_use(const void *a, const void *b) {
  const struct entry *x = a, *y = b;
  if (x->used != y->used) return x->used < y->used ? -1 : 1;
  return strcmp(x->name, y->name);
}

static int64_t most_bytes(void) {
  const char *text = getenv("DGC_CACHE_BYTES");
  char *end;
  long long given = text && *text ? strtoll(text, &end, 10) : -1;
  return given >= 0 && !*end ? given : CACHE_BYTES;
}

/* A quarter more than must go, so that this is not all done again for the next kernel. */
static void drop_oldest(int folder, struct entries *all) {
  int64_t most = most_bytes();
  if (all->bytes <= most) return;
  qsort(all->list, all->count, sizeof *all->list, by_use);
  for (size_t i = 0; i < all->count && all->bytes > most / 4 * 3; i++)
    if (unlinkat(folder, all->list[i].name, 0) == 0) all->bytes -= all->list[i].bytes;
}

void cache_trim(const char *folder) {
  struct entries all = {0};
  DIR *dir = opendir(folder);
  if (!dir) return;
  if (is_due(dirfd(dir)) && list(dir, &all)) drop_oldest(dirfd(dir), &all);
  free(all.list);
  closedir(dir);
}
