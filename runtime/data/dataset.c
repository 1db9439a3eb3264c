/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets: columns of equal length, each of one file or of several, cut to a range of rows. */
#include "runtime/data/half.h"
#include "runtime/data/reader.h"
#include "runtime/data/vocabulary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 28 };

/* An end of a range: empty, or a number that may count from the end. */
static bool parse_bound(const char **p, int64_t rows, int64_t otherwise, int64_t *out) {
  bool negative = **p == '-';
  const char *digits = *p += negative;
  int64_t n = 0;
  for (; **p >= '0' && **p <= '9'; ++*p)
    if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, **p - '0', &n)) return false;
  if (*p == digits) return *out = otherwise, !negative;
  *out = negative ? rows - n : n;
  return true;
}

/* Leaves rows [begin, end) of the column; pieces without any go. */
static void cut_column(struct column *c, int64_t begin, int64_t end) {
  int n = 0;
  for (int i = 0; i < c->npieces; i++) {
    struct column_piece p = c->pieces[i];
    int64_t skip = begin > p.first ? begin - p.first : 0;
    int64_t last = end - p.first < p.rows ? end - p.first : p.rows;
    if (skip >= last) continue;
    if (p.starts)
      p.starts += skip;
    else if (p.data)
      p.data += skip * p.stride;
    p.at += skip * p.stride;
    p.first += skip - begin;
    p.rows = last - skip;
    c->pieces[n++] = p;
  }
  c->npieces = n;
  c->rows = end - begin;
}

static bool select_rows(struct dataset *ds, const char *range, struct diags *d) {
  const char *p = range;
  int64_t begin, end;
  bool ok =
      parse_bound(&p, ds->rows, 0, &begin) && *p++ == ':' && parse_bound(&p, ds->rows, ds->rows, &end) && !*p;
  if (!ok) {
    diag_error(d, LOC_NONE,
               "'%s' is not a range of rows; write begin:end as in 0:8000, :-100 or 8000:", range);
    return false;
  }
  if (begin < 0 || end > ds->rows || begin >= end) {
    diag_error(d, LOC_NONE, "rows %s: there are %lld rows, so this is %s", range, (long long)ds->rows,
               begin < 0 || end > ds->rows || begin >= ds->rows ? "outside of them" : "an empty range");
    return false;
  }
  ds->rows = end - begin;
  ds->begin = begin;
  for (int i = 0; i < ds->ncolumns; i++) cut_column(&ds->columns[i], begin, end);
  return true;
}

/* What the program has, as a piece. */
static struct column_piece source_piece(struct arena *a, const struct data_spec *spec) {
  const struct row_source *s = spec->source;
  return (struct column_piece){.path = arena_strdup(a, spec->path),
                               .row = s->row,
                               .rows = s->rows,
                               .data = s->data,
                               .stride = type_bytes(&s->row),
                               .source = s->data ? NULL : s};
}

/* What the files of a column have added to its vocabulary are numbers in the order of coming: they become final. */
static bool number_words(struct column *c, const struct data_spec *spec, struct diags *d) {
  static const char *const has[] = {"numbers", "words", "labels"};
  int *places = NULL;
  for (int i = 0; i < c->npieces; i++)
    if (c->pieces[i].words != c->pieces[0].words) {
      int words = c->pieces[0].words ? 0 : i;
      diag_error(d, spec->loc, "%s has %s, and %s has %s: they are not one input", c->pieces[words].path,
                 has[c->pieces[words].words], c->pieces[i - words].path, has[c->pieces[i - words].words]);
      return false;
    }
  if (c->pieces[0].words == WORDS_NUMBERS) c->words = spec->vocabulary;
  if (!c->pieces[0].words || spec->vocabulary->closed) return true;
  vocabulary_close(spec->vocabulary, &places);
  for (int i = 0; i < c->npieces; i++) {
    int32_t *numbers = c->pieces[i].file->map;
    for (int64_t row = 0; row < c->pieces[i].rows; row++)
      numbers[row] = places[numbers[row]] - (c->pieces[i].words == WORDS_CLASSES);
  }
  return true;
}

