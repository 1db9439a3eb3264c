/* SPDX-License-Identifier: Apache-2.0 */
/* A reduction as CUDA C.
 *
 * The elements of one result are numbered in the order of the reduced loops, the vector loop the fastest.
 * Each is taken by one of `lanes` threads, which takes its own in their order: of rows, four neighbours go
 * to one lane, the next four to the next; of columns each goes to the next lane. The lanes are combined as a
 * binary tree. Many elements are cut into pieces first, each with lanes and a tree of its own in a block of
 * its own; what they give goes to memory, where a second kernel combines it, again in lanes and as a tree.
 * How many lanes and pieces there are depends on the number of elements alone (grid.c), so the bits do not
 * depend on how many results there are.
 *
 * Threads of a warp stand next to each other in memory: along the row, or on neighbouring columns. */
#include "runtime/cuda/emit.h"

static void declare_acc(struct cuda_writer *w) {
  struct str s = str_make(w->scratch);
  enum dtype d = kernel_acc_dtype(w->k);
  cuda_constant(&s, d, reduce_identity(w->k->reduce, d));
  cuda_line(w, "%s acc = %s;", cuda_type(d), s.data);
  if (kernel_is_arg(w->k)) cuda_line(w, "int where = 0;");
}

/* "x comes before y": larger, smaller or the first NaN. */
static const char *beats(struct cuda_writer *w, const char *x, const char *y) {
  const char *sign = w->k->reduce == REDUCE_ARGMAX ? ">" : "<";
  if (!dtype_is_float(kernel_acc_dtype(w->k))) return arena_printf(w->scratch, "%s %s %s", x, sign, y);
  return arena_printf(w->scratch, "%s %s %s || (%s != %s && %s == %s)", x, sign, y, x, x, y, y);
}

/* acc = acc and x; `guard` comes before, as in "if (j < n) ". */
static void take(struct cuda_writer *w, const char *guard, const char *x) {
  enum dtype d = kernel_acc_dtype(w->k);
  const struct sinst i = {.op = (uint8_t)reduce_primitive(w->k->reduce), .dtype = (uint8_t)d};
  cuda_line(w, "%sacc = %s;", guard, cuda_expression(w->scratch, &i, d, "acc", x, NULL));
}

/* One more element; those of a lane come in order, so that the first of equals stays. */
static void take_element(struct cuda_writer *w, const char *guard, const char *x) {
  if (!kernel_is_arg(w->k)) {
    take(w, guard, x);
    return;
  }
  cuda_line(w, "const %s x = %s;", cuda_type(kernel_acc_dtype(w->k)), x);
  cuda_line(w, "const int wins = %s;", beats(w, "x", "acc"));
  cuda_line(w, "%swhere = wins ? (int)%s : where;", guard, w->index[w->k->rank - 1]);
  cuda_line(w, "%sacc = wins ? x : acc;", guard);
}

/* What another lane or piece has; of equals the smaller index wins. */
static void take_other(struct cuda_writer *w, const char *x, const char *at) {
  enum dtype d = kernel_acc_dtype(w->k);
  cuda_line(w, "const %s x = %s;", cuda_type(d), x);
  if (!kernel_is_arg(w->k)) {
    take(w, "", "x");
    return;
  }
  cuda_line(w, "const int at = %s;", at);
  cuda_line(w, "const int same = x == acc%s;", dtype_is_float(d) ? " || (x != x && acc != acc)" : "");
  cuda_line(w, "const int wins = %s || (same && at < where);", beats(w, "x", "acc"));
  cuda_line(w, "where = wins ? at : where;");
  cuda_line(w, "acc = wins ? x : acc;");
}

static void declare_shared(struct cuda_writer *w) {
  cuda_line(w, "__shared__ %s all[%d];", cuda_memory(kernel_acc_dtype(w->k)), CUDA_MAX_THREADS);
  if (kernel_is_arg(w->k)) cuda_line(w, "__shared__ int all_where[%d];", CUDA_MAX_THREADS);
}

