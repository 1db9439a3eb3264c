/* SPDX-License-Identifier: Apache-2.0 */
/* What is written where it will be concatenated.
 *
 * A value that nothing but one concat reads needs no memory of its own: who makes it writes it into its part of the
 * concatenation, and nothing is copied. Where the axis is the outermost one that has more than one element, a part's
 * bytes lie next to each other, and any kernel or leaf may write them; else a kernel does that goes through the part
 * row by row, if its rows fill vectors. */
#include "ir/ops/op_id.h"
#include "planner/schedule.h"

enum { WHOLE_VECTORS = 16, LONG_ROW = 64 };

/* What looks at all of another value, whose memory it is. */
static bool is_whole_view(const struct node *n) {
  int64_t offset;
  return node_is_view(n, &offset) && offset == 0 && type_bytes(&n->type) == type_bytes(&n->inputs[0]->type);
}

const struct node *concat_source(const struct node *concat, int input) {
  const struct node *x = concat->inputs[input];
  while (is_whole_view(x)) x = x->inputs[0];
  return x;
}

static const struct node *maker_of(const struct node *n) { return n->op == OP_output ? n->inputs[0] : n; }

/* Elements of one index of the axes before `axis`, and how many indices there are. */
static int64_t row_of(const struct type *t, int axis) {
  int64_t row = 1;
  for (int i = axis; i < t->rank; i++) row *= t->dim[i];
  return row;
}

static int64_t rows_of(const struct type *t, int axis) {
  int64_t rows = 1;
  for (int i = 0; i < axis; i++) rows *= t->dim[i];
  return rows;
}

int64_t concat_part_begin(const struct concat_part *part) {
  const struct type *t = &part->concat->inputs[part->input]->type;
  return part->begin * (type_bytes(t) / t->dim[node_int(part->concat, ATTR_axis)]);
}

/* Nodes that read n, those aside that stand for further results of it. */
static int count_users(const struct schedule *s, const uint8_t *live, const struct node *n) {
  int count = 0;
  for (uint32_t i = s->users.first[n->id]; i < s->users.first[n->id + 1]; i++) {
    const struct node *u = s->users.users[i];
    count += live[u->id] && u->op != OP_output;
  }
  return count;
}

static bool has_reduction(const struct node *n) {
  if (n->op != OP_fused) return op_of(n)->kind == KIND_REDUCE;
  const struct graph *body = node_attr(n, ATTR_body)->body;
  for (uint32_t i = 0; i < body->count; i++)
    if (op_of(body->nodes[i])->kind == KIND_REDUCE) return true;
  return false;
}

/* Whether a kernel or a leaf computes n, or a copy of its elements that a kernel makes. */
static bool is_computed(const struct node *n) {
  if (node_is_external(n) || is_whole_view(n)) return false;
  switch (op_of(n)->kind) {
  case KIND_SOURCE: return n->op != OP_constant;
  case KIND_MOVEMENT: return n->op != OP_concat && n->op != OP_pad;
  case KIND_META: return n->op == OP_fused;
  case KIND_ELEMENTWISE:
  case KIND_REDUCE:
  case KIND_LEAF: return true;
  case KIND_EFFECT: break;
  }
  return false;
}

static bool is_alone(const struct schedule *s, const uint8_t *live, const uint8_t *is_output,
                     const struct node *concat, int input) {
  const struct node *x = concat->inputs[input], *end = concat_source(concat, input);
  for (;; x = x->inputs[0]) {
    if (is_output[x->id] || count_users(s, live, x) != 1) return false;
    if (x == end) return true;
  }
}

static void find_part(struct schedule *s, const uint8_t *live, const uint8_t *is_output,
                      const struct node *concat, int input, int64_t begin) {
  const struct node *x = concat->inputs[input], *source = concat_source(concat, input);
  const struct node *maker = maker_of(source);
  int axis = (int)node_int(concat, ATTR_axis);
  int64_t row = row_of(&x->type, axis), offset;
  bool dense = rows_of(&concat->type, axis) == 1;
  bool strided = source == x && !node_is_leaf(maker) && !has_reduction(maker) && row >= WHOLE_VECTORS &&
                 (row % WHOLE_VECTORS == 0 || row >= LONG_ROW);
  if (maker->device != concat->device || node_is_view(maker, &offset) || !is_computed(maker) ||
      type_count(&x->type) == 0 || !(dense || strided) || !is_alone(s, live, is_output, concat, input))
    return;
  struct concat_part *p = &s->parts[source->id];
  p->concat = concat;
  p->input = input;
  p->begin = begin;
  p->dense = dense;
}

void schedule_parts(struct schedule *s, const uint8_t *live) {
  const struct graph *g = s->g;
  uint8_t *is_output = arena_new_array(s->scratch, g->count + 1, uint8_t);
  s->parts = arena_new_array(s->scratch, g->count + 1, struct concat_part);
  s->users = graph_users(s->scratch, g);
  for (int i = 0; i < g->noutputs; i++) is_output[g->outputs[i].node->id] = 1;
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    int64_t begin = 0;
    for (int k = 0; live[i] && n->op == OP_concat && k < n->ninputs; k++) {
      find_part(s, live, is_output, n, k, begin);
      begin += n->inputs[k]->type.dim[node_int(n, ATTR_axis)];
    }
  }
}
