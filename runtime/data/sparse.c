/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse matrices as scipy.sparse.save_npz writes them: an npz file with the members format ("csr"), shape, indptr,
 * indices and data. Row i has the values data[indptr[i] .. indptr[i + 1]] in the columns that indices says, in
 * ascending order; all else is zero. */
#include "runtime/data/npy.h"

#include <string.h>

enum { COLUMNS_LIMIT = 1 << 20 }; /* a few bytes of file must not become terabytes of rows */

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

static bool read_csr(struct reader *r, struct csr *m) {
  if (!read_list(r, "shape", true, &m->shape, &m->own[0])) return false;
  int64_t rows = m->shape.rows == 2 ? number_at(&m->shape, 0) : 0;
  int64_t columns = m->shape.rows == 2 ? number_at(&m->shape, 1) : 0;
  if (rows < 1 || columns < 1 || rows > MAX_ELEMENTS)
    return reader_fail(r, "this sparse matrix has no rows, no columns or too many of them");
  if (columns > COLUMNS_LIMIT)
    return reader_fail(r, "it has %lld columns; as rows become dense, at most %d are supported",
                       (long long)columns, COLUMNS_LIMIT);
  return read_list(r, "indptr", true, &m->starts, &m->own[1]) &&
         read_list(r, "indices", true, &m->places, &m->own[2]) &&
         read_list(r, "data", false, &m->values, &m->own[3]) && check_rows(r, m, rows, columns) &&
         join(r, m, rows, columns);
}

static bool read_sparse(struct reader *r) {
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
  ok = read_csr(r, &m);
  for (int i = 0; i < 4; i++) content_close(&m.own[i]);
  return ok;
}

bool read_npz(struct reader *r) { return npz_is_sparse(r) ? read_sparse(r) : npz_array(r); }
