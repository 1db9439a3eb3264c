/* SPDX-License-Identifier: Apache-2.0 */
/* A nest of loops: walk the values, give them strides, join loops, record the scalar programs. */
#include "planner/loop_nest.h"

#include "ir/ops/op_id.h"
#include "ir/ops/spread.h"

#include <assert.h>
#include <string.h>

/* Walking: from the results down to the leaves, each value once per view. */

static void item_strides(struct item *it, const struct type *t) {
  int64_t stride = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    if (it->view.loop[i] >= 0) it->stride[it->view.loop[i]] += stride;
    it->offset += it->view.begin[i] * stride;
    stride *= t->dim[i] > 0 ? t->dim[i] : 1;
  }
}

static bool view_equal(const struct operand_view *a, const struct operand_view *b, int rank) {
  for (int i = 0; i < rank; i++)
    if (a->loop[i] != b->loop[i] || a->begin[i] != b->begin[i]) return false;
  return true;
}

/* How the input of a broadcast, transpose or slice is seen. */
static struct operand_view view_through(const struct node *n, const struct operand_view *v) {
  struct operand_view in = {{0}, {0}};
  const struct type *from = &n->inputs[0]->type;
  int count;
  enum attr_key key = n->op == OP_broadcast ? ATTR_axes : n->op == OP_transpose ? ATTR_perm : ATTR_begin;
  const int64_t *ints = node_ints(n, key, &count);
  for (int i = 0; i < from->rank; i++) {
    if (n->op == OP_transpose) {
      in.loop[ints[i]] = v->loop[i];
      in.begin[ints[i]] = v->begin[i];
    } else if (n->op == OP_slice) {
      in.loop[i] = v->loop[i];
      in.begin[i] = v->begin[i] + ints[i];
    } else {
      assert(n->op == OP_broadcast);
      in.loop[i] = v->loop[ints[i]];
      in.begin[i] = v->begin[ints[i]];
    }
  }
  return in;
}

static int new_item(struct nest *t, const struct item *it) {
  struct lowerer *l = t->l;
  if (t->nitems == l->items_cap) {
    l->items_cap = l->items_cap ? 2 * l->items_cap : 64;
    struct item *items = arena_new_array(l->scratch, (size_t)l->items_cap, struct item);
    if (t->nitems) memcpy(items, l->items, (size_t)t->nitems * sizeof *items);
    l->items = items;
  }
  l->items[t->nitems] = *it;
  return t->nitems++;
}

static enum item_kind kind_of(const struct node *n, bool is_input) {
  if (node_is_immediate(n)) return ITEM_IMMEDIATE;
  if (is_input) return ITEM_INPUT;
  if (n->op == OP_batch_size) return ITEM_BATCH;
  if (node_is_counted(n)) return n->op == OP_iota ? ITEM_IOTA : ITEM_RANDOM;
  return op_of(n)->kind == KIND_REDUCE ? ITEM_ACCUMULATOR : ITEM_SCALAR;
}

/* `input`: which input of t->node `n` is, or -1 if n lies inside. */
static int walk(struct nest *t, const struct node *n, int input, struct operand_view v, bool epilogue) {
  bool outside = t->body ? n->op == OP_input : input >= 0;
  while (!outside && node_is_strided(n)) {
    v = view_through(n, &v);
    if (!t->body) input = 0;
    n = n->inputs[0];
    outside = t->body ? n->op == OP_input : true;
  }
  int *memo = t->body ? &t->l->memo[n->id] : NULL;
  for (int i = memo ? *memo : -1; i >= 0; i = t->l->items[i].next)
    if (t->l->items[i].epilogue == epilogue && view_equal(&t->l->items[i].view, &v, n->type.rank)) return i;

  struct item it = {
      .node = n, .view = v, .epilogue = epilogue, .input = input, .in = {-1, -1, -1}, .arg = -1};
  it.kind = kind_of(n, outside);
  if (it.kind == ITEM_INPUT) {
    if (t->body) it.input = t->l->input_of[n->id];
    item_strides(&it, &n->type);
  } else if (it.kind == ITEM_RANDOM) {
    struct type whole = random_whole(n);
    item_strides(&it, &whole);
  } else if (it.kind == ITEM_IOTA) {
    int loop = v.loop[node_int_or(n, ATTR_axis, 0)];
    if (loop >= 0) t->indexed[loop] = true;
  }
  if (it.kind == ITEM_SCALAR || it.kind == ITEM_RANDOM) {
    struct operand_view all = v;
    if (it.kind == ITEM_RANDOM) memset(&all, 0, sizeof all);
    for (int i = 0; i < n->ninputs; i++) it.in[i] = walk(t, n->inputs[i], t->body ? -1 : i, all, epilogue);
  }
  it.next = memo ? *memo : -1;
  int index = new_item(t, &it);
  if (memo) *memo = index;
  return index;
}

