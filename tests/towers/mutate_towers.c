/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of towers, labels and variables. */
#include "plant.h"

#include <string.h>

/* ---- towers ---- */

bool reads_another_tower(struct patient *p) {
  EACH(p, n)
  for (int k = 0; k < n->ninputs; k++) {
    struct node *x = n->inputs[k];
    struct node *other = n->tower >= 0 && x->tower == n->tower && !is_join(n) ? twin(p, x, n) : NULL;
    if (!other || !here(p)) continue;
    n->inputs[k] = other;
    return planted(p, n);
  }
  return false;
}

bool reads_another_value(struct patient *p) {
  EACH(p, n)
  for (int k = 0; k < n->ninputs; k++) {
    struct node *other = n->tower >= 0 && !is_join(n) ? other_like(p, n, n->inputs[k]) : NULL;
    if (!other || n->op == OP_copy || !here(p)) continue;
    n->inputs[k] = other;
    return planted(p, n);
  }
  return false;
}

static bool other_op(struct patient *p, bool towers) {
  static const enum op_id pairs[][2] = {{OP_tanh, OP_sigmoid}, {OP_sigmoid, OP_tanh}, {OP_mul, OP_add},
                                        {OP_sub, OP_add},      {OP_square, OP_neg},   {OP_lt, OP_gt}};
  EACH(p, n)
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    if (n->op != pairs[i][0] || (n->tower >= 0) != towers || is_share(n) || !here(p)) continue;
    n->op = pairs[i][1];
    return planted(p, n);
  }
  return false;
}
bool another_op_in_a_tower(struct patient *p) { return other_op(p, true); }
bool another_op_in_an_update(struct patient *p) { return other_op(p, false); }

bool operands_swapped(struct patient *p) {
  EACH(p, n) {
    if ((n->op != OP_sub && n->op != OP_div && n->op != OP_lt) || !here(p)) continue;
    struct node *first = n->inputs[0];
    n->inputs[0] = n->inputs[1];
    n->inputs[1] = first;
    return planted(p, n);
  }
  return false;
}

bool not_transposed(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_matmul || !node_attr(n, ATTR_transpose_b) || !here(p)) continue;
    remove_attr(p, n, ATTR_transpose_b);
    return planted(p, n);
  }
  return false;
}

/* Operands that nobody has rounded. */
bool promised_precision(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_matmul || n->type.dtype != DT_F32 || node_attr(n, ATTR_precision) || !here(p)) continue;
    struct attr *attrs = arena_new_array(p->arena, (size_t)n->nattrs + 1, struct attr);
    if (n->nattrs) memcpy(attrs, n->attrs, sizeof *attrs * (size_t)n->nattrs);
    attrs[n->nattrs++] = attr_string(ATTR_precision, "bf16");
    n->attrs = attrs;
    return planted(p, n);
  }
  return false;
}

bool wrong_axes(struct patient *p) {
  EACH(p, n) {
    const struct type *t = &n->type;
    if (n->op != OP_broadcast || n->inputs[0]->type.rank != 1 || t->rank != 2 || t->dim[0] != t->dim[1] ||
        !here(p))
      continue;
    struct attr *a = attr_of(p, n, ATTR_axes);
    int64_t *axes = arena_copy(p->arena, a->ints, sizeof *axes);
    axes[0] = !axes[0];
    a->ints = axes;
    return planted(p, n);
  }
  return false;
}

static bool wrong_offset(struct patient *p, enum op_id op) {
  EACH(p, n) {
    if (n->op != op || !node_attr(n, ATTR_offset) || !here(p)) continue;
    attr_of(p, n, ATTR_offset)->i += 1;
    return planted(p, n);
  }
  return false;
}
bool wrong_random_offset(struct patient *p) { return wrong_offset(p, OP_random_uniform); }
bool wrong_iota_offset(struct patient *p) { return wrong_offset(p, OP_iota); }

bool missing_random_offset(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_random_uniform || !node_attr(n, ATTR_offset) || !here(p)) continue;
    remove_attr(p, n, ATTR_offset);
    return planted(p, n);
  }
  return false;
}

bool wrong_random_stream(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_random_uniform || !here(p)) continue;
    attr_of(p, n, ATTR_key)->i++;
    return planted(p, n);
  }
  return false;
}

/* ---- labels ---- */

bool share_labelled_mirrored(struct patient *p) {
  EACH(p, n) {
    if (!is_leaf(n) || !here(p)) continue;
    n->dist = DIST_MIRRORED;
    n->tower = -1;
    return planted(p, n);
  }
  return false;
}

