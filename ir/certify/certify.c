/* SPDX-License-Identifier: Apache-2.0 */
/* The certificate: the claims, and what is said of each. Readings of the two graphs are in source.c
 * and placed.c; this file compares them where it counts, at results and updates, and checks what needs
 * no source. */
#include "ir/certify/certify.h"

#include "ir/certify/breach.h"
#include "ir/certify/placed.h"
#include "ir/certify/source.h"
#include "ir/graph/build.h"
#include "ir/graph/text.h"
#include "ir/ops/op_id.h"

#include <stdlib.h>
#include <string.h>

/* ---- towers ---- */

/* How many nodes each tower has, which is the same for all: what the source has for one. */
static void count_towers(struct certify *c) {
  int *count = arena_new_array(c->arena, (size_t)c->towers, int), most = 0;
  for (uint32_t i = 0; i < c->placed->count; i++) {
    const struct node *n = c->placed->nodes[i];
    if (!c->live[i] || n->tower < 0 || n->op == OP_copy || n->op == OP_split || !c->meanings[i].of) continue;
    const struct meaning *m = &c->meanings[i];
    if (m->towers ? m->term != NULL : m->of->tower >= 0) count[n->tower]++;
  }
  for (int t = 0; t < c->towers; t++)
    if (count[t] > most) most = count[t];
  if (c->towers == 1)
    certify_say(c, CLAIM_TOWERS, "1 tower, the source's own %u nodes", c->known);
  else
    certify_say(c, CLAIM_TOWERS, "%d copies of %d nodes, each what the source computes for its rows",
                c->towers, most);
}

/* ---- the batch ---- */

static void rows_text(const struct certify *c, struct str *s) {
  for (int t = 0; t < c->towers && t < 16; t++)
    str_printf(s, t ? " + %lld" : "%lld", (long long)certify_rows(c, t));
  if (c->towers > 16) str_printf(s, " + ... + %lld", (long long)certify_rows(c, c->towers - 1));
}

/* What the source reads of all towers: not what comes to an only_first_replica alone. By source id; NULL: no source. */
static const uint8_t *read_of_all(struct certify *c) {
  const struct graph *g = c->source;
  if (!g) return NULL;
  uint8_t *read = arena_new_array(c->arena, g->count + 1, uint8_t);
  certify_work(c, g->count);
  for (int i = 0; i < g->noutputs; i++) read[g->outputs[i].node->id] = 1;
  for (uint32_t i = g->count; i-- > 0;) {
    const struct node *n = g->nodes[i];
    if (!read[i] ||
        (n->op == OP_aggregate && strcmp(node_string(n, ATTR_reduction), "only_first_replica") == 0))
      continue;
    for (int k = 0; k < n->ninputs; k++) read[n->inputs[k]->id] = 1;
  }
  return read;
}

/* The rows that each split takes, and that those of one input are the whole. */
static void check_batch(struct certify *c) {
  const struct graph *g = c->placed;
  int64_t *taken = arena_new_array(c->arena, g->count + 1, int64_t); /* elements of axis 0, by input */
  uint8_t *split =
      arena_new_array(c->arena, g->count + 1, uint8_t); /* a tower without rows need not have one */
  certify_work(c, g->count);
  int inputs = 0;
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i], *x = n->ninputs ? n->inputs[0] : NULL;
    if (!c->live[i] || n->op != OP_split) continue;
    if (n->tower < 0 || n->tower >= c->towers || x->type.rank == 0 || c->batch == 0 ||
        x->type.dim[0] % c->batch != 0) {
      certify_breach(c, CLAIM_BATCH, n, "%s has no %lld rows to share among %d towers", x->name,
                     (long long)c->batch, c->towers);
      continue;
    }
    int64_t each = x->type.dim[0] / c->batch, first = node_int(n, ATTR_offset), rows = n->type.dim[0];
    int64_t want = each * certify_first(c, n->tower), wanted = each * certify_rows(c, n->tower);
    inputs += !split[x->id];
    split[x->id] = 1;
    taken[x->id] += rows;
    if (first == want && rows == wanted) continue;
    const char *wrong = first < want || first + rows > want + wanted ? "some of them belong to another tower"
                                                                     : "some rows are left out";
    certify_breach(c, CLAIM_BATCH, n, "it takes rows %lld to %lld of %s, and tower %d has %lld to %lld: %s",
                   (long long)first, (long long)(first + rows) - 1, x->name, n->tower, (long long)want,
                   (long long)(want + wanted) - 1, wrong);
  }
  const uint8_t *of_all = read_of_all(c);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *input = split[i] && of_all ? graph_find(c->source, g->nodes[i]->name) : NULL;
    if (split[i] && taken[i] != g->nodes[i]->type.dim[0] && (!input || of_all[input->id]))
      certify_breach(c, CLAIM_BATCH, g->nodes[i], "the towers read %lld rows of %lld", (long long)taken[i],
                     (long long)g->nodes[i]->type.dim[0]);
  }
  struct str s = str_make(c->arena);
  rows_text(c, &s);
  certify_say(c, CLAIM_BATCH, "%lld rows = %s, no row twice; %d input%s split", (long long)c->batch, s.data,
              inputs, inputs == 1 ? "" : "s");
}

