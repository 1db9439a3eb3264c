/* SPDX-License-Identifier: Apache-2.0 */
/* scan: a loop at run time. What its attributes and its body say, and how one is built. */
#ifndef DGC_IR_OPS_SCAN_H
#define DGC_IR_OPS_SCAN_H

#include "ir/ops/op.h"

/* The operands are the carried values as they are before the first step, the sequences, and the constants; the inputs
 * of the body are, in the same order, the carried values before a step, an element of each sequence (its first axis is
 * gone), and the constants. The results of the body are the carried values behind the step, then what is stacked; those
 * of the node the last carried values, then the stacks, whose first axis is that of the steps. */
struct scan {
  struct graph *body;
  int carries, sequences, constants, stacks;
  int64_t length;
  bool
      reverse; /* from the last element to the first; element i of a stack belongs to element i of the sequences */
};
struct scan scan_of(const struct node *n);
/* What is stacked of a value of each of so many steps. */
struct type scan_stack_type(const struct type *element, int64_t length);
/* The inputs of the body, in order: as many as n has operands. */
struct node **scan_inputs(struct arena *a, const struct graph *body);
/* How deep bodies may lie in each other: in a scan that of a scan or of a fused node. */
enum { MAX_BODIES = 4 };

/* A scan of this body, whose types the operands fit. `constants` follow from noperands. NULL after an error. */
struct node *build_scan(struct graph *g, const char *name, const struct scan *s, int noperands,
                        struct node *const *operands);
/* A scan of another graph, with these inputs and this body, otherwise exactly as it is: as graph_node_like. */
struct node *scan_like(struct graph *g, const struct node *n, struct node **inputs, struct graph *body);
/* Result i of a scan: itself, or an `output`. */
struct node *scan_result(struct graph *g, struct node *scan, int i, const char *name);

/* A loop whose step has been built in g itself: `carried` and `elements` are inputs of g that stand for the values
 * before a step and the elements of `sequences`, `next` and `stacked` what a step gives. What is made of those inputs
 * becomes the body; of the rest, what it reads becomes a constant of the loop. */
struct scan_step {
  int carries, sequences, stacks;
  struct node *const *initial, *const *carried, *const *next;
  struct node *const *sequence, *const *elements;
  struct node *const *stacked;
  int64_t length;
  bool reverse;
};
struct node *scan_extract(struct graph *g, const char *name, const struct scan_step *s);

/* Adds to the gradients of a scan's operands, of which `needed` says by node which ones are asked for, given those of
 * its results: dy[i], or NULL. */
void scan_gradient(struct grad *c, const struct node *n, struct node *const *dy, const uint8_t *needed);

#endif
