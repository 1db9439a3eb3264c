/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves that kernels/cuda computes: from a step to the launch of the kernel of its name. */
#include "runtime/cuda/leaf.h"

#include "ir/ops/leaf.h"
#include "kernels/cuda/texts.h"

#include <string.h>

enum { MAX_BLOCKS = 1 << 16 };

struct cuda_leaf {
  const char *name, *types;
  CUfunction *functions; /* one per card */
  struct cuda_leaf *next;
};

static const char *text_of(const char *name, const char *ending) {
  const struct embedded *file = kernels_cuda;
  while (strncmp(file->name, name, strlen(name)) != 0 || strcmp(file->name + strlen(name), ending) != 0)
    file++;
  return file->text;
}

/* Behind the definitions `types`, what such kernels share, then the file itself. */
static const char *program_text(struct arena *a, const char *name, const char *types) {
  const char *conv = strncmp(name, "conv", 4) == 0 ? text_of("conv", ".cuh") : "";
  const char *tensor = strstr(name, "_tensor") ? text_of("tensor", ".cuh") : "";
  return arena_printf(a, "%s%s%s%s%s", types, text_of("leaf", ".cuh"), conv, tensor, text_of(name, ".cu"));
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
  void *params[MAX_LEAF_INPUTS + 2], *result = args[c->nargs - 1], *none = NULL;
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
  int64_t blocks = (how->threads + BLOCK_THREADS - 1) / BLOCK_THREADS;
  *call = (struct leaf_call){.engine = e,
                             .device = device,
                             .nargs = how->nargs,
                             .missing = how->missing,
                             .begins = how->begins,
                             .function = leaf->functions[e->devices[device].card - e->cards],
                             .launch = {CUDA_MAIN,
                                        {(unsigned)(blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS), 1, 1},
                                        {BLOCK_THREADS, 1, 1}},
                             .bytes = how->bytes};
  memcpy(call->numbers, how->numbers, sizeof call->numbers);
  return call;
}

static bool call_leaf(struct cuda_engine *e, struct arena *a, const struct leaf_launch *how, int device,
                      struct command *c, struct diags *d) {
  struct leaf_call *call = cuda_leaf_call(e, a, how, device, d);
  c->kind = COMMAND_CALL;
  c->call = cuda_run_leaf;
  c->state = call;
  return call != NULL;
}

/* TYPE is that of the elements, SUM the one in which they are added: integers wrap. */
static const char *const types_of[DT_COUNT] = {
    [DT_F32] = "#define TYPE float\n#define SUM float\n",
    [DT_F64] = "#define TYPE double\n#define SUM double\n",
    [DT_I32] = "#define TYPE int\n#define SUM unsigned\n",
    [DT_I64] = "#define TYPE long long\n#define SUM unsigned long long\n",
    [DT_U8] = "#define TYPE unsigned char\n#define SUM unsigned\n",
    [DT_BOOL] = "#define TYPE unsigned char\n#define SUM unsigned\n"};

bool cuda_integer_product(struct cuda_engine *e, struct arena *a, const struct product *p, int device,
                          struct command *c, struct diags *d) {
  struct leaf_launch how = {.name = "matmul",
                            .types = types_of[p->dtype],
                            .nargs = 3,
                            .threads = p->batch * p->m * p->n,
                            .numbers = {p->batch, p->m, p->n, p->k, p->transpose_a ? 1 : p->k,
                                        p->transpose_a ? p->m : 1, p->transpose_b ? 1 : p->n,
                                        p->transpose_b ? p->k : 1}};
  return call_leaf(e, a, &how, device, c, d);
}

bool cuda_leaf_kernel(struct cuda_engine *e, struct arena *a, const struct step *step, int device,
                      struct command *c, struct diags *d) {
  const struct node *n = step->node;
  const struct op_info *op = op_of(n);
  struct leaf_launch how = {.name = op->name,
                            .types = types_of[n->inputs[0]->type.dtype],
                            .nargs = n->ninputs + 1,
                            .missing = op->max_inputs - n->ninputs,
                            .begins = op->in_place - 1,
                            .bytes = op->in_place ? (size_t)type_bytes(&n->type) : 0};
  how.threads = op->numbers(n, how.numbers);
  return call_leaf(e, a, &how, device, c, d);
}
