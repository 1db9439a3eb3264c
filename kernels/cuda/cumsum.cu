/* y[o][i][k] = x[o][0][k] + ... + x[o][i][k], added in that order by one thread; exclusive: without the last; reverse:
 * from the other end. Integers wrap. */
struct lines {
  long long outer, length, inner, reverse, exclusive;
};

extern "C" __global__ void cumsum(const TYPE *x, TYPE *y, struct lines s) {
  long long step = (long long)gridDim.x * blockDim.x;
  long long line = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (; line < s.outer * s.inner; line += step) {
    long long begin = line / s.inner * s.length * s.inner + line % s.inner;
    TYPE sum = 0;
    for (long long i = 0; i < s.length; i++) {
      long long at = begin + (s.reverse ? s.length - 1 - i : i) * s.inner;
      TYPE next = i > 0 || s.exclusive ? (TYPE)(sum + x[at]) : x[at];
      y[at] = s.exclusive ? sum : next;
      sum = next;
    }
  }
}
