/* SPDX-License-Identifier: Apache-2.0 */
/* The syntax tree: what the parser saw, nothing resolved. Lives in the arena of the compilation.
 *
 * Chains of left-associative operators lean to the left and may be as long as the source; all other nesting
 * is at most MAX_NESTING deep. So walkers may recurse, except down `lhs` of a chain of binary operators. */
#ifndef DGC_FRONTEND_AST_H
#define DGC_FRONTEND_AST_H

#include "base/diag.h"
#include "base/str.h"

enum {
  MAX_NESTING = 1000,   /* brackets, blocks and operators inside each other */
  MAX_NAME = 256,       /* bytes of a name */
  MAX_SOURCE = 16 << 20 /* bytes of a source */
};

#define OPERATOR(name, text, precedence, op) OPERATOR_##name,
enum operator{
#include "frontend/operators.def"
  OPERATOR_COUNT
};
#undef OPERATOR

struct operator_info {
  const char *text;
  int precedence;
};
extern const struct operator_info operators[OPERATOR_COUNT];
enum { PRECEDENCE_CONDITIONAL = 1, PRECEDENCE_POSTFIX = 10 };

enum expr_kind {
  EXPR_INT,
  EXPR_FLOAT,
  EXPR_STRING,
  EXPR_BOOL,
  EXPR_NAME,        /* name */
  EXPR_MEMBER,      /* base.name */
  EXPR_UNARY,       /* operator lhs */
  EXPR_BINARY,      /* lhs operator rhs */
  EXPR_CONDITIONAL, /* lhs if condition else rhs */
  EXPR_LIST,        /* [items] */
  EXPR_CALL,        /* base(items) */
  EXPR_INDEX,       /* base[items] */
  EXPR_RANGE,       /* lhs:rhs:condition inside an index, the last one a step; each may be missing */
  EXPR_REST         /* ... or ...lhs inside an index or a list */
};

struct arg {
  struct arg *next;
  const char *name; /* of a named argument, else NULL */
  struct loc loc;   /* of the whole argument */
  struct expr *value;
};

struct args {
  struct arg *first, *last;
  int count;
};

/* Which of the calls of its statement that own variables a call is. */
struct call_note {
  uint64_t by; /* the run of the statement that has noted it */
  bool nested; /* inside the arguments of another one */
  int number;  /* among those that would own the same name, from 1 */
};

struct expr {
  enum expr_kind kind;
  enum operator op;
  int depth;
  struct loc loc;
  union {
    int64_t i;
    double f;
    bool b;
    const char *name; /* NAME, MEMBER, STRING */
  };
  struct expr *base; /* MEMBER, CALL, INDEX */
  struct expr *lhs, *rhs, *condition;
  struct args items;
  struct call_note *call; /* CALL: the resolver's note */
};

enum stmt_kind {
  STMT_INPUT,    /* input name : type */
  STMT_VAR,      /* var name : type = value entries */
  STMT_STATE,    /* state name : type = value entries */
  STMT_BIND,     /* names = value */
  STMT_ASSIGN,   /* name <- value */
  STMT_ADD,      /* name += value */
  STMT_RETURN,   /* return value */
  STMT_FOR,      /* for name in value [.. limit] body */
  STMT_SCAN,     /* [names =] scan [(settings)] [carried] [over entries] body */
  STMT_IF,       /* if value body [else otherwise] */
  STMT_TRAIN,    /* train [name =] value with optimizer [over variables] */
  STMT_METRIC,   /* metric name = value */
  STMT_PREDICT,  /* predict name = value */
  STMT_DATA,     /* data name { entries } */
  STMT_STRATEGY, /* strategy value: a name or a call of one */
  STMT_ON        /* on place body */
};

struct name {
  struct name *next;
  const char *text;
  struct loc loc;
};

struct names {
  struct name *first, *last;
  int count;
};

struct block {
  struct stmt *first, *last;
  int depth;
};

struct stmt {
  enum stmt_kind kind;
  struct stmt *next;
  struct loc loc;
  struct names names; /* what it binds or declares */
  struct expr *type;
  struct expr *value;
  struct expr *limit;     /* FOR */
  struct expr *optimizer; /* TRAIN */
  struct expr *over;      /* TRAIN, or NULL */
  struct expr *place;     /* the `on` of any statement, or NULL */
  struct args entries;    /* DATA; VAR, STATE: aggregation(sum); SCAN: what runs over which sequence */
  struct args settings;   /* SCAN: axis, length, reverse */
  struct names carried;   /* SCAN */
  struct block body, otherwise;
  uint8_t *effect; /* what has come of it, enum statement_effect: the resolver's note */
};

struct param {
  struct param *next;
  const char *name;
  struct loc loc;
  struct expr *type;  /* or NULL */
  struct expr *value; /* default, or NULL */
};

struct params {
  struct param *first, *last;
  int count;
};

enum def_kind { DEF_LAYER, DEF_FUNCTION, DEF_INITIALIZER, DEF_OPTIMIZER, DEF_MODEL };

struct def {
  enum def_kind kind;
  struct def *next;
  const char *name;
  struct loc loc; /* of the name */
  struct params params;
  struct args with; /* settings by name */
  struct block body;
};

struct use {
  struct use *next;
  struct loc loc;
  const char *what; /* a library's name, or a path */
  bool is_path;
  const char *as; /* the name it is known by; NULL: `what` */
};

struct file {
  const struct source *source;
  struct use *uses, *last_use;
  struct def *defs, *last_def;
};

/* "layer" and so on. */
const char *def_kind_name(enum def_kind kind);

/* Reads a source. NULL after an error that left no tree; the tree is only worth resolving when no error was
 * added. */
struct file *ast_parse(struct arena *a, const struct source *source, struct diags *d);

/* Its bytes from `begin` to `end` alone, as text whose definitions are whole. */
struct file *ast_parse_part(struct arena *a, const struct source *source, uint32_t begin, uint32_t end,
                            struct diags *d);

/* Canonical text: parses back to an equal tree, and prints as itself. */
void ast_print(struct str *s, const struct file *file);
void ast_print_expr(struct str *s, const struct expr *e);

#endif
