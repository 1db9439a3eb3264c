/* SPDX-License-Identifier: Apache-2.0 */
/* A tile of A has up to 16 pixels of a line of the result: of each 64 bytes of what a line of places meets, loaded from
 * where it lies, so that neighbours share it. Where the image is padded, or has an odd number of values in a pixel, or
 * is f32, some of its lines at a time are copied first. What is left over of a run of values has tiles of its own,
 * which are narrower: nothing beside them is multiplied, as it may be NaN. Of eight tiles four are sums: 2 x 2 of them,
 * or of 16 filters and fewer 4 below each other. */
#include "kernels/cpu/conv_amx.h"

#if defined(__x86_64__) && defined(__linux__)

#include "kernels/cpu/amx_tiles.h"

#include <string.h>

/* ---- planning ---- */

/* Of the output. */
static struct amx_axis output_axis(const struct conv_numbers *s, int i) {
  return (struct amx_axis){.pixels = s->output[i],
                           .step = 1,
                           .places = s->kernel[i],
                           .by_kernel = 1,
                           .image = s->input[i],
                           .by_pixel = s->stride[i],
                           .by_place = s->kernel_dilation[i],
                           .low = s->low[i]};
}

/* Of the input, those pixels that are whole strides from `at`: place k of the kernel meets what is at
 * (pixel + low - k * dilation) / stride of the output, where that is whole. */
static struct amx_axis input_axis(const struct conv_numbers *s, int i, int64_t at) {
  int64_t stride = s->stride[i], dilation = s->kernel_dilation[i];
  int64_t every = stride / common_divisor(stride, dilation), first = 0;
  while (first < every && (at + s->low[i] - first * dilation) % stride != 0) first++;
  int64_t places = first < every && first < s->kernel[i] ? (s->kernel[i] - 1 - first) / every + 1 : 0;
  int64_t last = first + (places - 1) * every;
  return (struct amx_axis){.pixels = at < s->input[i] ? (s->input[i] - 1 - at) / stride + 1 : 0,
                           .first = at,
                           .step = stride,
                           .places = places,
                           .start = last,
                           .by_kernel = -every,
                           .image = s->output[i],
                           .by_pixel = 1,
                           .by_place = every * dilation / stride,
                           .low = places ? (last * dilation - at - s->low[i]) / stride : 0};
}

/* How much of the image so many pixels meet. */
static int64_t reach(const struct amx_axis *x, int64_t pixels) {
  return (pixels - 1) * x->by_pixel + (x->places - 1) * x->by_place + 1;
}

static bool is_inside(const struct amx_axis *x) {
  return x->low <= 0 && reach(x, x->pixels) - x->low <= x->image;
}

/* Each pixel meets the one that lies where it lies. */
static bool is_plain(const struct amx_axis *x) {
  return x->places == 1 && x->by_pixel == 1 && x->low == 0 && x->pixels == x->image && x->step == 1;
}

static bool sees_nothing(const struct amx_phase *h) {
  return h->axis[0].places == 0 || h->axis[1].places == 0 || h->axis[2].places == 0;
}

enum { NEAR = 256 << 10, ROOM = 16 << 20, FAR = 1 << 24 };

/* Bytes of the image that a unit reads: they stay in the second-level cache while they are read again. False: a copy
 * would take too many. */
static bool cut_image(struct amx_conv *c, struct amx_phase *h) {
  struct amx_axis *x = h->axis;
  if (h->direct) {
    h->tiles = NEAR / (h->rows * x[2].by_pixel * h->depth * 2) / 4 * 4 + 4;
    return true;
  }
  if (h->line > ROOM || x[0].places > ROOM) return false;
  int64_t lines = x[1].pixels, bytes = 2 * h->line * x[0].places;
  if (bytes > ROOM) return false;
  while (lines > 1 && reach(&x[1], lines) * bytes > NEAR) lines = (lines + 1) / 2;
  h->plane = h->line * reach(&x[1], lines);
  h->tiles = lines * h->per_line;
  size_t room = (size_t)(h->plane * x[0].places) * sizeof(uint16_t);
  if (room > c->room) c->room = room;
  return room <= ROOM;
}

