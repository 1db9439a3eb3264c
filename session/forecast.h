/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions: how long a step takes by each algorithm of sums, from what is given, not measured */
#ifndef DGC_SESSION_FORECAST_H
#define DGC_SESSION_FORECAST_H

#include "ir/graph/config.h"
#include "session/model.h"

#include "ir/plan/program.h"

/* What the options say of machines and links, the rest by default. */
struct speeds session_speeds(const struct dgc_session *s);

/* Forecasts for one entry of the model. */
struct forecasting {
  struct dgc_session *s;
  enum entry_kind kind;
  struct config base; /* what is compiled, but for the tasks, their towers and rows */
  struct speeds speeds;
  struct diags *why;
  /* of the crew asked for last */
  struct program program;
  int own_towers;
  int64_t own_rows;
  bool alone;
};

/* By algorithm, how long a step takes; nccl as reduce_to_one. False after an error in `why`. */
bool forecast_sums(struct forecasting *f, const struct crew *crew, struct forecast *out);

/* How the sums of all towers are to travel between the tasks of the configuration, the fastest way that keeps the bits,
 * and why, in the call's memory. `rows`: of a batch, for each tower or for all. NULL: there is nothing to choose. */
const char *session_choose_sums(struct dgc_session *s, const struct config *config, int64_t rows,
                                bool for_each, const char **why);

#endif
