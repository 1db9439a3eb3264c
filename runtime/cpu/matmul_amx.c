/* SPDX-License-Identifier: Apache-2.0 */
/* Each thread multiplies rows of C, or columns where these are more, in strips that tiles fill (kernels/cpu/amx.c). A
 * part of C has the bits that it has in the whole. */
#include "runtime/cpu/matmul_amx.h"

#include "base/arena.h"
#include "base/integer.h"
#include "base/line.h"
#include "kernels/cpu/amx.h"
#include "runtime/cpu/onednn.h"
#include "runtime/cpu/scratch.h"

struct amx_pieces {
  struct product size;
  struct pieces pieces;
  bool along;       /* columns */
  int64_t strips;   /* of 32 of them, of each product; the last one may be less */
  uint16_t *packed; /* B of all products, where it is the same in all turns of a loop; else NULL */
};

enum { STRIP = 32 };

static struct amx_product whole_product(const struct product *s) {
  return (struct amx_product){.m = s->m,
                              .n = s->n,
                              .k = s->k,
                              .a_row = s->transpose_a ? s->m : s->k,
                              .b_row = s->transpose_b ? s->k : s->n,
                              .c_row = s->n,
                              .transpose_a = s->transpose_a,
                              .transpose_b = s->transpose_b,
                              .packed_n = s->n};
}

static void pack_all(void *const *args, const void *state) {
  const struct amx_pieces *p = state;
  const struct product *s = &p->size;
  const struct amx_product one = whole_product(s);
  for (int64_t i = 0; i < s->batch; i++)
    amx_pack(&one, (const uint16_t *)args[1] + i * s->k * s->n, p->packed + i * amx_packed_count(s->n, s->k));
}

static void run_strips(const struct amx_pieces *p, void *const *args, int64_t batch, int64_t first,
                       int64_t end) {
  const struct product *s = &p->size;
  int64_t length = p->along ? s->n : s->m, from = first * STRIP, to = least(end * STRIP, length);
  int64_t top = p->along ? 0 : from, left = p->along ? from : 0;
  struct amx_product one = whole_product(s);
  *(p->along ? &one.n : &one.m) = to - from;
  one.packed = p->packed ? p->packed + batch * amx_packed_count(s->n, s->k) : NULL;
  one.packed_left = left;
  const uint16_t *a = (const uint16_t *)args[0] + batch * s->m * s->k + top * (s->transpose_a ? 1 : s->k),
                 *b = (const uint16_t *)args[1] + batch * s->k * s->n + left * (s->transpose_b ? s->k : 1);
  amx_multiply(&one, a, b, (float *)args[2] + (batch * s->m + top) * s->n + left, cpu_scratch(AMX_ROOM));
}

static void run(void *const *args, const void *state, int stage, int first, int end) {
  const struct amx_pieces *p = state;
  int64_t all = p->size.batch * p->strips, at = piece_begin(all, p->pieces.count[0], first),
          to = piece_begin(all, p->pieces.count[0], end);
  (void)stage;
  while (at < to) {
    int64_t batch = at / p->strips, behind = least((batch + 1) * p->strips, to);
    run_strips(p, args, batch, at - batch * p->strips, behind - batch * p->strips);
    at = behind;
  }
}

bool cpu_matmul_amx(struct arena *a, const struct product *size, int64_t cost, bool still,
                    struct command *c) {
  if (!size->stored || !onednn_units_are_amx()) return false;
  struct amx_pieces *p = arena_new(a, struct amx_pieces);
  *p = (struct amx_pieces){.size = *size, .along = size->n > size->m};
  p->strips = blocks_of(p->along ? size->n : size->m, STRIP);
  p->pieces = (struct pieces){.run = run, .state = p, .nstages = 1, .cost = cost};
  p->pieces.count[0] = pieces_for(cost, size->batch * p->strips);
  if (still) {
    int64_t count = size->batch * amx_packed_count(size->n, size->k);
    p->packed = line_from(arena_alloc(a, (size_t)count * sizeof *p->packed + CACHE_LINE));
    p->pieces.enter = pack_all;
  }
  c->kind = COMMAND_PIECES;
  c->pieces = &p->pieces;
  return true;
}
