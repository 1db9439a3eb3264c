/* SPDX-License-Identifier: Apache-2.0 */
/* The page of --emit html: what session/picture/viewer.js shows, as JSON, in the page that reads it.
 *
 *   strings   every text once; the numbers below that stand for texts count in this list
 *   records   every node once, however many passes leave it as it is:
 *             [name, op, type, distribution, tower, replica, device, phase, why, origin, line, flops, bytes, inputs];
 *             tower, replica and device are numbers, or -1
 *   passes    the graph after each pass that changes it: the records of its nodes, inputs before users, and its outputs
 *   memory    of each device the steps of the plan, and its buffers with the steps between which they are in use */
#include "session/picture.h"

#include "session/compile.h"
#include "session/module.h"
#include "session/settle.h"
#include "session/state/settlement.h"

#include "base/embed.h"
#include "base/map.h"
#include "ir/graph/text.h"
#include "ir/ops/op.h"
#include "ir/ops/op_id.h"
#include "ir/plan/report.h"
#include "passes/pass.h"
#include "planner/planner.h"

#include <limits.h>
#include <string.h>

extern const struct embedded picture_files[];

struct picture {
  struct dgc_session *s;
  struct arena *arena;
  struct str strings, records, passes, sources;
  struct map string_numbers, record_numbers, source_names;
  int nstrings, nrecords, npasses, nsources;
};

/* Numbers of a map are stored one too large, as NULL is none. */
static int number_of(struct map *m, const char *key, int *count, bool *fresh) {
  intptr_t known = (intptr_t)map_get(m, key);
  *fresh = !known;
  if (known) return (int)known - 1;
  map_put(m, key, (void *)(intptr_t)(*count + 1));
  return (*count)++;
}

/* The number of a text; that of the empty one if it is NULL. */
static int text_number(struct picture *p, const char *text) {
  bool fresh;
  if (!text) text = "";
  int n = number_of(&p->string_numbers, text, &p->nstrings, &fresh);
  if (!fresh) return n;
  if (n) str_put(&p->strings, ",\n");
  text_print_json(&p->strings, text);
  return n;
}

/* ---- nodes ---- */

enum phase { PHASE_FORWARD, PHASE_BACKWARD, PHASE_REDUCE, PHASE_UPDATE, PHASE_STATE, PHASE_CONSTANT };

static bool in_tower(const struct node *n) { return n->dist == DIST_PER_REPLICA || n->dist == DIST_PARTIAL; }

/* By node id. A gradient that has left its tower is on its way through the sum. */
static uint8_t *graph_phases(struct arena *a, const struct graph *g) {
  static const uint8_t phases[PURPOSE_COUNT] = {
      [PURPOSE_VARIABLE] = PHASE_STATE,     [PURPOSE_SLOT] = PHASE_STATE,
      [PURPOSE_CONSTANT] = PHASE_CONSTANT,  [PURPOSE_INPUT] = PHASE_FORWARD,
      [PURPOSE_ACTIVATION] = PHASE_FORWARD, [PURPOSE_RESULT] = PHASE_FORWARD,
      [PURPOSE_GRADIENT] = PHASE_BACKWARD,  [PURPOSE_UPDATE] = PHASE_UPDATE,
  };
  const uint8_t *purposes = graph_purposes(a, g);
  uint8_t *out = arena_new_array(a, g->count + 1, uint8_t);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    bool sums = false;
    for (int k = 0; k < n->ninputs; k++) {
      const struct node *in = n->inputs[k];
      sums |= in_tower(n) ? in->tower >= 0 && n->inputs[0]->tower >= 0 && in->tower != n->inputs[0]->tower
                          : in_tower(in) || out[in->id] == PHASE_REDUCE;
    }
    out[i] = sums && purposes[i] == PURPOSE_GRADIENT ? PHASE_REDUCE : phases[purposes[i]];
  }
  return out;
}

/* The source of this name, once. */
static void show_source(struct picture *p, const struct source *source) {
  const char *slash = strrchr(source->name, '/'), *name = slash ? slash + 1 : source->name;
  if (source->hidden || map_get(&p->source_names, name)) return;
  map_put(&p->source_names, name, p);
  str_put(&p->sources, p->nsources++ ? ",\n" : "");
  text_print_json(&p->sources, name);
  str_putc(&p->sources, ':');
  text_print_json(&p->sources, arena_strndup(p->arena, source->text, source->len));
}

static void show_sources(struct picture *p, const struct node *n) {
  if (n->loc.source) show_source(p, n->loc.source);
  for (const struct trail *t = n->trail; t; t = t->outer)
    if (t->call.source) show_source(p, t->call.source);
}

/* What attributes say is shown as graph text has it. */
static const char *line_of(struct picture *p, const struct graph *g, const struct node *n) {
  if (!n->nattrs) return NULL;
  struct str line = str_make(p->arena);
  node_print(&line, g, n);
  return line.data;
}

