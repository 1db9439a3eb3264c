/* SPDX-License-Identifier: Apache-2.0 */
/* Reads graph text back: graphs, headers and node lines. docs/graph.md has the grammar, ir/graph/lex.c the characters.
 *
 * Nothing is folded or renamed here: a printed graph comes back node by node. After an error in a line the parser
 * goes on with the next one; names that such a line would have defined are known, so that they are not
 * reported as missing. */
#include "ir/graph/parse.h"
#include "ir/graph/build.h"
#include "ir/graph/lex.h"
#include "ir/graph/text.h"
#include "ir/ops/op_id.h"
#include "ir/ops/scan.h"

#include <limits.h>
#include <string.h>

/* Stands for a node whose line was wrong. */
static struct node broken;

struct text_parser {
  struct lex l;
  struct graph *g;   /* the graph whose lines are read: for a body, that of the fused node */
  struct map *names; /* of g */
  size_t data_bytes; /* of all constants so far */
  int bodies;        /* around this line */
  bool in_fused;     /* the innermost is that of a fused node */
  bool has_nodes;
  uint32_t seen;                /* header lines, by index */
  struct loc where[ATTR_COUNT]; /* of the node being read: its attributes */
};

static bool fail(struct text_parser *p, struct loc loc, const char *message) {
  diag_error(p->l.diags, loc, "%s", message);
  return false;
}

/* ---- parts of a node line ---- */

static bool parse_op(struct text_parser *p, enum op_id *out, struct loc *loc) {
  struct lexeme word = lex_word(&p->l);
  if (!word.text) return lex_expected(&p->l, "an op");
  *loc = word.loc;
  *out = op_lookup(word.text, word.len);
  if (*out != OP_COUNT) return true;
  diag_error(p->l.diags, word.loc, "there is no op '%s'", word.text);
  const char *names[OP_COUNT];
  for (int i = 0; i < OP_COUNT; i++) names[i] = op_table[i]->name;
  diag_closest(p->l.diags, LOC_NONE, word.text, names, OP_COUNT, NULL);
  return false;
}

/* The node that the next name stands for, or NULL after an error. */
static struct node *parse_reference(struct text_parser *p) {
  struct lexeme name = lex_name(&p->l);
  if (!name.text) {
    lex_expected(&p->l, "the name of a node");
    return NULL;
  }
  struct node *n = map_get(p->names, name.text);
  if (n) return n == &broken ? NULL : n;
  diag_error(p->l.diags, name.loc, "no node above is called '%s'", name.text);
  const char **names = arena_new_array(p->l.arena, p->names->count + 1, const char *);
  for (uint32_t i = 0; i < p->names->count; i++) names[i] = p->names->entries[i].key;
  diag_closest(p->l.diags, LOC_NONE, name.text, names, p->names->count, NULL);
  return NULL;
}

static bool parse_inputs(struct text_parser *p, struct node *n) {
  lex_blanks(&p->l);
  if (lex_line_end(&p->l) || *p->l.p == ':' || *p->l.p == '{') return true;
  int cap = 0;
  do {
    struct node *input = parse_reference(p);
    if (!input) return false;
    if (n->ninputs == cap) {
      cap = cap ? 2 * cap : 4;
      struct node **more = arena_new_array(p->l.arena, (size_t)cap, struct node *);
      if (n->ninputs) memcpy(more, n->inputs, sizeof *more * (size_t)n->ninputs);
      n->inputs = more;
    }
    n->inputs[n->ninputs++] = input;
  } while (lex_char(&p->l, ','));
  return true;
}

static bool parse_ints(struct text_parser *p, struct attr *a) {
  int64_t values[MAX_RANK];
  if (!lex_char(&p->l, '[')) return lex_expected(&p->l, "a list, like [0, 1]");
  if (!lex_char(&p->l, ']')) {
    do {
      if (a->count == MAX_RANK) return lex_expected(&p->l, "no more than 8 numbers");
      if (!lex_int(&p->l, &values[a->count++])) return lex_expected(&p->l, "an integer");
    } while (lex_char(&p->l, ','));
    if (!lex_char(&p->l, ']')) return lex_expected(&p->l, "',' or ']'");
  }
  a->ints = arena_copy(p->l.arena, values, sizeof *values * (size_t)a->count);
  return true;
}

/* Elements are read once the type is known: see parse_data. */
static bool skip_data(struct lex *l) {
  lex_blanks(l);
  bool list = l->p < l->end && *l->p == '[';
  while (l->p < l->end && *l->p != '\n' && (list ? *l->p != ']' : *l->p != ',' && *l->p != '}')) l->p++;
  return !list || lex_char(l, ']') || lex_expected(l, "']'");
}

