/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that the language has under their names although they are not elementwise: f(operands, attributes). */
#include "frontend/resolve.h"

#include <assert.h>
#include <string.h>

/* Parameters: the operands by their roles, then the attributes. */
int op_params(unsigned op, const char **params, int *required) {
  static const char *const names[] = {"x", "y", "z"};
  const struct op_info *info = op_table[op];
  int n = 0;
  for (; n < info->min_inputs; n++) params[n] = info->roles[n] ? info->roles[n] : names[n];
  *required = n;
  if (info->kind == KIND_ELEMENTWISE) return n;
  for (int k = 0; k < ATTR_COUNT; k++)
    if (info->attrs >> k & 1) params[n++] = attr_name((enum attr_key)k);
  *required = n;
  for (int k = 0; k < ATTR_COUNT; k++)
    if (info->optional_attrs >> k & 1) params[n++] = attr_name((enum attr_key)k);
  return n;
}

bool value_flag(struct resolver *r, const struct value *v, const char *what, bool *out) {
  *out = v->kind == VALUE_BOOL && v->b;
  if (v->kind == VALUE_BOOL || v->kind == VALUE_NONE) return true;
  report(r, v->at, "`%s` must be true or false, not %s", what, value_describe(r->arena, v));
  return false;
}

/* *out becomes v as the attribute `key`. */
static bool attr_of_value(struct resolver *r, const struct value *v, enum attr_key key, int rank,
                          struct attr *out) {
  int axis = 0;
  bool flag;
  switch (attr_rule_of(key)) {
  case RULE_AXIS:
    if (!value_axis(r, v, rank, &axis)) return false;
    *out = attr_int(key, axis);
    return true;
  case RULE_FLAG:
    if (!value_flag(r, v, attr_name(key), &flag)) return false;
    *out = attr_int(key, flag);
    return true;
  case RULE_ANY:
  case RULE_SIZE:
  case RULE_AXES:
  case RULE_PERMUTATION:
  case RULE_SIZES:
  case RULE_WORD: break;
  }
  assert(!"an op that the language has by its name takes axes and flags");
  return false;
}

struct value op_call(struct resolver *r, unsigned op, struct value *args, struct loc loc) {
  const struct op_info *info = op_table[op];
  struct node *in[MAX_LEAF_INPUTS];
  struct attr attrs[MAX_GIVEN];
  const char *params[MAX_GIVEN];
  int required, nattrs = 0, count = op_params(op, params, &required);
  for (int i = 0; i < info->min_inputs; i++)
    if (!(in[i] = tensor_node(r, &args[i], arena_printf(r->arena, "`%s`", params[i])))) return value_error();
  for (int i = info->min_inputs; i < count; i++) {
    enum attr_key key = attr_lookup(params[i], strlen(params[i]));
    if (!attr_of_value(r, &args[i], key, in[0]->type.rank, &attrs[nattrs++])) return value_error();
  }
  if (!dtype_fits(r, op, &args[0], (enum dtype)in[0]->type.dtype, loc)) return value_error();
  if (info->traits & OP_ADDS_UP) in[0] = added_up(r, in[0]);
  return value_tensor(r, build(r->g, op, info->min_inputs, in, nattrs, attrs, NULL), loc);
}
