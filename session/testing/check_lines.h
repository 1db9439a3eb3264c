/* SPDX-License-Identifier: Apache-2.0 */
/* Lines `CHECK:` of a test: whether a text is as they say. A subset of LLVM's FileCheck, docs/testing.md. */
#ifndef DGC_SESSION_TESTING_CHECK_LINES_H
#define DGC_SESSION_TESTING_CHECK_LINES_H

#include "base/diag.h"

struct check_options {
  const char *prefixes; /* "CHECK,ERROR"; NULL: CHECK */
  const char **absent;  /* --implicit-check-not: what stands nowhere between what is found */
  int nabsent;
  bool allow_empty; /* the text may be empty */
};

/* Whether the text is as the lines of `file` say; else errors at those lines, with notes where in the text. `name`:
 * what the text is, "the output of line 3". */
bool check_lines(struct arena *a, const struct source *file, const struct check_options *o, const char *name,
                 const char *text, size_t len, struct diags *d);

#endif
