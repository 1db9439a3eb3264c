#include "mutations.h"

#include <string.h>

/* ---- places ---- */

/* The fault is n's, or shows in the first that read it. */
static bool planted(struct patient *p, const struct node *n) {
  suspect(p, n->name);
  for (uint32_t i = 0; i < p->g->count; i++)
    for (int k = 0; k < p->g->nodes[i]->ninputs; k++)
      if (p->g->nodes[i]->inputs[k] == n && p->nnames < 6) suspect(p, p->g->nodes[i]->name);
  for (int i = 0; i < p->g->noutputs; i++)
    if (p->g->outputs[i].node == n) suspect(p, p->g->outputs[i].name);
  return true;
}

#define EACH(p, n)                                         \
  for (uint32_t i_##n = 0; i_##n < (p)->g->count; i_##n++) \
    for (struct node *n = (p)->g->nodes[i_##n]; n; n = NULL)

static const struct node *through(const struct node *n) {
  while (n->op == OP_copy) n = n->inputs[0];
  return n;
}

static bool is_share(const struct node *n) { return n->dist >= DIST_PARTIAL; }

/* An addition of two towers' shares, or more. */
static bool is_join(const struct node *n) {
  return n->ninputs == 2 && (n->op == OP_add || n->op == OP_max || n->op == OP_min) &&
         is_share(n->inputs[0]) && is_share(n->inputs[1]) &&
         through(n->inputs[0])->tower != through(n->inputs[1])->tower;
}

/* A tower's own share, not yet joined. */
static bool is_leaf(const struct node *n) { return is_share(n) && n->op != OP_copy && !is_join(n); }

static void replace(struct patient *p, const struct node *old, struct node *by) {
  EACH(p, n)
  for (int k = 0; k < n->ninputs; k++)
    if (n->inputs[k] == old && n != by) n->inputs[k] = by;
  for (int i = 0; i < p->g->noutputs; i++)
    if (p->g->outputs[i].node == old) p->g->outputs[i].node = by;
}

/* A node more, before number `at`. */
static struct node *insert(struct patient *p, uint32_t at, struct node n) {
  struct graph *g = p->g;
  struct node **more = arena_new_array(p->arena, g->count + 1, struct node *);
  memcpy(more, g->nodes, sizeof *more * at);
  memcpy(more + at + 1, g->nodes + at, sizeof *more * (g->count - at));
  more[at] = arena_copy(p->arena, &n, sizeof n);
  more[at]->inputs = arena_copy(p->arena, n.inputs, sizeof *n.inputs * (size_t)n.ninputs);
  g->nodes = more;
  g->count++;
  for (uint32_t i = at; i < g->count; i++) g->nodes[i]->id = i;
  return more[at];
}

/* An elementwise node at the place of `like`. */
static struct node *insert_op(struct patient *p, const struct node *like, enum op_id op, struct node *a,
                              struct node *b) {
  struct node n = *like, *in[2] = {a, b};
  n.op = op;
  n.name = arena_printf(p->arena, "%s.planted", like->name);
  n.inputs = in;
  n.ninputs = b ? 2 : 1;
  n.nattrs = 0;
  uint32_t after = a->id;
  if (b && b->id > after) after = b->id;
  return insert(p, after + 1, n);
}

static struct attr *attr_of(struct patient *p, struct node *n, enum attr_key key) {
  struct attr *attrs = arena_copy(p->arena, n->attrs, sizeof *attrs * (size_t)n->nattrs);
  n->attrs = attrs;
  for (int i = 0; i < n->nattrs; i++)
    if (attrs[i].key == key) return &attrs[i];
  return NULL;
}

static void remove_attr(struct patient *p, struct node *n, enum attr_key key) {
  struct attr *a = attr_of(p, n, key), *end = (struct attr *)(uintptr_t)n->attrs + n->nattrs;
  memmove(a, a + 1, sizeof *a * (size_t)(end - a - 1));
  n->nattrs--;
}

static void remove_output(struct patient *p, int i) {
  memmove(&p->g->outputs[i], &p->g->outputs[i + 1], sizeof *p->g->outputs * (size_t)(p->g->noutputs - i - 1));
  p->g->noutputs--;
}

/* Another node of the same type, place and towers that `reader` may read and does not. */
static struct node *other_like(struct patient *p, const struct node *reader, const struct node *x) {
  struct node *found = NULL;
  EACH(p, n) {
    if (n->id >= reader->id || n == x || through(n) == through(x) || !type_equal(&n->type, &x->type) ||
        n->dist != x->dist || n->tower != x->tower || n->device != x->device)
      continue;
    bool reads = false;
    for (int k = 0; k < reader->ninputs; k++) reads |= through(reader->inputs[k]) == through(n);
    if (!reads) found = n;
  }
  return found;
}

/* Another variable of the same type on the same device, not both copies of one. */
static struct node *other_variable(struct patient *p, const struct node *x) {
  size_t stem = strcspn(x->name, "/");
  EACH(p, n)
  if (n->op == OP_variable && n != x && n->device == x->device && type_equal(&n->type, &x->type) &&
      (strncmp(n->name, x->name, stem) != 0 || strcspn(n->name, "/") != stem))
    return n;
  return NULL;
}

/* The same node of another tower: tower_2/x for x. */
static struct node *twin(struct patient *p, const struct node *x, const struct node *reader) {
  const char *stem = strncmp(x->name, "tower_", 6) == 0 ? strchr(x->name, '/') + 1 : x->name;
  EACH(p, n) {
    const char *other = strncmp(n->name, "tower_", 6) == 0 ? strchr(n->name, '/') + 1 : n->name;
    if (n->tower >= 0 && n->tower != x->tower && n->id < reader->id && strcmp(stem, other) == 0 &&
        type_equal(&n->type, &x->type))
      return n;
  }
  return NULL;
}

/* ---- the scale ---- */

/* A factor is lost: who read the product reads its operand. */
static bool drop(struct patient *p, enum op_id op, bool towers) {
  EACH(p, n) {
    if (n->op != op || (n->tower >= 0) != towers || !here(p)) continue;
    planted(p, n);
    replace(p, n, n->inputs[op == OP_mul]);
    return planted(p, n->inputs[op == OP_mul]);
  }
  return false;
}
static bool dropped_divide(struct patient *p) { return drop(p, OP_div, false); }
static bool dropped_factor(struct patient *p) { return drop(p, OP_mul, false); }
static bool dropped_factor_of_tower(struct patient *p) { return drop(p, OP_mul, true); }

static bool sum_scaled(struct patient *p) {
  EACH(p, n) {
    if (!is_join(n) || n->dist != DIST_MIRRORED || !here(p)) continue;
    struct node *half = insert_op(p, n, OP_add, n, n);
    replace(p, n, half);
    half->inputs[0] = half->inputs[1] = n;
    return planted(p, half);
  }
  return false;
}

static bool wrong_constant(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_constant || n->type.dtype != DT_F32 || !here(p)) continue;
    struct attr *a = attr_of(p, n, ATTR_value);
    float *data = arena_copy(p->arena, a->data, (size_t)a->count);
    data[0] += 0.3125f;
    a->data = data;
    return planted(p, n);
  }
  return false;
}

static bool wrong_batch_attribute(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_batch_size || !here(p)) continue;
    attr_of(p, n, ATTR_batch)->i /= 2;
    return planted(p, n);
  }
  return false;
}