/* Beginning: loops and views. */

static void memo_clear(struct lowerer *l, const struct graph *body) {
  if (body->count > l->memo_cap) {
    l->memo_cap = 2 * body->count;
    l->memo = arena_new_array(l->scratch, l->memo_cap, int);
    l->input_of = arena_new_array(l->scratch, l->memo_cap, int);
  }
  int inputs = 0;
  for (uint32_t i = 0; i < body->count; i++) {
    l->memo[i] = -1;
    l->input_of[i] = body->nodes[i]->op == OP_input ? inputs++ : -1;
  }
}

static uint32_t reduced_axes(const struct node *n) {
  const struct attr *axes = node_attr(n, ATTR_axes);
  if (!axes) return 1u << node_int(n, ATTR_axis);
  uint32_t mask = 0;
  for (int i = 0; i < axes->count; i++) mask |= 1u << axes->ints[i];
  return mask;
}

void nest_begin(struct nest *t, struct lowerer *l, const struct node *n, const struct graph *body,
                const struct type *over, const struct node *const *reduce, int nreduce) {
  *t = (struct nest){.l = l, .node = n, .body = body, .nreduce = nreduce};
  if (body) memo_clear(l, body);
  if (nreduce) over = &reduce[0]->inputs[0]->type;
  uint32_t reduced = nreduce ? reduced_axes(reduce[0]) : 0;
  t->nloops = over->rank;
  for (int i = 0, outer = 0; i < over->rank; i++) {
    t->extent[i] = over->dim[i];
    t->reduced[i] = reduced >> i & 1;
    if (!t->reduced[i]) t->outer.loop[outer++] = (int8_t)i;
  }
  for (int i = 0; i < over->rank; i++) t->all.loop[i] = (int8_t)i;
  for (int i = 0; i < nreduce; i++) {
    assert(reduced_axes(reduce[i]) == reduced);
    t->reduce[i] = reduce[i];
    t->reduced_item[i] = walk(t, reduce[i]->inputs[0], body ? -1 : 0, t->all, false);
  }
}

static void add_output(struct nest *t, int item, const struct operand_view *from, const struct type *into,
                       const int64_t *begin) {
  int r = t->nresults++;
  t->result[r] = item;
  t->out_dtype[r] = into->dtype;
  struct item out = {.view = *from};
  for (int i = 0; begin && i < into->rank; i++) out.view.begin[i] = begin[i];
  item_strides(&out, into);
  memcpy(t->out_stride[r], out.stride, sizeof out.stride);
  t->out_offset[r] = out.offset;
}

bool nest_maps(const struct nest *t, const struct node *value) {
  return t->nreduce && value->type.rank == t->nloops;
}

void nest_result(struct nest *t, int number, const struct node *value, const struct type *into,
                 const int64_t *begin) {
  bool mapped = nest_maps(t, value);
  const struct operand_view *from = mapped ? &t->all : &t->outer;
  t->nmapped += mapped;
  t->number[t->nresults] = number;
  add_output(t, walk(t, value, -1, *from, t->nreduce && !mapped), from, into, begin);
}

void nest_copy(struct nest *t, int input, const struct type *into, const int64_t *begin) {
  add_output(t, walk(t, t->node->inputs[input], input, t->outer, false), &t->outer, into, begin);
}

void nest_fill(struct nest *t, int input, const struct type *into) {
  struct operand_view one = {{0}, {0}};
  add_output(t, walk(t, t->node->inputs[input], input, one, false), &t->outer, into, NULL);
}
