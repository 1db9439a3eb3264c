/* The second line of defence: both graphs, computed node by node on the same random numbers, must give the
 * same.
 *
 * Floats are f64 in both, so that the order of additions shows far below what a fault shows. All but node_eval
 * is this file's own: a mistake in the reading of the graphs cannot hide here. It costs what the model costs. */
#include "ir/build.h"
#include "ir/certify.h"

#include <math.h>
#include <string.h>

struct numbers {
  struct arena *arena;
  const struct graph *g;
  struct graph *wide; /* g with f64 for f32 */
  struct tensor *values;
  uint64_t seed;
};

static struct type widen(struct type t, int64_t batch) {
  t = type_specialize(&t, batch);
  if (t.dtype == DT_F32) t.dtype = DT_F64;
  return t;
}

/* Constants hold f32 data. */
static const struct attr *widen_attrs(struct arena *a, const struct node *n, int64_t batch, int *count) {
  struct attr *attrs = arena_new_array(a, (size_t)n->nattrs + 1, struct attr);
  memcpy(attrs, n->attrs, sizeof *attrs * (size_t)n->nattrs);
  *count = n->nattrs;
  if (n->op == OP_batch_size && n->nattrs == 0) attrs[(*count)++] = attr_int(ATTR_batch, batch);
  if (n->op != OP_constant || n->type.dtype != DT_F32) return attrs;
  int size = attrs[0].count / 4;
  double *wide = arena_new_array(a, (size_t)size, double);
  for (int i = 0; i < size; i++) wide[i] = ((const float *)attrs[0].data)[i];
  attrs[0].data = wide;
  attrs[0].count = 8 * size;
  return attrs;
}

/* "v" of "v/replica_1": all copies of a variable begin alike. */
static size_t stem(const char *name) {
  const char *suffix = strstr(name, "/replica_");
  return suffix ? (size_t)(suffix - name) : strlen(name);
}

static uint64_t mix(uint64_t x) {
  x = (x ^ x >> 31) * UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
  return x ^ x >> 32;
}

/* Small numbers: floats in (0, 1), which no logarithm refuses; whole ones from 0 to 3, which may be classes. */
static void fill(const struct numbers *z, const struct node *n, struct tensor *t) {
  uint64_t h = str_hash(z->seed ^ STR_HASH_SEED, n->name, stem(n->name));
  for (int64_t i = 0; i < type_count(&t->type); i++) {
    h = mix(h + (uint64_t)i + 1);
    int small = (int)(h >> 20 & 3);
    switch ((enum dtype)t->type.dtype) {
    case DT_F64: ((double *)t->data)[i] = ((double)(h >> 12) + 0.5) * 0x1p-52; break;
    case DT_I32: ((int32_t *)t->data)[i] = small; break;
    case DT_I64: ((int64_t *)t->data)[i] = small; break;
    case DT_BOOL: ((uint8_t *)t->data)[i] = small & 1; break;
    default: ((uint8_t *)t->data)[i] = (uint8_t)small; break;
    }
  }
}

static bool compute(struct numbers *z, int64_t batch) {
  const struct graph *g = z->g;
  uint8_t *live = graph_live(z->arena, g);
  struct node **map = arena_new_array(z->arena, g->count + 1, struct node *);
  z->values = arena_new_array(z->arena, g->count + 1, struct tensor);
  for (uint32_t i = 0; i < g->count; i++) {
    if (!live[i]) continue;
    const struct node *n = g->nodes[i];
    struct node *w = map[i] = arena_copy(z->arena, n, sizeof *n);
    struct tensor *in = arena_new_array(z->arena, (size_t)n->ninputs + 1, struct tensor);
    w->inputs = arena_new_array(z->arena, (size_t)n->ninputs + 1, struct node *);
    for (int k = 0; k < n->ninputs; k++) {
      w->inputs[k] = map[n->inputs[k]->id];
      in[k] = z->values[n->inputs[k]->id];
    }
    w->type = widen(n->type, batch);
    w->attrs = widen_attrs(z->arena, n, batch, &w->nattrs);
    z->values[i] = (struct tensor){w->type, arena_alloc(z->arena, (size_t)type_bytes(&w->type))};
    if (n->op == OP_input || n->op == OP_variable)
      fill(z, n, &z->values[i]);
    else if (!node_eval(w, in, &z->values[i], 0))
      return false;
  }
  return true;
}

