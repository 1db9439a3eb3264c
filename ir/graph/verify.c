/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier: what every graph must be, whatever its stage. What holds from replication on is in verify_place.c.
 *
 * All breaches are collected; each names the pass after which it was seen and shows the node. */
#include "ir/graph/verify.h"
#include "ir/graph/build.h"
#include "ir/graph/text.h"
#include "ir/ops/op_id.h"

#include <string.h>

/* Whether the node can be printed and inferred at all. */
static bool check_structure(struct verify *v, const struct node *n, uint32_t i) {
  if (!n || (unsigned)n->op >= OP_COUNT || !n->name) {
    verify_breach(v, NULL, "node %u of %s is no node", i, v->g->name);
    return false;
  }
  for (int k = 0; k < n->ninputs; k++) {
    const struct node *x = n->inputs[k];
    if (!x || x->id >= v->g->count || v->g->nodes[x->id] != x) {
      verify_breach(v, NULL, "operand %d of %s is no node of the graph", k, n->name);
      return false;
    }
    if (x->id < i) continue;
    verify_breach(v, n, "%s is read before it is made", x->name);
    return false;
  }
  if (n->id == i) return true;
  verify_breach(v, n, "the node has number %u and stands at %u", n->id, i);
  return false;
}

static void check_name(struct verify *v, const struct node *n, struct map *names) {
  if (!*n->name) verify_breach(v, n, "the name is empty");
  if (map_put(names, n->name, (void *)(uintptr_t)n))
    verify_breach(v, n, "the name %s is taken twice", n->name);
}

/* What the model asks for is the name of a device; whether there is one is a matter of placement. */
static void check_want(struct verify *v, const struct node *n) {
  struct device_name want;
  if (n->want && !device_name_parse(v->arena, n->want, &want))
    verify_breach(v, n, "'%s' is no device name", n->want);
}

static bool check_attrs(struct verify *v, const struct node *n) {
  for (int i = 0; i < n->nattrs; i++) {
    const struct attr *a = &n->attrs[i];
    bool known = (unsigned)a->key < ATTR_COUNT;
    if (!known || (i > 0 && a->key <= n->attrs[i - 1].key)) {
      verify_breach(v, NULL, "the attributes of %s are unknown or out of order", n->name);
      return false;
    }
    enum attr_kind kind = attr_kind_of(a->key);
    bool missing = (kind == ATTR_STRING && !a->string) || (kind == ATTR_BODY && !a->body) || a->count < 0 ||
                   (kind == ATTR_INTS && a->count > MAX_RANK);
    if (!missing) continue;
    verify_breach(v, NULL, "the attribute %s of %s has no value", attr_name(a->key), n->name);
    return false;
  }
  return true;
}

static void check_type(struct verify *v, const struct node *n) {
  struct graph scratch = *v->g; /* messages go to the verifier's own arena */
  scratch.arena = v->arena;
  struct node inferred = *n;
  const char *why = "the type cannot be inferred";
  if (!type_valid(&n->type))
    verify_breach(v, n, "the type is not valid");
  else if (!node_infer(&scratch, &inferred, &why))
    verify_breach(v, n, "%s", why);
  else if (!type_equal(&inferred.type, &n->type))
    verify_breach(v, n, "the type is %s, and its operands give %s", type_text(v->arena, &n->type),
                  type_text(v->arena, &inferred.type));
}

/* What is narrow goes from a cast, or a variable that is stored so, to the ops that read it, and nowhere else. */
static void check_source(struct verify *v, const struct node *n) {
  if (n->ninputs > 0 || n->op == OP_fused || !dtype_is_narrow(n->type.dtype)) return;
  if (n->op == OP_variable && v->g->stage == STAGE_FUSED) return;
  if (n->op == OP_input && v->inside) return;
  verify_breach(v, n, "%s is what a cast of f32 gives", dtype_name(n->type.dtype));
}