/* A tower counts for more than the others. */
static bool share_scaled(struct patient *p) {
  EACH(p, n) {
    if (!is_leaf(n) || n->dist != DIST_PARTIAL || !here(p)) continue;
    struct node *twice = insert_op(p, n, OP_add, n, n);
    replace(p, n, twice);
    twice->inputs[0] = twice->inputs[1] = n;
    planted(p, n);
    return planted(p, twice);
  }
  return false;
}

static bool wrong_metric_count(struct patient *p) {
  for (int i = 0; i < p->g->noutputs; i++) {
    struct output *o = &p->g->outputs[i];
    if (o->role != OUTPUT_METRIC || !here(p)) continue;
    o->count /= 2;
    suspect(p, o->name);
    return true;
  }
  return false;
}

/* ---- sums ---- */

static bool doubled_leaf(struct patient *p) {
  EACH(p, n) {
    if (!is_join(n) || n->op != OP_add || !here(p)) continue;
    n->inputs[1] = n->inputs[0];
    return planted(p, n);
  }
  return false;
}

static bool missing_leaf(struct patient *p) {
  EACH(p, n) {
    if (!is_join(n) || !here(p)) continue;
    planted(p, n);
    suspect(p, arena_strndup(p->arena, n->name, strcspn(n->name, ".")));
    replace(p, n, n->inputs[0]);
    return true;
  }
  return false;
}

