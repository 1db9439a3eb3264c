/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of the reference.
 *
 * A chain of slices and concatenations, however long, becomes one list of runs, each a range of rows of a value that is
 * neither: so a gradient that went through a pack or around a ring in pieces equals the gradient itself. Rows are
 * elements of axis 0. */
#include "ir/certify/reference.h"
#include "ir/graph/build.h"
#include "ir/ops/op_id.h"

#include <string.h>

struct row_range {
  struct node *of;
  int64_t begin, end;
};

struct row_ranges {
  struct certify *c;
  struct row_range *list;
  int count, cap;
};

static bool takes_rows(const struct node *n) {
  if (n->op != OP_slice || n->type.rank == 0) return false;
  int count;
  const int64_t *begin = node_ints(n, ATTR_begin, &count);
  for (int i = 1; i < count; i++)
    if (begin[i] != 0 || n->type.dim[i] != n->inputs[0]->type.dim[i]) return false;
  return true;
}

static bool joins_rows(const struct node *n) { return n->op == OP_concat && node_int(n, ATTR_axis) == 0; }

static void push(struct row_ranges *r, struct node *x, int64_t begin, int64_t end) {
  struct row_range *last = r->count ? &r->list[r->count - 1] : NULL;
  if (last && last->of == x && last->end == begin) {
    last->end = end;
    return;
  }
  if (r->count == r->cap) {
    r->cap = r->cap ? 2 * r->cap : 8;
    struct row_range *more = arena_new_array(r->c->arena, (size_t)r->cap, struct row_range);
    if (r->count) memcpy(more, r->list, (size_t)r->count * sizeof *more);
    r->list = more;
  }
  r->list[r->count++] = (struct row_range){x, begin, end};
}

/* Where the rows of each operand of a concatenation begin: many slices are taken of one. */
static const int64_t *starts_of(struct certify *c, const struct node *x) {
  if (x->id >= c->nstarts) {
    uint32_t more = 2 * c->ref->count + 64;
    int64_t **known = arena_new_array(c->arena, more, int64_t *);
    if (c->nstarts) memcpy(known, c->starts, sizeof *known * c->nstarts);
    c->starts = known;
    c->nstarts = more;
  }
  if (c->starts[x->id]) return c->starts[x->id];
  int64_t *starts = c->starts[x->id] = arena_new_array(c->arena, (size_t)x->ninputs + 1, int64_t);
  certify_work(c, (uint64_t)x->ninputs);
  for (int k = 0; k < x->ninputs; k++) starts[k + 1] = starts[k] + x->inputs[k]->type.dim[0];
  return starts;
}

static void add(struct row_ranges *r, struct node *x, int64_t begin, int64_t end) {
  if (begin >= end) return;
  certify_work(r->c, 1);
  if (takes_rows(x)) {
    int count;
    int64_t first = node_ints(x, ATTR_begin, &count)[0];
    add(r, x->inputs[0], begin + first, end + first);
    return;
  }
  if (!joins_rows(x)) {
    push(r, x, begin, end);
    return;
  }
  const int64_t *starts = starts_of(r->c, x);
  int lo = 0, hi = x->ninputs; /* the last operand that begins at `begin` or before */
  while (lo + 1 < hi) {
    int mid = (lo + hi) / 2;
    if (starts[mid] <= begin)
      lo = mid;
    else
      hi = mid;
  }
  for (int k = lo; k < x->ninputs && starts[k] < end; k++) {
    int64_t from = begin > starts[k] ? begin - starts[k] : 0;
    int64_t rows = x->inputs[k]->type.dim[0], to = end - starts[k];
    add(r, x->inputs[k], from, to < rows ? to : rows);
  }
}

/* ---- rows of an expression ---- */

static struct node *rows_of(struct certify *c, struct node *x, int64_t begin, int64_t end);

