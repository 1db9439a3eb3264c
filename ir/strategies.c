/* SPDX-License-Identifier: Apache-2.0 */
/* The table of strategies, from strategies.def, and the search in it. */
#include "ir/strategies.h"

#include "base/str.h"

#include <string.h>

const struct strategy_info strategies[] = {
#define STRATEGY(name, storage, reach, settings, default_for, help, theirs) \
  {#name, STORAGE_##storage, REACH_##reach, settings, DEFAULT_FOR_##default_for, help, theirs},
#include "ir/strategies.def"
#undef STRATEGY
    {0},
};

const struct strategy_info *strategy_find(const char *name) {
  for (const struct strategy_info *i = strategies; name && i->name; i++)
    if (strcmp(i->name, name) == 0) return i;
  return NULL;
}

const struct strategy_info *strategy_default(enum default_for devices) {
  const struct strategy_info *i = strategies;
  while (i->name && i->default_for != devices) i++;
  return i;
}

static int names_of(struct arena *a, const char *first, uint32_t settings, const char ***out) {
  int n = 0, count = 1;
  while (strategies[count - 1].name) count++;
  const char **names = *out = arena_new_array(a, (size_t)count, const char *);
  if (first) names[n++] = first;
  for (const struct strategy_info *i = strategies; i->name; i++)
    if (!settings || (i->settings & settings)) names[n++] = i->name;
  return n;
}

const char *strategies_taking(struct arena *a, uint32_t settings) {
  const char **names;
  int n = names_of(a, NULL, settings, &names);
  struct str s = str_make(a);
  for (int i = 0; i < n; i++) str_printf(&s, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " or ", names[i]);
  return s.data;
}

/* "mirrored" of "tf.distribute.MirroredStrategy", and what others call it; NULL: nothing. */
static const char *called_elsewhere(const char *name) {
  const char *word = strrchr(name, '.') ? strrchr(name, '.') + 1 : name, *end = strcasestr(word, "Strategy");
  size_t len = end ? (size_t)(end - word) : strlen(word);
  for (const struct strategy_info *i = strategies; i->name; i++)
    if (str_has_word(i->name, word, len) || str_has_word(i->theirs, word, len)) return i->name;
  return NULL;
}

void strategy_unknown(const char *name, const char *first, struct loc loc, struct diags *d) {
  const char **names;
  int n = names_of(d->arena, first, 0, &names);
  diag_error(d, loc, "there is no strategy '%s'", name);
  const char *meant = called_elsewhere(name);
  if (meant)
    diag_meant(d, LOC_NONE, name, meant, '\'');
  else
    diag_closest(d, LOC_NONE, name, names, (size_t)n, "strategies are");
}
