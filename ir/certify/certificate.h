/* SPDX-License-Identifier: Apache-2.0 */
/* What a certificate says: a claim each of what a placed graph must be. */
#ifndef DGC_IR_CERTIFY_CERTIFICATE_H
#define DGC_IR_CERTIFY_CERTIFICATE_H

#include <stdbool.h>
#include <stdint.h>

enum claim_id {
  CLAIM_TOWERS,    /* each tower is the model on its rows */
  CLAIM_BATCH,     /* the towers' rows are the batch: none twice, none left out */
  CLAIM_GRADIENTS, /* each sum over the batch has every tower once, joined by the fixed tree */
  CLAIM_SCALE,     /* constants, divisors and counts are the source's */
  CLAIM_VARIABLES, /* every copy of a variable has one writer, and all get the source's update */
  CLAIM_RESULTS,   /* every result is the source's */
  CLAIM_PARTIAL,   /* no share of a sum is read by what is not linear in it */
  CLAIM_DEVICES,   /* every node has a device, and values cross by copies alone */
  CLAIM_ORDER,     /* all devices meet in one order */
  CLAIM_NUMBERS,   /* both graphs, computed on random numbers, give the same: only where it is asked for */
  CLAIM_COUNT
};

struct claim {
  bool checked;
  int breaches;
  const char *text; /* what was checked, with its numbers; or why it was not */
};

struct certificate {
  struct claim claims[CLAIM_COUNT];
  int breaches;
  uint64_t work; /* nodes, operands and outputs looked at: it grows with the graphs, and no faster */
};

struct str;
/* A line per claim. */
void certificate_print(struct str *s, const struct certificate *c);

#endif
