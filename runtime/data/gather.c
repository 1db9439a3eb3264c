/* Batches: which rows they have, and the copying of these rows into contiguous memory. */
#include "runtime/data/loader.h"
#include "runtime/data/reader.h"

#include <stdio.h>
#include <string.h>

bool cursor_next(struct loader_cursor *c, const struct dataset *ds, const struct loader_options *o,
                 struct batch *b) {
  int64_t batches = (ds->rows - 1) / o->batch + 1;
  if (c->index >= batches) c->epoch++, c->index = 0;
  if (o->epochs > 0 && c->epoch >= o->epochs) return false;
  int64_t first = c->index * o->batch, left = ds->rows - first;
  b->epoch = c->epoch;
  b->index = c->index++;
  b->last = c->index == batches;
  b->total_rows = left < o->batch ? left : o->batch;
  int64_t skip;
  batch_part(o->batch, b->total_rows, o->parts, o->part, &skip, &b->rows);
  b->position = first + skip;
  return true;
}

static bool gather_column(const struct column *c, const struct dataset *ds, const struct loader_options *o,
                          const struct batch *b, uint8_t *out, struct loader_failure *f) {
  int64_t count = type_count(&c->row), bytes = type_bytes(&c->row), stored = count * dtype_size(c->stored);
  if (!o->shuffle && stored == c->stride && c->row.dtype == c->stored) {
    if (b->rows) memcpy(out, c->data + b->position * c->stride, (size_t)(b->rows * bytes));
    return true;
  }
  for (int64_t i = 0; i < b->rows; i++, out += bytes) {
    int64_t position = b->position + i;
    int64_t row = o->shuffle ? data_order(o->seed, b->epoch, ds->rows, position) : position;
    int64_t bad = convert_numbers(c->row.dtype, out, c->stored, c->data + row * c->stride, count);
    if (bad < 0) continue;
    int64_t value = 0;
    const uint8_t *at = c->data + row * c->stride + bad * dtype_size(c->stored);
    convert_numbers(DT_I64, &value, c->stored, at, 1);
    f->loc = c->loc;
    snprintf(f->message, sizeof f->message,
             "%.200s: %lld in row %lld of the selected ones does not fit into the %s "
             "of input '%.60s'",
             c->path, (long long)value, (long long)row, dtype_name(c->row.dtype), c->name);
    return false;
  }
  return true;
}

bool batch_gather(const struct dataset *ds, const struct loader_options *o, const struct batch *b,
                  struct tensor *columns, struct loader_failure *f) {
  for (int i = 0; i < ds->ncolumns; i++) {
    const struct column *c = &ds->columns[i];
    struct type *t = &columns[i].type;
    *t = c->row;
    t->rank++;
    t->dim[0] = b->rows;
    memcpy(t->dim + 1, c->row.dim, c->row.rank * sizeof c->row.dim[0]);
    if (!gather_column(c, ds, o, b, columns[i].data, f)) return false;
  }
  return true;
}
