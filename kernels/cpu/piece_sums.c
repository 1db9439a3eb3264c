/* SPDX-License-Identifier: Apache-2.0 */
/* See piece_sums.h: joined before the next piece comes is what has both halves. */
#include "kernels/cpu/piece_sums.h"

int64_t piece_sums_levels(int64_t pieces) {
  int64_t levels = 1;
  for (int64_t before = pieces - 1; before > 0; before /= 2) levels++;
  return levels;
}

#define DEFINE_JOIN(name, T)                                     \
  static void name(T *to, const T *from, int64_t count) {        \
    for (int64_t i = 0; i < count; i++) to[i] = to[i] + from[i]; \
  }
DEFINE_JOIN(join_f32, float)
DEFINE_JOIN(join_f64, double)

void sums_join(int64_t size, void *to, const void *from, int64_t count) {
  if (size == (int64_t)sizeof(float))
    join_f32(to, from, count);
  else
    join_f64(to, from, count);
}

static char *sum_at(const struct piece_sums *s, int64_t number) {
  return (char *)s->at + number * s->count * s->size;
}

static void join_last(struct piece_sums *s) {
  s->waiting--;
  sums_join(s->size, sum_at(s, s->waiting - 1), sum_at(s, s->waiting), s->count);
}

void *piece_sums_next(struct piece_sums *s) {
  for (int64_t ones = s->pieces - 1; s->pieces > 0 && (ones & 1); ones >>= 1) join_last(s);
  s->pieces++;
  return sum_at(s, s->waiting++);
}

void piece_sums_end(struct piece_sums *s) {
  while (s->waiting > 1) join_last(s);
}
