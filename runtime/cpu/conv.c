/* Convolutions on the host, each on the calling thread alone: f32 by oneDNN's three primitives, which are the three
 * results of conv, inputs of few channels by kernels/cpu/conv_narrow.c, what the library has no primitive for and the
 * other types by kernels/cpu/conv.c.
 *
 * Input and output lie as they are, channels last. Kernels are small, and the library wants them in an order of its
 * own: they are put into it, or back from it, in each step. bfloat16 values are multiplied as such where the CPU has
 * units for it, and added up in f32. Which way is taken follows from the shape alone, and so do the bits.
 *
 * A batch is cut into pieces of equally many images, as many as its sizes say. Gradients of kernels are sums over the
 * images of a piece, which are added up in the order of the pieces. */
#include "kernels/cpu/conv.h"

#include "base/arena.h"
#include "ir/ops/leaf.h"
#include "kernels/cpu/bf16.h"
#include "runtime/cpu/foreign.h"
#include "runtime/cpu/leaf.h"
#include "runtime/cpu/onednn.h"

#include <stdlib.h>
#include <string.h>

/* What one thread works on. */
struct conv_piece {
  dnnl_stream_t stream;
  dnnl_memory_t tensors[3];      /* by enum conv_result */
  dnnl_memory_t packed, scratch; /* the kernel in the library's order; what it works in */
};

enum { MOST_CONV_PIECES = 16 };

struct conv_plan {
  struct convolution size; /* of a piece, as the library is told */
  bool has_primitive;      /* else kernels/cpu does it */
  bool bf16;               /* it multiplies bfloat16 */
  bool stored;             /* which its operands are */
  bool turned;             /* it is done the other way round: see turns */
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  dnnl_primitive_t primitive, reorder; /* reorder: of the kernel; NULL where it lies as it is wanted */
  dnnl_memory_t kernel_as_is, packed;  /* operands of reorder; `packed` has memory of its own */
  int count;                           /* of pieces */
  struct conv_piece all[MOST_CONV_PIECES];
  int64_t packed_floats;
  float *sums;         /* of gradients of kernels, in the library's order, by piece; NULL: there is one */
  float *kernel;       /* turned, behind the plan */
  uint16_t *halves[3]; /* bf16: the operands of all pieces, by enum conv_result */
  struct pieces pieces;
};

static int64_t places(const struct convolution *c) { return c->kernel[0] * c->kernel[1] * c->kernel[2]; }

#if DNNL_VERSION_MAJOR == 2

enum { MOST_AXES = CONV_AXES + 2 };

/* What describes the convolution to the library, axes in its order: batch, channels, spatial ones. */
struct description {
  int axes; /* spatial ones: 2 or 3 */
  dnnl_memory_desc_t tensors[3], packed;
  dnnl_dims_t strides, dilation, low, high;
};

static bool describe_image(dnnl_memory_desc_t *d, dnnl_data_type_t type, int axes, int64_t batch,
                           int64_t channels, const int64_t *size) {
  dnnl_dims_t dims = {batch, channels};
  for (int i = 0; i < axes; i++) dims[i + 2] = size[CONV_AXES - axes + i];
  return dnnl_memory_desc_init_by_tag(d, axes + 2, dims, type, axes == 2 ? dnnl_nhwc : dnnl_ndhwc) ==
         dnnl_success;
}

/* [K..., channels, groups * filters] in memory; to the library [groups, filters, channels, K...]. */
static bool describe_kernel(struct description *d, dnnl_data_type_t type, const struct convolution *c) {
  int grouped = c->groups != 1, rank = d->axes + 2 + grouped;
  int64_t filters = c->groups * c->filters, step = c->channels * filters;
  dnnl_dims_t dims = {c->groups}, strides = {c->filters};
  dims[grouped] = c->filters, strides[grouped] = 1;
  dims[grouped + 1] = c->channels, strides[grouped + 1] = filters;
  for (int i = CONV_AXES - 1; i >= CONV_AXES - d->axes; i--) {
    int at = grouped + 2 + i - (CONV_AXES - d->axes);
    dims[at] = c->kernel[i], strides[at] = step;
    step *= c->kernel[i];
  }
  return dnnl_memory_desc_init_by_strides(&d->tensors[CONV_KERNEL], rank, dims, type, strides) ==
             dnnl_success &&
         dnnl_memory_desc_init_by_tag(&d->packed, rank, dims, type, dnnl_format_tag_any) == dnnl_success;
}

