/* SPDX-License-Identifier: Apache-2.0 */
/* Variables: which copies there must be, that each is what the source declares, and that each gets the source's update,
 * from one writer. A copy that nobody reads counts like any other: it is what the next graph of the model reads. */
#include "ir/certify/breach.h"
#include "ir/certify/placed.h"
#include "ir/certify/reference.h"
#include "ir/graph/build.h"
#include "ir/ops/op_id.h"
#include "ir/strategies.h"

#include <string.h>

static const char *update_of(struct certify *c, const struct node *assign) {
  return arena_printf(c->arena, "the new value of %s", assign->inputs[0]->name);
}

/* Who writes each variable, by its id; a second writer is a breach. */
static const struct node **writers_of(struct certify *c, const struct graph *g, const uint8_t *live) {
  const struct node **writer = arena_new_array(c->arena, g->count + 1, const struct node *);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (n->op != OP_assign || !live[i]) continue;
    const struct node **w = &writer[n->inputs[0]->id];
    if (*w) certify_breach(c, CLAIM_VARIABLES, n, "%s writes %s too", (*w)->name, n->inputs[0]->name);
    *w = n;
  }
  return writer;
}

/* ---- which copies there must be ---- */

struct copies {
  const struct node **wants;  /* by source id: its update, or NULL */
  const struct node **writes; /* by placed id */
  int *place;                 /* by source id of an updated variable: its row in `on` */
  uint64_t *on;               /* the devices that have a copy; or, joined on read, the towers */
  int words;                  /* of a row */
  uint8_t *seen;              /* by source id */
  int all, distinct, written;
};

/* What the copies of s, or one tower's, are in the source at node n: s itself or its update. NULL: a tower without
 * rows writes nothing. */
static struct node *value_for(const struct certify *c, const struct node *s, const struct node *n,
                              int tower) {
  if (!certify_has_tower_copies(c, s)) return c->global[n->id];
  return tower < 0 || tower >= c->towers ? NULL : c->rows[(size_t)n->id * (size_t)c->towers + (size_t)tower];
}

static bool changes(const struct certify *c, const struct node *s, const struct node *update, int tower) {
  const struct node *value = value_for(c, s, update, tower);
  return value && value != value_for(c, s, s, tower);
}

static void begin(struct certify *c, struct copies *k) {
  int updated = 0, bits = c->placed->config.target.ndevices;
  k->words = (bits > c->towers ? bits : c->towers) / 64 + 1;
  k->place = arena_new_array(c->arena, c->source->count + 1, int);
  for (uint32_t i = 0; i < c->source->count; i++)
    if (k->wants[i]) k->place[i] = updated++;
  k->seen = arena_new_array(c->arena, c->source->count + 1, uint8_t);
  k->on = arena_array(c->arena, ((size_t)updated + 1) * (size_t)k->words, sizeof *k->on);
}

static void note(const struct certify *c, struct copies *k, const struct node *v, const struct node *s) {
  int at = certify_has_tower_copies(c, s) ? v->tower : v->device;
  if (k->wants[s->id] && at >= 0) k->on[k->place[s->id] * k->words + at / 64] |= UINT64_C(1) << at % 64;
}

static bool mirrors(const struct certify *c) {
  const struct strategy_info *s = strategy_find(c->placed->config.strategy);
  return c->placed->stage == STAGE_PLACED && s && s->storage == STORAGE_EACH;
}

/* Each device with towers where variables are mirrored, and each tower where they are joined on read. */
static void check_there(struct certify *c, const struct copies *k, const struct node *s) {
  const struct target *t = &c->placed->config.target;
  const struct node *want = k->wants[s->id];
  const uint64_t *on = &k->on[k->place[s->id] * k->words];
  for (int i = 0; certify_has_tower_copies(c, s) && i < c->towers; i++)
    if (!certify_has(on, i) && changes(c, s, want, i))
      certify_breach(c, CLAIM_VARIABLES, NULL, "tower %d has no copy of %s", i, s->name);
  if (certify_has_tower_copies(c, s) || !changes(c, s, want, -1)) return;
  if (!k->seen[s->id]) {
    certify_breach(c, CLAIM_VARIABLES, NULL, "%s of the source is nowhere", s->name);
    return;
  }
  for (int i = 0, workers = 0; mirrors(c) && i < t->ndevices && workers < c->towers; i++) {
    if (!device_carries_towers(&t->devices[i])) continue;
    workers++;
    if (!certify_has(on, i))
      certify_breach(c, CLAIM_VARIABLES, NULL, "%s has no copy of %s", t->devices[i].text, s->name);
  }
}

/* ---- each copy ---- */

static bool same_attr(const struct attr *a, const struct attr *b) {
  return a && b ? attr_equal(a, b) : a == b;
}

