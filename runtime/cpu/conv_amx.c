/* SPDX-License-Identifier: Apache-2.0 */
/* In stages: the kernel is packed, unless it is the same in all turns of a loop and was before; units of the result are
 * computed by any thread; and where the kernel has Inf or NaN, which may have met zeros around the image, what is NaN
 * is looked at again. */
#include "runtime/cpu/conv_amx.h"

#include "base/arena.h"
#include "base/line.h"
#include "ir/ops/leaf.h"
#include "ir/ops/op.h"
#include "kernels/cpu/bf16.h"
#include "kernels/cpu/conv_amx.h"
#include "kernels/cpu/special.h"
#include "runtime/cpu/onednn.h"
#include "runtime/cpu/scratch.h"

enum amx_stage { PACK, MULTIPLY, FINISH };

struct amx_step {
  const struct step *step;
  struct amx_conv conv;
  struct pieces pieces;
  enum amx_stage first; /* what stage 0 is */
  int64_t count;        /* of numbers of the kernel */
  uint16_t *half;       /* the kernel as bfloat16, NULL: it is */
  uint16_t *packed;
  bool special; /* the kernel has Inf or NaN */
};

static const uint16_t *half_kernel(const struct amx_step *p, void *const *args) {
  return p->half ? p->half : args[1];
}

static void pack(struct amx_step *p, void *const *args, int first, int end, int count) {
  const uint16_t *kernel = half_kernel(p, args);
  int64_t panels = amx_conv_panels(&p->conv);
  if (first == 0) p->special = p->conv.gaps && special_bf16(kernel, 0, p->count);
  amx_conv_pack(&p->conv, kernel, p->packed, piece_begin(panels, count, first),
                piece_begin(panels, count, end));
}

/* As one piece. */
static void pack_all(void *const *args, const void *state) {
  struct amx_step *p = (struct amx_step *)(uintptr_t)state;
  if (p->half) bf16_pack(args[1], p->half, p->count);
  pack(p, args, 0, 1, 1);
}

static void multiply(const struct amx_step *p, void *const *args, int first, int end, int count) {
  void *room = p->conv.room ? cpu_scratch(p->conv.room) : NULL;
  amx_conv_run(&p->conv, args[0], p->packed, args[2], piece_begin(p->conv.units, count, first),
               piece_begin(p->conv.units, count, end), room);
}

static void finish(const struct amx_step *p, void *const *args, int first, int end, int count) {
  const struct node *n = p->step->node;
  int64_t all = type_count(&n->type);
  if (p->special) conv_mend_gaps(n, args, piece_begin(all, count, first), piece_begin(all, count, end));
}

static void run(void *const *args, const void *state, int stage, int first, int end) {
  struct amx_step *p = (struct amx_step *)(uintptr_t)state;
  int count = p->pieces.count[stage];
  switch ((int)p->first + stage) {
  case PACK:
    if (count == 1)
      pack_all(args, p);
    else
      pack(p, args, first, end, count);
    break;
  case MULTIPLY: multiply(p, args, first, end, count); break;
  case FINISH: finish(p, args, first, end, count); break;
  }
}

static void cut(struct amx_step *p, bool still) {
  enum { NUMBERS_AT_ONCE = 1 << 14 };
  const struct node *n = p->step->node;
  struct pieces *s = &p->pieces;
  *s = (struct pieces){.run = run, .state = p, .cost = (int64_t)(0.01 * (double)op_of(n)->flops(n))};
  p->first = still ? MULTIPLY : PACK;
  if (still) s->enter = pack_all;
  if (!still) s->count[s->nstages++] = p->half ? 1 : pieces_for(p->count, amx_conv_panels(&p->conv));
  s->count[s->nstages++] = pieces_for(s->cost, p->conv.units);
  if (p->conv.gaps) s->count[s->nstages++] = pieces_for(s->cost, type_count(&n->type) / NUMBERS_AT_ONCE + 1);
}

bool cpu_conv_amx(struct arena *a, const struct step *step, struct command *c) {
  const struct node *n = step->node;
  int64_t numbers[MAX_LEAF_NUMBERS];
  if (!onednn_units_are_amx()) return false;
  struct amx_conv conv;
  bool stored = n->inputs[0]->type.dtype == DT_BF16;
  op_of(n)->numbers(n, numbers);
  if (!amx_conv_plan((const struct conv_numbers *)numbers, stored, &conv)) return false;
  struct amx_step *p = arena_new(a, struct amx_step);
  *p = (struct amx_step){.step = step, .conv = conv, .count = type_count(&n->inputs[1]->type)};
  if (!stored) p->half = arena_alloc(a, (size_t)p->count * sizeof *p->half);
  p->packed = line_from(arena_alloc(a, (size_t)conv.packed * sizeof *p->packed + CACHE_LINE));
  cut(p, step_is_still(step, 1));
  c->kind = COMMAND_PIECES;
  c->pieces = &p->pieces;
  return true;
}
