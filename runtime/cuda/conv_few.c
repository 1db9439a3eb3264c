/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of f32 with few channels and filters in a group: kernels/cuda/conv_few.cu, whose text has the
 * sizes in it. Which those are, and how the work is cut, depends on sizes alone. */
#include "runtime/cuda/leaf.h"

#include "base/integer.h"

#include <string.h>

/* Channels and filters of a group; pixels of a kernel's row, and of what a run of pixels sees; pixels along an axis. */
enum { MOST_INNER = 16, MOST_COLUMNS = 16, MOST_PLACES = 16, MOST_SPAN = 32, MOST_PIXELS = 1 << 12 };
/* Numbers in a thread's registers, and in a block's shared memory; the pixels of a run. */
enum {
  MOST_SUMS = 40,
  MOST_SUMS_OF_KERNEL = 48,
  MOST_SHARED = 11 << 10,
  MOST_SHARED_OF_KERNEL = 8 << 10,
  MOST_RUN = 14
};
/* Of a kernel: the blocks that pieces should make, and the bytes that all may take. */
enum { BLOCKS = 512, MAX_PARTS = 64 << 20 };
enum { H, W, AXES };

/* As the text has them. */
struct few {
  int64_t result, groups, columns, inner;
  int64_t seen[AXES], out[AXES], kernel[AXES], step[AXES], gap[AXES], spread[AXES], low[AXES];
  int64_t rows, run, take, part, seen_rows;
};

/* MORE of the text. */
static int64_t more(const struct few *f, int axis) {
  return -f->low[axis] - floor_quotient(-f->low[axis], f->gap[axis]) * f->gap[axis];
}

/* ---- sizes ---- */

static bool sizes_of(const struct convolution *s, struct few *f) {
  bool input = s->result == CONV_INPUT;
  *f = (struct few){.result = s->result,
                    .groups = s->groups,
                    .columns = input ? s->channels : s->filters,
                    .inner = input ? s->filters : s->channels};
  if (s->input[0] != 1 || s->kernel[0] != 1 || s->output[0] != 1 || s->low[0] != 0) return false;
  for (int i = 0; i < AXES; i++) {
    const int64_t all[] = {s->input[i + 1],  s->output[i + 1],         s->kernel[i + 1],
                           s->stride[i + 1], s->input_dilation[i + 1], s->kernel_dilation[i + 1]};
    for (int j = 0; j < 6; j++)
      if (all[j] < 1 || all[j] > MOST_PIXELS) return false;
    if (s->low[i + 1] > MOST_PIXELS || s->low[i + 1] < -MOST_PIXELS) return false;
    f->seen[i] = input ? s->output[i + 1] : s->input[i + 1];
    f->out[i] = input ? s->input[i + 1] : s->output[i + 1];
    f->kernel[i] = s->kernel[i + 1];
    f->step[i] = input ? s->input_dilation[i + 1] : s->stride[i + 1];
    f->gap[i] = input ? s->stride[i + 1] : s->input_dilation[i + 1];
    f->spread[i] = s->kernel_dilation[i + 1];
    f->low[i] = input ? (s->kernel[i + 1] - 1) * f->spread[i] - s->low[i + 1] : s->low[i + 1];
  }
  int64_t tall = (f->out[H] * f->step[H] + f->kernel[H] * f->spread[H]) / f->gap[H] + 2;
  if (tall < f->seen[H]) tall = f->seen[H];
  int64_t pixels = tall * f->seen[W] > f->out[H] * f->out[W] ? tall * f->seen[W] : f->out[H] * f->out[W];
  int64_t weights = f->columns * f->inner * f->kernel[H] * f->kernel[W];
  return s->batch > 0 && s->groups > 0 && s->groups < 1 << 16 && f->columns > 0 &&
         f->columns <= MOST_COLUMNS && f->inner > 0 && f->inner <= MOST_INNER &&
         f->kernel[W] <= MOST_PLACES && weights <= (1 << 30) / s->groups && pixels <= (1 << 30) / s->batch;
}

