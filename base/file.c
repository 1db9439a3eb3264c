#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *not_regular(mode_t mode) {
  return S_ISDIR(mode)    ? "it is a folder"
         : S_ISFIFO(mode) ? "it is a pipe, not a regular file; copy its content into one"
                          : "it is not a regular file; copy its content into one";
}

/* Looked at before it is opened, and again: another file may have taken the name meanwhile. */
int file_open(const char *path, int64_t *size, const char **cause) {
  struct stat st;
  *size = 0;
  *cause = NULL;
  if (stat(path, &st) != 0) return *cause = strerror(errno), -1;
  if (!S_ISREG(st.st_mode)) return errno = EINVAL, *cause = not_regular(st.st_mode), -1;
  int fd;
  do fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  while (fd < 0 && errno == EINTR);
  if (fd < 0) return *cause = strerror(errno), -1;
  int error = fstat(fd, &st) == 0 ? 0 : errno;
  if (!error && S_ISREG(st.st_mode)) return *size = st.st_size, fd;
  *cause = error ? strerror(error) : not_regular(st.st_mode);
  close(fd);
  errno = error ? error : EINVAL;
  return -1;
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
