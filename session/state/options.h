/* SPDX-License-Identifier: Apache-2.0 */
/* What was asked for, by option */
#ifndef DGC_SESSION_STATE_OPTIONS_H
#define DGC_SESSION_STATE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct list {
  const char **items;
  int count;
};

/* How often something is done: every so many steps, or epochs. 0: never. */
struct every {
  int64_t steps, epochs;
};

/* Options by name; see option_table.c. */
struct options {
  struct list set, data, eval_data, output, allow_path, init_from;
#define NUMBER(type, name, most) int64_t name;
#define WORD(name)               const char *name;
#define TEXT(name)               const char *name;
#define FLAG(name)               bool name;
#include "ir/graph/config.def"
  const char *model, *graph, *emit, *devices, *backend, *arch, *batch_is, *pjrt_plugin, *bits;
  const char *rows, *eval_rows, *auto_shard;
  const char *link, *speed, *tasks; /* of predictions */
  const char *names;                /* of what a checkpoint holds */
  const char *trace, *checkpoint, *keep_best, *metric_to_watch, *to;
  struct every eval_every, log_every;
  const char *disable_pass, *print_after, *stress;
  const char *source_path; /* of verify */
  bool numeric;
  int64_t threads, epochs, steps, seed, checkpoint_every, checkpoint_seconds, timeout, eval_timeout, patience,
      dump_batch, memory_limit, columns;
  bool overwrite, allow_nan, train_metrics, sums, verify_each, dump_passes, time_passes, no_origins,
      no_shuffle, tf32, color, profile;
  bool seed_given, epochs_given, steps_given;
  bool free;               /* asynchronous, and in no fixed order; */
  int64_t unordered_bound; /* see runtime/mpi/unordered.h */
};

#endif
