/* SPDX-License-Identifier: Apache-2.0 */
/* A file is written under another name in its folder, flushed, and renamed; who writes it next sweeps what was left. */
#include "runtime/data/atomic.h"

#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER = 1 << 16, ATTEMPTS = 100, DAY = 86400 };

#define TEMP ".tmp-" /* behind the target's name; then a tag of the host, the process and a number */

static void folder_of(const char *path, char *folder, size_t size) {
  const char *slash = strrchr(path, '/');
  if (slash)
    snprintf(folder, size, "%.*s", slash > path ? (int)(slash - path) : 1, path);
  else
    snprintf(folder, size, ".");
}

static bool fail(struct atomic_file *f, const char *what, struct diags *d) {
  int cause = errno;
  if (!f->failed)
    diag_error(d, LOC_NONE, "cannot %s %s: %s%s", what, f->path, strerror(cause),
               cause == ENOSPC || cause == EDQUOT ? "; make room and try again"
               : cause == ENXIO                   ? ": nothing reads from it"
                                                  : "");
  char folder[PATH_MAX];
  folder_of(f->path, folder, sizeof folder);
  if (!f->failed && cause == ENOENT && access(folder, F_OK) != 0)
    diag_help(d, LOC_NONE, "make its folder first: mkdir -p %s", folder);
  f->failed = true;
  return false;
}

/* Tells apart the hosts that share a file system. */
static unsigned host_tag(void) {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return (unsigned)str_hash(STR_HASH_SEED, name, strlen(name));
}

static void next_name(struct atomic_file *f, struct arena *a) {
  static unsigned serial;
  unsigned n = __atomic_fetch_add(&serial, 1, __ATOMIC_RELAXED);
  f->temp = arena_printf(a, "%s" TEMP "%08x-%ld-%u", f->target, host_tag(), (long)getpid(), n);
}

/* Whether the file is a temporary one that nobody writes any more. Who writes one holds its lock until it has its own
 * name, so a lock that can be had is one of a process that is gone: here, or where locks reach. Where they may not, on
 * another host, a day must have passed by the clock of the file system, `now`. */
static bool is_left(int fd, const struct stat *st, bool ours, time_t now) {
  return S_ISREG(st->st_mode) && st->st_nlink == 1 && st->st_uid == geteuid() &&
         flock(fd, LOCK_EX | LOCK_NB) == 0 && (ours || now - st->st_mtime > DAY);
}

static void remove_if_left(int folder, const char *name, bool ours, time_t now) {
  struct stat st, there;
  int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return;
  if (fstat(fd, &st) == 0 && is_left(fd, &st, ours, now) &&
      fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && there.st_ino == st.st_ino &&
      there.st_dev == st.st_dev)
    unlinkat(folder, name, 0);
  close(fd);
}

/* Removes what processes left that were killed between giving a file its temporary name and its own. */
static void remove_left(struct atomic_file *f, const char *path) {
  const char *slash = strrchr(f->target, '/'), *base = slash ? slash + 1 : f->target;
  size_t len = strlen(base), prefix = len + sizeof TEMP - 1;
  struct stat mine;
  DIR *folder = fstat(f->fd, &mine) == 0 ? opendir(path) : NULL;
  for (struct dirent *e; folder && (e = readdir(folder));) {
    unsigned tag, serial;
    long process;
    int end = -1;
    if (strncmp(e->d_name, base, len) != 0 || strncmp(e->d_name + len, TEMP, sizeof TEMP - 1) != 0) continue;
    if (sscanf(e->d_name + prefix, "%8x-%ld-%u%n", &tag, &process, &serial, &end) != 3) continue;
    if (!e->d_name[prefix + (size_t)end])
      remove_if_left(dirfd(folder), e->d_name, tag == host_tag(), mine.st_mtime);
  }
  if (folder) closedir(folder);
}