/* Opens the files of a column, one behind the other. */
static bool open_column(struct dataset *ds, struct arena *a, const char *folder, const struct data_spec *spec,
                        struct column *c, int64_t *budget, struct diags *d) {
  *c = (struct column){.name = arena_strdup(a, spec->name),
                       .path = arena_strdup(a, spec->path),
                       .loc = spec->loc,
                       .low = 1,
                       .npieces = 1 + spec->nmore};
  c->pieces = arena_new_array(a, (size_t)c->npieces, struct column_piece);
  for (int i = 0; i < c->npieces; i++) {
    struct column_piece *p = &c->pieces[i];
    const char *path = i ? spec->more[i - 1] : spec->path;
    const struct file_shape *shape = spec->shapes ? &spec->shapes[i] : NULL;
    if (spec->source)
      *p = source_piece(a, spec);
    else if (shape && shape->rows)
      *p = (struct column_piece){.path = arena_strdup(a, path), .row = shape->row, .rows = shape->rows};
    else if (!piece_open(a, folder, spec, path, p, &ds->files[ds->nfiles++], budget, d))
      return false;
    p->first = c->rows;
    c->rows += p->rows;
    struct type row = type_with_dtype(p->row, (enum dtype)c->pieces[0].row.dtype);
    if (type_equal(&row, &c->pieces[0].row)) continue;
    diag_error(d, spec->loc, "a row of %s is %s, but one of %s, which it continues, is %s", p->path,
               type_text(d->arena, &p->row), c->path, type_text(d->arena, &c->pieces[0].row));
    return false;
  }
  c->row = c->pieces[0].row;
  return number_words(c, spec, d);
}

bool data_shape(struct arena *a, const struct data_spec *spec, int file, struct file_shape *out,
                struct diags *d) {
  struct column_piece p;
  struct content content;
  int64_t budget = 0;
  const char *path = file ? spec->more[file - 1] : spec->path;
  if (!piece_open(a, NULL, spec, path, &p, &content, &budget, d)) return false;
  content_close(&content);
  *out = (struct file_shape){p.row, p.rows};
  return true;
}

/* How many bytes of files may lie in memory. */
static int64_t memory_for_files(void) {
  const char *text = getenv("DGC_DATA_MEMORY");
  char *end;
  long long given = text && *text ? strtoll(text, &end, 10) : -1;
  return given >= 0 && !*end ? given : ROOM;
}

static bool open_columns(struct dataset *ds, struct arena *a, const char *folder,
                         const struct data_spec *specs, struct diags *d) {
  bool ok = true;
  int64_t budget = memory_for_files();
  for (int i = 0; i < ds->ncolumns; i++) {
    ok &= open_column(ds, a, folder, &specs[i], &ds->columns[i], &budget, d);
    for (int k = 0; k < i; k++) {
      if (strcmp(specs[i].name, specs[k].name) != 0) continue;
      diag_error(d, specs[i].loc, "input '%s' is given twice: %s and %s", specs[i].name, specs[k].path,
                 specs[i].path);
      ok = false;
    }
  }
  if (!ok) return false;
  ds->rows = ds->columns[0].rows;
  for (int i = 1; i < ds->ncolumns; i++) {
    const struct column *first = &ds->columns[0], *c = &ds->columns[i];
    if (c->rows == ds->rows) continue;
    diag_error(d, c->loc, "inputs differ in their number of rows: %s has %lld, %s has %lld", first->path,
               (long long)first->rows, c->path, (long long)c->rows);
    ok = false;
  }
  return ok;
}

struct dataset *dataset_open(struct arena *a, const char *folder, const struct data_spec *specs, int n,
                             const char *rows, struct diags *d) {
  if (n < 1) {
    diag_error(d, LOC_NONE, "no data given; name a file for each input of the model");
    return NULL;
  }
  struct dataset *ds = arena_new(a, struct dataset);
  size_t files = (size_t)n;
  for (int i = 0; i < n; i++) files += (size_t)specs[i].nmore;
  ds->ncolumns = n;
  ds->columns = arena_new_array(a, (size_t)n, struct column);
  ds->files = arena_new_array(a, files, struct content);
  if (open_columns(ds, a, folder, specs, d) && (!rows || !*rows || select_rows(ds, rows, d))) return ds;
  dataset_close(ds);
  return NULL;
}

void dataset_close(struct dataset *ds) {
  if (!ds) return;
  for (int i = 0; i < ds->nfiles; i++) content_close(&ds->files[i]);
  ds->ncolumns = ds->nfiles = 0;
}

const struct column *dataset_find(const struct dataset *ds, const char *name) {
  for (int i = 0; i < ds->ncolumns; i++)
    if (strcmp(ds->columns[i].name, name) == 0) return &ds->columns[i];
  return NULL;
}

