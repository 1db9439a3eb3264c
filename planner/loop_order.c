/* SPDX-License-Identifier: Apache-2.0 */
/* Finishes a loop nest that loop_nest.c began: join loops, choose the vector loop, number the arguments, record the
 * programs. */
#include "base/integer.h"
#include "ir/ops/op_id.h"
#include "planner/loop_nest.h"

#include <assert.h>
#include <string.h>

/* The loops that remain, outermost first. Loop `loop[i]` is the innermost of those that were joined. */
struct loop_order {
  int rank, nreduce, vector;
  int loop[MAX_RANK + 1]; /* -1: a loop of one round, where no other is left */
  int64_t extent[MAX_RANK + 1];
  int place[MAX_RANK]; /* of a loop whose index is used; -1: always 0 */
};

static bool strides_join(const int64_t *stride, int outer, int inner, int64_t extent) {
  return stride[outer] == stride[inner] * extent;
}

/* Whether `outer` and the loop right inside it can be one: everything that is read or written lies so. */
static bool can_join(const struct nest *t, int outer, int inner, int64_t extent) {
  if (t->indexed[outer] || t->indexed[inner]) return false;
  for (int i = 0; i < t->nitems; i++) {
    const struct item *it = &t->l->items[i];
    bool strided = it->kind == ITEM_INPUT || it->kind == ITEM_RANDOM;
    if (strided && !strides_join(it->stride, outer, inner, extent)) return false;
  }
  for (int i = 0; i < t->nresults; i++)
    if (!strides_join(t->out_stride[i], outer, inner, extent)) return false;
  return true;
}

/* Appends the kept or the reduced loops. Axes of one element are no loops, but the first axis always is: it may be
 * the batch, and a kernel must not know its size. */
static void take_loops(const struct nest *t, struct loop_order *o, bool reduced, int fixed) {
  int begin = o->rank;
  for (int i = 0; i < t->nloops; i++) {
    if (t->reduced[i] != reduced || (t->extent[i] == 1 && i > 0 && i != fixed)) continue;
    int last = o->rank - 1;
    bool join = last >= begin && i != fixed && can_join(t, o->loop[last], i, t->extent[i]);
    if (!join) last = o->rank++;
    o->extent[last] = join ? o->extent[last] * t->extent[i] : t->extent[i];
    o->loop[last] = i;
  }
  if (reduced) o->nreduce = o->rank - begin;
}

/* The axis along which lanes run in a reduction, or -1 if they run along a kept one. It is never joined with
 * others: the order of the additions depends on the shape alone. */
static int reduced_lanes(const struct nest *t) {
  int last = -1, reduced = -1;
  for (int i = 0; i < t->nloops; i++) {
    if (t->reduced[i]) reduced = i;
    if (t->extent[i] != 1 || i == 0) last = i;
  }
  bool none = true; /* no reduced axis would be a loop otherwise */
  for (int i = 0; i < t->nloops; i++) none = none && !(t->reduced[i] && (t->extent[i] != 1 || i == 0));
  if (none) return reduced;
  return last >= 0 && t->reduced[last] ? last : -1;
}

static struct loop_order order_loops(const struct nest *t) {
  struct loop_order o = {.rank = 0};
  int fixed = t->nreduce ? reduced_lanes(t) : -1;
  take_loops(t, &o, false, -1);
  int kept = o.rank;
  if (t->nreduce) take_loops(t, &o, true, fixed);
  if (o.rank == 0) {
    o.loop[o.rank] = -1;
    o.extent[o.rank++] = 1;
  }
  o.vector = fixed >= 0 || kept == 0 ? o.rank - 1 : kept - 1;
  for (int i = 0; i < t->nloops; i++) o.place[i] = -1;
  for (int i = 0; i < o.rank; i++)
    if (o.loop[i] >= 0) o.place[o.loop[i]] = i;
  return o;
}

enum { MAX_PARAMS = 1024 };

/* One kernel being filled. */
struct kernel_filling {
  struct nest *t;
  struct loop_order o;
  struct kernel k;
  struct item *args[MAX_KERNEL_ARGS]; /* those that are read */
  int64_t *params;
};

