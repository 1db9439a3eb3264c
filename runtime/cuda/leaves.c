/* Kernels written by hand: products of integers, rows of tables.
 *
 * Sums are made in the order of the rows, so they do not depend on what runs when. */
#include "runtime/cuda/engine.h"

#include <string.h>

enum { THREADS = 256, MAX_BLOCKS = 1 << 16 };

/* One element of c after the other; sums wrap. */
#define PRODUCT(NAME, TYPE, SUM)                                                      \
  "extern \"C\" __global__ void " NAME "(const " TYPE " *a, const " TYPE " *b, " TYPE \
  " *c, struct product_sizes s) {\n"                                                  \
  "  long long step = (long long)gridDim.x * blockDim.x;\n"                           \
  "  long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"              \
  "  for (; at < s.batch * s.m * s.n; at += step) {\n"                                \
  "    long long column = at % s.n, row = at / s.n % s.m, batch = at / s.n / s.m;\n"  \
  "    const " TYPE " *x = a + batch * s.m * s.k + row * s.row_a;\n"                  \
  "    const " TYPE " *y = b + batch * s.k * s.n + column * s.column_b;\n"            \
  "    " SUM " sum = 0;\n"                                                            \
  "    for (long long i = 0; i < s.k; i++)\n"                                         \
  "      sum += (" SUM ")x[i * s.column_a] * (" SUM ")y[i * s.row_b];\n"              \
  "    c[at] = (" TYPE ")sum;\n"                                                      \
  "  }\n"                                                                             \
  "}\n"

#define GATHER(NAME, TYPE)                                                                \
  "extern \"C\" __global__ void " NAME "(const " TYPE " *table, const void *index, " TYPE \
  " *out, struct rows_sizes s) {\n"                                                       \
  "  long long step = (long long)gridDim.x * blockDim.x;\n"                               \
  "  long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"                  \
  "  for (; at < s.count * s.width; at += step) {\n"                                      \
  "    long long row = row_at(index, s.index_bytes, at / s.width);\n"                     \
  "    out[at] = row >= 0 && row < s.rows ? table[row * s.width + at % s.width] : 0;\n"   \
  "  }\n"                                                                                 \
  "}\n"

/* A block for each row number: it goes on if it is the first of those with the same number, and then adds the
 * values of all of them. */
#define SCATTER(NAME, TYPE)                                                                \
  "extern \"C\" __global__ void " NAME "(const void *index, const " TYPE " *values, " TYPE \
  " *out, struct rows_sizes s) {\n"                                                        \
  "  __shared__ int repeated;\n"                                                           \
  "  for (long long i = blockIdx.x; i < s.count; i += gridDim.x) {\n"                      \
  "    long long row = row_at(index, s.index_bytes, i);\n"                                 \
  "    __syncthreads();\n"                                                                 \
  "    if (threadIdx.x == 0) repeated = 0;\n"                                              \
  "    __syncthreads();\n"                                                                 \
  "    for (long long e = threadIdx.x; e < i; e += blockDim.x)\n"                          \
  "      if (row_at(index, s.index_bytes, e) == row) repeated = 1;\n"                      \
  "    __syncthreads();\n"                                                                 \
  "    if (repeated || row < 0 || row >= s.rows) continue;\n"                              \
  "    for (long long k = threadIdx.x; k < s.width; k += blockDim.x) {\n"                  \
  "      " TYPE " sum = out[row * s.width + k];\n"                                         \
  "      for (long long e = i; e < s.count; e++)\n"                                        \
  "        if (row_at(index, s.index_bytes, e) == row)\n"                                  \
  "          sum = (" TYPE ")(sum + values[e * s.width + k]);\n"                           \
  "      out[row * s.width + k] = sum;\n"                                                  \
  "    }\n"                                                                                \
  "  }\n"                                                                                  \
  "}\n"

enum leaf {
  PRODUCT_U8,
  PRODUCT_I32,
  PRODUCT_I64,
  GATHER_1,
  GATHER_4,
  GATHER_8,
  SCATTER_U8,
  SCATTER_I32,
  SCATTER_I64,
  SCATTER_F32,
  SCATTER_F64,
  LEAVES
};

static const char head[] =
    "struct product_sizes { long long batch, m, n, k, row_a, column_a, row_b, column_b; };\n"
    "struct rows_sizes { long long rows, width, count, index_bytes; };\n"
    "__device__ static long long row_at(const void *index, long long bytes, long long i) {\n"
    "  if (bytes == 1) return ((const unsigned char *)index)[i];\n"
    "  if (bytes == 4) return ((const int *)index)[i];\n"
    "  return ((const long long *)index)[i];\n"
    "}\n";

static const struct {
  const char *name, *text;
} leaves[LEAVES] = {
    [PRODUCT_U8] = {"product_u8", PRODUCT("product_u8", "unsigned char", "unsigned")},
    [PRODUCT_I32] = {"product_i32", PRODUCT("product_i32", "unsigned", "unsigned")},
    [PRODUCT_I64] = {"product_i64", PRODUCT("product_i64", "unsigned long long", "unsigned long long")},
    [GATHER_1] = {"gather_1", GATHER("gather_1", "unsigned char")},
    [GATHER_4] = {"gather_4", GATHER("gather_4", "unsigned")},
    [GATHER_8] = {"gather_8", GATHER("gather_8", "unsigned long long")},
    [SCATTER_U8] = {"scatter_u8", SCATTER("scatter_u8", "unsigned char")},
    [SCATTER_I32] = {"scatter_i32", SCATTER("scatter_i32", "unsigned")},
    [SCATTER_I64] = {"scatter_i64", SCATTER("scatter_i64", "unsigned long long")},
    [SCATTER_F32] = {"scatter_f32", SCATTER("scatter_f32", "float")},
    [SCATTER_F64] = {"scatter_f64", SCATTER("scatter_f64", "double")},
};

