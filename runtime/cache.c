/* SPDX-License-Identifier: Apache-2.0 */
/* File format: struct header, key, code. The digest covers key and code. */
#include "runtime/cache.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC     "dgcobj1"
#define MAX_CODE  (INT64_C(1) << 30)
#define DAY       (24 * 60 * 60)
#define ALIGNMENT 16 /* of the code, which lies behind its key; the arena's */

struct header {
  char magic[8];
  uint64_t key_size, code_size, digest;
};

static bool is_ours(const struct stat *s) { return s->st_uid == geteuid() && (s->st_mode & 022) == 0; }

static bool make_folder(const char *path) {
  struct stat s;
  if (mkdir(path, 0700) == 0) return true;
  return lstat(path, &s) == 0 && S_ISDIR(s.st_mode) && is_ours(&s);
}

/* Those that are missing, as the XDG Base Directory Specification asks. `path` is written to, and then as it was. */
static void make_parents(char *path) {
  for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    mkdir(path, 0700);
    *slash = '/';
  }
}

const char *cache_folder(struct arena *a) {
  const char *off = getenv("DGC_CACHE"), *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (off && strcmp(off, "off") == 0) return NULL;
  if (base == NULL || base[0] != '/') {
    if (home == NULL || home[0] != '/') return NULL;
    base = arena_printf(a, "%s/.cache", home);
  }
  const char *folder = arena_printf(a, "%s/dgc", base);
  make_parents(arena_strdup(a, folder));
  return make_folder(folder) ? folder : NULL;
}

void cache_put_library(struct str *key, const void *address) {
  Dl_info info;
  struct stat s;
  if (dladdr(address, &info) && stat(info.dli_fname, &s) == 0)
    str_printf(key, " %" PRId64 " %" PRId64 ".%ld", (int64_t)s.st_size, (int64_t)s.st_mtim.tv_sec,
               s.st_mtim.tv_nsec);
}

static void file_name(char *out, size_t size, const char *folder, const struct str *key, const char *suffix) {
  snprintf(out, size, "%s/%016" PRIx64 ".o%s", folder, str_digest(STR_HASH_SEED, key->data, key->len),
           suffix);
}

static bool read_all(int fd, char *data, size_t size) {
  while (size > 0) {
    ssize_t got = read(fd, data, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    data += got;
    size -= (size_t)got;
  }
  return true;
}

static bool write_all(int fd, const char *data, size_t size) {
  while (size > 0) {
    ssize_t put = write(fd, data, size);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    data += put;
    size -= (size_t)put;
  }
  return true;
}

/* The header says what the file is long, and the key is the one looked for. */
static bool header_fits(const struct header *h, const struct stat *s, const struct str *key) {
  return memcmp(h->magic, MAGIC, sizeof h->magic) == 0 && h->key_size == key->len && h->code_size > 0 &&
         h->code_size < MAX_CODE && (uint64_t)s->st_size == sizeof *h + h->key_size + h->code_size;
}

/* Reads the header; the size of what follows, 0 if the file is not to be trusted. */
static size_t read_header(int fd, const struct str *key, struct header *h, time_t *used) {
  struct stat s;
  if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || !is_ours(&s)) return 0;
  if (!read_all(fd, (char *)h, sizeof *h) || !header_fits(h, &s, key)) return 0;
  *used = s.st_mtime;
  return (size_t)(h->key_size + h->code_size);
}

/* The file's time is when it was used last, to the day, for cache_trim. */
static void note_use(int fd, time_t before) {
  time_t now = time(NULL);
  if (before > now || now - before > DAY) futimens(fd, NULL);
}

static int open_file(const char *folder, const struct str *key) {
  char path[4096];
  file_name(path, sizeof path, folder, key, "");
  return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

static void undo_open(void *fd) { close(*(int *)fd); }

const char *cache_read(struct arena *a, const char *folder, const struct str *key, size_t *code_size) {
  struct arena_guard guard;
  struct header h;
  int fd = open_file(folder, key);
  if (fd < 0) return NULL;
  arena_guard(&guard, undo_open, &fd);
  time_t used = 0;
  size_t size = read_header(fd, key, &h, &used), before = -key->len % ALIGNMENT;
  char *data = size > 0 ? (char *)arena_alloc(a, before + size) + before : NULL;
  arena_unguard(&guard);
  bool good = data != NULL && read_all(fd, data, size) && memcmp(data, key->data, key->len) == 0 &&
              str_digest(STR_HASH_SEED, data, size) == h.digest;
  if (good) note_use(fd, used);
  close(fd);
  *code_size = good ? (size_t)h.code_size : 0;
  return good ? data + key->len : NULL;
}

static bool write_entry(int fd, const struct str *key, const char *code, size_t code_size) {
  size_t size = key->len + code_size;
  struct header h = {.magic = MAGIC, .key_size = key->len, .code_size = code_size};
  char *data = malloc(size);
  if (data == NULL) return false;
  memcpy(data, key->data, key->len);
  memcpy(data + key->len, code, code_size);
  h.digest = str_digest(STR_HASH_SEED, data, size);
  bool ok = write_all(fd, (const char *)&h, sizeof h) && write_all(fd, data, size);
  free(data);
  return ok;
}

/* Gives a file without a name its own at once: whoever is killed leaves nothing behind. What has the name was not good,
 * or somebody else has just made the same. */
static bool write_unnamed(const char *folder, const char *path, const struct str *key, const char *code,
                          size_t code_size) {
  char self[64];
  int fd = access("/proc/self/fd", X_OK) == 0 ? open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600) : -1;
  if (fd < 0) return false;
  snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
  if (write_entry(fd, key, code, code_size) &&
      linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) != 0 && errno == EEXIST && unlink(path) == 0)
    (void)!linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
  close(fd);
  return true;
}

void cache_write(const char *folder, const struct str *key, const char *code, size_t code_size) {
  static atomic_uint serial;
  char path[4096], temporary[4096], suffix[64];
  file_name(path, sizeof path, folder, key, "");
  if (write_unnamed(folder, path, key, code, code_size)) return;
  snprintf(suffix, sizeof suffix, ".%ld.%u", (long)getpid(), serial++);
  file_name(temporary, sizeof temporary, folder, key, suffix);
  int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return;
  bool ok = write_entry(fd, key, code, code_size);
  if (close(fd) != 0 || !ok || rename(temporary, path) != 0) unlink(temporary);
}
