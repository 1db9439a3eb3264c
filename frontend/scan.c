/* SPDX-License-Identifier: Apache-2.0 */
/* `scan`: a loop at run time. Its body is run once, on inputs that stand for the values before a step, and what is made
 * of those becomes the body of the node. */
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"

#include "ir/ops/scan.h"
#include "ir/ops/spread.h"

#include <string.h>

/* A scan that is being built. */
struct loop {
  const struct stmt *s;
  struct scan_step step;
  struct node **initial, **carried, **next, **sequence, **elements, **stacked;
  int axis;
  bool has_length;
};

static bool apply_setting(struct resolver *r, struct loop *l, const struct arg *a) {
  struct value v = eval(r, a->value, NULL);
  if (v.kind == VALUE_ERROR) return false;
  if (a->name && strcmp(a->name, "reverse") == 0) return value_flag(r, &v, "reverse", &l->step.reverse);
  bool axis = a->name && strcmp(a->name, "axis") == 0, length = a->name && strcmp(a->name, "length") == 0;
  if (!axis && !length) {
    report(r, a->loc, "a `scan` has the settings axis, length and reverse");
    return false;
  }
  int64_t most = axis ? MAX_RANK - 1 : MAX_ELEMENTS;
  if (v.kind != VALUE_INT || v.i < 0 || v.i > most) {
    report(r, a->loc, "%s is a number from 0 to %lld, not %s", a->name, (long long)most,
           value_describe(r->arena, &v));
    return false;
  }
  if (axis) l->axis = (int)v.i;
  if (length) l->step.length = v.i;
  l->has_length |= length;
  return true;
}

/* x with the axis as the first one; or the first one there, `back`. */
static struct node *turned(struct graph *g, struct node *x, int axis, bool back) {
  int64_t perm[MAX_RANK];
  if (!x || axis == 0) return x;
  for (int i = 0; i < x->type.rank; i++) perm[i] = i;
  for (int i = 0; i <= axis; i++)
    if (back)
      perm[i] = i == axis ? 0 : i + 1;
    else
      perm[i] = i == 0 ? axis : i - 1;
  return build_transpose(g, x, perm);
}

/* What stands for a value of the type in a step. */
static struct node *stand_in(struct resolver *r, const char *name, struct loc loc, const struct type *t) {
  build_here(r, loc);
  return build_input(r->g, arena_printf(r->arena, "%s.in_step", binding_path(r, name)), t);
}

static bool add_carried(struct resolver *r, struct loop *l, const struct name *n) {
  const struct binding *b = scope_find(r, n->text);
  if (!b) {
    report_unknown(r, n->loc, n->text, false);
    report_help(r, "what is carried is bound before the loop, to what it is before the first step");
    return false;
  }
  struct value v = b->value;
  v.at = n->loc;
  struct node *x = tensor_node(r, &v, "what a `scan` carries");
  if (x) l->initial[l->step.carries++] = x;
  return x != NULL;
}

static bool add_sequence(struct resolver *r, struct loop *l, const struct arg *a) {
  struct value v = eval(r, a->value, NULL);
  struct node *x = tensor_node(r, &v, "what a `scan` goes over");
  if (!x) return false;
  if (l->axis >= x->type.rank) {
    report(r, a->value->loc, "a `scan` goes along axis %d, and %s has none", l->axis,
           value_describe(r->arena, &v));
    return false;
  }
  int64_t length = x->type.dim[l->axis];
  if (length < 0) {
    report(r, a->value->loc, "a `scan` cannot go along the batch, axis %d of %s", l->axis,
           value_describe(r->arena, &v));
    report_help(r, "`scan(axis = 1)` goes along axis 1; rows of the batch have no order");
    return false;
  }
  if (l->has_length && length != l->step.length) {
    report(r, a->value->loc, "`%s` has %lld steps along axis %d, not %lld", a->name, (long long)length,
           l->axis, (long long)l->step.length);
    return false;
  }
  l->step.length = length;
  l->has_length = true;
  build_here(r, a->value->loc);
  l->sequence[l->step.sequences++] = x = turned(r->g, x, l->axis, false);
  return x != NULL;
}

