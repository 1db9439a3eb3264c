/* SPDX-License-Identifier: Apache-2.0 */
/* scan: a loop at run time, whose body is a graph of its own: see scan.h. And `output`, one of several results. */
#include "ir/ops/scan.h"

#include "ir/graph/build.h"
#include "ir/ops/op_id.h"

#include <string.h>

struct scan scan_of(const struct node *n) {
  struct scan s = {.body = node_attr(n, ATTR_body)->body,
                   .carries = (int)node_int(n, ATTR_carries),
                   .sequences = (int)node_int(n, ATTR_sequences),
                   .length = node_int(n, ATTR_length),
                   .reverse = node_int_or(n, ATTR_reverse, 0) != 0};
  s.constants = n->ninputs - s.carries - s.sequences;
  s.stacks = s.body->noutputs - s.carries;
  return s;
}

struct node **scan_inputs(struct arena *a, const struct graph *body) {
  struct node **inputs = arena_new_array(a, body->count + 1, struct node *);
  int count = 0;
  for (uint32_t i = 0; i < body->count; i++)
    if (body->nodes[i]->op == OP_input) inputs[count++] = body->nodes[i];
  return inputs;
}

/* ---- types ---- */

static bool is_stack_type(const struct type *t) { return t->rank < MAX_RANK; }

/* One step of it is one element of what is stacked. */
struct type scan_stack_type(const struct type *t, int64_t length) {
  struct type s = {.dtype = t->dtype, .rank = (uint8_t)(t->rank + 1), .dim = {length}};
  memcpy(s.dim + 1, t->dim, sizeof *t->dim * t->rank);
  return s;
}

static struct type element_type(const struct type *t) {
  struct type e = {.dtype = t->dtype, .rank = (uint8_t)(t->rank - 1)};
  memcpy(e.dim, t->dim + 1, sizeof *t->dim * e.rank);
  return e;
}

int node_results(const struct node *n) {
  return n->op == OP_fused || n->op == OP_scan ? node_attr(n, ATTR_body)->body->noutputs : 1;
}

struct type node_result_type(const struct node *n, int result) {
  if (n->op != OP_fused && n->op != OP_scan) return n->type;
  struct type t = node_attr(n, ATTR_body)->body->outputs[result].node->type;
  if (n->op == OP_fused || result < node_int(n, ATTR_carries)) return t;
  return scan_stack_type(&t, node_int(n, ATTR_length));
}

/* What a step may not compute, or NULL. */
static const char *refused(const struct node *n) {
  switch (op_of(n)->kind) {
  case KIND_SOURCE:
    if (n->op == OP_constant || n->op == OP_input || n->op == OP_iota) return NULL;
    return node_is_external(n) ? "it is made once: give it to the loop from outside"
                               : "it would be the same in each step: make it outside of the loop";
  case KIND_EFFECT: return "a step of a loop assigns nothing";
  case KIND_META:
    if (n->op == OP_fused || n->op == OP_output || n->op == OP_scan) return NULL;
    return "it is of no use in a loop";
  case KIND_ELEMENTWISE:
  case KIND_REDUCE:
  case KIND_MOVEMENT:
  case KIND_LEAF: break;
  }
  return NULL;
}

static bool check_body(const struct scan *s, struct arena *a, const char **why) {
  for (uint32_t i = 0; i < s->body->count; i++) {
    const struct node *n = s->body->nodes[i];
    const char *reason = refused(n);
    if (!reason) continue;
    *why = arena_printf(a, "the body of a scan cannot hold %s (%s): %s", n->name, op_of(n)->name, reason);
    return false;
  }
  for (int i = 0; i < s->body->noutputs; i++)
    if (i >= s->carries && !is_stack_type(&s->body->outputs[i].node->type)) {
      *why = arena_printf(a, "%s has too many axes to be stacked", s->body->outputs[i].name);
      return false;
    }
  return true;
}

/* Operand i is what the body reads as its input i. */
static bool check_operand(const struct node *n, const struct scan *s, int i, const struct node *input,
                          struct arena *a, const char **why) {
  const struct type *t = &n->inputs[i]->type;
  bool sequence = i >= s->carries && i < s->carries + s->sequences;
  if (sequence && (t->rank == 0 || t->dim[0] != s->length)) {
    *why = arena_printf(a, "%s is no sequence of %lld steps along its first axis, but %s", n->inputs[i]->name,
                        (long long)s->length, type_text(a, t));
    return false;
  }
  struct type read = sequence ? element_type(t) : *t;
  if (!type_equal(&read, &input->type)) {
    *why = arena_printf(a, "the body reads %s : %s, and %s gives it %s", input->name,
                        type_text(a, &input->type), n->inputs[i]->name, type_text(a, &read));
    return false;
  }
  if (i >= s->carries || type_equal(&read, &s->body->outputs[i].node->type)) return true;
  *why = arena_printf(a, "%s is %s before a step and %s behind it", input->name, type_text(a, &read),
                      type_text(a, &s->body->outputs[i].node->type));
  return false;
}

