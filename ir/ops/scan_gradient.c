/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a scan: another one, in the other direction, each step of which computes its step again from the
 * values carried into it and carries the gradients of those back.
 *
 * The values carried into each step are stacked by a copy of the loop, which takes the loop's place when the graph is
 * simplified; so are matrix products, which are most of the work, unless the loop is long: then memory counts. What a
 * step adds to the gradient of a constant is not added up step by step where that joins rows or columns, as in x' @ dy:
 * its factors are stacked, and the sum over all steps is one product outside of the loop. So no step joins rows of the
 * batch, which may lie in several towers. */
#include "ir/ops/op_id.h"
#include "ir/ops/scan.h"

#include "ir/graph/build.h"

#include <string.h>

/* Loops of more steps compute their products again. */
enum { LONGEST_KEPT = 1024 };

/* A walk over the steps of a body, which stand in the graph of the loop that goes back. */
struct step_walk {
  struct graph *g;
  uint32_t count;           /* nodes of the step itself */
  struct node **grads;      /* by node */
  uint8_t *needed;          /* by node */
  struct node **kept;       /* by node: the input that has its value, and is read in its place; NULL: none */
  struct node ***of_result; /* by scan: the gradients of its results */
};

static const char *gradient_name(struct graph *g, const struct node *n) {
  return arena_printf(g->arena, "%s.grad", n->name);
}

static void add_to(struct step_walk *w, struct node **sum, const struct node *x, struct node *d) {
  const char *scope = w->g->at.scope;
  w->g->at.scope = gradient_name(w->g, x);
  *sum = *sum && d ? build2(w->g, OP_add, *sum, d) : d ? d : *sum;
  w->g->at.scope = scope;
}

static void add_input(struct grad *c, const struct node *n, int input, struct node *d) {
  struct step_walk *w = c->state;
  const struct node *x = n->inputs[input];
  if (x->id < w->count && w->needed[x->id]) add_to(w, &w->grads[x->id], x, d);
}

static void add_result(struct grad *c, const struct node *n, int index, struct node *d) {
  struct step_walk *w = c->state;
  if (n->op != OP_scan) return;
  if (!w->of_result[n->id])
    w->of_result[n->id] = arena_new_array(c->g->arena, (size_t)node_results(n), struct node *);
  add_to(w, &w->of_result[n->id][index], n, d);
}

static void go_back(struct grad *c, const struct node *n) {
  struct step_walk *w = c->state;
  if (w->grads[n->id]) add_result(c, n, 0, w->grads[n->id]);
  if (w->of_result[n->id]) scan_gradient(c, n, w->of_result[n->id], w->needed);
}

static void walk_back(struct step_walk *w) {
  struct graph *g = w->g;
  struct grad c = {.g = g, .state = w, .add = add_input, .result = add_result, .scan = go_back};
  for (uint32_t i = 0; i < w->count; i++) {
    const struct node *n = g->nodes[i];
    bool floats = dtype_is_float((enum dtype)n->type.dtype) || n->op == OP_scan;
    for (int k = 0; k < n->ninputs && floats && op_of(n)->grad && !(op_of(n)->traits & OP_NO_GRADIENT); k++)
      w->needed[i] |= w->needed[n->inputs[k]->id];
    if (w->kept[i]) w->needed[w->kept[i]->id] = w->needed[i];
  }
  for (uint32_t i = w->count; i-- > 0;) {
    struct node *n = g->nodes[i], *dy = w->grads[w->kept[i] ? w->kept[i]->id : i];
    if ((!dy && !(n->op == OP_scan && w->of_result[i])) || !op_of(n)->grad || !w->needed[i]) continue;
    build_at(g, n);
    g->at.backward = true;
    g->at.scope = gradient_name(g, n);
    op_of(n)->grad(&c, n, dy);
  }
}

/* ---- the loop that goes back ---- */

