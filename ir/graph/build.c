/* SPDX-License-Identifier: Apache-2.0 */
/* The builder: infer, fold, find an equal node, name, append. */
#include "ir/graph/build.h"

#include "ir/ops/op_id.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- identity ---- */

static uint64_t attr_digest(uint64_t h, const struct attr *a);

/* Of a body its nodes, whatever they are called. */
static uint64_t body_digest(uint64_t h, const struct graph *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    const struct node *n = body->nodes[i];
    h = hash_word(h, (uint64_t)n->op << 16 | (uint64_t)n->type.dtype << 8 | n->type.rank);
    h = str_digest(h, n->type.dim, sizeof *n->type.dim * n->type.rank);
    for (int k = 0; k < n->ninputs; k++) h = hash_word(h, n->inputs[k]->id);
    for (int k = 0; k < n->nattrs; k++) h = attr_digest(h, &n->attrs[k]);
  }
  for (int i = 0; i < body->noutputs; i++) h = hash_word(h, body->outputs[i].node->id);
  return h;
}

bool graph_alike(const struct graph *a, const struct graph *b) {
  if (a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; i++) {
    const struct node *x = a->nodes[i], *y = b->nodes[i];
    if (x->op != y->op || !type_equal(&x->type, &y->type) || x->ninputs != y->ninputs ||
        x->nattrs != y->nattrs || x->device != y->device)
      return false;
    for (int k = 0; k < x->ninputs; k++)
      if (x->inputs[k]->id != y->inputs[k]->id) return false;
    for (int k = 0; k < x->nattrs; k++)
      if (!attr_equal(&x->attrs[k], &y->attrs[k])) return false;
  }
  return true;
}

static bool body_equal(const struct graph *a, const struct graph *b) {
  if (a == b) return true;
  if (a->noutputs != b->noutputs || !graph_alike(a, b)) return false;
  for (int i = 0; i < a->noutputs; i++)
    if (a->outputs[i].node->id != b->outputs[i].node->id) return false;
  return true;
}

static uint64_t attr_digest(uint64_t h, const struct attr *a) {
  h = hash_word(h, (uint64_t)a->key);
  switch (attr_kind_of(a->key)) {
  case ATTR_INT: return hash_word(h, (uint64_t)a->i);
  case ATTR_FLOAT: return str_digest(h, &a->f, sizeof a->f);
  case ATTR_INTS: return str_digest(h, a->ints, sizeof *a->ints * (size_t)a->count);
  case ATTR_STRING: return str_digest(h, a->string, strlen(a->string));
  case ATTR_DATA: return str_digest(h, a->data, (size_t)a->count);
  case ATTR_BODY: return body_digest(h, a->body);
  }
  return h;
}

/* Names of nodes are made of this one: it is the same on all machines, and stays as it is. */
static uint64_t attr_hash(uint64_t h, const struct attr *a) {
  h = str_hash(h, &a->key, sizeof a->key);
  switch (attr_kind_of(a->key)) {
  case ATTR_INT: return str_hash(h, &a->i, sizeof a->i);
  case ATTR_FLOAT: return str_hash(h, &a->f, sizeof a->f);
  case ATTR_INTS: return str_hash(h, a->ints, sizeof *a->ints * (size_t)a->count);
  case ATTR_STRING: return str_hash(h, a->string, strlen(a->string));
  case ATTR_DATA: return str_hash(h, a->data, (size_t)a->count);
  case ATTR_BODY: return body_digest(h, a->body);
  }
  return h;
}

bool attr_equal(const struct attr *a, const struct attr *b) {
  if (a->key != b->key || a->count != b->count) return false;
  switch (attr_kind_of(a->key)) {
  case ATTR_INT: return a->i == b->i;
  case ATTR_FLOAT: return memcmp(&a->f, &b->f, sizeof a->f) == 0;
  case ATTR_INTS: return memcmp(a->ints, b->ints, sizeof *a->ints * (size_t)a->count) == 0;
  case ATTR_STRING: return strcmp(a->string, b->string) == 0;
  case ATTR_DATA: return memcmp(a->data, b->data, (size_t)a->count) == 0;
  case ATTR_BODY: return body_equal(a->body, b->body);
  }
  return false;
}

