/* SPDX-License-Identifier: Apache-2.0 */
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
  b->number = c->index * o->batch;
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
  if (c->low > c->high ||
      numbers_outside((enum dtype)c->row.dtype, rows, numbers, c->low, c->high, c->ends) < 0)
    return true;
  f->loc = c->loc;
  f->system = false;
  snprintf(f->message, sizeof f->message, "%.200s %s: input '%.60s' must be %s%lld %s %lld", c->path,
           c->pieces[0].source || c->pieces[0].images ? "gives other numbers"
                                                      : "has changed while it was read",
           c->name, c->ends ? "" : "from ", (long long)c->low, c->ends ? "or" : "to", (long long)c->high);
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
  if (bad->path)
    snprintf(f->message, sizeof f->message, "cannot read %.220s: %s", bad->path, bad->cause);
  else if (bad->unread)
    snprintf(f->message, sizeof f->message, "cannot read %.200s: %s", bad->piece->path,
             content_why(bad->error));
  else
    snprintf(f->message, sizeof f->message,
             "%.200s: %s in row %lld of the selected ones does not fit into the %s "
             "of input '%.60s'%s",
             bad->piece->path, bad->value, (long long)bad->row, dtype_name(c->row.dtype), c->name,
             c->row.dtype == DT_F32 ? ": scale the numbers, or read them as f64" : "");
  return false;
}

/* Rows of one sequence that a batch has, at places of the batch from `first` to `end`. */
struct gather {
  const struct column *column;
  const struct sequence *sequence;
  const struct loader_options *options;
  int64_t epoch;
  int64_t begin; /* in the epoch's order, of what is at place 0 of the batch */
  int64_t first, end;
  uint8_t *out; /* place 0 */
};

/* What is at a place, and as many places behind it as have rows behind its one, `most` at most: `*count`. */
static bool copy_rows(const struct gather *g, int64_t place, int64_t most, int64_t *count,
                      struct loader_failure *f) {
  const struct column *c = g->column;
  int64_t at = g->begin + place;
  int64_t position =
      g->options->shuffle ? data_order(g->sequence->seed, g->epoch, g->sequence->rows, at) : at;
  int64_t row = sequence_row(g->sequence, position, count);
  if (g->options->shuffle) *count = 1;
  if (*count > most) *count = most;
  uint8_t *out = g->out + place * type_bytes(&c->row);
  struct misfit bad;
  if (!column_read(c, g->epoch, row, *count, out, &bad)) return unread(c, &bad, f);
  return check_again(c, out, *count, f);
}

/* Of a decoder: one row. What is wrong with it is found out once more. */
static bool copy_one(void *arg, int64_t index) {
  const struct gather *g = arg;
  struct loader_failure ignored;
  int64_t one;
  return copy_rows(g, g->first + index, 1, &one, &ignored);
}

static bool copy_by_decoders(struct gather *g, struct decoders *team, struct loader_failure *f) {
  int64_t bad, one;
  while ((bad = decoders_run(team, g->end - g->first, copy_one, g)) >= 0) {
    if (!copy_rows(g, g->first + bad, 1, &one, f)) return false;
    g->first += bad + 1;
  }
  return true;
}

/* The rows of one sequence, which has those of the batch from `base` on; only what is to be read. */
static bool copy_sequence(const struct column *c, const struct sequence *q, const struct loader_options *o,
                          const struct batch *b, int64_t base, uint8_t *out, struct decoders *team,
                          struct loader_failure *f) {
  int64_t end = base + sequence_rows(q, b->index), together;
  struct gather g = {.column = c,
                     .sequence = q,
                     .options = o,
                     .epoch = b->epoch,
                     .begin = b->index * q->share - base,
                     .first = base < b->first ? b->first : base,
                     .end = end > b->end ? b->end : end,
                     .out = out};
  if (team && c->pieces[0].images) return g.first >= g.end || copy_by_decoders(&g, team, f);
  for (int64_t place = g.first; place < g.end; place += together)
    if (!copy_rows(&g, place, g.end - place, &together, f)) return false;
  return true;
}

bool batch_gather_column(const struct column *c, const struct shards *s, const struct loader_options *o,
                         const struct batch *b, void *out, struct decoders *team, struct loader_failure *f) {
  int64_t base = 0;
  for (int k = 0; k < s->count; base += sequence_rows(&s->sequences[k++], b->index))
    if (!copy_sequence(c, &s->sequences[k], o, b, base, out, team, f)) return false;
  return true;
}

bool batch_gather(const struct dataset *ds, const struct shards *s, const struct loader_options *o,
                  const struct batch *b, struct tensor *columns, struct decoders *team,
                  struct loader_failure *f) {
  for (int i = 0; i < ds->ncolumns; i++) {
    const struct column *c = &ds->columns[i];
    struct type *t = &columns[i].type;
    *t = c->row;
    t->rank++;
    t->dim[0] = b->rows;
    memcpy(t->dim + 1, c->row.dim, c->row.rank * sizeof c->row.dim[0]);
    if (!batch_gather_column(c, s, o, b, columns[i].data, team, f)) return false;
  }
  return true;
}
