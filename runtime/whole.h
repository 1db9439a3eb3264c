/* Variables as their model has them: one for all copies, whole though its parts lie on several devices. Copies that
 * towers have of their own are read as their sum, their mean or the first, and written so that they read as that. */
#ifndef DGC_RUNTIME_WHOLE_H
#define DGC_RUNTIME_WHOLE_H

#include "runtime/buffer.h"

struct whole {
  const char *name; /* "h.kernel" */
  struct type type;
  size_t bytes;
  struct variable **parts; /* one behind the other along the first axis; a variable that is not cut: itself */
  int nparts;
  const char *joins; /* the parts are towers' copies, read as one by this aggregation; NULL: they are parts */
};

/* All of them, by name, in `a`; how many. */
int store_wholes(const struct store *s, struct arena *a, struct whole **out);
/* False when a device has failed. What is written is not spread to copies yet: see store_spread. */
bool whole_read(const struct store *s, const struct whole *w, void *out);
bool whole_write(struct store *s, const struct whole *w, const void *data);

#endif
