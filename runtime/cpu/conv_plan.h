/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution that oneDNN does: what describes it to the library, and what its pieces work on. */
#ifndef DGC_RUNTIME_CPU_CONV_PLAN_H
#define DGC_RUNTIME_CPU_CONV_PLAN_H

#include "ir/ops/leaf.h"
#include "runtime/cpu/onednn.h"
#include "runtime/pieces.h"

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
  bool stored;             /* its operands are bfloat16 in memory, too */
  bool turned;             /* it is done with the kernel turned around: see conv_turns */
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

/* Places of the kernel. */
static inline int64_t conv_places(const struct convolution *c) {
  return c->kernel[0] * c->kernel[1] * c->kernel[2];
}

/* Whether the library may have a primitive for these sizes. */
bool conv_wants_primitive(const struct convolution *c);
/* Whether the gradient of an input is done as a convolution with the kernel turned around, and that one. */
bool conv_turns(const struct convolution *c);
struct convolution conv_turned_around(const struct convolution *c);
/* Makes what p->size needs: sets has_primitive where the library has a primitive for this shape that is fit. False if
 * there is no memory: what would be done instead has other bits. For onednn_make. */
bool conv_create_primitive(void *plan);

#endif
