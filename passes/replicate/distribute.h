/* SPDX-License-Identifier: Apache-2.0 */
/* How values lie over the towers. */
#ifndef DGC_PASSES_REPLICATE_DISTRIBUTE_H
#define DGC_PASSES_REPLICATE_DISTRIBUTE_H

#include "passes/replicate/state.h"

/* The distribution of n, given those of its inputs. False if it cannot be spread over towers, which is reported. */
bool distribute(struct replicate *r, const struct node *n);
/* Reports why n cannot be spread; false. */
bool refuse(struct replicate *r, const struct node *n, const char *why);

bool on_towers(const struct replicate *r, const struct node *n); /* per_replica or partial */
/* Whether a partial(sum) may pass through n instead of being reduced before: additions and movement, which keep sums.
 * A product with a mirrored value would too, but then a mean would no longer divide once. */
bool passes_partial(const struct replicate *r, const struct node *n);
/* Whether n joins local values: aggregates, and variables that are joined on read. */
bool is_aggregated(const struct node *n);
/* Whether n reads local values of its operands. */
bool reads_local(const struct node *n);
/* A scatter_add of the towers' rows to a table that they share. */
bool joins_rows(const struct node *n);
/* Whether the local value of n may be another than the global one. */
bool has_local(const struct replicate *r, const struct node *n);
/* Whether the local value of n is what the tower has of the model's rows. */
bool is_model_rows(const struct replicate *r, const struct node *n);

#endif
