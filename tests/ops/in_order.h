/* SPDX-License-Identifier: Apache-2.0 */
/* Sums in the order of --bits portable: many results as one graph, known to the bit, of the interpreter and of compiled
 * code for each processor that this machine can compute as. */
#ifndef TESTS_OPS_IN_ORDER_H
#define TESTS_OPS_IN_ORDER_H

#include "tests/support/engine.h"

/* What operands are of: `special` ones have NaN, infinities and zeros among them; `stored` ones are bfloat16 in
 * memory. */
struct operand_kind {
  const char *name;
  enum dtype dtype;
  bool special, stored;
};
enum { OPERAND_KINDS = 5 };
extern struct operand_kind operand_kinds[OPERAND_KINDS];

struct in_order {
  struct arena *arena; /* of all that is made here */
  struct diags diags;
  struct graph *g;
  struct values inputs;
  int count; /* of results */
  struct {
    struct tensor want;
    const char *what;
  } * results;
};

struct in_order *in_order_create(int max_results);
void in_order_destroy(struct in_order *o);
/* An operand of this name that has the elements of t, which loses what bfloat16 does not hold where it is `stored`. */
struct node *in_order_operand(struct in_order *o, const char *name, struct tensor *t, bool stored);
/* The elements that z has to have, for the caller to fill in; `what` names it in messages. */
struct tensor *in_order_result(struct in_order *o, struct node *z, const char *what);
/* Fails the test at the first element of other bits: by the interpreter, then by compiled code as each processor, with
 * one thread, and with three in as many pieces as can be. Names the processors that this machine can't be. */
void in_order_check(struct in_order *o);

/* Whether this machine can be the processor ("haswell"; "": what it is); it is that, until DGC_CPU is unset. */
bool can_be(const char *processor);

#endif