/* The type of operands; results are f32. */
static bool describe(struct description *d, const struct convolution *c, dnnl_data_type_t operands) {
  dnnl_data_type_t types[3] = {operands, operands, operands};
  types[c->result] = dnnl_f32;
  bool flat = c->input[0] == 1 && c->kernel[0] == 1 && c->output[0] == 1 && c->low[0] == 0;
  *d = (struct description){.axes = flat ? 2 : 3};
  for (int i = 0; i < d->axes; i++) {
    int axis = CONV_AXES - d->axes + i;
    int64_t reach = (c->kernel[axis] - 1) * c->kernel_dilation[axis] + 1;
    d->strides[i] = c->stride[axis];
    d->dilation[i] = c->kernel_dilation[axis] - 1;
    d->low[i] = c->low[axis];
    d->high[i] = (c->output[axis] - 1) * c->stride[axis] + reach - c->input[axis] - c->low[axis];
  }
  return describe_image(&d->tensors[CONV_INPUT], types[CONV_INPUT], d->axes, c->batch,
                        c->groups * c->channels, c->input) &&
         describe_image(&d->tensors[CONV_OUTPUT], types[CONV_OUTPUT], d->axes, c->batch,
                        c->groups * c->filters, c->output) &&
         describe_kernel(d, types[CONV_KERNEL], c);
}

/* Few channels or filters in a group. */
static bool is_narrow(const struct convolution *c) { return c->channels < 32 || c->filters < 32; }

/* A library counts in int: larger sizes go to kernels/cpu, as do empty ones and dilated inputs. */
static bool wants_primitive(const struct convolution *c) {
  enum { MOST = 1 << 24 };
  bool fits = c->batch > 0 && c->batch < MOST && c->channels > 0 && c->filters > 0 &&
              c->groups * (c->channels + c->filters) < MOST;
  for (int i = 0; i < CONV_AXES; i++)
    fits = fits && c->input[i] > 0 && c->input[i] < MOST && c->kernel[i] > 0 && c->kernel[i] < MOST &&
           c->output[i] > 0 && c->output[i] < MOST && c->stride[i] < MOST && c->kernel_dilation[i] < MOST &&
           c->low[i] >= 0 && c->low[i] < MOST && c->input_dilation[i] == 1;
  return fits;
}

static dnnl_status_t forward_desc(dnnl_convolution_desc_t *desc, const struct description *d) {
  return dnnl_dilated_convolution_forward_desc_init(
      desc, dnnl_forward_training, dnnl_convolution_direct, &d->tensors[CONV_INPUT], &d->packed, NULL,
      &d->tensors[CONV_OUTPUT], d->strides, d->dilation, d->low, d->high);
}

static dnnl_status_t convolution_desc(dnnl_convolution_desc_t *desc, const struct description *d,
                                      enum conv_result result) {
  const dnnl_memory_desc_t *t = d->tensors;
  switch (result) {
  case CONV_INPUT:
    return dnnl_dilated_convolution_backward_data_desc_init(desc, dnnl_convolution_direct, &t[CONV_INPUT],
                                                            &d->packed, &t[CONV_OUTPUT], d->strides,
                                                            d->dilation, d->low, d->high);
  case CONV_KERNEL:
    return dnnl_dilated_convolution_backward_weights_desc_init(desc, dnnl_convolution_direct, &t[CONV_INPUT],
                                                               &d->packed, NULL, &t[CONV_OUTPUT], d->strides,
                                                               d->dilation, d->low, d->high);
  case CONV_OUTPUT: break;
  }
  return forward_desc(desc, d);
}

static bool create_piece(struct conv_plan *p, struct conv_piece *piece, const dnnl_memory_desc_t *scratch,
                         const struct description *d, const dnnl_memory_desc_t *packed) {
  for (int i = 0; i < 3; i++)
    if (dnnl_memory_create(&piece->tensors[i], &d->tensors[i], p->engine, DNNL_MEMORY_NONE) != dnnl_success)
      return false;
  return dnnl_stream_create(&piece->stream, p->engine, dnnl_stream_default_flags) == dnnl_success &&
         dnnl_memory_create(&piece->packed, packed, p->engine, DNNL_MEMORY_NONE) == dnnl_success &&
         dnnl_memory_create(&piece->scratch, scratch, p->engine, DNNL_MEMORY_ALLOCATE) == dnnl_success;
}

