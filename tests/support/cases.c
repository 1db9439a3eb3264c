/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/cases.h"

#include "ir/ops/op_id.h"
#include "tests/leaves/leaf.h"
#include "tests/support/eval.h"
#include "tests/support/random.h"

#include <string.h>

bool op_takes(enum op_id op, enum dtype d) {
  if (op == OP_attention || op == OP_attention_gradient) return dtype_is_float(d);
  if (op == OP_scatter_add || op == OP_add_along) return d != DT_BOOL;
  switch (op_table[op]->dtypes) {
  case DTYPE_NUMBER: return d != DT_BOOL;
  case DTYPE_FLOAT:
  case DTYPE_TEST: return dtype_is_float(d);
  case DTYPE_SINGLE: return d == DT_F32;
  case DTYPE_BOOL: return d == DT_BOOL;
  case DTYPE_INTEGER: return !dtype_is_float(d) && d != DT_BOOL;
  case DTYPE_INTBOOL: return !dtype_is_float(d);
  default: return true;
  }
}

bool op_is_named(int argc, char **argv, enum op_id op) {
  bool named = argc < 2;
  for (int i = 1; i < argc; i++) named = named || strcmp(argv[i], op_table[op]->name) == 0;
  return named;
}

/* ---- making a case ---- */

struct node *case_leaf(struct cases *c, const struct type *t) {
  struct graph *g = c->g;
  const char *name = arena_printf(g->arena, "c%d.x%d", c->tried, c->nleaves);
  struct node *n = c->variables ? build_variable(g, name, t, true, NULL) : build_input(g, name, t);
  if (!c->leaves) c->leaves = arena_new_array(g->arena, 64, struct node *);
  c->leaves[c->nleaves++] = n;
  return n;
}

void case_done(struct cases *c, struct node *n) {
  if (n && n->op == c->op) {
    if (c->count == c->cap) {
      c->cap = c->cap ? 2 * c->cap : 32;
      struct op_case *more = arena_new_array(c->g->arena, (size_t)c->cap, struct op_case);
      if (c->count) memcpy(more, c->list, sizeof *more * (size_t)c->count);
      c->list = more;
    }
    c->list[c->count++] = (struct op_case){.node = n, .nleaves = c->nleaves, .leaves = c->leaves};
  }
  c->leaves = NULL;
  c->nleaves = 0;
  c->tried++;
}

struct type case_shape(enum dtype d, const char *text) {
  struct type t = {.dtype = (uint8_t)d};
  for (const char *p = text; *p;) {
    int64_t size = 0;
    for (; *p >= '0' && *p <= '9'; p++) size = 10 * size + (*p - '0');
    t.dim[t.rank++] = size;
    if (*p == ',') p++;
  }
  return t;
}

static int ints(const char *text, int64_t *out) {
  struct type t = case_shape(DT_I64, text);
  memcpy(out, t.dim, sizeof t.dim);
  return t.rank;
}

/* ---- elementwise ---- */

enum pattern { WHOLE, SLICED, SCALAR, ROW, COLUMN, TRANSPOSED, PATTERNS };

/* An operand of type t that is read through a view. */
static struct node *operand(struct cases *c, const struct type *t, enum pattern p) {
  struct type from = {.dtype = t->dtype};
  int64_t axes[1] = {0}, perm[MAX_RANK];
  switch (p) {
  case SLICED: { /* a margin of 1 before and 2 behind */
    int64_t begin[MAX_RANK];
    from = *t;
    for (int i = 0; i < t->rank; i++) {
      begin[i] = 1;
      from.dim[i] += 3;
    }
    return build_slice(c->g, case_leaf(c, &from), begin, t);
  }
  case SCALAR: return build_broadcast(c->g, case_leaf(c, &from), t, axes);
  case ROW:
  case COLUMN:
    axes[0] = p == ROW ? t->rank - 1 : 0;
    from.rank = 1;
    from.dim[0] = t->dim[axes[0]];
    return build_broadcast(c->g, case_leaf(c, &from), t, axes);
  case TRANSPOSED:
    from = *t;
    for (int i = 0; i < t->rank; i++) {
      perm[i] = t->rank - 1 - i;
      from.dim[i] = t->dim[perm[i]];
    }
    return build_transpose(c->g, case_leaf(c, &from), perm);
  default: return case_leaf(c, t);
  }
}

