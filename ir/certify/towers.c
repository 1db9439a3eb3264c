/* SPDX-License-Identifier: Apache-2.0 */
/* The towers of the certificate: which rows each has, sets of them, and how their shares are summed. */
#include "ir/certify/context.h"

#include <string.h>

int64_t certify_rows(const struct certify *c, int tower) {
  return c->batch / c->towers + (tower < c->batch % c->towers);
}

int64_t certify_first(const struct certify *c, int tower) {
  int64_t longer = c->batch % c->towers;
  return tower * (c->batch / c->towers) + (tower < longer ? tower : longer);
}

const char *certify_towers_text(const struct certify *c, const uint64_t *set, bool inside) {
  struct str s = str_make(c->arena);
  int count = 0;
  for (int t = 0; t < c->towers; t++) {
    int from = t;
    if (certify_has(set, t) != inside) continue;
    while (t + 1 < c->towers && certify_has(set, t + 1) == inside) t++;
    str_printf(&s, count ? ", %d" : "%d", from);
    if (t > from) str_printf(&s, "-%d", t);
    count += t - from + 1;
  }
  return arena_printf(c->arena, "tower%s %s", count == 1 ? "" : "s", s.data);
}

bool certify_sums_by(const struct certify *c, enum cross_device algorithm) {
  return cross_device_number(c->placed->config.cross_device) == (int)algorithm;
}

bool certify_has_tower_copies(const struct certify *c, const struct node *variable) {
  return c->towers > 1 && is_on_read(variable);
}
