/* SPDX-License-Identifier: Apache-2.0 */
/* Why a node is where it is: who asked for what, the rule that won, what it costs, what it has to do with others. */
#include "ir/ops/op_id.h"
#include "session/compile.h"
#include "session/facts.h"
#include "session/model.h"
#include "session/settle.h"
#include "session/state/settlement.h"

#include "ir/graph/text.h"
#include "ir/ops/op.h"
#include "passes/strategy/strategy.h"

#include <string.h>

struct explanation {
  struct dgc_session *s;
  struct arena *arena;
  const struct graph *g;
  struct users users;
};

static const char *device_text(const struct explanation *e, const struct node *n) {
  return e->g->config.target.devices[n->device].text;
}

static bool is_alias(const struct node *copy) { return node_int_or(copy, ATTR_alias, 0) != 0; }

/* Bytes that a copy moves. */
static int64_t moved(const struct node *copy) { return is_alias(copy) ? 0 : type_bytes(&copy->type); }

/* A line with a node's type and place. */
static struct fact *tell_node(const struct explanation *e, struct fact *in, const char *lead,
                              const struct node *n) {
  struct str s = str_make(e->arena);
  str_printf(&s, "%s%s : %s", lead, n->name, type_text(e->arena, &n->type));
  if (n->tower >= 0) str_printf(&s, " tower %d", n->tower);
  str_printf(&s, " on %s", device_text(e, n));
  if (n->op == OP_copy) str_printf(&s, ", %lld bytes%s", (long long)moved(n), is_alias(n) ? " (alias)" : "");
  struct fact *f = fact_object(e->arena, in, NULL, s.data);
  fact_text(e->arena, f, "name", n->name);
  fact_text(e->arena, f, "op", op_of(n)->name);
  fact_text(e->arena, f, "device", device_text(e, n));
  fact_number(e->arena, f, "bytes", n->op == OP_copy ? moved(n) : type_bytes(&n->type));
  return f;
}

/* ---- where it comes from ---- */

static void tell_line(const struct explanation *e, struct fact *in, struct loc loc, const char *function) {
  int line, column;
  source_position(loc.source, loc.begin, &line, &column);
  const char *begin = loc.source->text + loc.begin, *end = begin;
  while (begin > loc.source->text && begin[-1] != '\n') begin--;
  while (*begin == ' ' || *begin == '\t') begin++;
  while (end < loc.source->text + loc.source->len && *end != '\n') end++;
  const char *text = arena_strndup(e->arena, begin, (size_t)(end - begin));
  const char *where = arena_printf(e->arena, "%s:%d: %s", loc.source->name, line, text);
  if (function) where = arena_printf(e->arena, "in %s, %s", function, where);
  struct fact *f = fact_object(e->arena, in, NULL, where);
  fact_text(e->arena, f, "function", function);
  fact_text(e->arena, f, "file", loc.source->name);
  fact_number(e->arena, f, "line", line);
  fact_text(e->arena, f, "text", text);
}

static void tell_calls(const struct explanation *e, struct fact *in, const struct trail *t, struct loc loc) {
  if (!t) {
    if (loc.source) tell_line(e, in, loc, NULL);
    return;
  }
  tell_calls(e, in, t->outer, t->call);
  if (loc.source) tell_line(e, in, loc, t->callee);
}

/* ---- who asked ---- */

/* Where the model's own strategy clause says this, unless an option has replaced it. */
static const struct loc *in_clause(const struct explanation *e, const char *what) {
  const struct model_strategy *m = &e->s->model->strategy;
  const char *strategy = e->s->options.strategy;
  if (!m->name || (strategy && strcmp(strategy, m->name) != 0)) return NULL;
  for (int i = 0; i < m->nsettings; i++)
    if (strcmp(m->settings[i].name, what) == 0) return &m->settings[i].loc;
  return strcmp(what, "strategy") == 0 ? &m->loc : NULL;
}

