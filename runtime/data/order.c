/* SPDX-License-Identifier: Apache-2.0 */
/* The order of rows in an epoch: a pure function, so that a run can go on anywhere, on any machine. */
#include "runtime/data/data.h"

enum { ROUNDS = 8 };

/* The finaliser of splitmix64: every input bit reaches every output bit. */
static uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

int64_t data_order(uint64_t seed, int64_t epoch, int64_t rows, int64_t position) {
  const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
  uint64_t key = mix(mix(seed + golden) ^ ((uint64_t)epoch * golden + 1));
  int half = 1;
  while (half < 31 && (uint64_t)rows > UINT64_C(1) << 2 * half) half++;
  uint64_t mask = (UINT64_C(1) << half) - 1, x = (uint64_t)position;
  do { /* a permutation of 4^half numbers, fewer than four times as many as rows */
    uint64_t left = x >> half, right = x & mask;
    for (uint64_t round = 0; round < ROUNDS; round++) {
      uint64_t f = mix(key + round * golden + right * UINT64_C(0xd1342543de82ef95));
      uint64_t next = left ^ (f >> (64 - half));
      left = right;
      right = next;
    }
    x = left << half | right;
  } while (x >= (uint64_t)rows);
  return (int64_t)x;
}
