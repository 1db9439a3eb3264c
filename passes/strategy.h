/* Where things go, decided once from the configuration and read by replicate, place and collectives. */
#ifndef DGC_PASSES_STRATEGY_H
#define DGC_PASSES_STRATEGY_H

#include "ir/graph.h"

struct strategy {
  const char *name;
  int towers;
  int ndevices;      /* devices that carry towers: the first ones of the target */
  bool mirrored;     /* a copy of each variable on every one of them; else one, on the parameter device */
  int parameter;     /* index of the device that holds the variables (mirrored: that reduces) */
  int consolidation; /* index of the device that splits the batch and gathers results */
};

/* Fills in what config leaves open (devices: /cpu:0; towers: one per device; strategy: one_device for one
 * device, else mirrored; parameter device: the only compute device, else /cpu:0, which is added where it is
 * missing) and writes it back, so that the graph's header says it. False after an error. */
bool strategy_resolve(struct arena *a, struct config *config, struct strategy *out, struct diags *d);

#endif