/* As an input of such rows is declared. */
static const char *declared(struct arena *a, const char *name, const struct type *row, enum dtype d) {
  struct type t = {.dtype = (uint8_t)d, .rank = 1, .dim = {-1}};
  for (int i = 0; i < row->rank && t.rank < MAX_RANK; i++) t.dim[t.rank++] = row->dim[i];
  return arena_printf(a, "input %s : %s", name, type_text(a, &t));
}

/* Whether rows have one axis more than those of the input, as labels that are 1 at the place of their class. */
static bool is_one_hot(const struct type *have, const struct type *row) {
  bool more = have->rank == row->rank + 1 && dtype_is_int((enum dtype)row->dtype) && row->dtype != DT_BOOL;
  for (int i = 0; more && i < row->rank; i++) more = have->dim[i] == row->dim[i];
  return more && have->dim[row->rank] > 1;
}

static bool expect_shape(const struct column *c, const struct type *row, struct diags *d) {
  struct type have = c->pieces[0].row;
  if (row_becomes(&have, row)) return true;
  diag_error(d, c->loc, "a row of %s is %s, but a row of input '%s' is %s", c->path,
             type_text(d->arena, &have), c->name, type_text(d->arena, row));
  if (is_table(c->path) && have.rank == 1 && type_count(row) < type_count(&have))
    diag_help(d, LOC_NONE,
              "of a CSV file, columns are chosen by number or name: FILE.csv:1-%lld, FILE.csv:NAME",
              (long long)type_count(row));
  else if (have.rank == 0 && row->rank == 1 && row->dtype == DT_U8 && is_plain_text(c->path))
    diag_help(d, LOC_NONE,
              "of a text, windows of %lld bytes are FILE.txt:%lld; it has a byte more than one at least",
              (long long)row->dim[0], (long long)row->dim[0]);
  else if (is_one_hot(&have, row))
    diag_help(
        d, LOC_NONE,
        "a number for each class? declare `%s`, as softmax_cross_entropy takes it: `argmax(%s, axis = %d)` "
        "is the class",
        declared(d->arena, c->name, &have, DT_F32), c->name, have.rank);
  else if (have.rank == row->rank && type_count(row) != type_count(&have))
    diag_help(d, LOC_NONE, "such rows are `%s` in the model",
              declared(d->arena, c->name, &have, (enum dtype)row->dtype));
  row_explain(c->name, &have, row, d);
  return false;
}

/* Fractions that are to become integers. */
static void help_fractions(bool cells, const char *name, const struct type *row, struct diags *d) {
  static const char *const numpy[DT_COUNT] = {
      [DT_I32] = "i4", [DT_I64] = "i8", [DT_U8] = "u1", [DT_BOOL] = "?"};
  const char *read = declared(d->arena, name, row, DT_F32), *type = dtype_name((enum dtype)row->dtype);
  if (row->dtype == DT_U8)
    diag_help(d, LOC_NONE, "as fractions they are `%s` in the model%s", read,
              cells ? "" : "; whole numbers become bytes by numpy's `.astype(\"u1\")`");
  else if (cells)
    diag_help(d, LOC_NONE,
              "declare `%s`, and write `cast(%s, %s)`, or write whole numbers without a point to the file",
              read, name, type);
  else
    diag_help(d, LOC_NONE, "numpy's `.astype(\"%s\")` does, or declare `%s`, and write `cast(%s, %s)`",
              numpy[row->dtype], read, name, type);
}

bool dataset_expect(struct dataset *ds, const char *name, const struct type *row, struct diags *d) {
  struct column *c = (struct column *)dataset_find(ds, name);
  if (!c) {
    diag_error(d, LOC_NONE, "no data given for input '%s'", name);
    return false;
  }
  if (!expect_shape(c, row, d)) return false;
  for (int i = 0; i < c->npieces; i++) {
    enum dtype stored = (enum dtype)c->pieces[i].row.dtype;
    if (c->pieces[i].source ? row->dtype == stored : convert_allowed(row->dtype, stored)) continue;
    bool rounded = dtype_is_float(stored) && !dtype_is_float((enum dtype)row->dtype) && !c->pieces[i].source;
    diag_error(d, c->loc, "%s holds %s, which does not become the %s of input '%s'%s", c->pieces[i].path,
               dtype_name(stored), dtype_name(row->dtype), name,
               c->pieces[i].source ? ": a function gives rows of the input's own type"
               : rounded           ? " without loss"
                                   : " without loss; convert them");
    if (rounded) help_fractions(c->pieces[i].cells, name, row, d);
    return false;
  }
  c->row = *row;
  return true;
}

