/* Graph text: what parses and verifies prints as text that parses to the same text. */
#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "ir/graph.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct source *text = source_make(a, "fuzz", (const char *)data, size);
  struct graph **graphs;
  int n = graph_parse_all(a, text, &d, &graphs);
  if (n < 0 && !d.nerrors) abort();
  diags_text(&d, false);
  for (int i = 0; i < n; i++) {
    if (!graph_verify(graphs[i], "parse", &d)) continue;
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
