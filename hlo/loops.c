/* SPDX-License-Identifier: Apache-2.0 */
/* Loops at run time as `while`. It carries the number of the step, what the scan carries, its sequences and constants,
 * which stay as they are, and the stacks, each of which a step writes one element of. */
#include "hlo/emit.h"

#include "ir/ops/op_id.h"
#include "ir/ops/scan.h"

#include <string.h>

/* A loop that is being written. */
struct while_loop {
  const struct node *n;
  struct scan s;
  struct hlo_value *values; /* the number, the operands, the stacks: as they are before the first step, */
  struct hlo_value *inside; /* and in one */
  int count;
};

static struct hlo_value *stack_in(const struct while_loop *l, struct hlo_value *values, int i) {
  return &values[1 + l->n->ninputs + i];
}

static struct type stack_type(const struct hlo *h, const struct while_loop *l, int i) {
  struct type t = node_result_type(l->n, l->s.carries + i);
  return h->batch ? type_specialize(&t, h->batch) : t;
}

/* `%0, %1`, `%0: tensor<i64>, ...` or `tensor<i64>, ...`. */
enum listing { NAMES, NAMES_AND_TYPES, TYPES };
static void put_list(struct hlo *h, enum listing what, int count, const struct hlo_value *values) {
  for (int i = 0; i < count; i++) {
    if (i) str_put(h->out, ", ");
    if (what != TYPES) hlo_print_value(h->out, values[i]);
    if (what == NAMES_AND_TYPES) str_put(h->out, ": ");
    if (what != NAMES) str_put(h->out, hlo_type_text(h->arena, &values[i].type));
  }
}

/* What a region is given, under names of its own. */
static struct hlo_value *begin_region(struct hlo *h, const struct while_loop *l) {
  struct hlo_value *given = arena_new_array(h->arena, (size_t)l->count, struct hlo_value);
  for (int i = 0; i < l->count; i++) given[i] = (struct hlo_value){h->next++, l->values[i].type};
  str_put(h->out, "    ^bb0(");
  put_list(h, NAMES_AND_TYPES, l->count, given);
  str_put(h->out, "):\n");
  return given;
}

static void end_region(struct hlo *h, int count, const struct hlo_value *results) {
  str_put(h->out, "      stablehlo.return ");
  put_list(h, NAMES, count, results);
  str_put(h->out, " : ");
  put_list(h, TYPES, count, results);
  str_printf(h->out, " loc(#loc%d)\n", h->place);
}

static void begin(struct hlo *h, struct while_loop *l, const struct hlo_value *in) {
  struct type number = type_scalar(DT_I64);
  l->count = 1 + l->n->ninputs + l->s.stacks;
  l->values = arena_new_array(h->arena, (size_t)l->count, struct hlo_value);
  l->values[0] = hlo_integer(h, &number, 0);
  memcpy(l->values + 1, in, sizeof *in * (size_t)l->n->ninputs);
  for (int i = 0; i < l->s.stacks; i++) {
    struct type t = stack_type(h, l, i);
    *stack_in(l, l->values, i) = hlo_bits(h, &t, 0);
  }
}

/* Where element `at` of what is stacked like x lies: the operands of a dynamic slice. */
static void put_place(struct hlo *h, struct hlo_value at, const struct type *x, struct hlo_value *out) {
  struct type number = type_scalar(DT_I64);
  struct hlo_value zero = x->rank > 1 ? hlo_integer(h, &number, 0) : at;
  for (int i = 0; i < x->rank; i++) out[i] = i ? zero : at;
}

static struct type one_of(const struct type *x) {
  struct type t = *x;
  t.dim[0] = 1;
  return t;
}

static struct type element_of(const struct type *x) {
  struct type t = *x;
  memmove(t.dim, t.dim + 1, sizeof *t.dim * --t.rank);
  return t;
}

static struct hlo_value element(struct hlo *h, struct hlo_value x, struct hlo_value at) {
  struct hlo_value in[MAX_RANK + 1] = {x};
  struct type one = one_of(&x.type), t = element_of(&x.type);
  put_place(h, at, &x.type, in + 1);
  const char *attrs = arena_printf(h->arena, "slice_sizes = %s", hlo_array(h->arena, one.rank, one.dim));
  return hlo_shaped(h, hlo_op(h, "dynamic_slice", &one, one.rank + 1, in, attrs, NULL), &t);
}

