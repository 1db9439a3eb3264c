/* SPDX-License-Identifier: Apache-2.0 */
/* Reading graph text piece by piece. The grammar knows at each place what may stand there, so there are no tokens:
 * each function skips blanks, reads one thing if it is there, and leaves the position where it was if not. */
#ifndef DGC_IR_GRAPH_LEX_H
#define DGC_IR_GRAPH_LEX_H

#include "base/diag.h"
#include "ir/type.h"

struct lex {
  struct arena *arena;
  const struct source *source;
  struct diags *diags;
  const char *p, *end;
};

/* A piece of the text. NULL text: it was not there. */
struct lexeme {
  const char *text; /* NUL-terminated copy */
  size_t len;
  struct loc loc;
};

struct loc lex_loc(const struct lex *l, const char *begin, const char *end);
/* An error at the next thing in the text, which is shown. Always false. */
bool lex_expected(struct lex *l, const char *what);

void lex_blanks(struct lex *l);   /* spaces and tabs */
bool lex_line_end(struct lex *l); /* whether only a comment stands before the line's end */
void lex_skip_line(struct lex *l);
void lex_skip_lines(struct lex *l); /* empty ones and comments */
/* The comment at the end of a line as text, or NULL; goes to the next line. */
const char *lex_comment(struct lex *l);

bool lex_char(struct lex *l, char c);
bool lex_keyword(struct lex *l, const char *word);
struct lexeme lex_name(struct lex *l);   /* a word or a string */
struct lexeme lex_string(struct lex *l); /* in quotes */
struct lexeme lex_word(struct lex *l);
struct lexeme lex_until(struct lex *l,
                        const char *stop);       /* what is left of the line up to a blank or one of these */
bool lex_int(struct lex *l, int64_t *out);       /* fails on overflow too */
bool lex_float(struct lex *l, double *out);      /* also inf, -inf, nan */
bool lex_nan_bits(struct lex *l, uint64_t *out); /* nan(0x7ff8000000000001) */
bool lex_dim(struct lex *l, int64_t *out);       /* 784, B, 3*B */
bool lex_type(struct lex *l, struct type *out);  /* f32[B,784] */

#endif
