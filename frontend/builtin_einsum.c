/* SPDX-License-Identifier: Apache-2.0 */
/* einsum: sums of products by letters for axes, out of transposes, products of matrices and sums. Two operands at a
 * time, from the left: letters that stand in both and later on are axes of a batch of matrices, those that stand in
 * both and are not needed any more are summed by the product. */
#include "frontend/resolve.h"

#include "ir/ops/op_id.h"

#include <string.h>

enum { MAX_OPERANDS = 4 };

/* A tensor and a letter for each of its axes. */
struct lettered {
  struct node *x;
  char axis[MAX_RANK + 1];
};

struct einsum {
  struct resolver *r;
  struct loc loc;
  const struct value *text;
};

static int place_of(const char *letters, char c) {
  const char *at = c ? strchr(letters, c) : NULL;
  return at ? (int)(at - letters) : -1;
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static void add_letter(char *letters, char c) {
  size_t n = strlen(letters);
  letters[n] = c;
  letters[n + 1] = 0;
}

/* Axes in the order of `letters`, which are all of them. */
static struct node *in_order(const struct einsum *e, const struct lettered *t, const char *letters) {
  int64_t perm[MAX_RANK];
  bool same = true;
  for (int i = 0; letters[i]; i++) {
    perm[i] = place_of(t->axis, letters[i]);
    same &= perm[i] == i;
  }
  return same ? t->x : build_transpose(e->r->g, t->x, perm);
}

/* The two axes of one letter as one, the diagonal: behind the others, as each (n + 1)th element of n times n. */
static bool take_diagonal(const struct einsum *e, struct lettered *t, int a, int b) {
  int64_t n = t->x->type.dim[a], perm[MAX_RANK], low[MAX_RANK] = {0}, high[MAX_RANK] = {0},
          begin[MAX_RANK] = {0};
  int rank = t->x->type.rank, k = 0;
  if (n != t->x->type.dim[b] || n < 0 || dim_is_whole(n)) {
    report(e->r, e->loc, "axes %d and %d of %s have one letter, and %s", a, b,
           type_text(e->r->arena, &t->x->type), n == t->x->type.dim[b] ? "are the batch's" : "not one size");
    return false;
  }
  char letters[MAX_RANK + 1] = "";
  for (int i = 0; i < rank; i++)
    if (i != a && i != b) perm[k++] = i, add_letter(letters, t->axis[i]);
  add_letter(letters, t->axis[a]);
  perm[k] = a, perm[k + 1] = b;
  struct type flat = build_transpose(e->r->g, t->x, perm)->type, wide, part;
  struct node *x = build_transpose(e->r->g, t->x, perm);
  flat.dim[k] = n * n;
  flat.rank = (uint8_t)(k + 1);
  high[k] = n;
  wide = flat;
  wide.rank = (uint8_t)(k + 2);
  wide.dim[k] = n, wide.dim[k + 1] = n + 1;
  part = wide;
  part.dim[k + 1] = 1;
  x = build_pad(e->r->g, build_reshape(e->r->g, x, &flat), low, high,
                build_scalar(e->r->g, (enum dtype)flat.dtype, 0));
  x = build_slice(e->r->g, build_reshape(e->r->g, x, &wide), begin, &part);
  part.rank = (uint8_t)(k + 1);
  t->x = build_reshape(e->r->g, x, &part);
  memcpy(t->axis, letters, sizeof letters);
  return true;
}

/* Without axes whose letters neither `other` nor `later` has. */
static void sum_out(const struct einsum *e, struct lettered *t, const char *other, const char *later) {
  uint32_t axes = 0;
  char kept[MAX_RANK + 1] = "";
  for (int i = 0; t->axis[i]; i++) {
    bool needed = place_of(other, t->axis[i]) >= 0 || place_of(later, t->axis[i]) >= 0;
    if (needed)
      add_letter(kept, t->axis[i]);
    else
      axes |= 1u << i;
  }
  if (axes) t->x = build_reduce(e->r->g, OP_reduce_sum, t->x, axes);
  memcpy(t->axis, kept, sizeof kept);
}

/* The batch's axis to the front: what is joined with it stays whole rows. */
static void batch_first(const struct lettered *t, char *letters) {
  for (int i = 1; letters[i]; i++) {
    if (t->x->type.dim[place_of(t->axis, letters[i])] >= 0) continue;
    char c = letters[i];
    memmove(letters + 1, letters, (size_t)i);
    letters[0] = c;
  }
}

/* t as [...lead, all of `rows`, all of `columns`]. */
static struct node *as_matrices(const struct einsum *e, const struct lettered *t, const char *lead,
                                const char *rows, const char *columns) {
  char letters[2 * MAX_RANK] = "";
  strcat(strcat(strcpy(letters, lead), rows), columns);
  struct node *x = in_order(e, t, letters);
  struct type to = x->type;
  int n = (int)strlen(lead), from = n;
  to.rank = (uint8_t)(n + 2);
  for (int half = 0; half < 2; half++) {
    int64_t size = 1;
    for (size_t i = strlen(half ? columns : rows); i > 0; i--)
      if (!dim_mul(size, x->type.dim[from++], &size)) {
        report(e->r, e->loc, "axes of %s cannot be joined", type_text(e->r->arena, &x->type));
        return NULL;
      }
    to.dim[n + half] = size;
  }
  return build_reshape(e->r->g, x, &to);
}

/* Both as tensors of all letters, by element. */
static struct node *multiply(const struct einsum *e, const struct lettered *a, const struct lettered *b,
                             const char *all, const struct type *t) {
  const struct lettered *both[] = {a, b};
  struct node *x[2];
  for (int k = 0; k < 2; k++) {
    char letters[MAX_RANK + 1] = "";
    int64_t axes[MAX_RANK];
    for (int i = 0, n = 0; all[i]; i++)
      if (place_of(both[k]->axis, all[i]) >= 0) add_letter(letters, all[i]), axes[n++] = i;
    x[k] = build_broadcast(e->r->g, in_order(e, both[k], letters), t, axes);
  }
  return build2(e->r->g, OP_mul, x[0], x[1]);
}

/* a times b, without what `later` does not need. */
static bool join(const struct einsum *e, struct lettered *a, struct lettered *b, const char *later) {
  char lead[MAX_RANK + 1] = "", sums[MAX_RANK + 1] = "", left[MAX_RANK + 1] = "", right[MAX_RANK + 1] = "";
  sum_out(e, a, b->axis, later);
  sum_out(e, b, a->axis, later);
  for (int i = 0; a->axis[i]; i++) {
    int in_b = place_of(b->axis, a->axis[i]);
    add_letter(in_b < 0 ? left : place_of(later, a->axis[i]) >= 0 ? lead : sums, a->axis[i]);
    if (in_b < 0 || a->x->type.dim[i] == b->x->type.dim[in_b]) continue;
    report(e->r, e->loc, "`%c` is an axis of %s and of %s, of different sizes", a->axis[i],
           type_text(e->r->arena, &a->x->type), type_text(e->r->arena, &b->x->type));
    return false;
  }
  for (int i = 0; b->axis[i]; i++)
    if (place_of(a->axis, b->axis[i]) < 0) add_letter(right, b->axis[i]);
  batch_first(a, sums);
  batch_first(a, left);
  batch_first(b, right);
  char all[4 * MAX_RANK] = "";
  strcat(strcat(strcpy(all, lead), left), right);
  size_t rank = strlen(all);
  bool empty =
      type_count(&a->x->type) == 0 || type_count(&b->x->type) == 0; /* a matrix of no rows loses the batch */
  bool whole = empty || !dtype_is_float((enum dtype)a->x->type.dtype);
  if (rank + (whole ? strlen(sums) : 0) > MAX_RANK || strlen(lead) + 2 > MAX_RANK) {
    report(e->r, e->loc, "a tensor has at most %d axes", MAX_RANK);
    return false;
  }
  if (whole) strcat(all, sums);
  struct type t = a->x->type;
  t.rank = 0;
  for (int i = 0; all[i]; i++) {
    int at = place_of(a->axis, all[i]);
    t.dim[t.rank++] = at >= 0 ? a->x->type.dim[at] : b->x->type.dim[place_of(b->axis, all[i])];
  }
  if (!type_check(e->r, &t, e->loc)) return false;
  if (whole || !*sums) {
    a->x = multiply(e, a, b, all, &t);
    memcpy(a->axis, all, MAX_RANK + 1);
    if (*sums) sum_out(e, a, "", later);
    return true;
  }
  struct node *x = as_matrices(e, a, lead, left, sums), *y = as_matrices(e, b, lead, sums, right);
  if (!x || !y) return false;
  struct value ab[2] = {value_tensor(e->r, x, e->loc), value_tensor(e->r, y, e->loc)}, none = value_none();
  ab[0].at = ab[1].at = none.at = e->loc;
  struct value product = matmul_in(e->r, ab, &none, e->loc);
  if (product.kind != VALUE_TENSOR) return false;
  a->x = build_reshape(e->r->g, product.tensor.node, &t);
  memcpy(a->axis, all, MAX_RANK + 1);
  return true;
}

/* The letters of operand `t` at *at, which moves behind them. */
static bool read_letters(const struct einsum *e, const char **at, struct lettered *t, int number) {
  int n = 0;
  for (; is_letter(**at); (*at)++)
    if (n < MAX_RANK) t->axis[n++] = **at;
  t->axis[n] = 0;
  if (n == t->x->type.rank && (**at == ',' || **at == 0 || strncmp(*at, "->", 2) == 0)) return true;
  report(e->r, e->text->at, "operand %d, %s, needs %d letters, one for each axis, in `%s`", number + 1,
         type_text(e->r->arena, &t->x->type), t->x->type.rank, e->text->string);
  return false;
}

/* What stands behind the arrow; without one, the letters that stand once, in the order of the alphabet. */
static bool read_result(const struct einsum *e, const char *at, const char *given, char *result) {
  if (strncmp(at, "->", 2) == 0) {
    for (at += 2; is_letter(*at) && strlen(result) < MAX_RANK; at++) {
      if (place_of(given, *at) < 0 || place_of(result, *at) >= 0) break;
      add_letter(result, *at);
    }
  } else if (!*at)
    for (char c = 'A'; c <= 'z'; c++)
      if (is_letter(c) && strchr(given, c) && strchr(given, c) == strrchr(given, c) &&
          strlen(result) < MAX_RANK)
        add_letter(result, c);
  if (!*at) return true;
  report(e->r, e->text->at,
         "`%s` of einsum is like \"ij,jk->ik\": letters of the operands, and those of the result, each once",
         e->text->string);
  return false;
}

static const char *without_blanks(struct resolver *r, const char *text) {
  struct str s = str_make(r->arena);
  for (; *text; text++)
    if (*text != ' ') str_putc(&s, *text);
  return s.data ? s.data : "";
}

/* einsum("ij,jk->ik", a, b) */
static struct value run_einsum(struct resolver *r, struct value *args, struct loc loc,
                               const struct role *role) {
  struct lettered t[MAX_OPERANDS];
  struct einsum e = {r, loc, &args[0]};
  char given[MAX_OPERANDS * MAX_RANK + 1] = "", result[MAX_RANK + 1] = "";
  int count = 0;
  (void)role;
  if (args[0].kind != VALUE_STRING) {
    report(r, args[0].at, "einsum begins with a string like \"ij,jk->ik\", not with %s",
           value_describe(r->arena, &args[0]));
    return value_error();
  }
  const char *at = without_blanks(r, args[0].string);
  for (; count < MAX_OPERANDS && args[count + 1].kind != VALUE_NONE; count++) {
    t[count].x = tensor_node(r, &args[count + 1], "an operand of einsum");
    if (!t[count].x || !read_letters(&e, &at, &t[count], count)) return value_error();
    t[count].x = added_up(r, t[count].x);
    strcat(given, t[count].axis);
    bool more = count + 1 < MAX_OPERANDS && args[count + 2].kind != VALUE_NONE;
    if (*at == ',' && more) at++;
    if (t[count].x->type.dtype == t[0].x->type.dtype) continue;
    report(r, args[count + 1].at, "einsum needs operands of one type, not %s and %s",
           type_text(r->arena, &t[0].x->type), type_text(r->arena, &t[count].x->type));
    return value_error();
  }
  if (!read_result(&e, at, given, result)) return value_error();
  build_here(r, loc);
  for (int i = 0; i < count; i++)
    for (int k = 0; t[i].axis[k]; k++) {
      const char *again = strchr(t[i].axis + k + 1, t[i].axis[k]);
      if (!again) continue;
      if (!take_diagonal(&e, &t[i], k, (int)(again - t[i].axis))) return value_error();
      k = -1;
    }
  for (int i = 1; i < count; i++) {
    char later[(MAX_OPERANDS + 1) * MAX_RANK + 1] = "";
    strcpy(later, result);
    for (int k = i + 1; k < count; k++) strcat(later, t[k].axis);
    if (!join(&e, &t[0], &t[i], later)) return value_error();
  }
  sum_out(&e, &t[0], "", result);
  return value_tensor(r, in_order(&e, &t[0], result), loc);
}

const struct builtin builtins_einsum[] = {
    {"einsum", {"letters", "a", "b = ...", "c = ...", "d = ..."}, 2, run_einsum},
    {NULL, {NULL}, 0, NULL},
};
