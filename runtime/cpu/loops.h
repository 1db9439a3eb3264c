/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel while it is emitted: shared by the loops (loops.c), what stands in them (lanes.c, reduce.c) and the look
 * at a program beforehand (program.c). */
#ifndef DGC_RUNTIME_CPU_LOOPS_H
#define DGC_RUNTIME_CPU_LOOPS_H

#include "runtime/cpu/emit.h"

/* Chunks of one round when a kept vector loop encloses reduced ones: columns are summed 256 bytes at a time,
 * which memory likes better than 64. */
#define MAX_UNROLL 4

/* A scalar program and what its values have become at the current place. */
struct cpu_program {
  const struct sprog *text;
  const bool *live;
  bool *uniform;                     /* the same in all lanes */
  bool *needs_splat;                 /* uniform, but used as a vector */
  int *depth;                        /* loops to enter before the value is known */
  LLVMValueRef *scalar;              /* uniform values */
  LLVMValueRef *splat;               /* uniform values that need it */
  LLVMValueRef (*lanes)[MAX_UNROLL]; /* the others, per chunk of a round */
};

struct cpu_loops {
  struct emit *e;
  const struct kernel *k;
  LLVMValueRef fn;
  int order[MAX_RANK]; /* loops, as they nest */
  int vector_depth;    /* where the vector loop stands in `order` */
  int kept;            /* the first `kept` of `order` are not reduced over */
  int unroll;          /* chunks per round of the unmasked vector loop */
  int narrow;          /* the reduced loop's elements, one after the other, or 0: it is a loop */
  bool heavy;
  bool in_body[MAX_KERNEL_ARGS]; /* read or written by the body */
  struct cpu_program body, epilogue;
  LLVMValueRef sizes;
  LLVMValueRef extent[MAX_RANK];
  LLVMValueRef start[MAX_RANK];                   /* of its indices; NULL where no one asks for them */
  LLVMValueRef stride[MAX_KERNEL_ARGS][MAX_RANK]; /* bytes */
  LLVMValueRef lane_offset[MAX_KERNEL_ARGS];      /* STRIDE_ANY: lane number times stride, bytes */
  /* The current place: */
  LLVMValueRef index[MAX_RANK];      /* i64; the first lane's for the vector loop */
  LLVMValueRef ptr[MAX_KERNEL_ARGS]; /* the element at `index` */
  LLVMValueRef mask;                 /* active lanes, or NULL for all */
  LLVMValueRef active;               /* their number (i64), or NULL */
  int chunks;                        /* of this round */
  int stored;                        /* lanes that are stored, where there is no mask */
  LLVMValueRef acc[MAX_KERNEL_SUMS][MAX_UNROLL];
  LLVMValueRef element[MAX_KERNEL_SUMS][KERNEL_LANES]; /* of a narrow one, */
  int at;                                              /* and which is at hand */
  /* argmax, argmin: the index; max, min of floats: the last NaN seen, or 0 */
  LLVMValueRef extra[MAX_KERNEL_SUMS][MAX_UNROLL];
};

static inline LLVMTypeRef i64(struct cpu_loops *n) { return llvm.Int64TypeInContext(n->e->context); }
static inline LLVMTypeRef i32(struct cpu_loops *n) { return llvm.Int32TypeInContext(n->e->context); }
static inline LLVMTypeRef i8(struct cpu_loops *n) { return llvm.Int8TypeInContext(n->e->context); }
static inline LLVMValueRef int64(struct cpu_loops *n, int64_t v) {
  return llvm.ConstInt(i64(n), (uint64_t)v, 1);
}

static inline bool is_reduce(const struct cpu_loops *n) { return n->k->kind == KERNEL_REDUCE; }
/* NaNs are kept apart, so that the loop waits for one instruction a round, not for three. */
static inline bool tracks_nan(const struct cpu_loops *n) {
  return is_reduce(n) && (n->k->reduce == REDUCE_MAX || n->k->reduce == REDUCE_MIN) &&
         dtype_is_float(kernel_acc_dtype(n->k));
}
static inline bool vector_is_kept(const struct cpu_loops *n) { return n->vector_depth < n->kept; }
static inline enum dtype arg_dtype(const struct cpu_loops *n, int a) {
  return (enum dtype)n->k->args[a].dtype;
}

/* Looks at `p`: what `results` need of it, what is uniform and how deep. `in_lanes`: it runs in vector lanes, not
 * once for all of them. */
void program_init(struct cpu_loops *n, struct cpu_program *g, const struct sprog *p, const sval *results,
                  int nresults, bool in_lanes, struct arena *scratch);
/* Instructions that run at `depth` or deeper, those of 8 bytes twice. */
int program_weight(const struct cpu_program *g, int depth);

/* sizes[number] */
LLVMValueRef loops_size(struct cpu_loops *n, int number);
LLVMValueRef loops_advance(struct cpu_loops *n, LLVMValueRef p, LLVMValueRef bytes);
/* Emits the live values that become known at depths first..last, for all chunks of the round. */
void loops_values(struct cpu_loops *n, struct cpu_program *g, int first, int last);
/* A value emitted before, as lanes. */
LLVMValueRef loops_lanes(struct cpu_loops *n, const struct cpu_program *g, int v, int chunk);
/* `lanes` lanes of a vector from `first` on; one alone is a scalar. */
LLVMValueRef loops_part(struct cpu_loops *n, LLVMValueRef v, int lanes, int first);
/* Writes `count` results to the arguments from `first` on. */
void loops_store(struct cpu_loops *n, struct cpu_program *g, const sval *results, int first, int count,
                 bool in_lanes);

void reduce_start(struct cpu_loops *n);
/* One more element in each active lane, of all accumulators. */
void reduce_step(struct cpu_loops *n);
/* A row's element at hand is an accumulator of its own, as a lane is where lanes run along the row. */
void reduce_element(struct cpu_loops *n);
/* They become one, as lanes do. */
void reduce_elements(struct cpu_loops *n);
/* The lanes become one, unless they are kept; then the epilogue. */
void reduce_finish(struct cpu_loops *n);

#endif
