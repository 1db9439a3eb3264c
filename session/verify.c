/* SPDX-License-Identifier: Apache-2.0 */
/* dgc verify: the certificates of a model's placed graphs, or of placed graphs as text. */
#include "ir/ops/op_id.h"
#include "session/compile.h"
#include "session/opt.h"
#include "session/settle.h"

#include "ir/certify/certify.h"
#include "ir/graph/text.h"
#include "ir/ops/op.h"
#include "passes/pass.h"
#include "planner/planner.h"

#include <string.h>

/* The order of meetings is the plan's. A placed graph that stands in a text may lack what a plan needs: then there is
 * none. */
static void certify_order(struct dgc_session *s, const struct plan *p, struct certificate *c) {
  if (!p || !plan_certify(s->call, p, &s->diags, c) || plan_verify(p, &s->diags)) return;
  c->claims[CLAIM_ORDER].breaches++;
  c->breaches++;
}

/* Tasks that may be processes: they have CPUs only, which make no sums together. */
static bool may_be_processes(struct dgc_session *s, const struct graph *g) {
  const struct target *t = &g->config.target;
  int *of = arena_new_array(s->call, (size_t)t->ndevices, int);
  for (int i = 0; i < t->ndevices; i++)
    if (strcmp(t->devices[i].name.kind, "cpu") != 0) return false;
  for (uint32_t i = 0; i < g->count; i++)
    if (is_collective(g->nodes[i])) return false;
  return target_processes(t, of) > 1;
}

/* Of several tasks the plan is certified for one process and for as many as there are tasks. */
static void verify_plan(struct dgc_session *s, struct graph *g, struct certificate *c) {
  if (c->breaches || g->stage != STAGE_PLACED || !collectives_lowered(g)) return;
  struct graph *fused = pipeline_run(s->call, g, "fuse", NULL, NULL, &s->diags);
  if (!fused) return;
  certify_order(s, plan_build(s->call, fused, &s->diags), c);
  if (c->breaches || !may_be_processes(s, fused)) return;
  const char *alone = c->claims[CLAIM_ORDER].text;
  struct plan *p = plan_build_processes(s->call, fused, &s->diags);
  if (!p) return;
  certify_order(s, p, c);
  c->claims[CLAIM_ORDER].text = arena_printf(s->call, "%s; %s", alone, c->claims[CLAIM_ORDER].text);
}

static enum dgc_status report(struct dgc_session *s, const struct graph *g, const struct certificate *c,
                              struct str *out) {
  if (out->len) str_putc(out, '\n');
  str_printf(out, "%s: %d tower%s, %s, %d device%s, %lld rows\n", g->name, g->config.towers,
             g->config.towers == 1 ? "" : "s", g->config.strategy ? g->config.strategy : "no strategy",
             g->config.target.ndevices, g->config.target.ndevices == 1 ? "" : "s",
             (long long)g->config.batch);
  certificate_print(out, c);
  return c->breaches || s->diags.nerrors ? DGC_MISMATCH : DGC_OK;
}

static void verify_numbers(struct dgc_session *s, const struct graph *source, const struct graph *g,
                           struct certificate *c) {
  if (s->options.numeric && source)
    graph_certify_numbers(s->call, source, g, (uint64_t)s->options.seed, &s->diags, c);
}

/* From a graph of stage source on. */
static enum dgc_status verify_source(struct dgc_session *s, struct graph *g, struct str *out) {
  struct certificate c = {0};
  struct pipeline_options o = session_passes(s);
  struct graph *source = pipeline_run(s->call, g, NULL, "partition", &o, &s->diags);
  o.certificate = &c;
  struct graph *placed = source ? pipeline_run(s->call, source, NULL, "copies", &o, &s->diags) : NULL;
  if (!placed) return session_blame(s);
  graph_verify(placed, "copies", &s->diags);
  verify_numbers(s, source, placed, &c);
  verify_plan(s, placed, &c);
  return report(s, placed, &c, out);
}

