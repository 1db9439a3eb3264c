/* SPDX-License-Identifier: Apache-2.0 */
/* What writes operations: the pieces of which rules are made. */
#ifndef DGC_HLO_EMIT_H
#define DGC_HLO_EMIT_H

#include "ir/ops/op.h"

/* A value of the function that is being written: %0, %1 ..., or %arg0 ... for -1 ... */
struct hlo_value {
  int id;
  struct type type;
};

/* What devices do as one program: the first one's part, and how the others' differ. */
struct hlo_replicas {
  int devices, towers; /* towers of each device */
  uint32_t count;      /* nodes of the graph */
  uint8_t *live;       /* by node: the function has it */
  uint8_t *split;      /* by node: an input of which each device has its block of rows */
  struct node **
      others; /* [(device - 1) * count + node]: what device 1, 2 ... has in its place; NULL: the same value */
};
/* NULL, and an error, where they do not do the same. */
struct hlo_replicas *hlo_replicas(struct arena *a, const struct graph *g, int devices, struct diags *d);

/* A function that is being written. */
struct hlo {
  struct arena *arena;
  struct str *out;
  const struct graph *graph;
  int64_t batch;                       /* 0: not known */
  int next;                            /* number of a value, */
  int place;                           /* of a location */
  const struct hlo_replicas *replicas; /* NULL: all that the graph does is in the function */
  struct diags *diags;
};

/* How an op is written: NULL after an error. One of them is not NULL. */
typedef bool hlo_rule_fn(struct hlo *h, const struct node *n, const struct hlo_value *in,
                         struct hlo_value *out);
struct hlo_rule {
  const char *native;  /* the operation of this name does the same */
  bool scalar;         /* the body for one element, each primitive an operation */
  hlo_rule_fn *emit;   /* written by hand */
  const char *refused; /* why there is none */
};
extern const struct hlo_rule *const hlo_rules[];

/* n's type, the batch fixed. */
struct type hlo_type(const struct hlo *h, const struct node *n);
/* "tensor<64x784xf32>" */
const char *hlo_type_text(struct arena *a, const struct type *t);
/* "[1, 2]" */
const char *hlo_list(struct arena *a, int count, const int64_t *ints);
/* "array<i64: 1, 2>" */
const char *hlo_array(struct arena *a, int count, const int64_t *ints);
/* The numbers of an attribute, one for each axis of n between the first and the last; `otherwise` where it has none. */
void hlo_spatial(const struct node *n, enum attr_key key, int64_t otherwise, int64_t *out);
void hlo_print_value(struct str *s, struct hlo_value v);
/* "name" as MLIR writes strings. */
void hlo_print_string(struct str *s, const char *text);

/* %next = "stablehlo.<name>"(in) <{attrs}> (region) : ...; attrs and region may be NULL. */
struct hlo_value hlo_op(struct hlo *h, const char *name, const struct type *t, int n,
                        const struct hlo_value *in, const char *attrs, const char *region);
/* A region that joins two scalars: `^bb0(%a, %b): return name(a, b)`. */
const char *hlo_joining(struct hlo *h, const char *name, enum dtype d);

/* Elementwise; all of one type but where it says so. */
struct hlo_value hlo_unary(struct hlo *h, const char *name, struct hlo_value x);
struct hlo_value hlo_binary(struct hlo *h, const char *name, struct hlo_value a, struct hlo_value b);
struct hlo_value hlo_compare(struct hlo *h, const char *direction, struct hlo_value a, struct hlo_value b);
struct hlo_value hlo_select(struct hlo *h, struct hlo_value condition, struct hlo_value a,
                            struct hlo_value b);
/* Where StableHLO says what comes out: no float that is out of range becomes an integer. */
struct hlo_value hlo_convert(struct hlo *h, enum dtype d, struct hlo_value x);
/* As the primitives of scalar programs, for all values: ir/scalar/scalar.h says what each gives. */
struct hlo_value hlo_convert_all(struct hlo *h, enum dtype d, struct hlo_value x);
struct hlo_value hlo_divide(struct hlo *h, bool remainder, struct hlo_value a, struct hlo_value b);

/* Of equal elements. */
struct hlo_value hlo_bits(struct hlo *h, const struct type *t, uint64_t bits);
struct hlo_value hlo_number(struct hlo *h, const struct type *t, double value);
struct hlo_value hlo_integer(struct hlo *h, const struct type *t, int64_t value);