/* Locked before anybody else could lock it, or before anybody else could have removed it. */
static bool lock_temp(const struct atomic_file *f) {
  struct stat st;
  bool locked =
      flock(f->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; /* some file systems have no locks */
  return f->unnamed || (locked && fstat(f->fd, &st) == 0 && st.st_nlink > 0);
}

static bool open_named(struct atomic_file *f, struct arena *a) {
  for (int i = 0; i < ATTEMPTS; i++, next_name(f, a)) {
    f->fd = open(f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (f->fd >= 0 && lock_temp(f)) return true;
    if (f->fd < 0 && errno != EEXIST && errno != EINTR) return false;
    if (f->fd >= 0) close(f->fd);
    f->fd = -1;
  }
  return false;
}

/* The temporary file beside the target; with the permissions of the file it replaces. Where the system can, it
 * has no name until it is whole, so that a process that is killed leaves nothing behind. */
static bool open_temp(struct atomic_file *f, struct arena *a, const struct stat *old, struct diags *d) {
  f->arena = a;
  char folder[PATH_MAX];
  folder_of(f->target, folder, sizeof folder);
  next_name(f, a);
  const char *slash = strrchr(f->temp, '/');
  if (strlen(slash ? slash + 1 : f->temp) > NAME_MAX) return errno = ENAMETOOLONG, fail(f, "write", d);
  if (access("/proc/self/fd", X_OK) == 0) f->fd = open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  f->unnamed = f->fd >= 0;
  if (f->unnamed) lock_temp(f);
  if (!f->unnamed && !open_named(f, a)) return fail(f, "write", d);
  remove_left(f, folder);
  if (old && fchmod(f->fd, old->st_mode & 07777) != 0) {
    fail(f, "set the permissions of", d);
    atomic_discard(f);
    return false;
  }
  return true;
}

/* Gives the whole file its temporary name. */
static bool name_it(struct atomic_file *f, struct diags *d) {
  char self[64];
  snprintf(self, sizeof self, "/proc/self/fd/%d", f->fd);
  for (int i = 0; i < ATTEMPTS; i++) {
    if (linkat(AT_FDCWD, self, AT_FDCWD, f->temp, AT_SYMLINK_FOLLOW) == 0) return f->unnamed = false, true;
    if (errno != EEXIST) break;
    next_name(f, f->arena);
  }
  return fail(f, "write", d);
}

/* A pipe that nobody reads is an error: opening it would wait for a reader. */
static bool open_special(struct atomic_file *f, const char *path) {
  f->fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  int flags = f->fd >= 0 ? fcntl(f->fd, F_GETFL) : -1;
  return flags >= 0 && fcntl(f->fd, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

/* Where links lead, to a file that is not there; as realpath gives it for one that is. NULL: they lead nowhere. */
static const char *end_of_links(struct arena *a, const char *path) {
  enum { MOST = 40 };
  char to[PATH_MAX];
  for (int i = 0; i < MOST; i++) {
    ssize_t len = readlink(path, to, sizeof to - 1);
    if (len < 0) return errno == EINVAL || errno == ENOENT ? path : NULL;
    to[len] = 0;
    const char *slash = *to == '/' ? NULL : strrchr(path, '/');
    path = arena_printf(a, "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, to);
  }
  errno = ELOOP;
  return NULL;
}

/* A file that is mounted on its own cannot be replaced, whatever its permissions are. */
static bool is_mounted(const char *path) {
  struct statx s;
  return statx(AT_FDCWD, path, 0, STATX_TYPE, &s) == 0 && (s.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) &&
         (s.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

static bool open_new(struct atomic_file *f, struct arena *a, struct diags *d) {
  const char *end = *f->path ? end_of_links(a, f->path) : NULL;
  if (!end) return fail(f, "write", d);
  f->target = end;
  return open_temp(f, a, NULL, d);
}

bool atomic_open(struct atomic_file *f, struct arena *a, const char *path, struct diags *d) {
  *f = (struct atomic_file){.fd = -1, .path = arena_strdup(a, path), .buffer = arena_alloc(a, BUFFER)};
  f->target = f->path;
  if (strcmp(path, "-") == 0) {
    f->path = "standard output";
    f->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    return f->fd >= 0 || fail(f, "write to", d);
  }
  struct stat st;
  if (stat(path, &st) != 0) return errno == ENOENT ? open_new(f, a, d) : fail(f, "write", d);
  if (S_ISDIR(st.st_mode)) return errno = EISDIR, fail(f, "write", d);
  if (!S_ISREG(st.st_mode)) {
    return open_special(f, path) || fail(f, "write", d);
  }
  if (access(path, W_OK) != 0) return fail(f, "replace", d);
  if (is_mounted(path)) {
    errno = EBUSY;
    fail(f, "replace", d);
    diag_help(d, LOC_NONE, "a file system is mounted there, of this file alone: mount its folder");
    return false;
  }
  char real[PATH_MAX]; /* a link stays a link */
  if (!realpath(path, real)) return fail(f, "write", d);
  f->target = arena_strdup(a, real);
  return open_temp(f, a, &st, d);
}

bool atomic_try(struct arena *a, const char *path, struct diags *d) {
  struct atomic_file f = {.path = path};
  struct stat st;
  if (strcmp(path, "-") != 0 && stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
    return access(path, W_OK) == 0 || fail(&f, "write", d);
  if (!atomic_open(&f, a, path, d)) return false;
  atomic_discard(&f);
  return true;
}

static bool write_all(struct atomic_file *f, const char *data, size_t len, struct diags *d) {
  while (len > 0 && !f->failed) {
    ssize_t n = write(f->fd, data, len < SSIZE_MAX ? len : SSIZE_MAX);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(f, "write", d);
    data += n;
    len -= (size_t)n;
  }
  return !f->failed;
}

static bool flush(struct atomic_file *f, struct diags *d) {
  size_t fill = f->fill;
  f->fill = 0;
  return write_all(f, f->buffer, fill, d);
}

bool atomic_write(struct atomic_file *f, const void *data, size_t len, struct diags *d) {
  if (f->failed || (len > BUFFER - f->fill && !flush(f, d))) return false;
  if (len >= BUFFER) return write_all(f, data, len, d);
  if (len) memcpy(f->buffer + f->fill, data, len);
  f->fill += len;
  return true;
}

bool atomic_patch(struct atomic_file *f, int64_t offset, const void *data, size_t len, struct diags *d) {
  if (f->failed || !flush(f, d)) return false;
  const char *p = data;
  while (len > 0) {
    ssize_t n = pwrite(f->fd, p, len, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(f, "write", d);
    p += n, offset += n, len -= (size_t)n;
  }
  return true;
}

void atomic_discard(struct atomic_file *f) {
  if (f->fd >= 0 && f->temp && !f->unnamed) unlink(f->temp);
  if (f->fd >= 0) close(f->fd);
  f->fd = -1;
}

static bool sync_folder(struct atomic_file *f, struct diags *d) {
  char folder[PATH_MAX];
  folder_of(f->target, folder, sizeof folder);
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return true; /* a folder may be writable, but not readable */
  bool ok = fsync(fd) == 0 || errno == EINVAL || errno == EROFS;
  if (!ok) fail(f, "flush the folder of", d);
  close(fd);
  return ok;
}

bool atomic_commit(struct atomic_file *f, struct diags *d) {
  bool ok = !f->failed && flush(f, d);
  if (ok && f->temp && fsync(f->fd) != 0) ok = fail(f, "flush", d);
  if (ok && f->unnamed) ok = name_it(f, d);
  /* While it is open it is locked. What is on the disk cannot get lost by closing it. */
  if (ok && f->temp && rename(f->temp, f->target) != 0) ok = fail(f, "replace", d);
  if (!ok) {
    atomic_discard(f);
    return false;
  }
  int fd = f->fd;
  f->fd = -1;
  if (close(fd) != 0 && !f->temp) return fail(f, "close", d);
  return !f->temp || sync_folder(f, d);
}
