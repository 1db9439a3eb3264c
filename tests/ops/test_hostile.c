/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile graph text: for each op of ops.def, each attribute with values that no graph has, too few of them, too
 * many, twice, none; types and places of that kind. Each text is refused with a message that says where, or is a
 * graph: then it verifies, reads back, and every pass and the evaluator either take it or refuse it.
 *
 * A new op of a known kind and a new attribute are attacked without a line here. */
#include "ir/ops/op_id.h"
#include "tests/ops/hostile_text.h"
#include "tests/support/cases.h"
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Ops without samples: the lines of a graph, of which the one that begins with "y =" is attacked. */
static const struct {
  enum op_id op;
  const char *stage, *lines;
} named[] = {
    {OP_constant, "source", " y = constant {value=[1, 2, 300]} : i32[3]\n value y\n"},
    {OP_constant, "source", " y = constant {value=2.5} : f64[2,2]\n value y\n"},
    {OP_input, "source", " y = input : f32[B,3]\n value y\n"},
    {OP_variable, "source", " y = variable {trainable=1, aggregation=\"mean\"} : f32[3]\n value y\n"},
    {OP_variable, "source",
     " y = variable {aggregation=\"sum\", synchronization=\"on_read\"} : f32[3]\n n = neg y\n u = assign y, "
     "n\n"
     " update u\n value y\n"},
    {OP_variable, "source",
     " v = variable {trainable=1} : f32[4]\n y = variable {slot=\"v\"} : f32[4]\n n = add y, v\n u = assign "
     "y, "
     "n\n"
     " update u\n"},
    {OP_iota, "source", " y = iota {axis=1} : f32[B,3]\n value y\n"},
    {OP_iota, "source", " y = iota {axis=0, offset=3} : i32[5,3]\n value y\n"},
    {OP_batch_size, "source", " y = batch_size : f32[]\n value y\n"},
    {OP_tower_id, "source", " y = tower_id : f32[]\n z = aggregate y {reduction=\"sum\"}\n value z\n"},
    {OP_tower_count, "source", " y = tower_count : i64[]\n value y\n"},
    {OP_random_uniform, "source",
     " s = variable : i64[]\n y = random_uniform s {key=1, seed=2} : f32[B,3]\n value y\n"},
    {OP_random_normal, "source",
     " s = variable : i64[]\n r = input : i64[]\n y = random_normal s, r {key=1, seed=2, width=3} : "
     "f32[B,3]\n"
     " value y\n"},
    {OP_assign, "source", " v = variable : f64[2]\n n = neg v\n y = assign v, n\n update y\n"},
    {OP_gradient, "source",
     " v = variable {trainable=1} : f64[2]\n q = square v\n l = reduce_sum q {axes=[0]}\n y = gradient l, v\n"
     " s = sub v, y\n u = assign v, s\n loss l\n update u\n"},
    {OP_newest, "source", " v = variable : f64[2]\n y = newest v\n n = neg y\n u = assign v, n\n update u\n"},
    {OP_aggregate, "source",
     " x = input : f32[B]\n s = reduce_sum x {axes=[0]}\n y = aggregate s {reduction=\"mean\", each=1}\n"
     " value y\n value s\n"},
    {OP_aggregate, "source",
     " x = input : f32[B]\n s = reduce_sum x {axes=[0]}\n l = local s\n y = aggregate l {reduction=\"sum\", "
     "each=1, given=1}\n value y\n"},
    {OP_local, "source",
     " x = input : f32[B,2]\n s = reduce_sum x {axes=[0]}\n y = local s\n b = broadcast y {axes=[1]} : "
     "f32[B,2]\n d = sub x, b\n value d\n"},
    {OP_split, "placed",
     " x = input : f64[3,2] mirrored on /cpu:0  # r\n"
     " y = split x {offset=1} : f64[2,2] per_replica tower 0 on /cpu:0  # r\n"
     " t = split x {offset=2} : f64[1,2] per_replica tower 1 on /cpu:0  # r\n"
     " z = all_gather y, t mirrored on /cpu:0  # r\n value z\n"},
    {OP_neg, "replicated",
     " x = input : f64[3] mirrored replica 0\n y = neg x mirrored replica 1\n z = exp y mirrored replica 1 "
     "want \"/cpu:1\"\n"
     " value z\n"},
    {OP_split, "replicated",
     " x = input : f64[3,2] mirrored replica 1\n y = split x {offset=0} : f64[2,2] per_replica tower 0\n"
     " t = split x {offset=2} : f64[1,2] per_replica tower 1\n z = all_gather y, t mirrored replica 0\n "
     "value z\n"},
    {OP_all_reduce, "replicated",
     " x = input : f64[3] mirrored replica 0\n s = split x {offset=0} : f64[2] per_replica tower 0\n"
     " t = split x {offset=2} : f64[1] per_replica tower 1\n a = reduce_sum s {axes=[0]} partial(sum) tower "
     "0\n"
     " b = reduce_sum t {axes=[0]} partial(sum) tower 1\n"
     " y = all_reduce a, b {reduction=\"sum\"} mirrored replica 1\n value y\n"},
    {OP_all_gather, "replicated",
     " x = input : f64[3] mirrored replica 0\n s = split x {offset=0} : f64[2] per_replica tower 0\n"
     " t = split x {offset=2} : f64[1] per_replica tower 1\n y = all_gather s, t mirrored replica 1\n value "
     "y\n"},
    {OP_all_gather, "placed",
     " x = input : f64[3] mirrored on /cpu:0  # r\n"
     " s = split x {offset=0} : f64[2] per_replica tower 0 on /cpu:0  # r\n"
     " t = split x {offset=2} : f64[1] per_replica tower 1 on /cpu:0  # r\n"
     " y = all_gather s, t mirrored on /cpu:0  # r\n value y\n"},
    {OP_all_reduce, "placed",
     " x = input : f64[3] mirrored on /cpu:0  # r\n"
     " s = split x {offset=0} : f64[2] per_replica tower 0 on /cpu:0  # r\n"
     " t = split x {offset=2} : f64[1] per_replica tower 1 on /cpu:0  # r\n"
     " a = reduce_sum s {axes=[0]} partial(sum) tower 0 on /cpu:0  # r\n"
     " b = reduce_sum t {axes=[0]} partial(sum) tower 1 on /cpu:0  # r\n"
     " y = all_reduce a, b {reduction=\"sum\"} mirrored on /cpu:0  # r\n value y\n"},
    {OP_copy, "placed",
     " x = input : f64[3] mirrored on /cpu:0  # r\n q = square x mirrored on /cpu:0  # r\n"
     " y = copy q {alias=1} mirrored on /cpu:1  # r\n z = neg y mirrored on /cpu:1  # r\n value z\n"},
    {OP_send, "placed",
     " x = input : f64[3] mirrored on /cpu:0  # r\n q = square x mirrored on /cpu:0  # r\n"
     " y = send q {order=[1, 2, 3], peer=1} mirrored on /cpu:0  # r\n send y\n value q\n"},
    {OP_send, "replicated",
     " x = input : f64[3] mirrored replica 0\n y = send x {order=[0], peer=0} mirrored replica 0\n send y\n"
     " value x\n"},
    {OP_remote, "placed",
     " y = remote {order=[4, 0], peer=1} : f64[3] mirrored on /cpu:0  # r\n z = neg y mirrored on /cpu:0  # "
     "r\n"
     " value z\n"},
    {OP_remote, "replicated", " y = remote {peer=0} : f64[3] mirrored replica 0 on /cpu:0\n value y\n"},
    {OP_all_reduce, "replicated",
     " x = input : f64[3] mirrored replica 0\n s = split x {offset=0} : f64[2] per_replica tower 0\n"
     " t = split x {offset=2} : f64[1] per_replica tower 1\n a = reduce_sum s {axes=[0]} partial(sum) tower "
     "0\n"
     " b = reduce_sum t {axes=[0]} partial(sum) tower 1\n"
     " y = all_reduce a, b {reduction=\"sum\", order=[3, 0, 1]} mirrored replica 1\n value y\n"},
    {OP_fused, "fused",
     " x = input : f32[4] mirrored on /cpu:0  # r\n y = fused x : f32[4] mirrored on /cpu:0 {  # r\n"
     "  a = input : f32[4]\n  b = neg a\n  c = square a\n  value b\n  value c\n }\n value y\n"},
    {OP_output, "fused",
     " x = input : f32[4] mirrored on /cpu:0  # r\n k = fused x : f32[4] mirrored on /cpu:0 {  # r\n"
     "  a = input : f32[4]\n  b = neg a\n  c = square a\n  value b\n  value c\n }\n"
     " y = output k {index=1} mirrored on /cpu:0  # r\n value y\n value k\n"},
    {OP_scan, "source",
     " h = input : f32[4]\n x = input : f32[5,4]\n w = input : f32[4]\n"
     " y = scan h, x, w {carries=1, sequences=1, length=5} : f32[4] {\n"
     "  a = input : f32[4]\n  e = input : f32[4]\n  c = input : f32[4]\n  d = mul a, c\n  f = add d, e\n"
     "  value a = f\n  value d\n }\n z = output y {index=1}\n value y\n value z\n"},
};

