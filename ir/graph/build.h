/* SPDX-License-Identifier: Apache-2.0 */
/* The only way to make a node: infer its type, fold it, find an equal one, name it.
 *
 * Functions return NULL after an error (reported at g->loc) and accept NULL inputs (returning NULL silently),
 * so that a caller may build a whole expression and look once. Inputs of passes are valid by construction;
 * there NULL is a bug. */
#ifndef DGC_IR_GRAPH_BUILD_H
#define DGC_IR_GRAPH_BUILD_H

#include "ir/graph/graph.h"
#include "ir/ops/op.h"

#include <assert.h>

/* The raw constructor: finds a node equal to `proto` or appends one exactly as it is described (name, type,
 * place), without folding. Inputs and attributes are copied. The name must be free; proto's type must be what
 * node_infer says. */
struct node *graph_node(struct graph *g, const struct node *proto);
/* Room for so many nodes, so that no table has to grow. */
void graph_reserve(struct graph *g, uint32_t count);
/* Whether each tower has another value of n, which has no rows: by its op, or by its operands. */
bool node_is_own(const struct node *n);
/* Applies the op's dtype and shape rules to proto's op, inputs, attributes (and type, for typed ops) and sets
 * its type. False: *why says what is wrong; it lives in g's arena. */
bool node_infer(struct graph *g, struct node *proto, const char **why);
/* The attributes and a text of a node, in `a` or g's arena; equal texts may be one. */
const struct attr *node_attrs_copy(struct arena *a, const struct node *n);
const char *graph_keep_text(struct graph *g, const char *text);
/* The same key and value. */
bool attr_equal(const struct attr *a, const struct attr *b);
/* Gives a node another name if that is free (a binding names the value of its expression). False if it is taken. */
bool graph_rename(struct graph *g, struct node *n, const char *name);

/* The general form. `type` is needed by ops whose type is not inferred (OP_TYPED), else NULL or the
 * expected type. The node is called <scope>.<op>; where a different node has that name, the last parts of its
 * operands' names are appended one by one until it is free: what a node is called depends on what it computes,
 * never on a count. */
struct node *build(struct graph *g, unsigned op, int ninputs, struct node *const *inputs, int nattrs,
                   const struct attr *attrs, const struct type *type);
/* As build, with a name of its own. If the name is taken by a different node, a suffix is derived as above. If
 * an equal node exists already, it is returned with the name it has. */
struct node *build_named(struct graph *g, const char *name, unsigned op, int ninputs,
                         struct node *const *inputs, int nattrs, const struct attr *attrs,
                         const struct type *type);

struct node *build1(struct graph *g, unsigned op, struct node *a);
struct node *build2(struct graph *g, unsigned op, struct node *a, struct node *b);
struct node *build3(struct graph *g, unsigned op, struct node *a, struct node *b, struct node *c);

struct node *build_constant(struct graph *g, const struct type *t, const void *data);
/* A scalar constant. */
struct node *build_scalar(struct graph *g, enum dtype d, double value);
/* A constant of the type of `like`: a scalar, broadcast. */
struct node *build_fill(struct graph *g, const struct type *like, double value);
/* The number of a tower, a scalar of type t. `shared`: devices share a program, so that nothing may be made of the
 * number on one of them alone; it is counted then. */
struct node *build_tower_number(struct graph *g, const struct type *t, int64_t number, bool shared);
struct node *build_input(struct graph *g, const char *name, const struct type *t);
/* slot: of optimizer state the variable for which it is kept, else NULL. */
struct node *build_variable(struct graph *g, const char *name, const struct type *t, bool trainable,
                            const char *slot);
struct node *build_cast(struct graph *g, struct node *x, enum dtype d);
/* x, of f32, rounded to the values of the narrow type `d`; of DT_F32 x itself. */
struct node *build_rounded(struct graph *g, struct node *x, enum dtype d);
struct node *build_reshape(struct graph *g, struct node *x, const struct type *t);
/* All elements of x along one axis. */
struct node *build_flat(struct graph *g, struct node *x);
struct node *build_transpose(struct graph *g, struct node *x, const int64_t *perm);
/* `axes[i]` is the axis of `t` that axis i of x goes to (ascending); other axes of t repeat. */
struct node *build_broadcast(struct graph *g, struct node *x, const struct type *t, const int64_t *axes);
/* NumPy's rule: shapes are aligned at the end, sizes 1 stretch. Gives x in the shape of t. */
struct node *build_broadcast_to(struct graph *g, struct node *x, const struct type *t);
/* The common shape of a and b under NumPy's rule; false if there is none. */
bool broadcast_shape(const struct type *a, const struct type *b, struct type *out);
/* axes: bit i = axis i is reduced. op: OP_reduce_*; the result has no reduced axes. */
struct node *build_reduce(struct graph *g, unsigned op, struct node *x, uint32_t axes);
struct node *build_arg(struct graph *g, unsigned op, struct node *x,
                       int axis); /* OP_argmax, OP_argmin: i32 */
