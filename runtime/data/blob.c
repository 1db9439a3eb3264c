/* Maps files. No descriptor stays open. */
#include "runtime/data/inflate.h"

#include "base/file.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Deflate packs at most 1032 bytes into one, plus a constant. */
static int64_t inflate_bound(int64_t packed) {
  int64_t bound;
  return __builtin_mul_overflow(packed, 1032, &bound) || bound > INFLATE_LIMIT ? INFLATE_LIMIT : bound + 1032;
}

static bool blob_fail(const char *path, struct loc loc, const char *cause, int error, struct diags *d) {
  if (file_system_failed(error))
    diag_failure(d, loc, "cannot read %s: %s", path, cause);
  else
    diag_error(d, loc, "cannot read %s: %s", path, cause);
  return false;
}

bool blob_alloc(struct blob *b, int64_t len, const char *path, struct loc loc, struct diags *d) {
  *b = (struct blob){.len = len};
  if (len == 0) return true;
  void *map = mmap(NULL, (size_t)len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) {
    diag_failure(d, loc, "%s: no memory for its %lld bytes: %s", path, (long long)len, strerror(errno));
    return false;
  }
  b->map = map, b->map_len = (size_t)len, b->bytes = map;
  return true;
}

void blob_close(struct blob *b) {
  if (b->map) munmap(b->map, b->map_len);
  *b = (struct blob){0};
}

static bool map_file(struct blob *b, const char *path, struct loc loc, struct diags *d) {
  const char *cause;
  int64_t size;
  *b = (struct blob){0};
  int fd = file_open(path, &size, &cause);
  if (fd < 0) return blob_fail(path, loc, cause, errno, d);
  if (size > 0) {
    void *map = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
      blob_fail(path, loc, strerror(errno), errno, d);
    else
      *b = (struct blob){.bytes = map, .len = size, .map = map, .map_len = (size_t)size};
  } else
    blob_fail(path, loc, "it is empty", 0, d);
  close(fd);
  return b->map != NULL;
}

bool blob_open(struct blob *b, const char *path, struct loc loc, struct diags *d) {
  if (!map_file(b, path, loc, d)) return false;
  if (b->len < 2 || b->bytes[0] != 0x1f || b->bytes[1] != 0x8b) return true;
  struct blob packed = *b;
  bool ok =
      inflate_blob(b, &packed, INFLATE_GZIP, packed.len * 4 + 4096, inflate_bound(packed.len), path, loc, d);
  blob_close(&packed);
  return ok;
}

bool blob_inflate(struct blob *b, const uint8_t *packed, int64_t packed_len, int64_t len, uint32_t crc,
                  const char *path, struct loc loc, struct diags *d) {
  *b = (struct blob){0};
  if (len <= 0 || len > inflate_bound(packed_len)) {
    diag_error(d, loc, "%s: %lld packed bytes cannot hold %lld; the file is damaged", path,
               (long long)packed_len, (long long)len);
    return false;
  }
  struct blob in = {.bytes = packed, .len = packed_len};
  if (!inflate_blob(b, &in, INFLATE_RAW, len, len, path, loc, d)) return false;
  if (b->len == len && blob_crc_ok(b->bytes, len, crc)) return true;
  diag_error(d, loc, "%s: the unpacked bytes do not match their checksum; the file is damaged", path);
  blob_close(b);
  return false;
}
