/* SPDX-License-Identifier: Apache-2.0 */
/* The rule that placed a node, as graph text says it behind the node: the one that won, and the one it won over.
 *
 *   why = rule [ " over " rule ]
 */
#include "ir/graph/text.h"

#include <string.h>

static const char over_word[] = " over ";

const char *rule_over(struct arena *a, const char *won, const char *lost) {
  return arena_printf(a, "%s%s%s", won, over_word, lost);
}

const char *rule_won(struct arena *a, const char *why, const char **lost) {
  const char *end = strstr(why, over_word);
  *lost = end ? end + sizeof over_word - 1 : NULL;
  return end ? arena_strndup(a, why, (size_t)(end - why)) : why;
}
