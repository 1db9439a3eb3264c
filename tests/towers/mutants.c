/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/towers/mutants.h"

#include "ir/graph/build.h"
#include "ir/graph/text.h"
#include "ir/ops/op_id.h"
#include "tests/support/random.h"

#include <stdlib.h>
#include <string.h>

const char *const mutant_kinds[MUTANT_KINDS] = {
#define KIND(id, text) text,
#include "tests/towers/mutants.def"
#undef KIND
};

/* One graph's lines: header, nodes, outputs. */
struct press {
  const struct graph *g;
  struct arena *arena, *scratch; /* of the graph; of a mutant */
  struct rng rng;
  const char **lines; /* without line ends */
  int nlines, first_node, first_output;
  struct mutant_share *share;
  mutant_check *check;
  void *user;
};

/* A line and what stands there instead; NULL: nothing. */
struct edit {
  int line;
  const char *by;
};

/* A comment is half of a line, and half of the time to read it; that there is one is asked for. */
static void cut_comment(char *line) {
  char *comment = strstr(line, "  # ");
  if (comment && !strchr(comment, '"')) strcpy(comment, "  # .");
}

static void split_lines(struct press *p) {
  struct str s = str_make(p->arena);
  graph_print(&s, p->g);
  int most = 1;
  for (const char *c = s.data; *c; c++) most += *c == '\n';
  p->lines = arena_array(p->arena, (size_t)most, sizeof *p->lines);
  for (char *line = s.data, *end; (end = strchr(line, '\n')); line = end + 1) {
    *end = 0;
    cut_comment(line);
    p->lines[p->nlines++] = line;
  }
  p->first_output = p->nlines - 1 - p->g->noutputs;
  p->first_node = p->first_output - (int)p->g->count;
}

static const char *shown(const struct press *p, const struct edit *edits, int count, bool after) {
  struct str s = str_make(p->scratch);
  for (int k = 0; k < count; k++) {
    const char *line = after ? edits[k].by : p->lines[edits[k].line];
    str_printf(&s, "%s%s", k ? "\n" : "", line ? line : "(nothing)");
  }
  return s.data;
}

/* Is it this one's turn? Asked before anything is printed. */
static bool its_turn(struct press *p) { return p->share->next++ % p->share->of == p->share->part; }

static void emit(struct press *p, enum mutant_kind kind, const struct edit *edits, int count) {
  struct str s = str_make(p->scratch);
  for (int i = 0; i < p->nlines; i++) {
    const char *line = p->lines[i];
    for (int k = 0; k < count; k++)
      if (edits[k].line == i) line = edits[k].by;
    if (!line) continue;
    str_put(&s, line);
    str_putc(&s, '\n');
  }
  struct mutant m = {kind, s.data, s.len, shown(p, edits, count, false), shown(p, edits, count, true)};
  p->check(p->user, &m);
  arena_reset(p->scratch);
}

static void emit_line(struct press *p, enum mutant_kind kind, int line, const char *by) {
  emit(p, kind, &(struct edit){line, by}, 1);
}

/* ---- whole lines ---- */

static void move_line(struct press *p, int line) {
  int last = p->nlines - 2, other = 1 + rng_below(&p->rng, last);
  if (its_turn(p)) emit_line(p, MUTANT_DELETED, line, NULL);
  if (its_turn(p))
    emit_line(p, MUTANT_TWICE, line, arena_printf(p->scratch, "%s\n%s", p->lines[line], p->lines[line]));
  if (line < last && its_turn(p))
    emit(p, MUTANT_SWAPPED, (struct edit[]){{line, p->lines[line + 1]}, {line + 1, p->lines[line]}}, 2);
  if (other != line && its_turn(p))
    emit(p, MUTANT_SWAPPED, (struct edit[]){{line, p->lines[other]}, {other, p->lines[line]}}, 2);
}

/* ---- nodes ---- */

static void emit_node(struct press *p, enum mutant_kind kind, const struct node *n, uint32_t at) {
  struct str s = str_make(p->scratch);
  str_put(&s, "  ");
  node_print(&s, p->g, n);
  emit_line(p, kind, p->first_node + (int)at, s.data);
}

