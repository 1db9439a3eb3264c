/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of the parser of graph text: lines (parse.c), and the values in them (parse_value.c). */
#ifndef DGC_IR_GRAPH_PARSE_H
#define DGC_IR_GRAPH_PARSE_H

#include "ir/graph/graph.h"
#include "ir/graph/lex.h"

/* What follows the key of a header line, into g's config or stage. The key is a known one. */
bool parse_option(struct lex *l, struct lexeme line, struct graph *g);
/* The elements of a constant, which begin at `data`, into n's `value`. *total counts the bytes of all constants. */
bool parse_data(struct lex *l, struct node *n, const char *data, size_t *total);

#endif
