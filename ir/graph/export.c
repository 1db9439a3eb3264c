/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs for other tools: Graphviz and JSON. Neither is read back. */
#include "ir/graph/text.h"
#include "ir/ops/op.h"

#include <math.h>
#include <string.h>

/* ---- dot ---- */

static void dot_node(struct str *s, const struct graph *g, const struct node *n) {
  struct str label = str_make(s->arena);
  str_printf(&label, "%s\n%s : ", n->name, op_of(n)->name);
  type_print(&label, &n->type);
  if (n->dist != DIST_NONE) str_printf(&label, " %s", dist_name(n->dist));
  if (n->device >= 0) str_printf(&label, "\non %s", g->config.target.devices[n->device].text);
  const char *shape = op_of(n)->kind == KIND_SOURCE                                  ? "ellipse"
                      : op_of(n)->kind == KIND_META || op_of(n)->kind == KIND_EFFECT ? "hexagon"
                                                                                     : "box";
  str_printf(s, "  n%u [shape=%s, label=", n->id, shape);
  text_print_string(s, label.data, label.len);
  /* One hue a device, evenly around the circle. */
  if (n->device >= 0)
    str_printf(s, ", style=filled, fillcolor=\"0.%03d 0.2 1.0\"",
               n->device * 1000 / g->config.target.ndevices);
  str_put(s, "];\n");
  for (int i = 0; i < n->ninputs; i++) str_printf(s, "  n%u -> n%u;\n", n->inputs[i]->id, n->id);
}

void graph_print_dot(struct str *s, const struct graph *g) {
  str_put(s, "digraph ");
  text_print_string(s, g->name, strlen(g->name));
  str_put(s, " {\n  node [fontname=\"monospace\"];\n");
  for (uint32_t i = 0; i < g->count; i++) dot_node(s, g, g->nodes[i]);
  for (int i = 0; i < g->noutputs; i++) {
    const struct output *o = &g->outputs[i];
    str_printf(s, "  out%d [shape=plaintext, label=", i);
    const char *label = arena_printf(s->arena, "%s %s", text_roles[o->role], o->name);
    text_print_string(s, label, strlen(label));
    str_printf(s, "];\n  n%u -> out%d;\n", o->node->id, i);
  }
  str_put(s, "}\n");
}

/* ---- JSON ---- */

/* The length of the UTF-8 sequence at `p`, 0 if it is none. */
static int utf8_length(const char *p) {
  const unsigned char *u = (const unsigned char *)p;
  int n = u[0] < 0x80                   ? 1
          : u[0] >= 0xc2 && u[0] < 0xe0 ? 2
          : (u[0] & 0xf0) == 0xe0       ? 3
          : u[0] >= 0xf0 && u[0] < 0xf5 ? 4
                                        : 0;
  for (int i = 1; i < n; i++)
    if ((u[i] & 0xc0) != 0x80) return 0;
  bool surrogate_or_long = n == 3 && ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f));
  bool outside = n == 4 && ((u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f));
  return surrogate_or_long || outside ? 0 : n;
}

void text_print_json(struct str *s, const char *text) {
  str_putc(s, '"');
  while (*text) {
    int n = utf8_length(text);
    unsigned char c = (unsigned char)*text;
    if (n == 0)
      str_put(s, "\\ufffd");
    else if (c < ' ' || c == 0x7f)
      str_printf(s, "\\u%04x", c);
    else if (c == '"' || c == '\\')
      str_printf(s, "\\%c", c);
    else
      str_putn(s, text, (size_t)n);
    text += n ? n : 1;
  }
  str_putc(s, '"');
}

static void json_field(struct str *s, const char *key, const char *value) {
  if (!value) return;
  str_printf(s, ", \"%s\": ", key);
  text_print_json(s, value);
}

/* inf and nan have no JSON: they become strings. */
static void json_double(struct str *s, double value) {
  if (!isfinite(value)) str_putc(s, '"');
  str_double(s, value);
  if (!isfinite(value)) str_putc(s, '"');
}

static void json_data(struct str *s, const struct node *n, const struct attr *attr) {
  enum dtype d = (enum dtype)n->type.dtype;
  int count = attr->count / dtype_size(d);
  str_putc(s, '[');
  for (int i = 0; i < count; i++) {
    if (i) str_put(s, ", ");
    double f = d == DT_F32   ? (double)((const float *)attr->data)[i]
               : d == DT_F64 ? ((const double *)attr->data)[i]
                             : 0;
    if (isfinite(f))
      text_print_element(s, d, attr->data, i);
    else
      json_double(s, f);
  }
  str_putc(s, ']');
}

static void json_contents(struct str *s, const struct graph *g, int indent);