struct back {
  struct graph *g, *body;
  const struct node *n;
  struct scan s;
  struct node *const *dy;
  struct node *forward;   /* n, with stacks of what is carried into each step, and of products */
  struct node **products; /* nodes of n's body, */
  struct node **again;    /* in the body, of which others only have the gradients, */
  struct node **given;    /* and inputs with their values */
  int nproducts;
  struct node **operands;
  int noperands, carries, sequences;
  int *
      carry_of; /* by carried value of n: its gradient's number among what is carried back, -1: it has none */
  struct node **inner;  /* by node of n's body: in the body */
  struct node **seeds;  /* by result of n: the input with its gradient, or NULL */
  struct node **stacks; /* nodes of the body that are stacked; */
  int nstacks;
  struct node **sums; /* and those that are added up as they come: carried from the input before to this */
  int nsums;
  uint8_t *noted;              /* by node of the body: what has been noted of it, */
  struct node **summed, **all; /* and its sum over all steps, and its values in them, once made */
  struct node *loop;
};

static bool is_float(const struct node *n) { return dtype_is_float((enum dtype)n->type.dtype); }

/* What a further input is called: as no other one, for inputs of one name and type would be one. The gradient of a
 * gradient has such: a loop that goes back is itself given gradients and sums. */
static const char *input_name(struct graph *g, struct node *const *inputs, const char *name) {
  for (int i = 0; inputs[i]; i++)
    if (strcmp(inputs[i]->name, name) == 0) name = arena_printf(g->arena, "%s.grad", name), i = -1;
  return name;
}

static struct node *add_operand(struct back *b, struct node *operand, const char *name,
                                const struct type *t) {
  b->operands[b->noperands++] = operand;
  return build_input(b->body, input_name(b->body, scan_inputs(b->body->arena, b->body), name), t);
}

/* What is computed once, and kept. */
static void find_products(struct back *b) {
  const struct graph *body = b->s.body;
  b->products = arena_new_array(b->g->arena, (size_t)body->count + 1, struct node *);
  b->again = arena_new_array(b->g->arena, (size_t)body->count + 1, struct node *);
  b->given = arena_new_array(b->g->arena, (size_t)body->count + 1, struct node *);
  for (uint32_t i = 0; i < body->count && b->s.length <= LONGEST_KEPT; i++) {
    struct node *x = body->nodes[i];
    if (x->op == OP_matmul && x->type.rank < MAX_RANK) b->products[b->nproducts++] = x;
  }
}

/* One more stack, called as no other: n may be a loop that already keeps such for its own gradient. */
static void add_stack(struct graph *body, const char *name, uint32_t id) {
  for (int i = 0; i < body->noutputs; i++)
    if (strcmp(body->outputs[i].name, name) == 0) name = arena_printf(body->arena, "%s.again", name), i = -1;
  graph_add_output(body, OUTPUT_VALUE, name, body->nodes[id], 0);
}

/* n with stacks of what is carried into its steps and of products, behind its other results. */
static struct node *stack_carried(struct back *b) {
  struct graph *g = b->g;
  const struct node *n = b->n;
  const struct scan *s = &b->s;
  struct scan more = *s;
  struct node **inputs = scan_inputs(g->arena, s->body);
  struct build_context saved = g->at;
  more.body = graph_copy(g->arena, s->body);
  for (int i = 0; i < s->carries; i++)
    add_stack(more.body, arena_printf(g->arena, "before_%d", i), inputs[i]->id);
  for (int i = 0; i < b->nproducts; i++)
    add_stack(more.body, arena_printf(g->arena, "product_%d", i), b->products[i]->id);
  build_at(g, n);
  struct node *out = s->carries || b->nproducts ? build_scan(g, arena_printf(g->arena, "%s.kept", n->name),
                                                             &more, n->ninputs, n->inputs)
                                                : (struct node *)(uintptr_t)n;
  g->at = saved;
  return out;
}

/* Gradients of what is carried: those of the last values, or nothing. */
static void carry_gradients(struct back *b, struct node **inputs) {
  for (int i = 0; i < b->s.carries; i++) {
    const struct type *t = &b->n->inputs[i]->type;
    b->carry_of[i] = is_float(b->n->inputs[i]) ? b->carries++ : -1;
    if (b->carry_of[i] < 0) continue;
    struct node *from = b->dy[i] ? b->dy[i] : build_fill(b->g, t, 0);
    b->seeds[i] = add_operand(b, from, gradient_name(b->body, inputs[i]), t);
  }
}

