/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what was asked for goes with the strategy and with the devices. */
#ifndef DGC_PASSES_STRATEGY_FIT_H
#define DGC_PASSES_STRATEGY_FIT_H

#include "passes/strategy/strategy.h"

/* What the devices are for: workers in order, and the tasks they belong to. */
struct device_roles {
  int *compute, ncompute;
  int ntasks; /* of the devices that compute */
  int *servers, nservers;
};

/* "/cpu:0, /cpu:1" */
const char *device_list(struct arena *a, const struct target *t);
/* False after an error that names the setting and what to do. Where the setting stands in a source, so does the error;
 * else an option is to blame. */
bool strategy_fits(struct arena *a, const struct config *c, const struct device_roles *roles,
                   const struct strategy *s, struct diags *d);

#endif
