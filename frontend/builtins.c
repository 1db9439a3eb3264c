/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that are neither elementwise ops nor written in the language: their table, and those about
 * values. */
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"

#include <string.h>

const struct builtin *const builtin_tables[] = {
    builtins_values, builtins_reduce,   builtins_shape,  builtins_rows,  builtins_conv, builtins_attention,
    builtins_random, builtins_gradient, builtins_einsum, builtins_local, NULL};

const struct builtin *builtin_find(const char *name) {
  for (int t = 0; builtin_tables[t]; t++)
    for (const struct builtin *b = builtin_tables[t]; b->name; b++)
      if (strcmp(b->name, name) == 0) return b;
  return NULL;
}

bool value_axis(struct resolver *r, const struct value *v, int rank, int *out) {
  if (v->kind != VALUE_INT) {
    if (v->kind != VALUE_ERROR)
      report(r, v->at, "an axis must be an integer, not %s", value_describe(r->arena, v));
    return false;
  }
  int64_t axis = v->i < 0 ? v->i + rank : v->i;
  if (axis < 0 || axis >= rank) {
    report(r, v->at, "there is no axis %lld: the tensor has %d", (long long)v->i, rank);
    if (axis == rank) report_help(r, "axes are counted from 0; `stack([x, y], axis = %d)` makes one", rank);
    return false;
  }
  *out = (int)axis;
  return true;
}

bool value_ints(struct resolver *r, const struct value *v, const char *what, int64_t *out, int *count) {
  bool ok = v->kind == VALUE_LIST && v->list.count <= MAX_RANK;
  for (int i = 0; ok && i < v->list.count; i++) {
    ok = v->list.items[i].kind == VALUE_INT;
    out[i] = v->list.items[i].i;
  }
  if (ok) return *count = v->list.count, true;
  if (v->kind != VALUE_ERROR)
    report(r, v->at, "%s must be a list of at most %d integers, not %s", what, MAX_RANK,
           value_describe(r->arena, v));
  return false;
}

/* Integers that have been divided, and become floats at once: what was left over may have been wanted. */
static void warn_truncated(struct resolver *r, const struct value *v, enum dtype to) {
  const struct node *n = node_behind_moves(v->tensor.node);
  if (!dtype_is_float(to) || n->op != OP_div || !dtype_is_int((enum dtype)n->type.dtype)) return;
  if (node_is_constant(n->inputs[1], 0) || is_library(r, v->at) || is_library(r, n->loc)) return;
  if (told_before(r, n->loc, "whole")) return;
  diag_warning(r->diags, n->loc,
               "integers are divided here, and what is left over is lost before they become %s",
               dtype_name(to));
  diag_help(r->diags, LOC_NONE,
            "convert first: `cast(x, %s) / y`; where whole numbers are meant, `floor_div(x, y)`",
            dtype_name(to));
}

/* cast(x, f32) */
static struct value run_cast(struct resolver *r, struct value *args, struct loc loc,
                             const struct role *role) {
  (void)role;
  if (args[1].kind != VALUE_DTYPE) {
    report(r, args[1].at, "a cast goes to an element type such as f32, not %s",
           value_describe(r->arena, &args[1]));
    const char *name = args[1].kind == VALUE_STRING ? args[1].string : "";
    enum dtype d;
    if (dtype_parse(name, strlen(name), &d) && dtype_is_narrow(d))
      report_help(r, "`round_%s(x)` rounds; a variable is kept in 16 bits by `storage(%s)`", name, name);
    return value_error();
  }
  enum dtype d = args[1].dtype;
  if (args[0].kind != VALUE_TENSOR) return value_tensor(r, value_node(r, &args[0], d), loc);
  struct node *x = tensor_node(r, &args[0], "`x`");
  if (x) warn_truncated(r, &args[0], d);
  return x ? value_tensor(r, build_cast(r->g, x, d), loc) : value_error();
}

static struct value dims_of(struct resolver *r, const struct type *t) {
  struct value v = {.kind = VALUE_LIST};
  v.list.count = t->rank;
  v.list.items = arena_new_array(r->arena, t->rank, struct value);
  for (int i = 0; i < t->rank; i++) v.list.items[i] = value_dim(t->dim[i]);
  return v;
}

/* The type of a tensor or of a type. */
static bool type_of(struct resolver *r, const struct value *v, const char *what, struct type *t) {
  if (v->kind == VALUE_TENSOR) return *t = v->tensor.node->type, true;
  if (v->kind == VALUE_TYPE || v->kind == VALUE_DTYPE) return value_as_type(r, v, t);
  report(r, v->at, "only tensors and types have a %s, not %s", what, value_describe(r->arena, v));
  return false;
}

static struct value run_shape(struct resolver *r, struct value *args, struct loc loc,
                              const struct role *role) {
  struct type t;
  (void)loc, (void)role;
  return type_of(r, &args[0], "shape", &t) ? dims_of(r, &t) : value_error();
}

