/* SPDX-License-Identifier: Apache-2.0 */
/* What the printers, the verifier and the parser of graph text share. */
#ifndef DGC_IR_GRAPH_TEXT_H
#define DGC_IR_GRAPH_TEXT_H

#include "ir/graph/graph.h"

/* A source of graph text is refused past this size, and so are constants that together need more. */
#define TEXT_MAX_BYTES (16u << 20)
#define TEXT_MAX_DATA  (64u << 20)

/* By enum stage and enum output_role. */
extern const char *const text_stages[4];
extern const char *const text_roles[OUTPUT_ROLES];

/* The sum of a gradient over the towers is called so, and then by what it is the gradient of. */
#define TEXT_GRADIENT_SUM "gradient_aggregating/"
/* What a name says in graph text, where a line says nothing else: h.kernel.grad, h.x.grad.mul and
 * gradient_aggregating/h.kernel are made by differentiation. */
bool text_is_backward(const char *name);
/* In a source graph, of what is backward: whose gradient it is, in `a`: h.kernel for h.kernel.grad and for
 * gradient_aggregating/h.kernel, nothing for h.grad.mul.grad, a product of h.grad. NULL: no value's. */
const char *text_gradient_of(struct arena *a, const char *name);
/* Of a graph's name: train of digits.train, and digits; without a dot, all of it. */
const char *text_entry(const char *graph);
const char *text_model(struct arena *a, const char *graph);
/* Names are runs of these characters, not starting with '#'; any other name is printed in quotes. */
bool text_is_word(char c);
/* `text` as a word, or as a string in quotes. */
void text_print_name(struct str *s, const char *text);
void text_print_string(struct str *s, const char *text, size_t len);
/* As a JSON string; bytes that are no UTF-8 become U+FFFD. */
void text_print_json(struct str *s, const char *text);
/* Element `index` of an array of `d`. */
void text_print_element(struct str *s, enum dtype d, const void *data, int64_t index);
/* `len` bytes as one line: trimmed, control characters as blanks. NULL if nothing is left. */
const char *text_comment(struct arena *a, const char *text, size_t len);
/* Where n came from, or NULL: "digits.dsl:5", in a function "digits.dsl:9 (nn.dense, nn.dsl:7)": called in line 9. */
const char *node_origin(struct arena *a, const struct node *n);
/* The user's place in an origin: its file, "digits.dsl", and line, 9. False if `origin` is NULL or holds none. */
bool origin_place(struct arena *a, const char *origin, const char **file, int *line);
/* "rule over rule", or the one there is; NULL: none. */
const char *reason_text(struct arena *a, struct reason why);
/* What a text says, which comments of graph text are. */
struct reason reason_read(struct arena *a, const char *text);
/* Where in a comment an origin begins: its end, or all of it. NULL if there is none. */
const char *text_origin(const char *comment);
/* As graph_print, but comments hold reasons only: nothing changes where lines of the source have moved. */
void graph_print_without_origins(struct str *s, const struct graph *g);
/* The node's line as graph_print prints it, without indentation, body and line end. */
void node_print(struct str *s, const struct graph *g, const struct node *n);

#endif
