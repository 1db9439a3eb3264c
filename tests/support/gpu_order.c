/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/gpu_order.h"

#include "runtime/cuda/program.h"

#include <string.h>

static uint64_t primitive(enum sop op, enum dtype d, uint64_t x, uint64_t y) {
  struct sinst i = {.op = (uint8_t)op, .dtype = (uint8_t)d};
  return scalar_eval(&i, d, x, y, 0);
}

struct acc {
  uint64_t value;
  int64_t where;
};

struct order {
  const struct kernel *k;
  void *const *args;
  const int64_t *sizes;
  uint64_t *values;
  int64_t index[MAX_RANK];
  int reduced[MAX_RANK]; /* loops, the last one the fastest */
};

static bool is_arg(const struct kernel *k) { return k->reduce >= REDUCE_ARGMAX; }
static enum dtype acc_dtype(const struct kernel *k) { return s_dtype(&k->body, k->result[0]); }

/* The least or greatest is what max or min makes of nothing: the interpreter says. */
static struct acc nothing(struct arena *a, const struct kernel *k) {
  enum dtype d = acc_dtype(k);
  struct kernel none = {
      .kind = KERNEL_REDUCE, .rank = 1, .nreduce = 1, .nsums = 1, .nargs = 2, .noutputs = 1};
  none.reduce = k->reduce == REDUCE_ARGMAX ? REDUCE_MAX : k->reduce == REDUCE_ARGMIN ? REDUCE_MIN : k->reduce;
  none.args[0].dtype = none.args[1].dtype = (uint8_t)d;
  none.body = sprog_make(a);
  none.epilogue = sprog_make(a);
  none.result[0] = s_arg(&none.body, 0, d);
  none.epilogue_result[0] = s_arg(&none.epilogue, 2, d);
  struct acc acc = {0, 0};
  kernel_eval(&none, (void *[]){NULL, &acc.value}, (int64_t[]){0, 1, 0});
  return acc;
}

static void take(const struct kernel *k, struct acc *acc, struct acc x) {
  static const enum sop ops[] = {
      [REDUCE_SUM] = S_ADD, [REDUCE_PROD] = S_MUL, [REDUCE_MAX] = S_MAX, [REDUCE_MIN] = S_MIN};
  enum dtype d = acc_dtype(k);
  if (!is_arg(k)) {
    acc->value = primitive(ops[k->reduce], d, acc->value, x.value);
    return;
  }
  bool new_nan = primitive(S_NE, d, x.value, x.value), old_nan = primitive(S_NE, d, acc->value, acc->value);
  bool less = primitive(S_LT, d, x.value, acc->value), more = primitive(S_LT, d, acc->value, x.value);
  bool wins = new_nan || old_nan ? new_nan && !old_nan : k->reduce == REDUCE_ARGMAX ? more : less;
  bool same = new_nan || old_nan ? new_nan && old_nan : !less && !more;
  if (wins || (same && x.where < acc->where)) *acc = x;
}

static struct acc tree(const struct kernel *k, struct acc *lane, unsigned lanes) {
  for (unsigned half = lanes / 2; half > 0; half /= 2)
    for (unsigned i = 0; i < half; i++) take(k, &lane[i], lane[i + half]);
  return lane[0];
}

static char *element(const struct order *o, int a, int loops) {
  const int64_t *stride = o->sizes + o->k->rank + a * o->k->rank;
  int64_t at = 0;
  for (int l = 0; l < loops; l++) at += o->index[l] * stride[l];
  return (char *)o->args[a] + at * dtype_size((enum dtype)o->k->args[a].dtype);
}

static void read_args(const struct order *o, const struct sprog *p, int loops, uint64_t *in) {
  for (int v = 0; v < p->count; v++) {
    int a = p->inst[v].a;
    if (p->inst[v].op != S_ARG || a >= o->k->nargs) continue;
    in[a] = 0;
    memcpy(&in[a], element(o, a, loops), (size_t)dtype_size((enum dtype)o->k->args[a].dtype));
  }
}

