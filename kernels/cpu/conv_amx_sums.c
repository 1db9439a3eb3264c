/* SPDX-License-Identifier: Apache-2.0 */
/* dw[k,c,f] = sum of dy[o, f] x[the pixel that output o meets under k, c]: a product, added up over pixels.
 *
 * The output's pixels, batch and all, are a line of places; behind each row of them are places of which dy is
 * 0. A copy of x lies along the same line: what o meets under k is so many places behind that of o as k says,
 * for all o. So all k read the same copy, each from another place on, and no patches are made. What is outside
 * of an image lies in the places behind rows, where x is 0: beyond the end of a row is before the next one.
 * Where windows go in strides, there is a copy for each remainder. Where rows are short beside the kernel,
 * most places would be behind them: then each k has a copy of its own of what it meets, and places are pixels.
 *
 * Some hundred places at a time are packed: dy is turned to tiles [filter][place], of x pairs of places are
 * interleaved, twice, as pairs begin with an even or an odd place. All k that read 16 channels of a copy
 * multiply them at once. What the next places read again is kept, if that is little. Sums lie as tiles
 * [filter][channel], one behind the other; those of some thousand places are a piece of a tree. */
#include "kernels/cpu/conv_amx_sums.h"

#include "kernels/cpu/piece_sums.h"

#include <string.h>

#if defined(__x86_64__) && defined(__linux__)

#include "kernels/cpu/conv_amx_line.h"

/* Pixels that are put at once. */
enum { AT_ONCE = 8 };

/* Where what a thread works in begins; all are multiples of a line of a cache. */
struct sums_room {
  int64_t pixels, copies, packed, end;
};

static struct sums_room room_of(const struct conv_amx_sums *s) {
  int64_t copies = s->keeps ? s->ncopies * s->channels : 1, number = sizeof(uint16_t);
  struct sums_room r = {.pixels = greatest(s->channels, s->filters) * LANES * (int64_t)sizeof(float)};
  r.copies = r.pixels + ((s->side - DEPTH) / LANES + AT_ONCE) * (int64_t)sizeof(char *);
  r.packed = r.copies + copies * 2 * s->side * number;
  r.end = r.packed + s->filters * s->at_once * LANES * number;
  return r;
}

size_t conv_amx_sums_room(const struct conv_amx_sums *s) { return (size_t)room_of(s).end; }

/* So many pixels from the first one on; perhaps some more, which others will be put over. `steps` are AT_ONCE
 * multiples of what is between two of them, and `next` is what is between so many. */
INLINE_AMX const char **put_pixels(const char **to, const char *first, int64_t count, __m512i steps,
                                   int64_t next) {
  __m512i at = _mm512_add_epi64(_mm512_set1_epi64((int64_t)(intptr_t)first), steps);
  for (int64_t i = 0; i < count; i += AT_ONCE, at = _mm512_add_epi64(at, _mm512_set1_epi64(next)))
    _mm512_storeu_si512(to + i, at);
  return to + count;
}

/* Images whose pixels lie along the line, and the pixel that lies at each of some places; a pixel of zeros
 * where there is none. */
struct pixel_line {
  const struct lain *lain;
  const int64_t *size, *stride; /* of an image, on each axis */
  const char *images, *zeros;
  int64_t count, pixel; /* of images; bytes */
};

AMX static void find_pixels(const struct conv_amx_sums *s, const struct pixel_line *l, int64_t first,
                            int64_t end, const char **to) {
  const struct lain *at = l->lain;
  int64_t length = s->rows[2], step = l->stride[2] * l->pixel;
  const __m512i none = _mm512_setzero_si512(),
                steps =
                    _mm512_setr_epi64(0, step, 2 * step, 3 * step, 4 * step, 5 * step, 6 * step, 7 * step);
  while (first < end) {
    int64_t row = first / length, p = first % length, stop = least(length, p + end - first);
    int64_t p1 = row % s->rows[1], p0 = row / s->rows[1] % s->rows[0], n = row / s->rows[1] / s->rows[0];
    bool some = n < l->count && p0 >= at->low[0] && p0 < at->high[0] && p1 >= at->low[1] && p1 < at->high[1];
    int64_t low = some ? greatest(least(at->low[2], stop), p) : stop,
            high = some ? greatest(least(at->high[2], stop), low) : stop;
    first += stop - p;
    to = put_pixels(to, l->zeros, low - p, none, 0);
    if (low < high) {
      int64_t i0 = p0 * l->stride[0] + at->begin[0], i1 = p1 * l->stride[1] + at->begin[1],
              i2 = low * l->stride[2] + at->begin[2];
      int64_t pixel = ((n * l->size[0] + i0) * l->size[1] + i1) * l->size[2] + i2;
      to = put_pixels(to, l->images + pixel * l->pixel, high - low, steps, AT_ONCE * step);
    }
    to = put_pixels(to, l->zeros, stop - high, none, 0);
  }
}

