/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline: the list of passes, and the one place where each is run, timed, verified and shown. */
#include "passes/pass.h"

#include "base/clock.h"
#include "ir/graph/text.h"

#include <string.h>

static const struct pass {
  const char *name;
  enum stage from, to;
  const char *help;
  struct graph *(*run)(struct pass_ctx *, struct graph *);
} passes[] = {
#define PASS(name, from, to, help) {#name, STAGE_##from, STAGE_##to, help, pass_##name},
#include "passes/passes.def"
#undef PASS
};

#define NPASSES ((int)(sizeof passes / sizeof *passes))

static int find_pass(const char *name, size_t len) {
  for (int i = 0; i < NPASSES; i++)
    if (strlen(passes[i].name) == len && memcmp(passes[i].name, name, len) == 0) return i;
  return -1;
}

static void unknown_pass(struct diags *d, const char *name) {
  const char *names[NPASSES];
  for (int i = 0; i < NPASSES; i++) names[i] = passes[i].name;
  diag_error(d, LOC_NONE, "there is no pass '%s'", name);
  diag_closest(d, LOC_NONE, name, names, NPASSES, "passes are");
}

static const struct order {
  const char *first, *then, *reason;
} orders[] = {
#define BEFORE(first, then, reason) {#first, #then, reason},
#include "passes/order.def"
#undef BEFORE
};

static int place_of(const char *name, const char *const *names, int count) {
  int i = 0;
  while (i < count && strcmp(names[i], name) != 0) i++;
  return i;
}

const char *pipeline_order(struct arena *a, const char *const *names, int count) {
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
    const struct order *o = &orders[i];
    int first = place_of(o->first, names, count);
    if (first < count && place_of(o->then, names, count) < first)
      return arena_printf(a, "pass %s must come before %s: %s", o->first, o->then, o->reason);
  }
  return NULL;
}

static bool in_order(const int *chosen, int n, struct diags *d) {
  const char **names = arena_new_array(d->arena, (size_t)n + 1, const char *);
  for (int i = 0; i < n; i++) names[i] = passes[chosen[i]].name;
  const char *breach = pipeline_order(d->arena, names, n);
  if (breach) diag_error(d, LOC_NONE, "%s", breach);
  return !breach;
}

static bool listed(const char *list, const char *name) {
  size_t len = strlen(name);
  for (const char *p = list; p; p = strchr(p, ','), p = p ? p + 1 : NULL)
    if (strncmp(p, name, len) == 0 && (p[len] == ',' || p[len] == '\0')) return true;
  return false;
}

/* The passes to run, in order; -1 after an error. */
static int choose(const struct graph *g, const char *list, const char *last, const struct pipeline_options *o,
                  struct arena *a, struct diags *d, int **out) {
  size_t most = NPASSES + 1;
  for (const char *p = list; p && *p; p++) most += *p == ',';
  int *chosen = *out = arena_new_array(a, most, int), n = 0;
  if (last && find_pass(last, strlen(last)) < 0) return unknown_pass(d, last), -1;
  if (o && o->disable)
    for (int i = 0; i < NPASSES; i++)
      if (listed(o->disable, passes[i].name) && passes[i].from != passes[i].to) {
        diag_error(d, LOC_NONE, "pass %s cannot be switched off: later passes need stage %s", passes[i].name,
                   text_stages[passes[i].to]);
        return -1;
      }
  if (list) {
    for (const char *p = list; *p;) {
      size_t len = strcspn(p, ",");
      int i = find_pass(p, len);
      if (i < 0) return unknown_pass(d, arena_strndup(a, p, len)), -1;
      chosen[n++] = i;
      p += len;
      if (*p) p++;
    }
    return n;
  }
  for (int i = 0; i < NPASSES; i++) {
    bool due = passes[i].from >= g->stage;
    if (due && !(o && o->disable && listed(o->disable, passes[i].name))) chosen[n++] = i;
    if (last && strcmp(passes[i].name, last) == 0) break;
  }
  return n;
}

static const char *text_of(struct arena *a, const struct graph *g, bool origins) {
  struct str s = str_make(a);
  (origins ? graph_print : graph_print_without_origins)(&s, g);
  return s.data;
}

/* Prints and reads back: the text must be all there is. Locations point into it from then on. */
static struct graph *roundtrip(struct pass_ctx *ctx, struct arena *kept, struct graph *g, const char *pass) {
  const char *text = text_of(ctx->scratch, g, true);
  struct source *s = source_make(kept, arena_printf(kept, "<after %s>", pass), text, strlen(text));
  struct graph *back = graph_parse(ctx->arena, s, ctx->diags);
  const char *again = back ? text_of(ctx->scratch, back, true) : text;
  size_t at = 0, line = 0;
  for (; text[at] && text[at] == again[at]; at++)
    if (text[at] == '\n') line = at + 1;
  if (back && text[at] == again[at]) {
    back->diags = g->diags;
    return back;
  }
  diag_error(ctx->diags, LOC_NONE, "the graph after %s does not read back as it was printed", pass);
  if (back)
    diag_note(ctx->diags, (struct loc){s, (uint32_t)line, (uint32_t)(line + strcspn(text + line, "\n"))},
              "this line reads back as: %.*s", (int)strcspn(again + line, "\n"), again + line);
  return NULL;
}

