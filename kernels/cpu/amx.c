/* SPDX-License-Identifier: Apache-2.0 */
/* A tile of A has 16 rows of 32 values; one of B has 16 rows, each of which has of two successive k the values of 16
 * columns, side by side; an instruction adds their product to a tile of 16 x 16 sums (Intel's manual, TDPBF16PS). Of
 * eight tiles four are sums, 32 x 32 of C, so that each tile that is loaded is used twice.
 *
 * Operands are packed into tiles, one behind the other along k: of A as many rows and k as stay in the second-level
 * cache, of B as many columns as leave room there. What lies along k is a row of pairs, and is turned for B; what lies
 * across is two rows that are put together, and is turned for A. */
#include "kernels/cpu/amx.h"

#if defined(__x86_64__) && defined(__linux__)

#include "kernels/cpu/amx_tiles.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What is packed at a time, at most: so many k, and so many values of A and, but for a part of a block, of B. Both and
 * what they become stay in the second-level cache; each value is packed once where A has no more. */
enum { DEEP = 1024, VALUES_A = 512 << 10, VALUES_B = 128 << 10, GAP = 2048 };
_Static_assert(AMX_ROOM == 2 * (VALUES_A + GAP + VALUES_B + BLOCK * DEEP),
               "the packed operands, and some lines between");

bool amx_can(void) {
  enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
  static int can = -1;
  int known = __atomic_load_n(&can, __ATOMIC_RELAXED);
  if (known < 0) {
    __builtin_cpu_init();
    known = __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
            syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
    __atomic_store_n(&can, known, __ATOMIC_RELAXED);
  }
  return known;
}

/* As few equal parts of k as there can be. */
static int64_t depth_of(int64_t k) {
  return k > DEEP ? round_up(blocks_of(k, blocks_of(k, DEEP)), DEPTH) : k;
}

/* Lanes from `lane` on, of k from `k` on, to an even number of tiles across. In the order in which they lie. */
AMX static void pack(const struct amx_operand *o, int64_t lane, int64_t lanes, int64_t k, int64_t depth,
                     uint16_t *to) {
  int64_t deep = blocks_of(depth, DEPTH), wide = 2 * blocks_of(lanes, BLOCK);
  for (int64_t i = 0; i < (o->across ? deep : wide); i++)
    for (int64_t n = 0; n < (o->across ? wide : deep); n++) {
      int64_t l = o->across ? n : i, q = o->across ? i : n;
      pack_tile(o, lane + l * LANES, lanes - l * LANES, k + q * DEPTH, depth - q * DEPTH,
                to + (l * deep + q) * TILE);
    }
}

/* 32 x 32 sums, `row` numbers from one row to the next; to what is there if `add` holds. Asks for the lines of those at
 * `next`, if any, as it goes. */
