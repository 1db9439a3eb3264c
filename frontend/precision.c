/* SPDX-License-Identifier: Apache-2.0 */
/* In which precision matrices are multiplied: f32, or bf16, where both sides are rounded to bfloat16 before. A
 * definition says so for its body and for all that it calls, `with precision = bf16`; a call of matmul for
 * itself. */
#include "frontend/resolve.h"

#include <string.h>

bool read_precision(struct resolver *r, const struct value *v, bool *bf16, const char *what) {
  if (v->kind == VALUE_NONE) return true;
  bool f32 = (v->kind == VALUE_DTYPE && v->dtype == DT_F32) ||
             (v->kind == VALUE_STRING && strcmp(v->string, "f32") == 0);
  *bf16 = v->kind == VALUE_STRING && strcmp(v->string, "bf16") == 0;
  if (f32 || *bf16) return true;
  if (v->kind != VALUE_ERROR)
    report(r, v->at, "%s is bf16 or f32, not %s", what, value_describe(r->arena, v));
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
    ok &= read_precision(r, &v, &r->frame->bf16, "a precision");
  }
  return ok;
}

bool rounds_operands(struct resolver *r, const struct value *ab, const struct value *v, struct loc loc,
                     bool *bf16) {
  *bf16 = r->frame->bf16;
  if (!read_precision(r, v, bf16, "a precision")) return false;
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
