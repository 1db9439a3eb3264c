/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of functions at their kinks and poles, of each row of tests/ops/kinks.def: a model of one loss each.
 * What JAX has to say of them is in slopes.py. */
#include "tests/ops/kinks.h"
#include "frontend/frontend.h"
#include "ir/ops/op_id.h"
#include "tests/oracle/sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* x and z are variables; the sums of nothing see to it that the loss depends on both. */
static const char *model_of(struct arena *a, const struct kink *k) {
  const char *type = k->columns ? arena_printf(a, "f64[%d, %d]", k->x.count / k->columns, k->columns)
                                : arena_printf(a, "f64[%d]", k->x.count);
  struct str s = str_make(a);
  str_printf(&s, "model kink() {\n  state w : f64 = 1\n  state off : f64 = 0\n  var x : %s = 0\n", type);
  if (k->z.count) str_printf(&s, "  var z : %s = 0\n", type);
  str_printf(&s, "  train loss = sum((%s) * w) + sum(select(off > 0, x, 0))%s with sgd(1)\n}\n", k->text,
             k->z.count ? " + sum(select(off > 0, z, 0))" : "");
  return s.data;
}

static void put(struct arena *a, struct values *v, const struct kink *k, const struct node *n) {
  struct tensor t = {n->type, arena_alloc(a, (size_t)type_bytes(&n->type))};
  const struct list *from = strcmp(n->name, "x") == 0 ? &k->x : strcmp(n->name, "z") == 0 ? &k->z : NULL;
  for (int64_t e = 0; e < type_count(&t.type); e++)
    tensor_set(&t, e, from ? from->at[e] : strcmp(n->name, "w") == 0);
  values_put(v, n->name, &t.type, t.data);
}

static void write_kink(const struct asked *q, int number) {
  const struct kink *k = &kinks[number];
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  const char *text = model_of(a, k), *name = arena_printf(a, "kink %d %s", number, k->text);
  const struct model *m = frontend_compile(a, source_make(a, "kink.dsl", text, strlen(text)), NULL, &d);
  if (!m || !m->train) exit((fprintf(stderr, "%s: %s\n", name, d.first->message), 1));
  struct values variables = values_make(a), none = values_make(a);
  for (uint32_t i = 0; i < m->train->count; i++)
    if (m->train->nodes[i]->op == OP_variable) put(a, &variables, k, m->train->nodes[i]);
  write_gradients_of(q, name, m->train, &none, &variables, 1);
  arena_destroy(a);
}

void write_kinks(const struct asked *q) {
  for (int i = 0; i < NKINKS; i++) write_kink(q, i);
}
