/* SPDX-License-Identifier: Apache-2.0 */
/* npz: a zip archive of npy files, stored or deflated; with zip64 where numpy writes it. */
#include "runtime/data/decompress.h"
#include "runtime/data/npy.h"

#include <string.h>

enum { DIRECTORY_LIMIT = 1 << 26 };
enum { EOCD_SIZE = 22, EOCD64_SIZE = 56, LOCATOR_SIZE = 20, CENTRAL_SIZE = 46, LOCAL_SIZE = 30 };

static uint32_t le16(const uint8_t *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }
static uint32_t le32(const uint8_t *p) { return le16(p) | le16(p + 2) << 16; }
static uint64_t le64(const uint8_t *p) { return le32(p) | (uint64_t)le32(p + 4) << 32; }

bool is_npz(const uint8_t *head, int64_t len) {
  return len >= 4 && (memcmp(head, "PK\3\4", 4) == 0 || memcmp(head, "PK\5\6", 4) == 0);
}

struct directory {
  const uint8_t *p, *end;
  uint64_t count;
};

struct zip_member {
  const char *name; /* not terminated, without ".npy" */
  int name_len;
  uint32_t flags, method, crc;
  uint64_t compressed, size, offset;
};

/* Whether `len` bytes at `offset` lie in the file. */
static bool inside(const struct content *b, uint64_t offset, uint64_t len) {
  uint64_t total = (uint64_t)b->len;
  return offset <= total && len <= total - offset;
}

/* Finds the central directory through the record at the end of the file. */
static bool find_directory(struct reader *r, struct directory *out) {
  const struct content *b = &r->in;
  int64_t tail = EOCD_SIZE + 0xffff + LOCATOR_SIZE, begin = b->len > tail ? b->len - tail : 0;
  const uint8_t *end = reader_bytes(r, b, begin, b->len - begin);
  for (int64_t at = b->len - EOCD_SIZE; end && at >= begin; at--) {
    const uint8_t *e = end + (at - begin);
    if (memcmp(e, "PK\5\6", 4) != 0 || at + EOCD_SIZE + le16(e + 20) != b->len) continue;
    uint64_t count = le16(e + 10), size = le32(e + 12), offset = le32(e + 16);
    const uint8_t *locator = e - LOCATOR_SIZE;
    if (at - begin >= LOCATOR_SIZE && memcmp(locator, "PK\6\7", 4) == 0) {
      uint64_t big = le64(locator + 8);
      if (!inside(b, big, EOCD64_SIZE)) return false;
      const uint8_t *record = reader_bytes(r, b, (int64_t)big, EOCD64_SIZE);
      if (!record || memcmp(record, "PK\6\6", 4) != 0) return false;
      count = le64(record + 32), size = le64(record + 40), offset = le64(record + 48);
    }
    if (!inside(b, offset, size) || (b->in_file && size > DIRECTORY_LIMIT)) return false;
    const uint8_t *p = reader_bytes(r, b, (int64_t)offset, (int64_t)size);
    *out = (struct directory){p, p + size, count};
    return p != NULL;
  }
  return false;
}

/* Sizes past 4 GiB stand in an extra field, in this order, each only if its 32-bit place is full of ones. */
static bool read_zip64(const uint8_t *extra, const uint8_t *end, struct zip_member *m) {
  uint64_t *wide[] = {&m->size, &m->compressed, &m->offset};
  while (end - extra >= 4) {
    uint32_t id = le16(extra), len = le16(extra + 2);
    extra += 4;
    if (len > (size_t)(end - extra)) return false;
    const uint8_t *p = extra;
    for (int i = 0; id == 1 && i < 3; i++) {
      if (*wide[i] != UINT32_MAX) continue;
      if (extra + len - p < 8) return false;
      *wide[i] = le64(p);
      p += 8;
    }
    extra += len;
  }
  return true;
}

static bool next_member(struct directory *d, struct zip_member *m) {
  const uint8_t *p = d->p;
  if (d->end - p < CENTRAL_SIZE || memcmp(p, "PK\1\2", 4) != 0) return false;
  uint32_t name = le16(p + 28), extra = le16(p + 30), comment = le16(p + 32);
  if ((size_t)(d->end - p) < (size_t)CENTRAL_SIZE + name + extra + comment) return false;
  *m = (struct zip_member){.name = (const char *)p + CENTRAL_SIZE,
                           .name_len = (int)name,
                           .flags = le16(p + 8),
                           .method = le16(p + 10),
                           .crc = le32(p + 16),
                           .compressed = le32(p + 20),
                           .size = le32(p + 24),
                           .offset = le32(p + 42)};
  if (name > 4 && memcmp(m->name + name - 4, ".npy", 4) == 0) m->name_len -= 4;
  const uint8_t *fields = p + CENTRAL_SIZE + name;
  d->p = fields + extra + comment;
  return read_zip64(fields, fields + extra, m);
}

