/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: where values come from. Their types are given, not inferred. */
#include "ir/graph/build.h"

#include <string.h>

#define SOURCE(name_, traits_, ...)                                                   \
  const struct op_info op_##name_ = {.name = #name_,                                  \
                                     .kind = KIND_SOURCE,                             \
                                     .dtypes = DTYPE_CUSTOM,                          \
                                     .traits = OP_TYPED | OP_NO_GRADIENT | (traits_), \
                                     .domain = DOMAIN_NONE,                           \
                                     __VA_ARGS__};

static bool constant_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  int64_t bytes = type_is_symbolic(out) || !type_valid(out) ? -1 : type_bytes(out);
  if (bytes == node_attr(n, ATTR_value)->count) return true;
  *why = arena_printf(a, "a constant of type %s does not have %d bytes", type_text(a, out),
                      node_attr(n, ATTR_value)->count);
  return false;
}
SOURCE(constant, 0, .attrs = ATTR_BIT(value), .infer = constant_infer)

/* A batch from outside; its name is the input's. */
SOURCE(input, OP_NO_CSE | OP_EXTERNAL)
/* The value of a variable before the step; its name is the variable's. */
static bool variable_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  const struct attr *how = node_attr(n, ATTR_aggregation), *when = node_attr(n, ATTR_synchronization);
  enum dtype storage = node_storage(n), narrow = dtype_is_narrow(out->dtype) ? out->dtype : DT_F32;
  if (type_is_symbolic(out))
    *why = arena_printf(a, "a variable cannot depend on the batch: %s", type_text(a, out));
  else if (node_attr(n, ATTR_part) && !node_attr(n, ATTR_of))
    *why = arena_printf(a, "%s is a part and needs of, the name of the variable", n->name);
  else if (when && !how)
    *why = arena_printf(a, "%s is joined on_read and needs an aggregation", n->name);
  else if (when && storage != DT_F32)
    *why = arena_printf(a, "%s is joined on_read, and what is joined is not stored in %s", n->name,
                        dtype_name(storage));
  else if (storage != DT_F32 ? out->dtype != DT_F32 && out->dtype != storage : narrow != DT_F32)
    *why = arena_printf(a, "what is stored in %s is f32 and says so, not %s",
                        dtype_name(storage != DT_F32 ? storage : narrow), type_text(a, out));
  else
    return true;
  return false;
}
SOURCE(variable, OP_NO_CSE | OP_EXTERNAL, .infer = variable_infer,
       .optional_attrs = ATTR_BIT(trainable) | ATTR_BIT(slot) | ATTR_BIT(aggregation) |
                         ATTR_BIT(synchronization) | ATTR_BIT(storage) | ATTR_BIT(of) | ATTR_BIT(part))

/* 0, 1, 2, ... along `axis`, plus `offset` */
static bool iota_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  (void)n;
  if (out->dtype != DT_BOOL) return true;
  *why = arena_printf(a, "iota counts in numbers, not in %s", type_text(a, out));
  return false;
}
SOURCE(iota, 0, .attrs = ATTR_BIT(axis), .optional_attrs = ATTR_BIT(offset), .infer = iota_infer)

/* The number of rows of the global batch, as a scalar. It stays a node when the batch is known (`batch`):
 * kernels take it as an argument, so that another batch size needs no other kernel. */
static bool batch_size_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  (void)n;
  if (out->rank == 0 && out->dtype != DT_BOOL) return true;
  *why = arena_printf(a, "batch_size is a scalar number, not %s", type_text(a, out));
  return false;
}
SOURCE(batch_size, OP_PER_TOWER, .infer = batch_size_infer, .optional_attrs = ATTR_BIT(batch))

/* Which tower this is, from 0. Each tower has its own. */
static bool scalar_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  if (out->rank == 0 && out->dtype != DT_BOOL) return true;
  *why = arena_printf(a, "%s is a scalar number, not %s", op_of(n)->name, type_text(a, out));
  return false;
}
SOURCE(tower_id, OP_PER_TOWER | OP_SOURCE_ONLY, .infer = scalar_infer)
/* How many towers there are. */
SOURCE(tower_count, OP_SOURCE_ONLY, .infer = scalar_infer)

/* Element i is drawn from the stream `key` of `seed` at the given step with counter row * width + offset + i, where i
 * counts in the tensor that has `whole` elements along `axis`, or in the result itself: no matter how the elements lie
 * over batches, towers and devices. */
static bool random_infer(const struct node *n, struct type *out, struct arena *a, const char **why) {
  static const char *const what[] = {"the step", "the number of the first row"};
  const struct attr *axis = node_attr(n, ATTR_axis), *whole = node_attr(n, ATTR_whole);
  for (int i = 0; i < n->ninputs; i++) {
    const struct type *x = &n->inputs[i]->type;
    if (dtype_is_float(out->dtype) && x->rank == 0 && x->dtype == DT_I64) continue;
    *why = arena_printf(a, "random numbers are f32 or f64 and need %s as i64[], not %s from %s", what[i],
                        type_text(a, out), type_text(a, x));
    return false;
  }
  if ((n->ninputs == 2) != (node_attr(n, ATTR_width) != NULL)) {
    *why = "where rows are numbered, each has a width";
    return false;
  }
  if (!axis && !whole) return true;
  struct type t = *out;
  bool ok = axis && whole && axis->i >= 0 && axis->i < out->rank && whole->i >= out->dim[axis->i];
  if (ok) t.dim[axis->i] = whole->i;
  if (ok && !type_is_symbolic(out) && type_valid(&t)) return true;
  *why = arena_printf(a, "%s is no part of a tensor with so many elements along an axis", type_text(a, out));
  return false;
}
#define RANDOM_ATTRS                                                                                   \
  .min_inputs = 1, .max_inputs = 2, .roles = {"step", "row"}, .attrs = ATTR_BIT(key) | ATTR_BIT(seed), \
  .optional_attrs = ATTR_BIT(axis) | ATTR_BIT(offset) | ATTR_BIT(whole) | ATTR_BIT(width),             \
  .infer = random_infer
SOURCE(random_uniform, 0, RANDOM_ATTRS)
SOURCE(random_normal, 0, RANDOM_ATTRS)
