/* SPDX-License-Identifier: Apache-2.0 */
/* Graph text: one node a line, in creation order. docs/graph.md has the grammar. */
#include "base/bits.h"
#include "ir/graph/text.h"
#include "ir/ops/op.h"

#include <string.h>

const char *const text_stages[4] = {
    [STAGE_SOURCE] = "source",
    [STAGE_REPLICATED] = "replicated",
    [STAGE_PLACED] = "placed",
    [STAGE_FUSED] = "fused",
};

const char *const text_roles[OUTPUT_ROLES] = {
    [OUTPUT_LOSS] = "loss",       [OUTPUT_METRIC] = "metric",   [OUTPUT_TOTAL] = "total",
    [OUTPUT_MAXIMUM] = "maximum", [OUTPUT_MINIMUM] = "minimum", [OUTPUT_SAME] = "same",
    [OUTPUT_PREDICT] = "predict", [OUTPUT_VALUE] = "value",     [OUTPUT_UPDATE] = "update",
    [OUTPUT_SEND] = "send",       [OUTPUT_HELD] = "held",
};

bool text_is_backward(const char *name) {
  if (!strstr(name, "grad")) return false; /* most are told by one look */
  for (const char *p = name; (p = strstr(p, ".grad")); p += 5)
    if (!p[5] || p[5] == '.' || p[5] == '/') return true;
  return strstr(name, TEXT_GRADIENT_SUM) != NULL;
}

const char *text_gradient_of(struct arena *a, const char *name) {
  static const char end[] = ".grad", begin[] = TEXT_GRADIENT_SUM;
  size_t len = strlen(name), more = sizeof end - 1;
  if (strncmp(name, begin, sizeof begin - 1) == 0) return arena_strdup(a, name + sizeof begin - 1);
  const char *of =
      len > more && strcmp(name + len - more, end) == 0 ? arena_strndup(a, name, len - more) : NULL;
  return of && !text_is_backward(of) ? of : NULL;
}

const char *text_entry(const char *graph) {
  const char *dot = strrchr(graph, '.');
  return dot && dot[1] ? dot + 1 : graph;
}

const char *text_model(struct arena *a, const char *graph) {
  const char *dot = strrchr(graph, '.');
  return dot ? arena_strndup(a, graph, (size_t)(dot - graph)) : graph;
}

/* A table, as each character of each name is looked at. */
bool text_is_word(char c) {
  static const bool word[256] = {
      ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['-' ... '9'] = true, /* - . / and digits */
      ['_'] = true,         ['#'] = true,         ['['] = true,         [']'] = true, ['\''] = true,
  };
  return word[(unsigned char)c];
}

void text_print_string(struct str *s, const char *text, size_t len) {
  str_putc(s, '"');
  for (size_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c == '"' || c == '\\')
      str_printf(s, "\\%c", c);
    else if (c == '\n')
      str_put(s, "\\n");
    else if (c < ' ' || c == 0x7f)
      str_printf(s, "\\x%02x", c);
    else
      str_putc(s, (char)c);
  }
  str_putc(s, '"');
}

/* Of a name that is printed as it is; 0: of others. */
static size_t word_length(const char *text) {
  size_t len = 0;
  while (text_is_word(text[len])) len++;
  return *text == '#' || text[len] ? 0 : len;
}

void text_print_name(struct str *s, const char *text) {
  size_t len = word_length(text);
  if (len)
    str_putn(s, text, len);
  else
    text_print_string(s, text, strlen(text));
}

/* A NaN other than the usual one keeps its bits: nan(0xffc00000). */
static void print_f64(struct str *s, double value) {
  uint64_t bits = f64_bits(value);
  if (value != value && bits != UINT64_C(0x7ff8000000000000))
    str_printf(s, "nan(0x%016llx)", (unsigned long long)bits);
  else
    str_double(s, value);
}

