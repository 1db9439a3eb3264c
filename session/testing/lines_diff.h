/* SPDX-License-Identifier: Apache-2.0 */
/* How a text differs from another, as diff -u shows it. */
#ifndef DGC_SESSION_TESTING_LINES_DIFF_H
#define DGC_SESSION_TESTING_LINES_DIFF_H

#include "base/str.h"

struct text {
  const char *data;
  size_t len;
};

/* Appends what `patch` would make of `before` to be `after`; nothing where they are equal. */
void lines_diff(struct str *out, struct text before, struct text after, const char *before_name,
                const char *after_name);

#endif
