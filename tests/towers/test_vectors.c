/* SPDX-License-Identifier: Apache-2.0 */
/* Small models with known numbers: each on one device and on every layout of its towers, by every backend. Numbers
 * are compared to 8 units in the last place of f64: what a decimal fraction and a handful of operations can be
 * off.
 *
 * The names are those of the list of vectors that replication is specified by. Those that need the language, for
 * they are about variables, losses and optimizers, are in test_variables.c; those of data in test_rows.c. */
#include "ir/ops/op_id.h"
#include "passes/pass.h"
#include "tests/support/bound.h"
#include "tests/support/fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* pred = f * c, loss = sum |l - pred|, SGD with rate 1 */
#define MODEL                                    \
  " f = input : f64[B,1]\n"                      \
  " l = input : f64[B,1]\n"                      \
  " c = variable {trainable=1} : f64[]\n"        \
  " c.rows = broadcast c {axes=[]} : f64[B,1]\n" \
  " pred = mul f, c.rows\n"                      \
  " miss = sub l, pred\n"                        \
  " off = abs miss\n"                            \
  " total = reduce_sum off {axes=[0, 1]}\n"
#define STEP(loss, v)                        \
  " " v ".grad = gradient " loss ", " v "\n" \
  " " v ".next = sub " v ", " v ".grad\n"
#define SGD(loss, v) STEP(loss, v) " " v ".update = assign " v ", " v ".next\n"

/* Rows v, numbered i, on zeros. */
#define ROWS(index, values, shape)                                                                    \
  " i = input : i32[" index "]\n v = input : f64[" values "]\n zero = constant {value=0.0} : f64[]\n" \
  " zeros = broadcast zero {axes=[]} : f64[" shape "]\n rows = scatter_add zeros, i, v\n"

