/* SPDX-License-Identifier: Apache-2.0 */
/* An op: one row in ops.def, one `const struct op_info op_<name>` in ops/<family>.c.
 *
 * What holds of an op wherever it stands is in that one paragraph, and whoever treats many ops alike asks the kind
 * and the traits. A pass whose rule is about one op (rows: scatter_add) names it, as a backend names its leaves. */
#ifndef DGC_IR_OPS_OP_H
#define DGC_IR_OPS_OP_H

#include "ir/graph/graph.h"
#include "ir/scalar/scalar.h"

enum op_kind {
  KIND_SOURCE,      /* no inputs, or a random stream */
  KIND_ELEMENTWISE, /* all shapes equal, one scalar body */
  KIND_REDUCE,      /* some axes disappear */
  KIND_MOVEMENT,    /* elements move, none is computed */
  KIND_LEAF,        /* a library call, or a kernel written by hand: each backend has a function for it */
  KIND_EFFECT,      /* writes a variable */
  KIND_META         /* distribution and grouping: split, all_reduce, copy, fused ... */
};

/* Element types an op takes and gives. */
enum dtype_rule {
  DTYPE_ANY,     /* all inputs equal; result the same */
  DTYPE_NUMBER,  /* not bool; result the same */
  DTYPE_FLOAT,   /* f32, f64; result the same */
  DTYPE_SINGLE,  /* f32; result the same */
  DTYPE_BOOL,    /* bool; result bool */
  DTYPE_INTEGER, /* integers; result the same */
  DTYPE_INTBOOL, /* integers or bool; result the same */
  DTYPE_COMPARE, /* all inputs equal; result bool */
  DTYPE_TEST,    /* float; result bool */
  DTYPE_CUSTOM   /* infer decides */
};

/* From where test samples are drawn so that the op is defined and its gradient smooth. An op without one does
 * not compile into the table (DOMAIN_NONE is for ops that are tested by name). */
enum sample_domain {
  DOMAIN_MISSING,
  DOMAIN_ANY,
  DOMAIN_POSITIVE,
  DOMAIN_NONZERO,
  DOMAIN_UNIT /* (-1,1) */,
  DOMAIN_ABOVE_ONE,
  DOMAIN_SMALL_INT,
  DOMAIN_DISTINCT,
  DOMAIN_NONE
};

/* Traits. */
enum {
  OP_COMMUTATIVE = 1 << 0,
  OP_TYPED = 1 << 1,       /* the type is given, not inferred */
  OP_NO_GRADIENT = 1 << 2, /* nothing flows back */
  OP_NO_CSE = 1 << 3,
  OP_STRIDED = 1 << 4,  /* kernels read through it by strides alone */
  OP_FUNCTION = 1 << 5, /* in the language by its name: operands, then attributes, which are axes and flags */
  OP_MOVES = 1 << 6,    /* each element of the result is one of an operand's, as it is */
  OP_EXTERNAL = 1 << 7, /* its value comes from outside of the graph */
  OP_PER_TOWER = 1 << 8,     /* another value where the rows are those of one tower alone */
  OP_SOURCE_ONLY = 1 << 9,   /* passes expand it: there is none after the stage source */
  OP_ADDS_UP = 1 << 10,      /* elements of one operand are added up: the language has bytes do so as i64 */
  OP_TAKES_BF16 = 1 << 11,   /* beside the types of its rule operands of bf16 */
  OP_TAKES_NARROW = 1 << 12, /* operands of all types of 16 bits */
};

#define ATTR_BIT(name) (UINT64_C(1) << ATTR_##name)

struct grad;