/* ---- models ---- */

static enum dgc_status verify_entry(struct dgc_session *s, enum entry_kind kind, struct str *out) {
  return verify_source(s, session_source(s, s->call, kind, 0), out);
}

static enum dgc_status verify_model(struct dgc_session *s, const struct source *text, const char *entry,
                                    struct str *out) {
  enum dgc_status status = session_load(s, text);
  if (!status) status = session_settle(s);
  if (status) return status;
  enum entry_kind one;
  if (entry) return (status = entry_find(s, entry, &one)) ? status : verify_entry(s, one, out);
  for (int i = 0; i < ENTRY_COUNT; i++) {
    enum dgc_status this =
        entry_there(s, (enum entry_kind)i) ? verify_entry(s, (enum entry_kind)i, out) : DGC_OK;
    if (this && this != DGC_MISMATCH) return this;
    if (this) status = this;
  }
  return status;
}

/* ---- graph text ---- */

/* The first word of graph text is `graph`, which begins nothing in a model. */
static bool is_graph_text(const struct source *text) {
  const char *p = text->text;
  for (;;) {
    p += strspn(p, " \t\r\n");
    if (*p != '#') break;
    p += strcspn(p, "\n");
  }
  return strncmp(p, "graph", 5) == 0 && strspn(p + 5, " \t\"") > 0;
}

/* What placed graphs come from: source graphs of a text, by their places there, or the entries of a model. The last of
 * a name counts. */
struct origin {
  const struct source *text; /* NULL: a model */
  struct map graphs;
};

static bool read_origin(struct dgc_session *s, const char *path, struct origin *o) {
  const struct source *text = source_read(s->arena, path, TEXT_MAX_BYTES, &s->diags);
  *o = (struct origin){.graphs = map_make(s->call)};
  if (!text) return false;
  if (is_graph_text(text)) {
    struct graph_place *places;
    int count = graph_parse_places(s->call, text, &s->diags, &places);
    o->text = text;
    for (int i = 0; i < count; i++)
      if (places[i].stage == STAGE_SOURCE) map_put_owned(&o->graphs, places[i].name, &places[i]);
    return count >= 0;
  }
  if (session_load(s, text)) return false;
  for (int i = 0; i < ENTRY_COUNT; i++) {
    struct graph *g =
        entry_there(s, (enum entry_kind)i) ? session_source(s, s->call, (enum entry_kind)i, 0) : NULL;
    if (g) map_put_owned(&o->graphs, g->name, g);
  }
  return true;
}

static bool has_parts(const struct graph *g) {
  for (uint32_t i = 0; i < g->count; i++)
    if (g->nodes[i]->op == OP_variable && node_attr(g->nodes[i], ATTR_part)) return true;
  return false;
}

/* The source of a placed graph, differentiated, for what that was compiled for; NULL if there is none. False after an
 * error. */
static bool find_source(struct dgc_session *s, const struct graph *g, const struct origin *o,
                        struct graph **out) {
  *out = NULL;
  if (!s->options.source_path) return true;
  void *found = map_get(&o->graphs, g->name);
  if (!found) {
    session_fail(s, DGC_INPUT, "%s holds no source graph '%s'", s->options.source_path, g->name);
    return false;
  }
  struct graph *source = o->text ? graph_parse_at(s->call, o->text, found, &s->diags) : found;
  if (!source || !graph_verify(source, "read", &s->diags)) return false;
  source = arena_copy(s->call, source, sizeof *source);
  source->config = g->config;
  *out = pipeline_run(s->call, source, NULL, has_parts(source) ? "rows" : "partition", NULL, &s->diags);
  return *out != NULL;
}

