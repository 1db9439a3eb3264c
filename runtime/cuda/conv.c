/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions: kernels/cuda/conv_tensor.cu where tiles pay, else conv.cu. Tensor cores multiply factors that are
 * bfloat16 already, and with --tf32 all. How the work is cut depends on sizes alone, so equal towers give equal bits on
 * cards of one kind. */
#include "runtime/cuda/leaf.h"

#include <string.h>

/* As conv_tensor.cu has them. */
enum { HIGH = 128, HIGH_OF_KERNEL = 64, PIXELS = 64, LEAST_COLUMNS = 4, LEAST_DEPTH = 8 };
/* The blocks that pieces of a kernel's pixels should make, how many pixels are worth one, and the bytes that all may
 * take. */
enum { BLOCKS = 512, LEAST_PIECE = 256, MAX_PARTS = 64 << 20 };
static const int64_t most_of_int = (int64_t)1 << 30;

struct sizes {
  int64_t rows, columns, depth, groups;
};

static int64_t count_of(const int64_t *size) { return size[0] * size[1] * size[2]; }

static struct sizes sizes_of(const struct convolution *s) {
  int64_t places = count_of(s->kernel), outputs = s->batch * count_of(s->output);
  if (s->result == CONV_INPUT)
    return (struct sizes){s->batch * count_of(s->input), s->channels, places * s->filters, s->groups};
  if (s->result == CONV_KERNEL) return (struct sizes){places * s->channels, s->filters, outputs, s->groups};
  return (struct sizes){outputs, s->filters, places * s->channels, s->groups};
}

/* Whether conv_tensor.cu, which counts in int, may count it. */
static bool is_small(const struct convolution *s) {
  for (int i = 0; i < CONV_AXES; i++) {
    if (s->low[i] > most_of_int / 4 || s->low[i] < -most_of_int / 4) return false;
    int64_t reach[] = {s->output[i],         s->stride[i], s->input[i],
                       s->input_dilation[i], s->kernel[i], s->kernel_dilation[i]};
    for (int j = 0; j < 6; j += 2)
      if (reach[j] >= most_of_int / 4 || reach[j + 1] > most_of_int / 4 / (reach[j] + 1)) return false;
  }
  int64_t inner = s->result == CONV_INPUT ? s->filters : s->channels;
  int64_t longest = s->kernel[1] > s->kernel[2] ? s->kernel[1] : s->kernel[2];
  if (inner > longest) longest = inner;
  const int64_t factors[][4] = {{s->batch, s->input[0], s->input[1], s->input[2]},
                                {s->batch, s->output[0], s->output[1], s->output[2]},
                                {s->kernel[0], s->kernel[1], s->kernel[2], inner}};
  for (int i = 0; i < 3; i++) {
    int64_t product = 1;
    for (int j = 0; j < 4; j++) {
      if (factors[i][j] > most_of_int / product) return false;
      product *= factors[i][j] ? factors[i][j] : 1;
    }
    if (i == 2 && (product + PIXELS) > ((int64_t)1 << 32) / longest) return false; /* see divide() */
  }
  return true;
}

static bool by_tiles(const struct node *n, const struct convolution *s) {
  struct sizes z = sizes_of(s);
  return n->inputs[0]->type.dtype == DT_F32 && type_count(&n->type) > 0 && z.columns >= LEAST_COLUMNS &&
         z.depth >= LEAST_DEPTH && is_small(s);
}

/* How numbers are multiplied: as they are, or by tensor cores. */
enum factors { EXACT, TF32, BF16 };

static enum factors factors_of(const struct cuda_engine *e, const struct node *n) {
  if (!cuda_has_tensor_cores(e)) return EXACT;
  return node_attr(n, ATTR_precision) ? BF16 : e->tf32 ? TF32 : EXACT;
}

