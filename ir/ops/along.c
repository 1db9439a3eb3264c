/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that are picked along an axis, and elements that are added along one, by places that are data: what gather
 * and scatter_add are to rows. No place leads outside: take_along gives 0 for one that is not there, add_along adds
 * nothing. */
#include "ir/graph/build.h"
#include "ir/ops/leaf.h"
#include "ir/ops/op_id.h"

#include <string.h>

/* x and `index` have one shape, but for how many there are along the axis. */
static bool check_along(const struct node *n, struct arena *a, const char **why) {
  const struct type *x = &n->inputs[0]->type, *index = &n->inputs[1]->type;
  int axis = (int)node_int(n, ATTR_axis);
  struct type like = *x;
  if (!dtype_is_int(index->dtype)) {
    *why = arena_printf(a, "%s needs places of an integer type, not %s", op_of(n)->name, type_text(a, index));
    return false;
  }
  if (index->rank == x->rank && (index->dim[axis] < 0) == (x->dim[axis] < 0))
    like.dim[axis] = index->dim[axis];
  if (shape_equal(&like, index)) return true;
  *why = arena_printf(a, "%s along axis %d needs places of the shape of %s but for this axis, not %s",
                      op_of(n)->name, axis, type_text(a, x), type_text(a, index));
  return false;
}

/* x is [outer, length, inner], and there are `count` places in each line. */
struct along {
  int64_t outer, length, inner, count;
};

static struct along along_of(const struct node *n) {
  struct lines l = lines_of(n);
  int64_t axis = node_int(n, ATTR_axis);
  return (struct along){l.outer, n->inputs[0]->type.dim[axis], l.inner, n->inputs[1]->type.dim[axis]};
}

static void set_numbers(const struct node *n, const struct along *s, int64_t *out) {
  const struct type *x = &n->inputs[0]->type, *index = &n->inputs[1]->type;
  const int64_t numbers[] = {
      s->outer, s->count, s->length, s->inner, dtype_size(index->dtype), dtype_size(x->dtype)};
  memcpy(out, numbers, sizeof numbers);
}

/* Places in each line, lines, and their length: "3 of 64x128 of 1000". */
static void along_sizes(struct str *s, const struct node *n) {
  struct along l = along_of(n);
  str_printf(s, "%lld of %lldx%lld of %lld", (long long)l.count, (long long)l.outer, (long long)l.inner,
             (long long)l.length);
}

/* Where in x the place is that stands at `at` in `index`, or -1: nowhere. */
static int64_t element_at(const struct along *s, const struct tensor *index, int64_t at) {
  int64_t place = integer_at(index, at);
  if (place < 0 || place >= s->length) return -1;
  return (at / s->inner / s->count * s->length + place) * s->inner + at % s->inner;
}

static struct node *build_along(struct graph *g, enum op_id op, const struct node *n, int count,
                                struct node **in) {
  struct attr axis = attr_int(ATTR_axis, node_int(n, ATTR_axis));
  return build(g, op, count, in, 1, &axis, NULL);
}

/* ---- take_along: y[.., i, ..] = x[.., index[.., i, ..], ..] ---- */

static bool take_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  if (!check_along(n, a, why)) return false;
  *out = type_with_dtype(n->inputs[1]->type, (enum dtype)n->inputs[0]->type.dtype);
  return true;
}

static void take_grad(struct grad *c, const struct node *n, struct node *dy) {
  struct node *zeros = build_fill(c->g, &n->inputs[0]->type, 0);
  grad_add(c, n, 0, build_along(c->g, OP_add_along, n, 3, (struct node *[]){zeros, n->inputs[1], dy}));
}

static int64_t take_flops(const struct node *n) {
  (void)n;
  return 0;
}

