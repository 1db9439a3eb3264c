/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions on the host: floats in order, by conv_order.c; integers by kernels/cpu/conv.c; bfloat16 by AMX, where
 * the CPU has it, by conv_amx.c, and gradients of kernels by conv_amx_sums.c. oneDNN, whose three primitives are the
 * three results of conv, has the other ones of bfloat16 where the CPU has units for it, and f32 where there is no fused
 * multiply-add.
 *
 * Input and output lie as they are, channels last. Kernels are small, and the library wants them in an order of its
 * own: they are put into it, or back from it, in each step. bfloat16 values are multiplied as such where the CPU has
 * units for it, and added up in f32. Which way is taken follows from the shape alone, and so do the bits.
 *
 * A batch is cut into pieces of equally many images, as many as its sizes say. Gradients of kernels are sums over the
 * images of a piece, which are added up in the order of the pieces. */
#include "kernels/cpu/conv.h"

#include "base/arena.h"
#include "kernels/cpu/bf16.h"
#include "runtime/cpu/conv_amx.h"
#include "runtime/cpu/conv_amx_sums.h"
#include "runtime/cpu/conv_order.h"
#include "runtime/cpu/conv_plan.h"
#include "runtime/cpu/foreign.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/leaf.h"

#include <stdlib.h>
#include <string.h>

/* The elements of each tensor, of a piece. */
static void conv_counts(const struct convolution *c, int64_t *counts) {
  counts[CONV_INPUT] = c->batch * c->groups * c->channels * c->input[0] * c->input[1] * c->input[2];
  counts[CONV_KERNEL] = c->groups * c->channels * c->filters * conv_places(c);
  counts[CONV_OUTPUT] = c->batch * c->groups * c->filters * c->output[0] * c->output[1] * c->output[2];
}

static void piece_destroy(const struct conv_piece *piece) {
  for (int i = 0; i < 3; i++)
    if (piece->tensors[i]) dnnl_memory_destroy(piece->tensors[i]);
  if (piece->packed) dnnl_memory_destroy(piece->packed);
  if (piece->scratch) dnnl_memory_destroy(piece->scratch);
  if (piece->stream) dnnl_stream_destroy(piece->stream);
}

static void plan_destroy(void *plan) {
  struct conv_plan *p = plan;
  for (int i = 0; i < p->count; i++) piece_destroy(&p->all[i]);
  if (p->kernel_as_is) dnnl_memory_destroy(p->kernel_as_is);
  if (p->packed) dnnl_memory_destroy(p->packed);
  if (p->primitive) dnnl_primitive_destroy(p->primitive);
  if (p->reorder) dnnl_primitive_destroy(p->reorder);
  if (p->stream) dnnl_stream_destroy(p->stream);
  if (p->engine) dnnl_engine_destroy(p->engine);
  for (int i = 0; i < 3; i++) free(p->halves[i]);
  free(p->sums);
  free(p);
}

static double work(const struct convolution *c) {
  return 2.0 * (double)c->batch * (double)(c->output[0] * c->output[1] * c->output[2]) *
         (double)(conv_places(c) * c->groups * c->channels) * (double)c->filters;
}

/* Equal pieces, each of some tens of microseconds or more, and of so many pixels that the sum of the pieces' gradients
 * of the kernel costs little beside them. */
static int count_pieces(const struct convolution *c) {
  enum { LEAST_FLOPS = 4000000, LEAST_PIXELS = 256, MOST_SUMS = 8 };
  bool sums = c->result == CONV_KERNEL;
  int count = 1;
  for (int n = 2; n <= (sums ? MOST_SUMS : MOST_CONV_PIECES); n++) {
    int64_t pixels = c->batch / n * c->output[0] * c->output[1] * c->output[2];
    if (c->batch % n == 0 && work(c) / n >= LEAST_FLOPS && (!sums || pixels >= LEAST_PIXELS)) count = n;
  }
  return count;
}

