/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier's errors: all of its files report by this function, which shows the node that is wrong. */
#include "ir/graph/text.h"
#include "ir/graph/verify.h"

void verify_breach(struct verify *v, const struct node *n, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *what = arena_vprintf(v->arena, fmt, ap);
  va_end(ap);
  v->ok = false;
  diag_error(v->diags, n ? n->loc : LOC_NONE, "after %s: %s", v->after, what);
  if (!n) return;
  struct str line = str_make(v->arena);
  node_print(&line, v->g, n);
  diag_note(v->diags, LOC_NONE, "%s", line.data);
}