static bool leaf_of_another_sum(struct patient *p) {
  EACH(p, n)
  for (int k = 0; is_join(n) && k < 2; k++) {
    struct node *other = other_like(p, n, n->inputs[k]);
    if (!other || !is_share(other) || !here(p)) continue;
    n->inputs[k] = other;
    return planted(p, n);
  }
  return false;
}

/* (0 + 1) + (2 + 3) as (0 + 2) + (1 + 3): the same sum in other bits. */
static bool leaves_swapped_between_towers(struct patient *p) {
  const char *how = p->g->config.cross_device;
  if (how && strcmp(how, "ring") == 0) return false; /* has an order of its own */
  EACH(p, n) {
    if (!is_join(n) || n->op != OP_add) continue;
    struct node *a = (struct node *)(uintptr_t)through(n->inputs[0]);
    struct node *b = (struct node *)(uintptr_t)through(n->inputs[1]);
    if (!is_join(a) || !is_join(b) || b->inputs[0]->id > a->id || a->inputs[1]->id > b->id || !here(p))
      continue;
    struct node *x = a->inputs[1];
    a->inputs[1] = b->inputs[0];
    b->inputs[0] = x;
    planted(p, a);
    planted(p, b);
    return planted(p, n);
  }
  return false;
}

static bool change_join(struct patient *p, enum op_id from, enum op_id to) {
  EACH(p, n) {
    if (!is_join(n) || n->op != from || !here(p)) continue;
    n->op = to;
    return planted(p, n);
  }
  return false;
}
static bool sum_by_maximum(struct patient *p) { return change_join(p, OP_add, OP_max); }
static bool sum_by_difference(struct patient *p) { return change_join(p, OP_add, OP_sub); }
static bool maximum_by_sum(struct patient *p) { return change_join(p, OP_max, OP_add); }
static bool minimum_by_maximum(struct patient *p) { return change_join(p, OP_min, OP_max); }

/* A tower is added once more behind the whole sum. */
static bool leaf_added_again(struct patient *p) {
  EACH(p, n) {
    if (!is_join(n) || n->dist != DIST_MIRRORED || n->op != OP_add || !here(p)) continue;
    struct node *leaf = n->inputs[0], *more = insert_op(p, n, OP_add, n, leaf);
    replace(p, n, more);
    more->inputs[0] = n;
    return planted(p, more);
  }
  return false;
}

/* What should read the sum reads a tower's share of it. */
static bool share_read(struct patient *p, bool linear) {
  EACH(p, n)
  for (int k = 0; k < n->ninputs; k++) {
    const struct node *root = through(n->inputs[k]);
    if (!is_join(root) || root->dist != DIST_MIRRORED || n->op == OP_copy || is_join(n)) continue;
    if ((op_of(n)->linear != 0) != linear || !here(p)) continue;
    planted(p, n);
    n->inputs[k] = root->inputs[0];
    return true;
  }
  return false;
}
static bool share_read_by_nonlinear_op(struct patient *p) { return share_read(p, false); }
static bool update_from_one_tower(struct patient *p) { return share_read(p, true); }

/* ---- the batch ---- */

