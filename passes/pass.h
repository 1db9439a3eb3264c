/* SPDX-License-Identifier: Apache-2.0 */
/* A pass is a function from graph to graph: one file, one row in passes.def. It never changes its input; it
 * returns the same graph when there is nothing to do, or a new one built through the builder, so that folding
 * and merging are free. NULL after an error in ctx->diags. What is built stands at the line of a node of its input:
 * rebuild (passes/rebuild.h) sees to that, a walk of another kind calls build_at; --verify-each looks. */
#ifndef DGC_PASSES_PASS_H
#define DGC_PASSES_PASS_H

#include "ir/certify/certify.h"
#include "ir/graph/build.h"

struct pass_ctx {
  struct arena *arena;   /* where the new graph goes */
  struct arena *scratch; /* reset after each pass */
  struct diags *diags;
};

#define PASS(name, from, to, help) struct graph *pass_##name(struct pass_ctx *ctx, struct graph *g);
#include "passes/passes.def"
#undef PASS

/* What the pipeline tells its caller about itself. All optional. */
struct pipeline_options {
  bool verify_each;
  const char *print_after; /* a pass, or "all"; text goes to print */
  const char *disable;     /* comma-separated passes to skip; required ones are refused */
  bool time_passes;
  bool roundtrip; /* print and read back after each pass: --stress=roundtrip */
  void (*print)(void *user, const char *pass, const char *text); /* print_after, dump_all and time_passes */
  void *user;
  bool no_origins;                 /* what is printed says nothing of lines */
  bool dump_all;                   /* call print with every pass's result, numbered in order */
  struct certificate *certificate; /* of the placed graph, for the caller to read: a breach ends no run */
};

/* Runs `passes` ("simplify,grad"; NULL: all from the graph's stage up to and including `last`, or to the end). */
struct graph *pipeline_run(struct arena *a, struct graph *g, const char *passes, const char *last,
                           const struct pipeline_options *o, struct diags *d);
/* Passes in an order, each at its first place: NULL, or which of them must change places and why, as passes/order.def
 * says; into `a`. */
const char *pipeline_order(struct arena *a, const char *const *names, int count);
/* The list of passes with their help, a line each. */
void pipeline_help(struct str *s);

#endif
