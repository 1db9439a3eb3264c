/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: creation, lookup, attributes, users and liveness. Nodes are made in build.c. */
#include "ir/graph/graph.h"

#include "ir/ops/op_id.h"

#include <string.h>

struct graph *graph_create(struct arena *a, const char *name, struct diags *d) {
  struct graph *g = arena_new(a, struct graph);
  g->arena = a;
  g->name = arena_strdup(a, name);
  g->diags = d;
  g->at.scope = "";
  g->at.tower = g->at.replica = g->at.device = -1;
  g->names = map_make(a);
  return g;
}

static const char *text_copy(struct arena *a, const char *text) {
  return text ? arena_strdup(a, text) : NULL;
}

struct config config_copy(struct arena *a, const struct config *from) {
  struct config c = *from;
#define WORD(name) c.name = text_copy(a, c.name);
#define TEXT(name) c.name = text_copy(a, c.name);
#include "ir/graph/config.def"
  c.target = target_copy(a, &c.target);
  c.homes = arena_new_array(a, (size_t)c.nhomes, struct home);
  for (int i = 0; i < c.nhomes; i++)
    c.homes[i] =
        (struct home){arena_strdup(a, from->homes[i].variable), arena_strdup(a, from->homes[i].device)};
  return c;
}

bool scales_per_tower(const struct config *c) {
  return c->loss_scaling && strcmp(c->loss_scaling, "per_tower") == 0;
}

struct graph *graph_create_like(struct arena *a, const struct graph *from) {
  struct graph *g = graph_create(a, from->name, from->diags);
  g->stage = from->stage;
  g->config = config_copy(a, &from->config);
  return g;
}

void graph_add_output(struct graph *g, enum output_role role, const char *name, struct node *n,
                      int64_t count) {
  /* Grows by doubling: at every power of two the array moves. */
  if ((g->noutputs & (g->noutputs - 1)) == 0) {
    int cap = g->noutputs ? 2 * g->noutputs : 1;
    struct output *more = arena_new_array(g->arena, (size_t)cap, struct output);
    if (g->noutputs) memcpy(more, g->outputs, sizeof *more * (size_t)g->noutputs);
    g->outputs = more;
  }
  g->outputs[g->noutputs++] =
      (struct output){.role = role, .name = arena_strdup(g->arena, name), .node = n, .count = count};
}

struct node *graph_find(const struct graph *g, const char *name) {
  return map_get(&g->names, name);
}

const struct attr *node_attr(const struct node *n, enum attr_key key) {
  for (int i = 0; i < n->nattrs; i++)
    if (n->attrs[i].key == key) return &n->attrs[i];
  return NULL;
}

int64_t node_int(const struct node *n, enum attr_key key) { return node_attr(n, key)->i; }

int64_t node_int_or(const struct node *n, enum attr_key key, int64_t otherwise) {
  const struct attr *a = node_attr(n, key);
  return a ? a->i : otherwise;
}

const int64_t *node_ints(const struct node *n, enum attr_key key, int *count) {
  const struct attr *a = node_attr(n, key);
  *count = a->count;
  return a->ints;
}

const char *node_string(const struct node *n, enum attr_key key) { return node_attr(n, key)->string; }

const char *node_string_or(const struct node *n, enum attr_key key, const char *otherwise) {
  const struct attr *a = node_attr(n, key);
  return a ? a->string : otherwise;
}

bool node_is(const struct node *n, unsigned op) { return n && n->op == op; }

static double element(const struct node *n, const void *data) {
  switch ((enum dtype)n->type.dtype) {
  case DT_F32: return *(const float *)data;
  case DT_F64: return *(const double *)data;
  case DT_I32: return *(const int32_t *)data;
  case DT_I64: return (double)*(const int64_t *)data;
  case DT_U8:
  case DT_BOOL:
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
  return *(const uint8_t *)data;
}

bool node_is_constant(const struct node *n, double value) {
  if (node_is(n, OP_broadcast)) n = n->inputs[0];
  if (!node_is(n, OP_constant)) return false;
  const struct attr *a = node_attr(n, ATTR_value);
  int size = dtype_size(n->type.dtype);
  for (int i = 0; i < a->count; i += size)
    if (element(n, (const char *)a->data + i) != value) return false;
  return a->count > 0;
}

struct users graph_users(struct arena *a, const struct graph *g) {
  struct users u = {.first = arena_new_array(a, g->count + 2, uint32_t)};
  for (uint32_t i = 0; i < g->count; i++)
    for (int k = 0; k < g->nodes[i]->ninputs; k++) u.first[g->nodes[i]->inputs[k]->id + 2]++;
  for (uint32_t i = 0; i <= g->count; i++) u.first[i + 1] += u.first[i];
  u.users = arena_new_array(a, u.first[g->count + 1], struct node *);
  for (uint32_t i = 0; i < g->count; i++)
    for (int k = 0; k < g->nodes[i]->ninputs; k++)
      u.users[u.first[g->nodes[i]->inputs[k]->id + 1]++] = g->nodes[i];
  return u;
}

bool graph_has_op(const struct graph *g, unsigned op) {
  for (uint32_t i = 0; i < g->count; i++)
    if (g->nodes[i]->op == op) return true;
  return false;
}

uint8_t *graph_live(struct arena *a, const struct graph *g) {
  uint8_t *live = arena_new_array(a, g->count + 1, uint8_t);
  for (int i = 0; i < g->noutputs; i++) live[g->outputs[i].node->id] = 1;
  for (uint32_t i = g->count; i-- > 0;)
    if (live[i])
      for (int k = 0; k < g->nodes[i]->ninputs; k++) live[g->nodes[i]->inputs[k]->id] = 1;
  return live;
}

/* A type is valid: fewer than 2^44 bytes. */
static int64_t magnitude(const struct type *t) {
  int64_t bytes = type_bytes(t);
  return bytes < 0 ? -bytes : bytes;
}

const struct node *graph_excess(const struct graph *g) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    bytes += magnitude(&n->type);
    for (int k = 0; k < n->ninputs && bytes < MAX_GRAPH_BYTES; k++) bytes += magnitude(&n->inputs[k]->type);
    if (bytes >= MAX_GRAPH_BYTES) return n;
  }
  return NULL;
}