static bool wrong_split_offset(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_split || n->tower == 0 || !here(p)) continue;
    attr_of(p, n, ATTR_offset)->i--;
    return planted(p, n);
  }
  return false;
}

static bool split_with_a_gap(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_split || n->tower == p->g->config.towers - 1 || !here(p)) continue;
    attr_of(p, n, ATTR_offset)->i++;
    return planted(p, n);
  }
  return false;
}

static bool split_with_fewer_rows(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_split || !here(p)) continue;
    n->type.dim[0]--;
    return planted(p, n);
  }
  return false;
}

static bool split_with_more_rows(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_split || n->tower == p->g->config.towers - 1 || !here(p)) continue;
    n->type.dim[0]++;
    return planted(p, n);
  }
  return false;
}

static bool splits_swapped(struct patient *p) {
  EACH(p, n) {
    struct node *other = n->op == OP_split ? twin(p, n, p->g->nodes[p->g->count - 1]) : NULL;
    if (!other || !here(p)) continue;
    struct attr *a = attr_of(p, n, ATTR_offset), *b = attr_of(p, other, ATTR_offset);
    int64_t first = a->i;
    a->i = b->i;
    b->i = first;
    return planted(p, n);
  }
  return false;
}

static bool split_of_another_input(struct patient *p) {
  EACH(p, n) {
    struct node *other = n->op == OP_split ? other_like(p, n, n->inputs[0]) : NULL;
    if (!node_is(other, OP_input) || !here(p)) continue;
    n->inputs[0] = other;
    return planted(p, n);
  }
  return false;
}

static bool wrong_batch_in_header(struct patient *p) {
  if (!here(p)) return false;
  p->g->config.batch--;
  suspect(p, "rows");
  suspect(p, "the source's x");
  return true;
}

static bool wrong_towers_in_header(struct patient *p) {
  if (p->g->config.towers == 1 || !here(p)) return false;
  p->g->config.towers--;
  suspect(p, "tower");
  return true;
}

/* ---- towers ---- */

static bool reads_another_tower(struct patient *p) {
  EACH(p, n)
  for (int k = 0; k < n->ninputs; k++) {
    struct node *x = n->inputs[k];
    struct node *other = n->tower >= 0 && x->tower == n->tower && !is_join(n) ? twin(p, x, n) : NULL;
    if (!other || !here(p)) continue;
    n->inputs[k] = other;
    return planted(p, n);
  }
  return false;
}

static bool reads_another_value(struct patient *p) {
  EACH(p, n)
  for (int k = 0; k < n->ninputs; k++) {
    struct node *other = n->tower >= 0 && !is_join(n) ? other_like(p, n, n->inputs[k]) : NULL;
    if (!other || n->op == OP_copy || !here(p)) continue;
    n->inputs[k] = other;
    return planted(p, n);
  }
  return false;
}

static bool other_op(struct patient *p, bool towers) {
  static const enum op_id pairs[][2] = {{OP_tanh, OP_sigmoid}, {OP_sigmoid, OP_tanh}, {OP_mul, OP_add},
                                        {OP_sub, OP_add},      {OP_square, OP_neg},   {OP_lt, OP_gt}};
  EACH(p, n)
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    if (n->op != pairs[i][0] || (n->tower >= 0) != towers || is_share(n) || !here(p)) continue;
    n->op = pairs[i][1];
    return planted(p, n);
  }
  return false;
}
static bool another_op_in_a_tower(struct patient *p) { return other_op(p, true); }
static bool another_op_in_an_update(struct patient *p) { return other_op(p, false); }

static bool operands_swapped(struct patient *p) {
  EACH(p, n) {
    if ((n->op != OP_sub && n->op != OP_div && n->op != OP_lt) || !here(p)) continue;
    struct node *first = n->inputs[0];
    n->inputs[0] = n->inputs[1];
    n->inputs[1] = first;
    return planted(p, n);
  }
  return false;
}

static bool not_transposed(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_matmul || !node_attr(n, ATTR_transpose_b) || !here(p)) continue;
    remove_attr(p, n, ATTR_transpose_b);
    return planted(p, n);
  }
  return false;
}

