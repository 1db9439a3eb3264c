/* SPDX-License-Identifier: Apache-2.0 */
/* From nodes to kernels.
 *
 * The value of every node is seen through a view: for each of its axes the loop that runs along it and where it
 * begins. Broadcasts, transposes and slices only change views; what is left at the leaves becomes strides and
 * offsets. How a reduction is ordered depends on the shape of what is reduced and on nothing else, so that its
 * bits do not depend on what it was fused with. */
#include "planner/lower.h"

#include "ir/ops/op_id.h"
#include "planner/loop_nest.h"

#include <assert.h>
#include <string.h>

struct lowerer *lower_create(struct arena *a, struct arena *scratch, const struct graph *g) {
  struct lowerer *l = arena_new(scratch, struct lowerer);
  l->arena = a;
  l->scratch = scratch;
  l->record = arena_create_guarded(&l->guard);
  l->batch = g->config.batch;
  return l;
}

void lower_destroy(struct lowerer *l) { arena_destroy_guarded(l->record, &l->guard); }

int lower_kernels(const struct lowerer *l, const struct kernel ***out) {
  *out = l->kernels;
  return l->nkernels;
}

bool lower_in_place(const struct node *n, const struct launch *launches, int nlaunches, int result,
                    int input) {
  if (node_is_leaf(n)) return op_of(n)->in_place == input + 1;
  if (n->op == OP_all_reduce) return true;
  const struct type to = node_result_type(n, result), *from = &n->inputs[input]->type;
  if (nlaunches != 1 || type_count(&to) != type_count(from) ||
      dtype_size(to.dtype) != dtype_size(from->dtype))
    return false;
  const struct kernel *k = launches->kernel;
  const int64_t *strides = launches->sizes + k->rank;
  int out = -1;
  for (int i = 0; i < k->nargs; i++)
    if (launches->args[i].result == result) out = i;
  if (launches->args[out].offset != 0) return false;
  for (int i = 0; i < k->nargs; i++) {
    if (launches->args[i].input < 0 || n->inputs[launches->args[i].input] != n->inputs[input]) continue;
    if (launches->args[i].offset != 0 || !kernel_may_overwrite(k, i, out)) return false;
    for (int d = 0; d < k->rank; d++)
      if (launches->sizes[d] > 1 && strides[i * k->rank + d] != strides[out * k->rank + d]) return false;
  }
  return true;
}

/* The node's results as one nest of loops. */
static int lower_group(struct lowerer *l, const struct node *n, const struct lower_into *into,
                       struct launch *out) {
  struct nest t;
  const struct graph *body = n->op == OP_fused ? node_attr(n, ATTR_body)->body : NULL;
  const struct node *reduce[MAX_KERNEL_SUMS];
  int nreduce = 0;
  if (!body && op_of(n)->kind == KIND_REDUCE) reduce[nreduce++] = n;
  for (uint32_t i = 0; body && i < body->count; i++)
    if (op_of(body->nodes[i])->kind == KIND_REDUCE) {
      assert(nreduce < MAX_KERNEL_SUMS);
      reduce[nreduce++] = body->nodes[i];
    }
  struct type first = node_result_type(n, 0);
  nest_begin(&t, l, n, body, &first, reduce, nreduce);
  for (int mapped = 0; mapped < 2; mapped++)
    for (int i = 0; i < node_results(n); i++) {
      const struct node *value = body ? body->outputs[i].node : n;
      struct type result = node_result_type(n, i);
      int64_t begin[MAX_RANK] = {0};
      if (nest_maps(&t, value) != mapped) continue;
      if (into[i].concat) {
        result = into[i].concat->type;
        begin[node_int(into[i].concat, ATTR_axis)] = into[i].begin;
      }
      nest_result(&t, i, value, &result, begin);
    }
  nest_end(&t, out);
  return 1;
}

/* Input `input` into the piece of the result that begins at `begin`. */
static void lower_piece(struct lowerer *l, const struct node *n, int input, const int64_t *begin,
                        struct launch *out) {
  struct nest t;
  nest_begin(&t, l, n, NULL, &n->inputs[input]->type, NULL, 0);
  nest_copy(&t, input, &n->type, begin);
  nest_end(&t, out);
}

static int lower_concat(struct lowerer *l, const struct node *n, const struct lower_into *into,
                        struct launch *out) {
  int64_t begin[MAX_RANK] = {0}, axis = node_int(n, ATTR_axis);
  int count = 0;
  for (int i = 0; i < n->ninputs; i++) {
    if (!into[i].concat) lower_piece(l, n, i, begin, &out[count++]);
    begin[axis] += n->inputs[i]->type.dim[axis];
  }
  return count;
}

static int lower_pad(struct lowerer *l, const struct node *n, struct launch *out) {
  struct nest t;
  nest_begin(&t, l, n, NULL, &n->type, NULL, 0);
  nest_fill(&t, 1, &n->type);
  nest_end(&t, &out[0]);
  int count;
  lower_piece(l, n, 0, node_ints(n, ATTR_low, &count), &out[1]);
  return 2;
}

int lower_node(struct lowerer *l, const struct node *n, const struct lower_into *into,
               const struct launch **out) {
  struct launch *launches =
      arena_new_array(l->scratch, n->op == OP_concat ? (size_t)n->ninputs : 2, struct launch);
  *out = launches;
  if (n->op == OP_concat) return lower_concat(l, n, into, launches);
  if (n->op == OP_pad) return lower_pad(l, n, launches);
  return lower_group(l, n, into, launches);
}