static const char *const values[] = {
    "0",
    "1",
    "2",
    "3",
    "8",
    "31",
    "32",
    "-1",
    "1000000000",
    "2147483648",
    "1099511627776",
    "1099511627777",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "99999999999999999999999",
    "1.5",
    "nan",
    "inf",
    "-0.0",
    "true",
    "B",
    "x",
    "\"\"",
    "\"sum\"",
    "\"mean\"",
    "\"max\"",
    "\"nccl\"",
    "\"on_read\"",
    "\"only_first_replica\"",
    "\"bf16\"",
    "\"su\"",
    "\"sum mean\"",
    "\"\\x01\"",
    "\"",
    "[]",
    "[0]",
    "[1]",
    "[2]",
    "[-1]",
    "[8]",
    "[0, 0]",
    "[0, 1]",
    "[1, 0]",
    "[1, 1]",
    "[0, 1, 2]",
    "[2, 1, 0]",
    "[0, 0, 0, 0]",
    "[0, 1, 2, 3, 4, 5, 6, 7]",
    "[0, 1, 2, 3, 4, 5, 6, 7, 8]",
    "[9223372036854775807]",
    "[9223372036854775807, 9223372036854775807]",
    "[-9223372036854775808, 0]",
    "[1099511627776]",
    "[1099511627776, 1099511627776]",
    "[1099511627776, 0, 0]",
    "[4611686018427387904, 4611686018427387904, 1]",
    "[1.5]",
    "[\"sum\"]",
    "[0",
    "[,]",
    "[0,]",
    "",
    "{",
    "}",
    "[[0]]",
};