/* The parser reads an f64 and rounds it: where that would not give `value` back, more digits are printed. */
static void print_f32(struct str *s, float value) {
  uint32_t bits = f32_bits(value);
  if (value != value && bits != UINT32_C(0x7fc00000)) {
    str_printf(s, "nan(0x%08x)", bits);
    return;
  }
  size_t before = s->len;
  str_float(s, value);
  const char *end;
  if (value != value || (float)str_to_double(s->data + before, &end) == value) return;
  s->len = before;
  str_double(s, (double)value);
}

void text_print_element(struct str *s, enum dtype d, const void *data, int64_t index) {
  switch (d) {
  case DT_F32: print_f32(s, ((const float *)data)[index]); return;
  case DT_F64: print_f64(s, ((const double *)data)[index]); return;
  case DT_I32: str_int(s, ((const int32_t *)data)[index]); return;
  case DT_I64: str_int(s, ((const int64_t *)data)[index]); return;
  case DT_U8: str_int(s, ((const uint8_t *)data)[index]); return;
  case DT_BOOL: str_put(s, ((const uint8_t *)data)[index] ? "true" : "false"); return;
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: return;
  }
}

/* One value when all elements have the same bits, else all of them, row-major. */
static void print_data(struct str *s, const struct node *n, const struct attr *attr) {
  enum dtype d = (enum dtype)n->type.dtype;
  const char *data = attr->data;
  int size = dtype_size(d), count = attr->count / size;
  bool splat = count > 0 && memcmp(data, data + size, (size_t)(count - 1) * (size_t)size) == 0;
  if (splat) {
    text_print_element(s, d, data, 0);
    return;
  }
  str_putc(s, '[');
  for (int i = 0; i < count; i++) {
    if (i) str_put(s, ", ");
    text_print_element(s, d, data, i);
  }
  str_putc(s, ']');
}

static void print_attr(struct str *s, const struct node *n, const struct attr *attr) {
  str_put(s, attr_name(attr->key));
  str_putc(s, '=');
  switch (attr_kind_of(attr->key)) {
  case ATTR_INT: str_int(s, attr->i); return;
  case ATTR_FLOAT: print_f64(s, attr->f); return;
  case ATTR_STRING: text_print_string(s, attr->string, strlen(attr->string)); return;
  case ATTR_DATA: print_data(s, n, attr); return;
  case ATTR_INTS:
    str_putc(s, '[');
    for (int i = 0; i < attr->count; i++) {
      if (i) str_put(s, ", ");
      str_int(s, attr->ints[i]);
    }
    str_putc(s, ']');
    return;
  case ATTR_BODY: return;
  }
}

static struct graph *node_body(const struct node *n) {
  for (int i = 0; i < n->nattrs; i++)
    if (attr_kind_of(n->attrs[i].key) == ATTR_BODY) return n->attrs[i].body;
  return NULL;
}

static bool is_blank(char c) { return (unsigned char)c <= ' ' || c == 0x7f; }

const char *text_comment(struct arena *a, const char *text, size_t len) {
  while (len && is_blank(*text)) text++, len--;
  while (len && is_blank(text[len - 1])) len--;
  if (!len) return NULL;
  char *line = arena_copy(a, text, len + 1);
  line[len] = 0;
  for (size_t i = 0; i < len; i++)
    if (is_blank(line[i])) line[i] = ' ';
  return line;
}

/* The origins printed last, as the nodes of a line come in a row, and those of several towers. */
enum { ORIGINS = 64 };
struct printed_origin {
  struct loc loc;
  const struct trail *trail;
  const char *text;
};

/* As a comment has it. */
static const char *origin_comment(struct arena *a, const struct node *n) {
  const char *origin = node_origin(a, n);
  return origin ? text_comment(a, origin, strlen(origin)) : NULL;
}

static const char *origin_of(struct arena *a, struct printed_origin *last, const struct node *n) {
  if (n->origin || !n->loc.source) return origin_comment(a, n);
  struct printed_origin *o = &last[(n->loc.begin ^ (uintptr_t)n->trail >> 4) % ORIGINS];
  if (o->loc.source != n->loc.source || o->loc.begin != n->loc.begin || o->trail != n->trail)
    *o = (struct printed_origin){n->loc, n->trail, origin_comment(a, n)};
  return o->text;
}