/* One attribute into its place among those before it. *data is set to where the elements of a constant begin. */
static bool parse_attr(struct text_parser *p, struct attr *attrs, int *count, const char **data) {
  struct lex *l = &p->l;
  struct lexeme word = lex_word(l);
  if (!word.text) return lex_expected(l, "the name of an attribute");
  struct attr a = {.key = attr_lookup(word.text, word.len), .count = 1};
  if (a.key == ATTR_COUNT || attr_kind_of(a.key) == ATTR_BODY) {
    diag_error(l->diags, word.loc, "there is no attribute '%s'", word.text);
    const char *names[ATTR_COUNT];
    for (int i = 0; i < ATTR_COUNT; i++) names[i] = attr_name((enum attr_key)i);
    diag_closest(p->l.diags, LOC_NONE, word.text, names, ATTR_COUNT, NULL);
    return false;
  }
  if (!lex_char(l, '=')) return lex_expected(l, "'='");
  struct lexeme string;
  switch (attr_kind_of(a.key)) {
  case ATTR_INT:
    if (!lex_int(l, &a.i)) return lex_expected(l, "an integer");
    break;
  case ATTR_FLOAT:
    if (!lex_float(l, &a.f)) return lex_expected(l, "a number");
    break;
  case ATTR_STRING:
    string = lex_string(l);
    if (!string.text) return lex_expected(l, "a string in quotes");
    a.string = string.text;
    break;
  case ATTR_INTS:
    a.count = 0;
    if (!parse_ints(p, &a)) return false;
    break;
  case ATTR_DATA:
    lex_blanks(l);
    *data = l->p;
    if (!skip_data(l)) return false;
    break;
  case ATTR_BODY: return false;
  }
  int at = *count;
  while (at > 0 && attrs[at - 1].key > a.key) at--;
  if (at > 0 && attrs[at - 1].key == a.key) return fail(p, word.loc, "this attribute is given twice");
  memmove(&attrs[at + 1], &attrs[at], sizeof *attrs * (size_t)(*count - at));
  attrs[at] = a;
  p->where[a.key] = lex_loc(l, l->source->text + word.loc.begin, l->p);
  ++*count;
  return true;
}

static bool parse_attrs(struct text_parser *p, struct attr *attrs, int *count, const char **data) {
  if (!lex_char(&p->l, '{')) return true;
  do {
    if (!parse_attr(p, attrs, count, data)) return false;
  } while (lex_char(&p->l, ','));
  return lex_char(&p->l, '}') || lex_expected(&p->l, "',' or '}'");
}

static bool parse_small(struct text_parser *p, const char *keyword, int most, int *out) {
  int64_t value;
  if (!lex_keyword(&p->l, keyword)) return true;
  lex_blanks(&p->l);
  const char *start = p->l.p;
  if (!lex_int(&p->l, &value) || value < 0 || value > most) {
    p->l.p = start;
    return lex_expected(&p->l, "a small number");
  }
  *out = (int)value;
  return true;
}

static bool parse_device(struct text_parser *p, int *out) {
  struct lexeme word = lex_until(&p->l, "{");
  if (!word.text) return lex_expected(&p->l, "a device");
  const struct target *t = &p->g->config.target;
  struct device_name name;
  const char *text = word.text;
  if (device_name_parse(p->l.arena, text, &name)) text = device_name_text(p->l.arena, name);
  for (int i = 0; i < t->ndevices; i++)
    if (strcmp(t->devices[i].text, text) == 0) {
      *out = i;
      return true;
    }
  diag_error(p->l.diags, word.loc, "'%s' is not among the devices of the header", word.text);
  return false;
}

static bool parse_place(struct text_parser *p, struct node *n) {
  struct lex *l = &p->l;
  for (int i = DIST_NONE + 1; i < DIST_COUNT && n->dist == DIST_NONE; i++)
    if (lex_keyword(l, dist_name((enum dist)i))) n->dist = (enum dist)i;
  int pack = -1;
  if (!parse_small(p, "tower", MAX_TOWERS - 1, &n->tower) ||
      !parse_small(p, "replica", MAX_TOWERS - 1, &n->replica) || !parse_small(p, "pack", INT_MAX - 1, &pack))
    return false;
  n->pack = pack + 1;
  n->backward = lex_keyword(l, "backward") || (text_is_backward(n->name) && !lex_keyword(l, "forward"));
  bool source = p->g->stage == STAGE_SOURCE;
  if (source && n->backward) n->gradient_of = text_gradient_of(l->arena, n->name);
  if (source && lex_keyword(l, "gradient")) {
    struct lexeme of = lex_string(l);
    if (!of.text) return lex_expected(l, "a value in quotes");
    n->gradient_of = *of.text ? of.text : NULL;
  }
  if (lex_keyword(l, "want")) {
    struct lexeme want = lex_string(l);
    if (!want.text) return lex_expected(l, "a device in quotes");
    n->want = want.text;
  }
  return !lex_keyword(l, "on") || parse_device(p, &n->device);
}

