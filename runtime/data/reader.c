/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of the single formats share: errors, bytes, and the piece that they fill in. */
#include "runtime/data/reader.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

bool reader_fail(struct reader *r, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *message = arena_vprintf(r->arena, fmt, ap);
  va_end(ap);
  diag_error(r->diags, r->loc, "%s: %s", r->path, message);
  return false;
}

bool reader_no_member(struct reader *r, const char *format) {
  if (!r->member) return true;
  return reader_fail(r, "%s holds one array; leave out ':%s'", format, r->member);
}

const uint8_t *reader_bytes(struct reader *r, const struct content *b, int64_t offset, int64_t len) {
  if (!b->in_file) return b->bytes + offset;
  uint8_t *copy = arena_alloc(r->arena, (size_t)len);
  if (content_read(b, offset, copy, len)) return copy;
  content_unread(r->path, errno, r->loc, r->diags);
  return NULL;
}

/* Bytes that are neither 0 nor 1 are no numbers. */
static bool check_bool(struct reader *r, const struct content *b, int64_t at, int64_t bytes) {
  uint8_t window[PIECE_WINDOW];
  for (int64_t i = 0, n; i < bytes; i += n) {
    n = bytes - i < PIECE_WINDOW ? bytes - i : PIECE_WINDOW;
    if (!content_read(b, at + i, window, n)) return content_unread(r->path, errno, r->loc, r->diags);
    for (int64_t k = 0; k < n; k++)
      if (window[k] > 1)
        return reader_fail(r, "byte %lld of its bool data is %d, not 0 or 1; the file is damaged",
                           (long long)(i + k), window[k]);
  }
  return true;
}

bool reader_holds(struct reader *r, const char *type, int size, int rank, const int64_t *dims,
                  int64_t available) {
  if (rank < 1)
    return reader_fail(r, "it holds a single number; a column needs a first axis that counts rows");
  if (rank > MAX_RANK) return reader_fail(r, "it has %d axes; at most %d are supported", rank, MAX_RANK);
  int64_t bytes = size;
  bool fits = true;
  for (int i = 0; i < rank && fits; i++)
    fits = dims[i] >= 0 && !__builtin_mul_overflow(bytes, dims[i], &bytes);
  if (!fits || bytes != available) {
    struct str shape = str_make(r->arena);
    for (int i = 0; i < rank; i++) str_printf(&shape, "%s%lld", i ? "," : "", (long long)dims[i]);
    return reader_fail(
        r, "its header says %s[%s], but %lld bytes of data follow; the file is damaged or truncated", type,
        shape.data, (long long)available);
  }
  if (bytes == 0) return reader_fail(r, "it holds no numbers");
  return bytes / size <= MAX_ELEMENTS || reader_fail(r, "it holds too many numbers");
}

bool reader_set(struct reader *r, enum dtype dtype, int rank, const int64_t *dims, int64_t at,
                int64_t available) {
  const struct content *b = r->own.map ? &r->own : &r->in;
  if (!reader_holds(r, dtype_name(dtype), dtype_size(dtype), rank, dims, available)) return false;
  struct column_piece *p = r->piece;
  p->row = type_make(dtype, rank - 1, dims + 1);
  p->rows = dims[0];
  p->data = b->in_file ? NULL : b->bytes + at;
  p->at = at;
  p->stride = available / dims[0];
  return dtype != DT_BOOL || check_bool(r, b, at, available);
}
