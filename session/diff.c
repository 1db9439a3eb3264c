/* SPDX-License-Identifier: Apache-2.0 */
/* What two graph texts differ in, by structure: nodes that were added, removed, renamed, moved, changed.
 *
 * Nodes are matched by their names. What has none in the other graph is matched by what it is: its op, attributes, type
 * and tower, and inputs that match; so a node that was only renamed is one, and so are its readers. Why a node is where
 * it is, and the line that it comes from, are told and not compared. */
#include "session/facts.h"
#include "session/session.h"

#include "base/map.h"
#include "ir/graph/text.h"
#include "ir/ops/op.h"

#include <string.h>

struct diff {
  struct arena *arena;
  const struct graph *before, *after;
  const struct node **old; /* by id of `after`: its node of `before`, or NULL */
  const struct node **now; /* by id of `before` */
  struct fact *removed, *added, *renamed, *moved, *changed, *header;
  int count; /* of all differences */
};

/* ---- what a node is ---- */

/* Its line without names and place. */
static const char *form_of(struct arena *a, const struct graph *g, const struct node *n) {
  struct node bare = *n;
  struct str s = str_make(a);
  bare.name = "", bare.ninputs = 0, bare.device = -1, bare.why = (struct reason){0}, bare.origin = "",
  bare.loc = LOC_NONE;
  node_print(&s, g, &bare);
  for (int i = 0; i < n->nattrs; i++)
    if (attr_kind_of(n->attrs[i].key) == ATTR_BODY) graph_print(&s, n->attrs[i].body);
  return s.data;
}

/* With the inputs by number, which are those of `before`; NULL: one has no match there. */
static const char *identity_of(const struct diff *d, const struct graph *g, const struct node *n) {
  struct str s = str_make(d->arena);
  str_put(&s, form_of(d->arena, g, n));
  for (int i = 0; i < n->ninputs; i++) {
    const struct node *in = g == d->before ? n->inputs[i] : d->old[n->inputs[i]->id];
    if (!in) return NULL;
    str_printf(&s, "\n%u", in->id);
  }
  return s.data;
}

static void match(struct diff *d, const struct node *old, const struct node *now) {
  d->old[now->id] = old;
  d->now[old->id] = now;
}

static void match_all(struct diff *d) {
  struct map unnamed = map_make(d->arena);
  for (uint32_t i = 0; i < d->before->count; i++) {
    const struct node *n = d->before->nodes[i];
    if (!graph_find(d->after, n->name)) map_put(&unnamed, identity_of(d, d->before, n), (void *)n);
  }
  for (uint32_t i = 0; i < d->after->count; i++) {
    const struct node *n = d->after->nodes[i], *old = graph_find(d->before, n->name);
    const char *identity = old ? NULL : identity_of(d, d->after, n);
    if (identity) old = map_get(&unnamed, identity);
    if (old && !d->now[old->id]) match(d, old, n);
  }
}

/* ---- what is told ---- */

static const char *line_of(struct arena *a, const struct graph *g, const struct node *n) {
  struct str s = str_make(a);
  node_print(&s, g, n);
  return s.data;
}

static void tell(struct diff *d, struct fact *list, const char *sign, const char *line, const char *name) {
  struct fact *f = fact_object(d->arena, list, NULL, arena_printf(d->arena, "%s %s", sign, line));
  fact_text(d->arena, f, "node", name);
  d->count++;
}

static void tell_pair(struct diff *d, struct fact *list, const struct node *n, const char *what,
                      const char *from, const char *to) {
  const char *line =
      what ? arena_printf(d->arena, "~ %s: %s%s%s -> %s", n->name, what, *what ? " " : "", from, to)
           : arena_printf(d->arena, "~ %s -> %s", from, to);
  struct fact *f = fact_object(d->arena, list, NULL, line);
  fact_text(d->arena, f, "node", n->name);
  if (what && *what) fact_text(d->arena, f, "what", what);
  fact_text(d->arena, f, "before", from);
  fact_text(d->arena, f, "after", to);
  d->count++;
}