static bool create_memory(struct conv_plan *p, dnnl_primitive_desc_t made, const struct description *d,
                          const dnnl_memory_desc_t *packed) {
  enum { LINE = 64 };
  const dnnl_memory_desc_t *scratch = dnnl_primitive_desc_query_md(made, dnnl_query_scratchpad_md, 0);
  bool sums = p->size.result == CONV_KERNEL && p->count > 1;
  void *own = p->reorder && !sums ? DNNL_MEMORY_ALLOCATE : DNNL_MEMORY_NONE;
  bool good = scratch != NULL && dnnl_memory_create(&p->packed, packed, p->engine, own) == dnnl_success &&
              dnnl_memory_create(&p->kernel_as_is, &d->tensors[CONV_KERNEL], p->engine, DNNL_MEMORY_NONE) ==
                  dnnl_success;
  for (int i = 0; good && i < p->count; i++) good = create_piece(p, &p->all[i], scratch, d, packed);
  p->packed_floats =
      (int64_t)(dnnl_memory_desc_get_size(packed) + LINE - 1) / LINE * LINE / (int64_t)sizeof(float);
  if (!good || !sums) return good;
  size_t bytes = (size_t)(p->count * p->packed_floats) * sizeof(float);
  p->sums = aligned_alloc(LINE, bytes);
  if (p->sums) memset(p->sums, 0, bytes); /* what lies between the numbers is added up, too */
  return p->sums != NULL;
}

/* From the order of the graph to the library's, or back. */
static bool create_reorder(struct conv_plan *p, const struct description *d,
                           const dnnl_memory_desc_t *packed) {
  const dnnl_memory_desc_t *plain = &d->tensors[CONV_KERNEL];
  bool back = p->size.result == CONV_KERNEL;
  dnnl_primitive_desc_t desc;
  if (dnnl_memory_desc_equal(packed, plain)) return true;
  if (dnnl_reorder_primitive_desc_create(&desc, back ? packed : plain, p->engine, back ? plain : packed,
                                         p->engine, NULL) != dnnl_success)
    return false;
  bool good = dnnl_primitive_create(&p->reorder, desc) == dnnl_success;
  dnnl_primitive_desc_destroy(desc);
  return good;
}

/* The gradient of an input under strides of 1 is a convolution with the kernel turned around. For many channels the
 * library's forward ones are the faster: 1.6 times with oneDNN 2.6 on AVX-512, from 32 channels and filters on. */
static bool turns(const struct convolution *c) {
  bool good = c->result == CONV_INPUT && c->groups == 1 && !is_narrow(c);
  for (int i = 0; i < CONV_AXES; i++) {
    int64_t reach = (c->kernel[i] - 1) * c->kernel_dilation[i] + 1, low = reach - 1 - c->low[i];
    good = good && c->stride[i] == 1 && low >= 0 && c->input[i] - 1 + reach - c->output[i] - low >= 0;
  }
  return good;
}

static struct convolution turned_around(const struct convolution *c) {
  struct convolution t = *c;
  t.result = CONV_OUTPUT;
  t.channels = c->filters, t.filters = c->channels;
  for (int i = 0; i < CONV_AXES; i++) {
    t.input[i] = c->output[i], t.output[i] = c->input[i];
    t.low[i] = (c->kernel[i] - 1) * c->kernel_dilation[i] - c->low[i];
  }
  return t;
}

/* What the library may choose, and of that what it should. Measured with oneDNN 2.6 on AVX-512, LeNet's and ResNet's
 * layers: 1.1 to 1.7 times as fast as its own choice. */
/* bfloat16 units lose where a kernel is the result, and small: 0.4 to 0.8 times as fast as f32. */
static bool is_fit(const struct conv_plan *p, const char *name) {
  if (p->bf16)
    return onednn_takes_units(name) &&
           (p->size.result != CONV_KERNEL || places(&p->size) * p->size.channels > 32);
  return !strstr(name, "ref") && !strstr(name, "gemm");
}

