/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of floats in the order of ir/ops/conv.c: products of patches and of what stands beside them, by gemm.c,
 * for each group; where groups have one channel and one filter, by conv_lanes.c. Of the output the kernel is a matrix
 * as it lies; of the input it is turned around before. Gradients of kernels are sums over all pixels, whose tree is
 * cut into parts of equally many pieces that any thread computes, and which are joined at the end. Results of few
 * numbers in a pixel are conv_across.c's; gradients of small kernels are conv_gathered.c's, and those of few
 * filters conv_strips.c's.
 *
 * Patches have 0 where there is no term. 0 times Inf or NaN is NaN: where the other operand has such, and there is no
 * term somewhere, elements that are NaN are looked at again behind all others. */
#include "runtime/cpu/leaf.h"

#include "base/integer.h"
#include "ir/ops/leaf.h"
#include "ir/ops/op.h"
#include "kernels/cpu/bf16.h"
#include "kernels/cpu/conv_lanes.h"
#include "kernels/cpu/piece_sums.h"
#include "kernels/cpu/special.h"
#include "runtime/cpu/conv_across.h"
#include "runtime/cpu/conv_gathered.h"
#include "runtime/cpu/conv_order.h"
#include "runtime/cpu/conv_strips.h"
#include "runtime/cpu/gemm.h"

#include <string.h>

enum { MOST_BLOCKS = 16, MOST_PARTS = 16, WORDS_AT_ONCE = 1 << 14 };

/* Of these a convolution has what it needs: it prepares operands that are bfloat16 in memory, and kernels that are
 * turned or looked through; it finishes sums of several parts, and what may have to be mended. */
enum ordered_stage { PREPARE, MULTIPLY, FINISH };

struct ordered_conv {
  const struct step *step;
  const struct gemm *gemm; /* NULL: groups of one channel, by lanes, or by what follows */
  const struct conv_across *across;
  const struct conv_gathered *gathered;
  const struct conv_strips *strips;
  struct product size; /* of a group */
  struct convolution conv;
  struct patches patches;
  struct pieces pieces;
  enum ordered_stage stages[MAX_STAGES]; /* those of `pieces` */
  int count[MAX_STAGES];                 /* into how many pieces each is cut */
  bool gaps;                             /* somewhere is no term */
  int64_t counts[2];                     /* of numbers, by operand */
  float *wide[2];                        /* those of bfloat16 as f32; else NULL */
  char *turned;                          /* the kernel as a matrix for each group, NULL: as it lies */
  char *parts;                           /* sums of parts behind the first, which is the result */
  int64_t part, nparts;                  /* pieces of each, and how many */
  int64_t blocks;                        /* of rows, of a group */
  char *memory;                          /* of the pieces that compute by lanes: `room` bytes each */
  size_t room;
  bool special; /* whether the kernel has Inf or NaN */
};

/* w [K..., C, F] of all groups as [group, K..., F] x C, with the places from the last to the first, or as
 * [group, K..., C] x F. */
#define DEFINE_TURN(name, T)                                                                   \
  static void name(const struct convolution *c, const void *from, void *to) {                  \
    int64_t places = c->kernel[0] * c->kernel[1] * c->kernel[2], all = c->groups * c->filters; \
    const T *w = from;                                                                         \
    T *out = to;                                                                               \
    for (int64_t g = 0; g < c->groups; g++)                                                    \
      for (int64_t k = 0; k < places; k++) {                                                   \
        if (c->result == CONV_INPUT) {                                                         \
          const T *at = w + (places - 1 - k) * c->channels * all + g * c->filters;             \
          for (int64_t f = 0; f < c->filters; f++)                                             \
            for (int64_t ch = 0; ch < c->channels; ch++) *out++ = at[ch * all + f];            \
        } else {                                                                               \
          const T *at = w + k * c->channels * all + g * c->filters;                            \
          for (int64_t ch = 0; ch < c->channels; ch++, at += all, out += c->filters)           \
            memcpy(out, at, (size_t)c->filters * sizeof *out);                                 \
        }                                                                                      \
      }                                                                                        \
  }
DEFINE_TURN(turn_f32, float)
DEFINE_TURN(turn_f64, double)