static struct acc value_at(struct order *o, int64_t number) {
  const struct kernel *k = o->k;
  uint64_t in[MAX_KERNEL_ARGS + 1];
  for (int i = k->nreduce - 1; i >= 0; i--) {
    int64_t extent = o->sizes[o->reduced[i]];
    o->index[o->reduced[i]] = number % extent;
    number /= extent;
  }
  read_args(o, &k->body, k->rank, in);
  sprog_eval(&k->body, in, o->index, o->sizes + k->rank + k->nargs * k->rank, o->values);
  return (struct acc){o->values[k->result[0]], o->index[k->rank - 1]};
}

static void store(struct order *o, struct acc acc, int kept) {
  const struct kernel *k = o->k;
  uint64_t in[MAX_KERNEL_ARGS + 1];
  read_args(o, &k->epilogue, kept, in);
  in[k->nargs] = is_arg(k) ? (uint64_t)(uint32_t)acc.where : acc.value;
  sprog_eval(&k->epilogue, in, o->index, o->sizes + k->rank + k->nargs * k->rank, o->values);
  for (int i = 0; i < k->noutputs; i++) {
    int a = k->nargs - k->noutputs + i;
    memcpy(element(o, a, kept), &o->values[k->epilogue_result[i]],
           (size_t)dtype_size((enum dtype)k->args[a].dtype));
  }
}

static struct acc reduce(struct order *o, struct acc identity, int64_t reduced,
                         const struct cuda_launch *launch, int n) {
  const struct kernel *k = o->k;
  bool rows = k->vector >= k->rank - k->nreduce;
  int64_t group = rows ? 4 : 1, groups = (reduced + group - 1) / group, pieces = launch[0].grid[1];
  int64_t share = (groups + pieces - 1) / pieces;
  unsigned lanes = launch[0].block[rows ? 0 : 1], join = n == 2 ? launch[1].block[0] : 1;
  struct acc lane[256], joined[256];
  for (unsigned i = 0; i < join; i++) joined[i] = identity;
  for (int64_t piece = 0; piece < pieces; piece++) {
    for (unsigned i = 0; i < lanes; i++) lane[i] = identity;
    for (int64_t g = piece * share; g < (piece + 1) * share && g < groups; g++)
      for (int64_t at = group * g; at < group * (g + 1) && at < reduced; at++)
        take(k, &lane[(g - piece * share) % lanes], value_at(o, at));
    struct acc whole = tree(k, lane, lanes);
    if (n == 2)
      take(k, &joined[piece % join], whole);
    else
      joined[0] = whole;
  }
  return tree(k, joined, join);
}

void kernel_in_gpu_order(struct arena *a, const struct kernel *k, void *const *args, const int64_t *sizes) {
  struct cuda_launch launch[2];
  size_t bytes;
  int n = cuda_launches(k, sizes, launch, &bytes), kept = k->rank - k->nreduce, fast = 0;
  struct order o = {.k = k, .args = args, .sizes = sizes};
  struct acc identity = nothing(a, k);
  int64_t results = 1, reduced = 1;
  o.values = arena_new_array(a, (size_t)(k->body.count + k->epilogue.count + 1), uint64_t);
  for (int l = 0; l < k->rank; l++) *(l < kept ? &results : &reduced) *= sizes[l];
  for (int l = kept; l < k->rank; l++)
    if (l != k->vector) o.reduced[fast++] = l;
  if (k->vector >= kept) o.reduced[fast] = k->vector;
  for (int64_t r = 0; r < results; r++) {
    int64_t rest = r;
    for (int l = kept - 1; l >= 0; rest /= sizes[l--]) o.index[l] = rest % sizes[l];
    store(&o, reduce(&o, identity, reduced, launch, n), kept);
  }
}
