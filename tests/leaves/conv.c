/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/ops/op_id.h"
#include "tests/leaves/leaf.h"

#include <stdlib.h>
#include <string.h>

/* Attributes as text, one number for each spatial axis; "": not given. */
struct shape {
  const char *x, *w, *strides, *low, *high, *input, *kernel;
  int groups;
};

static const struct shape shapes[] = {
#define CONV(x, w, strides, low, high, xd, wd, groups, y, a, b, c, d, e, f) \
  {x, w, strides, low, high, xd, wd, groups},
#include "tests/ops/conv.def"
#undef CONV
    /* few channels over short rows of the kernel */
    {"2,9,11,6", "3,5,6,8", "2,3", "1,2", "0,1", "", "2,1", 1},
    {"1,5,6,7,3", "2,3,4,3,5", "1,2,1", "0,1,1", "1,0,2", "", "2,1,1", 1},
    {"2,8,9,4", "2,4,4,4", "", "-1,-2", "0,1", "", "", 1},
    {"3,7,8", "4,8,17", "2", "5", "3", "", "", 1},
    {"2,6,40,1", "6,31,1,4", "1,2", "7,0", "1,3", "", "", 1},
    {"1,3,3,2", "0,2,2,2", "", "", "", "", "", 1}, /* no places of the kernel, of which JAX has none */
};

static int numbers(const char *text, int64_t *out) {
  int count = 0;
  for (char *end; *text; text = *end ? end + 1 : end) out[count++] = strtoll(text, &end, 10);
  return count;
}

static int shape_attrs(struct cases *c, const struct shape *s, struct attr *out) {
  const struct {
    enum attr_key key;
    const char *text;
  } given[] = {{ATTR_strides, s->strides},
               {ATTR_padding_low, s->low},
               {ATTR_padding_high, s->high},
               {ATTR_input_dilation, s->input},
               {ATTR_kernel_dilation, s->kernel}};
  int count = 0;
  for (int i = 0; i < CASE_COUNT(given); i++) {
    int64_t *ints = arena_new_array(c->g->arena, 3, int64_t);
    if (*given[i].text) out[count] = attr_ints(given[i].key, numbers(given[i].text, ints), ints), count++;
  }
  if (s->groups != 1) out[count++] = attr_int(ATTR_groups, s->groups);
  return count;
}

/* Two operands of these types. */
static void add(struct cases *c, const struct type *a, const struct type *b, int count,
                const struct attr *attrs) {
  struct node *x = case_leaf(c, a), *in[2] = {x, case_leaf(c, b)};
  case_done(c, build(c->g, OP_conv, 2, in, count, attrs, NULL));
}

/* Pictures as large as the largest are there for tiles, which GPUs choose by the size of what is f32; CPUs have ways by
 * size of f64, too. What has one way for all sizes is tried with the smaller ones, as are kernels: on a GPU a block
 * adds up an element, which a simulated one does in many turns. */
static bool goes_by_size(const struct cases *c, enum dtype d) {
  const struct target *t = &c->g->config.target;
  bool gpu = t->ndevices && strcmp(t->devices[0].name.kind, "gpu") == 0;
  return d == DT_F32 || (d == DT_F64 && !gpu);
}

enum { LARGE = 1 << 17, MANY = 1 << 10 };

/* Each of the three as the result. */
void conv_cases(struct cases *c, enum dtype d) {
  for (int i = 0; i < CASE_COUNT(shapes); i++) {
    struct type x = case_shape(d, shapes[i].x), w = case_shape(d, shapes[i].w), y;
    struct attr attrs[8];
    int count = shape_attrs(c, &shapes[i], attrs), made = c->count, rank = x.rank - 2;
    if (c->small && type_count(&x) + type_count(&w) > 40) continue;
    if (type_count(&x) > LARGE && !goes_by_size(c, d)) continue;
    add(c, &x, &w, count, attrs);
    y = c->list[made].node->type;
    attrs[count] = attr_string(ATTR_result, "input");
    attrs[count + 1] = attr_ints(ATTR_size, rank, x.dim + 1);
    add(c, &y, &w, count + 2, attrs);
    if (type_count(&w) > MANY && !goes_by_size(c, d)) continue;
    attrs[count] = attr_string(ATTR_result, "kernel");
    attrs[count + 1] = attr_ints(ATTR_size, rank, w.dim);
    add(c, &x, &y, count + 2, attrs);
  }
}