static const struct vector {
  const char *name;
  int towers;
  int64_t rows;
  int steps;
  const char *text;   /* nodes and outputs of the model */
  const char *values; /* inputs and variables: "f 1 2 ; c 10" */
  const char *want;   /* outputs and variables */
} vectors[] = {
    {"R1", 2, 2, 1, MODEL SGD("total", "c") " loss loss = total\n update c.update\n", "f 1 2 ; l 1 2 ; c 10",
     "loss 27 ; c 7"},
    {"R2 without scaling per tower", 2, 2, 1,
     MODEL
     " rows = batch_size : f64[]\n mean = div total, rows\n unused = variable {trainable=1} : f64[]\n" SGD(
         "mean", "c") SGD("mean", "unused") " loss loss = mean\n update c.update\n update unused.update\n",
     "f 1 2 ; l 1 2 ; c 10 ; unused 3", "loss 13.5 ; c 8.5 ; unused 3"},
    {"R3, the second step", 2, 2, 1, MODEL SGD("total", "c") " loss loss = total\n update c.update\n",
     "f 1.5 2.5 ; l 1.5 2.5 ; c 7", "loss 24 ; c 3"},
    {"R4", 1, 2, 1, MODEL SGD("total", "c") " loss loss = total\n update c.update\n", "f 1 2 ; l 1 2 ; c 10",
     "loss 27 ; c 7"},
    {"R5", 2, 2, 1,
     MODEL " rows = batch_size : f64[]\n mean = div total, rows\n right = eq pred, l\n one = cast right : "
           "f64[B,1]\n"
           " hits = reduce_sum one {axes=[0, 1]}\n share = div hits, rows\n"
           " value total\n value mean\n metric accuracy = hits / B\n value share\n",
     "f 0.01 0.002 ; l 0.01 0.02 ; c 10", "total 0.09 ; mean 0.045 ; accuracy 1 ; share 0.5"},
    {"R6", 2, 2, 1, MODEL " predict pred\n", "f 0.01 0.002 ; l 0 0 ; c 10", "pred 0.1 0.02"},
    /* m = 0.1 g / (1 - 0.9), v = 0.001 g^2 / (1 - 0.999), and g = 3: a step of 3 / (3 + 1e-8), from 7 */
    {"R7, sgd then adam", 2, 2, 1,
     MODEL STEP(
         "total",
         "c") " tenth = constant {value=0.1} : f64[]\n thousandth = constant {value=0.001} : f64[]\n"
              " least = constant {value=1e-08} : f64[]\n m = variable {slot=\"c\"} : f64[]\n v = variable "
              "{slot=\"c\"} : f64[]\n"
              " m.in = sub c.grad, m\n m.move = mul m.in, tenth\n m.next = add m, m.move\n m.true = "
              "div m.next, tenth\n"
              " g2 = square c.grad\n v.in = sub g2, v\n v.move = mul v.in, thousandth\n v.next = add "
              "v, v.move\n"
              " v.true = div v.next, thousandth\n root = sqrt v.true\n below = add root, least\n adam "
              "= div m.true, below\n"
              " c.last = sub c.next, adam\n c.assign = assign c, c.last\n m.assign = assign m, m.next\n"
              " v.assign = assign v, v.next\n loss loss = total\n update c.assign\n update m.assign\n "
              "update v.assign\n",
     "f 1 2 ; l 1 2 ; c 10 ; m 0 ; v 0", "loss 27 ; c 6.00000000333333332"},
    {"R8", 2, 2, 1,
     MODEL " d = variable {trainable=1} : f64[]\n d.rows = broadcast d {axes=[]} : f64[B,1]\n d.pred = mul "
           "f, d.rows\n"
           " d.miss = sub l, d.pred\n d.off = abs d.miss\n d.total = reduce_sum d.off {axes=[0, 1]}\n both = "
           "add total, d.total\n" SGD("total", "c")
               SGD("d.total", "d") " loss loss = both\n update c.update\n update d.update\n",
     "f 1 2 ; l 1 2 ; c 10 ; d 2", "loss 30 ; c 7 ; d -1"},
    {"R11, the towers' losses", 2, 2, 1,
     " f = input : f64[B,1]\n c = variable {trainable=1} : f64[]\n k = constant {value=[0.1, 0.2, 0.3]} : "
     "f64[3]\n"
     " l = constant {value=[0.1, 0.2, 0.3, 0.6]} : f64[4]\n k.rows = broadcast k {axes=[1]} : f64[B,3]\n"
     " l.rows = broadcast l {axes=[1]} : f64[B,4]\n c.rows = broadcast c {axes=[]} : f64[B,4]\n x = concat "
     "k.rows, f {axis=1}\n"
     " pred = add x, c.rows\n miss = sub l.rows, pred\n off = abs miss\n sums = reduce_sum off {axes=[1]}\n"
     " loss = reduce_sum sums {axes=[0]}\n predict sums\n loss loss\n",
     "f 0.6 1.6 ; c 0.25", "sums 1 2 ; loss 3"},
    {"R13, two ways", 2, 4, 1, " x = input : f64[B]\n y = neg x\n predict y\n", "x 0 1 2 3", "y 0 -1 -2 -3"},
    {"R13, four ways", 4, 4, 1, " x = input : f64[B]\n y = neg x\n predict y\n", "x 0 1 2 3", "y 0 -1 -2 -3"},
    {"R16", 3, 3, 1,
     " loss = input : f64[B]\n flags = input : bool[B,4]\n total = reduce_sum loss {axes=[0]}\n one = cast "
     "flags : f64[B,4]\n"
     " hits = reduce_sum one {axes=[0, 1]}\n loss loss = total\n metric accuracy = hits / 4*B\n",
     "loss 2 4 6 ; flags 1 1 0 1 1 1 1 1 0 1 1 1", "loss 12 ; accuracy 10"},
    {"R16, one tower", 1, 1, 1,
     " loss = input : f64[B]\n flags = input : bool[B,4]\n total = reduce_sum loss {axes=[0]}\n one = cast "
     "flags : f64[B,4]\n"
     " hits = reduce_sum one {axes=[0, 1]}\n loss loss = total\n metric accuracy = hits / 4*B\n",
     "loss 5 ; flags 1 0 1 1", "loss 5 ; accuracy 3"},
    {"R17", 2, 4, 1,
     " x = input : f64[B]\n k = constant {value=0.25} : f64[]\n k.rows = broadcast k {axes=[]} : f64[B]\n y "
     "= add x, k.rows\n predict y\n",
     "x 0.1 0.1 0.2 0.2", "y 0.35 0.35 0.45 0.45"},
    {"R18, read 20 times", 3, 3, 20,
     " n = input : f64[B]\n a = constant {value=1.3} : f64[]\n b = constant {value=2.3} : f64[]\n"
     " c = constant {value=[3.3, 3.5, 3.7]} : f64[3]\n a.rows = broadcast a {axes=[]} : f64[B]\n b.rows = "
     "broadcast b {axes=[]} : f64[B]\n"
     " c.rows = broadcast c {axes=[1]} : f64[B,3]\n n.rows = broadcast n {axes=[0]} : f64[B,3]\n an = mul "
     "a.rows, n\n"
     " bn = mul b.rows, n\n cn = mul c.rows, n.rows\n x = reduce_sum an {axes=[0]}\n y = reduce_sum bn "
     "{axes=[0]}\n"
     " z = reduce_sum cn {axes=[0]}\n value x\n value y\n value z\n",
     "n 1 2 3", "x 7.8 ; y 13.8 ; z 19.8 21 22.2"},
    {"R19, of scalars", 4, 4, 1, " x = input : f64[B]\n y = reduce_sum x {axes=[0]}\n value y\n", "x 1 2 3 4",
     "y 10"},
    {"R19, of vectors", 2, 2, 1, " x = input : f64[B,2]\n y = reduce_sum x {axes=[0]}\n value y\n",
     "x 1 2 3 4", "y 4 6"},
    {"R20", 2, 2, 1, ROWS("B,2", "B,2", "4") " value rows\n", "i 0 3 0 1 ; v 1 2 3 4", "rows 4 4 0 2"},
    /* the first tower has two rows, the second one */
    {"S4, sum and mean of rows", 2, 3, 1,
     ROWS("B", "B,2", "4,2") " n = constant {value=2.0} : f64[]\n ns = broadcast n {axes=[]} : f64[4,2]\n "
                             "mean = div rows, ns\n"
                             " value rows\n value mean\n",
     "i 1 3 1 ; v 3 4 5 6 1 2", "rows 0 0 4 6 0 0 5 6 ; mean 0 0 2 3 0 0 2.5 3"},
    {"S4, all-reduce of 1 and 3", 2, 2, 1,
     " x = input : f64[B]\n sum = reduce_sum x {axes=[0]}\n n = batch_size : f64[]\n mean = div sum, n\n "
     "value sum\n value mean\n",
     "x 1 3", "sum 4 ; mean 2"},
    {"S4, all-reduce of [39,2] and [3,41]", 2, 2, 1,
     " x = input : f64[B,2]\n sum = reduce_sum x {axes=[0]}\n n = batch_size : f64[]\n ns = broadcast n "
     "{axes=[]} : f64[2]\n"
     " mean = div sum, ns\n value sum\n value mean\n",
     "x 39 2 3 41", "sum 42 43 ; mean 21 21.5"},
    {"S4, mean of a last batch of 6", 4, 6, 1,
     " x = input : f64[B]\n sum = reduce_sum x {axes=[0]}\n n = batch_size : f64[]\n mean = div sum, n\n "
     "value mean\n",
     "x 1 2 3 4 5 9", "mean 4"},
    {"S4, all-reduce of 0 to 7", 8, 8, 1,
     " x = input : f64[B]\n sum = reduce_sum x {axes=[0]}\n n = batch_size : f64[]\n mean = div sum, n\n "
     "value sum\n value mean\n",
     "x 0 1 2 3 4 5 6 7", "sum 28 ; mean 3.5"},
    {"S4, all-reduce of 0 to 4", 5, 5, 1,
     " x = input : f64[B]\n sum = reduce_sum x {axes=[0]}\n n = batch_size : f64[]\n mean = div sum, n\n "
     "value sum\n value mean\n",
     "x 0 1 2 3 4", "sum 10 ; mean 2"},
    /* loss = sum over towers of u * sum(x): what each x gets is the all-reduce of u */
    {"S4, the gradient of all-reduce", 2, 2, 1,
     " x = input : f64[B]\n u = input : f64[B]\n sum = reduce_sum x {axes=[0]}\n n = batch_size : f64[]\n "
     "mean = div sum, n\n"
     " sums = broadcast sum {axes=[]} : f64[B]\n means = broadcast mean {axes=[]} : f64[B]\n us = mul u, "
     "sums\n um = mul u, means\n"
     " loss.s = reduce_sum us {axes=[0]}\n loss.m = reduce_sum um {axes=[0]}\n of.sum = gradient loss.s, x\n"
     " of.mean = gradient loss.m, x\n predict of.sum\n predict of.mean\n",
     "x 5 7 ; u 1 3", "of.sum 4 4 ; of.mean 2 2"},
    {"S4, values of each tower's number", 2, 2, 1,
     " id = iota {axis=0} : f64[B]\n one = constant {value=1.0} : f64[]\n two = constant {value=2.0} : "
     "f64[]\n"
     " ones = broadcast one {axes=[]} : f64[B]\n twos = broadcast two {axes=[]} : f64[B]\n n = add id, "
     "ones\n a = mul twos, n\n b = square n\n"
     " b2 = mul twos, b\n ab = add a, b2\n y = add ab, twos\n predict n\n predict a\n predict b\n predict "
     "y\n",
     "", "n 1 2 ; a 2 4 ; b 1 4 ; y 6 14"},
    /* each tower adds 10 + its number to a variable, summed; its mean to another */
    {"S4, increments of two towers", 2, 2, 1,
     " id = iota {axis=0} : f64[B]\n ten = constant {value=10.0} : f64[]\n tens = broadcast ten {axes=[]} : "
     "f64[B]\n by = add id, tens\n"
     " sum = reduce_sum by {axes=[0]}\n n = batch_size : f64[]\n mean = div sum, n\n v = variable : f64[]\n "
     "w = variable : f64[]\n"
     " v.next = add v, sum\n w.next = add w, mean\n v.update = assign v, v.next\n w.update = assign w, "
     "w.next\n update v.update\n"
     " update w.update\n",
     "v 1 ; w 1", "v 22 ; w 11.5"},
};

