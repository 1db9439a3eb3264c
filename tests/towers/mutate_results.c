/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of results and devices. */
#include "plant.h"

#include <string.h>

/* ---- results ---- */

bool rows_joined_out_of_order(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_concat || n->ninputs < 2 || !type_equal(&n->inputs[0]->type, &n->inputs[1]->type) ||
        !here(p))
      continue;
    struct node *first = n->inputs[0];
    n->inputs[0] = n->inputs[1];
    n->inputs[1] = first;
    return planted(p, n);
  }
  return false;
}

bool rows_joined_twice(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_concat || n->ninputs < 2 || !type_equal(&n->inputs[0]->type, &n->inputs[1]->type) ||
        !here(p))
      continue;
    n->inputs[1] = n->inputs[0];
    return planted(p, n);
  }
  return false;
}

bool result_of_one_tower(struct patient *p) {
  for (int i = 0; i < p->g->noutputs; i++) {
    struct output *o = &p->g->outputs[i];
    if (is_update(p, i) || (!is_join(o->node) && o->node->op != OP_concat) || !here(p)) continue;
    o->node = o->node->inputs[0];
    suspect(p, o->name);
    return planted(p, o->node);
  }
  return false;
}

bool results_swapped(struct patient *p) {
  for (int i = 0; i < p->g->noutputs; i++)
    for (int k = i + 1; !is_update(p, i) && k < p->g->noutputs; k++) {
      struct output *a = &p->g->outputs[i], *b = &p->g->outputs[k];
      if (is_update(p, k) || !type_equal(&a->node->type, &b->node->type) || !here(p)) continue;
      struct node *n = a->node;
      a->node = b->node;
      b->node = n;
      suspect(p, a->name);
      return true;
    }
  return false;
}

bool missing_result(struct patient *p) {
  for (int i = 0; i < p->g->noutputs; i++) {
    if (is_update(p, i) || !here(p)) continue;
    suspect(p, p->g->outputs[i].name);
    remove_output(p, i);
    return true;
  }
  return false;
}

bool renamed_result(struct patient *p) {
  for (int i = 0; i < p->g->noutputs; i++) {
    if (is_update(p, i) || !here(p)) continue;
    suspect(p, p->g->outputs[i].name);
    p->g->outputs[i].name = "planted";
    return true;
  }
  return false;
}

/* ---- devices ---- */

bool no_such_device(struct patient *p) {
  EACH(p, n) {
    if (n->id % 7 || !here(p)) continue;
    n->device = n->id % 2 ? -1 : p->g->config.target.ndevices;
    return planted(p, n);
  }
  return false;
}

bool moved_to_another_device(struct patient *p) {
  EACH(p, n) {
    if (n->op == OP_copy || p->g->config.target.ndevices < 2 || n->id % 5 || !here(p)) continue;
    n->device = (n->device + 1) % p->g->config.target.ndevices;
    return planted(p, n);
  }
  return false;
}

bool copy_of_another_value(struct patient *p) {
  EACH(p, n) {
    struct node *other = n->op == OP_copy ? other_like(p, n, n->inputs[0]) : NULL;
    if (!other || !here(p)) continue;
    n->inputs[0] = other;
    return planted(p, n);
  }
  return false;
}

bool missing_copy(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_copy || !here(p)) continue;
    planted(p, n);
    replace(p, n, n->inputs[0]);
    return true;
  }
  return false;
}

bool copy_without_alias(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_copy || !node_attr(n, ATTR_alias) || !here(p)) continue;
    remove_attr(p, n, ATTR_alias);
    return planted(p, n);
  }
  return false;
}

bool alias_between_memories(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_copy || !node_attr(n, ATTR_alias) || !here(p)) continue;
    p->g->config.target.devices[n->device].memory = 7;
    suspect(p, "share no memory");
    return planted(p, n);
  }
  return false;
}

bool update_away_from_its_variable(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_assign || p->g->config.target.ndevices < 2 || !here(p)) continue;
    n->device = (n->device + 1) % p->g->config.target.ndevices;
    return planted(p, n);
  }
  return false;
}

bool read_before_made(struct patient *p) {
  EACH(p, n) {
    if (n->id + 1 >= p->g->count || !here(p)) continue;
    struct node *next = p->g->nodes[n->id + 1];
    bool reads = false;
    for (int k = 0; k < next->ninputs; k++) reads |= next->inputs[k] == n;
    if (!reads) continue;
    p->g->nodes[n->id] = next;
    p->g->nodes[n->id + 1] = n;
    next->id = n->id;
    n->id++;
    return planted(p, next);
  }
  return false;
}

/* ---- what devices do together ---- */

/* One device reads what another one has. */
bool missing_part(struct patient *p) {
  EACH(p, n) {
    if (!is_collective(n)) continue;
    EACH(p, other)
    if (other != n && is_collective(other) && other->inputs[0] == n->inputs[0] && here(p)) {
      replace(p, n, other);
      suspect(p, n->name);
      return planted(p, other);
    }
  }
  return false;
}

/* A device takes part with the operands of another sum. */
bool part_of_another_sum(struct patient *p) {
  EACH(p, n) {
    if (!is_collective(n)) continue;
    EACH(p, other) {
      if (!is_collective(other) || other->id > n->id || other->inputs[0] == n->inputs[0] ||
          !type_equal(&other->type, &n->type) || !here(p))
        continue;
      n->inputs = other->inputs;
      suspect(p, other->name);
      return planted(p, n);
    }
  }
  return false;
}

/* All devices do without the share of the last. */
bool share_left_out(struct patient *p) {
  EACH(p, n) {
    if (!is_collective(n) || n->ninputs < 3 || !here(p)) continue;
    const struct node *first = n->inputs[0];
    EACH(p, other)
    if (is_collective(other) && other->inputs[0] == first) {
      other->ninputs--;
      suspect(p, other->name);
    }
    return true;
  }
  return false;
}

bool part_moved(struct patient *p) {
  EACH(p, n) {
    if (!is_collective(n) || !here(p)) continue;
    n->device = (n->device + 1) % p->g->config.target.ndevices;
    return planted(p, n);
  }
  return false;
}