static bool is_best(const struct conv_plan *p, const char *name) {
  const struct convolution *c = &p->size;
  if (p->bf16) return true;
  if (c->result == CONV_INPUT && c->channels <= 8 && c->groups == 1) return strstr(name, "avx512") == NULL;
  if (c->result == CONV_OUTPUT && is_narrow(c))
    return strncmp(name, "br", 2) != 0 && strstr(name, "1x1") == NULL;
  return true;
}

/* The first of the library's ways that is best, else the first that is fit; NULL where there is none, or, as *status
 * says then, no memory to look: another way has other bits. */
static dnnl_primitive_desc_t choose(const struct conv_plan *p, const dnnl_convolution_desc_t *desc,
                                    const_dnnl_primitive_attr_t attr, const_dnnl_primitive_desc_t hint,
                                    dnnl_status_t *status) {
  dnnl_primitive_desc_iterator_t ways;
  dnnl_primitive_desc_t chosen = NULL;
  *status = dnnl_primitive_desc_iterator_create(&ways, desc, attr, p->engine, hint);
  if (*status != dnnl_success) return NULL;
  for (bool found = false; !found;) {
    dnnl_primitive_desc_t way = dnnl_primitive_desc_iterator_fetch(ways);
    if (way == NULL) { /* there is one, and no memory for it */
      *status = dnnl_out_of_memory;
      break;
    }
    const char *name = onednn_way(way);
    found = is_fit(p, name) && is_best(p, name);
    dnnl_primitive_desc_t other = found || (is_fit(p, name) && !chosen) ? chosen : way;
    if (other != way) chosen = way;
    if (other) dnnl_primitive_desc_destroy(other);
    dnnl_status_t next = found ? dnnl_iterator_ends : dnnl_primitive_desc_iterator_next(ways);
    if (next == dnnl_iterator_ends) break;
    *status = next;
    if (next != dnnl_success) break;
  }
  dnnl_primitive_desc_iterator_destroy(ways);
  if (*status == dnnl_success || !chosen) return chosen;
  dnnl_primitive_desc_destroy(chosen);
  return NULL;
}

/* Sets `has_primitive` where the library has one for this shape that is fit. False if there is no memory: what would be
 * done instead has other bits. */
static bool create_primitive(struct conv_plan *p) {
  struct description d, all; /* `all`: as the library sees the forward one */
  struct convolution hinted = p->size;
  enum conv_result result = (enum conv_result)p->size.result;
  hinted.result = CONV_OUTPUT;
  dnnl_convolution_desc_t desc, forward;
  dnnl_primitive_attr_t attr = NULL;
  dnnl_primitive_desc_t made = NULL, hint = NULL;
  dnnl_status_t status = dnnl_success;
#define DONE(call) ((status = (call)) == dnnl_success)
  bool known = describe(&d, &p->size, p->bf16 ? dnnl_bf16 : dnnl_f32) &&
               DONE(dnnl_engine_create(&p->engine, dnnl_cpu, 0)) &&
               DONE(dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags)) &&
               DONE(dnnl_primitive_attr_create(&attr)) &&
               DONE(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user)) &&
               describe(&all, &hinted, p->bf16 ? dnnl_bf16 : dnnl_f32) &&
               DONE(forward_desc(&forward, &all)) && DONE(convolution_desc(&desc, &d, result)) &&
               DONE(dnnl_primitive_desc_create(&hint, &forward, NULL, p->engine, NULL)) &&
               (made = choose(p, &desc, attr, result == CONV_OUTPUT ? NULL : hint, &status));
  const dnnl_memory_desc_t *packed =
      known ? dnnl_primitive_desc_query_md(
                  made, result == CONV_KERNEL ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0)
            : NULL;
  p->has_primitive = known && DONE(dnnl_primitive_create(&p->primitive, made)) &&
                     create_reorder(p, &d, packed) && create_memory(p, made, &d, packed);
#undef DONE
  if (made) dnnl_primitive_desc_destroy(made);
  if (hint) dnnl_primitive_desc_destroy(hint);
  if (attr) dnnl_primitive_attr_destroy(attr);
  return p->has_primitive || (!known && status != dnnl_out_of_memory);
}

#else

static bool wants_primitive(const struct convolution *c) {
  (void)c;
  return false;
}