/* The values before each step, the elements, the gradients of what was stacked; then the constants. */
static void give_steps(struct back *b, struct node **inputs) {
  const struct scan *s = &b->s;
  int results = s->carries + s->stacks;
  for (int i = 0; i < s->carries; i++) {
    struct node *kept =
        scan_result(b->g, b->forward, results + i, arena_printf(b->g->arena, "%s.kept.%d", b->n->name, i));
    b->inner[inputs[i]->id] = add_operand(b, kept, inputs[i]->name, &inputs[i]->type);
  }
  for (int i = s->carries; i < s->carries + s->sequences; i++)
    b->inner[inputs[i]->id] = add_operand(b, b->n->inputs[i], inputs[i]->name, &inputs[i]->type);
  for (int i = 0; i < b->nproducts; i++) {
    const char *name = arena_printf(b->g->arena, "%s.product.%d", b->n->name, i);
    struct node *kept = scan_result(b->g, b->forward, results + s->carries + i, name);
    b->given[i] = add_operand(b, kept, b->products[i]->name, &b->products[i]->type);
  }
  for (int i = s->carries; i < results; i++)
    if (b->dy[i])
      b->seeds[i] =
          add_operand(b, b->dy[i], arena_printf(b->body->arena, "%s.grad", s->body->outputs[i].name),
                      &s->body->outputs[i].node->type);
  b->sequences = b->noperands - b->carries;
  for (int i = s->carries + s->sequences; i < b->n->ninputs; i++)
    b->inner[inputs[i]->id] = add_operand(b, b->n->inputs[i], inputs[i]->name, &inputs[i]->type);
}

static int find(struct node *const *list, int count, const struct node *x) {
  int i = 0;
  while (i < count && list[i] != x) i++;
  return i;
}

/* A node of the step, or the input that has its value. */
static struct node *repeated(struct graph *body, const struct node *x, struct node **in, void *back) {
  struct back *b = back;
  struct node *again = build_like(body, x, in, NULL);
  int product = find(b->products, b->nproducts, x);
  if (product == b->nproducts) return again;
  b->again[product] = again;
  return again ? b->given[product] : NULL;
}

/* Computes the step again, from products that are kept. */
static bool repeat_step(struct back *b) {
  return graph_copy_nodes(b->body->arena, b->body, b->s.body, NULL, b->inner, repeated, b);
}

/* ---- sums over all steps ---- */

static bool is_matrix_product(const struct node *n) {
  return n->op == OP_matmul && n->type.rank >= 2 && n->type.rank < MAX_RANK &&
         n->inputs[0]->type.rank == n->type.rank && n->inputs[1]->type.rank == n->type.rank;
}

static bool passes_sum(const struct node *n) {
  return n->op == OP_neg || n->op == OP_reshape || n->op == OP_transpose;
}

/* The number of the sequence that the body reads in x, -1 if it is none. */
static int sequence_of(const struct back *b, const struct node *x) {
  struct node **inputs = scan_inputs(b->body->arena, b->body);
  for (int i = b->carries; i < b->carries + b->sequences; i++)
    if (inputs[i] == x) return i;
  return -1;
}

/* The rows of all steps of a loop inside as one axis: such rows stand in another order than those of the batch, so what
 * they are made of is stacked. */
static bool joins_steps(const struct node *x) {
  if (x->op != OP_reshape || x->inputs[0]->type.rank == MAX_RANK) return false;
  int64_t rows[2] = {0, 0};
  for (int k = 0; k < 2; k++) {
    const struct type *t = k ? &x->type : &x->inputs[0]->type;
    for (int i = 0; i < t->rank; i++)
      if (t->dim[i] < 0) rows[k] = t->dim[i];
  }
  return rows[0] != rows[1];
}

static void stack(struct back *b, struct node *x) {
  while (joins_steps(x)) x = x->inputs[0];
  if (sequence_of(b, x) >= 0 || find(b->stacks, b->nstacks, x) < b->nstacks) return;
  b->stacks[b->nstacks++] = x;
}