static bool begin(struct resolver *r, struct loop *l) {
  const struct stmt *s = l->s;
  size_t carries = (size_t)s->carried.count + 1, sequences = (size_t)s->entries.count + 1;
  l->initial = arena_new_array(r->arena, carries, struct node *);
  l->carried = arena_new_array(r->arena, carries, struct node *);
  l->next = arena_new_array(r->arena, carries, struct node *);
  l->sequence = arena_new_array(r->arena, sequences, struct node *);
  l->elements = arena_new_array(r->arena, sequences, struct node *);
  for (const struct arg *a = s->settings.first; a; a = a->next)
    if (!apply_setting(r, l, a)) return false;
  for (const struct name *n = s->carried.first; n; n = n->next)
    if (!add_carried(r, l, n)) return false;
  for (const struct arg *a = s->entries.first; a; a = a->next)
    if (!add_sequence(r, l, a)) return false;
  if (l->has_length) return true;
  report(r, s->loc, "nothing says how many steps this `scan` has");
  report_help(r, "`over x_t in x` goes over a tensor, `scan(length = 10)` makes so many steps");
  return false;
}

/* In the scope of a step: what stands for the values in it. */
static void bind_step(struct resolver *r, struct loop *l) {
  int i = 0;
  r->frame->scope->step = false; /* while they are bound: carried names hide those outside */
  for (const struct name *n = l->s->carried.first; n; n = n->next, i++) {
    l->carried[i] = stand_in(r, n->text, n->loc, &l->initial[i]->type);
    struct binding *b = arena_new(r->arena, struct binding);
    *b = (struct binding){.value = value_tensor(r, l->carried[i], n->loc), .loc = n->loc};
    b->value.name = n->text;
    b->value.decl = n->loc;
    map_put(&r->frame->scope->names, n->text, b);
  }
  i = 0;
  for (const struct arg *a = l->s->entries.first; a; a = a->next, i++) {
    struct type t = l->sequence[i]->type;
    memmove(t.dim, t.dim + 1, sizeof *t.dim * --t.rank);
    l->elements[i] = stand_in(r, a->name, a->loc, &t);
    bind(r, a->name, a->loc, value_tensor(r, l->elements[i], a->loc), true, false);
  }
  r->frame->scope->step = true;
}

/* What the names that are carried are bound to behind the body. */
static bool find_next(struct resolver *r, struct loop *l) {
  int i = 0;
  for (const struct name *n = l->s->carried.first; n; n = n->next, i++) {
    struct binding *b = map_get(&r->frame->scope->names, n->text);
    struct value v = b->value;
    v.at = b->loc;
    const struct type *t = &l->initial[i]->type;
    struct node *x = tensor_node(r, &v, "what a `scan` carries");
    if (!x) return false;
    if (!type_equal(&x->type, t)) {
      report(r, n->loc, "`%s` is %s before a step and %s behind it", n->text, type_text(r->arena, t),
             type_text(r->arena, &x->type));
      report_help(r, "a carried value keeps its type: `cast`, `reshape` or `broadcast` what it begins with");
      return false;
    }
    l->next[i] = x;
  }
  return true;
}

/* What a step returns, to be stacked. */
static bool find_stacked(struct resolver *r, struct loop *l, const struct value *result) {
  const struct stmt *s = l->s;
  int count = s->names.count;
  bool list = result->kind == VALUE_LIST;
  const struct value *items = list ? result->list.items : result;
  if (result->kind == VALUE_ERROR) return false;
  if ((list ? result->list.count : 1) != (count ? count : result->kind == VALUE_NONE)) {
    if (count)
      report(r, s->loc, "%d name%s need%s a step that returns as many values", count, count == 1 ? "" : "s",
             count == 1 ? "s" : "");
    else
      report(r, s->loc, "what this step returns has no name: write `name = scan ...`");
    return false;
  }
  l->stacked = arena_new_array(r->arena, (size_t)count + 1, struct node *);
  for (int i = 0; i < count; i++) {
    struct node *x = tensor_node(r, &items[i], "what a step of a `scan` returns");
    if (!x) return false;
    if (l->axis > x->type.rank || x->type.rank == MAX_RANK) {
      report(r, items[i].at, "%s cannot be stacked along axis %d", type_text(r->arena, &x->type), l->axis);
      report_help(r, "`scan(axis = 0)` goes along axis 0");
      return false;
    }
    l->stacked[l->step.stacks++] = x;
  }
  return true;
}

