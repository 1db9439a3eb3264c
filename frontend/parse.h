/* SPDX-License-Identifier: Apache-2.0 */
/* What lexer, parser and the tree's constructors share; nobody else includes this. */
#ifndef DGC_FRONTEND_PARSE_H
#define DGC_FRONTEND_PARSE_H

#include "frontend/ast.h"

/* A token's bytes, in the source itself. */
struct slice {
  const char *text;
  size_t len;
};

struct parser {
  struct arena *arena;
  const struct source *source;
  struct diags *diags;
  void *scanner;
  uint32_t offset; /* of the lexer */
  int previous;    /* the token given last */
  int depth;       /* open brackets */
  struct loc open[MAX_NESTING + 1];
  char bracket[MAX_NESTING + 1];
  uint32_t closed; /* behind the last bracket that closed another */
  bool inside;     /* the last error is in brackets that its line does not close */
  bool skips;      /* the rest of the line, of which something is wrong */
  int skipped;     /* blocks that are open in what has been skipped */
  bool fatal;      /* reported something that makes all further messages noise */
  struct file *file;
};

/* Constructors: bison's actions. They report what a token cannot be (a number too large, say) and go on. */
struct expr *ast_int(struct parser *p, struct loc loc, struct slice text);
struct expr *ast_float(struct parser *p, struct loc loc, struct slice text);
struct expr *ast_string(struct parser *p, struct loc loc, struct slice text);
struct expr *ast_bool(struct parser *p, struct loc loc, bool b);
struct expr *ast_name(struct parser *p, struct loc loc, struct slice text);
struct expr *ast_member(struct parser *p, struct loc loc, struct expr *base, struct slice name);
struct expr *ast_unary(struct parser *p, struct loc loc, enum operator op, struct expr *x);
struct expr *ast_binary(struct parser *p, struct loc loc, enum operator op, struct expr *l, struct expr *r);
struct expr *ast_conditional(struct parser *p, struct loc loc, struct expr *yes, struct expr *condition,
                             struct expr *no);
struct expr *ast_items(struct parser *p, struct loc loc, enum expr_kind kind, struct expr *base,
                       struct args items);
struct expr *ast_range(struct parser *p, struct loc loc, struct expr *l, struct expr *r, struct expr *step);
struct expr *ast_rest(struct parser *p, struct loc loc, struct expr *x);

struct args ast_args(struct parser *p, struct args list, struct loc loc, const char *name,
                     struct expr *value);
struct names ast_names(struct parser *p, struct names list, struct loc loc, struct slice name);
struct params ast_params(struct parser *p, struct params list, struct loc loc, struct slice name,
                         struct expr *type, struct expr *value);
struct stmt *ast_stmt(struct parser *p, struct loc loc, enum stmt_kind kind, struct names names,
                      struct expr *value);
struct stmt *ast_scan(struct parser *p, struct loc loc, struct names stacks, struct args settings,
                      struct names carried, struct args sequences, struct block body);
struct block ast_block(struct parser *p, struct block list, struct stmt *s);
void ast_def(struct parser *p, enum def_kind kind, struct loc loc, struct slice name, struct params params,
             struct args with, struct block body);
void ast_use(struct parser *p, struct loc loc, const char *what, bool is_path, const char *as);
/* A name as a string of its own. */
const char *ast_text(struct parser *p, struct loc loc, struct slice text);

#endif
