/* SPDX-License-Identifier: Apache-2.0 */
#include "mutations.h"

#include "plant.h"

#include <string.h>

const struct mutation graph_mutations[] = {
#define MUTATION(name) {#name, name},
#include "mutations.def"
    {NULL, NULL},
};

bool planted(struct patient *p, const struct node *n) {
  int most = p->nnames + 6;
  suspect(p, n->name);
  for (uint32_t i = 0; i < p->g->count; i++)
    for (int k = 0; k < p->g->nodes[i]->ninputs; k++)
      if (p->g->nodes[i]->inputs[k] == n && p->nnames < most) suspect(p, p->g->nodes[i]->name);
  for (int i = 0; i < p->g->noutputs; i++)
    if (p->g->outputs[i].node == n) suspect(p, p->g->outputs[i].name);
  return true;
}

const struct node *through(const struct node *n) {
  while (n->op == OP_copy) n = n->inputs[0];
  return n;
}

bool is_share(const struct node *n) { return n->dist >= DIST_PARTIAL; }

bool is_join(const struct node *n) {
  return n->ninputs == 2 && (n->op == OP_add || n->op == OP_max || n->op == OP_min) &&
         is_share(n->inputs[0]) && is_share(n->inputs[1]) &&
         through(n->inputs[0])->tower != through(n->inputs[1])->tower;
}

bool is_leaf(const struct node *n) { return is_share(n) && n->op != OP_copy && !is_join(n); }

void replace(struct patient *p, const struct node *old, struct node *by) {
  EACH(p, n)
  for (int k = 0; k < n->ninputs; k++)
    if (n->inputs[k] == old && n != by) n->inputs[k] = by;
  for (int i = 0; i < p->g->noutputs; i++)
    if (p->g->outputs[i].node == old) p->g->outputs[i].node = by;
}

struct node *insert(struct patient *p, uint32_t at, struct node n) {
  struct graph *g = p->g;
  struct node **more = arena_new_array(p->arena, g->count + 1, struct node *);
  memcpy(more, g->nodes, sizeof *more * at);
  memcpy(more + at + 1, g->nodes + at, sizeof *more * (g->count - at));
  more[at] = arena_copy(p->arena, &n, sizeof n);
  more[at]->inputs = arena_copy(p->arena, n.inputs, sizeof *n.inputs * (size_t)n.ninputs);
  g->nodes = more;
  g->count++;
  for (uint32_t i = at; i < g->count; i++) g->nodes[i]->id = i;
  return more[at];
}

struct node *insert_op(struct patient *p, const struct node *like, enum op_id op, struct node *a,
                       struct node *b) {
  struct node n = *like, *in[2] = {a, b};
  n.op = op;
  n.name = arena_printf(p->arena, "%s.planted", like->name);
  n.inputs = in;
  n.ninputs = b ? 2 : 1;
  n.nattrs = 0;
  uint32_t after = a->id;
  if (b && b->id > after) after = b->id;
  return insert(p, after + 1, n);
}

struct attr *attr_of(struct patient *p, struct node *n, enum attr_key key) {
  struct attr *attrs = arena_copy(p->arena, n->attrs, sizeof *attrs * (size_t)n->nattrs);
  n->attrs = attrs;
  for (int i = 0; i < n->nattrs; i++)
    if (attrs[i].key == key) return &attrs[i];
  return NULL;
}

void remove_attr(struct patient *p, struct node *n, enum attr_key key) {
  struct attr *a = attr_of(p, n, key), *end = (struct attr *)(uintptr_t)n->attrs + n->nattrs;
  memmove(a, a + 1, sizeof *a * (size_t)(end - a - 1));
  n->nattrs--;
}

void remove_output(struct patient *p, int i) {
  memmove(&p->g->outputs[i], &p->g->outputs[i + 1], sizeof *p->g->outputs * (size_t)(p->g->noutputs - i - 1));
  p->g->noutputs--;
}

struct node *other_like(struct patient *p, const struct node *reader, const struct node *x) {
  struct node *found = NULL;
  EACH(p, n) {
    if (n->id >= reader->id || n == x || through(n) == through(x) || !type_equal(&n->type, &x->type) ||
        n->dist != x->dist || n->tower != x->tower || n->device != x->device)
      continue;
    bool reads = false;
    for (int k = 0; k < reader->ninputs; k++) reads |= through(reader->inputs[k]) == through(n);
    if (!reads) found = n;
  }
  return found;
}

struct node *other_variable(struct patient *p, const struct node *x) {
  size_t stem = strcspn(x->name, "/");
  EACH(p, n)
  if (n->op == OP_variable && n != x && n->device == x->device && type_equal(&n->type, &x->type) &&
      (strncmp(n->name, x->name, stem) != 0 || strcspn(n->name, "/") != stem))
    return n;
  return NULL;
}

struct node *twin(struct patient *p, const struct node *x, const struct node *reader) {
  const char *stem = strncmp(x->name, "tower_", 6) == 0 ? strchr(x->name, '/') + 1 : x->name;
  EACH(p, n) {
    const char *other = strncmp(n->name, "tower_", 6) == 0 ? strchr(n->name, '/') + 1 : n->name;
    if (n->tower >= 0 && n->tower != x->tower && n->id < reader->id && strcmp(stem, other) == 0 &&
        type_equal(&n->type, &x->type))
      return n;
  }
  return NULL;
}

bool is_update(const struct patient *p, int output) { return p->g->outputs[output].role == OUTPUT_UPDATE; }
