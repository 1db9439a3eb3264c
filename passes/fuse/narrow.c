/* SPDX-License-Identifier: Apache-2.0 */
/* What is stored in 16 bits, bf16 or f16, on CPUs and GPUs: half the bytes, in memory and between devices. Three kinds
 * of values:
 *
 *   what is multiplied as bfloat16      its operands, on a GPU those of cuBLAS, which else takes TF32 for it
 *   variables that say so (storage)     with them their copies, and the rows that gather takes; on CPUs the rows that
 *                                       scatter_add adds to are rounded where they lie, all others stay as they are
 *   what round_bf16, round_f16 give     where kernels alone read it, as most of what gradients read again
 *
 * All of them hold values of that type before, so that nothing changes but where they lie: a cast rounds as the op
 * does, joins the kernel that computes the value, and is undone by those that read it.
 *
 * Only here, where each value has its device. Messages between tasks, and sums of devices, are f32. */
#include "ir/ops/op_id.h"
#include "passes/fuse/fuse.h"
#include "passes/rebuild.h"

#include <string.h>

struct narrowing {
  const uint8_t *stored; /* by id: a rounded value that lies in 16 bits in memory */
};

const char *fuse_kind(const struct graph *g, int device) {
  return device < 0 || device >= g->config.target.ndevices ? "" : g->config.target.devices[device].name.kind;
}

static const char *kind_of(const struct graph *g, const struct node *n) { return fuse_kind(g, n->device); }

bool fuse_is_here(const struct graph *g, const struct node *n) {
  const char *kind = kind_of(g, n);
  return strcmp(kind, "cpu") == 0 || strcmp(kind, "gpu") == 0;
}

bool fuse_is_product(const struct graph *g, const struct node *n, int device) {
  const char *kind = fuse_kind(g, device);
  if (!node_attr(n, ATTR_precision)) return false;
  return strcmp(kind, "cpu") == 0 || (strcmp(kind, "gpu") == 0 && n->op == OP_matmul);
}

static bool is_product(const struct graph *g, const struct node *n) {
  return fuse_is_product(g, n, n->device);
}

static bool is_narrow(const struct node *x) { return dtype_is_narrow(x->type.dtype); }

static bool is_stored(const struct node *variable) { return node_storage(variable) != DT_F32; }

static bool is_moved(const struct node *x) {
  return node_is(x, OP_reshape) || node_is(x, OP_transpose) || node_is(x, OP_broadcast) ||
         node_is(x, OP_slice);
}

/* x before it was rounded to `d`, moved as x is; NULL: it was not. */
static struct node *unrounded(struct graph *out, struct node *x, enum dtype d) {
  if (op_of(x)->narrow == d) return x->inputs[0];
  if (node_is(x, OP_cast) && x->inputs[0]->type.dtype == d && node_is(x->inputs[0], OP_cast))
    return x->inputs[0]->inputs[0];
  struct node *from = is_moved(x) ? unrounded(out, x->inputs[0], d) : NULL;
  if (from == NULL) return NULL;
  build_at(out, x);
  return build(out, x->op, 1, &from, x->nattrs, x->attrs, &x->type);
}

static struct node *cast_on(struct graph *out, struct node *x, int device, enum dtype d) {
  if (x->type.dtype == d) return x;
  build_at(out, x);
  out->at.device = device;
  out->at.want = NULL;
  return build_cast(out, x, d);
}

/* x as it lies, be it reshaped, before it was widened; NULL: it lies otherwise. */
static struct node *unwidened(struct graph *out, struct node *x, enum dtype d) {
  if (node_is(x, OP_cast) && x->inputs[0]->type.dtype == d) return x->inputs[0];
  struct node *from = node_is(x, OP_reshape) ? unwidened(out, x->inputs[0], d) : NULL;
  struct type t = type_with_dtype(x->type, d);
  if (from == NULL) return NULL;
  build_at(out, x);
  return build_reshape(out, from, &t);
}

struct node *fuse_narrowed(struct graph *out, struct node *x, int device, enum dtype d) {
  struct node *lies = is_narrow(x) ? NULL : unwidened(out, x, d);
  if (lies && lies->device == device) return lies;
  if (is_narrow(x) && x->type.dtype != d && !(x = cast_on(out, x, x->device, DT_F32))) return NULL;
  struct node *wide = is_narrow(x) ? NULL : unrounded(out, x, d);
  return cast_on(out, wide ? wide : x, device, d);
}

static struct node *product(struct graph *out, struct node *same, struct node **in) {
  struct attr attrs[ATTR_COUNT];
  const struct attr *all = same->attrs;
  int count = same->nattrs;
  same->nattrs = 0;
  same->attrs = attrs;
  for (int i = 0; i < count; i++)
    if (all[i].key != ATTR_precision) attrs[same->nattrs++] = all[i];
  for (int i = 0; i < same->ninputs; i++)
    if (!(in[i] = fuse_narrowed(out, in[i], same->device, DT_BF16))) return NULL;
  return graph_node(out, same);
}

enum { MAX_ADDED = 64 };

/* Of scatter_adds, one onto the other, on a table that lies in 16 bits: one on the table as it lies, of the rows of
 * all, each of which is rounded once. x: what is assigned to the table, before it is rounded. NULL: it is not of that
 * kind. */