/* Ids instead of addresses: the table's order never shows, but a debugger thanks for it. */
static uint32_t node_hash(const struct node *n) {
  uint64_t h = hash_word(STR_HASH_SEED, (uint64_t)n->op << 16 | (uint64_t)n->type.dtype << 8 | n->type.rank);
  h = str_digest(h, n->type.dim, sizeof *n->type.dim * n->type.rank);
  h = hash_word(h, (uint64_t)(unsigned)n->tower << 32 | (unsigned)n->replica);
  h = hash_word(h, (uint64_t)(unsigned)n->device);
  for (int i = 0; i < n->ninputs; i++) h = hash_word(h, n->inputs[i]->id);
  for (int i = 0; i < n->nattrs; i++) h = attr_digest(h, &n->attrs[i]);
  if (op_of(n)->traits & OP_NO_CSE) h = str_digest(h, n->name, strlen(n->name));
  return (uint32_t)(h >> 32);
}

static bool node_equal(const struct node *a, const struct node *b) {
  if (a->op != b->op || !type_equal(&a->type, &b->type) || a->dist != b->dist || a->ninputs != b->ninputs ||
      a->nattrs != b->nattrs || a->tower != b->tower || a->replica != b->replica || a->device != b->device ||
      !str_same(a->want, b->want))
    return false;
  if ((op_of(a)->traits & OP_NO_CSE) && strcmp(a->name, b->name) != 0) return false;
  for (int i = 0; i < a->ninputs; i++)
    if (a->inputs[i] != b->inputs[i]) return false;
  for (int i = 0; i < a->nattrs; i++)
    if (!attr_equal(&a->attrs[i], &b->attrs[i])) return false;
  return true;
}

/* Where a node equal to n stands, or would. */
static struct graph_slot *table_slot(struct graph *g, const struct node *n, uint32_t hash) {
  uint32_t mask = g->table_size - 1;
  for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
    struct graph_slot *slot = &g->table[i];
    if (!slot->index) return slot;
    if (slot->hash == hash && node_equal(g->nodes[slot->index - 1], n)) return slot;
  }
}

static void table_grow(struct graph *g, uint32_t size) {
  struct graph_slot *old = g->table;
  uint32_t nold = g->table_size;
  g->table_size = size;
  g->table = arena_new_array(g->arena, g->table_size, struct graph_slot);
  for (uint32_t i = 0; i < nold; i++) {
    if (!old[i].index) continue;
    uint32_t at = old[i].hash & (g->table_size - 1);
    while (g->table[at].index) at = (at + 1) & (g->table_size - 1);
    g->table[at] = old[i];
  }
}

/* For one node more. */
static void table_room(struct graph *g) {
  if (2 * (g->count + 1) >= g->table_size) table_grow(g, g->table_size ? 2 * g->table_size : 64);
}

const struct attr *node_attrs_copy(struct arena *a, const struct node *n) {
  static const struct attr none; /* so that nobody copies from NULL */
  if (!n->nattrs) return &none;
  struct attr *attrs = arena_copy(a, n->attrs, sizeof *attrs * (size_t)n->nattrs);
  for (int i = 0; i < n->nattrs; i++) switch (attr_kind_of(attrs[i].key)) {
    case ATTR_INTS:
      attrs[i].ints = arena_copy(a, attrs[i].ints, sizeof(int64_t) * (size_t)attrs[i].count);
      break;
    case ATTR_DATA: attrs[i].data = arena_copy(a, attrs[i].data, (size_t)attrs[i].count); break;
    case ATTR_STRING: attrs[i].string = arena_strdup(a, attrs[i].string); break;
    case ATTR_BODY: /* that of a fused node lives as long as all that is made of it */
      if (n->op == OP_scan) attrs[i].body = graph_copy(a, attrs[i].body);
      break;
    case ATTR_INT:
    case ATTR_FLOAT: break;
    }
  return attrs;
}

const char *graph_keep_text(struct graph *g, const char *text) {
  enum { KEPT = 64 };
  if (!text || !*text) return text ? "" : NULL;
  if (!g->texts) g->texts = arena_new_array(g->arena, KEPT, const char *);
  const char **last = &g->texts[str_digest(STR_HASH_SEED, text, strlen(text)) >> 32 & (KEPT - 1)];
  if (!*last || strcmp(*last, text) != 0) *last = arena_strdup(g->arena, text);
  return *last;
}

