/* SPDX-License-Identifier: Apache-2.0 */
/* The certificate of a placed graph: a proof, claim by claim, that it computes what its source graph says.
 *
 * It knows nothing of how the passes work. Both graphs are read into one reference graph, where equal
 * expressions are one node: the source says which expressions there may be, for the whole batch and for each
 * tower's rows; each node of the placed graph stands for one of them, or for some towers' share of a sum.
 * Where a result or an update does not stand for the source's, the first node that leaves the source is named.
 * Equal means equal under the builder's rules, which are checked by numbers elsewhere. */
#ifndef DGC_IR_CERTIFY_CERTIFY_H
#define DGC_IR_CERTIFY_CERTIFY_H

#include "ir/certify/certificate.h"
#include "ir/plan/plan.h"

/* Checks `placed`, which has been through copies, against `source`, which holds no gradient node. Without a
 * source the claims that need one are left unchecked. Breaches are reported with the lines of the nodes,
 * `after` the pass. The texts live in `a`; `out` may be NULL. False if there is a breach. */
bool graph_certify(struct arena *a, const struct graph *source, const struct graph *placed, const char *after,
                   struct diags *d, struct certificate *out);
/* Computes both graphs, a node at a time, on random inputs and variables, into CLAIM_NUMBERS. */
bool graph_certify_numbers(struct arena *a, const struct graph *source, const struct graph *placed,
                           uint64_t seed, struct diags *d, struct certificate *out);
/* The order in which the devices of a plan meet, into CLAIM_ORDER: the plan says what the graph leaves open. */
bool plan_certify(struct arena *a, const struct plan *p, struct diags *d, struct certificate *out);

#endif