static bool same_access(const struct item *a, const struct item *b) {
  return a->node == b->node && a->input == b->input && a->offset == b->offset &&
         memcmp(a->stride, b->stride, sizeof a->stride) == 0;
}

static void number_args(struct kernel_filling *e) {
  struct nest *t = e->t;
  int n = 0;
  for (int i = 0; i < t->nitems; i++) {
    struct item *it = &t->l->items[i];
    if (it->kind != ITEM_INPUT) continue;
    for (it->arg = 0; it->arg < n; it->arg++)
      if (same_access(e->args[it->arg], it)) break;
    if (it->arg < n) continue;
    assert(n + t->nresults < MAX_FUSED_ARGS);
    e->k.args[n].dtype = it->node->type.dtype;
    e->args[n++] = it;
  }
  for (int i = 0; i < t->nresults; i++)
    e->k.args[n + i] = (struct kernel_arg){.dtype = t->out_dtype[i], .output = true};
  e->k.nargs = n + t->nresults;
  e->k.noutputs = t->nresults;
}

static sval param(struct kernel_filling *e, struct sprog *p, int64_t value) {
  assert(e->k.nparams < MAX_PARAMS);
  e->params[e->k.nparams] = value;
  return s_param(p, e->k.nparams++);
}

/* Number of an element of a random stream, from the indices of all loops. Sizes are parameters; the innermost
 * stride is 1 whatever they are. */
static sval element_number(struct kernel_filling *e, struct sprog *p, const struct item *it) {
  sval sum = param(e, p, node_int_or(it->node, ATTR_offset, 0) + it->offset);
  for (int i = 0; i < e->o.rank; i++) {
    int64_t stride = e->o.loop[i] >= 0 ? it->stride[e->o.loop[i]] : 0;
    if (stride == 0) continue;
    sval index = s_index(p, i);
    if (stride != 1) index = s_binary(p, S_MUL, index, param(e, p, stride));
    sum = s_binary(p, S_ADD, sum, index);
  }
  return sum;
}

static sval immediate(struct sprog *p, const struct node *n) {
  const struct attr *a = node_attr(n, ATTR_value);
  uint64_t bits = 0;
  memcpy(&bits, a->data, (size_t)dtype_size((enum dtype)n->type.dtype));
  return s_bits(p, (enum dtype)n->type.dtype, bits);
}

static int accumulator_of(const struct nest *t, const struct node *reduce) {
  int i = 0;
  while (t->reduce[i] != reduce) i++;
  return i;
}

static void record(struct kernel_filling *e, struct item *it) {
  struct sprog *p = it->epilogue ? &e->k.epilogue : &e->k.body;
  const struct node *n = it->node;
  enum dtype d = (enum dtype)n->type.dtype;
  sval in[3];
  for (int i = 0; i < 3 && it->in[i] >= 0; i++) in[i] = e->t->l->items[it->in[i]].value;
  switch (it->kind) {
  case ITEM_INPUT: it->value = s_arg(p, it->arg, d); break;
  case ITEM_IMMEDIATE: it->value = immediate(p, n); break;
  case ITEM_BATCH:
    it->value = s_convert(p, d, param(e, p, node_int_or(n, ATTR_batch, e->t->l->batch)));
    break;
  case ITEM_ACCUMULATOR: it->value = s_arg(p, e->k.nargs + accumulator_of(e->t, n), d); break;
  case ITEM_SCALAR: it->value = op_of(n)->scalar(p, n, in); break;
  case ITEM_IOTA: {
    int axis = (int)node_int_or(n, ATTR_axis, 0), loop = it->view.loop[axis];
    sval index = param(e, p, node_int_or(n, ATTR_offset, 0) + it->view.begin[axis]);
    if (loop >= 0 && e->o.place[loop] >= 0) index = s_binary(p, S_ADD, index, s_index(p, e->o.place[loop]));
    it->value = s_convert(p, d, index);
    break;
  }
  case ITEM_RANDOM: {
    sval seed = param(e, p, node_int(n, ATTR_seed)), stream = param(e, p, node_int(n, ATTR_key));
    sval element = element_number(e, p, it);
    if (n->ninputs > 1) {
      sval before = s_binary(p, S_MUL, in[1], param(e, p, node_int(n, ATTR_width)));
      element = s_binary(p, S_ADD, element, before);
    }
    it->value = n->op == OP_random_uniform ? m_random_uniform(p, d, seed, stream, in[0], element)
                                           : m_random_normal(p, d, seed, stream, in[0], element);
    break;
  }
  }
}