static int record_of(struct picture *p, const struct graph *g, const struct node *n, uint8_t phase) {
  struct str r = str_make(p->arena), type = str_make(p->arena);
  bool fresh;
  type_print(&type, &n->type);
  int64_t bytes = n->op == OP_copy && node_int_or(n, ATTR_alias, 0) ? 0 : type_bytes(&n->type);
  str_printf(&r, "[%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%lld,%lld,[", text_number(p, n->name),
             text_number(p, op_of(n)->name), text_number(p, type.data),
             text_number(p, n->dist == DIST_NONE ? NULL : dist_name(n->dist)), n->tower, n->replica,
             n->device, phase, text_number(p, reason_text(p->arena, n->why)),
             text_number(p, node_origin(p->arena, n)), text_number(p, line_of(p, g, n)),
             (long long)node_flops(n), (long long)(bytes > 0 ? bytes : 0));
  for (int i = 0; i < n->ninputs; i++) str_printf(&r, i ? ",%d" : "%d", text_number(p, n->inputs[i]->name));
  str_put(&r, "]]");
  int number = number_of(&p->record_numbers, r.data, &p->nrecords, &fresh);
  if (!fresh) return number;
  if (number) str_put(&p->records, ",\n");
  str_put(&p->records, r.data);
  show_sources(p, n);
  return number;
}

/* ---- passes ---- */

static void add_pass(struct picture *p, const char *pass, const char *help, const struct graph *g) {
  const uint8_t *phases = graph_phases(p->arena, g);
  struct str *out = &p->passes;
  str_put(out, p->npasses++ ? ",\n{\"pass\":" : "{\"pass\":");
  text_print_json(out, pass);
  str_put(out, ",\"help\":");
  text_print_json(out, help);
  str_put(out, ",\"nodes\":[");
  for (uint32_t i = 0; i < g->count; i++)
    str_printf(out, i ? ",%d" : "%d", record_of(p, g, g->nodes[i], phases[i]));
  str_put(out, "],\"outputs\":[");
  for (int i = 0; i < g->noutputs; i++)
    str_printf(out, i ? ",[%d,%d,%d]" : "[%d,%d,%d]", text_number(p, text_roles[g->outputs[i].role]),
               text_number(p, g->outputs[i].name), text_number(p, g->outputs[i].node->name));
  str_put(out, "]}");
}

static const struct {
  const char *name, *help;
} all_passes[] = {
#define PASS(name, from, to, help) {#name, help},
#include "passes/passes.def"
#undef PASS
};
enum { NPASSES = sizeof all_passes / sizeof *all_passes };

/* One pass more; NULL after an error. */
static struct graph *run_pass(struct picture *p, struct graph *g, const char *name) {
  struct dgc_session *s = p->s;
  struct pipeline_options options = {.disable = s->options.disable_pass};
  const char *help = "";
  for (int i = 0; i < NPASSES; i++)
    if (strcmp(all_passes[i].name, name) == 0) help = all_passes[i].help;
  struct graph *next = pipeline_run(p->arena, g, name, NULL, &options, &s->diags);
  if (next && next != g) add_pass(p, name, help, next);
  return next;
}

/* The graph after the last pass; NULL after an error. */
static struct graph *add_passes(struct picture *p, enum entry_kind kind) {
  struct graph *g = session_source(p->s, p->arena, kind, 0);
  g->config.task = p->s->settlement->config.task;
  add_pass(p, "source", "the model as it is written", g);
  for (int i = 0; i < NPASSES && g; i++) g = run_pass(p, g, all_passes[i].name);
  return g;
}

/* The same of a graph that was read; passes in the order of the list. */
static struct graph *add_listed(struct picture *p, struct graph *g, const char *passes) {
  add_pass(p, "text", "the graph as it was read", g);
  for (const char *c = passes; c && *c && g; c += *c == ',') {
    size_t len = strcspn(c, ",");
    if (len) g = run_pass(p, g, arena_strndup(p->arena, c, len));
    c += len;
  }
  return g;
}

/* ---- memory ---- */

static void put_buffers(struct picture *p, struct str *out, const struct plan *plan, const uint8_t *purposes,
                        int device) {
  int last = plan->devices[device].nsteps - 1, n = 0;
  for (int i = 0; i < plan->nbuffers; i++) {
    const struct plan_buffer *b = &plan->buffers[i];
    if (b->device != device) continue;
    str_printf(out, n++ ? ",[%d,%d,%d,%d,%lld]" : "[%d,%d,%d,%d,%lld]", text_number(p, b->name),
               buffer_purpose(plan, purposes, b), b->first < 0 ? 0 : b->first,
               b->last > last ? last : b->last, (long long)b->bytes);
  }
}

static const char *step_words(struct arena *a, const struct step *step) {
  const char *word = step_word(step);
  return step->node ? arena_printf(a, "%s %s", word, step->node->name) : word;
}

