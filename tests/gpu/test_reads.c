/* SPDX-License-Identifier: Apache-2.0 */
/* Reads in two parts, more than may be on their way at once: what is collected is what stood there when each began,
 * and one that finds no room says so. On a simulated device: test_reads BACKEND DEVICE. */
#include "ir/target.h"
#include "runtime/backend.h"

#include <stdio.h>
#include <string.h>

enum { READS = 3 * DEFERRED_READS, ROUNDS = 2 };

static int failed;

static void check(bool good, const char *what, int i) {
  if (good) return;
  printf("FAIL: %s %d\n", what, i);
  failed++;
}

/* One cell, written anew before each read. Those that found no room are read at once; the others come back in another
 * order than they began in. */
static void read_round(const struct backend *b, void *self, void *cell, int round) {
  unsigned numbers[READS];
  int waiting = 0;
  for (int i = 0; i < READS; i++) {
    double x = round * READS + i, y = -1;
    check(b->copy(self, cell, 0, &x, -1, sizeof x), "write", i);
    check(b->read_begin(self, 0, cell, sizeof x, &numbers[i]), "begin", i);
    waiting += numbers[i] != DEFERRED_NONE;
    if (numbers[i] != DEFERRED_NONE) continue;
    check(b->copy(self, &y, -1, cell, 0, sizeof y) && y == x, "read at once", i);
  }
  check(waiting == DEFERRED_READS, "on their way at once:", waiting);
  for (int i = READS; i-- > 0;) {
    double y = -1;
    if (numbers[i] == DEFERRED_NONE) continue;
    check(b->read_end(self, 0, numbers[i], &y, sizeof y) && y == round * READS + i, "read", i);
  }
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  struct arena *a = arena_create();
  struct diags d;
  struct target target;
  diags_init(&d, a);
  const struct backend *b = backend_find(argv[1]);
  if (!b || !target_parse(a, argv[2], &target, &d, LOC_NONE)) return 2;
  void *self = b->open(&target, &d);
  if (!self) printf("%s", diags_text(&d, false));
  void *cell = self ? b->alloc(self, 0, sizeof(double)) : NULL;
  check(cell != NULL, "memory", 0);
  for (int i = 0; cell && i < ROUNDS; i++) read_round(b, self, cell, i);
  if (cell) b->free(self, 0, cell, sizeof(double));
  if (self) b->close(self);
  arena_destroy(a);
  return failed ? 1 : 0;
}
