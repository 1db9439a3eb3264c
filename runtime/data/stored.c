/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of other types and orders: see stored.h. First bytes change places, then types, then axes. */
#include "runtime/data/stored.h"

#include "runtime/data/half.h"
#include "runtime/data/strided.h"

#include <errno.h>
#include <string.h>

static const struct stored_type {
  const char *name;
  int size;
  enum dtype dtype; /* what it becomes */
} kinds[STORED_KINDS] = {
    [STORED_BOOL] = {"bool", 1, DT_BOOL}, [STORED_I8] = {"i8", 1, DT_I32},
    [STORED_I16] = {"i16", 2, DT_I32},    [STORED_I32] = {"i32", 4, DT_I32},
    [STORED_I64] = {"i64", 8, DT_I64},    [STORED_U8] = {"u8", 1, DT_U8},
    [STORED_U16] = {"u16", 2, DT_I32},    [STORED_U32] = {"u32", 4, DT_I64},
    [STORED_U64] = {"u64", 8, DT_I64},    [STORED_F16] = {"f16", 2, DT_F32},
    [STORED_BF16] = {"bf16", 2, DT_F32},  [STORED_F32] = {"f32", 4, DT_F32},
    [STORED_F64] = {"f64", 8, DT_F64},
};

int stored_size(enum stored_kind kind) { return kinds[kind].size; }

/* Whether the language has a type for it. */
static bool has_type(enum stored_kind kind) {
  return kind == STORED_BOOL || kind == STORED_U8 || kind == STORED_I32 || kind == STORED_I64 ||
         kind == STORED_F32 || kind == STORED_F64;
}

static void swap_bytes(uint8_t *p, int64_t count, int size) {
  for (int64_t i = 0; i < count; i++, p += size)
    for (int k = 0; k < size / 2; k++) {
      uint8_t byte = p[k];
      p[k] = p[size - 1 - k];
      p[size - 1 - k] = byte;
    }
}

#define WIDEN(TO, FROM, VALUE)                          \
  do {                                                  \
    for (int64_t i = 0; i < count; i++) {               \
      FROM v;                                           \
      memcpy(&v, in + i * (int64_t)sizeof v, sizeof v); \
      ((TO *)out)[i] = VALUE;                           \
    }                                                   \
  } while (0)

static void widen(enum stored_kind kind, void *out, const uint8_t *in, int64_t count) {
  switch (kind) {
  case STORED_I8: WIDEN(int32_t, int8_t, v); break;
  case STORED_I16: WIDEN(int32_t, int16_t, v); break;
  case STORED_U16: WIDEN(int32_t, uint16_t, v); break;
  case STORED_U32: WIDEN(int64_t, uint32_t, v); break;
  case STORED_U64: WIDEN(uint64_t, uint64_t, v); break;
  case STORED_F16: WIDEN(float, uint16_t, half_to_float(DT_F16, v)); break;
  case STORED_BF16: WIDEN(float, uint16_t, half_to_float(DT_BF16, v)); break;
  case STORED_BOOL:
  case STORED_I32:
  case STORED_I64:
  case STORED_U8:
  case STORED_F32:
  case STORED_F64: memcpy(out, in, (size_t)(count * kinds[kind].size)); break;
  case STORED_KINDS: break;
  }
}

/* The bytes become memory of the reader's own, in place of what it had. */
static bool own(struct reader *r, struct content *made, int64_t bytes) {
  return content_alloc(made, bytes, r->path, r->loc, r->diags);
}

static void replace(struct reader *r, const struct content *made) {
  content_close(&r->own);
  r->own = *made;
}

static bool change_types(struct reader *r, struct stored s, int64_t at, int64_t count) {
  struct content made;
  int size = kinds[s.kind].size;
  if (!own(r, &made, count * dtype_size(kinds[s.kind].dtype))) return false;
  const struct content *b = r->own.map ? &r->own : &r->in;
  uint8_t window[PIECE_WINDOW], *out = made.map;
  for (int64_t i = 0, n; i < count; i += n) {
    n = count - i < PIECE_WINDOW / size ? count - i : PIECE_WINDOW / size;
    if (!content_read(b, at + i * size, window, n * size)) {
      int error = errno;
      content_close(&made);
      return content_unread(r->path, error, r->loc, r->diags);
    }
    if (s.big_endian) swap_bytes(window, n, size);
    widen(s.kind, out + i * dtype_size(kinds[s.kind].dtype), window, n);
  }
  replace(r, &made);
  return true;
}

/* What i64 cannot hold has become negative. */
static bool check_u64(struct reader *r, int64_t count) {
  const int64_t *values = (const void *)r->own.bytes;
  for (int64_t i = 0; i < count; i++)
    if (values[i] < 0)
      return reader_fail(r, "number %lld of its u64 data is %llu; the largest that i64 holds is 2^63 - 1",
                         (long long)i, (unsigned long long)values[i]);
  return true;
}

static bool change_axes(struct reader *r, enum dtype dtype, int rank, const int64_t *dims, int64_t count) {
  struct content made;
  int size = dtype_size(dtype);
  if (!own(r, &made, count * size)) return false;
  int64_t stride[MAX_RANK], step = 1; /* the first axis is the fastest there */
  for (int i = 0; i < rank; step *= dims[i++]) stride[i] = step;
  copy_strided(made.map, r->own.bytes, (size_t)size, rank, dims, stride);
  replace(r, &made);
  return true;
}

bool reader_set_stored(struct reader *r, struct stored s, int rank, const int64_t *dims, int64_t at,
                       int64_t available) {
  enum dtype dtype = kinds[s.kind].dtype;
  int size = kinds[s.kind].size;
  bool swapped = s.big_endian && size > 1, turned = s.columns_first && rank > 1;
  if (!swapped && !turned && has_type(s.kind)) return reader_set(r, dtype, rank, dims, at, available);
  if (!reader_holds(r, kinds[s.kind].name, size, rank, dims, available)) return false;
  int64_t count = available / size;
  if (!change_types(r, s, at, count) || (s.kind == STORED_U64 && !check_u64(r, count)) ||
      (turned && !change_axes(r, dtype, rank, dims, count)))
    return false;
  return reader_set(r, dtype, rank, dims, 0, count * dtype_size(dtype));
}
