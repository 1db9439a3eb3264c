/* SPDX-License-Identifier: Apache-2.0 */
/* y[n][o][c] = the greatest of the x[n][i][c] that window o sees: the first of equals, but the last NaN if there is
 * one; the least number there is where it sees none. */
__device__ static inline TYPE least(void) {
  TYPE one = 1;
  if ((TYPE)1 / 2 > 0) return (TYPE)-1 / (one - 1); /* -Inf */
  if ((TYPE)-1 > 0) return 0;
  return (TYPE)(-1ll * (1ll << (8 * sizeof(TYPE) - 2)) * 2);
}

extern "C" __global__ void window_max(const TYPE *x, TYPE *y, struct window_numbers s) {
  WINDOW_FOLD(TYPE, least(), if (v > all || v != v) all = v)
}
