/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of numbers as constant tensors: the first value of a variable may be `[[1, 0], [0, 1]]`, and `x * [1, 2]`. */
#include "frontend/resolve.h"

#include <math.h>
#include <string.h>

/* The shape that the first items tell; `fill` checks the others against it. */
static bool shape_of(struct resolver *r, const struct value *v, struct type *t) {
  for (; v->kind == VALUE_LIST; v = &v->list.items[0]) {
    struct value n = value_int(v->list.count);
    n.at = v->at;
    if (!type_append(r, t, &n)) return false;
    if (v->list.count == 0) return true;
  }
  return true;
}

void help_list(struct resolver *r, const struct value *v) {
  for (const struct value *item = v; item->kind == VALUE_LIST; item = &item->list.items[0]) {
    if (item->list.count == 0) return;
    v = &item->list.items[0];
  }
  if (v->kind == VALUE_TENSOR)
    report_help(r, "tensors become one by `stack([...], axis)` or `concat([...], axis)`");
  else if (value_is_scalar(v))
    report_help(r, "numbers become a tensor by `cast([...], %s)`",
                v->kind == VALUE_FLOAT ? "f32"
                : v->kind == VALUE_INT ? "i32"
                                       : "bool");
}

static bool put(struct resolver *r, const struct value *v, enum dtype d, char **at) {
  bool whole = v->kind == VALUE_INT, flag = v->kind == VALUE_BOOL;
  if (dtype_is_float(d) ? !whole && v->kind != VALUE_FLOAT : d == DT_BOOL ? !flag : !whole) {
    report(r, v->at, "%s cannot become %s", value_describe(r->arena, v), dtype_name(d));
    if (v->kind == VALUE_TENSOR) help_list(r, v);
    return false;
  }
  if (!float_fits(r, v, d)) return false;
  double f = whole ? (double)v->i : v->f;
  float f32 = (float)f;
  int32_t i32 = (int32_t)v->i;
  uint8_t u8 = flag ? v->b : (uint8_t)v->i;
  if (whole && ((d == DT_I32 && i32 != v->i) || (d == DT_U8 && u8 != v->i))) {
    report(r, v->at, "%lld does not fit into %s", (long long)v->i, dtype_name(d));
    return false;
  }
  const void *from = d == DT_F32   ? (const void *)&f32
                     : d == DT_F64 ? (const void *)&f
                     : d == DT_I32 ? (const void *)&i32
                     : d == DT_I64 ? (const void *)&v->i
                                   : &u8;
  memcpy(*at, from, (size_t)dtype_size(d));
  *at += dtype_size(d);
  return true;
}

static bool fill(struct resolver *r, const struct value *v, const struct type *t, int axis, char **at) {
  if (axis == t->rank && v->kind != VALUE_LIST) return put(r, v, (enum dtype)t->dtype, at);
  if (axis == t->rank || v->kind != VALUE_LIST || v->list.count != t->dim[axis]) {
    report(r, v->at, "the lists of a tensor must have equal lengths");
    return false;
  }
  for (int i = 0; i < v->list.count; i++)
    if (!fill(r, &v->list.items[i], t, axis + 1, at)) return false;
  return true;
}

struct node *list_constant(struct resolver *r, const struct value *v, enum dtype d) {
  struct type t = {.dtype = (uint8_t)d};
  if (!shape_of(r, v, &t) || !type_check(r, &t, v->at)) return NULL;
  char *data = arena_alloc(r->arena, (size_t)type_bytes(&t)), *at = data;
  return fill(r, v, &t, 0, &at) ? build_constant(r->g, &t, data) : NULL;
}
