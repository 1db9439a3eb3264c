/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that many devices run as one program: what the first device does, where all others do the same with rows and
 * copies of their own. The function is the first one's; `replica_id` stands where the devices differ, and what crosses
 * them is a collective.
 *
 * Device k has in the place of a node of the first device the node of its own that stands in the same place of a
 * sum, of the gathered rows, or of the update of its copy of a variable. From there pairs are followed to their
 * operands: op, attributes and types must be the same, but for numbers that grow evenly from device to device, and
 * constants. What is mirrored is the same on all devices, whoever's node it is. */
#include "hlo/emit.h"
#include "ir/ops/op_id.h"
#include "ir/ops/spread.h"

#include "ir/graph/build.h"

#include <string.h>

/* A walk from the outputs to the inputs. */
struct pairing {
  struct hlo_replicas *r;
  const struct graph *g;
  struct diags *d;
  bool ok;
};

static void differ(struct pairing *p, const struct node *n, const char *what) {
  if (p->ok)
    diag_error(p->d, n->loc, "%s cannot be run by %d devices as one program: %s", n->name, p->r->devices,
               what);
  p->ok = false;
}

static bool is_gathering(const struct node *n) { return n->op == OP_all_reduce || n->op == OP_all_gather; }

/* Where the devices' attributes may differ by a number that grows evenly. */
static bool counts(const struct node *n) { return n->op == OP_split || node_is_counted(n); }

static struct node **place_of(const struct pairing *p, int device, const struct node *n) {
  return &p->r->others[(size_t)(device - 1) * p->g->count + n->id];
}

/* Device k has b where the first one has a. */
static void pair(struct pairing *p, int device, const struct node *a, struct node *b) {
  struct node **place = place_of(p, device, a);
  if (a == b) {
    if (a->dist != DIST_MIRRORED) differ(p, a, "others read its value, which is that of one tower");
    return;
  }
  if (*place && *place != b) differ(p, a, "another device has two values in its place");
  *place = b;
}

static bool same_attrs(const struct pairing *p, int device, const struct node *a, const struct node *b) {
  bool same = true;
  for (int key = 0; same && key < ATTR_COUNT; key++) {
    const struct attr *x = node_attr(a, (enum attr_key)key), *y = node_attr(b, (enum attr_key)key);
    if (key == ATTR_offset && counts(a)) {
      const struct node *first = *place_of(p, 1, a);
      int64_t begin = node_int_or(a, ATTR_offset, 0),
              each = node_int_or(first ? first : a, ATTR_offset, 0) - begin;
      same = node_int_or(b, ATTR_offset, 0) == begin + each * device;
    } else if (key != ATTR_of && !(key == ATTR_value && a->op == OP_constant))
      same = x && y ? attr_equal(x, y) : x == y;
  }
  return same;
}

/* The pair's operands are pairs. */
static void follow(struct pairing *p, int device, const struct node *a, const struct node *b) {
  if (a->op != b->op || a->ninputs != b->ninputs) {
    differ(p, a, "another device does something else in its place");
    return;
  }
  if (!type_equal(&a->type, &b->type)) {
    differ(p, a, "it has another shape on another device");
    return;
  }
  if (!same_attrs(p, device, a, b)) differ(p, a, "it is another one on another device");
  for (int i = 0; i < a->ninputs && !is_gathering(a); i++) pair(p, device, a->inputs[i], b->inputs[i]);
  for (int i = 0; i < a->ninputs && is_gathering(a); i++)
    if (a->inputs[i] != b->inputs[i]) differ(p, a, "another device joins other values");
}

/* Operands of all towers: those of the first device, each with its equals. */
static void gather_pairs(struct pairing *p, const struct node *n) {
  struct hlo_replicas *r = p->r;
  bool first_only =
      n->op == OP_all_reduce && strcmp(node_string(n, ATTR_reduction), "only_first_replica") == 0;
  if (n->ninputs != (first_only ? 1 : r->devices * r->towers)) {
    differ(p, n, "it does not join the values of all towers");
    return;
  }
  for (int i = 0; i < (first_only ? 1 : r->towers); i++) {
    r->live[n->inputs[i]->id] = 1;
    for (int k = 1; k < r->devices && !first_only; k++)
      pair(p, k, n->inputs[i], n->inputs[k * r->towers + i]);
  }
}

static int device_of(const struct hlo_replicas *r, const struct node *n) {
  return n->tower >= 0 ? n->tower / r->towers : n->replica >= 0 ? n->replica : 0;
}

static const char *model_name(const struct node *variable) {
  return node_string_or(variable, ATTR_of, variable->name);
}

/* What device k has for a variable of the first device. NULL: nothing. */
static struct node *own_variable(const struct pairing *p, int device, const struct node *v) {
  int tower = v->tower >= 0 ? device * p->r->towers + v->tower : -1;
  for (uint32_t i = 0; i < p->g->count; i++) {
    struct node *n = p->g->nodes[i];
    if (n->op == OP_variable && n->tower == tower && device_of(p->r, n) == device &&
        strcmp(model_name(n), model_name(v)) == 0)
      return n;
  }
  return NULL;
}

