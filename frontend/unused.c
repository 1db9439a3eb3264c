/* SPDX-License-Identifier: Apache-2.0 */
/* Warns of parameters, inputs, variables and bindings that nothing reads. Looks at the text alone, so that
 * what an untaken `if` reads counts as read. */
#include "frontend/resolve.h"

static void see(struct map *used, const struct expr *e) {
  for (; e; e = e->lhs) {
    if (e->kind == EXPR_NAME) map_put(used, e->name, used);
    see(used, e->base);
    see(used, e->condition);
    see(used, e->rhs);
    for (const struct arg *a = e->items.first; a; a = a->next) see(used, a->value);
  }
}

static void see_block(struct map *used, const struct block *b) {
  for (const struct stmt *s = b->first; s; s = s->next) {
    see(used, s->type);
    see(used, s->value);
    see(used, s->limit);
    see(used, s->optimizer);
    see(used, s->over);
    see(used, s->place);
    for (const struct arg *a = s->entries.first; a; a = a->next) see(used, a->value);
    for (const struct arg *a = s->settings.first; a; a = a->next) see(used, a->value);
    for (const struct name *n = s->carried.first; n; n = n->next) map_put(used, n->text, used);
    see_block(used, &s->body);
    see_block(used, &s->otherwise);
    if (s->kind == STMT_ASSIGN || s->kind == STMT_ADD) map_put(used, s->names.first->text, used);
  }
}

enum { MAX_WARNINGS = 20 };

/* At most MAX_WARNINGS: `count` of them so far. */
static void warn_block(struct resolver *r, const struct map *used, const struct block *b, int *count) {
  for (const struct stmt *s = b->first; s; s = s->next) {
    const char *what = s->kind == STMT_INPUT                          ? "input"
                       : s->kind == STMT_BIND || s->kind == STMT_SCAN ? "value"
                       : s->kind == STMT_VAR || s->kind == STMT_STATE ? "variable"
                                                                      : NULL;
    for (const struct name *n = s->names.first; what && n; n = n->next)
      if (n->text[0] != '_' && !map_get(used, n->text) && (*count)++ < MAX_WARNINGS)
        diag_warning(r->diags, n->loc, "%s `%s` is never used", what, n->text);
    warn_block(r, used, &s->body, count);
    warn_block(r, used, &s->otherwise, count);
  }
}

void warn_unused(struct resolver *r, const struct file *file) {
  int count = 0;
  for (const struct def *d = file->defs; d; d = d->next) {
    struct map used = map_make(r->arena);
    see_block(&used, &d->body);
    for (const struct arg *w = d->with.first; w; w = w->next) see(&used, w->value);
    for (const struct param *p = d->params.first; p; p = p->next) {
      see(&used, p->type);
      see(&used, p->value);
    }
    for (const struct param *p = d->params.first; p; p = p->next)
      if (p->name[0] != '_' && !map_get(&used, p->name))
        diag_warning(r->diags, p->loc, "parameter `%s` of `%s` is never used", p->name, d->name);
    warn_block(r, &used, &d->body, &count);
  }
}
