/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: functions, their arguments and results, and where each node comes from. */
#include "hlo/hlo.h"
#include "ir/ops/op_id.h"

#include "hlo/rules.h"
#include "ir/graph/text.h"

#include <string.h>

/* ---- the table of rules ---- */

#define NATIVE(op, operation) static const struct hlo_rule rule_##op = {.native = operation};
#define SCALAR(op)            static const struct hlo_rule rule_##op = {.scalar = true};
#define EMIT(op)              static const struct hlo_rule rule_##op = {.emit = hlo_##op};
#define REFUSED(op, why)      static const struct hlo_rule rule_##op = {.refused = why};
#include "hlo/rules.def"
#undef NATIVE
#undef SCALAR
#undef EMIT
#undef REFUSED

#define OP(name, spread) [OP_##name] = &rule_##name,
const struct hlo_rule *const hlo_rules[OP_COUNT] = {
#include "ir/ops/ops.def"
};
#undef OP

/* ---- nodes ---- */

static bool refuse(struct hlo *h, const struct node *n, const char *why) {
  diag_error(h->diags, n->loc, "%s cannot be written as StableHLO: %s", n->name, why);
  return false;
}

static struct hlo_value program(struct hlo *h, const struct node *n, const struct hlo_value *in) {
  struct sprog p = sprog_make(h->arena);
  struct type shape = hlo_type(h, n);
  sval operands[3] = {0};
  for (int i = 0; i < n->ninputs && i < 3; i++) operands[i] = s_arg(&p, i, (enum dtype)in[i].type.dtype);
  sval result = op_of(n)->scalar(&p, n, operands);
  sprog_order(&p, &result, 1);
  return hlo_program(h, &p, result, &shape, in);
}

static bool plain_node(struct hlo *h, const struct node *n, const struct hlo_value *in,
                       struct hlo_value *out) {
  const struct hlo_rule *rule = hlo_rules[n->op];
  struct type t = hlo_type(h, n);
  if (rule->refused) return refuse(h, n, rule->refused);
  if (rule->emit) return rule->emit(h, n, in, out);
  if (rule->scalar)
    *out = program(h, n, in);
  else if (type_equal(&t, &in[0].type))
    *out = n->ninputs == 1 ? hlo_unary(h, rule->native, in[0]) : hlo_binary(h, rule->native, in[0], in[1]);
  else
    *out = hlo_op(h, rule->native, &t, n->ninputs, in, NULL, NULL);
  return true;
}

/* A fused node's body, in its place; all results. */
static bool body(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value **out) {
  const struct graph *g = node_attr(n, ATTR_body)->body;
  struct hlo_value **values = arena_new_array(h->arena, g->count + 1, struct hlo_value *);
  for (uint32_t i = 0, next = 0; i < g->count; i++)
    if (g->nodes[i]->op == OP_input) values[i] = arena_copy(h->arena, &in[next++], sizeof *in);
  if (!hlo_nodes(h, g, graph_live(h->arena, g), values)) return false;
  *out = arena_new_array(h->arena, (size_t)g->noutputs, struct hlo_value);
  for (int i = 0; i < g->noutputs; i++) (*out)[i] = *values[g->outputs[i].node->id];
  return true;
}

bool hlo_nodes(struct hlo *h, const struct graph *g, const uint8_t *live, struct hlo_value **values) {
  int place = h->place;
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (!live[i] || values[i]) continue;
    struct hlo_value *in = arena_new_array(h->arena, (size_t)n->ninputs + 1, struct hlo_value);
    for (int k = 0; k < n->ninputs; k++)
      if (values[n->inputs[k]->id]) in[k] = *values[n->inputs[k]->id]; /* not those of other devices */
    if (g == h->graph) h->place = place + (int)i;                      /* a body is where its node is */
    if (n->op == OP_fused || n->op == OP_scan) {
      if (!(n->op == OP_scan ? hlo_loop : body)(h, n, in, &values[i])) return false;
      continue;
    }
    values[i] = n->op == OP_output ? &values[n->inputs[0]->id][node_int(n, ATTR_index)]
                                   : arena_new(h->arena, struct hlo_value);
    if (n->op != OP_output && !plain_node(h, n, in, values[i])) return false;
  }
  h->place = place;
  return true;
}

/* ---- where nodes come from ---- */

/* "name"("digits.dsl":9:0) for the user's line of "digits.dsl:9 (nn.dense, nn.dsl:7)". */
static void print_place(struct str *s, struct arena *a, const struct node *n) {
  const char *file;
  int line;
  hlo_print_string(s, n->name);
  if (!origin_place(a, node_origin(a, n), &file, &line)) return;
  str_putc(s, '(');
  hlo_print_string(s, file);
  str_printf(s, ":%d:0)", line);
}

static void print_places(struct str *s, struct arena *a, const struct graph *g, const uint8_t *live,
                         int first) {
  for (uint32_t i = 0; i < g->count; i++) {
    if (!live[i]) continue;
    str_printf(s, "#loc%u = loc(", (unsigned)first + i);
    print_place(s, a, g->nodes[i]);
    str_put(s, ")\n");
  }
}