/* ---- results ---- */

/* By role and name. */
enum { ROLES = OUTPUT_UPDATE + 1 };

static void name_outputs(struct certify *c, const struct graph *g, struct map *names) {
  certify_work(c, (uint64_t)g->noutputs);
  for (int role = 0; role < ROLES; role++) names[role] = map_make(c->arena);
  for (int i = g->noutputs; i-- > 0;) /* the first of a name counts */
    map_put_owned(&names[g->outputs[i].role], g->outputs[i].name, &g->outputs[i]);
}

static const struct output *find_output(struct certify *c, const struct map *names,
                                        const struct output *like) {
  certify_work(c, 1);
  return map_get(&names[like->role], like->name);
}

static void check_results(struct certify *c) {
  struct map sources[ROLES], placed[ROLES];
  int results = 0;
  name_outputs(c, c->source, sources);
  name_outputs(c, c->placed, placed);
  for (int i = 0; i < c->source->noutputs; i++) {
    const struct output *want = &c->source->outputs[i];
    if (want->role == OUTPUT_UPDATE) continue;
    const struct output *have = find_output(c, placed, want);
    if (!have) {
      certify_breach(c, CLAIM_RESULTS, NULL, "the %s %s is not there", text_roles[want->role], want->name);
      continue;
    }
    results++;
    const struct meaning *m = &c->meanings[have->node->id];
    struct node *value = c->global[want->node->id];
    const char *what = arena_printf(c->arena, "the %s %s", text_roles[want->role], want->name);
    if (m->of && (m->of != value || m->towers)) certify_blame(c, CLAIM_RESULTS, have->node, value, what);
    int64_t count = want->count;
    if (count < 0 && !dim_mul(-count, c->batch, &count)) count = 0;
    if (have->count != count)
      certify_breach(c, CLAIM_SCALE, have->node, "%s is divided by %lld, and not by %lld", what,
                     (long long)have->count, (long long)count);
  }
  for (int i = 0; i < c->placed->noutputs; i++) {
    const struct output *o = &c->placed->outputs[i];
    if (o->role != OUTPUT_UPDATE && !find_output(c, sources, o))
      certify_breach(c, CLAIM_RESULTS, o->node, "the source has no %s %s", text_roles[o->role], o->name);
  }
  certify_say(c, CLAIM_RESULTS, "%d, each the source's own", results);
}

/* ---- sums ---- */

static const char *workers_text(const struct certify *c) {
  struct str s = str_make(c->arena);
  for (int v = 0; v + 1 < c->nviews; v++)
    str_printf(&s, "%s%d-%d", v ? ", " : "", c->views[v].first, c->views[v].first + c->views[v].count - 1);
  return s.data;
}

/* The reductions over the batch that the source's updates and results need. */
static void say_sums(struct certify *c) {
  enum { UPDATES = 1, RESULTS = 2 };
  uint8_t *needed = arena_new_array(c->arena, c->known + 1, uint8_t);
  int updates = 0, results = 0, factors = 0;
  for (int i = 0; i < c->source->noutputs; i++) {
    const struct output *o = &c->source->outputs[i];
    const struct node *n = c->global[o->node->id];
    if (n) needed[n->id] |= o->role == OUTPUT_UPDATE ? UPDATES : RESULTS;
  }
  for (uint32_t i = c->known; i-- > 0;) {
    const struct node *n = c->ref->nodes[i];
    for (int k = 0; needed[i] && k < n->ninputs; k++) needed[n->inputs[k]->id] |= needed[i];
    if (!needed[i]) continue;
    if (n->op == OP_all_reduce) *(needed[i] & UPDATES ? &updates : &results) += 1;
    factors += n->tower < 1 && (n->op == OP_div || n->op == OP_constant || n->op == OP_batch_size);
  }
  const char *how = certify_sums_by(c, CROSS_DEVICE_ring)   ? "around the ring"
                    : certify_sums_by(c, CROSS_DEVICE_nccl) ? "by NCCL or the fixed tree"
                                                            : "by the fixed tree";
  if (c->towers == 1)
    certify_say(c, CLAIM_GRADIENTS, "one tower, nothing to reduce");
  else if (c->nviews > 1)
    certify_say(
        c, CLAIM_GRADIENTS,
        "%d reductions for updates, each over the towers of one worker once (%s), and %d for results, "
        "each over towers 0-%d once, %s",
        updates, workers_text(c), results, c->towers - 1, how);
  else
    certify_say(c, CLAIM_GRADIENTS,
                "%d reductions for updates and %d for results, each over towers 0-%d once, %s", updates,
                results, c->towers - 1, how);
  certify_say(c, CLAIM_SCALE, "%d divisions, constants and counts of the source, over %lld rows", factors,
              (long long)c->batch);
}

