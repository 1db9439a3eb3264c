/* SPDX-License-Identifier: Apache-2.0 */
/* x86-64: vectors of 32 bytes have a VEX prefix, those of 64 an EVEX prefix. */
#ifdef __x86_64__

#include "runtime/cpu/assembler.h"

/* The machine's numbers of them. Where A has columns, one pointer leads into it, and the next one's is free. */
enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI };
static const int machine[REGS] = {
    [R_CALL] = RDI,    [R_T] = RAX,  [R_STEP] = RCX,  [R_TWICE] = RDX,  [R_THRICE] = RSI, [R_B] = 8,
    [R_COUNT] = 9,     [R_RUN] = 14, [R_B_STEP] = 10, [R_B_AHEAD] = 11, [R_LEFT] = 15,    [R_A] = RBX,
    [R_A_AHEAD] = RBP, [R_A1] = RBP, [R_A2] = 12,     [R_A3] = 13,
};
static const int saved[] = {RBX, RBP, 12, 13, 14, 15};
enum { SAVED = sizeof saved / sizeof *saved };

enum { NO_PREFIX, P66, PF3 };
enum { MAP_0F = 1, MAP_0F38, MAP_0F3A };

static void byte(struct assembler *a, int b) { str_putc(&a->code, (char)b); }

static void word(struct assembler *a, int64_t value) {
  for (int i = 0; i < 4; i++) byte(a, (int)(value >> 8 * i & 0xff));
}

/* ---- operands ---- */

/* What lies at base + index + at. `unit`: EVEX counts short distances in it. */
struct memory {
  int base, index, at, unit; /* index: -1 if there is none */
};

static struct memory at_address(enum reg base, enum reg index, int at) {
  return (struct memory){machine[base], index == R_NONE ? -1 : machine[index], at, 1};
}

static void put_memory(struct assembler *a, int reg, const struct memory *m) {
  bool indexed = m->index >= 0 || (m->base & 7) == RSP;
  int near = m->at / m->unit, mod = 2;
  if (m->at == 0 && (m->base & 7) != RBP)
    mod = 0;
  else if (m->at % m->unit == 0 && near >= -128 && near < 128)
    mod = 1;
  byte(a, mod << 6 | (reg & 7) << 3 | (indexed ? RSP : m->base & 7));
  if (indexed) byte(a, ((m->index >= 0 ? m->index : RSP) & 7) << 3 | (m->base & 7));
  if (mod == 1) byte(a, near & 0xff);
  if (mod == 2) word(a, m->at);
}

static void put_register(struct assembler *a, int reg, int rm) { byte(a, 0xc0 | (reg & 7) << 3 | (rm & 7)); }

/* ---- numbers ---- */

static void whole_prefix(struct assembler *a, int reg, int index, int base) {
  byte(a, 0x48 | (reg >> 3) << 2 | (index >= 0 ? index >> 3 : 0) << 1 | base >> 3);
}

static void whole_of_memory(struct assembler *a, int code, int reg, struct memory m) {
  whole_prefix(a, reg, m.index, m.base);
  byte(a, code);
  put_memory(a, reg, &m);
}

void asm_get(struct assembler *a, enum reg to, enum reg base, int64_t at) {
  whole_of_memory(a, 0x8b, machine[to], at_address(base, R_NONE, (int)at));
}

static void whole_of_registers(struct assembler *a, int code, int reg, int rm) {
  whole_prefix(a, reg, -1, rm);
  byte(a, code);
  put_register(a, reg, rm);
}

void asm_add(struct assembler *a, enum reg to, enum reg what) {
  whole_of_registers(a, 0x01, machine[what], machine[to]);
}

void asm_sum(struct assembler *a, enum reg to, enum reg x, enum reg y, int shift) {
  int base = machine[x], index = machine[y];
  whole_prefix(a, machine[to], index, base);
  byte(a, 0x8d);
  byte(a, 0x40 | (machine[to] & 7) << 3 | RSP);
  byte(a, shift << 6 | (index & 7) << 3 | (base & 7));
  byte(a, 0);
}

enum { ADD = 0, SUBTRACT = 5 };

static void by_constant(struct assembler *a, int what, enum reg r, int by) {
  bool small = by >= -128 && by < 128;
  whole_of_registers(a, small ? 0x83 : 0x81, what, machine[r]);
  if (small)
    byte(a, by & 0xff);
  else
    word(a, by);
}

void asm_increase(struct assembler *a, enum reg r, int by) { by_constant(a, ADD, r, by); }
void asm_subtract(struct assembler *a, enum reg r, int by) { by_constant(a, SUBTRACT, r, by); }