static const char *default_reason(const struct explanation *e, const char *what) {
  const struct dgc_session *s = e->s;
  const struct config *c = &e->g->config;
  if (strcmp(what, "devices") == 0 && s->options.cluster) return "the tasks of the cluster";
  if (strcmp(what, "strategy") == 0) {
    switch (strategy_find(c->strategy)->default_for) {
    case DEFAULT_FOR_ONE_DEVICE: return "there is one device";
    case DEFAULT_FOR_SERVERS: return "there is a job ps";
    case DEFAULT_FOR_SEVERAL_TASKS: return "the devices belong to several tasks";
    case DEFAULT_FOR_DEVICES:
      return arena_printf(e->arena, "there are %d devices", s->settlement->target.ndevices);
    case DEFAULT_FOR_NOTHING: return NULL;
    }
  }
  const struct strategy_info *strategy = strategy_find(c->strategy);
  if (strcmp(what, "towers") == 0)
    return strategy && strategy->reach == REACH_DEVICE ? "one device has one" : "one per device";
  if (strcmp(what, "batch") == 0 && c->batch_per_replica) return "so many rows for each tower";
  if (strcmp(what, "batch") == 0) return s->position.batch ? "as in the checkpoint" : NULL;
  if (strcmp(what, "parameter_device") == 0) return "the first worker's /cpu:0";
  return NULL;
}

/* "--towers", "the model, digits.dsl:3" or "default: one per device" */
static const char *requested_by(const struct explanation *e, const char *what, const char *flag, bool given) {
  if (given && strcmp(flag, "batch-per-replica") == 0) return "--batch";
  if (given) return arena_printf(e->arena, "--%s", flag);
  const struct loc *loc = in_clause(e, what);
  if (loc) {
    int line, column;
    source_position(loc->source, loc->begin, &line, &column);
    const char *slash = strrchr(loc->source->name, '/');
    return arena_printf(e->arena, "the model, %s:%d", slash ? slash + 1 : loc->source->name, line);
  }
  const char *reason = default_reason(e, what);
  return reason ? arena_printf(e->arena, "default: %s", reason) : "default";
}

static void tell_request(const struct explanation *e, struct fact *in, const char *what, const char *value,
                         bool given) {
  char flag[64];
  size_t n = 0;
  for (; what[n] && n + 1 < sizeof flag; n++) flag[n] = what[n] == '_' ? '-' : what[n];
  flag[n] = 0;
  const char *by = requested_by(e, what, flag, given);
  struct fact *f = fact_object(e->arena, in, NULL, arena_printf(e->arena, "%s %s (%s)", flag, value, by));
  fact_text(e->arena, f, "what", what);
  fact_text(e->arena, f, "value", value);
  fact_text(e->arena, f, "by", by);
}

static const char *device_list(const struct explanation *e) {
  const struct target *t = &e->g->config.target;
  struct str s = str_make(e->arena);
  for (int i = 0; i < t->ndevices; i++) str_printf(&s, "%s%s", i ? " " : "", t->devices[i].text);
  return s.data;
}

/* The home of a variable, or of the one that an optimizer keeps this for. */
static void tell_home(const struct explanation *e, struct fact *in, const struct node *n) {
  const struct config *c = &e->g->config;
  const char *name = n->op == OP_variable ? home_name(e->arena, n) : "";
  const struct home *home = NULL;
  for (int i = 0; i < c->nhomes && !home; i++)
    if (strcmp(c->homes[i].variable, name) == 0) home = &c->homes[i];
  if (!home) return;
  const char *by = c->balance ? "the device with the fewest bytes so far" : "devices in turn";
  struct fact *f = fact_object(
      e->arena, in, NULL, arena_printf(e->arena, "home of %s %s (%s)", home->variable, home->device, by));
  fact_text(e->arena, f, "what", "home");
  fact_text(e->arena, f, "variable", home->variable);
  fact_text(e->arena, f, "value", home->device);
  fact_text(e->arena, f, "by", by);
}

/* Of two fields that one option sets, each says what it says. */
static void tell_number(const struct explanation *e, struct fact *in, const char *what, int64_t value,
                        bool given) {
  const struct options *o = &e->s->options;
  if (strcmp(what, "staleness") == 0) return; /* told with the flag */
  if (strcmp(what, "batch") == 0 && e->g->config.batch_per_replica) given = false;
  if (strcmp(what, "batch_per_replica") == 0) given = o->batch != 0;
  if (value) tell_request(e, in, what, arena_printf(e->arena, "%lld", (long long)value), given);
}

static void tell_flag(const struct explanation *e, struct fact *in, const char *what, bool value,
                      bool given) {
  if (!value) return;
  bool asynchronous = strcmp(what, "asynchronous") == 0;
  const char *text = asynchronous ? arena_printf(e->arena, "%d", e->g->config.staleness) : "true";
  tell_request(e, in, asynchronous ? "staleness" : what, text, given);
}