static void take_eval(const struct node *n, const struct tensor *in, struct tensor *out) {
  struct along s = along_of(n);
  size_t size = (size_t)dtype_size((enum dtype)n->type.dtype);
  for (int64_t at = 0; at < type_count(&n->type); at++) {
    int64_t from = element_at(&s, &in[1], at);
    char *to = (char *)out->data + (size_t)at * size;
    if (from < 0)
      memset(to, 0, size);
    else
      memcpy(to, (const char *)in[0].data + (size_t)from * size, size);
  }
}

static int64_t take_numbers(const struct node *n, int64_t *out) {
  struct along s = along_of(n);
  set_numbers(n, &s, out);
  return s.outer * s.count * s.inner;
}

const struct op_info op_take_along = {.name = "take_along",
                                      .kind = KIND_LEAF,
                                      .dtypes = DTYPE_CUSTOM,
                                      .min_inputs = 2,
                                      .max_inputs = 2,
                                      .traits = OP_FUNCTION,
                                      .attrs = ATTR_BIT(axis),
                                      .linear = 1,
                                      .roles = {"x", "index"},
                                      .domain = DOMAIN_ANY,
                                      .infer = take_infer,
                                      .grad = take_grad,
                                      .flops = take_flops,
                                      .eval = take_eval,
                                      .sizes = along_sizes,
                                      .numbers = take_numbers};

/* ---- add_along: x, with values[.., i, ..] added to [.., index[.., i, ..], ..], in the order of i ---- */

static bool add_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const struct type *x = &n->inputs[0]->type, *values = &n->inputs[2]->type;
  if (!check_along(n, a, why)) return false;
  struct type wanted = type_with_dtype(n->inputs[1]->type, (enum dtype)x->dtype);
  if (x->dtype == DT_BOOL || !type_equal(&wanted, values)) {
    *why = x->dtype == DT_BOOL ? arena_printf(a, "add_along needs numbers, not %s", type_text(a, x))
                               : arena_printf(a, "add_along to %s needs values of %s, not %s",
                                              type_text(a, x), type_text(a, &wanted), type_text(a, values));
    return false;
  }
  *out = *x;
  return true;
}

static void add_grad(struct grad *c, const struct node *n, struct node *dy) {
  grad_add(c, n, 0, dy);
  grad_add(c, n, 2, build_along(c->g, OP_take_along, n, 2, (struct node *[]){dy, n->inputs[1]}));
}

static int64_t add_flops(const struct node *n) { return type_count(&n->inputs[2]->type); }

static void add_eval(const struct node *n, const struct tensor *in, struct tensor *out) {
  struct along s = along_of(n);
  enum dtype d = (enum dtype)n->type.dtype;
  int64_t size = dtype_size(d);
  if (in[0].data != out->data && type_bytes(&n->type))
    memcpy(out->data, in[0].data, (size_t)type_bytes(&n->type));
  for (int64_t at = 0; at < type_count(&in[1].type); at++) {
    int64_t to = element_at(&s, &in[1], at);
    if (to >= 0) add_elements(d, (char *)out->data + to * size, (const char *)in[2].data + at * size, 1);
  }
}

/* A thread for each line. */
static int64_t add_numbers(const struct node *n, int64_t *out) {
  struct along s = along_of(n);
  set_numbers(n, &s, out);
  return s.count ? s.outer * s.inner : 0;
}

const struct op_info op_add_along = {.name = "add_along",
                                     .kind = KIND_LEAF,
                                     .dtypes = DTYPE_CUSTOM,
                                     .min_inputs = 3,
                                     .max_inputs = 3,
                                     .traits = OP_FUNCTION,
                                     .attrs = ATTR_BIT(axis),
                                     .roles = {"x", "index", "values"},
                                     .domain = DOMAIN_ANY,
                                     .infer = add_infer,
                                     .grad = add_grad,
                                     .flops = add_flops,
                                     .eval = add_eval,
                                     .sizes = along_sizes,
                                     .in_place = 1,
                                     .numbers = add_numbers};
