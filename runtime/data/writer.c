/* SPDX-License-Identifier: Apache-2.0 */
/* Writes predictions row by row, as npy, CSV or text. */
#include "runtime/data/atomic.h"
#include "runtime/data/data.h"

#include <string.h>

enum { NPY_HEADER = 256 };

enum prediction_format { FORMAT_NPY, FORMAT_CSV, FORMAT_TEXT };

struct row_writer {
  struct atomic_file file;
  enum prediction_format format;
  int ncolumns;
  const char **names;
  struct type *types; /* of a row */
  int64_t rows;
  struct str text; /* a line */
};

static const char *npy_descr(enum dtype dtype) {
  switch (dtype) {
  case DT_F32: return "<f4";
  case DT_F64: return "<f8";
  case DT_I32: return "<i4";
  case DT_I64: return "<i8";
  case DT_U8: return "|u1";
  case DT_BOOL:
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
  return "|b1";
}

/* Room for any row count, so that the header can be written again when it is known. */
static void npy_header(const struct row_writer *w, char header[NPY_HEADER]) {
  const struct type *t = &w->types[0];
  static const char magic[10] = {
      '\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (NPY_HEADER - 10) & 0xff, (NPY_HEADER - 10) >> 8};
  memcpy(header, magic, sizeof magic);
  int n = (int)sizeof magic;
  n += snprintf(header + n, (size_t)(NPY_HEADER - n),
                "{'descr': '%s', 'fortran_order': False, 'shape': (%lld,", npy_descr(t->dtype),
                (long long)w->rows);
  for (int i = 0; i < t->rank; i++)
    n += snprintf(header + n, (size_t)(NPY_HEADER - n), "%s%lld", i ? ", " : " ", (long long)t->dim[i]);
  n += snprintf(header + n, (size_t)(NPY_HEADER - n), "), }");
  memset(header + n, ' ', (size_t)(NPY_HEADER - 1 - n));
  header[NPY_HEADER - 1] = '\n';
}

static void csv_name(struct str *s, const char *name, int64_t index) {
  bool quote = strpbrk(name, ",\"\r\n") != NULL;
  if (quote) str_putc(s, '"');
  for (; *name; name++) {
    if (*name == '"') str_putc(s, '"');
    str_putc(s, *name);
  }
  if (index >= 0) str_printf(s, "_%lld", (long long)index);
  if (quote) str_putc(s, '"');
}

static bool put_text(struct row_writer *w, struct diags *d) {
  bool ok = atomic_write(&w->file, w->text.data, w->text.len, d);
  w->text.len = 0;
  return ok;
}

static bool csv_header(struct row_writer *w, struct diags *d) {
  for (int i = 0; i < w->ncolumns; i++) {
    int64_t count = type_count(&w->types[i]);
    for (int64_t k = 0; k < count; k++) {
      if (i || k) str_putc(&w->text, ',');
      csv_name(&w->text, w->names[i], w->types[i].rank ? k : -1);
    }
  }
  str_putc(&w->text, '\n');
  return put_text(w, d);
}

static bool ends_in(const char *path, const char *suffix) {
  size_t n = strlen(path), m = strlen(suffix);
  return n > m && strcmp(path + n - m, suffix) == 0;
}

static bool is_stream(const char *path) { return strcmp(path, "-") == 0 || strncmp(path, "/dev/", 5) == 0; }

static enum prediction_format format_of(const char *path) {
  return ends_in(path, ".npy") ? FORMAT_NPY : ends_in(path, ".txt") ? FORMAT_TEXT : FORMAT_CSV;
}

bool row_writer_takes(const char *path, const char *const *names, const struct type *row_types, int n,
                      struct diags *d) {
  enum prediction_format format = format_of(path);
  if (format == FORMAT_CSV && !ends_in(path, ".csv") && !is_stream(path))
    diag_error(d, LOC_NONE, "cannot write %s: its name must end in .npy, .csv or .txt", path);
  else if (format != FORMAT_CSV && n != 1)
    diag_error(d, LOC_NONE,
               "cannot write %s: %s file holds one array, but there are %d; write .csv, or choose one", path,
               format == FORMAT_NPY ? "an npy" : "a text", n);
  else if (format == FORMAT_TEXT && row_types[0].dtype != DT_U8)
    diag_error(d, LOC_NONE, "cannot write %s: a text is of bytes, u8, and %s is %s; write .npy", path,
               names[0], dtype_name((enum dtype)row_types[0].dtype));
  else
    return true;
  return false;
}

static bool begin_file(struct row_writer *w, const char *path, struct diags *d) {
  char header[NPY_HEADER];
  switch (w->format) {
  case FORMAT_CSV: return csv_header(w, d);
  case FORMAT_NPY:
    if (w->file.temp) {
      npy_header(w, header);
      return atomic_write(&w->file, header, NPY_HEADER, d);
    }
    diag_error(d, LOC_NONE, "cannot write %s: npy needs a regular file; write CSV", path);
    return false;
  case FORMAT_TEXT: return true;
  }
  return false;
}

struct row_writer *row_writer_create(struct arena *a, const char *path, const char *const *names,
                                     const struct type *row_types, int n, struct diags *d) {
  struct row_writer *w = arena_new(a, struct row_writer);
  w->format = format_of(path);
  if (!row_writer_takes(path, names, row_types, n, d)) return NULL;
  w->ncolumns = n;
  w->names = arena_new_array(a, (size_t)n, const char *);
  for (int i = 0; i < n; i++) w->names[i] = arena_strdup(a, names[i]);
  w->types = arena_copy(a, row_types, (size_t)n * sizeof *row_types);
  w->text = str_make(a);
  if (!atomic_open(&w->file, a, path, d)) return NULL;
  if (begin_file(w, path, d)) return w;
  atomic_discard(&w->file);
  return NULL;
}

static void csv_number(struct str *s, enum dtype dtype, const char *p) {
  float f32;
  double f64;
  int32_t i32;
  int64_t i64;
  switch (dtype) {
  case DT_F32:
    memcpy(&f32, p, sizeof f32);
    str_float(s, f32);
    break;
  case DT_F64:
    memcpy(&f64, p, sizeof f64);
    str_double(s, f64);
    break;
  case DT_I32:
    memcpy(&i32, p, sizeof i32);
    str_printf(s, "%d", i32);
    break;
  case DT_I64:
    memcpy(&i64, p, sizeof i64);
    str_printf(s, "%lld", (long long)i64);
    break;
  case DT_U8:
  case DT_BOOL:
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: str_printf(s, "%d", (unsigned char)*p); break;
  }
}

static bool put_csv_row(struct row_writer *w, const void *const *data, int64_t row, struct diags *d) {
  bool first = true;
  for (int i = 0; i < w->ncolumns; i++) {
    int64_t count = type_count(&w->types[i]), size = dtype_size(w->types[i].dtype);
    const char *p = (const char *)data[i] + row * count * size;
    for (int64_t k = 0; k < count; k++, p += size, first = false) {
      if (!first) str_putc(&w->text, ',');
      csv_number(&w->text, w->types[i].dtype, p);
    }
  }
  str_putc(&w->text, '\n');
  return put_text(w, d);
}

bool row_writer_put(struct row_writer *w, const void *const *data, int64_t rows, struct diags *d) {
  bool ok = !w->file.failed;
  size_t size = (size_t)type_bytes(&w->types[0]);
  if (w->format == FORMAT_NPY) ok = ok && atomic_write(&w->file, data[0], (size_t)rows * size, d);
  for (int64_t row = 0; ok && w->format != FORMAT_NPY && row < rows; row++)
    if (w->format == FORMAT_CSV)
      ok = put_csv_row(w, data, row, d);
    else
      ok = atomic_write(&w->file, (const char *)data[0] + (size_t)row * size, size, d) &&
           atomic_write(&w->file, "\n", 1, d);
  if (ok) w->rows += rows;
  return ok;
}

bool row_writer_finish(struct row_writer *w, struct diags *d) {
  char header[NPY_HEADER];
  npy_header(w, header);
  if (w->format == FORMAT_NPY) atomic_patch(&w->file, 0, header, NPY_HEADER, d);
  return atomic_commit(&w->file, d);
}

void row_writer_abandon(struct row_writer *w) {
  if (w) atomic_discard(&w->file);
}