/* "rule, digits.dsl:5". What has no origin must not get one from the text it stands in: "". */
static void split_comment(struct text_parser *p, const char *comment, struct node *n) {
  n->origin = "";
  if (!comment) return;
  const char *origin = text_origin(comment), *why = comment;
  if (origin) {
    n->origin = origin;
    why = origin == comment ? NULL : arena_strndup(p->l.arena, comment, (size_t)(origin - 2 - comment));
  }
  if (why) n->why = reason_read(p->l.arena, why);
}

/* ---- node lines ---- */

static bool parse_contents(struct text_parser *p);

/* The lines up to '}' as the graph inside `n`. */
static struct graph *parse_body(struct text_parser *p, const struct node *n) {
  struct text_parser inner = *p;
  struct map names = map_make(p->l.arena);
  inner.g = graph_create(p->l.arena, n->name, p->l.diags);
  inner.g->stage = p->g->stage;
  inner.g->config = p->g->config;
  inner.names = &names;
  inner.bodies++;
  inner.in_fused = n->op == OP_fused;
  bool ok = parse_contents(&inner);
  p->l = inner.l;
  p->data_bytes = inner.data_bytes;
  return ok ? inner.g : NULL;
}

static bool check_type(struct text_parser *p, struct node *n, bool given, struct loc type_loc) {
  bool typed = op_of(n)->traits & OP_TYPED;
  if (typed && !given) {
    diag_error(p->l.diags, n->loc, "%s needs a type", op_of(n)->name);
    return false;
  }
  struct node inferred = *n;
  const char *why = "the type cannot be inferred";
  if (!node_infer(p->g, &inferred, &why)) {
    enum attr_key which;
    const char *wrong = attrs_check(n, &which, p->l.arena);
    return fail(p, wrong && which < ATTR_COUNT && strcmp(wrong, why) == 0 ? p->where[which] : n->loc, why);
  }
  if (given && !type_equal(&inferred.type, &n->type)) {
    diag_error(p->l.diags, type_loc, "the type is %s, not %s", type_text(p->l.arena, &inferred.type),
               type_text(p->l.arena, &n->type));
    return false;
  }
  n->type = inferred.type;
  return true;
}

/* What follows "name =" on a line; *body says whether lines of a body follow, also after an error. */
static bool parse_node_line(struct text_parser *p, struct node *n, struct attr *attrs, bool *body,
                            struct loc *type_loc, bool *typed) {
  struct lex *l = &p->l;
  const char *data = NULL;
  struct loc op;
  n->loc = lex_loc(l, l->p, l->p);
  if (!parse_op(p, &n->op, &op)) return false;
  n->loc = op;
  if (!parse_inputs(p, n) || !parse_attrs(p, attrs, &n->nattrs, &data)) return false;
  if (lex_char(l, ':')) {
    lex_blanks(l);
    const char *begin = l->p;
    if (!lex_type(l, &n->type)) return false;
    *type_loc = lex_loc(l, begin, l->p);
    *typed = true;
  }
  if (!parse_place(p, n)) return false;
  *body = lex_char(l, '{');
  if (!lex_line_end(l))
    return lex_expected(l, *body ? "the end of the line" : "a place or the end of the line");
  if (data && !parse_data(l, n, data, &p->data_bytes)) return false;
  split_comment(p, lex_comment(l), n);
  return true;
}

/* Whether a line ends in '{', but for a comment. */
static bool opens_body(const char *line, const char *end) {
  char last = 0;
  for (const char *c = line; c < end && !(*c == '#' && c > line && c[-1] == ' '); c++)
    if (!strchr(" \t\r\n", *c)) last = *c;
  return last == '{';
}

