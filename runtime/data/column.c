/* SPDX-License-Identifier: Apache-2.0 */
/* Columns: opens their files, which are recognised and handed to their format's reader, and reads rows of them. */
#include "base/file.h"
#include "runtime/data/decompress.h"
#include "runtime/data/images.h"
#include "runtime/data/pipe.h"
#include "runtime/data/reader.h"
#include "runtime/data/safetensors.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are little endian, and used as they are");

static bool name_has_suffix(const char *path, const char *suffix) {
  size_t n = strlen(path), m = strlen(suffix);
  if (n > 3 && memcmp(path + n - 3, ".gz", 3) == 0) n -= 3;
  return n >= m && memcmp(path + n - m, suffix, m) == 0;
}

bool is_table(const char *path) { return name_has_suffix(path, ".csv") || name_has_suffix(path, ".tsv"); }
bool is_plain_text(const char *path) { return name_has_suffix(path, ".txt"); }

/* By the first bytes of a file. What has none of these is known by its name. */
static const struct format {
  bool (*is)(const uint8_t *head, int64_t len);
  bool (*read)(struct reader *r);
  int64_t (*size)(const uint8_t *head,
                  int64_t len); /* how long it says that the file is; NULL: it does not */
} formats[] = {
    {is_npy, read_npy, npy_size},
    {is_npz, read_npz, NULL},
    {is_safetensors, read_safetensors, safetensors_size},
    {is_idx, read_idx, idx_size},
};

static const struct format *format_of(const uint8_t *head, int64_t len) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (formats[i].is(head, len)) return &formats[i];
  return NULL;
}

/* What gzip compressed is decompressed as far as its header says. */
static int64_t size_of(const char *path, const uint8_t *head, int64_t len) {
  if (is_plain_text(path)) return 0;
  const struct format *f = format_of(head, len);
  if (f) return f->size ? f->size(head, len) : 0;
  return is_table(path) ? 0 : CONTENT_WRONG;
}

/* A pipe has no name that says what it is: what nothing else is, is a table. */
static int64_t size_of_pipe(const char *path, const uint8_t *head, int64_t len) {
  int64_t size = size_of(path, head, len);
  return size == CONTENT_WRONG && !format_of(head, len) ? 0 : size;
}

/* What is known and not read, and what makes a file of it that is. */
static const struct other_format {
  const char *magic, *name, *help;
} others[] = {
    {"\x89HDF", "an HDF5 file",
     "python3 -c 'import h5py, numpy; f = h5py.File(\"x.h5\"); numpy.savez(\"x.npz\", **{n: f[n][:] for n in "
     "f})'"},
    {"PAR1", "a Parquet file",
     "python3 -c 'import pyarrow.csv, pyarrow.parquet; pyarrow.csv.write_csv(pyarrow.parquet.read_table("
     "\"x.parquet\"), \"x.csv\")'"},
    {"ARROW1", "an Arrow file",
     "python3 -c 'import pyarrow.csv, pyarrow.feather; pyarrow.csv.write_csv(pyarrow.feather.read_table("
     "\"x.arrow\"), \"x.csv\")'"},
};

static const struct other_format *other_of(const uint8_t *head, int64_t len) {
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    size_t n = strlen(others[i].magic);
    if (len >= (int64_t)n && memcmp(head, others[i].magic, n) == 0) return &others[i];
  }
  return NULL;
}

static bool refuse(struct reader *r, const char *name, const char *help) {
  if (!name)
    return reader_fail(
        r,
        "its first bytes are not those of IDX, npy, npz, safetensors, PNG or JPEG, and its name does not end "
        "in .csv, .tsv or .txt");
  reader_fail(r, "it is %s, which is not read", name);
  diag_help(r->diags, r->loc, "%s", help);
  return false;
}

static bool read_any(struct reader *r, const struct data_spec *spec) {
  uint8_t head[16];
  int64_t len = r->in.len < (int64_t)sizeof head ? r->in.len : (int64_t)sizeof head;
  if (is_plain_text(r->path)) return read_text(r);
  if (len == 0) return reader_fail(r, "it decompresses to nothing");
  if (!content_read(&r->in, 0, head, len)) return content_unread(r->path, errno, r->loc, r->diags);
  const struct format *f = format_of(head, len);
  if (f) return f->read(r);
  if (is_image(head, len)) return read_images_file(r, spec);
  const struct other_format *other = other_of(head, len);
  const struct other_image *image = image_other(head, len);
  if (is_table(r->path) || (r->pipe && !other && !image)) return read_csv(r);
  return image ? refuse(r, image->name, image->help)
               : refuse(r, other ? other->name : NULL, other ? other->help : NULL);
}