static void say_shares(struct certify *c) {
  int shares = 0;
  for (uint32_t i = 0; i < c->placed->count; i++) shares += c->meanings[i].towers != NULL;
  certify_say(c, CLAIM_PARTIAL,
              "%d shares of reductions, read by what joins them and what is linear in them alone", shares);
}

/* ---- devices ---- */

static void check_copy(struct certify *c, const struct node *n) {
  const struct device *devices = c->placed->config.target.devices;
  int from = n->inputs[0]->device, ndevices = c->placed->config.target.ndevices;
  if (from < 0 || from >= ndevices) return;
  bool shared = devices[from].memory == devices[n->device].memory, alias = node_int_or(n, ATTR_alias, 0) != 0;
  if (from == n->device) certify_breach(c, CLAIM_DEVICES, n, "the copy stays on its device");
  if (alias && !shared)
    certify_breach(c, CLAIM_DEVICES, n, "%s and %s share no memory: the copy is no alias", devices[from].text,
                   devices[n->device].text);
  if (!alias && shared)
    certify_breach(c, CLAIM_DEVICES, n, "%s and %s share their memory: the copy is an alias",
                   devices[from].text, devices[n->device].text);
}

/* Whether two collectives are the parts of two devices in one. */
static bool together(const struct node *a, const struct node *b) {
  return is_collective(b) && a->ninputs == b->ninputs &&
         memcmp(a->inputs, b->inputs, sizeof *a->inputs * (size_t)a->ninputs) == 0;
}

/* One operand per device, and a live part on each of these devices, once. */
static void check_collective(struct certify *c, const struct users *users, const struct node *n) {
  const struct graph *g = c->placed;
  uint32_t first = users->first[n->inputs[0]->id], end = users->first[n->inputs[0]->id + 1];
  for (int i = 0; i < n->ninputs; i++) {
    int parts = 0, device = n->inputs[i]->device;
    if (device < 0 || device >= g->config.target.ndevices) continue;
    for (int k = 0; k < i; k++)
      if (n->inputs[k]->device == device)
        certify_breach(c, CLAIM_DEVICES, n, "%s and %s lie on one device", n->inputs[k]->name,
                       n->inputs[i]->name);
    for (uint32_t k = first; k < end; k++) {
      const struct node *u = users->users[k];
      parts += c->live[u->id] && u->device == device && together(n, u);
    }
    if (parts != 1)
      certify_breach(c, CLAIM_DEVICES, n, "%s takes part in it %d times, not once",
                     g->config.target.devices[device].text, parts);
  }
  if (collective_rank(n) < 0)
    certify_breach(c, CLAIM_DEVICES, n, "it reads nothing of its own device, and cannot take part");
}

static void check_devices(struct certify *c) {
  const struct graph *g = c->placed;
  int ndevices = g->config.target.ndevices, copies = 0, aliases = 0, collectives = 0;
  if (g->stage != STAGE_PLACED || !collectives_lowered(g)) return;
  struct users users = graph_users(c->arena, g);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (!c->live[i]) continue;
    if (n->device < 0 || n->device >= ndevices) {
      certify_breach(c, CLAIM_DEVICES, n, "there is no device %d", n->device);
      continue;
    }
    if (n->op == OP_assign && n->inputs[0]->device != n->device)
      certify_breach(c, CLAIM_DEVICES, n, "the update is not where its variable is");
    if (is_collective(n)) {
      collectives += collective_rank(n) == 0;
      check_collective(c, &users, n);
      continue;
    }
    for (int k = 0; k < n->ninputs && n->op != OP_copy; k++)
      if (n->inputs[k]->device != n->device)
        certify_breach(c, CLAIM_DEVICES, n, "%s is on another device, and there is no copy",
                       n->inputs[k]->name);
    if (n->op != OP_copy) continue;
    copies++;
    aliases += node_int_or(n, ATTR_alias, 0) != 0;
    check_copy(c, n);
  }
  const char *sums = collectives == 0 ? ""
                                      : arena_printf(c->arena, "; %d sum%s made together", collectives,
                                                     collectives == 1 ? " is" : "s are");
  certify_say(c, CLAIM_DEVICES, "%d; %d values cross by copies, %d of them without moving%s", ndevices,
              copies, aliases, sums);
}

