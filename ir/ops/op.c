/* SPDX-License-Identifier: Apache-2.0 */
/* The op table, from ops.def. */
#include "ir/ops/op.h"

#include "ir/ops/op_id.h"

#include <string.h>

#define OP(name, spread) extern const struct op_info op_##name;
#include "ir/ops/ops.def"
#undef OP

const struct op_info *const op_table[OP_COUNT] = {
#define OP(name, spread) &op_##name,
#include "ir/ops/ops.def"
#undef OP
};

unsigned op_lookup(const char *name, size_t len) {
  for (int i = 0; i < OP_COUNT; i++)
    if (strlen(op_table[i]->name) == len && memcmp(op_table[i]->name, name, len) == 0) return (enum op_id)i;
  return OP_COUNT;
}

bool is_collective(const struct node *n) { return n->op == OP_all_reduce && node_attr(n, ATTR_by) != NULL; }

bool collectives_lowered(const struct graph *g) {
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if ((n->op == OP_all_reduce && !is_collective(n)) || n->op == OP_all_gather) return false;
  }
  return true;
}

int collective_rank(const struct node *n) {
  for (int i = 0; i < n->ninputs; i++)
    if (n->inputs[i]->device == n->device) return i;
  return -1;
}

bool joins_given(const struct node *n) { return node_int_or(n, ATTR_given, 0); }

bool is_aggregation(const char *name) { return attr_has_word(ATTR_aggregation, name); }

bool is_on_read(const struct node *n) {
  return n->op == OP_variable && node_attr(n, ATTR_synchronization) != NULL;
}

enum dtype node_storage(const struct node *n) {
  const struct attr *a = node_attr(n, ATTR_storage);
  enum dtype d = DT_F32;
  if (a) dtype_parse(a->string, strlen(a->string), &d);
  return d;
}

struct variable_identity variable_identity(const struct node *n) {
  const struct attr *of = node_attr(n, ATTR_of), *part = node_attr(n, ATTR_part);
  if (is_on_read(n))
    return (struct variable_identity){.role = VARIABLE_OF_TOWER,
                                      .of = of ? of->string : n->name,
                                      .number = n->tower > 0 ? n->tower : 0,
                                      .joins = node_string(n, ATTR_aggregation)};
  struct variable_identity i = {.role = VARIABLE_ITSELF, .storage = node_storage(n)};
  if (!of) return i;
  i.role = part ? VARIABLE_PART : VARIABLE_REPLICA;
  i.of = of->string;
  if (part) i.number = (int)part->i;
  return i;
}

int64_t node_flops(const struct node *n) {
  const struct op_info *op = op_of(n);
  if (op->flops) return op->flops(n);
  if (op->kind == KIND_ELEMENTWISE) return type_count(&n->type);
  if (op->kind == KIND_REDUCE) return type_count(&n->inputs[0]->type);
  return 0;
}

bool node_is_view(const struct node *n, int64_t *offset) {
  *offset = 0;
  return op_of(n)->view && op_of(n)->view(n, offset);
}

bool view_of_all(const struct node *n, int64_t *offset) {
  (void)n, (void)offset;
  return true;
}

bool node_is_strided(const struct node *n) { return op_of(n)->traits & OP_STRIDED; }

bool node_is_immediate(const struct node *n) { return n->op == OP_constant && type_count(&n->type) == 1; }

bool node_is_leaf(const struct node *n) { return op_of(n)->kind == KIND_LEAF; }

int64_t node_traffic(const struct node *n, bool in_place) {
  if (op_of(n)->traffic) return op_of(n)->traffic(n, in_place);
  int64_t bytes = type_bytes(&n->type);
  for (int i = 0; i < n->ninputs; i++) bytes += type_bytes(&n->inputs[i]->type);
  return bytes;
}

bool node_moves(const struct node *n) { return op_of(n)->traits & OP_MOVES; }

struct message_key message_key(const struct node *n) {
  struct message_key k = {.node = n};
  int64_t peer = node_int(n, ATTR_peer);
  k.order = node_ints(n, ATTR_order, &k.count);
  k.from = n->op == OP_send ? n->device : peer;
  k.to = n->op == OP_send ? peer : n->device;
  return k;
}

int message_key_compare(const struct message_key *a, const struct message_key *b) {
  for (int i = 0; i < a->count && i < b->count; i++)
    if (a->order[i] != b->order[i]) return a->order[i] < b->order[i] ? -1 : 1;
  if (a->count != b->count) return a->count < b->count ? -1 : 1;
  if (a->from != b->from) return a->from < b->from ? -1 : 1;
  return a->to < b->to ? -1 : a->to > b->to;
}

int message_compare(const struct node *a, const struct node *b) {
  struct message_key x = message_key(a), y = message_key(b);
  return message_key_compare(&x, &y);
}

struct leaf_tensors leaf_tensors(const struct node *n, void *const *args) {
  struct leaf_tensors t = {.out = {n->type, args[n->ninputs]}};
  for (int i = 0; i < n->ninputs; i++) t.in[i] = (struct tensor){n->inputs[i]->type, args[i]};
  return t;
}

void leaf_eval(const struct node *n, void *const *args) {
  struct leaf_tensors t = leaf_tensors(n, args);
  op_of(n)->eval(n, t.in, &t.out);
}

bool node_is_external(const struct node *n) { return op_of(n)->traits & OP_EXTERNAL; }

int node_along(const struct node *n, int axis) {
  if (op_of(n)->kind == KIND_ELEMENTWISE) return axis;
  return op_of(n)->along ? op_of(n)->along(n, axis) : ALONG_UNKNOWN;
}

unsigned share_op(enum dist share) {
  return share == DIST_PARTIAL_MAX ? OP_max : share == DIST_PARTIAL_MIN ? OP_min : OP_add;
}

uint32_t node_linear(const struct node *n) { return node_attr(n, ATTR_precision) ? 0 : op_of(n)->linear; }
