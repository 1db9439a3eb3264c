/* SPDX-License-Identifier: Apache-2.0 */
/* Types: names, shape arithmetic, text. */
#include "ir/type.h"

#include <string.h>

static const struct {
  const char *name;
  int size;
} dtypes[DT_COUNT] = {
    [DT_F32] = {"f32", 4}, [DT_F64] = {"f64", 8},   [DT_I32] = {"i32", 4},   [DT_I64] = {"i64", 8},
    [DT_U8] = {"u8", 1},   [DT_BOOL] = {"bool", 1}, [DT_BF16] = {"bf16", 2}, [DT_F16] = {"f16", 2},
};

const char *dtype_name(enum dtype d) { return d < DT_COUNT ? dtypes[d].name : "?"; }

bool dtype_parse(const char *name, size_t len, enum dtype *out) {
  for (int d = 0; d < DT_COUNT; d++) {
    if (strlen(dtypes[d].name) != len || memcmp(dtypes[d].name, name, len) != 0) continue;
    *out = (enum dtype)d;
    return true;
  }
  return false;
}

int dtype_size(enum dtype d) { return d < DT_COUNT ? dtypes[d].size : 0; }
bool dtype_is_float(enum dtype d) { return d == DT_F32 || d == DT_F64; }
bool dtype_is_int(enum dtype d) { return d == DT_I32 || d == DT_I64 || d == DT_U8; }
bool dtype_is_narrow(enum dtype d) { return d == DT_BF16 || d == DT_F16; }

const char *dist_name(enum dist d) {
  switch (d) {
  case DIST_MIRRORED: return "mirrored";
  case DIST_PER_REPLICA: return "per_replica";
  case DIST_PARTIAL: return "partial(sum)";
  case DIST_PARTIAL_MAX: return "partial(max)";
  case DIST_PARTIAL_MIN: return "partial(min)";
  case DIST_NONE:
  case DIST_COUNT: break;
  }
  return "";
}

enum dist dist_partial(const char *reduction) {
  if (strcmp(reduction, "max") == 0) return DIST_PARTIAL_MAX;
  return strcmp(reduction, "min") == 0 ? DIST_PARTIAL_MIN : DIST_PARTIAL;
}

struct type type_scalar(enum dtype d) {
  return (struct type){.dtype = (uint8_t)d};
}

struct type type_make(enum dtype d, int rank, const int64_t *dims) {
  struct type t = {.dtype = (uint8_t)d, .rank = (uint8_t)rank};
  for (int i = 0; i < rank; i++) t.dim[i] = dims[i];
  return t;
}

struct type type_row(const struct type *t) {
  return type_make((enum dtype)t->dtype, t->rank - 1, t->dim + 1);
}

struct type type_with_dtype(struct type t, enum dtype d) {
  t.dtype = (uint8_t)d;
  return t;
}

bool shape_equal(const struct type *a, const struct type *b) {
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++)
    if (a->dim[i] != b->dim[i]) return false;
  return true;
}

bool type_equal(const struct type *a, const struct type *b) {
  return a->dtype == b->dtype && shape_equal(a, b);
}

int type_batch_axis(const struct type *t) {
  for (int i = 0; i < t->rank; i++)
    if (t->dim[i] < 0) return i;
  return -1;
}

bool type_has_whole(const struct type *t) {
  for (int i = 0; i < t->rank; i++)
    if (dim_is_whole(t->dim[i])) return true;
  return false;
}

bool type_is_symbolic(const struct type *t) { return type_batch_axis(t) >= 0; }

int64_t type_count(const struct type *t) {
  int64_t count = 1;
  for (int i = 0; i < t->rank; i++) count *= t->dim[i];
  return count;
}

int64_t type_bytes(const struct type *t) { return type_count(t) * dtype_size((enum dtype)t->dtype); }

int64_t type_row_bytes(const struct type *t) {
  int64_t bytes = dtype_size((enum dtype)t->dtype);
  for (int i = 1; i < t->rank; i++) bytes *= t->dim[i];
  return bytes;
}

/* The sizes other than 0 must multiply to no more than the limit, so that strides never overflow either. */
bool type_valid(const struct type *t) {
  if (t->dtype >= DT_COUNT || t->rank > MAX_RANK) return false;
  int64_t count = 1, most = MAX_ELEMENTS;
  for (int i = 0; i < t->rank; i++) {
    int64_t dim = t->dim[i] ? t->dim[i] : 1;
    if (dim_is_whole(dim)) {
      if (dim % DIM_WHOLE || most < MAX_ELEMENTS) return false;
      dim /= DIM_WHOLE;
      most = INT64_MAX / DIM_WHOLE; /* so that a count with N is a number, too */
    }
    if (!dim_mul(count, dim, &count)) return false;
  }
  return count <= most && count >= -most;
}

/* A size past the limit stays past it: the result is then not valid. */
struct type type_specialize(const struct type *t, int64_t batch) {
  struct type out = *t;
  for (int i = 0; i < t->rank; i++) {
    int64_t times = dim_is_whole(t->dim[i]) ? t->dim[i] / DIM_WHOLE : -t->dim[i];
    if (times > 0 && !dim_mul(times, batch, &out.dim[i])) out.dim[i] = MAX_ELEMENTS + 1;
  }
  return out;
}

bool dim_mul(int64_t a, int64_t b, int64_t *out) {
  int64_t product;
  if ((a < 0 && b < 0) || dim_is_whole(a) || dim_is_whole(b) || __builtin_mul_overflow(a, b, &product))
    return false;
  if (product > MAX_ELEMENTS || product < -MAX_ELEMENTS) return false;
  *out = product;
  return true;
}

bool dim_add(int64_t a, int64_t b, int64_t *out) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum) || sum < -MAX_ELEMENTS) return false;
  if (sum > MAX_ELEMENTS && !(dim_is_whole(a) && dim_is_whole(b))) return false;
  *out = sum;
  return true;
}

void dim_print(struct str *s, int64_t dim) {
  if (dim == DIM_WHOLE)
    str_putc(s, 'N');
  else if (dim_is_whole(dim) && dim % DIM_WHOLE == 0)
    str_printf(s, "%lld*N", (long long)(dim / DIM_WHOLE));
  else if (dim >= 0)
    str_int(s, dim);
  else if (dim == -1)
    str_putc(s, 'B');
  else
    str_printf(s, "%lld*B", -(long long)dim);
}

void type_print(struct str *s, const struct type *t) {
  str_put(s, dtype_name((enum dtype)t->dtype));
  str_putc(s, '[');
  for (int i = 0; i < t->rank; i++) {
    if (i) str_putc(s, ',');
    dim_print(s, t->dim[i]);
  }
  str_putc(s, ']');
}

const char *type_text(struct arena *a, const struct type *t) {
  struct str s = str_make(a);
  type_print(&s, t);
  return s.data;
}