/* The value before it was moved or repeated. */
static const struct node *unmoved(const struct node *n) {
  while ((node_moves(n) || n->op == OP_broadcast) && n->ninputs == 1) n = n->inputs[0];
  return n;
}

/* Whether an f32 constant has values of the narrow type `d` alone. */
static bool is_near(const struct node *n, enum dtype d) {
  const struct attr *value = node_attr(n, ATTR_value);
  uint32_t bits;
  for (int i = 0; i + 4 <= value->count; i += 4) {
    memcpy(&bits, (const char *)value->data + i, 4);
    if (scalar_convert(DT_F32, d, scalar_convert(d, DT_F32, bits)) != bits) return false;
  }
  return true;
}

/* What a variable that is stored in 16 bits is given is rounded before, so that it is the same however it lies. */
static void check_stored(struct verify *v, const struct node *assign) {
  const struct node *x = unmoved(assign->inputs[1]);
  enum dtype d = node_storage(assign->inputs[0]);
  if (v->g->stage != STAGE_SOURCE || d == DT_F32) return;
  bool near = op_of(x)->narrow == d || (x->op == OP_variable && node_storage(x) == d) ||
              (x->op == OP_constant && is_near(x, d));
  if (!near)
    verify_breach(v, assign, "%s is stored in %s, and %s is not rounded", assign->inputs[0]->name,
                  dtype_name(d), x->name);
}

static void check_constant(struct verify *v, const struct node *n) {
  const struct attr *value = n->op == OP_constant ? node_attr(n, ATTR_value) : NULL;
  if (!value || n->type.dtype != DT_BOOL) return;
  for (int i = 0; i < value->count; i++)
    if (((const uint8_t *)value->data)[i] > 1) {
      verify_breach(v, n, "a bool is neither 0 nor 1");
      return;
    }
}

static void check_output(struct verify *v, int index) {
  const struct output *o = &v->g->outputs[index];
  const struct node *n = o->node;
  if (!n || n->id >= v->g->count || v->g->nodes[n->id] != n || !o->name) {
    verify_breach(v, NULL, "output %d of %s is no node of the graph", index, v->g->name);
    return;
  }
  bool scalar = o->role == OUTPUT_LOSS || o->role == OUTPUT_METRIC;
  if (scalar && n->type.rank != 0)
    verify_breach(v, n, "the %s %s is not a scalar", text_roles[o->role], o->name);
  bool shares = n->op == OP_all_reduce && node_attr(n, ATTR_order);
  if (o->role == OUTPUT_SEND ? n->op != OP_send && !shares : n->op == OP_send)
    verify_breach(v, n, "the %s %s is%s sent", text_roles[o->role], o->name, n->op == OP_send ? "" : " not");
  if (o->role == OUTPUT_HELD && n->op != OP_variable)
    verify_breach(v, n, "the held %s is no variable", o->name);
  if (o->role == OUTPUT_UPDATE && n->op != OP_assign)
    verify_breach(v, n, "the update %s assigns nothing", o->name);
  if (o->count > MAX_ELEMENTS || o->count < -MAX_ELEMENTS)
    verify_breach(v, n, "the count of %s is too large", o->name);
  if (v->g->stage != STAGE_SOURCE && o->count < 0)
    verify_breach(v, n, "the count of %s still depends on B", o->name);
}

static void check_outputs(struct verify *v) {
  struct map names[OUTPUT_ROLES];
  for (int role = 0; role < OUTPUT_ROLES; role++) names[role] = map_make(v->arena);
  for (int i = 0; i < v->g->noutputs; i++) {
    const struct output *o = &v->g->outputs[i];
    if ((unsigned)o->role >= OUTPUT_ROLES) {
      verify_breach(v, NULL, "output %d of %s has no role", i, v->g->name);
      continue;
    }
    check_output(v, i);
    if (o->name && map_put(&names[o->role], o->name, (void *)(uintptr_t)o))
      verify_breach(v, o->node, "there are two outputs %s %s", text_roles[o->role], o->name);
  }
}