/* Another node of x's type above `reader`; `alike`: of its place too. NULL if there is none. */
static struct node *other_like(struct press *p, uint32_t reader, const struct node *x, bool alike) {
  uint32_t from = reader ? (uint32_t)rng_below(&p->rng, (int)reader) : 0;
  for (uint32_t k = 0; k < reader; k++) {
    struct node *n = p->g->nodes[(from + k) % reader];
    if (n == x || !type_equal(&n->type, &x->type)) continue;
    if (!alike || (n->dist == x->dist && n->tower == x->tower && n->device == x->device)) return n;
  }
  return NULL;
}

static void change_operands(struct press *p, const struct node *n) {
  struct node m = *n;
  m.inputs = arena_array(p->arena, (size_t)n->ninputs + 1, sizeof *m.inputs);
  for (int k = 0; k < n->ninputs; k++) {
    memcpy(m.inputs, n->inputs, sizeof *m.inputs * (size_t)n->ninputs);
    for (int alike = 0; alike < 2; alike++)
      if ((m.inputs[k] = other_like(p, n->id, n->inputs[k], alike)) && its_turn(p))
        emit_node(p, MUTANT_OPERAND, &m, n->id);
    m.inputs[k] = n->inputs[(k + 1) % n->ninputs];
    m.inputs[(k + 1) % n->ninputs] = n->inputs[k];
    if (m.inputs[k] != n->inputs[k] && its_turn(p)) emit_node(p, MUTANT_OPERANDS_SWAPPED, &m, n->id);
  }
  memcpy(m.inputs, n->inputs, sizeof *m.inputs * (size_t)n->ninputs);
  if (n->ninputs == 0) return;
  m.ninputs = n->ninputs - 1;
  if (its_turn(p)) emit_node(p, MUTANT_OPERAND_LESS, &m, n->id);
  m.ninputs = n->ninputs + 1;
  m.inputs[n->ninputs] = n->inputs[0];
  if (its_turn(p)) emit_node(p, MUTANT_OPERAND_MORE, &m, n->id);
}

static void change_op(struct press *p, const struct node *n) {
  struct node m = *n;
  int from = rng_below(&p->rng, OP_COUNT), found = 0;
  for (int k = 0; k < OP_COUNT && found < 2; k++) {
    m.op = (enum op_id)((from + k) % OP_COUNT);
    const struct op_info *op = op_table[m.op];
    bool fits = m.op != n->op && op->min_inputs <= n->ninputs &&
                (op->max_inputs < 0 || op->max_inputs >= n->ninputs) && op->kind == op_of(n)->kind;
    if (fits && ++found && its_turn(p)) emit_node(p, MUTANT_OP, &m, n->id);
  }
}

static void change_labels(struct press *p, const struct node *n) {
  const struct target *t = &p->g->config.target;
  struct node m = *n;
  for (int k = 1; k < DIST_COUNT; k++) {
    m.dist = (enum dist)(((int)n->dist + k) % DIST_COUNT);
    if (its_turn(p)) emit_node(p, MUTANT_DISTRIBUTION, &m, n->id);
  }
  for (int other = -1; other <= p->g->config.towers; other++) {
    m = *n;
    m.tower = other;
    if (other != n->tower && its_turn(p)) emit_node(p, MUTANT_TOWER, &m, n->id);
    m = *n;
    m.replica = other;
    if (other != n->replica && its_turn(p)) emit_node(p, MUTANT_REPLICA, &m, n->id);
  }
  for (int k = -1; k < t->ndevices; k++) {
    m = *n;
    m.device = k;
    if (k < 0 || k == n->device) continue;
    if (its_turn(p)) emit_node(p, MUTANT_DEVICE, &m, n->id);
    m = *n;
    m.want = t->devices[k].text;
    if (its_turn(p)) emit_node(p, MUTANT_WANT, &m, n->id);
  }
  m = *n;
  m.why = (struct reason){.rule = "another rule"};
  m.origin = "";
  if (its_turn(p)) emit_node(p, MUTANT_COMMENT, &m, n->id);
}

static void change_type(struct press *p, const struct node *n) {
  struct node m = *n;
  m.type.dtype = (uint8_t)((n->type.dtype + 1 + rng_below(&p->rng, DT_COUNT - 1)) % DT_COUNT);
  if (n->op != OP_constant && its_turn(p)) emit_node(p, MUTANT_TYPE, &m, n->id);
  for (int i = 0; i < n->type.rank; i++) {
    m = *n;
    m.type.dim[i] += rng_chance(&p->rng, 50) || m.type.dim[i] == 0 ? 1 : -1;
    if (its_turn(p)) emit_node(p, MUTANT_TYPE, &m, n->id);
  }
}