void asm_prefetch(struct assembler *a, enum reg base, enum reg index, int at) {
  struct memory m = at_address(base, index, at);
  int high = m.base >> 3 | (m.index >= 8) << 1;
  if (high) byte(a, 0x40 | high);
  byte(a, 0x0f), byte(a, 0x18);
  put_memory(a, 1, &m);
}

/* ---- jumps ---- */

void asm_reach(struct assembler *a, size_t from, size_t to) {
  int64_t distance = (int64_t)to - (int64_t)from - 4;
  for (int i = 0; i < 4; i++) a->code.data[from + (size_t)i] = (char)(distance >> 8 * i & 0xff);
}

void asm_place_loop(struct assembler *a, struct label *l) {
  enum { LINE = 32 };
  static const char nothing[] = {0x0f, 0x1f, (char)0x84, 0, 0, 0, 0, 0}; /* an instruction of eight bytes */
  while (-a->code.len % LINE >= sizeof nothing) str_putn(&a->code, nothing, sizeof nothing);
  while (a->code.len % LINE) byte(a, 0x90);
  asm_place(a, l);
}

static void finish_jump(struct assembler *a, struct label *l) {
  size_t from = a->code.len;
  word(a, 0);
  asm_aim(a, from, l);
}

void asm_jump(struct assembler *a, struct label *l) {
  byte(a, 0xe9);
  finish_jump(a, l);
}

void asm_jump_if_zero(struct assembler *a, enum reg r, struct label *l) {
  whole_of_registers(a, 0x85, machine[r], machine[r]);
  byte(a, 0x0f), byte(a, 0x84);
  finish_jump(a, l);
}

void asm_jump_if(struct assembler *a, enum outcome which, struct label *l) {
  static const int codes[] = {[IF_NOT_ZERO] = 0x85, [IF_NEGATIVE] = 0x88, [IF_NOT_NEGATIVE] = 0x89};
  byte(a, 0x0f), byte(a, codes[which]);
  finish_jump(a, l);
}

/* ---- vectors ---- */

/* Of an instruction that works on vectors of `bytes`. */
struct vector_code {
  int prefix, map, code;
  bool w;
  int bytes;
};
/* With EVEX: lanes of the mask alone, 0 in the others; and the number in memory for all lanes. */
enum { MASKED = 1, ZEROING = 0x80, FOR_ALL = 0x10 };

static void vector_prefix(struct assembler *a, const struct vector_code *c, int reg, int second, int index,
                          int rm, bool memory, int how) {
  int x = memory ? (index >= 0 ? index >> 3 & 1 : 0) : rm >> 4, b = rm >> 3 & 1, r = reg >> 3 & 1;
  if (c->bytes < 64) {
    byte(a, 0xc4);
    byte(a, (~(r << 7 | x << 6 | b << 5) & 0xe0) | c->map);
    byte(a, c->w << 7 | (~second & 15) << 3 | (c->bytes == 32) << 2 | c->prefix);
    return;
  }
  byte(a, 0x62);
  byte(a, (~(r << 7 | x << 6 | b << 5 | (reg >> 4) << 4) & 0xf0) | c->map);
  byte(a, c->w << 7 | (~second & 15) << 3 | 4 | c->prefix);
  byte(a, 0x40 | how | (second >> 4 ? 0 : 8));
}

static void of_memory(struct assembler *a, struct vector_code c, int reg, int second, struct memory m,
                      int unit, int how) {
  m.unit = c.bytes == 64 ? unit : 1;
  vector_prefix(a, &c, reg, second, m.index, m.base, true, how);
  byte(a, c.code);
  put_memory(a, reg, &m);
}

static void of_registers(struct assembler *a, struct vector_code c, int reg, int second, int rm) {
  vector_prefix(a, &c, reg, second, -1, rm, false, 0);
  byte(a, c.code);
  put_register(a, reg, rm);
}

static int number_size(const struct assembler *a) { return a->wide ? 8 : 4; }

/* Of instructions whose prefix and bit tell f64 from f32. */
static struct vector_code of_numbers(const struct assembler *a, int code) {
  return (struct vector_code){a->wide ? P66 : NO_PREFIX, MAP_0F, code, a->wide, a->bytes};
}

/* Of those whose bit alone does. */
static struct vector_code of_map38(const struct assembler *a, int code) {
  return (struct vector_code){P66, MAP_0F38, code, a->wide, a->bytes};
}

void asm_zero(struct assembler *a, int v) {
  if (a->bytes == 64) /* vpxord */
    of_registers(a, (struct vector_code){P66, MAP_0F, 0xef, false, 64}, v, v, v);
  else
    of_registers(a, (struct vector_code){NO_PREFIX, MAP_0F, 0x57, false, 16}, v, v, v);
}