/* Ops that come into being at a stage, and those that are gone after the first. */
static void check_stage(struct verify *v, const struct node *n) {
  const struct op_info *op = op_of(n);
  enum stage stage = v->g->stage, first = op->since;
  enum stage last = op->traits & OP_SOURCE_ONLY ? STAGE_SOURCE : STAGE_FUSED;
  if (stage < first)
    verify_breach(v, n, "there is no %s before the stage %s", op_of(n)->name, text_stages[first]);
  if (stage > last)
    verify_breach(v, n, "there is no %s after the stage %s", op_of(n)->name, text_stages[last]);
  if (stage == STAGE_SOURCE) {
    if (n->dist != DIST_NONE || n->tower >= 0 || n->replica >= 0 || n->device >= 0 || n->pack)
      verify_breach(v, n, "a source graph says nothing of towers and devices");
    if (node_attr(n, ATTR_batch)) verify_breach(v, n, "a source graph does not know the batch");
    if (node_attr(n, ATTR_of) && !node_attr(n, ATTR_part))
      verify_breach(v, n, "a source graph has no copies of variables");
    if (node_attr(n, ATTR_offset) && type_is_symbolic(&n->type))
      verify_breach(v, n, "a source graph has no parts of the batch: no offset");
    bool given = n->op == OP_input || n->op == OP_variable || n->op == OP_constant;
    if (given && type_has_whole(&n->type))
      verify_breach(v, n, "only what is computed has the rows of all towers");
    return;
  }
  if (type_is_symbolic(&n->type)) verify_breach(v, n, "the type still depends on B");
  if (type_has_whole(&n->type)) verify_breach(v, n, "the type still depends on N");
  if (n->op != OP_batch_size) return;
  /* Workers that apply their own gradients, and towers that speak for themselves, count their own rows. */
  int64_t batch = node_int_or(n, ATTR_batch, -1), all = v->g->config.batch;
  if (v->g->config.asynchronous || n->dist == DIST_PER_REPLICA ? batch < 0 || batch > all : batch != all)
    verify_breach(v, n, "the batch is not that of the graph");
}

static bool check_nodes(struct verify *v) {
  struct map names = map_make(v->arena);
  bool sound = true;
  for (uint32_t i = 0; i < v->g->count; i++) {
    const struct node *n = v->g->nodes[i];
    if (!check_structure(v, n, i) || !check_attrs(v, n)) {
      sound = false; /* nothing can be said of those that read it */
      break;
    }
    check_name(v, n, &names);
    check_want(v, n);
    check_type(v, n);
    check_constant(v, n);
    check_source(v, n);
  }
  return sound;
}

/* One writer per variable and step. */
static void check_writers(struct verify *v) {
  const struct node **writer = arena_new_array(v->arena, v->g->count + 1, const struct node *);
  for (uint32_t i = 0; i < v->g->count; i++) {
    const struct node *n = v->g->nodes[i];
    if (n->op != OP_assign) continue;
    check_stored(v, n);
    const struct node **slot = &writer[n->inputs[0]->id];
    if (*slot) verify_breach(v, n, "%s writes %s too", (*slot)->name, n->inputs[0]->name);
    *slot = n;
  }
}

/* What holds of the graph inside any node. */
static bool check_inside(struct verify *inner) {
  if (!check_nodes(inner)) return false;
  check_outputs(inner);
  for (int i = 0; i < inner->g->noutputs; i++)
    if (inner->g->outputs[i].role != OUTPUT_VALUE)
      verify_breach(inner, inner->g->outputs[i].node, "a body has outputs of the role value only");
  return true;
}