static const char *const types[] = {
    "f32[0]",
    "f32[0,0]",
    "f32[-1]",
    "f32[B]",
    "f32[B,B]",
    "f32[2*B]",
    "f32[0*B]",
    "f32[-1*B]",
    "f32[B,0]",
    "f32",
    "f32[1099511627776]",
    "f32[1099511627777]",
    "f32[1099511627776,1099511627776]",
    "f64[1099511627776]",
    "f32[0,1099511627776,1099511627776]",
    "f32[9223372036854775807]",
    "f32[9223372036854775808]",
    "f32[9223372036854775807*B]",
    "f32[1099511627776*B]",
    "f32[1099511627776,B]",
    "f32[-9223372036854775808]",
    "f32[1,1,1,1,1,1,1,1]",
    "f32[1,1,1,1,1,1,1,1,1]",
    "f32[3,0]",
    "f32[0,3]",
    "f32[3,3]",
    "f32[1]",
    "f32[4]",
    "bool[3]",
    "u8[3]",
    "i64[]",
    "f16[3]",
    "q",
    "f32[",
    "f32[,]",
    "f32[1.5]",
    "f32[\"a\"]",
    "f32[3]]",
    "",
};

static const char *const places[] = {
    "tower 0",
    "tower 1",
    "tower 2",
    "tower -1",
    "tower 1048575",
    "tower 1048576",
    "tower 99999999999999999999",
    "mirrored",
    "mirrored replica 0",
    "mirrored replica 1",
    "mirrored replica 2",
    "mirrored replica 1048575",
    "mirrored replica -1",
    "mirrored tower 0",
    "per_replica tower 0",
    "per_replica tower 5",
    "per_replica replica 0",
    "partial(sum) tower 0",
    "partial(sum) tower 1048575",
    "partial(max) tower 1",
    "partial(median) tower 0",
    "on /cpu:1",
    "on /cpu:7",
    "on",
    "on /cpu:0 on /cpu:1",
    "want \"\"",
    "want \"/cpu:1\"",
    "want \"/cpu:99999999999\"",
    "want \"nowhere\"",
    "mirrored on /cpu:1",
    "per_replica tower 1 on /cpu:1",
};

/* ---- lines ---- */

/* A graph's text in three: before the line "y = ...", its parts, and after it. */
struct victim {
  struct arena *arena;
  const char *before, *after, *head, *type,
      *place;                    /* "y = op a, b ", ": f32[3]", "mirrored on /cpu:0  # r" */
  const char *attrs[ATTR_COUNT]; /* as text, or NULL */
};