static int64_t integer_at(enum dtype d, const uint8_t *p) {
  int32_t i;
  int64_t l;
  switch (d) {
  case DT_I32: return memcpy(&i, p, sizeof i), i;
  case DT_I64: return memcpy(&l, p, sizeof l), l;
  case DT_U8:
  case DT_BOOL:
  case DT_F32:
  case DT_F64:
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
  return *p;
}

static double number_at(enum dtype d, const uint8_t *p) {
  uint16_t half;
  float f;
  double g;
  if (!dtype_is_float(d)) return (double)integer_at(d, p);
  if (d == DT_F32) return memcpy(&f, p, sizeof f), f;
  if (d == DT_F64) return memcpy(&g, p, sizeof g), g;
  return memcpy(&half, p, sizeof half), half_to_float(d, half);
}

int64_t numbers_outside(enum dtype d, const void *data, int64_t n, int64_t low, int64_t high, bool ends) {
  const uint8_t *at = data;
  int size = dtype_size(d);
  double least = (double)low, most = (double)high;
  for (int64_t i = 0; i < n && dtype_is_float(d); i++, at += size) {
    double v = number_at(d, at);
    if (v < least || v > most || (ends && v > least && v < most)) return i;
  }
  for (int64_t i = 0; i < n && !dtype_is_float(d); i++, at += size) {
    int64_t v = integer_at(d, at);
    if (v < low || v > high || (ends && v > low && v < high)) return i;
  }
  return -1;
}

/* `value`: one number of the piece, as it lies there. */
static bool outside(struct diags *d, const struct column *c, const struct column_piece *p, int64_t row,
                    const uint8_t *value, double *wrong) {
  enum dtype stored = (enum dtype)p->row.dtype;
  struct str text = str_make(d->arena);
  *wrong = value ? number_at(stored, value) : 0;
  if (value && dtype_is_float(stored) && stored != DT_F64)
    str_float(&text, (float)*wrong);
  else if (value && dtype_is_float(stored))
    str_double(&text, *wrong);
  else
    str_printf(&text, "%lld", value ? (long long)integer_at(stored, value) : 0LL);
  const struct vocabulary *v = *wrong >= 0 && c->words && *wrong <= c->words->count ? c->words : NULL;
  const char *word = !v        ? ""
                     : !*wrong ? ", no word or an unknown one"
                               : arena_printf(d->arena, ", the word '%.100s'", v->words[(int64_t)*wrong - 1]);
  diag_error(d, c->loc, "row %lld of %s is %s%s, and input '%s' must be %s%lld %s %lld", (long long)row,
             p->path, text.data, word, c->name, c->ends ? "" : "from ", (long long)c->low,
             c->ends ? "or" : "to", (long long)c->high);
  return false;
}

/* Of a piece in memory: rows may be sparse, or apart from each other. */
static bool check_rows(const struct column *c, const struct column_piece *p, double *wrong, struct diags *d) {
  enum dtype stored = (enum dtype)p->row.dtype;
  for (int64_t row = 0; row < p->rows; row++) {
    int64_t count = type_count(&p->row), first = p->starts ? p->starts[row] : 0;
    const uint8_t *values = p->data + row * p->stride + first * dtype_size(stored);
    bool zeros = p->starts && p->starts[row + 1] - first < count;
    if (p->starts) count = p->starts[row + 1] - first;
    int64_t i = numbers_outside(stored, values, count, c->low, c->high, c->ends);
    if (i >= 0) return outside(d, c, p, row, values + i * dtype_size(stored), wrong);
    if (zeros && (c->low > 0 || c->high < 0 || (c->ends && c->low && c->high)))
      return outside(d, c, p, row, NULL, wrong);
  }
  return true;
}

static bool check_file(const struct column *c, const struct column_piece *p, double *wrong, struct diags *d) {
  enum dtype stored = (enum dtype)p->row.dtype;
  uint8_t window[PIECE_WINDOW];
  int64_t each = type_count(&p->row), together = piece_together(p, p->rows), all = together * each;
  for (int64_t row = 0; row < p->rows; row += together)
    for (int64_t at = 0, n; at < all; at += n) {
      struct misfit bad;
      n = all - at;
      if (!piece_numbers(p, row, at, &n, window, &bad)) return content_unread(p->path, bad.error, c->loc, d);
      int64_t i = numbers_outside(stored, window, n, c->low, c->high, c->ends);
      if (i < 0) continue;
      return outside(d, c, p, row + (at + i) / each, window + i * dtype_size(stored), wrong);
    }
  return true;
}

/* The first of the rows that has a NaN, or an infinity; -1: none has, or they are no floats in memory. */
static int64_t row_with_odd(const struct column_piece *p, bool infinite) {
  enum dtype d = (enum dtype)p->row.dtype;
  int64_t count = type_count(&p->row), size = (int64_t)dtype_size(d);
  if (!p->data || p->starts || !dtype_is_float(d) || dtype_is_narrow(d)) return -1;
  for (int64_t i = 0; i < p->rows; i++)
    for (int64_t k = 0; k < count; k++) {
      const uint8_t *at = p->data + i * p->stride + k * size;
      float f32 = 0;
      double f64 = 0;
      if (d == DT_F32)
        memcpy(&f32, at, sizeof f32);
      else
        memcpy(&f64, at, sizeof f64);
      if (infinite ? isinf(f32) || isinf(f64) : isnan(f32) || isnan(f64)) return i;
    }
  return -1;
}

static const struct column *with_odd(const struct dataset *ds, bool infinite, int64_t *row) {
  for (int i = 0; i < ds->ncolumns; i++)
    for (int k = 0; k < ds->columns[i].npieces; k++) {
      const struct column_piece *p = &ds->columns[i].pieces[k];
      int64_t at = row_with_odd(p, infinite);
      if (at < 0) continue;
      *row = p->first + at;
      return &ds->columns[i];
    }
  return NULL;
}

void dataset_help_odd(const struct dataset *ds, bool nan, struct diags *d) {
  int64_t row;
  const struct column *c = nan ? with_odd(ds, false, &row) : NULL;
  if (c)
    diag_help(d, LOC_NONE,
              "input %s has NaN, first in row %lld of %s: `select(is_nan(%s), 0, %s)` reads 0 there", c->name,
              (long long)row, c->path, c->name, c->name);
  c = with_odd(ds, true, &row);
  if (c)
    diag_help(
        d, LOC_NONE,
        "input %s has infinities, first in row %lld of %s: `select(is_finite(%s), %s, 0)` reads 0 there",
        c->name, (long long)row, c->path, c->name, c->name);
}

bool dataset_check_range(struct dataset *ds, const char *name, int64_t low, int64_t high, bool ends,
                         double *wrong, struct diags *d) {
  struct column *c = (struct column *)dataset_find(ds, name);
  if (!c) return true;
  c->low = low, c->high = high, c->ends = ends;
  for (int k = 0; k < c->npieces; k++) {
    const struct column_piece *p = &c->pieces[k];
    if ((!p->file && !p->data) || (p->moves && dtype_is_float((enum dtype)p->row.dtype))) continue;
    struct column_piece bytes = *p;
    if (p->moves) { /* all that any epoch has, byte by byte */
      bytes.row = type_make(DT_U8, 0, NULL);
      bytes.rows = (p->rows - 1) * p->stride + type_bytes(&p->row) + p->moves - 1;
      bytes.stride = 1, bytes.moves = 0;
    }
    if (!(p->data ? check_rows(c, &bytes, wrong, d) : check_file(c, &bytes, wrong, d))) return false;
  }
  return true;
}

bool dataset_classes(const struct dataset *ds, const char *name, bool *has) {
  const struct column *c = dataset_find(ds, name);
  if (!c || c->low > c->high || type_count(&c->row) != 1) return false;
  for (int k = 0; k < c->npieces; k++) {
    const struct column_piece *p = &c->pieces[k];
    if (!p->data || p->starts || p->moves || dtype_is_narrow((enum dtype)p->row.dtype)) return false;
    for (int64_t i = 0; i < p->rows; i++) {
      double value = number_at((enum dtype)p->row.dtype, p->data + i * p->stride);
      if (value != floor(value)) return false; /* a share, or NaN */
      if (value >= (double)c->low && value <= (double)c->high) has[(int64_t)value - c->low] = true;
    }
  }
  return true;
}