struct op_info {
  const char *name;
  enum op_kind kind;
  enum dtype_rule dtypes;
  int min_inputs, max_inputs; /* max -1: any number */
  uint32_t traits;
  enum stage since; /* passes make it: there is none before this stage */
  uint64_t attrs;   /* ATTR_BIT of each enum attr_key that must be there */
  uint64_t optional_attrs;
  /* bit i: linear in input i when all other inputs are mirrored, f(a + b, ...) = f(a, ...) + f(b, ...), so that a
   * partial(sum) may pass; ask node_linear */
  uint32_t linear;
  enum dtype
      narrow; /* of 16 bits: it gives the f32 that are next to values of this type; DT_F32: it does not */
  bool linear_jointly;  /* linear in all inputs together: add, sub, concat */
  const char *roles[6]; /* operand names for messages and names: "lhs" */
  enum sample_domain domain;
  /* The type of the result, into *out (which holds the given type for typed ops; the dtype rule has been
   * applied already). False: *why says why not. */
  bool (*infer)(const struct node *n, struct type *out, struct arena *a, const char **why);
  /* A simpler equal node, or NULL. Called with n's op, inputs, attributes and type filled in; n is not yet in
   * the graph. */
  struct node *(*fold)(struct graph *g, const struct node *n);
  /* Elementwise: the body, recorded once. in[i] are the operands. */
  sval (*scalar)(struct sprog *p, const struct node *n, const sval *in);
  /* Adds to each input's gradient, given the gradient dy of the result: grad_add(c, i, node). */
  void (*grad)(struct grad *c, const struct node *n, struct node *dy);
  /* Floating point operations, for figures; 0: one per element of the result. */
  int64_t (*flops)(const struct node *n);
  /* (optional) The axis of the operand along which `axis` of the result runs: element i there is made of element i here
   * and of all that the other axes have. ALONG_NONE: it is made of all of the operand. Ask node_along. */
  int (*along)(const struct node *n, int axis);

  /* Whether the result is a contiguous piece of the first operand, `*offset` bytes into it, and nothing needs to be
   * computed; types are concrete. */
  bool (*view)(const struct node *n, int64_t *offset);

  /* --- leaves --- */

  /* The result, dense as the operands, the slow and obvious way. Types are concrete; out->data has room, and is
   * none of the operands' unless in_place says so. */
  void (*eval)(const struct node *n, const struct tensor *in, struct tensor *out);
  /* What the plan says of its sizes: "64x512x784 ta". */
  void (*sizes)(struct str *s, const struct node *n);
  /* One more than the operand where the result may lie, so that what the op leaves as it is need not be copied;
   * 0: none. */
  int in_place;
  /* (optional) Bytes that are read and written when the result lies there, `there`, or elsewhere; without it,
   * those of operands and result. */
  int64_t (*traffic)(const struct node *n, bool there);
  /* KERNELs of ops.def: the numbers that the functions in kernels/ take behind operands and result, in the order of
   * their struct; at most MAX_LEAF_NUMBERS. Returns how many threads of a GPU find work: BLOCK_THREADS for each part
   * that a block computes together. */
  int64_t (*numbers)(const struct node *n, int64_t *out);
};

enum { ALONG_NONE = -1, ALONG_UNKNOWN = -2 };

enum { MAX_LEAF_INPUTS = 6, MAX_LEAF_NUMBERS = 32, BLOCK_THREADS = 256, MAX_HELD = 8 };

/* A leaf's operands and result, whose elements lie at `args`: the operands, then the result. */
struct leaf_tensors {
  struct tensor in[MAX_LEAF_INPUTS], out;
};
struct leaf_tensors leaf_tensors(const struct node *n, void *const *args);
/* Computes it by its op's `eval`. */
void leaf_eval(const struct node *n, void *const *args);

/* The gradient being built: nodes of the forward graph are already in `g`. */
struct grad {
  struct graph *g;
  void *state;
  void (*add)(struct grad *c, const struct node *n, int input, struct node *d);
  /* Adds to the gradient of result `index` of a node that has several; and, when all of them are known, to those of a
   * scan's operands. */
  void (*result)(struct grad *c, const struct node *n, int index, struct node *d);
  void (*scan)(struct grad *c, const struct node *n);
  /* To what a tower's own value is made of. */
  void (*local)(struct grad *c, const struct node *n, struct node *dy);
  struct node *held[MAX_HELD]; /* operands of what is being built: grad_hold */
  int nheld;
};
static inline void grad_add(struct grad *c, const struct node *n, int input, struct node *d) {
  c->add(c, n, input, d);
}

