/* SPDX-License-Identifier: Apache-2.0 */
/* Which device or tower needs which value: one walk from the results and updates back to the sources. */
#include "passes/replicate/needs.h"

#include "ir/ops/op_id.h"
#include "passes/replicate/distribute.h"

#include <string.h>

static uint64_t *need_of(const struct replicate *r, const struct tower_group *g, const struct node *n) {
  return &g->need[(size_t)n->id * (size_t)r->words];
}

static void require(struct replicate *r, struct tower_group *g, const struct node *x,
                    const uint64_t *devices) {
  if (on_towers(r, x)) g->wanted[x->id] = 1;
  if (r->dist[x->id] == DIST_PER_REPLICA) return; /* gathered, not summed */
  for (int i = 0; i < r->words; i++) need_of(r, g, x)[i] |= devices[i];
}

/* What an update needs is needed where its variable is. */
static void require_update(struct replicate *r, struct tower_group *g, const struct node *assign) {
  if (on_towers(r, assign))
    g->wanted[assign->id] = 1;
  else if (r->s.mirrored)
    for (int i = 0; i < r->s.nworkers; i++) set_add(need_of(r, g, assign), r->s.workers[i]);
  else
    set_add(need_of(r, g, assign), strategy_home(&r->s, assign->inputs[0]));
}

bool starts_from_primary(const struct replicate *r, const struct node *assign) {
  return r->s.mirrored && assign->op == OP_assign && r->fixed[assign->inputs[1]->id];
}

static bool any_need(const struct replicate *r, const struct tower_group *g, const struct node *n) {
  for (int i = 0; i < r->words; i++)
    if (need_of(r, g, n)[i]) return true;
  return false;
}

/* The local value of x is needed. */
static void want_local(struct replicate *r, struct tower_group *g, const struct node *x) {
  if (has_local(r, x))
    g->wants_local[x->id] = 1;
  else
    require(r, g, x, g->workers);
}

/* What the local value of n is made of is needed. */
static void mark_local(struct replicate *r, struct tower_group *g, const struct node *n) {
  if (is_model_rows(r, n))
    g->wanted[n->id] = 1;
  else
    for (int k = 0; k < n->ninputs; k++) want_local(r, g, n->inputs[k]);
}

/* Passes on what is needed of n to its inputs. */
static void mark_inputs(struct replicate *r, struct tower_group *g, const struct node *n,
                        const uint64_t *main) {
  bool tower = on_towers(r, n);
  if (g->computes && g->wants_local[n->id]) mark_local(r, g, n);
  if (tower ? !g->computes || !g->wanted[n->id] : !any_need(r, g, n)) return;
  bool joins = tower && reads_local(n) && !r->single;
  for (int k = 0; joins && k < n->ninputs; k++) want_local(r, g, n->inputs[k]);
  for (int k = 0; !joins && k < n->ninputs; k++) {
    const struct node *x = n->inputs[k];
    bool per_tower =
        r->dist[x->id] == DIST_PER_REPLICA || (r->dist[x->id] == DIST_PARTIAL && passes_partial(r, n));
    if (tower && per_tower)
      g->wanted[x->id] = 1;
    else if (tower)
      require(r, g, x, g->workers);
    else
      require(r, g, x, starts_from_primary(r, n) && k == 1 ? main : need_of(r, g, n));
  }
}

void mark_needs(struct replicate *r, struct tower_group *g) {
  uint64_t *main = arena_new_array(r->ctx->scratch, (size_t)r->words, uint64_t);
  set_add(main, r->s.main);
  for (int i = 0; i < r->from->noutputs; i++) {
    const struct output *o = &r->from->outputs[i];
    if (o->role != OUTPUT_UPDATE && g->outputs) require(r, g, o->node, main);
    if (o->role == OUTPUT_UPDATE && g->updates) require_update(r, g, o->node);
  }
  for (uint32_t i = r->from->count; i-- > 0;) mark_inputs(r, g, r->from->nodes[i], main);
}

uint8_t *readers_of(const struct replicate *r, const struct tower_group *g, const struct node *n) {
  uint8_t *reads = arena_new_array(r->ctx->scratch, (size_t)r->part.count, uint8_t);
  const uint64_t *need = need_of(r, g, n);
  for (int d = 0; d < r->ndevices; d++) reads[r->part.of[d]] |= set_has(need, d);
  return reads;
}

int primary_device(const struct replicate *r, const struct tower_group *g, const struct node *n) {
  if (n->op == OP_variable && !r->s.mirrored && !on_towers(r, n)) return strategy_home(&r->s, n);
  const uint64_t *need = need_of(r, g, n);
  if (set_has(need, r->s.main)) return r->s.main;
  for (int d = 0; d < r->ndevices; d++)
    if (set_has(need, d)) return d;
  return -1;
}

bool needed_on(const struct replicate *r, const struct tower_group *g, const struct node *n, int device) {
  /* One copy of a variable: whoever reads it reads that one. */
  if (n->op == OP_variable && !r->s.mirrored && !on_towers(r, n))
    return any_need(r, g, n) && device == primary_device(r, g, n);
  return set_has(need_of(r, g, n), device);
}