static void put_memory(struct picture *p, struct str *out, const struct plan *plan) {
  const uint8_t *purposes = graph_purposes(p->arena, plan->graph);
  for (int d = 0; d < plan->ndevices; d++) {
    const struct device_plan *device = &plan->devices[d];
    str_put(out, d ? ",\n{\"steps\":[" : "{\"steps\":[");
    for (int i = 0; i < device->nsteps; i++)
      str_printf(out, i ? ",%d" : "%d", text_number(p, step_words(p->arena, &device->steps[i])));
    str_put(out, "],\"buffers\":[");
    put_buffers(p, out, plan, purposes, d);
    str_put(out, "]}");
  }
}

/* ---- the page ---- */

static void put_devices(struct str *out, const struct target *t) {
  for (int i = 0; i < t->ndevices; i++) {
    str_put(out, i ? ",{\"name\":" : "{\"name\":");
    text_print_json(out, t->devices[i].text);
    str_printf(out, ",\"simulated\":%s}", t->devices[i].simulated ? "true" : "false");
  }
}

static void put_purposes(struct str *out) {
  for (int i = 0; i < PURPOSE_COUNT; i++) {
    if (i) str_putc(out, ',');
    text_print_json(out, purpose_names[i]);
  }
}

/* In a script of a page, "</script" and "<!--" would mean something. */
static void put_escaped(struct str *out, const char *json) {
  for (const char *c; (c = strchr(json, '<')); json = c + 1) {
    str_putn(out, json, (size_t)(c - json));
    str_put(out, "\\u003c");
  }
  str_put(out, json);
}

static const char *data_of(struct picture *p, const struct graph *g, const char *memory) {
  struct str out = str_make(p->arena);
  str_put(&out, "{\"graph\":");
  text_print_json(&out, g->name);
  str_printf(&out, ",\"version\":\"%s\",\"batch\":%lld,\"towers\":%d,\"strategy\":", dgc_version(),
             (long long)g->config.batch, g->config.towers);
  text_print_json(&out, g->config.strategy ? g->config.strategy : "");
  str_put(&out, ",\"devices\":[");
  put_devices(&out, &g->config.target);
  str_put(&out, "],\"purposes\":[");
  put_purposes(&out);
  str_printf(
      &out, "],\n\"sources\":{%s},\n\"strings\":[%s],\n\"records\":[%s],\n\"passes\":[%s],\n\"memory\":[%s]}",
      p->sources.data, p->strings.data, p->records.data, p->passes.data, memory);
  return out.data;
}

static const char *file(const char *name) {
  const struct embedded *e = picture_files;
  while (strcmp(e->name, name) != 0) e++;
  return e->text;
}

/* Fills in what the page leaves open: @title@, @style@, @data@, @script@. */
static void put_page(struct str *out, const char *title, const char *data) {
  const struct {
    const char *mark, *text;
    bool escaped;
  } holes[] = {{"@title@", title, false},
               {"@style@", file("viewer.css"), false},
               {"@data@", data, true},
               {"@script@", file("viewer.js"), false}};
  const char *page = file("viewer.html");
  for (size_t i = 0; i < sizeof holes / sizeof *holes; i++) {
    const char *hole = strstr(page, holes[i].mark);
    str_putn(out, page, (size_t)(hole - page));
    if (holes[i].escaped)
      put_escaped(out, holes[i].text);
    else
      str_put(out, holes[i].text);
    page = hole + strlen(holes[i].mark);
  }
  str_put(out, page);
}

static struct picture make(struct dgc_session *s) {
  struct arena *a = s->call;
  struct picture p = {.s = s,
                      .arena = a,
                      .strings = str_make(a),
                      .records = str_make(a),
                      .passes = str_make(a),
                      .sources = str_make(a),
                      .string_numbers = map_make(a),
                      .record_numbers = map_make(a),
                      .source_names = map_make(a)};
  text_number(&p, "");
  return p;
}

static enum dgc_status finish(struct picture *p, struct graph *g, bool planned, struct str *out) {
  if (!g) return session_blame(p->s);
  struct str memory = str_make(p->arena);
  struct plan *plan = planned ? plan_build(p->arena, g, &p->s->diags) : NULL;
  if (plan) put_memory(p, &memory, plan);
  put_page(out, g->name, data_of(p, g, memory.data));
  return DGC_OK;
}

enum dgc_status session_picture(struct dgc_session *s, enum entry_kind kind, struct str *out) {
  struct picture p = make(s);
  struct graph *g = add_passes(&p, kind);
  /* A plugin plans for itself, and processes have a part each. */
  return finish(&p, g, !session_runs_modules(s) && !s->settlement->config.task, out);
}

enum dgc_status session_picture_of(struct dgc_session *s, struct graph *g, const char *passes,
                                   struct str *out) {
  struct picture p = make(s);
  g = add_listed(&p, g, passes);
  return finish(&p, g, g && g->stage == STAGE_FUSED && !g->config.task, out);
}
