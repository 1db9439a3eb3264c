/* SPDX-License-Identifier: Apache-2.0 */
/* Inflates by means of zlib: nothing else uses it. */
#include "runtime/data/inflate.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

enum {
  WINDOW = 1 << 14,
  STEP = 1 << 30, /* zlib counts in 32 bits */
  HEAD = 1 << 17, /* enough for most headers to tell what follows */
};

struct inflate_stream {
  z_stream z;
  const struct deflated *from;
  struct content *out;
  int64_t fed, made;
  bool ended;
  const char *cause;
  int error; /* of reading, with `cause` NULL */
  uint8_t window[WINDOW];
};

static bool gave_all(const struct inflate_stream *s) { return s->z.avail_in == 0 && s->fed == s->from->len; }

static bool feed(struct inflate_stream *s) {
  const struct deflated *from = s->from;
  int64_t left = from->len - s->fed, n = left < WINDOW ? left : WINDOW;
  if (s->z.avail_in || left == 0) return true;
  if (!content_read(from->in, from->offset + s->fed, s->window, n)) {
    s->error = errno;
    s->cause = content_why(errno);
    return false;
  }
  s->z.next_in = s->window;
  s->z.avail_in = (uInt)n;
  s->fed += n;
  return true;
}

static bool all_zero(const uint8_t *p, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (p[i]) return false;
  return true;
}

/* Whether nothing but zeros follows a gzip file, with which tapes and tar fill up: it is left out, as gzip does. */
static bool skip_padding(struct inflate_stream *s) {
  const struct deflated *from = s->from;
  uint8_t window[WINDOW];
  if (!all_zero(s->z.next_in, s->z.avail_in)) return false;
  for (int64_t at = s->fed, n; at < from->len; at += n) {
    n = from->len - at < WINDOW ? from->len - at : WINDOW;
    if (!content_read(from->in, from->offset + at, window, n)) {
      s->error = errno;
      s->cause = content_why(errno);
      return false;
    }
    if (!all_zero(window, n)) return false;
  }
  s->z.avail_in = 0;
  s->fed = from->len;
  return true;
}

/* Untouched pages cost nothing: grows fast. */
static bool make_room(struct inflate_stream *s, int64_t limit) {
  struct content *b = s->out;
  if (s->made < b->len || b->len >= limit) return true;
  int64_t len = b->len * 2 < limit ? b->len * 2 : limit;
  void *map = mremap(b->map, b->map_len, (size_t)len, MREMAP_MAYMOVE);
  if (map == MAP_FAILED) {
    s->error = errno;
    s->cause = "no memory for the decompressed bytes";
    return false;
  }
  b->map = map, b->map_len = (size_t)len, b->bytes = map, b->len = len;
  return true;
}

/* zlib has been refused memory: nothing is wrong with the data. */
static bool no_memory(struct inflate_stream *s) {
  s->error = ENOMEM;
  s->cause = "no memory for zlib";
  return false;
}

/* One call of zlib, into `size` bytes of memory or, with none, to see whether more would come: that is `*got`. */
static bool step(struct inflate_stream *s, int64_t size, uInt *got) {
  Bytef probe;
  z_stream *z = &s->z;
  z->next_out = size ? (Bytef *)s->out->map + s->made : &probe;
  z->avail_out = size ? (uInt)(size < STEP ? size : STEP) : 1;
  uInt before = z->avail_out;
  int rc = inflate(z, Z_NO_FLUSH);
  if (rc == Z_MEM_ERROR) return no_memory(s);
  *got = before - z->avail_out;
  if (rc == Z_STREAM_END) {
    s->ended = !s->from->size || gave_all(s) || skip_padding(s);
    if (s->ended || (!s->cause && feed(s) && inflateReset(z) == Z_OK)) return true; /* they may be joined */
    if (!s->cause) s->cause = "zlib failed";
  } else if (rc == Z_BUF_ERROR && gave_all(s))
    s->cause = "the compressed data ends too early; the file is truncated";
  else if (rc != Z_OK && rc != Z_BUF_ERROR)
    s->cause = z->msg ? z->msg : "the compressed data is damaged";
  return !s->cause;
}

/* Until the stream ends or there are `limit` bytes. */
static bool inflate_to(struct inflate_stream *s, int64_t limit) {
  while (!s->ended && s->made < limit) {
    uInt got;
    if (!feed(s) || !make_room(s, limit)) return false;
    int64_t end = s->out->len < limit ? s->out->len : limit;
    if (!step(s, end - s->made, &got)) return false;
    s->made += got;
  }
  return true;
}

/* Only the end may follow. */
static bool inflate_end(struct inflate_stream *s, const char *cause) {
  uInt got = 0;
  while (!s->ended && !got)
    if (!feed(s) || !step(s, 0, &got)) return false;
  if (got) s->cause = cause;
  return !got;
}

/* Content without a header that tells its length must leave room for other things. */
static int64_t half_of_memory(void) {
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? (int64_t)pages / 2 * size : INFLATE_LIMIT;
}

static bool inflate_file(struct inflate_stream *s, int64_t limit) {
  int64_t wanted = HEAD, tells = -HEAD;
  while (tells < 0 && !s->ended) {
    if (!inflate_to(s, wanted < limit ? wanted : limit)) return false;
    tells = s->ended ? 0 : s->from->size(s->from->path, s->out->bytes, s->made);
    if (tells == CONTENT_WRONG) return true;
    if (tells < 0 && (-tells <= s->made || s->made == limit)) tells = 0;
    wanted = -tells;
  }
  if (tells > limit)
    return s->cause = "its header says more than its compressed bytes can hold; the file is damaged", false;
  if (tells > 0)
    return inflate_to(s, tells) &&
           inflate_end(s, "it decompresses to more than its header says; the file is damaged");
  int64_t most = half_of_memory() < limit ? half_of_memory() : limit;
  return inflate_to(s, most) && inflate_end(s, "it decompresses to more than half of the memory, or 16 GiB; "
                                               "decompress it on disk and use that file");
}

static bool inflate_raw(struct inflate_stream *s, int64_t len) {
  return inflate_to(s, len) &&
         inflate_end(s, "it decompresses to more than its header says; the file is damaged");
}

bool inflate_content(struct content *b, const struct deflated *from, int64_t limit, struct diags *d) {
  struct inflate_stream s = {.from = from, .out = b};
  if (!content_alloc(b, HEAD < limit ? HEAD : limit, from->path, from->loc, d)) return false;
  int rc = inflateInit2(&s.z, from->size ? 15 + 16 : -15);
  bool ok = rc == Z_MEM_ERROR ? no_memory(&s)
                              : rc == Z_OK && (from->size ? inflate_file(&s, limit) : inflate_raw(&s, limit));
  inflateEnd(&s.z);
  b->len = s.made;
  if (ok) return true;
  if (!s.cause || s.error)
    diag_failure(d, from->loc, "cannot decompress %s: %s", from->path, s.cause ? s.cause : "zlib failed");
  else
    diag_error(d, from->loc, "cannot decompress %s: %s", from->path, s.cause);
  content_close(b);
  return false;
}

uint32_t crc_add(uint32_t crc, const uint8_t *bytes, int64_t len) {
  return (uint32_t)crc32_z(crc, bytes, (z_size_t)len);
}
