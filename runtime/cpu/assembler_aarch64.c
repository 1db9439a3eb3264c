/* SPDX-License-Identifier: Apache-2.0 */
/* AArch64: vectors of 16 bytes. */
#ifdef __aarch64__

#include "runtime/cpu/assembler.h"

/* A function may change the first 18 registers; the argument is in the first one. */
static uint32_t machine(enum reg r) { return (uint32_t)r; }
enum { STACK = 31 };

static void put(struct assembler *a, uint32_t instruction) {
  str_putn(&a->code, (const char *)&instruction, sizeof instruction);
}

/* Distances from a register are counted in what is moved. */
static uint32_t from_base(enum reg base, int64_t at, int size) {
  return (uint32_t)(at / size) << 10 | machine(base) << 5;
}

/* ---- numbers ---- */

void asm_get(struct assembler *a, enum reg to, enum reg base, int64_t at) {
  put(a, 0xf9400000 | from_base(base, at, 8) | machine(to));
}

void asm_sum(struct assembler *a, enum reg to, enum reg x, enum reg y, int shift) {
  put(a, 0x8b000000 | machine(y) << 16 | (uint32_t)shift << 10 | machine(x) << 5 | machine(to));
}

void asm_add(struct assembler *a, enum reg to, enum reg what) { asm_sum(a, to, to, what, 0); }

void asm_increase(struct assembler *a, enum reg r, int by) {
  put(a, 0x91000000 | (uint32_t)by << 10 | machine(r) << 5 | machine(r));
}

void asm_subtract(struct assembler *a, enum reg r, int by) {
  put(a, 0xf1000000 | (uint32_t)by << 10 | machine(r) << 5 | machine(r));
}

void asm_prefetch(struct assembler *a, enum reg base, enum reg index, int at) {
  if (index != R_NONE) asm_sum(a, R_T, base, index, 0), base = R_T;
  put(a, 0xf9800000 | from_base(base, at, 8));
}

/* ---- jumps ---- */

/* A jump without a condition counts its distance in the lowest 26 bits, others in 19 bits from the fifth on. */
void asm_reach(struct assembler *a, size_t from, size_t to) {
  uint32_t jump, distance = (uint32_t)(((int64_t)to - (int64_t)from) >> 2);
  memcpy(&jump, a->code.data + from, sizeof jump);
  jump |= jump >> 26 == 5 ? distance & 0x3ffffff : (distance & 0x7ffff) << 5;
  memcpy(a->code.data + from, &jump, sizeof jump);
}

void asm_place_loop(struct assembler *a, struct label *l) {
  enum { LINE = 32 };
  while (a->code.len % LINE) put(a, 0xd503201f);
  asm_place(a, l);
}

static void put_jump(struct assembler *a, uint32_t jump, struct label *l) {
  size_t from = a->code.len;
  put(a, jump);
  asm_aim(a, from, l);
}

void asm_jump(struct assembler *a, struct label *l) { put_jump(a, 0x14000000, l); }

void asm_jump_if_zero(struct assembler *a, enum reg r, struct label *l) {
  put_jump(a, 0xb4000000 | machine(r), l);
}

void asm_jump_if(struct assembler *a, enum outcome which, struct label *l) {
  static const uint32_t codes[] = {[IF_NOT_ZERO] = 1, [IF_NEGATIVE] = 4, [IF_NOT_NEGATIVE] = 5};
  put_jump(a, 0x54000000 | codes[which], l);
}

/* ---- vectors ---- */

static uint32_t number_size(const struct assembler *a) { return a->wide ? 8 : 4; }

void asm_zero(struct assembler *a, int v) { put(a, 0x6f00e400 | (uint32_t)v); }

/* Loads and stores of parts need none. */
void asm_mask(struct assembler *a) { (void)a; }

/* A load, or a store, of 4, 8 or 16 bytes. */
static void move(struct assembler *a, bool load, uint32_t v, enum reg base, int at, int size) {
  uint32_t code = size == 16 ? 0x3d800000 : size == 8 ? 0xfd000000 : 0xbd000000;
  put(a, (code | (load ? 0x400000 : 0)) | from_base(base, at, size) | v);
}

/* Three numbers of four are two and one. */
static void move_part(struct assembler *a, bool load, uint32_t v, enum reg base, int at) {
  int size = a->last * (int)number_size(a);
  move(a, load, v, base, at, size < 8 ? 4 : 8);
  if (size <= 8) return;
  enum reg at_third = R_T;
  put(a, 0x91000000 | (uint32_t)(at + 8) << 10 | machine(base) << 5 | machine(at_third));
  put(a, (load ? 0x4d408000 : 0x4d008000) | machine(at_third) << 5 | v);
}

void asm_load(struct assembler *a, int v, enum reg base, int at, bool whole) {
  if (whole)
    move(a, true, (uint32_t)v, base, at, a->bytes);
  else
    move_part(a, true, (uint32_t)v, base, at);
}

void asm_store(struct assembler *a, int v, enum reg base, int at, bool whole, int spare) {
  (void)spare;
  if (whole)
    move(a, false, (uint32_t)v, base, at, a->bytes);
  else
    move_part(a, false, (uint32_t)v, base, at);
}

void asm_number(struct assembler *a, int v, enum reg base, enum reg index, int at) {
  if (index == R_NONE)
    move(a, true, (uint32_t)v, base, at, (int)number_size(a));
  else
    put(a, (a->wide ? 0xfc606800 : 0xbc606800) | machine(index) << 16 | machine(base) << 5 | (uint32_t)v);
}

void asm_multiply(struct assembler *a, int sum, int v, int number) {
  put(a, (a->wide ? 0x4fc01000 : 0x4f801000) | (uint32_t)number << 16 | (uint32_t)v << 5 | (uint32_t)sum);
}

void asm_multiply_number(struct assembler *a, int sum, int v, int number, enum reg base, enum reg index,
                         int at) {
  asm_number(a, number, base, index, at);
  asm_multiply(a, sum, v, number);
}

void asm_add_vector(struct assembler *a, int to, int x, int y) {
  put(a, (a->wide ? 0x4e60d400 : 0x4e20d400) | (uint32_t)y << 16 | (uint32_t)x << 5 | (uint32_t)to);
}

/* ---- the function ---- */

/* The lower halves of vectors 8 to 15 are the caller's. */
enum { KEPT_FROM = 8, KEPT_TO = 16 };

/* Pairs of them to the stack, or back: first and last move the stack's end, too. */
static void move_kept(struct assembler *a, bool load) {
  enum { PAIRS = (KEPT_TO - KEPT_FROM) / 2 };
  for (uint32_t i = 0; i < PAIRS; i++) {
    uint32_t pair = load ? PAIRS - 1 - i : i, first = KEPT_FROM + 2 * pair, code, at = 2 * pair;
    if (pair == 0)
      code = load ? 0x6cc00000 : 0x6d800000, at = (load ? 2 * PAIRS : 128 - 2 * PAIRS);
    else
      code = load ? 0x6d400000 : 0x6d000000;
    put(a, code | at << 15 | (first + 1) << 10 | STACK << 5 | first);
  }
}

void asm_enter(struct assembler *a, int vectors) {
  a->keeps = vectors > KEPT_FROM;
  if (a->keeps) move_kept(a, false);
}

void asm_leave(struct assembler *a) {
  if (a->keeps) move_kept(a, true);
  put(a, 0xd65f03c0);
}

#endif
