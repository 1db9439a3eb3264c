/* SPDX-License-Identifier: Apache-2.0 */
/* Which activations a training step computes again to stay within --memory-limit.
 *
 * The plan says at which step of a device most is alive, and what is. Of the activations that lie there between the
 * forward and the backward pass, those come first that give most bytes for what it takes to compute them once more;
 * what has to be kept longer for that counts against them. Then there is another plan, and so on. What does not help is
 * left as it was: the plan decides, not the estimate. */
#include "session/memory_limit.h"

#include "ir/graph/graph.h"
#include "ir/ops/op.h"
#include "ir/ops/op_id.h"
#include "ir/plan/report.h"
#include "passes/recompute.h"
#include "planner/planner.h"

#include <stdlib.h>
#include <string.h>

/* In one round about a share of all is to be saved: what is kept longer for one may change what another saves. What is
 * less than a crumb of all is not worth a node. */
enum { MOST_ROUNDS = 200, SHARE = 16, CRUMB = 4096 };

/* A plan with what is computed again in it, and what it needs. */
struct attempt {
  struct arena *arena;
  const struct plan *plan;
  struct memory_need need; /* of the device that needs most */
  int device;
};

struct search {
  struct dgc_session *s;
  struct graph *g; /* placed */
  struct recompute r;
  uint8_t *useless; /* by node: it did not help */
  uint32_t *tried;  /* what was marked in this round */
  int ntried;
  uint32_t first;  /* the best candidate of this round */
  int added, most; /* how many were taken, and at most so many */
  struct attempt best, next;
};

static void forget(struct attempt *t) {
  arena_destroy(t->arena);
  t->arena = NULL;
}

static void forget_both(void *arg) {
  struct search *x = arg;
  forget(&x->best);
  forget(&x->next);
}

static bool make_attempt(struct search *x, struct attempt *out) {
  struct arena_guard guard;
  *out = (struct attempt){.arena = arena_create()};
  struct pass_ctx ctx = {.arena = out->arena, .scratch = arena_create_guarded(&guard), .diags = &x->s->diags};
  struct graph *g = recompute_graph(&ctx, &x->r);
  if (g) g = pass_fuse(&ctx, g);
  if (g) g->stage = STAGE_FUSED;
  out->plan = g ? (x->s->transport ? plan_build_processes : plan_build)(ctx.arena, g, &x->s->diags) : NULL;
  struct inventory v = {0};
  if (out->plan) v = plan_inventory(ctx.scratch, out->plan);
  for (int d = 0; out->plan && d < out->plan->ndevices; d++) {
    struct memory_need need = memory_need(ctx.scratch, &v, d);
    if (need.total > out->need.total) out->need = need, out->device = d;
  }
  arena_destroy_guarded(ctx.scratch, &guard);
  return out->plan != NULL;
}

/* --- what is alive when --- */

/* By node of the fused graph: the step that computes it, and the last that reads it; of the passes apart. */
struct uses {
  const struct graph *g;
  int *made, *forward, *backward, *last; /* forward: the last of these; backward: the first; -1: none */
};

static bool is_late(const struct node *n) { return n->backward || node_int_or(n, ATTR_again, 0); }

/* Whether what reads x reads its operand. */
static bool looks_through(const struct node *x) {
  return node_is_strided(x) || op_of(x)->view || (x->op == OP_copy && node_int_or(x, ATTR_alias, 0));
}

/* What n reads is read at this step, and what that looks into. */
static void note_use(struct uses *u, const struct node *n, int step, bool late) {
  for (int i = 0; i < n->ninputs; i++) {
    const struct node *x = n->inputs[i];
    int id = (int)x->id;
    if (step > u->last[id]) u->last[id] = step;
    if (late && (u->backward[id] < 0 || step < u->backward[id])) u->backward[id] = step;
    if (!late && step > u->forward[id]) u->forward[id] = step;
    if (looks_through(x)) note_use(u, x, step, late || is_late(x));
  }
}

