/* SPDX-License-Identifier: Apache-2.0 */
/* Homes: which device holds which variable, and into how many parts large variables are cut.
 *
 * Variables take the storing devices in turn, one counter for all of them; or, balanced by size, the largest goes
 * first to the device that holds least. State of an optimizer (a variable with `slot`) is where its variable is and has
 * no turn. Under the strategies that let them, variables go where the model's `on` says. */
#include "ir/ops/op_id.h"
#include "passes/strategy/strategy.h"

#include "ir/graph/verify.h"
#include "ir/ops/op.h"

#include <stdlib.h>
#include <string.h>

/* What a variable is cut into at the least, unless the configuration says otherwise. */
#define MIN_PART_BYTES (INT64_C(256) << 10)

static const char part_mark[] = "/part_";

const char *part_name(struct arena *a, const char *variable, const char *name, int part) {
  size_t len = strlen(variable);
  bool begins = strncmp(name, variable, len) == 0 && (!name[len] || name[len] == '.' || name[len] == '/');
  if (!begins) return arena_printf(a, "%s%s%d", name, part_mark, part);
  return arena_printf(a, "%s%s%d%s", variable, part_mark, part, name + len);
}

const char *home_name(struct arena *a, const struct node *variable) {
  const char *of = node_string_or(variable, ATTR_slot, NULL);
  if (!of) return variable->name;
  return node_attr(variable, ATTR_part) ? part_name(a, of, of, (int)node_int(variable, ATTR_part)) : of;
}

/* The variable or part of g for which an optimizer keeps this one; NULL: it is none such, or g has not got it. */
static const struct node *slot_owner(struct arena *a, const struct graph *g, const struct node *variable) {
  if (!node_attr(variable, ATTR_slot)) return NULL;
  const struct node *n = graph_find(g, home_name(a, variable));
  return node_is(n, OP_variable) && !node_attr(n, ATTR_slot) ? n : NULL;
}

int strategy_parts(struct arena *a, const struct strategy *s, const struct config *c, const struct graph *g,
                   const struct node *variable) {
  if (is_on_read(variable)) return 1;
  if (s->info->storage != STORAGE_SERVERS || node_attr(variable, ATTR_part)) return 1;
  const struct node *owner = slot_owner(a, g, variable);
  if (owner) return shape_equal(&owner->type, &variable->type) ? strategy_parts(a, s, c, g, owner) : 1;
  if (variable->type.rank == 0) return 1;
  int64_t least = c->min_part_bytes ? c->min_part_bytes : MIN_PART_BYTES;
  int64_t parts = type_bytes(&variable->type) / least;
  if (parts > variable->type.dim[0]) parts = variable->type.dim[0];
  if (parts > s->nshards) parts = s->nshards;
  return parts > 1 ? (int)parts : 1;
}

/* A variable or part that takes a turn, with what its optimizer keeps for it. */
struct turn {
  const char *name;
  int64_t bytes;
  int order;
};

struct turns {
  struct turn *items;
  int count;
  struct map names; /* struct turn *, by name */
};

static int64_t part_bytes(const struct node *n, int part, int parts) {
  if (parts == 1) return type_bytes(&n->type);
  struct type t = n->type;
  t.dim[0] = tower_rows(part, parts, t.dim[0]);
  return type_bytes(&t);
}

static void add_turn(struct turns *t, const char *name, int64_t bytes) {
  struct turn *turn = &t->items[t->count];
  *turn = (struct turn){name, bytes, t->count};
  t->count++;
}

static bool takes_turn(struct arena *a, const struct graph *g, const struct node *n) {
  return n->op == OP_variable && !is_on_read(n) && !slot_owner(a, g, n);
}

static struct turns list_turns(struct arena *a, const struct graph *g, const struct config *c,
                               const struct strategy *s) {
  size_t room = 0;
  for (uint32_t i = 0; i < g->count; i++)
    if (takes_turn(a, g, g->nodes[i])) room += (size_t)strategy_parts(a, s, c, g, g->nodes[i]);
  struct turns t = {.items = arena_new_array(a, room, struct turn), .names = map_make(a)};
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (!takes_turn(a, g, n)) continue;
    int parts = strategy_parts(a, s, c, g, n);
    /* Where evaluation reads what an optimizer keeps, that stands for the variable, which is not there. */
    const char *name = home_name(a, n);
    for (int k = 0; k < parts; k++)
      add_turn(&t, parts > 1 ? part_name(a, name, name, k) : name, part_bytes(n, k, parts));
  }
  for (int i = 0; i < t.count; i++) map_put(&t.names, t.items[i].name, &t.items[i]);
  /* State counts where it will lie. */
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    const struct node *owner = n->op == OP_variable ? slot_owner(a, g, n) : NULL;
    if (!owner) continue;
    int parts = strategy_parts(a, s, c, g, n), cuts = strategy_parts(a, s, c, g, owner);
    for (int k = 0; k < parts; k++) {
      struct turn *turn =
          map_get(&t.names, cuts > 1 ? part_name(a, owner->name, owner->name, k) : owner->name);
      if (turn) turn->bytes += part_bytes(n, k, parts);
    }
  }
  return t;
}