static bool scan_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  int64_t named = node_int(n, ATTR_carries) + node_int(n, ATTR_sequences);
  const struct graph *body = node_attr(n, ATTR_body)->body;
  if (named > n->ninputs || node_int(n, ATTR_carries) > body->noutputs || body->noutputs == 0) {
    *why = arena_printf(a, "there are %d operands and %d results for %lld carried values and %lld sequences",
                        n->ninputs, body->noutputs, (long long)node_int(n, ATTR_carries),
                        (long long)node_int(n, ATTR_sequences));
    return false;
  }
  struct scan s = scan_of(n);
  struct node **inputs = scan_inputs(a, body);
  int count = 0;
  while (inputs[count]) count++;
  if (count != n->ninputs) {
    *why = arena_printf(a, "the body has %d inputs for %d operands", count, n->ninputs);
    return false;
  }
  if (!check_body(&s, a, why)) return false;
  for (int i = 0; i < n->ninputs; i++)
    if (!check_operand(n, &s, i, inputs[i], a, why)) return false;
  for (int i = 0; i < body->noutputs; i++) {
    struct type t = node_result_type(n, i);
    if (type_valid(&t)) continue;
    *why = arena_printf(a, "the shape %s of %s is too large", type_text(a, &t), body->outputs[i].name);
    return false;
  }
  *out = node_result_type(n, 0);
  return true;
}

static void scan_grad(struct grad *c, const struct node *n, struct node *dy) {
  (void)dy;
  c->scan(c, n);
}

const struct op_info op_scan = {.name = "scan",
                                .kind = KIND_META,
                                .dtypes = DTYPE_CUSTOM,
                                .min_inputs = 0,
                                .max_inputs = -1,
                                .attrs = ATTR_BIT(body) | ATTR_BIT(carries) | ATTR_BIT(sequences) |
                                         ATTR_BIT(length),
                                .optional_attrs = ATTR_BIT(reverse),
                                .domain = DOMAIN_NONE,
                                .roles = {"x"},
                                .infer = scan_infer,
                                .grad = scan_grad};

/* Result `index` of a node that has several. */
static bool output_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const struct node *x = n->inputs[0];
  if (x->op != OP_fused && x->op != OP_scan) {
    *why = arena_printf(a, "only a fused node and a scan have several results, and %s is none", x->name);
    return false;
  }
  if (node_int(n, ATTR_index) >= node_results(x)) {
    *why = arena_printf(a, "%s has %d results, no number %lld", x->name, node_results(x),
                        (long long)node_int(n, ATTR_index));
    return false;
  }
  *out = node_result_type(x, (int)node_int(n, ATTR_index));
  return true;
}

static void output_grad(struct grad *c, const struct node *n, struct node *dy) {
  c->result(c, n->inputs[0], (int)node_int(n, ATTR_index), dy);
}

const struct op_info op_output = {.name = "output",
                                  .kind = KIND_META,
                                  .dtypes = DTYPE_CUSTOM,
                                  .min_inputs = 1,
                                  .max_inputs = 1,
                                  .attrs = ATTR_BIT(index),
                                  .domain = DOMAIN_NONE,
                                  .roles = {"x"},
                                  .infer = output_infer,
                                  .grad = output_grad};

/* ---- building ---- */

struct node *build_scan(struct graph *g, const char *name, const struct scan *s, int noperands,
                        struct node *const *operands) {
  struct attr attrs[5] = {{.key = ATTR_body, .count = 1, .body = s->body},
                          attr_int(ATTR_carries, s->carries),
                          attr_int(ATTR_sequences, s->sequences),
                          attr_int(ATTR_length, s->length),
                          attr_int(ATTR_reverse, 1)};
  return build_named(g, name, OP_scan, noperands, operands, s->reverse ? 5 : 4, attrs, NULL);
}

struct node *scan_like(struct graph *g, const struct node *n, struct node **inputs, struct graph *body) {
  struct node same = *n;
  struct attr attrs[ATTR_COUNT];
  memcpy(attrs, n->attrs, sizeof *attrs * (size_t)n->nattrs);
  for (int i = 0; i < n->nattrs; i++)
    if (attrs[i].key == ATTR_body) attrs[i].body = body;
  same.inputs = inputs;
  same.attrs = attrs;
  return graph_node(g, &same);
}

struct node *scan_result(struct graph *g, struct node *scan, int i, const char *name) {
  if (i == 0 || !scan) return scan;
  struct attr index = attr_int(ATTR_index, i);
  return build_named(g, name, OP_output, 1, &scan, 1, &index, NULL);
}