static int64_t span(const struct few *f, int64_t run) {
  return ((run - 1) * f->step[W] + (f->kernel[W] - 1) * f->spread[W] + more(f, W)) / f->gap[W] + 1;
}

/* The pixels of the run that costs least, where each run costs two pixels more than it has; 0: none is possible. */
static int64_t run_of(const struct few *f, int64_t most) {
  int64_t best = 0;
  for (int64_t run = most < MOST_RUN ? most : MOST_RUN; run > 0; run--) {
    if (run > f->out[W] && run > f->gap[W]) continue;
    if (run * f->step[W] % f->gap[W] != 0 || span(f, run) > MOST_SPAN) continue;
    if (!best || blocks_of(f->out[W], run) * (run + 2) < blocks_of(f->out[W], best) * (best + 2)) best = run;
  }
  return best;
}

static int64_t first_seen(const struct few *f, int64_t row) {
  int64_t tall =
      ((f->out[H] - 1) * f->step[H] + (f->kernel[H] - 1) * f->spread[H] + more(f, H)) / f->gap[H] + 1;
  return row / f->out[H] * tall + (row % f->out[H] * f->step[H] + more(f, H)) / f->gap[H];
}

/* How many rows of what is looked up the rows of a block see at most. */
static int64_t seen_rows(const struct few *f) {
  int64_t most = 0, reach = ((f->kernel[H] - 1) * f->spread[H] + f->gap[H] - 1) / f->gap[H] + 1;
  for (int64_t i = 0; i < f->out[H]; i++) {
    int64_t between = first_seen(f, (i + 1) * f->rows - 1) - first_seen(f, i * f->rows);
    if (between > most) most = between;
  }
  return most + reach;
}

/* Numbers in shared memory; sets seen_rows. */
static int64_t shared(struct few *f) {
  int64_t runs = blocks_of(f->out[W], f->run),
          slots = blocks_of(f->columns, f->take) * blocks_of(f->take, 4) * 4;
  int64_t wide = (runs - 1) * (f->run * f->step[W] / f->gap[W]) + span(f, f->run);
  f->seen_rows = seen_rows(f);
  int64_t tile = f->seen_rows * (wide * f->part | 1);
  if (f->result == CONV_KERNEL) return tile + f->rows * f->out[W] * slots;
  int64_t all = tile + f->kernel[H] * f->part * f->kernel[W] * slots, line = (f->out[W] * f->columns) | 1;
  return all > line ? all : line;
}

/* As many rows as a block has threads for; channels in as few parts as there is room for. */
static bool cut_pixels(const struct convolution *s, struct few *f) {
  f->take = blocks_of(f->columns, blocks_of(f->columns, 8));
  f->run = run_of(f, MOST_SUMS / f->take);
  if (!f->run) return false;
  int64_t of_row = blocks_of(f->out[W], f->run) * blocks_of(f->columns, f->take);
  f->rows = BLOCK_THREADS / of_row;
  if (f->rows > s->batch * f->out[H]) f->rows = s->batch * f->out[H];
  for (; f->rows > 0; f->rows -= f->rows > 16 ? f->rows / 8 : 1)
    for (f->part = f->inner; f->part > 0; f->part--)
      if (f->inner % f->part == 0 && (f->part == f->inner || f->part % 8 == 0 || f->rows == 1) &&
          shared(f) <= MOST_SHARED)
        return true;
  return false;
}

/* As many rows as leave the least lanes without work. */
static bool cut_kernel(const struct convolution *s, struct few *f) {
  int64_t parts = blocks_of(f->columns * f->kernel[W], MOST_SUMS_OF_KERNEL), rows = s->batch * f->out[H],
          best = 0, worst = 0;
  if (parts > f->columns) return false;
  f->take = blocks_of(f->columns, parts);
  parts = blocks_of(f->columns, f->take);
  f->run = run_of(f, 8);
  int64_t roles = f->kernel[H] * f->inner * parts, lanes = BLOCK_THREADS / roles;
  if (!f->run || lanes == 0) return false;
  f->part = f->inner;
  for (f->rows = 1; f->rows <= rows && f->rows <= 64 && shared(f) <= MOST_SHARED_OF_KERNEL; f->rows++) {
    int64_t turns = blocks_of(f->rows * blocks_of(f->out[W], f->run), lanes);
    if (best && turns * lanes * best > worst * f->rows) continue;
    best = f->rows;
    worst = turns * lanes;
  }
  f->rows = best;
  return best && shared(f) > 0;
}

