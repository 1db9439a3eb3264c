/* SPDX-License-Identifier: Apache-2.0 */
/* Source text: what parses prints as text that parses to the same text; what compiles gives graphs that verify,
 * for two towers as for one. */
#include "base/file.h"
#include "frontend/frontend.h"
#include "passes/pass.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void give_up(const char *what, const char *text, const struct diags *d) {
  fprintf(stderr, "%s\n%s\n%s", what, text, diags_text(d, false));
  abort();
}

static void print_again(struct arena *a, const struct file *file, struct diags *d) {
  struct str once = str_make(a), twice = str_make(a);
  ast_print(&once, file);
  struct file *again = ast_parse(a, source_make(a, "again", once.data, once.len), d);
  if (!again) give_up("what was printed does not parse", once.data, d);
  ast_print(&twice, again);
  if (strcmp(once.data, twice.data) != 0) give_up("what was printed prints otherwise", once.data, d);
}

/* A graph that the passes refuse is an error of the model; one that they accept is right. */
static void replicate(struct arena *a, struct graph *g, int towers, struct diags *d) {
  if (!g || g->count > 5000) return;
  if (!graph_verify(g, "frontend", d)) give_up("the source graph is wrong", g->name, d);
  g->config.batch = 3;
  g->config.towers = towers;
  if (!target_parse(a, "cpu:0-1", &g->config.target, d, LOC_NONE)) abort();
  g = pipeline_run(a, g, NULL, "copies", NULL, d);
  if (g && !graph_verify(g, "copies", d)) give_up("the placed graph is wrong", g->name, d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct source *text = source_make(a, "fuzz", (const char *)data, size);
  struct file *file = ast_parse(a, text, &d);
  if (file && !d.nerrors) print_again(a, file, &d);
  const struct file_roots nowhere = {0};
  struct frontend_options options = {.folder = "/nowhere", .roots = &nowhere}; /* no file is read */
  struct model *m = frontend_compile(a, text, &options, &d);
  if (!m && !d.nerrors) abort();
  for (const struct diag *q = d.first; q; q = q->next)
    if (strstr(q->message, "a mistake of dgc's")) give_up("a statement has vanished", text->text, &d);
  for (int towers = 1; m && towers <= 2; towers++) {
    struct graph *entries[] = {m->init, m->train, m->eval, m->predict};
    for (int i = 0; i < 4; i++) replicate(a, entries[i], towers, &d);
  }
  diags_text(&d, false);
  arena_destroy(a);
  return 0;
}
