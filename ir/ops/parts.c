/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of values that are zero but for parts along one axis: gradients of slices are such pads, and those of all steps
 * of a sequence are their sum.
 *
 * Where no parts overlap, nothing is added: their sum is a concat of the parts, with zeros between them. What else is
 * added may come first, as an element meets one part at most: (d + a) + b has the bits of d + (a + b), but that the
 * sign of a zero may be the part's. */
#include "ir/ops/parts.h"

#include "ir/graph/build.h"
#include "ir/ops/op_id.h"

struct axis_part {
  int64_t begin, length;
  struct node *node;
};

/* Parts in the order of the axis; axis -1: it has none. */
struct axis_parts {
  struct axis_part *part;
  int count, axis;
};

static struct axis_parts parts_of_pad(struct arena *scratch, const struct node *n) {
  struct axis_parts p = {.axis = -1};
  int count;
  const int64_t *low = node_ints(n, ATTR_low, &count), *high = node_ints(n, ATTR_high, &count);
  if (!node_is_constant(n->inputs[1], 0)) return p;
  for (int i = 0; i < count; i++) {
    if (low[i] == 0 && high[i] == 0) continue;
    if (p.axis >= 0 || low[i] < 0 || high[i] < 0) return (struct axis_parts){.axis = -1};
    p.axis = i;
  }
  if (p.axis < 0) return p;
  p.part = arena_new(scratch, struct axis_part);
  *p.part = (struct axis_part){low[p.axis], n->inputs[0]->type.dim[p.axis], n->inputs[0]};
  p.count = 1;
  return p;
}

static struct axis_parts parts_of_concat(struct arena *scratch, const struct node *n) {
  struct axis_parts p = {.axis = (int)node_int(n, ATTR_axis)};
  int64_t at = 0;
  if (n->type.dim[p.axis] < 0) return (struct axis_parts){.axis = -1};
  p.part = arena_new_array(scratch, (size_t)n->ninputs, struct axis_part);
  for (int i = 0; i < n->ninputs; i++) {
    int64_t length = n->inputs[i]->type.dim[p.axis];
    if (!node_is_constant(n->inputs[i], 0)) p.part[p.count++] = (struct axis_part){at, length, n->inputs[i]};
    at += length;
  }
  return p.count < n->ninputs ? p : (struct axis_parts){.axis = -1};
}

static struct axis_parts parts_of(struct arena *scratch, const struct node *n) {
  if (n->op == OP_pad) return parts_of_pad(scratch, n);
  if (n->op == OP_concat) return parts_of_concat(scratch, n);
  return (struct axis_parts){.axis = -1};
}

/* The parts of both; axis -1 if some overlap. */
static struct axis_parts merge(struct arena *scratch, const struct axis_parts *a,
                               const struct axis_parts *b) {
  struct axis_parts p = {.axis = a->axis};
  int64_t end = 0;
  p.part = arena_new_array(scratch, (size_t)(a->count + b->count), struct axis_part);
  for (int i = 0, k = 0; i < a->count || k < b->count;) {
    bool first = k == b->count || (i < a->count && a->part[i].begin < b->part[k].begin);
    const struct axis_part *next = first ? &a->part[i++] : &b->part[k++];
    if (next->begin < end) return (struct axis_parts){.axis = -1};
    end = next->begin + next->length;
    p.part[p.count++] = *next;
  }
  return p;
}

static struct node *zeros(struct graph *g, const struct type *whole, int axis, int64_t length) {
  struct type t = *whole;
  t.dim[axis] = length;
  return build_fill(g, &t, 0);
}

static struct node *join(struct graph *g, struct arena *scratch, const struct axis_parts *p,
                         const struct type *whole) {
  struct node **in = arena_new_array(scratch, (size_t)(2 * p->count + 1), struct node *);
  int64_t end = 0;
  int count = 0;
  for (int i = 0; i < p->count; i++) {
    if (p->part[i].begin > end) in[count++] = zeros(g, whole, p->axis, p->part[i].begin - end);
    end = p->part[i].begin + p->part[i].length;
    in[count++] = p->part[i].node;
  }
  if (end < whole->dim[p->axis]) in[count++] = zeros(g, whole, p->axis, whole->dim[p->axis] - end);
  return build_concat(g, count, in, p->axis);
}

static bool may_have_parts(const struct node *n) { return n->op == OP_pad || n->op == OP_concat; }

static struct node *add_disjoint(struct graph *g, const struct node *a, const struct node *b) {
  if (!may_have_parts(a) || !may_have_parts(b)) return NULL;
  struct arena_guard guard;
  struct arena *scratch = arena_create_guarded(&guard);
  struct node *sum = NULL;
  struct axis_parts of_a = parts_of(scratch, a), of_b = parts_of(scratch, b);
  if (of_a.axis >= 0 && of_a.axis == of_b.axis) {
    struct axis_parts both = merge(scratch, &of_a, &of_b);
    if (both.axis >= 0) sum = join(g, scratch, &both, &a->type);
  }
  arena_destroy_guarded(scratch, &guard);
  return sum;
}

struct node *parts_add(struct graph *g, struct node *a, struct node *b) {
  struct node *sum = add_disjoint(g, a, b);
  for (int i = 0; !sum && i < 4; i++) { /* what is added to a sum */
    struct node *to = i < 2 ? a : b, *part = i < 2 ? b : a;
    struct node *parts = to->op == OP_add ? add_disjoint(g, to->inputs[i % 2], part) : NULL;
    if (parts) sum = build2(g, OP_add, to->inputs[1 - i % 2], parts);
  }
  return sum;
}