/* Numbers that are drawn in a step would be the same in all steps. */
static bool draws_nothing(struct resolver *r, uint32_t mark, struct loc loc) {
  for (uint32_t i = mark; i < r->g->count; i++) {
    if (r->g->nodes[i]->op == OP_local) {
      report(r, loc, "what a tower has for itself is made in no step of a `scan`");
      report_help(r, "make it before the loop, or behind it of all steps at once");
      return false;
    }
    if (node_is_counted(r->g->nodes[i]) && r->g->nodes[i]->op != OP_iota) {
      report(r, loc, "random numbers that are drawn in a `scan` would be the same in all of its steps");
      report_help(r, "draw them before the loop, for all steps, and go over them: `over x_t in x, r_t in r`");
      return false;
    }
  }
  return true;
}

/* Runs the body once; *result is what it returns. */
static bool run_step(struct resolver *r, struct loop *l, struct value *result) {
  struct frame *f = r->frame;
  const char *path = r->path;
  uint64_t block = f->block;
  uint32_t mark = r->g->count;
  f->block = ++r->serial;
  f->loops++;
  f->step++;
  r->frame->scans++;
  scope_push(r);
  bind_step(r, l);
  run_block(r, &l->s->body);
  *result = f->returned ? f->result : value_none();
  f->returned = false;
  bool ok = find_next(r, l);
  scope_pop(r);
  r->frame->scans--;
  f->step--;
  f->loops--;
  f->block = block;
  r->path = path;
  return ok && draws_nothing(r, mark, l->s->loc);
}

static void bind_results(struct resolver *r, struct loop *l, struct node *scan) {
  int i = 0;
  for (const struct name *n = l->s->carried.first; n; n = n->next, i++) {
    build_here(r, n->loc);
    struct node *x =
        scan ? scan_result(r->g, scan, i, arena_printf(r->arena, "%s.last", binding_path(r, n->text))) : NULL;
    bind(r, n->text, n->loc, value_tensor(r, x, n->loc), false, true);
  }
  for (const struct name *n = l->s->names.first; n; n = n->next, i++) {
    build_here(r, n->loc);
    const char *path = binding_path(r, n->text);
    struct node *x = scan ? scan_result(r->g, scan, i, arena_printf(r->arena, "%s.steps", path)) : NULL;
    r->g->at.scope = path;
    x = turned(r->g, x, l->axis, true);
    bind(r, n->text, n->loc, value_tensor(r, x, n->loc), false, false);
  }
}

void run_scan(struct resolver *r, const struct stmt *s) {
  struct loop l = {.s = s, .axis = 1};
  struct value result = value_none();
  bool ok = begin(r, &l) && run_step(r, &l, &result) && find_stacked(r, &l, &result);
  r->effects.count++;
  struct node *scan = NULL;
  if (ok && !r->budget.stopped) {
    l.step.initial = l.initial, l.step.carried = l.carried, l.step.next = l.next;
    l.step.sequence = l.sequence, l.step.elements = l.elements, l.step.stacked = l.stacked;
    const struct name *first = s->carried.first ? s->carried.first : s->names.first;
    if (!first) {
      report(r, s->loc, "this `scan` carries nothing and has no result");
      return;
    }
    build_here(r, s->loc);
    const char *name =
        arena_printf(r->arena, "%s.%s", binding_path(r, first->text), s->carried.first ? "last" : "steps");
    scan = scan_extract(r->g, name, &l.step);
  }
  bind_results(r, &l, scan);
}