/* The leaf's functions, one per card; compiled when it is needed first. NULL after an error in `d`. */
static const CUfunction *load_leaf(struct cuda_engine *e, enum leaf leaf, struct diags *d) {
  if (!e->leaves) e->leaves = arena_new_array(e->arena, LEAVES, CUfunction *);
  if (e->leaves[leaf]) return e->leaves[leaf];
  CUmodule *modules = arena_new_array(e->arena, (size_t)e->ncards, CUmodule);
  CUfunction *functions = arena_new_array(e->arena, (size_t)e->ncards, CUfunction);
  struct cuda_program p = {arena_printf(e->arena, "%s%s", head, leaves[leaf].text), 1, &leaves[leaf].name};
  if (!cuda_load_program(e, &p, modules, d)) return NULL;
  for (int i = 0; i < e->ncards; i++)
    if (!cuda_find_function(e, i, modules[i], leaves[leaf].name, &functions[i], d)) return NULL;
  return e->leaves[leaf] = functions;
}

struct call {
  struct cuda_engine *engine;
  int device, nargs, first; /* the function's args are those of the step from this one on */
  CUfunction function;
  struct cuda_launch launch;
  size_t copied;      /* bytes from the first arg to the last, unless they are one place */
  int64_t numbers[8]; /* its sizes */
};

static void run_call(void *const *args, const void *state) {
  const struct call *c = state;
  struct cuda_engine *e = c->engine;
  void *params[5];
  for (int i = 0; i < c->nargs; i++) params[i] = (void *)&args[c->first + i];
  params[c->nargs] = (void *)c->numbers;
  void *last = args[c->first + c->nargs - 1];
  bool good = cuda_use(e, c->device);
  if (good && c->copied && last != args[0])
    good = CUDA(e, c->device, cuMemcpyAsync, cuda_address(last), cuda_address(args[0]), c->copied,
                e->devices[c->device].stream);
  if (good && c->launch.grid[0]) cuda_launch(e, c->device, c->function, &c->launch, params);
}

/* A call of the leaf in `blocks` blocks; 0: there is nothing to do. */
static struct call *prepare(struct cuda_engine *e, struct arena *a, enum leaf leaf, int64_t blocks,
                            int device, struct command *c, struct diags *d) {
  struct call *call = arena_new(a, struct call);
  const CUfunction *functions = load_leaf(e, leaf, d);
  if (!functions) return NULL;
  *call = (struct call){.engine = e, .device = device, .nargs = 3};
  call->function = functions[e->devices[device].card - e->cards];
  call->launch = (struct cuda_launch){
      CUDA_MAIN, {(unsigned)(blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS), 1, 1}, {THREADS, 1, 1}};
  c->kind = COMMAND_CALL;
  c->call = run_call;
  c->state = call;
  return call;
}

static int64_t blocks_for(int64_t elements) { return (elements + THREADS - 1) / THREADS; }

bool cuda_prepare_product(struct cuda_engine *e, struct arena *a, const struct matmul_size *s, int device,
                          struct command *c, struct diags *d) {
  enum leaf leaf = s->dtype == DT_I32 ? PRODUCT_I32 : s->dtype == DT_I64 ? PRODUCT_I64 : PRODUCT_U8;
  struct call *call = prepare(e, a, leaf, blocks_for(s->batch * s->m * s->n), device, c, d);
  if (!call) return false;
  int64_t *n = call->numbers;
  n[0] = s->batch, n[1] = s->m, n[2] = s->n, n[3] = s->k;
  n[4] = s->transpose_a ? 1 : s->k, n[5] = s->transpose_a ? s->m : 1;
  n[6] = s->transpose_b ? 1 : s->n, n[7] = s->transpose_b ? s->k : 1;
  return true;
}

static enum leaf scatter_leaf(enum dtype dtype) {
  switch (dtype) {
  case DT_F32: return SCATTER_F32;
  case DT_F64: return SCATTER_F64;
  case DT_I32: return SCATTER_I32;
  case DT_I64: return SCATTER_I64;
  default: return SCATTER_U8;
  }
}

bool cuda_prepare_rows(struct cuda_engine *e, struct arena *a, const struct step *step, int device,
                       struct command *c, struct diags *d) {
  const struct rows_size *r = &step->rows;
  bool gather = step->kind == STEP_GATHER;
  int size = dtype_size(r->dtype);
  int64_t elements = r->count * r->width;
  enum leaf leaf = !gather ? scatter_leaf(r->dtype) : size == 1 ? GATHER_1 : size == 4 ? GATHER_4 : GATHER_8;
  struct call *call = prepare(e, a, leaf,
                              gather     ? blocks_for(elements)
                              : elements ? r->count
                                         : 0,
                              device, c, d);
  if (!call) return false;
  if (!gather) {
    call->first = 1;
    call->copied = (size_t)(r->rows * r->width * size);
  }
  const int64_t numbers[] = {r->rows, r->width, r->count, dtype_size(r->index)};
  memcpy(call->numbers, numbers, sizeof numbers);
  return true;
}