/* With 32 bytes the mask is a vector, the last one. */
enum { MASK = 15 };

void asm_mask(struct assembler *a) {
  static const int32_t lanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  if (a->bytes == 64) { /* mov eax, word; kmovw k1, eax */
    byte(a, 0xb8), word(a, (1 << a->last) - 1);
    byte(a, 0xc5), byte(a, 0xf8), byte(a, 0x92), byte(a, 0xc8);
    return;
  }
  uint64_t from = (uintptr_t)&lanes[8 - a->last * number_size(a) / 4]; /* mov rax, from */
  byte(a, 0x48), byte(a, 0xb8), word(a, (int64_t)(from & UINT32_MAX)), word(a, (int64_t)(from >> 32));
  of_memory(a, of_numbers(a, 0x10), MASK, 0, at_address(R_T, R_NONE, 0), 0, 0);
}

void asm_load(struct assembler *a, int v, enum reg base, int at, bool whole) {
  struct memory m = at_address(base, R_NONE, at);
  if (whole || a->bytes == 64) {
    of_memory(a, of_numbers(a, 0x10), v, 0, m, a->bytes, whole ? 0 : MASKED | ZEROING);
    return;
  }
  struct vector_code masked = of_map38(a, a->wide ? 0x2d : 0x2c);
  masked.w = false;
  of_memory(a, masked, v, MASK, m, 0, 0);
}

/* The first numbers of a vector of 32 bytes: the halves, quarters and so on that are there. */
static void store_parts(struct assembler *a, int v, struct memory m, int spare) {
  const struct vector_code store = {NO_PREFIX, MAP_0F, 0x11, false, 16},
                           half = {NO_PREFIX, MAP_0F, 0x13, false, 16},
                           single = {PF3, MAP_0F, 0x11, false, 16}, upper = {P66, MAP_0F3A, 0x19, false, 32},
                           high = {NO_PREFIX, MAP_0F, 0x12, false, 16};
  int left = a->last * number_size(a);
  if (left & 16) {
    of_memory(a, store, v, 0, m, 0, 0), m.at += 16;
    if (left & 15) of_registers(a, upper, v, 0, spare), byte(a, 1), v = spare;
  }
  if (left & 8) {
    of_memory(a, half, v, 0, m, 0, 0), m.at += 8;
    if (left & 7) of_registers(a, high, spare, v, v), v = spare;
  }
  if (left & 4) of_memory(a, single, v, 0, m, 0, 0);
}

void asm_store(struct assembler *a, int v, enum reg base, int at, bool whole, int spare) {
  struct memory m = at_address(base, R_NONE, at);
  if (whole || a->bytes == 64) /* by measurements masks are slower than parts with 32 bytes alone */
    of_memory(a, of_numbers(a, 0x11), v, 0, m, a->bytes, whole ? 0 : MASKED);
  else
    store_parts(a, v, m, spare);
}

void asm_number(struct assembler *a, int v, enum reg base, enum reg index, int at) {
  struct vector_code broadcast = of_map38(a, a->wide ? 0x19 : 0x18);
  broadcast.w &= a->bytes == 64;
  of_memory(a, broadcast, v, 0, at_address(base, index, at), number_size(a), 0);
}

static struct vector_code multiply(const struct assembler *a) { return of_map38(a, 0xb8); }

void asm_multiply(struct assembler *a, int sum, int v, int number) {
  of_registers(a, multiply(a), sum, v, number);
}

void asm_multiply_number(struct assembler *a, int sum, int v, int number, enum reg base, enum reg index,
                         int at) {
  if (a->bytes == 64) {
    of_memory(a, multiply(a), sum, v, at_address(base, index, at), number_size(a), FOR_ALL);
    return;
  }
  asm_number(a, number, base, index, at);
  asm_multiply(a, sum, v, number);
}

void asm_add_vector(struct assembler *a, int to, int x, int y) {
  of_registers(a, of_numbers(a, 0x58), to, x, y);
}

/* ---- the function ---- */

void asm_enter(struct assembler *a, int vectors) {
  (void)vectors;
  for (int i = 0; i < SAVED; i++) {
    if (saved[i] >> 3) byte(a, 0x41);
    byte(a, 0x50 | (saved[i] & 7));
  }
}

void asm_leave(struct assembler *a) {
  byte(a, 0xc5), byte(a, 0xf8), byte(a, 0x77); /* vzeroupper */
  for (int i = SAVED - 1; i >= 0; i--) {
    if (saved[i] >> 3) byte(a, 0x41);
    byte(a, 0x58 | (saved[i] & 7));
  }
  byte(a, 0xc3);
}

#endif