struct hlo_value hlo_count(struct hlo *h, const struct type *t, int64_t axis);
struct hlo_value hlo_shaped(struct hlo *h, struct hlo_value x, const struct type *t);
struct hlo_value hlo_permuted(struct hlo *h, struct hlo_value x, const int64_t *perm);
struct hlo_value hlo_repeated(struct hlo *h, struct hlo_value x, const struct type *t, int count,
                              const int64_t *axes);
struct hlo_value hlo_cut(struct hlo *h, struct hlo_value x, const struct type *t, const int64_t *begin);
struct hlo_value hlo_padded(struct hlo *h, struct hlo_value x, struct hlo_value value, const struct type *t,
                            const int64_t *low, const int64_t *high);
struct hlo_value hlo_joined(struct hlo *h, const struct type *t, int n, const struct hlo_value *in,
                            int64_t axis);
/* Keys along an axis in the order of the comparator, a region; what stands beside each of them: the second result. */
struct hlo_value hlo_sorted(struct hlo *h, struct hlo_value keys, struct hlo_value beside, int64_t axis,
                            const char *region);
/* Joined by add, multiply, maximum or minimum over these axes, which disappear. */
struct hlo_value hlo_reduce(struct hlo *h, const char *name, struct hlo_value x, struct hlo_value first,
                            const struct type *t, int count, const int64_t *axes);
/* Cuts off the axes of x from `first` on what negative paddings take of them, between whose elements there are
 * dilation - 1 places, so that none of them is negative: XLA's CPU backend gives wrong numbers for such convolutions
 * and ends the process for such windows of one element. False: nothing of x is left. */
bool hlo_crop(struct hlo *h, struct hlo_value *x, int first, int count, const int64_t *dilation, int64_t *low,
              int64_t *high);
/* Windows over an array: numbers for each of its axes. hlo_windows: each sees one element. */
struct hlo_windows {
  int rank;
  int64_t size[MAX_RANK], stride[MAX_RANK], dilation[MAX_RANK], gap[MAX_RANK], low[MAX_RANK], high[MAX_RANK];
};
struct hlo_windows hlo_windows(int rank);
/* What each of them sees, joined by add or maximum, from `first` on. */
struct hlo_value hlo_reduce_windows(struct hlo *h, const char *name, struct hlo_value x, double first,
                                    const struct type *t, const struct hlo_windows *w);

/* A body for one element, on all elements of `shape`: its argument i is args[i], of that shape. */
struct hlo_value hlo_program(struct hlo *h, const struct sprog *p, sval result, const struct type *shape,
                             const struct hlo_value *args);

/* Where replicas differ. By how much the node's `offset` grows from device to device; */
int64_t hlo_growth(const struct hlo_replicas *r, const struct node *n);
/* first + each * the device's number, i64; */
struct hlo_value hlo_per_replica(struct hlo *h, int64_t first, int64_t each);
/* what a split gives; */
struct hlo_value hlo_rows_of_replica(struct hlo *h, const struct node *n, struct hlo_value x);
/* the elements of a constant on a device, and whether they are other ones than the first's; */
const void *hlo_constant_of(const struct hlo *h, const struct node *n, int device, bool *other);
/* the device's row of a table, as a value of type t. */
struct hlo_value hlo_row_of_replica(struct hlo *h, struct hlo_value table, const struct type *t);
/* The rows that an all_gather has of the function's own towers. */
struct hlo_value hlo_own_rows(struct hlo *h, const struct node *n, const struct hlo_value *in);
/* Collectives: joined by add, maximum or minimum; rows one behind the other; the first one's value. */
struct hlo_value hlo_reduce_all(struct hlo *h, const char *name, struct hlo_value x);
struct hlo_value hlo_gather_all(struct hlo *h, struct hlo_value x);
struct hlo_value hlo_of_first_replica(struct hlo *h, struct hlo_value x);

/* A scan as `while`; all results. */
bool hlo_loop(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value **out);

/* Nodes of a graph in their order; the values of its inputs are there already, at their ids. */
bool hlo_nodes(struct hlo *h, const struct graph *g, const uint8_t *live, struct hlo_value **values);

#endif