static struct value run_rank(struct resolver *r, struct value *args, struct loc loc,
                             const struct role *role) {
  struct type t;
  (void)loc, (void)role;
  return type_of(r, &args[0], "rank", &t) ? value_int(t.rank) : value_error();
}

static struct value run_dtype(struct resolver *r, struct value *args, struct loc loc,
                              const struct role *role) {
  struct type t;
  (void)loc, (void)role;
  return type_of(r, &args[0], "dtype", &t) ? value_dtype((enum dtype)t.dtype) : value_error();
}

static struct value run_type(struct resolver *r, struct value *args, struct loc loc,
                             const struct role *role) {
  struct type t;
  (void)loc, (void)role;
  if (!type_of(r, &args[0], "type", &t)) return value_error();
  return (struct value){.kind = VALUE_TYPE, .type = arena_copy(r->arena, &t, sizeof t)};
}

/* size(x): how many elements; of a list: how many items */
static struct value run_size(struct resolver *r, struct value *args, struct loc loc,
                             const struct role *role) {
  struct type t;
  (void)loc, (void)role;
  if (args[0].kind == VALUE_LIST) return value_int(args[0].list.count);
  return type_of(r, &args[0], "size", &t) ? value_dim(type_count(&t)) : value_error();
}

/* The input that x is, up to its shape and element type, or NULL. *part: x is not all of it. */
static struct model_input *input_behind(struct resolver *r, const struct node *x, bool *part) {
  for (*part = false;; x = x->inputs[0]) {
    *part |= x->op == OP_slice;
    if (x->op != OP_cast && x->op != OP_reshape && x->op != OP_broadcast && x->op != OP_transpose &&
        x->op != OP_slice)
      break;
    if (x->op == OP_cast && x->type.dtype == DT_BOOL) return NULL; /* whatever is not 0 is 1 */
  }
  return x->op == OP_input ? input_named(r, x->name) : NULL;
}

/* Where what stands at `loc`, maybe in the library, is asked for in the user's own text. */
static struct loc users_line(const struct resolver *r, struct loc loc) {
  for (const struct frame *f = r->frame; f && is_library(r, loc); f = f->caller) loc = f->call;
  return loc;
}

void limit_input(struct resolver *r, const struct node *x, int64_t low, int64_t high, struct loc loc) {
  bool part;
  struct model_input *input = input_behind(r, x, &part);
  if (!input || input->type.dtype == DT_BOOL) return;
  if (dtype_is_float((enum dtype)input->type.dtype) && !dtype_is_float((enum dtype)x->type.dtype)) return;
  if (part) {
    bool none = input->part_low > input->part_high;
    if (none || low < input->part_low) input->part_low = low;
    if (none || high > input->part_high) input->part_high = high;
    return;
  }
  bool first = input->low > input->high;
  if (first || low > input->low) input->low = low;
  if (first || high < input->high)
    input->high = high, input->limited = loc, input->asked = users_line(r, loc);
}

/* x itself. Where it is an input, its data is checked before it is used. */
static struct value expect(struct resolver *r, struct value *args, bool ends, struct loc loc) {
  bool number = args[0].kind == VALUE_INT || args[0].kind == VALUE_FLOAT, part;
  struct node *x = number ? NULL : tensor_node(r, &args[0], "`x`");
  if (!x && !number) return value_error();
  if (args[1].kind != VALUE_INT || args[2].kind != VALUE_INT || args[1].i > args[2].i) {
    report(r, loc, "%s two integers, the lower one first", ends ? "a choice has" : "a range has");
    return value_error();
  }
  if (x) limit_input(r, x, args[1].i, args[2].i, loc);
  struct model_input *input = x && ends ? input_behind(r, x, &part) : NULL;
  if (input && !part) input->ends = true;
  return args[0];
}

/* expect_range(x, low, high) */
static struct value run_expect_range(struct resolver *r, struct value *args, struct loc loc,
                                     const struct role *role) {
  (void)role;
  return expect(r, args, false, loc);
}

/* expect_either(x, low, high): one of the two. */
static struct value run_expect_either(struct resolver *r, struct value *args, struct loc loc,
                                      const struct role *role) {
  (void)role;
  return expect(r, args, true, loc);
}

static bool text_matches(const char *text, const char *pattern) {
  const char *star = NULL, *again = NULL;
  while (*text) {
    if (*pattern == '*') {
      star = pattern++;
      again = text;
    } else if (*pattern == '?' || *pattern == *text) {
      pattern++;
      text++;
    } else if (star) {
      pattern = star + 1;
      text = ++again;
    } else {
      return false;
    }
  }
  while (*pattern == '*') pattern++;
  return !*pattern;
}

bool path_matches(struct arena *a, const char *path, const char *pattern) {
  return text_matches(path, pattern) || text_matches(path, arena_printf(a, "%s.*", pattern));
}

