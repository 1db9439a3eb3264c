/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that other languages have, told from their text. */
#ifndef DGC_FRONTEND_MEANT_H
#define DGC_FRONTEND_MEANT_H

#include "base/diag.h"

/* A line cannot be read at byte `at` of its source, in so many open brackets, of which what stands there may
 * have closed one. Whether it can be told what was
 * meant: that is added as help. */
bool help_meant(struct diags *d, struct arena *a, const struct source *source, uint32_t at, int depth,
                bool closes);

#endif
