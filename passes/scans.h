/* SPDX-License-Identifier: Apache-2.0 */
/* Loops when a graph is simplified: those that do the same become one, and none does what nobody reads. */
#ifndef DGC_PASSES_SCANS_H
#define DGC_PASSES_SCANS_H

#include "passes/rebuild.h"

struct scans;

/* What becomes of the scans of g; NULL where it has none. Lives in the scratch arena. */
struct scans *scans_find(struct pass_ctx *ctx, const struct graph *g);
/* Of a rebuild, `user` being what scans_find gave. */
rebuild_visit scans_visit;
/* Whether the rebuild has left something for another one to drop. */
bool scans_changed(const struct scans *s);

#endif
