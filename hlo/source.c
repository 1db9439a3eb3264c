/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: constants, counting, and random numbers by the same integers as everywhere. */
#include "hlo/rules.h"

#include "ir/ops/spread.h"

#include <string.h>

/* ---- constants ---- */

static uint64_t element_bits(enum dtype d, const char *data, int64_t i) {
  uint64_t bits = 0;
  size_t size = (size_t)dtype_size(d);
  memcpy(&bits, data + (size_t)i * size, size); /* little-endian, as all that dgc runs on */
  return bits;
}

/* All bytes as they lie in memory. */
static struct hlo_value print_bytes(struct hlo *h, const struct type *t, const void *data, int count) {
  struct hlo_value v = {h->next++, *t};
  str_put(h->out, "    ");
  hlo_print_value(h->out, v);
  str_put(h->out, " = stablehlo.constant dense<\"0x");
  for (int i = 0; i < count; i++) str_printf(h->out, "%02X", ((const unsigned char *)data)[i]);
  str_printf(h->out, "\"> : %s loc(#loc%d)\n", hlo_type_text(h->arena, t), h->place);
  return v;
}

/* Each device has its own: rows of a table. */
static bool replica_constant(struct hlo *h, const struct node *n, struct hlo_value *out) {
  const struct attr *value = node_attr(n, ATTR_value);
  struct type t = n->type, table = {.dtype = t.dtype == DT_BOOL ? DT_U8 : t.dtype, .rank = t.rank + 1};
  bool differ = false, other = false;
  int devices = h->replicas ? h->replicas->devices : 0;
  for (int k = 1; k < devices; k++) {
    hlo_constant_of(h, n, k, &other);
    differ |= other;
  }
  if (!differ) return false;
  char *all = arena_alloc(h->arena, (size_t)value->count * (size_t)devices);
  for (int k = 0; k < devices; k++)
    memcpy(all + (size_t)k * (size_t)value->count, hlo_constant_of(h, n, k, &other), (size_t)value->count);
  table.dim[0] = devices;
  for (int i = 0; i < t.rank; i++) table.dim[i + 1] = t.dim[i];
  struct type row = type_with_dtype(t, (enum dtype)table.dtype);
  *out = hlo_row_of_replica(h, print_bytes(h, &table, all, value->count * devices), &row);
  if (t.dtype == DT_BOOL) *out = hlo_convert_all(h, DT_BOOL, *out);
  return true;
}

bool hlo_constant(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  (void)in;
  if (replica_constant(h, n, out)) return true;
  const struct attr *value = node_attr(n, ATTR_value);
  enum dtype d = (enum dtype)n->type.dtype;
  int size = dtype_size(d);
  bool equal = true;
  for (int i = size; i < value->count && equal; i += size)
    equal = memcmp(value->data, (const char *)value->data + i, (size_t)size) == 0;
  if (equal) {
    *out = hlo_bits(h, &n->type, value->count ? element_bits(d, value->data, 0) : 0);
  } else if (d == DT_BOOL) { /* which MLIR packs in a way of its own */
    struct type bytes = type_with_dtype(n->type, DT_U8);
    *out = hlo_convert_all(h, DT_BOOL, print_bytes(h, &bytes, value->data, value->count));
  } else
    *out = print_bytes(h, &n->type, value->data, value->count);
  return true;
}

/* ---- counting ---- */

/* The node's offset, which may be another one on each device, added to each element. */
static struct hlo_value add_offset(struct hlo *h, const struct node *n, struct hlo_value x) {
  int64_t offset = node_int_or(n, ATTR_offset, 0), each = h->replicas ? hlo_growth(h->replicas, n) : 0;
  if (each)
    return hlo_binary(h, "add", x, hlo_repeated(h, hlo_per_replica(h, offset, each), &x.type, 0, NULL));
  return offset ? hlo_binary(h, "add", x, hlo_integer(h, &x.type, offset)) : x;
}

bool hlo_iota(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  (void)in;
  struct type t = hlo_type(h, n), wide = type_with_dtype(t, DT_I64);
  struct hlo_value i = hlo_count(h, &wide, node_int(n, ATTR_axis));
  i = add_offset(h, n, i);
  *out = hlo_convert(h, (enum dtype)t.dtype, i);
  return true;
}

bool hlo_batch_size(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  (void)in;
  *out = hlo_integer(h, &n->type, node_int_or(n, ATTR_batch, h->batch));
  return true;
}

/* A source graph is one tower's. */
bool hlo_tower_id(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  (void)in;
  *out = hlo_integer(h, &n->type, 0);
  return true;
}

bool hlo_tower_count(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  (void)in;
  *out = hlo_integer(h, &n->type, 1);
  return true;
}

/* ---- random numbers ---- */

/* The number of each element of t among those of `whole`, as i64. */
static struct hlo_value numbers_of(struct hlo *h, const struct type *t, const struct type *whole) {
  struct type wide = type_with_dtype(*t, DT_I64), flat = type_scalar(DT_I64);
  struct hlo_value sum;
  if (shape_equal(t, whole) && t->rank) {
    flat = (struct type){.dtype = DT_I64, .rank = 1, .dim = {type_count(t)}};
    sum = hlo_shaped(h, hlo_count(h, &flat, 0), &wide);
  } else
    sum = hlo_integer(h, &wide, 0);
  int64_t stride = 1;
  for (int axis = t->rank; axis-- > 0 && !shape_equal(t, whole); stride *= whole->dim[axis]) {
    struct hlo_value i = hlo_count(h, &wide, axis);
    sum = hlo_binary(h, "add", sum, hlo_binary(h, "multiply", i, hlo_integer(h, &wide, stride)));
  }
  return sum;
}

typedef sval random_body(struct sprog *p, enum dtype d, sval seed, sval stream, sval step, sval element);

static bool draw(struct hlo *h, const struct node *n, random_body *body, const struct hlo_value *in,
                 struct hlo_value *out) {
  struct type t = hlo_type(h, n), wide = type_with_dtype(t, DT_I64), whole = random_whole(n);
  struct sprog p = sprog_make(h->arena);
  sval seed = s_int(&p, DT_I64, node_int(n, ATTR_seed)), stream = s_int(&p, DT_I64, node_int(n, ATTR_key));
  sval steps = s_arg(&p, 0, DT_I64), element = s_arg(&p, 1, DT_I64);
  sval result = body(&p, (enum dtype)t.dtype, seed, stream, steps, element);
  struct hlo_value args[2] = {hlo_repeated(h, in[0], &wide, 0, NULL)};
  args[1] = add_offset(h, n, numbers_of(h, &t, &whole));
  if (n->ninputs > 1) {
    struct hlo_value width = hlo_integer(h, &in[1].type, node_int(n, ATTR_width));
    struct hlo_value before = hlo_binary(h, "multiply", in[1], width);
    args[1] = hlo_binary(h, "add", args[1], hlo_repeated(h, before, &wide, 0, NULL));
  }
  sprog_order(&p, &result, 1);
  *out = hlo_program(h, &p, result, &t, args);
  return true;
}

bool hlo_random_uniform(struct hlo *h, const struct node *n, const struct hlo_value *in,
                        struct hlo_value *out) {
  return draw(h, n, m_random_uniform, in, out);
}

bool hlo_random_normal(struct hlo *h, const struct node *n, const struct hlo_value *in,
                       struct hlo_value *out) {
  return draw(h, n, m_random_normal, in, out);
}