static struct graph *parse(struct arena *a, const char *name, const char *text, struct diags *d) {
  const char *whole = arena_printf(a, "graph vector {\n%s}\n", text);
  struct graph *g = graph_parse(a, source_make(a, name, whole, strlen(whole)), d);
  if (!g || !graph_verify(g, "parse", d)) fail_msg("%s\n%s", whole, diags_text(d, false));
  return g;
}

static void set_values(struct arena *a, const struct graph *g, int64_t rows, const char *text,
                       struct values *inputs, struct values *variables) {
  char name[64];
  double numbers[64];
  int count;
  while (next_entry(&text, name, numbers, &count)) {
    const struct node *n = graph_find(g, name);
    assert_non_null(n);
    struct type t = type_specialize(&n->type, rows);
    struct tensor x = {t, arena_alloc(a, (size_t)type_bytes(&t))};
    assert_int_equal(type_count(&t), count);
    for (int i = 0; i < count; i++) tensor_set(&x, i, numbers[i]);
    values_put(n->op == OP_input ? inputs : variables, name, &t, x.data);
  }
}

static void check_layout(const struct vector *v, const struct layout *l) {
  for (int e = 0; e < nengines; e++) {
    struct arena *a = arena_create();
    struct diags d;
    diags_init(&d, a);
    struct graph *g = parse(a, v->name, v->text, &d);
    struct values inputs = values_make(a), variables = values_make(a), outputs = values_make(a);
    set_values(a, g, v->rows, v->values, &inputs, &variables);
    layout_set(g, l, v->rows, &d);
    struct plan *p = engine_plan(a, g, &d);
    if (!p || !engine_run(&engines[e], p, &inputs, &variables, &outputs, v->steps, &d))
      fail_msg("%s: %s", layout_text(a, l), diags_text(&d, false));
    const char *wrong = wrong_entries(a, v->want, &outputs, &variables);
    if (wrong)
      fail_msg("%s, %s: %s\n%s", layout_text(a, l), engines[e].backend->name, wrong, graph_text(a, p->graph));
    arena_destroy(a);
  }
}

