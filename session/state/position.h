/* SPDX-License-Identifier: Apache-2.0 */
/* Where training stands */
#ifndef DGC_SESSION_STATE_POSITION_H
#define DGC_SESSION_STATE_POSITION_H

#include <stdint.h>

/* Where training stands; a checkpoint holds it. */
struct position {
  int64_t epoch, index; /* the next batch */
  int64_t step;         /* training steps since the model's first */
  int64_t batch;        /* rows of a global batch, which `index` counts in */
  int64_t rows;         /* that the epoch has; 0: it is not known, */
  int64_t shuffle;      /* nor whether they come in an order of its own, */
  int64_t sample;       /* nor what they are: a checksum of some of them */
};

#endif
