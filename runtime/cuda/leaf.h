/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves on GPUs: a function for each LEAF of ops.def, cuda_leaf_<op>, and one for all KERNELs, that fills in the
 * command of a step. */
#ifndef DGC_RUNTIME_CUDA_LEAF_H
#define DGC_RUNTIME_CUDA_LEAF_H

#include "ir/ops/leaf.h"
#include "runtime/cuda/engine.h"

/* The state lives in `a`. False after an error in `d`. */
typedef bool cuda_leaf_fn(struct cuda_engine *e, struct arena *a, const struct step *step, int device,
                          struct command *c, struct diags *d);
#define OP(name, spread)
#define LEAF(name, spread) cuda_leaf_fn cuda_leaf_##name;
#define KERNEL(name, spread)
#include "ir/ops/ops.def"
#undef OP
cuda_leaf_fn cuda_leaf_kernel; /* for all that kernels/cuda computes */

/* Attention and its derivatives: whether they are computed by tiles, and then how; see attention.c. */
bool cuda_attention_by_tiles(const struct node *n);
cuda_leaf_fn cuda_leaf_attention;

/* Whether it is a convolution of few channels and filters, see conv_few.c; cuda_leaf_conv_few is for these alone. */
bool cuda_conv_is_few(const struct node *n);
cuda_leaf_fn cuda_leaf_conv_few;

/* Windows: whether their kernel may count in int, and whether it has the sizes in its text, see window.c;
 * cuda_leaf_window is for the latter alone. */
bool cuda_windows_in_int(const struct node *n);
bool cuda_window_is_fixed(const struct node *n);
cuda_leaf_fn cuda_leaf_window;

/* A call of the kernel `name` of kernels/cuda: one dimension of blocks. */
struct leaf_launch {
  const char *name;
  const char *types; /* lines in front of the text: "#define TYPE float\n"; the engine's, or a constant */
  int block;         /* threads of a block; 0: BLOCK_THREADS */
  int nargs;         /* pointers: operands, then the result; */
  int missing;       /* before that so many NULL, for operands that may be left out */
  int64_t threads;   /* that find work: the kernel makes do with less; 0: nothing to do */
  int begins;        /* the result begins as this operand, */
  size_t bytes;      /* unless they are one place; 0: it does not */
  int64_t numbers[MAX_LEAF_NUMBERS]; /* the struct behind the pointers */
};

struct leaf_call {
  struct cuda_engine *engine;
  int device, nargs, missing, begins;
  CUfunction function;
  struct cuda_launch launch;
  size_t bytes;
  int64_t numbers[MAX_LEAF_NUMBERS];
};
/* Lives in `a`; NULL after an error in `d`. */
struct leaf_call *cuda_leaf_call(struct cuda_engine *e, struct arena *a, const struct leaf_launch *how,
                                 int device, struct diags *d);
/* The call of a command whose state it is, of `nargs` places. */
void cuda_run_leaf(void *const *args, const void *leaf_call);
/* Fills in a command that is this call. Its state lives in `a`; false after an error in `d`. */
bool cuda_call_leaf(struct cuda_engine *e, struct arena *a, const struct leaf_launch *how, int device,
                    struct command *c, struct diags *d);
/* The same of a convolution whose call gives so many `pieces` of each of its `count` elements of f32, which
 * kernels/cuda/conv_join.cu then adds up, `lanes` threads for each, 8 or 32; a single piece is the result. */
bool cuda_call_pieces(struct cuda_engine *e, struct arena *a, const struct leaf_launch *how, int64_t pieces,
                      int64_t count, int lanes, int device, struct command *c, struct diags *d);

/* Of mma.sync: all cards. */
bool cuda_has_tensor_cores(const struct cuda_engine *e);

bool cuda_integer_product(struct cuda_engine *e, struct arena *a, const struct product *p, int device,
                          struct command *c, struct diags *d);

#endif
