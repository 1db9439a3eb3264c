/* SPDX-License-Identifier: Apache-2.0 */
/* Makes calls of the system fail, as disks, kernels and other people do: a library for LD_PRELOAD.
 *
 *   DGC_INJECT=CALL:K:HOW     the K-th call of CALL (from 1) fails; with K+ all from there on
 *   DGC_HOST=NAME             dgc's MPI takes the machine for another one: its gethostname
 *   DGC_INJECT_COUNT=FILE     how often each was called is written there at exit, "CALL COUNT" a line
 *
 * CALL: open (openat, fopen, opendir), read (pread), write (pwrite), fsync, close, rename, link (linkat), unlink, stat
 * (fstat, access), flock, thread (pthread_create); mmap and malloc (calloc, realloc, aligned_alloc, posix_memalign)
 * called by dgc or libdgc; foreign: the latter called by any other library; disk: write called by dgc or libdgc;
 * message: MPI_Start; yield: sched_yield called by dgc or libdgc, where one waits for others.
 * HOW: the name of an errno: EIO ENOSPC EINTR ENOMEM EACCES EMFILE EAGAIN; short: half of the bytes of a read or write
 * are done; hang: it never returns; kill: the process is killed there; stop: it is stopped (SIGSTOP); exit: it ends as
 * if all were well; slow: the call is made a millisecond later.
 *
 * Files below /proc and /sys, standard streams and the loading of libraries are left alone; so is the memory of
 * variables that a thread has for itself, which glibc asks for when the thread first reads one: where there is none it
 * ends the process (exit code 127), and no program can do anything about that. */
#undef _FILE_OFFSET_BITS /* it would give two functions one name */
#pragma GCC visibility push(default)
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum call {
  OPEN,
  READ,
  WRITE,
  FSYNC,
  CLOSE,
  RENAME,
  LINK,
  UNLINK,
  STAT,
  FLOCK,
  MMAP,
  THREAD,
  MALLOC,
  FOREIGN,
  DISK,
  MESSAGE,
  YIELD,
  NCALLS
};
static const char *const names[NCALLS] = {"open",   "read",    "write", "fsync",   "close", "rename",
                                          "link",   "unlink",  "stat",  "flock",   "mmap",  "thread",
                                          "malloc", "foreign", "disk",  "message", "yield"};
enum how { FAIL, SHORT, HANG, KILL, STOP, EXIT, SLOW };

static atomic_long counts[NCALLS];
static enum call target = NCALLS;
static long at;
static bool onwards, ready;
static enum how how;
static int error;
static uintptr_t ours[4][2]; /* code of dgc and of libdgc */
static int nours;

static const struct {
  const char *name;
  int number;
} errors[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EINTR", EINTR},  {"ENOMEM", ENOMEM},
              {"EACCES", EACCES}, {"EMFILE", EMFILE}, {"EAGAIN", EAGAIN}};

static int look(struct dl_phdr_info *info, size_t size, void *first) {
  (void)size;
  const char *slash = strrchr(info->dlpi_name, '/'), *name = slash ? slash + 1 : info->dlpi_name;
  bool program = *(bool *)first;
  *(bool *)first = false;
  if (!program && strncmp(name, "libdgc", 6) != 0) return 0;
  for (int i = 0; i < info->dlpi_phnum && nours < 4; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
    ours[nours][0] = info->dlpi_addr + p->p_vaddr;
    ours[nours++][1] = info->dlpi_addr + p->p_vaddr + p->p_memsz;
  }
  return 0;
}

static bool is_ours(const void *caller) {
  for (int i = 0; i < nours; i++)
    if ((uintptr_t)caller >= ours[i][0] && (uintptr_t)caller < ours[i][1]) return true;
  return false;
}

