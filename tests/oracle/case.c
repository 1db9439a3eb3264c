/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/oracle/case.h"

#include "hlo/hlo.h"
#include "ir/graph/text.h"
#include "ir/ops/op_id.h"
#include "tests/support/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool case_asked(const struct asked *q, const char *name) {
  size_t len = q->only ? strlen(q->only) : 0;
  return !q->only || strcmp(q->only, name) == 0 ||
         (len && q->only[len - 1] == '*' && strncmp(q->only, name, len - 1) == 0);
}

static _Noreturn void give_up(const char *name, const char *why) {
  fprintf(stderr, "%s: %s\n", name, why);
  exit(1);
}

static struct str module_of(struct arena *a, const char *name, const struct graph *g) {
  struct diags d;
  diags_init(&d, a);
  struct str s = str_make(a);
  if (!hlo_print(&s, "oracle", &(struct hlo_function){.graph = g, .name = "main", .batch = 0}, 1, &d))
    give_up(name, d.first->message);
  return s;
}

const char *case_text(struct arena *a, const struct graph *g) {
  struct str out = str_make(a);
  for (const char *p = module_of(a, g->name, g).data, *loc; *p && strncmp(p, "#loc", 4) != 0; p = loc) {
    loc = strstr(p, " loc(#");
    str_putn(&out, p, loc ? (size_t)(loc - p) : strlen(p));
    loc = loc ? strchr(loc, ')') + 1 : p + strlen(p);
  }
  return out.data;
}

/* ---- what is written ---- */

struct record {
  struct str head, data;
  int count;
};

/* Tensors are numbered as they are written; one that lies as another did is not written again: weights are megabytes,
 * and most passes leave them as they are. By hashes of 64 bits. */
enum { MAX_WRITTEN = 1 << 18 };
static struct {
  uint64_t hash[MAX_WRITTEN];
  int number[MAX_WRITTEN]; /* from 1 on; 0: none */
  int count;
} written;

/* The number of these bytes, and whether they are written already. */
static int number_of(const struct type *t, const void *data, bool *again) {
  uint64_t hash = str_hash(STR_HASH_SEED, (const uint8_t[]){t->dtype, t->rank}, 2);
  hash = str_hash(hash, t->dim, sizeof *t->dim * t->rank);
  hash = str_hash(hash, data, (size_t)type_bytes(t));
  size_t at = hash % MAX_WRITTEN;
  while (written.number[at] && written.hash[at] != hash) at = (at + 1) % MAX_WRITTEN;
  *again = written.number[at] != 0;
  if (!*again && 2 * written.count >= MAX_WRITTEN) give_up("tensors", "there are too many");
  if (!*again) written.hash[at] = hash, written.number[at] = ++written.count;
  return written.number[at] - 1;
}

static void put_tensor(struct record *r, const char *role, const char *name, const struct type *t,
                       const void *data) {
  size_t size = (size_t)type_bytes(t);
  void *zeros = data ? NULL : calloc(1, size + 1);
  bool again;
  if (!data && !zeros) exit(1);
  int number = number_of(t, data ? data : zeros, &again);
  str_printf(&r->head, "%s[\"%s\", ", r->count++ ? ", " : "", role);
  text_print_json(&r->head, name);
  str_printf(&r->head, ", \"%s\", [", dtype_name((enum dtype)t->dtype));
  for (int i = 0; i < t->rank; i++) str_printf(&r->head, "%s%lld", i ? ", " : "", (long long)t->dim[i]);
  str_printf(&r->head, "], %d]", number);
  if (!again) str_putn(&r->data, data ? data : zeros, size);
  free(zeros);
}

static bool is_argument(const struct node *n) { return n->op == OP_input || n->op == OP_variable; }

static void put_arguments(struct record *r, const struct graph *g, const struct tensor *values) {
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < g->count; i++)
      if (g->nodes[i]->op == (pass ? OP_variable : OP_input))
        put_tensor(r, pass ? "variable" : "input", g->nodes[i]->name, &g->nodes[i]->type, values[i].data);
}

static void put_bounds(struct record *r, struct arena *a, const struct bounds *b, const struct type *t) {
  struct type wide = type_with_dtype(*t, DT_F64);
  int64_t count = type_count(t);
  double *ends[2] = {arena_new_array(a, (size_t)count, double), arena_new_array(a, (size_t)count, double)};
  for (int64_t e = 0; e < count; e++) {
    double x = tensor_at(&b->value, e);
    ends[0][e] = b->at ? b->at[e].lo : x;
    ends[1][e] = b->at ? b->at[e].hi : x;
  }
  put_tensor(r, "low", "", &wide, ends[0]);
  put_tensor(r, "high", "", &wide, ends[1]);
}

static void put_results(struct record *r, struct arena *a, const struct graph *g, const struct tensor *values,
                        const struct bounds *at) {
  const struct node **assigned = arena_new_array(a, g->count + 1, const struct node *);
  uint8_t *live = graph_live(a, g);
  for (int i = 0; i < g->noutputs; i++) {
    const struct output *o = &g->outputs[i];
    if (o->role == OUTPUT_UPDATE || o->role == OUTPUT_SEND) continue;
    put_tensor(r, text_roles[o->role], o->name, &o->node->type, values[o->node->id].data);
    if (at) put_bounds(r, a, &at[o->node->id], &o->node->type);
  }
  for (uint32_t i = 0; i < g->count; i++)
    if (live[i] && g->nodes[i]->op == OP_assign) assigned[g->nodes[i]->inputs[0]->id] = g->nodes[i];
  for (uint32_t i = 0; i < g->count; i++)
    if (assigned[i])
      put_tensor(r, "variable", g->nodes[i]->name, &g->nodes[i]->type, values[assigned[i]->id].data);
}

