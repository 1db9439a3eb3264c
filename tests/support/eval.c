/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/eval.h"

#include "ir/ops/op_id.h"

#include <stdio.h>
#include <string.h>

/* ---- tensors by name ---- */

struct values values_make(struct arena *a) {
  return (struct values){.arena = a, .map = map_make(a)};
}

struct tensor *values_get(const struct values *v, const char *name) {
  return map_get(&v->map, name);
}

void values_put(struct values *v, const char *name, const struct type *t, const void *data) {
  struct tensor *copy = arena_new(v->arena, struct tensor);
  *copy = (struct tensor){*t, arena_copy(v->arena, data, (size_t)type_bytes(t))};
  map_put(&v->map, name, copy);
}

void values_put_first_row(struct values *inputs, int64_t number) {
  struct type t = type_scalar(DT_I64);
  values_put(inputs, FIRST_ROW_INPUT, &t, arena_copy(inputs->arena, &number, sizeof number));
}

struct values values_copy(struct arena *a, const struct values *v) {
  struct values out = values_make(a);
  for (uint32_t i = 0; i < v->map.count; i++) {
    const struct tensor *t = v->map.entries[i].value;
    values_put(&out, v->map.entries[i].key, &t->type, t->data);
  }
  return out;
}

/* ---- a fixed batch ---- */

static struct node *concrete_node(struct graph *out, const struct node *n, struct node **in, void *rows) {
  int64_t batch = *(const int64_t *)rows;
  struct node proto = *n;
  proto.inputs = in;
  proto.type = type_specialize(&n->type, batch);
  if (n->op == OP_scan) {
    struct attr *attrs = arena_copy(out->arena, n->attrs, sizeof *attrs * (size_t)n->nattrs);
    for (int i = 0; i < n->nattrs; i++)
      if (attrs[i].key == ATTR_body) attrs[i].body = graph_concrete(out->arena, attrs[i].body, batch);
    proto.attrs = attrs;
  }
  if (n->op != OP_batch_size) return graph_node(out, &proto);
  struct tensor count = {type_scalar(DT_I64), &batch}, value = {proto.type, arena_alloc(out->arena, 8)};
  struct node cast = {.op = OP_cast, .type = proto.type, .ninputs = 1};
  node_eval(&cast, &count, &value, 0);
  proto.op = OP_constant;
  proto.nattrs = 1;
  proto.attrs = &(struct attr){.key = ATTR_value, .count = (int)type_bytes(&proto.type), .data = value.data};
  return graph_node(out, &proto);
}

struct graph *graph_concrete(struct arena *a, struct graph *g, int64_t batch) {
  bool symbolic = false;
  for (uint32_t i = 0; i < g->count; i++)
    symbolic |= g->nodes[i]->op == OP_batch_size || type_is_symbolic(&g->nodes[i]->type);
  if (!symbolic) return g;
  struct graph *out = graph_create_like(a, g);
  out->config.batch = batch;
  struct node **map = arena_new_array(a, g->count + 1, struct node *);
  graph_copy_nodes(a, out, g, NULL, map, concrete_node, &batch);
  for (int i = 0; i < g->noutputs; i++) {
    const struct output *o = &g->outputs[i];
    graph_add_output(out, o->role, o->name, map[o->node->id], o->count < 0 ? -o->count * batch : o->count);
  }
  return out;
}

struct node *raw_node(struct graph *g, enum op_id op, int ninputs, struct node *const *inputs, int nattrs,
                      const struct attr *attrs, const struct type *type) {
  struct node n = {.op = op,
                   .ninputs = ninputs,
                   .inputs = (struct node **)(uintptr_t)inputs,
                   .nattrs = nattrs,
                   .attrs = attrs,
                   .name = arena_printf(g->arena, "%s.%u", op_table[op]->name, g->count),
                   .tower = -1,
                   .replica = -1,
                   .device = -1};
  if (type) n.type = *type;
  const char *why = NULL;
  for (int i = 0; i < ninputs; i++)
    if (!inputs[i]) return NULL;
  if (node_infer(g, &n, &why)) return graph_node(g, &n);
  fprintf(stderr, "%s: %s\n", op_table[op]->name, why);
  return NULL;
}

/* ---- one step ---- */

/* "v" of "v/replica_3". */
static const char *primary_name(struct arena *a, const char *name) {
  const char *slash = strstr(name, "/replica_");
  return slash ? arena_strndup(a, name, (size_t)(slash - name)) : name;
}