static const char *attack_text(const struct victim *v, const char *attrs, const char *type,
                               const char *place) {
  bool body = strchr(v->place, '{') != NULL;
  return arena_printf(v->arena, "%s%s%s%s%s%s%s %s%s\n%s", v->before, v->head, *attrs ? "{" : "", attrs,
                      *attrs ? "} " : "", *type ? ": " : "", type, place,
                      body && place != v->place ? " {" : "", v->after);
}

/* The attributes of v with that of `key` as `value` (NULL: none), and once more as `twice` if that is given. */
static const char *attrs_with(const struct victim *v, int key, const char *value, const char *twice) {
  struct str s = str_make(v->arena);
  for (int k = 0; k < ATTR_COUNT; k++) {
    const char *text = k == key ? value : v->attrs[k];
    if (text) str_printf(&s, "%s%s=%s", s.len ? ", " : "", attr_name((enum attr_key)k), text);
  }
  if (twice) str_printf(&s, "%s%s=%s", s.len ? ", " : "", attr_name((enum attr_key)key), twice);
  return s.data ? s.data : "";
}

static const char *list_text(struct arena *a, const int64_t *ints, int count) {
  struct str s = str_make(a);
  str_putc(&s, '[');
  for (int i = 0; i < count; i++) str_printf(&s, "%s%lld", i ? ", " : "", (long long)ints[i]);
  str_putc(&s, ']');
  return s.data;
}

/* A list that is right, with one number that is wrong, one too few and one too many. */
static void attack_list(struct attack *t, const struct victim *v, const struct attr *a) {
  static const int64_t numbers[] = {
      -1, 0, 1, 7, 8, 64, INT64_MAX, INT64_MIN, INT64_C(1) << 40, INT64_C(1) << 62};
  int64_t ints[MAX_RANK + 1] = {0};
  memcpy(ints, a->ints, sizeof *ints * (size_t)a->count);
  for (int i = 0; i < a->count; i++)
    for (size_t k = 0; k < COUNT(numbers); k++) {
      int64_t kept = ints[i];
      ints[i] = numbers[k];
      survives(t, attack_text(v, attrs_with(v, a->key, list_text(v->arena, ints, a->count), NULL), v->type,
                              v->place));
      ints[i] = kept;
    }
  for (int count = 0; count <= MAX_RANK; count++)
    survives(
        t, attack_text(v, attrs_with(v, a->key, list_text(v->arena, ints, count), NULL), v->type, v->place));
}

static void attack(struct attack *t, const struct victim *v, const struct node *n) {
  const struct op_info *op = op_of(n);
  for (int k = 0; k < ATTR_COUNT; k++) {
    bool own = (op->attrs | op->optional_attrs) >> k & 1;
    for (size_t i = 0; i < COUNT(values); i += own ? 1 : 9)
      survives(t, attack_text(v, attrs_with(v, k, values[i], NULL), v->type, v->place));
    if (!v->attrs[k]) continue;
    for (size_t i = 0; i < COUNT(values); i += 5)
      survives(t, attack_text(v, attrs_with(v, k, v->attrs[k], values[i]), v->type, v->place));
    survives(t, attack_text(v, attrs_with(v, k, v->attrs[k], v->attrs[k]), v->type, v->place));
    survives(t, attack_text(v, attrs_with(v, k, NULL, NULL), v->type, v->place));
  }
  for (int i = 0; i < n->nattrs; i++)
    if (attr_kind_of(n->attrs[i].key) == ATTR_INTS) attack_list(t, v, &n->attrs[i]);
  const char *attrs = attrs_with(v, -1, NULL, NULL);
  survives(t, attack_text(v, arena_printf(v->arena, "%s%sunknown=1", attrs, *attrs ? ", " : ""), v->type,
                          v->place));
  for (size_t i = 0; i < COUNT(types); i++) survives(t, attack_text(v, attrs, types[i], v->place));
  for (size_t i = 0; i < COUNT(places); i++) survives(t, attack_text(v, attrs, v->type, places[i]));
}

