/* Opening files to read: regular ones only. What a pipe, a device or a socket would do is not known beforehand, and
 * opening one may wait for ever, or rewind a tape. */
#ifndef DGC_BASE_FILE_H
#define DGC_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* The descriptor of a regular file and its size; -1: `*cause` says in words why there is none. */
int file_open(const char *path, int64_t *size, const char **cause);
/* Whether errno's value `error` tells of a machine that failed or is short of something, not of a wrong path. */
bool file_system_failed(int error);
/* As pread, but short only where the file ends: the bytes that were read, -1 with errno set. */
int64_t file_read(int fd, void *out, int64_t len, int64_t offset);

#endif