/* What the header says, and whether an option, the model or a default said so. */
static void tell_requests(const struct explanation *e, struct fact *root, const struct node *n) {
  const struct options *o = &e->s->options;
  const struct config *c = &e->g->config;
  struct fact *all = fact_list(e->arena, root, "asked", "asked for");
  if (n->want) {
    const char *origin = node_origin(e->arena, n);
    const char *by = arena_printf(e->arena, "the model%s%s", origin ? ", " : "", origin ? origin : "");
    struct fact *f = fact_object(e->arena, all, NULL, arena_printf(e->arena, "on \"%s\" (%s)", n->want, by));
    fact_text(e->arena, f, "what", "on");
    fact_text(e->arena, f, "value", n->want);
    fact_text(e->arena, f, "by", by);
  }
  tell_request(e, all, "devices", device_list(e), o->devices != NULL);
#define NUMBER(type, name, most) tell_number(e, all, #name, c->name, o->name != 0);
#define WORD(name) \
  if (c->name) tell_request(e, all, #name, c->name, o->name != NULL);
#define TEXT(name) WORD(name)
#define FLAG(name) tell_flag(e, all, #name, c->name, o->name);
#include "ir/graph/config.def"
  tell_home(e, all, n);
}

/* ---- the rule ---- */

static void tell_rule(const struct explanation *e, struct fact *root, const struct node *n) {
  const char *over = n->why.over, *rule = n->why.rule;
  const char *line = over ? arena_printf(e->arena, "rule: %s, over %s", rule, over)
                          : arena_printf(e->arena, "rule: %s", rule);
  struct fact *f = fact_object(e->arena, root, "rule", line);
  fact_text(e->arena, f, "won", rule);
  if (over) fact_text(e->arena, f, "over", over);
}

/* ---- what it costs ---- */

static void tell_cost(const struct explanation *e, struct fact *root, const struct node *n) {
  int64_t flops = node_flops(n), bytes = n->op == OP_copy && is_alias(n) ? 0 : type_bytes(&n->type), read = 0;
  for (int i = 0; i < n->ninputs; i++) read += type_bytes(&n->inputs[i]->type);
  struct fact *f =
      fact_object(e->arena, root, "cost",
                  arena_printf(e->arena, "costs %lld flops, %lld bytes of its own, %lld bytes read",
                               (long long)flops, (long long)bytes, (long long)read));
  fact_number(e->arena, f, "flops", flops);
  fact_number(e->arena, f, "bytes", bytes);
  fact_number(e->arena, f, "bytes_read", read);
}

/* The copies of n to other devices, each with those who read it there. */
static void tell_copies(const struct explanation *e, struct fact *root, const struct node *n) {
  struct fact *all = fact_list(e->arena, root, "copies", "copies to other devices");
  for (uint32_t i = e->users.first[n->id]; i < e->users.first[n->id + 1]; i++) {
    const struct node *c = e->users.users[i];
    if (c->op != OP_copy) continue;
    struct fact *f = tell_node(e, all, "", c);
    fact_flag(e->arena, f, "alias", is_alias(c));
    struct fact *readers = fact_list(e->arena, f, "readers", "for");
    for (uint32_t k = e->users.first[c->id]; k < e->users.first[c->id + 1]; k++)
      tell_node(e, readers, "", e->users.users[k]);
  }
}

/* ---- sums and variables ---- */

/* x, or what it hands on without computing anything. */
static const struct node *behind(const struct node *x) {
  while (x->op == OP_copy || x->op == OP_identity || x->op == OP_reshape) x = x->inputs[0];
  return x;
}

static bool is_partial(const struct node *n) {
  return n->dist == DIST_PARTIAL || n->dist == DIST_PARTIAL_MAX || n->dist == DIST_PARTIAL_MIN;
}

/* Joins what different towers have. */
static bool is_sum(const struct node *n) {
  if (n->ninputs < 2) return false;
  if (is_collective(n)) return true;
  const struct node *a = behind(n->inputs[0]), *b = behind(n->inputs[n->ninputs - 1]);
  if (n->op == OP_concat) return is_sum(a) && is_sum(b);
  return n->ninputs == 2 && is_partial(a) && is_partial(b) && a->tower != b->tower;
}

static void tell_tree(const struct explanation *e, struct fact *in, const struct node *x) {
  const struct node *n = behind(x);
  struct fact *f = tell_node(e, in, "", n);
  if (x->op == OP_copy) {
    fact_text(e->arena, f, "by", x->name);
    fact_number(e->arena, f, "moved", moved(x));
    f->line = arena_printf(e->arena, "%s, by %s: %lld bytes%s", f->line, x->name, (long long)moved(x),
                           is_alias(x) ? " (alias)" : "");
  }
  if (!is_sum(n)) return;
  struct fact *of = fact_list(e->arena, f, "of", NULL);
  for (int i = 0; i < n->ninputs; i++) tell_tree(e, of, n->inputs[i]);
}

/* The variable that a mirrored one is a replica of, or that itself. */
static const char *primary_of(const struct node *v) {
  struct variable_identity identity = variable_identity(v);
  return identity.role == VARIABLE_REPLICA ? identity.of : v->name;
}

static void tell_variable(const struct explanation *e, struct fact *root, const struct node *n) {
  const char *primary = primary_of(n);
  struct fact *f = fact_object(e->arena, root, "variable", NULL);
  fact_text(e->arena, f, "primary", primary);
  struct fact *copies = fact_list(e->arena, f, "copies", "kept as");
  struct fact *updates = fact_list(e->arena, f, "updates", "updated by");
  for (uint32_t i = 0; i < e->g->count; i++) {
    const struct node *v = e->g->nodes[i];
    if (v->op == OP_variable && strcmp(primary_of(v), primary) == 0) tell_node(e, copies, "", v);
    if (v->op == OP_assign && v->inputs[0] == n) tell_node(e, updates, "", v);
  }
}

/* ---- all of it ---- */

static const char *line_of(const struct explanation *e, const struct node *n) {
  struct str s = str_make(e->arena);
  node_print(&s, e->g, n);
  return s.data;
}

static struct fact *tell(const struct explanation *e, const struct node *n) {
  struct arena *a = e->arena;
  struct fact *root = fact_root(a);
  root->line = line_of(e, n);
  fact_text(a, root, "name", n->name);
  fact_text(a, root, "op", op_of(n)->name);
  fact_text(a, root, "type", type_text(a, &n->type));
  if (n->dist != DIST_NONE) fact_text(a, root, "dist", dist_name(n->dist));
  if (n->tower >= 0) fact_number(a, root, "tower", n->tower);
  if (n->replica >= 0) fact_number(a, root, "replica", n->replica);
  fact_text(a, root, "device", device_text(e, n));
  tell_rule(e, root, n);
  tell_calls(e, fact_list(a, root, "origin", "from"), n->trail, n->loc);
  tell_requests(e, root, n);
  tell_cost(e, root, n);
  if (is_sum(behind(n))) tell_tree(e, fact_list(a, root, "sum", "sum of the towers"), n);
  if (n->op == OP_variable) tell_variable(e, root, n);
  tell_copies(e, root, n);
  struct fact *inputs = fact_list(a, root, "inputs", "reads");
  for (int i = 0; i < n->ninputs; i++) tell_node(e, inputs, "<- ", n->inputs[i]);
  struct fact *users = fact_list(a, root, "users", "read by");
  for (uint32_t i = e->users.first[n->id]; i < e->users.first[n->id + 1]; i++)
    tell_node(e, users, "-> ", e->users.users[i]);
  return root;
}

static enum dgc_status no_such_node(struct dgc_session *s, const struct graph *g, const char *name) {
  const char **names = arena_new_array(s->call, g->count, const char *);
  for (uint32_t i = 0; i < g->count; i++) names[i] = g->nodes[i]->name;
  session_fail(s, DGC_USAGE, "graph %s has no node '%s'", g->name, name);
  diag_closest(&s->diags, LOC_NONE, name, names, g->count, NULL);
  if (!str_closest(name, names, g->count))
    diag_help(&s->diags, LOC_NONE, "dgc compile --emit placed prints all nodes");
  return DGC_USAGE;
}

static enum dgc_status explain(struct dgc_session *s, const char *entry, const char *name, bool json,
                               const char **text) {
  struct str out = session_text(s);
  *text = out.data;
  enum entry_kind kind;
  enum dgc_status status = entry_find(s, entry, &kind);
  if (!status) status = session_settle(s);
  if (status) return status;
  struct graph *g = session_graph(s, s->call, kind, 0, "copies");
  if (!g) return session_blame(s);
  const struct node *n = graph_find(g, name);
  if (!n) return no_such_node(s, g, name);
  struct explanation e = {s, s->call, g, graph_users(s->call, g)};
  (json ? facts_print_json : facts_print)(&out, tell(&e, n));
  *text = out.data;
  return DGC_OK;
}

enum dgc_status dgc_explain(struct dgc_session *s, const char *entry, const char *node, bool json,
                            const char **text) {
  CALL(s, explain(s, entry, node, json, text));
}
