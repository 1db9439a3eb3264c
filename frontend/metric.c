/* Metrics add up: a batch gives a sum and how many elements it sums, and the figure for all batches is the
 * sum of the sums over the sum of the counts. So a metric must be a mean or a sum over the batch, or be put
 * together from such and from scalars that do not depend on the batch, by + and -, and by * and / with the
 * latter. A ratio() of two sums over the batch adds up as well: both sums do. */
#include "frontend/resolve.h"

#include <string.h>

enum average_kind { AVERAGE_REDUCED, AVERAGE_COMBINED, AVERAGE_SCALED };

struct total {
  struct value sum;
  int64_t count; /* as in struct average */
  struct node *by;
  bool constant; /* the same for every batch: `sum` is the value itself */
};

/* Found when a metric asks for it, once for each average. */
struct memo {
  bool known, adds_up;
  struct total total;
};

struct average {
  enum average_kind kind;
  struct node *sum; /* REDUCED */
  int64_t count;    /* REDUCED: elements; -k means k*B; 0: a sum, not a mean */
  struct node *by;  /* REDUCED: the sum that it is divided by, or NULL */
  enum op_id op;    /* COMBINED: add, sub, neg; SCALED: mul, div */
  struct value a, b;
  struct memo *memo;
};

static struct average *new_average(struct resolver *r, struct average as) {
  as.memo = arena_new(r->arena, struct memo);
  return arena_copy(r->arena, &as, sizeof as);
}

const struct average *average_reduced(struct resolver *r, struct node *sum, int64_t count) {
  return new_average(r, (struct average){.kind = AVERAGE_REDUCED, .sum = sum, .count = count});
}

const struct average *average_ratio(struct resolver *r, const struct value *sum, const struct value *by) {
  const struct value *v[2] = {sum, by};
  for (int i = 0; i < 2; i++) {
    const struct average *q = v[i]->kind == VALUE_TENSOR ? v[i]->tensor.average : NULL;
    if (!q || q->kind != AVERAGE_REDUCED || q->count || q->by) return NULL;
  }
  return new_average(r, (struct average){.kind = AVERAGE_REDUCED,
                                         .sum = sum->tensor.average->sum,
                                         .by = by->tensor.average->sum});
}

static bool has_average(const struct value *v) { return v->kind == VALUE_TENSOR && v->tensor.average; }

const struct average *average_of(struct resolver *r, enum op_id op, const struct value *v, int n) {
  bool a = has_average(&v[0]), b = n > 1 && has_average(&v[1]);
  bool combined = (op == OP_add || op == OP_sub || op == OP_neg || op == OP_identity) && (a || b);
  bool scaled = (op == OP_mul && a != b) || (op == OP_div && a && !b);
  if (!combined && !scaled) return NULL;
  struct average *y = new_average(
      r, (struct average){.kind = combined ? AVERAGE_COMBINED : AVERAGE_SCALED, .op = op, .a = v[0]});
  if (n > 1) y->b = v[1];
  if (op == OP_mul && b) y->a = v[1], y->b = v[0];
  return y;
}

static struct value apply(struct resolver *r, enum op_id op, struct value a, struct value b, struct loc loc) {
  struct value v[] = {a, b};
  v[0].tensor.average = NULL;
  if (b.kind == VALUE_TENSOR) v[1].tensor.average = NULL;
  return elementwise(r, op, v, 2, loc);
}

static struct value count_value(int64_t count) {
  return count < 0 ? (struct value){.kind = VALUE_BATCH, .i = -count} : value_int(count);
}

/* A constant, as a sum of as many elements as the other total has. */
static struct value times_count(struct resolver *r, struct value v, const struct total *t, struct loc loc) {
  return apply(r, OP_mul, v, t->by ? value_tensor(r, t->by, loc) : count_value(t->count), loc);
}

/* Whether the other total is a constant's to join. */
static bool is_mean(const struct total *t) { return !t->constant && (t->count || t->by); }

/* What a value adds up to, where the averages that it is made of are known. */
static bool known_total(struct resolver *r, const struct value *v, struct loc loc, struct total *out) {
  if (has_average(v)) {
    *out = v->tensor.average->memo->total;
    return v->tensor.average->memo->adds_up;
  }
  *out = (struct total){*v, 0, NULL, true};
  if (v->kind == VALUE_TENSOR) return !reach_batch(r, v->tensor.node);
  out->sum = value_tensor(r, value_node(r, v, r->metric_dtype), loc);
  return v->kind == VALUE_INT || v->kind == VALUE_FLOAT;
}

static bool combine(struct resolver *r, const struct average *q, struct loc loc, struct total *out) {
  struct total a, b;
  if (!known_total(r, &q->a, loc, &a)) return false;
  if (q->op == OP_neg || q->op == OP_identity) {
    *out = a;
    if (q->op == OP_neg) out->sum = elementwise(r, OP_neg, &a.sum, 1, loc);
    return true;
  }
  if (!known_total(r, &q->b, loc, &b)) return false;
  if (a.constant && is_mean(&b)) {
    a.sum = times_count(r, a.sum, &b, loc);
    a.count = b.count;
    a.by = b.by;
  } else if (b.constant && is_mean(&a)) {
    b.sum = times_count(r, b.sum, &a, loc);
    b.count = a.count;
  } else if (a.constant != b.constant || a.by != b.by || (a.count < 0) != (b.count < 0) ||
             (a.count > 0) != (b.count > 0)) {
    return false;
  } else if (a.count != b.count) {
    b.sum = apply(r, OP_mul, b.sum, value_float((double)a.count / (double)b.count), loc);
  }
  *out = (struct total){apply(r, q->op, a.sum, b.sum, loc), a.count, a.by, a.constant && b.constant};
  return out->sum.kind != VALUE_ERROR;
}