/* Cuts off what stands behind the last ':' before which there is the name of a file that is there; if none is,
 * behind the last one. NULL: nothing. */
static const char *split_member(char *path) {
  if (path[0] == '-' && path[1] == ':') return path[1] = 0, path + 2; /* standard input */
  if (access(path, F_OK) == 0) return NULL;
  for (char *end = path + strlen(path), *colon; (colon = memrchr(path, ':', (size_t)(end - path)));
       end = colon) {
    *colon = 0;
    if (access(path, F_OK) == 0) return colon + 1;
    *colon = ':';
  }
  char *last = strrchr(path, ':');
  if (!last || strchr(last, '/')) return NULL;
  *last = 0;
  return last + 1;
}

static bool open_content(struct reader *r, const struct data_spec *spec, int64_t *budget) {
  r->pipe = !spec->roots && is_pipe(r->path);
  int64_t none = 0;
  if (!r->pipe)
    return content_open(&r->in, spec->roots, r->path, size_of, spec->in_files ? &none : budget, r->loc,
                        r->diags);
  if (!spec->pipes) {
    diag_error(r->diags, r->loc, "cannot read %s: a pipe is read once, by one process; copy it into a file",
               r->path);
    return false;
  }
  return pipe_content(spec->pipes, r->path, budget ? *budget : INT64_MAX, &r->in, r->loc, r->diags) &&
         content_unpack(&r->in, r->path, size_of_pipe, budget, r->loc, r->diags);
}

bool piece_open(struct arena *a, const char *folder, const struct data_spec *spec, const char *name,
                struct column_piece *p, struct content *content, int64_t *budget, struct diags *d) {
  struct reader r = {.arena = a, .loc = spec->loc, .diags = d, .piece = p, .vocabulary = spec->vocabulary};
  r.floats = spec->row && dtype_is_float((enum dtype)spec->row->dtype);
  *p = (struct column_piece){.path = arena_strdup(a, name)};
  *content = (struct content){0};
  if (!*name) {
    diag_error(d, spec->loc,
               "input '%s' is given a file without a name: write %s=FILE, and several as %s=FILE,FILE",
               spec->name, spec->name, spec->name);
    return false;
  }
  char *path =
      folder && *folder && name[0] != '/' ? arena_printf(a, "%s/%s", folder, name) : arena_strdup(a, name);
  r.member = split_member(path);
  r.path = path;
  bool folder_of_images = file_is_folder(path);
  if (!folder_of_images && !open_content(&r, spec, budget)) return false;
  bool ok = folder_of_images ? read_images_folder(&r, spec) : read_any(&r, spec);
  if (ok && (r.own.map || p->images)) {
    content_close(&r.in);
    *content = r.own;
  } else {
    content_close(&r.own);
    *content = r.in;
  }
  p->file = p->images ? NULL : content;
  if (!ok) content_close(content);
  return ok;
}

static const struct column_piece *piece_of(const struct column *c, int64_t row) {
  int low = 0, high = c->npieces - 1;
  while (low < high) {
    int middle = (low + high + 1) / 2;
    if (c->pieces[middle].first <= row)
      low = middle;
    else
      high = middle - 1;
  }
  return &c->pieces[low];
}

static bool misfit(struct misfit *bad, const struct column_piece *p, int64_t row, const uint8_t *number) {
  *bad = (struct misfit){.piece = p, .row = row};
  int64_t whole;
  double real;
  if (dtype_is_float((enum dtype)p->row.dtype)) {
    convert_numbers(DT_F64, &real, (enum dtype)p->row.dtype, number, 1);
    snprintf(bad->value, sizeof bad->value, "%.9g", real);
  } else {
    convert_numbers(DT_I64, &whole, (enum dtype)p->row.dtype, number, 1);
    snprintf(bad->value, sizeof bad->value, "%lld", (long long)whole);
  }
  return false;
}

/* A sparse row: zeros, and its values in their places. */
static bool sparse_read(const struct column_piece *p, enum dtype to, int64_t row, uint8_t *out,
                        struct misfit *bad) {
  enum dtype from = (enum dtype)p->row.dtype;
  memset(out, 0, (size_t)(p->row.dim[0] * dtype_size(to)));
  for (int64_t k = p->starts[row]; k < p->starts[row + 1]; k++) {
    const uint8_t *in = p->data + k * dtype_size(from);
    if (convert_numbers(to, out + p->places[k] * dtype_size(to), from, in, 1) >= 0)
      return misfit(bad, p, row, in);
  }
  return true;
}