/* ---- bounds ---- */

/* Number i of an attribute of n. */
static int64_t number(const struct node *n, enum attr_key key, int i, int64_t otherwise) {
  const struct attr *a = node_attr(n, key);
  return a ? a->ints[i] : otherwise;
}

static void unravel(int64_t e, const struct type *t, int64_t *at) {
  for (int i = t->rank - 1; i >= 0; i--) at[i] = e % t->dim[i], e /= t->dim[i];
}

/* Where in x place y of the output and place w of the kernel meet, were it its first channel; -1: nowhere. The first
 * number of y is the row, and neither has channels. */
static int64_t meeting(const struct node *n, const struct type *tx, const int64_t *w, const int64_t *y) {
  int64_t at = y[0];
  int last = tx->rank - 1;
  for (int i = 0; i < last - 1; i++) {
    int64_t place = y[i + 1] * number(n, ATTR_strides, i, 1) + w[i] * number(n, ATTR_kernel_dilation, i, 1) -
                    number(n, ATTR_padding_low, i, 0);
    int64_t gap = number(n, ATTR_input_dilation, i, 1);
    if (place < 0 || place % gap || place / gap >= tx->dim[i + 1]) return -1;
    at = at * tx->dim[i + 1] + place / gap;
  }
  return at * tx->dim[last];
}

/* Each element of the kernel with each of the output of its filter. */
void conv_bounds(struct arena *arena, const struct node *n, const struct bounds *in, int additions,
                 struct bounds *out) {
  const struct attr *result = node_attr(n, ATTR_result);
  bool of_x = result && result->string[0] == 'i', of_w = result && result->string[0] == 'k';
  const struct type *tx = of_x ? &n->type : &n->inputs[0]->type;
  const struct type *tw = of_w ? &n->type : &n->inputs[1]->type;
  const struct type *ty = of_x ? &n->inputs[0]->type : of_w ? &n->inputs[1]->type : &n->type;
  const struct interval *left = bounds_of_all(arena, &in[0]), *right = bounds_of_all(arena, &in[1]);
  int last = n->type.rank - 1;
  int64_t count = type_count(&n->type), w[MAX_RANK], y[MAX_RANK];
  int64_t filters = tw->dim[last], channels = tw->dim[last - 1],
          each = filters / node_int_or(n, ATTR_groups, 1);
  int64_t places = filters ? type_count(ty) / filters : 0;
  int64_t *met = arena_new_array(arena, (size_t)places + 1, int64_t);
  struct sum *sums = arena_new_array(arena, (size_t)count + 1, struct sum);
  for (int64_t e = 0; e < count; e++) sums[e] = sum_make(n->type.dtype);
  /* Some pixels at a time, whose sums stay near: those of a large picture are many megabytes. */
  enum { NEAR = 256 };
  int64_t of_place = channels * filters;
  for (int64_t first = 0; first < type_count(tw); first += of_place) {
    unravel(first, tw, w);
    for (int64_t p = 0; p < places; p++) {
      unravel(p * filters, ty, y);
      met[p] = meeting(n, tx, w, y);
    }
    for (int64_t block = 0; block < places; block += NEAR)
      for (int64_t ew = first; ew < first + of_place; ew++) {
        int64_t filter = ew % filters, channel = filter / each * channels + ew / filters % channels;
        for (int64_t p = block; p < places && p < block + NEAR; p++) {
          int64_t ey = p * filters + filter, ex = met[p] + channel;
          if (met[p] < 0) continue;
          sum_add_product(&sums[of_x ? ex : of_w ? ew : ey], left[of_x ? ey : ex], right[of_w ? ey : ew]);
        }
      }
  }
  /* the product of a term may round too: one more per term */
  for (int64_t e = 0; e < count; e++) sum_result(&sums[e], additions + (int)sums[e].terms, out, e);
}
