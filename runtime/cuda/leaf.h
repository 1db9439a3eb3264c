/* Leaves on GPUs: a function for each, cuda_leaf_<op>, that fills in the command of a step. */
#ifndef DGC_RUNTIME_CUDA_LEAF_H
#define DGC_RUNTIME_CUDA_LEAF_H

#include "ir/ops/leaf.h"
#include "runtime/cuda/engine.h"

/* The state lives in `a`. False after an error in `d`. */
typedef bool cuda_leaf_fn(struct cuda_engine *e, struct arena *a, const struct step *step, int device,
                          struct command *c, struct diags *d);
#define OP(name, spread)
#define LEAF(name, spread) cuda_leaf_fn cuda_leaf_##name;
#include "ir/ops/ops.def"
#undef OP

/* A call of a kernel of kernels/cuda: one dimension of blocks of 256 threads. */
struct cuda_leaf_call {
  const char *name;   /* of the file and of its kernel */
  const char *types;  /* lines in front of the text: "#define TYPE float\n"; a constant */
  int nargs, first;   /* its pointers are the step's operands from `first` on */
  int64_t blocks;     /* wanted: the kernel makes do with less; 0: nothing to do */
  size_t copied;      /* bytes from operand 0 to the result before, unless they are one place */
  int64_t numbers[8]; /* the struct behind the pointers */
};
bool cuda_call_leaf(struct cuda_engine *e, struct arena *a, const struct cuda_leaf_call *how, int device,
                    struct command *c, struct diags *d);
/* Blocks with a thread for each of so many elements. */
int64_t cuda_leaf_blocks(int64_t elements);

bool cuda_integer_product(struct cuda_engine *e, struct arena *a, const struct product *p, int device,
                          struct command *c, struct diags *d);

#endif