/* ---- functions ---- */

static bool has_value(enum output_role role) { return role != OUTPUT_UPDATE && role != OUTPUT_SEND; }

/* An argument or a result: what it is, of what name, and the result that may have its memory; -1: none. */
static void print_attrs(struct str *s, const char *role, const char *name, int result) {
  str_printf(s, " {dgc.role = \"%s\", dgc.name = ", role);
  hlo_print_string(s, name);
  if (result >= 0) str_printf(s, ", tf.aliasing_output = %d : i32", result);
  str_putc(s, '}');
}

/* A function that is being written, as a whole. */
struct writing {
  struct hlo h;
  const struct hlo_function *f;
  const uint8_t *live;
  struct hlo_value **values;
  const struct node **assigned; /* by variable */
  struct hlo_ports ports;
};

/* Whether it takes the input or variable as an argument. */
static bool is_argument(const struct writing *w, const struct node *n, enum op_id op) {
  return n->op == op && (!w->h.replicas || w->live[n->id]);
}

/* The number of the result that is the variable's new value; -1: none is. */
static int result_of(const struct writing *w, const struct node *variable) {
  const struct graph *g = w->h.graph;
  int count = 0;
  if (!w->assigned[variable->id]) return -1;
  for (int i = 0; i < g->noutputs; i++) count += has_value(g->outputs[i].role);
  for (uint32_t i = 0; i < variable->id; i++) count += w->assigned[i] != NULL;
  return count;
}

static struct type argument_type(const struct writing *w, const struct node *n) {
  struct type t = hlo_type(&w->h, n);
  if (w->h.replicas && w->h.replicas->split[n->id]) t.dim[0] /= w->h.replicas->devices;
  return t;
}

static void note_argument(struct writing *w, const struct node *n, const struct type *t) {
  const struct hlo_replicas *r = w->h.replicas;
  int devices = r ? r->devices : 1, count = w->ports.narguments++;
  w->ports.arguments[count] = (struct hlo_port){.node = n, .type = *t, .split = r && r->split[n->id]};
  for (int k = 0; k < devices; k++) {
    const struct node *own = k ? r->others[(size_t)(k - 1) * r->count + n->id] : n;
    w->ports.copies[count * devices + k] = own ? own : n;
  }
}

static void arguments(struct writing *w, enum op_id op) {
  struct hlo *h = &w->h;
  for (uint32_t i = 0; i < h->graph->count; i++) {
    const struct node *n = h->graph->nodes[i];
    if (!is_argument(w, n, op)) continue;
    struct type t = argument_type(w, n);
    w->values[i] = arena_new(h->arena, struct hlo_value);
    *w->values[i] = (struct hlo_value){-1 - w->ports.narguments, t};
    str_put(h->out, w->ports.narguments ? ", " : "");
    hlo_print_value(h->out, *w->values[i]);
    str_printf(h->out, ": %s", hlo_type_text(h->arena, &t));
    print_attrs(h->out, op_of(n)->name, n->name, w->f->ports ? result_of(w, n) : -1);
    str_printf(h->out, " loc(#loc%u)", (unsigned)h->place + i);
    note_argument(w, n, &t);
  }
}

struct results {
  struct hlo_value *values;
  int count;
};

static void put_result(struct writing *w, struct results *r, const char *role, const char *name,
                       struct hlo_value v, struct hlo_port port) {
  struct hlo *h = &w->h;
  str_printf(h->out, "%s%s", r->count ? ", " : "", hlo_type_text(h->arena, &v.type));
  print_attrs(h->out, role, name, -1);
  port.type = v.type;
  w->ports.results[r->count] = port;
  r->values[r->count++] = v;
}

/* Whether the output is rows that stay where they are. */
static bool is_own_rows(const struct writing *w, const struct output *o) {
  return w->h.replicas && has_value(o->role) && o->node->op == OP_all_gather;
}

/* By output, where it is rows of the device's own towers. */
static struct hlo_value *own_rows(struct writing *w) {
  struct hlo *h = &w->h;
  const struct graph *g = h->graph;
  struct hlo_value *rows = arena_new_array(h->arena, (size_t)g->noutputs + 1, struct hlo_value);
  for (int i = 0; i < g->noutputs; i++) {
    const struct node *n = g->outputs[i].node;
    if (!is_own_rows(w, &g->outputs[i])) continue;
    struct hlo_value *in = arena_new_array(h->arena, (size_t)h->replicas->towers, struct hlo_value);
    for (int k = 0; k < h->replicas->towers; k++) in[k] = *w->values[n->inputs[k]->id];
    rows[i] = hlo_own_rows(h, n, in);
  }
  return rows;
}

