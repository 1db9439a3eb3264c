/* SPDX-License-Identifier: Apache-2.0 */
/* Compile-time values: text and equality. */
#include "frontend/value.h"

#include "ir/ops/op.h"

#include <string.h>

struct value value_dim(int64_t dim) {
  if (dim < 0) return (struct value){.kind = VALUE_BATCH, .i = -dim};
  if (dim_is_whole(dim)) return (struct value){.kind = VALUE_BATCH, .i = -(dim / DIM_WHOLE)};
  return value_int(dim);
}

int64_t dim_of_value(const struct value *v) {
  if (v->kind != VALUE_BATCH) return v->i;
  if (v->i > 0) return -v->i;
  return -v->i < INT64_MAX / DIM_WHOLE ? -v->i * DIM_WHOLE : MAX_ELEMENTS + 1;
}

enum { MAX_SHOWN = 200 }; /* bytes after which a list is cut */

static void value_print(struct str *s, const struct value *v) {
  switch (v->kind) {
  case VALUE_ERROR: str_put(s, "?"); break;
  case VALUE_NONE: str_put(s, "none"); break;
  case VALUE_INT: str_printf(s, "%lld", (long long)v->i); break;
  case VALUE_BATCH: dim_print(s, dim_of_value(v)); break;
  case VALUE_FLOAT: str_double(s, v->f); break;
  case VALUE_BOOL: str_put(s, v->b ? "true" : "false"); break;
  case VALUE_STRING: str_printf(s, "\"%s\"", v->string); break;
  case VALUE_LIST:
    str_putc(s, '[');
    for (int i = 0; i < v->list.count; i++) {
      if (i) str_put(s, ", ");
      if (s->len > MAX_SHOWN) {
        str_put(s, "...");
        break;
      }
      value_print(s, &v->list.items[i]);
    }
    str_putc(s, ']');
    break;
  case VALUE_DTYPE: str_put(s, dtype_name(v->dtype)); break;
  case VALUE_TYPE: type_print(s, v->type); break;
  case VALUE_FUNCTION: str_put(s, v->function->def->name); break;
  case VALUE_BUILTIN: str_put(s, v->builtin->name); break;
  case VALUE_OP: str_put(s, op_table[v->op]->name); break;
  case VALUE_MODULE: str_put(s, v->module->name); break;
  case VALUE_LAYER: str_put(s, v->layer->owner); break;
  case VALUE_TENSOR: type_print(s, &v->tensor.node->type); break;
  }
}

const char *value_text(struct arena *a, const struct value *v) {
  struct str s = str_make(a);
  value_print(&s, v);
  return s.data;
}

const char *value_describe(struct arena *a, const struct value *v) {
  const char *what = "";
  switch (v->kind) {
  case VALUE_ERROR: return "an error";
  case VALUE_NONE: return "none";
  case VALUE_INT: what = "the number"; break;
  case VALUE_BATCH: what = "the dimension"; break;
  case VALUE_FLOAT: what = "the number"; break;
  case VALUE_BOOL: break;
  case VALUE_STRING: what = "the string"; break;
  case VALUE_LIST: what = "the list"; break;
  case VALUE_DTYPE:
  case VALUE_TYPE: what = "the type"; break;
  case VALUE_FUNCTION: what = def_kind_name(v->function->def->kind); break;
  case VALUE_BUILTIN:
  case VALUE_OP: what = "the function"; break;
  case VALUE_MODULE: what = "the library"; break;
  case VALUE_LAYER: what = "the layer"; break;
  case VALUE_TENSOR: break;
  }
  return arena_printf(a, "%s%s%s", what, *what ? " " : "", value_text(a, v));
}

bool value_equal(const struct value *a, const struct value *b) {
  if (a->kind != b->kind) {
    if (a->kind == VALUE_INT && b->kind == VALUE_FLOAT) return (double)a->i == b->f;
    if (a->kind == VALUE_FLOAT && b->kind == VALUE_INT) return a->f == (double)b->i;
    return false;
  }
  switch (a->kind) {
  case VALUE_ERROR:
  case VALUE_NONE: return true;
  case VALUE_INT:
  case VALUE_BATCH: return a->i == b->i;
  case VALUE_FLOAT: return a->f == b->f;
  case VALUE_BOOL: return a->b == b->b;
  case VALUE_STRING: return strcmp(a->string, b->string) == 0;
  case VALUE_LIST:
    if (a->list.count != b->list.count) return false;
    if (a->list.items == b->list.items) return true;
    for (int i = 0; i < a->list.count; i++)
      if (!value_equal(&a->list.items[i], &b->list.items[i])) return false;
    return true;
  case VALUE_DTYPE: return a->dtype == b->dtype;
  case VALUE_TYPE: return type_equal(a->type, b->type);
  case VALUE_FUNCTION: return a->function->def == b->function->def;
  case VALUE_BUILTIN: return a->builtin == b->builtin;
  case VALUE_OP: return a->op == b->op;
  case VALUE_MODULE: return a->module == b->module;
  case VALUE_LAYER: return strcmp(a->layer->owner, b->layer->owner) == 0;
  case VALUE_TENSOR: return a->tensor.node == b->tensor.node;
  }
  return false;
}
