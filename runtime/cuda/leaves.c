/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves that kernels/cuda computes: from a step to the launch of the kernel of its name. */
#include "runtime/cuda/leaf.h"

#include "base/integer.h"
#include "ir/ops/leaf.h"
#include "ir/ops/op_id.h"
#include "kernels/cuda/texts.h"

#include <string.h>

enum { MAX_BLOCKS = 1 << 16 };

struct cuda_leaf {
  const char *name, *types;
  CUfunction *functions; /* one per card */
  struct cuda_leaf *next;
};

/* "": there is no such file. */
static const char *text_of(const char *name, size_t length, const char *ending) {
  for (const struct embedded *file = kernels_cuda; file->name; file++)
    if (strncmp(file->name, name, length) == 0 && strcmp(file->name + length, ending) == 0) return file->text;
  return "";
}

/* The definitions `types`; what all kernels share, what those by tensor cores or by tiles do, and what X shares with
 * X_tensor or X_few; then the file. */
static const char *program_text(struct arena *a, const char *name, const char *types) {
  const char *end = strstr(name, "_tensor");
  const char *kind = end                      ? text_of("tensor", 6, ".cuh")
                     : strstr(name, "_tiles") ? text_of("tiles", 5, ".cuh")
                                              : "";
  if (!end) end = strstr(name, "_few");
  return arena_printf(a, "%s%s%s%s%s", types, text_of("leaf", 4, ".cuh"), kind,
                      text_of(name, end ? (size_t)(end - name) : strlen(name), ".cuh"),
                      text_of(name, strlen(name), ".cu"));
}

/* The kernel of the file `name`, behind the definitions `types`; compiled when it is needed first. NULL after an error
 * in `d`. */
static const struct cuda_leaf *load_leaf(struct cuda_engine *e, const char *name, const char *types,
                                         struct diags *d) {
  for (const struct cuda_leaf *l = e->leaves; l; l = l->next)
    if (strcmp(l->name, name) == 0 && strcmp(l->types, types) == 0) return l;
  CUmodule *modules = arena_new_array(e->arena, (size_t)e->ncards, CUmodule);
  struct cuda_leaf *leaf = arena_new(e->arena, struct cuda_leaf);
  *leaf =
      (struct cuda_leaf){name, types, arena_new_array(e->arena, (size_t)e->ncards, CUfunction), e->leaves};
  struct cuda_program p = {program_text(e->arena, name, types), 1, &leaf->name};
  if (!cuda_load_program(e, &p, modules, d)) return NULL;
  for (int i = 0; i < e->ncards; i++)
    if (!cuda_find_function(e, i, modules[i], name, &leaf->functions[i], d)) return NULL;
  return e->leaves = leaf;
}

void cuda_run_leaf(void *const *args, const void *state) {
  const struct leaf_call *c = state;
  struct cuda_engine *e = c->engine;
  void *params[MAX_LEAF_INPUTS + 3], *result = args[c->nargs - 1], *none = NULL;
  int count = 0;
  for (; count < c->nargs - 1; count++) params[count] = (void *)&args[count];
  for (int i = 0; i < c->missing; i++) params[count++] = &none;
  params[count++] = (void *)&args[c->nargs - 1];
  params[count] = (void *)c->numbers;
  bool good = cuda_use(e, c->device);
  if (good && c->bytes && result != args[c->begins])
    good = CUDA(e, c->device, cuMemcpyAsync, cuda_address(result), cuda_address(args[c->begins]), c->bytes,
                e->devices[c->device].stream);
  if (good && c->launch.grid[0]) cuda_launch(e, c->device, c->function, &c->launch, params);
}

struct leaf_call *cuda_leaf_call(struct cuda_engine *e, struct arena *a, const struct leaf_launch *how,
                                 int device, struct diags *d) {
  const struct cuda_leaf *leaf = load_leaf(e, how->name, how->types, d);
  if (!leaf) return NULL;
  struct leaf_call *call = arena_new(a, struct leaf_call);
  unsigned block = how->block ? (unsigned)how->block : BLOCK_THREADS;
  int64_t blocks = blocks_of(how->threads, block);
  *call = (struct leaf_call){
      .engine = e,
      .device = device,
      .nargs = how->nargs,
      .missing = how->missing,
      .begins = how->begins,
      .function = leaf->functions[e->devices[device].card - e->cards],
      .launch = {CUDA_MAIN, {(unsigned)(blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS), 1, 1}, {block, 1, 1}},
      .bytes = how->bytes};
  memcpy(call->numbers, how->numbers, sizeof call->numbers);
  return call;
}