static int larger_first(const void *a, const void *b) {
  const struct turn *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return x->order - y->order;
}

static int by_order(const void *a, const void *b) {
  return ((const struct turn *)a)->order - ((const struct turn *)b)->order;
}

/* The homes that the configuration names. */
static bool take_given(struct arena *a, const struct config *c, struct strategy *s, struct diags *d) {
  s->homes = map_make(a);
  for (int i = 0; i < c->nhomes; i++) {
    int device = 0;
    while (device < c->target.ndevices && strcmp(c->target.devices[device].text, c->homes[i].device) != 0)
      device++;
    if (device == c->target.ndevices) {
      diag_error(d, LOC_NONE, "variable %s has its home on %s, which is not among the devices",
                 c->homes[i].variable, c->homes[i].device);
      return false;
    }
    map_put(&s->homes, c->homes[i].variable, arena_copy(a, &device, sizeof device));
  }
  return true;
}

/* Index into s->shards. */
static int next_shard(const struct strategy *s, const int64_t *load, int turn, bool balance) {
  int best = turn % s->nshards;
  for (int k = 0; balance && k < s->nshards; k++)
    if (k == 0 || load[k] < load[best]) best = k;
  return best;
}

/* Variables go where their `on` says. The turn is taken all the same. */
static bool move_wanted(struct arena *a, const struct graph *g, const struct config *c, struct strategy *s,
                        const struct map *given, struct diags *d) {
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    bool soft;
    if (!variable_moves(s->info->name, n) || map_get(given, n->name)) continue;
    int device = wanted_device(a, c, n, strategy_home(s, n), &soft, d);
    if (device < 0) return false;
    map_put(&s->homes, n->name, arena_copy(a, &device, sizeof device));
  }
  return true;
}

/* What optimizers keep goes with its variable, or the part of it. */
static void follow(struct arena *a, const struct graph *g, struct strategy *s) {
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (n->op != OP_variable || !node_attr(n, ATTR_slot) || map_get(&s->homes, n->name)) continue;
    int *home = map_get(&s->homes, home_name(a, n));
    if (home) map_put(&s->homes, n->name, home);
  }
}

bool strategy_moves(struct arena *a, const struct graph *g, const struct config *c, struct strategy *s,
                    struct diags *d) {
  bool any = false;
  for (uint32_t i = 0; i < g->count; i++) any |= variable_moves(s->info->name, g->nodes[i]);
  if (!any) return true;
  s->homes = map_make(a);
  for (uint32_t i = 0; i < g->count; i++)
    if (takes_turn(a, g, g->nodes[i]))
      map_put(&s->homes, g->nodes[i]->name, arena_copy(a, &s->parameter, sizeof s->parameter));
  struct map given = map_make(a);
  if (!move_wanted(a, g, c, s, &given, d)) return false;
  follow(a, g, s);
  return true;
}

bool strategy_homes(struct arena *a, const struct graph *g, struct config *c, struct strategy *s,
                    struct diags *d) {
  if (!take_given(a, c, s, d)) return false;
  struct map given = map_make(a);
  for (int i = 0; i < c->nhomes; i++) map_put(&given, c->homes[i].variable, s);
  struct turns t = list_turns(a, g, c, s);
  int64_t *load = arena_new_array(a, (size_t)s->nshards, int64_t);
  if (c->balance) qsort(t.items, (size_t)t.count, sizeof *t.items, larger_first);
  int turn = c->nhomes;
  for (int i = 0; i < t.count; i++) {
    if (map_get(&s->homes, t.items[i].name)) continue;
    int shard = next_shard(s, load, turn++, c->balance);
    load[shard] += t.items[i].bytes;
    map_put(&s->homes, t.items[i].name, arena_copy(a, &s->shards[shard], sizeof(int)));
  }
  if (!move_wanted(a, g, c, s, &given, d)) return false;
  follow(a, g, s);
  if (c->nhomes || !t.count) return true;
  qsort(t.items, (size_t)t.count, sizeof *t.items, by_order);
  c->homes = arena_new_array(a, (size_t)t.count, struct home);
  for (int i = 0; i < t.count; i++) {
    const int *device = map_get(&s->homes, t.items[i].name);
    c->homes[c->nhomes++] = (struct home){arena_strdup(a, t.items[i].name), c->target.devices[*device].text};
  }
  return true;
}

int strategy_home(const struct strategy *s, const struct node *variable) {
  const int *home = s->homes.count ? map_get(&s->homes, variable->name) : NULL;
  return home ? *home : s->parameter >= 0 ? s->parameter : s->main;
}