/* After an error: to the line behind, and behind the body if one begins on this line. */
static void skip_node(struct text_parser *p, const char *line) {
  struct lex *l = &p->l;
  l->p = line;
  lex_skip_line(l);
  int bodies = opens_body(line, l->p);
  while (bodies > 0 && l->p < l->end) {
    lex_blanks(l);
    const char *next = l->p;
    bool closing = l->p < l->end && *l->p == '}';
    lex_skip_line(l);
    bodies += closing ? -1 : opens_body(next, l->p);
  }
}

/* The node of a line, or NULL after an error. */
static struct node *read_node(struct text_parser *p, struct lexeme name, const char *line) {
  struct attr attrs[ATTR_COUNT + 1];
  struct node n = {.name = name.text, .attrs = attrs, .tower = -1, .replica = -1, .device = -1};
  struct loc type_loc = name.loc;
  bool body = false, typed = false;
  if (!parse_node_line(p, &n, attrs, &body, &type_loc, &typed)) {
    skip_node(p, line);
    return NULL;
  }
  if (body) {
    bool allowed = op_of(&n)->attrs & ATTR_BIT(body);
    int most = p->in_fused ? p->bodies : MAX_BODIES;
    if (p->bodies == most || !allowed) {
      skip_node(p, line);
      fail(p, n.loc, allowed ? "a body cannot hold another one here" : "this op has no body");
      return NULL;
    }
    struct graph *inside = parse_body(p, &n);
    if (!inside) return NULL;
    int at = n.nattrs++;
    for (; at > 0 && attrs[at - 1].key > ATTR_body; at--) attrs[at] = attrs[at - 1];
    attrs[at] = (struct attr){.key = ATTR_body, .count = 1, .body = inside};
  }
  return check_type(p, &n, typed, type_loc) ? graph_node(p->g, &n) : NULL;
}

static bool parse_node(struct text_parser *p, struct lexeme name, const char *line) {
  p->has_nodes = true;
  const char *wrong = !*name.text                    ? "a name cannot be empty"
                      : map_get(p->names, name.text) ? "this name is taken by a node above"
                                                     : NULL;
  if (wrong) {
    skip_node(p, line);
    return fail(p, name.loc, wrong);
  }
  struct node *n = read_node(p, name, line);
  map_put(p->names, name.text, n ? n : &broken);
  return n;
}

/* ---- outputs and headers ---- */

static bool parse_output(struct text_parser *p, enum output_role role) {
  struct lex *l = &p->l;
  lex_blanks(l);
  const char *start = l->p;
  struct lexeme name = lex_name(l);
  if (!name.text) return lex_expected(l, "the name of an output");
  if (!lex_char(l, '=')) l->p = start;
  struct node *n = parse_reference(p);
  if (!n) return false;
  int64_t count = 0;
  if (lex_char(l, '/') && (!lex_dim(l, &count) || !count || !dim_mul(count, 1, &count)))
    return lex_expected(l, "a count, like 64 or B");
  graph_add_output(p->g, role, name.text, n, count);
  return true;
}

static bool parse_header(struct text_parser *p, struct lexeme key) {
  static const char *const keys[] = {
      "home", /* a line per variable; all others stand once */
      "stage",
      "devices",
#define NUMBER(type, name, most) #name,
#define WORD(name)               #name,
#define TEXT(name)               #name,
#define FLAG(name)               #name,
#include "ir/graph/config.def"
  };
  enum { NKEYS = sizeof keys / sizeof *keys };
  size_t k = 0;
  while (k < NKEYS && strcmp(keys[k], key.text) != 0) k++;
  if (k == NKEYS) {
    diag_error(p->l.diags, key.loc, "expected 'name = op ...', an output or a header line, found '%s'",
               key.text);
    enum { NROLES = OUTPUT_ROLES };
    const char *known[NKEYS + NROLES];
    memcpy(known, keys, sizeof keys);
    memcpy(known + NKEYS, text_roles, NROLES * sizeof *known);
    diag_closest(p->l.diags, key.loc, key.text, known, NKEYS + NROLES, NULL);
    return false;
  }
  if (p->bodies) return fail(p, key.loc, "a body has no header: that of the graph holds");
  if (p->has_nodes) return fail(p, key.loc, "header lines stand before the nodes");
  if (k > 0 && p->seen & 1u << k) return fail(p, key.loc, "this is given twice");
  p->seen |= 1u << k;
  return parse_option(&p->l, key, p->g);
}