static void elementwise(struct cases *c, const struct type *t, enum pattern pattern) {
  int n = op_table[c->op]->min_inputs;
  /* The pattern is that of one operand in turn; of a unary op's only one. */
  for (int odd = 0; odd < (pattern == WHOLE ? 1 : n); odd++) {
    struct node *in[3];
    for (int i = 0; i < n; i++) {
      struct type of = c->op == OP_select && i == 0 ? type_with_dtype(*t, DT_BOOL) : *t;
      in[i] = operand(c, &of, i == odd ? pattern : WHOLE);
    }
    if (c->op == OP_identity) /* the builder would give its operand */
      case_done(c, raw_node(c->g, c->op, n, in, 0, NULL, NULL));
    else if (c->op != OP_cast)
      case_done(c, build(c->g, c->op, n, in, 0, NULL, NULL));
    if (c->op != OP_cast) continue;
    /* a leaf for each target, else all casts of it would be one kernel */
    for (enum dtype to = DT_F32; to < DT_BF16; to++) {
      if (to != DT_F32) in[0] = operand(c, t, pattern);
      case_done(c, build_cast(c->g, in[0], to));
    }
  }
}

static void elementwise_cases(struct cases *c, enum dtype d) {
  static const char *const shapes[] = {"",    "0",     "1",     "15",  "16",     "17",      "33",
                                       "3,5", "2,0,3", "16,17", "1,1", "4,1,33", "2,3,2,17"};
  static const char *const viewed[] = {"1,1", "5,17", "16,3", "33,15", "0,4", "2,3,4"};
  for (int i = 0; i < CASE_COUNT(shapes); i++) {
    struct type t = case_shape(d, shapes[i]);
    if (!c->small || type_count(&t) < 18) elementwise(c, &t, WHOLE);
  }
  for (int i = 0; i < CASE_COUNT(viewed) && !c->small; i++)
    for (enum pattern p = SLICED; p < PATTERNS; p++) {
      struct type t = case_shape(d, viewed[i]);
      elementwise(c, &t, p);
    }
}

/* ---- reductions ---- */

static void reduce_cases(struct cases *c, enum dtype d) {
  static const char *const shapes[] = {"0",   "1",   "15",    "16",   "17",    "33",    "300",
                                       "3,5", "4,0", "16,17", "33,2", "2,3,4", "5,1,6", "2,17,3,2"};
  for (int i = 0; i < CASE_COUNT(shapes); i++) {
    struct type t = case_shape(d, shapes[i]);
    if (c->small && type_count(&t) > 30) continue;
    for (uint32_t mask = 1; mask < 1u << t.rank; mask++)
      case_done(c, build_reduce(c->g, c->op, case_leaf(c, &t), mask));
  }
  /* of a cut, a transposed and a repeated operand */
  for (enum pattern p = SLICED; p < PATTERNS && !c->small; p++)
    for (uint32_t mask = 1; mask < 4; mask++) {
      struct type t = case_shape(d, "18,5");
      case_done(c, build_reduce(c->g, c->op, operand(c, &t, p), mask));
    }
}

static void arg_cases(struct cases *c, enum dtype d) {
  static const char *const shapes[] = {"1", "15", "16", "17", "300", "3,5", "4,0", "16,17", "33,2", "2,3,4"};
  for (int i = 0; i < CASE_COUNT(shapes); i++) {
    struct type t = case_shape(d, shapes[i]);
    for (int axis = 0; axis < t.rank; axis++) case_done(c, build_arg(c->g, c->op, case_leaf(c, &t), axis));
  }
}

/* ---- movement ---- */

static void reshape_cases(struct cases *c, enum dtype d) {
  static const char *const pairs[][2] = {{"6", "2,3"},   {"2,3", "3,2"}, {"1", ""},       {"", "1,1"},
                                         {"0,3", "2,0"}, {"4,4", "16"},  {"3,16", "6,8"}, {"2,3,4", "4,6"}};
  for (int i = 0; i < CASE_COUNT(pairs); i++) {
    struct type from = case_shape(d, pairs[i][0]), to = case_shape(d, pairs[i][1]);
    case_done(c, build_reshape(c->g, case_leaf(c, &from), &to));
  }
}

