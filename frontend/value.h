/* SPDX-License-Identifier: Apache-2.0 */
/* What an expression gives: compile-time values, and tensors, which are nodes of the graph being built. */
#ifndef DGC_FRONTEND_VALUE_H
#define DGC_FRONTEND_VALUE_H

#include "frontend/ast.h"
#include "ir/graph/graph.h"

#include <math.h>

enum value_kind {
  VALUE_ERROR, /* reported already: everything made of it is silent */
  VALUE_NONE,  /* `none`, and an argument that was not given */
  VALUE_INT,
  VALUE_BATCH, /* i times the symbolic batch B; -i times N, the rows of all towers */
  VALUE_FLOAT,
  VALUE_BOOL,
  VALUE_STRING,
  VALUE_LIST,
  VALUE_DTYPE,
  VALUE_TYPE,
  VALUE_FUNCTION, /* defined in the language */
  VALUE_BUILTIN,
  VALUE_OP, /* an op of the graph that the language has under its name */
  VALUE_MODULE,
  VALUE_LAYER, /* a layer that was made, whose calls share its variables; or a part of one */
  VALUE_TENSOR
};

struct variable;
struct resolver;
struct role;
struct module;

/* A definition and the module whose names its body sees. */
struct function {
  const struct def *def; /* NULL: of the library, not parsed yet; module_find parses it */
  struct loc text;       /* of that one */
  struct module *module;
  uint8_t *makes; /* whether its calls make variables, enum makes: names.c's note */
};

struct made_layer {
  const struct function *function; /* NULL: a part of one, which is not called */
  const struct value
      *args;         /* those given already, one per parameter; others are VALUE_NONE with no location */
  const char *owner; /* names its variables */
};

struct value {
  enum value_kind kind;
  struct loc at;    /* the expression it stands for */
  const char *name; /* of its declaration, or NULL */
  struct loc decl;
  union {
    int64_t i;
    double f;
    bool b;
    const char *string;
    struct {
      struct value *items;
      int count;
      int total, depth; /* with the lists inside; 0 where none can be */
    } list;
    enum dtype dtype;
    const struct type *type;
    const struct function *function;
    const struct builtin *builtin;
    unsigned op;
    struct module *module;
    const struct made_layer *layer;
    struct {
      struct node *node;
      struct graph *graph;
      struct variable *variable; /* of which this is the value, or NULL */
      /* Of a mean or sum over the batch the sum, else NULL; and of how many elements the mean is: 0 of a sum, -k
       * means k*B. */
      struct node *sum;
      int64_t elements;
    } tensor;
  };
};

/* The names that one source defines or uses. */
struct module {
  const char *name;
  const struct source *source;
  struct map names;     /* struct value: module_find gets them */
  struct module *outer; /* looked in next: the prelude */
  bool library;
  bool loading;
};

enum { MAX_GIVEN = 8 }; /* of what is not written in the language */

/* A function of the language that is written in C. */
struct builtin {
  const char *name;
  const char *params[MAX_GIVEN]; /* "axis = none": with a default; "y = ...", where that is no value */
  int required;
  struct value (*run)(struct resolver *r, struct value *args, struct loc loc, const struct role *role);
};

static inline struct value value_error(void) { return (struct value){.kind = VALUE_ERROR}; }
static inline struct value value_none(void) { return (struct value){.kind = VALUE_NONE}; }
static inline struct value value_int(int64_t i) { return (struct value){.kind = VALUE_INT, .i = i}; }
/* A NaN is the usual one: what processors make of inf - inf differs in its sign. */
static inline struct value value_float(double f) {
  return (struct value){.kind = VALUE_FLOAT, .f = isnan(f) ? (double)NAN : f};
}
static inline struct value value_bool(bool b) { return (struct value){.kind = VALUE_BOOL, .b = b}; }
static inline struct value value_dtype(enum dtype d) {
  return (struct value){.kind = VALUE_DTYPE, .dtype = d};
}

static inline bool value_is_callable(const struct value *v) {
  return v->kind == VALUE_FUNCTION || v->kind == VALUE_BUILTIN || v->kind == VALUE_OP ||
         (v->kind == VALUE_LAYER && v->layer->function);
}
/* A number or truth value known now. */
static inline bool value_is_scalar(const struct value *v) {
  return v->kind == VALUE_INT || v->kind == VALUE_FLOAT || v->kind == VALUE_BOOL;
}

/* A dimension of a type: an integer, or a multiple of B or N; and back. */
struct value value_dim(int64_t dim);
int64_t dim_of_value(const struct value *v);
/* As the language writes it: `512`, `[1, 2]`, `f32[B,784]`, `nn.dense`. */
const char *value_text(struct arena *a, const struct value *v);
/* What it is, for messages: "a list", "f32[B,784]". */
const char *value_describe(struct arena *a, const struct value *v);
bool value_equal(const struct value *a, const struct value *b);

#endif