/* g with an output for each live value, in the order of the nodes. */
static struct graph *with_nodes(struct arena *a, struct graph *g) {
  struct graph *all = arena_copy(a, g, sizeof *g);
  uint8_t *live = graph_live(a, g);
  all->outputs = NULL;
  all->noutputs = 0;
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (live[i] && !is_argument(n)) graph_add_output(all, OUTPUT_VALUE, n->name, g->nodes[i], 0);
  }
  return all;
}

static struct tensor *evaluated(struct arena *a, const char *name, const struct graph *g,
                                const struct values *inputs, const struct values *variables) {
  struct values after = values_copy(a, variables);
  struct tensor *values = arena_new_array(a, g->count + 1, struct tensor);
  if (!graph_eval(a, g, inputs, &after, values)) give_up(name, "cannot be evaluated");
  return values;
}

static void write_record(struct arena *a, const char *name, const char *tolerance, const struct str *module,
                         const struct record *args, const struct record *results) {
  struct str head = str_make(a);
  str_put(&head, "{\"case\": ");
  text_print_json(&head, name);
  str_printf(&head, ", \"tolerance\": \"%s\", \"module\": %zu, \"args\": [%s], \"results\": [%s]}\n",
             tolerance, module->len, args->head.data, results->head.data);
  fwrite(head.data, 1, head.len, stdout);
  fwrite(module->data, 1, module->len, stdout);
  fwrite(args->data.data, 1, args->data.len, stdout);
  if (fwrite(results->data.data, 1, results->data.len, stdout) != results->data.len || fflush(stdout))
    give_up(name, "cannot be written");
}

static void write_case(struct arena *a, const char *name, const char *tolerance, const struct graph *g,
                       const struct values *inputs, const struct values *variables, const struct bounds *at) {
  struct tensor *values = evaluated(a, name, g, inputs, variables);
  struct str module = module_of(a, name, g);
  struct record args = {str_make(a), str_make(a), 0}, results = {str_make(a), str_make(a), 0};
  put_arguments(&args, g, values);
  put_results(&results, a, g, values, at);
  write_record(a, name, tolerance, &module, &args, &results);
}

void case_write_gradients(const struct asked *q, const char *name, const struct graph *forward,
                          const struct graph *backward, const struct values *inputs,
                          const struct values *variables) {
  if (!case_asked(q, name)) return;
  struct arena *a = arena_create();
  struct str module = module_of(a, name, forward);
  struct record args = {str_make(a), str_make(a), 0}, results = {str_make(a), str_make(a), 0};
  put_arguments(&args, forward, evaluated(a, name, forward, inputs, variables));
  put_results(&results, a, backward, evaluated(a, name, backward, inputs, variables), NULL);
  write_record(a, name, "f64", &module, &args, &results);
  arena_destroy(a);
}

void case_write(const struct asked *q, const char *name, const char *tolerance, struct graph *g,
                const struct values *inputs, const struct values *variables, const struct bounds *at) {
  if (!case_asked(q, name)) return;
  struct arena *a = arena_create();
  write_case(a, name, tolerance, q->nodes ? with_nodes(a, g) : g, inputs, variables, at);
  arena_destroy(a);
}

/* ---- in f64 ---- */

static struct type wide_type(const struct type *t) {
  return t->dtype == DT_F32 ? type_with_dtype(*t, DT_F64) : *t;
}

static void *wide_data(struct arena *a, const struct type *t, const void *data) {
  if (t->dtype != DT_F32) return (void *)(uintptr_t)data;
  int64_t count = type_count(t);
  double *wide = arena_new_array(a, (size_t)count + 1, double);
  for (int64_t i = 0; i < count; i++) wide[i] = (double)((const float *)data)[i];
  return wide;
}

struct values values_wide(struct arena *a, const struct values *v) {
  struct values out = values_make(a);
  for (uint32_t i = 0; i < v->map.count; i++) {
    const struct tensor *t = v->map.entries[i].value;
    struct type wide = wide_type(&t->type);
    values_put(&out, v->map.entries[i].key, &wide, wide_data(a, &t->type, t->data));
  }
  return out;
}

static struct node *wide_node(struct graph *out, const struct node *n, struct node **in, void *arena) {
  struct arena *a = arena;
  struct node proto = *n;
  struct attr *attrs = arena_new_array(a, (size_t)n->nattrs + 1, struct attr);
  proto.inputs = in;
  proto.type = wide_type(&n->type);
  proto.attrs = attrs;
  for (int i = 0; i < n->nattrs; i++) {
    attrs[i] = n->attrs[i];
    if (attrs[i].key == ATTR_value) {
      attrs[i].data = wide_data(a, &n->type, attrs[i].data);
      attrs[i].count = (int)type_bytes(&proto.type);
    } else if (attrs[i].key == ATTR_body)
      attrs[i].body = graph_wide(a, attrs[i].body);
  }
  return graph_node(out, &proto);
}

struct graph *graph_wide(struct arena *a, const struct graph *g) {
  for (uint32_t i = 0; i < g->count; i++)
    if (op_of(g->nodes[i])->dtypes == DTYPE_SINGLE || node_attr(g->nodes[i], ATTR_precision)) return NULL;
  struct graph *out = graph_create_like(a, g);
  struct node **map = arena_new_array(a, g->count + 1, struct node *);
  graph_copy_nodes(a, out, g, NULL, map, wide_node, a);
  graph_copy_outputs(out, g, map);
  return out;
}