static bool run_reorder(const struct conv_plan *p, dnnl_memory_t from, dnnl_memory_t to) {
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
  return dnnl_primitive_execute(p->reorder, p->stream, 2, args) == dnnl_success;
}

/* The places of the kernel [K..., C, F] from the last to the first, as [K..., F, C]; the plan's channels are F. */
static void turn_kernel(const struct conv_plan *p, const float *w) {
  int64_t channels = p->size.filters, filters = p->size.channels, count = conv_places(&p->size);
  for (int64_t k = 0; k < count; k++) {
    float *to = p->kernel + (count - 1 - k) * channels * filters;
    for (int64_t f = 0; f < filters; f++)
      for (int64_t c = 0; c < channels; c++) to[f * channels + c] = w[(k * channels + c) * filters + f];
  }
}

/* What the arguments of a step are. */
static const enum conv_result operand_order[3][3] = {[CONV_INPUT] = {CONV_OUTPUT, CONV_KERNEL, CONV_INPUT},
                                                     [CONV_KERNEL] = {CONV_INPUT, CONV_OUTPUT, CONV_KERNEL},
                                                     [CONV_OUTPUT] = {CONV_INPUT, CONV_KERNEL, CONV_OUTPUT}};

/* The kernel as the library wants it, before all pieces. */
static bool run_before(const struct conv_plan *p, void *const *args) {
  const void *kernel = args[1];
  int64_t counts[3];
  conv_counts(&p->size, counts);
  if (p->turned) turn_kernel(p, kernel), kernel = p->kernel;
  if (p->bf16 && !p->stored)
    bf16_pack(kernel, p->halves[CONV_KERNEL], counts[CONV_KERNEL]), kernel = p->halves[CONV_KERNEL];
  return !p->reorder || (onednn_data(p->kernel_as_is, kernel) && run_reorder(p, p->kernel_as_is, p->packed));
}

/* Where a piece finds the kernel in the library's order, or puts it. */
static void *packed_at(const struct conv_plan *p, void *const *args, int number) {
  void *own = NULL;
  if (p->sums) return p->sums + number * p->packed_floats;
  if (!p->reorder && p->size.result == CONV_KERNEL) return args[2];
  if (!p->reorder)
    return p->halves[CONV_KERNEL] ? (void *)p->halves[CONV_KERNEL] : p->turned ? p->kernel : args[1];
  return dnnl_memory_get_data_handle(p->packed, &own) == dnnl_success ? own : NULL;
}

static bool run_piece(const struct conv_plan *p, void *const *args, int number) {
  static const int names[3][3] = {[CONV_INPUT] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
                                  [CONV_KERNEL] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST},
                                  [CONV_OUTPUT] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}};
  const struct conv_piece *piece = &p->all[number];
  const int *name = names[p->size.result];
  void *packed = packed_at(p, args, number);
  bool good = packed && onednn_data(piece->packed, packed);
  int64_t counts[3];
  conv_counts(&p->size, counts);
  for (int i = 0; i < 3; i++) {
    enum conv_result which = operand_order[p->size.result][i];
    if (which == CONV_KERNEL) continue;
    int64_t size = p->stored && (int)which != p->size.result ? sizeof(uint16_t) : sizeof(float);
    const char *at = (const char *)args[i] + number * counts[which] * size;
    uint16_t *half = p->halves[which] ? p->halves[which] + number * counts[which] : NULL;
    if (half) bf16_pack((const float *)(const void *)at, half, counts[which]);
    good = good && onednn_data(piece->tensors[which], half ? (const void *)half : at);
  }
  const dnnl_exec_arg_t all[] = {{name[CONV_INPUT], piece->tensors[CONV_INPUT]},
                                 {name[CONV_KERNEL], piece->packed},
                                 {name[CONV_OUTPUT], piece->tensors[CONV_OUTPUT]},
                                 {DNNL_ARG_SCRATCHPAD, piece->scratch}};
  return good && dnnl_primitive_execute(p->primitive, piece->stream, 4, all) == dnnl_success;
}