/* Whether d has been noted before: a value may be read more than once on each of many ways. */
static bool is_noted(struct back *b, const struct node *d, uint8_t what) {
  bool before = (b->noted[d->id] & what) != 0;
  b->noted[d->id] |= what;
  return before;
}

enum { NOTED_SUM = 1, NOTED_STEPS = 2 };

/* Notes what has to be known of all steps for the sum of d over them. */
static void note_sum(struct back *b, struct node *d) {
  if (is_noted(b, d, NOTED_SUM)) return;
  if (type_is_symbolic(&d->type)) {
    b->sums[b->nsums++] = d;
  } else if (passes_sum(d)) {
    note_sum(b, d->inputs[0]);
  } else if (d->op == OP_add) {
    note_sum(b, d->inputs[0]);
    note_sum(b, d->inputs[1]);
  } else if (d->op == OP_reduce_sum && d->inputs[0]->type.rank < MAX_RANK) {
    stack(b, d->inputs[0]);
  } else if (is_matrix_product(d)) {
    stack(b, d->inputs[0]);
    stack(b, d->inputs[1]);
  } else if (find(b->sums, b->nsums, d) == b->nsums) {
    b->sums[b->nsums++] = d;
  }
}

/* Whether a step makes d of rows of the batch, and d has none. */
static bool joins_rows(const struct node *d) {
  bool rows = false;
  for (int k = 0; k < d->ninputs; k++) rows |= type_is_symbolic(&d->inputs[k]->type);
  return rows && !type_is_symbolic(&d->type) && (d->op == OP_reduce_sum || is_matrix_product(d));
}

/* Notes what has to be stacked for the values of d in all steps: itself, or the rows that it joins. */
static void note_steps(struct back *b, struct node *d) {
  if (is_noted(b, d, NOTED_STEPS)) return;
  if (!joins_rows(d)) {
    if (d->op == OP_add || d->op == OP_neg)
      for (int k = 0; k < d->ninputs; k++) note_steps(b, d->inputs[k]);
    else
      stack(b, d);
    return;
  }
  stack(b, d->inputs[0]);
  if (d->op == OP_matmul) stack(b, d->inputs[1]);
}

/* All steps' values of x. */
static struct node *all_of(const struct back *b, const struct node *x) {
  if (joins_steps(x)) {
    struct node *all = all_of(b, x->inputs[0]);
    struct type t = scan_stack_type(&x->type, b->s.length);
    return all ? build_reshape(b->g, all, &t) : NULL;
  }
  int sequence = sequence_of(b, x), i = find(b->stacks, b->nstacks, x);
  if (sequence >= 0) return b->operands[sequence];
  return scan_result(b->g, b->loop, b->carries + b->nsums + i,
                     arena_printf(b->g->arena, "%s.%s", b->loop->name, x->name));
}

/* All steps' matrices as one, beside each other (`columns`) or one above the other: the first axis of x beside one of
 * its last two. */
static struct node *joined(struct graph *g, struct node *x, bool columns) {
  int64_t perm[MAX_RANK];
  if (!x) return NULL;
  int axis = x->type.rank - (columns ? 2 : 3); /* of the steps, in front of the one that they join */
  for (int i = 0; i < x->type.rank; i++) perm[i] = i < axis ? i + 1 : i == axis ? 0 : i;
  struct type t = {.dtype = x->type.dtype, .rank = x->type.rank - 1};
  for (int i = 0; i < t.rank; i++) t.dim[i] = x->type.dim[i + 1];
  if (!dim_mul(x->type.dim[0], t.dim[axis], &t.dim[axis])) return NULL;
  return build_reshape(g, axis ? build_transpose(g, x, perm) : x, &t);
}

static struct node *sum_of(const struct back *b, const struct node *d);