/* A pattern by which the optimizer that runs asks for variables. */
static void note_pattern(struct resolver *r, const char *text) {
  if (!r->update.variable) return;
  for (const struct asked_pattern *p = r->update.patterns; p; p = p->next)
    if (p->text == text) return;
  struct asked_pattern *p = arena_new(r->arena, struct asked_pattern);
  *p = (struct asked_pattern){r->update.patterns, text};
  r->update.patterns = p;
}

/* matches(text, pattern): of a list of patterns, one of them; of a path also what it lies below. */
static struct value run_matches(struct resolver *r, struct value *args, struct loc loc,
                                const struct role *role) {
  bool list = args[1].kind == VALUE_LIST, found = false;
  int count = list ? args[1].list.count : 1;
  (void)loc, (void)role;
  for (int i = -1; i < count; i++) {
    const struct value *v = i < 0 ? &args[0] : list ? &args[1].list.items[i] : &args[1];
    if (v->kind == VALUE_STRING) {
      r->budget.steps += (int64_t)((strlen(args[0].string) + 1) * (strlen(v->string) + 1) / 1024);
      if (i >= 0) note_pattern(r, v->string);
      found |= i >= 0 && r->budget.steps <= MAX_STEPS && path_matches(r->arena, args[0].string, v->string);
      continue;
    }
    report(r, i < 0 ? args[0].at : args[1].at, "%s must be a string, not %s", i < 0 ? "`text`" : "a pattern",
           value_describe(r->arena, v));
    return value_error();
  }
  return value_bool(found);
}

/* global_norm(list): the root of the sum of the squares of all elements, all in f64, where no square of an f32 is
 * infinite or 0; the sums of the tensors are added up in the order of the list. All variables of a chain ask for that
 * of the same list. */
static struct value run_global_norm(struct resolver *r, struct value *args, struct loc loc,
                                    const struct role *role) {
  const struct value *list = &args[0];
  (void)role;
  if (list->kind != VALUE_LIST) {
    report(r, list->at, "a global norm is that of a list of tensors, not of %s",
           value_describe(r->arena, list));
    return value_error();
  }
  if (r->norm.of == list->list.items && r->norm.g == r->g && r->norm.count == list->list.count)
    return value_tensor(r, r->norm.node, loc);
  struct node *sum = build_scalar(r->g, DT_F64, 0);
  for (int i = 0; i < list->list.count; i++) {
    struct value item = list->list.items[i];
    if (!item.at.source) item.at = list->at;
    struct node *x = tensor_node(r, &item, "what a norm is taken of");
    if (!x) return value_error();
    if (!dtype_is_float((enum dtype)x->type.dtype)) {
      report(r, item.at, "a norm is that of f32 or f64, not of %s", type_text(r->arena, &x->type));
      return value_error();
    }
    struct node *squares = build1(r->g, OP_square, build_cast(r->g, x, DT_F64));
    sum = build2(r->g, OP_add, sum, build_reduce(r->g, OP_reduce_sum, squares, (1u << x->type.rank) - 1));
  }
  struct node *norm = build1(r->g, OP_sqrt, sum);
  if (list->list.count > 1) r->norm = (struct known_norm){list->list.items, list->list.count, r->g, norm};
  return value_tensor(r, norm, loc);
}

static struct value tower_scalar(struct resolver *r, enum op_id op, struct loc loc) {
  struct type t = type_scalar(DT_I64);
  return value_tensor(r, build_named(r->g, op_table[op]->name, op, 0, NULL, 0, NULL, &t), loc);
}

/* tower_id(): which tower computes this, from 0. */
static struct value run_tower_id(struct resolver *r, struct value *args, struct loc loc,
                                 const struct role *role) {
  (void)args, (void)role;
  return tower_scalar(r, OP_tower_id, loc);
}

static struct value run_tower_count(struct resolver *r, struct value *args, struct loc loc,
                                    const struct role *role) {
  (void)args, (void)role;
  return tower_scalar(r, OP_tower_count, loc);
}

const struct builtin builtins_values[] = {
    {"cast", {"x", "dtype"}, 2, run_cast},
    {"shape", {"x"}, 1, run_shape},
    {"rank", {"x"}, 1, run_rank},
    {"dtype", {"x"}, 1, run_dtype},
    {"type", {"x"}, 1, run_type},
    {"size", {"x"}, 1, run_size},
    {"expect_either", {"x", "low", "high"}, 3, run_expect_either},
    {"expect_range", {"x", "low", "high"}, 3, run_expect_range},
    {"matches", {"text", "pattern"}, 2, run_matches},
    {"global_norm", {"list"}, 1, run_global_norm},
    {"tower_id", {NULL}, 0, run_tower_id},
    {"tower_count", {NULL}, 0, run_tower_count},
    {NULL, {NULL}, 0, NULL},
};