/* Two nodes of one op and type change their names where they are made: whoever reads one reads the other. */
static void change_name(struct press *p, const struct node *n) {
  struct node m = *n;
  m.name = arena_printf(p->arena, "%s.twin", n->name);
  struct str s = str_make(p->arena);
  str_printf(&s, "%s\n  ", p->lines[p->first_node + (int)n->id]);
  node_print(&s, p->g, &m);
  if (its_turn(p)) emit_line(p, MUTANT_ANOTHER_NAME, p->first_node + (int)n->id, s.data);
  if (its_turn(p)) emit_node(p, MUTANT_NAME, &m, n->id);
  for (uint32_t k = n->id + 1; k < p->g->count; k++) {
    struct node other = *p->g->nodes[k];
    if (other.op != n->op || !type_equal(&other.type, &n->type)) continue;
    if (!its_turn(p)) return;
    m.name = other.name;
    other.name = n->name;
    struct str lines[2] = {str_make(p->scratch), str_make(p->scratch)};
    for (int i = 0; i < 2; i++) {
      str_put(&lines[i], "  ");
      node_print(&lines[i], p->g, i ? &other : &m);
    }
    emit(
        p, MUTANT_NAMES_SWAPPED,
        (struct edit[]){{p->first_node + (int)n->id, lines[0].data}, {p->first_node + (int)k, lines[1].data}},
        2);
    return;
  }
}

/* ---- attributes ---- */

static const char *const words[] = {"sum",  "mean", "max",     "min",      "only_first_replica",
                                    "nccl", "bf16", "on_read", "on_write", "ring"};
enum { WORDS = sizeof words / sizeof *words };

static void with_attr(struct press *p, enum mutant_kind kind, const struct node *n, int index,
                      struct attr attr) {
  struct node m = *n;
  struct attr attrs[ATTR_COUNT + 1];
  if (!its_turn(p)) return;
  memcpy(attrs, n->attrs, sizeof *attrs * (size_t)n->nattrs);
  attrs[index] = attr;
  m.attrs = attrs;
  if (index == n->nattrs) m.nattrs++;
  emit_node(p, kind, &m, n->id);
}

static void change_data(struct press *p, const struct node *n, int index, struct attr attr) {
  int size = dtype_size((enum dtype)n->type.dtype);
  char *data = arena_copy(p->arena, attr.data, (size_t)attr.count);
  attr.data = data;
  for (int i = 0; i<attr.count; i += attr.count> size ? attr.count - size : size) { /* the first, the last */
    data[i + (dtype_is_float((enum dtype)n->type.dtype) ? size - 1 : 0)] ^= 1;
    with_attr(p, MUTANT_ATTRIBUTE, n, index, attr);
    memcpy(data, n->attrs[index].data, (size_t)attr.count);
  }
}

static void change_list(struct press *p, const struct node *n, int index, struct attr attr) {
  int64_t list[MAX_RANK + 1] = {0};
  const int64_t *old = attr.ints;
  attr.ints = list;
  for (int k = 0; k < attr.count; k++)
    for (int by = 0; by < 4; by++) {
      memcpy(list, old, sizeof *list * (size_t)attr.count);
      list[k] = by == 0 ? old[k] - 1 : by == 1 ? old[k] + 1 : by == 2 ? INT64_MAX : INT64_MIN;
      with_attr(p, MUTANT_ATTRIBUTE, n, index, attr);
    }
  if (attr.count > 0) { /* too short, and as long as lists may be */
    memcpy(list, old, sizeof *list * (size_t)attr.count);
    attr.count--;
    with_attr(p, MUTANT_ATTRIBUTE, n, index, attr);
    attr.count = MAX_RANK;
    with_attr(p, MUTANT_ATTRIBUTE, n, index, attr);
    attr.count = n->attrs[index].count;
  }
  for (int k = 0; k + 1 < attr.count; k++) {
    memcpy(list, old, sizeof *list * (size_t)attr.count);
    list[k] = old[k + 1], list[k + 1] = old[k];
    if (old[k] != old[k + 1]) with_attr(p, MUTANT_ATTRIBUTE, n, index, attr);
  }
}