/* The line of `n`, which begins at `line` of `text`, taken apart. */
static struct victim take_apart(struct arena *a, const char *text, const char *line, const struct node *n) {
  struct victim v = {.arena = a, .before = arena_strndup(a, text, (size_t)(line - text)), .type = ""};
  const char *end = strchr(line, '\n');
  struct str s = str_make(a);
  str_printf(&s, "  %s = %s", n->name, op_of(n)->name);
  for (int i = 0; i < n->ninputs; i++) str_printf(&s, "%s%s", i ? ", " : " ", n->inputs[i]->name);
  str_putc(&s, ' ');
  v.head = s.data;
  for (int i = 0; i < n->nattrs; i++) {
    if (attr_kind_of(n->attrs[i].key) == ATTR_BODY) continue;
    const char *at = strstr(line, arena_printf(a, "%s=", attr_name(n->attrs[i].key)));
    assert_non_null(at);
    at += strlen(attr_name(n->attrs[i].key)) + 1;
    size_t len = *at == '[' ? strcspn(at, "]") + 1 : strcspn(at, ",}");
    v.attrs[n->attrs[i].key] = arena_strndup(a, at, len);
  }
  if (op_of(n)->traits & OP_TYPED) v.type = type_text(a, &n->type);
  const char *typed = strstr(line, arena_printf(a, " : %s", type_text(a, &n->type)));
  assert_true(typed && typed < end);
  typed += 3 + strlen(type_text(a, &n->type));
  v.place = arena_strndup(a, typed, (size_t)(end - typed));
  v.after = end + 1;
  return v;
}

/* Types of operands: that of each line before it in turn. The op then infers what it can. */
static void attack_operands(struct attack *t, struct arena *a, const char *text, const char *line,
                            const struct victim *v) {
  for (const char *p = text; p < line; p = strchr(p, '\n') + 1) {
    const char *end = strchr(p, '\n'), *colon = strstr(p, " : ");
    if (!colon || colon > end) continue;
    size_t len = strcspn(colon + 3, " \n");
    for (size_t i = 0; i < COUNT(types); i++)
      survives(t, arena_printf(a, "%.*s%s%.*s%s{%s} %s%s %s\n%s", (int)(colon + 3 - text), text, types[i],
                               (int)(line - colon - 3 - (ptrdiff_t)len), colon + 3 + len, v->head,
                               attrs_with(v, -1, NULL, NULL), *v->type ? ": " : "", v->type, v->place,
                               v->after));
  }
}

static void attack_graph(struct attack *t, struct arena *a, struct graph *g, const struct node *n) {
  const char *text = graph_text(a, g), *line = strstr(text, arena_printf(a, "\n  %s = ", n->name));
  assert_non_null(line);
  struct victim v = take_apart(a, text, line + 1, n);
  int taken = t->taken;
  survives(t, attack_text(&v, attrs_with(&v, -1, NULL, NULL), v.type, v.place));
  if (t->taken == taken) fail_msg("the text itself is refused:\n%s", text);
  attack(t, &v, n);
  if (v.attrs[0] == NULL || n->op != OP_constant) attack_operands(t, a, text, line + 1, &v);
}

/* ---- ops ---- */

static struct node *copy_below(struct graph *to, const struct node *n, struct node **copies) {
  if (copies[n->id]) return copies[n->id];
  struct node own = *n, **in = arena_new_array(to->arena, (size_t)n->ninputs + 1, struct node *);
  for (int i = 0; i < n->ninputs; i++) in[i] = copy_below(to, n->inputs[i], copies);
  own.inputs = in;
  return copies[n->id] = graph_node(to, &own);
}

/* A few of the op's samples of this type, those of most axes first: each as a graph of its own. */
static int attack_samples(struct attack *t, enum op_id op, enum dtype d, int most) {
  struct arena *a = arena_create();
  struct diags diags;
  diags_init(&diags, a);
  struct cases c = {.g = graph_create(a, "samples", &diags), .op = op, .small = true};
  cases_add(&c, d);
  int done = 0;
  for (int rank = 4; rank >= 0 && done < most; rank--)
    for (int i = 0; i < c.count && done < most; i++) {
      struct node *n = c.list[i].node;
      if (n->ninputs > 8 || (n->ninputs ? n->inputs[0]->type.rank : n->type.rank) != rank) continue;
      struct graph *g = graph_create(a, "hostile", &diags);
      g->config.batch = 3;
      assert_true(target_parse(a, "cpu:0-1", &g->config.target, &diags, LOC_NONE));
      struct node *y = copy_below(g, n, arena_new_array(a, c.g->count, struct node *));
      graph_add_output(g, OUTPUT_VALUE, "y", y, 0);
      attack_graph(t, a, g, y);
      done++;
    }
  arena_destroy(a);
  return done;
}