/* Operands that nobody has rounded. */
static bool promised_precision(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_matmul || n->type.dtype != DT_F32 || node_attr(n, ATTR_precision) || !here(p)) continue;
    struct attr *attrs = arena_new_array(p->arena, (size_t)n->nattrs + 1, struct attr);
    if (n->nattrs) memcpy(attrs, n->attrs, sizeof *attrs * (size_t)n->nattrs);
    attrs[n->nattrs++] = attr_string(ATTR_precision, "bf16");
    n->attrs = attrs;
    return planted(p, n);
  }
  return false;
}

static bool wrong_axes(struct patient *p) {
  EACH(p, n) {
    const struct type *t = &n->type;
    if (n->op != OP_broadcast || n->inputs[0]->type.rank != 1 || t->rank != 2 || t->dim[0] != t->dim[1] ||
        !here(p))
      continue;
    struct attr *a = attr_of(p, n, ATTR_axes);
    int64_t *axes = arena_copy(p->arena, a->ints, sizeof *axes);
    axes[0] = !axes[0];
    a->ints = axes;
    return planted(p, n);
  }
  return false;
}

static bool wrong_offset(struct patient *p, enum op_id op) {
  EACH(p, n) {
    if (n->op != op || !node_attr(n, ATTR_offset) || !here(p)) continue;
    attr_of(p, n, ATTR_offset)->i += 1;
    return planted(p, n);
  }
  return false;
}
static bool wrong_random_offset(struct patient *p) { return wrong_offset(p, OP_random_uniform); }
static bool wrong_iota_offset(struct patient *p) { return wrong_offset(p, OP_iota); }

static bool missing_random_offset(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_random_uniform || !node_attr(n, ATTR_offset) || !here(p)) continue;
    remove_attr(p, n, ATTR_offset);
    return planted(p, n);
  }
  return false;
}

static bool wrong_random_stream(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_random_uniform || !here(p)) continue;
    attr_of(p, n, ATTR_key)->i++;
    return planted(p, n);
  }
  return false;
}

/* ---- labels ---- */

static bool share_labelled_mirrored(struct patient *p) {
  EACH(p, n) {
    if (!is_leaf(n) || !here(p)) continue;
    n->dist = DIST_MIRRORED;
    n->tower = -1;
    return planted(p, n);
  }
  return false;
}

static bool wrong_tower_label(struct patient *p) {
  EACH(p, n) {
    if (n->dist != DIST_PER_REPLICA || n->op == OP_split || !here(p)) continue;
    n->tower = (n->tower + 1) % p->g->config.towers;
    return planted(p, n);
  }
  return false;
}

static bool rows_labelled_partial(struct patient *p) {
  EACH(p, n) {
    if (n->dist != DIST_PER_REPLICA || !here(p)) continue;
    n->dist = DIST_PARTIAL;
    return planted(p, n);
  }
  return false;
}

/* ---- variables ---- */

static bool is_update(const struct patient *p, int output) {
  return p->g->outputs[output].role == OUTPUT_UPDATE;
}

static bool missing_update(struct patient *p) {
  for (int i = 0; i < p->g->noutputs; i++) {
    if (!is_update(p, i) || !here(p)) continue;
    suspect(p, p->g->outputs[i].node->inputs[0]->name);
    remove_output(p, i);
    return true;
  }
  return false;
}

static bool updates_swapped(struct patient *p) {
  for (int i = 0; i < p->g->noutputs; i++)
    for (int k = i + 1; is_update(p, i) && k < p->g->noutputs; k++) {
      struct node *a = p->g->outputs[i].node, *b = p->g->outputs[k].node;
      if (!is_update(p, k) || !type_equal(&a->type, &b->type) || a->device != b->device || !here(p)) continue;
      struct node *value = a->inputs[1];
      a->inputs[1] = b->inputs[1];
      b->inputs[1] = value;
      planted(p, a);
      return planted(p, b);
    }
  return false;
}

