/* SPDX-License-Identifier: Apache-2.0 */
/* Attention and its derivatives in f32, of heads that are not too wide: kernels/cuda/attention_tiles.cu, with --tf32
 * attention_tensor.cu, and attention_gradient_tiles.cu or attention_gradient_tensor.cu. How the work is cut depends
 * on sizes alone. */
#include "runtime/cuda/leaf.h"

#include "base/integer.h"
#include "ir/ops/op_id.h"

#include <string.h>

/* As tiles.cuh and the files of tensor cores have them: rows of a block. */
enum { OWN = 64, HIGH = 128, WIDEST = 128, ROW_BYTES = 16 };

bool cuda_attention_by_tiles(const struct node *n) {
  struct attention s = attention_of(n);
  int64_t width = s.size > s.values ? s.size : s.values, most = INT32_MAX / 2; /* they count in int */
  return n->type.dtype == DT_F32 && width <= WIDEST && s.queries <= most && s.keys <= most &&
         s.heads <= most / WIDEST;
}

/* Which of three texts, by what heads have. */
static int by_width(const struct attention *s) {
  int64_t width = s->size > s->values ? s->size : s->values;
  return width > 32 ? width > 64 ? 2 : 1 : 0;
}

static bool by_tensor_cores(const struct cuda_engine *e) { return e->tf32 && cuda_has_tensor_cores(e); }

/* A block for so many rows of a head, of `length`. The operands are those of the node and `more`. */
static struct leaf_launch launch_of(const struct node *n, const char *name, const char *types, int64_t length,
                                    int64_t rows, int more) {
  struct attention s = attention_of(n);
  struct leaf_launch how = {.name = name,
                            .types = types,
                            .nargs = n->ninputs + 1 + more,
                            .missing = op_of(n)->max_inputs - n->ninputs,
                            .threads = s.batch * s.heads * blocks_of(length, rows) * BLOCK_THREADS};
  memcpy(how.numbers, &s, sizeof s);
  return how;
}

struct gradient_call {
  const struct leaf_call *queries, *keys;
  const CUdeviceptr *rows;
};

/* q, k, v, y and dy, then the rows, then the others. */
static void run_gradient(void *const *args, const void *state) {
  enum { BEFORE = 5 };
  const struct gradient_call *c = state;
  void *all[MAX_LEAF_INPUTS + 2];
  memcpy(all, args, BEFORE * sizeof *args);
  all[BEFORE] = (void *)(uintptr_t)*c->rows;
  memcpy(all + BEFORE + 1, args + BEFORE, (size_t)(c->keys->nargs - BEFORE - 1) * sizeof *args);
  cuda_run_leaf(all, c->queries);
  cuda_run_leaf(all, c->keys);
}

#define F32 "#define TYPE float\n#define SUM float\n"

static bool prepare_gradient(struct cuda_engine *e, struct arena *a, const struct node *n, int device,
                             struct command *c, struct diags *d) {
#define TEXT(how, width, of_keys) F32 how "#define WIDTH " #width "\n#define OF_KEYS " #of_keys "\n"
#define BOTH(how, width) \
  { TEXT(how, width, 0), TEXT(how, width, 1) }
#define ALL(how) \
  { BOTH(how, 32), BOTH(how, 64), BOTH(how, 128) }
  static const char *const texts[][3][2] = {ALL("#define OWN_TENSORS 2\n"), ALL("#define BF16 0\n")};
#undef ALL
#undef BOTH
#undef TEXT
  struct attention s = attention_of(n);
  int width = by_width(&s);
  bool cores = by_tensor_cores(e);
  const char *name = cores ? "attention_gradient_tensor" : "attention_gradient_tiles";
  const char *const *of = texts[cores][width];
  struct leaf_launch queries = launch_of(n, name, of[0], s.queries, cores ? HIGH : OWN, 1);
  struct leaf_launch keys = launch_of(n, name, of[1], s.keys, cores && width < 2 ? HIGH : OWN, 1);
  struct gradient_call *call = arena_new(a, struct gradient_call);
  *call = (struct gradient_call){.queries = cuda_leaf_call(e, a, &queries, device, d),
                                 .rows = &e->devices[device].scratch[SCRATCH_A].data};
  if (!call->queries || !(call->keys = cuda_leaf_call(e, a, &keys, device, d))) return false;
  c->kind = COMMAND_CALL;
  c->call = run_gradient;
  c->state = call;
  return cuda_scratch(e, device, SCRATCH_A, (size_t)(s.batch * s.heads * s.queries * ROW_BYTES), d);
}

static bool prepare_value(struct cuda_engine *e, struct arena *a, const struct node *n, int device,
                          struct command *c, struct diags *d) {
#define TENSOR(width) F32 "#define BF16 0\n#define WIDTH " #width "\n"
#define TILES(width)  F32 "#define OWN_TENSORS 1\n#define WIDTH " #width "\n"
  static const char *const tensor[] = {TENSOR(32), TENSOR(64), TENSOR(128)}, *const tiles[] = {TILES(32),
                                                                                               TILES(64),
                                                                                               TILES(128)};
#undef TENSOR
#undef TILES
  struct attention s = attention_of(n);
  struct leaf_launch how = by_tensor_cores(e)
                               ? launch_of(n, "attention_tensor", tensor[by_width(&s)], s.queries, HIGH, 0)
                               : launch_of(n, "attention_tiles", tiles[by_width(&s)], s.queries, OWN, 0);
  return cuda_call_leaf(e, a, &how, device, c, d);
}

bool cuda_leaf_attention(struct cuda_engine *e, struct arena *a, const struct step *step, int device,
                         struct command *c, struct diags *d) {
  if (step->node->op == OP_attention_gradient) return prepare_gradient(e, a, step->node, device, c, d);
  return prepare_value(e, a, step->node, device, c, d);
}
