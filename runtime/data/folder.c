/* SPDX-License-Identifier: Apache-2.0 */
/* Lists folders: see folder.h. */
#include "runtime/data/folder.h"

#include "base/grow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH = 32 };

struct path_list {
  const char **all;
  int64_t count, room;
};

struct folder_walk {
  struct arena *scratch; /* as GROW calls it: of the paths, too */
  const char *const *suffixes;
  struct path_list files, folders;
  struct folder *out;
  const char *where, *cause;
};

static void add(struct folder_walk *w, struct path_list *n, const char *name) {
  GROW(w, n->all, n->count, n->room);
  n->all[n->count++] = name;
}

static bool fail(struct folder_walk *w, const char *where, const char *cause) {
  w->where = where, w->cause = cause;
  return false;
}

static bool is_wanted(const struct folder_walk *w, const char *name) {
  size_t len = strlen(name);
  for (const char *const *s = w->suffixes; *s; s++)
    if (len > strlen(*s) && strcasecmp(name + len - strlen(*s), *s) == 0) return true;
  return false;
}

/* What the entry is, links followed; it may have gone meanwhile: 0 then. */
static mode_t kind_of(int fd, const struct dirent *e, bool *link) {
  struct stat st;
  *link = false;
  if (e->d_type == DT_REG) return S_IFREG;
  if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  *link = S_ISLNK(st.st_mode);
  if (*link && fstatat(fd, e->d_name, &st, 0) != 0) return S_IFREG; /* to nothing: who opens it says so */
  return st.st_mode & S_IFMT;
}

static bool walk_folder(struct folder_walk *w, int fd, const char *before, int depth);

static bool enter(struct folder_walk *w, int at, const char *name, const char *path, int depth) {
  if (depth == DEPTH) return fail(w, path, "folders lie too deep in each other");
  int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return fail(w, path, strerror(errno));
  if (depth == 0) add(w, &w->folders, path);
  return walk_folder(w, fd, arena_printf(w->scratch, "%s/", path), depth + 1);
}

static bool take_entry(struct folder_walk *w, int fd, const struct dirent *e, const char *before, int depth) {
  bool link;
  if (e->d_name[0] == '.') return true;
  const char *path = arena_printf(w->scratch, "%s%s", before, e->d_name);
  mode_t mode = kind_of(fd, e, &link);
  if (S_ISDIR(mode) && link) return fail(w, path, "it is a link to a folder; name that folder itself");
  if (S_ISDIR(mode)) return enter(w, fd, e->d_name, path, depth);
  if (is_wanted(w, e->d_name)) {
    add(w, &w->files, path);
  } else {
    if (!w->out->other || strcmp(path, w->out->other) < 0) w->out->other = path;
    w->out->others++;
  }
  return true;
}

/* Closes `fd`. */
static bool walk_folder(struct folder_walk *w, int fd, const char *before, int depth) {
  DIR *dir = fdopendir(fd);
  if (!dir) {
    close(fd);
    return fail(w, before, strerror(errno));
  }
  bool good = true;
  const struct dirent *e;
  while (good && (errno = 0, e = readdir(dir))) good = take_entry(w, fd, e, before, depth);
  if (good && errno) good = fail(w, before, strerror(errno));
  closedir(dir);
  return good;
}

static int by_bytes(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char **sorted(struct path_list *n) {
  if (n->count) qsort(n->all, (size_t)n->count, sizeof *n->all, by_bytes);
  return n->all;
}

bool folder_list(struct arena *a, const struct file_roots *roots, const char *path,
                 const char *const *suffixes, struct folder *out, const char **where, const char **cause) {
  *out = (struct folder){0};
  *where = "";
  int fd = file_open_folder_within(roots, path, cause);
  if (fd < 0) return false;
  struct folder_walk w = {.scratch = a, .suffixes = suffixes, .out = out};
  bool good = walk_folder(&w, fd, "", 0);
  *where = w.where, *cause = w.cause;
  out->files = sorted(&w.files), out->nfiles = w.files.count;
  out->folders = sorted(&w.folders), out->nfolders = w.folders.count;
  return good;
}