/* The lines up to '}', and that. False if one of them was wrong. */
static bool parse_contents(struct text_parser *p) {
  struct lex *l = &p->l;
  bool ok = true;
  for (;;) {
    lex_skip_lines(l);
    if (l->p >= l->end) return lex_expected(l, "'}'");
    if (lex_char(l, '}')) {
      if (!lex_line_end(l)) ok = lex_expected(l, "the end of the line");
      lex_skip_line(l);
      return ok;
    }
    const char *line = l->p;
    struct lexeme first = lex_name(l);
    if (!first.text) {
      ok = lex_expected(l, "'name = op ...' or '}'");
      skip_node(p, line);
      continue;
    }
    if (lex_char(l, '=')) {
      if (!parse_node(p, first, line)) ok = false;
      continue;
    }
    int role = 0;
    while (role < OUTPUT_ROLES && strcmp(text_roles[role], first.text) != 0) role++;
    bool good = role < OUTPUT_ROLES ? parse_output(p, (enum output_role)role) : parse_header(p, first);
    if (good && !lex_line_end(l)) good = lex_expected(l, "the end of the line");
    if (!good) ok = false;
    lex_skip_line(l);
  }
}

static struct graph *parse_graph(struct text_parser *p) {
  struct lex *l = &p->l;
  if (!lex_keyword(l, "graph")) {
    lex_expected(l, "'graph NAME {'");
    diag_help(l->diags, LOC_NONE,
              "this is no graph text: `dgc compile MODEL --emit placed -o FILE` makes one of a model");
    return NULL;
  }
  struct lexeme name = lex_name(l);
  if (!name.text || !lex_char(l, '{') || !lex_line_end(l)) {
    lex_expected(l, name.text ? "'{' and the end of the line" : "the name of the graph");
    return NULL;
  }
  lex_skip_line(l);
  struct map names = map_make(l->arena);
  p->g = graph_create(l->arena, name.text, l->diags);
  p->names = &names;
  p->has_nodes = false;
  p->seen = 0;
  return parse_contents(p) ? p->g : NULL;
}

static bool fits(const struct source *src, struct diags *d) {
  if (src->len <= TEXT_MAX_BYTES) return true;
  diag_error(d, (struct loc){src, 0, 0}, "graph text of more than %u MiB is refused", TEXT_MAX_BYTES >> 20);
  return false;
}

/* The next graph of the text, NULL after an error. `*more`: whether there may be others. */
static struct graph *parse_next(struct text_parser *p, bool first, bool *more) {
  const char *start = p->l.p;
  struct graph *g = parse_graph(p);
  *more = g || (p->l.p != start && !first);
  lex_skip_lines(&p->l);
  *more = *more && p->l.p < p->l.end;
  return g;
}

int graph_parse_all(struct arena *a, const struct source *src, struct diags *d, struct graph ***out) {
  struct text_parser p = {.l = {a, src, d, src->text, src->text + src->len}};
  bool ok = fits(src, d), more = ok;
  int count = 0;
  *out = NULL;
  for (lex_skip_lines(&p.l); more; count++) {
    struct graph *g = parse_next(&p, count == 0, &more);
    ok = ok && g;
    *out = arena_grown(a, *out, count, sizeof **out);
    (*out)[count] = g;
  }
  return ok ? count : -1;
}

int graph_parse_places(struct arena *a, const struct source *src, struct diags *d, struct graph_place **out) {
  struct text_parser p = {.l = {a, src, d, src->text, src->text + src->len}};
  bool ok = fits(src, d), more = ok;
  int count = 0;
  *out = NULL;
  for (lex_skip_lines(&p.l); more; count++) {
    struct arena_guard guard;
    size_t at = (size_t)(p.l.p - src->text);
    p.l.arena = arena_create_guarded(&guard);
    const struct graph *g = parse_next(&p, count == 0, &more);
    *out = arena_grown(a, *out, count, sizeof **out);
    (*out)[count] =
        (struct graph_place){g ? arena_strdup(a, g->name) : NULL, g ? g->stage : STAGE_SOURCE, at};
    ok = ok && g;
    arena_destroy_guarded(p.l.arena, &guard);
  }
  return ok ? count : -1;
}

struct graph *graph_parse_at(struct arena *a, const struct source *src, const struct graph_place *place,
                             struct diags *d) {
  struct text_parser p = {.l = {a, src, d, src->text + place->at, src->text + src->len}};
  return parse_graph(&p);
}

struct graph *graph_parse(struct arena *a, const struct source *src, struct diags *d) {
  struct graph **graphs;
  int count = graph_parse_all(a, src, d, &graphs);
  if (count == 1) return graphs[0];
  if (count > 1) diag_error(d, (struct loc){src, 0, 0}, "expected one graph, found %d", count);
  return NULL;
}
