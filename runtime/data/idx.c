/* SPDX-License-Identifier: Apache-2.0 */
/* IDX, the format of MNIST: 00 00 type rank, the sizes of the axes, the numbers; all big endian. */
#include "runtime/data/stored.h"

enum { HEADER = 4 + 4 * 255 };

static uint32_t be32(const uint8_t *p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

bool is_idx(const uint8_t *head, int64_t len) {
  return len >= 4 && head[0] == 0 && head[1] == 0 && head[2] >= 0x08 && head[2] <= 0x0e && head[3] >= 1;
}

/* The numbers of this type; STORED_KINDS: there is none. */
static enum stored_kind kind_of(uint8_t type) {
  switch (type) {
  case 0x08: return STORED_U8;
  case 0x09: return STORED_I8;
  case 0x0b: return STORED_I16;
  case 0x0c: return STORED_I32;
  case 0x0d: return STORED_F32;
  case 0x0e: return STORED_F64;
  default: return STORED_KINDS;
  }
}

int64_t idx_size(const uint8_t *head, int64_t len) {
  int rank = head[3];
  enum stored_kind kind = kind_of(head[2]);
  int64_t header = 4 + 4 * (int64_t)rank, bytes = kind == STORED_KINDS ? 0 : stored_size(kind);
  if (len < header || !bytes) return CONTENT_WRONG;
  for (int i = 0; i < rank; i++)
    if (__builtin_mul_overflow(bytes, (int64_t)be32(head + 4 + 4 * i), &bytes)) return CONTENT_WRONG;
  return __builtin_add_overflow(bytes, header, &bytes) ? CONTENT_WRONG : bytes;
}

bool read_idx(struct reader *r) {
  if (!reader_no_member(r, "IDX")) return false;
  const uint8_t *p = reader_bytes(r, &r->in, 0, r->in.len < HEADER ? r->in.len : HEADER);
  if (!p) return false;
  struct stored stored = {.kind = kind_of(p[2]), .big_endian = true};
  if (stored.kind == STORED_KINDS)
    return reader_fail(r, "IDX has no data of type 0x%02x; the file is damaged", p[2]);
  int rank = p[3];
  int64_t header = 4 + 4 * (int64_t)rank;
  if (r->in.len < header)
    return reader_fail(r, "its IDX header is truncated: %lld bytes", (long long)r->in.len);
  int64_t dims[MAX_RANK];
  for (int i = 0; i < rank && i < MAX_RANK; i++) dims[i] = be32(p + 4 + 4 * i);
  return reader_set_stored(r, stored, rank, dims, header, r->in.len - header);
}
