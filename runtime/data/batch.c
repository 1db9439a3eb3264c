/* Batches: which rows they have, and the copying of these rows into contiguous memory. */
#include "runtime/data/loader.h"

#include "base/file.h"
#include "ir/target.h"
#include "runtime/data/reader.h"

#include <stdio.h>
#include <string.h>

bool cursor_next(struct loader_cursor *c, const struct shards *s, const struct loader_options *o,
                 struct batch *b) {
  if (c->index >= s->batches) c->epoch++, c->index = 0;
  if (o->epochs > 0 && c->epoch >= o->epochs) return false;
  b->epoch = c->epoch;
  b->rows = shards_rows(s, c->index);
  b->index = c->index++;
  b->last = c->index == s->batches;
  b->first = o->towers ? tower_first_row(o->first_tower, o->towers, b->rows) : 0;
  b->end = o->towers ? tower_first_row(o->end_tower, o->towers, b->rows) : b->rows;
  return true;
}

/* A file may change behind the look that was taken at all of it, and the model relies on that. */
static bool check_again(const struct column *c, const uint8_t *rows, int64_t count,
                        struct loader_failure *f) {
  int64_t numbers = count * type_count(&c->row);
  if (c->low > c->high || integers_outside((enum dtype)c->row.dtype, rows, numbers, c->low, c->high) < 0)
    return true;
  f->loc = c->loc;
  f->system = false;
  snprintf(f->message, sizeof f->message, "%.200s %s: input '%.60s' must be from %lld to %lld", c->path,
           c->pieces[0].source ? "gives other numbers" : "has changed while it was read", c->name,
           (long long)c->low, (long long)c->high);
  return false;
}

static bool unread(const struct column *c, const struct misfit *bad, struct loader_failure *f) {
  f->loc = c->loc;
  if (bad->piece->source) {
    f->system = false;
    snprintf(f->message, sizeof f->message, "%.200s has failed", c->path);
    return false;
  }
  f->system = bad->unread && file_system_failed(bad->error);
  if (bad->unread)
    snprintf(f->message, sizeof f->message, "cannot read %.200s: %s", bad->piece->path,
             content_why(bad->error));
  else
    snprintf(f->message, sizeof f->message,
             "%.200s: %lld in row %lld of the selected ones does not fit into the %s "
             "of input '%.60s'",
             bad->piece->path, (long long)bad->value, (long long)bad->row, dtype_name(c->row.dtype), c->name);
  return false;
}

/* The rows of one sequence, which has those of the batch from `base` on; only what is to be read. */
static bool copy_sequence(const struct column *c, const struct sequence *q, const struct loader_options *o,
                          const struct batch *b, int64_t base, uint8_t *out, struct loader_failure *f) {
  int64_t begin = b->index * q->share - base, end = base + sequence_rows(q, b->index), together;
  int64_t bytes = type_bytes(&c->row);
  if (base < b->first) base = b->first;
  if (end > b->end) end = b->end;
  for (int64_t in = base; in < end; in += together) {
    int64_t at = begin + in;
    int64_t position = o->shuffle ? data_order(q->seed, b->epoch, q->rows, at) : at;
    int64_t row = sequence_row(q, position, &together);
    if (o->shuffle) together = 1;
    if (together > end - in) together = end - in;
    struct misfit bad;
    if (!column_read(c, row, together, out + in * bytes, &bad)) return unread(c, &bad, f);
    if (!check_again(c, out + in * bytes, together, f)) return false;
  }
  return true;
}

bool batch_gather_column(const struct column *c, const struct shards *s, const struct loader_options *o,
                         const struct batch *b, void *out, struct loader_failure *f) {
  int64_t base = 0;
  for (int k = 0; k < s->count; base += sequence_rows(&s->sequences[k++], b->index))
    if (!copy_sequence(c, &s->sequences[k], o, b, base, out, f)) return false;
  return true;
}

bool batch_gather(const struct dataset *ds, const struct shards *s, const struct loader_options *o,
                  const struct batch *b, struct tensor *columns, struct loader_failure *f) {
  for (int i = 0; i < ds->ncolumns; i++) {
    const struct column *c = &ds->columns[i];
    struct type *t = &columns[i].type;
    *t = c->row;
    t->rank++;
    t->dim[0] = b->rows;
    memcpy(t->dim + 1, c->row.dim, c->row.rank * sizeof c->row.dim[0]);
    if (!batch_gather_column(c, s, o, b, columns[i].data, f)) return false;
  }
  return true;
}