static struct hlo_value with_element(struct hlo *h, struct hlo_value stack, struct hlo_value x,
                                     struct hlo_value at) {
  struct type one = one_of(&stack.type);
  struct hlo_value in[MAX_RANK + 2] = {stack, hlo_shaped(h, x, &one)};
  put_place(h, at, &stack.type, in + 2);
  return hlo_op(h, "dynamic_update_slice", &stack.type, one.rank + 2, in, NULL, NULL);
}

static void condition(struct hlo *h, const struct while_loop *l) {
  const struct hlo_value *given = begin_region(h, l);
  struct hlo_value going = hlo_compare(h, "LT", given[0], hlo_integer(h, &given[0].type, l->s.length));
  end_region(h, 1, &going);
}

/* What a step computes, and the values behind it. */
static bool step(struct hlo *h, struct while_loop *l) {
  const struct graph *g = l->s.body;
  const struct hlo_value *given = l->inside = begin_region(h, l);
  struct hlo_value **values = arena_new_array(h->arena, g->count + 1, struct hlo_value *);
  struct hlo_value *next = arena_new_array(h->arena, (size_t)l->count, struct hlo_value);
  struct hlo_value at = given[0];
  if (l->s.reverse) at = hlo_binary(h, "subtract", hlo_integer(h, &at.type, l->s.length - 1), at);
  memcpy(next, given, sizeof *next * (size_t)l->count);
  for (uint32_t i = 0, k = 0; i < g->count; i++) {
    if (g->nodes[i]->op != OP_input) continue;
    bool sequence = (int)k >= l->s.carries && (int)k < l->s.carries + l->s.sequences;
    struct hlo_value x = given[1 + k++];
    if (sequence) x = element(h, x, at);
    values[i] = arena_copy(h->arena, &x, sizeof x);
  }
  if (!hlo_nodes(h, g, graph_live(h->arena, g), values)) return false;
  next[0] = hlo_binary(h, "add", given[0], hlo_integer(h, &given[0].type, 1));
  for (int i = 0; i < g->noutputs; i++) {
    struct hlo_value x = *values[g->outputs[i].node->id];
    if (i < l->s.carries)
      next[1 + i] = x;
    else
      *stack_in(l, next, i - l->s.carries) =
          with_element(h, *stack_in(l, l->inside, i - l->s.carries), x, at);
  }
  end_region(h, l->count, next);
  return true;
}

bool hlo_loop(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value **out) {
  struct while_loop l = {.n = n, .s = scan_of(n)};
  begin(h, &l, in);
  struct hlo_value *results = l.values;
  if (l.s.length > 0) { /* of nothing no element could be cut */
    const struct hlo_replicas *replicas = h->replicas;
    results = arena_new_array(h->arena, (size_t)l.count, struct hlo_value);
    for (int i = 0; i < l.count; i++) results[i] = (struct hlo_value){h->next++, l.values[i].type};
    str_put(h->out, "    ");
    put_list(h, NAMES, l.count, results);
    str_put(h->out, " = \"stablehlo.while\"(");
    put_list(h, NAMES, l.count, l.values);
    str_put(h->out, ") ({\n");
    h->replicas = NULL; /* a step is the same on all devices */
    condition(h, &l);
    str_put(h->out, "    }, {\n");
    if (!step(h, &l)) return false;
    h->replicas = replicas;
    str_put(h->out, "    }) : (");
    put_list(h, TYPES, l.count, l.values);
    str_put(h->out, ") -> (");
    put_list(h, TYPES, l.count, results);
    str_printf(h->out, ") loc(#loc%d)\n", h->place);
  }
  *out = arena_new_array(h->arena, (size_t)(l.s.carries + l.s.stacks) + 1, struct hlo_value);
  memcpy(*out, results + 1, sizeof **out * (size_t)l.s.carries);
  memcpy(*out + l.s.carries, stack_in(&l, results, 0), sizeof **out * (size_t)l.s.stacks);
  return true;
}
