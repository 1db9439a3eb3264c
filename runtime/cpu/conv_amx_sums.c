/* SPDX-License-Identifier: Apache-2.0 */
/* A batch is cut into pieces, as many as its sizes say; their sums are added up in the order of the pieces. Where 0 has
 * met Inf or NaN, elements are computed again. */
#include "runtime/cpu/conv_amx_sums.h"

#include "base/arena.h"
#include "base/line.h"
#include "ir/ops/leaf.h"
#include "ir/ops/op.h"
#include "kernels/cpu/conv_amx_sums.h"
#include "runtime/cpu/onednn.h"
#include "runtime/cpu/scratch.h"

#if defined(__x86_64__) && defined(__linux__)

struct amx_sums {
  const struct step *step;
  const struct conv_amx_sums *way;
  int64_t batch, units, columns; /* of the kernel as a matrix */
  int count;                     /* pieces of the batch */
  float *sums;                   /* of the pieces, */
  int64_t apart;                 /* so far from one to the next */
  struct pieces pieces;
};

static void run_sums(const struct amx_sums *p, void *const *args, int piece) {
  void *room = cpu_scratch(conv_amx_sums_room(p->way));
  conv_amx_sums_run(p->way, args[0], args[1], piece_begin(p->batch, p->count, piece),
                    piece_begin(p->batch, p->count, piece + 1), p->sums + piece * p->apart, room);
}

static bool has_nan(const float *x, int64_t count) {
  int64_t found = 0;
  for (int64_t i = 0; i < count; i++) found += x[i] != x[i];
  return found > 0;
}

static void run_put(const struct amx_sums *p, void *const *args, int piece, int pieces) {
  int64_t first = piece_begin(p->units, pieces, piece), end = piece_begin(p->units, pieces, piece + 1);
  int64_t begin = conv_amx_sums_row(p->way, first) * p->columns,
          stop = conv_amx_sums_row(p->way, end) * p->columns;
  float *kernel = args[2];
  conv_amx_sums_put(p->way, p->sums, p->count, p->apart, kernel, first, end);
  if (!conv_amx_sums_have_gaps(p->way) || !has_nan(kernel + begin, stop - begin)) return;
  conv_mend_gaps(p->step->node, args, begin, stop);
}

static void run(void *const *args, const void *state, int stage, int first, int end) {
  const struct amx_sums *p = state;
  for (int i = first; i < end; i++)
    if (stage == 0)
      run_sums(p, args, i);
    else
      run_put(p, args, i, p->pieces.count[1]);
}

/* Of so many pixels and products that adding up their sums costs little beside them. */
static int count_pieces(const struct convolution *c, int64_t pixels, double products, int64_t sums) {
  enum { MOST = 8, LEAST_PIXELS = 1024, LEAST_PRODUCTS = 20000000, MOST_SUMS = 1 << 24 };
  int64_t count = c->batch;
  if (count > MOST) count = MOST;
  if (count > pixels / LEAST_PIXELS) count = pixels / LEAST_PIXELS;
  if (count > MOST_SUMS / sums) count = MOST_SUMS / sums;
  if ((double)count > products / LEAST_PRODUCTS) count = (int64_t)(products / LEAST_PRODUCTS);
  return count < 1 ? 1 : (int)count;
}

static bool is_for(const struct convolution *c) {
  bool fits = c->result == CONV_KERNEL && c->groups == 1 && c->batch > 0 && c->channels > 0 && c->filters > 0;
  for (int i = 0; i < CONV_AXES; i++)
    fits = fits && c->input[i] > 0 && c->kernel[i] > 0 && c->output[i] > 0 && c->input_dilation[i] == 1;
  return fits;
}

static void make_pieces(struct amx_sums *p, struct arena *a, const struct convolution *c) {
  enum { AT_ONCE = 1 << 14, MOST_PUTS = 16 };
  int64_t pixels = c->batch * c->output[0] * c->output[1] * c->output[2];
  int64_t elements = type_count(&p->step->node->type);
  double products = (double)pixels * (double)elements;
  p->count = count_pieces(c, pixels, products, conv_amx_sums_count(p->way));
  int64_t images = (c->batch + p->count - 1) / p->count;
  p->apart = conv_amx_sums_count(p->way) * conv_amx_sums_levels(p->way, images);
  p->sums = line_from(arena_room(a, (size_t)(p->count * p->apart) * sizeof *p->sums + CACHE_LINE));
  int64_t read = c->batch * c->input[0] * c->input[1] * c->input[2] * c->channels + pixels * c->filters;
  int64_t puts = elements / AT_ONCE + 1, most = p->units < MOST_PUTS ? p->units : MOST_PUTS;
  p->pieces = (struct pieces){.run = run,
                              .state = p,
                              .nstages = 2,
                              .count = {p->count, (int)(puts < most ? puts : most)},
                              .cost = (int64_t)(0.002 * products + 0.2 * (double)read)};
}

bool cpu_conv_amx_sums(struct arena *a, const struct step *step, struct command *c) {
  const struct node *n = step->node;
  struct convolution size = convolution_of(n);
  int64_t numbers[MAX_LEAF_NUMBERS];
  if (!onednn_units_are_amx() || !is_for(&size)) return false;
  op_of(n)->numbers(n, numbers);
  bool stored = n->inputs[0]->type.dtype == DT_BF16;
  const struct conv_amx_sums *way = conv_amx_sums_create(a, (const struct conv_numbers *)numbers, stored);
  if (!way) return false;
  struct amx_sums *p = arena_new(a, struct amx_sums);
  *p = (struct amx_sums){.step = step,
                         .way = way,
                         .batch = size.batch,
                         .units = conv_amx_sums_units(way),
                         .columns = size.filters};
  make_pieces(p, a, &size);
  c->kind = COMMAND_PIECES;
  c->pieces = &p->pieces;
  return true;
}

#else

bool cpu_conv_amx_sums(struct arena *a, const struct step *step, struct command *c) {
  (void)a, (void)step, (void)c;
  return false;
}

#endif
