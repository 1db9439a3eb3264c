/* SPDX-License-Identifier: Apache-2.0 */
/* In which precision matrices are multiplied: f32, or bf16, where both sides are rounded to bfloat16 before. A
 * definition says so for its body and for all that it calls, `with precision = bf16`; a call of matmul for
 * itself. */
#include "frontend/resolve.h"

#include <string.h>

static bool names_type(const struct value *v, enum dtype d) {
  return (v->kind == VALUE_DTYPE && v->dtype == d) ||
         (v->kind == VALUE_STRING && strcmp(v->string, dtype_name(d)) == 0);
}

static bool read_precision(struct resolver *r, const struct value *v, bool *bf16) {
  if (v->kind == VALUE_NONE) return true;
  *bf16 = names_type(v, DT_BF16);
  if (*bf16 || names_type(v, DT_F32)) return true;
  if (v->kind != VALUE_ERROR)
    report(r, v->at, "a precision is bf16 or f32, not %s", value_describe(r->arena, v));
  return false;
}

bool read_storage(struct resolver *r, const struct value *v, enum dtype *out) {
  static const enum dtype types[] = {DT_BF16, DT_F16, DT_F32};
  if (v->kind == VALUE_NONE) return true;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (names_type(v, types[i])) return *out = types[i], true;
  if (v->kind != VALUE_ERROR)
    report(r, v->at, "a storage is bf16, f16 or f32, not %s", value_describe(r->arena, v));
  return false;
}

bool apply_settings(struct resolver *r, const struct def *d) {
  bool ok = true;
  for (const struct arg *w = d->with.first; w; w = w->next) {
    if (strcmp(w->name, "precision") != 0) {
      report(r, w->loc, "`with` sets the precision of matrix products, not `%s`", w->name);
      report_help(r, "write `with precision = bf16`");
      return false;
    }
    struct value v = eval(r, w->value, NULL);
    ok &= read_precision(r, &v, &r->frame->bf16);
  }
  return ok;
}

bool rounds_operands(struct resolver *r, const struct value *ab, const struct value *v, struct loc loc,
                     bool *bf16) {
  *bf16 = r->frame->bf16;
  if (!read_precision(r, v, bf16)) return false;
  for (int i = 0; i < 2 && *bf16 && v->kind != VALUE_NONE; i++) {
    if (ab[i].tensor.node->type.dtype == DT_F32) continue;
    report(r, loc, "a product of precision bf16 has operands of f32, not %s",
           type_text(r->arena, &ab[i].tensor.node->type));
    report_value(r, &ab[i]);
    return false;
  }
  return true;
}

struct value matmul_in(struct resolver *r, struct value *ab, const struct value *v, struct loc loc) {
  bool outer = r->frame->bf16, bf16;
  if (!rounds_operands(r, ab, v, loc, &bf16)) return value_error();
  r->frame->bf16 = bf16;
  struct value y = binary_values(r, OPERATOR_MATMUL, ab, loc);
  r->frame->bf16 = outer;
  return y;
}
