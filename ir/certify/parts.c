/* SPDX-License-Identifier: Apache-2.0 */
/* Variables that lie in parts: from part 0 on they hold the rows of their variable one behind the other, all of it. */
#include "ir/certify/breach.h"
#include "ir/certify/placed.h"
#include "ir/certify/reference.h"
#include "ir/ops/op_id.h"

#include <string.h>

static bool is_rows_of(const struct type *part, const struct type *whole) {
  if (part->rank != whole->rank || part->dtype != whole->dtype || part->rank == 0) return false;
  for (int i = 1; i < part->rank; i++)
    if (part->dim[i] != whole->dim[i]) return false;
  return true;
}

/* That v is there with all parts before it, fits, and ends where the variable ends if it is the last. */
static bool check(struct certify *c, const struct node *v, const struct node *s) {
  const char *of = node_string(v, ATTR_of);
  int64_t part = node_int(v, ATTR_part), rows = 0, k = 0;
  if (!is_rows_of(&v->type, &s->type)) {
    certify_breach(c, CLAIM_VARIABLES, v, "it is no part of %s : %s", s->name, type_text(c->arena, &s->type));
    return false;
  }
  const struct node *same = certify_part(c, of, part);
  if (!type_equal(&same->type, &v->type)) {
    certify_breach(c, CLAIM_VARIABLES, v, "%s is part %lld of %s, too, and is %s", same->name,
                   (long long)part, of, type_text(c->arena, &same->type));
    return false;
  }
  for (const struct node *p; (p = certify_part(c, of, k)) && p->type.rank; k++) rows += p->type.dim[0];
  if (rows == s->type.dim[0] && part < k) return true;
  certify_breach(c, CLAIM_VARIABLES, v, "the %lld parts from the first on hold %lld rows of %lld",
                 (long long)k, (long long)rows, (long long)s->type.dim[0]);
  return false;
}

/* What the parts of v stand for, and their updates, as the source has them. */
static void read_parts(struct certify *c, const struct node *v, const struct node *s,
                       const struct node *const *writers) {
  int64_t first, rows = certify_part_rows(c, v, &first);
  const struct node *w = writers[s->id];
  if (c->global[s->id]) certify_rows_of(c, v, c->global[s->id], first, rows);
  if (w && c->global[w->id]) certify_rows_of(c, w, c->global[w->id], first, rows);
}

/* Everything in the reference is the source's. */
static void know_all(struct certify *c) {
  struct share **share = arena_new_array(c->arena, c->ref->count + 1, struct share *);
  memcpy(share, c->share, sizeof *share * c->known);
  c->share = share;
  c->known = c->ref->count;
}

bool certify_parts(struct certify *c) {
  bool ok = true;
  const struct node **writers = arena_new_array(c->arena, c->source->count + 1, const struct node *);
  for (uint32_t i = 0; i < c->source->count; i++)
    if (c->source->nodes[i]->op == OP_assign)
      writers[c->source->nodes[i]->inputs[0]->id] = c->source->nodes[i];
  for (uint32_t i = 0; i < c->placed->count; i++) {
    const struct node *v = c->placed->nodes[i];
    if (v->op != OP_variable || !certify_is_part(c, v)) continue;
    const struct node *s = certify_variable(c, v);
    if (check(c, v, s))
      read_parts(c, v, s, writers);
    else
      ok = false;
  }
  know_all(c);
  return ok;
}
