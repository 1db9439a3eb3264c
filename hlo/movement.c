/* SPDX-License-Identifier: Apache-2.0 */
/* Movement, and what lies over towers: all in one function, where a copy is the value itself. */
#include "hlo/rules.h"

#include <string.h>

bool hlo_reshape(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  struct type t = hlo_type(h, n);
  *out = hlo_shaped(h, in[0], &t);
  return true;
}

bool hlo_transpose(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  int count;
  *out = hlo_permuted(h, in[0], node_ints(n, ATTR_perm, &count));
  return true;
}

bool hlo_broadcast(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  int count;
  const int64_t *axes = node_ints(n, ATTR_axes, &count);
  struct type t = hlo_type(h, n);
  *out = hlo_repeated(h, in[0], &t, count, axes);
  return true;
}

bool hlo_slice(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  int count;
  struct type t = hlo_type(h, n);
  *out = hlo_cut(h, in[0], &t, node_ints(n, ATTR_begin, &count));
  return true;
}

bool hlo_pad(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  int count;
  struct type t = hlo_type(h, n);
  *out = hlo_padded(h, in[0], in[1], &t, node_ints(n, ATTR_low, &count), node_ints(n, ATTR_high, &count));
  return true;
}

bool hlo_concat(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  struct type t = hlo_type(h, n);
  *out = hlo_joined(h, &t, n->ninputs, in, node_int(n, ATTR_axis));
  return true;
}

/* ---- effects and distribution ---- */

/* The new value: the function returns it. */
bool hlo_assign(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  (void)h, (void)n;
  *out = in[1];
  return true;
}

/* A source graph is one worker's: nobody has updated the variable before. */
bool hlo_newest(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  return hlo_identity(h, n, in, out);
}

/* And one tower's. */
bool hlo_aggregate(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  return hlo_identity(h, n, in, out);
}

bool hlo_local(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  return hlo_identity(h, n, in, out);
}

bool hlo_copy(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  return hlo_identity(h, n, in, out);
}

bool hlo_split(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  int64_t begin[MAX_RANK] = {node_int(n, ATTR_offset)};
  *out = h->replicas ? hlo_rows_of_replica(h, n, in[0]) : hlo_cut(h, in[0], &n->type, begin);
  return true;
}

struct hlo_value hlo_own_rows(struct hlo *h, const struct node *n, const struct hlo_value *in) {
  struct type t = n->type;
  if (h->replicas) t.dim[0] /= h->replicas->devices;
  return hlo_joined(h, &t, h->replicas ? h->replicas->towers : n->ninputs, in, 0);
}

bool hlo_all_gather(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  *out = hlo_own_rows(h, n, in);
  if (h->replicas) *out = hlo_gather_all(h, *out);
  return true;
}

/* Operands [lo, hi), joined by the fixed tree: the left part is the largest power of two that is smaller than the
 * whole. */
static struct hlo_value tree(struct hlo *h, const char *name, const struct hlo_value *in, int lo, int hi) {
  if (hi - lo == 1) return in[lo];
  int left = 1;
  while (2 * left < hi - lo) left *= 2;
  struct hlo_value a = tree(h, name, in, lo, lo + left), b = tree(h, name, in, lo + left, hi);
  return hlo_binary(h, name, a, b);
}

bool hlo_all_reduce(struct hlo *h, const struct node *n, const struct hlo_value *in, struct hlo_value *out) {
  const char *how = node_string(n, ATTR_reduction);
  const char *name = strcmp(how, "max") == 0 ? "maximum" : strcmp(how, "min") == 0 ? "minimum" : "add";
  bool first = strcmp(how, "only_first_replica") == 0;
  int own = first ? 1 : h->replicas ? h->replicas->towers : n->ninputs;
  *out = tree(h, name, in, 0, own);
  if (h->replicas) *out = first ? hlo_of_first_replica(h, *out) : hlo_reduce_all(h, name, *out);
  if (strcmp(how, "mean") == 0) *out = hlo_divide(h, false, *out, hlo_integer(h, &n->type, n->ninputs));
  return true;
}
