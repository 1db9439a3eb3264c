/* The variable of the source that a placed one is a copy or a part of, by its name. */
#include "ir/certify/context.h"

#include <string.h>

/* What an optimizer keeps for a part: "v.adam.m" of "v/part_0.adam.m". */
static const struct node *slot_of_part(const struct graph *source, const char *name) {
  const char *mark = strstr(name, "/part_");
  char slot[512];
  if (!mark) return NULL;
  const char *end = mark + strlen("/part_") + strspn(mark + strlen("/part_"), "0123456789");
  size_t before = (size_t)(mark - name), after = strlen(end);
  if (*end != '.' || before + after >= sizeof slot) return NULL;
  memcpy(slot, name, before);
  memcpy(slot + before, end, after + 1);
  return graph_find(source, slot);
}

const struct node *certify_variable(const struct graph *source, const char *name) {
  const struct node *n = graph_find(source, name);
  if (!n && strncmp(name, "tower_", 6) == 0 && strchr(name, '/')) { /* a copy that is joined on read */
    n = graph_find(source, strchr(name, '/') + 1);
    return n && is_on_read(n) ? n : NULL;
  }
  for (size_t len = strlen(name); !n && len > 0;) {
    size_t end = len;
    while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') end--;
    static const char *const marks[] = {"/replica_", "/part_"};
    size_t cut = len;
    for (int i = 0; i < 2; i++) {
      size_t size = strlen(marks[i]);
      if (end < len && end >= size && memcmp(name + end - size, marks[i], size) == 0) cut = end - size;
    }
    if (cut == len) break;
    n = map_getn(&source->names, name, len = cut);
  }
  if (!n) n = slot_of_part(source, name);
  return node_is(n, OP_variable) ? n : NULL;
}