/* A name with what the table of names knows it by. */
struct hashed_name {
  const char *text;
  size_t len;
  uint32_t hash;
};

static struct hashed_name name_of(const char *text) {
  size_t len = strlen(text);
  return (struct hashed_name){text, len, map_hash(text, len)};
}

static bool is_taken(const struct graph *g, const struct hashed_name *name) {
  return map_get_hashed(&g->names, name->text, name->len, name->hash) != NULL;
}

static void nodes_grow(struct graph *g, uint32_t cap) {
  struct node **more = arena_room(g->arena, cap * sizeof *more);
  if (g->count) memcpy(more, g->nodes, sizeof *more * g->count);
  g->nodes = more;
  g->cap = cap;
}

static struct node *append(struct graph *g, const struct node *proto, const struct hashed_name *name,
                           uint32_t hash, struct graph_slot *slot) {
  if (g->count == g->cap) nodes_grow(g, g->cap ? 2 * g->cap : 64);
  size_t inputs = sizeof *proto->inputs * (size_t)proto->ninputs;
  struct node *n = arena_room(g->arena, sizeof *n + inputs);
  *n = *proto;
  n->id = g->count;
  n->inputs = (struct node **)(n + 1);
  if (inputs) memcpy(n->inputs, proto->inputs, inputs);
  n->attrs = node_attrs_copy(g->arena, proto);
  n->name = arena_strndup(g->arena, name->text, name->len);
  n->want = graph_keep_text(g, proto->want);
  n->why = (struct reason){graph_keep_text(g, proto->why.rule), graph_keep_text(g, proto->why.over)};
  n->origin = graph_keep_text(g, proto->origin);
  n->gradient_of = graph_keep_text(g, proto->gradient_of);
  n->own = node_is_own(n);
  g->nodes[g->count++] = n;
  *slot = (struct graph_slot){hash, g->count};
  map_put_hashed(&g->names, n->name, name->len, name->hash, n);
  return n;
}

void graph_reserve(struct graph *g, uint32_t count) {
  uint32_t size = g->table_size ? g->table_size : 64;
  while (size < 2 * (count + 1)) size *= 2;
  if (size > g->table_size) table_grow(g, size);
  if (count > g->cap) nodes_grow(g, count);
  map_reserve(&g->names, count);
}

struct node *graph_node(struct graph *g, const struct node *proto) {
  table_room(g);
  uint32_t hash = node_hash(proto);
  struct graph_slot *slot = table_slot(g, proto, hash);
  if (slot->index) return g->nodes[slot->index - 1];
  struct hashed_name name = name_of(proto->name);
  return append(g, proto, &name, hash, slot);
}

bool graph_rename(struct graph *g, struct node *n, const char *name) {
  struct node *holder = graph_find(g, name);
  if (holder) return holder == n;
  n->name = arena_strdup(g->arena, name);
  map_put_owned(&g->names, n->name, n);
  return true;
}

/* ---- types ---- */

static bool infer_dtype(struct graph *g, struct node *n, const char **why) {
  const struct op_info *op = op_of(n);
  if (op->dtypes == DTYPE_CUSTOM || n->ninputs == 0) return true;
  enum dtype d = n->inputs[0]->type.dtype;
  bool taken = (op->traits & OP_TAKES_NARROW) || (d == DT_BF16 && (op->traits & OP_TAKES_BF16));
  if (dtype_is_narrow(d) && !taken) {
    *why = arena_printf(g->arena, "%s does not compute with %s: cast it to f32", op->name, dtype_name(d));
    return false;
  }
  for (int i = 1; i < n->ninputs; i++)
    if (n->inputs[i]->type.dtype != d) {
      *why = arena_printf(g->arena, "%s needs operands of one type, not %s and %s", op->name,
                          type_text(g->arena, &n->inputs[0]->type), type_text(g->arena, &n->inputs[i]->type));
      return false;
    }
  bool ok = true;
  const char *wanted = "";
  switch (op->dtypes) {
  case DTYPE_NUMBER: ok = d != DT_BOOL, wanted = "a number"; break;
  case DTYPE_FLOAT:
  case DTYPE_TEST: ok = dtype_is_float(d), wanted = "f32 or f64"; break;
  case DTYPE_SINGLE: ok = d == DT_F32, wanted = "f32"; break;
  case DTYPE_BOOL: ok = d == DT_BOOL, wanted = "bool"; break;
  case DTYPE_INTEGER: ok = !dtype_is_float(d) && d != DT_BOOL, wanted = "an integer"; break;
  case DTYPE_INTBOOL: ok = !dtype_is_float(d), wanted = "an integer or bool"; break;
  case DTYPE_ANY:
  case DTYPE_COMPARE:
  case DTYPE_CUSTOM: break;
  }
  if (!ok) {
    *why = arena_printf(g->arena, "%s needs %s, not %s", op->name, wanted,
                        type_text(g->arena, &n->inputs[0]->type));
    return false;
  }
  if (!(op->traits & OP_TYPED))
    n->type.dtype = op->dtypes == DTYPE_COMPARE || op->dtypes == DTYPE_TEST ? DT_BOOL : (uint8_t)d;
  return true;
}

