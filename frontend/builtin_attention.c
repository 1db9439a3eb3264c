/* SPDX-License-Identifier: Apache-2.0 */
/* dot_product_attention: what the leaf of it takes, as arguments. */
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"

#include <math.h>

/* q times what makes the leaf's scale the given one. NULL after an error. */
static struct node *scaled(struct resolver *r, struct node *q, const struct value *scale) {
  if (scale->kind == VALUE_NONE || q->type.rank != 4 || q->type.dim[3] < 1) return q;
  if (scale->kind != VALUE_FLOAT && scale->kind != VALUE_INT) {
    if (scale->kind != VALUE_ERROR)
      report(r, scale->at, "`scale` must be a number, not %s", value_describe(r->arena, scale));
    return NULL;
  }
  double usual = sqrt((double)q->type.dim[3]);
  double by = scale->kind == VALUE_INT ? (double)scale->i : scale->f;
  return by * usual == 1 ? q : build2(r->g, OP_mul, q, build_fill(r->g, &q->type, by * usual));
}

static struct value run_attention(struct resolver *r, struct value *args, struct loc loc,
                                  const struct role *role) {
  static const char *const names[] = {"`q`", "`k`", "`v`"};
  const struct value *mask = &args[4];
  struct node *in[4];
  struct attr causal = attr_int(ATTR_causal, 1);
  bool is_causal, bf16;
  int count = 3;
  (void)role;
  for (int i = 0; i < 3; i++)
    if (!(in[i] = tensor_node(r, &args[i], names[i]))) return value_error();
  if (!value_flag(r, &args[3], "causal", &is_causal) || !rounds_operands(r, args, &args[6], loc, &bf16))
    return value_error();
  for (int i = 0; i < 3 && bf16; i++)
    if (in[i]->type.dtype == DT_F32) in[i] = build1(r->g, OP_round_bf16, in[i]);
  if (!(in[0] = scaled(r, in[0], &args[5]))) return value_error();
  if (mask->kind != VALUE_NONE && !(in[count++] = tensor_node(r, mask, "`mask`"))) return value_error();
  return value_tensor(r, build(r->g, OP_attention, count, in, is_causal, &causal, NULL), loc);
}

const struct builtin builtins_attention[] = {
    {"dot_product_attention",
     {"q", "k", "v", "causal = false", "mask = none", "scale = none", "precision = none"},
     3,
     run_attention},
    {NULL, {NULL}, 0, NULL},
};
