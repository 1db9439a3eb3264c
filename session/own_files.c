/* SPDX-License-Identifier: Apache-2.0 */
/* Which process opens which files: a worker's own ones. What is in the others it is told. */
#include "session/own_files.h"

#include "session/model.h"
#include "session/run.h"
#include "session/settle.h"
#include "session/towers.h"
#include "session/vocabularies.h"

#include "runtime/mpi/transport.h"

#include <stdio.h>
#include <string.h>

/* Worker w has the towers from first[w] on, and files w, w + workers, ... */
struct files {
  struct dgc_session *s;
  const struct data_spec *specs;
  struct file_shape **shapes; /* by specification and file */
  int nspecs, each;           /* files of a specification */
  int workers, own;           /* own: -1 where this process is no worker */
  int *first;
  int64_t batch;
};

static enum dgc_status find_workers(struct files *f) {
  struct dgc_session *s = f->s;
  f->batch = session_batch(s);
  struct towers t;
  enum dgc_status status = session_towers(s, ENTRY_TRAIN, f->batch, &t);
  if (status) return status;
  f->first = t.first, f->workers = t.workers, f->own = -1;
  for (int w = 0; w < t.workers; w++)
    if (t.process[t.first[w]] == s->transport->rank) f->own = w;
  return DGC_OK;
}

/* "input file dtype rows rank dimensions" of each own file, a line each. */
static enum dgc_status describe(const struct files *f, struct str *out) {
  struct dgc_session *s = f->s;
  for (int i = 0; i < f->nspecs; i++)
    for (int k = f->own; k >= 0 && k < f->each; k += f->workers) {
      struct file_shape shape;
      if (!data_shape(s->call, &f->specs[i], k, &shape, &s->diags)) return session_unread(s);
      str_printf(out, "%d %d %d %lld %d", i, k, shape.row.dtype, (long long)shape.rows, shape.row.rank);
      for (int d = 0; d < shape.row.rank; d++) str_printf(out, " %lld", (long long)shape.row.dim[d]);
      str_putc(out, '\n');
    }
  return DGC_OK;
}

/* What describe has written; false if it is anything else. */
static bool read_line(const struct files *f, const char *line) {
  int i, k, dtype, rank, used;
  long long rows, dim;
  if (sscanf(line, "%d %d %d %lld %d%n", &i, &k, &dtype, &rows, &rank, &used) != 5) return false;
  if (i < 0 || i >= f->nspecs || k < 0 || k >= f->each || rank < 0 || rank >= MAX_RANK) return false;
  struct file_shape *shape = &f->shapes[i][k];
  *shape =
      (struct file_shape){.row = {.dtype = (unsigned char)dtype, .rank = (unsigned char)rank}, .rows = rows};
  for (int d = 0; d < rank; d++) {
    line += used;
    if (sscanf(line, " %lld%n", &dim, &used) != 1) return false;
    shape->row.dim[d] = dim;
  }
  return true;
}

/* Every process gets to know all files. */
static enum dgc_status exchange(const struct files *f) {
  struct dgc_session *s = f->s;
  struct str mine = str_make(s->call), all = str_make(s->call);
  const char **texts, *text = "";
  enum dgc_status status = describe(f, &mine);
  if (status) return status;
  if (!transport_collect(s->transport, s->call, mine.data ? mine.data : "", &texts))
    return session_unreached(s);
  for (int i = 0; texts && i < s->transport->size; i++) str_put(&all, texts[i]);
  if (texts && all.data) text = all.data;
  if (!transport_tell(s->transport, s->call, &text)) return session_unreached(s);
  for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
    if (!read_line(f, line))
      return session_fail(s, DGC_RUNTIME, "what another process says of its files is not understood");
  return DGC_OK;
}

/* Whether the files can be dealt to workers as they are, and no worker ever has a row of another's. */
static bool stay_apart(const struct files *f) {
  struct arena *a = f->s->call;
  int64_t *rows = arena_new_array(a, (size_t)f->each, int64_t);
  for (int k = 0; k < f->each; k++) rows[k] = f->shapes[0][k].rows;
  for (int i = 0; i < f->nspecs; i++)
    for (int k = 0; k < f->each; k++)
      if (!rows[k] || f->shapes[i][k].rows != rows[k]) return false;
  return shards_stay_apart(a, rows, f->each, f->workers, f->first, f->batch);
}

/* Whether no process reads another's rows of a batch for what it computes. */
static enum dgc_status reads_own(const struct files *f, bool *yes) {
  struct dgc_session *s = f->s;
  struct loaded *l;
  enum dgc_status status = session_plan(s, ENTRY_TRAIN, f->batch, &l);
  if (status) return status;
  int towers = f->first[f->workers];
  int64_t first = f->own < 0 ? 0 : tower_first_row(f->first[f->own], towers, f->batch);
  int64_t end = f->own < 0 ? 0 : tower_first_row(f->first[f->own + 1], towers, f->batch);
  unsigned char all = 0;
  for (int i = 0; i < f->nspecs; i++) all |= !reads_rows(s, l, f->specs[i].name, first, end);
  if (!transport_any(s->transport, &all)) return session_unreached(s);
  *yes = !all;
  return DGC_OK;
}

static void note(const struct files *f, enum shard how, const char *why) {
  if (how == SHARD_FILE && f->s->transport->rank == 0)
    diag_note(&f->s->diags, f->specs[0].loc, "%s, so each process opens all files", why);
}

enum dgc_status session_own_files(struct dgc_session *s, struct data_spec *specs, int count) {
  enum shard how = SHARD_DATA;
  struct files f = {.s = s, .specs = specs, .nspecs = count, .each = 1 + specs[0].nmore};
  if (!s->transport || s->options.rows || !s->options.auto_shard) return DGC_OK;
  if (!shard_find(s->options.auto_shard, &how) || (how != SHARD_FILE && how != SHARD_AUTO)) return DGC_OK;
  enum dgc_status status = find_workers(&f);
  bool apart = f.workers > 1 && f.each >= f.workers;
  for (int i = 0; i < count; i++) apart = apart && 1 + specs[i].nmore == f.each;
  if (status || !apart) return status;
  for (int i = 0; i < count; i++)
    apart = apart && !words_are_read(s->call, specs[i].path, specs[i].more, specs[i].nmore);
  if (!apart) note(&f, how, "words are numbered by those of all files");
  if (!apart) return status;
  status = reads_own(&f, &apart);
  if (!apart) note(&f, how, "all processes need all of an input that numbers rows");
  if (status || !apart) return status;
  f.shapes = arena_new_array(s->call, (size_t)count, struct file_shape *);
  for (int i = 0; i < count; i++) f.shapes[i] = arena_new_array(s->call, (size_t)f.each, struct file_shape);
  status = exchange(&f);
  if (status) return status;
  apart = stay_apart(&f);
  if (!apart) note(&f, how, "the rows of the files end a batch in which workers are given those of others");
  for (int i = 0; i < count && apart; i++) {
    for (int k = f.own; k >= 0 && k < f.each; k += f.workers) f.shapes[i][k].rows = 0;
    specs[i].shapes = f.shapes[i];
  }
  return DGC_OK;
}
