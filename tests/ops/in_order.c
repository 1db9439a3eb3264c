/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ops/in_order.h"

#include "ir/graph/build.h"
#include "runtime/engines.h"
#include "tests/support/elements.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct operand_kind operand_kinds[OPERAND_KINDS] = {{"f32", DT_F32, false, false},
                                                    {"f32, special", DT_F32, true, false},
                                                    {"f64", DT_F64, false, false},
                                                    {"f64, special", DT_F64, true, false},
                                                    {"bf16, special", DT_F32, true, true}};

struct in_order *in_order_create(int max_results) {
  struct arena *a = arena_create();
  struct in_order *o = arena_new(a, struct in_order);
  o->arena = a;
  diags_init(&o->diags, a);
  o->g = graph_create(a, "in_order", &o->diags);
  o->g->config.batch = 1;
  o->inputs = values_make(a);
  o->results = arena_alloc(a, (size_t)max_results * sizeof *o->results);
  return o;
}

void in_order_destroy(struct in_order *o) { arena_destroy(o->arena); }

/* Subnormal numbers, too. */
static void cut_off(struct tensor *t) {
  float *x = t->data;
  for (int64_t e = 0; e < type_count(&t->type); e++) {
    uint32_t bits;
    memcpy(&bits, &x[e], sizeof bits);
    bits = bits & UINT32_C(0x7f800000) ? bits & UINT32_C(0xffff0000) : 0;
    memcpy(&x[e], &bits, sizeof bits);
  }
}

struct node *in_order_operand(struct in_order *o, const char *name, struct tensor *t, bool stored) {
  if (stored) cut_off(t);
  values_put(&o->inputs, name, &t->type, t->data);
  struct node *x = build_input(o->g, name, &t->type);
  return stored ? build_cast(o->g, x, DT_BF16) : x;
}

static const char *name_of(struct in_order *o, int i) { return arena_printf(o->arena, "z%d", i); }

struct tensor *in_order_result(struct in_order *o, struct node *z, const char *what) {
  if (!z) fail_msg("%s: %s", what, diags_text(&o->diags, false));
  graph_add_output(o->g, OUTPUT_VALUE, name_of(o, o->count), z, 0);
  struct tensor *want = &o->results[o->count].want;
  *want = (struct tensor){z->type, arena_alloc(o->arena, (size_t)type_bytes(&z->type) + 1)};
  o->results[o->count++].what = what;
  return want;
}

bool can_be(const char *processor) {
  struct engine e;
  setenv("DGC_CPU", processor, 1);
  bool can = backend_find("cpu") && engine_open(&e, "cpu", 1);
  if (can) engine_close(&e);
  return can;
}

static void check_on(struct in_order *o, const struct plan *p, const char *backend, const char *processor,
                     int threads) {
  struct engine e;
  struct values outputs = values_make(o->arena), variables = values_make(o->arena);
  setenv("DGC_CPU", processor, 1);
  assert_true(engine_open(&e, backend, threads));
  assert_int_equal(engines_portable_bits(e.engines, true), -1);
  if (!engine_run(&e, p, &o->inputs, &variables, &outputs, 1, &o->diags))
    fail_msg("%s", diags_text(&o->diags, false));
  for (int i = 0; i < o->count; i++) {
    const char *wrong = tensor_difference(o->arena, &o->results[i].want, values_get(&outputs, name_of(o, i)));
    if (wrong)
      fail_msg("%s%s%s, %d threads, %s: %s", backend, *processor ? " as " : "", processor, threads,
               o->results[i].what, wrong);
  }
  engine_close(&e);
}

void in_order_check(struct in_order *o) {
  static const char *const processors[] = {"", "haswell", "skylake-avx512", "nehalem"};
  struct plan *p = engine_plan(o->arena, o->g, &o->diags);
  if (!p) fail_msg("%s", diags_text(&o->diags, false));
  check_on(o, p, "interp", "", 1);
  for (int i = 0; i < 4; i++) {
    if (!can_be(processors[i])) {
      print_message("SKIP: not on this machine: %s\n", processors[i]);
      continue;
    }
    check_on(o, p, "cpu", processors[i], 1);
    setenv("DGC_PIECE_COST", "1", 1);
    check_on(o, p, "cpu", processors[i], 3);
    unsetenv("DGC_PIECE_COST");
  }
  unsetenv("DGC_CPU");
}