/* The op of x on these rows of what it reads; NULL if its rows are not so made. */
static struct node *inward(struct certify *c, const struct node *x, int64_t begin, int64_t end) {
  struct type t = x->type;
  struct attr attrs[ATTR_COUNT];
  int nattrs = x->nattrs, along = node_along(x, 0);
  bool counted = node_is_counted(x);
  if (!counted && along != 0 && along != ALONG_NONE) return NULL;
  if (x->op == OP_identity) return NULL; /* a value lifted to a tower */
  t.dim[0] = end - begin;
  if (counted)
    nattrs = counted_from(x, begin, attrs);
  else
    memcpy(attrs, x->attrs, sizeof *attrs * (size_t)nattrs);
  struct node **in = arena_new_array(c->arena, (size_t)x->ninputs + 1, struct node *);
  for (int k = 0; k < x->ninputs; k++)
    if (!(in[k] = along == 0 ? rows_of(c, x->inputs[k], begin, end) : x->inputs[k])) return NULL;
  struct node like = *x;
  like.name = arena_printf(c->arena, "rows of %s", x->name);
  return certify_make(c, &like, in, nattrs, attrs, op_of(x)->traits & OP_TYPED ? &t : NULL, -1);
}

static struct node *raw_rows(struct certify *c, struct node *x, int64_t begin, int64_t end) {
  struct type t = x->type;
  int64_t from[MAX_RANK] = {begin};
  t.dim[0] = end - begin;
  struct attr first = attr_ints(ATTR_begin, t.rank, from);
  return build_named(c->ref, arena_printf(c->arena, "rows of %s", x->name), OP_slice, 1, &x, 1, &first, &t);
}

/* Rows of what is the same everywhere, computed from rows: so part of a variable's update is the update of a
 * part. */
static struct node *rows_of(struct certify *c, struct node *x, int64_t begin, int64_t end) {
  if (begin == 0 && end == x->type.dim[0]) return x;
  struct node *raw = raw_rows(c, x, begin, end);
  if (!raw || x->tower >= 0) return raw;
  if (raw->id >= c->ninward) {
    uint32_t more = 2 * c->ref->count + 64;
    struct node **known = arena_new_array(c->arena, more, struct node *);
    if (c->ninward) memcpy(known, c->inward, sizeof *known * c->ninward);
    c->inward = known;
    c->ninward = more;
  }
  if (!c->inward[raw->id]) {
    struct node *made = inward(c, x, begin, end);
    c->inward[raw->id] = made ? made : raw;
  }
  return c->inward[raw->id];
}

struct node *certify_rows_of(struct certify *c, const struct node *like, struct node *x, int64_t begin,
                             int64_t rows) {
  struct node slice = {.op = OP_slice, .name = like->name, .ninputs = 1};
  struct type t = x->type;
  int64_t from[MAX_RANK] = {begin};
  t.dim[0] = rows;
  struct attr first = attr_ints(ATTR_begin, t.rank, from);
  return certify_make(c, &slice, &x, 1, &first, &t, -1);
}

static struct node *runs_of(struct certify *c, const struct node *n) {
  if (!takes_rows(n) && !joins_rows(n)) return NULL;
  struct row_ranges r = {.c = c};
  if (n->op == OP_slice) {
    int count;
    int64_t first = node_ints(n, ATTR_begin, &count)[0];
    add(&r, n->inputs[0], first, first + n->type.dim[0]);
  } else
    for (int k = 0; k < n->ninputs; k++) add(&r, n->inputs[k], 0, n->inputs[k]->type.dim[0]);
  if (r.count == 0) return NULL;
  struct node **parts = arena_new_array(c->arena, (size_t)r.count, struct node *);
  for (int i = 0; i < r.count; i++)
    if (!(parts[i] = rows_of(c, r.list[i].of, r.list[i].begin, r.list[i].end))) return NULL;
  struct attr axis = attr_int(ATTR_axis, 0);
  return build_named(c->ref, n->name, OP_concat, r.count, parts, 1, &axis, NULL);
}

struct node *certify_make(struct certify *c, const struct node *like, struct node *const *in, int nattrs,
                          const struct attr *attrs, const struct type *type, int tower) {
  c->ref->at.tower = tower;
  if (like->op == OP_slice || like->op == OP_concat) {
    struct node n = *like;
    const char *why;
    n.inputs = (struct node **)(uintptr_t)in;
    n.nattrs = nattrs;
    n.attrs = attrs;
    if (type) n.type = *type;
    struct node *runs = node_infer(c->ref, &n, &why) ? runs_of(c, &n) : NULL;
    if (runs) return runs;
  }
  return build_named(c->ref, like->name, like->op, like->ninputs, in, nattrs, attrs, type);
}
