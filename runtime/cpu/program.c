/* SPDX-License-Identifier: Apache-2.0 */
/* What a scalar program asks of the loops around it: what is live, uniform and how deep. */
#include "runtime/cpu/loops.h"

/* Loops to enter before an element of argument `a` is known, or a chunk of them. */
static int depth_of(const struct cpu_loops *n, int a, bool chunk) {
  int depth = chunk ? n->vector_depth + 1 : 0;
  for (int d = depth; d < n->k->rank; d++)
    if (!(n->k->still[a] >> n->order[d] & 1)) depth = d + 1;
  return depth;
}

static void mark_places(struct cpu_loops *n, struct cpu_program *g, bool in_lanes) {
  const struct kernel *k = n->k;
  int use[3];
  for (int v = 0; v < g->text->count; v++) {
    const struct sinst *i = &g->text->inst[v];
    g->uniform[v] = true;
    if (i->op == S_INDEX) {
      g->uniform[v] = !in_lanes || i->a != k->vector;
      for (int d = 0; d < k->rank; d++)
        if (n->order[d] == i->a) g->depth[v] = d + 1;
    } else if (i->op == S_ARG) {
      g->uniform[v] = !in_lanes || (i->a < k->nargs && k->args[i->a].vector == STRIDE_ZERO);
      g->depth[v] = i->a < k->nargs ? depth_of(n, i->a, !g->uniform[v]) : k->rank;
    }
    int nuse = sinst_operands(i, use);
    for (int u = 0; u < nuse; u++) {
      g->uniform[v] &= g->uniform[use[u]];
      if (g->depth[use[u]] > g->depth[v]) g->depth[v] = g->depth[use[u]];
    }
  }
}

static void mark_splats(struct cpu_program *g, const sval *results, int nresults) {
  int use[3];
  for (int v = 0; v < g->text->count; v++) {
    int nuse = g->live[v] && !g->uniform[v] ? sinst_operands(&g->text->inst[v], use) : 0;
    for (int u = 0; u < nuse; u++) g->needs_splat[use[u]] = g->uniform[use[u]];
  }
  for (int r = 0; r < nresults; r++) g->needs_splat[results[r]] = g->uniform[results[r]];
}

void program_init(struct cpu_loops *n, struct cpu_program *g, const struct sprog *p, const sval *results,
                  int nresults, bool in_lanes, struct arena *scratch) {
  size_t count = (size_t)p->count;
  g->text = p;
  g->live = sprog_live(scratch, p, results, nresults);
  g->uniform = arena_new_array(scratch, count, bool);
  g->needs_splat = arena_new_array(scratch, count, bool);
  g->depth = arena_new_array(scratch, count, int);
  g->scalar = arena_new_array(scratch, count, LLVMValueRef);
  g->splat = arena_new_array(scratch, count, LLVMValueRef);
  g->lanes = arena_array(scratch, count, sizeof *g->lanes);
  mark_places(n, g, in_lanes);
  if (in_lanes) mark_splats(g, results, nresults);
}

/* A high half is eight instructions of half as many lanes. */
static int weight_of(const struct sprog *text, int v) {
  if (text->inst[v].op == S_MULHI) return 8;
  return dtype_size(s_dtype(text, v)) == 8 ? 2 : 1;
}

int program_weight(const struct cpu_program *g, int depth) {
  int weight = 0;
  for (int v = 0; v < g->text->count; v++)
    if (g->live[v] && g->depth[v] >= depth) weight += weight_of(g->text, v);
  return weight;
}