static void check_vector(void **state) {
  const struct vector *v = *state;
  struct layout all[MAX_LAYOUTS];
  int n = layouts_of(v->towers, all);
  for (int i = 0; i < n; i++) check_layout(v, &all[i]);
  /* the model means the same with one tower, and with more towers than rows */
  check_layout(v, &(struct layout){1, "one_device", "cpu:0", NULL});
  check_layout(v, &(struct layout){7, "mirrored", "cpu:0-2", NULL});
}

/* ---- what the placed graph says ---- */

static const char *placed(struct arena *a, const char *text, const struct layout *l) {
  struct diags d;
  diags_init(&d, a);
  struct graph *g = parse(a, "placed", text, &d);
  layout_set(g, l, 2, &d);
  g = pipeline_run(a, g, NULL, "place", &(struct pipeline_options){.verify_each = true}, &d);
  if (!g) fail_msg("%s", diags_text(&d, false));
  return graph_text(a, g);
}

static const char r1[] = MODEL SGD("total", "c") " loss loss = total\n update c.update\n";

static int count_of(const char *text, const char *what) {
  int count = 0;
  for (const char *p = text; (p = strstr(p, what)); p += strlen(what)) count++;
  return count;
}

static void says(const char *text, const char *what, int times) {
  if (count_of(text, what) != times) fail_msg("'%s' should stand %d times in\n%s", what, times, text);
}