/* Which passes bring the graph to the stage that p needs. */
static void help_stage(struct pass_ctx *ctx, const struct pass *p, enum stage stage) {
  struct str before = str_make(ctx->scratch);
  for (int i = 0; i < NPASSES; i++)
    if (passes[i].from != passes[i].to && passes[i].from >= stage && passes[i].to <= p->from)
      str_printf(&before, "%s,", passes[i].name);
  if (before.len)
    diag_help(ctx->diags, LOC_NONE, "run what comes before, as in --passes=%s%s", before.data, p->name);
  else
    diag_help(ctx->diags, LOC_NONE, "the graph is past that pass: give it one of stage %s",
              text_stages[p->from]);
}

static struct graph *run_pass(struct pass_ctx *ctx, struct arena *kept, const struct pass *p, struct graph *g,
                              int number, const struct pipeline_options *o) {
  if (g->stage != p->from) {
    diag_error(ctx->diags, LOC_NONE, "pass %s needs a graph of stage %s, and %s is %s", p->name,
               text_stages[p->from], g->name, text_stages[g->stage]);
    help_stage(ctx, p, g->stage);
    return NULL;
  }
  double start = clock_seconds();
  struct graph *out = p->run(ctx, g);
  double took = clock_seconds() - start;
  if (out) out->stage = p->to;
  if (o && o->time_passes && o->print) {
    struct str s = str_make(ctx->scratch);
    str_printf(&s, "%-12s %8lld us %8u nodes\n", p->name, (long long)(took * 1e6), out ? out->count : 0);
    o->print(o->user, "time", s.data);
  }
  if (!out) return NULL;
  if (o && o->verify_each &&
      !(graph_verify(out, p->name, ctx->diags) && graph_verify_origins(g, out, p->name, ctx->diags)))
    return NULL;
  bool show = o && o->print_after && (strcmp(o->print_after, "all") == 0 || listed(o->print_after, p->name));
  if (o && o->print && (show || o->dump_all))
    o->print(o->user, o->dump_all ? arena_printf(ctx->scratch, "%02d-%s", number, p->name) : p->name,
             text_of(ctx->scratch, out, !o->no_origins));
  return o && o->roundtrip ? roundtrip(ctx, kept, out, p->name) : out;
}

/* The arenas of the graph that a pass reads, of the one that it builds, and of the one that the certificate
 * compares with; NULL: the caller's. */
struct arenas {
  struct arena *old, *new, *source;
};

static void destroy_arenas(void *arg) {
  struct arenas *s = arg;
  arena_destroy(s->old);
  arena_destroy(s->new);
  arena_destroy(s->source);
}

/* Whether the placed graph computes what the source of replicate said. Once the copies are made, it must. */
static bool certify(struct pass_ctx *ctx, struct arena *kept, const struct graph *source,
                    const struct graph *g, const struct pass *p, const struct pipeline_options *o) {
  if (!source || p->run != pass_copies || g->config.task) return true; /* it is of all tasks */
  double start = clock_seconds();
  struct certificate *out = o ? o->certificate : NULL;
  bool ok = graph_certify(out ? kept : ctx->scratch, source, g, p->name, ctx->diags, out) || out;
  if (o && o->time_passes && o->print) {
    struct str s = str_make(ctx->scratch);
    str_printf(&s, "%-12s %8lld us %8u nodes\n", "certify", (long long)((clock_seconds() - start) * 1e6),
               g->count);
    o->print(o->user, "time", s.data);
  }
  return ok;
}

/* Each graph dies as soon as the next one is built; the last one lies in `a`. */
static struct graph *run_passes(struct pass_ctx *ctx, struct arena *a, struct graph *g, const int *chosen,
                                int n, const struct pipeline_options *o) {
  struct arenas s = {NULL, NULL, NULL};
  struct arena_guard guard;
  const struct graph *source = NULL;
  arena_guard(&guard, destroy_arenas, &s);
  for (int i = 0; g && i < n; i++) {
    if (i + 1 < n) s.new = arena_create();
    ctx->arena = s.new ? s.new : a;
    const struct pass *p = &passes[chosen[i]];
    struct graph *out = run_pass(ctx, a, p, g, i + 1, o);
    if (out && !certify(ctx, a, source, out, p, o)) out = NULL;
    arena_reset(ctx->scratch);
    if (out == g) { /* nothing to do: it lies where it lay */
      arena_destroy(s.new);
    } else if (p->run == pass_replicate) {
      source = g;
      s.source = s.old;
      s.old = s.new;
      g = out;
    } else {
      arena_destroy(s.old);
      s.old = s.new;
      g = out;
    }
    s.new = NULL;
  }
  arena_unguard(&guard);
  if (g && s.old) { /* the last pass had nothing to do */
    arena_keep(a, s.old);
    s.old = NULL;
  }
  destroy_arenas(&s);
  return g;
}

struct graph *pipeline_run(struct arena *a, struct graph *g, const char *list, const char *last,
                           const struct pipeline_options *o, struct diags *d) {
  int *chosen, n = choose(g, list, last, o, a, d, &chosen);
  if (n < 0 || !in_order(chosen, n, d)) return NULL;
  if (o && o->print_after && strcmp(o->print_after, "all") != 0 &&
      find_pass(o->print_after, strcspn(o->print_after, ",")) < 0)
    return unknown_pass(d, o->print_after), NULL;
  struct arena_guard guard;
  struct pass_ctx ctx = {.scratch = arena_create_guarded(&guard), .diags = d};
  g->diags = d;
  g = run_passes(&ctx, a, g, chosen, n, o);
  arena_destroy_guarded(ctx.scratch, &guard);
  return g;
}

void pipeline_help(struct str *s) {
  for (int i = 0; i < NPASSES; i++)
    str_printf(s, "  %-12s %s -> %s: %s\n", passes[i].name, text_stages[passes[i].from],
               text_stages[passes[i].to], passes[i].help);
}
