/* SPDX-License-Identifier: Apache-2.0 */
/* The content of files, in memory or read where it is asked for. */
#include "runtime/data/content.h"

#include "base/file.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char *content_why(int error) {
  return error ? strerror(error) : "it has become shorter while it was read";
}

bool content_unread(const char *path, int error, struct loc loc, struct diags *d) {
  if (file_system_failed(error))
    diag_failure(d, loc, "cannot read %s: %s", path, content_why(error));
  else
    diag_error(d, loc, "cannot read %s: %s", path, content_why(error));
  return false;
}

bool content_alloc(struct content *b, int64_t len, const char *path, struct loc loc, struct diags *d) {
  *b = (struct content){.len = len};
  if (len == 0) return true;
  void *map = mmap(NULL, (size_t)len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) {
    diag_failure(d, loc, "%s: no memory for its %lld bytes: %s", path, (long long)len, strerror(errno));
    return false;
  }
  b->map = map, b->map_len = (size_t)len, b->bytes = map;
  return true;
}

void content_close(struct content *b) {
  if (b->map) munmap(b->map, b->map_len);
  if (b->in_file) close(b->fd);
  *b = (struct content){0};
}

bool content_read(const struct content *b, int64_t offset, void *out, int64_t len) {
  if (!b->in_file) {
    memcpy(out, b->bytes + offset, (size_t)len);
    return true;
  }
  int64_t got = file_read(b->fd, out, len, offset);
  if (got >= 0) errno = 0;
  return got == len;
}

bool content_load(struct content *b, const char *path, struct loc loc, struct diags *d) {
  if (!b->in_file) return true;
  struct content whole;
  if (!content_alloc(&whole, b->len, path, loc, d)) return false;
  if (!content_read(b, 0, whole.map, b->len)) {
    int error = errno;
    content_close(&whole);
    return content_unread(path, error, loc, d);
  }
  content_close(b);
  *b = whole;
  return true;
}

bool content_open_file(struct content *b, const struct file_roots *roots, const char *path, struct loc loc,
                       struct diags *d) {
  const char *cause;
  *b = (struct content){0};
  b->fd = file_open_within(roots, path, &b->len, &cause);
  b->in_file = b->fd >= 0;
  if (b->in_file && b->len > 0) return true;
  if (!b->in_file && file_system_failed(errno))
    diag_failure(d, loc, "cannot read %s: %s", path, cause);
  else
    diag_error(d, loc, "cannot read %s: %s", path, b->in_file ? "it is empty" : cause);
  content_close(b);
  return false;
}