static void json_attr(struct str *s, const struct node *n, const struct attr *attr, int indent) {
  str_printf(s, "\"%s\": ", attr_name(attr->key));
  switch (attr_kind_of(attr->key)) {
  case ATTR_INT: str_printf(s, "%lld", (long long)attr->i); return;
  case ATTR_FLOAT: json_double(s, attr->f); return;
  case ATTR_STRING: text_print_json(s, attr->string); return;
  case ATTR_DATA: json_data(s, n, attr); return;
  case ATTR_INTS:
    str_putc(s, '[');
    for (int i = 0; i < attr->count; i++) str_printf(s, i ? ", %lld" : "%lld", (long long)attr->ints[i]);
    str_putc(s, ']');
    return;
  case ATTR_BODY:
    str_put(s, "{\n");
    json_contents(s, attr->body, indent + 4);
    str_printf(s, "%*s}", indent + 2, "");
    return;
  }
}

static void json_node(struct str *s, const struct graph *g, const struct node *n, int indent) {
  str_printf(s, "%*s{\"id\": %u", indent, "", n->id);
  json_field(s, "name", n->name);
  json_field(s, "op", op_of(n)->name);
  str_put(s, ", \"inputs\": [");
  for (int i = 0; i < n->ninputs; i++) str_printf(s, i ? ", %u" : "%u", n->inputs[i]->id);
  str_put(s, "], \"attrs\": {");
  for (int i = 0; i < n->nattrs; i++) {
    if (i) str_put(s, ", ");
    json_attr(s, n, &n->attrs[i], indent);
  }
  str_printf(s, "}, \"type\": \"%s\"", type_text(s->arena, &n->type));
  if (n->dist != DIST_NONE) json_field(s, "dist", dist_name(n->dist));
  if (n->tower >= 0) str_printf(s, ", \"tower\": %d", n->tower);
  if (n->replica >= 0) str_printf(s, ", \"replica\": %d", n->replica);
  if (n->pack) str_printf(s, ", \"pack\": %d", n->pack - 1);
  json_field(s, "want", n->want);
  if (n->device >= 0) json_field(s, "device", g->config.target.devices[n->device].text);
  json_field(s, "why", reason_text(s->arena, n->why));
  json_field(s, "origin", node_origin(s->arena, n));
  str_putc(s, '}');
}

/* The fields "nodes" and "outputs" of an object. */
static void json_contents(struct str *s, const struct graph *g, int indent) {
  str_printf(s, "%*s\"nodes\": [", indent, "");
  for (uint32_t i = 0; i < g->count; i++) {
    str_put(s, i ? ",\n" : "\n");
    json_node(s, g, g->nodes[i], indent + 2);
  }
  str_printf(s, "\n%*s],\n%*s\"outputs\": [", indent, "", indent, "");
  for (int i = 0; i < g->noutputs; i++) {
    const struct output *o = &g->outputs[i];
    str_printf(s, "%s\n%*s{\"role\": \"%s\"", i ? "," : "", indent + 2, "", text_roles[o->role]);
    json_field(s, "name", o->name);
    str_printf(s, ", \"node\": %u, \"count\": ", o->node->id);
    if (o->count < 0) str_putc(s, '"');
    dim_print(s, o->count);
    if (o->count < 0) str_putc(s, '"');
    str_putc(s, '}');
  }
  str_printf(s, "\n%*s]\n", indent, "");
}

void graph_print_json(struct str *s, const struct graph *g) {
  const struct config *c = &g->config;
  str_put(s, "{\n  \"graph\": ");
  text_print_json(s, g->name);
  json_field(s, "stage", text_stages[g->stage]);
#define NUMBER(type, name, most) \
  if (c->name) str_printf(s, ", \"" #name "\": %lld", (long long)c->name);
#define WORD(name) json_field(s, #name, c->name);
#define TEXT(name) json_field(s, #name, c->name);
#define FLAG(name) str_printf(s, ", \"" #name "\": %s", c->name ? "true" : "false");
#include "ir/graph/config.def"
  str_put(s, ",\n  \"devices\": [");
  for (int i = 0; i < c->target.ndevices; i++) {
    const struct device *d = &c->target.devices[i];
    str_printf(s, "%s{\"name\": ", i ? ", " : "");
    text_print_json(s, d->text);
    str_printf(s, ", \"memory\": %d, \"simulated\": %s%s}", d->memory, d->simulated ? "true" : "false",
               d->no_towers ? ", \"storage\": true" : "");
  }
  str_put(s, "],\n");
  if (c->nhomes) str_put(s, "  \"homes\": {");
  for (int i = 0; i < c->nhomes; i++) {
    str_put(s, i ? ", " : "");
    text_print_json(s, c->homes[i].variable);
    str_put(s, ": ");
    text_print_json(s, c->homes[i].device);
  }
  if (c->nhomes) str_put(s, "},\n");
  json_contents(s, g, 2);
  str_put(s, "}\n");
}