/* Operands as they are multiplied. */
static void run_prepare(struct ordered_conv *p, void *const *args, int piece) {
  int count = p->count[PREPARE];
  bool f32 = p->size.dtype == DT_F32;
  for (int i = 0; i < 2; i++) {
    bool whole = i == 1 && p->conv.result != CONV_KERNEL; /* the kernel: of the first piece */
    int64_t begin = whole ? 0 : piece_begin(p->counts[i], count, piece);
    int64_t end = whole ? (piece ? 0 : p->counts[i]) : piece_begin(p->counts[i], count, piece + 1);
    const void *x = args[i];
    if (p->wide[i]) {
      bf16_unpack((const uint16_t *)args[i] + begin, p->wide[i] + begin, end > begin ? end - begin : 0);
      x = p->wide[i];
    }
    if (i == 0) continue;
    if (whole && piece == 0) p->special = p->gaps && (f32 ? special_f32 : special_f64)(x, begin, end);
    if (p->turned && piece == 0) (f32 ? turn_f32 : turn_f64)(&p->conv, x, p->turned);
  }
}

static const void *beside(const struct ordered_conv *p, void *const *args) {
  return p->wide[1] ? (const void *)p->wide[1] : args[1];
}

/* Whether 0 has met Inf or NaN. A kernel has been looked through before; of gradients, which are few numbers, those
 * that are NaN tell that what is beside the pixels must be. */
static bool is_special(const struct ordered_conv *p, void *const *args, int64_t begin, int64_t end) {
  bool (*special)(const void *, int64_t, int64_t) = p->size.dtype == DT_F32 ? special_f32 : special_f64;
  if (p->conv.result != CONV_KERNEL) return p->special;
  return p->gaps && special(args[2], begin, end) && special(beside(p, args), 0, p->counts[1]);
}

static char *part_at(const struct ordered_conv *p, void *const *args, int64_t part) {
  int64_t bytes = type_bytes(&p->step->node->type);
  return part == 0 ? args[2] : p->parts + (part - 1) * bytes;
}

/* Blocks of rows of all groups, or parts of the sums. */
static void run_lanes(const struct ordered_conv *p, void *const *args, const void *a, const void *b,
                      int first, int end) {
  bool sums = p->conv.result == CONV_KERNEL;
  int64_t units = sums ? p->nparts : p->blocks, rows = patches_rows(&p->patches);
  int count = p->count[MULTIPLY];
  for (int64_t u = piece_begin(units, count, first); u < piece_begin(units, count, end); u++) {
    int64_t step = p->nparts > 1 ? p->part * PRODUCT_PIECE : rows;
    if (p->gathered) {
      conv_gathered_run(p->gathered, a, b, (float *)(void *)part_at(p, args, u), u * step,
                        least((u + 1) * step, rows), p->memory + (size_t)first * p->room);
      continue;
    }
    if (p->strips) {
      conv_strips_run(p->strips, a, b, part_at(p, args, u), u * step, least((u + 1) * step, rows),
                      p->memory + (size_t)first * p->room);
      continue;
    }
    struct lanes_call call = {.patches = &p->patches,
                              .turned = p->conv.result == CONV_INPUT,
                              .a = a,
                              .b = b,
                              .out = sums ? part_at(p, args, u) : args[2],
                              .first = sums ? u * step : piece_begin(rows, (int)units, (int)u),
                              .end = sums ? least((u + 1) * step, rows)
                                          : piece_begin(rows, (int)units, (int)u + 1),
                              .memory = p->room ? p->memory + (size_t)first * p->room : NULL};
    (sums ? conv_lanes_kernel : conv_lanes_pixels)(&call);
  }
}