/* Of two pixels 16 numbers from `at` on, side by side; as many as the mask has. */
INLINE_AMX __m512i load_pair(const char *const *pixels, int64_t at, __mmask16 mask, bool stored) {
  const char *one = pixels[0] + at, *other = pixels[1] + at;
  if (stored) {
    __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, one));
    __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, other));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
  }
  __m512i low = _mm512_srli_epi32(_mm512_maskz_loadu_epi32(mask, one), 16);
  return _mm512_mask_blend_epi16(0xaaaaaaaaU, low, _mm512_maskz_loadu_epi32(mask, other));
}

/* Some places of all filters, as tiles [filter][place]; those of 16 filters lie one behind the other. */
INLINE_AMX void pack_filters(const struct conv_amx_sums *s, const char *const *pixels, int64_t places,
                             bool stored, uint16_t *to) {
  for (int64_t i = 0; i < places; i += DEPTH)
    for (int64_t f = 0; f < s->filters; f++) {
      __m512i r[LANES];
      uint16_t *tile = to + (f * s->at_once + i) * LANES;
      __mmask16 mask = first_lanes(s->size.filters - f * LANES);
      for (int k = 0; k < LANES; k++)
        r[k] = load_pair(pixels + i + 2 * k, f * LANES * (stored ? 2 : 4), mask, stored);
      turn(r);
      for (int k = 0; k < LANES; k++) _mm512_store_si512(tile + k * DEPTH, r[k]);
    }
}

/* Pairs of places [first, end) of 16 channels, which begin at even places; if `odd` is not NULL, also those
 * that begin at odd ones, of which the first may end at `first`. */
INLINE_AMX void pack_channels(const char *const *pixels, int64_t first, int64_t end, int64_t at,
                              __mmask16 mask, bool stored, uint16_t *even, uint16_t *odd) {
  __m512i before = first ? _mm512_load_si512(even + (first - 2) * LANES) : _mm512_setzero_si512();
  for (int64_t i = first; i < end; i += 2, pixels += 2) {
    __m512i pair = load_pair(pixels, at, mask, stored);
    _mm512_store_si512(even + i * LANES, pair);
    if (odd)
      _mm512_store_si512(
          odd + (i - 2) * LANES,
          _mm512_mask_blend_epi16(0xaaaaaaaaU, _mm512_srli_epi32(before, 16), _mm512_slli_epi32(pair, 16)));
    before = pair;
  }
}

AMX static void pack_y(const struct conv_amx_sums *s, const char *const *pixels, int64_t places,
                       uint16_t *to) {
  if (s->stored)
    pack_filters(s, pixels, places, true, to);
  else
    pack_filters(s, pixels, places, false, to);
}

/* Channels from 16 * c on, to both kinds of pairs. */
AMX static void pack_x(const struct conv_amx_sums *s, const char *const *pixels, int64_t first, int64_t end,
                       int64_t c, uint16_t *even, uint16_t *odd) {
  __mmask16 mask = first_lanes(s->size.channels - c * LANES);
  if (s->stored)
    pack_channels(pixels, first, end, c * LANES * 2, mask, true, even, odd);
  else
    pack_channels(pixels, first, end, c * LANES * 4, mask, false, even, odd);
}

/* Up to four tiles of sums: of 32 filters, if it is `square`, and two readers, or of 16 and four. */
struct amx_block {
  const uint16_t *y[2], *x[4];
  float *sums[4];
  int64_t places;
  bool add;
};

