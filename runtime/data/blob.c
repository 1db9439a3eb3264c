/* Maps files and inflates them. The only user of zlib. No descriptor stays open. */
#include "runtime/data/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { STEP = 1 << 30 }; /* zlib counts in 32 bits */

/* Deflate packs at most 1032 bytes into one, plus a constant. */
static int64_t inflate_bound(int64_t packed) {
  int64_t bound;
  return __builtin_mul_overflow(packed, 1032, &bound) || bound > INFLATE_LIMIT ? INFLATE_LIMIT : bound + 1032;
}

bool blob_alloc(struct blob *b, int64_t len, const char *path, struct loc loc, struct diags *d) {
  *b = (struct blob){.len = len};
  if (len == 0) return true;
  void *map = mmap(NULL, (size_t)len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) {
    diag_error(d, loc, "%s: no memory for its %lld bytes: %s", path, (long long)len, strerror(errno));
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
  *b = (struct blob){0};
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    diag_error(d, loc, "cannot open %s: %s", path, strerror(errno));
    return false;
  }
  struct stat st;
  const char *cause = NULL;
  if (fstat(fd, &st) != 0) {
    cause = strerror(errno);
  } else if (!S_ISREG(st.st_mode)) {
    cause = S_ISDIR(st.st_mode) ? "it is a folder" : "it is not a regular file; copy its content into one";
  } else if (st.st_size > 0) {
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
      cause = strerror(errno);
    else
      *b = (struct blob){.bytes = map, .len = st.st_size, .map = map, .map_len = (size_t)st.st_size};
  } else {
    cause = "it is empty";
  }
  close(fd);
  if (cause) diag_error(d, loc, "cannot read %s: %s", path, cause);
  return !cause;
}

/* Feeds all of `in` through `z` into `out`. True at the clean end of the last stream. */
static bool inflate_all(z_stream *z, const struct blob *in, bool many, struct blob *out, int64_t limit,
                        const char **cause) {
  int64_t fed = 0, made = 0;
  for (;;) {
    if (z->avail_in == 0 && fed < in->len) {
      int64_t step = in->len - fed < STEP ? in->len - fed : STEP;
      z->next_in = (Bytef *)(in->bytes + fed);
      z->avail_in = (uInt)step;
      fed += step;
    }
    if (made == out->len && out->len < limit) { /* untouched pages cost nothing: grow fast */
      int64_t len = out->len * 2 < limit ? out->len * 2 : limit;
      void *map = mremap(out->map, out->map_len, (size_t)len, MREMAP_MAYMOVE);
      if (map == MAP_FAILED) return *cause = "no memory for the unpacked bytes", false;
      out->map = map, out->map_len = (size_t)len, out->bytes = map, out->len = len;
    }
    int64_t room = out->len - made < STEP ? out->len - made : STEP;
    Bytef end_probe; /* with the memory full, only the end of the stream may follow */
    z->next_out = room ? (Bytef *)out->map + made : &end_probe;
    z->avail_out = room ? (uInt)room : 1;
    uInt before = z->avail_out;
    int rc = inflate(z, Z_NO_FLUSH);
    uInt got = before - z->avail_out;
    if (!room && got) {
      *cause = many ? "it unpacks to more than 16 GiB; unpack it on disk and use that file"
                    : "it unpacks to more than its header says; the file is damaged";
      return false;
    }
    made += got;
    if (rc == Z_STREAM_END) {
      if (!many || (z->avail_in == 0 && fed == in->len)) break;
      if (inflateReset(z) != Z_OK) return *cause = "zlib failed", false;
    } else if (rc == Z_BUF_ERROR && z->avail_in == 0 && fed == in->len) {
      return *cause = "the packed data ends too early; the file is truncated", false;
    } else if (rc != Z_OK) {
      return *cause = z->msg ? z->msg : "the packed data is damaged", false;
    }
  }
  out->len = made;
  return true;
}

static bool unpack(struct blob *b, const struct blob *in, int window, int64_t first, int64_t limit,
                   const char *path, struct loc loc, struct diags *d) {
  if (!blob_alloc(b, first < limit ? first : limit, path, loc, d)) return false;
  z_stream z = {0};
  const char *cause = "zlib failed";
  bool ok = inflateInit2(&z, window) == Z_OK && inflate_all(&z, in, window > 15, b, limit, &cause);
  if (!ok) {
    diag_error(d, loc, "cannot unpack %s: %s", path, cause);
    blob_close(b);
  }
  inflateEnd(&z);
  return ok;
}

bool blob_open(struct blob *b, const char *path, struct loc loc, struct diags *d) {
  if (!map_file(b, path, loc, d)) return false;
  if (b->len < 2 || b->bytes[0] != 0x1f || b->bytes[1] != 0x8b) return true;
  struct blob packed = *b;
  bool ok = unpack(b, &packed, 15 + 16, packed.len * 4 + 4096, inflate_bound(packed.len), path, loc, d);
  blob_close(&packed);
  return ok;
}

bool blob_crc_ok(const uint8_t *bytes, int64_t len, uint32_t crc) {
  return crc32_z(0, bytes, (z_size_t)len) == crc;
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
  if (!unpack(b, &in, -15, len, len, path, loc, d)) return false;
  if (b->len == len && blob_crc_ok(b->bytes, len, crc)) return true;
  diag_error(d, loc, "%s: the unpacked bytes do not match their checksum; the file is damaged", path);
  blob_close(b);
  return false;
}
