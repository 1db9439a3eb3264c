/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes: see pipe.h. */
#include "runtime/data/pipe.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WINDOW = 1 << 16, LOOK_MS = 100, PATIENCE_MS = 10000 };

struct kept_pipe {
  const char *path;
  int fd;
  int64_t len;
  struct kept_pipe *next;
};

struct pipes {
  struct arena *arena;
  const atomic_bool *stop;
  struct kept_pipe *all;
};

struct pipes *pipes_make(struct arena *a, const atomic_bool *stop) {
  struct pipes *p = arena_new(a, struct pipes);
  p->arena = a;
  p->stop = stop;
  return p;
}

void pipes_close(struct pipes *p) {
  for (struct kept_pipe *k = p ? p->all : NULL; k; k = k->next) close(k->fd);
  if (p) p->all = NULL;
}

static bool is_input(const char *path) { return strcmp(path, "-") == 0; }

bool is_pipe(const char *path) {
  struct stat st;
  return is_input(path) || (stat(path, &st) == 0 && S_ISFIFO(st.st_mode));
}

/* Reading and keeping it: two descriptors, and the cause of a failure. */
struct keeping {
  const struct pipes *pipes;
  int in, out;
  int64_t len;
  bool on_disk, opened; /* opened: somebody has it to write */
  const char *cause;
  int error;
};

static bool fail(struct keeping *k, const char *cause, int error) {
  k->cause = cause, k->error = error;
  return false;
}

/* Until there is something to read, or the end. */
static bool wait_for_more(struct keeping *k) {
  for (int waited = 0;; waited += LOOK_MS) {
    struct pollfd p = {.fd = k->in, .events = POLLIN};
    int n = poll(&p, 1, LOOK_MS);
    if (n < 0 && errno != EINTR) return fail(k, strerror(errno), errno);
    if (atomic_load(k->pipes->stop)) return fail(k, "it was asked to stop before the end has come", 0);
    if (n > 0) return true;
    if (!k->opened && waited >= PATIENCE_MS)
      return fail(k, "nobody has opened it to write for 10 seconds", 0);
  }
}

static int nameless_file(void) {
  const char *folder = getenv("TMPDIR");
  int fd = open(folder && *folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  return fd < 0 && errno == EISDIR ? (errno = EOPNOTSUPP, -1) : fd;
}

static bool put(struct keeping *k, int fd, const uint8_t *bytes, int64_t len) {
  for (int64_t done = 0; done < len;) {
    ssize_t n = write(fd, bytes + done, (size_t)(len - done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return fail(k, "it is larger than what can be kept; TMPDIR names a folder with more room", errno);
    done += n;
  }
  return true;
}

/* From memory to a disk. */
static bool move_to_disk(struct keeping *k) {
  uint8_t window[WINDOW / 4];
  int fd = nameless_file();
  if (fd < 0) return fail(k, "it is too large for memory, and TMPDIR, or /tmp, takes no file", errno);
  int before = k->out;
  k->out = fd, k->on_disk = true;
  bool good = true;
  for (int64_t at = 0; good && at < k->len;) {
    ssize_t n = pread(before, window, sizeof window, at);
    good = n > 0 ? put(k, fd, window, n) : fail(k, strerror(errno), errno);
    at += n;
  }
  close(before);
  return good;
}

static bool keep_all(struct keeping *k, int64_t memory) {
  uint8_t window[WINDOW / 4];
  for (;;) {
    if (!wait_for_more(k)) return false;
    ssize_t n = read(k->in, window, sizeof window);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) return fail(k, strerror(errno), errno);
    if (n == 0) return k->len > 0 || fail(k, "nothing has come through it", 0);
    k->opened = true;
    if (!k->on_disk && k->len + n > memory && !move_to_disk(k)) return false;
    if (!put(k, k->out, window, n)) return false;
    k->len += n;
  }
}

static bool open_both(struct keeping *k, const char *path) {
  bool input = is_input(path);
  k->opened = input;
  k->out = -1;
  k->in = input ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (k->in < 0) return fail(k, strerror(errno), errno);
  if (isatty(k->in)) return fail(k, "it is a terminal; give the data by a pipe", 0);
  k->out = memfd_create("dgc-pipe", MFD_CLOEXEC);
  return k->out >= 0 || fail(k, strerror(errno), errno);
}

static struct kept_pipe *read_pipe(struct pipes *p, const char *path, int64_t memory, struct loc loc,
                                   struct diags *d) {
  struct keeping k = {.pipes = p};
  bool good = open_both(&k, path) && keep_all(&k, memory);
  if (k.in >= 0) close(k.in);
  if (good) {
    struct kept_pipe *made = arena_new(p->arena, struct kept_pipe);
    *made = (struct kept_pipe){arena_strdup(p->arena, path), k.out, k.len, p->all};
    return p->all = made;
  }
  if (k.out >= 0) close(k.out);
  const char *name = is_input(path) ? "standard input" : path;
  if (k.error == ENOSPC || file_system_failed(k.error))
    diag_failure(d, loc, "cannot read %s: %s (%s)", name, k.cause, strerror(k.error));
  else
    diag_error(d, loc, "cannot read %s: %s", name, k.cause);
  return NULL;
}

bool pipe_content(struct pipes *p, const char *path, int64_t memory, struct content *out, struct loc loc,
                  struct diags *d) {
  struct kept_pipe *k = p->all;
  while (k && strcmp(k->path, path) != 0) k = k->next;
  if (!k) k = read_pipe(p, path, memory, loc, d);
  if (!k) return false;
  *out = (struct content){.len = k->len, .in_file = true, .fd = fcntl(k->fd, F_DUPFD_CLOEXEC, 3)};
  if (out->fd >= 0) return true;
  diag_failure(d, loc, "cannot read %s: %s", path, strerror(errno));
  *out = (struct content){0};
  return false;
}