/* The lanes of a block become one: 0 and half, 1 and half + 1, ... */
static void combine_lanes(struct cuda_writer *w) {
  cuda_line(w, "all[me] = acc;");
  if (kernel_is_arg(w->k)) cuda_line(w, "all_where[me] = where;");
  cuda_line(w, "for (int half = lanes / 2; half > 0; half /= 2) {");
  cuda_line(w, "__syncthreads();");
  cuda_line(w, "if (lane < half) {");
  take_other(w, "all[me + half * pace]", "all_where[me + half * pace]");
  cuda_line(w, "all[me] = acc;");
  if (kernel_is_arg(w->k)) cuda_line(w, "all_where[me] = where;");
  cuda_line(w, "}");
  cuda_line(w, "}");
}

/* Which thread this is: `slot` of the results in a block, `lane` of those that work on it. */
static void declare_place(struct cuda_writer *w, bool rows) {
  cuda_line(w, "const int lanes = blockDim.%c, slots = blockDim.%c;", rows ? 'x' : 'y', rows ? 'y' : 'x');
  cuda_line(w, "const int lane = threadIdx.%c, slot = threadIdx.%c;", rows ? 'x' : 'y', rows ? 'y' : 'x');
  cuda_line(w, "const int pace = %s, me = threadIdx.y * blockDim.x + threadIdx.x;", rows ? "1" : "slots");
}

static void kept_indices(struct cuda_writer *w) {
  const struct kernel *k = w->k;
  int kept = k->rank - k->nreduce, loops[MAX_RANK], n = 0;
  for (int l = 0; l < kept; l++)
    if (l != k->vector) loops[n++] = l;
  if (n < kept) loops[n++] = k->vector;
  cuda_line(w, "const long long result = base + slot;");
  if (n > 1) cuda_line(w, "const long long here = result < kept ? result : kept - 1;");
  cuda_unflatten(w, n > 1 ? "here" : "result", loops, n, "");
  for (int l = 0; l < kept; l++) w->index[l] = arena_printf(w->scratch, "i%d", l);
}

static void finish(struct cuda_writer *w) {
  const struct kernel *k = w->k;
  const char *value[MAX_KERNEL_RESULTS];
  int kept = k->rank - k->nreduce;
  uint32_t reads = cuda_reads(w->scratch, &k->epilogue, k->epilogue_result, k->noutputs);
  cuda_load_one(w, reads & ((UINT32_C(1) << k->nargs) - 1), kept);
  w->value[k->nargs] = kernel_is_arg(k) ? "where" : "acc";
  cuda_program_lines(w, &k->epilogue, k->epilogue_result, k->noutputs, value);
  for (int r = 0; r < k->noutputs; r++)
    cuda_line(w, "%s = %s;", cuda_element(w, k->nargs - k->noutputs + r, kept), value[r]);
}

/* ---- the elements of one lane ---- */

static int reduced_loops(const struct kernel *k, int *loops) {
  int n = 0;
  for (int l = k->rank - k->nreduce; l < k->rank; l++)
    if (l != k->vector) loops[n++] = l;
  if (n < k->nreduce) loops[n++] = k->vector;
  return n;
}

static void element_lines(struct cuda_writer *w, const char *guard) {
  const char *x;
  cuda_program_lines(w, &w->k->body, w->k->result, 1, &x);
  take_element(w, guard, x);
}

static void lane_batches(struct cuda_writer *w, uint32_t reads, const int *loops, int n, bool can_be_wide) {
  if (cuda_sums_rows(w->k)) {
    cuda_line(w, "for (long long group = begin + lane; group < end; group += lanes) {");
    cuda_line(w, "const long long first = %d * group, hop = 1, limit = reduced;", CUDA_BATCH);
  } else {
    cuda_line(w, "for (long long first = begin + lane; first < end; first += %dLL * lanes) {", CUDA_BATCH);
    cuda_line(w, "const long long hop = lanes, limit = end;");
  }
  if (can_be_wide) cuda_line(w, "const int full = wide && first + %d <= limit;", CUDA_BATCH);
  cuda_load_batch(w, reads, loops, n, can_be_wide);
  cuda_line(w, "#pragma unroll");
  cuda_line(w, "for (int j = 0; j < %d; j++) {", CUDA_BATCH);
  for (int l = 0; l < n; l++) w->index[loops[l]] = arena_printf(w->scratch, "i%d[j]", loops[l]);
  element_lines(w, "if (first + j * hop < limit) ");
  cuda_line(w, "}");
  cuda_line(w, "}");
}