static bool find_total(struct resolver *r, const struct average *q, struct loc loc, struct total *out) {
  switch (q->kind) {
  case AVERAGE_REDUCED:
    *out = (struct total){value_tensor(r, q->sum, loc), q->count, q->by, false};
    return true;
  case AVERAGE_COMBINED: return combine(r, q, loc, out);
  case AVERAGE_SCALED: {
    struct total factor;
    if (!known_total(r, &q->a, loc, out) || !known_total(r, &q->b, loc, &factor)) return false;
    if (!factor.constant) return false;
    out->sum = apply(r, q->op, out->sum, factor.sum, loc);
    return out->sum.kind != VALUE_ERROR;
  }
  }
  return false;
}

struct stack {
  const struct average **items;
  int count, cap;
};

/* Averages that are not known yet wait there. */
static bool push(struct resolver *r, struct stack *s, const struct value *v) {
  if (!has_average(v) || v->tensor.average->memo->known) return false;
  if (s->count == s->cap) {
    const struct average **more =
        arena_new_array(r->arena, s->cap ? 2 * (size_t)s->cap : 8, const struct average *);
    if (s->count) memcpy(more, s->items, (size_t)s->count * sizeof *more);
    s->items = more;
    s->cap = s->cap ? 2 * s->cap : 8;
  }
  s->items[s->count++] = v->tensor.average;
  return true;
}

/* What v adds up to. Averages that it is made of come first, each once, however often they are in it. */
static bool total_of(struct resolver *r, const struct value *v, struct loc loc, struct total *out) {
  struct stack s = {0};
  push(r, &s, v);
  while (s.count) {
    const struct average *q = s.items[s.count - 1];
    bool first = !q->memo->known && push(r, &s, &q->a), second = !q->memo->known && push(r, &s, &q->b);
    if (first || second) continue;
    if (!q->memo->known) q->memo->adds_up = find_total(r, q, loc, &q->memo->total);
    q->memo->known = true;
    s.count--;
  }
  return known_total(r, v, loc, out);
}

void give(struct resolver *r, enum output_role role, const char *name, struct node *n, int64_t count) {
  graph_add_output(r->g, role, name, n, count);
  map_put(&r->outputs, name, n);
  r->effects++;
}

void run_metric(struct resolver *r, const char *name, struct loc loc, const struct value *v) {
  if (v->kind == VALUE_ERROR) return;
  struct value number = *v;
  struct node *n;
  build_here(r, loc);
  if (v->kind == VALUE_INT || v->kind == VALUE_FLOAT) {
    n = value_node(r, v, DT_F32);
    number = value_tensor(r, n, loc);
  } else {
    n = tensor_node(r, v, "a metric");
  }
  if (!n) return;
  if (n->type.rank != 0) {
    report(r, loc, "a metric is a scalar, not %s", type_text(r->arena, &n->type));
    report_value(r, v);
    report_help(r, "end it in `mean(...)` or `sum(...)`");
    return;
  }
  if (map_get(&r->outputs, name)) {
    report(r, loc, "two metrics are called `%s`", name);
    report_help(r, "a train statement gives the metric `loss`, or what it is named");
    return;
  }
  struct total t;
  r->metric_dtype = (enum dtype)n->type.dtype;
  if (!total_of(r, &number, loc, &t)) {
    report(r, loc, "a metric must end in a mean or a sum over the batch");
    report_note(r, loc, "batches are added up by their sums and counts, and this does not add up");
    return;
  }
  if (t.constant) {
    if (!dtype_is_float((enum dtype)n->type.dtype)) t.sum = value_tensor(r, build_cast(r->g, n, DT_F32), loc);
    t.count = -1;
    t.sum = times_count(r, t.sum, &t, loc);
  }
  if (t.sum.kind != VALUE_TENSOR) return;
  n = t.sum.tensor.node;
  if (!dtype_is_float((enum dtype)n->type.dtype)) n = build_cast(r->g, n, DT_F32);
  if (n) give(r, OUTPUT_METRIC, name, n, t.count);
  if (n && t.by) graph_add_output(r->g, OUTPUT_COUNT, name, t.by, 0);
}

/* How a value that has the rows of the batch on another axis gets them on the first. */
static void help_rows(struct resolver *r, const struct type *t) {
  int batch = type_batch_axis(t);
  if (batch < 0) return;
  if (t->dim[batch] != -1) {
    report_help(r, "reshape it so that the batch has an axis of its own");
    return;
  }
  struct str s = str_make(r->arena);
  str_printf(&s, "%d", batch);
  for (int i = 0; i < t->rank; i++)
    if (i != batch) str_printf(&s, ", %d", i);
  report_help(r, "`transpose(x, [%s])` puts the batch first", s.data);
}

void run_predict(struct resolver *r, const struct stmt *s) {
  const char *saved = r->path;
  const struct name *name = s->names.first;
  r->path = name->text;
  uint32_t mark = r->g->count;
  struct value v = eval(r, s->value, NULL);
  struct node *n = v.kind == VALUE_ERROR ? NULL : tensor_node(r, &v, "a prediction");
  r->path = saved;
  if (!n) return;
  if (n->type.rank == 0 || n->type.dim[0] != -1) {
    report(r, s->value->loc, "a prediction has one row per example: f32[B, ...], not %s",
           type_text(r->arena, &n->type));
    report_value(r, &v);
    help_rows(r, &n->type);
    return;
  }
  if (map_get(&r->outputs, name->text)) {
    report(r, name->loc, "two predictions are called `%s`", name->text);
    return;
  }
  if (n->id >= mark && !(op_of(n)->traits & OP_NO_CSE)) graph_rename(r->g, n, name->text);
  give(r, OUTPUT_PREDICT, name->text, n, 0);
}
