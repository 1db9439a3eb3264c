/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code for tile_code.c, an instruction or a few at a time: x86-64 with AVX2 or AVX-512, and AArch64. */
#ifndef DGC_RUNTIME_CPU_ASSEMBLER_H
#define DGC_RUNTIME_CPU_ASSEMBLER_H

#include "base/str.h"

/* What numbers and addresses are for; each machine gives each of them a register of its own. */
enum reg {
  R_CALL, /* the only argument of the function */
  R_T,
  R_STEP, /* between rows of A, or its columns; twice and three times as much */
  R_TWICE,
  R_THRICE,
  R_B,
  R_B_STEP,
  R_B_AHEAD,
  R_A_AHEAD,
  R_COUNT,
  R_RUN,
  R_LEFT,
  R_A, /* the first of a few pointers into A */
  R_A1,
  R_A2,
  R_A3,
  REGS,
  R_NONE = REGS
};
/* Rows of A that one pointer reaches, by the steps above. */
enum { ROWS_OF_POINTER = 4 };
/* Whether an address may be two registers and a distance. */
#ifdef __x86_64__
enum { ASM_FAR = 1 };
#else
enum { ASM_FAR = 0 };
#endif

/* Vectors are numbered from 0 on, as the machine has them. */
struct assembler {
  struct str code;
  bool wide;  /* numbers are f64, else f32 */
  int bytes;  /* of a vector: 16, 32 or 64 */
  int last;   /* numbers of a vector that is not whole, if there are such */
  bool keeps; /* asm_enter has saved vectors */
};

/* A place that is jumped to. From before it by two jumps at most. */
struct label {
  bool placed;
  size_t at, from[2];
  int waiting;
};
void asm_place(struct assembler *a, struct label *l);
/* The jump whose distance stands at `from` leads to the label, now or when it is placed. */
void asm_aim(struct assembler *a, size_t from, struct label *l);
/* Of each machine: writes the distance to `to` where that of a jump stands. */
void asm_reach(struct assembler *a, size_t from, size_t to);
/* Behind what fills a line up, so that a loop begins with it. */
void asm_place_loop(struct assembler *a, struct label *l);
void asm_jump(struct assembler *a, struct label *l);
void asm_jump_if_zero(struct assembler *a, enum reg r, struct label *l);
/* By what asm_subtract has left. */
enum outcome { IF_NOT_ZERO, IF_NEGATIVE, IF_NOT_NEGATIVE };
void asm_jump_if(struct assembler *a, enum outcome which, struct label *l);

/* Saves what a function must; `vectors` are used. At its end the function returns. */
void asm_enter(struct assembler *a, int vectors);
void asm_leave(struct assembler *a);

void asm_get(struct assembler *a, enum reg to, enum reg base, int64_t at);
void asm_add(struct assembler *a, enum reg to, enum reg what);
/* to = x + 2^shift y */
void asm_sum(struct assembler *a, enum reg to, enum reg x, enum reg y, int shift);
void asm_increase(struct assembler *a, enum reg r, int by);
void asm_subtract(struct assembler *a, enum reg r, int by);
/* Asks for what lies at base + index + at; index: R_NONE, or R_T may change. */
void asm_prefetch(struct assembler *a, enum reg base, enum reg index, int at);

void asm_zero(struct assembler *a, int v);
/* Keeps which lanes the last vector has, before one that is not whole is loaded or stored; changes R_T. */
void asm_mask(struct assembler *a);
/* What is not there of one that is not `whole` is 0, and is not stored; `spare` and R_T may change. */
void asm_load(struct assembler *a, int v, enum reg base, int at, bool whole);
void asm_store(struct assembler *a, int v, enum reg base, int at, bool whole, int spare);
/* v = the number at base + index + at, for asm_multiply; index: R_NONE, or at is 0 unless ASM_FAR. */
void asm_number(struct assembler *a, int v, enum reg base, enum reg index, int at);
/* sum += number * v, rounded once. */
void asm_multiply(struct assembler *a, int sum, int v, int number);
/* Both, of which machines have one instruction or two; `number` may change. */
void asm_multiply_number(struct assembler *a, int sum, int v, int number, enum reg base, enum reg index,
                         int at);
void asm_add_vector(struct assembler *a, int to, int x, int y);

#endif
