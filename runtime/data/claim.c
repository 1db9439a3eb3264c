/* SPDX-License-Identifier: Apache-2.0 */
/* Locks of an open folder, which cannot be opened to be written: so they are shared ones, and who has one looks
 * whether he is alone. How long a lock is says which process has it, as the system does not tell that of locks that
 * belong to what is open; those that belong to a process are lost when any part of it closes the folder. */
#include "runtime/data/claim.h"

#include "base/place.h"
#include "base/str.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PLACE = 22 /* bits: no process has a larger number */, PLACES = 40, ATTEMPTS = 25 };

static int lock(int fd, int what, short type, off_t start, off_t len, struct flock *out) {
  *out = (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
  return fcntl(fd, what, out);
}

/* Where two begin at once, each sees the other: both go back and try again, each after a time of its own. One that has
 * been killed also needs a moment to be gone. */
static void wait_a_moment(long process) {
  struct timespec nap = {.tv_nsec = 20000000 + process % 32 * 1000000};
  nanosleep(&nap, NULL);
}

static bool claim_place(int fd, off_t start, long *holder) {
  struct flock seen;
  long self = (long)getpid();
  for (int i = 0; i < ATTEMPTS; i++) {
    if (lock(fd, F_OFD_SETLK, F_RDLCK, start, self, &seen) != 0) return true;
    if (lock(fd, F_OFD_GETLK, F_WRLCK, start, (off_t)1 << PLACE, &seen) != 0) return true;
    if (seen.l_type == F_UNLCK) return true;
    *holder = (long)seen.l_len;
    lock(fd, F_OFD_SETLK, F_UNLCK, 0, 0, &seen);
    wait_a_moment(self);
  }
  return false;
}

bool claim_file(struct arena *a, const char *path, struct file_claim *out, long *holder) {
  struct file_place p;
  out->fd = -1;
  if (strcmp(path, "-") == 0 || !place_of(a, path, &p) || (p.there && !p.regular)) return true;
  const char *slash = strrchr(p.real, '/');
  if (!slash) return true;
  const char *folder = slash > p.real ? arena_strndup(a, p.real, (size_t)(slash - p.real)) : "/";
  uint64_t name = str_hash(STR_HASH_SEED, slash + 1, strlen(slash + 1));
  out->fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
  if (out->fd < 0 || claim_place(out->fd, (off_t)(name >> (64 - PLACES) << PLACE), holder)) return true;
  claim_end(out);
  return false;
}

uint64_t claim_stamp(const char *path) {
  struct stat st;
  if (!path || stat(path, &st) != 0) return 0;
  int64_t what[] = {(int64_t)st.st_dev, (int64_t)st.st_ino, (int64_t)st.st_size, (int64_t)st.st_mtim.tv_sec,
                    (int64_t)st.st_mtim.tv_nsec};
  return str_hash(STR_HASH_SEED, (const char *)what, sizeof what) | 1;
}

void claim_end(struct file_claim *c) {
  struct flock whole;
  if (c->fd < 0) return;
  lock(c->fd, F_OFD_SETLK, F_UNLCK, 0, 0, &whole); /* a process that was forked may have it open still */
  close(c->fd);
  c->fd = -1;
}