static void pair_variable(struct pairing *p, const struct node *v) {
  for (int k = 1; k < p->r->devices; k++) {
    struct node *own = own_variable(p, k, v);
    if (own)
      pair(p, k, v, own);
    else
      differ(p, v, "not every device has a copy of it");
  }
}

static const struct node *update_of(const struct graph *g, const struct node *variable) {
  for (int i = 0; i < g->noutputs; i++)
    if (g->outputs[i].node->op == OP_assign && g->outputs[i].node->inputs[0] == variable)
      return g->outputs[i].node;
  return NULL;
}

static void pair_update(struct pairing *p, const struct node *update) {
  pair_variable(p, update->inputs[0]);
  for (int k = 1; k < p->r->devices && p->ok; k++) {
    const struct node *own = update_of(p->g, *place_of(p, k, update->inputs[0]));
    if (own)
      pair(p, k, update, (struct node *)(uintptr_t)own);
    else
      differ(p, update, "not every device updates its copy");
  }
}

static void begin_at_outputs(struct pairing *p) {
  for (int i = 0; i < p->g->noutputs && p->ok; i++) {
    const struct output *o = &p->g->outputs[i];
    if (o->role == OUTPUT_UPDATE && device_of(p->r, o->node->inputs[0]) > 0) continue;
    if (o->node->op == OP_all_gather) {
      gather_pairs(p, o->node); /* each device gives its rows */
      continue;
    }
    p->r->live[o->node->id] = 1;
    if (o->role == OUTPUT_UPDATE)
      pair_update(p, o->node);
    else if (o->node->dist != DIST_MIRRORED)
      differ(p, o->node, "it is a result, and that of one tower");
  }
}

/* From the last node to the first: whatever reads a node comes behind it. */
static void walk(struct pairing *p) {
  struct hlo_replicas *r = p->r;
  for (uint32_t i = p->g->count; i-- > 0 && p->ok;) {
    const struct node *n = p->g->nodes[i];
    if (!r->live[i]) continue;
    if (device_of(r, n) > 0) differ(p, n, "the first device reads another one's value");
    for (int k = 1; k < r->devices && p->ok; k++)
      if (*place_of(p, k, n)) follow(p, k, n, *place_of(p, k, n));
    if (n->op == OP_variable && p->ok) pair_variable(p, n);
    if (is_gathering(n))
      gather_pairs(p, n);
    else
      for (int k = 0; k < n->ninputs; k++) r->live[n->inputs[k]->id] = 1;
  }
}

/* Inputs that are only read in equal blocks of rows, of which each device has one. */
static void find_split_inputs(struct pairing *p) {
  struct hlo_replicas *r = p->r;
  for (uint32_t i = 0; i < p->g->count; i++)
    r->split[i] = p->g->nodes[i]->op == OP_input && p->g->nodes[i]->type.rank > 0;
  for (uint32_t i = 0; i < p->g->count; i++) {
    const struct node *n = p->g->nodes[i];
    for (int k = 0; r->live[i] && k < n->ninputs; k++) {
      const struct node *from = n->inputs[k];
      int64_t rows = from->type.rank ? from->type.dim[0] : 0, block = rows / r->devices;
      bool whole = n->op != OP_split || rows % r->devices || hlo_growth(r, n) != block ||
                   node_int_or(n, ATTR_offset, 0) + n->type.dim[0] > block;
      if (whole) r->split[from->id] = 0;
    }
  }
}

int64_t hlo_growth(const struct hlo_replicas *r, const struct node *n) {
  const struct node *next = r->others[n->id];
  return next ? node_int_or(next, ATTR_offset, 0) - node_int_or(n, ATTR_offset, 0) : 0;
}

/* Devices that run one program have as many towers each, and towers as many rows. */
static bool are_alike(const struct graph *g, int devices, int towers, struct diags *d) {
  int64_t rows = g->config.batch;
  if (towers % devices) {
    diag_error(d, LOC_NONE, "%d towers cannot be shared evenly by %d devices, which run one program", towers,
               devices);
    diag_help(d, LOC_NONE, "--towers %d gives each of them as many", (towers / devices + 1) * devices);
  } else if (rows % towers) {
    diag_error(d, LOC_NONE,
               "a batch of %lld rows cannot be shared evenly by %d towers, whose devices run one program",
               (long long)rows, towers);
    diag_help(d, LOC_NONE, "--batch %lld gives each of them as many",
              (long long)((rows / towers + 1) * towers));
  }
  return towers % devices == 0 && rows % towers == 0;
}

struct hlo_replicas *hlo_replicas(struct arena *a, const struct graph *g, int devices, struct diags *d) {
  struct hlo_replicas *r = arena_new(a, struct hlo_replicas);
  int towers = g->config.towers ? g->config.towers : 1;
  *r = (struct hlo_replicas){.devices = devices, .towers = towers / devices, .count = g->count};
  r->live = arena_new_array(a, g->count + 1, uint8_t);
  r->split = arena_new_array(a, g->count + 1, uint8_t);
  r->others = arena_new_array(a, (size_t)(devices - 1) * g->count + 1, struct node *);
  struct pairing p = {r, g, d, true};
  if (!are_alike(g, devices, towers, d)) return NULL;
  begin_at_outputs(&p);
  walk(&p);
  if (p.ok) find_split_inputs(&p);
  return p.ok ? r : NULL;
}

