/* SPDX-License-Identifier: Apache-2.0 */
/* Which variable of the source a placed one is, and which of its rows it has: by what it says of itself, `of` and
 * `part`, which is what the runtime goes by. The source may lie in parts itself, or have the variable as a whole. */
#include "ir/certify/context.h"
#include "ir/ops/op_id.h"

#include <string.h>

static const char *part_key(struct arena *a, const char *of, int64_t part) {
  return arena_printf(a, "%lld of %s", (long long)part, of);
}

/* The parts of all variables of g that `known` does not have by name. */
static struct map parts_of(struct arena *a, const struct graph *g, const struct graph *known) {
  struct map parts = map_make(a);
  for (uint32_t i = 0; i < g->count; i++) {
    struct node *v = g->nodes[i];
    if (v->op != OP_variable || !node_attr(v, ATTR_part) || (known && graph_find(known, v->name))) continue;
    map_put_owned(&parts, part_key(a, node_string(v, ATTR_of), node_int(v, ATTR_part)), v);
  }
  return parts;
}

void certify_identities(struct certify *c) {
  c->source_parts = parts_of(c->arena, c->source, NULL);
  c->placed_parts = parts_of(c->arena, c->placed, c->source);
}

const struct node *certify_variable(const struct certify *c, const struct node *v) {
  const struct node *s = graph_find(c->source, v->name);
  const struct attr *of = node_attr(v, ATTR_of), *part = node_attr(v, ATTR_part);
  if (!s && of) s = graph_find(c->source, of->string);
  if (of && part && !node_is(s, OP_variable))
    s = map_get(&c->source_parts, part_key(c->arena, of->string, part->i));
  return node_is(s, OP_variable) ? s : NULL;
}

const struct node *certify_part(const struct certify *c, const char *of, int64_t part) {
  return map_get(&c->placed_parts, part_key(c->arena, of, part));
}

bool certify_is_part(const struct certify *c, const struct node *v) {
  const struct node *s = node_attr(v, ATTR_part) ? certify_variable(c, v) : NULL;
  return s && strcmp(s->name, v->name) != 0 && !node_attr(s, ATTR_part);
}

int64_t certify_part_rows(const struct certify *c, const struct node *v, int64_t *first) {
  *first = 0;
  if (!certify_is_part(c, v)) return -1;
  for (int64_t k = 0; k < node_int(v, ATTR_part); k++) {
    const struct node *before = certify_part(c, node_string(v, ATTR_of), k);
    if (!before || before->type.rank == 0) break; /* said already */
    *first += before->type.dim[0];
  }
  return v->type.rank ? v->type.dim[0] : -1;
}