static void r4_has_no_split_and_no_sum(void **state) {
  (void)state;
  struct arena *a = arena_create();
  const char *text = placed(a, r1, &(struct layout){1, "one_device", "cpu:0", NULL});
  static const char *const none[] = {"split",  "all_reduce", "all_gather",
                                     "tower_", "replica_",   "gradient_aggregating"};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) says(text, none[i], 0);
  arena_destroy(a);
}

/* Tower 0 keeps the model's names; splits, sums and copies have names of their own. */
static void names_tell_the_tower(void **state) {
  (void)state;
  struct arena *a = arena_create();
  const char *text = placed(a, r1, &(struct layout){2, "mirrored", "cpu:0-1", NULL});
  says(text, "\n  split_inputs/f = split f {offset=0}", 1);
  says(text, "\n  tower_1/split_inputs/f = split f {offset=1}", 1);
  says(text, "\n  pred = mul ", 1);
  says(text, "\n  tower_1/pred = mul ", 1);
  says(text, "\n  gradient_aggregating/c = all_reduce ", 1);
  says(text, "\n  c = variable ", 1);
  says(text, "\n  c/replica_1 = variable ", 1);
  says(text, "\n  c/replica_1.update = assign ", 0);
  says(text, " = assign ", 2);
  arena_destroy(a);
}

/* R11: one variable in the graph, on the parameter device, and one gradient sum. */
static void central_storage_has_one_variable(void **state) {
  (void)state;
  struct arena *a = arena_create();
  const char *text = placed(a, r1, &(struct layout){3, "central_storage", "cpu:0-2", "/cpu:1"});
  says(text, " = variable ", 1);
  says(text, " = assign ", 1);
  says(text, " = all_reduce ", 2);
  says(text, "# variable -> parameter device", 1);
  arena_destroy(a);
}

/* ---- rows ---- */

static void check_rows(int towers, int64_t rows, const int64_t *sizes) {
  int64_t first = 0;
  for (int t = 0; t < towers; t++) {
    assert_int_equal(tower_rows(t, towers, rows), sizes[t]);
    assert_int_equal(tower_first_row(t, towers, rows), first);
    first += sizes[t];
  }
  assert_int_equal(first, rows);
}

