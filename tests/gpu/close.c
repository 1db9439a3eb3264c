/* SPDX-License-Identifier: Apache-2.0 */
/* Two checkpoints, equal within f32: close A B TOLERANCE [EXCEPT...]. Each tensor's largest difference is compared with
 * its largest element; integers are equal. */
#include "runtime/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double element(const struct checkpoint_entry *e, int64_t i) {
  return e->type.dtype == DT_F64 ? ((const double *)e->data)[i] : ((const float *)e->data)[i];
}

/* As a share of the largest element of `a`; INFINITY where the two cannot be compared. */
static double difference(const struct checkpoint_entry *a, const struct checkpoint_entry *b) {
  if (!type_equal(&a->type, &b->type)) return INFINITY;
  if (a->type.dtype != DT_F32 && a->type.dtype != DT_F64)
    return memcmp(a->data, b->data, (size_t)type_bytes(&a->type)) == 0 ? 0 : INFINITY;
  double largest = 1e-30, worst = 0;
  for (int64_t i = 0, n = type_count(&a->type); i < n; i++) {
    double x = element(a, i), difference = fabs(x - element(b, i));
    if (isnan(difference)) return INFINITY;
    largest = fmax(largest, fabs(x));
    worst = fmax(worst, difference);
  }
  return worst / largest;
}

static bool is_one_of(char *const *names, const char *name) {
  while (*names && strcmp(*names, name) != 0) names++;
  return *names != NULL;
}

static int missing_in(const struct checkpoint *all, const struct checkpoint *from) {
  int missing = 0;
  for (int i = 0; i < all->count; i++)
    if (!checkpoint_find(from, all->entries[i].name)) {
      printf("%s is in one of them only\n", all->entries[i].name);
      missing++;
    }
  return missing;
}

int main(int argc, char **argv) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  if (argc < 4) return 2;
  const struct checkpoint *one = checkpoint_load(a, argv[1], &d), *other = checkpoint_load(a, argv[2], &d);
  if (!one || !other) {
    printf("%s", diags_text(&d, false));
    return 1;
  }
  double tolerance = strtod(argv[3], NULL);
  int bad = missing_in(one, other) + missing_in(other, one);
  for (int i = 0; i < one->count; i++) {
    const struct checkpoint_entry *e = &one->entries[i], *same = checkpoint_find(other, e->name);
    double by = same ? difference(e, same) : 0;
    if (by <= tolerance || is_one_of(argv + 4, e->name)) continue;
    printf("%s differs by %g of its largest element\n", e->name, by);
    bad++;
  }
  bool good = bad == 0 && one->count > 0;
  arena_destroy(a);
  return good ? 0 : 1;
}
