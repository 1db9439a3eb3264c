/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse matrices as scipy.sparse.save_npz writes them: an npz file with the members format ("csr"), shape, indptr,
 * indices and data. Row i has the values data[indptr[i] .. indptr[i + 1]] in the columns that indices says, in
 * ascending order; all else is zero.
 *
 * As a whole such a file has dense rows. `x.npz:places/16` has rows of 16 columns where there are values, -1 behind the
 * last, and `x.npz:values/16` the values there, 0 behind the last: nothing becomes dense. */
#include "runtime/data/npy.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS_LIMIT = 1 << 20 }; /* a few bytes of file must not become terabytes of rows */

/* What is read of a matrix: dense rows, or rows of so many places or values. */
struct wanted_rows {
  bool places, values;
  int64_t width;
};

struct csr {
  struct column_piece shape, starts, places, values;
  struct content own[4];
};

/* One member, as a list of numbers. */
static bool read_list(struct reader *r, const char *member, bool whole, struct column_piece *p,
                      struct content *own) {
  struct reader one = *r;
  one.member = member;
  one.piece = p;
  one.own = (struct content){0};
  bool ok = npz_array(&one);
  *own = one.own;
  if (!ok) return false;
  if (p->row.rank == 0 && (!whole || p->row.dtype == DT_I32 || p->row.dtype == DT_I64)) return true;
  return reader_fail(r, "member '%s' of this sparse matrix is no list of %s; the file is damaged", member,
                     whole ? "integers" : "numbers");
}

static int64_t number_at(const struct column_piece *list, int64_t i) {
  int64_t value = 0;
  convert_numbers(DT_I64, &value, (enum dtype)list->row.dtype, list->data + i * list->stride, 1);
  return value;
}

/* Whether the lists are rows of such a matrix. Everything is looked at before anything is allocated. */
static bool check_rows(struct reader *r, const struct csr *m, int64_t rows, int64_t columns) {
  if (m->starts.rows != rows + 1 || m->places.rows != m->values.rows || number_at(&m->starts, 0) != 0 ||
      number_at(&m->starts, rows) != m->values.rows)
    return reader_fail(r, "the members of this sparse matrix do not fit together; the file is damaged");
  for (int64_t row = 0, k = 0; row < rows; row++) {
    int64_t end = number_at(&m->starts, row + 1);
    if (end < k || end > m->values.rows)
      return reader_fail(r, "row %lld of this sparse matrix ends before it begins; the file is damaged",
                         (long long)row);
    for (int64_t before = -1; k < end; k++) {
      int64_t place = number_at(&m->places, k);
      if (place < 0 || place >= columns)
        return reader_fail(r, "row %lld has a value in column %lld of %lld; the file is damaged",
                           (long long)row, (long long)place, (long long)columns);
      if (place <= before)
        return reader_fail(
            r,
            "the columns of row %lld are not in order: call sum_duplicates() on the matrix and save it again",
            (long long)row);
      before = place;
    }
  }
  return true;
}

/* Copies the lists into one block: starts and places as i64, then the values. */
static bool join(struct reader *r, const struct csr *m, int64_t rows, int64_t columns) {
  int64_t count = m->values.rows, integers = rows + 1 + count,
          size = dtype_size((enum dtype)m->values.row.dtype);
  if (!content_alloc(&r->own, integers * 8 + count * size, r->path, r->loc, r->diags)) return false;
  int64_t *starts = r->own.map, *places = starts + rows + 1;
  uint8_t *values = (uint8_t *)(places + count);
  convert_numbers(DT_I64, starts, (enum dtype)m->starts.row.dtype, m->starts.data, rows + 1);
  convert_numbers(DT_I64, places, (enum dtype)m->places.row.dtype, m->places.data, count);
  memcpy(values, m->values.data, (size_t)(count * size));
  r->piece->row = type_make((enum dtype)m->values.row.dtype, 1, &columns);
  r->piece->rows = rows;
  r->piece->starts = starts;
  r->piece->places = places;
  r->piece->data = values;
  return true;
}

