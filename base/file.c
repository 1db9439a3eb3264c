/* SPDX-License-Identifier: Apache-2.0 */
/* Regular files alone are opened to be read, and where a model names them, within its roots alone. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *not_regular(mode_t mode) {
  return S_ISDIR(mode)    ? "it is a folder"
         : S_ISFIFO(mode) ? "it is a pipe, not a regular file; copy its content into one"
                          : "it is not a regular file; copy its content into one";
}

/* Looked at before it is opened, and again: another file may have taken the name meanwhile. */
static int open_regular(int folder, const char *name, bool follow, int64_t *size, const char **cause) {
  struct stat st;
  *size = 0;
  *cause = NULL;
  if (fstatat(folder, name, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) != 0) return *cause = strerror(errno), -1;
  if (!S_ISREG(st.st_mode)) return errno = EINVAL, *cause = not_regular(st.st_mode), -1;
  int fd;
  do fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow ? 0 : O_NOFOLLOW));
  while (fd < 0 && errno == EINTR);
  if (fd < 0) return *cause = strerror(errno), -1;
  int error = fstat(fd, &st) == 0 ? 0 : errno;
  if (!error && S_ISREG(st.st_mode)) return *size = st.st_size, fd;
  *cause = error ? strerror(error) : not_regular(st.st_mode);
  close(fd);
  errno = error ? error : EINVAL;
  return -1;
}

int file_open(const char *path, int64_t *size, const char **cause) {
  return open_regular(AT_FDCWD, path, true, size, cause);
}

/* What of `path` is behind `root/`, "." of the root itself; NULL if it does not begin with that. */
static const char *below(const char *root, const char *path) {
  size_t len = strlen(root);
  while (len > 0 && root[len - 1] == '/') len--;
  if (strncmp(root, path, len) != 0) return NULL;
  return path[len] == '/' && path[len + 1] ? path + len + 1 : path[len] && path[len] != '/' ? NULL : ".";
}

static int open_folder(int at, const char *name, int more) {
  return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | more);
}

/* Opens root/rest, folder by folder. None of them is a link: one that is by now is not followed. `size` is NULL of a
 * folder. */
static int open_below(const char *root, const char *rest, int64_t *size, const char **cause) {
  int at = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
  while (at >= 0) {
    char name[NAME_MAX + 1] = "";
    size_t len = strcspn(rest, "/");
    memcpy(name, rest, len <= NAME_MAX ? len : 0);
    int next = rest[len] ? openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
               : size    ? open_regular(at, name, false, size, cause)
                         : open_folder(at, name, O_NOFOLLOW);
    int error = errno;
    close(at);
    errno = error;
    if (!rest[len] || next < 0) return next;
    at = next;
    rest += len + 1;
  }
  return -1;
}

static int open_within(const struct file_roots *roots, const char *path, int64_t *size, const char **cause) {
  char real[PATH_MAX], root[PATH_MAX];
  *cause = NULL;
  if (realpath(path, real) == NULL) return *cause = strerror(errno), -1;
  for (int i = 0; i < roots->count; i++) {
    const char *rest = realpath(roots->folders[i], root) ? below(root, real) : NULL;
    if (rest == NULL) continue;
    int fd = open_below(root, rest, size, cause);
    if (fd < 0 && *cause == NULL) *cause = strerror(errno);
    return fd;
  }
  *cause = "it lies outside of the model's folder; --allow-path DIR lets a model read the files of DIR";
  return errno = EACCES, -1;
}

int file_open_within(const struct file_roots *roots, const char *path, int64_t *size, const char **cause) {
  if (roots == NULL) return file_open(path, size, cause);
  *size = 0;
  return open_within(roots, path, size, cause);
}

int file_open_folder_within(const struct file_roots *roots, const char *path, const char **cause) {
  if (roots) return open_within(roots, path, NULL, cause);
  int fd = open_folder(AT_FDCWD, path, 0);
  if (fd < 0) *cause = strerror(errno);
  return fd;
}

bool file_is_source(int fd) {
  char link[64], real[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t len = readlink(link, real, sizeof real - 1);
  real[len > 0 ? len : 0] = 0;
  const char *dot = strrchr(real, '.');
  return dot != NULL && (strcmp(dot, ".dsl") == 0 || strcmp(dot, ".dg") == 0);
}

bool file_system_failed(int error) {
  switch (error) {
  case EIO:
  case ENOMEM:
  case EMFILE:
  case ENFILE:
  case EAGAIN:
  case ENODEV:
  case ESTALE:
  case ETIMEDOUT: return true;
  default: return false;
  }
}

int64_t file_read(int fd, void *out, int64_t len, int64_t offset) {
  int64_t done = 0;
  while (done < len) {
    size_t rest = (size_t)(len - done);
    ssize_t n = pread(fd, (char *)out + done, rest < SSIZE_MAX ? rest : SSIZE_MAX, offset + done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    done += n;
  }
  return done;
}

bool file_is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}