/* Its axes are there. False: it is not fit. */
static bool plan_phase(struct amx_conv *c, struct amx_phase *h) {
  struct amx_axis *x = h->axis;
  for (int i = 0; i < 3; i++)
    if (x[i].pixels <= 0) return true;
  if (sees_nothing(h)) {
    h->units = 1, h->tiles = h->rows = h->per_line = 0;
    c->units += h->batch * x[0].pixels;
    return true;
  }
  bool inside = is_inside(&x[0]) && is_inside(&x[1]) && is_inside(&x[2]);
  for (int i = 0; i < 3; i++)
    if (reach(&x[i], x[i].pixels) >= FAR || x[i].low <= -FAR || x[i].low >= FAR) return false;
  c->gaps |= !inside;
  h->direct = c->stored && inside && c->terms % 2 == 0;
  if (h->direct && is_plain(&x[0]) && is_plain(&x[1]) && is_plain(&x[2])) {
    x[2].pixels *= h->batch * x[0].pixels * x[1].pixels;
    x[2].image = x[2].pixels;
    x[0].pixels = x[0].image = x[1].pixels = x[1].image = h->batch = 1;
  }
  h->depth = round_up(c->terms, 2);
  h->line = h->depth * (h->direct ? x[2].image : reach(&x[2], x[2].pixels));
  h->plane = h->line * x[1].image;
  h->runs = x[2].by_place == 1 ? 1 : x[2].places;
  h->values = x[2].places / h->runs * h->depth;
  h->per_line = blocks_of(x[2].pixels, LANES);
  h->rows = blocks_of(x[2].pixels, h->per_line);
  if (!cut_image(c, h)) return false;
  h->units = blocks_of(h->per_line * x[1].pixels, h->tiles);
  c->units += h->batch * x[0].pixels * h->units;
  h->packed = c->packed;
  h->panel = x[0].places * x[1].places * h->runs * blocks_of(h->values, DEPTH) * TILE + TILE;
  c->packed += blocks_of(c->filters, LANES) * h->panel;
  return true;
}

bool amx_conv_plan(const struct conv_numbers *s, bool stored, struct amx_conv *plan) {
  bool output = s->result == 2, fit = s->groups == 1 && s->result != 1;
  int64_t count[3] = {1, 1, 1}, phases = 1, kernel = s->channels * s->filters;
  fit = fit && s->batch > 0 && s->channels > 0 && s->filters > 0 && s->channels < FAR && s->filters < FAR;
  for (int i = 0; i < 3; i++) {
    fit = fit && s->input[i] > 0 && s->kernel[i] > 0 && s->output[i] > 0 && s->input_dilation[i] == 1 &&
          s->stride[i] < FAR && s->kernel_dilation[i] < FAR && s->kernel[i] < FAR && s->low[i] < FAR &&
          s->low[i] > -FAR;
    if (!fit) return false;
    if (!output && phases <= AMX_PHASES) phases *= count[i] = s->stride[i];
    kernel *= s->kernel[i];
  }
  if (phases > AMX_PHASES) return false;
  *plan = (struct amx_conv){.places = {s->kernel[0], s->kernel[1], s->kernel[2]},
                            .terms = output ? s->channels : s->filters,
                            .filters = output ? s->filters : s->channels,
                            .term = output ? s->filters : 1,
                            .filter = output ? 1 : s->filters,
                            .stored = stored,
                            .nphases = (int)phases};
  for (int i = 0; i < 3; i++) plan->size[i] = output ? s->output[i] : s->input[i];
  for (int n = 0; fit && n < phases; n++) {
    struct amx_phase *h = &plan->phases[n];
    int64_t at[3] = {n / count[2] / count[1], n / count[2] % count[1], n % count[2]};
    h->batch = s->batch;
    for (int i = 0; i < 3; i++) h->axis[i] = output ? output_axis(s, i) : input_axis(s, i, at[i]);
    fit = plan_phase(plan, h);
  }
  enum { SMALL = 1 << 20 };
  return fit && plan->packed <= SMALL + 8 * kernel;
}

/* ---- packing ---- */

int64_t amx_conv_panels(const struct amx_conv *c) { return c->nphases * blocks_of(c->filters, LANES); }

/* Of a run of values from place `from` on, for the filters from `lane` on. A part of a tile is written as a whole one,
 * whose other rows are 0: what comes next writes over them. */
