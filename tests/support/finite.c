/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/finite.h"

#include "ir/ops/op_id.h"
#include "tests/support/bound.h"

#include <math.h>
#include <string.h>

#define H 0x1p-9

static long compared;

long finite_compared(void) { return compared; }

static uint32_t all_axes(const struct node *n) { return (1u << n->type.rank) - 1; }

static struct node *total(struct graph *g, struct node *x) {
  return build_reduce(g, OP_reduce_sum, build_cast(g, x, DT_F64), all_axes(x));
}

struct finite finite_add(struct graph *g, struct rng *r, struct node *y, int nleaves,
                         struct node *const *leaves) {
  int64_t count = type_count(&y->type);
  double *weights = arena_new_array(g->arena, (size_t)count, double);
  /* with few bits, so that f32 holds them too */
  for (int64_t i = 0; i < count; i++)
    weights[i] = (rng_chance(r, 50) ? -1 : 1) * (512 + rng_below(r, 1024)) / 1024.0;
  struct type t = type_with_dtype(y->type, DT_F64);
  struct node *w = build_constant(g, &t, weights);
  struct node *loss = total(g, build2(g, OP_mul, build_cast(g, y, DT_F64), w));
  for (int i = 0; i < nleaves; i++)
    if (dtype_is_float(leaves[i]->type.dtype)) loss = build2(g, OP_add, loss, total(g, leaves[i]));
  for (int i = 0; i < nleaves; i++) {
    if (!dtype_is_float(leaves[i]->type.dtype)) continue;
    struct node *dx = build_gradient(g, loss, leaves[i]);
    graph_add_output(g, OUTPUT_VALUE, arena_printf(g->arena, "%s.grad", leaves[i]->name), dx, 0);
  }
  return (struct finite){.y = y, .weights = weights, .nleaves = nleaves, .leaves = leaves};
}

/* y alone, with one element of one variable moved. */
static const struct tensor *moved(struct arena *a, const struct graph *g, const struct finite *f,
                                  struct values *variables, const struct node *x, int64_t e, double by) {
  struct tensor *t = values_get(variables, x->name);
  double old = tensor_at(t, e);
  struct graph forward = *g;
  forward.outputs = &(struct output){.role = OUTPUT_VALUE, .name = "y", .node = f->y};
  forward.noutputs = 1;
  struct tensor *values = arena_new_array(a, g->count, struct tensor);
  tensor_set(t, e, old + by);
  bool ok = graph_eval(a, &forward, variables, variables, values);
  tensor_set(t, e, old);
  return ok ? &values[f->y->id] : NULL;
}

struct estimate {
  double value, size; /* size: of what was added up */
};

static struct estimate five_points(struct arena *a, const struct graph *g, const struct finite *f,
                                   struct values *variables, const struct node *x, int64_t e, double h) {
  static const double at[4] = {1, -1, 2, -2}, factor[4] = {8, -8, -1, 1};
  const struct tensor *y[4];
  for (int i = 0; i < 4; i++)
    if (!(y[i] = moved(a, g, f, variables, x, e, at[i] * h))) return (struct estimate){NAN, 0};
  long double value = 0, size = 0;
  int64_t count = type_count(&f->y->type);
  for (int64_t j = 0; j < count; j++) {
    long double d = 0;
    for (int i = 0; i < 4; i++) d += (long double)factor[i] * tensor_at(y[i], j);
    if (d == 0) continue;
    value += f->weights[j] * d / (12 * h);
    size += fabs(f->weights[j]) * (fabs(tensor_at(y[0], j)) + 1);
  }
  return (struct estimate){(double)value + 1, (double)size + 1}; /* 1: of sum(x) */
}

static const char *compare(struct arena *a, const struct node *x, int64_t e, double got,
                           struct estimate coarse, struct estimate fine) {
  double cut = fabs(coarse.value - fine.value), rounding = 64 * 0x1p-53 * fine.size * 1.5 / (H / 2);
  compared++;
  struct str s = str_make(a);
  str_printf(&s, "d / d %s element %lld is ", x->name, (long long)e);
  str_double(&s, got);
  str_put(&s, ", by differences ");
  str_double(&s, fine.value);
  str_put(&s, " or ");
  str_double(&s, coarse.value);
  if (!(cut <= 1e-6 * (fabs(fine.value) + fine.size))) {
    str_put(&s, ": not smooth there");
    return s.data;
  }
  return fabs(got - fine.value) <= cut + rounding ? NULL : s.data;
}

const char *finite_breach(struct arena *a, const struct graph *g, const struct finite *f,
                          const struct graph *expanded, const struct tensor *gradients,
                          struct values *variables) {
  for (int i = 0; i < f->nleaves; i++) {
    const struct node *x = f->leaves[i];
    if (!dtype_is_float(x->type.dtype)) continue;
    const struct tensor *dx = output_value(expanded, gradients, arena_printf(a, "%s.grad", x->name));
    if (!dx) return arena_printf(a, "no gradient by %s", x->name);
    int64_t count = type_count(&x->type);
    for (int64_t e = 0; e < count; e++) {
      struct arena *scratch = arena_create();
      struct estimate coarse = five_points(scratch, g, f, variables, x, e, H);
      struct estimate fine = five_points(scratch, g, f, variables, x, e, H / 2);
      arena_destroy(scratch);
      const char *breach = compare(a, x, e, tensor_at(dx, e), coarse, fine);
      if (breach) return breach;
    }
  }
  return NULL;
}