/* The largest difference between two tensors against the size of their elements; 0 for equal ones. */
static double difference(const struct tensor *a, const struct tensor *b) {
  if (!type_equal(&a->type, &b->type)) return INFINITY;
  if (a->type.dtype != DT_F64)
    return memcmp(a->data, b->data, (size_t)type_bytes(&a->type)) == 0 ? 0 : INFINITY;
  const double *x = a->data, *y = b->data;
  double most = 0, size = 0;
  int64_t count = type_count(&a->type);
  for (int64_t i = 0; i < count; i++) {
    if (isnan(x[i]) != isnan(y[i])) return INFINITY;
    double off = x[i] == y[i] || isnan(x[i]) ? 0 : fabs(x[i] - y[i]);
    if (off > most) most = off;
    if (fabs(x[i]) > size) size = fabs(x[i]);
  }
  return most / (size > 1e-3 ? size : 1e-3);
}

static const struct node *find_update(const struct graph *g, const char *variable, size_t len) {
  for (int i = 0; i < g->noutputs; i++) {
    const struct node *n = g->outputs[i].node;
    if (g->outputs[i].role == OUTPUT_UPDATE && strlen(n->inputs[0]->name) == len &&
        strncmp(n->inputs[0]->name, variable, len) == 0)
      return n;
  }
  return NULL;
}

/* What an output of the placed graph is in the source. */
static const struct node *counterpart(const struct graph *source, const struct output *o) {
  if (o->role == OUTPUT_UPDATE)
    return find_update(source, o->node->inputs[0]->name, stem(o->node->inputs[0]->name));
  for (int i = 0; i < source->noutputs; i++)
    if (source->outputs[i].role == o->role && strcmp(source->outputs[i].name, o->name) == 0)
      return source->outputs[i].node;
  return NULL;
}

bool graph_certify_numbers(struct arena *a, const struct graph *source, const struct graph *placed,
                           uint64_t seed, struct diags *d, struct certificate *out) {
  const double allowed = 1e-9;
  struct arena_guard guard;
  struct arena *scratch = arena_create_guarded(&guard);
  struct numbers want = {.arena = scratch, .g = source, .seed = seed}, have = want;
  struct claim *claim = &out->claims[CLAIM_NUMBERS];
  have.g = placed;
  double most = 0;
  if (!compute(&want, placed->config.batch) || !compute(&have, placed->config.batch)) {
    claim->text = "not checked: a node cannot be computed here";
    arena_destroy_guarded(scratch, &guard);
    return true;
  }
  for (int i = 0; i < placed->noutputs; i++) {
    const struct output *o = &placed->outputs[i];
    const struct node *n = counterpart(source, o);
    double off = n ? difference(&want.values[n->id], &have.values[o->node->id]) : INFINITY;
    if (off > most) most = off;
    if (off <= allowed) continue;
    claim->breaches++;
    out->breaches++;
    struct str s = str_make(scratch);
    str_double(&s, off);
    diag_error(d, o->node->loc, "numbers: %s differs from the source by %s of its size", o->name, s.data);
  }
  struct str s = str_make(a);
  str_printf(&s, "%d results and updates on random numbers, ", placed->noutputs);
  int digits = 0;
  for (double size = 1; digits < 17 && most <= size / 10; size /= 10) digits++;
  if (most == 0)
    str_put(&s, "equal to the bit");
  else
    str_printf(&s, "equal to %d digits", digits);
  claim->checked = true;
  claim->text = s.data;
  arena_destroy_guarded(scratch, &guard);
  return claim->breaches == 0;
}