static void record_all(struct kernel_filling *e) {
  struct nest *t = e->t;
  arena_reset(t->l->record);
  e->k.body = sprog_make(t->l->record);
  e->k.epilogue = sprog_make(t->l->record);
  for (int i = 0; i < t->nitems; i++) record(e, &t->l->items[i]);
  sval *mapped = e->k.result;
  for (int i = 0; i < t->nreduce; i++) *mapped++ = t->l->items[t->reduced_item[i]].value;
  int first = t->nreduce ? t->nresults - t->nmapped : 0;
  for (int i = 0; i < first; i++) e->k.epilogue_result[i] = t->l->items[t->result[i]].value;
  for (int i = first; i < t->nresults; i++) *mapped++ = t->l->items[t->result[i]].value;
}

static int64_t stride_at(const struct loop_order *o, const int64_t *stride, int loop) {
  return o->loop[loop] >= 0 ? stride[o->loop[loop]] : 0;
}

static enum stride_class class_of(int64_t stride) {
  return stride == 0 ? STRIDE_ZERO : stride == 1 ? STRIDE_ONE : STRIDE_ANY;
}

/* Strides of argument i, and the bytes it touches. */
static int64_t fill_strides(struct kernel_filling *e, int i, const int64_t *stride, int64_t *out) {
  int64_t bytes = dtype_size((enum dtype)e->k.args[i].dtype);
  for (int d = 0; d < e->o.rank; d++) {
    out[d] = stride_at(&e->o, stride, d);
    if (out[d] != 0)
      bytes *= e->o.extent[d];
    else
      e->k.still[i] |= (uint8_t)(1 << d);
    if (e->o.extent[d] == 0) bytes = 0;
  }
  int64_t along = out[e->o.vector];
  e->k.args[i].vector = (uint8_t)class_of(along);
  return bytes;
}

static const int64_t *fill_sizes(struct kernel_filling *e, int64_t *traffic) {
  struct nest *t = e->t;
  int rank = e->o.rank, reads = e->k.nargs - e->k.noutputs;
  int64_t *sizes = arena_new_array(t->l->arena, (size_t)kernel_nlaunch(&e->k), int64_t);
  memcpy(sizes, e->o.extent, (size_t)rank * sizeof *sizes);
  *traffic = 0;
  for (int i = 0; i < e->k.nargs; i++)
    *traffic += fill_strides(e, i, i < reads ? e->args[i]->stride : t->out_stride[i - reads],
                             sizes + rank + i * rank);
  memcpy(sizes + rank + e->k.nargs * rank, e->params, (size_t)e->k.nparams * sizeof *sizes);
  return sizes;
}

/* A short last axis that is not the batch, along which the lanes run: see struct kernel. Maps profit where they load
 * something that all rows have alike. */
static int choose_strip(const struct kernel_filling *e) {
  const struct kernel *k = &e->k;
  int kept = k->rank - k->nreduce;
  int64_t chunks = blocks_of(e->o.extent[k->vector], KERNEL_LANES);
  if (kept < 1 || k->vector >= kept || e->o.loop[k->vector] <= 0) return 0;
  bool shared = k->kind == KERNEL_REDUCE;
  uint8_t others = (uint8_t)(((1 << k->rank) - 1) & ~(1 << k->vector));
  for (int i = 0; i < k->nargs - k->noutputs && k->rank > 1 && chunks <= 4; i++)
    shared |= k->args[i].vector == STRIDE_ONE && k->still[i] == others;
  return !shared ? 0 : chunks >= 4 ? 4 : chunks >= 2 ? 2 : 1;
}

