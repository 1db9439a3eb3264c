/* SPDX-License-Identifier: Apache-2.0 */
/* What a file of this folder gives for a leaf of its name: `const struct leaf_functions cpu_<name>`. */
#ifndef DGC_KERNELS_CPU_LEAF_H
#define DGC_KERNELS_CPU_LEAF_H

#include <stddef.h>
#include <stdint.h>

/* args: the operands, then the result, all dense; they do not overlap, but where the op may be done in place the result
 * holds that operand already. Behind them, if `scratch` asks for it, memory to work in. numbers: those of
 * op_info.numbers, a struct of int64_t. */
typedef void leaf_fn(void *const *args, const void *numbers);

/* One function for each element type of the first operand, NULL for what the op does not take. They run on the threads
 * of the executor: nothing is kept between calls, and nothing is allocated. */
struct leaf_functions {
  leaf_fn *f32, *f64, *i32, *i64, *u8, *boolean, *bf16, *f16;
  size_t (*scratch)(const void *numbers); /* (optional) bytes, aligned as for malloc, that a call works in */
  /* (optional) A call may do a range of units: lines, rows or images that do not depend on each other, so that its bits
   * are the same. `blocks`: the leaf's first number says how many there are, and each of these operands is a block for
   * each unit, one behind the other: bit i is args[i]. All of the other ones belong to every unit. */
  unsigned blocks;
  /* (optional, both or none) Where units are not so: `units` says how many there are; `narrow` makes of the operands
   * and numbers of a call those of the units first..end. `size`: bytes of an element of the first operand. */
  int64_t (*units)(const void *numbers);
  void (*narrow)(void *numbers, char **args, int64_t size, int64_t first, int64_t end);
};

/* The functions of a leaf of numbers, made by DEFINE(name, T), in whose T integers wrap; and the leaf's table of them,
 * with what else it has. */
#define LEAF_OF_NUMBERS(leaf, ...)                             \
  DEFINE(leaf##_f32, float)                                    \
  DEFINE(leaf##_f64, double)                                   \
  DEFINE(leaf##_u64, uint64_t)                                 \
  DEFINE(leaf##_u32, uint32_t)                                 \
  DEFINE(leaf##_u8, uint8_t)                                   \
  const struct leaf_functions cpu_##leaf = {.f32 = leaf##_f32, \
                                            .f64 = leaf##_f64, \
                                            .i32 = leaf##_u32, \
                                            .i64 = leaf##_u64, \
                                            .u8 = leaf##_u8,   \
                                            __VA_ARGS__}

/* The same where elements are moved as they are: T is an integer of their size. */
#define LEAF_OF_SIZES(leaf, ...)                                 \
  DEFINE(leaf##_1, uint8_t)                                      \
  DEFINE(leaf##_4, uint32_t)                                     \
  DEFINE(leaf##_8, uint64_t)                                     \
  const struct leaf_functions cpu_##leaf = {.f32 = leaf##_4,     \
                                            .f64 = leaf##_8,     \
                                            .i32 = leaf##_4,     \
                                            .i64 = leaf##_8,     \
                                            .u8 = leaf##_1,      \
                                            .boolean = leaf##_1, \
                                            __VA_ARGS__}

#endif