INLINE_AMX void multiply(const struct amx_block *b, int readers, bool square) {
  enum { STEP = 64 };
  const uint16_t *y = b->y[0], *below = b->y[1], *x0 = b->x[0], *x1 = b->x[1], *x2 = b->x[2], *x3 = b->x[3];
  int count = square ? 2 * readers : readers;
  if (b->add) {
    _tile_loadd(0, b->sums[0], STEP);
    if (count > 1) _tile_loadd(1, b->sums[1], STEP);
    if (count > 2) _tile_loadd(2, b->sums[2], STEP);
    if (count > 3) _tile_loadd(3, b->sums[3], STEP);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t i = 0; i < b->places * LANES; i += TILE) {
    _tile_loadd(4, y + i, STEP);
    _tile_loadd(6, x0 + i, STEP);
    _tile_dpbf16ps(0, 4, 6);
    if (square) {
      _tile_loadd(5, below + i, STEP);
      _tile_dpbf16ps(1, 5, 6);
      if (readers > 1) {
        _tile_loadd(7, x1 + i, STEP);
        _tile_dpbf16ps(2, 4, 7);
        _tile_dpbf16ps(3, 5, 7);
      }
      continue;
    }
    if (readers > 1) {
      _tile_loadd(7, x1 + i, STEP);
      _tile_dpbf16ps(1, 4, 7);
    }
    if (readers > 2) {
      _tile_loadd(5, x2 + i, STEP);
      _tile_dpbf16ps(2, 4, 5);
    }
    if (readers > 3) {
      _tile_loadd(6, x3 + i, STEP);
      _tile_dpbf16ps(3, 4, 6);
    }
  }
  _tile_stored(0, b->sums[0], STEP);
  if (count > 1) _tile_stored(1, b->sums[1], STEP);
  if (count > 2) _tile_stored(2, b->sums[2], STEP);
  if (count > 3) _tile_stored(3, b->sums[3], STEP);
}

AMX static void multiply_block(const struct amx_block *b, int64_t readers, bool square) {
  switch (readers + 4 * square) {
  case 1: multiply(b, 1, false); break;
  case 2: multiply(b, 2, false); break;
  case 3: multiply(b, 3, false); break;
  case 4: multiply(b, 4, false); break;
  case 4 + 1: multiply(b, 1, true); break;
  case 4 + 2: multiply(b, 2, true); break;
  }
}

/* 16 channels of a copy with all filters: the sums of all its readers. */
AMX static void multiply_channels(const struct conv_amx_sums *s, const struct copy *copy,
                                  const uint16_t *even, const uint16_t *odd, const uint16_t *packed,
                                  int64_t places, bool add, float *sums) {
  struct amx_block b = {.places = places, .add = add};
  for (int64_t f = 0; f < s->filters; f += 2) {
    bool square = f + 1 < s->filters;
    int64_t most = square ? 2 : 4;
    b.y[0] = packed + f * s->at_once * LANES;
    b.y[1] = square ? b.y[0] + s->at_once * LANES : NULL;
    for (int64_t k = 0; k < copy->count; k += most) {
      int64_t readers = least(copy->count - k, most);
      for (int64_t i = 0; i < readers; i++) {
        float *to = sums + ((k + i) * s->filters + f) * SUMS;
        int64_t behind = s->readers[copy->first + k + i].behind;
        b.x[i] = (behind % 2 ? odd : even) + behind / 2 * DEPTH;
        if (square)
          b.sums[2 * i] = to, b.sums[2 * i + 1] = to + SUMS;
        else
          b.sums[i] = to;
      }
      multiply_block(&b, readers, square);
    }
  }
}

/* A thread's work. */
struct work {
  const struct conv_amx_sums *s;
  const char *x, *dy;
  int64_t images;
  char *memory;
  struct sums_room room;
};

/* Pixels of dy, from `first` on. */
AMX static void pack_places(const struct work *w, int64_t first, int64_t places) {
  const struct conv_amx_sums *s = w->s;
  const struct lain lain = {.high = {s->size.output[0], s->size.output[1], s->size.output[2]}};
  const int64_t ones[AXES] = {1, 1, 1};
  const struct pixel_line line = {.lain = &lain,
                                  .size = s->size.output,
                                  .stride = ones,
                                  .images = w->dy,
                                  .zeros = w->memory,
                                  .count = w->images,
                                  .pixel = s->size.filters * (s->stored ? 2 : 4)};
  const char **pixels = (const char **)(void *)(w->memory + w->room.pixels);
  uint16_t *packed = (uint16_t *)(void *)(w->memory + w->room.packed);
  find_pixels(s, &line, first, first + places, pixels);
  pack_y(s, pixels, places, packed);
}

