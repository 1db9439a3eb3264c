/* SPDX-License-Identifier: Apache-2.0 */
/* What is there is known by its device and number: hard links are one file. What is not there is known by the last
 * folder on its way that is, and by the names behind it. */
#include "base/place.h"

#include "base/str.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_LINKS = 40 };

static bool is_there(struct arena *a, const char *path, struct file_place *out) {
  struct stat st;
  char real[PATH_MAX];
  if (stat(path, &st) != 0) return false;
  *out = (struct file_place){.there = true,
                             .regular = S_ISREG(st.st_mode),
                             .folder = S_ISDIR(st.st_mode),
                             .device = (uint64_t)st.st_dev,
                             .inode = (uint64_t)st.st_ino,
                             .rest = "",
                             .real = arena_strdup(a, realpath(path, real) ? real : path)};
  return true;
}

/* Where a link leads from the folder that it lies in; NULL: it is none. */
static const char *link_target(struct arena *a, const char *path, const char *folder) {
  char to[PATH_MAX];
  ssize_t len = readlink(path, to, sizeof to - 1);
  if (len <= 0) return NULL;
  to[len] = 0;
  return to[0] == '/' ? arena_strdup(a, to) : arena_printf(a, "%s/%s", folder, to);
}

/* One name behind a folder that may not be there either; what is not there has no links in it. */
static void go_down(struct arena *a, struct file_place *at, const char *name) {
  const char *slash = *at->rest ? strrchr(at->rest, '/') : NULL;
  if (strcmp(name, ".") == 0 || !*name) return;
  if (strcmp(name, "..") == 0) { /* out of what is not there */
    at->rest = slash ? arena_strndup(a, at->rest, (size_t)(slash - at->rest)) : "";
    at->real = arena_strndup(a, at->real, (size_t)(strrchr(at->real, '/') - at->real));
    return;
  }
  at->rest = *at->rest ? arena_printf(a, "%s/%s", at->rest, name) : arena_strdup(a, name);
  at->real = arena_printf(a, "%s/%s", strcmp(at->real, "/") == 0 ? "" : at->real, name);
}

static bool find(struct arena *a, const char *path, int links, struct file_place *out) {
  if (is_there(a, path, out)) return true;
  if (errno != ENOENT && errno != ENOTDIR) return false;
  size_t len = strlen(path);
  while (len > 1 && path[len - 1] == '/') len--;
  path = arena_strndup(a, path, len);
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  const char *folder = !slash ? "." : slash == path ? "/" : arena_strndup(a, path, (size_t)(slash - path));
  if (len == 0 || (slash == path && !*name)) return false;
  const char *to = link_target(a, path, folder);
  if (to) return links < MOST_LINKS && find(a, to, links + 1, out);
  if (!find(a, folder, links, out)) return false;
  out->there = out->regular = out->folder = false;
  go_down(a, out, name);
  return true;
}

bool place_of(struct arena *a, const char *path, struct file_place *out) { return find(a, path, 0, out); }

bool place_same(const struct file_place *a, const struct file_place *b) {
  return a->device == b->device && a->inode == b->inode && strcmp(a->rest, b->rest) == 0;
}

bool place_one(struct arena *a, const char *x, const char *y) {
  struct file_place at, other;
  return strcmp(x, y) == 0 || (place_of(a, x, &at) && place_of(a, y, &other) && place_same(&at, &other));
}

bool place_below(const struct file_place *folder, const struct file_place *file) {
  size_t len = strlen(folder->real);
  if (strcmp(folder->real, "/") == 0) return true;
  return strncmp(file->real, folder->real, len) == 0 && file->real[len] == '/';
}
