/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of scales, sums and the split of the batch. */
#include "plant.h"

#include <string.h>

/* ---- the scale ---- */

/* A factor is lost: who read the product reads its operand. */
/* What reads n may be a value of the source again: 1 * 2x is 2x. Then what reads that is not. */
static bool drop(struct patient *p, enum op_id op, bool towers) {
  EACH(p, n) {
    if (n->op != op || (n->tower >= 0) != towers || !here(p)) continue;
    planted(p, n);
    for (uint32_t i = 0; i < p->g->count; i++) {
      const struct node *user = p->g->nodes[i], *reader = NULL;
      for (int k = 0; k < user->ninputs; k++)
        if (user->inputs[k] == n) reader = user;
      if (reader) planted(p, reader);
    }
    replace(p, n, n->inputs[op == OP_mul]);
    return planted(p, n->inputs[op == OP_mul]);
  }
  return false;
}
bool dropped_divide(struct patient *p) { return drop(p, OP_div, false); }
bool dropped_factor(struct patient *p) { return drop(p, OP_mul, false); }
bool dropped_factor_of_tower(struct patient *p) { return drop(p, OP_mul, true); }

bool sum_scaled(struct patient *p) {
  EACH(p, n) {
    if (!is_join(n) || n->dist != DIST_MIRRORED || !here(p)) continue;
    struct node *half = insert_op(p, n, OP_add, n, n);
    replace(p, n, half);
    half->inputs[0] = half->inputs[1] = n;
    return planted(p, half);
  }
  return false;
}

bool wrong_constant(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_constant || n->type.dtype != DT_F32 || !here(p)) continue;
    struct attr *a = attr_of(p, n, ATTR_value);
    float *data = arena_copy(p->arena, a->data, (size_t)a->count);
    data[0] += 0.3125f;
    a->data = data;
    return planted(p, n);
  }
  return false;
}

bool wrong_batch_attribute(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_batch_size || !here(p)) continue;
    attr_of(p, n, ATTR_batch)->i /= 2;
    return planted(p, n);
  }
  return false;
}

/* A tower counts for more than the others. */
bool share_scaled(struct patient *p) {
  EACH(p, n) {
    if (!is_leaf(n) || n->dist != DIST_PARTIAL || !here(p)) continue;
    struct node *twice = insert_op(p, n, OP_add, n, n);
    replace(p, n, twice);
    twice->inputs[0] = twice->inputs[1] = n;
    planted(p, n);
    return planted(p, twice);
  }
  return false;
}

bool wrong_metric_count(struct patient *p) {
  for (int i = 0; i < p->g->noutputs; i++) {
    struct output *o = &p->g->outputs[i];
    if (o->role != OUTPUT_METRIC || !here(p)) continue;
    o->count /= 2;
    suspect(p, o->name);
    return true;
  }
  return false;
}

/* ---- sums ---- */

bool doubled_leaf(struct patient *p) {
  EACH(p, n) {
    if (!is_join(n) || n->op != OP_add || !here(p)) continue;
    n->inputs[1] = n->inputs[0];
    return planted(p, n);
  }
  return false;
}

bool missing_leaf(struct patient *p) {
  EACH(p, n) {
    if (!is_join(n) || !here(p)) continue;
    planted(p, n);
    suspect(p, arena_strndup(p->arena, n->name, strcspn(n->name, ".")));
    replace(p, n, n->inputs[0]);
    return true;
  }
  return false;
}

bool leaf_of_another_sum(struct patient *p) {
  EACH(p, n)
  for (int k = 0; is_join(n) && k < 2; k++) {
    struct node *other = other_like(p, n, n->inputs[k]);
    if (!other || !is_share(other) || !here(p)) continue;
    n->inputs[k] = other;
    return planted(p, n);
  }
  return false;
}