static bool stale_update(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_assign || !here(p)) continue;
    n->inputs[1] = n->inputs[0];
    return planted(p, n);
  }
  return false;
}

static bool wrong_variable_written(struct patient *p) {
  EACH(p, n) {
    struct node *other = n->op == OP_assign ? other_variable(p, n->inputs[0]) : NULL;
    if (!other || !here(p)) continue;
    suspect(p, n->inputs[0]->name);
    suspect(p, other->name);
    n->inputs[0] = other;
    return planted(p, n);
  }
  return false;
}

static bool add_assign(struct patient *p, struct node *variable, struct node *value) {
  struct node n = *variable, *in[2] = {variable, value};
  n.op = OP_assign;
  n.name = arena_printf(p->arena, "%s.planted", variable->name);
  n.inputs = in;
  n.ninputs = 2;
  n.nattrs = 0;
  struct node *assign = insert(p, p->g->count, n);
  struct output *more = arena_new_array(p->arena, (size_t)p->g->noutputs + 1, struct output);
  memcpy(more, p->g->outputs, sizeof *more * (size_t)p->g->noutputs);
  more[p->g->noutputs++] = (struct output){OUTPUT_UPDATE, assign->name, assign, 0};
  p->g->outputs = more;
  return planted(p, assign);
}

static bool second_writer(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_assign || !here(p)) continue;
    return add_assign(p, n->inputs[0], n->inputs[1]);
  }
  return false;
}

static bool frozen_variable_written(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_variable || strncmp(n->name, "frozen", 6) != 0 || !here(p)) continue;
    return add_assign(p, n, n);
  }
  return false;
}

/* The update of one copy is not that of the others. */
static bool copies_differ(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_assign || n->type.dtype != DT_F32 || n->replica < 1 || !here(p)) continue;
    struct node *x = insert_op(p, n->inputs[1], OP_add, n->inputs[1], n->inputs[0]);
    n->inputs[1] = x;
    return planted(p, x);
  }
  return false;
}

static bool unknown_variable(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_variable || !here(p)) continue;
    n->name = arena_printf(p->arena, "%s.other", n->name);
    return planted(p, n);
  }
  return false;
}

static bool variables_change_names(struct patient *p) {
  EACH(p, n) {
    struct node *other = n->op == OP_variable ? other_variable(p, n) : NULL;
    if (!other || !here(p)) continue;
    const char *name = n->name;
    n->name = other->name;
    other->name = name;
    planted(p, n);
    return planted(p, other);
  }
  return false;
}

/* A result shows the variable after the step, and not before it. */
static bool new_value_read(struct patient *p) {
  for (int i = 0; i < p->g->noutputs; i++) EACH(p, u) {
      struct node *n = p->g->outputs[i].node;
      if (u->op != OP_assign || n->ninputs != 1 || n->inputs[0] != u->inputs[0] || !here(p)) continue;
      p->g->outputs[i].node = insert_op(p, n, n->op, u, NULL);
      return planted(p, p->g->outputs[i].node);
    }
  return false;
}

/* ---- results ---- */

static bool rows_joined_out_of_order(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_concat || n->ninputs < 2 || !type_equal(&n->inputs[0]->type, &n->inputs[1]->type) ||
        !here(p))
      continue;
    struct node *first = n->inputs[0];
    n->inputs[0] = n->inputs[1];
    n->inputs[1] = first;
    return planted(p, n);
  }
  return false;
}

static bool rows_joined_twice(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_concat || n->ninputs < 2 || !type_equal(&n->inputs[0]->type, &n->inputs[1]->type) ||
        !here(p))
      continue;
    n->inputs[1] = n->inputs[0];
    return planted(p, n);
  }
  return false;
}

static bool result_of_one_tower(struct patient *p) {
  for (int i = 0; i < p->g->noutputs; i++) {
    struct output *o = &p->g->outputs[i];
    if (is_update(p, i) || (!is_join(o->node) && o->node->op != OP_concat) || !here(p)) continue;
    o->node = o->node->inputs[0];
    suspect(p, o->name);
    return planted(p, o->node);
  }
  return false;
}