/* The member asked for; the only one if none was asked for. */
static bool find_member(struct reader *r, struct zip_member *out) {
  struct directory d;
  int before = r->diags->nerrors;
  if (!find_directory(r, &d))
    return r->diags->nerrors > before
               ? false
               : reader_fail(r, "its zip directory is missing; the file is damaged or truncated");
  struct str names = str_make(r->arena);
  uint64_t found = 0, count = d.count;
  for (uint64_t i = 0; i < count; i++) {
    struct zip_member m;
    if (!next_member(&d, &m)) return reader_fail(r, "its zip directory is malformed; the file is damaged");
    if (names.len < 400) str_printf(&names, "%s%.*s", i ? ", " : "", m.name_len, m.name);
    if (r->member &&
        (strlen(r->member) != (size_t)m.name_len || memcmp(r->member, m.name, (size_t)m.name_len) != 0))
      continue;
    *out = m;
    found++;
  }
  if (found == 1) return true;
  if (count == 0) return reader_fail(r, "it has no members");
  if (!r->member)
    return reader_fail(r, "it has several members; write %s:NAME with one of %s", r->path, names.data);
  if (found) return reader_fail(r, "it has %llu members named '%s'", (unsigned long long)found, r->member);
  return reader_fail(r, "it has no member '%s', only %s", r->member, names.data);
}

/* Whether all of the file is one sparse matrix. */
bool npz_is_sparse(struct reader *r) {
  struct directory d;
  struct zip_member m;
  bool format = false, shape = false;
  if (r->member || !find_directory(r, &d)) return false;
  while (next_member(&d, &m)) {
    format |= m.name_len == 6 && memcmp(m.name, "format", 6) == 0;
    shape |= m.name_len == 5 && memcmp(m.name, "shape", 5) == 0;
  }
  return format && shape;
}

bool npz_member(struct reader *r, const struct content **out, int64_t *at, int64_t *len) {
  struct zip_member m = {0};
  if (!find_member(r, &m)) return false;
  if (m.flags & 1) return reader_fail(r, "member '%.*s' is encrypted", m.name_len, m.name);
  if (m.method != 0 && m.method != 8)
    return reader_fail(r,
                       "member '%.*s' is compressed with zip method %u; use numpy.savez or savez_compressed",
                       m.name_len, m.name, m.method);
  uint64_t start = 0;
  bool ok = inside(&r->in, m.offset, LOCAL_SIZE);
  const uint8_t *local = ok ? reader_bytes(r, &r->in, (int64_t)m.offset, LOCAL_SIZE) : NULL;
  if (ok && !local) return false;
  ok = ok && memcmp(local, "PK\3\4", 4) == 0;
  if (ok) {
    start = m.offset + LOCAL_SIZE + le16(local + 26) + le16(local + 28);
    ok = inside(&r->in, start, m.compressed) && (m.method == 8 || m.compressed == m.size) &&
         m.size <= INT64_MAX;
  }
  if (!ok) return reader_fail(r, "member '%.*s' lies outside of the file; it is damaged", m.name_len, m.name);
  int64_t compressed = (int64_t)m.compressed, size = (int64_t)m.size;
  *out = &r->in, *at = (int64_t)start, *len = size;
  if (m.method == 8) {
    if (!content_inflate(&r->own, &r->in, *at, compressed, size, m.crc, r->path, r->loc, r->diags))
      return false;
    *out = &r->own, *at = 0;
  } else if (!content_crc_ok(&r->in, *at, size, m.crc)) {
    return reader_fail(r, "member '%.*s' does not match its checksum; the file is damaged", m.name_len,
                       m.name);
  }
  const uint8_t *head = reader_bytes(r, *out, *at, size < 6 ? size : 6);
  if (head && !is_npy(head, size))
    return reader_fail(r, "member '%.*s' is not an npy array", m.name_len, m.name);
  return head != NULL;
}

bool npz_array(struct reader *r) {
  const struct content *b;
  int64_t at, len;
  if (!npz_member(r, &b, &at, &len)) return false;
  const char *file = r->path; /* what is wrong with it is so of the member */
  if (r->member) r->path = arena_printf(r->arena, "%s:%s", file, r->member);
  bool ok = npy_parse(r, b, at, len);
  r->path = file;
  return ok;
}
