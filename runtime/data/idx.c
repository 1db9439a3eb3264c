/* IDX, the format of MNIST: 00 00 type rank, the sizes of the axes, the numbers; all big endian. */
#include "runtime/data/reader.h"

#include <string.h>

enum { HEADER = 4 + 4 * 255 };

static uint32_t be32(const uint8_t *p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

bool is_idx(const uint8_t *head, int64_t len) {
  return len >= 4 && head[0] == 0 && head[1] == 0 && head[2] >= 0x08 && head[2] <= 0x0e && head[3] >= 1;
}

int64_t idx_size(const uint8_t *head, int64_t len) {
  static const int sizes[] = {[0x08] = 1, [0x0c] = 4, [0x0d] = 4, [0x0e] = 8};
  int rank = head[3];
  int64_t header = 4 + 4 * (int64_t)rank, bytes = sizes[head[2]];
  if (len < header || !bytes) return CONTENT_WRONG;
  for (int i = 0; i < rank; i++)
    if (__builtin_mul_overflow(bytes, (int64_t)be32(head + 4 + 4 * i), &bytes)) return CONTENT_WRONG;
  return __builtin_add_overflow(bytes, header, &bytes) ? CONTENT_WRONG : bytes;
}

/* A copy of the numbers in this machine's byte order. */
static bool swap_bytes(struct reader *r, int64_t bytes) {
  struct column_piece *p = r->piece;
  if (!content_alloc(&r->own, bytes, r->path, r->loc, r->diags)) return false;
  uint8_t *out = r->own.map;
  int size = dtype_size((enum dtype)p->row.dtype);
  for (int64_t i = 0; i < bytes; i += size)
    for (int k = 0; k < size; k++) out[i + k] = p->data[i + size - 1 - k];
  p->data = out;
  return true;
}

bool read_idx(struct reader *r) {
  if (!reader_no_member(r, "IDX")) return false;
  const uint8_t *p = reader_bytes(r, &r->in, 0, r->in.len < HEADER ? r->in.len : HEADER);
  enum dtype dtype;
  if (!p) return false;
  switch (p[2]) {
  case 0x08: dtype = DT_U8; break;
  case 0x0c: dtype = DT_I32; break;
  case 0x0d: dtype = DT_F32; break;
  case 0x0e: dtype = DT_F64; break;
  default:
    return reader_fail(r, "IDX data of type 0x%02x (%s) is not supported; convert it to u8, i32, f32 or f64",
                       p[2],
                       p[2] == 0x09   ? "i8"
                       : p[2] == 0x0b ? "i16"
                                      : "unknown");
  }
  int rank = p[3];
  int64_t header = 4 + 4 * (int64_t)rank;
  if (r->in.len < header)
    return reader_fail(r, "its IDX header is truncated: %lld bytes", (long long)r->in.len);
  int64_t dims[MAX_RANK];
  for (int i = 0; i < rank && i < MAX_RANK; i++) dims[i] = be32(p + 4 + 4 * i);
  int64_t bytes = r->in.len - header;
  if (dtype != DT_U8 && !content_load(&r->in, r->path, r->loc, r->diags)) return false;
  if (!reader_set(r, dtype, rank, dims, header, bytes)) return false;
  return dtype == DT_U8 || swap_bytes(r, bytes);
}