static bool results_swapped(struct patient *p) {
  for (int i = 0; i < p->g->noutputs; i++)
    for (int k = i + 1; !is_update(p, i) && k < p->g->noutputs; k++) {
      struct output *a = &p->g->outputs[i], *b = &p->g->outputs[k];
      if (is_update(p, k) || !type_equal(&a->node->type, &b->node->type) || !here(p)) continue;
      struct node *n = a->node;
      a->node = b->node;
      b->node = n;
      suspect(p, a->name);
      return true;
    }
  return false;
}

static bool missing_result(struct patient *p) {
  for (int i = 0; i < p->g->noutputs; i++) {
    if (is_update(p, i) || !here(p)) continue;
    suspect(p, p->g->outputs[i].name);
    remove_output(p, i);
    return true;
  }
  return false;
}

static bool renamed_result(struct patient *p) {
  for (int i = 0; i < p->g->noutputs; i++) {
    if (is_update(p, i) || !here(p)) continue;
    suspect(p, p->g->outputs[i].name);
    p->g->outputs[i].name = "planted";
    return true;
  }
  return false;
}

/* ---- devices ---- */

static bool no_such_device(struct patient *p) {
  EACH(p, n) {
    if (n->id % 7 || !here(p)) continue;
    n->device = n->id % 2 ? -1 : p->g->config.target.ndevices;
    return planted(p, n);
  }
  return false;
}

static bool moved_to_another_device(struct patient *p) {
  EACH(p, n) {
    if (n->op == OP_copy || p->g->config.target.ndevices < 2 || n->id % 5 || !here(p)) continue;
    n->device = (n->device + 1) % p->g->config.target.ndevices;
    return planted(p, n);
  }
  return false;
}

static bool copy_of_another_value(struct patient *p) {
  EACH(p, n) {
    struct node *other = n->op == OP_copy ? other_like(p, n, n->inputs[0]) : NULL;
    if (!other || !here(p)) continue;
    n->inputs[0] = other;
    return planted(p, n);
  }
  return false;
}

static bool missing_copy(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_copy || !here(p)) continue;
    planted(p, n);
    replace(p, n, n->inputs[0]);
    return true;
  }
  return false;
}

static bool copy_without_alias(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_copy || !node_attr(n, ATTR_alias) || !here(p)) continue;
    remove_attr(p, n, ATTR_alias);
    return planted(p, n);
  }
  return false;
}

static bool alias_between_memories(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_copy || !node_attr(n, ATTR_alias) || !here(p)) continue;
    p->g->config.target.devices[n->device].memory = 7;
    suspect(p, "share no memory");
    return planted(p, n);
  }
  return false;
}

static bool update_away_from_its_variable(struct patient *p) {
  EACH(p, n) {
    if (n->op != OP_assign || p->g->config.target.ndevices < 2 || !here(p)) continue;
    n->device = (n->device + 1) % p->g->config.target.ndevices;
    return planted(p, n);
  }
  return false;
}

static bool read_before_made(struct patient *p) {
  EACH(p, n) {
    if (n->id + 1 >= p->g->count || !here(p)) continue;
    struct node *next = p->g->nodes[n->id + 1];
    bool reads = false;
    for (int k = 0; k < next->ninputs; k++) reads |= next->inputs[k] == n;
    if (!reads) continue;
    p->g->nodes[n->id] = next;
    p->g->nodes[n->id + 1] = n;
    next->id = n->id;
    n->id++;
    return planted(p, next);
  }
  return false;
}

/* ---- what devices do together ---- */

/* One device reads what another one has. */
static bool missing_part(struct patient *p) {
  EACH(p, n) {
    if (!is_collective(n)) continue;
    EACH(p, other)
    if (other != n && is_collective(other) && other->inputs[0] == n->inputs[0] && here(p)) {
      replace(p, n, other);
      suspect(p, n->name);
      return planted(p, other);
    }
  }
  return false;
}