static const char *device_of(const struct graph *g, const struct node *n) {
  return n->device >= 0 ? g->config.target.devices[n->device].text : "no device";
}

/* With the reasons, as the rule that chose a device is what has changed. */
static void compare_place(struct diff *d, const struct node *old, const struct node *now) {
  const char *from = device_of(d->before, old), *to = device_of(d->after, now);
  if (strcmp(from, to) == 0) return;
  const char *before = reason_text(d->arena, old->why), *after = reason_text(d->arena, now->why);
  if (after) to = arena_printf(d->arena, "%s  # %s", to, after);
  if (before && after && strcmp(before, after) != 0)
    to = arena_printf(d->arena, "%s (before: %s)", to, before);
  tell_pair(d, d->moved, now, "", from, to);
}

static const char *inputs_of(struct arena *a, const struct node *n) {
  const char **names = arena_new_array(a, (size_t)n->ninputs + 1, const char *);
  for (int i = 0; i < n->ninputs; i++) names[i] = n->inputs[i]->name;
  return n->ninputs ? str_join(a, names, (size_t)n->ninputs) : "nothing";
}

static bool reads_the_same(const struct diff *d, const struct node *old, const struct node *now) {
  bool same = old->ninputs == now->ninputs;
  for (int i = 0; same && i < now->ninputs; i++) same = d->old[now->inputs[i]->id] == old->inputs[i];
  return same;
}

static void compare_nodes(struct diff *d, const struct node *old, const struct node *now) {
  struct arena *a = d->arena;
  if (strcmp(old->name, now->name) != 0) tell_pair(d, d->renamed, now, NULL, old->name, now->name);
  compare_place(d, old, now);
  const char *was = form_of(a, d->before, old), *is = form_of(a, d->after, now);
  /* Behind the name, which is empty, and " = ". */
  if (strcmp(was, is) != 0) tell_pair(d, d->changed, now, "is", strchr(was, '=') + 2, strchr(is, '=') + 2);
  if (!reads_the_same(d, old, now))
    tell_pair(d, d->changed, now, "reads", inputs_of(a, old), inputs_of(a, now));
}

/* ---- header and outputs: lines that only one has ---- */

static bool has_line(const char *const *lines, int count, const char *line) {
  for (int i = 0; i < count; i++)
    if (strcmp(lines[i], line) == 0) return true;
  return false;
}

/* The lines of the header, then one for each output. */
static const char **frame_of(struct arena *a, const struct graph *g, int *count) {
  struct graph bare = *g;
  struct str s = str_make(a);
  bare.count = 0;
  graph_print(&s, &bare);
  int n = 0;
  for (const char *c = s.data; *c; c++) n += *c == '\n';
  const char **lines = arena_new_array(a, (size_t)n + 1, const char *);
  *count = 0;
  for (const char *p = s.data, *end; *p && (end = strchr(p, '\n')); p = end + 1) {
    const char *line = text_comment(a, p, (size_t)(end - p));
    if (line && strcmp(line, "}") != 0) lines[(*count)++] = line;
  }
  return lines;
}

static void compare_frames(struct diff *d) {
  int before, after;
  const char **old = frame_of(d->arena, d->before, &before), **now = frame_of(d->arena, d->after, &after);
  for (int i = 0; i < before; i++)
    if (!has_line(now, after, old[i])) tell(d, d->header, "-", old[i], NULL);
  for (int i = 0; i < after; i++)
    if (!has_line(old, before, now[i])) tell(d, d->header, "+", now[i], NULL);
}

/* ---- two graphs, two files ---- */

/* Those that are empty say nothing to people. */
static struct fact *list_for(struct diff *d, struct fact *in, const char *key) {
  return fact_list(d->arena, in, key, NULL);
}