/* Blocks of rows of each group, of which those that lie side by side are one, or parts of the sums. */
static void run_products(const struct ordered_conv *p, void *const *args, int first, int end) {
  const void *a = p->wide[0] ? (const void *)p->wide[0] : args[0];
  const void *b = p->turned ? p->turned : beside(p, args);
  if (p->across) {
    int count = p->count[MULTIPLY];
    conv_across_run(p->across, a, b, args[2], piece_begin(p->conv.batch, count, first),
                    piece_begin(p->conv.batch, count, end), p->memory + (size_t)first * p->room);
    return;
  }
  if (!p->gemm) {
    run_lanes(p, args, a, b, first, end);
    return;
  }
  int64_t each = p->blocks * p->nparts, units = each * p->conv.groups, down, along;
  int count = p->count[MULTIPLY];
  gemm_units(p->gemm, &down, &along);
  for (int64_t u = piece_begin(units, count, first), stop = piece_begin(units, count, end), blocks; u < stop;
       u += blocks) {
    int64_t part = u % p->nparts, block = u % each / p->nparts;
    blocks = p->nparts > 1 ? 1 : least(stop - u, p->blocks - block);
    struct gemm_block one = {
        .batch = u / each,
        .top = piece_begin(down, (int)p->blocks, (int)block),
        .bottom = piece_begin(down, (int)p->blocks, (int)(block + blocks)),
        .right = along,
        .first = part * p->part,
        .count = p->nparts > 1 ? least(p->part, blocks_of(p->size.k, PRODUCT_PIECE) - part * p->part) : 0};
    gemm_run(p->gemm, &one, a, b, part_at(p, args, part));
  }
}

/* Of some numbers: the tree above the parts. */
static void run_join(const struct ordered_conv *p, void *const *args, int64_t begin, int64_t end) {
  int64_t size = dtype_size(p->size.dtype), at = begin * size;
  for (int64_t apart = 1; apart < p->nparts; apart *= 2)
    for (int64_t i = 0; i + apart < p->nparts; i += 2 * apart)
      sums_join(size, part_at(p, args, i) + at, part_at(p, args, i + apart) + at, end - begin);
}

/* And what 0 beside Inf or NaN has made NaN. */
static void run_mend(const struct ordered_conv *p, void *const *args, int64_t begin, int64_t end) {
  if (is_special(p, args, begin, end)) conv_mend_gaps(p->step->node, args, begin, end);
}

static void run_conv(void *const *args, const void *state, int stage, int first, int end) {
  struct ordered_conv *p = (struct ordered_conv *)(uintptr_t)state;
  int64_t all = type_count(&p->step->node->type);
  int count = p->count[FINISH];
  switch (p->stages[stage]) {
  case PREPARE:
    for (int i = first; i < end; i++) run_prepare(p, args, i);
    break;
  case MULTIPLY: run_products(p, args, first, end); break;
  case FINISH:
    run_join(p, args, piece_begin(all, count, first), piece_begin(all, count, end));
    run_mend(p, args, piece_begin(all, count, first), piece_begin(all, count, end));
    break;
  }
}

/* ---- making ---- */

static struct product product_of_group(const struct ordered_conv *p) {
  const struct convolution *c = &p->conv;
  bool sums = c->result == CONV_KERNEL;
  int64_t rows = patches_rows(&p->patches), columns = patches_columns(&p->patches);
  return (struct product){.dtype = p->size.dtype,
                          .batch = c->groups,
                          .m = sums ? columns : rows,
                          .n = c->result == CONV_INPUT ? c->channels : c->filters,
                          .k = sums ? rows : columns,
                          .transpose_a = sums};
}

static struct gemm_layout layout_of(const struct ordered_conv *p) {
  const struct product *s = &p->size;
  bool sums = p->conv.result == CONV_KERNEL;
  struct gemm_layout at = {.b_row = sums ? p->conv.groups * s->n : s->n,
                           .b_batch = sums ? s->n : s->k * s->n,
                           .c_row = p->conv.groups * s->n,
                           .c_batch = s->n,
                           .positive = true};
  if (!patches_are_image(&p->patches)) at.patches = &p->patches;
  return at;
}

/* Sums over pixels: parts of a power of two pieces, where that gives others something to do. */
static void cut_sums(struct ordered_conv *p, int count) {
  int64_t pieces = blocks_of(p->size.k, PRODUCT_PIECE);
  p->blocks = 1, p->part = 1;
  while (p->part * count < pieces || p->part * MOST_PARTS < pieces) p->part *= 2;
  p->nparts = count > 1 && pieces > 1 ? blocks_of(pieces, p->part) : 1;
}

static void add_stage(struct ordered_conv *p, enum ordered_stage stage, int64_t count) {
  p->count[stage] = p->pieces.count[p->pieces.nstages] = (int)count;
  p->stages[p->pieces.nstages++] = stage;
}