extern const struct op_info *const op_table[];
static inline const struct op_info *op_of(const struct node *n) { return op_table[n->op]; }
/* Ways in which towers' values become one: sum, mean, only_first_replica. */
bool is_aggregation(const char *name);
/* Whether an aggregate joins what towers have of its operand in the model itself, and not local values. */
bool joins_given(const struct node *n);
/* A variable of which each tower has a copy of its own, joined when it is read. */
bool is_on_read(const struct node *n);
/* Of a variable: the narrow type whose values it holds alone, as its attribute `storage` says; DT_F32: it holds any. */
enum dtype node_storage(const struct node *n);
/* How a variable stands to one of the model's. */
struct variable_identity variable_identity(const struct node *n);
/* An all_reduce that its devices do together, each with a node of its own of the same operands: one per device, in
 * tower order, of which each device reads its own. */
bool is_collective(const struct node *n);
/* Whether each sum over devices is made of copies and additions, or of collectives: what a plan needs. */
bool collectives_lowered(const struct graph *g);
/* Which operand of a collective lies on its device, -1 if none does. */
int collective_rank(const struct node *n);
/* Of two nodes that send or receive, which message comes first among all of the cluster: by their orders, then by the
 * devices that send and receive. 0: they are of one message. */
int message_compare(const struct node *a, const struct node *b);
/* What it compares, to sort many. */
struct message_key {
  const struct node *node;
  const int64_t *order;
  int64_t from, to;
  int count; /* of order */
};
struct message_key message_key(const struct node *n);
int message_key_compare(const struct message_key *a, const struct message_key *b);
/* OP_COUNT if there is none. */
unsigned op_lookup(const char *name, size_t len);

/* attr.c: what values an attribute may have, beyond its kind. */
enum attr_rule {
  RULE_ANY,
  RULE_FLAG, /* 0 or 1 */
  RULE_SIZE, /* 0 .. MAX_ELEMENTS */
  RULE_AXIS, /* an axis of the first operand; of a source's type */
  RULE_AXES, /* axes of the operand, ascending; of a typed op one per axis of the operand, of its result */
  RULE_PERMUTATION, /* each axis of the operand once */
  RULE_SIZES,       /* one size per axis of the operand */
  RULE_WORD         /* one of the attribute's words */
};
const char *attr_name(enum attr_key key);
enum attr_kind attr_kind_of(enum attr_key key);
enum attr_rule attr_rule_of(enum attr_key key);
bool attr_has_word(enum attr_key key, const char *word); /* of a RULE_WORD */
enum attr_key attr_lookup(const char *name, size_t len); /* ATTR_COUNT if there is none */
/* What is wrong with the attributes of n, whose op, operands and (of a typed op) type are valid, those that it has and
 * those that it must have; NULL: nothing. *which: the one that is wrong, ATTR_COUNT where one is missing. */
const char *attrs_check(const struct node *n, enum attr_key *which, struct arena *arena);

int64_t node_flops(const struct node *n);
/* See op_info and its traits. */
bool node_is_view(const struct node *n, int64_t *offset);
bool view_of_all(const struct node *n, int64_t *offset); /* all of the operand: a `view` */
bool node_is_strided(const struct node *n);
/* A constant of one element: an immediate in kernels. */
bool node_is_immediate(const struct node *n);
/* What a node gives: results, each with its type; of a fused node and of a scan several. (ops/scan.c) */
int node_results(const struct node *n);
struct type node_result_type(const struct node *n, int result);
bool node_is_leaf(const struct node *n);
/* Of a leaf; see op_info. Its types are concrete. */
int64_t node_traffic(const struct node *n, bool in_place);
bool node_moves(const struct node *n);
bool node_is_external(const struct node *n);
/* Of all operands of n alike, see op_info; ALONG_UNKNOWN where the op has no rule. */
int node_along(const struct node *n, int axis);
/* The op that joins two shares of a reduction: add, max or min. */
unsigned share_op(enum dist share);
/* The inputs that n is linear in, as op_info's `linear`. A product of bfloat16 values is in none: that a sum
 * keeps its promise says nothing of the shares. */
uint32_t node_linear(const struct node *n);

#endif