bool node_infer(struct graph *g, struct node *n, const char **why) {
  const struct op_info *op = op_of(n);
  if (n->ninputs < op->min_inputs || (op->max_inputs >= 0 && n->ninputs > op->max_inputs)) {
    *why = arena_printf(g->arena, "%s takes %d operand%s, not %d", op->name, op->min_inputs,
                        op->min_inputs == 1 ? "" : "s", n->ninputs);
    return false;
  }
  enum attr_key which;
  const char *wrong = attrs_check(n, &which, g->arena);
  if (wrong) {
    *why = wrong;
    return false;
  }
  if (!infer_dtype(g, n, why)) return false;
  if (op->kind == KIND_ELEMENTWISE) {
    for (int i = 1; i < n->ninputs; i++)
      if (!shape_equal(&n->inputs[0]->type, &n->inputs[i]->type)) {
        *why =
            arena_printf(g->arena, "%s needs equal shapes, not %s and %s", op->name,
                         type_text(g->arena, &n->inputs[0]->type), type_text(g->arena, &n->inputs[i]->type));
        return false;
      }
    enum dtype d = n->type.dtype;
    n->type = type_with_dtype(n->inputs[0]->type, d);
  }
  if (op->infer && !op->infer(n, &n->type, g->arena, why)) return false;
  if (!type_valid(&n->type)) {
    *why = arena_printf(g->arena, "the shape %s is too large, or depends on B twice",
                        type_text(g->arena, &n->type));
    return false;
  }
  return true;
}

/* ---- names ---- */

static const char *last_part(const char *name) {
  const char *dot = strrchr(name, '.'), *slash = strrchr(name, '/');
  const char *cut = dot > slash ? dot : slash;
  return cut ? cut + 1 : name;
}

/* A name is lengthened by the operands that tell it from others, but not by all of a long list. */
enum { MAX_TELLING = 8 };

/* The wanted name and what the node is, in a number. */
static struct hashed_name number_name(struct graph *g, const char *wanted, const struct node *n) {
  /* Content decides, never order: the same node has the same name in every compilation. */
  int64_t dims[MAX_RANK] = {0}; /* sizes behind the last axis are nobody's business, and so is padding */
  for (int i = 0; i < n->type.rank; i++) dims[i] = n->type.dim[i];
  uint64_t h = str_hash(STR_HASH_SEED, (uint8_t[8]){n->type.dtype, n->type.rank}, 8);
  h = str_hash(h, dims, sizeof dims);
  for (int i = 0; i < n->nattrs; i++) h = attr_hash(h, &n->attrs[i]);
  for (int i = 0; i < n->ninputs; i++) h = str_hash(h, n->inputs[i]->name, strlen(n->inputs[i]->name) + 1);
  for (;;) {
    struct hashed_name name = name_of(arena_printf(g->arena, "%s.%08x", wanted, (unsigned)(h >> 32)));
    if (!is_taken(g, &name)) return name;
    h = str_hash(h, "again", 5);
  }
}