static struct uses find_uses(struct arena *a, const struct plan *p, int device) {
  const struct graph *g = p->graph;
  struct uses u = {.g = g};
  int **all[] = {&u.made, &u.forward, &u.backward, &u.last};
  for (int k = 0; k < 4; k++) {
    *all[k] = arena_new_array(a, (size_t)g->count + 1, int);
    memset(*all[k], -1, ((size_t)g->count + 1) * sizeof(int));
  }
  const struct device_plan *dp = &p->devices[device];
  for (int i = 0; i < dp->nsteps; i++)
    if (dp->steps[i].node && dp->steps[i].kind != STEP_SIGNAL && dp->steps[i].kind != STEP_WAIT)
      u.made[dp->steps[i].node->id] = i;
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (n->op == OP_output) u.made[i] = u.made[n->inputs[0]->id];
  }
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (u.made[i] >= 0 && n->op != OP_output) note_use(&u, n, u.made[i], is_late(n));
  }
  return u;
}

/* --- candidates --- */

struct activation {
  uint32_t node;
  int64_t saved; /* bytes at the step where most is alive */
  double cost;   /* floating point operations, and numbers that are read */
};

/* What a candidate is judged by. */
struct judgement {
  const struct search *x;
  const struct uses *u;
  const struct node *of;
  int at; /* the step where most is alive */
};

static bool is_alive(const struct judgement *j, const struct node *n) {
  const struct node *there = graph_find(j->u->g, n->name);
  return there && j->u->made[there->id] <= j->at && j->u->last[there->id] >= j->at;
}

/* What is small beside it is kept longer; what is not is computed again, too. */
static bool is_read(void *user, const struct node *n) {
  const struct judgement *j = user;
  return is_alive(j, n) || type_bytes(&n->type) * SHARE <= type_bytes(&j->of->type);
}

static struct recomputed room_for(const struct search *x, struct arena *scratch) {
  return (struct recomputed){.computed = arena_new_array(scratch, (size_t)x->g->count + 1, uint32_t),
                             .read = arena_new_array(scratch, (size_t)x->g->count + 1, uint32_t)};
}

static bool is_candidate(struct arena *scratch, struct judgement *j, const struct attempt *now,
                         const struct node *n, struct activation *out) {
  const struct search *x = j->x;
  const struct uses *u = j->u;
  const struct node *there = n->device == now->device ? graph_find(u->g, n->name) : NULL;
  if (!there || x->useless[n->id] || !recompute_may(&x->r, n)) return false;
  if (type_bytes(&n->type) < now->need.total / CRUMB) return false;
  int made = u->made[there->id], forward = u->forward[there->id], backward = u->backward[there->id];
  if (made < 0 || made >= j->at || forward >= j->at || backward <= j->at) return false;
  struct recomputed c = room_for(x, scratch);
  j->of = n;
  if (!recompute_cost(&x->r, scratch, n, is_read, j, &c)) return false;
  *out = (struct activation){.node = n->id, .saved = type_bytes(&n->type), .cost = 1};
  for (int i = 0; i < c.ncomputed; i++) out->cost += (double)node_flops(x->g->nodes[c.computed[i]]);
  for (int i = 0; i < c.nread; i++) {
    const struct node *y = x->g->nodes[c.read[i]];
    out->cost += (double)type_count(&y->type);
    bool given = op_of(y)->kind == KIND_SOURCE && y->op != OP_input;
    if (!given && !is_alive(j, y)) out->saved -= type_bytes(&y->type);
  }
  return out->saved > 0;
}

static int by_worth(const void *a, const void *b) {
  const struct activation *x = a, *y = b;
  double p = (double)x->saved / x->cost, q = (double)y->saved / y->cost;
  return p != q ? (p < q ? 1 : -1) : (x->node > y->node) - (x->node < y->node);
}

/* Marks a candidate, and what has to be computed again with it. */
static void mark(struct search *x, struct arena *scratch, struct judgement *j, uint32_t node) {
  struct recomputed c = room_for(x, scratch);
  j->of = x->g->nodes[node];
  recompute_cost(&x->r, scratch, j->of, is_read, j, &c);
  for (int i = 0; i < c.ncomputed; i++) {
    if (!recompute_may(&x->r, x->g->nodes[c.computed[i]])) continue;
    x->tried[x->ntried++] = c.computed[i];
    x->r.again[c.computed[i]] = 1;
  }
}