AMX static void pack_run(const struct amx_conv *c, const struct amx_phase *h, const uint16_t *from,
                         int64_t lane, uint16_t *to) {
  bool across = c->filter == 1;
  int64_t place = h->axis[2].by_kernel * c->terms * c->filters, row = across ? c->term : c->filter;
  for (int64_t j = 0; j < h->values / h->depth; j++) {
    const struct amx_operand one = {from + j * place, row, across, true};
    for (int64_t k = 0, depth; k < c->terms; k += depth) {
      int64_t at = j * h->depth + k;
      depth = DEPTH - at % DEPTH;
      pack_tile(&one, lane, c->filters - lane, k, least(depth, c->terms - k), to + at * LANES);
    }
  }
}

AMX void amx_conv_pack(const struct amx_conv *c, const uint16_t *kernel, uint16_t *packed, int64_t first,
                       int64_t end) {
  int64_t panels = blocks_of(c->filters, LANES), size = c->terms * c->filters;
  for (int64_t n = first; n < end; n++) {
    const struct amx_phase *h = &c->phases[n / panels];
    const struct amx_axis *x = h->axis;
    uint16_t *to = packed + h->packed + n % panels * h->panel;
    if (h->rows == 0) continue;
    for (int64_t i = 0; i < x[0].places; i++)
      for (int64_t j = 0; j < x[1].places; j++)
        for (int64_t r = 0; r < h->runs; r++, to += blocks_of(h->values, DEPTH) * TILE) {
          int64_t plane = x[0].start + i * x[0].by_kernel, line = x[1].start + j * x[1].by_kernel;
          int64_t place = x[2].start + r * x[2].by_kernel;
          pack_run(c, h, kernel + ((plane * c->places[1] + line) * c->places[2] + place) * size,
                   n % panels * LANES, to);
        }
  }
}

/* ---- copying lines of the image ---- */

/* Up to 32 values, 0 for the others. */
INLINE_AMX __m512i load_values(const struct amx_conv *c, const void *image, int64_t at, int64_t values) {
  __mmask32 read = first_values(values);
  if (c->stored) return _mm512_maskz_loadu_epi16(read, (const uint16_t *)image + at);
  const float *from = (const float *)image + at;
  __m512i low = _mm512_maskz_loadu_epi32((__mmask16)read, from),
          high = _mm512_maskz_loadu_epi32((__mmask16)(read >> LANES), from + LANES);
  return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(_mm512_srli_epi32(low, 16))),
                            _mm512_cvtepi32_epi16(_mm512_srli_epi32(high, 16)), 1);
}

/* `count` times `values`, which are padded to `depth`. */
AMX static void copy_values(const struct amx_conv *c, const void *image, int64_t at, int64_t count,
                            int64_t values, int64_t depth, uint16_t *to) {
  int64_t whole = values / DEPTH * DEPTH;
  __mmask32 rest = first_values(depth - whole);
  for (int64_t n = 0; n < count; n++, at += values, to += depth) {
    for (int64_t i = 0; i < whole; i += DEPTH)
      _mm512_storeu_si512(to + i, load_values(c, image, at + i, DEPTH));
    if (rest) _mm512_mask_storeu_epi16(to + whole, rest, load_values(c, image, at + whole, values - whole));
  }
}

AMX static void clear(uint16_t *to, int64_t from, int64_t end) {
  for (; from + DEPTH <= end; from += DEPTH) _mm512_storeu_si512(to + from, _mm512_setzero_si512());
  if (from < end) _mm512_mask_storeu_epi16(to + from, first_values(end - from), _mm512_setzero_si512());
}

/* What places meet of a line, of which `at` is the first value; NULL: nothing. */
AMX static void copy_line(const struct amx_conv *c, const struct amx_phase *h, const void *image, int64_t at,
                          bool is, uint16_t *to) {
  const struct amx_axis *x = &h->axis[2];
  int64_t wide = h->line / h->depth, from = x->low > 0 ? least(x->low, wide) : 0,
          end = least(wide, x->image + x->low);
  if (!is || end < from) end = from;
  clear(to, 0, from * h->depth);
  clear(to, end * h->depth, h->line);
  int64_t first = at + (from - x->low) * c->terms;
  if (h->depth == c->terms)
    copy_values(c, image, first, 1, (end - from) * h->depth, (end - from) * h->depth, to + from * h->depth);
  else
    copy_values(c, image, first, end - from, c->terms, h->depth, to + from * h->depth);
}