static struct node *make_sum(const struct back *b, const struct node *d) {
  struct graph *g = b->g;
  int sum = find(b->sums, b->nsums, d);
  if (sum < b->nsums)
    return scan_result(g, b->loop, b->carries + sum, arena_printf(g->arena, "%s.sum_%d", b->loop->name, sum));
  if (passes_sum(d)) {
    struct node *x = sum_of(b, d->inputs[0]);
    return build(g, d->op, 1, &x, d->nattrs, d->attrs, &d->type);
  }
  if (d->op == OP_add) {
    struct node *x = sum_of(b, d->inputs[0]), *y = sum_of(b, d->inputs[1]);
    return build2(g, OP_add, x, y);
  }
  if (d->op == OP_reduce_sum) {
    uint32_t axes = 1;
    const struct attr *reduced = node_attr(d, ATTR_axes);
    for (int i = 0; i < reduced->count; i++) axes |= 2u << reduced->ints[i];
    return build_reduce(g, OP_reduce_sum, all_of(b, d->inputs[0]), axes);
  }
  bool a = node_int_or(d, ATTR_transpose_a, 0), t = node_int_or(d, ATTR_transpose_b, 0);
  const struct attr *precision = node_attr(d, ATTR_precision);
  struct node *left = joined(g, all_of(b, d->inputs[0]), !a), *right = joined(g, all_of(b, d->inputs[1]), t);
  return build_matmul_in(g, left, right, a, t, precision ? precision->string : NULL);
}

/* The sum of d over all steps. */
static struct node *sum_of(const struct back *b, const struct node *d) {
  struct node **sum = &b->summed[d->id];
  return *sum ? *sum : (*sum = make_sum(b, d));
}

static struct node *steps_of(const struct back *b, const struct node *d);

static struct node *make_steps(const struct back *b, const struct node *d) {
  struct graph *g = b->g;
  if (!joins_rows(d)) {
    if (d->op != OP_add && d->op != OP_neg) return all_of(b, d);
    struct node *in[2];
    for (int k = 0; k < d->ninputs; k++) in[k] = steps_of(b, d->inputs[k]);
    return build(g, d->op, d->ninputs, in, 0, NULL, NULL);
  }
  if (d->op == OP_reduce_sum) {
    uint32_t axes = 0;
    const struct attr *reduced = node_attr(d, ATTR_axes);
    for (int i = 0; i < reduced->count; i++) axes |= 2u << reduced->ints[i];
    return build_reduce(g, OP_reduce_sum, all_of(b, d->inputs[0]), axes);
  }
  struct node *left = all_of(b, d->inputs[0]), *right = all_of(b, d->inputs[1]);
  return build(g, OP_matmul, 2, (struct node *[]){left, right}, d->nattrs, d->attrs, NULL);
}

/* The values of d in all steps. */
static struct node *steps_of(const struct back *b, const struct node *d) {
  struct node **all = &b->all[d->id];
  return *all ? *all : (*all = make_steps(b, d));
}

/* ---- the whole ---- */

static void begin(struct back *b, struct node **inputs) {
  struct arena *a = b->g->arena;
  size_t most = 2 * (size_t)(b->n->ninputs + b->s.carries + b->s.stacks) + 8;
  find_products(b);
  most += (size_t)b->nproducts;
  b->body = graph_create(a, gradient_name(b->g, b->n), b->g->diags);
  b->body->step = true;
  b->body->stage = b->g->stage;
  b->operands = arena_new_array(a, most + (size_t)b->n->ninputs, struct node *);
  b->carry_of = arena_new_array(a, most, int);
  b->inner = arena_new_array(a, (size_t)b->s.body->count + 1, struct node *);
  b->seeds = arena_new_array(a, most, struct node *);
  b->forward = stack_carried(b);
  build_at(b->body, b->n);
  carry_gradients(b, inputs);
  give_steps(b, inputs);
}

/* Sums that are carried begin with nothing: inputs and operands behind the gradients that are carried. */
static void carry_sums(struct back *b) {
  struct arena *a = b->g->arena;
  struct node **operands = arena_new_array(a, (size_t)(b->noperands + b->nsums), struct node *);
  memcpy(operands, b->operands, sizeof *operands * (size_t)b->carries);
  memcpy(operands + b->carries + b->nsums, b->operands + b->carries,
         sizeof *operands * (size_t)(b->noperands - b->carries));
  for (int i = 0; i < b->nsums; i++) operands[b->carries + i] = build_fill(b->g, &b->sums[i]->type, 0);
  b->noperands += b->nsums;
  b->operands = operands;
}

