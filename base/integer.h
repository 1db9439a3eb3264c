/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of counts and sizes that C has no operator for. What is divided by is positive. */
#ifndef DGC_BASE_INTEGER_H
#define DGC_BASE_INTEGER_H

#include <stddef.h>
#include <stdint.h>

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t greatest(int64_t a, int64_t b) { return a > b ? a : b; }

/* How many blocks of `each` hold `count`, at least 0; and how many such blocks of them are. */
static inline int64_t blocks_of(int64_t count, int64_t each) { return (count + each - 1) / each; }
static inline int64_t round_up(int64_t count, int64_t each) { return blocks_of(count, each) * each; }
static inline size_t size_round_up(size_t size, size_t each) { return (size + each - 1) / each * each; }

/* The quotient rounded down, of negative numbers, too. */
static inline int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* The greatest one, by Euclid. */
static inline int64_t common_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b, b = rest;
  }
  return a;
}

#endif
