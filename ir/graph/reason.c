/* SPDX-License-Identifier: Apache-2.0 */
/* The rule that placed a node, as graph text says it behind the node: the one that won, and the one it won over.
 *
 *   why = rule [ " over " rule ]
 */
#include "ir/graph/text.h"

#include <string.h>

static const char over_word[] = " over ";

const char *reason_text(struct arena *a, struct reason why) {
  return why.over ? arena_printf(a, "%s%s%s", why.rule, over_word, why.over) : why.rule;
}

struct reason reason_read(struct arena *a, const char *text) {
  const char *end = strstr(text, over_word);
  if (!end) return (struct reason){.rule = text};
  return (struct reason){arena_strndup(a, text, (size_t)(end - text)), end + sizeof over_word - 1};
}