static void change_attr(struct press *p, const struct node *n, int index) {
  struct attr attr = n->attrs[index];
  int64_t i = attr.i;
  switch (attr_kind_of(attr.key)) {
  case ATTR_INT: {
    uint64_t u = (uint64_t)i; /* wraps */
    const int64_t others[] = {
        (int64_t)(u + 1), (int64_t)(u - 1), (int64_t)(1 - u), (int64_t)(2 * u), 1000000007, -1, INT64_MIN};
    for (int k = 0; k < 7; k++)
      if (others[k] != i) with_attr(p, MUTANT_ATTRIBUTE, n, index, attr_int(attr.key, others[k]));
    break;
  }
  case ATTR_STRING:
    for (int k = 0; k < WORDS; k++)
      if (strcmp(words[k], attr.string) != 0)
        with_attr(p, MUTANT_ATTRIBUTE, n, index, attr_string(attr.key, words[k]));
    break;
  case ATTR_INTS: change_list(p, n, index, attr); break;
  case ATTR_DATA: change_data(p, n, index, attr); break;
  default: break;
  }
  struct node m = *n;
  struct attr attrs[ATTR_COUNT];
  memcpy(attrs, n->attrs, sizeof *attrs * (size_t)n->nattrs);
  memmove(attrs + index, attrs + index + 1, sizeof *attrs * (size_t)(n->nattrs - index - 1));
  m.attrs = attrs;
  m.nattrs--;
  if (its_turn(p)) emit_node(p, MUTANT_ATTRIBUTE_LESS, &m, n->id);
}

static void change_attrs(struct press *p, const struct node *n) {
  for (int i = 0; i < n->nattrs; i++) change_attr(p, n, i);
  for (int k = 0; k < ATTR_COUNT; k++) {
    enum attr_key key = (enum attr_key)k;
    if (node_attr(n, key) || !((op_of(n)->attrs | op_of(n)->optional_attrs) >> k & 1)) continue;
    if (attr_kind_of(key) == ATTR_INT) {
      with_attr(p, MUTANT_ATTRIBUTE_MORE, n, n->nattrs, attr_int(key, 1));
      with_attr(p, MUTANT_ATTRIBUTE_MORE, n, n->nattrs, attr_int(key, 0));
    }
    for (int w = 0; attr_kind_of(key) == ATTR_STRING && w < WORDS; w++)
      with_attr(p, MUTANT_ATTRIBUTE_MORE, n, n->nattrs, attr_string(key, words[w]));
  }
}

/* ---- outputs ---- */

static void emit_output(struct press *p, enum mutant_kind kind, int index, int role, const char *name,
                        const struct node *n, int64_t count) {
  struct str s = str_make(p->scratch);
  if (!its_turn(p)) return;
  str_printf(&s, "  %s ", text_roles[role]);
  text_print_name(&s, name);
  str_put(&s, " = ");
  text_print_name(&s, n->name);
  if (count) str_printf(&s, " / %lld", (long long)count);
  emit_line(p, kind, p->first_output + index, s.data);
}

static void change_output(struct press *p, int i) {
  const struct output *o = &p->g->outputs[i];
  for (int k = 1; k < 6; k++)
    emit_output(p, MUTANT_ROLE, i, ((int)o->role + k) % 6, o->name, o->node, o->count);
  for (int alike = 0; alike < 2; alike++) {
    const struct node *n = other_like(p, p->g->count, o->node, alike);
    if (n) emit_output(p, MUTANT_RESULT, i, (int)o->role, o->name, n, o->count);
  }
  emit_output(p, MUTANT_RESULT_NAME, i, (int)o->role, arena_printf(p->arena, "%s.twin", o->name), o->node,
              o->count);
  for (int k = 0; k < p->g->noutputs; k++)
    if (p->g->outputs[k].role == o->role && k != i && p->g->outputs[k].node->op == o->node->op)
      emit_output(p, MUTANT_RESULT, i, (int)o->role, o->name, p->g->outputs[k].node, o->count);
  const int64_t counts[] = {0, o->count + 1, 2 * o->count, o->count - 1, p->g->config.batch};
  for (int k = 0; k < 5; k++)
    if (counts[k] != o->count && counts[k] >= 0)
      emit_output(p, MUTANT_COUNT, i, (int)o->role, o->name, o->node, counts[k]);
}

/* ---- headers ---- */

