/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of the source in the reference: for the rows of a tower, or for the whole batch. */
#include "ir/certify/reference.h"
#include "ir/graph/build.h"
#include "ir/ops/op_id.h"

struct node *certify_lift(struct certify *c, struct node *x, int tower) {
  if (!x || x->tower >= 0 || tower < 0) return x;
  struct node n = *x;
  n.op = OP_identity;
  n.ninputs = 1;
  n.inputs = &x;
  n.nattrs = 0;
  n.tower = tower;
  n.name = arena_printf(c->arena, "tower_%d/%s of its own", tower, x->name);
  return graph_node(c->ref, &n);
}

struct node *certify_number(struct certify *c, const struct type *t, int64_t value, int tower) {
  c->ref->at.tower = tower;
  return build_fill(c->ref, t, (double)value);
}

struct node *certify_tower_number(struct certify *c, const struct node *n, int tower) {
  if (n->op == OP_tower_count) return certify_number(c, &n->type, c->towers, tower);
  c->ref->at.tower = tower;
  return build_tower_number(c->ref, &n->type, tower > 0 ? tower : 0,
                            target_shares_program(&c->placed->config.target));
}

int certify_attrs(const struct node *n, struct attr *out) {
  int count = 0;
  for (int i = 0; i < n->nattrs; i++)
    if (n->attrs[i].key != ATTR_offset || n->attrs[i].i != 0 || n->op == OP_split) out[count++] = n->attrs[i];
  return count;
}

const char *certify_tower_name(struct certify *c, const struct node *n, int tower) {
  return tower < 1 ? n->name : arena_printf(c->arena, "tower_%d/%s", tower, n->name);
}

struct node *certify_instance(struct certify *c, const struct node *n, struct node *const *in, int tower,
                              int64_t counted) {
  struct type t = type_specialize(&n->type, tower < 0 ? c->batch : certify_rows(c, tower));
  struct attr attrs[ATTR_COUNT];
  int nattrs;
  if (n->op == OP_tower_id || n->op == OP_tower_count) return certify_tower_number(c, n, tower);
  if (n->op == OP_local) return in[0]; /* of the only tower */
  if (tower >= 0 && type_is_symbolic(&n->type) && op_of(n)->kind == KIND_SOURCE) {
    struct rows rows = {certify_first(c, tower), certify_rows(c, tower), c->batch};
    c->ref->at.tower = tower;
    return build_rows(c->ref, certify_tower_name(c, n, tower), n, in, c->blocks.of[n->id], rows);
  }
  if (n->op == OP_scan) {
    struct rows rows = {tower < 0 ? 0 : certify_first(c, tower),
                        tower < 0 ? c->batch : certify_rows(c, tower), c->batch};
    c->ref->at.tower = tower;
    return build_rows(c->ref, certify_tower_name(c, n, tower), n, in, 1, rows);
  }
  nattrs = certify_attrs(n, attrs);
  if (n->op == OP_batch_size && !node_attr(n, ATTR_batch)) attrs[nattrs++] = attr_int(ATTR_batch, counted);
  struct node like = *n;
  like.name = certify_tower_name(c, n, tower);
  return certify_make(c, &like, in, nattrs, attrs, op_of(n)->traits & OP_TYPED ? &t : NULL, tower);
}

struct node *certify_input_rows(struct certify *c, const struct node *n, struct node *global, int tower) {
  struct node like = {
      .op = OP_split, .name = arena_printf(c->arena, "rows_%d/%s", tower, n->name), .ninputs = 1};
  struct attr first = attr_int(ATTR_offset, -n->type.dim[0] * certify_first(c, tower));
  struct type t = type_specialize(&n->type, certify_rows(c, tower));
  return certify_make(c, &like, &global, 1, &first, &t, tower);
}

void certify_note_share(struct certify *c, struct node *x, struct node *total, struct node *in_worker,
                        enum dist how) {
  struct share *s = arena_new(c->arena, struct share), **at = &c->share[x->id];
  while (*at && (*at)->total != total) at = &(*at)->next;
  *s = (struct share){total, in_worker, how, NULL};
  if (!*at) *at = s;
}

struct node *certify_joined_input(struct node *const *rows, int count) {
  struct node *input = rows[0]->ninputs ? rows[0]->inputs[0] : NULL;
  int64_t at = 0;
  for (int k = 0; k < count; k++) {
    const struct node *x = rows[k];
    if (x->op != OP_split || x->inputs[0] != input || node_int(x, ATTR_offset) != at) return NULL;
    at += x->type.dim[0];
  }
  return at == input->type.dim[0] ? input : NULL;
}