/* The graph inside a fused node: one input per operand, one output per result, nothing but computation. */
static void check_body(struct verify *v, const struct node *fused) {
  struct verify inner = *v;
  inner.inside = true;
  inner.g = node_attr(fused, ATTR_body)->body;
  inner.ok = true;
  const struct graph *body = inner.g;
  int operand = 0;
  if (!check_inside(&inner)) {
    v->ok = false;
    return;
  }
  for (uint32_t i = 0; i < body->count; i++) {
    const struct node *n = body->nodes[i];
    enum op_kind kind = op_of(n)->kind;
    if (n->op == OP_variable || kind == KIND_EFFECT || kind == KIND_META)
      verify_breach(&inner, n, "there is no %s inside a fused node", op_of(n)->name);
    if (n->op != OP_input) continue;
    if (operand < fused->ninputs && !type_equal(&n->type, &fused->inputs[operand]->type))
      verify_breach(&inner, n, "%s reads %s here", fused->name, fused->inputs[operand]->name);
    operand++;
  }
  if (operand != fused->ninputs)
    verify_breach(v, fused, "the body has %d inputs for %d operands", operand, fused->ninputs);
  if (body->noutputs == 0)
    verify_breach(v, fused, "the body has no output");
  else if (inner.ok && !type_equal(&body->outputs[0].node->type, &fused->type))
    verify_breach(v, fused, "the first result of the body is %s",
                  type_text(v->arena, &body->outputs[0].node->type));
  v->ok = v->ok && inner.ok;
}

/* The graph inside a scan: what its operands and results are is part of the node's type. What holds of the stage of
 * the graph around it holds of it; it runs where the scan runs, and says nothing of towers. */
static void check_loop(struct verify *v, const struct node *scan) {
  struct verify inner = *v;
  inner.inside = true;
  inner.g = node_attr(scan, ATTR_body)->body;
  inner.ok = true;
  bool sound = check_inside(&inner);
  for (uint32_t i = 0; sound && i < inner.g->count; i++) {
    const struct node *n = inner.g->nodes[i];
    if (v->g->stage != STAGE_SOURCE && type_is_symbolic(&n->type))
      verify_breach(&inner, n, "the type still depends on B");
    if (v->g->stage < op_of(n)->since)
      verify_breach(&inner, n, "there is no %s before the stage %s", op_of(n)->name,
                    text_stages[op_of(n)->since]);
    if (n->dist != DIST_NONE || n->tower >= 0 || n->replica >= 0 || n->pack)
      verify_breach(&inner, n, "the body of a scan says nothing of towers");
    if (v->g->stage == STAGE_FUSED ? n->device != scan->device : n->device >= 0)
      verify_breach(&inner, n, "the body of a scan runs where the scan does");
    if (n->op == OP_fused && node_attr(n, ATTR_body)) check_body(&inner, n);
    if (n->op == OP_scan && node_attr(n, ATTR_body)) check_loop(&inner, n);
  }
  v->ok = v->ok && sound && inner.ok;
}

static void verify_graph(struct verify *v) {
  if ((unsigned)v->g->stage > STAGE_FUSED) {
    verify_breach(v, NULL, "the graph %s has no stage", v->g->name);
    return;
  }
  if (!check_nodes(v)) return;
  check_outputs(v);
  for (uint32_t i = 0; i < v->g->count; i++) {
    const struct node *n = v->g->nodes[i];
    check_stage(v, n);
    if (n->op == OP_fused && node_attr(n, ATTR_body)) check_body(v, n);
    if (n->op == OP_scan && node_attr(n, ATTR_body)) check_loop(v, n);
  }
  if (!v->ok) return; /* what follows trusts arity, operands and types */
  const struct node *excess = graph_excess(v->g);
  if (excess) verify_breach(v, excess, "the values up to here need more than 2^60 bytes");
  check_writers(v);
  if (v->g->stage >= STAGE_REPLICATED) verify_towers(v);
  if (v->g->stage >= STAGE_PLACED) verify_placement(v);
}

bool graph_verify(const struct graph *g, const char *after, struct diags *d) {
  struct arena_guard guard;
  struct verify v = {.arena = arena_create_guarded(&guard), .g = g, .after = after, .diags = d, .ok = true};
  verify_graph(&v);
  arena_destroy_guarded(v.arena, &guard);
  return v.ok;
}