/* What the source has by this name, or as a part, says of its origin what the source says. What is found by its origin
 * says that it is of s. */
static bool tells_origin(const struct node *v, const struct node *s) {
  const struct attr *of = node_attr(v, ATTR_of), *part = node_attr(v, ATTR_part);
  if (strcmp(v->name, s->name) != 0 && !node_attr(s, ATTR_of)) return of != NULL;
  return same_attr(of, node_attr(s, ATTR_of)) && same_attr(part, node_attr(s, ATTR_part));
}

/* All graphs of a model share variables by name, so a copy or a part is called as it is everywhere: s's name with
 * "/part_1", "tower_1/" or "/replica_1" put in. */
static bool is_called_so(const struct certify *c, const struct node *v, const struct node *s) {
  if (strcmp(v->name, s->name) == 0) return true;
  const char *mark = certify_is_part(c, v)
                         ? arena_printf(c->arena, "/part_%lld", (long long)node_int(v, ATTR_part))
                     : is_on_read(s) ? arena_printf(c->arena, "tower_%d/", v->tower)
                                     : arena_printf(c->arena, "/replica_%d", v->replica);
  size_t size = strlen(mark);
  for (const char *at = v->name; (at = strstr(at, mark)); at++) {
    size_t before = (size_t)(at - v->name);
    if (strncmp(s->name, v->name, before) == 0 && strcmp(s->name + before, at + size) == 0) return true;
  }
  return false;
}

/* What the world is told of a variable: whether it is trained, how its copies become one, and whose copy it is. */
static bool declared_alike(const struct node *v, const struct node *s) {
  int nv = 0, ns = 0;
  for (; nv < v->nattrs && v->attrs[nv].key < ATTR_of; nv++)
    if (!same_attr(&v->attrs[nv], node_attr(s, v->attrs[nv].key))) return false;
  while (ns < s->nattrs && s->attrs[ns].key < ATTR_of) ns++;
  return nv == ns && tells_origin(v, s);
}

static void check_copy(struct certify *c, struct copies *k, const struct node *v, const struct node *s) {
  const struct node *want = k->wants[s->id], *w = k->writes[v->id];
  bool written = want && changes(c, s, want, v->tower);
  if (!declared_alike(v, s))
    certify_breach(c, CLAIM_VARIABLES, v, "the source declares %s otherwise", s->name);
  if (!is_called_so(c, v, s))
    certify_breach(c, CLAIM_VARIABLES, v, "no copy or part of %s is called so", s->name);
  if (!c->live[v->id] && !w && !written) return; /* not of this graph */
  k->all++;
  k->distinct += !k->seen[s->id];
  k->seen[s->id] = 1;
  if (written && !w)
    certify_breach(c, CLAIM_VARIABLES, v, "nothing writes this copy, and the source updates %s", s->name);
  if (!want && w) certify_breach(c, CLAIM_VARIABLES, w, "the source does not update %s", s->name);
  if (!want || !w) return;
  const struct meaning *m = &c->meanings[w->id];
  struct node *value = value_for(c, s, want, v->tower);
  int64_t first, rows = certify_part_rows(c, v, &first);
  if (rows >= 0 && value) value = certify_rows_of(c, v, value, first, rows);
  k->written++;
  if (m->of && (m->of != value || m->towers)) certify_blame(c, CLAIM_VARIABLES, w, value, update_of(c, w));
}

static void check_copies(struct certify *c, struct copies *k) {
  begin(c, k);
  certify_work(c, (uint64_t)c->placed->count + c->source->count);
  for (uint32_t i = 0; i < c->placed->count; i++) {
    const struct node *v = c->placed->nodes[i];
    const struct node *s = v->op == OP_variable ? certify_variable(c, v) : NULL;
    if (!s) continue; /* where it is read, that has been said */
    note(c, k, v, s);
    check_copy(c, k, v, s);
  }
  for (uint32_t i = 0; i < c->source->count; i++)
    if (k->wants[i]) check_there(c, k, c->source->nodes[i]);
  certify_say(c, CLAIM_VARIABLES,
              "%d %s of %d variable%s, %d of them updated, by one writer each and as the source does", k->all,
              k->all == 1 ? "copy" : "copies", k->distinct, k->distinct == 1 ? "" : "s", k->written);
}

void certify_variables(struct certify *c) {
  struct copies k = {.writes = writers_of(c, c->placed, c->live)};
  if (c->source) {
    k.wants = writers_of(c, c->source, graph_live(c->arena, c->source));
    check_copies(c, &k);
  } else
    certify_say(c, CLAIM_VARIABLES,
                "one writer at most for each copy of a variable; no source to compare updates with");
}
