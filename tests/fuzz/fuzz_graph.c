/* SPDX-License-Identifier: Apache-2.0 */
/* Graph text: what parses and verifies prints as text that parses to the same text. Placed graphs are certified, alone
 * and against what source there is. */
#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "ir/certify/certify.h"
#include "ir/graph/graph.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void certify(struct arena *a, const struct graph *source, const struct graph *g, struct diags *d) {
  struct certificate c;
  struct str s = str_make(a);
  if (g->stage != STAGE_REPLICATED && g->stage != STAGE_PLACED) return;
  graph_certify(a, source, g, "fuzz", d, &c);
  certificate_print(&s, &c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct source *text = source_make(a, "fuzz", (const char *)data, size);
  struct graph **graphs;
  int n = graph_parse_all(a, text, &d, &graphs);
  if (n < 0 && !d.nerrors) abort();
  diags_text(&d, false);
  const struct graph *source = NULL;
  for (int i = 0; i < n; i++) {
    if (!graph_verify(graphs[i], "parse", &d)) continue;
    certify(a, NULL, graphs[i], &d);
    if (source) certify(a, source, graphs[i], &d);
    if (graphs[i]->stage == STAGE_SOURCE) source = graphs[i];
    struct str once = str_make(a), twice = str_make(a);
    graph_print(&once, graphs[i]);
    struct graph *again = graph_parse(a, source_make(a, "again", once.data, once.len), &d);
    if (!again) {
      fprintf(stderr, "%s\nthe graph's own text does not parse:\n%s", once.data, diags_text(&d, false));
      abort();
    }
    graph_print(&twice, again);
    if (strcmp(once.data, twice.data) != 0) {
      fprintf(stderr, "printed:\n%s\nparsed and printed again:\n%s", once.data, twice.data);
      abort();
    }
  }
  arena_destroy(a);
  return 0;
}