static void cut(struct ordered_conv *p) {
  enum { LEAST_WIDE = 16 };
  const struct product *s = &p->size;
  int64_t down = p->across ? p->conv.batch : s->m, along;
  double wide = (double)(s->n < LEAST_WIDE ? LEAST_WIDE : s->n);
  int64_t cost = (int64_t)(0.02 * (double)s->batch * (double)s->m * wide * (double)s->k);
  bool sums = p->conv.result == CONV_KERNEL;
  if (p->gemm) gemm_units(p->gemm, &down, &along);
  int count = pieces_for(cost, MOST_BLOCKS);
  p->nparts = 1;
  if (sums)
    cut_sums(p, count);
  else
    p->blocks = least(down, p->gemm ? blocks_of(count, s->batch) : count);
  if (p->blocks < 1) p->blocks = 1;
  int64_t units = (p->gemm ? s->batch : 1) * p->blocks * p->nparts;
  bool reads = p->wide[0] || p->wide[1];
  int64_t words = p->counts[0] > p->counts[1] ? p->counts[0] : p->counts[1];
  int64_t results = type_count(&p->step->node->type);
  p->pieces = (struct pieces){.run = run_conv, .state = p, .cost = cost};
  if (reads || p->turned || (p->gaps && !sums))
    add_stage(p, PREPARE, reads ? pieces_for(words, words / WORDS_AT_ONCE + 1) : 1);
  add_stage(p, MULTIPLY, units < 1 ? 1 : least(units, count));
  if (p->nparts > 1 || p->gaps) add_stage(p, FINISH, least(results / WORDS_AT_ONCE + 1, MOST_BLOCKS));
}

static void make_gemm(struct ordered_conv *p, struct cpu *cpu, struct arena *a) {
  size_t size = (size_t)dtype_size(p->size.dtype);
  if (p->conv.result == CONV_INPUT || (p->conv.result == CONV_OUTPUT && p->conv.groups > 1))
    p->turned = arena_alloc(a, (size_t)(p->counts[1] + 1) * size);
  if (p->conv.result != CONV_KERNEL) p->across = conv_across_create(cpu->jit, a, &p->patches, p->size.n);
  if (p->conv.result == CONV_KERNEL) p->gathered = conv_gathered_create(cpu->jit, a, &p->patches, p->size.n);
  if (p->conv.result == CONV_KERNEL && !p->gathered)
    p->strips = conv_strips_create(cpu->jit, a, &p->patches, p->size.n);
  if (p->across || p->gathered || p->strips) return;
  struct gemm_layout layout = layout_of(p);
  p->gemm = gemm_create(cpu->jit, a, &p->size, &layout, false);
}

bool cpu_conv_in_order(struct cpu *cpu, struct arena *a, const struct step *step, struct command *c,
                       struct diags *d) {
  (void)d;
  const struct node *n = step->node;
  struct ordered_conv *p = arena_new(a, struct ordered_conv);
  int64_t numbers[MAX_LEAF_NUMBERS];
  *p = (struct ordered_conv){.step = step, .conv = convolution_of(n)};
  op_of(n)->numbers(n, numbers);
  p->size.dtype = n->type.dtype;
  p->patches = patches_of((const struct conv_numbers *)numbers, dtype_size(p->size.dtype));
  p->size = product_of_group(p);
  p->gaps = patches_have_gaps(&p->patches);
  for (int i = 0; i < 2; i++) {
    p->counts[i] = type_count(&n->inputs[i]->type);
    if (n->inputs[i]->type.dtype == DT_BF16)
      p->wide[i] = arena_alloc(a, (size_t)(p->counts[i] + 1) * sizeof(float));
  }
  bool by_lanes = conv_has_lanes((const struct conv_numbers *)numbers);
  if (by_lanes)
    p->gaps = false; /* no 0 is multiplied there */
  else
    make_gemm(p, cpu, a);
  cut(p);
  p->room = by_lanes && p->conv.result == CONV_KERNEL ? conv_lanes_memory(&p->patches, p->size.k) : 0;
  if (p->gathered) p->room = conv_gathered_memory(p->gathered);
  if (p->strips) p->room = conv_strips_memory(p->strips);
  if (p->across) p->room = conv_across_memory(p->across);
  if (p->room) p->memory = arena_alloc(a, (size_t)p->count[MULTIPLY] * p->room);
  if (p->nparts > 1) p->parts = arena_alloc(a, (size_t)((p->nparts - 1) * type_bytes(&n->type)));
  c->kind = COMMAND_PIECES;
  c->pieces = &p->pieces;
  return true;
}
