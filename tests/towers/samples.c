/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/towers/samples.h"

#include "passes/strategy/strategy.h"

#include "tests/support/fixture.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const algorithms[] = {"reduce_to_one", "hierarchical_copy", "ring", "scatter"};

struct walk {
  const char *const *lists;
  int64_t rows;
  bool shorter;
  const char *last;
  sample_check *check;
  void *user;
  uint64_t share, place; /* one case of so many, and how many there were */
  int cases, wrong;
};

static struct graph *run(struct arena *a, const struct graph *source, const struct config *config,
                         const char *last, struct diags *d) {
  struct graph *g = arena_copy(a, source, sizeof *source);
  g->config = *config;
  return pipeline_run(a, g, NULL, last, NULL, d);
}

/* A strategy that cannot have this layout says so before the graph is placed; any other error is one. */
static bool refused(struct arena *a, const struct sample_case *c) {
  struct diags placing, *d = &placing;
  diags_init(d, a);
  if (run(a, c->source, &c->config, "copies", d)) return false;
  for (const struct diag *e = d->first; e; e = e->next)
    if (e->severity == DIAG_ERROR && (strstr(e->message, "strategy") || strstr(e->message, "devices") ||
                                      strstr(e->message, "sums on every device")))
      return true;
  return false;
}

static void try_case(struct walk *w, const struct model *m, const struct graph *source,
                     const struct config *config, const char *list) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct sample_case c = {NULL, m, source, *config, NULL};
  c.name = arena_printf(a, "%s, %d towers, %s, %s on %s", source->name, config->towers, config->strategy,
                        config->cross_device ? config->cross_device : "default", list);
  bool ok = target_parse(a, list, &c.config.target, &d, LOC_NONE);
  c.graph = ok ? run(a, source, &c.config, w->last, &d) : NULL;
  if (c.graph) {
    const char *wrong = w->check(a, &c, w->user);
    if (wrong && w->wrong++ < 5) print_error("%s: %s\n", c.name, wrong);
    w->cases++;
  } else if (!ok || !refused(a, &c)) {
    if (w->wrong++ < 5) print_error("%s: %s\n", c.name, diags_text(&d, false));
  }
  arena_destroy(a);
}

static void try_layouts(struct walk *w, const struct model *m, const struct graph *source) {
  static const int towers[] = {1, 2, 3, 4, 6};
  for (int l = 0; w->lists[l]; l++)
    for (int s = 0; strategies[s].name; s++)
      for (int t = 0; t < 5; t++)
        for (int x = 0; x < 4; x++) {
          if (w->shorter ? t % 2 == 0 || (x > 0 && t != 3) : x > 0 && t < 2) continue;
          if (w->place++ % w->share) continue;
          struct config c = {.batch = w->rows,
                             .towers = towers[t],
                             .strategy = strategies[s].name,
                             .cross_device = x ? algorithms[x] : NULL};
          try_case(w, m, source, &c, w->lists[l]);
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

void each_sample(const char *const *lists, int64_t rows, bool shorter, const char *last, sample_check *check,
                 void *user) {
  struct walk w = {lists, rows, shorter, last, check, user, number_from("TEST_SHARE", 1), 0, 0, 0};
  struct arena *a = arena_create();
  struct diags d;
  const char *names[64];
  int n = find_samples(a, names);
  assert_true(n >= 5);
  for (int i = 0; i < n; i++) {
    diags_init(&d, a);
    const struct source *source =
        source_read(a, arena_printf(a, "%s/%s", TEST_SAMPLES, names[i]), 1 << 20, &d);
    const struct model *m = source ? frontend_compile(a, source, NULL, &d) : NULL;
    if (!m) fail_msg("%s", diags_text(&d, false));
    const struct graph *entries[] = {m->init, m->train, m->eval, m->predict};
    for (int k = 0; k < 4; k++)
      if (entries[k]) try_layouts(&w, m, entries[k]);
  }
  arena_destroy(a);
  print_message("%d graphs\n", w.cases);
  assert_true(w.cases >= 50);
  assert_int_equal(w.wrong, 0);
}
