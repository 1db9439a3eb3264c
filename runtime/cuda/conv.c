/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions: kernels/cuda/conv_tensor.cu where tiles pay, else conv.cu. Tensor cores multiply factors that are
 * bfloat16 already, and with --tf32 all. How the work is cut depends on sizes alone, so equal towers give equal bits on
 * cards of one kind. */
#include "runtime/cuda/leaf.h"

#include "base/integer.h"

#include <string.h>

/* As conv_tensor.cu has them: threads of a block, the most pixels that it sums beside each other, and bits of masks.
 * And places of a kernel: few are the rule. */
enum { THREADS = 128, PIXELS = 64, MAX_BITS = 30, FEW_PLACES = 64, MAX_PLACES = 256 };
enum { LEAST_COLUMNS = 4, LEAST_DEPTH = 8 };
/* The blocks that tiles should make, and those that pieces of a kernel's pixels should, few of the largest; how many
 * pixels are worth a piece, and the bytes that all may take. */
enum { ENOUGH = 384, BLOCKS = 512, FEW_BLOCKS = 384, LEAST_PIECE = 128, MAX_PARTS = 64 << 20 };
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

/* Rows that are so many pixels apart on an axis meet the same places of the kernel. */
static int64_t phases_of(const struct convolution *s, int axis) {
  if (s->result == CONV_KERNEL) return 1;
  int64_t step = s->result == CONV_INPUT ? s->stride[axis] : s->input_dilation[axis];
  return step / common_divisor(step, s->result == CONV_INPUT ? s->input_dilation[axis] : s->stride[axis]);
}

/* Of a tile: the places of the kernel that its rows meet, and the bits of masks, one for each place on axes where some
 * are outside. */
struct conv_met {
  int64_t count, bits;
};

static struct conv_met places_of(const struct convolution *s) {
  struct conv_met p = {1, 0};
  for (int i = 0; i < CONV_AXES; i++) {
    int64_t step = s->result == CONV_INPUT ? s->stride[i] : s->input_dilation[i], length = s->kernel[i];
    int64_t last = (s->output[i] - 1) * s->stride[i] - s->low[i] + (length - 1) * s->kernel_dilation[i];
    bool leaves = s->result == CONV_INPUT || step > 1 || s->low[i] > 0 || last >= s->input[i];
    int64_t apart = s->result == CONV_KERNEL ? 1 : step / common_divisor(step, s->kernel_dilation[i]);
    length = blocks_of(length, apart);
    p.count *= length;
    p.bits += leaves ? length : 0;
  }
  return p;
}

struct conv_tile {
  int high, wide;
  int64_t across, down, count; /* of these, of a group; and of all but pieces */
};

static struct conv_tile tile(const struct convolution *s, int high, int wide) {
  struct sizes z = sizes_of(s);
  int64_t rows = z.rows, phases = 1;
  for (int i = 0; i < CONV_AXES && s->result != CONV_KERNEL; i++) {
    int64_t size = s->result == CONV_INPUT ? s->input[i] : s->output[i], of = phases_of(s, i);
    rows = rows / size * blocks_of(size, of);
    phases *= of;
  }
  struct conv_tile t = {high, wide, blocks_of(z.columns, wide), blocks_of(rows, high), 0};
  t.count = t.across * t.down * z.groups * phases;
  return t;
}

/* The highest tiles that are enough blocks, else the lowest. */
static struct conv_tile tile_of(const struct convolution *s) {
  static const int highs[][4] = {[0] = {256, 128}, [1] = {128, 64, 32}, [2] = {128, 64, 32}};
  struct sizes z = sizes_of(s);
  int wide = z.columns > 32 ? 64 : z.columns > 16 ? 32 : 16, high = 0;
  if (s->result == CONV_KERNEL) {
    int64_t large = tile(s, 128, 64).count * (z.depth / (4 * LEAST_PIECE));
    high = wide == 16 ? 48 : wide == 32 ? 32 : large < BLOCKS ? 64 : 128;
  }
  for (int i = 0; s->result != CONV_KERNEL && i < 4 && highs[wide / 32][i]; i++) {
    high = highs[wide / 32][i];
    if (tile(s, high, wide).count >= ENOUGH) break;
  }
  return tile(s, high, wide);
}

static bool by_tiles(const struct node *n, const struct convolution *s) {
  struct sizes z = sizes_of(s);
  if (n->inputs[0]->type.dtype != DT_F32 || type_count(&n->type) == 0 || z.columns < LEAST_COLUMNS ||
      z.depth < LEAST_DEPTH || !is_small(s))
    return false;
  struct conv_met p = places_of(s);
  if (p.bits > MAX_BITS || (p.count > MAX_PLACES && s->result != CONV_KERNEL)) return false;
  return z.columns <= most_of_int / count_of(s->kernel) &&
         s->groups <= most_of_int / (s->channels + s->filters) &&
         tile(s, 32, 16).count <= most_of_int / BLOCKS;
}