static void transpose_cases(struct cases *c, enum dtype d, enum pattern p) {
  static const char *const pairs[][2] = {{"3,5", "1,0"},     {"16,17", "1,0"},      {"33,15", "1,0"},
                                         {"0,3", "1,0"},     {"2,3,4", "0,2,1"},    {"2,3,4", "1,0,2"},
                                         {"2,3,4", "1,2,0"}, {"2,3,4", "2,0,1"},    {"2,3,4", "2,1,0"},
                                         {"1,5", "1,0"},     {"2,1,3,2", "3,1,0,2"}};
  for (int i = 0; i < CASE_COUNT(pairs); i++) {
    struct type t = case_shape(d, pairs[i][0]);
    int64_t perm[MAX_RANK];
    ints(pairs[i][1], perm);
    if (!c->small || type_count(&t) < 30) case_done(c, build_transpose(c->g, operand(c, &t, p), perm));
  }
}

static void broadcast_cases(struct cases *c, enum dtype d, enum pattern p) {
  static const char *const triples[][3] = {{"", "17", ""},          {"3", "3,5", "0"},  {"5", "3,5", "1"},
                                           {"2,4", "2,3,4", "0,2"}, {"1", "1,5", "0"},  {"0", "0,3", "0"},
                                           {"3", "3,0", "0"},       {"", "2,3", ""},    {"16", "2,16", "1"},
                                           {"17", "17,33", "0"},    {"3", "2,3,2", "1"}};
  for (int i = 0; i < CASE_COUNT(triples); i++) {
    struct type from = case_shape(d, triples[i][0]), to = case_shape(d, triples[i][1]);
    int64_t axes[MAX_RANK];
    ints(triples[i][2], axes);
    case_done(c, build_broadcast(c->g, operand(c, &from, p), &to, axes));
  }
}

static void slice_cases(struct cases *c, enum dtype d, enum pattern p) {
  static const char *const triples[][3] = {
      {"10", "3", "4"},      {"10", "10", "0"},           {"4,6", "1,2", "2,3"},
      {"4,6", "0,3", "4,1"}, {"2,3,4", "1,0,1", "1,3,2"}, {"33,17", "16,1", "17,16"},
      {"4,0", "1,0", "2,0"}};
  for (int i = 0; i < CASE_COUNT(triples); i++) {
    struct type from = case_shape(d, triples[i][0]), to = case_shape(d, triples[i][2]);
    int64_t begin[MAX_RANK];
    ints(triples[i][1], begin);
    if (!c->small || type_count(&from) < 30)
      case_done(c, build_slice(c->g, operand(c, &from, p), begin, &to));
  }
}

static void pad_cases(struct cases *c, enum dtype d, enum pattern p) {
  static const char *const triples[][3] = {
      {"3", "1", "2"},  {"2,3", "0,1", "2,0"},    {"0", "2", "1"},   {"2,2,2", "1,0,1", "0,1,1"},
      {"16", "0", "1"}, {"17,15", "1,16", "0,2"}, {"1", "16", "16"}, {"2,3,4", "0,1,0", "0,2,0"}};
  for (int i = 0; i < CASE_COUNT(triples); i++) {
    struct type t = case_shape(d, triples[i][0]), value = type_scalar(d);
    int64_t low[MAX_RANK], high[MAX_RANK];
    ints(triples[i][1], low);
    ints(triples[i][2], high);
    if (c->small && type_count(&t) > 30) continue;
    struct node *x = operand(c, &t, p);
    case_done(c, build_pad(c->g, x, low, high, case_leaf(c, &value)));
  }
}

static void concat_cases(struct cases *c, enum dtype d) {
  static const struct {
    int axis, n;
    const char *parts[4];
  } rows[] = {{0, 3, {"3", "4", "1"}},
              {0, 2, {"2,3", "1,3"}},
              {1, 2, {"2,3", "2,1"}},
              {0, 3, {"2", "0", "1"}},
              {1, 2, {"0,3", "0,2"}},
              {0, 4, {"1", "1", "1", "1"}},
              {1, 3, {"2,2,3", "2,1,3", "2,4,3"}},
              {1, 2, {"3,16", "3,17"}},
              {0, 2, {"4", "6"}},
              {1, 2, {"2,4,3", "2,2,3"}}};
  for (int i = 0; i < CASE_COUNT(rows); i++) {
    struct node *x[4];
    for (int k = 0; k < rows[i].n; k++) {
      struct type t = case_shape(d, rows[i].parts[k]);
      x[k] = case_leaf(c, &t);
    }
    case_done(c, build_concat(c->g, rows[i].n, x, rows[i].axis));
  }
  /* more parts than a kernel has arguments */
  struct node *many[40];
  struct type t = case_shape(d, "2,1");
  for (int k = 0; k < 40; k++) many[k] = case_leaf(c, &t);
  case_done(c, build_concat(c->g, 40, many, 1));
  /* one part twice, and one that is computed */
  struct node *x = case_leaf(c, &t), *y = case_leaf(c, &t),
              *turned = build_transpose(
                  c->g, case_leaf(c, &(struct type){.dtype = (uint8_t)d, .rank = 2, .dim = {1, 2}}),
                  (int64_t[]){1, 0});
  case_done(c, build_concat(c->g, 4, (struct node *[]){x, turned, x, y}, 1));
}