/* A reduction over a few elements of each row, such as the classes of a softmax. Its code is so many times as long. */
static int choose_narrow(const struct kernel_filling *e) {
  enum { MOST = 8, MOST_CODE = 600 };
  const struct kernel *k = &e->k;
  int64_t extent = e->o.extent[k->vector];
  if (k->kind != KERNEL_REDUCE || kernel_is_arg(k) || k->nreduce != 1 || k->rank < 2 ||
      k->vector != k->rank - 1 || e->o.loop[k->vector] <= 0)
    return 0;
  return extent >= 2 && extent <= MOST && extent * k->body.count <= MOST_CODE ? (int)extent : 0;
}

static void fill_rows(struct kernel_filling *e) {
  struct nest *t = e->t;
  int reads = e->k.nargs - e->k.noutputs, loop = e->k.rank - 2;
  for (int i = 0; i < e->k.nargs && e->k.narrow; i++)
    e->k.rows[i] =
        (uint8_t)class_of(stride_at(&e->o, i < reads ? e->args[i]->stride : t->out_stride[i - reads], loop));
}

static const struct launch_arg *launch_args(struct kernel_filling *e) {
  struct nest *t = e->t;
  int reads = e->k.nargs - e->k.noutputs;
  bool empty = false; /* then nothing is touched, wherever it would be */
  for (int i = 0; i < e->o.rank; i++) empty |= e->o.extent[i] == 0;
  struct launch_arg *args = arena_new_array(t->l->scratch, (size_t)e->k.nargs, struct launch_arg);
  for (int i = 0; i < e->k.nargs; i++) {
    int64_t offset = i < reads ? e->args[i]->offset : t->out_offset[i - reads];
    args[i] = (struct launch_arg){.input = i < reads ? e->args[i]->input : -1,
                                  .result = i < reads ? -1 : t->number[i - reads],
                                  .offset = empty ? 0 : offset * dtype_size((enum dtype)e->k.args[i].dtype)};
  }
  return args;
}

_Static_assert(OP_argmin - OP_reduce_sum == REDUCE_ARGMIN,
               "the ops of a reduction stand in the kernels' order");

/* A sum is cut along the axes that it goes over, the first of them first. Which rows there are beside, and what else is
 * fused, changes nothing. */
static struct segments choose_segments(const struct nest *t, const struct kernel *k) {
  int64_t extents[MAX_RANK], elements = 1;
  int naxes = 0;
  if (t->nreduce == 0 || k->reduce != REDUCE_SUM || !kernel_splits(k)) return (struct segments){1, 1};
  for (int i = 0; i < t->nloops; i++) {
    if (!t->reduced[i]) continue;
    elements *= t->extent[i];
    extents[naxes++] = t->extent[i];
  }
  bool along = k->vector >= k->rank - k->nreduce; /* the sum: a chain in each lane */
  return segments_of(along ? elements / KERNEL_LANES : elements, extents, naxes);
}

void nest_end(struct nest *t, struct launch *out) {
  int64_t params[MAX_PARAMS];
  struct kernel_filling e = {.t = t, .o = order_loops(t), .params = params};
  e.k.name = t->node->name;
  e.k.kind = t->nreduce ? KERNEL_REDUCE : KERNEL_MAP;
  if (t->nreduce) e.k.reduce = (enum reduce_op)(t->reduce[0]->op - OP_reduce_sum);
  e.k.nsums = t->nreduce;
  e.k.nmapped = t->nmapped;
  e.k.rank = e.o.rank;
  e.k.nreduce = e.o.nreduce;
  e.k.vector = e.o.vector;
  number_args(&e);
  record_all(&e);
  kernel_settle(&e.k);
  out->sizes = fill_sizes(&e, &out->traffic);
  e.k.strip = choose_strip(&e);
  e.k.narrow = choose_narrow(&e);
  fill_rows(&e);
  out->segments = choose_segments(t, &e.k);
  out->args = launch_args(&e);
  out->kernel = lower_intern(t->l, &e.k);
}
