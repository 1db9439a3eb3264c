/* Leaves that kernels/cuda computes: products of integers, rows of tables. */
#include "runtime/cuda/leaf.h"

#include "ir/ops/leaf.h"
#include "kernels/cuda/texts.h"

#include <string.h>

enum { THREADS = 256, MAX_BLOCKS = 1 << 16, MAX_NUMBERS = 8 };

struct cuda_leaf {
  const char *name, *types;
  CUfunction *functions; /* one per card */
  struct cuda_leaf *next;
};

static const char *text_of(const char *name) {
  const struct embedded *file = kernels_cuda;
  while (strncmp(file->name, name, strlen(name)) != 0 || strcmp(file->name + strlen(name), ".cu") != 0)
    file++;
  return file->text;
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
  struct cuda_program p = {arena_printf(e->arena, "%s%s", types, text_of(name)), 1, &leaf->name};
  if (!cuda_load_program(e, &p, modules, d)) return NULL;
  for (int i = 0; i < e->ncards; i++)
    if (!cuda_find_function(e, i, modules[i], name, &leaf->functions[i], d)) return NULL;
  return e->leaves = leaf;
}

struct leaf_call {
  struct cuda_engine *engine;
  int device, nargs, first; /* the function's args are those of the step from this one on */
  CUfunction function;
  struct cuda_launch launch;
  size_t copied; /* bytes from the first arg to the last, unless they are one place */
  int64_t numbers[MAX_NUMBERS];
};

static void run_call(void *const *args, const void *state) {
  const struct leaf_call *c = state;
  struct cuda_engine *e = c->engine;
  void *params[MAX_LEAF_INPUTS + 2];
  for (int i = 0; i < c->nargs; i++) params[i] = (void *)&args[c->first + i];
  params[c->nargs] = (void *)c->numbers;
  void *last = args[c->first + c->nargs - 1];
  bool good = cuda_use(e, c->device);
  if (good && c->copied && last != args[0])
    good = CUDA(e, c->device, cuMemcpyAsync, cuda_address(last), cuda_address(args[0]), c->copied,
                e->devices[c->device].stream);
  if (good && c->launch.grid[0]) cuda_launch(e, c->device, c->function, &c->launch, params);
}

bool cuda_call_leaf(struct cuda_engine *e, struct arena *a, const struct cuda_leaf_call *how, int device,
                    struct command *c, struct diags *d) {
  const struct cuda_leaf *leaf = load_leaf(e, how->name, how->types, d);
  if (!leaf) return false;
  struct leaf_call *call = arena_new(a, struct leaf_call);
  int64_t blocks = how->blocks < MAX_BLOCKS ? how->blocks : MAX_BLOCKS;
  *call = (struct leaf_call){.engine = e,
                             .device = device,
                             .nargs = how->nargs,
                             .first = how->first,
                             .function = leaf->functions[e->devices[device].card - e->cards],
                             .launch = {CUDA_MAIN, {(unsigned)blocks, 1, 1}, {THREADS, 1, 1}},
                             .copied = how->copied};
  memcpy(call->numbers, how->numbers, sizeof call->numbers);
  c->kind = COMMAND_CALL;
  c->call = run_call;
  c->state = call;
  return true;
}

int64_t cuda_leaf_blocks(int64_t elements) { return (elements + THREADS - 1) / THREADS; }

bool cuda_integer_product(struct cuda_engine *e, struct arena *a, const struct product *p, int device,
                          struct command *c, struct diags *d) {
  struct cuda_leaf_call how = {
      .name = "matmul", .nargs = 3, .blocks = cuda_leaf_blocks(p->batch * p->m * p->n)};
  how.types = p->dtype == DT_I32   ? "#define TYPE unsigned\n#define SUM unsigned\n"
              : p->dtype == DT_I64 ? "#define TYPE unsigned long long\n#define SUM unsigned long long\n"
                                   : "#define TYPE unsigned char\n#define SUM unsigned\n";
  const int64_t numbers[MAX_NUMBERS] = {p->batch,
                                        p->m,
                                        p->n,
                                        p->k,
                                        p->transpose_a ? 1 : p->k,
                                        p->transpose_a ? p->m : 1,
                                        p->transpose_b ? 1 : p->n,
                                        p->transpose_b ? p->k : 1};
  memcpy(how.numbers, numbers, sizeof numbers);
  return cuda_call_leaf(e, a, &how, device, c, d);
}

/* Of what is added to, and wraps. */
static const char *const number_types[DT_COUNT] = {[DT_F32] = "#define TYPE float\n",
                                                   [DT_F64] = "#define TYPE double\n",
                                                   [DT_I32] = "#define TYPE unsigned\n",
                                                   [DT_I64] = "#define TYPE unsigned long long\n",
                                                   [DT_U8] = "#define TYPE unsigned char\n"};

bool cuda_leaf_cumsum(struct cuda_engine *e, struct arena *a, const struct step *step, int device,
                      struct command *c, struct diags *d) {
  struct lines l = lines_of(step->node);
  struct cuda_leaf_call how = {.name = "cumsum",
                               .types = number_types[l.dtype],
                               .nargs = 2,
                               .blocks = l.length ? cuda_leaf_blocks(l.outer * l.inner) : 0,
                               .numbers = {l.outer, l.length, l.inner, l.reverse, l.exclusive}};
  return cuda_call_leaf(e, a, &how, device, c, d);
}

static void set_rows(struct cuda_leaf_call *how, const struct table_rows *r) {
  const int64_t numbers[] = {r->rows, r->width, r->count, dtype_size(r->index)};
  memcpy(how->numbers, numbers, sizeof numbers);
}

bool cuda_leaf_gather(struct cuda_engine *e, struct arena *a, const struct step *step, int device,
                      struct command *c, struct diags *d) {
  struct table_rows r = rows_of(step->node);
  int size = dtype_size(r.dtype);
  struct cuda_leaf_call how = {.name = "gather", .nargs = 3, .blocks = cuda_leaf_blocks(r.count * r.width)};
  how.types = size == 1   ? "#define TYPE unsigned char\n"
              : size == 4 ? "#define TYPE unsigned\n"
                          : "#define TYPE unsigned long long\n";
  set_rows(&how, &r);
  return cuda_call_leaf(e, a, &how, device, c, d);
}

bool cuda_leaf_scatter_add(struct cuda_engine *e, struct arena *a, const struct step *step, int device,
                           struct command *c, struct diags *d) {
  struct table_rows r = rows_of(step->node);
  struct cuda_leaf_call how = {.name = "scatter_add",
                               .types = number_types[r.dtype],
                               .nargs = 3,
                               .first = 1,
                               .blocks = r.width ? r.count : 0,
                               .copied = (size_t)type_bytes(&step->node->type)};
  set_rows(&how, &r);
  return cuda_call_leaf(e, a, &how, device, c, d);
}