/* How numbers are multiplied: as they are, or by tensor cores. */
enum factors { EXACT, TF32, BF16 };

static enum factors factors_of(const struct cuda_engine *e, const struct node *n) {
  if (!cuda_has_tensor_cores(e)) return EXACT;
  return node_attr(n, ATTR_precision) ? BF16 : e->tf32 ? TF32 : EXACT;
}

/* The definitions in front of the text, by what they say. They live as long as the engine. */
static const char *definitions(struct cuda_engine *e, enum factors factors, const struct convolution *s,
                               const struct conv_tile *t) {
  static const char *const of[] = {"#define BF16 0\n#define EXACT 1\n", "#define BF16 0\n",
                                   "#define BF16 1\n"};
  bool many = s->result != CONV_KERNEL && places_of(s).count > FEW_PLACES;
  return arena_printf(e->arena,
                      "#define TYPE float\n#define SUM float\n%s#define RESULT %d\n#define HIGH %d\n"
                      "#define WIDE %d\n#define TAPS %d\n",
                      of[factors], (int)s->result, t->high, t->wide, many ? MAX_PLACES : FEW_PLACES);
}

struct conv_cut {
  int64_t count, pixels;
};

static struct conv_cut cut_of(const struct convolution *s, int64_t tiles, int64_t blocks) {
  struct sizes z = sizes_of(s);
  int64_t bytes = z.rows * z.columns * z.groups * 4, count = blocks / tiles;
  if (count > z.depth / LEAST_PIECE) count = z.depth / LEAST_PIECE;
  if (count > MAX_PARTS / bytes) count = MAX_PARTS / bytes;
  if (s->result != CONV_KERNEL || count < 2) return (struct conv_cut){1, z.depth};
  int64_t pixels = round_up(blocks_of(z.depth, count), PIXELS);
  return (struct conv_cut){blocks_of(z.depth, pixels), pixels};
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

bool cuda_call_pieces(struct cuda_engine *e, struct arena *a, const struct leaf_launch *how, int64_t pieces,
                      int64_t count, int lanes, int device, struct command *c, struct diags *d) {
  if (pieces == 1) return cuda_call_leaf(e, a, how, device, c, d);
#define TYPES "#define TYPE float\n#define SUM float\n"
  const char *types = lanes == 32 ? TYPES "#define LANES 32\n" : TYPES;
#undef TYPES
  struct leaf_launch join = {
      .name = "conv_join", .types = types, .nargs = 2, .threads = count * lanes, .numbers = {count, pieces}};
  struct conv_call *both = arena_new(a, struct conv_call);
  *both = (struct conv_call){cuda_leaf_call(e, a, how, device, d), cuda_leaf_call(e, a, &join, device, d),
                             &e->devices[device].scratch[SCRATCH_A].data};
  c->kind = COMMAND_CALL;
  c->call = run_pieces;
  c->state = both;
  return both->parts && both->join && cuda_scratch(e, device, SCRATCH_A, (size_t)(pieces * count * 4), d);
}

/* Whether tensor cores are the faster way although channels and filters are few: y of ResNet-20's 16 takes 25 us by
 * tiles and 36 by conv_few (H200, TF32), that of its 3 channels 20 either way. */
static bool fills_tiles(const struct convolution *s) { return s->channels > 8 && s->filters > 8; }

bool cuda_leaf_conv(struct cuda_engine *e, struct arena *a, const struct step *step, int device,
                    struct command *c, struct diags *d) {
  const struct node *n = step->node;
  struct convolution s = convolution_of(n);
  bool tiles = by_tiles(n, &s), cores = tiles && factors_of(e, n) != EXACT && fills_tiles(&s);
  if (!cores && cuda_conv_is_few(n)) return cuda_leaf_conv_few(e, a, step, device, c, d);
  if (!tiles) return cuda_leaf_kernel(e, a, step, device, c, d);
  struct conv_tile t = tile_of(&s);
  struct conv_cut cut = cut_of(&s, t.count, t.high == 128 ? FEW_BLOCKS : BLOCKS);
  struct leaf_launch how = {.name = "conv_tensor",
                            .types = definitions(e, factors_of(e, n), &s, &t),
                            .nargs = 3,
                            .block = THREADS,
                            .threads = t.count * cut.count * THREADS};
  memcpy(how.numbers, &s, sizeof s);
  const int64_t more[] = {cut.count, cut.pixels, t.across, t.down, t.count * cut.count};
  memcpy(how.numbers + sizeof s / sizeof *how.numbers, more, sizeof more);
  return cuda_call_pieces(e, a, &how, cut.count, type_count(&n->type), 8, device, c, d);
}