/* ---- what differs from device to device ---- */

/* The device's number, as i64. */
static struct hlo_value replica(struct hlo *h) {
  struct type number = type_scalar(DT_I64);
  struct hlo_value v = {h->next++, number};
  str_put(h->out, "    ");
  hlo_print_value(h->out, v);
  str_printf(h->out, " = stablehlo.replica_id : tensor<ui32> loc(#loc%d)\n", h->place);
  struct hlo_value wide = {h->next++, number};
  str_put(h->out, "    ");
  hlo_print_value(h->out, wide);
  str_put(h->out, " = stablehlo.convert ");
  hlo_print_value(h->out, v);
  str_printf(h->out, " : (tensor<ui32>) -> tensor<i64> loc(#loc%d)\n", h->place);
  return wide;
}

struct hlo_value hlo_per_replica(struct hlo *h, int64_t first, int64_t each) {
  struct type number = type_scalar(DT_I64);
  struct hlo_value begin = hlo_integer(h, &number, first);
  if (!h->replicas || !each) return begin;
  return hlo_binary(h, "add", begin, hlo_binary(h, "multiply", replica(h), hlo_integer(h, &number, each)));
}

/* `rows` rows of x, the first of which is the value `begin`. */
static struct hlo_value rows_from(struct hlo *h, struct hlo_value x, struct hlo_value begin, int64_t rows) {
  struct hlo_value in[MAX_RANK + 1] = {x, begin};
  struct type t = x.type, number = type_scalar(DT_I64);
  t.dim[0] = rows;
  for (int i = 1; i < t.rank; i++) in[i + 1] = hlo_integer(h, &number, 0);
  const char *attrs = arena_printf(h->arena, "slice_sizes = %s", hlo_array(h->arena, t.rank, t.dim));
  return hlo_op(h, "dynamic_slice", &t, t.rank + 1, in, attrs, NULL);
}

struct hlo_value hlo_rows_of_replica(struct hlo *h, const struct node *n, struct hlo_value x) {
  int64_t begin = node_int_or(n, ATTR_offset, 0);
  if (h->replicas->split[n->inputs[0]->id]) {
    int64_t from[MAX_RANK] = {begin};
    return type_equal(&x.type, &n->type) ? x : hlo_cut(h, x, &n->type, from);
  }
  return rows_from(h, x, hlo_per_replica(h, begin, hlo_growth(h->replicas, n)), n->type.dim[0]);
}

const void *hlo_constant_of(const struct hlo *h, const struct node *n, int device, bool *other) {
  const struct node *own =
      device ? h->replicas->others[(size_t)(device - 1) * h->replicas->count + n->id] : n;
  const struct attr *first = node_attr(n, ATTR_value), *value = node_attr(own ? own : n, ATTR_value);
  *other = memcmp(first->data, value->data, (size_t)first->count) != 0;
  return value->data;
}

struct hlo_value hlo_row_of_replica(struct hlo *h, struct hlo_value table, const struct type *t) {
  return hlo_shaped(h, rows_from(h, table, hlo_per_replica(h, 0, 1), 1), t);
}

/* ---- collectives ---- */

/* "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>": all of them together. */
static const char *everybody(const struct hlo *h) {
  int n = h->replicas->devices;
  struct str s = str_make(h->arena);
  str_put(&s, "replica_groups = dense<[[");
  for (int i = 0; i < n; i++) str_printf(&s, i ? ", %d" : "%d", i);
  str_printf(&s, "]]> : tensor<1x%dxi64>", n);
  return s.data;
}

struct hlo_value hlo_reduce_all(struct hlo *h, const char *name, struct hlo_value x) {
  return hlo_op(h, "all_reduce", &x.type, 1, &x, everybody(h),
                hlo_joining(h, name, (enum dtype)x.type.dtype));
}

struct hlo_value hlo_gather_all(struct hlo *h, struct hlo_value x) {
  struct type t = x.type;
  t.dim[0] *= h->replicas->devices;
  return hlo_op(h, "all_gather", &t, 1, &x,
                arena_printf(h->arena, "all_gather_dim = 0 : i64, %s", everybody(h)), NULL);
}

struct hlo_value hlo_of_first_replica(struct hlo *h, struct hlo_value x) {
  struct type t = x.type, row = t;
  int64_t begin[MAX_RANK] = {0};
  row.rank = t.rank + 1;
  row.dim[0] = 1;
  for (int i = 0; i < t.rank; i++) row.dim[i + 1] = t.dim[i];
  return hlo_shaped(h, hlo_cut(h, hlo_gather_all(h, hlo_shaped(h, x, &row)), &row, begin), &t);
}
