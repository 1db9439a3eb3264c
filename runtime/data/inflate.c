/* Inflates by means of zlib: nothing else uses it. */
#include "runtime/data/inflate.h"

#include <sys/mman.h>
#include <zlib.h>

enum { STEP = 1 << 30 }; /* zlib counts in 32 bits */

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

bool inflate_blob(struct blob *b, const struct blob *in, enum inflate_format format, int64_t first,
                  int64_t limit, const char *path, struct loc loc, struct diags *d) {
  int window = format == INFLATE_GZIP ? 15 + 16 : -15;
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

bool blob_crc_ok(const uint8_t *bytes, int64_t len, uint32_t crc) {
  return crc32_z(0, bytes, (z_size_t)len) == crc;
}