/* What the lines of pixels [first, end) of a plane meet. */
static void copy_lines(const struct amx_conv *c, const struct amx_phase *h, const void *image, int64_t batch,
                       int64_t plane, int64_t first, int64_t end, uint16_t *room) {
  const struct amx_axis *x = h->axis;
  for (int64_t i = 0; i < x[0].places; i++) {
    int64_t z = plane * x[0].by_pixel + i * x[0].by_place - x[0].low;
    for (int64_t j = 0; j < reach(&x[1], end - first); j++) {
      int64_t y = first * x[1].by_pixel + j - x[1].low;
      bool is = z >= 0 && z < x[0].image && y >= 0 && y < x[1].image;
      int64_t at = ((batch * x[0].image + z) * x[1].image + y) * x[2].image * c->terms;
      copy_line(c, h, image, at, is, room + i * h->plane + j * h->line);
    }
  }
}

/* ---- multiplying ---- */

/* How tiles of some pixels are multiplied. All in numbers but `pixel`, bytes from one to the next. */
struct tile_runs {
  int64_t planes, lines, runs, full, rest; /* rest: values of the last tile of a run */
  int64_t by_plane, by_line, by_run;       /* of the image */
  int64_t panel;                           /* from 16 filters to the next ones */
  size_t pixel;
};

/* Tiles 0 to 3 are sums; 4 and 6 are of pixels, 5 and 7 of filters, of which 6 and 7 are as narrow as what is left over
 * of a run. */
AMX static void shape_tiles(const struct tile_runs *b, int64_t rows, int64_t filters) {
  struct tile_shapes shapes = {.palette = 1};
  int64_t depth[] = {DEPTH, b->rest ? b->rest : DEPTH};
  for (int i = 0; i < 4; i++) shapes.bytes[i] = (uint16_t)(4 * filters), shapes.rows[i] = (uint8_t)rows;
  for (int i = 0; i < 2; i++) {
    shapes.bytes[4 + 2 * i] = (uint16_t)(2 * depth[i]), shapes.rows[4 + 2 * i] = (uint8_t)rows;
    shapes.bytes[5 + 2 * i] = (uint16_t)(4 * filters), shapes.rows[5 + 2 * i] = (uint8_t)(depth[i] / 2);
  }
  set_shapes(&shapes);
}

#define LINE (DEPTH * sizeof(uint16_t))

/* A run for two tiles of pixels, `below` numbers apart, by 32 filters. */
INLINE_AMX void multiply_square(const struct tile_runs *k, const uint16_t *a, int64_t below,
                                const uint16_t *b) {
  const uint16_t *c = a + below, *d = b + k->panel;
  if (k->rest == 0) {
    for (int64_t n = 0; n < k->full; n++, a += DEPTH, c += DEPTH, b += TILE, d += TILE) {
      _tile_loadd(4, a, k->pixel);
      _tile_loadd(5, b, LINE);
      _tile_loadd(6, c, k->pixel);
      _tile_loadd(7, d, LINE);
      _tile_dpbf16ps(0, 4, 5);
      _tile_dpbf16ps(2, 6, 5);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(3, 6, 7);
    }
    return;
  }
#define MULTIPLY(A, B)         \
  _tile_loadd(A, a, k->pixel); \
  _tile_loadd(B, b, LINE);     \
  _tile_dpbf16ps(0, A, B);     \
  _tile_loadd(A, c, k->pixel); \
  _tile_dpbf16ps(2, A, B);     \
  _tile_loadd(B, d, LINE);     \
  _tile_dpbf16ps(3, A, B);     \
  _tile_loadd(A, a, k->pixel); \
  _tile_dpbf16ps(1, A, B)
  for (int64_t n = 0; n < k->full; n++, a += DEPTH, c += DEPTH, b += TILE, d += TILE) {
    MULTIPLY(4, 5);
  }
  MULTIPLY(6, 7);
#undef MULTIPLY
}