static bool turns(const struct convolution *c) {
  (void)c;
  return false;
}

static struct convolution turned_around(const struct convolution *c) { return *c; }

static bool create_primitive(struct conv_plan *p) {
  (void)p;
  return true;
}

#endif

static bool prepare(void *plan) { return create_primitive(plan); }

/* The elements of each tensor, of a piece. */
static void conv_counts(const struct convolution *c, int64_t *counts) {
  counts[CONV_INPUT] = c->batch * c->groups * c->channels * c->input[0] * c->input[1] * c->input[2];
  counts[CONV_KERNEL] = c->groups * c->channels * c->filters * places(c);
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
         (double)(places(c) * c->groups * c->channels) * (double)c->filters;
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
  int64_t channels = p->size.filters, filters = p->size.channels, count = places(&p->size);
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
static void run_conv(void *const *args, const void *state, int stage, int number) {
  foreign_enter();
  bool done = run_stage(state, args, stage, number);
  foreign_leave();
  if (!done) arena_exhausted();
}

static void make_stages(struct conv_plan *p) {
  enum { SUMMED_AT_ONCE = 1 << 14 };
  double cost = 0.01 * work(&p->size) * p->count;
  p->pieces = (struct pieces){.run = run_conv, .state = p, .nstages = 2, .cost = (int64_t)cost};
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
  bool turned = !bf16 && turns(c);
  size_t room = turned ? (size_t)(places(c) * c->channels * c->filters) * sizeof(float) : 0;
  struct conv_plan *p = calloc(1, sizeof *p + room);
  if (p == NULL) return NULL;
  p->bf16 = bf16;
  p->stored = stored;
  p->turned = turned;
  p->kernel = (float *)(p + 1);
  p->size = turned ? turned_around(c) : *c;
  p->count = count_pieces(&p->size);
  p->size.batch /= p->count;
  if (!onednn_make(p, prepare) || (bf16 && !stored && p->has_primitive && !create_halves(p))) {
    plan_destroy(p);
    return NULL;
  }
  make_stages(p);
  return p;
}

/* By the units. *done: it will be. */
static bool prepare_units(struct cpu *cpu, const struct step *step, const struct convolution *size,
                          struct command *c, bool *done, struct diags *d) {
  struct conv_plan *plan = plan_create(size, true, step->node->inputs[0]->type.dtype == DT_BF16);
  *done = true;
  if (plan && !plan->has_primitive) {
    plan_destroy(plan);
    *done = false;
    return true;
  }
  c->kind = COMMAND_PIECES;
  if (plan) c->pieces = &plan->pieces;
  return cpu_own(cpu, plan, plan_destroy, d);
}

static bool prepare_f32(struct cpu *cpu, struct arena *a, const struct step *step,
                        const struct convolution *size, struct command *c, struct diags *d) {
  struct conv_plan *plan = plan_create(size, false, false);
  if (plan && !plan->has_primitive) {
    plan_destroy(plan);
    cpu_call(a, step, &cpu_conv, c);
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
  for (int stage = 0; stage < p->nstages; stage++)
    for (int piece = 0; piece < p->count[stage]; piece++) p->run(all, p->state, stage, piece);
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

bool cpu_leaf_conv(struct cpu *cpu, struct arena *a, const struct step *step, struct command *c,
                   struct diags *d) {
  struct convolution size = convolution_of(step->node);
  int64_t numbers[MAX_LEAF_NUMBERS];
  op_of(step->node)->numbers(step->node, numbers);
  bool f32 = step->node->type.dtype == DT_F32, stored = step->node->inputs[0]->type.dtype == DT_BF16;
  bool narrow = f32 && conv_is_narrow((const struct conv_numbers *)numbers);
  bool bf16 = stored || node_attr(step->node, ATTR_precision), done = false;
  if (bf16 && !narrow && wants_primitive(&size) && onednn_has_units() &&
      !prepare_units(cpu, step, &size, c, &done, d))
    return false;
  if (done) return true;
  if (stored) return prepare_widened(cpu, a, step, c, d);
  if (f32 && !narrow && wants_primitive(&size)) return prepare_f32(cpu, a, step, &size, c, d);
  cpu_call(a, step, narrow ? &cpu_conv_narrow : &cpu_conv, c);
  return true;
}
