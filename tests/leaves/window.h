/* SPDX-License-Identifier: Apache-2.0 */
/* Windows to try, and what the leaves of that name have in common. */
#ifndef TESTS_LEAVES_WINDOW_H
#define TESTS_LEAVES_WINDOW_H

#include "ir/graph/build.h"
#include "ir/ops/leaf.h"
#include "ir/ops/op_id.h"
#include "tests/leaves/leaf.h"

#include <stdlib.h>

/* Attributes as text, one number for each spatial axis; "": not given. */
struct window_shape {
  const char *x, *size, *strides, *low, *high, *input, *dilation;
};

static const struct window_shape window_shapes[] = {
#define WINDOW(x, size, strides, low, high, input, dilation, ...) \
  {x, size, strides, low, high, input, dilation},
#include "tests/ops/window.def"
#undef WINDOW
};

static inline struct attr window_attr(struct arena *a, enum attr_key key, const char *text) {
  int64_t *out = arena_new_array(a, 3, int64_t);
  int count = 0;
  for (char *end; *text; text = *end ? end + 1 : end) out[count++] = strtoll(text, &end, 10);
  return attr_ints(key, count, out);
}

static inline int window_attrs(struct arena *a, const struct window_shape *s, struct attr *out) {
  const struct {
    enum attr_key key;
    const char *text;
  } given[] = {
      {ATTR_size, s->size},         {ATTR_strides, s->strides},      {ATTR_padding_low, s->low},
      {ATTR_padding_high, s->high}, {ATTR_input_dilation, s->input}, {ATTR_kernel_dilation, s->dilation}};
  int count = 0;
  for (int i = 0; i < CASE_COUNT(given); i++)
    if (*given[i].text) out[count++] = window_attr(a, given[i].key, given[i].text);
  return count;
}

/* Calls `see` for each element of the first operand that window e of n sees, in their order. */
static inline void window_seen(const struct node *n, int64_t e, void (*see)(void *user, int64_t at),
                               void *user) {
  struct windows w = windows_of(n);
  int64_t o[WINDOW_AXES], channel = e % w.channels;
  e /= w.channels;
  for (int i = WINDOW_AXES - 1; i >= 0; i--) o[i] = e % w.output[i], e /= w.output[i];
  for (int64_t at = 0; at < w.input[0] * w.input[1] * w.input[2]; at++) {
    int64_t rest = at;
    bool seen = true;
    for (int i = WINDOW_AXES - 1; i >= 0; i--) {
      int64_t place = rest % w.input[i] * w.input_dilation[i] + w.low[i] - o[i] * w.stride[i];
      rest /= w.input[i];
      seen = seen && place >= 0 && place % w.dilation[i] == 0 && place / w.dilation[i] < w.size[i];
    }
    if (seen) see(user, (e * w.input[0] * w.input[1] * w.input[2] + at) * w.channels + channel);
  }
}

static inline void window_count(void *count, int64_t at) {
  (void)at;
  ++*(int64_t *)count;
}

/* Whether a window of n sees padding alone: its maximum is -Inf, and differences are none. */
static inline bool window_is_blind(const struct node *n) {
  for (int64_t e = 0; e < type_count(&n->type); e++) {
    int64_t count = 0;
    window_seen(n, e, window_count, &count);
    if (count == 0) return true;
  }
  return false;
}

/* Cases of c->op: with dilation of the input too, where it may have one. */
static inline void window_cases(struct cases *c, enum dtype d) {
  for (int i = 0; i < CASE_COUNT(window_shapes); i++) {
    const struct window_shape *s = &window_shapes[i];
    struct type x = case_shape(d, s->x);
    struct attr attrs[6];
    int count = window_attrs(c->g->arena, s, attrs);
    if ((c->op != OP_window_sum && *s->input) || (c->small && type_count(&x) > 40)) continue;
    struct node *in[2] = {case_leaf(c, &x), NULL};
    if (c->op == OP_window_pick) in[1] = case_leaf(c, &x);
    if (c->op == OP_window_put)
      in[1] = case_leaf(c, &build(c->g, OP_window_max, 1, in, count, attrs, NULL)->type);
    struct node *n = build(c->g, c->op, in[1] ? 2 : 1, in, count, attrs, NULL);
    case_done(c, c->small && c->op == OP_window_max && window_is_blind(n) ? NULL : n);
  }
}

#endif
