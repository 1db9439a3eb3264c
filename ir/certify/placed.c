/* SPDX-License-Identifier: Apache-2.0 */
/* The certificate's reading of the placed graph: what each node stands for in the reference, or which towers'
 * share of what.
 *
 * A copy stands for its operand, an update for the value it stores. Addition joins shares of different towers,
 * maximum and minimum likewise; a share of all towers is the total. What is linear passes shares on. Any other
 * op is looked up with what its operands stand for: an expression that the source does not have becomes a new
 * node of the reference, which nothing the source asks for is equal to. */
#include "ir/certify/placed.h"
#include "ir/certify/breach.h"
#include "ir/certify/reference.h"
#include "ir/graph/build.h"
#include "ir/graph/text.h"
#include "ir/ops/op_id.h"

#include <string.h>

static const struct meaning nothing;

static const uint64_t *single(const struct certify *c, int tower) {
  return &c->single[(size_t)tower * (size_t)c->words];
}

static bool all_towers(const struct certify *c, const uint64_t *set) {
  return memcmp(set, c->all, sizeof *set * (size_t)c->words) == 0;
}

static bool same_towers(const struct certify *c, const uint64_t *a, const uint64_t *b) {
  return a == b || memcmp(a, b, sizeof *a * (size_t)c->words) == 0;
}

/* A tower's value as the share that it may be: of a reduction of this kind, if of one. */
static struct meaning value(const struct certify *c, struct node *x, enum dist how) {
  const struct share *all = x && x->tower >= 0 && x->id < c->known ? c->share[x->id] : NULL, *s = all;
  if (!s) return (struct meaning){.of = x};
  while (s && s->how != how) s = s->next;
  if (!s) s = all;
  return (struct meaning){.of = s->total,
                          .in_worker = s->in_worker,
                          .towers = single(c, x->tower),
                          .how = s->how,
                          .term = x,
                          .others = all};
}

static const struct share *find_share(const struct share *s, const struct node *total, enum dist how) {
  while (s && (s->total != total || s->how != how)) s = s->next;
  return s;
}

/* One value may be a tower's share of several sums: it is read as one that the other is a share of. */
static bool read_as(struct meaning *m, const struct meaning *other) {
  if (m->of == other->of) return true;
  const struct share *s = find_share(m->others, other->of, other->how);
  if (!s) return false;
  m->of = s->total;
  m->in_worker = s->in_worker;
  return true;
}

/* Reads both as shares of one sum, if there is one. */
static bool agree(struct meaning *a, struct meaning *b) {
  if (read_as(a, b) || read_as(b, a)) return true;
  for (const struct share *s = a->others; s; s = s->next) {
    if (s->how != a->how || !find_share(b->others, s->total, b->how)) continue;
    a->of = s->total;
    a->in_worker = s->in_worker;
    return read_as(b, a);
  }
  return false;
}

/* What a value and another one, of other towers, are both shares of: one is of all that the other is of. Towers without
 * rows have the same zeros for many sums. */
static const struct share *common(const struct meaning *a, const struct meaning *b) {
  const struct share *s = a->others;
  while (s && find_share(b->others, s->total, s->how)) s = s->next;
  return s ? NULL : a->others;
}

/* ---- joining shares ---- */

/* The first tower of a set, the one behind its last, and how many there are. */
struct extent {
  int first, end, count;
};

static struct extent extent_of(const struct certify *c, const uint64_t *set) {
  struct extent e = {-1, 0, 0};
  for (int i = 0; i < c->words; i++) {
    if (!set[i]) continue;
    if (e.first < 0) e.first = 64 * i + __builtin_ctzll(set[i]);
    e.end = 64 * (i + 1) - __builtin_clzll(set[i]);
    e.count += __builtin_popcountll(set[i]);
  }
  return e;
}

/* The fixed tree cuts a range behind the largest power of two below its length. */
static bool is_fixed(const struct certify *c, const uint64_t *a, const uint64_t *b) {
  struct extent x = extent_of(c, a), y = extent_of(c, b);
  struct extent before = x.first < y.first ? x : y, behind = x.first < y.first ? y : x;
  int half = 1;
  while (2 * half < x.count + y.count) half *= 2;
  return x.end - x.first == x.count && y.end - y.first == y.count && before.end == behind.first &&
         before.count == half;
}

static int common_tower(const struct certify *c, const uint64_t *a, const uint64_t *b) {
  for (int i = 0; i < c->words; i++)
    if (a[i] & b[i]) return 64 * i + __builtin_ctzll(a[i] & b[i]);
  return -1;
}