/* The sum of what the pieces have, in the place of the first. */
static void run_sum(const struct conv_plan *p, int number, int count) {
  int64_t begin = piece_begin(p->packed_floats, count, number),
          end = piece_begin(p->packed_floats, count, number + 1);
  for (int k = 1; k < p->count; k++) {
    const float *restrict from = p->sums + k * p->packed_floats;
    float *restrict to = p->sums;
    for (int64_t i = begin; i < end; i++) to[i] += from[i];
  }
}

/* The gradient of the kernel as the graph has it, behind all pieces. */
static bool run_behind(const struct conv_plan *p, void *const *args) {
  if (!p->reorder) {
    int64_t counts[3];
    conv_counts(&p->size, counts);
    memcpy(args[2], p->sums, (size_t)counts[CONV_KERNEL] * sizeof(float));
    return true;
  }
  return (!p->sums || onednn_data(p->packed, p->sums)) && onednn_data(p->kernel_as_is, args[2]) &&
         run_reorder(p, p->packed, p->kernel_as_is);
}

/* Stages: of a gradient of the kernel the pieces, their sum, its order; else the kernel's order and the pieces. */
static bool run_stage(const struct conv_plan *p, void *const *args, int stage, int number) {
  if (p->size.result != CONV_KERNEL) return stage == 0 ? run_before(p, args) : run_piece(p, args, number);
  if (stage == 0) return run_piece(p, args, number);
  if (stage == 1 && p->sums) {
    run_sum(p, number, p->pieces.count[1]);
    return true;
  }
  return stage == 1 || (!p->reorder && !p->sums) || run_behind(p, args);
}

/* The library refuses for want of memory only. */
static void run_conv(void *const *args, const void *state, int stage, int first, int end) {
  foreign_enter();
  bool done = true;
  for (int i = first; i < end; i++) done = done && run_stage(state, args, stage, i);
  foreign_leave();
  if (!done) arena_exhausted();
}

static void make_stages(struct conv_plan *p) {
  enum { SUMMED_AT_ONCE = 1 << 14 };
  double cost = 0.01 * work(&p->size) * p->count;
  p->pieces =
      (struct pieces){.run = run_conv, .state = p, .nstages = 2, .cost = (int64_t)cost, .library = ONEDNN};
  p->pieces.count[0] = p->pieces.count[1] = p->pieces.count[2] = 1;
  if (p->size.result != CONV_KERNEL) {
    p->pieces.count[1] = p->count;
    return;
  }
  int64_t sums = p->sums ? p->packed_floats / SUMMED_AT_ONCE + 1 : 1;
  p->pieces.nstages = 3;
  p->pieces.count[0] = p->count;
  p->pieces.count[1] = sums < MOST_CONV_PIECES ? (int)sums : MOST_CONV_PIECES;
}

/* The operands as bfloat16; as many elements as the tensors have. */
static bool create_halves(struct conv_plan *p) {
  int64_t counts[3];
  bool good = true;
  conv_counts(&p->size, counts);
  for (int i = 0; i < 3; i++) {
    int64_t count = i == CONV_KERNEL ? counts[i] : counts[i] * p->count;
    if (i != p->size.result) good = (p->halves[i] = malloc((size_t)count * sizeof(uint16_t))) && good;
  }
  return good;
}

/* NULL if there is no memory. */
static struct conv_plan *plan_create(const struct convolution *c, bool bf16, bool stored) {
  bool turned = !bf16 && conv_turns(c);
  size_t room = turned ? (size_t)(conv_places(c) * c->channels * c->filters) * sizeof(float) : 0;
  struct conv_plan *p = calloc(1, sizeof *p + room);
  if (p == NULL) return NULL;
  p->bf16 = bf16;
  p->stored = stored;
  p->turned = turned;
  p->kernel = (float *)(p + 1);
  p->size = turned ? conv_turned_around(c) : *c;
  p->count = count_pieces(&p->size);
  p->size.batch /= p->count;
  if (!onednn_make(p, conv_create_primitive) || (bf16 && !stored && p->has_primitive && !create_halves(p))) {
    plan_destroy(p);
    return NULL;
  }
  make_stages(p);
  return p;
}