/* ---- a step that stands in the graph ---- */

struct extraction {
  struct graph *g, *body;
  uint32_t first;      /* the first of the inputs: what is older is not made of them */
  uint8_t *inside;     /* by node: made of the inputs, + 1; or of constants alone, 2 */
  uint8_t *read;       /* a step needs it */
  struct node **inner; /* by node: in the body */
  struct node **operands;
  int noperands;
};

enum { OUTSIDE, INSIDE, MADE_ANEW };

static bool is_input(const struct scan_step *s, const struct node *n) {
  for (int i = 0; i < s->carries; i++)
    if (s->carried[i] == n) return true;
  for (int i = 0; i < s->sequences; i++)
    if (s->elements[i] == n) return true;
  return false;
}

/* Numbers, and what is repeated, are made anew in the body: there they cost nothing. */
static int place_of(const struct extraction *e, const struct scan_step *s, const struct node *n) {
  if (n->op == OP_iota || node_is_immediate(n)) return MADE_ANEW;
  if (n->op == OP_input) return n->id >= e->first && is_input(s, n) ? INSIDE : OUTSIDE;
  for (int k = 0; k < n->ninputs; k++)
    if (e->inside[n->inputs[k]->id] == INSIDE) return INSIDE;
  return n->op == OP_broadcast ? MADE_ANEW : OUTSIDE;
}

static void add_operand(struct extraction *e, const struct node *inner, struct node *operand) {
  struct node input = {.op = OP_input,
                       .type = inner->type,
                       .name = inner->name,
                       .loc = inner->loc,
                       .trail = inner->trail,
                       .origin = inner->origin,
                       .tower = -1,
                       .replica = -1,
                       .device = -1};
  e->inner[inner->id] = graph_node(e->body, &input);
  e->operands[e->noperands++] = operand;
}

static void mark_read(struct extraction *e, struct node *const *nodes, int count) {
  for (int i = 0; i < count; i++) e->read[nodes[i]->id] = 1;
}

/* The nodes that a step needs, in order; what comes from outside first, as that has to stand before its readers. */
static bool move_nodes(struct extraction *e) {
  struct graph *g = e->g;
  for (uint32_t i = g->count; i-- > 0;)
    for (int k = 0; e->read[i] && e->inside[i] != OUTSIDE && k < g->nodes[i]->ninputs; k++)
      e->read[g->nodes[i]->inputs[k]->id] = 1;
  for (uint32_t i = 0; i < g->count; i++)
    if (e->read[i] && e->inside[i] == OUTSIDE) add_operand(e, g->nodes[i], g->nodes[i]);
  return graph_copy_nodes(g->arena, e->body, g, e->read, e->inner, build_again, NULL);
}

struct node *scan_extract(struct graph *g, const char *name, const struct scan_step *s) {
  struct arena *a = g->arena;
  struct extraction e = {.g = g, .body = graph_create(a, name, g->diags), .first = g->count};
  e.body->stage = g->stage;
  e.inside = arena_new_array(a, g->count + 1, uint8_t);
  e.read = arena_new_array(a, g->count + 1, uint8_t);
  e.inner = arena_new_array(a, g->count + 1, struct node *);
  e.operands = arena_new_array(a, g->count + 1, struct node *);
  for (int i = 0; i < s->carries; i++)
    if (s->carried[i]->id < e.first) e.first = s->carried[i]->id;
  for (int i = 0; i < s->sequences; i++)
    if (s->elements[i]->id < e.first) e.first = s->elements[i]->id;
  for (uint32_t i = 0; i < g->count; i++) e.inside[i] = (uint8_t)place_of(&e, s, g->nodes[i]);
  for (int i = 0; i < s->carries; i++) add_operand(&e, s->carried[i], s->initial[i]);
  for (int i = 0; i < s->sequences; i++) add_operand(&e, s->elements[i], s->sequence[i]);
  mark_read(&e, s->next, s->carries);
  mark_read(&e, s->stacked, s->stacks);
  if (!move_nodes(&e)) return NULL;
  for (int i = 0; i < s->carries; i++)
    graph_add_output(e.body, OUTPUT_VALUE, s->carried[i]->name, e.inner[s->next[i]->id], 0);
  for (int i = 0; i < s->stacks; i++)
    graph_add_output(e.body, OUTPUT_VALUE, arena_printf(a, "stack_%d", i), e.inner[s->stacked[i]->id], 0);
  struct scan loop = {.body = e.body,
                      .carries = s->carries,
                      .sequences = s->sequences,
                      .length = s->length,
                      .reverse = s->reverse};
  return build_scan(g, name, &loop, e.noperands, e.operands);
}