/* The wanted name, lengthened by what tells the node from the one that has it. */
static struct hashed_name free_name(struct graph *g, const char *wanted, const struct node *n) {
  struct hashed_name name = name_of(wanted);
  for (int i = 0; is_taken(g, &name) && i < n->ninputs && i < MAX_TELLING; i++)
    name = name_of(arena_printf(g->arena, "%s.%s", name.text, last_part(n->inputs[i]->name)));
  return is_taken(g, &name) ? number_name(g, wanted, n) : name;
}

static const char *scope_name(struct graph *g, const char *op) {
  return g->at.scope[0] ? arena_printf(g->arena, "%s.%s", g->at.scope, op) : op;
}

/* ---- folding ---- */

static bool is_nan(const struct tensor *t, int64_t i) {
  if (t->type.dtype == DT_F32) return isnan(((const float *)t->data)[i]);
  return t->type.dtype == DT_F64 && isnan(((const double *)t->data)[i]);
}

/* What is NaN of numbers becomes the usual NaN: processors differ in its sign, and all make the same graph. */
static void make_nans_usual(const struct node *n, const struct tensor *in, struct tensor *out) {
  for (int64_t i = 0; i < type_count(&out->type); i++) {
    bool given = !is_nan(out, i);
    for (int k = 0; k < n->ninputs; k++) given = given || is_nan(&in[k], i);
    if (given) continue;
    if (out->type.dtype == DT_F32)
      ((float *)out->data)[i] = NAN;
    else
      ((double *)out->data)[i] = (double)NAN;
  }
}

/* A small constant of constants is computed now; floats by the very bodies that the kernels run. */
static struct node *fold_constants(struct graph *g, const struct node *n) {
  if (op_of(n)->kind != KIND_ELEMENTWISE || type_is_symbolic(&n->type) || type_count(&n->type) > 64)
    return NULL;
  struct tensor in[4];
  for (int i = 0; i < n->ninputs; i++) {
    if (!node_is(n->inputs[i], OP_constant)) return NULL;
    in[i] = (struct tensor){n->inputs[i]->type, (void *)(uintptr_t)node_attr(n->inputs[i], ATTR_value)->data};
  }
  if (node_is(n, OP_identity) || node_is(n, OP_stop_gradient)) return n->inputs[0];
  struct tensor out = {n->type, arena_alloc(g->arena, (size_t)type_bytes(&n->type) + 1)};
  if (!node_eval(n, in, &out, 0)) return NULL;
  make_nans_usual(n, in, &out);
  return build_constant(g, &n->type, out.data);
}

/* op(broadcast(a), broadcast(b)) of scalars is broadcast(op(a, b)): computed once instead of per element. */
static struct node *fold_broadcasts(struct graph *g, const struct node *n) {
  if (op_of(n)->kind != KIND_ELEMENTWISE || n->ninputs == 0 || n->type.rank == 0) return NULL;
  struct node *scalars[4];
  for (int i = 0; i < n->ninputs; i++) {
    struct node *x = n->inputs[i];
    if (!node_is(x, OP_broadcast) || x->inputs[0]->type.rank != 0) return NULL;
    scalars[i] = x->inputs[0];
  }
  struct type t = type_scalar(n->type.dtype);
  struct node *x = build(g, n->op, n->ninputs, scalars, n->nattrs, n->attrs, &t);
  return build_broadcast(g, x, &n->type, NULL);
}

static int attr_order(const void *a, const void *b) {
  return (int)((const struct attr *)a)->key - (int)((const struct attr *)b)->key;
}

/* Without flags that are 0, as those are that are not there. Returns how many. */
static int attrs_given(const struct node *n, struct attr *out) {
  int count = 0;
  for (int i = 0; i < n->nattrs; i++) {
    const struct attr *a = &n->attrs[i];
    bool none = attr_rule_of(a->key) == RULE_FLAG && a->i == 0 && op_of(n)->optional_attrs >> a->key & 1;
    if (!none) out[count++] = *a;
  }
  return count;
}