static struct meaning join_two(struct certify *c, const struct node *n, struct meaning a, struct meaning b,
                               bool tree) {
  if (!agree(&a, &b)) {
    certify_breach(c, CLAIM_GRADIENTS, n, "it joins shares of different reductions: %s and %s", a.of->name,
                   b.of->name);
    return nothing;
  }
  int twice = common_tower(c, a.towers, b.towers);
  if (twice >= 0) {
    certify_breach(c, CLAIM_GRADIENTS, n, "the share of tower %d is in %s twice", twice, a.of->name);
    return nothing;
  }
  uint64_t *set = arena_new_array(c->arena, (size_t)c->words, uint64_t);
  for (int i = 0; i < c->words; i++) set[i] = a.towers[i] | b.towers[i];

  bool complete =
      n->dist != DIST_MIRRORED || all_towers(c, set); /* else it is short of a tower, which is worse */
  if (tree && complete && !certify_sums_by(c, CROSS_DEVICE_ring) && a.how == DIST_PARTIAL &&
      !is_fixed(c, a.towers, b.towers) && !c->off_tree++)
    certify_breach(c, CLAIM_GRADIENTS, n, "%s and %s are not joined as the fixed tree over %d towers has it",
                   certify_towers_text(c, a.towers, true), certify_towers_text(c, b.towers, true), c->towers);
  return (struct meaning){.of = a.of,
                          .in_worker = a.in_worker == b.in_worker ? a.in_worker : NULL,
                          .towers = set,
                          .how = a.how,
                          .others = common(&a, &b) ? common(&a, &b) : common(&b, &a)};
}

/* all_reduce before collectives has made a tree of it: node_eval's tree is the fixed one if all operands are
 * towers. */
static struct meaning join_all(struct certify *c, const struct node *n, const struct meaning *in) {
  enum dist how = dist_partial(node_string(n, ATTR_reduction));
  struct meaning all = in[0];
  for (int k = 0; k < n->ninputs; k++) {
    if (!in[k].towers || in[k].how != how) {
      certify_breach(c, CLAIM_GRADIENTS, n, "%s is no share of a %s", n->inputs[k]->name,
                     op_table[share_op(how)]->name);
      return nothing;
    }
    if (k > 0) all = join_two(c, n, all, in[k], false);
    if (!all.of) return nothing;
  }
  return all;
}

/* ---- rows joined ---- */

static bool is_gather(const struct node *n, const struct meaning *in) {
  if (n->op == OP_all_gather) return true;
  if (n->op == OP_identity && n->dist == DIST_MIRRORED && !in[0].towers) return in[0].of->tower >= 0;
  if (n->op != OP_concat || node_int(n, ATTR_axis) != 0) return false;
  for (int k = 1; k < n->ninputs; k++)
    if (in[k].of->tower != in[0].of->tower) return true;
  return false;
}

/* Whether these many towers from the first on are those of a view. */
static bool is_view(const struct certify *c, int first, int count) {
  for (int v = 0; v < c->nviews; v++)
    if (c->views[v].first == first && c->views[v].count == count) return true;
  return false;
}

static struct meaning gather(struct certify *c, const struct node *n, const struct meaning *in) {
  struct node **of = arena_new_array(c->arena, (size_t)n->ninputs, struct node *);
  int first = in[0].term ? in[0].term->tower : in[0].of->tower;
  bool right = is_view(c, first, n->ninputs);
  for (int k = 0; k < n->ninputs; k++) {
    of[k] = in[k].term ? in[k].term : in[k].of;
    if (right && of[k]->tower == first + k && (in[k].term || !in[k].towers)) continue;
    certify_breach(c, CLAIM_RESULTS, n, "operand %d, %s, is not the rows of tower %d", k, n->inputs[k]->name,
                   first + k);
    return nothing;
  }
  struct node *input = certify_joined_input(of, n->ninputs);
  struct node like = {.op = OP_all_gather, .name = n->name, .ninputs = n->ninputs};
  return (struct meaning){.of = input ? input : certify_make(c, &like, of, 0, NULL, NULL, -1)};
}

/* ---- arithmetic ---- */

/* Whether n of a share, everything else being complete, is a share of n of the total. */
static bool passes_share(const struct node *n, int operand, enum dist how) {
  if (node_moves(n) && n->ninputs == 1) return true;
  return how == DIST_PARTIAL && operand < 32 && (node_linear(n) >> operand & 1);
}

static struct meaning expression(struct certify *c, const struct node *n, const struct meaning *in,
                                 int tower) {
  struct node **of = arena_new_array(c->arena, (size_t)n->ninputs + 1, struct node *);
  for (int k = 0; k < n->ninputs; k++) of[k] = in[k].of;
  struct attr attrs[ATTR_COUNT];
  int nattrs = certify_attrs(n, attrs);
  bool typed = op_of(n)->traits & OP_TYPED;
  return (struct meaning){.of = certify_make(c, n, of, nattrs, attrs, typed ? &n->type : NULL, tower)};
}