/* The nodes of the body that the results need: what joins the rows of a step, and is summed outside, is none. */
static uint8_t *find_live(const struct back *b, struct node *const *results, int nresults) {
  uint8_t *live = arena_new_array(b->g->arena, b->body->count + 1, uint8_t);
  for (int i = 0; i < nresults; i++) live[results[i]->id] = 1;
  for (uint32_t i = b->body->count; i-- > 0;)
    for (int k = 0; live[i] && k < b->body->nodes[i]->ninputs; k++)
      live[b->body->nodes[i]->inputs[k]->id] = 1;
  return live;
}

/* The body again with its inputs in the order of the operands: sums behind the other carried values. */
static struct graph *ordered(struct back *b, struct node *const *results, int nresults) {
  struct graph *g = graph_create(b->g->arena, b->body->name, b->g->diags);
  struct node **made = arena_new_array(g->arena, b->body->count + 1, struct node *);
  struct node **inputs = scan_inputs(g->arena, b->body);
  struct node **sums = arena_new_array(g->arena, (size_t)b->nsums + 1, struct node *);
  const uint8_t *live = find_live(b, results, nresults);
  g->stage = b->body->stage;
  build_at(g, b->n);
  for (int i = 0; inputs[i] || i <= b->carries; i++) {
    for (int k = 0; i == b->carries && k < b->nsums; k++)
      sums[k] =
          build_input(g, input_name(g, inputs, arena_printf(g->arena, "sum_%d.grad", k)), &b->sums[k]->type);
    if (inputs[i]) made[inputs[i]->id] = graph_node(g, inputs[i]);
  }
  if (!graph_copy_nodes(g->arena, g, b->body, live, made, build_again, NULL)) return NULL;
  for (int i = 0; i < nresults; i++) {
    struct node *x = made[results[i]->id];
    bool sum = i >= b->carries && i < b->carries + b->nsums;
    g->at.scope = "sum.grad";
    g->at.backward = true;
    if (sum) x = build2(g, OP_add, sums[i - b->carries], x);
    graph_add_output(g, OUTPUT_VALUE, arena_printf(g->arena, "result_%d", i), x, 0);
  }
  return g;
}

/* Back through a step, of which all results and what comes in are there. */
static struct step_walk walk(const struct back *b, struct node **inputs, const uint8_t *needed) {
  struct arena *a = b->g->arena;
  struct step_walk w = {.g = b->body, .count = b->body->count};
  size_t count = (size_t)b->body->count + 1;
  w.grads = arena_new_array(a, count, struct node *);
  w.needed = arena_new_array(a, count, uint8_t);
  w.kept = arena_new_array(a, count, struct node *);
  w.of_result = arena_new_array(a, count, struct node **);
  for (int i = 0; i < b->nproducts; i++) w.kept[b->again[i]->id] = b->given[i];
  for (int i = 0; i < b->n->ninputs; i++)
    w.needed[b->inner[inputs[i]->id]->id] =
        is_float(inputs[i]) && (i < b->s.carries || needed[b->n->inputs[i]->id]);
  b->body->at.backward = true;
  for (int i = 0; i < b->s.carries + b->s.stacks; i++) {
    struct node *x = b->inner[b->s.body->outputs[i].node->id];
    if (b->seeds[i]) add_to(&w, &w.grads[x->id], x, b->seeds[i]);
  }
  walk_back(&w);
  return w;
}

/* By input of n: its gradient in a step, or NULL. One that is carried back has one, be it 0. */
static struct node **step_gradients(struct back *b, struct node **inputs, const struct step_walk *w) {
  struct node **d = arena_new_array(b->g->arena, (size_t)b->n->ninputs + 1, struct node *);
  for (int i = 0; i < b->n->ninputs; i++) {
    struct node *x = b->inner[inputs[i]->id];
    d[i] = w->grads[x->id];
    if (d[i] || i >= b->s.carries || b->carry_of[i] < 0) continue;
    build_at(b->body, x);
    b->body->at.backward = true;
    b->body->at.scope = gradient_name(b->body, x);
    d[i] = build_fill(b->body, &x->type, 0);
  }
  return d;
}

