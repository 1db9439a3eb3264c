/* SPDX-License-Identifier: Apache-2.0 */
/* The graph: immutable, hash-consed nodes in one arena. All that nodes and header point to lies in that arena, except
 * for sources and the bodies of fused nodes; a scan has a body of its own.
 *
 * A node has one value; fused nodes and scans have further results, which `output` nodes read. Equal nodes (same op,
 * type, inputs, attributes and place) are one node. Nodes are numbered in creation order, inputs before users, so a
 * walk over `nodes` is a topological order, and side tables are arrays indexed by id. Effects are `assign` nodes
 * reachable from the outputs; a read of a variable sees the value from before the step. A pass never changes a graph:
 * it builds another one. */
#ifndef DGC_IR_GRAPH_GRAPH_H
#define DGC_IR_GRAPH_GRAPH_H

#include "base/diag.h"
#include "base/map.h"
#include "ir/graph/config.h"
#include "ir/role.h"
#include "ir/type.h"

#define ATTR(name, kind, rule, words) ATTR_##name,
enum attr_key {
#include "ir/graph/attrs.def"
  ATTR_COUNT
};
#undef ATTR

enum attr_kind { ATTR_INT, ATTR_INTS, ATTR_FLOAT, ATTR_STRING, ATTR_DATA, ATTR_BODY };

/* The variable that counts steps: a word of the language, which no other variable is called, and its name in files. */
#define STEP_VARIABLE "step"
/* The input that evaluation and prediction say the number of a batch's first row with, i64[]: what is drawn for a row
 * is drawn by its number. It is no input of the model, which can have no name that begins with this word. */
#define FIRST_ROW_INPUT "input.first_row"

struct graph;

struct attr {
  enum attr_key key;
  int count; /* INTS: length; DATA: bytes */
  union {
    int64_t i;
    double f;
    const int64_t *ints;
    const char *string;
    const void *data;
    struct graph *body;
  };
};

/* Why a node is where it is: a rule, and one that it has won over, or NULL. */
struct reason {
  const char *rule, *over;
};

struct node {
  unsigned op; /* an enum op_id: ir/ops/op_id.h */
  uint32_t id;
  struct type type;
  enum dist dist;
  int ninputs, nattrs;
  struct node **inputs;
  const struct attr *attrs;  /* ascending by key */
  const char *name;          /* unique in its graph; from the model's own paths, never from counters */
  struct loc loc;            /* where it came from; not part of identity */
  const struct trail *trail; /* the calls that led there, or NULL */
  const char *want;          /* the `on` annotation in force, or NULL */
  int tower;                 /* the tower of a per_replica or partial value, else -1 */
  int replica;               /* the copy a mirrored value belongs to, by the number of its device, else -1 */
  int device;                /* index into config.target.devices once placed, else -1 */
  bool own;                  /* each tower has another value of it, without rows: node_is_own */
  bool backward;             /* made by differentiation, or of what that has made; not part of identity */
  const char *gradient_of;   /* stage source: the value whose gradient it is, or NULL; not part of identity */
  int pack;          /* 1 + the pack of gradients in whose sum it takes part, else 0; not part of identity */
  struct reason why; /* what placed it; not part of identity */
  /* "digits.dsl:9 (nn.dense, nn.dsl:3)", from graph text ("" = unknown); NULL: loc tells. Not part of identity */
  const char *origin;
};

struct output {
  enum output_role role;
  const char *name;
  struct node *node;
  int64_t count; /* metric: how many elements one batch adds to; negative -k means k*B; 0: not a mean */
};

enum stage { STAGE_SOURCE, STAGE_REPLICATED, STAGE_PLACED, STAGE_FUSED };

/* Of the hash-consing table: a node by its identity (op, type, inputs, attributes, place). */
struct graph_slot {
  uint32_t hash, index; /* index + 1 into nodes; 0 = empty */
};

/* What the nodes being built take over. To build elsewhere for a while: keep `at`, and put it back. */
struct build_context {
  const char *scope;
  struct loc loc;
  const struct trail *trail;
  const char *want, *origin;
  struct reason why;
  int tower, replica, device, pack;
  bool backward;
  enum dist dist;
};

struct graph {
  struct arena *arena;
  const char *name; /* "digits.train" */
  enum stage stage;
  struct config config;
  struct node **nodes;
  uint32_t count, cap;
  struct output *outputs;
  int noutputs;
  struct diags *diags; /* where the builder reports */
  struct build_context at;
  /* Nodes are built as they are asked for, and only constants are folded: none reads past an operand, so that one that
   * is made of x has x below it. */
  bool literal;
  /* What is built is a step of a loop that goes back: it joins rows of the batch, but does not count them. */
  bool step;
  /* Hash-consing and name tables. */
  struct graph_slot *table;
  uint32_t table_size;
  struct map names;
  const char **texts; /* rules and origins used last: many nodes share one */
};