/* The same of what the shares are in their worker's own reductions. */
static struct node *reduced_in_worker(struct certify *c, const struct node *n, const struct meaning *in) {
  struct meaning *worker = arena_new_array(c->arena, (size_t)n->ninputs, struct meaning);
  for (int k = 0; k < n->ninputs; k++) {
    worker[k].of = in[k].towers ? in[k].in_worker : in[k].of;
    if (!worker[k].of) return NULL;
  }
  return expression(c, n, worker, -1).of;
}

static struct meaning of_shares(struct certify *c, const struct node *n, const struct meaning *in) {
  int shares = 0, which = 0;
  bool together = true;
  for (int k = n->ninputs; k-- > 0;) {
    if (!in[k].towers) continue;
    shares++;
    which = k;
  }
  struct meaning s = in[which];
  for (int k = 0; k < n->ninputs; k++)
    together = together && in[k].towers && in[k].how == s.how && same_towers(c, in[k].towers, s.towers);
  if (n->ninputs == 2 && shares == 2 && n->op == share_op(s.how) && in[0].how == in[1].how && !together)
    return join_two(c, n, in[0], in[1], true);
  bool jointly = op_of(n)->linear_jointly && (s.how == DIST_PARTIAL || node_moves(n));
  bool single_share = shares == 1 && passes_share(n, which, s.how);
  for (int k = 0; single_share && k < n->ninputs; k++) single_share = k == which || in[k].of->tower < 0;
  if (!single_share && !(jointly && together)) {
    certify_breach(c, CLAIM_PARTIAL, n, "%s is the share of %s in %s, and %s is not linear in it",
                   n->inputs[which]->name, certify_towers_text(c, s.towers, true), s.of->name,
                   op_of(n)->name);
    return nothing;
  }
  struct meaning m = expression(c, n, in, -1);
  m.in_worker = reduced_in_worker(c, n, in);

  if (n->op == OP_add && c->nviews == 1 && m.of && m.of->id >= c->known && in[0].of == in[1].of) {
    certify_breach(c, CLAIM_GRADIENTS, n, "the share of %s is in %s twice",
                   certify_towers_text(c, s.towers, true), s.of->name);
    return nothing;
  }
  return (struct meaning){.of = m.of, .in_worker = m.in_worker, .towers = s.towers, .how = s.how};
}

static struct meaning of_values(struct certify *c, const struct node *n, const struct meaning *in) {
  int tower = n->tower;
  for (int k = 0; k < n->ninputs; k++) {
    int t = in[k].of->tower;
    if (t < 0 || t == tower) continue;
    certify_breach(c, CLAIM_TOWERS, n, "%s is of tower %d", n->inputs[k]->name, t);
    return nothing;
  }
  struct meaning m = expression(c, n, in, tower);
  if (c->local && n->dist == DIST_PER_REPLICA) m.of = certify_lift(c, m.of, tower);
  return n->dist == DIST_PER_REPLICA ? m : value(c, m.of, n->dist); /* a local value is no share */
}

/* ---- sources ---- */

/* What the world knows by its name. */
static struct meaning named(struct certify *c, const struct node *n) {
  const struct node *s = n->op == OP_input ? graph_find(c->source, n->name) : certify_variable(c, n);
  if (!s || s->op != n->op || !c->global[s->id]) {
    certify_breach(c, n->op == OP_input ? CLAIM_BATCH : CLAIM_VARIABLES, n, "the source has no such %s",
                   op_of(n)->name);
    return nothing;
  }
  int64_t first, rows = n->op == OP_variable ? certify_part_rows(c, n, &first) : -1;
  if (certify_has_tower_copies(c, s)) {
    struct node *copy = n->tower >= 0 ? c->rows[(size_t)s->id * (size_t)c->towers + (size_t)n->tower] : NULL;
    if (copy && strcmp(copy->name, n->name) == 0) return (struct meaning){.of = copy};
    certify_breach(c, CLAIM_VARIABLES, n, "it is no tower's copy of %s", s->name);
    return nothing;
  }
  if (rows >= 0) return (struct meaning){.of = certify_rows_of(c, n, c->global[s->id], first, rows)};
  if (type_equal(&c->global[s->id]->type, &n->type)) return (struct meaning){.of = c->global[s->id]};
  certify_breach(c, n->op == OP_input ? CLAIM_BATCH : CLAIM_VARIABLES, n, "the source's %s is %s", s->name,
                 type_text(c->arena, &c->global[s->id]->type));
  return nothing;
}

