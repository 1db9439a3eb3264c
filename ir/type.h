/* SPDX-License-Identifier: Apache-2.0 */
/* Types: an element type and a shape.
 *
 * A dimension is a size, or a multiple of the symbolic batch B: the value -k stands for k*B. So products and
 * sums of dimensions work with plain integer arithmetic as long as one factor at most is symbolic.
 * After replication every dimension is a size; a tower without rows has size 0.
 *
 * What has the rows of all towers has the size N, the rows of the whole batch: k*N is the size k*DIM_WHOLE, larger than
 * any other, and becomes a number where the batch does. To B it is an ordinary axis. */
#ifndef DGC_IR_TYPE_H
#define DGC_IR_TYPE_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* Ops compute with the types before bf16. The narrow ones are how numbers of f32 lie in 16 bits, bfloat16 and IEEE's
 * binary16: a cast of f32 makes them, and a cast to f32 reads them; bf16 is read by matmul and conv, too. */
enum dtype { DT_F32, DT_F64, DT_I32, DT_I64, DT_U8, DT_BOOL, DT_BF16, DT_F16, DT_COUNT };

#define MAX_RANK 8
/* A tensor holds at most this many elements (8 TiB of f64): larger shapes are refused where they arise. */
#define MAX_ELEMENTS (INT64_C(1) << 40)

#define DIM_WHOLE (INT64_C(1) << 42)
static inline bool dim_is_whole(int64_t dim) { return dim >= DIM_WHOLE; }

struct type {
  uint8_t dtype; /* enum dtype */
  uint8_t rank;
  int64_t dim[MAX_RANK];
};

/* How a value lies over the towers. DIST_NONE before replication. */
enum dist {
  DIST_NONE,
  DIST_MIRRORED,
  DIST_PER_REPLICA,
  DIST_PARTIAL, /* a tower's share of a sum */
  DIST_PARTIAL_MAX,
  DIST_PARTIAL_MIN,
  DIST_COUNT
};

const char *dtype_name(enum dtype d); /* "f32" */
bool dtype_parse(const char *name, size_t len, enum dtype *out);
int dtype_size(enum dtype d); /* bytes; bool is one byte, 0 or 1 */
bool dtype_is_float(enum dtype d);
bool dtype_is_int(enum dtype d);    /* i32, i64, u8 */
bool dtype_is_narrow(enum dtype d); /* bf16, f16 */
const char *dist_name(enum dist d); /* "mirrored", "per_replica", "partial(sum)", "partial(max)", "" */
/* A tower's share of what an all_reduce of this kind ("sum", "mean", "max", "min") joins. */
enum dist dist_partial(const char *reduction);

struct type type_scalar(enum dtype d);
struct type type_make(enum dtype d, int rank, const int64_t *dims);
/* Of one row of it: without its first axis, which it has. */
struct type type_row(const struct type *t);
struct type type_with_dtype(struct type t, enum dtype d);
bool type_equal(const struct type *a, const struct type *b);
bool shape_equal(const struct type *a, const struct type *b);
bool type_is_symbolic(const struct type *t); /* some dimension depends on B */
int type_batch_axis(const struct type *t);   /* the first axis that depends on B, or -1 */
bool type_has_whole(const struct type *t);   /* some dimension is a multiple of N */
/* Elements; negative -k means k*B. The type must be valid. */
int64_t type_count(const struct type *t);
int64_t type_bytes(const struct type *t); /* needs a concrete type */
int64_t type_row_bytes(
    const struct type *t); /* of one step along its first axis; concrete, of rank 1 or more */
/* False when a product overflows MAX_ELEMENTS, or two dimensions depend on B, or on N; N is no factor of it. */
bool type_valid(const struct type *t);
/* B, and N, replaced by `batch`. */
struct type type_specialize(const struct type *t, int64_t batch);
/* a*b for dimensions; false on overflow, B*B, or where one of several is N. */
bool dim_mul(int64_t a, int64_t b, int64_t *out);
/* a+b for two sizes, two multiples of B, or two of N; false past MAX_ELEMENTS. */
bool dim_add(int64_t a, int64_t b, int64_t *out);
void dim_print(struct str *s, int64_t dim);           /* "784", "B", "3*B" */
void type_print(struct str *s, const struct type *t); /* "f32[B,784]", "f32" for a scalar: "f32[]" */
const char *type_text(struct arena *a, const struct type *t);

/* A dense row-major array on the host. Does not own `data`. */
struct tensor {
  struct type type;
  void *data;
};

#endif
