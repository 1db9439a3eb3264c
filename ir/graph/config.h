/* SPDX-License-Identifier: Apache-2.0 */
/* What a graph is compiled for: the header of its text. What knows of a configuration need not know of graphs. */
#ifndef DGC_IR_GRAPH_CONFIG_H
#define DGC_IR_GRAPH_CONFIG_H

#include "base/diag.h"
#include "ir/target.h"

#define MAX_TOWERS (1 << 20)

/* Where a variable lives, for strategies that give each a device of its own. */
struct home {
  const char *variable, *device; /* the device's canonical name */
};

/* Where a source asks for each setting. No source: an option did, or nobody. */
struct config_asked {
#define NUMBER(type, name, most) struct loc name;
#define WORD(name)               struct loc name;
#define TEXT(name)               struct loc name;
#define FLAG(name)               struct loc name;
#include "ir/graph/config.def"
};

/* What a graph is compiled for; printed in its header, read back by the passes of `dgc opt`. */
struct config {
#define NUMBER(type, name, most) type name;
#define WORD(name)               const char *name;
#define TEXT(name)               const char *name;
#define FLAG(name)               bool name;
#include "ir/graph/config.def"
  struct config_asked asked;
  struct target target;
  struct home *homes; /* the same in all graphs of a model */
  int nhomes;
};

/* A copy that shares nothing with `from`. */
struct config config_copy(struct arena *a, const struct config *from);
/* Whether a tower's loss is that of its own rows, as replicate_model_fn has it. */
bool scales_per_tower(const struct config *c);

#endif