/* range(5) in batches of 4 over two towers: [0,1] [2,3], then [4] []. */
static void s2_batches_over_towers(void **state) {
  (void)state;
  check_rows(2, 4, (int64_t[]){2, 2});
  check_rows(2, 1, (int64_t[]){1, 0});
  check_rows(5, 4, (int64_t[]){1, 1, 1, 1, 0});
  check_rows(3, 4, (int64_t[]){2, 1, 1});
  check_rows(1, 4, (int64_t[]){4}); /* R13 by one */
  for (int towers = 1; towers <= 9; towers++)
    for (int64_t rows = 0; rows <= 40; rows++) {
      int64_t sizes[9];
      for (int t = 0; t < towers; t++) sizes[t] = rows / towers + (t < rows % towers);
      check_rows(towers, rows, sizes);
    }
}

/* R21: towers give different numbers of rows: a = 1,2 | 3 | -, b = 11 | 12,13 | 14, c = 21 | - | -. */
static void r21_concat_of_uneven_towers(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int64_t rows[3];
  } parts[] = {{"a", {2, 1, 0}}, {"b", {1, 2, 1}}, {"c", {1, 0, 0}}};
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct str s = str_make(a);
  str_put(&s, " stage placed\n batch 4\n towers 3\n strategy mirrored\n devices /cpu:0 /cpu:1 /cpu:2\n");
  for (int i = 0; i < 3; i++) {
    const char *name = parts[i].name;
    const int64_t *rows = parts[i].rows;
    int64_t first = 0;
    str_printf(&s, " %s = input : f64[%d] mirrored on /cpu:0 # rule\n", name,
               (int)(rows[0] + rows[1] + rows[2]));
    for (int t = 0; t < 3; first += rows[t++]) {
      str_printf(&s, " %s.%d = split %s {offset=%d} : f64[%d] per_replica tower %d on /cpu:0 # rule\n", name,
                 t, name, (int)first, (int)rows[t], t);
      str_printf(&s, " %s.neg.%d = neg %s.%d : f64[%d] per_replica tower %d on /cpu:%d # rule\n", name, t,
                 name, t, (int)rows[t], t, t);
    }
    str_printf(&s, " %s.all = all_gather %s.neg.0, %s.neg.1, %s.neg.2 mirrored on /cpu:0 # rule\n", name,
               name, name, name);
  }
  str_put(&s, " predict a.all\n predict b.all\n predict c.all\n");
  for (int e = 0; e < nengines; e++) {
    struct graph *g = parse(a, "R21", s.data, &d);
    struct values inputs = values_make(a), variables = values_make(a), outputs = values_make(a);
    set_values(a, g, 4, "a -1 -2 -3 ; b -11 -12 -13 -14 ; c -21", &inputs, &variables);
    struct plan *p = engine_plan(a, g, &d);
    if (!p || !engine_run(&engines[e], p, &inputs, &variables, &outputs, 1, &d))
      fail_msg("%s", diags_text(&d, false));
    const char *wrong = wrong_entries(a, "a.all 1 2 3 ; b.all 11 12 13 14 ; c.all 21", &outputs, &variables);
    if (wrong) fail_msg("%s", wrong);
  }
  arena_destroy(a);
}

int main(void) {
  enum { N = sizeof vectors / sizeof *vectors };
  static const struct CMUnitTest others[] = {
      cmocka_unit_test(r4_has_no_split_and_no_sum), cmocka_unit_test(names_tell_the_tower),
      cmocka_unit_test(central_storage_has_one_variable), cmocka_unit_test(s2_batches_over_towers),
      cmocka_unit_test(r21_concat_of_uneven_towers)};
  enum { M = sizeof others / sizeof *others };
  struct CMUnitTest tests[N + M];
  for (int i = 0; i < N; i++)
    tests[i] = (struct CMUnitTest){
        .name = vectors[i].name, .test_func = check_vector, .initial_state = (void *)(uintptr_t)&vectors[i]};
  memcpy(tests + N, others, sizeof others);
  return _cmocka_run_group_tests("vectors", tests, N + M, open_engines, close_engines);
}