__attribute__((constructor)) static void begin(void) {
  const char *text = getenv("DGC_INJECT");
  bool first = true;
  dl_iterate_phdr(look, &first);
  char call[16] = "", what[16] = "", plus = 0;
  if (text && (sscanf(text, "%15[a-z]:%ld+:%15[A-Za-z]", call, &at, what) == 3
                   ? (plus = '+')
                   : sscanf(text, "%15[a-z]:%ld:%15[A-Za-z]", call, &at, what) == 3)) {
    for (int i = 0; i < NCALLS; i++)
      if (strcmp(call, names[i]) == 0) target = (enum call)i;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
      if (strcmp(what, errors[i].name) == 0) error = errors[i].number;
    how = strcmp(what, "short") == 0  ? SHORT
          : strcmp(what, "hang") == 0 ? HANG
          : strcmp(what, "kill") == 0 ? KILL
          : strcmp(what, "stop") == 0 ? STOP
          : strcmp(what, "exit") == 0 ? EXIT
          : strcmp(what, "slow") == 0 ? SLOW
                                      : FAIL;
    onwards = plus == '+';
  }
  ready = true;
}

__attribute__((destructor)) static void end(void) {
  const char *path = getenv("DGC_INJECT_COUNT");
  ready = false;
  FILE *f = path ? fopen(path, "w") : NULL;
  for (int i = 0; f && i < NCALLS; i++) fprintf(f, "%s %ld\n", names[i], atomic_load(&counts[i]));
  if (f) fclose(f);
}

/* Whether this call is the one; the other ways than failing are gone there. */
static bool fails(enum call call) {
  if (!ready) return false;
  long k = atomic_fetch_add(&counts[call], 1) + 1;
  if (call != target || !(k == at || (onwards && k > at))) return false;
  if (how == KILL) raise(SIGKILL);
  if (how == STOP) raise(SIGSTOP);
  if (how == EXIT) _exit(0);
  if (how == SLOW) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  while (how == HANG) pause();
  errno = error;
  return how == FAIL || how == SHORT;
}

/* EINTR is an error of calls that wait only; a short one is none of those that move no bytes. */
static bool bad(enum call call, bool any_length) {
  int before = errno;
  if (fails(call) && (how != SHORT || any_length)) return true;
  errno = before;
  return false;
}

#define REAL(name)               \
  static __typeof__(name) *real; \
  if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

static bool left_alone(const char *path) {
  return strncmp(path, "/proc", 5) == 0 || strncmp(path, "/sys", 4) == 0 || strncmp(path, "/dev", 4) == 0;
}

#define OPENS(name)                                                              \
  int name(const char *path, int flags, ...) {                                   \
    REAL(name);                                                                  \
    va_list ap;                                                                  \
    va_start(ap, flags);                                                         \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;        \
    va_end(ap);                                                                  \
    return !left_alone(path) && bad(OPEN, false) ? -1 : real(path, flags, mode); \
  }
OPENS(open)
OPENS(open64)

#define OPENATS(name)                                                     \
  int name(int folder, const char *path, int flags, ...) {                \
    REAL(name);                                                           \
    va_list ap;                                                           \
    va_start(ap, flags);                                                  \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0; \
    va_end(ap);                                                           \
    return bad(OPEN, false) ? -1 : real(folder, path, flags, mode);       \
  }
OPENATS(openat)
OPENATS(openat64)

#define FOPENS(name)                                                        \
  FILE *name(const char *restrict path, const char *restrict mode) {        \
    REAL(name);                                                             \
    return !left_alone(path) && bad(OPEN, false) ? NULL : real(path, mode); \
  }
FOPENS(fopen)
FOPENS(fopen64)

DIR *opendir(const char *path) {
  REAL(opendir);
  return bad(OPEN, false) ? NULL : real(path);
}

/* Whether a call that moves bytes goes on, and how many it moves then. */
static bool moves(enum call call, size_t *len) {
  if (!bad(call, true)) return true;
  if (how == SHORT && *len > 1) *len /= 2;
  return how == SHORT;
}

ssize_t read(int fd, void *to, size_t len) {
  REAL(read);
  return fd <= 2 || moves(READ, &len) ? real(fd, to, len) : -1;
}

ssize_t write(int fd, const void *from, size_t len) {
  REAL(write);
  if (fd > 2 && is_ours(__builtin_return_address(0)) && !moves(DISK, &len)) return -1;
  return fd <= 2 || moves(WRITE, &len) ? real(fd, from, len) : -1;
}

#define AT_OFFSET(name, call, pointer)                           \
  ssize_t name(int fd, pointer data, size_t len, off_t offset) { \
    REAL(name);                                                  \
    return moves(call, &len) ? real(fd, data, len, offset) : -1; \
  }
