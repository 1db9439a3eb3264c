/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of AMX: their sizes, and how what is multiplied is packed into them. For sources of x86-64. */
#ifndef DGC_KERNELS_CPU_AMX_TILES_H
#define DGC_KERNELS_CPU_AMX_TILES_H

#if defined(__x86_64__)

#include "base/integer.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define AMX        __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,prfchw")))
#define INLINE_AMX AMX __attribute__((always_inline)) static inline

enum { LANES = 16, BLOCK = 2 * LANES, DEPTH = 32, TILE = LANES * DEPTH }; /* of bfloat16 values */

/* As LDTILECFG reads them: the palette is 1; bytes of a row, and rows, of each of the eight tiles. */
struct tile_shapes {
  uint8_t palette, start_row, reserved[14];
  uint16_t bytes[16];
  uint8_t rows[16];
};

INLINE_AMX void set_shapes(const struct tile_shapes *shapes) {
  __asm__ volatile("" : : "r"(shapes) : "memory"); /* GCC believes that 8 bytes are read */
  _tile_loadconfig(shapes);
}

/* All tiles get 16 rows of 64 bytes. */
INLINE_AMX void begin_tiles(void) {
  struct tile_shapes shapes = {.palette = 1};
  for (int i = 0; i < 8; i++) shapes.bytes[i] = 64, shapes.rows[i] = LANES;
  set_shapes(&shapes);
}

/* Of a matrix of 16 x 16 words the transposed one: of pairs of words, of pairs of these, and so on. */
INLINE_AMX void turn(__m512i r[LANES]) {
  __m512i t[LANES];
  for (int i = 0; i < LANES; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < LANES; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  enum { EVEN = 0x88, ODD = 0xdd }; /* quarters of both operands */
  for (int i = 0; i < 4; i++) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[4 + i], EVEN);
    t[4 + i] = _mm512_shuffle_i32x4(r[i], r[4 + i], ODD);
    t[8 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], EVEN);
    t[12 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], ODD);
  }
  for (int i = 0; i < 4; i++) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], EVEN);
    r[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], EVEN);
    r[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], ODD);
    r[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], ODD);
  }
}

/* An operand: rows of A or columns of B are lanes. */
struct amx_operand {
  const uint16_t *at;
  int64_t row;
  bool across;   /* the lanes of one k lie side by side, else the k of a lane */
  bool by_pairs; /* a row of a tile is a pair of k, else a lane */
};

/* The first `count` of 16 lanes, and of 32 values; none, if there are fewer than one. */
static inline __mmask16 first_lanes(int64_t count) {
  return (__mmask16)(count <= 0 ? 0 : count < LANES ? (1U << count) - 1 : 0xffff);
}
static inline __mmask32 first_values(int64_t count) {
  return count <= 0 ? 0 : count < DEPTH ? (1U << count) - 1 : 0xffffffffU;
}

/* A tile of up to 16 lanes, perhaps of none, and 32 k; 0 for the others. */
INLINE_AMX void pack_tile(const struct amx_operand *o, int64_t lane, int64_t lanes, int64_t k, int64_t depth,
                          uint16_t *to) {
  const uint16_t *from = o->across ? o->at + k * o->row + lane : o->at + lane * o->row + k;
  __mmask16 halves = first_lanes(lanes);
  __mmask32 words = first_values(depth);
  __m512i r[LANES];
  for (int i = 0; i < LANES; i++) {
    if (o->across) {
      const uint16_t *line = from + 2 * i * o->row;
      __mmask16 second = 2 * i + 1 < depth ? halves : 0;
      __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(2 * i < depth ? halves : 0, line));
      __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(second, line + o->row));
      r[i] = _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
    } else {
      r[i] = _mm512_maskz_loadu_epi16(i < lanes ? words : 0, from + i * o->row);
    }
  }
  if (o->across != o->by_pairs) turn(r);
  for (int i = 0; i < LANES; i++) _mm512_store_si512(to + i * DEPTH, r[i]);
}

#endif

#endif
