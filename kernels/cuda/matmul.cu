/* SPDX-License-Identifier: Apache-2.0 */
/* Products of integers: c = op(a) op(b), one element after the other; sums wrap. TYPE is that of the elements, SUM that
 * of the sum. */
struct product_sizes {
  long long batch, m, n, k, row_a, column_a, row_b, column_b;
};

extern "C" __global__ void matmul(const TYPE *a, const TYPE *b, TYPE *c, struct product_sizes s) {
  long long step = (long long)gridDim.x * blockDim.x;
  long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (; at < s.batch * s.m * s.n; at += step) {
    long long column = at % s.n, row = at / s.n % s.m, batch = at / s.n / s.m;
    const TYPE *x = a + batch * s.m * s.k + row * s.row_a;
    const TYPE *y = b + batch * s.k * s.n + column * s.column_b;
    SUM sum = 0;
    for (long long i = 0; i < s.k; i++) sum += (SUM)x[i * s.column_a] * (SUM)y[i * s.row_b];
    c[at] = (TYPE)sum;
  }
}
