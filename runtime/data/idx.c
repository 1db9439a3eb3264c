/* IDX, the format of MNIST: 00 00 type rank, the sizes of the axes, the numbers; all big endian. */
#include "runtime/data/reader.h"

#include <string.h>

static uint32_t be32(const uint8_t *p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

bool is_idx(const struct blob *b) {
  return b->len >= 4 && b->bytes[0] == 0 && b->bytes[1] == 0 && b->bytes[2] >= 0x08 && b->bytes[2] <= 0x0e &&
         b->bytes[3] >= 1;
}

/* A copy of the numbers in this machine's byte order. */
static bool swap_bytes(struct reader *r, int64_t bytes) {
  struct piece *p = r->piece;
  if (!blob_alloc(&r->own, bytes, r->path, r->loc, r->diags)) return false;
  uint8_t *out = r->own.map;
  int size = dtype_size((enum dtype)p->row.dtype);
  for (int64_t i = 0; i < bytes; i += size)
    for (int k = 0; k < size; k++) out[i + k] = p->data[i + size - 1 - k];
  p->data = out;
  return true;
}

bool read_idx(struct reader *r) {
  if (!reader_no_member(r, "IDX")) return false;
  const uint8_t *p = r->in.bytes;
  enum dtype dtype;
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
  if (!reader_set(r, dtype, rank, dims, p + header, bytes)) return false;
  return dtype == DT_U8 || swap_bytes(r, bytes);
}