static int compare_graphs(struct arena *a, struct fact *in, const struct graph *before,
                          const struct graph *after) {
  struct fact *f = fact_object(a, in, NULL, arena_printf(a, "graph %s", after->name));
  fact_text(a, f, "graph", after->name);
  struct diff d = {.arena = a,
                   .before = before,
                   .after = after,
                   .old = arena_new_array(a, after->count + 1, const struct node *),
                   .now = arena_new_array(a, before->count + 1, const struct node *)};
  d.header = list_for(&d, f, "header");
  d.removed = list_for(&d, f, "removed"), d.added = list_for(&d, f, "added"),
  d.renamed = list_for(&d, f, "renamed");
  d.moved = list_for(&d, f, "moved"), d.changed = list_for(&d, f, "changed");
  compare_frames(&d);
  match_all(&d);
  int removed = 0, added = 0, same = 0;
  for (uint32_t i = 0; i < before->count; i++)
    if (!d.now[i])
      tell(&d, d.removed, "-", line_of(a, before, before->nodes[i]), before->nodes[i]->name), removed++;
  for (uint32_t i = 0; i < after->count; i++) {
    int count = d.count;
    if (d.old[i])
      compare_nodes(&d, d.old[i], after->nodes[i]);
    else
      tell(&d, d.added, "+", line_of(a, after, after->nodes[i]), after->nodes[i]->name), added++;
    same += d.count == count;
  }
  struct fact *sum =
      fact_object(a, f, "nodes",
                  arena_printf(a, "%d nodes added, %d removed, %d other than before, %d the same", added,
                               removed, (int)after->count - added - same, same));
  fact_number(a, sum, "added", added);
  fact_number(a, sum, "removed", removed);
  fact_number(a, sum, "different", (int)after->count - added - same);
  fact_number(a, sum, "same", same);
  return d.count;
}

struct graph_file {
  const char *path;
  struct graph **graphs;
  int count;
};

static enum dgc_status read_graphs(struct dgc_session *s, struct graph_file *f) {
  struct source *source = source_read(s->call, f->path, TEXT_MAX_BYTES, &s->diags);
  f->count = source ? graph_parse_all(s->call, source, &s->diags, &f->graphs) : -1;
  return f->count < 0 ? session_unread(s) : DGC_OK;
}

/* The one of this name; where both files have one only, that one. */
static const struct graph *counterpart(const struct graph_file *f, const struct graph_file *of,
                                       const struct graph *g) {
  if (f->count == 1 && of->count == 1) return f->graphs[0];
  for (int i = 0; i < f->count; i++)
    if (strcmp(f->graphs[i]->name, g->name) == 0) return f->graphs[i];
  return NULL;
}

static int compare_files(struct arena *a, struct fact *root, const struct graph_file *before,
                         const struct graph_file *after) {
  struct fact *all = fact_list(a, root, "graphs", NULL);
  int count = 0;
  for (int i = 0; i < before->count; i++)
    if (!counterpart(after, before, before->graphs[i])) {
      struct fact *f = fact_object(a, all, NULL, arena_printf(a, "- graph %s", before->graphs[i]->name));
      fact_text(a, f, "removed", before->graphs[i]->name);
      count++;
    }
  for (int i = 0; i < after->count; i++) {
    const struct graph *old = counterpart(before, after, after->graphs[i]);
    if (old) {
      count += compare_graphs(a, all, old, after->graphs[i]);
      continue;
    }
    struct fact *f = fact_object(a, all, NULL, arena_printf(a, "+ graph %s", after->graphs[i]->name));
    fact_text(a, f, "added", after->graphs[i]->name);
    count++;
  }
  return count;
}

static enum dgc_status diff(struct dgc_session *s, const char *before, const char *after, bool json,
                            const char **text) {
  struct str out = session_text(s);
  struct graph_file files[2] = {{.path = before}, {.path = after}};
  struct fact *root = fact_root(s->call);
  *text = out.data;
  for (int i = 0; i < 2; i++) {
    enum dgc_status status = read_graphs(s, &files[i]);
    if (status) return status;
  }
  int count = compare_files(s->call, root, &files[0], &files[1]);
  fact_flag(s->call, root, "same", count == 0);
  (json ? facts_print_json : facts_print)(&out, root);
  *text = out.data;
  return count ? DGC_MISMATCH : DGC_OK;
}

enum dgc_status dgc_diff(struct dgc_session *s, const char *before, const char *after, bool json,
                         const char **text) {
  CALL(s, diff(s, before, after, json, text));
}
