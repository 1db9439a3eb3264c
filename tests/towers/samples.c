/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/towers/samples.h"

#include "ir/ops/op_id.h"
#include "passes/strategy/strategy.h"

#include "tests/support/fixture.h"
#include "tests/support/small.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const algorithms[] = {"reduce_to_one", "hierarchical_copy", "ring", "scatter"};

/* An entry of a sample, as it is, and after the passes that all layouts have alike. */
struct entry {
  const struct model *model;
  const struct graph *source, *alike;
};

struct walk {
  const char *const *lists;
  int64_t rows;
  bool shorter;
  const char *placing, *summing, *behind; /* passes that each layout takes; `behind`: NULL if none */
  sample_check *check;
  void *user;
  uint64_t share, place; /* one case of so many, and how many there were */
  int cases, wrong;
};

/* The passes up to this one do not look at the layout; those behind it are run for each. */
static const char last_alike[] = "rows", last_placing[] = "place", last_summing[] = "copies";

/* Names of the passes behind `first`, up to `last`; NULL: from the first one, to the last one. */
static const char *passes_between(struct arena *a, const char *first, const char *last) {
  static const char *const names[] = {
#define PASS(name, from, to, help) #name,
#include "passes/passes.def"
#undef PASS
  };
  struct str s = str_make(a);
  bool in = !first;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (in) str_printf(&s, "%s%s", s.len ? "," : "", names[i]);
    if (first && strcmp(names[i], first) == 0) in = true;
    if (last && strcmp(names[i], last) == 0) in = false;
  }
  return s.data;
}

static struct graph *run(struct arena *a, const struct graph *source, const struct config *config,
                         const char *passes, struct diags *d) {
  struct graph *g = arena_copy(a, source, sizeof *source);
  g->config = *config;
  return pipeline_run(a, g, passes, NULL, NULL, d);
}

/* A strategy that cannot have this layout says so before the graph is placed; any other error is one. */
static bool refused(const struct diags *d) {
  for (const struct diag *e = d->first; e; e = e->next)
    if (e->severity == DIAG_ERROR && (strstr(e->message, "strategy") || strstr(e->message, "devices") ||
                                      strstr(e->message, "sums on every device")))
      return true;
  return false;
}

/* Only where such a node is expanded does a pass look at the algorithm of sums: without one, all of them give the same
 * graph, but for the name in its header. */
static bool has_sums(const struct graph *placed) {
  for (uint32_t i = 0; i < placed->count; i++)
    if (placed->nodes[i]->op == OP_all_reduce) return true;
  return false;
}

/* Returns whether another algorithm of sums may be another case. */
static bool try_case(struct walk *w, const struct entry *entry, const struct config *config,
                     const char *list) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct sample_case c = {NULL, entry->model, entry->source, *config, NULL};
  c.name = arena_printf(a, "%s, %d towers, %s, %s on %s", entry->source->name, config->towers,
                        config->strategy, config->cross_device ? config->cross_device : "default", list);
  bool ok = target_parse(a, list, &c.config.target, &d, LOC_NONE);
  c.graph = ok ? run(a, entry->alike, &c.config, w->placing, &d) : NULL;
  bool left_out = ok && !c.graph && refused(&d), sums = !c.graph || has_sums(c.graph);
  if (c.graph) c.graph = pipeline_run(a, c.graph, w->summing, NULL, NULL, &d);
  if (c.graph && w->behind) c.graph = pipeline_run(a, c.graph, w->behind, NULL, NULL, &d);
  if (c.graph) {
    const char *wrong = w->check(a, &c, w->user);
    if (wrong && w->wrong++ < 5) print_error("%s: %s\n", c.name, wrong);
    w->cases++;
  } else if (!left_out) {
    if (w->wrong++ < 5) print_error("%s: %s\n", c.name, diags_text(&d, false));
  }
  arena_destroy(a);
  return sums;
}

static void try_layouts(struct walk *w, const struct entry *entry) {
  static const int towers[] = {1, 2, 3, 4, 6};
  for (int l = 0; w->lists[l]; l++)
    for (int s = 0; strategies[s].name; s++)
      for (int t = 0; t < 5; t++) {
        bool sums = true;
        for (int x = 0; x < 4; x++) {
          if (w->shorter ? t % 2 == 0 || (x > 0 && t != 3) : x > 0 && t < 2) continue;
          if (w->place++ % w->share || !sums) continue;
          struct config c = {.batch = w->rows,
                             .towers = towers[t],
                             .strategy = strategies[s].name,
                             .cross_device = x ? algorithms[x] : NULL};
          sums = try_case(w, entry, &c, w->lists[l]);
        }
      }
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int find_samples(struct arena *a, const char **names) {
  int n = 0;
  DIR *dir = opendir(TEST_SAMPLES);
  assert_non_null(dir);
  for (const struct dirent *e; (e = readdir(dir));) {
    size_t len = strlen(e->d_name);
    if (len > 4 && strcmp(e->d_name + len - 4, ".dsl") == 0 && n < 64)
      names[n++] = arena_strdup(a, e->d_name);
  }
  closedir(dir);
  qsort(names, (size_t)n, sizeof *names, by_name);
  return n;
}

void each_sample(const char *const *lists, int64_t rows, bool shorter, bool fused, sample_check *check,
                 void *user) {
  struct arena *a = arena_create();
  const char *placing = passes_between(a, last_alike, last_placing);
  const char *summing = passes_between(a, last_placing, last_summing);
  const char *behind = !fused ? NULL : passes_between(a, last_summing, NULL);
  struct walk w = {lists, rows, shorter, placing, summing, behind, check, user, number_from("TEST_SHARE", 1),
                   0,     0,    0};
  struct diags d;
  const char *names[64];
  int n = find_samples(a, names);
  assert_true(n >= 5);
  for (int i = 0; i < n; i++) {
    diags_init(&d, a);
    const struct source *source =
        source_read(a, arena_printf(a, "%s/%s", TEST_SAMPLES, names[i]), 1 << 20, &d);
    struct frontend_options options = {0};
    options.sets = small_sets(names[i], &options.nsets);
    const struct model *m = source ? frontend_compile(a, source, &options, &d) : NULL;
    if (!m) fail_msg("%s", diags_text(&d, false));
    const struct graph *entries[] = {m->init, m->train, m->eval, m->predict};
    for (int k = 0; k < 4; k++) {
      if (!entries[k]) continue;
      const struct config plain = {.batch = rows};
      struct entry e = {m, entries[k], run(a, entries[k], &plain, passes_between(a, NULL, last_alike), &d)};
      if (!e.alike) fail_msg("%s", diags_text(&d, false));
      try_layouts(&w, &e);
    }
  }
  arena_destroy(a);
  print_message("%d graphs\n", w.cases);
  assert_true(w.cases >= 50);
  assert_int_equal(w.wrong, 0);
}
