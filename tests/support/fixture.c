/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/fixture.h"

#include "tests/support/elements.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct engine engines[2];
int nengines;

int open_engines(void **state) {
  (void)state;
  static const char *const names[] = {"interp", "cpu"};
  setenv("DGC_PIECE_COST", "1", 0); /* whatever can be is cut, and three threads take the pieces */
  for (int i = 0; i < 2; i++)
    if (backend_find(names[i])) {
      if (!engine_open(&engines[nengines], names[i], 3)) return 1;
      nengines++;
    }
  return 0;
}

int close_engines(void **state) {
  (void)state;
  while (nengines > 0) engine_close(&engines[--nengines]);
  return 0;
}

static bool no_gpu;

int gpus_found(bool *simulated) {
  const struct backend *cuda = backend_find("cuda");
  struct arena *a = arena_create();
  struct device_info *list;
  const char *why_none = NULL;
  int count = cuda ? cuda->list(a, NULL, &list, &why_none) : 0;
  no_gpu = count == 0;
  if (no_gpu)
    printf("SKIP: %s\n", why_none ? why_none : "no GPU");
  else
    printf("%d GPUs: %s, %s\n", count, list[0].name, list[0].arch);
  *simulated = !no_gpu && list[0].simulated;
  arena_destroy(a);
  return count;
}

int gpu_status(int failures) { return no_gpu ? 77 : failures; }

int open_world(void **state) {
  struct world *w = calloc(1, sizeof *w); /* not in its arena, which tests may reset */
  w->arena = arena_create();
  diags_init(&w->diags, w->arena);
  *state = w;
  if (!scratch_make()) return -1;
  snprintf(w->folder, sizeof w->folder, "%s/XXXXXX", scratch_path);
  return mkdtemp(w->folder) ? 0 : -1;
}

int close_world(void **state) {
  struct world *w = *state;
  int left = nftw(w->folder, scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS);
  arena_destroy(w->arena);
  free(w);
  return left;
}

char *in_folder(struct world *w, const char *name) {
  return arena_printf(w->arena, "%s/%s", w->folder, name);
}

uint64_t number_from(const char *variable, uint64_t otherwise) {
  const char *text = getenv(variable);
  return text ? strtoull(text, NULL, 10) : otherwise;
}

bool next_entry(const char **p, char *name, double *numbers, int *count) {
  int length = 0;
  *p += strspn(*p, " ;");
  if (sscanf(*p, "%63s%n", name, &length) != 1) return false;
  *p += length;
  for (*count = 0; (*p += strspn(*p, " ")), **p && **p != ';'; (*count)++) {
    char *end;
    numbers[*count] = strtod(*p, &end);
    *p = end;
  }
  return true;
}

const char *wrong_entries(struct arena *a, const char *text, const struct values *outputs,
                          const struct values *variables) {
  char name[64];
  double numbers[64];
  int count;
  while (next_entry(&text, name, numbers, &count)) {
    const struct tensor *t = values_get(outputs, name);
    if (!t) t = values_get(variables, name);
    if (!t || type_count(&t->type) != count) return arena_printf(a, "%s is missing", name);
    for (int i = 0; i < count; i++) {
      double x = tensor_at(t, i), by = fabs(x - numbers[i]);
      if (by <= 8 * 0x1p-53 * fabs(numbers[i])) continue;
      return arena_printf(a, "%s[%d] is %.17g, not %.17g", name, i, x, numbers[i]);
    }
  }
  return NULL;
}