/* The loop, whose steps give what is carried back, what is added up, and what is stacked: elements' gradients and the
 * factors of sums. None where these are all given: gradients of what was stacked. False if there is no room for it. */
static bool build_loop(struct back *b, struct node **d, const uint8_t *needed, const char *name) {
  struct graph *g = b->g;
  const struct scan *s = &b->s;
  size_t most = (size_t)b->body->count + 1;
  b->stacks = arena_new_array(g->arena, most, struct node *);
  b->sums = arena_new_array(g->arena, most, struct node *);
  b->noted = arena_new_array(g->arena, most, uint8_t);
  b->summed = arena_new_array(g->arena, most, struct node *);
  b->all = arena_new_array(g->arena, most, struct node *);
  struct node **results = arena_new_array(g->arena, 2 * most, struct node *);
  int nresults = 0;
  for (int i = 0; i < b->n->ninputs; i++) {
    bool carried = i < s->carries, sequence = !carried && i < s->carries + s->sequences;
    if (carried && b->carry_of[i] >= 0) results[nresults++] = d[i];
    if (carried || !d[i] || !needed[b->n->inputs[i]->id]) continue;
    if (sequence)
      note_steps(b, d[i]);
    else
      note_sum(b, d[i]);
  }
  for (int i = 0; i < b->nsums; i++) results[nresults++] = b->sums[i];
  for (int i = 0; i < b->nstacks; i++) results[nresults++] = b->stacks[i];
  if (nresults == 0) return true;
  carry_sums(b);
  struct scan back = {.body = ordered(b, results, nresults),
                      .carries = b->carries + b->nsums,
                      .sequences = b->sequences,
                      .length = s->length,
                      .reverse = !s->reverse};
  b->loop = back.body
                ? build_scan(g, arena_printf(g->arena, "%s.scan", name), &back, b->noperands, b->operands)
                : NULL;
  if (!b->loop) return false;
  /* Operands as the body counts them, which has no inputs for the sums. */
  memmove(b->operands + b->carries, b->operands + b->carries + b->nsums,
          sizeof *b->operands * (size_t)(b->noperands - b->carries - b->nsums));
  return true;
}

/* The gradient by input i of n, of which a step gives d. */
static struct node *loop_gradient(const struct back *b, int i, struct node *d, const char *scan,
                                  const char *input) {
  if (i >= b->s.carries) return i < b->s.carries + b->s.sequences ? steps_of(b, d) : sum_of(b, d);
  if (b->carry_of[i] < 0) return NULL;
  return scan_result(b->g, b->loop, b->carry_of[i], arena_printf(b->g->arena, "%s.%s", scan, input));
}

/* Of no steps: what is carried is as it came, and of all else nothing is read. */
static void no_steps(struct grad *c, const struct node *n, struct node *const *dy, const uint8_t *needed) {
  for (int i = 0; i < n->ninputs; i++) {
    if (!needed[n->inputs[i]->id] || !is_float(n->inputs[i])) continue;
    struct node *d = i < node_int(n, ATTR_carries) ? dy[i] : NULL;
    grad_add(c, n, i, d ? d : build_fill(c->g, &n->inputs[i]->type, 0));
  }
}

void scan_gradient(struct grad *c, const struct node *n, struct node *const *dy, const uint8_t *needed) {
  if (node_int(n, ATTR_length) == 0) {
    no_steps(c, n, dy, needed);
    return;
  }
  struct graph *g = c->g;
  struct back b = {.g = g, .n = n, .s = scan_of(n), .dy = dy};
  struct node **inputs = scan_inputs(g->arena, b.s.body);
  const char *name = g->at.scope;
  begin(&b, inputs);
  if (!b.forward || !repeat_step(&b)) return;
  struct step_walk w = walk(&b, inputs, needed);
  struct node **d = step_gradients(&b, inputs, &w);
  if (!build_loop(&b, d, needed, name)) return;
  for (int i = 0; i < n->ninputs; i++)
    if (needed[n->inputs[i]->id] && (i < b.s.carries || d[i]))
      grad_add(c, n, i, loop_gradient(&b, i, d[i], name, inputs[i]->name));
}