/* ---- sources ---- */

static void source_cases(struct cases *c, enum dtype d) {
  static const char *const shapes[] = {"",   "0",   "1",     "15",    "16",   "17",
                                       "33", "3,5", "2,0,3", "16,17", "2,3,4"};
  for (int i = 0; i < CASE_COUNT(shapes); i++) {
    struct type t = case_shape(d, shapes[i]), step = type_scalar(DT_I64);
    bool random = c->op == OP_random_uniform || c->op == OP_random_normal;
    if (random && dtype_is_float(d))
      case_done(c, build_random(c->g, c->op, &t, case_leaf(c, &step), 7 + i, 1000 + i));
    if (random && dtype_is_float(d)) {
      struct node *at = case_leaf(c, &step), *row = case_leaf(c, &step);
      case_done(c, build_random_rows(c->g, c->op, &t, at, row, 3 + i, 7 + i, 1000 + i));
    }
    for (int axis = 0; c->op == OP_iota && d != DT_BOOL && axis < t.rank; axis++)
      case_done(c, build_iota(c->g, &t, axis));
  }
}

static leaf_cases_fn *const leaves[OP_COUNT] = {
#define OP(name, spread)
#define LEAF(name, spread) [OP_##name] = name##_cases,
#include "ir/ops/ops.def"
#undef OP
};

static void movement_cases(struct cases *c, enum dtype d) {
  static void (*const patterned[OP_COUNT])(struct cases * c, enum dtype d, enum pattern p) = {
      [OP_transpose] = transpose_cases,
      [OP_broadcast] = broadcast_cases,
      [OP_slice] = slice_cases,
      [OP_pad] = pad_cases,
  };
  if (c->op == OP_reshape) reshape_cases(c, d);
  if (c->op == OP_concat) concat_cases(c, d);
  if (!patterned[c->op]) return;
  patterned[c->op](c, d, WHOLE);
  patterned[c->op](c, d, SLICED);
}

void cases_add(struct cases *c, enum dtype d) {
  if (!op_takes(c->op, d)) return;
  switch (op_table[c->op]->kind) {
  case KIND_ELEMENTWISE: elementwise_cases(c, d); return;
  case KIND_LEAF: leaves[c->op](c, d); return;
  case KIND_SOURCE: source_cases(c, d); return;
  case KIND_MOVEMENT: movement_cases(c, d); return;
  case KIND_REDUCE:
    if (c->op == OP_argmax || c->op == OP_argmin)
      arg_cases(c, d);
    else
      reduce_cases(c, d);
    return;
  case KIND_EFFECT:
  case KIND_META: return;
  }
}

/* Away from whole quotients. */
static void avoid_jumps(struct rng *r, struct tensor *a, const struct tensor *b) {
  int64_t count = type_count(&a->type);
  for (int64_t i = 0; i < count; i++)
    tensor_set(a, i, tensor_at(b, i) * (rng_below(r, 5) - 2 + rng_uniform(r, 0.2, 0.8)));
}

void case_fill(struct arena *a, struct rng *r, const struct op_case *c, struct values *variables) {
  for (int i = 0; i < c->nleaves; i++) {
    const struct node *x = c->leaves[i];
    struct tensor t = {x->type, arena_alloc(a, (size_t)type_bytes(&x->type))};
    sample_fill(r, op_of(c->node)->domain, i, &t);
    values_put(variables, x->name, &t.type, t.data);
  }
  if (c->node->op == OP_mod)
    avoid_jumps(r, values_get(variables, c->leaves[0]->name), values_get(variables, c->leaves[1]->name));
}