/* The places, or the values, of each row as a row of its own. */
static bool join_padded(struct reader *r, const struct csr *m, int64_t rows, const struct wanted_rows *w) {
  enum dtype from = (enum dtype)m->values.row.dtype, to = w->places ? DT_I32 : from;
  int64_t size = dtype_size(to), most = 0, where = 0;
  for (int64_t row = 0; row < rows; row++) {
    int64_t count = number_at(&m->starts, row + 1) - number_at(&m->starts, row);
    if (count > most) most = count, where = row;
  }
  if (most > w->width)
    return reader_fail(r, "row %lld has %lld values, and %lld are asked for: write %s/%lld", (long long)where,
                       (long long)most, (long long)w->width, w->places ? "places" : "values",
                       (long long)most);
  if (rows > MAX_ELEMENTS / w->width)
    return reader_fail(r, "%lld rows of %lld numbers are too many", (long long)rows, (long long)w->width);
  if (!content_alloc(&r->own, rows * w->width * size, r->path, r->loc, r->diags)) return false;
  uint8_t *out = r->own.map;
  memset(out, w->places ? 0xff : 0, (size_t)(rows * w->width * size));
  for (int64_t row = 0, k = 0; row < rows; row++) {
    int64_t end = number_at(&m->starts, row + 1);
    for (uint8_t *to_row = out + row * w->width * size; k < end; k++, to_row += size)
      if (w->places)
        convert_numbers(to, to_row, (enum dtype)m->places.row.dtype, m->places.data + k * m->places.stride,
                        1);
      else
        memcpy(to_row, m->values.data + k * m->values.stride, (size_t)size);
  }
  r->piece->row = type_make(to, 1, &w->width);
  r->piece->rows = rows;
  r->piece->stride = w->width * size;
  r->piece->data = out;
  return true;
}

static bool read_csr(struct reader *r, struct csr *m, const struct wanted_rows *w) {
  if (!read_list(r, "shape", true, &m->shape, &m->own[0])) return false;
  int64_t rows = m->shape.rows == 2 ? number_at(&m->shape, 0) : 0;
  int64_t columns = m->shape.rows == 2 ? number_at(&m->shape, 1) : 0;
  if (rows < 1 || columns < 1 || rows > MAX_ELEMENTS)
    return reader_fail(r, "this sparse matrix has no rows, no columns or too many of them");
  if (w->width && columns > INT32_MAX)
    return reader_fail(r, "it has %lld columns; their numbers must be i32", (long long)columns);
  if (!w->width && columns > COLUMNS_LIMIT)
    return reader_fail(r,
                       "it has %lld columns; as rows become dense, at most %d are supported; %s:places/16 "
                       "and values/16 stay sparse",
                       (long long)columns, COLUMNS_LIMIT, r->path);
  return read_list(r, "indptr", true, &m->starts, &m->own[1]) &&
         read_list(r, "indices", true, &m->places, &m->own[2]) &&
         read_list(r, "data", false, &m->values, &m->own[3]) && check_rows(r, m, rows, columns) &&
         (w->width ? join_padded(r, m, rows, w) : join(r, m, rows, columns));
}

static bool read_sparse(struct reader *r, const struct wanted_rows *w) {
  const struct content *b;
  int64_t at, len;
  char name[3];
  if (!content_load(&r->in, r->path, r->loc, r->diags)) return false;
  struct reader format = *r;
  format.member = "format";
  format.own = (struct content){0};
  bool ok = npz_member(&format, &b, &at, &len);
  bool csr = ok && len > 3 && content_read(b, at + len - 3, name, 3) && memcmp(name, "csr", 3) == 0;
  content_close(&format.own);
  if (!ok) return false;
  if (!csr) return reader_fail(r, "it is a sparse matrix of another format than CSR; save .tocsr() of it");
  struct csr m = {0};
  ok = read_csr(r, &m, w);
  for (int i = 0; i < 4; i++) content_close(&m.own[i]);
  return ok;
}

/* places/16, values/16. */
static struct wanted_rows wanted(const char *member) {
  struct wanted_rows w = {0};
  if (!member) return w;
  w.places = strncmp(member, "places/", 7) == 0;
  w.values = strncmp(member, "values/", 7) == 0;
  char *end = NULL;
  if ((w.places || w.values) && member[7] >= '1' && member[7] <= '9') w.width = strtoll(member + 7, &end, 10);
  if (!end || *end || w.width > COLUMNS_LIMIT) w.width = 0;
  return w;
}

bool read_npz(struct reader *r) {
  struct wanted_rows w = wanted(r->member);
  const char *member = r->member;
  if (w.width) r->member = NULL;
  bool sparse = npz_is_sparse(r);
  bool ok = sparse ? read_sparse(r, &w) : (r->member = member, npz_array(r));
  r->member = member;
  return ok;
}
