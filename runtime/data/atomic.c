#include "runtime/data/atomic.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER = 1 << 16, ATTEMPTS = 100 };

static bool fail(struct atomic_file *f, const char *what, struct diags *d) {
  int cause = errno;
  if (!f->failed)
    diag_error(d, LOC_NONE, "cannot %s %s: %s%s", what, f->path, strerror(cause),
               cause == ENOSPC || cause == EDQUOT ? "; make room and try again" : "");
  f->failed = true;
  return false;
}

/* The temporary file beside the target; with the permissions of the file it replaces. */
static bool open_temp(struct atomic_file *f, struct arena *a, const struct stat *old, struct diags *d) {
  static unsigned serial;
  for (int i = 0; i < ATTEMPTS; i++) {
    unsigned n = __atomic_fetch_add(&serial, 1, __ATOMIC_RELAXED);
    f->temp = arena_printf(a, "%s.tmp-%ld-%u", f->target, (long)getpid(), n);
    f->fd = open(f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (f->fd >= 0 || errno != EEXIST) break;
  }
  if (f->fd < 0) return fail(f, "write", d);
  if (old && fchmod(f->fd, old->st_mode & 07777) != 0) {
    fail(f, "set the permissions of", d);
    atomic_discard(f);
    return false;
  }
  return true;
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
  if (stat(path, &st) != 0) return errno == ENOENT ? open_temp(f, a, NULL, d) : fail(f, "write", d);
  if (S_ISDIR(st.st_mode)) return errno = EISDIR, fail(f, "write", d);
  if (!S_ISREG(st.st_mode)) {
    f->fd = open(path, O_WRONLY | O_CLOEXEC);
    return f->fd >= 0 || fail(f, "write", d);
  }
  if (access(path, W_OK) != 0) return fail(f, "replace", d);
  char real[PATH_MAX]; /* a link stays a link */
  if (!realpath(path, real)) return fail(f, "write", d);
  f->target = arena_strdup(a, real);
  return open_temp(f, a, &st, d);
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
  if (f->fd >= 0) close(f->fd);
  if (f->fd >= 0 && f->temp) unlink(f->temp);
  f->fd = -1;
}

static bool sync_folder(struct atomic_file *f, struct diags *d) {
  const char *slash = strrchr(f->target, '/');
  char folder[PATH_MAX] = ".";
  if (slash)
    snprintf(folder, sizeof folder, "%.*s", slash > f->target ? (int)(slash - f->target) : 1, f->target);
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
  int fd = f->fd;
  if (ok) {
    f->fd = -1;
    if (close(fd) != 0) ok = fail(f, "close", d);
    if (ok && f->temp && rename(f->temp, f->target) != 0) ok = fail(f, "replace", d);
    if (!ok && f->temp) unlink(f->temp);
  }
  if (!ok) {
    atomic_discard(f);
    return false;
  }
  return !f->temp || sync_folder(f, d);
}