static void lane_elements(struct cuda_writer *w, uint32_t reads, const int *loops, int n) {
  bool rows = cuda_sums_rows(w->k);
  cuda_line(w, "for (long long group = begin + lane; group < end; group += lanes) {");
  if (rows) {
    cuda_line(w, "#pragma unroll 1");
    cuda_line(w, "for (long long at = %d * group; at < %d * group + %d && at < reduced; at++) {", CUDA_BATCH,
              CUDA_BATCH, CUDA_BATCH);
  }
  cuda_unflatten(w, rows ? "at" : "group", loops, n, "");
  for (int l = 0; l < n; l++) w->index[loops[l]] = arena_printf(w->scratch, "i%d", loops[l]);
  cuda_load_one(w, reads, w->k->rank);
  element_lines(w, "");
  if (rows) cuda_line(w, "}");
  cuda_line(w, "}");
}

/* ---- the kernels ---- */

static void begin_results(struct cuda_writer *w) {
  cuda_line(w, "for (long long base = (long long)blockIdx.x * slots; base < kept; base += (long "
               "long)gridDim.x * slots) {");
  kept_indices(w);
  declare_acc(w);
  cuda_line(w, "if (result < kept) {");
}

static void end_results(struct cuda_writer *w) {
  cuda_line(w, "}");
  cuda_line(w, "__syncthreads();");
  cuda_line(w, "}");
}

void cuda_reduce(struct cuda_writer *w) {
  const struct kernel *k = w->k;
  bool rows = cuda_sums_rows(k);
  int loops[MAX_RANK], n = reduced_loops(k, loops), kept = k->rank - k->nreduce;
  uint32_t reads = cuda_reads(w->scratch, &k->body, k->result, 1);
  declare_shared(w);
  declare_place(w, rows);
  cuda_count(w, "kept", 0, kept);
  cuda_count(w, "reduced", kept, k->rank);
  if (rows) cuda_line(w, "const long long groups = (reduced + %d) / %d;", CUDA_BATCH - 1, CUDA_BATCH);
  const char *groups = rows ? "groups" : "reduced";
  cuda_line(w, "const long long share = (%s + gridDim.y - 1) / gridDim.y, begin = blockIdx.y * share;",
            groups);
  cuda_line(w, "const long long end = begin + share < %s ? begin + share : %s;", groups, groups);
  bool batch = cuda_batch(k) > 1, can_be_wide = batch && rows && cuda_wide(w, reads, n);
  begin_results(w);
  if (batch)
    lane_batches(w, reads, loops, n, can_be_wide);
  else
    lane_elements(w, reads, loops, n);
  cuda_line(w, "}");
  combine_lanes(w);
  cuda_line(w, "if (lane == 0 && result < kept && gridDim.y > 1) {");
  cuda_line(w, "scratch[result * gridDim.y + blockIdx.y].acc = acc;");
  if (kernel_is_arg(k)) cuda_line(w, "scratch[result * gridDim.y + blockIdx.y].where = where;");
  cuda_line(w, "}");
  cuda_line(w, "if (lane == 0 && result < kept && gridDim.y == 1) {");
  finish(w);
  end_results(w);
}

void cuda_join(struct cuda_writer *w) {
  const struct kernel *k = w->k;
  int kept = k->rank - k->nreduce;
  declare_shared(w);
  declare_place(w, true);
  cuda_count(w, "kept", 0, kept);
  cuda_count(w, "reduced", kept, k->rank);
  cuda_line(w, "const long long pieces = %s(reduced);", cuda_sums_rows(k) ? "row_pieces" : "column_pieces");
  begin_results(w);
  cuda_line(w, "for (long long piece = lane; piece < pieces; piece += lanes) {");
  take_other(w, "scratch[result * pieces + piece].acc", "scratch[result * pieces + piece].where");
  cuda_line(w, "}");
  cuda_line(w, "}");
  combine_lanes(w);
  cuda_line(w, "if (lane == 0 && result < kept) {");
  finish(w);
  end_results(w);
}
