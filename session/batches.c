/* SPDX-License-Identifier: Apache-2.0 */
/* The batches of a training, apart from its steps. */
#include "session/batches.h"

#include "session/batch_run.h"
#include "session/data.h"
#include "session/options.h"
#include "session/settle.h"
#include "session/towers.h"

#include "runtime/data/npz_writer.h"
#include "runtime/mpi/transport.h"

#include <string.h>

enum dgc_status session_shard(struct dgc_session *s, struct loader_options *o) {
  if (!s->options.auto_shard || !shard_find(s->options.auto_shard, &o->shard) || o->shard == SHARD_DATA)
    return DGC_OK;
  struct towers t;
  enum dgc_status status = session_towers(s, ENTRY_TRAIN, o->batch, &t);
  if (status) return status;
  int64_t *shares = arena_new_array(s->call, (size_t)t.workers, int64_t);
  for (int i = 0; i < t.workers; i++)
    shares[i] =
        tower_first_row(t.first[i + 1], t.count, o->batch) - tower_first_row(t.first[i], t.count, o->batch);
  o->workers = t.workers;
  o->shares = shares;
  return DGC_OK;
}

enum dgc_status session_check_batches(struct dgc_session *s, const struct goal *goal, int64_t rows_of_epoch,
                                      const struct loader *loader) {
  int64_t each = loader_batches_per_epoch(loader), first = s->position.index, count = each;
  if (goal->steps >= 0 && goal->steps - s->position.step < each) count = goal->steps - s->position.step;
  enum dgc_status status = DGC_OK;
  for (int64_t i = 0, before = 0; !status && i < count; i++) {
    int64_t rows = loader_batch_rows(loader, (first + i) % each);
    if (rows != before) status = session_takes(s, ENTRY_TRAIN, rows);
    if (status)
      diag_note(&s->diags, LOC_NONE, "batch %lld of the %lld of an epoch of %lld rows has %lld",
                (long long)((first + i) % each + 1), (long long)each, (long long)rows_of_epoch,
                (long long)rows);
    before = rows;
  }
  return status;
}

enum dgc_status session_dump_batch(struct dgc_session *s, const struct dataset *ds, struct loader *loader,
                                   const struct batch *b) {
  bool known = !s->options.auto_shard || strcmp(s->options.auto_shard, "data") == 0;
  struct npz_array *arrays = arena_new_array(s->call, (size_t)ds->ncolumns + 2, struct npz_array);
  int64_t *rows = arena_new_array(s->call, (size_t)b->rows, int64_t), *epoch = arena_new(s->call, int64_t);
  int n = 0;
  for (; n < ds->ncolumns; n++) {
    if (!loader_complete(loader, b, n, &s->diags)) return session_unread(s);
    arrays[n] = (struct npz_array){ds->columns[n].name, b->columns[n].type, b->columns[n].data};
  }
  *epoch = b->epoch;
  arrays[n++] = (struct npz_array){"dgc.epoch", type_scalar(DT_I64), epoch};
  for (int64_t i = 0; i < b->rows; i++) {
    int64_t at = b->index * s->position.batch + i;
    rows[i] = s->options.no_shuffle ? at : data_order((uint64_t)s->options.seed, b->epoch, ds->rows, at);
  }
  if (known) arrays[n++] = (struct npz_array){"dgc.rows", type_make(DT_I64, 1, &b->rows), rows};
  if (!session_is_first(s)) return DGC_OK;
  const char *path = batch_file(s->call, s->options.dump_batch);
  return npz_write(s->call, path, arrays, n, &s->diags) ? DGC_OK : DGC_RUNTIME;
}
