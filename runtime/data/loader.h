/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the loader that knows nothing of threads: which batch comes next, and what is in it. */
#ifndef DGC_RUNTIME_DATA_LOADER_H
#define DGC_RUNTIME_DATA_LOADER_H

#include "runtime/data/data.h"
#include "runtime/data/decoders.h"

struct loader_cursor {
  int64_t epoch, index; /* of the next batch */
};

struct loader_failure {
  struct loc loc;
  bool system; /* and not the data */
  char message[400];
};

/* Rows of a dataset from `row` on, up to the next range; `position`: of the first, in the sequence. */
struct range {
  int64_t position, row;
};

/* What one worker reads in an epoch; the order before it is shuffled. */
struct sequence {
  struct range *ranges;
  int nranges;
  int64_t rows;
  int64_t share; /* of each batch */
  uint64_t seed;
};

struct shards {
  struct sequence *sequences; /* of the workers; or one, for all of them together */
  int count;
  int64_t batches; /* of an epoch: until the longest sequence ends */
};

/* shard.c */
bool shards_make(struct shards *s, struct arena *a, const struct dataset *ds, const struct loader_options *o,
                 struct diags *d);
/* The rows of an epoch's batch; those that one sequence gives to it. */
int64_t shards_rows(const struct shards *s, int64_t batch);
int64_t sequence_rows(const struct sequence *q, int64_t batch);
/* The dataset's row at this position; `together`: how many follow each other from there. */
int64_t sequence_row(const struct sequence *q, int64_t position, int64_t *together);

/* batch.c */
/* Describes the next batch but leaves its columns alone; false at the end of the last epoch. */
bool cursor_next(struct loader_cursor *c, const struct shards *s, const struct loader_options *o,
                 struct batch *b);
/* Copies the batch's rows of a column that are to be read to their places in `out`. `team`: what images are decoded by;
 * NULL: this thread alone. */
bool batch_gather_column(const struct column *c, const struct shards *s, const struct loader_options *o,
                         const struct batch *b, void *out, struct decoders *team, struct loader_failure *f);
/* The same for all columns, into the memory of `columns`, and sets their types. */
bool batch_gather(const struct dataset *ds, const struct shards *s, const struct loader_options *o,
                  const struct batch *b, struct tensor *columns, struct decoders *team,
                  struct loader_failure *f);

#endif
