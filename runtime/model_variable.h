/* SPDX-License-Identifier: Apache-2.0 */
/* Variables as their model has them: one for all replicas, complete though its parts lie on several devices. The
 * copies of towers are read as their sum, their mean or the first, and written so that they read as that. */
#ifndef DGC_RUNTIME_MODEL_VARIABLE_H
#define DGC_RUNTIME_MODEL_VARIABLE_H

#include "runtime/checkpoint.h"
#include "runtime/store.h"

struct model_variable {
  const char *name; /* "h.kernel" */
  struct type type;
  size_t bytes;
  enum dtype
      storage; /* narrow: its f32 hold values of it alone, and files have them so: what is written is rounded */
  struct stored_variable *
      *parts; /* one behind the other along the first axis; a variable that is not cut: itself */
  int nparts;
  const char *joins; /* the parts are towers' copies, read as one by this aggregation; NULL: they are parts */
};

/* All of them, by name, in `a`; how many. */
int store_model_variables(const struct store *s, struct arena *a, struct model_variable **out);
/* False when a device has failed. What is written is not given to copies yet: see store_broadcast. */
bool model_variable_read(const struct store *s, const struct model_variable *w, void *out);
bool model_variable_write(struct store *s, const struct model_variable *w, const void *data);

/* The values of all `count` variables, in `a`, under their names; behind them those of towers' copies, "tower_0/v":
 * shares of a sum of floats are not to be had from the sum. NULL when a device has failed. */
struct checkpoint *model_variables_save(const struct store *s, struct arena *a,
                                        const struct model_variable *all, int count);
/* The value of `c`, which has to have its type. Copies become what they were, if `c` has as many of them, and they are
 * read as that value. */
bool model_variable_restore(struct store *s, const struct model_variable *w, const struct checkpoint *c);

#endif
