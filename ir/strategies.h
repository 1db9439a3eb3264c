/* SPDX-License-Identifier: Apache-2.0 */
/* The strategies by name, and what is true of each whatever the graph: the rows of strategies.def. */
#ifndef DGC_IR_STRATEGIES_H
#define DGC_IR_STRATEGIES_H

#include "base/diag.h"

enum storage { STORAGE_PARAMETER, STORAGE_SHARED, STORAGE_WORKERS, STORAGE_SERVERS, STORAGE_EACH };
enum strategy_reach { REACH_DEVICE, REACH_TASK, REACH_TASKS, REACH_PLUGIN };
enum {
  TAKES_PARAMETER_DEVICE = 1 << 0,
  TAKES_BALANCE = 1 << 1,
  TAKES_PARTS = 1 << 2,     /* min_part_bytes */
  TAKES_STALENESS = 1 << 3, /* asynchronous training */
  TAKES_LOSS_SCALING = 1 << 4,
  TAKES_UNEVEN = 1 << 5,
  TAKES_ON = 1 << 6,  /* where the model wants a variable */
  TAKES_SUMS = 1 << 7 /* cross_device, packs, bytes_per_pack: every device needs the sum of each gradient */
};
enum default_for {
  DEFAULT_FOR_NOTHING,
  DEFAULT_FOR_SERVERS, /* there is a job ps */
  DEFAULT_FOR_ONE_DEVICE,
  DEFAULT_FOR_SEVERAL_TASKS,
  DEFAULT_FOR_DEVICES /* of one task */
};

struct strategy_info {
  const char *name;
  enum storage storage;
  enum strategy_reach reach;
  uint32_t settings;
  enum default_for default_for;
  const char *help;
  const char *theirs; /* what others call it: words */
};
/* All, the last one without a name. */
extern const struct strategy_info strategies[];
/* NULL if there is none of this name; NULL for NULL. */
const struct strategy_info *strategy_find(const char *name);
/* The strategy that is taken for such devices. */
const struct strategy_info *strategy_default(enum default_for devices);
/* The names of those that take one of `settings`: "a, b or c". */
const char *strategies_taking(struct arena *a, uint32_t settings);
/* An error at `loc` for a name that no strategy has, with the closest one. `first`: a name, too; or NULL. */
void strategy_unknown(const char *name, const char *first, struct loc loc, struct diags *d);

#endif