/* An empty graph in a fresh or given arena. */
struct graph *graph_create(struct arena *a, const char *name, struct diags *d);
void graph_add_output(struct graph *g, enum output_role role, const char *name, struct node *n,
                      int64_t count);
struct node *graph_find(const struct graph *g, const char *name);
/* Copies name, stage, config of `from`: the start of every pass. */
struct graph *graph_create_like(struct arena *a, const struct graph *from);
/* All of `from`, dead nodes too. */
struct graph *graph_copy(struct arena *a, const struct graph *from);
/* `from` without dead nodes: itself if it has none. Nothing is folded, and names stay. */
struct graph *graph_prune(struct arena *a, struct graph *from);
/* The live nodes of g with N, the rows of the whole batch, as the number `rows`; g itself where there is no N. */
struct graph *graph_fix_whole(struct arena *a, struct graph *g, int64_t rows);
bool graph_has_whole(const struct graph *g);

/* Whether they have the same nodes in the same order, whatever these are called. */
bool graph_alike(const struct graph *a, const struct graph *b);

/* Attributes; the node must have them, except for the _or forms. */
const struct attr *node_attr(const struct node *n, enum attr_key key);
int64_t node_int(const struct node *n, enum attr_key key);
int64_t node_int_or(const struct node *n, enum attr_key key, int64_t otherwise);
const int64_t *node_ints(const struct node *n, enum attr_key key, int *count);
const char *node_string(const struct node *n, enum attr_key key);
const char *node_string_or(const struct node *n, enum attr_key key, const char *otherwise);
bool node_is(const struct node *n, unsigned op);
/* A constant whose elements all equal `value`. */
bool node_is_constant(const struct node *n, double value);

/* users[first[id] .. first[id+1]) are the nodes that read node id, ascending. */
struct users {
  uint32_t *first;
  struct node **users;
};
struct users graph_users(struct arena *a, const struct graph *g);
bool graph_has_op(const struct graph *g, unsigned op);
/* Live nodes: reachable from the outputs. One byte per id. */
uint8_t *graph_live(struct arena *a, const struct graph *g);

/* Text. print then parse gives the same graph, parse then print the same text. */
void graph_print(struct str *s, const struct graph *g);
struct graph *graph_parse(struct arena *a, const struct source *src, struct diags *d);
/* All graphs of a source: a file may hold several. Returns how many, -1 on error. */
int graph_parse_all(struct arena *a, const struct source *src, struct diags *d, struct graph ***out);
/* Where the graphs of a source stand, for those who want one after the other: all of them are parsed, and forgotten.
 * Returns how many, -1 on error. */
struct graph_place {
  const char *name;
  enum stage stage;
  size_t at; /* byte of the source */
};
int graph_parse_places(struct arena *a, const struct source *src, struct diags *d, struct graph_place **out);
/* The graph of such a place. */
struct graph *graph_parse_at(struct arena *a, const struct source *src, const struct graph_place *place,
                             struct diags *d);
void graph_print_dot(struct str *s, const struct graph *g);
void graph_print_json(struct str *s, const struct graph *g);

/* What the results of all nodes, and what they read, may need together, so that no sum of bytes overflows. */
#define MAX_GRAPH_BYTES (INT64_C(1) << 60)
/* The first node with which they need more, or NULL; B counts as 1. */
const struct node *graph_excess(const struct graph *g);
/* Checks every invariant of the graph's stage; reports each breach on the printed node. `after` names the pass. */
bool graph_verify(const struct graph *g, const char *after, struct diags *d);
/* Whether each node of g says where it comes from, if each of `before` does, of which the pass has made it. */
bool graph_verify_origins(const struct graph *before, const struct graph *g, const char *after,
                          struct diags *d);

/* Evaluates one node on dense host tensors, the slow and obvious way: the oracle, and the constant folder. `in`
 * has ninputs tensors; out->data has room. False for ops that have no value of their own (input, variable).
 * `step` drives random ops. */
bool node_eval(const struct node *n, const struct tensor *in, struct tensor *out, int64_t step);
/* A fused node or a scan with its first results. `output` nodes project from these. */
bool results_eval(const struct node *n, const struct tensor *in, struct tensor *outs, int nouts,
                  int64_t step);

#endif
