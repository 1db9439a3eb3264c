/* The part of the loader that knows nothing of threads: which batch comes next, and what is in it. */
#ifndef DGC_RUNTIME_DATA_LOADER_H
#define DGC_RUNTIME_DATA_LOADER_H

#include "runtime/data/data.h"

struct loader_cursor {
  int64_t epoch, index; /* of the next batch */
};

struct loader_failure {
  struct loc loc;
  char message[400];
};

/* Describes the next batch but leaves its columns alone; false at the end of the last epoch. */
bool cursor_next(struct loader_cursor *c, const struct dataset *ds, const struct loader_options *o,
                 struct batch *b);
/* Copies the batch's rows into the memory of `columns` and sets their types. */
bool batch_gather(const struct dataset *ds, const struct loader_options *o, const struct batch *b,
                  struct tensor *columns, struct loader_failure *f);

#endif