bool wrong_tower_label(struct patient *p) {
  EACH(p, n) {
    if (n->dist != DIST_PER_REPLICA || n->op == OP_split || !here(p)) continue;
    n->tower = (n->tower + 1) % p->g->config.towers;
    return planted(p, n);
  }
  return false;
}

bool rows_labelled_partial(struct patient *p) {
  EACH(p, n) {
    if (n->dist != DIST_PER_REPLICA || !here(p)) continue;
    n->dist = DIST_PARTIAL;
    return planted(p, n);
  }
  return false;
}

/* ---- variables ---- */

bool missing_update(struct patient *p) {
  for (int i = 0; i < p->g->noutputs; i++) {
    if (!is_update(p, i) || !here(p)) continue;
    suspect(p, p->g->outputs[i].node->inputs[0]->name);
    remove_output(p, i);
    return true;
  }
  return false;
}

bool updates_swapped(struct patient *p) {
  for (int i = 0; i < p->g->noutputs; i++)
    for (int k = i + 1; is_update(p, i) && k < p->g->noutputs; k++) {
      struct node *a = p->g->outputs[i].node, *b = p->g->outputs[k].node;
      if (!is_update(p, k) || !type_equal(&a->type, &b->type) || a->device != b->device || !here(p)) continue;
      struct node *value = a->inputs[1];
      a->inputs[1] = b->inputs[1];
      b->inputs[1] = value;
      planted(p, a);
      return planted(p, b);
    }
  return false;
}

bool stale_update(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_assign || !here(p)) continue;
    n->inputs[1] = n->inputs[0];
    return planted(p, n);
  }
  return false;
}

bool wrong_variable_written(struct patient *p) {
  EACH(p, n) {
    struct node *other = n->op == OP_assign ? other_variable(p, n->inputs[0]) : NULL;
    if (!other || !here(p)) continue;
    suspect(p, n->inputs[0]->name);
    suspect(p, other->name);
    n->inputs[0] = other;
    return planted(p, n);
  }
  return false;
}

static bool add_assign(struct patient *p, struct node *variable, struct node *value) {
  struct node n = *variable, *in[2] = {variable, value};
  n.op = OP_assign;
  n.name = arena_printf(p->arena, "%s.planted", variable->name);
  n.inputs = in;
  n.ninputs = 2;
  n.nattrs = 0;
  struct node *assign = insert(p, p->g->count, n);
  struct output *more = arena_new_array(p->arena, (size_t)p->g->noutputs + 1, struct output);
  memcpy(more, p->g->outputs, sizeof *more * (size_t)p->g->noutputs);
  more[p->g->noutputs++] = (struct output){OUTPUT_UPDATE, assign->name, assign, 0};
  p->g->outputs = more;
  return planted(p, assign);
}

bool second_writer(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_assign || !here(p)) continue;
    return add_assign(p, n->inputs[0], n->inputs[1]);
  }
  return false;
}

bool frozen_variable_written(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_variable || strncmp(n->name, "frozen", 6) != 0 || !here(p)) continue;
    return add_assign(p, n, n);
  }
  return false;
}

/* The update of one copy is not that of the others. */
bool copies_differ(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_assign || n->type.dtype != DT_F32 || n->replica < 1 || !here(p)) continue;
    struct node *x = insert_op(p, n->inputs[1], OP_add, n->inputs[1], n->inputs[0]);
    n->inputs[1] = x;
    return planted(p, x);
  }
  return false;
}

bool unknown_variable(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_variable || !here(p)) continue;
    n->name = arena_printf(p->arena, "%s.other", n->name);
    return planted(p, n);
  }
  return false;
}

bool variables_change_names(struct patient *p) {
  EACH(p, n) {
    struct node *other = n->op == OP_variable ? other_variable(p, n) : NULL;
    if (!other || !here(p)) continue;
    const char *name = n->name;
    n->name = other->name;
    other->name = name;
    planted(p, n);
    return planted(p, other);
  }
  return false;
}

/* A result shows the variable after the step, and not before it. */
bool new_value_read(struct patient *p) {
  for (int i = 0; i < p->g->noutputs; i++) EACH(p, u) {
      struct node *n = p->g->outputs[i].node;
      if (u->op != OP_assign || n->ninputs != 1 || n->inputs[0] != u->inputs[0] || !here(p)) continue;
      p->g->outputs[i].node = insert_op(p, n, n->op, u, NULL);
      return planted(p, p->g->outputs[i].node);
    }
  return false;
}