struct node *build_slice(struct graph *g, struct node *x, const int64_t *begin, const struct type *t);
struct node *build_pad(struct graph *g, struct node *x, const int64_t *low, const int64_t *high,
                       struct node *value);
struct node *build_concat(struct graph *g, int n, struct node *const *x, int axis);
struct node *build_matmul(struct graph *g, struct node *a, struct node *b, bool transpose_a,
                          bool transpose_b);
/* precision: NULL for f32, or "bf16", for operands that hold bfloat16 values only. */
struct node *build_matmul_in(struct graph *g, struct node *a, struct node *b, bool transpose_a,
                             bool transpose_b, const char *precision);
struct node *build_iota(struct graph *g, const struct type *t, int axis);
/* The number of rows of the global batch as a scalar. */
struct node *build_batch_size(struct graph *g, enum dtype d);
/* Elements of axes of x (bitmask) as a scalar: a constant, times batch_size for each axis that depends on B or N. */
struct node *build_count(struct graph *g, const struct type *t, uint32_t axes, enum dtype d);
/* stream: the op's own number, a hash of its path; step: scalar i64. */
struct node *build_random(struct graph *g, unsigned op, const struct type *t, struct node *step, int64_t seed,
                          int64_t stream);
/* The same for rows of `width` elements, each with the numbers that belong to it; row: the first one's, scalar i64. */
struct node *build_random_rows(struct graph *g, unsigned op, const struct type *t, struct node *step,
                               struct node *row, int64_t width, int64_t seed, int64_t stream);
/* "<variable>.update". */
struct node *build_assign(struct graph *g, struct node *variable, struct node *value);
/* The sum over the towers of what each has of x. */
struct node *build_sum_of_towers(struct graph *g, struct node *x);
/* d loss / d variable, to be expanded by the grad pass: "<variable>.grad". */
struct node *build_gradient(struct graph *g, struct node *loss, struct node *variable);

/* `n` of another graph, with these inputs, in g: same op, attributes, name, location, place. The type is inferred
 * again (typed ops: `type`, or n's own type when NULL). */
struct node *build_like(struct graph *g, const struct node *n, struct node *const *inputs,
                        const struct type *type);

/* `n` of another graph with these inputs in g, otherwise exactly as it is: neither folded nor typed again. */
struct node *graph_node_like(struct graph *g, const struct node *n, struct node **inputs);

/* What n becomes in `out`, given what its inputs have become; NULL after an error. */
typedef struct node *copy_visit(struct graph *out, const struct node *n, struct node **in, void *user);
/* As build_like: copies fold, and their types are inferred. */
copy_visit build_again;
/* The nodes of `from` that `keep` marks (NULL: all), in their order, in `out`: as `visit` says (NULL: exactly as they
 * are). `made`, by node, says what they have become; what is there before is not copied. False after an error. */
bool graph_copy_nodes(struct arena *scratch, struct graph *out, const struct graph *from, const uint8_t *keep,
                      struct node **made, copy_visit *visit, void *user);
/* The outputs of `from` in `out`. */
void graph_copy_outputs(struct graph *out, const struct graph *from, struct node *const *made);

/* What n of another graph has become in g takes over its name, and whose gradient it is, if it is new: nodes from
 * `before` on are. */
void build_takes_name(struct graph *g, struct node *made, const struct node *n, uint32_t before);

/* Scope, location, annotation and place of n, so that what is built next stands where n stands. */
void build_at(struct graph *g, const struct node *n);

/* Convenience for attributes. */
static inline struct attr attr_int(enum attr_key key, int64_t i) {
  return (struct attr){.key = key, .count = 1, .i = i};
}
static inline struct attr attr_ints(enum attr_key key, int count, const int64_t *ints) {
  return (struct attr){.key = key, .count = count, .ints = ints};
}
static inline struct attr attr_string(enum attr_key key, const char *s) {
  return (struct attr){.key = key, .count = 1, .string = s};
}

/* An expression of nested nodes, built from left to right whatever the compiler: C leaves the order of arguments open,
 * and the order of nodes is part of a graph's text. (grad_hold(c, x), grad_hold(c, y), grad_build(c, OP_mul, 2)) is
 * x * y. */
static inline void grad_hold(struct grad *c, struct node *operand) {
  assert(c->nheld < MAX_HELD);
  c->held[c->nheld++] = operand;
}
static inline struct node *grad_build(struct grad *c, unsigned op, int noperands) {
  c->nheld -= noperands;
  return build(c->g, op, noperands, c->held + c->nheld, 0, NULL, NULL);
}

#endif