bool cuda_call_leaf(struct cuda_engine *e, struct arena *a, const struct leaf_launch *how, int device,
                    struct command *c, struct diags *d) {
  struct leaf_call *call = cuda_leaf_call(e, a, how, device, d);
  c->kind = COMMAND_CALL;
  c->call = cuda_run_leaf;
  c->state = call;
  return call != NULL;
}

/* TYPE is that of the elements, SUM the one in which they are added: integers wrap, narrow types are only moved.
 * INDEX: see leaf.cuh. */
#define TYPES(index)                                                                                    \
  {                                                                                                     \
    [DT_F32] = index "#define TYPE float\n#define SUM float\n",                                         \
    [DT_F64] = index "#define TYPE double\n#define SUM double\n",                                       \
    [DT_I32] = index "#define TYPE int\n#define SUM unsigned\n",                                        \
    [DT_I64] = index "#define TYPE long long\n#define SUM unsigned long long\n",                        \
    [DT_U8] = index "#define TYPE unsigned char\n#define SUM unsigned\n",                               \
    [DT_BOOL] = index "#define TYPE unsigned char\n#define SUM unsigned\n",                             \
    [DT_BF16] = index "#define TYPE unsigned short\n", [DT_F16] = index "#define TYPE unsigned short\n" \
  }
static const char *const types_of[DT_COUNT] = TYPES("");
static const char *const types_in_int[DT_COUNT] = TYPES("#define INDEX int\n");
#undef TYPES

bool cuda_windows_in_int(const struct node *n) {
  enum { MOST = 1 << 28 };
  if (!has_windows(n)) return false;
  struct windows w = windows_of(n), *s = &w;
  int64_t inputs = s->batch * s->channels, outputs = inputs;
  for (int i = 0; i < WINDOW_AXES; i++) {
    int64_t reach[][2] = {{s->output[i], s->stride[i]},
                          {s->size[i], s->dilation[i]},
                          {s->input[i], s->input_dilation[i]},
                          {s->low[i] < 0 ? -s->low[i] : s->low[i], 1}};
    for (int j = 0; j < 4; j++)
      if (reach[j][0] > MOST || reach[j][1] > MOST / (reach[j][0] + 1)) return false;
    if (s->input[i] > MOST / (inputs + 1) || s->output[i] > MOST / (outputs + 1)) return false;
    inputs *= s->input[i];
    outputs *= s->output[i];
  }
  return true;
}

bool cuda_integer_product(struct cuda_engine *e, struct arena *a, const struct product *p, int device,
                          struct command *c, struct diags *d) {
  struct leaf_launch how = {.name = "matmul",
                            .types = types_of[p->dtype],
                            .nargs = 3,
                            .threads = p->batch * p->m * p->n,
                            .numbers = {p->batch, p->m, p->n, p->k, p->transpose_a ? 1 : p->k,
                                        p->transpose_a ? p->m : 1, p->transpose_b ? 1 : p->n,
                                        p->transpose_b ? p->k : 1}};
  return cuda_call_leaf(e, a, &how, device, c, d);
}

bool cuda_has_tensor_cores(const struct cuda_engine *e) {
  for (int i = 0; i < e->ncards; i++)
    if (e->cards[i].arch < 80) return false;
  return true;
}

bool cuda_leaf_kernel(struct cuda_engine *e, struct arena *a, const struct step *step, int device,
                      struct command *c, struct diags *d) {
  const struct node *n = step->node;
  bool attends = n->op == OP_attention || n->op == OP_attention_gradient;
  if (attends && cuda_attention_by_tiles(n)) return cuda_leaf_attention(e, a, step, device, c, d);
  if (cuda_window_is_fixed(n)) return cuda_leaf_window(e, a, step, device, c, d);
  const struct op_info *op = op_of(n);
  struct leaf_launch how = {.name = op->name,
                            .types =
                                (cuda_windows_in_int(n) ? types_in_int : types_of)[n->inputs[0]->type.dtype],
                            .nargs = n->ninputs + 1,
                            .missing = op->max_inputs - n->ninputs,
                            .begins = op->in_place - 1,
                            .bytes = op->in_place ? (size_t)type_bytes(&n->type) : 0};
  how.threads = op->numbers(n, how.numbers);
  return cuda_call_leaf(e, a, &how, device, c, d);
}