/* Appends it as text_comment has it. Returns whether there is anything. */
static bool put_comment(struct str *s, const char *before, const char *text) {
  while (*text && is_blank(*text)) text++;
  size_t len = strlen(text);
  while (len && is_blank(text[len - 1])) len--;
  if (!len) return false;
  str_put(s, before);
  str_putn(s, text, len);
  for (char *p = s->data + s->len - len; *p; p++)
    if (is_blank(*p)) *p = ' ';
  return true;
}

static void print_comment(struct str *s, const struct node *n, struct printed_origin *origins) {
  const char *why = reason_text(s->arena, n->why);
  bool any = why && put_comment(s, "  # ", why);
  const char *origin = origins ? origin_of(s->arena, origins, n) : NULL;
  if (!origin) return;
  str_put(s, any ? ", " : "  # ");
  str_put(s, origin);
}

static void print_device(struct str *s, const struct graph *g, int device) {
  if (device >= 0 && device < g->config.target.ndevices)
    str_put(s, g->config.target.devices[device].text);
  else
    str_printf(s, "?%d", device);
}

/* What is printed of a node beside its own line. */
struct printed {
  bool body;
  struct printed_origin *origins; /* NULL: none */
  size_t *lengths; /* of the names that are words, by node, as far as they are known; NULL: of none */
  int indent;
};
static void print_node(struct str *s, const struct graph *g, const struct node *n, struct printed p);

static void print_indent(struct str *s, int indent) {
  for (int i = 0; i < indent; i++) str_putc(s, ' ');
}

static void print_contents(struct str *s, const struct graph *g, int indent, struct printed_origin *origins) {
  size_t *lengths = arena_new_array(s->arena, g->count, size_t);
  for (uint32_t i = 0; i < g->count; i++) {
    print_indent(s, indent);
    print_node(s, g, g->nodes[i], (struct printed){true, origins, lengths, indent});
    str_putc(s, '\n');
  }
  for (int i = 0; i < g->noutputs; i++) {
    const struct output *o = &g->outputs[i];
    print_indent(s, indent);
    str_put(s, text_roles[o->role]);
    str_putc(s, ' ');
    if (o->name && strcmp(o->name, o->node->name) != 0) {
      text_print_name(s, o->name);
      str_put(s, " = ");
    }
    text_print_name(s, o->node->name);
    if (o->count) {
      str_put(s, " / ");
      dim_print(s, o->count);
    }
    str_putc(s, '\n');
  }
}

/* Where the name does not tell. */
static void print_gradient_of(struct str *s, const struct node *n) {
  const char *told = n->backward ? text_gradient_of(s->arena, n->name) : NULL, *is = n->gradient_of;
  if (told == is || (told && is && strcmp(told, is) == 0)) return;
  str_put(s, " gradient ");
  text_print_string(s, is ? is : "", is ? strlen(is) : 0);
}

static void print_number(struct str *s, const char *word, int number) {
  str_put(s, word);
  str_int(s, number);
}

/* As text_print_name, which looks at each character. */
static void print_name(struct str *s, const struct node *n, const struct printed *p) {
  if (!p->lengths) {
    text_print_name(s, n->name ? n->name : "");
    return;
  }
  size_t *len = &p->lengths[n->id];
  if (!*len) *len = word_length(n->name);
  if (*len)
    str_putn(s, n->name, *len);
  else
    text_print_string(s, n->name, strlen(n->name));
}

