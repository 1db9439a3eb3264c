/* SPDX-License-Identifier: Apache-2.0 */
/* What a model has: its variables, by who changes them, and how many numbers they are */
#ifndef DGC_SESSION_SUMMARY_H
#define DGC_SESSION_SUMMARY_H

#include "base/str.h"
#include "ir/graph/graph.h"

/* Of a source graph. */
void summary_print(struct str *out, const struct graph *g);

#endif