static struct node *construct(struct graph *g, const char *name, struct node *n, const struct type *type) {
  for (int i = 0; i < n->ninputs; i++)
    if (!n->inputs[i]) return NULL;
  struct attr sorted[ATTR_COUNT];
  if (n->nattrs) {
    n->nattrs = attrs_given(n, sorted);
    qsort(sorted, (size_t)n->nattrs, sizeof *sorted, attr_order);
    n->attrs = sorted;
  }
  if (type) n->type = *type;
  const char *why = NULL;
  if (!node_infer(g, n, &why)) {
    diag_error(g->diags, n->loc, "%s", why);
    return NULL;
  }
  const struct op_info *op = op_of(n);
  if ((op->traits & OP_COMMUTATIVE) && n->inputs[0]->id > n->inputs[1]->id) {
    /* One order for equal sums and products. */
    struct node *first = n->inputs[1];
    n->inputs[1] = n->inputs[0];
    n->inputs[0] = first;
  }
  bool computed = !dtype_is_narrow(n->type.dtype); /* of which there are no constants and no broadcasts */
  struct node *folded = computed ? fold_constants(g, n) : NULL;
  if (!folded && computed && !g->literal) folded = fold_broadcasts(g, n);
  if (!folded && op->fold && !g->literal) folded = op->fold(g, n);
  if (folded) return folded;
  n->name = name;
  table_room(g);
  uint32_t hash = node_hash(n);
  struct graph_slot *slot = table_slot(g, n, hash);
  if (slot->index) return g->nodes[slot->index - 1];
  struct hashed_name given = free_name(g, name, n);
  if (n->op == OP_variable && strcmp(given.text, name) != 0) {
    /* Its name is what the world knows it by. */
    diag_error(g->diags, n->loc, "variable %s cannot be called so: another node has the name", name);
    return NULL;
  }
  return append(g, n, &given, hash, slot);
}

#define MAX_STACK_INPUTS 8

struct node *build_named(struct graph *g, const char *name, unsigned op, int ninputs,
                         struct node *const *inputs, int nattrs, const struct attr *attrs,
                         const struct type *type) {
  struct node *few[MAX_STACK_INPUTS];
  struct node **in =
      ninputs <= MAX_STACK_INPUTS ? few : arena_new_array(g->arena, (size_t)ninputs, struct node *);
  if (ninputs) memcpy(in, inputs, sizeof *in * (size_t)ninputs);
  struct node n = {.op = op,
                   .ninputs = ninputs,
                   .inputs = in,
                   .nattrs = nattrs,
                   .attrs = attrs,
                   .loc = g->at.loc,
                   .trail = g->at.trail,
                   .want = g->at.want,
                   .why = g->at.why,
                   .origin = g->at.origin,
                   .tower = g->at.tower,
                   .replica = g->at.replica,
                   .device = g->at.device,
                   .pack = g->at.pack,
                   .backward = g->at.backward,
                   .dist = g->at.dist};
  return construct(g, name, &n, type);
}

struct node *build(struct graph *g, unsigned op, int ninputs, struct node *const *inputs, int nattrs,
                   const struct attr *attrs, const struct type *type) {
  return build_named(g, scope_name(g, op_table[op]->name), op, ninputs, inputs, nattrs, attrs, type);
}

void build_at(struct graph *g, const struct node *n) {
  g->at = (struct build_context){.scope = n->name,
                                 .loc = n->loc,
                                 .trail = n->trail,
                                 .want = n->want,
                                 .why = n->why,
                                 .origin = n->origin,
                                 .tower = n->tower,
                                 .replica = n->replica,
                                 .device = n->device,
                                 .pack = n->pack,
                                 .backward = n->backward,
                                 .dist = n->dist};
}

void build_takes_name(struct graph *g, struct node *made, const struct node *n, uint32_t before) {
  if (!made || made->id < before) return;
  if (strcmp(made->name, n->name) != 0 && !graph_find(g, n->name)) graph_rename(g, made, n->name);
  if (!made->gradient_of) made->gradient_of = graph_keep_text(g, n->gradient_of);
}

struct node *build_like(struct graph *g, const struct node *n, struct node *const *inputs,
                        const struct type *type) {
  struct build_context saved = g->at;
  build_at(g, n);
  bool typed = op_of(n)->traits & OP_TYPED;
  uint32_t before = g->count;
  struct node *made = build_named(g, n->name, n->op, n->ninputs, inputs, n->nattrs, n->attrs,
                                  type    ? type
                                  : typed ? &n->type
                                          : NULL);
  build_takes_name(g, made, n, before);
  g->at = saved;
  return made;
}