static void print_node(struct str *s, const struct graph *g, const struct node *n, struct printed p) {
  print_name(s, n, &p);
  str_put(s, " = ");
  str_put(s, op_of(n)->name);
  for (int i = 0; i < n->ninputs; i++) {
    str_put(s, i ? ", " : " ");
    print_name(s, n->inputs[i], &p);
  }
  const char *before = " {";
  for (int i = 0; i < n->nattrs; i++) {
    if (attr_kind_of(n->attrs[i].key) == ATTR_BODY) continue;
    str_put(s, before);
    print_attr(s, n, &n->attrs[i]);
    before = ", ";
  }
  if (*before == ',') str_putc(s, '}');
  str_put(s, " : ");
  type_print(s, &n->type);
  if (n->dist != DIST_NONE) str_putc(s, ' '), str_put(s, dist_name(n->dist));
  if (n->tower >= 0) print_number(s, " tower ", n->tower);
  if (n->replica >= 0) print_number(s, " replica ", n->replica);
  if (n->pack) print_number(s, " pack ", n->pack - 1);
  if (n->backward != text_is_backward(n->name)) str_put(s, n->backward ? " backward" : " forward");
  if (g->stage == STAGE_SOURCE) print_gradient_of(s, n);
  if (n->want) {
    str_put(s, " want ");
    text_print_string(s, n->want, strlen(n->want));
  }
  if (n->device >= 0) {
    str_put(s, " on ");
    print_device(s, g, n->device);
  }
  const struct graph *body = p.body ? node_body(n) : NULL;
  if (body) str_put(s, " {");
  print_comment(s, n, p.origins);
  if (body) {
    str_putc(s, '\n');
    print_contents(s, body, p.indent + 2, p.origins);
    print_indent(s, p.indent);
    str_putc(s, '}');
  }
}

void node_print(struct str *s, const struct graph *g, const struct node *n) {
  struct printed_origin origins[ORIGINS];
  memset(origins, 0, sizeof origins);
  print_node(s, g, n, (struct printed){.origins = origins});
}

static void print_devices(struct str *s, const struct target *t) {
  const int *usual = target_usual_memories(s->arena, t);
  str_put(s, "  devices");
  for (int i = 0; i < t->ndevices; i++) {
    str_printf(s, " %s", t->devices[i].text);
    int memory = t->devices[i].memory; /* mostly the number of its first device */
    int first = memory >= 0 && memory <= i && t->devices[memory].memory == memory ? memory : 0;
    while (t->devices[first].memory != memory) first++;
    if (first != usual[i]) str_printf(s, "@%s", t->devices[first].text);
    if (t->devices[i].simulated) str_put(s, "(simulated)");
    if (t->devices[i].no_towers) str_put(s, "(storage)");
  }
  str_putc(s, '\n');
}

static void print_quoted(struct str *s, const char *text) { text_print_string(s, text, strlen(text)); }

static void print_option(struct str *s, const char *key, const char *value,
                         void (*print)(struct str *, const char *)) {
  if (!value) return;
  str_printf(s, "  %s ", key);
  print(s, value);
  str_putc(s, '\n');
}

static void print_graph(struct str *s, const struct graph *g, bool origins) {
  const struct config *c = &g->config;
  str_put(s, "graph ");
  text_print_name(s, g->name ? g->name : "");
  str_printf(s, " {\n  stage %s\n", text_stages[g->stage]);
#define NUMBER(type, name, most) \
  if (c->name) str_printf(s, "  " #name " %lld\n", (long long)c->name);
#define WORD(name) print_option(s, #name, c->name, text_print_name);
#define TEXT(name) print_option(s, #name, c->name, print_quoted);
#define FLAG(name) \
  if (c->name) str_put(s, "  " #name "\n");
#include "ir/graph/config.def"
  if (c->target.ndevices) print_devices(s, &c->target);
  for (int i = 0; i < c->nhomes; i++) {
    print_option(s, "home", c->homes[i].variable, text_print_name);
    s->len--; /* the line goes on */
    str_printf(s, " %s\n", c->homes[i].device);
  }
  print_contents(s, g, 2, origins ? arena_new_array(s->arena, ORIGINS, struct printed_origin) : NULL);
  str_put(s, "}\n");
}

void graph_print(struct str *s, const struct graph *g) { print_graph(s, g, true); }

void graph_print_without_origins(struct str *s, const struct graph *g) { print_graph(s, g, false); }
