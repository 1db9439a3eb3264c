/* SPDX-License-Identifier: Apache-2.0 */
/* Random tensors. The stream of numbers belongs to the place in the model: no order of building can change
 * it. */
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"

#include <string.h>

static struct value draw(struct resolver *r, enum op_id op, struct value *args, struct loc loc,
                         const struct role *role) {
  struct type t;
  if (!value_as_type(r, &args[0], &t)) return value_error();
  if (!dtype_is_float((enum dtype)t.dtype)) {
    report(r, args[0].at, "random numbers are f32 or f64, not %s", type_text(r->arena, &t));
    return value_error();
  }
  const char *path = role_path(r, role);
  int64_t stream = (int64_t)(str_hash(STR_HASH_SEED, path, strlen(path)) >> 1);
  struct value step = step_value(r);
  if (step.kind != VALUE_TENSOR) return value_error();
  build_here(r, loc);
  return value_tensor(r, build_random(r->g, op, &t, step.tensor.node, r->options->seed, stream), loc);
}

/* x * scale + shift, leaving out what changes nothing */
static struct value affine(struct resolver *r, struct value x, struct value scale, struct value shift,
                           struct loc loc) {
  struct value one = value_float(1), zero = value_float(0);
  if (x.kind == VALUE_ERROR) return x;
  if (!value_equal(&scale, &one)) {
    struct value v[] = {x, scale};
    x = binary_values(r, OPERATOR_MUL, v, loc);
  }
  if (!value_equal(&shift, &zero)) {
    struct value v[] = {x, shift};
    x = binary_values(r, OPERATOR_ADD, v, loc);
  }
  return x;
}

static struct value or_else(struct value v, double otherwise) {
  return v.kind == VALUE_NONE ? value_float(otherwise) : v;
}

/* random_uniform(f32[10], low = 0, high = 1) */
static struct value run_uniform(struct resolver *r, struct value *args, struct loc loc,
                                const struct role *role) {
  struct value v[] = {or_else(args[2], 1), or_else(args[1], 0)};
  struct value width = binary_values(r, OPERATOR_SUB, v, loc);
  return affine(r, draw(r, OP_random_uniform, args, loc, role), width, v[1], loc);
}

/* random_normal(f32[10], mean = 0, stddev = 1) */
static struct value run_normal(struct resolver *r, struct value *args, struct loc loc,
                               const struct role *role) {
  return affine(r, draw(r, OP_random_normal, args, loc, role), or_else(args[2], 1), or_else(args[1], 0), loc);
}

const struct builtin builtins_random[] = {
    {"random_uniform", {"type", "low", "high"}, 1, run_uniform},
    {"random_normal", {"type", "mean", "stddev"}, 1, run_normal},
    {NULL, {NULL}, 0, NULL},
};
