/* SPDX-License-Identifier: Apache-2.0 */
/* y[n][o][c] = the sum of the x[n][i][c] that window o sees, from 0 on in the order of i. Integers wrap. */
extern "C" __global__ void window_sum(const TYPE *x, TYPE *y, struct window_numbers s) {
  WINDOW_FOLD(SUM, 0, all += (SUM)v)
}
