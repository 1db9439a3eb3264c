/* SPDX-License-Identifier: Apache-2.0 */
/* Products of float matrices in the order of ir/ops/matmul.c, by code of our own. */
#ifndef DGC_RUNTIME_CPU_GEMM_H
#define DGC_RUNTIME_CPU_GEMM_H

#include "ir/ops/leaf.h"
#include "kernels/cpu/patches.h"
#include "runtime/cpu/jit.h"

/* One product, or several of equal size, prepared for many runs. Lives in `a`. */
struct gemm;
/* Whether this processor multiplies and adds in one instruction; else gemm_create is not called. */
bool gemm_can(void);
/* Where operands do not lie as those of a product of dense matrices. In numbers: from a row to the next one and from a
 * product's to the next one's, of op(b) and of c. Lives as long as what is made of it. */
struct gemm_layout {
  const struct patches
      *patches; /* a is made of them: a row, or a column if transposed, is a pixel's; product i: group i */
  int64_t b_row, b_batch, c_row, c_batch;
  bool positive; /* what is 0 becomes +0 */
};
/* `layout` NULL: dense. `once`: b is the same in many runs, before which it is packed by gemm_pack, unless
 * gemm_packed_size is 0. It runs behind the next cpu_jit_finish. */
const struct gemm *gemm_create(struct cpu_jit *jit, struct arena *a, const struct product *size,
                               const struct gemm_layout *layout, bool once);
/* Into how many blocks of C one product can be cut, downwards and along; a cut changes no bit. */
void gemm_units(const struct gemm *g, int64_t *down, int64_t *along);
/* Units [top, bottom) x [left, right) of product `batch`; of its pieces of k `count` from `first` on, 0: all. These are
 * a part of the tree where `first` is a multiple of `count`, a power of two. Any thread, several at a time; memory that
 * it works in is the thread's (scratch.h). */
struct gemm_block {
  int64_t batch, top, bottom, left, right;
  int64_t first, count;
  const void *packed; /* by gemm_pack; NULL: not */
};
/* Bytes that op(b) of one product takes where it is packed once for all blocks of C; 0: each block packs what it needs
 * of it, or none. */
size_t gemm_packed_size(const struct gemm *g);
/* In how many units it is packed. */
int64_t gemm_pack_units(const struct gemm *g);
/* Units [first, end) of product `batch` into `packed`, at a line of the cache. Any thread, several at a time. */
void gemm_pack(const struct gemm *g, int64_t batch, int64_t first, int64_t end, const void *b, void *packed);
void gemm_run(const struct gemm *g, const struct gemm_block *block, const void *a, const void *b, void *c);

#endif