AMX static void multiply_block(const uint16_t *a, const uint16_t *b, int64_t deep, bool add, float *c,
                               int64_t row, const float *next) {
  size_t step = (size_t)row * sizeof *c, line = DEPTH * sizeof *a;
  const uint16_t *below = a + deep * TILE, *beside = b + deep * TILE;
  float *under = c + LANES * row;
  if (add) {
    _tile_loadd(0, c, step);
    _tile_loadd(1, c + LANES, step);
    _tile_loadd(2, under, step);
    _tile_loadd(3, under + LANES, step);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  int64_t each = blocks_of(BLOCK, deep), asked = next ? 0 : BLOCK;
  for (int64_t i = 0; i < deep * TILE; i += TILE) {
    for (int64_t to = least(asked + each, BLOCK); asked < to; asked++) {
      __builtin_prefetch(next + asked * row, 1, 3);
      __builtin_prefetch(next + asked * row + LANES, 1, 3);
    }
    _tile_loadd(4, a + i, line);
    _tile_loadd(6, b + i, line);
    _tile_loadd(5, below + i, line);
    _tile_loadd(7, beside + i, line);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, step);
  _tile_stored(1, c + LANES, step);
  _tile_stored(2, under, step);
  _tile_stored(3, under + LANES, step);
}

static void copy_rows(int64_t rows, int64_t columns, const float *from, int64_t from_row, float *to,
                      int64_t to_row) {
  for (int64_t i = 0; i < rows; i++)
    memcpy(to + i * to_row, from + i * from_row, (size_t)columns * sizeof *to);
}

/* What is packed, to rows and columns of C; blocks that reach over its ends by way of others. */
AMX static void multiply_packed(const uint16_t *a, const uint16_t *b, int64_t high, int64_t wide,
                                int64_t depth, bool add, float *c, int64_t row) {
  _Alignas(64) float edge[BLOCK * BLOCK];
  int64_t deep = blocks_of(depth, DEPTH);
  for (int64_t j = 0; j < wide; j += BLOCK)
    for (int64_t i = 0; i < high; i += BLOCK) {
      int64_t rows = least(high - i, BLOCK), columns = least(wide - j, BLOCK);
      const uint16_t *from = a + i / LANES * deep * TILE, *with = b + j / LANES * deep * TILE;
      float *to = c + i * row + j, *next = i + BLOCK < high ? to + BLOCK * row : NULL;
      if (rows == BLOCK && columns == BLOCK) {
        multiply_block(from, with, deep, add, to, row, next);
        continue;
      }
      if (add) copy_rows(rows, columns, to, row, edge, BLOCK);
      multiply_block(from, with, deep, add, edge, BLOCK, NULL);
      copy_rows(rows, columns, edge, BLOCK, to, row);
    }
}

int64_t amx_packed_count(int64_t n, int64_t k) { return round_up(n, BLOCK) * round_up(k, DEPTH); }

/* For so many k, the panels of all columns; then those of the next k. */
AMX void amx_pack(const struct amx_product *p, const uint16_t *b, uint16_t *packed) {
  const struct amx_operand right = {b, p->b_row, !p->transpose_b, true};
  int64_t most = depth_of(p->k);
  for (int64_t k = 0; k < p->k; k += most)
    pack(&right, 0, p->n, k, least(p->k - k, most), packed + round_up(p->n, BLOCK) * k);
}

/* Panels from column j on, for k from `k` on. */
static const uint16_t *find_packed(const struct amx_product *p, int64_t j, int64_t k, int64_t depth) {
  return p->packed + round_up(p->packed_n, BLOCK) * k +
         (p->packed_left + j) / LANES * blocks_of(depth, DEPTH) * TILE;
}

AMX void amx_multiply(const struct amx_product *p, const uint16_t *a, const uint16_t *b, float *c,
                      void *room) {
  const struct amx_operand left = {a, p->a_row, p->transpose_a, false},
                           right = {b, p->b_row, !p->transpose_b, true};
  uint16_t *packed_a = room, *packed_b = packed_a + VALUES_A + GAP;
  if (p->k == 0) {
    for (int64_t i = 0; i < p->m; i++) memset(c + i * p->c_row, 0, (size_t)p->n * sizeof *c);
    return;
  }
  int64_t most = depth_of(p->k), values = round_up(most, DEPTH), high = VALUES_A / values / BLOCK * BLOCK,
          wide = round_up(VALUES_B / values, BLOCK);
  begin_tiles();
  for (int64_t k = 0; k < p->k; k += most)
    for (int64_t i = 0; i < p->m; i += high) {
      int64_t depth = least(p->k - k, most), rows = least(p->m - i, high);
      pack(&left, i, rows, k, depth, packed_a);
      for (int64_t j = 0; j < p->n; j += wide) {
        int64_t columns = least(p->n - j, wide);
        const uint16_t *with = p->packed ? find_packed(p, j, k, depth) : packed_b;
        if (!p->packed) pack(&right, j, columns, k, depth, packed_b);
        multiply_packed(packed_a, with, rows, columns, depth, k > 0, c + i * p->c_row + j, p->c_row);
      }
    }
  _tile_release();
}

#else

bool amx_can(void) { return false; }

int64_t amx_packed_count(int64_t n, int64_t k) { return n * k; }

void amx_pack(const struct amx_product *p, const uint16_t *b, uint16_t *packed) {
  (void)p, (void)b, (void)packed;
}

void amx_multiply(const struct amx_product *p, const uint16_t *a, const uint16_t *b, float *c, void *room) {
  (void)p, (void)a, (void)b, (void)c, (void)room;
}

#endif