static const char *const header_words[][8] = {
    {"stage", "source", "replicated", "placed", "fused"},
    {"strategy", "one_device", "mirrored", "replicate", "round_robin", "central_storage", "parameter_server"},
    {"cross_device", "reduce_to_one", "hierarchical_copy", "scatter", "ring", "nccl"},
    {"loss_scaling", "per_tower"},
    {"balance", "size"},
};

static void change_header(struct press *p, int line) {
  const char *text = p->lines[line] + strspn(p->lines[line], " ");
  size_t len = strcspn(text, " ");
  const char *rest = text[len] ? text + len + 1 : "";
  char *end;
  long long number = strtoll(rest, &end, 10);
  for (int by = -1; by <= 1 && end != rest; by += 2)
    if (its_turn(p))
      emit_line(p, MUTANT_HEADER, line, arena_printf(p->scratch, "  %.*s %lld", (int)len, text, number + by));
  for (size_t i = 0; i < sizeof header_words / sizeof *header_words; i++)
    for (int k = 1; header_words[i][0] && k < 8 && header_words[i][k]; k++) {
      if (strncmp(header_words[i][0], text, len) != 0 || header_words[i][0][len]) continue;
      if (strcmp(header_words[i][k], rest) != 0 && its_turn(p))
        emit_line(p, MUTANT_HEADER, line,
                  arena_printf(p->scratch, "  %.*s %s", (int)len, text, header_words[i][k]));
    }
  if (strncmp(text, "home ", 5) == 0)
    for (int d = 0; d < p->g->config.target.ndevices; d++)
      if (its_turn(p))
        emit_line(p, MUTANT_HEADER, line,
                  arena_printf(p->scratch, "  home %.*s %s", (int)strcspn(rest, " "), rest,
                               p->g->config.target.devices[d].text));
}

/* Devices in another order, of another memory, fewer and more; and what was not said before. */
static void change_devices(struct press *p, int line) {
  static const char *const more[] = {"asynchronous",   "asynchronous\n  staleness 1", "uneven",
                                     "soft_placement", "loss_scaling per_tower",      "cross_device ring",
                                     "packs 2",        "batch_per_replica 2",         "cross_device nccl",
                                     "balance size"};
  const struct target *t = &p->g->config.target;
  for (int change = 0; change < 5; change++)
    for (int d = 0; d < t->ndevices; d++) {
      if (!its_turn(p)) continue;
      struct str s = str_make(p->scratch);
      str_put(&s, "  devices");
      for (int k = 0; k < t->ndevices; k++) {
        const char *name = t->devices[change == 0 && k <= d ? d - k : k].text;
        if (change == 1 && k == d) continue;
        str_printf(&s, " %s", name);
        if (change == 2 && k == d) str_printf(&s, "@%s", name);
        if (change == 3 && k == d && k > 0) str_printf(&s, "@%s", t->devices[0].text);
        if (change == 4 && k == d) str_put(&s, "(storage)");
      }
      emit_line(p, MUTANT_HEADER, line, s.data);
    }
  for (size_t i = 0; i < sizeof more / sizeof *more; i++)
    if (its_turn(p))
      emit_line(p, MUTANT_HEADER, line, arena_printf(p->scratch, "  %s\n%s", more[i], p->lines[line]));
}

/* ---- all of them ---- */

static void change_node(struct press *p, const struct node *n) {
  change_operands(p, n);
  change_op(p, n);
  change_attrs(p, n);
  change_type(p, n);
  change_labels(p, n);
  change_name(p, n);
}

void each_mutant(const struct graph *g, uint64_t seed, struct mutant_share *share, mutant_check *check,
                 void *user) {
  struct press p = {.g = g,
                    .arena = arena_create(),
                    .scratch = arena_create(),
                    .rng = {seed},
                    .share = share,
                    .check = check,
                    .user = user};
  split_lines(&p);
  for (int i = 1; i < p.nlines - 1; i++) move_line(&p, i);
  for (int i = 1; i < p.first_node; i++) {
    if (strstr(p.lines[i], "  devices ") == p.lines[i])
      change_devices(&p, i);
    else
      change_header(&p, i);
  }
  for (uint32_t i = 0; i < g->count; i++) change_node(&p, g->nodes[i]);
  for (int i = 0; i < g->noutputs; i++) change_output(&p, i);
  arena_destroy(p.scratch);
  arena_destroy(p.arena);
}
