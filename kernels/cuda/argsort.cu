/* SPDX-License-Identifier: Apache-2.0 */
/* The places of the elements of each line in ascending order, equal ones in the order in which they stand; NaN behind all
 * others. A block sorts a line: a bitonic network whose comparators all put the lesser element first, so that those that
 * reach beyond the line's end can be left out, whatever its length is. */
struct argsort_numbers {
  long long outer, length, inner, descending;
};

__device__ static inline bool is_behind(TYPE a, TYPE b) { return a > b || (a != a && b == b); }

/* Puts the places i < k of a line into their order. */
__device__ static inline void compare(const TYPE *x, int *y, struct argsort_numbers s, long long i, long long k) {
  int a = y[i * s.inner], b = y[k * s.inner];
  TYPE u = x[a * s.inner], v = x[b * s.inner];
  bool later = s.descending ? is_behind(v, u) : is_behind(u, v), sooner = s.descending ? is_behind(u, v) : is_behind(v, u);
  if (later || (!sooner && a > b)) {
    y[i * s.inner] = b;
    y[k * s.inner] = a;
  }
}

extern "C" __global__ void argsort(const TYPE *x, int *y, struct argsort_numbers s) {
  for (long long line = blockIdx.x; line < s.outer * s.inner; line += gridDim.x) {
    long long begin = line / s.inner * s.length * s.inner + line % s.inner;
    for (long long i = threadIdx.x; i < s.length; i += blockDim.x) y[begin + i * s.inner] = (int)i;
    for (long long size = 2; size < 2 * s.length; size *= 2)
      for (long long step = size / 2; step > 0; step /= 2) {
        __syncthreads();
        for (long long p = threadIdx.x; p < s.length; p += blockDim.x) {
          long long from = p / step * 2 * step, off = p % step; /* the pair's block of 2 * step places, and its first */
          long long to = step == size / 2 ? from + 2 * step - 1 - off : from + off + step;
          if (to < s.length) compare(x + begin, y + begin, s, from + off, to);
        }
      }
    __syncthreads();
  }
}