/* A run for four tiles of pixels by up to 16 filters. */
INLINE_AMX void multiply_column(const struct tile_runs *k, const uint16_t *a, const int64_t *below,
                                const uint16_t *b) {
#define MULTIPLY(A, B)                    \
  _tile_loadd(B, b, LINE);                \
  _tile_loadd(A, a, k->pixel);            \
  _tile_dpbf16ps(0, A, B);                \
  _tile_loadd(A, a + below[1], k->pixel); \
  _tile_dpbf16ps(1, A, B);                \
  _tile_loadd(A, a + below[2], k->pixel); \
  _tile_dpbf16ps(2, A, B);                \
  _tile_loadd(A, a + below[3], k->pixel); \
  _tile_dpbf16ps(3, A, B)
  for (int64_t n = 0; n < k->full; n++, a += DEPTH, b += TILE) {
    MULTIPLY(4, 5);
  }
  if (k->rest) {
    MULTIPLY(6, 7);
  }
#undef MULTIPLY
}

/* All runs; tiles are `below` numbers behind the first one. */
INLINE_AMX void multiply_runs(const struct tile_runs *k, bool square, const uint16_t *image,
                              const int64_t *below, const uint16_t *kernel) {
  int64_t run = (k->full + (k->rest > 0)) * TILE;
  for (int64_t i = 0; i < k->planes; i++)
    for (int64_t j = 0; j < k->lines; j++)
      for (int64_t r = 0; r < k->runs; r++, kernel += run) {
        const uint16_t *a = image + i * k->by_plane + j * k->by_line + r * k->by_run;
        if (square)
          multiply_square(k, a, below[1], kernel);
        else
          multiply_column(k, a, below, kernel);
      }
}

/* Where tiles of a plane begin: in the image, in the result. */
struct tile_origin {
  const uint16_t *image;
  float *out;
};

struct tile_work {
  const struct amx_conv *c;
  const struct amx_phase *h;
  struct tile_runs block;
  const uint16_t *image; /* of the first line of pixels */
  int64_t first_line;
  float *out; /* of the plane */
};

/* A tile by its line of pixels, and which of that it is. */
struct tile_number {
  int64_t line, along;
};

static struct tile_origin find_tile(const struct tile_work *w, struct tile_number n) {
  const struct amx_axis *x = w->h->axis;
  int64_t pixel = least(n.along * w->h->rows, x[2].pixels - w->h->rows);
  int64_t y = x[1].first + n.line * x[1].step, z = x[2].first + pixel * x[2].step;
  return (struct tile_origin){w->image + (n.line - w->first_line) * x[1].by_pixel * w->h->line +
                                  pixel * x[2].by_pixel * w->h->depth,
                              w->out + (y * w->c->size[2] + z) * w->c->filters};
}

static struct tile_number next_tile(const struct tile_work *w, struct tile_number n) {
  return n.along + 1 < w->h->per_line ? (struct tile_number){n.line, n.along + 1}
                                      : (struct tile_number){n.line + 1, 0};
}

/* What sums are written to some tiles later is on its way then: a pixel `step` bytes behind the other. */
enum { AHEAD = 4 };
AMX static void ask_for(const struct tile_work *w, struct tile_number n, int64_t filter, bool square,
                        size_t step) {
  const char *at = (const char *)(find_tile(w, n).out + filter);
  for (int64_t i = 0; i < w->h->rows; i++, at += step) {
    __builtin_prefetch(at, 1, 3);
    if (square) __builtin_prefetch(at + LINE, 1, 3);
  }
}

/* Tiles that are missing at the end are the last one once more. */
AMX static void run_tiles(const struct tile_work *w, const uint16_t *packed, int64_t first, int64_t end) {
  const struct amx_conv *c = w->c;
  const struct amx_phase *h = w->h;
  size_t step = (size_t)(h->axis[2].step * c->filters) * sizeof(float);
  for (int64_t f = 0; f < c->filters;) {
    const uint16_t *kernel = packed + h->packed + f / LANES * h->panel;
    int64_t filters = least(c->filters - f, LANES);
    bool square = c->filters - f >= BLOCK;
    shape_tiles(&w->block, h->rows, filters);
    struct tile_number next = {first / h->per_line, first % h->per_line};
    struct tile_number ahead = {(first + AHEAD) / h->per_line, (first + AHEAD) % h->per_line};
    for (int64_t t = first, count = square ? 2 : 4; t < end; t += count) {
      struct tile_origin o[4];
      int64_t below[4];
      for (int i = 0; i < count; i++) {
        o[i] = find_tile(w, next);
        o[i].out += f;
        if (t + i + 1 < end) next = next_tile(w, next);
        below[i] = o[i].image - o[0].image;
        if (t + i + AHEAD < end) ask_for(w, ahead, f, square, step);
        ahead = next_tile(w, ahead);
      }
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
      if (square) {
        multiply_runs(&w->block, true, o[0].image, below, kernel);
        _tile_stored(0, o[0].out, step);
        _tile_stored(1, o[0].out + LANES, step);
        _tile_stored(2, o[1].out, step);
        _tile_stored(3, o[1].out + LANES, step);
      } else {
        multiply_runs(&w->block, false, o[0].image, below, kernel);
        _tile_stored(0, o[0].out, step);
        _tile_stored(1, o[1].out, step);
        _tile_stored(2, o[2].out, step);
        _tile_stored(3, o[3].out, step);
      }
    }
    f += square ? BLOCK : filters;
  }
}