/* Bytes behind the first row of a piece that is in a file. */
static bool bytes_read(const struct column_piece *p, int64_t offset, void *out, int64_t bytes,
                       struct misfit *bad) {
  if (p->file && content_read(p->file, p->at + offset, out, bytes)) return true;
  *bad = (struct misfit){.piece = p, .unread = true, .error = p->file ? errno : ENOENT};
  return false;
}

int64_t piece_together(const struct column_piece *p, int64_t rows) {
  return !p->starts && p->stride == type_bytes(&p->row) ? rows : 1;
}

bool piece_numbers(const struct column_piece *p, int64_t row, int64_t first, int64_t *count, void *out,
                   struct misfit *bad) {
  int64_t size = dtype_size((enum dtype)p->row.dtype);
  if (*count > PIECE_WINDOW / size) *count = PIECE_WINDOW / size;
  return bytes_read(p, row * p->stride + first * size, out, *count * size, bad);
}

/* Rows of a piece that is in a file, which lie there one behind the other. */
static bool rows_read(const struct column_piece *p, enum dtype to, int64_t row, int64_t rows, uint8_t *out,
                      struct misfit *bad) {
  enum dtype from = (enum dtype)p->row.dtype;
  int64_t each = type_count(&p->row), end = rows * each, size = dtype_size(from);
  if (from == to) return bytes_read(p, row * p->stride, out, end * size, bad);
  uint8_t window[PIECE_WINDOW];
  for (int64_t at = 0, n; at < end; at += n, out += n * dtype_size(to)) {
    n = end - at;
    if (!piece_numbers(p, row, at, &n, window, bad)) return false;
    int64_t wrong = convert_numbers(to, out, from, window, n);
    if (wrong >= 0) return misfit(bad, p, row + (at + wrong) / each, window + wrong * size);
  }
  return true;
}

static bool read_from_file(const struct column_piece *p, enum dtype to, int64_t row, int64_t rows,
                           uint8_t *out, struct misfit *bad) {
  int64_t together = piece_together(p, rows), bytes = together * type_count(&p->row) * dtype_size(to);
  for (int64_t i = 0; i < rows; i += together, out += bytes)
    if (!rows_read(p, to, row + i, together, out, bad)) return false;
  return true;
}

static bool source_rows(const struct column_piece *p, int64_t row, int64_t rows, uint8_t *out,
                        struct misfit *bad) {
  const struct row_source *s = p->source;
  int64_t before = p->at / p->stride; /* rows that a range has cut off */
  if (s->read(s->user, before + row, rows, out)) return true;
  *bad = (struct misfit){.piece = p, .row = row, .unread = true, .error = ECANCELED};
  return false;
}

/* Rows of one piece. */
static bool piece_read(const struct column_piece *p, enum dtype to, int64_t row, int64_t rows, uint8_t *out,
                       struct misfit *bad) {
  enum dtype from = (enum dtype)p->row.dtype;
  int64_t each = type_count(&p->row), size = dtype_size(from);
  if (p->source) return source_rows(p, row, rows, out, bad);
  if (p->images) return images_read(p, to, p->at / p->stride + row, rows, out, bad);
  if (!p->data) return read_from_file(p, to, row, rows, out, bad);
  int64_t together = piece_together(p, rows);
  for (int64_t end = row + rows; row < end; row += together, out += together * each * dtype_size(to)) {
    if (p->starts) {
      if (!sparse_read(p, to, row, out, bad)) return false;
      continue;
    }
    const uint8_t *in = p->data + row * p->stride;
    int64_t wrong = convert_numbers(to, out, from, in, together * each);
    if (wrong >= 0) return misfit(bad, p, row + wrong / each, in + wrong * size);
  }
  return true;
}

/* The piece as it lies in an epoch: at byte 0 in the first, then elsewhere, everywhere in `moves` epochs. */
static struct column_piece moved(const struct column_piece *p, int64_t epoch) {
  struct column_piece there = *p;
  int64_t first = data_order(0, 0, p->moves, 0), now = data_order(0, 0, p->moves, epoch % p->moves);
  int64_t by = (now - first + p->moves) % p->moves;
  there.at += by;
  if (p->data) there.data += by;
  return there;
}

bool column_read(const struct column *c, int64_t epoch, int64_t row, int64_t count, void *out,
                 struct misfit *bad) {
  uint8_t *to = out;
  while (count > 0) {
    const struct column_piece *p = piece_of(c, row);
    int64_t left = p->first + p->rows - row, n = count < left ? count : left;
    struct column_piece there;
    if (p->moves) there = moved(p, epoch);
    bool good = piece_read(p->moves ? &there : p, (enum dtype)c->row.dtype, row - p->first, n, to, bad);
    if (!good) bad->piece = p;
    if (!good) return false;
    row += n, count -= n, to += n * type_bytes(&c->row);
  }
  return true;
}