AT_OFFSET(pread, READ, void *)
AT_OFFSET(pread64, READ, void *)
AT_OFFSET(pwrite, WRITE, const void *)
AT_OFFSET(pwrite64, WRITE, const void *)

int fsync(int fd) {
  REAL(fsync);
  return bad(FSYNC, false) ? -1 : real(fd);
}

/* As Linux does it, the descriptor is gone. */
int close(int fd) {
  REAL(close);
  int before = errno;
  bool fail = bad(CLOSE, false);
  int code = real(fd);
  errno = fail ? error : code ? errno : before;
  return fail ? -1 : code;
}

int rename(const char *from, const char *to) {
  REAL(rename);
  return bad(RENAME, false) ? -1 : real(from, to);
}

int linkat(int from, const char *path, int to, const char *name, int flags) {
  REAL(linkat);
  return bad(LINK, false) ? -1 : real(from, path, to, name, flags);
}

int unlink(const char *path) {
  REAL(unlink);
  return bad(UNLINK, false) ? -1 : real(path);
}

#define STATS(name, fname, type)                                        \
  int name(const char *restrict path, type *restrict st) {              \
    REAL(name);                                                         \
    return !left_alone(path) && bad(STAT, false) ? -1 : real(path, st); \
  }                                                                     \
  int fname(int fd, type *st) {                                         \
    REAL(fname);                                                        \
    return fd > 2 && bad(STAT, false) ? -1 : real(fd, st);              \
  }
STATS(stat, fstat, struct stat)
STATS(stat64, fstat64, struct stat64)

int access(const char *path, int mode) {
  REAL(access);
  return !left_alone(path) && bad(STAT, false) ? -1 : real(path, mode);
}

int flock(int fd, int operation) {
  REAL(flock);
  return bad(FLOCK, false) ? -1 : real(fd, operation);
}

#define MMAPS(name)                                                                        \
  void *name(void *address, size_t len, int protection, int flags, int fd, off_t offset) { \
    REAL(name);                                                                            \
    bool fail = is_ours(__builtin_return_address(0)) && bad(MMAP, false);                  \
    return fail ? MAP_FAILED : real(address, len, protection, flags, fd, offset);          \
  }
MMAPS(mmap)
MMAPS(mmap64)

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg) {
  REAL(pthread_create);
  return bad(THREAD, false) ? error : real(thread, attr, run, arg);
}

/* As any mpi.h declares it; it cannot fail. */
int MPI_Start(void *request);
int MPI_Start(void *request) {
  static int (*real)(void *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "MPI_Start");
  fails(MESSAGE);
  return real(request);
}

int gethostname(char *name, size_t len) {
  REAL(gethostname);
  Dl_info caller;
  const char *other = getenv("DGC_HOST");
  if (!other || !dladdr(__builtin_return_address(0), &caller) || !strstr(caller.dli_fname, "dgc-mpi"))
    return real(name, len);
  snprintf(name, len, "%s", other);
  return 0;
}

int sched_yield(void) {
  REAL(sched_yield);
  if (is_ours(__builtin_return_address(0))) fails(YIELD);
  return real();
}

/* --- memory --- */

extern void *__libc_malloc(size_t size), *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size), *__libc_memalign(size_t alignment, size_t size);

static _Thread_local __attribute__((tls_model("initial-exec"))) int in_tls;

#ifdef __x86_64__ /* elsewhere it is called from within glibc, if at all */
void *__tls_get_addr(void *index);
void *__tls_get_addr(void *index) {
  REAL(__tls_get_addr);
  in_tls++;
  void *place = real(index);
  in_tls--;
  return place;
}
#endif

#define NO_MEMORY                                                                             \
  (ready && !in_tls && bad(is_ours(__builtin_return_address(0)) ? MALLOC : FOREIGN, false) && \
   (errno = ENOMEM))

void *malloc(size_t size) { return NO_MEMORY ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return NO_MEMORY ? NULL : __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { return NO_MEMORY ? NULL : __libc_realloc(old, size); }
void *aligned_alloc(size_t alignment, size_t size) {
  return NO_MEMORY ? NULL : __libc_memalign(alignment, size);
}
int posix_memalign(void **out, size_t alignment, size_t size) {
  void *p = NO_MEMORY ? NULL : __libc_memalign(alignment, size);
  if (p) *out = p;
  return p ? 0 : ENOMEM;
}