/* *done: it will be. The library has not all. */
static bool prepare_library(struct cpu *cpu, const struct step *step, const struct convolution *size,
                            bool units, struct command *c, bool *done, struct diags *d) {
  struct conv_plan *plan = plan_create(size, units, units && step->node->inputs[0]->type.dtype == DT_BF16);
  *done = !plan || plan->has_primitive;
  if (!*done) {
    plan_destroy(plan);
    return true;
  }
  c->kind = COMMAND_PIECES;
  if (plan) c->pieces = &plan->pieces;
  return cpu_own(cpu, plan, plan_destroy, d);
}

/* One of bfloat16 in memory, as f32. */
struct widened {
  struct command inner;
  float *operands[2];
  int64_t counts[2];
};

static void run_widened(void *const *args, const void *state) {
  const struct widened *w = state;
  void *const all[] = {w->operands[0], w->operands[1], args[2]};
  for (int i = 0; i < 2; i++) bf16_unpack(args[i], w->operands[i], w->counts[i]);
  if (w->inner.kind == COMMAND_CALL) {
    w->inner.call(all, w->inner.state);
    return;
  }
  const struct pieces *p = w->inner.pieces;
  for (int stage = 0; stage < p->nstages; stage++) p->run(all, p->state, stage, 0, p->count[stage]);
}

static bool prepare_widened(struct cpu *cpu, struct arena *a, const struct step *step, struct command *c,
                            struct diags *d) {
  struct widened *w = arena_new(a, struct widened);
  struct node *wide = arena_new(a, struct node), **inputs = arena_new_array(a, 2, struct node *);
  struct step inner = *step;
  *wide = *step->node;
  wide->inputs = inputs;
  inner.node = wide;
  for (int i = 0; i < 2; i++) {
    inputs[i] = arena_new(a, struct node);
    *inputs[i] = *step->node->inputs[i];
    inputs[i]->type.dtype = DT_F32;
    w->counts[i] = type_count(&inputs[i]->type);
    w->operands[i] = arena_new_array(a, (size_t)w->counts[i] + 1, float);
  }
  w->inner.kind = COMMAND_CALL;
  if (!cpu_leaf_conv(cpu, a, &inner, &w->inner, d)) return false;
  c->call = run_widened;
  c->state = w;
  return true;
}

/* What units for bfloat16 are no help for: gradients by inputs of few channels. */
static bool is_narrow(const struct convolution *c) {
  return c->result == CONV_INPUT && c->groups == 1 && c->channels <= 8 && c->channels * c->kernel[2] <= 32;
}

bool cpu_leaf_conv(struct cpu *cpu, struct arena *a, const struct step *step, struct command *c,
                   struct diags *d) {
  const struct node *n = step->node;
  struct convolution size = convolution_of(n);
  bool ordered = gemm_can() && (n->type.dtype == DT_F32 || n->type.dtype == DT_F64);
  bool stored = n->inputs[0]->type.dtype == DT_BF16, bf16 = stored || node_attr(n, ATTR_precision);
  if (bf16 && !cpu->portable && cpu_conv_amx(a, step, c)) return true;
  bool units = bf16 && !cpu->portable && !is_narrow(&size) && onednn_units(), done = false;
  bool f32 = n->type.dtype == DT_F32 && !stored && !cpu->portable && !ordered;
  if (units && cpu_conv_amx_sums(a, step, c)) return true;
  if ((units || f32) && conv_wants_primitive(&size) && !prepare_library(cpu, step, &size, units, c, &done, d))
    return false;
  if (done) return true;
  if (ordered) return cpu_conv_in_order(cpu, a, step, c, d);
  if (stored) return prepare_widened(cpu, a, step, c, d);
  cpu_call(a, step, &cpu_conv, c);
  return true;
}
