/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of segments, and what they are called with. */
#include "ir/scalar/split.h"

#include <string.h>

struct segments segments_of(int64_t elements, const int64_t *extents, int naxes) {
  int64_t most = elements / LEAST_SEGMENT, count = 1, rows = 1;
  if (most > MOST_SEGMENTS) most = MOST_SEGMENTS;
  for (int i = 0; i < naxes && count == rows && 2 * count <= most; i++) {
    int64_t each = most / count; /* of a row of the axes before */
    count *= each < extents[i] ? each : extents[i];
    rows *= extents[i];
  }
  return (struct segments){(int)count, rows};
}

static int inputs_of(const struct kernel *k) { return k->nargs - k->noutputs; }
static int kept_of(const struct kernel *k) { return k->rank - k->nreduce; }
/* Whether lanes run along the results. Those of the join run along the segments otherwise. */
static bool beside(const struct kernel *k) { return k->vector < kept_of(k); }

/* Another kernel than k, and than what else is made of it. */
static uint64_t other_hash(const struct kernel *k, uint64_t number) {
  return (k->hash ^ number) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Argument i is what segments give. */
static void set_sums(struct kernel *k, int i, enum dtype d, enum stride_class along, bool output) {
  k->args[i] = (struct kernel_arg){(uint8_t)d, (uint8_t)along, output};
  k->still[i] = 0;
}

static void make_segment(struct arena *a, const struct kernel *k, struct kernel *out) {
  enum dtype d = kernel_acc_dtype(k);
  int inputs = inputs_of(k);
  *out = kernel_copy(a, k);
  for (int j = 0; j < k->nsums; j++) set_sums(out, inputs + j, d, beside(k) ? STRIDE_ONE : STRIDE_ZERO, true);
  for (int j = 0; j < k->nmapped; j++) {
    out->args[inputs + k->nsums + j] = k->args[k->nargs - k->nmapped + j];
    out->still[inputs + k->nsums + j] = k->still[k->nargs - k->nmapped + j];
  }
  out->noutputs = k->nsums + k->nmapped;
  out->nargs = inputs + out->noutputs;
  out->epilogue = sprog_make(a);
  for (int j = 0; j < k->nsums; j++) out->epilogue_result[j] = s_arg(&out->epilogue, out->nargs + j, d);
  kernel_settle(out);
  out->hash = other_hash(k, 1);
}

static void make_join(struct arena *a, const struct kernel *k, struct kernel *out) {
  enum dtype d = kernel_acc_dtype(k);
  int inputs = inputs_of(k), kept = kept_of(k);
  *out = kernel_copy(a, k);
  out->rank = kept + 1;
  out->nreduce = 1;
  out->vector = beside(k) ? k->vector : kept;
  out->nmapped = 0;
  out->noutputs = kernel_reduced(k);
  out->nargs = inputs + k->nsums + out->noutputs;
  for (int i = 0; i < inputs && !beside(k); i++) out->args[i].vector = STRIDE_ZERO;
  for (int i = 0; i < inputs; i++) out->still[i] &= (uint8_t)((1 << kept) - 1);
  for (int j = 0; j < k->nsums; j++) set_sums(out, inputs + j, d, STRIDE_ONE, false);
  for (int j = 0; j < out->noutputs; j++) {
    out->args[inputs + k->nsums + j] = k->args[inputs + j];
    out->still[inputs + k->nsums + j] = (uint8_t)(k->still[inputs + j] & ((1 << kept) - 1));
  }
  out->body = sprog_make(a);
  for (int j = 0; j < k->nsums; j++) out->result[j] = s_arg(&out->body, inputs + j, d);
  for (int i = 0; i < out->epilogue.count; i++) {
    struct sinst *s = &out->epilogue.inst[i];
    if (s->op == S_ARG && s->a >= k->nargs) s->a = (uint16_t)(s->a - k->nargs + out->nargs);
  }
  kernel_settle(out);
  out->hash = other_hash(k, 2);
}

bool kernel_splits(const struct kernel *k) {
  if (k->kind != KERNEL_REDUCE || kernel_is_arg(k) || k->nargs > MAX_FUSED_ARGS) return false;
  return !k->narrow && (!beside(k) || k->vector == kept_of(k) - 1);
}

bool kernel_split(struct arena *a, const struct kernel *k, struct split *out) {
  if (!kernel_splits(k)) return false;
  make_segment(a, k, &out->segment);
  make_join(a, k, &out->join);
  return true;
}

/* Strides of argument i of k along its kept loops. */
static void kept_strides(const struct split_launch *l, int i, int64_t *out) {
  memcpy(out, l->sizes + l->k->rank + i * l->k->rank, (size_t)kept_of(l->k) * sizeof *out);
}

/* The same of what segments give: those of one result lie side by side where lanes of the join run along them. */
static void sum_strides(const struct split_launch *l, int64_t *out) {
  int64_t step = beside(l->k) ? 1 : l->segments.count;
  for (int d = kept_of(l->k) - 1; d >= 0; d--) out[d] = step, step *= l->sizes[d];
}

static int64_t segment_stride(const struct split_launch *l) { return beside(l->k) ? l->results : 1; }

struct split_launch split_launch(struct arena *a, const struct kernel *k, const struct split *split,
                                 const int64_t *sizes, struct segments segments) {
  const struct kernel *join = &split->join;
  int kept = kept_of(k), rank = join->rank, inputs = inputs_of(k);
  struct split_launch l = {.k = k, .split = split, .segments = segments, .sizes = sizes, .results = 1};
  l.join_sizes = arena_new_array(a, (size_t)kernel_nlaunch(join), int64_t);
  for (int d = 0; d < kept; d++) l.results *= sizes[d];
  l.sum_bytes = l.results * segments.count * dtype_size(kernel_acc_dtype(k));
  l.sums = arena_alloc(a, (size_t)(k->nsums * l.sum_bytes));
  memcpy(l.join_sizes, sizes, (size_t)kept * sizeof *sizes);
  l.join_sizes[kept] = segments.count;
  int64_t *strides = l.join_sizes + rank;
  for (int i = 0; i < inputs; i++) kept_strides(&l, i, strides + i * rank);
  for (int j = 0; j < k->nsums; j++) {
    sum_strides(&l, strides + (inputs + j) * rank);
    strides[(inputs + j) * rank + kept] = segment_stride(&l);
  }
  for (int j = 0; j < join->noutputs; j++)
    kept_strides(&l, inputs + j, strides + (inputs + k->nsums + j) * rank);
  memcpy(strides + join->nargs * rank, sizes + k->rank + k->nargs * k->rank,
         (size_t)k->nparams * sizeof *sizes);
  memcpy(l.join_sizes + kernel_nsizes(join), sizes + kernel_nsizes(k), (size_t)kept * sizeof *sizes);
  return l;
}

/* Where each loop begins, and its size. A loop may go over several axes, or an axis that is cut be one of several that
 * loops go over: those outside of the cut have one row. */
static void find_segment(const struct split_launch *l, int p, int64_t *begin, int64_t *sizes) {
  int rank = l->k->rank;
  int64_t inner = 1;
  memset(begin, 0, (size_t)rank * sizeof *begin);
  memcpy(sizes, l->sizes, (size_t)rank * sizeof *sizes);
  for (int d = kept_of(l->k); d < rank; d++) inner *= sizes[d];
  int64_t row = inner / l->segments.rows, first = l->segments.rows * p / l->segments.count * row,
          end = l->segments.rows * (p + 1) / l->segments.count * row;
  for (int d = kept_of(l->k); d < rank; d++) {
    inner /= sizes[d];
    begin[d] = first / inner;
    sizes[d] = (end - 1) / inner + 1 - begin[d];
    if (end - first >= inner) return;
    first -= begin[d] * inner, end -= begin[d] * inner;
  }
}

void split_segment(const struct split_launch *l, int p, void *const *args, void **segment_args,
                   int64_t *sizes) {
  const struct kernel *k = l->k, *segment = &l->split->segment;
  int rank = k->rank, inputs = inputs_of(k);
  int64_t begin[MAX_RANK], *strides = sizes + rank, sum_size = dtype_size(kernel_acc_dtype(k));
  find_segment(l, p, begin, sizes);
  for (int i = 0; i < segment->nargs; i++) {
    bool sum = i >= inputs && i < inputs + k->nsums;
    int from = i < inputs ? i : k->nargs - segment->nargs + i; /* of a mapped output */
    memset(strides + i * rank, 0, (size_t)rank * sizeof *sizes);
    if (sum) {
      sum_strides(l, strides + i * rank);
      segment_args[i] = l->sums + (i - inputs) * l->sum_bytes + p * segment_stride(l) * sum_size;
      continue;
    }
    memcpy(strides + i * rank, l->sizes + rank + from * rank, (size_t)rank * sizeof *sizes);
    int64_t offset = 0;
    for (int d = 0; d < rank; d++) offset += begin[d] * strides[i * rank + d];
    segment_args[i] = (char *)args[from] + offset * dtype_size((enum dtype)k->args[from].dtype);
  }
  memcpy(strides + segment->nargs * rank, l->sizes + rank + k->nargs * rank,
         (size_t)(k->nparams + rank) * sizeof *sizes); /* and where the loops begin */
  for (int d = 0; d < rank; d++) sizes[kernel_nsizes(segment) + d] += begin[d];
}

void split_join(const struct split_launch *l, void *const *args, void **join_args) {
  const struct kernel *k = l->k;
  int inputs = inputs_of(k);
  memcpy(join_args, args, (size_t)inputs * sizeof *args);
  for (int j = 0; j < k->nsums; j++) join_args[inputs + j] = l->sums + j * l->sum_bytes;
  memcpy(join_args + inputs + k->nsums, args + inputs, (size_t)kernel_reduced(k) * sizeof *args);
}

void kernel_eval_split(const struct kernel *k, void *const *args, const int64_t *sizes,
                       struct segments segments) {
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  struct split split;
  void *moved[MAX_KERNEL_ARGS];
  if (kernel_split(a, k, &split)) {
    struct split_launch l = split_launch(a, k, &split, sizes, segments);
    int64_t *segment_sizes = arena_new_array(a, (size_t)kernel_nlaunch(&split.segment), int64_t);
    for (int p = 0; p < segments.count; p++) {
      split_segment(&l, p, args, moved, segment_sizes);
      kernel_eval_piece(&split.segment, moved, segment_sizes);
    }
    split_join(&l, args, moved);
    kernel_eval_piece(&split.join, moved, l.join_sizes);
  } else {
    kernel_eval(k, args, sizes);
  }
  arena_destroy_guarded(a, &guard);
}