/* A device takes part with the operands of another sum. */
static bool part_of_another_sum(struct patient *p) {
  EACH(p, n) {
    if (!is_collective(n)) continue;
    EACH(p, other) {
      if (!is_collective(other) || other->id > n->id || other->inputs[0] == n->inputs[0] ||
          !type_equal(&other->type, &n->type) || !here(p))
        continue;
      n->inputs = other->inputs;
      suspect(p, other->name);
      return planted(p, n);
    }
  }
  return false;
}

/* All devices do without the share of the last. */
static bool share_left_out(struct patient *p) {
  EACH(p, n) {
    if (!is_collective(n) || n->ninputs < 3 || !here(p)) continue;
    const struct node *first = n->inputs[0];
    EACH(p, other)
    if (is_collective(other) && other->inputs[0] == first) {
      other->ninputs--;
      suspect(p, other->name);
    }
    return true;
  }
  return false;
}

static bool part_moved(struct patient *p) {
  EACH(p, n) {
    if (!is_collective(n) || !here(p)) continue;
    n->device = (n->device + 1) % p->g->config.target.ndevices;
    return planted(p, n);
  }
  return false;
}

const struct mutation graph_mutations[] = {
    MUTATION(missing_part),
    MUTATION(part_of_another_sum),
    MUTATION(share_left_out),
    MUTATION(part_moved),
    MUTATION(dropped_divide),
    MUTATION(dropped_factor),
    MUTATION(dropped_factor_of_tower),
    MUTATION(sum_scaled),
    MUTATION(wrong_constant),
    MUTATION(wrong_batch_attribute),
    MUTATION(share_scaled),
    MUTATION(wrong_metric_count),
    MUTATION(doubled_leaf),
    MUTATION(missing_leaf),
    MUTATION(leaf_of_another_sum),
    MUTATION(leaves_swapped_between_towers),
    MUTATION(sum_by_maximum),
    MUTATION(sum_by_difference),
    MUTATION(maximum_by_sum),
    MUTATION(minimum_by_maximum),
    MUTATION(leaf_added_again),
    MUTATION(share_read_by_nonlinear_op),
    MUTATION(update_from_one_tower),
    MUTATION(wrong_split_offset),
    MUTATION(split_with_a_gap),
    MUTATION(split_with_fewer_rows),
    MUTATION(split_with_more_rows),
    MUTATION(splits_swapped),
    MUTATION(split_of_another_input),
    MUTATION(wrong_batch_in_header),
    MUTATION(wrong_towers_in_header),
    MUTATION(reads_another_tower),
    MUTATION(reads_another_value),
    MUTATION(another_op_in_a_tower),
    MUTATION(another_op_in_an_update),
    MUTATION(operands_swapped),
    MUTATION(not_transposed),
    MUTATION(promised_precision),
    MUTATION(wrong_axes),
    MUTATION(wrong_random_offset),
    MUTATION(missing_random_offset),
    MUTATION(wrong_random_stream),
    MUTATION(wrong_iota_offset),
    MUTATION(share_labelled_mirrored),
    MUTATION(wrong_tower_label),
    MUTATION(rows_labelled_partial),
    MUTATION(missing_update),
    MUTATION(updates_swapped),
    MUTATION(stale_update),
    MUTATION(wrong_variable_written),
    MUTATION(second_writer),
    MUTATION(frozen_variable_written),
    MUTATION(copies_differ),
    MUTATION(unknown_variable),
    MUTATION(variables_change_names),
    MUTATION(new_value_read),
    MUTATION(rows_joined_out_of_order),
    MUTATION(rows_joined_twice),
    MUTATION(result_of_one_tower),
    MUTATION(results_swapped),
    MUTATION(missing_result),
    MUTATION(renamed_result),
    MUTATION(no_such_device),
    MUTATION(moved_to_another_device),
    MUTATION(copy_of_another_value),
    MUTATION(missing_copy),
    MUTATION(copy_without_alias),
    MUTATION(alias_between_memories),
    MUTATION(update_away_from_its_variable),
    MUTATION(read_before_made),
    {NULL, NULL},
};