/* Every node reads nodes before it: in the order of the graph no device ever waits for what comes later. */
static void check_order(struct certify *c) {
  int meetings = 0;
  for (uint32_t i = 0; i < c->placed->count; i++) {
    const struct node *n = c->placed->nodes[i];
    for (int k = 0; k < n->ninputs; k++)
      if (n->inputs[k]->id >= i) certify_breach(c, CLAIM_ORDER, n, "%s comes after it", n->inputs[k]->name);
    meetings += c->live[i] && (n->op == OP_copy || (is_collective(n) && collective_rank(n) == 0));
  }
  certify_say(c, CLAIM_ORDER, "%d meeting%s, in the one order of the graph", meetings,
              meetings == 1 ? "" : "s");
}

/* What else is read as a tower's number must be one. */
static void check_numbers_of_towers(struct certify *c) {
  for (uint32_t i = 0; i < c->placed->count; i++) {
    const struct node *n = c->placed->nodes[i];
    bool belongs = n->dist != DIST_MIRRORED && n->dist != DIST_NONE;
    if (c->live[i] && (n->tower >= c->towers || (belongs && n->tower < 0) || n->tower < -1))
      certify_breach(c, CLAIM_TOWERS, n, "there is no tower %d among %d", n->tower, c->towers);
  }
}

/* ---- all of it ---- */

static void prepare(struct certify *c) {
  const struct config *config = &c->placed->config;
  c->towers = config->towers > 0 ? config->towers : 1;
  c->words = (c->towers + 63) / 64;
  c->batch = config->batch;
  c->live = graph_live(c->arena, c->placed);
  c->blamed = arena_new_array(c->arena, c->placed->count + 1, uint8_t);
  c->single = arena_array(c->arena, (size_t)c->towers * (size_t)c->words, sizeof *c->single);
  c->all = arena_new_array(c->arena, (size_t)c->words, uint64_t);
  for (int t = 0; t < c->towers; t++) {
    c->single[t * c->words + t / 64] |= UINT64_C(1) << t % 64;
    c->all[t / 64] |= UINT64_C(1) << t % 64;
  }
}

static void compare(struct certify *c) {
  struct diags *silent = arena_new(c->arena, struct diags);
  diags_init(silent, c->arena);
  c->ref = graph_create(c->arena, "reference", silent);
  c->ref->at.scope = "\x1f"; /* no name of a model */
  certify_identities(c);
  certify_views(c);
  if (!certify_source(c)) return;
  if (!certify_parts(c)) return;
  certify_placed(c);
  check_results(c);
  certify_variables(c);
  count_towers(c);
  say_sums(c);
  say_shares(c);
}

static void skip(struct certify *c, enum claim_id claim) {
  c->out->claims[claim] = (struct claim){.text = "not checked: that needs the source"};
}

/* What depends on a breach has not been compared: of its claims nothing is proved. */
static void leave_open(struct certificate *out) {
  for (int i = 0; i < CLAIM_COUNT; i++) {
    struct claim *claim = &out->claims[i];
    if (i == CLAIM_BATCH || i == CLAIM_DEVICES || i == CLAIM_ORDER || !claim->checked || claim->breaches)
      continue;
    *claim = (struct claim){.text = "not proved: it may depend on what is wrong"};
  }
}

bool graph_certify(struct arena *a, const struct graph *source, const struct graph *placed, const char *after,
                   struct diags *d, struct certificate *out) {
  struct certificate unread;
  if (!out) out = &unread;
  *out = (struct certificate){0};
  struct arena_guard guard;
  struct certify c = {.arena = arena_create_guarded(&guard),
                      .out_arena = a,
                      .source = source,
                      .placed = placed,
                      .after = after,
                      .diags = d,
                      .out = out};
  prepare(&c);
  if (source) c.source = graph_fix_whole(c.arena, (struct graph *)(uintptr_t)source, c.batch);
  check_order(&c);
  check_numbers_of_towers(&c);

  if (!out->breaches) {
    check_batch(&c);
    if (source) {
      compare(&c);
    } else {
      certify_variables(&c);
      static const enum claim_id need[] = {CLAIM_TOWERS, CLAIM_GRADIENTS, CLAIM_SCALE, CLAIM_RESULTS,
                                           CLAIM_PARTIAL};
      for (size_t i = 0; i < sizeof need / sizeof *need; i++) skip(&c, need[i]);
    }
    check_devices(&c);
  }
  if (out->breaches) leave_open(out);
  arena_destroy_guarded(c.arena, &guard);
  return out->breaches == 0;
}
