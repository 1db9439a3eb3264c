/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows the workers of a cluster read. Each has a sequence of rows, made of ranges of the dataset, and takes its
 * share of every batch from there; a batch is these shares, one worker's behind the other's. All in all it is a
 * function of the position in training, so that a run can go on anywhere. */
#include "runtime/data/loader.h"

#include "ir/target.h"

#include <string.h>

bool shard_find(const char *name, enum shard *out) {
  static const char *const names[] = {"data", "file", "off", "auto"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(names[i], name) != 0) continue;
    if (out) *out = (enum shard)i;
    return true;
  }
  return false;
}

static struct sequence *add_sequence(struct shards *s, int64_t share, uint64_t seed) {
  struct sequence *q = &s->sequences[s->count++];
  q->share = share;
  q->seed = seed;
  return q;
}

static void add_range(struct sequence *q, int64_t row, int64_t rows) {
  q->ranges[q->nranges++] = (struct range){.position = q->rows, .row = row};
  q->rows += rows;
}

static bool all_rows(struct shards *s, struct arena *a, const struct dataset *ds, int64_t share,
                     uint64_t seed) {
  struct sequence *q = add_sequence(s, share, seed);
  q->ranges = arena_new_array(a, 1, struct range);
  add_range(q, 0, ds->rows);
  return true;
}

/* Whether all inputs have their rows in files that begin at the same rows. */
static const struct column *other_files(const struct dataset *ds) {
  const struct column *first = &ds->columns[0];
  for (int i = 1; i < ds->ncolumns; i++) {
    const struct column *c = &ds->columns[i];
    bool same = c->npieces == first->npieces;
    for (int k = 0; k < c->npieces && same; k++) same = c->pieces[k].first == first->pieces[k].first;
    if (!same) return c;
  }
  return NULL;
}

/* Why the workers cannot have files of their own: reported if `d` is not NULL. */
static bool can_shard_files(const struct dataset *ds, const struct loader_options *o, struct diags *d) {
  const struct column *first = &ds->columns[0], *other = other_files(ds);
  if (other) {
    if (!d) return false;
    diag_error(d, other->loc,
               "the files of %s and %s do not have the same rows: workers cannot have files of their own",
               first->name, other->name);
  } else if (first->npieces < o->workers) {
    if (!d) return false;
    diag_error(d, first->loc, "each of %d workers needs a file of its own, and %s has its rows in %d file%s",
               o->workers, first->name, first->npieces, first->npieces == 1 ? "" : "s");
  } else {
    int idle = 0;
    while (idle < o->workers && o->shares[idle] > 0) idle++;
    if (idle == o->workers) return true;
    if (!d) return false;
    diag_error(d, LOC_NONE, "a batch of %lld rows has none for worker %d, whose files would never be read",
               (long long)o->batch, idle);
  }
  diag_help(d, LOC_NONE, "--auto-shard data deals the rows of each batch to the workers");
  return false;
}

/* Worker w has files w, w + workers, ... */
static bool shard_files(struct shards *s, struct arena *a, const struct dataset *ds,
                        const struct loader_options *o) {
  const struct column *c = &ds->columns[0];
  for (int w = 0; w < o->workers; w++) {
    struct sequence *q = add_sequence(s, o->shares[w], o->seed + (uint64_t)w);
    q->ranges = arena_new_array(a, (size_t)(c->npieces / o->workers) + 1, struct range);
    for (int i = w; i < c->npieces; i += o->workers) add_range(q, c->pieces[i].first, c->pieces[i].rows);
  }
  return true;
}

/* Every worker reads all rows, and all of them the same ones at a time. */
static bool repeat_rows(struct shards *s, struct arena *a, const struct dataset *ds,
                        const struct loader_options *o, struct diags *d) {
  for (int w = 0; w < o->workers; w++) {
    if (o->shares[w] != o->shares[0] || o->shares[0] == 0) {
      diag_error(
          d, LOC_NONE,
          "workers that all read the same rows must have as many of them, and of a batch of %lld worker 0 "
          "has %lld and worker %d %lld",
          (long long)o->batch, (long long)o->shares[0], w, (long long)o->shares[w]);
      diag_help(d, LOC_NONE, "choose --batch and --towers that %d workers divide", o->workers);
      return false;
    }
    all_rows(s, a, ds, o->shares[w], o->seed);
  }
  return true;
}

static bool make_sequences(struct shards *s, struct arena *a, const struct dataset *ds,
                           const struct loader_options *o, struct diags *d) {
  enum shard how = o->workers > 1 ? o->shard : SHARD_DATA;
  if (how == SHARD_AUTO) how = can_shard_files(ds, o, NULL) ? SHARD_FILE : SHARD_DATA;
  s->sequences = arena_new_array(a, how == SHARD_DATA ? 1 : (size_t)o->workers, struct sequence);
  switch (how) {
  case SHARD_FILE: return can_shard_files(ds, o, d) && shard_files(s, a, ds, o);
  case SHARD_OFF: return repeat_rows(s, a, ds, o, d);
  case SHARD_DATA:
  case SHARD_AUTO: break;
  }
  return all_rows(s, a, ds, o->batch, o->seed);
}

bool shards_stay_apart(struct arena *a, const int64_t *rows, int files, int workers, const int *first,
                       int64_t batch) {
  struct shards s = {.sequences = arena_new_array(a, (size_t)workers, struct sequence)};
  int64_t full = INT64_MAX,
          last = 0; /* batches to which all give their share; to which any gives something */
  for (int w = 0; w < workers; w++) {
    int64_t share = tower_first_row(first[w + 1], first[workers], batch) -
                    tower_first_row(first[w], first[workers], batch);
    struct sequence *q = add_sequence(&s, share, 0);
    if (!share) return false;
    for (int i = w; i < files; i += workers) q->rows += rows[i];
    if (q->rows / share < full) full = q->rows / share;
    if ((q->rows - 1) / share + 1 > last) last = (q->rows - 1) / share + 1;
  }
  for (int64_t b = full; b < last; b++) {
    int64_t all = shards_rows(&s, b), before = 0;
    for (int w = 0; w < workers; w++) {
      if (before != tower_first_row(first[w], first[workers], all)) return false;
      before += sequence_rows(&s.sequences[w], b);
    }
  }
  return true;
}

bool shards_make(struct shards *s, struct arena *a, const struct dataset *ds, const struct loader_options *o,
                 struct diags *d) {
  *s = (struct shards){0};
  if (!make_sequences(s, a, ds, o, d)) return false;
  for (int i = 0; i < s->count; i++) {
    const struct sequence *q = &s->sequences[i];
    int64_t batches = (q->rows - 1) / q->share + 1;
    if (batches > s->batches) s->batches = batches;
  }
  return true;
}

int64_t sequence_rows(const struct sequence *q, int64_t batch) {
  int64_t left = q->rows - batch * q->share;
  return left < 0 ? 0 : left < q->share ? left : q->share;
}

int64_t shards_rows(const struct shards *s, int64_t batch) {
  int64_t rows = 0;
  for (int i = 0; i < s->count; i++) rows += sequence_rows(&s->sequences[i], batch);
  return rows;
}

int64_t sequence_row(const struct sequence *q, int64_t position, int64_t *together) {
  int low = 0, high = q->nranges - 1;
  while (low < high) {
    int middle = (low + high + 1) / 2;
    if (q->ranges[middle].position <= position)
      low = middle;
    else
      high = middle - 1;
  }
  const struct range *r = &q->ranges[low];
  *together = (low + 1 < q->nranges ? r[1].position : q->rows) - position;
  return r->row + position - r->position;
}