/* The types of results stand in front of what computes them: types are known, so they are printed first. */
static struct results results(struct writing *w, const struct hlo_value *rows) {
  struct hlo *h = &w->h;
  const struct graph *g = h->graph;
  struct results r = {arena_new_array(h->arena, g->count + (size_t)g->noutputs + 1, struct hlo_value), 0};
  w->ports.results = arena_new_array(h->arena, g->count + (size_t)g->noutputs + 1, struct hlo_port);
  str_put(h->out, ") -> (");
  for (int i = 0; i < g->noutputs; i++) {
    const struct output *o = &g->outputs[i];
    bool split = is_own_rows(w, o);
    if (has_value(o->role))
      put_result(w, &r, text_roles[o->role], o->name, split ? rows[i] : *w->values[o->node->id],
                 (struct hlo_port){.output = o, .split = split});
  }
  for (uint32_t i = 0; i < g->count; i++)
    if (w->assigned[i])
      put_result(w, &r, "variable", g->nodes[i]->name, *w->values[w->assigned[i]->id],
                 (struct hlo_port){.node = g->nodes[i]});
  str_put(h->out, ") {\n");
  w->ports.nresults = r.count;
  return r;
}

static void print_return(struct hlo *h, const struct results *r) {
  str_put(h->out, "    return");
  for (int i = 0; i < r->count; i++) {
    str_put(h->out, i ? ", " : " ");
    hlo_print_value(h->out, r->values[i]);
  }
  for (int i = 0; i < r->count; i++)
    str_printf(h->out, "%s%s", i ? ", " : " : ", hlo_type_text(h->arena, &r->values[i].type));
  str_put(h->out, "\n  }\n");
}

/* A type that still depends on the batch. */
static const struct node *symbolic(const struct hlo *h, const uint8_t *live) {
  for (uint32_t i = 0; i < h->graph->count && !h->batch; i++) {
    const struct node *n = h->graph->nodes[i];
    bool asked = n->op == OP_batch_size && !node_attr(n, ATTR_batch);
    if ((live[i] || op_of(n)->traits & OP_EXTERNAL) && (asked || type_is_symbolic(&n->type))) return n;
  }
  return NULL;
}

static bool needs_batch(struct hlo *h, const uint8_t *live) {
  const struct node *open = symbolic(h, live);
  if (!open) return false;
  diag_error(h->diags, open->loc, "%s depends on the batch, and StableHLO needs its size", open->name);
  diag_help(h->diags, LOC_NONE, "give --batch N");
  return true;
}

/* What is written of the graph. NULL after an error. */
static uint8_t *find_live(struct writing *w) {
  struct hlo *h = &w->h;
  const struct graph *g = h->graph;
  if (w->f->devices > 1) {
    h->replicas = hlo_replicas(h->arena, g, w->f->devices, h->diags);
    return h->replicas ? h->replicas->live : NULL;
  }
  uint8_t *live = graph_live(h->arena, g);
  if (needs_batch(h, live)) return NULL;
  for (uint32_t i = 0; i < g->count; i++) live[i] |= (op_of(g->nodes[i])->traits & OP_EXTERNAL) != 0;
  return live;
}

static void find_assigned(struct writing *w) {
  const struct graph *g = w->h.graph;
  w->assigned = arena_new_array(w->h.arena, g->count + 1, const struct node *);
  for (uint32_t i = 0; i < g->count; i++)
    if (w->live[i] && g->nodes[i]->op == OP_assign) w->assigned[g->nodes[i]->inputs[0]->id] = g->nodes[i];
}

static bool function(struct str *s, struct arena *a, const struct hlo_function *f, int *places,
                     struct str *locs, struct diags *d) {
  const struct graph *g = f->graph;
  struct str head = str_make(a), text = str_make(a);
  struct writing w = {.f = f, .h = {.arena = a, .out = &head, .graph = g, .place = *places, .diags = d}};
  w.h.batch = g->config.batch ? g->config.batch : f->batch;
  w.live = find_live(&w);
  if (!w.live) return false;
  find_assigned(&w);
  w.values = arena_new_array(a, g->count + 1, struct hlo_value *);
  w.ports.arguments = arena_new_array(a, g->count + 1, struct hlo_port);
  w.ports.copies =
      arena_new_array(a, (g->count + 1) * (size_t)(f->devices > 1 ? f->devices : 1), const struct node *);
  str_put(&head, "  func.func public @");
  hlo_print_string(&head, f->name);
  str_putc(&head, '(');
  arguments(&w, OP_input);
  arguments(&w, OP_variable);
  w.h.out = &text;
  if (!hlo_nodes(&w.h, g, w.live, w.values)) return false;
  const struct hlo_value *rows = own_rows(&w);
  w.h.out = &head;
  struct results r = results(&w, rows);
  str_putn(&head, text.data, text.len);
  print_return(&w.h, &r);
  str_putn(s, head.data, head.len);
  print_places(locs, a, g, w.live, *places);
  *places += (int)g->count;
  if (f->ports) *f->ports = w.ports;
  return true;
}

bool hlo_print(struct str *s, const char *name, const struct hlo_function *functions, int count,
               struct diags *d) {
  struct str locs = str_make(s->arena);
  int places = 0;
  str_put(s, "module @");
  hlo_print_string(s, name);
  str_put(s, " {\n");
  for (int i = 0; i < count; i++)
    if (!function(s, s->arena, &functions[i], &places, &locs, d)) return false;
  str_put(s, "}\n");
  str_putn(s, locs.data, locs.len);
  return true;
}