/* The first tower's value for all of them, if the source asks for that. */
static struct node *only_first(struct certify *c, const struct node *n, const struct meaning *in) {
  if (!c->local || n->op != OP_identity || n->tower >= 0 || in[0].towers || in[0].of->tower < 0) return NULL;
  struct node like = {.op = OP_all_reduce, .name = n->name, .ninputs = 1}, *of = in[0].of;
  struct attr how = attr_string(ATTR_reduction, "only_first_replica");
  struct node *first = certify_make(c, &like, &of, 1, &how, NULL, -1);
  return first && first->id < c->known ? first : NULL;
}

static struct meaning read(struct certify *c, const struct node *n, const struct meaning *in) {
  if (node_is_external(n)) return named(c, n);
  if (n->op == OP_copy) return in[0];
  if (n->op == OP_assign) return in[1];
  if (n->op == OP_all_reduce) return join_all(c, n, in);
  struct node *first = only_first(c, n, in);
  if (first) return (struct meaning){.of = first};
  if (is_gather(n, in)) return gather(c, n, in);
  for (int k = 0; k < n->ninputs; k++)
    if (in[k].towers) return of_shares(c, n, in);
  return of_values(c, n, in);
}

/* ---- labels ---- */

/* The mean that all_reduce may be asked for. */
static struct meaning divided(struct certify *c, const struct node *n, struct meaning m) {
  if (n->op != OP_all_reduce || strcmp(node_string(n, ATTR_reduction), "mean") != 0) return m;
  struct node *by = build_fill(c->ref, &n->type, n->ninputs), *in[2] = {m.of, by};
  struct node like = {.op = OP_div, .name = n->name, .ninputs = 2};
  return (struct meaning){.of = certify_make(c, &like, in, 0, NULL, NULL, -1)};
}

/* The towers of one worker. */
static bool is_worker(const struct certify *c, const uint64_t *set) {
  for (int v = 0; v + 1 < c->nviews; v++) {
    int same = 0, first = c->views[v].first, end = first + c->views[v].count;
    for (int t = 0; t < c->towers; t++) same += certify_has(set, t) == (t >= first && t < end);
    if (same == c->towers) return true;
  }
  return false;
}

/* A value is what its distribution says. */
static struct meaning labelled(struct certify *c, const struct node *n, struct meaning m) {
  if (!m.of) return m;
  if (m.towers && all_towers(c, m.towers)) m = (struct meaning){.of = m.of};
  if (m.towers && m.in_worker && n->dist == DIST_MIRRORED && is_worker(c, m.towers))
    m = (struct meaning){.of = m.in_worker};
  if (m.towers) {
    if (n->dist == m.how && certify_has(m.towers, n->tower)) return m;
    if (n->dist == DIST_MIRRORED)
      certify_breach(c, CLAIM_GRADIENTS, n, "%s is not in the reduction: it has %s only",
                     certify_towers_text(c, m.towers, false), certify_towers_text(c, m.towers, true));
    else
      certify_breach(c, CLAIM_PARTIAL, n, "it is the share of %s in %s, and labelled %s tower %d",
                     certify_towers_text(c, m.towers, true), m.of->name, dist_name(n->dist), n->tower);
    return nothing;
  }
  m = divided(c, n, m);
  if (!m.of || n->op == OP_assign) return m;
  int tower = m.of->tower;
  bool known = m.of->id < c->known,
       labels = tower < 0 ? n->dist == DIST_MIRRORED : n->dist == DIST_PER_REPLICA;
  if (n->tower == tower && (labels || (tower >= 0 && !known && n->dist != DIST_MIRRORED))) return m;
  certify_breach(c, CLAIM_TOWERS, n, "it is labelled %s%s", dist_name(n->dist),
                 tower >= 0 ? ", and is of one tower only" : ", and is the same in all towers");
  return nothing;
}

void certify_placed(struct certify *c) {
  const struct graph *g = c->placed;
  c->meanings = arena_new_array(c->arena, g->count + 1, struct meaning);
  int most = 1;
  for (uint32_t i = 0; i < g->count; i++)
    if (g->nodes[i]->ninputs > most) most = g->nodes[i]->ninputs;
  struct meaning *in = arena_new_array(c->arena, (size_t)most, struct meaning);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    bool sound = c->live[i];
    certify_work(c, 1 + (uint64_t)n->ninputs);
    for (int k = 0; sound && k < n->ninputs; k++) {
      in[k] = c->meanings[n->inputs[k]->id];
      sound = in[k].of != NULL;
    }
    if (!sound) continue;
    struct meaning m = labelled(c, n, read(c, n, in));
    if (!m.of && !c->blamed[i]) certify_breach(c, CLAIM_TOWERS, n, "it means nothing");
    c->meanings[i] = m;
  }
}