static void move_kept(const struct conv_amx_sums *s, int64_t kept, uint16_t *pairs) {
  memmove(pairs, pairs + s->at_once * LANES, (size_t)(kept * LANES) * sizeof *pairs);
}

/* Some places of a copy, packed and multiplied. */
AMX static void run_copy(const struct work *w, int64_t n, int64_t first, int64_t places, bool add,
                         float *sums) {
  const struct conv_amx_sums *s = w->s;
  const struct copy *copy = &s->copies[n];
  const struct pixel_line line = {.lain = &copy->lain,
                                  .size = s->size.input,
                                  .stride = s->size.stride,
                                  .images = w->x,
                                  .zeros = w->memory,
                                  .count = w->images,
                                  .pixel = s->size.channels * (s->stored ? 2 : 4)};
  const char **pixels = (const char **)(void *)(w->memory + w->room.pixels);
  uint16_t *copies = (uint16_t *)(void *)(w->memory + w->room.copies);
  const uint16_t *packed = (const uint16_t *)(const void *)(w->memory + w->room.packed);
  int64_t kept = s->keeps && first > 0 ? copy->halo : 0, end = places + copy->halo;
  find_pixels(s, &line, first + kept, first + end, pixels);
  for (int64_t c = 0; c < s->channels; c++) {
    uint16_t *even = copies + (s->keeps ? n * s->channels + c : 0) * 2 * s->side;
    uint16_t *odd = copy->odd ? even + s->side + DEPTH : NULL; /* behind a pair before the first */
    if (kept > 0) move_kept(s, kept, even);
    if (kept > 0 && odd) move_kept(s, kept, odd);
    pack_x(s, pixels, kept, end, c, even, odd);
    multiply_channels(s, copy, even, odd, packed, places, add,
                      sums + (copy->first * s->channels + c * copy->count) * s->filters * SUMS);
  }
}

AMX void conv_amx_sums_run(const struct conv_amx_sums *s, const void *x, const void *dy, int64_t first,
                           int64_t end, float *sums, void *room) {
  int64_t size = s->stored ? 2 : 4, all = (end - first) * s->pitch;
  struct work w = {.s = s,
                   .x = (const char *)x + first * count_of(s->size.input) * s->size.channels * size,
                   .dy = (const char *)dy + first * count_of(s->size.output) * s->size.filters * size,
                   .images = end - first,
                   .memory = room,
                   .room = room_of(s)};
  struct piece_sums pieces = {.at = sums, .count = conv_amx_sums_count(s), .size = sizeof *sums};
  float *to = sums;
  memset(room, 0, (size_t)w.room.pixels);
  begin_tiles();
  for (int64_t i = 0; i < all; i += s->at_once) {
    int64_t places = round_up(least(s->at_once, all - i), DEPTH);
    bool add = i % s->piece != 0;
    if (!add) to = piece_sums_next(&pieces);
    pack_places(&w, i, places);
    for (int64_t n = 0; n < s->ncopies; n++) run_copy(&w, n, i, places, add, to);
  }
  _tile_release();
  piece_sums_end(&pieces);
}

AMX void conv_amx_sums_put(const struct conv_amx_sums *s, const float *sums, int64_t pieces, int64_t apart,
                           float *kernel, int64_t first, int64_t end) {
  for (int64_t u = first; u < end; u++) {
    int64_t place = u / s->channels, c = u % s->channels * LANES, filters = s->size.filters;
    const float *from = sums + (s->sums_of[place] + u % s->channels * s->sums_step[place]) * SUMS;
    float *to = kernel + conv_amx_sums_row(s, u) * filters;
    for (int64_t f = 0; f < filters; f += LANES, from += SUMS) {
      __m512i r[LANES];
      for (int i = 0; i < LANES; i++) {
        __m512 sum = _mm512_load_ps(from + i * LANES);
        for (int64_t p = 1; p < pieces; p++)
          sum = _mm512_add_ps(sum, _mm512_load_ps(from + p * apart + i * LANES));
        r[i] = _mm512_castps_si512(sum);
      }
      turn(r);
      for (int i = 0; i < LANES && c + i < s->size.channels; i++)
        _mm512_mask_storeu_epi32(to + i * filters + f, first_lanes(filters - f), r[i]);
    }
  }
}

#endif
