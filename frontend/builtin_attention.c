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

/* What makes the mask of what is usual elsewhere: lengths, and which keys all rows see, or which a row does. */
static void help_mask(struct resolver *r, const struct type *q, const struct type *k, const struct type *m) {
  bool flags = m->dtype == DT_BOOL || dtype_is_int((enum dtype)m->dtype);
  int64_t from = q->dim[1], to = k->dim[1];
  const char *name = m->dtype == DT_BOOL ? "m" : "m != 0", *has = type_text(r->arena, m);
  bool rows = m->rank > 0 && m->dim[0] == q->dim[0], keys = m->rank > 1 && m->dim[m->rank - 1] == to;
  if (flags && rows && m->rank == 1 && m->dtype != DT_BOOL)
    report_help(r, "of lengths n, %s, `nn.length_mask(n, %lld)` is one", has, (long long)to);
  else if (flags && rows && keys && m->rank == 2)
    report_help(r, "of m, %s, `expand(expand(%s, 1), 1)` is one", has, name);
  else if (flags && keys && m->rank == 2 && m->dim[0] == from)
    report_help(r, "of m, %s, `expand(expand(%s, 0), 0)` is one", has, name);
  else if (flags && rows && keys && m->rank == 3 && m->dim[1] == from)
    report_help(r, "of m, %s, `expand(%s, 1)` is one", has, name);
  else if (flags && keys && m->rank == 4 && m->dtype != DT_BOOL)
    report_help(r, "of m, %s, `m != 0` is one", has);
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
  struct value y = value_tensor(r, build(r->g, OP_attention, count, in, is_causal, &causal, NULL), loc);
  if (y.kind == VALUE_ERROR && count == 4 && in[0]->type.rank == 4 && in[1]->type.rank == 4)
    help_mask(r, &in[0]->type, &in[1]->type, &in[3]->type);
  return y;
}

const struct builtin builtins_attention[] = {
    {"dot_product_attention",
     {"q", "k", "v", "causal = false", "mask = none", "scale = none", "precision = none"},
     3,
     run_attention},
    {NULL, {NULL}, 0, NULL},
};
