/* SPDX-License-Identifier: Apache-2.0 */
/* Opening files to read: regular ones only. What a pipe, a device or a socket would do is not known beforehand, and
 * opening one may wait for ever, or rewind a tape. */
#ifndef DGC_BASE_FILE_H
#define DGC_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* The descriptor of a regular file and its size; -1: `*cause` says in words why there is none. */
int file_open(const char *path, int64_t *size, const char **cause);
/* Which files a model may name: those that lie in one of these folders or below, when all symbolic links are resolved.
 * A hard link or a mount below a folder is below it. */
struct file_roots {
  const char *const *folders; /* as the user wrote them */
  int count;
};

/* As file_open, for a file that a model names; NULL: anywhere. What is opened is what was looked at, whoever may swap
 * links meanwhile. */
int file_open_within(const struct file_roots *roots, const char *path, int64_t *size, const char **cause);
/* The same of a folder, which may also be one of the roots. */
int file_open_folder_within(const struct file_roots *roots, const char *path, const char **cause);
bool file_is_folder(const char *path);
/* Whether an open file is named as a source is, where links to it lead: .dsl or .dg. */
bool file_is_source(int fd);
/* Whether errno's value `error` tells of a machine that failed or is short of something, not of a wrong path. */
bool file_system_failed(int error);
/* As pread, but short only where the file ends: the bytes that were read, -1 with errno set. */
int64_t file_read(int fd, void *out, int64_t len, int64_t offset);

#endif