/* The definitions in front of the text, by what they say. */
static const char *definitions(enum factors factors, int64_t result, int wide) {
#define TEXT(factors, result, wide) \
  "#define TYPE float\n#define SUM float\n" factors "#define RESULT " #result "\n#define WIDE " #wide "\n"
#define WIDTHS(factors, result) \
  { TEXT(factors, result, 16), TEXT(factors, result, 32), TEXT(factors, result, 64) }
#define RESULTS(factors) \
  { WIDTHS(factors, 0), WIDTHS(factors, 1), WIDTHS(factors, 2) }
  static const char *const all[][3][3] = {[EXACT] = RESULTS("#define BF16 0\n#define EXACT 1\n"),
                                          [TF32] = RESULTS("#define BF16 0\n"),
                                          [BF16] = RESULTS("#define BF16 1\n")};
  return all[factors][result][wide / 32];
#undef RESULTS
#undef WIDTHS
#undef TEXT
}

struct conv_cut {
  int64_t count, pixels;
};

static struct conv_cut cut_of(const struct convolution *s, int64_t tiles) {
  struct sizes z = sizes_of(s);
  int64_t bytes = z.rows * z.columns * z.groups * 4, count = BLOCKS / tiles;
  if (count > z.depth / LEAST_PIECE) count = z.depth / LEAST_PIECE;
  if (count > MAX_PARTS / bytes) count = MAX_PARTS / bytes;
  if (s->result != CONV_KERNEL || count < 2) return (struct conv_cut){1, z.depth};
  int64_t pixels = (z.depth + count - 1) / count;
  pixels = (pixels + PIXELS - 1) / PIXELS * PIXELS;
  return (struct conv_cut){(z.depth + pixels - 1) / pixels, pixels};
}

struct conv_call {
  const struct leaf_call *parts, *join;
  const CUdeviceptr *scratch;
};

static void run_pieces(void *const *args, const void *state) {
  const struct conv_call *c = state;
  void *parts = (void *)(uintptr_t)*c->scratch;
  cuda_run_leaf((void *[]){args[0], args[1], parts}, c->parts);
  cuda_run_leaf((void *[]){parts, args[2]}, c->join);
}

bool cuda_leaf_conv(struct cuda_engine *e, struct arena *a, const struct step *step, int device,
                    struct command *c, struct diags *d) {
  const struct node *n = step->node;
  struct convolution s = convolution_of(n);
  if (!by_tiles(n, &s)) return cuda_leaf_kernel(e, a, step, device, c, d);
  struct sizes z = sizes_of(&s);
  int wide = z.columns > 32 ? 64 : z.columns > 16 ? 32 : 16;
  int64_t high = s.result == CONV_KERNEL ? HIGH_OF_KERNEL : HIGH;
  int64_t tiles = (z.rows + high - 1) / high * ((z.columns + wide - 1) / wide) * z.groups;
  struct conv_cut cut = cut_of(&s, tiles);
  struct leaf_launch how = {.name = "conv_tensor",
                            .types = definitions(factors_of(e, n), s.result, wide),
                            .nargs = 3,
                            .threads = tiles * cut.count * BLOCK_THREADS};
  memcpy(how.numbers, &s, sizeof s);
  how.numbers[sizeof s / sizeof *how.numbers] = cut.count;
  how.numbers[sizeof s / sizeof *how.numbers + 1] = cut.pixels;
  struct leaf_call *call = cuda_leaf_call(e, a, &how, device, d);
  c->kind = COMMAND_CALL;
  c->call = cuda_run_leaf;
  c->state = call;
  if (!call || cut.count == 1) return call != NULL;
  int64_t count = type_count(&n->type);
  struct leaf_launch join = {.name = "conv_join",
                             .types = "#define TYPE float\n#define SUM float\n",
                             .nargs = 2,
                             .threads = count * 8,
                             .numbers = {count, cut.count}};
  struct conv_call *both = arena_new(a, struct conv_call);
  *both = (struct conv_call){call, cuda_leaf_call(e, a, &join, device, d),
                             &e->devices[device].scratch[SCRATCH_A].data};
  c->call = run_pieces;
  c->state = both;
  return both->join && cuda_scratch(e, device, SCRATCH_A, (size_t)(cut.count * count * 4), d);
}
