/* Variables that lie in parts: v/part_0, v/part_1, ... hold the rows of v one behind the other, all of them. */
#include "ir/certify/breach.h"
#include "ir/certify/placed.h"
#include "ir/certify/reference.h"

#include <stdlib.h>
#include <string.h>

static const char mark[] = "/part_";

static const char *part_of(const char *name) { return strstr(name, mark); }

/* Which part a name says it is; -1: none that there can be. */
static int number_of(const char *at) {
  char *end;
  long k = strtol(at + strlen(mark), &end, 10);
  return end == at + strlen(mark) || k < 0 || k > 1 << 20 ? -1 : (int)k;
}

static const struct node *find(const struct certify *c, const char *name, const char *at, int k) {
  return map_get(&c->parts, arena_printf(c->arena, "%.*s%s%d", (int)(at - name), name, mark, k));
}

static bool is_rows_of(const struct type *part, const struct type *whole) {
  if (part->rank != whole->rank || part->dtype != whole->dtype || part->rank == 0) return false;
  for (int i = 1; i < part->rank; i++)
    if (part->dim[i] != whole->dim[i]) return false;
  return true;
}

int64_t certify_part_rows(const struct certify *c, const struct node *v, int64_t *first) {
  const char *at = part_of(v->name);
  *first = 0;
  if (!at || graph_find(c->source, v->name)) return -1;
  for (int k = number_of(at); k-- > 0;) *first += find(c, v->name, at, k)->type.dim[0];
  return v->type.dim[0];
}

/* That part k is there with all before it, fits, and ends where the variable ends if it is the last. */
static bool check(struct certify *c, const struct node *v) {
  const struct node *s = certify_variable(c->source, v->name);
  const char *at = part_of(v->name);
  int64_t rows = 0;
  int k = 0;
  if (s && !is_rows_of(&v->type, &s->type)) {
    certify_breach(c, CLAIM_VARIABLES, v, "it is no part of %s : %s", s->name, type_text(c->arena, &s->type));
    return false;
  }
  if (node_attr(v, ATTR_part) && node_int(v, ATTR_part) != number_of(at)) {
    certify_breach(c, CLAIM_VARIABLES, v, "it says that it is part %lld", (long long)node_int(v, ATTR_part));
    return false;
  }
  for (const struct node *p; s && (p = find(c, v->name, at, k)); k++) rows += p->type.dim[0];
  if (s && rows == s->type.dim[0] && number_of(at) >= 0 && number_of(at) < k) return true;
  if (!s)
    certify_breach(c, CLAIM_VARIABLES, v, "the source has no such variable");
  else
    certify_breach(c, CLAIM_VARIABLES, v, "the %d parts from the first on hold %lld rows of %lld", k,
                   (long long)rows, (long long)s->type.dim[0]);
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
  c->parts = map_make(c->arena);
  for (uint32_t i = 0; i < c->source->count; i++)
    if (c->source->nodes[i]->op == OP_assign)
      writers[c->source->nodes[i]->inputs[0]->id] = c->source->nodes[i];
  for (int round = 0; round < 2; round++)
    for (uint32_t i = 0; i < c->placed->count; i++) {
      const struct node *v = c->placed->nodes[i];
      const char *at = v->op == OP_variable && !graph_find(c->source, v->name) ? part_of(v->name) : NULL;
      if (!at) continue;
      size_t digits = strspn(at + strlen(mark), "0123456789");
      if (round == 0)
        map_put(&c->parts, arena_strndup(c->arena, v->name, (size_t)(at - v->name) + strlen(mark) + digits),
                (void *)(uintptr_t)v);
      else if (!check(c, v))
        ok = false;
      else
        read_parts(c, v, certify_variable(c->source, v->name), writers);
    }
  know_all(c);
  return ok;
}