static enum dgc_status verify_placed(struct dgc_session *s, struct graph *g, const struct graph *source,
                                     struct str *out) {
  if (g->stage == STAGE_FUSED)
    return session_fail(s, DGC_INPUT, "%s is fused: what is certified is the placed graph before", g->name);
  if (g->config.task)
    return session_fail(s, DGC_INPUT,
                        "%s is the part of task %s: what is certified is the graph of all tasks", g->name,
                        g->config.task);
  struct certificate c;
  graph_certify(s->call, source, g, "read", &s->diags, &c);
  verify_numbers(s, source, g, &c);
  verify_plan(s, g, &c);
  return report(s, g, &c, out);
}

static enum dgc_status verify_graph(struct dgc_session *s, struct graph *g, const struct origin *sources,
                                    struct str *out) {
  if (!graph_verify(g, "read", &s->diags)) return g->stage == STAGE_SOURCE ? DGC_INPUT : DGC_MISMATCH;
  if (g->stage == STAGE_SOURCE) {
    enum dgc_status status = session_override(s, &g->config);
    return status ? status : verify_source(s, g, out);
  }
  struct graph *source;
  return find_source(s, g, sources, &source) ? verify_placed(s, g, source, out) : DGC_INPUT;
}

/* What one graph of many needs: the session's memory of the call meanwhile, and gone with it. */
struct alone {
  struct dgc_session *s;
  struct arena *outer;
  struct arena_guard guard;
};

static void leave(void *arg) {
  const struct alone *own = arg;
  struct arena *inner = own->s->call;
  own->s->call = own->outer;
  arena_destroy(inner);
}

static enum dgc_status verify_alone(struct dgc_session *s, const struct source *text,
                                    const struct graph_place *place, const struct origin *sources,
                                    struct str *out) {
  struct alone own = {.s = s, .outer = s->call};
  struct arena *inner = arena_create();
  s->call = inner;
  arena_guard(&own.guard, leave, &own);
  struct graph *g = graph_parse_at(s->call, text, place, &s->diags);
  enum dgc_status status = g ? verify_graph(s, g, sources, out) : DGC_INPUT;
  arena_unguard(&own.guard);
  leave(&own);
  return status;
}

static enum dgc_status verify_text(struct dgc_session *s, const struct source *text, struct str *out) {
  struct graph_place *places;
  struct origin sources = {0};
  const char *wanted = s->options.graph;
  int count = graph_parse_places(s->call, text, &s->diags, &places), chosen = 0;
  bool read = !s->options.source_path || read_origin(s, s->options.source_path, &sources);
  if (count < 0 || !read) return session_unread(s);
  enum dgc_status status = DGC_OK;
  for (int i = 0; i < count; i++) {
    if (wanted && strcmp(places[i].name, wanted) != 0) continue;
    chosen++;
    enum dgc_status this = verify_alone(s, text, &places[i], &sources, out);
    if (this && this != DGC_MISMATCH) return this;
    if (this) status = this;
  }
  if (chosen) return status;
  if (!wanted) return session_fail(s, DGC_INPUT, "%s holds no graph", text->name);
  const char **names = arena_new_array(s->call, (size_t)count, const char *);
  for (int i = 0; i < count; i++) names[i] = places[i].name;
  return session_no_graph(s, text->name, names, count);
}

static enum dgc_status verify(struct dgc_session *s, const char *path, const char *entry, const char **text) {
  struct str out = session_text(s);
  *text = out.data;
  const struct source *file = source_read(s->arena, path, TEXT_MAX_BYTES, &s->diags);
  if (!file) return session_unread(s);
  bool is_text = is_graph_text(file);
  if (!is_text && (s->options.source_path || s->options.graph))
    return session_fail(s, DGC_USAGE, "%s is a model, and --%s is for graph text", path,
                        s->options.source_path ? "source" : "graph");
  enum dgc_status status = is_text ? verify_text(s, file, &out) : verify_model(s, file, entry, &out);
  *text = out.data;
  return status;
}

enum dgc_status dgc_verify(struct dgc_session *s, const char *path, const char *entry, const char **text) {
  *text = "";
  CALL(s, verify(s, path, entry, text));
}
