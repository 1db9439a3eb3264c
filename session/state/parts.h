/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of what a model predicts */
#ifndef DGC_SESSION_STATE_PARTS_H
#define DGC_SESSION_STATE_PARTS_H

#include "base/map.h"
#include "session/state/options.h"

struct graph;

/* By their names. */
struct predicted_parts {
  const struct graph *predicted; /* what is predicted in this call, where that is not all; NULL: it is */
  struct map made;               /* which plans were made of, by what they are of and their names */
  struct list names;             /* that dgc_output has handed out */
};

#endif