/* The name of the whole that "v/part_2" or "v/part_2.adam.m" is a part of, and the row it begins at; or NULL. */
static const char *whole_name(struct arena *a, const struct graph *g, const struct node *n, int64_t *first) {
  const char *mark = strstr(n->name, "/part_");
  int part, length = 0;
  if (!mark || sscanf(mark, "/part_%d%n", &part, &length) != 1) return NULL;
  *first = 0;
  for (int i = 0; i < part; i++)
    *first +=
        graph_find(g, arena_printf(a, "%.*s/part_%d%s", (int)(mark - n->name), n->name, i, mark + length))
            ->type.dim[0];
  return arena_printf(a, "%.*s%s", (int)(mark - n->name), n->name, mark + length);
}

/* Bytes before the row. */
static size_t row_offset(const struct type *t, int64_t row) {
  struct type before = *t;
  before.dim[0] = row;
  return (size_t)type_bytes(&before);
}

static void write_variable(struct arena *a, const struct graph *g, const struct node *n,
                           const struct tensor *x, struct values *variables) {
  int64_t first;
  const char *name = whole_name(a, g, n, &first);
  const struct tensor *whole = name ? values_get(variables, name) : NULL;
  if (!whole) {
    values_put(variables, n->name, &x->type, x->data);
    return;
  }
  char *data = arena_copy(a, whole->data, (size_t)type_bytes(&whole->type));
  memcpy(data + row_offset(&whole->type, first), x->data, (size_t)type_bytes(&x->type));
  values_put(variables, name, &whole->type, data);
}

static bool read_named(struct arena *a, const struct graph *g, const struct node *n,
                       const struct values *from, struct tensor *out) {
  const struct tensor *t = values_get(from, n->name);
  int64_t first;
  const char *name = whole_name(a, g, n, &first);
  const struct tensor *whole = name ? values_get(from, name) : NULL;
  if (whole) {
    *out = (struct tensor){n->type, (char *)whole->data + row_offset(&whole->type, first)};
    return true;
  }
  if (!t) t = values_get(from, primary_name(a, n->name));
  if (t && type_equal(&t->type, &n->type)) {
    *out = *t;
    return true;
  }
  fprintf(stderr, "no %s %s : %s\n", op_of(n)->name, n->name, type_text(a, &n->type));
  return false;
}

static struct tensor room(struct arena *a, const struct type *t) {
  return (struct tensor){*t, arena_alloc(a, (size_t)type_bytes(t))};
}

/* `results[id]` are all results of a node that has several. */
static bool eval_node(struct arena *a, const struct node *n, struct tensor *values, struct tensor **results) {
  struct tensor *in = arena_new_array(a, (size_t)n->ninputs, struct tensor);
  for (int k = 0; k < n->ninputs; k++) in[k] = values[n->inputs[k]->id];
  if (n->op == OP_output) {
    values[n->id] = results[n->inputs[0]->id][node_int(n, ATTR_index)];
    return true;
  }
  if (n->op != OP_fused && n->op != OP_scan) {
    values[n->id] = room(a, &n->type);
    return node_eval(n, in, &values[n->id], 0);
  }
  int count = node_results(n);
  struct tensor *outs = arena_new_array(a, (size_t)count, struct tensor);
  for (int k = 0; k < count; k++) {
    struct type t = node_result_type(n, k);
    outs[k] = room(a, &t);
  }
  results[n->id] = outs;
  values[n->id] = outs[0];
  return results_eval(n, in, outs, count, 0);
}

bool graph_eval(struct arena *a, const struct graph *g, const struct values *inputs, struct values *variables,
                struct tensor *out) {
  uint8_t *live = graph_live(a, g);
  struct tensor **results = arena_new_array(a, g->count + 1, struct tensor *);
  memset(out, 0, sizeof *out * g->count);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (!live[i]) continue;
    bool ok = n->op == OP_input      ? read_named(a, g, n, inputs, &out[i])
              : n->op == OP_variable ? read_named(a, g, n, variables, &out[i])
                                     : eval_node(a, n, out, results);
    if (ok) continue;
    fprintf(stderr, "cannot evaluate %s (%s)\n", n->name, op_of(n)->name);
    return false;
  }
  for (uint32_t i = 0; i < g->count; i++)
    if (live[i] && g->nodes[i]->op == OP_assign)
      write_variable(a, g, g->nodes[i]->inputs[0], &out[i], variables);
  return true;
}

const struct tensor *output_value(const struct graph *g, const struct tensor *values, const char *name) {
  for (int i = 0; i < g->noutputs; i++)
    if (strcmp(g->outputs[i].name, name) == 0) return &values[g->outputs[i].node->id];
  return NULL;
}

const char *graph_text(struct arena *a, const struct graph *g) {
  struct str s = str_make(a);
  graph_print(&s, g);
  return s.data;
}
