/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the data before it is opened */
#ifndef DGC_SESSION_STATE_DATA_H
#define DGC_SESSION_STATE_DATA_H

#include <stdbool.h>
#include <stdint.h>

enum data_use { DATA_TRAIN, DATA_EVAL, DATA_PREDICT, DATA_USES };

struct data_known {
  int64_t rows[DATA_USES]; /* of what it runs over, for the choice of a strategy; 0: that is not known */
  bool trained;            /* on it, since it was loaded: training data is not what to evaluate on */
};

#endif