/* (0 + 1) + (2 + 3) as (0 + 2) + (1 + 3): the same sum in other bits. */
bool leaves_swapped_between_towers(struct patient *p) {
  const char *how = p->g->config.cross_device;
  if (how && strcmp(how, "ring") == 0) return false; /* has an order of its own */
  EACH(p, n) {
    if (!is_join(n) || n->op != OP_add) continue;
    struct node *a = (struct node *)(uintptr_t)through(n->inputs[0]);
    struct node *b = (struct node *)(uintptr_t)through(n->inputs[1]);
    if (!is_join(a) || !is_join(b) || b->inputs[0]->id > a->id || a->inputs[1]->id > b->id || !here(p))
      continue;
    struct node *x = a->inputs[1];
    a->inputs[1] = b->inputs[0];
    b->inputs[0] = x;
    planted(p, a);
    planted(p, b);
    return planted(p, n);
  }
  return false;
}

static bool change_join(struct patient *p, enum op_id from, enum op_id to) {
  EACH(p, n) {
    if (!is_join(n) || n->op != from || !here(p)) continue;
    n->op = to;
    return planted(p, n);
  }
  return false;
}
bool sum_by_maximum(struct patient *p) { return change_join(p, OP_add, OP_max); }
bool sum_by_difference(struct patient *p) { return change_join(p, OP_add, OP_sub); }
bool maximum_by_sum(struct patient *p) { return change_join(p, OP_max, OP_add); }
bool minimum_by_maximum(struct patient *p) { return change_join(p, OP_min, OP_max); }

/* A tower is added once more behind the whole sum. */
bool leaf_added_again(struct patient *p) {
  EACH(p, n) {
    if (!is_join(n) || n->dist != DIST_MIRRORED || n->op != OP_add || !here(p)) continue;
    struct node *leaf = n->inputs[0], *more = insert_op(p, n, OP_add, n, leaf);
    replace(p, n, more);
    more->inputs[0] = n;
    return planted(p, more);
  }
  return false;
}

/* What should read the sum reads a tower's share of it. */
static bool share_read(struct patient *p, bool linear) {
  EACH(p, n)
  for (int k = 0; k < n->ninputs; k++) {
    const struct node *root = through(n->inputs[k]);
    if (!is_join(root) || root->dist != DIST_MIRRORED || n->op == OP_copy || is_join(n)) continue;
    if ((op_of(n)->linear != 0) != linear || !here(p)) continue;
    planted(p, n);
    n->inputs[k] = root->inputs[0];
    return true;
  }
  return false;
}
bool share_read_by_nonlinear_op(struct patient *p) { return share_read(p, false); }
bool update_from_one_tower(struct patient *p) { return share_read(p, true); }

/* ---- the batch ---- */

bool wrong_split_offset(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_split || n->tower == 0 || !here(p)) continue;
    attr_of(p, n, ATTR_offset)->i--;
    return planted(p, n);
  }
  return false;
}

bool split_with_a_gap(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_split || n->tower == p->g->config.towers - 1 || !here(p)) continue;
    attr_of(p, n, ATTR_offset)->i++;
    return planted(p, n);
  }
  return false;
}

bool split_with_fewer_rows(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_split || !here(p)) continue;
    n->type.dim[0]--;
    return planted(p, n);
  }
  return false;
}

bool split_with_more_rows(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_split || n->tower == p->g->config.towers - 1 || !here(p)) continue;
    n->type.dim[0]++;
    return planted(p, n);
  }
  return false;
}

bool splits_swapped(struct patient *p) {
  EACH(p, n) {
    struct node *other = n->op == OP_split ? twin(p, n, p->g->nodes[p->g->count - 1]) : NULL;
    if (!other || !here(p)) continue;
    struct attr *a = attr_of(p, n, ATTR_offset), *b = attr_of(p, other, ATTR_offset);
    int64_t first = a->i;
    a->i = b->i;
    b->i = first;
    return planted(p, n);
  }
  return false;
}

bool split_of_another_input(struct patient *p) {
  EACH(p, n) {
    struct node *other = n->op == OP_split ? other_like(p, n, n->inputs[0]) : NULL;
    if (!node_is(other, OP_input) || !here(p)) continue;
    n->inputs[0] = other;
    return planted(p, n);
  }
  return false;
}

bool wrong_batch_in_header(struct patient *p) {
  if (!here(p)) return false;
  p->g->config.batch--;
  suspect(p, "rows");
  suspect(p, "the source's x");
  return true;
}

bool wrong_towers_in_header(struct patient *p) {
  if (p->g->config.towers == 1 || !here(p)) return false;
  p->g->config.towers--;
  suspect(p, "tower");
  return true;
}