/* Pixels that see no place of the kernel. */
static void clear_plane(const struct amx_conv *c, const struct amx_phase *h, float *out) {
  const struct amx_axis *x = h->axis;
  for (int64_t i = 0; i < x[1].pixels; i++)
    for (int64_t j = 0; j < x[2].pixels; j++) {
      int64_t y = x[1].first + i * x[1].step, z = x[2].first + j * x[2].step;
      memset(out + (y * c->size[2] + z) * c->filters, 0, (size_t)c->filters * sizeof *out);
    }
}

/* One unit of a phase. */
static void run_unit(const struct amx_conv *c, const struct amx_phase *h, const void *image,
                     const uint16_t *packed, float *out, int64_t unit, void *room) {
  const struct amx_axis *x = h->axis;
  int64_t plane = unit / h->units % x[0].pixels, batch = unit / h->units / x[0].pixels;
  int64_t there = batch * c->size[0] + x[0].first + plane * x[0].step;
  struct tile_work w = {c, h, .out = out + there * c->size[1] * c->size[2] * c->filters};
  if (h->rows == 0) {
    clear_plane(c, h, w.out);
    return;
  }
  int64_t first = unit % h->units * h->tiles, end = least(first + h->tiles, h->per_line * x[1].pixels);
  int64_t z = plane * x[0].by_pixel - x[0].low, line = first / h->per_line;
  if (h->direct) {
    int64_t pixel = ((batch * x[0].image + z) * x[1].image - x[1].low) * x[2].image - x[2].low;
    w.image = (const uint16_t *)image + pixel * h->depth;
  } else {
    copy_lines(c, h, image, batch, plane, line, blocks_of(end, h->per_line), room);
    w.image = room;
    w.first_line = line;
  }
  w.block = (struct tile_runs){.planes = x[0].places,
                               .lines = x[1].places,
                               .runs = h->runs,
                               .full = h->values / DEPTH,
                               .rest = h->values % DEPTH,
                               .by_plane = h->direct ? x[0].by_place * h->plane : h->plane,
                               .by_line = x[1].by_place * h->line,
                               .by_run = x[2].by_place * h->depth,
                               .panel = h->panel,
                               .pixel = (size_t)(x[2].by_pixel * h->depth) * sizeof(uint16_t)};
  run_tiles(&w, packed, first, end);
}

AMX void amx_conv_run(const struct amx_conv *c, const void *image, const uint16_t *packed, float *out,
                      int64_t first, int64_t end, void *room) {
  int64_t before = 0;
  for (int n = 0; n < c->nphases; n++) {
    const struct amx_phase *h = &c->phases[n];
    int64_t units = h->batch * h->axis[0].pixels * h->units, from = first > before ? first - before : 0;
    for (int64_t u = from; u < least(units, end - before); u++) run_unit(c, h, image, packed, out, u, room);
    before += units;
  }
  _tile_release();
}

#else

bool amx_conv_plan(const struct conv_numbers *s, bool stored, struct amx_conv *plan) {
  (void)s, (void)stored, (void)plan;
  return false;
}

int64_t amx_conv_panels(const struct amx_conv *c) { return c->nphases; }

void amx_conv_pack(const struct amx_conv *c, const uint16_t *kernel, uint16_t *packed, int64_t first,
                   int64_t end) {
  (void)c, (void)kernel, (void)packed, (void)first, (void)end;
}

void amx_conv_run(const struct amx_conv *c, const void *image, const uint16_t *packed, float *out,
                  int64_t first, int64_t end, void *room) {
  (void)c, (void)image, (void)packed, (void)out, (void)first, (void)end, (void)room;
}

#endif