/* False: it is not for this kernel. */
static bool few_of(const struct node *n, struct few *f) {
  struct convolution s = convolution_of(n);
  if (n->inputs[0]->type.dtype != DT_F32 || type_count(&n->type) == 0 || !sizes_of(&s, f)) return false;
  return f->result == CONV_KERNEL ? cut_kernel(&s, f) : cut_pixels(&s, f);
}

bool cuda_conv_is_few(const struct node *n) {
  struct few f;
  return few_of(n, &f);
}

/* ---- launches ---- */

/* The definitions in front of the text. */
static const char *definitions(struct arena *a, const struct few *f) {
  static const char *const letters = "HW";
  struct str text = str_make(a);
  const struct {
    const char *name;
    int64_t value;
  } numbers[] = {{"RESULT", f->result}, {"GROUPS", f->groups}, {"COLUMNS", f->columns},
                 {"INNER", f->inner},   {"ROWS", f->rows},     {"RUN", f->run},
                 {"TAKE", f->take},     {"PART", f->part},     {"SEEN_ROWS", f->seen_rows}};
  str_put(&text, "#define TYPE float\n#define SUM float\n");
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    str_printf(&text, "#define %s %lld\n", numbers[i].name, (long long)numbers[i].value);
  for (int i = 0; i < AXES; i++) {
    const struct {
      const char *name;
      int64_t value;
    } axis[] = {{"SEEN", f->seen[i]}, {"OUT", f->out[i]}, {"KERNEL", f->kernel[i]},
                {"STEP", f->step[i]}, {"GAP", f->gap[i]}, {"SPREAD", f->spread[i]},
                {"LOW", f->low[i]}};
    for (size_t j = 0; j < sizeof axis / sizeof *axis; j++)
      str_printf(&text, "#define %s_%c (%lld)\n", axis[j].name, letters[i], (long long)axis[j].value);
  }
  return text.data;
}

/* How many pieces a kernel's rows of the output are cut into, each a multiple of a block's. */
static int64_t pieces_of(const struct few *f, int64_t rows, int64_t bytes, int64_t *piece) {
  int64_t count = BLOCKS / f->groups, turns = blocks_of(rows, f->rows);
  if (count > MAX_PARTS / bytes) count = MAX_PARTS / bytes;
  if (count > turns) count = turns;
  if (f->result != CONV_KERNEL || count < 1) count = 1;
  *piece = blocks_of(turns, count) * f->rows;
  return blocks_of(rows, *piece);
}

bool cuda_leaf_conv_few(struct cuda_engine *e, struct arena *a, const struct step *step, int device,
                        struct command *c, struct diags *d) {
  const struct node *n = step->node;
  struct convolution s = convolution_of(n);
  struct few f;
  few_of(n, &f);
  int64_t rows = s.batch * f.out[H], count = type_count(&n->type), piece;
  int64_t pieces = pieces_of(&f, rows, 4 * count, &piece);
  int64_t blocks = (f.result == CONV_KERNEL ? pieces : blocks_of(rows, f.rows)) * f.groups;
  struct leaf_launch how = {
      .name = "conv_few", .types = definitions(e->arena, &f), .nargs = 3, .threads = blocks * BLOCK_THREADS};
  memcpy(how.numbers, &s, sizeof s);
  how.numbers[sizeof s / sizeof *how.numbers] = pieces;
  how.numbers[sizeof s / sizeof *how.numbers + 1] = piece;
  return cuda_call_pieces(e, a, &how, pieces, count, 32, device, c, d);
}