/* Marks the best ones, as many as it takes; whether there are any. */
static bool add(struct search *x, const struct attempt *now, int64_t bytes) {
  struct arena_guard guard, inner;
  struct arena *scratch = arena_create_guarded(&guard), *each = arena_create_guarded(&inner);
  struct uses u = find_uses(scratch, now->plan, now->device);
  struct judgement j = {.x = x, .u = &u, .at = now->need.step};
  struct activation *all = arena_new_array(scratch, (size_t)x->g->count + 1, struct activation);
  int n = 0;
  for (uint32_t i = 0; i < x->g->count; i++) {
    n += is_candidate(each, &j, now, x->g->nodes[i], &all[n]);
    arena_reset(each);
  }
  qsort(all, (size_t)n, sizeof *all, by_worth);
  x->ntried = x->added = 0;
  for (int i = 0; i < n && bytes > 0 && x->added < x->most; i++) {
    if (x->r.again[all[i].node]) continue; /* with another one */
    mark(x, each, &j, all[i].node);
    arena_reset(each);
    bytes -= all[i].saved;
    x->first = x->added++ ? x->first : all[i].node;
  }
  arena_destroy_guarded(each, &inner);
  arena_destroy_guarded(scratch, &guard);
  return x->added > 0;
}

/* It did not help. Half as many are tried next; of one alone no more is expected. */
static void take_back(struct search *x) {
  for (int i = 0; i < x->ntried; i++) x->r.again[x->tried[i]] = 0;
  if (x->added == 1) x->useless[x->first] = 1;
  x->most = x->added > 1 ? x->added / 2 : (int)x->g->count;
}

static int count_again(const struct search *x) {
  int count = 0;
  for (uint32_t i = 0; i < x->g->count; i++) count += x->r.again[i];
  return count;
}

static void refuse(struct search *x, const struct attempt *now, int64_t first) {
  struct diags *d = &x->s->diags;
  int again = count_again(x);
  int64_t limit = x->s->options.memory_limit;
  const char *device = x->g->config.target.devices[now->device].text;
  diag_error(d, LOC_NONE, "memory-limit: a training step needs %lld bytes on %s, and %lld are allowed",
             (long long)now->need.total, device, (long long)limit);
  if (again)
    diag_note(d, LOC_NONE, "that is with %d activation%s computed again; with all kept it is %lld bytes",
              again, again == 1 ? "" : "s", (long long)first);
  diag_note(d, LOC_NONE,
            "%lld of it are variables and what optimizers keep, %lld the most that is alive of a step",
            (long long)(now->need.total - now->need.arena), (long long)now->need.arena);
  diag_help(d, LOC_NONE,
            "a smaller --batch needs less, and so do several --towers on a device, one behind the other");
}

static bool search(struct search *x) {
  int64_t limit = x->s->options.memory_limit;
  if (!make_attempt(x, &x->best)) return false;
  int64_t first = x->best.need.total;
  for (int round = 0; x->best.need.total > limit && round < MOST_ROUNDS; round++) {
    int64_t excess = x->best.need.total - limit, share = first / SHARE;
    if (!add(x, &x->best, excess < share ? excess : share)) break;
    if (!make_attempt(x, &x->next)) return false;
    if (x->next.need.total <= x->best.need.total) {
      struct attempt worse = x->best;
      x->best = x->next;
      x->next = worse;
      x->most = (int)x->g->count;
    } else {
      take_back(x);
    }
    forget(&x->next);
  }
  if (x->best.need.total <= limit) return true;
  refuse(x, &x->best, first);
  return false;
}

struct graph *session_within_limit(struct dgc_session *s, struct arena *a, struct graph *g,
                                   const struct pipeline_options *o) {
  struct arena_guard guard, both;
  struct pass_ctx ctx = {.arena = a, .scratch = arena_create_guarded(&guard), .diags = &s->diags};
  struct search x = {.s = s, .g = g, .most = (int)g->count};
  x.useless = arena_new_array(ctx.scratch, (size_t)g->count + 1, uint8_t);
  x.tried = arena_new_array(ctx.scratch, (size_t)g->count + 1, uint32_t);
  struct graph *out = NULL;
  arena_guard(&both, forget_both, &x);
  if (recompute_init(&ctx, ctx.scratch, g, &x.r) && search(&x)) out = recompute_graph(&ctx, &x.r);
  arena_unguard(&both);
  forget_both(&x);
  arena_destroy_guarded(ctx.scratch, &guard);
  return out ? pipeline_run(a, out, "fuse", NULL, o, &s->diags) : NULL;
}