static int attack_named(struct attack *t, enum op_id op) {
  int done = 0;
  for (size_t i = 0; i < COUNT(named); i++) {
    if (named[i].op != op) continue;
    struct arena *a = arena_create();
    struct diags d;
    diags_init(&d, a);
    const char *text = arena_printf(
        a,
        "graph hostile {\n stage %s\n batch 3\n towers 2\n strategy mirrored\n devices /cpu:0 /cpu:1\n%s}\n",
        named[i].stage, named[i].lines);
    struct graph *g = graph_parse(a, source_make(a, "named.dg", text, strlen(text)), &d);
    if (!g) fail_msg("%s\n%s", text, diags_text(&d, false));
    attack_graph(t, a, g, graph_find(g, "y"));
    arena_destroy(a);
    done++;
  }
  return done;
}

/* ---- headers and outputs ---- */

/* Of a graph with an input of B rows and a sum over them. */
static void headers_and_outputs(void **state) {
  static const char *const headers[] = {"batch 0",
                                        "batch -1",
                                        "batch 1",
                                        "batch 1099511627776",
                                        "batch 1099511627777",
                                        "batch 3\n batch 3",
                                        "batch_per_replica 1099511627776",
                                        "towers 0",
                                        "towers -1",
                                        "towers 1048577",
                                        "devices",
                                        "devices /cpu:-1",
                                        "devices /cpu:0 /cpu:0",
                                        "devices /cpu:99999999999",
                                        "devices cpu:0-9999999",
                                        "devices /cpu:0@/cpu:1",
                                        "devices /cpu:0(",
                                        "stage",
                                        "stage fused",
                                        "home x",
                                        "home x /cpu:0",
                                        "home x nowhere",
                                        "packs 1048577",
                                        "staleness 3",
                                        "min_part_bytes -1"};
  static const char *const outputs[] = {"metric m = s / 9223372036854775807",
                                        "metric m = s / 9223372036854775807*B",
                                        "metric m = s / 1099511627776*B",
                                        "metric m = s / 1099511627776",
                                        "metric m = s / 1099511627777",
                                        "metric m = s / -1",
                                        "metric m = s / 0",
                                        "metric m = s / 0*B",
                                        "metric m = s / B*B",
                                        "metric m = x / B",
                                        "loss s\n loss s",
                                        "loss x",
                                        "update s",
                                        "predict s",
                                        "value nothing",
                                        "value \"\" = s",
                                        "count m = s",
                                        "value s / 9223372036854775808"};
  struct attack t = {0};
  (void)state;
  for (size_t i = 0; i < COUNT(headers) * COUNT(outputs); i++) {
    char text[512];
    snprintf(text, sizeof text,
             "graph g {\n %s\n x = input : f32[B,3]\n s = reduce_sum x {axes=[0, 1]}\n %s\n}\n",
             headers[i % COUNT(headers)], outputs[i / COUNT(headers)]);
    survives(&t, text);
  }
  assert_true(t.refused > 100 && t.taken > 10);
}

/* Values that each are allowed and together are not. */
static void too_much_together(void **state) {
  struct arena *a = arena_create();
  struct str s = str_make(a);
  struct attack t = {0};
  (void)state;
  str_put(&s, "graph g {\n n0 = input : f64[1099511627776]\n");
  for (int i = 1; i < 70000; i++) str_printf(&s, " n%d = neg n%d\n", i, i - 1);
  str_put(&s, " value n69999\n}\n");
  survives(&t, s.data);
  assert_int_equal(t.refused, 1);
  arena_destroy(a);
}

static void every_op(void **state) {
  struct attack t = {0};
  int missing = 0;
  (void)state;
  for (enum op_id op = 0; op < OP_COUNT; op++) {
    bool plain = op_table[op]->kind == KIND_ELEMENTWISE; /* no attribute of its own */
    int done = attack_named(&t, op);
    for (enum dtype d = DT_F32; d < DT_BF16; d++)
      if (d == DT_F32 || d == DT_BOOL || d == DT_I32) done += attack_samples(&t, op, d, plain ? 1 : 3);
    if (!done)
      print_error("%s is not attacked: it has no samples and no lines here\n", op_table[op]->name), missing++;
  }
  print_message("%d texts: %d refused, %d taken\n", t.texts, t.refused, t.taken);
  assert_int_equal(missing, 0);
  assert_true(t.refused > 1000 && t.taken > 1000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(headers_and_outputs),
      cmocka_unit_test(too_much_together),
      cmocka_unit_test(every_op),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