static struct node *rows_in_place(struct graph *out, struct node *table, struct node *x) {
  struct node *index[MAX_ADDED], *values[MAX_ADDED];
  int count = 0;
  for (; x && x->op == OP_scatter_add; x = x->inputs[0]) {
    if (count == MAX_ADDED || (count && x->inputs[1]->type.dtype != index[MAX_ADDED - 1]->type.dtype))
      return NULL;
    count++;
    index[MAX_ADDED - count] = x->inputs[1];
    values[MAX_ADDED - count] = x->inputs[2];
  }
  if (!count || !node_is(x, OP_cast) || x->inputs[0] != table) return NULL;
  struct node **of_index = index + MAX_ADDED - count, **of_values = values + MAX_ADDED - count;
  build_at(out, table);
  for (int i = 0; i < count; i++) {
    struct type numbers = type_make(of_index[i]->type.dtype, 1, (int64_t[]){type_count(&of_index[i]->type)});
    struct type rows = type_with_dtype(table->type, DT_F32);
    rows.dim[0] = numbers.dim[0];
    if (!(of_index[i] = build_reshape(out, of_index[i], &numbers))) return NULL;
    if (!(of_values[i] = build_reshape(out, of_values[i], &rows))) return NULL;
  }
  struct node *all = count > 1 ? build_concat(out, count, of_index, 0) : of_index[0];
  struct node *rows = count > 1 ? build_concat(out, count, of_values, 0) : of_values[0];
  return all && rows ? build3(out, OP_scatter_add, table, all, rows) : NULL;
}

/* What goes on in 16 bits: who reads it widens it. */
static struct node *visit(struct pass_ctx *ctx, struct graph *out, const struct node *n, struct node **in,
                          void *user) {
  const struct narrowing *r = user;
  (void)ctx;
  struct node same = *n;
  same.inputs = in;
  if (is_product(out, n)) return product(out, &same, in);
  if (r->stored[n->id]) return fuse_narrowed(out, in[0], n->device, op_of(n)->narrow);
  bool keeps = n->op == OP_copy || (n->op == OP_gather && fuse_is_here(out, n));
  if (n->op == OP_variable && is_stored(n) && fuse_is_here(out, n))
    same.type.dtype = (uint8_t)node_storage(n);
  if (n->op == OP_assign && is_narrow(in[0])) {
    struct node *x = strcmp(kind_of(out, n), "cpu") == 0 ? unrounded(out, in[1], in[0]->type.dtype) : NULL;
    struct node *rows = x ? rows_in_place(out, in[0], x) : NULL;
    same.type.dtype = in[0]->type.dtype;
    in[1] = rows ? rows : fuse_narrowed(out, in[1], n->device, in[0]->type.dtype);
    return in[1] ? graph_node(out, &same) : NULL;
  }
  for (int i = 0; i < n->ninputs; i++) {
    if (!is_narrow(in[i]) || is_narrow(n->inputs[i])) continue;
    if (keeps && i == 0)
      same.type.dtype = in[0]->type.dtype;
    else if (!(in[i] = cast_on(out, in[i], in[i]->device, DT_F32)))
      return NULL;
  }
  return graph_node(out, &same);
}

bool fuse_is_kernel(const struct node *n) {
  enum op_kind kind = op_of(n)->kind;
  return kind == KIND_ELEMENTWISE || kind == KIND_REDUCE || (node_is_strided(n) && !fuse_floats(n));
}

/* The rounded values that kernels read, or kernels and products. */
static uint8_t *find_stored(struct pass_ctx *ctx, const struct graph *g) {
  uint8_t *stored = arena_new_array(ctx->scratch, g->count + 1, uint8_t);
  uint8_t *refused = arena_new_array(ctx->scratch, g->count + 1, uint8_t);
  const uint8_t *live = graph_live(ctx->scratch, g);
  for (int i = 0; i < g->noutputs; i++) refused[g->outputs[i].node->id] = 1;
  for (uint32_t i = 0; i < g->count; i++)
    for (int k = 0; live[i] && k < g->nodes[i]->ninputs; k++) {
      const struct node *n = g->nodes[i], *x = n->inputs[k];
      bool kernel = fuse_is_kernel(n) && n->device == x->device;
      if (!op_of(x)->narrow || (x->op == OP_round_bf16 && is_product(g, n))) continue;
      if (kernel && fuse_is_here(g, x)) stored[x->id] = 1;
      if (!kernel && n->op != OP_assign) refused[x->id] = 1;
    }
  for (uint32_t i = 0; i < g->count; i++) stored[i] &= !refused[i];
  return stored;
}

static bool any_narrow(const struct graph *g, const struct narrowing *r) {
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (r->stored[i] || is_product(g, n) || (n->op == OP_variable && is_stored(n))) return true;
  }
  return false;
}

struct graph *fuse_narrow(struct pass_ctx *ctx, struct graph *g) {
  struct narrowing r = {find_stored(ctx, g)};
  struct graph *out = any_narrow(g, &r) ? rebuild(ctx, g, NULL, visit, &r) : g;
  for (int i = 0; out && i < out->noutputs; i++) { /* results are f32 */
    struct output *o = &out->outputs[i];
    bool given = o->role == OUTPUT_UPDATE || o->role == OUTPUT_HELD || o->role == OUTPUT_SEND;
    if (!given && is_narrow(o->node) && !is_narrow(g->outputs[i].node) &&
        !(o->node = cast_on(out, o->node, o->node->device, DT_F32)))
      return NULL;
  }
  return out;
}
