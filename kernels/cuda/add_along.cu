/* SPDX-License-Identifier: Apache-2.0 */
/* out, which holds x: out[o][index[o][i][k]][k] += values[o][i][k], in the order of i, nothing where there is no such
 * place; integers wrap. A thread for each line. */
extern "C" __global__ void add_along(const TYPE *x, const void *index, const TYPE *values, TYPE *out,
                                     struct along_numbers s) {
  long long step = (long long)gridDim.x * blockDim.x;
  long long line = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (; line < s.outer * s.r.width; line += step) {
    long long o = line / s.r.width, k = line % s.r.width;
    for (long long i = 0; i < s.r.count; i++) {
      long long at = (o * s.r.count + i) * s.r.width + k, row = row_at(index, s.r.index_bytes, at);
      if (row < 0 || row >= s.r.rows) continue;
      TYPE *to = out + (o * s.r.rows + row) * s.r.width + k;
      *to = (TYPE)((SUM)*to + (SUM)values[at]);
    }
  }
}
