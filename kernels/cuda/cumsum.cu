/* SPDX-License-Identifier: Apache-2.0 */
/* y[o][i][k] = x[o][0][k] + ... + x[o][i][k], added in that order by one thread; exclusive: without the last; reverse:
 * from the other end. Integers wrap. */
struct cumsum_numbers {
  long long outer, length, inner, reverse, exclusive;
};

extern "C" __global__ void cumsum(const TYPE *x, TYPE *y, struct cumsum_numbers s) {
  long long step = (long long)gridDim.x * blockDim.x;
  long long line = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (; line < s.outer * s.inner; line += step) {
    long long begin = line / s.inner * s.length * s.inner + line % s.inner;
    SUM sum = 0;
    for (long long i = 0; i < s.length; i++) {
      long long at = begin + (s.reverse ? s.length - 1 - i : i) * s.inner;
      SUM next = i > 0 || s.exclusive ? sum + (SUM)x[at] : (SUM)x[at];
      y[at] = (TYPE)(s.exclusive ? sum : next);
      sum = next;
    }
  }
}
