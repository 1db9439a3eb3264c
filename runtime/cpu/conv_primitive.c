/* SPDX-License-Identifier: Apache-2.0 */
/* How oneDNN is told of a convolution, and which of its ways is taken: by the shape alone, and so are the bits. */
#include "runtime/cpu/conv_plan.h"

#include "base/integer.h"
#include "base/line.h"

#include <stdlib.h>
#include <string.h>

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

/* From the first element that a kernel meets along an axis to behind the last. */
static int64_t reach_of(const struct convolution *c, int axis) {
  return (c->kernel[axis] - 1) * c->kernel_dilation[axis] + 1;
}

/* The type of operands; results are f32. */
static bool describe(struct description *d, const struct convolution *c, dnnl_data_type_t operands) {
  dnnl_data_type_t types[3] = {operands, operands, operands};
  types[c->result] = dnnl_f32;
  bool flat = c->input[0] == 1 && c->kernel[0] == 1 && c->output[0] == 1 && c->low[0] == 0;
  *d = (struct description){.axes = flat ? 2 : 3};
  for (int i = 0; i < d->axes; i++) {
    int axis = CONV_AXES - d->axes + i;
    d->strides[i] = c->stride[axis];
    d->dilation[i] = c->kernel_dilation[axis] - 1;
    d->low[i] = c->low[axis];
    d->high[i] = (c->output[axis] - 1) * c->stride[axis] + reach_of(c, axis) - c->input[axis] - c->low[axis];
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
bool conv_wants_primitive(const struct convolution *c) {
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
  const dnnl_memory_desc_t *scratch = dnnl_primitive_desc_query_md(made, dnnl_query_scratchpad_md, 0);
  bool sums = p->size.result == CONV_KERNEL && p->count > 1;
  void *own = p->reorder && !sums ? DNNL_MEMORY_ALLOCATE : DNNL_MEMORY_NONE;
  bool good = scratch != NULL && dnnl_memory_create(&p->packed, packed, p->engine, own) == dnnl_success &&
              dnnl_memory_create(&p->kernel_as_is, &d->tensors[CONV_KERNEL], p->engine, DNNL_MEMORY_NONE) ==
                  dnnl_success;
  for (int i = 0; good && i < p->count; i++) good = create_piece(p, &p->all[i], scratch, d, packed);
  p->packed_floats =
      round_up((int64_t)dnnl_memory_desc_get_size(packed), CACHE_LINE) / (int64_t)sizeof(float);
  if (!good || !sums) return good;
  size_t bytes = (size_t)(p->count * p->packed_floats) * sizeof(float);
  p->sums = aligned_alloc(CACHE_LINE, bytes);
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

/* The gradient of an input under strides of 1 is a convolution with the kernel turned around. Without a fused
 * multiply-add, which is where f32 comes here, oneDNN 2.6 has a fit way for convolutions and none for gradients: a step
 * of ResNet-20 takes 1.3 times as long if none of 32 channels and filters or more are turned. */
bool conv_turns(const struct convolution *c) {
  bool good = c->result == CONV_INPUT && c->groups == 1 && !is_narrow(c);
  for (int i = 0; i < CONV_AXES; i++) {
    int64_t reach = reach_of(c, i), low = reach - 1 - c->low[i];
    good = good && c->stride[i] == 1 && low >= 0 && c->input[i] - 1 + reach - c->output[i] - low >= 0;
  }
  return good;
}

struct convolution conv_turned_around(const struct convolution *c) {
  struct convolution t = *c;
  t.result = CONV_OUTPUT;
  t.channels = c->filters, t.filters = c->channels;
  for (int i = 0; i < CONV_AXES; i++) {
    t.input[i] = c->output[i], t.output[i] = c->input[i];
    t.low[i] = (c->kernel[i] - 1) * c->kernel_dilation[i] - c->low[i];
  }
  return t;
}

/* Where the library's ways to a kernel's gradient by AVX-512, which are those of bfloat16, read and write memory that
 * is not theirs, or none has written, oneDNN 2.6: along the first of three axes, what a kernel that begins behind the
 * padding finds is less than the kernel; or a kernel is longer than the image. */
static bool overruns(const struct conv_plan *p) {
  const struct convolution *c = &p->size;
  int64_t over = c->low[0] % c->stride[0], begin = over ? c->stride[0] - over : 0;
  bool is = begin > 0 && reach_of(c, 0) > c->input[0] - begin;
  for (int i = 0; i < CONV_AXES; i++) is |= reach_of(c, i) > c->input[i];
  return c->result == CONV_KERNEL && is;
}

/* Whether a place of the output lies over padding alone: the library's ways by AMX then call code that they have not
 * made, oneDNN 2.6. */
static bool sees_padding_alone(const struct convolution *c) {
  bool does = false;
  for (int i = 0; i < CONV_AXES; i++)
    does |= (c->output[i] - 1) * c->stride[i] - c->low[i] >= c->input[i] || reach_of(c, i) <= c->low[i];
  return does;
}

/* What the library may choose, and of that what it should. f32 comes here where the processor has no fused
 * multiply-add, or is told to do as one that has none: not by AVX-512 then. bfloat16 units lose where a kernel is the
 * result, and small: 0.4 to 0.8 times as fast as f32. */
static bool is_fit(const struct conv_plan *p, const char *name) {
  if (!p->bf16) return !strstr(name, "ref") && !strstr(name, "gemm") && !strstr(name, "avx512");
  if (overruns(p) || (p->size.result == CONV_OUTPUT && sees_padding_alone(&p->size))) return false;
  return onednn_takes_units(name) &&
         (p->size.result != CONV_KERNEL || conv_places(&p->size) * p->size.channels > 32);
}

static bool is_best(const struct conv_plan *p, const char *name) {
  return p->bf16 || p->size.result != CONV_OUTPUT || !is_narrow(&p->size) || !strstr(name, "1x1");
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

bool conv_create_primitive(void *plan) {
  struct conv_plan *p = plan;
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

bool conv_wants_primitive(const struct convolution *c) {
  (void)c;
  return false;
}

bool conv_turns(const struct convolution *c) {
  (void)c;
  return false;
}

struct convolution conv_turned_around(const struct convolution *c) {
  return *c;
}

bool conv_create_primitive(void *plan) {
  (void)plan;
  return true;
}

#endif
